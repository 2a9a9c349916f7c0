/* ln Gamma(k + r) - ln Gamma(r) for many r at a time: of whole k one after the other, and of any k. */
#ifndef SKVBEM_RISES_H
#define SKVBEM_RISES_H

#include "_lanes.h"

/* From k to k + 1: the logarithm of r + k more. */
SKVBEM_CLONES
static void skvbem_next_rise(intptr_t n, double k, const double *restrict r, double *restrict rise) {
    for (intptr_t i = 0; i < n; i++) rise[i] += skvbem_log(r[i] + k);
}

static void skvbem_rise(intptr_t n, double k, const double *restrict r, const double *restrict log_gamma_r,
                        double *restrict sum, double *restrict unused, double *restrict rise) {
    for (intptr_t i = 0; i < n; i++) sum[i] = r[i] + k;
    skvbem_log_gamma_digamma(n, sum, rise, unused);
    for (intptr_t i = 0; i < n; i++)  /* below 1e4 their difference has its digits, and takes a tenth of the time */
        rise[i] = r[i] < 1e4 ? rise[i] - log_gamma_r[i] : skvbem_log_growth(r[i], k, log_gamma_r[i], rise[i]);
}

#endif
