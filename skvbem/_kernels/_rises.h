/* ln Gamma(k + r) - ln Gamma(r) for many r at a time: of whole k one after the other, and of any k. And integrals over
 * r, where the logarithm of r is on panels, in each of which a rise is a polynomial. */
#ifndef SKVBEM_RISES_H
#define SKVBEM_RISES_H

#include "_trapezoid.h"

/* Numbers r of several members that are gone through together, so that loops are long and arrays stay in the cache. */
#define SKVBEM_AT_ONCE 512
/* From here on five terms of Stirling's series have all digits. */
#define SKVBEM_STIRLING 32.0

/* Logarithms of r + k. */
SKVBEM_CLONES
static void skvbem_logs(intptr_t n, double k, const double *restrict r, double *restrict log_sum) {
    for (intptr_t i = 0; i < n; i++) log_sum[i] = skvbem_log(r[i] + k);
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

SKVBEM_INLINE double skvbem_chosen(int condition, double yes, double no) {
    const uint64_t chosen = -(uint64_t) condition;
    return skvbem_from_bits((skvbem_to_bits(yes) & chosen) | (skvbem_to_bits(no) & ~chosen));
}

SKVBEM_INLINE double skvbem_least(intptr_t n, const double *b) {
    double least = INFINITY;
    for (intptr_t i = 0; i < n; i++) least = b[i] > least ? least : b[i];  /* NaN, if there is one */
    return least;
}

/* ln Gamma(b + more) - ln Gamma(b) of many b, as `skvbem_log_growth`; `scratch` (4, n). */
SKVBEM_CLONES
static void skvbem_log_growths(intptr_t n, const double *restrict b, double more, double *restrict scratch,
                               double *restrict out) {
    double *restrict sum = scratch, *restrict of_b = scratch + n, *restrict of_sum = scratch + 2 * n;
    if (more == 1.0) {
        for (intptr_t i = 0; i < n; i++) out[i] = skvbem_chosen(b[i] > 0.0, skvbem_log(b[i]), NAN);
        return;
    }
    for (intptr_t i = 0; i < n; i++) {
        const double large = b[i] + more, tails = skvbem_stirling_tail(large) - skvbem_stirling_tail(b[i]);
        sum[i] = large;
        out[i] = (b[i] - 0.5) * skvbem_log_one_plus(more / b[i]) + more * skvbem_log(large) - more + tails;
    }
    if (more > 0.0 && skvbem_least(n, b) >= SKVBEM_STIRLING) return;
    skvbem_log_gamma_digamma(n, b, of_b, scratch + 3 * n);
    skvbem_log_gamma_digamma(n, sum, of_sum, scratch + 3 * n);
    for (intptr_t i = 0; i < n; i++) out[i] = skvbem_chosen(b[i] >= SKVBEM_STIRLING, out[i], of_sum[i] - of_b[i]);
    if (!(more > 0.0))
        for (intptr_t i = 0; i < n; i++) out[i] = skvbem_log_growth(b[i], more, of_b[i], of_sum[i]);
}

/* A member at sizes r. */
typedef struct {
    const double *cells;                          /* prior, measure, number and sum of counts, then weights at knots */
    double weight, unit, of_weight, of_p, log_p;  /* of the prior, and ln Gamma; exponent of p, and ln Gamma */
} skvbem_size;

static skvbem_size skvbem_size_of(const double *cells, double weight, double unit) {
    skvbem_size size = {cells, weight, unit, 0.0, cells[0] * weight + cells[3] - cells[1], 0.0};
    double unused;
    skvbem_log_gamma_digamma(1, &size.weight, &size.of_weight, &unused);
    skvbem_log_gamma_digamma(1, &size.of_p, &size.log_p, &unused);
    return size;
}

/* What masses are beside the sums over knots, at n logarithms t of sizes r, nats; `scratch` (6, n). */
SKVBEM_CLONES
static void skvbem_add_mass(const skvbem_size *size, intptr_t n, const double *restrict t, const double *restrict r,
                            double *restrict scratch, double *restrict out) {
    const double *cells = size->cells;
    double *restrict b = scratch, *restrict growth = scratch + n;
    for (intptr_t i = 0; i < n; i++) b[i] = 1.0 + size->weight * r[i] / size->unit;
    skvbem_log_growths(n, b, size->weight, scratch + 2 * n, growth);
    for (intptr_t i = 0; i < n; i++) {
        const double prior = t[i] - 2.0 * skvbem_log_one_plus(r[i]) - size->of_weight + growth[i];
        out[i] += cells[0] * prior - cells[1] * t[i];
        b[i] = cells[0] * b[i] + r[i] * cells[2] - cells[1];
    }
    skvbem_log_growths(n, b, size->of_p, scratch + 2 * n, growth);
    for (intptr_t i = 0; i < n; i++) out[i] += size->log_p - growth[i];
}

/* (ln x - 1 / 2x - psi(x)) x^2 of z = 1 / x^2. */
SKVBEM_INLINE double skvbem_digamma_series(double z) {
    return 1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132))));
}

