/* Steps of the recursions over a normal chain of vectors: J_tt = block + first or unit + squares, J_{t, t-1} = -link.
 *
 * Every function takes the number k of states first. Those that are called once for many steps are compiled for each of
 * the small numbers of states, whose loops are then unrolled, and once for all others.
 *
 * Where a state grows and no column shows it, D of the last step is what a difference of numbers near 1 leaves: 1e-21
 * after 100 steps of 1.27. Sequences whose pivots are lost so go by *roots*: triangular factors of the same matrices,
 * from which nothing is subtracted [Bierman (1977), Factorization Methods for Discrete Sequential Estimation, ch. VI].
 */
#ifndef SKVBEM_BLOCK_CHAIN_H
#define SKVBEM_BLOCK_CHAIN_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_random.h"

#define SKVBEM_BY_SIZE(k, call) \
    switch (k) {                \
    case 1: return call(1);     \
    case 2: return call(2);     \
    case 3: return call(3);     \
    case 4: return call(4);     \
    case 5: return call(5);     \
    case 6: return call(6);     \
    case 7: return call(7);     \
    case 8: return call(8);     \
    default: return call(k);    \
    }

/* What all steps of all sequences share. */
typedef struct {
    const long long *pattern;            /* (n_rows,) */
    const double *blocks;                /* (n_patterns, k, k) */
    const double *first, *link, *squares; /* (k, k) */
    double tolerance;                    /* share of its largest entry up to which a matrix repeats itself */
    double lost;                         /* share of a diagonal entry of J up to which a pivot is rounding */
} skvbem_block_chain;

/* What one step leaves to the next: D of it and of the step before, its gain, and whether D repeats itself. */
typedef struct {
    double *d, *before, *gain; /* (k, k) each */
    double log_det;
    int repeats;
} skvbem_front;

/* What one step leaves to the step before it: its covariance, and that with the next step. */
typedef struct {
    double *v, *newer, *crossed; /* (k, k) each */
} skvbem_back;

/* The inverse of a (k, k) by its Cholesky factor, whose memory is `root`; 1 if a pivot is not above `least` (k,). */
SKVBEM_INLINE int skvbem_inverse_block(const intptr_t k, const double *a, const double *least, double *root,
                                       double *inverse, double *log_det) {
    double product = 1.0;
    *log_det = 0.0;
    for (intptr_t i = 0; i < k; i++) {
        for (intptr_t j = 0; j <= i; j++) {
            double total = a[i * k + j];
            for (intptr_t m = 0; m < j; m++) total -= root[i * k + m] * root[j * k + m];
            if (i == j) {
                if (!(total > least[i])) return 1;
                if (total > 1e-100 && total < 1e100) product *= total;
                else *log_det += log(total);
                if (!(product > 1e-200 && product < 1e200)) {
                    *log_det += log(product);
                    product = 1.0;
                }
                root[i * k + i] = 1.0 / sqrt(total);
            } else {
                root[i * k + j] = total * root[j * k + j];
            }
        }
    }
    *log_det += log(product);
    for (intptr_t i = 0; i < k; i++) { /* the factor, whose diagonal is inverted, becomes its own inverse */
        for (intptr_t j = 0; j < i; j++) {
            double total = 0.0;
            for (intptr_t m = j; m < i; m++) total -= root[i * k + m] * root[m * k + j];
            root[i * k + j] = total * root[i * k + i];
        }
    }
    for (intptr_t i = 0; i < k; i++) {
        for (intptr_t j = 0; j <= i; j++) {
            double total = 0.0;
            for (intptr_t m = i; m < k; m++) total += root[m * k + i] * root[m * k + j];
            inverse[i * k + j] = inverse[j * k + i] = total;
        }
    }
    return 0;
}

/* Whether two matrices differ by no more than a share of their largest entry. */
SKVBEM_INLINE int skvbem_repeats(const intptr_t k, const double *one, const double *other, double tolerance) {
    double largest = 0.0, difference = 0.0;
    for (intptr_t i = 0; i < k * k; i++) {
        largest = fmax(largest, fabs(one[i]));
        difference = fmax(difference, fabs(one[i] - other[i]));
    }
    return difference <= tolerance * largest;
}

