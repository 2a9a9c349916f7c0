/* Contexts with factors of their own: one by one, and the rows of a plan many at once.
 */
#ifndef SKVBEM_ROW_FACTORS_H
#define SKVBEM_ROW_FACTORS_H

#include <stdint.h>

#include "_lanes.h"

/* One row of logarithms (n_lanes, n_cells, n_rows) as `log_factor` and, over its largest entry, as `factor`, (n_cells,
 * n_lanes); the logarithm of the largest is added to `largest` (n_lanes,). An impossible row is 0 over 1. */
SKVBEM_CLONES
static void skvbem_row_factor(intptr_t n_cells, intptr_t n_lanes, intptr_t n_rows, const double *restrict logs,
                              double *restrict log_factor, double *restrict factor, double *restrict largest) {
    for (intptr_t lane = 0; lane < n_lanes; lane++) {
        double top = -INFINITY;
        for (intptr_t cell = 0; cell < n_cells; cell++) {
            const double x = logs[(lane * n_cells + cell) * n_rows];
            log_factor[cell * n_lanes + lane] = x;
            top = x > top ? x : top;
        }
        top = top == -INFINITY ? 0.0 : top;
        for (intptr_t cell = 0; cell < n_cells; cell++)
            factor[cell * n_lanes + lane] = skvbem_exp(log_factor[cell * n_lanes + lane] - top);
        largest[lane] += top;
    }
}

/* Contexts of one plan that have factors of their own, rows innermost, so that loops over rows are of vectors. */
#define SKVBEM_FACTOR_ROWS 128
/* Cells of a plan times rows at once, so that they stay in cache; and the fewest rows at once. */
#define SKVBEM_ROW_CELLS 16384
#define SKVBEM_FEWEST_ROWS 16
typedef struct {
    intptr_t first_clique, last_clique, first_slot, n_slots, first_factor, last_factor;
    intptr_t n_lanes, n_rows;
    intptr_t stride;                 /* rows at once */
    /* of the whole program, by clique, slot and factor: see Contraction */
    const long long *clique_cells, *clique_at, *clique_slot, *separator_cells, *separator_at, *out_map, *in_map, *parent;
    const long long *slot_table, *slot_codes, *factor_clique, *factor_cells, *factor_map;
    const int *maps;
    const unsigned short *narrow;    /* (n_rows, n_slots) codes, or NULL */
    const int *wide;                 /* the same */
    const double *tables;            /* per slot: (n_codes, n_cells, n_lanes) */
    double *expected;                /* the same shapes */
    double **factors;                /* per factor: logarithms (n_lanes, cells of the factor, n_rows), then counts */
    const double *weight;            /* (n_rows,) */
    double *joint;                   /* (cells of all cliques, stride) */
    double *message;                 /* (cells of all separators, stride) */
    double *scratch;                 /* (cells of the largest factor or of all separators, stride) */
    double top[SKVBEM_FACTOR_ROWS], sum[SKVBEM_FACTOR_ROWS];
} skvbem_factor_rows;

SKVBEM_INLINE void skvbem_row_codes(const skvbem_factor_rows *run, intptr_t slot, intptr_t m, intptr_t first, intptr_t n,
                                    int *code) {
    for (intptr_t i = 0; i < n; i++) {
        const intptr_t at = (first + i) * run->n_slots + slot - run->first_slot;
        code[i] = (int) (m * (run->narrow ? run->narrow[at] : run->wide[at]));
    }
}

SKVBEM_INLINE const double *skvbem_row_logs(const skvbem_factor_rows *run, intptr_t f, intptr_t cell, intptr_t lane,
                                            intptr_t first) {
    return run->factors[f - run->first_factor] + (lane * run->factor_cells[f] + cell) * run->n_rows + first;
}

