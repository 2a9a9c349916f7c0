"""Leaps of starts that ascend slowly in several directions at once, by secants of their last steps.

A squared extrapolation follows one direction. Where data hardly tell some parameters, such as cells beyond a limit,
many directions are slow, each at its own rate. Secants of several cycles tell how steps change from point to point: the
leap goes where the next step would be shortest [ZAL11].
"""

from __future__ import annotations

from collections import deque

import numpy as np

# Cycles of two steps and a leap that are remembered. On eight `Censored` mixtures of 1 500 rows, to 1e-7 nats, all took
# 4 923 steps without secants, and 1 452, 1 356, 1 308 and 1 278 with 3, 5, 8 and 10 cycles.
_N_CYCLES = 8
# Cycles after which a start is slow, 60 steps. With 30 steps the same mixtures took a tenth more.
_N_QUICK = 20
# Doubles of the points that are remembered, 32 MB; larger models go on without secants.
_N_DOUBLES = 2**22
# Share of the largest singular value of secants up to which another one is rounding. By hand: 1e-7 takes as many steps.
_ROUNDING = 1e-10


class Secants:
    """Points of the last cycles of starts, each before, between and after two steps.

    Parameters
    ----------
    n_lanes : int
    """

    def __init__(self, n_lanes: int):
        self.cycles: deque[tuple[np.ndarray, ...]] = deque(maxlen=_N_CYCLES)
        self.n_taken = 0  # cycles of all starts
        self.n_used = np.zeros(n_lanes, dtype=int)  # last cycles that the leap of each start is made of
        self.gained = np.zeros(n_lanes)  # by the last leap of each, nats
        self.rests = np.zeros(n_lanes, dtype=bool)  # starts that lost by a leap: a squared extrapolation follows

    def of(self, going: np.ndarray) -> None:
        """Keep the starts at these places."""
        self.n_used, self.rests, self.gained = self.n_used[going], self.rests[going], self.gained[going]
        for _ in range(len(self.cycles)):
            self.cycles.append(tuple(points[:, going] for points in self.cycles.popleft()))

    def add(self, points: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        """Remember a cycle, points (n_cells, n_lanes) each, of slow starts."""
        self.n_taken += 1
        if self.n_taken > _N_QUICK and 3 * _N_CYCLES * points[0].size <= _N_DOUBLES:
            self.cycles.append(points)
            self.n_used = np.minimum(self.n_used + 1, _N_CYCLES)

    def lead(self, floor: np.ndarray, ahead: np.ndarray) -> np.ndarray:
        """Places of the starts that leap by secants, whose `ahead` (n_cells, n_lanes) becomes where to.

        Cells become no smaller than their `floor` (n_cells,) times what they are; where it is negative they have none.
        """
        (leaping,) = ((self.n_used > 1) & ~self.rests).nonzero()
        self.rests[:] = False
        for lane in leaping.tolist():
            cycles = list(self.cycles)[-self.n_used[lane] :]
            points = np.array([[each[:, lane] for each in cycle] for cycle in cycles])
            here, n_cells = points[-1, 2], points.shape[2]
            steps, ends = np.diff(points, axis=1).reshape(-1, n_cells), points[:, 1:].reshape(-1, n_cells)
            changes, moves = np.diff(steps, axis=0).T, np.diff(ends, axis=0).T
            length = np.linalg.norm(changes, axis=0) + 1e-300
            multiples = np.linalg.lstsq(changes / length, steps[-1], rcond=_ROUNDING)[0] / length
            to = here - moves @ multiples
            ahead[:, lane] = np.where(floor >= 0, np.maximum(to, floor * here), to)
        return leaping

    def settle(self, leaping: np.ndarray, gains: np.ndarray) -> None:
        """Of starts that leapt and gained so much (n_leaping,), nats, those that lost rest, and keep two cycles."""
        lower = leaping[~(gains >= 0)]
        self.n_used[lower], self.rests[lower] = np.minimum(self.n_used[lower], 2), True
        self.gained[leaping] = np.where(gains >= 0, gains, 0.0)
