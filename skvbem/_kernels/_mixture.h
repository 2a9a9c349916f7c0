/* From log joints of rows and components to what each row's components are responsible for.
 *
 * Arrays are stored component by component, rows innermost: every loop over rows is one of vectors.
 */
#ifndef SKVBEM_MIXTURE_H
#define SKVBEM_MIXTURE_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_ROWS 256

/* In place: log likelihoods (n_components, n_rows) become responsibilities, times the weights of rows.
 * Returns the sum of ln Z of the rows, times their weights. A row that no component can make has ln Z = -inf. */
SKVBEM_CLONES
static double skvbem_responsibilities(intptr_t n_components, intptr_t n_rows, const double *restrict log_weight,
                                      const double *restrict weight, double *restrict joint) {
    double top[SKVBEM_ROWS], sum[SKVBEM_ROWS], total = 0.0;
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_ROWS) {
        intptr_t n = n_rows - first < SKVBEM_ROWS ? n_rows - first : SKVBEM_ROWS;
        for (intptr_t i = 0; i < n; i++) top[i] = -INFINITY, sum[i] = 0.0;
        for (intptr_t k = 0; k < n_components; k++) {
            double *restrict row = joint + k * n_rows + first;
            double of_component = log_weight[k];
            for (intptr_t i = 0; i < n; i++) {
                double x = row[i] + of_component;
                row[i] = x;
                top[i] = x > top[i] ? x : top[i];
            }
        }
        for (intptr_t i = 0; i < n; i++) top[i] = top[i] == -INFINITY ? 0.0 : top[i];
        for (intptr_t k = 0; k < n_components; k++) {
            double *restrict row = joint + k * n_rows + first;
            for (intptr_t i = 0; i < n; i++) {
                double e = skvbem_exp(row[i] - top[i]);
                row[i] = e;
                sum[i] += e;
            }
        }
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

#endif
