r"""Rotations of loadings towards simple structure, by gradient projection [Jennrich 2001, 2002].

What white factors of loadings A explain, :math:`A A^\top`, is :math:`L \Phi L^\top` in many ways,
:math:`L = A T^{-\top}` and :math:`\Phi = T^\top T` with columns of T of length 1: a rotation is the T that makes a
criterion of L least [Bernaards & Jennrich 2005]. T is orthogonal, and factors stay uncorrelated, or it is oblique.
Promax takes the loadings of varimax to a power, and goes to these by least squares [Hendrickson & White 1964].

All functions take many matrices at once, (n, d, q), each with a rotation of its own: draws of a posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

# Random starts of the rotation of a fit beside the loadings as they are, and their seed.
_N_STARTS, _SEED = 15, 0
# Most steps, halvings of each, and the length of a projected gradient at which a rotation has converged.
_MAX_STEPS, _MAX_HALVINGS, _TOLERANCE = 2000, 30, 1e-8
# The power of promax that R takes.
_POWER = 4

Criterion = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def varimax(loadings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minus the variance of squared loadings within columns, and its gradient [Kaiser 1958]."""
    squares = loadings**2
    centered = squares - squares.mean(axis=-2, keepdims=True)
    return -(centered**2).sum(axis=(-2, -1)) / 4, -loadings * centered


