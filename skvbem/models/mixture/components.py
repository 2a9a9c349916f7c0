"""Statistics of a mixture taken apart by component, and put together with fewer or more of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem.models.mixture.model import Mixture


@dataclass(frozen=True, eq=False)
class Components:
    """Statistics by component. Statistics are sums over rows, so those of components joined are sums of theirs.

    Parameters
    ----------
    counts : ndarray of shape (n_components, ...)
        Expected rows.
    per_component : ndarray of shape (n_components, n_own_cells, ...)
        Statistics of the emission that belong to one component.
    shared : ndarray of shape (n_shared_cells, ...)
        Those that belong to all.
    """

    counts: np.ndarray
    per_component: np.ndarray
    shared: np.ndarray

    @classmethod
    def of(cls, model: Mixture, statistics: np.ndarray) -> Self:
        """Statistics (n_cells, ...) of a mixture, by component."""
        of_weights, of_emission = model.prior.split(statistics)
        component = model.emission.component_of_cell(model.n_components)
        per_component = np.stack([of_emission[component == k] for k in range(model.n_components)])
        return cls(model.weights.counts(of_weights), per_component, of_emission[component < 0])

    def __len__(self) -> int:
        return len(self.counts)

    def statistics(self, model: Mixture) -> np.ndarray:
        """Statistics (n_cells, ...) of a mixture of so many components; the largest first where weights should fall."""
        counts, per_component = self.counts, self.per_component
        if model.weights.by_weight:
            order = np.argsort(-counts, axis=0, kind="stable")
            counts, per_component = counts[order], per_component[order]
        component = model.emission.component_of_cell(len(self))
        of_emission = np.empty((len(component), *self.counts.shape[1:]))
        for k in range(len(self)):
            of_emission[component == k] = per_component[k]
        of_emission[component < 0] = self.shared
        return np.concatenate([model.weights.statistics(counts), of_emission])

    def without(self, gone: np.ndarray) -> Self:
        """Statistics of all components but those that are dropped."""
        return type(self)(
            np.delete(self.counts, gone, axis=0), np.delete(self.per_component, gone, axis=0), self.shared
        )

    def joined(self, one: int, other: int) -> Self:
        """Two components made one, which stands where the first of them stood."""
        counts, per_component = self.counts.copy(), self.per_component.copy()
        counts[one] += counts[other]
        per_component[one] += per_component[other]
        return type(self)(counts, per_component, self.shared).without(np.array([other]))

    def divided(self, parts: dict[int, Components]) -> Self:
        """Components replaced by their parts: the first stands where the component stood, the others at the end.

        What all components share is as before: it is a sum over rows, whatever their components.
        """
        counts, per_component = self.counts.copy(), self.per_component.copy()
        for k, of_component in parts.items():
            counts[k], per_component[k] = of_component.counts[0], of_component.per_component[0]
        more = [of_component for _, of_component in sorted(parts.items())]
        return type(self)(
            np.concatenate([counts, *(of_component.counts[1:] for of_component in more)]),
            np.concatenate([per_component, *(of_component.per_component[1:] for of_component in more)]),
            self.shared,
        )
