r"""Counts of categories: :math:`p(y \mid \theta) = n! \prod_j \theta_j^{y_j} / y_j!` given their total n.

Predictive: Dirichlet-multinomial. The likelihood is that of the counts given the total of a row, which a missing cell
would leave unknown: a row is observed whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from skvbem._numerics import log_rising
from skvbem.blocks import Blocks, map_reduce
from skvbem.emissions.base import parameters_by_draw
from skvbem.emissions.linear import LinearEmission, LinearTable, log_base_of_counts
from skvbem.emissions.moments import blocks_of_floats, n_columns_of
from skvbem.emissions.parameters import distributions, named_arrays
from skvbem.emissions.specification import CountCells, Parameters, ProbabilitySpecification, positive_of_columns
from skvbem.families import Dirichlet


class Multinomial(CountCells, ProbabilitySpecification):
    """Counts of categories, one column each, of which components have shares; the total of a row is given.

    Parameters
    ----------
    concentration_prior : float or array-like of shape (n_columns,), default=1.0
        Concentration of the Dirichlet prior of the shares.

    See Also
    --------
    Poisson : counts without a common total.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import Multinomial
    >>> words = [[9, 0, 1], [8, 1, 0], [0, 4, 7], [1, 3, 9], [7, 0, 2], [0, 5, 6]]
    >>> model = VBMixture(2, emission=Multinomial(concentration_prior=0.5), random_state=0).fit(words)
    >>> model.parameters_["multinomial"]["shares"].sum(axis=1).round(6).tolist()
    [1.0, 1.0]
    """

    parameter: ClassVar[str] = "shares"

    def __init__(self, concentration_prior=1.0):
        self.concentration_prior = concentration_prior

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> MultinomialEmission:
        """The emission of counts (n_rows, n_columns) with weights (n_rows,)."""
        return MultinomialEmission.for_data(values, weight)

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Concentrations of the columns."""
        owner, name = type(self).__name__, "concentration_prior"
        numbers = positive_of_columns(owner, name, self.concentration_prior, len(names), "one for each of its columns")
        return {"concentration": numbers}

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Shares (n_components, n_columns) and, of rows that are drawn, the total `n_trials`, 1 if nobody says it."""
        owner, name = type(self).__name__, self.parameter
        arrays = named_arrays(owner, {"n_trials": 1, **dict(parameters)}, {name: 2, "n_trials": 0})
        n_trials = arrays["n_trials"]
        if n_trials < 1 or n_trials != np.floor(n_trials):
            raise ValueError(f"The 'n_trials' of {owner} must be a whole number >= 1. Got {n_trials:g} instead.")
        return {name: distributions(owner, name, arrays[name]), "n_trials": n_trials}

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """The expected counts of each component."""
        return parameters["n_trials"] * parameters[self.parameter]

    def exposure(self, values: np.ndarray) -> np.ndarray:
        """The totals of rows."""
        return values.sum(axis=1)

    @staticmethod
    def label(name: str) -> str:
        """The column's share of the total."""
        return f"share of {name}"


# ln 0 as a factor: 0 times it is 0, and any count of it is past all hope.
_LOWEST = -1e300


@dataclass(frozen=True)
class _Totals:
    """Weighted sums of totals of rows and of rows, the number of rows, and the first with cells observed in part."""

    total: float
    n: float
    n_rows: int
    partial: int | None

    @classmethod
    def of(cls, part: tuple) -> Self:
        """The sums of a table (values, weight)."""
        total, n, n_rows, first = 0.0, 0.0, 0, None
        for cells, w in blocks_of_floats(*part):
            missing = np.isnan(cells)
            partial = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
            if first is None and len(partial):
                first = n_rows + int(partial[0])
            seen = ~missing[:, 0]
            total += float(w[seen] @ cells[seen].sum(axis=1))
            n += float(w[seen].sum())
            n_rows += len(cells)
        return cls(total, n, n_rows, first)

    def __add__(self, other: _Totals) -> _Totals:
        """The sums of both, the rows of the other after these."""
        first = self.partial
        if first is None and other.partial is not None:
            first = self.n_rows + other.partial
        return _Totals(self.total + other.total, self.n + other.n, self.n_rows + other.n_rows, first)


