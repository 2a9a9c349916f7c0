"""Strategies on problems small enough to know the answer: every candidate is tried once, and the best is found."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from search.problems import make_problem, scores_of

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.search.strategies import MC3, STRATEGIES, Exhaustive, Greedy, Strategy, StructuralVBEM, resolve_strategy
from skvbem.search.strategies.mc3 import _ChainState
from skvbem.search.strategies.starts import emptiest, random_setting, setting_to_start_from
from skvbem.spaces import BipartiteSpace, CardinalityGrid, DAGSpace, GridSpace, LatentClassSpace
from skvbem.spaces.priors import coerce_prior
from skvbem.spaces.settings import canonical

approx = pytest.approx
WALKERS = [Greedy(), Greedy(n_tabu=0), Greedy(start="random", n_restarts=2), MC3(n_steps=30)]
SPACES = {
    "dags": DAGSpace(["x", "y", "z"]),
    "bipartite": BipartiteSpace({"h0": 2, "h1": 2}, ["x", "y", "z"]),
    "states": CardinalityGrid({"h0": range(1, 6), "h1": range(2, 5)}, structure="[h0][h1][x|h0][y|h0:h1][z|h1]"),
    "four dags": DAGSpace(["x", "y", "z", "w"], max_parents=2),
    "union": BipartiteSpace({"h0": 2}, ["x", "y"]) + BipartiteSpace({"h0": 2, "h1": 2}, ["x", "y"]),
    "grid": GridSpace({"n_components": range(1, 9), "alpha": [0.1, 1.0]}),
}


def names(strategy):
    return str(strategy)


def slope(space, top):
    """Scores that fall with the number of moves from one setting: every other setting has a better neighbor."""
    distance, frontier = {canonical(top): 0}, [top]
    for setting in frontier:
        for near in space.neighbors(setting):
            if (key := canonical(near)) not in distance:
                distance[key] = distance[canonical(setting)] + 1
                frontier.append(near)
    assert len(distance) == len(space)
    return lambda setting: -distance[canonical(setting)]


@cache
def slope_to_the_last(kind):
    """The slope of a space to its last setting."""
    *_, last = SPACES[kind]
    return last, slope(SPACES[kind], last)


@cache
def noise(kind):
    """Independent scores of all settings of a space."""
    rng = np.random.default_rng(0)
    value = {canonical(setting): float(rng.normal()) for setting in SPACES[kind]}
    return lambda setting: value[canonical(setting)]


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_exhaustive_tries_everything_once_in_the_order_of_the_space(space):
    problem = make_problem(space, lambda setting: 0.0)
    Exhaustive().search(problem)
    tried = [canonical(setting) for setting, _ in problem.runner.tried]
    assert tried == [canonical(setting) for setting in space]
    assert problem.job.n_measured == len(tried)


@pytest.mark.parametrize("strategy", [Greedy(), Greedy(n_tabu=0), Greedy(start="random")], ids=names)
@pytest.mark.parametrize("kind", SPACES)
def test_climbers_find_the_top_of_a_slope(strategy, kind):
    top, score = slope_to_the_last(kind)
    problem = make_problem(SPACES[kind], score, seed=3)
    strategy.search(problem)
    assert canonical(max(scores_of(problem), key=lambda pair: pair[1])[0]) == canonical(top)


@pytest.mark.parametrize("strategy", WALKERS, ids=names)
@pytest.mark.parametrize("kind", SPACES)
def test_no_candidate_is_measured_twice_and_the_seed_decides(strategy, kind):
    space, found = SPACES[kind], []
    for _ in range(2):
        problem = make_problem(space, noise(kind), seed=7)
        strategy.search(problem)
        tried = [canonical(setting) for setting, _ in problem.runner.tried]
        assert len(set(tried)) == len(tried) == problem.job.n_measured
        assert set(tried) <= {canonical(setting) for setting in space}
        found.append(tried)
    assert found[0] == found[1]


@pytest.mark.parametrize("strategy", [Exhaustive(), *WALKERS], ids=names)
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("most", [1, 5])
def test_all_strategies_end_when_the_search_is_over(strategy, kind, most):
    problem = make_problem(SPACES[kind], slope_to_the_last(kind)[1], most=most)
    strategy.search(problem)
    assert len(problem.runner.tried) == most
    assert problem.is_over


@pytest.mark.parametrize("strategy", [Exhaustive(), *WALKERS], ids=names)
def test_candidates_that_fail_are_passed_by(strategy):
    score = noise("four dags")

    def sometimes(setting):
        if score(setting) < -0.5:
            raise ValueError("no such model")
        return score(setting)

    problem = make_problem(SPACES["four dags"], sometimes)
    strategy.search(problem)
    assert any(record.failure for _, record in problem.runner.tried)
    assert any(not record.failure for _, record in problem.runner.tried)


def test_nothing_is_tried_that_the_prior_rules_out():
    space = SPACES["dags"]
    prior = coerce_prior({("x", "y"): 0.0})
    for strategy in WALKERS:
        problem = make_problem(space, lambda setting: len(setting["structure"].edges), prior=prior)
        strategy.search(problem)
        assert not any(("x", "y") in setting["structure"].edges for setting, _ in problem.runner.tried), strategy


def test_climbers_climb_the_posterior():
    """The score likes edges, the prior dislikes them more."""
    space = DAGSpace(["x", "y", "z"])
    problem = make_problem(space, lambda setting: len(setting["structure"].edges), prior=coerce_prior(0.1))
    Greedy(n_tabu=0).search(problem)
    assert len(problem.runner.tried) == 7  # the empty graph and those with one edge


def test_a_tabu_list_leaves_a_local_optimum():
    """A valley of two steps, the best setting behind it."""
    space = GridSpace({"n_components": range(1, 30)})
    score = [0, 1, 2, 3, 0, 0, 9, 1, *[0.0] * 30]
    found = {}
    for n_tabu in (0, 1, 2):
        problem = make_problem(space, lambda setting: score[setting["n_components"] - 1])
        Greedy(n_tabu=n_tabu).search(problem)
        found[n_tabu] = max(value for _, value in scores_of(problem))
    assert found == {0: 3, 1: 3, 2: 9}


def test_restarts_leave_a_local_optimum():
    best = []
    for n_restarts in (0, 20):
        problem = make_problem(SPACES["four dags"], noise("four dags"))
        Greedy(n_tabu=0, n_restarts=n_restarts).search(problem)
        best.append(max(value for _, value in scores_of(problem)))
    assert best[1] > best[0]


@pytest.mark.parametrize("kind", SPACES)
def test_a_climb_tries_all_neighbors_of_its_summit(kind):
    for n_tabu in (0, 3):
        problem = make_problem(SPACES[kind], noise(kind))
        Greedy(n_tabu=n_tabu).search(problem)
        summit, _ = max(scores_of(problem), key=lambda pair: pair[1])
        tried = {canonical(setting) for setting, _ in scores_of(problem)}
        assert {canonical(near) for near in SPACES[kind].neighbors(summit)} <= tried


def test_a_start_may_be_given():
    start = {"structure": "[x][y|x][z|y]"}
    for strategy in (Greedy(start=start), MC3(start=start, n_chains=1)):
        problem = make_problem(SPACES["dags"], lambda setting: 0.0, most=3)
        strategy.search(problem)
        assert canonical(problem.runner.tried[0][0]) == canonical(start)
    with pytest.raises(ValueError, match="is not in"):
        Greedy(start={"structure": "[x][y]"}).search(make_problem(SPACES["dags"], lambda setting: 0.0))


@pytest.mark.parametrize("kind", [Greedy, MC3, StructuralVBEM])
def test_a_start_may_be_a_graph(kind, rng):
    """It stands for the setting of the space that has it: with the space's latents, and nodes without an edge."""
    problem = make_problem(SPACES["dags"], lambda setting: 0.0)
    start = setting_to_start_from(kind(start=DAG([("y", "x")])).start, problem.space, rng)
    assert start == {"structure": DAG("[x|y][y][z]")}
    hidden = DAGSpace(["x", "y"], latents={"h": 3})
    assert setting_to_start_from(DAG([("h", "x")]), hidden, rng) == {
        "structure": DAG("[h][x|h][y]"),
        "latents": {"h": 3},
    }
    with pytest.raises(ValueError, match="is not in"):
        setting_to_start_from(DAG([("x", "y")]), DAGSpace(["x", "y"], forbidden=[("x", "y")]), rng)


