"""Priors of first states and transitions, from the parameters of `VBHMM`."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from skvbem.emissions.specification import floats, positive
from skvbem.models.hmm.transitions import Transitions, banded, left_to_right
from skvbem.reading.tables import show

LEFT_TO_RIGHT = "left-to-right"


#: A total of one, shared evenly [Beal's code].
UNIT = "unit"


def resolve_chain(estimator) -> tuple[Transitions, Transitions]:
    """The priors of the first state and of transitions.

    Raises
    ------
    ValueError
        If a parameter is not what it should be.
    """
    owner, n_states = type(estimator).__name__, estimator.n_components
    mask = _mask(owner, estimator.transmat_mask, n_states)
    may_begin = np.ones((1, n_states), dtype=bool)
    if isinstance(estimator.transmat_mask, str):  # it goes through the states from the first on
        may_begin = np.arange(n_states)[None] == 0
    first = _concentration(owner, "startprob_prior", estimator.startprob_prior, may_begin)
    pairs = _concentration(owner, "transmat_prior", estimator.transmat_prior, mask)
    pairs = pairs + estimator.sticky * (np.eye(n_states) * (pairs > 0))
    if not first.any():
        raise ValueError(f"The 'startprob_prior' parameter of {owner} leaves no state to begin in.")
    stuck = np.flatnonzero(~(pairs > 0).any(axis=1))
    if len(stuck):
        raise ValueError(
            f"'transmat_mask' and 'transmat_prior' of {owner} leave no transition from state {stuck[0]}. Allow one "
            "from every state, such as to itself."
        )
    return Transitions(first), Transitions(pairs)


def _concentration(owner: str, name: str, value, allowed: np.ndarray) -> np.ndarray:
    """Concentrations of the shape of what is allowed, 0 where it is not."""
    if isinstance(value, str):
        if value != UNIT:
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a number, {UNIT!r} or an array. Got {value!r} instead."
            )
        return Transitions.symmetric(len(allowed), 1.0, allowed).concentration
    given = floats(owner, name, value, f"a number, {UNIT!r} or an array of numbers")
    if not given.ndim:
        return float(positive(owner, name, value)) * allowed
    shape = allowed.shape if name == "transmat_prior" else allowed.shape[1:]
    if given.shape != shape:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number, {UNIT!r} or an array of shape {shape}, as there are "
            f"{allowed.shape[1]} states. Got an array of shape {given.shape}."
        )
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be finite and >= 0, where 0 rules a state out. Got {show(value)} "
            "instead."
        )
    if (given > 0).any():
        positive(owner, name, given[given > 0])  # neither too small nor too large
    return given * allowed if name == "transmat_prior" else given[None]


def _mask(owner: str, mask, n_states: int) -> np.ndarray:
    """Which transitions there are, (n_states, n_states)."""
    if mask is None:
        return np.ones((n_states, n_states), dtype=bool)
    if isinstance(mask, str) and mask == LEFT_TO_RIGHT:
        return left_to_right(n_states)
    if isinstance(mask, Integral) and not isinstance(mask, (bool, np.bool_)) and int(mask) >= 0:
        return banded(n_states, int(mask))
    array = np.asarray(mask) if not isinstance(mask, (str, Integral)) else np.empty(0)
    whole = array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()
    if array.shape != (n_states, n_states) or not (array.dtype.kind == "b" or whole):
        raise ValueError(
            f"The 'transmat_mask' parameter of {owner} must be None, {LEFT_TO_RIGHT!r}, an int >= 0 (how far a "
            f"transition may lead) or a boolean array of shape ({n_states}, {n_states}). Got {show(mask)} instead."
        )
    return array.astype(bool)
