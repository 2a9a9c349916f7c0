/* Random streams, one per lane, so that a chain's draws depend on its own seed alone: xoshiro256++ (Blackman & Vigna 2019),
 * and the variates that sampling of discrete networks needs.
 *
 * The states of n streams stand as (4, n) words, so that loops over lanes vectorize; scalar code loads one, and stores it.
 */
#ifndef SKVBEM_RANDOM_H
#define SKVBEM_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define SKVBEM_INLINE static inline __attribute__((always_inline))
#else
#define SKVBEM_INLINE static inline
#endif

/* Up to this many draws are made one by one: beyond, binomials are cheaper. */
#define SKVBEM_FEW_DRAWS 64

typedef struct {
    uint64_t s[4];
} skvbem_stream;

SKVBEM_INLINE skvbem_stream skvbem_load(const uint64_t *streams, intptr_t lane, intptr_t n_lanes) {
    skvbem_stream stream;
    for (int k = 0; k < 4; k++) stream.s[k] = streams[k * n_lanes + lane];
    return stream;
}

SKVBEM_INLINE void skvbem_store(const skvbem_stream *stream, uint64_t *streams, intptr_t lane, intptr_t n_lanes) {
    for (int k = 0; k < 4; k++) streams[k * n_lanes + lane] = stream->s[k];
}

SKVBEM_INLINE uint64_t skvbem_rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

SKVBEM_INLINE uint64_t skvbem_next(skvbem_stream *stream) {
    uint64_t *s = stream->s;
    const uint64_t result = skvbem_rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = skvbem_rotate(s[3], 45);
    return result;
}

/* (k + 1/2) / 2^52, k = 0 ... 2^52 - 1: never 0, and times any x > 0 less than x, as a rounded product */
SKVBEM_INLINE double skvbem_unit(uint64_t bits) {
    const uint64_t between = (bits >> 12) | 0x3ff0000000000000ULL;
    double x;
    memcpy(&x, &between, 8);
    return x - (1.0 - 0x1.0p-53);
}

SKVBEM_INLINE double skvbem_uniform(skvbem_stream *stream) { return skvbem_unit(skvbem_next(stream)); }

/* One uniform number for each lane. */
SKVBEM_INLINE void skvbem_uniforms(uint64_t *restrict streams, intptr_t n_lanes, double *restrict uniform) {
    uint64_t *restrict s0 = streams, *restrict s1 = streams + n_lanes, *restrict s2 = streams + 2 * n_lanes;
    uint64_t *restrict s3 = streams + 3 * n_lanes;
    for (intptr_t lane = 0; lane < n_lanes; lane++) {
        const uint64_t a = s0[lane], b = s1[lane], c = s2[lane] ^ a, d = s3[lane] ^ b;
        uniform[lane] = skvbem_unit(skvbem_rotate(a + s3[lane], 23) + a);
        s0[lane] = a ^ d;
        s1[lane] = b ^ c;
        s2[lane] = c ^ (b << 17);
        s3[lane] = skvbem_rotate(d, 45);
    }
}

/* Normal variates by the ziggurat of Marsaglia & Tsang (2000): 256 layers of equal area under exp(-x^2/2), the lowest with
 * the tail beyond SKVBEM_TAIL. Layer i spans heights exp(-edge[i]^2/2) ... exp(-edge[i + 1]^2/2). */
#define SKVBEM_LAYERS 256
#define SKVBEM_TAIL 3.6541528853610088
static double skvbem_edge[SKVBEM_LAYERS + 1], skvbem_height[SKVBEM_LAYERS + 1];

/* Fill the tables; once per module that draws normal variates. */
static void skvbem_prepare_normal(void) {
    const double r = SKVBEM_TAIL, area = r * exp(-0.5 * r * r) + sqrt(2.0 * atan(1.0)) * erfc(r / sqrt(2.0));
    skvbem_edge[0] = area / exp(-0.5 * r * r);
    skvbem_edge[1] = r;
    for (int i = 1; i < SKVBEM_LAYERS - 1; i++)
        skvbem_edge[i + 1] = sqrt(-2.0 * log(area / skvbem_edge[i] + exp(-0.5 * skvbem_edge[i] * skvbem_edge[i])));
    skvbem_edge[SKVBEM_LAYERS] = 0.0;
    for (int i = 0; i <= SKVBEM_LAYERS; i++) skvbem_height[i] = exp(-0.5 * skvbem_edge[i] * skvbem_edge[i]);
}

