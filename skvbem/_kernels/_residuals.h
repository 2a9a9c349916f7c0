/* What rows of sequences add to the log density at given states: squares of residuals, and quadratic forms of spreads.
 *
 * Some rows at a time are turned so that numbers of one kind stand together: every loop over rows is one of vectors.
 */
#ifndef SKVBEM_RESIDUALS_H
#define SKVBEM_RESIDUALS_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_RESIDUAL_ROWS 64

typedef struct {
    intptr_t n_columns, n_groups, n_states, n_output_inputs, n_inputs;
    const double *output, *precision, *constant; /* (n_columns, d), d = n_states + n_output_inputs; (n_columns,) */
    const long long *group;                      /* (n_columns,): which of the groups a column is in */
    const double *spread;                        /* (n_groups, d, d) */
    const double *transition, *transition_spread; /* (n_states, e), e = n_states + n_inputs; (e, e) */
    const double *measured, *observed;           /* (n_rows, n_columns); (n_rows, n_groups), or NULL: all are */
    const double *regressors, *inputs;           /* (n_rows, d); (n_rows, n_inputs) */
    const double *follows;                       /* (n_rows,): 0 where a sequence begins; or NULL: at row 0 alone */
} skvbem_residual_rows;

/* Doubles of scratch. */
SKVBEM_INLINE intptr_t skvbem_residual_scratch(const skvbem_residual_rows *run) {
    return SKVBEM_RESIDUAL_ROWS * (2 * run->n_states + run->n_output_inputs + run->n_inputs + run->n_groups + 1);
}

/* turned[i, b] = rows[b, i] of n rows of `width` numbers, of which `some` are taken */
SKVBEM_INLINE void skvbem_turned(intptr_t n, intptr_t width, intptr_t some, const double *restrict rows,
                                 double *restrict turned) {
    for (intptr_t b = 0; b < n; b++)
        for (intptr_t i = 0; i < some; i++) turned[i * SKVBEM_RESIDUAL_ROWS + b] = rows[b * width + i];
}

/* left -= coefficients x, of d turned numbers x */
SKVBEM_INLINE void skvbem_less_products(intptr_t d, const double *restrict coefficients, const double *restrict x,
                                        double *restrict left) {
    for (intptr_t i = 0; i < d; i++) {
        const double c = coefficients[i];
        for (intptr_t b = 0; b < SKVBEM_RESIDUAL_ROWS; b++) left[b] -= c * x[i * SKVBEM_RESIDUAL_ROWS + b];
    }
}

/* total -= factor x' S x, S symmetric (d, d); `part` is scratch */
SKVBEM_INLINE void skvbem_less_form(intptr_t d, double factor, const double *restrict s, const double *restrict x,
                                    double *restrict part, double *restrict total) {
    for (intptr_t i = 0; i < d; i++) {
        const double *restrict here = x + i * SKVBEM_RESIDUAL_ROWS;
        for (intptr_t b = 0; b < SKVBEM_RESIDUAL_ROWS; b++) part[b] = s[i * d + i] * here[b];
        for (intptr_t l = 0; l < i; l++) {
            const double twice = 2.0 * s[i * d + l];
            for (intptr_t b = 0; b < SKVBEM_RESIDUAL_ROWS; b++) part[b] += twice * x[l * SKVBEM_RESIDUAL_ROWS + b];
        }
        for (intptr_t b = 0; b < SKVBEM_RESIDUAL_ROWS; b++) total[b] -= factor * here[b] * part[b];
    }
}

/* Of n rows, no more than SKVBEM_RESIDUAL_ROWS, from row `first`: ln p(y, x | x before, inputs) but for ln 2 pi of x. */
SKVBEM_CLONES
static void skvbem_some_terms(const skvbem_residual_rows *run, intptr_t first, intptr_t n, double *restrict scratch,
                              double *restrict terms) {
    enum { B = SKVBEM_RESIDUAL_ROWS };
    const intptr_t k = run->n_states, d = k + run->n_output_inputs, q = run->n_inputs, e = k + q;
    const intptr_t p = run->n_columns, before = first > 0 ? first - 1 : 0, skipped = first > 0 ? 0 : 1;
    double *restrict x = scratch, *restrict z = x + d * B, *restrict of_group = z + e * B;
    double *restrict part = of_group + run->n_groups * B, left[B], total[B];
    if (n < B) memset(scratch, 0, (size_t) ((d + e) * B) * sizeof(double));
    skvbem_turned(n, d, d, run->regressors + first * d, x);
    for (intptr_t i = 0; i < e; i++) z[i * B] = 0.0;
    skvbem_turned(n - skipped, d, k, run->regressors + before * d, z + skipped);
    skvbem_turned(n - skipped, q, q, run->inputs + (first + skipped) * q, z + k * B + skipped);
    memset(of_group, 0, (size_t) (run->n_groups * B) * sizeof(double));
    for (intptr_t j = 0; j < p; j++) {
        double *restrict sum = of_group + run->group[j] * B;
        const double half = -0.5 * run->precision[j], constant = run->constant[j];
        for (intptr_t b = 0; b < B; b++) left[b] = 0.0;
        for (intptr_t b = 0; b < n; b++) left[b] = run->measured[(first + b) * p + j];
        skvbem_less_products(d, run->output + j * d, x, left);
        for (intptr_t b = 0; b < B; b++) sum[b] += half * left[b] * left[b] + constant;
    }
    for (intptr_t b = 0; b < B; b++) total[b] = 0.0;
    for (intptr_t g = 0; g < run->n_groups; g++) {
        double *restrict sum = of_group + g * B;
        skvbem_less_form(d, 0.5, run->spread + g * d * d, x, part, sum);
        for (intptr_t b = 0; b < n; b++)
            total[b] += run->observed ? run->observed[(first + b) * run->n_groups + g] * sum[b] : sum[b];
    }
    double *restrict steps = of_group;
    for (intptr_t b = 0; b < B; b++) steps[b] = 0.0;
    for (intptr_t i = 0; i < k; i++) {
        for (intptr_t b = 0; b < B; b++) left[b] = x[i * B + b];
        skvbem_less_products(e, run->transition + i * e, z, left);
        for (intptr_t b = 0; b < B; b++) steps[b] -= left[b] * left[b];
    }
    skvbem_less_form(e, 1.0, run->transition_spread, z, part, steps);
    for (intptr_t b = 0; b < n; b++) {
        const double follows = first + b == 0 ? 0.0 : run->follows ? run->follows[first + b] : 1.0;
        terms[first + b] = total[b] + 0.5 * follows * steps[b];
    }
}

#endif
