"""Networks of measurements that are something else, too: regressions with missing cells, mixtures, joint normals."""

from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from skvbem import VBMixture, VBNetwork
from skvbem.emissions import Gaussian, Regression

approx = pytest.approx

TO_THE_END = {"n_init": 3, "init": "random", "random_state": 0, "tol": 1e-12}


def joint_normal(theta):
    """Mean and covariance of u, v, y by regressions on those before: constants, slopes, ln of variances of noises."""
    constants, noises = theta[:3], np.exp(theta[6:])
    slopes = np.zeros((3, 3))
    slopes[1, 0], slopes[2, 0], slopes[2, 1] = theta[3:6]
    spread = np.linalg.inv(np.eye(3) - slopes)
    return spread @ constants, (spread * noises) @ spread.T


def rows_by_pattern(X):
    """Columns that are observed, and the rows of which these are all."""
    rows = sorted(X.tolist(), key=lambda row: np.isnan(row).tolist())
    patterns = groupby(rows, key=lambda row: np.isnan(row).tolist())
    return [(at, np.array([*part])[:, at]) for missing, part in patterns for at in [np.flatnonzero(~np.array(missing))]]


def minus_log_likelihood(theta, patterns):
    """Of observed cells alone, nats."""
    mean, covariance = joint_normal(theta)
    total = 0.0
    for at, rows in patterns:
        of_these, off = covariance[np.ix_(at, at)], rows - mean[at]
        of_row = np.linalg.slogdet(of_these)[1] + len(at) * np.log(2 * np.pi)
        total += 0.5 * (len(rows) * of_row + (off.T * np.linalg.solve(of_these, off.T)).sum())
    return total


def test_a_regression_with_missing_covariates_has_the_largest_likelihood_of_observed_cells():
    rng = np.random.default_rng(3)
    u = rng.normal(size=60)
    v = 0.6 * u + rng.normal(size=60)
    X = np.column_stack([u, v, 1.0 + 2.0 * u - v + 0.8 * rng.normal(size=60)])
    X[rng.random(X.shape) < [0.25, 0.25, 0.1]] = np.nan
    edges = [("u", "v"), ("u", "y"), ("v", "y")]
    model = VBNetwork(edges, method="ml", n_init=1, random_state=0, tol=1e-12).fit(pd.DataFrame(X, columns=[*"uvy"]))
    start, patterns = np.zeros(9), rows_by_pattern(X)
    best = minimize(minus_log_likelihood, start, patterns, method="BFGS", jac="3-point", options={"gtol": 1e-6})
    assert model.log_likelihood_ == approx(-best.fun, abs=1e-6)
    u, v, y = (model.parameters_[name] for name in "uvy")
    assert [u["means"][0, 0], v["intercepts"][0, 0], y["intercepts"][0, 0]] == approx(best.x[:3], abs=1e-5)
    assert [*v["coefficients"].ravel(), *y["coefficients"].ravel()] == approx(best.x[3:6], abs=1e-5)
    noises = [u["covariances"][0, 0, 0], v["variances"][0, 0], y["variances"][0, 0]]
    assert noises == approx(np.exp(best.x[6:]), abs=1e-5)
    complete = X[~np.isnan(X).any(axis=1)]
    of_complete = np.linalg.lstsq(np.insert(complete[:, :2], 0, 1.0, axis=1), complete[:, 2], rcond=None)[0]
    assert abs(of_complete[1:] - best.x[4:6]).max() > 0.01  # incomplete rows have a say


def test_a_class_above_a_response_is_a_mixture_of_two_regressions():
    """The bound less that of the regressor, which stands apart."""
    rng = np.random.default_rng(0)
    x, is_first = rng.normal(size=60), rng.random(60) < 0.4
    y = np.where(is_first, 1 + 2 * x, -1 - x) + 0.5 * rng.normal(size=60)
    X = pd.DataFrame({"y": y, "x": x})
    known = {"coefficient_precision_prior": 1.0, "degrees_of_freedom_prior": 1.0, "variance_prior": None}
    mixture = VBMixture(2, emission=Regression(["x"], **known), **TO_THE_END).fit(X)
    network = VBNetwork([("h", "y"), ("x", "y")], latents={"h": 2}, emission=Regression(**known), **TO_THE_END).fit(X)
    regressor = VBNetwork([], emission=Regression(**known)).fit(X[["x"]])
    assert network.lower_bound_ - regressor.lower_bound_ == approx(mixture.lower_bound_, abs=1e-8)
    one = VBMixture(1, emission=Regression(["x"], **known), **TO_THE_END).fit(X)
    assert mixture.lower_bound_ > one.lower_bound_ + 5  # two lines


@pytest.mark.parametrize("order", ["abc", "cab"])
def test_all_edges_below_a_class_are_a_mixture_of_full_covariances(order):
    """The joint prior of nodes is the Normal-Wishart one of the columns, in whichever order edges point."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) * [1.0, 20.0, 0.3] + [0.0, 5.0, -3.0]
    X[:15] += [4.0, 0.0, 1.0]
    scale, dof = 0.5, 3.0
    of_columns = {"covariance_prior": np.diag(scale * X.var(axis=0)), "degrees_of_freedom_prior": dof + 2}
    full = Gaussian("full", mean_precision_prior=1.0, **of_columns)
    mixture = VBMixture(2, emission=full, **TO_THE_END).fit(X)
    joint = Regression(prior="bge", coefficient_precision_prior=scale, degrees_of_freedom_prior=dof)
    edges = [("h", node) for node in order] + [(order[i], order[j]) for j in range(3) for i in range(j)]
    frame = pd.DataFrame(X, columns=[*"abc"])
    network = VBNetwork(edges, latents={"h": 2}, emission=joint, **TO_THE_END).fit(frame)
    assert network.lower_bound_ == approx(mixture.lower_bound_, abs=1e-8)
    assert np.sort(network.predict_proba(frame)) == approx(np.sort(mixture.predict_proba(X)), abs=1e-6)
