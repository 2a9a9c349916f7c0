"""The `durations` of a hidden Markov model: rows of a semi-Markov model from the prior of its transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skvbem._arguments import is_option
from skvbem._names import did_you_mean
from skvbem.durations import Duration, Hazards, Stages
from skvbem.emissions.specification import floats
from skvbem.estimators.given_parameters import given_distributions
from skvbem.models.hmm.semi_markov_rows import SemiMarkovRows
from skvbem.models.hmm.transitions import Transitions
from skvbem.reading.tables import show

GEOMETRIC = "geometric"


def has_durations(estimator: Any) -> bool:
    """True if states do not last geometrically; a single state lasts for ever."""
    return not is_option(getattr(estimator, "durations", GEOMETRIC), GEOMETRIC)


def check_durations(estimator: Any) -> None:
    """Refuse what are no durations, and what does not go with them."""
    owner, durations = type(estimator).__name__, estimator.durations
    if not isinstance(durations, Duration):
        name = f"{durations.__name__}()" if isinstance(durations, type) else durations
        raise TypeError(
            f"The 'durations' parameter of {owner} must be {GEOMETRIC!r}, or an object of skvbem.durations, such as "
            f"Hazards(32) or Stages(2). Got {show(durations)} instead."
            f"{did_you_mean(name, [GEOMETRIC, Hazards(), Stages()])}"
        )
    durations.check_parameters()
    for name in ("transitions", "start"):
        if getattr(estimator, name) is not None:
            raise ValueError(
                f"{name!r} of {owner} lets covariates drive a chain whose states last geometrically. Leave {name!r} at "
                f"None, or 'durations' at 'geometric'."
            )
    if estimator.learn_prior:
        raise ValueError(
            f"learn_prior=True of {owner} multiplies the concentrations of all transitions by one number, and "
            "'durations' have concentrations of their own. Leave it False; their "
            "prior='hierarchical' learns how long states last."
        )
    if estimator.sticky and not is_option(durations.prior, "transitions"):
        raise ValueError(
            f"'sticky' of {owner} adds counts of staying, which {show(durations)} does not take. Leave 'sticky' at 0, "
            "or give 'durations' prior='transitions'."
        )


def semi_markov_rows(durations: Duration, transitions: Transitions) -> SemiMarkovRows:
    """Rows of durations and next states, from the prior of transitions of a chain of several states."""
    concentration = transitions.concentration
    others = concentration * (1.0 - np.eye(transitions.n_states))
    leaving = durations.concentrations(others.sum(axis=1), np.diag(concentration))
    bins, n_states = durations.bins_of_ages, transitions.n_states
    ages = None if durations.first == "new" else np.full((n_states, len(bins)), 1.0 / len(bins))
    return SemiMarkovRows(leaving, others, bins, durations.are_stages, ages)


def given_next_states(owner: str, transmat: Any) -> np.ndarray:
    """Probabilities of the next state, (n, n); where a row holds zeros the state is not left, and is its own next."""
    array = floats(owner, "transmat", transmat, "an array of numbers")
    if array.ndim == 2 and len(array) == array.shape[1]:
        array = array + np.diag(~array.any(axis=1))
    return given_distributions(owner, "transmat", array, 2)


def point_of_stays(owner: str, rows: Any, transmat: np.ndarray, stays: Any) -> np.ndarray:
    """The point (n_cells,) of durations and next states that a user gives in place of a fit.

    Parameters
    ----------
    owner : str
    rows : SemiMarkovRows or Transitions
        The latter of a single state, which has no stays.
    transmat : ndarray of shape (n_states, n_states)
        As `given_next_states` has it.
    stays : mapping of str to array-like

    Raises
    ------
    ValueError
        If `stays` do not hold what the family of durations has, or rows lead to the state that is left.
    """
    if not isinstance(rows, SemiMarkovRows):
        if stays is not None:
            raise ValueError(f"A single state of {owner} lasts for ever. Leave 'stays' out.")
        return rows.statistics(transmat)
    n, n_bins = rows.n_states, rows.leaving.shape[2]
    shapes = {rows.name_of_ends: (n,) if rows.are_stages else (n, n_bins)}
    if rows.ages is not None:
        shapes["first_ages"] = (n, rows.n_ages)
    if not isinstance(stays, Mapping) or set(stays) != set(shapes):
        raise ValueError(
            f"from_parameters of {owner} with 'durations' needs 'stays', a mapping with "
            f"{' and '.join(map(repr, shapes))} alone, as `parameters_['chain']` of a fit has it. Got {show(stays)} "
            "instead."
        )
    ends = _probabilities(owner, rows.name_of_ends, stays[rows.name_of_ends], shapes[rows.name_of_ends])
    if (ends[~rows.others.any(axis=1)] > 0).any():
        raise ValueError(f"The {rows.name_of_ends!r} of {owner} are > 0 of a state that a prior or mask never leaves.")
    if (np.diag(transmat) * rows.others.any(axis=1)).any():
        raise ValueError(
            f"The 'transmat' of {owner} with 'durations' has probabilities of the next state, which is another: its "
            f"diagonal must be 0. Got {show(np.diag(transmat))} there."
        )
    if rows.ages is None:
        return rows.point_of(transmat, ends)
    first_ages = _probabilities(owner, "first_ages", stays["first_ages"], shapes["first_ages"])
    return rows.point_of(transmat, ends, given_distributions(owner, "first_ages", first_ages, 2))


def _probabilities(owner: str, name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Probabilities of a shape, as a user gives them."""
    array = floats(owner, name, value, "an array of probabilities")
    if array.shape != shape or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(
            f"The {name!r} in 'stays' of {owner} must be probabilities of the shape {shape}, from 0 to 1. Got "
            f"{show(array) if array.shape == shape else f'the shape {array.shape}'} instead."
        )
    return array
