"""Moves that change numbers of factors: a factor born or deleted in one component [Ghahramani & Beal 2000].

Every constant is in the bound, so that fits of different numbers of factors compare. A factor is not judged by how
large its loadings are: where it is needless, the bound rises without it, by a number of nats for each column.

Where there are several components, fits from starts with the same number of factors in all of them come first: none,
one, two, until two in a row are no better. From the best of them on, each component has a number of its own: factors
are born where a component's columns vary together most beyond what it says, and deleted where they matter least. Where
neither raises the bound, two moves in a row are tried: two births, or a deletion and a birth elsewhere. At last a
component gets its principal components, one more than it has factors, in place of these: with few columns, factors may
have left so much to noises that one more of them finds nothing. The search ends where each of these is worse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from skvbem.emissions import Emission
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.optima.candidates import Candidate
from skvbem.optima.factor_statistics import (
    NewFactor,
    Numbers,
    least_relevant,
    most_factors,
    new_factors,
    with_factor,
    with_factors_kept,
    with_numbers,
    with_principal_factors,
)
from skvbem.optima.plan import Problem
from skvbem.optima.tuning import TUNING


class FactorMoves:
    """Moves that change the numbers of factors of a model of some number of components.

    Parameters
    ----------
    problem : Problem
    n_components : int, optional
        By default as many as the model of the problem has.
    """

    def __init__(self, problem: Problem, n_components: int | None = None):
        self.problem, self.n_components = problem, n_components or problem.model.n_components

    def model(self, emission: Emission, numbers: Numbers):
        """The model of an emission with so many factors."""
        assert self.problem.model_of is not None
        return self.problem.model_of(with_numbers(emission, numbers), self.n_components)

    def first(self) -> Candidate:
        """The best fit from starts with the same number of factors in all components, and the numbers on the way.

        Of one component moves know all that starts could say: none is all.
        """
        emission = self.problem.model.emission
        most = most_factors(emission)
        best = self._alike(emission, (0,) * len(most)).taken()
        if self.n_components > 1:
            for _ in range(len(most)):  # numbers of one group after the other
                for group in range(len(most)):
                    best = self._raised(best, group, most[group])
        return best

    def _raised(self, best: Candidate, group: int, most: int) -> Candidate:
        """The best fit with more factors of one group in all components, until two numbers in a row are no better."""
        numbers, n_worse = [of_group[0] for of_group in best.numbers], 0
        while numbers[group] < most and n_worse < 2 and not self.problem.stopped():
            numbers[group] += 1
            reached = self._alike(self.problem.model.emission, tuple(numbers), best)
            n_worse += 1
            if reached.objective > best.least_better:
                best, n_worse = reached.taken(), 0
        return best

    def _alike(self, emission: Emission, numbers: tuple[int, ...], best: Candidate | None = None) -> Candidate:
        """The best fit from starts with these numbers of factors in all components."""
        model = self.model(emission, tuple((n,) * self.n_components for n in numbers))
        return self.problem.anew(model, *(() if best is None else (best.after("start"),)))

    def starts_anew(self, best: Candidate) -> bool:
        """New starts of its numbers may be better than the best: of one component, all are alike."""
        return self.n_components > 1

    def reached_from(self, best: Candidate) -> Iterator[Candidate]:
        """Ends of moves from the best, cheap and likely ones first."""
        yield from self._ordered(best)
        tried = []
        for reached in self.births_and_deletions(best):
            yield reached
            tried.append(reached)
        yield from self.second_births(tried)
        if self.n_components > 1:  # one component starts from its principal components anyway
            yield from self._births(best, with_loadings=with_principal_factors)

    def _ordered(self, best: Candidate) -> Iterator[Candidate]:
        """The components as the prior means them, their numbers of factors with them."""
        order = best.model.preferred_order(best.statistics)
        if order is None or np.array_equal(order, np.arange(len(order))):
            return
        numbers = tuple(tuple(of_group[k] for k in order) for of_group in best.numbers)
        start = best.model.relabeled(best.statistics, order)
        model = self.model(best.model.emission, numbers)
        yield self.problem.reached(model, start[:, None], best.after("order"))

    def births_and_deletions(self, one: Candidate) -> Iterator[Candidate]:
        """One factor more, or less, in one component."""
        yield from self._births(one)
        yield from self._deletions(one)

    def second_births(self, tried: Iterable[Candidate]) -> Iterator[Candidate]:
        """A factor more after moves that raised nothing: the best of those that gave factors, and took them."""
        best = sorted(tried, key=lambda each: -each.objective)
        more, less = ([each for each in best if each.moves[-1].kind.endswith(kind)] for kind in ("birth", "delete"))
        for reached in (*more[: TUNING.n_of_kind], *less[: TUNING.n_of_kind]):
            yield from self._births(reached, most=TUNING.n_of_kind)

    def pruned(self, one: Candidate) -> Candidate:
        """A candidate without the factors that are needless there, which deletions of one after the other find."""
        while not self.problem.stopped():
            better = next((each for each in self._deletions(one) if each.objective > one.least_better), None)
            if better is None:
                return one
            one = better
        return one

    def _deletions(self, one: Candidate) -> Iterator[Candidate]:
        """A factor less, that whose loadings are least in its component; the least of all components first."""
        model, first = one.model, one.model.first_emission_cell
        natural = self._expected_natural(one)[first:]
        for group, component, factor in least_relevant(model.emission, natural, model.n_components):
            if self.problem.stopped():
                return
            numbers = _changed(one.numbers, group, component, -1)
            less = self.model(model.emission, numbers)

            def kept(g: int, k: int, gone: tuple = (group, component, factor)) -> list[int]:
                return [s for s in range(one.numbers[g][k]) if (g, k, s) != gone]

            emission_cells = with_factors_kept(one.statistics[first:], model.emission, less.emission, numbers, kept)
            start = np.concatenate([one.statistics[:first], emission_cells])
            yield self.problem.reached(less, start[:, None], one.after("delete"))

    def _births(
        self, one: Candidate, most: int | None = None, with_loadings: Callable[..., np.ndarray] = with_factor
    ) -> Iterator[Candidate]:
        """A factor more, where columns vary together most beyond what a component says."""
        for factor in self._new_factors(one)[:most]:
            if self.problem.stopped():
                return
            numbers = _changed(one.numbers, factor.group, factor.component, 1)
            more = self.model(one.model.emission, numbers)
            first, natural = one.model.first_emission_cell, self._expected_natural(one)
            emission_cells = with_loadings(natural[first:], one.model.emission, more.emission, numbers, factor)
            start = self.problem.ascent(more).expect(np.concatenate([natural[:first], emission_cells])[:, None])
            if self.n_components == 1:
                start = np.concatenate([start, self.problem.first_start(more)], axis=1)
            yield self.problem.reached(more, start, one.after("birth"))

    def _new_factors(self, one: Candidate) -> list[NewFactor]:
        model, natural = one.model, self._expected_natural(one)
        ascent = self.problem.ascent(model)
        rows: DistinctRows = ascent.rows
        if not len(rows):
            return []
        expected_rows = model.expected_rows(natural, ascent.data, rows)
        by_block = [expected_rows[:, at] for at in rows.slices]
        return new_factors(model.emission, natural[model.first_emission_cell :], rows.blocks, by_block)

    @staticmethod
    def _expected_natural(one: Candidate) -> np.ndarray:
        return (one.model.prior + one.statistics).expected_natural()


def _changed(numbers: Numbers, group: int, component: int, by: int) -> Numbers:
    changed = [list(of_group) for of_group in numbers]
    changed[group][component] += by
    return tuple(map(tuple, changed))
