"""Counts that share a total as a user says them: `Multinomial`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.multinomial import MultinomialEmission
from skvbem.emissions.specifications.base import Parameters, positive_of_columns
from skvbem.emissions.specifications.counts import CountCells
from skvbem.emissions.specifications.given import distributions, named_arrays
from skvbem.emissions.specifications.probabilities import ProbabilitySpecification


class Multinomial(CountCells, ProbabilitySpecification):
    """Counts of categories, one column each, of which components have shares; the total of a row is given.

    Parameters
    ----------
    concentration_prior : float or array-like of shape (n_columns,), default=1.0
        Concentration of the Dirichlet prior of the shares.

    See Also
    --------
    Poisson : counts without a common total.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Multinomial
    >>> words = [[9, 0, 1], [8, 1, 0], [0, 4, 7], [1, 3, 9], [7, 0, 2], [0, 5, 6]]
    >>> model = VBMixture(2, emission=Multinomial(concentration_prior=0.5), random_state=0).fit(words)
    >>> model.parameters_["multinomial"]["shares"].sum(axis=1).round(6).tolist()
    [1.0, 1.0]
    """

    parameter: ClassVar[str] = "shares"

    def __init__(self, concentration_prior=1.0):
        self.concentration_prior = concentration_prior

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> MultinomialEmission:
        """The emission of counts (n_rows, n_columns) with weights (n_rows,)."""
        return MultinomialEmission.for_data(values, weight)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Concentrations of the columns."""
        owner, name = type(self).__name__, "concentration_prior"
        numbers = positive_of_columns(owner, name, self.concentration_prior, len(names), "one for each of its columns")
        return {"concentration": numbers}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Shares (n_components, n_columns) and, of rows that are drawn, the total `n_trials`, 1 if nobody says it."""
        owner, name = type(self).__name__, self.parameter
        arrays = named_arrays(owner, {"n_trials": 1, **dict(parameters)}, {name: 2, "n_trials": 0})
        n_trials = arrays["n_trials"]
        if n_trials < 1 or n_trials != np.floor(n_trials):
            raise ValueError(f"The 'n_trials' of {owner} must be a whole number >= 1. Got {n_trials:g} instead.")
        return {name: distributions(owner, name, arrays[name]), "n_trials": n_trials}

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """The expected counts of each component."""
        return parameters["n_trials"] * parameters[self.parameter]

    def exposure(self, values: np.ndarray) -> np.ndarray:
        """The totals of rows."""
        return values.sum(axis=1)

    @staticmethod
    def label(name: str) -> str:
        """The column's share of the total."""
        return f"share of {name}"
