/* Elementwise loops over lanes, written so that compilers vectorize them, and compiled once per instruction set where
 * the platform can choose among them at load time. No contraction and no reassociation: every variant gives the same bits.
 */
#ifndef SKVBEM_LANES_H
#define SKVBEM_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_random.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define SKVBEM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SKVBEM_CLONES
#endif

SKVBEM_INLINE double skvbem_from_bits(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
SKVBEM_INLINE uint64_t skvbem_to_bits(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }

/* The larger of two numbers, `lowest` where x is NaN. Chosen by masks: compilers make branches of conditions in longer
 * loops, which keep these from being of vectors. */
SKVBEM_INLINE double skvbem_at_least(double x, double lowest) {
    uint64_t above = -(uint64_t) (x > lowest);
    return skvbem_from_bits((skvbem_to_bits(x) & above) | (skvbem_to_bits(lowest) & ~above));
}

/* ln x for normal x > 0: x = 2^k m with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m - 1) / (m + 1)). */
SKVBEM_INLINE double skvbem_log(double x) {
    uint64_t bits = skvbem_to_bits(x);
    uint64_t shifted = bits - 0x3fe6a09e667f3bcdULL + (1024ULL << 52);
    uint64_t biased = shifted >> 52;
    double k = skvbem_from_bits(biased + 0x4330000000000000ULL) - (4503599627370496.0 + 1024.0);
    double m = skvbem_from_bits(bits - ((biased << 52) - (1024ULL << 52)));
    double f = m - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double r = z * (6.666666666666735130e-01 + z * (3.999999999940941908e-01 + z * (2.857142874366239149e-01
               + z * (2.222219843214978396e-01 + z * (1.818357216161805012e-01 + z * (1.531383769920937332e-01
               + z * 1.479819860511658591e-01))))));
    return k * 6.93147180369123816490e-01 - ((half - (s * (half + r) + k * 1.90821492927058770002e-10)) - f);
}

/* e^x for x <= 0; 0 below -708, where doubles lose bits. Chosen by masks, as `skvbem_at_least`. */
SKVBEM_INLINE double skvbem_exp(double x) {
    uint64_t low = -(uint64_t) (x < -708.0);
    double y = skvbem_from_bits((skvbem_to_bits(x) & ~low) | (skvbem_to_bits(-708.0) & low));
    double shifted = y * 1.44269504088896338700 + 6755399441055744.0;
    double n = shifted - 6755399441055744.0;
    double r = (y - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    double p = 1.0 + r * (1.0 + r * (1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720
               + r * (1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880 + r * (1.0 / 3628800 + r * (1.0 / 39916800
               + r * (1.0 / 479001600))))))))))));
    double power = skvbem_from_bits((skvbem_to_bits(shifted) << 52) + (1023ULL << 52));
    return skvbem_from_bits(skvbem_to_bits(p * power) & ~low);
}

/* ln Gamma and digamma of x > 0: the recurrence lifts small arguments by 8, Stirling's series does the rest. */
SKVBEM_CLONES
static void skvbem_log_gamma_digamma(intptr_t n, const double *restrict x, double *restrict log_gamma,
                                     double *restrict digamma) {
    for (intptr_t i = 0; i < n; i++) {
        double small = x[i] < 16.0 ? x[i] : 16.0;
        double product = small, derivative = 1.0;
        for (int k = 1; k < 8; k++) {
            double factor = small + (double) k;
            derivative = derivative * factor + product;
            product = product * factor;
        }
        int lifted = x[i] < 16.0;
        double y = lifted ? x[i] + 8.0 : x[i];
        double inverse = 1.0 / y, z = inverse * inverse, log_y = skvbem_log(y);
        double tail = inverse * (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188
                      - z * (691.0 / 360360 - z * (1.0 / 156 - z * (3617.0 / 122400))))))));
        double slope = 0.5 * inverse + z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240
                       - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12 - z * (3617.0 / 8160))))))));
        double of_product = skvbem_log(product), ratio = derivative / product;
        log_gamma[i] = (y - 0.5) * log_y - y + 0.91893853320467274178 + tail - (lifted ? of_product : 0.0);
        digamma[i] = log_y - slope - (lifted ? ratio : 0.0);
    }
    for (intptr_t i = 0; i < n; i++)
        if (x[i] < 1e-290) {  /* at the edge of the doubles: -ln x and -1/x, kept finite */
            log_gamma[i] = -log(x[i]);
            digamma[i] = x[i] > 1e-300 ? -1.0 / x[i] : -1e300;
        }
}

