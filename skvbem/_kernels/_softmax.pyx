"""Softmax regressions: tilted bounds of expected log-sum-exps over a design, and the maximum of their objective."""

from libc.math cimport M_E, M_PI, fabs, fmax, log, sqrt
from libc.stdint cimport intptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

# Steps to a maximum, and halvings of one.
cdef enum:
    MAX_STEPS = 200
    MAX_HALVINGS = 40
# Nats that a last step of a maximum gains at the most, by its quadratic model, which then stands for a pass: what the
# model lacks is of third order in the mean. In the covariance it is of second order, but less by the number of rows.
cdef double GAIN = 1e-9, GAIN_OF_COVARIANCE = 1e-14

cdef extern from "_softmax.h" nogil:
    ctypedef struct skvbem_design:
        intptr_t n, p, c
        const double* regressors
        const double* weight
        double* of_rows

    intptr_t skvbem_tilt_room(intptr_t c, intptr_t p)
    double skvbem_tilt_pass(
        const skvbem_design* design, const double* mean, const double* covariance, double* slope, double* curvature,
        double* room
    )


cdef struct Design:
    int n, k, p, c, d
    const double* regressors
    const double* weight
    const double* contrasts
    double* of_rows


cdef struct Objective:
    double total
    const double* t
    const double* tau


# A mean tilted bound, nats, at a mean (d,) and a covariance (d, d), with its slope and curvature by the contrasts.
cdef struct Bound:
    double value, log_det
    double* mean
    double* covariance
    double* precision
    double* slope
    double* curvature


cdef intptr_t room_of_pass(const Design* design) noexcept nogil:
    """Numbers that a pass has to have room for."""
    cdef intptr_t c = design.c, p = design.p, d = design.d
    return (c + 1) * p + 2 * d * d + c * c + d + skvbem_tilt_room(c, p)


cdef void turn(const double* by, int c, int p, bint is_back, const double* matrix, double* turned) noexcept nogil:
    """A symmetric matrix (c p, c p) whose labels are turned by a matrix (c, c), or back by its transpose: one side."""
    cdef int d = c * p, i, q, s, j
    cdef double factor
    memset(turned, 0, d * d * sizeof(double))
    for i in range(c):
        for q in range(c):
            factor = by[q * c + i] if is_back else by[i * c + q]
            for s in range(p):
                for j in range(d):  # written across, so that a second turn is of the other side
                    turned[j * d + i * p + s] += factor * matrix[(q * p + s) * d + j]


cdef void look(const Design* design, Bound* at, int is_wide, double* room) noexcept nogil:
    """The mean tilted bound over a design, its slope and its curvature; of points the mean log partition."""
    cdef int p = design.p, c = design.c, d = design.d, i, j, q, s, t
    cdef int n_products = p * (p + 1) // 2, pair = 0, product
    cdef const double* last = design.contrasts + c * c
    cdef double* slope = room
    cdef double* packed = slope + (c + 1) * p
    cdef double* half = packed + d * d
    cdef double* by = half + d * d
    cdef double* mean = by + c * c
    cdef double* rest = mean + d
    cdef skvbem_design rows
    rows.n, rows.p, rows.c, rows.regressors, rows.weight = design.n, p, c, design.regressors, design.weight
    rows.of_rows = design.of_rows
    memset(mean, 0, d * sizeof(double))
    for i in range(c):  # log odds against the last label
        for q in range(c):
            by[i * c + q] = design.contrasts[i * c + q] - last[q]
            for s in range(p):
                mean[i * p + s] += by[i * c + q] * at.mean[q * p + s]
    if is_wide:
        turn(by, c, p, False, at.covariance, at.curvature)
        turn(by, c, p, False, at.curvature, half)
        for i in range(c):
            for j in range(i + 1):
                product = pair * n_products
                for s in range(p):
                    for t in range(s):
                        packed[product] = half[(i * p + s) * d + j * p + t] + half[(i * p + t) * d + j * p + s]
                        product += 1
                    packed[product] = half[(i * p + s) * d + j * p + s]
                    product += 1
                pair += 1
    at.value = skvbem_tilt_pass(&rows, mean, packed if is_wide else NULL, slope, half, rest)
    pair = 0
    for i in range(c):
        for j in range(i + 1):
            product = pair * n_products
            for s in range(p):
                for t in range(s + 1):
                    at.curvature[(i * p + s) * d + j * p + t] = half[product]
                    at.curvature[(i * p + t) * d + j * p + s] = half[product]
                    at.curvature[(j * p + s) * d + i * p + t] = half[product]
                    at.curvature[(j * p + t) * d + i * p + s] = half[product]
                    product += 1
            pair += 1
    turn(by, c, p, True, at.curvature, packed)
    turn(by, c, p, True, packed, at.curvature)
    for q in range(c):
        for s in range(p):
            at.slope[q * p + s] = last[q] * slope[c * p + s]
            at.value += at.mean[q * p + s] * at.slope[q * p + s]
            for i in range(c):
                at.slope[q * p + s] += by[i * c + q] * slope[i * p + s]


