"""Sums over paths of states that are stayed in for a number of steps: their posteriors, draws, the best of them.

A cell is a state and an age; the C header says where steps lead. Rows of log likelihoods are those of one stretch:
either whole sequences, or a piece of one sequence that is too long. A piece takes up what the pieces before it have
left (`carry`), and for the way back what those after it have (`after`). Sequence s has the rows `starts[s]` to
`ends[s]`; rows between sequences belong to none. A call passes over the sequences alone that `which` marks, in scaled
numbers or in logarithms, of which `cells` and `jumps` hold what it takes.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, intptr_t, uint64_t
from libc.string cimport memcpy, memset

ctypedef long long int64


cdef extern from "_stays.h" nogil:
    ctypedef struct skvbem_stays:
        intptr_t n_states, n_ages, width
        int keeps_all
        const double* first
        const double* up
        const double* keep
        const double* leave
        const double* jump
    ctypedef struct skvbem_stay_rows:
        intptr_t stride
        const double* logs
        double* forward
        double* leaving
        double* before
        double* scale
        uint64_t lost
        double* room
    double skvbem_stays_forward(const skvbem_stays* chain, skvbem_stay_rows* rows, intptr_t first, intptr_t last,
                                const double* carry, int raises)
    void skvbem_stays_backward(const skvbem_stays* chain, skvbem_stay_rows* rows, intptr_t first, intptr_t last,
                               const double* carry, int ends, double weight, double* after, double* smoothed,
                               double* first_counts, double* up_counts, double* keep_counts, double* leave_counts,
                               double* jump_counts)
    double skvbem_stays_log_forward(const skvbem_stays* chain, skvbem_stay_rows* rows, intptr_t first, intptr_t last,
                                    const double* carry)
    void skvbem_stays_log_backward(const skvbem_stays* chain, skvbem_stay_rows* rows, intptr_t first, intptr_t last,
                                   const double* carry, int ends, double weight, int without, double* after,
                                   double* smoothed, double* first_counts, double* up_counts, double* keep_counts,
                                   double* leave_counts, double* jump_counts)
    void skvbem_stays_reached(const skvbem_stays* chain, const skvbem_stay_rows* rows, intptr_t t, double* out)
    intptr_t skvbem_draw_state(intptr_t n, const double* weight, double uniform)
    void skvbem_stays_before(const skvbem_stays* chain, const double* reached, int in_logs, intptr_t next,
                             double* weight)
    double skvbem_exp(double x)


cdef intptr_t room_of(intptr_t n_states, intptr_t width) noexcept nogil:
    """Doubles that passes over a row need beside what they leave: three rows of cells, and some of states."""
    return 3 * n_states * width + 8 * n_states + 32


def work_size(Py_ssize_t n_states, Py_ssize_t width, Py_ssize_t n_rows):
    """Doubles that passes over so many rows of a sequence need to work in."""
    cdef intptr_t size = n_states * width
    size = (n_rows + 2) * (size + n_states + 1) + room_of(n_states, width) + 4 * size
    return size + n_states * n_states + n_states + 8


cdef double* lay_out(double* work, intptr_t n_rows, const double[:, :, :, ::1] cells, const double[:, :, ::1] jumps,
                     intptr_t lane, intptr_t n_ages, bint keeps_all, const double* logs, intptr_t stride,
                     skvbem_stays* chain, skvbem_stay_rows* rows) noexcept nogil:
    """The chain and the rows of a lane, in the memory that passes work in; returns room for sums of steps."""
    cdef intptr_t n = cells.shape[2], size = cells.shape[2] * cells.shape[3]
    chain.n_states, chain.n_ages, chain.width, chain.keeps_all = n, n_ages, cells.shape[3], keeps_all
    chain.first, chain.up = &cells[lane, 0, 0, 0], &cells[lane, 1, 0, 0]
    chain.keep, chain.leave, chain.jump = &cells[lane, 2, 0, 0], &cells[lane, 3, 0, 0], &jumps[lane, 0, 0]
    rows.lost = 0
    rows.stride, rows.logs, rows.scale, rows.before = stride, logs, work, work + n_rows
    rows.leaving = rows.before + n
    rows.room = rows.leaving + (n_rows + 2) * n
    rows.forward = rows.room + room_of(n, chain.width) + 4 * size + n * n + 8
    return rows.room + room_of(n, chain.width)


cdef void write_states(const skvbem_stays* chain, const skvbem_stay_rows* rows, intptr_t first, intptr_t last,
                       bint in_logs, bint predicted, double* out) noexcept nogil:
    """Probabilities of the states of each row given those so far, or those before it, out (n_rows, n_states)."""
    cdef intptr_t t, k, a, n = chain.n_states, width = chain.width
    cdef double total, sum, top
    cdef const double* here
    cdef double* reached = rows.room
    for t in range(first, last):
        here, total, top = rows.forward + t * n * width, 0.0, 0.0
        if in_logs:
            if not predicted:
                skvbem_stays_reached(chain, rows, t, reached)
                here = reached
            top = -INFINITY
            for k in range(n * width):
                top = here[k] if here[k] > top else top
        for k in range(n):
            sum = 0.0
            for a in range(width):
                sum += skvbem_exp(here[k * width + a] - top) if in_logs else here[k * width + a]
            out[t * n + k] = sum
            total += sum
        for k in range(n):
            out[t * n + k] /= total


def forward(const double[:, :, ::1] logs, const double[:, :, :, ::1] cells, const double[:, :, ::1] jumps,
            Py_ssize_t n_ages, bint keeps_all, const int64[::1] starts, const int64[::1] ends, bint begins,
            bint in_logs, bint raises,
            const unsigned char[:, ::1] which, double[:, :, ::1] carry, double[:, ::1] log_z, double[:, :, ::1] by_row,
            bint predicted, unsigned char[:, ::1] lost, double[::1] work, Py_ssize_t at_once):
    """Forward passes: ln Z of sequences, and the posteriors of states given the rows so far, or those before.

    Parameters
    ----------
    logs : (n_lanes, n_states, n_rows) IN
    cells : (n_lanes, 4, n_states, width) IN
        Of first cells, of steps to the next age, to the same cell, and out of the state: numbers or logarithms.
    jumps : (n_lanes, n_states, n_states) IN
    n_ages : ages that there are, of a width of a multiple of 8
    keeps_all : whether cells other than the last age may be kept in
    starts, ends : (n_sequences,) IN
    begins : whether the rows begin their sequences
    in_logs : whether `cells`, `jumps` and passes are in logarithms
    raises : whether cells that are next to nothing are raised in place of left out: Z is then too large if anything
    which : (n_lanes, n_sequences) IN
    carry : (n_lanes, 1 or n_sequences, n_states width) IN and OUT
        The cells of the last row, whose sum is 1, or their logarithms: of each sequence, or of the last one.
    log_z : (n_lanes, n_sequences) OUT, of a piece that does not begin IN and OUT
        Nats; -inf where no path can make the rows, or numbers are lost.
    by_row : (n_lanes, n_rows, n_states) OUT; no rows if not wanted
    lost : (n_lanes, n_sequences) OUT
        Set where scaled numbers have left something out that may matter; nothing else changes it.
    predicted : whether `by_row` is given the rows before each, in logarithms alone
    work : (work_size,) scratch
    at_once : rows that `work` has room for; no sequence has more
    """
    cdef Py_ssize_t lane, s, c, n_lanes = logs.shape[0], n_states = logs.shape[1]
    cdef intptr_t size = n_states * cells.shape[3], last
    cdef skvbem_stays chain
    cdef skvbem_stay_rows rows
    cdef double grown
    cdef intptr_t at
    cdef bint every = by_row.shape[1] > 0
    cdef const double* before
    if logs.shape[2] == 0:
        return
    with nogil:
        for lane in range(n_lanes):
            for s in range(starts.shape[0]):
                if not which[lane, s]:
                    continue
                if begins:
                    log_z[lane, s] = 0.0
                if starts[s] == ends[s] or log_z[lane, s] == -INFINITY:
                    continue
                lay_out(&work[0], at_once, cells, jumps, lane, n_ages, keeps_all, &logs[lane, 0, starts[s]],
                        logs.shape[2], &chain, &rows)
                at, last = s if carry.shape[1] > 1 else 0, ends[s] - starts[s]
                before = NULL
                if not begins:
                    before = &carry[lane, at, 0]
                if in_logs:
                    grown = skvbem_stays_log_forward(&chain, &rows, 0, last, before)
                else:
                    grown = skvbem_stays_forward(&chain, &rows, 0, last, before, raises)
                log_z[lane, s] += grown
                if rows.lost or grown == -INFINITY:
                    lost[lane, s] = 1
                if grown == -INFINITY:
                    if every:
                        memset(&by_row[lane, starts[s], 0], 0, last * n_states * sizeof(double))
                    continue
                if every:
                    write_states(&chain, &rows, 0, last, in_logs, predicted, &by_row[lane, starts[s], 0])
                if in_logs:
                    skvbem_stays_reached(&chain, &rows, last - 1, &carry[lane, at, 0])
                    continue
                for c in range(size):
                    carry[lane, at, c] = rows.forward[((last - 1) & 1 if raises else last - 1) * size + c]
                    carry[lane, at, c] *= rows.scale[last - 1]


cdef void forget(double[:, :, ::1] logs, intptr_t lane, intptr_t first, intptr_t last) noexcept nogil:
    """Rows that count for nothing."""
    cdef intptr_t k
    for k in range(logs.shape[1]):
        if last > first:
            memset(&logs[lane, k, first], 0, (last - first) * sizeof(double))


cdef intptr_t pass_again(double[:, :, ::1] logs, intptr_t lane, intptr_t s, const int64[::1] starts,
                         const int64[::1] ends, const double[:, ::1] log_z, const double* before, bint in_logs,
                         const skvbem_stays* chain, skvbem_stay_rows* rows) noexcept nogil:
    """Pass forward over a sequence, or a piece, once more; returns its rows, none where no path can make them.

    Rows that count for nothing are set to 0: those after it, and all of a sequence that no path can make.
    """
    cdef intptr_t n_rows = ends[s] - starts[s]
    if log_z[lane, s] == -INFINITY:
        n_rows = 0
    forget(logs, lane, starts[s] + n_rows, starts[s + 1] if s + 1 < starts.shape[0] else logs.shape[2])
    rows.logs = &logs[lane, 0, 0] + starts[s]
    if n_rows and in_logs:
        skvbem_stays_log_forward(chain, rows, 0, n_rows, before)
    elif n_rows:
        skvbem_stays_forward(chain, rows, 0, n_rows, before, False)
    return n_rows


def smooth(double[:, :, ::1] logs, const double[:, :, :, ::1] cells, const double[:, :, ::1] jumps,
           Py_ssize_t n_ages, bint keeps_all, const int64[::1] starts, const int64[::1] ends, bint begins, bint goes_on,
           bint in_logs, bint without,
           const double[::1] weight, const unsigned char[:, ::1] which, const double[:, ::1] carry,
           double[:, ::1] after, const double[:, ::1] log_z, double[:, :, ::1] counts, double[:, :, ::1] jump_counts,
           double[::1] work, Py_ssize_t at_once):
    """Turn log likelihoods into posteriors of the states of each row, times the weights of their sequences.

    Parameters
    ----------
    logs : (n_lanes, n_states, n_rows) IN and OUT
    cells, jumps, n_ages, keeps_all, starts, ends, begins, in_logs, which
        As in `forward`.
    goes_on : whether the last sequence goes on after the rows
    without : whether posteriors are given all rows but their own, in logarithms alone
    weight : (n_sequences,) IN
    carry : (n_lanes, n_states width) IN
        Of a piece: what `forward` left of the piece before.
    after : (n_lanes, n_states width + 8) IN and OUT
        Of a piece: what this function left of the piece after it.
    log_z : (n_lanes, n_sequences) IN
        -inf of a sequence that no path can make; posteriors are 0 there.
    counts : (n_lanes, 4, n_states width) IN and OUT
        Expected first cells and steps are added, in the order of `cells`.
    jump_counts : (n_lanes, n_states, n_states) IN and OUT
    work, at_once : as in `forward`
    """
    cdef Py_ssize_t lane, s, c, j, n_lanes = logs.shape[0], n = logs.shape[1]
    cdef intptr_t size = n * cells.shape[3], last, n_rows = logs.shape[2]
    cdef skvbem_stays chain
    cdef skvbem_stay_rows rows
    cdef double* sums
    cdef double* sums_of_jumps
    cdef const double* before
    if n_rows == 0:
        return
    with nogil:
        for lane in range(n_lanes):
            sums = lay_out(&work[0], at_once, cells, jumps, lane, n_ages, keeps_all, &logs[lane, 0, 0], n_rows,
                           &chain, &rows)
            sums_of_jumps = sums + 4 * size
            memset(sums, 0, (4 * size + n * n) * sizeof(double))
            for s in range(starts.shape[0]):
                if not which[lane, s]:
                    continue
                before = NULL
                if not begins:
                    before = &carry[lane, 0]
                last = pass_again(logs, lane, s, starts, ends, log_z, before, in_logs, &chain, &rows)
                if last and in_logs:
                    skvbem_stays_log_backward(
                        &chain, &rows, 0, last, before, not goes_on, weight[s], without, &after[lane, 0],
                        &logs[lane, 0, starts[s]], sums, sums + size, sums + 2 * size, sums + 3 * size, sums_of_jumps
                    )
                elif last:
                    skvbem_stays_backward(
                        &chain, &rows, 0, last, before, not goes_on, weight[s], &after[lane, 0],
                        &logs[lane, 0, starts[s]], sums, sums + size, sums + 2 * size, sums + 3 * size, sums_of_jumps
                    )
            for j in range(4):
                for c in range(size):
                    counts[lane, j, c] += sums[j * size + c] * (1.0 if in_logs else chain.first[j * size + c])
            for j in range(n):
                for c in range(n):
                    jump_counts[lane, j, c] += sums_of_jumps[j * n + c] * (1.0 if in_logs else chain.jump[j * n + c])


def draw(double[:, :, ::1] logs, const double[:, :, :, ::1] cells, const double[:, :, ::1] jumps,
         Py_ssize_t n_ages, bint keeps_all, const int64[::1] starts, const int64[::1] ends, bint begins, bint goes_on,
         bint in_logs, const unsigned char[:, ::1] which, const double[:, ::1] carry, int64[::1] after,
         const double[:, ::1] log_z,
         const double[:, ::1] uniform, double[:, :, ::1] counts, double[:, :, ::1] jump_counts, double[::1] work,
         Py_ssize_t at_once):
    """Turn log likelihoods into paths drawn from the posterior: 1 for the state of a row, else 0.

    Parameters
    ----------
    logs, cells, jumps, n_ages, keeps_all, starts, ends, begins, goes_on, in_logs, which, carry, log_z, counts,
    jump_counts, work, at_once
        As in `smooth`; first cells and steps drawn are counted.
    after : (n_lanes,) IN and OUT
        Of a piece: the first cell of the piece after it.
    uniform : (n_lanes, n_rows) IN
        Uniform numbers.
    """
    cdef Py_ssize_t lane, s, t, k, n_lanes = logs.shape[0], n = logs.shape[1]
    cdef intptr_t width = cells.shape[3], size = n * cells.shape[3], last, n_rows = logs.shape[2], next_cell, cell
    cdef skvbem_stays chain
    cdef skvbem_stay_rows rows
    cdef const double* before
    cdef double* reached
    cdef double* weight
    if n_rows == 0:
        return
    with nogil:
        for lane in range(n_lanes):
            reached = lay_out(&work[0], at_once, cells, jumps, lane, n_ages, keeps_all, &logs[lane, 0, 0], n_rows,
                              &chain, &rows)
            weight = reached + size
            for s in range(starts.shape[0]):
                if not which[lane, s]:
                    continue
                before = NULL
                if not begins:
                    before = &carry[lane, 0]
                last = pass_again(logs, lane, s, starts, ends, log_z, before, in_logs, &chain, &rows)
                if not last:
                    continue
                next_cell = after[lane] if goes_on else -1
                for t in range(last - 1, -2, -1):
                    if t >= 0:
                        if in_logs:
                            skvbem_stays_reached(&chain, &rows, t, reached)
                        else:
                            memcpy(reached, rows.forward + t * size, size * sizeof(double))
                    elif begins:
                        counts[lane, 0, next_cell] += 1.0
                        break
                    else:  # the last row of the piece before has its own number, which draws it there once more
                        after[lane] = next_cell
                        break
                    skvbem_stays_before(&chain, reached, in_logs, next_cell, weight)
                    cell = skvbem_draw_state(size, weight, uniform[lane, starts[s] + t])
                    count(next_cell, cell, lane, width, counts, jump_counts)
                    for k in range(n):
                        logs[lane, k, starts[s] + t] = 1.0 if k == cell // width else 0.0
                    next_cell = cell


cdef void count(intptr_t next_cell, intptr_t cell, intptr_t lane, intptr_t width, double[:, :, ::1] counts,
                double[:, :, ::1] jump_counts) noexcept nogil:
    """Count the step from a cell to the next, if there is one."""
    if next_cell < 0:
        return
    if next_cell == cell:
        counts[lane, 2, cell] += 1.0
    elif next_cell % width:
        counts[lane, 1, cell] += 1.0
    else:
        counts[lane, 3, cell] += 1.0
        jump_counts[lane, cell // width, next_cell // width] += 1.0


def best(const double[:, ::1] logs, const double[:, :, ::1] cells, const double[:, ::1] jumps,
         const int64[::1] starts, const int64[::1] ends, int64[::1] states, double[::1] reached,
         unsigned char[:, ::1] kept, int32_t[:, ::1] source, double[:, ::1] room):
    """Write the states of the most probable path of cells of each sequence, the first of equals, and its ln p, nats.

    Parameters
    ----------
    logs : (n_states, n_rows) IN
    cells, jumps
        Those of a lane, in logarithms.
    starts, ends : (n_sequences,) IN
    states : (n_rows,) OUT
    reached : (n_sequences,) OUT
    kept : (n_rows, n_states width) scratch
    source : (n_rows, n_states) scratch
    room : (2, n_states width) scratch
    """
    cdef intptr_t n = logs.shape[0], width = cells.shape[2], size = n * cells.shape[2], s, t, j, k, a, c, at
    cdef double here, most, other
    cdef double* now
    cdef double* old
    cdef double* held
    with nogil:
        for s in range(starts.shape[0]):
            reached[s] = 0.0
            if starts[s] == ends[s]:
                continue
            now, old = &room[0, 0], &room[1, 0]
            for t in range(starts[s], ends[s]):
                held = now
                now = old
                old = held
                if t == starts[s]:
                    for k in range(n):
                        for a in range(width):
                            now[k * width + a] = cells[0, k, a] + logs[k, t]
                    continue
                for k in range(n):
                    source[t, k] = -1
                    now[k * width] = -INFINITY
                for j in range(n):
                    most, at = -INFINITY, j * width
                    for a in range(width):
                        here = old[j * width + a] + cells[3, j, a]
                        if here > most:
                            most, at = here, j * width + a
                    for k in range(n):
                        if most + jumps[j, k] > now[k * width]:
                            now[k * width], source[t, k] = most + jumps[j, k], <int32_t>at
                for k in range(n):
                    for a in range(width):
                        c = k * width + a
                        here = old[c] + cells[2, k, a]
                        other = now[c] if a == 0 else old[c - 1] + cells[1, k, a - 1]
                        kept[t, c] = here > other
                        now[c] = (here if here > other else other) + logs[k, t]
            at = 0
            for c in range(size):
                at = c if now[c] > now[at] else at
            reached[s] = now[at]
            for t in range(ends[s] - 1, starts[s] - 1, -1):
                states[t] = at // width
                if t == starts[s] or kept[t, at]:
                    continue
                at = at - 1 if at % width else (source[t, at // width] if source[t, at // width] >= 0 else at)
