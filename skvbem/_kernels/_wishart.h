/* Normal-Wishart distributions of few columns, side by side: a cell of all lanes after the other, so that loops over lanes are
 * of vectors. No reassociation: every variant gives the same bits, and every lane what it gets alone.
 */
#ifndef SKVBEM_WISHART_H
#define SKVBEM_WISHART_H

#include <stdlib.h>

#include "_lanes.h"

#define SKVBEM_LN_PI 1.1447298858494001741
#define SKVBEM_LN_2PI 1.8378770664093454836
#define SKVBEM_LN_2 0.69314718055994530942

/* Where the parts of a precision and of the means on it stand among the cells of d columns. */
typedef struct {
    intptr_t n_means, step;                /* means on the precision, and cells from one to the next */
    intptr_t kappa, total, degrees, square; /* first cells of each */
} skvbem_wishart_places;

static skvbem_wishart_places skvbem_wishart_at(intptr_t d, intptr_t n_components, int shared, intptr_t precision) {
    skvbem_wishart_places at;
    const intptr_t size = 2 + d + d * (d + 1) / 2, end = n_components * (1 + d);
    at.n_means = shared ? n_components : 1;
    at.step = 1 + d;
    at.kappa = shared ? 0 : precision * size;
    at.total = shared ? 1 : precision * size + 2;
    at.degrees = shared ? end : precision * size + 1;
    at.square = shared ? end + 1 : precision * size + 2 + d;
    return at;
}

/* The packed cell of row i and column j >= i. */
SKVBEM_INLINE intptr_t skvbem_packed(intptr_t d, intptr_t i, intptr_t j) { return i * d - i * (i - 1) / 2 + (j - i); }

/* Means (n_means, d) and the lower triangle of the scale (d, d), from the cells of one precision. */
SKVBEM_CLONES
static void skvbem_wishart_moments(intptr_t d, intptr_t n, const double *restrict cells, const skvbem_wishart_places *at,
                                   double *restrict mean, double *restrict scale) {
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = 0; j <= i; j++)
            memcpy(scale + (i * d + j) * n, cells + (at->square + skvbem_packed(d, j, i)) * n, n * sizeof(double));
    for (intptr_t k = 0; k < at->n_means; k++) {
        const double *kappa = cells + (at->kappa + k * at->step) * n, *total = cells + (at->total + k * at->step) * n;
        for (intptr_t i = 0; i < d; i++) {
            double *mine = mean + (k * d + i) * n;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] = total[i * n + lane] / kappa[lane];
            for (intptr_t j = 0; j <= i; j++)
                for (intptr_t lane = 0; lane < n; lane++)
                    scale[(i * d + j) * n + lane] -= mine[lane] * total[j * n + lane];
        }
    }
}

/* The lower Cholesky factor in the place of a lower triangle; NaN from the first pivot on that is not positive. */
SKVBEM_CLONES
static void skvbem_small_cholesky(intptr_t d, intptr_t n, double *restrict a) {
    for (intptr_t j = 0; j < d; j++) {
        double *pivot = a + (j * d + j) * n;
        for (intptr_t k = 0; k < j; k++)
            for (intptr_t i = j; i < d; i++)
                for (intptr_t lane = 0; lane < n; lane++)
                    a[(i * d + j) * n + lane] -= a[(i * d + k) * n + lane] * a[(j * d + k) * n + lane];
        for (intptr_t lane = 0; lane < n; lane++) pivot[lane] = pivot[lane] > 0.0 ? sqrt(pivot[lane]) : NAN;
        for (intptr_t i = j + 1; i < d; i++)
            for (intptr_t lane = 0; lane < n; lane++) a[(i * d + j) * n + lane] /= pivot[lane];
    }
}

/* The inverse of a lower factor, a lower triangle. */
SKVBEM_CLONES
static void skvbem_small_inverse(intptr_t d, intptr_t n, const double *restrict a, double *restrict inverse) {
    for (intptr_t j = 0; j < d; j++) {
        for (intptr_t lane = 0; lane < n; lane++)
            inverse[(j * d + j) * n + lane] = 1.0 / a[(j * d + j) * n + lane];
        for (intptr_t i = j + 1; i < d; i++) {
            double *mine = inverse + (i * d + j) * n;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
            for (intptr_t k = j; k < i; k++)
                for (intptr_t lane = 0; lane < n; lane++)
                    mine[lane] -= a[(i * d + k) * n + lane] * inverse[(k * d + j) * n + lane];
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] /= a[(i * d + i) * n + lane];
        }
    }
}

