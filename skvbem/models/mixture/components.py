"""Statistics of a mixture taken apart by component, and put together with fewer or more of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem.emissions import Emission
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
    made_of : tuple of tuple of int
        The components of a mixture that each was made of; itself if nothing is said.
    """

    counts: np.ndarray
    per_component: np.ndarray
    shared: np.ndarray
    made_of: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, model: Mixture, statistics: np.ndarray) -> Self:
        """Statistics (n_cells, ...) of a mixture, by component."""
        weight_cells, emission_cells = model.prior.split(statistics)
        component = model.emission.component_of_cell(model.n_components)
        per_component = np.stack([emission_cells[component == k] for k in range(model.n_components)])
        return cls(model.weights.counts(weight_cells), per_component, emission_cells[component < 0])

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def origins(self) -> tuple[tuple[int, ...], ...]:
        """The components of a mixture that each was made of."""
        return self.made_of or tuple((k,) for k in range(len(self)))

    def in_order(self, model: Mixture) -> Self:
        """The components as a mixture wants them: the largest first where weights should fall, and none has a label."""
        if not model.weights.by_weight or model.emission.n_levels:
            return self
        order = np.argsort(-self.counts, axis=0, kind="stable")
        made_of = tuple(self.origins[k] for k in order)
        return type(self)(self.counts[order], self.per_component[order], self.shared, made_of)

    def statistics(self, model: Mixture, emission: Emission | None = None) -> np.ndarray:
        """Statistics (n_cells, ...) of a mixture of so many components; the largest first where weights should fall.

        Those of the emission may be in the cells of another one.
        """
        ordered = self.in_order(model)
        counts, per_component = ordered.counts, ordered.per_component
        component = (model.emission if emission is None else emission).component_of_cell(len(self))
        emission_cells = np.empty((len(component), *self.counts.shape[1:]))
        for k in range(len(self)):
            emission_cells[component == k] = per_component[k]
        emission_cells[component < 0] = self.shared
        return np.concatenate([model.weights.statistics(counts), emission_cells])

    def without(self, gone: np.ndarray) -> Self:
        """Statistics of all components but those that are dropped."""
        counts, per_component = np.delete(self.counts, gone, axis=0), np.delete(self.per_component, gone, axis=0)
        made_of = tuple(each for k, each in enumerate(self.origins) if k not in gone)
        return type(self)(counts, per_component, self.shared, made_of)

    def joined(self, one: int, other: int) -> Self:
        """Two components made one, which stands where the first of them stood."""
        counts, per_component = self.counts.copy(), self.per_component.copy()
        counts[one] += counts[other]
        per_component[one] += per_component[other]
        made_of = list(self.origins)
        made_of[one] += made_of[other]
        return type(self)(counts, per_component, self.shared, tuple(made_of)).without(np.array([other]))

    def divided(self, parts: dict[int, Components]) -> Self:
        """Components replaced by their parts: the first stands where the component stood, the others at the end.

        What all components share is as before: it is a sum over rows, whatever their components.
        """
        counts, per_component = self.counts.copy(), self.per_component.copy()
        for k, pieces in parts.items():
            counts[k], per_component[k] = pieces.counts[0], pieces.per_component[0]
        more = [pieces for _, pieces in sorted(parts.items())]
        made_of = [self.origins[k] for k, pieces in sorted(parts.items()) for _ in pieces.counts[1:]]
        return type(self)(
            np.concatenate([counts, *(pieces.counts[1:] for pieces in more)]),
            np.concatenate([per_component, *(pieces.per_component[1:] for pieces in more)]),
            self.shared,
            (*self.origins, *made_of),
        )
