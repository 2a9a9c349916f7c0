"""Sums over all completions of a few rows of data: the evidence by definition, one predictive probability at a time."""

from libc.math cimport INFINITY, exp, log

import numpy as np


def log_sum_over_completions(const double[::1] prior, const double[::1] row_prior, const long long[::1] row_of,
                             long long[::1] counts, long long[::1] row_counts, const long long[::1] weight,
                             const long long[::1] choice_starts, const long long[::1] cell_starts,
                             const long long[::1] cells):
    """ln of the sum over completions of the probability of all rows, given the counts at hand.

    A row of data has probability prod (prior + count of its cell) / (the same of the table row) after those before it.
    Equal rows are exchangeable: their completions are taken in ascending order, each times the orders it stands for.

    Parameters
    ----------
    prior : (n_cells,) IN, row_prior : (n_rows,) IN, its row sums
    row_of : (n_cells,) IN
    counts : (n_cells,) and row_counts : (n_rows,) IN, changed on the way and put back
    weight : (n_contexts,) IN, how many equal rows there are of each kind
    choice_starts : (n_contexts + 1,) IN, completions of each kind
    cell_starts : (n_choices + 1,) IN, cells of each completion
    """
    cdef Py_ssize_t n_levels = np.sum(weight), level = 0, k, context, cell, row
    cdef long long choice
    cdef double largest = -INFINITY, total = 0.0, ratio, value
    # of each level: its kind of row, how many equal rows stand before it, the completion it is in, how many equal rows
    # before it are in the same one, and ln of the product so far
    cdef long long[::1] kind = np.repeat(np.arange(weight.shape[0]), weight)
    cdef long long[::1] before = np.arange(n_levels) - np.repeat(np.cumsum(weight) - weight, weight)
    cdef long long[::1] taken = np.full(n_levels + 1, -1, dtype=np.int64)
    cdef long long[::1] alike = np.zeros(n_levels + 1, dtype=np.int64)
    cdef double[::1] logs = np.zeros(n_levels + 1)
    with nogil:
        while level >= 0:
            if level == n_levels:
                value = logs[level]
                if value > largest:
                    total = total * exp(largest - value) + 1.0
                    largest = value
                else:
                    total += exp(value - largest)
                level -= 1
                continue
            context = kind[level]
            choice = taken[level]
            if choice >= 0:  # put back
                for k in range(cell_starts[choice], cell_starts[choice + 1]):
                    counts[cells[k]] -= 1
                    row_counts[row_of[cells[k]]] -= 1
                choice += 1
            else:
                choice = taken[level - 1] if before[level] > 0 else choice_starts[context]
            if choice == choice_starts[context + 1]:
                taken[level] = -1
                level -= 1
                continue
            taken[level] = choice
            alike[level] = alike[level - 1] + 1 if before[level] > 0 and taken[level - 1] == choice else 1
            ratio = <double>(before[level] + 1) / <double>alike[level]
            value = logs[level]
            for k in range(cell_starts[choice], cell_starts[choice + 1]):
                cell, row = cells[k], row_of[cells[k]]
                ratio *= (prior[cell] + counts[cell]) / (row_prior[row] + row_counts[row])
                if ratio < 1e-250:
                    value += log(ratio)
                    ratio = 1.0
                counts[cell] += 1
                row_counts[row] += 1
            level += 1
            logs[level] = value + log(ratio)
    return largest + log(total)
