/* Full steps of one factor analyzer whose hyperparameters are hidden, on complete rows, of which second moments say all.
 *
 * Regressors are (1, x) for q factors x, D = 1 + q; all d columns share one precision matrix. Cells of statistics are those
 * of a regression: a packed matrix, d rows of D sums, counts and squares of noises.
 */
#ifndef SKVBEM_ANALYZER_H
#define SKVBEM_ANALYZER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_dense.h"
#include "_factor_map.h"
#include "_factors.h"
#include "_regressions.h"

/* Sweeps of rotations, at most, and the share of a matrix that may be left off its diagonal, squared. */
#define SKVBEM_SWEEPS 60
#define SKVBEM_OFF_DIAGONAL 1e-30

typedef struct {
    skvbem_regressions rows;
    intptr_t n_cells, n_rates;
    const double *coordinates;              /* (n_cells,) of the prior without its hidden hyperparameters */
    const double *moments, *log_unit;       /* (d + 1, d + 1) of (1, y); the sum of the logarithms of units */
    const int *starts, *cells;              /* cells below each hidden rate, as compressed sparse rows */
    const double *loadings, *shape, *rate;
} skvbem_analyzer;

/* A point: statistics of rows and hyperparameters, natural parameters expected there, ln Z, nats. */
typedef struct {
    double *statistics, *natural, log_normalizer;
} skvbem_point;

/* Eigenvectors, as columns, the largest eigenvalue first, of a symmetric matrix (q, q), which is destroyed, by rotations of
 * Jacobi: few where it is nearly diagonal, as after a step before. */
SKVBEM_INLINE void skvbem_axes(intptr_t q, double *restrict a, double *restrict axes) {
    memset(axes, 0, (size_t) (q * q) * sizeof(double));
    for (intptr_t i = 0; i < q; i++) axes[i * q + i] = 1.0;
    for (int sweep = 0; sweep < SKVBEM_SWEEPS; sweep++) {
        double off = 0.0, all = 0.0;
        for (intptr_t i = 0; i < q; i++)
            for (intptr_t j = i; j < q; j++) {
                all += a[i * q + j] * a[i * q + j];
                if (j > i) off += a[i * q + j] * a[i * q + j];
            }
        if (!(off > SKVBEM_OFF_DIAGONAL * all)) break;
        for (intptr_t i = 0; i < q; i++)
            for (intptr_t j = i + 1; j < q; j++) {
                const double between = a[i * q + j];
                if (between == 0.0) continue;
                const double theta = (a[j * q + j] - a[i * q + i]) / (2.0 * between);
                const double t = (theta < 0.0 ? -1.0 : 1.0) / (fabs(theta) + sqrt(theta * theta + 1.0));
                const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
                for (intptr_t k = 0; k < q; k++) {
                    const double one = a[k * q + i], two = a[k * q + j];
                    a[k * q + i] = c * one - s * two;
                    a[k * q + j] = s * one + c * two;
                }
                for (intptr_t k = 0; k < q; k++) {
                    const double one = a[i * q + k], two = a[j * q + k];
                    a[i * q + k] = c * one - s * two;
                    a[j * q + k] = s * one + c * two;
                    const double left = axes[k * q + i], right = axes[k * q + j];
                    axes[k * q + i] = c * left - s * right;
                    axes[k * q + j] = s * left + c * right;
                }
            }
    }
    for (intptr_t i = 0; i < q; i++) {  /* the largest first */
        intptr_t best = i;
        for (intptr_t j = i + 1; j < q; j++)
            if (a[j * q + j] > a[best * q + best]) best = j;
        if (best == i) continue;
        a[best * q + best] = a[i * q + i];
        for (intptr_t k = 0; k < q; k++) {
            const double held = axes[k * q + i];
            axes[k * q + i] = axes[k * q + best];
            axes[k * q + best] = held;
        }
    }
}

/* Expected statistics of hidden rates (n_cells,) under natural parameters; ln Z less its constant part, nats, is returned. */
SKVBEM_INLINE double skvbem_hidden_rates(const skvbem_analyzer *of, const double *restrict natural, double *restrict given) {
    double log_z = 0.0;
    memset(given, 0, (size_t) of->n_cells * sizeof(double));
    for (intptr_t group = 0; group < of->n_rates; group++) {
        double rate = of->rate[group];
        for (int at = of->starts[group]; at < of->starts[group + 1]; at++) rate -= of->loadings[at] * natural[of->cells[at]];
        log_z -= of->shape[group] * log(rate / of->rate[group]);
        for (int at = of->starts[group]; at < of->starts[group + 1]; at++)
            given[of->cells[at]] += of->loadings[at] * (of->shape[group] / rate);
    }
    return log_z;
}

/* The natural parameters and ln Z of a point whose statistics are there. `scratch` holds n_cells numbers and those of
 * `skvbem_expect_scratch`. */
