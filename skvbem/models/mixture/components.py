"""Statistics of a mixture taken apart by component, and put together with fewer or more of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import softmax

from skvbem.models.labels.seeding import HashedRows, sample_distinct_rows
from skvbem.models.mixture.model import Mixture, MixtureData

# Pairs whose evidence is computed side by side.
_PAIRS_AT_ONCE = 64
# The least responsibility of a component with which a row counts among its rows.
_MIN_RESPONSIBILITY = 1e-3


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

    def scaled(self, counts: float) -> Self:
        """Components in the same proportions, of this many rows in all."""
        fraction = counts / self.counts.sum()
        return type(self)(self.counts * fraction, self.per_component * fraction, self.shared * fraction)


def pairs_by_evidence(model: Mixture, fewer: Mixture, statistics: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Pairs of components whose union the prior finds most probable, at most so many, the best first.

    The entropy of the assignments is left out, which favors pairs that share rows: those worth a try.
    """
    parts, prior = Components.of(model, statistics), fewer.prior
    if prior.hyperprior is not None:  # taken as they are expected: with hidden ones joined data have no evidence
        expected = model.prior.hyperparameters((model.prior + statistics).expected_natural())
        parts = Components.of(model, statistics - expected)
        shared = Components.of(model, expected).without(np.array([model.n_components - 1]))
        prior = prior.given_hyperparameters(shared.statistics(fewer))
    pairs = [(j, k) for k in range(len(parts)) for j in range(k)]
    evidence = [
        prior.log_evidence(np.stack([parts.joined(*pair).statistics(fewer) for pair in chunk], axis=1))
        for chunk in (pairs[at : at + _PAIRS_AT_ONCE] for at in range(0, len(pairs), _PAIRS_AT_ONCE))
    ]
    order = np.argsort(-np.concatenate([np.zeros(0), *evidence]), kind="stable")
    return [pairs[at] for at in order[:most]]


def rows_of_components(model: Mixture, statistics: np.ndarray, data: MixtureData, seed: int) -> Iterator[MixtureData]:
    """The rows of each component: those that q(x) gives it a share of, which is what they weigh there.

    Of many distinct ones those are taken that a race samples; see `skvbem.models.labels.seeding`.
    """
    assert data.row_hashes is not None
    hashes = data.row_hashes(slice(None))
    natural = (model.prior + statistics).expected_natural()
    rows: list[list[np.ndarray]] = [[] for _ in range(model.n_components)]
    weights: list[list[np.ndarray]] = [[] for _ in range(model.n_components)]
    at = 0
    for block, weight in data.blocks(model.emission.block_rows(model.n_components)):
        responsibilities = softmax(model.log_joint(natural, block), axis=1)
        for k, column in enumerate(responsibilities.T):
            held = np.flatnonzero((column > _MIN_RESPONSIBILITY) & (weight > 0))
            rows[k].append(at + held)
            weights[k].append(column[held] * weight[held])
        at += len(weight)
    for of_rows, of_weights in zip(rows, weights):
        held = np.concatenate(of_rows)
        weighted = HashedRows(None, np.concatenate(of_weights), hashes[held].__getitem__)
        _, sampled, counts = sample_distinct_rows(weighted.chunks, len(weighted), seed)
        order = np.argsort(sampled)
        held, counts = held[sampled[order]], counts[order]
        yield MixtureData(data.table[held], counts, float(counts.sum()), False, hashes[held].__getitem__)
