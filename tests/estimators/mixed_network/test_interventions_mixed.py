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


def test_numbers_without_children_say_nothing_where_they_were_set(mixed):
    model, X, _ = mixed
    who = np.where(np.arange(len(X)) % 3 == 0, "y", None)
    unseen = X.assign(y=X["y"].mask(who == "y"))
    assert clone(model).fit(X, interventions=who).lower_bound_ == clone(model).fit(unseen).lower_bound_
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


@pytest.fixture
def chain(rng):
    """w -> x -> y -> z, whose x was set in some rows, far from what w says of it."""
    n = 120
    is_set = rng.random(n) < 0.4
    w = rng.normal(size=n)
    x = np.where(is_set, 5 * rng.normal(size=n), 2 * w + rng.normal(size=n))
    y = 1.0 + x + rng.normal(size=n)
    X = pd.DataFrame({"w": 10 * w + 4, "x": 100 * x, "y": y, "z": y - 3 + rng.normal(size=n)})
    return VBNetwork([("w", "x"), ("x", "y"), ("y", "z")]), X, np.where(is_set, "x", None)


def test_children_see_numbers_that_were_set_and_parents_do_not(chain):
    """Least squares: of y on x over all rows, of x on w over those in which x was not set."""
    model, X, who = chain
    fit = model.set_params(method="ml").fit(X, interventions=who)
    unset = X[[each is None for each in who]]
    for child, parent, rows in (("x", "w", unset), ("y", "x", X), ("z", "y", X)):
        slope, constant = np.polyfit(rows[parent], rows[child], 1)
        of = fit.parameters_[child]
        assert of["coefficients"].item() == approx(slope, rel=1e-6)
        assert of["intercepts"].item() == approx(constant, rel=1e-5, abs=1e-6 * rows[child].std())
        rest = rows[child] - constant - slope * rows[parent]
        assert of["variances"].item() == approx((rest**2).mean(), rel=1e-6)


def test_bounds_are_those_of_their_families(chain):
    """Nothing hidden: the bound of all rows is that of unset ones, and what y and z add in the others."""
    model, X, who = chain
    told = clone(model).fit(X, interventions=who)
    without = clone(model).fit(X[["w", "x", "y", "z"]].assign(x=X["x"].mask(who == "x")))
    assert told.n_samples_ == without.n_samples_ == len(X)
    assert abs(told.lower_bound_ - clone(model).fit(X).lower_bound_) > 1
    alone = clone(model).set_params(structure=[("x", "y")]).fit(X[["x", "y"]], interventions=who)
    together = clone(model).set_params(structure=[("x", "y"), ("w", "z")]).fit(X, interventions=who)
    beside = clone(model).set_params(structure=[("w", "z")]).fit(X[["w", "z"]])
    assert together.lower_bound_ == approx(alone.lower_bound_ + beside.lower_bound_, abs=1e-5)


@pytest.mark.parametrize("method", ["vb", "ml"])
def test_rows_of_numbers_that_were_set_count_as_weights_say(chain, rng, method):
    model, X, who = chain
    X = X.mask(rng.random(X.shape) < 0.1)
    X.loc[who == "x", "x"] = X.loc[who == "x", "x"].fillna(50.0)
    model.set_params(method=method, random_state=0)
    weight = rng.integers(0, 3, len(X))
    rows = rng.permutation(np.repeat(np.arange(len(X)), weight))
    weighted = clone(model).fit(X, sample_weight=weight, interventions=who)
    repeated = clone(model).fit(X.iloc[rows], interventions=who[rows])
    scores = weighted.score_samples(X, interventions=who), repeated.score_samples(X, interventions=who)
    assert scores[0] == approx(scores[1], abs=1e-3)
    assert np.abs(weighted.score_samples(X) - scores[0]).max() > 0.1
    columns = ["z", "x", "w", "y"]
    other = clone(model).fit(X[columns], sample_weight=weight, interventions=who)
    if method == "ml":
        assert other.score_samples(X[columns], interventions=who) == approx(scores[0], abs=1e-3)
    else:  # whose densities of rows with gaps are averages over draws
        assert weighted.lower_bound_ == approx(repeated.lower_bound_, abs=1e-4)
        assert other.lower_bound_ == approx(weighted.lower_bound_, abs=1e-4)
        with pytest.raises(ValueError, match="interventions"):
            weighted.log_evidence(X, sample_weight=weight)
        given = {"sample_weight": weight, "interventions": who}
        assert np.isfinite(weighted.log_evidence(X, kind="importance", **given).value)
        drawn = weighted.bootstrap(X, 2, kind="parametric", **given)
        assert np.isfinite(drawn.errors["y"]["coefficients"]).all()


def test_numbers_that_were_always_set(chain):
    """The coefficients of a child are those of a fit without interventions; nothing is learned of the node."""
    _, X, _ = chain
    model = VBNetwork([("x", "y")])
    always = model.fit(X[["x", "y"]], interventions=np.full(len(X), "x"))
    seen = clone(model).fit(X[["x", "y"]])
    of_always, of_seen = (each.parameters_["y"]["coefficients"].item() for each in (always, seen))
    assert of_always == approx(of_seen, rel=0.02)


def test_rows_drawn_anew_keep_what_was_set(chain):
    model, X, who = chain
    fit = model.fit(X, interventions=who)
    reading = fit._kind.read(fit, X, None, fit.fitted.columns, {"interventions": who})
    drawn = fit.fitted.drawn_for(reading, fit.fitted.model, fit.fitted.point, np.random.default_rng(0))
    x, y = (of[:, 0] for group, of in zip(fit.fitted.groups.groups, drawn) if group.name in "xy")
    assert (x[who == "x"] == X["x"][who == "x"]).all()
    assert not (x[who != "x"] == X["x"][who != "x"]).any()
    assert np.corrcoef(x[who == "x"], y[who == "x"])[0, 1] > 0.9


def test_searches_tell_directions_of_numbers_apart():
    r = np.random.default_rng(0)
    is_set = np.arange(200) < 80
    x = np.where(is_set, 3 * r.normal(size=200), r.normal(size=200))
    X = pd.DataFrame({"x": x, "y": x + r.normal(size=200)})
    options = {"scoring": "lower_bound", "rescoring": False, "random_state": 0}
    search = StructureSearchCV(VBNetwork(), DAGSpace(["x", "y"]), **options).fit(
        X, interventions=np.where(is_set, "x", None)
    )
    assert search.edge_probabilities_["parent":"x", "child":"y"] > 0.95
    assert search.intervention_targets_ == ((), ("x",))
    assert str(search.equivalence_classes()[0].graph) == "x -> y"
    with pytest.raises(ValueError, match="Search with averaging=True"):
        search.effect("x", "y")


def test_rows_differ_by_what_they_were_set_to(chain):
    model, X, _ = chain
    X = pd.concat([X[:40], X[:1]], ignore_index=True)
    who = np.where(np.arange(41) % 40 == 0, "x", None)  # the first row and the last, which are the same
    other = X.assign(x=np.where(np.arange(41) == 40, X["x"] + 100.0, X["x"]))
    fit = model.fit(X, interventions=who)
    n_distinct = []
    for table in (X, other):
        reading = fit._kind.read(fit, table, None, fit.fitted.columns, {"interventions": who})
        n_distinct.append(len(fit.fitted.rows(reading.values, reading.values_set).distinct()))
    assert n_distinct == [40, 41]
    with pytest.raises(ValueError, match="belong to the data of its fit"):
        fit.log_evidence(other, interventions=who)
