"""Maps of the factors of rows: cells after a map by dense algebra, and what makes factors white."""

import numpy as np
import pytest

from skvbem._kernels import _factor_map
from skvbem._numerics import pack_symmetric, unpack_symmetric

approx = pytest.approx
N_LANES, N_COMPONENTS, N_MATRICES, N_ROWS = 2, 3, 2, 4


def cells_of(rng, d, n_others=5):
    width = d * (d + 1) // 2
    return rng.normal(size=(N_LANES, N_COMPONENTS * (N_MATRICES * width + N_ROWS * d) + n_others))


def parts_of(cells, d):
    """Packed matrices and rows of each component, and the rest."""
    width = d * (d + 1) // 2
    first = N_COMPONENTS * N_MATRICES * width
    packed = cells[:, :first].reshape(N_LANES, N_COMPONENTS, N_MATRICES, width)
    rows = cells[:, first : first + N_COMPONENTS * N_ROWS * d].reshape(N_LANES, N_COMPONENTS, N_ROWS, d)
    return packed, rows, cells[:, first + N_COMPONENTS * N_ROWS * d :]


@pytest.mark.parametrize("natural", [False, True])
@pytest.mark.parametrize("d", [2, 4, 11])
def test_cells_after_a_map(d, natural, rng):
    """Statistics r r^T and y r of mapped regressors; natural parameters such that no product with them changes."""
    cells, map = cells_of(rng, d), np.eye(d) + 0.3 * rng.normal(size=(N_LANES * N_COMPONENTS, d, d))
    mapped = np.empty(cells.shape)
    _factor_map.map_cells(map, natural, N_MATRICES, N_ROWS, cells, mapped)
    turn = map.reshape(N_LANES, N_COMPONENTS, d, d)
    if natural:
        turn = np.linalg.inv(turn).swapaxes(-1, -2)
    halves = np.where(np.equal(*np.triu_indices(d)), 1.0, 2.0) if natural else 1.0
    (packed, rows, rest), (of_matrices, of_rows, same) = parts_of(cells, d), parts_of(mapped, d)
    matrices = turn[:, :, None] @ unpack_symmetric(packed / halves, d) @ turn[:, :, None].swapaxes(-1, -2)
    assert of_matrices == approx(pack_symmetric(matrices) * halves, rel=1e-9, abs=1e-9)
    assert of_rows == approx(rows @ turn.swapaxes(-1, -2), rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(same, rest)


def test_products_of_statistics_and_natural_parameters_are_what_they_were(rng):
    statistics, natural = cells_of(rng, 5), cells_of(rng, 5)
    map, after = np.eye(5) + 0.3 * rng.normal(size=(N_LANES * N_COMPONENTS, 5, 5)), []
    for cells, is_natural in ((statistics, False), (natural, True)):
        mapped = np.empty(cells.shape)
        _factor_map.map_cells(map, is_natural, N_MATRICES, N_ROWS, cells, mapped)
        after.append(mapped)
    assert (after[0] * after[1]).sum(axis=1) == approx((statistics * natural).sum(axis=1), rel=1e-9)


def white(of_rows, loadings):
    """The map, its gain, and whether factors are usable."""
    n, q = len(of_rows), of_rows.shape[-1] - 1
    root, turned, usable = np.empty((n, q, q)), np.empty(loadings.shape), np.empty(n, dtype=np.uint8)
    _factor_map.roots(of_rows, loadings, root, usable, turned)
    axes = np.ascontiguousarray(np.linalg.eigh(turned.sum(axis=1))[1][..., ::-1])
    map, gain = np.empty(of_rows.shape), np.empty(n)
    _factor_map.whiten(of_rows, root, usable, axes, map, gain)
    return map, gain, usable


def test_factors_become_white_and_their_loadings_orthogonal(rng):
    q, n_rows = 3, 40
    x = rng.normal(size=(n_rows, q)) @ rng.normal(size=(q, q)) + [1.0, -2.0, 0.5]
    regressors = np.column_stack([np.ones(n_rows), x])
    root = rng.normal(size=(q, 7))
    of_rows, loadings = (regressors.T @ regressors)[None], (root @ root.T)[None, None]
    (map,), (gain,), (usable,) = white(of_rows, loadings)
    assert usable
    assert map @ of_rows[0] @ map.T == approx(n_rows * np.eye(1 + q), abs=1e-9)
    undone = np.linalg.inv(map[1:, 1:])
    turned = undone.T @ loadings[0, 0] @ undone
    assert turned == approx(np.diag(np.diagonal(turned)), abs=1e-9)
    assert (np.diff(np.diagonal(turned)) < 0).all()
    assert (np.diagonal(map) > 0).all()
    squares = (x**2).sum() - n_rows * q
    assert gain == approx(n_rows * np.linalg.slogdet(map)[1] + 0.5 * squares, rel=1e-12)


def test_factors_that_hardly_vary_stay_as_they_are(rng):
    """Such as those of no row, a constant one, or two that are one."""
    x = rng.normal(size=(20, 2))
    of_rows = []
    for factors in (x[:0], x * [1.0, 0.0], x[:, [0, 0]] * [1.0, 2.0]):
        regressors = np.column_stack([np.ones(len(factors)), factors])
        of_rows.append(regressors.T @ regressors)
    map, gain, usable = white(np.stack(of_rows), np.ones((3, 1, 2, 2)))
    assert not usable.any()
    np.testing.assert_array_equal(map, np.broadcast_to(np.eye(3), (3, 3, 3)))
    np.testing.assert_array_equal(gain, 0.0)
