/* What families that cross clusters of hidden nodes say, rows innermost, so that loops over rows are of vectors.
 */
#ifndef SKVBEM_MESSAGES_H
#define SKVBEM_MESSAGES_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_MESSAGE_ROWS 128

/* The product of marginals (n_lanes, sizes[k], n_rows) of one lane times `weight` (or 1 where that is NULL), rows `first` to
 * `first + n`: (product of sizes, SKVBEM_MESSAGE_ROWS), the last one's states fastest. */
SKVBEM_INLINE void skvbem_joint_marginal(intptr_t n_marginals, const intptr_t *sizes, const double **marginals, intptr_t n_rows,
                                         const double *weight, intptr_t lane, intptr_t first, intptr_t n,
                                         double *restrict joint) {
    intptr_t n_cells = 1;
    for (intptr_t i = 0; i < n; i++) joint[i] = weight ? weight[first + i] : 1.0;
    for (intptr_t k = 0; k < n_marginals; k++) {
        const double *marginal = marginals[k] + lane * sizes[k] * n_rows + first;
        for (intptr_t cell = n_cells - 1; cell >= 0; cell--) {
            const double *before = joint + cell * SKVBEM_MESSAGE_ROWS;
            for (intptr_t state = sizes[k] - 1; state >= 0; state--) {
                const double *restrict of_state = marginal + state * n_rows;
                double *after = joint + (cell * sizes[k] + state) * SKVBEM_MESSAGE_ROWS;
                for (intptr_t i = 0; i < n; i++) after[i] = before[i] * of_state[i];
            }
        }
        n_cells *= sizes[k];
    }
}

/* Add sums over the joint states of all others of a table (n_to, n_rest, n_codes), looked up by the code of each row, times
 * their marginals, to a message (n_to, n_rows). */
SKVBEM_CLONES
static void skvbem_add_message(intptr_t n_to, intptr_t n_rest, intptr_t n_codes, intptr_t n_rows, const double *restrict table,
                               const int *restrict code, intptr_t n_others, const intptr_t *sizes, const double **others,
                               intptr_t lane, double *restrict joint, double *restrict message, double *restrict early) {
    double sum[SKVBEM_MESSAGE_ROWS];
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_MESSAGE_ROWS) {
        const intptr_t n = n_rows - first < SKVBEM_MESSAGE_ROWS ? n_rows - first : SKVBEM_MESSAGE_ROWS;
        const int *restrict of_row = code + first;
        skvbem_joint_marginal(n_others, sizes, others, n_rows, NULL, lane, first, n, joint);
        for (intptr_t to = 0; to < n_to; to++) {
            for (intptr_t i = 0; i < n; i++) sum[i] = 0.0;
            for (intptr_t rest = 0; rest < n_rest; rest++) {
                const double *restrict of_code = table + (to * n_rest + rest) * n_codes;
                const double *restrict share = joint + rest * SKVBEM_MESSAGE_ROWS;
                for (intptr_t i = 0; i < n; i++) sum[i] += of_code[of_row[i]] * share[i];
            }
            for (intptr_t i = 0; i < n; i++) message[to * n_rows + first + i] += sum[i];
            if (early)
                for (intptr_t i = 0; i < n; i++) early[to * n_rows + first + i] += sum[i];
        }
    }
}

/* Add the product of all marginals of a family, times weights, to counts (n_cells, n_codes). */
SKVBEM_CLONES
static void skvbem_add_member_counts(intptr_t n_cells, intptr_t n_codes, intptr_t n_rows, const int *restrict code,
                                     const double *weight, intptr_t n_marginals, const intptr_t *sizes,
                                     const double **marginals, intptr_t lane, double *restrict joint, double *restrict counts) {
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_MESSAGE_ROWS) {
        const intptr_t n = n_rows - first < SKVBEM_MESSAGE_ROWS ? n_rows - first : SKVBEM_MESSAGE_ROWS;
        skvbem_joint_marginal(n_marginals, sizes, marginals, n_rows, weight, lane, first, n, joint);
        for (intptr_t cell = 0; cell < n_cells; cell++) {
            double *of_code = counts + cell * n_codes;
            const double *share = joint + cell * SKVBEM_MESSAGE_ROWS;
            for (intptr_t i = 0; i < n; i++) of_code[code[first + i]] += share[i];
        }
    }
}

#endif
