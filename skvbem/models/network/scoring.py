"""What deterministic scores ask of a network: row marginals, completions, score covariances, dimension, labelings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skvbem._kernels import _contexts
from skvbem._kernels._enumeration import log_sum_over_completions
from skvbem._numerics import times_log
from skvbem.errors import TooLargeError
from skvbem.families import Dirichlet
from skvbem.graphs.dag import DAG
from skvbem.graphs.dimension import identifiable_dimension
from skvbem.models.information import ScoreCovariance
from skvbem.models.marginals import Counted, RowMarginals
from skvbem.models.network.information import score_covariance
from skvbem.models.network.joint_states import completions
from skvbem.models.network.labelings import log_n_labelings
from skvbem.models.network.layout import Layout
from skvbem.models.network.marginals import row_marginals
from skvbem.models.network.program import Program
from skvbem.models.relabelings import listed


class Scoring:
    """Methods of a discrete network."""

    dag: DAG
    layout: Layout
    prior: Dirichlet
    expect: Callable
    tables: Callable
    relabelings: Callable

    def counted(self) -> Counted:
        """All of the prior."""
        return Counted(np.arange(self.layout.n_cells), self.prior)

    def row_marginals(self, natural: np.ndarray, program: Program) -> RowMarginals:
        """Where each distinct row of data falls in the tables under q(x) at natural parameters (n_cells,)."""
        return row_marginals(program, natural)

    def latent_entropy(self, natural: np.ndarray, program: Program) -> float:
        """Entropy of what is hidden under q(x) at natural parameters (n_cells,), nats."""
        found = self.expect(natural[:, None], program)
        return float(found.log_normalizer[0] - times_log(found.statistics[:, 0], natural).sum())

    def complete_counts(self, program: Program) -> np.ndarray:
        """Counts in which nothing is hidden, (n_cells,)."""
        return _contexts.complete_counts(program.contraction)

    def log_evidence_by_enumeration(self, program: Program, max_terms: int) -> tuple[float, int]:
        """The log evidence, nats, and the number of ways to complete the rows; TooLargeError beyond `max_terms`."""
        prior = self.prior
        groups, complete = completions(program, max_terms), self.complete_counts(program)
        row_of = np.repeat(np.arange(prior.n_rows), np.diff(prior.row_starts))
        row_prior, counts = prior.row_sums(prior.concentration), complete.astype(np.int64)
        row_counts = prior.row_sums(counts)
        value = float(prior.log_evidence(complete))
        for group in groups:
            value += log_sum_over_completions(
                prior.concentration, row_prior, row_of, counts, row_counts, group.weight, group.choice_starts,
                group.cell_starts, group.cells,
            )  # fmt: skip
        return value, max(sum(group.n_terms for group in groups), 1)

    def score_covariance(
        self, point: np.ndarray, program: Program, *, joint: bool = True, max_states: int = 4096
    ) -> list[ScoreCovariance]:
        """The sum over rows of data of the covariance of complete-data scores at a point, in softmax coordinates.

        Parameters
        ----------
        point : ndarray of shape (n_cells,)
        program : Program
        joint : bool, default=True
            Whether with covariances between tables; else there is a block for each table.
        max_states : int, default=4096
            Most joint states of what is hidden in one row, which `joint` sums over; TooLargeError beyond.

        Returns
        -------
        list of ScoreCovariance
            Blocks. Coordinates in no block have no part in what is hidden.
        """
        return score_covariance(program, point, joint, max_states)

    def identifiable_dimension(self, hidden: Sequence, data: Any = None) -> int:
        """The generic rank of the map from parameters to the distribution of all nodes but the hidden ones.

        The data make no difference.
        """
        sizes = dict(zip(self.dag.nodes, self.layout.cardinalities))
        return identifiable_dimension(self.dag, sizes, [node for node in self.dag.nodes if node not in hidden])

    def log_n_labelings(self, hidden: Sequence) -> float:
        """ln of the number of relabelings of hidden nodes and states that graph, prior and data do not tell apart."""
        tables = self.tables(self.prior.concentration)
        return log_n_labelings(self.dag, tables, self._seen_through(hidden), self.relabelings(hidden))

    def labelings(self, hidden: Sequence, limit: int) -> np.ndarray:
        """These relabelings as the cell that takes each cell's place, (n, n_cells); TooLargeError beyond `limit`."""
        found = listed(self.relabelings(hidden), self.layout.n_cells, limit)
        if found is None:
            raise TooLargeError(
                f"There are {np.exp(self.log_n_labelings(hidden)):.4g} labelings of the hidden nodes, more than the "
                f"{limit} that are mixed."
            )
        return found

    def _seen_through(self, hidden: Sequence) -> list:
        """The hidden nodes that have observed descendants."""
        ancestors = self.dag.ancestors([node for node in self.dag.nodes if node not in hidden])
        return [node for node in hidden if node in ancestors]