SKVBEM_INLINE void skvbem_add_block(const intptr_t k, double times, const double *matrix, double *total) {
    if (times != 0.0)
        for (intptr_t i = 0; i < k * k; i++) total[i] += times * matrix[i];
}

/* D^-1 and K of the steps from, ..., to - 1 of the sequence a, ..., b - 1; the slots used by then, -1 if J is not
 * definite, as far as its digits tell. Slots are numbered from n_slots on. `root` holds k * (k + 1) numbers. */
SKVBEM_INLINE intptr_t skvbem_forward_blocks_(const intptr_t k, const skvbem_block_chain *chain, intptr_t a, intptr_t b,
                                              intptr_t from, intptr_t to, intptr_t n_slots, long long *slot,
                                              double *inverse, double *gain, double *log_det, skvbem_front *front,
                                              double *root) {
    const intptr_t kk = k * k;
    const long long *pattern = chain->pattern;
    const double *link = chain->link;
    const double *last_gain = front->gain;
    double *least = root + kk, total_log_det = 0.0;
    for (intptr_t t = from; t < to; t++) {
        if (t > from && front->repeats && t < b - 1 && pattern[t] == pattern[t - 1]) {
            slot[t] = n_slots - 1;
            total_log_det += front->log_det;
            continue;
        }
        double *d = front->before;
        front->before = front->d;
        front->d = d;
        const double *block = chain->blocks + pattern[t] * kk;
        for (intptr_t i = 0; i < k; i++) {
            for (intptr_t j = 0; j <= i; j++) {
                double total = block[i * k + j];
                if (t == a) total += chain->first[i * k + j];
                else if (i == j) total += 1.0;
                if (t < b - 1) total += chain->squares[i * k + j];
                d[i * k + j] = total;
            }
            least[i] = chain->lost * d[i * k + i];
        }
        if (t > a) {
            for (intptr_t i = 0; i < k; i++) {
                for (intptr_t m = 0; m < k; m++) {
                    const double by = link[i * k + m];
                    for (intptr_t j = 0; j <= i; j++) d[i * k + j] -= by * last_gain[m * k + j];
                }
            }
        }
        for (intptr_t i = 0; i < k; i++)
            for (intptr_t j = 0; j < i; j++) d[j * k + i] = d[i * k + j];
        double *here = inverse + n_slots * kk, *there = gain + n_slots * kk;
        if (skvbem_inverse_block(k, d, least, root, here, &front->log_det)) return -1;
        total_log_det += front->log_det;
        for (intptr_t i = 0; i < k; i++) {
            for (intptr_t j = 0; j < k; j++) {
                double total = 0.0;
                for (intptr_t m = 0; m < k; m++) total += here[i * k + m] * link[j * k + m];
                there[i * k + j] = total;
            }
        }
        front->repeats = t > a + 1 && pattern[t] == pattern[t - 1]
                         && skvbem_repeats(k, d, front->before, chain->tolerance);
        last_gain = there;
        slot[t] = n_slots++;
    }
    if (last_gain != front->gain) memcpy(front->gain, last_gain, kk * sizeof(double));
    *log_det += total_log_det;
    return n_slots;
}

static intptr_t skvbem_forward_blocks(intptr_t k, const skvbem_block_chain *chain, intptr_t a, intptr_t b, intptr_t from,
                                      intptr_t to, intptr_t n_slots, long long *slot, double *inverse, double *gain,
                                      double *log_det, skvbem_front *front, double *root) {
#define SKVBEM_CALL(k) \
    skvbem_forward_blocks_(k, chain, a, b, from, to, n_slots, slot, inverse, gain, log_det, front, root)
    SKVBEM_BY_SIZE(k, SKVBEM_CALL)
#undef SKVBEM_CALL
}

/* Add the covariances of the steps to - 1, ..., from to sums: those with one covariance are counted, and added once.
 * `sums` are those of first steps, of steps before another, after another, and of two successive ones. `marginal` (from
 * the first row on) may be NULL. */
