/* Tilted bounds of expected log-sum-exps of rows, summed over a design: blocks of rows, every loop over rows one of vectors.
 *
 * Log odds against the last label have a mean m and a covariance V = L L' in a row. The bound is least over a tilt, of which
 * it needs b = L' tilt alone: min_b |b|^2 / 2 + ln (1 + sum_i exp(m_i + V_ii / 2 - (L b)_i)), whose curvature is at least 1
 * in every direction, so that steps of Newton are safe.
 */
#ifndef SKVBEM_SOFTMAX_H
#define SKVBEM_SOFTMAX_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_lanes.h"

/* Rows of a block, partial sums of one, steps of a tilt, halvings of one, and the largest square of a change that is none. */
#define SKVBEM_TILT_ROWS 64
#define SKVBEM_TILT_PARTS 8
#define SKVBEM_TILT_STEPS 24
#define SKVBEM_TILT_HALVINGS 40
#define SKVBEM_TILT_CHANGE 1e-26

typedef struct {
    intptr_t n, p, c; /* patterns, regressors, labels less 1 */
    const double *regressors, *weight;
    double *of_rows; /* (n,): where bounds of rows are written, less the mean of the last label; or NULL */
} skvbem_design;

/* Numbers that a pass needs room for. */
SKVBEM_INLINE intptr_t skvbem_tilt_room(intptr_t c, intptr_t p) {
    const intptr_t pairs = c * (c + 1) / 2, products = p * (p + 1) / 2;
    return SKVBEM_TILT_ROWS * (2 * pairs + 6 * c + p + 7) + SKVBEM_TILT_PARTS * ((c + 1) * p + pairs * products + 1);
}

/* The lower triangle of a matrix at (i, j), j <= i, of rows. */
#define AT(matrix, i, j) ((matrix) + ((i) * ((i) + 1) / 2 + (j)) * SKVBEM_TILT_ROWS)
#define EACH_ROW for (intptr_t r = 0; r < SKVBEM_TILT_ROWS; r++)

/* In place: exponents (c, rows) become probabilities of all labels but the last, whose exponent is 0; `log_sum` their ln. */
SKVBEM_INLINE void skvbem_tilt_softmax(intptr_t c, double *restrict w, double *restrict log_sum, double *restrict top) {
    EACH_ROW top[r] = 0.0;
    for (intptr_t i = 0; i < c; i++) EACH_ROW top[r] = skvbem_at_least(w[i * SKVBEM_TILT_ROWS + r], top[r]);
    EACH_ROW log_sum[r] = skvbem_exp(-top[r]);
    for (intptr_t i = 0; i < c; i++)
        EACH_ROW {
            const double share = skvbem_exp(w[i * SKVBEM_TILT_ROWS + r] - top[r]);
            w[i * SKVBEM_TILT_ROWS + r] = share;
            log_sum[r] += share;
        }
    EACH_ROW {
        const double sum = log_sum[r];
        log_sum[r] = top[r] + skvbem_log(sum);
        top[r] = 1.0 / sum;
    }
    for (intptr_t i = 0; i < c; i++) EACH_ROW w[i * SKVBEM_TILT_ROWS + r] *= top[r];
}

/* The bound of each row at b, and the probabilities there. */
SKVBEM_INLINE void skvbem_tilt_look(intptr_t c, const double *restrict center, const double *restrict root,
                                    const double *restrict b, double *restrict w, double *restrict bound,
                                    double *restrict top) {
    for (intptr_t i = 0; i < c; i++) {
        double *restrict of_label = w + i * SKVBEM_TILT_ROWS;
        EACH_ROW of_label[r] = center[i * SKVBEM_TILT_ROWS + r];
        for (intptr_t j = 0; j <= i; j++) EACH_ROW of_label[r] -= AT(root, i, j)[r] * b[j * SKVBEM_TILT_ROWS + r];
    }
    skvbem_tilt_softmax(c, w, bound, top);
    for (intptr_t i = 0; i < c; i++) EACH_ROW bound[r] += 0.5 * b[i * SKVBEM_TILT_ROWS + r] * b[i * SKVBEM_TILT_ROWS + r];
}