/* Potentials of a clique from sums of the logarithms of its factors, over the largest. */
SKVBEM_INLINE void skvbem_factors_by_cell(skvbem_factor_rows *run, intptr_t q, intptr_t lane, intptr_t first, intptr_t n,
                                          double *restrict joint) {
    double top[SKVBEM_FACTOR_ROWS];
    for (intptr_t i = 0; i < n; i++) top[i] = -INFINITY;
    int begun = 0;
    for (intptr_t f = run->first_factor; f < run->last_factor; f++) {
        if (run->factor_clique[f] != q) continue;
        for (intptr_t cell = 0; cell < run->clique_cells[q]; cell++) {
            double *restrict row = joint + cell * run->stride;
            const double *restrict logs = skvbem_row_logs(run, f, run->maps[run->factor_map[f] + cell], lane, first);
            if (begun)
                for (intptr_t i = 0; i < n; i++) row[i] += logs[i];
            else
                for (intptr_t i = 0; i < n; i++) row[i] = logs[i];
        }
        begun = 1;
    }
    for (intptr_t cell = 0; cell < run->clique_cells[q]; cell++) {
        const double *restrict row = joint + cell * run->stride;
        for (intptr_t i = 0; i < n; i++) top[i] = row[i] > top[i] ? row[i] : top[i];
    }
    for (intptr_t i = 0; i < n; i++) top[i] = top[i] == -INFINITY ? 0.0 : top[i];
    for (intptr_t cell = 0; cell < run->clique_cells[q]; cell++) {
        double *restrict row = joint + cell * run->stride;
        for (intptr_t i = 0; i < n; i++) row[i] = skvbem_exp(row[i] - top[i]);
    }
    for (intptr_t i = 0; i < n; i++) run->top[i] += top[i];
}

/* Multiply potentials of a clique by one of its factors, over the largest; or begin with it. */
SKVBEM_INLINE void skvbem_factor_on_clique(skvbem_factor_rows *run, intptr_t f, int begun, intptr_t lane, intptr_t first,
                                           intptr_t n, double *restrict joint) {
    double top[SKVBEM_FACTOR_ROWS];
    const int *map = run->maps + run->factor_map[f];
    for (intptr_t i = 0; i < n; i++) top[i] = -INFINITY;
    for (intptr_t cell = 0; cell < run->factor_cells[f]; cell++) {
        const double *restrict logs = skvbem_row_logs(run, f, cell, lane, first);
        for (intptr_t i = 0; i < n; i++) top[i] = logs[i] > top[i] ? logs[i] : top[i];
    }
    for (intptr_t i = 0; i < n; i++) top[i] = top[i] == -INFINITY ? 0.0 : top[i];
    for (intptr_t cell = 0; cell < run->factor_cells[f]; cell++) {
        const double *restrict logs = skvbem_row_logs(run, f, cell, lane, first);
        double *restrict share = run->scratch + cell * run->stride;
        for (intptr_t i = 0; i < n; i++) share[i] = skvbem_exp(logs[i] - top[i]);
    }
    for (intptr_t cell = 0; cell < run->clique_cells[run->factor_clique[f]]; cell++) {
        double *restrict row = joint + cell * run->stride;
        const double *restrict share = run->scratch + map[cell] * run->stride;
        if (begun)
            for (intptr_t i = 0; i < n; i++) row[i] *= share[i];
        else
            for (intptr_t i = 0; i < n; i++) row[i] = share[i];
    }
    for (intptr_t i = 0; i < n; i++) run->top[i] += top[i];
}

/* Potentials of a clique: factors, then slots. */
SKVBEM_INLINE void skvbem_clique_potentials(skvbem_factor_rows *run, intptr_t q, intptr_t lane, intptr_t first, intptr_t n,
                                            double *restrict joint) {
    const intptr_t n_cells = run->clique_cells[q], m = n_cells * run->n_lanes;
    int code[SKVBEM_FACTOR_ROWS], begun = 0;
    intptr_t of_factors = 0;
    for (intptr_t f = run->first_factor; f < run->last_factor; f++)
        if (run->factor_clique[f] == q) of_factors += run->factor_cells[f];
    if (of_factors >= n_cells)
        skvbem_factors_by_cell(run, q, lane, first, n, joint);
    else
        for (intptr_t f = run->first_factor; f < run->last_factor; f++)
            if (run->factor_clique[f] == q) skvbem_factor_on_clique(run, f, begun++, lane, first, n, joint);
    if (of_factors == 0)
        for (intptr_t i = 0; i < n_cells * run->stride; i++) joint[i] = 1.0;
    for (intptr_t slot = run->clique_slot[q]; slot < run->clique_slot[q + 1]; slot++) {
        const double *restrict table = run->tables + run->slot_table[slot] * run->n_lanes + lane;
        if (run->slot_codes[slot] > 1) skvbem_row_codes(run, slot, m, first, n, code);
        for (intptr_t cell = 0; cell < n_cells; cell++, table += run->n_lanes) {
            double *restrict row = joint + cell * run->stride;
            if (run->slot_codes[slot] == 1) {
                const double only = *table;
                for (intptr_t i = 0; i < n; i++) row[i] *= only;
            } else {
                for (intptr_t i = 0; i < n; i++) row[i] *= table[code[i]];
            }
        }
    }
}

