/* Transfers of rows between components that are normal distributions [Hartigan 1975], judged by the evidence of rows of
 * known components under Normal-Wishart priors. A component keeps the Cholesky factor of its scale, which a row that
 * leaves or joins changes by one rank. */
#ifndef SKVBEM_PARTITIONS_H
#define SKVBEM_PARTITIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_lanes.h"
#include "_wishart.h"

/* Components in turn: of the prior, and after the rows that each has. */
typedef struct {
    intptr_t d, n_components;
    const double *precision, *freedom, *mean, *scale; /* of the prior: (K,), (K,), (K, d), (K, d, d) */
    double *count, *center, *root, *log_det;          /* (K,), (K, d), (K, d, d), (K,) */
    double *weight_of_terms, *to_join, *to_stay;      /* (K,): for rows of one weight, what does not hang on the row */
    double *away, *scratch;                           /* (d,), (d + 6,) */
} skvbem_components;

static intptr_t skvbem_components_size(intptr_t n_components, intptr_t d) {
    return n_components * (5 + d + d * d) + 2 * d + 6;
}

static void skvbem_place_components(skvbem_components *of, double *room) {
    const intptr_t k = of->n_components, d = of->d;
    of->count = room;
    of->log_det = of->count + k;
    of->weight_of_terms = of->log_det + k;
    of->to_join = of->weight_of_terms + k;
    of->to_stay = of->to_join + k;
    of->center = of->to_stay + k;
    of->root = of->center + k * d;
    of->away = of->root + k * d * d;
    of->scratch = of->away + d;
}

/* All components anew after the labels of rows; 0 where a scale is not positive. */
static int skvbem_gather_components(skvbem_components *of, intptr_t n_rows, const double *rows, const double *weight,
                                    const int64_t *labels) {
    const intptr_t d = of->d;
    memset(of->count, 0, of->n_components * sizeof(double));
    memset(of->center, 0, of->n_components * d * sizeof(double));
    memcpy(of->root, of->scale, of->n_components * d * d * sizeof(double));
    for (intptr_t row = 0; row < n_rows; row++) {
        const intptr_t k = labels[row];
        double *sum = of->center + k * d, *square = of->root + k * d * d;
        of->count[k] += weight[row];
        for (intptr_t i = 0; i < d; i++) of->away[i] = rows[row * d + i] - of->mean[k * d + i];
        for (intptr_t i = 0; i < d; i++) {
            sum[i] += weight[row] * of->away[i];
            for (intptr_t j = 0; j <= i; j++) square[i * d + j] += weight[row] * of->away[i] * of->away[j];
        }
    }
    for (intptr_t k = 0; k < of->n_components; k++) {
        double *sum = of->center + k * d, *square = of->root + k * d * d;
        const double precision = of->precision[k] + of->count[k];
        for (intptr_t i = 0; i < d; i++)
            for (intptr_t j = 0; j <= i; j++) square[i * d + j] -= sum[i] * sum[j] / precision;
        for (intptr_t i = 0; i < d; i++) sum[i] = of->mean[k * d + i] + sum[i] / precision;
        skvbem_small_cholesky(d, 1, square);
        skvbem_log_det(d, 1, square, of->log_det + k);
        if (isnan(of->log_det[k])) return 0;
        of->weight_of_terms[k] = -1.0;
    }
    return 1;
}

/* The squared distance of a row from a component in units of its scale, or a part of it that is above a limit; how far
 * it is away stays in `away`. */
static double skvbem_square_up_to(const skvbem_components *of, intptr_t k, const double *row, double limit) {
    const intptr_t d = of->d;
    const double *center = of->center + k * d, *root = of->root + k * d * d;
    double total = 0.0, *z = of->scratch;
    for (intptr_t i = 0; i < d; i++) of->away[i] = row[i] - center[i];
    for (intptr_t i = 0; i < d; i++) {
        double sum = of->away[i];
        for (intptr_t j = 0; j < i; j++) sum -= root[i * d + j] * z[j];
        z[i] = sum / root[i * d + i];
        total += z[i] * z[i];
        if (total > limit) break;
    }
    return total;
}

static double skvbem_square_to(const skvbem_components *of, intptr_t k, const double *row) {
    return skvbem_square_up_to(of, k, row, INFINITY);
}

/* ln of Gamma((freedom + weight - j) / 2) less that of Gamma((freedom - j) / 2), summed over j < d. */
static double skvbem_lifted(const skvbem_components *of, double freedom, double weight) {
    const intptr_t d = of->d;
    double *x = of->scratch, *of_gamma = x + 2, *unused = x + 4, total = 0.0;
    if (weight == 1.0) { /* all factors but two cancel */
        x[0] = (freedom + 1.0) / 2.0, x[1] = (freedom + 1.0 - (double) d) / 2.0;
        skvbem_log_gamma_digamma(2, x, of_gamma, unused);
        return of_gamma[0] - of_gamma[1];
    }
    for (intptr_t j = 0; j < d; j++) {
        const double a = (freedom - (double) j) / 2.0;
        x[0] = a, x[1] = a + weight / 2.0;
        skvbem_log_gamma_digamma(2, x, of_gamma, unused);
        total += skvbem_log_rising(a, weight / 2.0, of_gamma[0], of_gamma[1]);
    }
    return total;
}

