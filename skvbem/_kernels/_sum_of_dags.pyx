"""Sums over all graphs by the sets of nodes that are ahead of all others, in long doubles [Tian & He 2009].

Nodes are bits. Some nodes A grow to a set S by sinks, each of which has its parents in A; terms have the sign of
inclusion and exclusion, and weigh exp(sum over sinks of log_a[sink, A] + log_scale[A] - log_scale[S]).
"""

from libc.stdint cimport int64_t, intptr_t
from libc.stdlib cimport free, malloc


cdef extern from "<math.h>" nogil:
    long double expl(long double x)
    long double log1pl(long double x)


cdef struct Terms:
    intptr_t n
    int64_t* sets
    long double* weights


cdef inline intptr_t _without_bit(intptr_t mask, intptr_t bit) noexcept nogil:
    """A set of the other nodes, as they are counted without one."""
    cdef intptr_t below = ((<intptr_t> 1) << bit) - 1
    return (mask & below) | ((mask >> 1) & ~below)


cdef void _find_terms(Terms* terms, intptr_t ahead, intptr_t n_nodes, const long double[:, ::1] log_a,
                      const long double[::1] log_scale) noexcept nogil:
    """The sets that some nodes grow to by sinks, these nodes themselves first, and what they weigh."""
    cdef intptr_t node, i, size = 1
    cdef long double of_node
    cdef int sign
    terms.sets[0], terms.weights[0] = ahead, 0.0
    for node in range(n_nodes):
        if ahead >> node & 1:
            continue
        of_node = log_a[node, _without_bit(ahead, node)]
        for i in range(size):
            terms.sets[size + i] = terms.sets[i] | ((<int64_t> 1) << node)
            terms.weights[size + i] = terms.weights[i] + of_node
        size *= 2
    terms.n = size
    for i in range(1, size):
        sign = -1
        node = i
        while node:  # as many sinks as i has bits
            sign = -sign
            node &= node - 1
        terms.weights[i] = sign * expl(terms.weights[i] + log_scale[ahead] - log_scale[terms.sets[i]])


cdef Terms _terms(intptr_t n_sets) except *:
    cdef Terms terms
    terms.n = 0
    terms.sets = <int64_t*> malloc(n_sets * sizeof(int64_t))
    terms.weights = <long double*> malloc(n_sets * sizeof(long double))
    if terms.sets == NULL or terms.weights == NULL:
        free(terms.sets)
        free(terms.weights)
        raise MemoryError
    return terms


def sums_of_sets(const int64_t[::1] by_size, const long double[:, ::1] log_a, const long double[::1] log_scale,
                 long double[::1] sums):
    """Fill the sum over the graphs of each set of nodes, of the scale of the set.

    Parameters
    ----------
    by_size : (2 ** n_nodes,) IN
        All sets, each after its subsets.
    log_a : (n_nodes, 2 ** (n_nodes - 1)) IN
        ln of the sum over parents of a node among each set of other nodes.
    log_scale : (2 ** n_nodes,) IN
    sums : (2 ** n_nodes,) OUT
    """
    cdef intptr_t n_nodes = log_a.shape[0], k, i, ahead
    cdef Terms terms = _terms(sums.shape[0])
    with nogil:
        sums[:] = 0.0
        sums[0] = 1.0
        for k in range(by_size.shape[0] - 1):
            ahead = by_size[k]
            if not sums[ahead] > 0.0:
                continue
            _find_terms(&terms, ahead, n_nodes, log_a, log_scale)
            for i in range(1, terms.n):
                sums[terms.sets[i]] += sums[ahead] * terms.weights[i]
        free(terms.sets)
        free(terms.weights)


def shares_of_sinks(const int64_t[::1] by_size, const long double[:, ::1] log_a, const long double[::1] log_scale,
                    const long double[::1] sums, long double[::1] worth, long double[:, ::1] of_sinks):
    """Fill what each set is worth to the sum of all graphs, and shares of graphs in which a node is a sink of a set.

    Parameters
    ----------
    by_size, log_a, log_scale, sums
        As of `sums_of_sets`; the sum of all nodes is positive.
    worth : (2 ** n_nodes,) OUT
    of_sinks : (n_nodes, 2 ** (n_nodes - 1)) OUT
        By the nodes ahead of the sink, with the signs of inclusion and exclusion.
    """
    cdef intptr_t n_nodes = log_a.shape[0], full = sums.shape[0] - 1, k, i, node, ahead
    cdef long double part, total
    cdef Terms terms = _terms(sums.shape[0])
    with nogil:
        worth[full] = 1.0
        of_sinks[:] = 0.0
        for k in range(full - 1, -1, -1):
            ahead = by_size[k]
            _find_terms(&terms, ahead, n_nodes, log_a, log_scale)
            total = 0.0
            for i in range(1, terms.n):
                part = worth[terms.sets[i]] * terms.weights[i]
                total += part
                part *= sums[ahead] / sums[full]
                for node in range(n_nodes):
                    if (terms.sets[i] & ~ahead) >> node & 1:
                        of_sinks[node, _without_bit(ahead, node)] += part
            worth[ahead] = total
        free(terms.sets)
        free(terms.weights)


def log_sums_of_subsets(long double[::1] sums):
    """Turn logarithms (2 ** n,) into those of their sums over the subsets of every set, in place."""
    cdef intptr_t size = 1, first, i, n = sums.shape[0]
    cdef long double one, other
    with nogil:
        while size < n:
            first = 0
            while first < n:
                for i in range(first, first + size):
                    one, other = sums[i], sums[size + i]
                    if one > other:
                        one, other = other, one
                    if one == one and one - one == 0.0:  # else nothing is added
                        other += log1pl(expl(one - other))
                    sums[size + i] = other
                first += 2 * size
            size *= 2
