r"""Specifications: small estimators that hold all that is particular to a family of columns, as users name it.

A specification holds the parameters of a prior :math:`p(\theta)` and makes, of a table, the emission
:math:`p(y \mid k, \theta)` and that prior. Whoever reads a table, warns, draws or forecasts asks it; nothing above this
floor names a family. It derives from scikit-learn's BaseEstimator, so that it has `get_params` and `set_params`, can be
cloned, and its parameters can be searched in grids: ``emission__covariance_type``.

A specification is a value: `fit` clones it, and no method changes it. Parameters that make no prior are refused by the
functions at the end, which name them and whose they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr
from sklearn.base import BaseEstimator

from skvbem._arguments import is_option
from skvbem._compat import SuggestingMixin
from skvbem._names import shown
from skvbem.blocks import Blocks
from skvbem.emissions.base import Emission
from skvbem.emissions.profiles import Numbers, Probabilities

#: Parameters by name, or ends of their intervals: arrays (n_components, ...), as `parameters_` has them.
Parameters = Mapping[str, np.ndarray]
#: Lower and upper ends of credible intervals, by parameter; None without a posterior.
Ends = tuple[Parameters, Parameters] | None
#: A column as displays draw it.
Profile = Numbers | Probabilities


class EmissionSpecification(SuggestingMixin, BaseEstimator, ABC):
    """A family of columns as a user says it: which cells it takes, its prior, and what is told of its fit.

    A family of numbers derives from `NumericSpecification`, which needs less.
    """

    # What `check_parameters` asks of single parameters, as in scikit-learn.
    _parameter_constraints: ClassVar[dict] = {}

    #: True if columns hold categories of any type, which come as codes 0, 1, ... of their levels; else numbers.
    holds_categories: ClassVar[bool] = False
    #: True if parameters of categories are a table: columns are then nodes with a table in networks.
    has_table: ClassVar[bool] = False
    #: True if the order of categories matters.
    has_order: ClassVar[bool] = False
    #: The condition on numbers, said where one is `impossible`: "counts are whole numbers >= 0".
    wanted: ClassVar[str] = ""
    #: The largest number, without its sign, and what is said of larger ones.
    largest: ClassVar[float] = np.inf
    if_larger: ClassVar[str] = ""
    #: True if columns are given, and no distribution of theirs is modeled; none of their cells may be missing.
    are_given: ClassVar[bool] = False
    #: Columns of a measurement, of which parameters are: two where these are its ends.
    columns_of_each: ClassVar[int] = 1
    #: True if cells have means and deviations.
    has_moments: ClassVar[bool] = False
    #: Of columns that go round in a circle, the number that is as good as 0.
    period: float | None = None
    #: Where a column that holds one value does so, in words; see `needs_variation` and `measured`.
    where_measured: ClassVar[str] = "wherever observed"
    #: Parameters of families that have them: columns that explain these, how many earlier rows do, columns in groups
    #: of their own, and the type of covariance matrices.
    covariates: Any = ()
    lags: Any = 0
    groups: Any = None
    covariance_type: Any = None
    #: True if `covariances` gives those of columns, over which ellipses can be drawn.
    has_covariances: ClassVar[bool] = False

    @property
    def needs_variation(self) -> bool:
        """True if a column that holds one value wherever it is observed tells no component from another."""
        return False

    def check_parameters(self) -> None:
        """Refuse parameters that are wrong for any table, before a table is read."""
        self._validate_params()

    # Reading ----------------------------------------------------------------------------------------------------------

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Boolean array of the numbers that no member of the family can make. Missing ones, NaN, are not asked.

        Parameters
        ----------
        values : ndarray of float
        """
        return np.zeros(np.shape(values), dtype=bool)

    def measured(self, values: np.ndarray) -> np.ndarray:
        """Numbers (n_rows, n_columns) that tell components apart by their size, NaN in place of others."""
        return values

    def stored(self, values: np.ndarray) -> np.ndarray:
        """Numbers (n_rows, n_columns), NaN where missing, as `for_data` takes them."""
        return values

    # The model --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> Emission:
        """The emission of a table, with the units in which it measures.

        For categories, a keyword `n_categories` has the number of each column.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns), or Blocks of (values, weight)
        weight : ndarray of shape (n_rows,), optional
        """

    def prior_options(self, emission: Any, names: Sequence[str]) -> dict[str, Any]:
        """Keyword arguments of the emission's `default_prior` for the prior that this specification asks for.

        Parameters
        ----------
        emission : Emission
            As `for_data` makes it.
        names : sequence of str
            Its columns, for messages.

        Raises
        ------
        ValueError
            If a parameter makes no prior over these columns; the message names it.
        """
        return {}

    def positive(self, name: str, names: Sequence[str]) -> np.ndarray:
        """A parameter of the prior as positive floats, for `prior_options`: one number, or one for each column.

        Parameters
        ----------
        name : str
            Name of the parameter.
        names : sequence of str
            Names of the columns.

        Returns
        -------
        ndarray of shape () or (n_columns,)

        Raises
        ------
        ValueError
            If it is anything else; the message names the parameter and the class.
        """
        owner, n = type(self).__name__, len(names)
        return positive_of_columns(owner, name, getattr(self, name), n, "one for each of its columns")

    # Parameters that are given in place of a fit ----------------------------------------------------------------------

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Parameters that a user gives, as arrays whose first axes are components and columns.

        Parameters
        ----------
        parameters : mapping of str to array-like
            By name, as `parameters_` of a fitted estimator has them.

        Raises
        ------
        ValueError
            If one is lacking, or is none of this family.
        TypeError
            If the family takes none.
        """
        raise TypeError(f"Parameters of {type(self).__name__} cannot be given: only a fit finds them.")

    def with_given(self, parameters: Parameters) -> EmissionSpecification:
        """The specification with those of some parameters that all components share, as `for_data` would find them.

        Parameters
        ----------
        parameters : mapping of str to ndarray
            As `checked_parameters` returns them.
        """
        return self

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """Rows as `for_data` takes them, with the means and deviations of all components, for units of measure.

        Parameters
        ----------
        parameters : mapping of str to ndarray
            As `checked_parameters` returns them.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
        """
        raise TypeError(f"{type(self).__name__} has no typical rows.")

    # What is said of a fit --------------------------------------------------------------------------------------------

    def attributes(self, emission: Any, parameters: Parameters, prior: Any, posterior: Any) -> dict[str, Any]:
        """Attributes of a fitted estimator besides `parameters_`, by name.

        Parameters
        ----------
        emission : Emission
        parameters : mapping of str to ndarray
        prior : ConjugateFamily
            As it was resolved.
        posterior : ConjugateFamily or None
            None if the fit is a point.
        """
        return {}

    @abstractmethod
    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Expected value of each column in each component.

        Parameters
        ----------
        parameters : mapping of str to ndarray
        levels : sequence of ndarray
            Levels of each column of categories; empty for numbers.

        Returns
        -------
        list of ndarray of shape (n_components,), or (n_components, n_levels) of probabilities
        """

    def value_of_mean(self, mean: np.ndarray) -> np.ndarray:
        """Value that a mean over components of `expected` stands for: itself, but for angles."""
        return mean

    def exposure(self, values: np.ndarray) -> np.ndarray | float:
        """Factor of each row by which expected values become those of its cells, such as the total of shares."""
        return 1.0

    @abstractmethod
    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Ends, levels: Sequence[np.ndarray]
    ) -> list[Profile]:
        """Columns as displays draw them.

        Parameters
        ----------
        names : sequence of str
        parameters : mapping of str to ndarray
        intervals : pair of mappings, or None
            Lower and upper ends of credible intervals, by parameter.
        levels : sequence of ndarray
            Levels of each column of categories; empty for numbers.
        """

    def explained_by(self, covariates: Sequence[str], names: Sequence[str]) -> EmissionSpecification:
        """The family in which other columns explain these, as edges of networks say.

        Raises
        ------
        ValueError
            If there is none; the message goes on after the names of both.
        """
        raise ValueError("there is no conjugate prior for a family of that kind whose parameters depend on numbers")

    def further_rows(
        self, names: Sequence[str], parameters: Parameters, ends: Ends, levels: Sequence[np.ndarray] = ()
    ) -> list[tuple]:
        """Rows of reports beyond `profiles`: labels, values (n_components,), and ends of intervals or None."""
        return []

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray] | None:
        """Probabilities that cells hold less than they do, and at most as much, in each component.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns)
            As `stored` returns them, and what is given for them beside.
        parameters : mapping of str to ndarray

        Returns
        -------
        below, up_to : ndarray of shape (n_components, n_rows, n_columns), or None
            NaN of missing cells, equal of densities. None of columns without an order, or without a distribution here.
        """
        return None

    def cumulative_of_values(self, values: np.ndarray, parameters: Parameters) -> np.ndarray | None:
        """Probabilities that cells, or measurements behind them, are at most some values: forecasts are of these.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns)
            Columns that hang on others are not among them.
        parameters : mapping of str to ndarray

        Returns
        -------
        ndarray of shape (n_components, n_rows, n_columns), or None
            As of `cumulative_of_cells`.
        """
        of_cells = self.cumulative_of_cells(values, parameters)
        return None if of_cells is None else of_cells[1]

    def covariances(self, parameters: Parameters, columns: Sequence[int]) -> np.ndarray:
        """Covariance matrices of some columns in each component, (n_components, n, n), if there are any."""
        raise TypeError(f"{type(self).__name__} has no covariances.")


