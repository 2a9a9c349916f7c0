"""Rows that change their component one at a time [Hartigan 1975], where rows and labels together gain by it.

A step of VBEM asks how well a row fits each component as it is, the row's own part of it included: a component of few
rows, or of many columns, never lets go of them. Here a row is weighed against each component without it, by the
evidence of rows of known components. What no transfer raises is where a start, or a proposal, goes on from.

Only rows that stand near another component, or are much of their own, are weighed exactly.

`Partitions` alternates random changes of a partition with such transfers. A partition is judged by the evidence of rows
and labels, in closed form. Where transfers are a compiled loop, hundreds of partitions cost what a few steps of all
responsibilities cost, and so a search goes further from an optimum than a single change of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from skvbem.emissions import Emission
from skvbem.emissions.base import from_outside
from skvbem.families.base import ConjugateFamily
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.optima.tuning import TUNING


class Transfers:
    """Transfers of distinct rows between components.

    Parameters
    ----------
    emission : Emission
    prior : ConjugateFamily
        Of the emission, its hyperparameters known.
    rows : DistinctRows
    natural : ndarray of shape (n_cells,)
        Natural parameters of the emission, under which what is missing is completed.
    n_components : int
    """

    def __init__(
        self, emission: Emission, prior: ConjugateFamily, rows: DistinctRows, natural: np.ndarray, n_components: int
    ):
        self.emission, self.prior, self.rows, self.natural = emission, prior, rows, natural
        component = emission.component_of_cell(n_components)
        self.cells = np.stack([np.flatnonzero(component == k) for k in range(n_components)])
        self._is_of_component = component[np.flatnonzero((component == 0) | (component < 0))] == 0
        self.among = np.arange(n_components)

    def best_labels(self, labels: np.ndarray, statistics: np.ndarray) -> np.ndarray:
        """Labels (n_rows,) that no transfer of a weighed row makes more probable.

        Parameters
        ----------
        labels : ndarray of int, shape (n_rows,)
        statistics : ndarray of shape (n_cells,)
            Of the emission, of rows with these labels.
        """
        labels, statistics, weight = labels.copy(), statistics.copy(), self.rows.weight
        counts = np.bincount(labels, weight, len(self.among))
        for _ in range(TUNING.n_sweeps):
            which, into = self._likely(labels, statistics, counts)
            of_rows = self._of_rows(which)
            evidence = float(self.prior.log_evidence(statistics))
            gains = self._gains(which, into, labels, statistics, counts, of_rows) - evidence
            n_moved = 0
            for at in np.argsort(-gains, kind="stable").tolist():
                one, row, there, gain = np.array([at]), which[at], into[at], gains[at]
                if gain <= TUNING.min_gain:
                    break
                if n_moved:  # what a row gains hangs on those that moved before it
                    one_gain = self._gains(which[one], into[one], labels, statistics, counts, of_rows[one])
                    gain = one_gain[0] - evidence
                if gain > TUNING.min_gain:
                    evidence += gain - self._gain_of_counts(weight[row], counts[labels[row]], counts[there])
                    self._move(statistics[:, None], of_rows[one], labels[[row]], into[one])
                    counts[labels[row]] -= weight[row]
                    counts[there] += weight[row]
                    labels[row] = there
                    n_moved += 1
            if not n_moved:
                break
        return labels

    def _likely(self, labels: np.ndarray, statistics: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows whose transfer may gain most, and where to, as far as is seen without taking them out."""
        posterior, which = self.prior + statistics, np.arange(len(labels))
        if len(which) > TUNING.n_asked:  # predictive densities are dear, and few rows are near another component
            step = self.emission.step(posterior.expected_natural(), self.rows.blocks[0])
            gain, _ = self._gains_as_they_are(self._of_blocks(step.log_likelihood, which), labels, counts)
            which = np.sort(np.argsort(-gain, kind="stable")[: TUNING.n_asked])
        logs = self._of_blocks(lambda block: self.emission.log_predictive(block, posterior), which)
        gain, into = self._gains_as_they_are(logs, labels[which], counts)
        first = np.argsort(-gain, kind="stable")[: TUNING.n_weighed]
        first = first[gain[first] > -np.inf]  # a known label leaves no other component
        return which[first], into[first]

    def _gains_as_they_are(
        self, logs: np.ndarray, labels: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gains of rows in the next best component, by log densities (n, n_components), nats, and that component."""
        logs = np.where(np.isnan(logs), -np.inf, logs + np.log(counts + 1.0))
        at = np.arange(len(labels))
        mine = logs[at, labels] - self.cells.shape[1] / np.maximum(counts, 1.0)[labels]
        logs[at, labels] = -np.inf
        into = logs.argmax(axis=1)
        there = logs[at, into]
        return np.where(there > -np.inf, there - mine, -np.inf), into

    def _of_blocks(self, of_block: Callable[[Any], np.ndarray], which: np.ndarray) -> np.ndarray:
        """Values (n, ...) of a function of blocks at some rows, in their order."""
        parts = []
        with np.errstate(invalid="ignore"):  # where rounding leaves no spread, no row is likely
            for block, at in zip(self.rows.blocks, self.rows.slices):
                mine = which[(which >= at.start) & (which < at.stop)]
                if len(mine):
                    parts.append(of_block(block if len(mine) == len(block) else block[mine - at.start]))
        return np.concatenate(parts)

    def _of_rows(self, which: np.ndarray) -> np.ndarray:
        """Statistics of rows in each component, times their weights, (n, n_components, n_own)."""
        step = self.emission.step(self.natural, self.rows.blocks[0])
        of_rows = np.empty((len(which), *self.cells.shape))
        for block, at in zip(self.rows.blocks, self.rows.slices):
            mine = np.flatnonzero((which >= at.start) & (which < at.stop))
            if len(mine):
                of_rows[mine] = step.of_rows(block[which[mine] - at.start])[..., self._is_of_component]
        return of_rows * self.rows.weight[which, None, None]

    def _gains(self, which, into, labels, statistics, counts, of_rows) -> np.ndarray:
        """The evidence of rows after the transfer of one of them, and what their counts add to it, (n,), nats."""
        lanes = np.repeat(statistics[:, None], len(which), axis=1)
        self._move(lanes, of_rows, labels[which], into)
        count_gain = self._gain_of_counts(self.rows.weight[which], counts[labels[which]], counts[into])
        with np.errstate(invalid="ignore"):  # where rounding leaves no spread, a transfer gains nothing
            evidence = self.prior.log_evidence(lanes)
        return np.where(np.isnan(evidence), -np.inf, evidence + count_gain)

    @staticmethod
    def _gain_of_counts(weight, left, joined):
        """Gain of the labels, nats, where so much leaves one count and joins another: every partition is as likely."""
        gain = gammaln(np.maximum(left - weight, 0.0) + 1.0) - gammaln(left + 1.0)
        return gain + gammaln(joined + weight + 1.0) - gammaln(joined + 1.0)

    def _move(self, lanes: np.ndarray, of_rows: np.ndarray, out_of: np.ndarray, into: np.ndarray) -> None:
        """Take a row out of a component and into another in each of lanes (n_cells, n)."""
        at = np.arange(len(into))
        lanes[self.cells[out_of].T, at] -= of_rows[at, out_of].T
        lanes[self.cells[into].T, at] += of_rows[at, into].T


class Partitions:
    """Hard-assignment local search: random changes of a partition alternate with transfers of single rows.

    Parameters
    ----------
    emission : Emission
        Of rows without labels.
    blocks : sequence of Table
        The rows.
    rows : DistinctRows
    prior : ConjugateFamily
        Of the emission, its hyperparameters known.
    n_components, n_levels : int
        Components, and how many of them labels name: these keep their places, and rows with a label their label.
    """

    def __init__(
        self, emission: Any, blocks: Sequence[Any], rows: DistinctRows, prior: Any, n_components: int, n_levels: int
    ):
        self.emission, self.blocks, self.rows, self.prior = emission, blocks, rows, prior
        self.n_components, self.n_levels = n_components, n_levels
        free = np.flatnonzero(~rows.is_labeled)
        self.order = free[np.argsort(rows.hashes[free], kind="stable")]

    def transferred(self, labels: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Labels that no transfer makes more probable, and their evidence; None where no swift way finds them."""
        if from_outside(self.emission):
            return None
        return self.emission.transferred(self.blocks, self.rows.weight, self.prior, self.order, labels)

    def searched(
        self, labels: np.ndarray, pairs: Sequence[tuple[int, int]], n: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Labels that so many searches lead to, each begun at the labels given; none where transfers are not swift.

        The first change of a search is kept, the others if they raise the evidence.

        Parameters
        ----------
        labels : ndarray of int, shape (n_rows,)
        pairs : sequence of tuple of int
            Components that make room at first, and those that they are joined into.
        n : int
        rng : numpy.random.Generator
        """
        partitions: list[np.ndarray] = []
        for _ in range(n):
            best = self.transferred(self._changed(labels, *pairs[int(rng.integers(len(pairs)))], rng))
            if best is None:
                break
            for _ in range(TUNING.n_of_kind - 1):
                other = self.transferred(self._changed(best[0], *self._any_pair(rng), rng))
                if other is not None and other[1] > best[1]:
                    best = other
            partitions.append(best[0])
        return partitions

    def _any_pair(self, rng: np.random.Generator) -> tuple[int, int]:
        gone = int(rng.integers(self.n_levels, self.n_components))
        return gone, (gone + int(rng.integers(1, self.n_components))) % self.n_components

    def _changed(self, labels: np.ndarray, gone: int, into: int, rng: np.random.Generator) -> np.ndarray:
        """Labels where a component is joined into another, and rows near one, of all or of its own, have its place."""
        labels = np.where(labels == gone, into, labels)
        near, row = self.rows.near_one(1, max(len(self.rows) // 4, 2), rng)
        if rng.random() < 0.5:
            near = near & (labels == labels[row])
        labels[near & ~self.rows.is_labeled] = gone
        return labels
