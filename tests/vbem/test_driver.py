"""The loop, on maps whose fixed points are known and on ones that misbehave."""

import numpy as np
import pytest
from bridge import FastNetwork
from reference import facts
from reference.discrete_network import uniform_prior

from skvbem.ascent import Ascent
from skvbem.errors import BoundFellError
from skvbem.vbem.driver import RELATIVE_SLACK, run

approx = pytest.approx


class Contraction(Ascent):
    """x -> top + rate (x - top): the objective -(x - top)^2 rises at every step; lanes have rates of their own."""

    magnitude = 1.0
    signed = np.array([True])

    def __init__(self, rates, top=3.0):
        self.rates, self.top = np.asarray(rates, dtype=float), top
        self.points = []

    def advance(self, statistics, n_steps):
        rates = self.rates if statistics.shape[1] == len(self.rates) else self.rates[: statistics.shape[1]]
        trace = np.empty((n_steps, statistics.shape[1]))
        for step in range(n_steps):
            self.points.append(statistics.copy())
            trace[step] = -((statistics - self.top) ** 2).sum(axis=0)
            statistics[:] = self.top + rates * (statistics - self.top)
        return trace

    def failure(self):
        return FloatingPointError("not a number")


def start(*values):
    return np.array([values], dtype=float)


# --- where it ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9, 0.999])
def test_it_ends_at_the_fixed_point(rate, accelerate):
    result = run(Contraction([rate]), start(100.0), tol=1e-10, max_iter=100_000, accelerate=accelerate)
    assert result.converged.all()
    assert result.objective[0] == approx(0, abs=1e-9)
    assert result.objective[0] == approx(-((result.statistics[0, 0] - 3.0) ** 2), abs=1e-12)


def test_acceleration_leaps_along_a_straight_path():
    """A linear map is solved by one extrapolation of the right length."""
    plain, leaping = (
        run(Contraction([0.999]), start(1e4), tol=1e-8, max_iter=10**6, accelerate=a) for a in (False, True)
    )
    assert leaping.n_iter[0] < 60 < 5000 < plain.n_iter[0]


def test_the_gain_still_to_come_is_what_tol_bounds():
    """A slow run gains little at each step, long before its end."""
    for rate in (0.5, 0.9, 0.99):
        result = run(Contraction([rate]), start(50.0), tol=1e-4, max_iter=10**6, accelerate=False)
        assert -result.objective[0] < 10e-4


def test_the_objective_is_that_of_the_statistics_returned():
    for accelerate in (True, False):
        for max_iter in (1, 2, 3, 7, 20):
            ascent = Contraction([0.9, 0.99])
            result = run(ascent, start(10.0, 20.0), tol=0.0, max_iter=max_iter, accelerate=accelerate)
            assert result.objective == approx(-((result.statistics[0] - 3.0) ** 2))
            assert [trace[-1] for trace in result.traces] == result.objective.tolist()


def test_starts_are_not_changed():
    given = start(10.0, 20.0)
    run(Contraction([0.5, 0.5]), given, tol=1e-6, max_iter=100)
    assert given.tolist() == [[10.0, 20.0]]


def test_best_is_the_first_of_the_highest():
    class Ladder(Contraction):
        def advance(self, statistics, n_steps):
            return np.tile(np.floor(statistics[0]), (n_steps, 1))

    result = run(Ladder([0, 0, 0, 0]), start(1.0, 5.2, 5.7, 2.0), tol=1e-3, max_iter=10)
    assert result.best == 1


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("max_iter", [2, 3, 4, 5, 10, 17, 100])
def test_max_iter_is_the_most_steps(max_iter, accelerate):
    ascent = Contraction([0.99999])
    result = run(ascent, start(1e6), tol=0.0, max_iter=max_iter, accelerate=accelerate)
    assert 2 <= result.n_iter[0] <= max_iter
    assert len(ascent.points) == result.n_iter[0]


def test_one_step_and_a_look_at_it_is_the_least():
    """A run needs two evaluations to know what a step gained."""
    result = run(Contraction([0.9]), start(10.0), tol=0.0, max_iter=1)
    assert result.n_iter[0] <= 2


def test_starts_that_have_converged_are_left_alone():
    """Each counts its own steps; the others run on."""
    result = run(Contraction([0.999, 0.0]), start(1e3, 1e3), tol=1e-6, max_iter=100_000, accelerate=False)
    assert result.converged.all()
    assert result.n_iter[1] < 10 < 1000 < result.n_iter[0]


def test_stop_ends_the_run():
    asked = []

    def stop(n_iter, objective, n_live, to_come):
        asked.append((n_iter, objective))
        assert n_live == 2
        assert to_come > 0
        return len(asked) == 3

    result = run(Contraction([0.9999]), start(1e4, 2e4), tol=0.0, max_iter=10_000, stop=stop)
    assert len(asked) == 3
    assert not result.converged.any()
    assert [n for n, _ in asked] == sorted(n for n, _ in asked)
    assert asked[-1] == (result.n_iter.max(), result.objective.max())
    objectives = [objective for _, objective in asked]
    assert objectives == sorted(objectives)


def test_tolerance_zero_ends_where_rounding_begins():
    result = run(Contraction([0.9]), start(10.0), tol=0.0, max_iter=10_000)
    assert result.converged[0]
    assert result.objective[0] == approx(0, abs=1e-12)


# --- what must not happen ---------------------------------------------------------------------------------------------


