/* ln Gamma(k + r) - ln Gamma(r) for many r at a time: of whole k one after the other, and of any k. */
#ifndef SKVBEM_RISES_H
#define SKVBEM_RISES_H

#include "_lanes.h"

/* Numbers r of several members that are gone through together, so that loops are long and arrays stay in the cache. */
#define SKVBEM_AT_ONCE 512
/* From here on five terms of Stirling's series have all digits. */
#define SKVBEM_STIRLING 32.0

/* Logarithms of r + k. */
SKVBEM_CLONES
static void skvbem_logs(intptr_t n, double k, const double *restrict r, double *restrict log_sum) {
    for (intptr_t i = 0; i < n; i++) log_sum[i] = skvbem_log(r[i] + k);
}

/* From k to k + 1: the logarithm of r + k more. */
SKVBEM_CLONES
static void skvbem_next_rise(intptr_t n, double k, const double *restrict r, double *restrict rise) {
    for (intptr_t i = 0; i < n; i++) rise[i] += skvbem_log(r[i] + k);
}

/* ln Gamma(r + k) of k >= SKVBEM_STIRLING by Stirling's series, less ln Gamma(r). */
SKVBEM_CLONES
static void skvbem_differences(intptr_t n, double k, const double *restrict r, const double *restrict log_gamma_r,
                               double *restrict rise) {
    for (intptr_t i = 0; i < n; i++) {
        const double x = r[i] + k, inverse = 1.0 / x, z = inverse * inverse;
        const double tail = inverse * (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188)))));
        rise[i] = (x - 0.5) * skvbem_log(x) - x + 0.91893853320467274178 + tail - log_gamma_r[i];
    }
}

/* Of any k; `scratch` (2 n,). */
static void skvbem_rise(intptr_t n, double k, const double *restrict r, const double *restrict log_gamma_r,
                        double *restrict scratch, double *restrict rise) {
    if (k >= SKVBEM_STIRLING) {
        skvbem_differences(n, k, r, log_gamma_r, rise);
    } else {
        for (intptr_t i = 0; i < n; i++) scratch[i] = r[i] + k;
        skvbem_log_gamma_digamma(n, scratch, rise, scratch + n);
        for (intptr_t i = 0; i < n; i++) rise[i] -= log_gamma_r[i];
    }
    for (intptr_t i = 0; i < n; i++)  /* below 1e4 their difference has its digits, and takes a tenth of the time */
        if (r[i] >= 1e4) rise[i] = skvbem_log_growth(r[i], k, log_gamma_r[i], rise[i] + log_gamma_r[i]);
}

/* out += weight times values, of members with so many values each, whose weights are `stride` apart. */
SKVBEM_CLONES
static void skvbem_add_weighted(intptr_t n_members, intptr_t n, const double *restrict weight, intptr_t stride,
                                const double *restrict values, double *restrict out) {
    for (intptr_t m = 0; m < n_members; m++, values += n, out += n)
        for (intptr_t i = 0; i < n; i++) out[i] += weight[m * stride] * values[i];
}

/* ln(1 + x) for x >= 0, what 1 + x is rounded by put back. */
SKVBEM_INLINE double skvbem_log_one_plus(double x) {
    const double sum = 1.0 + x;
    return skvbem_log(sum) + (x - (sum - 1.0)) / sum;
}

/* ln Gamma(a + n) - ln Gamma(a), given both logarithms; for n > 0 as `skvbem_log_rising`, in vectors. */
SKVBEM_CLONES
static void skvbem_log_growths(intptr_t count, const double *restrict a, const double *restrict n,
                               const double *restrict of_a, const double *restrict of_sum, double *restrict out) {
    for (intptr_t i = 0; i < count; i++) {
        const double sum = a[i] + n[i], tails = skvbem_stirling_tail(sum) - skvbem_stirling_tail(a[i]);
        const double large = (a[i] - 0.5) * skvbem_log_one_plus(n[i] / a[i]) + n[i] * skvbem_log(sum) - n[i] + tails;
        out[i] = a[i] < 32.0 ? of_sum[i] - of_a[i] : large;
    }
    for (intptr_t i = 0; i < count; i++)
        if (!(n[i] > 0.0)) out[i] = skvbem_log_growth(a[i], n[i], of_a[i], of_sum[i]);
}

/* Arguments of members (n_members,), for `skvbem_add_masses`. */
typedef struct {
    intptr_t n_cells;
    const double *cells;         /* (n_members, n_cells), of which the first four are prior, measure, number and sum of counts */
    const double *weight, *unit; /* of the prior */
} skvbem_sizes;

/* What masses are beside the sums over knots, of members at logarithms t of sizes r, (n_members, n), nats; `scratch`
 * (7, n_members, n). */
SKVBEM_CLONES
static void skvbem_add_masses(skvbem_sizes sizes, intptr_t n_members, intptr_t n, const double *restrict t,
                              const double *restrict r, double *restrict scratch, double *restrict out) {
    const intptr_t count = n_members * n;
    double *restrict b = scratch, *restrict exponent = b + count, *restrict sum = b + 2 * count;
    double *restrict of_b = b + 3 * count, *restrict of_sum = b + 4 * count, *restrict growth = b + 5 * count;
    for (int of_data = 0; of_data < 2; of_data++) {
        for (intptr_t m = 0; m < n_members; m++) {
            const double *cells = sizes.cells + m * sizes.n_cells, a = sizes.weight[m], unit = sizes.unit[m];
            const double of_p = of_data ? cells[0] * a + cells[3] - cells[1] : a;
            const double share = of_data ? cells[0] : 1.0, number = of_data ? cells[2] : 0.0, less = of_data ? cells[1] : 0.0;
            for (intptr_t i = m * n; i < (m + 1) * n; i++) {
                b[i] = share * (1.0 + a * r[i] / unit) + r[i] * number - less;
                exponent[i] = of_p;
                sum[i] = b[i] + of_p;
            }
        }
        skvbem_log_gamma_digamma(count, b, of_b, b + 6 * count);
        skvbem_log_gamma_digamma(count, sum, of_sum, b + 6 * count);
        skvbem_log_growths(count, b, exponent, of_b, of_sum, growth);
        for (intptr_t m = 0; m < n_members; m++) {
            const double *cells = sizes.cells + m * sizes.n_cells;
            double of_gamma, unused;
            skvbem_log_gamma_digamma(1, exponent + m * n, &of_gamma, &unused);
            if (of_data)
                for (intptr_t i = m * n; i < (m + 1) * n; i++) out[i] += of_gamma - growth[i];
            else
                for (intptr_t i = m * n; i < (m + 1) * n; i++)
                    out[i] += cells[0] * (t[i] - 2.0 * skvbem_log_one_plus(r[i]) - of_gamma + growth[i]) - cells[1] * t[i];
        }
    }
}

#endif
