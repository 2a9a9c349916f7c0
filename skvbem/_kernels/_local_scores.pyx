"""Sums over the distinct values of sets of columns: what Bayesian scores of families of complete data are made of."""

from libc.math cimport log
from libc.stdint cimport intptr_t

import numpy as np


cdef extern from "_lanes.h" nogil:
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    double skvbem_log_rising(double a, double n, double log_gamma_a, double log_gamma_sum)


cdef Py_ssize_t refine(Py_ssize_t n_rows, int n_states, const int* group, Py_ssize_t n_groups, const int* column,
                       const double* weight, int* place, int* finer, double* mass) noexcept nogil:
    """Split groups of rows by a further column; how many there are then, with the weight of each."""
    cdef Py_ssize_t row, cell, k, n = 0
    for k in range(n_groups * n_states):
        place[k] = -1
    for row in range(n_rows):
        cell = <Py_ssize_t>group[row] * n_states + column[row]
        k = place[cell]
        if k < 0:
            k = n
            place[cell] = <int>n
            mass[n] = 0.0
            n += 1
        finer[row] = <int>k
        mass[k] += weight[row]
    return n


cdef double log_rising_sum(Py_ssize_t n, double a, const double* mass, double* total, double* log_gamma,
                           double* scratch) noexcept nogil:
    """Sum of ln Gamma(a + mass) - ln Gamma(a)."""
    cdef Py_ssize_t k
    cdef double result = 0.0, of_a
    skvbem_log_gamma_digamma(1, &a, &of_a, scratch)
    for k in range(n):
        total[k] = a + mass[k]
    skvbem_log_gamma_digamma(n, total, log_gamma, scratch)
    for k in range(n):
        result += skvbem_log_rising(a, mass[k], of_a, log_gamma[k])
    return result


def fill_sums(const int[:, ::1] codes, const long long[::1] cardinality, const double[::1] weight,
              const double[::1] strength, const unsigned char[::1] shared, Py_ssize_t most, double[:, ::1] sums):
    """For sets of columns, sums over their joint values c of ln Gamma(a + n_c) - ln Gamma(a), n_c the weight of c.

    Parameters
    ----------
    codes : (n_columns, n_rows) IN, n_columns <= 62
    cardinality : (n_columns,) IN
    weight : (n_rows,) IN, > 0
    strength : (n_kinds,) IN, the concentration a; 0 for sums of n_c ln n_c in its place
    shared : (n_kinds,) IN, whether a set shares the strength out among all its joint values
    most : sets of so many columns at most
    sums : (2 ** n_columns, n_kinds) OUT, by the mask of the set; larger sets are left as they are
    """
    cdef Py_ssize_t n_columns = codes.shape[0], n_rows = codes.shape[1], n_kinds = strength.shape[0]
    cdef Py_ssize_t depth = min(most, n_columns), level = 0, column, kind, k, mask = 0
    cdef int widest = np.max(cardinality, initial=1)
    cdef double a
    # of each level of the descent: the column it added, the groups of rows, their number and weight, ln joint values
    cdef long long[::1] added = np.full(depth + 2, -1, dtype=np.int64)
    cdef long long[::1] n_groups = np.ones(depth + 2, dtype=np.int64)
    cdef int[:, ::1] group = np.zeros((depth + 2, max(n_rows, 1)), dtype=np.int32)
    cdef double[:, ::1] mass = np.zeros((depth + 2, max(n_rows, 1)))
    cdef double[::1] n_values = np.ones(depth + 2)
    cdef int[::1] place = np.empty(max(n_rows, 1) * widest, dtype=np.int32)
    cdef double[:, ::1] scratch = np.empty((3, max(n_rows, 1)))
    mass[0, 0] = np.sum(weight)
    if n_rows == 0:
        n_groups[0] = 0
    with nogil:
        while level >= 0:
            # here a set of columns is met for the first time: `level` of them, the last one `added[level]`
            for kind in range(n_kinds):
                a = strength[kind]
                if a > 0.0:
                    if shared[kind]:
                        a = a / n_values[level]
                    sums[mask, kind] = log_rising_sum(n_groups[level], a, &mass[level, 0], &scratch[0, 0],
                                                      &scratch[1, 0], &scratch[2, 0])
                else:
                    sums[mask, kind] = 0.0
                    for k in range(n_groups[level]):
                        sums[mask, kind] += mass[level, k] * log(mass[level, k])
            # the next set: one column more if there may be, else the last column replaced by a later one
            column = added[level] + 1
            if level == depth or column == n_columns:
                while level > 0 and added[level] == n_columns - 1:
                    mask ^= <Py_ssize_t>1 << added[level]
                    level -= 1
                if level == 0:
                    break
                column = added[level] + 1
                mask ^= <Py_ssize_t>1 << added[level]
                level -= 1
            level += 1
            added[level] = column
            mask |= <Py_ssize_t>1 << column
            n_values[level] = n_values[level - 1] * cardinality[column]
            n_groups[level] = refine(n_rows, <int>cardinality[column], &group[level - 1, 0], n_groups[level - 1],
                                     &codes[column, 0], &weight[0], &place[0], &group[level, 0], &mass[level, 0])
