"""Fit indices of factor analyses: published tests, definitions, and what must not change them."""

import numpy as np
import pytest
from estimators.inputs import refused
from scipy.stats import chi2, ncx2
from sklearn.datasets import load_iris, load_wine

from skvbem import VBFactorAnalysis, VBMixture
from skvbem.datasets import load_ability_tests
from skvbem.emissions import Gaussian
from skvbem.fitted.rotations import ROTATIONS

approx = pytest.approx


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


WINE = standardized(load_wine().data)


@pytest.mark.parametrize(
    ("q", "statistic", "df", "uniquenesses", "log_likelihood"),
    [
        (1, 75.1796, 9, [0.5346, 0.8526, 0.7482, 0.9101, 0.2317, 0.2797], -7.622839470),
        (2, 6.1066, 4, [0.4552, 0.5893, 0.2182, 0.7694, 0.0525, 0.3336], -7.301747061),
    ],
)
def test_ability_tests_have_the_published_test(q, statistic, df, uniquenesses, log_likelihood):
    """The chi-square of Bartlett and the uniquenesses that R's factanal prints of these covariances."""
    tests = load_ability_tests()
    model = VBFactorAnalysis(q, method="ml", tol=1e-10, random_state=0)
    model.fit(tests.data, sample_weight=tests.sample_weight)
    indices = model.fit_indices(tests.data, tests.sample_weight)
    assert indices.chi2 == approx(statistic, abs=1e-4)
    assert indices.degrees_of_freedom == df
    assert indices.p_value == approx(chi2.sf(statistic, df), rel=1e-3)
    np.testing.assert_allclose(model.uniquenesses_, uniquenesses, atol=6e-5)
    deviations = np.sqrt(np.diag(tests.covariance))
    assert model.log_likelihood_ / 112 + np.log(deviations).sum() == approx(log_likelihood, abs=1e-8)


def test_indices_are_those_of_their_definitions():
    n, d, q = *WINE.shape, 2
    model = VBFactorAnalysis(q, method="ml", tol=1e-10, random_state=0).fit(WINE)
    indices = model.fit_indices(WINE)
    S, sigma = np.cov(WINE.T, ddof=0), model.get_covariance()
    fit = np.linalg.slogdet(sigma)[1] - np.linalg.slogdet(S)[1] + np.trace(S @ np.linalg.inv(sigma)) - d
    statistic, df = (n - 1 - (2 * d + 5) / 6 - 2 * q / 3) * fit, ((d - q) ** 2 - d - q) // 2
    null, df_null = -(n - 1 - (2 * d + 5) / 6) * np.linalg.slogdet(S)[1], d * (d - 1) // 2
    assert (indices.chi2, indices.degrees_of_freedom) == (approx(statistic, rel=1e-7), df)
    assert indices.rmsea == approx(np.sqrt((statistic / df - 1) / (n - 1)))
    for end, probability in zip(indices.rmsea_interval, (0.95, 0.05)):
        assert ncx2.cdf(statistic, df, end**2 * df * (n - 1)) == approx(probability, abs=1e-7)
    assert indices.cfi == approx(1 - (statistic - df) / (null - df_null))
    assert indices.tli == approx((null / df_null - statistic / df) / (null / df_null - 1))
    assert indices.srmr == approx(np.sqrt(((S - sigma)[np.tril_indices(d)] ** 2).mean()), abs=1e-6)
    assert indices.n_free_parameters == d + d * q - q * (q - 1) // 2 + d
    assert indices.aic == approx(model.aic(WINE))
    assert indices.bic == approx(model.bic(WINE))


def test_where_chance_would_do_as_well_nothing_is_amiss(rng):
    X = rng.normal(size=(400, 1)) @ rng.normal(size=(1, 5)) + rng.normal(size=(400, 5))
    indices = VBFactorAnalysis(1, random_state=0).fit(X).fit_indices(X)
    assert indices.p_value > 0.01
    assert indices.rmsea_interval[0] == 0.0
    assert 0.98 < indices.cfi <= 1.0


