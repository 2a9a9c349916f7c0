"""From starts to one fit: the best of all, annealing."""

import numpy as np
import pytest
from bridge import FastNetwork
from reference import facts
from reference.discrete_network import uniform_prior

from skvbem.optima.plan import best_of
from skvbem.vbem.driver import run
from skvbem.vbem.fit import continued

approx = pytest.approx
LIMITS = {"tol": 1e-6, "max_iter": 10_000}


@pytest.fixture
def two_classes():
    """With two optima: -44.77, and -48.21 with one class nearly empty."""
    network = facts.latent_class(2, (2, 2, 2))
    fast = FastNetwork(network, uniform_prior(network))
    return fast, fast.ascent(facts.TWENTY_ROWS)


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


def test_starts_are_not_changed(two_classes, rng):
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, 6)
    before = starts.copy()
    best_of(ascent, starts, inverse_temperatures=[0.5], **LIMITS)
    assert np.array_equal(starts, before)


def test_the_trace_of_a_run_that_began_lower_stands_alone(two_classes, rng):
    """No trace falls: a run from where the fit ended is added to it; one that began lower takes its place."""
    fast, ascent = two_classes
    starts = fast.random_starts(ascent, rng, 3)
    fit = best_of(ascent, starts, tol=0.0, max_iter=10)
    further = best_of(ascent, fit.statistics[:, None], tol=0.0, max_iter=5)
    lower = best_of(ascent, starts, tol=0.0, max_iter=40)
    assert further.trace[0] == pytest.approx(fit.objective, rel=1e-9)
    assert lower.trace[0] < fit.objective - 0.01
    assert continued(fit, further).trace == fit.trace + further.trace
    assert continued(fit, lower).trace == lower.trace
