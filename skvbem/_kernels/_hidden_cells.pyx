"""Rows of normal distributions some of whose cells are hidden: how these hang on the others, and completed sums.

Members are the components of all lanes. Several of them that follow each other may share a precision matrix.
"""

from libc.math cimport isnan
from libc.stdint cimport intptr_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_hidden_cells.h" nogil:
    double skvbem_hide_cells(intptr_t d, intptr_t m, const double* precision, const double* hidden, double* root,
                             double* crossed, double* scratch)
    void skvbem_left_of_precision(intptr_t d, intptr_t m, const double* precision, const double* crossed,
                                  double* packed)
    void skvbem_shift_of_hidden(intptr_t d, intptr_t m, const double* precision, const double* root,
                                const double* crossed, const double* mean, double* shift, double* linear)
    void skvbem_complete_cells(intptr_t d, intptr_t m, const double* sums, const double* root, const double* crossed,
                               const double* shift, double* completed, double* scratch)


def hide(const double[:, :, ::1] precision, const double[:, ::1] mean, const double[:, ::1] hidden,
         double[:, :, ::1] root, double[:, :, ::1] crossed, double[:, ::1] shift, double[::1] log_det,
         double[:, ::1] linear, double[:, ::1] products):
    """Integrate directions out of -(z - mean)' J (z - mean) / 2; whether all precision matrices are positive.

    Parameters
    ----------
    precision : (n_precisions, d, d) IN
        J.
    mean : (n_members, d) IN
    hidden : (d, m) IN
        Directions, columns of B.
    root, crossed : (n_precisions, d, m) OUT
        Of the covariance of what is hidden, root root' = B (B' J B)^-1 B', and J root.
    shift : (n_members, d) OUT
        Rows z, 0 where hidden, are completed as z - root crossed' z + shift.
    log_det : (n_precisions,) OUT
        ln det(B' J B), nats.
    linear, products : (n_members, d), (n_precisions, d (d + 1) / 2) OUT
        What multiplies z, and its packed products, in what is left.
    """
    cdef intptr_t d = hidden.shape[0], m = hidden.shape[1], n = precision.shape[0], each = mean.shape[0] // n, p, k
    cdef bint positive = True
    cdef double* scratch = room_for(m * m + 1)
    with nogil:
        for p in range(n):
            log_det[p] = skvbem_hide_cells(d, m, &precision[p, 0, 0], &hidden[0, 0], &root[p, 0, 0], &crossed[p, 0, 0],
                                           scratch)
            if isnan(log_det[p]):
                positive = False
                break
            skvbem_left_of_precision(d, m, &precision[p, 0, 0], &crossed[p, 0, 0], &products[p, 0])
            for k in range(p * each, (p + 1) * each):
                skvbem_shift_of_hidden(d, m, &precision[p, 0, 0], &root[p, 0, 0], &crossed[p, 0, 0], &mean[k, 0],
                                       &shift[k, 0], &linear[k, 0])
        free(scratch)
    return positive


def complete(const double[:, ::1] sums, const double[:, :, ::1] root, const double[:, :, ::1] crossed,
             const double[:, ::1] shift, double[:, ::1] completed):
    """Fill sums of rows whose hidden cells are completed by their moments.

    Parameters
    ----------
    sums, completed : (n_members, 1 + d + d (d + 1) / 2) IN, OUT
        Of 1, rows, and packed products of rows.
    root, crossed, shift
        As of `hide`.
    """
    cdef intptr_t d = root.shape[1], m = root.shape[2], each = sums.shape[0] // root.shape[0], member
    cdef double* scratch = room_for(d * d + d * m + m * m)
    with nogil:
        for member in range(sums.shape[0]):
            skvbem_complete_cells(d, m, &sums[member, 0], &root[member // each, 0, 0], &crossed[member // each, 0, 0],
                                  &shift[member, 0], &completed[member, 0], scratch)
        free(scratch)
