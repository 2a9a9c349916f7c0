"""Sums over the distinct values of sets of columns: what Bayesian scores of families of complete data are made of."""

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, intptr_t, uint64_t
from libc.string cimport memset

import numpy as np


cdef extern from "_lanes.h" nogil:
    void skvbem_log_gamma_digamma(intptr_t n, const double* x, double* log_gamma, double* digamma)
    double skvbem_log_rising(double a, double n, double log_gamma_a, double log_gamma_sum)


cdef extern from "_bitsets.h" nogil:
    intptr_t skvbem_split_sets(intptr_t n_sets, intptr_t n_words, const uint64_t* sets, intptr_t n_parts,
                               const uint64_t* parts, int keeps_empty, intptr_t most, uint64_t* finer)
    void skvbem_list_words(intptr_t n_sets, intptr_t n_words, const uint64_t* sets, intptr_t* first, int32_t* place,
                           uint64_t* listed)
    void skvbem_common_weights(intptr_t n_sets, const intptr_t* first, const int32_t* place, const uint64_t* listed,
                               const uint64_t* other, const unsigned char* digit, double* weights)


# Codes of states, as narrow as they fit.
ctypedef fused code_t:
    signed char
    short
    int


cdef Py_ssize_t refine(Py_ssize_t n_rows, int n_states, const int* group, Py_ssize_t n_groups, const code_t* column,
                       const double* weight, int* place, int* finer, double* mass) noexcept nogil:
    """Split groups of rows by a further column; how many there are then, with the weight of each."""
    cdef Py_ssize_t row, cell, k, n = 0
    for k in range(n_groups * n_states):
        place[k] = -1
    for row in range(n_rows):
        cell = <Py_ssize_t>group[row] * n_states + column[row]
        k = place[cell]
        if k < 0:
            k = n
            place[cell] = <int>n
            mass[n] = 0.0
            n += 1
        finer[row] = <int>k
        mass[k] += weight[row]
    return n


cdef double sum_over_values(Py_ssize_t n, double a, const double* value, const double* times, double* total,
                            double* log_gamma, double* scratch) noexcept nogil:
    """Sum of ln Gamma(a + v) - ln Gamma(a) over weights v; for a = 0 of v ln v in its place.

    Each weight counts as often as `times` says, once if that is NULL.
    """
    cdef Py_ssize_t k
    cdef double result = 0.0, of_a = 0.0, term
    if a > 0.0:
        skvbem_log_gamma_digamma(1, &a, &of_a, scratch)
        for k in range(n):
            total[k] = a + value[k]
        skvbem_log_gamma_digamma(n, total, log_gamma, scratch)
    for k in range(n):
        term = skvbem_log_rising(a, value[k], of_a, log_gamma[k]) if a > 0.0 else value[k] * log(value[k])
        result += term if times == NULL else times[k] * term
    return result


# Weights that are whole numbers below this are counted, so that equal ones have one logarithm.
cdef Py_ssize_t MOST_COUNTED = 4096


cdef Py_ssize_t distinct(Py_ssize_t n, const double* mass, int* counted, double* value, double* times) noexcept nogil:
    """The distinct weights among some, and how often each is there; `counted` has zeros before and after."""
    cdef Py_ssize_t k, whole, n_values = 0, n_whole = 0
    for k in range(n):
        if mass[k] < MOST_COUNTED and <double>(<Py_ssize_t>mass[k]) == mass[k]:
            whole = <Py_ssize_t>mass[k]
            if counted[whole] == 0:
                value[n_whole] = mass[k]
                n_whole += 1
            counted[whole] += 1
    for k in range(n_whole):
        times[k] = counted[<Py_ssize_t>value[k]]
        counted[<Py_ssize_t>value[k]] = 0
    n_values = n_whole
    for k in range(n):
        if not (mass[k] < MOST_COUNTED and <double>(<Py_ssize_t>mass[k]) == mass[k]):
            value[n_values] = mass[k]
            times[n_values] = 1.0
            n_values += 1
    return n_values


