"""Gibbs and Metropolis chains along a path of densities, all chains as lanes; ratios of densities for annealed weights.

A chain's state is theta; its Gibbs kernel at one density is x given theta, then theta given x. Ratios have the hidden
variables summed out: they are of f(theta) = sum over x. The paths interpolate natural parameters and statistics, so
that any two members of a conjugate-exponential family can be their ends; at inverse temperature t

    natural parameters of x given theta     (1 - t) anchor + t ln theta,
    concentrations of theta given x         prior + (1 - t) anchor_counts + t counts(x).

Streams are as in `skvbem._kernels._random`.
"""

from libc.math cimport log
from libc.stdint cimport intptr_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from skvbem._kernels._memory cimport room_for
from skvbem._kernels._workspace cimport Workspace


cdef extern from "_lanes.h" nogil:
    void skvbem_prepare_normal()
    void skvbem_mix(intptr_t n, double t, const double* anchor, const double* log_point, double* natural,
                    double* exp_natural)
    void skvbem_uniforms(uint64_t* streams, intptr_t n_lanes, double* uniform)
    void skvbem_log_dirichlet(intptr_t n_rows, const long long* starts, intptr_t n_lanes, double* concentration,
                              uint64_t* streams, double* log_point, double* scratch)
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)


skvbem_prepare_normal()


cdef void evaluate(Workspace w, double t, const double* anchor, const double* log_point,
                   uint64_t* streams, double* counts, double* log_z) noexcept nogil:
    """ln Z of x given theta at t, and (with streams) counts of x drawn there."""
    cdef Py_ssize_t block
    skvbem_mix(w.program.n_cells * w.n_lanes, t, anchor, log_point, &w.natural_[0, 0], &w.exp_natural[0, 0])
    w.start()
    for block in range(w.program.n_blocks):
        w.run_block(block, streams, streams != NULL)
    w.total(log_z)
    if streams != NULL:
        w.gather(counts)


def log_normalizers(Workspace workspace, const double[:, ::1] anchor, const double[::1] temperatures,
                    const double[:, ::1] log_point, double[:, ::1] log_z):
    """Fill ln Z of x given theta at each inverse temperature.

    Parameters
    ----------
    anchor : (n_cells, n_lanes) IN
    temperatures : (n_temperatures,) IN
    log_point : (n_cells, n_lanes) IN, ln theta
    log_z : (n_temperatures, n_lanes) OUT
    """
    cdef Py_ssize_t k
    with nogil:
        for k in range(temperatures.shape[0]):
            evaluate(workspace, temperatures[k], &anchor[0, 0], &log_point[0, 0], NULL, NULL, &log_z[k, 0])


def anneal(Workspace workspace, const long long[::1] starts, const double[::1] prior,
           const double[:, ::1] anchor_counts, const double[:, ::1] anchor, const double[::1] temperatures,
           uint64_t[:, ::1] streams, double[:, ::1] log_point, double[:, ::1] counts, double[:, ::1] trace):
    """Gibbs chains, each along its own path; between equal temperatures, sweeps that leave their density as it is.

    Parameters
    ----------
    starts : (n_rows + 1,) IN, first cell of each Dirichlet row
    prior : (n_cells,) IN
    anchor_counts, anchor : (n_cells, n_lanes) IN
    temperatures : (n_steps + 1,) IN, inverse temperatures in the order visited; the chains stand at the first
    streams : (4, n_lanes) IN and OUT
    log_point : (n_cells, n_lanes) IN and OUT, ln theta
    counts : (n_cells, n_lanes) OUT, statistics of the last x drawn
    trace : (n_steps, n_lanes) OUT, ln Z(theta) - (1 - t) anchor_counts ln theta at the next temperature less the same
        at this one: ln of the ratio of densities but for a constant times the step
    """
    cdef Py_ssize_t n_lanes = workspace.n_lanes, n_cells = workspace.program.n_cells
    cdef Py_ssize_t step, lane, cell
    cdef double here, there
    cdef double* concentration = room_for((n_cells + 4) * n_lanes)
    cdef double* before = concentration + n_cells * n_lanes
    cdef double* after = before + n_lanes
    cdef double* scratch = after + n_lanes
    with nogil:
        for step in range(temperatures.shape[0] - 1):
            here, there = temperatures[step], temperatures[step + 1]
            if here != there:
                evaluate(workspace, here, &anchor[0, 0], &log_point[0, 0], NULL, NULL, before)
            evaluate(workspace, there, &anchor[0, 0], &log_point[0, 0], &streams[0, 0], &counts[0, 0], after)
            for lane in range(n_lanes):
                trace[step, lane] = after[lane] - before[lane] if here != there else 0.0
            for cell in range(n_cells):
                for lane in range(n_lanes):
                    trace[step, lane] -= (there - here) * anchor_counts[cell, lane] * log_point[cell, lane]
                    concentration[cell * n_lanes + lane] = (
                        prior[cell] + (1.0 - there) * anchor_counts[cell, lane] + there * counts[cell, lane])
            skvbem_log_dirichlet(starts.shape[0] - 1, &starts[0], n_lanes, concentration, &streams[0, 0],
                                 &log_point[0, 0], scratch)
        free(concentration)


cdef void proposal_concentration(Py_ssize_t n_cells, Py_ssize_t n_lanes, double strength, const double* prior,
                                 const double* point, double* concentration) noexcept nogil:
    cdef Py_ssize_t cell, lane
    cdef double x
    for cell in range(n_cells):
        for lane in range(n_lanes):
            x = strength * point[cell * n_lanes + lane]
            concentration[cell * n_lanes + lane] = x if x > prior[cell] else prior[cell]


