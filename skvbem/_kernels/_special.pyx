"""ln Gamma, digamma, rising factorials and ln det(I + A) on arrays: the functions of the kernels, for Python."""

from libc.math cimport INFINITY, log1p
from libc.stdint cimport intptr_t

import numpy as np


cdef extern from "_lanes.h" nogil:
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    double skvbem_log_rising(double a, double n, double log_gamma_a, double log_gamma_sum)


def log_gamma_digamma(const double[::1] x, double[::1] log_gamma, double[::1] digamma):
    """Fill ln Gamma(x) and psi(x), elementwise, for x > 0.

    Parameters
    ----------
    x : (N,) IN
    log_gamma, digamma : (N,) OUT
    """
    if x.shape[0]:
        with nogil:
            skvbem_log_gamma_digamma(x.shape[0], &x[0], &log_gamma[0], &digamma[0])


def log_rising_factorial(const double[::1] a, const double[::1] n, double[::1] out):
    """Fill ln Gamma(a + n) - ln Gamma(a), elementwise, for a > 0 and a + n > 0.

    Parameters
    ----------
    a, n : (N,) IN
    out : (N,) OUT
    """
    cdef Py_ssize_t i, size = a.shape[0]
    cdef double[:, ::1] of_a = np.empty((2, size))
    cdef double[:, ::1] of_sum = np.empty((2, size))
    if size == 0:
        return
    cdef double[::1] total = np.add(a, n)
    with nogil:
        skvbem_log_gamma_digamma(size, &a[0], &of_a[0, 0], &of_a[1, 0])
        skvbem_log_gamma_digamma(size, &total[0], &of_sum[0, 0], &of_sum[1, 0])
        for i in range(size):
            if n[i] == 0.0:
                out[i] = 0.0
            elif n[i] == INFINITY:
                out[i] = INFINITY
            elif n[i] < 0.0:
                out[i] = -skvbem_log_rising(total[i], -n[i], of_sum[0, i], of_a[0, i])
            else:
                out[i] = skvbem_log_rising(a[i], n[i], of_a[0, i], of_sum[0, i])


def log_det_one_plus(double[:, :, ::1] a, double[::1] out):
    """Fill ln det(I + A) of symmetric matrices from their lower triangles, by pivots less 1; NaN where one is not > 0.

    Parameters
    ----------
    a : (N, D, D) IN and OUT
        Destroyed.
    out : (N,) OUT
    """
    cdef Py_ssize_t m, i, j, k, n = a.shape[0], d = a.shape[1]
    cdef double pivot, share
    with nogil:
        for m in range(n):
            out[m] = 0.0
            for k in range(d):
                pivot = a[m, k, k]
                out[m] += log1p(pivot)
                for i in range(k + 1, d):
                    share = a[m, i, k] / (1.0 + pivot)
                    for j in range(k + 1, i + 1):
                        a[m, i, j] -= share * a[m, j, k]
