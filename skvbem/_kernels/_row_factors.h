/* Contexts with factors of their own: one by one, and the rows of a plan that is one clique all at once.
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

/* Contexts of one clique that have factors of their own, rows innermost, so that loops over rows are of vectors. */
#define SKVBEM_FACTOR_ROWS 128
typedef struct {
    intptr_t n_slots, n_cells, n_lanes, n_factors, n_rows;
    const unsigned short *narrow;    /* (n_rows, n_slots) codes, or NULL */
    const int *wide;                 /* the same */
    const double **tables;           /* per slot: (n_codes, n_cells, n_lanes) */
    double **expected;               /* per slot, the same shape */
    const long long *n_codes;        /* per slot */
    double **factors;                /* per factor: logarithms (n_lanes, cells of the factor, n_rows), then counts */
    const int **maps;                /* per factor: the cell of the factor that each cell of the clique is in */
    const long long *factor_cells;   /* per factor */
    const double *weight;            /* (n_rows,) */
    double *joint;                   /* (n_cells, SKVBEM_FACTOR_ROWS) */
    double top[SKVBEM_FACTOR_ROWS], sum[SKVBEM_FACTOR_ROWS];
} skvbem_factor_rows;

SKVBEM_INLINE void skvbem_row_codes(const skvbem_factor_rows *run, intptr_t slot, intptr_t first, intptr_t n, intptr_t *code) {
    const intptr_t m = run->n_cells * run->n_lanes;
    for (intptr_t i = 0; i < n; i++) {
        const intptr_t at = (first + i) * run->n_slots + slot;
        code[i] = m * (run->narrow ? run->narrow[at] : run->wide[at]);
    }
}

/* Potentials of rows `first` to `first + n` of one lane over the largest product of their own factors, whose logarithm
 * is `top`; `sum` is over cells. */
SKVBEM_CLONES
static void skvbem_row_potentials(skvbem_factor_rows *run, intptr_t lane, intptr_t first, intptr_t n) {
    double *restrict top = run->top, *restrict sum = run->sum;
    intptr_t code[SKVBEM_FACTOR_ROWS];
    for (intptr_t i = 0; i < n; i++) top[i] = -INFINITY, sum[i] = 0.0;
    for (intptr_t cell = 0; cell < run->n_cells; cell++) {
        double *restrict row = run->joint + cell * SKVBEM_FACTOR_ROWS;
        for (intptr_t f = 0; f < run->n_factors; f++) {
            const intptr_t at = lane * (intptr_t) run->factor_cells[f] + run->maps[f][cell];
            const double *restrict logs = run->factors[f] + at * run->n_rows + first;
            if (f == 0)
                for (intptr_t i = 0; i < n; i++) row[i] = logs[i];
            else
                for (intptr_t i = 0; i < n; i++) row[i] += logs[i];
        }
        for (intptr_t i = 0; i < n; i++) top[i] = row[i] > top[i] ? row[i] : top[i];
    }
    for (intptr_t i = 0; i < n; i++) top[i] = top[i] == -INFINITY ? 0.0 : top[i];
    for (intptr_t cell = 0; cell < run->n_cells; cell++) {
        double *restrict row = run->joint + cell * SKVBEM_FACTOR_ROWS;
        for (intptr_t i = 0; i < n; i++) row[i] = skvbem_exp(row[i] - top[i]);
    }
    for (intptr_t slot = 0; slot < run->n_slots; slot++) {
        const double *restrict table = run->tables[slot] + lane;
        if (run->n_codes[slot] > 1) skvbem_row_codes(run, slot, first, n, code);
        for (intptr_t cell = 0; cell < run->n_cells; cell++, table += run->n_lanes) {
            double *restrict row = run->joint + cell * SKVBEM_FACTOR_ROWS;
            if (run->n_codes[slot] == 1) {
                const double only = *table;
                for (intptr_t i = 0; i < n; i++) row[i] *= only;
            } else {
                for (intptr_t i = 0; i < n; i++) row[i] *= table[code[i]];
            }
        }
    }
    for (intptr_t cell = 0; cell < run->n_cells; cell++) {
        const double *restrict row = run->joint + cell * SKVBEM_FACTOR_ROWS;
        for (intptr_t i = 0; i < n; i++) sum[i] += row[i];
    }
}

/* Expected counts of these rows in tables and factors, from potentials and their sums; returns ln Z, times weights. */
SKVBEM_CLONES
static double skvbem_row_counts(skvbem_factor_rows *run, intptr_t lane, intptr_t first, intptr_t n) {
    double *restrict top = run->top, *restrict sum = run->sum;
    const double *restrict weight = run->weight + first;
    double total = 0.0;
    intptr_t code[SKVBEM_FACTOR_ROWS];
    for (intptr_t i = 0; i < n; i++) {
        top[i] = weight[i] * (top[i] + skvbem_log(sum[i]));
        sum[i] = weight[i] / sum[i];
    }
    for (intptr_t i = 0; i < n; i++) total += top[i];
    for (intptr_t cell = 0; cell < run->n_cells; cell++) {
        double *restrict row = run->joint + cell * SKVBEM_FACTOR_ROWS;
        for (intptr_t i = 0; i < n; i++) row[i] *= sum[i];
    }
    for (intptr_t slot = 0; slot < run->n_slots; slot++) {
        double *target = run->expected[slot] + lane;
        if (run->n_codes[slot] > 1) skvbem_row_codes(run, slot, first, n, code);
        for (intptr_t cell = 0; cell < run->n_cells; cell++, target += run->n_lanes) {
            const double *row = run->joint + cell * SKVBEM_FACTOR_ROWS;
            if (run->n_codes[slot] == 1) {
                double count = 0.0;
                for (intptr_t i = 0; i < n; i++) count += row[i];
                *target += count;
            } else {
                for (intptr_t i = 0; i < n; i++) target[code[i]] += row[i];
            }
        }
    }
    for (intptr_t f = 0; f < run->n_factors; f++) {
        const intptr_t n_factor_cells = (intptr_t) run->factor_cells[f];
        double *counts = run->factors[f] + lane * n_factor_cells * run->n_rows + first;
        for (intptr_t cell = 0; cell < n_factor_cells; cell++)
            memset(counts + cell * run->n_rows, 0, n * sizeof(double));
        for (intptr_t cell = 0; cell < run->n_cells; cell++) {
            const double *restrict row = run->joint + cell * SKVBEM_FACTOR_ROWS;
            double *restrict of_cell = counts + run->maps[f][cell] * run->n_rows;
            for (intptr_t i = 0; i < n; i++) of_cell[i] += row[i];
        }
    }
    return total;
}

#endif