SKVBEM_INLINE double skvbem_normal(skvbem_stream *stream) {
    for (;;) {
        const uint64_t bits = skvbem_next(stream); /* layer and sign from bits that the uniform number leaves out */
        const int layer = (int) (bits & (SKVBEM_LAYERS - 1));
        double x = skvbem_unit(bits) * skvbem_edge[layer];
        if (x >= skvbem_edge[layer + 1]) {
            if (layer == 0) {
                double y;
                do {
                    x = -log(skvbem_uniform(stream)) / SKVBEM_TAIL;
                    y = -log(skvbem_uniform(stream));
                } while (2.0 * y <= x * x);
                x += SKVBEM_TAIL;
            } else {
                const double low = skvbem_height[layer], high = skvbem_height[layer + 1];
                if (low + skvbem_uniform(stream) * (high - low) >= exp(-0.5 * x * x)) continue;
            }
        }
        return bits & SKVBEM_LAYERS ? -x : x;
    }
}

/* g and *lift with ln g + *lift = ln of a Gamma(a, 1) variate (Marsaglia & Tsang 2000); the lift, 0 for a >= 1, makes tiny a
 * give no 0. */
static inline double skvbem_gamma(skvbem_stream *stream, double a, double *lift) {
    *lift = 0.0;
    if (a < 1.0) {
        *lift = log(skvbem_uniform(stream)) / (a > 1e-300 ? a : 1e-300);
        a += 1.0;
    }
    const double d = a - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x, v;
        do {
            x = skvbem_normal(stream);
            v = 1.0 + c * x;
        } while (v <= 0.0);
        v = v * v * v;
        const double u = skvbem_uniform(stream), square = x * x;
        if (u < 1.0 - 0.0331 * square * square || log(u) < 0.5 * square + d * (1.0 - v + log(v))) return d * v;
    }
}

/* Binomial(n, p): waiting times between successes where few are expected, else transformed rejection (Hoermann 1993, BTRS) */
static inline double skvbem_binomial(skvbem_stream *stream, double n, double p) {
    if (p > 0.5) return n - skvbem_binomial(stream, n, 1.0 - p);
    if (!(p > 0.0) || n <= 0.0) return 0.0;
    if (n * p < 10.0) {
        const double log_q = log1p(-p);
        double k = 0.0, sum = 0.0;
        for (;;) {
            sum += ceil(log(skvbem_uniform(stream)) / log_q);
            if (sum > n) return k;
            k += 1.0;
        }
    }
    const double spq = sqrt(n * p * (1.0 - p)), b = 1.15 + 2.53 * spq, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double c = n * p + 0.5, v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spq;
    const double log_odds = log(p / (1.0 - p)), m = floor((n + 1.0) * p);
    const double h = lgamma(m + 1.0) + lgamma(n - m + 1.0);
    for (;;) {
        double v = skvbem_uniform(stream);
        const double u = skvbem_uniform(stream) - 0.5, us = 0.5 - fabs(u);
        const double k = floor((2.0 * a / us + b) * u + c);
        if (k < 0.0 || k > n) continue;
        if (us >= 0.07 && v <= v_r) return k;
        v = log(v * alpha / (a / (us * us) + b));
        if (v <= h - lgamma(k + 1.0) - lgamma(n - k + 1.0) + (k - m) * log_odds) return k;
    }
}

/* Counts of n draws among cells with probabilities proportional to p, written over p; strides in doubles. */
static inline void skvbem_multinomial(skvbem_stream *stream, double n, intptr_t n_cells, double *p, intptr_t stride,
                                      double total) {
    if (n_cells == 1) {
        p[0] = n;
        return;
    }
    if (n <= SKVBEM_FEW_DRAWS) {
        double draws[SKVBEM_FEW_DRAWS], reached = 0.0;
        const int count = (int) n;
        int above = count; /* draws not below `reached` */
        for (int i = 0; i < count; i++) draws[i] = skvbem_uniform(stream) * total;
        for (intptr_t c = 0; c < n_cells; c++) {
            int still = 0;
            reached += p[c * stride];
            if (c < n_cells - 1)
                for (int i = 0; i < count; i++) still += draws[i] >= reached;
            p[c * stride] = (double) (above - still);
            above = still;
        }
        return;
    }
    double left = n, rest = total;
    intptr_t last = 0;
    for (intptr_t c = 0; c < n_cells; c++)
        if (p[c * stride] > 0.0) last = c;
    for (intptr_t c = 0; c < n_cells; c++) {
        const double x = p[c * stride];
        double hits = 0.0;
        if (left > 0.0 && x > 0.0) {
            const double share = x / rest;
            hits = c == last || share >= 1.0 ? left : skvbem_binomial(stream, left, share);
            left -= hits;
        }
        rest -= x;
        p[c * stride] = hits;
    }
}