/* psi(b + more) - psi(b) and psi(b + more) of many b > 0; `scratch` (4, n). */
SKVBEM_CLONES
static void skvbem_digammas(intptr_t n, const double *restrict b, double more, double *restrict scratch,
                            double *restrict rise, double *restrict of_sum) {
    double *restrict sum = scratch, *restrict of_b = scratch + n, *restrict exact = scratch + 2 * n;
    for (intptr_t i = 0; i < n; i++) {
        const double large = b[i] + more, p = 1.0 / large, q = 1.0 / b[i], z = p * p, y = q * q;
        const double tail = 0.5 * p + z * skvbem_digamma_series(z), other = 0.5 * q + y * skvbem_digamma_series(y);
        sum[i] = large;
        rise[i] = skvbem_log_one_plus(more / b[i]) - (tail - other);
        of_sum[i] = skvbem_log(large) - tail;
    }
    if (skvbem_least(n, b) >= SKVBEM_STIRLING) return;
    skvbem_log_gamma_digamma(n, b, scratch + 3 * n, of_b);
    skvbem_log_gamma_digamma(n, sum, scratch + 3 * n, exact);
    for (intptr_t i = 0; i < n; i++) {
        const int is_large = b[i] >= SKVBEM_STIRLING;
        rise[i] = skvbem_chosen(is_large, rise[i], exact[i] - of_b[i]);
        of_sum[i] = skvbem_chosen(is_large, of_sum[i], exact[i]);
    }
}

/* Integrals over sizes --------------------------------------------------------------------------------------------- */

/* Coefficients of a polynomial by Chebyshev's, T_0 to T_15, on a panel. */
#define SKVBEM_COEFFICIENTS 16

/* Rises as polynomials on panels of the logarithm of r, and the sums of one member, computed at first use. */
typedef struct {
    skvbem_size of;
    intptr_t n_knots, n_panels;
    double start, width;           /* of the first panel */
    const double *table;           /* (n_panels, n_knots, SKVBEM_COEFFICIENTS) */
    const double *places, *around; /* logarithms of a first look, and rises there, (n_knots, SKVBEM_COEFFICIENTS) */
    double *sums;                  /* (n_panels, SKVBEM_COEFFICIENTS) */
    intptr_t *known, n_known;      /* panels whose sums are there */
    char *is_known;                /* (n_panels,) */
    double *scratch;               /* (9, n), n a multiple of `SKVBEM_VECTOR` */
} skvbem_member;

/* Numbers that are computed together: fewer take as long. */
#define SKVBEM_VECTOR 8

SKVBEM_INLINE intptr_t skvbem_panel(const skvbem_member *member, double t) {
    const double place = (t - member->start) / member->width;
    return !(place >= 0.0) ? 0 : place >= (double) member->n_panels ? member->n_panels - 1 : (intptr_t) place;
}

/* The end of the logarithms that are on the panel of the first of them. */
SKVBEM_INLINE intptr_t skvbem_run(const skvbem_member *member, intptr_t n, const double *t, intptr_t panel) {
    intptr_t i = 1;
    while (i < n && skvbem_panel(member, t[i]) == panel) i++;
    return i;
}

