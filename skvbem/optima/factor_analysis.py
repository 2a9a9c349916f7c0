"""Where fits of factor analyzers start: from principal components, and from loadings that are drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from skvbem.emissions.base import start_natural
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.optima.tuning import TUNING


@dataclass(frozen=True, eq=False)
class FactorStarts:
    """Starts of a mixture of one factor analyzer.

    Parameters
    ----------
    kind : {"auto", "random"}
        "auto" has the principal components of the data first; all others have loadings that are drawn.
    n_starts : int
    seed : tuple of int
    """

    kind: str
    n_starts: int
    seed: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        first = ("principal",) if self.kind == "auto" else ("random",)
        return (*first, *["random"] * (self.n_starts - 1))

    def __call__(self, ascent: MixtureAscent) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        model = ascent.model
        emission, prior = cast(FactorAnalyzer, model.emission), model.prior.blocks[-1]
        loadings = []
        for number, kind in enumerate(self.kinds):
            rng = np.random.default_rng([*self.seed, number])
            share = TUNING.explained / max(emission.n_factors, 1)
            drawn = np.sqrt(share) * rng.standard_normal(emission.loadings.shape)
            loadings.append(emission.loadings if kind == "principal" else drawn)
        starts = [start_natural(replace(emission, loadings=each), prior) for each in loadings]
        return model.started(statistics_at(model, np.stack(starts, axis=1), ascent.data))


def statistics_at(model: Mixture, of_emission: np.ndarray, data) -> np.ndarray:
    """Expected statistics (n_cells, n_lanes) under natural parameters (n_own, n_lanes) of the only component."""
    weights = model.prior.blocks[0].expected_natural()
    of_weights = np.repeat(weights[:, None], of_emission.shape[1], axis=1)
    return model.expect(np.concatenate([of_weights, of_emission]), data).statistics
