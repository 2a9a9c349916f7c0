"""States, their order and their colors as displays of hidden Markov models choose them."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._names import did_you_mean
from skvbem.plotting.choice import shown_components
from skvbem.plotting.labels import SERIES

# Of white in the colors of states 7 to 13, and of black in those of states 14 to 20.
_TINTS = (0.0, 0.4, -0.45)


def state_color(state: int) -> str:
    """The color of a state in every display: that of a series, after the seventh a lighter one, then a darker one."""
    base, share = SERIES[state % len(SERIES)][0], _TINTS[state // len(SERIES) % len(_TINTS)]
    towards = 255 if share > 0 else 0
    channels = (int(base[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(channel + abs(share) * (towards - channel)):02x}" for channel in channels)


def check_has_states(estimator, owner: str) -> None:
    """Raise an error if what is to be drawn is no fitted hidden Markov model.

    Raises
    ------
    NotFittedError, TypeError
    """
    check_is_fitted(estimator)
    if not (hasattr(estimator, "groups_") and hasattr(estimator, "transmat_")):
        raise TypeError(f"{owner} draws fitted hidden Markov models, VBHMM. Got {type(estimator).__name__}.")


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
