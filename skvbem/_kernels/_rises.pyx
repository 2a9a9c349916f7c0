"""ln Gamma(k + r) - ln Gamma(r) at knots k and many r: weighted sums over knots, and integrals over ln r."""

from libc.stdint cimport intptr_t

import numpy as np


cdef extern from "_rises.h" nogil:
    const intptr_t SKVBEM_AT_ONCE
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    void skvbem_logs(intptr_t n, double k, const double* r, double* log_sum)
    void skvbem_rise(intptr_t n, double k, const double* r, const double* log_gamma_r, double* scratch, double* rise)
    void skvbem_add_weighted(intptr_t n_members, intptr_t n, const double* weight, intptr_t stride,
                             const double* values, double* out)
    ctypedef struct skvbem_size:
        pass
    skvbem_size skvbem_size_of(const double* cells, double weight, double unit)
    void skvbem_add_mass(const skvbem_size* size, intptr_t n, const double* t, const double* r, double* scratch,
                         double* out)
    const intptr_t SKVBEM_COEFFICIENTS
    ctypedef struct skvbem_trapezoid:
        double reach, fall, widest, first_scale, narrow, narrow_ends
        intptr_t n_newton, n_narrow, n_wide
    ctypedef struct skvbem_integral:
        double log_total, first, spacing, center, scale
    ctypedef struct skvbem_member:
        skvbem_size of
        intptr_t n_knots, n_panels
        double start, width
        const double* table
        const double* places
        const double* around
        double* sums
        intptr_t* known
        intptr_t n_known
        char* is_known
        double* scratch
    void skvbem_log_masses(void* member, intptr_t n, const double* t, double* values)
    void skvbem_mean_natural(skvbem_member* member, intptr_t n, const double* t, const double* share, double* means)
    void skvbem_log_masses_around(void* member, double* values)
    ctypedef struct skvbem_function:
        void (*at)(void* member, intptr_t n, const double* t, double* values)
        void (*around)(void* member, double* values)
    skvbem_integral skvbem_integrate(skvbem_function function, void* member, const skvbem_trapezoid* numbers,
                                     double guess, double* t, double* share, double* scratch)

#: Coefficients of the polynomial of a rise on a panel.
N_COEFFICIENTS = SKVBEM_COEFFICIENTS


cdef bint _any(const double[:, ::1] weights, Py_ssize_t first, Py_ssize_t some, Py_ssize_t low,
               Py_ssize_t high) noexcept nogil:
    """Whether some members have a weight from one knot on, before another."""
    cdef Py_ssize_t m, k
    for m in range(first, first + some):
        for k in range(low, high):
            if weights[m, k] != 0.0:
                return True
    return False


