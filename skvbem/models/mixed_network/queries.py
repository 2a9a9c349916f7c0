"""Queries of rows of mixed columns: densities, marginals of nodes, missing cells, and rows that are drawn.

A single row uses each table row and each component at most once. So with tables at their posterior means, and the
predictive densities of components, a density of a row is the exact average over q(theta).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import log_sum_exp, safe_log
from skvbem.errors import warn_of_impossible
from skvbem.families import Dirichlet, Product
from skvbem.models.mixed_network.beliefs import beliefs
from skvbem.models.mixed_network.data import FactorRows, MixedData, MixedRows, joint_codes
from skvbem.models.mixed_network.hidden_numbers import HiddenNumbers
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixed_network.number_factors import NumberFactor, NumberTable
from skvbem.models.network import queries as of_tables
from skvbem.models.network.max_product import max_product
from skvbem.models.network.program import Plan, of_clique

# Draws of the parameters behind the rows of one sample.
MAX_DRAWS_OF_PARAMETERS = 1000
# Draws of the parameters that densities of rows that hide numbers are averages over.
_N_DRAWS = 64


@dataclass(frozen=True, eq=False)
class Predictive:
    """The predictive distribution of a row of a mixed network: under a posterior, or at a point.

    Parameters
    ----------
    model : MixedNetwork
    posterior : Product or None
        q(theta); None where a point stands for it.
    point : tuple, optional
        Of the prior's blocks; not needed with a posterior.
    """

    model: MixedNetwork
    posterior: Product | None = None
    point: tuple = ()

    @property
    def tables(self) -> np.ndarray:
        """Probabilities of all tables, flat, (n_table_cells,)."""
        return self.point[0] if self.posterior is None else cast(Dirichlet, self.posterior.blocks[0]).mean()

    def log_densities_of(self, k: int, block: Any, data: MixedData) -> np.ndarray:
        """Log densities of rows under each component of emission k, nats, (n_rows, n_states)."""
        if k >= len(self.model.emissions):
            return self._log_densities_of_numbers(data.factors_of_numbers[k - len(self.model.emissions)], block)
        emission: Any = self.model.emissions[k]
        is_membership = k >= self.model.n_nodes_with_emission
        if self.posterior is not None:
            distinct, which = np.unique(block, axis=0, return_inverse=True) if is_membership else (block, slice(None))
            return emission.log_predictive(distinct, self.posterior.blocks[1 + k])[which]
        if is_membership:
            emission = emission.for_new_rows()
        return emission.expected_log_likelihood(block, self.model.prior.blocks[1 + k].natural(self.point[1 + k]))

    def _log_densities_of_numbers(self, factor: NumberFactor, block: NumberTable) -> np.ndarray:
        """Log densities of rows that hide numbers; under a posterior averaged over draws, as no formula is known."""
        if self.posterior is None:
            return factor.step(self.model.prior.natural(self.point)).log_likelihood(block)
        step, densities = factor.step(self._draws), np.empty((len(block), factor.n_states))
        size = factor.block_rows(factor.n_states, _N_DRAWS)
        for at in range(0, len(block), size):
            logs = step.log_likelihood(block[at : at + size])
            densities[at : at + size] = log_sum_exp(logs, axis=0) - np.log(_N_DRAWS)
        return densities

    @cached_property
    def _draws(self) -> np.ndarray:
        """Natural parameters (n_cells, n_draws) drawn from the posterior, the same at every call."""
        rng, prior, posterior = np.random.default_rng(0), self.model.prior, cast(Product, self.posterior)
        return np.stack([prior.natural(posterior.sample(rng)) for _ in range(_N_DRAWS)], axis=1)

    def log_densities(self, rows: MixedRows, **limits) -> np.ndarray:
        """ln p(row) of every row, nats, (n_rows,); what is not observed is summed out, exactly."""
        data = self.model.compile(rows.each_once(), by_row=True, **limits)
        total = self._log_of_known(data)
        for plan, contexts, log_z, _ in self._beliefs(data):
            at, context = of_tables.rows_of(plan, contexts)
            total[at] += log_z[context]
        return total

    def posteriors(self, rows: MixedRows, nodes: Sequence, **limits) -> np.ndarray:
        """p(nodes | row) of every row, nodes with a table together, (n_rows, n_joint_states).

        What is observed is certain. A row that is impossible gets the posterior of an empty row.
        """
        (posterior,) = self.all_posteriors(rows, [nodes], **limits)
        return posterior

    def all_posteriors(self, rows: MixedRows, groups: Sequence[Sequence], **limits) -> list[np.ndarray]:
        """`posteriors` of several groups of nodes, in one pass over the rows."""
        data = self.model.compile(rows.each_once(), together=groups, by_row=True, **limits)
        log_densities, asked = self.log_densities_and_asked(data, rows, groups)
        impossible = ~np.isfinite(log_densities)
        if impossible.any():
            warn_of_impossible(np.flatnonzero(impossible), len(rows), "those of an empty row")
            nothing = rows.taken(np.flatnonzero(impossible)[:1], np.ones(1)).without_cells()
            for group, of_nothing in zip(asked, self.all_posteriors(nothing, groups, **limits)):
                group.posterior[impossible & ~group.is_certain] = of_nothing
        return [group.posterior for group in asked]

    def log_densities_and_asked(
        self, data: MixedData, rows: MixedRows, groups: Sequence[Sequence]
    ) -> tuple[np.ndarray, list[_Asked]]:
        """ln p(row) of every row (n_rows,), nats, and posteriors of groups of nodes, of rows that were compiled."""
        model, total = self.model, self._log_of_known(data)
        columns = model.categories(rows)
        asked = [_Asked.of([model.position[node] for node in group], model, columns, len(rows)) for group in groups]
        for plan, contexts, log_z, of_cliques in self._beliefs(data):
            at, context = of_tables.rows_of(plan, contexts)
            at = np.arange(len(rows))[at]
            total[at] += log_z[context]
            for group in asked:
                group.fill(plan, at, context, of_cliques)
        return total, asked

    def joint_modes(self, rows: MixedRows, nodes: Sequence, **limits) -> dict:
        """The most probable joint state of each row's hidden part: codes (n_rows,) of each node asked for."""
        model = self.model
        data = model.compile(rows.each_once(), wanted=nodes, by_row=True, **limits)
        log_tables, columns = safe_log(self.tables), model.columns(rows)

        def states():
            for plan, factors in zip(data.program.plans, data.factors):
                logs = [self._log_of_states(factor, slice(None), data) for factor in factors]
                by_cell = [factor.cells(each, slice(None))[0] for factor, each in zip(factors, logs)]
                yield plan, max_product(model.layout, plan, log_tables, columns, by_cell)

        positions = {node: model.position[node] for node in nodes}
        modes = of_tables.modes_of(states(), positions, model.categories(rows), len(rows))
        if not self.tables.all():
            places = np.flatnonzero(~np.isfinite(self.log_densities(rows, **limits)))
            nothing = rows.taken(places[:1], np.ones(len(places[:1]))).without_cells()
            of_tables.put_modes_of_nothing(
                modes, places, columns, model, lambda: self.joint_modes(nothing, nodes, **limits)
            )
        return modes

    def completed(self, rows: MixedRows, names: Sequence, **limits) -> tuple[dict[Any, np.ndarray], list[np.ndarray]]:
        """Marginals (n_rows, n_states) of nodes with a table, and the columns of all emissions without gaps."""
        model, layout = self.model, self.model.layout
        parents = [[layout.names[p] for p in family] for family in layout.parents[layout.n_tables :]]
        numbers = model.hidden_numbers(rows, by_row=True)
        factors = () if numbers is None else numbers.factors
        of_factors = [[layout.names[p] for p in factor.parents] for factor in factors]
        groups = [*([name] for name in names), *parents, *of_factors]
        posteriors = self.all_posteriors(rows, groups, **limits)
        points = self.point[1:]
        if self.posterior is not None:
            points = tuple(e.predictive_point(block) for e, block in zip(model.emissions, self.posterior.blocks[1:]))
        with_hidden = filled_numbers(model, numbers, points, posteriors[len(posteriors) - len(factors) :])
        columns: dict[int, np.ndarray] = {}
        for k in model.in_order:
            emission, table, point = model.emissions[k], rows.tables[k], points[k]
            if model.given[k]:  # filled in before
                given = [columns[parent] for parent in model.given[k]]
                table = emission.prepare(np.concatenate([table.values[:, : emission.n_columns], *given], axis=1))
            filled = emission.impute(table, point, posteriors[len(names) + k])
            columns[k] = with_hidden(k, filled[:, : emission.n_columns])
        return dict(zip(names, posteriors)), [columns[k] for k in range(len(columns))]

    def sample(
        self, n_rows: int, rng: np.random.Generator, like: MixedRows | None = None
    ) -> tuple[dict, list[np.ndarray]]:
        """Rows drawn: codes (n_rows,) of every node with a table, and the columns of every emission of a node.

        With the covariates of rows `like` these, in their order, where covariates are no nodes. Under a posterior
        parameters are drawn for each row, for more than a thousand rows for a thousand parts of them.
        """
        if self.posterior is None:
            return drawn_at(self.model, self.point, n_rows, rng, like)
        sizes = np.bincount(np.arange(n_rows) % MAX_DRAWS_OF_PARAMETERS).tolist()
        rows = [None if like is None else like.taken(at, np.ones(len(at))) for at in _in_parts(sizes)]
        parts = [drawn_at(self.model, self.posterior.sample(rng), size, rng, of) for size, of in zip(sizes, rows)]
        order = rng.permutation(n_rows) if like is None else np.arange(n_rows)
        codes = {node: np.concatenate([part[0][node] for part in parts])[order] for node in parts[0][0]}
        columns = [np.concatenate(emission_cells)[order] for emission_cells in zip(*(part[1] for part in parts))]
        return codes, columns

    def _beliefs(self, data: MixedData) -> Iterator[tuple[Plan, slice, np.ndarray, np.ndarray]]:
        return beliefs(self.model, safe_log(self.tables), partial(self.log_densities_of, data=data), data)

    def _log_of_states(self, factor: FactorRows, rows: slice, data: MixedData) -> np.ndarray:
        """Log densities of rows under all states of a factor, nats, (1, n_states, n_rows)."""
        tables = zip(factor.emissions, factor.tables)
        return np.sum([self.log_densities_of(k, table[rows], data) for k, table in tables], axis=0).T[None]

    def _log_of_known(self, data: MixedData) -> np.ndarray:
        """ln p of what has no hidden parent, of every row, nats, (n_rows,)."""
        total = of_tables.log_of_complete_families(self.model, safe_log(self.tables), data.source)
        for known in data.known:
            log_density = self.log_densities_of(known.emission, known.table, data)
            total[known.rows] += np.take_along_axis(log_density, known.states[:, None], axis=1)[:, 0]
        return total


