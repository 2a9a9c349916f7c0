/* The E step of a linear dynamical system on one sequence: smoother in information form, sums, and residuals. The plain
 * loop one would write for this and nothing else: an opponent to time against, not a part of the library. It knows no
 * inputs but an offset, no weights, no short cuts for matrices that are not definite, and as many patterns as steps.
 *
 * blocks is (k, k) where cells are complete: the recursion stops where it repeats itself. With cells missing it is
 * (T, k, k), mask is (T, p), and every step is gone through. scratch holds 2 T k^2 + T k + 8 k^2 numbers. Sums are added
 * to: w, s, x2, c, squares (p) of residuals, ln det, and (p, d, d) in g with d = k + 1, of which the first where cells
 * are complete. Returns the number of steps with matrices of their own. */

#include <math.h>
#include <stdint.h>
#include <string.h>

static int inverse_of(int64_t k, const double *a, double *root, double *inverse, double *log_det)
{
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double total = a[i * k + j];
            for (int64_t m = 0; m < j; m++) total -= root[i * k + m] * root[j * k + m];
            if (i == j) {
                *log_det += log(total);
                root[i * k + i] = 1.0 / sqrt(total);
            } else root[i * k + j] = total * root[j * k + j];
        }
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < i; j++) {
            double total = 0.0;
            for (int64_t m = j; m < i; m++) total -= root[i * k + m] * root[m * k + j];
            root[i * k + j] = total * root[i * k + i];
        }
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j <= i; j++) {
            double total = 0.0;
            for (int64_t m = i; m < k; m++) total += root[m * k + i] * root[m * k + j];
            inverse[i * k + j] = inverse[j * k + i] = total;
        }
    return 0;
}

int64_t bare_lds(int64_t T, int64_t p, int64_t k, const double *y, const double *mask, const double *blocks,
                 const double *link, const double *squares, const double *output, const double *offset,
                 const double *crossed, const double *rho, double *x, double *w, double *s, double *x2, double *g,
                 double *c, double *left, double *log_det, double *scratch)
{
    const int64_t kk = k * k, d = k + 1;
    double *inverses = scratch, *gains = scratch + T * kk, *D = scratch + 2 * T * kk, *before = D + kk;
    double *root = D + 2 * kk, *v = D + 3 * kk, *newer = D + 4 * kk, *cross = D + 5 * kk, *r = D + 6 * kk;
    int64_t n = 0, frozen = 0;
    double of_step = 0.0;
    for (int64_t t = 0; t < T; t++) {
        double *h = x + t * k;
        const double *of_offset = mask ? crossed + t * k : crossed;
        for (int64_t i = 0; i < k; i++) h[i] = -of_offset[i];
        for (int64_t q = 0; q < p; q++) {
            const double by = rho[q] * y[t * p + q];
            for (int64_t i = 0; i < k; i++) h[i] += by * output[q * k + i];
        }
        if (t > 0) {
            const double *by = gains + (n - 1) * kk;
            for (int64_t j = 0; j < k; j++)
                for (int64_t i = 0; i < k; i++) h[i] += by[j * k + i] * h[j - k];
        }
        if (!(frozen && t < T - 1)) {
            const double *block = blocks + (mask ? t * kk : 0);
            for (int64_t i = 0; i < k; i++)
                for (int64_t j = 0; j < k; j++) {
                    double total = block[i * k + j] + (i == j) + (t < T - 1 ? squares[i * k + j] : 0.0);
                    if (t > 0)
                        for (int64_t m = 0; m < k; m++) total -= link[i * k + m] * gains[((n - 1) * k + m) * k + j];
                    D[i * k + j] = total;
                }
            of_step = 0.0;
            inverse_of(k, D, root, inverses + n * kk, &of_step);
            for (int64_t i = 0; i < k; i++)
                for (int64_t j = 0; j < k; j++) {
                    double total = 0.0;
                    for (int64_t m = 0; m < k; m++) total += inverses[n * kk + i * k + m] * link[j * k + m];
                    gains[n * kk + i * k + j] = total;
                }
            double most = 0.0;
            for (int64_t i = 0; i < kk; i++) most = fmax(most, fabs(D[i] - before[i]));
            frozen = !mask && t > 1 && most <= 1e-15 * fabs(D[0]);
            memcpy(before, D, kk * sizeof(double));
            n++;
        }
        *log_det += of_step;
    }
    int64_t at = n - 1, settled = 0;
    r[k] = 1.0;
    for (int64_t t = T - 1; t >= 0; t--) {
        double *here = x + t * k;
        if (t < T - 1) at = mask ? t : (t >= n - 2 ? n - 2 : t);
        const double *one = inverses + at * kk, *by = gains + at * kk;
        for (int64_t i = 0; i < k; i++) {
            double total = 0.0;
            for (int64_t j = 0; j < k; j++) total += one[i * k + j] * here[j];
            if (t < T - 1)
                for (int64_t j = 0; j < k; j++) total += by[i * k + j] * here[k + j];
            r[i] = total;
        }
        memcpy(here, r, k * sizeof(double));
        if (t == T - 1) memcpy(v, one, kk * sizeof(double));
        else if (!(settled && t > n - 2) ) {
            for (int64_t i = 0; i < k; i++)
                for (int64_t j = 0; j < k; j++) {
                    double total = 0.0;
                    for (int64_t m = 0; m < k; m++) total += by[i * k + m] * v[m * k + j];
                    cross[i * k + j] = total;
                }
            double most = 0.0;
            for (int64_t i = 0; i < k; i++)
                for (int64_t j = 0; j <= i; j++) {
                    double total = one[i * k + j];
                    for (int64_t m = 0; m < k; m++) total += cross[i * k + m] * by[j * k + m];
                    most = fmax(most, fabs(total - v[i * k + j]));
                    newer[i * k + j] = newer[j * k + i] = total;
                }
            settled = !mask && t < T - 2 && most <= 1e-15 * fabs(newer[0]);
            memcpy(v, newer, kk * sizeof(double));
        }
        for (int64_t q = 0; q < p; q++) {
            if (mask && mask[t * p + q] == 0.0) continue;
            double away = y[t * p + q] - offset[q];
            for (int64_t i = 0; i < k; i++) away -= output[q * k + i] * r[i];
            left[q] += away * away;
            for (int64_t i = 0; i < d; i++) c[q * d + i] += y[t * p + q] * r[i];
            if (q > 0 && !mask) continue;
            double *of_column = g + (mask ? q * d * d : 0);
            for (int64_t i = 0; i < d; i++)
                for (int64_t j = 0; j <= i; j++)
                    of_column[i * d + j] += r[i] * r[j] + (i < k ? v[i * k + j] : 0.0);
        }
        if (t < T - 1)
            for (int64_t i = 0; i < k; i++) {
                double away = here[k + i];
                for (int64_t j = 0; j < k; j++) {
                    away -= link[i * k + j] * r[j];
                    w[i * k + j] += r[i] * r[j] + v[i * k + j];
                    s[i * k + j] += r[i] * here[k + j] + cross[i * k + j];
                }
                left[p] += away * away;
            }
        if (t > 0)
            for (int64_t i = 0; i < kk; i++) x2[i] += r[i / k] * r[i % k] + v[i];
    }
    return n;
}
