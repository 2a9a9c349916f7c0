"""ln Gamma(k + r) - ln Gamma(r) at knots k and many r: weighted sums over knots, and means over r."""

from libc.stdint cimport intptr_t

import numpy as np


cdef extern from "_rises.h" nogil:
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    void skvbem_next_rise(intptr_t n, double k, const double* r, double* rise)
    void skvbem_rise(intptr_t n, double k, const double* r, const double* log_gamma_r, double* total, double* unused,
                     double* rise)


def weighted_sums(const double[:, ::1] r, const double[::1] knots, Py_ssize_t n_small, const double[:, ::1] weights,
                  double[:, ::1] out):
    """Fill sums over knots of weights times ln Gamma(knot + r) - ln Gamma(r).

    Parameters
    ----------
    r : (n_members, n_nodes) IN
    knots : (n_knots,) IN
        The first `n_small` of them are 1, 2, ...
    weights : (n_members, n_knots) IN
    out : (n_members, n_nodes) OUT
    """
    cdef Py_ssize_t m, j, k, last, n = r.shape[1]
    cdef double[:, ::1] room = np.empty((5, n))
    cdef double weight
    with nogil:
        for m in range(r.shape[0]):
            last = -1
            for k in range(n_small):
                if weights[m, k] != 0.0:
                    last = k
            for j in range(n):
                out[m, j] = 0.0
                room[0, j] = 0.0
            for k in range(last + 1):
                skvbem_next_rise(n, <double> k, &r[m, 0], &room[0, 0])
                weight = weights[m, k]
                if weight != 0.0:
                    for j in range(n):
                        out[m, j] += weight * room[0, j]
            skvbem_log_gamma_digamma(n, &r[m, 0], &room[1, 0], &room[2, 0])
            for k in range(n_small, knots.shape[0]):
                weight = weights[m, k]
                if weight != 0.0:
                    skvbem_rise(n, knots[k], &r[m, 0], &room[1, 0], &room[3, 0], &room[4, 0], &room[0, 0])
                    for j in range(n):
                        out[m, j] += weight * room[0, j]


def means(const double[:, ::1] r, const double[::1] knots, Py_ssize_t n_small, const double[:, ::1] share,
          double[:, ::1] out):
    """Fill means over r of ln Gamma(knot + r) - ln Gamma(r).

    Parameters
    ----------
    r, share : (n_members, n_nodes) IN
    knots : (n_knots,) IN
        The first `n_small` of them are 1, 2, ...
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
                    skvbem_rise(n, knots[k], &room[5, 0], &room[1, 0], &room[3, 0], &room[4, 0], &room[0, 0])
                total = 0.0
                for j in range(n):
                    total += room[6, j] * room[0, j]
                out[m, k] = total
