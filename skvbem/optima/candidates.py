"""Candidates for the best optimum, proposed or drawn, and which of them met the same one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from skvbem.optima.factor_statistics import Numbers, numbers_of
from skvbem.optima.tuning import TUNING
from skvbem.vbem.driver import Run
from skvbem.vbem.fit import Fit, Move
from skvbem.vbem.posteriors import Form

#: The kind of a proposal that keeps nothing of any optimum.
NEW_START = "new start"


class Proposals(NamedTuple):
    """Points to go on from, and what each of them changes.

    Parameters
    ----------
    kinds : list of str
    statistics : ndarray of shape (n_cells, n_proposals)
    are_few : bool
        They are the most promising ones alone.
    are_enough : bool
        Where they lead nowhere, no others are worth their time.
    """

    kinds: list[str]
    statistics: np.ndarray
    are_few: bool = False
    are_enough: bool = False


@dataclass(slots=True, eq=False)  # not frozen: thousands are made in a search, in a third of the time
class Candidate:
    """A point of a start's run, or of a proposal's: what may become the best optimum.

    Parameters
    ----------
    statistics : ndarray of shape (n_cells,)
    start : int
        Number of the start that it comes from.
    moves : tuple of Move
        What raised the objective since; the last one may be under way.
    objective : float
        There, nats.
    to_come : float
        The gain still to come, as estimated, nats.
    trace : list of float
    n_iter : int
    converged : bool
    is_regular : bool
        By maximum likelihood, no component of it has lost its width.
    model : LatentModel, optional
        Whose statistics they are, in a search in which models change.
    """

    statistics: np.ndarray
    start: int
    moves: tuple[Move, ...] = ()
    objective: float = -np.inf
    to_come: float = np.inf
    trace: list[float] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    is_regular: bool = True
    model: Any = None

    @property
    def is_new_start(self) -> bool:
        """Nothing of an optimum was known where it began."""
        return not self.moves or self.moves[-1].kind == NEW_START

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorting key: regular candidates come first, then the objective decides."""
        return self.is_regular, self.objective

    @property
    def has_ended(self) -> bool:
        """So little is still to come that it cannot be taken for another optimum."""
        return self.to_come < TUNING.different

    def after(self, kind: str) -> tuple[Move, ...]:
        """The moves that led here, and one more under way: kinds of several in turn are joined until one is judged."""
        if self.moves and self.moves[-1].objective == -np.inf:
            return *self.moves[:-1], Move(f"{self.moves[-1].kind}, {kind}", -np.inf)
        return *self.moves, Move(kind, -np.inf)

    @property
    def numbers(self) -> Numbers:
        """Factors of each component, of each group whose factors are counted."""
        return numbers_of(self.model.emission, self.model.n_components)

    @property
    def least_better(self) -> float:
        """The objective of another model that is better, nats: of runs nearly to their ends."""
        return self.objective + max(3 * TUNING.different, 1e-9 * abs(self.objective))

    def is_worse_than(self, other: Candidate) -> bool:
        """Another model is better; of the same numbers of factors by what no further step would bring."""
        is_same = bool(self.numbers) and self.numbers == other.numbers
        return other.objective > max(self.least_better, self.objective + is_same * TUNING.rise_of_same_numbers)

    def taken(self) -> Candidate:
        """The candidate with the move that led here judged: its objective and numbers."""
        judged = replace(
            self.moves[-1], objective=self.objective, n_components=self.model.n_components, n_factors=self.numbers
        )
        return replace(self, moves=(*self.moves[:-1], judged))

    def continued(self, after: Candidate, is_move: bool = False) -> Candidate:
        """The result of continuing from here, with this candidate's history; its last move gets the new objective."""
        if is_move and self.moves:
            last = self.moves[-1]
            after.moves = (*self.moves[:-1], Move(last.kind, after.objective, last.n_components, last.n_factors))
        after.trace, after.n_iter = [*self.trace, *after.trace], self.n_iter + after.n_iter
        return after

    def may_meet(self, better: Candidate) -> bool:
        """The two objectives can still become equal: both may be on their way to one optimum."""
        behind = better.objective - self.objective - TUNING.different
        return better.is_regular == self.is_regular and behind <= better.to_come + self.to_come

    def may_reach(self, best: Candidate) -> bool:
        """It may yet reach the best."""
        return self.is_regular == best.is_regular and self.objective + TUNING.reach * self.to_come >= best.objective


def begun(starts: np.ndarray) -> list[Candidate]:
    """Starts (n_cells, n_starts) as candidates."""
    return [Candidate(column, number) for number, column in enumerate(np.ascontiguousarray(starts.T))]


