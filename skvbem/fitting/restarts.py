"""Reports that all estimators give: how hidden states are used, and where every start of a fit ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Restarts:
    """The end of every start of a fit, and the moves that led on from there.

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
        """Numbers of starts that met the best, and of moves that led on from them, in words."""
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
