"""How networks are fitted: starts from tables, and priors learned on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skvbem._numerics import safe_log
from skvbem.models import DirichletAscent, DiscreteDAG
from skvbem.models.network.model import StructuredAscent
from skvbem.models.network.moves import StatesSharedOut
from skvbem.vbem.contenders import Proposals, blur_of
from skvbem.vbem.draws import drawn
from skvbem.vbem.fit import Fit, FitMethod, Stop
from skvbem.vbem.hyperparameters import strengthened
from skvbem.vbem.posteriors import Form

# Proposals of one round of moves.
_MAX_PROPOSALS = 8
# Draws of tables in a round.
_N_DRAWN = 3


def random_points(model: DiscreteDAG, n_points: int, rng: np.random.Generator) -> np.ndarray:
    """Tables drawn uniformly, (n_cells, n_points), the first ones the same however many are drawn."""
    draws = rng.standard_exponential((n_points, model.layout.n_cells)).T
    return draws / model.prior.per_cell(model.prior.row_sums(draws))


@dataclass(frozen=True, eq=False)
class TableStarts:
    """Starts from tables: from those given, or from tables drawn uniformly.

    Parameters
    ----------
    seed : tuple of int
        Of random tables.
    n_starts : int
    given : ndarray of shape (n_cells, 1) or None
    """

    seed: tuple[int, ...]
    n_starts: int
    given: np.ndarray | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        return ("random" if self.given is None else "given",) * self.n_starts

    def __call__(self, ascent: DirichletAscent | StructuredAscent) -> np.ndarray:
        """Expected statistics, (n_cells, n_starts)."""
        points = self.given
        if points is None:
            points = random_points(ascent.model, self.n_starts, np.random.default_rng(self.seed))
        return ascent.expect(safe_log(points))


class NetworkMethod(FitMethod):
    """Fits discrete networks."""

    def ascent(self, model, data, form: Form, n_threads: int) -> DirichletAscent | StructuredAscent:
        """Full steps of a network on its data."""
        return (DirichletAscent if data.is_exact else StructuredAscent)(model, data, form, n_threads)

    def moves(
        self, ascent: DirichletAscent | StructuredAscent, statistics: np.ndarray, seed: int, agreed: bool, n_failed: int
    ) -> Proposals:
        """States of one latent that share their counts anew, two or one in the room of two joined; tables drawn."""
        rng = np.random.default_rng(seed)
        counts = statistics[: ascent.model.layout.n_cells, 0]
        shared_out = StatesSharedOut(ascent.model, ascent.data.latents, counts, rng, blur_of(ascent.form))
        kinds, points = shared_out.proposals(_MAX_PROPOSALS)
        if not kinds:
            return Proposals(kinds, points)
        if isinstance(ascent, StructuredAscent):
            points = ascent.with_uniform_clusters(points)
        tables = drawn(ascent, counts, _N_DRAWN, rng)
        if not tables.shape[1]:
            return Proposals(kinds, points)
        return Proposals([*kinds, *["draw"] * tables.shape[1]], np.concatenate([points, tables], axis=1))

    def finalize(
        self, ascent: DirichletAscent | StructuredAscent, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]
    ) -> Fit:
        """The fit with what is kept of q(x) apart from its counts."""
        if ascent.data.is_exact:
            return fit
        n_cells = ascent.model.layout.n_cells
        counts, state = fit.statistics[:n_cells], fit.statistics[n_cells:]
        return replace(fit, statistics=counts, optima=fit.optima[:n_cells], state=state)

    def resumed(self, fit: Fit) -> np.ndarray:
        """Counts, and behind them what was kept of q(x)."""
        return fit.statistics if fit.state is None else np.concatenate([fit.statistics, fit.state])

    def statistics_to_start_from(self, statistics: np.ndarray) -> np.ndarray:
        """Counts of which none is 0: what an earlier fit ruled out (by ML, say) may occur."""
        return np.maximum(statistics, 1e-6)

    def strengthened(self, model: DiscreteDAG, base: DiscreteDAG, statistics: np.ndarray) -> DiscreteDAG:
        """One strength for each node multiplies its tables; see `FitMethod`."""
        layout = model.layout
        rows = [layout.table_cells(k) // size for k, size in enumerate(layout.cardinalities) if layout.has_own_table(k)]
        group_starts = np.concatenate([[0], np.cumsum(rows)])
        return model.with_prior(strengthened(model.prior, statistics, base.prior, group_starts))
