/* Integrals over one number by nodes of its logarithm, one member after the other: what `integrate` of
 * `skvbem/families/one_dimensional/trapezoid.py` is for functions in Python. */
#ifndef SKVBEM_TRAPEZOID_H
#define SKVBEM_TRAPEZOID_H

#include "_lanes.h"

#define SKVBEM_SEARCHED 9
#define SKVBEM_PASSES 7
#define SKVBEM_AROUND 7
#define SKVBEM_SHORTENED 40

/* A function of logarithms: values at n of them, in rising order, and at the `SKVBEM_AROUND` of a trapezoid. */
typedef struct {
    void (*at)(void *member, intptr_t n, const double *t, double *values);
    void (*around)(void *member, double *values);
} skvbem_function;

/* Tuning numbers, explained where they stand in Python. */
typedef struct {
    double reach, fall, widest, first_scale, narrow, narrow_ends;
    intptr_t n_newton, n_narrow, n_wide;
} skvbem_trapezoid;

/* What is found of an integral, beside logarithms and shares of its nodes. */
typedef struct { double log_total, first, spacing, center, scale; } skvbem_integral;

static void skvbem_values(skvbem_function function, void *member, intptr_t n, const double *t, double *values) {
    function.at(member, n, t, values);
    for (intptr_t i = 0; i < n; i++)
        if (values[i] != values[i]) values[i] = -INFINITY;
}

/* Where a function is largest between both ends of all logarithms. */
static double skvbem_searched(skvbem_function function, void *member, double reach) {
    double t[SKVBEM_SEARCHED], values[SKVBEM_SEARCHED], low = -reach, high = reach;
    int best = 0;
    for (int pass = 0; pass < SKVBEM_PASSES; pass++) {
        for (int i = 0; i < SKVBEM_SEARCHED; i++) t[i] = low + (high - low) * ((double) i / (SKVBEM_SEARCHED - 1));
        skvbem_values(function, member, SKVBEM_SEARCHED, t, values);
        best = 0;
        for (int i = 1; i < SKVBEM_SEARCHED; i++)
            if (values[i] > values[best]) best = i;
        low = t[best > 0 ? best - 1 : 0];
        high = t[best < SKVBEM_SEARCHED - 1 ? best + 1 : SKVBEM_SEARCHED - 1];
    }
    return t[best];
}

/* About so far from its mode a function has fallen by half a nat, on the side of the steeper fall. */
static double skvbem_deviation(skvbem_function function, void *member, double center, double widest) {
    double t[3], values[3], distance = widest;
    for (int pass = 0; pass < SKVBEM_SHORTENED; pass++) {
        for (int i = 0; i < 3; i++) t[i] = center + (i - 1) * distance;
        skvbem_values(function, member, 3, t, values);
        if (!(values[1] - fmin(values[0], values[2]) > 1.0)) break;
        distance /= 1.6;
    }
    return distance;
}

/* Newton's steps by differences from a guess to the logarithm near a mode, and the deviation there; 0 if none is there.
 */
static int skvbem_stepped(skvbem_function function, void *member, const skvbem_trapezoid *numbers, double *center,
                          double *scale) {
    for (intptr_t k = 0; k < numbers->n_newton; k++) {
        const double step = 0.1 * *scale, t[3] = {*center - step, *center, *center + step};
        double values[3];
        skvbem_values(function, member, 3, t, values);
        const double curvature = -(values[0] - 2 * values[1] + values[2]) / (step * step);
        const double move = (values[2] - values[0]) / (2 * step) / curvature, deviation = 1 / sqrt(curvature);
        if (curvature > 0 && curvature < INFINITY && deviation < 2 * numbers->widest && fabs(move) < 1.0) {
            *center += move;
            *scale = deviation;
            if (fabs(move) <= deviation) return 1;
        }
        *scale = fmin(*scale, numbers->first_scale);
    }
    return 0;
}

/* The logarithm near a mode and the deviation there, `widest` at the most; values there and nine deviations before and
 * after. No value around is larger. */