class NumericSpecification(EmissionSpecification):
    """Columns of numbers, each with a mean and a deviation in each component."""

    has_moments: ClassVar[bool] = True

    #: True if `cumulative` gives the distribution of a cell, of which forecasts have intervals.
    has_cumulative: ClassVar[bool] = False
    #: True if cells are whole numbers.
    holds_counts: ClassVar[bool] = False
    #: True if one of the parameters has the name "means".
    has_means: ClassVar[bool] = False

    @abstractmethod
    def means(self, parameters: Parameters) -> np.ndarray:
        """Expected numbers, (n_components, n_columns): monotone functions of a parameter of each column.

        Those that several parameters decide are a parameter of their own, which the emission returns with the others:
        draws then have intervals of them. Reports show none otherwise.
        """

    @abstractmethod
    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Standard deviations of numbers, (n_components, n_columns): as the means, of a parameter each."""

    def typical_rows(self, parameters: Parameters) -> np.ndarray:
        """For each component a row a deviation below its means, and one above."""
        means, deviations = self.means(parameters), self.deviations(parameters)
        return np.concatenate([means - deviations, means + deviations])

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that cells with these means and deviations are at most some values, if these say it."""
        raise TypeError(f"{type(self).__name__} has no cumulative probabilities.")

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray] | None:
        """`cumulative` at the cells, and of counts at one less."""
        if not self.has_cumulative:
            return None
        means, deviations = self.means(parameters)[:, None], self.deviations(parameters)[:, None]
        up_to = self.cumulative(values, means, deviations)
        below = self.cumulative(values - 1, means, deviations) if self.holds_counts else up_to
        missing = np.isnan(values)
        return np.where(missing, np.nan, below), np.where(missing, np.nan, up_to)

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """The means, column by column."""
        return list(self.means(parameters).T)

    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Ends, levels: Sequence[np.ndarray] = ()
    ) -> list[Profile]:
        """Means and deviations, with the interval of the parameter that decides them; without one if several do."""
        means, deviations = self.means(parameters), self.deviations(parameters)
        ends = deviation_ends = None
        if intervals is not None:
            ends = _ends_of(self.means, parameters, intervals)
            if len(parameters) > 1 and all(parameters.keys() <= each.keys() for each in intervals):
                deviation_ends = _ends_of(self.deviations, parameters, intervals)
        return [
            Numbers(name, means[:, j], deviations[:, j], _of_column(ends, j), _of_column(deviation_ends, j))
            for j, name in enumerate(names)
        ]


