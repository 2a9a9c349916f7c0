"""Advice in warnings and errors: it is copied from the message, followed, and works without another word."""

import importlib
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from estimators.advice import heard, keywords, message, messages
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skvbem import (
    VBHMM,
    DAGSpace,
    StructureSearchCV,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBImputer,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
)
from skvbem.emissions import Gaussian, Regression
from skvbem.errors import EvidenceWarning
from skvbem.evidence import scorer

RNG = np.random.default_rng(20261127)
Y = RNG.choice(["u", "v"], 90)
PENGUINS = pd.DataFrame(
    {"island": RNG.choice(list("abc"), 90), "year": RNG.choice([2007, 2008, 2009], 90), "size": RNG.normal(size=90)}
)
WORDS = pd.DataFrame({"a": RNG.choice(["yes", "no", "?"], 90), "b": RNG.choice(["yes", "no", "NA"], 90)})
CODES = pd.DataFrame({"a": RNG.choice([1, 2, 3, 99], 90), "b": RNG.choice([1, 2, 3], 90)})
LENGTHS = pd.DataFrame({"a": np.where(RNG.random(90) < 0.2, -999.0, RNG.normal(size=90)), "b": RNG.normal(size=90)})
AS_TEXT = pd.DataFrame({"a": [f"{x:.3f}" for x in RNG.normal(size=90)], "b": RNG.choice(list("xy"), 90)})
AS_TEXT.loc[4, "a"] = "?"
FEW = {"random_state": 0, "n_init": 1}