static double skvbem_peak(skvbem_function function, void *member, const skvbem_trapezoid *numbers, double guess,
                          double *scale, double *values) {
    double t[3], around[SKVBEM_AROUND], center = fmin(fmax(guess, -numbers->reach), numbers->reach);
    *scale = numbers->first_scale;
    int is_found = skvbem_stepped(function, member, numbers, &center, scale), is_sought = 0;
    if (is_found) function.around(member, around);
    for (;;) {
        if (!is_found) {
            center = skvbem_searched(function, member, numbers->reach);
            *scale = skvbem_deviation(function, member, center, numbers->widest);
            is_sought = 1;
        }
        *scale = fmin(*scale, numbers->widest);
        for (int i = 0; i < 3; i++) t[i] = center + 9.0 * (i - 1) * *scale;
        skvbem_values(function, member, 3, t, values);
        if (is_sought) return center;
        for (int i = 0; i < SKVBEM_AROUND; i++) is_found = is_found && !(values[1] < around[i]);
        if (is_found) return center;
    }
}

/* The logarithm on one side, -1 or 1, at which a function has fallen enough, from its value nine deviations aside. */
static double skvbem_end(skvbem_function function, void *member, const skvbem_trapezoid *numbers, double center,
                         double scale, double side, double top, double value) {
    double distance = 9.0 * scale;
    while (value > top - numbers->fall && fabs(center + side * distance) < numbers->reach) {
        distance *= 1.5;
        const double at = center + side * distance;
        skvbem_values(function, member, 1, &at, &value);
    }
    return fmin(fmax(center + side * distance, -1.5 * numbers->reach), 1.5 * numbers->reach);
}

/* t and ln of its derivative at n values of u. */
SKVBEM_CLONES
static void skvbem_placed(intptr_t n, double first, double last, double center, double scale, double *restrict t,
                          double *restrict log_slope) {
    const double rest = 1.0 / (double) (n - 1);
    for (int i = 0; i < (int) n; i++) {
        const double u = first + (last - first) * ((double) i * rest), less = skvbem_exp(-fabs(u));
        const double more = 1.0 / less, size = 0.5 * (more - less);
        t[i] = center + scale * (u < 0.0 ? -size : size);
        log_slope[i] = skvbem_log(0.5 * (more + less));
    }
}

/* Values to shares of their sum at the ends of the half weight; ln of the sum. */
SKVBEM_CLONES
static double skvbem_shared(intptr_t n, double *restrict values) {
    double largest = values[0], total = 0.0;
    for (intptr_t i = 1; i < n; i++) largest = skvbem_at_least(values[i], largest);
    for (intptr_t i = 0; i < n; i++) values[i] = skvbem_exp(values[i] - largest);
    values[0] *= 0.5;
    values[n - 1] *= 0.5;
    for (intptr_t i = 0; i < n; i++) total += values[i];
    for (intptr_t i = 0; i < n; i++) values[i] /= total;
    return largest + log(total);
}

/* Nodes of one integral: t and share (n_wide,), those beyond a narrow one without a share; `scratch` (n_wide,). */
static skvbem_integral skvbem_integrate(skvbem_function function, void *member, const skvbem_trapezoid *numbers,
                                        double guess, double *t, double *share, double *scratch) {
    double scale, values[3];
    const double center = skvbem_peak(function, member, numbers, guess, &scale, values);
    const double before = skvbem_end(function, member, numbers, center, scale, -1.0, values[1], values[0]);
    const double after = skvbem_end(function, member, numbers, center, scale, 1.0, values[1], values[2]);
    const double first = asinh((before - center) / scale), last = asinh((after - center) / scale);
    const int narrow = scale < numbers->narrow && last - first < numbers->narrow_ends;
    const intptr_t n = narrow ? numbers->n_narrow : numbers->n_wide;
    const double spacing = (last - first) / (double) (n - 1);
    skvbem_placed(n, first, last, center, scale, t, scratch);
    skvbem_values(function, member, n, t, share);
    for (intptr_t i = 0; i < n; i++) share[i] += scratch[i];
    for (intptr_t i = n; i < numbers->n_wide; i++) {
        t[i] = center;
        share[i] = 0.0;
    }
    const skvbem_integral found = {skvbem_shared(n, share) + log(spacing * scale), first, spacing, center, scale};
    return found;
}

#endif
