"""Sums over state paths of sequences, their posteriors, draws from them, and the best of them.

Rows of log likelihoods are those of one stretch: either whole sequences, or a piece of one sequence that is too long.
A piece takes up what the pieces before it have left (`carry`), and for the way back what those after it have (`after`).
Sequence s has the rows `starts[s]` to `ends[s]`; rows between sequences belong to none and change nothing.
Natural parameters need not be normalized; ln of a transition that does not exist is -inf. The C headers say how numbers
are kept in range, and when a sequence is passed over in logarithms instead (`in_logs`).
"""

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport intptr_t, uint16_t
from libc.string cimport memcpy, memset

ctypedef long long int64


cdef extern from "_chain.h" nogil:
    const double SKVBEM_LOST
    ctypedef struct skvbem_chain:
        intptr_t n_states, width
        const double* log_initial
        const double* log_transition
        double* initial
        double* initial_least
        double* transition
        double* transition_least
        double* transposed
        double* log_transposed
        int raised
    ctypedef struct skvbem_rows:
        intptr_t n_rows, stride
        const double* log_likelihood
        double* likelihood
        double* forward
        double* smoothed
        double* top
        double* scale
        double* raised
        double* scratch
    void skvbem_prepare_chain(skvbem_chain* chain)
    void skvbem_prepare_rows(const skvbem_chain* chain, skvbem_rows* rows)
    double skvbem_forward(const skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last,
                          const double* carry)
    double skvbem_share_left(const skvbem_chain* chain, const skvbem_rows* rows, intptr_t first, intptr_t last,
                             int begins, double* carry, double* least)
    int skvbem_any_raised(const skvbem_chain* chain, const skvbem_rows* rows, intptr_t first, intptr_t last)
    void skvbem_backward(const skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last,
                         const double* after, double weight)
    void skvbem_count_pairs(intptr_t n_states, intptr_t width, intptr_t n_rows, const double* left,
                            const double* right, double* counts)
    void skvbem_turn(intptr_t n_states, intptr_t width, intptr_t n_rows, intptr_t stride, const double* time_by_time,
                     double* out)


cdef extern from "_chain_log.h" nogil:
    double skvbem_log_forward(const skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last,
                              const double* carry)
    void skvbem_log_backward(const skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last, int ends,
                             double* after, double weight, double* counts)
    void skvbem_best_step(intptr_t n, const double* log_transition, const double* before, double* best, double* source)
    void skvbem_filtered(const skvbem_chain* chain, const skvbem_rows* rows, intptr_t first, intptr_t last,
                         int in_logs, double* out)
    intptr_t skvbem_draw_states(const skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last,
                                int in_logs, intptr_t next_state, const double* uniform, double* counts)
    void skvbem_mark_states(intptr_t n_states, intptr_t n_rows, intptr_t stride, const double* states, double* out)


cdef intptr_t width_of(intptr_t n_states) noexcept nogil:
    return (n_states + 3) // 4 * 4


cdef intptr_t LINE = 8  # doubles of a cache line: arrays that begin with one are read in fewer of them


def work_size(Py_ssize_t n_states, Py_ssize_t n_rows):
    """Doubles that passes over so many rows of a lane at a time need to work in."""
    cdef intptr_t width = width_of(n_states)
    cdef intptr_t of_rows = (3 * n_rows + 1) * width + 3 * n_rows, of_chain = width * (2 + 4 * n_states + 8)
    return (LINE + of_rows + of_chain + n_states * n_states + LINE - 1) // LINE * LINE


