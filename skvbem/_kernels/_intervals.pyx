"""ln of the probability of intervals under normal distributions, sums over rows, and moments between their ends."""

from libc.stdint cimport intptr_t


cdef extern from "_intervals.h" nogil:
    void skvbem_intervals(intptr_t n, int n_moments, const double* low, const double* high, double mean,
                          double precision_root, double* log_mass, double* moments, intptr_t stride)
    const intptr_t SKVBEM_AT_ONCE
    void skvbem_some_rows(intptr_t n, intptr_t n_columns, const double* low, const double* high, intptr_t stride,
                          const double* mean, const double* root, const double* peak, double* of_rows, double* moments,
                          intptr_t width)


def between(const double[::1] low, const double[::1] high, const intptr_t[::1] starts, const double[:, ::1] mean,
            const double[:, ::1] precision_root, double[:, ::1] log_mass, double[:, :, ::1] moments):
    """Fill log probabilities and moments, in deviations from means.

    Parameters
    ----------
    low, high : (n_intervals,) IN
        Ends, column after column; -inf and inf where they are open. NaN where there is no interval: 0 comes out.
    starts : (n_columns + 1,) IN
        Where the intervals of each column begin and end.
    mean, precision_root : (n_out, n_columns) IN
    log_mass : (n_out, n_intervals) OUT
        Nats.
    moments : (n_out, 2 or 4, n_intervals) OUT
        The first ones, about the mean.
    """
    cdef intptr_t o, j, first, n
    with nogil:
        for o in range(mean.shape[0]):
            for j in range(mean.shape[1]):
                first = starts[j]
                n = starts[j + 1] - first
                if n:
                    skvbem_intervals(n, <int> moments.shape[1], &low[first], &high[first], mean[o, j],
                                     precision_root[o, j], &log_mass[o, first], &moments[o, 0, first],
                                     moments.shape[2])


def of_rows(const double[:, :] low, const double[:, :] high, const double[:, ::1] mean,
            const double[:, ::1] precision_root, const double[:, ::1] peak, double[:, ::1] log_mass,
            double[:, :, :, ::1] moments):
    """Fill sums over rows of log probabilities, and moments, in deviations from means: one logarithm for each row.

    Parameters
    ----------
    low, high : (n_columns, n_rows) IN
        Ends, those of a column one after the other; NaN where there is no interval.
    mean, precision_root : (n_out, n_columns) IN
    peak : (n_out, n_columns) IN
        What is added for each interval.
    log_mass : (n_out, n_rows) OUT
        Nats.
    moments : (n_out, 2, n_columns, n_rows) OUT
        About the mean; 0 where there is no interval.
    """
    cdef intptr_t o, at, n, n_columns = low.shape[0], n_rows = low.shape[1]
    cdef intptr_t stride = low.strides[0] // <intptr_t> sizeof(double)
    if n_columns == 0:
        log_mass[:] = 0.0
        return
    with nogil:
        at = 0
        while at < n_rows:
            n = SKVBEM_AT_ONCE if n_rows - at > SKVBEM_AT_ONCE else n_rows - at
            for o in range(mean.shape[0]):
                skvbem_some_rows(n, n_columns, &low[0, at], &high[0, at], stride, &mean[o, 0], &precision_root[o, 0],
                                 &peak[o, 0], &log_mass[o, at], &moments[o, 0, 0, at], n_rows)
            at += n
