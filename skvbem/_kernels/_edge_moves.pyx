"""Moves of an edge in a directed graph without cycles, and which nodes are below which."""

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

import numpy as np


def list_moves(const double[:, ::1] gains, const unsigned char[:, ::1] edges, const unsigned char[:, ::1] below,
               long long[::1] child, long long[::1] parent, double[::1] change):
    """List edges that may be added, then those that may be removed, then those that may be turned.

    Each kind is by child and then by parent. An edge that would close a cycle is none of them.

    Parameters
    ----------
    gains : (n, n) IN, of an edge to each row from each column that appears or disappears; -inf where it may not
    edges : (n, n) IN, whether each column is a parent of each row
    below : (n, n) IN, whether each column is below each row
    child, parent : (n_most,) OUT, ends of the edge of each move
    change : (n_most,) OUT, the gain of each move

    Returns
    -------
    tuple of int
        How many moves there are, and how many of them turn no edge.
    """
    cdef Py_ssize_t n = gains.shape[0], c, p, k, at = 0, n_unturned
    cdef bint is_only_way
    with nogil:
        for c in range(n):
            for p in range(n):
                if p != c and not edges[c, p] and not below[c, p] and gains[c, p] > -INFINITY:
                    child[at], parent[at], change[at] = c, p, gains[c, p]
                    at += 1
        for c in range(n):
            for p in range(n):
                if edges[c, p] and gains[c, p] > -INFINITY:
                    child[at], parent[at], change[at] = c, p, gains[c, p]
                    at += 1
        n_unturned = at
        for c in range(n):
            for p in range(n):
                if edges[c, p] and gains[c, p] > -INFINITY and gains[p, c] > -INFINITY:
                    is_only_way = True  # no other child of the parent leads to the child
                    for k in range(n):
                        if edges[k, p] and below[k, c]:
                            is_only_way = False
                            break
                    if is_only_way:
                        child[at], parent[at], change[at] = c, p, gains[c, p] + gains[p, c]
                        at += 1
    return at, n_unturned


def fill_descendants(const unsigned char[:, ::1] edges, unsigned char[:, ::1] below):
    """Fill which nodes are below which, from the edges of a graph without cycles.

    Parameters
    ----------
    edges : (n, n) IN, whether each column is a parent of each row
    below : (n, n) OUT, whether each column is below each row
    """
    cdef Py_ssize_t n = edges.shape[0], n_words = (edges.shape[0] + 63) // 64, n_done = 0, n_ready = 0
    cdef Py_ssize_t node, other, word
    cdef uint64_t[:, ::1] under = np.zeros((n, n_words), dtype=np.uint64)
    cdef long long[::1] n_children = np.zeros(n, dtype=np.int64), ready = np.empty(n, dtype=np.int64)
    with nogil:
        for node in range(n):
            for other in range(n):
                n_children[other] += edges[node, other]
        for node in range(n):
            if n_children[node] == 0:
                ready[n_ready] = node
                n_ready += 1
        while n_done < n_ready:  # each node after all of its children
            node = ready[n_done]
            n_done += 1
            for other in range(n):
                if edges[node, other]:
                    for word in range(n_words):
                        under[other, word] |= under[node, word]
                    under[other, node // 64] |= (<uint64_t>1) << <uint64_t>(node % 64)
                    n_children[other] -= 1
                    if n_children[other] == 0:
                        ready[n_ready] = other
                        n_ready += 1
        for node in range(n):
            for other in range(n):
                below[node, other] = under[node, other // 64] >> <uint64_t>(other % 64) & 1
