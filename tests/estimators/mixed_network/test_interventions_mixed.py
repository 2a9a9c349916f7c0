"""Experiments among observations in networks of mixed columns."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from scipy.stats import norm
from sklearn.base import clone

from skvbem import StructureSearchCV, VBDiscreteDAG, VBNetwork
from skvbem.spaces import DAGSpace

approx = pytest.approx


@pytest.fixture
def mixed(rng):
    """A hidden node above a category and a number; the category is above the number, and was set in some rows."""
    n = 90
    h, is_set = rng.random(n) < 0.5, rng.random(n) < 0.4
    c = np.where(is_set, rng.random(n) < 0.5, np.where(rng.random(n) < 0.85, h, ~h))
    d = np.where(rng.random(n) < 0.8, h, ~h)
    X = pd.DataFrame(
        {"c": np.where(c, "yes", "no"), "d": np.where(d, "on", "off"), "y": 4.0 * h + c + rng.normal(size=n)}
    )
    X.loc[::11, "d"] = None
    edges = [("h", "c"), ("h", "d"), ("h", "y"), ("c", "y")]
    return VBNetwork(edges, latents=["h"], n_init=2, random_state=0), X, np.where(is_set, "c", None)


def test_tables_alone_are_those_of_discrete_networks(mixed):
    _, X, who = mixed
    X = X[["c", "d"]].assign(e=np.where(X["y"] > 3, "high", "low"))
    edges, options = [("h", "c"), ("h", "d"), ("c", "e"), ("h", "e")], {"latents": ["h"], "random_state": 0}
    one = VBNetwork(edges, **options).fit(X, interventions=who)
    other = VBDiscreteDAG(edges, **options).fit(X, interventions=who)
    assert one.lower_bound_ == approx(other.lower_bound_, abs=1e-4)
    assert one.n_samples_ == other.n_samples_
    few, names = X[:6], who[:6]
    exact = [clone(model).fit(few, interventions=names).log_evidence(few, interventions=names, kind=kind)
             for model, kind in ((one, "importance_gibbs"), (other, "exact"))]  # fmt: skip
    assert exact[0].value == approx(exact[1].value, abs=4 * exact[0].standard_error + 0.02)


@pytest.mark.parametrize("method", ["ml", "map"])
def test_densities_by_definition(mixed, method):
    """p(d, y | do(c)) is a sum over the hidden node of all factors but that of c."""
    model, X, who = mixed
    model.set_params(method=method).fit(X, interventions=who)
    tables, y = model.tables_, model.parameters_["y"]
    means, deviations = np.ravel(y["means"]), np.sqrt(np.ravel(y["covariances"]))
    rows = pd.DataFrame({"c": ["yes", "no"], "d": ["on", None], "y": [3.0, 1.0]})
    found = model.score_samples(rows, interventions=["c", "c"])
    family = model.structure_.parents("y")
    for row, (c, d, value) in enumerate(zip([1, 0], [1, None], rows["y"])):
        p = np.array(tables["h"].values)
        for h in range(2):
            place = np.ravel_multi_index([{"h": h, "c": c}[name] for name in family], [2, 2])
            p[h] *= norm.pdf(value, means[place], deviations[place]) * (1.0 if d is None else tables["d"].values[h, d])
        assert found[row] == approx(np.log(p.sum()))
        assert model.predict_proba(rows, interventions=["c", "c"])[row] == approx(p / p.sum())
    assert np.abs(model.score_samples(rows) - found).max() > 0.01


def test_weights_are_repeats_in_any_order(mixed, rng):
    model, X, who = mixed
    weight = rng.integers(0, 3, len(X))
    rows = rng.permutation(np.repeat(np.arange(len(X)), weight))
    weighted = clone(model).fit(X, sample_weight=weight, interventions=who)
    repeated = clone(model).fit(X.iloc[rows], interventions=who[rows])
    assert weighted.lower_bound_ == approx(repeated.lower_bound_, abs=1e-5)
    assert weighted.n_samples_ == repeated.n_samples_
    given = {"sample_weight": weight, "interventions": who}
    assert np.isfinite(list(weighted.bootstrap(X, 2, kind="parametric", **given).errors["tables"]["d"].flat)).all()
    with pytest.raises(ValueError, match="interventions"):
        weighted.log_evidence(X, sample_weight=weight)


def test_numbers_that_were_set_are_leaves(mixed):
    """A number without children says nothing where it was set; others are refused."""
    model, X, _ = mixed
    who = np.where(np.arange(len(X)) % 3 == 0, "y", None)
    unseen = X.assign(y=X["y"].mask(who == "y"))
    assert clone(model).fit(X, interventions=who).lower_bound_ == clone(model).fit(unseen).lower_bound_
    with pytest.raises(ValueError, match="Only numbers without children can be set"):
        VBNetwork([("c", "y"), ("y", "z")]).fit(X.assign(z=X["y"] + 1.0), interventions=who)
    together = VBNetwork([("c", "both")], emission=[("both", "gaussian", ["y", "z"]), ("remainder", "auto")])
    with pytest.raises(ValueError, match="set a column of the node 'both'"):
        together.fit(X.assign(z=-X["y"]), interventions=who)
    with pytest.raises(ValueError, match="X lacks what it was set to"):
        clone(model).fit(unseen, interventions=who)


def test_searches_tell_directions_apart(mixed):
    """Two categories that depend on each other, one of which was set, beside a number."""
    _, X, _ = mixed
    r = np.random.default_rng(3)
    a = r.random(300) < 0.5
    who = np.where(np.arange(300) < 100, "a", None)
    b = np.where(r.random(300) < 0.85, a, ~a)
    X = pd.DataFrame({"a": np.where(a, "u", "v"), "b": np.where(b, "s", "t"), "y": r.normal(size=300) + b})
    space = DAGSpace(list(X), leaves=["y"], max_parents=1)
    options = {"scoring": "lower_bound", "rescoring": False, "random_state": 0}
    search = StructureSearchCV(VBNetwork(latents=None), space, **options).fit(X, interventions=who)
    assert search.edge_probabilities_["parent":"a", "child":"b"] > 0.95
    fit = clone(search.best_estimator_).fit(X, interventions=who)
    assert search.best_score_ == approx(fit.lower_bound_, abs=1e-6)
    assert search.intervention_targets_ == ((), ("a",))


def test_numbers_follow_what_their_parents_were_set_to(mixed):
    """Nothing hidden: the bound without the table of c, and with that of the rows in which c was observed."""
    _, X, who = mixed
    model = VBNetwork([("c", "y")], latents=None, prior=1.0)
    seen, told = clone(model).fit(X[["c", "y"]]), clone(model).fit(X[["c", "y"]], interventions=who)

    def log_evidence(rows):
        no, yes = (rows["c"] == "no").sum(), (rows["c"] == "yes").sum()
        return gammaln(no + 1) + gammaln(yes + 1) - gammaln(no + yes + 2)

    expected = log_evidence(X[pd.isna(who)]) - log_evidence(X)
    assert told.lower_bound_ - seen.lower_bound_ == approx(expected, abs=1e-6)
    assert told.n_samples_ == len(X)