def fill_sums(const int[:, ::1] codes, const long long[::1] cardinality, const double[::1] weight,
              const double[::1] strength, const unsigned char[::1] shared, Py_ssize_t most, double[:, ::1] sums):
    """For sets of columns, sums over their joint values c of ln Gamma(a + n_c) - ln Gamma(a), n_c the weight of c.

    Parameters
    ----------
    codes : (n_columns, n_rows) IN, n_columns <= 62
    cardinality : (n_columns,) IN
    weight : (n_rows,) IN, > 0
    strength : (n_kinds,) IN, the concentration a; 0 for sums of n_c ln n_c in its place
    shared : (n_kinds,) IN, whether a set shares the strength out among all its joint values
    most : sets of so many columns at most
    sums : (2 ** n_columns, n_kinds) OUT, by the mask of the set; larger sets are left as they are
    """
    cdef Py_ssize_t n_columns = codes.shape[0], n_rows = codes.shape[1], n_kinds = strength.shape[0]
    cdef Py_ssize_t depth = min(most, n_columns), level = 0, column, kind, mask = 0
    cdef int widest = np.max(cardinality, initial=1)
    cdef double a
    # of each level of the descent: the column it added, the groups of rows, their number and weight, ln joint values
    cdef long long[::1] added = np.full(depth + 2, -1, dtype=np.int64)
    cdef long long[::1] n_groups = np.ones(depth + 2, dtype=np.int64)
    cdef int[:, ::1] group = np.zeros((depth + 2, max(n_rows, 1)), dtype=np.int32)
    cdef double[:, ::1] mass = np.zeros((depth + 2, max(n_rows, 1)))
    cdef double[::1] n_values = np.ones(depth + 2)
    cdef int[::1] place = np.empty(max(n_rows, 1) * widest, dtype=np.int32)
    cdef double[:, ::1] scratch = np.empty((5, max(n_rows, 1)))
    cdef int[::1] counted = np.zeros(MOST_COUNTED, dtype=np.int32)
    cdef Py_ssize_t n_values_of_mass = 0
    mass[0, 0] = np.sum(weight)
    if n_rows == 0:
        n_groups[0] = 0
    with nogil:
        while level >= 0:
            # here a set of columns is met for the first time: `level` of them, the last one `added[level]`
            if n_kinds > 2:
                n_values_of_mass = distinct(n_groups[level], &mass[level, 0], &counted[0], &scratch[3, 0],
                                            &scratch[4, 0])
            for kind in range(n_kinds):
                a = strength[kind]
                if shared[kind]:
                    a = a / n_values[level]
                if n_kinds > 2:
                    sums[mask, kind] = sum_over_values(n_values_of_mass, a, &scratch[3, 0], &scratch[4, 0],
                                                       &scratch[0, 0], &scratch[1, 0], &scratch[2, 0])
                    continue
                sums[mask, kind] = sum_over_values(n_groups[level], a, &mass[level, 0], NULL, &scratch[0, 0],
                                                   &scratch[1, 0], &scratch[2, 0])
            # the next set: one column more if there may be, else the last column replaced by a later one
            column = added[level] + 1
            if level == depth or column == n_columns:
                while level > 0 and added[level] == n_columns - 1:
                    mask ^= <Py_ssize_t>1 << added[level]
                    level -= 1
                if level == 0:
                    break
                column = added[level] + 1
                mask ^= <Py_ssize_t>1 << added[level]
                level -= 1
            level += 1
            added[level] = column
            mask |= <Py_ssize_t>1 << column
            n_values[level] = n_values[level - 1] * cardinality[column]
            n_groups[level] = refine(n_rows, <int>cardinality[column], &group[level - 1, 0], n_groups[level - 1],
                                     &codes[column, 0], &weight[0], &place[0], &group[level, 0], &mass[level, 0])


cdef Py_ssize_t occurring(Py_ssize_t n_groups, int n_more, int n_states, const double* count, double* of_cells,
                          double* of_rows, Py_ssize_t* n_table_rows) noexcept nogil:
    """The cells and the rows of a table (n_more, n_groups, n_states) that have a weight; the number of these cells."""
    cdef Py_ssize_t group, row, k, cell, n_cells = 0, n = 0
    cdef double total
    for group in range(n_groups):
        for row in range(n_more):
            total = 0.0
            cell = (row * n_groups + group) * n_states
            for k in range(cell, cell + n_states):
                if count[k] > 0.0:
                    of_cells[n_cells] = count[k]
                    total += count[k]
                    n_cells += 1
            if total > 0.0:
                of_rows[n] = total
                n += 1
    n_table_rows[0] = n
    return n_cells


