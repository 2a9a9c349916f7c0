"""Rows of normal distributions some of whose cells are hidden: how these hang on the others, and completed sums.

Members are the components of all lanes. Several of them that follow each other may share a precision matrix.
"""

from libc.math cimport fabs, isnan, log
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


# ln 2 pi
cdef double LOG_2PI = 1.8378770664093453


cdef double directions_of(const double[:, ::1] whitener, const intptr_t* columns, intptr_t m,
                          double* hidden) noexcept nogil:
    """Columns of a matrix (d, d) in units of their largest cell, (d, m); the log of the squares of these units."""
    cdef intptr_t d = whitener.shape[0], i, j
    cdef double size, logs = 0.0
    for j in range(m):
        size = 0.0
        for i in range(d):
            size = max(size, fabs(whitener[i, columns[j]]))
        for i in range(d):
            hidden[i * m + j] = whitener[i, columns[j]] / size
        logs += 2.0 * log(size)
    return logs


def coefficients(const double[:, :, ::1] precision, const double[:, ::1] mean, const double[::1] peak,
                 const double[:, ::1] whitener, const intptr_t[::1] columns, const intptr_t[::1] ends,
                 double[:, :, ::1] found):
    """Coefficients of what is left of peak - (z - mean)' J (z - mean) / 2 under each of some patterns of hidden cells.

    Parameters
    ----------
    precision, mean, peak : (n_members, d, d), (n_members, d), (n_members,) IN
    whitener : (d, d) IN
        Column j has the direction in which cell j is hidden.
    columns : (n_hidden,) IN
        Hidden cells of all patterns, one pattern after the other.
    ends : (n_patterns + 1,) IN
        Where those of each begin and end.
    found : (n_patterns, n_members, 1 + d + d (d + 1) / 2) OUT
        Of 1, z, and its packed products; those of a pattern without hidden cells stay as they are.

    Returns
    -------
    bool
        True if all precision matrices are positive.
    """
    cdef intptr_t d = mean.shape[1], n = mean.shape[0], r, k, i, m
    cdef double* hidden = room_for(3 * d * d + d * d + d + 1)
    cdef double *root = hidden + d * d, *crossed = root + d * d, *scratch = crossed + d * d
    cdef double *shift = scratch + d * d + 1
    cdef double logs, log_det
    cdef bint positive = True
    with nogil:
        for r in range(found.shape[0]):
            m = ends[r + 1] - ends[r]
            if m == 0:
                continue
            logs = directions_of(whitener, &columns[ends[r]], m, hidden)
            for k in range(n):
                log_det = skvbem_hide_cells(d, m, &precision[k, 0, 0], hidden, root, crossed, scratch)
                if isnan(log_det):
                    positive = False
                    break
                skvbem_left_of_precision(d, m, &precision[k, 0, 0], crossed, &found[r, k, 1 + d])
                skvbem_shift_of_hidden(d, m, &precision[k, 0, 0], root, crossed, &mean[k, 0], shift, &found[r, k, 1])
                found[r, k, 0] = peak[k] + (m * LOG_2PI - log_det - logs) / 2.0
                for i in range(d):
                    found[r, k, 0] -= 0.5 * found[r, k, 1 + i] * mean[k, i]
            if not positive:
                break
        free(hidden)
    return positive


def add_completed(const double[:, :, ::1] precision, const double[:, ::1] mean, const double[:, ::1] whitener,
                  const intptr_t[::1] columns, const intptr_t[::1] ends, const double[:, :, ::1] sums,
                  double[:, ::1] total):
    """Add sums of rows by pattern, whose hidden cells are completed by their moments.

    Parameters
    ----------
    precision, mean, whitener, columns, ends
        As of `coefficients`.
    sums : (n_patterns, n_members, 1 + d + d (d + 1) / 2) IN
        Of 1, rows, and packed products of rows.
    total : (n_members, 1 + d + d (d + 1) / 2) IN, OUT
    """
    cdef intptr_t d = mean.shape[1], n = mean.shape[0], n_sums = sums.shape[2], r, k, i, m
    cdef double* hidden = room_for(6 * d * d + 2 * d + 1 + n_sums)
    cdef double *root = hidden + d * d, *crossed = root + d * d, *shift = crossed + d * d, *linear = shift + d
    cdef double *completed = linear + d, *scratch = completed + n_sums
    cdef const double* added
    with nogil:
        for r in range(sums.shape[0]):
            m = ends[r + 1] - ends[r]
            if m:
                directions_of(whitener, &columns[ends[r]], m, hidden)
            for k in range(n):
                added = &sums[r, k, 0]
                if m:
                    skvbem_hide_cells(d, m, &precision[k, 0, 0], hidden, root, crossed, scratch)
                    skvbem_shift_of_hidden(d, m, &precision[k, 0, 0], root, crossed, &mean[k, 0], shift, linear)
                    skvbem_complete_cells(d, m, added, root, crossed, shift, completed, scratch)
                    added = completed
                for i in range(n_sums):
                    total[k, i] += added[i]
        free(hidden)


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
