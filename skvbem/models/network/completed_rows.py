r"""Rows completed by q(x): every joint state of what is hidden in a row, and its probability.

Expected counts of any family of nodes follow, also of families that the network which made q(x) does not have, so that

.. math:: \ln p(y \mid m) \ge H(q) + \ln \mathrm{BD}_m(\langle N \rangle_q)

bounds the evidence of every network m over the same nodes from one q(x) [Beal (2.151); Friedman 1998]. Hidden states
can be merged and split, and hidden nodes come and go, which makes a q(x) for networks whose hidden nodes are others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Self

import numpy as np
from scipy.special import xlogy

from skvbem._lazy import cached_property
from skvbem._numerics import safe_log
from skvbem.data import Rows, categories_of, have_set
from skvbem.errors import TooLargeError
from skvbem.models.network.contexts import joint_keys
from skvbem.models.network.layout import Layout
from skvbem.models.network.model import DiscreteDAG

# Rows with more joint states of what is hidden in them keep so many: the most probable ones, and none whose share is
# below this of the most probable one's. The bounds of other q(x) are bounds as well.
_MAX_STATES_KEPT, _LOWEST_LOG_WEIGHT = 64, np.log(1e-5)
# Rows whose completions grow side by side.
_ROWS_AT_ONCE = 4096


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
    rows_set : mapping of node to ndarray of bool, shape (n_rows,)
        Of each node that was set somewhere, the rows that its own table does not count, since it was set there.
    """

    cardinalities: Mapping[Hashable, int]
    codes: np.ndarray
    row: np.ndarray
    weight: np.ndarray
    row_weight: np.ndarray
    rows_set: Mapping[Hashable, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of_complete(cls, rows: Rows, cardinalities: Mapping[Hashable, int]) -> Self:
        """Rows in which nothing is hidden: each is its only completion."""
        weight = np.ones(len(rows)) if rows.weight is None else np.asarray(rows.weight, dtype=float)
        sizes = {name: cardinalities[name] for name in rows.names}
        rows_set = _rows_set(rows, cardinalities)
        codes = categories_of(rows.codes, np.array([*sizes.values()])) if rows_set else rows.codes
        return cls(sizes, codes.T, np.arange(len(rows)), weight, weight, rows_set)

    @cached_property
    def place(self) -> dict[Hashable, int]:
        """Position of each node's states in `codes`."""
        return {node: k for k, node in enumerate(self.cardinalities)}

    @property
    def is_certain(self) -> bool:
        """True if every row has one completion: nothing is hidden."""
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

    def without_rows_set(self, node: Hashable) -> CompletedRows:
        """The rows that a node's own table counts: all, but those in which it was set."""
        if node not in self.rows_set:
            return self
        kept = np.flatnonzero(~self.rows_set[node][self.row])
        return replace(self, codes=self.codes[:, kept], row=self.row[kept], weight=self.weight[kept])

    def statistics(self, model: DiscreteDAG) -> np.ndarray:
        """Expected statistics of a network over these nodes, (n_cells,)."""
        dag = model.dag
        return model.flat({node: self.without_rows_set(node).counts(dag.family(node)) for node in dag.nodes})

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

    def without_improbable(self, least: float) -> CompletedRows:
        """Completed rows without completions below a share of their row's weight, which the others take over.

        Parameters
        ----------
        least : float
            The share. The most probable completion of a row stays, however small its own.
        """
        most = np.zeros(len(self.row_weight))
        np.maximum.at(most, self.row, self.weight)
        kept = np.flatnonzero(self.weight >= np.minimum(least * self.row_weight, most)[self.row])
        row, weight = self.row[kept], self.weight[kept]
        weight *= (self.row_weight / np.bincount(row, weights=weight, minlength=len(self.row_weight)))[row]
        return replace(self, codes=self.codes[:, kept], row=row, weight=weight)

    def _with_distinct_completions(self, cardinalities: Mapping, codes: np.ndarray) -> CompletedRows:
        """Completed rows with equal completions of a row made one."""
        columns, sizes = [self.row, *codes], [len(self.row_weight), *cardinalities.values()]
        keys = joint_keys(columns, sizes, len(self.row))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        weight = np.bincount(inverse, weights=self.weight)
        completions = codes[:, first], self.row[first], weight
        return CompletedRows(dict(cardinalities), *completions, self.row_weight, self.rows_set)


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
    codes = np.full((len(rows), len(layout.names)), -1, dtype=np.min_scalar_type(-max(layout.cardinalities)))
    for node, column in model.categories(rows).items():
        codes[:, node] = column
    rows_set = _rows_set(rows, dict(zip(layout.names, layout.cardinalities)))
    is_set = np.zeros(codes.shape, dtype=bool)
    for name, those in rows_set.items():
        is_set[:, model.position[name]] = those
    weight = np.ones(len(rows)) if rows.weight is None else np.asarray(rows.weight, dtype=float)
    n_states = _n_joint_states(layout, codes)
    check_size_of_completions(layout, float(np.minimum(n_states, _MAX_STATES_KEPT).sum()), max_memory)
    chunks = [slice(at, at + _ROWS_AT_ONCE) for at in range(0, max(len(rows), 1), _ROWS_AT_ONCE)]
    parts = [_completions(layout, logs, codes[chunk], is_set[chunk], n_states[chunk]) for chunk in chunks]
    row = np.concatenate([chunk.start + which for chunk, (_, which, _) in zip(chunks, parts)])
    return CompletedRows(
        dict(zip(layout.names, layout.cardinalities)),
        np.ascontiguousarray(np.concatenate([completed for completed, _, _ in parts]).T),
        row,
        np.concatenate([probability for _, _, probability in parts]) * weight[row],
        weight,
        rows_set,
    )


def _rows_set(rows: Rows, cardinalities: Mapping[Hashable, int]) -> dict[Hashable, np.ndarray]:
    """Of each node that was set somewhere, which rows those are."""
    sizes = np.array([cardinalities[name] for name in rows.names])
    if not have_set(rows.codes, sizes):
        return {}
    is_set = rows.codes >= sizes
    return {name: is_set[:, k] for k, name in enumerate(rows.names) if is_set[:, k].any()}


def _n_joint_states(layout: Layout, codes: np.ndarray) -> np.ndarray:
    """Number of joint states of the hidden nodes of each row, as floats: there may be more than an int holds."""
    return np.where(codes < 0, np.array(layout.cardinalities, dtype=float), 1.0).prod(axis=1)


def check_size_of_completions(layout: Layout, n_completions: float, max_memory: float) -> None:
    """Refuse to complete rows in more ways than memory holds."""
    n_bytes = n_completions * (len(layout.names) * 8.0 + 48.0)
    if n_bytes > max_memory:
        raise TooLargeError(
            f"The joint states of what is hidden in the rows, which a structural search goes through, take "
            f"{n_bytes:.3g} bytes; 'max_memory' allows {max_memory:.3g}. Search by 'greedy', or raise the limit."
        )


def _completions(layout: Layout, logs, codes: np.ndarray, is_set: np.ndarray, n_states: np.ndarray):
    """Codes (n_completions, n_nodes) of completions of rows, the row of each, and its probability > 0.

    Nodes are taken parents first. Where one is hidden, every completion of the row so far goes on with each of its
    states, and the families are weighed whose other members are known by then, but for those of nodes that were set.
    """
    expected, mean = logs
    hidden, parents_first = codes < 0, layout.leaves_first[::-1]
    has_observed = _with_observed_descendants(layout, ~hidden, is_set)
    last = _last_hidden_members(layout, hidden, parents_first)
    is_cut = n_states > _MAX_STATES_KEPT
    least = np.where(is_cut, _LOWEST_LOG_WEIGHT, -np.inf)
    completed, row, log_joint = codes, np.arange(len(codes)), np.zeros(len(codes))
    for place, node in enumerate(parents_first):
        if not hidden[:, node].any():
            continue
        times = np.where(hidden[row, node], layout.cardinalities[node], 1)
        state = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        completed, row, log_joint = (np.repeat(each, times, axis=0) for each in (completed, row, log_joint))
        grown = np.flatnonzero(hidden[row, node])
        completed[grown, node] = state[grown]
        for family in sorted((node, *layout.children[node])):
            known = grown[(last[row[grown], family] == place) & ~is_set[row[grown], family]]
            cells = np.full(len(known), layout.first_cell[family])
            for member, stride in layout.strides[family].items():
                cells += completed[known, member].astype(np.int64) * stride
            log_joint[known] += np.where(has_observed[row[known], family], expected[cells], mean[cells])
        log_joint[grown] -= _of_each_row(np.maximum, log_joint[grown], row[grown])
        probable = np.ones(len(row), dtype=bool)
        probable[grown] = log_joint[grown] > least[row[grown]]
        many = np.flatnonzero(is_cut[row] & (np.bincount(row)[row] > _MAX_STATES_KEPT))
        probable[many] &= _rank_in_row(log_joint[many], row[many]) < _MAX_STATES_KEPT
        completed, row, log_joint = completed[probable], row[probable], log_joint[probable]
    probability = np.exp(log_joint)
    probability /= _of_each_row(np.add, probability, row)
    possible = probability > 0
    return completed[possible], row[possible], probability[possible]


def _last_hidden_members(layout: Layout, hidden: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """The place in an order of the last hidden node of each family, (n_rows, n_nodes), in each row; -1 for none."""
    place = {node: at for at, node in enumerate(order)}
    last = np.full(hidden.shape, -1)
    for family, members in enumerate(layout.strides):
        for member in members:
            last[:, family] = np.maximum(last[:, family], np.where(hidden[:, member], place[member], -1))
    return last


def _of_each_row(operation: np.ufunc, values: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The sum or maximum of the values of each row, for each of its completions; these stand together."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return np.repeat(operation.reduceat(values, first), np.diff(first, append=len(row)))


def _rank_in_row(values: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Rank of each value in its row, from 0: the highest first, equals in their order."""
    order = np.lexsort((-values, row))
    first = np.flatnonzero(np.diff(row, prepend=-1))
    rank = np.empty(len(row), dtype=np.intp)
    rank[order] = np.arange(len(row)) - np.repeat(first, np.diff(first, append=len(row)))
    return rank


def _with_observed_descendants(layout: Layout, observed: np.ndarray, is_set: np.ndarray) -> np.ndarray:
    """True for nodes that are observed in a row, or have a descendant that is; not for those set, (n_rows, n_nodes)."""
    kept = observed.copy()
    for node in layout.leaves_first:
        for child in layout.children[node]:
            kept[:, node] |= kept[:, child]
        kept[:, node] &= ~is_set[:, node]
    return kept
