"""ln of the probability of intervals under normal distributions, and moments between their ends."""

from libc.stdint cimport intptr_t


cdef extern from "_intervals.h" nogil:
    void skvbem_intervals(intptr_t n, int n_moments, const double* low, const double* high, double mean,
                          double precision_root, double* log_mass, double* moments, intptr_t stride)


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
