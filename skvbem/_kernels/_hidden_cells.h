/* Rows of normal distributions some of whose cells are hidden: how these hang on the others, and sums of completed rows.
 *
 * Matrices are dense, rows one after the other, but for those that are said to be packed: their upper triangle, row by row.
 */
#ifndef SKVBEM_HIDDEN_CELLS_H
#define SKVBEM_HIDDEN_CELLS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_dense.h"
#include "_factors.h"

/* x L'^-1 for x (d, m) and the lower triangular L (m, m). */
SKVBEM_INLINE void skvbem_divide_by_root(intptr_t d, intptr_t m, const double *restrict lower, double *restrict x) {
    for (intptr_t c = 0; c < m; c++)
        for (intptr_t i = 0; i < d; i++) {
            double rest = x[i * m + c];
            for (intptr_t h = 0; h < c; h++) rest -= x[i * m + h] * lower[c * m + h];
            x[i * m + c] = rest / lower[c * m + c];
        }
}

/* Of a precision matrix J (d, d) and directions B (d, m) that are hidden: root = B Q'^-1 with Q Q' = B' J B, and crossed = J
 * root. ln det(Q Q') is returned, NaN where J is not positive. `scratch` holds m m numbers. */
SKVBEM_INLINE double skvbem_hide_cells(intptr_t d, intptr_t m, const double *restrict precision,
                                       const double *restrict hidden, double *restrict root, double *restrict crossed,
                                       double *restrict scratch) {
    double log_det = 0.0;
    memset(crossed, 0, (size_t) (d * m) * sizeof(double));
    skvbem_add_product(d, d, m, precision, hidden, crossed);
    memset(scratch, 0, (size_t) (m * m) * sizeof(double));
    skvbem_add_transposed(d, m, m, hidden, crossed, scratch);
    for (intptr_t i = 0; i < m; i++)
        for (intptr_t j = 0; j <= i; j++) {
            double rest = scratch[i * m + j];
            for (intptr_t h = 0; h < j; h++) rest -= scratch[i * m + h] * scratch[j * m + h];
            if (i > j) {
                scratch[i * m + j] = rest / scratch[j * m + j];
                continue;
            }
            if (!(rest > 0.0)) return NAN;
            scratch[i * m + i] = sqrt(rest);
            log_det += log(rest);
        }
    memcpy(root, hidden, (size_t) (d * m) * sizeof(double));
    skvbem_divide_by_root(d, m, scratch, root);
    skvbem_divide_by_root(d, m, scratch, crossed);
    return log_det;
}

/* What is left of J where cells are hidden, J - crossed crossed', packed, minus half of it, halves added. */
SKVBEM_INLINE void skvbem_left_of_precision(intptr_t d, intptr_t m, const double *restrict precision,
                                            const double *restrict crossed, double *restrict packed) {
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = i; j < d; j++, packed++) {
            double left = precision[i * d + j];
            for (intptr_t c = 0; c < m; c++) left -= crossed[i * m + c] * crossed[j * m + c];
            *packed = i == j ? -0.5 * left : -left;
        }
}

/* Of a mean: shift = root crossed' mean, what the hidden cells of a row of zeros are, and linear, what is left of J times the
 * mean. */
SKVBEM_INLINE void skvbem_shift_of_hidden(intptr_t d, intptr_t m, const double *restrict precision,
                                          const double *restrict root, const double *restrict crossed,
                                          const double *restrict mean, double *restrict shift, double *restrict linear) {
    memset(shift, 0, (size_t) d * sizeof(double));
    memset(linear, 0, (size_t) d * sizeof(double));
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = 0; j < d; j++) linear[j] += precision[i * d + j] * mean[i];
    for (intptr_t c = 0; c < m; c++) {
        double along = 0.0;
        for (intptr_t i = 0; i < d; i++) along += crossed[i * m + c] * mean[i];
        for (intptr_t i = 0; i < d; i++) {
            shift[i] += along * root[i * m + c];
            linear[i] -= along * crossed[i * m + c];
        }
    }
}

/* Sums of 1, rows and packed products of rows (1 + d + d (d + 1) / 2) once rows z are completed as z - root crossed' z + shift,
 * with covariance root root'. With U = S crossed and W = U - root crossed' U / 2 products become S - root W' - W root'.
 * `scratch` holds d d + d m + m m numbers. */
SKVBEM_INLINE void skvbem_complete_cells(intptr_t d, intptr_t m, const double *restrict sums,
                                         const double *restrict root, const double *restrict crossed,
                                         const double *restrict shift, double *restrict completed,
                                         double *restrict scratch) {
    const double n = sums[0];
    double *restrict dense = scratch, *restrict w = dense + d * d, *restrict of_hidden = w + d * m;
    double *restrict of_rows = completed + 1, *restrict packed = completed + 1 + d;
    completed[0] = n;
    memcpy(of_rows, sums + 1, (size_t) d * sizeof(double));
    for (intptr_t c = 0; c < m; c++) {
        double along = 0.0;
        for (intptr_t i = 0; i < d; i++) along += crossed[i * m + c] * sums[1 + i];
        for (intptr_t i = 0; i < d; i++) of_rows[i] -= along * root[i * m + c];
    }
    skvbem_unpacked(d, 1.0, sums + 1 + d, dense);
    memset(w, 0, (size_t) (d * m) * sizeof(double));
    skvbem_add_product(d, d, m, dense, crossed, w);
    memset(of_hidden, 0, (size_t) (m * m) * sizeof(double));
    skvbem_add_transposed(d, m, m, crossed, w, of_hidden);
    for (intptr_t i = 0; i < m * m; i++) of_hidden[i] *= -0.5;
    skvbem_add_product(d, m, m, root, of_hidden, w);
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = i; j < d; j++, packed++) {
            double product = dense[i * d + j] + of_rows[i] * shift[j] + shift[i] * of_rows[j] + n * shift[i] * shift[j];
            for (intptr_t c = 0; c < m; c++)
                product += root[i * m + c] * (n * root[j * m + c] - w[j * m + c]) - w[i * m + c] * root[j * m + c];
            *packed = product;
        }
    for (intptr_t i = 0; i < d; i++) of_rows[i] += n * shift[i];
}

#endif
