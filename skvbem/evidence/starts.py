r"""Densities that chains and draws start from, and how the evidence is split among them.

A start is q(theta) = p(theta) after statistics, the expected counts of a VB fit made smaller: a share of what is
uncertain in them, all of what is not. Share 0 is the prior, or the posterior of what is certain. Chains from VB fits
are steady but seldom leave their mode, chains from the prior find every mode but only of small data. So there are many
starts, each of which estimates a part of the evidence, split at every point theta in proportion to the densities of the
starts, made symmetric over labelings: start a has the part

.. math:: h_a(\theta) = q_a(\theta) / \sum_b \bar q_b(\theta), \qquad
          \bar q(\theta) = \frac{1}{S} \sum_g q(g \theta),

which, averaged over the S labelings of theta, adds up to one. Weights times parts add up to the evidence without bias,
whether or not a chain changes labels or modes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from skvbem.evidence.evaluation import Evaluation
from skvbem.vbem.fit import Fit

# Of two VB fits whose bounds differ by less, one is a start.
_ALIKE = 0.01
# A VB fit whose bound is lower than the best by more is none.
_HOPELESS = 50.0
# One chain in so many starts from the prior.
_PRIOR_EVERY = 4
_ANYWHERE = 1


class Starts:
    """Starts of one evaluation, and the part of the evidence that each of them stands for.

    Parameters
    ----------
    evaluation : Evaluation
    shares : sequence of float
        How much of a VB fit's uncertain counts each start keeps; each share above 0 makes a start of each fit.
    n_fits : int
        Most VB fits that starts are made of, the best ones first.

    Attributes
    ----------
    statistics : ndarray of shape (n_starts, n_cells)
        Those with a share of 0 come last.
    shares : ndarray of shape (n_starts,)
    """

    def __init__(self, evaluation: Evaluation, shares: Sequence[float], n_fits: int):
        model = evaluation.model
        if not len(shares) or not all(0.0 <= share <= 1.0 for share in shares):
            raise ValueError(f"Starts keep shares between 0 and 1 of expected counts. Got {shares!r} instead.")
        fit = evaluation.fit("vb")
        certain = model.certain_statistics(evaluation.program, fit.statistics, evaluation.generator(_ANYWHERE))
        if certain is fit.statistics:
            pairs = [(1.0, certain)]
        else:
            pairs = [(share, counts) for counts in distinct_fits(fit)[:n_fits] for share in shares if share]
            pairs += [(0.0, certain)] * (0.0 in shares)
        self.shares = np.array([share for share, _ in pairs])
        # subtracting rounds, and a count may not be negative
        self.statistics = np.stack([certain + share * np.maximum(counts - certain, 0.0) for share, counts in pairs])
        self.relabelings = model.relabelings(evaluation.hidden)
        self._model = model

    def __len__(self) -> int:
        return len(self.shares)

    def concentrations(self, which: np.ndarray) -> np.ndarray:
        """Concentrations of q(theta) of start after start, (n_cells, n)."""
        return (self._model.prior + self.statistics[which].T).concentration

    def deal(self, n_chains: int) -> np.ndarray:
        """The start of each chain, (n_chains,); starts not dealt are left out.

        One chain in four starts from the prior, if that and others are there. No start gets a single chain, unless
        there is no other.
        """
        n_fits = int(np.count_nonzero(self.shares))
        from_prior = np.arange(n_chains) % _PRIOR_EVERY == _PRIOR_EVERY - 1
        if n_fits == len(self) or (n_fits and np.count_nonzero(from_prior) < 2):
            from_prior[:] = False
        elif not n_fits:
            from_prior[:] = True
        n_rest = int(np.count_nonzero(~from_prior))
        n_fits = min(n_fits, max(n_rest // 2, 1))
        kept = [*range(n_fits), len(self) - 1] if from_prior.any() else range(n_fits)
        self.shares, self.statistics = self.shares[kept], self.statistics[kept]
        which = np.full(n_chains, len(self) - 1)
        which[~from_prior] = np.arange(n_rest) % max(n_fits, 1)
        return which

    def log_parts(self, which: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln of the part that start `which` has of the weight of each point, (n_points,)."""
        log_scales = -(self._model.prior + self.statistics.T).log_normalizer()
        inner = self.statistics @ log_points
        own = log_scales[which] + inner[which, np.arange(len(which))]
        relabelings, correction = self.relabelings, 0.0
        if relabelings is not None and relabelings.n > 1 and self.shares.any():
            if np.isfinite(relabelings.cost):
                inner = relabelings.log_sums(self.statistics, log_points) - np.log(relabelings.n)
            else:
                correction = relabelings.correction(self.statistics[int(np.argmax(self.shares))], log_points)
        return own - logsumexp(log_scales[:, None] + inner, axis=0) + correction

    @property
    def labelings(self) -> int | str:
        """How many labelings results are right for, as `Evidence.details` says it."""
        return "too many to correct for: one labeling" if self.relabelings is None else self.relabelings.n


def distinct_fits(fit: Fit) -> list[np.ndarray]:
    """Statistics of the different optima that the starts of a fit ended in, the best first."""
    if fit.restart_statistics is None:
        return [fit.statistics]
    objectives = fit.restart_objectives[~np.isnan(fit.restart_objectives)]
    found, last = [], np.inf
    for k in np.argsort(-objectives, kind="stable"):
        if objectives[k] < fit.objective - _HOPELESS:
            break
        if objectives[k] < last - _ALIKE:
            found.append(fit.restart_statistics[:, k])
            last = objectives[k]
    return found
