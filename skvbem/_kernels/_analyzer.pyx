"""Full steps of one factor analyzer on complete rows, of which second moments say all."""

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport intptr_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_analyzer.h" nogil:
    ctypedef struct skvbem_regressions:
        intptr_t d, n_rows, n_precisions, n_noises
        const long long* precision_of
        const long long* noise_of
        const double* n_sharing
    ctypedef struct skvbem_analyzer:
        skvbem_regressions rows
        intptr_t n_cells, n_rates
        const double* coordinates
        const double* moments
        const double* log_unit
        const int* starts
        const int* cells
        const double* loadings
        const double* shape
        const double* rate
    ctypedef struct skvbem_point:
        double* statistics
        double* natural
        double log_normalizer
    intptr_t skvbem_analyzer_scratch(const skvbem_analyzer* of)
    void skvbem_expect_point(const skvbem_analyzer* of, skvbem_point* point, double* scratch)
    double skvbem_analyzer_step(const skvbem_analyzer* of, skvbem_point* point, double* scratch)


def advance(intptr_t n_regressors, const long long[::1] precision_of, const long long[::1] noise_of,
            const double[::1] n_sharing, intptr_t n_noises, const int[::1] starts, const int[::1] cells,
            const double[::1] loadings, const double[::1] shape, const double[::1] rate, const double[::1] coordinates,
            const double[:, ::1] moments, const double[::1] log_unit, double[:, ::1] statistics, double[:, ::1] trace):
    """Take full steps in place, and fill the objective before each, nats, up to what nothing changes.

    Parameters
    ----------
    n_regressors, precision_of, noise_of, n_sharing, n_noises
        As of `skvbem._kernels._regressions.expect`; all rows have one matrix.
    starts, cells, loadings, shape, rate
        As of `skvbem._kernels._hyperpriors.expect_rates`.
    coordinates : (n_cells,) IN
        Of the prior without its hidden hyperparameters.
    moments : (d + 1, d + 1) IN
        Sums over rows of products of (1, y).
    log_unit : (1,) IN
        The sum of the logarithms of units of columns.
    statistics : (n_lanes, n_cells) IN and OUT
        As they were, where they are those of no density.
    trace : (n_steps, n_lanes) OUT
        Minus infinity there.
    """
    cdef intptr_t lane, step, n = statistics.shape[1]
    cdef bint is_density
    cdef skvbem_analyzer of
    cdef skvbem_point point
    of.rows.d, of.rows.n_rows = n_regressors, precision_of.shape[0]
    of.rows.n_precisions, of.rows.n_noises = n_sharing.shape[0], n_noises
    of.rows.precision_of, of.rows.noise_of, of.rows.n_sharing = &precision_of[0], &noise_of[0], &n_sharing[0]
    of.n_cells, of.n_rates = n, shape.shape[0]
    of.coordinates, of.moments, of.log_unit = &coordinates[0], &moments[0, 0], &log_unit[0]
    of.starts, of.cells, of.loadings, of.shape, of.rate = &starts[0], &cells[0], &loadings[0], &shape[0], &rate[0]
    cdef double* scratch = room_for(n + skvbem_analyzer_scratch(&of))
    point.natural = scratch
    with nogil:
        for lane in range(statistics.shape[0]):
            point.statistics = &statistics[lane, 0]
            skvbem_expect_point(&of, &point, scratch + n)
            is_density = isfinite(point.log_normalizer)
            for step in range(n):
                is_density = is_density and isfinite(point.natural[step])
            for step in range(trace.shape[0]):
                trace[step, lane] = skvbem_analyzer_step(&of, &point, scratch + n) if is_density else -INFINITY
        free(scratch)
