r"""Columns with more zeros than their family explains, :math:`p(y) = \pi [y = 0] + (1 - \pi) f(y \mid \theta)`.

The family f is any other emission whose columns are independent given the component; probabilities :math:`\pi`, one for
each column and component, have Beta priors. A hidden variable says of each zero whether it is there whatever f makes,
and is summed out: with :math:`\tilde f = \exp \operatorname{E} \ln f`, a zero adds

.. math:: \ln \bigl(e^{\operatorname{E} \ln \pi} + e^{\operatorname{E} \ln (1 - \pi)} \tilde f(0)\bigr)

to the log likelihood of its row, and counts for f by the share :math:`1 - \rho` that is not inflated. Of densities, as
of waiting times, all zeros are inflated, and nothing is hidden.

What f says of a zero is the same in every row. So f has two tables: the rows with their zeros left out, and, for each
column, a row that holds a zero there and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.blocks import Blocks
from skvbem.emissions.base import Emission, Step, as_matrix, by_cell, by_lane, by_row
from skvbem.emissions.poisson import Poisson
from skvbem.emissions.specification import NumericSpecification, Parameters, positive_of_columns
from skvbem.families import Dirichlet, Product
from skvbem.families.parallel_generator import ParallelGenerator

# In the place of ln 0, so that no zero of a row makes 0 of it; no likelihood is below the other.
_IMPOSSIBLE, _BELOW = -1e200, -1e150


class ZeroInflated(NumericSpecification):
    """Columns of another family, some of whose zeros are there whatever that family makes.

    Parameters
    ----------
    base : EmissionSpecification, default=None
        The family of the other cells, such as `Poisson()`, which is the default, or `Exponential()`: columns of numbers
        that are independent given the component. Beside a density every zero is inflated.
    concentration_prior : float or pair of float, default=1.0
        Concentration of the Beta prior of the probability that a zero is inflated: one number, or a pair for inflated
        and not.

    See Also
    --------
    Poisson : counts without further zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Poisson, ZeroInflated
    >>> rng = np.random.default_rng(0)
    >>> catches = np.where(rng.random((200, 1)) < 0.3, 0, rng.poisson(4.0, size=(200, 1)))
    >>> model = VBMixture(1, emission=ZeroInflated(Poisson()), random_state=0).fit(catches)
    >>> numbers = model.parameters_["zero_inflated"]
    >>> numbers["inflation"].round(1).tolist(), numbers["rates"].round(1).tolist()
    ([[0.3]], [[4.1]])
    >>> model.lower_bound_ > VBMixture(1, emission="poisson", random_state=0).fit(catches).lower_bound_ + 40
    True
    """

    def __init__(self, base=None, concentration_prior=1.0):
        self.base = base
        self.concentration_prior = concentration_prior

    def check_parameters(self) -> None:
        """Refuse a base whose columns are not independent numbers."""
        family = self.family
        independent = isinstance(family, NumericSpecification) and not (
            family.has_covariances
            or not family.has_moments
            or len(family.covariates)
            or family.lags
            or isinstance(family, ZeroInflated)
        )
        if not independent:
            raise ValueError(
                "The 'base' parameter of ZeroInflated must be an emission of numbers whose columns are independent "
                f"given the component, such as Poisson() or Exponential(). Got {family!r} instead."
            )
        family.check_parameters()

    @property
    def family(self) -> Any:
        """The family of the other cells."""
        return Poisson() if self.base is None else self.base

    @property
    def wanted(self) -> str:  # type: ignore[override]
        """The condition of the base, if it has one."""
        return self.family.wanted

    @property
    def largest(self) -> float:  # type: ignore[override]
        """The largest number of the base."""
        return self.family.largest

    @property
    def if_larger(self) -> str:  # type: ignore[override]
        """The words of the base on larger ones."""
        return self.family.if_larger

    @property
    def needs_variation(self) -> bool:
        """True if cells of the base tell nothing apart where they are all equal."""
        return self.family.needs_variation

    where_measured: ClassVar[str] = "wherever not 0"

    def measured(self, values: np.ndarray) -> np.ndarray:
        """Cells of a density, zeros aside."""
        return self.family.measured(values if self.holds_counts else without_zeros(values))

    @property
    def holds_counts(self) -> bool:  # type: ignore[override]
        """True if cells of the base are whole numbers."""
        return self.family.holds_counts

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Cells that the base refuses, other than zeros."""
        return self.family.impossible(values) & (values != 0)

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> ZeroInflatedEmission:
        """The emission of numbers (n_rows, n_columns), NaN where missing, with weights (n_rows,).

        The base measures counts with their zeros, densities without them.
        """
        self.check_parameters()
        rows = values if self.holds_counts else without_zeros(values)
        return ZeroInflatedEmission(self.family.for_data(rows, weight), self.family)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Concentrations of inflated zeros and of the other cells, and the options of the base."""
        owner, name = type(self).__name__, "concentration_prior"
        numbers = positive_of_columns(owner, name, self.concentration_prior, 2, "for inflated and for other cells")
        return {"concentration": np.broadcast_to(numbers, 2), **self.family.prior_options(emission.base, names)}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Probabilities of inflated zeros, and the parameters of the base.

        Deviations follow from them, and so do means unless the base has some; these are then of all cells.
        """
        owner = type(self).__name__
        if not isinstance(parameters, Mapping) or "inflation" not in parameters:
            raise ValueError(f"Parameters of {owner} must have 'inflation' besides those of {self.family!r}.")
        follow = {"inflation", "deviations"} | ({"means"} if not self.family.has_means else set())
        checked = self.family.checked_parameters({name: parameters[name] for name in parameters if name not in follow})
        inflation = np.asarray(parameters["inflation"], dtype=float)
        if inflation.shape != self.family.means(checked).shape or not ((inflation >= 0) & (inflation <= 1)).all():
            raise ValueError(f"The 'inflation' of {owner} must be probabilities, one for each component and column.")
        return {"inflation": inflation, **checked}

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """Typical rows of the base."""
        return self.family.typical_rows(parameters)

    def means(self, parameters: Parameters) -> np.ndarray:
        """Means of all cells, inflated zeros among them."""
        return parameters["means"]

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Deviations of all cells."""
        return parameters["deviations"]

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray] | None:
        """Cumulative probabilities of the base, and a step at 0."""
        inflation = parameters["inflation"][:, None]
        of_base = self.family.cumulative_of_cells(values, _of_base(self.family, parameters))
        if of_base is None:
            return None
        below, up_to = ((1 - inflation) * each for each in of_base)
        return below + inflation * (values > 0), up_to + inflation * (values >= 0)


def _of_base(family: NumericSpecification, parameters: Parameters) -> dict[str, np.ndarray]:
    """Parameters of the base, its means those of cells that are not inflated."""
    named = dict(parameters)
    if family.has_means:
        named["means"] = named["means"] / np.maximum(1 - named["inflation"], np.finfo(float).tiny)
    return named


def without_zeros(values: np.ndarray | Blocks) -> Any:
    """A table, or blocks of one, with NaN in the place of zeros."""
    if isinstance(values, Blocks):
        return Blocks(lambda: ((without_zeros(rows), weight) for rows, weight in values))
    return np.where(values == 0, np.nan, np.asarray(values, dtype=float))


@dataclass(frozen=True, eq=False)
class ZeroInflatedTable:
    """Rows of numbers.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        NaN where a cell is missing.
    others : Table
        Of the base: the rows without their zeros.
    zeros : Table
        Of the base: for each column a row with a zero there and nothing else.
    """

    values: np.ndarray
    others: Any
    zeros: Any

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Self:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        return replace(self, values=self.values[rows], others=self.others[rows])

    def __add__(self, other: ZeroInflatedTable) -> Self:
        """What must be known of the rows of both, of tables without rows."""
        return replace(self, others=self.others + other.others)

    @cached_property
    def features(self) -> np.ndarray:
        """1 where a cell is 0, then 1 where it is any other number, (2 n_columns, n_rows)."""
        zero = (self.values == 0).T
        other = ~(zero | np.isnan(self.values.T))
        return np.concatenate([zero, other]).astype(float)


@dataclass(frozen=True, eq=False)
class ZeroInflatedEmission(Emission):
    """Zeros of their own beside another emission.

    Parameters
    ----------
    base : Emission
        Of all cells but inflated zeros.
    family : NumericSpecification
        What users hold of it.
    """

    base: Emission
    family: NumericSpecification

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return self.base.n_columns

    @property
    def doubles_per_row(self) -> int:
        """Doubles that a block holds for each row."""
        return 2 * self.n_columns + self.base.doubles_per_row

    @property
    def cells_per_component(self) -> int:
        """Of each column ln pi and ln(1 - pi), and the cells of the base."""
        return 2 * self.n_columns + self.base.cells_per_component

    @property
    def shared_cells(self) -> int:
        """Cells of the base that belong to all components."""
        return self.base.shared_cells

    def component_of_cell(self, n_components: int) -> np.ndarray:
        """The prior is a product: first all probabilities, then the base."""
        pairs = np.repeat(np.arange(n_components), 2 * self.n_columns)
        return np.concatenate([pairs, self.base.component_of_cell(n_components)])

    def default_prior(self, n_components: int, *, concentration=(1.0, 1.0), **of_base: Any) -> Product:
        """Beta distributions, and the prior of the base.

        Parameters
        ----------
        n_components : int
        concentration : pair of float
            Of inflated zeros and of all other cells.
        **of_base
            Keyword arguments of the base's `default_prior`.
        """
        pairs = Dirichlet.from_rows([concentration] * (self.n_columns * n_components))
        n_cells = 2 * self.n_columns * n_components, len(self.base.component_of_cell(n_components))
        return Product((pairs, self.base.default_prior(n_components, **of_base)), n_cells)

    def survey(self, values: np.ndarray) -> ZeroInflatedTable:
        """What the base must know of all rows, and of rows of zeros."""
        values = np.asarray(values)
        zeros = np.full((self.n_columns, self.n_columns), np.nan)
        if self.family.holds_counts:
            np.fill_diagonal(zeros, 0.0)
        known = self.base.survey(without_zeros(values)) + self.base.survey(zeros)
        return ZeroInflatedTable(values[:0], known, self.base.prepare(zeros, known))

    def prepare(self, values: np.ndarray, survey: ZeroInflatedTable | None = None) -> ZeroInflatedTable:
        """A table of rows, (n_rows, n_columns), NaN where a cell is missing."""
        values = np.asarray(values)
        survey = self.survey(values) if survey is None else survey
        return replace(survey, values=values, others=self.base.prepare(without_zeros(values), survey.others[:0]))

    def step(self, natural: np.ndarray, table: ZeroInflatedTable) -> ZeroInflatedStep:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return ZeroInflatedStep(self, natural, table)

    def is_conjugate(self, table: ZeroInflatedTable) -> bool:
        """True if the base is, and it is not hidden which zeros are inflated."""
        known = not self.family.holds_counts or not (table.values == 0).any()
        return known and self.base.is_conjugate(table.others)

    def with_room_for(
        self, table: ZeroInflatedTable, prior: Product, statistics: np.ndarray
    ) -> tuple[ZeroInflatedEmission, Product, np.ndarray]:
        """With cells of the base for more rows."""
        (pairs, of_base), (of_pairs, added) = prior.blocks, prior.split(statistics)
        base, of_base, added = self.base.with_room_for(table.others, of_base, added)
        if base is self.base:
            return self, prior, statistics
        wider = Product((pairs, of_base), (len(of_pairs), len(added)))
        return replace(self, base=base), wider, np.concatenate([of_pairs, added])

    def row_order(self, table: ZeroInflatedTable) -> np.ndarray | None:
        """The order of the base."""
        return self.base.row_order(table.others)

    def size_of_terms(self, table: ZeroInflatedTable, weight: np.ndarray) -> float:
        """Two terms for each cell, and those of the base."""
        return 2 * super().size_of_terms(table, weight) + self.base.size_of_terms(table.others, weight)

    def log_predictive(self, block: ZeroInflatedTable, posterior: Product) -> np.ndarray:
        """Log densities: a zero, or what the base predicts."""
        pairs, of_base = self._posteriors(posterior)
        inflated, kept = np.log(pairs.mean().reshape(-1, self.n_columns, 2)).T.swapaxes(1, 2)  # (n_components, d)
        zeros = np.logaddexp(inflated, kept + self._log_zero(self.base.log_predictive(block.zeros, of_base).T))
        return self.base.log_predictive(block.others, of_base) + _sums_of(block.features, zeros, kept).T

    def _log_zero(self, of_base: np.ndarray) -> np.ndarray:
        """ln of the base's probability of a zero, nats, (..., n_components, n_columns); of a density none has any."""
        return of_base if self.family.holds_counts else np.full_like(of_base, -np.inf)

    def sample(self, point: tuple, components: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Numbers drawn."""
        inflation = self._inflation(point)[components]
        return np.where(rng.random(inflation.shape) < inflation, 0.0, self.base.sample(point[1], components, rng))

    def impute(self, block: ZeroInflatedTable, point: tuple, responsibilities: np.ndarray) -> np.ndarray:
        """Rows with missing cells replaced by their means."""
        values = np.asarray(block.values, dtype=float)
        n_components = responsibilities.shape[1]
        empty = self.base.prepare(np.full((n_components, self.n_columns), np.nan))
        means = (1 - self._inflation(point)) * self.base.impute(empty, point[1], np.eye(n_components))
        return np.where(np.isnan(values), responsibilities @ means, values)

    def predictive_point(self, posterior: Product) -> tuple:
        """Expected probabilities, and the predictive point of the base."""
        pairs, of_base = self._posteriors(posterior)
        return pairs.mean(), self.base.predictive_point(of_base)

    def parameters(self, point: tuple) -> dict[str, np.ndarray]:
        """Probabilities of inflated zeros, the parameters of the base, and moments of all cells, (n_components, d)."""
        inflation, named = self._inflation(point), self.base.parameters(point[1])
        means, variances = self.family.means(named), self.family.deviations(named) ** 2
        deviations = np.sqrt((1 - inflation) * (variances + inflation * means**2))
        means_of_all = {"means": (1 - inflation) * means, "deviations": deviations}
        return {"inflation": inflation, **named, **means_of_all}

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> tuple:
        """The probabilities of each column, and the base's point; see `parameters`."""
        inflation = parameters["inflation"]
        of_base = self.base.point_of(_of_base(self.family, parameters))
        return np.stack([inflation, 1 - inflation], axis=-1).ravel(), of_base

    def quantiles(self, posterior: Product, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the probabilities, and of what the base has some of, but no means: these are of all cells."""
        pairs, of_base = self._posteriors(posterior)
        inflation = pairs.quantiles(probability).reshape(-1, self.n_columns, 2)[..., 0]
        of_others = self.base.quantiles(of_base, probability)
        return {"inflation": inflation, **{name: of_others[name] for name in of_others if name != "means"}}

    def seeding_coordinates(self, block: ZeroInflatedTable) -> np.ndarray:
        """The coordinates of the base, without the zeros, which say little of what the base makes."""
        return self.base.seeding_coordinates(block.others)

    @staticmethod
    def _posteriors(posterior: Product) -> tuple[Any, Any]:
        """The posteriors of probabilities, and of the base."""
        pairs, of_base = posterior.blocks
        return pairs, of_base

    def _inflation(self, point: tuple) -> np.ndarray:
        return point[0].reshape(-1, self.n_columns, 2)[..., 0]


def _sums_of(features: np.ndarray, zeros: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Sums over the cells of rows, (n, n_rows), of what zeros and other cells add, (n, n_columns) each."""
    coefficients = np.maximum(np.concatenate([zeros, kept], axis=-1), _IMPOSSIBLE)
    sums = coefficients @ features
    sums[sums < _BELOW] = -np.inf
    return sums


class ZeroInflatedStep(Step):
    """Zeros at natural parameters. A sum is a list: zeros and other cells, sums of the base, zeros not inflated."""

    def __init__(self, emission: ZeroInflatedEmission, natural: np.ndarray, table: ZeroInflatedTable):
        d, self.single, self.hides = emission.n_columns, natural.ndim == 1, emission.family.holds_counts
        self.n_components = emission.n_components(len(natural))
        n = 2 * d * self.n_components
        self.base, self.zeros_of_base = emission.base.step(natural[n:], table.others), table.zeros
        pairs = by_lane(natural[:n], 2 * d).reshape(-1, self.n_components, d, 2)
        log_zero = self.base.log_likelihood(table.zeros).reshape(-1, d, self.n_components).swapaxes(1, 2)
        inflated, self.kept = pairs[..., 0], pairs[..., 1]
        self.zero = np.logaddexp(inflated, self.kept + emission._log_zero(log_zero))
        with np.errstate(invalid="ignore"):  # of a zero that cannot be, it does not matter
            self.inflated = np.nan_to_num(np.exp(inflated - self.zero), nan=1.0)  # the share rho, (n_lanes, k, d)

    def log_likelihood(self, block: ZeroInflatedTable) -> np.ndarray:
        """Expected log likelihoods of rows, which zeros are inflated summed out, nats."""
        zero, kept = (each.reshape(-1, each.shape[-1]) for each in (self.zero, self.kept))
        of_cells = by_row(_sums_of(block.features, zero, kept), self.n_components, self.single)
        return self.base.log_likelihood(block.others) + of_cells

    def zeros(self) -> Any:
        """Empty sums."""
        return [np.zeros((*self.zero.shape[:2], 2 * self.zero.shape[2])), self.base.zeros(), np.zeros(self.zero.shape)]

    def add(self, block: ZeroInflatedTable, responsibilities: np.ndarray, total: Any) -> None:
        """Add the statistics of a block to a sum."""
        sums = (as_matrix(responsibilities) @ block.features.T).reshape(total[0].shape)
        total[0] += sums
        total[2] += sums[..., : self.zero.shape[2]] * (1 - self.inflated)
        self.base.add(block.others, responsibilities, total[1])

    def statistics(self, total: Any) -> np.ndarray:
        """Statistics of a sum: inflated zeros and all other cells, and of the base zeros that are not inflated."""
        (zeros, others), kept = np.split(total[0], 2, axis=-1), total[2]
        pairs = by_cell(np.stack([zeros - kept, others + kept], axis=-1), self.single)
        of_base, of_zeros = self.base.statistics(total[1]), self.base.zeros()
        kept = kept.swapaxes(1, 2)  # as responsibilities of the rows of zeros
        self.base.add(self.zeros_of_base, kept[0] if self.single else kept, of_zeros)
        return np.concatenate([pairs, of_base + self.base.statistics(of_zeros)])

    def of_rows(self, block: ZeroInflatedTable) -> np.ndarray:
        """Statistics of each row, as expected."""
        d = self.zero.shape[2]
        zeros, others = block.features[:d].T[:, None], block.features[d:].T[:, None]
        kept = zeros * (1 - self.inflated[0])  # (n_rows, n_components, d)
        pairs = np.stack([zeros - kept, others + kept], axis=-1).reshape(*kept.shape[:2], 2 * d)
        of_base = self.base.of_rows(block.others) + np.einsum("ikj,jkc->ikc", kept, self._of_zeros)
        return np.concatenate([pairs, of_base], axis=2)

    @cached_property
    def _of_zeros(self) -> np.ndarray:
        """Statistics of the base of a zero in each column, (d, n_components, n_own)."""
        return self.base.of_rows(self.zeros_of_base)

    def hidden_covariance(self, block: ZeroInflatedTable, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of a component's statistics: of each zero, by whether it is inflated, and that of the base."""
        d, share = self.zero.shape[2], self.inflated[0]
        of_base = self.base.hidden_covariance(block.others, responsibilities)
        zeros = responsibilities.T @ block.features[:d].T
        n_own = 2 * d + self._of_zeros.shape[2]
        if of_base is None and not (self.hides and zeros.any()):
            return None
        moved = np.zeros((self.n_components, d, n_own))  # what an inflated zero adds, less what any other one does
        j = np.arange(d)
        moved[:, j, 2 * j], moved[:, j, 2 * j + 1] = 1.0, -1.0
        moved[:, :, 2 * d :] = -self._of_zeros.swapaxes(0, 1)
        covariance = np.einsum("kj,kja,kjb->kab", zeros * share * (1 - share), moved, moved)
        if of_base is not None:
            covariance[:, 2 * d :, 2 * d :] += of_base
        return covariance

    def add_drawn(self, block: ZeroInflatedTable, components: np.ndarray, rng: ParallelGenerator, total: Any) -> None:
        """Add statistics of rows whose components are known, inflated zeros drawn."""
        self.base.add_drawn(block.others, components, rng, total[1])
        d, labels = self.zero.shape[2], components.reshape(-1, len(block))
        drawn = rng.random((len(block), d, len(labels)))
        for lane, chosen in enumerate(labels):
            np.add.at(total[0][lane], chosen, block.features.T)
            kept = block.features[:d].T * (drawn[..., lane] >= self.inflated[lane, chosen])
            np.add.at(total[2][lane], chosen, kept)
