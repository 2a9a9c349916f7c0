"""The memory of a run of a contraction, and its phases: from natural parameters or counts to expected counts and ln Z.

What one pass over contexts does stands in `skvbem._kernels._contraction`.
"""

from libc.math cimport exp
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from skvbem._kernels._contraction cimport Contraction, row_factors
from skvbem._kernels._dirichlet cimport natural_and_penalty

import numpy as np


cdef class Factors:
    """Where the arrays of the factors of some contexts of one plan stand; no pointers if the plan has none."""

    cdef double** tables
    cdef list arrays
    cdef Py_ssize_t plan

    def __cinit__(self, Contraction program, Py_ssize_t block, factors, Py_ssize_t n_lanes, Py_ssize_t first,
                  Py_ssize_t last, Py_ssize_t at, Py_ssize_t n_rows):
        cdef double[:, :, ::1] array
        cdef Py_ssize_t plan = program.block_plan[block], f, n_factors
        while first >= program.plan_context[plan + 1]:
            plan += 1
        n_factors = program.plan_factor[plan + 1] - program.plan_factor[plan]
        self.tables, self.arrays, self.plan = NULL, list(factors), plan
        shapes = [(n_lanes, program.factor_cells[program.plan_factor[plan] + f], n_rows) for f in range(n_factors)]
        if [each.shape for each in self.arrays] != shapes or (
                n_factors > 0 and not (last <= program.plan_context[plan + 1] and 0 <= at <= n_rows - (last - first))):
            raise ValueError(f"Contexts {first} to {last} need factors of the shapes {shapes}.")
        if n_factors == 0 or last == first:
            return
        self.tables = <double**> malloc(n_factors * sizeof(double*))
        for f in range(n_factors):
            array = self.arrays[f]
            self.tables[f] = &array[0, 0, at]

    def __dealloc__(self):
        free(self.tables)


cdef class MStep:
    """What an M step needs besides counts: the form of q(theta).

    Parameters
    ----------
    starts : (n_rows + 1,), first cell of each Dirichlet row
    offset : (2, n_cells), the offset of the form and its ln Gamma
    row_offset : (2, n_rows), the same of the row sums
    density : whether q(theta) is a density
    """

    def __init__(self, const long long[::1] starts, const double[:, ::1] offset, const double[:, ::1] row_offset,
                 bint density):
        self.starts, self.offset, self.row_offset, self.density = starts, offset, row_offset, density


