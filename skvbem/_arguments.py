"""Checks of arguments that methods take."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np


def is_whole(value) -> bool:
    """True if a value is a whole number, and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value) -> bool:
    """True if a value is a real number, and no boolean."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_collection(value) -> bool:
    """True if a value holds others, and is no text."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


def is_list(value) -> bool:
    """True if a value is a list or a tuple, as users write several things."""
    return isinstance(value, (list, tuple))


def is_option(value, *names: str) -> bool:
    """True if a value, which may be an array, is one of some names."""
    return isinstance(value, str) and value in names


def check_level(method: str, value) -> None:
    """Refuse what is no mass of a credible interval, for the `level` parameter of a method."""
    if not is_real(value) or not 0 < float(value) < 1:
        hint = " Data are given by name, as X=X." if hasattr(value, "shape") else ""
        wanted = f"The 'level' parameter of {method} must be a number between 0 and 1, such as 0.95."
        raise ValueError(f"{wanted} Got {value!r:.60} instead.{hint}")


def check_flag(name: str, method: str, value) -> None:
    """Refuse what is neither true nor false, for a parameter of a method."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"The {name!r} parameter of {method} must be True or False. Got {value!r} instead.")


def check_count(name: str, method: str, value) -> None:
    """Refuse what is no whole number of at least one, for a parameter of a method."""
    if not is_whole(value) or value < 1:
        raise ValueError(f"The {name!r} parameter of {method} must be an int >= 1. Got {value!r} instead.")
