r"""Rows of probabilities of a hidden semi-Markov model: how long states last, and which state comes next.

A state is stayed in for a number of steps, its duration. There are two families:

- **Hazards**: a stay of age a ends with the probability :math:`h_{ka}` [Guedon 2003]; ages share a hazard in bins, and
  the last age repeats, so that nothing is cut off: long stays have a geometric tail.
- **Stages**: r equal stages in turn, each of which ends with the probability :math:`p_k`: the duration is r plus a
  negative binomial number.

Then the next state is another, with probabilities of its own. Every row is a Dirichlet distribution, and whole
sequences have counts of each cell: both are conjugate, and a stay that the end of a sequence cuts off is a product of
the probabilities of not ending, which needs no treatment. With one age, and Beta(a, b) where the geometric chain has b
for staying and a in all for leaving, the model is that chain, by neutrality of the Dirichlet distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.families import Dirichlet, DirichletMixture
from skvbem.models.hmm.transitions import Transitions


@dataclass(frozen=True, eq=False)
class SemiMarkovRows:
    """Durations of states, and transitions to others; it answers by the methods of `Transitions`.

    Parameters
    ----------
    leaving : ndarray of shape (n_alternatives, n_states, n_bins, 2)
        Concentrations of leaving, and of staying, for each bin of ages; of stages, of going on, and of staying, with
        one bin. Where there are several alternatives, all bins of a state share one, each as probable as the others. 0
        where a state cannot be left.
    others : ndarray of shape (n_states, n_states)
        Concentrations of the next state, 0 on the diagonal.
    bins : ndarray of int, shape (n_ages,)
        The bin of each age, from 0 on.
    are_stages : bool
        Whether ages are stages.
    first_ages : ndarray of shape (n_states, n_ages), optional
        Concentrations of the age in which a sequence begins; by default the first.
    """

    leaving: np.ndarray
    others: np.ndarray
    bins: np.ndarray
    are_stages: bool = False
    first_ages: np.ndarray | None = None

    #: Of rows that are the same at every step, of no account.
    at_arrival: ClassVar[bool] = True

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.others)

    @property
    def n_ages(self) -> int:
        """Number of ages, or of stages."""
        return len(self.bins)

    @property
    def name_of_ends(self) -> str:
        """The parameter that says when stays end: hazards of bins of ages, or the probability that a stage ends."""
        return "stage_ends" if self.are_stages else "hazards"

    @property
    def width(self) -> int:
        """Ages, padded to a multiple of eight."""
        return -(-self.n_ages // 8) * 8

    @cached_property
    def leaves(self) -> Transitions:
        """Rows of leaving and of staying, a state after the other; a state that cannot be left stays for certain."""
        return Transitions(self.leaving.min(axis=0).reshape(-1, 2))

    @cached_property
    def jumps(self) -> Transitions:
        """Rows of the next state; of a state that cannot be left, itself, which takes no part."""
        stuck = ~(self.others > 0).any(axis=1)
        return Transitions(self.others + np.diag(stuck.astype(float)))

    @cached_property
    def ages(self) -> Transitions | None:
        """Rows of first ages."""
        return None if self.first_ages is None else Transitions(self.first_ages)

    @cached_property
    def _parts(self) -> tuple[Transitions, ...]:
        return (self.leaves, self.jumps) if self.ages is None else (self.leaves, self.jumps, self.ages)

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.cumsum([part.n_cells for part in self._parts])

    @cached_property
    def allowed(self) -> np.ndarray:
        """True for transitions that are possible, staying among them, (n_states, n_states)."""
        return self.concentration > 0

    @cached_property
    def concentration(self) -> np.ndarray:
        """Concentrations of transitions, (n_states, n_states), on the diagonal the most of staying in the first bin."""
        return self.others + np.diag(self.leaving[:, :, 0, 1].max(axis=0))

    @property
    def n_cells(self) -> int:
        """Cells of the prior."""
        return int(self._ends[-1])

    @cached_property
    def prior(self) -> Dirichlet | DirichletMixture:
        """One distribution for each row; of several alternatives, those of the bins of a state are one table."""
        rest = [row[row > 0] for part in self._parts[1:] for row in part.concentration]
        if len(self.leaving) == 1:
            return Dirichlet.from_rows([*(row[row > 0] for row in self.leaves.concentration), *rest])
        concentrations = [
            np.concatenate([*(row[row > 0] for row in each.reshape(-1, 2)), *rest]) for each in self.leaving
        ]
        sizes = [*((self.leaves.concentration > 0).sum(axis=1)), *map(len, rest)]
        alternatives, n_bins = np.stack(concentrations), self.leaving.shape[2]
        n_rows = self.n_states * n_bins
        tables = np.append(np.arange(0, n_rows + 1, n_bins), n_rows + 1 + np.arange(len(rest)))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return DirichletMixture(alternatives.min(axis=0), alternatives, starts, tables.astype(np.int64))

    # Cells and steps --------------------------------------------------------------------------------------------------

    def split(self, cells: np.ndarray) -> list[np.ndarray]:
        """Cells (n_cells, ...) of leaving, of the next state, and of first ages if there are any."""
        return np.split(cells, self._ends[:-1])

    def _by_state(self, cells: np.ndarray, absent: float) -> tuple[np.ndarray, np.ndarray]:
        """Of leaving and of staying, (n_states, n_bins, ...) each."""
        matrix = self.leaves.matrix(cells, absent)
        matrix = matrix.reshape(self.n_states, self.leaving.shape[2], *matrix.shape[1:])
        return matrix[:, :, 0], matrix[:, :, 1]

    def log_steps(self, log_initial: np.ndarray, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logs of first cells and of steps, as passes take them.

        Parameters
        ----------
        log_initial : ndarray of shape (n_lanes, n_states)
        natural : ndarray of shape (n_cells, n_lanes)

        Returns
        -------
        cells : ndarray of shape (n_lanes, 4, n_states, width)
            Of first cells, of steps to the next age, to the same cell, and out of the state.
        jumps : ndarray of shape (n_lanes, n_states, n_states)
        """
        n_lanes, last = natural.shape[1], self.n_ages - 1
        cells = np.full((n_lanes, 4, self.n_states, self.width), -np.inf)
        of_leaving, of_jumps, *of_ages = self.split(natural)
        leave, stay = (np.moveaxis(each, -1, 0) for each in self._by_state(of_leaving, -np.inf))
        if of_ages:
            assert self.ages is not None
            by_age = np.moveaxis(self.ages.matrix(of_ages[0], -np.inf), -1, 0)
            cells[:, 0, :, : self.n_ages] = log_initial[:, :, None] + by_age
        else:
            cells[:, 0, :, 0] = log_initial
        if self.are_stages:
            cells[:, 1, :, :last] = leave
            cells[:, 2, :, : self.n_ages] = stay
            cells[:, 3, :, last] = leave[..., 0]
        else:
            cells[:, 1, :, :last] = stay[:, :, self.bins[:-1]]
            cells[:, 2, :, last] = stay[:, :, self.bins[-1]]
            cells[:, 3, :, : self.n_ages] = leave[:, :, self.bins]
        return cells, np.moveaxis(self.jumps.matrix(of_jumps, -np.inf), -1, 0).copy()

    def statistics_of_steps(self, counts: np.ndarray, jumps: np.ndarray) -> np.ndarray:
        """Statistics (n_lanes, n_cells) of counts of first cells and steps, in the shapes of `log_steps`."""
        first, up, keep, leave = np.moveaxis(counts[..., : self.n_ages], 1, 0)
        if self.are_stages:
            of_leaving = np.stack([(up + leave).sum(axis=-1), keep.sum(axis=-1)], axis=-1)[:, :, None]
        else:
            starts = np.flatnonzero(np.diff(self.bins, prepend=-1))
            of_leaving = np.stack([np.add.reduceat(each, starts, axis=-1) for each in (leave, up + keep)], axis=-1)
        rows = of_leaving.reshape(len(counts), -1)[:, self.leaves.cells]
        parts = [rows, jumps.reshape(len(jumps), -1)[:, self.jumps.cells]]
        if self.ages is not None:
            parts.append(first.reshape(len(first), -1)[:, self.ages.cells])
        return np.concatenate(parts, axis=1)

    def statistics_of_pairs(self, first: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """Statistics (n_lanes, n_cells) of first states and transitions whose ages are not known.

        Stays of a state are taken to last geometrically.

        Parameters
        ----------
        first : ndarray of shape (n_lanes, n_states)
        pairs : ndarray of shape (n_lanes, n_states, n_states)
            Counts of transitions, on the diagonal of staying.
        """
        stayed = np.einsum("lkk->lk", pairs)
        jumps = pairs - stayed[..., None] * np.eye(self.n_states)
        left = jumps.sum(axis=-1)
        counts = np.zeros((len(pairs), 4, self.n_states, self.n_ages))
        counts[:, 0, :, 0] = first
        steps, last = left + stayed, self.n_ages - 1
        if self.are_stages:
            counts[:, 3, :, last] = left
            counts[:, 1, :, 0] = np.minimum(last * left, stayed)
            counts[:, 2, :, 0] = stayed - counts[:, 1, :, 0]
            return self.statistics_of_steps(counts, jumps)
        going_on = stayed / np.maximum(steps, 1e-300)
        for age in range(self.n_ages):
            here = np.minimum(left * going_on**age, steps) if age < last else steps
            counts[:, 3, :, age], counts[:, 1 if age < last else 2, :, age] = here * (1 - going_on), here * going_on
            steps = steps - here
        return self.statistics_of_steps(counts, jumps)

    def lasting(self, natural: np.ndarray, n_steps: int) -> np.ndarray:
        """Probabilities that stays last more than 0, 1, ... steps at points (n_cells, n_lanes) in natural parameters.

        (n_lanes, n_states, n_steps).
        """
        logs, _ = self.log_steps(np.zeros((natural.shape[1], self.n_states)), natural)
        up, keep = np.exp(logs[:, 1]), np.exp(logs[:, 2])
        cells, lasts = np.zeros(up.shape), np.empty((*up.shape[:2], n_steps))
        cells[:, :, 0] = 1.0
        for step in range(n_steps):
            lasts[:, :, step] = cells.sum(axis=-1)
            cells = stayed(cells, up, keep)
        return lasts

    def mean_durations(self, point: np.ndarray) -> np.ndarray:
        """Steps that a stay lasts in the mean at a point, (n_states,); inf of a state that cannot be left."""
        return self.mean_stays(self.parameters(point)[self.name_of_ends])

    def mean_stays(self, ends: np.ndarray) -> np.ndarray:
        """Steps that a stay lasts in the mean, (..., n_states), by the parameters that `name_of_ends` names.

        Parameters
        ----------
        ends : ndarray of shape (..., n_states, n_bins) or, of stages, (..., n_states)
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.are_stages:
                return self.n_ages / ends
            hazards = ends[..., self.bins]
            lasts = np.cumprod(1.0 - hazards[..., :-1], axis=-1)
            if self.n_ages == 1:
                return 1.0 / hazards[..., 0]
            beyond = np.where(lasts[..., -1] > 0, lasts[..., -1] / hazards[..., -1], 0.0)
            return 1.0 + lasts[..., :-1].sum(axis=-1) + beyond

    def as_long(self, jumps: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Transitions (..., n_states, n_states) of a chain whose states last geometrically, as long in the mean.

        Parameters
        ----------
        jumps : ndarray of shape (..., n_states, n_states)
            Probabilities of the next state, which is another.
        ends : ndarray
            As of `mean_stays`.
        """
        leaving = 1.0 / self.mean_stays(ends)[..., None]
        return np.eye(self.n_states) * (1.0 - leaving) + leaving * jumps

    def geometric(self, point: np.ndarray) -> np.ndarray:
        """Transitions (n_states, n_states) of a geometric chain, as `as_long` has them, at a point.

        Rows of the point are made to sum to one.
        """
        named = self.parameters(point / self.prior.per_cell(self.prior.row_sums(point)))
        return self.as_long(named["probabilities"], named[self.name_of_ends])

    # What `Transitions` answer, too -----------------------------------------------------------------------------------

    def matrix(self, statistics: np.ndarray) -> np.ndarray:
        """Counts of transitions (n_states, n_states, ...) that statistics (n_cells, ...) hold, those of staying too."""
        of_leaving, of_jumps, *_ = self.split(statistics)
        leave, stay = self._by_state(of_leaving, 0.0)
        jumps = self.jumps.matrix(of_jumps)
        stayed = stay.sum(axis=1)
        if self.are_stages:
            stayed = stayed + np.maximum(leave.sum(axis=1) - jumps.sum(axis=1), 0.0)
        jumps[np.arange(self.n_states), np.arange(self.n_states)] = stayed
        return jumps

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Probabilities of the next state, of leaving by bin of ages, and of first ages, at a point, by name."""
        of_leaving, of_jumps, *of_ages = self.split(point)
        leave, _ = self._by_state(of_leaving, 0.0)
        named = {"probabilities": self._without_itself(of_jumps)}
        named[self.name_of_ends] = leave[:, 0] if self.are_stages else leave
        if of_ages:
            assert self.ages is not None
            named["first_ages"] = self.ages.matrix(of_ages[0])
        return named

    def point_of(self, jumps: np.ndarray, ends: np.ndarray, first_ages: np.ndarray | None = None) -> np.ndarray:
        """The point (n_cells,) at which `parameters` are these.

        Parameters
        ----------
        jumps : ndarray of shape (n_states, n_states)
            Probabilities of the next state; of a state that cannot be left a one on the diagonal.
        ends : ndarray of shape (n_states, n_bins) or, of stages, (n_states,)
        first_ages : ndarray of shape (n_states, n_ages), optional
        """
        leaving = np.stack([ends, 1.0 - ends], axis=-1).reshape(-1, 2)
        parts = [self.leaves.statistics(leaving), self.jumps.statistics(jumps)]
        if self.ages is not None:
            assert first_ages is not None
            parts.append(self.ages.statistics(first_ages))
        return np.concatenate(parts)

    def _without_itself(self, jumps: np.ndarray) -> np.ndarray:
        matrix = self.jumps.matrix(jumps)
        matrix[np.arange(self.n_states), np.arange(self.n_states)] = 0.0
        return matrix

    def quantiles(self, posterior: Any, probability: float) -> dict[str, np.ndarray]:
        """Quantiles under a posterior of what `parameters` names."""
        return self.parameters(posterior.quantiles(probability))

    def concentrations(self, posterior: Any) -> dict[str, np.ndarray]:
        """Hyperparameters of a posterior, by name: concentrations of the next state, (n_states, n_states), counts."""
        return {"concentration": self._without_itself(self.split(posterior.coordinates)[1])}

    def probabilities(self, point: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        """Probabilities of the next state, which is another, (n_states, n_states) at a point."""
        return self.parameters(point)["probabilities"]

    def patterns(self, values: np.ndarray) -> None:
        """None: covariates (n_steps, n_covariates) drive none of these rows."""

    def redirected(self, statistics: np.ndarray, kept: float, rng: np.random.Generator) -> np.ndarray:
        """Statistics (n_cells,) of which a share is kept; all else that leaves a state leads to states drawn."""
        of_leaving, of_jumps, *of_ages = self.split(statistics)
        return np.concatenate([of_leaving, self.jumps.redirected(of_jumps, kept, rng), *of_ages])

    def statistics(self, counts: np.ndarray) -> np.ndarray:
        """Statistics (n_cells,) of counts of transitions (n_states, n_states), on the diagonal of staying."""
        return self.statistics_of_pairs(np.zeros((1, self.n_states)), counts[None])[0]

    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray, into: Any) -> np.ndarray:
        """Statistics of rows `into` new states that get fractions (n_new, n_states) of those there are."""
        if not isinstance(into, SemiMarkovRows):  # of a single state, which has no durations
            return into.statistics(fractions @ self.matrix(statistics) @ fractions.T)
        of_leaving, of_jumps, *of_ages = self.split(statistics)
        leaving = np.stack(self._by_state(of_leaving, 0.0), axis=-1)
        leaving = np.einsum("ab,bcd->acd", fractions, leaving).reshape(-1, 2)
        jumps = fractions @ self._without_itself(of_jumps) @ fractions.T
        parts = [into.leaves.statistics(leaving), into.jumps.statistics(jumps)]
        if of_ages:
            assert self.ages is not None
            assert into.ages is not None
            parts.append(into.ages.statistics(fractions @ self.ages.matrix(of_ages[0])))
        return np.concatenate(parts)

    def relabeled(self, order: np.ndarray) -> Self:
        """The rows with the states in another order."""
        first_ages = None if self.first_ages is None else self.first_ages[order]
        return replace(
            self, leaving=self.leaving[:, order], others=self.others[np.ix_(order, order)], first_ages=first_ages
        )

    def is_same(self, other: Self) -> bool:
        """True if other rows have the same concentrations."""
        mine, others = ((each.leaving, each.others, each.first_ages) for each in (self, other))
        return all(a is b if a is None or b is None else np.array_equal(a, b) for a, b in zip(mine, others))

    def cells_in_order(self, orders: np.ndarray) -> np.ndarray:
        """For each cell the one that takes its place where states are put in another order, (..., n_cells).

        Raises
        ------
        ValueError
            If an order puts a transition that exists in the place of one that does not.
        """
        of_leaving, of_jumps, *of_ages = self.split(np.arange(self.n_cells))
        flat = orders.reshape(-1, orders.shape[-1])
        places = []
        for order in flat:
            leaving = np.stack(self._by_state(of_leaving, -1), axis=-1)[order].reshape(-1)[self.leaves.cells]
            parts = [leaving, of_jumps[self.jumps.cells_in_order(order)]]
            if of_ages:
                assert self.ages is not None
                parts.append(self.ages.matrix(of_ages[0], -1)[order].reshape(-1)[self.ages.cells])
            places.append(np.concatenate(parts))
        cells = np.stack(places).astype(np.int64)
        if (cells < 0).any():
            raise ValueError("States in this order would need transitions that the mask rules out.")
        return cells.reshape(*orders.shape[:-1], -1)


def stayed(cells: np.ndarray, up: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Probabilities of cells (..., n_ages) a step later, of stays that go on: to the next age, or in the same cell."""
    later = cells * keep
    later[..., 1:] += (cells * up)[..., :-1]
    return later
