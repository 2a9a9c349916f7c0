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
from functools import partial
from typing import Any, Self, cast

import numpy as np
from scipy.special import softmax

from skvbem._kernels import _mixture
from skvbem._lazy import cached_property
from skvbem.blocks import Blocks, map_reduce, sections
from skvbem.emissions import Emission
from skvbem.emissions.base import Step, condensed, parts_of, relabeled, start_natural
from skvbem.emissions.outside import rows_last
from skvbem.emissions.softmax import membership_of
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.families.softmax_maximum import Design
from skvbem.families.softmax_regression import on_design
from skvbem.models.base import DataInParts, EStep, Expectation
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.models.labels.model import EmissionAscent, LabelModel, divergence_sums, symmetric_divergences
from skvbem.models.mixture.weights import Weights


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
    is_condensed : bool, default=False
        These few rows stand for many; see `Mixture.condensed`.
    """

    table: Any
    weight: np.ndarray
    total_weight: float
    has_whole_weights: bool = True
    row_hashes: Callable[[slice], np.ndarray] | None = None
    is_condensed: bool = False
    _for_draws: list[MixtureData] = field(default_factory=list, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.weight)

    def for_draws(self, emission: Emission) -> MixtureData:
        """Distinct rows that count, in an order that their values decide; one by one where cells of them are drawn.

        What is drawn for them row after row does not hang on the order in which rows were given. Rows without hashes
        stay in their order.
        """
        if self._for_draws:
            return self._for_draws[0]
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
        self._for_draws[:] = distinct._for_draws[:] = [distinct]
        return distinct

    @cached_property
    def one_by_one(self) -> MixtureData:
        """Rows of whole weights repeated, those of weight 0 left out."""
        if (self.weight == 1.0).all():
            return self
        rows = np.repeat(np.arange(len(self)), self.weight.astype(np.int64))
        return replace(self, table=self.table[rows], weight=np.ones(len(rows)))

    @property
    def parts(self) -> tuple[MixtureData]:
        """The rows as parts that are summed over: one."""
        return (self,)

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        for at in range(0, len(self), size):
            yield self.table[at : at + size], self.weight[at : at + size]


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
    weights: Weights

    def __init__(self, emission: Emission, weights: Weights, emission_prior: ConjugateFamily):
        self.weights = weights
        self.emission, self.n_components = emission, weights.n_components
        blocks = weights.prior, emission_prior
        self.prior = Product(blocks, tuple(len(block.coordinates) for block in blocks))

    def with_weights(self, weights: Weights) -> Self:
        """The mixture with another prior of its weights."""
        return type(self)(self.emission, weights, self.prior.blocks[1])

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

    def e_step(self, natural: np.ndarray, data: MixtureData | DataInParts, n_threads: int = 1) -> MixtureEStep:
        """The E step at natural parameters (n_cells, n_lanes) as a value: sums of a part, and the outcome of all."""
        return MixtureEStep(self, natural, n_threads, data.table)

    def log_joint(self, natural: np.ndarray, table: Any) -> np.ndarray:
        """ln of pi_k p(row | k) under natural parameters (n_cells,) of one lane, nats, (n_rows, n_components)."""
        weight_cells, emission_cells = self.prior.split(natural)
        log_likelihood = self.emission.expected_log_likelihood(table, emission_cells)
        return log_likelihood + self.weights.log_weights(weight_cells[:, None])[:, 0]

    def divergences(self, natural: np.ndarray, data: MixtureData | DataInParts) -> np.ndarray:
        """Divergences of components, (n_components, n_components), nats a row, 0 on the diagonal.

        See `symmetric_divergences`; NaN for components without any. No unit of measure enters.

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
        data : MixtureData or DataInParts
        """
        if self.n_components == 1:  # no pass over the rows
            return np.zeros((1, 1))
        return symmetric_divergences(*map_reduce(self.e_step(natural[:, None], data).divergence_sums, data.parts))

    def statistics_of(
        self, responsibilities: np.ndarray | Iterable[np.ndarray], data: MixtureData | DataInParts
    ) -> np.ndarray:
        """Statistics (n_cells,) of responsibilities (n_rows, n_components), in the order of the rows of the data.

        They may come in pieces, none of which goes on into another chunk of the data. Missing cells that have
        statistics are taken as they are expected under the prior.
        """
        whole = responsibilities if isinstance(responsibilities, np.ndarray) else None
        pieces = iter(responsibilities)
        emission_cells = start_natural(self.emission, self.prior.blocks[1])
        step = self.emission.step(emission_cells, data.table)
        total, counts, n_before = step.zeros(), np.zeros(self.n_components), 0
        size = self.emission.block_rows(self.n_components)
        for chunk in data.parts:
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

    def condensed(self, data: MixtureData | DataInParts) -> MixtureData | DataInParts:
        """Few rows in place of all where one component is all there is, and its bound the same with them."""
        if self.n_components > 1 or getattr(data, "is_condensed", False) or not getattr(data.parts, "are_here", True):
            return data
        few = condensed(self.emission, data.blocks(self.emission.block_rows(1)))
        if few is None or len(few[0]) >= len(data):
            return data
        (table, weight), hashes = few, np.arange(len(few[0]), dtype=np.uint64).__getitem__
        return MixtureData(table, weight, data.total_weight, False, hashes, is_condensed=True)

    def expected_rows(self, natural: np.ndarray, data: MixtureData | DataInParts, rows: DistinctRows) -> np.ndarray:
        """Expected rows of each component at distinct rows, (n_components, n_rows): equal rows are of one kind."""
        if self.n_components == 1:
            return rows.weight[None].copy()
        parts = [softmax(self.log_joint(natural, block).T, axis=0) for block in rows.blocks]
        return np.concatenate(parts, axis=1) * rows.weight

    def expected_counts(self, statistics: np.ndarray) -> np.ndarray:
        """Expected rows of each component, (n_components,)."""
        return self.weights.counts(self.prior.split(statistics)[0])

    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray, into: Any = None) -> np.ndarray:
        """Statistics of the weights where new components get fractions of those there are."""
        weights = (self if into is None else into).weights
        return weights.statistics((fractions @ self.expected_counts(statistics))[:, None])[:, 0]

    def on(self, rows: DistinctRows, data: MixtureData | DataInParts) -> MixtureData | DataInParts:
        """Distinct rows in place of all."""
        parts = [
            MixtureData(block, rows.weight[at], float(rows.weight[at].sum()), False, rows.hashes[at].__getitem__)
            for block, at in zip(rows.blocks, rows.slices)
        ]
        if len(parts) == 1:
            return replace(parts[0], total_weight=rows.total_weight)
        return DataInParts(data.table, parts, len(rows), rows.total_weight, False)

    def with_design_of(self, data: Any) -> Mixture:
        """The mixture whose covariates of components, if there are any, are those of rows in memory."""
        k = membership_of(self.emission)
        if k is None or isinstance(data.parts, Blocks):
            return self
        return self._with_design(k, Design.of(*_regressors_of(k, data)))

    def with_more_rows(self, statistics: np.ndarray, data: Any) -> Mixture:
        """The mixture whose covariates of components, if there are any, are those that it has and those of more rows.

        The rows that it has made `statistics` (n_cells,), whose counts say how many they are.
        """
        k = membership_of(self.emission)
        if k is None:
            return self
        regressors, weight = _regressors_of(k, data)
        design, n_rows = self.emission.parts[k].design, self.prior.split(statistics)[0].sum()  # type: ignore
        together = np.concatenate([design.regressors, regressors])
        return self._with_design(k, Design.of(together, np.concatenate([n_rows * design.weight, weight])))

    def _with_design(self, k: int, design: Design) -> Mixture:
        """The mixture whose part k of the emission, the membership, has another design."""
        emission: Any = self.emission
        prior: Any = self.prior.blocks[1]
        parts, blocks = list(parts_of(emission)), list(prior.blocks)
        blocks[k] = on_design(blocks[k], design)
        parts[k] = replace(parts[k], design=design)  # type: ignore
        return type(self)(emission.with_parts(tuple(parts)), self.weights, Product(tuple(blocks), prior.n_cells))

    def preferred_order(self, statistics: np.ndarray, fractions: np.ndarray | None = None) -> np.ndarray | None:
        """The largest component first where weights should fall, and no labels are known."""
        if not self.weights.by_weight or self.emission.n_levels:
            return None
        counts = self.expected_counts(statistics)
        return np.argsort(-(counts if fractions is None else fractions @ counts), kind="stable")

    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the components in another order."""
        weight_cells, emission_cells = self.prior.split(statistics)
        emission_cells = relabeled(emission_cells, self.emission.component_of_cell(self.n_components), order)
        return np.concatenate([self.weights.relabeled(weight_cells, order), emission_cells])


