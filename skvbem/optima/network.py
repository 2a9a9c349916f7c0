"""Fits of networks, discrete and of mixed columns: starts, moves of hidden states, learned priors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, cycle, islice
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import safe_log
from skvbem.families import Dirichlet, DirichletMixture, RegressionPoint
from skvbem.models import DirichletAscent, DiscreteDAG
from skvbem.models.labels.distinct_rows import coordinates_of, seeds_among, squares_to
from skvbem.models.mixed_network.data import FactorRows, MixedData
from skvbem.models.mixed_network.model import MixedNetwork, MixedNetworkAscent
from skvbem.models.mixed_network.number_factors import NumberFactor, NumberTable
from skvbem.models.network.layout import Layout
from skvbem.models.network.model import MixtureAscent, StructuredAscent
from skvbem.optima.candidates import Proposals, drawn, smoothing_of
from skvbem.optima.plan import FitMethod, Stop
from skvbem.optima.tuning import TUNING
from skvbem.vbem.fit import Fit
from skvbem.vbem.hyperparameters import strengthened
from skvbem.vbem.posteriors import Form


def random_points(model: DiscreteDAG, n_points: int, rng: np.random.Generator) -> np.ndarray:
    """Tables drawn uniformly, (n_cells, n_points), the first ones the same however many are drawn."""
    draws = rng.standard_exponential((n_points, model.layout.n_cells)).T
    return draws / model.prior.per_cell(model.prior.row_sums(draws))


@dataclass(frozen=True, eq=False)
class TableStarts:
    """Starts from tables: from those given, or from tables drawn uniformly.

    Parameters
    ----------
    seed : tuple of int
        Of random tables.
    n_starts : int
    given : ndarray of shape (n_cells, 1) or None
    """

    seed: tuple[int, ...]
    n_starts: int
    given: np.ndarray | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        return ("random" if self.given is None else "given",) * self.n_starts

    def __call__(self, ascent: DirichletAscent | StructuredAscent) -> np.ndarray:
        """Expected statistics, (n_cells, n_starts)."""
        points = self.given
        if points is None:
            points = random_points(ascent.model, self.n_starts, np.random.default_rng(self.seed))
        return ascent.expect(safe_log(points))


def _check_concentrations(prior: Any, form: Form) -> bool:
    """Refuse a prior of tables with several concentrations in forms that take one; say whether it is such a prior."""
    is_mixture = isinstance(prior, DirichletMixture)
    if is_mixture:
        check_has_one_concentration(form)
    return is_mixture


class NetworkMethod(FitMethod):
    """Fits discrete networks."""

    def ascent(self, model, data, form: Form, n_threads: int) -> DirichletAscent | MixtureAscent | StructuredAscent:
        """Full steps of a network on its data."""
        has_mixture = _check_concentrations(model.prior, form)
        if has_mixture and not form.density:  # maximum likelihood asks no prior
            model = model.with_prior(model.prior.with_known_hyperparameters())
        if not data.is_exact:
            return StructuredAscent(model, data, form, n_threads)
        return (MixtureAscent if has_mixture else DirichletAscent)(model, data, form, n_threads)

    def moves(
        self,
        ascent: DirichletAscent | StructuredAscent,
        statistics: np.ndarray,
        seed: int,
        is_brief: bool,
        n_failed: int,
    ) -> Proposals:
        """States of one latent that share their counts anew, two or one in the room of two joined; tables drawn."""
        rng = np.random.default_rng(seed)
        counts = statistics[: ascent.model.layout.n_cells, 0]
        shared_out = StatesSharedOut(ascent.model, ascent.data.latents, counts, rng, smoothing_of(ascent.form))
        kinds, points = shared_out.proposals(TUNING.n_cheap)
        if not kinds:
            return Proposals(kinds, points)
        if isinstance(ascent, StructuredAscent):
            points = ascent.with_uniform_clusters(points)
        tables = drawn(ascent, counts, TUNING.n_seldom, rng)
        if not tables.shape[1]:
            return Proposals(kinds, points)
        return Proposals([*kinds, *["draw"] * tables.shape[1]], np.concatenate([points, tables], axis=1))

    def finalize(
        self, ascent: DirichletAscent | StructuredAscent, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]
    ) -> Fit:
        """The fit with what is kept of q(x) apart from its counts."""
        if ascent.data.is_exact:
            return fit
        n_cells = ascent.model.layout.n_cells
        counts, state = fit.statistics[:n_cells], fit.statistics[n_cells:]
        return replace(fit, statistics=counts, optima=fit.optima[:n_cells], state=state)

    def with_state(self, ascent: DirichletAscent | StructuredAscent, statistics: np.ndarray) -> np.ndarray:
        """Counts, and behind counts alone clusters of which nothing is known; see `FitMethod`."""
        if not isinstance(ascent, StructuredAscent) or len(statistics) > ascent.n_cells:
            return statistics
        return ascent.with_uniform_clusters(statistics)

    def resumed(self, fit: Fit) -> np.ndarray:
        """Counts, and behind them what was kept of q(x)."""
        return fit.statistics if fit.state is None else np.concatenate([fit.statistics, fit.state])

    def statistics_to_start_from(self, statistics: np.ndarray) -> np.ndarray:
        """Counts of which none is 0: what an earlier fit ruled out (by ML, say) may occur."""
        return np.maximum(statistics, 1e-6)

    def strengthened(self, model: DiscreteDAG, base: DiscreteDAG, statistics: np.ndarray) -> DiscreteDAG:
        """One strength for each node multiplies its tables; see `FitMethod`."""
        layout = model.layout
        rows = [layout.table_cells(k) // size for k, size in enumerate(layout.cardinalities) if layout.has_own_table(k)]
        group_starts = np.concatenate([[0], np.cumsum(rows)])
        return model.with_prior(strengthened(model.prior, statistics, base.prior, group_starts))


def check_has_one_concentration(form: Form) -> None:
    """Refuse a point of the highest density of a mixture of Dirichlet distributions: it may have several."""
    if not form.density and form.prior_share:
        raise ValueError(
            "Under prior='bdla' the strength of each table is hidden, and the density of tables may have several "
            "modes, so that there is no MAP fit. Take a number, 'bdeu' or 'per_row' as 'prior'; method='vb' or "
            "'ml'; or a score that needs no MAP fit, such as 'lower_bound', 'ais' or 'importance'."
        )


class StatesSharedOut:
    """Proposals in which states of a hidden node share their counts anew.

    Parameters
    ----------
    model : DiscreteDAG
    latents : sequence of int
        Nodes that no row observes.
    statistics : ndarray of shape (n_cells,)
        Of a fit.
    rng : numpy.random.Generator
    smoothing : float
        The share of the counts of children that is spread evenly over their states: what a proposal rules out, maximum
        likelihood never finds.
    """

    def __init__(
        self,
        model: DiscreteDAG,
        latents: Sequence[int],
        statistics: np.ndarray,
        rng: np.random.Generator,
        smoothing: float = 0.0,
    ):
        self.layout, self.statistics, self._rng, self._smoothing = model.layout, statistics, rng, smoothing
        self.latents = _worth_moving(model.layout, latents)

    def proposals(self, most: int) -> tuple[list[str], np.ndarray]:
        """Kinds and statistics (n_cells, n) of so many proposals; none where they would be new starts."""
        proposed = list(islice(self._each(), most))
        if not proposed:
            return [], np.empty((len(self.statistics), 0))
        return [kind for kind, _ in proposed], np.stack([statistics for _, statistics in proposed], axis=1)

    def _each(self) -> Iterator[tuple[str, np.ndarray]]:
        """Kinds and statistics without end: latents take turns, and so do the kinds of each."""
        ways = [
            (latent, kind)
            for latent in self.latents
            for kind in (("draw again",) if self.layout.cardinalities[latent] == 2 else ("split, join", "divide anew"))
        ]
        ways.sort(key=lambda way: way[1] == "divide anew")
        for latent, kind in cycle(ways):
            states = self._rng.permutation(self.layout.cardinalities[latent]).tolist()
            joined = (states[1], states[2]) if kind == "split, join" else None
            yield kind, self._shared_out(latent, (states[0], states[2 if joined else 1]), joined)

    def _shared_out(self, latent: int, states: tuple[int, int], joined: tuple[int, int] | None) -> np.ndarray:
        """Statistics (n_cells,) in which states share their counts, once the second of two joined went to the first."""
        statistics = self.statistics.copy()
        one, other = states
        for places in self._places[latent]:
            cells = places.cells
            if joined is not None:
                into, gone = joined
                statistics[cells[into]] += statistics[cells[gone]]
                statistics[cells[gone]] = 0.0
            pooled = statistics[cells[one]] + statistics[cells[other]]
            share = self._rng.standard_exponential(places.draws.size)[places.draws]
            share /= share[0] + share[1]
            if self._smoothing:
                places.smooth(pooled, self._smoothing)
            statistics[cells[one]] = pooled * share[0]
            statistics[cells[other]] = pooled * share[1]
        return statistics

    @cached_property
    def _places(self) -> dict[int, list[_Places]]:
        """For each latent where its states stand: tables after tables, together where no cell is in two of them."""
        every = np.arange(self.layout.n_cells)
        known: dict[int, list[_Places]] = {}
        for latent in self.latents:
            tables: list[list[np.ndarray]] = [[]]
            is_own: list[list[bool]] = [[]]
            seen: set[int] = set()
            for node, member in self._tables_of(latent):
                if self.layout.first_cell[node] in seen:
                    tables, is_own, seen = [*tables, []], [*is_own, []], set()
                seen.add(self.layout.first_cell[node])
                at = (*self.layout.parents[node], node).index(member)
                tables[-1].append(np.moveaxis(self.layout.table(every, node), at, 0))
                is_own[-1].append(node == member)
            known[latent] = [_Places(*each) for each in zip(tables, is_own)]
        return known

    def _tables_of(self, latent: int) -> Iterator[tuple[int, int]]:
        """Each table that knows a latent, or one whose states are tied to its own, with that member of the family."""
        seen = set()
        for member in self.layout.turned_together[latent]:
            for node in (member, *self.layout.children[member]):
                key = self.layout.first_cell[node], self.layout.strides[node][member]
                if key not in seen:
                    seen.add(key)
                    yield node, member


class _Places:
    """Cells of the states of a latent in tables that share no cell.

    Parameters
    ----------
    tables : list of ndarray of shape (n_states, ...)
        Cells of each, the states of the latent first.
    is_own : list of bool
        Whether a table is that of the latent itself.
    """

    def __init__(self, tables: list[np.ndarray], is_own: list[bool]):
        sizes = [table[0].size for table in tables]
        ends = list(accumulate(sizes))
        #: Of each state, all tables in a row: (n_states, n).
        self.cells = np.concatenate([table.reshape(len(table), -1) for table in tables], axis=1)
        #: Which of 2 n draws are of them, for two states: those of a table are drawn state by state.
        self.draws = np.concatenate(
            [np.arange(2 * (end - n), 2 * end).reshape(2, n) for n, end in zip(sizes, ends)], axis=1
        )
        self._of_children = [
            (slice(end - n, end), table.shape[-1])
            for table, itself, n, end in zip(tables, is_own, sizes, ends)
            if not itself
        ]

    def smooth(self, pooled: np.ndarray, share: float) -> None:
        """Spread a share of the counts (n,) of children evenly over their states, in place."""
        for where, n_states in self._of_children:
            rows = pooled[where].reshape(-1, n_states)
            rows[:] = (1.0 - share) * rows + share * rows.mean(axis=-1, keepdims=True)


def _worth_moving(layout: Layout, latents: Sequence[int]) -> list[int]:
    """Latents whose states may change while something hidden stays as it is: the only one of two states is not."""
    movable = [
        k
        for k in latents
        if layout.cardinalities[k] > 1 and layout.children[k] and layout.turned_together[k][0] == k
        and set(layout.turned_together[k]) <= set(latents)
    ]  # fmt: skip
    return movable if len(movable) > 1 or any(layout.cardinalities[k] > 2 for k in movable) else []


# Networks of mixed columns --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MixedStarts:
    """Starts around rows that are drawn.

    Parameters
    ----------
    seed : tuple of int
    n_starts : int
    """

    seed: tuple[int, ...]
    n_starts: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each: seeds keep away from each other in every other one."""
        return tuple(("k-means++", "random")[k % 2] for k in range(self.n_starts))

    def __call__(self, ascent: MixedNetworkAscent) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        return random_starts(ascent.model, ascent.data, self.n_starts, np.random.default_rng(self.seed))


