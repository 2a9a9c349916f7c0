/* Chains of states that are stayed in for a number of steps: sums over paths of states and ages.
 *
 * A cell is a state and an age, of which there are `width` (a multiple of 8, padded with cells that nothing leads to). From
 * a cell a step leads to the next age (`up`), to the same cell (`keep`), or out of the state (`leave`) and then, with the
 * probability `jump`, into the first age of another: n_states (3 width + n_states) numbers, where a matrix has their square.
 *
 * Sums are found in scaled numbers. What falls below SKVBEM_TINY of a row is left out of the one pass, so that Z is too
 * small if anything. If anything was left out, it is raised to SKVBEM_TINY in another pass, so that Z is too large if
 * anything. Where the two agree, so do all posteriors; where they do not, a sequence is passed over in logarithms.
 */
#ifndef SKVBEM_STAYS_H
#define SKVBEM_STAYS_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_TINY 1e-290
#define SKVBEM_HUGE 1e300
/* Factors below it could make cells that are not below SKVBEM_TINY vanish without a trace: their product is above 1e-323. */
#define SKVBEM_SMALL 1e-16

/* Of a lane, as they are (sums) or in logarithms. `first` (n_states, width) of the first step of a sequence. */
typedef struct {
    intptr_t n_states, n_ages, width;
    int keeps_all; /* whether cells other than the last may be kept in */
    const double *first, *up, *keep, *leave; /* (n_states, width) */
    const double *jump;                      /* (n_states, n_states) */
} skvbem_stays;

/* Log likelihoods of rows, from state to state `stride` doubles, and what passes leave of each row. */
typedef struct {
    intptr_t stride;
    const double *logs;
    double *forward; /* (n_rows, n_states, width): sums of paths so far; in logarithms without the row itself */
    double *leaving; /* (n_rows, n_states): of `forward`, what leaves each state next */
    double *before;  /* (n_states,): the same of what came before the first row */
    double *scale;   /* (n_rows,): 1 over the sum of `forward`; in logarithms, ln of the row given those before */
    uint64_t lost;   /* not 0 once a pass has left out what may matter */
    double *room;    /* (3 n_states width + 8 n_states + 32,) */
} skvbem_stay_rows;

/* Likelihoods of a row by state over the largest, whose logarithm is returned; -inf of a row that no state can make. */
SKVBEM_INLINE double skvbem_stay_likelihoods(const skvbem_stays *chain, const skvbem_stay_rows *rows, intptr_t t,
                                             double *restrict likelihood) {
    double top = -INFINITY;
    for (intptr_t k = 0; k < chain->n_states; k++) {
        likelihood[k] = rows->logs[k * rows->stride + t];
        top = likelihood[k] > top ? likelihood[k] : top;
    }
    if (!(top > -INFINITY && top < INFINITY)) return -INFINITY;
    for (intptr_t k = 0; k < chain->n_states; k++) likelihood[k] = skvbem_exp(likelihood[k] - top);
    return top;
}

SKVBEM_INLINE double skvbem_sum_of_eight(const double *restrict x) {
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
}

SKVBEM_INLINE double skvbem_sum_by_eight(intptr_t n, const double *restrict x) {
    double sums[8] = {0.0};
    for (intptr_t i = 0; i < n; i += 8)
        for (intptr_t j = 0; j < 8; j++) sums[j] += x[i + j];
    return skvbem_sum_of_eight(sums);
}

SKVBEM_INLINE double skvbem_dot_by_eight(intptr_t n, const double *restrict x, const double *restrict y) {
    double sums[8] = {0.0};
    for (intptr_t i = 0; i < n; i += 8)
        for (intptr_t j = 0; j < 8; j++) sums[j] += x[i + j] * y[i + j];
    return skvbem_sum_of_eight(sums);
}

SKVBEM_INLINE double skvbem_at_most(double x, double highest) {
    uint64_t below = -(uint64_t) (x < highest);
    return skvbem_from_bits((skvbem_to_bits(x) & below) | (skvbem_to_bits(highest) & ~below));
}

/* Cells of a state a step on, times a factor, out (width,); returns their sum, and by `leaving` the sum times `leave`.
 * Those below SKVBEM_TINY are raised to it, or set to 0. `entry` comes into the first age. `old` (width,) has a number
 * before it. Where `keeps_all` is 0, the last age alone is kept in. */
