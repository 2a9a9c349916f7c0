"""Hidden Markov models of every emission: what laws are tried on, and evidences by the sum over all paths."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
from laws.labels import (
    LabeledRows,
    labeled_rows,
    lacks_of,
    observed_rows,
    random_starts,
    with_other_cells,
)
from reference import hidden_markov
from scipy.special import logsumexp

from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.semi_markov import SemiMarkovHMM
from skvbem.models.hmm.semi_markov_rows import SemiMarkovRows
from skvbem.models.hmm.transitions import Transitions, banded, left_to_right
from skvbem.testing import ModelCase, ModelInstance, Relabeling
from skvbem.testing.emission_examples import rows_of, seen


def lengths_of(rng, n, longest=5):
    """Lengths that add up to n."""
    lengths = []
    while sum(lengths) < n:
        lengths.append(int(rng.integers(1, min(longest, n - sum(lengths)) + 1)))
    return np.array(lengths)


def random_prior(rng, n_states, kind=None):
    """Priors of first states and of transitions."""
    kind = rng.choice(["symmetric", "sticky", "left_to_right", "banded", "array"]) if kind is None else kind
    strength = float(rng.choice([1.0, n_states]))
    initial = Transitions(rng.uniform(0.3, 2.0, (1, n_states)))
    if kind == "symmetric":
        return Transitions(np.full((1, n_states), strength / n_states)), Transitions.symmetric(n_states, strength)
    if kind == "sticky":
        return initial, Transitions.sticky(n_states, strength, 2.0)
    if kind == "array":
        return initial, Transitions(rng.uniform(0.3, 2.0, (n_states, n_states)))
    if kind == "banded":
        return initial, Transitions.symmetric(n_states, strength, banded(n_states))
    first = Transitions((np.arange(n_states) == 0)[None] * 1.0)
    return first, Transitions.symmetric(n_states, strength, left_to_right(n_states))


def symmetric(rng, n_states):
    """Priors that take states for alike."""
    return Transitions(np.full((1, n_states), 0.8)), Transitions.sticky(n_states, rng.uniform(1.0, 3.0), 0.5)


def hmm(problem, prior, lengths, weight=None):
    """A model of the rows of a problem of `emissions.members`, and its data."""
    emission, n_states = problem.emission, prior[1].n_states
    model = HMM(emission, *prior, emission.default_prior(n_states))
    return model, model.compile(emission.prepare(problem.values), lengths, weight, seen(problem.values))


@dataclass(frozen=True, eq=False)
class HMMInstance(ModelInstance):
    """A hidden Markov model over labeled rows; sequences of them are the units."""

    rows: LabeledRows
    initial: Transitions
    transitions: Transitions
    lengths: np.ndarray

    ascent = HMMAscent
    hidden = ("state",)

    @cached_property
    def model(self):
        prior = self.rows.prior(self.transitions.n_states)
        return HMM(self.rows.emission, self.initial, self.transitions, prior)

    @property
    def unit_sizes(self):
        return self.lengths

    def _rows_of(self, units):
        """Row numbers of sequences, and where each sequence of them begins."""
        ends = np.cumsum(self.lengths)
        rows = [np.arange(ends[s] - self.lengths[s], ends[s]) for s in units]
        return np.concatenate(rows), np.cumsum([0, *map(len, rows)])[:-1]

    def compile(self, units=None, weight=None):
        units = np.arange(self.n_units) if units is None else np.asarray(units)
        rows, _ = self._rows_of(units)
        table = self.rows.emission.prepare(rows_of(self.rows.values, rows))
        return self.model.compile(table, self.lengths[units], weight, self.rows.seen[rows])

    def log_evidence(self, units=None):
        rows, starts = self._rows_of(np.arange(self.n_units) if units is None else units)
        n_states, starts, terms = self.transitions.n_states, starts.tolist(), []
        observed = np.isin(rows, observed_rows(self.rows, rows))
        for path in product(range(n_states), repeat=len(rows)):
            first, pairs = hidden_markov.counts_along(path, starts, n_states)
            counted = [first, *pairs], [self.initial.concentration[0], *self.transitions.concentration]
            of_chain = sum(hidden_markov.dirichlet(n, a) for n, a in zip(*counted))
            if np.isfinite(of_chain):
                groups = [rows[observed & (np.array(path) == k)] for k in range(n_states)]
                terms.append(of_chain + self.rows.log_evidence(groups))
        return float(logsumexp(terms))

    def random_starts(self, data, rng, n_starts):
        return random_starts(self.model, data, rng, n_starts)

    def relabeling(self, rng):
        order, model = rng.permutation(self.transitions.n_states), self.model
        back = np.argsort(order)
        return Relabeling(lambda x: model.relabeled(x, order), lambda x: model.relabeled(x, back), order)

    def row_posteriors(self, natural, data):
        return self.model.smoothed(natural, data)

    def filled(self, rng):
        missing, others = with_other_cells(self.rows, rng)
        return replace(self, rows=missing), [replace(self, rows=rows) for rows in others]


class HMMCase(ModelCase):
    """Hidden Markov models of one emission."""

    sampled: ClassVar = ModelCase.sampled | {"smc": {"n_runs": 16, "n_particles": 12, "n_steps": 16}}

    def __init__(self, emission):
        self.emission, self.name = emission, f"HMM of {emission}"
        self.lacks = lacks_of(emission)
        if emission not in ("categorical", "poisson", "full"):
            self.n_sampled = 1  # chains along sequences take long

    def complete(self, rng, k):
        """One state; steps within a sequence may be missing."""
        n = int(rng.integers(1, 9))
        prior = Transitions(np.array([[rng.uniform(0.1, 3)]])), Transitions(np.array([[rng.uniform(0.1, 3)]]))
        return HMMInstance(labeled_rows(self.emission, rng, n, k, gaps=0.3), *prior, lengths_of(rng, n))

    def regular(self, rng):
        one = Transitions(np.ones((1, 1)))
        return HMMInstance(labeled_rows(self.emission, rng, 60), one, one, lengths_of(rng, 60))

    def tiny(self, rng, k):
        """Two or three states, one sequence or several."""
        n, prior = int(rng.integers(2, 6)), random_prior(rng, 2 + k % 2)
        return HMMInstance(labeled_rows(self.emission, rng, n, k, gaps=0.3), *prior, lengths_of(rng, n))

    def sampleable(self, rng, k):
        """States that are alike, or that are passed one after the other."""
        prior = symmetric(rng, 2 + k % 2)
        if k % 3 == 2:
            prior = Transitions(np.eye(3)[:1]), Transitions.symmetric(3, 2.0, left_to_right(3, 2))
        return HMMInstance(labeled_rows(self.emission, rng, 6, k, gaps=0.3), *prior, lengths_of(rng, 6))

    def dozens(self, rng, k, form="vb"):
        n = int(rng.integers(5, 40))
        rows = labeled_rows(self.emission, rng, n, k, gaps=0.3, conjugate=False)
        return HMMInstance(rows, *random_prior(rng, 3), lengths_of(rng, n, 20))

    def alike(self, rng, k):
        prior = Transitions(np.ones((1, 3))), Transitions.sticky(3, 1.0, 2.0)
        return HMMInstance(labeled_rows(self.emission, rng, 12), *prior, np.array([7, 5]))

    def pair(self, rng):
        return HMMInstance(labeled_rows(self.emission, rng, 6), *symmetric(rng, 2), np.array([4, 2]))

    def long(self, rng):
        rows = labeled_rows(self.emission, rng, 300, 1, 0.2, conjugate=False)
        return HMMInstance(rows, *symmetric(rng, 2), np.array([200, 100]))

    def many(self, rng, k):
        """One long sequence, short ones, some of each."""
        lengths = [np.array([5000]), np.full(500, 10), np.array([3000, 1000, 500, 500])][k % 3]
        return HMMInstance(labeled_rows(self.emission, rng, 5000), *random_prior(rng, 4), lengths)


# Chains with durations ------------------------------------------------------------------------------------------------


def random_durations(rng, n_states, k):
    """Priors of first states and of rows: hazards of single ages, of bins, stages; alternatives, masks, first ages."""
    n_ages = int(rng.integers(1, 5))
    bins = [np.arange(n_ages), np.ceil(np.log2(np.arange(1, n_ages + 1))).astype(int), np.zeros(n_ages, dtype=int)]
    others = np.where(np.eye(n_states, dtype=bool), 0.0, rng.uniform(0.3, 2.0, (n_states, n_states)))
    if n_states > 2 and rng.random() < 0.4:
        others[0, 2] = 0.0
    if rng.random() < 0.3:
        others[-1] = 0.0  # never left
    pairs = rng.uniform(0.3, 3.0, (int(rng.choice([1, 3])), n_states, 1, 2))
    pairs[..., 0] *= (others > 0).any(axis=1)[:, None]
    leaving = np.repeat(pairs, bins[k % 3][-1] + 1, axis=2)
    has_ages = rng.random() < 0.5 and n_states * n_ages <= 6  # so few that all paths can be summed over
    ages = rng.uniform(0.3, 2.0, (n_states, n_ages)) if has_ages else None
    initial = Transitions(rng.uniform(0.3, 2.0, (1, n_states)))
    return initial, SemiMarkovRows(leaving, others, bins[k % 3], k % 3 == 2, ages)


def durations_alike(rng, n_states, k):
    """Priors that take states for alike."""
    bins, are_stages = [(np.array([0, 1, 1]), False), (np.array([0, 0]), True), (np.arange(2), False)][k % 3]
    pairs = rng.uniform(0.5, 3.0, (1 + 2 * (k % 2), 1, 1, 2))
    leaving = np.broadcast_to(pairs, (len(pairs), n_states, bins[-1] + 1, 2)).copy()
    ages = np.full((n_states, len(bins)), 0.7) if k % 2 else None
    return Transitions(np.full((1, n_states), 0.8)), SemiMarkovRows(
        leaving, 1.0 - np.eye(n_states), bins, are_stages, ages
    )


def one_after_the_other(n_states, n_ages, k):
    """Priors that leave one path: each state lasts for one step, or for some stages of a step each, in a ring."""
    others = np.roll(np.eye(n_states), 1, axis=1)
    leaving = np.tile([1.3, 0.0], (1, n_states, 1, 1))
    first = Transitions((np.arange(n_states) == 0)[None] * 1.0)
    return first, SemiMarkovRows(leaving, others, np.zeros(n_ages, dtype=int), k % 2 == 1)


def steps_of(rows, cell):
    """Of a cell (state, age) each next cell, the bin of the step, 0 if its age or stage ends, and another state."""
    (state, age), last = cell, rows.n_ages - 1
    if rows.are_stages:
        yield cell, 0, 1, None
        if age < last:
            yield (state, age + 1), 0, 0, None
            return
    else:
        yield (state, min(age + 1, last)), int(rows.bins[age]), 1, None
    for other in range(rows.n_states):
        if other != state:
            yield (other, 0), int(rows.bins[age]), 0, other


def paths_of(rows, starts, n_rows):
    """All paths of cells of sequences: the cells, and counts of first ones, of leaving and staying, of next states."""
    n, n_ages = rows.n_states, rows.n_ages
    known = [([], np.zeros((n, n_ages)), np.zeros((n, int(rows.bins[-1]) + 1, 2)), np.zeros((n, n)))]
    for t in range(n_rows):
        longer = []
        for cells, first, leaving, jumps in known:
            if t in starts:
                for cell in product(range(n), range(n_ages if rows.first_ages is not None else 1)):
                    counted = first.copy()
                    counted[cell] += 1
                    longer.append(([*cells, cell], counted, leaving, jumps))
                continue
            for cell, in_bin, stays, other in steps_of(rows, cells[-1]):
                state, left, jumped = cells[-1][0], leaving.copy(), jumps.copy()
                left[state, in_bin, stays] += 1
                if other is not None:
                    jumped[state, other] += 1
                longer.append(([*cells, cell], first, left, jumped))
        known = longer
    return known


def _of_row(counts, concentration):
    """ln of the probability of counts of a row, which may have no cell."""
    is_none = not np.any(concentration) and not np.any(counts)
    return 0.0 if is_none else hidden_markov.dirichlet(counts, concentration)


@dataclass(frozen=True, eq=False)
class SemiMarkovInstance(HMMInstance):
    """A hidden semi-Markov model over labeled rows."""

    @cached_property
    def model(self):
        prior = self.rows.prior(self.transitions.n_states)
        return SemiMarkovHMM(self.rows.emission, self.initial, self.transitions, prior)

    def log_evidence(self, units=None):
        rows, starts = self._rows_of(np.arange(self.n_units) if units is None else units)
        chain, terms, dirichlet = self.transitions, [], _of_row
        observed = np.isin(rows, observed_rows(self.rows, rows))
        for cells, first, leaving, jumps in paths_of(chain, starts.tolist(), len(rows)):
            term = dirichlet(first.sum(axis=1), self.initial.concentration[0])
            term += sum(dirichlet(n, a) for n, a in zip(jumps, chain.others))
            if chain.first_ages is not None:
                term += sum(dirichlet(n, a) for n, a in zip(first, chain.first_ages))
            for k in range(chain.n_states):
                of_alternatives = [sum(dirichlet(n, a) for n, a in zip(leaving[k], each[k])) for each in chain.leaving]
                term += logsumexp(of_alternatives) - np.log(len(of_alternatives))
            if np.isfinite(term):
                states = np.array([state for state, _ in cells])
                groups = [rows[observed & (states == k)] for k in range(chain.n_states)]
                terms.append(term + self.rows.log_evidence(groups))
        return float(logsumexp(terms))


class OnePathInstance(SemiMarkovInstance):
    """Nothing is hidden: statistics are those of the one path."""

    random_starts = ModelInstance.random_starts


class SemiMarkovCase(HMMCase):
    """Hidden Markov models with durations, of one emission."""

    def __init__(self, emission):
        super().__init__(emission)
        self.name = f"semi-Markov model of {emission}"
        self.lacks = {**self.lacks, "dimension": "ages have no part in what is observed but through the states"}

    def complete(self, rng, k):
        n = int(rng.integers(1, 9))
        rows = labeled_rows(self.emission, rng, n, k, gaps=0.3)
        return OnePathInstance(rows, *one_after_the_other(2, 1 + k % 3, k), lengths_of(rng, n))

    def regular(self, rng):
        rows = labeled_rows(self.emission, rng, 60)
        return OnePathInstance(rows, *one_after_the_other(2, 2, 1), lengths_of(rng, 60, 20))

    def tiny(self, rng, k):
        n, prior = int(rng.integers(2, 6)), random_durations(rng, 2 + k % 2, k)
        return SemiMarkovInstance(labeled_rows(self.emission, rng, n, k, gaps=0.3), *prior, lengths_of(rng, n))

    def sampleable(self, rng, k):
        rows = labeled_rows(self.emission, rng, 6, k, gaps=0.3)
        return SemiMarkovInstance(rows, *durations_alike(rng, 2, k), lengths_of(rng, 6))

    def dozens(self, rng, k, form="vb"):
        n = int(rng.integers(5, 40))
        rows = labeled_rows(self.emission, rng, n, k, gaps=0.3, conjugate=False)
        return SemiMarkovInstance(rows, *random_durations(rng, 3, k), lengths_of(rng, n, 20))

    def alike(self, rng, k):
        rows = labeled_rows(self.emission, rng, 12)
        return SemiMarkovInstance(rows, *durations_alike(rng, 3, k), np.array([7, 5]))

    def pair(self, rng):
        return SemiMarkovInstance(labeled_rows(self.emission, rng, 6), *durations_alike(rng, 2, 1), np.array([4, 2]))

    def long(self, rng):
        rows = labeled_rows(self.emission, rng, 300, 1, 0.2, conjugate=False)
        return SemiMarkovInstance(rows, *durations_alike(rng, 2, 0), np.array([200, 100]))

    def many(self, rng, k):
        lengths = [np.array([5000]), np.full(500, 10), np.array([3000, 1000, 500, 500])][k % 3]
        return SemiMarkovInstance(labeled_rows(self.emission, rng, 5000), *random_durations(rng, 4, k), lengths)
