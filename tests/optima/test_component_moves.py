"""How many components: moves that raise the bound, beside one fit for each number; starts that join rows."""

import warnings
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from skvbem import VBMixture, datasets
from skvbem.emissions import Gaussian
from skvbem.fitting.fit import read
from skvbem.fitting.kind import kind_of
from skvbem.models.mixture.starts import _joined, starts_of
from skvbem.optima.candidates import Candidate
from skvbem.optima.component_moves import ComponentMoves
from skvbem.optima.labels import LabelStarts, MixtureMethod
from skvbem.optima.plan import FitPlan, Problem, best_fit
from skvbem.vbem.posteriors import VB

approx = pytest.approx
SHARED = {
    "carcinoma": "categorical",
    "stouffer_toby": "categorical",
    "cheating": "categorical",
    "gender_role": "categorical",
    "soybean_small": "categorical",
    "zoo": "categorical",
    "faithful": "gaussian",
    "earthquakes": "poisson",
}
LARGER = {"coleman_panel": "categorical", "lsat6": "categorical", "lizards": "categorical", "car": "categorical"}


#: Of clumps: measurements that spread by 1.
UNIT = Gaussian(covariance_prior=np.eye(2), mean_precision_prior=1.0)


def shared(name):
    """A data set, and how often each row counts."""
    found = getattr(datasets, f"load_{name}")()
    return found.data, found.get("sample_weight")


def clumps(rng, n_clumps, n_rows=80, d=2, apart=12.0):
    """Clumps of rows whose middles lie on a grid, far apart."""
    side = int(np.ceil(np.sqrt(n_clumps)))
    middles = np.zeros((n_clumps, d))
    middles[:, :2] = apart * np.array(np.unravel_index(np.arange(n_clumps), (side, side))).T
    return np.concatenate([middle + rng.normal(size=(n_rows, d)) for middle in middles])


def over_numbers(X, largest, **options):
    """The bound for each number of components."""
    return {k: VBMixture(k, random_state=0, **options).fit(X).lower_bound_ for k in range(1, largest + 1)}


@pytest.mark.parametrize("name", [*SHARED, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGER)])
@pytest.mark.filterwarnings("ignore:Columns:skvbem.errors.DataWarning")  # of soybeans, some columns are constant
def test_moves_find_what_a_fit_for_each_number_finds(name):
    X, weight = shared(name)
    emission = (SHARED | LARGER)[name]
    auto = VBMixture("auto", emission=emission, random_state=0).fit(X, sample_weight=weight)
    bounds = {
        k: VBMixture(k, emission=emission, random_state=0).fit(X, sample_weight=weight).lower_bound_
        for k in range(1, auto.n_components_ + 4)
    }
    assert auto.n_components_ == max(bounds, key=bounds.get)
    assert auto.lower_bound_ == approx(max(bounds.values()), abs=0.01)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Columns:skvbem.errors.DataWarning")
def test_moves_find_what_starts_miss():
    X = datasets.load_soybean_large().data
    auto = VBMixture("auto", emission="categorical", random_state=0).fit(X)
    assert auto.n_components_ == 18
    fixed = VBMixture(18, emission="categorical", random_state=0).fit(X)  # has moves, too
    assert auto.lower_bound_ > np.nanmax(fixed.restarts_.bounds) + 10
    assert auto.lower_bound_ > fixed.lower_bound_


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_clumps_are_counted(covariance_type, rng):
    X = clumps(rng, 5)
    prior = {"full": np.eye(2), "tied": np.eye(2), "diag": [1, 1], "spherical": 1}[covariance_type]
    emission = Gaussian(covariance_type, covariance_prior=prior, mean_precision_prior=1.0)
    auto = VBMixture("auto", emission=emission, random_state=0).fit(X)
    assert auto.n_components_ == 5
    assert sorted(auto.counts_.round()) == approx([80] * 5, abs=1)


