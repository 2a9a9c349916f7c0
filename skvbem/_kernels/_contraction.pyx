"""Sum-product over the hidden part of every distinct context of a discrete network, all restarts at once.

A *plan* is a junction tree over one set of hidden nodes; its *contexts* are the distinct values of the observed
nodes around it, each with a weight. A clique's potential in a context is a product of *slots*: tables over the clique's
cells, one table per value of the observed nodes that the slot depends on (its code), each the product of a few
parameters. Tables are made once per step, contexts multiply whole tables: that is the inner loop, contiguous over
cells x lanes. A family that a value leaves out has the parameter past the last one there: it is 1, and nothing is
counted in it.

A context may have *factors* of its own: tables over a few hidden nodes of one clique, given as logarithms row by row.
They are multiplied in after the slots, and what is expected of each is written in its place.

Potentials need not be normalized (expected parameters are not). Tables and messages are scaled by powers of two,
exactly; a context whose normalizer still leaves the safe range is redone with logarithms, for that lane alone.

What is not here: elimination orders and the layout of a program (`skvbem.models`), forms of q(theta).
"""

from libc.math cimport INFINITY, exp, frexp, ldexp, log
from libc.stdint cimport intptr_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np


cdef extern from "_lanes.h" nogil:
    void skvbem_products(intptr_t n_cells, intptr_t arity, intptr_t n_lanes, const int* factor,
                         const double* parameters, double* table)
    bint skvbem_all_within(intptr_t n_tables, intptr_t n_cells, intptr_t n_lanes, const double* table, double least,
                           double* largest)
    void skvbem_largest(intptr_t n_cells, intptr_t n_lanes, const double* table, double* largest)
    void skvbem_spread(intptr_t n_cells, intptr_t arity, intptr_t n_lanes, intptr_t n_counts, const int* factor,
                       const double* table, double* counts)
    ctypedef struct skvbem_star:
        intptr_t n_slots, n_cells, n_lanes
        const unsigned short* narrow
        const int* wide
        const double** tables
        double** expected
        const double* weight
        double* psi
        double* normalizer
        double* share
        double* product
        double* log_z
        double last_weight, smallest, largest
        bint counted
        uint64_t* streams
        double* scratch
    intptr_t skvbem_run_star(skvbem_star* run, intptr_t first, intptr_t last)


cdef extern from "_row_factors.h" nogil:
    void skvbem_row_factor(intptr_t n_cells, intptr_t n_lanes, intptr_t n_rows, const double* logs, double* log_factor,
                           double* factor, double* largest)
    enum:
        SKVBEM_FACTOR_ROWS
        SKVBEM_ROW_CELLS
        SKVBEM_FEWEST_ROWS
    ctypedef struct skvbem_factor_rows:
        intptr_t first_clique, last_clique, first_slot, n_slots, first_factor, last_factor, n_lanes, n_rows, stride
        const long long* clique_cells
        const long long* clique_at
        const long long* clique_slot
        const long long* separator_cells
        const long long* separator_at
        const long long* out_map
        const long long* in_map
        const long long* parent
        const long long* slot_table
        const long long* slot_codes
        const long long* factor_clique
        const long long* factor_cells
        const long long* factor_map
        const int* maps
        const unsigned short* narrow
        const int* wide
        const double* tables
        double* expected
        double** factors
        const double* weight
        double* joint
        double* message
        double* scratch
        double* top
        double* sum
    void skvbem_row_potentials(skvbem_factor_rows* run, intptr_t lane, intptr_t first, intptr_t n, double lost)
    double skvbem_row_posteriors(skvbem_factor_rows* run, intptr_t first, intptr_t n)
    void skvbem_row_counts(skvbem_factor_rows* run, intptr_t lane, intptr_t first, intptr_t n)


cdef double SMALLEST_SAFE = 1e-100
cdef double LARGEST_SAFE = 1e100
# A table or message whose largest entry is below this may have lost entries that matter in the end: what underflowed is
# then not negligible against SMALLEST_SAFE.
cdef double LOST = 1e-150
cdef double LN_2 = 0.69314718055994530942


