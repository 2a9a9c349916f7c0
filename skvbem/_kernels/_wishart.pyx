"""Normal-Wishart distributions of few columns: what a step asks of q(theta), for all lanes at once.

The formulas stand in `skvbem.families.normal_wishart`.
"""

from libc.stdint cimport intptr_t


cdef extern from "_wishart.h" nogil:
    int skvbem_wishart_expected(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double* cells,
                                double* natural, double* normalizer, unsigned char* valid)
    int skvbem_wishart_most_likely(intptr_t d, intptr_t n, intptr_t n_components, int shared, double floor,
                                   const double* statistics, double* natural, unsigned char* sure)
    int skvbem_wishart_increment(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double* cells,
                                 const double* statistics, double* increment)


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
