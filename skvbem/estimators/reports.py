"""Reports that all estimators give: how hidden states are used, and where every start of a fit ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from scipy.special import xlogy

# States that differ by less in every row of every child's table are called duplicates (total variation). For components
# of a mixture a symmetric divergence says so: below 4 x 0.05^2 nats it holds the total variation below 0.05 [Pinsker].
MAX_VARIATION_OF_DUPLICATES = 0.05
_MAX_DIVERGENCE_OF_DUPLICATES = 4 * MAX_VARIATION_OF_DUPLICATES**2


@dataclass(frozen=True, eq=False)
class LatentStates:
    """The use of a latent's states, or of a mixture's components.

    Parameters
    ----------
    mass : ndarray of shape (n_states,)
        Expected number of rows in each state.
    in_use : tuple of int
        States that at least one row's worth of data is in.
    empty : tuple of int
        The others: the data do not need them.
    duplicates : tuple of (int, int)
        Pairs of states in use that no child tells apart by more than 0.05 in total variation. Pairs of components whose
        symmetric divergence, over the rows as they share them, is below 0.01 nats a row.
    """

    mass: np.ndarray
    in_use: tuple[int, ...]
    empty: tuple[int, ...]
    duplicates: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, mass: np.ndarray, alike: Callable[[int, int], bool]) -> Self:
        """The use of states of a mass, which of them are alike asked of pairs in use."""
        in_use = tuple(np.flatnonzero(mass >= 1.0).tolist())
        empty = tuple(np.flatnonzero(mass < 1.0).tolist())
        return cls(mass, in_use, empty, tuple((a, b) for a, b in combinations(in_use, 2) if alike(a, b)))

    @property
    def effective(self) -> float:
        """How many equally large states would be as uncertain: exp of the entropy of the shares of the mass."""
        fractions = self.mass / self.mass.sum()
        return float(np.exp(-xlogy(fractions, fractions).sum()))


def states_of_components(counts: np.ndarray, divergence: np.ndarray) -> LatentStates:
    """The components of a mixture that are in use, empty, or duplicates by their symmetric divergence in nats a row."""
    return LatentStates.of(counts, lambda a, b: bool(divergence[a, b] < _MAX_DIVERGENCE_OF_DUPLICATES))


@dataclass(frozen=True, eq=False)
class Restarts:
    """Where every start of a fit ended, and the moves that led on from there.

    Parameters
    ----------
    bounds : ndarray of shape (n_starts,)
        The objective each start reached, nats; NaN for a start left behind on fewer rows.
    n_iter : ndarray of shape (n_starts,)
        Steps taken.
    converged : ndarray of shape (n_starts,)
        Not so for a start that was stopped in a race, where the best was out of its reach.
    n_best : int
        How many starts met the best, to 1e-6 relative or 0.01 nats: a best met once among many may not be the best. 0
        where moves alone, or starts on fewer rows, led there.
    traces : tuple of ndarray
        The objective along the run of each start, nats; empty where it was left behind.
    kinds : tuple of str
        The kind of each start, as the `init` parameter names it.
    moves : tuple of Move
        The moves at a fixed number of components that led to the fit, each with the objective after it and its kind.
        Kinds that divide components are "split, join", "split, drop" and "divide anew". "join" and "drop" leave the
        room of a component empty. "share out anew" shares rows among two or three components, and "transfer" moves
        rows one by one. Others are "around a row", "cross" (of two optima) and "new start". States of a latent have
        "split, join", "divide anew" or "draw again". "draw" draws parameters.
    refused : ndarray of bool, shape (n_starts,)
        Starts that ended, by maximum likelihood, where some component has no width in some direction or no more rows
        than columns. Such a solution is refused while there is another.
    """

    bounds: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    n_best: int
    traces: tuple[np.ndarray, ...] = ()
    kinds: tuple[str, ...] = ()
    moves: tuple = ()
    refused: np.ndarray | None = None

    @classmethod
    def of(cls, fit) -> Restarts:
        """The record of a `skvbem.vbem.fit.Fit`."""
        bounds, to_come, counts = fit.restart_objectives, fit.restart_to_come, fit.restart_counts
        refused = np.zeros(len(bounds), dtype=bool) if counts is None else ~counts
        reached = bounds[~np.isnan(bounds) & (~refused | refused.all())]
        best = max([*reached.tolist(), *(move.objective for move in fit.moves)], default=np.nan)
        met = bounds + (0.0 if to_come is None else to_come) >= best - max(0.01, 1e-6 * abs(best))
        traces = tuple(np.array(trace) for trace in fit.restart_traces)
        n_best = int((met & (~refused | refused.all())).sum())
        shown = fit.restart_n_iter, fit.restart_converged, n_best, traces, fit.restart_kinds, fit.moves, refused
        return cls(bounds, *shown)

    def in_words(self) -> str:
        """How many starts met the best, and how many moves led on from them."""
        text = f"{len(self.bounds):,}, of which {self.n_best:,} met the best"
        if self.moves:
            text += f"; {len(self.moves):,} move{'s' * (len(self.moves) > 1)} led there"
        return text

    def doubts(self) -> list[str]:
        """Why there may be a better optimum than the best that starts and moves met."""
        doubts = []
        if len(self.bounds) > 1 and self.n_best < 2 and not self.moves:
            doubts.append(
                f"Only one of {len(self.bounds)} starts met the best, so there may be a better one: raise 'n_init'."
            )
        if self.refused is not None and self.refused.all():
            doubts.append(
                "Every start ended where some component has no width, or no more rows than columns: the likelihood has "
                "no maximum there."
            )
        return doubts

    def __repr__(self):
        reached = self.bounds[~np.isnan(self.bounds)]
        n_ended = int((self.converged & ~np.isnan(self.bounds)).sum())
        kinds = ", ".join(f"{self.kinds.count(kind)} {kind}" for kind in dict.fromkeys(self.kinds))
        text = f"Restarts({len(self.bounds)} start{'s' * (len(self.bounds) != 1)}, {n_ended} run to the end"
        if len(reached):
            text += f"; best {reached.max():.6g}" + (f" met {self.n_best} times" if self.n_best else "")
            text += f", median {np.median(reached):.6g}, worst {reached.min():.6g}"
        if len(set(self.kinds)) > 1:
            text += f"; {kinds}"
        if self.moves:
            text += f"; then {len(self.moves)} move{'s' * (len(self.moves) > 1)} to {self.moves[-1].objective:.6g}"
        if self.refused is not None and self.refused.any():
            text += f"; {self.refused.sum()} refused, with a component of no width"
        return text + ")"
