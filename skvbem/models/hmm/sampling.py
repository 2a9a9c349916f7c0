"""What sampling scores ask of a hidden Markov model beyond what `skvbem.models.gibbs` has: paths and their draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from skvbem.emissions import Emission
from skvbem.models.gibbs import GibbsSampling
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.relabelings import ListedRelabelings, Relabelings, SequentialRelabelings

if TYPE_CHECKING:
    from skvbem.models.sequences.data import HMMData


class HMMSampling(GibbsSampling):
    """Methods of a hidden Markov model."""

    emission: Emission
    initial: Transitions
    transitions: Transitions
    _passes: Callable
    _step: Callable
    _statistics: Callable
    _stretch_rows: Callable

    def relabelings(self, hidden, limit: int = 50_000) -> Relabelings:
        """Ways in which states can change places unnoticed: none where their priors differ."""
        n_states, n_chain = self.n_components, self.initial.n_cells + self.transitions.n_cells
        state = self.emission.component_of_cell(n_states)
        own = np.stack([np.flatnonzero(state == k) for k in range(n_states)])
        # priors that take states for alike have natural parameters that do
        natural = self.prior.blocks[2].expected_natural()[own]
        alike = np.all(natural == natural[0]) and all(
            np.array_equal(rows.relabeled(order).concentration, rows.concentration)
            for rows in (self.initial, self.transitions)
            for order in (np.roll(np.arange(n_states), 1), _swapped(n_states))
        )  # a turn and a swap make all permutations
        identity = np.arange(n_chain + len(state))
        if n_states == 1 or not alike:
            return ListedRelabelings(identity[None])
        if factorial(n_states) > limit:
            return _ManyStates(self, n_chain + own)
        return ListedRelabelings(self.places_of(np.array(list(permutations(range(n_states))))))

    def places_of(self, orders: np.ndarray) -> np.ndarray:
        """For each cell the one that takes its place where states are put in another order, (..., n_cells).

        Parameters
        ----------
        orders : ndarray of int, shape (..., n_states)
        """
        state, n_initial = self.emission.component_of_cell(self.n_components), self.initial.n_cells
        own = np.stack([np.flatnonzero(state == k) for k in range(self.n_components)])
        of_emission = np.tile(np.arange(len(state)), (*orders.shape[:-1], 1))
        of_emission[..., own.ravel()] = own[orders].reshape(*orders.shape[:-1], -1)
        parts = [self.initial.place_of(orders), n_initial + self.transitions.place_of(orders)]
        return np.concatenate([*parts, n_initial + self.transitions.n_cells + of_emission], axis=-1)

    def _log_z(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """ln Z of q(x) at natural parameters (n_cells, n_lanes), (n_lanes,)."""
        passes, log_z = self._passes(natural, data), np.zeros(natural.shape[1])
        for pieces in data.stretches(*self._stretch_rows(natural.shape[1])):
            weight = data.weight[pieces[0].sequences]
            log_z += (weight * np.where(weight > 0, passes.forward(pieces)[0], 0.0)).sum(axis=1)
        return log_z

    def _completed(
        self, natural: np.ndarray, data: HMMData, rngs: Sequence[np.random.Generator]
    ) -> tuple[np.ndarray, np.ndarray]:
        """ln Z of q(x), (n_lanes,), and complete-data statistics with paths drawn from it, (n_cells, n_lanes)."""
        step, n_lanes = self._step(natural, data), natural.shape[1]
        passes, total, log_z = self._passes(natural, data, step), step.zeros(), np.zeros(n_lanes)

        def uniform(n_rows: int) -> np.ndarray:
            return np.stack([rng.random(n_rows) for rng in rngs])

        for pieces in data.stretches(*self._stretch_rows()):  # the same for any number of lanes
            of_sequences = np.zeros((n_lanes, len(pieces[0].starts)))
            for piece, states in passes.drawn(pieces, uniform, of_sequences):
                step.add_drawn(data.table[piece.rows], states, rngs, total)
            log_z += of_sequences.sum(axis=1)
        of_emission = step.statistics(total).reshape(-1, n_lanes)
        return log_z, self._statistics(passes.first_counts, passes.counts, of_emission)


class _ManyStates(SequentialRelabelings):
    """States pick their places in turn by what they emit; transitions follow."""

    def __init__(self, model: HMMSampling, cells: np.ndarray):
        super().__init__(cells)
        self.model = model

    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """See `skvbem.models.relabelings.Relabelings`."""
        return log_point[self.model.places_of(self.picked(statistics, log_point, rng))]


def _swapped(n_states: int) -> np.ndarray:
    order = np.arange(n_states)
    order[:2] = order[:2][::-1]
    return order
