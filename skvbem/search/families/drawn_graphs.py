r"""Graphs drawn from their posterior, exactly, where the scores of all families are known.

A graph falls into layers: nodes without parents, then those whose parents are all in earlier layers, one of them at
least in the last [KM17]. With U the union of the layers so far, T the last of them, and A the sum over the families
that a node may have with all parents in a set,

.. math::

    W(U, T) = \sum_{\emptyset \ne S \subseteq V \setminus U} W(U \cup S, S)
              \prod_{j \in S} \bigl[A_j(U) - A_j(U \setminus T)\bigr], \qquad W(V, T) = 1.

All terms are positive, so that graphs are drawn layer by layer, and parents of each node of a layer one by one.
"""

from __future__ import annotations

import numpy as np

from skvbem.search.families.sum_of_dags import log_sums_of_subsets


class DrawnGraphs:
    """The posterior over graphs as graphs are drawn from it.

    Parameters
    ----------
    scores : ndarray of shape (n_nodes, 2 ** (n_nodes - 1))
        Of families, masks of the other nodes, nats; -inf where there is none.
    """

    def __init__(self, scores: np.ndarray):
        self.n = n = len(scores)
        sets = np.arange(1 << n)
        self._scores = np.full((n, 1 << n), -np.inf)
        self._log_a = np.full((n, 1 << n), -np.inf)
        for j in range(n):
            without = np.flatnonzero(~sets >> j & 1)
            self._scores[j, without] = scores[j]
            self._log_a[j, without] = log_sums_of_subsets(scores[j]).astype(float)
        sizes = np.bitwise_count(sets).astype(np.int64)
        self._start = np.cumsum(np.concatenate([[0], 1 << sizes]))[:-1]
        self._worth = np.zeros(3**n)
        for union in sorted(range((1 << n) - 1), key=lambda mask: -mask.bit_count()):
            last = subsets(union)
            log_sums = _log_sums(self._next_layers(union, last)[1])
            self._worth[self._start[union] : self._start[union] + len(last)] = log_sums
        self._layers: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._families: dict[tuple[int, int, int], tuple[np.ndarray, np.ndarray]] = {}

    @property
    def log_total(self) -> float:
        """ln of the sum over all graphs, nats."""
        return float(self._worth[self._start[0]])

    def draw(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Parents of each node in graphs that are drawn, as masks, (n_draws, n_nodes)."""
        parents = np.zeros((n_draws, self.n), dtype=np.int64)
        whole = (1 << self.n) - 1
        for of_draw in parents:
            union = last = 0
            while union != whole:
                added = self._one_of(self._layers, self._layers_after, (union, last), rng)
                for j in range(self.n):
                    if added >> j & 1:
                        of_draw[j] = self._one_of(self._families, self._families_after, (j, union, last), rng)
                union, last = union | added, added
        return parents

    @staticmethod
    def _one_of(known: dict, find, key: tuple, rng: np.random.Generator) -> int:
        if key not in known:
            options, log_terms = find(*key)
            total = np.cumsum(np.exp(log_terms - log_terms.max()))
            known[key] = options, total / total[-1]
        options, cumulative = known[key]
        return int(options[np.searchsorted(cumulative, rng.random(), side="right")])

    def _layers_after(self, union: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        added, log_terms = self._next_layers(union, np.array([last]))
        return added, log_terms[0]

    def _families_after(self, j: int, union: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        options = subsets(union)
        options = options[(options & last) > 0] if union else options
        return options, self._scores[j, options]

    def _next_layers(self, union: int, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The layers that may follow some nodes, and ln of their terms for each last layer, (n_last, n_layers)."""
        rest = ((1 << self.n) - 1) & ~union
        added, log_terms = subsets(rest), np.zeros((len(last), 1))
        for j in range(self.n):
            if rest >> j & 1:
                of_node = self._log_a[j, union]
                if union:  # a parent in the last layer, at least
                    of_node = _log_difference(of_node, self._log_a[j, union & ~last])
                log_terms = np.concatenate([log_terms, log_terms + np.reshape(of_node, (-1, 1))], axis=1)
        log_terms = log_terms + self._worth[self._start[union | added] + _places_within(added, union | added, self.n)]
        log_terms[:, 0] = -np.inf  # a layer holds a node
        return added, log_terms


def subsets(mask: int) -> np.ndarray:
    """All subsets of a set, ascending, the empty one first."""
    smaller = np.zeros(1, dtype=np.int64)
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            smaller = np.concatenate([smaller, smaller | 1 << bit])
    return smaller


def _places_within(masks: np.ndarray, of: np.ndarray, n: int) -> np.ndarray:
    """The places of subsets among `subsets` of their sets."""
    places = np.zeros(len(masks), dtype=np.int64)
    for bit in range(n):
        places |= (masks >> bit & 1) << np.bitwise_count(of & ((1 << bit) - 1)).astype(np.int64)
    return places


def _log_difference(larger: float, smaller: np.ndarray) -> np.ndarray:
    """ln of the difference of exponentials; -inf where it is nothing but rounding."""
    if not larger > -np.inf:
        return np.full(len(smaller), -np.inf)
    share = np.exp(np.minimum(smaller - larger, 0.0))
    with np.errstate(divide="ignore"):
        return np.asarray(larger + np.log1p(-share))


def _log_sums(log_terms: np.ndarray) -> np.ndarray:
    """ln of the sums of exponentials over the last axis; -inf where all are 0."""
    peak = log_terms.max(axis=1)
    peak[~np.isfinite(peak)] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(peak + np.log(np.exp(log_terms - peak[:, None]).sum(axis=1)))
