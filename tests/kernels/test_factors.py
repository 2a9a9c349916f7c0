"""Sums over rows of factor analyzers, by their definition: few and many members, rows and columns."""

import numpy as np
import pytest

from skvbem._kernels import _factors
from skvbem._numerics import pack_symmetric


@pytest.mark.parametrize("n_members", [1, 3, 4, 9])
@pytest.mark.parametrize(("d", "n"), [(1, 1), (3, 15), (5, 64), (2, 130), (0, 4), (4, 0)])
def test_squares_are_weighted_over_columns_and_over_rows(rng, n_members, d, n):
    whole = rng.normal(size=(d, n + 7))
    for y in (whole[:, 3 : 3 + n], np.ascontiguousarray(whole[:, :n])):
        by_column, by_row = rng.normal(size=(n_members, d)), rng.normal(size=(n_members, n))
        of_rows, of_columns = np.full((n_members, n), np.nan), np.full((n_members, d), np.nan)
        _factors.weigh_squares(y, by_column, of_rows)
        _factors.sum_squares(y, by_row, of_columns)
        np.testing.assert_allclose(of_rows, by_column @ y**2, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(of_columns, by_row @ (y**2).T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 128, 129, 300])
@pytest.mark.parametrize(("n_members", "n_regressors"), [(1, 1), (3, 4)])
def test_regressors_are_weighted_and_multiplied(rng, n, n_members, n_regressors):
    weight, regressors = rng.random((n_members, n)), rng.normal(size=(n_members, n_regressors, n))
    weighted, products = np.empty(regressors.shape), np.empty((n_members, n_regressors * (n_regressors + 1) // 2))
    _factors.weigh(weight, regressors, weighted, products)
    np.testing.assert_array_equal(weighted, weight[:, None] * regressors)
    expected = pack_symmetric(weighted @ regressors.swapaxes(-1, -2))
    np.testing.assert_allclose(products, expected, rtol=1e-12, atol=1e-12)
