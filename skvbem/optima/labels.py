"""Fits of models whose rows have one hidden label each: starts, moves, samples of rows, solutions, learned priors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.special import xlogy

from skvbem.ascent import Ascent
from skvbem.emissions.base import exchangeability_classes, start_natural
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.models.labels.distinct_rows import MAX_DISTINCT_ROWS, DistinctRows, draws
from skvbem.models.labels.model import EmissionAscent
from skvbem.models.mixture.analyzer_ascent import AnalyzerAscent
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.optima.candidates import NEW_START, Proposals, drawn, smoothing_of
from skvbem.optima.plan import FitMethod, Stop, best_of
from skvbem.optima.recombinations import Recombinations
from skvbem.optima.ties import can_be_spikes, tied_anew
from skvbem.optima.tuning import TUNING
from skvbem.vbem.fit import Fit, continued
from skvbem.vbem.hyperparameters import best_strength
from skvbem.vbem.posteriors import Form


@dataclass(frozen=True, eq=False)
class LabelStarts:
    """Starts of a model whose rows have one hidden label each.

    Parameters
    ----------
    kind : str
        As the `init` parameter names it.
    n_starts : int
    seed : tuple of int
    draw : callable
        Statistics (n_cells, n_starts) of a kind, a model, its data, distinct rows of these, a number and a generator.
    """

    kind: str
    n_starts: int
    seed: tuple[int, ...]
    draw: Callable[..., np.ndarray]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each; those of "auto" are spread and around any rows by turns."""
        if self.kind == "hierarchical":
            return ("hierarchical", *["k-means++"] * (self.n_starts - 1))
        by_turns = ("k-means++", "random") if self.kind == "auto" else (self.kind,)
        return tuple(by_turns[k % len(by_turns)] for k in range(self.n_starts))

    def __call__(self, ascent: EmissionAscent) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        rng = np.random.default_rng(self.seed)
        return self.draw(self.kind, ascent.model, ascent.data, ascent.rows, self.n_starts, rng)


