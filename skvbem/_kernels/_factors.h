/* Many small precision matrices inverted; and factors of rows: of each pattern of observed cells their covariance, of each row their means, and sums of their moments.
 *
 * Arrays hold one cell after the other, patterns or rows innermost, and patterns are inverted some at a time, so that
 * loops are of vectors. Symmetric matrices of q factors are packed, the upper triangle row by row.
 */
#ifndef SKVBEM_FACTORS_H
#define SKVBEM_FACTORS_H

#include <math.h>
#include <stdint.h>

#include "_lanes.h"

/* Matrices inverted, and rows looked at, together. */
#define SKVBEM_INVERTED 32
#define SKVBEM_FACTOR_ROWS 64

/* Where (a, b), a <= b, stands in a packed matrix of q rows. */
SKVBEM_INLINE intptr_t skvbem_packed(intptr_t q, intptr_t a, intptr_t b) { return a * (2 * q - a - 1) / 2 + b; }

/* A packed symmetric matrix as a dense one, cells off the diagonal times `factor`. */
SKVBEM_INLINE void skvbem_unpacked(intptr_t d, double factor, const double *restrict packed, double *restrict dense) {
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = i; j < d; j++, packed++) dense[i * d + j] = dense[j * d + i] = i == j ? *packed : factor * *packed;
}

/* Of m matrices, as `skvbem_invert` takes them; m is known to the compiler where there are as many as are inverted
 * together. */
SKVBEM_INLINE void skvbem_invert_some(intptr_t q, intptr_t n, intptr_t first, const intptr_t m,
                                      const double *restrict precision, double *restrict root,
                                      double *restrict covariance, double *restrict log_root, double *restrict scratch) {
    const intptr_t width = q * (q + 1) / 2, at_once = SKVBEM_INVERTED;
    double *restrict lower = scratch, *restrict inverse = scratch + width * at_once;
    double sum[SKVBEM_INVERTED];
    for (intptr_t i = 0; i < m; i++) sum[i] = 0.0;
    for (intptr_t b = 0; b < q; b++)
        for (intptr_t c = b; c < q; c++) {  /* L[c][b] at the place of (b, c) */
            double *restrict to = lower + skvbem_packed(q, b, c) * at_once;
            const double *restrict from = precision + skvbem_packed(q, b, c) * n + first;
            double rest[SKVBEM_INVERTED];  /* in registers, which memory written and read again is not */
            for (intptr_t i = 0; i < m; i++) rest[i] = from[i];
            for (intptr_t a = 0; a < b; a++) {
                const double *restrict one = lower + skvbem_packed(q, a, b) * at_once;
                const double *restrict two = lower + skvbem_packed(q, a, c) * at_once;
                for (intptr_t i = 0; i < m; i++) rest[i] -= one[i] * two[i];
            }
            if (b == c) {
                double *restrict of_diagonal = inverse + skvbem_packed(q, b, b) * at_once;
                for (intptr_t i = 0; i < m; i++) {
                    to[i] = rest[i] > 0.0 ? sqrt(rest[i]) : NAN;
                    of_diagonal[i] = 1.0 / to[i];
                    sum[i] -= skvbem_log(to[i]) + 0.0 * to[i];  /* NaN stays NaN */
                }
            } else {
                const double *restrict of_diagonal = inverse + skvbem_packed(q, b, b) * at_once;
                for (intptr_t i = 0; i < m; i++) to[i] = rest[i] * of_diagonal[i];
            }
        }
    for (intptr_t a = 0; a < q; a++)
        for (intptr_t c = a + 1; c < q; c++) {  /* R[c][a] = -R[c][c] sum over a <= b < c of L[c][b] R[b][a] */
            double *restrict to = inverse + skvbem_packed(q, a, c) * at_once;
            double dot[SKVBEM_INVERTED];
            for (intptr_t i = 0; i < m; i++) dot[i] = 0.0;
            for (intptr_t b = a; b < c; b++) {
                const double *restrict one = lower + skvbem_packed(q, b, c) * at_once;
                const double *restrict two = inverse + skvbem_packed(q, a, b) * at_once;
                for (intptr_t i = 0; i < m; i++) dot[i] -= one[i] * two[i];
            }
            const double *restrict of_diagonal = inverse + skvbem_packed(q, c, c) * at_once;
            for (intptr_t i = 0; i < m; i++) to[i] = dot[i] * of_diagonal[i];
        }
    for (intptr_t a = 0; a < q; a++)
        for (intptr_t b = a; b < q; b++) {
            double *restrict to = covariance + skvbem_packed(q, a, b) * n + first;
            if (root)
                for (intptr_t i = 0; i < m; i++)
                    root[skvbem_packed(q, a, b) * n + first + i] = inverse[skvbem_packed(q, a, b) * at_once + i];
            double dot[SKVBEM_INVERTED];
            for (intptr_t i = 0; i < m; i++) dot[i] = 0.0;
            for (intptr_t c = b; c < q; c++) {
                const double *restrict one = inverse + skvbem_packed(q, a, c) * at_once;
                const double *restrict two = inverse + skvbem_packed(q, b, c) * at_once;
                for (intptr_t i = 0; i < m; i++) dot[i] += one[i] * two[i];
            }
            for (intptr_t i = 0; i < m; i++) to[i] = dot[i];
        }
    for (intptr_t i = 0; i < m; i++) log_root[first + i] = sum[i];
}

