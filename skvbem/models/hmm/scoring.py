"""What reports and deterministic scores ask of a hidden Markov model: how alike states are, entropies, labelings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from skvbem.families import Dirichlet
from skvbem.models.hmm.dimension import identifiable_dimension
from skvbem.models.hmm.enumeration import log_evidence_by_enumeration
from skvbem.models.hmm.forward_backward import Passes
from skvbem.models.hmm.information import hmm_covariance
from skvbem.models.information import ScoreCovariance
from skvbem.models.labels.divergence import symmetric_divergences
from skvbem.models.labels.scoring import EmissionScoring
from skvbem.models.marginals import Counted

if TYPE_CHECKING:
    from skvbem.models.sequences.data import HMMData


class HMMScoring(EmissionScoring):
    """Methods of a hidden Markov model."""

    hidden_states = "states"
    _passes: Callable
    _log_z: Callable
    _log_chain: Callable
    _stretch_rows: Callable

    def divergences(self, natural: np.ndarray, data: HMMData) -> np.ndarray:
        """How unlike states are, (n_states, n_states), nats a step, 0 on the diagonal.

        What rows say (see `symmetric_divergences`; NaN for states without any), and the symmetric divergence of where
        the two go, where it makes no difference to which of the two: states at 0 could be one state.

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
        data : HMMData
        """
        n = self.n_components
        found = symmetric_divergences(n, self._shares_and_logs(self._passes(natural[:, None], data), data))
        transition = softmax(self._log_chain(natural[:, None])[1][0], axis=1)
        for a in range(n):
            for b in range(a):
                both = transition[[a, b]]
                both = np.column_stack([both[:, [a, b]].sum(axis=1), np.delete(both, [a, b], axis=1)])
                logs = np.log(np.maximum(both, np.exp(-700.0)))
                away = float(((both[0] - both[1]) * (logs[0] - logs[1])).sum())
                found[a, b], found[b, a] = found[a, b] + away, found[b, a] + away
        return found

    def latent_entropy(self, natural: np.ndarray, data: HMMData) -> float:
        """Entropy of the paths under q(x) at natural parameters (n_cells,), nats: ln Z less what q(x) expects of ln."""
        log_first, log_pairs = (logs[0] for logs in self._log_chain(natural[:, None]))
        passes = self._passes(natural[:, None], data)
        found = float(self._log_z(natural[:, None], data)[0])
        for shares, logs in self._shares_and_logs(passes, data):
            found -= _expected(shares, logs)
        return found - _expected(passes.first_counts[0], log_first) - _expected(passes.counts[0], log_pairs)

    def _shares_and_logs(self, passes: Passes, data: HMMData) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Posteriors of states times weights, and log likelihoods of rows, (n_states, n_rows), of blocks of rows."""
        for pieces in data.stretches(*self._stretch_rows()):
            of_sequences = np.zeros((1, len(pieces[0].starts)))
            for piece, shares in passes.smoothed(pieces, data.weight[pieces[0].sequences], of_sequences):
                yield shares[0], passes.log_likelihood(piece.rows)[0]

    def counted(self) -> Counted:
        """Nothing: no statistics count rows that are independent under q(x), as steps of a path are not."""
        return Counted(np.zeros(0, dtype=np.int64), Dirichlet(np.zeros(0), np.zeros(1, dtype=np.int64)))

    def log_evidence_by_enumeration(self, data: HMMData, max_terms: int) -> tuple[float, int]:
        """The log evidence, nats, summed over all paths of all sequences, and their number."""
        return log_evidence_by_enumeration(self, data, max_terms)  # type: ignore[arg-type]

    def score_covariance(
        self, point: tuple, data: HMMData, *, joint: bool = True, max_states: int = 4096
    ) -> list[ScoreCovariance]:
        """The sum over sequences of the covariance of complete-data scores at a point, in unconstrained coordinates.

        Without `joint` there is a block for the first states, for the transitions and for each state. `max_states`
        makes no difference.
        """
        return hmm_covariance(self, point, data, joint)  # type: ignore[arg-type]

    def identifiable_dimension(self, hidden: Sequence, data: HMMData) -> int:
        """The generic rank of the map from parameters to the distribution of the longest sequence of the data.

        Raises
        ------
        ValueError
            If it is not known for the emission.
        """
        lengths = (data.ends - data.starts[:-1])[data.weight > 0]
        return identifiable_dimension(self, int(lengths.max(initial=0)))  # type: ignore[arg-type]


def _expected(probability: np.ndarray, logs: np.ndarray) -> float:
    """The sum of logs times probabilities; what is impossible has none, but for a trace that passes leave."""
    return float((probability * np.where(np.isfinite(logs), logs, 0.0)).sum())
