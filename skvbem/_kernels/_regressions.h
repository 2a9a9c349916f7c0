/* Regressions of many rows on the same regressors: means of coefficients, expected natural parameters, log normalizers.
 *
 * Rows that follow each other with one precision matrix are looked at some at a time, turned, so that numbers of one
 * kind stand together: loops over rows are of vectors. Symmetric matrices are packed, the upper triangle row by row.
 */
#ifndef SKVBEM_REGRESSIONS_H
#define SKVBEM_REGRESSIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_factors.h"

/* Rows looked at together: more than compilers unroll one by one, which loops of vectors must not be. */
#define SKVBEM_REGRESSION_ROWS 32
#define SKVBEM_LOG_2PI 1.8378770664093454836

typedef struct {
    intptr_t d, n_rows, n_precisions, n_noises; /* no noises: all are known to have precision 1 */
    const long long *precision_of, *noise_of;   /* (n_rows,) */
    const double *n_sharing;                    /* (n_precisions,): rows that have each matrix */
} skvbem_regressions;

/* How many rows from s on are looked at together: they have one precision matrix. */
SKVBEM_INLINE intptr_t skvbem_rows_together(const skvbem_regressions *of, intptr_t s) {
    intptr_t m = 1;
    while (m < SKVBEM_REGRESSION_ROWS && s + m < of->n_rows && of->precision_of[s + m] == of->precision_of[s]) m++;
    return m;
}

/* to = A x, or what it leaves of `rest`, for m turned vectors x (d, m) and a symmetric matrix A (d, d). */
SKVBEM_INLINE void skvbem_times_rows(intptr_t d, const intptr_t m, const double *restrict a, const double *restrict x,
                                     const double *restrict rest, double *restrict to) {
    for (intptr_t i = 0; i < d; i++) {
        double sum[SKVBEM_REGRESSION_ROWS];
        for (intptr_t b = 0; b < m; b++) sum[b] = 0.0;
        for (intptr_t j = 0; j < d; j++) {
            const double factor = a[i * d + j];
            for (intptr_t b = 0; b < m; b++) sum[b] += factor * x[j * m + b];
        }
        if (rest)
            for (intptr_t b = 0; b < m; b++) to[i * m + b] = rest[i * m + b] - sum[b];
        else
            for (intptr_t b = 0; b < m; b++) to[i * m + b] = sum[b];
    }
}

/* Solutions of A c = h for m turned rows h (d, m), and squares h' A^-1 h. Where regressors are nearly collinear, an inverse
 * holds fewer digits than its matrix. What a product with it leaves of a row mends both, and an error enters the squares no
 * more than in its square. `scratch` holds 2 d m numbers. */
SKVBEM_INLINE void skvbem_solve_some(intptr_t d, const intptr_t m, const double *restrict matrix,
                                     const double *restrict inverse, const double *restrict h, double *restrict solution,
                                     double *restrict squares, double *restrict scratch) {
    double *restrict left = scratch, *restrict mended = scratch + d * m;
    skvbem_times_rows(d, m, inverse, h, NULL, solution);
    skvbem_times_rows(d, m, matrix, solution, h, left);
    skvbem_times_rows(d, m, inverse, left, NULL, mended);
    for (intptr_t b = 0; b < m; b++) squares[b] = 0.0;
    for (intptr_t i = 0; i < d * m; i += m)
        for (intptr_t b = 0; b < m; b++) {
            squares[b] += solution[i + b] * (h[i + b] + left[i + b]) + left[i + b] * mended[i + b];
            solution[i + b] += mended[i + b];
        }
}

/* Numbers of scratch for `skvbem_solve`. */
SKVBEM_INLINE intptr_t skvbem_solve_scratch(intptr_t d) { return 4 * d * SKVBEM_REGRESSION_ROWS; }

/* Solutions (n_rows, d) and squares (n_rows,) of all rows `total` (n_rows, d), with matrices and inverses (n_precisions, d,
 * d). */
SKVBEM_CLONES
static void skvbem_solve(const skvbem_regressions *of, const double *restrict matrices, const double *restrict inverses,
                         const double *restrict total, double *restrict solutions, double *restrict squares,
                         double *restrict scratch) {
    const intptr_t d = of->d, whole = SKVBEM_REGRESSION_ROWS;
    double *restrict h = scratch, *restrict solution = scratch + d * whole, *restrict rest = scratch + 2 * d * whole;
    for (intptr_t s = 0, m = 0; s < of->n_rows; s += m) {
        const intptr_t place = of->precision_of[s] * d * d;
        m = skvbem_rows_together(of, s);
        for (intptr_t b = 0; b < m; b++)
            for (intptr_t i = 0; i < d; i++) h[i * m + b] = total[(s + b) * d + i];
        if (m == whole)
            skvbem_solve_some(d, whole, matrices + place, inverses + place, h, solution, squares + s, rest);
        else if (m == 1)
            skvbem_solve_some(d, 1, matrices + place, inverses + place, h, solution, squares + s, rest);
        else
            skvbem_solve_some(d, m, matrices + place, inverses + place, h, solution, squares + s, rest);
        for (intptr_t b = 0; b < m; b++)
            for (intptr_t i = 0; i < d; i++) solutions[(s + b) * d + i] = solution[i * m + b];
    }
}

