"""States that grow where no column shows them: likelihoods and draws of lanes, beside recursions in 80 digits.

The precision of the last state is then what a difference of numbers near 1 leaves, 1e-21 after 100 steps of 1.27.
"""

import numpy as np
import pytest
from models.linear_dynamical_system.linear_systems import problem

from skvbem.families import RegressionPoint
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.linear_dynamical_system import sampling
from skvbem.models.linear_dynamical_system.smoother import Smoother

# The angle between the row of loadings and what is orthogonal to the state that grows, in steps from exactly none.
ANGLES = [0.0, 1e-12, 1e-8, 1e-4, 1.0]


def system(rng, growth, n, angle, missing=0.0):
    """A case, and transition, loadings and precision of a column that all but misses the state that grows."""
    axes = np.eye(2) if angle == 0.0 else rng.normal(size=(2, 2))
    a = axes @ np.diag([0.8, growth]) @ np.linalg.inv(axes)
    across = np.array([axes[1, 1], -axes[0, 1]])
    c = across / np.linalg.norm(across) + angle * axes[:, 1]
    y = rng.normal(size=(n, 1))
    y[1:-1][rng.random((n - 2, 1)) < missing] = np.nan
    case = problem(y, 2, [1.0, 1.0], 2.0)
    point = RegressionPoint(a, np.empty(0)), RegressionPoint(c[None], np.array([2.5]))
    return case, case.model.prior.natural(point)[:, None], a, c


def exact(mpmath, y, a, c, precision):
    """The log likelihood by a recursion over means and covariances of states."""
    a, c = mpmath.matrix(a.tolist()), mpmath.matrix(c.tolist())
    mean, covariance, total = mpmath.zeros(2, 1), mpmath.eye(2), mpmath.mpf(0)
    for t, value in enumerate(y.tolist()):
        if t:
            mean, covariance = a * mean, a * covariance * a.T + mpmath.eye(2)
        if value == value:
            along = covariance * c
            variance, left = (c.T * along)[0] + 1 / mpmath.mpf(precision), value - (c.T * mean)[0]
            total -= (mpmath.log(2 * mpmath.pi * variance) + left**2 / variance) / 2
            mean, covariance = mean + along * (left / variance), covariance - along * along.T / variance
    return float(total)


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize(("growth", "n", "missing"), [(1.27, 100, 0.0), (3.0, 60, 0.4)])
def test_likelihoods_are_those_of_eighty_digits(growth, n, angle, missing, rng):
    """As well as loadings in 16 digits tell them: a state that has grown by 1e16 is seen by their last one."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 80
    case, natural, *_ = system(rng, growth, n, angle, missing)
    found = sampling.log_z(case.model, natural, case.compile())[0]
    # the parameters as the model holds them
    potentials = case.model.potentials(natural[:, 0])
    held = potentials.transition, potentials.output[0], float(potentials.precision[0])
    y = case.y[:, 0]
    wanted = exact(mpmath, y, *held)
    nudges = np.finfo(float).eps * np.array([[1.0, -1.0], [-1.0, 1.0]])
    nudged = [exact(mpmath, y, held[0], held[1] * (1 + each), held[2]) for each in nudges]
    of_digits = max(abs(each - wanted) for each in nudged)
    assert found == pytest.approx(wanted, abs=1e-6 + 50 * of_digits)


def smoothed_exactly(mpmath, y, a, c, precision):
    """Means and variances of all states by the inverse of their whole precision, and its ln determinant."""
    n = len(y)
    whole = mpmath.zeros(2 * n, 2 * n)
    linear, a, c = mpmath.zeros(2 * n, 1), a.tolist(), c.tolist()
    for t in range(n):
        for i in range(2):
            whole[2 * t + i, 2 * t + i] += 1
            for j in range(2):
                whole[2 * t + i, 2 * t + j] += mpmath.mpf(precision) * c[i] * c[j] if y[t] == y[t] else 0
                if t < n - 1:
                    whole[2 * t + i, 2 * t + j] += sum(mpmath.mpf(a[m][i]) * a[m][j] for m in range(2))
                    whole[2 * t + i, 2 * t + 2 + j] -= a[j][i]
                    whole[2 * t + 2 + j, 2 * t + i] -= a[j][i]
            linear[2 * t + i] += mpmath.mpf(precision) * c[i] * y[t] if y[t] == y[t] else 0
    inverse, log_det = whole**-1, mpmath.log(mpmath.det(whole))
    variances = [float(inverse[i, i]) for i in range(2 * n)]
    return np.array([float(each) for each in inverse * linear]), np.array(variances), float(log_det)


@pytest.mark.parametrize("growth", [1.8, 4.0])
@pytest.mark.parametrize("angle", [0.0, 1e-8])
def test_smoothed_states_are_those_of_eighty_digits(growth, angle, rng):
    """Errors are shares of a standard deviation of a state."""
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 80
    n = 24
    case, natural, *_ = system(rng, growth, n, angle, 0.5)
    data, model = case.compile(), case.model
    smoother = Smoother(model.potentials(natural[:, 0]), model.first_states(natural[:, 0]), data)
    potentials = smoother.potentials
    y = np.where(data.patterns[data.pattern][:, 0], data.measured[:, 0], np.nan)
    held = potentials.transition, potentials.output[0], float(potentials.precision[0])
    means, variances, log_det = smoothed_exactly(mpmath, y, *held)
    factored = smoother.factored(keep=True)
    deviations = np.sqrt(variances)
    computed = factored.means().ravel()
    assert np.abs((computed - means) / deviations).max() < 1e-4
    assert np.einsum("tii->ti", factored.marginal).ravel() == pytest.approx(variances, rel=1e-6)
    assert factored.log_det[0] == pytest.approx(log_det, abs=1e-6)
    assert np.isfinite(factored.covariances.crossed).all()


def test_draws_have_the_means_and_covariances_of_states(rng):
    """Of a state that has grown by 3e4, where an inverse of the precision in 16 digits still has some."""
    case, natural, a, c = system(rng, 1.3, 40, 1e-9)
    model, data, n, n_lanes = case.model, case.compile(), 40, 2000
    streams = rng.integers(0, 2**64, size=(4, n_lanes), dtype=np.uint64)
    _, drawn = sampling.completed(model, np.repeat(natural, n_lanes, axis=1), data, ParallelGenerator(streams))
    precision = np.kron(np.eye(n), 2.5 * np.outer(c, c) + np.eye(2)) + np.kron(
        np.diag([1.0] * (n - 1) + [0.0]), a.T @ a
    )
    precision -= np.kron(np.eye(n, k=1), a.T) + np.kron(np.eye(n, k=-1), a)
    mean = np.linalg.solve(precision, np.kron(case.y[:, 0], 2.5 * c))
    covariance = np.linalg.inv(precision)
    root = np.linalg.cholesky(covariance)
    paths = mean + rng.normal(size=(n_lanes, 2 * n)) @ root.T
    others = np.column_stack([model.statistics(data, path.reshape(n, 2))[0] for path in paths])
    vary = others.std(axis=1) > 0
    assert vary.sum() >= 8
    pooled = np.sqrt((drawn[vary].var(axis=1) + others[vary].var(axis=1)) / n_lanes)
    assert np.abs((drawn[vary].mean(axis=1) - others[vary].mean(axis=1)) / pooled).max() < 4.5
    # squares of normal numbers have heavy tails: spreads agree as far as those of 2000 draws do
    assert drawn[vary].std(axis=1) == pytest.approx(others[vary].std(axis=1), rel=0.25)
