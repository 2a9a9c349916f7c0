/* Hidden Markov chains: sums over paths in scaled numbers, with a proof that nothing was lost.
 *
 * Probabilities below SKVBEM_FLOOR, those of transitions that do not exist among them, are raised to it, and densities of
 * a row likewise, relative to the largest: then no product leaves the doubles, forward or backward, and Z is too large if
 * anything. The same pass with 0 in the place of all that was raised gives a Z that is too small if anything. Where the two
 * agree to SKVBEM_LOST so do all posteriors; where they do not, a sequence is passed over in logarithms (_chain_log.h).
 *
 * Arrays of rows are time by time, states innermost, `width` of them (a multiple of 4, padded with 0).
 */
#ifndef SKVBEM_CHAIN_H
#define SKVBEM_CHAIN_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_FLOOR 1e-150
#define SKVBEM_LOG_FLOOR -345.0 /* a little above its logarithm */
#define SKVBEM_LOST 1e-12
#define SKVBEM_SOME_ROWS 64
#define SKVBEM_FEW_STATES 20

typedef struct {
    intptr_t n_states, width;
    const double *log_initial, *log_transition; /* (n_states,), (n_states, n_states); -inf where there is none */
    double *initial, *initial_least;            /* (width,): raised to the floor; 0 where it was raised */
    double *transition, *transition_least;      /* (n_states, width) */
    double *transposed;                         /* (n_states, width), of `transition` */
    double *log_transposed;                     /* (n_states, n_states) */
    int raised;                                 /* whether anything was */
} skvbem_chain;

/* Rows of one lane, and room for passes over them. */
typedef struct {
    intptr_t n_rows, stride;
    const double *log_likelihood; /* (n_states, n_rows), rows innermost; from state to state `stride` doubles */
    double *likelihood;           /* (n_rows + 1, width), over the largest of the row and raised to the floor */
    double *forward;              /* (n_rows, width) */
    double *smoothed;             /* (n_rows, width) */
    double *top, *scale, *raised; /* (n_rows,): ln of what rows were divided by; about 1 / sum of `forward`; marks */
    double *scratch;              /* (8, width) */
} skvbem_rows;

SKVBEM_CLONES
static void skvbem_prepare_chain(skvbem_chain *chain) {
    const intptr_t n = chain->n_states, width = chain->width;
    chain->raised = 0;
    for (intptr_t i = -1; i < n; i++) {
        const double *restrict logs = i < 0 ? chain->log_initial : chain->log_transition + i * n;
        double *restrict some = i < 0 ? chain->initial : chain->transition + i * width;
        double *restrict least = i < 0 ? chain->initial_least : chain->transition_least + i * width;
        for (intptr_t j = 0; j < n; j++) some[j] = skvbem_exp(logs[j]);
        for (intptr_t j = n; j < width; j++) some[j] = least[j] = 0.0;
        for (intptr_t j = 0; j < n; j++) {
            int low = some[j] < SKVBEM_FLOOR;
            least[j] = low ? 0.0 : some[j];
            some[j] = low ? SKVBEM_FLOOR : some[j];
            chain->raised |= low;
        }
    }
    for (intptr_t j = 0; j < n; j++) {
        for (intptr_t i = 0; i < n; i++) {
            chain->transposed[j * width + i] = chain->transition[i * width + j];
            chain->log_transposed[j * n + i] = chain->log_transition[i * n + j];
        }
        for (intptr_t i = n; i < width; i++) chain->transposed[j * width + i] = 0.0;
    }
}

