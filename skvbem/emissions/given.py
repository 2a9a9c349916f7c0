"""Columns that are given beside a row and that no component makes: covariates of what stands elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.base import Emission, Step
from skvbem.emissions.specification import EmissionSpecification, Ends, Parameters
from skvbem.families.inert import Inert


class Given(EmissionSpecification):
    """Columns of numbers that are given; no distribution of theirs is part of the evidence."""

    are_given: ClassVar[bool] = True

    def for_data(
        self,
        values: np.ndarray | Blocks,
        weight: np.ndarray | None = None,
        *,
        n_categories: Sequence[int] | None = None,
    ) -> GivenColumns:
        """The emission of rows with so many columns."""
        assert isinstance(values, np.ndarray)
        return GivenColumns(values.shape[1])

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """No column of theirs: no component expects others."""
        return []

    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Ends, levels: Sequence[np.ndarray]
    ) -> list:
        """No column is drawn."""
        return []


class EmissionOfGiven(Emission):
    """An emission of columns that are given beside a row, which nothing draws."""

    def sample(self, point: Any, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """No row is drawn: these columns are given."""
        raise TypeError("Covariates are given, and no row of them is drawn.")

    def sample_given(
        self, values: Any, lengths: Any, point: Any, components: np.ndarray, rng: np.random.Generator
    ) -> Any:
        """The columns as they are given."""
        return values


@dataclass(frozen=True, eq=False)
class GivenColumns(EmissionOfGiven):
    """Rows of given columns, as probable in each component; each component has one cell, which stays 0.

    Parameters
    ----------
    n_given : int
    """

    n_given: int
    identifies_components = False
    cells_per_component = 1

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return self.n_given

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return self.n_given

    def default_prior(self, n_components: int) -> Inert:
        """A family without parameters."""
        return Inert(np.zeros(n_components))

    def survey(self, values: Any) -> np.ndarray:
        """A table without rows."""
        return np.zeros((0, self.n_given))

    def prepare(self, values: np.ndarray, survey: Any = None) -> np.ndarray:
        """The values themselves, (n_rows, n_columns)."""
        return np.ascontiguousarray(values, dtype=float)

    def step(self, natural: np.ndarray, table: np.ndarray) -> Step:
        """The columns at natural parameters (n_components,) or (n_components, n_lanes)."""
        return _GivenStep(natural)

    def log_predictive(self, block: np.ndarray, posterior: Inert) -> np.ndarray:
        """Zeros, (n_rows, n_components)."""
        return np.zeros((len(block), len(posterior.coordinates)))

    def impute(self, block: np.ndarray, point: Any, responsibilities: np.ndarray) -> np.ndarray:
        """The columns as they are: no cell of theirs is missing."""
        return block

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """No parameter."""
        return {}

    def parameters_of_draws(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """No parameter."""
        return {}

    def quantiles(self, posterior: Inert, probability: float) -> dict[str, np.ndarray]:
        """No parameter."""
        return {}

    def seeding_coordinates(self, block: np.ndarray) -> np.ndarray:
        """No axis: covariates do not say how unlike rows are."""
        return np.zeros((len(block), 0))

    def size_of_terms(self, table: np.ndarray, weight: np.ndarray) -> float:
        """No term."""
        return 0.0


class _GivenStep(Step):
    """Given columns at natural parameters, which are 0."""

    def __init__(self, natural: np.ndarray):
        self.shape, self.n_components = natural.shape, natural.shape[0]

    def log_likelihood(self, block: np.ndarray) -> np.ndarray:
        """Zeros, (n_rows, n_components) or (n_lanes, n_rows, n_components)."""
        return np.zeros((*self.shape[1:], self.n_components, len(block))).swapaxes(-1, -2)

    def zeros(self) -> np.ndarray:
        """An empty sum."""
        return np.zeros(self.shape)

    def add(self, block: np.ndarray, responsibilities: np.ndarray, total: np.ndarray) -> None:
        """Nothing is added."""

    def statistics(self, total: np.ndarray) -> np.ndarray:
        """Zeros, of the shape of the natural parameters."""
        return total

    def of_rows(self, block: np.ndarray) -> np.ndarray:
        """Zeros, (n_rows, n_components, 1)."""
        return np.zeros((len(block), self.n_components, 1))