@dataclass(frozen=True, eq=False)
class _Asked:
    """The joint posterior of some nodes with a table, as it is filled plan by plan.

    Parameters
    ----------
    positions : list of int
    sizes : tuple of int
        Their numbers of states.
    codes : ndarray of int, shape (n_nodes, n_rows)
        Negative where they are hidden.
    posterior : ndarray of shape (n_rows, n_joint_states)
    """

    positions: list[int]
    sizes: tuple[int, ...]
    codes: np.ndarray
    posterior: np.ndarray

    @classmethod
    def of(cls, positions: list[int], model: MixedNetwork, columns: dict[int, np.ndarray], n_rows: int) -> _Asked:
        """The posterior of rows in which all the nodes are observed; 0 in all others."""
        sizes = tuple(model.layout.cardinalities[p] for p in positions)
        hidden = np.full(n_rows, -1)
        codes = np.array([columns.get(p, hidden) for p in positions], dtype=np.int64).reshape(len(positions), n_rows)
        posterior = np.zeros((n_rows, prod(sizes)))
        asked = cls(positions, sizes, codes, posterior)
        certain = np.flatnonzero(asked.is_certain)
        posterior[certain, np.ravel_multi_index(codes[:, certain], sizes) if positions else 0] = 1.0
        return asked

    @property
    def is_certain(self) -> np.ndarray:
        """True for rows in which all the nodes are observed, (n_rows,)."""
        return np.asarray((self.codes >= 0).all(axis=0))

    def fill(self, plan: Plan, at: np.ndarray, context: np.ndarray, of_cliques: np.ndarray) -> None:
        """Fill in rows of some contexts of a plan, if that hides any of the nodes."""
        hidden = tuple(p for p in self.positions if p in plan.hidden)
        if not hidden:
            return
        by_hidden_state = of_clique(plan, of_cliques, hidden)
        states = np.indices(by_hidden_state.shape[1:]).reshape(len(hidden), 1, -1)
        digits = [
            states[hidden.index(p)] if p in hidden else node_codes[at][:, None]
            for p, node_codes in zip(self.positions, self.codes)
        ]
        joint = np.ravel_multi_index(np.broadcast_arrays(*digits), self.sizes)
        self.posterior[at[:, None], joint] = by_hidden_state.reshape(len(by_hidden_state), -1)[context]


