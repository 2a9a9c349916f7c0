"""Counts of a mixture, of weights and of categories, as sums over rows that are independent under q(x)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array

from skvbem.capabilities import CountBlock, RowMarginals
from skvbem.families import Dirichlet
from skvbem.models.mixture.model import Mixture, MixtureData
from skvbem.models.mixture.responsibilities import responsibilities


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
        first, parts = weights.n_cells, emission.count_blocks(self.model.prior.blocks[1])
        blocks = [(0, weights.prior), *((first + at, prior) for at, prior in parts)]
        cells = [at + np.arange(len(prior.concentration)) for at, prior in blocks]
        starts = np.cumsum([0, *(size for _, prior in blocks for size in np.diff(prior.row_starts))])
        concentration = np.concatenate([prior.concentration for _, prior in blocks])
        return CountBlock(np.concatenate(cells), Dirichlet(concentration, starts))

    def row_marginals(self, natural: np.ndarray, data: MixtureData) -> RowMarginals:
        """Where each row falls among the cells that count rows, under q(x) at natural parameters (n_cells,)."""
        model, block = self.model, self.count_block()
        step = model.step(natural, data)
        place = np.full(model.n_cells, -1)
        place[block.cells] = np.arange(len(block.cells))
        of_weights = model.weights.statistics(np.eye(model.n_components))
        places_of_components = [place[cells] for cells in model.cells_of_components()]
        parts: list[list[np.ndarray]] = [[], [], []]
        for rows, q in responsibilities(model, natural, data):
            at = np.arange(rows.start, rows.stop)
            cells = [(q @ of_weights.T, np.arange(len(of_weights)))]
            if len(block.cells) > len(of_weights):
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
