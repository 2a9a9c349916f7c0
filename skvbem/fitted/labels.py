"""Models whose rows have one hidden label each, as fitted: what mixtures and hidden Markov models share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem.emissions import Emission
from skvbem.emissions.base import blocks_of, parts_of
from skvbem.emissions.independent import Independent
from skvbem.emissions.known_labels import without_labels
from skvbem.emissions.softmax import membership_of
from skvbem.families import NormalPoint, Product
from skvbem.fitted.base import Fitted, Intervals, Parameters
from skvbem.fitted.fills import drawn_cells
from skvbem.fitted.parameter_tables import ParameterTable, rows_of_profiles
from skvbem.reading.column_groups import ColumnGroups, Group


@dataclass(frozen=True, eq=False)
class FittedEmissions(Fitted):
    """A model whose rows have one hidden label each, as fitted; the last block of its prior is that of the emission.

    Parameters
    ----------
    names : tuple
        What the labels that fit was given call the first components; empty if it was given none.
    """

    names: tuple = ()

    #: Name of the hidden label of a row.
    label: ClassVar[str]

    @property
    def groups(self) -> ColumnGroups:
        """Columns as they are read."""
        return self.columns

    def continues(self, columns: ColumnGroups, model) -> bool:
        """True if another model has as many components of the same columns, read in the same way."""
        return self.model.n_components == model.n_components and self.columns.meaning() == columns.meaning()

    def damage(self) -> str:
        """The fault of a fit that was loaded; empty if it is sound."""
        for group, part in zip(self.groups.groups, parts_of(self.emission), strict=True):
            if part.n_columns != len(group.columns):
                return f"the group {group.name!r} has {len(group.columns)} columns, and its emission {part.n_columns}"
            if group.encoder is not None and part.n_outcomes != tuple(map(len, group.levels)):
                return f"the categories of the group {group.name!r} are not as many as its tables have levels"
        return super().damage()

    @property
    def emission(self) -> Emission:
        """The emission of the groups."""
        return self.model.emission

    def for_new_rows(self) -> Self:
        """The fit as it answers about rows whose labels are not known."""
        emission = without_labels(self.emission, [])[0].priced(of_fit=False)
        if membership_of(emission) is not None and not self.form.density:
            parts = (part.for_new_rows() if hasattr(part, "for_new_rows") else part for part in parts_of(emission))
            emission = Independent(tuple(parts))
        return replace(self, model=self.model.with_emission(emission))

    def known_from(self, reading: Any) -> Self:
        """The fit with the labels that its rows are known to have, and the price of what they have chosen."""
        emission = self.emission.priced(of_fit=True)
        if reading.labels is not None:
            emission = reading.labels.known_by(emission)
        return self if emission is self.emission else replace(self, model=self.model.with_emission(emission))

    def paid(self, reading: Any, weight: np.ndarray | None) -> float:
        """The price of what the rows of the fit have chosen, nats."""
        return self.emission.paid(self.groups.as_emission_takes(reading.values), weight)

    @property
    def counts(self) -> np.ndarray:
        """Expected rows of each component, of sequences as far as observations depend on states, (n_components,)."""
        return self.model.expected_counts(self.statistics)

    @property
    def component_names(self) -> np.ndarray:
        """Names of components, (n_components,): labels that fit was given, else their numbers."""
        n, names = self.model.n_components, np.empty(self.model.n_components, dtype=object)
        names[:] = [*self.names, *range(len(self.names), n)]
        return names

    @property
    def n_free_parameters(self) -> int:
        """Dimension of the parameters; turns of factors, and factors that a component does not have, are none."""
        return self.model.n_free_parameters

    def _found_point(self) -> tuple:
        """The point found (MAP, ML), or the mode of q(theta) in its natural coordinates."""
        point = self.form.point_of(self.model.prior, self.statistics)
        return self.model.prior.with_exact_zeros(point) if self.form.prior_share == 0.0 else point

    @cached_property
    def prior_as_found(self) -> Product:
        """The prior, hidden hyperparameters as they are expected under q(theta), or at the point."""
        prior = self.model.prior
        natural = self.posterior.expected_natural() if self.form.density else prior.natural(self.point)
        return prior.given_hyperparameters(prior.hyperparameters(natural))

    def imputed(self, block: Any, responsibilities: np.ndarray) -> list[np.ndarray]:
        """Rows of each group with missing cells filled: under VB by predictive means, else by means at the point."""
        point = self.emission.predictive_point(self.posterior.blocks[-1]) if self.form.density else self.point[-1]
        return self.groups.as_list(self.emission.impute(block, point, responsibilities))

    def drawn_cells(
        self, values: list[np.ndarray], of_emission: Any, components: np.ndarray, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Rows of each group with missing cells drawn at a point of the emission, their components known."""
        parts = zip(parts_of(self.emission), values, self.groups.as_list(of_emission))
        n = self.model.n_components
        return [drawn_cells(part, of_group, point, components, n, rng) for part, of_group, point in parts]

    def parameters(self) -> list[dict[str, np.ndarray]]:
        """The parameters of each group's components, by name."""
        return self.groups.as_list(self.emission.parameters(self.point[-1]))

    def hyperparameters(self) -> dict[str, Any]:
        """Attributes of the emissions besides `parameters_`; by group too where several have an attribute."""
        parts, attributes = parts_of(self.emission), dict[str, dict[str, Any]]()
        priors = blocks_of(self.emission, self.prior_as_found.blocks[-1])
        posteriors: Any = [None] * len(parts)
        if self.form.density:
            posteriors = blocks_of(self.emission, self.posterior.blocks[-1])
        for group, *of_group in zip(self.groups.groups, parts, self.parameters(), priors, posteriors):
            for name, value in group.specification.attributes(*of_group).items():
                attributes.setdefault(name, {})[group.name] = value
        return {
            name: by_group if len(by_group) > 1 else next(iter(by_group.values()))
            for name, by_group in attributes.items()
        }

    def named_parameters(self, point: tuple) -> Parameters:
        """The parameters of each group's components at a point, by name."""
        return self._by_group(self.emission.parameters(point[-1]))

    def parameters_of_draws(self, natural: np.ndarray) -> Parameters:
        """Parameters at natural parameters (n_cells, n_draws), by group and name, each (n_draws, ...)."""
        points = self.model.prior.from_natural(natural)
        return self._of_labels(points) | self._by_group(self.emission.parameters_of_draws(points[-1]))

    @abstractmethod
    def _of_labels(self, points: tuple) -> Parameters:
        """What points say of hidden labels, draws along the last axis, by group and name, each (n_draws, ...)."""

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta) of each group's parameters, by name."""
        return self._by_group(self.emission.quantiles(self.posterior.blocks[-1], probability))

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """A table per group of columns: what each column holds in each component, or state."""
        return [
            self._group_report(group, parameters, None if intervals is None else intervals[group.name])
            for group, parameters in zip(self.groups.groups, self.parameters())
            if parameters  # columns that are only given have none
        ]

    def _group_report(self, group: Group, parameters: Mapping, intervals: Mapping | None) -> ParameterTable:
        names, values, ends = rows_of_profiles(group.specification, group.names, group.levels, parameters, intervals)
        return ParameterTable(group.name, names, self._numbers, values, ends, (), self._states)

    @property
    def _states(self) -> list[dict]:
        """The states that columns of a report are about, by the name that users have for hidden labels."""
        return [{self.label: k} for k in range(self.model.n_components)]

    @property
    def _numbers(self) -> list[str]:
        """Names of components."""
        return list(map(str, self.component_names))

    def _by_group(self, of_emission: Any) -> Parameters:
        return {group.name: of for group, of in zip(self.groups.groups, self.groups.as_list(of_emission)) if of}

    def finite_columns(self, values: list[np.ndarray]) -> tuple[list[str], list[np.ndarray], list[np.ndarray], bool]:
        """Columns that take finitely many values: names, codes, probabilities in each component; whether all do.

        Parameters
        ----------
        values : list of ndarray
            Of each group, as read.
        """
        names: list[str] = []
        codes: list[np.ndarray] = []
        tables: list[np.ndarray] = []
        parts = parts_of(self.emission)
        for group, part, of_group, parameters in zip(self.groups.groups, parts, values, self.parameters()):
            if part.n_outcomes is None:
                continue
            names += group.names
            codes += list(of_group.T)
            for table in group.specification.expected(parameters, group.levels):
                tables.append(np.stack([1.0 - table, table], axis=1) if table.ndim == 1 else table)
        return names, codes, tables, all(part.n_outcomes is not None for part in parts)

    def at_floor(self) -> list[int]:
        """Components whose covariance the floor of maximum likelihood has stopped in some direction."""
        points = self.groups.as_list(self.point[-1])
        stopped = [point.at_floor() for point in points if isinstance(point, NormalPoint)]
        n = self.model.n_components
        return np.flatnonzero(np.any([np.broadcast_to(each, n) for each in stopped] or [np.zeros(n)], axis=0)).tolist()
