"""Scores that are sums over families: against definitions, against fits, and climbs by differences move by move."""

import itertools
import pickle
from collections import deque
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from search.test_strategies_exact import PRIORS, family_score, random_data

from skvbem import DAGSpace, GridSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.errors import TooLargeError
from skvbem.evidence import SCORES, scorer
from skvbem.graphs.dag import DAG
from skvbem.models.network.completed_rows import CompletedRows
from skvbem.search.execution.jobs import EvidenceJob
from skvbem.search.execution.readings import Readings
from skvbem.search.execution.runner import Runner
from skvbem.search.families.family_scores import FamilyScores, MaximizedLikelihood
from skvbem.search.families.graph_walk import EdgeLogOdds, FamilyGraphs
from skvbem.search.families.orders import NodeOrders
from skvbem.search.strategies import Exact, Greedy, Problem, StructuralVBEM
from skvbem.search.strategies.objectives import FamilyObjective, TriedObjective, climb_anew
from skvbem.search.strategies.starts import random_setting
from skvbem.spaces.moves import edge_moves
from skvbem.spaces.priors import ClassPrior, EdgePrior, UniformPrior, coerce_prior
from skvbem.spaces.rules import make_rules

approx = pytest.approx
NODES = ["a", "b", "c", "d", "e"]


class Equal:
    """A prior of families that is equal in all cells of a table."""

    def __init__(self, concentration):
        self.concentration = concentration

    def equal_concentration(self, node):
        return self.concentration


class Spelled(Equal):
    """The same, given table by table."""

    def equal_concentration(self, node):
        return None

    def family_prior(self, family, cardinalities):
        return self.concentration.table([cardinalities[member] for member in family])


def completed(data):
    sizes = dict(zip(data.nodes, data.cardinalities.tolist()))
    return CompletedRows(sizes, data.codes, np.arange(data.codes.shape[1]), data.weight, data.weight)


def masks_of(k, n):
    return (mask for mask in range(1 << n) if not mask >> k & 1)


@pytest.mark.parametrize("prior", [*PRIORS, "likelihood"])
@pytest.mark.parametrize("n_rows", [3, 60, 5000])
@pytest.mark.parametrize("fraction", [0.0, 0.25])
def test_every_family_by_its_definition(prior, n_rows, fraction, rng):
    """However few rows there are for the cells of its table, whichever of its parents is added last, by bits or not."""
    data = random_data(rng, 4, n_rows, priors=PRIORS.get(prior), per_parameter=0.0)
    if prior == "likelihood":
        data = random_data(rng, 4, n_rows, priors=type(PRIORS["bdeu"])(0.0, "cell"), per_parameter=1.3)
    data = replace(data, weight=rng.integers(1, 40, size=n_rows) + fraction)
    of = MaximizedLikelihood() if prior == "likelihood" else Equal(PRIORS[prior])
    scores = FamilyScores(completed(data), of, per_parameter=data.per_parameter)
    for k, node in enumerate(data.nodes):
        for mask in masks_of(k, 4):
            parents = [other for place, other in enumerate(data.nodes) if mask >> place & 1]
            expected = family_score(data, node, parents)
            assert scores.family(node, parents) == approx(expected, rel=1e-11, abs=1e-9)
            further = [more for more in range(4) if more != k and not mask >> more & 1]
            fresh = FamilyScores(scores.completed, of, per_parameter=data.per_parameter)
            for more, value in zip(further, fresh.grown(k, mask, further)):
                assert value == approx(family_score(data, node, [*parents, data.nodes[more]]), rel=1e-11, abs=1e-9)


def test_tables_given_cell_by_cell(rng):
    data = random_data(rng, 4)
    one, other = (FamilyScores(completed(data), kind(PRIORS["per_row"])) for kind in (Equal, Spelled))
    for k in range(4):
        for mask in masks_of(k, 4):
            assert one.score(k, mask) == approx(other.score(k, mask), rel=1e-12)