class LabelMethod(FitMethod):
    """Fits models whose rows have one hidden label each."""

    def for_more_rows(self, ascent: EmissionAscent, statistics: np.ndarray) -> np.ndarray:
        """Statistics (n_starts, n_cells) as starts on more rows: without a prior a little of all rows in every one.

        What no row of a component has in a sample, such as a category, would else be impossible there for good.
        """
        share, n = smoothing_of(ascent.form), ascent.model.n_components
        if not share:
            return statistics
        alike = (np.full((len(part), n), 1.0 / n) for part in ascent.data.parts)
        return (1 - share) * statistics + share * ascent.model.statistics_of(alike, ascent.data)

    def n_steps_per_start(self, ascent: EmissionAscent) -> int:
        """Few where steps are dear, as optima are few where rows are many."""
        return TUNING.n_steps_where_dear if _is_dear(ascent) else TUNING.n_steps_per_start

    def moves(
        self, ascent: EmissionAscent, statistics: np.ndarray, seed: int, is_brief: bool, n_failed: int
    ) -> Proposals:
        """Proposals that change optima (n_cells, n_optima), the best first.

        One component of the best is divided in the room of two that are joined or of one that is dropped, or that room
        stays empty; rows of some components of it, or all rows, are shared out anew; components of the best and of
        another are taken together; parameters are drawn; rows with one value of a column become components; of one
        optimum after the other, rows go one by one to where they are more probable. Where that is swift, searches among
        partitions replace rows that are all shared out anew. Where starts agreed on components that hardly overlap, the
        most promising divisions are enough. Where rows are many and not sampled, divisions alone are tried: each
        proposal costs as much as a start.
        By maximum likelihood nothing is tried where rows are so few that better optima are nearer to spikes.
        """
        model, rows = ascent.model, ascent.rows
        if model.n_components == 1 or not len(rows) or self._are_nearly_spikes(ascent, statistics[:, 0]):
            return Proposals([], np.empty((len(statistics), 0)))
        natural, _ = ascent.form.of(model.prior, statistics)
        optima = [model.expected_rows(each, ascent.data, rows) for each in np.ascontiguousarray(natural.T)]
        smoothing = smoothing_of(ascent.form)
        around = Recombinations(model, rows, statistics[:, 0], natural[:, 0], optima[0], seed, smoothing)
        is_simple = is_brief and overlap(rows, optima[0]) < TUNING.overlap
        if is_simple:
            kinds, divided = around.proposals(TUNING.n_of_kind, 1, with_unions=False)
        else:
            kinds, divided = around.proposals(TUNING.n_divisions)
        points = [divided]
        is_dear = _is_dear(ascent)
        if not is_dear:
            rng = np.random.default_rng([seed, 1])
            for kind, of_kind in _changes(ascent, statistics, around, optima, n_failed, is_simple, rng):
                kinds += [kind] * of_kind.shape[1]
                points.append(of_kind)
        return Proposals(kinds, np.concatenate(points, axis=1), is_simple, is_simple and is_dear)

    def divisions(self, ascent: EmissionAscent, statistics: np.ndarray, seed: int, gained: bool) -> Proposals:
        """Proposals that fill empty components, or make room for halves where none is empty.

        The latter are worth their time on a sample, where components overlap, and once a division `gained`. A sample
        tells optima apart by few nats where components overlap, though they are many nats apart on all rows. Nothing is
        filled where all rows are as components expect them, since a component more has its price.
        """
        model, rows = ascent.model, ascent.rows
        if model.n_components == 1:
            return Proposals([], np.empty((len(statistics), 0)))
        label_cells, emission_cells = model.prior.split(statistics)
        counts = model.weights.counts(label_cells)
        has_empty = bool((counts < TUNING.empty).any())
        if has_empty and ascent.form.density and not ascent.is_sample:
            excess = model.emission.excess(ascent.data, counts, emission_cells)
            if excess is not None and excess < TUNING.excess:
                return Proposals([], np.empty((len(statistics), 0)))
        if not ascent.is_sample:
            rows = ascent.rows_up_to(TUNING.largest_sample).counting(TUNING.most_weight)
        natural, _ = ascent.form.of(model.prior, statistics[:, None])
        expected_rows = model.expected_rows(natural[:, 0], ascent.data, rows)
        is_due = ascent.is_sample or gained or has_empty
        if not is_due and overlap(rows, expected_rows) < TUNING.overlap:
            return Proposals([], np.empty((len(statistics), 0)))
        smoothing = smoothing_of(ascent.form)
        around = Recombinations(model, rows, statistics, natural[:, 0], expected_rows, seed, smoothing)
        if (around.counts < TUNING.empty).any():
            return Proposals(*around.filled(TUNING.n_of_kind))
        return Proposals(*around.proposals(TUNING.n_cheap, 1))

    def regular(self, ascent: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """By maximum likelihood, tells solutions without a component that has no width: of those there is no best."""
        if ascent.form.prior_share:
            return None
        prior, first = ascent.model.prior.blocks[-1], ascent.model.first_emission_cell
        if not can_be_spikes(prior):
            return None
        return lambda statistics: ~prior.are_spikes(statistics[first:]).any(axis=0)

    def _are_nearly_spikes(self, ascent: EmissionAscent, statistics: np.ndarray) -> bool:
        """By maximum likelihood, a part of a component's even share of all rows is too few for its columns.

        Where the optimum (n_cells,) is a spike already, moves may leave it.
        """
        is_regular, model = self.regular(ascent), ascent.model
        if is_regular is None or not is_regular(statistics[:, None]).all():
            return False
        component, even = model.emission.component_of_cell(model.n_components), statistics.copy()
        cells = np.stack([np.flatnonzero(component == k) for k in range(model.n_components)])
        cells += model.first_emission_cell
        even[cells] = even[cells].mean(axis=0) / TUNING.rows_per_column
        return not is_regular(even[:, None]).all()


def _is_dear(ascent: EmissionAscent) -> bool:
    """Rows are many and not sampled, or columns are so many that a step takes as long."""
    n_own = ascent.model.emission.component_of_cell(1).size
    return len(ascent.data) > TUNING.many_rows or len(ascent.data) * n_own > TUNING.many_products


def _changes(
    ascent: EmissionAscent,
    statistics: np.ndarray,
    around: Recombinations,
    optima: list[np.ndarray],
    n_failed: int,
    is_simple: bool,
    rng: np.random.Generator,
) -> Iterator[tuple[str, np.ndarray]]:
    """Kinds and statistics (n_cells, n) of proposals that divide no component of the best optimum.

    Parameters
    ----------
    ascent : EmissionAscent
    statistics : ndarray of shape (n_cells, n_optima)
    around : Recombinations
        Of the best optimum.
    optima : list of ndarray of shape (n_components, n_rows)
        Expected rows of each.
    n_failed : int
    is_simple : bool
        The components are simple to tell apart: few proposals are enough.
    rng : numpy.random.Generator
    """
    rows, n_components, has_prior = ascent.rows, ascent.model.n_components, ascent.form.prior_share > 0
    n_around = TUNING.n_crossed if is_simple else TUNING.n_seldom if has_prior else TUNING.n_cheap
    n_drawn = TUNING.n_crossed if is_simple else TUNING.n_cheap if has_prior else TUNING.n_seldom
    yield "draw", drawn(ascent, statistics[:, 0], n_drawn, rng)
    if has_prior and not is_simple:
        yield "draw", drawn(ascent, statistics[:, int(rng.integers(len(optima)))], TUNING.n_seldom, rng)
    fewest = 1 if has_prior else rows.coordinates.shape[1] + 2  # so many that they have a width
    yield "around a row", around.of_expected_rows(around.around_rows(n_around, fewest, rng))
    if around.has_ties:
        yield "ties", around.of_expected_rows(tied_anew(rows, n_components, TUNING.n_tied, rng))
    if is_simple:
        return
    is_searched = False
    if has_prior:
        if n_failed < len(optima):
            yield "transfer", around.of_expected_rows(around.transferred(optima[n_failed])[None])
        n_searches = int(np.clip(TUNING.cells_of_searches // (len(rows) * n_components), 1, TUNING.n_of_kind))
        searched = around.changed_and_transferred(n_searches, rng)
        is_searched = len(searched) > 0
        yield "change, transfer", around.of_expected_rows(searched)
        if n_failed == 0:
            for kind, each in zip(*around.emptied(TUNING.n_crossed, 1)):
                yield kind, around.of_expected_rows(each[None])
    if not is_searched:
        yield NEW_START, around.of_expected_rows(shared_anew(rows, n_components, TUNING.n_of_kind, rng))
    best, *others = optima
    yield "share out anew", around.of_expected_rows(shared_among_some(rows, best, TUNING.n_of_kind, rng))
    for pair in (pair for other in others for pair in ((best, other), (other, best))):
        n = 1 if is_searched else TUNING.n_crossed
        yield "cross", around.of_expected_rows(crossed(rows, *pair, n, rng, ascent.model.emission.n_levels))


# Rows shared out at random -------------------------------------------------------------------------------------------


def overlap(rows: DistinctRows, expected_rows: np.ndarray) -> float:
    """Overlap of components: the mean entropy of the component of a row, nats."""
    share = expected_rows / rows.weight
    return float(-xlogy(share, share).sum(axis=0) @ rows.weight / rows.weight.sum())


def _fractions(rows: DistinctRows, seeds: np.ndarray) -> np.ndarray:
    """Shares of rows drawn by seeds (n_components, 1), adding up to 1: (n_components, n_rows)."""
    drawn = draws(rows.hashes, seeds) ** 2  # squares, so that most of a row goes to one component
    return drawn / drawn.sum(axis=0)


def shared_anew(rows: DistinctRows, n_components: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Expected rows of components that know nothing of each other, (n, n_components, n_rows)."""
    shared = np.empty((n, n_components, len(rows.weight)))
    for each in shared:
        seeds = rng.integers(2**63, size=(n_components, 1), dtype=np.uint64)
        np.multiply(_fractions(rows, seeds), rows.weight, out=each)
    return shared


def shared_among_some(rows: DistinctRows, expected_rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Expected rows (n, n_components, n_rows) where two or three components share out anew what they have together."""
    n_components = len(expected_rows)
    shared = np.repeat(expected_rows[None], n, axis=0)
    for each in shared:
        subset = rng.permutation(n_components)[: rng.integers(2, TUNING.n_seldom + 1)]
        seeds = rng.integers(2**63, size=(len(subset), 1), dtype=np.uint64)
        each[subset] = _fractions(rows, seeds) * expected_rows[subset].sum(axis=0)
    return shared


def crossed(
    rows: DistinctRows, one: np.ndarray, other: np.ndarray, n: int, rng: np.random.Generator, n_levels: int = 0
) -> np.ndarray:
    """Expected rows (n, n_components, n_rows) with some components of another fit, and those of one that lose least.

    The first `n_levels` components are the same in both, and keep their places.
    """
    n_components = len(one)
    children = np.empty((n, *one.shape))
    for child in children:
        n_taken = int(rng.integers(1, n_components))
        which = rng.permutation(n_components)[:n_taken]
        taken = other[which]
        left = one * np.maximum(1.0 - taken.sum(axis=0) / rows.weight, 0.0)
        kept = np.argsort(-left.sum(axis=1), kind="stable")[: n_components - n_taken]
        child[:n_taken], child[n_taken:] = taken, left[kept]
        if n_levels:
            child[:] = one
            child[which] = taken
        total = child.sum(axis=0)
        nobodys = total <= TUNING.least_share * rows.weight
        child *= rows.weight / np.where(nobodys, 1.0, total)
        child[:, nobodys] = rows.weight[nobodys] / n_components
    return children


# Mixtures -------------------------------------------------------------------------------------------------------------


class MixtureMethod(LabelMethod):
    """Fits mixtures, whose components end in the order that their weights mean."""

    def ascent(self, model, data, form: Form, n_threads: int) -> MixtureAscent:
        """Full steps of a mixture on its data."""
        data = model.condensed(data)
        kind = AnalyzerAscent if AnalyzerAscent.suits(model, data, form) else MixtureAscent
        return kind(model, data, form, n_threads)

    def condensed(self, model, data) -> Any:
        """Few rows in place of all of one component, where its bound is the same with them."""
        return model.condensed(data)

    def stages(self, ascent: MixtureAscent) -> list[Ascent]:
        """Steps on samples of the rows, each of some times as many as the one before; on distinct ones if few are."""
        data, labels, named = ascent.data, ascent.rows.labels, ascent.model.emission.named
        if labels is not None and not np.isin(named, labels).all():
            return [ascent]  # a sample in which a label is lacking leaves its component no place
        if not len(ascent.rows) or not len(data) > TUNING.many_rows * (
            1 if ascent.rows.is_sample else len(ascent.rows) / MAX_DISTINCT_ROWS
        ):
            return [ascent]
        stages: list[Ascent] = [ascent.on(ascent.rows.counting(TUNING.most_weight))]
        most = MAX_DISTINCT_ROWS * TUNING.growth_of_samples
        while ascent.rows.is_sample and most <= min(len(data) // TUNING.largest_share, TUNING.largest_sample):
            rows = ascent.rows_up_to(most).counting(TUNING.most_weight)
            stages.append(ascent.on(rows))
            if not rows.is_sample:
                break
            most *= TUNING.growth_of_samples
        return [*stages, ascent]

    def is_wide(self, ascent: MixtureAscent) -> bool:
        """Rows are few, and columns so many that steps are dear, or that a component has more sums than there are rows.

        Two steps tell starts apart there, unless components are many, or rows hide something besides.
        """
        model = ascent.model
        if model.n_components >= TUNING.max_from_nothing or model.emission.hidden is not None:
            return False
        n_rows, n_own = len(ascent.data), model.emission.component_of_cell(1).size
        return n_rows <= TUNING.many_rows and (_is_dear(ascent) or n_own > n_rows)

    def are_alike(self, ascent: MixtureAscent, one: np.ndarray, other: np.ndarray) -> bool:
        """Statistics (n_cells,) are two points on the way to one optimum: sorted, counts are nearly the same."""
        counts = [np.sort(ascent.model.weights.counts(ascent.model.prior.split(each)[0])) for each in (one, other)]
        return float(np.abs(counts[0] - counts[1]).sum()) < TUNING.alike * ascent.data.total_weight

    def finalize(self, ascent, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]) -> Fit:
        """The fit with its components sorted as the prior of the weights has them, if that raises the bound."""
        model = ascent.model
        order = model.preferred_order(fit.statistics)
        if order is None or np.ptp(exchangeability_classes(model.emission, model.n_components)) > 0:
            return fit  # components of two classes do not change places by themselves: their numbers go with them
        ordered = model.relabeled(fit.statistics, order)
        if np.array_equal(ordered, fit.statistics):
            return fit
        again = best_of(ascent, ordered[:, None], stop=stop, **limits)
        return continued(fit, again) if again.objective > fit.objective else fit

    def strengthened(self, model: Mixture, base: Mixture, statistics: np.ndarray) -> Mixture:
        """The mixture with a multiple of the prior of the weights of `base`; see `FitMethod`."""
        counts = model.prior.split(statistics)[0]
        strength = best_strength(lambda s: float(base.weights.of_strength(s).prior.log_evidence(counts)))
        stronger = base.weights.of_strength(strength)
        if stronger.prior.log_evidence(counts) <= model.weights.prior.log_evidence(counts):
            return model
        return model.with_weights(stronger)


# Factor analyzers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FactorStarts:
    """Starts of a mixture of one factor analyzer.

    Parameters
    ----------
    kind : {"auto", "random"}
        "auto" has the principal components of the data first; all others have loadings that are drawn.
    n_starts : int
    seed : tuple of int
    """

    kind: str
    n_starts: int
    seed: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        first = ("principal",) if self.kind == "auto" else ("random",)
        return (*first, *["random"] * (self.n_starts - 1))

    def __call__(self, ascent: MixtureAscent) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        model = ascent.model
        emission, prior = cast(FactorAnalyzer, model.emission), model.prior.blocks[-1]
        loadings = []
        for number, kind in enumerate(self.kinds):
            rng = np.random.default_rng([*self.seed, number])
            share = TUNING.explained / max(emission.n_factors, 1)
            random = np.sqrt(share) * rng.standard_normal(emission.loadings.shape)
            loadings.append(emission.loadings if kind == "principal" else random)
        starts = [start_natural(replace(emission, loadings=each), prior) for each in loadings]
        return model.started(statistics_at(model, np.stack(starts, axis=1), ascent.data))


def statistics_at(model: Mixture, emission_natural: np.ndarray, data) -> np.ndarray:
    """Expected statistics (n_cells, n_lanes) under natural parameters (n_own, n_lanes) of the only component."""
    weights = model.prior.blocks[0].expected_natural()
    weight_natural = np.repeat(weights[:, None], emission_natural.shape[1], axis=1)
    return model.expect(np.concatenate([weight_natural, emission_natural]), data).statistics
