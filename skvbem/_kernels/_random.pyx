"""Variates from streams of one's own: Dirichlet draws for samplers, and the simple ones they are made of.

Streams are (4, n_lanes) words of xoshiro256++ states, IN and OUT: what is drawn in a lane depends on its stream alone.
"""

from libc.math cimport exp, log
from libc.stdint cimport intptr_t, uint64_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_lanes.h" nogil:
    ctypedef struct skvbem_stream:
        pass
    skvbem_stream skvbem_load(const uint64_t* streams, intptr_t lane, intptr_t n_lanes)
    void skvbem_store(const skvbem_stream* stream, uint64_t* streams, intptr_t lane, intptr_t n_lanes)
    void skvbem_prepare_normal()
    double skvbem_uniform(skvbem_stream* stream)
    double skvbem_normal(skvbem_stream* stream)
    double skvbem_gamma(skvbem_stream* stream, double a, double* lift)
    double skvbem_binomial(skvbem_stream* stream, double n, double p)
    void skvbem_multinomials(uint64_t* streams, double n, intptr_t n_cells, intptr_t n_lanes, double* p,
                             const double* total, double* scratch)
    void skvbem_log_dirichlet(intptr_t n_rows, const long long* starts, intptr_t n_lanes, double* concentration,
                              uint64_t* streams, double* log_point, double* scratch)


skvbem_prepare_normal()


def log_dirichlet(const long long[::1] starts, double[:, ::1] concentration, uint64_t[:, ::1] streams,
                  double[:, ::1] log_point):
    """Fill ln theta of Dirichlet draws, every row of every lane.

    Parameters
    ----------
    starts : (n_rows + 1,) IN, first cell of each Dirichlet row
    concentration : (n_cells, n_lanes) IN, overwritten
    streams : (4, n_lanes) IN and OUT
    log_point : (n_cells, n_lanes) OUT
    """
    cdef intptr_t n_lanes = log_point.shape[1]
    cdef double* scratch = room_for(2 * n_lanes)
    with nogil:
        skvbem_log_dirichlet(starts.shape[0] - 1, &starts[0], n_lanes, &concentration[0, 0], &streams[0, 0],
                             &log_point[0, 0], scratch)
        free(scratch)


def uniforms(uint64_t[:, ::1] streams, double[:, ::1] drawn):
    """Fill `drawn` (n_draws, n_lanes) with numbers uniform in (0, 1)."""
    _fill(0, 0.0, 0.0, streams, drawn)


def uniforms_by_lane(uint64_t[:, ::1] streams, double[:, ::1] drawn):
    """Fill `drawn` (n_lanes, n_draws) with numbers uniform in (0, 1)."""
    cdef intptr_t lane, k, n_lanes = drawn.shape[0]
    cdef skvbem_stream stream
    with nogil:
        for lane in range(n_lanes):
            stream = skvbem_load(&streams[0, 0], lane, n_lanes)
            for k in range(drawn.shape[1]):
                drawn[lane, k] = skvbem_uniform(&stream)
            skvbem_store(&stream, &streams[0, 0], lane, n_lanes)


def normals(uint64_t[:, ::1] streams, double[:, ::1] drawn):
    """Fill `drawn` (n_draws, n_lanes) with standard normal variates."""
    _fill(1, 0.0, 0.0, streams, drawn)


def gammas(const double[:, ::1] shape, uint64_t[:, ::1] streams, double[:, ::1] drawn):
    """Fill `drawn` (n_draws, n_lanes) with Gamma(shape, 1) variates; 0 where they are below all floats."""
    cdef intptr_t lane, k, n_lanes = drawn.shape[1]
    cdef skvbem_stream stream
    cdef double lift, x
    with nogil:
        for lane in range(n_lanes):
            stream = skvbem_load(&streams[0, 0], lane, n_lanes)
            for k in range(drawn.shape[0]):
                x = skvbem_gamma(&stream, shape[k, lane], &lift)
                drawn[k, lane] = x * exp(lift) if lift else x
            skvbem_store(&stream, &streams[0, 0], lane, n_lanes)


def log_gammas(double a, uint64_t[:, ::1] streams, double[:, ::1] drawn):
    """Fill `drawn` (n_draws, n_lanes) with the logarithms of Gamma(a, 1) variates."""
    _fill(2, a, 0.0, streams, drawn)


def binomials(double n, double p, uint64_t[:, ::1] streams, double[:, ::1] drawn):
    """Fill `drawn` (n_draws, n_lanes) with Binomial(n, p) variates."""
    _fill(3, n, p, streams, drawn)


def multinomials(double n, const double[::1] total, uint64_t[:, ::1] streams, double[:, ::1] p):
    """Counts of n draws among cells in proportion to p (n_cells, n_lanes), which sums to `total` (n_lanes,); over p."""
    cdef double* scratch = room_for((p.shape[0] + 1) * p.shape[1])
    with nogil:
        skvbem_multinomials(&streams[0, 0], n, p.shape[0], p.shape[1], &p[0, 0], &total[0], scratch)
        free(scratch)


cdef void _fill(int kind, double a, double b, uint64_t[:, ::1] streams, double[:, ::1] drawn) noexcept:
    cdef intptr_t lane, k, n_lanes = drawn.shape[1]
    cdef skvbem_stream stream
    cdef double lift
    with nogil:
        for lane in range(n_lanes):
            stream = skvbem_load(&streams[0, 0], lane, n_lanes)
            for k in range(drawn.shape[0]):
                if kind == 0:
                    drawn[k, lane] = skvbem_uniform(&stream)
                elif kind == 1:
                    drawn[k, lane] = skvbem_normal(&stream)
                elif kind == 2:
                    drawn[k, lane] = log(skvbem_gamma(&stream, a, &lift))
                    drawn[k, lane] += lift
                else:
                    drawn[k, lane] = skvbem_binomial(&stream, a, b)
            skvbem_store(&stream, &streams[0, 0], lane, n_lanes)
