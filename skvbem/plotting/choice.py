"""Components, states, columns and intervals as displays choose them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from skvbem._arguments import is_whole
from skvbem._names import did_you_mean
from skvbem.fitting.evaluation import fit_at_hand
from skvbem.uncertainty.intervals import default_draws


def shown_components(counts: np.ndarray) -> list[int]:
    """The components that at least one row's worth of data is in, or else the one that has most."""
    counts = np.asarray(counts, dtype=float)
    return np.flatnonzero(counts >= 1.0).tolist() or [int(np.argmax(counts))]


def column_positions(features: Iterable, names: Sequence[str], owner: str) -> list[int]:
    """The positions of columns given by name or position.

    Raises
    ------
    ValueError
        If there is no such column, or one is named twice.
    """
    positions = []
    for feature in [features] if isinstance(features, (str, Integral)) else features:
        if isinstance(feature, str) and feature in names:
            positions.append(names.index(feature))
        elif is_whole(feature) and 0 <= int(feature) < len(names):
            positions.append(int(feature))
        else:
            raise ValueError(
                f"The 'features' parameter of {owner} names {feature!r}, which is no column of X."
                f"{did_you_mean(feature, names)}"
            )
        if positions[-1] in positions[:-1]:
            raise ValueError(f"The 'features' parameter of {owner} names {names[positions[-1]]!r} twice.")
    return positions


def states_in_order(estimator, order, owner: str) -> list[int]:
    """The states to draw, in order.

    Parameters
    ----------
    estimator : fitted VBHMM
    order : None, str or array-like of int
        None: those that at least one step's worth of data is in, by number; the name of a column: the same by what it
        is expected to hold, ascending; or these states.
    owner : str
        Name of the display.

    Raises
    ------
    ValueError
        If there is no such column or state, or a state comes twice.
    """
    shown = shown_components(estimator.counts_)
    if order is None:
        return shown
    if isinstance(order, str):
        expected = estimator.fitted.expected_values(np.eye(len(estimator.counts_)))
        if order not in expected:
            raise ValueError(
                f"The 'order' parameter of {owner} names {order!r}, which is no column of X."
                f"{did_you_mean(order, list(expected))}"
            )
        if expected[order].ndim > 1:
            raise ValueError(
                f"The 'order' parameter of {owner} names {order!r}, a column of categories, which have no mean. Name a "
                "column of numbers, or give the states in the order wanted."
            )
        return sorted(shown, key=lambda state: expected[order][state])
    states = np.asarray(order)
    n = len(estimator.counts_)
    wrong = states.ndim != 1 or states.dtype.kind not in "iu" or not len(states)
    if wrong or states.min() < 0 or states.max() >= n or len(np.unique(states)) < len(states):
        raise ValueError(
            f"The 'order' parameter of {owner} must be None, the name of a column, or different states from 0 to "
            f"{n - 1}. Got {order!r} instead."
        )
    return states.tolist()


class DrawnIntervals(NamedTuple):
    """Lower and upper ends by group and name, their mass, and what they are from."""

    ends: dict[str, dict[Any, tuple]]
    level: float
    method: str

    @property
    def words(self) -> str:
        """Mass and method in words; two short lines, since pictures may be narrow."""
        return f"{100 * self.level:g} % intervals\nby {self.method.replace('_', ' ')}"


def intervals_to_draw(estimator, X, draws, level: float | None) -> DrawnIntervals | None:
    """The intervals of a fit; None where neither data nor draws are given, or no level.

    Parameters
    ----------
    estimator : fitted VBDiscreteDAG, VBMixture, VBHMM or VBFactorAnalysis
    X : array-like, default=None
        The data of the fit: intervals are those of draws from the posterior, or of linear response where rows cannot
        be drawn; after ``method="map"`` and "ml" those of standard errors.
    draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
    level : float or None
    """
    if level is None or (X is None and draws is None):
        return None
    if draws is None:
        is_density = estimator.fitted.form.density
        draws = default_draws(fit_at_hand(estimator, X)) if is_density else estimator.standard_errors(X)
    return DrawnIntervals(draws.intervals(level), level, draws.method)