@dataclass(frozen=True, eq=False)
class MultinomialEmission(LinearEmission):
    """Counts of categories with the total of each row given.

    Parameters
    ----------
    n_categories : int
        One column for each.
    n_trials : int
        The total of a row that is drawn: the mean total of the data.
    """

    n_categories: int
    n_trials: int = 1

    @classmethod
    def for_data(cls, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> Self:
        """The emission of counts (n_rows, n_categories) with weights (n_rows,).

        Raises
        ------
        ValueError
            If a row has missing cells as well as observed ones.
        """
        totals = map_reduce(_Totals.of, values if isinstance(values, Blocks) else [(values, weight)])
        if totals.partial is not None:
            raise ValueError(
                f"Row {totals.partial} of multinomial counts has a missing cell. The likelihood is that of the counts "
                "given their total, which is then unknown: fill the cell, or leave out the whole row."
            )
        total, n = totals.total, totals.n
        return cls(n_columns_of(values), max(round(total / n), 1) if n > 0 else 1)

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return self.n_categories

    def default_prior(self, n_components: int, *, concentration=1.0) -> Dirichlet:
        """Dirichlet distributions of the shares.

        Parameters
        ----------
        n_components : int
        concentration : float or array_like of shape (n_categories,)
        """
        row = np.broadcast_to(np.asarray(concentration, dtype=float), self.n_categories)
        return Dirichlet.from_rows([row] * n_components)

    def features(self, block: LinearTable) -> np.ndarray:
        """Counts."""
        return block.columns[0]

    def fold(self, natural: np.ndarray, complete: bool) -> np.ndarray:
        """Log shares multiply counts."""
        return np.maximum(natural, _LOWEST)

    def unfold(self, sums: np.ndarray, complete: bool) -> np.ndarray:
        """Counts add up."""
        return sums

    def log_base(self, values: np.ndarray) -> np.ndarray:
        """ln n! - sum of ln y!, nats."""
        return log_base_of_counts(
            values, lambda counts: log_rising(1.0, counts.sum(axis=1)) - log_rising(1.0, counts).sum(axis=1)
        )

    def log_predictive(self, block: LinearTable, posterior: Dirichlet) -> np.ndarray:
        """Dirichlet-multinomial log probabilities of rows, nats, (n_rows, n_components)."""
        counts = block.columns[0][:, :, None]
        concentration = posterior.concentration.reshape(-1, 1, self.n_categories).T
        total = log_rising(concentration.sum(axis=0), counts.sum(axis=0))
        return log_rising(concentration, counts).sum(axis=0) - total + block.base[:, None]

    def sample(
        self,
        point: np.ndarray,
        components: np.ndarray,
        rng: np.random.Generator,
        n_trials: np.ndarray | int | None = None,
    ) -> np.ndarray:
        """Counts drawn, floats, with these totals of rows; the mean total of the data if None."""
        probabilities = point.reshape(-1, self.n_categories)[components]
        return rng.multinomial(self.n_trials if n_trials is None else n_trials, probabilities).astype(float)

    def impute(self, block: LinearTable, point: np.ndarray, responsibilities: np.ndarray) -> np.ndarray:
        """Rows; those without any count become expected shares."""
        values = np.asarray(block.values, dtype=float)
        return np.where(np.isnan(values), responsibilities @ point.reshape(-1, self.n_categories), values)

    @property
    def identifies_components(self) -> bool:
        """No: that hangs on the totals of the rows."""
        return False

    def seeding_coordinates(self, block: LinearTable) -> np.ndarray:
        """Twice the square roots of counts, which spread by about 1 around their means."""
        return 2 * np.sqrt(block.columns[0].T)

    def quantiles(self, posterior: Dirichlet, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of the shares."""
        return self.parameters(posterior.quantiles(probability))

    def parameters(self, point: np.ndarray) -> dict[str, np.ndarray]:
        """Shares, (n_components, n_categories)."""
        return {"shares": point.reshape(-1, self.n_categories)}

    def parameters_of_draws(self, points: np.ndarray) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis."""
        return parameters_by_draw(self, points)

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> np.ndarray:
        """The shares, component by component; see `parameters`."""
        return parameters["shares"].ravel()

    def size_of_terms(self, table: LinearTable, weight: np.ndarray) -> float:
        """Logarithms are multiplied by counts."""
        return super().size_of_terms(table, weight) + float(weight @ np.nansum(table.values, axis=1, dtype=float))

    @property
    def cells_per_component(self) -> int:
        """Cells of natural parameters, and of statistics, of one component."""
        return self.n_categories
