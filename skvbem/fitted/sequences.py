"""Models of sequences as fitted: predictive densities of whole sequences, whatever their hidden variables are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skvbem.fitted.base import Fitted


@dataclass(frozen=True, eq=False)
class FittedSequences(Fitted):
    """A model of sequences as fitted."""

    def natural(self, predictive: str) -> np.ndarray:
        """Natural parameters under which states are told, (n_cells,): at the published point, or those of VB."""
        if predictive == "vb" and self.form.density:
            return self.posterior.expected_natural()
        return self.model.prior.natural(self.point)

    def draws(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Natural parameters drawn from q(theta), (n_cells, n_draws); the first ones the same however many."""
        drawn = [self.model.prior.natural(self.posterior.sample(each)) for each in rng.spawn(n_draws)]
        return np.stack(drawn, axis=1)

    def log_predictive(self, data: Any, predictive: str, n_draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Log predictive probabilities of sequences, and their standard errors, nats, (n_sequences,)."""
        if predictive != "average" or not self.form.density:
            log_probabilities = self.model.log_normalizers_of_sequences(self.natural(predictive), data)
            return log_probabilities, np.zeros(len(log_probabilities))
        naturals = self.draws(n_draws, self.rng_of_draws)
        logs = np.stack([self.model.log_normalizers_of_sequences(each, data) for each in naturals.T])
        log_probabilities = logsumexp(logs, axis=0) - np.log(n_draws)
        with np.errstate(invalid="ignore"):
            share = np.exp(logs - log_probabilities)  # of mean 1
            error = np.sqrt(((share - 1) ** 2).sum(axis=0) / (n_draws * max(n_draws - 1, 1)))
        return log_probabilities, np.where(np.isfinite(log_probabilities), error if n_draws > 1 else np.nan, 0.0)

    @property
    def rng_of_draws(self) -> np.random.Generator:
        """Random numbers of the draws that predictions average over, the same at every call."""
        return np.random.default_rng([*self.seed, 2**31 + 1])
