"""ln Gamma, digamma, rising factorials against many digits, over all doubles that concentrations may be; factors."""

import mpmath
import numpy as np
import pytest
from scipy.special import digamma as scipy_digamma
from scipy.special import gammaln

from skvbem._numerics import (
    digamma,
    inverse_of_lower,
    log_det_one_plus,
    log_gamma,
    log_rising,
    safe_cholesky,
    safe_log,
    times_log,
)

approx = pytest.approx

WIDE = np.concatenate([10.0 ** np.arange(-300, 16), np.arange(1, 60) / 4, 15.9 + np.arange(20) / 100])
NEAR = np.concatenate([x + np.linspace(-1e-3, 1e-3, 9) for x in (1.0, 1.4616321449683622, 2.0, 16.0)])


def precise(function, *arguments):
    with mpmath.workdps(50):
        return np.array([float(function(*map(mpmath.mpf, map(float, row)))) for row in zip(*arguments)])


def test_log_gamma_over_all_scales():
    exact = precise(mpmath.loggamma, WIDE)
    assert log_gamma(WIDE) == approx(exact, rel=4e-15, abs=8e-15)


def test_digamma_over_all_scales():
    exact = precise(mpmath.digamma, WIDE)
    assert digamma(WIDE) == approx(exact, rel=4e-15, abs=8e-15)


def test_near_zeros_and_where_the_series_takes_over():
    assert log_gamma(NEAR) == approx(precise(mpmath.loggamma, NEAR), rel=4e-15, abs=8e-15)
    assert digamma(NEAR) == approx(precise(mpmath.digamma, NEAR), rel=4e-15, abs=8e-15)


def test_random_arguments_against_scipy(rng):
    x = 10.0 ** rng.uniform(-10, 10, size=(7, 11, 13))
    assert log_gamma(x).shape == x.shape
    assert log_gamma(x) == approx(gammaln(x), rel=1e-14, abs=1e-14)
    assert digamma(x) == approx(scipy_digamma(x), rel=1e-14, abs=1e-14)


def test_published_values():
    assert digamma(np.array([1.0, 0.5])) == approx([-0.577215664901532861, -1.963510026021423479], abs=1e-15)
    assert log_gamma(np.array([1.0, 2.0, 0.5])) == approx([0, 0, np.log(np.pi) / 2], abs=4e-15)


def test_exp_of_digamma_is_below_its_argument():
    x = 10.0 ** np.linspace(-6, 6, 200)
    assert np.all(np.exp(digamma(x)) < x)


def test_below_the_normal_doubles_values_stay_finite():
    x = np.array([1e-308, 1e-310, 1e-320, 5e-324])
    assert log_gamma(x) == approx(-np.log(x), rel=1e-14)
    assert np.all(np.isfinite(digamma(x)))
    assert np.all(digamma(x) <= -1e299)


def test_values_do_not_depend_on_their_neighbors(rng):
    """Vectorized loops have remainders: each position must give the same bits."""
    x = 10.0 ** rng.uniform(-5, 5, size=64)
    together = log_gamma(x), digamma(x)
    for k in range(1, 17):
        assert np.array_equal(log_gamma(x[:k]), together[0][:k])
        assert np.array_equal(digamma(x[k:]), together[1][k:])


def test_empty_and_strided_arrays():
    assert log_gamma(np.zeros(0)).shape == (0,)
    assert log_rising(np.zeros((0, 2)), np.zeros((0, 2))).shape == (0, 2)
    x = np.arange(1.0, 13.0).reshape(3, 4)
    assert log_gamma(x[:, ::2]) == approx(gammaln(x[:, ::2]), rel=1e-14, abs=4e-15)
    assert digamma(x.T) == approx(scipy_digamma(x.T), rel=1e-14)