SKVBEM_INLINE int skvbem_back_blocks_(const intptr_t k, const skvbem_block_chain *chain, intptr_t a, intptr_t b,
                                      intptr_t from, intptr_t to, const long long *slot, const double *inverse,
                                      const double *gain, double weight, double *of_pattern, double *sums,
                                      double *marginal, skvbem_back *back) {
    const intptr_t kk = k * k;
    const long long *pattern = chain->pattern;
    intptr_t run = 0;
    int repeats = 0;
    for (intptr_t t = to - 1; t >= from - 1; t--) {
        if (t < from || !(repeats && t > a && slot[t] == slot[t + 1])) {
            if (run) { /* steps t + 1, ..., t + run; the first step of all stands alone */
                const intptr_t later = t + 1 > a ? run : run - 1;
                skvbem_add_block(k, weight * (double) run, back->v, of_pattern + pattern[t + 1] * kk);
                skvbem_add_block(k, weight * (double) later, back->v, sums + 2 * kk);
                if (t + run < b - 1) {
                    skvbem_add_block(k, weight * (double) run, back->v, sums + kk);
                    skvbem_add_block(k, weight * (double) run, back->crossed, sums + 3 * kk);
                }
                if (t + 1 == a) skvbem_add_block(k, weight, back->v, sums);
            }
            if (t < from) break;
            run = 0;
            repeats = 0;
            const double *one = inverse + slot[t] * kk;
            if (t == b - 1) {
                memcpy(back->v, one, kk * sizeof(double));
            } else {
                const double *by = gain + slot[t] * kk;
                double *newer = back->newer, *crossed = back->crossed;
                for (intptr_t i = 0; i < kk; i++) crossed[i] = 0.0;
                for (intptr_t i = 0; i < k; i++)
                    for (intptr_t m = 0; m < k; m++)
                        for (intptr_t j = 0; j < k; j++) crossed[i * k + j] += by[i * k + m] * back->v[m * k + j];
                for (intptr_t i = 0; i < k; i++) {
                    for (intptr_t j = 0; j <= i; j++) {
                        double total = one[i * k + j];
                        for (intptr_t m = 0; m < k; m++) total += crossed[i * k + m] * by[j * k + m];
                        newer[i * k + j] = newer[j * k + i] = total;
                    }
                }
                repeats = t + 1 < b - 1 && t + 1 < to && slot[t] == slot[t + 1]
                          && skvbem_repeats(k, newer, back->v, chain->tolerance);
                back->newer = back->v;
                back->v = newer;
            }
        }
        run++;
        if (marginal != NULL) memcpy(marginal + t * kk, back->v, kk * sizeof(double));
    }
    return 0;
}

static int skvbem_back_blocks(intptr_t k, const skvbem_block_chain *chain, intptr_t a, intptr_t b, intptr_t from,
                              intptr_t to, const long long *slot, const double *inverse, const double *gain,
                              double weight, double *of_pattern, double *sums, double *marginal, skvbem_back *back) {
#define SKVBEM_CALL(k) \
    skvbem_back_blocks_(k, chain, a, b, from, to, slot, inverse, gain, weight, of_pattern, sums, marginal, back)
    SKVBEM_BY_SIZE(k, SKVBEM_CALL)
#undef SKVBEM_CALL
}

/* Eliminate the steps from, ..., to - 1 of the sequence that begins at a from J x = h, whose rows are `stride` numbers
 * apart: g_t = h_t + K_{t-1}' g_{t-1}. `before` is the gain of step from - 1, `slot` that of row 0. */
SKVBEM_INLINE int skvbem_eliminate_(const intptr_t k, intptr_t a, intptr_t from, intptr_t to, const long long *slot,
                                    const double *gain, const double *before, double *x, intptr_t stride) {
    for (intptr_t t = from > a ? from : a + 1; t < to; t++) {
        const double *there = x + (t - 1) * stride;
        const double *by = t == from ? before : gain + slot[t - 1] * k * k;
        double *here = x + t * stride;
        for (intptr_t j = 0; j < k; j++)
            for (intptr_t i = 0; i < k; i++) here[i] += by[j * k + i] * there[j];
    }
    return 0;
}