cdef void add_log_density(const long long[::1] starts, Py_ssize_t n_lanes, double sign, const double* concentration,
                          const double* log_point, double* row_sums, double* log_gamma, double* unused,
                          double* total) noexcept nogil:
    """total += sign x log Dirichlet density; `log_gamma` and `unused` are scratch of n_cells x n_lanes."""
    cdef Py_ssize_t row, cell, lane, n_rows = starts.shape[0] - 1, n_cells = starts[n_rows]
    skvbem_log_gamma_digamma(n_cells * n_lanes, concentration, log_gamma, unused)
    for row in range(n_rows):
        for lane in range(n_lanes):
            row_sums[row * n_lanes + lane] = 0.0
        for cell in range(starts[row], starts[row + 1]):
            for lane in range(n_lanes):
                row_sums[row * n_lanes + lane] += concentration[cell * n_lanes + lane]
    for cell in range(n_cells):
        for lane in range(n_lanes):
            total[lane] += sign * ((concentration[cell * n_lanes + lane] - 1.0) * log_point[cell * n_lanes + lane]
                                   - log_gamma[cell * n_lanes + lane])
    skvbem_log_gamma_digamma(n_rows * n_lanes, row_sums, log_gamma, unused)
    for row in range(n_rows):
        for lane in range(n_lanes):
            total[lane] += sign * log_gamma[row * n_lanes + lane]


def metropolis(Workspace workspace, const long long[::1] starts, const double[::1] prior,
               const double[::1] temperatures, const double[::1] strengths, uint64_t[:, ::1] streams,
               double[:, ::1] log_point, double[::1] log_likelihood, double[:, ::1] trace,
               unsigned char[:, ::1] accepted):
    """Metropolis-Hastings chains along p(theta) p(y | theta)^t: all rows proposed at once from Dirichlets about theta.

    Parameters
    ----------
    starts : (n_rows + 1,) IN, first cell of each Dirichlet row
    prior : (n_cells,) IN
    temperatures : (n_steps + 1,) IN, inverse temperatures in the order visited
    strengths : (n_steps,) IN; the proposal is Dir(max(strength theta, prior)) in every row: the prior itself for 0
    streams : (4, n_lanes) IN and OUT
    log_point : (n_cells, n_lanes) IN and OUT, ln theta
    log_likelihood : (n_lanes,) IN and OUT, of log_point
    trace : (n_steps, n_lanes) OUT, ln of each step's ratio of densities
    accepted : (n_steps, n_lanes) OUT, whether the proposal was
    """
    cdef Py_ssize_t n_lanes = workspace.n_lanes, n_cells = workspace.program.n_cells, size = n_cells * n_lanes
    cdef Py_ssize_t step, lane, cell
    cdef double there
    cdef double* point = room_for(7 * size + 5 * n_lanes)
    cdef double* proposal = point + size
    cdef double* concentration = proposal + size
    cdef double* log_gamma = concentration + size
    cdef double* unused = log_gamma + size
    cdef double* row_sums = unused + size
    cdef double* spent = row_sums + size
    cdef double* proposed = spent + size
    cdef double* log_odds = proposed + n_lanes
    cdef double* uniform = log_odds + n_lanes
    cdef double* scratch = uniform + n_lanes
    with nogil:
        skvbem_mix(size, 1.0, &log_point[0, 0], &log_point[0, 0], spent, point)
        for step in range(strengths.shape[0]):
            there = temperatures[step + 1]
            for lane in range(n_lanes):
                trace[step, lane] = (there - temperatures[step]) * log_likelihood[lane]
                log_odds[lane] = 0.0
            proposal_concentration(n_cells, n_lanes, strengths[step], &prior[0], point, concentration)
            memcpy(spent, concentration, size * sizeof(double))
            skvbem_log_dirichlet(starts.shape[0] - 1, &starts[0], n_lanes, spent, &streams[0, 0], proposal, scratch)
            add_log_density(starts, n_lanes, -1.0, concentration, proposal, row_sums, log_gamma, unused, log_odds)
            evaluate(workspace, 1.0, proposal, proposal, NULL, NULL, proposed)
            proposal_concentration(n_cells, n_lanes, strengths[step], &prior[0], &workspace.exp_natural[0, 0],
                                   concentration)
            add_log_density(starts, n_lanes, 1.0, concentration, &log_point[0, 0], row_sums, log_gamma, unused,
                            log_odds)
            for cell in range(n_cells):
                for lane in range(n_lanes):
                    log_odds[lane] += (prior[cell] - 1.0) * (proposal[cell * n_lanes + lane] - log_point[cell, lane])
            skvbem_uniforms(&streams[0, 0], n_lanes, uniform)
            for lane in range(n_lanes):
                log_odds[lane] += there * (proposed[lane] - log_likelihood[lane])
                accepted[step, lane] = log(uniform[lane]) < log_odds[lane]
                if accepted[step, lane]:
                    log_likelihood[lane] = proposed[lane]
                    for cell in range(n_cells):
                        log_point[cell, lane] = proposal[cell * n_lanes + lane]
                        point[cell * n_lanes + lane] = workspace.exp_natural[cell, lane]
        free(point)


def draw_latent(Workspace workspace, const double[:, ::1] natural, uint64_t[:, ::1] streams, double[:, ::1] counts):
    """Fill statistics of hidden states drawn at natural parameters.

    Parameters
    ----------
    natural : (n_cells, n_lanes) IN
    streams : (4, n_lanes) IN and OUT
    counts : (n_cells, n_lanes) OUT
    """
    cdef Py_ssize_t block
    workspace.given(natural)
    with nogil:
        for block in range(workspace.program.n_blocks):
            workspace.run_block(block, &streams[0, 0], True)
        workspace.gather(&counts[0, 0])
