"""Normal chains of vectors whose joint precision J is block tridiagonal, as one block Cholesky factorization.

J_tt = block of the step's pattern + (first step ? precision of first states : I) + (last step ? 0 : squares), and
J_{t, t-1} = -link. Forward D_t = J_tt - link D_{t-1}^-1 link', gain K_t = D_t^-1 link'; backward V_t = D_t^-1 +
K_t V_{t+1} K_t', the covariance of step t, and K_t V_{t+1}, that of steps t and t + 1. These depend on lengths and
patterns alone: sequences with the same ones have one *shape*, and share them. Where the recursion repeats itself it is
not gone through any more, and steps share a *slot* of D^-1 and K: D -> J - link D^-1 link' is a contraction.
"""

from libc.math cimport fabs, log, sqrt
from libc.stdlib cimport free, malloc


cdef int _inverse(const double* a, double* root, double* inverse, Py_ssize_t k, double* log_det) noexcept nogil:
    """The inverse of a (k, k) by its Cholesky factor, whose memory is `root`; 1 if a is not positive definite."""
    cdef Py_ssize_t i, j, m
    cdef double total
    log_det[0] = 0.0
    for i in range(k):
        for j in range(i + 1):
            total = a[i * k + j]
            for m in range(j):
                total -= root[i * k + m] * root[j * k + m]
            if i == j:
                if not total > 0.0:
                    return 1
                log_det[0] += log(total)
                root[i * k + i] = sqrt(total)
            else:
                root[i * k + j] = total / root[j * k + j]
    for i in range(k):  # the factor becomes its own inverse
        root[i * k + i] = 1.0 / root[i * k + i]
        for j in range(i):
            total = 0.0
            for m in range(j, i):
                total -= root[i * k + m] * root[m * k + j]
            root[i * k + j] = total * root[i * k + i]
    for i in range(k):
        for j in range(i + 1):
            total = 0.0
            for m in range(i, k):
                total += root[m * k + i] * root[m * k + j]
            inverse[i * k + j] = inverse[j * k + i] = total
    return 0


cdef bint _repeats(const double* one, const double* other, Py_ssize_t n, double tolerance) noexcept nogil:
    """Whether two matrices differ by no more than a share of their largest entry."""
    cdef Py_ssize_t i
    cdef double largest = 0.0, difference = 0.0
    for i in range(n):
        largest = max(largest, fabs(one[i]))
        difference = max(difference, fabs(one[i] - other[i]))
    return difference <= tolerance * largest


