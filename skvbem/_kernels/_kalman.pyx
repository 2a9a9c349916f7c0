"""Chains of states with known transitions and independent noises: Kalman filter and disturbance smoother.

x_1 ~ N(0, diag(start)), x_t = A x_{t-1} + eta_t, y_ts = d_s' v_t + z_s' x_t + e_ts, with eta_tk ~ N(0, q_k), 0 where a
state has no noise, and e_ts ~ N(0, h_s). Columns of a step are taken in one after the other, missing ones not at all.
A and the rows z are sparse: `*_ends[i]` is the end of row i in `*_columns` and `*_values` [DK12 chapters 4 and 6.4].
Their values may differ from lane to lane. Of some groups of neighboring states second moments are summed, for rows of A
that are learned.
"""

from libc.math cimport log, sqrt
from libc.stdint cimport intptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

cdef double LOG_2PI = 1.8378770664093453

ctypedef struct Sparse:
    const long long* ends
    const long long* columns
    const double* values


cdef struct System:
    intptr_t k, p
    Sparse transition, reading
    const double* start
    const double* q
    const double* h


cdef struct Room:
    double* state       # (k,) predicted mean
    double* other       # (k,) the same of measurements less drawn ones
    double* spread      # (k, k) predicted covariance
    double* score       # (k,) r
    double* information  # (k, k) N
    double* drawn       # (k,) a drawn state
    double* work        # (k, k)
    double* gains       # (cells, k) of each observed cell: P z
    double* error       # (cells,) innovation
    double* variance    # (cells,) its variance
    double* kept        # (steps, groups, width, k + 1) of each state of a group its predicted mean and row of P


cdef inline intptr_t begin(const Sparse* rows, intptr_t i) noexcept nogil:
    return 0 if i == 0 else rows.ends[i - 1]


cdef inline double dot(const Sparse* rows, intptr_t i, const double* x) noexcept nogil:
    """Row i times x."""
    cdef double total = 0.0
    cdef intptr_t j
    for j in range(begin(rows, i), rows.ends[i]):
        total += rows.values[j] * x[rows.columns[j]]
    return total


cdef void step(const System* of, double* x, double* work) noexcept nogil:
    """x <- A x."""
    cdef intptr_t i
    for i in range(of.k):
        work[i] = dot(&of.transition, i, x)
    memcpy(x, work, of.k * sizeof(double))


cdef void step_back(const System* of, double* r, double* work) noexcept nogil:
    """r <- A' r."""
    cdef intptr_t i, j
    memset(work, 0, of.k * sizeof(double))
    for i in range(of.k):
        for j in range(begin(&of.transition, i), of.transition.ends[i]):
            work[of.transition.columns[j]] += of.transition.values[j] * r[i]
    memcpy(r, work, of.k * sizeof(double))


cdef void spread_on(const System* of, double* spread, double* work) noexcept nogil:
    """P <- A P A' + Q."""
    cdef intptr_t i, j, m, k = of.k
    cdef double value
    cdef const double* row
    for i in range(k):
        for m in range(k):
            work[i * k + m] = 0.0
        for j in range(begin(&of.transition, i), of.transition.ends[i]):
            value, row = of.transition.values[j], spread + of.transition.columns[j] * k
            for m in range(k):
                work[i * k + m] += value * row[m]
    for i in range(k):
        for m in range(i + 1):
            value = dot(&of.transition, m, work + i * k)
            spread[i * k + m] = value
            spread[m * k + i] = value
        spread[i * k + i] += of.q[i]


cdef void information_back(const System* of, double* information, double* work) noexcept nogil:
    """N <- A' N A."""
    cdef intptr_t i, j, m, k = of.k
    cdef double value
    cdef double* row
    memset(work, 0, k * k * sizeof(double))
    for i in range(k):
        for j in range(begin(&of.transition, i), of.transition.ends[i]):
            value, row = of.transition.values[j], work + of.transition.columns[j] * k
            for m in range(k):
                row[m] += value * information[i * k + m]
    memset(information, 0, k * k * sizeof(double))
    for i in range(k):
        for m in range(k):
            for j in range(begin(&of.transition, m), of.transition.ends[m]):
                information[i * k + of.transition.columns[j]] += of.transition.values[j] * work[i * k + m]


