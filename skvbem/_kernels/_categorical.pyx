"""Log likelihoods of rows of codes, and counts of codes, by joint tables of several columns each.

Columns are joined in groups; a group has one code for every combination of its columns' categories, a missing cell
being one more category. A joint table holds the sum of its columns' entries, so that a row costs one addition per
group and component. Codes of all groups are numbered through; the trailing axis, `width`, runs over the components of
all restarts and is padded to a multiple of 4.
"""

from libc.stdint cimport int32_t, intptr_t


cdef extern from "_gather.h" nogil:
    void skvbem_gather_rows(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_out, const int32_t* codes,
                            const double* joint, double* out, intptr_t stride)
    void skvbem_spread_rows(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_in, const int32_t* codes,
                            const double* shares, intptr_t stride, intptr_t row_stride, double* joint)

    const int SKVBEM_POWERS
    void skvbem_gather_polynomials(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_out,
                                   const int32_t* codes, const double* place, const double* joint, double* out,
                                   intptr_t stride)
    void skvbem_spread_powers(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_in, const int32_t* codes,
                              const double* place, const double* shares, intptr_t stride, intptr_t row_stride,
                              double* joint)


#: Coefficients of the polynomials of `gather_polynomials`.
N_POWERS = SKVBEM_POWERS


def join(const int32_t[:, ::1] members, const double[:, ::1] cells, double[:, ::1] joint):
    """Fill joint tables: the sum of the entries of their columns' cells.

    Parameters
    ----------
    members : (n_codes, n_together) IN
        Cells that a code stands for; a cell of zeros where it stands for fewer.
    cells : (n_cells, width) IN
    joint : (n_codes, width) OUT
    """
    cdef Py_ssize_t code, k, w, width = joint.shape[1]
    cdef const double* cell
    with nogil:
        for code in range(members.shape[0]):
            for w in range(width):
                joint[code, w] = 0.0
            for k in range(members.shape[1]):
                cell = &cells[members[code, k], 0]
                for w in range(width):
                    joint[code, w] += cell[w]


def split(const int32_t[:, ::1] members, const double[:, ::1] joint, double[:, ::1] cells):
    """Add the counts of codes to the cells that they stand for.

    Parameters
    ----------
    members : (n_codes, n_together) IN
    joint : (n_codes, width) IN
    cells : (n_cells, width) IN and OUT
    """
    cdef Py_ssize_t code, k, w, width = joint.shape[1]
    cdef double* cell
    with nogil:
        for code in range(members.shape[0]):
            for k in range(members.shape[1]):
                cell = &cells[members[code, k], 0]
                for w in range(width):
                    cell[w] += joint[code, w]


def gather(const int32_t[:, ::1] codes, const double[:, ::1] joint, double[:, ::1] out):
    """Fill log likelihoods: for each row, the sum over groups of the entries of its codes.

    Parameters
    ----------
    codes : (n_rows, n_groups) IN
    joint : (n_codes, width) IN
        `width` a multiple of 4, n_out at the least.
    out : (n_out, n_rows) OUT
    """
    if codes.shape[0] and codes.shape[1]:
        with nogil:
            skvbem_gather_rows(codes.shape[0], codes.shape[1], joint.shape[1], out.shape[0], &codes[0, 0],
                               &joint[0, 0], &out[0, 0], out.shape[1])
    else:
        out[:] = 0.0


def spread(const int32_t[:, ::1] codes, const double[:, :] shares, double[:, ::1] joint):
    """Add the shares of each row to the counts of its codes.

    Parameters
    ----------
    codes : (n_rows, n_groups) IN
    shares : (n_in, n_rows) IN
    joint : (n_codes, width) IN and OUT
        `width` a multiple of 4, n_in at the least.
    """
    if codes.shape[0] and codes.shape[1]:
        with nogil:
            skvbem_spread_rows(codes.shape[0], codes.shape[1], joint.shape[1], shares.shape[0], &codes[0, 0],
                               &shares[0, 0], shares.strides[0] // <Py_ssize_t>sizeof(double),
                               shares.strides[1] // <Py_ssize_t>sizeof(double), &joint[0, 0])


def gather_polynomials(const int32_t[:, ::1] codes, const double[:, ::1] place, const double[:, :, ::1] joint,
                       double[:, ::1] out):
    """Fill log likelihoods: for each row, the sum over groups of polynomials of its codes at its places.

    Parameters
    ----------
    codes, place : (n_rows, n_groups) IN
    joint : (n_codes, N_POWERS, width) IN
        Coefficients. `width` a multiple of 4, n_out at the least.
    out : (n_out, n_rows) OUT
    """
    if codes.shape[0] and codes.shape[1]:
        with nogil:
            skvbem_gather_polynomials(codes.shape[0], codes.shape[1], joint.shape[2], out.shape[0], &codes[0, 0],
                                      &place[0, 0], &joint[0, 0, 0], &out[0, 0], out.shape[1])
    else:
        out[:] = 0.0


def spread_powers(const int32_t[:, ::1] codes, const double[:, ::1] place, const double[:, :] shares,
                  double[:, :, ::1] joint):
    """Add the shares of each row, times powers of its places, to the sums of its codes.

    Parameters
    ----------
    codes, place : (n_rows, n_groups) IN
    shares : (n_in, n_rows) IN
    joint : (n_codes, N_POWERS, width) IN and OUT
        `width` a multiple of 4, n_in at the least.
    """
    if codes.shape[0] and codes.shape[1]:
        with nogil:
            skvbem_spread_powers(codes.shape[0], codes.shape[1], joint.shape[2], shares.shape[0], &codes[0, 0],
                                 &place[0, 0], &shares[0, 0], shares.strides[0] // <Py_ssize_t>sizeof(double),
                                 shares.strides[1] // <Py_ssize_t>sizeof(double), &joint[0, 0, 0])
