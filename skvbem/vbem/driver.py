"""The one loop: full steps for all live starts, accelerated where that raises the objective, until none gains.

What is compared: the gain of the objective (the lower bound, or the log posterior or likelihood) still to come, in
total nats. It is estimated as the gain of one plain step times the number of such steps that the curvature of the
path says are left: plain steps of a slow run gain little long before its end. A start has converged when that is
below `tol`, or the gain below what rounding can resolve. By successive elimination it is stopped, too, once the best is
out of its reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from skvbem._kernels._extrapolation import extrapolate, has_risen, look, settle
from skvbem.ascent import Ascent
from skvbem.errors import BoundFellError
from skvbem.vbem.secants import Secants

# The one slack for "does not fall", relative to the objective and to the terms it is a sum of.
RELATIVE_SLACK = 1e-9
# Gains below this share of the terms are rounding, and so are losses of so many nats.
_ROUNDING = 64 * np.finfo(float).eps
# Share of the length of statistics by which points of one path differ at most, where starts differ by rounding alone.
# By hand: of 495 pairs of one objective, in every fourth problem of `tests/reproduction/optima`, none differs by more
# than 1e-12, so that half and double make no difference.
_SAME_LENGTH = 1e-9
# The least share of its value that a leap leaves of a statistic that cannot be negative: what an ML step needs to move
# stays above 0.
_MIN_FRACTION_OF_STATISTICS = 0.01
# The longest extrapolation tried at first; it grows fourfold where it is accepted at the limit.
_FIRST_LONGEST = 4.0
# Plain steps taken between two looks at convergence, where steps are not accelerated.
_MAX_PLAIN_STEPS = 14
# Where the path is so straight that its curvature is rounding, no more steps than this are said to be left.
_MAX_STEPS_LEFT = 1000.0


@dataclass(frozen=True, eq=False)
class Run:
    """The end of every start: its statistics, its objective, and whether it converged.

    Parameters
    ----------
    statistics : ndarray of shape (n_cells, n_lanes)
        Expected statistics from which q(theta) is built.
    objective : ndarray of shape (n_lanes,)
        The objective at these statistics, nats.
    n_iter : ndarray of shape (n_lanes,)
        Steps taken.
    converged : ndarray of shape (n_lanes,)
    traces : list of list of float
        The objective of each start at the points its run went through.
    to_come : ndarray of shape (n_lanes,)
        The gain of each still to come when it was left, as estimated, nats; 0 for the worse half of all.
    """

    statistics: np.ndarray
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    traces: list
    to_come: np.ndarray

    @property
    def best(self) -> int:
        """The start with the highest objective; the first of equals."""
        return int(np.argmax(self.objective))

    def with_copies(self, copies: Sequence[tuple[int, int]]) -> Self:
        """The run once lanes that were left, each for another, have the end of the other."""
        for lane, same in reversed(copies):  # as the other may have been left later on
            for values in (self.statistics.T, self.objective, self.n_iter, self.converged, self.to_come):
                values[lane] = values[same]
            self.traces[lane] = list(self.traces[same])
        return self


@dataclass(frozen=True)
class Elimination:
    """Successive elimination: a start is stopped once the best of those beside it is out of its reach.

    Parameters
    ----------
    n_steps : int
        Steps that every start may take before it is compared.
    reach : float
        How many times the gain still to come, as estimated, a start may be behind the best.
    least : float
        An objective that is reached already, nats.
    is_regular : callable of ndarray (n_cells, n_lanes), optional
        Tells which points are solutions; the others beat nobody.
    halves : bool
        The worse half of the starts is stopped after two steps.
    """

    n_steps: int = 8
    reach: float = 3.0
    least: float = -np.inf
    is_regular: Callable[[np.ndarray], np.ndarray] | None = None
    halves: bool = False

    def best(self, statistics: np.ndarray, objective: np.ndarray) -> float:
        """The highest objective of regular points, nats."""
        if self.is_regular is not None:
            objective = objective[self.is_regular(statistics)]
        return max(objective.tolist(), default=-np.inf)

    def required(self, n_steps: int, statistics: np.ndarray, objective: np.ndarray, ended: float) -> float:
        """The objective that a running start must still be able to reach, nats; -inf in its first `n_steps`.

        Parameters
        ----------
        n_steps : int
        statistics : ndarray of shape (n_cells, n_live)
        objective : ndarray of shape (n_live,)
        ended : float
            The best of those that have ended, nats.
        """
        return max(self.best(statistics, objective), ended) if n_steps >= self.n_steps else -np.inf

    def halved(
        self,
        statistics: np.ndarray,
        objective: np.ndarray,
        goes_on: np.ndarray,
        live: np.ndarray,
        to_come: np.ndarray,
    ) -> int:
        """Number of starts that go on, solutions and the higher ones first: half of them, rounded up, at the most.

        `goes_on` (n_live,) is changed, and nothing is `to_come` (n_lanes,) of the others.
        """
        is_regular = np.ones(len(live), bool) if self.is_regular is None else self.is_regular(statistics)
        worse = np.lexsort((-objective, ~is_regular))[-(-len(live) // 2) :]
        goes_on[worse], to_come[live[worse]] = False, 0.0
        return int(goes_on.sum())


#: No start is stopped before it converges.
NO_ELIMINATION = Elimination(n_steps=2**62)


def run(
    ascent: Ascent,
    statistics: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    accelerate: bool = True,
    stop: Callable[[int, float, int, float], bool] | None = None,
    elimination: Elimination = NO_ELIMINATION,
) -> Run:
    """Ascend from every start until it converges.

    Parameters
    ----------
    ascent : Ascent
    statistics : ndarray of shape (n_cells, n_lanes)
        Starts. Not changed.
    tol : float
        Nats still to be gained, as estimated, below which a start has converged.
    max_iter : int
        Most steps per start, 2 at the least.
    accelerate : bool
        Whether to extrapolate (SQUAREM, Varadhan & Roland 2008) where that raises the objective.
    stop : callable of (int, float, int, float), optional
        Asked after every cycle with the steps taken, the best objective so far, how many starts go on, and what the
        best has still to gain; true ends the run.
    elimination : Elimination, optional
        When a start is stopped before it converges; by default never.

    Raises
    ------
    BoundFellError
        If a plain step lowers the objective by more than rounding.
    """
    n_lanes = statistics.shape[1]
    result, objective = np.array(statistics, order="C"), np.full(n_lanes, -np.inf)
    n_iter, converged = np.zeros(n_lanes, dtype=int), np.zeros(n_lanes, dtype=bool)
    to_come = np.full(n_lanes, np.inf)
    traces: list[list[float]] = [[] for _ in range(n_lanes)]
    live, taken = np.arange(n_lanes, dtype=np.int64), 0  # all that live have taken the same steps
    here, reached = result.copy(), objective.copy()
    longest, secants = np.full(n_lanes, _FIRST_LONGEST), Secants(n_lanes)
    floor = np.ones(len(statistics)) * np.where(ascent.signed, -1.0, _MIN_FRACTION_OF_STATISTICS)
    more, ended = 0, elimination.least  # further plain steps in a cycle that does not extrapolate; the best that ended
    copies: list[tuple[int, int]] = []  # lanes on the path of another, and the other
    while len(live):
        one, first = _after_a_step(ascent, here)
        two, second = _after_a_step(ascent, one)
        _check(ascent, reached, first, taken, here)
        _check(ascent, first, second, taken + 1, one)
        taken += 2
        for lane, a, b in zip(live.tolist(), first.tolist(), second.tolist()):
            traces[lane] += (a, b)
        required = elimination.required(taken, one, second, ended)
        limits = (ascent.magnitude, tol, elimination.reach, required, secants.gained)
        length, done, goes_on, n_going = _looked_at((here, one, two), first, second, live, limits, objective, to_come)
        room = max_iter - taken - (3 if accelerate else 2)  # steps left after the next look at convergence
        n_going *= room >= 0
        if n_going and elimination.halves and taken == 2:
            n_going = elimination.halved(one, second, goes_on, live, to_come)
        if n_going > 1:
            n_going -= _left_for_others(one, first, second, goes_on, live, ascent.magnitude, copies)
        if stop is not None:
            n_going *= not stop(*_cycle(taken, objective, n_going, to_come))
        if n_going < len(live):
            goes_on &= n_going > 0
            (going,), (ends,) = goes_on.nonzero(), (~goes_on).nonzero()
            left, there = live[ends], one.take(ends, axis=1)
            result[:, left], n_iter[left], converged[left] = there, taken, done[ends]
            ended = max(ended, elimination.best(there, second[ends]))
            if n_going == 0:
                break
            live, longest, second, length = live[going], longest[going], second[going], length[going]
            here, one, two = (points.take(going, axis=1) for points in (here, one, two))
            secants.of(going)
        if accelerate:
            here, reached = _extrapolated(ascent, secants, (here, one, two), second, length, longest, floor)
            taken += 1
        else:
            more = min(more, room)
            here, reached = two, _after_plain_steps(ascent, two, second, taken, more)
            taken += more
            more = min(more + 2, _MAX_PLAIN_STEPS)
    return Run(result, objective, n_iter, converged, traces, to_come).with_copies(copies)


def _after_a_step(ascent: Ascent, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (n_cells, n_live) after one step, and the objective before it."""
    after = points.copy()
    return after, ascent.advance(after, 1)[0]


