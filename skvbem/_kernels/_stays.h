/* Chains of states that are stayed in for a number of steps: sums over paths of states and ages.
 *
 * A cell is a state and an age, of which there are `width` (a multiple of 4, padded with cells that nothing leads to). From
 * a cell a step leads to the next age (`up`), to the same cell (`keep`), or out of the state (`leave`) and then, with the
 * probability `jump`, into the first age of another: n_states (3 width + n_states) numbers, where a matrix has their square.
 *
 * Sums are found in scaled numbers. What falls below SKVBEM_TINY of a row is left out of the one pass, so that Z is too
 * small if anything, and raised to it in another, so that Z is too large if anything. Where the two agree, so do all
 * posteriors; where they do not, a sequence is passed over in logarithms.
 */
#ifndef SKVBEM_STAYS_H
#define SKVBEM_STAYS_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_TINY 1e-290
#define SKVBEM_HUGE 1e300

/* Of a lane, as they are (sums) or in logarithms. `first` (n_states, width) of the first step of a sequence. */
typedef struct {
    intptr_t n_states, width;
    const double *first, *up, *keep, *leave; /* (n_states, width) */
    const double *jump;                      /* (n_states, n_states) */
} skvbem_stays;

/* Log likelihoods of rows, from state to state `stride` doubles, and what passes leave of each row. */
typedef struct {
    intptr_t stride;
    const double *logs;
    double *forward; /* (n_rows, n_states, width): sums of paths so far; in logarithms without the row itself */
    double *scale;   /* (n_rows,): 1 over the sum of `forward`; in logarithms, ln of the row given those before */
    double *room;    /* (4 n_states width + 8 n_states + 16,) */
} skvbem_stay_rows;

SKVBEM_INLINE double skvbem_sum_by_four(intptr_t n, const double *restrict x) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (intptr_t i = 0; i < n; i += 4)
        for (intptr_t j = 0; j < 4; j++) sums[j] += x[i + j];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

SKVBEM_INLINE double skvbem_dot_by_four(intptr_t n, const double *restrict x, const double *restrict y) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (intptr_t i = 0; i < n; i += 4)
        for (intptr_t j = 0; j < 4; j++) sums[j] += x[i + j] * y[i + j];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Likelihoods of a row by state over the largest, whose logarithm is returned; -inf of a row that no state can make. */
SKVBEM_INLINE double skvbem_stay_likelihoods(const skvbem_stays *chain, const skvbem_stay_rows *rows, intptr_t t,
                                             double *restrict likelihood) {
    double top = -INFINITY;
    for (intptr_t k = 0; k < chain->n_states; k++) {
        const double x = rows->logs[k * rows->stride + t];
        top = x > top ? x : top;
    }
    if (!(top > -INFINITY && top < INFINITY)) return -INFINITY;
    for (intptr_t k = 0; k < chain->n_states; k++)
        likelihood[k] = skvbem_exp(rows->logs[k * rows->stride + t] - top);
    return top;
}

/* ln Z of rows `from` to `to`, or what it grows by after `carry` (n_states, width), whose sum is 1; -inf where it is lost.
 * Cells below `least` are raised to it; where that is 0, cells below SKVBEM_TINY are set to 0. */
SKVBEM_CLONES
static double skvbem_stays_forward(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from, intptr_t to,
                                   const double *carry, double least, int in_place) {
    const intptr_t n = chain->n_states, width = chain->width, size = n * width;
    double *restrict likelihood = rows->room, *restrict leaving = rows->room + n;
    double log_z = 0.0, product = 1.0;
    for (intptr_t t = from; t < to; t++) {
        double *restrict here = rows->forward + (in_place ? ((t - from) & 1) : t) * size;
        const double *restrict before = t == from ? carry : rows->forward + (in_place ? ((t - from - 1) & 1) : t - 1) * size;
        const double top = skvbem_stay_likelihoods(chain, rows, t, likelihood);
        if (top == -INFINITY) return -INFINITY;
        const double unit = t == from ? 1.0 : rows->scale[t - 1];
        for (intptr_t k = 0; before && k < n; k++)
            leaving[k] = skvbem_dot_by_four(width, before + k * width, chain->leave + k * width);
        double sum = 0.0;
        for (intptr_t k = 0; k < n; k++) {
            double *restrict of_state = here + k * width;
            const double factor = likelihood[k] * (before ? unit : 1.0);
            if (!before) {
                const double *restrict first = chain->first + k * width;
                for (intptr_t a = 0; a < width; a++) of_state[a] = first[a] * factor;
            } else {
                const double *restrict old = before + k * width;
                const double *restrict up = chain->up + k * width, *restrict keep = chain->keep + k * width;
                double entry = 0.0;
                for (intptr_t j = 0; j < n; j++) entry += leaving[j] * chain->jump[j * n + k];
                of_state[0] = (entry + old[0] * keep[0]) * factor;
                for (intptr_t a = 1; a < width; a++) of_state[a] = (old[a] * keep[a] + old[a - 1] * up[a - 1]) * factor;
            }
            if (least > 0.0)
                for (intptr_t a = 0; a < width; a++) of_state[a] = skvbem_at_least(of_state[a], least);
            else
                for (intptr_t a = 0; a < width; a++) of_state[a] = of_state[a] < SKVBEM_TINY ? 0.0 : of_state[a];
            sum += skvbem_sum_by_four(width, of_state);
        }
        if (!(sum > 1e10 * SKVBEM_TINY)) return -INFINITY;
        rows->scale[t] = 1.0 / sum;
        product *= sum;
        log_z += top;
        if (product < 1e-100 || product > 1e100) log_z += log(product), product = 1.0;
    }
    return log_z + log(product);
}

