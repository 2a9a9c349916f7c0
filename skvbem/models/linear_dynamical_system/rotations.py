r"""Turns of the states: where the prior has one precision for all of them, any orthogonal basis is as good as another.

Draws of parameters then lie on a sphere about nothing, and averages of their coefficients say nothing. What orders and
signs are to labels, turns are to such states: a draw takes the basis O that is nearest to a fit, with the largest

.. math:: f(O) = N \cdot \phi(O\theta), \qquad O\theta = (O A O^\top, O B, C O^\top, D, \rho),

and :math:`O\mu_1, O\Lambda_1 O^\top` of first states that are learned, N the expected statistics of the fit, from the
nearest order and signs on. Each step takes the orthogonal factor of :math:`\nabla f + s\,O`, by which f rises if s is
large enough [Absil et al. 2008].

Chains of the evidence turn the states as they go. A posterior that no turn changes fills a whole orbit, of which a fit
knows one point: densities between them hold chains near it, the less so the nearer they come to the posterior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import expm

from skvbem._numerics import first_axes_last, last_axes_first, pack_symmetric, unpack_symmetric
from skvbem.families import Regression, RegressionPoint
from skvbem.families.normal_gamma import NormalPoint
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.linear_dynamical_system import first_states
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.relabelings import SignedRelabelings

# Steps, and the rise of f, as a share of its size, that is none.
_MAX_STEPS, _NO_RISE = 30, 1e-6
# Turns that tell whether the prior is free of them, and the change of its log density that is none.
_N_TRIED, _NO_CHANGE = 4, 1e-10
# Random turns have angles of 2^-8 to 1 times half a circle.
_SMALLEST_TURN = 8.0


def is_free_to_rotate(model: LinearDynamicalSystem) -> bool:
    """True if no rotation of the states changes the prior: a few rotations of a point leave its density as it is."""
    k, prior = model.n_states, model.prior
    if k < 2 or not (model.first is None or model.first.are_round):
        return False
    rng = np.random.default_rng(0)
    turns = np.linalg.qr(rng.normal(size=(_N_TRIED, k, k)))[0]
    turns[0] = np.eye(k)
    point = prior.from_natural(np.repeat(prior.expected_natural()[:, None], _N_TRIED, axis=1))
    point = tuple(_that_tells_turns(part) for part in point)
    natural = prior.natural(in_basis(point, turns, turns.swapaxes(-1, -2)))
    log_density = prior.coordinates @ natural + prior.log_normalizer_of_hyperparameters(natural)
    return bool(np.allclose(log_density, log_density[0], rtol=_NO_CHANGE, atol=_NO_CHANGE))


def _that_tells_turns(part: RegressionPoint | NormalPoint) -> RegressionPoint | NormalPoint:
    """A point of one block with coefficients, or a mean and variances, that each turn changes."""
    if isinstance(part, RegressionPoint):
        return part._replace(coefficients=1.0 + np.zeros(part.coefficients.shape))
    precision = np.diag(1.0 + np.arange(part.mean.shape[1]))
    return NormalPoint(1.0 + np.zeros(part.mean.shape), precision[None, :, :, None] + np.zeros(part.precision.shape))


def in_basis(point: tuple, map: np.ndarray, back: np.ndarray) -> tuple:
    """Points of states map x, where back is the inverse of each map, (n_lanes, k, k)."""
    k = map.shape[-1]
    of_first = [first_states.in_basis(part, map, back) for part in point[2:]]
    m, c = (last_axes_first(part.coefficients) for part in point[:2])
    m = map @ np.concatenate([m[..., :k] @ back, m[..., k:]], axis=-1)
    c = np.concatenate([c[..., :k] @ back, c[..., k:]], axis=-1)
    return *(part._replace(coefficients=first_axes_last(x)) for part, x in zip(point, (m, c))), *of_first


def turned_statistics(model: LinearDynamicalSystem, statistics: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Statistics (n_cells,) of states that are turned, or change order and signs, by an orthogonal matrix (k, k)."""
    to_dynamics, to_emission, *to_first = model.prior.split(statistics)
    parts = [
        _turned_cells(model.dynamics, to_dynamics, turn, turn),
        _turned_cells(model.emission, to_emission, turn, np.eye(model.n_columns)),
        *(first_states.turned(cells, turn) for cells in to_first),
    ]
    return np.concatenate(parts)


