"""Normal-Wishart distributions of few columns: what a step asks of q(theta), for all lanes at once.

The formulas stand in `skvbem.families.normal_wishart`.
"""

from libc.stdint cimport intptr_t, uint64_t


cdef extern from "_wishart.h" nogil:
    int skvbem_wishart_expected(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double* cells,
                                double* natural, double* normalizer, unsigned char* valid)
    int skvbem_wishart_most_likely(intptr_t d, intptr_t n, intptr_t n_components, int shared, double floor,
                                   const double* statistics, double* natural, unsigned char* sure)
    int skvbem_wishart_increment(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double* cells,
                                 const double* statistics, double* increment)
    void skvbem_prepare_normal()
    int skvbem_wishart_drawn(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double* cells,
                             uint64_t* streams, double* natural)
    int skvbem_wishart_drawn_scale(intptr_t d, intptr_t n, double degrees, const double* scale, intptr_t n_precisions,
                                   const long long* squares, const double* natural, uint64_t* streams, double* packed)


skvbem_prepare_normal()


def expected(Py_ssize_t d, Py_ssize_t n_components, bint shared, const double[:, ::1] cells, double[:, ::1] natural,
             double[::1] normalizer, unsigned char[::1] valid):
    """Fill expected natural parameters, log normalizers and whether they are those of densities.

    Parameters
    ----------
    d, n_components : numbers of columns and of components
    shared : whether all components share one precision
    cells : (n_cells, n_lanes) IN, coordinates
    natural : (n_cells, n_lanes) OUT
    normalizer : (n_lanes,) OUT, nats; NaN where there is no density
    valid : (n_lanes,) OUT
    """
    cdef int done = 1
    if cells.shape[1] and n_components:
        with nogil:
            done = skvbem_wishart_expected(d, cells.shape[1], n_components, shared, &cells[0, 0], &natural[0, 0],
                                           &normalizer[0], &valid[0])
    if not done:
        raise MemoryError()


def most_likely(Py_ssize_t d, Py_ssize_t n_components, bint shared, double floor, const double[:, ::1] statistics,
                double[:, ::1] natural, unsigned char[::1] sure):
    """Fill the natural parameters of means and precisions of data, where no variance is below a floor.

    Parameters
    ----------
    d, n_components, shared : as of `expected`
    floor : the least variance in any direction
    statistics : (n_cells, n_lanes) IN
    natural : (n_cells, n_lanes) OUT
    sure : (n_lanes,) OUT, where all variances are surely above the floor and no weight is 0: else they are not right
    """
    cdef int done = 1
    if statistics.shape[1] and n_components:
        with nogil:
            done = skvbem_wishart_most_likely(d, statistics.shape[1], n_components, shared, floor, &statistics[0, 0],
                                              &natural[0, 0], &sure[0])
    if not done:
        raise MemoryError()


def increment(Py_ssize_t d, Py_ssize_t n_components, bint shared, const double[:, ::1] cells,
              const double[:, ::1] statistics, double[::1] out):
    """Fill A(cells + statistics) - A(cells), nats.

    Parameters
    ----------
    d, n_components, shared, cells : as of `expected`
    statistics : (n_cells, n_lanes) IN
    out : (n_lanes,) OUT, NaN where either is not the normalizer of a density
    """
    cdef int done = 1
    if cells.shape[1] and n_components:
        with nogil:
            done = skvbem_wishart_increment(d, cells.shape[1], n_components, shared, &cells[0, 0], &statistics[0, 0],
                                            &out[0])
    if not done:
        raise MemoryError()


def drawn(Py_ssize_t d, Py_ssize_t n_components, bint shared, const double[:, ::1] cells, uint64_t[:, ::1] streams,
          double[:, ::1] natural):
    """Fill the natural parameters of means and precisions drawn in each lane.

    Parameters
    ----------
    d, n_components, shared, cells : as of `expected`
    streams : (4, n_lanes) IN and OUT
    natural : (n_cells, n_lanes) OUT, NaN where there is no density
    """
    cdef int done = 1
    if cells.shape[1] and n_components:
        with nogil:
            done = skvbem_wishart_drawn(d, cells.shape[1], n_components, shared, &cells[0, 0], &streams[0, 0],
                                        &natural[0, 0])
    if not done:
        raise MemoryError()


def drawn_scale(double degrees, const double[:, ::1] scale, const long long[:, ::1] squares,
                const double[:, ::1] natural, uint64_t[:, ::1] streams, double[:, ::1] packed):
    """Fill the inverse scale that precisions share, drawn given natural parameters of theirs in each lane.

    Parameters
    ----------
    degrees : of freedom of its posterior
    scale : (d, d) IN, of its prior
    squares : (n_precisions, d (d + 1) / 2) IN, cells of the packed square of each precision
    natural : (n_cells, n_lanes) IN
    streams : (4, n_lanes) IN and OUT
    packed : (d (d + 1) / 2, n_lanes) OUT, NaN where precisions are none
    """
    cdef int done = 1
    if natural.shape[1] and squares.shape[0]:
        with nogil:
            done = skvbem_wishart_drawn_scale(scale.shape[0], natural.shape[1], degrees, &scale[0, 0],
                                              squares.shape[0], &squares[0, 0], &natural[0, 0], &streams[0, 0],
                                              &packed[0, 0])
    if not done:
        raise MemoryError()
