"""What estimators of models whose rows have one hidden label each do alike: mixtures and hidden Markov models.

They read columns into groups, resolve the priors of their emissions, and warn of what makes no fit or refuse it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._compat import N_JOBS, Interval, IterationReport, StrOptions, check_feature_names_in, warn
from skvbem.blocks import Blocks, is_dask
from skvbem.emissions import COVARIANCE_TYPES, Emission
from skvbem.emissions.base import counts_factors, from_outside, parts_of
from skvbem.emissions.outside import check_shapes
from skvbem.errors import DataWarning, TooLargeError
from skvbem.estimators.base import OBJECTIVES
from skvbem.estimators.labels.emission_parameters import moved, nested_parameters, set_nested
from skvbem.estimators.labels.given_parameters import GivenEmission, given_emission
from skvbem.estimators.reporting import ReportingEstimator
from skvbem.families.normal_gamma import VARIANCE_FLOOR
from skvbem.fitted.base import Fitted, Solved
from skvbem.fitted.labels import FittedEmissions
from skvbem.fitted.latent_states import states_of_components
from skvbem.models.labels.model import of_rows_alone
from skvbem.optima.factor_numbers import FactorNumbers, Move, Search
from skvbem.reading.base import warn_of_one_row
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.numbers import are_observed
from skvbem.reading.oddities import warn_of_oddities
from skvbem.reading.tables import Table, listed, show
from skvbem.vbem.fit import Fit, FitPlan
from skvbem.vbem.posteriors import ML

# Multiplications of a step that are taken without a word: about a second.
_MAX_WORK = 1e9
# Columns of a group whose names the title of a report has.
_MAX_NAMED = 4
# What a fit tells of its data and of its way, besides priors.
_OF_DATA = frozenset({"batch_lower_bound_", "converged_", "counts_", "latent_states_", "lower_bounds_", "moves_"})
_OF_DATA |= {"n_iter_", "n_samples_", "restarts_", *OBJECTIVES.values()}
# Nats by which rounding may move the objective of a fit without a word.
_MAX_ROUNDING = 1.0


class EmissionEstimator(ReportingEstimator):
    """Parameters and methods that `VBMixture` and `VBHMM` share: those of rows with one label and an emission."""

    reading_parameters = ReportingEstimator.reading_parameters | {"emission", "covariance_type"}
    #: What the label of a row is called.
    _label: ClassVar[str]

    # Of the parameters that both have.
    _parameter_constraints: ClassVar[dict] = {
        "emission": "no_validation",
        "covariance_type": [StrOptions(set(COVARIANCE_TYPES))],
        "categories": "no_validation",
        "method": [StrOptions({"vb", "map", "ml"})],
        "map_basis": [StrOptions({"natural", "probability"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "acceleration": ["boolean"],
        "handle_unknown": [StrOptions({"warn", "missing", "error"})],
        "missing_values": "no_validation",
        "max_memory": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    @classmethod
    def _told_of_unknown(cls, name: str) -> str:
        where = moved(cls.__name__, [name]) if "emission" in cls._get_param_names() else ""
        return where or super()._told_of_unknown(name)

    def get_params(self, deep=True):
        """Parameters of this estimator and, by nested names, of its emissions.

        Parameters
        ----------
        deep : bool, default=True
            Whether those of emissions are among them, such as "emission__covariance_type" of an object, or
            "emission__visits__shape_prior" of the emission named "visits" in a list.

        Returns
        -------
        dict of str to object
        """
        params = super().get_params(deep=deep)
        return params | nested_parameters(params.get("emission")) if deep else params

    def set_params(self, **params):
        """Set parameters of this estimator or, by nested names, of its emissions.

        Parameters
        ----------
        **params
            By the names that `get_params` has.

        Returns
        -------
        self : estimator instance

        Raises
        ------
        ValueError
            If there is no such parameter; of one that emissions have the message says where it is.
        """
        nested = {name: value for name, value in params.items() if name.startswith("emission__")}
        direct = {name: value for name, value in params.items() if name not in nested}
        super().set_params(**direct)
        if nested:
            self.emission = set_nested(self.emission, nested, type(self).__name__)
        return self

    @abstractmethod
    def _model_with(self, reading: Any, emission: Emission, n_components: int) -> Any:
        """The model of some number of components of an emission."""

    def _solved(self, reading: Any, report: IterationReport, warn_of_data: Callable | None = None) -> Solved:
        solved, labels = super()._solved(reading, report, warn_of_data), getattr(reading, "labels", None)
        if labels is None:
            return solved
        return replace(solved, fitted=replace(solved.fitted, names=tuple(labels.names)))

    def _fitted_to(self, reading: Any) -> Any:
        labels = getattr(reading, "labels", None)
        return self._fitted_ if labels is None else self._fitted_.with_labels(labels)

    def _other_data(self, where: Mapping) -> str:
        if getattr(self._fitted_, "names", ()) and where.get("labels") is None:
            return f" This fit knew labels of rows: give {type(self).__name__} the same 'labels' again, beside X."
        return super()._other_data(where)

    def _best_fit(self, model, data, reading, report) -> tuple[Any, FitPlan, Fit, dict]:
        if not counts_factors(model.emission):
            return super()._best_fit(model, data, reading, report)
        factors = FactorNumbers(
            partial(self._model_with, reading, n_components=model.n_components),
            self._search(data, reading, report, self._seed(self.random_state)),
        )
        model, plan, fit, moves = factors.run(model.emission)
        return model, plan, fit, {"moves_": moves}

    def _search(self, data, reading, report, seed: tuple[int, ...]) -> Search:
        """How models of other numbers of factors, or components, are fitted to the data."""
        return Search(
            self._method,
            data,
            lambda other: self._plan(other, data, reading, seed),
            self._limits_of_run(),
            stopped=lambda: report.stopped,
            tell=self._tell,
            **self._options(report),
        )

    def _tell(self, move: Move) -> None:
        """Say where a long search for numbers of components or factors is."""
        if self.verbose:
            n, owner = move.n_components, type(self).__name__
            factors = "".join(f", factors {' '.join(map(str, of_group))}" for of_group in move.n_factors)
            many = f"{n} {self._label}{'s' * (n > 1)}{factors}"
            print(f"[{owner}] {move.kind}: {many}, lower_bound {move.lower_bound:.6f}")

    def _check_numbers(self, X) -> None:
        """Refuse numbers of factors to be chosen where there is no bound to choose by, or no rows in memory."""
        emission = self._given_emission()
        groups = emission if isinstance(emission, (list, tuple)) else [("", emission, None)]
        specifications = [group[1] for group in groups if len(group) == 3]
        if not any(getattr(each, "n_factors", None) == "auto" for each in specifications):
            return
        asked = "n_factors='auto' of FactorGaussian"
        if self.method != "vb":
            raise ValueError(
                f"{asked} needs method='vb' of {type(self).__name__}, whose bound decides. Got "
                f"method={self.method!r}. Fit by 'vb' first, and give the 'n_factors_' found as a number."
            )
        if isinstance(X, Blocks) or is_dask(X) or getattr(X, "are_in_blocks", False):
            raise ValueError(f"{asked} needs rows in memory; X comes in blocks. Try it on some of the blocks.")

    def _learned_columns(self, table: Table) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups of columns that the `emission` parameter makes of a table, and the values of each."""
        owner, options = type(self).__name__, self._reading_options()
        columns, values = ColumnGroups.learned(table, self._given_emission(), owner, **options)
        if not are_observed(columns.modeled(values)).any():
            raise ValueError(f"X must have an observed cell. Got {table.n_samples} x {table.n_columns} missing ones.")
        return columns, values

    def _given_emission(self) -> Any:
        """What the columns hold, as users say it: a name, an object, a mapping or a list."""
        return self.emission

    def _reading_options(self) -> dict:
        """How columns are read."""
        return {
            "covariance_type": self.covariance_type,
            "categories": self.categories,
            "missing_values": self.missing_values,
            "handle_unknown": self.handle_unknown,
        }

    def _compiled(self, model, reading: Any, n_starts: int) -> Any:
        data = reading.compiled(model)
        if from_outside(model.emission):
            first = next(iter(data.chunks()))
            check_shapes(model.emission, first.table, model.prior.blocks[-1], model.n_components)
        return data

    def _continued_model(self, fitted: Fitted) -> Any:
        return fitted.model.updated(fitted.statistics)

    def _warn_of_data(self, reading, model, data) -> None:
        if len(data) == 1:
            warn_of_one_row()
        self._warn_of_cost(model)
        warn_of_oddities(reading.as_independent, model.emission, model.n_components, len(data), data.total_weight)

    def _warn_of_cost(self, model) -> None:
        n_starts, parts = self._n_starts(), parts_of(model.emission)
        work = n_starts * sum(part.work_without_rows(model.n_components) for part in parts)
        if work > _MAX_WORK:
            widest = max(part.n_columns for part in parts if part.work_without_rows(1))
            warn(
                f"Each step inverts the covariance matrices of {widest} columns of all {self._label}s in {n_starts} "
                f"start{'s' * (n_starts > 1)}, about {work:.2g} multiplications: it takes seconds, whatever the number "
                "of rows is, and a fit takes dozens of steps. Give fewer columns, take covariance_type='diag' or "
                "'tied', or a smaller 'n_init'.",
                DataWarning,
            )

    def _warn_of_fit(self, fitted: FittedEmissions, data) -> None:
        stopped = fitted.at_floor() if self.method == "ml" else []
        if stopped:
            label = self._label.capitalize()
            who = f"{label} {stopped[0]} has" if len(stopped) == 1 else f"{label}s {listed(map(str, stopped))} have"
            warn(
                f"{who} no width in some direction: the variance there is the floor of {VARIANCE_FLOOR:g} times that "
                f"of X, without which the likelihood has no maximum. Take fewer {self._label}s, or method='vb' or "
                "'map'.",
                DataWarning,
            )

        rounding = fitted.model.rounding(fitted.form, fitted.statistics[:, None])[0]
        if _MAX_ROUNDING < rounding < np.inf:
            warn(
                f"Rounding may move {OBJECTIVES[self.method]} by up to {rounding:.2g} nats: terms that cancel in it "
                f"are that large for rows of total weight {data.total_weight:g}. Each row is taken as observed as "
                "often as it weighs: if the weights are sizes or shares instead, divide 'sample_weight' by their mean.",
                DataWarning,
            )

    def _what_was_fitted(self, fitted: FittedEmissions) -> str:
        n, words = fitted.model.n_components, []
        for group in fitted.groups.groups:
            n_columns = len(group.names)
            columns = listed(group.names) if n_columns <= _MAX_NAMED else f"{n_columns} columns"
            words.append(f"{group.specification!r} of {columns}")
        return f"{n} {self._label}{'s' * (n > 1)}, {'; '.join(words)}"

    def _prior_in_words(self, columns: ColumnGroups) -> str:
        words = [super()._prior_in_words(columns), *(repr(group.specification) for group in columns.groups)]
        return ", ".join(filter(None, words))

    def _doubts_of_fit(self, fitted: FittedEmissions) -> list[str]:
        stopped = fitted.at_floor() if fitted.form.prior_share == 0.0 else []
        if not stopped:
            return []
        who = listed(map(str, stopped))
        return [f"No width in some direction: {self._label} {who}. The variance there is a floor, not found by data."]

    def _given(self, parameters, columns) -> GivenEmission:
        """What columns hold in each component, from parameters that are given in place of a fit."""
        self._validate_params()
        return given_emission(self, parameters, columns, self.n_components)

    def _take(self, given: GivenEmission, point_of_labels: Callable[[Any], tuple]) -> Self:
        """Publish parameters that were given in place of a fit; those of labels as points of a model's first blocks."""
        model = self._model_with(given.reading, given.emission, self.n_components)
        point = (*point_of_labels(model), given.point)
        fitted = self._fitted_type(given.reading.columns, model, ML, np.zeros(model.n_cells), given=point)
        state = dict(given.reading.names) | self._model_state(fitted)
        self._publish({name: value for name, value in state.items() if not _is_of_data(name)})
        return self

    def __getattr__(self, name):
        fitted, owner = vars(self).get("_fitted_"), type(self).__name__
        if fitted is not None and fitted.given is not None and _is_of_data(name):
            why = f"This {owner} has no {name!r}: its parameters were given, and not found by a fit to data."
            raise AttributeError(why, name=name, obj=self)
        return super().__getattr__(name)

    @staticmethod
    def _emission_state(fitted: FittedEmissions) -> dict:
        """The attributes that tell of the columns and of what their values are like given the label."""
        parameters = {group.name: of for group, of in zip(fitted.groups.groups, fitted.parameters())}
        state: dict[str, Any] = {
            "_fitted_": fitted.of_rows(),
            "parameters_": parameters,
            "groups_": {group.name: list(group.names) for group in fitted.groups.groups},
            "categories_": {
                name: levels
                for group in fitted.groups.groups
                if group.encoder is not None
                for name, levels in zip(group.names, group.encoder.categories_)
            },
            "n_free_parameters_": fitted.n_free_parameters,
        }
        named = {"component_names_": fitted.component_names} if fitted.names else {}
        return state | named | fitted.hyperparameters()

    def _data_state(self, fitted: FittedEmissions, reading, data, *, is_batch: bool = False) -> dict:
        natural, _ = fitted.form.of(fitted.model.prior, fitted.statistics[:, None])
        model, rows = of_rows_alone(fitted.model, data)
        divergences = model.divergences(natural[:, 0], rows)
        return {"latent_states_": {self._label: states_of_components(fitted.counts, divergences)}}

    def _hidden(self, fitted: FittedEmissions) -> tuple:
        return (self._label,)

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of `transform`: the name of the class in lower case, then 0, 1, ...

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, only compared with those that fit saw.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        check_feature_names_in(self, input_features, generate_names=False)
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{k}" for k in range(self._n_features_out)], dtype=object)

    @property
    def _n_features_out(self) -> int:
        """How many columns `transform` makes."""
        return self._fitted_.model.n_components


