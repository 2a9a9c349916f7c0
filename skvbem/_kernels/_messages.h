/* What families that cross clusters of hidden nodes say, rows innermost, so that loops over rows are of vectors.
 */
#ifndef SKVBEM_MESSAGES_H
#define SKVBEM_MESSAGES_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_MESSAGE_ROWS 128

/* The product of marginals (n_lanes, sizes[k], n_rows) of one lane times `weight` (or 1 where that is NULL), rows `first` to
 * `first + n`: (product of sizes, stride), the last one's states fastest. It stands in `joint`, but for one marginal alone,
 * which stands where it is. */
SKVBEM_INLINE const double *skvbem_joint_marginal(intptr_t n_marginals, const intptr_t *sizes, const double **marginals,
                                                  intptr_t n_rows, const double *weight, intptr_t lane, intptr_t first,
                                                  intptr_t n, double *joint, intptr_t *stride) {
    *stride = n_rows;
    if (n_marginals == 1 && !weight) return marginals[0] + lane * sizes[0] * n_rows + first;
    *stride = SKVBEM_MESSAGE_ROWS;
    intptr_t n_cells = 1;
    for (intptr_t i = 0; i < n; i++) joint[i] = weight ? weight[first + i] : 1.0;
    for (intptr_t k = 0; k < n_marginals; k++) {
        const double *marginal = marginals[k] + lane * sizes[k] * n_rows + first;
        for (intptr_t cell = n_cells - 1; cell >= 0; cell--) {
            double before[SKVBEM_MESSAGE_ROWS];
            memcpy(before, joint + cell * SKVBEM_MESSAGE_ROWS, n * sizeof(double));
            for (intptr_t state = sizes[k] - 1; state >= 0; state--) {
                const double *restrict of_state = marginal + state * n_rows;
                double *restrict after = joint + (cell * sizes[k] + state) * SKVBEM_MESSAGE_ROWS;
                for (intptr_t i = 0; i < n; i++) after[i] = before[i] * of_state[i];
            }
        }
        n_cells *= sizes[k];
    }
    return joint;
}

/* Sums over the joint states of all others of a table (n_to, n_rest, n_codes), looked up by the code of each row, times their
 * marginals: a message (n_to, n_rows), or, where `adds`, to be added to it. */
SKVBEM_CLONES
static void skvbem_add_message(int adds, intptr_t n_to, intptr_t n_rest, intptr_t n_codes, intptr_t n_rows,
                               const double *restrict table, const int *restrict code, intptr_t n_others,
                               const intptr_t *sizes, const double **others, intptr_t lane, double *restrict joint,
                               double *restrict message) {
    intptr_t stride;
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_MESSAGE_ROWS) {
        const intptr_t n = n_rows - first < SKVBEM_MESSAGE_ROWS ? n_rows - first : SKVBEM_MESSAGE_ROWS;
        const int *restrict of_row = code + first;
        const double *shares = skvbem_joint_marginal(n_others, sizes, others, n_rows, NULL, lane, first, n, joint, &stride);
        for (intptr_t to = 0; to < n_to; to++) {
            double *restrict sum = message + to * n_rows + first;
            const double *restrict of_code = table + to * n_rest * n_codes;
            const double *restrict share = shares;
            intptr_t rest = 0;
            if (!adds) for (intptr_t i = 0; i < n; i++) sum[i] = 0.0;
            for (; rest + 3 <= n_rest; rest += 3, of_code += 3 * n_codes, share += 3 * stride)
                for (intptr_t i = 0; i < n; i++) {
                    const intptr_t at = of_row[i];
                    sum[i] += (of_code[at] * share[i] + of_code[n_codes + at] * share[stride + i])
                            + of_code[2 * n_codes + at] * share[2 * stride + i];
                }
            for (; rest < n_rest; rest++, of_code += n_codes, share += stride)
                for (intptr_t i = 0; i < n; i++) sum[i] += of_code[of_row[i]] * share[i];
        }
    }
}

/* Add the product of all marginals of a family, times weights, to counts (n_cells, n_codes): four cells side by side, so that
 * none waits for the sum of another. */
