"""The default strategy: what it takes for which search, and what is refused before anything is fitted."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from search.problems import make_problem

from skvbem import (
    BipartiteSpace,
    CardinalityGrid,
    DAGSpace,
    GridSpace,
    LatentClassSpace,
    ListSpace,
    StructureSearchCV,
    VBDiscreteDAG,
    VBMixture,
)
from skvbem.errors import SearchWarning, StructureError, TooLargeError
from skvbem.search.strategies import Auto, Exact, Exhaustive, Greedy, StructuralVBEM, exhaustive, resolve_strategy
from skvbem.search.tuning import TUNING
from skvbem.spaces import Space, coerce_space
from skvbem.spaces.priors import coerce_prior

WIDE = [f"x{k}" for k in range(12)]


def table(n_columns, n_rows=60, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n_rows, n_columns)).astype(float)
    codes[:, 1] = codes[:, 0]
    return pd.DataFrame(codes, columns=WIDE[:n_columns]).mask(rng.random(codes.shape) < missing)


def parts_of(space, X, estimator=None, *, prior=None, **options):
    """The job, the ranking and the prior of a search."""
    search = StructureSearchCV(VBDiscreteDAG(n_init=1) if estimator is None else estimator, space, **options)
    scorers = search._scorers()
    return search._job(search.estimator, space, scorers, X, None, {}), next(iter(scorers)), coerce_prior(prior)


def chosen(space, X, *args, **options):
    """The kind of strategy that suits a search."""
    space = coerce_space(space)
    return type(Auto().chosen_for(space, *parts_of(space, X, *args, **options)))


LARGE = DAGSpace(WIDE[:7])
HIDDEN = BipartiteSpace({"h0": 2, "h1": 2, "h2": 2}, WIDE[:7])


def test_small_spaces_are_gone_through():
    assert chosen(DAGSpace(WIDE[:4]), table(4)) is Exhaustive
    assert chosen(BipartiteSpace({"h0": 2, "h1": 2}, WIDE[:4]), table(4)) is Exhaustive
    assert chosen(LatentClassSpace(range(1, 9), WIDE[:4]), table(4)) is Exhaustive
    assert chosen({"latents": [1, 2, 3]}, table(4)) is Exhaustive


def test_the_best_graph_of_few_complete_columns():
    assert chosen(LARGE, table(7)) is Exact
    assert chosen(LARGE, table(7), scoring="bic") is Exact
    assert chosen(LARGE, table(7), prior=0.2) is Exact


def test_else_climbs_along_bounds():
    assert chosen(LARGE, table(7, missing=0.05)) is StructuralVBEM
    assert chosen(LARGE, table(7), prior=lambda setting: 0.0) is StructuralVBEM
    assert chosen(LARGE, table(7), scoring="laplace") is StructuralVBEM
    assert chosen(LARGE, table(7), VBDiscreteDAG(prior={"x0": [1.0, 2.0]}, n_init=1)) is StructuralVBEM
    assert chosen(HIDDEN, table(7)) is StructuralVBEM
    wide = DAGSpace(WIDE[:12], max_parents=3)
    assert chosen(wide, table(12)) is Exact
    assert Auto(max_settings=0).chosen_for(wide, *parts_of(wide, table(12))) == Exact()


def test_nodes_are_too_many_by_what_the_program_would_cost():
    """2 ** 22 sets of nodes take seconds."""
    rng = np.random.default_rng(0)
    for n, kind in ((14, Exact), (22, StructuralVBEM)):
        X = pd.DataFrame(rng.integers(0, 2, (30, n))).add_prefix("x")
        space = DAGSpace(X.columns, max_parents=1)
        assert type(Auto().chosen_for(space, *parts_of(space, X))) is kind
        assert (Exact().n_operations(space, *parts_of(space, X)) < TUNING.max_operations) == (kind is Exact)


def test_trial_by_trial_where_there_are_no_bounds():
    assert chosen(LARGE, table(7), VBDiscreteDAG(learn_prior=True, n_init=1)) is Greedy
    assert chosen(LARGE, table(7), scoring=lambda estimator, X, y=None: estimator.score(X)) is Greedy
    held_out = VBDiscreteDAG(n_init=1, categories=[[0.0, 1.0]] * 7)
    assert chosen(LARGE, table(7), held_out, cv=2) is Greedy


def test_grids_and_lists_mean_all_that_they_say():
    grid = GridSpace({"alpha": np.linspace(0.1, 1.0, 120).tolist(), "n_components": range(1, 101)})
    assert len(grid) == 12_000
    assert Auto().chosen_for(grid, None, "score", None) == Exhaustive()
    listed = ListSpace([{"latents": k} for k in range(1, 8)])
    assert Auto(max_settings=3).chosen_for(listed, None, "score", None) == Exhaustive()
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert chosen({"n_components": [1, 2]}, X, VBMixture(n_init=1)) is Exhaustive


def test_a_strategy_that_is_named_stays():
    for strategy in (Greedy(n_tabu=2), "mc3"):
        search = StructureSearchCV(VBDiscreteDAG(n_init=1), DAGSpace(WIDE[:3]), strategy=strategy, random_state=0).fit(
            table(3)
        )
        assert search.strategy_ == resolve_strategy(strategy)


def test_as_a_strategy_among_others():
    """It can be asked to search without having been asked to choose before."""
    X = table(5)
    search = StructureSearchCV(VBDiscreteDAG(n_init=1), DAGSpace(WIDE[:5]), strategy=Auto(max_settings=100))
    assert search.set_params(random_state=0).fit(X).strategy_ == Exact()
    problem = make_problem(DAGSpace(["x", "y"]), lambda setting: len(setting["structure"].edges))
    Auto().search(problem)
    assert len(problem.runner.tried) == 3
    with pytest.raises(ValueError, match="'max_settings' of Auto must be an int >= 0"):
        Auto(max_settings=-1)


# Spaces that cannot be gone through -----------------------------------------------------------------------------------


def test_endless_searches_are_refused_with_their_count_before_anything_is_fitted(monkeypatch):
    monkeypatch.setattr("skvbem.search.execution.jobs.evaluate", lambda *args: pytest.fail("a fit began"))
    search = StructureSearchCV(VBDiscreteDAG(), DAGSpace(WIDE[:7], latents={"h": 2}), strategy="exhaustive")
    with pytest.raises(TooLargeError, match=r"DAGSpace has 637938583423 settings. Take .*'structural'.*max_candidates"):
        search.fit(table(7))
    uncountable = CardinalityGrid({f"h{k}": range(1, 50) for k in range(4)}, {f"x{k}": f"h{k}" for k in range(4)})
    with pytest.raises(TooLargeError, match="CardinalityGrid has more settings than"):
        StructureSearchCV(VBDiscreteDAG(), uncountable, strategy="exhaustive").fit(table(4))


@pytest.mark.parametrize("limit", [{"max_candidates": 2}, {"time_budget": 1e-6}], ids=str)
def test_a_limit_makes_any_space_one_to_go_through(limit):
    space = DAGSpace(WIDE[:7], latents={"h": 2})
    search = StructureSearchCV(
        VBDiscreteDAG(n_init=1, max_iter=2), space, strategy="exhaustive", scoring="lower_bound", refit=False, **limit
    )
    is_chosen = "max_candidates" in limit  # who names a number knows that the rest is left out
    with nullcontext() if is_chosen else pytest.warns(SearchWarning, match="over these alone"):
        search.fit(table(7))
    assert 1 <= len(search.cv_results_["params"]) <= 2


def test_how_large_a_space_may_be(monkeypatch):
    monkeypatch.setattr(exhaustive, "MAX_LISTED", 25)
    for nodes, n in ((["x", "y", "z"], 25), (["x", "y", "z", "w"], None)):
        problem = make_problem(DAGSpace(nodes), lambda setting: 0.0)
        if n is None:
            with pytest.raises(TooLargeError, match="DAGSpace has 543 settings"):
                Exhaustive().search(problem)
        else:
            Exhaustive().search(problem)
            assert len(problem.runner.tried) == n


class Uncounted(DAGSpace):
    """A space that cannot say how large it is."""

    @property
    def n_settings(self):
        raise TooLargeError("too many")

    def has_more_than(self, n):
        return Space.has_more_than(self, n)


def test_spaces_too_large_to_count_are_too_large_to_go_through():
    space = Uncounted(["x", "y"])
    assert space.has_more_than(10**100)
    assert Exhaustive().n_candidates(space) is None
    with pytest.raises(TooLargeError, match="Uncounted has more settings than can be counted"):
        Exhaustive().search(make_problem(space, lambda setting: 0.0))


@pytest.mark.parametrize(
    "space",
    [
        DAGSpace(WIDE[:4]),
        DAGSpace(WIDE[:4], max_parents=1),
        DAGSpace(WIDE[:4], tiers=[["x3"], ["x0", "x1"], ["x2"]]),
        DAGSpace(WIDE[:4], required=[("x3", "x0")], forbidden=[("x0", "x1"), ("x1", "x2")]),
        DAGSpace(WIDE[:3], latents={"h": 2}, max_parents=2),
        GridSpace({"alpha": [1, 2, 3]}),
    ],
    ids=repr,
)
def test_more_than_so_many(space):
    n = len(list(space))
    assert [space.has_more_than(k) for k in (0, n - 1, n, n + 1)] == [True, True, False, False]


def test_more_than_so_many_is_soon_known():
    """Of nodes that rules treat each differently graphs take minutes to count."""
    nodes = [f"x{k}" for k in range(30)]
    space = DAGSpace(nodes, forbidden=[(nodes[k], nodes[j]) for k in range(30) for j in range(k)])
    assert space.has_more_than(10**6)
    assert "n_settings" not in vars(space)


def test_latents_have_names():
    for space in (
        lambda: DAGSpace(["x", "y"], latents={"": 2}),
        lambda: BipartiteSpace(["h", " "], ["x"]),
        lambda: CardinalityGrid({"": [2, 3]}, {"x": ""}),
    ):
        with pytest.raises(StructureError, match="has a latent without a name"):
            space()
