"""Clusters of hidden numbers as factors of rows, over the discrete parents of their families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.mixed_network.elimination_of_numbers import Eliminated, Matrices
from skvbem.models.mixed_network.number_families import Cluster, NumberFamilies

# Doubles of products and log densities that are held at once.
_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class NumberTable:
    """Rows as their clusters take them.

    Parameters
    ----------
    n_rows : int
    parts : tuple of (int, ndarray, ndarray)
        Cluster by its place, rows (n,) ascending, and the other numbers of these with a leading 1, (n, n_others).
    """

    n_rows: int
    parts: tuple[tuple[int, np.ndarray, np.ndarray], ...]

    def __len__(self) -> int:
        return self.n_rows

    @property
    def is_there(self) -> np.ndarray:
        """True for rows that any cluster has, (n_rows,)."""
        there = np.zeros(self.n_rows, dtype=bool)
        for _, rows, _ in self.parts:
            there[rows] = True
        return there

    def __getitem__(self, rows: slice | np.ndarray) -> NumberTable:
        place = np.full(self.n_rows, -1)
        chosen = np.arange(self.n_rows)[rows]
        place[chosen] = np.arange(len(chosen))
        parts = []
        for cluster, at, numbers in self.parts:
            kept = np.flatnonzero(place[at] >= 0)
            if len(kept):
                kept = kept[np.argsort(place[at[kept]], kind="stable")]
                parts.append((cluster, place[at[kept]], numbers[kept]))
        return NumberTable(len(chosen), tuple(parts))


@dataclass(frozen=True, eq=False)
class NumberFactor:
    """Clusters of the same discrete parents, as one factor of rows; it takes the place of an emission.

    Parameters
    ----------
    families : NumberFamilies
    parents : tuple of int
    clusters : tuple of Cluster
    """

    families: NumberFamilies
    parents: tuple[int, ...]
    clusters: tuple[Cluster, ...]

    @property
    def n_states(self) -> int:
        """Joint states of the parents."""
        return prod(self.families.layout.cardinalities[p] for p in self.parents)

    @cached_property
    def matrices(self) -> tuple[Matrices, ...]:
        """Of each cluster in all joint states."""
        return tuple(Matrices.of(self.families, [(each, np.arange(self.n_states))]) for each in self.clusters)

    def block_rows(self, n_states: int, n_lanes: int) -> int:
        """Rows whose products and log densities are held at once."""
        most = max(1 + len(each.observed) for each in self.clusters)
        return max(1, _AT_ONCE // (most * (most + 1) // 2 + n_states * n_lanes))

    def is_conjugate(self, table: Any) -> bool:
        """False: numbers are hidden besides discrete parents."""
        return False

    def step(self, natural: np.ndarray) -> NumberStep:
        """The factor at natural parameters (n_cells,) or (n_cells, n_lanes) of the network."""
        return NumberStep(self, natural)


class NumberStep:
    """Clusters at natural parameters, shared by all blocks of an E step; as `skvbem.emissions.base.Step`."""

    def __init__(self, factor: NumberFactor, natural: np.ndarray):
        self.factor, self._single = factor, natural.ndim == 1
        natural = natural.reshape(len(natural), -1)
        self.n_lanes = natural.shape[1]
        self.eliminated = [matrices.eliminated(natural) for matrices in factor.matrices]
        self._rows = [self._coefficients(*each) for each in zip(factor.clusters, self.eliminated)]

    def _coefficients(self, cluster: Cluster, eliminated: Eliminated) -> np.ndarray:
        """What multiplies products of numbers in ln Z, (n_lanes, n_states, n_products)."""
        first, second = np.triu_indices(eliminated.schur.shape[-1])
        rows = -0.5 * (1 + (first != second)) * eliminated.schur[..., first, second]
        rows[..., 0] += eliminated.log_volume + self.factor.families.log_base(cluster)
        return rows.swapaxes(0, 1)

    def log_likelihood(self, block: NumberTable) -> np.ndarray:
        """Expected log densities of observed numbers, nats, (n_rows, n_states) or (n_lanes, n_rows, n_states)."""
        total = np.zeros((self.n_lanes, self.factor.n_states, len(block)))
        for cluster, rows, numbers in block.parts:
            total[..., rows] += self._rows[cluster] @ _products(numbers)
        return total[0].T if self._single else total.swapaxes(-1, -2)

    def zeros(self) -> dict[int, np.ndarray]:
        """An empty sum: of each cluster the products of its numbers, (n_lanes, n_states, n_products)."""
        return {}

    def add(self, block: NumberTable, responsibilities: np.ndarray, total: dict[int, np.ndarray]) -> None:
        """Add the products of a block under responsibilities (n_lanes, n_rows, n_states) to a sum."""
        of_states = responsibilities.swapaxes(-1, -2)
        for cluster, rows, numbers in block.parts:
            sums = of_states[..., rows] @ _products(numbers).T
            total[cluster] = total[cluster] + sums if cluster in total else sums

    def add_drawn(self, block: NumberTable, states: np.ndarray, rng: Any, total: dict[int, np.ndarray]) -> None:
        """As `add`, for joint states (n_lanes, n_rows) that were drawn; numbers are drawn with all rows at hand."""
        self.add(block, (states[..., None] == np.arange(self.factor.n_states)).astype(float), total)

    def filled(
        self, block: NumberTable, states: np.ndarray, rng: np.random.Generator | None = None
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Each hidden number with its rows and values, in units: expected, or drawn where states are certain.

        Parameters
        ----------
        block : NumberTable
        states : ndarray of shape (n_rows, n_states)
            Probabilities of the joint states of the parents.
        rng : numpy.random.Generator, optional
        """
        for k, rows, numbers in block.parts:
            eliminated, of_rows = self.eliminated[k], states[rows]
            values = np.einsum("ns,shr,nr->nh", of_rows, eliminated.gain[:, 0], numbers)
            if rng is not None:
                roots = eliminated.inverse_root[of_rows.argmax(axis=1), 0]
                values += np.einsum("nji,nj->ni", roots, rng.standard_normal(values.shape))
            yield from ((number, rows, column) for number, column in zip(self.factor.clusters[k].hidden, values.T))

    def entropy(self, block: NumberTable, states: np.ndarray) -> np.ndarray:
        """Entropy of the hidden numbers of rows given the parents, nats, (n_rows,): of states (n_states, n_rows)."""
        by_row = np.zeros(len(block))
        for cluster, rows, _ in block.parts:
            by_row[rows] += self.eliminated[cluster].entropy[:, 0] @ states[:, rows]
        return by_row

    def scores(self, block: NumberTable, jacobian: np.ndarray) -> np.ndarray:
        """Expected scores of rows in each state of the parents, (n_rows, n_states, d); see `Matrices.of_scores`."""
        scores = np.zeros((len(block), self.factor.n_states, jacobian.shape[1]))
        for cluster, rows, numbers in block.parts:
            eliminated, r = self.eliminated[cluster], numbers.shape[1]
            of_scores = self.factor.matrices[cluster].of_scores(jacobian)
            hidden = np.einsum("shr,nr->snh", eliminated.gain[:, 0], numbers)
            means = np.concatenate([np.broadcast_to(numbers, (len(hidden), *numbers.shape)), hidden], axis=2)
            of_means = np.einsum("sni,sijd,snj->nsd", means, of_scores, means, optimize=True)
            scores[rows] += of_means + np.einsum("shk,shkd->sd", eliminated.inverse[:, 0], of_scores[:, r:, r:])
        return scores

    def score_covariance(self, block: NumberTable, weights: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        """Covariance (d, d) of scores over hidden numbers, states with weights (n_rows, n_states)."""
        total = np.zeros((jacobian.shape[1],) * 2)
        for cluster, rows, numbers in block.parts:
            products = np.einsum("ns,ni,nj->sij", weights[rows], numbers, numbers, optimize=True)
            matrices, eliminated = self.factor.matrices[cluster], self.eliminated[cluster]
            total += matrices.score_covariance(eliminated, products, jacobian)
        return total

    def statistics(self, total: dict[int, np.ndarray], rng: ParallelGenerator | None = None) -> np.ndarray:
        """Statistics (n_cells, n_lanes) of a sum, of the whole network; hidden numbers drawn with a generator."""
        statistics = np.zeros((self.factor.families.n_cells, self.n_lanes))
        for cluster in sorted(total):
            eliminated, sums = self.eliminated[cluster], total[cluster].swapaxes(0, 1)
            r = eliminated.schur.shape[-1]
            products = np.empty((*sums.shape[:2], r, r))
            first, second = np.triu_indices(r)
            products[..., first, second] = products[..., second, first] = sums
            statistics += self.factor.matrices[cluster].statistics(eliminated.moments(products, rng))
        return statistics


def _products(numbers: np.ndarray) -> np.ndarray:
    """Products of numbers of rows (n_rows, n), each pair once, (n_products, n_rows)."""
    first, second = np.triu_indices(numbers.shape[1])
    return numbers.T[first] * numbers.T[second]