SKVBEM_INLINE double skvbem_stays_ahead(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t k,
                                        const double *restrict old, double entry, double factor, double *restrict out,
                                        double *restrict leaving, const int keeps_all, const int raises) {
    const intptr_t width = chain->width, last = chain->n_ages - 1;
    const double *restrict up = chain->up + k * width - 1, *restrict keep = chain->keep + k * width;
    const double *restrict leave = chain->leave + k * width, *restrict shifted = old - 1;
    /* loops of one thing each, which compilers vectorize */
    if (keeps_all)
        for (intptr_t a = 0; a < width; a++) out[a] = (shifted[a] * up[a] + old[a] * keep[a]) * factor;
    else
        for (intptr_t a = 0; a < width; a++) out[a] = shifted[a] * up[a] * factor;
    if (raises)
        for (intptr_t a = 0; a < width; a++) out[a] = skvbem_at_least(out[a], SKVBEM_TINY);
    else {
        uint64_t lost = factor < SKVBEM_SMALL;
        for (intptr_t a = 0; a < width; a++) {
            const uint64_t bits = skvbem_to_bits(out[a]), stays = -(uint64_t) (out[a] >= SKVBEM_TINY);
            lost |= bits & ~stays;
            out[a] = skvbem_from_bits(bits & stays);
        }
        rows->lost |= lost;
    }
    double sum = skvbem_sum_by_eight(width, out), outside = skvbem_dot_by_eight(width, out, leave);
    for (int is_last = 0; is_last < 2; is_last++) { /* what stays in the last age, and what comes into the first */
        const intptr_t a = is_last ? last : 0;
        if (is_last && keeps_all) continue;
        double y = (is_last ? old[a] * keep[a] : entry) * factor;
        y = y + out[a] < SKVBEM_TINY ? 0.0 : y;
        out[a] += y;
        sum += y;
        outside += y * leave[a];
    }
    *leaving = outside;
    return sum;
}

SKVBEM_INLINE double skvbem_stays_forward_of(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from,
                                             intptr_t to, const double *carry, const int keeps_all, const int raises) {
    const intptr_t n = chain->n_states, width = chain->width, size = n * width;
    double *restrict likelihood = rows->room, *restrict taken_up = rows->room + n + 8;
    double log_z = 0.0, product = 1.0;
    taken_up[-1] = rows->forward[-1] = 0.0; /* nothing comes before the first age */
    if (carry) {
        memcpy(taken_up, carry, size * sizeof(double));
        for (intptr_t k = 0; k < n; k++) {
            double left = 0.0;
            for (intptr_t a = 0; a < width; a++) left += carry[k * width + a] * chain->leave[k * width + a];
            rows->before[k] = left;
        }
    }
    for (intptr_t t = from; t < to; t++) {
        double *restrict here = rows->forward + (raises ? ((t - from) & 1) : t) * size;
        const double *before = t == from ? taken_up : rows->forward + (raises ? ((t - from - 1) & 1) : t - 1) * size;
        const double *restrict left = t == from ? rows->before : rows->leaving + (t - 1) * n;
        const double top = skvbem_stay_likelihoods(chain, rows, t, likelihood);
        if (top == -INFINITY) return -INFINITY;
        const double unit = t == from ? 1.0 : rows->scale[t - 1];
        double sum = 0.0;
        if (t == from && !carry)
            for (intptr_t k = 0; k < n; k++) {
                double outside = 0.0;
                for (intptr_t a = 0; a < width; a++) {
                    const double y = chain->first[k * width + a] * likelihood[k];
                    rows->lost |= y < SKVBEM_SMALL && chain->first[k * width + a] > 0.0;
                    here[k * width + a] = y < SKVBEM_TINY ? (raises ? SKVBEM_TINY : 0.0) : y;
                    sum += here[k * width + a];
                    outside += here[k * width + a] * chain->leave[k * width + a];
                }
                rows->leaving[t * n + k] = outside;
            }
        else
            for (intptr_t k = 0; k < n; k++) {
                double entry = 0.0;
                for (intptr_t j = 0; j < n; j++) entry += left[j] * chain->jump[j * n + k];
                sum += skvbem_stays_ahead(chain, rows, k, before + k * width, entry, likelihood[k] * unit,
                                          here + k * width, rows->leaving + t * n + k, keeps_all, raises);
            }
        if (!(sum > 1e10 * SKVBEM_TINY)) return -INFINITY;
        rows->scale[t] = 1.0 / sum;
        product *= sum;
        log_z += top;
        if (product < 1e-100 || product > 1e100) log_z += log(product), product = 1.0;
    }
    return log_z + log(product);
}