static int skvbem_eliminate(intptr_t k, intptr_t a, intptr_t from, intptr_t to, const long long *slot, const double *gain,
                            const double *before, double *x, intptr_t stride) {
#define SKVBEM_CALL(k) skvbem_eliminate_(k, a, from, to, slot, gain, before, x, stride)
    SKVBEM_BY_SIZE(k, SKVBEM_CALL)
#undef SKVBEM_CALL
}

/* Put back the steps to - 1, ..., from of the sequence that ends at b: x_t = D_t^-1 g_t + K_t x_{t+1}, and what each
 * step is drawn away, if `noise` (n_rows, k) is not NULL. `room` holds 2 k numbers. */
SKVBEM_INLINE int skvbem_put_back_(const intptr_t k, intptr_t b, intptr_t from, intptr_t to, const long long *slot,
                                   const double *inverse, const double *gain, double *x, intptr_t stride,
                                   const double *noise, double *room) {
    for (intptr_t t = to - 1; t >= from; t--) {
        double *here = x + t * stride;
        const double *one = inverse + slot[t] * k * k, *by = gain + slot[t] * k * k;
        for (intptr_t i = 0; i < k; i++) room[i] = 0.0;
        for (intptr_t j = 0; j < k; j++) /* symmetric: by columns */
            for (intptr_t i = 0; i < k; i++) room[i] += one[j * k + i] * here[j];
        if (t < b - 1) {
            const double *there = here + stride;
            for (intptr_t i = 0; i < k; i++) {
                double total = 0.0;
                for (intptr_t j = 0; j < k; j++) total += by[i * k + j] * there[j];
                room[i] += total;
            }
        }
        for (intptr_t i = 0; i < k; i++) here[i] = room[i];
        if (noise != NULL)
            for (intptr_t i = 0; i < k; i++) here[i] += noise[t * k + i];
    }
    return 0;
}

static int skvbem_put_back(intptr_t k, intptr_t b, intptr_t from, intptr_t to, const long long *slot,
                           const double *inverse, const double *gain, double *x, intptr_t stride, const double *noise,
                           double *room) {
#define SKVBEM_CALL(k) skvbem_put_back_(k, b, from, to, slot, inverse, gain, x, stride, noise, room)
    SKVBEM_BY_SIZE(k, SKVBEM_CALL)
#undef SKVBEM_CALL
}

/* Sequences of measurements, as all lanes of natural parameters have them. A row has p cells, z = (x before, u) of nz
 * numbers, r = (x, v) of nr. */
typedef struct {
    intptr_t k, p, nz, nr, n_patterns;
    const long long *pattern;                        /* (n_rows,) */
    const unsigned char *seen;                       /* (n_patterns, p) */
    const double *measured, *inputs, *outputs;       /* (n_rows, p), (n_rows, nz - k), (n_rows, nr - k) */
    const double *mean, *linear;                     /* of first states of a lane, and times their precision */
} skvbem_sequences;

/* One lane of natural parameters. */
typedef struct {
    const double *transition;        /* (k, nz) */
    const double *squares, *spread;  /* (nz, nz): of the transition, and what these have beyond its mean */
    const double *output, *precision; /* (p, nr), (p,) */
    const double *blocks, *spreads;  /* (n_patterns, nr, nr): of all observed columns, and beyond their means */
    const double *constant;          /* (n_patterns,) */
} skvbem_lane;

/* Sums of products of one lane: z z', x z' of steps, r r' by pattern, y r'. */
typedef struct {
    double *before, *steps, *by_pattern, *total;
} skvbem_products;

SKVBEM_INLINE double skvbem_quadratic(const intptr_t n, const double *matrix, const double *x) {
    double total = 0.0;
    for (intptr_t i = 0; i < n; i++) {
        double row = 0.0;
        for (intptr_t j = 0; j < n; j++) row += matrix[i * n + j] * x[j];
        total += row * x[i];
    }
    return total;
}