def filled_numbers(
    model: MixedNetwork,
    numbers: HiddenNumbers | None,
    points: Sequence[Any],
    states: Sequence[np.ndarray] | Mapping[Any, np.ndarray],
    rng: np.random.Generator | None = None,
) -> Callable[[int, np.ndarray], np.ndarray]:
    """What rows hide of numbers beside observed children, as a function that puts it into the columns of an emission.

    Parameters
    ----------
    model : MixedNetwork
    numbers : HiddenNumbers or None
        Of the rows, by row.
    points : sequence
        Of emissions.
    states : sequence of ndarray, or mapping
        Of each factor the probabilities of its parents' joint states, (n_rows, n_states), for expected values; codes
        (n_rows,) of all nodes with a table for values drawn.
    rng : numpy.random.Generator, optional
    """
    filled: dict[int, list[tuple[int, np.ndarray, np.ndarray]]] = {}

    def with_hidden(k: int, columns: np.ndarray) -> np.ndarray:
        for column, at, values in filled.get(k, ()):
            columns[at, column] = values
        return columns

    if numbers is None:
        return with_hidden
    blocks = model.prior.blocks
    of_emissions = [np.ravel(block.natural(point)) for block, point in zip(blocks[1:], points)]
    natural = np.concatenate([np.zeros(model.prior.n_cells[0]), *of_emissions])
    families = model.number_families
    for number, (factor, table) in enumerate(zip(numbers.factors, numbers.tables)):
        if isinstance(states, Mapping):
            sizes = [model.layout.cardinalities[p] for p in factor.parents]
            joint = joint_codes([states[model.layout.names[p]] for p in factor.parents], sizes, len(table))
            of_rows = np.eye(factor.n_states)[joint]
        else:
            of_rows = states[number]
        for v, at, values in factor.step(natural).filled(table, of_rows, rng):
            k = max(family for family, first in families.first.items() if first <= v)
            column, of = v - families.first[k], families.products[k]
            in_unit = of.origin[column] + of.unit[column] * values
            filled.setdefault(k, []).append((column, at, in_unit))
    return with_hidden


