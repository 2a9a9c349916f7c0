"""Passes over state paths of sequences whose every step has first states or transitions of its own, in logarithms.

Of a lane at a time. Sequence s has the rows `starts[s]` to `ends[s]`; rows between sequences belong to none. `into` are
logs of transitions into each row, whose first rows mean nothing. They need not be normalized; -inf is no transition.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport intptr_t

ctypedef long long int64


cdef double log_sum(const double* x, intptr_t n, intptr_t stride) noexcept nogil:
    """Ln of the sum of exponentials; -inf of none."""
    cdef double most = -INFINITY, total = 0.0
    cdef intptr_t i
    for i in range(n):
        most = x[i * stride] if x[i * stride] > most else most
    if most == -INFINITY:
        return most
    for i in range(n):
        total += exp(x[i * stride] - most)
    return most + log(total)


cdef double pass_forward(
    const double[:, ::1] logs, const double[:, ::1] first, const double[:, :, ::1] into, intptr_t s, intptr_t start,
    intptr_t end, double[:, ::1] alpha, double[::1] scale, double* room
) noexcept nogil:
    """Ln Z of a sequence; `alpha` are logs of states given the rows so far, `scale` of each row given those before."""
    cdef intptr_t n = logs.shape[0], t, later, j, k
    cdef double log_z = 0.0
    for t in range(start, end):
        for k in range(n):
            if t == start:
                alpha[t, k] = first[s, k] + logs[k, t]
            else:
                for j in range(n):
                    room[j] = alpha[t - 1, j] + into[t, j, k]
                alpha[t, k] = log_sum(room, n, 1) + logs[k, t]
        scale[t] = log_sum(&alpha[t, 0], n, 1)
        log_z += scale[t]
        if scale[t] == -INFINITY:
            for later in range(t, end):
                for k in range(n):
                    alpha[later, k] = -INFINITY
            return -INFINITY
        for k in range(n):
            alpha[t, k] -= scale[t]
    return log_z


def forward(
    const double[:, ::1] logs, const double[:, ::1] first, const double[:, :, ::1] into, const int64[::1] starts,
    const int64[::1] ends, double[::1] log_z, double[:, ::1] alpha, double[::1] scale
):
    """Write ln Z of sequences, and logs of the states of each row given the rows so far.

    Parameters
    ----------
    logs : memoryview of shape (n_states, n_rows)
        Log likelihoods.
    first : memoryview of shape (n_sequences, n_states)
    into : memoryview of shape (n_rows, n_states, n_states)
    starts, ends : memoryview of shape (n_sequences,)
    log_z : memoryview of shape (n_sequences,)
        Written; -inf where no path can make the rows, 0 of none.
    alpha : memoryview of shape (n_rows, n_states)
    scale : memoryview of shape (n_rows + 2 n_states,)
        Logs of each row given those before, and room.
    """
    cdef intptr_t s, n_rows = logs.shape[1]
    if not n_rows:
        return
    with nogil:
        for s in range(starts.shape[0]):
            log_z[s] = pass_forward(logs, first, into, s, starts[s], ends[s], alpha, scale, &scale[n_rows])


def smooth(
    double[:, ::1] logs, const double[:, ::1] first, double[:, :, ::1] into, const int64[::1] starts,
    const int64[::1] ends, const double[::1] weight, double[::1] log_z, double[:, ::1] alpha, double[::1] scale
):
    """Turn log likelihoods into posteriors of the states of rows, and logs of transitions into those of transitions.

    Both are times the weights of sequences, and 0 in rows of none and of sequences that no path can make.

    Parameters
    ----------
    logs, first, into, starts, ends, log_z, alpha, scale
        As in `forward`; `logs` and `into` are overwritten.
    weight : memoryview of shape (n_sequences,)
    """
    cdef intptr_t n = logs.shape[0], n_rows = logs.shape[1], s, t, j, k, done = 0
    cdef double* beta
    cdef double here
    if not n_rows:
        return
    beta = &scale[n_rows]
    with nogil:
        for s in range(starts.shape[0]):
            forget(logs, into, done, starts[s])
            done = ends[s]
            log_z[s] = pass_forward(logs, first, into, s, starts[s], ends[s], alpha, scale, beta)
            if log_z[s] == -INFINITY:
                done = starts[s]
                continue
            for k in range(n):
                beta[k] = 0.0
            for t in range(ends[s] - 1, starts[s] - 1, -1):
                for k in range(n):  # what is to come, from this row on, and the posterior of this row
                    here = beta[k] + logs[k, t] - scale[t]
                    logs[k, t] = weight[s] * exp(alpha[t, k] + beta[k])
                    beta[k] = here
                if t > starts[s]:
                    step_back(into, alpha, t, n, weight[s], beta, beta + n)
                else:
                    for j in range(n):
                        for k in range(n):
                            into[t, j, k] = 0.0
        forget(logs, into, done, n_rows)


cdef void forget(double[:, ::1] logs, double[:, :, ::1] into, intptr_t first, intptr_t last) noexcept nogil:
    """Rows that count for nothing."""
    cdef intptr_t t, j, k
    for t in range(first, last):
        for k in range(logs.shape[0]):
            logs[k, t] = 0.0
            for j in range(logs.shape[0]):
                into[t, j, k] = 0.0


cdef void step_back(
    double[:, :, ::1] into, const double[:, ::1] alpha, intptr_t t, intptr_t n, double weight, double* beta,
    double* room
) noexcept nogil:
    """Posteriors of the transitions into a row, and what is to come after the row before in place of after this one."""
    cdef intptr_t j, k
    cdef double share
    for j in range(n):
        for k in range(n):
            into[t, j, k] += beta[k]
        room[j] = log_sum(&into[t, j, 0], n, 1)
        share = weight * exp(alpha[t - 1, j] + room[j])
        for k in range(n):
            into[t, j, k] = share * exp(into[t, j, k] - room[j]) if share > 0.0 else 0.0
    for j in range(n):
        beta[j] = room[j]


def draw(
    double[:, ::1] logs, const double[:, ::1] first, const double[:, :, ::1] into, const int64[::1] starts,
    const int64[::1] ends, const double[::1] uniform, double[::1] log_z, double[:, ::1] alpha, double[::1] scale
):
    """Turn log likelihoods into paths drawn from the posterior: 1 for the state of a row, else 0.

    Parameters
    ----------
    logs, first, into, starts, ends, log_z, alpha, scale
        As in `forward`; `logs` is overwritten, with zeros in sequences that no path can make.
    uniform : memoryview of shape (n_rows,)
        Uniform numbers.
    """
    cdef intptr_t n = logs.shape[0], n_rows = logs.shape[1], s, t, j, state
    cdef double* room
    cdef double total, left
    if not n_rows:
        return
    room = &scale[n_rows]
    with nogil:
        for s in range(starts.shape[0]):
            log_z[s] = pass_forward(logs, first, into, s, starts[s], ends[s], alpha, scale, room)
        for j in range(n):
            for t in range(n_rows):
                logs[j, t] = 0.0
        for s in range(starts.shape[0]):
            state = -1
            for t in range(ends[s] - 1, starts[s] - 1 if log_z[s] > -INFINITY else ends[s], -1):
                for j in range(n):
                    room[j] = alpha[t, j] + (into[t + 1, j, state] if state >= 0 else 0.0)
                total = log_sum(room, n, 1)
                left, state = uniform[t], -1
                for j in range(n):
                    if room[j] > -INFINITY:
                        state = j
                        left -= exp(room[j] - total)
                        if left < 0.0:
                            break
                logs[state, t] = 1.0


def best(
    const double[:, ::1] logs, const double[:, ::1] first, const double[:, :, ::1] into, const int64[::1] starts,
    const int64[::1] ends, int64[::1] states, double[::1] reached, double[:, ::1] score, int64[:, ::1] source
):
    """Write the most probable path of each sequence, the first of equals, and its ln p, nats.

    Parameters
    ----------
    logs, first, into, starts, ends
        As in `forward`.
    states : memoryview of shape (n_rows,)
    reached : memoryview of shape (n_sequences,)
    score : memoryview of shape (n_rows, n_states)
        Room, as is `source`.
    source : memoryview of shape (n_rows, n_states)
    """
    cdef intptr_t n = logs.shape[0], s, t, j, k, at
    cdef double most, here
    with nogil:
        for s in range(starts.shape[0]):
            reached[s] = 0.0
            for t in range(starts[s], ends[s]):
                for k in range(n):
                    most, at = -INFINITY, 0
                    if t == starts[s]:
                        most = first[s, k]
                    else:
                        for j in range(n):
                            here = score[t - 1, j] + into[t, j, k]
                            if here > most:
                                most, at = here, j
                    score[t, k] = most + logs[k, t]
                    source[t, k] = at
            at = 0
            for t in range(ends[s] - 1, starts[s] - 1, -1):
                if t == ends[s] - 1:
                    for k in range(n):
                        at = k if score[t, k] > score[t, at] else at
                    reached[s] = score[t, at]
                else:
                    at = source[t + 1, at]
                states[t] = at
