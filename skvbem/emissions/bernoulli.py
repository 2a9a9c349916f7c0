"""Two categories in every column, 0 and 1: a `CategoricalEmission` whose parameters are read as probabilities of 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skvbem._names import shown
from skvbem.blocks import Blocks
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.emissions.moments import ROWS_AT_ONCE, n_columns_of
from skvbem.emissions.parameters import named_arrays
from skvbem.emissions.specification import Parameters, ProbabilitySpecification, positive_of_columns
from skvbem.families import Dirichlet


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
        for at in range(0, len(values), ROWS_AT_ONCE):
            codes[at : at + ROWS_AT_ONCE] = np.nan_to_num(values[at : at + ROWS_AT_ONCE], nan=-1.0)
        return codes

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> BernoulliEmission:
        """The emission of codes (n_rows, n_columns), negative where missing. Weights make no difference."""
        return BernoulliEmission.for_data(values, weight)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Concentrations of 0 and of 1."""
        owner, name = type(self).__name__, "concentration_prior"
        numbers = positive_of_columns(owner, name, self.concentration_prior, 2, "for 0 and for 1")
        return {"concentration": np.broadcast_to(numbers, 2)}

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """From 0 to 1 - p for zeros, from there to 1 for ones."""
        zero = 1 - parameters["probabilities"][:, None]
        below, up_to = np.where(values == 1, zero, 0.0), np.where(values == 1, 1.0, zero)
        return np.where(values < 0, np.nan, below), np.where(values < 0, np.nan, up_to)

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


@dataclass(frozen=True, eq=False)
class BernoulliEmission(CategoricalEmission):
    """Zeros and ones, independent given the component; priors are Beta distributions: Dirichlet ones of two cells."""

    @classmethod
    def for_data(cls, codes: np.ndarray | Blocks, weight: np.ndarray | None = None, *, n_categories=None) -> Self:
        """The emission of zeros and ones (n_rows, n_columns), negative where missing."""
        return cls((2,) * n_columns_of(codes))

    def default_prior(self, n_components: int, *, concentration=(1.0, 1.0)) -> Dirichlet:
        """Beta distributions.

        Parameters
        ----------
        n_components : int
        concentration : pair of float
            Of zeros and of ones.
        """
        return super().default_prior(n_components, concentration=[concentration] * self.n_columns)

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Probabilities of 1, (n_components, n_columns)."""
        return {"probabilities": point.reshape(-1, self.n_columns, 2)[..., 1]}

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """The probabilities of 0 and of 1, column by column; see `parameters`."""
        ones = parameters["probabilities"]
        return np.stack([1.0 - ones, ones], axis=-1).ravel()
