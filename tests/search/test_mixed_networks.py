"""Searches over structures and numbers of states of networks of categories, measurements and counts."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from search.test_auto import parts_of
from sklearn.base import clone

from skvbem import DAG, BipartiteSpace, CardinalityGrid, DAGSpace, StructureSearchCV, VBDiscreteDAG, VBNetwork
from skvbem.emissions import Regression
from skvbem.errors import SearchWarning, StructureError
from skvbem.fitting.kind import kind_of
from skvbem.search.strategies import Auto, Exact, Greedy
from skvbem.search.strategies.exact import posterior_over_space

approx = pytest.approx
COLUMNS = ["size", "visits", "color"]
NUMBERS = COLUMNS[:2]
MODEL = VBNetwork(
    emission={"gaussian": ["size"], "poisson": ["visits"], "categorical": ["color"]},
    init="random",
    n_init=2,
    tol=1e-3,
    random_state=0,
)


@pytest.fixture(scope="module")
def rows():
    """A measurement and a count below one hidden node of two states, and a category of which nothing is hidden."""
    rng = np.random.default_rng(5)
    kind, n = rng.integers(0, 2, 80), 80
    X = pd.DataFrame(
        {
            "size": rng.normal(6.0 * kind, 1.0),
            "visits": rng.poisson(np.where(kind, 9.0, 1.0)).astype(float),
            "color": rng.choice(["red", "blue"], n),
        }
    )
    return X.mask(rng.random(X.shape) < 0.05)


def test_structures_have_a_posterior(rows):
    """Evidences of the front, edges, and what is hidden behind columns; the best is the one that made the data."""
    space = BipartiteSpace({"h0": 2, "h1": 2}, COLUMNS, max_parents=1)
    search = StructureSearchCV(MODEL, space, random_state=0).fit(rows)
    results = search.cv_results_
    assert len(results["params"]) == len(space)
    alone = clone(MODEL).set_params(**search.best_params_).fit(rows)
    assert results["mean_test_score"][search.best_index_] == approx(alone.lower_bound_, rel=1e-12)
    assert results["n_free_parameters"][search.best_index_] == alone.n_free_parameters_
    assert results["mean_test_evidence"][search.best_index_] > alone.lower_bound_
    weights, settings = search.structure_posterior_, results["params"]
    assert weights.sum() == approx(1.0)
    shared = sum(w for w, s in zip(weights, settings) if len({s["structure"].parents(c) for c in NUMBERS}) == 1
                 and s["structure"].parents("size"))  # fmt: skip
    assert search.shared_parent_probabilities_["node":"size", "other":"visits"] == approx(shared, abs=1e-9)
    assert shared > 0.99
    (cause,) = search.best_structure_.parents("size")
    assert search.edge_probabilities_["parent":cause, "child":"visits"] > 0.99
    assert search.edge_probabilities_["parent":cause, "child":"color"] < 0.5
    assert search.predict_proba(rows)[0].shape == (80, 2)


@pytest.mark.parametrize("strategy", ["greedy", "mc3"])
def test_moves_never_make_numbers_parents(rows, strategy):
    space = DAGSpace(COLUMNS, {"h": 2}, max_parents=2, leaves=NUMBERS)
    options = {"scoring": "lower_bound", "max_candidates": 20, "refit": False, "random_state": 0}
    search = StructureSearchCV(MODEL, space, strategy=strategy, **options).fit(rows)
    tried = [setting["structure"] for setting in search.cv_results_["params"]]
    assert len(tried) == 20
    assert not any(dag.children(node) for dag in tried for node in NUMBERS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_numbers_of_states_are_found(rows):
    structure = {"size": ["h0"], "visits": ["h0"]}
    search = StructureSearchCV(MODEL, CardinalityGrid({"h0": [1, 2, 3]}, structure), scoring="lower_bound", n_jobs=1)
    assert search.set_params(rescoring=False).fit(rows).best_params_["latents"] == {"h0": 2}


def test_scores_that_search_knows_by_families_are_left_to_fits(rows):
    """Nothing is hidden: a bound is a fit's, though a search sums up those of tables."""
    whole = rows.dropna()
    space = DAGSpace(COLUMNS, leaves=NUMBERS, max_parents=1)
    search = StructureSearchCV(MODEL, space, scoring="lower_bound", rescoring=False, random_state=0).fit(whole)
    assert len(search.cv_results_["params"]) == 4
    for score, setting in zip(search.cv_results_["mean_test_score"], search.cv_results_["params"]):
        model = clone(search.best_estimator_).set_params(**setting)
        assert score == approx(model.fit(whole).lower_bound_, rel=1e-12)