cdef bint inverted(const double* matrix, int d, double* inverse, double* log_det, double* room) noexcept nogil:
    """The inverse of a symmetric matrix and ln of its determinant; False if it is not positive. Room for d d."""
    cdef int i, j, q
    cdef double value
    log_det[0] = 0.0
    for j in range(d):  # Cholesky's root, and the inverse of the root in place of it
        for i in range(j, d):
            value = matrix[i * d + j]
            for q in range(j):
                value -= room[i * d + q] * room[j * d + q]
            if i == j:
                if not value > 0.0:
                    return False
                log_det[0] += log(value)
                room[i * d + i] = sqrt(value)
            else:
                room[i * d + j] = value / room[j * d + j]
    for j in range(d):
        room[j * d + j] = 1.0 / room[j * d + j]
        for i in range(j + 1, d):
            value = 0.0
            for q in range(j, i):
                value -= room[i * d + q] * room[q * d + j]
            room[i * d + j] = value / room[i * d + i]
    for i in range(d):
        for j in range(i, d):
            value = 0.0
            for q in range(j, d):
                value += room[q * d + i] * room[q * d + j]
            inverse[i * d + j] = value
            inverse[j * d + i] = value
    return True


cdef double objective_at(const Objective* objective, const Bound* at, int d, int is_wide) noexcept nogil:
    """The objective where a mean tilted bound is known, nats."""
    cdef double value = -objective.total * at.value
    cdef int i
    for i in range(d):
        value += objective.t[i] * at.mean[i] - 0.5 * objective.tau[i] * at.mean[i] * at.mean[i]
        if is_wide:
            value -= 0.5 * objective.tau[i] * at.covariance[i * d + i]
    return value + (0.5 * (d * log(2 * M_PI * M_E) + at.log_det) if is_wide else 0.0)


cdef double rounding(const Objective* objective, const Bound* at) noexcept nogil:
    """Nats by which sums over rows may differ without a reason."""
    return 1e-14 * (1.0 + fabs(objective.total * at.value))


cdef double inner(
    const double* a, const double* b, const double* precision, const double* x, const double* y, int d
) noexcept nogil:
    """The inner product of changes of a mean, and of a precision times the covariance, in deviations."""
    cdef double value = 0.0, of_row
    cdef int i, j
    for i in range(d):
        of_row = 0.0
        for j in range(d):
            of_row += precision[i * d + j] * b[j]
            value += 0.5 * x[i * d + j] * y[j * d + i]
        value += a[i] * of_row
    return value


