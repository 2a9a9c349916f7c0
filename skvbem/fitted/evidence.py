"""What was seen of some nodes of a network of mixed columns, and what others were set to, as one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from skvbem._arguments import is_real
from skvbem.fitted.asking import code_of
from skvbem.models.mixed_network.data import MixedRows
from skvbem.reading.mixed_network import emission_groups, names_of_covariates
from skvbem.reading.tables import Table, is_interval, read_table


def row_of_evidence(fitted: Any, given: Mapping, done: Mapping = MappingProxyType({})) -> MixedRows:
    """States of some nodes and numbers of some columns, seen or set from outside, as one row."""
    groups, model = fitted.groups, fitted.model
    needed = [name for node in model.driven for name in names_of_covariates(groups, model.dag, node)]
    if lacking := [name for name in needed if name not in given and name not in done]:
        raise ValueError(
            f"{lacking[0]!r} is a covariate of what is hidden in this {groups.owner}: the evidence must name "
            f"its value, as in {{{lacking[0]!r}: 1.0}}."
        )
    numbers = fitted.numbers.intersection((*groups.names, *fitted.latent_numbers))
    values_set = _values_set(fitted, done)
    row = fitted.rows(values_of_evidence(fitted, given), values_set)
    codes = {node: code_of(node, state, fitted.levels) for node, state in given.items() if node not in numbers}
    for node, state in done.items():
        if node not in numbers:
            codes[node] = code_of(node, state, fitted.levels) + len(fitted.levels[node])
    return replace(row, names=tuple(codes), codes=np.array([[*codes.values()]], dtype=np.int32).reshape(1, -1))


def values_of_evidence(fitted: Any, given: Mapping) -> list[np.ndarray]:
    """Numbers of some columns as the values of each group, (1, n_columns), all else missing."""
    names, numbers = fitted.groups.names_in_x, fitted.numbers.intersection(fitted.groups.names_in_x)
    cells = [given.get(name) if name in numbers else None for name in names]
    for name in numbers.union(fitted.latent_numbers) & given.keys():
        if name in fitted.levels_of_columns:
            code_of(name, given[name], fitted.levels_of_columns)
        elif not (is_interval(given[name]) or (is_real(given[name]) and np.isfinite(given[name]))):
            raise ValueError(
                f"Column {name!r} holds numbers: as evidence it takes a finite one. Got {given[name]!r} instead."
            )
    unnamed = read_table(np.array([cells], dtype=object), fitted.groups.owner)
    values = fitted.groups.values(Table(names, 1, unnamed.column))
    for group, of_group in zip(fitted.groups.groups, values):
        if group.is_hidden and group.name in given:
            of_group[:] = given[group.name]
    return values


def _values_set(fitted: Any, done: Mapping) -> dict[Any, np.ndarray]:
    """What columns of numbers are set to, as values (1, n_columns) of their nodes."""
    groups = fitted.groups
    node_of = {name: group for group in groups.groups for name in group.names}
    for name in fitted.numbers & done.keys():
        if name not in node_of or node_of[name].specification.are_given:
            raise ValueError(
                f"{name!r} has no parents in this {groups.owner}, which takes it as given: name it in the evidence, "
                "not in do."
            )
        if len(node_of[name].names) > 1 or is_interval(done[name]):
            raise ValueError(
                f"do sets {name!r} of this {groups.owner} to {done[name]!r}: it takes one finite number for a node of "
                "one column."
            )
    values = values_of_evidence(fitted, done) if fitted.numbers & done.keys() else []
    of_nodes = [(groups.groups[k], values[k]) for k in emission_groups(groups) if values]
    return {group.name: of for group, of in of_nodes if group.encoder is None and group.names[0] in done}
