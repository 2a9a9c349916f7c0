"""First states and transitions as users know them: probabilities, or coefficients where covariates drive them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.models.hmm.transitions import Transitions

#: What first states and transitions are called in parameters: their probabilities, and before their coefficients.
NAMES = (("startprob", "start"), ("transmat", "transition"))


def named_rows(k: int, rows: Any, point: np.ndarray) -> dict[Any, np.ndarray]:
    """Parameters of first states (k = 0) or transitions (k = 1) at a point, by name."""
    name, prefix = NAMES[k]
    if isinstance(rows, Transitions):
        named = {name: rows.matrix(point)}
    else:
        intercepts, slopes = rows.parameters(point)
        named = {f"{prefix}_intercepts": intercepts, f"{prefix}_coefficients": slopes}
    return named if k else {each: values[0] for each, values in named.items()}


def quantiles_of_rows(k: int, rows: Any, posterior: Any, probability: float) -> dict[Any, np.ndarray]:
    """Quantiles under q of what `named_rows` has."""
    if isinstance(rows, Transitions):
        return named_rows(k, rows, posterior.quantiles(probability))
    prefix, units = NAMES[k][1], rows.to_units
    ends = posterior.mean @ units.T + norm.ppf(probability) * np.sqrt(posterior.variance_of(units))
    named = {f"{prefix}_intercepts": ends[..., 0], f"{prefix}_coefficients": ends[..., 1:]}
    return named if k else {each: values[0] for each, values in named.items()}


def _table(
    k: int,
    rows: Any,
    named: Mapping,
    intervals: Mapping | None,
    covariates: Sequence[str],
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
    numbers, states : sequence
        Of states: what they are called, and the states themselves.
    """
    prefix = NAMES[k][1]

    def stacked(values: Mapping) -> np.ndarray:
        """Rows of departure after each other, of each the intercepts and the coefficients, (n, n_states)."""
        both = np.concatenate([values[f"{prefix}_intercepts"][..., None], values[f"{prefix}_coefficients"]], axis=-1)
        both = np.where(rows.allowed[..., None], both.reshape(*rows.allowed.shape, -1), np.nan)
        return np.moveaxis(both, -1, 1).reshape(-1, rows.n_states)

    per = ["log odds at 0", *(f"log odds per {covariates[at]}" for at in rows.selected)]
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


def tables_of_coefficients(rows: Sequence, *of_chain: Any) -> list[ParameterTable]:
    """The tables of first states and of transitions, as far as covariates drive them; see `_table`."""
    driven = [k for k, each in enumerate(rows) if not isinstance(each, Transitions)]
    return [_table(k, rows[k], *of_chain) for k in driven]
