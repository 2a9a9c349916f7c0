"""Experiments among observations: `interventions` of estimators of networks."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from skvbem import VBDiscreteDAG, load, save
from skvbem.graphs.undirected import UndirectedGraph

approx = pytest.approx
GRAPHS = {"[x][y|x]": -130.779301, "[x|y][y]": -135.808336, "[x][y]": -143.670986}


@pytest.fixture
def forty_set():
    """Eighty rows that were observed, and forty in which x was set."""
    counts = [30, 10, 10, 30, 15, 5, 5, 15]
    X = pd.DataFrame(np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]] * 2, counts, axis=0), columns=["x", "y"])
    return X, [None] * 80 + ["x"] * 40


@pytest.fixture
def gappy(rng):
    """A hidden node above two columns, one of which is above a third; columns were set, and cells are missing."""
    n = 80
    h, who = rng.random(n) < 0.5, rng.choice(["x", "y", "none"], n)
    x, z = (np.where(rng.random(n) < 0.8, h, ~h) for _ in range(2))
    x = np.where(who == "x", rng.random(n) < 0.5, x)
    y = np.where(who == "y", rng.random(n) < 0.5, np.where(rng.random(n) < 0.85, x, ~x))
    X = pd.DataFrame({"x": x, "y": y, "z": z}).astype(object)
    X[rng.random(X.shape) < 0.1] = None
    who = [name if name != "none" and X[name][row] is not None else None for row, name in enumerate(who)]
    edges = [("h", "x"), ("h", "z"), ("x", "y")]
    return VBDiscreteDAG(edges, latents=["h"], n_init=2, random_state=0), X, who


@pytest.mark.parametrize("graph", GRAPHS)
def test_directions_are_told_apart(forty_set, graph):
    """The evidence of closed form: the table of x leaves forty rows out."""
    X, who = forty_set
    model = VBDiscreteDAG(graph, prior="bdeu").fit(X, interventions=who)
    assert model.lower_bound_ == approx(GRAPHS[graph], abs=1e-6)
    assert model.counts_["x"].values.sum() == 80
    assert model.counts_["y"].values.sum() == 120 == model.n_samples_
    seen = VBDiscreteDAG(graph, prior="bdeu").fit(X)
    assert graph == "[x][y]" or seen.lower_bound_ == approx(-158.706879, abs=1e-6)


def test_all_forms_say_the_same(forty_set):
    X, who = forty_set
    model = VBDiscreteDAG("[x][y|x]", prior="bdeu")
    cells = pd.DataFrame({"x": [name == "x" for name in who]})
    both = np.column_stack([cells["x"], np.zeros(120, dtype=bool)])
    with_column, frame = X.assign(who=who), pl.DataFrame({name: X[name].to_list() for name in X})
    fits = [
        clone(model).fit(X, interventions=form)
        for form in (pd.Series(who), pd.Series(who, dtype="category"), [w and ("x",) for w in who], cells, both)
    ]
    fits += [clone(model).fit(with_column, interventions="who"), clone(model).fit(frame, interventions=pl.Series(who))]
    fits += [clone(model).fit(frame, interventions=pl.DataFrame({"x": cells["x"].to_list()}))]
    fits += [VBDiscreteDAG("[x0][x1|x0]", prior="bdeu").fit(X.to_numpy(), interventions=both.tolist())]
    assert [fit.lower_bound_ for fit in fits] == approx([-130.779301] * len(fits), abs=1e-6)
    assert all(fit.n_features_in_ == 2 for fit in fits)
    nothing = clone(model).fit(X, interventions=[None] * 120)
    assert nothing.lower_bound_ == clone(model).fit(X).lower_bound_


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_weights_are_repeats_in_any_order(gappy, rng, method):
    model, X, who = gappy
    model.set_params(method=method)
    weight = rng.integers(0, 3, len(X))
    rows = rng.permutation(np.repeat(np.arange(len(X)), weight))
    weighted = clone(model).fit(X, sample_weight=weight, interventions=who)
    repeated = clone(model).fit(X.iloc[rows], interventions=[who[row] for row in rows])
    for name in ("lower_bound_", "log_posterior_", "log_likelihood_", "n_samples_"):
        assert getattr(weighted, name, 0.0) == approx(getattr(repeated, name, 0.0), abs=1e-6)
    assert weighted.counts_["y"].values == approx(repeated.counts_["y"].values, abs=1e-3)


def test_what_a_row_was_set_to_says_nothing_of_its_parents(gappy):
    """Answers about new rows: x tells of y, and of h only where x was not set."""
    model, X, who = gappy
    model.fit(X, interventions=who)
    rows = pd.DataFrame({"x": [True, False, None], "y": [True] * 3, "z": [None] * 3}, dtype=object)
    of_h = model.predict_proba(rows, interventions=["x", "x", None])
    prior = model.tables_["h"].values
    assert of_h[:2] == approx(np.stack([prior, prior]), abs=1e-12)
    of_y = model.tables_["y"]
    logs = np.log([of_y["x":True, "y":True], of_y["x":False, "y":True]])
    assert model.score_samples(rows, interventions=["x", "x", None])[:2] == approx(logs, abs=1e-12)
    assert model.score(rows[:2], interventions=["x", "x"]) == approx(logs.mean())
    assert model.predict(rows, interventions=["x", "x", None]).tolist() == of_h.argmax(axis=1).tolist()
    assert model.score_samples(rows[2:]) == approx(model.score_samples(rows, interventions=["x", "x", None])[2:])


def test_rows_that_were_all_set_say_nothing(forty_set):
    X, who = forty_set
    model = VBDiscreteDAG("[x][y|x]", prior="bdeu").fit(X, interventions=who)
    more = pd.concat([X, X[:5]])
    again = VBDiscreteDAG("[x][y|x]", prior="bdeu").fit(more, interventions=[*who, *[("x", "y")] * 5])
    assert (again.lower_bound_, again.n_samples_, again.n_rows_all_missing_) == (model.lower_bound_, 120, 5)
    assert again.bic(more, interventions=[*who, *[("x", "y")] * 5]) == model.bic(X, interventions=who)


def test_scores_reports_and_batches(gappy, tmp_path):
    """Evidences by sums and by draws agree; simulated rows keep what was set; batches add up; files hold the fit."""
    model, X, who = gappy
    few, names = X[:8], who[:8]
    model.fit(few, interventions=names)
    exact = model.log_evidence(few, interventions=names, kind="exact")
    for kind in ("ais", "importance_gibbs", "bridge"):
        drawn = model.log_evidence(few, interventions=names, kind=kind, random_state=1)
        assert drawn.value == approx(exact.value, abs=4 * drawn.standard_error + 0.02)
    assert model.lower_bound_ < exact.value
    simulated = model.bootstrap(few, 3, kind="parametric", interventions=names)
    assert np.isfinite(simulated.errors["tables"]["y"]).all()
    found = model.goodness_of_fit(few, interventions=names)
    assert np.isnan(found.g2)
    assert found.bic == approx(-2 * found.log_likelihood + 7 * np.log(found.n_samples))
    with pytest.raises(ValueError, match="interventions"):
        model.log_evidence(few)
    with pytest.raises(ValueError, match="'free'"):
        model.log_evidence(few, interventions=names, kind="bic", dimension="identifiable")
    save(model, tmp_path / "fit.skvbem")
    assert load(tmp_path / "fit.skvbem").predict(few).tolist() == model.predict(few).tolist()
    complete = X.dropna()
    given = [who[row] for row in complete.index]
    whole = VBDiscreteDAG([("x", "y")]).fit(complete, interventions=given)
    parts = VBDiscreteDAG([("x", "y")]).fit(complete[:30], interventions=given[:30])
    parts.partial_fit(complete[30:], interventions=given[30:])
    assert parts.posterior_["y"].values == approx(whole.posterior_["y"].values)


def test_folds_split_interventions(gappy):
    """By metadata routing, in fits and in scores."""
    model, X, who = gappy
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(interventions=True).set_score_request(interventions=True)
        scores = cross_val_score(model, X, cv=2, params={"interventions": who})
    half = len(X) // 2
    first = clone(model).fit(X[half:], interventions=who[half:]).score(X[:half], interventions=who[:half])
    assert scores[0] == approx(first)


@pytest.mark.parametrize(
    ("interventions", "error", "message"),
    [
        (["x"], ValueError, "one item for each of the 120 rows of X. Got 1"),
        (["z"] * 120, ValueError, "name 'z', which is not a column of X"),
        ([[True, False]], ValueError, "Got 1 x 2"),
        (np.zeros((120, 3), dtype=bool), ValueError, "Got 120 x 3"),
        (
            np.full((120, 2), 2.0),
            ValueError,
            "must hold True where a cell of X was set, else False. Column 'x0' has 2.0",
        ),
        (pd.DataFrame({"z": [True] * 120}), ValueError, "name 'z'"),
        ("who", ValueError, "name 'who', which is not a column of X"),
        (3, TypeError, "Got 3"),
    ],
)
def test_others_are_refused(forty_set, interventions, error, message):
    X, _ = forty_set
    with pytest.raises(error, match=re.escape(message)):
        VBDiscreteDAG("[x][y|x]").fit(X, interventions=interventions)


def test_what_contradicts_them_is_refused(forty_set):
    X, who = forty_set
    gap = X.astype(float)
    gap.loc[100, "x"] = np.nan
    with pytest.raises(ValueError, match=r"column 'x' was set in a row where X lacks .*, the 101\. of those"):
        VBDiscreteDAG("[x][y|x]").fit(gap, interventions=who)
    with pytest.raises(ValueError, match="need a directed 'structure'"):
        VBDiscreteDAG(UndirectedGraph(["x", "y"], [("x", "y")]), prior="bdeu").fit(X, interventions=who)
    with pytest.raises(ValueError, match="no column but 'x'"):
        VBDiscreteDAG().fit(X[["x"]], interventions="x")