SKVBEM_CLONES
static void skvbem_sum_panel(intptr_t n_knots, const double *restrict weights, const double *restrict table,
                             double *restrict sums) {
    for (int j = 0; j < SKVBEM_COEFFICIENTS; j++) sums[j] = 0.0;
    for (intptr_t k = 0; k < n_knots; k++, table += SKVBEM_COEFFICIENTS)
        for (int j = 0; j < SKVBEM_COEFFICIENTS; j++) sums[j] += weights[k] * table[j];
}

/* Values of a polynomial at places (t - middle) / half, by Clenshaw's recurrence. */
SKVBEM_CLONES
static void skvbem_polynomials(intptr_t n, double middle, double half, const double *restrict coefficients,
                               const double *restrict t, double *restrict values) {
    for (intptr_t i = 0; i < n; i++) {
        const double x = (t[i] - middle) / half;
        double before = 0.0, last = 0.0;
        for (int j = SKVBEM_COEFFICIENTS - 1; j > 0; j--) {
            const double next = 2.0 * x * last - before + coefficients[j];
            before = last;
            last = next;
        }
        values[i] = x * last - before + coefficients[0];
    }
}

/* Sums over nodes of their shares times Chebyshev's polynomials; `scratch` (3, n). */
SKVBEM_CLONES
static void skvbem_chebyshev_moments(intptr_t n, double middle, double half, const double *restrict t,
                                     const double *restrict share, double *restrict scratch, double *restrict moments) {
    double *restrict x = scratch, *restrict before = scratch + n, *restrict last = scratch + 2 * n;
    for (intptr_t i = 0; i < n; i++) {
        x[i] = (t[i] - middle) / half;
        last[i] = share[i];
        before[i] = x[i] * share[i];  /* T_-1 = T_1 */
    }
    for (int j = 0; j < SKVBEM_COEFFICIENTS; j++) {
        double total[4] = {0.0, 0.0, 0.0, 0.0};
        intptr_t i = 0;
        for (; i + 4 <= n; i += 4)
            for (int lane = 0; lane < 4; lane++) total[lane] += last[i + lane];
        for (; i < n; i++) total[0] += last[i];
        moments[j] = (total[0] + total[1]) + (total[2] + total[3]);
        for (i = 0; i < n; i++) {
            const double next = 2.0 * x[i] * last[i] - before[i];
            before[i] = last[i];
            last[i] = next;
        }
    }
}

/* means += moments times the coefficients of each knot */
SKVBEM_CLONES
static void skvbem_add_means(intptr_t n_knots, const double *restrict moments, const double *restrict table,
                             double *restrict means) {
    for (intptr_t k = 0; k < n_knots; k++, table += SKVBEM_COEFFICIENTS) {
        double total[4] = {0.0, 0.0, 0.0, 0.0};
        for (int j = 0; j < SKVBEM_COEFFICIENTS; j += 4)
            for (int lane = 0; lane < 4; lane++) total[lane] += moments[j + lane] * table[j + lane];
        means[k] += (total[0] + total[1]) + (total[2] + total[3]);
    }
}

SKVBEM_CLONES
static void skvbem_exps(intptr_t n, const double *restrict t, double *restrict r) {
    for (intptr_t i = 0; i < n; i++) r[i] = skvbem_exp(t[i]);
}

