r"""Rows completed by q(x): every joint state of what is hidden in a row, and its probability.

Expected counts of any family of nodes follow, also of families that the network which made q(x) does not have, so that

.. math:: \ln p(y \mid m) \ge H(q) + \ln \mathrm{BD}_m(\langle N \rangle_q)

bounds the evidence of every network m over the same nodes from one q(x) [Beal (2.151); Friedman 1998]. Hidden states
can be merged and split, and hidden nodes come and go, which makes a q(x) for networks whose hidden nodes are others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Self

import numpy as np
from scipy.special import xlogy

from skvbem._numerics import safe_log
from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.models.network.contexts import joint_keys
from skvbem.models.network.layout import Layout
from skvbem.models.network.model import DiscreteDAG

# Rows with more joint states of what is hidden in them keep so many: the most probable ones, and none whose share is
# below this of the most probable one's. The bounds of other q(x) are bounds as well.
_MAX_STATES_KEPT, _LOWEST_LOG_WEIGHT = 64, np.log(1e-5)


@dataclass(frozen=True, eq=False)
class CompletedRows:
    """All joint states of all rows, weighted by q(x).

    Parameters
    ----------
    cardinalities : mapping of node to int
        Number of states of every node, in the order of `codes`.
    codes : ndarray of int, shape (n_nodes, n_completions)
        Nothing is missing.
    row : ndarray of int, shape (n_completions,)
        Which row of data each completes.
    weight : ndarray of shape (n_completions,)
        The weight of the row times the probability of the completion, > 0.
    row_weight : ndarray of shape (n_rows,)
    """

    cardinalities: Mapping[Hashable, int]
    codes: np.ndarray
    row: np.ndarray
    weight: np.ndarray
    row_weight: np.ndarray

    @classmethod
    def of_complete(cls, rows: Rows, cardinalities: Mapping[Hashable, int]) -> Self:
        """Rows in which nothing is hidden: each is its only completion."""
        weight = np.ones(len(rows)) if rows.weight is None else np.asarray(rows.weight, dtype=float)
        sizes = {name: cardinalities[name] for name in rows.names}
        return cls(sizes, rows.codes.T, np.arange(len(rows)), weight, weight)

    @cached_property
    def place(self) -> dict[Hashable, int]:
        """Position of each node's states in `codes`."""
        return {node: k for k, node in enumerate(self.cardinalities)}

    @property
    def is_certain(self) -> bool:
        """Whether every row has one completion: nothing is hidden."""
        return len(self.weight) == len(self.row_weight)

    @cached_property
    def entropy(self) -> float:
        """H(q), nats: that of q of each row, times its weight."""
        return float(-xlogy(self.weight, self.weight / self.row_weight[self.row]).sum())

    def counts(self, family: Sequence[Hashable]) -> np.ndarray:
        """Expected counts of the joint states of some nodes, one axis each."""
        shape = tuple(self.cardinalities[node] for node in family)
        cells = np.zeros(len(self.weight), dtype=np.intp)
        for node, size in zip(family, shape):
            cells *= size
            cells += self.codes[self.place[node]]
        return np.bincount(cells, weights=self.weight, minlength=prod(shape)).reshape(shape)

    def statistics(self, model: DiscreteDAG) -> np.ndarray:
        """Expected statistics of a network over these nodes, (n_cells,)."""
        return model.flat({node: self.counts(model.dag.family(node)) for node in model.dag.nodes})

    def without(self, node: Hashable) -> CompletedRows:
        """Completed rows with a hidden node summed out."""
        cardinalities = {name: size for name, size in self.cardinalities.items() if name != node}
        return self._with_distinct_completions(cardinalities, np.delete(self.codes, self.place[node], axis=0))

    def with_constant(self, node: Hashable) -> CompletedRows:
        """Completed rows with a new hidden node of one state, ahead of the others."""
        codes = np.concatenate([np.zeros_like(self.codes[:1]), self.codes])
        return replace(self, cardinalities={node: 1, **self.cardinalities}, codes=codes)

    def merged(self, node: Hashable, kept: int, given_up: int) -> CompletedRows:
        """Completed rows with one state of a hidden node joined to another; states above it move down by one."""
        codes, place = self.codes.copy(), self.place[node]
        states = np.where(codes[place] == given_up, kept, codes[place])
        codes[place] = states - (states > given_up)
        return self._with_distinct_completions({**self.cardinalities, node: self.cardinalities[node] - 1}, codes)

    def split(self, node: Hashable, state: int, fraction: np.ndarray) -> CompletedRows:
        """Completed rows with a fraction of one state of a hidden node moved to a new last state.

        Parameters
        ----------
        node : hashable
        state : int
        fraction : ndarray of shape (n_completions,)
            Between 0 and 1, exclusive.
        """
        place = self.place[node]
        split = np.flatnonzero(self.codes[place] == state)
        codes = np.concatenate([self.codes, self.codes[:, split]], axis=1)
        codes[place, self.codes.shape[1] :] = self.cardinalities[node]
        weight = self.weight.copy()
        weight[split] *= 1.0 - fraction[split]
        return replace(
            self,
            cardinalities={**self.cardinalities, node: self.cardinalities[node] + 1},
            codes=codes,
            row=np.concatenate([self.row, self.row[split]]),
            weight=np.concatenate([weight, self.weight[split] * fraction[split]]),
        )

    def _with_distinct_completions(self, cardinalities: Mapping, codes: np.ndarray) -> CompletedRows:
        """Completed rows with equal completions of a row made one."""
        columns, sizes = [self.row, *codes], [len(self.row_weight), *cardinalities.values()]
        keys = joint_keys(columns, sizes, len(self.row))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        weight = np.bincount(inverse, weights=self.weight)
        return CompletedRows(dict(cardinalities), codes[:, first], self.row[first], weight, self.row_weight)