@pytest.mark.parametrize("kind", ["dirichlet_distribution", "dirichlet_process"])
def test_every_move_raises_the_bound(kind, rng):
    auto = VBMixture("auto", weight_concentration_prior_type=kind, emission=UNIT, random_state=0)
    auto.fit(clumps(rng, 7, n_rows=30))
    bounds = [move.lower_bound for move in auto.moves_]
    assert np.all(np.diff(bounds) > 0.01)
    assert auto.moves_[0].n_components == 1
    assert auto.moves_[-1].n_components == auto.n_components_ == 7
    assert auto.lower_bound_ >= bounds[-1] - 1e-6
    assert len(auto.weights_) == auto.n_components_
    if kind == "dirichlet_process":  # sticks are broken from the largest on
        assert np.all(np.diff(auto.counts_) < 0.01)


def test_a_component_too_many_is_dropped(rng):
    # six clumps in three pairs: all that gain by it split at once, and what went too far is joined again
    X = np.concatenate([clumps(rng, 3, apart=30.0), clumps(rng, 3, apart=30.0) + np.array([3.0, 0.0])])
    auto = VBMixture("auto", emission=UNIT, random_state=0).fit(X)
    bounds = over_numbers(X, 8, emission=UNIT)
    assert auto.n_components_ == max(bounds, key=bounds.get)
    assert auto.lower_bound_ >= max(bounds.values()) - 0.01


def test_noise_stays_one_component(rng):
    assert VBMixture("auto", random_state=0).fit(rng.normal(size=(150, 3))).n_components_ == 1


@pytest.mark.filterwarnings("ignore:Columns:skvbem.errors.DataWarning")  # that hold one value
def test_few_rows(rng):
    assert VBMixture("auto", random_state=0).fit(np.ones((6, 2)) * [1, 2]).n_components_ == 1
    assert VBMixture("auto", random_state=0).fit(rng.normal(size=(2, 2))).n_components_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one row is mostly prior
        assert VBMixture("auto", random_state=0).fit([[1.0, 2.0]]).n_components_ == 1


def test_the_same_for_any_order_of_rows_repeats_and_threads(rng):
    X = clumps(rng, 4, n_rows=25)
    weight = rng.integers(1, 4, len(X))
    one = VBMixture("auto", emission=UNIT, random_state=3).fit(X, sample_weight=weight)
    order = rng.permutation(len(X))
    for rows, weights, n_jobs in (
        (X[order], weight[order], None),
        (np.repeat(X, weight, axis=0), None, None),
        (X, weight, 2),
    ):
        other = VBMixture("auto", emission=UNIT, random_state=3, n_jobs=n_jobs)
        other.fit(rows, sample_weight=weights)
        assert other.lower_bound_ == approx(one.lower_bound_, rel=1e-9)
        assert [move.kind for move in other.moves_] == [move.kind for move in one.moves_]


def test_mixed_columns(rng):
    kind = rng.integers(0, 3, 240)
    frame = pd.DataFrame(
        {
            "size": rng.normal(10.0 * kind, 1.0),
            "visits": rng.poisson([1, 5, 20], size=(240, 3))[np.arange(240), kind].astype(float),
            "color": np.array(["red", "green", "blue"])[np.where(rng.random(240) < 0.1, 0, kind)],
        }
    ).mask(rng.random((240, 3)) < 0.1)
    families = {"gaussian": "size", "poisson": "visits", "categorical": "color"}
    auto = VBMixture("auto", emission=families, random_state=0).fit(frame)
    assert auto.n_components_ == 3
    table = pd.crosstab(kind, auto.predict(frame))
    assert table.max(axis=1).sum() > 230


