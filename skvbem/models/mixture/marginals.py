r"""Responsibilities of a mixture: their entropy, counts as sums over independent rows, and observed information.

Components take from the information of complete data [Louis 1982] as follows. In unconstrained coordinates the score of
a complete row of component k is :math:`s_k = J^\top u_k`, J the derivatives of the natural parameters and :math:`u_k`
the statistics of the row, in the cells of k. Given what is observed of it, the row is of component k with probability
:math:`r_k`, so that

.. math::

    \mathrm{Cov}(s) = \sum_k r_k (s_k s_k^\top + J^\top C_k J) - \bar s \bar s^\top, \qquad \bar s = \sum_k r_k s_k,

with :math:`s_k` expected, and :math:`C_k` the covariance of statistics, over the missing cells of which an emission has
moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import coo_array
from scipy.special import xlogy

from skvbem._kernels import _mixture
from skvbem.blocks import map_reduce
from skvbem.capabilities import CountBlock, RowMarginals, ScoreCovariance
from skvbem.emissions.outside import rows_last
from skvbem.families import Dirichlet
from skvbem.models.mixture.model import DataInParts, Mixture, MixtureData
from skvbem.models.relabelings import coordinate_blocks


def responsibilities(model: Mixture, natural: np.ndarray, data: MixtureData) -> Iterator[tuple[slice, np.ndarray]]:
    """q(x) of blocks of rows at natural parameters (n_cells,), (n_rows, n_components)."""
    log_weights = np.ascontiguousarray(model.weights.log_weights(model.prior.split(natural)[0][:, None]).T)
    step, size = model.step(natural, data), model.emission.block_rows(model.n_components)
    for at in range(0, len(data), size):
        rows = slice(at, min(at + size, len(data)))
        q = rows_last(step, data.table[rows], 1, model.n_components).copy()
        _mixture.responsibilities(log_weights, np.ones(rows.stop - at), q, np.zeros(1))
        yield rows, q[0].T


def latent_entropy(model: Mixture, natural: np.ndarray, data: MixtureData | DataInParts) -> float:
    """Entropy of the components under q(x) at natural parameters (n_cells,), nats."""
    return map_reduce(partial(_entropy_of, model, natural), data.parts)


def _entropy_of(model: Mixture, natural: np.ndarray, part: MixtureData) -> float:
    total = 0.0
    for rows, q in responsibilities(model, natural, part):
        total -= float(part.weight[rows] @ xlogy(q, q).sum(axis=1))
    return total


@dataclass(frozen=True, eq=False)
class MixtureMarginals:
    """Counts of weights and categories as sums over independent rows; see `skvbem.capabilities.Marginals`.

    Parameters
    ----------
    model : Mixture
    """

    model: Mixture

    def count_block(self) -> CountBlock:
        """The coordinates of the prior that count rows: those of the weights, and those that the emission counts."""
        weights, emission = self.model.weights, self.model.emission
        first, parts = self.model.first_emission_cell, emission.count_blocks(self.model.prior.blocks[1])
        blocks = [(0, weights.prior), *((first + at, prior) for at, prior in parts)]
        cells = [at + np.arange(len(prior.concentration)) for at, prior in blocks]
        starts = np.cumsum([0, *(size for _, prior in blocks for size in np.diff(prior.row_starts))])
        concentration = np.concatenate([prior.concentration for _, prior in blocks])
        return CountBlock(np.concatenate(cells), Dirichlet(concentration, starts))

    def row_marginals(self, natural: np.ndarray, data: MixtureData) -> RowMarginals:
        """Probabilities of the cells that count rows for each row, under q(x) at natural parameters (n_cells,)."""
        model, block = self.model, self.count_block()
        step = model.step(natural, data)
        place = np.full(model.n_cells, -1)
        place[block.cells] = np.arange(len(block.cells))
        weight_cells = model.weights.statistics(np.eye(model.n_components))
        places_of_components = [place[cells] for cells in model.cells_of_components()]
        parts: list[list[np.ndarray]] = [[], [], []]
        for rows, q in responsibilities(model, natural, data):
            at = np.arange(rows.start, rows.stop)
            cells = [(q @ weight_cells.T, np.arange(len(weight_cells)))]
            if len(block.cells) > len(weight_cells):
                statistics = step.of_rows(data.table[rows])
                cells += [
                    (q[:, [k]] * statistics[:, k, places >= 0], places[places >= 0])
                    for k, places in enumerate(places_of_components)
                ]
            for probability, target in cells:
                row, column = np.nonzero(probability * (data.weight[rows] > 0)[:, None])
                for part, entries in zip(parts, (target[column], at[row], probability[row, column])):
                    part.append(entries)
        target, row, probability = (np.concatenate(part) for part in parts)
        return _summed(block, target, row, probability, data.weight)


def _summed(
    block: CountBlock, target: np.ndarray, row: np.ndarray, probability: np.ndarray, weight: np.ndarray
) -> RowMarginals:
    """Marginals of cells and of table rows, from the probability that rows of data are in cells."""
    n_cells, n_rows = len(block.cells), block.prior.n_rows
    into_rows = n_cells + np.repeat(np.arange(n_rows), np.diff(block.prior.row_starts))
    shape = (len(weight), n_cells + n_rows)
    entries = np.concatenate([target, into_rows[target]])
    sums = coo_array((np.tile(probability, 2), (np.tile(row, 2), entries)), shape=shape).tocsc()
    sums.sort_indices()
    return RowMarginals(sums.indptr, sums.indices, np.minimum(sums.data, 1.0), weight, np.zeros(shape[1]))


def score_covariance(
    model: Mixture, point: tuple, data: MixtureData, *, joint: bool = True, max_states: int = 4096
) -> list[ScoreCovariance]:
    """The covariance of complete-data scores at a point; see `skvbem.capabilities.Information`.

    Without `joint` there is a block for the weights, one for each component, and one for what all components share.
    `max_states` makes no difference.
    """
    cells_of_components = model.cells_of_components()
    natural, jacobian = model.prior.natural(point), model.prior.jacobian(point)
    weights = np.arange(model.prior.blocks[0].n_free_parameters)
    weight_cells = model.weights.statistics(np.eye(model.n_components)).T @ jacobian[: model.first_emission_cell]
    free = [np.flatnonzero(jacobian[cells].any(axis=0)) for cells in cells_of_components]
    derivatives = [jacobian[np.ix_(cells, of)] for cells, of in zip(cells_of_components, free)]
    d = jacobian.shape[1]
    second, squared_mean = np.zeros((d, d)), np.zeros((d, d))
    step = model.step(natural, data)
    for rows, q in responsibilities(model, natural, data):
        block, weight = data.table[rows], data.weight[rows]
        weighted = weight[:, None] * q
        mean, statistics = q @ weight_cells, step.of_rows(block)
        second += weight_cells.T @ (weighted.sum(axis=0)[:, None] * weight_cells)
        hidden = step.hidden_covariance(block, weighted)
        for k, (of, derivative) in enumerate(zip(free, derivatives)):
            score = statistics[:, k] @ derivative
            second[np.ix_(of, of)] += (score.T * weighted[:, k]) @ score
            if hidden is not None:
                second[np.ix_(of, of)] += derivative.T @ hidden[k] @ derivative
            crossed = np.outer(weight_cells[k, weights], weighted[:, k] @ score)
            second[np.ix_(weights, of)] += crossed
            second[np.ix_(of, weights)] += crossed.T
            mean[:, of] += q[:, [k]] * score
        squared_mean += (mean.T * weight) @ mean
    covariance = second - squared_mean
    blocks = [np.arange(d)] if joint else [block for block in (weights, *coordinate_blocks(free, d)) if len(block)]
    return [ScoreCovariance(block, covariance[np.ix_(block, block)]) for block in blocks]