/* ln Gamma(a + n) - ln Gamma(a) without cancellation, given both (used for small a) and ln(a + n) (for large a). */
SKVBEM_INLINE double skvbem_stirling_tail(double x) {
    double z = 1.0 / (x * x);
    return (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188))))) / x;
}
SKVBEM_INLINE double skvbem_log_rising(double a, double n, double log_gamma_a, double log_gamma_sum) {
    if (a < 32.0) return log_gamma_sum - log_gamma_a;
    return (a - 0.5) * log1p(n / a) + n * log(a + n) - n + (skvbem_stirling_tail(a + n) - skvbem_stirling_tail(a));
}

/* The same for n of any sign. */
SKVBEM_INLINE double skvbem_log_growth(double a, double n, double log_gamma_a, double log_gamma_sum) {
    if (n == 0.0) return 0.0;
    if (n == INFINITY) return INFINITY;
    if (n < 0.0) return -skvbem_log_rising(a + n, -n, log_gamma_sum, log_gamma_a);
    return skvbem_log_rising(a, n, log_gamma_a, log_gamma_sum);
}

/* ln det(I + A) of a symmetric matrix, destroyed, whose cells stand `stride` apart: from its lower triangle, by pivots less
 * 1; NaN where one is not > 0. */
static double skvbem_log_det_one_plus(intptr_t d, intptr_t stride, double *a) {
    double total = 0.0;
    for (intptr_t k = 0; k < d; k++) {
        const double pivot = a[(k * d + k) * stride];
        total += log1p(pivot);
        for (intptr_t i = k + 1; i < d; i++) {
            const double share = a[(i * d + k) * stride] / (1.0 + pivot);
            for (intptr_t j = k + 1; j <= i; j++) a[(i * d + j) * stride] -= share * a[(j * d + k) * stride];
        }
    }
    return total;
}

/* The largest cell of each lane. */
SKVBEM_INLINE void skvbem_largest_cells(intptr_t n_cells, intptr_t n_lanes, const double *restrict cells,
                                        double *restrict largest) {
    for (intptr_t lane = 0; lane < n_lanes; lane++) largest[lane] = cells[lane];
    for (intptr_t cell = 1; cell < n_cells; cell++)
        for (intptr_t lane = 0; lane < n_lanes; lane++)
            largest[lane] = skvbem_at_least(cells[cell * n_lanes + lane], largest[lane]);
}

/* natural = max(natural - of_row, lowest), exp_natural = e^natural */
SKVBEM_CLONES
static void skvbem_normalize_row(intptr_t n_cells, intptr_t n_lanes, const double *restrict of_row, double lowest,
                                 double *restrict natural, double *restrict exp_natural) {
    for (intptr_t cell = 0; cell < n_cells; cell++)
        for (intptr_t lane = 0; lane < n_lanes; lane++) {
            const double value = skvbem_at_least(natural[cell * n_lanes + lane] - of_row[lane], lowest);
            natural[cell * n_lanes + lane] = value;
            exp_natural[cell * n_lanes + lane] = skvbem_exp(value);
        }
}

/* natural = (1 - t) anchor + t log_point; exp_natural its exponential */
SKVBEM_CLONES
static void skvbem_mix(intptr_t n, double t, const double *restrict anchor, const double *restrict log_point,
                       double *restrict natural, double *restrict exp_natural) {
    for (intptr_t i = 0; i < n; i++) {
        const double value = skvbem_at_least((1.0 - t) * anchor[i] + t * log_point[i], -1e300);
        natural[i] = value;
        exp_natural[i] = skvbem_exp(value);
    }
}

/* ln theta of one Dirichlet row from ln gamma variates: log_point = ln gamma + log_point - ln of their sum; `largest` and
 * `total` (n_lanes,) are scratch */
