"""Where starts and moves got to, which of them may end at one optimum, and which are worth keeping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import itemgetter
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


@dataclass(slots=True, eq=False)  # not frozen: thousands are made in a search, in a third of the time
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
        """What a run that went on from here ended in: it is given the way to here, whose last move it may judge."""
        if is_move and self.moves:
            after.moves = (*self.moves[:-1], self.moves[-1]._replace(objective=after.objective))
        after.trace, after.n_iter = [*self.trace, *after.trace], self.n_iter + after.n_iter
        return after

    def may_end_with(self, better: Contender) -> bool:
        """Whether both may end at one objective."""
        return _may_meet(self, better)

    def may_reach(self, best: Contender) -> bool:
        """Whether it may yet reach the best."""
        return self.counts == best.counts and self.objective + REACH * self.to_come >= best.objective


def blur_of(form: Form) -> float:
    """The share of all counts that a proposal mixes into each of its own: none where q(theta) has a prior."""
    return 0.0 if form.prior_share else _BLUR


# What comes first among ends: that they count, and their objective.
_RANK = itemgetter(0, 1)


class _End(NamedTuple):
    """What tells a contender from others, and its place among them."""

    counts: bool
    objective: float
    to_come: float
    place: int


def _ends_of(contenders: Sequence[Contender]) -> list[_End]:
    """The ends of contenders, the best first."""
    ends = [_End(each.counts, each.objective, each.to_come, k) for k, each in enumerate(contenders)]
    return sorted(ends, key=_RANK, reverse=True)


def _may_meet(one: Contender | _End, better: Contender | _End) -> bool:
    behind = better.objective - one.objective - _DIFFERENT
    return better.counts == one.counts and behind <= better.to_come + one.to_come


def _first_of_the_best(ends: Sequence[_End]) -> _End:
    """The first in place that only rounding tells from the best, of ends with the best first."""
    counts, most = ends[0].counts, ends[0].objective
    least = most - _SAME * (1.0 + abs(most))
    equal = takewhile(lambda end: end.counts == counts and end.objective >= least, ends)
    return min(equal, key=lambda end: end.place)


def different(contenders: Sequence[Contender]) -> list[Contender]:
    """Contenders, the best first, one of each optimum: relabelings of one have one objective."""
    left, kept = _ends_of(contenders), []
    while left:
        best = _first_of_the_best(left)
        kept.append(contenders[best.place])
        left = [end for end in left if end is not best and not _may_meet(end, best)]
    return kept


def best_of_all(contenders: Sequence[Contender]) -> Contender:
    """The best contender; the first of those that only rounding tells apart."""
    return contenders[_first_of_the_best(_ends_of(contenders)).place]


def contenders_of(
    result: Run, before: Sequence[Contender], counts: Callable[[np.ndarray], np.ndarray] | None
) -> list[Contender]:
    """Where contenders are after a run, whose lanes they are, and which of them `counts` says are solutions."""
    which = [True] * len(before) if counts is None else counts(result.statistics).tolist()
    each = zip(
        *(before, result.objective.tolist(), np.maximum(result.to_come, 0.0).tolist(), result.traces),
        *(result.n_iter.tolist(), result.converged.tolist(), which),
    )
    return [
        Contender(column.copy(), last.start, last.moves, *end)
        for column, (last, *end) in zip(result.statistics.T, each)
    ]


def modes(optima: Sequence[Contender], best: Contender, most: int) -> list[Contender]:
    """Of different optima, the best first, those that may have a part of the posterior worth a chain."""
    least = best.objective - _NATS_OF_A_MODE
    return [each for each in optima if each.counts == best.counts and each.objective + each.to_come >= least][:most]