/* sums[cell][b] += weight[b] c[i][b] c[j][b], packed, of m turned rows c (d, m), and weighted = weight c. */
SKVBEM_INLINE void skvbem_add_squares(intptr_t d, const intptr_t m, const double *restrict weight,
                                      const double *restrict c, double *restrict weighted, double *restrict sums) {
    for (intptr_t i = 0; i < d * m; i += m)
        for (intptr_t b = 0; b < m; b++) weighted[i + b] = weight[b] * c[i + b];
    double *restrict to = sums;
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = i; j < d; j++, to += SKVBEM_REGRESSION_ROWS)
            for (intptr_t b = 0; b < m; b++) to[b] += weighted[i * m + b] * c[j * m + b];
}

/* Numbers of scratch for `skvbem_matrices`. */
SKVBEM_INLINE intptr_t skvbem_matrices_scratch(const skvbem_regressions *of) {
    const intptr_t d = of->d, width = d * (d + 1) / 2, g = of->n_precisions;
    return g * (3 * width + 1) + d * (d + 1) * SKVBEM_INVERTED;
}

/* Matrices and their inverses (n_precisions, d, d), and of the inverses' lower factors R where `roots` is not NULL, from
 * packed matrices one after the other. The sum of ln det R, each as often as rows share it, is returned: NaN where a matrix
 * is not positive. */
SKVBEM_INLINE double skvbem_matrices(const skvbem_regressions *of, const double *restrict coordinates,
                                     double *restrict matrices, double *restrict inverses, double *restrict roots,
                                     double *restrict scratch) {
    const intptr_t d = of->d, width = d * (d + 1) / 2, g = of->n_precisions;
    double *restrict cells = scratch, *restrict packed = cells + g * width, *restrict root = packed + g * width;
    double *restrict log_root = root + g * width, total = 0.0;
    for (intptr_t k = 0; k < g; k++)
        for (intptr_t cell = 0; cell < width; cell++) cells[cell * g + k] = coordinates[k * width + cell];
    skvbem_invert(d, g, cells, roots ? root : NULL, packed, log_root, log_root + g);
    for (intptr_t k = 0; k < g; k++) {
        total += of->n_sharing[k] * log_root[k];
        for (intptr_t i = 0, cell = 0; i < d; i++)
            for (intptr_t j = i; j < d; j++, cell++) {
                matrices[(k * d + i) * d + j] = matrices[(k * d + j) * d + i] = cells[cell * g + k];
                inverses[(k * d + i) * d + j] = inverses[(k * d + j) * d + i] = packed[cell * g + k];
                if (!roots) continue;
                roots[(k * d + i) * d + j] = 0.0;
                roots[(k * d + j) * d + i] = root[cell * g + k];
            }
    }
    return total;
}

/* Numbers of scratch for `skvbem_expect_regressions`. */
SKVBEM_INLINE intptr_t skvbem_expect_scratch(const skvbem_regressions *of) {
    const intptr_t d = of->d, width = d * (d + 1) / 2, g = of->n_precisions;
    const intptr_t of_rows = of->n_rows * (d + 2) + (4 * d + width) * SKVBEM_REGRESSION_ROWS;
    return 2 * g * d * d + skvbem_matrices_scratch(of) + of_rows + 5 * of->n_noises;
}

/* Natural parameters (n_cells,) expected under a density with these coordinates (n_cells,): packed matrices one after the
 * other, sums of rows, counts and squares of noises. The log normalizer is returned, nats: NaN where there is no density.
 */
