"""States of steps given other steps alone: those before, or all others, but not what the step itself holds."""

from __future__ import annotations

import numpy as np

from skvbem.emissions.outside import rows_last
from skvbem.models.hmm.forward_backward import ForwardBackward
from skvbem.models.hmm.model import HMM
from skvbem.models.sequences import HMMData, segments

# Rows whose matrices of transitions, which may each be another one, are in memory at once. By hand.
_ROWS_AT_ONCE = 2**14


def states_left_out(model: HMM, natural: np.ndarray, data: HMMData, kind: str) -> np.ndarray:
    """p(state of a step | the steps before it) if `kind` is "forecast", or | all others if it is "ordinary".

    Raises
    ------
    ValueError
        If they are to be given all others, and covariates drive transitions.
    """
    if kind == "forecast":
        return states_given_earlier(model, natural, data)
    if not model.is_homogeneous:
        raise ValueError(
            "kind='ordinary' of pseudo_residuals is for chains whose transitions are the same at every step, and "
            "covariates drive those of this VBHMM. Take kind='forecast'."
        )
    return states_given_others(model, natural, data)


def states_given_earlier(model: HMM, natural: np.ndarray, data: HMMData) -> np.ndarray:
    """p(state of a step | the steps before it), (n_rows, n_states), at natural parameters (n_cells,).

    0 after a step that no path can make.
    """
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
    """p(state of a step | all other steps of its sequence), (n_rows, n_states), at natural parameters (n_cells,).

    The forward pass from the other end, along transposed transitions, tells what later steps say of each state
    [ZM09]. Of a model whose transitions are the same at every step.
    """
    n, (log_initial, log_transition) = len(data), model.log_chain(natural[:, None])
    step = model.step(natural[:, None], data)

    def from_the_end(rows: slice) -> np.ndarray:
        logs = rows_last(step, data.table[n - rows.stop : n - rows.start], 1, model.n_components)
        return np.ascontiguousarray(logs[..., ::-1])

    backward = ForwardBackward(np.zeros_like(log_initial), log_transition.swapaxes(1, 2), from_the_end)
    seen, starts = np.zeros((n, model.n_components)), np.ascontiguousarray(n - data.starts[::-1])
    for pieces in segments(starts, starts[1:], *model.segment_rows()):
        backward.forward(pieces, seen)
    later = np.ones((n, model.n_components))
    goes_on = np.ones(n, dtype=bool)
    goes_on[data.starts[1:][data.lengths > 0] - 1] = False
    rows = np.flatnonzero(goes_on)
    later[rows] = seen[::-1][rows + 1] @ np.exp(log_transition[0]).T
    return _normalized(states_given_earlier(model, natural, data) * _normalized(later))


def _normalized(states: np.ndarray) -> np.ndarray:
    return states / np.maximum(states.sum(axis=1, keepdims=True), 1e-300)