@pytest.mark.parametrize("strategy", ["exhaustive", "exact", "greedy", "structural", "mc3"])
def test_all_strategies_keep_to_allowed_edges(strategy, rng):
    """Also the sum over all graphs of the space, and the graphs that climbs and chains value on their way."""
    x, noise = rng.integers(0, 2, 200), rng.random((3, 200)) < 0.15
    columns = np.stack([x, x ^ noise[0], x ^ noise[0] ^ noise[1], x ^ noise[2]], axis=1)
    X = pd.DataFrame(columns, columns=list("abcd"))
    allowed = [("b", "a"), ("a", "b"), ("c", "b"), ("c", "d"), ("a", "d")]
    space = DAGSpace(X.columns, allowed=allowed)
    way = MC3(n_chains=2, n_steps=40) if strategy == "mc3" else strategy
    search = StructureSearchCV(VBDiscreteDAG(prior="bdeu"), space, prior="uniform", strategy=way, random_state=0).fit(X)
    assert all(set(setting["structure"].edges) <= set(allowed) for setting in search.cv_results_["params"])
    edges = search.edge_probabilities_
    assert all(edges["parent":a, "child":b] == 0 for a in "abcd" for b in "abcd" if (a, b) not in allowed)
    scores = [VBDiscreteDAG(**setting, prior="bdeu").fit(X).lower_bound_ for setting in space]
    assert search.best_score_ == pytest.approx(max(scores), abs=1e-9)
    ab = np.exp(np.array(scores) - max(scores)) * [("a", "b") in setting["structure"].edges for setting in space]
    assert edges["parent":"a", "child":"b"] == pytest.approx(ab.sum() / np.exp(np.array(scores) - max(scores)).sum())


