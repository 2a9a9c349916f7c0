/* ln of the probability of intervals under normal distributions, and moments between their ends.
 *
 * By Mills' ratio (1 - Phi(x)) / phi(x) of both ends, with relative errors below 1e-15, so that no tail is too far; and
 * by Hermite's polynomials where an interval is narrow, so that nothing cancels. Some intervals at a time, the same loop
 * for all: conditions choose by masks. Sums over rows take one logarithm of the product of masses for each row. */
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

/* Sums over rows --------------------------------------------------------------------------------------------------- */

/* Ends are no further than this from the mean here: beyond, a second end has no mass. Where the near one is further
 * than `SKVBEM_FAR` in a tail, the interval is evaluated by itself. */
#define SKVBEM_FURTHEST 37.0
#define SKVBEM_FAR 30.0
/* As `SKVBEM_NARROW`, of two moments: what cancels leaves errors of 1e-13. */
#define SKVBEM_NARROW_IN_ROWS 0.125
/* Columns after which the product of masses becomes a logarithm: each may bring a factor of 1e20 to both parts. */
#define SKVBEM_COLUMNS 8

/* Numerator and denominator of Mills' ratio of 0 <= x <= 37, of positive terms alone: to 5e-15, interpolated at
 * Chebyshev's points of (x - 4) / (x + 4). */
SKVBEM_INLINE double skvbem_mills_numerator(double x) {
    double p = 2.090838947921094e-05;
    p = p * x + 0.00047599570999008094;
    p = p * x + 0.00529141796295038;
    p = p * x + 0.03686421226073711;
    p = p * x + 0.17462434742055916;
    p = p * x + 0.5745424307497555;
    p = p * x + 1.285933481091;
    p = p * x + 1.807981238818953;
    p = p * x + 1.2533141373155035;
    return p;
}
SKVBEM_INLINE double skvbem_mills_denominator(double x) {
    double q = 2.0908389478525976e-05;
    q = q * x + 0.00047599571011568647;
    q = q * x + 0.00531232634216016;
    q = q * x + 0.03734020846961836;
    q = q * x + 0.17987393238675936;
    q = q * x + 0.6104550287255084;
    q = q * x + 1.4501775241877126;
    q = q * x + 2.3136428478393127;
    q = q * x + 2.240444877478185;
    q = q * x + 1.0;
    return q;
}

/* e^x of -700 < x <= 0 to 3e-16, of degree 10, interpolated at Chebyshev's points of half a ln 2. */
SKVBEM_INLINE double skvbem_exp_within(double x) {
    const double shifted = x * 1.44269504088896338700 + 6755399441055744.0, n = shifted - 6755399441055744.0;
    const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    const double square = r * r;
    double even = 2.7626371065696354e-07;
    even = even * square + 2.480150431378554e-05;
    even = even * square + 0.001388888893251478;
    even = even * square + 0.041666666666573066;
    even = even * square + 0.5000000000000006;
    even = even * square + 1.0;
    double odd = 2.764019739169484e-06;
    odd = odd * square + 0.00019841170230570286;
    odd = odd * square + 0.008333333385699212;
    odd = odd * square + 0.16666666666554314;
    odd = odd * square + 1.0000000000000067;
    const double p = even + r * odd;
    return p * skvbem_from_bits((skvbem_to_bits(shifted) << 52) + (1023ULL << 52));
}

/* Cells of one column in one component, `SKVBEM_AT_ONCE` at the most. */
typedef struct {
    double near[SKVBEM_AT_ONCE], far[SKVBEM_AT_ONCE];      /* distances from the mean on the side of the far end */
    double ratio[SKVBEM_AT_ONCE], density[SKVBEM_AT_ONCE]; /* of densities; of the near end, or 1 in a tail */
    double sign[SKVBEM_AT_ONCE], alone[SKVBEM_AT_ONCE];    /* what is evaluated by itself, or is no interval, not 0 */
    double above[2][SKVBEM_AT_ONCE], below[2][SKVBEM_AT_ONCE]; /* parts of Mills' ratios of both ends */
} skvbem_cells;

/* Distances in deviations; the number of cells that need a look of their own. */
SKVBEM_INLINE intptr_t skvbem_place_cells(intptr_t n, const double *restrict low, const double *restrict high,
                                          double mean, double root, skvbem_cells *restrict cells) {
    uint64_t n_alone = 0;
    for (intptr_t i = 0; i < n; i++) {
        const double l = (low[i] - mean) * root, u = (high[i] - mean) * root, width = (high[i] - low[i]) * root;
        const int flip = l + u > 0.0, is_there = low[i] < high[i];
        const double b = skvbem_choose(flip, -l, u), a = skvbem_choose(flip, u, -l);
        const int is_plain = is_there & (width * skvbem_at_least(a, 1.0) >= SKVBEM_NARROW_IN_ROWS) & (b > -SKVBEM_FAR);
        n_alone += (uint64_t) !is_plain;
        cells->near[i] = b < SKVBEM_FURTHEST ? b : SKVBEM_FURTHEST;
        cells->far[i] = a < SKVBEM_FURTHEST ? a : SKVBEM_FURTHEST;
        cells->sign[i] = skvbem_choose(flip, -1.0, 1.0);
        cells->alone[i] = skvbem_choose(is_plain, 0.0, 1.0);
    }
    return (intptr_t) n_alone;
}

