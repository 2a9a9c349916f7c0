"""Priors of linear dynamical systems in units of the data, from the parameters of `VBLinearDynamicalSystem`."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem._compat import warn
from skvbem.errors import DataWarning
from skvbem.families.hyperpriors import floor_of_scales
from skvbem.models.linear_dynamical_system.first_states import round_prior
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.reading.inputs import InputReading

#: Shape and rate of the Gamma priors of learned precisions.
RELEVANCE = (1.0, 1.0)


def resolve_model(
    estimator: Any, reading: InputReading, k: int, relevance: tuple[float, float] | None = None
) -> LinearDynamicalSystem:
    """The model of so many states; the shape and rate of Gamma priors of precisions where these are hidden."""
    values, lengths = reading.values[0], reading.lengths
    weight = np.ones(len(lengths)) if reading.weight is None else reading.weight
    n_first = int((weight > 0).sum())
    if estimator.initial == "learned" and estimator.method == "ml" and n_first <= k:
        raise ValueError(
            f"initial='learned' with method='ml' takes more sequences than states: {n_first} first states say nothing "
            f"of a covariance of {k}. Take method='vb' or 'map', or initial='unit'."
        )
    of_rows = np.repeat(weight, lengths)
    origin, unit = moments(values, of_rows)
    _, group = np.unique(~np.isnan(values), axis=1, return_inverse=True)
    p = len(origin)
    transition, rate = estimator.transition_precision_prior, estimator.noise_rate_prior
    loading, offset = float(estimator.loading_precision_prior), float(estimator.offset_precision_prior)
    moving = float(k if transition is None else transition)
    return LinearDynamicalSystem.from_precisions(
        np.concatenate([np.full(k, moving), moving * mean_squares(reading.inputs, of_rows)]),
        np.concatenate([np.full(k, loading), [offset], loading * mean_squares(reading.output_inputs, of_rows)]),
        shape=np.full(p, float(estimator.noise_shape_prior)),
        rate=None if rate is None else np.full(p, float(rate)),
        rate_floor=floor_of_scales(of_rows @ ~np.isnan(values)) / 2,
        group=_in_order_of_appearance(group.ravel()),
        n_states=k,
        relevance=relevance,
        first=round_prior(k) if estimator.initial == "learned" else None,
        origin=origin,
        unit=unit,
    )


def moments(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the observed cells of columns; 0 and 1 where there is no spread to measure."""
    observed = ~np.isnan(values)
    n = np.maximum(weight @ observed, 1e-300)
    cells = np.where(observed, values, 0.0)
    mean = weight @ cells / n
    deviation = np.sqrt(weight @ np.where(observed, values - mean, 0.0) ** 2 / n)
    has_spread = deviation > 1e-12 * np.abs(mean)
    return mean, np.where(
        has_spread & (deviation > 0), deviation, np.maximum(np.abs(mean), 1.0) * ~has_spread + has_spread
    )


def mean_squares(inputs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean squares of inputs, which make priors of their effects free of units; 1 of an input that is always 0."""
    peak = np.abs(inputs).max(axis=0, initial=0.0)
    peak[peak == 0] = 1.0
    squares = weight @ (inputs / peak) ** 2 / weight.sum()
    return np.where(squares > 0, squares * peak**2, 1.0)


def _in_order_of_appearance(group: np.ndarray) -> np.ndarray:
    """Groups numbered in the order in which their first columns stand."""
    _, first, which = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which.ravel()]


def warn_of_columns(reading: InputReading) -> None:
    """Warn of columns that say nothing of states."""
    values = reading.values[0]
    for name, column in zip(reading.columns.names, values.T):
        seen = column[~np.isnan(column)]
        if len(seen) > 1 and (seen == seen[0]).all():
            warn(f"Column {name!r} of X holds one value wherever observed: it says nothing of the states.", DataWarning)