@dataclass(eq=False)  # not frozen, as one is made in every step
class MixtureEStep(EStep):
    """The E step of a mixture at natural parameters; sums are those of the emission, of ln Z, and responsibilities.

    Parameters
    ----------
    model : Mixture
    natural : ndarray of shape (n_cells, n_lanes)
    n_threads : int
    table : Table
        What the emission must know of all rows.
    """

    model: Mixture
    table: Any = None

    def __post_init__(self) -> None:
        weight_cells, emission_cells = self.model.prior.split(self.natural)
        self.step = self.model.emission.step(np.ascontiguousarray(emission_cells), self.table)
        self.log_weights = np.ascontiguousarray(self.model.weights.log_weights(weight_cells).T)

    @property
    def zeros(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """The sums of no rows."""
        return self.step.zeros(), np.zeros(len(self.log_weights)), np.zeros(self.log_weights.shape)

    def __call__(self, part: MixtureData) -> tuple[Any, np.ndarray, np.ndarray]:
        """The sums of compiled rows, sections of which threads share."""
        size = self.model.emission.block_rows(self.model.n_components, self.natural.shape[1])
        worth = len(part) * self.log_weights.size > _WORTH_THREADS
        section_sums = partial(self._section_sums, part, size)
        return map_reduce(section_sums, sections(range(0, len(part), size)), self.n_threads if worth else 1)

    def _section_sums(self, part: MixtureData, size: int, starts: Sequence[int]) -> tuple[Any, np.ndarray, np.ndarray]:
        step, (total, log_z, counts) = self.step, self.zeros
        for at in starts:
            rows = slice(at, at + size)
            block = part.table[rows]
            weighted = weighted_responsibilities(step, block, self.log_weights, part.weight[rows], log_z)
            counts += weighted.sum(axis=-1)
            step.add(block, weighted.swapaxes(-1, -2), total)
        return total, log_z, counts

    def divergence_sums(self, part: MixtureData) -> tuple[np.ndarray, np.ndarray]:
        """Sums over compiled rows from which divergences of components follow, of one lane."""
        n, step = self.model.n_components, self.step

        def responsibilities_and_logs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for block, weight in part.blocks(self.model.emission.block_rows(n)):
                logs = np.array(step.log_likelihood(block)[0].T)
                yield weighted_responsibilities(step, block, self.log_weights, weight, np.zeros(1))[0], logs

        return divergence_sums(n, responsibilities_and_logs())

    def log_normalizers(self, part: MixtureData) -> np.ndarray:
        """ln Z of compiled rows, nats, (n_lanes,)."""
        log_z = np.zeros(len(self.log_weights))
        for block, weight in part.blocks(self.model.emission.block_rows(self.model.n_components, len(log_z))):
            weighted_responsibilities(self.step, block, self.log_weights, weight, log_z)
        return log_z

    def finished(self, sums: tuple[Any, np.ndarray, np.ndarray]) -> Expectation:
        """The outcome of the E step from the sums of all parts."""
        return Expectation(self.statistics(sums), sums[1], expansion=self.step.expansion(sums[0]))

    def statistics(self, sums: tuple[Any, np.ndarray, np.ndarray]) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) from the sums of all parts."""
        total, log_z, counts = sums
        emission_cells = self.step.statistics(total).reshape(-1, len(log_z))
        return np.concatenate([self.model.weights.statistics(counts.T), emission_cells])

    def __reduce__(self) -> tuple:
        return type(self), (self.model, self.natural, self.n_threads, self.table[:0])


def _regressors_of(k: int, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Regressors of the membership, part k of the emission, of rows in memory, and weights of these."""
    rows = np.concatenate([part.table.parts[k] for part in data.parts])
    return rows, np.concatenate([part.weight for part in data.parts])


def weighted_responsibilities(
    step: Step, block: Any, log_weights: np.ndarray, weight: np.ndarray, log_z: np.ndarray
) -> np.ndarray:
    """Responsibilities times weights, (n_lanes, n_components, n_rows); ln Z of the block is added."""
    responsibilities = rows_last(step, block, *log_weights.shape)
    _mixture.responsibilities(log_weights, np.ascontiguousarray(weight), responsibilities, log_z)
    return responsibilities


class MixtureAscent(EmissionAscent[Mixture]):
    """Full steps of one mixture on its data."""

    label = "component"

    def on(self, rows: DistinctRows) -> MixtureAscent:
        """Full steps of the mixture on distinct rows of the data."""
        data = self.model.on(rows, cast(MixtureData | DataInParts, self.data))
        fewer = type(self)(self.model.with_design_of(data), data, self.form, self.n_threads)
        fewer.is_sample = rows.is_sample
        fewer.rows = rows
        return fewer
