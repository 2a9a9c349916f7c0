"""Starts: states along principal components, or as lagged covariances have them, near these, and at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.families import RegressionPoint
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.potentials import Potentials
from skvbem.models.linear_dynamical_system.smoother import Smoother

# Variance of states along principal components, and the standard deviation of starts near them.
_VARIANCE, _AWAY = 0.1, 0.5
# Of a subspace: the largest spectral radius, the least share of a column's variance that is noise, and that of the
# largest singular value from which a direction is one.
_RADIUS, _NOISE, _RANK = 0.99, 0.05, 1e-8


@dataclass(frozen=True, eq=False)
class LDSStarts:
    """Starts of a linear dynamical system, the same for any order of the sequences.

    Parameters
    ----------
    kind : {"pca", "subspace", "random"}
        Of "pca" the first start follows the principal components, every second one is random, the third follows the
        components of columns in units of their changes, the others are near the components. Of "subspace" states
        smoothed under `subspace_system` are in the place of the components.
    n_starts : int
    seed : tuple of int
    """

    kind: str
    n_starts: int
    seed: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        if self.kind == "random":
            return ("random",) * self.n_starts
        kinds = (self.kind, "random", "changes", "random")
        return tuple(kinds[k] if k < len(kinds) else kinds[k % 2] for k in range(self.n_starts))

    def __call__(self, ascent: Any) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        model, data = ascent.model, ascent.data
        rng, starts = np.random.default_rng(self.seed), []
        rows = rows_in_order(data)
        for number, kind in enumerate(self.kinds):
            noise = np.empty((len(data), model.n_states))
            noise[rows] = rng.standard_normal(noise.shape)
            if kind == "random":
                starts.append(model.statistics_of_start(data, noise, 1.0))
                continue
            near = number > 0 and (kind != "changes" or model.n_columns == 1)  # of one column its unit says nothing
            states = _STATES[kind](model, data, noise) + (_AWAY * noise if near else 0.0)
            starts.append(model.statistics_of_start(data, states, _VARIANCE))
        return np.stack(starts, axis=1)


def rows_in_order(data: LDSData) -> np.ndarray:
    """Rows of sequences in an order that their values decide."""
    parts = [np.arange(data.starts[n], data.ends[n]) for n in data.in_order]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def principal_states(model: LinearDynamicalSystem, data: LDSData, noise: np.ndarray) -> np.ndarray:
    """Scores (n_rows, k) of principal components of unit variance, of delayed columns too where these are too few.

    Directions in which nothing varies are filled with noise.
    """
    return _principal(model, data, centered_cells(data)[0], noise)


def principal_changes(model: LinearDynamicalSystem, data: LDSData, noise: np.ndarray) -> np.ndarray:
    """As `principal_states`, in units of changes from step to step, columns and states: smooth columns come first.

    A column that hardly changes is all but a state itself, however little of the variance of others goes with it. And
    states change by a noise of variance 1, however far they go.
    """
    states = _principal(model, data, centered_cells(data)[0] / changes_of_columns(data), noise)
    return states / changes(states, data.starts, data.row_weight)


def changes_of_columns(data: LDSData) -> np.ndarray:
    """As `changes`, of the measurements of compiled sequences."""
    centered, observed = centered_cells(data)
    return changes(np.where(observed > 0, centered, np.nan), data.starts, data.row_weight)


def changes(values: np.ndarray, starts: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Root mean squares of the changes of columns from one step to the next, (n_columns,); 1 where none is seen.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        NaN where a cell is missing.
    starts : ndarray of int
        Rows at which sequences begin.
    weight : ndarray of shape (n_rows,)
    """
    steps = np.diff(values, axis=0)
    steps[starts[(starts > 0) & (starts < len(values))] - 1] = np.nan
    seen = ~np.isnan(steps)
    squares = weight[1:] @ np.where(seen, steps, 0.0) ** 2 / np.maximum(weight[1:] @ seen, 1e-300)
    return np.where(squares > 0, np.sqrt(squares), 1.0)


