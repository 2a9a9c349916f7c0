"""Models whose rows have one hidden label each, and their full steps: what mixtures and hidden Markov models share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar, cast

import numpy as np

from skvbem._lazy import cached_property
from skvbem.blocks import map_reduce
from skvbem.emissions import Emission
from skvbem.emissions.base import Step, n_redundant_parameters, rotation_tangents
from skvbem.emissions.known_labels import without_labels
from skvbem.emissions.outside import likely_defect
from skvbem.emissions.softmax import membership_of
from skvbem.families import Product
from skvbem.models.base import Expansion, Expectation, LatentModel, ModelAscent
from skvbem.models.labels.distinct_rows import DistinctRows

# Stands for the log likelihood of a row that a component cannot make, nats.
_LOWEST = -1e30


def divergence_sums(n: int, blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Sums (n, n) and (n,) over rows from which `symmetric_divergences` follow.

    Parameters
    ----------
    n : int
    blocks : iterable of pairs of ndarray of shape (n, n_rows)
        Responsibilities of components for blocks of rows, and log likelihoods of these, nats.
    """
    total, counts = np.zeros((n, n)), np.zeros(n)
    for responsibilities, logs in blocks:
        counts += responsibilities.sum(axis=-1)
        total += responsibilities @ np.where(np.isfinite(logs), logs, _LOWEST).T
    return total, counts


