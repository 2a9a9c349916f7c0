"""Priors of first states and of transitions: rows of probabilities, and masks of those that there are.

Rows that covariates drive answer by the same methods; see `skvbem.models.hmm.covariates`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.families import Dirichlet


@dataclass(frozen=True, eq=False)
class Transitions:
    """Rows of probabilities of the next state: one for each state, or a single one for the first state of a chain.

    Parameters
    ----------
    concentration : ndarray of shape (n_rows, n_states)
        0 where there is no such transition.

    Examples
    --------
    >>> from skvbem.models.hmm.transitions import Transitions, left_to_right
    >>> transitions = Transitions.symmetric(3, 1.0, left_to_right(3))
    >>> transitions.concentration.round(3).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    >>> transitions.n_cells, transitions.prior.n_free_parameters
    (5, 2)
    """

    concentration: np.ndarray

    #: Of rows that are the same at every step, of no account.
    at_arrival: ClassVar[bool] = True

    def __post_init__(self):
        if not (np.isfinite(self.concentration).all() and (self.concentration >= 0).all()):
            raise ValueError("Concentrations of transitions must be finite and >= 0, where 0 rules a transition out.")
        stuck = np.flatnonzero(~self.allowed.any(axis=1))
        if len(stuck):
            raise ValueError(f"No transition is left from state {stuck[0]}: a mask must allow one from every state.")

    @classmethod
    def symmetric(cls, n_rows: int, strength: float, allowed: np.ndarray | None = None) -> Self:
        """Rows over as many states, a total strength shared among the allowed ones of each [Beal §3.5].

        Parameters
        ----------
        n_rows : int
        strength : float
            Counts, the sum of each row.
        allowed : ndarray of bool, shape (n_rows, n_states), optional
            All of n_rows states if None.
        """
        allowed = np.ones((n_rows, n_rows), dtype=bool) if allowed is None else np.asarray(allowed, dtype=bool)
        return cls(strength * allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1))

    @classmethod
    def sticky(cls, n_states: int, strength: float, stay: float, allowed: np.ndarray | None = None) -> Self:
        """`symmetric` rows, and so many counts more for staying in a state."""
        rows = cls.symmetric(n_states, strength, allowed)
        return cls(rows.concentration + stay * (np.eye(n_states) * rows.allowed))

    @property
    def n_states(self) -> int:
        """Number of states that transitions lead to."""
        return self.concentration.shape[1]

    @cached_property
    def allowed(self) -> np.ndarray:
        """True for transitions that are possible, (n_rows, n_states)."""
        return self.concentration > 0

    @cached_property
    def cells(self) -> np.ndarray:
        """Position of each cell of the block in the flat matrix, (n_cells,)."""
        return np.flatnonzero(self.allowed)

    @property
    def n_cells(self) -> int:
        """Number of transitions that the mask allows."""
        return len(self.cells)

    @cached_property
    def prior(self) -> Dirichlet:
        """One distribution for each row, over the transitions that there are."""
        return Dirichlet.from_rows([row[row > 0] for row in self.concentration])

    def matrix(self, cells: np.ndarray, absent: float = 0.0) -> np.ndarray:
        """Cells (n_cells, ...) as a matrix (n_rows, n_states, ...), with a value for transitions that do not exist."""
        full = np.full((self.concentration.size, *np.shape(cells)[1:]), absent)
        full[self.cells] = cells
        return full.reshape(*self.concentration.shape, *np.shape(cells)[1:])

    def statistics(self, counts: np.ndarray) -> np.ndarray:
        """Cells (n_cells, ...) of a matrix of counts (n_rows, n_states, ...)."""
        return counts.reshape(-1, *counts.shape[2:])[self.cells]

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Parameters at a point (n_cells, ...), by name: probabilities (n_rows, n_states, ...)."""
        return {"probabilities": self.matrix(point)}

    def quantiles(self, posterior: Dirichlet, probability: float) -> dict[str, np.ndarray]:
        """Quantiles under a posterior of what `parameters` names."""
        return self.parameters(posterior.quantiles(probability))

    def concentrations(self, posterior: Dirichlet) -> dict[str, np.ndarray]:
        """Hyperparameters of a posterior, by name: concentrations (n_rows, n_states), counts."""
        return {"concentration": self.matrix(posterior.concentration)}

    def probabilities(self, point: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        """Probabilities (n_rows, n_states) at a point, whatever statistics (n_cells,) the data have."""
        return self.matrix(point)

    def lasting(self, natural: np.ndarray, n_steps: int) -> np.ndarray:
        """Probabilities that stays last more than 0, 1, ... steps at points (n_cells, n_lanes) in natural parameters.

        (n_lanes, n_states, n_steps).
        """
        stays = np.exp(np.diagonal(self.matrix(natural, -np.inf)))
        return stays[:, :, None] ** np.arange(n_steps)

    def mean_durations(self, point: np.ndarray) -> np.ndarray:
        """Steps that a stay lasts in the mean at a point, (n_states,); inf of a state that cannot be left."""
        return mean_stays(self.matrix(point))

    def patterns(self, values: np.ndarray) -> None:
        """None: covariates (n_steps, n_covariates) drive none of these rows."""

    def redirected(self, statistics: np.ndarray, kept: float, rng: np.random.Generator) -> np.ndarray:
        """Statistics (n_cells,) of which a share is kept; all else that leaves a state leads to states drawn."""
        n = self.n_states
        drawn = rng.dirichlet(np.ones(n), len(self.concentration)) * self.allowed
        matrix = self.matrix(statistics)
        drawn *= matrix.sum(axis=1, keepdims=True) / np.maximum(drawn.sum(axis=1, keepdims=True), 1e-300)
        return self.statistics(kept * matrix + (1 - kept) * drawn)

    def logs(self, natural: np.ndarray, steps: Any, which: Any) -> np.ndarray:
        """(Expected) log probabilities, (1, n_rows, n_states, ...), nats, at natural parameters of any step."""
        return self.matrix(natural, -np.inf)[None]

    def log_matrix(self, natural: np.ndarray) -> np.ndarray:
        """(Expected) log probabilities, (n_rows, n_states), nats."""
        return self.matrix(natural, -np.inf)

    def sums(self, posterior: np.ndarray, steps: Any, which: Any) -> np.ndarray:
        """Statistics (..., n_cells) of probabilities of transitions (..., n_steps, n_rows, n_states)."""
        counts = posterior.sum(axis=-3)
        return counts.reshape(*counts.shape[:-2], -1)[..., self.cells]

    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray, into: Self) -> np.ndarray:
        """Statistics (n_cells,) of rows `into` new states that get fractions (n_new, n_states) of those there are."""
        counts, are_first = self.matrix(statistics) @ fractions.T, len(self.allowed) == len(into.allowed) == 1
        return into.statistics(counts if are_first else fractions @ counts)

    def relabeled(self, order: np.ndarray) -> Self:
        """The prior with the states in another order."""
        rows = order if len(self.concentration) > 1 else np.arange(1)
        return type(self)(self.concentration[np.ix_(rows, order)])

    def is_same(self, other: Self) -> bool:
        """True if other rows have the same concentrations."""
        return np.array_equal(self.concentration, other.concentration)

    def cells_in_order(self, orders: np.ndarray) -> np.ndarray:
        """For each cell the one that takes its place where states are put in another order, (..., n_cells).

        Parameters
        ----------
        orders : ndarray of int, shape (..., n_states)

        Raises
        ------
        ValueError
            If an order puts a transition that exists in the place of one that does not.
        """
        n_rows, n_states = self.concentration.shape
        rows = orders if n_rows > 1 else np.zeros((*orders.shape[:-1], 1), dtype=int)
        number = np.full(n_rows * n_states, -1)
        number[self.cells] = np.arange(self.n_cells)
        places = number.reshape(n_rows, n_states)[rows[..., :, None], orders[..., None, :]]
        places = places.reshape(*orders.shape[:-1], -1)[..., self.cells]
        if (places < 0).any():
            raise ValueError("States in this order would need transitions that the mask rules out.")
        return places


def mean_stays(transitions: np.ndarray) -> np.ndarray:
    """Mean steps of a stay in each state, (..., n), of transitions (..., n, n); inf of a state that is never left."""
    leaving = np.where(np.eye(transitions.shape[-1], dtype=bool), 0.0, transitions).sum(axis=-1)
    with np.errstate(divide="ignore"):
        return 1.0 / leaving


def left_to_right(n_states: int, reach: int = 1) -> np.ndarray:
    """A mask (n_states, n_states): stay, or go on by one state, or by up to `reach`; the last state is for good."""
    step = np.arange(n_states) - np.arange(n_states)[:, None]
    return (step >= 0) & (step <= reach)


def banded(n_states: int, reach: int = 1) -> np.ndarray:
    """A mask (n_states, n_states): no state farther than `reach` from the last."""
    return np.abs(np.arange(n_states) - np.arange(n_states)[:, None]) <= reach
