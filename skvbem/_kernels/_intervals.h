/* ln of the probability of intervals under normal distributions, and moments between their ends.
 *
 * By Mills' ratio (1 - Phi(x)) / phi(x) of both ends, with relative errors below 1e-15, so that no tail is too far; and
 * by Hermite's polynomials where an interval is narrow, so that nothing cancels. Some intervals at a time, the same loop
 * for all: conditions choose by masks. */
#ifndef SKVBEM_INTERVALS_H
#define SKVBEM_INTERVALS_H

#include "_lanes.h"

#define SKVBEM_AT_ONCE 256
#define SKVBEM_MOMENTS 4
#define SKVBEM_TERMS 16
#define SKVBEM_NARROW 0.5
#define SKVBEM_HALF_LOG_2PI 0.91893853320467274178

SKVBEM_INLINE double skvbem_choose(int condition, double yes, double no) {
    const uint64_t chosen = -(uint64_t) condition;
    return skvbem_from_bits((skvbem_to_bits(yes) & chosen) | (skvbem_to_bits(no) & ~chosen));
}

/* (1 - Phi(x)) / phi(x) of x >= 0: a polynomial in (x - 5) / (x + 5) over 1 + x / 2, from Chebyshev's series. */
SKVBEM_INLINE double skvbem_mills(double x) {
    const double half = 1.0 + 0.5 * x, all = x + 5.0, each = 1.0 / (half * all);
    const double t = (x - 5.0) * half * each;
    double p = -4.0039186615076026e-10;
    p = p * t - 5.113737961671437e-10;
    p = p * t + 4.5353850373236904e-09;
    p = p * t + 6.315826474777852e-09;
    p = p * t - 3.1269216422658684e-08;
    p = p * t - 4.583228983674771e-08;
    p = p * t + 1.9658412287695817e-07;
    p = p * t + 2.560242886176337e-07;
    p = p * t - 1.333491312205592e-06;
    p = p * t - 9.336933782688075e-07;
    p = p * t + 9.762952276656973e-06;
    p = p * t - 4.075602285381143e-06;
    p = p * t - 6.598231173231892e-05;
    p = p * t + 0.000152787405274789;
    p = p * t + 0.00017805638450685106;
    p = p * t - 0.0018254791318271918;
    p = p * t + 0.005192676377801173;
    p = p * t - 0.0077442842669621535;
    p = p * t + 0.0014075504291761346;
    p = p * t + 0.026888989174360417;
    p = p * t - 0.0888368172052036;
    p = p * t + 0.18436148227251128;
    p = p * t - 0.29454115124316244;
    p = p * t + 0.6748283665036051;
    return p * (all * each);
}

/* Intervals from far to near, the end of higher density, whose middle is not above 0. Loops are short, so that a
 * processor works on many vectors of each at a time. */
SKVBEM_INLINE void skvbem_of_wide(intptr_t n, int n_moments, const double *restrict near, const double *restrict far,
                                  double *restrict log_mass, double *restrict moments, intptr_t stride) {
    double ratio[SKVBEM_AT_ONCE], density[SKVBEM_AT_ONCE], of_near[SKVBEM_AT_ONCE], mass[SKVBEM_AT_ONCE];
    for (intptr_t i = 0; i < n; i++) {
        const double size = fabs(near[i]), reach = -far[i];
        ratio[i] = skvbem_exp(0.5 * (size - reach) * (size + reach));  /* of the densities */
    }
    for (intptr_t i = 0; i < n; i++) density[i] = skvbem_exp(-0.5 * near[i] * near[i] - SKVBEM_HALF_LOG_2PI);
    for (intptr_t i = 0; i < n; i++) of_near[i] = skvbem_mills(fabs(near[i]));
    for (intptr_t i = 0; i < n; i++) {
        const double of_far = ratio[i] * skvbem_mills(-far[i]);
        mass[i] = skvbem_choose(near[i] > 0.0, 1.0 - density[i] * (of_near[i] + of_far), of_near[i] - of_far);
    }
    for (intptr_t i = 0; i < n; i++)  /* where the near end is above 0, that is inside */
        log_mass[i] = skvbem_log(mass[i])
                      - skvbem_choose(near[i] > 0.0, 0.0, 0.5 * near[i] * near[i] + SKVBEM_HALF_LOG_2PI);
    for (intptr_t i = 0; i < n; i++) {
        const double b = near[i], a = far[i];
        const double at_near = skvbem_choose(b > 0.0, density[i], 1.0) / mass[i], at_far = ratio[i] * at_near;
        double before = 1.0, last = at_far - at_near, near_power = at_near, far_power = at_far;
        moments[i] = last;
        for (int k = 1; k < n_moments; k++) {
            near_power *= b;
            far_power *= a;
            const double next = (double) k * before + far_power - near_power;
            moments[k * stride + i] = next;
            before = last;
            last = next;
        }
    }
}