class MixedNetworkMethod(FitMethod):
    """Fits networks of mixed columns."""

    def ascent(self, model, data, form: Form, n_threads: int) -> MixedNetworkAscent:
        """Full steps of a network on its data."""
        _check_concentrations(model.prior.blocks[0], form)
        return MixedNetworkAscent(model, data, form, n_threads)

    def moves(
        self, ascent: MixedNetworkAscent, statistics: np.ndarray, seed: int, is_brief: bool, n_failed: int
    ) -> Proposals:
        """Parameters drawn after the best optimum, as long as something is hidden; new starts among them."""
        if not (ascent.data.program.plans or ascent.model.latent_numbers):
            return Proposals([], np.empty((len(statistics), 0)))
        rng = np.random.default_rng(seed)
        points = drawn(ascent, statistics[:, 0], TUNING.n_of_kind, rng)
        anew = random_starts(ascent.model, ascent.data, 2, rng)
        kinds = ["draw"] * points.shape[1] + ["around rows"] * anew.shape[1]
        return Proposals(kinds, np.concatenate([points, anew], axis=1))


# The share of a row that does not go to the nearest seed: what a start rules out, maximum likelihood never finds.
_ELSEWHERE = 0.1
# Distinct rows among which seeds are drawn, at most.
_MAX_ROWS = 2048


