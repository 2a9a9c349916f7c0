"""Hidden cells of normal rows: how they hang on the others, and completed sums, by dense algebra."""

import numpy as np
import pytest

from skvbem._kernels import _hidden_cells
from skvbem._numerics import pack_symmetric, pairings, unpack_symmetric

approx = pytest.approx


def hidden_from(precision, mean, directions):
    """What the kernel finds: roots, crossed, shifts, log determinants, linear and products."""
    (n, d, _), m = precision.shape, directions.shape[1]
    root, crossed = np.empty((n, d, m)), np.empty((n, d, m))
    shift, linear = np.empty(mean.shape), np.empty(mean.shape)
    log_det, products = np.empty(n), np.empty((n, d * (d + 1) // 2))
    found = root, crossed, shift, log_det, linear, products
    assert _hidden_cells.hide(precision, mean, directions, *found)
    return found


def drawn(rng, d, each, n=3):
    root = rng.normal(size=(n, d, d))
    return root @ root.swapaxes(-1, -2) + np.eye(d), rng.normal(size=(n * each, d))


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize(("d", "m"), [(2, 1), (5, 2), (5, 4), (12, 7), (3, 0)])
def test_directions_are_integrated_out(d, m, each, rng):
    """The quadratic of what is left has the precision and the peak of a marginal density."""
    precision, mean = drawn(rng, d, each)
    directions = rng.normal(size=(d, m))
    root, _, shift, log_det, linear, products = hidden_from(precision, mean, directions)
    for k, of_mean in enumerate(mean):
        J = precision[k // each]
        inner = directions.T @ J @ directions
        covariance = directions @ np.linalg.inv(inner) @ directions.T
        keep = np.eye(d) - covariance @ J
        assert root[k // each] @ root[k // each].T == approx(covariance, rel=1e-9, abs=1e-9)
        assert log_det[k // each] == approx(np.linalg.slogdet(inner)[1], rel=1e-9, abs=1e-9)
        assert shift[k] == approx(of_mean - keep @ of_mean, rel=1e-9, abs=1e-9)
        assert linear[k] == approx(J @ keep @ of_mean, rel=1e-9, abs=1e-9)
        left = unpack_symmetric(-2 * products[k // each] / pairings(d), d)
        assert left == approx(J @ keep, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize(("d", "m"), [(2, 1), (5, 2), (12, 7)])
def test_sums_of_completed_rows(d, m, each, rng):
    """Rows completed one by one, their products with the covariance of what is hidden."""
    precision, mean = drawn(rng, d, each)
    root, crossed, shift, *_ = hidden_from(precision, mean, rng.normal(size=(d, m)))
    weight, rows = rng.uniform(size=(len(mean), 20)), rng.normal(size=(20, d))
    products = pack_symmetric(rows[:, :, None] * rows[:, None])
    sums = weight @ np.column_stack([np.ones(20), rows, products])
    completed = np.empty(sums.shape)
    _hidden_cells.complete(sums, root, crossed, shift, completed)
    for k, of_rows in enumerate(weight):
        root_k, crossed_k = root[k // each], crossed[k // each]
        whole = rows - rows @ crossed_k @ root_k.T + shift[k]
        second = np.einsum("n,ni,nj->ij", of_rows, whole, whole) + of_rows.sum() * root_k @ root_k.T
        expected = np.concatenate([[of_rows.sum()], of_rows @ whole, pack_symmetric(second)])
        assert completed[k] == approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("d", [2, 5, 12])
def test_patterns_together_are_patterns_one_by_one(d, rng):
    precision, mean = drawn(rng, d, 1)
    peak, whitener = rng.normal(size=len(mean)), np.tril(rng.normal(size=(d, d))) + 3 * np.eye(d)
    patterns = [[0], [], [*range(d - 1)], [d - 1]]
    columns, ends = np.concatenate(patterns).astype(np.intp), np.cumsum([0, *map(len, patterns)]).astype(np.intp)
    n_cells = 1 + d + d * (d + 1) // 2
    coefficients, untouched = np.full((4, len(mean), n_cells), 7.0), np.full((len(mean), n_cells), 7.0)
    assert _hidden_cells.coefficients(precision, mean, peak, whitener, columns, ends, coefficients)
    sums, total = rng.normal(size=coefficients.shape), rng.normal(size=untouched.shape)
    expected = total.copy()
    _hidden_cells.add_completed(precision, mean, whitener, columns, ends, sums, total)
    for hidden, of_pattern, some in zip(patterns, coefficients, sums):
        if not hidden:
            assert np.array_equal(of_pattern, untouched)
            expected += some
            continue
        root, crossed, shift, log_det, linear, products = hidden_from(precision, mean, whitener[:, hidden].copy())
        at_zero = peak + (len(hidden) * np.log(2 * np.pi) - log_det - (linear * mean).sum(axis=1)) / 2
        assert of_pattern == approx(np.column_stack([at_zero, linear, products]), rel=1e-9, abs=1e-9)
        completed = np.empty(some.shape)
        _hidden_cells.complete(some, root, crossed, shift, completed)
        expected += completed
    assert total == approx(expected, rel=1e-9, abs=1e-9)
    assert not _hidden_cells.coefficients(-precision, mean, peak, whitener, columns, ends, coefficients)


def test_precisions_that_are_not_positive_are_told():
    precision = -np.eye(2)[None]
    empty = np.empty((1, 2, 1)), np.empty((1, 2, 1)), np.empty((1, 2)), np.empty(1), np.empty((1, 2)), np.empty((1, 3))
    assert not _hidden_cells.hide(precision, np.zeros((1, 2)), np.ones((2, 1)), *empty)