/* Of intervals of half a width about a middle, on which the density changes little. */
SKVBEM_INLINE void skvbem_of_narrow(intptr_t n, int n_moments, const double *restrict middle,
                                    const double *restrict half, double *restrict log_mass,
                                    double *restrict moments, intptr_t stride) {
    for (intptr_t i = 0; i < n; i++) {
        const double c = middle[i], h = half[i], slope = -c * h, square = h * h;
        double before = 1.0, last = slope;  /* h^n He_n(-c) / n!, of which these are n = 0 and 1 */
        double power[SKVBEM_MOMENTS + 1] = {1.0, slope / 3.0, 1.0 / 3.0, slope / 5.0, 1.0 / 5.0};
        for (int k = 2; k < SKVBEM_TERMS; k += 2) {
            const double even = (slope * last - square * before) * (1.0 / k);
            const double odd = (slope * even - square * last) * (1.0 / (k + 1));
            power[0] += even * (1.0 / (k + 1));
            power[1] += odd * (1.0 / (k + 3));
            power[2] += even * (1.0 / (k + 3));
            if (n_moments > 2) {
                power[3] += odd * (1.0 / (k + 5));
                power[4] += even * (1.0 / (k + 5));
            }
            before = even;
            last = odd;
        }
        const double each = h / power[0], one = each * power[1], two = each * h * power[2];
        log_mass[i] = skvbem_log(2.0 * h * power[0]) - 0.5 * c * c - SKVBEM_HALF_LOG_2PI;
        moments[i] = c + one;
        moments[stride + i] = c * c + 2.0 * c * one + two;
        if (n_moments > 2) {
            const double three = each * square * power[3], four = each * square * h * power[4];
            moments[2 * stride + i] = c * (c * c + 3.0 * (c * one + two)) + three;
            moments[3 * stride + i] = c * (c * (c * c + 4.0 * c * one + 6.0 * two) + 4.0 * three) + four;
        }
    }
}

/* Those that are narrow, in the place of what is there: few of them, one after the other. */
SKVBEM_INLINE void skvbem_replace_narrow(intptr_t n, int n_moments, const double *restrict near,
                                         const double *restrict width, const double *restrict narrow,
                                         double *restrict log_mass, double *restrict moments, intptr_t stride) {
    double middle[SKVBEM_AT_ONCE], half[SKVBEM_AT_ONCE], found[(SKVBEM_MOMENTS + 1) * SKVBEM_AT_ONCE];
    intptr_t place[SKVBEM_AT_ONCE], m = 0;
    for (intptr_t i = 0; i < n; i++) {
        place[m] = i;
        m += narrow[i] != 0.0;
    }
    for (intptr_t i = 0; i < m; i++) {
        middle[i] = near[place[i]] - 0.5 * width[place[i]];
        half[i] = 0.5 * width[place[i]];
    }
    skvbem_of_narrow(m, n_moments, middle, half, found, found + SKVBEM_AT_ONCE, SKVBEM_AT_ONCE);
    for (intptr_t i = 0; i < m; i++) {
        log_mass[place[i]] = found[i];
        for (int k = 0; k < n_moments; k++) moments[k * stride + place[i]] = found[(k + 1) * SKVBEM_AT_ONCE + i];
    }
}

