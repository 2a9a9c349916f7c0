"""Models whose rows have one hidden label each, and their full steps: what mixtures and hidden Markov models share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from skvbem.emissions import Emission
from skvbem.emissions.base import Step
from skvbem.emissions.outside import likely_defect
from skvbem.errors import NoInteriorModeError
from skvbem.families import Product
from skvbem.models.base import Expansion, LatentModel
from skvbem.models.labels.distinct_rows import DistinctRows

# Weight of all rows above which squares about an origin may have no digit left of those about a mean.
_LARGEST_WEIGHT = 1e12


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

    def __len__(self) -> int: ...

    def chunks(self) -> Iterator[Any]:
        """The rows for a pass over all of them, as many at a time as are in memory together."""
        ...

    def blocks(self, size: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Tables of at most so many rows, and the weights of these."""
        ...


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
    labels: str

    def __init__(self, emission: Emission, n_components: int, prior: Product):
        self.emission, self.n_components = emission, n_components
        self.prior: Product = prior

    @property
    def n_cells(self) -> int:
        """Numbers that statistics take."""
        return sum(self.prior.n_cells)

    @property
    def n_free_parameters(self) -> int:
        """Parameters of all components, but for those of emissions that no data can tell apart."""
        everywhere = np.ones(self.n_components, dtype=bool)
        return self.prior.n_free_parameters - self.emission.n_redundant_parameters(everywhere)

    @property
    def first_emission_cell(self) -> int:
        """Where statistics of the emission begin."""
        return sum(self.prior.n_cells[:-1])

    def turns(self, natural: np.ndarray) -> np.ndarray:
        """Directions in which turns of what the emission hides move natural parameters, (n_cells, n_turns)."""
        of_emission = self.emission.turns(np.ascontiguousarray(self.prior.split(natural)[-1]))
        return np.pad(of_emission, ((self.first_emission_cell, 0), (0, 0)))

    def step(self, natural: np.ndarray, data: LabeledRows) -> Step:
        """The emission at natural parameters (n_cells, n_lanes), or (n_cells,) of one lane."""
        return self.emission.step(np.ascontiguousarray(self.prior.split(natural)[-1]), data.table)

    def cells_of_components(self) -> list[np.ndarray]:
        """The cells in which rows of each component have statistics of the emission, those of all components too."""
        component = self.emission.component_of_cell(self.n_components)
        first = self.n_cells - len(component)
        return [first + np.flatnonzero((component == k) | (component == -1)) for k in range(self.n_components)]

    def started(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics of rows (n_cells, ...) with those of hidden hyperparameters at their prior means: a start."""
        if self.prior.hyperprior is None:
            return statistics
        return statistics + self.prior.hyperprior.prior_statistics.reshape(-1, *(1 for _ in statistics.shape[1:]))

    def magnitude(self, data: LabeledRows) -> float:
        """Size of the terms whose sum is the log normalizer, nats."""
        blocks = data.blocks(self.emission.block_rows(self.n_components))
        return data.total_weight + sum(self.emission.size_of_terms(*block) for block in blocks)

    @abstractmethod
    def statistics_of(self, responsibilities: np.ndarray | Iterable[np.ndarray], data: Any) -> np.ndarray:
        """Statistics (n_cells,) of responsibilities (n_rows, n_components), in the order of the rows of the data."""

    @abstractmethod
    def hashed_rows(self, data: Any) -> Any:
        """The rows as `skvbem.models.labels.seeding` samples distinct ones from them."""

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

    @abstractmethod
    def shared_out(self, statistics: np.ndarray, fractions: np.ndarray) -> np.ndarray:
        """Statistics of labels, all but those of the emission, where new components get fractions of those there are.

        Parameters
        ----------
        statistics : ndarray of shape (n_cells,)
        fractions : ndarray of shape (n_components, n_components)
            What each new component, by row, gets of each there is.
        """

    @abstractmethod
    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the components in another order."""

    def preferred_order(self, statistics: np.ndarray) -> np.ndarray | None:
        """The order of the components (n_components,) that the prior means, if it means any."""
        return None

    @abstractmethod
    def divergences(self, natural: np.ndarray, data: Any) -> np.ndarray:
        """How unlike the rows find components at natural parameters (n_cells,), (n_components, n_components), nats."""


_Model = TypeVar("_Model", bound=LabelModel)


class EmissionAscent(Generic[_Model]):
    """Full steps of one model on its data, for one form of q(theta); see `skvbem.vbem.driver.Ascent`.

    Parameters
    ----------
    model : LabelModel
    data : LabeledRows
        As the model compiled them.
    form : Form
    n_threads : int
        Threads among which rows are shared; the result does not depend on it.
    """

    #: What the label of a row is called.
    label: str
    #: Whether the data are a sample of others, for starts to grow up on.
    is_sample: bool = False

    def __init__(self, model: _Model, data: LabeledRows, form: Any, n_threads: int = 1):
        if not form.prior_share:  # maximum likelihood asks no prior, and what is proposed to it knows of none hidden
            model = model.with_known_hyperparameters()
        self.model, self.data, self.form, self.n_threads = model, data, form, n_threads
        self.magnitude = model.magnitude(data)
        if not form.density and form.prior_share:  # of a log density, whose normalizer cancels what strong priors say
            self.magnitude += float(np.abs(model.prior.coordinates).sum())
        self.signed = model.prior.signed
        self.hyperprior = model.prior.hyperprior

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place; see `skvbem.vbem.driver.Ascent`."""
        prior, trace = self.model.prior, np.full((n_steps, statistics.shape[1]), -np.inf)
        posterior = prior + statistics
        live = np.flatnonzero(posterior.is_valid)
        for step in range(n_steps):
            if not len(live):
                break
            at = statistics if len(live) == statistics.shape[1] else np.ascontiguousarray(statistics[:, live])
            try:
                known = posterior if step == 0 and at is statistics else None
                natural, penalty = self.form.of(prior, at, known)
            except NoInteriorModeError:
                raise self.failure() from None
            expected, log_normalizer = self._expected(natural)
            trace[step, live] = log_normalizer + penalty
            statistics[:, live] = expected
        return trace

    def _expected(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expected statistics of rows and of hidden hyperparameters, which belong to no row, and ln Z of both, nats."""
        expectation = self.model.expect(natural, self.data, self.n_threads)
        of_rows, log_normalizer, expansion = expectation.statistics, expectation.log_normalizer, expectation.expansion
        of_hidden = natural
        if expansion is not None:
            of_rows, of_hidden = self._expanded(of_rows, natural, expansion)
        if self.hyperprior is None:
            return of_rows, log_normalizer
        statistics, of_hyperparameters = self.hyperprior.expect(natural)
        if expansion is not None:
            statistics = self.hyperprior.expect(of_hidden)[0]
        return of_rows + statistics, log_normalizer + of_hyperparameters

    def _expanded(
        self, statistics: np.ndarray, natural: np.ndarray, expansion: Expansion
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of rows, and natural parameters, in other coordinates of what rows hide, where the bound rises."""
        first, prior = self.model.first_emission_cell, self.model.prior.blocks[-1]
        before = statistics[first:], natural[first:]
        after = expansion.statistics(before[0]), expansion.natural(before[1])
        rises = expansion.gain + self._of_complete(prior, *after) > self._of_complete(prior, *before)
        statistics, natural = (
            np.concatenate([cells[:first], np.where(rises, there, here)])
            for cells, there, here in zip((statistics, natural), after, before)
        )
        return statistics, natural

    def _of_complete(self, prior: Any, statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """The objective of complete rows, hyperparameters as natural parameters say, (n_lanes,), nats."""
        if prior.hyperprior is None:
            return self.form.of_complete(prior, statistics)
        of_hyperparameters, log_normalizer = prior.hyperprior.expect(natural)
        fixed = log_normalizer - (of_hyperparameters * natural).sum(axis=0)
        return fixed + self.form.of_complete(prior, statistics + of_hyperparameters)

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) under natural parameters of the same shape."""
        return self._expected(natural)[0]

    def rounding(self, statistics: np.ndarray) -> np.ndarray:
        """How far rounding may move the objective at statistics (n_cells, n_lanes), nats, (n_lanes,)."""
        return self.model.rounding(self.form, statistics)

    @property
    def suspicion(self) -> str | None:
        """Where the defect is if the objective falls: in an emission from outside, if the model has one."""
        emission = getattr(self.model, "emission", None)
        return None if emission is None else likely_defect(emission)

    @cached_property
    def rows(self) -> DistinctRows:
        """Distinct rows of the data, few if there are many."""
        return DistinctRows.of(self.model.emission, self.model.hashed_rows(self.data))

    def failure(self) -> Exception:
        """Why the objective of a plain step may not be a number."""
        if self.form.lowered_by:
            return NoInteriorModeError(
                f"The posterior has no interior mode in the probability basis: some {self.label} has too little data "
                "for its prior. Use map_basis='natural', where the mode always exists, or a stronger prior."
            )
        if self.data.total_weight > _LARGEST_WEIGHT:
            return FloatingPointError(
                f"The objective is not a number: the weights of the rows add up to {self.data.total_weight:g}, and "
                f"squares summed over so many rows hold no digit of how wide a narrow {self.label} is. Divide "
                "'sample_weight' by a common factor."
            )
        return FloatingPointError(
            "The objective is not a number. "
            + (self.suspicion or f"That is a defect of {type(self.model).__name__}: please report it with the data.")
        )