/* Expected steps from cells, and likelihoods of all that comes, of one step.
 * `before` (size,) times `share` are probabilities of the cells left, `right` (size + 4,) densities of what comes from the
 * cells arrived at. `to_come` (size,) OUT: of what comes from the cells left. Sums are added to. */
SKVBEM_INLINE void skvbem_stays_back(const skvbem_stays *chain, const double *restrict before, double share,
                                     const double *restrict right, double *restrict to_come, double *restrict up_counts,
                                     double *restrict keep_counts, double *restrict leave_counts,
                                     double *restrict jump_counts, int counts_any) {
    const intptr_t n = chain->n_states, width = chain->width;
    for (intptr_t k = 0; k < n; k++) {
        const double *restrict up = chain->up + k * width, *restrict keep = chain->keep + k * width;
        const double *restrict leave = chain->leave + k * width, *restrict r = right + k * width;
        double *restrict out = to_come + k * width;
        double outside = 0.0;
        for (intptr_t l = 0; l < n; l++) outside += chain->jump[k * n + l] * right[l * width];
        for (intptr_t a = 0; a < width; a++) out[a] = leave[a] * outside + up[a] * r[a + 1] + keep[a] * r[a];
        if (!counts_any) continue;
        const double *restrict x = before + k * width;
        double *restrict of_up = up_counts + k * width, *restrict of_keep = keep_counts + k * width;
        double *restrict of_leave = leave_counts + k * width;
        const double times = share * outside;
        for (intptr_t a = 0; a < width; a++) {
            of_up[a] += (x[a] * share) * r[a + 1];
            of_keep[a] += (x[a] * share) * r[a];
            of_leave[a] += x[a] * times;
        }
        const double left = share * skvbem_dot_by_four(width, x, leave);
        for (intptr_t l = 0; l < n; l++) jump_counts[k * n + l] += left * right[l * width];
    }
}

/* Backward over rows `from` to `to`, after the forward pass. Posteriors of states times the weight are written to
 * `smoothed` (n_states, stride). Counts are added to, as far as they do not depend on the chain: times `up`, ... they are
 * expected steps. `carry`: what came before the first row, or NULL. `after` (size + 4,): IN where the sequence goes on, and
 * OUT of the first row: densities of what comes from each cell, the row itself with it. */
SKVBEM_CLONES
static void skvbem_stays_backward(const skvbem_stays *chain, skvbem_stay_rows *rows, intptr_t from, intptr_t to,
                                  const double *carry, int ends, double weight, double *restrict after,
                                  double *restrict smoothed, double *restrict first_counts, double *restrict up_counts,
                                  double *restrict keep_counts, double *restrict leave_counts,
                                  double *restrict jump_counts) {
    const intptr_t n = chain->n_states, width = chain->width, size = n * width;
    double *restrict likelihood = rows->room, *restrict to_come = rows->room + n;
    for (intptr_t t = to - 1; t >= from; t--) {
        const double *restrict here = rows->forward + t * size;
        const int is_end = t == to - 1 && ends, at_border = t == to - 1 && !ends;
        if (is_end)
            for (intptr_t c = 0; c < size; c++) to_come[c] = 1.0;
        else
            skvbem_stays_back(chain, here, weight * rows->scale[t], after, to_come, up_counts, keep_counts, leave_counts,
                              jump_counts, !at_border);
        skvbem_stay_likelihoods(chain, rows, t, likelihood); /* smoothed may stand in the place of the logs */
        for (intptr_t k = 0; k < n; k++)
            smoothed[k * rows->stride + t] =
                weight * rows->scale[t] * skvbem_dot_by_four(width, here + k * width, to_come + k * width);
        for (intptr_t k = 0; k < n; k++) {
            const double factor = likelihood[k] * rows->scale[t];
            const double *restrict x = to_come + k * width;
            double *restrict out = after + k * width;
            for (intptr_t a = 0; a < width; a++) {
                const double y = x[a] * factor;
                out[a] = y < SKVBEM_HUGE ? y : SKVBEM_HUGE;
            }
        }
    }
    if (carry)
        skvbem_stays_back(chain, carry, weight, after, to_come, up_counts, keep_counts, leave_counts, jump_counts, 1);
    else
        for (intptr_t c = 0; c < size; c++) first_counts[c] += weight * after[c];
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

/* The cell that a uniform number draws by weights (n,); the last possible one, if rounding leaves the mark above all. */
SKVBEM_INLINE intptr_t skvbem_draw_cell(intptr_t n, const double *restrict weight, double uniform) {
    double total = 0.0, below = 0.0;
    for (intptr_t i = 0; i < n; i++) total += weight[i];
    const double mark = uniform * total;
    intptr_t cell = 0;
    for (intptr_t i = 0; i < n; i++) {
        if (weight[i] > 0.0) cell = i;
        below += weight[i];
        if (below > mark) break;
    }
    return cell;
}

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
