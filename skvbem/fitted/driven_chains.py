"""First states and transitions as users know them: probabilities, or coefficients where covariates drive them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skvbem.emissions.coding import named_effects
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.models.hmm.covariates import SoftmaxTransitions

#: Names of parameters of first states and of transitions, by the names that their rows give them.
NAMES = (
    {"probabilities": "startprob", "intercepts": "start_intercepts", "coefficients": "start_coefficients"},
    {
        "probabilities": "transmat",
        "hazards": "hazards",
        "stage_ends": "stage_ends",
        "first_ages": "first_ages",
        "intercepts": "transition_intercepts",
        "coefficients": "transition_coefficients",
    },
)


def named_rows(*parameters: Mapping[str, np.ndarray]) -> dict[Any, np.ndarray]:
    """Parameters of first states and of transitions, as their rows name them, by the names that users know."""
    first, pairs = parameters
    of_first = {NAMES[0][name]: values[0] for name, values in first.items()}
    return of_first | {NAMES[1][name]: values for name, values in pairs.items()}


def _table(
    k: int,
    rows: SoftmaxTransitions,
    named: Mapping,
    intervals: Mapping | None,
    covariates: Sequence[str],
    levels: Sequence[np.ndarray],
    numbers: Sequence[str],
    states: Sequence[dict],
) -> ParameterTable:
    """Log odds against the mean over the states that there may be: at covariates of 0, and by unit of each.

    Parameters
    ----------
    k : {0, 1}
    rows : SoftmaxTransitions
    named : mapping of str to ndarray
        As `named_rows` has them.
    intervals : mapping of str to pair of ndarray, or None
    covariates : sequence of str
        Names of all columns that are given.
    levels : sequence of ndarray
        Of those that are categories; none of numbers.
    numbers, states : sequence
        Of states: what they are called, and the states themselves.
    """
    intercepts, slopes = NAMES[k]["intercepts"], NAMES[k]["coefficients"]

    def stacked(values: Mapping) -> np.ndarray:
        """Rows of departure after each other, of each the intercepts and the coefficients, (n, n_states)."""
        both = np.concatenate([values[intercepts][..., None], values[slopes]], axis=-1)
        both = np.where(rows.allowed[..., None], both.reshape(*rows.allowed.shape, -1), np.nan)
        return np.moveaxis(both, -1, 1).reshape(-1, rows.n_states)

    levels = levels if len(levels) else [np.empty(0)] * len(covariates)
    effects = named_effects([covariates[at] for at in rows.selected], [levels[at] for at in rows.selected])
    per = ["log odds at 0", *(f"log odds {'per' if name == of else 'of'} {name}" for of, name in effects)]
    before, of_rows = ([f"after {number}" for number in numbers], states) if k else (["first"], [{}])
    ends: tuple[np.ndarray, np.ndarray] | None = None
    if intervals is not None:
        low, high = (stacked({name: pair[side] for name, pair in intervals.items()}) for side in (0, 1))
        ends = low, high
    return ParameterTable(
        "transitions by covariates" if k else "first states by covariates",
        [f"{each}, {of}" for each in before for of in per],
        numbers,
        stacked(named),
        ends,
        [state for state in of_rows for _ in per],
        states,
    )


def tables_of_coefficients(rows: Sequence, named: Mapping, *of_chain: Any) -> list[ParameterTable]:
    """The tables of first states and of transitions, as far as these have coefficients; see `_table`."""
    driven = [k for k, names in enumerate(NAMES) if names["coefficients"] in named]
    return [_table(k, rows[k], named, *of_chain) for k in driven]
