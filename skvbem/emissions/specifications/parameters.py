"""Parameters of priors as numbers, refused where they are none."""

from __future__ import annotations

import numpy as np

from skvbem.graphs.names import shown

# Positive parameters of priors: beyond these their digamma functions, or their inverses, leave the floats.
_SMALLEST, _LARGEST = 1e-300, 1e300


def positive(owner: str, name: str, value) -> np.ndarray:
    """A parameter as positive floats; a ValueError names it, and whose it is, if it is anything else."""
    numbers = floats(owner, name, value)
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError(f"The {name!r} parameter of {owner} must be > 0 and finite. Got {shown(value)} instead.")
    if not ((numbers >= _SMALLEST).all() and (numbers <= _LARGEST).all()):
        raise ValueError(
            f"The {name!r} parameter of {owner} must lie between {_SMALLEST:g} and {_LARGEST:g}. Got {shown(value)} "
            "instead."
        )
    return numbers


def positive_of_columns(owner: str, name: str, value, n_columns: int, each: str) -> np.ndarray:
    """A parameter as one positive float, or as one for each of so many columns."""
    numbers = positive(owner, name, value)
    if numbers.ndim and numbers.shape != (n_columns,):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number or have {n_columns} entries, {each}. Got an array "
            f"of shape {numbers.shape}."
        )
    return numbers


def finite(owner: str, name: str, value, shape: tuple) -> np.ndarray:
    """A parameter as a finite array of a shape."""
    wanted = f"a finite array of shape {shape}" if shape else "a finite number"
    array = floats(owner, name, value, wanted)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {shown(value)} instead.")
    return array


def floats(owner: str, name: str, value, wanted: str = "a number or an array-like of numbers") -> np.ndarray:
    """A parameter as floats."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {shown(value)} instead.") from None
