"""Structural VBEM over networks with hidden nodes, scores of families that are remembered, and candidates ruled out."""

import numpy as np
import pandas as pd
import pytest
from search.problems import make_problem

from skvbem import BipartiteSpace, CardinalityGrid, DAGSpace, LatentClassSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.evidence import get_score, scorer
from skvbem.fitting.evaluation import evaluate
from skvbem.fitting.kind import kind_of
from skvbem.search.execution.jobs import EvidenceJob
from skvbem.search.execution.readings import Readings
from skvbem.search.execution.runner import Runner
from skvbem.search.families.family_scores import FamilyScores
from skvbem.search.strategies import Exhaustive, Greedy, Problem, StructuralVBEM
from skvbem.search.strategies.exhaustive import ScoreCeiling, highest_log_likelihood
from skvbem.search.strategies.starts import random_setting
from skvbem.search.strategies.structural.fitter import Fitter
from skvbem.spaces.priors import EdgePrior, coerce_prior
from skvbem.spaces.settings import canonical

approx = pytest.approx
OBSERVED = ["x", "y", "z", "w"]
TWO = BipartiteSpace({"h0": 2, "h1": 2}, OBSERVED)
SPACES = {
    "bipartite": TWO,
    "hidden anywhere": DAGSpace(["x", "y", "z"], latents={"h0": 2}, max_parents=2),
    "states": CardinalityGrid({"h0": range(1, 5), "h1": range(2, 4)}, structure="[h0][h1][x|h0][y|h0:h1][z|h1]"),
    "latents come and go": BipartiteSpace({"h0": 2}, OBSERVED) + TWO,
}


def rows(n=60, seed=0, missing=0.0):
    """Two hidden causes of three and four items, some cells missing."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 2, (2, n))
    of = {"x": hidden[0], "y": hidden[0] + hidden[1], "z": hidden[1], "w": hidden[1]}
    table = pd.DataFrame({name: np.where(rng.random(n) < 0.9, value, 1) for name, value in of.items()}).astype("float")
    return table.mask(rng.random(table.shape) < missing)


def problem_of(space, X, *, scoring="lower_bound", prior=None, seed=0, **options):
    """A search as a strategy sees it."""
    model = VBDiscreteDAG(n_init=2, categories=[range(3)] * X.shape[1], random_state=0, **options)
    job = EvidenceJob(model, Readings(model, X, {}, frozenset()), {"score": scorer(scoring)}, np.nan)
    return Problem(space, Runner(job), "score", coerce_prior(prior), job, np.random.default_rng(seed))


def prior_of(fitter, place):
    """The prior of families under which a place has its scores."""
    estimator = fitter._estimator(place.setting)
    return kind_of(estimator).network(estimator, fitter._reading)


def data_for(space, **options):
    """Of the columns that structures of the space mention."""
    setting = next(iter(space))
    named = set(setting["structure"].nodes) if "structure" in setting else {"x", "y", "z"}
    return rows(**options)[[name for name in OBSERVED if name in named]]


# Scores that are remembered ------------------------------------------------------------------------------------------

MANY_MOVES = pytest.mark.parametrize("n_moves", [1500, pytest.param(10_000, marks=pytest.mark.slow)])


@MANY_MOVES
def test_remembered_scores_of_families_on_random_moves(n_moves, rng):
    """The same bits as scores of families met for the first time, however few are remembered."""
    space = DAGSpace(OBSERVED, latents={"h0": 2}, max_parents=3)
    problem = problem_of(space, rows(30, missing=0.1))
    fitter = Fitter(problem)
    here = fitter.fitted(random_setting(space, rng))
    completed, prior = here.scores.completed, prior_of(fitter, here)
    every, few = FamilyScores(completed, prior), FamilyScores(completed, prior, most=3)
    dag = here.dag
    for _ in range(n_moves):
        child, parent = rng.permutation(dag.nodes)[:2]
        parents = set(dag.parents(child)) ^ {parent}
        if len(parents) > 3:
            continue
        try:
            dag = type(dag)(dag.nodes, {node: dag.parents(node) for node in dag.nodes} | {child: sorted(parents)})
        except ValueError:  # a cycle
            continue
        assert every.bound(dag) == few.bound(dag) == FamilyScores(completed, prior).bound(dag)
    assert every.n_scored < n_moves / 10 < few.n_scored
    assert len(few._remembered) == 3


@MANY_MOVES
def test_remembered_scores_of_candidates_on_random_moves(n_moves, rng):
    """A setting gets its own score and not another's, by whatever names of latents it is asked for."""
    settings = list(TWO)
    value = {canonical(setting): float(rng.normal()) for setting in settings}
    near = {canonical(setting): list(TWO.neighbors(setting)) for setting in settings}
    problem = make_problem(TWO, lambda setting: value[canonical(setting)])
    here = settings[0]
    for _ in range(n_moves):
        around = near[canonical(here)]
        here = around[rng.integers(len(around))]
        if rng.random() < 0.5:
            here = here | {"structure": here["structure"].relabel({"h0": "h1", "h1": "h0"})}
        assert problem.scores([here]) == [value[canonical(here)]]
    assert problem.job.n_measured == len(TWO)