cdef double squared_change(const Bound* near, const double* wanted, int d, double* room) noexcept nogil:
    """Trace of the square of the covariance times the change of its inverse. Room for d d numbers."""
    cdef double value = 0.0
    cdef int i, j, q
    memset(room, 0, d * d * sizeof(double))
    for i in range(d):
        for q in range(d):
            for j in range(d):
                room[i * d + j] += near.covariance[i * d + q] * (wanted[q * d + j] - near.precision[q * d + j])
    for i in range(d):
        for j in range(d):
            value += room[i * d + j] * room[j * d + i]
    return value


cdef bint accelerated(
    const Design* design, const Objective* objective, const Bound* near, const double* step, const double* wanted,
    const double* before, Bound* later, double* room
) noexcept nogil:
    """The bound where the line through two steps leads, where their changes are least; False if it is lower there.

    `before` are the mean, step, precision and wanted precision of the earlier step. Room for 4 d d + d numbers, and for
    a pass.
    """
    cdef int d = design.d, i, j, q
    cdef const double* mean_before = before
    cdef const double* step_before = before + d
    cdef const double* precision_before = before + 2 * d
    cdef const double* wanted_before = precision_before + d * d
    cdef double* of_residual = room
    cdef double* of_change = of_residual + d * d
    cdef double* change = of_change + d * d
    cdef double* rest = change + d
    cdef double at, since, back, log_det, least
    memset(of_residual, 0, 2 * d * d * sizeof(double))
    for i in range(d):
        change[i] = step[i] - step_before[i]
        for q in range(d):
            for j in range(d):
                at = wanted[q * d + j] - near.precision[q * d + j]
                since = wanted_before[q * d + j] - precision_before[q * d + j]
                of_residual[i * d + j] += near.covariance[i * d + q] * at
                of_change[i * d + j] += near.covariance[i * d + q] * (at - since)
    back = inner(change, change, near.precision, of_change, of_change, d)
    if not back > 0.0:
        return False
    back = inner(change, step, near.precision, of_change, of_residual, d) / back
    for i in range(d):
        later.mean[i] = near.mean[i] + step[i] - back * (near.mean[i] - mean_before[i] + change[i])
    for i in range(d * d):
        later.precision[i] = wanted[i] - back * (wanted[i] - wanted_before[i])
    if not inverted(later.precision, d, later.covariance, &log_det, rest):
        return False
    later.log_det = -log_det
    look(design, later, True, rest)
    least = objective_at(objective, near, d, True) - rounding(objective, near)
    return objective_at(objective, later, d, True) >= least


cdef bint climbed(
    const Design* design, const Objective* objective, const Bound* near, const double* step, const double* wanted,
    int is_wide, Bound* later, double* room
) noexcept nogil:
    """The bound after a step, halved until the objective is no lower; False if it is lower all the same."""
    cdef double length = 1.0, log_det
    cdef double value = objective_at(objective, near, design.d, is_wide) - rounding(objective, near)
    cdef int d = design.d, _halving, i
    for _halving in range(MAX_HALVINGS):
        for i in range(d):
            later.mean[i] = near.mean[i] + length * step[i]
        if is_wide:
            for i in range(d * d):
                later.precision[i] = near.precision[i] + length * (wanted[i] - near.precision[i])
            if inverted(later.precision, d, later.covariance, &log_det, room):
                later.log_det = -log_det
            else:
                length = length / 2
                continue
        look(design, later, is_wide, room)
        if objective_at(objective, later, d, is_wide) >= value:
            return True
        length = length / 2
    return False


