"""Numbers of the values of a column of Python objects."""

from cpython.ref cimport PyObject


# Objects whose numbers are kept by where they are in memory; a power of 2, a few times the levels of most columns.
cdef enum:
    N_KEPT = 256


def number_cells(list cells, numbers_of_type, int[::1] numbers):
    """Fill the number of each cell; one object is looked up once, however many cells hold it.

    Parameters
    ----------
    cells : list of length n IN, which keeps the objects alive
    numbers_of_type : mapping of type to mapping of value to int IN
    numbers : (n,) OUT
    """
    cdef PyObject* kept[N_KEPT]
    cdef int number_of_kept[N_KEPT]
    cdef Py_ssize_t i, slot
    cdef size_t place
    cdef object cell, kind = None, of_kind = None
    for slot in range(N_KEPT):
        kept[slot] = NULL
    for i in range(len(cells)):
        cell = cells[i]
        place = <size_t><PyObject*>cell
        slot = <Py_ssize_t>((place >> 4 ^ place >> 12) & (N_KEPT - 1))
        if kept[slot] != <PyObject*>cell:
            if type(cell) is not kind:
                kind = type(cell)
                of_kind = numbers_of_type[kind]
            number_of_kept[slot] = of_kind[cell]
            kept[slot] = <PyObject*>cell
        numbers[i] = number_of_kept[slot]
