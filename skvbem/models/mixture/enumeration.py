r"""The evidence of a mixture, summed over all assignments of rows to components.

With components given, the rows of each component have an evidence in closed form, :math:`g_k(S)` of the rows S. It is
found once for every S, equal rows taken together. The weights are sticks broken in turn, whatever their prior, so that
the sum over assignments is one over the rows of the first component, and of those left over the rows of the second,

.. math::

    F_k(R) = \sum_{S \subseteq R} \frac{B(a_k + |S|, b_k + |R \setminus S|)}{B(a_k, b_k)}
        \, g_k(S)\, F_{k+1}(R \setminus S), \qquad F_K = g_K,

and the evidence is :math:`F_1` of all rows. Where components share parameters (a tied covariance) there is no such
factor for each, and allocations of rows to all components are gone through one by one.

Rows whose components are known come first, in closed form; the sum is over the others, under the prior after them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import comb, log, prod
from typing import cast

import numpy as np
from scipy.special import gammaln, logsumexp

from skvbem._numerics import log_rising
from skvbem.emissions.known_labels import labels_of
from skvbem.errors import TooLargeError
from skvbem.models.base import in_words, no_closed_form
from skvbem.models.labels.model import BATCH, log_evidences_of_sets, of_rows_alone, statistics_of_rows
from skvbem.models.mixture.model import Mixture, MixtureData

# Pairs of a set and a subset that are held at once.
_PAIRS = 2**16


def log_evidence_by_enumeration(model: Mixture, data: MixtureData, max_terms: int) -> tuple[float, int]:
    """The log evidence, nats, and the terms of the sum.

    Raises
    ------
    TooLargeError
        If there are more than `max_terms`.
    ValueError
        If rows of known components have no evidence in closed form.
    """
    if not model.emission.is_conjugate(data.table):
        raise no_closed_form("this mixture")
    model, data, known_terms, counts = _after_known_labels(model, data)
    statistics, weight, log_base = _distinct_rows(model, data)
    log_base += known_terms
    shared = (model.emission.component_of_cell(model.n_components) == -1).any()
    n, sizes = model.n_components, [w + 1 for w in weight.tolist()]
    if shared or n == 1:
        factors = [comb(w + n - 1, n - 1) for w in weight.tolist()]
        _check(sum(map(log, factors)), max_terms, data)
        return log_base + _by_allocations(model, statistics, weight), prod(factors)
    pairs = [size * (size + 1) // 2 for size in sizes]
    log_n = sum(map(log, sizes))
    if n > 2:
        log_n = float(np.logaddexp(log_n, log(n - 2) + sum(map(log, pairs))))
    _check(log_n, max_terms, data)
    sticks = model.weights.sticks + np.stack([counts[:-1], np.cumsum(counts[::-1])[::-1][1:]], axis=1)
    return log_base + _by_subsets(model, statistics, weight, sticks), prod(sizes) + (n - 2) * prod(pairs)


def _after_known_labels(model: Mixture, data: MixtureData) -> tuple[Mixture, MixtureData, float, np.ndarray]:
    """The model after rows of known components, the other rows, the log evidence of the former, and their counts."""
    labels, counts = labels_of(data.table), np.zeros(model.n_components)
    if labels is None:
        return model, data, 0.0, counts
    alone, rows = cast(tuple[Mixture, MixtureData], of_rows_alone(model, data))
    (known, weight), others = ((np.flatnonzero(labels >= 0), data.weight[labels >= 0]), np.flatnonzero(labels < 0))
    labeled = replace(rows, table=rows.table[known], weight=weight, row_hashes=None)
    chosen = (labels[known, None] == np.arange(model.n_components)).astype(float)
    statistics = alone.statistics_of(chosen, labeled)
    log_evidence = float(alone.prior.log_evidence(statistics)) + statistics_of_rows(alone, labeled, weight)[1]
    rest = replace(rows, table=rows.table[others], weight=rows.weight[others], row_hashes=None)
    return alone.updated(statistics), rest, log_evidence, weight @ chosen


def _check(log_n: float, max_terms: int, data: MixtureData) -> None:
    """Refuse too many terms, whose number may be beyond floats, by its logarithm."""
    if log_n > log(max_terms) + 1e-9:
        raise TooLargeError(
            f"The exact evidence is a sum of {in_words(log_n)} terms over the components of the "
            f"{data.total_weight:g} rows; 'max_terms' allows {max_terms}. Take a score that approximates it, fewer "
            "rows, or fewer components."
        )


def _distinct_rows(model: Mixture, data: MixtureData) -> tuple[np.ndarray, np.ndarray, float]:
    """Statistics of distinct rows (n_rows, n_cells), how often each counts, and the sum of ln f of all, nats."""
    statistics, log_base = statistics_of_rows(model, data, data.weight)
    n_repeats = data.weight[data.weight > 0].astype(np.int64)
    distinct, which = np.unique(statistics[data.weight > 0], axis=0, return_inverse=True)
    return distinct, np.bincount(which.ravel(), weights=n_repeats, minlength=len(distinct)).astype(np.int64), log_base


def _by_subsets(model: Mixture, statistics: np.ndarray, weight: np.ndarray, sticks: np.ndarray) -> float:
    """ln of the sum, by the recursion over components, whose shares are `sticks` (n_components - 1, 2)."""
    strides = np.cumprod([1, *(weight + 1)])
    n_rows = np.zeros(strides[-1])
    for w, stride in zip(weight, strides):
        n_rows += np.arange(strides[-1]) // stride % (w + 1)
    by_set = log_evidences_of_sets(model, statistics, weight, strides)
    rest = by_set[-1]
    for k in reversed(range(model.n_components - 1)):
        a, b = sticks[k]
        mine, others, whole = (
            by_set[k] + log_rising(a, n_rows),
            rest + log_rising(b, n_rows),
            log_rising(a + b, n_rows),
        )
        if k:
            rest = _convolved(mine, others, weight, strides) - whole
    # of the first component only those sets matter that make up all rows with the rest
    return float(logsumexp(mine + others[::-1] + _log_ways(weight, strides)) - whole[-1])


def _log_ways(weight: np.ndarray, strides: np.ndarray) -> np.ndarray:
    """ln of the ways to take each set from all rows, (n_sets,)."""
    log_ways = np.zeros(strides[-1])
    for w, stride in zip(weight, strides):
        taken = np.arange(strides[-1]) // stride % (w + 1)
        log_ways += gammaln(w + 1.0) - gammaln(taken + 1.0) - gammaln(w - taken + 1.0)
    return log_ways


def _convolved(mine: np.ndarray, others: np.ndarray, weight: np.ndarray, strides: np.ndarray) -> np.ndarray:
    """ln of the sum over subsets S of R of mine(S) others(R - S), times the ways to take S, for every R, (n_sets,)."""
    n_inner = 0
    n_pairs = 1
    while n_inner < len(weight) and n_pairs * (weight[n_inner] + 1) * (weight[n_inner] + 2) // 2 <= _PAIRS:
        n_pairs *= (weight[n_inner] + 1) * (weight[n_inner] + 2) // 2
        n_inner += 1
    inner, outer = _pairs(weight[:n_inner], strides), _pairs(weight[n_inner:], strides[n_inner:])
    order = np.argsort(inner[0] + inner[1], kind="stable")
    s, t, ways = (of[order] for of in inner)
    starts = np.flatnonzero(np.diff(s + t, prepend=-1))
    sums_of_sets = np.full(strides[-1], -np.inf)
    for s_outer, t_outer, ways_outer in zip(*outer):
        terms = mine[s_outer + s] + others[t_outer + t] + (ways + ways_outer)
        most = np.maximum.reduceat(terms, starts)
        sums = np.add.reduceat(np.exp(terms - np.repeat(most, np.diff([*starts, len(terms)]))), starts)
        whole = slice(s_outer + t_outer, s_outer + t_outer + strides[n_inner])
        sums_of_sets[whole] = np.logaddexp(sums_of_sets[whole], most + np.log(sums))
    return sums_of_sets


def _pairs(weight: np.ndarray, strides: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of sets of rows that are a set together, in mixed radix, and ln of the ways to part it so."""
    s, t, ways = (np.zeros(1, dtype=dtype) for dtype in (np.int64, np.int64, float))
    for w, stride in zip(weight, strides):
        both, taken = np.array([(r, k) for r in range(w + 1) for k in range(r + 1)]).T
        log_ways = gammaln(both + 1.0) - gammaln(taken + 1.0) - gammaln(both - taken + 1.0)
        s, t, ways = (
            np.add.outer(new, old).ravel()
            for new, old in ((taken * stride, s), ((both - taken) * stride, t), (log_ways, ways))
        )
    return s, t, ways