/* ln of the integral over the probability at n logarithms of sizes, in rising order, nats. */
static void skvbem_log_masses(void *of_member, intptr_t n, const double *t, double *values) {
    skvbem_member *member = (skvbem_member *) of_member;
    const intptr_t count = (n + SKVBEM_VECTOR - 1) / SKVBEM_VECTOR * SKVBEM_VECTOR;
    double *at = member->scratch, *r = at + count, *total = at + 2 * count;
    for (intptr_t i = 0; i < count; i++) at[i] = t[i < n ? i : n - 1];
    for (intptr_t i = 0, end; i < count; i = end) {
        const intptr_t panel = skvbem_panel(member, at[i]);
        double *sums = member->sums + panel * SKVBEM_COEFFICIENTS;
        end = i + skvbem_run(member, count - i, at + i, panel);
        if (!member->is_known[panel]) {
            skvbem_sum_panel(member->n_knots, member->of.cells + 4,
                             member->table + panel * member->n_knots * SKVBEM_COEFFICIENTS, sums);
            member->is_known[panel] = 1;
            member->known[member->n_known++] = panel;
        }
        skvbem_polynomials(end - i, member->start + (panel + 0.5) * member->width, 0.5 * member->width, sums, at + i,
                           total + i);
    }
    skvbem_exps(count, at, r);
    skvbem_add_mass(&member->of, count, at, r, at + 3 * count, total);
    for (intptr_t i = 0; i < n; i++) values[i] = total[i];
}

/* The same at the logarithms of a first look, whose rises are in a table. */
static void skvbem_log_masses_around(void *of_member, double *values) {
    skvbem_member *member = (skvbem_member *) of_member;
    double *r = member->scratch, *total = r + SKVBEM_COEFFICIENTS;
    skvbem_sum_panel(member->n_knots, member->of.cells + 4, member->around, total);
    skvbem_exps(SKVBEM_VECTOR, member->places, r);
    skvbem_add_mass(&member->of, SKVBEM_VECTOR, member->places, r, total + SKVBEM_COEFFICIENTS, total);
    for (intptr_t i = 0; i < SKVBEM_AROUND; i++) values[i] = total[i];
}

/* Expected natural parameters of one member, (4 + n_knots,), of n nodes. */
SKVBEM_CLONES
static void skvbem_mean_natural(skvbem_member *member, intptr_t n, const double *restrict t,
                                const double *restrict share, double *restrict means) {
    const double *cells = member->of.cells, a = member->of.weight, unit = member->of.unit;
    double *restrict r = member->scratch, *restrict b = r + n, *restrict growth = r + 2 * n, *restrict rise = r + 3 * n;
    double *restrict of_sum = r + 4 * n;
    double slope_p, unused;
    skvbem_log_gamma_digamma(1, &member->of.of_p, &unused, &slope_p);
    skvbem_exps(n, t, r);
    for (intptr_t i = 0; i < n; i++) b[i] = 1.0 + a * r[i] / unit;
    skvbem_log_growths(n, b, a, of_sum, growth);
    for (intptr_t i = 0; i < n; i++) b[i] = cells[0] * b[i] + r[i] * cells[2] - cells[1];
    skvbem_digammas(n, b, member->of.of_p, r + 5 * n, rise, of_sum);
    for (intptr_t i = 0; i < n; i++) {
        const double log_rest = -rise[i], log_p = slope_p - of_sum[i];
        const double prior = t[i] - 2.0 * skvbem_log_one_plus(r[i]) - member->of.of_weight + growth[i];
        growth[i] = prior + a * log_p + (1.0 + a * r[i] / unit) * log_rest;
        b[i] = -t[i] - log_p - log_rest;
        rise[i] = r[i] * log_rest;
        of_sum[i] = log_p;
    }
    for (int cell = 0; cell < 4; cell++) means[cell] = 0.0;
    for (intptr_t i = 0; i < n; i++) {
        means[0] += share[i] * growth[i];
        means[1] += share[i] * b[i];
        means[2] += share[i] * rise[i];
        means[3] += share[i] * of_sum[i];
    }
    for (intptr_t k = 0; k < member->n_knots; k++) means[4 + k] = 0.0;
    for (intptr_t i = 0, end; i < n; i = end) {
        double moments[SKVBEM_COEFFICIENTS];
        const intptr_t panel = skvbem_panel(member, t[i]);
        end = i + skvbem_run(member, n - i, t + i, panel);
        skvbem_chebyshev_moments(end - i, member->start + (panel + 0.5) * member->width, 0.5 * member->width, t + i,
                                 share + i, member->scratch, moments);
        skvbem_add_means(member->n_knots, moments, member->table + panel * member->n_knots * SKVBEM_COEFFICIENTS,
                         means + 4);
    }
}

#endif