def _after_plain_steps(
    ascent: Ascent, points: np.ndarray, objective: np.ndarray, taken: int, n_steps: int
) -> np.ndarray:
    """The objective before the last of so many steps, which points (n_cells, n_live) take in place."""
    for value in ascent.advance(points, n_steps) if n_steps else ():
        _check(ascent, objective, value, taken, points)
        objective = value
    return objective


def _left_for_others(
    points: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    goes_on: np.ndarray,
    live: np.ndarray,
    magnitude: float,
    copies: list[tuple[int, int]],
) -> int:
    """Number of starts on the path of another: objectives agree twice, and lengths of statistics do.

    They no longer go on; they and the others are added to `copies`.
    """
    same, n_before = -1, len(copies)
    for place in sorted(np.flatnonzero(goes_on).tolist(), key=second.tolist().__getitem__):
        rounding = _ROUNDING * (abs(second[place]) + magnitude)
        if same >= 0 and max(second[place] - second[same], abs(first[place] - first[same])) <= rounding:
            length, other = np.linalg.norm(points[:, [place, same]], axis=0)
            if abs(length - other) <= _SAME_LENGTH * other:  # whatever the order of components
                same, left = min(place, same), max(place, same)  # rounding does not decide which goes on
                copies.append((int(live[left]), int(live[same])))
                goes_on[left] = False
                continue
        same = place
    return len(copies) - n_before


