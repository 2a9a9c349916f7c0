"""Hidden numbers summed out of normal densities: matrices of many clusters at once, expected or drawn moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi

import numpy as np
from scipy.sparse import csr_matrix

from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.mixed_network.number_families import Cluster, NumberFamilies


@dataclass(frozen=True, eq=False)
class Matrices:
    """Omega of several instances of the same size: clusters in joint states of their parents.

    Parameters
    ----------
    n : int
        Instances.
    size, n_hidden : int
        Of (1, numbers), hidden ones last.
    scatter : csr_matrix of shape (n * size * size, n_cells)
        Minus what natural parameters make of it.
    """

    n: int
    size: int
    n_hidden: int
    scatter: csr_matrix

    @classmethod
    def of(cls, families: NumberFamilies, instances: Sequence[tuple[Cluster, np.ndarray]]) -> Matrices:
        """Of clusters, each in some joint states."""
        first, rows, cells, values = 0, [], [], []
        cluster = instances[0][0]
        size = 1 + len(cluster.observed) + len(cluster.hidden)
        for cluster, states in instances:
            which, element, cell, factor = families.scatter(cluster, states)
            i, j = element // size, element % size
            base = (first + which) * size * size
            rows += [base + i * size + j, base + j * size + i]
            cells += [cell, cell]
            values += [factor, factor]
            first += len(states)
        shape = (first * size * size, families.n_cells)
        matrix = csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(cells))), shape=shape)
        return cls(first, size, len(cluster.hidden), matrix)

    def eliminated(self, natural: np.ndarray) -> Eliminated:
        """Hidden numbers summed out at natural parameters (n_cells, n_lanes)."""
        omega = -(self.scatter @ natural).reshape(self.n, self.size, self.size, -1)
        omega = np.moveaxis(omega, -1, 1)
        r = self.size - self.n_hidden
        root = np.linalg.cholesky(omega[..., r:, r:])
        inverse_root = np.linalg.inv(root)
        inverse = inverse_root.swapaxes(-1, -2) @ inverse_root
        gain = -inverse @ omega[..., r:, :r]
        schur = omega[..., :r, :r] + omega[..., :r, r:] @ gain
        log_root = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
        return Eliminated(gain, inverse, inverse_root, schur, 0.5 * self.n_hidden * log(2 * pi) - log_root)

    def of_scores(self, jacobian: np.ndarray) -> np.ndarray:
        """Symmetric B of each instance, (n, size, size, d): scores are z'Bz, by derivatives of cells (n_cells, d)."""
        return (0.5 * (self.scatter @ jacobian)).reshape(self.n, self.size, self.size, -1)

    def score_covariance(self, eliminated: Eliminated, products: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        r"""Covariance (d, d) of scores over hidden numbers, summed over rows.

        That of two quadratic forms of a normal vector with mean m and covariance S is
        :math:`4 m^\top B S B' m + 2 \mathrm{tr}(B S B' S)`.

        Parameters
        ----------
        eliminated : Eliminated
            Of one lane.
        products : ndarray of shape (n, n_others, n_others)
            Sums of products of the others.
        jacobian : ndarray of shape (n_cells, d)
            Derivatives of natural parameters.
        """
        r, total = self.size - self.n_hidden, np.zeros((jacobian.shape[1],) * 2)
        for k, of_score in enumerate(self.of_scores(jacobian)):
            root, completed = eliminated.inverse_root[k, 0].T, np.concatenate([np.eye(r), eliminated.gain[k, 0]])
            means = completed @ products[k] @ completed.T
            with_root = np.einsum("ijd,jh->hid", of_score[:, r:], root)
            around = np.einsum("ih,jid->hjd", root, with_root[:, r:])
            total += 4 * np.einsum("hid,ij,hje->de", with_root, means, with_root, optimize=True)
            total += 2 * products[k, 0, 0] * np.einsum("hjd,hje->de", around, around, optimize=True)
        return total

    def statistics(self, moments: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, n_lanes) of sums of z z', (n, n_lanes, size, size)."""
        flat = np.moveaxis(moments, 1, -1).reshape(self.n * self.size * self.size, -1)
        return 0.5 * (self.scatter.T @ flat)


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Hidden numbers of instances given the others, arrays (n, n_lanes, ...).

    Parameters
    ----------
    gain : ndarray (..., n_hidden, n_others)
        K.
    inverse, inverse_root : ndarray (..., n_hidden, n_hidden)
        The covariance, and the inverse of the Cholesky factor of J.
    schur : ndarray (..., n_others, n_others)
        Q.
    log_volume : ndarray
        ln Z where the others are 0, but for their constant.
    """

    gain: np.ndarray
    inverse: np.ndarray
    inverse_root: np.ndarray
    schur: np.ndarray
    log_volume: np.ndarray

    @property
    def entropy(self) -> np.ndarray:
        """Of the hidden numbers of a row, nats, (n, n_lanes)."""
        return self.log_volume + 0.5 * self.inverse.shape[-1]

    def log_z(self, products: np.ndarray) -> np.ndarray:
        """Sums of ln Z of rows with these sums of products, nats, (n, n_lanes)."""
        return -0.5 * (self.schur * products).sum(axis=(-2, -1)) + self.log_volume * products[..., 0, 0]

    def moments(self, products: np.ndarray, rng: ParallelGenerator | None = None) -> np.ndarray:
        """Expected sums of z z' given those of the others, (n, n_lanes, n_others, n_others); drawn with a generator."""
        n_rows = products[..., :1, :1]
        cross = self.gain @ products
        hidden = cross @ self.gain.swapaxes(-1, -2)
        if rng is None:
            hidden = hidden + n_rows * self.inverse
        else:
            noise, beside = self._noise(products, rng)
            along = self.gain @ beside.swapaxes(-1, -2)
            hidden = hidden + along + along.swapaxes(-1, -2) + noise
            cross = cross + beside
        shape = np.broadcast_shapes(products.shape[:-2], self.gain.shape[:-2])
        products = np.broadcast_to(products, (*shape, *products.shape[-2:]))
        return np.block([[products, cross.swapaxes(-1, -2)], [cross, hidden]])

    def _noise(self, products: np.ndarray, rng: ParallelGenerator) -> tuple[np.ndarray, np.ndarray]:
        r"""Sums of products of the noise of hidden numbers, with itself and with the others, as rows draw it.

        With :math:`W = R^\top R`, R of as many rows as W has directions, the noise of n rows is standard normal in
        these directions, and in n less these others: there it is a Wishart matrix, drawn by its triangular factor
        [Bartlett 1933].
        """
        *shape, h, r = self.gain.shape
        values, vectors = np.linalg.eigh(products)
        root = np.sqrt(np.maximum(values, 0.0))[..., None] * vectors.swapaxes(-1, -2)
        n_rows = np.broadcast_to(np.round(products[..., 0, 0]), shape)
        n_directions = np.minimum(n_rows, r)
        # eigenvalues ascend: the directions there are, the last ones
        is_there = np.arange(r) >= r - n_directions[..., None]
        draws = np.moveaxis(rng.standard_normal((shape[0], r, h, shape[1])), -1, 1) * is_there[..., None]
        degrees = (n_rows - n_directions)[..., None] - np.arange(h)
        gammas = np.moveaxis(rng.standard_gamma(np.moveaxis(np.maximum(0.5 * degrees, 0.5), 1, -1)), -1, 1)
        below = np.moveaxis(rng.standard_normal((shape[0], h, h, shape[1])), -1, 1)
        factor = np.tril(below, -1) + np.sqrt(2 * gammas)[..., None, :] * np.eye(h)
        factor = factor * (degrees > 0)[..., None, :]
        within = draws.swapaxes(-1, -2) @ draws + factor @ factor.swapaxes(-1, -2)
        turn = self.inverse_root.swapaxes(-1, -2)
        return turn @ within @ self.inverse_root, turn @ (draws.swapaxes(-1, -2) @ root)
