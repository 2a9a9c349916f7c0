"""The record of a fit: where its starts ended, the best of them, and the moves that led on from there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from skvbem.vbem.driver import RELATIVE_SLACK


@dataclass(frozen=True)
class Move:
    """A move that raised the objective.

    Parameters
    ----------
    kind : str
        What changed, such as "split, join": several changes in turn are named one after the other. Moves that change
        numbers are "start"; "split" or "join" (or drop) of components; "birth" or "delete" of a factor; "order" of
        components that changed places.
    objective : float
        After it, nats, of the data that it was made on.
    n_components : int
        After it; 0 where no number changes.
    n_factors : tuple of tuple of int
        After it, of each group whose factors are counted, those of each component.
    """

    kind: str
    objective: float
    n_components: int = 0
    n_factors: tuple[tuple[int, ...], ...] = ()

    @property
    def lower_bound(self) -> float:
        """The objective, which is the lower bound where numbers change."""
        return self.objective


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
        Where every start ended; NaN and 0 for one left behind on fewer of the data.
    restart_traces : tuple of tuple of float
        The objective along the run of every start; empty where it was left behind.
    optima : ndarray of shape (n_cells, n_optima)
        Statistics of the different optima that starts and moves got to, the best first. Some were left on their way;
        `FitPlan.run_optima` runs these to their ends.
    restart_to_come : ndarray of shape (n_starts,)
        Nats that every start might still have gained where it was left.
    restart_counts : ndarray of bool, shape (n_starts,)
        Which starts ended in solutions that count.
    state : ndarray of shape (n_state,), optional
        What is kept of q(x) where the E step is not exact: the objective is then a bound of what it would be.
    restart_kinds : tuple of str
        The kind of every start.
    moves : tuple of Move
        The moves that led from the best start to where the fit ended.
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
    restart_to_come: np.ndarray
    restart_counts: np.ndarray
    restart_kinds: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    state: np.ndarray | None = None


def continued(fit: Fit, further: Fit) -> Fit:
    """One fit from a fit and a run that went on from where it ended; its starts are those of the fit.

    A run that began lower, its components in another order, has a trace of its own: no trace falls.
    """
    went_on = further.trace[0] >= fit.objective - RELATIVE_SLACK * abs(fit.objective)
    return replace(
        fit,
        statistics=further.statistics,
        objective=further.objective,
        trace=fit.trace + further.trace if went_on else further.trace,
        n_iter=fit.n_iter + further.n_iter,
        converged=further.converged,
        optima=further.optima,
        state=further.state,
    )
