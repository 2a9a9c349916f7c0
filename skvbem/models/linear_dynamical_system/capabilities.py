"""Capabilities of a linear dynamical system for scores of the evidence, composed over it: batches, entropy, others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skvbem.capabilities import Capabilities, Information, Relabelable, ScoreCovariance
from skvbem.models.base import LatentModel
from skvbem.models.information import covariance_by_differences
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.sampling import (
    StatePathSampler,
    StateRelabelings,
    StateSampler,
    completed,
    log_z,
)


@dataclass(frozen=True, eq=False)
class ObservedStepBatches:
    """Batches of sequences, one after another, the last of them not to its end; see `skvbem.capabilities.Batches`.

    Units are steps with an observed cell. A step without any comes with the next unit after it.

    Parameters
    ----------
    model : LatentModel
    """

    model: LatentModel

    def order(self, data: LDSData, rng: np.random.Generator) -> np.ndarray:
        """Rows with an observed cell of all sequences, which come in an order drawn at random, (n_units,)."""
        drawn = data.one_by_one
        observed = np.asarray(drawn.patterns.any(axis=1))[drawn.pattern]
        rows = [np.arange(drawn.starts[n], drawn.ends[n]) for n in rng.permutation(drawn.n_sequences)]
        return np.concatenate([each[observed[each]] for each in rows])

    def batch(self, data: LDSData, order: np.ndarray, n_units: int) -> LDSData:
        """The first of so many units in an order."""
        drawn, last = data.one_by_one, order[:n_units]
        sequence = np.searchsorted(drawn.ends, last, side="right")
        seen, position = np.unique(sequence, return_index=True)
        seen = seen[np.argsort(position)]
        ends = [int(last[sequence == n].max()) + 1 for n in seen]
        return drawn.until(seen, np.array(ends, dtype=np.int64))

    def known(self, data: LDSData) -> np.ndarray:
        """Nothing, (n_cells,): every row has a state."""
        return np.zeros(self.model.n_cells)


def latent_entropy(model: LatentModel, natural: np.ndarray, data: LDSData) -> float:
    r"""What q(x) at natural parameters (n_cells,) adds to the log evidence of complete data, nats.

    That is :math:`\ln Z - \phi \cdot \bar u`, minus the divergence of q(x) from independent states of the unit of the
    noise: as states have densities it is never above 0 but for what learned first states have: no chance of their own,
    so that their entropy is that of their density.
    """
    expectation = model.expect(natural[:, None], data)
    return float(expectation.log_normalizer[0] - expectation.statistics[:, 0] @ natural)


def score_covariance(
    model: LinearDynamicalSystem, point: tuple, data: LDSData, *, joint: bool = True, max_states: int = 4096
) -> list[ScoreCovariance]:
    """The covariance of complete-data scores at a point; without `joint` a block for each family of parameters.

    `max_states` makes no difference.
    """
    covariance = covariance_by_differences(model, point, data)
    ends = np.cumsum([len(covariance) if joint else block.n_free_parameters for block in model.prior.blocks])
    blocks = np.split(np.arange(len(covariance)), ends[:-1])
    return [ScoreCovariance(at, covariance[np.ix_(at, at)]) for at in blocks if len(at)]


def capabilities_of(model: LinearDynamicalSystem) -> Capabilities:
    """The capabilities of a linear dynamical system: all but those that count hidden states.

    The mode of one state stands alone, but for its sign; several states turn.
    """
    sampler = StateSampler(model, partial(log_z, model), partial(completed, model))
    information = partial(score_covariance, model) if model.n_states == 1 else None
    return capabilities_of_states(model, sampler, StateRelabelings(model), information)


def capabilities_of_states(
    model: Any, sampler: StatePathSampler, relabelings: Relabelable, information: Information | None = None
) -> Capabilities:
    """The capabilities of a model of sequences whose states are real numbers.

    Parameters
    ----------
    model : LinearDynamicalSystem or StructuralModel
    sampler : StatePathSampler
    relabelings : Relabelable
    information : Information, optional
    """
    capabilities = Capabilities(
        points=sampler,
        annealing=sampler,
        batches=ObservedStepBatches(model),
        metropolis=sampler,
        relabelings=relabelings,
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=information,
        dimension=partial(_dimension, model),
    )
    return capabilities.with_hidden_hyperparameters(model.prior)


def _dimension(model: Any, hidden: Sequence, data: LDSData) -> int:
    return model.n_free_parameters