cdef void score_table(Py_ssize_t n_cells, const double* of_cells, Py_ssize_t n_table_rows, const double* of_rows,
                      Py_ssize_t n_concentrations, const double* of_cell, const double* of_row, int* counted,
                      double* scratch, Py_ssize_t width, double* scores) noexcept nogil:
    """S(a) of cells - S(a') of rows under each of some concentrations; `scratch` has room for (7, width) numbers."""
    cdef double* distinct_cell = scratch + 3 * width
    cdef double* times = scratch + 4 * width
    cdef double* distinct_row = scratch + 5 * width
    cdef double* row_times = scratch + 6 * width
    cdef Py_ssize_t at
    if n_concentrations == 1:
        scores[0] = sum_over_values(n_cells, of_cell[0], of_cells, NULL, scratch, scratch + width, scratch + 2 * width)
        scores[0] -= sum_over_values(n_table_rows, of_row[0], of_rows, NULL, scratch, scratch + width,
                                     scratch + 2 * width)
        return
    n_cells = distinct(n_cells, of_cells, counted, distinct_cell, times)
    n_table_rows = distinct(n_table_rows, of_rows, counted, distinct_row, row_times)
    for at in range(n_concentrations):
        scores[at] = sum_over_values(n_cells, of_cell[at], distinct_cell, times, scratch, scratch + width,
                                     scratch + 2 * width)
        scores[at] -= sum_over_values(n_table_rows, of_row[at], distinct_row, row_times, scratch, scratch + width,
                                      scratch + 2 * width)


cdef Py_ssize_t count_table(Py_ssize_t n_rows, const int* lower, Py_ssize_t n_groups, int n_more, const code_t* more,
                            int n_states, const double* weight, Py_ssize_t most_cells, double* count, double* of_cells,
                            double* of_rows, Py_ssize_t* n_table_rows) noexcept nogil:
    """The weights of the cells and of the rows that occur of the table of a child below groups and a further column.

    `lower` has the cell of each row in the table without the further column. Where they fit, there are four tables, of
    every fourth row each, since a cell cannot be added to before the last sum has been stored.
    """
    cdef Py_ssize_t row = 0, cell, stride = n_groups * n_states, size = stride * n_more
    cdef double* second = count + size
    cdef double* third = second + size
    cdef double* fourth = third + size
    cdef bint is_small = 4 * size <= most_cells and size <= n_rows
    memset(count, 0, (4 if is_small else 1) * size * sizeof(double))
    if n_more > 1:
        if is_small:
            for row in range(0, n_rows - 3, 4):
                count[more[row] * stride + lower[row]] += weight[row]
                second[more[row + 1] * stride + lower[row + 1]] += weight[row + 1]
                third[more[row + 2] * stride + lower[row + 2]] += weight[row + 2]
                fourth[more[row + 3] * stride + lower[row + 3]] += weight[row + 3]
        for row in range(n_rows - n_rows % 4 if is_small else 0, n_rows):
            count[more[row] * stride + lower[row]] += weight[row]
    else:
        if is_small:
            for row in range(0, n_rows - 3, 4):
                count[lower[row]] += weight[row]
                second[lower[row + 1]] += weight[row + 1]
                third[lower[row + 2]] += weight[row + 2]
                fourth[lower[row + 3]] += weight[row + 3]
        for row in range(n_rows - n_rows % 4 if is_small else 0, n_rows):
            count[lower[row]] += weight[row]
    if is_small:
        for cell in range(size):
            count[cell] += second[cell] + (third[cell] + fourth[cell])
    return occurring(n_groups, n_more, n_states, count, of_cells, of_rows, n_table_rows)


