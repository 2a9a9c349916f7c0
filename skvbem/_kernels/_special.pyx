"""ln Gamma, digamma, rising factorials and ln det(I + A) on arrays: the functions of the kernels, for Python."""

from libc.stdint cimport intptr_t

import numpy as np


cdef extern from "_lanes.h" nogil:
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    double skvbem_log_growth(double a, double n, double log_gamma_a, double log_gamma_sum)
    double skvbem_log_det_one_plus(intptr_t d, intptr_t stride, double* a)


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
            out[i] = skvbem_log_growth(a[i], n[i], of_a[0, i], of_sum[0, i])


def log_det_one_plus(double[:, :, ::1] a, double[::1] out):
    """Fill ln det(I + A) of symmetric matrices from their lower triangles, by pivots less 1; NaN where one is not > 0.

    Parameters
    ----------
    a : (N, D, D) IN
        Destroyed.
    out : (N,) OUT
    """
    cdef Py_ssize_t m, n = a.shape[0], d = a.shape[1]
    with nogil:
        for m in range(n):
            out[m] = skvbem_log_det_one_plus(d, 1, &a[m, 0, 0]) if d else 0.0
