"""What the contexts of a program say about table cells: which cells each may be in, and with what probability."""

from skvbem._kernels._contraction cimport Contraction

import numpy as np


def weights(Contraction program):
    """The weight of each context, (n_contexts,)."""
    return np.array(program.weight[:program.n_contexts])


def complete_counts(Contraction program):
    """Counts of wholly observed families, (n_cells,)."""
    return np.array(program.complete_counts)


def hidden_cells(Contraction program, Py_ssize_t plan, Py_ssize_t n_families):
    """The cell each context of a plan is in, for each family, where all hidden nodes are in state 0.

    Returns
    -------
    (n_contexts of the plan, n_families) int64, families in the order of slots; n_cells where a context has no such one
    """
    cdef Py_ssize_t first = program.plan_context[plan], last = program.plan_context[plan + 1]
    cdef Py_ssize_t first_slot = program.plan_slot[plan], n_slots = program.plan_slot[plan + 1] - first_slot
    cdef Py_ssize_t context, slot, q, k, at, family, row
    cdef const int* factor
    found = np.empty((last - first, n_families), dtype=np.int64)
    cdef long long[:, ::1] cells = found
    with nogil:
        for context in range(first, last):
            family = 0
            row = program.plan_code[plan] + (context - first) * n_slots
            for q in range(program.plan_clique[plan], program.plan_clique[plan + 1]):
                for slot in range(program.clique_slot[q], program.clique_slot[q + 1]):
                    at = program.code(row + slot - first_slot) * program.clique_cells[q] * program.slot_arity[slot]
                    factor = &program.factors[program.slot_factor[slot] + at]
                    for k in range(program.slot_arity[slot]):
                        cells[context - first, family] = factor[k]
                        family += 1
    return found


def marginal_sizes(Contraction program, const long long[::1] row_of, Py_ssize_t n_rows):
    """In how many contexts each cell, and each table row, has a say: (n_cells + n_rows,) int64.

    Parameters
    ----------
    row_of : (n_cells,) IN, the table row of each cell
    """
    cdef Py_ssize_t n_cells = program.n_cells
    sizes = np.zeros(n_cells + n_rows, dtype=np.int64)
    cdef long long[::1] size = sizes
    cdef long long[::1] seen = np.full(n_cells + n_rows, -1, dtype=np.int64)
    cdef Py_ssize_t plan, context, slot, q, k, row, n_slots
    cdef const int* factor
    with nogil:
        for plan in range(program.plan_context.shape[0] - 1):
            n_slots = program.plan_slot[plan + 1] - program.plan_slot[plan]
            for context in range(program.plan_context[plan], program.plan_context[plan + 1]):
                row = program.plan_code[plan] + (context - program.plan_context[plan]) * n_slots
                row -= program.plan_slot[plan]
                for q in range(program.plan_clique[plan], program.plan_clique[plan + 1]):
                    for slot in range(program.clique_slot[q], program.clique_slot[q + 1]):
                        factor = &program.factors[program.slot_factor[slot] + program.code(row + slot)
                                                  * program.clique_cells[q] * program.slot_arity[slot]]
                        for k in range(program.clique_cells[q] * program.slot_arity[slot]):
                            if factor[k] < n_cells and seen[factor[k]] != context:
                                seen[factor[k]] = context
                                size[factor[k]] += 1
                                if seen[n_cells + row_of[factor[k]]] != context:
                                    seen[n_cells + row_of[factor[k]]] = context
                                    size[n_cells + row_of[factor[k]]] += 1
    return sizes


