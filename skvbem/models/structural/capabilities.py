"""Capabilities of a structural time series for scores of the evidence: chains over variances, and batches of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from skvbem._numerics import last_axes_first
from skvbem.capabilities import AnnealingPlan, Capabilities
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.linear_dynamical_system.capabilities import capabilities_of_states
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.sampling import StatePathSampler
from skvbem.models.relabelings import ListedRelabelings
from skvbem.models.structural.model import StructuralModel


def log_z(model: StructuralModel, natural: np.ndarray, data: LDSData) -> np.ndarray:
    """ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,)."""
    return model.expect(natural, data).log_normalizer


def completed(
    model: StructuralModel, natural: np.ndarray, data: LDSData, rng: ParallelGenerator
) -> tuple[np.ndarray, np.ndarray]:
    """ln Z of q(x), (n_lanes,), and complete-data statistics with paths drawn from it, (n_cells, n_lanes).

    Every sequence counts once.
    """
    n, k, p, n_lanes = len(data), model.n_states, model.n_drawn_cells, natural.shape[1]
    noise = last_axes_first(rng.standard_normal((n, k + p, n_lanes)))
    log_normalizers, drawn = model.passed(
        natural, data, np.ascontiguousarray(noise[..., :k]), np.ascontiguousarray(noise[..., k:])
    )
    return log_normalizers.sum(axis=1), drawn


class NoiseSampler(StatePathSampler):
    """Gibbs and Metropolis chains of a structural time series; see `skvbem.models.labels.gibbs`."""

    @property
    def plan(self) -> AnnealingPlan:
        """From VB fits as they are."""
        return AnnealingPlan(fractions=(1.0,), bend=-1.05, n_steps=256)

    def certain_statistics(self, data: LDSData, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that depends on no state, (n_cells,): none, as all squares are of states."""
        return np.zeros(self.model.n_cells)


@dataclass(frozen=True, eq=False)
class OneLabeling:
    """The one labeling of blocks, which data tell apart; see `skvbem.capabilities.Relabelable`.

    Parameters
    ----------
    n_cells : int
    """

    n_cells: int

    def relabelings(self, hidden: Sequence, limit: int = 50_000) -> ListedRelabelings:
        """The identity alone."""
        return ListedRelabelings(np.arange(self.n_cells)[None])

    def log_n_relabelings(self, hidden: Sequence) -> float:
        """0, ln of 1."""
        return 0.0

    def listed_relabelings(self, hidden: Sequence, limit: int) -> np.ndarray:
        """Each cell in its place, (1, n_cells)."""
        return np.arange(self.n_cells)[None]


def capabilities_of(model: StructuralModel) -> Capabilities:
    """The capabilities of a structural time series: all but those that count hidden states."""
    sampler = NoiseSampler(model, partial(log_z, model), partial(completed, model))
    return capabilities_of_states(model, sampler, OneLabeling(model.n_cells))