def test_scores_of_a_grown_mixture_are_those_of_a_mixture(rng):
    X = clumps(rng, 3)
    auto = VBMixture("auto", emission=UNIT, random_state=0).fit(X)
    fixed = VBMixture(3, emission=UNIT, random_state=0).fit(X)
    for kind in ("bic", "cheeseman_stutz"):
        assert auto.log_evidence(X, kind=kind).value == approx(fixed.log_evidence(X, kind=kind).value, abs=1e-3)
    assert len(auto.restarts_.bounds) == auto.n_init + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "ml"}, "n_components='auto' of VBMixture needs method='vb'"),
        ({"init": np.ones((20, 1))}, "n_components='auto' of VBMixture makes its own starts"),
        ({"weight_concentration_prior": [1, 2]}, "needs one number as 'weight_concentration_prior'"),
    ],
)
def test_what_makes_no_sense_without_a_number_is_refused(options, message, rng):
    with pytest.raises(ValueError, match=message):
        VBMixture("auto", **options).fit(rng.normal(size=(20, 2)))


# The strength of the weights' prior -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dirichlet_distribution", "dirichlet_process"])
@pytest.mark.parametrize("n_components", [3, 6])
def test_the_optimized_strength_is_that_of_the_highest_bound(kind, n_components, rng):
    X = np.concatenate([clumps(rng, 3, n_rows=20), rng.normal(size=(60, 2))])
    options = {"weight_concentration_prior_type": kind, "random_state": 0}

    learned = VBMixture(n_components, weight_concentration_prior="optimized", **options).fit(X)
    shares = learned.predict_proba(X)  # the same optimum at any strength

    def bound(log_strength):
        model = VBMixture(n_components, weight_concentration_prior=np.exp(log_strength), init=shares, **options)
        return -model.fit(X).lower_bound_

    best = optimize.minimize_scalar(bound, bounds=np.log([1e-2, 10]), method="bounded", options={"xatol": 1e-3})
    assert learned.lower_bound_ == approx(-best.fun, abs=2e-3)
    assert learned.weight_concentration_prior_ == approx(np.exp(best.x), rel=0.1)
    assert learned.lower_bound_ >= VBMixture(n_components, **options).fit(X).lower_bound_
    assert "given the optimized prior" in learned.log_evidence(X, kind="bic").note


def test_of_one_component_there_is_no_strength(rng):
    X = rng.normal(size=(20, 2))
    learned = VBMixture(1, weight_concentration_prior="optimized").fit(X)
    assert learned.weight_concentration_prior_ == 1.0
    assert learned.lower_bound_ == approx(VBMixture(1).fit(X).lower_bound_)


def test_a_strength_is_optimized_by_the_bound_alone(rng):
    with pytest.raises(ValueError, match="needs method='vb', whose bound decides"):
        VBMixture(2, method="map", weight_concentration_prior="optimized").fit(rng.normal(size=(20, 2)))
    with pytest.raises(ValueError, match="must be a number or an array-like"):
        VBMixture(2, weight_concentration_prior="best").fit(rng.normal(size=(20, 2)))


# Sticks -----------------------------------------------------------------------------------------------------------


def test_sticks_are_broken_from_the_largest_on(rng):
    X = np.concatenate(
        [clumps(rng, 4, n_rows=n, apart=20.0)[k * n : (k + 1) * n] for k, n in enumerate((9, 70, 30, 15))]
    )
    options = {"weight_concentration_prior_type": "dirichlet_process", "random_state": 0}
    fit = VBMixture(4, **options).fit(X)
    assert fit.counts_ == approx([70, 30, 15, 9], abs=0.5)
    shares = np.eye(4)[np.repeat([0, 1, 2, 3], (9, 70, 30, 15))]  # as they come, not the largest first
    assert VBMixture(4, init=shares, **options).fit(X).lower_bound_ == approx(fit.lower_bound_, abs=1e-4)


# Starts that join rows ------------------------------------------------------------------------------------------------