class Falling(Contraction):
    """Rises, then falls at one evaluation."""

    def __init__(self, at, by):
        super().__init__([0.99])
        self.at, self.by, self.evaluations = at, by, 0

    def advance(self, statistics, n_steps):
        trace = super().advance(statistics, n_steps)
        for step in range(n_steps):
            self.evaluations += 1
            if self.evaluations >= self.at:
                trace[step] -= self.by
        return trace


@pytest.mark.parametrize("at", [2, 4, 5, 9])
def test_a_bound_that_falls_is_a_defect_and_raises(at):
    with pytest.raises(BoundFellError, match=r"fell by .* nats at iteration \d+, from .* to .*defect"):
        run(Falling(at, 1e6), start(100.0), tol=1e-9, max_iter=10_000, accelerate=False)


def test_a_fall_is_seen_with_acceleration_too():
    with pytest.raises(BoundFellError):
        run(Falling(2, 1e6), start(100.0), tol=1e-9, max_iter=10_000)


def test_a_fall_in_any_lane_is_seen():
    class Second(Contraction):
        def advance(self, statistics, n_steps):
            trace = super().advance(statistics, n_steps)
            trace[:, 1] = -np.arange(len(self.points), len(self.points) + n_steps)
            return trace

    with pytest.raises(BoundFellError):
        run(Second([0.99, 0.99, 0.99]), start(9.0, 9.0, 9.0), tol=1e-9, max_iter=100)


def test_rounding_is_no_fall():
    """The one slack: 1e-9 of the objective and of the terms it is a sum of."""
    small = Falling(2, 0.5 * RELATIVE_SLACK)
    run(small, start(3.0), tol=0.0, max_iter=10)
    large = Falling(2, 5 * RELATIVE_SLACK)
    with pytest.raises(BoundFellError):
        run(large, start(3.0), tol=0.0, max_iter=10)
    scaled = Falling(2, 5 * RELATIVE_SLACK)
    scaled.magnitude = 100.0
    run(scaled, start(3.0), tol=0.0, max_iter=10)


def test_an_objective_that_is_no_number_says_why():
    class NoNumber(Contraction):
        def advance(self, statistics, n_steps):
            return np.full((n_steps, statistics.shape[1]), np.nan)

    with pytest.raises(FloatingPointError, match="not a number"):
        run(NoNumber([0.5]), start(1.0), tol=1e-3, max_iter=10)


class Overshooting(Contraction):
    """A map with a bend: an extrapolation from far away lands far beyond the top."""

    def advance(self, statistics, n_steps):
        trace = np.empty((n_steps, statistics.shape[1]))
        for step in range(n_steps):
            trace[step] = -(np.abs(statistics[0] - self.top) ** 3)
            statistics[:] = self.top + 0.7 * (statistics - self.top) / np.maximum(
                1.0, np.sqrt(np.abs(statistics - self.top))
            )
        return trace


@pytest.mark.parametrize("first", [4.0, 30.0, 1e3, 1e6])
def test_an_extrapolation_that_would_lower_the_objective_is_dropped(first):
    result = run(Overshooting([0.0]), start(first), tol=1e-9, max_iter=10_000)
    assert np.diff(result.traces[0]).min() >= 0
    assert result.converged[0]


def test_extrapolated_statistics_stay_positive():
    seen = []

    class Watched(Contraction):
        def advance(self, statistics, n_steps):
            seen.append(statistics.min())
            return super().advance(statistics, n_steps)

    ascent = Watched([0.99], top=1e-3)
    run(ascent, start(50.0), tol=1e-12, max_iter=1000)
    assert min(seen) > 0


def test_an_extrapolation_that_is_no_number_is_dropped():
    class Brittle(Contraction):
        """Not a number below 3.5, where only extrapolation would go so soon."""

        def advance(self, statistics, n_steps):
            outside = statistics[0] < 3.001
            trace = super().advance(statistics, n_steps)
            trace[:, outside] = np.nan
            return trace

    result = run(Brittle([0.999]), start(100.0), tol=1e-9, max_iter=50)
    assert np.isfinite(result.objective[0])
    assert np.diff(result.traces[0]).min() >= 0


# --- on a real problem ------------------------------------------------------------------------------------------------


def test_lanes_end_where_they_would_alone(rng):
    network = facts.latent_class(3, (2, 2, 2))
    fast = FastNetwork(network, uniform_prior(network))
    ascent = fast.ascent(facts.TWENTY_ROWS)
    starts = fast.random_starts(ascent, rng, 20)
    together = run(ascent, starts, tol=1e-6, max_iter=10_000)
    for lane in range(20):
        alone = run(ascent, np.ascontiguousarray(starts[:, [lane]]), tol=1e-6, max_iter=10_000)
        assert alone.objective[0] == together.objective[lane]
        assert alone.n_iter[0] == together.n_iter[lane]
        assert alone.traces[0] == together.traces[lane]
        assert np.array_equal(alone.statistics[:, 0], together.statistics[:, lane])


def test_every_recorded_bound_is_at_least_the_last(any_form, rng):
    network = facts.latent_class(3, (2, 2, 2))
    fast = FastNetwork(network, uniform_prior(network, 1.5))
    ascent = fast.ascent(facts.TWENTY_ROWS, any_form)
    for accelerate in (True, False):
        result = run(ascent, fast.random_starts(ascent, rng, 30), tol=1e-8, max_iter=10_000, accelerate=accelerate)
        for trace in result.traces:
            assert np.diff(trace).min() >= -1e-10