SKVBEM_CLONES
static void skvbem_log_shares(intptr_t n_cells, intptr_t n_lanes, const double *restrict gamma, double *restrict log_point,
                              double *restrict largest, double *restrict total) {
    for (intptr_t i = 0; i < n_cells * n_lanes; i++) log_point[i] += skvbem_log(gamma[i]);
    skvbem_largest_cells(n_cells, n_lanes, log_point, largest);
    for (intptr_t lane = 0; lane < n_lanes; lane++) total[lane] = 0.0;
    for (intptr_t cell = 0; cell < n_cells; cell++)
        for (intptr_t lane = 0; lane < n_lanes; lane++)
            total[lane] += skvbem_exp(log_point[cell * n_lanes + lane] - largest[lane]);
    for (intptr_t lane = 0; lane < n_lanes; lane++) largest[lane] += skvbem_log(total[lane]);
    for (intptr_t cell = 0; cell < n_cells; cell++)
        for (intptr_t lane = 0; lane < n_lanes; lane++) log_point[cell * n_lanes + lane] -= largest[lane];
}

/* ln theta of Dirichlet draws, every lane from its own stream; overwrites the concentrations. `scratch`: 2 n_lanes. */
static void skvbem_log_dirichlet(intptr_t n_rows, const long long *starts, intptr_t n_lanes, double *concentration,
                                 uint64_t *streams, double *log_point, double *scratch) {
    const intptr_t n_cells = (intptr_t) starts[n_rows];
    for (intptr_t lane = 0; lane < n_lanes; lane++) {
        skvbem_stream stream = skvbem_load(streams, lane, n_lanes);
        for (intptr_t i = lane; i < n_cells * n_lanes; i += n_lanes)
            concentration[i] = skvbem_gamma(&stream, concentration[i], log_point + i);
        skvbem_store(&stream, streams, lane, n_lanes);
    }
    for (intptr_t row = 0; row < n_rows; row++)
        skvbem_log_shares((intptr_t) (starts[row + 1] - starts[row]), n_lanes, concentration + starts[row] * n_lanes,
                          log_point + starts[row] * n_lanes, scratch, scratch + n_lanes);
}

/* log_p[graph] = log_prior[graph] + the scores of its families, one for each node */
SKVBEM_CLONES
static void skvbem_sum_families(intptr_t n_graphs, intptr_t n_nodes, intptr_t n_lanes, const long long *restrict family,
                                const double *restrict log_prior, const double *restrict scores, double *restrict log_p) {
    for (intptr_t graph = 0; graph < n_graphs; graph++, family += n_nodes, log_p += n_lanes) {
        for (intptr_t lane = 0; lane < n_lanes; lane++) log_p[lane] = log_prior[graph];
        for (intptr_t node = 0; node < n_nodes; node++) {
            const double *score = scores + family[node] * n_lanes;
            for (intptr_t lane = 0; lane < n_lanes; lane++) log_p[lane] += score[lane];
        }
    }
}

/* Logarithms to the shares that they are of their sum, in each lane; `largest` and `total` (n_lanes,) are scratch. */
SKVBEM_CLONES
static void skvbem_shares(intptr_t n_cells, intptr_t n_lanes, double *restrict log_p, double *restrict largest,
                          double *restrict total) {
    skvbem_largest_cells(n_cells, n_lanes, log_p, largest);
    for (intptr_t lane = 0; lane < n_lanes; lane++) total[lane] = 0.0;
    for (intptr_t cell = 0; cell < n_cells; cell++)
        for (intptr_t lane = 0; lane < n_lanes; lane++) {
            const double share = skvbem_exp(log_p[cell * n_lanes + lane] - largest[lane]);
            log_p[cell * n_lanes + lane] = share;
            total[lane] += share;
        }
    for (intptr_t lane = 0; lane < n_lanes; lane++) total[lane] = 1.0 / total[lane];
    for (intptr_t cell = 0; cell < n_cells; cell++)
        for (intptr_t lane = 0; lane < n_lanes; lane++) log_p[cell * n_lanes + lane] *= total[lane];
}

