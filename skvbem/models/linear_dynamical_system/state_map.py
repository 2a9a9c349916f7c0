r"""The basis of the states: a linear map of them, with coefficients that undo it, by which the bound rises most.

States x become :math:`\tilde x = R x + M v`, v being the inputs of the measurements, the constant 1 among them: where a
level walks, what of it is state and what is offset is as open as its unit. Columns are as likely as before, with
coefficients :math:`C R^{-1}` and :math:`D - C R^{-1} M`. The entropy of the states grows by :math:`n_x \ln|\det R|`.
After an M step the bound is this entropy and the log evidence of complete data,

.. math:: f(R, M) = n_x \ln|\det R| - \tfrac12 \operatorname{tr}(V_0^{-1} I_1) + m_0^\top V_0^{-1} i_1
                 - \tfrac12 \operatorname{tr} X_2 + \sum_b \ln\text{evidence}_b,

with :math:`I_1, i_1` the sums of squares and of first states, :math:`X_2` of squares of those after them, and all
statistics those of the states in the new basis. Where the distribution of first states is learned, its block is one of
those of the sum, and has the terms of :math:`I_1, i_1` in itself.

Plain steps change the basis as slowly as states are known surely: a few steps of a quasi-Newton method go where
thousands of them lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from skvbem._kernels import _state_map
from skvbem._numerics import pairings, pseudo_inverse, unpack_symmetric
from skvbem.families import Product, Regression
from skvbem.models.linear_dynamical_system.first_states import FirstStates, FirstStateSums, expected

# Steps of the quasi-Newton method; more make no full step shorter.
_MAX_STEPS = 3
# A gain, in nats, that is not worth a map.
_NEGLIGIBLE = 1e-12


class BasisMoments(NamedTuple):
    """Sums over steps of products of states x and inputs: all that the bound has of the basis of states.

    Parameters
    ----------
    before : ndarray of shape (k + r + q, k + r + q)
        Of (x, v) before a step and the inputs u of the step.
    crossed : ndarray of shape (k + r, k + r + q)
        Of (x, v) after a step with these.
    after : ndarray of shape (k + r, k + r)
        Of (x, v) after a step.
    first : ndarray of shape (k + r + 1, k + r + 1)
        Of (x, v, 1) of first steps.
    n : float
        Number of states.
    """

    before: np.ndarray
    crossed: np.ndarray
    after: np.ndarray
    first: np.ndarray
    n: float

    @classmethod
    def unpacked(cls, flat: np.ndarray, k: int, q: int, r: int) -> Self:
        """The moments of k states, q inputs of these and r of the measurements, from what `packed` gave."""
        shapes = [(k + r + q,) * 2, (k + r, k + r + q), (k + r,) * 2, (k + r + 1,) * 2, ()]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        before, crossed, after, first, n = (
            part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes)
        )
        return cls(before, crossed, after, first, float(n))

    def packed(self) -> np.ndarray:
        """All moments, flat."""
        return np.concatenate([np.ravel(part) for part in self])


@dataclass(frozen=True, eq=False)
class StateMoments:
    """Moments through which the bound depends on the basis of the states, lane by lane.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of states, of their inputs and of those of the measurements.
    moments : ndarray of shape (n_lanes, n_moments)
        As `BasisMoments.packed` gives them.
    """

    sizes: tuple[int, int, int]
    moments: np.ndarray

    def of_lane(self, lane: int) -> BasisMoments:
        """Moments of one lane."""
        return BasisMoments.unpacked(self.moments[lane], *self.sizes)


class StateBasis:
    """The bound as a function of the basis of the states.

    Parameters
    ----------
    form : Form
        Of q(theta).
    prior : Product
        Of dynamics, emission, and first states if these are learned; given hyperparameters if some are hidden.
    first : FirstStates or None
        None where the distribution is learned.
    statistics : ndarray of shape (n_cells,)
    moments : BasisMoments
    """

    def __init__(
        self, form: Any, prior: Product, first: FirstStates | None, statistics: np.ndarray, moments: BasisMoments
    ):
        self.form, self.prior, self.moments = form, prior, moments
        layouts: Any = prior.blocks[:2]
        self.layouts, self.k = layouts, layouts[0].n_rows
        self.r = len(moments.after) - self.k
        learned: Any = prior.blocks[-1]
        self.first = FirstStateSums(learned, moments.first) if first is None else first
        self.unmoved = np.ascontiguousarray(statistics)
        self.of_dynamics, of_emission, *_ = prior.split(self.unmoved)
        products, total, *_ = layouts[1].split(of_emission)
        self._sums = moments.packed(), np.ascontiguousarray(products), np.ascontiguousarray(total)

    @property
    def unit(self) -> np.ndarray:
        """The map (k, k + r) that leaves states as they are."""
        return np.eye(self.k, self.k + self.r)

    def statistics(self, map: np.ndarray) -> np.ndarray:
        """Statistics (n_cells,) of states after a map (k, k + r)."""
        moved = self.unmoved.copy()
        _state_map.map_states(*self._sums, np.ascontiguousarray(map), moved)
        if isinstance(self.first, FirstStateSums):
            cells = self.first.cells(map)
            moved[len(moved) - len(cells) :] = cells
        return moved

    def value(self, map: np.ndarray) -> tuple[float, np.ndarray]:
        """f at a map [R M], (k, k + r), nats, and its derivatives; -inf where R is singular or reflects."""
        value, slope, _ = self._evaluated(map)
        return value, slope

    def _evaluated(self, map: np.ndarray) -> tuple[float, np.ndarray, tuple]:
        """f at a map, its derivatives, what first states are asked for, and natural parameters after an M step."""
        slope, counts_first = np.empty(map.shape), isinstance(self.first, FirstStates)
        of_complete, first, dynamics, emission = self._of_complete(map)
        at_first = np.ascontiguousarray(first.precision), first.precision @ first.mean, counts_first
        of_map = _state_map.slope_of_map(*self._sums, np.ascontiguousarray(map), dynamics, emission, *at_first, slope)
        value = of_map + of_complete
        if np.isnan(value):
            return -np.inf, np.zeros(map.shape), ()
        return float(value), slope, (first, dynamics, emission)

    def best(self) -> np.ndarray | None:
        """The map (k, k + r) found by a few steps from the identity; None where the bound does not rise by it.

        Where no prior has a say, R is at first that of `whitening`, and is it where nothing shifts.
        """
        n, unit = max(self.moments.n, 1.0), self.unit
        closed, rise = (None, 0.0) if self.form.density else self.whitening()
        is_closed = not self.r and isinstance(self.first, FirstStates)
        if is_closed and not self.form.density and not self.form.prior_share:
            return closed if rise > _NEGLIGIBLE * n else None
        here, slope, naturals = self._evaluated(unit)
        if not np.isfinite(here):
            return None
        value, map = here, unit
        if closed is not None:
            at_closed = self.value(closed)
            if at_closed[0] > here:
                (value, slope), map = at_closed, closed
        value, map = _ascended(self.value, map, value, slope, n, self._shift_scales(naturals))
        return map if value > here + _NEGLIGIBLE * n else None

    def _shift_scales(self, naturals: tuple) -> np.ndarray:
        """Inverse curvatures of f by the columns of M, (r, k, k), where coefficients undo M and others stay."""
        k, (at_first, dynamics, emission), of_first = self.k, naturals, self.moments.first
        phi_w, phi_s = _naturals(self.layouts[0], dynamics)
        phi_g, _ = _naturals(self.layouts[1], emission)
        squares, link = -2 * phi_w.sum(axis=0)[:k, :k], phi_s[:, :k]
        scales, owner = np.empty((self.r, k, k)), self.layouts[1].precision_of
        n_sharing = np.bincount(owner)
        of_precisions = _matrices(self.layouts[1], self.prior.split(self.prior.coordinates)[1])
        for j in range(self.r):
            at = k + j
            of_prior = of_precisions[:, at, at] if self.form.prior_share else np.zeros(len(n_sharing))
            n_first = of_first[at, at]
            if isinstance(self.first, FirstStateSums):  # a learned mean follows, but for what its prior holds
                n_first = n_first - of_first[at, -1] ** 2 / self.first.n
            curvature = n_first * at_first.precision
            curvature = curvature + self.moments.after[at, at] * np.eye(k) + self.moments.before[at, at] * squares
            curvature -= self.moments.crossed[at, at] * (link + link.T)
            curvature -= 2 * np.einsum("g,gij->ij", of_prior, phi_g[:, :k, :k])
            scales[j] = pseudo_inverse(curvature)
        return scales

    def whitening(self) -> tuple[np.ndarray | None, float]:
        r"""The map that is best for the likelihood, :math:`R^\top R = n_x (X_2 - S^\top W^{-1} S + I_1 / v_0)^{-1}`.

        Columns are as likely in any basis, and the dynamics have :math:`n_x \ln|\det R|` less half of what is left of
        squares: so does what the likelihood of complete data gains, nats, which stands beside the map.

        The symmetric one of those that differ by turns; None unless first states have mean 0 and one variance, or a
        distribution that is learned and follows: then they count in neither :math:`n_x` nor the sum.
        """
        k, n, block = self.k, self.moments.n, self.layouts[0]
        w, s = _matrices(block, self.of_dynamics), block.split(self.of_dynamics)[1]
        left = self.moments.after[:k, :k] - s @ pseudo_inverse(w[0]) @ s.T
        if isinstance(self.first, FirstStateSums):
            n = n - self.moments.first[-1, -1]
        elif self.first.are_round:
            left = left + self.first.precision[0, 0] * self.moments.first[:k, :k]
        else:
            return None, 0.0
        variances, axes = np.linalg.eigh((left + left.T) / 2)
        if not variances[0] > 0.0:
            return None, 0.0
        rise = 0.5 * float((n * np.log(n / variances) - n + variances).sum())
        return np.concatenate([(axes * np.sqrt(n / variances)) @ axes.T, self.unit[:, k:]], axis=1), rise

    def _of_complete(self, map: np.ndarray) -> tuple[float, Any, np.ndarray, np.ndarray]:
        """The objective of complete data in another basis, first states, and natural parameters of both blocks."""
        statistics = self.statistics(map)
        if self.form.density:
            of_blocks = self.prior.split(self.prior.coordinates + statistics)
            dynamics, of_dynamics = self.layouts[0].expectation_at(of_blocks[0])
            emission, of_emission = self.layouts[1].expectation_at(of_blocks[1])
            value = float(of_dynamics + of_emission)
            if isinstance(self.first, FirstStates):
                return value, self.first, dynamics, emission
            of_first, first = self.first.evaluated(map)
            return value + of_first, first, dynamics, emission
        natural, _ = self.form.of(self.prior, statistics[:, None])
        dynamics, emission, *naturals = self.prior.split(np.ascontiguousarray(natural[:, 0]))
        first = self.first if isinstance(self.first, FirstStates) else expected(naturals[0], self.k)
        return float(self.form.of_complete(self.prior, statistics[:, None])[0]), first, dynamics, emission


def _ascended(
    objective: Any, map: np.ndarray, value: float, slope: np.ndarray, n: float, scales: np.ndarray
) -> tuple[float, np.ndarray]:
    """The best value and map of a few steps of the quasi-Newton method with limited memory, from a map.

    The unit of R is that of n ln|det R| with as much lost in squares: its second derivatives are 2 n. Columns of M have
    inverse curvatures of their own, the `scales`.
    """
    k = len(map)

    def scaled(direction: np.ndarray) -> np.ndarray:
        of_shifts = np.einsum("jab,bj->aj", scales, direction[:, k:])
        return np.concatenate([0.5 / n * direction[:, :k], of_shifts], axis=1)

    moves: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(_MAX_STEPS):
        direction, back = slope.copy(), []
        for move, change in reversed(moves):
            share = np.vdot(move, direction) / np.vdot(move, change)
            direction -= share * change
            back.append(share)
        scale = 1.0 if not moves else np.vdot(*moves[-1]) / np.vdot(moves[-1][1], scaled(moves[-1][1]))
        direction = scale * scaled(direction)
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


def _matrices(block: Regression, cells: np.ndarray) -> np.ndarray:
    """Cells of precision matrices as symmetric matrices (n, d, d)."""
    return unpack_symmetric(block.split(cells)[0], block.n_regressors)


def _naturals(block: Regression, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Natural parameters as symmetric matrices, both halves of which count, and sums."""
    packed, total, *_ = block.split(cells)
    return unpack_symmetric(packed / pairings(block.n_regressors), block.n_regressors), total
