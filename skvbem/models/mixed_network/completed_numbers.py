r"""Rows of categories and measurements completed by q(x), as sums: what bounds every network over the same columns.

Given a joint state c of all categories the numbers of a row are normal under q(x). Let :math:`z = (1, y_1, \ldots,
y_d)` and :math:`M_c = \sum_i \omega_i r_{ic} \langle z_i z_i^\top \rangle`. Blocks of sums of these are the expected
statistics of every family, also of families that the network which made q(x) does not have, so that

.. math:: \ln p(y \mid m) \ge H(q) + \sum_v \ln p(\langle \text{statistics of } v, \mathrm{pa}(v) \rangle_q)

[Friedman 1998; Beal (2.151) with hidden numbers]. No missing cell is left out here, as it would be in an E step where
nothing below it is observed: another network may have something there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.special import xlogy

from skvbem._lazy import cached_property
from skvbem._numerics import distinct_rows, log_sum_exp
from skvbem.emissions.base import Emission, Products
from skvbem.families.base import ConjugateFamily
from skvbem.models.mixed_network.data import MixedRows, joint_codes
from skvbem.models.mixed_network.elimination_of_numbers import Matrices
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.mixed_network.number_families import Cluster
from skvbem.models.network.completed_rows import CompletedRows, check_size_of_completions

# Steps over hidden precisions, and by how little the last one may raise the bound, nats.
_N_STEPS, _TOL = 1000, 1e-8


@dataclass(frozen=True, eq=False)
class CompletedNumbers:
    """Expected sums of rows in each joint state of all categories that has any.

    Parameters
    ----------
    cardinalities : mapping of node to int
        Number of states of each node with a table.
    codes : ndarray of int, shape (n_nodes, n_configurations)
        Of these, in each joint state.
    numbers : tuple of nodes
        Nodes that hold numbers.
    origin, unit : ndarray of shape (n_numbers,)
        In which products are measured.
    products : ndarray of shape (n_configurations, 1 + n_numbers, 1 + n_numbers)
        M: of (1, numbers), weighted.
    entropy : float
        H(q), nats, of numbers in these units.
    log_unit : float
        Of all observed numbers, what their units add to negative log densities, nats.
    is_certain : bool
        Whether no cell is missing.
    """

    cardinalities: Mapping[Hashable, int]
    codes: np.ndarray
    numbers: tuple
    origin: np.ndarray
    unit: np.ndarray
    products: np.ndarray
    entropy: float
    log_unit: float
    is_certain: bool

    @property
    def weight(self) -> np.ndarray:
        """Expected rows in each joint state, (n_configurations,)."""
        return np.ascontiguousarray(self.products[:, 0, 0])

    @cached_property
    def categories(self) -> CompletedRows:
        """The joint states as complete rows, each as often as it is expected."""
        return CompletedRows(self.cardinalities, self.codes, np.arange(len(self.weight)), self.weight, self.weight)

    def states_of(self, parents: Sequence[Hashable]) -> np.ndarray:
        """The joint state of some categories in each configuration, (n_configurations,), the last running fastest."""
        names = list(self.cardinalities)
        digits = [self.codes[names.index(parent)].astype(np.int64) for parent in parents]
        return joint_codes(digits, [self.cardinalities[parent] for parent in parents], len(self.weight))

    def statistics_of(
        self, emission: Emission, node: Hashable, parents: Sequence[Hashable]
    ) -> tuple[np.ndarray, float]:
        """Expected statistics of a family of numbers, (n_cells,), and what its units add to log densities, nats."""
        of = emission.products
        assert of is not None  # other emissions have no such sums
        above, given = ([p for p in parents if (p in self.cardinalities) is is_table] for is_table in (True, False))
        states, n_states = self.states_of(above), prod(self.cardinalities[p] for p in above)
        at = [self.numbers.index(each) for each in (node, *given)]
        by_state = np.zeros((n_states, 1 + len(at), 1 + len(at)))
        places = [0, *(1 + number for number in at)]
        np.add.at(by_state, states, self.products[:, places][:, :, places])
        turn = self._to_units_of(of, at)
        by_state = turn @ by_state @ turn.T
        component = emission.component_of_cell(n_states)
        cells = np.argsort(component, kind="stable").reshape(n_states, -1)
        statistics = np.zeros(len(component))
        np.add.at(statistics, cells[:, of.cell].ravel(), (of.factor * by_state[:, of.one, of.other]).ravel())
        log_ratio = float(np.log(self.unit[at[:1]] / of.unit).sum())
        return statistics, float(self.weight.sum()) * (of.log_volume + log_ratio)

    def _to_units_of(self, of: Products, at: Sequence[int]) -> np.ndarray:
        """The matrix by which (1, numbers) are measured as a family measures them."""
        origin, unit = np.concatenate([of.origin, of.given_origin]), np.concatenate([of.unit, of.given_unit])
        turn = np.eye(1 + len(at))
        turn[1:, 0] = (self.origin[at] - origin) / unit
        turn[1:, 1:] = np.diag(self.unit[at] / unit)
        return turn

    def statistics(self, model: MixedNetwork) -> np.ndarray:
        """Expected statistics (n_cells,) of a network over the same nodes, and of its hidden hyperparameters."""
        layout, parts = model.layout, []
        for node in layout.names[: layout.n_tables]:
            parts.append(
                self.categories.counts((*(layout.names[p] for p in layout.parents[model.position[node]]), node))
            )
        flat = np.concatenate([np.empty(0), *(part.ravel() for part in parts)])
        nodes = layout.names[layout.n_tables :]
        each = (self.statistics_of(of, node, model.dag.parents(node))[0] for node, of in zip(nodes, model.emissions))
        return with_hidden(model.prior, np.concatenate([flat, *each]))[0]


def with_hidden(prior: ConjugateFamily, statistics: np.ndarray) -> tuple[np.ndarray, float]:
    """Statistics of complete data with those of hidden hyperparameters, and the log evidence or its highest bound.

    Parameters
    ----------
    prior : ConjugateFamily
    statistics : ndarray of shape (n_cells,)

    Returns
    -------
    statistics : ndarray of shape (n_cells,)
        As they are where no hyperparameters are hidden.
    bound : float
        Nats. Steps over hidden hyperparameters each raise it, until one does no more.
    """
    if prior.hyperprior is None:
        return statistics, float(prior.log_evidence(statistics))
    data, bound = statistics[:, None], -np.inf
    hidden = prior.hyperprior.prior_statistics.reshape(-1, 1)
    for _ in range(_N_STEPS):
        before = hidden
        posterior = prior + (data + hidden)
        natural = posterior.expected_natural()
        hidden, of_hidden = prior.hyperprior.expect(natural)
        last, bound = bound, float((data * natural).sum() + of_hidden[0] - posterior.kl(prior, natural)[0])
        if bound - last < _TOL:
            break
    return (data + before)[:, 0], bound


def complete_numbers(
    model: MixedNetwork, statistics: np.ndarray, rows: MixedRows, *, max_memory: float = np.inf
) -> CompletedNumbers:
    """Rows completed by the q(x) that follows from q(theta) = prior + statistics.

    Parameters
    ----------
    model : MixedNetwork
        Of tables and measurements, each node of these with one column.
    statistics : ndarray of shape (n_cells,)
    rows : MixedRows
    max_memory : float
        Bytes.

    Raises
    ------
    TooLargeError
        If the joint states of all rows take too much memory.
    """
    rows = rows.counting()
    layout, natural = model.layout, (model.prior + statistics).expected_natural()
    codes = np.full((len(rows), layout.n_tables), -1, dtype=np.int64)
    for node, column in model.categories(rows).items():
        codes[:, node] = column
    numbers, _ = model.number_families.numbers(rows.tables, {})
    sizes = layout.cardinalities[: layout.n_tables]
    n_states = np.where(codes < 0, np.array(sizes, dtype=float), 1.0).prod(axis=1)
    check_size_of_completions(layout, float(n_states.sum()), max_memory)
    sums = _Sums(model, natural, codes, numbers, rows.weight)
    missing = np.concatenate([codes < 0, np.isnan(numbers)], axis=1)
    patterns, pattern_of = distinct_rows(missing)
    for k, pattern in enumerate(patterns):
        sums.add(pattern[: layout.n_tables], pattern[layout.n_tables :], np.flatnonzero(pattern_of == k))
    families, keys = model.number_families, np.array(sorted(sums.products), dtype=np.int64)
    log_unit = np.array(families.log_unit)
    emissions = [families.products[k] for k in range(model.n_nodes_with_emission)]
    return CompletedNumbers(
        dict(zip(layout.names, sizes)),
        np.array(np.unravel_index(keys, sizes)) if sizes else np.zeros((0, len(keys)), dtype=np.int64),
        layout.names[layout.n_tables :],
        np.concatenate([of.origin for of in emissions]),
        np.concatenate([of.unit for of in emissions]),
        np.stack([sums.products[key] for key in keys.tolist()]),
        sums.entropy,
        float(rows.weight @ ~np.isnan(numbers) @ log_unit),
        not missing.any(),
    )


class _Sums:
    """Sums over rows, pattern by pattern of what is missing.

    Parameters
    ----------
    model : MixedNetwork
    natural : ndarray of shape (n_cells,)
        Expected natural parameters.
    codes : ndarray of int, shape (n_rows, n_tables)
    numbers : ndarray of shape (n_rows, n_numbers)
        In units, NaN where missing.
    weight : ndarray of shape (n_rows,)
    """

    def __init__(self, model: MixedNetwork, natural: np.ndarray, codes, numbers, weight):
        self.layout, self.families = model.layout, model.number_families
        self.natural, self.codes, self.numbers, self.weight = natural, codes, numbers, weight
        of_tables = model.layout.parents[model.layout.n_tables :]
        self.above = tuple(sorted({parent for parents in of_tables for parent in parents}))
        self.products: dict[int, np.ndarray] = {}
        self.entropy = 0.0

    def add(self, hidden_tables: np.ndarray, hidden_numbers: np.ndarray, rows: np.ndarray) -> None:
        """Add the rows of a pattern: which nodes with a table are missing, and which numbers."""
        hidden, observed = np.flatnonzero(hidden_numbers), np.flatnonzero(~hidden_numbers)
        codes = self._completions(np.flatnonzero(hidden_tables), self.codes[rows])
        states, which = self._states(codes)
        everything = tuple((k, (0,)) for k in self.families.products)
        cluster = Cluster(everything, tuple(observed.tolist()), tuple(hidden.tolist()), self.above)
        eliminated = Matrices.of(self.families, [(cluster, states)]).eliminated(self.natural[:, None])
        seen = np.concatenate([np.ones((len(rows), 1)), self.numbers[np.ix_(rows, observed)]], axis=1)
        share = np.ones(which.shape)
        if len(share) > 1:
            quadratic = np.einsum("ni,kij,nj->kn", seen, eliminated.schur[:, 0], seen, optimize=True)
            log_joint = self._of_tables(codes) + (eliminated.log_volume - 0.5 * quadratic)[which, np.arange(len(rows))]
            share = np.exp(log_joint - log_sum_exp(log_joint, axis=0))
        weight = share * self.weight[rows]
        self.entropy += float(
            (weight * eliminated.entropy[:, 0][which]).sum() - self.weight[rows] @ xlogy(share, share).sum(axis=0)
        )
        order = np.concatenate([[0], 1 + observed, 1 + hidden])
        keys = joint_codes(
            list(np.moveaxis(codes, -1, 0)), self.layout.cardinalities[: self.layout.n_tables], which.shape
        )
        keys = np.broadcast_to(keys, which.shape)
        of_row = np.broadcast_to(np.arange(len(rows)), which.shape)
        for key, at in _grouped(keys.ravel()):
            those, counts = of_row.ravel()[at], weight.ravel()[at]
            sums = (seen[those].T * counts) @ seen[those]
            moments = eliminated.moments(sums[None, None])[which.ravel()[at[0]], 0]
            total = self.products.setdefault(key, np.zeros((len(order),) * 2))
            total[np.ix_(order, order)] += moments

    def _completions(self, hidden: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Codes of rows with each joint state of hidden nodes, (n_joint_states, n_rows, n_tables)."""
        sizes = [self.layout.cardinalities[node] for node in hidden]
        states = np.array(list(np.ndindex(*sizes)), dtype=np.int64)
        completed = np.repeat(codes[None], len(states), axis=0)
        completed[:, :, hidden] = states[:, None]
        return completed

    def _states(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distinct joint states of what is above numbers, and which of them each completion has."""
        sizes = [self.layout.cardinalities[node] for node in self.above]
        joint = joint_codes([codes[..., node] for node in self.above], sizes, codes.shape[:2])
        states, which = np.unique(joint, return_inverse=True)
        return states, which.reshape(codes.shape[:2])

    def _of_tables(self, codes: np.ndarray) -> np.ndarray:
        """Expected log probabilities of all tables in each completion, nats."""
        total = np.zeros(codes.shape[:2])
        for node in range(self.layout.n_tables):
            strides = self.layout.strides[node].items()
            total += self.natural[self.layout.first_cell[node] + sum(codes[..., p] * by for p, by in strides)]
        return total


def _grouped(keys: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each distinct key with its positions, ascending."""
    distinct, which = np.unique(keys, return_inverse=True)
    order = np.argsort(which, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(which, minlength=len(distinct)))[:-1])
    yield from zip(distinct.tolist(), parts)