def test_the_emptiest_setting():
    assert not emptiest(SPACES["dags"])["structure"].edges
    assert emptiest(SPACES["grid"]) == {"alpha": 0.1, "n_components": 1}
    required = DAGSpace(["x", "y", "z"], latents={"h": 2}, required=[("x", "y")])
    assert len(emptiest(required)["structure"].edges) == 2  # the latent must have a child


def test_random_settings_are_uniform_in_small_spaces(rng):
    space = SPACES["union"]
    n = len(space)
    counts = np.zeros(n)
    order = {canonical(setting): k for k, setting in enumerate(space)}
    for _ in range(100 * n):
        counts[order[canonical(random_setting(space, rng))]] += 1
    assert ((counts - 100) ** 2 / 100).sum() < n + 5 * np.sqrt(2 * n)


def test_random_settings_of_spaces_too_large_to_list_or_count(rng):
    space = DAGSpace([f"x{k}" for k in range(9)])
    assert random_setting(space, rng) in space
    assert len(random_setting(space, rng)["structure"].edges) > 3

    class Uncounted(DAGSpace):
        @property
        def n_settings(self):
            raise TooLargeError("too many to count")

    assert random_setting(Uncounted(["x", "y"]), rng) in space.__class__(["x", "y"])


@pytest.mark.parametrize("kind", ["dags", "bipartite", "states"])
def test_chains_visit_settings_in_proportion_to_their_posterior(kind):
    """Spaces of unequal neighborhoods; the share of visits against the posterior, in its own standard error."""
    space, prior = SPACES[kind], coerce_prior("labeled")
    problem = make_problem(space, noise(kind), prior=prior, seed=5)
    n_chains, n_steps = 20, 1000
    report = MC3(n_chains=n_chains, n_steps=n_steps).search(problem)
    settings = [setting for setting, _ in problem.runner.tried]
    assert len(settings) == len(space)
    weight = np.exp([noise(kind)(s) + prior.log_weight(s, space) for s in settings])
    shares = report["visits"] / n_steps
    assert (report["visits"].sum(axis=1) == n_steps).all()
    error = shares.std(axis=0, ddof=1) / np.sqrt(n_chains)
    z = (shares.mean(axis=0) - weight / weight.sum()) / error
    # the first steps are not from the posterior: a bias of about 10 steps in 1000, less than one standard error
    assert np.sqrt((z**2).mean()) < 1.6
    assert np.abs(z).max() < 6
    assert 0.2 < report["acceptance"] < 1


