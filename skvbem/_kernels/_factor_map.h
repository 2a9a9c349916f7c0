/* Linear maps of the factors of rows: the one that makes them white, a step of Newton's method after it, and statistics and
 * natural parameters after a map.
 *
 * Regressors are (1, x) for q factors x, D = 1 + q. Matrices are dense, rows one after the other, but for those that are
 * said to be packed: their upper triangle, row by row. A member is a component of a lane.
 */
#ifndef SKVBEM_FACTOR_MAP_H
#define SKVBEM_FACTOR_MAP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_dense.h"
#include "_factors.h"

/* The least share of its largest entry that the diagonal of a root must have for factors to be whitened. */
#define SKVBEM_MIN_ROOT_SHARE 1e-5
/* The share of the product of two second derivatives up to which what they leave of each other is none. */
#define SKVBEM_FLAT 1e-9

/* Matrices and rows of coefficients of a component, and regressors. */
typedef struct {
    intptr_t n_matrices, n_rows, n_regressors;
} skvbem_factor_form;

/* The lower Cholesky root (q, q) of the covariance of factors whose regressors have these sums of products (D, D); the
 * identity, and 0 returned, where there are no rows or factors hardly vary in some direction. */
SKVBEM_INLINE int skvbem_root_of_factors(intptr_t q, const double *restrict of_rows, double *restrict root) {
    const intptr_t d = 1 + q;
    const double n = of_rows[0];
    double least = INFINITY, largest = 0.0;
    int usable = n > 0.0;
    memset(root, 0, (size_t) (q * q) * sizeof(double));
    for (intptr_t i = 0; i < q && usable; i++)
        for (intptr_t j = 0; j <= i; j++) {
            const double mean = of_rows[1 + i] / n;
            double rest = of_rows[(1 + i) * d + 1 + j] / n - mean * (of_rows[1 + j] / n);
            for (intptr_t h = 0; h < j; h++) rest -= root[i * q + h] * root[j * q + h];
            if (j < i) {
                root[i * q + j] = rest / root[j * q + j];
                continue;
            }
            if (!(rest > 0.0)) {
                usable = 0;
                break;
            }
            root[i * q + i] = sqrt(rest);
            least = fmin(least, root[i * q + i]);
            largest = fmax(largest, root[i * q + i]);
        }
    if (usable && least > SKVBEM_MIN_ROOT_SHARE * largest) return 1;
    memset(root, 0, (size_t) (q * q) * sizeof(double));
    for (intptr_t i = 0; i < q; i++) root[i * q + i] = 1.0;
    return 0;
}

/* C' S C for a lower triangular root C and a matrix S, all (q, q); `turned` holds q q numbers. */
SKVBEM_INLINE void skvbem_under_root(intptr_t q, const double *restrict root, const double *restrict s,
                                     double *restrict turned, double *restrict to) {
    memset(turned, 0, (size_t) (q * q) * sizeof(double));
    skvbem_add_product(q, q, q, s, root, turned);
    memset(to, 0, (size_t) (q * q) * sizeof(double));
    skvbem_add_transposed(q, q, q, root, turned, to);
}

/* The map (D, D) of regressors that makes factors white, of their root and of axes (q, q), as columns, and by how much the
 * entropy of factors and their expected log density grow, nats. Factors keep the signs that they have. */
SKVBEM_INLINE double skvbem_whitening_map(intptr_t q, const double *restrict of_rows, const double *restrict root,
                                          const double *restrict axes, double *restrict map) {
    const intptr_t d = 1 + q;
    const double n = of_rows[0];
    double gain = -0.5 * (double) q;
    memset(map, 0, (size_t) (d * d) * sizeof(double));
    map[0] = 1.0;
    for (intptr_t i = 0; i < q; i++) {  /* rows of W, W C = axes' */
        double *restrict row = map + (1 + i) * d + 1;
        for (intptr_t j = q; j-- > 0;) {
            double rest = axes[j * q + i];
            for (intptr_t h = j + 1; h < q; h++) rest -= row[h] * root[h * q + j];
            row[j] = rest / root[j * q + j];
        }
        double shift = 0.0;
        const double sign = row[i] < 0.0 ? -1.0 : 1.0;
        for (intptr_t j = 0; j < q; j++) {
            row[j] *= sign;
            shift -= row[j] * (of_rows[1 + j] / n);
        }
        row[-1] = shift;
        gain += 0.5 * of_rows[(1 + i) * d + 1 + i] / n - log(root[i * q + i]);
    }
    return n * gain;
}

/* Cells after a map (D, D) of a member's regressors: of matrices M -> T M T', of rows s -> s T'. Statistics are turned by
 * the map itself, T' is `right`; natural parameters by its transposed inverse. `halves` is how often a cell off the
 * diagonal of a packed matrix counts. `scratch` holds 3 D D numbers. */
