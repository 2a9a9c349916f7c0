"""Many starts, one optimum: races between starts, and moves that leave a local optimum.

Starts of several kinds advance side by side. A start is stopped where the best of the others is out of its reach: where
the gain still to come, as the driver estimates it, falls short of what it is behind. What wins is then moved: a model
proposes points that keep most of an optimum and change a part of it, as where one component takes the rows of two and
two those of one. They race against the optimum they came from, and the one that ends higher takes its place, until
none does. Only then is the best run to the end.

Where data are many, all of that happens on few of them first, and what survives it sees more of them, stage by stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from skvbem.errors import BoundFellError, NoInteriorModeError
from skvbem.vbem.driver import Ascent, Race, Run, run

# Nats still to come below which a race is over.
_NEARLY = 0.1
# Nats by which a move must raise the objective, and the share of it that is taken for rounding.
_MIN_RISE, _SAME = 0.01, 1e-10
# Nats, of as many rows as a sample has, by which what is best on all of them may be behind on the sample.
_NATS_OF_A_SAMPLE = 100.0
# Rounds of moves of one optimum at one stage, optima that are moved, and optima that see more data.
_MAX_ROUNDS, _N_MOVED, _N_SURVIVORS = 50, 2, 3
# How many times the steps of the starts moves may cost.
_WORTH = 12
# Rounds in a row that may fail; where so large a share of the starts met one optimum, a single one of it alone.
_N_FAILURES, _AGREED = 3, 0.6
# Steps that each may take in a race before it is compared, and how many times the gain still to come it may be behind.
_N_STEPS, _REACH = 11, 6.0


class Move(NamedTuple):
    """A move that raised the objective.

    Parameters
    ----------
    kind : str
        What changed, such as "split, join".
    objective : float
        After it, nats, of the data that it was made on.
    """

    kind: str
    objective: float


class Proposals(NamedTuple):
    """Points to go on from, and what each of them changes.

    Parameters
    ----------
    kinds : list of str
    statistics : ndarray of shape (n_cells, n_proposals)
        The most promising first.
    """

    kinds: list[str]
    statistics: np.ndarray


@dataclass(frozen=True, eq=False)
class Contender:
    """Where a start got to.

    Parameters
    ----------
    statistics : ndarray of shape (n_cells,)
    objective : float
        There, nats.
    to_come : float
        The gain still to come, as estimated, nats.
    trace : list of float
    n_iter : int
    converged : bool
    counts : bool
        Whether the point is a solution that counts.
    start : int
        Number of the start.
    moves : tuple of Move
        What raised the objective since.
    """

    statistics: np.ndarray
    objective: float
    to_come: float
    trace: list[float]
    n_iter: int
    converged: bool
    counts: bool
    start: int
    moves: tuple[Move, ...] = ()

    @property
    def rank(self) -> tuple[bool, float]:
        """What makes one better than others: a solution that counts, then its objective."""
        return self.counts, self.objective


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
        self.n_steps = 0
        self._seeds = np.random.default_rng([*seed, 1])
        self._stop = None if stop is None else self._asked(stop)

    def _asked(self, stop: Callable[[int, float], bool]) -> Callable[[int, float], bool]:
        def asked(n_iter: int, objective: float) -> bool:
            self.stopped = self.stopped or bool(stop(n_iter, objective))
            return self.stopped

        return asked

    def best(self, ascent: Ascent, starts: Callable[[Ascent], np.ndarray]) -> tuple[list[Contender], list[Contender]]:
        """What starts on all data ended in, and the best optima of all, run to the end, the best first."""
        stages = [*self.method.stages(ascent), ascent]
        contenders = self.raced(stages[0], self._eased(stages[0], starts(stages[0])))
        of_starts = [] if getattr(stages[0], "is_sample", False) else contenders
        for number, stage in enumerate(stages):
            if number == 0:
                contenders = self.moved(stage, _different(contenders), agreed=_share_that_met(contenders) >= _AGREED)
            elif getattr(stages[number - 1], "is_sample", False):  # else what is on the distinct rows is on all
                contenders = self.raced(stage, _promising(_different(contenders), stages[number - 1]))
        return of_starts, self.finished(ascent, _different(contenders))

    def _eased(self, ascent: Any, starts: np.ndarray) -> np.ndarray:
        return self.method.eased(ascent.model, ascent.data, ascent.form, starts, ascent.n_threads)

    def raced(self, ascent: Ascent, starts: np.ndarray | list[Contender], least: float = -np.inf) -> list[Contender]:
        """Where starts, or contenders, end in a race, in their order."""
        before = starts if isinstance(starts, list) else []
        columns = np.stack([each.statistics for each in before], axis=1) if before else np.asarray(starts)
        race = Race(n_steps=_N_STEPS, reach=_REACH, least=least, counts=self._counts(ascent))
        limits = {**self.limits, "tol": max(_NEARLY, self.limits["tol"])}
        result = run(ascent, columns, stop=self._stop, race=race, **limits)
        self.n_steps += int(result.n_iter.sum())
        return list(self._contenders(ascent, result, before))

    def _counts(self, ascent: Ascent) -> Callable[[np.ndarray], np.ndarray] | None:
        return self.method.solutions(ascent)

    def _contenders(self, ascent: Ascent, result: Run, before: Sequence[Contender] = ()) -> Iterator[Contender]:
        counts = self._counts(ascent)
        which = np.ones(len(result.objective), dtype=bool) if counts is None else counts(result.statistics)
        for lane, objective in enumerate(result.objective.tolist()):
            last = before[lane] if len(before) else None
            yield Contender(
                np.ascontiguousarray(result.statistics[:, lane]),
                objective,
                max(float(result.to_come[lane]), 0.0),
                result.traces[lane],
                int(result.n_iter[lane]),
                bool(result.converged[lane]),
                bool(which[lane]),
                lane if last is None else last.start,
                () if last is None else last.moves,
            )

    def moved(self, ascent: Ascent, contenders: list[Contender], agreed: bool) -> list[Contender]:
        """Optima, the best first, the first of them moved until no move raises the objective.

        Where most starts `agreed` on one optimum, less is tried to leave it.
        """
        most = _WORTH * self.n_steps
        n_moved, n_rounds = (1, 1) if agreed else (_N_MOVED, _N_FAILURES)
        for number, here in enumerate(contenders[:n_moved]):
            n_failed = 0
            for _ in range(_MAX_ROUNDS):
                if self.n_steps > most:
                    break
                better = self._better(ascent, here)
                n_failed = n_failed + 1 if better is None else 0
                if n_failed == n_rounds:
                    break
                here = here if better is None else better
            contenders[number] = here
        return _different(contenders)

    def _better(self, ascent: Ascent, here: Contender) -> Contender | None:
        """The best of what moves lead to, if it is better."""
        if self.stopped or not here.converged:
            return None
        proposals = self.method.moves(ascent, here.statistics, int(self._seeds.integers(2**63)))
        if not len(proposals.kinds):
            return None
        least = here.objective + here.to_come if here.counts else -np.inf
        try:
            contenders = self.raced(ascent, proposals.statistics, least)
        except (BoundFellError, FloatingPointError, NoInteriorModeError):
            return None  # a proposal that rounding spoils leads nowhere; starts on the same data were looked at
        best = _best(contenders)
        if best.rank <= here.rank or (here.counts and best.objective < here.objective + _MIN_RISE):
            return None
        move = Move(proposals.kinds[best.start], best.objective)
        return replace(best, start=here.start, moves=(*here.moves, move))

    def finished(self, ascent: Ascent, contenders: list[Contender]) -> list[Contender]:
        """Optima that may be the best run to the end, and the others, the best first."""
        best = contenders[0]
        close = [each for each in contenders if _may_reach(each, best)]
        n_left = self.limits["max_iter"] - max(each.n_iter for each in close)
        if self.stopped or n_left < 2 or all(each.to_come < self.limits["tol"] for each in close):
            return contenders
        limits = {**self.limits, "max_iter": n_left}
        race = Race(counts=self._counts(ascent))
        columns = np.stack([each.statistics for each in close], axis=1)
        result = run(ascent, columns, stop=self._stop, race=race, **limits)
        ended = [
            replace(after, trace=[*last.trace, *after.trace], n_iter=last.n_iter + after.n_iter)
            for last, after in zip(close, self._contenders(ascent, result, close))
        ]
        return _different([*ended, *(each for each in contenders if not any(each is one for one in close))])


def _share_that_met(contenders: list[Contender]) -> float:
    """The share of contenders that met the optimum of the best of them."""
    best = _best(contenders)
    return sum(_may_be_one(best, each) for each in contenders) / len(contenders)


def _promising(contenders: list[Contender], stage: Any) -> list[Contender]:
    """The few contenders that may be the best on more data than those of a stage, the best first."""
    least = contenders[0].objective - _NATS_OF_A_SAMPLE * stage.data.total_weight / len(stage.data)
    return [each for each in contenders if each.counts == contenders[0].counts and each.objective >= least][
        :_N_SURVIVORS
    ]


def _different(contenders: list[Contender]) -> list[Contender]:
    """Contenders, the best first, one of each optimum: relabelings of one have one objective."""
    left, kept = list(contenders), []
    while left:
        best = _best(left)
        kept.append(best)
        left = [each for each in left if each is not best and not _may_be_one(best, each)]
    return kept


def _best(contenders: list[Contender]) -> Contender:
    """The best contender; the first of those that only rounding tells apart."""
    best = max(contenders, key=lambda each: each.rank)
    least = best.objective - _SAME * (1.0 + abs(best.objective))
    return next(each for each in contenders if each.counts == best.counts and each.objective >= least)


def _may_be_one(better: Contender, other: Contender) -> bool:
    """Whether two contenders may end at one objective."""
    behind = better.objective - other.objective - _MIN_RISE
    return better.counts == other.counts and behind <= better.to_come + other.to_come


def _may_reach(other: Contender, best: Contender) -> bool:
    """Whether a contender may yet reach the best."""
    return other.counts == best.counts and other.objective + _REACH * other.to_come >= best.objective