/* Sums over the cells of a clique that agree on its separator. */
SKVBEM_INLINE void skvbem_row_margins(const skvbem_factor_rows *run, intptr_t n_cells, const int *map, intptr_t n_separators,
                                      const double *restrict joint, intptr_t n, double *restrict margins) {
    for (intptr_t s = 0; s < n_separators; s++)
        for (intptr_t i = 0; i < n; i++) margins[s * run->stride + i] = 0.0;
    for (intptr_t cell = 0; cell < n_cells; cell++) {
        const double *restrict row = joint + cell * run->stride;
        double *restrict margin = margins + map[cell] * run->stride;
        for (intptr_t i = 0; i < n; i++) margin[i] += row[i];
    }
}

/* Multiply each cell of a clique by that of its separator. */
SKVBEM_INLINE void skvbem_row_times(const skvbem_factor_rows *run, intptr_t n_cells, const int *map,
                                    const double *restrict of_separators, intptr_t n, double *restrict joint) {
    for (intptr_t cell = 0; cell < n_cells; cell++) {
        double *restrict row = joint + cell * run->stride;
        const double *restrict of_separator = of_separators + map[cell] * run->stride;
        for (intptr_t i = 0; i < n; i++) row[i] *= of_separator[i];
    }
}

/* Scale a message and the clique that it comes from by powers of two, so that its largest entry is near 1; 0 where that is
 * below `lost`. The logarithms go to `top`. */
SKVBEM_INLINE void skvbem_row_scale(skvbem_factor_rows *run, intptr_t n_cells, intptr_t n_separators, double lost, intptr_t n,
                                    double *restrict joint, double *restrict message) {
    double largest[SKVBEM_FACTOR_ROWS], scale[SKVBEM_FACTOR_ROWS];
    double least = 1.0, most = 1.0;
    for (intptr_t i = 0; i < n; i++) largest[i] = 0.0;
    for (intptr_t s = 0; s < n_separators; s++)
        for (intptr_t i = 0; i < n; i++) {
            const double x = message[s * run->stride + i];
            largest[i] = x > largest[i] ? x : largest[i];
        }
    for (intptr_t i = 0; i < n; i++) {
        least = largest[i] < least ? largest[i] : least;
        most = largest[i] > most ? largest[i] : most;
    }
    if (least > 0x1p-16 && most < 0x1p16) return;
    for (intptr_t i = 0; i < n; i++) {
        const uint64_t power = skvbem_to_bits(largest[i]) >> 52;
        scale[i] = largest[i] < lost ? 0.0 : skvbem_from_bits((2046 - power) << 52);
        run->top[i] += largest[i] < lost ? 0.0 : ((double) (int64_t) power - 1023.0) * 0.69314718055994530942;
    }
    for (intptr_t s = 0; s < n_separators; s++)
        for (intptr_t i = 0; i < n; i++) message[s * run->stride + i] *= scale[i];
    for (intptr_t cell = 0; cell < n_cells; cell++)
        for (intptr_t i = 0; i < n; i++) joint[cell * run->stride + i] *= scale[i];
}

/* Potentials of rows `first` to `first + n` of one lane, collected at the root; `sum` is over its cells, `top` the
 * logarithm of what they were divided by. A message below `lost` is 0. */
SKVBEM_CLONES
static void skvbem_row_potentials(skvbem_factor_rows *run, intptr_t lane, intptr_t first, intptr_t n, double lost) {
    const intptr_t root = run->last_clique - 1;
    for (intptr_t i = 0; i < n; i++) run->top[i] = 0.0, run->sum[i] = 0.0;
    for (intptr_t q = run->first_clique; q < run->last_clique; q++)
        skvbem_clique_potentials(run, q, lane, first, n, run->joint + run->clique_at[q] * run->stride);
    for (intptr_t q = run->first_clique; q < root; q++) {
        double *joint = run->joint + run->clique_at[q] * run->stride;
        double *message = run->message + run->separator_at[q] * run->stride;
        skvbem_row_margins(run, run->clique_cells[q], run->maps + run->out_map[q], run->separator_cells[q], joint, n, message);
        skvbem_row_scale(run, run->clique_cells[q], run->separator_cells[q], lost, n, joint, message);
        skvbem_row_times(run, run->clique_cells[run->parent[q]], run->maps + run->in_map[q], message, n,
                         run->joint + run->clique_at[run->parent[q]] * run->stride);
    }
    for (intptr_t cell = 0; cell < run->clique_cells[root]; cell++) {
        const double *restrict row = run->joint + (run->clique_at[root] + cell) * run->stride;
        for (intptr_t i = 0; i < n; i++) run->sum[i] += row[i];
    }
}

