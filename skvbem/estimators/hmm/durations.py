"""The `durations` of a hidden Markov model: rows of a semi-Markov model from the prior of its transitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem._arguments import is_option
from skvbem._names import did_you_mean
from skvbem.durations import Duration, Hazards, Stages
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