OF_EVERY_KIND = {
    "emission": [
        ("color", "categorical", ["color"]),
        ("size", "gaussian", ["size"]),
        ("weight", "gaussian", ["weight"]),
        ("pair", "gaussian", ["left", "right"]),
        ("tail", "student_t", ["tail"]),
        ("visits", "poisson", ["visits"]),
        ("answer", "ordinal", ["answer"]),
    ]
}


def columns_of_every_kind(n, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 5))
    X = pd.DataFrame(numbers, columns=["size", "weight", "left", "right", "tail"])
    visits, answer = rng.poisson(3.0, n).astype(float), rng.integers(0, 3, n).astype(float)
    return X.assign(color=rng.choice(["red", "blue"], n), visits=visits, answer=answer)


@pytest.mark.parametrize("names", [["color", "size", "weight", "visits"], ["color", "pair", "tail", "answer"]], ids=str)
def test_the_graphs_of_a_search_are_those_that_have_a_fit(names):
    """Without numbers all graphs are tried: the others fail, whatever the columns hold."""
    X = columns_of_every_kind(20)
    emission = [item for item in OF_EVERY_KIND["emission"] if item[0] in names]
    model = VBNetwork(emission=emission, n_init=1, max_iter=2, random_state=0)
    X = X[[column for _, _, columns in emission for column in columns]]
    options = {"scoring": "lower_bound", "rescoring": False, "refit": False, "strategy": "exhaustive"}
    with pytest.warns(SearchWarning, match="of 125 candidates failed"):
        every = StructureSearchCV(model, DAGSpace(names, max_parents=1, numbers=()), **options).fit(X)
    results = every.cv_results_
    fitted = [s["structure"] for s, score in zip(results["params"], results["mean_test_score"]) if np.isfinite(score)]
    space = DAGSpace(names, max_parents=1)
    search = StructureSearchCV(model, space, **options).fit(X)
    assert space.numbers is None
    assert search.space_.numbers == tuple(name for name in names if name != "color")
    assert {setting["structure"] for setting in search.space_} == set(fitted)
    assert {setting["structure"] for setting in search.cv_results_["params"]} == set(fitted)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ == approx(every.best_score_)


NAMES = ["kind", "size", "weight"]