/* `skvbem_multinomial` for every lane, p of shape (n_cells, n_lanes) and total (n_lanes,): the same counts from the same
 * streams. `scratch` holds (n_cells + 1) n_lanes doubles. */
SKVBEM_INLINE void skvbem_multinomials(uint64_t *restrict streams, double n, intptr_t n_cells, intptr_t n_lanes,
                                       double *restrict p, const double *restrict total, double *restrict scratch) {
    if (n > SKVBEM_FEW_DRAWS || n_cells == 1) {
        for (intptr_t lane = 0; lane < n_lanes; lane++) {
            skvbem_stream stream = skvbem_load(streams, lane, n_lanes);
            skvbem_multinomial(&stream, n, n_cells, p + lane, n_lanes, total[lane]);
            skvbem_store(&stream, streams, lane, n_lanes);
        }
        return;
    }
    double *restrict draw = scratch, *restrict reached = scratch + n_lanes;
    const intptr_t last = (n_cells - 1) * n_lanes;
    if (n == 1.0) {  /* most contexts: one pass over the cells */
        double *restrict above = reached + n_lanes; /* whether the draw is not below `reached` */
        skvbem_uniforms(streams, n_lanes, draw);
        for (intptr_t lane = 0; lane < n_lanes; lane++) {
            draw[lane] *= total[lane];
            reached[lane] = p[lane];
            above[lane] = draw[lane] >= reached[lane] ? 1.0 : 0.0;
            p[lane] = 1.0 - above[lane];
        }
        for (intptr_t cell = n_lanes; cell < last; cell += n_lanes)
            for (intptr_t lane = 0; lane < n_lanes; lane++) {
                reached[lane] += p[cell + lane];
                const double still = draw[lane] >= reached[lane] ? 1.0 : 0.0;
                p[cell + lane] = above[lane] - still;
                above[lane] = still;
            }
        memcpy(p + last, above, (size_t) n_lanes * sizeof(double));
        return;
    }
    memcpy(reached, p, (size_t) n_lanes * sizeof(double));
    for (intptr_t i = n_lanes; i < last; i++) reached[i] = reached[i - n_lanes] + p[i];
    memset(p, 0, (size_t) last * sizeof(double)); /* now draws that are not below `reached` */
    for (int k = 0; k < (int) n; k++) {
        skvbem_uniforms(streams, n_lanes, draw);
        for (intptr_t lane = 0; lane < n_lanes; lane++) draw[lane] *= total[lane];
        for (intptr_t cell = 0; cell < last; cell += n_lanes)
            for (intptr_t lane = 0; lane < n_lanes; lane++) p[cell + lane] += draw[lane] >= reached[cell + lane] ? 1.0 : 0.0;
    }
    memcpy(p + last, p + last - n_lanes, (size_t) n_lanes * sizeof(double));
    for (intptr_t cell = last - n_lanes; cell > 0; cell -= n_lanes)
        for (intptr_t lane = 0; lane < n_lanes; lane++) p[cell + lane] = p[cell - n_lanes + lane] - p[cell + lane];
    for (intptr_t lane = 0; lane < n_lanes; lane++) p[lane] = n - p[lane];
}

/* The state that a uniform number draws by weights (n,); the last possible one, if rounding leaves the mark above all. */
SKVBEM_INLINE intptr_t skvbem_draw_state(intptr_t n, const double *restrict weight, double uniform) {
    double total = 0.0, below = 0.0;
    for (intptr_t i = 0; i < n; i++) total += weight[i];
    const double mark = uniform * total;
    intptr_t state = 0;
    for (intptr_t i = 0; i < n; i++) {
        if (weight[i] > 0.0) state = i;
        below += weight[i];
        if (below > mark) break;
    }
    return state;
}

#endif