def of_number(
    model: MixedNetwork, row: MixedRows, number: int, points: Sequence[tuple], **limits: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of a hidden number of one row at points: ln p of each, then of states of parents shares, means and variances.

    Parameters
    ----------
    model : MixedNetwork
    row : MixedRows
        One row.
    number : int
        By its place among all numbers of `NumberFamilies`.
    points : sequence of tuple
        Of the prior's blocks.

    Returns
    -------
    log_densities : ndarray of shape (n_points,)
        Of all that the row has observed, nats.
    states, means, variances : ndarray of shape (n_points, n_states)
        Shares of joint states of the parents, and of the number in its unit there.
    """
    numbers = cast(HiddenNumbers, model.hidden_numbers(row, by_row=True, wanted=[number]))
    parts = ((factor, *part) for factor, table in zip(numbers.factors, numbers.tables) for part in table.parts)
    factor, k, _, others = next(part for part in parts if number in part[0].clusters[part[1]].hidden)
    natural = np.stack([np.ravel(model.prior.natural(point)) for point in points], axis=1)
    eliminated, place = factor.matrices[k].eliminated(natural), factor.clusters[k].hidden.index(number)
    names = [model.layout.names[p] for p in factor.parents]
    log_densities, (states,) = posteriors_at(model, row, [names], points, **limits)
    means = eliminated.gain[:, :, place] @ others[0]
    return log_densities, states, means.T, eliminated.inverse[:, :, place, place].T


def posteriors_at(
    model: MixedNetwork, row: MixedRows, groups: Sequence[Sequence], points: Iterable[tuple], **limits: Any
) -> tuple[np.ndarray, list[np.ndarray]]:
    """ln p of a row at each point, nats, (n_points,), and posteriors of groups of nodes, (n_points, n_states) each."""
    data = model.compile(row.each_once(), together=groups, by_row=True, **limits)
    log_densities, posteriors = [], []
    for point in points:
        of_row, asked = Predictive(model, None, point).log_densities_and_asked(data, row, groups)
        log_densities.append(of_row[0])
        posteriors.append([each.posterior[0] for each in asked])
    return np.array(log_densities), [np.array(each) for each in zip(*posteriors)]


def latent_numbers(predictive: Predictive, rows: MixedRows, **limits: Any) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the numbers that no row observes, given each row, (n_rows, n_latent_numbers).

    States of parents have their predictive probabilities; given these a number is normal at expected natural
    parameters, as q(x) has it.
    """
    model = predictive.model
    places = [model.number_families.first[k] for k in model.latent_numbers]
    numbers = cast(HiddenNumbers, model.hidden_numbers(rows, by_row=True, wanted=places))
    names = [[model.layout.names[p] for p in factor.parents] for factor in numbers.factors]
    of_factors = predictive.all_posteriors(rows, names, **limits)
    posterior = predictive.posterior
    natural = np.ravel(model.prior.natural(predictive.point) if posterior is None else posterior.expected_natural())
    means, squares = np.zeros((2, len(rows), len(places)))
    for factor, table, states in zip(numbers.factors, numbers.tables, of_factors):
        step = factor.step(natural)
        for k, at, others in table.parts:
            for place, number in enumerate(factor.clusters[k].hidden):
                if number in places:
                    column, eliminated = places.index(number), step.eliminated[k]
                    of_states = others @ eliminated.gain[:, 0, place].T
                    means[at, column] = (states[at] * of_states).sum(axis=1)
                    second = of_states**2 + eliminated.inverse[:, 0, place, place]
                    squares[at, column] = (states[at] * second).sum(axis=1)
    return means, np.sqrt(squares - means**2)


def drawn_at(
    model: MixedNetwork, point: tuple, n_rows: int, rng: np.random.Generator, like: MixedRows | None = None
) -> tuple[dict, list[np.ndarray]]:
    """Rows drawn at a point: codes (n_rows,) of every node with a table, and the columns of every emission.

    Nodes that were set in rows `like` these are set to the same, and covariates that are no nodes are those of these
    rows.
    """
    columns: dict[int, np.ndarray] = {}

    def draw(k: int, codes: dict) -> np.ndarray:
        if k not in columns:
            emission, before = model.emissions[k], [draw(parent, codes) for parent in model.given[k]]
            states, given = model.states_of_parents(k, codes, n_rows), None
            if before:
                unknown = np.full((n_rows, emission.n_columns), np.nan)
                given = np.concatenate([unknown, *before], axis=1)
            columns[k] = emission.sample_given(given, None, point[1 + k], states, rng)[:, : emission.n_columns]
            if like is not None and k in like.values_set:  # else it follows its parents
                columns[k] = np.where(np.isnan(like.values_set[k]), columns[k], like.values_set[k])
        return columns[k]

    def probabilities(node, codes: dict) -> np.ndarray:
        k, covariates = model.drivers[node]
        membership: Any = model.emissions[k]
        drawn = [draw(each, codes) for each in covariates]
        table = membership.prepare(np.concatenate(drawn, axis=1)) if drawn else cast(MixedRows, like).tables[k]
        return membership.probabilities(table, point[1 + k])

    codes = of_tables.sample(model, point[0], n_rows, rng, like, probabilities)
    for k in model.in_order:
        draw(k, codes)
    return codes, [columns[k] for k in range(len(columns))]


def _in_parts(sizes: Sequence[int]) -> list[np.ndarray]:
    """Positions of rows, one after the other, in parts of these sizes."""
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
