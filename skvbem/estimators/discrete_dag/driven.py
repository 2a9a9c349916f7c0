"""The kind of `VBDiscreteDAG` with `covariates`: tables of categories, and roots that covariates drive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skvbem._arguments import is_option
from skvbem.errors import StructureError
from skvbem.estimators.mixed_network.kind import MixedNetworkKind
from skvbem.fitted.mixed_network import FittedMixedNetwork
from skvbem.fitted.network import LabeledTables, concentrations_of
from skvbem.graphs.undirected import is_undirected
from skvbem.reading.mixed_network import MixedReading

# Parameters that do not go with covariates, but for one value.
_ALONE: dict[str, Any] = {"ties": None, "inference": "exact", "annealing": None, "learn_prior": False}


class DrivenNetworkKind(MixedNetworkKind):
    """Discrete networks some of whose roots covariates drive.

    They are mixed networks whose nodes all have tables, and their starts and moves are those of such networks: rows
    have potentials of their own.
    """

    def check(self, estimator, X) -> None:
        """Refuse parameters that such networks do not have."""
        super().check(estimator, X)
        owner = type(estimator).__name__
        for name, value in _ALONE.items():
            given = getattr(estimator, name)
            if not (given is value or (isinstance(value, str) and is_option(given, value))):
                raise ValueError(
                    f"{name}={given!r} of {owner} does not go with 'covariates'. Leave it {value!r}, or leave "
                    "'covariates' out."
                )
        if not is_option(estimator.init, "auto", "random"):
            raise ValueError(
                f"'init' of {owner} must be 'auto' or 'random' where 'covariates' are given: tables are not all that a "
                "start needs. Got tables."
            )
        if estimator.structure is not None and is_undirected(estimator.structure):
            raise StructureError(
                f"'covariates' of {owner} drive latents without parents, and an undirected 'structure' has no "
                "directions. Give a directed one, as by DAG.from_chordal(structure)."
            )
        if not (is_option(estimator.categories, "auto") or isinstance(estimator.categories, Mapping)):
            raise ValueError(
                f"The 'categories' parameter of {owner} must be 'auto' or a mapping of columns to levels where "
                "'covariates' are given, which are not all categories."
            )

    def emission(self, estimator) -> Any:
        """Categories."""
        return "categorical"

    def attributes(self, fitted: FittedMixedNetwork) -> dict[str, Any]:
        """Structure, latents, categories, tables, and the parameters of regressions."""
        attributes = super().attributes(fitted)
        del attributes["groups_"]
        model = fitted.model
        of_tables = concentrations_of(model.prior.blocks[0], fitted.statistics[: model.layout.n_table_cells])
        names = ("prior_", "posterior_") if fitted.form.density else ("prior_",)
        for name, flat in zip(names, of_tables):
            tables = LabeledTables(model, flat, fitted.levels)
            attributes[name] = {node: tables[node] for node in tables if node not in model.driven}
        return attributes

    def data_attributes(self, fitted, reading: MixedReading, data, before: Mapping | None) -> dict[str, Any]:
        """Empty rows, treewidth, and that nothing hidden in a row was divided."""
        ((values, _),) = reading.blocks
        codes = [of for of, group in zip(values, reading.columns.groups) if group.encoder is not None]
        n_empty = int((np.concatenate(codes, axis=1) < 0).all(axis=1).sum())
        n_before = 0 if before is None else before["n_rows_all_missing_"]
        return {
            **super().data_attributes(fitted, reading, data, before),
            "n_rows_all_missing_": n_before + n_empty,
        }