def _principal(model: LinearDynamicalSystem, data: LDSData, centered: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Scores of the principal components of columns, and of delayed ones where these are too few."""
    k, p, weight = model.n_states, model.n_columns, data.row_weight
    columns = np.concatenate([delayed(data, centered, delay) for delay in range(max(-(-k // p), 1))], axis=1)
    variance, axes = np.linalg.eigh((columns * weight[:, None]).T @ columns / max(weight.sum(), 1e-300))
    order = np.argsort(-variance)[:k]
    usable = variance[order] > 1e-8 * max(variance.max(initial=0.0), 1e-300)
    scores = columns @ axes[:, order] / np.sqrt(np.where(usable, variance[order], 1.0))
    return np.where(usable, scores, noise)


def centered_cells(data: LDSData) -> tuple[np.ndarray, np.ndarray]:
    """Cells less the means of their columns, 0 where missing, and 1 where observed, (n_rows, n_columns)."""
    mean = data.measured.T @ data.row_weight / np.maximum(data.counts, 1e-300)
    observed = data.patterns[data.pattern]
    return np.where(observed, data.measured - mean, 0.0), observed.astype(float)


def delayed(data: LDSData, values: np.ndarray, delay: int) -> np.ndarray:
    """Values (n_rows, n) of so many steps before, 0 where a sequence has not begun."""
    first = np.repeat(data.starts[:-1], np.diff(data.starts))
    source = np.arange(len(data)) - delay
    return np.where((source >= first)[:, None], values[np.maximum(source, 0)], 0.0)


def subspace_system(model: LinearDynamicalSystem, data: LDSData) -> tuple[RegressionPoint, RegressionPoint] | None:
    r"""The system that lagged covariances of columns ask for; None where these have fewer directions than states.

    The covariances :math:`\operatorname{Cov}(y_{t+i}, y_{t-j-1})` are a Hankel matrix O G. Its factors have rank k:
    C is the first block of O, A takes each block of O to the next one, the first block of G is
    :math:`A \Pi C^\top` with the covariance of states :math:`\Pi`. That is taken for a multiple of the one of states
    which independent noises of variance 1 move, by least squares.
    """
    k, p = model.n_states, model.n_columns
    n_blocks = -(-k // p) + 1
    cells, observed = centered_cells(data)
    weight = data.row_weight[:, None]

    def covariance(lag: int) -> np.ndarray:
        pairs = (observed * weight).T @ delayed(data, observed, lag)
        return (cells * weight).T @ delayed(data, cells, lag) / np.maximum(pairs, 1.0)

    lagged = [covariance(lag) for lag in range(2 * n_blocks)]
    hankel = np.block([[lagged[i + j + 1] for j in range(n_blocks)] for i in range(n_blocks)])
    left, values, right = np.linalg.svd(hankel)
    if not values[k - 1] > _RANK * max(values[0], 1e-300):
        return None
    root = np.sqrt(values[:k])
    observing, reaching = left[:, :k] * root, root[:, None] * right[:k, :p]
    a, c = np.linalg.lstsq(observing[:-p], observing[p:], rcond=None)[0], observing[:p]
    a *= min(1.0, _RADIUS / max(np.abs(np.linalg.eigvals(a)).max(), 1e-300))
    state_covariance = np.linalg.solve(np.eye(k * k) - np.kron(a, a), np.eye(k).ravel()).reshape(k, k)
    unit = a @ state_covariance @ c.T
    scale = max(float(np.vdot(unit, reaching)) / max(float(np.vdot(unit, unit)), 1e-300), _RANK)
    c = c * np.sqrt(scale)
    variance = np.maximum(np.diagonal(lagged[0]), _RANK)
    noise = np.maximum(variance - np.einsum("sk,kl,sl->s", c, state_covariance, c), _NOISE * variance)
    inputs, constants = np.zeros((k, model.n_inputs)), np.zeros((p, model.n_output_inputs))
    return (
        RegressionPoint(np.column_stack([a, inputs]), np.zeros(0)),
        RegressionPoint(np.column_stack([c, constants]), 1 / noise),
    )


def subspace_states(model: LinearDynamicalSystem, data: LDSData, noise: np.ndarray) -> np.ndarray:
    """Means (n_rows, k) of states smoothed under `subspace_system`, or principal states where there is none."""
    system = subspace_system(model, data)
    if system is None:
        return principal_states(model, data, noise)
    dynamics, emission = model.dynamics, model.emission
    potentials = Potentials.of(dynamics, dynamics.natural(system[0]), emission, emission.natural(system[1]))
    first = model.first_states(model.prior.expected_natural())
    return Smoother(potentials, first, data).factored().means()


_STATES = {"pca": principal_states, "changes": principal_changes, "subspace": subspace_states}
