"""Zeros and ones as a user says them: `Bernoulli`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.bernoulli import BernoulliEmission
from skvbem.emissions.specifications.base import positive_of_columns
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

    @staticmethod
    def label(name: str) -> str:
        """The event that the column is 1."""
        return f"{name} = 1"
