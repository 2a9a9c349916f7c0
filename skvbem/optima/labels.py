"""How models whose rows have one hidden label each are fitted: priors of emissions, moves, solutions that count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.models.labels.model import EmissionAscent
from skvbem.models.labels.moves import Recombinations
from skvbem.models.labels.shares import crossed, overlap, shared_among_some, shared_anew
from skvbem.vbem.contenders import ALONE, Proposals, blur_of
from skvbem.vbem.draws import drawn
from skvbem.vbem.fit import FitMethod
from skvbem.vbem.posteriors import Form

# Proposals of one round: divisions of the best optimum, its rows shared out anew among some components, or among all,
# and components of it and of each other optimum taken together.
_N_DIVISIONS, _N_AMONG_SOME, _N_ANEW, _N_CROSSED = 12, 4, 4, 2
# Draws of parameters after the best optimum, and after any; proposals that leave the room of two components joined, or
# of one dropped, empty; and components of the rows around one, by maximum likelihood, where they have some width, and
# under a prior.
_N_DRAWN, _N_DRAWN_OF_ANY, _N_JOINED, _N_DROPPED, _N_AROUND, _N_AROUND_ANY = 8, 3, 2, 1, 8, 3
# Searches among partitions, under a prior, where they are swift: instead of new starts, and of half of the crossings;
# and how many rows times components all of them see at most, beyond the first one.
_N_SEARCHES, _MAX_CELLS_OF_SEARCHES = 4, 3000
# New starts whose expected rows are in memory together.
_AT_ONCE = 4
# Nats a row below which components hardly overlap, and divisions, draws and components around a row then.
_APART, _N_WHERE_APART, _N_DRAWN_WHERE_APART = 0.04, 4, 2
# Rows of which many proposals cost hardly more than one: of more, divisions alone are tried.
_MAX_ROWS_OF_ALL_KINDS = 4096
# Steps for each start then.
_N_STEPS_OF_MANY_ROWS = 50


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

    def n_steps_per_start(self, ascent: EmissionAscent) -> int:
        """Few where rows are many and not sampled: a step is dear then, and optima are few."""
        is_large = len(ascent.data) > _MAX_ROWS_OF_ALL_KINDS
        return _N_STEPS_OF_MANY_ROWS if is_large else super().n_steps_per_start(ascent)

    def moves(
        self, ascent: EmissionAscent, statistics: np.ndarray, seed: int, agreed: bool, n_failed: int
    ) -> Proposals:
        """What the best optimum and the others, (n_cells, n_optima), the best first, may be changed to.

        One component of the best is divided in the room of two that are joined or of one that is dropped, or that room
        stays empty; rows of some components of it, or all rows, are shared out anew; components of the best and of
        another are taken together; parameters are drawn; of one optimum after the other, rows go one by one to where
        they are more probable. Where that is swift, searches among partitions replace rows that are all shared out
        anew. Where starts agreed on components that hardly overlap, the most promising divisions are
        enough. Where rows are many and not sampled, divisions alone are tried: each proposal costs as much as a start.
        """
        model, rows = ascent.model, ascent.rows
        if model.n_components == 1 or not len(rows):
            return Proposals([], np.empty((len(statistics), 0)))
        natural, _ = ascent.form.of(model.prior, statistics)
        best, *others = (model.expected_rows(each, ascent.data, rows) for each in np.ascontiguousarray(natural.T))
        has_prior, blur = ascent.form.prior_share > 0, blur_of(ascent.form)
        of_best = Recombinations(model, rows, statistics[:, 0], natural[:, 0], best, seed, blur)
        rng, n_own = np.random.default_rng([seed, 1]), rows.coordinates.shape[1] + 2
        is_simple = agreed and overlap(rows, best) < _APART
        kinds, recombined = of_best.proposals(_N_WHERE_APART if is_simple else _N_DIVISIONS)
        if len(ascent.data) > _MAX_ROWS_OF_ALL_KINDS:
            return Proposals(kinds, recombined)
        proposed = [recombined]

        def propose(kind: str, expected_rows: np.ndarray) -> None:
            if len(expected_rows):
                kinds.extend([kind] * len(expected_rows))
                proposed.append(of_best.of_expected_rows(expected_rows))

        def draw(which: int, n: int) -> None:
            proposed.append(drawn(ascent, statistics[:, which], n, rng))
            kinds.extend(["draw"] * proposed[-1].shape[1])

        if is_simple:
            draw(0, _N_DRAWN_WHERE_APART)
            propose("around a row", of_best.around_rows(_N_DRAWN_WHERE_APART, 1 if has_prior else n_own, rng))
            return Proposals(kinds, np.concatenate(proposed, axis=1))
        searched = np.empty(0)
        if has_prior:
            draw(0, _N_DRAWN)
            draw(int(rng.integers(len(others) + 1)), _N_DRAWN_OF_ANY)
            propose("around a row", of_best.around_rows(_N_AROUND_ANY, 1, rng))
            if n_failed <= len(others):
                propose("transfer", of_best.transferred([best, *others][n_failed])[None])
            n_searches = int(np.clip(_MAX_CELLS_OF_SEARCHES // (len(rows) * model.n_components), 1, _N_SEARCHES))
            searched = of_best.changed_and_transferred(n_searches, rng)
            propose("change, transfer", searched)
            if n_failed == 0:
                for kind, each in zip(*of_best.emptied(_N_JOINED, _N_DROPPED)):
                    propose(kind, each[None])
        else:
            draw(0, _N_DRAWN_OF_ANY)
            propose("around a row", of_best.around_rows(_N_AROUND, n_own, rng))
        pairs = [pair for other in others for pair in ((best, other), (other, best))]
        for _ in range(0 if len(searched) else _N_ANEW // _AT_ONCE):
            propose(ALONE, shared_anew(rows, model.n_components, _AT_ONCE, rng))
        propose("share out anew", shared_among_some(rows, best, _N_AMONG_SOME, rng))
        for pair in pairs:
            propose("cross", crossed(rows, *pair, 1 if len(searched) else _N_CROSSED, rng, model.emission.n_levels))
        return Proposals(kinds, np.concatenate(proposed, axis=1))

    def solutions(self, ascent: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """By maximum likelihood, solutions without a component that has no width: of those there is no best."""
        if ascent.form.prior_share:
            return None
        prior, first = ascent.model.prior.blocks[-1], ascent.model.first_emission_cell
        if prior.are_spikes(np.zeros((ascent.model.n_cells - first, 1))) is None:
            return None
        return lambda statistics: ~prior.are_spikes(statistics[first:]).any(axis=0)