SKVBEM_INLINE void skvbem_expect_point(const skvbem_analyzer *of, skvbem_point *point, double *restrict scratch) {
    for (intptr_t cell = 0; cell < of->n_cells; cell++) scratch[cell] = of->coordinates[cell] + point->statistics[cell];
    point->log_normalizer = skvbem_expect_regressions(&of->rows, scratch, point->natural, scratch + of->n_cells);
}

/* A point of complete rows with these statistics, hyperparameters being as natural parameters say, of which statistics are
 * `given`. The objective up to what nothing changes is returned, nats; that of hyperparameters alone is put in `hidden`. */
SKVBEM_INLINE double skvbem_complete(const skvbem_analyzer *of, const double *restrict statistics,
                                     const double *restrict natural, skvbem_point *point, double *restrict given,
                                     double *restrict hidden, double *restrict scratch) {
    double objective = *hidden = skvbem_hidden_rates(of, natural, given);
    for (intptr_t cell = 0; cell < of->n_cells; cell++) {
        point->statistics[cell] = statistics[cell] + given[cell];
        objective -= given[cell] * natural[cell];
    }
    skvbem_expect_point(of, point, scratch);
    return objective + point->log_normalizer;
}

/* Expected statistics of rows under natural parameters, sums of products of regressors (D, D), and precisions of factors
 * less 1 (q, q). ln Z of the rows is returned, nats. `scratch` holds 2 D (d + 2) + 3 D D numbers and those of
 * `skvbem_invert`. */
SKVBEM_INLINE double skvbem_expect_rows(const skvbem_analyzer *of, const double *restrict natural,
                                        double *restrict statistics, double *restrict products, double *restrict loadings,
                                        double *restrict scratch) {
    const intptr_t d = of->rows.n_rows, regressors = of->rows.d, q = regressors - 1, width = regressors * (regressors + 1) / 2;
    const intptr_t wide = d + 1, n_noises = of->rows.n_noises;
    const double *restrict sums = natural + width, *restrict count = sums + d * regressors, *restrict square = count + n_noises;
    const double *restrict moments = of->moments, n = moments[0];
    double *restrict slopes = scratch, *restrict means = slopes + q * wide, *restrict crossed = means + regressors * wide;
    double *restrict matrix = crossed + regressors * wide, *restrict precision = matrix + regressors * regressors;
    double *restrict covariance = precision + q * (q + 1) / 2, *restrict rest = covariance + q * (q + 1) / 2;
    double log_root, constant = -*of->log_unit, squares = 0.0;
    skvbem_unpacked(regressors, 0.5, natural, matrix);
    for (intptr_t a = 0, cell = 0; a < q; a++) {
        for (intptr_t b = 0; b < q; b++) loadings[a * q + b] = -2.0 * matrix[(1 + a) * regressors + 1 + b];
        for (intptr_t b = a; b < q; b++, cell++) precision[cell] = loadings[a * q + b] + (a == b);
        slopes[a * wide] = 2.0 * matrix[1 + a];
        for (intptr_t j = 0; j < d; j++) slopes[a * wide + 1 + j] = sums[j * regressors + 1 + a];
    }
    skvbem_invert(q, 1, precision, NULL, covariance, &log_root, rest);
    memset(means, 0, (size_t) (2 * regressors * wide) * sizeof(double));  /* those of products with moments, too */
    means[0] = 1.0;
    for (intptr_t a = 0; a < q; a++)
        for (intptr_t b = 0; b < q; b++) {
            const double factor = covariance[a < b ? skvbem_packed(q, a, b) : skvbem_packed(q, b, a)];
            for (intptr_t j = 0; j < wide; j++) means[(1 + a) * wide + j] += factor * slopes[b * wide + j];
        }
    skvbem_add_product(regressors, wide, wide, means, moments, crossed);
    for (intptr_t a = 0; a < regressors; a++)
        for (intptr_t b = a; b < regressors; b++) {
            double sum = 0.0;
            for (intptr_t j = 0; j < wide; j++) sum += crossed[a * wide + j] * means[b * wide + j];
            if (a && b) {
                const intptr_t cell = skvbem_packed(q, a - 1, b - 1);
                squares += (a == b ? 0.5 : 1.0) * precision[cell] * sum;
                sum += n * covariance[cell];
            }
            products[a * regressors + b] = products[b * regressors + a] = sum;
            statistics[skvbem_packed(regressors, a, b)] = sum;
        }
    double *restrict to_sums = statistics + width, *restrict to_count = to_sums + d * regressors;
    double *restrict to_square = to_count + n_noises;
    memset(to_count, 0, (size_t) (2 * n_noises) * sizeof(double));
    for (intptr_t j = 0; j < d; j++) {
        const long long noise = of->rows.noise_of[j];
        const double of_column = moments[(1 + j) * wide + 1 + j];
        for (intptr_t a = 0; a < regressors; a++) to_sums[j * regressors + a] = crossed[a * wide + 1 + j];
        to_count[noise] += n;
        to_square[noise] += of_column;
        constant += count[noise];
        squares += square[noise] * of_column + sums[j * regressors] * moments[1 + j];
    }
    return n * (constant + matrix[0] + log_root) + squares;
}

