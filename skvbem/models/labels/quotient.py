"""Parameters of a model with labels up to turns of what its emission hides; see `skvbem.capabilities.Quotient`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np

from skvbem.emissions.base import exchangeability_classes, n_symmetries
from skvbem.models.labels.relabelings import orders_of_classes


@dataclass(frozen=True, eq=False)
class LabelQuotient:
    """Parameters up to turns, of which those of the emission alone have any.

    Parameters
    ----------
    model : Mixture
        Whose emission has hidden variables that turn.
    places : callable of ndarray (n_orders, n_components)
        For each cell the one that takes its place where components are in an order, (n_orders, n_cells).
    """

    model: Any
    places: Callable[[np.ndarray], np.ndarray]

    @property
    def log_n_orders(self) -> float:
        """ln of the number of orders of labels that the prior does not tell apart."""
        return sum(lgamma(size + 1.0) for size in np.bincount(self._classes))

    @property
    def _classes(self) -> np.ndarray:
        """Class of each component, (n_components,): those of one class may change places."""
        n = self.model.n_components
        return exchangeability_classes(self.model.emission, n) if self.model.weights.exchangeable else np.arange(n)

    def orders(self) -> np.ndarray:
        """The cell that takes each cell's place in each order of labels, (n_orders, n_cells)."""
        return self.places(np.array(list(orders_of_classes(self._classes))))

    @property
    def has_turns(self) -> bool:
        """True if a component has two factors or more."""
        return n_symmetries(self.model.emission) > 2

    def coordinates_at(self, natural: np.ndarray) -> LabelCoordinates:
        """Coordinates that are smooth about natural parameters (n_cells,)."""
        blocks = self.model.prior.blocks
        emission = self.model.emission.hidden.quotient(blocks[-1], self.model.prior.split(natural)[-1])
        return LabelCoordinates(self.model, emission)

    def log_turns(self, natural: np.ndarray, rng: np.random.Generator) -> float:
        """ln of the integral of the prior over all turns, as a share of its value at natural parameters, nats."""
        cells = self.model.prior.split(natural)[-1]
        return self.model.emission.hidden.quotient(self.model.prior.blocks[-1], cells).log_turns(cells, rng)


@dataclass(frozen=True, eq=False)
class LabelCoordinates:
    """Coordinates up to turns: unconstrained ones of all blocks but that of the emission.

    Parameters
    ----------
    model : Mixture
    emission : object
        The coordinates of the emission's parameters.
    """

    model: Any
    emission: Any

    def coordinates(self, natural: np.ndarray) -> np.ndarray:
        """Coordinates (n_coordinates, n) of points, by their natural parameters (n_cells, n)."""
        *others, cells = self.model.prior.split(natural)
        free = [block.to_unconstrained(block.from_natural(x)) for block, x in zip(self.model.prior.blocks, others)]
        return np.concatenate([*free, self.emission.coordinates(cells)])

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of points without turns."""
        *others, emission_cells = self._split(coordinates)
        blocks = zip(self.model.prior.blocks, others)
        return np.concatenate(
            [
                *(block.natural(block.from_unconstrained(x)) for block, x in blocks),
                self.emission.natural(emission_cells),
            ]
        )

    def log_prior(self, coordinates: np.ndarray, rng: np.random.Generator, *, posterior: bool) -> np.ndarray:
        """ln of the prior density of coordinates, nats, (n,); see `skvbem.capabilities.Quotient`."""
        *others, emission_cells = self._split(coordinates)
        log_density = self.emission.log_density(emission_cells, rng, posterior=posterior)
        for block, x in zip(self.model.prior.blocks, others):
            log_density = log_density + block.log_density_as_prior(block.from_unconstrained(x))
        return log_density

    def log_volume(self, coordinates: np.ndarray) -> np.ndarray:
        """ln of the volume of all turns of the emission's parameters, over that of coordinates, nats, (n,)."""
        return self.emission.log_volume(self._split(coordinates)[-1])

    def _split(self, coordinates: np.ndarray) -> list[np.ndarray]:
        """Coordinates of each block."""
        sizes = [block.n_free_parameters for block in self.model.prior.blocks[:-1]]
        return np.split(coordinates, np.cumsum(sizes))


def quotient_of(model: Any, places: Callable[[np.ndarray], np.ndarray]) -> LabelQuotient | None:
    """Parameters of a model up to turns; None where nothing turns, or hidden variables of groups of columns do."""
    hidden = model.emission.hidden
    if hidden is None or hidden.awaits_n_factors or hidden.n_symmetries() == 1:
        return None
    return LabelQuotient(model, places)
