"""Factors of rows with cells missing: one small Cholesky factorization for each distinct pattern of them, many at once.

Arrays hold one member (a component of a lane) after the other. `pattern` says which of the patterns each row has, and
is empty where there is one alone.
"""

from libc.stdint cimport intptr_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_factors.h" nogil:
    enum: SKVBEM_INVERTED
    enum: SKVBEM_FACTOR_ROWS
    void skvbem_invert(intptr_t q, intptr_t n, const double* precision, double* root, double* covariance,
                       double* log_root, double* scratch)
    void skvbem_locate_factors(intptr_t q, intptr_t n, intptr_t n_patterns, const int* pattern, const double* first_row,
                               const double* covariance, const double* constant, double* regressors,
                               double* log_likelihood, double* scratch)
    void skvbem_scatter_factors(intptr_t q, intptr_t n, intptr_t n_patterns, const int* pattern, const double* root,
                                const double* noise, double* regressors)
    void skvbem_add_factors(intptr_t q, intptr_t n, intptr_t n_patterns, const int* pattern, int in_order,
                            const double* weight, const double* regressors, const double* covariance, double* total)
    intptr_t skvbem_weigh_scratch(intptr_t n_regressors)
    void skvbem_weigh_factors(intptr_t n_regressors, intptr_t n, const double* weight, const double* regressors,
                              double* weighted, double* products, double* scratch)
    void skvbem_weigh_squares(intptr_t d, intptr_t n, intptr_t stride, intptr_t n_members, const double* y,
                              const double* weight, double* total)
    void skvbem_sum_squares(intptr_t d, intptr_t n, intptr_t stride, intptr_t n_members, const double* y,
                            const double* weight, double* total)


cdef const int* _first(const int[::1] pattern) noexcept nogil:
    return &pattern[0] if pattern.shape[0] else NULL


def invert(const double[:, :, ::1] precision, double[:, :, ::1] root, double[:, :, ::1] covariance,
           double[:, ::1] log_root):
    """Fill roots and covariances of many small precision matrices.

    Parameters
    ----------
    precision : (n_members, q (q + 1) / 2, n) IN
        Packed.
    root, covariance : (n_members, q (q + 1) / 2, n) OUT
        Inverses of the lower Cholesky factors, transposed, and covariances, packed. NaN where a precision is not
        positive. Roots may have no members: they are not filled then.
    log_root : (n_members, n) OUT
        Sums of the logarithms of the diagonals of the roots.
    """
    cdef Py_ssize_t member, n = precision.shape[2], q = 0
    while q * (q + 1) // 2 < precision.shape[1]:
        q += 1
    if n == 0:
        return
    if q == 0:
        log_root[:] = 0.0
        return
    cdef double* scratch = room_for(q * (q + 1) * SKVBEM_INVERTED)
    with nogil:
        for member in range(precision.shape[0]):
            skvbem_invert(q, n, &precision[member, 0, 0], &root[member, 0, 0] if root.shape[0] else NULL,
                          &covariance[member, 0, 0], &log_root[member, 0], scratch)
        free(scratch)