/* Statistics and natural parameters after a map (D, D) of regressors. `scratch` holds 5 D D numbers. */
SKVBEM_INLINE void skvbem_map_point(const skvbem_factor_form *form, intptr_t n_cells, const double *restrict map,
                                    const double *restrict statistics, const double *restrict natural,
                                    double *restrict to_statistics, double *restrict to_natural, double *restrict scratch) {
    const intptr_t d = form->n_regressors, size = d * d, width = d * (d + 1) / 2, end = width + form->n_rows * d;
    double *restrict right = scratch + 3 * size, *restrict held = right + size, log_det;
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = 0; j < d; j++) right[i * d + j] = map[j * d + i];
    skvbem_map_cells(form, 1.0, right, statistics, statistics + width, to_statistics, to_statistics + width, scratch);
    memcpy(held, map, (size_t) size * sizeof(double));
    skvbem_inverse(d, held, right, &log_det);
    skvbem_map_cells(form, 2.0, right, natural, natural + width, to_natural, to_natural + width, scratch);
    memcpy(to_statistics + end, statistics + end, (size_t) (n_cells - end) * sizeof(double));
    memcpy(to_natural + end, natural + end, (size_t) (n_cells - end) * sizeof(double));
}

/* Numbers of scratch for the next function. */
SKVBEM_INLINE intptr_t skvbem_analyzer_scratch(const skvbem_analyzer *of) {
    const intptr_t d = of->rows.d, wide = of->rows.n_rows + 1, of_rows = 3 * d * wide + 3 * d * d + d * d * SKVBEM_INVERTED;
    const intptr_t of_points = of->n_cells + skvbem_expect_scratch(&of->rows);
    return 10 * of->n_cells + 8 * d * d + (of_rows > of_points ? of_rows : of_points) + 5 * d * d;
}

/* A full step from a point to another one, in coordinates of factors in which the bound rises; see FactorExpansion. The
 * objective before the step is returned, nats, up to what nothing changes. */
SKVBEM_CLONES
static double skvbem_analyzer_step(const skvbem_analyzer *of, skvbem_point *point, double *restrict scratch) {
    const intptr_t d = of->rows.d, q = d - 1, size = d * d, n = of->n_cells, width = d * (d + 1) / 2;
    const skvbem_factor_form form = {1, of->rows.n_rows, d};
    double *restrict statistics = scratch, *restrict there = statistics + n, *restrict natural_there = there + n;
    double *restrict given = natural_there + n, *restrict natural = given + n;
    skvbem_point best = {natural + n, natural + 2 * n, 0.0}, other = {natural + 3 * n, natural + 4 * n, 0.0};
    double *restrict products = natural + 5 * n, *restrict loadings = products + size, *restrict root = loadings + size;
    double *restrict turned = root + size, *restrict axes = turned + size, *restrict map = axes + size;
    double *restrict moved = map + size, *restrict later = moved + size, *restrict rest = later + size;
    double log_z = point->log_normalizer, hidden, ignored;
    memcpy(natural, point->natural, (size_t) n * sizeof(double));
    for (intptr_t cell = 0; cell < n; cell++) log_z -= point->statistics[cell] * natural[cell];
    log_z += skvbem_expect_rows(of, natural, statistics, products, loadings, rest);
    double highest = skvbem_complete(of, statistics, natural, &best, given, &hidden, rest);
    double gain = 0.0;
    memset(map, 0, (size_t) size * sizeof(double));
    for (intptr_t i = 0; i < d; i++) map[i * d + i] = 1.0;
    if (q && skvbem_root_of_factors(q, products, root)) {
        skvbem_under_root(q, root, loadings, rest, turned);
        skvbem_axes(q, turned, axes);
        gain = skvbem_whitening_map(q, products, root, axes, map);
    }
    for (int is_last = 0; q; is_last = 1) {
        skvbem_map_point(&form, n, map, statistics, natural, there, natural_there, rest);
        const double objective = gain + skvbem_complete(of, there, natural_there, &other, given, &ignored, rest);
        if (objective > highest) {
            const skvbem_point held = best;
            best = other;
            other = held;
            highest = objective;
            break;
        }
        if (is_last) break;
        for (intptr_t cell = 0; cell < n; cell++) given[cell] += of->coordinates[cell];
        skvbem_moved(d, d, map, products, rest, later);
        skvbem_unpacked(d, 1.0, later, moved);
        gain += skvbem_newton_map(&form, moved, given, there, there + width, other.natural, other.natural + width, later,
                                  rest);
        memset(moved, 0, (size_t) size * sizeof(double));
        skvbem_add_product(d, d, d, later, map, moved);
        memcpy(map, moved, (size_t) size * sizeof(double));
    }
    memcpy(point->statistics, best.statistics, (size_t) n * sizeof(double));
    memcpy(point->natural, best.natural, (size_t) n * sizeof(double));
    point->log_normalizer = best.log_normalizer;
    return log_z + hidden;
}

#endif
