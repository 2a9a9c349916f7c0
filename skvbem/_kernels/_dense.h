/* Products and inverses of small dense matrices, rows one after the other. */
#ifndef SKVBEM_DENSE_H
#define SKVBEM_DENSE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "_lanes.h"

/* c += a b, for a (n, m), b (m, l) */
SKVBEM_INLINE void skvbem_add_product(intptr_t n, intptr_t m, intptr_t l, const double *restrict a, const double *restrict b,
                                      double *restrict c) {
    for (intptr_t i = 0; i < n; i++)
        for (intptr_t j = 0; j < m; j++) {
            const double factor = a[i * m + j];
            if (factor == 0.0) continue;
            for (intptr_t h = 0; h < l; h++) c[i * l + h] += factor * b[j * l + h];
        }
}

/* c += a' b, for a (n, m), b (n, l) */
SKVBEM_INLINE void skvbem_add_transposed(intptr_t n, intptr_t m, intptr_t l, const double *restrict a,
                                         const double *restrict b, double *restrict c) {
    for (intptr_t i = 0; i < n; i++)
        for (intptr_t j = 0; j < m; j++) {
            const double factor = a[i * m + j];
            for (intptr_t h = 0; h < l; h++) c[j * l + h] += factor * b[i * l + h];
        }
}

/* Packed m s m' for a map m (n, d) and a symmetric matrix s (d, d); `turned` and `moved` hold n d and n n numbers. */
SKVBEM_INLINE void skvbem_moved(intptr_t n, intptr_t d, const double *restrict m, const double *restrict s,
                                double *restrict turned, double *restrict packed) {
    memset(turned, 0, (size_t) (n * d) * sizeof(double));
    skvbem_add_product(n, d, d, m, s, turned);
    for (intptr_t i = 0; i < n; i++)
        for (intptr_t j = i; j < n; j++, packed++) {
            double sum = 0.0;
            for (intptr_t h = 0; h < d; h++) sum += turned[i * d + h] * m[j * d + h];
            *packed = sum;
        }
}

/* The inverse of a matrix (k, k), which is destroyed, by elimination with pivots, and ln|det|; the sign of the determinant
 * is returned, 0 of a singular matrix. */
SKVBEM_INLINE int skvbem_inverse(intptr_t k, double *restrict a, double *restrict inverse, double *restrict log_det) {
    int sign = 1;
    *log_det = 0.0;
    memset(inverse, 0, (size_t) (k * k) * sizeof(double));
    for (intptr_t i = 0; i < k; i++) inverse[i * k + i] = 1.0;
    for (intptr_t c = 0; c < k; c++) {
        intptr_t best = c;
        for (intptr_t i = c + 1; i < k; i++)
            if (fabs(a[i * k + c]) > fabs(a[best * k + c])) best = i;
        const double pivot = a[best * k + c];
        if (!(fabs(pivot) > 0.0)) return 0;
        if ((best != c) != (pivot < 0.0)) sign = -sign;
        *log_det += log(fabs(pivot));
        for (intptr_t j = 0; j < k; j++) {
            double held = a[best * k + j];
            a[best * k + j] = a[c * k + j];
            a[c * k + j] = held / pivot;
            held = inverse[best * k + j];
            inverse[best * k + j] = inverse[c * k + j];
            inverse[c * k + j] = held / pivot;
        }
        for (intptr_t i = 0; i < k; i++) {
            const double factor = a[i * k + c];
            if (i == c || factor == 0.0) continue;
            for (intptr_t j = 0; j < k; j++) {
                a[i * k + j] -= factor * a[c * k + j];
                inverse[i * k + j] -= factor * inverse[c * k + j];
            }
        }
    }
    return sign;
}

#endif