def symmetric_divergences(total: np.ndarray, counts: np.ndarray) -> np.ndarray:
    r"""Symmetric divergences of n components, (n, n), nats a row, 0 on the diagonal; NaN for components without rows.

    :math:`\langle\ln p_a - \ln p_b\rangle_a + \langle\ln p_b - \ln p_a\rangle_b`, averages over the rows as far as they
    belong to a, and to b.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / counts[:, None]
    diagonal = np.diagonal(mean)
    return diagonal[:, None] - mean + diagonal - mean.T


class LabeledRows(Protocol):
    """The compiled rows of a model with one label per row."""

    @property
    def table(self) -> Any:
        """The rows as the emission prepared them."""
        ...

    @property
    def total_weight(self) -> float:
        """The sum of the weights of rows: the n of every score."""
        ...

    @property
    def parts(self) -> Any:
        """The rows in parts that are summed over, `Blocks` or a sequence; one if they are in memory."""
        ...

    def __len__(self) -> int: ...

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        ...


#: Why a model whose labels have covariates lacks capabilities.
WITH_COVARIATES = dict.fromkeys(
    ("points", "annealing", "batches", "metropolis", "enumeration", "dimension", "complete_evidence"),
    "Coefficients of a softmax have no conjugate prior, and what is known of them has no closed form. Take 'auto', "
    "'lower_bound', 'bic', 'laplace' or 'linear_response'.",
)

#: Why one lacks more of them if precisions of the coefficients are hidden.
WITH_HIDDEN_PRECISIONS = dict.fromkeys(
    WITH_COVARIATES,
    "Draws do not know the hidden precisions of its slopes. Set slope_prior=1.0 in Softmax, or take 'lower_bound', "
    "'bic', 'laplace' or 'linear_response'.",
)


class LabelModel(LatentModel):
    """A model with one label per row, and an emission whose prior is the last block of the model's.

    Parameters
    ----------
    emission : Emission
    n_components : int
        Number of labels.
    prior : Product
    """

    #: What labels are called in messages.
    labels: ClassVar[str]
    emission: Emission
    n_components: int
    prior: Product

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why a model that knows labels lacks a capability."""
        if membership_of(self.emission) is not None:
            return WITH_HIDDEN_PRECISIONS if has_hidden_precisions(self) else WITH_COVARIATES
        if not self.emission.n_levels:
            return super().reasons
        return {
            "dimension": "Its identifiable dimension is that of rows, and labels are known, which say more of its "
            "parameters. Take dimension='free'."
        }

    @property
    def n_cells(self) -> int:
        """Numbers that statistics take."""
        return sum(self.prior.n_cells)

    @property
    def n_free_parameters(self) -> int:
        """Parameters of all components, but for those of emissions that no data can tell apart."""
        everywhere = np.ones(self.n_components, dtype=bool)
        return self.prior.n_free_parameters - n_redundant_parameters(self.emission, everywhere)

    @property
    def first_emission_cell(self) -> int:
        """Number of the first cell of the emission's statistics."""
        return sum(self.prior.n_cells[:-1])

    def rotation_tangents(self, natural: np.ndarray) -> np.ndarray:
        """Tangents of rotations of what the emission hides, in natural parameters, (n_cells, n_rotations)."""
        tangents = rotation_tangents(self.emission, np.ascontiguousarray(self.prior.split(natural)[-1]))
        return np.pad(tangents, ((self.first_emission_cell, 0), (0, 0)))

    def expect(self, natural: np.ndarray, data: Any, n_threads: int = 1) -> Expectation:
        """The E step [Beal (2.54), §3.4] under natural parameters (n_cells, n_lanes) that need not be normalized."""
        return self.e_step(natural, data, n_threads).over(data.parts)

    def step(self, natural: np.ndarray, data: Any) -> Step:
        """The emission at natural parameters (n_cells, n_lanes), or (n_cells,) of one lane, for rows with a `table`."""
        return self.emission.step(np.ascontiguousarray(self.prior.split(natural)[-1]), data.table)

    def cells_of_components(self) -> list[np.ndarray]:
        """The cells in which rows of each component have statistics of the emission, those of all components too."""
        component = self.emission.component_of_cell(self.n_components)
        first = self.n_cells - len(component)
        return [first + np.flatnonzero((component == k) | (component == -1)) for k in range(self.n_components)]

    def magnitude(self, data: LabeledRows) -> float:
        """Size of the terms whose sum is the log normalizer, nats."""
        return data.total_weight + map_reduce(self._size_of_terms, data.parts)

    def _size_of_terms(self, part: Any) -> float:
        blocks = part.blocks(self.emission.block_rows(self.n_components))
        return sum(self.emission.size_of_terms(*block) for block in blocks)

    @abstractmethod
    def statistics_of(self, responsibilities: np.ndarray | Iterable[np.ndarray], data: Any) -> np.ndarray:
        """Statistics (n_cells,) of responsibilities (n_rows, n_components), in the order of the rows of the data."""

    @abstractmethod
    def expected_rows(self, natural: np.ndarray, data: Any, rows: Any) -> np.ndarray:
        """Expected rows of each component at `DistinctRows` of the data, (n_components, n_rows).

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
        data : LabeledRows
        rows : DistinctRows
            Of these data.
        """

    @property
    def have_places(self) -> bool:
        """Components have places in a row that their prior means: halves of one stand beside each other."""
        return False

    def hashed_rows(self, data: Any) -> Any:
        """The rows of data with their weights and hashes, whose distinct ones moves look at."""
        return data

    def most_components(self, data: Any) -> int:
        """Components that may each be needed: as many as there are distinct rows that count."""
        return len(np.unique(data.row_hashes(slice(None))[data.weight > 0]))

    @abstractmethod
    def expected_counts(self, statistics: np.ndarray) -> np.ndarray:
        """Expected rows of each component, (n_components,), as statistics (n_cells,) have them."""

    @abstractmethod
    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray, into: Any = None) -> np.ndarray:
        """Statistics of labels, all but those of the emission, where new components get fractions of those there are.

        Parameters
        ----------
        statistics : ndarray of shape (n_cells,)
        fractions : ndarray of shape (n_new, n_components)
            What each new component, by row, gets of each there is.
        into : LabelModel, optional
            The model of the new components; this one by default.
        """

    @abstractmethod
    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the components in another order."""

    def preferred_order(self, statistics: np.ndarray, fractions: np.ndarray | None = None) -> np.ndarray | None:
        """The order of the components that the prior means, if it means any.

        Parameters
        ----------
        statistics : ndarray of shape (n_cells,)
        fractions : ndarray of shape (n_new, n_components), optional
            New components in place of those there are, and what each gets of these.
        """
        return None

    def with_emission(self, emission: Emission) -> Self:
        """The model with another emission of the same cells, such as one that knows labels."""
        later = copy(self)
        later.emission = emission
        return later

    def with_room_for(self, statistics: np.ndarray, data: Any) -> tuple[Self, np.ndarray]:
        """The model and statistics (n_cells,) of earlier rows, with cells of its emission for more rows."""
        (*of_labels, of_emission), (*cells, of_rows) = self.prior.blocks, self.prior.split(statistics)
        emission, block, of_rows = self.emission.with_room_for(data.table, of_emission, of_rows)
        if emission is self.emission:
            return self, statistics
        wider = self.with_emission(emission)
        wider.prior = Product((*of_labels, block), (*self.prior.n_cells[:-1], len(of_rows)))
        return wider, np.concatenate([*cells, of_rows])

    @abstractmethod
    def divergences(self, natural: np.ndarray, data: Any) -> np.ndarray:
        """Divergences of components at natural parameters (n_cells,), (n_components, n_components), nats a row."""


def has_hidden_precisions(model: LabelModel) -> bool:
    """True if covariates drive labels, and slopes of theirs have hidden precisions."""
    k, prior = membership_of(model.emission), cast(Product, model.prior.blocks[-1])
    return k is not None and prior.blocks[k].hyperprior is not None


def of_rows_alone(model: LabelModel, data: Any) -> tuple[LabelModel, Any]:
    """The model and its data without what is known of labels."""
    if not model.emission.n_levels:
        return model, data
    emission, (table,) = without_labels(model.emission, [data.table])
    return model.with_emission(emission), replace(data, table=table)


_Model = TypeVar("_Model", bound=LabelModel)


class _OfComplete(NamedTuple):
    """Complete rows: their objective (n_lanes,), nats, statistics with those of what is hidden, the posterior there.

    `given` are coordinates of the prior given hyperparameters; of points there is no posterior.
    """

    objective: np.ndarray
    statistics: np.ndarray
    posterior: Any
    given: np.ndarray


class EmissionAscent(ModelAscent[_Model]):
    """Full steps of one model with a label per row on its data, for one form of q(theta)."""

    def _expanded(
        self, statistics: np.ndarray, hidden: np.ndarray, natural: np.ndarray, expansion: Expansion
    ) -> tuple[np.ndarray, Any]:
        """Statistics of rows and of what is hidden in coordinates in which the bound rises, and the posterior there."""
        first, prior = self.model.first_emission_cell, self.model.prior.blocks[-1]
        before = statistics[first:], natural[first:]
        as_it_is = self._of_complete(prior, *before)
        best, here, of_all = as_it_is.objective, as_it_is.statistics, None
        for may_go_on in (self.form.prior_share > 0, False):  # of points without a prior the first map is the best
            there = expansion.statistics(before[0]), expansion.natural(before[1])
            of_complete = self._of_complete(prior, *there)
            objective = expansion.gain + of_complete.objective
            rises = objective > best
            here = np.where(rises, of_complete.statistics, here)
            if rises.all():
                of_all = of_complete.posterior
            if of_all is not None or not may_go_on:
                break
            best = np.where(rises, objective, best)
            expected = self.form.natural(prior, of_complete.statistics, of_complete.posterior)
            expansion = expansion.further(of_complete.given, there[0], expected)
        later = np.concatenate([statistics[:first] + hidden[:first], here])
        return later, None if of_all is None else self.model.prior.ending_with(of_all, later)

    def _of_complete(self, prior: Any, statistics: np.ndarray, natural: np.ndarray) -> _OfComplete:
        """Complete rows with these statistics, hyperparameters as natural parameters say."""
        given, fixed = np.zeros(statistics.shape), 0.0
        if prior.hyperprior is not None:
            given, log_normalizer = prior.hyperprior.expect(natural)
            fixed = log_normalizer - (given * natural).sum(axis=0)
        added = statistics + given
        posterior = prior + added if self.form.density else None
        objective = fixed + self.form.of_complete(prior, added, posterior)
        return _OfComplete(objective, added, posterior, prior.coordinates[:, None] + given)

    @property
    def suspicion(self) -> str | None:
        """A hint for the error message: the user's emission, if the model has one, else None."""
        emission = getattr(self.model, "emission", None)
        return None if emission is None else likely_defect(emission)

    @cached_property
    def rows(self) -> DistinctRows:
        """Distinct rows of the data, few if there are many."""
        return DistinctRows.of(self.model.emission, self.model.hashed_rows(self.data))

    @cached_property
    def _samples(self) -> dict[int, DistinctRows]:
        return {}

    def rows_up_to(self, most: int) -> DistinctRows:
        """Distinct rows of the data, so many at the most; all rows are gone through once for each number."""
        if most not in self._samples:
            self._samples[most] = DistinctRows.of(self.model.emission, self.data, most)
        return self._samples[most]