/* M^T M of a lower triangle, packed. */
SKVBEM_CLONES
static void skvbem_small_gram(intptr_t d, intptr_t n, const double *restrict m, double *restrict packed) {
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = i; j < d; j++) {
            double *mine = packed + skvbem_packed(d, i, j) * n;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
            for (intptr_t k = j; k < d; k++)
                for (intptr_t lane = 0; lane < n; lane++)
                    mine[lane] += m[(k * d + i) * n + lane] * m[(k * d + j) * n + lane];
        }
}

/* ln det of the matrices with these lower factors. */
static void skvbem_log_det(intptr_t d, intptr_t n, const double *restrict factor, double *restrict log_det) {
    for (intptr_t lane = 0; lane < n; lane++) log_det[lane] = 0.0;
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t lane = 0; lane < n; lane++) log_det[lane] += 2.0 * log(factor[(i * d + i) * n + lane]);
}

/* Whether each lane is that of a density: 1 stays 1 where weights, degrees of freedom and pivots are those of one. */
static void skvbem_wishart_valid(intptr_t d, intptr_t n, const double *restrict cells, const skvbem_wishart_places *at,
                                 const double *restrict factor, unsigned char *restrict valid) {
    for (intptr_t lane = 0; lane < n; lane++) {
        int is = cells[at->degrees * n + lane] > (double) (d - 1);
        for (intptr_t k = 0; k < at->n_means; k++) is &= cells[(at->kappa + k * at->step) * n + lane] > 0.0;
        for (intptr_t i = 0; i < d * d; i++)
            if (i % d <= i / d) is &= isfinite(factor[i * n + lane]) != 0;
        valid[lane] = valid[lane] && is;
    }
}

/* Lambda mu of each mean and -mu^T Lambda mu / 2 of a precision that stands packed among the natural parameters, which then
 * become -Lambda / 2, its halves added; `above` is what mu^T Lambda mu is more in expectation, times the mean's precision. */
SKVBEM_CLONES
static void skvbem_wishart_natural(intptr_t d, intptr_t n, const double *restrict cells, const double *restrict mean,
                                   const skvbem_wishart_places *at, double above, double *restrict natural) {
    double *packed = natural + at->square * n;
    for (intptr_t k = 0; k < at->n_means; k++) {
        const double *kappa = cells + (at->kappa + k * at->step) * n, *m = mean + k * d * n;
        double *of_mean = natural + (at->kappa + k * at->step) * n, *weighted = natural + (at->total + k * at->step) * n;
        for (intptr_t lane = 0; lane < n; lane++) of_mean[lane] = above / kappa[lane];
        for (intptr_t i = 0; i < d; i++) {
            double *mine = weighted + i * n;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
            for (intptr_t l = 0; l < d; l++) {
                const double *row = packed + (l < i ? skvbem_packed(d, l, i) : skvbem_packed(d, i, l)) * n;
                for (intptr_t lane = 0; lane < n; lane++) mine[lane] += row[lane] * m[l * n + lane];
            }
            for (intptr_t lane = 0; lane < n; lane++) of_mean[lane] += mine[lane] * m[i * n + lane];
        }
        for (intptr_t lane = 0; lane < n; lane++) of_mean[lane] *= -0.5;
    }
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t l = i; l < d; l++) {
            double *mine = packed + skvbem_packed(d, i, l) * n;
            const double times = i == l ? -0.5 : -1.0;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] *= times;
        }
}

/* Means, the lower factor of the scale and its inverse, and ln det of the scale, of one precision. */
static void skvbem_wishart_factored(intptr_t d, intptr_t n, const double *restrict cells, const skvbem_wishart_places *at,
                                    double *restrict mean, double *restrict factor, double *restrict inverse,
                                    double *restrict log_det) {
    skvbem_wishart_moments(d, n, cells, at, mean, factor);
    skvbem_small_cholesky(d, n, factor);
    skvbem_small_inverse(d, n, factor, inverse);
    skvbem_log_det(d, n, factor, log_det);
}

/* The inverse of a scale times `times` (n,), packed, from the inverse of its lower factor. */
static void skvbem_wishart_precision(intptr_t d, intptr_t n, const double *restrict inverse, const double *restrict times,
                                     double *restrict packed) {
    skvbem_small_gram(d, n, inverse, packed);
    for (intptr_t i = 0; i < d * (d + 1) / 2; i++)
        for (intptr_t lane = 0; lane < n; lane++) packed[i * n + lane] *= times[lane];
}

