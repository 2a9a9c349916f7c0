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

#endif
