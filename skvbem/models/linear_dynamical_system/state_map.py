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
        self.of_prior = [_matrices(block, u) for block, u in zip(layouts, prior.split(prior.coordinates))]

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
        (w, s, *_), (g, c, *_) = self.parts
        of_z, of_r, k = _extended(map, w.shape[-1]), _extended(map, g.shape[-1]), self.k
        of_complete, (phi_w, phi_s), (phi_g, phi_c) = self._of_complete(map, of_z, of_r)
        squares, later, sums, n = self.moments
        precision = self.first.precision
        of_first = precision @ map @ squares - np.outer(precision @ self.first.mean, sums)
        of_later = map @ later
        value = n * log_det - 0.5 * np.vdot(of_first + of_later, map) + of_complete
        value += 0.5 * float(self.first.mean @ precision @ map @ sums)
        slope = n * np.linalg.inv(map).T - of_first - of_later
        slope += (2 * phi_w @ of_z @ w).sum(axis=0)[:k, :k] + phi_s @ of_z @ s.T + (phi_s.T @ map @ s)[:k, :k]
        slope += (2 * phi_g @ of_r @ g).sum(axis=0)[:k, :k] + (phi_c.T @ c)[:k, :k]
        return float(value), slope

    def best(self) -> np.ndarray | None:
        """The map (k, k) found by a few steps from the identity; None where the bound does not rise by it.

        Where no prior has a say, the map is that of `whitening`.
        """
        n, unit = max(self.moments[3], 1.0), np.eye(self.k)
        closed, rise = (None, 0.0) if self.form.density else self.whitening()
        if not self.form.density and not self.form.prior_share:
            return closed if rise > _NEGLIGIBLE * n else None
        here, slope = self.value(unit)
        if not np.isfinite(here):
            return None
        value, map = here, unit
        if closed is not None:
            at_closed = self.value(closed)
            if at_closed[0] > here:
                (value, slope), map = at_closed, closed
        value, map = _ascended(self.value, map, value, slope, n)
        return map if value > here + _NEGLIGIBLE * n else None

    def whitening(self) -> tuple[np.ndarray | None, float]:
        r"""The map that is best for the likelihood, :math:`R^\top R = n_x (X_2 - S^\top W^{-1} S + I_1 / v_0)^{-1}`.

        Columns are as likely in any basis, and the dynamics have :math:`n_x \ln|\det R|` less half of what is left of
        squares: so does what the likelihood of complete data gains, nats, which stands beside the map.

        The symmetric one of those that differ by turns; None unless first states have mean 0 and one variance.
        """
        squares, later, _, n = self.moments
        precision = self.first.precision
        if not self.first.are_round:
            return None, 0.0
        w, s, *_ = self.parts[0]
        left = later - s @ np.linalg.pinv(w[0], hermitian=True) @ s.T + precision[0, 0] * squares
        variances, axes = np.linalg.eigh((left + left.T) / 2)
        if not variances[0] > 0.0:
            return None, 0.0
        rise = 0.5 * float((n * np.log(n / variances) - n + variances).sum())
        return (axes * np.sqrt(n / variances)) @ axes.T, rise

    def _of_complete(self, map: np.ndarray, of_z: np.ndarray, of_r: np.ndarray) -> tuple[float, Any, Any]:
        """The objective of complete data in another basis, and natural parameters of both blocks."""
        if self.form.density:
            (w, s, *_), (g, c, *_) = self.parts
            one, *of_dynamics = self._evidence(0, of_z @ w @ of_z.T, map @ s @ of_z.T)
            two, *of_emission = self._evidence(1, of_r @ g @ of_r.T, c @ of_r.T)
            return one + two, of_dynamics, of_emission
        statistics = self.statistics(map)[:, None]
        natural, _ = self.form.of(self.prior, statistics)
        parts = [_naturals(block, part)[:2] for block, part in zip(self.layouts, self.prior.split(natural[:, 0]))]
        of_dynamics, of_emission = parts
        return float(self.form.of_complete(self.prior, statistics)[0]), of_dynamics, of_emission

    def _evidence(self, number: int, products: np.ndarray, sums: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The log normalizer of a block after an M step, but for a constant, and its natural parameters."""
        block, prior = self.layouts[number], self.of_prior[number]
        precision, total = prior[0] + products, prior[1] + sums
        inverse, owner = np.linalg.inv(precision), block.precision_of
        log_det = np.linalg.slogdet(precision)[1]
        if len(precision) == 1:
            mean, n_sharing = total @ inverse[0], np.array([len(total)])
            fitted = mean @ precision[0]
        else:
            mean, n_sharing = (inverse[owner] @ total[:, :, None])[:, :, 0], np.bincount(owner)
            fitted = (precision[owner] @ mean[:, :, None])[:, :, 0]
        # what is explained is most at the exact mean: an error of the inverse enters in its square alone
        explained, value = np.einsum("sd,sd->s", mean, 2 * total - fitted), -0.5 * float(n_sharing @ log_det)
        weighted = mean
        if block.noise_of is None:
            value += 0.5 * float(explained.sum())
        else:
            *_, count, square = self.parts[number]
            rate = (prior[3] + square - block.by_noise(explained)) / 2
            shape = (prior[2] + count) / 2
            if not np.all(rate > 0):
                return -np.inf, -inverse, mean
            value -= float(shape @ np.log(rate))
            weighted = (shape / rate)[block.noise_of][:, None] * mean
        if len(precision) == 1:
            squares = (weighted.T @ mean)[None]
        else:
            squares = np.zeros(precision.shape)
            np.add.at(squares, owner, weighted[:, :, None] * mean[:, None, :])
        return value, -0.5 * (squares + n_sharing[:, None, None] * inverse), weighted


def _ascended(objective: Any, map: np.ndarray, value: float, slope: np.ndarray, n: float) -> tuple[float, np.ndarray]:
    """The best value and map of a few steps of the quasi-Newton method with limited memory, from a map.

    The unit of steps is that of n ln|det R| with as much lost in squares: its second derivatives are 2 n.
    """
    moves: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(_MAX_STEPS):
        direction, back = slope.copy(), []
        for move, change in reversed(moves):
            share = np.vdot(move, direction) / np.vdot(move, change)
            direction -= share * change
            back.append(share)
        scale = 0.5 / n if not moves else np.vdot(*moves[-1]) / np.vdot(moves[-1][1], moves[-1][1])
        direction *= scale
        for (move, change), share in zip(moves, reversed(back)):
            direction += (share - np.vdot(change, direction) / np.vdot(move, change)) * move
        rise = float(np.vdot(direction, slope))
        if not rise > _NEGLIGIBLE * n:
            break
        length, ahead = 1.0, objective(map + direction)
        while not ahead[0] >= value + 1e-4 * length * rise:
            length *= 0.3
            if length < 1e-3:
                return value, map
            ahead = objective(map + length * direction)
        move, change = length * direction, slope - ahead[1]
        if np.vdot(move, change) > 1e-12 * np.vdot(move, move):
            moves.append((move, change))
        map, (value, slope) = map + move, ahead
    return value, map


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