def _by_allocations(model: Mixture, statistics: np.ndarray, weight: np.ndarray) -> float:
    """ln of the sum, one allocation of all rows to all components after the other."""
    n_components, first = model.n_components, model.first_emission_cell
    cells_of = [cells - first for cells in model.cells_of_components()]
    choices = [_allocations(w, n_components) for w in weight.tolist()]
    log_ways = [gammaln(w + 1.0) - gammaln(of + 1.0).sum(axis=1) for w, of in zip(weight, choices)]
    ends = np.cumprod([1, *map(len, choices)])
    total = -np.inf
    for at in range(0, ends[-1], BATCH):
        which = np.arange(at, min(at + BATCH, ends[-1]))
        added = np.zeros((model.n_cells - first, len(which)))
        counts, log_terms = np.zeros((n_components, len(which))), np.zeros(len(which))
        for row, of, ways, (below, above) in zip(statistics, choices, log_ways, pairwise(ends)):
            chosen = which % above // below
            counts += of[chosen].T
            log_terms += ways[chosen]
            for k, cells in enumerate(cells_of):
                added[cells] += row[:, None] * of[chosen, k]
        log_terms += model.prior.blocks[0].log_evidence(model.weights.statistics(counts))
        log_terms += model.prior.blocks[1].log_evidence(added)
        total = np.logaddexp(total, logsumexp(log_terms))
    return float(total)


def _allocations(n: int, n_components: int) -> np.ndarray:
    """All ways to allocate n equal rows, (n_ways, n_components)."""
    if n_components == 1:
        return np.array([[n]])
    return np.concatenate([
        np.column_stack([np.full(comb(n - k + n_components - 2, n - k), k), _allocations(n - k, n_components - 1)])
        for k in range(n + 1)
    ])  # fmt: skip
