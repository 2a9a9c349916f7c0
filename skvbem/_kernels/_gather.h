/* Rows of tables added up by codes, and spread back: the two loops of categorical emissions.
 *
 * A joint table has one row of `width` doubles (a multiple of 4, one for each component of each restart) for every code.
 * Four of them at a time are summed in registers over all codes of a row; 8 rows are turned together, so that arrays with
 * the rows innermost are read and written along whole cache lines.
 */
#ifndef SKVBEM_GATHER_H
#define SKVBEM_GATHER_H

#include <stdint.h>

#include "_lanes.h"

#define SKVBEM_TILE 8
#define SKVBEM_STRIP 64

SKVBEM_INLINE intptr_t skvbem_least(intptr_t a, intptr_t b) { return a < b ? a : b; }

/* out[w * stride + row] = sum over groups of joint[codes[row, group], w] */
SKVBEM_CLONES
static void skvbem_gather_rows(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_out,
                               const int32_t *restrict codes, const double *restrict joint, double *restrict out,
                               intptr_t stride) {
    double sums[SKVBEM_TILE * SKVBEM_STRIP];
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_TILE)
        for (intptr_t from = 0; from < width; from += SKVBEM_STRIP) {
            intptr_t rows = skvbem_least(SKVBEM_TILE, n_rows - first), strip = skvbem_least(SKVBEM_STRIP, width - from);
            for (intptr_t row = 0; row < rows; row++) {
                const int32_t *restrict of_row = codes + (first + row) * n_groups;
                double *restrict sum = sums + row * SKVBEM_STRIP;
                for (intptr_t w = 0; w < strip; w += 4) {
                    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
                    for (intptr_t group = 0; group < n_groups; group++) {
                        const double *restrict cell = joint + of_row[group] * width + from + w;
                        a += cell[0];
                        b += cell[1];
                        c += cell[2];
                        d += cell[3];
                    }
                    sum[w] = a;
                    sum[w + 1] = b;
                    sum[w + 2] = c;
                    sum[w + 3] = d;
                }
            }
            for (intptr_t w = 0; w < skvbem_least(strip, n_out - from); w++)
                for (intptr_t row = 0; row < rows; row++)
                    out[(from + w) * stride + first + row] = sums[row * SKVBEM_STRIP + w];
        }
}

/* joint[codes[row, group], w] += in[w * stride + row * row_stride] */
SKVBEM_CLONES
static void skvbem_spread_rows(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_in,
                               const int32_t *restrict codes, const double *restrict in, intptr_t stride,
                               intptr_t row_stride, double *restrict joint) {
    double shares[SKVBEM_TILE * SKVBEM_STRIP] = {0.0};
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_TILE)
        for (intptr_t from = 0; from < n_in; from += SKVBEM_STRIP) {
            intptr_t rows = skvbem_least(SKVBEM_TILE, n_rows - first), strip = skvbem_least(SKVBEM_STRIP, width - from);
            for (intptr_t w = 0; w < strip; w++)
                for (intptr_t row = 0; row < rows; row++)
                    shares[row * SKVBEM_STRIP + w] =
                        from + w < n_in ? in[(from + w) * stride + (first + row) * row_stride] : 0.0;
            for (intptr_t row = 0; row < rows; row++) {
                const int32_t *restrict of_row = codes + (first + row) * n_groups;
                for (intptr_t w = 0; w < strip; w += 4) {
                    const double *restrict share = shares + row * SKVBEM_STRIP + w;
                    double a = share[0], b = share[1], c = share[2], d = share[3];
                    for (intptr_t group = 0; group < n_groups; group++) {
                        double *restrict cell = joint + of_row[group] * width + from + w;
                        cell[0] += a;
                        cell[1] += b;
                        cell[2] += c;
                        cell[3] += d;
                    }
                }
            }
        }
}

/* Coefficients of a polynomial. */
#define SKVBEM_POWERS 6