def fill_marginals(Contraction program, Py_ssize_t first, Py_ssize_t last, const double[:, ::1] beliefs,
                   const long long[::1] row_of, long long[::1] at, long long[::1] contexts, double[::1] p):
    """Write the probability of each cell, and of each table row, in each of some contexts of one plan.

    Parameters
    ----------
    first, last : the contexts
    beliefs : (last - first, cells of the plan) IN, clique posteriors
    row_of : (n_cells,) IN
    at : (n_cells + n_rows,) IN and OUT, where the next entry of each cell and row goes
    contexts, p : (n_entries,) OUT
    """
    cdef Py_ssize_t n_cells = program.n_cells, plan = 0, context, slot, q, k, cell, arity, row, n_slots, target
    cdef Py_ssize_t n_touched, i
    cdef const int* factor
    cdef double[::1] sums = np.zeros(at.shape[0])
    cdef long long[::1] seen = np.full(at.shape[0], -1, dtype=np.int64)
    cdef long long[::1] touched = np.empty(at.shape[0], dtype=np.int64)
    while program.plan_context[plan + 1] <= first:
        plan += 1
    with nogil:
        n_slots = program.plan_slot[plan + 1] - program.plan_slot[plan]
        for context in range(first, last):
            n_touched = 0
            row = program.plan_code[plan] + (context - program.plan_context[plan]) * n_slots - program.plan_slot[plan]
            for q in range(program.plan_clique[plan], program.plan_clique[plan + 1]):
                for slot in range(program.clique_slot[q], program.clique_slot[q + 1]):
                    arity = program.slot_arity[slot]
                    factor = &program.factors[program.slot_factor[slot]
                                              + program.code(row + slot) * program.clique_cells[q] * arity]
                    for cell in range(program.clique_cells[q]):
                        for k in range(2 * arity):  # cells, then table rows
                            target = factor[cell * arity + k % arity]
                            if target >= n_cells:
                                continue
                            if k >= arity:
                                target = n_cells + row_of[target]
                            if seen[target] != context:
                                seen[target] = context
                                sums[target] = 0.0
                                touched[n_touched] = target
                                n_touched += 1
                            sums[target] += beliefs[context - first, program.clique_at[q] + cell]
            for i in range(n_touched):
                target = touched[i]
                contexts[at[target]] = context
                p[at[target]] = sums[target]
                at[target] += 1


def add_score_products(const long long[:, ::1] cells, const long long[:, ::1] offsets, const double[:, ::1] joint,
                       const double[::1] point, const long long[::1] row_starts, const long long[::1] row_of,
                       const long long[::1] coordinate, double[:, ::1] products):
    """Add E[s s'], summed over contexts, to the lower triangle; s are complete-data scores in softmax coordinates.

    Of the table row that the data are in, s = 1(state k) - theta_k for every state k but the last; 0 of other rows.

    Parameters
    ----------
    cells : (n_contexts, n_families) IN, cells where all hidden nodes are in state 0, ascending but for those of
        families that a context does not have, past the last cell
    offsets : (n_states, n_families) IN, what a joint hidden state adds to them
    joint : (n_contexts, n_states) IN, posterior probabilities times weights
    point : (n_cells,) IN
    row_starts : (n_rows + 1,) IN
    row_of : (n_cells,) IN
    coordinate : (n_cells,) IN, ascending where it is used: for all but the last cell of a row
    products : (d, d) IN and OUT
    """
    cdef Py_ssize_t context, state, family, cell, k, a, b, row, n
    cdef Py_ssize_t room = 0
    cdef double x
    cdef double* here
    for row in range(row_starts.shape[0] - 1):
        if row_starts[row + 1] - row_starts[row] > room:
            room = row_starts[row + 1] - row_starts[row]
    cdef long long[::1] index = np.empty(max(room * cells.shape[1], 1), dtype=np.int64)
    cdef double[::1] score = np.empty(max(room * cells.shape[1], 1))
    with nogil:
        for state in range(offsets.shape[0]):
            for context in range(cells.shape[0]):
                if joint[context, state] == 0.0:
                    continue
                n = 0
                for family in range(cells.shape[1]):
                    if cells[context, family] >= point.shape[0]:
                        continue
                    cell = cells[context, family] + offsets[state, family]
                    row = row_of[cell]
                    for k in range(row_starts[row], row_starts[row + 1] - 1):
                        index[n] = coordinate[k]
                        score[n] = (1.0 if k == cell else 0.0) - point[k]
                        n += 1
                for a in range(n):
                    x = joint[context, state] * score[a]
                    here = &products[index[a], 0]
                    for b in range(a + 1):
                        here[index[b]] += x * score[b]