@pytest.mark.parametrize("is_whole", [True, False])
def test_columns_of_many_states(is_whole, rng):
    """Tables of more cells than there are rows, codes that need more than a byte, and tables that are too large."""
    sizes = {"x": 300, "y": 5, "z": 200, "w": 1}
    codes = np.stack([rng.integers(0, size, 40) for size in sizes.values()]).astype(np.int16)
    weight = rng.integers(1, 9, 40).astype(float) if is_whole else rng.random(40)
    rows = CompletedRows(sizes, codes, np.arange(40), weight, weight)
    one, other = (FamilyScores(rows, kind(PRIORS["bdeu"]), max_table_cells=1e5) for kind in (Equal, Spelled))
    for k in range(4):
        for mask in masks_of(k, 4):
            too_large = np.prod([size for j, size in enumerate(sizes.values()) if j == k or mask >> j & 1]) > 1e5
            assert (one.score(k, mask) == -np.inf) == too_large
            assert one.score(k, mask) == approx(other.score(k, mask), rel=1e-12)


def walk(data, rules, odds=None):
    return FamilyGraphs(FamilyScores(completed(data), Equal(PRIORS["number"])), odds or EdgeLogOdds(rules, {}))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_parents": 2},
        {"required": [("x3", "x0")], "forbidden": [("x1", "x2")]},
        {"tiers": [["x2"], ["x0", "x3"], ["x1"]]},
        {"allowed": [("x0", "x1"), ("x1", "x0"), ("x2", "x1"), ("x3", "x2"), ("x0", "x3")]},
    ],
    ids=str,
)
def test_moves_of_edges_are_those_of_the_space_in_its_order(options, rng):
    """And each adds what the two graphs' scores differ by, with the log odds of edges."""
    data = random_data(rng, 4, priors=PRIORS["number"])
    space = DAGSpace(data.nodes, **options)
    log_odds = {pair: float(rng.normal()) for pair in itertools.permutations(data.nodes, 2)}
    graphs = walk(data, space.rules, EdgeLogOdds(space.rules, log_odds))

    def value(dag):
        families = sum(family_score(data, node, dag.parents(node)) for node in dag.nodes)
        return families + sum(log_odds[edge] for edge in dag.edges)

    for setting in space.to_list()[:: max(1, len(space) // 25)]:
        graph = graphs.at(setting["structure"])
        assert graph.value == approx(value(setting["structure"]), rel=1e-12)
        around = [dag for _, dag in edge_moves(setting["structure"], space.rules)]
        assert [graphs.dag(graph.after(k)) for k in range(len(graph.gains))] == around
        for dag, gain in zip(around, graph.gains):
            assert graph.value + gain == approx(value(dag), rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"max_parents": 2}, {"required": [("x3", "x0")], "forbidden": [("x1", "x2")]}])
