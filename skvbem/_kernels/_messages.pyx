"""Families that cross clusters of hidden nodes: the messages that they send, and their expected counts.

Arrays of marginals and messages are (n_lanes, n_states, n_rows), so that the inner loops are over rows. A family has a
table for each code, the value of its observed nodes in a row.
"""

from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc


cdef extern from "_messages.h" nogil:
    enum: SKVBEM_MESSAGE_ROWS
    void skvbem_add_message(int adds, intptr_t n_to, intptr_t n_rest, intptr_t n_codes, intptr_t n_rows,
                            const double* table, const int* code, intptr_t n_others, const intptr_t* sizes,
                            const double** others, intptr_t lane, double* joint, double* message)
    void skvbem_add_member_counts(intptr_t n_cells, intptr_t n_codes, intptr_t n_rows, const int* code,
                                  const double* weight, intptr_t n_marginals, const intptr_t* sizes,
                                  const double** marginals, intptr_t lane, double* joint, double* counts)
    void skvbem_read_marginals(intptr_t n_states, intptr_t n_lanes, intptr_t n_contexts, intptr_t n_rows,
                               intptr_t context, const double* kept, const double* weight, double least,
                               double* marginal)
    void skvbem_write_marginals(intptr_t n_states, intptr_t n_lanes, intptr_t n_contexts, intptr_t n_rows,
                                intptr_t context, const double* marginal, const double* weight, double* kept)
    void skvbem_divide_rows(intptr_t n, intptr_t n_rows, const double* weight, double* counts)
    void skvbem_add_products(intptr_t n_states, intptr_t n_lanes, intptr_t n_rows, const double* one,
                             const double* other, double* total)


cdef class _Marginals:
    """Where some arrays of marginals stand, and room for their product."""

    cdef const double** arrays
    cdef intptr_t* sizes
    cdef double* joint
    cdef Py_ssize_t n
    cdef list kept

    def __cinit__(self, marginals, Py_ssize_t n_cells):
        cdef const double[:, :, ::1] array
        cdef Py_ssize_t k
        self.n, self.kept = len(marginals), list(marginals)
        self.arrays = <const double**> malloc((self.n + 1) * sizeof(double*))
        self.sizes = <intptr_t*> malloc((self.n + 1) * sizeof(intptr_t))
        self.joint = <double*> malloc(n_cells * SKVBEM_MESSAGE_ROWS * sizeof(double))
        if self.arrays == NULL or self.sizes == NULL or self.joint == NULL:
            raise MemoryError
        for k in range(self.n):
            array = self.kept[k]
            self.arrays[k], self.sizes[k] = &array[0, 0, 0], array.shape[1]

    def __dealloc__(self):
        free(self.joint)
        free(self.sizes)
        free(self.arrays)


def add_message(const double[:, :, :, ::1] table, const int[::1] code, others, double[:, :, ::1] message, bint adds):
    """The expected logarithm of a family's table as the message for one cluster, or added to it.

    Parameters
    ----------
    table : (n_lanes, n_to, n_rest, n_codes) IN
        By states of the one cluster, and of all others together.
    code : (n_rows,) IN
    others : arrays (n_lanes, n_states, n_rows) IN
        Marginals of the other clusters; their joint states are the table's, the last one's fastest.
    message : (n_lanes, n_to, n_rows) OUT, and IN if it is added to
    adds : whether it is
    """
    cdef Py_ssize_t lane, n_rows = code.shape[0]
    cdef _Marginals of_others = _Marginals(others, table.shape[2])
    if n_rows == 0:
        return
    with nogil:
        for lane in range(table.shape[0]):
            skvbem_add_message(adds, table.shape[1], table.shape[2], table.shape[3], n_rows, &table[lane, 0, 0, 0],
                               &code[0], of_others.n, of_others.sizes, of_others.arrays, lane, of_others.joint,
                               &message[lane, 0, 0])


def add_counts(const int[::1] code, const double[::1] weight, marginals, double[:, :, ::1] counts):
    """Add the product of marginals, times weights, to the counts of each code.

    Parameters
    ----------
    code, weight : (n_rows,) IN
    marginals : arrays (n_lanes, n_states, n_rows) IN
    counts : (n_lanes, n_cells, n_codes) IN and OUT
        Cells are joint states of the marginals, the last one's fastest.
    """
    cdef Py_ssize_t lane, n_rows = code.shape[0]
    cdef _Marginals of_all = _Marginals(marginals, counts.shape[1])
    if n_rows == 0:
        return
    with nogil:
        for lane in range(counts.shape[0]):
            skvbem_add_member_counts(counts.shape[1], counts.shape[2], n_rows, &code[0], &weight[0], of_all.n,
                                     of_all.sizes, of_all.arrays, lane, of_all.joint, &counts[lane, 0, 0])


def read(const double[:, :, ::1] state, Py_ssize_t first, const double[::1] weight, double least,
         double[:, :, ::1] marginal):
    """Distributions from what was kept of them, times weights.

    Parameters
    ----------
    state : (n_states, n_contexts, n_lanes) IN
    first : the context of the first row
    weight : (n_rows,) IN
    least : the least share of a row that a state keeps, before shares are made to sum to 1
    marginal : (n_lanes, n_states, n_rows) OUT
    """
    if weight.shape[0] == 0:
        return
    with nogil:
        skvbem_read_marginals(marginal.shape[1], marginal.shape[0], state.shape[1], weight.shape[0], first,
                              &state[0, 0, 0], &weight[0], least, &marginal[0, 0, 0])


def write(const double[:, :, ::1] marginal, const double[::1] weight, Py_ssize_t first, double[:, :, ::1] state):
    """Keep distributions, times weights; the reverse of `read`.

    Parameters
    ----------
    marginal : (n_lanes, n_states, n_rows) IN
    weight : (n_rows,) IN
    first : the context of the first row
    state : (n_states, n_contexts, n_lanes) OUT
    """
    if weight.shape[0] == 0:
        return
    with nogil:
        skvbem_write_marginals(marginal.shape[1], marginal.shape[0], state.shape[1], weight.shape[0], first,
                               &marginal[0, 0, 0], &weight[0], &state[0, 0, 0])


def divide(const double[::1] weight, double[:, :, ::1] counts):
    """Divide expected counts by the weights of their rows.

    Parameters
    ----------
    weight : (n_rows,) IN
    counts : (n_lanes, n_states, n_rows) IN and OUT
    """
    if counts.size == 0:
        return
    with nogil:
        skvbem_divide_rows(counts.shape[0] * counts.shape[1], weight.shape[0], &weight[0], &counts[0, 0, 0])


def add_products(const double[:, :, ::1] one, const double[:, :, ::1] other, double[:, ::1] total):
    """Add the sums over states of the products of two arrays.

    Parameters
    ----------
    one, other : (n_lanes, n_states, n_rows) IN
    total : (n_lanes, n_rows) IN and OUT
    """
    if one.size == 0:
        return
    with nogil:
        skvbem_add_products(one.shape[1], one.shape[0], one.shape[2], &one[0, 0, 0], &other[0, 0, 0], &total[0, 0])
