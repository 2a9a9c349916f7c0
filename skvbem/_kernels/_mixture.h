/* From log joints of rows and components to what each row's components are responsible for.
 *
 * Arrays are stored component by component, rows innermost: every loop over rows is one of vectors.
 */
#ifndef SKVBEM_MIXTURE_H
#define SKVBEM_MIXTURE_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_ROWS 256

/* In place: log likelihoods (n_components, n_rows) become joint probabilities over the largest of each row; `top` (n_rows,)
 * its logarithm, `sum` that of all components. */
SKVBEM_INLINE void skvbem_joint(intptr_t n_components, intptr_t n, intptr_t stride, const double *restrict log_weight,
                                double *restrict joint, double *restrict top, double *restrict sum) {
    for (intptr_t i = 0; i < n; i++) top[i] = -INFINITY, sum[i] = 0.0;
    for (intptr_t k = 0; k < n_components; k++) {
        double *restrict row = joint + k * stride;
        double of_component = log_weight[k];
        for (intptr_t i = 0; i < n; i++) {
            double x = row[i] + of_component;
            row[i] = x;
            top[i] = x > top[i] ? x : top[i];
        }
    }
    for (intptr_t i = 0; i < n; i++) top[i] = top[i] == -INFINITY ? 0.0 : top[i];
    for (intptr_t k = 0; k < n_components; k++) {
        double *restrict row = joint + k * stride;
        for (intptr_t i = 0; i < n; i++) {
            double e = skvbem_exp(row[i] - top[i]);
            row[i] = e;
            sum[i] += e;
        }
    }
}

/* In place: log likelihoods (n_components, n_rows) become responsibilities, times the weights of rows.
 * Returns the sum of ln Z of the rows, times their weights. A row that no component can make has ln Z = -inf. */
SKVBEM_CLONES
static double skvbem_responsibilities(intptr_t n_components, intptr_t n_rows, const double *restrict log_weight,
                                      const double *restrict weight, double *restrict joint) {
    double top[SKVBEM_ROWS], sum[SKVBEM_ROWS], total = 0.0;
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_ROWS) {
        intptr_t n = n_rows - first < SKVBEM_ROWS ? n_rows - first : SKVBEM_ROWS;
        skvbem_joint(n_components, n, n_rows, log_weight, joint + first, top, sum);
        for (intptr_t i = 0; i < n; i++) {
            double w = weight[first + i], possible = sum[i] > 0.0 ? sum[i] : 1.0;
            double z = top[i] + skvbem_log(possible);
            z = sum[i] > 0.0 ? z : -INFINITY;
            top[i] = w > 0.0 ? w * z : 0.0;
            sum[i] = w / possible;
        }
        for (intptr_t i = 0; i < n; i++) total += top[i];
        for (intptr_t k = 0; k < n_components; k++) {
            double *restrict row = joint + k * n_rows + first;
            for (intptr_t i = 0; i < n; i++) row[i] *= sum[i];
        }
    }
    return total;
}

/* In place: log likelihoods (n_components, n_rows) become counts of components drawn, of a row as many as it counts.
 * Returns the sum of ln Z of the rows, times their weights. Rows take numbers of the stream one after the other, so that
 * draws do not depend on how rows are cut into blocks. A row that no component can make is in the last one. */
SKVBEM_CLONES
static double skvbem_draw_components(intptr_t n_components, intptr_t n_rows, const double *restrict log_weight,
                                     const double *restrict weight, skvbem_stream *stream, double *restrict joint) {
    double top[SKVBEM_ROWS], sum[SKVBEM_ROWS], draw[SKVBEM_ROWS], reached[SKVBEM_ROWS], total = 0.0;
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_ROWS) {
        const intptr_t n = n_rows - first < SKVBEM_ROWS ? n_rows - first : SKVBEM_ROWS;
        const double *restrict times = weight + first;
        double *restrict here = joint + first;
        skvbem_joint(n_components, n, n_rows, log_weight, here, top, sum);
        for (intptr_t i = 0; i < n; i++) {
            const double possible = sum[i] > 0.0 ? sum[i] : 1.0;
            const double z = sum[i] > 0.0 ? top[i] + skvbem_log(possible) : -INFINITY;
            top[i] = times[i] > 0.0 ? times[i] * z : 0.0;
        }
        for (intptr_t i = 0; i < n; i++) total += top[i];
        for (intptr_t i = 0; i < n; i++) {
            reached[i] = 0.0;
            draw[i] = 0.0;
            if (times[i] == 1.0)
                draw[i] = skvbem_uniform(stream) * sum[i];
            else if (times[i] > 1.0)
                skvbem_multinomial(stream, times[i], n_components, here + i, n_rows, sum[i]);
        }
        for (intptr_t k = 0; k < n_components; k++) {
            double *restrict row = here + k * n_rows;
            const int is_last = k == n_components - 1;
            for (intptr_t i = 0; i < n; i++) {
                const double before = reached[i], after = before + row[i];
                const double hit = (draw[i] >= before) & ((draw[i] < after) | is_last) ? times[i] : 0.0;
                reached[i] = after;
                row[i] = times[i] > 1.0 ? row[i] : hit;
            }
        }
    }
    return total;
}

#endif