/* h of the rows a, ..., b - 1 of one sequence in x, whose rows are k numbers apart. */
static void skvbem_linear_terms(const skvbem_sequences *of, const skvbem_lane *lane, intptr_t a, intptr_t b, double *x) {
    const intptr_t k = of->k, p = of->p, nr = of->nr, nz = of->nz, n_u = nz - k, n_v = nr - k;
    for (intptr_t t = a; t < b; t++) {
        double *here = x + (t - a) * k;
        const double *y = of->measured + t * p, *v = of->outputs + t * n_v;
        const double *block = lane->blocks + of->pattern[t] * nr * nr;
        for (intptr_t i = 0; i < k; i++) {
            double total = t == a ? of->linear[i] : 0.0;
            for (intptr_t j = 0; j < n_v; j++) total -= block[i * nr + k + j] * v[j];
            here[i] = total;
        }
        for (intptr_t s = 0; s < p; s++) { /* a missing cell holds 0 */
            const double by = lane->precision[s] * y[s];
            for (intptr_t i = 0; i < k; i++) here[i] += by * lane->output[s * nr + i];
        }
        for (intptr_t j = 0; j < n_u; j++) {
            if (t > a) {
                const double u = of->inputs[t * n_u + j];
                for (intptr_t i = 0; i < k; i++) here[i] += lane->transition[i * nz + k + j] * u;
            }
            if (t < b - 1) {
                const double u = of->inputs[(t + 1) * n_u + j];
                for (intptr_t i = 0; i < k; i++) here[i] -= lane->squares[i * nz + k + j] * u;
            }
        }
    }
}

/* Minus half of the squares of all residuals of one sequence at states x, with constants but for those of first states
 * and ln|J|. `z` has room for nz + nr numbers. */
static double skvbem_residuals(const skvbem_sequences *of, const skvbem_lane *lane, const double *first, intptr_t a,
                               intptr_t b, const double *x, double *z) {
    const intptr_t k = of->k, p = of->p, nr = of->nr, nz = of->nz, n_u = nz - k, n_v = nr - k;
    double *r = z + nz, total = 0.0;
    for (intptr_t t = a; t < b; t++) {
        const double *here = x + (t - a) * k, *y = of->measured + t * p;
        const unsigned char *seen = of->seen + of->pattern[t] * p;
        if (t == a) {
            for (intptr_t i = 0; i < k; i++) z[i] = here[i] - of->mean[i];
            total -= 0.5 * skvbem_quadratic(k, first, z);
        } else {
            for (intptr_t j = 0; j < n_u; j++) z[k + j] = of->inputs[t * n_u + j];
            memcpy(z, here - k, k * sizeof(double));
            for (intptr_t i = 0; i < k; i++) {
                double left = here[i];
                for (intptr_t j = 0; j < nz; j++) left -= lane->transition[i * nz + j] * z[j];
                total -= 0.5 * left * left;
            }
            total -= 0.5 * skvbem_quadratic(nz, lane->spread, z);
        }
        memcpy(r, here, k * sizeof(double));
        for (intptr_t j = 0; j < n_v; j++) r[k + j] = of->outputs[t * n_v + j];
        total += lane->constant[of->pattern[t]];
        total -= 0.5 * skvbem_quadratic(nr, lane->spreads + of->pattern[t] * nr * nr, r);
        for (intptr_t s = 0; s < p; s++) {
            if (!seen[s]) continue;
            double left = y[s];
            for (intptr_t j = 0; j < nr; j++) left -= lane->output[s * nr + j] * r[j];
            total -= 0.5 * lane->precision[s] * left * left;
        }
    }
    return total;
}

/* Move the steps b - 1, ..., a of one sequence from their means to draws, with normal numbers `noise` (n_rows, k) of unit
 * variance, which become what each step is drawn away. `root` holds k * k + k numbers. */
static void skvbem_away(intptr_t k, intptr_t n, const long long *slot, const double *inverse, double *noise,
                        double *root) {
    double *drawn = root + k * k;
    long long known = -1;
    for (intptr_t t = 0; t < n; t++) {
        if (slot[t] != known) {
            const double *a = inverse + slot[t] * k * k;
            for (intptr_t i = 0; i < k; i++) {
                for (intptr_t j = 0; j <= i; j++) {
                    double total = a[i * k + j];
                    for (intptr_t m = 0; m < j; m++) total -= root[i * k + m] * root[j * k + m];
                    root[i * k + j] = i == j ? sqrt(fmax(total, 0.0)) : root[j * k + j] > 0.0 ? total / root[j * k + j] : 0.0;
                }
            }
            known = slot[t];
        }
        double *here = noise + t * k;
        for (intptr_t i = 0; i < k; i++) {
            drawn[i] = 0.0;
            for (intptr_t j = 0; j <= i; j++) drawn[i] += root[i * k + j] * here[j];
        }
        memcpy(here, drawn, k * sizeof(double));
    }
}