# Sets of rows, or allocations, whose evidences are found at once.
BATCH = 2**12


def statistics_of_rows(model: LabelModel, data: LabeledRows, weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Statistics of rows, (n_rows, n_own), the same for all components, and the sum of ln f with weights, nats."""
    natural = model.prior.expected_natural()
    step, cells = model.step(natural, data), model.cells_of_components()[0]
    size, parts = model.emission.block_rows(model.n_components), [np.zeros((0, len(cells)))]
    log_base = 0.0
    for at in range(0, len(data), size):
        block = data.table[at : at + size]
        by_row = step.of_rows(block)[:, 0]
        # what no parameter touches is what the statistics do not explain
        log_base += float(weight[at : at + size] @ (step.log_likelihood(block)[:, 0] - by_row @ natural[cells]))
        parts.append(by_row)
    return np.concatenate(parts), log_base


def log_evidences_of_sets(
    model: LabelModel, statistics: np.ndarray, weight: np.ndarray, strides: np.ndarray
) -> list[np.ndarray]:
    """ln g of every set of rows in mixed radix, (n_sets,), for every component."""
    prior, first = model.prior.blocks[-1], model.first_emission_cell
    evidences: list[np.ndarray] = []
    cells_of = [cells - first for cells in model.cells_of_components()]
    for k, cells in enumerate(cells_of):
        same = [j for j in range(k) if np.array_equal(prior.coordinates[cells_of[j]], prior.coordinates[cells])]
        if same:
            evidences.append(evidences[same[0]])
            continue
        by_set = np.empty(strides[-1])
        for at in range(0, len(by_set), BATCH):
            sets = np.arange(at, min(at + BATCH, len(by_set)))
            counts = np.stack([sets // stride % (w + 1) for w, stride in zip(weight, strides)] or [sets * 0])
            added = np.zeros((len(prior.coordinates), len(sets)))
            added[cells] = statistics.T @ counts if len(statistics) else 0.0
            by_set[sets] = prior.log_evidence(added)
        evidences.append(by_set)
    return evidences
