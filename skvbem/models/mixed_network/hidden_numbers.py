r"""Numbers that rows hide, summed out exactly: given what is discrete, all numbers of a row are jointly Gaussian.

Let :math:`z = (1, y_1, \ldots, y_d)`, numbers in their units. The expected log density of the families of a row is
:math:`-\tfrac12 z^\top \Omega z`, and :math:`\Omega` is linear in expected natural parameters. With H the hidden
numbers and O the others,

.. math::

    J = \Omega_{HH}, \quad K = -J^{-1} \Omega_{HO}, \quad Q = \Omega_{OO} + \Omega_{OH} K, \qquad
    \ln Z = -\tfrac12 z_O^\top Q z_O - \tfrac12 \ln |J| + \tfrac{|H|}2 \ln 2\pi,

and under q hidden numbers have means :math:`K z_O` and covariance :math:`J^{-1}` [Lauritzen 1992; Beal 2.2 for expected
natural parameters]. J is positive definite: in topological order each hidden number has a family of its own. Statistics
are products of numbers, so that rows with the same families, hidden numbers and discrete parents count by one matrix,
:math:`W = \sum_i \omega_i z_{iO} z_{iO}^\top`.

In a row, hidden numbers that share a family make a *cluster*, with one factor over the discrete parents of its
families. A missing number none of whose descendants is observed sums to one, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.mixed_network.elimination_of_numbers import Matrices
from skvbem.models.mixed_network.number_factors import NumberFactor, NumberTable
from skvbem.models.mixed_network.number_families import Cluster, NumberFamilies
from skvbem.models.network.contexts import disjoint

# Doubles of matrices that are worked on at once, of each lane: half a megabyte.
_AT_ONCE = 2**16


@dataclass(frozen=True, eq=False)
class KnownNumbers:
    """Rows that hide numbers and no discrete parent of these, by clusters and joint states of parents.

    Parameters
    ----------
    matrices : Matrices
    products : ndarray of shape (n, n_others, n_others)
        W of each instance.
    log_base : float
        What units of measure add to the log density of all rows, nats.
    """

    matrices: Matrices
    products: np.ndarray
    log_base: float

    def sums(self, natural: np.ndarray, rng: ParallelGenerator | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Statistics (n_cells, n_lanes) and ln Z (n_lanes,) at natural parameters (n_cells, n_lanes)."""
        eliminated, products = self.matrices.eliminated(natural), self.products[:, None]
        log_z = eliminated.log_z(products).sum(axis=0) + self.log_base
        return self.matrices.statistics(eliminated.moments(products, rng)), log_z

    def score_covariance(self, natural: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        """Covariance (d, d) of scores over hidden numbers, derivatives of natural parameters (n_cells, d)."""
        return self.matrices.score_covariance(self.matrices.eliminated(natural[:, None]), self.products, jacobian)

    def entropy(self, natural: np.ndarray) -> float:
        """Entropy of hidden numbers at natural parameters (n_cells,), nats."""
        return float(self.products[:, 0, 0] @ self.matrices.eliminated(natural[:, None]).entropy[:, 0])


@dataclass(frozen=True, eq=False)
class HiddenNumbers:
    """What rows hide of numbers, ready for many E steps.

    Parameters
    ----------
    known : tuple of KnownNumbers
        Where all discrete parents are observed.
    factors : tuple of NumberFactor
        Of all others, by their discrete parents.
    tables : tuple of NumberTable
        Of these, all rows.
    involved : dict of int to ndarray of bool, shape (n_rows,)
        Of each emission that is in a cluster, the rows in which it is.
    """

    known: tuple[KnownNumbers, ...]
    factors: tuple[NumberFactor, ...]
    tables: tuple[NumberTable, ...]
    involved: dict[int, np.ndarray]

    @property
    def doubles_per_row(self) -> int:
        """Doubles of the largest matrix that a row may need, of each lane."""
        matrices = [known.matrices for known in self.known]
        matrices += [each for factor in self.factors for each in factor.matrices]
        return max(each.size**2 for each in matrices)

    @classmethod
    def of(
        cls,
        families: NumberFamilies,
        tables: Sequence[Any],
        codes: Mapping[int, np.ndarray],
        weight: np.ndarray,
        by_row: bool = False,
        wanted: Sequence[int] = (),
        values_set: Mapping[int, np.ndarray] = MappingProxyType({}),
    ) -> HiddenNumbers | None:
        """Of rows: tables of emissions, categories of observed nodes, weights. None where no number is summed out.

        With `by_row` no rows are added up. Numbers that are `wanted` are in a cluster wherever they are missing. Those
        that were set are known to their children, and have no family of their own.
        """
        numbers, are_set = families.numbers(tables, values_set)
        seen = ~np.isnan(numbers)
        seen[:, list(wanted)] = True
        alive = _alive(families, seen, are_set)
        hidden = alive & np.isnan(numbers)
        at = np.flatnonzero(hidden.any(axis=1))
        if not len(at):
            return None
        patterns, pattern_of = _patterns(alive[at], hidden[at])
        clusters = _Clusters(families)
        rows_of: dict[Cluster, list[np.ndarray]] = {}
        for pattern, rows in zip(patterns, _grouped(pattern_of, len(patterns))):
            for cluster in clusters.of(*pattern):
                rows_of.setdefault(cluster, []).append(at[rows])
        involved: dict[int, np.ndarray] = {}
        by_size: dict[tuple, list] = {}
        by_parents: dict[tuple, list] = {}
        for cluster in sorted(rows_of, key=lambda each: (each.families, each.hidden)):
            rows = np.sort(np.concatenate(rows_of[cluster]))
            for k, _ in cluster.families:
                involved.setdefault(k, np.zeros(len(numbers), dtype=bool))[rows] = True
            others = np.concatenate([np.ones((len(rows), 1)), numbers[rows][:, list(cluster.observed)]], axis=1)
            states, is_known = _states(families, cluster, codes, rows)
            is_known &= not by_row
            if is_known.any():
                size = len(cluster.observed), len(cluster.hidden)
                by_size.setdefault(size, []).append(
                    (cluster, states[is_known], others[is_known], weight[rows[is_known]])
                )
            if not is_known.all():
                by_parents.setdefault(cluster.parents, []).append((cluster, rows[~is_known], others[~is_known]))
        factors = [NumberFactor(families, parents, tuple(c for c, *_ in of)) for parents, of in by_parents.items()]
        of_rows = [NumberTable(len(numbers), tuple((k, rows, others) for k, (_, rows, others) in enumerate(of)))
                   for of in by_parents.values()]  # fmt: skip
        known = tuple(each for of in by_size.values() for each in _known(families, of))
        return cls(known, tuple(factors), tuple(of_rows), involved)


def _alive(families: NumberFamilies, seen: np.ndarray, are_set: np.ndarray) -> np.ndarray:
    """Numbers that are observed, or have an observed descendant, and were not set, (n_rows, n_numbers)."""
    alive = seen & ~are_set
    waiting: dict[int, set[int]] = {k: set() for k in families.products}
    for k in families.products:
        for p in families.given[k]:
            if p in waiting:
                waiting[p].add(k)
    ready = [k for k, children in waiting.items() if not children]
    for k in ready:
        places = families.responses[k]
        alive[:, places] &= ~are_set[:, places]
        if families.products[k].are_joint:
            alive[:, places] = alive[:, places].any(axis=1, keepdims=True)
        for p in families.given[k]:
            if p in waiting and k in families.summing:
                alive[:, families.responses[p]] |= alive[:, families.responses[k]].any(axis=1, keepdims=True)
            if p in waiting:
                waiting[p].discard(k)
                if not waiting[p]:
                    ready.append(p)
    return alive


def _patterns(alive: np.ndarray, hidden: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Distinct rows of two arrays (n_rows, n_numbers), as two integers of as many bits, and which each row is."""
    packed = [np.packbits(each, axis=1, bitorder="little") for each in (alive, hidden)]
    together = np.ascontiguousarray(np.concatenate(packed, axis=1))
    keys = together.view(np.dtype((np.void, together.shape[1]))).ravel()
    _, first, pattern_of = np.unique(keys, return_index=True, return_inverse=True)
    integers = ([int.from_bytes(row, "little") for row in each[first].tolist()] for each in packed)
    return list(zip(*integers)), pattern_of.ravel()


class _Clusters:
    """Clusters of rows, each made once."""

    def __init__(self, families: NumberFamilies):
        self.families = families
        self._around = [(k, _bits(families.responses[k]), _bits(around)) for k, around in families.around.items()]
        self._responses = {k: bits for k, bits, _ in self._around}
        self._made: dict[tuple, Cluster] = {}

    def of(self, alive: int, hidden: int) -> Iterator[Cluster]:
        """The clusters of a row whose numbers are alive, and hidden, bit by bit."""
        scopes = ((around & hidden, [k]) for k, responses, around in self._around if responses & alive)
        for here, members in disjoint(scopes):
            of_members = sum(self._responses[k] for k in members) & alive
            key = here, *sorted(members), of_members
            if key not in self._made:
                self._made[key] = self._cluster(here, tuple(sorted(members)), of_members)
            yield self._made[key]

    def _cluster(self, hidden: int, members: tuple[int, ...], alive: int) -> Cluster:
        families, around, parents = self.families, 0, set[int]()
        for k in members:
            around |= (self._responses[k] & alive) | sum(self._responses[p] for p in families.given[k])
            parents |= set(families.layout.parents[families.layout.n_tables + k])
        columns = (tuple(j for j, v in enumerate(families.responses[k].tolist()) if alive >> v & 1) for k in members)
        return Cluster(tuple(zip(members, columns)), _places(around & ~hidden), _places(hidden), tuple(sorted(parents)))


def _bits(places: np.ndarray) -> int:
    """Places as the bits of an integer."""
    return sum(1 << place for place in places.tolist())


def _places(bits: int) -> tuple[int, ...]:
    """The places of the bits that are set, ascending."""
    return tuple(place for place in range(bits.bit_length()) if bits >> place & 1)


def _states(
    families: NumberFamilies, cluster: Cluster, codes: Mapping[int, np.ndarray], rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The joint state of a cluster's parents in some rows, and whether all of them are observed there."""
    states, is_known = np.zeros(len(rows), dtype=np.int64), np.ones(len(rows), dtype=bool)
    for p in cluster.parents:
        of_parent = codes[p][rows].astype(np.int64) if p in codes else np.full(len(rows), -1)
        is_known &= of_parent >= 0
        states = states * families.layout.cardinalities[p] + np.maximum(of_parent, 0)
    return states, is_known


def _known(families: NumberFamilies, parts: Sequence[tuple]) -> Iterator[KnownNumbers]:
    """Rows of clusters of one size, some at a time."""
    instances: list[tuple[Cluster, np.ndarray]] = []
    products: list[np.ndarray] = []
    log_base, n_doubles = 0.0, 0
    for cluster, states, others, weight in parts:
        distinct, which = np.unique(states, return_inverse=True)
        log_base += float(weight.sum()) * families.log_base(cluster)
        instances.append((cluster, distinct))
        for rows in _grouped(which, len(distinct)):
            products.append((others[rows].T * weight[rows]) @ others[rows])
        n_doubles += len(distinct) * (others.shape[1] + len(cluster.hidden)) ** 2
        if n_doubles > _AT_ONCE:
            yield KnownNumbers(Matrices.of(families, instances), np.stack(products), log_base)
            instances, products, log_base, n_doubles = [], [], 0.0, 0
    if instances:
        yield KnownNumbers(Matrices.of(families, instances), np.stack(products), log_base)


def _grouped(which: np.ndarray, n: int) -> list[np.ndarray]:
    """Positions of each of n values, ascending."""
    order = np.argsort(which, kind="stable")
    return np.split(order, np.cumsum(np.bincount(which, minlength=n))[:-1])
