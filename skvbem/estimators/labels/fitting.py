"""How models whose rows have one hidden label each are fitted: what they are moved to, and which solutions count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.models.labels.model import EmissionAscent
from skvbem.models.labels.moves import Recombinations
from skvbem.vbem.exploration import Proposals
from skvbem.vbem.fit import FitMethod
from skvbem.vbem.posteriors import Form

# Proposals of one round of moves, and the share of all rows that they mix into components by maximum likelihood.
_MAX_PROPOSALS, _BLUR = 12, 1e-3


@dataclass(frozen=True, eq=False)
class LabelStarts:
    """Starts of a model whose rows have one hidden label each.

    Parameters
    ----------
    kind : str
        As the `init` parameter names it.
    n_starts : int
    seed : tuple of int
    draw : callable
        Statistics (n_cells, n_starts) of a kind, a model, its data, distinct rows of these, a number and a generator.
    """

    kind: str
    n_starts: int
    seed: tuple[int, ...]
    draw: Callable[..., np.ndarray]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each; those of "auto" are spread and around any rows by turns."""
        if self.kind == "hierarchical":
            return ("hierarchical", *["k-means++"] * (self.n_starts - 1))
        by_turns = ("k-means++", "random") if self.kind == "auto" else (self.kind,)
        return tuple(by_turns[k % len(by_turns)] for k in range(self.n_starts))

    def __call__(self, ascent: EmissionAscent) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        rng = np.random.default_rng(self.seed)
        return self.draw(self.kind, ascent.model, ascent.data, ascent.rows, self.n_starts, rng)


class LabelMethod(FitMethod):
    """Fits models whose rows have one hidden label each."""

    def eased(self, model, data, form: Form, starts: np.ndarray, n_threads: int) -> np.ndarray:
        """Starts that say something of hidden hyperparameters, as those of fits by maximum likelihood do not."""
        return model.prior.with_hyperparameters(starts) if form.prior_share else starts

    def moves(self, ascent: EmissionAscent, statistics: np.ndarray, seed: int) -> Proposals:
        """One component divided, in the room of two that are joined or of one that is dropped."""
        model = ascent.model
        if model.n_components == 1 or not len(ascent.rows):
            return Proposals([], np.empty((len(statistics), 0)))
        natural, _ = ascent.form.of(model.prior, statistics[:, None])
        expected_rows = model.expected_rows(natural[:, 0], ascent.data, ascent.rows)
        blur = 0.0 if ascent.form.prior_share else _BLUR
        recombinations = Recombinations(model, ascent.rows, statistics, natural[:, 0], expected_rows, seed, blur)
        return Proposals(*recombinations.proposals(_MAX_PROPOSALS))

    def solutions(self, ascent: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """By maximum likelihood, solutions without a component that has no width: of those there is no best."""
        if ascent.form.prior_share:
            return None
        prior, first = ascent.model.prior.blocks[-1], ascent.model.first_emission_cell
        if prior.are_spikes(np.zeros((ascent.model.n_cells - first, 1))) is None:
            return None
        return lambda statistics: ~prior.are_spikes(statistics[first:]).any(axis=0)
