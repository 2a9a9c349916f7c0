"""Checks of parameters that a user gives in place of a fit: their names, their shapes, and what they may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skvbem._names import did_you_mean, shown
from skvbem.emissions.specification import floats
from skvbem.tables import as_distributions

# How far a matrix and its transpose may differ, as a share of its diagonal.
_SYMMETRIC = 1e-8


def named_arrays(
    owner: str, parameters: Any, needed: Mapping[str, int | Sequence[int]], *, or_else: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Parameters as finite arrays of numbers, each with one of so many axes; names in `or_else` may stand there, too.

    Raises
    ------
    ValueError
        If a name is lacking or unknown, or an array is not what it should be.
    """
    if not isinstance(parameters, Mapping):
        raise ValueError(f"Parameters of {owner} must be a mapping of names to arrays. Got {shown(parameters)}.")
    wanted = ", ".join(map(repr, needed))
    for name in parameters:
        if name not in needed and name not in or_else:
            raise ValueError(f"{owner} has no parameter {name!r}.{did_you_mean(name, needed)} It has {wanted}.")
    for name in needed:
        if name not in parameters:
            raise ValueError(f"Parameters of {owner} must have {wanted}. There is no {name!r}.")
    return {name: _finite(owner, name, parameters[name], axes) for name, axes in needed.items()}


def _finite(owner: str, name: str, value: Any, axes: int | Sequence[int]) -> np.ndarray:
    array = floats(owner, name, value)
    n_axes = (axes,) if isinstance(axes, int) else tuple(axes)
    if array.ndim not in n_axes or 0 in array.shape[:2]:
        wanted = " or ".join(map(str, n_axes))
        raise ValueError(
            f"The {name!r} of {owner} must be an array of {wanted} axes, components first. Got one of the shape "
            f"{array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"The {name!r} of {owner} must be finite. Got {shown(value)} instead.")
    return array


def check_shape(owner: str, name: str, array: np.ndarray, shape: tuple[int, ...], axes: str) -> None:
    """Refuse an array of another shape, whose axes are said in words."""
    if array.shape != shape:
        raise ValueError(
            f"The {name!r} of {owner} must have the shape {shape}, which is {axes}. Got {array.shape} instead."
        )


def check_positive(owner: str, name: str, array: np.ndarray) -> None:
    """Refuse numbers that are not above 0."""
    if not (array > 0).all():
        raise ValueError(f"The {name!r} of {owner} must be > 0. One is {array.min():g}.")


def distributions(owner: str, name: str, table: np.ndarray) -> np.ndarray:
    """A table of probabilities that sum to one over its last axis, to the last digits."""
    checked = as_distributions(table)
    if checked is not None:
        return checked
    if (table < 0).any():
        why = f"One is {table.min():g}."
    else:
        total = table.sum(axis=-1).ravel()
        why = f"Some sum to {total[np.abs(total - 1).argmax()]:.10g}."
    raise ValueError(f"The {name!r} of {owner} must hold numbers >= 0 that sum to one over the last axis. {why}")


def check_covariances(owner: str, name: str, matrices: np.ndarray) -> None:
    """Refuse matrices (n, d, d) that are not symmetric and positive definite."""
    for k, matrix in enumerate(matrices):
        deviation = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
        which = f"The {name!r} of {owner} must be symmetric and positive definite. That of number {k}"
        if not (deviation > 0).all():
            raise ValueError(f"{which} has {np.diagonal(matrix).min():g} on its diagonal.")
        correlation = matrix / deviation / deviation[:, None]
        if np.abs(correlation - correlation.T).max() > _SYMMETRIC:
            raise ValueError(f"{which} is not symmetric.")
        least = np.linalg.eigvalsh(correlation).min()
        if least <= len(matrix) * np.finfo(float).eps:
            raise ValueError(f"{which} has, as a matrix of correlations, the eigenvalue {least:.3g}.")