/* Expected natural parameters (of the shape of the cells), the log normalizer A and validity of each lane; A is NaN where no
 * density is. Returns 0 where there is no memory. */
static int skvbem_wishart_expected(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double *restrict cells,
                                   double *restrict natural, double *restrict normalizer, unsigned char *restrict valid) {
    const intptr_t n_precisions = shared ? 1 : n_components, n_means = shared ? n_components : 1;
    double *scratch = malloc((size_t) ((2 * d * d + n_means * d + 3 * d + 1) * n + 1) * sizeof(double));
    if (!scratch) return 0;
    double *factor = scratch, *inverse = factor + d * d * n, *mean = inverse + d * d * n, *halves = mean + n_means * d * n;
    double *log_gamma = halves + d * n, *digamma = log_gamma + d * n, *log_det = digamma + d * n;
    for (intptr_t lane = 0; lane < n; lane++) {
        normalizer[lane] = 0.0;
        valid[lane] = 1;
    }
    for (intptr_t j = 0; j < n_precisions; j++) {
        const skvbem_wishart_places at = skvbem_wishart_at(d, n_components, shared, j);
        const double *degrees = cells + at.degrees * n;
        skvbem_wishart_factored(d, n, cells, &at, mean, factor, inverse, log_det);
        skvbem_wishart_valid(d, n, cells, &at, factor, valid);
        skvbem_wishart_precision(d, n, inverse, degrees, natural + at.square * n);
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t lane = 0; lane < n; lane++) halves[i * n + lane] = 0.5 * (degrees[lane] - (double) i);
        skvbem_log_gamma_digamma(d * n, halves, log_gamma, digamma);
        for (intptr_t lane = 0; lane < n; lane++) {
            double of_gamma = 0.25 * (double) (d * (d - 1)) * SKVBEM_LN_PI, of_digamma = 0.0;
            for (intptr_t i = 0; i < d; i++) {
                of_gamma += log_gamma[i * n + lane];
                of_digamma += digamma[i * n + lane];
            }
            natural[at.degrees * n + lane] = 0.5 * (of_digamma + (double) d * (SKVBEM_LN_2 - SKVBEM_LN_2PI) - log_det[lane]);
            normalizer[lane] += of_gamma - 0.5 * degrees[lane] * ((double) d * SKVBEM_LN_PI + log_det[lane]);
        }
        for (intptr_t k = 0; k < at.n_means; k++)
            for (intptr_t lane = 0; lane < n; lane++)
                normalizer[lane] += 0.5 * (double) d * (SKVBEM_LN_2PI - log(cells[(at.kappa + k * at.step) * n + lane]));
        skvbem_wishart_natural(d, n, cells, mean, &at, (double) d, natural);
    }
    for (intptr_t lane = 0; lane < n; lane++)
        if (!valid[lane]) normalizer[lane] = NAN;
    free(scratch);
    return 1;
}

/* Natural parameters of the means and precisions of data with these statistics. `sure` (n,) says where no variance is below
 * `floor`, nor any weight 0: elsewhere they are not filled in as they should be. Returns 0 where there is no memory. */
static int skvbem_wishart_most_likely(intptr_t d, intptr_t n, intptr_t n_components, int shared, double floor,
                                      const double *restrict statistics, double *restrict natural,
                                      unsigned char *restrict sure) {
    const intptr_t n_precisions = shared ? 1 : n_components, n_means = shared ? n_components : 1;
    double *scratch = malloc((size_t) ((2 * d * d + n_means * d + 2) * n + 1) * sizeof(double));
    if (!scratch) return 0;
    double *factor = scratch, *inverse = factor + d * d * n, *mean = inverse + d * d * n;
    double *log_det = mean + n_means * d * n, *trace = log_det + n;
    for (intptr_t lane = 0; lane < n; lane++) sure[lane] = 1;
    for (intptr_t j = 0; j < n_precisions; j++) {
        const skvbem_wishart_places at = skvbem_wishart_at(d, n_components, shared, j);
        const double *weight = statistics + at.degrees * n;
        double *packed = natural + at.square * n;
        skvbem_wishart_factored(d, n, statistics, &at, mean, factor, inverse, log_det);
        skvbem_wishart_precision(d, n, inverse, weight, packed);
        for (intptr_t lane = 0; lane < n; lane++) {
            trace[lane] = 0.0;
            natural[at.degrees * n + lane] = 0.5 * ((double) d * (log(weight[lane]) - SKVBEM_LN_2PI) - log_det[lane]);
        }
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t lane = 0; lane < n; lane++) trace[lane] += packed[skvbem_packed(d, i, i) * n + lane];
        for (intptr_t lane = 0; lane < n; lane++) {
            int is = trace[lane] * floor <= 1.0 && weight[lane] > 0.0;  /* the sum of 1 / variance is above each of them */
            for (intptr_t k = 0; k < at.n_means; k++) is &= statistics[(at.kappa + k * at.step) * n + lane] > 0.0;
            sure[lane] = sure[lane] && is;
        }
        skvbem_wishart_natural(d, n, statistics, mean, &at, 0.0, natural);
    }
    free(scratch);
    return 1;
}

