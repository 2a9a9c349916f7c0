r"""Integrals, modes and draws over one number, by nodes of its logarithm.

An integrand that is analytic and falls off at both ends is integrated by a trapezoid with an error that falls faster
than any power of the spacing. The nodes are evenly spaced in u of :math:`\ln x = t_0 + s \sinh u`, around the mode and
in units of the width there: a narrow peak may stand on tails a hundred times as wide, as that of a concentration does
whose data hardly tell it from 0. They end where the integrand has fallen by 36 nats, which is less than rounding.

Functions are of logarithms (n_members, ...) and of the numbers of these members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

#: Function of logarithms (n_members, n_nodes) of members, and of their numbers (n_members,), with as many values.
Function = Callable[[np.ndarray, np.ndarray], np.ndarray]

# Nodes of integrals, of many data and of few: no A errs by 1e-10 nats (`tests/families/test_one_dimensional.py`).
_N_NARROW, _N_WIDE = 49, 129
# An integral is narrow up to this scale and this distance of its ends in u.
_NARROW, _NARROW_ENDS = 0.3, 7.0
# Nodes of a search for a maximum: each pass narrows down to two of eight intervals.
_N_SEARCHED = 9
# Logarithms beyond which every prior has fallen by 36 nats, and that fall.
REACH, _FALL = 42.0, 36.0
# Largest scale of the map: the nearest poles of integrands are half a turn away, and near in u where it is larger.
_WIDEST = 1.0
# Distance of points whose differences are derivatives: of the fourth order, so that they err by 1e-12. By hand.
_STEP = 1e-3
# Where Newton's steps begin, and how many there are. By hand.
_FIRST_SCALE, _N_NEWTON = 0.05, 4
#: Points over all logarithms, at none of which a function is larger than at its mode.
AROUND = np.linspace(-0.9 * REACH, 0.9 * REACH, 7)
# Relative change of an integral up to which fewer nodes are as good. By hand.
_SAME_INTEGRAL = 1e-13


class Nodes(NamedTuple):
    """Nodes of an integral of each member; those of narrow integrals are followed by nodes without a share.

    Parameters
    ----------
    t : ndarray of shape (n_members, n_nodes)
        Logarithms.
    share : ndarray of shape (n_members, n_nodes)
        Shares of the integral, of sum 1.
    log_total : ndarray of shape (n_members,)
        ln of the integral, nats.
    first, spacing : ndarray of shape (n_members,)
        First u, and distance of two.
    center, scale : ndarray of shape (n_members,)
        Of the map from u to t.
    """

    t: np.ndarray
    share: np.ndarray
    log_total: np.ndarray
    first: np.ndarray
    spacing: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    def of(self, members: np.ndarray) -> Nodes:
        """The nodes of some members."""
        return Nodes(*(each[members] for each in self))

    def thinned(self) -> Nodes:
        """Every fourth or second node, where half of these have the same integral, for predictions; else all."""
        for step in (4, 2):
            if (abs(self.share[:, :: 2 * step].sum(axis=-1) * 2 * step - 1) < _SAME_INTEGRAL).all():
                share = self.share[:, ::step]
                return self._replace(t=self.t[:, ::step], share=share / share.sum(axis=-1, keepdims=True))
        return self

    def by_number(self) -> Iterator[tuple[np.ndarray, Nodes]]:
        """Members of narrow and of wide integrals, and their nodes without those that have no share."""
        is_wide = (self.share[:, _N_NARROW:] > 0).any(axis=-1)
        for which, n in ((False, _N_NARROW), (True, _N_WIDE)):
            members = np.flatnonzero(is_wide == which)
            if len(members):
                t, share = (np.ascontiguousarray(each[members, :n]) for each in (self.t, self.share))
                yield members, self.of(members)._replace(t=t, share=share)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """Logarithms with these probabilities below, one for each member; draws, of uniform probabilities."""
        u = position(self.share, probability) * self.spacing + self.first
        return self.center + self.scale * np.sinh(u)


def integrate(log_integrand: Function, guess: np.ndarray) -> Nodes:
    """Nodes of integrals over all logarithms, of members whose modes may be near a guess (n_members,)."""
    every = np.arange(len(guess))
    center, scale = _peak(log_integrand, guess)
    first, last = (np.arcsinh((end - center) / scale) for end in _ends(log_integrand, center, scale))
    narrow = (scale < _NARROW) & (last - first < _NARROW_ENDS)
    width = _N_NARROW if narrow.all() else _N_WIDE
    t, share = np.repeat(center[:, None], width, axis=1), np.zeros((len(every), width))
    log_total, spacing = np.empty(len(every)), np.empty(len(every))
    for members, n in ((every[narrow], _N_NARROW), (every[~narrow], _N_WIDE)):
        if len(members):
            u = _spaced(first[members], last[members], n)
            t[members, :n] = center[members, None] + scale[members, None] * np.sinh(u)
            values = _values(log_integrand, t[members, :n], members) + np.log(np.cosh(u))
            largest = values.max(axis=-1)
            mass = np.exp(values - largest[:, None])
            mass[:, [0, -1]] *= 0.5
            total = mass.sum(axis=-1)
            share[members, :n] = mass / total[:, None]
            spacing[members] = (last - first)[members] / (n - 1)
            log_total[members] = largest + np.log(total * spacing[members] * scale[members])
    return Nodes(t, share, log_total, first, spacing, center, scale)


def integrate_compiled(kernel: Callable, guess: np.ndarray) -> Nodes:
    """Nodes of integrals by a kernel, which takes limits, numbers, and arrays to fill, as `_rises.integrate` does."""
    (t, share), others = np.empty((2, len(guess), _N_WIDE)), np.empty((5, len(guess)))
    limits = np.array([REACH, _FALL, _WIDEST, _FIRST_SCALE, _NARROW, _NARROW_ENDS])
    kernel(limits, np.array([_N_NEWTON, _N_NARROW, _N_WIDE], dtype=np.intp), t, share, others)
    if not share[:, _N_NARROW:].any():
        t, share = t[:, :_N_NARROW], share[:, :_N_NARROW]
    return Nodes(t, share, *others)


def _peak(function: Function, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms near the modes of members, and deviations there, `_WIDEST` at the most.

    Some steps of Newton's from the guess, by differences; where they do not end near a mode, a search.
    """
    t, scale, left = np.clip(guess, -REACH, REACH), np.full(len(guess), _FIRST_SCALE), np.arange(len(guess))
    for _ in range(_N_NEWTON):
        at, step = t[left], 0.1 * scale[left]
        low, middle, high = _values(function, at[:, None] + step[:, None] * [-1.0, 0.0, 1.0], left).T
        with np.errstate(all="ignore"):
            curvature = -(low - 2 * middle + high) / step**2
            move, deviation = (high - low) / (2 * step) / curvature, 1 / np.sqrt(curvature)
        sound = (curvature > 0) & (deviation < 2 * _WIDEST) & (abs(move) < 1.0)
        t[left[sound]] += move[sound]
        scale[left[sound]] = deviation[sound]
        left = left[~sound | (abs(move) > deviation)]
        if not len(left):
            break
        scale[left] = np.minimum(scale[left], _FIRST_SCALE)
    every = np.arange(len(guess))
    around = _values(function, np.concatenate([t[:, None], np.tile(AROUND, (len(t), 1))], axis=1), every)
    left = np.union1d(left, every[around[:, 0] < around[:, 1:].max(axis=1)])  # steps that ended at no mode
    if len(left):
        t[left] = _maximum(function, left, np.full(len(left), REACH), n_passes=7)
        scale[left] = _deviation(function, left, t[left])
    return t, np.minimum(scale, _WIDEST)