def weighted_sums(const double[:, ::1] r, const double[::1] knots, Py_ssize_t n_small, const double[:, ::1] weights,
                  double[:, ::1] out):
    """Fill sums over knots of weights times ln Gamma(knot + r) - ln Gamma(r).

    Parameters
    ----------
    r : (n_members, n_nodes) IN
    knots : (n_knots,) IN
        The first `n_small` of them are 1, 2, ....
    weights : (n_members, n_knots) IN
    out : (n_members, n_nodes) OUT
    """
    cdef Py_ssize_t m, k, first, some, n = r.shape[1], n_members = r.shape[0], n_knots = knots.shape[0]
    if n_members == 0 or n == 0 or n_knots == 0:
        out[:] = 0.0
        return
    cdef Py_ssize_t part, at_once = max(1, min(n_members, SKVBEM_AT_ONCE // n))
    cdef double[:, ::1] room = np.empty((5, at_once * n))
    # ln Gamma(k + r) / Gamma(r) is a sum of k logarithms: each has the weights of all whole knots beyond it
    cdef double[:, ::1] beyond = np.array(weights)
    with nogil:
        for m in range(n_members):
            for k in range(n_small - 1, 0, -1):
                beyond[m, k - 1] += beyond[m, k]
        for part in range((n_members + at_once - 1) // at_once):
            first = part * at_once
            some = min(at_once, n_members - first)
            for m in range(first, first + some):
                for k in range(n):
                    out[m, k] = 0.0
            for k in range(n_small):
                if not _any(weights, first, some, k, n_small):
                    break
                skvbem_logs(some * n, <double> k, &r[first, 0], &room[0, 0])
                skvbem_add_weighted(some, n, &beyond[first, k], n_knots, &room[0, 0], &out[first, 0])
            if n_small < n_knots:
                skvbem_log_gamma_digamma(some * n, &r[first, 0], &room[1, 0], &room[2, 0])
            for k in range(n_small, n_knots):
                if not _any(weights, first, some, k, k + 1):
                    continue
                skvbem_rise(some * n, knots[k], &r[first, 0], &room[1, 0], &room[3, 0], &room[0, 0])
                skvbem_add_weighted(some, n, &weights[first, k], n_knots, &room[0, 0], &out[first, 0])


def add_masses(const double[:, ::1] t, const double[:, ::1] r, const double[:, ::1] cells, const double[::1] weight,
               const double[::1] unit, double[:, ::1] out):
    """Add to sums over knots the rest of ln of the integral over the probability, nats.

    Parameters
    ----------
    t, r : (n_members, n_nodes) IN
        Logarithms of sizes, and sizes.
    cells : (n_members, n_cells) IN
        The first four are used: prior, measure, number and sum of the counts.
    weight, unit : (n_members,) IN
        Of the prior of each member.
    out : (n_members, n_nodes) IN, OUT
    """
    cdef Py_ssize_t m, n = t.shape[1]
    if n == 0:
        return
    cdef double[::1] room = np.empty(6 * n)
    cdef skvbem_size size
    with nogil:
        for m in range(t.shape[0]):
            size = skvbem_size_of(&cells[m, 0], weight[m], unit[m])
            skvbem_add_mass(&size, n, &t[m, 0], &r[m, 0], &room[0], &out[m, 0])


def integrate(const double[::1] guess, const double[:, ::1] cells, const double[::1] weight, const double[::1] unit,
              const double[:, :, ::1] table, double start, double width, const double[::1] places,
              const double[:, ::1] around, const double[::1] limits, const intptr_t[::1] numbers,
              double[:, ::1] t, double[:, ::1] share, double[:, ::1] found):
    """Fill nodes of integrals over ln r, one for each member.

    Parameters
    ----------
    guess : (n_members,) IN
        Logarithms that may be near modes.
    cells : (n_members, 4 + n_knots) IN
        Prior, measure, number and sum of the counts, and weights at knots.
    weight, unit : (n_members,) IN
        Of the prior of each member.
    table : (n_panels, n_knots, 16) IN
        Coefficients by Chebyshev's polynomials of ln Gamma(knot + r) - ln Gamma(r) on each panel of ln r.
    start, width : IN
        Where the first panel begins, and the width of each.
    places : (8,) IN
        Seven logarithms at none of which a function is larger than at its mode, the last one twice.
    around : (n_knots, 16) IN
        ln Gamma(knot + r) - ln Gamma(r) there, in the first cells.
    limits : (6,) IN
    numbers : (3,) IN
        As of `skvbem_trapezoid`: steps of Newton's, and nodes of narrow and of wide integrals.
    t, share : (n_members, n_wide) OUT
    found : (5, n_members) OUT
        ln of the integral, first and spacing of u, center and scale of the map from u to ln r.
    """
    cdef Py_ssize_t m, i
    cdef intptr_t n_panels = table.shape[0], n_wide = numbers[2]
    cdef double[::1] room = np.empty(n_panels * SKVBEM_COEFFICIENTS + n_wide + 9 * (max(n_wide, 16) + 8))
    cdef intptr_t[::1] known = np.empty(n_panels, dtype=np.intp)
    cdef char[::1] is_known = np.zeros(n_panels, dtype=np.int8)
    cdef skvbem_trapezoid tuning
    cdef skvbem_integral result
    cdef skvbem_member member
    cdef skvbem_function function
    tuning.reach, tuning.fall, tuning.widest, tuning.first_scale = limits[0], limits[1], limits[2], limits[3]
    tuning.narrow, tuning.narrow_ends = limits[4], limits[5]
    tuning.n_newton, tuning.n_narrow, tuning.n_wide = numbers[0], numbers[1], n_wide
    member.n_knots, member.n_panels = cells.shape[1] - 4, n_panels
    member.places, member.around = &places[0], &around[0, 0]
    function.at, function.around = skvbem_log_masses, skvbem_log_masses_around
    member.start, member.width, member.table = start, width, &table[0, 0, 0]
    member.sums, member.known, member.is_known = &room[0], &known[0], &is_known[0]
    member.scratch = &room[n_panels * SKVBEM_COEFFICIENTS + n_wide]
    member.n_known = 0
    with nogil:
        for m in range(guess.shape[0]):
            for i in range(member.n_known):
                is_known[known[i]] = 0
            member.n_known = 0
            member.of = skvbem_size_of(&cells[m, 0], weight[m], unit[m])
            result = skvbem_integrate(function, &member, &tuning, guess[m], &t[m, 0], &share[m, 0],
                                      &room[n_panels * SKVBEM_COEFFICIENTS])
            found[0, m], found[1, m], found[2, m] = result.log_total, result.first, result.spacing
            found[3, m], found[4, m] = result.center, result.scale


def mean_natural(const double[:, ::1] t, const double[:, ::1] share, const double[:, ::1] cells,
                 const double[::1] weight, const double[::1] unit, const double[:, :, ::1] table, double start,
                 double width, double[:, ::1] out):
    """Fill expected natural parameters of members.

    Parameters
    ----------
    t, share : (n_members, n_nodes) IN
    cells, weight, unit, table, start, width : IN
        As of `integrate`.
    out : (n_members, 4 + n_knots) OUT
    """
    cdef Py_ssize_t m
    cdef intptr_t n = t.shape[1]
    cdef double[::1] room = np.empty(9 * n)
    cdef skvbem_member member
    member.n_knots, member.n_panels = cells.shape[1] - 4, table.shape[0]
    member.start, member.width, member.table, member.scratch = start, width, &table[0, 0, 0], &room[0]
    with nogil:
        for m in range(t.shape[0]):
            member.of = skvbem_size_of(&cells[m, 0], weight[m], unit[m])
            skvbem_mean_natural(&member, n, &t[m, 0], &share[m, 0], &out[m, 0])