def locate(const int[::1] pattern, const double[:, :, ::1] matrices, const double[:, :, ::1] covariance,
           const double[:, ::1] constant, double[:, :, ::1] regressors, double[:, ::1] log_likelihood):
    """Turn what is linear in the measurements of rows into 1 and means of factors, and add log likelihoods, nats.

    Parameters
    ----------
    pattern : (n_rows,) or (0,) IN
    matrices : (n_members, (1 + q) (2 + q) / 2, n_patterns) IN
        Packed natural parameters of the regressors (1, x), of which the first row is asked.
    covariance : (n_members, q (q + 1) / 2, n_patterns) IN
        Of the factors, as from `invert`.
    constant : (n_members, n_patterns) IN
        What log likelihoods have for all rows of a pattern.
    regressors : (n_members, 1 + q, n_rows) IN and OUT
    log_likelihood : (n_members, n_rows) IN and OUT
    """
    cdef Py_ssize_t member, q = regressors.shape[1] - 1, n = regressors.shape[2]
    if n == 0:
        return
    cdef double* scratch = room_for((q * (q + 3) // 2 + 1) * SKVBEM_FACTOR_ROWS)
    with nogil:
        for member in range(regressors.shape[0]):
            skvbem_locate_factors(q, n, matrices.shape[2], _first(pattern), &matrices[member, 0, 0],
                                  &covariance[member, 0, 0] if q else NULL, &constant[member, 0],
                                  &regressors[member, 0, 0], &log_likelihood[member, 0], scratch)
        free(scratch)


def scatter(const int[::1] pattern, const double[:, :, ::1] root, const double[:, :, ::1] noise,
            double[:, :, ::1] regressors):
    """Draw factors: add standard normal numbers times roots of their covariances to their means.

    Parameters
    ----------
    pattern : (n_rows,) or (0,) IN
    root : (n_members, q (q + 1) / 2, n_patterns) IN
        As in `invert`.
    noise : (n_members, q, n_rows) IN
    regressors : (n_members, 1 + q, n_rows) IN and OUT
    """
    cdef Py_ssize_t member, q = noise.shape[1], n = noise.shape[2]
    if n == 0 or q == 0:
        return
    with nogil:
        for member in range(noise.shape[0]):
            skvbem_scatter_factors(q, n, root.shape[2], _first(pattern), &root[member, 0, 0], &noise[member, 0, 0],
                                   &regressors[member, 0, 0])


def add(const int[::1] pattern, const double[:, ::1] weight, const double[:, :, ::1] regressors,
        const double[:, :, ::1] covariance, double[:, :, ::1] total):
    """Add second moments of the regressors of rows to those of their patterns.

    Parameters
    ----------
    pattern : (n_rows,) IN
    weight : (n_members, n_rows) IN
        How often each row counts.
    regressors : (n_members, 1 + q, n_rows) IN
    covariance : (n_members, q (q + 1) / 2, n_patterns) IN
        As in `invert`; without patterns where factors are known.
    total : (n_members, (1 + q) (2 + q) / 2, n_patterns) IN and OUT
    """
    cdef Py_ssize_t member, i, q = regressors.shape[1] - 1, n = regressors.shape[2]
    cdef bint varies = covariance.shape[1] > 0 and covariance.shape[2] > 0
    cdef bint in_order = total.shape[2] == n
    if n == 0:
        return
    with nogil:
        for i in range(n):
            in_order = in_order and pattern[i] == i
        for member in range(regressors.shape[0]):
            skvbem_add_factors(q, n, total.shape[2], &pattern[0], in_order, &weight[member, 0],
                               &regressors[member, 0, 0], &covariance[member, 0, 0] if varies else NULL,
                               &total[member, 0, 0])


def weigh(const double[:, ::1] weight, const double[:, :, ::1] regressors, double[:, :, ::1] weighted,
          double[:, ::1] products):
    """Fill regressors of rows as often as these count, and sums over rows of their products with the regressors.

    Parameters
    ----------
    weight : (n_members, n_rows) IN
    regressors : (n_members, 1 + q, n_rows) IN
    weighted : (n_members, 1 + q, n_rows) OUT
    products : (n_members, (1 + q) (2 + q) / 2) OUT
        Packed.
    """
    cdef Py_ssize_t member, n_regressors = regressors.shape[1], n = regressors.shape[2]
    if n == 0:
        products[:] = 0.0
        return
    cdef double* scratch = room_for(skvbem_weigh_scratch(n_regressors))
    with nogil:
        for member in range(regressors.shape[0]):
            skvbem_weigh_factors(n_regressors, n, &weight[member, 0], &regressors[member, 0, 0],
                                 &weighted[member, 0, 0], &products[member, 0], scratch)
        free(scratch)


ctypedef void (*summed)(intptr_t d, intptr_t n, intptr_t stride, intptr_t n_members, const double* y,
                        const double* weight, double* total) noexcept nogil


cdef void _fill(summed sums, const double[:, :] measured, const double[:, ::1] weight, double[:, ::1] total):
    """Fill sums of squares, of nothing where nothing is measured."""
    cdef Py_ssize_t d = measured.shape[0], n = measured.shape[1]
    if total.shape[0] == 0 or total.shape[1] == 0:
        return
    if d == 0 or n == 0:
        total[:] = 0.0
        return
    with nogil:
        sums(d, n, measured.strides[0] // sizeof(double), weight.shape[0], &measured[0, 0], &weight[0, 0],
             &total[0, 0])


def weigh_squares(const double[:, :] measured, const double[:, ::1] weight, double[:, ::1] total):
    """Fill sums over columns of squares of measurements, so often as columns count for each member.

    Parameters
    ----------
    measured : (d, n_rows) IN
        Rows of a column stand side by side.
    weight : (n_members, d) IN
    total : (n_members, n_rows) OUT
    """
    _fill(skvbem_weigh_squares, measured, weight, total)


def sum_squares(const double[:, :] measured, const double[:, ::1] weight, double[:, ::1] total):
    """Fill sums over rows of squares of measurements, so often as rows count for each member.

    `measured` as in `weigh_squares`; `weight` (n_members, n_rows) IN; `total` (n_members, d) OUT.
    """
    _fill(skvbem_sum_squares, measured, weight, total)