/* Densities of all rows over the largest of each, time by time, and raised to the floor; marks of rows where any was. */
SKVBEM_CLONES
static void skvbem_prepare_rows(const skvbem_chain *chain, skvbem_rows *rows) {
    const intptr_t n_states = chain->n_states, width = chain->width, m = SKVBEM_SOME_ROWS;
    double some[4 * SKVBEM_SOME_ROWS], top[SKVBEM_SOME_ROWS], bottom[SKVBEM_SOME_ROWS];
    for (intptr_t first = 0; first < rows->n_rows; first += m) {
        const intptr_t n = rows->n_rows - first < m ? rows->n_rows - first : m;
        double *restrict out = rows->likelihood + first * width;
        for (intptr_t i = 0; i < n; i++) top[i] = -INFINITY, bottom[i] = INFINITY;
        for (intptr_t k = 0; k < n_states; k++) {
            const double *restrict x = rows->log_likelihood + k * rows->stride + first;
            for (intptr_t i = 0; i < n; i++) {
                top[i] = x[i] > top[i] ? x[i] : top[i];
                bottom[i] = x[i] < bottom[i] ? x[i] : bottom[i];
            }
        }
        for (intptr_t i = 0; i < n; i++) {
            top[i] = top[i] == -INFINITY ? 0.0 : top[i];
            bottom[i] = bottom[i] - top[i] < SKVBEM_LOG_FLOOR ? 1.0 : 0.0;
        }
        for (intptr_t k = 0; k < width; k += 4) { /* four states at a time, so that rows are written along */
            for (intptr_t l = 0; l < 4; l++) {
                double *restrict e = some + l * m;
                if (k + l < n_states) {
                    const double *restrict x = rows->log_likelihood + (k + l) * rows->stride + first;
                    for (intptr_t i = 0; i < n; i++) {
                        const double y = skvbem_exp(x[i] - top[i]);
                        e[i] = y < SKVBEM_FLOOR ? SKVBEM_FLOOR : y;
                    }
                } else {
                    for (intptr_t i = 0; i < n; i++) e[i] = 0.0;
                }
            }
            for (intptr_t i = 0; i < n; i++) {
                double *restrict four = out + i * width + k;
                four[0] = some[i];
                four[1] = some[m + i];
                four[2] = some[2 * m + i];
                four[3] = some[3 * m + i];
            }
        }
        for (intptr_t i = 0; i < n; i++) rows->top[first + i] = top[i], rows->raised[first + i] = bottom[i];
    }
}

/* out = x A, for A (n, width); four rows at a time, so that few sums wait for each other */
SKVBEM_INLINE void skvbem_times(intptr_t n, intptr_t width, const double *restrict x, const double *restrict A,
                                double *restrict out) {
    double few[SKVBEM_FEW_STATES]; /* where the compiler knows the width it keeps these in registers */
    double *restrict sum = width <= SKVBEM_FEW_STATES ? few : out;
    const intptr_t first = n & 3 ? n & 3 : 4;
    if (first == 4)
        for (intptr_t j = 0; j < width; j++)
            sum[j] = (x[0] * A[j] + x[1] * A[width + j]) + (x[2] * A[2 * width + j] + x[3] * A[3 * width + j]);
    else if (first == 1)
        for (intptr_t j = 0; j < width; j++) sum[j] = x[0] * A[j];
    else if (first == 2)
        for (intptr_t j = 0; j < width; j++) sum[j] = x[0] * A[j] + x[1] * A[width + j];
    else
        for (intptr_t j = 0; j < width; j++) sum[j] = (x[0] * A[j] + x[1] * A[width + j]) + x[2] * A[2 * width + j];
    for (intptr_t i = first; i < n; i += 4) {
        const double *restrict row = A + i * width;
        const double a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
        for (intptr_t j = 0; j < width; j++)
            sum[j] += (a * row[j] + b * row[width + j]) + (c * row[2 * width + j] + d * row[3 * width + j]);
    }
    if (width <= SKVBEM_FEW_STATES)
        for (intptr_t j = 0; j < width; j++) out[j] = sum[j];
}

/* Sum in an order of its own, four by four, whatever the instruction set. */
SKVBEM_INLINE double skvbem_sum(intptr_t width, const double *restrict x) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    for (intptr_t j = 0; j < width; j += 4) {
        a += x[j];
        b += x[j + 1];
        c += x[j + 2];
        d += x[j + 3];
    }
    return (a + b) + (c + d);
}

/* The power of two next below 1 / x, for normal x > 0: as good a scale as 1 / x, and there sooner than a quotient. */
SKVBEM_INLINE double skvbem_scale(double x) {
    return skvbem_from_bits((2046ULL << 52) - (skvbem_to_bits(x) & (2047ULL << 52)));
}

