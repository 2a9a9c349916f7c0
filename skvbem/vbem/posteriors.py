r"""The forms q(theta) may take. EM is VBEM with q(theta) a point [BG §3.1]: nothing else in the loop differs.

==================  ==================================  ====================  =============================
form                built from prior and statistics as  natural parameters    penalty, nats
==================  ==================================  ====================  =============================
density (VB)        prior + statistics                  expected [Beal 2.95]  - KL(q || prior)
point, MAP          mode of prior + statistics          at the mode           ln prior density at the mode
point, ML           mode of the statistics alone        at the mode           0
==================  ==================================  ====================  =============================

A mode depends on coordinates, and the MAP penalty is the log density in the *same* coordinates, or the objective would
fall. The natural (softmax) basis is the default: its mode always exists. In the probability basis a Dirichlet mode at
concentration a is the natural one at a - 1, with no interior mode at a <= 1 where data leave it there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.families import Dirichlet
from skvbem.families.base import ConjugateFamily


@dataclass(frozen=True)
class Form:
    """A form of q(theta): the density of VB, or the point of MAP or ML.

    Parameters
    ----------
    name : {"vb", "map", "ml"}
    density : bool
        Whether q(theta) is a density; else a point.
    prior_share, lowered_by : float
        The point is the mean of Dir(prior_share x prior - lowered_by + counts), the density Dir(prior + counts).
    """

    name: str
    density: bool
    prior_share: float = 1.0
    lowered_by: float = 0.0

    def of(
        self, prior: ConjugateFamily, statistics: np.ndarray, posterior: ConjugateFamily | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Natural parameters, of the statistics' shape, and the penalty (n_lanes,), nats, of any family.

        The posterior, prior + statistics, may be given if it is known.
        """
        if self.density:
            posterior = prior + statistics if posterior is None else posterior
            natural = posterior.expected_natural()
            return natural, -posterior.kl(prior, natural)
        if self.prior_share == 0.0:
            return self.natural(prior, statistics), np.zeros(statistics.shape[1:])
        point = self.point_of(prior, statistics)
        return prior.natural(point), prior.log_density(point, "probability" if self.lowered_by else "natural")

    def natural(
        self, prior: ConjugateFamily, statistics: np.ndarray, posterior: ConjugateFamily | None = None
    ) -> np.ndarray:
        """Natural parameters alone; see `of`."""
        if self.density:
            return (prior + statistics if posterior is None else posterior).expected_natural()
        if self.prior_share == 0.0 and not isinstance(prior, Dirichlet):
            return prior.natural_of_most_likely(statistics)
        return prior.natural(self.point_of(prior, statistics))

    def of_complete(
        self, prior: ConjugateFamily, statistics: np.ndarray, posterior: ConjugateFamily | None = None
    ) -> np.ndarray:
        """The objective of complete data, (n_lanes,), nats, up to what no statistics change; see `of`."""
        if self.density:
            return (prior + statistics if posterior is None else posterior).log_normalizer()
        if self.prior_share == 0.0:
            return (statistics * self.natural(prior, statistics)).sum(axis=0)
        point = self.point_of(prior, statistics)
        return (statistics * prior.natural(point)).sum(axis=0) + prior.log_density(
            point, "probability" if self.lowered_by else "natural"
        )

    def point_of(self, prior: ConjugateFamily, statistics: np.ndarray):
        """The point at these statistics, of any family; of a density its center."""
        if isinstance(prior, Dirichlet):
            return self.point(prior, statistics)
        if self.density:
            return (prior + statistics).center()
        if self.prior_share == 0.0:
            return prior.most_likely(statistics)
        return (prior + statistics).mode("probability" if self.lowered_by else "natural")

    def offset(self, prior: Dirichlet) -> np.ndarray:
        """The pseudocounts that a point adds to the counts, (n_cells,)."""
        offset = self.prior_share * prior.concentration - self.lowered_by
        # a row of one cell is no parameter: it is 1 whatever the basis
        alone = np.diff(prior.row_starts) == 1
        offset[prior.row_starts[:-1][alone]] = self.prior_share
        return offset

    def constant(self, prior: Dirichlet) -> float:
        """The part of the penalty that no count changes, nats."""
        return 0.0 if self.density or self.prior_share == 0.0 else -float(prior.log_normalizer())

    def point(self, prior: Dirichlet, counts: np.ndarray) -> np.ndarray:
        """The point (or, for a density, the posterior mean) at counts (n_cells, ...); rows without mass are uniform."""
        added = prior.concentration if self.density else self.offset(prior)
        share = counts + added.reshape(added.shape + (1,) * (counts.ndim - added.ndim))
        rows = prior.per_cell(prior.row_sums(share))
        uniform = prior.per_cell(1.0 / np.diff(prior.row_starts)).reshape((-1,) + (1,) * (share.ndim - 1))
        return np.divide(share, rows, out=np.broadcast_to(uniform, share.shape).astype(float), where=rows > 0)


VB = Form("vb", density=True)
MAP = Form("map", density=False)
MAP_IN_PROBABILITIES = Form("map", density=False, lowered_by=1.0)
ML = Form("ml", density=False, prior_share=0.0)