def _looked_at(
    points: tuple[np.ndarray, np.ndarray, np.ndarray],
    first: np.ndarray,
    second: np.ndarray,
    live: np.ndarray,
    limits: tuple[float, float, float, float, np.ndarray],
    objective: np.ndarray,
    to_come: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Per running start: estimated steps left, converged, still running; and the number still running.

    Parameters
    ----------
    points : tuple of ndarray of shape (n_cells, n_live)
        Before two steps, between them and after them.
    first, second : ndarray of shape (n_live,)
        The objective before the steps, and between them, nats.
    live : ndarray of shape (n_live,)
        Which lanes they are.
    limits : tuple
        The size of the terms of the objective, `tol`, the reach of the elimination, the objective required, and
        gains of the last leaps by secants, (n_live,).
    objective, to_come : ndarray of shape (n_lanes,)
        Filled where lanes are live.
    """
    length, (done, goes_on) = np.empty_like(first), np.empty((2, len(first)), dtype=bool)
    filled = (length, objective, to_come, done.view(np.uint8), goes_on.view(np.uint8))
    n_going = look(*points, first, second, live, _MAX_STEPS_LEFT, _ROUNDING, *limits, *filled)
    return length, done, goes_on, n_going


def _extrapolated(
    ascent: Ascent,
    secants: Secants,
    points: tuple[np.ndarray, np.ndarray, np.ndarray],
    objective: np.ndarray,
    length: np.ndarray,
    longest: np.ndarray,
    floor: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Points beyond two steps where the objective is no lower there, else after the steps.

    Parameters
    ----------
    ascent : Ascent
    secants : Secants
        What is remembered of these lanes.
    points : tuple of ndarray of shape (n_cells, n_lanes)
        Statistics before the two steps, between them, and after them.
    objective : ndarray of shape (n_lanes,)
        After the first step, nats.
    length, longest : ndarray of shape (n_lanes,)
        How far to extrapolate, and how far at most: changed in place to what is gone, and to what is tried next.
    floor : ndarray of shape (n_cells,)
        The least fraction of itself that a statistic keeps, -1 where it may be negative.

    Returns
    -------
    points : ndarray of shape (n_cells, n_lanes)
    objective : ndarray of shape (n_lanes,)
    """
    here, one, two = points
    ahead = np.empty_like(two)
    secants.add(points)
    extrapolate(here, one, two, length, longest, floor, ahead)
    leaping = secants.lead(floor, ahead)
    length[leaping], before = 1.0, longest[leaping]
    value = ascent.advance(ahead, 1)[0]
    secants.settle(leaping, (value - objective)[leaping])
    settle(two, objective, length, longest, ahead, value)
    longest[leaping] = before
    return ahead, value


def _cycle(n_steps: int, objective: np.ndarray, n_going: int, to_come: np.ndarray) -> tuple[int, float, int, float]:
    """Steps taken, the best objective, how many starts go on, and what the best has still to gain."""
    best = int(objective.argmax())
    return n_steps, float(objective[best]), n_going, float(to_come[best])


def _check(ascent: Ascent, before: np.ndarray, after: np.ndarray, iteration: int, statistics: np.ndarray) -> None:
    """Raise a BoundFellError if the objective fell: a law of the algorithm, so a breach is a defect.

    The statistics (n_cells, n_lanes) are those at which the terms of the objective are the sizes of which are asked.
    """
    if has_risen(before, after):  # nearly always, and cheaper than to look for what is not a number
        return
    with np.errstate(invalid="ignore"):
        fell = before - after
    if not np.isfinite(fell).all():  # also where there is no density any more, or none to begin with: -inf
        raise ascent.failure()
    # normalizers of priors are terms of about a nat, however little the data weigh
    broken = fell > np.maximum(RELATIVE_SLACK * (np.abs(after) + ascent.magnitude), _ROUNDING)
    if broken.any():
        broken &= ~(fell <= ascent.rounding(statistics))
    if broken.any():
        lane = int(np.argmax(broken))
        raise BoundFellError(
            f"The objective fell by {fell[lane]:.3g} nats at iteration {iteration}, from "
            f"{before[lane]:.10g} to {after[lane]:.10g}. " + _suspicion(ascent)
        )


def _suspicion(ascent: Ascent) -> str:
    """A hint for the error message: the user's model or emission if there is one, else the library."""
    if ascent.suspicion:
        return ascent.suspicion
    for what, each in (("model", ascent.model), ("ascent", ascent)):
        if each is not None and type(each).__module__.partition(".")[0] != "skvbem":
            return (
                f"The defect is most likely in the {what} {type(each).__name__}, which is not the library's own: its "
                "prior, expected statistics and log normalizer must belong together. skvbem.testing.check_model finds "
                "the law that is broken."
            )
    return "That is a defect in the model's expectation, not a property of the data: please report it."