SKVBEM_CLONES
static void skvbem_add_member_counts(intptr_t n_cells, intptr_t n_codes, intptr_t n_rows, const int *restrict code,
                                     const double *weight, intptr_t n_marginals, const intptr_t *sizes,
                                     const double **marginals, intptr_t lane, double *restrict joint, double *restrict counts) {
    intptr_t stride;
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_MESSAGE_ROWS) {
        const intptr_t n = n_rows - first < SKVBEM_MESSAGE_ROWS ? n_rows - first : SKVBEM_MESSAGE_ROWS;
        const int *restrict of_row = code + first;
        skvbem_joint_marginal(n_marginals, sizes, marginals, n_rows, weight, lane, first, n, joint, &stride);
        intptr_t cell = 0;
        for (; cell + 4 <= n_cells; cell += 4) {
            double *restrict of_code = counts + cell * n_codes;
            const double *restrict share = joint + cell * SKVBEM_MESSAGE_ROWS;
            for (intptr_t i = 0; i < n; i++)
                for (intptr_t k = 0; k < 4; k++) of_code[k * n_codes + of_row[i]] += share[k * SKVBEM_MESSAGE_ROWS + i];
        }
        for (; cell < n_cells; cell++) {
            double *restrict of_code = counts + cell * n_codes;
            const double *restrict share = joint + cell * SKVBEM_MESSAGE_ROWS;
            for (intptr_t i = 0; i < n; i++) of_code[of_row[i]] += share[i];
        }
    }
}

/* Distributions (n_lanes, n_states, n_rows) from what was kept of them, times weights, (n_states, n_contexts, n_lanes), of
 * contexts from `context` on; a state keeps `least` before shares are made to sum to 1. */
SKVBEM_CLONES
static void skvbem_read_marginals(intptr_t n_states, intptr_t n_lanes, intptr_t n_contexts, intptr_t n_rows,
                                  intptr_t context, const double *restrict kept, const double *restrict weight, double least,
                                  double *restrict marginal) {
    double times[SKVBEM_MESSAGE_ROWS], total[SKVBEM_MESSAGE_ROWS];
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_MESSAGE_ROWS) {
        const intptr_t n = n_rows - first < SKVBEM_MESSAGE_ROWS ? n_rows - first : SKVBEM_MESSAGE_ROWS;
        for (intptr_t i = 0; i < n; i++) times[i] = 1.0 / weight[first + i];
        for (intptr_t lane = 0; lane < n_lanes; lane++) {
            for (intptr_t i = 0; i < n; i++) total[i] = 0.0;
            for (intptr_t state = 0; state < n_states; state++) {
                const double *restrict from = kept + (state * n_contexts + context + first) * n_lanes + lane;
                double *restrict to = marginal + (lane * n_states + state) * n_rows + first;
                for (intptr_t i = 0; i < n; i++) {
                    const double share = from[i * n_lanes] * times[i];
                    to[i] = share > least ? share : least;
                    total[i] += to[i];
                }
            }
            for (intptr_t i = 0; i < n; i++) total[i] = 1.0 / total[i];
            for (intptr_t state = 0; state < n_states; state++) {
                double *restrict to = marginal + (lane * n_states + state) * n_rows + first;
                for (intptr_t i = 0; i < n; i++) to[i] *= total[i];
            }
        }
    }
}

/* Keep distributions (n_lanes, n_states, n_rows), times weights; the reverse of `skvbem_read_marginals`. */
SKVBEM_CLONES
static void skvbem_write_marginals(intptr_t n_states, intptr_t n_lanes, intptr_t n_contexts, intptr_t n_rows,
                                   intptr_t context, const double *restrict marginal, const double *restrict weight,
                                   double *restrict kept) {
    for (intptr_t state = 0; state < n_states; state++) {
        double *restrict to = kept + (state * n_contexts + context) * n_lanes;
        for (intptr_t row = 0; row < n_rows; row++)
            for (intptr_t lane = 0; lane < n_lanes; lane++)
                to[row * n_lanes + lane] = marginal[(lane * n_states + state) * n_rows + row] * weight[row];
    }
}

/* Divide counts (n_lanes * n_states, n_rows) by the weights of rows. */
SKVBEM_CLONES
static void skvbem_divide_rows(intptr_t n, intptr_t n_rows, const double *restrict weight, double *restrict counts) {
    double times[SKVBEM_MESSAGE_ROWS];
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_MESSAGE_ROWS) {
        const intptr_t n_some = n_rows - first < SKVBEM_MESSAGE_ROWS ? n_rows - first : SKVBEM_MESSAGE_ROWS;
        for (intptr_t i = 0; i < n_some; i++) times[i] = 1.0 / weight[first + i];
        for (intptr_t k = 0; k < n; k++)
            for (intptr_t i = 0; i < n_some; i++) counts[k * n_rows + first + i] *= times[i];
    }
}

/* total (n_lanes, n_rows) += sums over states of the products of two arrays (n_lanes, n_states, n_rows) */
SKVBEM_CLONES
static void skvbem_add_products(intptr_t n_states, intptr_t n_lanes, intptr_t n_rows, const double *restrict one,
                                const double *restrict other, double *restrict total) {
    for (intptr_t lane = 0; lane < n_lanes; lane++)
        for (intptr_t state = 0; state < n_states; state++) {
            const intptr_t at = (lane * n_states + state) * n_rows;
            double *restrict of_lane = total + lane * n_rows;
            for (intptr_t i = 0; i < n_rows; i++) of_lane[i] += one[at + i] * other[at + i];
        }
}

#endif
