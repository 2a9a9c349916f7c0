/* Hidden Markov chains in logarithms: slower, and right whatever the numbers; and best paths, which are sums of logs.
 *
 * `forward` holds ln p(state | rows up to this one), `likelihood` is not used.
 */
#ifndef SKVBEM_CHAIN_LOG_H
#define SKVBEM_CHAIN_LOG_H

#include "_chain.h"

/* out_j = ln sum_i exp(x_i + A_ij), for A (n, n); `top` (n,) is scratch */
SKVBEM_INLINE void skvbem_log_times(intptr_t n, const double *restrict x, const double *restrict A, double *restrict top,
                                    double *restrict out) {
    for (intptr_t j = 0; j < n; j++) top[j] = -INFINITY;
    for (intptr_t i = 0; i < n; i++)
        for (intptr_t j = 0; j < n; j++) {
            const double y = x[i] + A[i * n + j];
            top[j] = y > top[j] ? y : top[j];
        }
    for (intptr_t j = 0; j < n; j++) {
        top[j] = top[j] == -INFINITY ? 0.0 : top[j];
        out[j] = 0.0;
    }
    for (intptr_t i = 0; i < n; i++)
        for (intptr_t j = 0; j < n; j++) out[j] += skvbem_exp(x[i] + A[i * n + j] - top[j]);
    for (intptr_t j = 0; j < n; j++) out[j] = out[j] > 0.0 ? top[j] + log(out[j]) : (out[j] == 0.0 ? -INFINITY : out[j]);
}