/* Of precision matrices: the inverse of the lower Cholesky factor R, R[b][a] for a <= b at the place of (a, b), the
 * covariance R^T R, and the sum of the logarithms of the diagonal of R. NaN where a precision is not positive; `root` may
 * be NULL. `precision`, `root`, `covariance` (q (q + 1) / 2, n), `log_root` (n,); `scratch` q (q + 1) times as many as are inverted
 * together. */
SKVBEM_CLONES
static void skvbem_invert(intptr_t q, intptr_t n, const double *restrict precision, double *restrict root,
                          double *restrict covariance, double *restrict log_root, double *restrict scratch) {
    intptr_t first = 0;
    for (; first + SKVBEM_INVERTED <= n; first += SKVBEM_INVERTED)
        skvbem_invert_some(q, n, first, SKVBEM_INVERTED, precision, root, covariance, log_root, scratch);
    if (first < n) skvbem_invert_some(q, n, first, n - first, precision, root, covariance, log_root, scratch);
}

/* Of m rows, as `skvbem_locate_factors` takes them. */
SKVBEM_INLINE void skvbem_locate_some(intptr_t q, intptr_t n, intptr_t n_patterns, intptr_t first, const intptr_t m,
                                      const int *restrict pattern, const double *restrict first_row,
                                      const double *restrict covariance, const double *restrict constant,
                                      double *restrict regressors, double *restrict log_likelihood,
                                      double *restrict scratch) {
    const intptr_t width = q * (q + 1) / 2, at_once = SKVBEM_FACTOR_ROWS;
    double *restrict of_rows = scratch, *restrict mean = scratch + width * at_once;
    double *restrict log_z = log_likelihood + first;
    for (intptr_t i = 0; i < m; i++) {
        log_z[i] += regressors[first + i] + constant[pattern ? pattern[first + i] : 0];
        regressors[first + i] = 1.0;
    }
    if (pattern)
        for (intptr_t cell = 0; cell < width; cell++)
            for (intptr_t i = 0; i < m; i++)
                of_rows[cell * at_once + i] = covariance[cell * n_patterns + pattern[first + i]];
    for (intptr_t a = 0; a < q; a++) {
        double *restrict h = regressors + (1 + a) * n + first;
        const double *restrict shift = first_row + (1 + a) * n_patterns;
        for (intptr_t i = 0; i < m; i++) h[i] += 2.0 * shift[pattern ? pattern[first + i] : 0];
    }
    for (intptr_t a = 0; a < q; a++) {
        double *restrict to = mean + a * at_once, sum[SKVBEM_FACTOR_ROWS];  /* in registers, which memory is not */
        const double *restrict h_a = regressors + (1 + a) * n + first;
        for (intptr_t i = 0; i < m; i++) sum[i] = 0.0;
        for (intptr_t b = 0; b < q; b++) {
            const intptr_t cell = a < b ? skvbem_packed(q, a, b) : skvbem_packed(q, b, a);
            const double *restrict h = regressors + (1 + b) * n + first;
            if (pattern) {
                const double *restrict each = of_rows + cell * at_once;
                for (intptr_t i = 0; i < m; i++) sum[i] += each[i] * h[i];
            } else {
                const double same = covariance[cell];
                for (intptr_t i = 0; i < m; i++) sum[i] += same * h[i];
            }
        }
        for (intptr_t i = 0; i < m; i++) {
            to[i] = sum[i];
            log_z[i] += 0.5 * h_a[i] * sum[i];
        }
    }
    for (intptr_t a = 0; a < q; a++) {
        double *restrict x = regressors + (1 + a) * n + first;
        const double *restrict from = mean + a * at_once;
        for (intptr_t i = 0; i < m; i++) x[i] = from[i];
    }
}

