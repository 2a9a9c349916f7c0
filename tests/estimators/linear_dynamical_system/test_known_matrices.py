"""Systems of known matrices against the joint Gaussian of all states and measurements, one dense covariance."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from skvbem import VBLinearDynamicalSystem, load, save

approx = pytest.approx
rng = np.random.default_rng(3)
T, K, P = 5, 2, 3
A, B = np.array([[0.9, 0.3], [-0.2, 0.7]]), rng.normal(size=(K, 1))
C, D, OFFSET = rng.normal(size=(P, K)), rng.normal(size=(P, 2)), np.array([1.0, -2.0, 50.0])
NOISE, MEAN, FIRST = np.array([0.5, 2.0, 1e-3]), np.array([1.0, -1.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
U, V = rng.normal(size=(T + 2, 1)), rng.normal(size=(T + 2, 2))
X = rng.normal(size=(T, P)) + OFFSET
GAPS = X.copy()
GAPS[1, 0], GAPS[3] = np.nan, np.nan
MATRICES = {
    "offset": OFFSET, "input": B, "output_input": D, "initial_mean": MEAN, "initial_covariance": FIRST, "n_draws": 3,
}  # fmt: skip
AHEAD = {"inputs": U[:T], "output_inputs": V[:T]}


@pytest.fixture(scope="module")
def system():
    return VBLinearDynamicalSystem.from_parameters(A, C, NOISE, **MATRICES)


def joint(n):
    """Mean and covariance of the states of n steps, then of their measurements, one by one."""
    move = np.zeros((n * K, n * K))  # states are `move` times what comes new at each step
    mean, new = np.zeros(n * K), np.zeros((n * K, n * K))
    for t in range(n):
        now = slice(t * K, (t + 1) * K)
        for s in range(t + 1):
            move[now, s * K : (s + 1) * K] = np.linalg.matrix_power(A, t - s)
        mean[now] = MEAN if t == 0 else B @ U[t]
        new[now, now] = FIRST if t == 0 else np.eye(K)
    mean, covariance = move @ mean, move @ new @ move.T
    load_ = np.kron(np.eye(n), C)
    of_y = load_ @ mean + np.concatenate([OFFSET + D @ V[t] for t in range(n)])
    of_both = np.block([[covariance, covariance @ load_.T], [load_ @ covariance, load_ @ covariance @ load_.T]])
    of_both[n * K :, n * K :] += np.diag(np.tile(NOISE, n))
    return np.concatenate([mean, of_y]), of_both


def given_cells(n, rows):
    """Mean and covariance of all of n steps given the observed cells of the first rows."""
    mean, covariance = joint(n)
    cells = np.concatenate([rows.ravel(), np.full((n - len(rows)) * P, np.nan)])
    at = n * K + np.flatnonzero(~np.isnan(cells))
    gain = covariance[:, at] @ np.linalg.inv(covariance[np.ix_(at, at)])
    return mean + gain @ (cells[at - n * K] - mean[at]), covariance - gain @ covariance[at]


@pytest.mark.parametrize("rows", [X, GAPS])
def test_log_likelihood(system, rows):
    mean, covariance = joint(T)
    at = T * K + np.flatnonzero(~np.isnan(rows.ravel()))
    expected = multivariate_normal(mean[at], covariance[np.ix_(at, at)]).logpdf(rows.ravel()[at - T * K])
    assert system.score_samples(rows, **AHEAD) == approx(expected, rel=1e-10)
    assert system.score(rows, **AHEAD) == approx(expected / T, rel=1e-10)


@pytest.mark.parametrize("rows", [X, GAPS])
def test_states(system, rows):
    mean, covariance = given_cells(T, rows)
    smoothed, spread = system.transform(rows, return_cov=True, **AHEAD)
    assert smoothed.ravel() == approx(mean[: T * K], abs=1e-9)
    filtered, spreads = system.filter(rows, return_cov=True, **AHEAD)
    for t in range(T):
        now = slice(t * K, (t + 1) * K)
        assert spread[t] == approx(covariance[now, now], abs=1e-9)
        until, of_until = given_cells(T, rows[: t + 1])
        assert filtered[t] == approx(until[now], abs=1e-9)
        assert spreads[t] == approx(of_until[now, now], abs=1e-9)


def test_forecasts_and_missing_cells(system):
    mean, covariance = given_cells(T + 2, GAPS)
    ahead = system.forecast(GAPS, n_steps=2, future_inputs=U[T:], future_output_inputs=V[T:], **AHEAD)
    assert ahead.mean.ravel() == approx(mean[-2 * P :], abs=1e-9)
    assert ahead.variance.ravel() == approx(np.diag(covariance)[-2 * P :], abs=1e-9)
    filled, variance = system.impute(GAPS, return_variance=True, **AHEAD)
    cells = (T + 2) * K + np.flatnonzero(np.isnan(GAPS).ravel())
    assert filled[np.isnan(GAPS)] == approx(mean[cells], abs=1e-9)
    assert variance[np.isnan(GAPS)] == approx(np.diag(covariance)[cells], abs=1e-9)


def test_draws(system):
    n = 4000
    drawn, _ = system.sample([3] * n, np.tile(U[:3], (n, 1)), np.tile(V[:3], (n, 1)), random_state=0)
    mean, covariance = joint(3)
    rows = np.stack(drawn).reshape(n, -1)
    error = np.sqrt(np.diag(covariance)[3 * K :] / n)
    assert np.abs((rows.mean(axis=0) - mean[3 * K :]) / error).max() < 4.5
    assert np.cov(rows.T) == approx(covariance[3 * K :, 3 * K :], abs=0.12 * np.diag(covariance).max())


def test_any_covariance_of_moves():
    """States of another unit are the same states, in that unit."""
    Q = np.array([[2.0, 0.6], [0.6, 0.5]])
    L = np.linalg.cholesky(Q)
    inverse = np.linalg.inv(L)
    of_first = {"initial_mean": inverse @ MEAN, "initial_covariance": inverse @ FIRST @ inverse.T}
    system = VBLinearDynamicalSystem.from_parameters(inverse @ A @ L, C @ L, NOISE, **of_first)
    covariance = A @ FIRST @ A.T + Q
    mean, of_y = C @ A @ MEAN, C @ covariance @ C.T + np.diag(NOISE)
    rows = np.array([[np.nan] * P, [0.3, -0.4, 1.0]])
    assert system.score_samples(rows) == approx(multivariate_normal(mean, of_y).logpdf(rows[1]), rel=1e-10)
    gain = covariance @ C.T @ np.linalg.inv(of_y)
    assert L @ system.filter(rows)[1] == approx(A @ MEAN + gain @ (rows[1] - mean), abs=1e-9)


def test_published_and_saved(system, tmp_path):
    again = {name: getattr(system, f"{name}_") for name in ("offset", "input", "output_input", "initial_mean")}
    again["initial_covariance"] = system.initial_covariance_
    other = VBLinearDynamicalSystem.from_parameters(
        system.transition_, system.loadings_, system.noise_variance_, columns=["a", "b", "c"], **again
    )
    for name, matrix in (("transition_", A), ("loadings_", C), ("noise_variance_", NOISE), ("offset_", OFFSET)):
        assert getattr(system, name) == approx(matrix, rel=1e-12)
    assert list(other.feature_names_in_) == ["a", "b", "c"]
    save(other, tmp_path / "system.skvbem")
    loaded = load(tmp_path / "system.skvbem")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert np.array_equal(loaded.transform(frame, **AHEAD), other.transform(frame, **AHEAD))
    assert other.transform(frame, **AHEAD) == approx(system.transform(X, **AHEAD), abs=1e-9)
    assert "by parameters" in repr(system.summary()) or "given" in repr(system.summary())
    for name in ("standardized_loadings_", "lower_bound_"):
        with pytest.raises(AttributeError, match="its parameters were given"):
            getattr(system, name)
    with pytest.raises(ValueError, match="needs a fit to data"):
        system.log_evidence(X, **AHEAD)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"transition": A[:1]}, "'loadings'|'transition'"),
        ({"transition": A * 1j}, "'transition' of VBLinearDynamicalSystem must be an array of finite numbers"),
        ({"loadings": C.T}, "'loadings'"),
        ({"noise_variance": NOISE * 0}, "'noise_variance' of VBLinearDynamicalSystem must be > 0"),
        ({"noise_variance": 1.0}, "'noise_variance'"),
        ({"offset": [np.nan] * P}, "'offset'"),
        ({"input": B.T}, "'input'"),
        ({"initial_covariance": -FIRST}, "'initial_covariance' .* positive definite"),
        ({"initial_covariance": A}, "'initial_covariance' .* symmetric"),
        ({"columns": ["a", "a", "b"]}, "'columns' parameter of from_parameters must be 3 different names"),
    ],
)
def test_what_is_no_system_is_refused(wrong, text):
    matrices = {"transition": A, "loadings": C, "noise_variance": NOISE} | wrong
    with pytest.raises((ValueError, TypeError), match=text):
        VBLinearDynamicalSystem.from_parameters(**matrices)