/* table[cell] = product of `arity` parameters */
SKVBEM_CLONES
static void skvbem_products(intptr_t n_cells, intptr_t arity, intptr_t n_lanes, const int *restrict factor,
                            const double *restrict parameters, double *restrict table) {
    for (intptr_t cell = 0; cell < n_cells; cell++, factor += arity, table += n_lanes) {
        const double *first = parameters + factor[0] * n_lanes;
        if (arity == 1) {
            for (intptr_t lane = 0; lane < n_lanes; lane++) table[lane] = first[lane];
            continue;
        }
        const double *second = parameters + factor[1] * n_lanes;
        for (intptr_t lane = 0; lane < n_lanes; lane++) table[lane] = first[lane] * second[lane];
        for (intptr_t k = 2; k < arity; k++) {
            const double *next = parameters + factor[k] * n_lanes;
            for (intptr_t lane = 0; lane < n_lanes; lane++) table[lane] *= next[lane];
        }
    }
}

/* largest[lane] = largest entry of a table */
SKVBEM_CLONES
static void skvbem_largest(intptr_t n_cells, intptr_t n_lanes, const double *restrict table, double *restrict largest) {
    skvbem_largest_cells(n_cells, n_lanes, table, largest);
}

/* Whether the largest entry of every table lies in [least, 1), in every lane. `largest`, (n_lanes,), is scratch. */
SKVBEM_CLONES
static int skvbem_all_within(intptr_t n_tables, intptr_t n_cells, intptr_t n_lanes, const double *restrict table,
                             double least, double *restrict largest) {
    uint64_t outside = 0;
    for (intptr_t t = 0; t < n_tables && !outside; t++, table += n_cells * n_lanes) {
        skvbem_largest_cells(n_cells, n_lanes, table, largest);
        for (intptr_t lane = 0; lane < n_lanes; lane++)
            outside |= (uint64_t) !(largest[lane] >= least) | (uint64_t) !(largest[lane] < 1.0);
    }
    return !outside;
}

/* counts[parameter] += table[cell] for each of its parameters, of which there are n_counts: the transpose of
 * skvbem_products. Factors past the last parameter are counted nowhere. */
SKVBEM_CLONES
static void skvbem_spread(intptr_t n_cells, intptr_t arity, intptr_t n_lanes, intptr_t n_counts,
                          const int *restrict factor, const double *restrict table, double *restrict counts) {
    for (intptr_t cell = 0; cell < n_cells; cell++, factor += arity, table += n_lanes)
        for (intptr_t k = 0; k < arity; k++) {
            if (factor[k] >= n_counts) continue;
            double *target = counts + factor[k] * n_lanes;
            for (intptr_t lane = 0; lane < n_lanes; lane++) target[lane] += table[lane];
        }
}

/* What a run over the contexts of a one-clique plan carries along. */
typedef struct {
    intptr_t n_slots, n_cells, n_lanes;
    const unsigned short *narrow;        /* codes, context by context, or NULL */
    const int *wide;
    const double **tables;   /* per slot: (n_codes, n_cells, n_lanes) */
    double **expected;       /* per slot, the same shape, or NULL */
    const double *weight;
    double *psi;                   /* (n_cells, n_lanes) */
    double *normalizer, *share, *product, *log_z;   /* (n_lanes,) */
    double last_weight;
    double smallest, largest;      /* normalizers outside are not safe */
    int counted;                   /* whether `expected` is wanted */
    uint64_t *streams;             /* (4, n_lanes): counts of states drawn rather than expected, or NULL */
    double *scratch;               /* (n_cells + 1, n_lanes), with streams */
} skvbem_star;

/* Contexts `first` to `last`: expected counts, and ln Z by way of products of normalizers, per lane. Stops at a context
 * whose normalizer is not safe in some lane, before it adds anything for it, and returns its number. */