def silently(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def models(*classes):
    return [cls(**({"random_state": 0} if cls is VBClassifier else FEW)) for cls in classes]


@pytest.mark.parametrize("model", models(VBClassifier, VBMixture, VBNetwork, VBHMM), ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("names", [True, False])
def test_whole_numbers(model, names):
    model, X = clone(model), PENGUINS if names else PENGUINS.to_numpy(dtype=object)
    text = message(lambda: model.fit(X, Y), " takes numbers for measurements, ")
    assert type(model).__name__ in text
    (emission,) = [each for each in keywords(text)["emission"] if each != "auto"]
    columns = [column for group in emission.values() for column in group]
    assert sorted(columns) == (sorted(PENGUINS.columns) if names else [0, 1, 2])
    silently(lambda: model.set_params(emission=emission).fit(X, Y))


@pytest.mark.parametrize("name", ["WORDS", "CODES", "LENGTHS", "AS_TEXT"])
def test_marks_of_missing_cells(name):
    X, of_numbers = globals()[name], name == "LENGTHS"
    emission = {"emission": "categorical"} if name == "CODES" else {}
    of_measurements = [VBFactorAnalysis(1), VBLinearDynamicalSystem(1), VBHMM(2, **FEW)]
    others = of_measurements if of_numbers else [VBDiscreteDAG(**FEW)]
    for model in (VBMixture(2, **FEW, **emission), VBNetwork(**FEW, **emission), *others):
        texts = [text for text in messages(lambda model=model: model.fit(X)) if "missing_values=" in text]
        assert texts
        marks = [mark for text in texts for each in keywords(text)["missing_values"] for mark in np.atleast_1d(each)]
        marks = [each.item() if isinstance(each, np.generic) else each for each in marks]
        model.set_params(missing_values=marks)
        again = messages(lambda model=model: model.fit(X))
        assert not [text for text in again if "missing_values=" in text]


@pytest.mark.parametrize("model", models(VBMixture, VBNetwork, VBDiscreteDAG), ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("times", ["dates", "spans"])
def test_times(model, times):
    of = {"dates": pd.to_datetime(["2020-01-01", "2020-02-02", "2020-03-01"] * 20)}
    of["spans"] = of["dates"] - of["dates"][0]
    X = pd.DataFrame({"d": of[times], "x": list("ab") * 30})
    text = message(lambda: model.fit(X), "a category argument must be")
    line = re.search(r"X\['d'\] = X\['d'\]\.[\w.]+\(\)", text).group()
    exec(line, {"X": X})  # as a user would paste it
    messages(lambda: model.fit(X))
    assert model.n_samples_ == 60
    if times == "dates":
        days = (of["dates"] - of["dates"].min()).days
        VBMixture(1, emission={"gaussian": ["d"], "categorical": ["x"]}).fit(X.assign(d=days))


def test_cells_that_hardly_occur_together():
    a = np.repeat([0, 1, 2], [400, 300, 300])
    X = pd.DataFrame({"A": a, "B": (a > 0).astype(int), "C": (a > 0).astype(int)})
    model = VBDiscreteDAG("[A][B|A][C|A]").fit(X)
    gaps = pd.DataFrame({name: [np.nan] for name in "ABC"})
    for fill in keywords(message(lambda: model.impute(gaps), "hardly occur together. Pass fill="))["fill"]:
        silently(lambda fill=fill: model.impute(gaps, fill=fill))
        silently(lambda fill=fill: VBImputer(model, fill=fill).fit(X).transform(gaps))


def test_scores_of_fractional_weights():
    X, weight = RNG.integers(0, 2, size=(40, 3)), RNG.uniform(0.5, 2, 40)
    model = VBMixture(2, emission="categorical", **FEW).fit(X, sample_weight=weight)
    text = message(lambda: model.log_evidence(X, sample_weight=weight, kind="ais"), "whole-number sample weights")
    for kind in re.findall(r"'(\w+)'", text.split("Use")[1]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.isfinite(model.log_evidence(X, sample_weight=weight, kind=kind).value)
    poor = messages(
        lambda: model.log_evidence(X, sample_weight=weight, kind="importance", n_draws=64, fractions=(0.0,))
    )
    assert poor
    assert not [text for text in poor if "'ais'" in text]


def test_arguments_of_another_kind():
    series = np.cumsum(RNG.normal(size=(40, 1)), axis=0)
    for model in (VBHMM(2, **FEW).fit(series), VBLinearDynamicalSystem(1, **FEW).fit(series)):
        (steps,) = keywords(message(lambda model=model: model.forecast(3), "n_steps"))["n_steps"]
        assert silently(lambda model=model, steps=steps: model.forecast(series, n_steps=steps)) is not None
        for method in ("fit", "partial_fit", "score"):
            text = message(lambda model=model, method=method: getattr(model, method)(series, [15, 25]), "lengths=")
            assert "(X, lengths=...)" in text
            messages(lambda model=model, method=method: getattr(model, method)(series, lengths=[15, 25]))


def test_evidence_of_other_data():
    X = RNG.normal(size=(40, 2))
    text = message(
        lambda: VBMixture(1).fit(X).log_evidence(X[:30], kind="bic"), "give a search by the evidence cv=AllRows()"
    )
    call = re.search(r"cv=(AllRows\(\)), of ([\w.]+)", text)
    splitter = getattr(importlib.import_module(call.group(2).rstrip(".")), call.group(1).removesuffix("()"))()
    search = GridSearchCV(VBMixture(**FEW), {"n_components": [1, 2]}, scoring=scorer("bic"), cv=splitter)
    assert np.isfinite(silently(lambda: search.fit(X)).best_score_)


CODES_3 = pd.DataFrame(RNG.integers(0, 3, size=(60, 3)), columns=list("abc"))
NUMBERS = RNG.normal(size=(60, 3))


def nearly_tied():
    return VBMixture(2, emission=Gaussian(degrees_of_freedom_prior=1e7), **FEW)


def searched(**options):
    search = {"space": DAGSpace(CODES_3.columns), "random_state": 0} | options
    estimator = search.pop("estimator", VBDiscreteDAG(prior="bdeu"))
    return StructureSearchCV(estimator, **search).fit(CODES_3)


APART = CODES_3[CODES_3.a != CODES_3.b]
LAGGED = VBHMM(1, emission=Regression(lags=1), **FEW).fit(NUMBERS[:, :1])
AT_EDGE = VBDiscreteDAG("[a][b|a][c]", method="map", map_basis="probability").fit(APART)


#: What is called, a part of its message, and the call with the keywords that the message has to copy.
COPIED = {
    "degrees of freedom": (
        lambda: nearly_tied().fit(NUMBERS),
        "Take covariance_type=",
        lambda **advice: VBMixture(2, **FEW).set_params(**advice).fit(NUMBERS),
    ),
    "more factors than columns": (
        lambda: VBFactorAnalysis(4, random_state=0).fit(NUMBERS),
        "Take fewer factors",
        lambda **advice: VBFactorAnalysis(4, random_state=0).set_params(**advice).fit(NUMBERS),
    ),
    "components without width": (
        lambda: VBMixture(8, method="ml", **FEW).fit(np.repeat(NUMBERS[:9], 3, axis=0)),
        "Take fewer components",
        lambda **advice: VBMixture(8, **FEW).set_params(**advice).fit(np.repeat(NUMBERS[:9], 3, axis=0)),
    ),
    "shares of scores": (
        lambda: (
            searched(
                scoring="lower_bound", estimator=VBDiscreteDAG(latents=2), space={"latents": [1, 2]}
            ).structure_posterior_
        ),
        "are no probabilities",
        lambda **advice: (
            searched(
                scoring="lower_bound", estimator=VBDiscreteDAG(latents=2), space={"latents": [1, 2]}, **advice
            ).structure_posterior_
        ),
    ),
    "too many to go through": (
        lambda: searched(space=DAGSpace([*CODES_3.columns, *"defghij"]), strategy="exhaustive"),
        "Take strategy=",
        lambda **advice: searched(**advice),
    ),
    "what is drawn beside lags": (
        lambda: LAGGED.impute(NUMBERS[:, :1], fill="draw"),
        "does not draw cells",
        lambda **advice: LAGGED.impute(NUMBERS[:, :1], **advice),
    ),
    "a Laplace score at an edge": (
        lambda: AT_EDGE.log_evidence(APART, kind="laplace", form="map_probability"),
        "its mode in probabilities lies at the edge",
        lambda **advice: (
            VBDiscreteDAG("[a][b|a][c]", method="map", **advice).fit(APART).log_evidence(APART, kind="laplace")
        ),
    ),
}


@pytest.mark.parametrize("name", COPIED)
def test_keywords_of_messages_are_copied(name):
    call, part, followed = COPIED[name]
    advice = keywords(next(text for text in messages(call) if part in text).split(". ", 1)[1])
    assert advice
    for key, values in advice.items():
        for value in values:
            for text in heard(lambda key=key, value=value: followed(**{key: value}))[1]:
                assert part not in text


FACTORS = VBFactorAnalysis(2, random_state=0).fit(NUMBERS)
HIDDEN = VBDiscreteDAG("[h][a|h][b|h][c|h]", latents=["h"], prior="bdla", **FEW).fit(CODES_3)
#: By a part of a message, what is called, and the call with each name in quotes that the message recommends.
NAMED = {
    "starts chains from one rotation of the factors": (
        lambda: FACTORS.log_evidence(NUMBERS, kind="ais"),
        lambda name: FACTORS.log_evidence(NUMBERS, kind=name, time_budget=20),
    ),
    "the strength of each table is hidden": (
        lambda: HIDDEN.log_evidence(CODES_3, kind="laplace"),
        lambda name: HIDDEN.log_evidence(CODES_3, kind=name, time_budget=20),
    ),
    "The strategy 'exact' ": (
        lambda: searched(space=DAGSpace(["a", "b", "c"], latents={"h": 2}), strategy="exact"),
        lambda name: searched(strategy=name),
    ),
    "one q(x) bounds the evidence under one prior": (
        lambda: searched(
            estimator=VBDiscreteDAG(prior="per_row", learn_prior=True, **FEW),
            space=DAGSpace(["a", "b", "c"], latents={"h": 2}, max_parents=1),
            strategy="structural",
        ),
        lambda name: searched(
            estimator=VBDiscreteDAG(prior="per_row", learn_prior=True, **FEW),
            space=DAGSpace(["a", "b", "c"], latents={"h": 2}, max_parents=1),
            strategy=name,
            max_candidates=4,
            rescoring=False,
        ),
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "rotation" in name else []) for name in NAMED]
)
def test_names_of_messages_are_taken(name):
    call, followed = NAMED[name]
    text = message(call, name)
    names = re.findall(r"'(\w+)'", text.split("Take ", 1)[1])
    assert names
    for each in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvidenceWarning)  # short runs are rough
            assert followed(each) is not None


def test_methods_of_messages_are_called():
    words = pd.DataFrame({"x": NUMBERS[:, 0], "k": RNG.choice(list("uv"), 60)})
    network = VBNetwork({"x": ["k"]}, random_state=0).fit(words)
    tables = VBDiscreteDAG("[a][b|a][c]").fit(CODES_3)
    for text, model, given in (
        (message(lambda: network.query(["x", "k"]), "that 'query' could read").split("Take ")[1], network, words),
        (message(lambda: network.predict(words), "no latents").split("Declare some")[1], network, words),
        (message(lambda: tables.predict(CODES_3), "no latents").split("Use ")[1], tables, CODES_3),
    ):
        for method in re.findall(r"'(\w+)'", text):
            argument = {"impute": given, "sample": 3, "query": "a"}.get(method)
            assert argument is None or getattr(model, method)(argument) is not None


def test_a_mask_of_one_number_of_states():
    """An array says for which number it is; a rule holds for any."""
    mask = np.tri(3, dtype=bool).T
    model = VBHMM("auto", transmat_mask=mask, **FEW)
    text = message(lambda: model.fit(NUMBERS), " needs a 'transmat_mask' that any number of states can have")
    assert "Say 'n_components'" in text
    assert len(silently(lambda: clone(model).set_params(n_components=len(mask)).fit(NUMBERS)).transmat_) == 3
    for rule in (None, *keywords("transmat_mask='left-to-right'")["transmat_mask"], 1):
        assert silently(lambda rule=rule: clone(model).set_params(transmat_mask=rule).fit(NUMBERS)).n_components_ >= 1