/* Of one component: rows (1 + q, n) of regressors, which come as the part of the log likelihood that is linear in what was
 * measured, and as h less what does not depend on it, and become 1 and the means of the factors; `log_likelihood` (n,) is
 * added to. `pattern` (n,) or NULL where there is one alone; `first_row` (1 + q, n_patterns) of the matrix;
 * `constant` (n_patterns,); `scratch` of q (q + 1) / 2 + q chunks of rows. */
SKVBEM_CLONES
static void skvbem_locate_factors(intptr_t q, intptr_t n, intptr_t n_patterns, const int *restrict pattern,
                                  const double *restrict first_row, const double *restrict covariance,
                                  const double *restrict constant, double *restrict regressors,
                                  double *restrict log_likelihood, double *restrict scratch) {
    intptr_t first = 0;
    for (; first + SKVBEM_FACTOR_ROWS <= n; first += SKVBEM_FACTOR_ROWS)
        skvbem_locate_some(q, n, n_patterns, first, SKVBEM_FACTOR_ROWS, pattern, first_row, covariance, constant,
                           regressors, log_likelihood, scratch);
    if (first < n)
        skvbem_locate_some(q, n, n_patterns, first, n - first, pattern, first_row, covariance, constant, regressors,
                           log_likelihood, scratch);
}

/* Add to the factors of rows, regressors (1 + q, n) but for the first, R^T z for standard normal z (q, n). */
SKVBEM_CLONES
static void skvbem_scatter_factors(intptr_t q, intptr_t n, intptr_t n_patterns, const int *restrict pattern,
                                   const double *restrict root, const double *restrict noise,
                                   double *restrict regressors) {
    for (intptr_t a = 0; a < q; a++)
        for (intptr_t b = a; b < q; b++) {
            const double *restrict of_root = root + skvbem_packed(q, a, b) * n_patterns;
            const double *restrict z = noise + b * n;
            double *restrict x = regressors + (1 + a) * n;
            for (intptr_t i = 0; i < n; i++) x[i] += of_root[pattern ? pattern[i] : 0] * z[i];
        }
}

/* Add moments of the regressors (1 + q, n) of rows, as often as they count, to those of their patterns,
 * ((1 + q) (2 + q) / 2, n_patterns); factors vary as the covariance says, or not at all where that is NULL. */