cdef int climb(
    const Design* design, const Objective* objective, int is_wide, double kept, Bound* near, Bound* later, Bound* last,
    double* room
) noexcept nogil:
    """The maximum of an objective, from a bound on, in `last`, and the bound near it; how many passes were made.

    Room for 8 d d + 5 d numbers, and for a pass.
    """
    cdef int d = design.d, i, j, _step, taken = 0, has_before = False, is_better
    cdef double* wanted = room
    cdef double* step = wanted + d * d
    cdef double* slope = step + d
    cdef double* before = slope + d
    cdef double* rest = before + 2 * (d + d * d)
    cdef double gain, of_covariance, log_det, value, tolerance = 0.0
    cdef Bound swap
    for _step in range(MAX_STEPS):
        for i in range(d):
            slope[i] = objective.t[i] - objective.total * near.slope[i] - objective.tau[i] * near.mean[i]
        for i in range(d * d):
            wanted[i] = objective.total * near.curvature[i]
        for i in range(d):
            wanted[i * d + i] += objective.tau[i]
        if not inverted(wanted, d, last.covariance, &log_det, rest):
            return -1
        gain, of_covariance = 0.0, squared_change(near, wanted, d, rest) if is_wide else 0.0
        for i in range(d):
            step[i] = 0.0
            for j in range(d):
                step[i] += last.covariance[i * d + j] * slope[j]
            gain += 0.5 * step[i] * slope[i]
        last.log_det = -log_det
        if _step == 0:
            tolerance = kept * (gain + 0.25 * of_covariance)
        if gain < fmax(GAIN, tolerance) and (
            0.25 * of_covariance < fmax(GAIN_OF_COVARIANCE * fmax(objective.total, 1.0), tolerance)
        ):
            break
        is_better = has_before and accelerated(design, objective, near, step, wanted, before, later, rest)
        has_before = is_wide and (is_better or not has_before)
        if has_before:
            memcpy(before, near.mean, d * sizeof(double))
            memcpy(before + d, step, d * sizeof(double))
            memcpy(before + 2 * d, near.precision, d * d * sizeof(double))
            memcpy(before + 2 * d + d * d, wanted, d * d * sizeof(double))
        if not is_better and not climbed(design, objective, near, step, wanted, is_wide, later, rest):
            break  # rounding hides what is left
        taken += 1
        swap = near[0]
        near[0] = later[0]
        later[0] = swap
        if not is_wide and objective_at(objective, near, d, is_wide) > rounding(objective, near):
            break  # no labels are more than certain: statistics that a leap went to are those of none
    if gain > (GAIN if tolerance > GAIN else 1e3 * GAIN) or of_covariance > (GAIN if tolerance > GAIN else 1e-6):
        # too far for the quadratic model, or from where a later maximum begins
        last.value, last.log_det = near.value, near.log_det
        memcpy(last.mean, near.mean, d * sizeof(double))
        memcpy(last.covariance, near.covariance, d * d * sizeof(double))
        return taken
    last.value = near.value
    for i in range(d):
        last.mean[i] = near.mean[i] + step[i]
        value = near.slope[i] * step[i]
        for j in range(d):
            value += 0.5 * step[i] * near.curvature[i * d + j] * step[j]
            if is_wide:
                value += 0.5 * near.curvature[i * d + j] * (last.covariance[i * d + j] - near.covariance[i * d + j])
        last.value += value
    return taken


cdef Bound bound_in(double[::1] numbers, int d) noexcept:
    """The bound in an array: mean, covariance, precision, slope, curvature, value, ln of the determinant."""
    cdef Bound at
    at.mean = &numbers[0]
    at.covariance = at.mean + d
    at.precision = at.covariance + d * d
    at.slope = at.precision + d * d
    at.curvature = at.slope + d
    at.value, at.log_det = numbers[3 * d * d + 2 * d], numbers[3 * d * d + 2 * d + 1]
    return at


cdef void keep(const Bound* at, double[::1] numbers, int d) noexcept:
    """Write a bound, which may stand elsewhere, into an array."""
    cdef double* to = &numbers[0]
    if at.mean != to:
        memcpy(to, at.mean, (3 * d * d + 2 * d) * sizeof(double))
    numbers[3 * d * d + 2 * d], numbers[3 * d * d + 2 * d + 1] = at.value, at.log_det


