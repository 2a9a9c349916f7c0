r"""The evidence of sequences, summed over all their paths [CH (6)].

With the path given, first states, transitions and the rows of each state have an evidence in closed form:

.. math::

    p(s, y) = \mathrm{BD}(n_1)\, \prod_i \mathrm{BD}(N_i)\, \prod_k g_k(\{t : s_t = k\}),

:math:`n_1` the counts of first states, :math:`N_i` of transitions out of i. Paths that a mask rules out are no terms.
Nor are those that known states rule out. Where states have ages, paths are those of both.
Where there are no fewer paths than sets of rows, the evidence :math:`g_k` of every set is found once; else, and where
states share parameters, that of the rows along each path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from typing import Self, cast

import numpy as np
from scipy.special import logsumexp

from skvbem.emissions.known_labels import labels_of
from skvbem.errors import TooLargeError
from skvbem.models.base import in_words, no_closed_form
from skvbem.models.hmm.model import HMM
from skvbem.models.labels.model import log_evidences_of_sets, of_rows_alone, statistics_of_rows
from skvbem.models.sequences import HMMData

# Paths whose evidences are found at once.
_BATCH = 2**12


def log_evidence_by_enumeration(model: HMM, data: HMMData, max_terms: int) -> tuple[float, int]:
    """The log evidence, nats, and the paths of the sum.

    Raises
    ------
    TooLargeError
        If there are more than `max_terms`.
    ValueError
        If rows of known states have no evidence in closed form.
    """
    if not model.emission.is_conjugate(data.table):
        raise no_closed_form("these sequences")
    log_n = float(data.weight @ _log_n_paths(model, data))
    if log_n > log(max_terms) + 1e-9:
        raise TooLargeError(
            f"The exact evidence is a sum over {in_words(log_n)} paths of the {data.total_weight:g} steps; 'max_terms' "
            f"allows {max_terms}. Take a score that approximates it, fewer or shorter sequences, or fewer states."
        )
    data, n_terms = data.one_by_one, round(exp(log_n))
    row_evidence, total = _OfRows(*cast(tuple[HMM, HMMData], of_rows_alone(model, data)), n_terms), -np.inf
    cells = _Cells.of(model)
    for paths in _all_paths(cells, data):
        terms = _log_evidence_of_counts(model, cells, data, paths)
        terms = terms + row_evidence.log_evidence(cells.states[paths])
        total = np.logaddexp(total, logsumexp(terms))
    return row_evidence.log_base + float(total), n_terms


@dataclass(frozen=True, eq=False)
class _Cells:
    """The hidden Markov chain: its cells, which are states, or states of some age, and the steps that there are.

    Parameters
    ----------
    first : ndarray of bool, shape (n_cells,)
    steps : ndarray of bool, shape (n_cells, n_cells)
    states : ndarray of int, shape (n_cells,)
    """

    first: np.ndarray
    steps: np.ndarray
    states: np.ndarray

    @classmethod
    def of(cls, model: HMM) -> Self:
        """The cells of a chain."""
        return cls(*model.cells_of_paths())

    def log_n_of(self, labels: np.ndarray) -> float:
        """ln of the paths that masks leave a sequence some of whose states are known."""
        ways, scale = self.first.astype(float), 0.0
        for t, label in enumerate(labels.tolist()):
            ways = ways if t == 0 else ways @ self.steps
            ways = ways * (self.states == label) if label >= 0 else ways
            total = ways.sum()
            if total == 0.0:
                return -np.inf
            if total > 1e100:  # whole numbers until then
                ways, scale = ways / total, scale + log(total)
        return scale + log(ways.sum()) if len(labels) else 0.0


def _log_n_paths(model: HMM, data: HMMData) -> np.ndarray:
    """ln of the paths that masks leave each sequence, up to its last observed row, (n_sequences,)."""
    labels, cells = labels_of(data.table), _Cells.of(model)
    if labels is not None:
        return np.array([cells.log_n_of(labels[a:b]) for a, b in zip(data.starts[:-1], data.ends)])
    lengths = data.ends - data.starts[:-1]
    by_length = {n: cells.log_n_of(np.full(n, -1)) for n in np.unique(lengths).tolist()}
    return np.array([by_length[n] for n in lengths.tolist()])


def first_impossible(model: HMM, data: HMMData) -> int | None:
    """The first sequence whose known states no path goes through that the masks leave; None if there is none."""
    labels = labels_of(data.table)
    if labels is None or (model.transitions.allowed.all() and model.initial.allowed.all()):
        return None
    cells, spans = _Cells.of(model), zip(data.starts[:-1].tolist(), data.ends.tolist())
    return next((k for k, (a, b) in enumerate(spans) if cells.log_n_of(labels[a:b]) == -np.inf), None)


def _all_paths(cells: _Cells, data: HMMData) -> Iterator[np.ndarray]:
    """All paths of all sequences, in batches, the cell of each row, (n_rows, n_paths)."""
    n_rows, begins, labels = len(data), np.zeros(len(data) + 1, dtype=bool), labels_of(data.table)
    begins[data.starts[:-1]] = True
    first, after = np.flatnonzero(cells.first), [np.flatnonzero(row) for row in cells.steps]
    choices = np.concatenate([first, *after]).astype(np.int16)
    n_choices = np.array([len(first), *map(len, after)])
    choice_starts = np.cumsum(n_choices) - n_choices
    stack = [np.zeros((0, 1), dtype=np.int16)]
    while stack:
        paths = stack.pop()
        at = len(paths)
        if at == n_rows:
            yield paths
            continue
        of = np.zeros(paths.shape[1], dtype=np.int64) if begins[at] else paths[-1].astype(np.int64) + 1
        into = np.repeat(np.arange(len(of)), n_choices[of])
        which = np.arange(len(into)) - np.repeat(np.cumsum(n_choices[of]) - n_choices[of], n_choices[of])
        longer = np.concatenate([paths[:, into], choices[choice_starts[of[into]] + which][None]])
        if labels is not None and labels[at] >= 0:
            longer = longer[:, cells.states[longer[-1]] == labels[at]]
        stack += [longer[:, first : first + _BATCH] for first in range(0, longer.shape[1], _BATCH)]


def _log_evidence_of_counts(model: HMM, cells: _Cells, data: HMMData, paths: np.ndarray) -> np.ndarray:
    """The log evidence of first states and transitions of paths of cells, nats, (n_paths,)."""
    n, n_paths = len(cells.states), paths.shape[1]
    begin = data.starts[:-1][data.lengths > 0]
    later = np.setdiff1d(np.arange(len(paths)), begin)

    def counts(at: np.ndarray, size: int) -> np.ndarray:
        flat = (at * n_paths + np.arange(n_paths)).ravel()
        return np.bincount(flat, minlength=size * n_paths).reshape(size, n_paths).astype(float)

    wide = paths.astype(np.int64)
    steps = counts(wide[later - 1] * n + wide[later], n**2).reshape(n, n, n_paths)
    of_chain = model.statistics_of_paths(counts(wide[begin], n), steps)
    first, pairs = (block.log_evidence(of) for block, of in zip(model.prior.blocks, of_chain))
    return first + pairs


class _OfRows:
    """Evidences of rows whose states are known."""

    def __init__(self, model: HMM, data: HMMData, n_terms: int):
        self.prior, self.n_states = model.prior.blocks[-1], model.n_components
        self.statistics, self.log_base = statistics_of_rows(model, data, data.row_weight)
        self.cells = [cells - model.first_emission_cell for cells in model.cells_of_components()]
        shared = (model.emission.component_of_cell(self.n_states) == -1).any()
        self.of_sets = None
        if not shared and 2 ** len(data) <= n_terms:
            self.strides = 2 ** np.arange(len(data) + 1)
            ones = np.ones(len(data), dtype=np.int64)
            self.of_sets = log_evidences_of_sets(model, self.statistics, ones, self.strides)

    def log_evidence(self, paths: np.ndarray) -> np.ndarray:
        """Along paths (n_rows, n_paths), nats, (n_paths,)."""
        if self.of_sets is not None:
            by_state = zip(range(self.n_states), self.of_sets)
            return np.sum([by_set[self.strides[:-1] @ (paths == k)] for k, by_set in by_state], axis=0)
        added = np.zeros((len(self.prior.coordinates), paths.shape[1]))
        for k, cells in enumerate(self.cells):
            added[cells] += self.statistics.T @ (paths == k)
        return self.prior.log_evidence(added)
