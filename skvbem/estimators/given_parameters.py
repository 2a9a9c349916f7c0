"""Parameters that a user gives in place of a fit: columns, emission and point that they stand for.

There are no data to read. Columns are those that the `emission` parameter names; units of measure, which no answer
depends on, come from typical rows of the components.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._arguments import are_texts, is_collection, is_option, is_whole
from skvbem._compat import check_parameters
from skvbem._names import did_you_mean
from skvbem.emissions import Emission
from skvbem.errors import check_memory
from skvbem.fitting.fit import attributes_of, is_of_data, published
from skvbem.fitting.kind import kind_of
from skvbem.reading.column_groups import ColumnGroups, EmissionReader, Group
from skvbem.reading.forms import names_columns
from skvbem.reading.rows import TableReading
from skvbem.reading.tables import Column, Table, listed, show
from skvbem.tables import as_distributions
from skvbem.vbem.posteriors import ML


@dataclass(frozen=True, eq=False)
class GivenEmission:
    """Columns and what they hold in each component, as a user says it.

    Parameters
    ----------
    reading : TableReading
        Of typical rows.
    emission : Emission
    point : object
        Of the emission.
    """

    reading: TableReading
    emission: Emission
    point: Any


def given_emission(estimator, parameters, columns, n_components: int) -> GivenEmission:
    """The emission of an estimator that was not fitted, at parameters of its groups.

    Parameters
    ----------
    estimator : VBMixture or VBHMM
    parameters : mapping
        Group to parameters by name; of one group alone these parameters.
    columns : int, sequence of str or None
        How many columns there are, or their names; None where one emission takes all.
    n_components : int

    Raises
    ------
    ValueError
        If groups, columns and parameters do not belong together; the message says which.
    """
    owner, emission = type(estimator).__name__, estimator.emission
    if is_option(emission, "auto"):
        raise ValueError(
            f"from_parameters of {owner} has no X that tells what columns hold: give 'emission', such as 'gaussian', "
            "Poisson(), or a list of (name, emission, columns)."
        )
    if not isinstance(parameters, Mapping):
        raise ValueError(
            f"The 'parameters' of {owner} must be a mapping of names to arrays, by group where there are several. Got "
            f"{show(parameters)} instead."
        )
    names = _names(estimator, parameters, columns)
    table = Table(names, 1, lambda j: Column(np.zeros(1)))
    reader = EmissionReader(owner, table.names, None, estimator.covariance_type)
    groups = reader.groups(emission)
    by_group = _by_group([group.name for group in groups], parameters, owner)
    checked = [group.specification.checked_parameters(of) for group, of in zip(groups, by_group)]
    groups = [group._replace(specification=group.specification.with_given(of)) for group, of in zip(groups, checked)]
    for group, of_group in zip(groups, checked):
        n_measured = len(group.columns) // group.specification.columns_of_each
        _check_sizes(group.name, of_group, n_measured, n_components, owner)
    rows = [group.specification.typical_rows(of_group) for group, of_group in zip(groups, checked)]
    cells = _cells_of_categories(groups, rows, table.names, estimator.categories)
    read = Table(names, max(map(len, cells.values()), default=1), lambda j: Column(cells[j]))
    column_groups = ColumnGroups.of_groups(read, groups, kind_of(estimator).column_options(estimator))
    for of_columns, of_group in zip(column_groups.groups, checked):
        _check_levels(of_columns, of_group, owner)
    made = column_groups.emission(rows, None)
    reading = TableReading(column_groups, [(rows, None)], names=table.names_of_fit())
    return GivenEmission(reading, made, made.point_of(column_groups.as_emission_takes(checked)))


def fit_of_parameters(estimator, parameters, columns, point_of_labels: Callable[[Any], tuple]) -> Any:
    """An estimator with parameters that were given in place of a fit, which it publishes.

    Parameters
    ----------
    estimator : VBMixture or VBHMM
    parameters, columns
        As of `given_emission`.
    point_of_labels : callable of model
        Points of the first blocks of its prior, those of the labels.
    """
    check_parameters(estimator)
    kind, given = kind_of(estimator), given_emission(estimator, parameters, columns, estimator.n_components)
    model = kind.model_of(estimator, given.reading, given.emission, estimator.n_components)
    point = (*point_of_labels(model), given.point)
    fitted = kind.fitted(given.reading.columns, model, ML, np.zeros(model.n_cells), given=point)
    state = {**given.reading.names, **attributes_of(estimator, fitted)}
    estimator.__dict__ = published(estimator, {name: each for name, each in state.items() if not is_of_data(name)})
    return estimator


def given_distributions(owner: str, name: str, value, n_axes: int) -> np.ndarray:
    """Probabilities that sum to one over the last axis, as a user gives them: a row of states, or a row for each."""
    wanted = "one for each state, or component" if n_axes == 1 else "a row for each state"
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"The {name!r} of {owner} must be an array of numbers. Got {show(value)} instead.") from None
    if array.ndim != n_axes or not array.size:
        raise ValueError(
            f"The {name!r} of {owner} must be an array of probabilities, {wanted}. Got the shape {array.shape}."
        )
    checked = as_distributions(array)
    if checked is None:
        rows = array.reshape(-1, array.shape[-1])
        bad = next(row for row in rows if as_distributions(row) is None)
        raise ValueError(f"The {name!r} of {owner} must hold numbers >= 0 that sum to one. Got {show(bad)}.")
    return checked


def _names(estimator, parameters: Mapping, columns) -> Sequence:
    """Names of the columns, or their positions where they have none."""
    owner, emission = type(estimator).__name__, estimator.emission
    if columns is None:
        if names_columns(emission):
            raise ValueError(
                f"from_parameters of {owner} needs 'columns', all of them by name, or how many there are, where "
                "'emission' shares them out."
            )
        (group,) = EmissionReader(owner, [], None, estimator.covariance_type).as_given(emission)
        if len(group.specification.covariates):
            raise ValueError(f"from_parameters of {owner} needs 'columns', with the covariates among them.")
        (of_group,) = _by_group([group.name], parameters, owner)
        first = next(iter(group.specification.checked_parameters(of_group).values()))
        return range(first.shape[1] * group.specification.columns_of_each)
    if is_whole(columns) and int(columns) >= 1:
        check_memory(f"A table of columns={columns:.3g}", 32.0 * int(columns), "fewer", estimator.max_memory, owner)
        return range(int(columns))
    names = list(columns) if is_collection(columns) else []
    if not names or not are_texts(names) or len(set(names)) < len(names):
        raise ValueError(
            f"The 'columns' of {owner} must be different names, or an int >= 1, how many there are. Got "
            f"{show(columns)} instead."
        )
    return names


def _by_group(names: Sequence[str], parameters: Mapping, owner: str) -> list[Mapping]:
    """The parameters of each group."""
    if len(names) == 1 and list(parameters) != list(names):
        return [parameters]
    for name in parameters:
        if name not in names:
            raise ValueError(
                f"The 'parameters' of {owner} name {show(name)}, which is no group of columns."
                f"{did_you_mean(name, names)} Groups are {listed(map(repr, names))}."
            )
    for name in names:
        if not isinstance(parameters.get(name), Mapping):
            raise ValueError(
                f"The 'parameters' of {owner} must have, for the group {name!r}, a mapping of names to arrays. Got "
                f"{show(parameters.get(name))} instead."
            )
    return [parameters[name] for name in names]


def _check_sizes(group: str, parameters: Mapping[str, np.ndarray], n_columns: int, n_components: int, owner: str):
    """Refuse parameters of other numbers of components or columns."""
    name, first = next(iter(parameters.items()))
    if first.shape[:2] != (n_components, n_columns):
        raise ValueError(
            f"The {name!r} of the group {group!r} of {owner} must be of {n_components} components and {n_columns} "
            f"columns. Got the shape {first.shape}."
        )


def _cells_of_categories(
    groups: Sequence, rows: Sequence[np.ndarray], names: Sequence[str], categories
) -> dict[int, np.ndarray]:
    """By the position of a column of categories, cells that hold each of its levels."""
    declared = categories if isinstance(categories, Mapping) else {}
    longest = max((len(of) for group, of in zip(groups, rows) if group.specification.holds_categories), default=0)
    longest = max([longest, *(len(list(levels)) for levels in declared.values())])
    cells = {}
    for group, of_group in zip(groups, rows):
        for k, at in enumerate(group.columns) if group.specification.holds_categories else ():
            levels = list(declared.get(names[at], range(np.count_nonzero(of_group[:, k] >= 0)))) or [None]
            column = np.empty(longest, dtype=np.int64 if names[at] not in declared else object)
            column[:] = [levels[k % len(levels)] for k in range(longest)]
            cells[at] = column
    return cells


def _check_levels(group: Group, parameters: Mapping[str, np.ndarray], owner: str) -> None:
    """Refuse tables with other numbers of categories than their columns have levels."""
    for k, (name, levels) in enumerate(zip(group.names, group.levels)):
        table = next(iter(parameters.values()))[:, k]
        if len(levels) > table.shape[-1] or table[:, len(levels) :].any():
            raise ValueError(
                f"The 'categories' of {owner} have {len(levels)} levels of column {name!r}, and its table has the "
                f"probabilities of {table.shape[-1]}. Give a probability for each level."
            )
