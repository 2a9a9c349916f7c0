"""Checks of arguments that methods take."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np


def check_level(method: str, value) -> None:
    """Refuse what is no mass of a credible interval, for the `level` parameter of a method."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < 1:
        hint = " Data are given by name, as X=X." if hasattr(value, "shape") else ""
        wanted = f"The 'level' parameter of {method} must be a number between 0 and 1, such as 0.95."
        raise ValueError(f"{wanted} Got {value!r:.60} instead.{hint}")


def check_flag(name: str, method: str, value) -> None:
    """Refuse what is neither true nor false, for a parameter of a method."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"The {name!r} parameter of {method} must be True or False. Got {value!r} instead.")


def check_count(name: str, method: str, value) -> None:
    """Refuse what is no whole number of at least one, for a parameter of a method."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"The {name!r} parameter of {method} must be an int >= 1. Got {value!r} instead.")
