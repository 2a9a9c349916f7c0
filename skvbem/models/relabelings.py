"""Relabelings of hidden states that leave a model and its data as they are; sums over all; coordinates of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import factorial, lgamma, prod

import numpy as np
from scipy.optimize import linear_sum_assignment

from skvbem._numerics import log_sum_exp
from skvbem.capabilities import Relabelings
from skvbem.emissions.symmetries import SignedPermutations

# Numbers that one intermediate array of a sum over relabelings may hold.
_CHUNK = 2**21
# Up to this many states all permutations are tried at once.
_MAX_PERMUTED_STATES = 4

# Most states of a hidden node whose relabelings are summed over subsets of states.
_MAX_SUMMED_STATES = 14


class ListedRelabelings(Relabelings):
    """Relabelings listed one by one: the cell that takes each cell's place, and its sign there, (n, n_cells)."""

    def __init__(self, cells: np.ndarray, signs: np.ndarray | None = None):
        self.cells, self.n, self.cost = cells, len(cells), float(cells.size)
        self.signs = signs if signs is None or (signs < 0).any() else None

    def _signs(self, which: slice | int) -> np.ndarray | float:
        return 1.0 if self.signs is None else self.signs[which]

    def log_sums(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln of the sums over relabelings, one relabeling after the other."""
        n_statistics, n_points = len(statistics), log_points.shape[1]
        sums = np.full((n_statistics, n_points), -np.inf)
        at_once = max(1, _CHUNK // (n_statistics * max(n_points, statistics.shape[1])))
        for first in range(0, self.n, at_once):
            # relabeling the statistics instead of the points runs through the inverses, which are the same group
            at = slice(first, first + at_once)
            relabeled = statistics[:, self.cells[at]] * self._signs(at)
            batch = relabeled.reshape(-1, statistics.shape[1]) @ log_points
            batch = log_sum_exp(batch.reshape(n_statistics, -1, n_points).swapaxes(0, 1))
            np.logaddexp(sums, batch, out=sums)
        return sums

    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The point under a relabeling drawn among all."""
        which = _choice((log_point[self.cells] * self._signs(slice(None))) @ statistics, rng)
        return log_point[self.cells[which]] * self._signs(which)

    def nearest(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """Points under the best of all relabelings, tried one by one."""
        best, aligned = np.full(log_points.shape[1], -np.inf), log_points.copy()
        for which, cells in enumerate(self.cells):
            relabeled = log_points[cells] * np.reshape(self._signs(which), (-1, 1))
            value = statistics @ relabeled
            better = value > best
            best[better], aligned[:, better] = value[better], relabeled[:, better]
        return aligned


class StateRelabelings(Relabelings):
    """All permutations of the states of one hidden node: `cells` (n_states, n_cells) are the cells of each state."""

    def __init__(self, cells: np.ndarray):
        self.cells, self.n = cells, factorial(len(cells))
        self.cost = float(len(cells) * cells.size + 5 * len(cells) * 2 ** len(cells))

    def _parts(self, statistics, log_points):
        """statistics of state k . ln theta of state l, (n_states, n_states, ...), and of the cells of no state."""
        n_states, n_cells = self.cells.shape
        others = np.setdiff1d(np.arange(statistics.shape[1]), self.cells)
        by_state = log_points[self.cells].swapaxes(0, 1).reshape(n_cells, -1)
        products = statistics[:, self.cells].reshape(-1, n_cells) @ by_state
        entries = products.reshape(len(statistics), n_states, n_states, -1).transpose(1, 2, 0, 3)
        return entries, statistics[:, others] @ log_points[others]

    def log_sums(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln of the sums over relabelings, which are permanents of N_k . ln theta_l."""
        sums = np.empty((len(statistics), log_points.shape[1]))
        at_once = max(1, _CHUNK // (2 ** len(self.cells) * len(statistics)))
        for first in range(0, log_points.shape[1], at_once):
            points = slice(first, first + at_once)
            entries, rest = self._parts(statistics, log_points[:, points])
            sums[:, points] = _log_permanents(entries)[-1] + rest
        return sums

    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A permutation drawn, state after state, by the permanents of what is left."""
        entries = self._parts(statistics[None], log_point[:, None])[0][:, :, 0, 0]
        partial, taken = _log_permanents(entries), 2 ** len(entries) - 1
        drawn = log_point.copy()
        for k in reversed(range(len(entries))):
            free = [state for state in range(len(entries)) if taken >> state & 1]
            state = free[_choice(np.array([partial[taken ^ (1 << s)] + entries[k, s] for s in free]), rng)]
            drawn[self.cells[k]] = log_point[self.cells[state]]
            taken ^= 1 << state
        return drawn

    def nearest(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """Points with their states assigned to those of the anchor, in polynomial time."""
        aligned, states = log_points.copy(), self._assigned(statistics, log_points)
        aligned[self.cells] = log_points[self.cells[states].transpose(1, 2, 0), np.arange(log_points.shape[1])]
        return aligned

    def _assigned(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """The state that takes the place of each, of every point, (n_points, n_states)."""
        entries = np.moveaxis(self._parts(statistics[None], log_points)[0][:, :, 0], -1, 0)
        n_states = len(self.cells)
        if n_states > _MAX_PERMUTED_STATES:
            return np.array([linear_sum_assignment(of_point, maximize=True)[1] for of_point in entries])
        orders = np.array(list(permutations(range(n_states))))
        return orders[entries[:, np.arange(n_states), orders].sum(axis=2).argmax(axis=1)]


class SequentialRelabelings(StateRelabelings):
    r"""`StateRelabelings` of so many states that permanents cost too much: states of the anchor pick theirs in turn.

    The anchor's states, largest first, each pick a state of theta among those left, with weights
    :math:`e^{N_k \cdot \ln\theta_l}`. Any picks in turn make a distribution over the permutations g, which knows theta
    only by its entries: h(theta), n times the probability of the identity, averages to one over the relabelings.
    """

    def __init__(self, cells: np.ndarray):
        super().__init__(cells)
        self.cost = np.inf

    def _turns(self, statistics: np.ndarray) -> np.ndarray:
        return np.argsort(-statistics[self.cells].sum(axis=1), kind="stable")

    def correction(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln h, by the probability that the picks in turn are the identity."""
        entries = self._parts(statistics[None], log_points)[0][:, :, 0]
        log_h = np.full(log_points.shape[1], lgamma(len(entries) + 1.0))
        turns = self._turns(statistics)
        for at, k in enumerate(turns):
            log_h += entries[k, k] - log_sum_exp(entries[k, turns[at:]])
        return log_h

    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The point under a relabeling drawn by the picks in turn."""
        drawn = log_point.copy()
        drawn[self.cells] = log_point[self.cells[self.picked(statistics, log_point, rng)]]
        return drawn

    def picked(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The state that takes the place of each, (n_states,), by picks in turn."""
        entries = self._parts(statistics[None], log_point[:, None])[0][:, :, 0, 0]
        free, states = list(range(len(entries))), np.empty(len(entries), dtype=int)
        for k in self._turns(statistics):
            states[k] = free.pop(_choice(entries[k, free], rng))
        return states


def relabelings_of_states(cells: np.ndarray) -> StateRelabelings:
    """All permutations of states that have these cells, (n_states, n_cells)."""
    return (StateRelabelings if len(cells) <= _MAX_SUMMED_STATES else SequentialRelabelings)(cells)


def _log_permanents(log_entries: np.ndarray) -> np.ndarray:
    """For every subset of columns, as a bit mask, ln of the permanent of these columns and as many first rows.

    Parameters
    ----------
    log_entries : ndarray of shape (n, n, ...)

    Returns
    -------
    ndarray of shape (2^n, ...)
    """
    n = len(log_entries)
    permanents = np.empty((2**n, *log_entries.shape[2:]))
    permanents[0] = 0.0
    for subset in range(1, 2**n):
        row = log_entries[subset.bit_count() - 1]
        columns = [column for column in range(n) if subset >> column & 1]
        terms = row[columns] + permanents[[subset ^ (1 << column) for column in columns]]
        permanents[subset] = terms[0] if len(columns) == 1 else log_sum_exp(terms)
    return permanents


def _choice(log_weights: np.ndarray, rng: np.random.Generator) -> int:
    weights = np.exp(log_weights - log_weights.max())
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def listed(relabelings: Relabelings | None, n_cells: int, limit: int) -> np.ndarray | None:
    """Relabelings as the cell that takes each cell's place, (n, n_cells); None where there are more than `limit`."""
    if relabelings is None or relabelings.n > limit:
        return None
    if isinstance(relabelings, ListedRelabelings):
        return relabelings.cells if relabelings.signs is None else None
    if isinstance(relabelings, StateRelabelings):
        orders = np.array(list(permutations(range(len(relabelings.cells)))))
        cells = np.tile(np.arange(n_cells), (factorial(len(relabelings.cells)), 1))
        cells[:, relabelings.cells.ravel()] = relabelings.cells[orders].reshape(len(orders), -1)
        return cells
    if isinstance(relabelings, SignedRelabelings):  # the orders alone are a group, too
        return relabelings.cells_in_order
    return None


class SignedRelabelings(Relabelings):
    r"""Orders of labels, and within each label changes that nothing tells, such as signs of factors.

    A sum over the changes of each label stands in the place of :math:`N_k \cdot \ln\theta_l`. Labels that change
    places have the same changes.

    Parameters
    ----------
    cells : ndarray of int, shape (n_labels, n_own)
        Of each label, those of a label's own that `changes` are of.
    changes : list of SignedPermutations
        Of each label.
    orders : ndarray of int, shape (n_orders, n_labels)
        Orders of the labels, the first of which leaves all as it is.
    cells_in_order : ndarray of int, shape (n_orders, n_cells)
        The cell that takes each cell's place under each order.
    """

    def __init__(
        self, cells: np.ndarray, changes: Sequence[SignedPermutations], orders: np.ndarray, cells_in_order: np.ndarray
    ):
        self.cells, self.changes, self.orders, self.cells_in_order = cells, changes, orders, cells_in_order
        sizes = [each.n for each in changes]
        self.n, self.most_changes = len(orders) * prod(sizes), max(sizes)
        self.cost = float(cells_in_order.size + len(cells) ** 2 * max(each.n_operations for each in changes))
        self.are_changed = np.zeros((len(cells),) * 2, dtype=bool)
        for order in orders:
            self.are_changed[np.arange(len(cells)), order] = True
        self.others = np.setdiff1d(np.arange(cells_in_order.shape[1]), cells)

    def _of_orders(self, statistics: np.ndarray, log_points: np.ndarray, over: Callable[..., np.ndarray]) -> np.ndarray:
        """For every order the sum over its labels of one number for all changes, (n_orders, n_statistics, n_points)."""
        n, at_once = len(self.cells), max(1, _CHUNK // (self.most_changes * len(statistics)))
        parts = []
        for first in range(0, log_points.shape[1], at_once):
            points = log_points[:, first : first + at_once]
            entries = np.zeros((n, n, len(statistics), points.shape[1]))
            for k, label in np.argwhere(self.are_changed):
                entries[k, label] = over(
                    self.changes[k].products(statistics[:, self.cells[k]], points[self.cells[label]])
                )
            by_label = np.array([entries[np.arange(n), order].sum(axis=0) for order in self.orders])
            of_others = [statistics[:, self.others] @ points[order[self.others]] for order in self.cells_in_order]
            parts.append(by_label + np.array(of_others))
        return np.concatenate(parts, axis=-1)

    def log_sums(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """ln of the sums over relabelings, order after order."""
        return log_sum_exp(self._of_orders(statistics, log_points, log_sum_exp))

    def draw(self, statistics: np.ndarray, log_point: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """An order drawn, then changes of each label given it."""
        one, point = statistics[None], log_point[:, None]
        which = _choice(self._of_orders(one, point, log_sum_exp)[:, 0, 0], rng)
        drawn = log_point[self.cells_in_order[which]]
        for cells, changes in zip(self.cells, self.changes):
            products = changes.products(statistics[cells][None], drawn[cells][:, None])[:, 0, 0]
            drawn[cells] = changes.changed(drawn[cells][:, None], np.array([_choice(products, rng)]))[:, 0]
        return drawn

    def nearest(self, statistics: np.ndarray, log_points: np.ndarray) -> np.ndarray:
        """Points under the best order, and of each label under the best change."""
        best = self._of_orders(statistics[None], log_points, lambda products: products.max(axis=0))[:, 0].argmax(axis=0)
        aligned = np.take_along_axis(log_points, self.cells_in_order[best].T, axis=0)
        at_once = max(1, _CHUNK // self.most_changes)
        for cells, changes in zip(self.cells, self.changes):
            for at in range(0, aligned.shape[1], at_once):
                points = aligned[cells, at : at + at_once]
                products = changes.products(statistics[cells][None], points)[:, 0]
                aligned[cells, at : at + at_once] = changes.changed(points, products.argmax(axis=0))
        return aligned


def coordinate_blocks(free: list[np.ndarray], d: int) -> list[np.ndarray]:
    """The d unconstrained coordinates in blocks: those of each component alone, and those of several.

    Parameters
    ----------
    free : list of ndarray of int
        The coordinates that each component has a part in.
    d : int
    """
    n_components = np.zeros(d, dtype=int)
    for coordinates in free:
        n_components[coordinates] += 1
    shared = np.flatnonzero(n_components > 1)
    return [np.setdiff1d(coordinates, shared) for coordinates in free] + [shared]