# Bounds of neighbors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("kind", "prior"),
    [*((kind, None) for kind in SPACES), *((kind, EdgePrior(0.3)) for kind in SPACES if kind != "states")],
)
def test_neighbors_are_bounded_and_fits_only_raise_the_bound(kind, prior, missing, rng):
    """bound of a neighbor <= what a fit from there makes of it <= its exact evidence.

    And a fit is bounded by its own q(x) as it is, but that a fit sums over what is hidden without observed descendants.
    """
    space = SPACES[kind]
    X = data_for(space, n=6, missing=missing)
    fitter = Fitter(problem_of(space, X, prior=prior, tol=1e-12))
    n_raised = 0
    for _ in range(4):
        here = fitter.fitted(random_setting(space, rng))
        if not missing and not any(set(here.latents) >= here.dag.descendants(latent) for latent in here.latents):
            assert here.bound >= here.value - 1e-9
        bounded = list(fitter.best_first(here))
        assert [place.bound for place in bounded] == sorted((place.bound for place in bounded), reverse=True)
        wanted = {canonical(setting) for setting in space.neighbors(here.setting)}
        assert {canonical(place.setting) for place in bounded} == wanted
        for place in bounded[:: max(1, len(bounded) // 4)]:
            log_prior = fitter.problem.log_priors([place.setting])[0]
            fitted = fitter.fitted(place.setting, place.scores.completed)
            evaluation = evaluate(fitter._estimator(place.setting), fitter.problem.job.readings.common)
            exact = get_score("exact")(evaluation, max_terms=10**7).value
            assert place.bound <= fitted.value + 1e-9 <= exact + log_prior + 1e-8
            n_raised += fitted.value > place.bound + 1e-6
    assert n_raised


@pytest.mark.parametrize("kind", ["bipartite", "hidden anywhere"])
def test_what_a_move_of_an_edge_gains(kind, rng):
    """One family's change, or two, of the bound over the whole graph."""
    space = SPACES[kind]
    fitter = Fitter(problem_of(space, data_for(space)))
    here = fitter.fitted(random_setting(space, rng))
    for place in fitter.best_first(here):
        fresh = FamilyScores(place.scores.completed, prior_of(fitter, place))
        assert place.bound == approx(fresh.bound(place.dag) + fitter.problem.log_priors([place.setting])[0], rel=1e-12)


# Searches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_it_finds_the_best_of_small_spaces(kind, seed):
    space, X = SPACES[kind], data_for(SPACES[kind], n=150, seed=seed, missing=0.05)
    found = {}
    for strategy in (Exhaustive(), StructuralVBEM()):
        search = StructureSearchCV(
            VBDiscreteDAG(n_init=3), space, strategy=strategy, scoring="lower_bound", refit=False, random_state=seed
        )
        found[type(strategy)] = search.fit(X)
    exhaustive, structural = found.values()
    assert structural.best_score_ == approx(exhaustive.best_score_, abs=1e-3)
    if len(space) > 40:
        assert len(structural.cv_results_["params"]) < len(space) / 2


def test_states_are_split_until_the_evidence_says_no():
    """Four classes that nothing but their items tells apart, from one."""
    rng = np.random.default_rng(4)
    kind = rng.integers(0, 4, 400)
    X = np.column_stack([np.where(rng.random(400) < 0.9, kind, rng.integers(0, 4, 400)) for _ in range(5)])
    space = LatentClassSpace(range(1, 7), [f"x{k}" for k in range(5)])
    for strategy in ("structural", "exhaustive"):
        options = {"strategy": strategy, "rescoring": False, "random_state": 0}
        search = StructureSearchCV(VBDiscreteDAG(), space, **options).fit(X)
        assert search.best_params_["latents"] == {"h0": 4}


def test_a_climb_by_bounds_ends_as_high_as_one_by_fits():
    """And has fitted far fewer candidates from all starts."""
    X = rows(300, seed=1)
    searches = [
        StructureSearchCV(
            VBDiscreteDAG(n_init=5), TWO, strategy=strategy, scoring="lower_bound", refit=False, random_state=1
        ).fit(X)
        for strategy in (Greedy(n_restarts=2), StructuralVBEM())
    ]
    by_fits, by_bounds = (search.best_score_ for search in searches)
    assert by_bounds >= by_fits - 1e-3
    assert len(searches[1].cv_results_["params"]) < len(searches[0].cv_results_["params"]) / 2


# Candidates ruled out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bic", "draper"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_what_is_pruned_could_not_win(kind, missing):
    space = CardinalityGrid({"h0": range(1, 6), "h1": range(1, 6)}, structure="[h0][h1][x|h0][y|h0:h1][z|h1][w|h1]")
    X, tables = rows(50, missing=missing), {}
    for prune in (False, True):
        search = StructureSearchCV(
            VBDiscreteDAG(n_init=1), space, strategy=Exhaustive(prune), scoring=kind, refit=False, random_state=0
        ).fit(X)
        found = search.cv_results_
        tables[prune] = {canonical(p): value for p, value in zip(found["params"], found["mean_test_score"])}
    every, kept = tables[False], tables[True]
    assert kept.items() <= every.items()
    assert len(kept) < 0.8 * len(every)
    assert max(kept.values()) == max(every.values())
    assert all(value < max(kept.values()) for setting, value in every.items() if setting not in kept)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_no_candidate_exceeds_its_ceiling(missing):
    """Nor is the ceiling far above where a structure says nothing: a class for every kind of row."""
    X = rows(40, missing=missing)
    problem = problem_of(TWO, X, scoring="bic")
    ceiling = ScoreCeiling.of(problem)
    settings = list(TWO)
    assert all(value <= ceiling(setting) for setting, value in zip(settings, problem.scores(settings)))
    model = VBDiscreteDAG(latents=40, method="ml", n_init=1, max_iter=5000, random_state=0).fit(X)
    highest = highest_log_likelihood(problem.job.readings.common.rows)
    assert 40 * model.score(X) <= highest + 1e-6
    if not missing:
        assert 40 * model.score(X) == approx(highest, abs=1e-2)


def test_scores_that_rule_nothing_out():
    search = StructureSearchCV(VBDiscreteDAG(), TWO, strategy=Exhaustive(prune=True), scoring="ais")
    with pytest.raises(TypeError, match=r"needs one of the scores bic, draper.*Got 'ais'. Leave 'prune' False"):
        search.fit(rows())


def test_no_climb_begins_where_nothing_that_it_finds_may_be_tried(monkeypatch):
    monkeypatch.setattr(StructuralVBEM, "_climb", lambda *args: pytest.fail("a climb began"))
    space, options = SPACES["hidden anywhere"], {"strategy": "structural", "scoring": "lower_bound"}
    search = StructureSearchCV(VBDiscreteDAG(n_init=1), space, max_candidates=1, random_state=0, **options)
    search.fit(rows()[["x", "y", "z"]])
    assert (len(search.cv_results_["params"]), search.stopped_by_) == (1, "max_candidates")