def complete_rows(model: DiscreteDAG, statistics: np.ndarray, rows: Rows, *, max_memory=np.inf) -> CompletedRows:
    """Rows completed by the q(x) that follows from q(theta) = prior + statistics.

    Parameters
    ----------
    model : DiscreteDAG
    statistics : ndarray of shape (n_cells,)
    rows : Rows
        Equal ones are completed one by one.
    max_memory : float
        Bytes.

    Raises
    ------
    TooLargeError
        If the joint states of all rows take too much memory.

    Notes
    -----
    Unobserved nodes without observed descendants, which the E step leaves out, follow the means of their tables given
    the rest: q of the others stays as it is. Of rows with very many joint states the improbable ones are left out.
    """
    posterior = model.prior + statistics
    logs = posterior.expected_natural(), safe_log(posterior.mean())
    layout = model.layout
    dtype = np.min_scalar_type(-max(layout.cardinalities))
    codes = np.full((len(layout.names), len(rows)), -1, dtype=dtype)
    for node, column in model.columns(rows).items():
        codes[node] = column
    weight = np.ones(len(rows)) if rows.weight is None else np.asarray(rows.weight, dtype=float)
    patterns, pattern = np.unique(codes < 0, axis=1, return_inverse=True)
    members = [np.flatnonzero(pattern.ravel() == k) for k in range(patterns.shape[1])]
    hidden = [np.flatnonzero(missing).tolist() for missing in patterns.T]
    _check_size(layout, [(len(chosen), nodes) for chosen, nodes in zip(members, hidden)], max_memory)
    parts = [_completions(layout, logs, codes[:, chosen], nodes) for chosen, nodes in zip(members, hidden)]
    row = np.concatenate([chosen[which] for chosen, (_, which, _) in zip(members, parts)])
    return CompletedRows(
        dict(zip(layout.names, layout.cardinalities)),
        np.concatenate([completed for completed, _, _ in parts], axis=1),
        row,
        np.concatenate([probability for _, _, probability in parts]) * weight[row],
        weight,
    )


def _check_size(layout: Layout, sizes: list[tuple[int, list[int]]], max_memory: float) -> None:
    n_bytes = 0.0
    for n_rows, hidden in sizes:
        n_states = min(prod(layout.cardinalities[node] for node in hidden), _MAX_STATES_KEPT)
        n_bytes += float(n_rows) * n_states * (len(layout.names) * 8.0 + 48.0)
    if n_bytes > max_memory:
        raise TooLargeError(
            f"The joint states of what is hidden in the rows, which a structural search goes through, take "
            f"{n_bytes:.3g} bytes; 'max_memory' allows {max_memory:.3g}. Search by 'greedy', or raise the limit."
        )


def _completions(layout: Layout, logs, codes: np.ndarray, hidden: list[int]):
    """Codes of completions of rows that lack the same nodes, the row of each, and its probability > 0."""
    expected, mean = logs
    kept = _with_observed_descendants(layout, hidden)
    n_rows, known = codes.shape[1], set(range(len(layout.names))) - set(hidden)
    waiting = [node for node in range(len(layout.names)) if not layout.strides[node].keys() <= known]
    n_states = prod(layout.cardinalities[node] for node in hidden)
    least = -np.inf if n_states <= _MAX_STATES_KEPT else _LOWEST_LOG_WEIGHT
    completed, row, log_joint = codes, np.arange(n_rows), np.zeros(n_rows)
    for node in (node for node in reversed(layout.leaves_first) if node in hidden):
        size = layout.cardinalities[node]
        completed, row, log_joint = (np.repeat(each, size, axis=-1) for each in (completed, row, log_joint))
        completed[node] = np.tile(np.arange(size, dtype=codes.dtype), len(row) // size)
        known.add(node)
        for family in [family for family in waiting if layout.strides[family].keys() <= known]:
            waiting.remove(family)
            cells = np.full(len(row), layout.first_cell[family])
            for member, stride in layout.strides[family].items():
                cells += completed[member].astype(np.int64) * stride
            log_joint += (expected if family in kept else mean)[cells]
        log_joint -= _of_each_row(np.maximum, log_joint, row)
        probable = log_joint > least
        if n_states > _MAX_STATES_KEPT:
            probable &= _rank_in_row(log_joint, row) < _MAX_STATES_KEPT
        completed, row, log_joint = completed[:, probable], row[probable], log_joint[probable]
    probability = np.exp(log_joint)
    probability /= _of_each_row(np.add, probability, row)
    possible = probability > 0
    return completed[:, possible], row[possible], probability[possible]


def _of_each_row(operation: np.ufunc, values: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The sum or maximum of the values of each row, for each of its completions; these stand together."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return np.repeat(operation.reduceat(values, first), np.diff(first, append=len(row)))


def _rank_in_row(values: np.ndarray, row: np.ndarray) -> np.ndarray:
    """How many values of the same row are higher, or as high and come earlier."""
    order = np.lexsort((-values, row))
    first = np.flatnonzero(np.diff(row, prepend=-1))
    rank = np.empty(len(row), dtype=np.intp)
    rank[order] = np.arange(len(row)) - np.repeat(first, np.diff(first, append=len(row)))
    return rank


def _with_observed_descendants(layout: Layout, hidden: list[int]) -> set[int]:
    """The nodes that are observed, or have a descendant that is."""
    kept = set(range(len(layout.names))) - set(hidden)
    for node in layout.leaves_first:
        if any(child in kept for child in layout.children[node]):
            kept.add(node)
    return kept