/* ln Z of rows `from` to `to`, or what it grows by after `carry` (n_states, width), whose sum is 1; -inf where it is
 * lost. Cells below SKVBEM_TINY are raised to it, and of `forward` two rows are kept; or they are 0, and all rows are. */
SKVBEM_CLONES
static double skvbem_stays_forward(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from, intptr_t to,
                                   const double *carry, int raises) {
    if (chain->keeps_all)
        return raises ? skvbem_stays_forward_of(chain, rows, from, to, carry, 1, 1)
                      : skvbem_stays_forward_of(chain, rows, from, to, carry, 1, 0);
    return raises ? skvbem_stays_forward_of(chain, rows, from, to, carry, 0, 1)
                  : skvbem_stays_forward_of(chain, rows, from, to, carry, 0, 0);
}

/* What comes after the cells of a step, from what comes after those of the next, and expected steps between the two.
 * `before` (size,) times `share` are probabilities of the cells left; `right` (size + 8,) what comes from the cells arrived
 * at. `factor` (n_states,): the likelihood of the row left over its sum. `after` (size,) OUT: what comes from the cells left,
 * times the factor; `posterior` (n_states,) OUT: of the states left. Sums are added to, but not where `counts_any` is 0. */
SKVBEM_INLINE void skvbem_stays_back(const skvbem_stays *chain, const double *restrict before, double share,
                                     const double *restrict leaving, const double *restrict right,
                                     const double *restrict factor, double *restrict after, double *restrict posterior,
                                     double *restrict up_counts, double *restrict keep_counts,
                                     double *restrict leave_counts, double *restrict jump_counts, const int keeps_all,
                                     const int counts_any) {
    const intptr_t n = chain->n_states, width = chain->width, last = chain->n_ages - 1;
    for (intptr_t k = 0; k < n; k++) {
        const double *restrict up = chain->up + k * width, *restrict keep = chain->keep + k * width;
        const double *restrict leave = chain->leave + k * width, *restrict r = right + k * width;
        const double *restrict x = before + k * width;
        double *restrict of_up = up_counts + k * width, *restrict of_keep = keep_counts + k * width;
        double *restrict of_leave = leave_counts + k * width, *restrict out = after + k * width;
        double outside = 0.0;
        for (intptr_t l = 0; l < n; l++) outside += chain->jump[k * n + l] * right[l * width];
        const double times = share * outside, by = factor[k];
        for (intptr_t a = 0; a < width; a++) {
            double y = leave[a] * outside + up[a] * r[a + 1];
            if (keeps_all) y += keep[a] * r[a];
            out[a] = y;
        }
        double sum = share * skvbem_dot_by_eight(width, x, out);
        for (intptr_t a = 0; a < width; a++) out[a] = skvbem_at_most(out[a] * by, SKVBEM_HUGE);
        if (counts_any) {
            for (intptr_t a = 0; a < width; a++) of_up[a] += x[a] * share * r[a + 1];
            for (intptr_t a = 0; a < width; a++) of_leave[a] += x[a] * times;
            if (keeps_all)
                for (intptr_t a = 0; a < width; a++) of_keep[a] += x[a] * share * r[a];
        }
        if (!keeps_all) { /* the last age alone */
            const double more = keep[last] * r[last], y = out[last] + more * by;
            out[last] = skvbem_at_most(y, SKVBEM_HUGE);
            sum += x[last] * share * more;
            if (counts_any) of_keep[last] += x[last] * share * r[last];
        }
        posterior[k] = sum;
        if (counts_any)
            for (intptr_t l = 0; l < n; l++) jump_counts[k * n + l] += share * leaving[k] * right[l * width];
    }
}

