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

from skvbem._numerics import pack_symmetric, pairings, pseudo_inverse, unpack_symmetric
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
    """What the bound has of the basis of states, of many lanes.

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
        self.parts = [_matrices(block, u) for block, u in zip(layouts, prior.split(statistics))]
        self.of_prior = [_matrices(block, u) for block, u in zip(layouts, prior.split(prior.coordinates))]

    @property
    def unit(self) -> np.ndarray:
        """The map (k, k + r) that leaves states as they are."""
        return np.eye(self.k, self.k + self.r)

    def statistics(self, map: np.ndarray) -> np.ndarray:
        """Statistics (n_cells,) of states after a map (k, k + r)."""
        of_z, of_r = self._extended(map)
        (before, crossed, *_), (g, c, *rest) = self.moments, self.parts[1]
        of_dynamics = pack_symmetric((of_z @ before @ of_z.T)[None]).ravel(), (map @ crossed @ of_z.T).ravel()
        of_emission = pack_symmetric(of_r @ g @ of_r.T).ravel(), (c @ of_r.T).ravel()
        of_first = [self.first.cells(map)] if isinstance(self.first, FirstStateSums) else []
        return np.concatenate([*of_dynamics, *of_emission, *rest, *of_first])

    def value(self, map: np.ndarray) -> tuple[float, np.ndarray]:
        """f at a map [R M], (k, k + r), nats, and its derivatives; -inf where R is singular or reflects."""
        value, slope, _ = self._evaluated(map)
        return value, slope

    def _evaluated(self, map: np.ndarray) -> tuple[float, np.ndarray, tuple]:
        """f at a map, its derivatives, and natural parameters of both blocks after an M step."""
        k, r = self.k, self.r
        sign, log_det = np.linalg.slogdet(map[:, :k])
        if sign <= 0:
            return -np.inf, np.zeros(map.shape), ()
        of_z, of_r = self._extended(map)
        (before, crossed, after, first, n), (g, c, *_) = self.moments, self.parts[1]
        of_complete, at_first, *naturals = self._of_complete(map, of_z, of_r)
        (phi_w, phi_s), (phi_g, phi_c) = naturals
        pulled = np.outer(at_first.precision @ at_first.mean, first[-1, :-1])
        of_first = at_first.precision @ map @ first[:-1, :-1] - pulled
        of_later = map @ after
        squares, pull = of_first + of_later, 0.5 * np.vdot(pulled, map)
        if isinstance(self.first, FirstStateSums):  # first states are in what is complete
            squares, pull = of_later, 0.0
        value = n * log_det - 0.5 * np.vdot(squares, map) + pull + of_complete
        slope = phi_s @ of_z @ crossed.T - of_first - of_later
        slope[:, :k] += n * np.linalg.inv(map[:, :k]).T
        slope += (2 * phi_w.sum(axis=0) @ of_z @ before + phi_s.T @ map @ crossed)[:k, : k + r]
        slope += (2 * phi_g @ of_r @ g).sum(axis=0)[:k] + (phi_c.T @ c)[:k]
        return float(value), slope, (at_first, *naturals)

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
        k, at_first, (phi_w, phi_s), (phi_g, _) = self.k, *naturals
        of_first = self.moments.first
        squares, link = -2 * phi_w.sum(axis=0)[:k, :k], phi_s[:, :k]
        scales, owner = np.empty((self.r, k, k)), self.layouts[1].precision_of
        n_sharing = np.bincount(owner)
        for j in range(self.r):
            at = k + j
            of_prior = self.of_prior[1][0][:, at, at] if self.form.prior_share else np.zeros(len(n_sharing))
            n_first = of_first[at, at]
            if isinstance(self.first, FirstStateSums):  # a learned mean follows, but for what its prior holds
                n_first = n_first - of_first[at, -1] ** 2 / self.first.n
            curvature = n_first * at_first.precision
            curvature = curvature + self.moments.after[at, at] * np.eye(k) + self.moments.before[at, at] * squares
            curvature -= self.moments.crossed[at, at] * (link + link.T)
            curvature -= 2 * np.einsum("g,gij->ij", of_prior, phi_g[:, :k, :k])
            scales[j] = pseudo_inverse(curvature)
        return scales

    def _extended(self, map: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A map of states as one of z from (x, v, u) before a step, and as one of (x, v)."""
        k, r, dz = self.k, self.r, len(self.moments.before)
        of_z, of_r = np.zeros((dz - r, dz)), np.eye(k + r)
        of_z[:k, : k + r] = of_r[:k] = map
        of_z[k:, k + r :] = np.eye(dz - k - r)
        return of_z, of_r

    def whitening(self) -> tuple[np.ndarray | None, float]:
        r"""The map that is best for the likelihood, :math:`R^\top R = n_x (X_2 - S^\top W^{-1} S + I_1 / v_0)^{-1}`.

        Columns are as likely in any basis, and the dynamics have :math:`n_x \ln|\det R|` less half of what is left of
        squares: so does what the likelihood of complete data gains, nats, which stands beside the map.

        The symmetric one of those that differ by turns; None unless first states have mean 0 and one variance, or a
        distribution that is learned and follows: then they count in neither :math:`n_x` nor the sum.
        """
        (w, s, *_), k, n = self.parts[0], self.k, self.moments.n
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

    def _of_complete(self, map: np.ndarray, of_z: np.ndarray, of_r: np.ndarray) -> tuple[float, Any, Any, Any]:
        """The objective of complete data in another basis, first states, and natural parameters of both blocks."""
        if self.form.density:
            (before, crossed, *_), (g, c, *_) = self.moments, self.parts[1]
            one, *of_dynamics = self._evidence(0, (of_z @ before @ of_z.T)[None], map @ crossed @ of_z.T)
            two, *of_emission = self._evidence(1, of_r @ g @ of_r.T, c @ of_r.T)
            if not isinstance(self.first, FirstStateSums):
                return one + two, self.first, of_dynamics, of_emission
            of_first, first = self.first.evaluated(map)
            return one + two + of_first, first, of_dynamics, of_emission
        statistics = self.statistics(map)[:, None]
        natural, _ = self.form.of(self.prior, statistics)
        cells = self.prior.split(natural[:, 0])
        parts = [_naturals(block, part)[:2] for block, part in zip(self.layouts, cells)]
        first = self.first if isinstance(self.first, FirstStates) else expected(cells[2], self.k)
        return float(self.form.of_complete(self.prior, statistics)[0]), first, parts[0], parts[1]

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


def _matrices(block: Regression, cells: np.ndarray) -> list[np.ndarray]:
    """Cells as symmetric matrices (n, d, d), sums (n_rows, d), counts and squares."""
    packed, total, *rest = block.split(cells)
    return [unpack_symmetric(packed, block.n_regressors), total, *rest]


def _naturals(block: Regression, cells: np.ndarray) -> list[np.ndarray]:
    """Natural parameters as symmetric matrices, both halves of which count, and sums."""
    packed, total, *rest = block.split(cells)
    return [unpack_symmetric(packed / pairings(block.n_regressors), block.n_regressors), total, *rest]
