r"""Mixtures: :math:`p(y, x = k \mid \theta) = \pi_k\, p(y \mid k, \theta)`, for any emission.

The component of a row is all that is hidden in it, so that the E step is exact given the expected parameters
[Beal §2.4.1]: :math:`q(x_i = k) \propto \exp(\langle\ln\pi_k\rangle + \langle\ln p(y_i \mid k, \theta)\rangle)`.
What an emission hides further, such as missing cells of a Gaussian row, it sums out itself.

Statistics are flat: those of the weights first, then those of the emission. Rows are in memory, or in blocks that come
again for every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from scipy.special import softmax

from skvbem._kernels import _mixture
from skvbem.emissions import Emission
from skvbem.emissions.base import Step, condensed, relabeled, start_natural
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.models.base import Expectation
from skvbem.models.labels.distinct_rows import MAX_DISTINCT_ROWS, DistinctRows
from skvbem.models.labels.model import EmissionAscent, LabelModel, symmetric_divergences
from skvbem.models.mixture.weights import Weights
from skvbem.models.partial_sums import added, sums_of_parts


@dataclass(frozen=True, eq=False)
class MixtureData:
    """Rows in memory, as a mixture takes them.

    Parameters
    ----------
    table : Table
        As the emission prepared it, rows in the order in which blocks cost least.
    weight : ndarray of shape (n_rows,)
        How often each row counts; 0 for a row without any observed cell, which says nothing of its component.
    total_weight : float
        The n of every score, of all rows.
    has_whole_weights : bool
    row_hashes : callable or None
        Numbers of a slice of rows, equal for equal rows alone, (n_rows,) of uint64.
    """

    table: Any
    weight: np.ndarray
    total_weight: float
    has_whole_weights: bool = True
    row_hashes: Callable[[slice], np.ndarray] | None = None
    _for_draws: list[MixtureData] = field(default_factory=list, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.weight)

    def for_draws(self, emission: Emission) -> MixtureData:
        """Distinct rows that count, in an order that their values decide; one by one where cells of them are drawn.

        What is drawn for them row after row does not hang on the order in which rows were given. Rows without hashes
        stay in their order.
        """
        if not self._for_draws:
            self._for_draws.append(self._sorted_for_draws(emission))
        return self._for_draws[0]

    def _sorted_for_draws(self, emission: Emission) -> MixtureData:
        distinct = self
        if self.row_hashes is not None:
            _, first, which = np.unique(self.row_hashes(slice(None)), return_index=True, return_inverse=True)
            weight = np.bincount(which, weights=self.weight, minlength=len(first))
            kept = np.flatnonzero(weight)
            cheapest = emission.row_order(self.table[first[kept]])
            kept = kept if cheapest is None else kept[cheapest]
            distinct = replace(self, table=self.table[first[kept]], weight=weight[kept], row_hashes=None)
        if not emission.is_conjugate(distinct.table):
            distinct = distinct.one_by_one
        distinct._for_draws.append(distinct)
        return distinct

    @cached_property
    def one_by_one(self) -> MixtureData:
        """Rows of whole weights repeated, those of weight 0 left out."""
        if (self.weight == 1.0).all():
            return self
        rows = np.repeat(np.arange(len(self)), self.weight.astype(np.int64))
        return replace(self, table=self.table[rows], weight=np.ones(len(rows)))

    def chunks(self) -> Iterator[MixtureData]:
        """The rows, for a pass over all of them: one chunk."""
        yield self

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        for at in range(0, len(self), size):
            yield self.table[at : at + size], self.weight[at : at + size]


@dataclass(frozen=True, eq=False)
class MixtureBlocks:
    """Rows of which one chunk at a time is in memory.

    Parameters
    ----------
    table : Table
        Without rows; what the emission must know of all.
    source : iterable of MixtureData
        The chunks, the same whenever it is iterated.
    n_rows : int
    total_weight : float
    has_whole_weights : bool
    """

    table: Any
    source: Iterable[MixtureData]
    n_rows: int
    total_weight: float
    has_whole_weights: bool = True

    #: Scores cannot look at rows one by one.
    rows_are_in_memory = False

    def __len__(self) -> int:
        return self.n_rows

    def chunks(self) -> Iterator[MixtureData]:
        """The rows, for a pass over all of them."""
        return iter(self.source)

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        for chunk in self.chunks():
            yield from chunk.blocks(size)


# Rows times components times restarts below which threads cost more than they bring.
_WORTH_THREADS = 2**18


class Mixture(LabelModel):
    """A mixture with its prior.

    Parameters
    ----------
    emission : Emission
    weights : Weights
        Prior of the components' weights.
    emission_prior : ConjugateFamily
    """

    labels = "components"

    def __init__(self, emission: Emission, weights: Weights, emission_prior: ConjugateFamily):
        self.weights = weights
        cells = emission.component_of_cell(weights.n_components)
        prior = Product((weights.prior, emission_prior), (weights.n_cells, len(cells)))
        super().__init__(emission, weights.n_components, prior)

    def compile(
        self,
        table: Any,
        weight: np.ndarray | None = None,
        observed: np.ndarray | None = None,
        row_hashes: Callable[[slice], np.ndarray] | None = None,
    ) -> MixtureData:
        """Rows made ready for many E steps.

        Parameters
        ----------
        table : Table
            As the emission prepared it.
        weight : ndarray of shape (n_rows,), optional
            How often each row counts.
        observed : ndarray of bool, shape (n_rows,), optional
            Whether a row has any observed cell.
        row_hashes : callable, optional
            Numbers of a slice of rows, equal for equal rows alone: what starts around rows need.
        """
        once = np.broadcast_to(1.0, len(table))
        given = once if weight is None else np.asarray(weight, dtype=float)
        effective = given if observed is None else np.where(observed, given, 0.0)
        whole = weight is None or bool((given == np.floor(given)).all())
        return MixtureData(table, effective, float(given.sum()), whole, row_hashes)

    def expect(self, natural: np.ndarray, data: MixtureData | MixtureBlocks, n_threads: int = 1) -> Expectation:
        """The E step [Beal (2.54)] under natural parameters (n_cells, n_lanes) that need not be normalized."""
        log_weights, step = self.log_weights(natural), self.step(natural, data)
        n_lanes = natural.shape[1]
        size = self.emission.block_rows(self.n_components, n_lanes)
        sums = (step.zeros(), np.zeros(n_lanes), np.zeros((n_lanes, self.n_components)))
        for chunk in data.chunks():
            for other in self._sums(chunk, log_weights, step, size, n_threads):
                sums = added(sums, other)
        total, log_z, counts = sums
        of_emission = step.statistics(total).reshape(-1, n_lanes)
        statistics = np.concatenate([self.weights.statistics(counts.T), of_emission])
        return Expectation(statistics, log_z, expansion=step.expansion(total))

    def _sums(self, data: MixtureData, log_weights: np.ndarray, step: Step, size: int, n_threads: int) -> list:
        """Sums of the emission, of ln Z and of responsibilities, of consecutive parts of the rows."""
        n_lanes = len(log_weights)

        def sums(part: Sequence[int]) -> tuple[Any, np.ndarray, np.ndarray]:
            total, log_z, counts = step.zeros(), np.zeros(n_lanes), np.zeros((n_lanes, self.n_components))
            for at in part:
                rows = slice(at, at + size)
                block = data.table[rows]
                weighted = self._weighted(step, block, log_weights, data.weight[rows], log_z)
                counts += weighted.sum(axis=-1)
                step.add(block, weighted.swapaxes(-1, -2), total)
            return total, log_z, counts

        worth = len(data) * self.n_components * n_lanes > _WORTH_THREADS
        return sums_of_parts(sums, range(0, len(data), size), n_threads if worth else 1)

    @staticmethod
    def _weighted(step: Step, block: Any, log_weights: np.ndarray, weight: np.ndarray, log_z: np.ndarray) -> np.ndarray:
        """Responsibilities times weights, (n_lanes, n_components, n_rows); ln Z of the block is added."""
        responsibilities = np.ascontiguousarray(step.log_likelihood(block).swapaxes(-1, -2))
        _mixture.responsibilities(log_weights, np.ascontiguousarray(weight), responsibilities, log_z)
        return responsibilities

    def log_weights(self, natural: np.ndarray) -> np.ndarray:
        """(Expected) log weights of components at natural parameters (n_cells, n_lanes), (n_lanes, n_components)."""
        return np.ascontiguousarray(self.weights.log_weights(self.prior.split(natural)[0]).T)

    def log_joint(self, natural: np.ndarray, table: Any) -> np.ndarray:
        """ln of pi_k p(row | k) under natural parameters (n_cells,) of one lane, nats, (n_rows, n_components)."""
        of_weights, of_emission = self.prior.split(natural)
        log_likelihood = self.emission.expected_log_likelihood(table, of_emission)
        return log_likelihood + self.weights.log_weights(of_weights[:, None])[:, 0]

    def divergences(self, natural: np.ndarray, data: MixtureData | MixtureBlocks) -> np.ndarray:
        """How unlike the rows find their components, (n_components, n_components), nats a row, 0 on the diagonal.

        See `symmetric_divergences`; NaN for components without any. No unit of measure enters.

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
        data : MixtureData or MixtureBlocks
        """
        log_weights, step = self.log_weights(natural[:, None]), self.step(natural[:, None], data)
        n = self.n_components

        def responsibilities_and_logs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for block, weight in data.blocks(self.emission.block_rows(n)):
                logs = np.array(step.log_likelihood(block)[0].T)
                yield self._weighted(step, block, log_weights, weight, np.zeros(1))[0], logs

        return symmetric_divergences(n, responsibilities_and_logs())

    def statistics_of(
        self, responsibilities: np.ndarray | Iterable[np.ndarray], data: MixtureData | MixtureBlocks
    ) -> np.ndarray:
        """Statistics (n_cells,) of responsibilities (n_rows, n_components), in the order of the rows of the data.

        They may come in pieces, none of which goes on into another chunk of the data. Missing cells that have
        statistics are taken as they are expected under the prior.
        """
        whole = responsibilities if isinstance(responsibilities, np.ndarray) else None
        pieces = iter(responsibilities)
        of_emission = start_natural(self.emission, self.prior.blocks[1])
        step = self.emission.step(of_emission, data.table)
        total, counts, n_before = step.zeros(), np.zeros(self.n_components), 0
        size = self.emission.block_rows(self.n_components)
        for chunk in data.chunks():
            first = 0
            while first < len(chunk):
                piece = next(pieces) if whole is None else whole[n_before : n_before + len(chunk)]
                for at in range(0, len(piece), size):
                    rows = slice(first + at, first + min(at + size, len(piece)))
                    weighted = piece[at : at + size] * chunk.weight[rows, None]
                    counts = np.vstack([counts, weighted]).sum(axis=0)  # row after row, wherever blocks end
                    step.add(chunk.table[rows], weighted, total)
                first += len(piece)
            n_before += len(chunk)
        return self.started(np.concatenate([self.weights.statistics(counts[:, None])[:, 0], step.statistics(total)]))

    def condensed(self, data: MixtureData | MixtureBlocks) -> MixtureData | MixtureBlocks:
        """Few rows in place of all where one component is all there is, and its bound the same with them."""
        few = condensed(self.emission, data.blocks(self.emission.block_rows(1))) if self.n_components == 1 else None
        if few is None or len(few[0]) >= len(data):
            return data
        table, weight = few
        return MixtureData(
            table, weight, data.total_weight, False, lambda rows: np.arange(len(weight), dtype=np.uint64)[rows]
        )

    def hashed_rows(self, data: MixtureData | MixtureBlocks) -> MixtureData | MixtureBlocks:
        """The rows themselves."""
        return data

    def expected_rows(self, natural: np.ndarray, data: MixtureData | MixtureBlocks, rows: DistinctRows) -> np.ndarray:
        """Expected rows of each component at distinct rows, (n_components, n_rows): equal rows are of one kind."""
        parts = [softmax(self.log_joint(natural, block).T, axis=0) for block in rows.blocks]
        return np.concatenate(parts, axis=1) * rows.weight

    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray) -> np.ndarray:
        """Statistics of the weights where new components get fractions of those there are."""
        counts = self.weights.counts(self.prior.split(statistics)[0])
        return self.weights.statistics((fractions @ counts)[:, None])[:, 0]

    def on(self, rows: DistinctRows, data: MixtureData | MixtureBlocks) -> MixtureData | MixtureBlocks:
        """Distinct rows in place of all, counting as much together."""
        parts = [
            MixtureData(block, rows.weight[at], float(rows.weight[at].sum()), False, rows.hashes[at].__getitem__)
            for block, at in zip(rows.blocks, rows.slices)
        ]
        if len(parts) == 1:
            return replace(parts[0], total_weight=data.total_weight)
        return MixtureBlocks(data.table, parts, len(rows), data.total_weight, False)

    def preferred_order(self, statistics: np.ndarray) -> np.ndarray | None:
        """The largest component first where weights should fall, and no labels are known."""
        if not self.weights.by_weight or self.emission.n_levels:
            return None
        return np.argsort(-self.weights.counts(self.prior.split(statistics)[0]), kind="stable")

    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the components in another order."""
        of_weights, of_emission = self.prior.split(statistics)
        component = self.emission.component_of_cell(self.n_components)
        return np.concatenate([self.weights.relabeled(of_weights, order), relabeled(of_emission, component, order)])


class MixtureAscent(EmissionAscent[Mixture]):
    """Full steps of one mixture on its data."""

    label = "component"

    def on(self, rows: DistinctRows) -> MixtureAscent:
        """Full steps of the mixture on distinct rows of the data, which count as much together."""
        data = cast(MixtureData | MixtureBlocks, self.data)
        fewer = type(self)(self.model, self.model.on(rows, data), self.form, self.n_threads)
        fewer.is_sample = rows.is_sample
        fewer.rows = rows if len(rows) <= MAX_DISTINCT_ROWS else self.rows
        return fewer