def greedily_joined(model, data, n_groups):
    """Rows joined two by two where the evidence of the union, beside its parts, is highest: by the definition."""
    groups = [[i] for i in range(len(data))]
    prior = model.prior.blocks[1]

    def evidence(rows):
        first = np.zeros((len(data), model.n_components))
        first[rows, 0] = 1
        return float(prior.log_evidence(model.prior.split(model.statistics_of(first, data))[1]))

    while len(groups) > n_groups:
        i, j = max(
            combinations(range(len(groups)), 2),
            key=lambda pair: (
                evidence(groups[pair[0]] + groups[pair[1]]) - evidence(groups[pair[0]]) - evidence(groups[pair[1]])
            ),
        )
        groups[i] += groups.pop(j)
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("emission", ["gaussian", "poisson", "categorical"])
def test_rows_are_joined_where_the_evidence_says(emission, rng, compiled):
    values = {
        "gaussian": rng.normal(size=(9, 2)),
        "poisson": rng.poisson(4, size=(9, 2)).astype(float),
        "categorical": rng.integers(0, 3, size=(9, 4)),
    }[emission]
    model, data = compiled(values, emission, 3)
    group = _joined(model, data, np.arange(9))
    found = {frozenset(np.flatnonzero(group == g).tolist()) for g in range(3)}
    assert found == greedily_joined(model, data, 3)


@pytest.fixture
def compiled():
    """A mixture and its data, from a fit of one step."""

    def make(values, emission, n_components):
        estimator = VBMixture(n_components, emission=emission)
        reading = read(estimator, values)
        model = kind_of(estimator).model(estimator, reading).with_known_hyperparameters()
        return model, reading.compiled(model)

    return make


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_one_joined_start_finds_clumps(covariance_type, rng):
    X = clumps(rng, 9, n_rows=20)
    joined = VBMixture(9, init="hierarchical", n_init=1, covariance_type=covariance_type, method="ml").fit(X)
    assert sorted(joined.counts_) == approx([20] * 9, abs=1)


def test_joined_starts_are_the_same_for_any_order_of_rows_and_repeats(rng):
    X = clumps(rng, 4, n_rows=15, apart=2.5)
    options = {"init": "hierarchical", "n_init": 1, "random_state": 0, "max_iter": 2, "tol": 1e9, "acceleration": False}
    one = VBMixture(4, **options).fit(X)
    assert VBMixture(4, **options).fit(X[rng.permutation(len(X))]).lower_bound_ == approx(one.lower_bound_, rel=1e-9)
    twice = VBMixture(4, **options).fit(np.repeat(X, 2, axis=0))
    weighted = VBMixture(4, **options).fit(X, sample_weight=np.full(len(X), 2.0))
    assert twice.lower_bound_ == approx(weighted.lower_bound_, rel=1e-9)


def test_joined_starts_where_rows_are_many_or_few(rng):
    X = clumps(rng, 6, n_rows=500)  # more distinct rows than are joined
    fit = VBMixture(6, init="hierarchical", n_init=1, random_state=0).fit(X)
    assert sorted(fit.counts_) == approx([500] * 6, abs=2)
    assert len(VBMixture(3, init="hierarchical", n_init=4, random_state=0).fit(X).restarts_.bounds) == 4
    VBMixture(3, init="hierarchical").fit(rng.normal(size=(3, 2)))


# Single moves ---------------------------------------------------------------------------------------------------------


def problem_of(estimator, reading, limits, **options):
    """The number of components of a reading, to be chosen."""
    model_of = partial(kind_of(estimator).model_of, estimator, reading)
    model = model_of(reading.emission(), 1)
    starts = LabelStarts("k-means++", 2, (0,), starts_of)
    plan = FitPlan(MixtureMethod(), (0,), starts, limits, explore=True)
    options |= {"model_of": model_of, "moves_of": ComponentMoves}
    return Problem(model, reading.compiled(model), VB, lambda model: plan, **options)