SKVBEM_INLINE double skvbem_forward_of(const skvbem_chain *chain, skvbem_rows *rows, intptr_t from, intptr_t to,
                                       const double *carry, const intptr_t width) {
    double *restrict next = rows->scratch;
    double scale = 1.0, log_z = 0.0, sum = 1.0;
    int64_t shifts = 0; /* of the binary point */
    if (carry) log_z -= log(skvbem_sum(width, carry));
    for (intptr_t t = from; t < to; t++) {
        const double *restrict likelihood = rows->likelihood + t * width;
        double *restrict here = rows->forward + t * width;
        if (t == from && !carry) {
            for (intptr_t j = 0; j < width; j++) here[j] = chain->initial[j] * likelihood[j];
        } else {
            skvbem_times(chain->n_states, width, t == from ? carry : here - width, chain->transition, next);
            for (intptr_t j = 0; j < width; j++) here[j] = next[j] * (likelihood[j] * scale);
        }
        sum = skvbem_sum(width, here);
        scale = skvbem_scale(sum);
        shifts += (int64_t) (skvbem_to_bits(scale) >> 52) - 1023;
        rows->scale[t] = scale;
    }
    const intptr_t fours = (to - from) & ~(intptr_t) 3;
    log_z += skvbem_sum(fours, rows->top + from);
    for (intptr_t t = from + fours; t < to; t++) log_z += rows->top[t];
    return log_z + log(sum * scale) - 0.69314718055994530942 * (double) shifts;
}

/* Forward over rows `from` to `to` of one sequence: row t of `forward` is in proportion to p(state, row | rows before).
 * `carry` (width,): of the last step before, of a sum in [1, 2), or NULL where the sequence begins. Returns ln of the
 * density of the rows. Compiled once more for few states, whose arrays then stay in registers. */
SKVBEM_CLONES
static double skvbem_forward(const skvbem_chain *chain, skvbem_rows *rows, intptr_t from, intptr_t to,
                             const double *carry) {
    switch (chain->width) {
        case 4: return skvbem_forward_of(chain, rows, from, to, carry, 4);
        case 8: return skvbem_forward_of(chain, rows, from, to, carry, 8);
        case 12: return skvbem_forward_of(chain, rows, from, to, carry, 12);
        case 16: return skvbem_forward_of(chain, rows, from, to, carry, 16);
        case 20: return skvbem_forward_of(chain, rows, from, to, carry, 20);
        default: return skvbem_forward_of(chain, rows, from, to, carry, chain->width);
    }
}

/* The same with 0 for all that was raised to the floor: the share of Z that is left after each row; the least and the last
 * of them. `carry` (width,): of the last step before, IN and OUT; after the forward pass. */
SKVBEM_CLONES
static double skvbem_share_left(const skvbem_chain *chain, const skvbem_rows *rows, intptr_t from, intptr_t to,
                                int begins, double *restrict carry, double *restrict least) {
    const intptr_t width = chain->width;
    double *restrict next = rows->scratch + width;
    double scale = 1.0, share = 1.0;
    for (intptr_t t = from; t < to; t++) {
        const double *restrict likelihood = rows->likelihood + t * width;
        if (t == from && begins) {
            for (intptr_t j = 0; j < width; j++)
                carry[j] = chain->initial_least[j] * (likelihood[j] > SKVBEM_FLOOR ? likelihood[j] : 0.0);
        } else {
            skvbem_times(chain->n_states, width, carry, chain->transition_least, next);
            for (intptr_t j = 0; j < width; j++)
                carry[j] = next[j] * ((likelihood[j] > SKVBEM_FLOOR ? likelihood[j] : 0.0) * scale);
        }
        scale = rows->scale[t];
        share = skvbem_sum(width, carry) / skvbem_sum(width, rows->forward + t * width);
        *least = share >= *least ? *least : share;
    }
    for (intptr_t j = 0; j < width; j++) carry[j] *= scale;
    return share;
}

/* Whether rows of a sequence hold densities that were raised. */
SKVBEM_INLINE int skvbem_any_raised(const skvbem_chain *chain, const skvbem_rows *rows, intptr_t from, intptr_t to) {
    double any = chain->raised;
    for (intptr_t t = from; t < to; t++) any += rows->raised[t];
    return any != 0.0;
}