SKVBEM_CLONES
static void skvbem_add_factors(intptr_t q, intptr_t n, intptr_t n_patterns, const int *restrict pattern, int in_order,
                               const double *restrict weight, const double *restrict regressors,
                               const double *restrict covariance, double *restrict total) {
    for (intptr_t a = 0; a <= q; a++)
        for (intptr_t b = a; b <= q; b++) {
            const double *restrict one = regressors + a * n, *restrict two = regressors + b * n;
            double *restrict to = total + skvbem_packed(1 + q, a, b) * n_patterns;
            if (a == 0 || !covariance) {
                if (in_order)
                    for (intptr_t i = 0; i < n; i++) to[i] += weight[i] * (one[i] * two[i]);
                else
                    for (intptr_t i = 0; i < n; i++) to[pattern[i]] += weight[i] * (one[i] * two[i]);
                continue;
            }
            const double *restrict each = covariance + skvbem_packed(q, a - 1, b - 1) * n_patterns;
            if (in_order)
                for (intptr_t i = 0; i < n; i++) to[i] += weight[i] * (one[i] * two[i] + each[i]);
            else
                for (intptr_t i = 0; i < n; i++) to[pattern[i]] += weight[i] * (one[i] * two[i] + each[pattern[i]]);
        }
}

/* Members whose squares are weighted together, and rows summed side by side. */
#define SKVBEM_SQUARED_MEMBERS 8
#define SKVBEM_SQUARED_ROWS 16

/* Of m members; see `skvbem_weigh_squares`. */
SKVBEM_INLINE void skvbem_weigh_some(intptr_t d, intptr_t n, intptr_t stride, const intptr_t m, const double *restrict y,
                                     const double *restrict weight, double *restrict total) {
    for (intptr_t first = 0; first < n; first += SKVBEM_FACTOR_ROWS) {
        const intptr_t here = n - first < SKVBEM_FACTOR_ROWS ? n - first : SKVBEM_FACTOR_ROWS;
        double sum[SKVBEM_SQUARED_MEMBERS][SKVBEM_FACTOR_ROWS], square[SKVBEM_FACTOR_ROWS];
        memset(sum, 0, sizeof(sum));
        memset(square, 0, sizeof(square));
        for (intptr_t s = 0; s < d; s++) {
            const double *restrict of_column = y + s * stride + first;
            if (here == SKVBEM_FACTOR_ROWS)
                for (intptr_t i = 0; i < SKVBEM_FACTOR_ROWS; i++) square[i] = of_column[i] * of_column[i];
            else
                for (intptr_t i = 0; i < here; i++) square[i] = of_column[i] * of_column[i];
            for (intptr_t k = 0; k < m; k++) {
                const double factor = weight[k * d + s];
                for (intptr_t i = 0; i < SKVBEM_FACTOR_ROWS; i++) sum[k][i] += factor * square[i];
            }
        }
        for (intptr_t k = 0; k < m; k++)
            for (intptr_t i = 0; i < here; i++) total[k * n + first + i] = sum[k][i];
    }
}

/* Of each member and row the sum over columns of weight (n_members, d) times squares of y (d, n), whose columns stand
 * `stride` apart: total (n_members, n). */
SKVBEM_CLONES
static void skvbem_weigh_squares(intptr_t d, intptr_t n, intptr_t stride, intptr_t n_members, const double *restrict y,
                                 const double *restrict weight, double *restrict total) {
    for (intptr_t k = 0; k < n_members; k += SKVBEM_SQUARED_MEMBERS) {
        const intptr_t left = n_members - k, m = left < SKVBEM_SQUARED_MEMBERS ? left : SKVBEM_SQUARED_MEMBERS;
        if (m == 1)
            skvbem_weigh_some(d, n, stride, 1, y, weight + k * d, total + k * n);
        else
            skvbem_weigh_some(d, n, stride, m, y, weight + k * d, total + k * n);
    }
}

