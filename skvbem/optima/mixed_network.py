"""How networks of mixed columns are fitted: from tables drawn uniformly, and rows drawn as middles of components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.models.mixed_network.model import MixedNetworkAscent
from skvbem.models.mixed_network.starts import random_starts
from skvbem.optima.candidates import Proposals
from skvbem.optima.draws import drawn
from skvbem.optima.plan import FitMethod
from skvbem.optima.tuning import TUNING
from skvbem.vbem.posteriors import Form


@dataclass(frozen=True, eq=False)
class MixedStarts:
    """Starts around rows that are drawn.

    Parameters
    ----------
    seed : tuple of int
    n_starts : int
    """

    seed: tuple[int, ...]
    n_starts: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each: seeds keep away from each other in every other one."""
        return tuple(("k-means++", "random")[k % 2] for k in range(self.n_starts))

    def __call__(self, ascent: MixedNetworkAscent) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        return random_starts(ascent.model, ascent.data, self.n_starts, np.random.default_rng(self.seed))


class MixedNetworkMethod(FitMethod):
    """Fits networks of mixed columns."""

    def ascent(self, model, data, form: Form, n_threads: int) -> MixedNetworkAscent:
        """Full steps of a network on its data."""
        return MixedNetworkAscent(model, data, form, n_threads)

    def moves(
        self, ascent: MixedNetworkAscent, statistics: np.ndarray, seed: int, agreed: bool, n_failed: int
    ) -> Proposals:
        """Parameters drawn after the best optimum, as long as something is hidden; new starts among them."""
        if not ascent.data.program.plans:
            return Proposals([], np.empty((len(statistics), 0)))
        rng = np.random.default_rng(seed)
        points = drawn(ascent, statistics[:, 0], TUNING.n_of_kind, rng)
        anew = random_starts(ascent.model, ascent.data, 2, rng)
        kinds = ["draw"] * points.shape[1] + ["around rows"] * anew.shape[1]
        return Proposals(kinds, np.concatenate([points, anew], axis=1))
