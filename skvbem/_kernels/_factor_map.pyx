"""Linear maps of the factors of rows: the one that makes them white, Newton's step after it, and cells after a map.

Regressors are (1, x) for q factors x, D = 1 + q. Members are the components of all lanes, those of a lane one after the
other.
"""

from libc.stdint cimport intptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from skvbem._kernels._memory cimport room_for


cdef extern from "_factor_map.h" nogil:
    ctypedef struct skvbem_factor_form:
        intptr_t n_matrices, n_rows, n_regressors
    int skvbem_inverse(intptr_t k, double* a, double* inverse, double* log_det)
    void skvbem_add_product(intptr_t n, intptr_t m, intptr_t l, const double* a, const double* b, double* c)
    void skvbem_moved(intptr_t n, intptr_t d, const double* m, const double* s, double* turned, double* packed)
    int skvbem_root_of_factors(intptr_t q, const double* of_rows, double* root)
    void skvbem_under_root(intptr_t q, const double* root, const double* s, double* turned, double* to)
    double skvbem_whitening_map(intptr_t q, const double* of_rows, const double* root, const double* axes, double* map)
    void skvbem_map_cells(const skvbem_factor_form* form, double halves, const double* right, const double* matrices,
                          const double* rows, double* to_matrices, double* to_rows, double* scratch)
    intptr_t skvbem_further_scratch(const skvbem_factor_form* form)
    double skvbem_newton_map(const skvbem_factor_form* form, const double* of_rows, const double* given,
                             const double* products, const double* sums, const double* natural, const double* of_sums,
                             double* map, double* scratch)


def roots(const double[:, :, ::1] of_rows, const double[:, :, :, ::1] loadings, double[:, :, ::1] root,
          unsigned char[::1] usable, double[:, :, :, ::1] turned):
    """Fill roots C of covariances of factors, and C' L C for squares of loadings L.

    Parameters
    ----------
    of_rows : (n_members, D, D) IN
        Sums of products of regressors.
    loadings : (n_members, n_groups, q, q) IN
    root : (n_members, q, q) OUT
        Lower triangular; the identity where there are no rows, or factors hardly vary in some direction.
    usable : (n_members,) OUT
        Whether this is not so.
    turned : (n_members, n_groups, q, q) OUT
    """
    cdef intptr_t q = root.shape[1], member, group
    cdef double* scratch = room_for(q * q)
    with nogil:
        for member in range(root.shape[0]):
            usable[member] = skvbem_root_of_factors(q, &of_rows[member, 0, 0], &root[member, 0, 0])
            for group in range(loadings.shape[1]):
                skvbem_under_root(q, &root[member, 0, 0], &loadings[member, group, 0, 0], scratch,
                                  &turned[member, group, 0, 0])
        free(scratch)


def whiten(const double[:, :, ::1] of_rows, const double[:, :, ::1] root, const unsigned char[::1] usable,
           const double[:, :, ::1] axes, double[:, :, ::1] map, double[::1] gain):
    """Fill maps of regressors that make factors white, and how much the bound of rows grows by them, nats.

    Parameters
    ----------
    of_rows, root, usable
        As of `roots`.
    axes : (n_members, q, q) IN
        Of the loadings of white factors, as columns.
    map : (n_members, D, D) OUT
        The identity where factors are not usable.
    gain : (n_members,) OUT
    """
    cdef intptr_t q = root.shape[1], member, i
    with nogil:
        for member in range(root.shape[0]):
            if usable[member]:
                gain[member] = skvbem_whitening_map(q, &of_rows[member, 0, 0], &root[member, 0, 0], &axes[member, 0, 0],
                                                    &map[member, 0, 0])
                continue
            gain[member] = 0.0
            memset(&map[member, 0, 0], 0, (1 + q) * (1 + q) * sizeof(double))
            for i in range(1 + q):
                map[member, i, i] = 1.0


