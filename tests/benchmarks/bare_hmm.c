/* Expected counts of hidden Markov chains over symbols: forward and backward in scaled numbers, each row scaled to a sum
 * of one. The plain loop one would write for this and nothing else: an opponent to time against, not a part of the
 * library. It knows no masks, no missing steps, no restarts, and nothing of numbers that leave the doubles.
 *
 * transition (n_states, n_states) and emission (n_symbols, n_states) are the exponentials of expected logarithms, as they
 * are; forward (longest, n_states) and scale (longest,) are scratch. Counts are added to. Returns ln Z. */

#include <math.h>
#include <stdint.h>
#include <string.h>

double bare_hmm(int64_t n_sequences, const int64_t *starts, const int32_t *symbols, int64_t n_states,
                const double *initial, const double *transition, const double *emission, double *forward, double *scale,
                double *of_initial, double *of_transition, double *of_emission, double *scratch)
{
    const int64_t K = n_states;
    double log_z = 0.0;
    double *right = scratch, *to_come = scratch + K, *counts = scratch + 2 * K;
    memset(counts, 0, K * K * sizeof(double));
    for (int64_t s = 0; s < n_sequences; s++) {
        const int32_t *y = symbols + starts[s];
        const int64_t T = starts[s + 1] - starts[s];
        double product = 1.0;
        for (int64_t t = 0; t < T; t++) {
            double *here = forward + t * K, sum = 0.0;
            if (t == 0) {
                for (int64_t j = 0; j < K; j++) here[j] = initial[j];
            } else {
                const double *before = here - K;
                for (int64_t j = 0; j < K; j++) here[j] = 0.0;
                for (int64_t i = 0; i < K; i++)
                    for (int64_t j = 0; j < K; j++) here[j] += before[i] * transition[i * K + j];
            }
            for (int64_t j = 0; j < K; j++) here[j] *= emission[y[t] * K + j];
            for (int64_t j = 0; j < K; j++) sum += here[j];
            for (int64_t j = 0; j < K; j++) here[j] /= sum;
            scale[t] = sum;
            product *= sum;
            if (product < 1e-200 || t == T - 1) {
                log_z += log(product);
                product = 1.0;
            }
        }
        for (int64_t j = 0; j < K; j++) to_come[j] = 1.0;
        for (int64_t t = T - 1; t >= 0; t--) {
            const double *here = forward + t * K;
            double *of_symbol = of_emission + y[t] * K;
            for (int64_t j = 0; j < K; j++) of_symbol[j] += here[j] * to_come[j];
            if (t == 0) {
                for (int64_t j = 0; j < K; j++) of_initial[j] += here[j] * to_come[j];
                break;
            }
            for (int64_t j = 0; j < K; j++) right[j] = to_come[j] * emission[y[t] * K + j] / scale[t];
            const double *before = here - K;
            for (int64_t i = 0; i < K; i++) {
                double sum = 0.0;
                for (int64_t j = 0; j < K; j++) {
                    counts[i * K + j] += before[i] * right[j];
                    sum += transition[i * K + j] * right[j];
                }
                to_come[i] = sum;
            }
        }
    }
    for (int64_t i = 0; i < K * K; i++) of_transition[i] += counts[i] * transition[i];
    return log_z;
}
