from libc.stdint cimport uint64_t

from skvbem._kernels._contraction cimport Contraction


cdef class MStep:
    cdef const long long[::1] starts
    cdef const double[:, ::1] offset, row_offset
    cdef bint density


cdef class Workspace:
    cdef readonly Contraction program
    cdef readonly Py_ssize_t n_lanes
    cdef double[:, ::1] natural_, exp_natural, tables, expected, block_log_z
    cdef double[::1] penalty, log_scale, scratch

    cdef void start(self) noexcept nogil
    cdef void begin_block(self, Py_ssize_t block) noexcept nogil
    cdef void from_counts(self, MStep m_step, const double* counts) noexcept nogil
    cdef void run_block(self, Py_ssize_t block, uint64_t* streams, bint counted) noexcept nogil
    cdef void total(self, double* objective) noexcept nogil
    cdef void gather(self, double* counts) noexcept nogil
