"""Models whose rows have one hidden label each, and an emission: what mixtures and hidden Markov models share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from skvbem.emissions import Emission
from skvbem.emissions.base import Step
from skvbem.families import Product
from skvbem.models.base import LatentModel


class LabeledRows(Protocol):
    """The compiled rows of a model with one label per row."""

    @property
    def table(self) -> Any:
        """The rows as the emission prepared them."""
        ...

    @property
    def total_weight(self) -> float:
        """The sum of the weights of rows: the n of every score."""
        ...

    def __len__(self) -> int: ...

    def chunks(self) -> Iterator[Any]:
        """The rows for a pass over all of them, as many at a time as are in memory together."""
        ...

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        ...


class LabelModel(LatentModel):
    """A model with one label per row, and an emission whose prior is the last block of the model's.

    Parameters
    ----------
    emission : Emission
    n_components : int
        Number of labels.
    prior : Product
    """

    #: What labels are called in messages.
    labels: str

    def __init__(self, emission: Emission, n_components: int, prior: Product):
        self.emission, self.n_components = emission, n_components
        self.prior: Product = prior

    @property
    def n_cells(self) -> int:
        """Numbers that statistics take."""
        return sum(self.prior.n_cells)

    @property
    def first_emission_cell(self) -> int:
        """Where statistics of the emission begin."""
        return sum(self.prior.n_cells[:-1])

    def step(self, natural: np.ndarray, data: LabeledRows) -> Step:
        """The emission at natural parameters (n_cells, n_lanes), or (n_cells,) of one lane."""
        return self.emission.step(np.ascontiguousarray(self.prior.split(natural)[-1]), data.table)

    def cells_of_components(self) -> list[np.ndarray]:
        """The cells in which rows of each component have statistics of the emission, those of all components too."""
        component = self.emission.component_of_cell(self.n_components)
        first = self.n_cells - len(component)
        return [first + np.flatnonzero((component == k) | (component == -1)) for k in range(self.n_components)]

    def magnitude(self, data: LabeledRows) -> float:
        """Size of the terms whose sum is the log normalizer, nats."""
        blocks = data.blocks(self.emission.block_rows(self.n_components))
        return data.total_weight + sum(self.emission.size_of_terms(*block) for block in blocks)

    @abstractmethod
    def statistics_of(self, responsibilities: np.ndarray | Iterable[np.ndarray], data: Any) -> np.ndarray:
        """Statistics (n_cells,) of responsibilities (n_rows, n_components), in the order of the rows of the data."""

    @abstractmethod
    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the components in another order."""

    @abstractmethod
    def divergences(self, natural: np.ndarray, data: Any) -> np.ndarray:
        """How unlike the rows find components at natural parameters (n_cells,), (n_components, n_components), nats."""