/* Expected counts of the cells of cliques in place of collected potentials; returns ln Z, times weights. Rows with a sum
 * of 0 are left out. */
SKVBEM_CLONES
static double skvbem_row_posteriors(skvbem_factor_rows *run, intptr_t first, intptr_t n) {
    double *restrict top = run->top, *restrict sum = run->sum;
    const double *restrict weight = run->weight + first;
    double total = 0.0;
    for (intptr_t i = 0; i < n; i++) {
        top[i] = sum[i] > 0.0 ? weight[i] * (top[i] + skvbem_log(sum[i])) : 0.0;
        sum[i] = sum[i] > 0.0 ? weight[i] / sum[i] : 0.0;
    }
    for (intptr_t i = 0; i < n; i++) total += top[i];
    for (intptr_t q = run->last_clique - 1; q >= run->first_clique; q--) {
        double *restrict joint = run->joint + run->clique_at[q] * run->stride;
        if (q == run->last_clique - 1) {
            for (intptr_t cell = 0; cell < run->clique_cells[q]; cell++)
                for (intptr_t i = 0; i < n; i++) joint[cell * run->stride + i] *= sum[i];
            continue;
        }
        const double *restrict message = run->message + run->separator_at[q] * run->stride;
        double *restrict ratio = run->scratch;
        skvbem_row_margins(run, run->clique_cells[run->parent[q]], run->maps + run->in_map[q], run->separator_cells[q],
                           run->joint + run->clique_at[run->parent[q]] * run->stride, n, ratio);
        for (intptr_t s = 0; s < run->separator_cells[q]; s++)
            for (intptr_t i = 0; i < n; i++) {
                const double x = message[s * run->stride + i];
                ratio[s * run->stride + i] /= x > 0.0 ? x : 1.0;
            }
        skvbem_row_times(run, run->clique_cells[q], run->maps + run->out_map[q], ratio, n, joint);
    }
    return total;
}

/* The sum of n numbers, in eight parts. */
SKVBEM_INLINE double skvbem_row_sum(const double *row, intptr_t n) {
    double parts[8] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, rest = 0.0;
    intptr_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) parts[k] += row[i + k];
    for (; i < n; i++) rest += row[i];
    return ((parts[0] + parts[4]) + (parts[2] + parts[6])) + ((parts[1] + parts[5]) + (parts[3] + parts[7])) + rest;
}

/* Counts of the cells of cliques go to tables and, in place of their logarithms, to factors. */
SKVBEM_CLONES
static void skvbem_row_counts(skvbem_factor_rows *run, intptr_t lane, intptr_t first, intptr_t n) {
    int code[SKVBEM_FACTOR_ROWS];
    for (intptr_t q = run->first_clique; q < run->last_clique; q++) {
        const double *joint = run->joint + run->clique_at[q] * run->stride;
        const intptr_t m = run->clique_cells[q] * run->n_lanes;
        for (intptr_t slot = run->clique_slot[q]; slot < run->clique_slot[q + 1]; slot++) {
            double *target = run->expected + run->slot_table[slot] * run->n_lanes + lane;
            if (run->slot_codes[slot] > 1) skvbem_row_codes(run, slot, m, first, n, code);
            for (intptr_t cell = 0; cell < run->clique_cells[q]; cell++, target += run->n_lanes) {
                const double *row = joint + cell * run->stride;
                if (run->slot_codes[slot] == 1) {
                    *target += skvbem_row_sum(row, n);
                } else {
                    for (intptr_t i = 0; i < n; i++) target[code[i]] += row[i];
                }
            }
        }
    }
    for (intptr_t f = run->first_factor; f < run->last_factor; f++) {
        const intptr_t q = run->factor_clique[f];
        const double *joint = run->joint + run->clique_at[q] * run->stride;
        double *counts = run->factors[f - run->first_factor] + lane * run->factor_cells[f] * run->n_rows + first;
        for (intptr_t cell = 0; cell < run->factor_cells[f]; cell++)
            memset(counts + cell * run->n_rows, 0, n * sizeof(double));
        for (intptr_t cell = 0; cell < run->clique_cells[q]; cell++) {
            const double *restrict row = joint + cell * run->stride;
            double *restrict of_cell = counts + run->maps[run->factor_map[f] + cell] * run->n_rows;
            for (intptr_t i = 0; i < n; i++) of_cell[i] += row[i];
        }
    }
}

#endif