/* The root L of symmetric matrices of rows, in place of their lower triangles; 0 where a pivot is not positive. */
SKVBEM_INLINE void skvbem_tilt_root(intptr_t c, double *restrict matrix, double *restrict inverse) {
    for (intptr_t j = 0; j < c; j++)
        for (intptr_t i = j; i < c; i++) {
            double *restrict here = AT(matrix, i, j);
            for (intptr_t q = 0; q < j; q++) EACH_ROW here[r] -= AT(matrix, i, q)[r] * AT(matrix, j, q)[r];
            if (i == j) {
                EACH_ROW here[r] = sqrt(skvbem_at_least(here[r], 0.0));
                EACH_ROW inverse[j * SKVBEM_TILT_ROWS + r] = here[r] > 0.0 ? 1.0 / here[r] : 0.0;
            } else {
                EACH_ROW here[r] *= inverse[j * SKVBEM_TILT_ROWS + r];
            }
        }
}

/* Newton's step of b, from probabilities w: (1 + L' (diag w - w w') L)^-1 (L' w - b). In how many rows it would change
 * probabilities is returned; if in none, the step is not made. */
SKVBEM_INLINE intptr_t skvbem_tilt_step(intptr_t c, const double *restrict root, const double *restrict scale,
                                      const double *restrict w, const double *restrict b, double *restrict mean,
                                      double *restrict step, double *restrict matrix, double *restrict inverse,
                                      double *restrict rest) {
    intptr_t n_changed = 0;
    EACH_ROW rest[r] = 0.0;
    for (intptr_t j = 0; j < c; j++) {
        double *restrict of_axis = mean + j * SKVBEM_TILT_ROWS, *restrict to = step + j * SKVBEM_TILT_ROWS;
        EACH_ROW of_axis[r] = 0.0;
        for (intptr_t i = j; i < c; i++) EACH_ROW of_axis[r] += AT(root, i, j)[r] * w[i * SKVBEM_TILT_ROWS + r];
        EACH_ROW to[r] = of_axis[r] - b[j * SKVBEM_TILT_ROWS + r];
        EACH_ROW rest[r] += to[r] * to[r];
    }
    EACH_ROW n_changed += rest[r] * scale[r] > SKVBEM_TILT_CHANGE * (1.0 + 1e-4 * scale[r] * scale[r]);
    if (!n_changed) return 0;
    for (intptr_t i = 0; i < c; i++)
        for (intptr_t j = 0; j <= i; j++) {
            double *restrict here = AT(matrix, i, j);
            EACH_ROW here[r] = (i == j) - mean[i * SKVBEM_TILT_ROWS + r] * mean[j * SKVBEM_TILT_ROWS + r];
            for (intptr_t q = i; q < c; q++)
                EACH_ROW here[r] += w[q * SKVBEM_TILT_ROWS + r] * AT(root, q, i)[r] * AT(root, q, j)[r];
        }
    skvbem_tilt_root(c, matrix, inverse);
    for (intptr_t i = 0; i < c; i++) {
        double *restrict to = step + i * SKVBEM_TILT_ROWS;
        for (intptr_t j = 0; j < i; j++) EACH_ROW to[r] -= AT(matrix, i, j)[r] * step[j * SKVBEM_TILT_ROWS + r];
        EACH_ROW to[r] *= inverse[i * SKVBEM_TILT_ROWS + r];
    }
    for (intptr_t i = c - 1; i >= 0; i--) {
        double *restrict to = step + i * SKVBEM_TILT_ROWS;
        for (intptr_t j = i + 1; j < c; j++) EACH_ROW to[r] -= AT(matrix, j, i)[r] * step[j * SKVBEM_TILT_ROWS + r];
        EACH_ROW to[r] *= inverse[i * SKVBEM_TILT_ROWS + r];
    }
    return n_changed;
}

/* The least bound of each row, and the probabilities there. `center` (c, rows) are means, which gain half of the
 * variances; covariances become their roots. Room for c (c + 1) / 2 + 4 c + 4 numbers of each row. */
