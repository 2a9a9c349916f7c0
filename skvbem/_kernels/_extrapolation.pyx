"""Squared extrapolation of a fixed-point iteration, every lane with a length of its own.

From three successive points x0, x1, x2 of a lane: first difference r = x1 - x0, second difference v = x2 - 2 x1 + x0;
the point at length a is x0 + 2 a r + a^2 v, which is x2 at a = 1 (Varadhan & Roland 2008, SQUAREM).
"""

from libc.math cimport fabs, sqrt


def has_risen(const double[::1] before, const double[::1] after):
    """Whether the objective of every lane is higher than before; not where one is not a number."""
    cdef Py_ssize_t lane
    for lane in range(before.shape[0]):
        if not after[lane] > before[lane]:
            return False
    return True


def look(const double[:, ::1] first, const double[:, ::1] second, const double[:, ::1] third,
         const double[::1] at_first, const double[::1] at_second, const long long[::1] live, double most,
         double rounding, double magnitude, double tol, double reach, double best, const double[::1] leapt,
         double[::1] length, double[::1] objective, double[::1] to_come, unsigned char[::1] done,
         unsigned char[::1] goes_on):
    """Fill what is known of live lanes after two steps, and say how many of them go on.

    Parameters
    ----------
    first, second, third : (n_cells, n_live) IN
        Before, between and after the steps.
    at_first, at_second : (n_live,) IN
        The objective at the first two points, nats.
    live : (n_live,) IN
        Which lanes these are.
    most : IN
        Steps left that are counted at the most.
    rounding, magnitude : IN
        The share of the terms that is rounding, and the size of the terms beside the objective, nats.
    tol : IN
        Nats to come below which a lane is done; it is done, too, where the last gain is rounding.
    reach, best : IN
        A lane that is not done goes on unless so many times what is to come leaves it below the best, nats.
    leapt : (n_live,) IN
        What the last leap of each lane has gained, nats: no less is to come.
    length : (n_live,) OUT
        |r| / |v|, at least 1: how many steps the curvature of the path says are left.
    objective, to_come : (n_lanes,) OUT
        Those of the lanes that are live, nats.
    done, goes_on : (n_live,) OUT
    """
    cdef Py_ssize_t cell, lane, n_going = 0
    cdef double r, v, gain, still
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
            gain = at_second[lane] - at_first[lane]
            still = gain * (length[lane] if length[lane] < most else most)
            if still < leapt[lane]:
                still = leapt[lane]
            objective[live[lane]] = at_second[lane]
            to_come[live[lane]] = still
            done[lane] = still < tol or gain < rounding * (fabs(at_second[lane]) + magnitude)
            goes_on[lane] = not done[lane] and not at_second[lane] + reach * still < best
            n_going += goes_on[lane]
    return n_going


def extrapolate(const double[:, ::1] first, const double[:, ::1] second, const double[:, ::1] third,
                double[::1] length, const double[::1] longest, const double[::1] floor, double[:, ::1] ahead):
    """Fill the point of each lane at its length, cells no smaller than their `floor` times the third point.

    Parameters
    ----------
    first, second, third : (n_cells, n_lanes) IN
    length : (n_lanes,) IN, OUT
        Cut to the longest.
    longest : (n_lanes,) IN
    floor : (n_cells,) IN
        Negative where a cell may take any sign: it has no least value.
    ahead : (n_cells, n_lanes) OUT
    """
    cdef Py_ssize_t cell, lane
    cdef double r, v, x, least
    with nogil:
        for lane in range(first.shape[1]):
            if length[lane] > longest[lane]:
                length[lane] = longest[lane]
        for cell in range(first.shape[0]):
            least = floor[cell]
            for lane in range(first.shape[1]):
                r = second[cell, lane] - first[cell, lane]
                v = (third[cell, lane] - second[cell, lane]) - r
                x = first[cell, lane] + length[lane] * (2.0 * r + length[lane] * v)
                if least >= 0.0 and not x > least * third[cell, lane]:
                    x = least * third[cell, lane]
                ahead[cell, lane] = x


def settle(const double[:, ::1] third, const double[::1] at_second, const double[::1] length, double[::1] longest,
           double[:, ::1] ahead, double[::1] value):
    """Lead lanes back whose objective is lower ahead, and say how far each may go the next time.

    Parameters
    ----------
    third : (n_cells, n_lanes) IN
        Where a lane goes on that is led back.
    at_second : (n_lanes,) IN
        The objective that a lane must reach ahead, and that it has where it is led back, nats.
    length : (n_lanes,) IN
    longest : (n_lanes,) IN, OUT
        Four times as far where the longest was gone and was good; a quarter, 1 at the least, where it was not.
    ahead : (n_cells, n_lanes) IN, OUT
    value : (n_lanes,) IN, OUT
        The objective ahead, nats.
    """
    cdef Py_ssize_t cell, lane
    with nogil:
        for lane in range(value.shape[0]):
            if value[lane] >= at_second[lane]:
                if length[lane] >= longest[lane]:
                    longest[lane] = 4.0 * longest[lane]
                continue
            longest[lane] = longest[lane] / 4.0 if longest[lane] > 4.0 else 1.0
            value[lane] = at_second[lane]
            for cell in range(ahead.shape[0]):
                ahead[cell, lane] = third[cell, lane]
