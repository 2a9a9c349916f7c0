"""Two categories in every column, 0 and 1: a `CategoricalEmission` whose parameters are read as probabilities of 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.emissions.moments import n_columns_of
from skvbem.families import Dirichlet


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
        of_ones = parameters["probabilities"]
        return np.stack([1.0 - of_ones, of_ones], axis=-1).ravel()