cdef void _add(double times, const double* matrix, double* total, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if times != 0.0:
        for i in range(n):
            total[i] += times * matrix[i]


cdef Py_ssize_t _forward(Py_ssize_t a, Py_ssize_t b, const long long[::1] pattern, const double[:, :, ::1] blocks,
                         const double[:, ::1] first, const double[:, ::1] link, const double[:, ::1] squares,
                         double tolerance, Py_ssize_t n_slots, long long[::1] slot, double[:, :, ::1] inverse,
                         double[:, :, ::1] gain, double* log_det, double* memory) noexcept nogil:
    """D^-1 and K of the steps a, ..., b - 1 of one shape; the slots used by then, -1 if J is not definite."""
    cdef Py_ssize_t k = link.shape[0], t, i, j, m, at, before = -1
    cdef bint frozen = False
    cdef double total, of_step = 0.0
    cdef double* d = memory
    cdef double* last = memory + k * k
    cdef double* swap
    log_det[0] = 0.0
    for t in range(a, b):
        if frozen and t < b - 1 and pattern[t] == pattern[t - 1]:
            slot[t] = before
            log_det[0] += of_step
            continue
        at = n_slots
        n_slots += 1
        slot[t] = at
        swap = d
        d = last
        last = swap
        for i in range(k):
            for j in range(k):
                total = blocks[pattern[t], i, j]
                if t == a:
                    total += first[i, j]
                elif i == j:
                    total += 1.0
                if t < b - 1:
                    total += squares[i, j]
                if t > a:
                    for m in range(k):
                        total -= link[i, m] * gain[before, m, j]
                d[i * k + j] = total
        if _inverse(d, memory + 2 * k * k, &inverse[at, 0, 0], k, &of_step):
            return -1
        log_det[0] += of_step
        for i in range(k):
            for j in range(k):
                total = 0.0
                for m in range(k):
                    total += inverse[at, i, m] * link[j, m]
                gain[at, i, j] = total
        frozen = t > a + 1 and pattern[t] == pattern[t - 1] and _repeats(d, last, k * k, tolerance)
        before = at
    return n_slots


cdef void _before(const double* inverse, const double* gain, const double* v, double* crossed, double* newer,
                  Py_ssize_t k) noexcept nogil:
    """The covariance of a step from that of the next one, and that of the two."""
    cdef Py_ssize_t i, j, m
    cdef double total
    for i in range(k):
        for j in range(k):
            total = 0.0
            for m in range(k):
                total += gain[i * k + m] * v[m * k + j]
            crossed[i * k + j] = total
    for i in range(k):
        for j in range(i + 1):
            total = inverse[i * k + j]
            for m in range(k):
                total += crossed[i * k + m] * gain[j * k + m]
            newer[i * k + j] = newer[j * k + i] = total


cdef void _back(Py_ssize_t a, Py_ssize_t b, const long long[::1] pattern, const long long[::1] slot,
                const double[:, :, ::1] inverse, const double[:, :, ::1] gain, double weight, double tolerance,
                double[:, :, ::1] of_pattern, double[:, :, ::1] sums, double[:, :, ::1] marginal,
                double* memory) noexcept nogil:
    """Add the covariances of the steps of one shape to sums: those with one covariance are counted, and added once."""
    cdef Py_ssize_t k = inverse.shape[1], kk = k * k, t, i, at, run = 0
    cdef bint frozen = False
    cdef double* v = memory + 3 * kk
    cdef double* newer = memory + 4 * kk
    cdef double* crossed = memory + 5 * kk
    cdef double* swap
    for t in range(b - 1, a - 1, -1):
        at = slot[t]
        if not (frozen and t > a and at == slot[t + 1]):
            if run:  # steps t + 1, ..., t + run
                _add(weight * run, v, &of_pattern[pattern[t + 1], 0, 0], kk)
                _add(weight * run, v, &sums[2, 0, 0], kk)
                if t + run < b - 1:
                    _add(weight * run, v, &sums[1, 0, 0], kk)
                    _add(weight * run, crossed, &sums[3, 0, 0], kk)
            run = 0
            frozen = False
            if t == b - 1:
                for i in range(kk):
                    v[i] = (&inverse[at, 0, 0])[i]
            else:
                _before(&inverse[at, 0, 0], &gain[at, 0, 0], v, crossed, newer, k)
                frozen = t + 1 < b - 1 and at == slot[t + 1] and _repeats(newer, v, kk, tolerance)
                swap = v
                v = newer
                newer = swap
        run += 1
        if marginal.shape[0] > 0:
            for i in range(kk):
                (&marginal[t, 0, 0])[i] = v[i]
    # the first step stands alone
    _add(weight, v, &of_pattern[pattern[a], 0, 0], kk)
    _add(weight, v, &sums[0, 0, 0], kk)
    if b - a > 1:
        _add(weight, v, &sums[1, 0, 0], kk)
        _add(weight, crossed, &sums[3, 0, 0], kk)


def covariances(const long long[::1] pattern, const long long[::1] starts, const long long[::1] ends,
                const double[::1] weight, const double[:, :, ::1] blocks, const double[:, ::1] first,
                const double[:, ::1] link, const double[:, ::1] squares, double tolerance,
                long long[::1] slot, double[:, :, ::1] inverse, double[:, :, ::1] gain, double[::1] log_det,
                double[:, :, ::1] of_pattern, double[:, :, ::1] sums, double[:, :, ::1] marginal):
    """Factor the precision of each shape, and sum the covariances of its steps; the slots used, -1 if not definite.

    Parameters
    ----------
    pattern : (n_rows,) IN
        Which of the blocks each row has.
    starts, ends : (n_shapes,) IN
        Rows of a sequence of each shape.
    weight : (n_shapes,) IN
        Weights of all sequences of the shape together.
    blocks : (n_patterns, k, k) IN
    first : (k, k) IN
        Precision of first states.
    link, squares : (k, k) IN
    tolerance : IN
        Share of its largest entry up to which a matrix repeats itself; never if negative.
    slot : (n_rows,) OUT
        Of the rows of shapes.
    inverse, gain : (n_slots, k, k) OUT
        D^-1 and K of each slot; as many as rows are enough.
    log_det : (n_shapes,) OUT
        ln|J|.
    of_pattern : (n_patterns, k, k) IN, OUT
        Sums of covariances of steps, by pattern.
    sums : (4, k, k) IN, OUT
        Of covariances of first steps, of steps before another, of steps after another, and of two successive steps.
    marginal : (n_rows, k, k) or (0, k, k) OUT
        Covariances of the rows of shapes.
    """
    cdef Py_ssize_t k = link.shape[0], shape, n_slots = 0
    cdef double* memory
    if k == 0 or pattern.shape[0] == 0:
        return 0
    memory = <double*> malloc(6 * k * k * sizeof(double))
    if memory == NULL:
        raise MemoryError()
    with nogil:
        for shape in range(starts.shape[0]):
            log_det[shape] = 0.0
            if starts[shape] < ends[shape] and n_slots >= 0:
                n_slots = _forward(starts[shape], ends[shape], pattern, blocks, first, link, squares, tolerance,
                                   n_slots, slot, inverse, gain, &log_det[shape], memory)
                if n_slots >= 0:
                    _back(starts[shape], ends[shape], pattern, slot, inverse, gain, weight[shape], tolerance,
                          of_pattern, sums, marginal, memory)
    free(memory)
    return n_slots


def means(const long long[::1] starts, const long long[::1] ends, const long long[::1] first_row,
          const long long[::1] slot, const double[:, :, ::1] inverse, const double[:, :, ::1] gain,
          double[:, ::1] linear, const double[:, ::1] noise):
    """Solve J x = linear in place, for all sequences: their means, or draws.

    Parameters
    ----------
    starts, ends : (n_sequences,) IN
        Rows of each sequence.
    first_row : (n_sequences,) IN
        The first row of the sequence that the slots of its shape stand at.
    slot : (n_rows,) IN
    inverse, gain : (n_slots, k, k) IN
    linear : (n_rows, k) IN, OUT
    noise : (n_rows, k) or (0, k) IN
        What each step is drawn away from its mean given the steps after it.
    """
    cdef Py_ssize_t k = linear.shape[1], n, t, a, b, i, j, at, shift
    cdef bint drawn = noise.shape[0] > 0
    cdef double total
    cdef double* here
    cdef double* there
    cdef const double* matrix
    cdef double* buffer
    if k == 0 or linear.shape[0] == 0:
        return
    buffer = <double*> malloc(k * sizeof(double))
    if buffer == NULL:
        raise MemoryError()
    with nogil:
        for n in range(starts.shape[0]):
            a = starts[n]
            b = ends[n]
            shift = first_row[n] - a
            for t in range(a + 1, b):
                there = &linear[t - 1, 0]
                here = &linear[t, 0]
                matrix = &gain[slot[t - 1 + shift], 0, 0]
                for j in range(k):
                    for i in range(k):
                        here[i] += matrix[j * k + i] * there[j]
            for t in range(b - 1, a - 1, -1):
                here = &linear[t, 0]
                at = slot[t + shift]
                matrix = &inverse[at, 0, 0]
                for i in range(k):
                    total = 0.0
                    for j in range(k):
                        total += matrix[j * k + i] * here[j]
                    buffer[i] = total
                if t < b - 1:
                    there = &linear[t + 1, 0]
                    matrix = &gain[at, 0, 0]
                    for i in range(k):
                        total = 0.0
                        for j in range(k):
                            total += matrix[i * k + j] * there[j]
                        buffer[i] += total
                for i in range(k):
                    here[i] = buffer[i]
                if drawn:
                    for i in range(k):
                        here[i] += noise[t, i]
    free(buffer)