cdef class Workspace:
    """The memory of a run: parameters, tables and partial results of one program for a number of lanes.

    Phases, in order: `natural` (or `given`), `block` for every block in any order and thread, `collect`.
    """

    def __init__(self, Contraction program, Py_ssize_t n_lanes):
        self.program = program
        self.n_lanes = n_lanes
        # one more than there are parameters: that of families which a context leaves out
        self.natural_ = np.zeros((program.n_cells + 1, n_lanes))
        self.exp_natural = np.ones((program.n_cells + 1, n_lanes))
        self.tables = np.empty((max(program.n_table_cells, 1), n_lanes))
        self.expected = np.empty((max(program.block_at[program.n_blocks], 1), n_lanes))
        self.block_log_z = np.empty((max(program.n_blocks, 1), n_lanes))
        self.penalty = np.zeros(n_lanes)
        self.log_scale = np.zeros(n_lanes)
        self.scratch = np.empty(4 * program.n_cells * n_lanes)

    cdef void start(self) noexcept nogil:
        """Tables and the ln Z of complete families from the natural parameters in place."""
        cdef Py_ssize_t cell, lane
        cdef double count
        for lane in range(self.n_lanes):
            self.log_scale[lane] = 0.0
        for cell in range(self.program.n_cells):
            count = self.program.complete_counts[cell]
            if count > 0.0:
                for lane in range(self.n_lanes):
                    self.log_scale[lane] += count * self.natural_[cell, lane]
        self.program.make_tables(self.n_lanes, &self.exp_natural[0, 0], &self.tables[0, 0], &self.log_scale[0])

    def given(self, const double[:, ::1] natural):
        """Start from natural parameters, (n_cells, n_lanes)."""
        cdef Py_ssize_t cell, lane
        with nogil:
            for cell in range(natural.shape[0]):
                for lane in range(self.n_lanes):
                    self.natural_[cell, lane] = natural[cell, lane]
                    self.exp_natural[cell, lane] = exp(natural[cell, lane])
            for lane in range(self.n_lanes):
                self.penalty[lane] = 0.0
            self.start()

    cdef void from_counts(self, MStep m_step, const double* counts) noexcept nogil:
        natural_and_penalty(
            m_step.starts.shape[0] - 1, self.n_lanes, &m_step.starts[0], &m_step.offset[0, 0], &m_step.offset[1, 0],
            &m_step.row_offset[0, 0], &m_step.row_offset[1, 0], m_step.density, counts, &self.scratch[0],
            &self.natural_[0, 0], &self.exp_natural[0, 0], &self.penalty[0])
        self.start()

    cdef void begin_block(self, Py_ssize_t block) noexcept nogil:
        """No counts yet of the tables that a block touches."""
        cdef Py_ssize_t size = self.program.block_at[block + 1] - self.program.block_at[block]
        memset(&self.expected[0, 0] + self.program.block_at[block] * self.n_lanes, 0,
               size * self.n_lanes * sizeof(double))

    cdef void run_block(self, Py_ssize_t block, uint64_t* streams, bint counted) noexcept nogil:
        cdef double* expected = &self.expected[0, 0] + self.program.block_at[block] * self.n_lanes
        self.begin_block(block)
        self.program.run_contexts(
            block, self.n_lanes, &self.natural_[0, 0], &self.exp_natural[0, 0], &self.tables[0, 0], NULL, streams,
            expected if counted else NULL, &self.block_log_z[block, 0], NULL, NULL, self.program.block_context[block],
            self.program.block_context[block + 1])

    cdef void total(self, double* objective) noexcept nogil:
        """ln Z + penalty of each lane, blocks added in order."""
        cdef Py_ssize_t block, lane
        for lane in range(self.n_lanes):
            objective[lane] = self.log_scale[lane] + self.penalty[lane]
        for block in range(self.program.n_blocks):
            for lane in range(self.n_lanes):
                objective[lane] += self.block_log_z[block, lane]

    cdef void gather(self, double* counts) noexcept nogil:
        """Counts of all families, expected or drawn."""
        cdef Py_ssize_t block, cell, lane
        for cell in range(self.program.n_cells):
            for lane in range(self.n_lanes):
                counts[cell * self.n_lanes + lane] = self.program.complete_counts[cell]
        for block in range(self.program.n_blocks):
            self.program.add_counts(block, self.n_lanes, &self.expected[0, 0]
                                    + self.program.block_at[block] * self.n_lanes, counts)

    def from_form(self, MStep m_step, const double[:, ::1] counts):
        """Start from counts (n_cells, n_lanes) through the form of q(theta)."""
        with nogil:
            self.from_counts(m_step, &counts[0, 0])

    def block(self, Py_ssize_t block):
        """Run one block of contexts; blocks are independent."""
        with nogil:
            self.run_block(block, NULL, True)

    def rows(self, Py_ssize_t block, Py_ssize_t first, Py_ssize_t last, factors, uint64_t[:, ::1] streams=None,
             Py_ssize_t at=0, n_rows=None):
        """Run some contexts of a block, by and by all of them in order; so blocks run whose plan has factors.

        Parameters
        ----------
        block : whose contexts are all of one plan, if that has factors
        first, last : the contexts
        factors : arrays (n_lanes, cells of the factor, n_rows), one of each factor of the plan; logarithms IN,
            expected counts of the cells OUT
        streams : (4, n_lanes) IN and OUT; with them counts are of hidden states drawn
        at, n_rows : the row of the arrays that is of the first context, and how many they have; as many as contexts
            by default
        """
        cdef Py_ssize_t lane, plan, n_all = last - first if n_rows is None else n_rows
        cdef row_factors given
        cdef double* log_z
        cdef double* expected = &self.expected[0, 0] + self.program.block_at[block] * self.n_lanes
        if first == self.program.block_context[block]:
            self.begin_block(block)
            for lane in range(self.n_lanes):
                self.block_log_z[block, lane] = 0.0
        tables = Factors(self.program, block, factors, self.n_lanes, first, last, at, n_all)
        given.tables, given.n_rows, given.first_context = (<Factors> tables).tables, n_all, first
        plan = (<Factors> tables).plan
        with nogil:
            log_z = <double*> malloc(self.n_lanes * sizeof(double))
            if given.tables != NULL and streams is None:
                self.program.run_rows(
                    block, plan, self.n_lanes, &self.natural_[0, 0], &self.exp_natural[0, 0], &self.tables[0, 0],
                    &given, expected, log_z, first, last)
            else:
                self.program.run_contexts(
                    block, self.n_lanes, &self.natural_[0, 0], &self.exp_natural[0, 0], &self.tables[0, 0],
                    &given if given.tables != NULL else NULL, &streams[0, 0] if streams is not None else NULL,
                    expected, log_z, NULL, NULL, first, last)
            for lane in range(self.n_lanes):
                self.block_log_z[block, lane] += log_z[lane]
            free(log_z)

    def collect(self, double[:, ::1] counts, double[::1] objective):
        """Fill expected counts (n_cells, n_lanes) and ln Z + penalty (n_lanes,), blocks added in order."""
        with nogil:
            self.gather(&counts[0, 0])
            self.total(&objective[0])

    def advance(self, MStep m_step, double[:, ::1] counts, double[:, ::1] trace):
        """Full steps (M then E), as many as `trace` has rows.

        Parameters
        ----------
        m_step : MStep IN
        counts : (n_cells, n_lanes) IN and OUT
        trace : (n_steps, n_lanes) OUT, the objective at the counts each step started from
        """
        cdef Py_ssize_t step, block
        with nogil:
            for step in range(trace.shape[0]):
                self.from_counts(m_step, &counts[0, 0])
                for block in range(self.program.n_blocks):
                    self.run_block(block, NULL, True)
                self.gather(&counts[0, 0])
                self.total(&trace[step, 0])

    def contexts(self, Py_ssize_t first, Py_ssize_t last, double[::1] log_z, double[:, ::1] beliefs, factors=()):
        """Each context's own ln Z and clique posteriors, contexts `first` to `last` of one plan (one lane).

        Parameters
        ----------
        log_z : (last - first,) OUT
        beliefs : (last - first, cells of the plan) OUT, or of no rows: not wanted
        factors : as in `rows`, for plans with factors of contexts; OUT are posteriors, if beliefs are wanted
        """
        cdef double unused
        cdef row_factors given
        cdef double* target = &beliefs[0, 0] if beliefs.shape[0] > 0 else NULL
        cdef Py_ssize_t block = 0
        while self.program.block_context[block + 1] <= first:
            block += 1
        tables = Factors(self.program, block, factors, 1, first, last, 0, last - first)
        given.tables, given.n_rows, given.first_context = (<Factors> tables).tables, last - first, first
        with nogil:
            self.program.run_contexts(
                block, 1, &self.natural_[0, 0], &self.exp_natural[0, 0], &self.tables[0, 0],
                &given if given.tables != NULL else NULL, NULL, NULL, &unused, &log_z[0], target, first, last)