/* Of rows: products of masses so far, above and below a line, and sums of what their logarithms lack. */
typedef struct { double above[SKVBEM_AT_ONCE], below[SKVBEM_AT_ONCE], sum[SKVBEM_AT_ONCE]; } skvbem_masses;

/* Masses multiply those of earlier columns; two moments. Cells that need a look of their own get any numbers. */
SKVBEM_INLINE void skvbem_take_cells(intptr_t n, double peak, skvbem_cells *restrict cells,
                                     skvbem_masses *restrict masses, double *restrict first, double *restrict second) {
    double *restrict above = masses->above, *restrict below = masses->below, *restrict sum = masses->sum;
    double *restrict near = cells->near, *restrict far = cells->far, *restrict ratio = cells->ratio;
    double *restrict density = cells->density, *restrict sign = cells->sign;
    for (intptr_t i = 0; i < n; i++) {
        const double size = fabs(near[i]);
        ratio[i] = skvbem_exp_within(0.5 * (size - far[i]) * (size + far[i]));
    }
    for (intptr_t i = 0; i < n; i++) {
        const double half = -0.5 * near[i] * near[i] - SKVBEM_HALF_LOG_2PI;
        const int inside = near[i] > 0.0;
        density[i] = skvbem_choose(inside, skvbem_exp_within(half), 1.0);
        sum[i] += peak + skvbem_choose(inside, 0.0, half);
    }
    for (intptr_t i = 0; i < n; i++) {
        cells->above[0][i] = skvbem_mills_numerator(fabs(near[i]));
        cells->below[0][i] = skvbem_mills_denominator(fabs(near[i]));
    }
    for (intptr_t i = 0; i < n; i++) {
        cells->above[1][i] = skvbem_mills_numerator(far[i]);
        cells->below[1][i] = skvbem_mills_denominator(far[i]);
    }
    for (intptr_t i = 0; i < n; i++) {
        const double of_near = cells->below[0][i], of_far = cells->below[1][i], both = of_near * of_far;
        const double a = cells->above[0][i] * of_far, b = ratio[i] * cells->above[1][i] * of_near;
        const double mass = skvbem_choose(near[i] > 0.0, both - density[i] * (a + b), a - b);
        const double at_near = density[i] * (both / mass), at_far = ratio[i] * at_near;
        above[i] *= mass;
        below[i] *= both;
        first[i] = sign[i] * (at_far - at_near);
        second[i] = 1.0 - far[i] * at_far - near[i] * at_near;
    }
}

/* Those in far tails and narrow ones, in the place of what is there: few of them. */
SKVBEM_CLONES
static void skvbem_take_alone(intptr_t n, const double *restrict low, const double *restrict high, double mean,
                              double root, double peak, const double *restrict alone, const skvbem_masses *restrict before,
                              skvbem_masses *restrict masses, double *restrict first, double *restrict second) {
    double lows[SKVBEM_AT_ONCE], highs[SKVBEM_AT_ONCE], log_mass[SKVBEM_AT_ONCE], moments[2 * SKVBEM_AT_ONCE];
    intptr_t place[SKVBEM_AT_ONCE], m = 0;
    for (intptr_t i = 0; i < n; i++)
        if (alone[i] != 0.0) {
            lows[m] = low[i];
            highs[m] = high[i];
            place[m++] = i;
        }
    skvbem_some_intervals(m, 2, lows, highs, mean, root, log_mass, moments, SKVBEM_AT_ONCE);
    for (intptr_t i = 0; i < m; i++) {
        masses->above[place[i]] = before->above[place[i]];
        masses->below[place[i]] = before->below[place[i]];
        masses->sum[place[i]] = before->sum[place[i]] + (lows[i] < highs[i] ? peak + log_mass[i] : 0.0);
        first[place[i]] = moments[i];
        second[place[i]] = moments[SKVBEM_AT_ONCE + i];
    }
}

/* Of n rows, `SKVBEM_AT_ONCE` at the most, in one component. Ends (n_columns, stride), moments (2, n_columns, width).
 */
SKVBEM_CLONES
static void skvbem_some_rows(intptr_t n, intptr_t n_columns, const double *low, const double *high, intptr_t stride,
                             const double *mean, const double *root, const double *peak, double *restrict of_rows,
                             double *moments, intptr_t width) {
    skvbem_cells cells;
    skvbem_masses masses, before;
    for (intptr_t i = 0; i < n; i++) masses.above[i] = masses.below[i] = 1.0;
    for (intptr_t i = 0; i < n; i++) masses.sum[i] = 0.0;
    for (intptr_t j = 0; j < n_columns; j++) {
        const double *l = low + j * stride, *u = high + j * stride;
        double *first = moments + j * width, *second = first + n_columns * width;
        const intptr_t n_alone = skvbem_place_cells(n, l, u, mean[j], root[j], &cells);
        if (n_alone) before = masses;
        if (n_alone < n) skvbem_take_cells(n, peak[j], &cells, &masses, first, second);
        if (n_alone)
            skvbem_take_alone(n, l, u, mean[j], root[j], peak[j], cells.alone, &before, &masses, first, second);
        if ((j + 1) % SKVBEM_COLUMNS == 0 || j + 1 == n_columns)
            for (intptr_t i = 0; i < n; i++) {
                masses.sum[i] += skvbem_log(masses.above[i] / masses.below[i]);
                masses.above[i] = masses.below[i] = 1.0;
            }
    }
    for (intptr_t i = 0; i < n; i++) of_rows[i] = masses.sum[i];
}

#endif