/* Of n intervals, `SKVBEM_AT_ONCE` at the most, in units of deviations from a mean; 0 where an end is NaN. */
SKVBEM_INLINE void skvbem_some_intervals(intptr_t n, int n_moments, const double *restrict low,
                                         const double *restrict high, double mean, double precision_root,
                                         double *restrict log_mass, double *restrict moments, intptr_t stride) {
    double near[SKVBEM_AT_ONCE], far[SKVBEM_AT_ONCE], width[SKVBEM_AT_ONCE];
    double narrow[SKVBEM_AT_ONCE], sign[SKVBEM_AT_ONCE], there[SKVBEM_AT_ONCE];
    uint64_t n_narrow = 0, n_there = 0;
    for (intptr_t i = 0; i < n; i++) {
        const double l = (low[i] - mean) * precision_root, u = (high[i] - mean) * precision_root;
        const int is_there = (low[i] < high[i]), flip = l + u > 0.0;
        const double b = skvbem_choose(flip, -l, u), a = skvbem_choose(flip, -u, l);
        const double reach = skvbem_at_least(-a, 1.0);
        width[i] = (high[i] - low[i]) * precision_root;
        const int is_narrow = is_there & (width[i] * reach < SKVBEM_NARROW);
        n_narrow += (uint64_t) is_narrow;
        n_there += (uint64_t) is_there;
        narrow[i] = skvbem_choose(is_narrow, 1.0, 0.0);
        there[i] = skvbem_choose(is_there, 1.0, 0.0);
        sign[i] = skvbem_choose(flip, -1.0, 1.0);
        near[i] = skvbem_choose(is_there, b, 0.0);
        far[i] = skvbem_choose(is_there & (a > -1e150), a, -1e150);  /* an open end */
    }
    if (n_narrow < n_there)
        skvbem_of_wide(n, n_moments, near, far, log_mass, moments, stride);
    if (n_narrow)
        skvbem_replace_narrow(n, n_moments, near, width, narrow, log_mass, moments, stride);
    for (intptr_t i = 0; i < n; i++) {
        const int is_there = there[i] != 0.0;
        log_mass[i] = skvbem_choose(is_there, log_mass[i], 0.0);
        moments[i] = skvbem_choose(is_there, sign[i] * moments[i], 0.0);
        moments[stride + i] = skvbem_choose(is_there, moments[stride + i], 0.0);
        if (n_moments > 2) {
            moments[2 * stride + i] = skvbem_choose(is_there, sign[i] * moments[2 * stride + i], 0.0);
            moments[3 * stride + i] = skvbem_choose(is_there, moments[3 * stride + i], 0.0);
        }
    }
}

/* The number of moments is known to the compiler, 2 or 4. */
SKVBEM_CLONES
static void skvbem_intervals(intptr_t n, int n_moments, const double *restrict low, const double *restrict high,
                             double mean, double precision_root, double *restrict log_mass, double *restrict moments,
                             intptr_t stride) {
    for (intptr_t at = 0; at < n; at += SKVBEM_AT_ONCE) {
        const intptr_t some = n - at < SKVBEM_AT_ONCE ? n - at : SKVBEM_AT_ONCE;
        if (n_moments == 2)
            skvbem_some_intervals(some, 2, low + at, high + at, mean, precision_root, log_mass + at, moments + at, stride);
        else
            skvbem_some_intervals(some, 4, low + at, high + at, mean, precision_root, log_mass + at, moments + at, stride);
    }
}

#endif