SKVBEM_INLINE void skvbem_backward_of(const skvbem_chain *chain, skvbem_rows *rows, intptr_t from, intptr_t to,
                                      const double *after, double weight, const intptr_t width) {
    double *restrict to_come = rows->scratch;
    for (intptr_t t = to - 1; t >= from; t--) {
        double *restrict right = rows->likelihood + t * width, *restrict left = rows->forward + t * width;
        double *restrict smoothed = rows->smoothed + t * width;
        const int ends = t == to - 1 && !after;
        if (ends)
            for (intptr_t j = 0; j < width; j++) to_come[j] = j < chain->n_states ? 1.0 : 0.0;
        else
            skvbem_times(chain->n_states, width, t == to - 1 ? after : right + width, chain->transposed, to_come);
        const double scale = rows->scale[t];
        for (intptr_t j = 0; j < width; j++) right[j] = right[j] * scale * to_come[j];
        for (intptr_t j = 0; j < width; j++) smoothed[j] = left[j] * to_come[j];
        const double share = weight / skvbem_sum(width, smoothed);
        for (intptr_t j = 0; j < width; j++) smoothed[j] *= share;
        for (intptr_t j = 0; j < width; j++) left[j] = ends ? 0.0 : left[j] * share;
    }
}

/* Backward over rows `from` to `to`, after the forward pass. Leaves
 *   smoothed    posterior of the states, times the weight,
 *   forward     what stands on the left of expected transitions to the next step; 0 in the last row of a sequence,
 *   likelihood  what stands on their right: transitions from t to t + 1 are forward[t] x transition x likelihood[t + 1].
 * `after` (width,): the right side of the step after the last row, or NULL where the sequence ends. */
SKVBEM_CLONES
static void skvbem_backward(const skvbem_chain *chain, skvbem_rows *rows, intptr_t from, intptr_t to,
                            const double *after, double weight) {
    switch (chain->width) {
        case 4: skvbem_backward_of(chain, rows, from, to, after, weight, 4); break;
        case 8: skvbem_backward_of(chain, rows, from, to, after, weight, 8); break;
        case 12: skvbem_backward_of(chain, rows, from, to, after, weight, 12); break;
        case 16: skvbem_backward_of(chain, rows, from, to, after, weight, 16); break;
        case 20: skvbem_backward_of(chain, rows, from, to, after, weight, 20); break;
        default: skvbem_backward_of(chain, rows, from, to, after, weight, chain->width);
    }
}

/* counts (n_states, width) += left of every row times right of the next */
SKVBEM_CLONES
static void skvbem_count_pairs(intptr_t n_states, intptr_t width, intptr_t n_rows, const double *restrict left,
                               const double *restrict right, double *restrict counts) {
    intptr_t t = 0;
    for (; t + 4 <= n_rows; t += 4) {
        const double *restrict x = left + t * width, *restrict y = right + (t + 1) * width;
        for (intptr_t i = 0; i < n_states; i++) {
            const double a = x[i], b = x[width + i], c = x[2 * width + i], d = x[3 * width + i];
            double *restrict row = counts + i * width;
            for (intptr_t j = 0; j < width; j++)
                row[j] += (a * y[j] + b * y[width + j]) + (c * y[2 * width + j] + d * y[3 * width + j]);
        }
    }
    for (; t < n_rows; t++) {
        const double *restrict x = left + t * width, *restrict y = right + (t + 1) * width;
        for (intptr_t i = 0; i < n_states; i++)
            for (intptr_t j = 0; j < width; j++) counts[i * width + j] += x[i] * y[j];
    }
}

/* out (n_states, n_rows), from state to state `stride` doubles, of rows that stand time by time */
SKVBEM_CLONES
static void skvbem_turn(intptr_t n_states, intptr_t width, intptr_t n_rows, intptr_t stride,
                        const double *restrict time_by_time, double *restrict out) {
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_SOME_ROWS) {
        const intptr_t n = n_rows - first < SKVBEM_SOME_ROWS ? n_rows - first : SKVBEM_SOME_ROWS;
        for (intptr_t k = 0; k < n_states; k++)
            for (intptr_t i = 0; i < n; i++) out[k * stride + first + i] = time_by_time[(first + i) * width + k];
    }
}

#endif
