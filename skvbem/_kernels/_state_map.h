/* Linear maps of the states of a linear dynamical system: sums of products after a map, and the slope of the bound by it.
 *
 * Matrices are dense, rows one after the other, but for those that are said to be packed: their upper triangle, row by row.
 */
#ifndef SKVBEM_STATE_MAP_H
#define SKVBEM_STATE_MAP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_dense.h"
#include "_factors.h"

/* Sums of products of k states x, r inputs v of the measurements and q inputs u of the states, d = k + r + q: of (x, v, u)
 * before a step (d, d); of (x, v) after it with these (k + r, d); of (x, v) after it (k + r, k + r); of (x, v, 1) of first
 * steps. Of the columns: products of (x, v), packed, for each precision matrix, and sums of products with (x, v). */
typedef struct {
    intptr_t k, r, q, n_columns, n_precisions;
    const double *before, *crossed, *after, *first;
    const double *of_precisions; /* (n_precisions, (k + r) (k + r + 1) / 2) */
    const double *of_columns;    /* (n_columns, k + r) */
    double n;                    /* number of states */
} skvbem_state_sums;

/* The map of (x, v) from the map (k, k + r) of states: v stay. */
SKVBEM_INLINE void skvbem_whole_map(const skvbem_state_sums *of, const double *restrict map, double *restrict whole) {
    const intptr_t d = of->k + of->r;
    memset(whole, 0, (size_t) (d * d) * sizeof(double));
    memcpy(whole, map, (size_t) (of->k * d) * sizeof(double));
    for (intptr_t i = of->k; i < d; i++) whole[i * d + i] = 1.0;
}

/* The map of (x, u) from that of (x, v, u), (k + q, k + r + q). */
SKVBEM_INLINE void skvbem_step_map(const skvbem_state_sums *of, const double *restrict map, double *restrict step) {
    const intptr_t k = of->k, d = of->k + of->r, dz = d + of->q;
    memset(step, 0, (size_t) ((k + of->q) * dz) * sizeof(double));
    for (intptr_t i = 0; i < k; i++) memcpy(step + i * dz, map + i * d, (size_t) d * sizeof(double));
    for (intptr_t i = 0; i < of->q; i++) step[(k + i) * dz + d + i] = 1.0;
}

/* Doubles of scratch of both functions below. */
SKVBEM_INLINE intptr_t skvbem_state_map_scratch(const skvbem_state_sums *of) {
    const intptr_t dz = of->k + of->r + of->q;
    return 6 * dz * dz;
}

/* Statistics of states after a map (k, k + r): packed products of (x, u) before a step, products of x after it with these,
 * for each precision matrix packed products of (x, v), and sums of products of columns with (x, v). */
SKVBEM_CLONES
static void skvbem_map_states(const skvbem_state_sums *of, const double *restrict map, double *restrict statistics,
                              double *restrict scratch) {
    const intptr_t k = of->k, d = k + of->r, dz = d + of->q, nz = k + of->q, width = d * (d + 1) / 2;
    double *restrict step = scratch, *restrict whole = step + dz * dz, *restrict turned = whole + dz * dz;
    double *restrict dense = turned + dz * dz, *restrict to = statistics;
    skvbem_step_map(of, map, step);
    skvbem_whole_map(of, map, whole);
    skvbem_moved(nz, dz, step, of->before, turned, to);
    to += nz * (nz + 1) / 2;
    memset(turned, 0, (size_t) (k * dz) * sizeof(double));
    skvbem_add_product(k, d, dz, map, of->crossed, turned);
    for (intptr_t i = 0; i < k; i++)
        for (intptr_t j = 0; j < nz; j++, to++) {
            double sum = 0.0;
            for (intptr_t h = 0; h < dz; h++) sum += turned[i * dz + h] * step[j * dz + h];
            *to = sum;
        }
    for (intptr_t g = 0; g < of->n_precisions; g++, to += width) {
        skvbem_unpacked(d, 1.0, of->of_precisions + g * width, dense);
        skvbem_moved(d, d, whole, dense, turned, to);
    }
    for (intptr_t s = 0; s < of->n_columns; s++)
        for (intptr_t i = 0; i < d; i++, to++) {
            double sum = 0.0;
            for (intptr_t h = 0; h < d; h++) sum += of->of_columns[s * d + h] * whole[i * d + h];
            *to = sum;
        }
}

/* n ln|det R| and minus half of the squares of states, nats, after a map [R M] (k, k + r), and the slope (k, k + r) of
 * the bound by it where coefficients follow. NaN where R is singular or reflects.
 *
 * Natural parameters are packed ones with halves added, as expected: `dynamics` (nz (nz + 1) / 2 + k nz) and `emission`
 * (n_precisions width + n_columns d). First states are asked for by `precision` (k, k) and `pulled`, it times their mean
 * (k,), and count where `counts_first`: else they have a normalizer of their own, which the value leaves out. */
