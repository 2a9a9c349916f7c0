"""Structural time series against the joint normal distribution of all cells, written out."""

import numpy as np
import pytest
from laws.time_series import BLOCKS, StructuralCase
from scipy.stats import multivariate_normal

from skvbem.models.structural.design import Design
from skvbem.structural import Cycle, Season


def states_and_cells(instance, point, n):
    """Covariance of the states of n steps, (n k, n k), and the map from these to cells, (n p, n k)."""
    design, k = instance.model.design, instance.model.n_states
    noise, transition = np.zeros(k), design.transition.copy()
    if design.n_noises:
        moved = design.noise_of >= 0
        noise[moved] = 1 / point[1][0][design.noise_of[moved]]
    for state, row, precision in zip(design.learned, *((point[-1]) if len(design.learned) else ((), ()))):
        transition[state, state : state + len(row)], noise[state] = row, 1 / precision
    spread, covariance = np.diag(design.start), np.zeros((n, k, n, k))
    for t in range(n):
        if t:
            spread = transition @ spread @ transition.T + np.diag(noise)
        moved = spread
        for later in range(t, n):
            covariance[later, :, t] = moved
            covariance[t, :, later] = moved.T
            moved = transition @ moved
    return covariance.reshape(n * k, n * k), np.kron(np.eye(n), design.reading)


def columns_of(instance, point, rows):
    """Cells less effects of inputs, flat, and variances of their noise."""
    inputs = instance.v[rows].copy()
    if instance.model.design.has_level:
        inputs[:, 0] = 0.0  # a level needs no offset beside it
    return (instance.y[rows] - inputs @ point[0].coefficients.T).ravel(), np.tile(1 / point[0].precision, len(rows))


@pytest.mark.parametrize("k", range(2 * len(BLOCKS)))
def test_densities_and_states_are_those_of_the_joint_normal(k, rng):
    instance = StructuralCase().tiny(rng, k)
    model, data = instance.model, instance.compile()
    point = model.prior.sample(rng)
    natural = model.prior.natural(point)
    scores = model.log_normalizers_of_sequences(natural, data)
    smoothed = model.states(natural, data, smoothed=True)
    filtered = model.states(natural, data, smoothed=False)
    first = 0
    for score, n in zip(scores, instance.lengths):
        rows = np.arange(first, first + n)
        of_states, reading = states_and_cells(instance, point, n)
        cells, variances = columns_of(instance, point, rows)
        seen = ~np.isnan(cells)
        of_cells = (reading @ of_states @ reading.T + np.diag(variances))[np.ix_(seen, seen)]
        exact = multivariate_normal(np.zeros(seen.sum()), of_cells).logpdf(cells[seen]) if seen.any() else 0.0
        np.testing.assert_allclose(score, exact, rtol=1e-10, atol=1e-10)

        def given(cells_up_to, seen=seen, reading=reading, of_states=of_states, of_cells=of_cells, cells=cells):
            known = np.flatnonzero(seen) < cells_up_to
            crossed = (of_states @ reading.T)[:, seen][:, known]
            gain = crossed @ np.linalg.inv(of_cells[np.ix_(known, known)])
            return gain @ cells[seen][known], of_states - gain @ crossed.T

        where = {row: place for place, row in enumerate(data.rows)}
        for t in range(n):
            if first + t not in where:
                continue  # steps after the last observed one are left out
            here, at = where[first + t], slice(t * model.n_states, (t + 1) * model.n_states)
            for states, up_to in ((smoothed, len(cells)), (filtered, (t + 1) * model.n_columns)):
                mean, covariance = given(up_to)
                np.testing.assert_allclose(states[0][here], mean[at], rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(states[1][here], covariance[at, at], rtol=1e-9, atol=1e-9)
        first += n


@pytest.mark.parametrize("k", range(len(BLOCKS)))
def test_drawn_statistics_have_the_expected_ones_as_their_mean(k, rng):
    instance, n = StructuralCase().tiny(rng, k), 4000
    model, data = instance.model, instance.compile()
    natural = model.prior.natural(model.prior.sample(rng))[:, None]
    noise = (
        rng.standard_normal((n, len(data), model.n_states)),
        rng.standard_normal((n, len(data), model.n_drawn_cells)),
    )
    _, drawn = model.passed(np.ascontiguousarray(np.repeat(natural, n, axis=1)), data, *noise)
    expected, error = model.expect(natural, data).statistics[:, 0], drawn.std(axis=1) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=1) - expected) <= 5 * error + 1e-9).all()


def test_waves_of_a_season_sum_to_nothing_over_a_period():
    states = Season(7).states
    path = np.stack([np.linalg.matrix_power(states.transition, t) for t in range(7)])
    np.testing.assert_allclose(np.einsum("j,tjk->k", states.reading, path), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.matrix_power(states.transition, 7), np.eye(6), atol=1e-12)


def test_each_column_has_blocks_of_its_own():
    design = Design.of([Season(4), Cycle(6.0, noise=False)], np.ones(2))
    assert design.column_of.tolist() == [0] * 5 + [1] * 5
    assert design.noise_names == ("season of 4", "season of 4")
    assert design.noise_of.tolist() == [0, 0, 0, -1, -1, 1, 1, 1, -1, -1]
    np.testing.assert_array_equal(design.transition[:5, 5:], 0.0)
    assert not design.has_level