def score_families(const code_t[:, ::1] codes, const long long[::1] cardinality, const double[::1] weight,
                   Py_ssize_t child, const long long[::1] parents, const long long[::1] further,
                   const double[::1] of_cell, const double[::1] of_row, double[::1] scores):
    """Scores of families of one child, that share parents and have a further one each: S(a) of cells - S(a') of rows.

    S(a) is the sum of ln Gamma(a + n) - ln Gamma(a) over the cells, or rows, of a table that occur n > 0 times. Each
    family may have scores under several concentrations, which stand together.

    Parameters
    ----------
    codes : (n_columns, n_rows) IN
    cardinality : (n_columns,) IN
    weight : (n_rows,) IN, > 0
    child : its column
    parents : (n_parents,) IN, the columns that are parents in all families
    further : (n_families,) IN, the parent that a family has besides, -1 for none
    of_cell, of_row : (n_families * n_concentrations,) IN, a of a cell and a' of a row; 0 for sums of n ln n
    scores : (n_families * n_concentrations,) OUT
    """
    cdef Py_ssize_t n_rows = codes.shape[1], width = max(n_rows, 1), n_groups = min(n_rows, 1), k, row, more, at
    cdef Py_ssize_t n_cells, n_table_rows, n_concentrations = scores.shape[0] // max(further.shape[0], 1)
    cdef int n_states = <int>cardinality[child], n_more, widest = np.max(cardinality, initial=1), here = 0
    # a larger table is gone through by the rows of data, so that memory does not grow with what could occur
    cdef Py_ssize_t most_cells = max(4 * n_rows, 4096)
    cdef int[:, ::1] group = np.zeros((3, width), dtype=np.int32)
    cdef int[::1] place = np.empty(width * widest, dtype=np.int32), lower = np.empty(width, dtype=np.int32)
    cdef double[::1] count = np.empty(most_cells)
    cdef double[:, ::1] mass = np.empty((2, width)), scratch = np.empty((7, width))
    cdef int[::1] counted = np.zeros(MOST_COUNTED if n_concentrations > 1 else 1, dtype=np.int32)
    if n_rows == 0:
        scores[:] = 0.0
        return
    with nogil:
        for k in range(parents.shape[0]):
            n_groups = refine(n_rows, <int>cardinality[parents[k]], &group[here, 0], n_groups, &codes[parents[k], 0],
                              &weight[0], &place[0], &group[1 - here, 0], &mass[1, 0])
            here = 1 - here
        if n_groups * n_states <= most_cells:  # else no table is counted
            for row in range(n_rows):
                lower[row] = group[here, row] * n_states + codes[child, row]
        for k in range(further.shape[0]):
            more = further[k]
            n_more = <int>cardinality[more] if more >= 0 else 1
            if n_groups * n_more * n_states <= most_cells:
                n_cells = count_table(n_rows, &lower[0], n_groups, n_more, &codes[more if more >= 0 else child, 0],
                                      n_states, &weight[0], most_cells, &count[0], &mass[0, 0], &mass[1, 0],
                                      &n_table_rows)
            elif more >= 0:
                n_table_rows = refine(n_rows, n_more, &group[here, 0], n_groups, &codes[more, 0], &weight[0],
                                      &place[0], &group[1 - here, 0], &mass[1, 0])
                n_cells = refine(n_rows, n_states, &group[1 - here, 0], n_table_rows, &codes[child, 0], &weight[0],
                                 &place[0], &group[2, 0], &mass[0, 0])
            else:
                n_table_rows = n_groups
                memset(&mass[1, 0], 0, n_groups * sizeof(double))
                for row in range(n_rows):
                    mass[1, group[here, row]] += weight[row]
                n_cells = refine(n_rows, n_states, &group[here, 0], n_groups, &codes[child, 0], &weight[0],
                                 &place[0], &group[2, 0], &mass[0, 0])
            at = k * n_concentrations
            score_table(n_cells, &mass[0, 0], n_table_rows, &mass[1, 0], n_concentrations, &of_cell[at], &of_row[at],
                        &counted[0], &scratch[0, 0], width, &scores[at])


cdef Py_ssize_t split_by_parents(const uint64_t[:, ::1] bits, const int64_t[::1] first_state,
                                 const long long[::1] cardinality, Py_ssize_t child, const long long[::1] parents,
                                 Py_ssize_t most, uint64_t[:, ::1] sets, int* here) noexcept nogil:
    """The sets of rows of a child's states below the joint states of parents that occur, of each of these together.

    They are in `sets[here]`; how many there are, -1 if more than `most`.
    """
    cdef Py_ssize_t n_words = bits.shape[1], n_sets = 1, k, state, word, column
    here[0] = 0
    memset(&sets[0, 0], 0, n_words * sizeof(uint64_t))
    for state in range(first_state[child], first_state[child] + cardinality[child]):
        for word in range(n_words):
            sets[0, word] |= bits[state, word]
    for k in range(parents.shape[0] + 1):
        column = parents[k] if k < parents.shape[0] else child
        n_sets = skvbem_split_sets(n_sets, n_words, &sets[here[0], 0], cardinality[column],
                                   &bits[first_state[column], 0], column == child, most, &sets[1 - here[0], 0])
        here[0] = 1 - here[0]
        if n_sets < 0:
            break
    return n_sets


