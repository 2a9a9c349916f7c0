"""The kind of `VBMixture`: tables, weights of components, starts; `VBFactorAnalysis` is a mixture of one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skvbem._arguments import check_count, is_option
from skvbem.blocks import Blocks, blocks_of
from skvbem.emissions import Emission
from skvbem.emissions.specification import positive
from skvbem.errors import check_memory
from skvbem.estimators.emission_parameters import refuse_lags
from skvbem.estimators.labels import LabelKind, check_size, come_in_blocks, resolve_emission_prior, responsibilities_of
from skvbem.estimators.mixture.membership import check_membership, check_not_collinear, with_membership
from skvbem.fitted.fills import check_fill
from skvbem.fitted.mixture import FittedMixture
from skvbem.fitting.fit import generator_of, n_starts_of, names_starts, question
from skvbem.models.labels.distinct_rows import with_known_labels
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.starts import starts_of
from skvbem.models.mixture.weights import FiniteWeights, RowWeights, StickBreaking, Weights
from skvbem.optima.labels import LabelStarts, MixtureMethod
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.labels import read_labels
from skvbem.reading.names import check_names
from skvbem.reading.output import as_fit_saw, filled
from skvbem.reading.rows import TableReading
from skvbem.reading.tables import Table, read_table, show, weighted_rows
from skvbem.reading.weighted_blocks import WeightedTables

#: `weight_concentration_prior` whose strength is to be learned.
OPTIMIZED = "optimized"


class MixtureKind(LabelKind):
    """Mixtures of components for tables."""

    method = MixtureMethod()
    fitted = FittedMixture
    reading_parameters = LabelKind.reading_parameters | {"membership"}
    located_by: ClassVar[tuple[str, ...]] = ("labels",)
    prior_parameters: ClassVar[tuple[str, ...]] = ("weight_concentration_prior_type", "weight_concentration_prior")
    label = "component"
    draw = staticmethod(starts_of)

    def read(self, estimator, X, sample_weight, columns: ColumnGroups | None, where: Mapping) -> TableReading:
        """The reading of a table, or of blocks of one, with the labels of its rows where some are known."""
        owner, labels = type(estimator).__name__, where.get("labels")
        metadata = {"sample_weight": sample_weight} | ({} if labels is None else {"labels": labels})
        given = {"X": X, "metadata": metadata}
        if come_in_blocks(X):
            if labels is not None:
                raise ValueError(f"'labels' of {owner} need rows in memory; X comes in blocks.")
            return self._read_blocks(estimator, blocks_of(X), sample_weight, columns, given)
        table = read_table(X, owner)
        if columns is not None:
            check_names(table, estimator)
        table, weight, is_weighted = weighted_rows(table, sample_weight)
        names = {}
        if columns is None:
            columns, values = self.learned_columns(estimator, table)
            names = table.names_of_fit()
        else:
            values = columns.values(table)
        if labels is not None:
            n_rows = table.n_samples if is_weighted is None else len(is_weighted)
            rows = None if is_weighted is None else np.flatnonzero(is_weighted)
            labels = read_labels(labels, n_rows, rows, owner)
        return TableReading(columns, [(values, weight)], is_weighted, labels, names=names, given=given)

    def _read_blocks(self, estimator, X: Blocks, sample_weight, columns: ColumnGroups | None, given) -> TableReading:
        """The reading of the blocks of a table, whose values are checked once."""
        owner = type(estimator).__name__
        tables, names = WeightedTables(X, sample_weight, owner), {}
        if columns is None:
            first, options = tables.first, self.column_options(estimator)
            options = _with_membership(estimator, options, first)
            columns = ColumnGroups.learned_from_blocks(first, tables.tables, options)
            names = first.names_of_fit()
        blocks = tables.blocks.map(partial(_values_of, columns))
        return TableReading(columns, blocks, are_in_blocks=True, names=names, given=given)

    def learned_columns(self, estimator, table: Table) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups of columns, covariates of the component the last of them, and the values of each."""
        return self.read_groups(_with_membership(estimator, self.column_options(estimator), table), table)

    def check(self, estimator, X) -> None:
        """Refuse parameters that contradict each other, or rows that are not in memory."""
        self.check_numbers_of_factors(estimator, X)
        refuse_lags(type(estimator).__name__, estimator.emission)
        owner, method, concentration = type(estimator).__name__, estimator.method, estimator.weight_concentration_prior
        is_auto, has_named_init = estimator.n_components == "auto", names_starts(estimator)
        if estimator.membership is not None:
            check_membership(estimator)
        if method != "vb" and (is_auto or self.learns_prior(estimator)):
            choice = "n_components='auto'" if is_auto else f"weight_concentration_prior={OPTIMIZED!r}"
            raise ValueError(f"{choice} of {owner} needs method='vb', whose bound decides. Got method={method!r}.")
        if is_auto and not has_named_init:
            raise ValueError(f"n_components='auto' of {owner} makes its own starts. Got responsibilities in 'init'.")
        if is_auto and np.ndim(concentration):
            raise ValueError(
                f"n_components='auto' of {owner} needs one number as 'weight_concentration_prior'. Got "
                f"{concentration!r}."
            )
        is_hierarchical = has_named_init and estimator.init == "hierarchical"
        if (has_named_init and not is_auto and not is_hierarchical) or not come_in_blocks(X):
            return
        if not has_named_init:
            raise ValueError(f"The 'init' parameter of {owner} must be a name where X comes in blocks. Got an array.")
        choice = "n_components='auto'" if is_auto else "init='hierarchical'"
        raise ValueError(f"{choice} of {owner} needs rows in memory; X comes in blocks. Try it on some of the blocks.")

    def model(self, estimator, reading: TableReading) -> Mixture:
        """The mixture of `n_components`; of one, or of one for each label, where their number is to be found."""
        n_components, labels = 1 if estimator.n_components == "auto" else estimator.n_components, reading.labels
        if labels is not None:
            labels.check(estimator.n_components, type(estimator).__name__, self.label)
            if estimator.init == "hierarchical":
                raise ValueError(
                    f"init='hierarchical' of {type(estimator).__name__} joins rows whatever their labels. Take "
                    "init='auto' where 'labels' are given."
                )
            n_components = max(n_components, len(labels.names))
        emission = reading.emission()
        if getattr(estimator, "membership", None) is not None and estimator.method == "ml":
            check_not_collinear(estimator, emission, reading.columns)
        return self.model_of(estimator, reading, emission, n_components)

    def prior_in_words(self, estimator, columns: ColumnGroups) -> str:
        """The priors of weights and groups of columns; of a membership there are no weights."""
        if getattr(estimator, "membership", None) is None:
            return super().prior_in_words(estimator, columns)
        return ", ".join(repr(group.specification) for group in columns.groups)

    def weights(self, estimator, n_components: int) -> Weights:
        """The prior of the weights that the parameters of the estimator stand for."""
        name, owner, concentration = (
            "weight_concentration_prior",
            type(estimator).__name__,
            estimator.weight_concentration_prior,
        )
        if estimator.membership is not None:
            return RowWeights(n_components)
        base = concentration is None or is_option(concentration, OPTIMIZED)
        given = positive(owner, name, 1.0 if base else concentration)
        if estimator.weight_concentration_prior_type == "dirichlet_process":
            if given.ndim:
                raise ValueError(
                    f"The {name!r} parameter of {owner} must be a number for sticks broken in turn. Got "
                    f"{show(concentration)} instead."
                )
            return StickBreaking(n_components, float(given))
        if given.ndim and given.shape != (n_components,):
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a number or have one for each of the {n_components} "
                f"components. Got an array of shape {given.shape}."
            )
        return FiniteWeights(np.broadcast_to(given, n_components).copy())

    def model_of(self, estimator, reading: TableReading, emission: Emission, n_components: int) -> Mixture:
        """The mixture of some number of components of an emission."""
        check_size(emission, n_components, n_starts_of(estimator), estimator.max_memory, type(estimator).__name__)
        weights = self.weights(estimator, n_components)
        return Mixture(emission, weights, resolve_emission_prior(reading.columns, emission, n_components))

    def learns_prior(self, estimator) -> bool:
        """True if the concentration of the weights is learned."""
        return is_option(estimator.weight_concentration_prior, OPTIMIZED)

    def starts(self, estimator, model: Mixture, data, reading: TableReading, seed: tuple[int, ...]) -> Any:
        """Starts by the name of `init`, or statistics (n_cells, 1) of responsibilities given."""
        if names_starts(estimator):
            n_starts = n_starts_of(estimator) if model.n_components > 1 else 1  # with one component all are the same
            return LabelStarts(estimator.init, n_starts, seed, self.draw)
        n_rows = len(data) if reading.is_weighted is None else len(reading.is_weighted)
        given = responsibilities_of(estimator.init, n_rows, model.n_components, type(estimator).__name__)
        given = given if reading.is_weighted is None else given[reading.is_weighted]
        given = with_known_labels(given.T, None if reading.labels is None else reading.labels.codes).T
        ((*_, order),) = reading.arranged(model)
        return model.statistics_of(given if order is None else given[order], data)[:, None]

    def start_from(self, last: Any, model: Mixture, data, reading: TableReading) -> np.ndarray:
        """Statistics under the responsibilities of the last solution."""
        return model.statistics_of(
            (part for values, *_ in reading.arranged(model) for part in last.e_step(values)), data
        )

    def attributes(self, fitted: Any) -> dict[str, Any]:
        """Components, their weights and expected rows."""
        return {
            **super().attributes(fitted),
            "n_components_": fitted.model.n_components,
            "weights_": fitted.weights,
            "counts_": fitted.counts,
        }

    def drawn_like(self, like: TableReading, model: Mixture, point, rng: np.random.Generator):
        """Rows with the covariates of a reading."""
        given = like.columns.as_emission_takes(like.values)
        return self.fitted.drawn_at(model, point, len(like.values[0]), rng, given)[0]


