"""Where starts and moves got to, which of them may end at one optimum, and which are worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from skvbem.vbem.driver import Run
from skvbem.vbem.posteriors import Form

# Nats by which objectives of different optima differ, and the share of them that is taken for rounding.
_DIFFERENT, _SAME = 0.01, 1e-10
# Nats below the best within which an optimum may have a part of the posterior worth a chain: what the evidence of its
# neighborhood may be further above its bound than that of the best is above its own.
_NATS_OF_A_MODE = 12.0
# How many times the gain still to come, as estimated, a contender may be behind the best.
REACH = 6.0
# The share of all counts that a proposal mixes into each of its own where no prior does.
_BLUR = 1e-3
#: The kind of a proposal that keeps nothing of any optimum.
ALONE = "new start"


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
    """

    kinds: list[str]
    statistics: np.ndarray


@dataclass(frozen=True, eq=False)
class Contender:
    """Where a start, or a proposal, got to.

    Parameters
    ----------
    statistics : ndarray of shape (n_cells,)
    start : int
        Number of the start that it comes from.
    moves : tuple of Move
        What raised the objective since.
    objective : float
        There, nats.
    to_come : float
        The gain still to come, as estimated, nats.
    trace : list of float
    n_iter : int
    converged : bool
    counts : bool
        Whether the point is a solution that counts.
    """

    statistics: np.ndarray
    start: int
    moves: tuple[Move, ...] = ()
    objective: float = -np.inf
    to_come: float = np.inf
    trace: list[float] = field(default_factory=list)
    n_iter: int = 0
    converged: bool = False
    counts: bool = True

    @property
    def is_alone(self) -> bool:
        """Whether nothing of an optimum was known where it began."""
        return not self.moves or self.moves[-1].kind == ALONE

    @property
    def rank(self) -> tuple[bool, float]:
        """What makes one better than others: a solution that counts, then its objective."""
        return self.counts, self.objective

    @property
    def has_ended(self) -> bool:
        """Whether so little is still to come that it cannot be taken for another optimum."""
        return self.to_come < _DIFFERENT

    def gone_on(self, after: Contender, is_move: bool = False) -> Contender:
        """The contender after a run that went on from here, by which its last move may be judged."""
        moves = self.moves
        if is_move and moves:
            moves = (*moves[:-1], moves[-1]._replace(objective=after.objective))
        return replace(after, moves=moves, trace=[*self.trace, *after.trace], n_iter=self.n_iter + after.n_iter)

    def may_end_with(self, better: Contender) -> bool:
        """Whether both may end at one objective."""
        behind = better.objective - self.objective - _DIFFERENT
        return better.counts == self.counts and behind <= better.to_come + self.to_come

    def may_reach(self, best: Contender) -> bool:
        """Whether it may yet reach the best."""
        return self.counts == best.counts and self.objective + REACH * self.to_come >= best.objective


def blur_of(form: Form) -> float:
    """The share of all counts that a proposal mixes into each of its own: none where q(theta) has a prior."""
    return 0.0 if form.prior_share else _BLUR


def different(contenders: Sequence[Contender]) -> list[Contender]:
    """Contenders, the best first, one of each optimum: relabelings of one have one objective."""
    ends = [(each.counts, each.objective, each.to_come, k) for k, each in enumerate(contenders)]
    left, kept = sorted(ends, key=lambda end: end[:2], reverse=True), []
    while left:
        counts, objective, to_come, best = _first_of_the_best(left)
        kept.append(contenders[best])
        left = [
            end
            for end in left
            if end[3] != best and not (end[0] == counts and objective - end[1] - _DIFFERENT <= to_come + end[2])
        ]
    return kept


def _first_of_the_best(ends: Sequence[tuple[bool, float, float, int]]) -> tuple[bool, float, float, int]:
    """The first that only rounding tells from the best, of sorted ends: counts, objective, to come and place."""
    counts, most = ends[0][:2]
    least = most - _SAME * (1.0 + abs(most))
    equal = takewhile(lambda end: end[0] == counts and end[1] >= least, ends)
    return min(equal, key=lambda end: end[3], default=ends[0])


def best_of_all(contenders: Sequence[Contender]) -> Contender:
    """The best contender; the first of those that only rounding tells apart."""
    best = max(contenders, key=lambda each: each.rank)
    least = best.objective - _SAME * (1.0 + abs(best.objective))
    return next(each for each in contenders if each.counts == best.counts and each.objective >= least)


def contenders_of(
    result: Run, before: Sequence[Contender], counts: Callable[[np.ndarray], np.ndarray] | None
) -> list[Contender]:
    """Where contenders are after a run, whose lanes they are, and which of them `counts` says are solutions."""
    which = np.ones(len(result.objective), dtype=bool) if counts is None else counts(result.statistics)
    return [
        Contender(
            np.ascontiguousarray(result.statistics[:, lane]),
            last.start,
            last.moves,
            float(result.objective[lane]),
            max(float(result.to_come[lane]), 0.0),
            result.traces[lane],
            int(result.n_iter[lane]),
            bool(result.converged[lane]),
            bool(which[lane]),
        )
        for lane, last in enumerate(before)
    ]


def modes(optima: Sequence[Contender], best: Contender, most: int) -> list[Contender]:
    """Of different optima, the best first, those that may have a part of the posterior worth a chain."""
    least = best.objective - _NATS_OF_A_MODE
    return [each for each in optima if each.counts == best.counts and each.objective + each.to_come >= least][:most]