def test_log_rising_keeps_its_digits():
    """ln Gamma(a + n) - ln Gamma(a), also where both are 1e13 and their difference is 1."""
    a = 10.0 ** np.arange(-8, 13)
    for n in (1e-3, 1.0, 2.5, 40.0, 1e4, 1e9, 1e13):
        counts = np.full_like(a, n)
        exact = precise(lambda a, n: mpmath.loggamma(a + n) - mpmath.loggamma(a), a, counts)
        assert log_rising(a, counts) == approx(exact, rel=1e-13, abs=1e-14), n


def test_log_rising_of_a_whole_number_is_a_sum_of_logarithms(rng):
    for a in (0.3, 31.9, 32.0, 32.1, 1e6):
        for n in range(12):
            expected = np.log(a + np.arange(n)).sum()
            assert log_rising(np.array(a), np.array(float(n))) == approx(expected, rel=1e-13, abs=1e-13)


def test_log_rising_by_nothing_is_nothing():
    assert np.all(log_rising(WIDE, np.zeros_like(WIDE)) == 0)


def test_log_rising_broadcasts():
    a, n = np.array([[0.5], [50.0]]), np.array([1.0, 2.0, 3.0])
    assert log_rising(a, n) == approx(gammaln(a + n) - gammaln(a), rel=1e-12)


def test_logarithms_of_zero():
    assert safe_log(np.array([0.0, 1.0])).tolist() == [-np.inf, 0.0]
    assert times_log(np.array([0.0, 2.0]), np.array([-np.inf, 3.0])).tolist() == [0.0, 6.0]
    assert times_log(np.array([[0.0], [1.0]]), np.array([-np.inf, 3.0])).tolist() == [[0.0, 0.0], [-np.inf, 3.0]]


@pytest.mark.parametrize("n_broken", [0, 1, 7, 40])
def test_factors_of_many_are_those_of_each_alone(n_broken, rng):
    """To the last bit; NaN where there is none, also of a matrix whose pivots are 0 but for rounding."""
    roots = rng.normal(size=(40, 4, 4))
    matrices = roots @ roots.swapaxes(-1, -2)
    broken = rng.permutation(40)[:n_broken]
    matrices[broken] -= (
        rng.uniform(0.5, 2.0, (n_broken, 1, 1)) * np.linalg.eigvalsh(matrices[broken])[:, :1, None] * np.eye(4)
    )
    factors = safe_cholesky(matrices.reshape(8, 5, 4, 4)).reshape(40, 4, 4)
    for matrix, factor in zip(matrices, factors):
        try:
            expected = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            expected = np.full((4, 4), np.nan)
        assert np.array_equal(factor, expected, equal_nan=True)


@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_log_det_of_one_plus_small_and_large_matrices(d, rng):
    """Against fifty digits, also where the matrix is lost beside the identity."""
    a = rng.standard_normal((2, 3, d, d))
    a = a @ a.swapaxes(-1, -2) * np.array([1e-18, 1.0, 1e6])[:, None, None]
    found = log_det_one_plus(a)
    with mpmath.workdps(50):
        exact = [
            float(mpmath.log(mpmath.det(mpmath.eye(d) + mpmath.matrix(each.tolist())))) for each in a.reshape(-1, d, d)
        ]
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found.ravel(), exact, rtol=1e-12)


def test_log_det_of_what_is_not_positive_is_not_a_number():
    a = np.array([[[0.0, 2.0], [2.0, 0.0]], [[-3.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    assert np.isnan(log_det_one_plus(a)).tolist() == [True, True, False]
    assert a[0, 1, 1] == 0.0  # what is given is left as it is


@pytest.mark.parametrize("d", [0, 3, 23, 24, 50])
def test_inverses_of_lower_triangles(d, rng):
    factors = np.tril(rng.standard_normal((2, 3, d, d))) / max(d, 1) + np.eye(d)
    factors[0, 1] = np.nan  # of a matrix that is not positive
    inverse = inverse_of_lower(factors)
    assert inverse.shape == factors.shape
    kept = [0, 2, 3, 4, 5]
    product = (factors @ inverse).reshape(6, d, d)[kept]
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(d), product.shape), atol=1e-12)
    assert not np.isfinite(inverse[0, 1]).any()