def _values_of(columns: ColumnGroups, block: tuple) -> tuple[list[np.ndarray], np.ndarray | None]:
    """The values of each group of a table that was checked, and the weights beside it."""
    table, weight = block
    return columns.values(table, is_known=True), weight


def _with_membership(estimator, options: ColumnOptions, table: Table) -> ColumnOptions:
    """Options under which columns are read, covariates of the component the last group of them."""
    if getattr(estimator, "membership", None) is None:  # one component has no membership
        return options
    return options._replace(emission=with_membership(estimator, options, table))


def impute_rows(estimator, X, fill: str, random_state) -> Any:
    """X with missing cells filled by predictive means, or most probable categories, given their rows; or by draws."""
    check_fill(fill)
    fitted, reading = question(estimator, X)
    groups, values = fitted.groups, reading.values
    rng = generator_of(estimator, random_state) if fill == "draw" else None
    imputed = fitted.imputed_rows(values, fill, rng)
    return filled(X, groups.missing(values), groups.columns_of(imputed))


def sample_rows(estimator, n_samples, random_state, given=None) -> tuple[Any, np.ndarray]:
    """Rows drawn from the predictive distribution of a new row, and the components behind them."""
    check_count("n_samples", "sample", n_samples)
    fitted = estimator.fitted
    fitted.groups.check_covariates("sample", given)
    if given is not None:
        given = question(estimator, given)[1].values
        if n_samples not in (1, len(given[0])):
            raise ValueError(
                f"'given' has {len(given[0])} rows, and 'n_samples' is {n_samples}. Leave 'n_samples' out."
            )
        n_samples = len(given[0])
    numbers = int(n_samples) * (2 * len(fitted.groups.names) + 2)
    check_memory(
        f"{n_samples:.3g} rows drawn", numbers, "fewer at a time", estimator.max_memory, type(estimator).__name__
    )
    drawn, components = fitted.sample(int(n_samples), generator_of(estimator, random_state), given)
    return as_fit_saw(estimator, fitted.groups.columns_of(fitted.groups.as_list(drawn))), components
