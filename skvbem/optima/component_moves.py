"""Moves that change the number of components: splits, joins, new starts [Beal ch. 4, Ueda et al. 2000].

A component is split into two halves of it that compete for its rows (see `skvbem.optima.recombinations`). Their gain
says which component to split, and their statistics are where the larger mixture starts. Statistics are sums over rows,
so to join two components is to add theirs. Moves of one size race; the best is nearly at its optimum before its bound
counts. As many components are split at once as raises the bound: all that promise a gain, or the better half of them.
States of a chain are components whose transitions are divided, and added, with them.

Where factors are counted, too, births and deletions of factors take turns with these moves (see
`skvbem.optima.factor_moves`): halves have as many factors as the component had, components joined as many
as the larger of them, and each mixture is compared once its needless factors are gone.

Where no move raises the bound, two moves in a row are tried, and starts from nothing with one component less, as many,
and one more, so that the search ends where each of these is worse. Where components lie apart and rows are many beside
parameters, such starts race and are not moved: divisions and joins find there what moves would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from skvbem.emissions import Emission
from skvbem.emissions.base import counts_factors
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.models.labels.model import LabelModel
from skvbem.optima.candidates import Candidate
from skvbem.optima.factor_moves import FactorMoves
from skvbem.optima.factor_statistics import (
    Numbers,
    most_factors,
    numbers_of,
    with_factors_kept,
    with_numbers,
)
from skvbem.optima.labels import overlap
from skvbem.optima.plan import Problem
from skvbem.optima.recombinations import Recombinations
from skvbem.optima.tuning import TUNING


class Division(NamedTuple):
    """A component divided in two.

    Parameters
    ----------
    share : float
        Of its rows, that of the first half.
    per_component : ndarray of shape (2, n_own_cells)
        Statistics of the emission of both.
    """

    share: float
    per_component: np.ndarray

    @property
    def turned(self) -> Division:
        """The division with the other half first."""
        return Division(1 - self.share, self.per_component[::-1])


@dataclass(frozen=True, eq=False)
class Components:
    """Statistics by component. Statistics are sums over rows, so those of components joined are sums of theirs.

    Parameters
    ----------
    model : LabelModel
        Whose components these were made of.
    whole : ndarray of shape (n_cells,)
        Its statistics.
    fractions : ndarray of shape (n_components, n_components of the model)
        The share of each component of the model that each of these has.
    per_component : ndarray of shape (n_components, n_own_cells)
        Statistics of the emission that belong to one component.
    shared : ndarray of shape (n_shared_cells,)
        Those that belong to all.
    """

    model: LabelModel
    whole: np.ndarray
    fractions: np.ndarray
    per_component: np.ndarray
    shared: np.ndarray

    @classmethod
    def of(cls, model: LabelModel, statistics: np.ndarray) -> Self:
        """Statistics (n_cells,) of a model, by component."""
        emission_cells = statistics[model.first_emission_cell :]
        component = model.emission.component_of_cell(model.n_components)
        per_component = np.stack([emission_cells[component == k] for k in range(model.n_components)])
        return cls(model, statistics, np.eye(model.n_components), per_component, emission_cells[component < 0])

    def __len__(self) -> int:
        return len(self.fractions)

    @property
    def origins(self) -> list[list[int]]:
        """The components of the model that each was made of."""
        return [np.flatnonzero(of_component).tolist() for of_component in self.fractions]

    def _taken(self, which: Any) -> Self:
        return replace(self, fractions=self.fractions[which], per_component=self.per_component[which])

    def in_order(self) -> Self:
        """The components in the order that the prior means, if it means any."""
        order = self.model.preferred_order(self.whole, self.fractions)
        return self if order is None else self._taken(order)

    def statistics(self, into: LabelModel, emission: Emission | None = None) -> np.ndarray:
        """Statistics (n_cells,) of a model of so many components; those of the emission may be in cells of another."""
        component = (into.emission if emission is None else emission).component_of_cell(len(self))
        emission_cells = np.empty(len(component))
        for k, of_component in enumerate(self.per_component):
            emission_cells[component == k] = of_component
        emission_cells[component < 0] = self.shared
        return np.concatenate([self.model.shared_out(self.whole, self.fractions, into), emission_cells])

    def without(self, gone: np.ndarray) -> Self:
        """Statistics of all components but those that are dropped."""
        return self._taken(np.delete(np.arange(len(self)), gone))

    def joined(self, one: int, other: int) -> Self:
        """Two components made one, which stands where the first of them stood."""
        fractions, per_component = self.fractions.copy(), self.per_component.copy()
        fractions[one] += fractions[other]
        per_component[one] += per_component[other]
        return replace(self, fractions=fractions, per_component=per_component).without(np.array([other]))

    def divided(self, halves: dict[int, Division]) -> Self:
        """Components divided in two: the first half stands where the component stood, the other at the end.

        What all components share is as before: it is a sum over rows, whatever their components.
        """
        which = sorted(halves)
        fractions, per_component = (
            np.concatenate([all_, all_[which]]) for all_ in (self.fractions, self.per_component)
        )
        for at, k in enumerate(which, len(self)):
            share, (per_component[k], per_component[at]) = halves[k]
            fractions[k], fractions[at] = share * fractions[k], (1 - share) * fractions[k]
        return replace(self, fractions=fractions, per_component=per_component)


@dataclass(frozen=True, eq=False)
class Parts:
    """A candidate taken apart: what its rows say of each component, and halves of them.

    Parameters
    ----------
    of : Recombinations
    gain : ndarray of shape (n_components,)
        The bound that the division of each component promises, nats.
    divisions : list of Division
        Of each component.
    """

    of: Recombinations
    gain: np.ndarray
    divisions: list[Division]

    @property
    def whole(self) -> Components:
        """Statistics of rows by component."""
        model, rows = self.of.model, self.of.whole
        fractions = np.eye(model.n_components)
        return Components(model, self.of.statistics, fractions, rows[self.of.cells], rows[self.of.shared_cells])

    def promising(self) -> list[int]:
        """Components whose division promises a gain, the largest first."""
        order = np.argsort(-self.gain, kind="stable").tolist()
        return [k for k in order if self.gain[k] > 0]


class ComponentMoves:
    """Moves that change the number of components, and the numbers of factors of each where these are counted.

    Parameters
    ----------
    problem : Problem
        On data with row hashes.
    """

    def __init__(self, problem: Problem):
        self.problem, self.emission, self.data = problem, problem.model.emission, problem.data
        assert self.data.row_hashes is not None
        self.rows = DistinctRows.of(self.emission, problem.model.hashed_rows(self.data))
        self.fewest = max(self.emission.n_levels, 1)
        self.most = problem.model.most_components(self.data)

    def first(self) -> Candidate:
        """The mixture of the fewest components."""
        return self.problem.anew(self._model(self.fewest, numbers_of(self.emission, self.fewest)))

    def starts_anew(self, best: Candidate) -> bool:
        """New starts of as many components may be better than the best."""
        return not self.problem.is_fast and best.model.n_components <= TUNING.max_from_nothing

    def reached_from(self, best: Candidate) -> Iterator[Candidate]:
        """Ends of moves from the best, cheap and likely ones first."""
        n = best.model.n_components
        yield from self._without_empty(best)
        other_factors = []
        if counts_factors(self.emission):
            for reached in self._factors(n).births_and_deletions(best):
                yield reached
                other_factors.append(reached)
        parts = self._parts(best)
        yield from self._many_split(best, parts)
        if self.problem.is_fast:
            if parts.promising() or not self._has_many_rows(best):
                yield from self._one_split(best, parts, 1)
            return
        more = list(self._one_split(best, parts))
        yield from more
        less = list(self._joined(best, parts))
        yield from less
        for reached in more:
            divided = self._parts(reached)
            yield from self._joined(reached, divided)
            yield from self._one_split(reached, divided)
        for reached in less:
            yield from self._one_split(reached, self._parts(reached))
        yield from self._factors(n).second_births(other_factors)
        is_simple = n > 1 and overlap(self.rows, parts.of.expected_rows) < TUNING.overlap
        has_many_rows = self._has_many_rows(best)
        least = best.objective - TUNING.nats_of_sizes
        for k, numbers in self._sizes_anew(best) if n <= TUNING.max_from_nothing else ():
            if self.fewest <= k <= self.most and not self.problem.stopped():
                of_size = [each.objective for each in (*more, *less) if each.model.n_components == k]
                # splits and joins miss nothing that moves find
                races_alone = is_simple and (has_many_rows or max(of_size, default=np.inf) < least)
                yield self._pruned(
                    self.problem.anew(self._model(k, numbers), best.after("start"), is_simple=races_alone)
                )

    def _sizes_anew(self, one: Candidate) -> Iterator[tuple[int, Numbers]]:
        """Components, and factors of each, that new starts are tried with: one component more or less, or as many.

        All components have as many factors as those of the candidate have on average. Where there are as many,
        one factor more or less is tried.
        """
        n, on_average = one.model.n_components, [round(float(np.mean(of_group))) for of_group in one.numbers]
        for k in (n + 1, n - 1):
            yield k, tuple((of_group,) * k for of_group in on_average)
        for group, most in enumerate(most_factors(self.emission)):
            for by in (0, 1, -1):
                numbers = [of_group + by * (g == group) for g, of_group in enumerate(on_average)]
                if 0 <= numbers[group] <= most and (by or group == 0):
                    yield n, tuple((of_group,) * n for of_group in numbers)

    def _has_many_rows(self, one: Candidate) -> bool:
        """Rows are many beside parameters, so that gains are as foretold."""
        n_enough = TUNING.rows_per_parameter * one.model.prior.n_free_parameters
        return self.data.total_weight >= n_enough

    def _parts(self, one: Candidate) -> Parts:
        """A candidate taken apart."""
        model, statistics = one.model, one.statistics
        natural = (model.prior + statistics).expected_natural()
        seed = int(np.random.default_rng([*self.problem.plan.seed, model.n_components]).integers(2**63))
        expected_rows = model.expected_rows(natural, self.data, self.rows)
        parts = Recombinations(model, self.rows, statistics, natural, expected_rows, seed)
        halves = parts.halves(expected_rows)
        best, n = halves.gain.argmax(axis=0), np.arange(model.n_components)
        price = (model.prior.n_free_parameters / len(n) + 1) / 2 * np.log(np.maximum(parts.counts, 2.0))
        gain = np.where(parts.counts < 2.0, -np.inf, halves.gain[best, n] - price)
        first, of_both = halves.counts[best, 0, n], halves.counts[best, :, n].sum(axis=1)
        eps = np.finfo(float).eps  # no half is nothing, or it would be of no component
        share = np.clip(first / np.maximum(of_both, 1e-300), eps, 1 - eps)
        return Parts(parts, gain, [Division(share[k], halves.statistics[best[k], :, k]) for k in n])

    def _many_split(self, one: Candidate, parts: Parts) -> Iterator[Candidate]:
        """Components split together: all that promise a gain, or the better half of these, or half of that."""
        promising = parts.promising()
        while len(promising) > 1:
            yield from self._reached(one, [self._divided(parts, promising)], "split", parts)
            promising = promising[: len(promising) // 2]

    def _one_split(self, one: Candidate, parts: Parts, most: int = TUNING.n_of_kind) -> Iterator[Candidate]:
        """One component split, the best one of those that promise most."""
        order = np.argsort(-parts.gain, kind="stable")[:most].tolist()
        order = [k for k in order if np.isfinite(parts.gain[k])]
        best = [self._divided(parts, [k]) for k in order]
        if one.model.have_places:  # of halves that are neighbors either may come first
            best += [parts.whole.divided({k: parts.divisions[k].turned}) for k in order]
        if best:
            yield from self._reached(one, best, "split", parts)

    @staticmethod
    def _divided(parts: Parts, which: list[int]) -> Components:
        return parts.whole.divided({k: parts.divisions[k] for k in which})

    def _joined(self, one: Candidate, parts: Parts) -> Iterator[Candidate]:
        """The mixture with two components joined, or one dropped: the best one of those tried."""
        if one.model.n_components == self.fewest:
            return
        whole = parts.whole
        fewer = [whole.joined(one, other) for _, other, one in parts.of.joins()[: TUNING.n_joins]]
        fewer += [whole.without(np.array([k])) for _, k in parts.of.drops()[: TUNING.n_seldom]]
        yield from self._reached(one, fewer, "join", parts)

    def _without_empty(self, one: Candidate) -> Iterator[Candidate]:
        """All components of less than one row dropped, if there are several."""
        small = np.flatnonzero(one.model.expected_counts(one.statistics) < 1.0)
        small = small[small >= self.emission.n_levels]
        if 1 < len(small) < one.model.n_components:
            whole = Components.of(one.model, one.statistics)
            yield from self._reached(one, [whole.without(small)], "join")

    def _reached(
        self, one: Candidate, starts: list[Components], kind: str, parts: Parts | None = None
    ) -> Iterator[Candidate]:
        """The best end of some mixtures of one size, of those with the same numbers of factors.

        Statistics of rows that a candidate was taken apart into lack those of hidden hyperparameters.
        """
        if len(starts[0]) > self.most or self.problem.stopped():
            return
        by_numbers: dict[Numbers, list[np.ndarray]] = {}
        for start in starts:
            if parts is not None:
                start = self._with_hyperparameters(start, parts)
            start = start.in_order()
            numbers = tuple(tuple(max(of_group[k] for k in of) for of in start.origins) for of_group in one.numbers)
            by_numbers.setdefault(numbers, []).append(self._statistics(start, one, numbers))
        for numbers, columns in by_numbers.items():
            model = self._model(len(starts[0]), numbers)
            least = one.objective if self.problem.is_fast else -np.inf
            yield self._pruned(self.problem.reached(model, np.stack(columns, axis=1), one.after(kind), least))

    @staticmethod
    def _with_hyperparameters(components: Components, parts: Parts) -> Components:
        """Statistics of rows with those of hidden hyperparameters, of components joined the larger ones."""
        of = parts.of
        each = [of.hyperparameters[of.cells[origins]].max(axis=0) for origins in components.origins]
        return replace(
            components,
            per_component=components.per_component + np.stack(each),
            shared=components.shared + of.hyperparameters[of.shared_cells],
        )

    def _statistics(self, components: Components, one: Candidate, numbers: Numbers) -> np.ndarray:
        """Statistics (n_cells,) of a mixture of components that a candidate was changed to."""
        model = self._model(len(components), numbers)
        wide = components.statistics(model, one.model.emission)
        if not numbers:
            return wide
        first = model.first_emission_cell
        emissions = one.model.emission, model.emission
        emission_statistics = with_factors_kept(wide[first:], *emissions, numbers, lambda g, k: range(numbers[g][k]))
        return np.concatenate([wide[:first], emission_statistics])

    def _model(self, n_components: int, numbers: Numbers) -> LabelModel:
        """The mixture of so many components, with so many factors each."""
        assert self.problem.model_of is not None
        return self.problem.model_of(with_numbers(self.emission, numbers) if numbers else self.emission, n_components)

    def _factors(self, n_components: int) -> FactorMoves:
        """Moves of factors of so many components."""
        return FactorMoves(self.problem, n_components)

    def _pruned(self, one: Candidate) -> Candidate:
        """A candidate without factors that its components do not need."""
        return self._factors(one.model.n_components).pruned(one) if counts_factors(self.emission) else one