def quartimax(loadings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Minus the fourth powers of loadings, and the gradient of their sum [Neuhaus & Wrigley 1954]."""
    return -(loadings**4).sum(axis=(-2, -1)) / 4, -(loadings**3)


def oblimin(loadings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products of squared loadings of different factors, and the gradient of their sum: quartimin [Carroll 1953]."""
    squares = loadings**2
    of_others = squares.sum(axis=-1, keepdims=True) - squares
    return (squares * of_others).sum(axis=(-2, -1)) / 4, loadings * of_others


@dataclass(frozen=True)
class Rotation:
    """A way to rotate loadings.

    Parameters
    ----------
    criterion : callable
    is_oblique : bool
        Whether factors may be correlated.
    normalizes : bool
        Whether each column of the data has loadings of length 1 while they are rotated [Kaiser 1958].
    power : int
        Of the loadings that promax goes to from the rotated ones; 1 without.
    """

    criterion: Criterion
    is_oblique: bool = False
    normalizes: bool = False
    power: int = 1

    def of(self, loadings: np.ndarray) -> np.ndarray:
        """T of one matrix of loadings (d, q), the best from several starts, (q, q)."""
        q = loadings.shape[1]
        if q < 2:
            return np.eye(q)
        rng = np.random.default_rng(_SEED)
        starts = np.linalg.qr(rng.standard_normal((_N_STARTS, q, q)))[0]
        starts = np.concatenate([np.eye(q)[None], starts])
        many = np.broadcast_to(loadings, (len(starts), *loadings.shape))
        values, turns = self._least(many, starts)
        return self._raised(loadings[None], turns[[values.argmin()]])[0]

    def near(self, loadings: np.ndarray, start: np.ndarray) -> np.ndarray:
        """T of each of many matrices (n, d, q), the optimum next to one start (q, q), (n, q, q)."""
        n, _, q = loadings.shape
        if q < 2:
            return np.repeat(start[None], n, axis=0)
        start = start if self.is_oblique and self.power == 1 else nearest_orthogonal(start)
        starts = np.broadcast_to(start, (n, q, q))
        return self._raised(loadings, self._least(loadings, starts)[1])

    def _least(self, loadings: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.normalizes:
            length = np.linalg.norm(loadings, axis=-1, keepdims=True)
            loadings = loadings / np.where(length > 0, length, 1.0)
        return gradient_projection(loadings, self.criterion, starts, is_oblique=self.is_oblique and self.power == 1)

    def _raised(self, loadings: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """T of promax, from those of varimax; those as they are without a power, or where loadings lack a rank."""
        if self.power == 1:
            return turns
        rotated = loadings @ turns
        target = rotated * np.abs(rotated) ** (self.power - 1)
        map = np.linalg.pinv(rotated) @ target
        inverse = np.linalg.pinv(map)
        lengths = np.linalg.norm(inverse, axis=-1)[..., None, :]
        raised = (turns @ inverse.swapaxes(-1, -2)) / np.where(lengths > 0, lengths, 1.0)  # factors of variance 1
        has_inverse = np.linalg.matrix_rank(map) == map.shape[-1]
        return np.where(has_inverse[..., None, None], raised, turns)


#: Rotations by name. Varimax, and promax after it, weigh all columns of the data alike, as R does.
ROTATIONS = {
    "varimax": Rotation(varimax, normalizes=True),
    "quartimax": Rotation(quartimax),
    "promax": Rotation(varimax, is_oblique=True, normalizes=True, power=_POWER),
    "oblimin": Rotation(oblimin, is_oblique=True),
}


def rotated(loadings: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """Loadings on factors that are turned by T, (..., d, q)."""
    return np.linalg.solve(turns, loadings.swapaxes(-1, -2)).swapaxes(-1, -2)


def gradient_projection(
    loadings: np.ndarray, criterion: Criterion, starts: np.ndarray, *, is_oblique: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The criterion (n,) and T (n, q, q) at the ends of descents from starts, for loadings (n, d, q)."""
    turns = np.array(starts)
    values, gradients = _at(loadings, criterion, turns, is_oblique)
    lengths, live = np.ones(len(turns)), np.arange(len(turns))
    for _ in range(_MAX_STEPS):
        projected = _projected(turns[live], gradients[live], is_oblique)
        squares = (projected**2).sum(axis=(-2, -1))
        moving = squares > (_TOLERANCE * np.maximum(np.abs(values[live]), 1e-3)) ** 2
        live, projected, squares = live[moving], projected[moving], squares[moving]
        if not len(live):
            break
        lengths[live] *= 2
        waiting = np.arange(len(live))
        for _ in range(_MAX_HALVINGS):
            which = live[waiting]
            moved = _onto(turns[which] - lengths[which, None, None] * projected[waiting], is_oblique)
            reached, slopes = _at(loadings[which], criterion, moved, is_oblique)
            falls = values[which] - reached > 0.5 * squares[waiting] * lengths[which]
            there = which[falls]
            turns[there], values[there], gradients[there] = moved[falls], reached[falls], slopes[falls]
            waiting = waiting[~falls]
            if not len(waiting):
                break
            lengths[live[waiting]] /= 2
        live = np.delete(live, waiting)  # no step falls any more: rounding is all that is left
    return values, turns


def _at(loadings: np.ndarray, criterion: Criterion, turns: np.ndarray, is_oblique: bool) -> tuple[np.ndarray, ...]:
    """The criterion, and its gradient by T."""
    if not is_oblique:
        value, slope = criterion(loadings @ turns)
        return value, loadings.swapaxes(-1, -2) @ slope
    at = rotated(loadings, turns)
    value, slope = criterion(at)
    return value, -np.linalg.solve(turns.swapaxes(-1, -2), slope.swapaxes(-1, -2) @ at)


def _projected(turns: np.ndarray, gradients: np.ndarray, is_oblique: bool) -> np.ndarray:
    """The gradient along the manifold: orthogonal matrices, or those with columns of length 1."""
    if is_oblique:
        return gradients - turns * (turns * gradients).sum(axis=-2, keepdims=True)
    inner = turns.swapaxes(-1, -2) @ gradients
    return gradients - turns @ (inner + inner.swapaxes(-1, -2)) / 2


def _onto(matrices: np.ndarray, is_oblique: bool) -> np.ndarray:
    """The nearest point of the manifold."""
    if is_oblique:
        return matrices / np.linalg.norm(matrices, axis=-2, keepdims=True)
    return nearest_orthogonal(matrices)


def nearest_orthogonal(matrices: np.ndarray) -> np.ndarray:
    """The orthogonal matrix nearest to each of many (n, q, q)."""
    left, _, right = np.linalg.svd(matrices, full_matrices=False)
    return left @ right


def order_and_signs(loadings: np.ndarray, correlations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors by the variance they explain, the most first, and signs that make largest loadings positive.

    Parameters
    ----------
    loadings : ndarray of shape (d, q)
    correlations : ndarray of shape (q, q)
        Correlations of the factors.
    """
    explained = explained_variance(loadings, correlations)
    largest = np.abs(loadings).argmax(axis=0)
    signs = np.where(loadings[largest, np.arange(loadings.shape[1])] < 0, -1.0, 1.0)
    return np.argsort(-explained, kind="stable"), signs


def explained_variance(loadings: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """Share of the sum of all variances that each factor explains, (q,); correlated factors share it out."""
    return np.diag(correlations @ loadings.T @ loadings)


def matched(loadings: np.ndarray, like: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Permutations and signs, (n, q) each, that match the factors of matrices (n, d, q) to those of one (d, q)."""
    alike = like.T @ loadings
    order = np.array([linear_sum_assignment(-np.abs(each))[1] for each in alike]).reshape(len(loadings), -1)
    signs = np.take_along_axis(alike, order[:, :, None], axis=2)[..., 0]
    return order, np.where(signs < 0, -1.0, 1.0)