SKVBEM_INLINE void skvbem_tilt_least(intptr_t c, double *restrict center, double *restrict root, double *restrict w,
                                     double *restrict bound, double *restrict room) {
    double *restrict matrix = room, *restrict b = AT(matrix, c, 0), *restrict step = b + c * SKVBEM_TILT_ROWS;
    double *restrict mean = step + c * SKVBEM_TILT_ROWS, *restrict inverse = mean + c * SKVBEM_TILT_ROWS;
    double *restrict scale = inverse + c * SKVBEM_TILT_ROWS, *restrict rest = scale + SKVBEM_TILT_ROWS;
    double *restrict before = rest + SKVBEM_TILT_ROWS, *restrict top = before + SKVBEM_TILT_ROWS;
    memcpy(w, center, (size_t) (c * SKVBEM_TILT_ROWS) * sizeof(double));
    skvbem_tilt_softmax(c, w, bound, top);
    EACH_ROW scale[r] = 0.0;
    for (intptr_t i = 0; i < c; i++)
        EACH_ROW {
            center[i * SKVBEM_TILT_ROWS + r] += 0.5 * AT(root, i, i)[r];
            scale[r] += AT(root, i, i)[r];
        }
    skvbem_tilt_root(c, root, inverse);
    for (intptr_t j = 0; j < c; j++) {
        double *restrict of_axis = b + j * SKVBEM_TILT_ROWS;
        EACH_ROW of_axis[r] = 0.0;
        for (intptr_t i = j; i < c; i++) EACH_ROW of_axis[r] += AT(root, i, j)[r] * w[i * SKVBEM_TILT_ROWS + r];
    }
    skvbem_tilt_look(c, center, root, b, w, bound, top);
    for (int taken = 0; taken < SKVBEM_TILT_STEPS; taken++) {
        if (!skvbem_tilt_step(c, root, scale, w, b, mean, step, matrix, inverse, rest)) return;
        memcpy(before, bound, SKVBEM_TILT_ROWS * sizeof(double));
        for (intptr_t i = 0; i < c * SKVBEM_TILT_ROWS; i++) b[i] += step[i];
        for (int halving = 0; halving < SKVBEM_TILT_HALVINGS; halving++) {
            intptr_t n_higher = 0;
            skvbem_tilt_look(c, center, root, b, w, bound, top);
            EACH_ROW rest[r] = bound[r] > before[r] + 1e-14 * (1.0 + fabs(before[r])) ? 0.5 : 0.0;
            EACH_ROW n_higher += rest[r] > 0.0;
            if (!n_higher) break;
            for (intptr_t i = 0; i < c; i++)
                EACH_ROW {
                    const double back = rest[r] * step[i * SKVBEM_TILT_ROWS + r];
                    b[i * SKVBEM_TILT_ROWS + r] -= back;
                    step[i * SKVBEM_TILT_ROWS + r] -= back;
                }
        }
    }
}

/* Add products of numbers of rows to partial sums, always in the same order. */
SKVBEM_INLINE void skvbem_add_parts(const double *restrict x, const double *restrict y, double *restrict parts) {
    for (intptr_t r = 0; r < SKVBEM_TILT_ROWS; r += SKVBEM_TILT_PARTS)
        for (intptr_t l = 0; l < SKVBEM_TILT_PARTS; l++) parts[l] += x[r + l] * y[r + l];
}

/* The mean bound over a design but for the mean of the last label, with sums of probabilities times regressors (c, p), of
 * regressors after them (p,), and of covariances of labels times products of regressors (pairs, products), of both the lower
 * triangles.
 *
 * `mean` (c, p) are coefficients of log odds against the last label, `covariance` (pairs, products) those of a row's
 * covariances by products of its regressors, or NULL at points. */