def score_families_by_bits(const uint64_t[:, ::1] bits, const unsigned char[::1] digit, const int64_t[::1] first_state,
                           const long long[::1] cardinality, Py_ssize_t child, const long long[::1] parents,
                           const long long[::1] further, Py_ssize_t most_words, const double[::1] of_cell,
                           const double[::1] of_row, double[::1] scores, unsigned char[::1] is_scored):
    """`score_families` of rows of whole weights, of those families whose tables are counted in so many words of bits.

    Parameters
    ----------
    bits : (sum of cardinality, n_words) IN, the rows in which each state of each column occurs
    digit : (n_words,) IN, the binary digit of weights for which each word stands, 0 for the lowest
    first_state : (n_columns,) IN, the place among `bits` of each column's first state
    cardinality, child, parents, further, of_cell, of_row : IN, as there
    most_words : words of two sets of rows that are compared, at most, to count a table
    scores : (n_families * n_concentrations,) OUT, where scored
    is_scored : (n_families,) OUT
    """
    cdef Py_ssize_t n_words = bits.shape[1], n_families = further.shape[0]
    cdef Py_ssize_t n_concentrations = scores.shape[0] // max(n_families, 1), most = most_words // max(n_words, 1)
    cdef Py_ssize_t k, at, state, cell, last, n_lower, n_cells, n_table_rows
    cdef int n_states = <int>cardinality[child], n_more, here = 0
    cdef Py_ssize_t width = (most + n_states) * 2
    cdef uint64_t[:, ::1] sets = np.empty((2, (most + 1) * n_words + 1), dtype=np.uint64)
    cdef double[::1] lower = np.empty(most + 1)
    cdef intptr_t[::1] first = np.empty(most + 2, dtype=np.intp)
    cdef int32_t[::1] place = np.empty((most + 1) * n_words + 1, dtype=np.int32)
    cdef uint64_t[::1] everything = np.empty(n_words, dtype=np.uint64)
    cdef uint64_t* listed
    cdef double[:, ::1] table = np.empty((3, width)), scratch = np.empty((7, width))
    cdef int[::1] counted = np.zeros(MOST_COUNTED if n_concentrations > 1 else 1, dtype=np.int32)
    is_scored[:] = 0
    with nogil:
        n_lower = split_by_parents(bits, first_state, cardinality, child, parents, most, sets, &here)
        listed = &sets[1 - here, 0]
        if n_lower >= 0:
            skvbem_list_words(n_lower, n_words, &sets[here, 0], &first[0], &place[0], listed)
            for k in range(n_words):
                everything[k] = ~<uint64_t>0
            skvbem_common_weights(n_lower, &first[0], &place[0], listed, &everything[0], &digit[0], &lower[0])
        for k in range(n_families if n_lower >= 0 else 0):
            n_more = <int>cardinality[further[k]] if further[k] >= 0 else 1
            if n_lower * (n_more - 1) > most:
                continue
            last = (n_more - 1) * n_lower
            for cell in range(n_lower):
                table[0, last + cell] = lower[cell]
            for state in range(n_more - 1):
                skvbem_common_weights(n_lower, &first[0], &place[0], listed, &bits[first_state[further[k]] + state, 0],
                                      &digit[0], &table[0, state * n_lower])
                for cell in range(n_lower):
                    table[0, last + cell] -= table[0, state * n_lower + cell]
            n_cells = occurring(n_lower // n_states, n_more, n_states, &table[0, 0], &table[1, 0], &table[2, 0],
                                &n_table_rows)
            at = k * n_concentrations
            score_table(n_cells, &table[1, 0], n_table_rows, &table[2, 0], n_concentrations, &of_cell[at], &of_row[at],
                        &counted[0], &scratch[0, 0], width, &scores[at])
            is_scored[k] = 1