/* ln sum exp x; NaN if any is */
SKVBEM_INLINE double skvbem_log_total(intptr_t n, const double *restrict x) {
    double top = -INFINITY, sum = 0.0;
    for (intptr_t i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    if (top == -INFINITY) top = 0.0;
    for (intptr_t i = 0; i < n; i++) sum += skvbem_exp(x[i] - top);
    return sum == 0.0 ? -INFINITY : top + log(sum);
}

/* As skvbem_forward; `carry` holds logarithms. */
SKVBEM_CLONES
static double skvbem_log_forward(const skvbem_chain *chain, skvbem_rows *rows, intptr_t from, intptr_t to,
                                 const double *carry) {
    const intptr_t n = chain->n_states, width = chain->width;
    double *restrict top = rows->scratch;
    double log_z = 0.0;
    for (intptr_t t = from; t < to; t++) {
        double *restrict here = rows->forward + t * width;
        if (t == from && !carry)
            memcpy(here, chain->log_initial, n * sizeof(double));
        else
            skvbem_log_times(n, t == from ? carry : here - width, chain->log_transition, top, here);
        for (intptr_t j = 0; j < n; j++) here[j] += rows->log_likelihood[j * rows->stride + t];
        const double sum = skvbem_log_total(n, here);
        if (sum == -INFINITY) { /* no path can make the rows so far */
            for (intptr_t i = t * width; i < to * width; i++) rows->forward[i] = -INFINITY;
            return -INFINITY;
        }
        for (intptr_t j = 0; j < n; j++) here[j] -= sum;
        log_z += sum;
    }
    return log_z;
}

/* As skvbem_backward; expected transitions are added to `counts` (n_states, n_states), and `forward` is left 0 for what
 * counts them otherwise. `after` (width,): ln of the densities of all that comes after, by the state of the next step, IN
 * where the sequence does not end, and OUT of the first row. */
SKVBEM_CLONES
static void skvbem_log_backward(const skvbem_chain *chain, skvbem_rows *rows, intptr_t from, intptr_t to, int ends,
                                double *restrict after, double weight, double *restrict counts) {
    const intptr_t n = chain->n_states, width = chain->width;
    double *restrict top = rows->scratch, *restrict to_come = rows->scratch + width;
    for (intptr_t t = to - 1; t >= from; t--) {
        double *restrict left = rows->forward + t * width, *restrict smoothed = rows->smoothed + t * width;
        const int last = t == to - 1 && ends;
        if (last)
            for (intptr_t i = 0; i < n; i++) to_come[i] = 0.0;
        else
            skvbem_log_times(n, after, chain->log_transposed, top, to_come);
        for (intptr_t i = 0; i < n; i++) smoothed[i] = left[i] + to_come[i];
        const double norm = skvbem_log_total(n, smoothed);
        for (intptr_t i = 0; i < n; i++) smoothed[i] = weight * skvbem_exp(smoothed[i] - norm);
        for (intptr_t i = n; i < width; i++) smoothed[i] = 0.0;
        if (!last)
            for (intptr_t i = 0; i < n; i++)
                for (intptr_t j = 0; j < n; j++)
                    counts[i * n + j] +=
                        weight * skvbem_exp(left[i] + chain->log_transition[i * n + j] + after[j] - norm);
        double largest = -INFINITY;
        for (intptr_t i = 0; i < n; i++) {
            after[i] = to_come[i] + rows->log_likelihood[i * rows->stride + t];
            largest = after[i] > largest ? after[i] : largest;
        }
        for (intptr_t i = 0; i < n; i++) after[i] -= largest;
        for (intptr_t i = 0; i < width; i++) left[i] = 0.0;
    }
}

/* One step of the best path: best_j = max_i (best_i + ln A_ij) + ln p(row | j), and the first i that attains it.
 * `before` (n,), `best` (n,), `from` (n,) OUT */
SKVBEM_CLONES
static void skvbem_best_step(intptr_t n, const double *restrict log_transition, const double *restrict before,
                             double *restrict best, double *restrict from) {
    for (intptr_t j = 0; j < n; j++) best[j] = before[0] + log_transition[j], from[j] = 0.0;
    for (intptr_t i = 1; i < n; i++) {
        const double of_state = (double) i;
        for (intptr_t j = 0; j < n; j++) {
            const double y = before[i] + log_transition[i * n + j];
            from[j] = y > best[j] ? of_state : from[j];
            best[j] = y > best[j] ? y : best[j];
        }
    }
}

/* Posteriors of the states given the rows so far, out (n_rows, n_states), after a forward pass. */
static void skvbem_filtered(const skvbem_chain *chain, const skvbem_rows *rows, intptr_t from, intptr_t to, int in_logs,
                            double *restrict out) {
    for (intptr_t t = from; t < to; t++) {
        const double *restrict here = rows->forward + t * chain->width;
        const double sum = in_logs ? 1.0 : skvbem_sum(chain->width, here);
        for (intptr_t j = 0; j < chain->n_states; j++)
            out[t * chain->n_states + j] = in_logs ? skvbem_exp(here[j]) : here[j] / sum;
    }
}

SKVBEM_INLINE void skvbem_draw_ahead_of(const skvbem_chain *chain, const skvbem_rows *rows, intptr_t from, intptr_t to,
                                        const double *restrict uniform, int64_t *restrict states, const intptr_t n) {
    const double *restrict transition = chain->transition_least;
    for (intptr_t t = from; t < to; t++) {
        const double *restrict here = rows->forward + 4 * t;
        double below[4] = {0.0, 0.0, 0.0, 0.0}, mark[4] = {0.0, 0.0, 0.0, 0.0};
        int64_t drawn[4] = {0, 0, 0, 0};
        for (intptr_t i = 0; i < n; i++)
            for (intptr_t j = 0; j < 4; j++) mark[j] += here[i] * transition[4 * i + j];
        for (intptr_t j = 0; j < 4; j++) mark[j] *= uniform[t];
        for (intptr_t i = 0; i < n - 1; i++)
            for (intptr_t j = 0; j < 4; j++) {
                below[j] += here[i] * transition[4 * i + j];
                drawn[j] += below[j] <= mark[j];
            }
        for (intptr_t j = 0; j < 4; j++) states[4 * t + j] = drawn[j];
    }
}

/* Of up to four states: the state of each row for every state that the next row may turn out to have, (n_rows, 4). So no
 * row waits for the next one, and all that is left to do in turn is to look states up. */
SKVBEM_CLONES
static void skvbem_draw_ahead(const skvbem_chain *chain, const skvbem_rows *rows, intptr_t from, intptr_t to,
                              const double *uniform, int64_t *states) {
    switch (chain->n_states) {
        case 1: skvbem_draw_ahead_of(chain, rows, from, to, uniform, states, 1); break;
        case 2: skvbem_draw_ahead_of(chain, rows, from, to, uniform, states, 2); break;
        case 3: skvbem_draw_ahead_of(chain, rows, from, to, uniform, states, 3); break;
        default: skvbem_draw_ahead_of(chain, rows, from, to, uniform, states, 4);
    }
}

/* States of rows `from` to `to`, the last first, after a forward pass, written over `scale`, which is done with; transitions
 * are added to `counts` (n_states, n_states). `next` is the state drawn of the row after them, or -1 where there is none.
 * Returns the first state. */
static intptr_t skvbem_draw_states(const skvbem_chain *chain, skvbem_rows *rows, intptr_t from, intptr_t to,
                                   int in_logs, intptr_t next, const double *restrict uniform, double *restrict counts) {
    const intptr_t n = chain->n_states, width = chain->width;
    double *restrict weight = rows->scratch;
    intptr_t t = to - 1;
    if (next < 0) {
        const double *restrict here = rows->forward + t * width;
        for (intptr_t i = 0; i < n; i++) weight[i] = in_logs ? skvbem_exp(here[i]) : here[i];
        next = skvbem_draw_state(n, weight, uniform[t]);
        rows->scale[t--] = (double) next;
    }
    if (width == 4 && !in_logs) {
        int64_t *restrict states = (int64_t *) rows->smoothed;
        int64_t pairs[2][16] = {{0}}; /* in turns, so that no count waits for the one before */
        skvbem_draw_ahead(chain, rows, from, t + 1, uniform, states);
        for (; t >= from; t--) {
            const intptr_t state = (intptr_t) states[4 * t + next];
            pairs[t & 1][4 * state + next]++;
            rows->scale[t] = (double) state;
            next = state;
        }
        for (intptr_t i = 0; i < n; i++)
            for (intptr_t j = 0; j < n; j++) counts[i * n + j] += (double) (pairs[0][4 * i + j] + pairs[1][4 * i + j]);
        return next;
    }
    for (; t >= from; t--) {
        const double *restrict here = rows->forward + t * width;
        if (in_logs) {
            double top = -INFINITY;
            for (intptr_t i = 0; i < n; i++) {
                weight[i] = here[i] + chain->log_transition[i * n + next];
                top = weight[i] > top ? weight[i] : top;
            }
            for (intptr_t i = 0; i < n; i++) weight[i] = skvbem_exp(weight[i] - (top == -INFINITY ? 0.0 : top));
        } else {
            for (intptr_t i = 0; i < n; i++) weight[i] = here[i] * chain->transition_least[i * width + next];
        }
        const intptr_t state = skvbem_draw_state(n, weight, uniform[t]);
        counts[state * n + next] += 1.0;
        rows->scale[t] = (double) state;
        next = state;
    }
    return next;
}

/* out[k * stride + t] = 1 where the state of row t is k, else 0 */
SKVBEM_CLONES
static void skvbem_mark_states(intptr_t n_states, intptr_t n_rows, intptr_t stride, const double *restrict states,
                               double *restrict out) {
    for (intptr_t k = 0; k < n_states; k++) {
        const double of_state = (double) k;
        for (intptr_t t = 0; t < n_rows; t++) out[k * stride + t] = states[t] == of_state ? 1.0 : 0.0;
    }
}

#endif