def _deviation(function: Function, members: np.ndarray, t: np.ndarray) -> np.ndarray:
    """About so far from their modes functions have fallen by half a nat, on the nearer side."""
    top, distance = _values(function, t[:, None], members)[:, 0], np.full(len(t), _WIDEST)
    for _ in range(40):
        aside = _values(function, t[:, None] + distance[:, None] * [-1.0, 1.0], members).min(axis=1)
        far = top - aside > 1.0
        if not far.any():
            break
        distance = np.where(far, distance / 1.6, distance)
    return distance


def _ends(function: Function, center: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Logarithms (2, n_members) before and after the centers at which functions have fallen by 36 nats."""
    sides = np.array([-1.0, 0.0, 1.0])
    distance, members = 9.0 * np.stack([scale, scale]), np.arange(len(center))
    while len(members):
        at = center[members, None] + sides * np.insert(distance[:, members], 1, 0.0, axis=0).T
        values = _values(function, at, members)
        inside = (values[:, [0, 2]] > values[:, [1]] - _FALL) & (abs(at[:, [0, 2]]) < REACH)
        distance[:, members] *= np.where(inside, 1.5, 1.0).T
        members = members[inside.any(axis=1)]
    return np.clip(center + sides[[0, 2], None] * distance, -1.5 * REACH, 1.5 * REACH)


def maximum(function: Function, n_members: int, most: np.ndarray | float = REACH) -> np.ndarray:
    """Logarithms, none above `most`, at which functions with one maximum are largest, (n_members,)."""
    every, most = np.arange(n_members), np.broadcast_to(np.asarray(most, dtype=float), n_members)
    t = _maximum(function, every, most, n_passes=13)  # 84 / 4^13 is less than 1e-5
    for _ in range(2):  # values alone tell a maximum to half of their digits: a step of Newton's, by differences
        far, low, middle, high, farther = _values(function, t[:, None] + _STEP * np.arange(-2.0, 3.0), every).T
        with np.errstate(all="ignore"):
            slope, curvature = (far - farther + 8 * (high - low)) / (12 * _STEP), (low - 2 * middle + high) / _STEP**2
            move = -slope / curvature
        t = np.where((curvature < 0) & (abs(move) < _STEP), np.minimum(t + move, most), t)
    return t


def _maximum(function: Function, members: np.ndarray, most: np.ndarray, n_passes: int) -> np.ndarray:
    low, high = np.full(len(members), -REACH), most
    for _ in range(n_passes):
        t = _spaced(low, high, _N_SEARCHED)
        best = _values(function, t, members).argmax(axis=-1)
        low, high = _at(t, np.maximum(best - 1, 0)), _at(t, np.minimum(best + 1, _N_SEARCHED - 1))
    return _at(t, best)


def position(share: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """Places between evenly spaced nodes, in spacings from the first, with these probabilities below.

    Between nodes the distribution is the cubic with its value and density at both. Its error is of the fourth power of
    the spacing, and below 1e-5.

    Parameters
    ----------
    share : ndarray of shape (..., n_nodes)
        Shares of a trapezoid.
    probability : ndarray of shape (...)
    """
    density = share.copy()
    density[..., [0, -1]] *= 2
    below = np.cumsum(density, axis=-1) - (density + density[..., :1]) / 2
    slope = np.gradient(density, axis=-1)
    below = np.maximum.accumulate(below - (slope - slope[..., :1]) / 12, axis=-1)  # Euler and Maclaurin
    below, density = below / below[..., -1:], density / below[..., -1:]
    cell = np.clip((below <= probability[..., None]).sum(axis=-1) - 1, 0, share.shape[-1] - 2)
    (start, end), (first, last) = ((_at(each, cell), _at(each, cell + 1)) for each in (below, density))
    wanted = probability - start
    low, high = np.zeros(cell.shape), np.ones(cell.shape)
    for _ in range(25):
        s = (low + high) / 2
        grown = s**2 * (3 - 2 * s) * (end - start) + s * (1 - s) * ((1 - s) * first - s * last)
        low, high = np.where(grown < wanted, s, low), np.where(grown < wanted, high, s)
    return cell + (low + high) / 2


def von_mises_quantile(concentration: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """Angles from -pi to pi with these probabilities below, von Mises distributed around 0."""
    with np.errstate(divide="ignore"):
        end = 2 * np.arcsin(np.minimum(np.sqrt(_FALL / (2 * concentration)), 1.0))
    share = np.exp(-2 * concentration[..., None] * np.sin(_spaced(-end, end, _N_WIDE) / 2) ** 2)
    share[..., [0, -1]] *= 0.5
    share /= share.sum(axis=-1, keepdims=True)
    return end * (2 * position(share, probability) / (_N_WIDE - 1) - 1)


def _spaced(low: np.ndarray, high: np.ndarray, n: int) -> np.ndarray:
    return low[..., None] + (high - low)[..., None] * np.linspace(0.0, 1.0, n)


def _values(function: Function, t: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Values of a function, -inf where it has none."""
    with np.errstate(all="ignore"):
        values = function(t, members)
    return np.where(np.isnan(values), -np.inf, values)


def _at(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The value at one place of the last axis, for each member."""
    return np.take_along_axis(values, place[..., None], axis=-1)[..., 0]
