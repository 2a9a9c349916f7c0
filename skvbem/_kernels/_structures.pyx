"""Scores of families, draws of structures, and draws of the tables of the families drawn, all chains as lanes."""

from libc.math cimport exp, lgamma, log
from libc.stdint cimport intptr_t, uint64_t
from libc.stdlib cimport free

from skvbem._kernels._memory cimport room_for


cdef extern from "_lanes.h" nogil:
    ctypedef struct skvbem_stream:
        pass
    skvbem_stream skvbem_load(const uint64_t* streams, intptr_t lane, intptr_t n_lanes)
    void skvbem_store(const skvbem_stream* stream, uint64_t* streams, intptr_t lane, intptr_t n_lanes)
    void skvbem_prepare_normal()
    double skvbem_gamma(skvbem_stream* stream, double a, double* lift)
    double skvbem_log_rising(double a, double n, double log_gamma_a, double log_gamma_sum)
    void skvbem_uniforms(uint64_t* streams, intptr_t n_lanes, double* uniform)
    void skvbem_sum_families(intptr_t n_graphs, intptr_t n_nodes, intptr_t n_lanes, const long long* family,
                             const double* log_prior, const double* scores, double* log_p)
    void skvbem_shares(intptr_t n_cells, intptr_t n_lanes, double* log_p, double* largest, double* total)


skvbem_prepare_normal()


def family_scores(const long long[::1] first_row, const long long[::1] starts, const double[::1] concentration,
                  const long long[::1] tabled, const double[:, ::1] table, const double[:, ::1] counts,
                  double[:, ::1] scores):
    """Fill ln of the Bayesian Dirichlet scores of families: rising factorials of cells less those of rows.

    Parameters
    ----------
    first_row : (n_families + 1,) IN, first Dirichlet row of each family
    starts : (n_rows + 1,) IN, first cell of each row
    concentration : (n_cells + n_rows,) IN, of cells and then of rows
    tabled : (n_cells + n_rows,) IN, rows of `table`
    table : (n_tabled, n_counts) IN, ln of the rising factorials of concentrations by the counts 0, 1, ...
    counts : (n_cells, n_lanes) IN
    scores : (n_families, n_lanes) OUT, nats
    """
    cdef intptr_t n_lanes = counts.shape[1], n_cells = counts.shape[0], family, row, cell, lane
    cdef double* mass = room_for(n_lanes)
    with nogil:
        for family in range(scores.shape[0]):
            for lane in range(n_lanes):
                scores[family, lane] = 0.0
            for row in range(first_row[family], first_row[family + 1]):
                for lane in range(n_lanes):
                    mass[lane] = 0.0
                for cell in range(starts[row], starts[row + 1]):
                    add_log_rising(n_lanes, 1.0, concentration[cell], table[tabled[cell]], &counts[cell, 0],
                                   &scores[family, 0])
                    for lane in range(n_lanes):
                        mass[lane] += counts[cell, lane]
                add_log_rising(n_lanes, -1.0, concentration[n_cells + row], table[tabled[n_cells + row]], mass,
                               &scores[family, 0])
        free(mass)


cdef void add_log_rising(intptr_t n_lanes, double sign, double a, const double[::1] table, const double* count,
                         double* total) noexcept nogil:
    """total += sign x ln Gamma(a + count) - ln Gamma(a), looked up where a table has it."""
    cdef intptr_t lane
    cdef double most = table.shape[0]
    for lane in range(n_lanes):
        if count[lane] < most:
            total[lane] += sign * table[<intptr_t> count[lane]]
        else:
            total[lane] += sign * skvbem_log_rising(a, count[lane], lgamma(a), lgamma(a + count[lane]))