def test_latent_class_sizes_are_climbed():
    problem = make_problem(LatentClassSpace(range(1, 50), ["x", "y"]), lambda s: -abs(s["latents"]["h0"] - 7))
    Greedy(n_tabu=0).search(problem)
    assert [setting["latents"]["h0"] for setting, _ in problem.runner.tried] == [*range(1, 9)]


def test_greedy_adds_and_removes_hidden_nodes_and_states():
    """A union of spaces is crossed by moves of hidden nodes and states, there and back."""
    space = sum((BipartiteSpace({"h0": k, "h1": 2}, ["x", "y"], childless=False) for k in (2, 3)),
                BipartiteSpace({"h0": 2}, ["x", "y"], childless=False))  # fmt: skip
    small, large = next(iter(BipartiteSpace({"h0": 2}, ["x", "y"], childless=False))), None
    for setting in BipartiteSpace({"h0": 3, "h1": 2}, ["x", "y"], childless=False):
        large = setting
    for start, end in ((small, large), (large, small)):
        problem = make_problem(space, slope(space, end))
        Greedy(start=start, n_tabu=0).search(problem)
        best = max(scores_of(problem), key=lambda pair: pair[1])[0]
        assert canonical(best) == canonical(end)


def test_names_and_options_are_checked():
    for name in STRATEGIES:
        assert isinstance(resolve_strategy(name), Strategy)
    assert resolve_strategy(Greedy(n_tabu=3)) == Greedy(n_tabu=3)
    with pytest.raises(ValueError, match="greedy"):
        resolve_strategy("greddy")
    with pytest.raises(TypeError, match="name or a Strategy"):
        resolve_strategy(3)
    for wrong in (lambda: Greedy(n_tabu=-1), lambda: MC3(n_chains=0), lambda: MC3(n_steps=0.5)):
        with pytest.raises(ValueError, match="must be an int"):
            wrong()
    with pytest.raises(TypeError, match="'start' of Greedy"):
        Greedy(start="empty")


@pytest.mark.parametrize("strategy", [Greedy(), Exhaustive()], ids=names)
def test_a_limit_of_time_holds_while_settings_are_listed(strategy):
    """Neighbors of a graph with many nodes take seconds to list: of those that come late not one more is asked for."""
    problem, n_late = None, 0

    def until_late(settings):
        nonlocal n_late
        for k, setting in enumerate(settings):
            if problem is not None and problem.runner.tried and k >= 3:
                problem.runner.over, n_late = "time_budget", n_late + 1
            yield setting

    class Slow(DAGSpace):
        def __iter__(self):
            return until_late(super().__iter__())

        def neighbors(self, setting):
            return until_late(super().neighbors(setting))

    problem = make_problem(Slow(range(5)), lambda setting: -len(setting["structure"].edges))
    strategy.search(problem)
    assert n_late == 1
    assert 0 < len(problem.runner.tried) <= 300


def test_candidates_are_not_even_named_when_it_is_late():
    problem = make_problem(SPACES["dags"], lambda setting: 1.0)
    first, *others = SPACES["dags"]
    problem.runner([first])
    problem.runner.over = "time_budget"
    assert problem.runner([first, *others]) == [None] * 25


@pytest.mark.parametrize("kind", ["dags", "four dags", "bipartite"])
def test_chains_propose_the_neighbors_of_a_space(kind):
    """In its order, though where nothing is hidden no graph is made of those that are not proposed."""
    for setting in list(SPACES[kind])[::20]:
        place = _ChainState(setting, "", SPACES[kind])
        around = [canonical(near) for near in SPACES[kind].neighbors(setting)]
        assert [canonical(place.neighbor(k)) for k in range(place.n_neighbors)] == around
