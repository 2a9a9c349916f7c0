"""Regressions of many rows on the same regressors, one lane after the other: what M steps of them ask."""

from libc.stdint cimport intptr_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_regressions.h" nogil:
    ctypedef struct skvbem_regressions:
        intptr_t d, n_rows, n_precisions, n_noises
        const long long* precision_of
        const long long* noise_of
        const double* n_sharing
    intptr_t skvbem_solve_scratch(intptr_t d)
    void skvbem_solve(const skvbem_regressions* of, const double* matrices, const double* inverses, const double* total,
                      double* solutions, double* squares, double* scratch)
    intptr_t skvbem_expect_scratch(const skvbem_regressions* of)
    double skvbem_expect_regressions(const skvbem_regressions* of, const double* coordinates, double* natural,
                                     double* scratch)
    intptr_t skvbem_growth_scratch(const skvbem_regressions* of)
    double skvbem_regressions_growth(const skvbem_regressions* of, const double* coordinates, const double* statistics,
                                     double* scratch)


cdef skvbem_regressions _regressions(intptr_t n_regressors, const long long[::1] precision_of,
                                     const long long[::1] noise_of, const double[::1] n_sharing,
                                     intptr_t n_noises) noexcept:
    cdef skvbem_regressions of
    of.d, of.n_rows = n_regressors, precision_of.shape[0]
    of.n_precisions, of.n_noises = n_sharing.shape[0], n_noises
    of.precision_of, of.n_sharing = &precision_of[0], &n_sharing[0]
    of.noise_of = &noise_of[0] if n_noises else NULL
    return of


def solve(const long long[::1] precision_of, const double[:, :, :, ::1] matrices, const double[:, :, :, ::1] inverses,
          const double[:, :, ::1] rows, double[:, :, ::1] solutions, double[:, ::1] squares):
    """Fill solutions of A c = h for rows h, and the squares h' A^-1 h, which errors of inverses enter in their square.

    Parameters
    ----------
    precision_of : (n_rows,) IN
        Which matrix A each row has.
    matrices, inverses : (n_lanes, n_precisions, d, d) IN
    rows : (n_lanes, n_rows, d) IN
    solutions : (n_lanes, n_rows, d) OUT
    squares : (n_lanes, n_rows) OUT
    """
    cdef Py_ssize_t lane
    cdef skvbem_regressions run
    cdef double* scratch
    run.d, run.n_rows, run.n_precisions, run.n_noises = rows.shape[2], rows.shape[1], matrices.shape[1], 0
    if rows.shape[0] == 0 or run.n_rows == 0:
        return
    if run.d == 0:
        squares[:] = 0.0
        return
    run.precision_of = &precision_of[0]
    scratch = room_for(skvbem_solve_scratch(run.d))
    with nogil:
        for lane in range(rows.shape[0]):
            skvbem_solve(&run, &matrices[lane, 0, 0, 0], &inverses[lane, 0, 0, 0], &rows[lane, 0, 0],
                         &solutions[lane, 0, 0], &squares[lane, 0], scratch)
        free(scratch)


def expect(Py_ssize_t n_regressors, const long long[::1] precision_of, const long long[::1] noise_of,
           const double[::1] n_sharing, Py_ssize_t n_noises, const double[:, ::1] coordinates, double[:, ::1] natural,
           double[::1] log_normalizer):
    """Fill natural parameters expected under densities, and their log normalizers, nats.

    Parameters
    ----------
    n_regressors, n_noises : int
        Without noises these are known to have precision 1.
    precision_of, noise_of : (n_rows,) IN
        Which matrix and which noise each row has; `noise_of` may be empty where noises are known.
    n_sharing : (n_precisions,) IN
        How many rows have each matrix.
    coordinates : (n_lanes, n_cells) IN
        Packed matrices, sums of rows, counts and squares of noises.
    natural : (n_lanes, n_cells) OUT
    log_normalizer : (n_lanes,) OUT
        NaN, as some natural parameters are, where coordinates are those of no density.
    """
    cdef Py_ssize_t lane
    cdef skvbem_regressions run = _regressions(n_regressors, precision_of, noise_of, n_sharing, n_noises)
    cdef double* scratch = room_for(skvbem_expect_scratch(&run))
    with nogil:
        for lane in range(coordinates.shape[0]):
            log_normalizer[lane] = skvbem_expect_regressions(&run, &coordinates[lane, 0], &natural[lane, 0], scratch)
        free(scratch)


def growth(Py_ssize_t n_regressors, const long long[::1] precision_of, const long long[::1] noise_of,
           const double[::1] n_sharing, Py_ssize_t n_noises, const double[:, ::1] coordinates,
           const double[:, ::1] statistics, double[::1] grown):
    """Fill by how much log normalizers of densities grow with statistics, nats, without cancellation.

    Parameters
    ----------
    n_regressors, precision_of, noise_of, n_sharing, n_noises
        As of `expect`.
    coordinates : (n_lanes, n_cells) or (1, n_cells) IN
    statistics : (n_lanes, n_cells) IN
    grown : (n_lanes,) OUT
        NaN where either has no density.
    """
    cdef Py_ssize_t lane, each = 1 if coordinates.shape[0] > 1 else 0
    cdef skvbem_regressions run = _regressions(n_regressors, precision_of, noise_of, n_sharing, n_noises)
    cdef double* scratch = room_for(skvbem_growth_scratch(&run))
    with nogil:
        for lane in range(statistics.shape[0]):
            grown[lane] = skvbem_regressions_growth(&run, &coordinates[lane * each, 0], &statistics[lane, 0], scratch)
        free(scratch)