SKVBEM_INLINE void skvbem_stays_backward_of(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from, intptr_t to,
                                            const double *carry, int ends, double weight, double *restrict after,
                                            double *restrict smoothed, double *restrict first_counts,
                                            double *restrict up_counts, double *restrict keep_counts,
                                            double *restrict leave_counts, double *restrict jump_counts,
                                            const int keeps_all) {
    const intptr_t n = chain->n_states, width = chain->width, size = n * width;
    double *restrict factor = rows->room, *posterior = factor + n, *old = posterior + n, *new = old + size + 8, *held;
    memset(old, 0, (size + 8) * sizeof(double)); /* behind the last cell: times 0, but a number */
    memset(new, 0, (size + 8) * sizeof(double));
    memcpy(old, after, size * sizeof(double));
    for (intptr_t t = to - 1; t >= from; t--) {
        const double *restrict here = rows->forward + t * size;
        const double share = weight * rows->scale[t];
        skvbem_stay_likelihoods(chain, rows, t, factor);
        for (intptr_t k = 0; k < n; k++) factor[k] *= rows->scale[t];
        if (t == to - 1 && ends) {
            for (intptr_t k = 0; k < n; k++) {
                posterior[k] = 0.0;
                for (intptr_t a = 0; a < width; a++) posterior[k] += share * here[k * width + a];
                for (intptr_t a = 0; a < width; a++) new[k * width + a] = factor[k];
            }
        } else if (t == to - 1) /* steps out of the piece are counted in the one after it */
            skvbem_stays_back(chain, here, share, rows->leaving + t * n, old, factor, new, posterior, up_counts,
                              keep_counts, leave_counts, jump_counts, keeps_all, 0);
        else
            skvbem_stays_back(chain, here, share, rows->leaving + t * n, old, factor, new, posterior, up_counts,
                              keep_counts, leave_counts, jump_counts, keeps_all, 1);
        for (intptr_t k = 0; k < n; k++) smoothed[k * rows->stride + t] = posterior[k];
        held = old, old = new, new = held;
    }
    memcpy(after, old, size * sizeof(double));
    if (carry)
        skvbem_stays_back(chain, carry, weight, rows->before, old, factor, new, posterior, up_counts, keep_counts,
                          leave_counts, jump_counts, keeps_all, 1);
    else
        for (intptr_t c = 0; c < size; c++) first_counts[c] += weight * old[c];
}

/* Backward over rows `from` to `to`, after the forward pass. Posteriors of states times the weight are written to
 * `smoothed` (n_states, stride), which may be the logs. Counts are added to, as far as they do not depend on the chain: times
 * `up`, ... they are expected steps. `carry`: what came before the first row, or NULL. `after` (size,): IN where the sequence
 * goes on, and OUT of the first row: densities of what comes from each cell, the row itself with it. */
SKVBEM_CLONES
static void skvbem_stays_backward(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from, intptr_t to,
                                  const double *carry, int ends, double weight, double *restrict after,
                                  double *restrict smoothed, double *restrict first_counts, double *restrict up_counts,
                                  double *restrict keep_counts, double *restrict leave_counts,
                                  double *restrict jump_counts) {
    if (chain->keeps_all)
        skvbem_stays_backward_of(chain, rows, from, to, carry, ends, weight, after, smoothed, first_counts, up_counts,
                                 keep_counts, leave_counts, jump_counts, 1);
    else
        skvbem_stays_backward_of(chain, rows, from, to, carry, ends, weight, after, smoothed, first_counts, up_counts,
                                 keep_counts, leave_counts, jump_counts, 0);
}

/* --- In logarithms ------------------------------------------------------------------------------------------------ */

SKVBEM_INLINE double skvbem_log_add(double x, double y) {
    const double top = x > y ? x : y, low = x > y ? y : x;
    return low == -INFINITY ? top : top + log1p(exp(low - top));
}

SKVBEM_INLINE double skvbem_log_sum_of(intptr_t n, const double *restrict x, const double *restrict y) {
    double top = -INFINITY, sum = 0.0;
    for (intptr_t i = 0; i < n; i++) {
        const double z = x[i] + y[i];
        top = z > top ? z : top;
    }
    if (top == -INFINITY) return top;
    for (intptr_t i = 0; i < n; i++) sum += skvbem_exp(x[i] + y[i] - top);
    return top + log(sum);
}

/* Logs of cells given the rows up to one, out (size,), after the forward pass. */
SKVBEM_INLINE void skvbem_stays_reached(const skvbem_stays *chain, const skvbem_stay_rows *rows, intptr_t t,
                                        double *restrict out) {
    const intptr_t n = chain->n_states, width = chain->width;
    const double *restrict here = rows->forward + t * n * width;
    for (intptr_t k = 0; k < n; k++) {
        const double row = rows->logs[k * rows->stride + t] - rows->scale[t];
        for (intptr_t a = 0; a < width; a++) out[k * width + a] = here[k * width + a] + row;
    }
}

