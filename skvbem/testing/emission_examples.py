"""Emissions with rows of data: what laws of emissions are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skvbem.emissions import Emission, EmissionSpecification

#: What an example may lack, and what laws ask of it for each.
ASKED = {
    "log_density": "the density by definition, `log_density(row, parameters, k)`",
    "cells": "the values that a missing cell may take, `cells(row, column)`",
    "for_data": "how the emission is made, `for_data(values, weight)`",
    "conjugate": "rows whose statistics are their own",
    "gaps": "rows with missing cells",
    "specification": "the specification that users hold",
    "refused": "cells that the specification refuses, `refused`",
}


@dataclass(frozen=True, eq=False)
class EmissionExample:
    """An emission and rows of data for it: what laws of emissions are tried on.

    Parameters
    ----------
    emission : Emission
    values : ndarray of shape (n_rows, n_columns), or tuple of ndarray
        Rows, as the emission prepares them; missing cells are NaN, or negative where cells are codes.
    n_components : int
    log_density : callable, optional
        The definition, nats: of a row, parameters by name, and the number of a component; of observed cells alone.
    cells : callable, optional
        Takes a row and the number of a column, and returns the values of a missing cell; None for any float that the
        specification does not refuse.
    conjugate : bool
        Whether rows have statistics that are their own: as with missing cells, or with more hidden in a row than its
        component, they may not.
    for_data : callable, optional
        Takes rows, or `Blocks`, and weights, and returns the emission with its units of measure.
    options : mapping
        Keyword arguments of the emission's `default_prior`.
    specification : EmissionSpecification, optional
        What users hold.
    refused : float or sequence of float, optional
        Cells that no member of the family can make.
    """

    emission: Any
    values: Any
    n_components: int = 2
    log_density: Any = None
    cells: Any = None
    conjugate: bool = True
    for_data: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    specification: Any = None
    refused: float | Sequence[float] | None = None

    def prior(self, n_components: int) -> Any:
        """The prior of so many components given its hidden hyperparameters, if any, at their prior means.

        Laws of emissions are of a density of the parameters, which has closed forms only given them.
        """
        return self.emission.default_prior(n_components, **self.options).with_known_hyperparameters()

    def responsibilities(self, rng: np.random.Generator, lanes: tuple[int, ...] = ()) -> np.ndarray:
        """Random ones, (n_rows, n_components), after a leading axis of `lanes`."""
        return rng.dirichlet(np.ones(self.n_components), size=(*lanes, n_rows(self.values)))

    def posterior(self, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        """The prior, the table, and the posterior after the rows were shared among components at random."""
        prior, responsibilities = self.prior(self.n_components), self.responsibilities(rng)
        table = self.emission.prepare(self.values)
        return prior, table, prior + self.emission.statistics(table, responsibilities, prior.expected_natural())

    def lacking(self, names: Iterable[str]) -> str:
        """The first of these, names in `ASKED`, that the example lacks; empty if none."""
        single = not isinstance(self.values, tuple)
        has = {
            "cells": self.cells is not None and single,
            "conjugate": self.conjugate,
            "gaps": not all(observed(part).all() for part in parts_of(self.values)),
        }
        for name in names:
            if not has.get(name, getattr(self, name, None) is not None):
                return f"want of {name!r} ({ASKED[name]})"
        return ""


def example_of(
    emission: EmissionSpecification | Emission,
    values: Any,
    n_components: int,
    log_density: Any,
    cells: Any,
    refused: Any,
) -> EmissionExample:
    """The example of whole rows."""
    if values is None:
        raise TypeError("The 'values' parameter of check_emission is missing: some dozen rows of data.")
    values, for_data, options = np.asarray(values), None, {}
    specification = emission if isinstance(emission, EmissionSpecification) else None
    if specification is None:
        model_side = emission
    else:
        if specification.holds_categories:
            sizes = {"n_categories": values.max(axis=0) + 1}
        else:
            sizes, values = {}, specification.stored(values.astype(float))

        def for_data(rows, weight=None):
            return specification.for_data(rows, weight, **sizes)

        model_side = for_data(values)
        options = specification.prior_options(model_side, [f"x{k}" for k in range(values.shape[1])])
    conjugate = model_side.is_conjugate(model_side.prepare(values))
    return EmissionExample(
        model_side, values, n_components, log_density, cells, conjugate, for_data, options, specification, refused
    )


def with_gaps(example: EmissionExample, rng: np.random.Generator) -> EmissionExample:
    """The example with a third of the cells missing, or of the rows where these are whole or not at all.

    The first row is whole, the second without any cell.
    """
    missing = rng.random(example.values.shape) < 1 / 3
    missing[0], missing[1:2] = False, True
    values = _without(example.values, missing)
    try:
        if example.for_data is not None:
            example.for_data(values)
    except ValueError:  # such as counts that share a total
        values = _without(example.values, np.broadcast_to(missing[:, :1], missing.shape))
    conjugate = example.emission.is_conjugate(example.emission.prepare(values))
    return replace(example, values=values, conjugate=conjugate)


def _without(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
    values = values.copy()
    values[missing] = missing_mark(values)
    return values


# --- rows of data -----------------------------------------------------------------------------------------------------


def parts_of(values: Any) -> tuple[Any, ...]:
    """The groups of columns of rows."""
    return values if isinstance(values, tuple) else (values,)


def row_of(values: Any, i: int) -> Any:
    """One row, or one of each group of columns."""
    return tuple(part[i] for part in values) if isinstance(values, tuple) else values[i]


def rows_of(values: Any, rows: Any) -> Any:
    """Some rows."""
    return tuple(part[rows] for part in values) if isinstance(values, tuple) else values[rows]


def n_rows(values: Any) -> int:
    """Number of rows."""
    return len(parts_of(values)[0])


def missing_mark(values: np.ndarray) -> float:
    """The mark of a missing cell."""
    return np.nan if values.dtype.kind == "f" else -1


def observed(values: np.ndarray) -> np.ndarray:
    """A mask of the observed cells."""
    return ~np.isnan(values) if values.dtype.kind == "f" else values >= 0


def seen(values: Any) -> np.ndarray:
    """A mask of the rows with an observed cell."""
    return np.any([observed(part).any(axis=1) for part in parts_of(values)], axis=0)