cdef double take_in(const System* of, const double* spread, intptr_t s, double* gain) noexcept nogil:
    """P z of column s, and the variance of its innovation."""
    cdef intptr_t i, j, k = of.k
    cdef double value
    cdef const double* row
    for i in range(k):
        gain[i] = 0.0
    for j in range(begin(&of.reading, s), of.reading.ends[s]):
        value, row = of.reading.values[j], spread + of.reading.columns[j] * k
        for i in range(k):
            gain[i] += value * row[i]
    return of.h[s] + dot(&of.reading, s, gain)


cdef void leave_out(const System* of, intptr_t s, const double* gain, double error, double variance,
                    double* score, double* information, double* work, double* pull, double* sureness) noexcept nogil:
    """r and N before a cell of column s from those after it; with u = v / F - K' r and D = 1 / F + K' N K."""
    cdef intptr_t i, j, c, k = of.k
    cdef double total = 0.0, of_gain = 0.0, value
    for i in range(k):
        total += gain[i] * score[i]
    pull[0] = (error - total) / variance
    for i in range(k):
        value = 0.0
        for j in range(k):
            value += information[i * k + j] * gain[j]
        work[i] = value / variance
        of_gain += work[i] * gain[i]
    sureness[0] = (1.0 + of_gain) / variance
    for j in range(begin(&of.reading, s), of.reading.ends[s]):
        c, value = of.reading.columns[j], of.reading.values[j]
        score[c] += value * pull[0]
        for i in range(k):
            information[c * k + i] -= value * work[i]
            information[i * k + c] -= value * work[i]
    for j in range(begin(&of.reading, s), of.reading.ends[s]):
        c, value = of.reading.columns[j], of.reading.values[j]
        for i in range(begin(&of.reading, s), of.reading.ends[s]):
            information[c * k + of.reading.columns[i]] += value * of.reading.values[i] * sureness[0]


cdef int share_out(intptr_t k, intptr_t n_cells, intptr_t n_kept, Room* room) except -1:
    """Memory of a pass over a sequence of so many observed cells; all of it is one piece, `room.state`."""
    cdef double* memory = <double*> calloc(4 * k + 3 * k * k + n_cells * (k + 2) + n_kept + 1, sizeof(double))
    if memory == NULL:
        raise MemoryError()
    room.state, room.other, room.score, room.drawn = memory, memory + k, memory + 2 * k, memory + 3 * k
    room.spread = memory + 4 * k
    room.information, room.work = room.spread + k * k, room.spread + 2 * k * k
    room.gains = room.spread + 3 * k * k
    room.error = room.gains + n_cells * k
    room.variance = room.error + n_cells
    room.kept = room.variance + n_cells
    return 0


cdef void keep(const System* of, const Room* room, bint draws, const long long* groups, intptr_t n_groups,
               intptr_t width, double* kept) noexcept nogil:
    """Predicted means and rows of covariances of the states of all groups; of paths that are drawn, predicted draws."""
    cdef intptr_t g, i, at, k = of.k
    for g in range(n_groups):
        for i in range(width):
            at = groups[g] + i
            kept[0] = room.other[at] + room.drawn[at] if draws else room.state[at]
            memcpy(kept + 1, room.spread + at * k, k * sizeof(double))
            kept += k + 1


cdef void add_products(const System* of, Room* room, bint draws, const long long* groups, intptr_t n_groups,
                       intptr_t width, double weight, const double* kept, double* products) noexcept nogil:
    """Second moments of the states of each group given all cells, from what was kept, r and N."""
    cdef intptr_t g, i, j, m, k = of.k
    cdef double value
    cdef const double* one
    cdef const double* other
    for g in range(n_groups):
        for i in range(width):
            one = kept + (g * width + i) * (k + 1)
            value = one[0]
            for m in range(k):
                value += one[1 + m] * room.score[m]
            room.state[i] = value
            for j in range(k):
                value = 0.0
                for m in range(k):
                    value += room.information[j * k + m] * one[1 + m]
                room.work[i * k + j] = value
        for i in range(width):
            for j in range(width):
                value = room.state[i] * room.state[j]
                if not draws:
                    other = kept + (g * width + j) * (k + 1)
                    value += other[1 + groups[g] + i]
                    for m in range(k):
                        value -= other[1 + m] * room.work[i * k + m]
                products[(g * width + i) * width + j] += weight * value