def proposed(best: Candidate, proposals: Proposals) -> list[Candidate]:
    """Proposals as candidates, which go on with the history of the best."""
    columns = np.ascontiguousarray(proposals.statistics.T)
    return [Candidate(column, best.start, best.after(kind)) for kind, column in zip(proposals.kinds, columns)]


def smoothing_of(form: Form) -> float:
    """The share of all counts that a proposal mixes into each of its own: none where q(theta) has a prior."""
    return 0.0 if form.prior_share else TUNING.smoothing


def _best_first(candidates: Sequence[Candidate]) -> list[int]:
    """Places of candidates, that of the best first."""
    return sorted(range(len(candidates)), key=lambda k: candidates[k].rank, reverse=True)


def _first_of_the_best(candidates: Sequence[Candidate], places: Sequence[int]) -> int:
    """The first place whose candidate only rounding tells from the best, of places with that of the best first."""
    best = candidates[places[0]]
    least = best.objective - TUNING.same * (1.0 + abs(best.objective))

    def is_best(k: int) -> bool:
        return candidates[k].is_regular == best.is_regular and candidates[k].objective >= least

    return min(takewhile(is_best, places))


def different(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates, the best first, one of each optimum: relabelings of one have one objective."""
    left, kept = _best_first(candidates), []
    while left:
        place = _first_of_the_best(candidates, left)
        best = candidates[place]
        kept.append(best)
        left = [k for k in left if k != place and not candidates[k].may_meet(best)]
    return kept


def best_of_all(candidates: Sequence[Candidate]) -> Candidate:
    """The best candidate; the first of those that only rounding tells apart."""
    return candidates[_first_of_the_best(candidates, _best_first(candidates))]


def candidates_after(
    result: Run, before: Sequence[Candidate], is_regular: Callable[[np.ndarray], np.ndarray] | None
) -> list[Candidate]:
    """Candidates after a run whose starts they were, and which of them are regular."""
    which = [True] * len(before) if is_regular is None else is_regular(result.statistics).tolist()
    each = zip(
        *(before, result.objective.tolist(), np.maximum(result.to_come, 0.0).tolist(), result.traces),
        *(result.n_iter.tolist(), result.converged.tolist(), which),
    )
    return [
        Candidate(column.copy(), last.start, last.moves, *end)
        for column, (last, *end) in zip(result.statistics.T, each)
    ]


def modes(optima: Sequence[Candidate], best: Candidate, most: int) -> list[Candidate]:
    """Of different optima, the best first, those that may have a part of the posterior worth a chain.

    The evidence of an optimum's neighborhood may be further above its bound than that of the best is above its own.
    """
    least = best.objective - TUNING.nats_of_mode
    return [each for each in optima if each.is_regular == best.is_regular and each.objective + each.to_come >= least][
        :most
    ]


def fit_of(best: Candidate, optima: list[Candidate], ends: Iterable[Candidate], n_starts: int) -> Fit:
    """The fit that ended with the best of different optima, of which it keeps a few."""
    objectives, n_iter, converged = np.full(n_starts, np.nan), np.zeros(n_starts, int), np.zeros(n_starts, bool)
    to_come, counts = np.zeros(n_starts), np.ones(n_starts, bool)
    traces: list[tuple[float, ...]] = [()] * n_starts
    for each in ends:
        objectives[each.start], n_iter[each.start], converged[each.start] = each.objective, each.n_iter, each.converged
        traces[each.start], to_come[each.start] = tuple(each.trace), each.to_come
        counts[each.start] = each.is_regular
    kept = modes(optima, best, min(TUNING.n_optima, max(TUNING.n_kept_doubles // len(best.statistics), 1)))
    return Fit(
        best.statistics,
        best.objective,
        tuple(best.trace),
        best.n_iter,
        best.converged,
        objectives,
        n_iter,
        converged,
        tuple(traces),
        np.stack([each.statistics for each in kept], axis=1),
        to_come,
        counts,
        moves=best.moves,
    )


def drawn(ascent: Any, statistics: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Expected statistics (n_cells, n) under parameters drawn after small parts of the statistics (n_cells,) of a fit.

    Fewer than n where rounding spoils a draw, as a precision that is singular.

    Parameters
    ----------
    ascent : Ascent
        Which knows its `model`, and can `expect` statistics under natural parameters.
    statistics : ndarray of shape (n_cells,)
    n : int
    rng : numpy.random.Generator
    """
    prior = ascent.model.prior
    points = (prior + statistics[:, None] * np.resize(TUNING.fractions_of_draws, n)).sample(rng)
    try:
        with np.errstate(all="ignore"):
            expected = ascent.expect(np.ascontiguousarray(prior.natural(points)))
    except (np.linalg.LinAlgError, FloatingPointError):
        return np.empty((len(statistics), 0))
    return expected[:, np.isfinite(expected).all(axis=0)]
