r"""The basis of the states: a linear map of them, with coefficients that undo it, by which the bound rises most.

With states R x in place of x their entropy grows by :math:`n_x \ln|\det R|`, and statistics become those of R x. After
an M step the bound is this entropy and the log evidence of complete data,

.. math:: f(R) = n_x \ln|\det R| - \tfrac12 \operatorname{tr}(V_0^{-1} R I_1 R^\top) + m_0^\top V_0^{-1} R i_1
                 - \tfrac12 \operatorname{tr}(R X_2 R^\top) + \sum_b \ln\text{evidence}_b(\text{statistics of } R x),

with :math:`I_1, i_1` the sums of squares and of first states and :math:`X_2` of those after them. Plain steps turn the
basis as slowly as states are known surely: a few steps of a quasi-Newton method go where thousands of them lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from skvbem._numerics import pack_symmetric, pairings, unpack_symmetric
from skvbem.families import Product, Regression
from skvbem.models.linear_dynamical_system.smoother import FirstStates

# Steps of the quasi-Newton method; more make no full step shorter.
_MAX_STEPS = 3
# A gain, in nats, that is not worth a map.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class StateMoments:
    """What the bound has of the basis of states beside statistics.

    Parameters
    ----------
    n_states : int
    moments : ndarray of shape (n_lanes, k + 1, 2 k + 1)
        Squares of first states, squares of states after others, sums of first states; below the number of states.
    """

    n_states: int
    moments: np.ndarray

    def of_lane(self, lane: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Squares (k, k) of first states and of those after others, sums of first states (k,), number of states."""
        k, moments = self.n_states, self.moments[lane]
        return moments[:k, :k], moments[:k, k : 2 * k], moments[:k, 2 * k], float(moments[k, 0])


class StateBasis:
    """The bound as a function of the basis of the states.

    Parameters
    ----------
    form : Form
        Of q(theta).
    prior : Product
        Of dynamics and emission, given hyperparameters if these are hidden.
    first : FirstStates
    statistics : ndarray of shape (n_cells,)
    moments : tuple
        As `StateMoments.of_lane` gives them.
    """

    def __init__(self, form: Any, prior: Product, first: FirstStates, statistics: np.ndarray, moments: tuple):
        self.form, self.prior, self.first, self.moments = form, prior, first, moments
        self.k = len(first.mean)
        layouts: Any = prior.blocks
        self.layouts = layouts
        self.parts = [_matrices(block, u) for block, u in zip(layouts, prior.split(statistics))]

    def statistics(self, map: np.ndarray) -> np.ndarray:
        """Statistics (n_cells,) of states in another basis."""
        (w, s, *_), (g, c, *rest) = self.parts
        of_z, of_r = _extended(map, w.shape[-1]), _extended(map, g.shape[-1])
        of_dynamics = pack_symmetric(of_z @ w @ of_z.T).ravel(), (map @ s @ of_z.T).ravel()
        of_emission = pack_symmetric(of_r @ g @ of_r.T).ravel(), (c @ of_r.T).ravel()
        return np.concatenate([*of_dynamics, *of_emission, *rest])

    def value(self, map: np.ndarray) -> tuple[float, np.ndarray]:
        """f at a map (k, k), nats, and its derivatives (k, k); -inf where the map is singular or reflects."""
        sign, log_det = np.linalg.slogdet(map)
        if sign <= 0:
            return -np.inf, np.zeros(map.shape)
        of_complete, natural = self._of_complete(self.statistics(map))
        squares, later, sums, n = self.moments
        precision = self.first.precision
        of_first = precision @ map @ squares
        with_mean = np.outer(precision @ self.first.mean, sums)
        value = n * log_det - 0.5 * np.sum(of_first * map) + np.sum(with_mean * map)
        value += of_complete - 0.5 * np.sum(map @ later * map)
        slope = n * np.linalg.inv(map).T - of_first + with_mean - map @ later
        (w, s, *_), (g, c, *_) = self.parts
        (phi_w, phi_s, *_), (phi_g, phi_c, *_) = (
            _naturals(block, part) for block, part in zip(self.layouts, self.prior.split(natural))
        )
        of_z, of_r, k = _extended(map, w.shape[-1]), _extended(map, g.shape[-1]), self.k
        slope = slope + (2 * phi_w @ of_z @ w).sum(axis=0)[:k, :k] + phi_s @ of_z @ s.T
        slope += (phi_s.T @ map @ s)[:k, :k]
        slope += (2 * phi_g @ of_r @ g).sum(axis=0)[:k, :k] + (phi_c.T @ c)[:k, :k]
        return float(value), slope

    def best(self) -> np.ndarray | None:
        """The map (k, k) found by a few steps from the identity; None where the bound does not rise by it."""
        n, k = max(self.moments[3], 1.0), self.k
        here, _ = self.value(np.eye(k))
        if not np.isfinite(here):
            return None
        reached: list[tuple[float, np.ndarray]] = [(here + _NEGLIGIBLE * n, np.eye(k))]

        def minus(flat: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = self.value(flat.reshape(k, k))
            if not np.isfinite(value):
                return 1e300, np.zeros(k * k)
            if value > reached[0][0]:
                reached[0] = value, flat.reshape(k, k).copy()
            return (here - value) / n, -slope.ravel() / n

        start = np.eye(k)
        minimize(minus, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": _MAX_STEPS})
        value, map = reached[0]
        return map if value > here + _NEGLIGIBLE * n else None

    def _of_complete(self, statistics: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective of complete data, and its derivatives by statistics: natural parameters."""
        if self.form.density:
            posterior = self.prior + statistics
            return float(posterior.log_normalizer()), posterior.expected_natural()
        natural, _ = self.form.of(self.prior, statistics[:, None])
        return float(self.form.of_complete(self.prior, statistics[:, None])[0]), natural[:, 0]


def _matrices(block: Regression, cells: np.ndarray) -> list[np.ndarray]:
    """Cells as symmetric matrices (n, d, d), sums (n_rows, d), counts and squares."""
    packed, total, *rest = block.split(cells)
    return [unpack_symmetric(packed, block.n_regressors), total, *rest]


def _naturals(block: Regression, cells: np.ndarray) -> list[np.ndarray]:
    """Natural parameters as symmetric matrices, both halves of which count, and sums."""
    packed, total, *rest = block.split(cells)
    return [unpack_symmetric(packed / pairings(block.n_regressors), block.n_regressors), total, *rest]


def _extended(map: np.ndarray, d: int) -> np.ndarray:
    """A map of states as one of d regressors, the others of which stay."""
    whole = np.eye(d)
    whole[: len(map), : len(map)] = map
    return whole
