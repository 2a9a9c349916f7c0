"""Learned rows of structural time series against normal integrals over all last values, written out."""

import numpy as np
import pytest
from laws.time_series import autoregressions

from skvbem.families.regression import Regression
from skvbem.models.structural.design import Design
from skvbem.models.structural.model import StructuralModel
from skvbem.models.structural.rows import RowsAt
from skvbem.structural import Autoregression

LOG_2PI = np.log(2 * np.pi)


def one_column(rng, order):
    """A single autoregression with an offset, its series with gaps, in two sequences, and natural parameters of q."""
    one, lengths = np.zeros(1, dtype=int), [7, 4]
    design = Design.of([Autoregression(order)], np.ones(1))
    emission = Regression.from_parameters([[0.3]], [[[2.0]]], [2.5], [1.5], one, one)
    model = StructuralModel(emission, None, design, np.zeros(1), np.ones(1), autoregressions(rng, design))
    y = rng.normal(size=(sum(lengths), 1))
    y[[2, 3, 8]] = np.nan
    data = model.compile(y, lengths, np.array([1.0, 2.5]), output_inputs=np.ones((len(y), 1)))
    walk = np.concatenate([[1.0, 2.0], rng.normal(size=order - 1)])
    products = np.outer(walk[1:], walk[1:]) + np.eye(order)
    added = [products[np.triu_indices(order)], 0.7 * products[0], [6.0, 9.0]]
    statistics = np.concatenate([[3.0, 0.5, 3.0, 2.0], *added])
    return model, data, y[:, 0], lengths, (model.prior + statistics[:, None]).expected_natural()


def written_out(model, natural, y, order):
    """ln Z of one sequence, and means and second moments of u_{1-p}, ..., u_T, by one precision matrix."""
    emission, _, rows = model.parts(natural[:, 0])
    offset_square, offset, of_datum, rho = emission
    packed, total, of_step, tau = np.split(rows, np.cumsum([order * (order + 1) // 2, order, 1]))
    squares = np.zeros((order, order))
    squares[np.triu_indices(order)] = packed
    squares = -(squares + squares.T)  # E[tau a a']: halves of products off the diagonal stand together
    n, size = len(y), len(y) + order
    precision, slope, constant = np.zeros((size, size)), np.zeros(size), 0.0
    precision[range(order + 1), range(order + 1)] += 1.0
    constant -= 0.5 * LOG_2PI * (order + 1)
    for t in range(1, n):
        here, before = order + t, order + t - 1 - np.arange(order)
        precision[here, here] -= 2 * tau[0]
        precision[here, before] -= total
        precision[before, here] -= total
        precision[np.ix_(before, before)] += squares
        constant += of_step[0]
    for t in np.flatnonzero(~np.isnan(y)):
        precision[order + t, order + t] -= 2 * rho
        slope[order + t] -= 2 * rho * y[t] + offset
        constant += of_datum + rho * y[t] ** 2 + offset * y[t] + offset_square
    covariance = np.linalg.inv(precision)
    mean = covariance @ slope
    log_z = constant + 0.5 * (size * LOG_2PI + np.linalg.slogdet(covariance)[1] + slope @ mean)
    return log_z, covariance + np.outer(mean, mean)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_log_z_and_statistics_are_those_of_the_normal_integral(order, rng):
    model, data, y, lengths, natural = one_column(rng, order)
    expectation = model.expect(natural, data)
    scores = model.log_normalizers_of_sequences(natural[:, 0], data)
    products, total, square, first = np.zeros((order, order)), np.zeros(order), 0.0, 0
    for n, weight, score in zip(lengths, data.weight, scores):
        log_z, moments = written_out(model, natural, y[first : first + n], order)
        np.testing.assert_allclose(score, log_z, rtol=1e-10)
        for t in range(1, n):
            before = order + t - 1 - np.arange(order)
            products += weight * moments[np.ix_(before, before)]
            total += weight * moments[order + t, before]
            square += weight * moments[order + t, order + t]
        first += n
    _, _, rows = model.parts(expectation.statistics[:, 0])
    steps = data.weight @ (np.array(lengths) - 1)
    expected = np.concatenate([products[np.triu_indices(order)], total, [steps, square]])
    np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [1, 3])
def test_smoothed_states_hold_the_penalty_of_unsure_coefficients(order, rng):
    model, data, y, lengths, natural = one_column(rng, order)
    mean, covariance = model.states(natural[:, 0], data, smoothed=True)
    _, moments = written_out(model, natural, y[: lengths[0]], order)
    for t in range(lengths[0]):
        newest_first = order + t - np.arange(order + 1)
        if t:
            here = covariance[t] + np.outer(mean[t], mean[t])
            np.testing.assert_allclose(here, moments[np.ix_(newest_first, newest_first)], rtol=1e-8, atol=1e-9)


def test_slopes_of_log_z_are_the_statistics(rng):
    model, data, _, _, natural = one_column(rng, 2)
    statistics, step = model.expect(natural, data).statistics[:, 0], 1e-5
    around = natural + step * np.concatenate([np.eye(len(natural)), -np.eye(len(natural))], axis=1)
    up, down = np.split(model.expect(np.ascontiguousarray(around), data).log_normalizer, 2)
    np.testing.assert_allclose((up - down) / (2 * step), statistics, rtol=1e-5, atol=1e-5)


def test_points_have_no_spread(rng):
    model, *_ = one_column(rng, 3)
    points = np.stack([model.prior.natural(model.prior.sample(rng)) for _ in range(5)], axis=1)
    assert RowsAt.of(model.autoregression, model.parts(points)[2]).roots is None
    assert RowsAt.of(model.autoregression, model.parts(0.3 * points)[2]).roots is None