/* As skvbem_stays_forward; `carry` (size,) are logs. */
SKVBEM_CLONES
static double skvbem_stays_log_forward(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from, intptr_t to,
                                       const double *carry) {
    const intptr_t n = chain->n_states, width = chain->width, size = n * width;
    double *restrict before = rows->room, *restrict leaving = rows->room + size;
    double log_z = 0.0;
    for (intptr_t t = from; t < to; t++) {
        double *restrict here = rows->forward + t * size;
        const int begins = t == from && !carry;
        if (begins)
            memcpy(here, chain->first, size * sizeof(double));
        else {
            if (t == from)
                memcpy(before, carry, size * sizeof(double));
            else
                skvbem_stays_reached(chain, rows, t - 1, before);
            for (intptr_t k = 0; k < n; k++)
                leaving[k] = skvbem_log_sum_of(width, before + k * width, chain->leave + k * width);
            for (intptr_t k = 0; k < n; k++) {
                const double *restrict old = before + k * width;
                const double *restrict up = chain->up + k * width, *restrict keep = chain->keep + k * width;
                double *restrict of_state = here + k * width;
                double entry = old[0] + keep[0];
                for (intptr_t j = 0; j < n; j++) entry = skvbem_log_add(entry, leaving[j] + chain->jump[j * n + k]);
                of_state[0] = entry;
                for (intptr_t a = 1; a < width; a++)
                    of_state[a] = skvbem_log_add(old[a] + keep[a], old[a - 1] + up[a - 1]);
            }
        }
        double total = -INFINITY;
        for (intptr_t k = 0; k < n; k++) {
            const double row = rows->logs[k * rows->stride + t];
            double top = -INFINITY, sum = 0.0;
            for (intptr_t a = 0; a < width; a++) top = here[k * width + a] > top ? here[k * width + a] : top;
            if (top == -INFINITY || row == -INFINITY) continue;
            for (intptr_t a = 0; a < width; a++) sum += skvbem_exp(here[k * width + a] - top);
            total = skvbem_log_add(total, top + log(sum) + row);
        }
        if (!(total > -INFINITY)) return -INFINITY;
        rows->scale[t] = total;
        log_z += total;
    }
    return log_z;
}

/* Logs of what comes from the cells left, `to_come` (size,), of what comes from those arrived at, `after` (size + 4,). */
SKVBEM_INLINE void skvbem_stays_log_back(const skvbem_stays *chain, const double *restrict after,
                                         double *restrict outside, double *restrict to_come) {
    const intptr_t n = chain->n_states, width = chain->width;
    for (intptr_t k = 0; k < n; k++) {
        outside[k] = -INFINITY;
        for (intptr_t l = 0; l < n; l++) outside[k] = skvbem_log_add(outside[k], chain->jump[k * n + l] + after[l * width]);
        for (intptr_t a = 0; a < width; a++) {
            const intptr_t c = k * width + a;
            const double next = a + 1 < width ? chain->up[c] + after[c + 1] : -INFINITY;
            to_come[c] = skvbem_log_add(skvbem_log_add(chain->leave[c] + outside[k], next), chain->keep[c] + after[c]);
        }
    }
}

/* Expected steps from cells with the logs `before` (size,) to what comes. */
SKVBEM_INLINE void skvbem_stays_log_count(const skvbem_stays *chain, const double *restrict before, double weight,
                                          const double *restrict after, const double *restrict outside,
                                          double *restrict up_counts, double *restrict keep_counts,
                                          double *restrict leave_counts, double *restrict jump_counts) {
    const intptr_t n = chain->n_states, width = chain->width;
    for (intptr_t k = 0; k < n; k++) {
        double left = -INFINITY;
        for (intptr_t a = 0; a < width; a++) {
            const intptr_t c = k * width + a;
            if (before[c] == -INFINITY) continue;
            if (a + 1 < width) up_counts[c] += weight * exp(before[c] + chain->up[c] + after[c + 1]);
            keep_counts[c] += weight * exp(before[c] + chain->keep[c] + after[c]);
            leave_counts[c] += weight * exp(before[c] + chain->leave[c] + outside[k]);
            left = skvbem_log_add(left, before[c] + chain->leave[c]);
        }
        for (intptr_t l = 0; l < n; l++)
            jump_counts[k * n + l] += weight * exp(left + chain->jump[k * n + l] + after[l * width]);
    }
}