def _turned_cells(block: Regression, cells: np.ndarray, turn: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Cells of a regression on turned states, whose rows are turned by another matrix."""
    packed, total, counts, squares = block.split(cells)
    map = np.eye(block.n_regressors)
    map[: len(turn), : len(turn)] = turn
    products = map @ unpack_symmetric(packed, block.n_regressors) @ map.T
    return np.concatenate([np.ravel(x) for x in (pack_symmetric(products), rows @ total @ map.T, counts, squares)])


def random_turns(
    rng: ParallelGenerator, k: int, n_lanes: int, *, anywhere: bool, orders: bool, signs: bool
) -> np.ndarray:
    """Orthogonal matrices, each as likely as its inverse, (n_lanes, k, k).

    Parameters
    ----------
    rng : ParallelGenerator
    k, n_lanes : int
    anywhere : bool
        Whether all turns are wanted, by angles of any size; a half of them come with an order and signs.
    orders, signs : bool
        Whether orders and signs of states are wanted.
    """
    order = np.argsort(rng.random((k, n_lanes)), axis=0).T if orders else np.tile(np.arange(k), (n_lanes, 1))
    turns = np.eye(k)[order]
    if signs:
        turns *= np.where(rng.random((k, n_lanes)) < 0.5, -1.0, 1.0).T[:, :, None]
    if not anywhere:
        return turns
    turns[rng.random((n_lanes,)) < 0.5] = np.eye(k)
    angle = np.pi * 2.0 ** (-_SMALLEST_TURN * rng.random((n_lanes,)))
    around = last_axes_first(rng.standard_normal((k, k, n_lanes)))
    return expm(angle[:, None, None] * (around - around.swapaxes(-1, -2)) / np.sqrt(2.0)) @ turns


class RotatedRelabelings(SignedRelabelings):
    """Orders and signs of states that a draw may turn between; see `SignedRelabelings`.

    Parameters
    ----------
    model : LinearDynamicalSystem
        Which `is_free_to_rotate`.
    *parts
        As `SignedRelabelings` takes them.
    """

    def __init__(self, model: LinearDynamicalSystem, *parts: Any):
        super().__init__(*parts)
        self.model = model

    def nearest(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """Points in the basis of states that is nearest, starting at the best order and signs."""
        natural = super().nearest(statistics, log_points)
        return self.model.prior.natural(_turned(self.model, statistics, self.model.prior.from_natural(natural)))


def _turned(model: LinearDynamicalSystem, statistics: np.ndarray, point: tuple) -> tuple:
    """A batch of points, each in the basis of states that is nearest to expected statistics."""
    k = model.n_states
    of_states, of_columns, *of_first = point
    m, c = (last_axes_first(part.coefficients) for part in point[:2])
    rho = of_columns.precision.T[:, :, None]
    to_dynamics, to_emission, *to_first = model.prior.split(statistics)
    packed, steps, *_ = model.dynamics.split(to_dynamics)
    before = unpack_symmetric(packed, model.dynamics.n_regressors)[0]
    packed, total, *_ = model.emission.split(to_emission)
    products = unpack_symmetric(packed, model.emission.n_regressors)[model.emission.precision_of]

    def at(turn):
        """f, its gradient by the turn, the turn, and the point there."""
        back = turn.swapaxes(-1, -2)
        moved = turn @ np.concatenate([m[..., :k] @ back, m[..., k:]], axis=-1)
        seen = np.concatenate([c[..., :k] @ back, c[..., k:]], axis=-1)
        of_moved, of_seen = moved @ before, np.einsum("nsd,sde->nse", seen, products)
        value = ((steps - 0.5 * of_moved) * moved).sum(axis=(1, 2)) + (rho * (total - 0.5 * of_seen) * seen).sum((1, 2))
        by_moved, by_seen = steps - of_moved, (rho * (total - of_seen))[..., :k]
        x, u = by_moved[..., :k], by_moved[..., k:]
        slope = x @ turn @ m[..., :k].swapaxes(-1, -2) + x.swapaxes(-1, -2) @ turn @ m[..., :k]
        slope = slope + u @ m[..., k:].swapaxes(-1, -2) + by_seen.swapaxes(-1, -2) @ c[..., :k]
        for part, cells in zip(of_first, to_first):
            of_value, of_slope = first_states.fit_of_turn(part, cells, turn)
            value, slope = value + of_value, slope + of_slope
        return value, slope, turn.copy(), moved, seen

    drawn = np.broadcast_to(np.eye(k), (len(m), k, k))
    left, _, right = np.linalg.svd((rho * total)[..., :k].swapaxes(-1, -2) @ c[..., :k])  # loadings alone
    risen = [_ascended(at, start.copy()) for start in (drawn, left @ right)]
    better = risen[1][0] > risen[0][0]
    turn, moved, seen = (
        np.where(better[:, None, None], other, one) for one, other in zip(*(each[2:] for each in risen))
    )
    coefficients = first_axes_last(moved), first_axes_last(seen)
    return (
        RegressionPoint(coefficients[0], of_states.precision),
        RegressionPoint(coefficients[1], of_columns.precision),
        *(first_states.in_basis(part, turn, turn.swapaxes(-1, -2)) for part in of_first),
    )


def _ascended(at: Any, turn: np.ndarray) -> tuple:
    """What a function of turns gives where its first value is highest; its second is the gradient of that."""
    risen = at(turn)
    shift = 0.1 * np.linalg.norm(risen[1], axis=(1, 2)) + 1e-300
    for _ in range(_MAX_STEPS):
        left, _, right = np.linalg.svd(risen[1] + shift[:, None, None] * turn)
        ahead = left @ right
        there = at(ahead)
        rises = there[0] > risen[0]
        done = bool((np.abs(there[0] - risen[0]) <= _NO_RISE * (1 + np.abs(risen[0]))).all())
        shift = np.where(rises, 0.5 * shift, 4.0 * shift)
        turn[rises] = ahead[rises]
        for kept, new in zip(risen, there):
            kept[rises] = new[rises]
        if done:
            break
    return risen