cdef class Contraction:
    """A program: plans, cliques, slots and contexts as flat integer arrays. Immutable once made."""

    def __init__(self, arrays):
        self.arrays = dict(arrays)
        self.n_cells = arrays["n_cells"]
        self.n_table_cells = arrays["n_table_cells"]
        self.n_contexts = arrays["n_contexts"]
        self.n_blocks = arrays["n_blocks"]
        self.scratch_cells = arrays["scratch_cells"]
        self.scratch_separator = arrays["scratch_separator"]
        self.scratch_factors = arrays["scratch_factors"]
        self.most_slots = arrays["most_slots"]
        self.unscaled_power = arrays["unscaled_power"]
        self.plan_context = arrays["plan_context"]
        self.plan_clique = arrays["plan_clique"]
        self.plan_slot = arrays["plan_slot"]
        self.plan_code = arrays["plan_code"]
        self.clique_cells = arrays["clique_cells"]
        self.clique_at = arrays["clique_at"]
        self.clique_slot = arrays["clique_slot"]
        self.separator_cells = arrays["separator_cells"]
        self.separator_at = arrays["separator_at"]
        self.out_map = arrays["out_map"]
        self.in_map = arrays["in_map"]
        self.parent = arrays["parent"]
        self.maps = arrays["maps"]
        self.plan_factor = arrays["plan_factor"]
        self.factor_clique = arrays["factor_clique"]
        self.factor_cells = arrays["factor_cells"]
        self.factor_map = arrays["factor_map"]
        self.slot_table = arrays["slot_table"]
        self.slot_arity = arrays["slot_arity"]
        self.slot_factor = arrays["slot_factor"]
        self.slot_codes = arrays["slot_codes"]
        self.slot_mass = arrays["slot_mass"]
        self.factors = arrays["factors"]
        self.mass = arrays["mass"]
        self.wide = arrays["codes"].dtype == np.int32
        empty = np.zeros(1, dtype=np.uint16)
        self.narrow_codes = empty if self.wide else arrays["codes"]
        self.wide_codes = arrays["codes"] if self.wide else np.zeros(1, dtype=np.int32)
        self.weight = arrays["weight"]
        self.block_context = arrays["block_context"]
        self.block_plan = arrays["block_plan"]
        self.block_table = arrays["block_table"]
        self.block_at = arrays["block_at"]
        self.complete_counts = arrays["complete_counts"]

    def certain_counts(self):
        """Counts of families of which nothing is hidden, (n_cells,)."""
        return np.array(self.complete_counts)

    cdef Py_ssize_t code(self, Py_ssize_t at) noexcept nogil:
        return self.wide_codes[at] if self.wide else self.narrow_codes[at]

    cdef void make_tables(self, Py_ssize_t n_lanes, const double* exp_natural, double* tables,
                          double* log_scale) noexcept nogil:
        """Tables of all slots from the parameters, scaled; log_scale += mass x the logarithm of the scale."""
        cdef Py_ssize_t slot, value, cell, lane, n_cells, q
        cdef double* table
        cdef double* largest = <double*> malloc(n_lanes * sizeof(double))
        cdef double scale, unscaled = ldexp(1.0, -self.unscaled_power)
        cdef int power
        for q in range(self.clique_cells.shape[0]):
            n_cells = self.clique_cells[q]
            for slot in range(self.clique_slot[q], self.clique_slot[q + 1]):
                table = tables + self.slot_table[slot] * n_lanes
                skvbem_products(self.slot_codes[slot] * n_cells, self.slot_arity[slot], n_lanes,
                                &self.factors[self.slot_factor[slot]], exp_natural, table)
                if skvbem_all_within(self.slot_codes[slot], n_cells, n_lanes, table, unscaled, largest):
                    continue
                for value in range(self.slot_codes[slot]):
                    table = tables + (self.slot_table[slot] + value * n_cells) * n_lanes
                    skvbem_largest(n_cells, n_lanes, table, largest)
                    for lane in range(n_lanes):
                        if largest[lane] >= unscaled and largest[lane] < 1.0:
                            continue
                        if largest[lane] < LOST:
                            for cell in range(n_cells):
                                table[cell * n_lanes + lane] = 0.0
                            continue  # contexts with this value are redone with logarithms
                        frexp(largest[lane], &power)
                        scale = ldexp(1.0, -power)
                        log_scale[lane] += self.mass[self.slot_mass[slot] + value] * (power * LN_2)
                        for cell in range(n_cells):
                            table[cell * n_lanes + lane] *= scale
        free(largest)

    cdef double scale_undone(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t lane, Py_ssize_t n_lanes,
                             const double* exp_natural) noexcept nogil:
        """The logarithm of all scales of one context, as `make_tables` counted it."""
        cdef Py_ssize_t q, slot, cell, k, n_cells, arity, value
        cdef const int* factor
        cdef double largest, x, total = 0.0
        cdef int power
        cdef Py_ssize_t row = self.plan_code[plan] + (context - self.plan_context[plan]) * (
            self.plan_slot[plan + 1] - self.plan_slot[plan])
        for q in range(self.plan_clique[plan], self.plan_clique[plan + 1]):
            n_cells = self.clique_cells[q]
            for slot in range(self.clique_slot[q], self.clique_slot[q + 1]):
                arity = self.slot_arity[slot]
                value = self.code(row + slot - self.plan_slot[plan])
                factor = &self.factors[self.slot_factor[slot] + value * n_cells * arity]
                largest = 0.0
                for cell in range(n_cells):
                    x = exp_natural[factor[cell * arity] * n_lanes + lane]
                    for k in range(1, arity):
                        x *= exp_natural[factor[cell * arity + k] * n_lanes + lane]
                    if x > largest:
                        largest = x
                if largest >= LOST and not ldexp(1.0, -self.unscaled_power) <= largest < 1.0:
                    frexp(largest, &power)
                    total += power * LN_2
        return total

    cdef double context_in_logs(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t lane, Py_ssize_t n_lanes,
                                const double* natural, const double* log_factors, double* beliefs,
                                Py_ssize_t stride) noexcept nogil:
        """ln Z of one context and lane, in logarithms throughout; fills clique posteriors unless `beliefs` is NULL.

        `log_factors` are those of the context's own factors, NULL if it has none.
        """
        cdef Py_ssize_t first = self.plan_clique[plan], last = self.plan_clique[plan + 1]
        cdef Py_ssize_t first_slot = self.plan_slot[plan]
        cdef Py_ssize_t n_slots = self.plan_slot[plan + 1] - first_slot
        cdef Py_ssize_t row = self.plan_code[plan] + (context - self.plan_context[plan]) * n_slots
        cdef Py_ssize_t q, slot, cell, k, n_cells, arity, s, at, f
        cdef const int* factor
        cdef const int* to_separator
        cdef double x, log_z = -INFINITY
        cdef double* psi = <double*> malloc((self.scratch_cells + 3 * self.scratch_separator + 1) * sizeof(double))
        cdef double* message = psi + self.scratch_cells
        cdef double* upward = message + self.scratch_separator
        cdef double* largest = upward + self.scratch_separator
        for q in range(first, last):
            for cell in range(self.clique_cells[q]):
                psi[self.clique_at[q] + cell] = 0.0
            for slot in range(self.clique_slot[q], self.clique_slot[q + 1]):
                arity = self.slot_arity[slot]
                n_cells = self.clique_cells[q]
                factor = &self.factors[self.slot_factor[slot]
                                       + self.code(row + slot - first_slot) * n_cells * arity]
                for cell in range(n_cells):
                    x = 0.0
                    for k in range(arity):
                        x += natural[factor[cell * arity + k] * n_lanes + lane]
                    psi[self.clique_at[q] + cell] += x
        if log_factors != NULL:
            for f in range(self.plan_factor[plan], self.plan_factor[plan + 1]):
                q = self.factor_clique[f]
                factor = &self.maps[self.factor_map[f]]
                for cell in range(self.clique_cells[q]):
                    psi[self.clique_at[q] + cell] += log_factors[factor[cell] * n_lanes + lane]
                log_factors += self.factor_cells[f] * n_lanes
        for q in range(first, last):
            n_cells = self.clique_cells[q]
            if self.parent[q] < 0:
                x = -INFINITY
                for cell in range(n_cells):
                    if psi[self.clique_at[q] + cell] > x:
                        x = psi[self.clique_at[q] + cell]
                if x > -INFINITY:
                    log_z = 0.0
                    for cell in range(n_cells):
                        log_z += exp(psi[self.clique_at[q] + cell] - x)
                    log_z = x + log(log_z)
                continue
            to_separator = &self.maps[self.out_map[q]]
            for s in range(self.separator_at[q], self.separator_at[q] + self.separator_cells[q]):
                largest[s] = -INFINITY
                message[s] = 0.0
            for cell in range(n_cells):
                s = self.separator_at[q] + to_separator[cell]
                if psi[self.clique_at[q] + cell] > largest[s]:
                    largest[s] = psi[self.clique_at[q] + cell]
            for cell in range(n_cells):
                s = self.separator_at[q] + to_separator[cell]
                if largest[s] > -INFINITY:
                    message[s] += exp(psi[self.clique_at[q] + cell] - largest[s])
            for s in range(self.separator_at[q], self.separator_at[q] + self.separator_cells[q]):
                message[s] = largest[s] + log(message[s]) if largest[s] > -INFINITY else -INFINITY
            to_separator = &self.maps[self.in_map[q]]
            for cell in range(self.clique_cells[self.parent[q]]):
                psi[self.clique_at[self.parent[q]] + cell] += message[self.separator_at[q] + to_separator[cell]]
        if beliefs != NULL:
            for q in range(last - 1, first - 1, -1):
                n_cells = self.clique_cells[q]
                if self.parent[q] < 0:
                    for cell in range(n_cells):
                        at = self.clique_at[q] + cell
                        psi[at] = exp(psi[at] - log_z) if log_z > -INFINITY else 0.0
                else:
                    for s in range(self.separator_at[q], self.separator_at[q] + self.separator_cells[q]):
                        upward[s] = 0.0
                    to_separator = &self.maps[self.in_map[q]]
                    for cell in range(self.clique_cells[self.parent[q]]):
                        upward[self.separator_at[q] + to_separator[cell]] += psi[self.clique_at[self.parent[q]] + cell]
                    to_separator = &self.maps[self.out_map[q]]
                    for cell in range(n_cells):
                        at = self.clique_at[q] + cell
                        s = self.separator_at[q] + to_separator[cell]
                        psi[at] = exp(psi[at] - message[s]) * upward[s] if psi[at] > -INFINITY else 0.0
                for cell in range(n_cells):
                    at = self.clique_at[q] + cell
                    beliefs[at * stride] = psi[at]
        free(psi)
        return log_z

    cdef void gather_factors(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t n_lanes, const row_factors* given,
                             double* log_factors, double* factors, double* largest, double* psi) noexcept nogil:
        """Multiply the potentials of a context by its own factors, each over its largest entry.

        `largest` (n_lanes,) becomes the sum of the logarithms of these.
        """
        cdef Py_ssize_t f, cell, lane
        cdef Py_ssize_t first = self.plan_factor[plan]
        cdef const int* to_factor
        cdef const double* factor
        cdef double* here
        for lane in range(n_lanes):
            largest[lane] = 0.0
        for f in range(first, self.plan_factor[plan + 1]):
            skvbem_row_factor(self.factor_cells[f], n_lanes, given.n_rows,
                              given.tables[f - first] + (context - given.first_context), log_factors, factors, largest)
            to_factor = &self.maps[self.factor_map[f]]
            here = psi + self.clique_at[self.factor_clique[f]] * n_lanes
            for cell in range(self.clique_cells[self.factor_clique[f]]):
                factor = factors + to_factor[cell] * n_lanes
                for lane in range(n_lanes):
                    here[cell * n_lanes + lane] *= factor[lane]
            log_factors += self.factor_cells[f] * n_lanes
            factors += self.factor_cells[f] * n_lanes

    cdef void spread_factors(self, Py_ssize_t plan, Py_ssize_t context, Py_ssize_t n_lanes, const row_factors* given,
                             double* factors, const double* psi) noexcept nogil:
        """Write what is expected, or was drawn, of the cells of a context's own factors where their logarithms were."""
        cdef Py_ssize_t f, cell, lane, n_cells
        cdef Py_ssize_t first = self.plan_factor[plan]
        cdef const int* to_factor
        cdef const double* here
        cdef double* row
        for f in range(first, self.plan_factor[plan + 1]):
            n_cells = self.factor_cells[f]
            memset(factors, 0, n_cells * n_lanes * sizeof(double))
            to_factor = &self.maps[self.factor_map[f]]
            here = psi + self.clique_at[self.factor_clique[f]] * n_lanes
            for cell in range(self.clique_cells[self.factor_clique[f]]):
                for lane in range(n_lanes):
                    factors[to_factor[cell] * n_lanes + lane] += here[cell * n_lanes + lane]
            row = given.tables[f - first] + (context - given.first_context)
            for lane in range(n_lanes):
                for cell in range(n_cells):
                    row[(lane * n_cells + cell) * given.n_rows] = factors[cell * n_lanes + lane]

    cdef void run_contexts(self, Py_ssize_t block, Py_ssize_t n_lanes, const double* natural, const double* exp_natural,
                           const double* tables, const row_factors* given, uint64_t* streams, double* expected,
                           double* log_z, double* row_log_z, double* beliefs, Py_ssize_t first_context,
                           Py_ssize_t last_context) noexcept nogil:
        """One pass over a range of contexts: ln Z summed with weights per lane, expected table counts added.

        The contexts of plans with factors come with these, `given`, which are of one plan then.

        With `streams` the counts added are of hidden states drawn, not expected. With `row_log_z` (and one lane) each
        context's own ln Z is written as well; with `beliefs` its clique posteriors, one after the other, each
        context's as long as its plan's cells. `given`, `streams`, `expected`, `row_log_z` and `beliefs` may be NULL.
        """
        cdef Py_ssize_t table_at = self.block_table[block] if expected != NULL else 0
        cdef Py_ssize_t plan = self.block_plan[block]
        cdef Py_ssize_t context, q, slot, n_slots, first, last, first_slot, row, cell, lane, s, m
        cdef Py_ssize_t separators
        cdef Py_ssize_t n_psi
        cdef const double* table
        cdef double* target
        cdef double* psi
        cdef double* here
        cdef double* parent_psi
        cdef double* message
        cdef double* ratio
        cdef const int* to_separator
        cdef double weight, last_weight = 0.0, largest, z
        cdef bint unsafe
        cdef double* buffer = <double*> malloc(
            ((self.scratch_cells + 2 * self.scratch_separator + 3) * n_lanes
             + (0 if streams == NULL else (self.scratch_cells + self.scratch_separator + 1) * n_lanes))
            * sizeof(double))
        cdef int* powers = <int*> malloc((n_lanes + 1) * sizeof(int))
        cdef double* normalizer = buffer + (self.scratch_cells + 2 * self.scratch_separator) * n_lanes
        cdef double* share = normalizer + n_lanes
        cdef double* product = share + n_lanes
        cdef int power
        cdef skvbem_stream stream
        cdef skvbem_star star
        cdef double* log_factors = NULL
        cdef double* factors = NULL
        cdef double* factors_largest = NULL
        star.tables = <const double**> malloc(self.most_slots * sizeof(double*))
        star.expected = <double**> malloc(self.most_slots * sizeof(double*))
        star.n_lanes = n_lanes
        star.psi = buffer
        star.normalizer, star.share, star.product, star.log_z = normalizer, share, product, log_z
        star.scratch = product + n_lanes
        star.smallest, star.largest = SMALLEST_SAFE, LARGEST_SAFE
        if given != NULL:
            log_factors = <double*> malloc((2 * self.scratch_factors + 1) * n_lanes * sizeof(double))
            factors = log_factors + self.scratch_factors * n_lanes
            factors_largest = factors + self.scratch_factors * n_lanes
        psi = buffer
        message = psi + self.scratch_cells * n_lanes
        ratio = message + self.scratch_separator * n_lanes
        for lane in range(n_lanes):
            product[lane] = 1.0
            log_z[lane] = 0.0
        context = first_context - 1
        while context + 1 < last_context:
            context += 1
            while context >= self.plan_context[plan + 1]:
                plan += 1
            if (row_log_z == NULL and given == NULL and self.plan_clique[plan + 1] - self.plan_clique[plan] == 1
                    and self.plan_slot[plan + 1] > self.plan_slot[plan]):
                first_slot = self.plan_slot[plan]
                star.n_slots = self.plan_slot[plan + 1] - first_slot
                star.n_cells = self.clique_cells[self.plan_clique[plan]]
                star.counted = expected != NULL
                star.streams = streams
                for slot in range(star.n_slots):
                    star.tables[slot] = tables + self.slot_table[first_slot + slot] * n_lanes
                    if star.counted:
                        star.expected[slot] = expected + (self.slot_table[first_slot + slot] - table_at) * n_lanes
                star.narrow = NULL
                star.wide = NULL
                if self.wide:
                    star.wide = &self.wide_codes[self.plan_code[plan]]
                else:
                    star.narrow = &self.narrow_codes[self.plan_code[plan]]
                star.weight = &self.weight[self.plan_context[plan]]
                star.last_weight = last_weight
                s = last_context if last_context < self.plan_context[plan + 1] else self.plan_context[plan + 1]
                context = self.plan_context[plan] + skvbem_run_star(
                    &star, context - self.plan_context[plan], s - self.plan_context[plan])
                last_weight = star.last_weight
                if context == s:
                    context -= 1
                    continue
            weight = self.weight[context]
            if weight != last_weight:
                for lane in range(n_lanes):
                    log_z[lane] += last_weight * log(product[lane])
                    product[lane] = 1.0
                last_weight = weight
            first = self.plan_clique[plan]
            last = self.plan_clique[plan + 1]
            first_slot = self.plan_slot[plan]
            n_slots = self.plan_slot[plan + 1] - first_slot
            row = self.plan_code[plan] + (context - self.plan_context[plan]) * n_slots
            # potentials
            for q in range(first, last):
                m = self.clique_cells[q] * n_lanes
                here = psi + self.clique_at[q] * n_lanes
                slot = self.clique_slot[q]
                if slot == self.clique_slot[q + 1]:
                    for cell in range(m):
                        here[cell] = 1.0
                    continue
                table = tables + self.slot_table[slot] * n_lanes + self.code(row + slot - first_slot) * m
                memcpy(here, table, m * sizeof(double))
                for slot in range(slot + 1, self.clique_slot[q + 1]):
                    table = tables + self.slot_table[slot] * n_lanes + self.code(row + slot - first_slot) * m
                    for cell in range(m):
                        here[cell] *= table[cell]
            if given != NULL:
                self.gather_factors(plan, context, n_lanes, given, log_factors, factors, factors_largest, psi)
            # collect
            for lane in range(n_lanes):
                powers[lane] = 0
            for q in range(first, last - 1):
                here = psi + self.clique_at[q] * n_lanes
                target = message + self.separator_at[q] * n_lanes
                separators = self.separator_cells[q]
                memset(target, 0, separators * n_lanes * sizeof(double))
                to_separator = &self.maps[self.out_map[q]]
                for cell in range(self.clique_cells[q]):
                    for lane in range(n_lanes):
                        target[to_separator[cell] * n_lanes + lane] += here[cell * n_lanes + lane]
                for lane in range(n_lanes):
                    largest = 0.0
                    for s in range(separators):
                        if target[s * n_lanes + lane] > largest:
                            largest = target[s * n_lanes + lane]
                    if largest < LOST:
                        for s in range(separators):  # the normalizer becomes 0: redone with logarithms
                            target[s * n_lanes + lane] = 0.0
                    else:
                        frexp(largest, &power)
                        if power < -16 or power > 16:
                            z = ldexp(1.0, -power)
                            powers[lane] += power
                            for s in range(separators):
                                target[s * n_lanes + lane] *= z
                            for cell in range(self.clique_cells[q]):
                                here[cell * n_lanes + lane] *= z
                parent_psi = psi + self.clique_at[self.parent[q]] * n_lanes
                to_separator = &self.maps[self.in_map[q]]
                for cell in range(self.clique_cells[self.parent[q]]):
                    for lane in range(n_lanes):
                        parent_psi[cell * n_lanes + lane] *= target[to_separator[cell] * n_lanes + lane]
            # the root: the normalizer
            q = last - 1
            here = psi + self.clique_at[q] * n_lanes
            for lane in range(n_lanes):
                normalizer[lane] = 0.0
            for cell in range(self.clique_cells[q]):
                for lane in range(n_lanes):
                    normalizer[lane] += here[cell * n_lanes + lane]
            unsafe = False
            for lane in range(n_lanes):
                z = normalizer[lane]
                share[lane] = 0.0
                if not SMALLEST_SAFE <= z <= LARGEST_SAFE:
                    unsafe = True
                    continue
                share[lane] = (weight if expected != NULL else 1.0) / z
                product[lane] *= z
                if not 1e-200 < product[lane] < 1e200:
                    log_z[lane] += weight * log(product[lane])
                    product[lane] = 1.0
                if powers[lane] != 0:
                    log_z[lane] += weight * (powers[lane] * LN_2)
                if given != NULL:
                    log_z[lane] += weight * factors_largest[lane]
                if row_log_z != NULL:
                    row_log_z[context - first_context] = (
                        log(z) + powers[lane] * LN_2 + self.scale_undone(plan, context, lane, n_lanes, exp_natural))
                    if given != NULL:
                        row_log_z[context - first_context] += factors_largest[lane]
            # distribute, unless states are drawn, which goes down the tree by itself
            if streams == NULL and (expected != NULL or beliefs != NULL):
                for q in range(last - 1, first - 1, -1):
                    here = psi + self.clique_at[q] * n_lanes
                    m = self.clique_cells[q]
                    if q == last - 1:
                        for cell in range(m):
                            for lane in range(n_lanes):
                                here[cell * n_lanes + lane] *= share[lane]
                        continue
                    separators = self.separator_cells[q]
                    memset(ratio, 0, separators * n_lanes * sizeof(double))
                    parent_psi = psi + self.clique_at[self.parent[q]] * n_lanes
                    to_separator = &self.maps[self.in_map[q]]
                    for cell in range(self.clique_cells[self.parent[q]]):
                        for lane in range(n_lanes):
                            ratio[to_separator[cell] * n_lanes + lane] += parent_psi[cell * n_lanes + lane]
                    target = message + self.separator_at[q] * n_lanes
                    for s in range(separators * n_lanes):
                        if target[s] > 0.0:
                            ratio[s] /= target[s]
                    to_separator = &self.maps[self.out_map[q]]
                    for cell in range(m):
                        for lane in range(n_lanes):
                            here[cell * n_lanes + lane] *= ratio[to_separator[cell] * n_lanes + lane]
            n_psi = 0
            for q in range(first, last):
                n_psi += self.clique_cells[q]
            if unsafe:
                for lane in range(n_lanes):
                    if share[lane] != 0.0:
                        continue
                    # `make_tables` has counted this context's scales: they are taken back
                    z = self.context_in_logs(plan, context, lane, n_lanes, natural, log_factors,
                                             psi + lane if expected != NULL or beliefs != NULL else NULL, n_lanes)
                    if row_log_z != NULL:
                        row_log_z[context - first_context] = z
                    log_z[lane] += weight * (z - self.scale_undone(plan, context, lane, n_lanes, exp_natural))
                    if expected != NULL and streams == NULL:
                        for cell in range(n_psi):
                            psi[cell * n_lanes + lane] *= weight
            if beliefs != NULL:
                memcpy(beliefs, psi, n_psi * sizeof(double))
                beliefs += n_psi
                if given != NULL:
                    self.spread_factors(plan, context, n_lanes, given, factors, psi)
            if expected == NULL:
                continue
            if streams != NULL:
                for lane in range(n_lanes):
                    stream = skvbem_load(streams, lane, n_lanes)
                    self.draw_states(plan, weight, lane, n_lanes, psi, &stream, product + n_lanes)
                    skvbem_store(&stream, streams, lane, n_lanes)
            if given != NULL:
                self.spread_factors(plan, context, n_lanes, given, factors, psi)
            for q in range(first, last):
                m = self.clique_cells[q] * n_lanes
                here = psi + self.clique_at[q] * n_lanes
                for slot in range(self.clique_slot[q], self.clique_slot[q + 1]):
                    target = expected + (self.slot_table[slot] - table_at) * n_lanes
                    target += self.code(row + slot - first_slot) * m
                    for cell in range(m):
                        target[cell] += here[cell]
        for lane in range(n_lanes):
            log_z[lane] += last_weight * log(product[lane])
        free(star.tables)
        free(star.expected)
        free(powers)
        free(log_factors)
        free(buffer)

    cdef void run_rows(self, Py_ssize_t block, Py_ssize_t plan, Py_ssize_t n_lanes, const double* natural,
                       const double* exp_natural, const double* tables, const row_factors* given, double* expected,
                       double* log_z, Py_ssize_t first_context, Py_ssize_t last_context) noexcept nogil:
        """As `run_contexts` counts, contexts with factors of one plan: the inner loop is over them."""
        cdef Py_ssize_t f, cell, lane, at, i, n, n_cells = 0, n_separators = 0, n_scratch
        cdef double z
        cdef double* log_factors = <double*> malloc((self.scratch_factors + 1) * n_lanes * sizeof(double))
        cdef skvbem_factor_rows run
        _describe_rows(self, plan, &run)
        for i in range(run.first_clique, run.last_clique):
            n_cells += self.clique_cells[i]
            n_separators += self.separator_cells[i]
        n_scratch = n_separators
        for f in range(run.first_factor, run.last_factor):
            if self.factor_cells[f] > n_scratch:
                n_scratch = self.factor_cells[f]
        run.stride = SKVBEM_ROW_CELLS // (n_cells + n_separators)
        run.stride = min(max(run.stride // 8 * 8, SKVBEM_FEWEST_ROWS), SKVBEM_FACTOR_ROWS)
        run.n_lanes, run.n_rows, run.factors = n_lanes, given.n_rows, given.tables
        run.joint = <double*> malloc((n_cells + n_separators + n_scratch) * run.stride * sizeof(double))
        run.message = run.joint + n_cells * run.stride
        run.scratch = run.message + n_separators * run.stride
        run.tables, run.expected = tables, expected - self.block_table[block] * n_lanes
        run.narrow, run.wide = NULL, NULL
        if run.n_slots > 0:
            at = self.plan_code[plan] + (first_context - self.plan_context[plan]) * run.n_slots
            if self.wide:
                run.wide = &self.wide_codes[at]
            else:
                run.narrow = &self.narrow_codes[at]
        run.weight = &self.weight[first_context]
        for lane in range(n_lanes):
            log_z[lane] = 0.0
        at = 0
        while at < last_context - first_context:
            n = min(last_context - first_context - at, run.stride)
            for lane in range(n_lanes):
                skvbem_row_potentials(&run, lane, at, n, LOST)
                for i in range(n):
                    if not SMALLEST_SAFE <= run.sum[i] <= LARGEST_SAFE:
                        run.sum[i] = 0.0
                        _logs_of_row(&run, lane, at + i, log_factors)
                        # `make_tables` has counted this context's scales: they are taken back
                        z = self.context_in_logs(plan, first_context + at + i, lane, n_lanes, natural, log_factors,
                                                 NULL, 1)
                        log_z[lane] += run.weight[at + i] * (
                            z - self.scale_undone(plan, first_context + at + i, lane, n_lanes, exp_natural))
                log_z[lane] += skvbem_row_posteriors(&run, at, n)
                for i in range(n):
                    if run.sum[i] == 0.0:
                        _logs_of_row(&run, lane, at + i, log_factors)
                        self.context_in_logs(plan, first_context + at + i, lane, n_lanes, natural, log_factors,
                                             run.joint + i, run.stride)
                        for cell in range(n_cells):
                            run.joint[cell * run.stride + i] *= run.weight[at + i]
                skvbem_row_counts(&run, lane, at, n)
            at += n
        free(run.joint)
        free(log_factors)

    cdef void draw_states(self, Py_ssize_t plan, double weight, Py_ssize_t lane, Py_ssize_t n_lanes, double* psi,
                          skvbem_stream* stream, double* scratch) noexcept nogil:
        """Counts of `weight` joint states drawn, root first, written over the collected potentials of one lane.

        A child's cells that agree with a state of its separator are drawn in proportion to its potential: collected
        potentials and posteriors serve alike. `scratch` holds as many doubles as the largest separator and clique.
        """
        cdef Py_ssize_t first = self.plan_clique[plan], last = self.plan_clique[plan + 1]
        cdef Py_ssize_t q, cell, s, n_cells, n_some
        cdef const int* to_separator
        cdef double* here
        cdef double* parent_psi
        cdef double* some
        cdef double total
        for q in range(last - 1, first - 1, -1):
            here = psi + self.clique_at[q] * n_lanes + lane
            n_cells = self.clique_cells[q]
            if q == last - 1:
                total = 0.0
                for cell in range(n_cells):
                    total += here[cell * n_lanes]
                skvbem_multinomial(stream, weight, n_cells, here, n_lanes, total)
                continue
            for s in range(self.separator_cells[q]):
                scratch[s] = 0.0
            parent_psi = psi + self.clique_at[self.parent[q]] * n_lanes + lane
            to_separator = &self.maps[self.in_map[q]]
            for cell in range(self.clique_cells[self.parent[q]]):
                scratch[to_separator[cell]] += parent_psi[cell * n_lanes]
            to_separator = &self.maps[self.out_map[q]]
            some = scratch + self.separator_cells[q]
            for s in range(self.separator_cells[q]):
                if scratch[s] == 0.0:
                    for cell in range(n_cells):
                        if to_separator[cell] == s:
                            here[cell * n_lanes] = 0.0
                    continue
                n_some, total = 0, 0.0
                for cell in range(n_cells):
                    if to_separator[cell] == s:
                        some[n_some] = here[cell * n_lanes]
                        total += some[n_some]
                        n_some += 1
                skvbem_multinomial(stream, scratch[s], n_some, some, 1, total)
                n_some = 0
                for cell in range(n_cells):
                    if to_separator[cell] == s:
                        here[cell * n_lanes] = some[n_some]
                        n_some += 1

    cdef void add_counts(self, Py_ssize_t block, Py_ssize_t n_lanes, const double* expected,
                         double* counts) noexcept nogil:
        """Expected table counts of one block back to parameters."""
        cdef Py_ssize_t slot, q
        cdef Py_ssize_t first = self.plan_clique[self.block_plan[block]]
        cdef Py_ssize_t last_plan = self.block_plan[block]
        while last_plan + 1 < self.plan_context.shape[0] - 1 and (
                self.plan_context[last_plan + 1] < self.block_context[block + 1]):
            last_plan += 1
        for q in range(first, self.plan_clique[last_plan + 1]):
            for slot in range(self.clique_slot[q], self.clique_slot[q + 1]):
                skvbem_spread(self.slot_codes[slot] * self.clique_cells[q], self.slot_arity[slot], n_lanes,
                              self.n_cells, &self.factors[self.slot_factor[slot]],
                              expected + (self.slot_table[slot] - self.block_table[block]) * n_lanes, counts)


cdef void _describe_rows(Contraction program, Py_ssize_t plan, skvbem_factor_rows* run) noexcept nogil:
    """The arrays of a plan, as loops over rows take them."""
    run.first_clique, run.last_clique = program.plan_clique[plan], program.plan_clique[plan + 1]
    run.first_slot, run.n_slots = program.plan_slot[plan], program.plan_slot[plan + 1] - program.plan_slot[plan]
    run.first_factor, run.last_factor = program.plan_factor[plan], program.plan_factor[plan + 1]
    run.clique_cells, run.clique_at = &program.clique_cells[0], &program.clique_at[0]
    run.clique_slot = &program.clique_slot[0]
    run.separator_cells, run.separator_at = &program.separator_cells[0], &program.separator_at[0]
    run.out_map, run.in_map = &program.out_map[0], &program.in_map[0]
    run.parent, run.maps = &program.parent[0], &program.maps[0]
    run.slot_table, run.slot_codes = &program.slot_table[0], NULL
    if run.n_slots > 0:
        run.slot_codes = &program.slot_codes[0]
    run.factor_clique, run.factor_cells = &program.factor_clique[0], &program.factor_cells[0]
    run.factor_map = &program.factor_map[0]


cdef void _logs_of_row(const skvbem_factor_rows* run, Py_ssize_t lane, Py_ssize_t at,
                       double* log_factors) noexcept nogil:
    """Logarithms of one row's factors, behind one another, at one lane."""
    cdef Py_ssize_t f, cell, n_cells
    for f in range(run.first_factor, run.last_factor):
        n_cells = run.factor_cells[f]
        for cell in range(n_cells):
            log_factors[cell * run.n_lanes + lane] = run.factors[f - run.first_factor][
                (lane * n_cells + cell) * run.n_rows + at]
        log_factors += n_cells * run.n_lanes
