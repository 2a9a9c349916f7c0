"""States of steps given other steps alone: those before, or all others, but not what the step itself holds."""

from __future__ import annotations

import numpy as np

from skvbem.emissions.outside import rows_last
from skvbem.models.hmm.forward_backward import ForwardBackward
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.semi_markov import SemiMarkovHMM
from skvbem.models.sequences import HMMData, segments

# Rows whose matrices of transitions, which may each be another one, are in memory at once. By hand.
_ROWS_AT_ONCE = 2**14


def states_given_earlier(model: HMM, natural: np.ndarray, data: HMMData) -> np.ndarray:
    """p(state of a step | the steps before it), (n_rows, n_states), at natural parameters (n_cells,).

    0 after a step that no path can make.
    """
    if isinstance(model, SemiMarkovHMM):
        return model.given_earlier(natural, data)
    first, into = model.chain_at(natural, data)
    filtered, states = model.filtered(natural, data), np.zeros((len(data), model.n_components))
    begins = np.zeros(len(data), dtype=bool)
    sequences = np.flatnonzero(data.lengths > 0)
    begins[data.starts[sequences]] = True
    states[begins] = first(sequences)
    later = np.flatnonzero(~begins)
    for at in range(0, len(later), _ROWS_AT_ONCE):
        rows = later[at : at + _ROWS_AT_ONCE]
        states[rows] = into(filtered[rows - 1], rows)
    return _normalized(states)


def states_given_others(model: HMM, natural: np.ndarray, data: HMMData) -> np.ndarray:
    """p(state of a step | all other steps of its sequence), (n_rows, n_states), at natural parameters (n_cells,)."""
    if isinstance(model, SemiMarkovHMM):
        return model.given_others(natural, data)
    later = (_from_the_end if model.is_homogeneous else _step_by_step)(model, natural, data)
    return _normalized(states_given_earlier(model, natural, data) * later)


def _from_the_end(model: HMM, natural: np.ndarray, data: HMMData) -> np.ndarray:
    """Likelihoods of later steps given the state of each, up to a factor of the step, (n_rows, n_states).

    They are the forward pass from the other end, along transposed transitions [ZM09].
    """
    n, (log_initial, log_transition) = len(data), model.log_chain(natural[:, None])
    step = model.step(natural[:, None], data)

    def log_likelihood(rows: slice) -> np.ndarray:
        logs = rows_last(step, data.table[n - rows.stop : n - rows.start], 1, model.n_components)
        return np.ascontiguousarray(logs[..., ::-1])

    backward = ForwardBackward(np.zeros_like(log_initial), log_transition.swapaxes(1, 2), log_likelihood)
    seen, starts = np.zeros((n, model.n_components)), np.ascontiguousarray(n - data.starts[::-1])
    for pieces in segments(starts, starts[1:], *model.segment_rows()):
        backward.forward(pieces, seen)
    later, rows = np.ones((n, model.n_components)), np.flatnonzero(_steps_to_go(data) > 0)
    later[rows] = seen[::-1][rows + 1] @ np.exp(log_transition[0]).T
    return _normalized(later)


def _step_by_step(model: HMM, natural: np.ndarray, data: HMMData) -> np.ndarray:
    """Likelihoods of later steps where each step has transitions of its own: backward, all sequences at once."""
    _, into = model.chain_at(natural, data)
    logs = model.forward_backward(natural[:, None], data).log_likelihood(slice(0, len(data)))[0].T
    log_later, n_states = np.zeros(logs.shape), model.n_components
    to_go = _steps_to_go(data)
    order, ends = np.argsort(to_go, kind="stable"), np.cumsum(np.bincount(to_go, minlength=1))
    for rows in np.split(order, ends[:-1])[1:]:
        every = into(np.tile(np.eye(n_states), (len(rows), 1)), np.repeat(rows + 1, n_states))
        with np.errstate(divide="ignore"):
            log_matrices = np.log(every.reshape(-1, n_states, n_states))
        log_later[rows] = np.logaddexp.reduce(log_matrices + (logs + log_later)[rows + 1, None], axis=-1)
        log_later[rows] -= np.maximum(log_later[rows].max(axis=1, keepdims=True), -1e300)
    return np.exp(log_later)


def _steps_to_go(data: HMMData) -> np.ndarray:
    """Steps of its sequence after each, (n_rows,)."""
    return np.repeat(data.starts[1:], data.lengths) - np.arange(len(data)) - 1


def _normalized(states: np.ndarray) -> np.ndarray:
    return states / np.maximum(states.sum(axis=1, keepdims=True), 1e-300)