SKVBEM_CLONES
static double skvbem_slope_of_map(const skvbem_state_sums *of, const double *restrict map, const double *restrict dynamics,
                                  const double *restrict emission, const double *restrict precision,
                                  const double *restrict pulled, int counts_first, double *restrict slope,
                                  double *restrict scratch) {
    const intptr_t k = of->k, d = k + of->r, dz = d + of->q, nz = k + of->q, width = d * (d + 1) / 2, size = dz * dz;
    double *restrict step = scratch, *restrict whole = step + size, *restrict turned = whole + size;
    double *restrict dense = turned + size, *restrict sum = dense + size, *restrict rest = sum + size;
    const double *restrict link = dynamics + nz * (nz + 1) / 2, *restrict of_sums = emission + of->n_precisions * width;
    for (intptr_t i = 0; i < k; i++) memcpy(turned + i * k, map + i * d, (size_t) k * sizeof(double));
    double log_det;
    if (skvbem_inverse(k, turned, dense, &log_det) <= 0) return NAN;
    double value = of->n * log_det;
    memset(slope, 0, (size_t) (k * d) * sizeof(double));

    /* squares of states after a step, and of first ones */
    memset(sum, 0, (size_t) (k * d) * sizeof(double));
    skvbem_add_product(k, d, d, map, of->after, sum);
    for (intptr_t i = 0; i < k * d; i++) {
        value -= 0.5 * sum[i] * map[i];
        slope[i] -= sum[i];
    }
    const double *restrict one = of->first + d * (d + 1);
    memset(sum, 0, (size_t) (k * d) * sizeof(double));
    memset(rest, 0, (size_t) (k * d) * sizeof(double));
    skvbem_add_product(k, k, d, precision, map, sum);
    for (intptr_t i = 0; i < k; i++)
        for (intptr_t j = 0; j < d; j++)
            for (intptr_t h = 0; h < d; h++) rest[i * d + h] += sum[i * d + j] * of->first[j * (d + 1) + h];
    for (intptr_t i = 0; i < k; i++)
        for (intptr_t j = 0; j < d; j++) {
            const double pull = pulled[i] * one[j];
            slope[i * d + j] += pull - rest[i * d + j];
            if (counts_first) value += (pull - 0.5 * rest[i * d + j]) * map[i * d + j];
        }
    for (intptr_t i = 0; i < k; i++)
        for (intptr_t j = 0; j < k; j++) slope[i * d + j] += of->n * dense[j * k + i];

    /* the dynamics: link of_z crossed' of states after a step; 2 squares of_z before, and link' map crossed, before it */
    skvbem_step_map(of, map, step);
    memset(turned, 0, (size_t) (k * dz) * sizeof(double));
    skvbem_add_product(k, nz, dz, link, step, turned);
    for (intptr_t i = 0; i < k; i++)
        for (intptr_t j = 0; j < d; j++)
            for (intptr_t h = 0; h < dz; h++) slope[i * d + j] += turned[i * dz + h] * of->crossed[j * dz + h];
    skvbem_unpacked(nz, 0.5, dynamics, dense);
    memset(turned, 0, (size_t) (nz * dz) * sizeof(double));
    skvbem_add_product(nz, nz, dz, dense, step, turned);
    memset(sum, 0, (size_t) (nz * dz) * sizeof(double));
    skvbem_add_product(k, dz, dz, turned, of->before, sum);
    for (intptr_t i = 0; i < k; i++)
        for (intptr_t j = 0; j < d; j++) slope[i * d + j] += 2.0 * sum[i * dz + j];
    memset(turned, 0, (size_t) (k * dz) * sizeof(double));
    skvbem_add_product(k, d, dz, map, of->crossed, turned);
    memset(sum, 0, (size_t) (nz * dz) * sizeof(double));
    skvbem_add_transposed(k, nz, dz, link, turned, sum);
    for (intptr_t i = 0; i < k; i++)
        for (intptr_t j = 0; j < d; j++) slope[i * d + j] += sum[i * dz + j];

    /* the columns */
    skvbem_whole_map(of, map, whole);
    for (intptr_t g = 0; g < of->n_precisions; g++) {
        skvbem_unpacked(d, 0.5, emission + g * width, dense);
        memset(turned, 0, (size_t) (k * d) * sizeof(double));
        skvbem_add_product(k, d, d, dense, whole, turned);
        skvbem_unpacked(d, 1.0, of->of_precisions + g * width, dense);
        for (intptr_t i = 0; i < k * d; i++) turned[i] *= 2.0;
        skvbem_add_product(k, d, d, turned, dense, slope);
    }
    memset(sum, 0, (size_t) (d * d) * sizeof(double));
    skvbem_add_transposed(of->n_columns, d, d, of_sums, of->of_columns, sum);
    for (intptr_t i = 0; i < k * d; i++) slope[i] += sum[i];
    return value;
}

#endif
