"""Capabilities of a mixture for scores of the evidence: Gibbs draws, relabelings, dimension, and others, composed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from skvbem._kernels import _mixture
from skvbem.blocks import map_reduce
from skvbem.capabilities import Capabilities, Relabelings
from skvbem.emissions.base import exchangeability_classes, n_redundant_parameters, n_symmetries
from skvbem.emissions.outside import rows_last
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.graphs import dimension
from skvbem.graphs.dag import DAG
from skvbem.models.labels.coefficients import CoefficientRelabelings, CoefficientSampler
from skvbem.models.labels.gibbs import GibbsSampler, RowBatches, rows_of_block
from skvbem.models.labels.model import has_hidden_precisions
from skvbem.models.labels.quotient import quotient_of
from skvbem.models.labels.relabelings import LabelRelabelings, are_alike, orders_within, signed_relabelings
from skvbem.models.mixture.enumeration import log_evidence_by_enumeration
from skvbem.models.mixture.marginals import MixtureMarginals, latent_entropy, score_covariance
from skvbem.models.mixture.model import DataInParts, Mixture, MixtureData
from skvbem.models.relabelings import ListedRelabelings, relabelings_of_states


def log_z(model: Mixture, natural: np.ndarray, data: MixtureData | DataInParts) -> np.ndarray:
    """ln Z of q(x) at natural parameters (n_cells, n_lanes), nats, (n_lanes,)."""
    return map_reduce(model.e_step(natural, data).log_normalizers, data.parts)


def completed(
    model: Mixture, natural: np.ndarray, data: MixtureData, rng: ParallelGenerator, prior: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """ln Z of q(x), (n_lanes,), and complete-data statistics with components drawn from it, (n_cells, n_lanes)."""
    e_step = model.e_step(natural, data)
    log_weights, step = e_step.log_weights, e_step.step
    n_lanes, n_components = natural.shape[1], model.n_components
    log_z, total, counts = np.zeros(n_lanes), step.zeros(), np.zeros((n_lanes, n_components))
    is_conjugate = model.emission.is_conjugate(data.table)
    for block, weight in data.blocks(rows_of_block(model)):
        drawn = rows_last(step, block, *log_weights.shape)
        _mixture.draw(log_weights, np.ascontiguousarray(weight), rng.streams, drawn, log_z)
        counts += drawn.sum(axis=-1)
        if is_conjugate:
            step.add(block, drawn.swapaxes(-1, -2), total)
        else:  # rows count once
            step.add_drawn(block, drawn.argmax(axis=1), rng, total)
    if prior is not None:
        total = step.group_move(total, prior[model.first_emission_cell :], rng)
    emission_cells = step.statistics(total).reshape(-1, n_lanes)
    return log_z, np.concatenate([model.weights.statistics(counts.T), emission_cells])


def relabelings(model: Mixture, limit: int = 50_000) -> Relabelings | None:
    """Ways in which components can change places unnoticed: none where their priors differ."""
    cells = _cells_of_components(model)
    # priors that take components for alike have natural parameters that do
    natural = model.prior.expected_natural()[cells]
    classes = exchangeability_classes(model.emission, model.n_components)
    alike = model.n_components > 1 and model.weights.exchangeable and are_alike(natural, classes)
    if n_symmetries(model.emission) > 1:
        own_cells = np.stack([each[each >= model.first_emission_cell] for each in cells])

        return signed_relabelings(model, own_cells, partial(_places, cells, model.n_cells), alike, limit)
    exchangeable = np.flatnonzero(np.bincount(classes)[classes] > 1)
    if not (alike and len(exchangeable)):
        return ListedRelabelings(np.arange(model.n_cells)[None])
    if np.ptp(classes[exchangeable]) == 0:
        return relabelings_of_states(cells[exchangeable])
    orders = orders_within(classes, limit)
    return None if orders is None else ListedRelabelings(_places(cells, model.n_cells, orders))


def membership_relabelings(model: Mixture, limit: int = 50_000) -> Relabelings | None:
    """The relabelings of a mixture whose components covariates drive."""
    return CoefficientRelabelings.of(relabelings(model, limit), model.prior)


def _cells_of_components(model: Mixture) -> np.ndarray:
    """The cells of each component, (n_components, n_own): its weight, where weights are exchangeable, and its own."""
    component = np.concatenate(
        [
            np.arange(model.n_components) if model.weights.exchangeable else np.full(model.first_emission_cell, -1),
            model.emission.component_of_cell(model.n_components),
        ]
    )
    return np.stack([np.flatnonzero(component == k) for k in range(model.n_components)])


def _places(cells: np.ndarray, n_cells: int, orders: np.ndarray) -> np.ndarray:
    """For each cell the one that takes its place where components (n_components, n_own) are in an order, all orders."""
    places = np.tile(np.arange(n_cells), (len(orders), 1))
    places[:, cells.ravel()] = cells[orders].reshape(len(orders), -1)
    return places


def identifiable_dimension(model: Mixture, hidden: Sequence, data: Any = None) -> int:
    """The generic rank of the map from parameters to the distribution of a row, whatever the data.

    Raises
    ------
    ValueError
        If it is not known for the emission.
    """
    if model.n_components == 1 or model.emission.identifies_components:
        return model.prior.n_free_parameters - n_redundant_parameters(model.emission, np.ones(model.n_components, bool))
    sizes = model.emission.n_outcomes
    if sizes is None:
        raise ValueError(
            "The identifiable dimension of a mixture of multinomial counts depends on the totals of the rows, and is "
            "not known here. Take dimension='free'."
        )
    columns = list(range(len(sizes)))
    dag = DAG.naive_bayes("component", columns)
    cardinalities: dict = {"component": model.n_components, **dict(enumerate(sizes))}
    return dimension.identifiable_dimension(dag, cardinalities, columns)


def capabilities_of(model: Mixture) -> Capabilities:
    """The capabilities of a mixture: all."""
    if model.weights.by_row:
        sampler = None  # of hidden precisions of slopes none is known
        if not has_hidden_precisions(model):
            sampler = CoefficientSampler(model, partial(log_z, model), partial(completed, model))
        return Capabilities(
            points=sampler,
            annealing=sampler,
            metropolis=sampler,
            relabelings=LabelRelabelings(model, membership_relabelings),
            entropy=partial(latent_entropy, model),
            information=partial(score_covariance, model),
        )
    gibbs = GibbsSampler(model, partial(log_z, model), partial(completed, model))
    capabilities = Capabilities(
        points=gibbs,
        annealing=gibbs,
        batches=RowBatches(model),
        metropolis=gibbs,
        relabelings=LabelRelabelings(model, relabelings),
        quotient=quotient_of(model, lambda orders: _places(_cells_of_components(model), model.n_cells, orders)),
        marginals=MixtureMarginals(model),
        complete_evidence=model.prior.log_evidence,
        entropy=partial(latent_entropy, model),
        information=partial(score_covariance, model),
        enumeration=partial(log_evidence_by_enumeration, model),
        dimension=None if model.emission.n_levels else partial(identifiable_dimension, model),
    )
    return capabilities.with_hidden_hyperparameters(model.prior)
