"""Moves of nodes in an order, in which each node has the best of its sets of parents that are ahead of it."""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport intptr_t, uint64_t

import numpy as np


cdef double _best(intptr_t child, const uint64_t[:, ::1] sets, const double[::1] scores, const long long[::1] begin,
                  const uint64_t* ahead) noexcept nogil:
    """The highest score of a node's family with all parents in a set; the sets of a node stand the best first."""
    cdef intptr_t k, word
    cdef uint64_t outside
    for k in range(begin[child], begin[child + 1]):
        outside = 0
        for word in range(sets.shape[1]):
            outside |= sets[k, word] & ~ahead[word]
        if outside == 0:
            return scores[k]
    return -INFINITY


def find_place(const long long[::1] order, intptr_t at, const uint64_t[:, ::1] sets, const double[::1] scores,
               const long long[::1] begin, double rounding):
    """The place in an order that the node at some place should have, so that the best graph has the highest score.

    A node goes past others one by one, each of which then has it ahead, or has it no more [Scanagatta et al. 2015].

    Parameters
    ----------
    order : (n_nodes,) IN
    at : the node's place
    sets : (n_sets, n_words) IN, masks of parents, of all nodes one after the other, the best first
    scores : (n_sets,) IN
    begin : (n_nodes + 1,) IN, where the sets of each node begin
    rounding : relative error of a score, below which no move is made
    """
    cdef intptr_t n = order.shape[0], n_words = sets.shape[1], node = order[at], k, word, other, place = at
    cdef uint64_t bit = (<uint64_t>1) << (node & 63)
    cdef intptr_t home = node >> 6
    cdef uint64_t[:, ::1] ahead = np.zeros((n + 1, n_words), dtype=np.uint64)
    cdef double mine, highest, gain, before, passed = 0.0
    with nogil:
        for k in range(n):
            for word in range(n_words):
                ahead[k + 1, word] = ahead[k, word]
            ahead[k + 1, order[k] >> 6] |= (<uint64_t>1) << (order[k] & 63)
        mine = _best(node, sets, scores, begin, &ahead[at, 0])
        highest = rounding * (1.0 + fabs(mine))
        for k in range(at - 1, -1, -1):
            other = order[k]
            before = _best(other, sets, scores, begin, &ahead[k, 0])
            ahead[k, home] |= bit
            passed += _best(other, sets, scores, begin, &ahead[k, 0]) - before
            ahead[k, home] &= ~bit
            gain = passed + _best(node, sets, scores, begin, &ahead[k, 0]) - mine
            if gain > highest:
                highest, place = gain, k
        passed = 0.0
        for k in range(at + 1, n):
            other = order[k]
            before = _best(other, sets, scores, begin, &ahead[k, 0])
            ahead[k, home] &= ~bit
            passed += _best(other, sets, scores, begin, &ahead[k, 0]) - before
            ahead[k + 1, home] &= ~bit
            gain = passed + _best(node, sets, scores, begin, &ahead[k + 1, 0]) - mine
            ahead[k + 1, home] |= bit
            if gain > highest:
                highest, place = gain, k
    return place