def test_perturbed_graphs_are_of_the_class_of_what_is_left_and_obey_the_rules(options, rng):
    """Without edges left out every graph of an equivalence class is drawn, and no other."""
    data = random_data(rng, 4, priors=PRIORS["number"])
    space = DAGSpace(data.nodes, **options)
    graphs = walk(data, space.rules)
    every = [setting["structure"] for setting in space]
    for dag in every[:: len(every) // 12]:
        parents = graphs.at(dag).parents
        drawn = {graphs.dag(graphs.perturbed(parents, 0.0, rng)) for _ in range(150)}
        of_class = {other for other in every if other.essential() == dag.essential()}
        assert drawn <= of_class
        if not options:
            assert drawn == of_class
        fewer = [graphs.dag(graphs.perturbed(parents, 0.5, rng)) for _ in range(20)]
        assert set(fewer) <= set(every)
        assert min(len(other.edges) for other in fewer) < max(len(dag.edges), 1) or options.get("required")


# Searches -------------------------------------------------------------------------------------------------------------


def frame(rng, n_rows=120, n_columns=5):
    """Columns of two and three states that depend on some before them."""
    table = np.zeros((n_rows, n_columns), dtype=int)
    for k in range(n_columns):
        causes = table[:, [j for j in range(k) if rng.random() < 0.6]].sum(axis=1)
        noise = rng.integers(0, 3, n_rows)
        table[:, k] = np.where(rng.random(n_rows) < 0.6, causes, noise) % (2 + k % 2)
    return pd.DataFrame(table, columns=NODES[:n_columns])


def problem_of(X, space=None, *, scoring="lower_bound", over_graphs=None, **options):
    estimator = VBDiscreteDAG(n_init=1, random_state=0, **options)
    score = scorer(scoring) if isinstance(scoring, str) else scoring
    job = EvidenceJob(estimator, Readings(estimator, X, {}, frozenset()), {"score": score}, np.nan)
    space = DAGSpace(X.columns, max_parents=2) if space is None else space
    return Problem(space, Runner(job), "score", coerce_prior(over_graphs), job, np.random.default_rng(0))


def visited(objective, start, n_tabu):
    """Graphs that a climb goes to, in order, with their values."""
    path, best_near = [], objective.best_near

    def noting(*args):
        near = best_near(*args)
        path.extend([] if near is None else [(near.setting["structure"], near.value)])
        return near

    objective.best_near = noting
    objective.climb(objective.at(start), n_tabu)
    return path


@pytest.mark.parametrize(
    ("options", "scoring", "prior"),
    [
        ({}, "lower_bound", None),
        ({"prior": "bdeu", "equivalent_sample_size": 3}, "lower_bound", EdgePrior(0.2)),
        ({"prior": {"a": "per_row", "b": 0.3}}, "collapsed_ascent", EdgePrior({("a", "b"): 0.0}, default=0.4)),
        ({}, "bic", None),
    ],
    ids=["number", "bdeu", "mixed", "bic"],
)
def test_a_climb_by_families_is_the_climb_by_fits_move_by_move(options, scoring, prior, rng):
    """Also where scores are equal but for rounding: of equal moves the last is made."""
    X = frame(rng)
    by_fits, by_families = (problem_of(X, scoring=scoring, over_graphs=prior, **options) for _ in range(2))
    by_fits.job.__dict__["summed"] = lambda setting: None
    start = random_setting(by_fits.space, rng)
    one = visited(TriedObjective(by_fits), start, 6)
    other = visited(FamilyObjective.of(by_families), start, 6)
    assert len(one) > 6
    assert [dag for dag, _ in one] == [dag for dag, _ in other]
    assert [value for _, value in one] == approx([value for _, value in other], rel=1e-10)


def test_restarts_by_families_end_where_those_by_fits_do(rng):
    X = frame(rng)
    for search in (
        lambda objective: climb_anew(objective, "emptiest", 2, 3, 4),
        lambda objective: climb_anew(objective, "random", 0, 1, 4),
    ):
        by_fits, by_families = problem_of(X), problem_of(X)
        search(TriedObjective(by_fits))
        search(FamilyObjective.of(by_families))
        assert best_of(by_fits) == approx(best_of(by_families), rel=1e-12)
    by_fits, by_families = problem_of(X), problem_of(X)
    by_fits.job.__dict__["family_scores"] = by_fits.job.__class__.__mro__[1].family_scores.__get__(by_fits.job)
    for problem in (by_fits, by_families):
        Greedy(n_restarts=4, n_kicks=6).search(problem)
    assert len(by_fits.runner.tried) > 100 >= len(by_families.runner.tried) - 1
    assert best_of(by_fits) == approx(best_of(by_families), rel=1e-12)
    every = {str(s["structure"]): r.values["score"] for s, r in by_fits.runner.tried}
    for setting, record in by_families.runner.tried:
        if str(setting["structure"]) in every:
            assert record.values["score"] == approx(every[str(setting["structure"])], rel=1e-12)


def best_of(problem):
    return max(record.values["score"] for _, record in problem.runner.tried)


@pytest.mark.parametrize("kind", [name for name, score in SCORES.items() if score.exact_if_complete] + ["bic"])
def test_what_is_known_of_a_candidate_without_a_fit(kind, rng):
    """The same as with one."""
    problem = problem_of(frame(rng, 40, 4), scoring=kind)
    for setting in (random_setting(problem.space, rng) for _ in range(3)):
        known, measured = problem.job.summed(setting), problem.job.measured(setting)
        assert known.values["score"] == approx(measured.values["score"], abs=1e-8)
        assert known.n_free_parameters == measured.n_free_parameters
        assert known.errors.keys() == measured.errors.keys()
        assert known.doubts == measured.doubts == ()


def test_candidates_that_are_fitted_all_the_same(rng):
    """What a fit would refuse or decide, families do not know."""
    X, setting = frame(rng, 40, 3), {"structure": "[a][b|a][c|b]"}
    space = DAGSpace(X.columns)
    gone = X.astype(float)
    gone.iloc[0, 0] = np.nan
    for problem in (
        problem_of(gone, space),
        problem_of(X, space, scoring="laplace"),
        problem_of(X, space, scoring=scorer("collapsed", n_draws=5)),
        problem_of(X, space, learn_prior=True),
        problem_of(X, space, method="map"),
        problem_of(X, space, latents=2),
        problem_of(X, space, max_table_cells=3),
        problem_of(X, space, prior={"b": [1.0, 2.0, 3.0]}),
    ):
        try:
            assert problem.job.summed(setting) is None
        except TooLargeError:
            assert problem.job.estimator.max_table_cells == 3
    assert "max_table_cells" in problem_of(X, space, max_table_cells=3).job.record(setting).failure
    assert "is not a node" in problem_of(X, space, prior={"z": 1.0}).job.record(setting).failure


def test_jobs_do_not_carry_what_they_remember(rng):
    problem = problem_of(frame(rng))
    fresh = len(pickle.dumps(problem.job))
    problem.job.summed({"structure": DAG(NODES, {})})
    again = pickle.loads(pickle.dumps(problem.job))
    assert len(pickle.dumps(problem.job)) == fresh
    assert (
        again.summed({"structure": DAG(NODES, {})}).values == problem.job.summed({"structure": DAG(NODES, {})}).values
    )


def test_a_column_that_the_space_does_not_know_counts(rng):
    X = frame(rng)
    problem = problem_of(X, DAGSpace(NODES[:3]))
    objective = FamilyObjective.of(problem)
    state = objective.at({"structure": "[a][b|a][c]"})
    assert state.value == approx(problem.runner.tried[0][1].values["score"], rel=1e-12)
    assert state.value == approx(VBDiscreteDAG([("a", "b")], n_init=1).fit(X).lower_bound_, rel=1e-12)


@pytest.mark.parametrize("strategy", [Greedy(), StructuralVBEM(), Exact()], ids=lambda each: type(each).__name__)
def test_limits_hold_though_scores_are_as_good_as_known(strategy, rng):
    X, space = frame(rng), DAGSpace(NODES)
    options = {"strategy": strategy, "scoring": "lower_bound", "refit": False, "random_state": 0}
    few = StructureSearchCV(VBDiscreteDAG(), space, max_candidates=3, **options).fit(X)
    assert (len(few.cv_results_["params"]), few.stopped_by_) == (3, "max_candidates")
    late = StructureSearchCV(VBDiscreteDAG(), space, time_budget=1e-9, **options).fit(X)
    assert late.timed_out_
    assert 1 <= len(late.cv_results_["params"]) <= 100
    whole = StructureSearchCV(VBDiscreteDAG(), space, **options).fit(X)
    assert len(whole.cv_results_["params"]) in (100, 101)
    assert whole.best_score_ == approx(max(few.best_score_, whole.best_score_))


def test_grids_of_priors_times_graphs_are_climbed(rng):
    """A product of spaces has no moves of edges alone; its candidates need no fits either."""
    X = frame(rng, 60, 3)
    space = DAGSpace(X.columns) * GridSpace({"prior": [0.1, 1.0]})
    assert FamilyObjective.of(problem_of(X, space)) is None
    search = StructureSearchCV(VBDiscreteDAG(), space, strategy="greedy", scoring="lower_bound", random_state=0).fit(X)
    every = StructureSearchCV(VBDiscreteDAG(), space, scoring="lower_bound", random_state=0).fit(X)
    assert search.best_score_ == approx(every.best_score_)
    assert every.best_estimator_.lower_bound_ == approx(every.best_score_, rel=1e-12)


def test_priors_over_graphs_that_are_no_sums_of_edges(rng):
    X = frame(rng, 60, 3)
    for prior in (ClassPrior(), EdgePrior({("a", "b"): 1.0})):
        assert FamilyObjective.of(problem_of(X, DAGSpace(X.columns), over_graphs=prior)) is None
    assert FamilyObjective.of(problem_of(X, DAGSpace(X.columns), over_graphs=UniformPrior(labeled=True))) is not None


# Orders --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"max_parents": 1}, {"required": [("x3", "x0"), ("x0", "x1")]}], ids=str)
def test_the_best_graph_of_an_order(options, rng):
    """All parents come earlier, rules hold, and no other graph along the order is better, where all sets are known."""
    data = random_data(rng, 4)
    rules = make_rules(data.nodes, **options)
    graphs = walk(data, rules)
    orders = NodeOrders(graphs)
    for setting in DAGSpace(data.nodes, **options):
        orders.add(graphs.at(setting["structure"]).parents)
    seen = set()
    for _ in range(30):
        order = orders.drawn(rng)
        seen.add(tuple(order))
        assert sorted(orders.near(orders.parents(order), 3, rng)) == [0, 1, 2, 3]
        unmoved = orders.near(orders.parents(order), 0, rng)
        assert value_of(orders, graphs, unmoved) >= value_of(orders, graphs, order) - 1e-9
        dag = graphs.dag(orders.parents(order))
        place = {data.nodes[k]: at for at, k in enumerate(order)}
        assert rules.allow(dag)
        assert all(place[parent] < place[child] for parent, child in dag.edges)
        along = (
            setting["structure"]
            for setting in DAGSpace(data.nodes, **options)
            if all(place[parent] < place[child] for parent, child in setting["structure"].edges)
        )
        assert graphs.at(dag).value == approx(max(graphs.at(each).value for each in along), rel=1e-12)
    assert len(seen) > 3


def value_of(orders, graphs, order):
    return graphs.at(graphs.dag(orders.parents(order))).value


def test_climbs_among_orders_end_where_no_node_is_better_elsewhere(rng):
    data = random_data(rng, 5, 200)
    graphs = walk(data, make_rules(data.nodes))
    orders = NodeOrders(graphs)

    for _ in range(10):
        start = orders.drawn(rng)
        on_the_way = [orders.climbed(start, lambda nodes, n=n: itertools.islice(nodes, n)) for n in range(6)]
        assert np.diff([value_of(orders, graphs, order) for order in on_the_way]).min() >= -1e-9
        end = orders.climbed(start)
        assert value_of(orders, graphs, end) >= value_of(orders, graphs, on_the_way[-1]) - 1e-9
        for node, place in itertools.product(range(5), range(5)):
            moved = [other for other in end if other != node]
            moved.insert(place, node)
            assert value_of(orders, graphs, moved) <= value_of(orders, graphs, end) + 1e-6
    assert orders.climbed(start, lambda nodes: iter(())) == start


def test_climbs_end_soon_when_it_is_late(rng):
    problem = problem_of(frame(rng))
    asked = deque([False] * 40)
    problem.runner.is_late = lambda: asked.popleft() if asked else True
    StructuralVBEM(n_orders=1000).search(problem)
    assert problem.runner.tried