/* What a component gains by a row of a weight that joins it, and what it has by one that stays, but for the distance. */
static void skvbem_weigh_component(skvbem_components *of, intptr_t k, double weight) {
    if (of->weight_of_terms[k] == weight) return;
    const double d = (double) of->d, count = of->count[k], left = fmax(count - weight, 0.0);
    const double freedom = of->freedom[k], precision = of->precision[k];
    double x[3] = {count + 1.0, count + weight + 1.0, left + 1.0}, of_gamma[3], unused[3];
    skvbem_log_gamma_digamma(3, x, of_gamma, unused);
    const double of_pi = weight * d / 2.0 * SKVBEM_LN_PI + weight / 2.0 * of->log_det[k];
    of->to_join[k] = skvbem_lifted(of, freedom + count, weight) - of_pi + of_gamma[1] - of_gamma[0]
                     - d / 2.0 * log1p(weight / (precision + count));
    of->to_stay[k] = skvbem_lifted(of, freedom + left, weight) - of_pi + of_gamma[0] - of_gamma[2]
                     - d / 2.0 * log((precision + count) / (precision + left));
    of->weight_of_terms[k] = weight;
}

/* Put a row, as far away as was found last, into a component (sign 1), or take it out (-1); 0 where rounding forbids. */
static int skvbem_change_component(skvbem_components *of, intptr_t k, double weight, double sign, double growth) {
    const intptr_t d = of->d;
    const double precision = of->precision[k] + of->count[k], after = precision + sign * weight;
    double *root = of->root + k * d * d, *x = of->scratch;
    const double size = sqrt(precision * weight / after);
    for (intptr_t i = 0; i < d; i++) x[i] = size * of->away[i];
    for (intptr_t i = 0; i < d; i++) of->center[k * d + i] += sign * weight / after * of->away[i];
    for (intptr_t j = 0; j < d; j++) {
        const double pivot = root[j * d + j], squared = pivot * pivot + sign * x[j] * x[j];
        if (!(squared > 0.0)) return 0;
        const double r = sqrt(squared), cosine = r / pivot, sine = x[j] / pivot;
        root[j * d + j] = r;
        for (intptr_t i = j + 1; i < d; i++) {
            root[i * d + j] = (root[i * d + j] + sign * sine * x[i]) / cosine;
            x[i] = cosine * x[i] - sine * root[i * d + j];
        }
    }
    of->count[k] = fmax(of->count[k] + sign * weight, 0.0);
    of->log_det[k] += growth;
    of->weight_of_terms[k] = -1.0;
    return 1;
}

/* ln p(rows, labels) of all components, but for what does not hang on labels, nats. */
static double skvbem_log_evidence_of_components(const skvbem_components *of) {
    const double d = (double) of->d;
    double total = 0.0, x[1], of_gamma[1], unused[1];
    for (intptr_t k = 0; k < of->n_components; k++) {
        const double count = of->count[k], freedom = of->freedom[k] + count;
        x[0] = count + 1.0;
        skvbem_log_gamma_digamma(1, x, of_gamma, unused);
        total += of_gamma[0] - d / 2.0 * (count * SKVBEM_LN_PI + log(of->precision[k] + count));
        total -= freedom / 2.0 * of->log_det[k];
        for (intptr_t j = 0; j < of->d; j++) {
            x[0] = (freedom - (double) j) / 2.0;
            skvbem_log_gamma_digamma(1, x, of_gamma, unused);
            total += of_gamma[0];
        }
    }
    return total;
}

/* Move rows, one by one in an order, to the component where rows and labels together are most probable; sweep after
 * sweep until none moves. Returns sweeps made, or -1 where a scale is not positive. */
static intptr_t skvbem_transfer_rows(skvbem_components *of, intptr_t n_rows, const double *rows, const double *weight,
                                     const int64_t *order, intptr_t n_free, double least, intptr_t n_sweeps,
                                     int64_t *labels) {
    const intptr_t d = of->d;
    for (intptr_t sweep = 0; sweep < n_sweeps; sweep++) {
        intptr_t n_moved = 0;
        if (!skvbem_gather_components(of, n_rows, rows, weight, labels)) return -1;
        for (intptr_t at = 0; at < n_free; at++) {
            const intptr_t row = order[at], from = labels[row];
            const double w = weight[row], *x = rows + row * d;
            const double precision = of->precision[from] + of->count[from];
            const double shrunk = 1.0 - precision * w / (precision - w) * skvbem_square_to(of, from, x);
            if (!(shrunk > 1e-10)) continue; /* without this row nothing is left that rounding has not made */
            skvbem_weigh_component(of, from, w);
            const double freedom = of->freedom[from] + of->count[from];
            const double stays = of->to_stay[from] + (freedom - w) / 2.0 * log(shrunk);
            double best = stays + least, grown = 0.0;
            intptr_t into = from;
            for (intptr_t k = 0; k < of->n_components; k++) {
                if (k == from) continue;
                const double before = of->precision[k] + of->count[k];
                skvbem_weigh_component(of, k, w);
                const double share = before * w / (before + w), half = (of->freedom[k] + of->count[k] + w) / 2.0;
                if (of->to_join[k] <= best) continue; /* nor at its center */
                const double limit = 1.01 * expm1((of->to_join[k] - best) / half) / share; /* farther, it gains less */
                const double square = skvbem_square_up_to(of, k, x, limit);
                if (square > limit) continue;
                const double growth = log1p(share * square), joins = of->to_join[k] - half * growth;
                if (joins > best) best = joins, into = k, grown = growth;
            }
            if (into == from) continue;
            n_moved++;
            labels[row] = into;
            skvbem_square_to(of, from, x);
            int done = skvbem_change_component(of, from, w, -1.0, log(shrunk));
            if (done) {
                skvbem_square_to(of, into, x);
                done = skvbem_change_component(of, into, w, 1.0, grown);
            }
            if (!done && !skvbem_gather_components(of, n_rows, rows, weight, labels)) return -1;
        }
        if (n_moved == 0) return sweep + 1;
    }
    return n_sweeps;
}

#endif