def draw_structures(const long long[:, ::1] family, const double[::1] log_prior, const double[:, ::1] scores,
                    uint64_t[:, ::1] streams, double[:, ::1] total, long long[::1] drawn):
    """Draw a structure in each lane, and add the probabilities of all to a total.

    Parameters
    ----------
    family : (n_structures, n_nodes) IN, rows of `scores`
    log_prior : (n_structures,) IN
    scores : (n_families, n_lanes) IN, nats
    streams : (4, n_lanes) IN and OUT
    total : (n_structures, n_lanes) IN and OUT
    drawn : (n_lanes,) OUT
    """
    cdef intptr_t n_structures = family.shape[0], n_lanes = scores.shape[1], k, lane
    cdef double* p = room_for((n_structures + 3) * n_lanes)
    cdef double* sums = p + n_structures * n_lanes
    cdef double* uniform = sums + n_lanes
    cdef double* reached = uniform + n_lanes
    with nogil:
        skvbem_sum_families(n_structures, family.shape[1], n_lanes, &family[0, 0], &log_prior[0], &scores[0, 0], p)
        skvbem_shares(n_structures, n_lanes, p, reached, sums)
        skvbem_uniforms(&streams[0, 0], n_lanes, uniform)
        for lane in range(n_lanes):
            reached[lane] = 0.0
            drawn[lane] = 0
        for k in range(n_structures):
            for lane in range(n_lanes):
                total[k, lane] += p[k * n_lanes + lane]
                reached[lane] += p[k * n_lanes + lane]
                drawn[lane] += reached[lane] < uniform[lane]
        for lane in range(n_lanes):
            if drawn[lane] >= n_structures:
                drawn[lane] = n_structures - 1
        free(p)


def draw_tables(const long long[::1] first_cell, const long long[::1] union_first, const long long[::1] cell_starts,
                const long long[::1] cells, const long long[::1] cardinality, const long long[:, ::1] family,
                const long long[::1] drawn, const double[::1] prior, const double[:, ::1] counts,
                uint64_t[:, ::1] streams, double[:, ::1] log_point):
    """Fill ln theta of the families of the structure drawn in each lane, as tables of the network with all edges.

    Parameters
    ----------
    first_cell : (n_families + 1,) IN, first cell of each family's table
    union_first : (n_nodes + 1,) IN, first cell of each node in the network with all edges
    cell_starts : (n_families,) IN, where the cells of each family in the network with all edges begin
    cells : (n,) IN, for each family the cell of its table that each cell of its node has, from 0 on
    cardinality : (n_nodes,) IN, states of each node, cells of a row of its tables
    family : (n_structures, n_nodes) IN
    drawn : (n_lanes,) IN, structures
    prior : (n_family_cells,) IN, concentrations
    counts : (n_family_cells, n_lanes) IN
    streams : (4, n_lanes) IN and OUT
    log_point : (n_union_cells, n_lanes) OUT
    """
    cdef intptr_t n_lanes = counts.shape[1], n_nodes = cardinality.shape[0], lane, node, f, first, row, at, k, size
    cdef double largest, norm, lift
    cdef double* theta = room_for(log_point.shape[0])
    cdef skvbem_stream stream
    with nogil:
        for lane in range(n_lanes):
            stream = skvbem_load(&streams[0, 0], lane, n_lanes)
            for node in range(n_nodes):
                f, size = family[drawn[lane], node], cardinality[node]
                first = first_cell[f]
                for row in range((first_cell[f + 1] - first) // size):
                    at, largest = row * size, -1e308
                    for k in range(at, at + size):
                        theta[k] = log(skvbem_gamma(&stream, prior[first + k] + counts[first + k, lane], &lift))
                        theta[k] += lift
                        if theta[k] > largest:
                            largest = theta[k]
                    norm = 0.0
                    for k in range(at, at + size):
                        norm += exp(theta[k] - largest)
                    largest += log(norm)
                    for k in range(at, at + size):
                        theta[k] -= largest
                for k in range(union_first[node + 1] - union_first[node]):
                    log_point[union_first[node] + k, lane] = theta[cells[cell_starts[f] + k]]
            skvbem_store(&stream, &streams[0, 0], lane, n_lanes)
        free(theta)