SKVBEM_INLINE void skvbem_map_cells(const skvbem_factor_form *form, double halves, const double *restrict right,
                                    const double *restrict matrices, const double *restrict rows,
                                    double *restrict to_matrices, double *restrict to_rows, double *restrict scratch) {
    const intptr_t d = form->n_regressors, width = d * (d + 1) / 2;
    double *restrict left = scratch, *restrict dense = left + d * d, *restrict turned = dense + d * d;
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = 0; j < d; j++) left[i * d + j] = right[j * d + i];
    for (intptr_t m = 0; m < form->n_matrices; m++) {
        skvbem_unpacked(d, 1.0 / halves, matrices + m * width, dense);
        skvbem_moved(d, d, left, dense, turned, to_matrices + m * width);
        if (halves == 1.0) continue;
        double *restrict cell = to_matrices + m * width;
        for (intptr_t i = 0; i < d; i++, cell++)
            for (intptr_t j = i + 1; j < d; j++) *++cell *= halves;
    }
    memset(to_rows, 0, (size_t) (form->n_rows * d) * sizeof(double));
    skvbem_add_product(form->n_rows, d, d, rows, right, to_rows);
}

/* Doubles of scratch of the next function. */
SKVBEM_INLINE intptr_t skvbem_further_scratch(const skvbem_factor_form *form) {
    const intptr_t d = form->n_regressors;
    return 5 * d * d;
}

/* A step of Newton's method, x -> (I + E) x + b, as a map (D, D) of regressors with sums of products `of_rows`, to where
 * the bound is highest, and how much the entropy of factors and their expected log density grow by it, nats.
 *
 * `given`, `products` and `natural` are packed matrices of the prior, of statistics and of natural parameters with halves
 * added; `sums` and `of_sums` the rows of the last two. */
SKVBEM_INLINE double skvbem_newton_map(const skvbem_factor_form *form, const double *restrict of_rows,
                                       const double *restrict given, const double *restrict products,
                                       const double *restrict sums, const double *restrict natural,
                                       const double *restrict of_sums, double *restrict map, double *restrict scratch) {
    const intptr_t d = form->n_regressors, q = d - 1, width = d * (d + 1) / 2, size = d * d;
    const double n = of_rows[0], share = n > 0.0 ? n : 1.0;
    double *restrict slope = scratch, *restrict dense = slope + size, *restrict turned = dense + size;
    double *restrict both = turned + size, *restrict moved = both + size;  /* `both` [k][l] sums nu_k times squares of l */
    memset(slope, 0, (size_t) size * sizeof(double));
    memset(both, 0, (size_t) size * sizeof(double));
    for (intptr_t m = 0; m < form->n_matrices; m++) {
        const double *restrict of_prior = given + m * width;
        skvbem_unpacked(d, 0.5, natural + m * width, dense);
        skvbem_unpacked(d, 1.0, products + m * width, turned);
        for (intptr_t i = 0; i < size; i++) dense[i] *= 2.0;
        skvbem_add_product(d, d, d, dense, turned, slope);
        for (intptr_t k = 0; k < d; k++) {  /* the mean and its precision first */
            const double relevance = of_prior[skvbem_packed(d, k, k)];
            for (intptr_t l = 1; l < d; l++) both[k * d + l] -= relevance * dense[l * d + l];
        }
    }
    skvbem_add_transposed(form->n_rows, d, d, of_sums, sums, slope);
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = 0; j < d; j++) slope[i * d + j] += (i == j ? n : 0.0) - of_rows[i * d + j];

    memset(map, 0, (size_t) size * sizeof(double));
    map[0] = 1.0;
    for (intptr_t k = 1; k < d; k++) {
        map[k * d] = slope[k * d] / (share + both[k]);
        for (intptr_t l = 1; l < d; l++) {
            if (k == l) {
                map[k * d + k] = 1.0 + slope[k * d + k] / (2.0 * share);
                continue;
            }
            const double other = n + both[k * d + l], one = n + both[l * d + k];
            const double shared = n - (double) form->n_rows + both[k * d + k] + both[l * d + l];
            const double rest = one * other - shared * shared;
            if (rest > SKVBEM_FLAT * one * other)  /* turns of factors that are alike change nothing */
                map[k * d + l] = (other * slope[k * d + l] - shared * slope[l * d + k]) / rest;
        }
    }
    double change = 0.0, log_det;
    memset(turned, 0, (size_t) size * sizeof(double));
    skvbem_add_product(d, d, d, map, of_rows, turned);
    for (intptr_t k = 1; k <= q; k++) {
        change -= of_rows[k * d + k];
        for (intptr_t l = 0; l < d; l++) change += turned[k * d + l] * map[k * d + l];
    }
    memcpy(dense, map, (size_t) size * sizeof(double));
    if (!skvbem_inverse(d, dense, moved, &log_det)) return -INFINITY;
    return n * log_det - 0.5 * change;
}

#endif