SKVBEM_CLONES
static double skvbem_tilt_pass(const skvbem_design *design, const double *restrict mean, const double *restrict covariance,
                               double *restrict slope, double *restrict curvature, double *restrict room) {
    const intptr_t c = design->c, p = design->p, pairs = c * (c + 1) / 2, products = p * (p + 1) / 2;
    double *restrict parts = (double *) (((uintptr_t) room + 63) & ~(uintptr_t) 63), *restrict root = parts + SKVBEM_TILT_PARTS * ((c + 1) * p + pairs * products);
    double *restrict center = root + pairs * SKVBEM_TILT_ROWS, *restrict w = center + c * SKVBEM_TILT_ROWS;
    double *restrict u = w + c * SKVBEM_TILT_ROWS, *restrict bound = u + p * SKVBEM_TILT_ROWS;
    double *restrict weight = bound + SKVBEM_TILT_ROWS, *restrict product = weight + SKVBEM_TILT_ROWS;
    double *restrict rest = product + SKVBEM_TILT_ROWS, value = 0.0;
    memset(parts, 0, (size_t) (SKVBEM_TILT_PARTS * ((c + 1) * p + pairs * products)) * sizeof(double));
    for (intptr_t first = 0; first < design->n; first += SKVBEM_TILT_ROWS) {
        const intptr_t n = design->n - first < SKVBEM_TILT_ROWS ? design->n - first : SKVBEM_TILT_ROWS;
        EACH_ROW {
            const double *of_row = design->regressors + (first + (r < n ? r : 0)) * p; /* rows beyond the last count 0 */
            weight[r] = r < n ? design->weight[first + r] : 0.0;
            for (intptr_t s = 0; s < p; s++) u[s * SKVBEM_TILT_ROWS + r] = of_row[s];
        }
        for (intptr_t i = 0; i < c; i++) {
            double *restrict of_label = center + i * SKVBEM_TILT_ROWS;
            EACH_ROW of_label[r] = 0.0;
            for (intptr_t s = 0; s < p; s++) EACH_ROW of_label[r] += mean[i * p + s] * u[s * SKVBEM_TILT_ROWS + r];
        }
        if (covariance != NULL) {
            memset(root, 0, (size_t) (pairs * SKVBEM_TILT_ROWS) * sizeof(double));
            for (intptr_t s = 0, at = 0; s < p; s++)
                for (intptr_t t = 0; t <= s; t++, at++) {
                    EACH_ROW product[r] = u[s * SKVBEM_TILT_ROWS + r] * u[t * SKVBEM_TILT_ROWS + r];
                    for (intptr_t pair = 0; pair < pairs; pair++) {
                        const double factor = covariance[pair * products + at];
                        EACH_ROW root[pair * SKVBEM_TILT_ROWS + r] += factor * product[r];
                    }
                }
            skvbem_tilt_least(c, center, root, w, bound, rest);
        } else {
            memcpy(w, center, (size_t) (c * SKVBEM_TILT_ROWS) * sizeof(double));
            skvbem_tilt_softmax(c, w, bound, rest);
        }
        for (intptr_t r = 0; r < n; r++) value += weight[r] * bound[r];
        if (design->of_rows != NULL) memcpy(design->of_rows + first, bound, (size_t) n * sizeof(double));
        for (intptr_t i = 0, pair = 0; i < c; i++)
            for (intptr_t j = 0; j <= i; j++, pair++)
                EACH_ROW root[pair * SKVBEM_TILT_ROWS + r] = weight[r] * w[i * SKVBEM_TILT_ROWS + r]
                                                             * ((i == j) - w[j * SKVBEM_TILT_ROWS + r]);
        for (intptr_t i = 0; i < c; i++) EACH_ROW w[i * SKVBEM_TILT_ROWS + r] *= weight[r];
        for (intptr_t i = 0; i <= c; i++)
            for (intptr_t s = 0; s < p; s++)
                skvbem_add_parts(i < c ? w + i * SKVBEM_TILT_ROWS : weight, u + s * SKVBEM_TILT_ROWS,
                                 parts + (i * p + s) * SKVBEM_TILT_PARTS);
        for (intptr_t s = 0, at = 0; s < p; s++)
            for (intptr_t t = 0; t <= s; t++, at++) {
                EACH_ROW product[r] = u[s * SKVBEM_TILT_ROWS + r] * u[t * SKVBEM_TILT_ROWS + r];
                for (intptr_t pair = 0; pair < pairs; pair++)
                    skvbem_add_parts(root + pair * SKVBEM_TILT_ROWS, product,
                                     parts + ((c + 1) * p + pair * products + at) * SKVBEM_TILT_PARTS);
            }
    }
    for (intptr_t i = 0; i < (c + 1) * p + pairs * products; i++) {
        double *to = i < (c + 1) * p ? slope + i : curvature + (i - (c + 1) * p);
        *to = 0.0;
        for (intptr_t l = 0; l < SKVBEM_TILT_PARTS; l++) *to += parts[i * SKVBEM_TILT_PARTS + l];
    }
    return value;
}

#undef AT
#undef EACH_ROW

#endif
