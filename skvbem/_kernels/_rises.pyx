"""ln Gamma(k + r) - ln Gamma(r) at knots k and many r: weighted sums over knots, and means over r."""

from libc.stdint cimport intptr_t

import numpy as np


cdef extern from "_rises.h" nogil:
    const intptr_t SKVBEM_AT_ONCE
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    void skvbem_logs(intptr_t n, double k, const double* r, double* log_sum)
    void skvbem_next_rise(intptr_t n, double k, const double* r, double* rise)
    void skvbem_rise(intptr_t n, double k, const double* r, const double* log_gamma_r, double* scratch, double* rise)
    void skvbem_add_weighted(intptr_t n_members, intptr_t n, const double* weight, intptr_t stride,
                             const double* values, double* out)
    ctypedef struct skvbem_sizes:
        intptr_t n_cells
        const double* cells
        const double* weight
        const double* unit
    void skvbem_add_masses(skvbem_sizes sizes, intptr_t n_members, intptr_t n, const double* t, const double* r,
                           double* scratch, double* out)


cdef bint _any(const double[:, ::1] weights, Py_ssize_t first, Py_ssize_t some, Py_ssize_t low,
               Py_ssize_t high) noexcept nogil:
    """Whether some members have a weight from one knot on, before another."""
    cdef Py_ssize_t m, k
    for m in range(first, first + some):
        for k in range(low, high):
            if weights[m, k] != 0.0:
                return True
    return False


def weighted_sums(const double[:, ::1] r, const double[::1] knots, Py_ssize_t n_small, const double[:, ::1] weights,
                  double[:, ::1] out):
    """Fill sums over knots of weights times ln Gamma(knot + r) - ln Gamma(r).

    Parameters
    ----------
    r : (n_members, n_nodes) IN
    knots : (n_knots,) IN
        The first `n_small` of them are 1, 2, ....
    weights : (n_members, n_knots) IN
    out : (n_members, n_nodes) OUT
    """
    cdef Py_ssize_t m, k, first, some, n = r.shape[1], n_members = r.shape[0], n_knots = knots.shape[0]
    if n_members == 0 or n == 0 or n_knots == 0:
        out[:] = 0.0
        return
    cdef Py_ssize_t part, at_once = max(1, min(n_members, SKVBEM_AT_ONCE // n))
    cdef double[:, ::1] room = np.empty((5, at_once * n))
    # ln Gamma(k + r) / Gamma(r) is a sum of k logarithms: each has the weights of all whole knots beyond it
    cdef double[:, ::1] beyond = np.array(weights)
    with nogil:
        for m in range(n_members):
            for k in range(n_small - 1, 0, -1):
                beyond[m, k - 1] += beyond[m, k]
        for part in range((n_members + at_once - 1) // at_once):
            first = part * at_once
            some = min(at_once, n_members - first)
            for m in range(first, first + some):
                for k in range(n):
                    out[m, k] = 0.0
            for k in range(n_small):
                if not _any(weights, first, some, k, n_small):
                    break
                skvbem_logs(some * n, <double> k, &r[first, 0], &room[0, 0])
                skvbem_add_weighted(some, n, &beyond[first, k], n_knots, &room[0, 0], &out[first, 0])
            if n_small < n_knots:
                skvbem_log_gamma_digamma(some * n, &r[first, 0], &room[1, 0], &room[2, 0])
            for k in range(n_small, n_knots):
                if not _any(weights, first, some, k, k + 1):
                    continue
                skvbem_rise(some * n, knots[k], &r[first, 0], &room[1, 0], &room[3, 0], &room[0, 0])
                skvbem_add_weighted(some, n, &weights[first, k], n_knots, &room[0, 0], &out[first, 0])


def add_masses(const double[:, ::1] t, const double[:, ::1] r, const double[:, ::1] cells, const double[::1] weight,
               const double[::1] unit, double[:, ::1] out):
    """Add to sums over knots the rest of ln of the integral over the probability, nats.

    Parameters
    ----------
    t, r : (n_members, n_nodes) IN
        Logarithms of sizes, and sizes.
    cells : (n_members, n_cells) IN
        The first four are used: prior, measure, number and sum of the counts.
    weight, unit : (n_members,) IN
        Of the prior of each member.
    out : (n_members, n_nodes) IN, OUT
    """
    cdef Py_ssize_t part, first, some, n = t.shape[1], n_members = t.shape[0]
    if n_members == 0 or n == 0:
        return
    cdef Py_ssize_t at_once = max(1, min(n_members, SKVBEM_AT_ONCE // n))
    cdef double[::1] room = np.empty(7 * at_once * n)
    cdef skvbem_sizes sizes
    sizes.n_cells = cells.shape[1]
    with nogil:
        for part in range((n_members + at_once - 1) // at_once):
            first = part * at_once
            some = min(at_once, n_members - first)
            sizes.cells = &cells[first, 0]
            sizes.weight = &weight[first]
            sizes.unit = &unit[first]
            skvbem_add_masses(sizes, some, n, &t[first, 0], &r[first, 0], &room[0], &out[first, 0])


def means(const double[:, ::1] r, const double[::1] knots, Py_ssize_t n_small, const double[:, ::1] share,
          double[:, ::1] out):
    """Fill means over r of ln Gamma(knot + r) - ln Gamma(r).

    Parameters
    ----------
    r, share : (n_members, n_nodes) IN
    knots : (n_knots,) IN
        The first `n_small` of them are 1, 2, ....
    out : (n_members, n_knots) OUT
    """
    cdef Py_ssize_t m, j, k, n
    cdef double[:, ::1] room = np.empty((7, r.shape[1]))
    cdef double total
    with nogil:
        for m in range(r.shape[0]):
            n = 0
            for j in range(r.shape[1]):
                if share[m, j] > 1e-17:  # a thousandth of what a mean is rounded to
                    room[5, n] = r[m, j]
                    room[6, n] = share[m, j]
                    n += 1
            for j in range(n):
                room[0, j] = 0.0
            skvbem_log_gamma_digamma(n, &room[5, 0], &room[1, 0], &room[2, 0])
            for k in range(knots.shape[0]):
                if k < n_small:
                    skvbem_next_rise(n, <double> k, &room[5, 0], &room[0, 0])
                else:
                    skvbem_rise(n, knots[k], &room[5, 0], &room[1, 0], &room[3, 0], &room[0, 0])
                total = 0.0
                for j in range(n):
                    total += room[6, j] * room[0, j]
                out[m, k] = total
