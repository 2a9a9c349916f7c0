"""Emissions that are not the library's own: what they return is looked at before a fit, and suspected where one fails.

Tests hold our own emissions to what they promise; of others nobody knows. What is checked here would else come out as
an error of numpy, far from the method that is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.emissions.base import Emission, Step, from_outside
from skvbem.emissions.linear import LinearEmission
from skvbem.families.base import ConjugateFamily

# Numbers of rows that methods are tried on: two, so that axes in the wrong order show whatever the other axes are.
_N_TRIED = 2, 3


def likely_defect(emission: Emission) -> str | None:
    """A hint for the error message if the objective falls or is not a number; None if the defect is the library's.

    Laws hold the library's own emissions, so that one from outside is the first suspect.
    """
    others = [part for _, part in from_outside(emission)]
    if not others:
        return None
    names = " or ".join(dict.fromkeys(type(part).__name__ for part in others))
    linear = (isinstance(part, LinearEmission) for part in others)
    methods = " or ".join(dict.fromkeys("`features`, `fold` and `unfold`" if each else "`step`" for each in linear))
    return (
        f"The defect is most likely in the emission {names}, which is not the library's own: {methods} must belong "
        "together and to `default_prior`. skvbem.testing.check_emission finds the law that is broken. If none is, "
        "numbers of X may be so large that the likelihood keeps too few digits: `largest` of the specification refuses "
        "these."
    )


def check_cells(emission: Emission, prior: ConjugateFamily, n_components: int) -> None:
    """Refuse the prior of an emission from outside that has other cells than its statistics.

    Raises
    ------
    ValueError
        That names the emission.
    """
    n_cells, wanted = len(prior.coordinates), len(emission.component_of_cell(n_components))
    if n_cells != wanted:
        raise ValueError(
            f"The emission {type(emission).__name__} contradicts itself: `default_prior` returned a prior of {n_cells} "
            f"cells for {n_components} components, and `cells_per_component`, {emission.cells_per_component}, makes "
            f"{wanted}. One of the two is wrong."
        )


def check_shapes(emission: Emission, table: Any, prior: Any, n_components: int) -> None:
    """Refuse an emission from outside whose methods return arrays of wrong shapes for the first rows of a table.

    Parameters
    ----------
    emission : Emission
    table : Table
        As it prepared the rows.
    prior : ConjugateFamily
        Of the emission, a product if there are several.
    n_components : int

    Raises
    ------
    ValueError
        That names the emission and the method.
    """
    for k, part in from_outside(emission):
        rows = table.parts[k] if part is not emission else table
        for n_rows in _N_TRIED:
            _check_shapes_of(part, rows[:n_rows], prior.blocks[k] if part is not emission else prior, n_components)


def _check_shapes_of(emission: Emission, block: Any, prior: Any, n_components: int) -> None:
    predictive = emission.log_predictive(block, prior)
    _of_shape(emission, "log_predictive", predictive, (len(block), n_components))
    if isinstance(emission, LinearEmission):
        features = _of_shape(emission, "features", emission.features(block), ("n_features", len(block)))
        sums = np.zeros((n_components, len(features)))
        natural = np.zeros((n_components, emission.cells_per_component))
        _of_shape(emission, "fold", emission.fold(natural, block.complete), sums.shape)
        _of_shape(emission, "unfold", emission.unfold(sums, block.complete), natural.shape)
    else:
        natural = prior.expected_natural()
        log_likelihood = emission.expected_log_likelihood(block, natural)
        _of_shape(emission, "step(...).log_likelihood", log_likelihood, (len(block), n_components))
        statistics = emission.statistics(block, np.ones_like(log_likelihood), natural)
        _of_shape(emission, "step(...).statistics", statistics, natural.shape)


def rows_last(step: Step, block: Any, n_lanes: int, n_components: int) -> np.ndarray:
    """Log likelihoods (n_lanes, n_components, n_rows) of a block, as compiled loops take them, which trust their shape.

    Raises
    ------
    ValueError
        If the step of an emission returned others than those of its components and of the rows of the block.
    """
    returned = step.log_likelihood(block)
    returned = returned[None] if n_lanes == 1 == returned.ndim - 1 else returned
    if returned.shape != (n_lanes, len(block), n_components) or returned.dtype != np.float64:
        raise ValueError(
            f"`log_likelihood` of {type(step).__name__} must return floats of shape ({n_lanes}, {len(block)}, "
            f"{n_components}) here. It returned {returned.dtype} of shape {returned.shape}."
        )
    return np.ascontiguousarray(returned.swapaxes(-1, -2))


def checked_coordinates(emission: Emission, block: Any) -> np.ndarray:
    """The seeding coordinates of a block, (n_rows, n_axes), which an emission from outside may get wrong.

    Raises
    ------
    ValueError
        If they are of another shape, or not finite; it names the emission.
    """
    for k, part in from_outside(emission):
        rows = block.parts[k] if part is not emission else block
        coordinates = _of_shape(part, "seeding_coordinates", part.seeding_coordinates(rows), (len(block), "n_axes"))
        if not np.isfinite(coordinates).all():
            raise ValueError(
                f"`seeding_coordinates` of the emission {type(part).__name__} returned numbers that are not finite. "
                "Rows must be points; cells that are missing, NaN in `block.values`, are in the middle of the others."
            )
        if part is emission:
            return coordinates
    return emission.seeding_coordinates(block)


def _of_shape(emission: Emission, method: str, returned: Any, wanted: tuple) -> np.ndarray:
    """The value that a method returned, if it is an array of the shape; names in the shape stand for any number."""
    shape = np.shape(returned)
    fits = len(shape) == len(wanted) and all(isinstance(n, str) or n == m for n, m in zip(wanted, shape))
    if not (isinstance(returned, np.ndarray) and fits):
        what = f"an array of shape {shape}" if isinstance(returned, np.ndarray) else f"a {type(returned).__name__}"
        raise ValueError(
            f"`{method}` of the emission {type(emission).__name__} must return an array of shape "
            f"({', '.join(map(str, wanted))}) here. It returned {what}."
        )
    return returned
