"""What deterministic scores ask of a mixture: the same as of a network, see `skvbem.models.network.scoring`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.special import xlogy

from skvbem._kernels import _mixture
from skvbem.families import Dirichlet
from skvbem.graphs.dag import DAG
from skvbem.graphs.dimension import identifiable_dimension
from skvbem.models.information import ScoreCovariance
from skvbem.models.labels.scoring import EmissionScoring
from skvbem.models.marginals import Counted, RowMarginals
from skvbem.models.mixture.enumeration import log_evidence_by_enumeration
from skvbem.models.mixture.information import mixture_covariance
from skvbem.models.mixture.weights import Weights

if TYPE_CHECKING:
    from skvbem.models.mixture.data import MixtureBlocks, MixtureData


class MixtureScoring(EmissionScoring):
    """Methods of a mixture."""

    weights: Weights
    hidden_states = "components"

    def responsibilities(self, natural: np.ndarray, data: MixtureData) -> Iterator[tuple[slice, np.ndarray]]:
        """q(x) of blocks of rows at natural parameters (n_cells,), (n_rows, n_components)."""
        log_weights = np.ascontiguousarray(self.weights.log_weights(self.prior.split(natural)[0][:, None]).T)
        step, size = self.step_at(natural, data), self.emission.block_rows(self.n_components)
        for at in range(0, len(data), size):
            rows = slice(at, min(at + size, len(data)))
            shares = np.array(step.log_likelihood(data.table[rows]).T[None], order="C")
            _mixture.shares(log_weights, np.ones(rows.stop - at), shares, np.zeros(1))
            yield rows, shares[0].T

    def latent_entropy(self, natural: np.ndarray, data: MixtureData | MixtureBlocks) -> float:
        """Entropy of the components under q(x) at natural parameters (n_cells,), nats."""
        total = 0.0
        for segment in data.segments():
            for rows, q in self.responsibilities(natural, segment):
                total -= float(segment.weight[rows] @ xlogy(q, q).sum(axis=1))
        return total

    def counted(self) -> Counted:
        """The weights, and what the emission counts."""
        first, parts = self.weights.n_cells, self.emission.count_blocks(self.prior.blocks[1])
        blocks = [(0, self.weights.prior), *((first + at, prior) for at, prior in parts)]
        cells = [at + np.arange(len(prior.concentration)) for at, prior in blocks]
        starts = np.cumsum([0, *(size for _, prior in blocks for size in np.diff(prior.row_starts))])
        concentration = np.concatenate([prior.concentration for _, prior in blocks])
        return Counted(np.concatenate(cells), Dirichlet(concentration, starts))

    def row_marginals(self, natural: np.ndarray, data: MixtureData) -> RowMarginals:
        """Where each row falls among the cells that count rows, under q(x) at natural parameters (n_cells,)."""
        counted, step = self.counted(), self.step_at(natural, data)
        place = np.full(sum(self.prior.n_cells), -1)
        place[counted.cells] = np.arange(len(counted.cells))
        of_weights = self.weights.statistics(np.eye(self.n_components))
        own = [place[cells] for cells in self.cells_of_components()]
        parts: list[list[np.ndarray]] = [[], [], []]
        for rows, q in self.responsibilities(natural, data):
            at = np.arange(rows.start, rows.stop)
            cells = [(q @ of_weights.T, np.arange(len(of_weights)))]
            if len(counted.cells) > len(of_weights):
                statistics = step.of_rows(data.table[rows])
                cells += [
                    (q[:, [k]] * statistics[:, k, places >= 0], places[places >= 0]) for k, places in enumerate(own)
                ]
            for probability, target in cells:
                row, column = np.nonzero(probability * (data.weight[rows] > 0)[:, None])
                for part, found in zip(parts, (target[column], at[row], probability[row, column])):
                    part.append(found)
        target, row, probability = (np.concatenate(part) for part in parts)
        n_cells, n_rows = len(counted.cells), counted.prior.n_rows
        into_rows = n_cells + np.repeat(np.arange(n_rows), np.diff(counted.prior.row_starts))
        shape = (len(data), n_cells + n_rows)
        entries = np.concatenate([target, into_rows[target]])
        sums = coo_array((np.tile(probability, 2), (np.tile(row, 2), entries)), shape=shape).tocsc()
        sums.sort_indices()
        probability = np.minimum(sums.data, 1.0)
        return RowMarginals(sums.indptr, sums.indices, probability, data.weight, np.zeros(shape[1]))

    def log_evidence_by_enumeration(self, data: MixtureData, max_terms: int) -> tuple[float, int]:
        """The log evidence, nats, summed over all components of all rows, and the terms of the sum."""
        return log_evidence_by_enumeration(self, data, max_terms)  # type: ignore[arg-type]

    def score_covariance(
        self, point: tuple, data: MixtureData, *, joint: bool = True, max_states: int = 4096
    ) -> list[ScoreCovariance]:
        """The sum over rows of the covariance of complete-data scores at a point, in unconstrained coordinates.

        Without `joint` there is a block for the weights and for each component. `max_states` makes no difference.
        """
        return mixture_covariance(self, point, data, joint)  # type: ignore[arg-type]

    def identifiable_dimension(self, hidden: Sequence, data: Any = None) -> int:
        """The generic rank of the map from parameters to the distribution of a row, whatever the data.

        Raises
        ------
        ValueError
            If it is not known for the emission.
        """
        if self.n_components == 1 or self.emission.tells_components_apart:
            return self.prior.n_free_parameters
        sizes = self.emission.n_outcomes
        if sizes is None:
            raise ValueError(
                "The identifiable dimension of a mixture of multinomial counts hangs on the totals of the rows, and is "
                "not known here. Take dimension='free'."
            )
        columns = list(range(len(sizes)))
        dag = DAG.naive_bayes("component", columns)
        return identifiable_dimension(dag, {"component": self.n_components, **dict(enumerate(sizes))}, columns)
