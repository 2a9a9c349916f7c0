"""Jobs of people who come from factor_analyzer, psych and factanal, with R's printed figures or matrix algebra."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import FactorAnalysis

from skvbem import VBFactorAnalysis
from skvbem.datasets import load_ability_tests, make_rows_with_moments

pd = pytest.importorskip("pandas")
approx = pytest.approx


@pytest.fixture(scope="module")
def tests():
    return load_ability_tests(as_frame=True)


@pytest.fixture(scope="module")
def wines():
    X = load_wine(as_frame=True).data
    return (X - X.mean()) / X.std(ddof=0)


def test_factanal_of_a_covariance_matrix(tests):
    """'factanal(factors = 2, covmat = ability.cov)': uniquenesses, chi-square, p value of R's manual."""
    X, n = tests.data, tests.sample_weight
    model = VBFactorAnalysis(2, method="ml", tol=1e-9, random_state=0).fit(X, sample_weight=n)
    indices = model.fit_indices(X, n)
    np.testing.assert_allclose(model.uniquenesses_, [0.455, 0.589, 0.218, 0.769, 0.052, 0.334], atol=6e-4)
    assert (round(indices.chi2, 2), indices.degrees_of_freedom) == (6.11, 4)
    assert indices.p_value == approx(0.191, abs=5e-4)


def test_varimax_loadings(tests):
    """'Print the loadings, rotated by varimax.' R stops its varimax at 1e-5, which the third digit shows."""
    model = VBFactorAnalysis(2, method="ml", rotation="varimax", random_state=0)
    loadings = model.fit(tests.data, sample_weight=tests.sample_weight).standardized_loadings_
    printed = [[0.499, 0.543], [0.156, 0.622], [0.206, 0.860], [0.109, 0.468], [0.956, 0.182], [0.785, 0.225]]
    np.testing.assert_allclose(loadings, printed, atol=4e-3)


def test_a_correlation_matrix_from_a_paper(tests):
    """'I have a correlation matrix and n = 112, no rows.' Scale changes no uniqueness."""
    deviations = np.sqrt(np.diag(tests.covariance))
    rows = make_rows_with_moments(np.zeros(6), tests.covariance / np.outer(deviations, deviations), 112)
    model = VBFactorAnalysis(2, method="ml", tol=1e-9, random_state=0).fit(rows.data, sample_weight=rows.sample_weight)
    np.testing.assert_allclose(model.uniquenesses_, [0.455, 0.589, 0.218, 0.769, 0.052, 0.334], atol=6e-4)


def test_the_likelihood_of_scikit_learn(wines):
    """'FactorAnalysis(3) of standardized columns.'"""
    ours = VBFactorAnalysis(3, method="ml", random_state=0).fit(wines)
    theirs = FactorAnalysis(3, svd_method="lapack", tol=1e-5, max_iter=5000).fit(wines)
    assert ours.score(wines) == approx(theirs.score(wines), abs=1e-5)


def test_scores_of_people(wines):
    """'Regression scores (Thomson) of each row.'"""
    model = VBFactorAnalysis(2, method="ml", rotation="varimax", random_state=0).fit(wines)
    expected = (wines - model.mean_) @ np.linalg.solve(model.get_covariance(), model.loadings_)
    np.testing.assert_allclose(model.transform(wines), expected, atol=1e-9)


def test_gaps_in_a_questionnaire(wines):
    """'Fill in what is missing from what is there.' The conditional mean of a normal distribution."""
    gaps = wines.copy()
    gaps.iloc[::4, [0, 5]] = np.nan
    model = VBFactorAnalysis(2, method="ml", random_state=0).fit(gaps)
    sigma, there = model.get_covariance(), [c for c in range(13) if c not in (0, 5)]
    weights = np.linalg.solve(sigma[np.ix_(there, there)], sigma[np.ix_(there, [0, 5])])
    expected = model.mean_[[0, 5]] + (gaps.iloc[::4, there] - model.mean_[there]).to_numpy() @ weights
    np.testing.assert_allclose(model.impute(gaps).iloc[::4, [0, 5]], expected, atol=1e-6)


def test_how_many_factors(tests):
    """'Two factors, as the test says?' The bound's number, and each bound beside it."""
    X, n = tests.data, tests.sample_weight
    assert VBFactorAnalysis(random_state=0).fit(X, sample_weight=n).n_factors_ == 2
    bounds = {q: VBFactorAnalysis(q, random_state=0).fit(X, sample_weight=n).lower_bound_ for q in (1, 2, 3)}
    assert pd.Series(bounds).idxmax() == 2
