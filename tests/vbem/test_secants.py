"""Leaps by secants, on linear maps: a linear map is solved by as many secants as it has rates."""

import numpy as np
import pytest

from skvbem.ascent import Ascent
from skvbem.vbem import driver, secants
from skvbem.vbem.driver import run
from skvbem.vbem.secants import Secants

RATES, TOP = np.array([0.5, 0.9, 0.99, 0.999, 0.9999]), 3.0


class Slow(Ascent):
    """x -> top + rates (x - top), a rate for each cell; the objective -(x - top)^2 / (1 - rates) rises at each step."""

    magnitude, signed = 1.0, np.ones(len(RATES), dtype=bool)

    def advance(self, statistics, n_steps):
        trace = np.empty((n_steps, statistics.shape[1]))
        for step in range(n_steps):
            trace[step] = -((statistics - TOP) ** 2 / (1 - RATES)[:, None]).sum(axis=0)
            statistics[:] = TOP + RATES[:, None] * (statistics - TOP)
        return trace

    def failure(self):
        return FloatingPointError("not a number")


def cycles(n, start):
    """So many cycles, each from a place of its own."""
    rng, ascent = np.random.default_rng(0), Slow()
    for _ in range(n):
        here = start + rng.normal(size=start.shape)
        one, two = here.copy(), here.copy()
        ascent.advance(one, 1)
        ascent.advance(two, 2)
        yield here, one, two


def remembered(n, start, n_taken=secants._N_QUICK):
    result = Secants(start.shape[1])
    result.n_taken = n_taken
    for points in cycles(n, start):
        result.add(points)
    return result


def test_as_many_secants_as_rates_lead_to_the_fixed_point():
    """Three cycles have five secants: two of their own differences less each, and those from one to the next."""
    floor, ahead = np.full(5, -1.0), np.zeros((5, 2))
    assert remembered(3, np.full((5, 2), 9.0)).lead(floor, ahead).tolist() == [0, 1]
    assert ahead == pytest.approx(np.full((5, 2), TOP), abs=1e-6)


def test_no_cell_falls_below_its_floor():
    """On the way from 400 to 3 in a leap, a hundredth is left; the last cell may be negative."""
    floor, ahead, start = np.array([0.01, 0.01, 0.01, 0.01, -1.0]), np.zeros((5, 1)), np.full((5, 1), 400.0)
    remembered(3, start).lead(floor, ahead)
    *_, (_, _, two) = cycles(3, start)
    assert np.array_equal(ahead[2:4], 0.01 * two[2:4])
    assert ahead[4] == pytest.approx(TOP, abs=1e-4)


def test_only_slow_starts_of_small_models_are_remembered(monkeypatch):
    ahead, start = np.zeros((5, 1)), np.full((5, 1), 9.0)
    assert not len(remembered(3, start, n_taken=secants._N_QUICK - 3).lead(np.full(5, -1.0), ahead))
    monkeypatch.setattr(secants, "_N_DOUBLES", 100)
    assert not len(remembered(3, start).lead(np.full(5, -1.0), ahead))


def test_a_start_that_lost_rests_once_and_keeps_two_cycles():
    many, floor = remembered(5, np.full((5, 2), 9.0)), np.full(5, -1.0)
    leaping = many.lead(floor, np.zeros((5, 2)))
    many.settle(leaping, np.array([-1.0, 2.0]))
    assert many.n_used.tolist() == [2, 5]
    assert many.gained.tolist() == [0.0, 2.0]
    assert many.lead(floor, np.zeros((5, 2))).tolist() == [1]
    assert many.lead(floor, np.zeros((5, 2))).tolist() == [0, 1]


def test_starts_that_end_are_forgotten():
    every, floor = remembered(3, np.full((5, 3), 9.0) * [1.0, 2.0, 3.0]), np.full(5, -1.0)
    whole, part = np.zeros((5, 3)), np.zeros((5, 2))
    every.lead(floor, whole)
    every.of(np.array([0, 2]))
    every.lead(floor, part)
    assert np.array_equal(part, whole[:, [0, 2]])


def test_several_slow_directions_take_a_fraction_of_the_steps(monkeypatch):
    start = np.random.default_rng(0).normal(size=(5, 1)) * 50
    with_secants = run(Slow(), start, tol=1e-6, max_iter=10**5)
    monkeypatch.setattr(secants, "_N_QUICK", 10**6)
    without = run(Slow(), start, tol=1e-6, max_iter=10**5)
    assert with_secants.converged.all()
    assert with_secants.objective[0] > -1e-5
    assert with_secants.n_iter[0] < 100 < 2 * 100 < without.n_iter[0]


def test_a_start_goes_on_where_its_last_leap_gained(monkeypatch):
    """What the last leap gained is still to come, as far as is known."""
    seen = []

    def looked_at(points, first, second, live, limits, objective, to_come):
        result = original(points, first, second, live, limits, objective, to_come)
        seen.append((limits[-1].copy(), to_come[live].copy()))
        return result

    original = driver._looked_at
    monkeypatch.setattr(driver, "_looked_at", looked_at)
    run(Slow(), np.full((5, 2), 50.0), tol=1e-6, max_iter=10**5)
    assert any((leapt > 0).any() for leapt, _ in seen)
    assert all((to_come >= leapt).all() for leapt, to_come in seen)
