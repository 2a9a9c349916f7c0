r"""Chains over structures and hidden variables: how probable a structure is, without the evidence of any.

Given completed rows x, y every structure m over the same nodes has its evidence in closed form, a product over
families, so that a Gibbs chain goes through structures, hidden variables and parameters in turn:

.. math::

    x \sim p(x \mid y, \theta, m), \qquad
    m \sim p(m \mid x, y) \propto p(m) \prod_j \mathrm{BD}(j, \mathrm{pa}_m(j); x, y), \qquad
    \theta \sim p(\theta \mid x, y, m).

The mean of :math:`p(m \mid x, y)` along chains is the posterior [MY95]. A structure is drawn from all
candidates at once, each in all the graphs that differ from it by names of exchangeable latents. A candidate without one
of the latents is one in which that has no edges, which has the same evidence.

Chains start at the fits of candidates, far apart, so that what they disagree on after half of their sweeps says how far
they are from one answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skvbem._kernels._annealing import draw_latent
from skvbem._kernels._structures import draw_structures, draw_tables, family_scores
from skvbem._lazy import cached_property
from skvbem._numerics import log_rising
from skvbem.errors import StructureError
from skvbem.families.dirichlet_mixture import AveragedConcentration
from skvbem.fitting.kind import find_kind
from skvbem.graphs.dag import DAG
from skvbem.models.network.layout import Layout
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.sampling import NetworkSampler
from skvbem.search.execution.jobs import EvidenceJob, Job
from skvbem.search.families.decomposable import rest
from skvbem.search.tuning import TUNING


@dataclass(frozen=True, eq=False)
class ChainPosterior:
    """The posterior over candidates by chains over structures.

    Parameters
    ----------
    probabilities, errors : ndarray of shape (n_candidates,)
        Of candidates, with standard errors from the differences of chains.
    is_stuck : bool
        Whether chains stay near where they began: then shares are of starts, not of the posterior.
    n_sweeps : int
    """

    probabilities: np.ndarray
    errors: np.ndarray
    is_stuck: bool
    n_sweeps: int


@dataclass(frozen=True)
class _Structure:
    """A graph over all nodes, and the candidate it stands for."""

    candidate: int
    parents: tuple[tuple[int, ...], ...]


class ChainsImpossible(ValueError):
    """The reason why no chain can go through candidates."""


def graphs_for_chains(job: Job, settings: Sequence[Mapping]) -> Graphs:
    """The graphs of candidates that chains can go through.

    Raises
    ------
    ChainsImpossible
        If they cannot.
    """
    if (
        not isinstance(job, EvidenceJob)
        or job.readings.common is None
        or not hasattr(find_kind(job.estimator), "network")
    ):
        raise ChainsImpossible("candidates are no networks that share a reading of X")
    if job.estimator.learn_prior or not job.readings.common.has_whole_weights:
        raise ChainsImpossible("the prior is learned, or weights are no whole numbers")
    if len({rest(setting) for setting in settings}) > 1:
        raise ChainsImpossible("candidates differ in more than their graphs")
    networks = [job.network(setting) for setting in settings]
    if any(network.ties for network in networks):
        raise ChainsImpossible("tables are tied")
    if any(isinstance(networks[0].equal_concentration(node), AveragedConcentration) for node in networks[0].dag.nodes):
        raise ChainsImpossible("the strengths of tables are hidden")
    sizes: dict[Hashable, set[int]] = {}
    for network in networks:
        for name, n_states in network.latents.items():
            sizes.setdefault(name, set()).add(n_states)
    if not sizes or any(len(numbers) > 1 for numbers in sizes.values()) or len(sizes) > TUNING.max_latents:
        raise ChainsImpossible("candidates have no latents, or these have other numbers of states")
    try:
        graphs = Graphs(networks)
    except StructureError as error:
        raise ChainsImpossible("the edges of all candidates together make a cycle") from error
    if len(graphs.structures) > TUNING.max_graphs or graphs.n_family_cells > TUNING.max_cells:
        raise ChainsImpossible("candidates are too many, or their tables too large")
    return graphs


class Graphs:
    """The graphs that chains go through, with their families as parts of the tables of one graph that has all edges.

    Parameters
    ----------
    networks : sequence of CandidateNetwork

    Raises
    ------
    StructureError
        If all edges together make a cycle.
    """

    def __init__(self, networks: Sequence[Any]):
        latents = {name: size for network in networks for name, size in network.latents.items()}
        columns = [node for node in networks[0].dag.nodes if node not in networks[0].latents]
        self.nodes = (*latents, *columns)
        self.cardinalities = {**networks[0].cardinalities, **latents}
        position = {node: k for k, node in enumerate(self.nodes)}
        self._prior_of = networks[0].family_prior
        alike = [
            [position[name] for name, other in latents.items() if other == size]
            for size in dict.fromkeys(latents.values())
        ]
        given = []
        for network in networks:
            known = set(network.dag.nodes)
            given.append(
                tuple(
                    tuple(sorted(position[p] for p in network.dag.parents(node))) if node in known else ()
                    for node in self.nodes
                )
            )
        self.structures = _with_relabelings(given, alike)
        union = {
            node: [self.nodes[p] for p in sorted({p for each in self.structures for p in each.parents[k]})]
            for k, node in enumerate(self.nodes)
        }
        self.union = DAG(self.nodes, union)
        self.layout = Layout(
            self.nodes,
            tuple(self.cardinalities[node] for node in self.nodes),
            tuple(tuple(position[p] for p in union[node]) for node in self.nodes),
        )
        self.families = [list(dict.fromkeys(each.parents[k] for each in self.structures)) for k in range(len(position))]

    @cached_property
    def n_family_cells(self) -> int:
        """Cells of the tables of all families."""
        sizes = self.layout.cardinalities
        return sum(
            sizes[k] * prod(sizes[p] for p in parents) for k, each in enumerate(self.families) for parents in each
        )

    @cached_property
    def model(self) -> DiscreteDAG:
        """The network with all edges."""
        priors = {node: self._prior_of(self.union.family(node), self.cardinalities) for node in self.nodes}
        return DiscreteDAG(self.union, self.cardinalities, priors)

    def prior(self, node: int, parents: tuple[int, ...]) -> np.ndarray:
        """Concentrations of a family, axes (*parents, node)."""
        return self._prior_of(tuple(self.nodes[k] for k in (*parents, node)), self.cardinalities)

    def natural(self, model: DiscreteDAG, natural: np.ndarray) -> np.ndarray:
        """Natural parameters of one network (n_cells,) as those of the network with all edges."""
        spread = np.empty(self.layout.n_cells)
        tables = model.tables(natural)
        for k, node in enumerate(self.nodes):
            out = self.layout.table(spread, k)
            if node not in tables:
                out[...] = -np.log(self.cardinalities[node])
                continue
            mine, all_parents = model.dag.parents(node), self.union.parents(node)
            order = [mine.index(p) for p in all_parents if p in mine]
            table = tables[node].transpose(*order, len(mine))
            shape = [self.cardinalities[p] if p in mine else 1 for p in all_parents]
            out[...] = table.reshape(*shape, self.cardinalities[node])
        return spread


def _with_relabelings(given: Sequence[tuple], alike: Sequence[Sequence[int]]) -> list[_Structure]:
    """Each candidate in all graphs that differ from it by names of latents alike; once where these are too many."""
    if len(given) * prod(factorial(len(group)) for group in alike) > TUNING.max_graphs:
        return [_Structure(k, parents) for k, parents in enumerate(given)]
    structures = []
    for k, parents in enumerate(given):
        graphs: dict[tuple, None] = {}
        for orders in product(*(permutations(group) for group in alike)):
            name = list(range(len(parents)))
            for group, order in zip(alike, orders):
                for old, new in zip(group, order):
                    name[old] = new
            renamed: list[tuple[int, ...]] = [()] * len(parents)
            for node, above in enumerate(parents):
                renamed[name[node]] = tuple(sorted(name[p] for p in above))
            graphs[tuple(renamed)] = None
        structures += [_Structure(k, graph) for graph in graphs]
    return structures


class _Tables:
    """Counts, scores and draws of the tables of all families, from counts of the network with all edges."""

    def __init__(self, graphs: Graphs, total: float):
        layout, rows, columns, first, starts, prior = graphs.layout, [], [], [0], [0], []
        first_row = [0]
        for node, families in enumerate(graphs.families):
            shape, parents = layout.table_shape(node), layout.parents[node]
            place = np.indices(shape).reshape(len(shape), -1)
            for family in families:
                axes = [parents.index(p) for p in family] + [len(parents)]
                family_shape = [shape[axis] for axis in axes]
                rows.append(np.ravel_multi_index([place[axis] for axis in axes], family_shape))
                columns.append(layout.first_cell[node] + np.arange(prod(shape)))
                first_row.append(first_row[-1] + prod(family_shape[:-1]))
                end = first[-1] + prod(family_shape)
                starts += list(range(first[-1] + shape[-1], end + 1, shape[-1]))
                prior.append(graphs.prior(node, family).ravel())
                first.append(end)
        self._first_cell, self._cells = np.array(first, dtype=np.int64), np.concatenate(rows)
        self._cell_starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        at = self._cells + np.repeat(self._first_cell[:-1], np.diff(self._cell_starts)), np.concatenate(columns)
        self._sums = csr_array((np.ones(len(self._cells)), at), shape=(first[-1], layout.n_cells))
        self._starts, self._prior = np.array(starts, dtype=np.int64), np.concatenate(prior)
        self._first_row = np.array(first_row, dtype=np.int64)
        self._concentrations = np.concatenate([self._prior, np.add.reduceat(self._prior, self._starts[:-1])])
        distinct, self._tabled = np.unique(self._concentrations, return_inverse=True)
        n_tabled = int(min(total + 1, TUNING.cache_bytes / 8 / len(distinct)))
        self._table = log_rising(distinct[:, None], np.arange(n_tabled, dtype=float))
        self._cardinalities = np.array(layout.cardinalities, dtype=np.int64)
        self._union_first = np.array([*layout.first_cell, layout.n_cells], dtype=np.int64)

    def counts(self, drawn: np.ndarray) -> np.ndarray:
        """Counts of the cells of all families, (n_cells, n_chains)."""
        return self._sums @ drawn

    def scores(self, counts: np.ndarray) -> np.ndarray:
        """ln of the Bayesian Dirichlet score of every family, (n_families, n_chains), nats."""
        scores = np.empty((len(self._first_row) - 1, counts.shape[1]))
        family_scores(self._first_row, self._starts, self._concentrations, self._tabled, self._table, counts, scores)
        return scores

    def draw(self, counts: np.ndarray, families: np.ndarray, drawn: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """ln theta given the structures drawn (n_chains,), as that of the network with all edges.

        `families`, (n_structures, n_nodes), has the numbers of their families.
        """
        points = np.empty((self._union_first[-1], counts.shape[1]))
        draw_tables(
            self._first_cell,
            self._union_first,
            self._cell_starts,
            self._cells,
            self._cardinalities,
            families,
            drawn,
            self._prior,
            counts,
            streams,
            points,
        )
        return points


class _Chains:
    """Chains side by side, from natural parameters of the network with all edges."""

    def __init__(self, graphs: Graphs, job: Any, log_priors: np.ndarray, points: np.ndarray, rng: np.random.Generator):
        self.points, n_chains = points, points.shape[1]
        self.streams = rng.integers(0, 2**64, size=(4, n_chains), dtype=np.uint64)
        rows, estimator = job.readings.common.kept().rows, job.estimator
        self._tables = _Tables(graphs, float(rows.total_weight))
        limits = {"max_memory": estimator.max_memory, "max_table_cells": estimator.max_table_cells}
        data = graphs.model.compile(rows, n_lanes=n_chains, release=True, **limits)
        self._workspace = NetworkSampler(graphs.model).workspace(data, n_chains)
        numbers = np.cumsum([0, *map(len, graphs.families)])
        places = [
            {family: at for at, family in enumerate(each, first)} for each, first in zip(graphs.families, numbers)
        ]
        families = [[at[p] for at, p in zip(places, each.parents)] for each in graphs.structures]
        self._families = np.array(families, dtype=np.int64)
        self.candidate = np.array([each.candidate for each in graphs.structures])
        n_graphs = np.bincount(self.candidate)
        self._log_prior = (log_priors - np.log(n_graphs))[self.candidate]

    def sweep(self, total: np.ndarray) -> None:
        """Draw hidden variables, structures and parameters; the probabilities of structures are added to a total."""
        complete = np.empty(self.points.shape)
        draw_latent(self._workspace, self.points, self.streams, complete)
        counts = self._tables.counts(complete)
        drawn = np.empty(counts.shape[1], dtype=np.int64)
        draw_structures(self._families, self._log_prior, self._tables.scores(counts), self.streams, total, drawn)
        self.points = self._tables.draw(counts, self._families, drawn, self.streams)

    def mean(self, n_sweeps: int) -> np.ndarray:
        """Mean probabilities of candidates over further sweeps, (n_candidates, n_chains)."""
        total = np.zeros((len(self.candidate), self.points.shape[1]))
        for _ in range(n_sweeps):
            self.sweep(total)
        totals = np.zeros((self.candidate[-1] + 1, self.points.shape[1]))
        np.add.at(totals, self.candidate, total)
        return totals / n_sweeps


def posterior_by_chains(
    job: Any,
    settings: Sequence[Mapping],
    scores: np.ndarray,
    log_priors: np.ndarray,
    rng: np.random.Generator,
    *,
    n_chains: int = TUNING.n_chains,
    max_sweeps: int = TUNING.max_sweeps,
    tell: Callable[[int, float], object] = lambda *_: None,
) -> ChainPosterior:
    """The posterior over candidates by chains that go through all of them, from the fits of the best.

    Parameters
    ----------
    job : EvidenceJob
    settings : sequence of mapping
        The candidates.
    scores, log_priors : ndarray of shape (n_candidates,)
        Finite; their sum chooses the candidates whose fits chains start from.
    rng : numpy.random.Generator
    n_chains, max_sweeps : int
    tell : callable of (int, float), optional
        Told the sweeps done and the largest error of a probability.

    Returns
    -------
    ChainPosterior

    Raises
    ------
    ChainsImpossible
        If chains cannot go through these candidates.
    """
    graphs = graphs_for_chains(job, settings)
    best = np.argsort(-(scores + log_priors), kind="stable")[:n_chains]
    points = _points_of_fits(job, graphs, [settings[k] for k in best], n_chains)
    chains = _Chains(graphs, job, log_priors, points, rng)
    for n_sweeps, halves in _looks(chains):
        each = (halves[0] + halves[1]) / 2
        errors = each.std(axis=1, ddof=1) / np.sqrt(n_chains)
        tell(n_sweeps, float(errors.max()))
        is_stuck = bool(errors.max() > TUNING.unlikely and _correlation(*halves) > TUNING.max_correlation)
        if (errors.max() <= TUNING.small_error and not is_stuck) or n_sweeps >= max_sweeps:
            break
    return ChainPosterior(each.mean(axis=1), errors, is_stuck, n_sweeps)


def _looks(chains: _Chains) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
    """Sweeps so far, and means over both halves of those that count: the last half of all, or two thirds in between."""
    n_sweeps = TUNING.first_sweeps
    chains.mean(n_sweeps // 2)
    before, last = chains.mean(n_sweeps // 4), chains.mean(n_sweeps // 4)
    while True:
        yield n_sweeps, (before, last)
        before, last = (before + last) / 2, chains.mean(n_sweeps // 2)
        yield n_sweeps + n_sweeps // 2, (before, last)
        before, last = last, chains.mean(n_sweeps // 2)
        n_sweeps *= 2


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Correlation between the differences of chains in two stretches, over all candidates."""
    one, other = (each - each.mean(axis=1, keepdims=True) for each in (first, second))
    size = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / size) if size > 0 else 0.0


def _points_of_fits(job: Any, graphs: Graphs, settings: Sequence[Mapping], n: int) -> np.ndarray:
    """Natural parameters of the fits of candidates, and then of their further optima, in turn, (n_cells, n)."""
    fits = []
    for setting in settings:
        evaluation: Any = job.evaluation(setting)
        fits.append((evaluation.model, evaluation.ended_optima()))
    columns = []
    for k in range(n):
        model, optima = fits[k % len(fits)]
        statistics = optima[:, k // len(fits) % optima.shape[1]]
        columns.append(graphs.natural(model, (model.prior + statistics).expected_natural()))
    return np.stack(columns, axis=1)