def conditional_gaussian(n, seed=0):
    """A category above a measurement, which a second one depends on."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    size = rng.normal(2.0 * kind, 1.0)
    weight = rng.normal(0.5 * size, 1.0)
    return pd.DataFrame({"kind": np.array(["a", "b"])[kind], "size": size, "weight": weight})


KNOWN = Regression(coefficient_precision_prior=0.5, degrees_of_freedom_prior=3.0, variance_prior=1.0)
AS_LEARNED = VBNetwork(n_init=1, tol=1e-10)
OF_NODES = [("categorical", "categorical", ["kind"]), ("size", KNOWN, ["size"]), ("weight", KNOWN, ["weight"])]
AS_GIVEN = VBNetwork(emission=OF_NODES, n_init=1)
UPWARD = [(number, "kind") for number in ("size", "weight")]


def searched(model, X, strategy, **rules):
    options = {"rescoring": False, "refit": False, "random_state": 0}
    return StructureSearchCV(model, DAGSpace(X.columns, **rules), strategy=strategy, **options).fit(X)


@pytest.mark.parametrize("model", [AS_LEARNED, AS_GIVEN], ids=["learned", "given"])
def test_the_best_of_all_graphs_of_mixed_columns(model):
    """The dynamic program over families that were fitted finds what trying every graph finds."""
    X = conditional_gaussian(60)
    with pytest.warns(SearchWarning, match="13 of 25 candidates failed"):  # those with numbers above the category
        every = searched(model, X, "exhaustive", numbers=())
    exact = searched(model, X, "exact")
    assert exact.best_structure_ == every.best_structure_
    assert exact.best_structure_.parents("weight") == ("size",)
    assert exact.best_score_ == approx(every.best_score_, abs=1e-6)
    assert np.isfinite(exact.cv_results_["mean_test_score"]).all()


def test_scores_of_mixed_graphs_are_sums_over_fitted_families():
    X = conditional_gaussian(60)
    space = DAGSpace(X.columns, forbidden=UPWARD)
    for model, kind in [(AS_LEARNED, "lower_bound"), (AS_GIVEN, "lower_bound"), (AS_GIVEN, "bic")]:
        job, ranking, _ = parts_of(space, X, model, scoring=kind)
        families = job.family_scores(next(iter(space)), ranking)
        assert families.are_evidences is (model is AS_GIVEN)
        place = families.place
        for setting in space:
            dag = setting["structure"]
            above = {v: sum(1 << place[parent] for parent in dag.parents(v)) for v in dag.nodes}
            total = families.constant + sum(families.score(place[v], above[v]) for v in dag.nodes)
            assert total == approx(job.record(setting).values[ranking], abs=1e-6)


def test_probabilities_of_edges_over_all_graphs_of_mixed_columns():
    """Known priors: the sum over graphs by dynamic programming is that of the posterior of all, one by one."""
    X = conditional_gaussian(25)
    every, exact = (searched(AS_GIVEN, X, strategy, forbidden=UPWARD) for strategy in ("exhaustive", "exact"))
    values = every.cv_results_["mean_test_score"] + every.cv_results_["log_prior"]
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    graphs = [setting["structure"] for setting in every.cv_results_["params"]]
    for parent, child in permutations(NAMES, 2):
        wanted = weights @ [parent in dag.parents(child) for dag in graphs]
        for search in (every, exact):
            assert search.edge_probabilities_["parent":parent, "child":child] == approx(wanted, abs=1e-8)
    assert 0.01 < exact.edge_probabilities_["parent":"kind", "child":"weight"] < 0.99


def test_bounds_of_mixed_graphs_give_no_posterior_over_all():
    X = conditional_gaussian(25)
    space = DAGSpace(X.columns)
    for model in (AS_LEARNED, AS_GIVEN):
        posterior = posterior_over_space(space, *parts_of(space, X, model))
        assert (posterior is None) is (model is AS_LEARNED)


def test_searches_of_mixed_columns_take_the_best_of_all_graphs_by_themselves():
    X = conditional_gaussian(30)
    X = X.assign(**{name: X["size"] * k for k, name in enumerate(["one", "two", "three"], 2)})
    space, gaps = DAGSpace(X.columns), X.mask(np.eye(*X.shape) > 0)
    assert type(Auto().chosen_for(space, *parts_of(space, X, AS_LEARNED))) is Exact
    assert type(Auto().chosen_for(space, *parts_of(space, gaps, AS_LEARNED))) is Greedy


def waste_incinerator(n, seed=0):
    """Rows of the network of Lauritzen (1992), with the parameters published there."""
    rng = np.random.default_rng(seed)
    stable, intact, industrial = rng.random(n) < 0.85, rng.random(n) < 0.95, rng.random(n) < 2 / 7
    efficiency = np.where(intact, np.where(industrial, -3.9, -3.2), np.where(industrial, -0.4, -0.5))
    efficiency += np.sqrt(np.where(intact, 2e-5, 1e-4)) * rng.standard_normal(n)
    dust = efficiency + np.where(stable, 6.0, 7.0) + 0.5 * industrial
    dust += np.sqrt(np.where(stable, np.where(industrial, 0.03, 0.04), 0.1)) * rng.standard_normal(n)
    metal_in = np.where(industrial, 0.5, -0.5) + np.sqrt(np.where(industrial, 0.01, 0.005)) * rng.standard_normal(n)
    return pd.DataFrame(
        {
            "burning": np.where(stable, "stable", "unstable"),
            "filter": np.where(intact, "intact", "defect"),
            "waste": np.where(industrial, "industrial", "household"),
            "efficiency": efficiency,
            "dust": dust,
            "co2": np.where(stable, -2.0, -1.0) + np.sqrt(np.where(stable, 0.1, 0.3)) * rng.standard_normal(n),
            "light": 3.0 - 0.5 * dust + 0.5 * rng.standard_normal(n),
            "metal_in": metal_in,
            "metal_out": dust + metal_in + np.sqrt(0.002) * rng.standard_normal(n),
        }
    )


WASTE = {
    "efficiency": ["filter", "waste"],
    "dust": ["burning", "waste", "efficiency"],
    "co2": ["burning"],
    "light": ["dust"],
    "metal_in": ["waste"],
    "metal_out": ["dust", "metal_in"],
}


WAYS = [("exact", 0.0), ("greedy", 0.0), ("mc3", 0.0), ("greedy", 0.1), ("mc3", 0.1)]


@pytest.mark.parametrize(("strategy", "missing"), WAYS)
def test_no_family_is_fitted_that_there_cannot_be(monkeypatch, strategy, missing):
    """Small graphs of families and whole ones: no model has a number above the category."""
    X = conditional_gaussian(60)
    X = X.mask(np.random.default_rng(1).random(X.shape) < missing)
    kind, graphs = type(kind_of(AS_LEARNED)), []
    made = kind.model

    def noted(self, estimator, reading):
        graphs.append(self.graph(estimator, reading)[0])
        return made(self, estimator, reading)

    monkeypatch.setattr(kind, "model", noted)
    search = searched(AS_LEARNED, X, strategy)
    assert len(graphs) > 5
    assert not [dag for dag in graphs if dag.parents("kind")]
    assert search.space_.numbers == ("size", "weight")
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_classes_have_arrows_from_categories_to_numbers():
    """Of the 25 graphs 12 have fits; they fall into 10 classes, each with the arrows that its members share."""
    search = searched(AS_GIVEN, conditional_gaussian(10), "exhaustive")
    classes = search.equivalence_classes()
    assert len(search.cv_results_["params"]) == 12
    assert len(classes) == 10
    for each in classes:
        graphs = [search.cv_results_["params"][k]["structure"] for k in each.candidates]
        assert set(each.graph.arrows) == set.intersection(*(set(dag.edges) for dag in graphs))
        assert {dag.essential(numbers=["size", "weight"]) for dag in graphs} == {each.graph}


def test_rows_held_out_are_for_graphs_that_have_fits():
    X = conditional_gaussian(40)
    search = StructureSearchCV(AS_LEARNED, DAGSpace(X.columns, max_parents=1), cv=2, refit=False).fit(X)
    assert search.space_.numbers == ("size", "weight")
    assert len(search.cv_results_["params"]) == len(search.space_) < len(DAGSpace(X.columns, max_parents=1))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_numbers_that_a_user_names_stay_and_parts_of_spaces_get_theirs():
    X = conditional_gaussian(40)
    options = {"strategy": "exhaustive", "scoring": "lower_bound", "refit": False, "random_state": 0}
    one = DAGSpace(X.columns, max_parents=1)

    def searched_space(space, model=AS_LEARNED, X=X):
        return StructureSearchCV(model, space, **options).fit(X).space_

    apart, of_one = (
        DAGSpace(X.columns, max_parents=0, numbers=["size"]),
        DAGSpace(X.columns, numbers=["size", "weight"]),
    )
    assert searched_space(apart) is apart
    product = searched_space(one * {"prior": [0.5, 1.0]})
    assert [repr(part) for part in product.parts[:1]] == [repr(replace(of_one, max_parents=1))]
    assert len(product) == 2 * len(searched_space(one))
    union = searched_space(apart + one)
    assert [part.numbers for part in union.parts] == [("size",), ("size", "weight")]
    categories = X.assign(size=X["size"] > 0.0, weight=X["weight"] > 0.0)
    assert searched_space(one, VBDiscreteDAG(n_init=1), categories) is one
    assert searched_space([DAG(X.columns, {})], AS_LEARNED).n_settings == 1


def test_numbers_that_were_set_may_have_children():
    X = conditional_gaussian(40)
    who = np.where(np.arange(40) < 10, "size", None)
    options = {"strategy": "exhaustive", "scoring": "lower_bound", "refit": False, "random_state": 0}
    search = StructureSearchCV(AS_LEARNED, DAGSpace(X.columns), **options).fit(X, interventions=who)
    assert search.space_.leaves == ()
    assert search.intervention_targets_ == ((), ("size",))
    untold = StructureSearchCV(AS_LEARNED, DAGSpace(X.columns), **options).fit(X)
    assert len(search.cv_results_["params"]) == len(untold.cv_results_["params"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_required_edges_that_there_cannot_be_are_named():
    X = conditional_gaussian(40)
    with pytest.raises(
        StructureError, match=r"required edge size -> kind runs from a number to a node that holds none"
    ):
        searched(AS_LEARNED, X, "exhaustive", required=[("size", "kind")])
    counts = VBNetwork(emission={"gaussian": ["size"], "poisson": ["visits"]}, n_init=1)
    X = pd.DataFrame({"size": X["size"], "visits": np.arange(40.0)})
    with pytest.raises(ValueError, match=r"Node 'size' holds numbers, and is a parent of 'visits'"):
        searched(counts, X, "exhaustive", required=[("size", "visits")])


def test_climbs_from_graphs_near_the_best_make_no_number_the_parent_of_a_category():
    X = conditional_gaussian(200)
    greedy, exact = (searched(AS_LEARNED, X, strategy) for strategy in ("greedy", "exact"))
    assert greedy.best_score_ == approx(exact.best_score_, abs=1e-6)
    assert np.isfinite(greedy.cv_results_["mean_test_score"]).all()


@pytest.mark.slow
def test_a_published_conditional_gaussian_network_is_recovered():
    """Every edge of the waste incinerator, and no other, from 1 000 rows; the moments are those published."""
    X = waste_incinerator(1000)
    published = {"efficiency": -3.25, "dust": 3.04, "co2": -1.85, "light": 1.48, "metal_in": -0.214, "metal_out": 2.83}
    for column, mean in published.items():
        assert abs(X[column].mean() - mean) < 4 * X[column].std() / np.sqrt(1000)
    search = searched(VBNetwork(n_init=1), X, "exact", max_parents=3)
    assert search.best_structure_ == DAG(X.columns, WASTE)
