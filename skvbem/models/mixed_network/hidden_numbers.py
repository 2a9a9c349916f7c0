r"""Numbers that rows hide, summed out exactly: given what is discrete, all numbers of a row are jointly Gaussian.

Let :math:`z = (1, y_1, \dots, y_d)`, numbers in their units. The expected log density of the families of a row is
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
from typing import Any

import numpy as np

from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.mixed_network.elimination_of_numbers import Matrices
from skvbem.models.mixed_network.number_factors import NumberFactor, NumberTable
from skvbem.models.mixed_network.number_families import Cluster, NumberFamilies

# Doubles of matrices that are worked on at once.
_AT_ONCE = 2**20


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

    @classmethod
    def of(
        cls,
        families: NumberFamilies,
        tables: Sequence[Any],
        codes: Mapping[int, np.ndarray],
        weight: np.ndarray,
        by_row: bool = False,
    ) -> HiddenNumbers | None:
        """Of rows: tables of emissions, categories of observed nodes, weights. None where no number is summed out.

        With `by_row` no rows are added up.
        """
        numbers = families.numbers(tables)
        alive = _alive(families, ~np.isnan(numbers))
        hidden = alive & np.isnan(numbers)
        at = np.flatnonzero(hidden.any(axis=1))
        if not len(at):
            return None
        together = np.concatenate([alive[at], hidden[at]], axis=1)
        patterns, pattern_of = np.unique(together, axis=0, return_inverse=True)
        pattern_of = pattern_of.ravel()
        n = families.n_numbers
        rows_of_pattern = _grouped(pattern_of, len(patterns))
        rows_of: dict[Cluster, list[np.ndarray]] = {}
        for pattern, rows in zip(patterns, rows_of_pattern):
            for cluster in _clusters(families, pattern[:n], pattern[n:]):
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


def _alive(families: NumberFamilies, seen: np.ndarray) -> np.ndarray:
    """Numbers that are observed, or have an observed descendant, (n_rows, n_numbers)."""
    alive = seen.copy()
    waiting: dict[int, set[int]] = {k: set() for k in families.products}
    for k in families.products:
        for p in families.given[k]:
            if p in waiting:
                waiting[p].add(k)
    ready = [k for k, children in waiting.items() if not children]
    for k in ready:
        places = families.columns(k)
        if families.products[k].are_joint:
            alive[:, places] = alive[:, places].any(axis=1, keepdims=True)
        for p in families.given[k]:
            if p in waiting and families.sums(k, p):
                alive[:, families.columns(p)] |= alive[:, families.columns(k)].any(axis=1, keepdims=True)
            if p in waiting:
                waiting[p].discard(k)
                if not waiting[p]:
                    ready.append(p)
    return alive


def _clusters(families: NumberFamilies, alive: np.ndarray, hidden: np.ndarray) -> Iterator[Cluster]:
    """The clusters of a row whose numbers are alive, and hidden, (n_numbers,)."""
    groups: list[tuple[set[int], list[int]]] = []  # hidden numbers, and families
    for k in families.products:
        places = families.columns(k)
        if not alive[places].any():
            continue
        around = [
            *places,
            *(number for p in families.given[k] if p in families.products for number in families.columns(p)),
        ]
        here = {number for number in around if hidden[number]}
        if not here:
            continue
        members = [k]
        disjoint = []
        for numbers, others in groups:
            if numbers & here:
                here, members = here | numbers, others + members
            else:
                disjoint.append((numbers, others))
        groups = [*disjoint, (here, members)]
    for here, members in groups:
        of_families: list[tuple[int, tuple[int, ...]]] = []
        numbers_around: set[int] = set()
        parents: set[int] = set()
        for k in sorted(members):
            places = families.columns(k)
            columns = tuple(np.flatnonzero(alive[places]).tolist())
            of_families.append((k, columns))
            numbers_around |= set(places[list(columns)].tolist())
            numbers_around |= {int(number) for p in families.given[k] for number in families.columns(p)}
            parents |= set(families.layout.parents[families.layout.n_tables + k])
        observed = tuple(sorted(numbers_around - here))
        yield Cluster(tuple(of_families), observed, tuple(sorted(map(int, here))), tuple(sorted(parents)))


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