/* Rotations of pairs of rows of a (m, n) that make it upper triangular. Unlike reflections, they subtract nothing from the
 * 1 of a step whose state was hardly seen. */
static void skvbem_triangle(intptr_t m, intptr_t n, double *a) {
    for (intptr_t j = 0; j < n && j < m; j++) {
        for (intptr_t i = j + 1; i < m; i++) {
            double *one = a + j * n, *other = a + i * n;
            const double length = hypot(one[j], other[j]);
            if (other[j] == 0.0 || length == 0.0) continue;
            const double cosine = one[j] / length, sine = other[j] / length;
            for (intptr_t c = j; c < n; c++) {
                const double held = one[c];
                one[c] = cosine * held + sine * other[c];
                other[c] = cosine * other[c] - sine * held;
            }
            other[j] = 0.0;
        }
    }
}

/* The upper triangular root of a (k, k), the first rows of a larger matrix whose rows are `stride` numbers apart: rows
 * and columns of zeros where a is singular, no number where it is not positive semidefinite. */
static void skvbem_upper_root(intptr_t k, const double *a, intptr_t stride, double *root) {
    for (intptr_t i = 0; i < k; i++) {
        for (intptr_t j = 0; j < k; j++) {
            double total = a[i * stride + j];
            for (intptr_t m = 0; m < i; m++) total -= root[m * k + i] * root[m * k + j];
            if (j < i) root[i * k + j] = 0.0;
            else if (j == i) root[i * k + i] = sqrt(total);
            else root[i * k + j] = root[i * k + i] == 0.0 ? 0.0 : total / root[i * k + i];
        }
    }
}

/* Put roots of what columns say of a state by pattern, of the first precision, and of the spread of the transition, each
 * (k, k), into `roots`. `work` holds 2 k * 2 k numbers. */
static void skvbem_roots(const skvbem_sequences *of, const skvbem_lane *lane, const double *first, double *roots,
                         double *work) {
    const intptr_t k = of->k, kk = k * k;
    for (intptr_t g = 0; g < of->n_patterns; g++) {
        skvbem_upper_root(k, lane->spreads + g * of->nr * of->nr, of->nr, work);
        for (intptr_t s = 0; s < of->p; s++) {
            if (!of->seen[g * of->p + s]) continue;
            for (intptr_t i = 0; i < k; i++) work[kk + i] = sqrt(lane->precision[s]) * lane->output[s * of->nr + i];
            skvbem_triangle(k + 1, k, work);
        }
        memcpy(roots + g * kk, work, kk * sizeof(double));
    }
    skvbem_upper_root(k, first, k, roots + of->n_patterns * kk);
    skvbem_upper_root(k, lane->spread, of->nz, roots + (of->n_patterns + 1) * kk);
}

/* Upper triangular roots of D, and K, of all n steps of a sequence, as many slots as steps, and ln|J|; by `roots` (see
 * `skvbem_roots`). `work` holds 2 k * 2 k numbers. */