@pytest.fixture(scope="module")
def plain():
    """A fit without a rotation, and its indices."""
    model = VBFactorAnalysis(3, n_init=1, random_state=0).fit(WINE)
    return model, model.fit_indices(WINE)


@pytest.mark.parametrize("rotation", ROTATIONS)
def test_a_rotation_changes_no_index_bound_or_prediction(plain, rotation):
    plain, indices = plain
    turned = VBFactorAnalysis(3, rotation=rotation, n_init=1, random_state=0).fit(WINE)
    assert turned.lower_bound_ == plain.lower_bound_
    assert turned.fit_indices(WINE) == indices
    np.testing.assert_array_equal(turned.score_samples(WINE), plain.score_samples(WINE))
    np.testing.assert_array_equal(turned.get_covariance(), plain.get_covariance())
    again = [model.inverse_transform(model.transform(WINE)) for model in (plain, turned)]
    np.testing.assert_allclose(*again, atol=1e-10)


def test_the_method_of_the_fit_makes_no_difference():
    """Indices are those of maximum likelihood, which is fitted where the fit is another."""
    tight = {"tol": 1e-8, "random_state": 0}
    one, other = (VBFactorAnalysis(2, method=method, **tight).fit(WINE).fit_indices(WINE) for method in ("vb", "ml"))
    assert one.chi2 == approx(other.chi2, abs=1e-5)
    assert one.degrees_of_freedom == other.degrees_of_freedom


def test_gaps_are_summed_out_and_empty_rows_count_for_nothing(rng):
    X = WINE[:, :6].copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    model = VBFactorAnalysis(2, method="ml", tol=1e-9, random_state=0)
    indices = model.fit(X).fit_indices(X)
    saturated = VBMixture(1, emission=Gaussian("full"), method="ml", tol=1e-9).fit(X)
    n, d = (~np.isnan(X).all(axis=1)).sum(), 6
    between = 2 * (saturated.log_likelihood_ - model.log_likelihood_) / n
    assert indices.chi2 == approx((n - 1 - (2 * d + 5) / 6 - 4 / 3) * between, abs=1e-4)
    padded = np.vstack([X, np.full((20, 6), np.nan)])
    again = model.fit(padded).fit_indices(padded)
    for name in ("chi2", "rmsea", "cfi", "tli", "srmr", "bic"):
        assert getattr(again, name) == approx(getattr(indices, name), abs=1e-5)


def test_weights_are_repeats(rng):
    weight = rng.integers(1, 4, len(WINE))
    model = VBFactorAnalysis(2, random_state=0)
    weighted = model.fit(WINE, sample_weight=weight).fit_indices(WINE, weight)
    repeated = np.repeat(WINE, weight, axis=0)
    assert weighted.chi2 == approx(model.fit(repeated).fit_indices(repeated).chi2, abs=1e-4)


def test_one_noise_leaves_more_degrees_of_freedom():
    model = VBFactorAnalysis(2, noise="spherical", random_state=0).fit(WINE)
    assert model.fit_indices(WINE).degrees_of_freedom == 13 * 14 // 2 - (13 * 2 - 1 + 1)


def test_without_degrees_of_freedom_there_is_no_test():
    X = load_iris().data
    indices = VBFactorAnalysis(2, random_state=0).fit(X).fit_indices(X)
    assert indices.degrees_of_freedom == 0
    assert np.isnan([indices.p_value, indices.rmsea, indices.tli]).all()
    assert "0 degrees of freedom" in repr(indices)


def test_where_no_covariance_is_most_likely_there_are_no_indices(rng):
    X = rng.normal(size=(6, 8))
    model = VBFactorAnalysis(1, random_state=0).fit(X)
    refused(ValueError, "6 rows of 8 columns", model.fit_indices, X)
    X = rng.normal(size=(60, 3))
    X = np.column_stack([X, X[:, 0]])
    refused(ValueError, "functions of each other", VBFactorAnalysis(1, random_state=0).fit(X).fit_indices, X)
    refused(ValueError, "is other data", model.fit_indices, rng.normal(size=(6, 8)))
