"""Checks of arguments that methods take."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping
from numbers import Integral, Real

import numpy as np

from skvbem._names import shown

#: In the place of a latent's number of states: the latent holds a number.
NUMBER = "number"
# NumPy calls booleans and spans of time numbers, too.
_NO_NUMBERS = (bool, np.bool_, np.timedelta64)


def is_whole(value) -> bool:
    """True if a value is a whole number, and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, _NO_NUMBERS)


def is_real(value) -> bool:
    """True if a value is a real number, and no boolean."""
    return isinstance(value, Real) and not isinstance(value, _NO_NUMBERS)


def is_collection(value) -> bool:
    """True if a value holds others, and is no text."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) != 0


def is_list(value) -> bool:
    """True if a value is a list or a tuple, as users write several things."""
    return isinstance(value, (list, tuple))


def listed(names) -> list:
    """Names or positions as a list, of which a user may give one alone."""
    return [names] if isinstance(names, (str, int)) else list(names)


def is_option(value, *names: str) -> bool:
    """True if a value, which may be an array, is one of some names."""
    return isinstance(value, str) and value in names


def are_texts(values: Iterable) -> bool:
    """True if all values are texts."""
    return all(isinstance(value, str) for value in values)


def is_among(value, names: Container) -> bool:
    """True if a value, which may be of any kind, is one of some names."""
    return isinstance(value, Hashable) and value in names


def whole_numbers(value) -> np.ndarray | None:
    """The array of the whole numbers that a user gives, None if these are none, or make no array."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        return None
    return array if array.dtype.kind in "iu" else None


def check_argument(is_right: bool, name: str, method: str, wanted: str, value) -> None:
    """Refuse a value of a parameter of a method unless it is right; `wanted` says in words what would be."""
    if not is_right:
        raise TypeError(f"The {name!r} parameter of {method} must be {wanted}. Got {shown(value)} instead.")


def check_choice(name: str, method: str, value, choices: Iterable[str]) -> None:
    """Refuse a value of a parameter of a method that is none of its choices."""
    if not is_option(value, *choices):
        raise ValueError(
            f"The {name!r} parameter of {method} must be {' or '.join(map(repr, choices))}. Got {value!r} instead."
        )


def check_mapping(name: str, method: str, value, example: str) -> None:
    """Refuse what is no mapping, for a parameter of a method."""
    check_argument(isinstance(value, Mapping), name, method, f"a mapping, such as {example}", value)


def check_limit(name: str, method: str, value) -> None:
    """Refuse what is no number that counts can be compared with, for a parameter of a method."""
    check_argument(is_real(value) and value >= 0, name, method, "a number >= 0", value)


def check_name(name: str, method: str, value) -> None:
    """Refuse what can be no key of a table, for a parameter of a method."""
    check_argument(isinstance(value, Hashable), name, method, "a name, such as a str or an int", value)


def checked_names(name: str, method: str, value) -> tuple:
    """Names that a user gives as a parameter of a method, as a tuple; a str or an int is one name."""
    if isinstance(value, (str, Integral)):
        return (value,)
    wanted = "an iterable of hashable names, such as str or int"
    check_argument(is_collection(value), name, method, wanted, value)
    names = tuple(value)
    for each in names:
        if type(each) is not str and not isinstance(each, Hashable):  # the first is quick
            raise TypeError(f"The {name!r} parameter of {method} must be {wanted}. Got {shown(each)} among them.")
    return names


def check_level(method: str, value) -> None:
    """Refuse what is no mass of a credible interval, for the `level` parameter of a method."""
    if not is_real(value) or not 0 < float(value) < 1:
        hint = " Data are given by name, as X=X." if hasattr(value, "shape") else ""
        wanted = f"The 'level' parameter of {method} must be a number between 0 and 1, such as 0.95."
        raise ValueError(f"{wanted} Got {value!r:.60} instead.{hint}")


def check_probability(method: str, value) -> None:
    """Refuse what is no probability between 0 and 1, for the `probability` parameter of a method."""
    if not is_real(value) or not 0 < value < 1:
        raise ValueError(
            f"The 'probability' parameter of {method} must be a number between 0 and 1, such as 0.9. Got "
            f"{shown(value)} instead."
        )


def check_flag(name: str, method: str, value) -> None:
    """Refuse what is neither true nor false, for a parameter of a method."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"The {name!r} parameter of {method} must be True or False. Got {value!r} instead.")


def check_count(name: str, method: str, value) -> None:
    """Refuse what is no whole number of at least one, for a parameter of a method."""
    if not is_whole(value) or value < 1:
        raise ValueError(f"The {name!r} parameter of {method} must be an int >= 1. Got {value!r} instead.")
