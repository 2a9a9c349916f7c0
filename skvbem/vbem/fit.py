"""From starts to one fit: annealing, selection among starts, the run, and the prior learned on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from skvbem.vbem.driver import Ascent, Run, run
from skvbem.vbem.starts import tournament

# Optima kept, and numbers they may take together.
_MAX_OPTIMA, _MAX_KEPT_DOUBLES = 8, 2**21
# Of two runs whose objectives differ by less, one is kept; none of an objective lower than the best by more. Nats.
_NATS_BETWEEN_OPTIMA, _NATS_WITHOUT_HOPE = 0.01, 50.0


@dataclass(frozen=True, eq=False)
class Fit:
    """The start that reached the highest objective, and where all others ended.

    Parameters
    ----------
    statistics : ndarray of shape (n_cells,)
        Expected statistics from which q(theta) is built.
    objective : float
        Lower bound (VB), log posterior (MAP) or log likelihood (ML) at these statistics, nats.
    trace : tuple of float
        The objective at every point of the best start's run.
    n_iter : int
        Steps of the best start's run.
    converged : bool
    restart_objectives, restart_n_iter, restart_converged : ndarray of shape (n_starts,)
        Where every start ended; NaN and 0 for a start dropped from a tournament.
    restart_traces : tuple of tuple of float
        The objective along the run of every start; empty for one dropped from a tournament.
    optima : ndarray of shape (n_cells, n_optima)
        Statistics of the different optima that the starts ended in, the best first.
    """

    statistics: np.ndarray
    objective: float
    trace: tuple[float, ...]
    n_iter: int
    converged: bool
    restart_objectives: np.ndarray
    restart_n_iter: np.ndarray
    restart_converged: np.ndarray
    restart_traces: tuple[tuple[float, ...], ...]
    optima: np.ndarray


def best_of(
    ascent: Ascent,
    starts: np.ndarray,
    *,
    tol: float,
    max_iter: int,
    accelerate: bool = True,
    select: bool = False,
    inverse_temperatures: Iterable[float] = (),
    stop: Callable[[int, float], bool] | None = None,
) -> Fit:
    """Ascend from every start and keep the best.

    Parameters
    ----------
    ascent : Ascent
    starts : ndarray of shape (n_cells, n_starts)
        Expected statistics.
    tol, max_iter, accelerate, stop
        As in `skvbem.vbem.driver.run`.
    select : bool
        Whether only the survivor of a tournament is run to the end, rather than every start.
    inverse_temperatures : iterable of float
        One annealed step is taken at each, with statistics multiplied by it [Beal (2.118), (2.119)], before the run.
    """
    n_starts = starts.shape[1]
    starts = np.array(starts, order="C")
    for inverse_temperature in inverse_temperatures:
        starts *= inverse_temperature
        ascent.advance(starts, 1)
    lanes = np.arange(n_starts)
    if select and n_starts > 1:
        order, starts = tournament(ascent, starts)
        lanes = order[-1:]
    result: Run = run(ascent, starts, tol=tol, max_iter=max_iter, accelerate=accelerate, stop=stop)
    best = result.best
    objectives, n_iter, converged = np.full(n_starts, np.nan), np.zeros(n_starts, int), np.zeros(n_starts, bool)
    objectives[lanes], n_iter[lanes], converged[lanes] = result.objective, result.n_iter, result.converged
    traces: list[tuple[float, ...]] = [()] * n_starts
    for lane, trace in zip(lanes.tolist(), result.traces):
        traces[lane] = tuple(trace)
    return Fit(
        np.ascontiguousarray(result.statistics[:, best]),
        float(result.objective[best]),
        tuple(result.traces[best]),
        int(result.n_iter[best]),
        bool(result.converged[best]),
        objectives,
        n_iter,
        converged,
        tuple(traces),
        result.statistics[:, distinct_optima(result.objective, len(starts))],
    )


def continued(fit: Fit, further: Fit) -> Fit:
    """One fit from a fit and a run that went on from where it ended; its starts are those of the fit."""
    return replace(
        fit,
        statistics=further.statistics,
        objective=further.objective,
        trace=fit.trace + further.trace,
        n_iter=fit.n_iter + further.n_iter,
        converged=further.converged,
        optima=further.optima,
    )


def distinct_optima(objectives: np.ndarray, n_cells: int) -> list[int]:
    """The runs to keep, one for each optimum worth a start of its own, the best first.

    Relabelings of one optimum have one objective, so that runs whose objectives agree are taken for one.

    Parameters
    ----------
    objectives : ndarray of shape (n_runs,)
    n_cells : int
        Numbers that one run takes; large ones are not kept beside the best.
    """
    order = np.argsort(-objectives, kind="stable")
    kept = [int(order[0])]
    for run_at in order[1:]:
        if len(kept) == _MAX_OPTIMA or (len(kept) + 1) * n_cells > _MAX_KEPT_DOUBLES:
            break
        if objectives[run_at] < objectives[kept[0]] - _NATS_WITHOUT_HOPE:
            break
        if objectives[run_at] < objectives[kept[-1]] - _NATS_BETWEEN_OPTIMA:
            kept.append(int(run_at))
    return kept
