"""Many starts, one optimum: successive elimination of starts, and moves that leave a local optimum.

Starts of several kinds advance side by side, round after round. A start is stopped where the best of the others is out
of its reach: where the gain still to come, as the driver estimates it, falls short of what it is behind. Once all have
ended, moves join what they led to: a model proposes points that keep most of an optimum and change a part of it, as
where one component takes the rows of two and two those of one, that take some components from one optimum and some from
another, or that keep nothing. A step of many costs hardly more than that of one where rows are few.

The search ends where rounds find nothing better: the sooner, the more starts met the best by themselves, and the more
moves came back to it; somewhat later, if hardly any did. That they meet is agreement, and no proof that nothing is
better. Only then are the best run to the end.

Where data are many, all of that happens on few of them first, and what survives it sees more of them, stage by stage.

The same loop goes on to models of other numbers of components and factors (see `skvbem.optima.plan.best_fit`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from skvbem.ascent import Ascent
from skvbem.errors import BoundFellError, NoInteriorModeError
from skvbem.optima.candidates import Candidate, begun, best_of_all, candidates_after, different, fit_of, proposed
from skvbem.optima.tuning import EFFORTS, TUNING, Effort
from skvbem.vbem.driver import Elimination, run
from skvbem.vbem.fit import Fit, Move


class Archive:
    """The optima that a search met, how often new starts met the best, and how many rounds found none better."""

    def __init__(self, most_rounds: int, hastens: bool = True):
        self.most_rounds, self.hastens = most_rounds, hastens
        self.optima: list[Candidate] = []
        self.n_met, self.n_failed, self.n_brief, self.is_moving = 0, 0, 0, False
        #: The last round had enough of proposals.
        self.had_enough = False
        #: Shares of a round's proposals that came back to the best, summed over the rounds that found none better.
        self.returned, self.n_proposed = 0.0, 1

    @property
    def best(self) -> Candidate:
        """The best optimum."""
        return self.optima[0]

    @property
    def patience(self) -> int:
        """Rounds in a row that may find nothing better: the fewer, the more starts met the best by themselves."""
        return max(self.most_rounds - self.hastens * self.n_met, min(self.most_rounds, 1))

    @property
    def is_agreed(self) -> bool:
        """Starts met the best so often that a single round is tried to leave it."""
        return self.patience == 1

    @property
    def is_brief(self) -> bool:
        """The most promising changes come first, before all are tried: they may be enough."""
        return self.is_agreed or (self.hastens and self.n_failed == 0)

    @property
    def is_over(self) -> bool:
        """Enough was tried."""
        if self.hastens and self.n_failed and self.had_enough:
            return True
        if self.hastens and self.returned >= TUNING.returned:
            return self.n_failed >= min(self.patience, 1)
        is_rugged = self.hastens and self.returned < TUNING.few_returned * self.n_failed
        return self.n_failed >= self.patience + TUNING.n_rounds_where_rugged * is_rugged

    def add(self, ended: list[Candidate]) -> None:
        """Take up candidates that have ended; once moves were made, each time is a round of them."""
        last = self.optima[0] if self.optima else None
        self.optima = different([*self.optima, *ended])
        if not self.optima:
            return
        is_better = last is None or (self.best is not last and not last.may_meet(self.best))
        self.n_met = 0 if is_better else self.n_met
        self.n_met += sum(each.is_new_start and each.may_meet(self.best) for each in ended)
        self.n_failed = 0 if is_better else self.n_failed + self.is_moving
        self.n_brief = 0 if is_better else self.n_brief
        n_back = sum(bool(each.moves) and each.may_meet(self.best) for each in ended)
        self.returned = 0.0 if is_better else self.returned + n_back / self.n_proposed


class Path:
    """The best model of a search among numbers of components and factors, and the moves that led there.

    Parameters
    ----------
    tell : callable of Move
        Called with every move but the first.
    """

    def __init__(self, tell: Callable[[Move], None]):
        self.optima: list[Candidate] = []
        self._tell = tell

    @property
    def best(self) -> Candidate:
        """The best model."""
        return self.optima[0]

    def add(self, ended: list[Candidate]) -> None:
        """Take up what is better than the best."""
        for each in ended:
            if not self.optima:
                self.optima = [each.taken()]
            elif self.best.is_worse_than(each):
                self.optima = [each.taken()]
                self._tell(self.best.moves[-1])


class Search(Protocol):
    """The steps of a search, between which `searched` loops."""

    archive: Any

    def advance(self, live: list[Candidate]) -> list[Candidate]:
        """Candidates after a round, in their order."""
        ...

    def has_ended(self, each: Candidate) -> bool:
        """A candidate goes on no more."""
        ...

    def propose(self, live: list[Candidate]) -> list[Candidate]:
        """Further candidates, beside those that still go on; none where enough was tried."""
        ...


def searched(search: Search, live: list[Candidate]) -> list[Candidate]:
    """The optima that candidates and moves lead to, the best first."""
    while live:
        after = search.advance(live)
        search.archive.add([each for each in after if search.has_ended(each)])
        best = best_of_all([*search.archive.optima, *after])
        live = [each for each in after if not search.has_ended(each) and each.may_reach(best)]
        live += search.propose(live)
    return search.archive.optima


class Stage:
    """A search on all rows, or on a sample of them, at fixed numbers of components and factors.

    Parameters
    ----------
    ascent : Ascent
    starts : list of Candidate
    runs : Runs
    """

    is_first, n_steps = True, TUNING.n_steps

    def __init__(self, ascent: Ascent, starts: list[Candidate], runs: Runs):
        self.ascent, self.runs = ascent, runs
        #: Ends of the starts, in their order.
        self.starts = list(starts)
        # rounds in a row that may find nothing better, where no starts agree
        most_rounds = max(TUNING.patience, int(TUNING.patience_per_start * len(starts))) if self.is_first else 1
        self.archive = Archive(int(runs.effort.rounds * most_rounds), runs.effort.hastens)
        self._n_steps_left = runs.method.n_steps_per_start(ascent) * len(self.starts) * max(runs.effort.rounds, 1.0)

    def advance(self, live: list[Candidate]) -> list[Candidate]:
        """Candidates some steps later."""
        archive = self.archive
        least = archive.best.objective if archive.optima and archive.best.is_regular else -np.inf
        try:
            is_wide = self.is_first and self.runs.method.is_wide(self.ascent)
            after = self.runs.eliminated(self.ascent, live, self.n_steps, least, is_wide)
        except (BoundFellError, FloatingPointError, NoInteriorModeError, np.linalg.LinAlgError):
            if not archive.optima:
                raise
            return []  # a proposal that rounding spoils leads nowhere; starts on the same data were looked at
        self._n_steps_left -= sum(each.n_iter for each in after)
        after = [last.continued(each, is_move=True) for last, each in zip(live, after)]
        for each in after:
            if self.is_first and not each.moves:
                self.starts[each.start] = each
        return after

    def has_ended(self, each: Candidate) -> bool:
        """A candidate has converged, or has no steps left."""
        return self.runs.stopped or each.converged or each.n_iter + 2 > self.runs.limits["max_iter"]

    def propose(self, live: list[Candidate]) -> list[Candidate]:
        """Points that the best optima may be changed to, once starts have ended: the best alone, if starts agreed."""
        archive = self.archive
        starts_ended = all(each.moves for each in live)
        if not starts_ended or archive.is_over or self._n_steps_left <= 0 or self.runs.stopped:
            return []
        archive.is_moving = True
        optima = [each for each in archive.optima if each.converged][: 1 if archive.is_agreed else TUNING.n_moved]
        if not optima:
            return []
        points = np.stack([each.statistics for each in optima], axis=1)
        seed = int(self.runs.seeds.integers(2**63))
        n_failed = archive.n_failed - archive.n_brief
        proposals = self.runs.method.moves(self.ascent, points, seed, archive.is_brief, n_failed)
        archive.n_brief, archive.had_enough = archive.n_brief + proposals.are_few, proposals.are_enough
        # the divisions that promise most end in other optima, and are no sign of many, if a round has no others
        n_divisions = sum(kind.startswith("split") for kind in proposals.kinds) if proposals.are_few else 0
        archive.n_proposed = max(len(proposals.kinds) - n_divisions, 1)
        return proposed(optima[0], proposals)


class LaterStage(Stage):
    """The search on more of the rows: survivors go on there, and the best is divided while that gains."""

    is_first = False

    def __init__(self, ascent: Ascent, starts: list[Candidate], runs: Runs):
        super().__init__(ascent, starts, runs)
        self.n_steps = runs.limits["max_iter"]

    def propose(self, live: list[Candidate]) -> list[Candidate]:
        """Points that the best may be divided to, once all have ended."""
        archive = self.archive
        if live or archive.is_over or self.runs.stopped:
            return []
        best, gained = archive.best, archive.is_moving
        archive.is_moving = True
        seed = int(self.runs.seeds.integers(2**63))
        return proposed(best, self.runs.method.divisions(self.ascent, best.statistics, seed, gained))


class Runs:
    """Runs of candidates, and the stages of a search at fixed numbers of components and factors.

    Parameters
    ----------
    method : FitMethod
        Whose `moves`, `stages` and `regular` say what is tried.
    limits : mapping
        `tol`, `max_iter` and `accelerate` as `skvbem.vbem.driver.run` takes them.
    seed : tuple of int
        Of what moves draw.
    stop : callable, optional
        As in `skvbem.vbem.driver.run`.
    effort : Effort
    """

    def __init__(
        self,
        method: Any,
        limits: Mapping[str, Any],
        seed: tuple[int, ...],
        stop: Callable | None,
        effort: Effort = EFFORTS["auto"],
    ):
        self.method, self.limits, self.stopped, self.effort = method, limits, False, effort
        self.seeds = np.random.default_rng([*seed, 1])

        def asked(*cycle: float) -> bool:
            self.stopped = self.stopped or bool(stop(*cycle))  # type: ignore[misc]  # which is there, or nobody asks
            return self.stopped

        self._stop = asked if stop else None

    def fit(self, stages: Sequence[Ascent], starts: np.ndarray) -> Fit:
        """The best fit that starts (n_cells, n_starts) on the first of the stages, and moves after them, lead to.

        The last of the stages has all data.
        """
        ends, optima = self.best(stages, starts)
        best = optima[0]
        ends += [each for each in optima if not each.moves]  # which went on from there
        left = self.stopped and best.to_come >= self.limits["tol"]
        return replace(fit_of(best, optima, ends, starts.shape[1]), converged=best.converged and not left)

    def best(self, stages: Sequence[Ascent], starts: np.ndarray) -> tuple[list[Candidate], list[Candidate]]:
        """Ends of starts on all data, and the best optima of all, run to the end, the best first."""
        first = Stage(stages[0], begun(starts), self)
        optima = searched(first, list(first.starts))
        for fewer, more in pairwise(stages):
            if fewer.is_sample:  # else it has all distinct rows, and optima of these are of all
                survivors = self.survivors(optima, fewer)
                begun_anew = self.method.for_more_rows(more, np.array([each.statistics for each in survivors]))
                survivors = [replace(each, statistics=at) for each, at in zip(survivors, begun_anew)]
                optima = searched(LaterStage(more, survivors, self), survivors)
        return [] if stages[0].is_sample else first.starts, self.finished(stages[-1], optima)

    def survivors(self, candidates: list[Candidate], stage: Ascent) -> list[Candidate]:
        """The few candidates that may be the best on more data than those of a stage, the best first, as begun anew.

        Candidates of like counts are copies on their way to one optimum.
        """
        least = candidates[0].objective - TUNING.nats_of_sample * stage.data.total_weight / len(stage.data)
        kept: list[Candidate] = []
        for each in candidates:
            is_promising = each.is_regular == candidates[0].is_regular and each.objective >= least
            if is_promising and not any(self.method.are_alike(stage, each.statistics, one.statistics) for one in kept):
                kept.append(each)
            if len(kept) == TUNING.n_survivors:
                break
        return [Candidate(each.statistics, each.start, each.moves) for each in kept]

    def eliminated(
        self,
        ascent: Ascent,
        candidates: list[Candidate],
        n_steps: int,
        least: float = -np.inf,
        is_wide: bool = False,
    ) -> list[Candidate]:
        """Candidates after so many steps, in their order: those are stopped that cannot reach the best.

        Where columns are many, so is the worse half after two steps, if all have just begun.
        """
        n_alone = TUNING.n_steps_alone_where_wide if is_wide else TUNING.n_steps_alone
        halves = is_wide and not any(each.n_iter for each in candidates)
        elimination = Elimination(n_alone, TUNING.reach, least, self.method.regular(ascent), halves)
        room = self.limits["max_iter"] - max(each.n_iter for each in candidates)
        limits = {**self.limits, "tol": max(TUNING.nearly, self.limits["tol"]), "max_iter": max(min(n_steps, room), 2)}
        return self._run(ascent, candidates, elimination, limits)

    def finished(self, ascent: Ascent, candidates: list[Candidate]) -> list[Candidate]:
        """Optima that may be the best run to the end, and the others as they were left, the best first."""
        best = candidates[0]
        optima = self._run_on(ascent, candidates, [each for each in candidates if each.may_reach(best)])
        if not optima[0].converged:  # others may have had fewer steps left than it has
            optima = self._run_on(ascent, optima, optima[:1])
        return optima

    def _run_on(self, ascent: Ascent, candidates: list[Candidate], live: list[Candidate]) -> list[Candidate]:
        """Different optima, the best first, once those that are live were run to their ends."""
        room = self.limits["max_iter"] - max(each.n_iter for each in live)
        if self.stopped or room < 2 or all(each.to_come < self.limits["tol"] for each in live):
            return candidates
        elimination = Elimination(TUNING.n_steps_alone, TUNING.reach_of_sizes, is_regular=self.method.regular(ascent))
        after = self._run(ascent, live, elimination, {**self.limits, "max_iter": room})
        ended = [last.continued(each) for last, each in zip(live, after)]
        return different([*ended, *(each for each in candidates if each not in live)])

    def _run(
        self, ascent: Ascent, candidates: list[Candidate], elimination: Elimination, limits: Mapping[str, Any]
    ) -> list[Candidate]:
        points = np.array([each.statistics for each in candidates])
        result = run(ascent, points.T, stop=self._stop, elimination=elimination, **limits)
        return candidates_after(result, candidates, self.method.regular(ascent))