cdef void begin_sequence(const System* of, Room* room) noexcept nogil:
    cdef intptr_t i, k = of.k
    memset(room.state, 0, k * sizeof(double))
    memset(room.other, 0, k * sizeof(double))
    memset(room.spread, 0, k * k * sizeof(double))
    for i in range(k):
        room.spread[i * k + i] = of.start[i]


cdef System system_of(const long long[::1] transition_ends, const long long[::1] transition_columns,
                      const double[::1] transition_values, const long long[::1] reading_ends,
                      const long long[::1] reading_columns, const double[::1] reading_values,
                      const double[::1] start):
    cdef System of
    of.k, of.p = transition_ends.shape[0], reading_ends.shape[0]
    of.transition = Sparse(&transition_ends[0], &transition_columns[0], &transition_values[0])
    of.reading = Sparse(&reading_ends[0], &reading_columns[0], &reading_values[0])
    of.start = &start[0]
    return of


cdef intptr_t most_cells(const long long[::1] starts, intptr_t p):
    cdef intptr_t n, longest = 0
    for n in range(starts.shape[0] - 1):
        longest = max(longest, starts[n + 1] - starts[n])
    return longest * p


def passes(const long long[::1] pattern, const unsigned char[:, ::1] seen, const long long[::1] starts,
           const double[::1] weight, const double[:, ::1] measured, const double[:, ::1] outputs,
           const long long[::1] transition_ends, const long long[::1] transition_columns,
           const double[:, ::1] transition_values, const long long[::1] reading_ends,
           const long long[::1] reading_columns, const double[:, ::1] reading_values, const double[::1] start,
           const double[:, :, ::1] effects, const double[:, ::1] h, const double[:, ::1] q,
           const long long[::1] groups, const double[:, :, ::1] noise, const double[:, :, ::1] cell_noise,
           double[:, ::1] log_density, double[:, :, ::1] totals, double[:, ::1] squares, double[:, ::1] moves,
           double[:, :, :, ::1] products):
    """Log densities of sequences, and sums over rows of moments given them, or at paths that are drawn given them.

    Parameters
    ----------
    pattern, seen, starts, weight : (n_rows,), (n_patterns, p), (n_sequences + 1,), (n_sequences,) IN
    measured, outputs : (n_rows, p), (n_rows, r) IN
        Measurements, 0 where a cell is missing, and inputs v.
    transition_ends, transition_columns, transition_values, reading_ends, reading_columns, reading_values : IN
        A (k, k) and the rows z (p, k); values of each lane, (n_lanes, n_values).
    start : (k,) IN
    effects, h, q : (n_lanes, p, r), (n_lanes, p), (n_lanes, k) IN
    groups : (n_groups,) IN
        First states of groups.
    noise, cell_noise : (n_lanes, n_rows, k), (n_lanes, n_rows, p) IN
        Normal numbers with which paths are drawn; none for moments.
    log_density : (n_lanes, n_sequences) OUT
        Nats.
    totals, squares : (n_lanes, p, r), (n_lanes, p) IN, OUT
        Sums of y - z' x times v, and of its square, over observed cells.
    moves : (n_lanes, k) IN, OUT
        Sums of squares of eta, over all steps that follow another.
    products : (n_lanes, n_groups, width, width) IN, OUT
        Sums of products of the states of a group, over the same steps.
    """
    cdef System of
    cdef Room room
    cdef intptr_t k = transition_ends.shape[0], p = reading_ends.shape[0], r = outputs.shape[1]
    cdef intptr_t lane, n, t, s, j, at, cells = most_cells(starts, reading_ends.shape[0])
    cdef intptr_t n_groups = groups.shape[0], width = products.shape[2], kept = n_groups * width * (k + 1)
    cdef const long long* first_of = NULL
    cdef bint draws = noise.shape[0] > 0
    cdef double y, drawn, total, value, pull, sureness, w, tail
    if cells == 0:
        return
    of = system_of(transition_ends, transition_columns, transition_values[0], reading_ends, reading_columns,
                   reading_values[0], start)
    share_out(k, cells, cells // p * kept, &room)
    first_of = &groups[0] if n_groups else NULL
    with nogil:
        for lane in range(q.shape[0]):
            of.q, of.h = &q[lane, 0], &h[lane, 0]
            of.transition.values, of.reading.values = &transition_values[lane, 0], &reading_values[lane, 0]
            for n in range(starts.shape[0] - 1):
                if starts[n] == starts[n + 1]:
                    continue
                begin_sequence(&of, &room)
                at, total, w = 0, 0.0, weight[n]
                for t in range(starts[n], starts[n + 1]):
                    if t > starts[n]:
                        step(&of, room.state, room.work)
                        spread_on(&of, room.spread, room.work)
                    if draws:
                        if t > starts[n]:
                            step(&of, room.other, room.work)
                            step(&of, room.drawn, room.work)
                            for j in range(k):
                                room.drawn[j] += sqrt(of.q[j]) * noise[lane, t, j]
                        else:
                            for j in range(k):
                                room.drawn[j] = sqrt(of.start[j]) * noise[lane, t, j]
                    if n_groups and t > starts[n]:
                        keep(&of, &room, draws, first_of, n_groups, width, room.kept + (t - starts[n]) * kept)
                    for s in range(p):
                        if not seen[pattern[t], s]:
                            continue
                        y = measured[t, s]
                        for j in range(r):
                            y -= effects[lane, s, j] * outputs[t, j]
                        value = take_in(&of, room.spread, s, room.gains + at * k)
                        room.variance[at] = value
                        drawn = y - dot(&of.reading, s, room.state)
                        total -= 0.5 * (LOG_2PI + log(value) + drawn * drawn / value)
                        room.error[at] = drawn
                        if draws:
                            y -= dot(&of.reading, s, room.drawn) + sqrt(of.h[s]) * cell_noise[lane, t, s]
                            room.error[at] = y - dot(&of.reading, s, room.other)
                            shift(k, room.gains + at * k, room.error[at] / value, room.other)
                        shift(k, room.gains + at * k, drawn / value, room.state)
                        less(k, room.gains + at * k, value, room.spread)
                        at += 1
                log_density[lane, n] = total
                if w == 0.0:
                    continue
                memset(room.score, 0, k * sizeof(double))
                memset(room.information, 0, k * k * sizeof(double))
                for t in range(starts[n + 1] - 1, starts[n] - 1, -1):
                    if t < starts[n + 1] - 1:
                        step_back(&of, room.score, room.work)
                        information_back(&of, room.information, room.work)
                    for s in range(p - 1, -1, -1):
                        if not seen[pattern[t], s]:
                            continue
                        at -= 1
                        leave_out(&of, s, room.gains + at * k, room.error[at], room.variance[at], room.score,
                                  room.information, room.work, &pull, &sureness)
                        value = of.h[s] * pull
                        tail = of.h[s] - of.h[s] * of.h[s] * sureness
                        if draws:
                            value, tail = value + sqrt(of.h[s]) * cell_noise[lane, t, s], 0.0
                        for j in range(r):
                            value += effects[lane, s, j] * outputs[t, j]
                        squares[lane, s] += w * (value * value + tail)
                        for j in range(r):
                            totals[lane, s, j] += w * value * outputs[t, j]
                    if t > starts[n]:
                        for j in range(k):
                            value = of.q[j] * room.score[j]
                            tail = of.q[j] - of.q[j] * of.q[j] * room.information[j * k + j]
                            if draws:
                                value, tail = value + sqrt(of.q[j]) * noise[lane, t, j], 0.0
                            moves[lane, j] += w * (value * value + tail)
                        if n_groups:
                            add_products(&of, &room, draws, first_of, n_groups, width, w,
                                         room.kept + (t - starts[n]) * kept, &products[lane, 0, 0, 0])
    free(room.state)


cdef inline void shift(intptr_t k, const double* gain, double by, double* x) noexcept nogil:
    cdef intptr_t i
    for i in range(k):
        x[i] += gain[i] * by


cdef inline void less(intptr_t k, const double* gain, double variance, double* spread) noexcept nogil:
    """P <- P - P z z' P / F."""
    cdef intptr_t i, j
    cdef double value
    for i in range(k):
        value = gain[i] / variance
        for j in range(k):
            spread[i * k + j] -= value * gain[j]


def states(const long long[::1] pattern, const unsigned char[:, ::1] seen, const long long[::1] starts,
           const double[:, ::1] target, const long long[::1] transition_ends,
           const long long[::1] transition_columns, const double[::1] transition_values,
           const long long[::1] reading_ends, const long long[::1] reading_columns,
           const double[::1] reading_values, const double[::1] start, const double[::1] h, const double[::1] q,
           bint smoothed, double[:, ::1] mean, double[:, :, ::1] covariance):
    """Means and covariances of the states of all rows given their sequences, or given these up to each row.

    Parameters
    ----------
    pattern, seen, starts : (n_rows,), (n_patterns, p), (n_sequences + 1,) IN
    target : (n_rows, p) IN
        Measurements less effects of inputs.
    transition_ends, transition_columns, transition_values, reading_ends, reading_columns, reading_values : IN
    start, h, q : (k,), (p,), (k,) IN
    smoothed : IN
    mean, covariance : (n_rows, k), (n_rows, k, k) OUT
    """
    cdef System of
    cdef Room room
    cdef intptr_t k = transition_ends.shape[0], p = reading_ends.shape[0]
    cdef intptr_t n, t, s, i, j, at, cells = most_cells(starts, reading_ends.shape[0])
    cdef double value, pull, sureness
    if cells == 0:
        return
    of = system_of(transition_ends, transition_columns, transition_values, reading_ends, reading_columns,
                   reading_values, start)
    of.q, of.h = &q[0], &h[0]
    share_out(k, cells, 0, &room)
    with nogil:
        for n in range(starts.shape[0] - 1):
            if starts[n] == starts[n + 1]:
                continue
            begin_sequence(&of, &room)
            at = 0
            for t in range(starts[n], starts[n + 1]):
                if t > starts[n]:
                    step(&of, room.state, room.work)
                    spread_on(&of, room.spread, room.work)
                if smoothed:
                    memcpy(&mean[t, 0], room.state, k * sizeof(double))
                    memcpy(&covariance[t, 0, 0], room.spread, k * k * sizeof(double))
                for s in range(p):
                    if not seen[pattern[t], s]:
                        continue
                    value = take_in(&of, room.spread, s, room.gains + at * k)
                    room.variance[at] = value
                    room.error[at] = target[t, s] - dot(&of.reading, s, room.state)
                    shift(k, room.gains + at * k, room.error[at] / value, room.state)
                    less(k, room.gains + at * k, value, room.spread)
                    at += 1
                if not smoothed:
                    memcpy(&mean[t, 0], room.state, k * sizeof(double))
                    memcpy(&covariance[t, 0, 0], room.spread, k * k * sizeof(double))
            if not smoothed:
                continue
            memset(room.score, 0, k * sizeof(double))
            memset(room.information, 0, k * k * sizeof(double))
            for t in range(starts[n + 1] - 1, starts[n] - 1, -1):
                if t < starts[n + 1] - 1:
                    step_back(&of, room.score, room.work)
                    information_back(&of, room.information, room.work)
                for s in range(p - 1, -1, -1):
                    if not seen[pattern[t], s]:
                        continue
                    at -= 1
                    leave_out(&of, s, room.gains + at * k, room.error[at], room.variance[at], room.score,
                              room.information, room.work, &pull, &sureness)
                memcpy(room.spread, &covariance[t, 0, 0], k * k * sizeof(double))
                for i in range(k):
                    value = 0.0
                    for j in range(k):
                        value += room.spread[i * k + j] * room.score[j]
                    mean[t, i] += value
                product(k, room.spread, room.information, room.work)
                for i in range(k):
                    for j in range(k):
                        value = 0.0
                        for s in range(k):
                            value += room.work[i * k + s] * room.spread[s * k + j]
                        covariance[t, i, j] -= value
    free(room.state)


cdef void product(intptr_t k, const double* one, const double* other, double* out) noexcept nogil:
    cdef intptr_t i, j, m
    memset(out, 0, k * k * sizeof(double))
    for i in range(k):
        for m in range(k):
            for j in range(k):
                out[i * k + j] += one[i * k + m] * other[m * k + j]