SKVBEM_INLINE intptr_t skvbem_run_lanes(skvbem_star *run, intptr_t first, intptr_t last, const intptr_t n_lanes) {
    const intptr_t n_slots = run->n_slots, m = run->n_cells * n_lanes;
    double *restrict psi = run->psi, *restrict normalizer = run->normalizer, *restrict share = run->share;
    double *restrict product = run->product;
    const double smallest = run->smallest, largest = run->largest;
    for (intptr_t context = first; context < last; context++) {
        const double weight = run->weight[context];
        if (weight != run->last_weight) {
            for (intptr_t lane = 0; lane < n_lanes; lane++) {
                run->log_z[lane] += run->last_weight * log(product[lane]);
                product[lane] = 1.0;
            }
            run->last_weight = weight;
        }
        intptr_t code[64];
        const intptr_t row = context * n_slots;
        const intptr_t some = n_slots < 64 ? n_slots : 64;
        for (intptr_t s = 0; s < some; s++) code[s] = m * (run->narrow ? run->narrow[row + s] : run->wide[row + s]);
        const double *restrict table = run->tables[0] + code[0];
        if (n_slots == 1) {
            memcpy(psi, table, m * sizeof(double));
        } else {
            const double *restrict next = run->tables[1] + code[1];
            for (intptr_t i = 0; i < m; i++) psi[i] = table[i] * next[i];
            for (intptr_t s = 2; s < n_slots; s++) {
                next = run->tables[s] + (s < 64 ? code[s] : m * (run->narrow ? run->narrow[row + s] : run->wide[row + s]));
                for (intptr_t i = 0; i < m; i++) psi[i] *= next[i];
            }
        }
        if (n_lanes == 1) {
            double z = psi[0];
            for (intptr_t i = 1; i < m; i++) z += psi[i];
            normalizer[0] = z;
        } else {
            for (intptr_t lane = 0; lane < n_lanes; lane++) normalizer[lane] = psi[lane];
            for (intptr_t cell = 1; cell < run->n_cells; cell++)
                for (intptr_t lane = 0; lane < n_lanes; lane++) normalizer[lane] += psi[cell * n_lanes + lane];
        }
        uint64_t unsafe = 0, flush = 0;
        for (intptr_t lane = 0; lane < n_lanes; lane++)
            unsafe |= (uint64_t) !(normalizer[lane] >= smallest) | (uint64_t) !(normalizer[lane] <= largest);
        if (unsafe) return context;
        for (intptr_t lane = 0; lane < n_lanes; lane++) {
            product[lane] *= normalizer[lane];
            flush |= (uint64_t) !(product[lane] > 1e-200) | (uint64_t) !(product[lane] < 1e200);
        }
        if (flush)
            for (intptr_t lane = 0; lane < n_lanes; lane++)
                if (!((product[lane] > 1e-200) & (product[lane] < 1e200))) {
                    run->log_z[lane] += weight * log(product[lane]);
                    product[lane] = 1.0;
                }
        if (!run->counted) continue;
        if (run->streams) {
            skvbem_multinomials(run->streams, weight, run->n_cells, n_lanes, psi, normalizer, run->scratch);
        } else if (n_lanes == 1) {
            const double only = weight / normalizer[0];
            for (intptr_t i = 0; i < m; i++) psi[i] *= only;
        } else {
            for (intptr_t lane = 0; lane < n_lanes; lane++) share[lane] = weight / normalizer[lane];
            for (intptr_t cell = 0; cell < run->n_cells; cell++)
                for (intptr_t lane = 0; lane < n_lanes; lane++) psi[cell * n_lanes + lane] *= share[lane];
        }
        for (intptr_t s = 0; s < n_slots; s++) {
            double *restrict target =
                run->expected[s] + (s < 64 ? code[s] : m * (run->narrow ? run->narrow[row + s] : run->wide[row + s]));
            for (intptr_t i = 0; i < m; i++) target[i] += psi[i];
        }
    }
    return last;
}

/* The same loop with one lane known to the compiler; a larger number would have it unroll instead of vectorize. */
SKVBEM_CLONES
static intptr_t skvbem_run_star(skvbem_star *run, intptr_t first, intptr_t last) {
    if (run->n_lanes == 1) return skvbem_run_lanes(run, first, last, 1);
    return skvbem_run_lanes(run, first, last, run->n_lanes);
}

#endif