/* A(cells + statistics) - A(cells) of each lane, without cancellation; NaN where either is no normalizer of a density.
 * Returns 0 where there is no memory. */
static int skvbem_wishart_increment(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double *restrict cells,
                                    const double *restrict statistics, double *restrict increment) {
    const intptr_t n_precisions = shared ? 1 : n_components, n_means = shared ? n_components : 1;
    double *scratch = malloc((size_t) ((4 * d * d + n_means * d + 8 * d + 1) * n + 1) * sizeof(double));
    if (!scratch) return 0;
    double *factor = scratch, *inverse = factor + d * d * n, *added = inverse + d * d * n, *half = added + d * d * n;
    double *mean = half + d * d * n, *halves = mean + n_means * d * n, *of_gamma = halves + 2 * d * n;
    double *unused = of_gamma + 2 * d * n, *about = unused + 2 * d * n, *twice = about + d * n, *log_det = twice + d * n;
    for (intptr_t lane = 0; lane < n; lane++) increment[lane] = 0.0;
    for (intptr_t j = 0; j < n_precisions; j++) {
        const skvbem_wishart_places at = skvbem_wishart_at(d, n_components, shared, j);
        const double *degrees = cells + at.degrees * n, *more = statistics + at.degrees * n;
        skvbem_wishart_factored(d, n, cells, &at, mean, factor, inverse, log_det);
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t l = 0; l <= i; l++)
                memcpy(added + (i * d + l) * n, statistics + (at.square + skvbem_packed(d, l, i)) * n, n * sizeof(double));
        for (intptr_t k = 0; k < at.n_means; k++) {
            const intptr_t first = at.kappa + k * at.step;
            const double *kappa = cells + first * n, *u = statistics + first * n, *m = mean + k * d * n;
            const double *total = statistics + (at.total + k * at.step) * n;
            for (intptr_t i = 0; i < d; i++)
                for (intptr_t lane = 0; lane < n; lane++) {
                    about[i * n + lane] = total[i * n + lane] - u[lane] * m[i * n + lane];
                    twice[i * n + lane] = total[i * n + lane] + about[i * n + lane];
                }
            for (intptr_t i = 0; i < d; i++)
                for (intptr_t l = 0; l <= i; l++)
                    for (intptr_t lane = 0; lane < n; lane++)
                        added[(i * d + l) * n + lane] -=
                            0.5 * (m[i * n + lane] * twice[l * n + lane] + twice[i * n + lane] * m[l * n + lane])
                            + about[i * n + lane] * about[l * n + lane] / (kappa[lane] + u[lane]);
            for (intptr_t lane = 0; lane < n; lane++)
                increment[lane] -= 0.5 * (double) d * log1p(u[lane] / kappa[lane]);
        }
        /* half = M added, with added symmetric; then the lower triangle of half M^T, in the place of added */
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t l = 0; l < d; l++) {
                double *mine = half + (i * d + l) * n;
                for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
                for (intptr_t k = 0; k <= i; k++) {
                    const double *cell = added + (k < l ? l * d + k : k * d + l) * n, *m = inverse + (i * d + k) * n;
                    for (intptr_t lane = 0; lane < n; lane++) mine[lane] += m[lane] * cell[lane];
                }
            }
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t l = 0; l <= i; l++) {
                double *mine = added + (i * d + l) * n;
                for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
                for (intptr_t k = 0; k <= l; k++)
                    for (intptr_t lane = 0; lane < n; lane++)
                        mine[lane] += half[(i * d + k) * n + lane] * inverse[(l * d + k) * n + lane];
            }
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t lane = 0; lane < n; lane++) {
                halves[i * n + lane] = 0.5 * (degrees[lane] - (double) i);
                halves[(d + i) * n + lane] = 0.5 * (degrees[lane] + more[lane] - (double) i);
            }
        skvbem_log_gamma_digamma(2 * d * n, halves, of_gamma, unused);
        for (intptr_t lane = 0; lane < n; lane++) {
            const double growth = skvbem_log_det_one_plus(d, n, added + lane);
            double lifted = 0.0;
            for (intptr_t k = 0; k < d; k++)
                lifted += skvbem_log_growth(halves[k * n + lane], 0.5 * more[lane], of_gamma[k * n + lane],
                                            of_gamma[(d + k) * n + lane]);
            increment[lane] += lifted - 0.5 * more[lane] * ((double) d * SKVBEM_LN_PI + log_det[lane])
                               - 0.5 * (degrees[lane] + more[lane]) * growth;
        }
    }
    free(scratch);
    return 1;
}

