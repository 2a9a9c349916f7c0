"""Where hidden Markov models start."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from emissions.members import PROBLEMS
from laws.chains import hmm, random_prior

from skvbem.data import row_hashes
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.starts import seeded_starts
from skvbem.models.hmm.transitions import Transitions, left_to_right
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.testing.emission_examples import rows_of
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

approx = pytest.approx


def starts_of(model, data, values, n_starts, rng):
    marks = partial(row_hashes, values if isinstance(values, (list, tuple)) else [values])
    data = replace(data, row_hashes=marks)
    rows = DistinctRows.of(model.emission, model.hashed_rows(data))
    return seeded_starts("k-means++", model, data, rows, n_starts, rng)


@pytest.mark.parametrize("name", ["categorical", "full", "independent"])
def test_order_and_repeats_of_sequences_make_no_difference(name, rng):
    problem, lengths = PROBLEMS[name](rng, n_rows=40, gaps=0.2), np.array([17, 3, 20])
    prior, repeats = random_prior(rng, 3), np.array([2, 1, 3])
    model, data = hmm(problem, prior, lengths, repeats.astype(float))
    starts = np.cumsum(lengths) - lengths
    order = rng.permutation(np.repeat(np.arange(3), repeats))
    rows = np.concatenate([np.arange(starts[s], starts[s] + lengths[s]) for s in order])
    other, again = hmm(replace(problem, values=rows_of(problem.values, rows)), prior, lengths[order])
    one = starts_of(model, data, problem.values, 6, np.random.default_rng(3))
    two = starts_of(other, again, rows_of(problem.values, rows), 6, np.random.default_rng(3))
    assert one == approx(two, rel=1e-8, abs=1e-8)


def test_starts_reach_the_optimum_of_the_states_that_made_the_data(rng):
    """Ten starts, three problems: symbols, clouds around one center, states that only follow each other."""
    for kind in ("symbols", "one center", "left to right"):
        n_states = {"symbols": 4, "one center": 3, "left to right": 4}[kind]
        first, pairs = np.ones((1, n_states)), np.ones((n_states, n_states))
        stay = 0.9 * np.eye(n_states) + 0.1 / n_states
        lengths = [600]
        if kind == "left to right":
            stay = 0.85 * np.eye(n_states) + 0.15 * np.eye(n_states, k=1)
            stay[-1, -1] = 1.0
            first, pairs, lengths = np.eye(n_states)[:1], left_to_right(n_states) * 1.0, [40] * 15
        states = []
        for length in lengths:
            states.append(0)
            for _ in range(length - 1):
                states.append(rng.choice(n_states, p=stay[states[-1]] / stay[states[-1]].sum()))
        states = np.array(states)
        if kind == "symbols":
            tables = 0.7 * np.eye(n_states, 6) + 0.05
            values = np.array([[rng.choice(6, p=tables[k] / tables[k].sum())] for k in states])
            emission = CategoricalEmission((6,))
        else:
            middle, scale = (
                (np.zeros(3), np.array([0.3, 1.0, 3.0]))
                if kind == "one center"
                else (np.array([0.0, 2.0, 0.0, -2.0]), np.ones(4))
            )
            values = (middle[states] + scale[states] * rng.normal(size=len(states)))[:, None]
            emission = type(PROBLEMS["full"](rng).emission).for_data(values)
        model = HMM(emission, Transitions(first), Transitions(pairs), emission.default_prior(n_states))
        data = model.compile(emission.prepare(values), lengths)
        ascent = HMMAscent(model, data, posteriors.VB)
        truth = run(ascent, model.statistics_of(np.eye(n_states)[states], data)[:, None], tol=1e-2, max_iter=1000)
        starts = starts_of(model, data, values, 10, rng)
        found = run(ascent, starts, tol=1e-2, max_iter=1000)
        assert found.objective.max() >= truth.objective[0] - 0.1
