/* Distributions of sums of independent counts, on the window that holds all but a negligible share of their mass. */
#ifndef SKVBEM_CONVOLUTION_H
#define SKVBEM_CONVOLUTION_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_lanes.h"

/* P(first), P(first + 1), ..., `length` of them; `lost` is the mass cut off in the making. */
typedef struct {
    int64_t first;
    intptr_t length;
    double *mass;
    double lost;
} skvbem_window;

/* to[k] = q x[k] + p x[k - 1], k = 0 ... length: one trial more */
SKVBEM_CLONES
static void skvbem_one_more(intptr_t length, double p, double q, const double *restrict x, double *restrict to) {
    to[0] = q * x[0];
    for (intptr_t k = 1; k < length; k++) to[k] = q * x[k] + p * x[k - 1];
    to[length] = p * x[length - 1];
}

/* to += a * b, with four entries of a at a time, so that sums stay in registers */
SKVBEM_CLONES
static void skvbem_convolve(intptr_t n_a, const double *restrict a, intptr_t n_b, const double *restrict b,
                            double *restrict to) {
    intptr_t i = 0;
    for (; i + 4 <= n_a && n_b >= 4; i += 4) {
        const double a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3];
        double *restrict here = to + i;
        here[0] += a0 * b[0];
        here[1] += a0 * b[1] + a1 * b[0];
        here[2] += a0 * b[2] + a1 * b[1] + a2 * b[0];
        for (intptr_t k = 3; k < n_b; k++) here[k] += (a0 * b[k] + a1 * b[k - 1]) + (a2 * b[k - 2] + a3 * b[k - 3]);
        here[n_b] += a1 * b[n_b - 1] + a2 * b[n_b - 2] + a3 * b[n_b - 3];
        here[n_b + 1] += a2 * b[n_b - 1] + a3 * b[n_b - 2];
        here[n_b + 2] += a3 * b[n_b - 1];
    }
    for (; i < n_a; i++)
        for (intptr_t k = 0; k < n_b; k++) to[i + k] += a[i] * b[k];
}

/* Cut tails of mass at most `negligible` each. */
static void skvbem_trim(skvbem_window *w, double negligible) {
    double *mass = w->mass, low = 0.0, high = 0.0;
    intptr_t first = 0, last = w->length;
    while (first + 1 < last && low + mass[first] <= negligible) low += mass[first++];
    while (first + 1 < last && high + mass[last - 1] <= negligible) high += mass[--last];
    if (first) memmove(mass, mass + first, (last - first) * sizeof(double));
    w->first += first;
    w->length = last - first;
    w->lost += low + high;
}

/* Successes in n trials of probability p, 0 < p < 1: from the mode outward by ratios of neighbors. */
static skvbem_window skvbem_binomial_window(int64_t n, double p, double negligible) {
    const double odds = p / (1.0 - p);
    const int64_t mode = (int64_t) floor((double) (n + 1) * p);
    int64_t first = mode, last = mode;
    double x = 1.0, ratio, total = 1.0, lost = 0.0;
    while (first > 0 && x > negligible) {
        x *= (double) first / ((double) (n - first + 1) * odds);
        total += x;
        first--;
    }
    ratio = (double) first / ((double) (n - first + 1) * odds); /* ratios fall: the rest is below a geometric series */
    lost += x * ratio / (1.0 - ratio);
    x = 1.0;
    while (last < n && x > negligible) {
        x *= (double) (n - last) * odds / (double) (last + 1);
        total += x;
        last++;
    }
    ratio = (double) (n - last) * odds / (double) (last + 1);
    lost += x * ratio / (1.0 - ratio);
    skvbem_window w = {first, last - first + 1, (double *) malloc((last - first + 1) * sizeof(double)), lost / total};
    if (!w.mass) return w;
    w.mass[mode - first] = 1.0 / total;
    for (int64_t k = mode; k > first; k--)
        w.mass[k - 1 - first] = w.mass[k - first] * (double) k / ((double) (n - k + 1) * odds);
    for (int64_t k = mode; k < last; k++)
        w.mass[k + 1 - first] = w.mass[k - first] * (double) (n - k) * odds / (double) (k + 1);
    return w;
}

/* Up to so many trials of one item are taken one by one, and so many items make a leaf of the tree below. */
#define SKVBEM_FEW_TRIALS 12
#define SKVBEM_LEAF_TRIALS 48

/* The sum of Binomial(weight[i], p[i]), i = 0 ... n - 1; items are halved and halves convolved. `mass` is NULL where
 * memory ran out. */
static skvbem_window skvbem_poisson_binomial(intptr_t n, const double *p, const double *weight, double negligible) {
    double trials = 0.0;
    intptr_t few = 1;
    for (intptr_t i = 0; i < n; i++) {
        trials += weight[i];
        few &= weight[i] <= SKVBEM_FEW_TRIALS;
    }
    if (few && (trials <= SKVBEM_LEAF_TRIALS || n <= 1)) {
        const intptr_t most = (intptr_t) trials + 1;
        skvbem_window w = {0, 1, (double *) malloc(2 * most * sizeof(double)), 0.0};
        if (!w.mass) return w;
        double *x = w.mass, *other = w.mass + most;
        x[0] = 1.0;
        for (intptr_t i = 0; i < n; i++)
            for (intptr_t k = 0; k < (intptr_t) weight[i]; k++) {
                skvbem_one_more(w.length++, p[i], 1.0 - p[i], x, other);
                double *swap = x;
                x = other;
                other = swap;
            }
        if (x != w.mass) memcpy(w.mass, x, w.length * sizeof(double));
        skvbem_trim(&w, negligible);
        return w;
    }
    if (n == 1) return skvbem_binomial_window((int64_t) weight[0], p[0], negligible);
    skvbem_window a = skvbem_poisson_binomial(n / 2, p, weight, negligible);
    skvbem_window b = skvbem_poisson_binomial(n - n / 2, p + n / 2, weight + n / 2, negligible);
    skvbem_window w = {a.first + b.first, a.length + b.length - 1, NULL, a.lost + b.lost};
    if (a.mass && b.mass) w.mass = (double *) calloc(w.length, sizeof(double));
    if (w.mass) {
        if (a.length <= b.length)
            skvbem_convolve(a.length, a.mass, b.length, b.mass, w.mass);
        else
            skvbem_convolve(b.length, b.mass, a.length, a.mass, w.mass);
        skvbem_trim(&w, negligible);
    }
    free(a.mass);
    free(b.mass);
    return w;
}

/* logs[k] = ln(a + k), k = 0 ... n - 1, for a >= 1e-300 */
SKVBEM_CLONES
static void skvbem_logs(intptr_t n, double a, double *restrict logs) {
    for (intptr_t k = 0; k < n; k++) logs[k] = skvbem_log(a + (double) k);
}

#endif