def _is_of_data(name: str) -> bool:
    """Whether an attribute tells of data or a prior, of which parameters that are given have none."""
    return name in _OF_DATA or name.endswith("_prior_")


def check_size(
    emission: Emission, n_components: int, n_starts: int, max_memory: float, owner: str, more_cells: int = 0
) -> None:
    """Refuse components and starts that take more memory than the limit, before anything is allocated.

    A component has the cells of the emission and `more_cells`.
    """
    cells = len(emission.component_of_cell(2)) - len(emission.component_of_cell(1)) + more_cells
    # the driver holds four points of each start; the least block of rows is 16
    n_bytes = 8.0 * n_components * n_starts * (4 * cells + 2 * 16)
    if n_bytes > max_memory:
        raise TooLargeError(
            f"{n_components} components of {cells} numbers each take at least {n_bytes:.4g} bytes in {n_starts} "
            f"start{'s' * (n_starts > 1)}; the 'max_memory' parameter of {owner} allows {max_memory:.4g}. Raise it, or "
            "take fewer components or starts."
        )


def responsibilities_of(init, n_rows: int, n_components: int, owner: str) -> np.ndarray:
    """Responsibilities given to start from, checked, (n_rows, n_components)."""
    whose = f"The 'init' parameter of {owner}"
    try:
        given = np.asarray(init, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{whose} must hold numbers, rows of one length. Got {show(init)} instead.") from None
    if given.shape != (n_rows, n_components):
        raise ValueError(
            f"{whose} must have a row for each of the {n_rows} rows of X and a column for each of the {n_components} "
            f"components. Got an array of shape {given.shape}."
        )
    bad = np.flatnonzero(~((given >= 0).all(axis=1) & np.isclose(given.sum(axis=1), 1.0)))
    if len(bad):
        raise ValueError(
            f"{whose} must have rows of responsibilities >= 0 that sum to 1. Row {bad[0]} is {show(given[bad[0]])}."
        )
    return given
