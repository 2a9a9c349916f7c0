"""Categories of any type as a user says them: `Categorical`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.emissions.profiles import Numbers, Probabilities, of_levels
from skvbem.emissions.specifications.base import EmissionSpecification, Parameters, floats, positive
from skvbem.emissions.specifications.given import distributions, named_arrays


class Categorical(EmissionSpecification):
    """Columns of categories of any type, each with a table of probabilities in each component.

    Levels are those of X, or those that the `categories` parameter of the estimator declares.

    Parameters
    ----------
    concentration_prior : float or sequence, default=1.0
        Concentration of each category in the Dirichlet prior of a column. A sequence has an entry for each column: a
        float, or one for each of its categories.

    See Also
    --------
    Bernoulli : columns of 0 and 1.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.emissions import Categorical
    >>> slides = load_carcinoma().data
    >>> sharp = VBMixture(3, emission=Categorical(concentration_prior=0.1), random_state=0).fit(slides)
    >>> sharp.parameters_["categorical"]["probabilities"].shape
    (3, 7, 2)
    """

    holds_categories: ClassVar[bool] = True

    def __init__(self, concentration_prior=1.0):
        self.concentration_prior = concentration_prior

    def for_data(
        self, values: np.ndarray | Blocks, weight: np.ndarray | None = None, *, n_categories=None
    ) -> CategoricalEmission:
        """The emission of codes (n_rows, n_columns), negative where missing, of so many categories each."""
        return CategoricalEmission.for_data(values, weight, n_categories=n_categories)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """A concentration for all, or one for each column or for each category of each column."""
        owner, name, value = type(self).__name__, "concentration_prior", self.concentration_prior
        if np.isscalar(value):
            return {"concentration": float(positive(owner, name, value))}
        rows = list(value)
        if len(rows) != emission.n_columns:
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a number or have {emission.n_columns} entries, one for "
                f"each of its columns. Got {len(rows)}."
            )
        numbers = [positive(owner, name, row) for row in rows]
        for column, row, size in zip(names, numbers, emission.n_categories):
            if row.ndim and row.shape != (size,):
                raise ValueError(
                    f"The {name!r} parameter of {owner}, for column {column!r}, must be a number or have one for each "
                    f"of its {size} categories. Got an array of shape {row.shape}."
                )
        return {"concentration": numbers}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Tables (n_components, n_columns, n_categories), or those of one column, NaN or 0 beyond its categories."""
        owner, name = type(self).__name__, "probabilities"
        filled = {key: np.nan_to_num(floats(owner, key, value), nan=0.0) for key, value in dict(parameters).items()}
        table = named_arrays(owner, filled, {name: (2, 3)})[name]
        return {name: distributions(owner, name, table if table.ndim == 3 else table[:, None])}

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """Each category once in every column."""
        _, n_columns, n_categories = parameters["probabilities"].shape
        return np.tile(np.arange(n_categories)[:, None], (1, n_columns))

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Probabilities of each column's levels."""
        return [parameters["probabilities"][:, j, : len(of_column)] for j, of_column in enumerate(levels)]

    def profiles(
        self,
        names: Sequence[str],
        parameters: Parameters,
        intervals: tuple[Parameters, Parameters] | None,
        levels: Sequence[np.ndarray],
    ) -> list[Numbers | Probabilities]:
        """Probabilities of each column's levels, with their intervals."""
        profiles: list[Numbers | Probabilities] = []
        for j, (name, of_column) in enumerate(zip(names, levels)):
            ends = None if intervals is None else tuple(each["probabilities"][:, j] for each in intervals)
            profiles.append(of_levels(name, of_column.tolist(), parameters["probabilities"][:, j], ends))
        return profiles