cdef Design design_of(
    const double[:, ::1] regressors, const double[::1] weight, const double[:, ::1] contrasts
) noexcept:
    cdef Design design
    design.n, design.p = regressors.shape[0], regressors.shape[1]
    design.k, design.c = contrasts.shape[0], contrasts.shape[0] - 1
    design.d = design.c * design.p
    design.regressors, design.weight, design.contrasts = &regressors[0, 0], &weight[0], &contrasts[0, 0]
    design.of_rows = NULL
    return design


def mean_bound(
    const double[:, ::1] regressors,
    const double[::1] weight,
    const double[:, ::1] contrasts,
    bint is_wide,
    double[::1] bound,
    double[::1] of_rows=None,
):
    """Write the mean of tilted bounds over a design, with its slope and curvature by the contrasts of coefficients.

    Parameters
    ----------
    regressors : memoryview of shape (n_patterns, p)
    weight : memoryview of shape (n_patterns,)
        They sum to 1.
    contrasts : memoryview of shape (k, k - 1)
    is_wide : bool
        False for points, of which the mean log partition is written.
    bound : memoryview of shape (3 d d + 2 d + 2,), d = (k - 1) p
        Mean, covariance and precision of the contrasts, contrast after contrast, are read; slope, curvature and value
        are written. The last number is ln of the determinant of the covariance.
    of_rows : memoryview of shape (n_patterns,), optional
        The bound of each row is written, less the mean of its last label.
    """
    cdef Design design = design_of(regressors, weight, contrasts)
    cdef Bound at = bound_in(bound, design.d)
    design.of_rows = NULL if of_rows is None else &of_rows[0]
    cdef double* room = <double*> malloc(room_of_pass(&design) * sizeof(double))
    if room == NULL:
        raise MemoryError("No memory for a pass over a design.")
    with nogil:
        look(&design, &at, is_wide, room)
    keep(&at, bound, design.d)
    free(room)


def maximum(
    const double[:, ::1] regressors,
    const double[::1] weight,
    const double[:, ::1] contrasts,
    const double[::1] t,
    double total,
    const double[::1] tau,
    bint is_wide,
    double kept,
    double[::1] near,
    double[::1] last,
):
    """Write the maximum of t' M - total g(M, S) - tau' (M^2 + diag S) / 2 + ln |2 pi e S| / 2, and a bound near it.

    Parameters
    ----------
    regressors, weight, contrasts, is_wide
        As in `mean_bound`.
    t : memoryview of shape (d,)
    total : float
    tau : memoryview of shape (d,)
    kept : float
        Part of what the first step gains that may be left at the end.
    near : memoryview of shape (3 d d + 2 d + 2,)
        A bound to begin from, with its slope and curvature; the last one of which a pass was made takes its place.
    last : memoryview of shape (3 d d + 2 d + 2,)
        Mean, covariance and mean bound at the maximum, a last step further; slope and curvature mean nothing.

    Returns
    -------
    n_passes : int
        Steps that were taken; -1 if a matrix was not positive.
    """
    cdef Design design = design_of(regressors, weight, contrasts)
    cdef Objective objective
    cdef int d = design.d, size = 3 * d * d + 2 * d + 2, taken
    cdef double* room = <double*> malloc((size + 8 * d * d + 5 * d + room_of_pass(&design)) * sizeof(double))
    cdef Bound at = bound_in(near, d), end = bound_in(last, d), later = at
    if room == NULL:
        raise MemoryError("No memory for passes over a design.")
    objective.total, objective.t, objective.tau = total, &t[0], &tau[0]
    later.mean = room
    later.covariance = room + d
    later.precision = later.covariance + d * d
    later.slope = later.precision + d * d
    later.curvature = later.slope + d
    memcpy(room, at.mean, (3 * d * d + 2 * d) * sizeof(double))  # points have no covariance of theirs
    with nogil:
        taken = climb(&design, &objective, is_wide, kept, &at, &later, &end, room + size)
    keep(&at, near, d)
    keep(&end, last, d)
    free(room)
    return taken
