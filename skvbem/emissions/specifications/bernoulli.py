"""Zeros and ones as a user says them: `Bernoulli`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from skvbem._names import shown
from skvbem.blocks import Blocks
from skvbem.emissions.bernoulli import BernoulliEmission
from skvbem.emissions.specifications.base import Parameters, positive_of_columns
from skvbem.emissions.specifications.given import named_arrays
from skvbem.emissions.specifications.probabilities import ProbabilitySpecification

# Rows converted together.
_BLOCK = 4096


class Bernoulli(ProbabilitySpecification):
    """Columns of 0 and 1, each with a probability of 1 in each component.

    Parameters
    ----------
    concentration_prior : float or pair of float, default=1.0
        Concentration of the Beta prior of each probability: one number, or a pair for 0 and 1.

    See Also
    --------
    Categorical : categories of any type and number.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Bernoulli
    >>> answers = [[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1], [1, 1, 0], [0, 0, 1]]
    >>> model = VBMixture(2, emission=Bernoulli(concentration_prior=0.5), random_state=0).fit(answers)
    >>> model.parameters_["bernoulli"]["probabilities"].shape
    (2, 3)
    """

    wanted: ClassVar[str] = "it must hold 0 and 1"
    parameter: ClassVar[str] = "probabilities"

    def __init__(self, concentration_prior=1.0):
        self.concentration_prior = concentration_prior

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Anything but 0 and 1."""
        return (values != 0) & (values != 1)

    def stored(self, values: np.ndarray) -> np.ndarray:
        """Codes 0 and 1, -1 where missing."""
        codes = np.empty(values.shape, dtype=np.int8)
        for at in range(0, len(values), _BLOCK):
            codes[at : at + _BLOCK] = np.nan_to_num(values[at : at + _BLOCK], nan=-1.0)
        return codes

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> BernoulliEmission:
        """The emission of codes (n_rows, n_columns), negative where missing. Weights make no difference."""
        return BernoulliEmission.for_data(values, weight)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Concentrations of 0 and of 1."""
        owner, name = type(self).__name__, "concentration_prior"
        numbers = positive_of_columns(owner, name, self.concentration_prior, 2, "for 0 and for 1")
        return {"concentration": np.broadcast_to(numbers, 2)}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Probabilities of 1, (n_components, n_columns)."""
        owner, name = type(self).__name__, self.parameter
        arrays = named_arrays(owner, parameters, {name: 2})
        if not ((arrays[name] >= 0) & (arrays[name] <= 1)).all():
            raise ValueError(f"The {name!r} of {owner} must lie between 0 and 1. Got {shown(arrays[name].tolist())}.")
        return arrays

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """A row of zeros and one of ones."""
        n_columns = parameters[self.parameter].shape[1]
        return np.tile(np.arange(2, dtype=np.int8)[:, None], (1, n_columns))

    @staticmethod
    def label(name: str) -> str:
        """The event that the column is 1."""
        return f"{name} = 1"