def random_starts(model: MixedNetwork, data: MixedData, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    """Statistics of as many starts, (n_cells, n_starts), the first ones the same however many there are.

    Seeds keep away from each other in every other start, and are any rows in the others.

    Parameters
    ----------
    model : MixedNetwork
    data : MixedData
    n_starts : int
    rng : numpy.random.Generator
    """
    layout, each = model.layout, rng.spawn(n_starts)
    uniform = Dirichlet(np.ones(layout.n_table_cells), layout.row_starts)
    tables = np.log(np.stack([uniform.sample(start_rng) for start_rng in each], axis=1).clip(1e-300))
    groups: dict[tuple[int, ...], list[int]] = {}
    for k in range(len(model.emissions)):
        groups.setdefault(layout.parents[layout.n_tables + k], []).append(k)
    seeds: dict[int, np.ndarray] = {}
    for emissions in groups.values():
        seeds |= _seeds_of(model, data, emissions, each)

    def factors(factor: FactorRows, rows: slice) -> np.ndarray:
        squares = np.zeros((n_starts, len(factor.tables[0][rows]), factor.n_states))
        for k, table in zip(factor.emissions, factor.tables):
            if k in seeds:
                squares += squares_to(seeds[k], coordinates_of(model.emissions[k], table[rows]))
            else:
                of_numbers = data.factors_of_numbers[k - len(model.emissions)]
                squares += _squares_of_numbers(of_numbers, table[rows], seeds)
        if not squares.any():  # nothing says which seed is nearest
            return np.zeros((n_starts, factor.n_states, squares.shape[1]))
        nearest = squares.argmin(axis=2)[:, None] == np.arange(factor.n_states)[:, None]
        return np.log((1 - _ELSEWHERE) * nearest + _ELSEWHERE / factor.n_states)

    return model.statistics_of(tables, data, factors, _around_hidden_numbers(model, each))


def _squares_of_numbers(factor: NumberFactor, block: NumberTable, seeds: Mapping[int, np.ndarray]) -> np.ndarray:
    """Squared distances (n_starts, n_rows, n_states) of the numbers that rows observe to seeds of their families."""
    families, states = factor.families, np.arange(factor.n_states)
    n_starts = len(next(iter(seeds.values())))
    squares = np.zeros((n_starts, len(block), factor.n_states))
    for place, at, numbers in block.parts:
        cluster = factor.clusters[place]
        for k, _ in cluster.families:
            responses = families.responses[k].tolist()
            seen = [v for v, number in enumerate(responses) if number in cluster.observed]
            if not seen or seeds[k].shape[-1] < len(responses):
                continue
            columns = [1 + cluster.observed.index(responses[v]) for v in seen]
            component = families.components(k, factor.parents, states)
            squares[:, at] += squares_to(seeds[k][..., seen], numbers[:, columns])[..., component]
    return squares


def _around_hidden_numbers(model: MixedNetwork, each: Sequence[np.random.Generator]) -> dict[int, np.ndarray]:
    """Natural parameters (n_cells, n_starts) of hidden numbers and of their children, coefficients drawn.

    Without slopes hidden numbers and their children are independent, and a step leaves them so. So half of the
    variance of each child is that of its hidden parents, and of a hidden number as much as its noise its parents'.
    """
    naturals = {}
    for k in range(model.n_nodes_with_emission):
        emission: Any = model.emissions[k]
        parents = model.given[k]
        if not (emission.is_hidden or set(parents) & set(model.latent_numbers)):
            continue
        n_columns = [model.emissions[p].n_columns for p in parents]
        is_telling = np.repeat([emission.is_hidden or p in model.latent_numbers for p in parents], n_columns)
        deviation = np.full(emission.n_regressors, 1.0 if emission.is_hidden else 0.0)
        if parents:
            deviation[int(emission.intercept) :] = is_telling * np.sqrt(0.5 / max(1, is_telling.sum()))
        n_rows = model.n_states[k] * emission.n_columns
        draws = np.stack([rng.standard_normal((n_rows, emission.n_regressors)) for rng in each], axis=-1)
        precision = np.full((n_rows, len(each)), 1.0 if emission.is_hidden else 2.0)
        naturals[k] = model.prior.blocks[1 + k].natural(RegressionPoint(deviation[:, None] * draws, precision))
    return naturals


def _seeds_of(
    model: MixedNetwork, data: MixedData, emissions: list[int], each: list[np.random.Generator]
) -> dict[int, np.ndarray]:
    """Coordinates of seeds (n_starts, n_states, n_axes) for each of the emissions that have the same parents."""
    rows = data.source.distinct()
    if len(rows) > _MAX_ROWS:
        kept = np.linspace(0, len(rows) - 1, _MAX_ROWS).astype(np.int64)
        rows = rows.taken(kept, rows.weight[kept])
    parts = [coordinates_of(model.emissions[k], rows.tables[k]) for k in emissions]
    ends = np.cumsum([part.shape[1] for part in parts])
    together, n_states = np.concatenate(parts, axis=1), model.n_states[emissions[0]]
    if not together.shape[1]:  # covariates alone do not say how unlike rows are
        return dict.fromkeys(emissions, np.zeros((len(each), n_states, 0)))
    drawn = np.stack(
        [seeds_among(together, rows.weight, n_states, start % 2 == 0, rng) for start, rng in enumerate(each)]
    )
    return dict(zip(emissions, np.split(drawn, ends[:-1], axis=-1)))
