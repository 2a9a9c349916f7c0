"""Columns that no emission names: read by their data types, left out, or refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import skvbem
from skvbem import VBHMM, Blocks, StructureSearchCV, VBClassifier, VBImputer, VBMixture, VBNetwork
from skvbem.emissions import Gaussian, LogNormal, Poisson, Regression
from skvbem.errors import DataWarning
from skvbem.evidence import AllRows, scorer

RNG = np.random.default_rng(20261127)
N = 60
FRAME = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.normal(size=N)})
FRAME["y"] = 2 * FRAME["x"] + 0.3 * RNG.normal(size=N)
FRAME["c"] = RNG.choice(["a", "b"], N)
FRAME["day"] = pd.date_range("2020-01-01", periods=N)  # no emission takes it
KNOWN = FRAME[["x", "z", "y", "c"]]
QUICK = {"n_init": 2, "search_effort": "fast", "random_state": 0}
HOLED = FRAME.mask((np.arange(N) == 3)[:, None] & (FRAME.columns == "y"))
MODELS = {"VBMixture": VBMixture(2, **QUICK), "VBHMM": VBHMM(2, **QUICK), "VBNetwork": VBNetwork(latents=2, **QUICK)}


@pytest.mark.parametrize("name", MODELS)
def test_dropped_columns_are_as_if_they_were_not_there(name, tmp_path):
    model, alone = (clone(MODELS[name]).set_params(emission={"gaussian": ["y"]}) for _ in range(2))
    alone.fit(FRAME[["y"]])
    for emission in (
        {"gaussian": ["y"], "remainder": "drop"},
        {"remainder": "drop", "gaussian": "y"},
        [("y", Gaussian(), ["y"]), ("remainder", "drop")],
    ):
        assert model.set_params(emission=emission).fit(FRAME).lower_bound_ == alone.lower_bound_
    assert (model.n_features_in_, [*model.feature_names_in_]) == (5, [*FRAME.columns])
    assert np.array_equal(model.score_samples(FRAME), alone.score_samples(FRAME[["y"]]))
    bic = model.log_evidence(FRAME, kind="bic")
    assert (bic.value, bic.n_samples) == (alone.log_evidence(FRAME[["y"]], kind="bic").value, N)
    others = FRAME.assign(x=0.0, c=None)  # nobody looks at them
    assert np.array_equal(model.score_samples(others), model.score_samples(FRAME))
    filled = model.impute(HOLED)
    assert filled.drop(columns="y").equals(HOLED.drop(columns="y"))
    assert filled["y"][3] == alone.impute(HOLED[["y"]])["y"][3]
    drawn, *_ = model.sample(4) if name != "VBHMM" else model.sample([4])
    assert [*pd.concat(drawn if isinstance(drawn, list) else [drawn]).columns] == [*FRAME.columns]
    assert "1 column" in str(model.summary())
    skvbem.save(model, tmp_path / "fit")
    assert np.array_equal(skvbem.load(tmp_path / "fit").score_samples(FRAME), model.score_samples(FRAME))
    with pytest.raises(ValueError, match="feature names"):
        model.score_samples(FRAME[["y"]])


@pytest.mark.parametrize("name", MODELS)
def test_auto_for_the_rest_is_auto_for_all_where_it_says_the_same(name):
    model = clone(MODELS[name]).fit(KNOWN)
    rest = clone(model).set_params(emission={"gaussian": ["y"], "remainder": "auto"}).fit(KNOWN)
    assert rest.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-9)
    assert rest.groups_ == model.groups_
    assert [*rest.categories_] == ["c"]


def test_groups_of_the_remainder():
    counts = KNOWN.assign(k=RNG.poisson(3.0, N))
    fit = VBMixture(emission=[("gaussian", Poisson(), ["k"]), ("remainder", "auto")]).fit(counts)
    assert fit.groups_ == {"gaussian": ["k"], "remainder_gaussian": ["x", "z", "y"], "categorical": ["c"]}
    fit = VBMixture(emission={"categorical": ["c"], "remainder": Gaussian("diag")}).fit(KNOWN)
    assert fit.groups_ == {"categorical": ["c"], "remainder": ["x", "z", "y"]}
    assert fit.covariances_.shape == (1, 3)
    everything = {"gaussian": ["x", "y", "z"], "categorical": ["c"]}
    for nothing in ("auto", "drop", "poisson"):
        named = VBMixture(emission=everything | {"remainder": nothing}).fit(KNOWN)
        assert named.lower_bound_ == VBMixture(emission=everything).fit(KNOWN).lower_bound_
    nodes = VBNetwork(latents=2, emission=[("pair", Gaussian(), ["x", "y"]), ("remainder", "auto")], **QUICK)
    assert nodes.fit(KNOWN).groups_ == {"pair": ["x", "y"], "z": ["z"]}
    with pytest.raises(ValueError, match="names the family 'omitted'"):
        VBMixture(emission=everything | {"remainder": "omitted"}).fit(KNOWN)
    with pytest.raises(ValueError, match=r"gives no family to 'z'.* Or say it of all others: 'remainder': 'auto'"):
        VBMixture(emission={"gaussian": ["x", "y"], "categorical": ["c"]}).fit(KNOWN)


def test_the_remainder_of_blocks():
    parts = Blocks(lambda: iter([KNOWN[:25], KNOWN[25:]]))
    for rest in ("auto", "drop"):
        model = VBMixture(2, emission={"gaussian": ["y"], "remainder": rest}, n_init=2, init="k-means++")
        bounds = [model.set_params(random_state=0).fit(X).lower_bound_ for X in (parts, KNOWN)]
        assert bounds[0] == pytest.approx(bounds[1], rel=1e-6)


def test_guesses_about_the_remainder_are_said_with_what_to_copy():
    counts = pd.DataFrame({"seen": RNG.poisson(4.0, N), "sick": RNG.poisson(RNG.gamma(1.0, 6.0, N)), "y": FRAME["y"]})
    with pytest.warns(DataWarning, match="'remainder': 'auto' in 'emission' of VBMixture takes numbers") as caught:
        VBMixture(emission={"poisson": ["seen"], "remainder": "auto"}).fit(counts)
    said = str(caught[0].message).split("emission=")[1].split(";")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = VBMixture(emission=eval(said)).fit(counts)
    assert fit.groups_ == {"poisson": ["seen"], "negative_binomial": ["sick"], "gaussian": ["y"]}


def test_advice_keeps_emissions_that_have_parameters():
    counts = pd.DataFrame({"sick": RNG.poisson(RNG.gamma(1.0, 6.0, N)), "pay": np.exp(FRAME["x"]), "y": FRAME["y"]})
    own = ("pay", LogNormal(covariance_prior=[2.0]), ["pay"])
    with pytest.warns(DataWarning, match="'remainder': 'auto' in 'emission' of VBMixture takes numbers") as caught:
        VBMixture(emission=[own, ("remainder", "auto")]).fit(counts)
    said = str(caught[0].message).split("emission=")[1].split(";")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = VBMixture(emission=eval(said)).fit(counts)
    assert fit.groups_ == {"pay": ["pay"], "negative_binomial": ["sick"], "gaussian": ["y"]}
    assert "LogNormal(covariance_prior=[2.0])" in said


@pytest.mark.parametrize("kind", [VBMixture, VBHMM])
def test_searches_over_covariates(kind):
    """The modeled column stays the same, so that evidences compare: planted is x alone."""
    model = kind(1, emission=[("y", Regression(covariates=["x", "z"]), ["y"]), ("remainder", "drop")])
    grid = {"emission__y__covariates": [["x"], ["z"], ["x", "z"]]}
    search = GridSearchCV(model, grid, scoring=scorer("lower_bound"), cv=AllRows(), error_score="raise").fit(FRAME)
    assert search.best_params_ == {"emission__y__covariates": ["x"]}
    by_evidence = StructureSearchCV(model, grid, scoring="lower_bound").fit(FRAME)
    assert by_evidence.best_params_ == search.best_params_
    alone = kind(1, emission=Regression(covariates=["x"])).fit(FRAME[["x", "y"]])
    assert search.best_score_ == pytest.approx(alone.lower_bound_, rel=1e-12)
    whole = GridSearchCV(
        model,
        {"emission__remainder": ["drop"], "emission__y": [Regression(["z"]), Regression(["x"])]},
        scoring=scorer("lower_bound"),
        cv=AllRows(),
    )
    assert [*whole.fit(FRAME).best_params_["emission__y"].covariates] == ["x"]
    assert model.get_params()["emission__remainder"] == "drop"


def test_the_remainder_of_classifiers_imputers_and_given_parameters():
    X, y = FRAME[["x", "z", "y", "day"]], FRAME["c"]
    alone = VBClassifier(emission={"gaussian": ["y"]}).fit(X[["y"]], y).predict_proba(X[["y"]])
    for emission in ({"gaussian": ["y"], "remainder": "drop"}, [("y", "gaussian", ["y"]), ("remainder", "drop")]):
        assert np.array_equal(VBClassifier(emission=emission).fit(X, y).predict_proba(X), alone)
    rest = VBClassifier(emission={"gaussian": ["y"], "remainder": "auto"}).fit(X.drop(columns="day"), y)
    assert len(rest.structure_.nodes) == 4
    imputer = VBImputer(VBMixture(emission={"gaussian": ["y"], "remainder": "drop"}))
    assert imputer.fit_transform(HOLED[["x", "y"]])[3, 0] == FRAME["x"][3]
    model = VBMixture.from_parameters(
        [1.0], {"rates": [[2.0]]}, emission={"poisson": ["k"], "remainder": "drop"}, columns=["k", "other"]
    )
    assert np.isnan(model.sample(3)[0][:, 1]).all()
