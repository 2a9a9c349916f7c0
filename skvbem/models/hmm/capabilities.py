"""Capabilities of a hidden Markov model for scores of the evidence: draws of paths, their entropy, orders of states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from skvbem.blocks import map_reduce
from skvbem.capabilities import Capabilities, Relabelings
from skvbem.emissions.base import exchangeability_classes, n_symmetries
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.hmm.covariates import CovariateHMM
from skvbem.models.hmm.dimension import identifiable_dimension
from skvbem.models.hmm.enumeration import log_evidence_by_enumeration
from skvbem.models.hmm.information import score_covariance, score_covariance_by_differences
from skvbem.models.hmm.model import HMM
from skvbem.models.labels.coefficients import CoefficientRelabelings, CoefficientSampler
from skvbem.models.labels.gibbs import GibbsSampler, StepBatches
from skvbem.models.labels.relabelings import LabelRelabelings, are_alike, orders_within, signed_relabelings
from skvbem.models.relabelings import ListedRelabelings, SequentialRelabelings
from skvbem.models.sequences import HMMData

# Cells, of all orders of states that are listed, of a chain with a cell for each pattern of covariates. By hand.
_MAX_PLACES = 2**22


def log_z(model: HMM, natural: np.ndarray, data: HMMData) -> np.ndarray:
    """ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,)."""
    return map_reduce(partial(_log_z_of, model, natural), data.parts)


def _log_z_of(model: HMM, natural: np.ndarray, part: HMMData) -> np.ndarray:
    passes, total = model.forward_backward(natural, part), np.zeros(natural.shape[1])
    for pieces in part.segments(*model.segment_rows(natural.shape[1])):
        weight = part.weight[pieces[0].sequences]
        total += (weight * np.where(weight > 0, passes.forward(pieces)[0], 0.0)).sum(axis=1)
    return total


def completed(
    model: HMM, natural: np.ndarray, data: HMMData, rng: ParallelGenerator, prior: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """ln Z of q(x), (n_lanes,), and complete-data statistics with paths drawn from it, (n_cells, n_lanes)."""
    step, n_lanes = model.step(natural, data), natural.shape[1]
    passes, total, log_z = model.forward_backward(natural, data, step), step.zeros(), np.zeros(n_lanes)
    is_conjugate = model.emission.is_conjugate(data.table)
    for pieces in data.segments(*model.segment_rows()):  # the same for any number of lanes
        by_sequence = np.zeros((n_lanes, len(pieces[0].starts)))
        for piece, drawn in passes.drawn(pieces, rng.random_by_lane, by_sequence):
            if is_conjugate:
                step.add(data.table[piece.rows], drawn.swapaxes(-1, -2), total)
            else:
                step.add_drawn(data.table[piece.rows], drawn.argmax(axis=1), rng, total)
        log_z += by_sequence.sum(axis=1)
    if prior is not None:
        total = step.group_move(total, prior[model.first_emission_cell :], rng)
    emission_cells = step.statistics(total).reshape(-1, n_lanes)
    return log_z, model.joined_statistics(passes.first_counts, passes.counts, emission_cells)


def relabelings(model: HMM, limit: int = 50_000) -> Relabelings | None:
    """Ways in which states can change places unnoticed: none where their priors differ."""
    n_states, n_chain = model.n_components, model.first_emission_cell
    state = model.emission.component_of_cell(n_states)
    cells = np.stack([np.flatnonzero(state == k) for k in range(n_states)])
    # priors that take states for alike have natural parameters that do
    natural = model.prior.blocks[2].expected_natural()[cells]
    classes = exchangeability_classes(model.emission, n_states)
    alike = are_alike(natural, classes) and all(
        rows.relabeled(order).is_same(rows)
        for rows in (model.initial, model.transitions)
        for order in (np.roll(np.arange(n_states), 1), _swapped(n_states))
    )  # a turn and a swap make all permutations
    alike = bool(alike and n_states > 1)
    if n_symmetries(model.emission) > 1:
        return signed_relabelings(model, n_chain + cells, model.cells_in_order, alike, limit)
    if not alike:
        return ListedRelabelings(np.arange(model.n_cells)[None])
    orders = orders_within(classes, limit)
    if orders is not None:
        return ListedRelabelings(model.cells_in_order(orders))
    return _ManyStates(model.cells_in_order, n_chain + cells) if np.ptp(classes) == 0 else None


def _driven_relabelings(model: HMM, limit: int = 50_000) -> Relabelings | None:
    """The relabelings of a chain with covariates: as it has many cells, fewer are listed, with places of all cells."""
    return CoefficientRelabelings.of(relabelings(model, min(limit, max(_MAX_PLACES // model.n_cells, 1))), model.prior)


class _ManyStates(SequentialRelabelings):
    """States pick their places in turn by what they emit; transitions follow."""

    def __init__(self, cells_in_order: Callable[[np.ndarray], np.ndarray], cells: np.ndarray):
        super().__init__(cells)
        self.cells_in_order = cells_in_order

    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A permutation drawn by picks in turn, transitions with it."""
        return log_point[self.cells_in_order(self.picked(statistics, log_point, rng))]

    def nearest(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """Points with their states assigned by what they emit, transitions with them."""
        orders = self.cells_in_order(self._assigned(statistics, log_points))
        return np.take_along_axis(log_points, orders.T, axis=0)


def _swapped(n_states: int) -> np.ndarray:
    order = np.arange(n_states)
    order[:2] = order[:2][::-1]
    return order


def latent_entropy(model: HMM, natural: np.ndarray, data: HMMData) -> float:
    """Entropy of the paths under q(x) at natural parameters (n_cells,), nats: ln Z less what q(x) expects of ln."""
    passes = model.forward_backward(natural[:, None], data)
    entropy = float(log_z(model, natural[:, None], data)[0])
    for smoothed, logs in model.smoothed_blocks(passes, data):
        entropy -= _expected(smoothed, logs)
    of_chain = model.joined_statistics(passes.first_counts, passes.counts, np.empty((0, 1)))[:, 0]
    return entropy - _expected(of_chain, natural[: model.first_emission_cell])


def _expected(probability: np.ndarray, logs: np.ndarray) -> float:
    """The sum of logs times probabilities; what is impossible has none, but for a trace that passes leave."""
    return float((probability * np.where(np.isfinite(logs), logs, 0.0)).sum())


def capabilities_of(model: HMM) -> Capabilities:
    """The capabilities of a hidden Markov model: all but marginals, as steps of a path are not independent.

    One whose chain covariates drive has draws, and orders of its states.
    """
    if isinstance(model, CovariateHMM):
        sampler = None  # of hidden precisions of slopes none is known
        if not model.learns_precisions:
            sampler = CoefficientSampler(model, partial(log_z, model), partial(completed, model))
        return Capabilities(
            points=sampler,
            annealing=sampler,
            metropolis=sampler,
            relabelings=LabelRelabelings(model, _driven_relabelings),
            information=partial(score_covariance_by_differences, model),
        )
    gibbs = GibbsSampler(model, partial(log_z, model), partial(completed, model))
    capabilities = Capabilities(
        points=gibbs,
        annealing=gibbs,
        batches=StepBatches(model),
        metropolis=gibbs,
        relabelings=LabelRelabelings(model, relabelings),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance_by_differences if model.has_ages else score_covariance, model),
        enumeration=partial(log_evidence_by_enumeration, model),
        dimension=None if model.emission.n_levels or model.has_ages else partial(identifiable_dimension, model),
    )
    return capabilities.with_hidden_hyperparameters(model.prior)