/* Roots of Wishart draws of unit scale, lower triangles of n_precisions after each other: all normals of a lane are drawn first,
 * those above the diagonal, too, then the gammas of the pivots. `degrees` are `stride` apart, each (n,) or, by `width` 0, one. */
static void skvbem_bartlett(intptr_t d, intptr_t n, intptr_t n_precisions, const double *degrees, intptr_t stride,
                            intptr_t width, intptr_t lane, skvbem_stream *stream, double *lower) {
    for (intptr_t i = 0; i < n_precisions * d * d; i++) lower[i * n + lane] = skvbem_normal(stream);
    for (intptr_t j = 0; j < n_precisions; j++)
        for (intptr_t i = 0; i < d; i++) {
            double lift;
            const double degree = degrees[j * stride + width * lane];
            double gamma = skvbem_gamma(stream, 0.5 * (degree - (double) i), &lift);
            if (lift != 0.0) gamma *= exp(lift);
            lower[((j * d + i) * d + i) * n + lane] = sqrt(2.0 * (gamma > 1e-300 ? gamma : 1e-300));
        }
}

/* H = L^-T A of lower triangles, from the inverse of L, and H H^T, packed: a Wishart draw of which L L^T is the inverse scale. */
SKVBEM_CLONES
static void skvbem_wishart_draw(intptr_t d, intptr_t n, const double *restrict inverse, const double *restrict lower,
                                double *restrict half, double *restrict packed) {
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = 0; j < d; j++) {
            double *mine = half + (i * d + j) * n;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
            for (intptr_t k = i > j ? i : j; k < d; k++)
                for (intptr_t lane = 0; lane < n; lane++)
                    mine[lane] += inverse[(k * d + i) * n + lane] * lower[(k * d + j) * n + lane];
        }
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = i; j < d; j++) {
            double *mine = packed + skvbem_packed(d, i, j) * n;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
            for (intptr_t k = 0; k < d; k++)
                for (intptr_t lane = 0; lane < n; lane++)
                    mine[lane] += half[(i * d + k) * n + lane] * half[(j * d + k) * n + lane];
        }
}