/* As skvbem_stays_backward, with whole counts. Where `without` holds, posteriors are those given all other rows. */
SKVBEM_CLONES
static void skvbem_stays_log_backward(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from, intptr_t to,
                                      const double *carry, int ends, double weight, int without,
                                      double *restrict after, double *restrict smoothed, double *restrict first_counts,
                                      double *restrict up_counts, double *restrict keep_counts,
                                      double *restrict leave_counts, double *restrict jump_counts) {
    const intptr_t n = chain->n_states, width = chain->width, size = n * width;
    double *restrict to_come = rows->room, *restrict before = rows->room + size, *restrict outside = before + size;
    double *restrict own = outside + n;
    for (intptr_t t = to - 1; t >= from; t--) {
        const double *restrict here = rows->forward + t * size;
        const int is_end = t == to - 1 && ends, at_border = t == to - 1 && !ends;
        skvbem_stays_reached(chain, rows, t, before);
        if (is_end)
            for (intptr_t c = 0; c < size; c++) to_come[c] = 0.0;
        else {
            skvbem_stays_log_back(chain, after, outside, to_come);
            if (!at_border)
                skvbem_stays_log_count(chain, before, weight, after, outside, up_counts, keep_counts, leave_counts,
                                       jump_counts);
        }
        double total = -INFINITY;
        for (intptr_t k = 0; k < n; k++) {
            own[k] = skvbem_log_sum_of(width, (without ? here : before) + k * width, to_come + k * width);
            total = skvbem_log_add(total, own[k]);
        }
        for (intptr_t k = 0; k < n; k++)
            for (intptr_t a = 0; a < width; a++)
                after[k * width + a] = to_come[k * width + a] + rows->logs[k * rows->stride + t] - rows->scale[t];
        for (intptr_t k = 0; k < n; k++) smoothed[k * rows->stride + t] = weight * exp(own[k] - total);
    }
    if (carry) {
        skvbem_stays_log_back(chain, after, outside, to_come);
        skvbem_stays_log_count(chain, carry, weight, after, outside, up_counts, keep_counts, leave_counts, jump_counts);
    } else
        for (intptr_t c = 0; c < size; c++)
            if (chain->first[c] > -INFINITY) first_counts[c] += weight * exp(chain->first[c] + after[c]);
}

/* --- Draws and best paths ------------------------------------------------------------------------------------------ */

/* Weights (size,) of cells before one that is known, or of the last cells of a sequence where `next` is -1. `reached` are
 * sums, or logs, of the cells given the rows up to theirs. */
SKVBEM_INLINE void skvbem_stays_before(const skvbem_stays *chain, const double *restrict reached, int in_logs,
                                       intptr_t next, double *restrict weight) {
    const intptr_t n = chain->n_states, width = chain->width, size = n * width, k = next / width, a = next % width;
    const double none = in_logs ? -INFINITY : 0.0;
    if (next < 0)
        memcpy(weight, reached, size * sizeof(double));
    else {
        for (intptr_t c = 0; c < size; c++) weight[c] = none;
        if (a == 0)
            for (intptr_t j = 0; j < n; j++)
                for (intptr_t b = 0; b < width; b++) {
                    const intptr_t c = j * width + b;
                    weight[c] = in_logs ? reached[c] + chain->leave[c] + chain->jump[j * n + k]
                                        : reached[c] * chain->leave[c] * chain->jump[j * n + k];
                }
        else
            weight[next - 1] = in_logs ? reached[next - 1] + chain->up[next - 1] : reached[next - 1] * chain->up[next - 1];
        /* a jump into the same state does not exist, so that nothing else stands in this cell where `a` is 0 */
        const double stays = in_logs ? reached[next] + chain->keep[next] : reached[next] * chain->keep[next];
        weight[next] = a == 0 ? (in_logs ? skvbem_log_add(weight[next], stays) : weight[next] + stays) : stays;
    }
    if (!in_logs) return;
    double top = -INFINITY;
    for (intptr_t c = 0; c < size; c++) top = weight[c] > top ? weight[c] : top;
    for (intptr_t c = 0; c < size; c++) weight[c] = top == -INFINITY ? 0.0 : skvbem_exp(weight[c] - top);
}

#endif