SKVBEM_CLONES
static double skvbem_expect_regressions(const skvbem_regressions *of, const double *restrict coordinates,
                                        double *restrict natural, double *restrict scratch) {
    const double log_2pi = SKVBEM_LOG_2PI;
    const intptr_t d = of->d, width = d * (d + 1) / 2, n_rows = of->n_rows, g = of->n_precisions, whole = SKVBEM_REGRESSION_ROWS;
    const double *restrict total = coordinates + g * width, *restrict count = total + n_rows * d;
    const double *restrict square = count + of->n_noises;
    double *restrict matrices = scratch, *restrict inverses = matrices + g * d * d;
    double *restrict mean = inverses + g * d * d, *restrict squares = mean + n_rows * d;
    double *restrict weight = squares + n_rows, *restrict a = weight + n_rows, *restrict rate = a + of->n_noises;
    double *restrict rho = rate + of->n_noises, *restrict log_gamma = rho + of->n_noises;
    double *restrict digamma = log_gamma + of->n_noises, *restrict rest = digamma + of->n_noises;

    double log_normalizer = 0.5 * (double) (n_rows * d) * log_2pi;
    log_normalizer += skvbem_matrices(of, coordinates, matrices, inverses, NULL, rest);
    skvbem_solve(of, matrices, inverses, total, mean, squares, rest);

    for (intptr_t s = 0; s < n_rows; s++) weight[s] = 1.0;
    if (of->n_noises) {
        for (intptr_t k = 0; k < of->n_noises; k++) {
            a[k] = 0.5 * count[k];
            rate[k] = square[k];
        }
        for (intptr_t s = 0; s < n_rows; s++) rate[of->noise_of[s]] -= squares[s];
        for (intptr_t k = 0; k < of->n_noises; k++) {
            rate[k] *= 0.5;
            if (!(a[k] > 0.0) || !(rate[k] > 0.0)) a[k] = rate[k] = NAN;
            rho[k] = a[k] / rate[k];
        }
        skvbem_log_gamma_digamma(of->n_noises, a, log_gamma, digamma);
        for (intptr_t k = 0; k < of->n_noises; k++) {
            const double log_rate = log(rate[k]);
            log_normalizer += log_gamma[k] - a[k] * (log_rate + log_2pi);
            natural[count - coordinates + k] = 0.5 * (digamma[k] - log_rate - log_2pi);
            natural[square - coordinates + k] = -0.5 * rho[k];
        }
        for (intptr_t s = 0; s < n_rows; s++) weight[s] = rho[of->noise_of[s]];
    } else {
        double explained = 0.0;
        for (intptr_t s = 0; s < n_rows; s++) explained += squares[s];
        log_normalizer += 0.5 * explained;
    }

    double *restrict turned = rest, *restrict weighted = rest + 2 * d * whole, *restrict sums = rest + 4 * d * whole;
    for (intptr_t k = 0; k < g; k++)
        for (intptr_t i = 0, cell = k * width; i < d; i++)
            for (intptr_t j = i; j < d; j++, cell++) natural[cell] = of->n_sharing[k] * inverses[(k * d + i) * d + j];
    for (intptr_t s = 0, m = 0; s < n_rows; s += m) {
        const intptr_t k = of->precision_of[s];
        m = skvbem_rows_together(of, s);
        if (s == 0 || k != of->precision_of[s - 1]) memset(sums, 0, (size_t) (width * whole) * sizeof(double));
        for (intptr_t b = 0; b < m; b++)
            for (intptr_t i = 0; i < d; i++) turned[i * m + b] = mean[(s + b) * d + i];
        if (m == whole)
            skvbem_add_squares(d, whole, weight + s, turned, weighted, sums);
        else
            skvbem_add_squares(d, m, weight + s, turned, weighted, sums);
        for (intptr_t b = 0; b < m; b++)
            for (intptr_t i = 0; i < d; i++) natural[(total - coordinates) + (s + b) * d + i] = weighted[i * m + b];
        if (s + m < n_rows && of->precision_of[s + m] == k) continue;
        for (intptr_t cell = 0; cell < width; cell++)
            for (intptr_t b = 0; b < whole; b++) natural[k * width + cell] += sums[cell * whole + b];
    }
    for (intptr_t k = 0; k < g; k++)
        for (intptr_t i = 0, cell = k * width; i < d; i++)
            for (intptr_t j = i; j < d; j++, cell++) natural[cell] *= i == j ? -0.5 : -1.0;
    return log_normalizer;
}

/* Numbers of scratch for `skvbem_regressions_growth`. */
SKVBEM_INLINE intptr_t skvbem_growth_scratch(const skvbem_regressions *of) {
    const intptr_t d = of->d, width = d * (d + 1) / 2, g = of->n_precisions;
    const intptr_t of_matrices = g * (4 * d * d + width) + 2 * d * d + skvbem_matrices_scratch(of);
    return of_matrices + of->n_rows * (2 * d + 3) + 7 * of->n_noises + skvbem_solve_scratch(d);
}