cdef double* lay_out(double* work, intptr_t n_states, intptr_t n_rows, skvbem_chain* chain,
                     skvbem_rows* rows) noexcept nogil:
    """Cut the memory up; returns room for (n_states, width)."""
    cdef intptr_t width = width_of(n_states)
    chain.n_states, chain.width = n_states, width
    work += (LINE - (<size_t>work // sizeof(double)) % LINE) % LINE
    rows.likelihood = work  # the parts that are run through row by row come first
    rows.forward = rows.likelihood + (n_rows + 1) * width
    rows.smoothed = rows.forward + n_rows * width
    chain.transition = rows.smoothed + n_rows * width
    chain.transition_least = chain.transition + n_states * width
    chain.transposed = chain.transition_least + n_states * width
    chain.initial = chain.transposed + n_states * width
    chain.initial_least = chain.initial + width
    rows.scratch = chain.initial_least + width
    chain.log_transposed = rows.scratch + 8 * width
    rows.top = chain.log_transposed + n_states * n_states
    rows.scale = rows.top + n_rows
    rows.raised = rows.scale + n_rows
    return rows.raised + n_rows


cdef intptr_t take_up(skvbem_chain* chain, skvbem_rows* rows, const double* log_likelihood, intptr_t n_rows,
                      const int64[::1] starts, intptr_t s, intptr_t at_once, bint passed, intptr_t* at) noexcept nogil:
    """Make the rows from sequence s on ready, as many whole sequences as may be passed over at once, one at least.

    Returns the first sequence that is left; `at` is the first row.
    """
    cdef intptr_t n = starts.shape[0], left = s, stop = 0
    at[0] = starts[s]
    while left < n and (left == s or (starts[left + 1] if left + 1 < n else n_rows) - at[0] <= at_once):
        left += 1
        stop = starts[left] if left < n else n_rows
    rows.n_rows, rows.stride, rows.log_likelihood = stop - at[0], n_rows, log_likelihood + at[0]
    if not passed:
        skvbem_prepare_rows(chain, rows)
    return left


cdef void forget(skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last) noexcept nogil:
    """Rows that count for nothing."""
    if last > first:
        memset(rows.smoothed + first * chain.width, 0, (last - first) * chain.width * sizeof(double))
        memset(rows.forward + first * chain.width, 0, (last - first) * chain.width * sizeof(double))


cdef double pass_forward(skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last,
                         unsigned char* in_logs, double* at_every_row) noexcept nogil:
    """ln Z of a whole sequence; turns to logarithms where numbers that were raised have a say.

    `at_every_row`: NULL, or where a double tells that all rows and not the last alone must be right.
    """
    cdef double log_z, share, least = 1.0
    if first == last:
        return 0.0
    if not in_logs[0]:
        log_z = skvbem_forward(chain, rows, first, last, NULL)
        if isfinite(log_z):
            if not skvbem_any_raised(chain, rows, first, last):
                return log_z
            share = skvbem_share_left(chain, rows, first, last, True, rows.scratch + 2 * chain.width, &least)
            if (least if at_every_row else share) >= 1.0 - SKVBEM_LOST:
                return log_z
        in_logs[0] = 1
    return skvbem_log_forward(chain, rows, first, last, NULL)


cdef double pass_piece(skvbem_chain* chain, skvbem_rows* rows, intptr_t first, intptr_t last, bint in_logs,
                       const double* carry) noexcept nogil:
    """What ln Z grows by over a piece of a sequence after what was carried to it."""
    if in_logs:
        return skvbem_log_forward(chain, rows, first, last, carry)
    return skvbem_forward(chain, rows, first, last, carry)


def forward(const double[:, :, ::1] log_likelihood, const double[:, ::1] log_initial,
            const double[:, :, ::1] log_transition, const int64[::1] starts, const int64[::1] ends, bint begins,
            bint goes_on, double[:, ::1] carry, unsigned char[:, ::1] in_logs, double[:, ::1] log_z,
            double[:, :, ::1] filtered, double[:, ::1] work, Py_ssize_t at_once):
    """Forward passes: ln Z of sequences, and the posteriors of states given the rows so far.

    Parameters
    ----------
    log_likelihood : (n_lanes, n_states, n_rows) IN
    log_initial : (n_lanes, n_states) IN
    log_transition : (n_lanes, n_states, n_states) IN
    starts, ends : (n_sequences,) IN
    begins, goes_on : whether the rows begin their sequences, and whether the last one goes on after them; only a piece
        of a single sequence may do otherwise than begin and not go on
    carry : (n_lanes, 2 width + 2) IN and OUT
        Of a piece: what the next one needs.
    in_logs : (n_lanes, n_sequences) IN and OUT
        Whether a sequence is passed over in logarithms. Of a sequence in pieces it is set with the last one, where the
        passes so far must be repeated so.
    log_z : (n_lanes, n_sequences) OUT, of a piece IN and OUT
        Nats.
    filtered : (n_lanes, n_rows, n_states) OUT; no rows if not wanted
    work : (n_lanes, work_size) OUT, or (1, work_size) scratch
        What `smooth` and `draw` may take up of the passes over a piece.
    at_once : rows that `work` has room for; no sequence has more
    """
    cdef Py_ssize_t lane, s, n_lanes = log_likelihood.shape[0], n_states = log_likelihood.shape[1]
    cdef intptr_t width = width_of(n_states), n_rows = log_likelihood.shape[2], last, left, at
    cdef const double* of_rows
    cdef skvbem_chain chain
    cdef skvbem_rows rows
    cdef double found, share, least
    cdef double* of_lane
    cdef bint every = filtered.shape[1] > 0
    if n_rows == 0 or starts.shape[0] == 0:
        return
    with nogil:
        for lane in range(n_lanes):
            lay_out(&work[lane if work.shape[0] > 1 else 0, 0], n_states, at_once, &chain, &rows)
            chain.log_initial, chain.log_transition = &log_initial[lane, 0], &log_transition[lane, 0, 0]
            of_rows = &log_likelihood[lane, 0, 0]
            skvbem_prepare_chain(&chain)
            of_lane = &carry[lane, 0]
            if begins and not goes_on:
                left = 0
                for s in range(starts.shape[0]):
                    if s == left:
                        left = take_up(&chain, &rows, of_rows, n_rows, starts, s, at_once, False, &at)
                    if starts[s] == ends[s]:
                        log_z[lane, s] = 0.0
                        continue
                    log_z[lane, s] = pass_forward(&chain, &rows, starts[s] - at, ends[s] - at, &in_logs[lane, s],
                                                  rows.scratch if every else NULL)
                    if every:
                        skvbem_filtered(&chain, &rows, starts[s] - at, ends[s] - at, in_logs[lane, s],
                                        &filtered[lane, at, 0])
                continue
            take_up(&chain, &rows, of_rows, n_rows, starts, 0, at_once, False, &at)
            last = ends[0] - 1
            if begins:
                log_z[lane, 0] = 0.0
                of_lane[2 * width] = chain.raised
                of_lane[2 * width + 1] = 1.0
            if in_logs[lane, 0]:
                found = skvbem_log_forward(&chain, &rows, starts[0], ends[0], NULL if begins else of_lane)
                memcpy(of_lane, rows.forward + last * width, n_states * sizeof(double))
            else:
                found = skvbem_forward(&chain, &rows, starts[0], ends[0], NULL if begins else of_lane)
                if skvbem_any_raised(&chain, &rows, starts[0], ends[0]) and not of_lane[2 * width]:
                    of_lane[2 * width] = 1.0
                    if not begins:
                        memcpy(of_lane + width, of_lane, width * sizeof(double))
                for s in range(width):
                    of_lane[s] = rows.forward[last * width + s] * rows.scale[last]
                share, least = 1.0, of_lane[2 * width + 1]
                if of_lane[2 * width]:
                    share = skvbem_share_left(&chain, &rows, starts[0], ends[0], begins, of_lane + width, &least)
                    of_lane[2 * width + 1] = least
                if not goes_on:
                    in_logs[lane, 0] = not (isfinite(log_z[lane, 0] + found)
                                            and (least if every else share) >= 1.0 - SKVBEM_LOST)
            log_z[lane, 0] += found
            if every:
                skvbem_filtered(&chain, &rows, starts[0], ends[0], in_logs[lane, 0], &filtered[lane, 0, 0])


def smooth(double[:, :, ::1] log_likelihood, const double[:, ::1] log_initial, const double[:, :, ::1] log_transition,
           const int64[::1] starts, const int64[::1] ends, bint begins, bint goes_on, const double[::1] weight,
           double[:, ::1] carry, double[:, ::1] after, unsigned char[:, ::1] in_logs, double[:, ::1] log_z,
           double[:, ::1] first_counts, double[:, :, ::1] counts, double[:, ::1] work, bint passed,
           Py_ssize_t at_once):
    """Turn log likelihoods into posteriors of the states of each row, times the weights of their sequences.

    Parameters
    ----------
    log_likelihood : (n_lanes, n_states, n_rows) IN and OUT
        If `passed`, what comes in is of lanes alone that are passed over in logarithms.
    log_initial, log_transition, starts, ends, begins, goes_on
        As in `forward`.
    weight : (n_sequences,) IN
        How often each sequence counts.
    carry : (n_lanes, 2 width + 2) IN
        Of a piece: what `forward` left of the piece before.
    after : (n_lanes, width) IN and OUT
        Of a piece: what this function left of the piece after it.
    in_logs : (n_lanes, n_sequences) IN and OUT
    log_z : (n_lanes, n_sequences) OUT, of a piece IN
        -inf for a sequence that no path can make; posteriors are 0 there.
    first_counts : (n_lanes, n_states) IN and OUT
        Expected first states are added.
    counts : (n_lanes, n_states, n_states) IN and OUT
        Expected transitions are added.
    work : (n_lanes, work_size) or (1, work_size) scratch
    passed : whether the forward pass over this piece, of all lanes, stands in `work`
    at_once : as in `forward`
    """
    cdef Py_ssize_t lane, s, i, j, n_lanes = log_likelihood.shape[0], n_states = log_likelihood.shape[1]
    cdef intptr_t width = width_of(n_states), n_rows = log_likelihood.shape[2], reached, left, at, first, last
    cdef const double* of_rows
    cdef bint whole = begins and not goes_on
    cdef skvbem_chain chain
    cdef skvbem_rows rows
    cdef double* pairs
    cdef double* room
    if n_rows == 0:
        return
    with nogil:
        for lane in range(n_lanes):
            pairs = lay_out(&work[lane if work.shape[0] > 1 else 0, 0], n_states, at_once, &chain, &rows)
            room = rows.scratch + 4 * width
            chain.log_initial, chain.log_transition = &log_initial[lane, 0], &log_transition[lane, 0, 0]
            of_rows = &log_likelihood[lane, 0, 0]
            if not passed:
                skvbem_prepare_chain(&chain)
            memset(pairs, 0, n_states * width * sizeof(double))
            left = 0
            for s in range(starts.shape[0]):
                if s == left:
                    left = take_up(&chain, &rows, of_rows, n_rows, starts, s, at_once, passed, &at)
                    memset(rows.likelihood + rows.n_rows * width, 0, width * sizeof(double))
                    reached = 0
                first, last = starts[s] - at, ends[s] - at
                forget(&chain, &rows, reached, first)
                reached = last
                if whole or first == last:
                    log_z[lane, s] = pass_forward(&chain, &rows, first, last, &in_logs[lane, s], NULL)
                elif not passed:
                    pass_piece(&chain, &rows, first, last, in_logs[lane, s], NULL if begins else &carry[lane, 0])
                if weight[s] == 0.0 or log_z[lane, s] == -INFINITY:
                    forget(&chain, &rows, first, last)
                elif first < last:
                    if in_logs[lane, s]:
                        skvbem_log_backward(&chain, &rows, first, last, not goes_on,
                                            room if whole else &after[lane, 0], weight[s], &counts[lane, 0, 0])
                    else:
                        if goes_on:
                            memcpy(rows.likelihood + last * width, &after[lane, 0], width * sizeof(double))
                        skvbem_backward(&chain, &rows, first, last, &after[lane, 0] if goes_on else NULL, weight[s])
                        if not whole:
                            memcpy(&after[lane, 0], rows.likelihood + first * width, width * sizeof(double))
                    if begins:
                        for i in range(n_states):
                            first_counts[lane, i] += rows.smoothed[first * width + i]
                if s + 1 == left:
                    forget(&chain, &rows, reached, rows.n_rows)
                    skvbem_count_pairs(n_states, width, rows.n_rows, rows.forward, rows.likelihood, pairs)
                    skvbem_turn(n_states, width, rows.n_rows, rows.stride, rows.smoothed, &log_likelihood[lane, 0, at])
            for i in range(n_states):
                for j in range(n_states):
                    counts[lane, i, j] += pairs[i * width + j] * chain.transition[i * width + j]


def draw(double[:, :, ::1] log_likelihood, const double[:, ::1] log_initial,
         const double[:, :, ::1] log_transition, const int64[::1] starts, const int64[::1] ends, bint begins,
         bint goes_on, double[:, ::1] carry, int64[::1] after, unsigned char[:, ::1] in_logs, double[:, ::1] log_z,
         const double[:, ::1] uniform, double[:, ::1] first_counts, double[:, :, ::1] counts, double[:, ::1] work,
         bint passed, Py_ssize_t at_once):
    """Turn log likelihoods into state paths drawn from their posteriors: forward filtering, backward sampling.

    Parameters
    ----------
    log_likelihood : (n_lanes, n_states, n_rows) IN and OUT
        1 for the state of a row, 0 for others, and in rows of no sequence.
    log_initial, log_transition, starts, ends, begins, goes_on, carry, in_logs, log_z : as in `smooth`
    work, passed, at_once : as in `smooth`
    after : (n_lanes,) IN and OUT
        Of a piece: the state drawn at the first row of the piece after it.
    uniform : (n_lanes, n_rows) IN
        Uniform numbers, one for each row.
    first_counts : (n_lanes, n_states) IN and OUT
        First states drawn are added.
    counts : (n_lanes, n_states, n_states) IN and OUT
        Transitions drawn are added.
    """
    cdef Py_ssize_t lane, s, t, n_lanes = log_likelihood.shape[0], n_states = log_likelihood.shape[1]
    cdef intptr_t n_rows = log_likelihood.shape[2], left, at, first, last, reached
    cdef const double* of_rows
    cdef bint whole = begins and not goes_on
    cdef skvbem_chain chain
    cdef skvbem_rows rows
    if n_rows == 0:
        return
    with nogil:
        for lane in range(n_lanes):
            lay_out(&work[lane if work.shape[0] > 1 else 0, 0], n_states, at_once, &chain, &rows)
            chain.log_initial, chain.log_transition = &log_initial[lane, 0], &log_transition[lane, 0, 0]
            of_rows = &log_likelihood[lane, 0, 0]
            if not passed:
                skvbem_prepare_chain(&chain)
            left = 0
            for s in range(starts.shape[0]):
                if s == left:
                    left = take_up(&chain, &rows, of_rows, n_rows, starts, s, at_once, passed, &at)
                    reached = 0
                first, last = starts[s] - at, ends[s] - at
                for t in range(reached, first):
                    rows.scale[t] = -1.0
                reached = last
                if whole or first == last:
                    log_z[lane, s] = pass_forward(&chain, &rows, first, last, &in_logs[lane, s], NULL)
                elif not passed:
                    pass_piece(&chain, &rows, first, last, in_logs[lane, s], NULL if begins else &carry[lane, 0])
                if first < last:
                    after[lane] = skvbem_draw_states(&chain, &rows, first, last, in_logs[lane, s],
                                                     after[lane] if goes_on else -1, &uniform[lane, at],
                                                     &counts[lane, 0, 0])
                    if begins:
                        first_counts[lane, after[lane]] += 1.0
                if s + 1 == left:
                    for t in range(reached, rows.n_rows):
                        rows.scale[t] = -1.0
                    skvbem_mark_states(n_states, rows.n_rows, n_rows, rows.scale, &log_likelihood[lane, 0, at])


def best_forward(const double[:, ::1] log_likelihood, const double[::1] log_initial,
                 const double[:, ::1] log_transition, const int64[::1] starts, bint begins, double[::1] best,
                 uint16_t[:, ::1] source, double[::1] reached):
    """Best paths to every state of every row, by the state before.

    Parameters
    ----------
    log_likelihood : (n_states, n_rows) IN
    log_initial : (n_states,) IN
    log_transition : (n_states, n_states) IN
    starts : (n_sequences + 1,) IN
        First rows of the sequences, and the end. Of a piece (not `begins`) of a single sequence the first is 0.
    best : (3 n_states,) IN and OUT
        ln p of the best path to each state of the last row; the rest is scratch.
    source : (n_rows, n_states) OUT
        The state before on the best path, the first of equals; of the last row of a sequence what ends best is in
        `reached`.
    reached : (2 n_sequences,) OUT
        ln p of the best path of each sequence, nats, and its last state.
    """
    cdef Py_ssize_t s, t, j, n = log_likelihood.shape[0], n_sequences = starts.shape[0] - 1
    cdef double* here = &best[0]
    cdef double* there = &best[n]
    cdef double* of_state = &best[2 * n]
    cdef double* swap
    cdef double top
    with nogil:
        for s in range(n_sequences):
            for t in range(starts[s], starts[s + 1]):
                if t == starts[s] and begins:
                    for j in range(n):
                        there[j] = log_initial[j]
                        source[t, j] = 0
                else:
                    skvbem_best_step(n, &log_transition[0, 0], here, there, of_state)
                    for j in range(n):
                        source[t, j] = <uint16_t>of_state[j]
                for j in range(n):
                    there[j] += log_likelihood[j, t]
                swap = here
                here = there
                there = swap
            top = -INFINITY
            reached[n_sequences + s] = 0.0
            for j in range(n):
                if here[j] > top:
                    top = here[j]
                    reached[n_sequences + s] = j
            reached[s] = top
        if here != &best[0]:
            memcpy(&best[0], here, n * sizeof(double))


def best_backward(const uint16_t[:, ::1] source, const int64[::1] starts, const double[::1] reached,
                  int64[::1] states):
    """Follow best paths back from their ends.

    Parameters
    ----------
    source : (n_rows, n_states) IN
    starts : (n_sequences + 1,) IN
    reached : (2 n_sequences,) IN
    states : (n_rows,) OUT
    """
    cdef Py_ssize_t s, t, n_sequences = starts.shape[0] - 1
    cdef intptr_t state
    with nogil:
        for s in range(n_sequences):
            state = <intptr_t>reached[n_sequences + s]
            for t in range(starts[s + 1] - 1, starts[s] - 1, -1):
                states[t] = state
                state = source[t, state]
