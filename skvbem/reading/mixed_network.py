"""A table as networks of mixed columns read it: which nodes its columns are, and rows in codes and numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from skvbem._lazy import cached_property
from skvbem.data import row_hashes
from skvbem.emissions import Emission, EmissionSpecification
from skvbem.emissions.moments import Moments, weighted_moments
from skvbem.emissions.registry import family_of
from skvbem.emissions.regression import Regression, RegressionEmission
from skvbem.emissions.softmax import Softmax, SoftmaxMembership
from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.data import MixedData, MixedRows
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.reading.column_groups import ColumnGroups, Group
from skvbem.reading.forms import is_list_of_emissions
from skvbem.reading.rows import TableReading
from skvbem.reading.tables import are_observed


def columns_of_nodes(groups: ColumnGroups, values: list[np.ndarray], emission) -> tuple[ColumnGroups, list[np.ndarray]]:
    """Groups of columns as nodes, and their values: columns with emissions one by one, but for groups of a list.

    Categories stay in groups, each column of which is a node with a table.
    """
    together = {item[0] for item in emission if len(item) == 3} if is_list_of_emissions(emission) else ()
    of_nodes: list[tuple[Group, np.ndarray]] = []
    for group, of_group in zip(groups.groups, values):
        if group.specification.has_table or group.specification.are_given or group.name in together:
            of_nodes.append((group, of_group))
            continue
        n = group.specification.columns_of_each
        for k in range(0, len(group.columns), n):
            encoder = None if group.encoder is None else group.encoder.of_column(k)
            columns, names = group.columns[k : k + n], group.names[k : k + n]
            node = replace(group, name=names[0], columns=columns, names=names, encoder=encoder)
            of_nodes.append((node, np.ascontiguousarray(of_group[:, k : k + n])))
    return replace(groups, groups=tuple(group for group, _ in of_nodes)), [of_node for _, of_node in of_nodes]


def nodes_of(groups: ColumnGroups) -> tuple[tuple, dict]:
    """The nodes that groups of columns make, in the order of the table, and numbers of categories of those with any."""
    first: dict[str, int] = {}
    n_categories: dict[str, int] = {}
    for group in groups.groups:
        if group.specification.are_given or group.is_hidden:
            continue
        if group.encoder is None or not group.specification.has_table:
            first[group.name] = min(group.columns)
            continue
        first |= dict(zip(group.names, group.columns))
        n_categories |= dict(zip(group.names, group.encoder.n_categories_.tolist()))
    return tuple(sorted(first, key=first.__getitem__)), n_categories


def emission_groups(groups: ColumnGroups) -> list[int]:
    """Which of the groups are nodes with an emission."""
    silent = [each.specification.has_table or each.specification.are_given for each in groups.groups]
    return [k for k, has_none in enumerate(silent) if not has_none]


def covariates_of(groups: ColumnGroups, dag: DAG, node, values: Sequence[np.ndarray]) -> np.ndarray:
    """Covariates of the state of a node, (n_rows, n_covariates): columns that are given, or numbers among its parents.

    Raises
    ------
    ValueError
        If a cell of them is missing.
    """
    which = _groups_of_covariates(groups, dag, node)
    if groups.groups[which[0]].specification.are_given:
        return values[which[0]]  # checked as it was read
    together = np.concatenate([values[k] for k in which], axis=1)
    names = names_of_covariates(groups, dag, node)
    Group(str(node), Softmax(), (), tuple(names)).check_whole(together)
    return together


def are_driven(groups: ColumnGroups, node, values: Sequence[np.ndarray]) -> np.ndarray:
    """True for rows in which covariates drive a node, (n_rows,): those in which it was not set."""
    for group, of_group in zip(groups.groups, values):
        if group.encoder is not None and node in group.names:
            at = group.names.index(node)
            return of_group[:, at] < group.encoder.n_categories_[at]
    return np.ones(len(values[0]), dtype=bool)


def names_of_covariates(groups: ColumnGroups, dag: DAG, node) -> list[str]:
    """Names of the columns that drive a node: those given for it, or numbers among its parents."""
    return [name for k in _groups_of_covariates(groups, dag, node) for name in groups.groups[k].names]


def _groups_of_covariates(groups: ColumnGroups, dag: DAG, node) -> list[int]:
    """The groups of numbers among the parents of a node, or the group that is given."""
    parents = number_parents(groups, dag, node)
    return parents or [k for k, group in enumerate(groups.groups) if group.specification.are_given]


def number_parents(groups: ColumnGroups, dag: DAG, node) -> list[int]:
    """The groups of numbers that are parents of a node, by their numbers."""
    number = {groups.groups[k].name: k for k in emission_groups(groups)}
    return [number[parent] for parent in dag.parents(node) if parent in number]


def explaining(groups: ColumnGroups, dag: DAG) -> dict[int, list[int]]:
    """The groups of numbers that are parents of each group of numbers, by their numbers."""
    return {k: number_parents(groups, dag, groups.groups[k].name) for k in emission_groups(groups)}


def explained(groups: ColumnGroups, dag: DAG, k: int) -> Group:
    """A group of numbers in the family in which its parents explain it.

    Raises
    ------
    StructureError
        If there is no such family.
    """
    group, parents = groups.groups[k], [groups.groups[parent] for parent in explaining(groups, dag)[k]]
    if group.is_hidden:
        numbers, below_categories = [each.name for each in parents], len(dag.parents(group.name)) > len(parents)
        of_node = clone(group.specification).set_params(covariates=numbers, intercept=below_categories)
        return replace(group, specification=of_node)
    if not parents:
        return group
    try:
        specification = group.specification.explained_by([name for each in parents for name in each.names], group.names)
    except ValueError as reason:
        raise StructureError(
            f"Node {parents[0].name!r} holds numbers, and is a parent of {group.name!r} in the 'structure' of "
            f"{groups.owner}, which is {family_of(group.specification)!r}: {reason}. Or turn the edge round, or cut "
            "the numbers into categories."
        ) from None
    return replace(group, specification=specification)


def _has_regression(group: Group) -> bool:
    """True if there is a family in which numbers explain a group."""
    try:
        group.specification.explained_by(["a number"], group.names)
    except ValueError:
        return False
    return True


def with_given(values: Sequence[np.ndarray], k: int, given: Sequence[int]) -> np.ndarray:
    """Values of a group, with those of the groups that explain it after its own."""
    return np.concatenate([values[k], *(values[parent] for parent in given)], axis=1) if given else values[k]


def as_children_see(
    groups: ColumnGroups, values: Sequence[np.ndarray], values_set: Mapping[Any, np.ndarray]
) -> list[np.ndarray]:
    """Values of groups with what nodes of numbers were set to, which their own families do not see."""
    of_groups = [values_set.get(group.name) for group in groups.groups]
    return [of if to is None else np.where(np.isnan(to), of, to) for of, to in zip(values, of_groups)]


def rows_of(
    groups: ColumnGroups,
    model: MixedNetwork,
    values: Sequence[np.ndarray],
    weight: np.ndarray | None = None,
    values_set: Mapping[Any, np.ndarray] = MappingProxyType({}),
    surveys: Mapping[int, Any] = MappingProxyType({}),
) -> MixedRows:
    """Rows as a mixed network takes them.

    Nodes of numbers that were set in some rows have what these were set to, (n_rows, n_columns), NaN elsewhere. What
    some emissions know of all rows, by their numbers, is not looked for again.

    Raises
    ------
    ValueError
        If numbers are missing that are parents of observed ones.
    """
    given, tables = explaining(groups, model.dag), []
    values_set = {node: of_node for node, of_node in values_set.items() if model.dag.children(node)}
    to_children = as_children_see(groups, values, values_set)
    names = [groups.groups[k].name for k in emission_groups(groups)]
    of_emissions = {e: values_set[name] for e, name in enumerate(names) if name in values_set}
    for e, (emission, k) in enumerate(zip(model.emissions, emission_groups(groups))):
        parents = [to_children[parent] for parent in given[k]]
        together = np.concatenate([values[k], *parents], axis=1) if parents else values[k]
        if given[k] and e not in model.number_families.summing:
            places = tuple(column for parent in given[k] for column in groups.groups[parent].columns)
            replace(groups.groups[k], given=places).check_given(together, groups.names)
        tables.append(emission.prepare(together, surveys.get(e)))
    for node, (k, _) in model.drivers.items():
        tables.append(model.emissions[k].prepare(covariates_of(groups, model.dag, node, to_children)))
    categories = [(group.names, of) for group, of in zip(groups.groups, values) if group.specification.has_table]
    n_rows = len(values[0])
    codes = np.concatenate([np.zeros((n_rows, 0), dtype=np.int8), *(of for _, of in categories)], axis=1)
    return MixedRows(
        tuple(name for names, _ in categories for name in names),
        codes,
        tuple(tables),
        (
            *(are_observed([values[k]]) for k in emission_groups(groups)),
            *(are_driven(groups, node, values) for node in model.driven),
        ),
        np.ones(n_rows) if weight is None else weight,
        partial(row_hashes, [*values, *values_set.values()]),
        of_emissions,
    )


@dataclass(frozen=True, eq=False)
class MixedReading(TableReading):
    """Rows of weight > 0, read; columns of numbers and of categories are nodes of a network.

    Parameters
    ----------
    values_set : mapping of node to ndarray of shape (n_rows, n_columns)
        What nodes of numbers were set to in some rows, NaN elsewhere. Among the values these cells are missing.
    set_leaves : frozenset
        Other nodes without a table that were set in some rows, in which they are missing.
    """

    values_set: Mapping[Any, np.ndarray] = field(default_factory=dict)
    set_leaves: frozenset = frozenset()

    @property
    def is_complete(self) -> bool:
        """Whether no cell is missing."""
        return self.extent.n_missing == 0

    def telling(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """Values by which rows say something: those that were not set."""
        return [np.where(are_set, -1, each) for each, are_set in zip(values, _cells_set(self.columns, values))]

    @property
    def intervention_targets(self) -> tuple[tuple, ...]:
        """See `Reading`; columns of categories, then nodes of numbers."""
        groups = [k for k, group in enumerate(self.columns.groups) if group.specification.has_table]
        cells = [each for k, each in enumerate(_cells_set(self.columns, self.values)) if k in groups]
        cells += [~np.isnan(of_node) for of_node in self.values_set.values()]
        if not any(each.any() for each in cells):
            return ()
        names = [*(name for k in groups for name in self.columns.groups[k].names), *self.values_set]
        return tuple(tuple(compress(names, row)) for row in np.unique(np.concatenate(cells, axis=1), axis=0))

    @property
    def nodes_with_tables(self) -> tuple:
        """The columns of categories."""
        return tuple(nodes_of(self.columns)[1])

    @property
    def numbers(self) -> tuple:
        """The nodes without a table."""
        return tuple(self.columns.groups[k].name for k in emission_groups(self.columns))

    @property
    def without_children(self) -> tuple:
        """The nodes on which no other can depend: answers in an order, and intervals that were set."""
        groups = [self.columns.groups[k] for k in emission_groups(self.columns)]
        return tuple(each.name for each in groups if each.encoder is not None or each.name in self.set_leaves)

    @property
    def unexplained(self) -> tuple:
        """The nodes without a table that cannot depend on numbers."""
        groups = [self.columns.groups[k] for k in emission_groups(self.columns)]
        return tuple(each.name for each in groups if not _has_regression(each))

    def with_hidden_numbers(self, specifications: Mapping[Any, EmissionSpecification]) -> MixedReading:
        """The reading with groups for nodes that hold numbers and have no column, after all others."""
        ((values, weight),) = self.blocks
        known = [(group, of) for group, of in zip(self.columns.groups, values) if not group.is_hidden]
        hidden = [Group(node, each, (), (node,)) for node, each in specifications.items()]
        if len(known) == len(values) and not hidden:
            return self
        groups = *(group for group, _ in known), *hidden
        values = [*(of for _, of in known), *(group.hidden_values(len(values[0])) for group in hidden)]
        return replace(self, columns=replace(self.columns, groups=groups), blocks=[(values, weight)])

    def of_nodes(self, nodes: Collection) -> MixedReading:
        """The reading without columns of numbers that are none of some nodes."""
        ((values, weight),) = self.blocks
        groups = self.columns.groups
        kept = [k for k, group in enumerate(groups) if group.specification.has_table or group.name in nodes]
        columns = replace(self.columns, groups=tuple(groups[k] for k in kept))
        values_set = {node: of for node, of in self.values_set.items() if node in nodes}
        return replace(self, columns=columns, blocks=[([values[k] for k in kept], weight)], values_set=values_set)

    def taken(self, units: np.ndarray, weight: np.ndarray | None) -> Self:
        """The reading of some rows."""
        values_set = {node: of_node[units] for node, of_node in self.values_set.items()}
        return replace(super().taken(units, weight), values_set=values_set)

    @cached_property
    def fingerprint(self) -> str:
        """The text that tells these rows, and what numbers were set to, from others."""
        return self._with_values_set.fingerprint if self.values_set else super().fingerprint

    @property
    def fingerprint_in_order(self) -> str:
        """The text that tells these rows, in this order, from others."""
        return self._with_values_set.fingerprint_in_order if self.values_set else super().fingerprint_in_order

    @property
    def unit_hashes(self) -> np.ndarray:
        """Hashes of rows, (n_rows,)."""
        return self._with_values_set.unit_hashes if self.values_set else super().unit_hashes

    @property
    def _with_values_set(self) -> MixedReading:
        """The reading with what numbers were set to as further values of each row."""
        ((values, weight),) = self.blocks
        return replace(self, blocks=[([*values, *self.values_set.values()], weight)], values_set={})

    def emissions(self, dag: DAG) -> list[tuple[Group, Emission]]:
        """Each node that has an emission, in the family that its parents make it, and this emission."""
        return [self.emission_of(dag, self.columns.groups[k].name) for k in emission_groups(self.columns)]

    def emission_of(self, dag: DAG, node) -> tuple[Group, Emission]:
        """A node that has an emission, in the family that its parents make it, and this emission."""
        ((values, weight),) = self.blocks
        k = next(k for k in emission_groups(self.columns) if self.columns.groups[k].name == node)
        group, given = explained(self.columns, dag, k), number_parents(self.columns, dag, node)
        specification = group.specification
        if given and isinstance(specification, Regression) and not group.is_hidden:
            return group, specification.of_moments([self._moments_of(each) for each in (k, *given)])
        return group, group.emission(with_given(values, k, given), weight)

    def _moments_of(self, k: int) -> Moments:
        """Moments of a group of numbers, found once: each of its children has them."""
        if k not in self._moments:
            ((values, weight),) = self.blocks
            self._moments[k] = weighted_moments(values[k], weight)
        return self._moments[k]

    @cached_property
    def _moments(self) -> dict[int, Moments]:
        return {}

    def _surveys(self, model: MixedNetwork) -> dict[int, Any]:
        """What regressions know of rows without missing cells, by the numbers of emissions."""
        given, surveys = explaining(self.columns, model.dag), {}
        for e, (emission, k) in enumerate(zip(model.emissions, emission_groups(self.columns))):
            moments = [self._moments.get(each) for each in (k, *given.get(k, ()))]
            is_complete = not any(of is None or of.has_gaps.any() for of in moments)
            if is_complete and isinstance(emission, RegressionEmission):
                surveys[e] = emission.survey_of_complete(self._moments[k])
        return surveys

    def membership(self, dag: DAG, node, softmax: Softmax) -> SoftmaxMembership:
        """The probability of the state of a node that covariates drive, as an emission of these rows."""
        ((values, weight),) = self.blocks
        levels = next((group.levels for group in self.columns.groups if group.specification.are_given), [])
        to_children = as_children_see(self.columns, values, self.values_set)
        covariates, here = covariates_of(self.columns, dag, node, to_children), are_driven(self.columns, node, values)
        if not here.all() and here.any():
            covariates, weight = covariates[here], None if weight is None else weight[here]
        return softmax.for_data(covariates, weight, n_categories=[*map(len, levels)] or None)

    def compiled_for(self, model: MixedNetwork, n_starts: int, **limits) -> MixedData:
        """The rows as a mixed network takes them, in the order in which they cost least."""
        ((values, weight),) = self.blocks
        rows = rows_of(self.columns, model, values, weight, self.values_set, self._surveys(model))
        orders = (emission.row_order(table) for emission, table in zip(model.emissions, rows.tables))
        order = next((order for order in orders if order is not None), None)
        rows = rows if order is None else rows.taken(order, rows.weight[order])
        return model.compile(rows, n_lanes=n_starts, **limits)

    def refilled(self, drawn: list[np.ndarray]) -> MixedReading:
        """The reading with values that a model drew, the same cells missing."""
        ((values, weight),) = self.blocks
        return replace(self, blocks=[(_as_missing(self.columns, values, drawn), weight)])


def _cells_set(groups: ColumnGroups, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of each group the cells of categories that were set, (n_rows, n_columns)."""
    pairs = zip(groups.groups, values)
    return [of >= np.inf if group.encoder is None else of >= group.encoder.n_categories_ for group, of in pairs]


def _as_missing(groups: ColumnGroups, values: Sequence[np.ndarray], drawn: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What was drawn for each group, where cells of its values are observed, and were not set."""
    result = []
    for of_group, as_drawn, are_set in zip(values, drawn, _cells_set(groups, values)):
        missing = are_set | (np.isnan(of_group) if of_group.dtype.kind == "f" else of_group < 0)
        result.append(np.where(missing, of_group, as_drawn).astype(of_group.dtype))
    return result


def values_of(
    groups: ColumnGroups, codes: dict, columns: list[np.ndarray], given: Sequence[np.ndarray] = ()
) -> list[np.ndarray]:
    """Codes of nodes and columns of emissions, drawn or filled, as values of groups of columns.

    Those of groups that are given are taken from other values of the same rows.
    """
    numbers = dict(zip(emission_groups(groups), columns))
    numbers |= {k: given[k] for k, group in enumerate(groups.groups) if group.specification.are_given}
    return [
        numbers[k] if k in numbers else np.stack([codes[name] for name in group.names], axis=1)
        for k, group in enumerate(groups.groups)
    ]