@pytest.fixture
def growth(rng):
    """Moves over three clumps, and a candidate with three of six components that halve a clump, or that are empty."""

    def make(halved):
        X = clumps(rng, 3, n_rows=30)
        shares = np.zeros((90, 6))
        shares[np.arange(90), np.arange(90) // 30 + (3 * (np.arange(90) % 2) if halved else 0)] = 1
        estimator = VBMixture(6, emission=UNIT, init=shares, max_iter=2, tol=1e9, acceleration=False)
        run = estimator.fit(X)._run_
        limits = {"tol": 1e-5, "max_iter": 1000}
        reading = read(estimator, X)
        moves = ComponentMoves(problem_of(estimator, reading, limits))
        model = kind_of(estimator).model_of(estimator, reading, moves.emission, 6)
        return moves, Candidate(run.fit.statistics, 0, objective=run.fit.objective, model=model)

    return make


def test_halves_are_joined(growth):
    moves, one = growth(halved=True)
    (joined,) = moves._joined(one, moves._parts(one))
    assert joined.moves[-1].kind == "join"
    assert joined.model.n_components == 5
    assert joined.objective > one.objective
    pairs = [(min(pair), max(pair)) for _, *pair in moves._parts(one).of.joins()[:3]]
    assert sorted(pairs) == [(0, 3), (1, 4), (2, 5)]  # halves of one clump, rather than of two


def test_one_empty_component_is_dropped(growth):
    moves, one = growth(halved=False)
    (joined,) = moves._joined(one, moves._parts(one))
    assert joined.model.n_components == 5
    assert joined.objective > one.objective
    assert sorted(joined.model.expected_counts(joined.statistics)) == approx([0, 0, 30, 30, 30], abs=0.1)


def test_empty_components_are_dropped_together(growth):
    moves, one = growth(halved=False)
    first = next(moves.reached_from(one))
    assert first.model.n_components == 3
    assert first.objective > one.objective


def test_components_split_together_and_one_by_one(growth):
    moves, _ = growth(halved=False)
    one = moves.problem.anew(moves._model(1, ()))
    parts = moves._parts(one)
    assert parts.gain[0] > 0
    (two,) = moves._one_split(one, parts)
    assert two.model.n_components == 2
    assert list(moves._many_split(one, parts)) == []  # one component is not several
    three = moves.problem.anew(moves._model(3, ()))
    parts = moves._parts(three)
    assert parts.gain.max() < 0  # clumps are not worth splitting
    assert list(moves._many_split(three, parts)) == []


def test_two_moves_in_a_row_are_named_so(growth):
    moves, _ = growth(halved=False)
    three = moves.problem.anew(moves._model(3, ())).taken()
    kinds = {(found.moves[-1].kind, found.model.n_components) for found in moves.reached_from(three)}
    assert {("split", 4), ("join", 2), ("split, join", 3), ("split, split", 5), ("join, split", 3)} <= kinds
    assert {("start", 2), ("start", 4)} <= kinds


def test_a_search_that_is_stopped_ends_with_a_fit(rng):
    class Stop:
        calls = 0

        def __call__(self, *cycle):
            self.calls += 1
            return self.calls > 3

    stop = Stop()
    X = clumps(rng, 4)
    estimator = VBMixture()
    reading = read(estimator, X)
    limits = {"tol": 1e-5, "max_iter": 1000}
    problem = problem_of(estimator, reading, limits, stop=stop, stopped=lambda: stop.calls > 3)
    _, _, fit, moves = best_fit(problem)
    assert np.isfinite(fit.objective)
    assert moves[0].kind == "start"


@pytest.mark.parametrize(
    ("n_rows", "width", "effort"), [(400, 20.0, "fast"), (400, 3.0, "auto"), (400, 0.0, "auto"), (24, 20.0, "auto")]
)
def test_sizes_anew_are_only_raced_where_components_lie_apart_and_rows_are_many(n_rows, width, effort, monkeypatch):
    """Where components overlap, or rows are few, other sizes are searched as long as any model."""
    tried, run = [], FitPlan.run

    def kept(plan, model, *args, **options):
        if plan.explore:
            tried.append((model.n_components, plan.effort))
        return run(plan, model, *args, **options)

    monkeypatch.setattr(FitPlan, "run", kept)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2)) + width * (np.arange(n_rows) % 2)[:, None]
    model = VBMixture("auto", random_state=0).fit(X)
    n = len(model.weights_)
    assert {each for k, each in tried if k == n + 1} == {effort}
