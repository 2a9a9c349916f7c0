"""Many starts, one optimum: races between starts, and moves that leave a local optimum.

Starts of several kinds advance side by side, round after round. A start is stopped where the best of the others is out
of its reach: where the gain still to come, as the driver estimates it, falls short of what it is behind. Once all have
ended, moves join what they led to: a model proposes points that keep most of an optimum and change a part of it, as
where one component takes the rows of two and two those of one, that take some components from one optimum and some from
another, or that keep nothing. A step of many costs hardly more than that of one where rows are few.

The search ends where rounds find nothing better: the sooner, the more starts met the best by themselves, as such an
optimum is unlikely to be one of many. Only then are the best run to the end.

Where data are many, all of that happens on few of them first, and what survives it sees more of them, stage by stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from skvbem.errors import BoundFellError, NoInteriorModeError
from skvbem.vbem.contenders import REACH, Contender, Move, best_of_all, contenders_of, different
from skvbem.vbem.driver import Ascent, Race, run

# Nats still to come below which a race is over.
_NEARLY = 0.1
# Steps of a round, and those of it after which a contender is compared.
_N_STEPS, _N_STEPS_ALONE = 11, 8
# Nats, of as many rows as a sample has, by which what is best on all of them may be behind on the sample.
_NATS_OF_A_SAMPLE = 100.0
# Optima that are moved, and optima that see more data.
_N_MOVED, _N_SURVIVORS = 5, 3
# Rounds in a row that may find nothing better, at least and for each start; one less for each start that met the best.
_PATIENCE, _PATIENCE_PER_START = 4, 0.4


class Findings:
    """What a search met: the optima, how often its starts alone met the best, and how many rounds found none better."""

    def __init__(self, n_starts: int):
        self.most_rounds = max(_PATIENCE, int(_PATIENCE_PER_START * n_starts))
        self.optima: list[Contender] = []
        self.n_met, self.n_failed = 0, 0

    @property
    def best(self) -> Contender:
        """The best optimum."""
        return self.optima[0]

    @property
    def patience(self) -> int:
        """Rounds in a row that may find nothing better: the fewer, the more starts met the best by themselves."""
        return max(self.most_rounds - self.n_met, 1)

    @property
    def is_agreed(self) -> bool:
        """Whether starts met the best so often that a single round is tried to leave it."""
        return self.patience == 1

    @property
    def is_over(self) -> bool:
        """Whether enough was tried."""
        return self.n_failed >= self.patience

    def add(self, ended: list[Contender], is_round: bool) -> None:
        """Take up what a race ended in, after a round of moves or not."""
        last = self.optima[0] if self.optima else None
        self.optima = different([*self.optima, *ended])
        if not self.optima:
            return
        is_better = last is None or (self.best is not last and not last.may_end_with(self.best))
        self.n_met = 0 if is_better else self.n_met
        self.n_met += sum(each.is_alone and each.may_end_with(self.best) for each in ended)
        self.n_failed = 0 if is_better else self.n_failed + is_round


class Explorer:
    """Finds the best of the optima that starts and moves lead to.

    Parameters
    ----------
    method : FitMethod
        Whose `moves`, `stages` and `solutions` say what is tried.
    limits : mapping
        `tol`, `max_iter` and `accelerate` as `skvbem.vbem.driver.run` takes them.
    seed : tuple of int
        Of what moves draw.
    stop : callable, optional
        As in `skvbem.vbem.driver.run`.
    """

    def __init__(self, method: Any, limits: Mapping[str, Any], seed: tuple[int, ...], stop: Callable | None):
        self.method, self.limits, self.stopped = method, limits, False
        self._seeds = np.random.default_rng([*seed, 1])
        self._stop = None if stop is None else self._asked(stop)

    def _asked(self, stop: Callable[..., bool]) -> Callable[..., bool]:
        def asked(*cycle: float) -> bool:
            self.stopped = self.stopped or bool(stop(*cycle))
            return self.stopped

        return asked

    def best(self, ascent: Ascent, starts: Callable[[Ascent], np.ndarray]) -> tuple[list[Contender], list[Contender]]:
        """What starts on all data ended in, and the best optima of all, run to the end, the best first."""
        stages = [*self.method.stages(ascent), ascent]
        of_starts, optima = self.searched(stages[0], self._eased(stages[0], starts(stages[0])))
        for fewer, stage in pairwise(stages):
            if getattr(fewer, "is_sample", False):  # else it has all distinct rows, and optima of these are of all
                optima = different(self.raced(stage, _promising(optima, fewer), n_steps=self.limits["max_iter"]))
        return [] if getattr(stages[0], "is_sample", False) else of_starts, self.finished(ascent, optima)

    def _eased(self, ascent: Any, starts: np.ndarray) -> np.ndarray:
        return self.method.eased(ascent.model, ascent.data, ascent.form, starts, ascent.n_threads)

    def searched(self, ascent: Ascent, starts: np.ndarray) -> tuple[list[Contender], list[Contender]]:
        """Where the starts ended, in their order, and the optima that they and moves led to, the best first."""
        live = [Contender(column, number) for number, column in enumerate(np.ascontiguousarray(starts.T))]
        of_starts, findings, is_round = list(live), Findings(len(live)), False
        n_steps, most = 0, self.method.n_steps_per_start(ascent) * len(live)
        while live:
            after = self._round(ascent, live, findings)
            n_steps += sum(each.n_iter - last.n_iter for each, last in zip(after, live))
            for each in after:
                if not each.moves:
                    of_starts[each.start] = each
            findings.add([each for each in after if self._has_ended(each)], is_round)
            best = best_of_all([*findings.optima, *after])
            live = [each for each in after if not self._has_ended(each) and each.may_reach(best)]
            starts_ended = all(each.moves for each in live)
            if starts_ended and not findings.is_over and n_steps < most and not self.stopped:
                live, is_round = [*live, *self._proposed(ascent, findings)], True
        return of_starts, findings.optima

    def _round(self, ascent: Ascent, live: list[Contender], findings: Findings) -> list[Contender]:
        """Where contenders are some steps later."""
        least = findings.best.objective if findings.optima and findings.best.counts else -np.inf
        try:
            after = self.raced(ascent, live, _N_STEPS, least)
        except (BoundFellError, FloatingPointError, NoInteriorModeError, np.linalg.LinAlgError):
            if not findings.optima:
                raise
            return []  # a proposal that rounding spoils leads nowhere; starts on the same data were looked at
        return [last.gone_on(each, is_move=True) for last, each in zip(live, after)]

    def _has_ended(self, each: Contender) -> bool:
        return self.stopped or each.converged or each.n_iter + 2 > self.limits["max_iter"]

    def _proposed(self, ascent: Ascent, findings: Findings) -> list[Contender]:
        """What the best optima may be changed to: the best alone, if starts agreed on it."""
        optima = [each for each in findings.optima if each.converged][: 1 if findings.is_agreed else _N_MOVED]
        if not optima:
            return []
        points = np.stack([each.statistics for each in optima], axis=1)
        seed = int(self._seeds.integers(2**63))
        proposals = self.method.moves(ascent, points, seed, findings.is_agreed, findings.n_failed)
        start, moves = optima[0].start, optima[0].moves
        columns = np.ascontiguousarray(proposals.statistics.T)
        return [
            Contender(column, start, (*moves, Move(kind, -np.inf))) for kind, column in zip(proposals.kinds, columns)
        ]

    def raced(
        self, ascent: Ascent, contenders: list[Contender], n_steps: int, least: float = -np.inf
    ) -> list[Contender]:
        """Where contenders end in a race of so many steps, in their order."""
        race = Race(n_steps=_N_STEPS_ALONE, reach=REACH, least=least, counts=self.method.solutions(ascent))
        room = self.limits["max_iter"] - max(each.n_iter for each in contenders)
        limits = {**self.limits, "tol": max(_NEARLY, self.limits["tol"]), "max_iter": max(min(n_steps, room), 2)}
        return self._run(ascent, contenders, race, limits)

    def finished(self, ascent: Ascent, contenders: list[Contender]) -> list[Contender]:
        """Optima that may be the best run to the end, and the others as they were left, the best first."""
        best = contenders[0]
        optima = self._run_on(ascent, contenders, [each for each in contenders if each.may_reach(best)])
        if not optima[0].converged:  # others may have had fewer steps left than it has
            optima = self._run_on(ascent, optima, optima[:1])
        return optima

    def _run_on(self, ascent: Ascent, contenders: list[Contender], live: list[Contender]) -> list[Contender]:
        """Different optima, the best first, once those that are live were run to their ends."""
        room = self.limits["max_iter"] - max(each.n_iter for each in live)
        if self.stopped or room < 2 or all(each.to_come < self.limits["tol"] for each in live):
            return contenders
        race = Race(counts=self.method.solutions(ascent))
        after = self._run(ascent, live, race, {**self.limits, "max_iter": room})
        ended = [last.gone_on(each) for last, each in zip(live, after)]
        return different([*ended, *(each for each in contenders if each not in live)])

    def _run(
        self, ascent: Ascent, contenders: list[Contender], race: Race, limits: Mapping[str, Any]
    ) -> list[Contender]:
        points = np.array([each.statistics for each in contenders])
        result = run(ascent, points.T, stop=self._stop, race=race, **limits)
        return contenders_of(result, contenders, self.method.solutions(ascent))


def _promising(contenders: list[Contender], stage: Any) -> list[Contender]:
    """The few contenders that may be the best on more data than those of a stage, the best first, as begun anew."""
    least = contenders[0].objective - _NATS_OF_A_SAMPLE * stage.data.total_weight / len(stage.data)
    return [
        Contender(each.statistics, each.start, each.moves)
        for each in contenders
        if each.counts == contenders[0].counts and each.objective >= least
    ][:_N_SURVIVORS]
