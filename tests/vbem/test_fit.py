"""From starts to one fit: the best of all, tournaments, annealing."""

import numpy as np
import pytest
from bridge import FastNetwork, fitted
from laws.problems import larger
from reference import facts
from reference.discrete_network import uniform_prior

from skvbem.vbem.driver import run
from skvbem.vbem.fit import best_of
from skvbem.vbem.starts import tournament

approx = pytest.approx
LIMITS = {"tol": 1e-6, "max_iter": 10_000}


class Counting:
    """An ascent that counts how many steps of how many lanes are taken."""

    def __init__(self, ascent):
        self.ascent, self.magnitude, self.signed = ascent, ascent.magnitude, ascent.signed
        self.calls = []

    def advance(self, statistics, n_steps):
        self.calls.append((statistics.shape[1], n_steps))
        return self.ascent.advance(statistics, n_steps)

    def failure(self):
        return self.ascent.failure()

    @property
    def steps(self):
        return sum(n_lanes * n_steps for n_lanes, n_steps in self.calls)


@pytest.fixture
def two_classes():
    """With two optima: -44.77, and -48.21 with one class nearly empty."""
    network = facts.latent_class(2, (2, 2, 2))
    fast = FastNetwork(network, uniform_prior(network))
    return fast, fast.ascent(facts.TWENTY_ROWS)


def test_a_tournament_of_64_costs_384_steps(two_classes, rng):
    fast, ascent = two_classes
    counting = Counting(ascent)
    order, winner = tournament(counting, fast.random_starts(ascent, rng, 64))
    assert counting.calls == [(64, 1), (32, 2), (16, 4), (8, 8), (4, 16), (2, 32)]
    assert counting.steps == 384
    assert sorted(order.tolist()) == list(range(64))
    assert winner.shape == (fast.model.layout.n_cells, 1)


@pytest.mark.parametrize("n_starts", [1, 2, 3, 5, 7, 20])
def test_a_tournament_of_any_number_ends_with_one(n_starts, two_classes, rng):
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, n_starts)
    order, winner = tournament(ascent, starts)
    assert sorted(order.tolist()) == list(range(n_starts))
    assert winner.shape[1] == 1


def test_half_the_starts_are_dropped_by_their_objective(two_classes, rng):
    """Who leaves first did worst after one step; the winner is the better of the last two."""
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, 8)
    order, winner = tournament(ascent, starts)
    after_one = ascent.advance(starts.copy(), 1)[0]
    assert set(order[:4]) == set(np.argsort(-after_one)[4:])
    statistics = starts.copy()
    ascent.advance(statistics, 1 + 2 + 4)
    assert np.array_equal(statistics[:, order[-1]], winner[:, 0])


def test_the_winner_of_a_tournament_is_run_to_the_end(two_classes, rng):
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, 64)
    fit = best_of(ascent, starts, select=True, **LIMITS)
    assert np.isfinite(fit.restart_objectives).sum() == 1
    assert np.nanmax(fit.restart_objectives) == fit.objective
    winner = int(np.nanargmax(fit.restart_objectives))
    assert fit.restart_n_iter[winner] == fit.n_iter
    assert fit.restart_converged.sum() == 1
    _, at_tournament = tournament(ascent, starts)
    assert fit.objective >= ascent.advance(at_tournament, 1)[0, 0]
    assert fit.objective == approx(facts.BEST_VB_BOUND_BY_CLASSES[2], abs=1e-4)


def test_the_best_of_all_starts_is_kept(two_classes, rng):
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, 30)
    fit = best_of(ascent, starts, **LIMITS)
    each = run(ascent, starts, **LIMITS)
    best = int(np.argmax(each.objective))
    assert fit.objective == each.objective.max()
    assert np.ptp(each.objective) > 0.1
    assert np.array_equal(fit.statistics, each.statistics[:, best])
    assert np.array_equal(fit.restart_objectives, each.objective)
    assert list(fit.trace) == each.traces[best]
    assert (fit.n_iter, fit.converged) == (each.n_iter[best], each.converged[best])


def test_annealed_steps_multiply_statistics(two_classes, rng):
    """One step at each inverse temperature [Beal (2.118), (2.119)], then the plain run from there."""
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, 3)
    betas = [0.2, 0.5, 0.9]
    fit = best_of(ascent, starts, inverse_temperatures=betas, **LIMITS)
    statistics = starts.copy()
    for beta in betas:
        statistics *= beta
        ascent.advance(statistics, 1)
    assert np.array_equal(fit.restart_objectives, run(ascent, statistics, **LIMITS).objective)
    plain = best_of(ascent, starts, inverse_temperatures=[1.0], **LIMITS)
    one_step = starts.copy()
    ascent.advance(one_step, 1)
    assert np.array_equal(plain.restart_objectives, run(ascent, one_step, **LIMITS).objective)


@pytest.mark.parametrize("select", [True, False])
def test_starts_are_not_changed(select, two_classes, rng):
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, 6)
    before = starts.copy()
    best_of(ascent, starts, select=select, inverse_temperatures=[0.5], **LIMITS)
    assert np.array_equal(starts, before)


def test_a_tournament_by_name():
    problem = larger(1)
    model = fitted(problem, init="tournament", n_init=16, random_state=0)
    assert np.isnan(model.restarts_.bounds).sum() == 15
    assert np.nanmax(model.restarts_.bounds) == model.lower_bound_