/* Natural parameters of draws, of the shape of the cells; NaN where no density is. Returns 0 where there is no memory. */
static int skvbem_wishart_drawn(intptr_t d, intptr_t n, intptr_t n_components, int shared, const double *restrict cells,
                                uint64_t *restrict streams, double *restrict natural) {
    const intptr_t n_precisions = shared ? 1 : n_components, n_means = shared ? n_components : 1;
    const skvbem_wishart_places first = skvbem_wishart_at(d, n_components, shared, 0);
    const intptr_t size = 2 + d + d * (d + 1) / 2, triangles = n_precisions * d * d;
    double *scratch = malloc((size_t) ((3 * d * d + n_means * d + triangles + (n_components + 1) * d + 1) * n + 1)
                             * sizeof(double));
    if (!scratch) return 0;
    double *factor = scratch, *inverse = factor + d * d * n, *half = inverse + d * d * n, *mean = half + d * d * n;
    double *lower = mean + n_means * d * n, *noise = lower + triangles * n, *turned = noise + n_components * d * n;
    double *log_det = turned + d * n;
    for (intptr_t lane = 0; lane < n; lane++) {
        skvbem_stream stream = skvbem_load(streams, lane, n);
        skvbem_bartlett(d, n, n_precisions, cells + first.degrees * n, size * n, 1, lane, &stream, lower);
        for (intptr_t i = 0; i < n_components * d; i++) noise[i * n + lane] = skvbem_normal(&stream);
        skvbem_store(&stream, streams, lane, n);
    }
    for (intptr_t j = 0; j < n_precisions; j++) {
        const skvbem_wishart_places at = skvbem_wishart_at(d, n_components, shared, j);
        const double *mine = lower + j * d * d * n;
        double *log_root = natural + at.degrees * n, *packed = natural + at.square * n;
        skvbem_wishart_factored(d, n, cells, &at, mean, factor, inverse, log_det);
        skvbem_wishart_draw(d, n, inverse, mine, half, packed);
        for (intptr_t lane = 0; lane < n; lane++) log_root[lane] = -0.5 * (log_det[lane] + (double) d * SKVBEM_LN_2PI);
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t lane = 0; lane < n; lane++) log_root[lane] += log(mine[(i * d + i) * n + lane]);
        for (intptr_t k = 0; k < at.n_means; k++) {
            const double *kappa = cells + (at.kappa + k * at.step) * n;
            const double *of_mean = noise + (shared ? k : j) * d * n;
            double *norm = natural + (at.kappa + k * at.step) * n, *weighted = natural + (at.total + k * at.step) * n;
            for (intptr_t lane = 0; lane < n; lane++) norm[lane] = 0.0;
            for (intptr_t i = 0; i < d; i++) {
                double *v = turned + i * n;
                for (intptr_t lane = 0; lane < n; lane++) v[lane] = of_mean[i * n + lane] / sqrt(kappa[lane]);
                for (intptr_t l = 0; l < d; l++)
                    for (intptr_t lane = 0; lane < n; lane++)
                        v[lane] += half[(l * d + i) * n + lane] * mean[(k * d + l) * n + lane];
                for (intptr_t lane = 0; lane < n; lane++) norm[lane] -= 0.5 * v[lane] * v[lane];
            }
            for (intptr_t i = 0; i < d; i++) {
                for (intptr_t lane = 0; lane < n; lane++) weighted[i * n + lane] = 0.0;
                for (intptr_t l = 0; l < d; l++)
                    for (intptr_t lane = 0; lane < n; lane++)
                        weighted[i * n + lane] += half[(i * d + l) * n + lane] * turned[l * n + lane];
            }
        }
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t l = i; l < d; l++)
                for (intptr_t lane = 0; lane < n; lane++)
                    packed[skvbem_packed(d, i, l) * n + lane] *= i == l ? -0.5 : -1.0;
    }
    free(scratch);
    return 1;
}

/* Inverse scales drawn given precisions, packed: Wishart draws of so many degrees of freedom, whose inverse scales are `scale`
 * (d, d) plus the sum of precisions, of which natural parameters `squares` (n_precisions, d (d + 1) / 2) hold -1/2, halves
 * added. Returns 0 where there is no memory. */
static int skvbem_wishart_drawn_scale(intptr_t d, intptr_t n, double degrees, const double *restrict scale,
                                      intptr_t n_precisions, const long long *restrict squares,
                                      const double *restrict natural, uint64_t *restrict streams, double *restrict packed) {
    double *scratch = malloc((size_t) (4 * d * d * n + 1) * sizeof(double));
    if (!scratch) return 0;
    double *factor = scratch, *inverse = factor + d * d * n, *half = inverse + d * d * n, *lower = half + d * d * n;
    for (intptr_t i = 0; i < d; i++)
        for (intptr_t j = 0; j <= i; j++) {
            double *mine = factor + (i * d + j) * n;
            for (intptr_t lane = 0; lane < n; lane++) mine[lane] = 0.0;
            for (intptr_t p = 0; p < n_precisions; p++) {
                const double *cell = natural + squares[p * (d * (d + 1) / 2) + skvbem_packed(d, j, i)] * n;
                for (intptr_t lane = 0; lane < n; lane++) mine[lane] += cell[lane];
            }
            for (intptr_t lane = 0; lane < n; lane++)
                mine[lane] = scale[i * d + j] - (i == j ? 2.0 : 1.0) * mine[lane];
        }
    skvbem_small_cholesky(d, n, factor);
    skvbem_small_inverse(d, n, factor, inverse);
    for (intptr_t lane = 0; lane < n; lane++) {
        skvbem_stream stream = skvbem_load(streams, lane, n);
        skvbem_bartlett(d, n, 1, &degrees, 0, 0, lane, &stream, lower);
        skvbem_store(&stream, streams, lane, n);
    }
    skvbem_wishart_draw(d, n, inverse, lower, half, packed);
    free(scratch);
    return 1;
}

#endif
