"""Points to go on from that keep most of a fit and change a part of it: components divided, joined and dropped.

Each component is divided by itself: its rows, as far as they are its own, are shared out between two halves of it that
compete for them, for a few steps (the partial EM of Ueda et al. 2000). Halves of all components are found side by side,
as two models of as many components as there are: the first halves, and the second ones. What a division gains, less
what it costs to join two other components or to drop one, ranks the proposals.

All is found on distinct rows, few if there are many, as seeds are: it does not depend on the order of rows.

Components that known labels name keep their places, and their rows: none of them makes room, and the half that stays is
that of the rows with the label.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from scipy.special import softmax, xlogy

from skvbem._lazy import cached_property
from skvbem.emissions.base import Step
from skvbem.emissions.known_labels import without_labels
from skvbem.emissions.softmax import prior_without_covariates
from skvbem.models.labels.distinct_rows import DistinctRows, draws, with_known_labels
from skvbem.models.labels.model import LabelModel
from skvbem.optima import ties
from skvbem.optima.transfers import Partitions, Transfers
from skvbem.optima.tuning import TUNING


class Halves(NamedTuple):
    """Two halves of each of some sets of rows, as often as was tried.

    Parameters
    ----------
    gain : ndarray of shape (n_tries, n_components)
        What the rows of a set gain by its division, nats, before its price.
    counts : ndarray of shape (n_tries, 2, n_components)
        Rows of each half.
    statistics : ndarray of shape (n_tries, 2, n_components, n_own)
        Of the emission, of each half.
    are_spikes : ndarray of bool, shape (n_tries, n_components)
        By maximum likelihood, a half has no width, and gains as much as one likes.
    """

    gain: np.ndarray
    counts: np.ndarray
    statistics: np.ndarray
    are_spikes: np.ndarray


class Recombinations:
    """Proposals that make room for a component, by a join or a drop, and fill it with half of another.

    Parameters
    ----------
    model : LabelModel
    rows : DistinctRows
    statistics : ndarray of shape (n_cells,)
        Of a fit.
    natural : ndarray of shape (n_cells,)
        Natural parameters there.
    expected_rows : ndarray of shape (n_components, n_rows)
        Expected rows of each component at each distinct row.
    seed : int
    smoothing : float
        The share of all rows that proposals mix into every component: what they rule out, maximum likelihood never
        finds.
    """

    def __init__(
        self,
        model: LabelModel,
        rows: DistinctRows,
        statistics: np.ndarray,
        natural: np.ndarray,
        expected_rows: np.ndarray,
        seed: int,
        smoothing: float = 0.0,
    ):
        self.smoothing, self._joins = smoothing, cast(list[tuple[float, int, int]] | None, None)
        self.model, self.rows, self.statistics, self.expected_rows = model, rows, statistics, expected_rows
        self.n, self.counts = model.n_components, expected_rows.sum(axis=1)
        self._emission, self._blocks = without_labels(model.emission, rows.blocks)
        self.n_levels = model.emission.n_levels
        first, self._n_lanes, self._step = model.first_emission_cell, 0, cast(Step, None)
        self.natural = natural[first:]
        self._rng = np.random.default_rng(seed)
        self.hyperparameters = model.prior.blocks[-1].hyperparameters(self.natural)
        prior = model.prior.blocks[-1].given_hyperparameters(self.hyperparameters)
        self.prior = prior_without_covariates(model.emission, prior)  # whose maxima are dear, and say little of rows
        component = model.emission.component_of_cell(self.n)
        self.cells = np.stack([np.flatnonzero(component == k) for k in range(self.n)])
        self.shared_cells = np.flatnonzero(component < 0)
        self.whole = self._statistics(expected_rows[None])[:, 0]
        self.logs = self._log_likelihoods(self.whole[:, None])[0]
        np.maximum(self.logs, TUNING.lowest, out=self.logs)

    @cached_property
    def has_ties(self) -> bool:
        """True if divisions by tied values are tried: where priors keep components of such rows from being spikes."""
        return not self.smoothing and ties.matter(self.prior, self.rows)

    # Sums over the distinct rows ------------------------------------------------------------------------------------

    def _statistics(self, expected_rows: np.ndarray) -> np.ndarray:
        """Statistics of the emission, (n_cells, n_lanes), of expected rows (n_lanes, n_components, n_rows)."""
        if self._n_lanes != len(expected_rows):  # what is missing is completed as at the fit
            self._n_lanes = len(expected_rows)
            natural = np.repeat(self.natural[:, None], len(expected_rows), axis=1)
            self._step = self._emission.step(natural, self._blocks[0])
        total = self._step.zeros()
        for block, at in zip(self._blocks, self.rows.slices):
            self._step.add(block, expected_rows[..., at].swapaxes(-1, -2), total)
        return self._step.statistics(total)

    def _log_likelihoods(self, statistics: np.ndarray) -> np.ndarray:
        """Expected log likelihoods (n_lanes, n_components, n_rows) after statistics; later sums are of these lanes."""
        natural = np.ascontiguousarray((self.prior + statistics).expected_natural())
        self._step = self._emission.step(natural, self._blocks[0])
        parts = [self._step.log_likelihood(block).swapaxes(-1, -2) for block in self._blocks]
        return np.concatenate(parts, axis=-1)

    # Divisions ------------------------------------------------------------------------------------------------------

    def halves(self, sets: np.ndarray) -> Halves:
        """A few divisions of sets of rows, as many as components or a multiple of that, (n_sets, n_rows)."""
        lanes = sets.reshape(-1, self.n, sets.shape[-1])
        alone = self._log_likelihoods(self._statistics(lanes))
        n_early = TUNING.n_tries // 2  # that take one step alone: what an optimum far from others looks like at first
        tried = []
        for tries, n_steps in ((range(n_early), 1), (range(n_early, TUNING.n_tries), TUNING.n_steps_of_halves)):
            starts = [self._divided(sets, self._seeds(), bool(k % 2)) for k in tries]
            tried.append(self._rivals(sets, starts, n_steps))
        if self.has_ties:
            seeds = self._rng.integers(2**63, size=TUNING.n_tied_tries, dtype=np.uint64)
            tried.append(self._rivals(sets, [ties.tied_halves(self.rows, sets, seed, self._rng) for seed in seeds], 1))
        halves = Halves(*(np.concatenate(each) for each in zip(*tried)))
        return halves._replace(gain=halves.gain - (np.maximum(alone, TUNING.lowest) * lanes).sum(axis=-1).ravel())

    def _rivals(self, sets: np.ndarray, starts: list[np.ndarray], n_steps: int) -> Halves:
        """Divisions of sets after some steps in which their halves compete for rows; gains are log likelihoods."""
        settling = np.stack(starts)
        self._keep_labeled(settling, sets)
        shape, gain = (-1, self.n, sets.shape[-1]), np.zeros((len(starts), len(sets)))
        for _ in range(n_steps):
            logs = self._log_likelihoods(self._statistics(settling.reshape(shape))).reshape(settling.shape)
            counts = settling.sum(axis=-1, keepdims=True)
            np.maximum(logs, TUNING.lowest, out=logs)
            logs += np.log((counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 1.0))
            top = logs.max(axis=1, keepdims=True)
            np.exp(np.subtract(logs, top, out=logs), out=logs)
            both = logs.sum(axis=1, keepdims=True)
            np.multiply(sets, np.divide(logs, both, out=logs), out=settling)
            self._keep_labeled(settling, sets)
            gain = ((top + np.log(both))[:, 0] * sets).sum(axis=-1)
        lanes = self._statistics(settling.reshape(shape))
        half_statistics = np.moveaxis(lanes[self.cells], -1, 0).reshape(len(starts), 2, len(sets), -1)
        spikes = self.prior.are_spikes(lanes) if self.smoothing else None
        each = np.zeros((len(self.cells), lanes.shape[1]), dtype=bool) if spikes is None else spikes
        are_spikes = np.moveaxis(each, -1, 0).reshape(len(starts), 2, len(sets))
        return Halves(gain, settling.sum(axis=-1), half_statistics, np.asarray(are_spikes.any(axis=1)))

    def _keep_labeled(self, settling: np.ndarray, sets: np.ndarray) -> None:
        """Give rows with a known label to the first half, which stays in its place; (n_tries, 2, n_sets, n_rows)."""
        settling[:, 0, :, self.rows.is_labeled] = sets.T[self.rows.is_labeled][:, None]
        settling[:, 1, :, self.rows.is_labeled] = 0.0

    def _seeds(self) -> np.ndarray:
        return self._rng.integers(2**63, size=2, dtype=np.uint64)

    def _divided(self, sets: np.ndarray, seeds: np.ndarray, is_ball: bool) -> np.ndarray:
        """Shares (2, n_sets, n_rows) of the halves around two rows of each set, or of the rows near one and the rest.

        Two rows lie apart. The rows near one are as near as another is, any one: they may be few.
        """
        one, other = (draws(self.rows.hashes, seed) for seed in seeds)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.argmin(one / sets, axis=1)
            away = self.rows.squares_from(near)
            share = other / (sets if is_ball else sets * away)
            share[np.isnan(share)] = np.inf
            far = np.argmin(share, axis=1)
        limit = away[np.arange(len(sets)), far][:, None] if is_ball else self.rows.squares_from(far)
        first = away <= limit
        fraction = (1 - TUNING.elsewhere) * np.stack([first, ~first]) + TUNING.elsewhere / 2
        return fraction * sets

    # Room for a half ------------------------------------------------------------------------------------------------

    def joins(self) -> list[tuple[float, int, int]]:
        """Costs of joining the most alike pairs of components, nats: (cost, one, other), the least first."""
        if self._joins is None:
            self._joins = self._costs_of_joins()
        return self._joins

    def _costs_of_joins(self) -> list[tuple[float, int, int]]:
        one, other = np.tril_indices(self.n, -1)
        one, other = one[one >= self.n_levels], other[one >= self.n_levels]  # of two, the first may go
        if not len(one):
            return []
        across = self.expected_rows @ self.logs.T
        of_rows = np.diagonal(across)[:, None] - across  # what rows of one lose at another's parameters
        alike = np.minimum(of_rows[one, other], of_rows[other, one])
        most = min(TUNING.n_pairs_per_component * self.n, TUNING.n_pairs, len(one))
        near = np.sort(np.argsort(alike, kind="stable")[:most])
        one, other = one[near], other[near]
        joined = np.repeat(self.whole[:, None], len(one), axis=1)
        lanes = np.arange(len(one))
        joined[self.cells[one].T, lanes] += self.whole[self.cells[other].T]
        joined[self.cells[other].T, lanes] = 0.0
        cost = float(self.prior.log_evidence(self.whole)) - self.prior.log_evidence(joined)
        both, n_both = self.expected_rows[one] + self.expected_rows[other], self.counts[one] + self.counts[other]
        entropies = _entropy(self.expected_rows)
        cost += entropies[one] + entropies[other] - _entropy(both)
        count_terms = xlogy(self.counts, self.counts)
        cost -= xlogy(n_both, n_both) - count_terms[one] - count_terms[other]
        return sorted(zip(cost.tolist(), one.tolist(), other.tolist()))

    def drops(self) -> list[tuple[float, int]]:
        """Costs of dropping components, whose rows go to the next best, nats: (cost, component), the least first."""
        joint = self._log_joint()
        best_two = np.partition(joint, self.n - 2, axis=0)[-2:]
        next_best = np.where(joint == best_two[1], best_two[0], best_two[1])
        cost = (self.expected_rows * (joint - next_best)).sum(axis=1)
        return sorted(zip(cost[self.n_levels :].tolist(), range(self.n_levels, self.n)))

    # Proposals ------------------------------------------------------------------------------------------------------

    def proposals(
        self, most: int, n_alike: int = TUNING.n_seldom, *, with_unions: bool = True
    ) -> tuple[list[str], np.ndarray]:
        """Kinds and statistics (n_cells, n) of at most so many proposals, the most promising first.

        At most `n_alike` have the same halves, or make the same room for one. `with_unions` two components are divided
        anew, too, and up to half of all may be spikes.
        """
        joins = [(cost, *self._stay_and_go(one, other)) for cost, one, other in self.joins()]
        if not joins:
            return [], np.empty((len(self.statistics), 0))
        again = joins[: self.n] if with_unions else []
        unions = [self.expected_rows[b] + self.expected_rows[c] for _, b, c in (again * self.n)[: self.n]]
        halves = self.halves(np.concatenate([self.expected_rows, *(each[None] for each in unions)]))
        large = np.flatnonzero(self.counts >= TUNING.min_rows).tolist()
        empty = np.flatnonzero(self.counts < TUNING.empty).tolist()
        rooms: list[tuple[float, int, int | None]] = [(cost, c, b) for cost, b, c in joins if not {b, c} & set(empty)]
        rooms += [(cost, c, None) for cost, c in self.drops() if c not in empty[1:]]
        ranked = [
            (halves.gain[t, a] - cost, a, t, gone, into)
            for a in large
            for t in range(len(halves.gain))
            for cost, gone, into in rooms
            if a not in (gone, into)
        ]
        ranked += [
            (halves.gain[t, self.n + k] - cost, self.n + k, t, c, b)
            for k, (cost, b, c) in enumerate(again)
            if self.counts[b] + self.counts[c] >= TUNING.min_rows
            for t in range(len(halves.gain))
        ]
        ranked.sort(key=lambda each: -each[0])
        kinds, statistics_of_each = [], []
        met: dict[tuple, int] = {}
        n_spikes, n_spikes_at_most = 0, most // 2 if with_unions else 0
        for _, a, t, gone, into in ranked:
            alike = ("divided", a, t), ("room", gone, into)
            if any(met.get(each, 0) == n_alike for each in alike):
                continue
            if halves.are_spikes[t, a]:  # few of which grow to a solution
                if n_spikes == n_spikes_at_most:
                    continue
                n_spikes += 1
            for each in alike:
                met[each] = met.get(each, 0) + 1
            kinds.append("divide anew" if a >= self.n else "split, drop" if into is None else "split, join")
            half_statistics = halves.counts[t, :, a], halves.statistics[t, :, a]
            divided = into if into is not None and a >= self.n else a
            statistics_of_each.append(self._recombined(*half_statistics, divided, gone, into))
            if len(statistics_of_each) == most:
                break
        return kinds, np.stack(statistics_of_each, axis=1) if statistics_of_each else np.empty(
            (len(self.statistics), 0)
        )

    def filled(self, most: int) -> tuple[list[str], np.ndarray]:
        """Kinds and statistics (n_cells, n) of proposals that fill empty components with halves of others.

        As many as are empty, and half as many, and so on; where one is filled, at most so many divisions are tried.
        These are the best of several times as many as elsewhere: a component of a hundredth of another is hard to hit.
        """
        empty = np.flatnonzero(self.counts < TUNING.empty)
        empty = empty[empty >= self.n_levels].tolist()
        tried = [self.halves(self.expected_rows) for _ in range(TUNING.n_fills)]
        halves = Halves(*(np.concatenate(each) for each in zip(*tried)))
        best = np.where(self.counts < TUNING.min_rows, -np.inf, halves.gain.max(axis=0))
        order = np.argsort(-best, kind="stable")[: np.isfinite(best).sum()].tolist()
        sets, n_filled = [[a] for a in order[:most]], min(len(empty), len(order))
        while n_filled > 1:
            sets.append(order[:n_filled])
            n_filled //= 2
        each = []
        for divided in sets:
            emission_statistics, expected_rows = self.whole.copy(), np.eye(self.n)
            for a, gone in zip(divided, empty):
                t = int(halves.gain[:, a].argmax())
                counts = halves.counts[t, :, a]
                emission_statistics[self.cells[a]], emission_statistics[self.cells[gone]] = halves.statistics[t, :, a]
                expected_rows[gone] = expected_rows[a] * (counts[1] / counts.sum())
                expected_rows[a] *= counts[0] / counts.sum()
            each.append(self._smoothed(emission_statistics, expected_rows))
        if not each:
            return [], np.empty((len(self.statistics), 0))
        return ["split"] * len(each), np.stack(each, axis=1)

    def emptied(self, n_joins: int, n_drops: int) -> tuple[list[str], np.ndarray]:
        """Kinds, and expected rows (n, n_components, n_rows) with one component less that has any."""
        pairs = [self._stay_and_go(one, other)[::-1] for _, one, other in self.joins()[:n_joins]]
        gone = [(k, None) for _, k in self.drops() if self.counts[k] >= TUNING.empty][:n_drops]
        expected_rows = np.repeat(self.expected_rows[None], len(pairs) + len(gone), axis=0)
        for each, (k, into) in zip(expected_rows, [*pairs, *gone]):
            each[k] = 0.0
            if into is not None:
                each[into] += self.expected_rows[k]
                continue
            joint = self._log_joint()
            joint[k] = -np.inf
            each += self.expected_rows[k] * softmax(joint, axis=0)
        return ["join"] * len(pairs) + ["drop"] * len(gone), expected_rows

    def _stay_and_go(self, one: int, other: int) -> tuple[int, int]:
        """Of two components to be joined the one that stays in its place, and the one that makes room."""
        return (one, other) if other >= self.n_levels else (other, one)

    def _log_joint(self) -> np.ndarray:
        return self.logs + np.log(np.maximum(self.counts, 1e-10))[:, None]

    def around_rows(self, n: int, fewest: int, rng: np.random.Generator) -> np.ndarray:
        """Expected rows (n, n_components, n_rows) where the rows nearest to one are a component, two others joined.

        Parameters
        ----------
        n : int
        fewest : int
            Distinct rows that such a component has at least; a quarter of them at most.
        rng : numpy.random.Generator
        """
        n_rows, joins = len(self.rows), self.joins()[: TUNING.n_seldom]
        if not joins:
            return np.empty((0, *self.expected_rows.shape))
        fewest = min(fewest, n_rows)
        most = max(n_rows // 4, fewest + 1)
        expected_rows = np.repeat(self.expected_rows[None], n, axis=0)
        for each in expected_rows:
            near = self.rows.near_one(fewest, most, rng)[0]
            _, gone, into = joins[int(rng.integers(len(joins)))]
            each[into] += each[gone]
            each[gone] = 0.0
            each[:, near] = 0.0
            each[gone, near] = self.rows.weight[near]
        return expected_rows

    def transferred(self, expected_rows: np.ndarray) -> np.ndarray:
        """Rows of one component each, (n_components, n_rows), that transfers lead to from expected rows."""
        labels = expected_rows.argmax(axis=0)
        improved = self._partitions.transferred(labels)
        if improved is not None:
            return self._of_labels(improved[0])
        transfers = Transfers(self.model.emission, self.prior, self.rows, self.natural, self.n)
        labels = transfers.best_labels(labels, self._statistics(self._of_labels(labels)[None])[:, 0])
        return self._of_labels(labels)

    def changed_and_transferred(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows of one component each, (n, n_components, n_rows), where rows were changed and transferred by turns.

        There are none where transfers are not swift.
        """
        pairs = [(gone, into) for _, gone, into in self.joins()[: TUNING.n_seldom]]
        labels = self.expected_rows.argmax(axis=0)
        partitions = self._partitions.searched(labels, pairs, n, rng) if pairs else []
        return np.array([self._of_labels(each) for each in partitions])

    @cached_property
    def _partitions(self) -> Partitions:
        return Partitions(self._emission, self._blocks, self.rows, self.prior, self.n, self.n_levels)

    def _of_labels(self, labels: np.ndarray) -> np.ndarray:
        return (labels == np.arange(self.n)[:, None]) * self.rows.weight

    def of_expected_rows(self, expected_rows: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, n) of expected rows (n, n_components, n_rows), a little of each in every component."""
        if not len(expected_rows):
            return np.empty((len(self.statistics), 0))
        expected_rows = with_known_labels(expected_rows, self.rows.labels)
        if self.smoothing:
            expected_rows = (1 - self.smoothing) * expected_rows + self.smoothing / self.n * self.rows.weight
        emission_statistics = self._statistics(expected_rows) + self.hyperparameters[:, None]
        share = self.expected_rows / self.rows.weight / np.maximum(self.counts, 1e-300)[:, None]
        label_statistics = [self.model.shared_out(self.statistics, each) for each in expected_rows @ share.T]
        return np.concatenate([np.stack(label_statistics, axis=1), emission_statistics])

    def _recombined(
        self, counts: np.ndarray, statistics: np.ndarray, divided: int, gone: int, into: int | None
    ) -> np.ndarray:
        """Statistics (n_cells,) with one component joined into another, or dropped, and its place taken by a half."""
        emission_statistics, expected_rows = self.whole.copy(), np.eye(self.n)
        if into is not None:
            emission_statistics[self.cells[into]] += emission_statistics[self.cells[gone]]
            expected_rows[into, gone] = 1.0
        emission_statistics[self.cells[divided]], emission_statistics[self.cells[gone]] = statistics
        expected_rows[gone] = expected_rows[divided] * (counts[1] / counts.sum())
        expected_rows[divided] *= counts[0] / counts.sum()
        return self._smoothed(emission_statistics, expected_rows)

    def _smoothed(self, emission_statistics: np.ndarray, expected_rows: np.ndarray) -> np.ndarray:
        """Statistics (n_cells,), a little of all in every component, of what each gets of those there were."""
        if s := self.smoothing:
            count = expected_rows @ self.counts
            total = self.whole[self.cells].sum(axis=0) / max(self.counts.sum(), 1e-300)
            emission_statistics[self.cells] = (1 - s) * emission_statistics[self.cells] + s * count[:, None] * total
            expected_rows = (1 - s) * expected_rows + s / self.n
        label_statistics = self.model.shared_out(self.statistics, expected_rows)
        return np.concatenate([label_statistics, emission_statistics + self.hyperparameters])


def _entropy(expected_rows: np.ndarray) -> np.ndarray:
    """-sum s ln s over rows, (n_components,)."""
    return -xlogy(expected_rows, expected_rows).sum(axis=-1)
