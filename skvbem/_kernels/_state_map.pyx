"""Linear maps of the states of a linear dynamical system: statistics after a map, and the slope of the bound by it.

Both functions take sums over steps of products of states x, of inputs v of the measurements and of inputs u of the
states, as many as d = k + r + q together, one matrix after the other in `moments`: of (x, v, u) before a step (d, d);
of (x, v) after it with these (k + r, d); of (x, v) after it (k + r, k + r); of (x, v, 1) of first steps
(k + r + 1, k + r + 1); and the number of states.
"""

from libc.stdint cimport intptr_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_state_map.h" nogil:
    ctypedef struct skvbem_state_sums:
        intptr_t k, r, q, n_columns, n_precisions
        const double* before
        const double* crossed
        const double* after
        const double* first
        const double* of_precisions
        const double* of_columns
        double n
    intptr_t skvbem_state_map_scratch(const skvbem_state_sums* of)
    void skvbem_map_states(const skvbem_state_sums* of, const double* map, double* statistics, double* scratch)
    double skvbem_slope_of_map(const skvbem_state_sums* of, const double* map, const double* dynamics,
                               const double* emission, const double* precision, const double* pulled, int counts_first,
                               double* slope, double* scratch)


cdef skvbem_state_sums _sums(intptr_t k, const double[::1] moments, const double[:, ::1] of_precisions,
                             const double[:, ::1] of_columns) noexcept:
    """Where the parts are; the number of inputs of the states is found from the number of moments."""
    cdef skvbem_state_sums of
    cdef intptr_t d = of_columns.shape[1], dz = d
    while dz * dz + d * dz + d * d + (d + 1) * (d + 1) + 1 < moments.shape[0]:
        dz += 1
    of.k, of.r, of.q, of.n_columns, of.n_precisions = k, d - k, dz - d, of_columns.shape[0], of_precisions.shape[0]
    of.before = &moments[0]
    of.crossed = of.before + dz * dz
    of.after = of.crossed + d * dz
    of.first = of.after + d * d
    of.n = moments[moments.shape[0] - 1]
    of.of_precisions, of.of_columns = &of_precisions[0, 0], &of_columns[0, 0]
    return of


def map_states(const double[::1] moments, const double[:, ::1] of_precisions, const double[:, ::1] of_columns,
               const double[:, ::1] map, double[::1] statistics):
    """Fill statistics of states after a map.

    Parameters
    ----------
    moments : (n_moments,) IN
    of_precisions : (n_precisions, (k + r) (k + r + 1) / 2) IN
        Packed products of (x, v) for each precision matrix of columns.
    of_columns : (n_columns, k + r) IN
        Products of columns with (x, v).
    map : (k, k + r) IN
    statistics : (n_cells,) OUT
        Packed products of (x, u) before a step, products of x after it with these, then as `of_precisions` and
        `of_columns`.
    """
    cdef skvbem_state_sums of = _sums(map.shape[0], moments, of_precisions, of_columns)
    cdef double* scratch = room_for(skvbem_state_map_scratch(&of))
    with nogil:
        skvbem_map_states(&of, &map[0, 0], &statistics[0], scratch)
        free(scratch)


def slope_of_map(const double[::1] moments, const double[:, ::1] of_precisions, const double[:, ::1] of_columns,
                 const double[:, ::1] map, const double[::1] dynamics, const double[::1] emission,
                 const double[:, ::1] precision, const double[::1] pulled, bint counts_first, double[:, ::1] slope):
    """Fill the slope of the bound by a map; n ln|det R| and what squares of states cost, nats, NaN if R does not turn.

    Parameters
    ----------
    moments, of_precisions, of_columns, map
        As of `map_states`.
    dynamics, emission : (n_cells,) IN
        Natural parameters after the M step that follows the map; those of noises, which come last, are not asked.
    precision, pulled : (k, k), (k,) IN
        Of first states, and it times their mean.
    counts_first : bool
        Whether the value has the squares of first states; the slope has what they are asked for anyway.
    slope : (k, k + r) OUT
    """
    cdef skvbem_state_sums of = _sums(map.shape[0], moments, of_precisions, of_columns)
    cdef double value
    cdef double* scratch = room_for(skvbem_state_map_scratch(&of))
    with nogil:
        value = skvbem_slope_of_map(&of, &map[0, 0], &dynamics[0], &emission[0], &precision[0, 0], &pulled[0],
                                    counts_first, &slope[0, 0], scratch)
        free(scratch)
    return value
