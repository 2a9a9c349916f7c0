"""The M step of a ragged Dirichlet block: natural parameters of q(theta) and what q(theta) costs.

A block is all the tables of a network: cells in one flat array, cut into rows (one distribution each) by `starts`.
Lanes, the trailing axis, are restarts. From counts N and the offset a of the form of q(theta):

- density (VB):  q = Dir(a + N), a the prior;  natural = psi(a + N) - psi(row sum);  penalty = -KL(q || prior)
- point (MAP, ML):  theta = (a + N) / row sum, a the prior or nothing;  natural = ln theta;  penalty = sum a ln theta

What is not here: the constant -ln B(prior) of a MAP penalty, which does not depend on N.
"""

from libc.math cimport log
from libc.stdint cimport intptr_t


cdef extern from "_lanes.h" nogil:
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    void skvbem_normalize_row(intptr_t n_cells, intptr_t n_lanes, const double* of_row, double lowest, double* natural,
                              double* exp_natural)
    double skvbem_log_rising(double a, double n, double log_gamma_a, double log_gamma_sum)


# psi(x) leaves the doubles below x ~ 1e-308: natural parameters stop here, where exp is long since 0.
cdef double LOWEST = -1e300


cdef void natural_and_penalty(
        Py_ssize_t n_rows, Py_ssize_t n_lanes, const long long* starts, const double* offset,
        const double* log_gamma_offset, const double* row_offset, const double* log_gamma_row_offset, bint density,
        const double* counts, double* scratch, double* natural, double* exp_natural,
        double* penalty) noexcept nogil:
    """`scratch` holds (n_cells + 3 n_rows) x n_lanes doubles."""
    cdef Py_ssize_t row, lane, cell, at, n_cells = starts[n_rows]
    cdef double total, value
    cdef double* log_gamma = scratch
    cdef double* row_total = scratch + n_cells * n_lanes
    cdef double* row_log_gamma = row_total + n_rows * n_lanes
    cdef double* row_digamma = row_log_gamma + n_rows * n_lanes
    for lane in range(n_lanes):
        penalty[lane] = 0.0
    for row in range(n_rows):
        for lane in range(n_lanes):
            row_total[row * n_lanes + lane] = 0.0
        for cell in range(starts[row], starts[row + 1]):
            for lane in range(n_lanes):
                row_total[row * n_lanes + lane] += counts[cell * n_lanes + lane]
    if not density:
        for row in range(n_rows):
            for cell in range(starts[row], starts[row + 1]):
                for lane in range(n_lanes):
                    at = cell * n_lanes + lane
                    total = row_offset[row] + row_total[row * n_lanes + lane]
                    # a row without mass says nothing: uniform
                    value = ((offset[cell] + counts[at]) / total if total > 0.0
                             else 1.0 / <double>(starts[row + 1] - starts[row]))
                    exp_natural[at] = value
                    natural[at] = log(value)
                    if offset[cell] != 0.0:
                        penalty[lane] += offset[cell] * natural[at]
        return
    for row in range(n_rows):  # penalties of the rows want the mass alone
        for lane in range(n_lanes):
            row_log_gamma[row * n_lanes + lane] = row_offset[row] + row_total[row * n_lanes + lane]
    for row in range(n_rows * n_lanes):
        exp_natural[row] = row_log_gamma[row]
    skvbem_log_gamma_digamma(n_rows * n_lanes, exp_natural, row_log_gamma, row_digamma)
    for row in range(n_rows):
        for lane in range(n_lanes):
            at = row * n_lanes + lane
            penalty[lane] += row_total[at] * row_digamma[at] - skvbem_log_rising(
                row_offset[row], row_total[at], log_gamma_row_offset[row], row_log_gamma[at])
    for cell in range(n_cells):
        for lane in range(n_lanes):
            exp_natural[cell * n_lanes + lane] = offset[cell] + counts[cell * n_lanes + lane]
    skvbem_log_gamma_digamma(n_cells * n_lanes, exp_natural, log_gamma, natural)
    for cell in range(n_cells):
        if offset[cell] < 32.0:
            for lane in range(n_lanes):
                at = cell * n_lanes + lane
                penalty[lane] += (log_gamma[at] - log_gamma_offset[cell]) - counts[at] * natural[at]
        else:
            for lane in range(n_lanes):
                at = cell * n_lanes + lane
                penalty[lane] += skvbem_log_rising(offset[cell], counts[at], 0.0, 0.0) - counts[at] * natural[at]
    for row in range(n_rows):
        at = starts[row] * n_lanes
        skvbem_normalize_row(starts[row + 1] - starts[row], n_lanes, row_digamma + row * n_lanes, LOWEST, natural + at,
                             exp_natural + at)