class NormalSpecification(NumericSpecification):
    """Columns of numbers that are normally distributed in each component."""

    has_cumulative: ClassVar[bool] = True

    def cumulative(self, values: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
        """Probabilities that normally distributed cells are at most some values."""
        return ndtr((values - means) / deviations)


def _ends_of(
    function: Callable[[Parameters], np.ndarray], parameters: Parameters, intervals: tuple[Parameters, Parameters]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Ends of the interval of a number that one parameter decides; None if it has none, or several decide.

    Lower ends of several parameters together are no quantile of what they decide.
    """
    known = [name for name in parameters if all(name in each for each in intervals)]
    here = function(parameters)
    deciding = [
        name
        for name in known
        if not all(np.array_equal(function({**parameters, name: each[name]}), here, True) for each in intervals)
    ]
    if len(deciding) > 1 or (not deciding and len(known) < len(parameters)):
        return None
    one, other = (function({**parameters, **{name: each[name] for name in known}}) for each in intervals)
    return np.minimum(one, other), np.maximum(one, other)


def _of_column(ends: tuple[np.ndarray, np.ndarray] | None, j: int) -> tuple[np.ndarray, np.ndarray] | None:
    return None if ends is None else (ends[0][:, j], ends[1][:, j])


class ProbabilitySpecification(EmissionSpecification):
    """Columns of numbers that are told by one probability each."""

    #: Its name among the parameters.
    parameter: ClassVar[str]

    @staticmethod
    @abstractmethod
    def label(name: str) -> str:
        """The event whose probability a column has."""

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """The probabilities, column by column."""
        return list(parameters[self.parameter].T)

    def profiles(
        self, names: Sequence[str], parameters: Parameters, intervals: Ends, levels: Sequence[np.ndarray] = ()
    ) -> list[Profile]:
        """One probability for each column, with its interval."""
        profiles: list[Profile] = []
        for j, name in enumerate(names):
            low_high = None
            if intervals is not None:
                low_high = intervals[0][self.parameter][:, [j]], intervals[1][self.parameter][:, [j]]
            profiles.append(Probabilities(name, [self.label(name)], parameters[self.parameter][:, [j]], low_high))
        return profiles


#: Largest count: the log likelihood of a cell, a difference of numbers 27 times as large, then errs by some 1e-2 nats.
LARGEST_COUNT = 1e12


class CountCells:
    """Cells that are counts."""

    wanted: ClassVar[str] = "counts are whole numbers >= 0"
    holds_counts: ClassVar[bool] = True
    largest: ClassVar[float] = LARGEST_COUNT
    if_larger: ClassVar[str] = (
        f"of counts above {LARGEST_COUNT:g} the likelihood keeps no digits. Count in larger units"
    )

    def impossible(self, values: np.ndarray) -> np.ndarray:
        """Negative numbers and fractions."""
        return (values < 0) | (values != np.floor(values))


#: Value of a parameter of a prior that is hidden itself, and learned from all components.
HIERARCHICAL = "hierarchical"
#: Value of a parameter of a prior that is hidden itself, and learned for each column from all components.
BY_COLUMN = "by_column"


def is_hierarchical(value: Any) -> bool:
    """True if a parameter of a prior is hidden itself."""
    return is_option(value, HIERARCHICAL)


# Positive parameters of priors: beyond these their digamma functions, or their inverses, leave the floats.
_SMALLEST, _LARGEST = 1e-300, 1e300


def positive(owner: str, name: str, value) -> np.ndarray:
    """A parameter as positive floats; a ValueError names it, and whose it is, if it is anything else."""
    numbers = floats(owner, name, value)
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ValueError(f"The {name!r} parameter of {owner} must be > 0 and finite. Got {shown(value)} instead.")
    if not ((numbers >= _SMALLEST).all() and (numbers <= _LARGEST).all()):
        raise ValueError(
            f"The {name!r} parameter of {owner} must lie between {_SMALLEST:g} and {_LARGEST:g}. Got {shown(value)} "
            "instead."
        )
    return numbers


def positive_of_columns(owner: str, name: str, value, n_columns: int, each: str) -> np.ndarray:
    """A parameter as one positive float, or as one for each of so many columns."""
    numbers = positive(owner, name, value)
    if numbers.ndim and numbers.shape != (n_columns,):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number or have {n_columns} entries, {each}. Got an array "
            f"of shape {numbers.shape}."
        )
    return numbers


def finite(owner: str, name: str, value, shape: tuple) -> np.ndarray:
    """A parameter as a finite array of a shape."""
    wanted = f"a finite array of shape {shape}" if shape else "a finite number"
    array = floats(owner, name, value, wanted)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {shown(value)} instead.")
    return array


def floats(owner: str, name: str, value, wanted: str = "a number or an array-like of numbers") -> np.ndarray:
    """A parameter as floats."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"The {name!r} parameter of {owner} must be {wanted}. Got {shown(value)} instead.") from None
