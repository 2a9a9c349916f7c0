"""Fit indices of networks of numbers: against semopy, the likelihood of all rows, and factor analysis."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from skvbem import VBFactorAnalysis, VBNetwork

#: By semopy 2.3.11: degrees of freedom, chi-square, CFI, TLI and RMSEA of a path model and of one factor.
PATHS = 3, 31.89322542, 0.92047107, 0.84094214
FACTOR = 2, 10.19723912, 0.97743700, 0.93231100


def four_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = 0.8 * x + rng.normal(size=200)
    z = 0.5 * y + 0.3 * x + rng.normal(size=200)
    return np.column_stack([x, y, z, 0.7 * z + 0.3 * x + rng.normal(size=200)])


PATH = [("x0", "x1"), ("x1", "x2"), ("x2", "x3")]


@pytest.mark.parametrize(("structure", "latents", "expected"), [(PATH, None, PATHS), (None, {"f": "number"}, FACTOR)])
@pytest.mark.parametrize("method", ["ml", "vb"])
def test_they_are_those_of_semopy(structure, latents, expected, method):
    X = four_columns()
    model = VBNetwork(structure, latents=latents, method=method, tol=1e-10, max_iter=5000, random_state=0).fit(X)
    indices = model.fit_indices(X)
    df, chi2, cfi, tli = expected
    assert indices.degrees_of_freedom == df
    np.testing.assert_allclose([indices.chi2, indices.cfi, indices.tli], [chi2, cfi, tli], atol=1e-4)
    np.testing.assert_allclose(indices.rmsea, np.sqrt((chi2 / df - 1) / 199), atol=1e-4)


@pytest.mark.parametrize("structure", [PATH, [edge[::-1] for edge in PATH]])
def test_residual_correlations_are_those_of_the_path_model(structure):
    """The correlation that a chain implies is the product along it, in either direction."""
    X = four_columns()
    indices = VBNetwork(structure, method="ml").fit(X).fit_indices(X)
    r = np.corrcoef(X.T)
    implied = {(2, 0): r[1, 0] * r[2, 1], (3, 1): r[2, 1] * r[3, 2], (3, 0): r[1, 0] * r[2, 1] * r[3, 2]}
    squares = sum((r[pair] - each) ** 2 for pair, each in implied.items())
    np.testing.assert_allclose(indices.srmr, np.sqrt(squares / 10), rtol=1e-4)


def test_with_missing_cells_both_likelihoods_are_those_of_what_was_observed():
    rng = np.random.default_rng(1)
    X = four_columns()[:60, :3]
    X[rng.random(X.shape) < 0.2] = np.nan
    seen_in_rows = ~np.isnan(X)
    patterns = [(seen, X[(seen_in_rows == seen).all(axis=1)]) for seen in np.unique(seen_in_rows, axis=0) if seen.any()]

    def minus_log_likelihood(of, covariance_of):
        mean, covariance = of[:3], covariance_of(of[3:])
        return -sum(
            multivariate_normal.logpdf(rows[:, seen], mean[seen], covariance[np.ix_(seen, seen)]).sum()
            for seen, rows in patterns
        )

    def any_covariance(v):
        root = np.zeros((3, 3))
        root[np.tril_indices(3)] = v
        return root @ root.T

    def of_chain(v):
        total = np.linalg.inv(np.eye(3) - np.diag(v[:2], -1))
        return total @ np.diag(np.exp(v[2:])) @ total.T

    one, two = (
        minimize(minus_log_likelihood, np.r_[np.nanmean(X, axis=0), start], (each,), method="BFGS").fun
        for each, start in ((any_covariance, [1, 0, 1, 0, 0, 1]), (of_chain, [0.5, 0.5, 0, 0, 0]))
    )
    model = VBNetwork(PATH[:2], method="ml", tol=1e-10, max_iter=5000).fit(X)
    indices = model.fit_indices(X)
    assert indices.degrees_of_freedom == 1
    np.testing.assert_allclose([indices.chi2, indices.log_likelihood], [2 * (two - one), -two], atol=1e-4)


def test_one_factor_is_that_of_factor_analysis():
    """But for Bartlett's factor."""
    X = four_columns()
    ours = VBNetwork(latents={"f": "number"}, method="ml", tol=1e-10, max_iter=5000, random_state=0).fit(X)
    theirs = VBFactorAnalysis(1, method="ml", tol=1e-10, max_iter=5000, random_state=0).fit(X).fit_indices(X)
    indices, bartlett = ours.fit_indices(X), 200 - 1 - 13 / 6 - 2 / 3
    np.testing.assert_allclose(indices.chi2 * bartlett / 200, theirs.chi2, rtol=1e-4)
    np.testing.assert_allclose(indices.srmr, theirs.srmr, rtol=1e-4)


@pytest.mark.parametrize("n_factors", [1, 2])
def test_degrees_of_freedom_of_factors_that_turn_are_those_of_factor_analysis(n_factors):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, n_factors)) @ rng.normal(size=(n_factors, 6)) + rng.normal(size=(100, 6))
    latents = {f"f{k}": "number" for k in range(n_factors)}
    structure = {f"x{k}": list(latents) for k in range(6)}
    options = {"method": "ml", "n_init": 1, "random_state": 0}
    ours = VBNetwork(structure, latents=latents, **options).fit(X).fit_indices(X)
    theirs = VBFactorAnalysis(n_factors, **options).fit(X).fit_indices(X)
    assert ours.degrees_of_freedom == theirs.degrees_of_freedom
    assert ours.n_free_parameters == theirs.n_free_parameters


def test_a_hidden_number_above_two_columns_counts_as_their_covariance():
    X = four_columns()
    for structure, latents in (([("x0", "x1")], None), ({"x0": ["f"], "x1": ["f"]}, {"f": "number"})):
        model = VBNetwork(structure, latents=latents, method="ml", n_init=2, random_state=0).fit(X[:, :2])
        indices = model.fit_indices(X[:, :2])
        assert (indices.degrees_of_freedom, indices.n_free_parameters) == (0, 5)


def test_networks_with_categories_are_refused_and_the_advice_works():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 50)
    X = np.column_stack([group, group + rng.normal(size=50)])
    model = VBNetwork([("x0", "x1")], emission={"categorical": [0], "gaussian": [1]}).fit(X)
    with pytest.raises(ValueError, match="Networks with categories have 'goodness_of_fit'"):
        model.fit_indices(X)
    assert np.isfinite(model.goodness_of_fit(X).log_likelihood)
