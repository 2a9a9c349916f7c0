"""Squared extrapolation of a fixed-point iteration, every lane with a length of its own.

From three successive points x0, x1, x2 of a lane: first difference r = x1 - x0, second difference v = x2 - 2 x1 + x0;
the point at length a is x0 + 2 a r + a^2 v, which is x2 at a = 1 (Varadhan & Roland 2008, SQUAREM).
"""

from libc.math cimport sqrt


def steps_left(const double[:, ::1] first, const double[:, ::1] second, const double[:, ::1] third, double[::1] length):
    """Fill |r| / |v| of each lane, at least 1: how many steps the curvature of the path says are left.

    Parameters
    ----------
    first, second, third : (n_cells, n_lanes) IN
    length : (n_lanes,) OUT
    """
    cdef Py_ssize_t cell, lane
    cdef double r, v
    cdef double squares_r, squares_v
    with nogil:
        for lane in range(first.shape[1]):
            squares_r = 0.0
            squares_v = 1e-300
            for cell in range(first.shape[0]):
                r = second[cell, lane] - first[cell, lane]
                v = (third[cell, lane] - second[cell, lane]) - r
                squares_r += r * r
                squares_v += v * v
            length[lane] = sqrt(squares_r / squares_v)
            if not length[lane] > 1.0:
                length[lane] = 1.0


def extrapolate(const double[:, ::1] first, const double[:, ::1] second, const double[:, ::1] third,
                const double[::1] length, const double[::1] floor, double[:, ::1] ahead):
    """Fill the point of each lane at its length, cells no smaller than their `floor` times the third point.

    Parameters
    ----------
    first, second, third : (n_cells, n_lanes) IN
    length : (n_lanes,) IN
    floor : (n_cells,) IN
        Negative where a cell may take any sign: it has no least value.
    ahead : (n_cells, n_lanes) OUT
    """
    cdef Py_ssize_t cell, lane
    cdef double r, v, x, least
    with nogil:
        for cell in range(first.shape[0]):
            least = floor[cell]
            for lane in range(first.shape[1]):
                r = second[cell, lane] - first[cell, lane]
                v = (third[cell, lane] - second[cell, lane]) - r
                x = first[cell, lane] + length[lane] * (2.0 * r + length[lane] * v)
                if least >= 0.0 and not x > least * third[cell, lane]:
                    x = least * third[cell, lane]
                ahead[cell, lane] = x