def map_cells(const double[:, :, ::1] map, bint natural, intptr_t n_matrices, intptr_t n_rows,
              const double[:, ::1] cells, double[:, ::1] mapped):
    """Fill cells after maps of regressors: packed matrices, rows, and what no map changes.

    Parameters
    ----------
    map : (n_members, D, D) IN
    natural : bool
        Whether cells are natural parameters, which maps undo, and halves of whose matrices are added; else statistics.
    n_matrices, n_rows : int
        Of a component.
    cells, mapped : (n_lanes, n_cells) IN, OUT
    """
    cdef intptr_t d = map.shape[1], n_lanes = cells.shape[0], n = map.shape[0] // n_lanes
    cdef intptr_t width = d * (d + 1) // 2
    cdef intptr_t of_matrices = n_matrices * width, of_rows = n_rows * d, lane, k, i, j, from_matrices, from_rows
    cdef intptr_t end = n * (of_matrices + of_rows), rest = cells.shape[1] - end
    cdef skvbem_factor_form form = skvbem_factor_form(n_matrices, n_rows, d)
    cdef double log_det
    cdef double* scratch = room_for(5 * d * d)
    cdef double* right = scratch + 3 * d * d
    with nogil:
        for lane in range(n_lanes):
            for k in range(n):
                if natural:
                    memcpy(scratch, &map[lane * n + k, 0, 0], d * d * sizeof(double))
                    skvbem_inverse(d, scratch, right, &log_det)
                else:
                    for i in range(d):
                        for j in range(d):
                            right[i * d + j] = map[lane * n + k, j, i]
                from_matrices, from_rows = k * of_matrices, n * of_matrices + k * of_rows
                skvbem_map_cells(&form, 2.0 if natural else 1.0, right, &cells[lane, from_matrices],
                                 &cells[lane, from_rows], &mapped[lane, from_matrices], &mapped[lane, from_rows],
                                 scratch)
            if rest:
                memcpy(&mapped[lane, end], &cells[lane, end], rest * sizeof(double))
        free(scratch)


def further(const double[:, :, ::1] map, const double[:, :, ::1] of_rows, intptr_t n_matrices, intptr_t n_rows,
            const double[:, ::1] given, const double[:, ::1] statistics, const double[:, ::1] natural,
            double[:, :, ::1] later, double[::1] gain):
    """Fill maps that a step of Newton's method follows, and how much the bound of rows grows by this step, nats.

    Parameters
    ----------
    map : (n_members, D, D) IN
    of_rows : (n_members, D, D) IN
        Sums of products of regressors before the map.
    n_matrices, n_rows : int
        Of a component.
    given, statistics, natural : (n_lanes, n_cells) IN
        Of the prior, rows and hidden parameters after the map.
    later : (n_members, D, D) OUT
    gain : (n_members,) OUT
        Minus infinity where a step would leave no factors.
    """
    cdef intptr_t d = map.shape[1], n = map.shape[0] // given.shape[0], width = d * (d + 1) // 2, size = d * d
    cdef intptr_t member, lane, k, i, j, at, row
    cdef skvbem_factor_form form = skvbem_factor_form(n_matrices, n_rows, d)
    cdef double* scratch = room_for(skvbem_further_scratch(&form) + 3 * size)
    cdef double* step = scratch + skvbem_further_scratch(&form)
    cdef double* moved = step + size
    cdef double* packed = moved + size
    with nogil:
        for member in range(map.shape[0]):
            lane, k = member // n, member % n
            at, row = k * n_matrices * width, n * n_matrices * width + k * n_rows * d
            skvbem_moved(d, d, &map[member, 0, 0], &of_rows[member, 0, 0], scratch, packed)
            for i in range(d):
                for j in range(i, d):
                    moved[i * d + j] = moved[j * d + i] = packed[0]
                    packed += 1
            packed = moved + size
            gain[member] = skvbem_newton_map(&form, moved, &given[lane, at], &statistics[lane, at],
                                             &statistics[lane, row], &natural[lane, at], &natural[lane, row], step,
                                             scratch)
            memset(&later[member, 0, 0], 0, size * sizeof(double))
            skvbem_add_product(d, d, d, step, &map[member, 0, 0], &later[member, 0, 0])
        free(scratch)