/* By how much the log normalizer of a density grows with statistics (n_cells,), nats, in terms that are small where these
 * are; NaN where either has none. */
SKVBEM_CLONES
static double skvbem_regressions_growth(const skvbem_regressions *of, const double *restrict coordinates,
                                        const double *restrict statistics, double *restrict scratch) {
    const intptr_t d = of->d, width = d * (d + 1) / 2, n_rows = of->n_rows, g = of->n_precisions, n_noises = of->n_noises;
    const intptr_t first = g * width, second = first + n_rows * d, third = second + n_noises, size = g * d * d;
    double *restrict matrices = scratch, *restrict inverses = matrices + size, *restrict roots = inverses + size;
    double *restrict added = roots + size, *restrict part = added + size, *restrict grown = part + d * d;
    double *restrict mean = grown + d * d, *restrict left = mean + n_rows * d, *restrict squares = left + n_rows * d;
    double *restrict explained = squares + n_rows, *restrict gained = explained + n_rows;
    double *restrict of_noises = gained + n_rows, *restrict rest = of_noises + 7 * n_noises;
    double total = 0.0;

    skvbem_matrices(of, coordinates, matrices, inverses, roots, rest);
    skvbem_solve(of, matrices, inverses, coordinates + first, mean, squares, rest);
    for (intptr_t k = 0; k < g; k++) {  /* ln det(I + R S R') of what is added, S */
        double *restrict s = added + k * d * d, *restrict r = roots + k * d * d;
        skvbem_unpacked(d, 1.0, statistics + k * width, s);
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t j = 0; j < d; j++) {
                double sum = 0.0;
                for (intptr_t h = 0; h <= i; h++) sum += r[i * d + h] * s[h * d + j];
                part[i * d + j] = sum;
            }
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t j = 0; j < d; j++) {
                double sum = 0.0;
                for (intptr_t h = 0; h <= j; h++) sum += part[i * d + h] * r[j * d + h];
                grown[i * d + j] = sum;
            }
        total -= 0.5 * of->n_sharing[k] * skvbem_log_det_one_plus(d, 1, grown);
    }
    for (intptr_t b = 0; b < n_rows; b++) {  /* what the mean leaves of the sums, and what it explains */
        const double *restrict s = added + of->precision_of[b] * d * d, *restrict c = mean + b * d;
        explained[b] = 0.0;
        for (intptr_t i = 0; i < d; i++) {
            const double sum = statistics[first + b * d + i];
            double rests = sum;
            for (intptr_t j = 0; j < d; j++) rests -= s[i * d + j] * c[j];
            left[b * d + i] = rests;
            explained[b] += c[i] * (sum + rests);
        }
    }
    for (intptr_t i = 0; i < first; i++) rest[i] = coordinates[i] + statistics[i];
    skvbem_matrices(of, rest, matrices, inverses, NULL, rest + first);
    skvbem_solve(of, matrices, inverses, left, mean, gained, rest);
    for (intptr_t b = 0; b < n_rows; b++) gained[b] += explained[b];
    if (!n_noises) {
        for (intptr_t b = 0; b < n_rows; b++) total += 0.5 * gained[b];
        return total;
    }
    double *restrict rate = of_noises, *restrict lifted = rate + n_noises, *restrict a = lifted + n_noises;
    double *restrict sum = a + n_noises, *restrict log_gamma = sum + n_noises;
    double *restrict log_gamma_sum = log_gamma + n_noises, *restrict digamma = log_gamma_sum + n_noises;
    for (intptr_t k = 0; k < n_noises; k++) {
        a[k] = 0.5 * coordinates[second + k];
        sum[k] = a[k] + 0.5 * statistics[second + k];
        rate[k] = coordinates[third + k];
        lifted[k] = statistics[third + k];
    }
    for (intptr_t b = 0; b < n_rows; b++) {
        rate[of->noise_of[b]] -= squares[b];
        lifted[of->noise_of[b]] -= gained[b];
    }
    skvbem_log_gamma_digamma(n_noises, a, log_gamma, digamma);
    skvbem_log_gamma_digamma(n_noises, sum, log_gamma_sum, digamma);
    for (intptr_t k = 0; k < n_noises; k++) {
        const double half = 0.5 * statistics[second + k], of_prior = 0.5 * rate[k];
        if (!(a[k] > 0.0) || !(sum[k] > 0.0) || !(of_prior > 0.0)) return NAN;
        total += skvbem_log_growth(a[k], half, log_gamma[k], log_gamma_sum[k]);
        total -= half * (log(of_prior) + SKVBEM_LOG_2PI) + sum[k] * log1p(0.5 * lifted[k] / of_prior);
    }
    return total;
}

#endif