/* out[w * stride + row] = sum over groups of the polynomial of joint[codes[row, group], :, w] at place[row, group] */
SKVBEM_CLONES
static void skvbem_gather_polynomials(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_out,
                                      const int32_t *restrict codes, const double *restrict place,
                                      const double *restrict joint, double *restrict out, intptr_t stride) {
    double sums[SKVBEM_TILE * SKVBEM_STRIP];
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_TILE)
        for (intptr_t from = 0; from < width; from += SKVBEM_STRIP) {
            intptr_t rows = skvbem_least(SKVBEM_TILE, n_rows - first), strip = skvbem_least(SKVBEM_STRIP, width - from);
            for (intptr_t row = 0; row < rows; row++) {
                const int32_t *restrict of_row = codes + (first + row) * n_groups;
                const double *restrict at = place + (first + row) * n_groups;
                double *restrict sum = sums + row * SKVBEM_STRIP;
                for (intptr_t w = 0; w < strip; w += 4) {
                    double total[4] = {0.0, 0.0, 0.0, 0.0};
                    for (intptr_t group = 0; group < n_groups; group++) {
                        const double x = at[group];
                        const double *restrict cell = joint + of_row[group] * SKVBEM_POWERS * width + from + w;
                        double value[4];
                        for (int i = 0; i < 4; i++) value[i] = cell[(SKVBEM_POWERS - 1) * width + i];
                        for (int k = SKVBEM_POWERS - 2; k >= 0; k--)
                            for (int i = 0; i < 4; i++) value[i] = value[i] * x + cell[k * width + i];
                        for (int i = 0; i < 4; i++) total[i] += value[i];
                    }
                    for (int i = 0; i < 4; i++) sum[w + i] = total[i];
                }
            }
            for (intptr_t w = 0; w < skvbem_least(strip, n_out - from); w++)
                for (intptr_t row = 0; row < rows; row++)
                    out[(from + w) * stride + first + row] = sums[row * SKVBEM_STRIP + w];
        }
}

/* joint[codes[row, group], k, w] += in[w * stride + row * row_stride] * place[row, group]^k */
SKVBEM_CLONES
static void skvbem_spread_powers(intptr_t n_rows, intptr_t n_groups, intptr_t width, intptr_t n_in,
                                 const int32_t *restrict codes, const double *restrict place,
                                 const double *restrict in, intptr_t stride, intptr_t row_stride,
                                 double *restrict joint) {
    double shares[SKVBEM_TILE * SKVBEM_STRIP] = {0.0};
    for (intptr_t first = 0; first < n_rows; first += SKVBEM_TILE)
        for (intptr_t from = 0; from < n_in; from += SKVBEM_STRIP) {
            intptr_t rows = skvbem_least(SKVBEM_TILE, n_rows - first), strip = skvbem_least(SKVBEM_STRIP, width - from);
            for (intptr_t w = 0; w < strip; w++)
                for (intptr_t row = 0; row < rows; row++)
                    shares[row * SKVBEM_STRIP + w] =
                        from + w < n_in ? in[(from + w) * stride + (first + row) * row_stride] : 0.0;
            for (intptr_t row = 0; row < rows; row++) {
                const int32_t *restrict of_row = codes + (first + row) * n_groups;
                const double *restrict at = place + (first + row) * n_groups;
                for (intptr_t group = 0; group < n_groups; group++) {
                    const double x = at[group];
                    double *restrict cells = joint + of_row[group] * SKVBEM_POWERS * width + from;
                    for (intptr_t w = 0; w < strip; w += 4) {
                        double share[4];
                        for (int i = 0; i < 4; i++) share[i] = shares[row * SKVBEM_STRIP + w + i];
                        for (int k = 0; k < SKVBEM_POWERS; k++)
                            for (int i = 0; i < 4; i++) {
                                cells[k * width + w + i] += share[i];
                                share[i] *= x;
                            }
                    }
                }
            }
        }
}

#endif
