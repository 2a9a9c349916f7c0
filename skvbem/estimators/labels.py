"""Kinds of models whose rows have one hidden label each, and an emission: mixtures and hidden Markov models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skvbem._arguments import is_list, is_option, is_whole
from skvbem._compat import StrOptions
from skvbem.blocks import is_dask
from skvbem.emissions import COVARIANCE_TYPES, Emission, EmissionSpecification
from skvbem.emissions.base import blocks_of, counts_factors, from_outside, parts_of
from skvbem.emissions.outside import check_cells, check_shapes
from skvbem.errors import DataWarning, TooLargeError, check_memory, warn
from skvbem.families.base import ConjugateFamily
from skvbem.families.normal_gamma import VARIANCE_FLOOR
from skvbem.fitted.labels import FittedEmissions
from skvbem.fitted.latent_states import states_of_components
from skvbem.fitting.fit import OBJECTIVES, n_starts_of
from skvbem.fitting.kind import Kind
from skvbem.models.labels.model import of_rows_alone
from skvbem.optima.component_moves import ComponentMoves
from skvbem.optima.factor_moves import FactorMoves
from skvbem.optima.labels import LabelStarts
from skvbem.optima.plan import FitPlan, Problem, best_fit
from skvbem.reading.base import warn_of_one_row
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.rows import warn_of_oddities
from skvbem.reading.tables import Table, are_observed, listed, show
from skvbem.vbem.fit import Fit, Move

# Multiplications of a step that are taken without a warning: about a second.
_MAX_WORK = 1e9
# Columns of a group whose names the title of a report has.
_MAX_NAMED = 4
# Nats by which rounding may move the objective of a fit without a warning.
_MAX_ROUNDING = 1.0
#: Constraints of the parameters of columns that mixtures and hidden Markov models have.
COLUMN_CONSTRAINTS: dict[str, Any] = {
    "emission": "no_validation",
    "covariance_type": [StrOptions(set(COVARIANCE_TYPES))],
    "categories": "no_validation",
    "handle_unknown": [StrOptions({"warn", "missing", "error"})],
}


class LabelKind(Kind):
    """Models whose rows have one hidden label each."""

    reading_parameters = Kind.reading_parameters | {"emission", "covariance_type"}
    # The score that a search has by default needs known hyperparameters; the bound does not.
    default_score = "lower_bound"
    #: Name of the hidden label of a row.
    label: ClassVar[str]
    #: Statistics of starts, as `LabelStarts` draws them.
    draw: ClassVar[Callable[..., np.ndarray]]

    @abstractmethod
    def model_of(self, estimator, reading: Any, emission: Emission, n_components: int) -> Any:
        """The model of some number of components of an emission."""

    def leads_nowhere(self, fitted: Any) -> bool:
        """True if no column depends on some factor."""
        model, k = fitted.model, fitted.model.n_components
        first, natural = model.first_emission_cell, fitted.natural_of_q
        for part in parts_of(model.emission):
            cells = slice(first, first := first + len(part.component_of_cell(k)))
            if part.hidden is not None and part.hidden.are_unknown(natural[cells]).any():
                return True
        return False

    def column_options(self, estimator) -> ColumnOptions:
        """The emission of the columns as a user gives it, and options under which they are read."""
        return ColumnOptions(
            type(estimator).__name__,
            estimator.emission,
            estimator.covariance_type,
            estimator.categories,
            estimator.missing_values,
            estimator.handle_unknown,
        )

    def learned_columns(self, estimator, table: Table) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups of columns that the `emission` parameter makes of a table, and the values of each."""
        return self.read_groups(self.column_options(estimator), table)

    @staticmethod
    def read_groups(options: ColumnOptions, table: Table) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups of columns that options make of a table, and the values of each."""
        columns, values = ColumnGroups.learned(table, options)
        if not are_observed(columns.modeled(values)).any():
            raise ValueError(f"X must have an observed cell. Got {table.n_samples} x {table.n_columns} missing ones.")
        return columns, values

    def check_numbers_of_factors(self, estimator, X) -> None:
        """Refuse factors too many for memory, and numbers of them to be chosen without a bound, or rows in memory."""
        options = self.column_options(estimator)
        emission, owner = options.emission, options.owner
        groups = emission if is_list(emission) else [("", emission, None)]
        named = [group for group in groups if is_list(group) and len(group) in (2, 3)]
        of_groups = [getattr(group[1], "n_factors", None) for group in named]
        numbers = [n for n in of_groups if n is not None]
        if not numbers:
            return
        most = max((int(n) for n in numbers if is_whole(n)), default=0)
        check_memory(f"{most:.3g} factors", 4.0 * most**2, "fewer factors", estimator.max_memory, owner)
        if not any(is_option(n, "auto") for n in numbers):
            return
        choice = "n_factors='auto' of FactorGaussian"
        if estimator.method != "vb":
            raise ValueError(
                f"{choice} needs method='vb' of {owner}, whose bound decides. Got method={estimator.method!r}. Fit by "
                "'vb' first, and give the 'n_factors_' found as a number."
            )
        if come_in_blocks(X):
            raise ValueError(f"{choice} needs rows in memory; X comes in blocks. Try it on some of the blocks.")

    def compiled(self, estimator, model, reading: Any, n_starts: int) -> Any:
        """Rows as the model takes them; an emission from outside the library is checked on the first of them."""
        data = reading.compiled(model)
        if from_outside(model.emission):
            first = next(iter(data.parts))
            check_shapes(model.emission, first.table, model.prior.blocks[-1], model.n_components)
        return data

    def best_fit(self, estimator, model, data, reading: Any, run: Any) -> tuple[Any, FitPlan, Fit, dict]:
        """The best fit, also among models of other numbers of components or factors where these are to be chosen."""
        is_auto = vars(estimator).get("n_components", 1) == "auto"
        if not (is_auto or counts_factors(model.emission)):
            return super().best_fit(estimator, model, data, reading, run)

        def tell(move: Move) -> None:
            n = move.n_components
            factors = "".join(f", factors {' '.join(map(str, of_group))}" for of_group in move.n_factors)
            many = f"{n} {self.label}{'s' * (n > 1)}{factors}"
            print(f"[{type(estimator).__name__}] {move.kind}: {many}, lower_bound {move.lower_bound:.6f}")

        starts = LabelStarts(estimator.init, n_starts_of(estimator), run.seed, self.draw)
        of_any_size = FitPlan(self.method, run.seed, starts, run.limits, explore=True, effort=run.effort)
        problem = Problem(
            model,
            data,
            run.form,
            plan_of=(lambda other: of_any_size) if is_auto else run.plan,
            stopped=lambda: run.report.stopped,
            tell=tell if estimator.verbose else lambda move: None,
            model_of=partial(self.model_of, estimator, reading),
            moves_of=ComponentMoves if is_auto else FactorMoves,
            **run.options,
        )
        model, plan, fit, moves = best_fit(problem)
        return model, plan, fit, {"moves_": moves}

    def new_starts(self, plan: FitPlan, seed: tuple[int, ...]) -> Any:
        """As many starts around rows that lie apart."""
        return LabelStarts("k-means++", plan.n_starts, seed, self.draw)

    def presentation(self, estimator, reading) -> dict[str, Any]:
        """Names of the labels that were given."""
        return {} if reading.labels is None else {"names": tuple(reading.labels.names)}

    def attributes(self, fitted: Any) -> dict[str, Any]:
        """The columns, and their parameters given the label."""
        groups = fitted.groups.groups
        state: dict[str, Any] = {
            "parameters_": {group.name: each for group, each in zip(groups, fitted.parameters()) if each},
            "groups_": {group.name: list(group.names) for group in groups},
            "categories_": {
                name: levels for group in groups for name, levels in zip(group.names, group.levels) if len(levels)
            },
            "n_free_parameters_": fitted.n_free_parameters,
        }
        named = {"component_names_": fitted.component_names} if fitted.names else {}
        return state | named | fitted.hyperparameters()

    def data_attributes(self, fitted: Any, reading, data, before: Mapping | None) -> dict[str, Any]:
        """Use of the labels: in use, empty, duplicates."""
        natural, _ = fitted.form.of(fitted.model.prior, fitted.statistics[:, None])
        model, rows = of_rows_alone(fitted.model, data)
        divergences = model.divergences(natural[:, 0], rows)
        return {"latent_states_": {self.label: states_of_components(fitted.counts, divergences)}}

    def warn_of_data(self, estimator, reading, model, data) -> None:
        """Warn of one row, of steps that take seconds, of columns that say nothing."""
        if len(data) == 1:
            warn_of_one_row()
        n_starts, parts = n_starts_of(estimator), parts_of(model.emission)
        work = n_starts * sum(part.work_without_rows(model.n_components) for part in parts)
        if work > _MAX_WORK:
            widest = max(part.n_columns for part in parts if part.work_without_rows(1))
            warn(
                f"Each step inverts the covariance matrices of {widest} columns of all {self.label}s in {n_starts} "
                f"start{'s' * (n_starts > 1)}, about {work:.2g} multiplications: it takes seconds, whatever the number "
                "of rows is, and a fit takes dozens of steps. Give fewer columns, take covariance_type='diag' or "
                "'tied', or a smaller 'n_init'.",
                DataWarning,
            )
        warn_of_oddities(reading.as_independent, model.emission, model.n_components, len(data), data.total_weight)

    def warn_of_fit(self, estimator, fitted: FittedEmissions, data) -> None:
        """Warn of components without width, and of rounding that shows."""
        stopped = fitted.at_floor() if estimator.method == "ml" else []
        if stopped:
            label = self.label.capitalize()
            who = f"{label} {stopped[0]} has" if len(stopped) == 1 else f"{label}s {listed(map(str, stopped))} have"
            warn(
                f"{who} no width in some direction: the variance there is the floor of {VARIANCE_FLOOR:g} times that "
                f"of X, without which the likelihood has no maximum. Take fewer {self.label}s, or method='vb' or "
                "'map'.",
                DataWarning,
            )

        rounding = fitted.model.rounding(fitted.form, fitted.statistics[:, None])[0]
        if _MAX_ROUNDING < rounding < np.inf:
            warn(
                f"Rounding may move {OBJECTIVES[estimator.method]} by up to {rounding:.2g} nats: terms that cancel in "
                f"it are that large for rows of total weight {data.total_weight:g}. Each row is taken as observed as "
                "often as it weighs: if the weights are sizes or shares instead, divide 'sample_weight' by their mean.",
                DataWarning,
            )

    def reservations(self, fitted: FittedEmissions) -> list[str]:
        """Components whose width is a floor."""
        stopped = fitted.at_floor() if fitted.form.prior_share == 0.0 else []
        if not stopped:
            return []
        who = listed(map(str, stopped))
        return [f"No width in some direction: {self.label} {who}. The variance there is a floor, not found by data."]

    def title(self, fitted: FittedEmissions) -> str:
        """Number of components, and the emission of each group of columns."""
        n, words = fitted.model.n_components, []
        for group in fitted.groups.groups:
            n_columns = len(group.names)
            columns = listed(group.names) if n_columns <= _MAX_NAMED else f"{n_columns} columns"
            words.append(f"{group.specification!r} of {columns}")
        return f"{n} {self.label}{'s' * (n > 1)}, {'; '.join(words)}"

    def prior_in_words(self, estimator, columns: ColumnGroups) -> str:
        """Parameters of the prior, and the emissions, which hold theirs."""
        words = [super().prior_in_words(estimator, columns), *(repr(group.specification) for group in columns.groups)]
        return ", ".join(filter(None, words))

    def hidden(self, fitted: FittedEmissions) -> tuple:
        """The label."""
        return (self.label,)


def come_in_blocks(X) -> bool:
    """True if rows come in blocks, read or not, so that they are never in memory together."""
    return getattr(X, "are_in_blocks", False) is True or is_dask(X)


def check_size(
    emission: Emission, n_components: int, n_starts: int, max_memory: float, owner: str, more_cells: int = 0
) -> None:
    """Refuse components and starts that take more memory than the limit, before anything is allocated.

    A component has the cells of the emission and `more_cells`.
    """
    cells = emission.cells_per_component + more_cells
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


def resolve_emission_prior(groups: ColumnGroups, emission: Emission, n_components: int) -> ConjugateFamily:
    """The prior of the emission that the parameters of its groups' specifications stand for."""
    parts = parts_of(emission)
    options = [group.specification.prior_options(part, group.names) for group, part in zip(groups.groups, parts)]
    if len(options) == 1:
        prior = emission.default_prior(n_components, **options[0])
    else:
        prior = emission.default_prior(n_components, options=options)  # type: ignore[call-arg]
    for group, part, of_group in zip(groups.groups, parts, blocks_of(emission, prior)):
        if from_outside(part):
            check_cells(part, of_group, n_components)
        if not np.all(of_group.is_valid):
            raise _no_density(of_group, group.specification)
    return prior


def _no_density(prior: ConjugateFamily, specification: EmissionSpecification) -> ValueError:
    """The error of parameters of a group of columns that make no density."""
    names = specification.get_params(deep=False)
    owner, several = type(specification).__name__, len(names) > 1
    who = f"The parameter{'s' * several} {listed(map(repr, names))} of {owner}" if names else owner
    makes = f"{who} make{'s' * (not several)} no prior for this X"
    least = np.min(prior.coordinates)
    if np.isfinite(prior.coordinates).all() and not np.any(prior.signed) and least <= 0:
        return ValueError(f"{makes}: numbers of a {type(prior).__name__} prior must be > 0, and one is {least:g}.")
    return ValueError(
        f"{makes}: in the units of the data its numbers exceed the range of floats. Leave them at their defaults, or "
        "measure X in another unit."
    )