static double skvbem_forward_roots(intptr_t k, const skvbem_block_chain *chain, const double *roots,
                                   intptr_t n_patterns, intptr_t n, long long *slot, double *root, double *gain,
                                   double *work) {
    const intptr_t kk = k * k;
    const double *spread = roots + (n_patterns + 1) * kk;
    double log_det = 0.0, *here = root;
    memcpy(here, roots + n_patterns * kk, kk * sizeof(double));
    for (intptr_t t = 0; t < n; t++, here += kk) {
        slot[t] = t;
        for (int what = 0; what < (t < n - 1 ? 2 : 1); what++) { /* what the step shows, and what the next one leaves */
            memcpy(work, here, kk * sizeof(double));
            memcpy(work + kk, what ? spread : roots + chain->pattern[t] * kk, kk * sizeof(double));
            skvbem_triangle(2 * k, k, work);
            memcpy(here, work, kk * sizeof(double));
        }
        if (t < n - 1) { /* columns are this step and the next: x_{t+1} - A x_t has unit precision */
            memset(work, 0, 4 * kk * sizeof(double));
            for (intptr_t i = 0; i < k; i++) {
                memcpy(work + 2 * i * k, here + i * k, k * sizeof(double));
                for (intptr_t j = 0; j < k; j++) work[2 * (k + i) * k + j] = -chain->link[i * k + j];
                work[2 * (k + i) * k + k + i] = 1.0;
            }
            skvbem_triangle(2 * k, 2 * k, work);
            double *by = gain + t * kk;
            for (intptr_t i = k - 1; i >= 0; i--) {
                memcpy(here + i * k, work + 2 * i * k, k * sizeof(double));
                memcpy(here + kk + i * k, work + 2 * (k + i) * k + k, k * sizeof(double));
                for (intptr_t j = 0; j < k; j++) {
                    double total = -work[2 * i * k + k + j];
                    for (intptr_t m = i + 1; m < k; m++) total -= here[i * k + m] * by[m * k + j];
                    by[i * k + j] = total / here[i * k + i];
                }
            }
        }
        for (intptr_t i = 0; i < k; i++) log_det += 2.0 * log(fabs(here[i * k + i]));
    }
    return log_det;
}

/* What `skvbem_put_back` does, by roots of D; `noise` (n, k), normal numbers of unit variance, may be NULL. */
static void skvbem_put_back_by_roots(intptr_t k, intptr_t n, const double *root, const double *gain, double *x,
                                     const double *noise) {
    for (intptr_t t = n - 1; t >= 0; t--) {
        double *here = x + t * k;
        const double *r = root + t * k * k, *by = gain + t * k * k;
        for (intptr_t i = 0; i < k; i++) {
            for (intptr_t m = 0; m < i; m++) here[i] -= r[m * k + i] * here[m];
            here[i] /= r[i * k + i];
        }
        for (intptr_t i = k - 1; i >= 0; i--) {
            if (noise != NULL) here[i] += noise[t * k + i];
            for (intptr_t m = i + 1; m < k; m++) here[i] -= r[i * k + m] * here[m];
            here[i] /= r[i * k + i];
        }
        if (t < n - 1)
            for (intptr_t i = 0; i < k; i++)
                for (intptr_t m = 0; m < k; m++) here[i] += by[i * k + m] * here[k + m];
    }
}

/* Add the products of the rows of one sequence at states x to sums. */
static void skvbem_add_products(const skvbem_sequences *of, intptr_t a, intptr_t b, const double *x, double *z,
                                skvbem_products *sums) {
    const intptr_t k = of->k, p = of->p, nr = of->nr, nz = of->nz, n_u = nz - k, n_v = nr - k;
    double *r = z + nz;
    for (intptr_t t = a; t < b; t++) {
        const double *here = x + (t - a) * k, *y = of->measured + t * p;
        if (t > a) {
            memcpy(z, here - k, k * sizeof(double));
            for (intptr_t j = 0; j < n_u; j++) z[k + j] = of->inputs[t * n_u + j];
            for (intptr_t i = 0; i < nz; i++)
                for (intptr_t j = 0; j < nz; j++) sums->before[i * nz + j] += z[i] * z[j];
            for (intptr_t i = 0; i < k; i++)
                for (intptr_t j = 0; j < nz; j++) sums->steps[i * nz + j] += here[i] * z[j];
        }
        memcpy(r, here, k * sizeof(double));
        for (intptr_t j = 0; j < n_v; j++) r[k + j] = of->outputs[t * n_v + j];
        double *products = sums->by_pattern + of->pattern[t] * nr * nr;
        for (intptr_t i = 0; i < nr; i++)
            for (intptr_t j = 0; j < nr; j++) products[i * nr + j] += r[i] * r[j];
        for (intptr_t s = 0; s < p; s++)
            for (intptr_t j = 0; j < nr; j++) sums->total[s * nr + j] += y[s] * r[j];
    }
}

#endif