/* Of m members; see `skvbem_sum_squares`. */
SKVBEM_INLINE void skvbem_sum_some(intptr_t d, intptr_t n, intptr_t stride, const intptr_t m, const double *restrict y,
                                   const double *restrict weight, double *restrict total) {
    for (intptr_t s = 0; s < d; s++) {
        const double *restrict of_column = y + s * stride;
        double sum[SKVBEM_SQUARED_MEMBERS][SKVBEM_SQUARED_ROWS], square[SKVBEM_SQUARED_ROWS];
        intptr_t first = 0;
        memset(sum, 0, sizeof(sum));
        for (; first + SKVBEM_SQUARED_ROWS <= n; first += SKVBEM_SQUARED_ROWS) {
            for (intptr_t i = 0; i < SKVBEM_SQUARED_ROWS; i++) square[i] = of_column[first + i] * of_column[first + i];
            for (intptr_t k = 0; k < m; k++)
                for (intptr_t i = 0; i < SKVBEM_SQUARED_ROWS; i++) sum[k][i] += weight[k * n + first + i] * square[i];
        }
        for (; first < n; first++)
            for (intptr_t k = 0; k < m; k++)
                sum[k][0] += weight[k * n + first] * (of_column[first] * of_column[first]);
        for (intptr_t k = 0; k < m; k++) {
            double whole = 0.0;
            for (intptr_t i = 0; i < SKVBEM_SQUARED_ROWS; i++) whole += sum[k][i];
            total[k * d + s] = whole;
        }
    }
}

/* Of each member and column the sum over rows of weight (n_members, n) times squares of y (d, n): total (n_members, d). */
SKVBEM_CLONES
static void skvbem_sum_squares(intptr_t d, intptr_t n, intptr_t stride, intptr_t n_members, const double *restrict y,
                               const double *restrict weight, double *restrict total) {
    for (intptr_t k = 0; k < n_members; k += SKVBEM_SQUARED_MEMBERS) {
        const intptr_t left = n_members - k, m = left < SKVBEM_SQUARED_MEMBERS ? left : SKVBEM_SQUARED_MEMBERS;
        if (m == 1)
            skvbem_sum_some(d, n, stride, 1, y, weight + k * n, total + k * d);
        else
            skvbem_sum_some(d, n, stride, m, y, weight + k * n, total + k * d);
    }
}

/* Rows weighted at once, and of these as many side by side. */
#define SKVBEM_WEIGHTED_ROWS 128
#define SKVBEM_WEIGHTED_LANES 32

/* Doubles of scratch for `skvbem_weigh_factors`. */
SKVBEM_INLINE intptr_t skvbem_weigh_scratch(intptr_t n_regressors) {
    return n_regressors * (n_regressors + 1) / 2 * SKVBEM_WEIGHTED_LANES;
}

/* Regressors (n_regressors, n) of rows as often as these count, and their packed products with the regressors, summed over
 * rows. */
SKVBEM_CLONES
static void skvbem_weigh_factors(intptr_t n_regressors, intptr_t n, const double *restrict weight,
                                 const double *restrict regressors, double *restrict weighted, double *restrict products,
                                 double *restrict scratch) {
    enum { B = SKVBEM_WEIGHTED_ROWS, L = SKVBEM_WEIGHTED_LANES };
    const intptr_t width = n_regressors * (n_regressors + 1) / 2;
    memset(scratch, 0, (size_t) (width * L) * sizeof(double));
    for (intptr_t first = 0; first < n; first += B) {
        const intptr_t here = n - first < B ? n - first : B, whole = here - here % L;
        for (intptr_t a = 0; a < n_regressors; a++)
            for (intptr_t i = first; i < first + here; i++) weighted[a * n + i] = weight[i] * regressors[a * n + i];
        double *restrict to = scratch;
        for (intptr_t a = 0; a < n_regressors; a++)
            for (intptr_t b = a; b < n_regressors; b++, to += L) {
                const double *restrict one = weighted + a * n + first, *restrict two = regressors + b * n + first;
                double sum[L];
                for (intptr_t l = 0; l < L; l++) sum[l] = to[l];
                for (intptr_t i = 0; i < whole; i += L)
                    for (intptr_t l = 0; l < L; l++) sum[l] += one[i + l] * two[i + l];
                for (intptr_t i = whole; i < here; i++) sum[i - whole] += one[i] * two[i];
                for (intptr_t l = 0; l < L; l++) to[l] = sum[l];
            }
    }
    for (intptr_t cell = 0; cell < width; cell++) {
        double whole = 0.0;
        for (intptr_t l = 0; l < L; l++) whole += scratch[cell * L + l];
        products[cell] = whole;
    }
}

#endif
