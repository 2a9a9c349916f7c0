"""Where hidden Markov models start."""

import numpy as np
import pytest
from emissions.members import PROBLEMS, n_rows, rows_of
from models.test_hmm import hmm, random_prior
from models.test_mixture import mixture

from skvbem.emissions import Categorical
from skvbem.models._hmm_starts import chain_starts, drawn_starts
from skvbem.models._seeding import seeded_starts
from skvbem.models.hmm import HMM, HMMAscent
from skvbem.models.transitions import Transitions, left_to_right
from skvbem.models.weights import FiniteWeights
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

approx = pytest.approx


@pytest.mark.parametrize("name", PROBLEMS)
def test_starts_are_statistics_and_the_first_are_the_same_however_many(name):
    problem = PROBLEMS[name](np.random.default_rng(7), n_rows=40, gaps=0.2)
    model, data = hmm(problem, random_prior(np.random.default_rng(8), 3, "array"), [25, 15])
    marks = np.arange(40).astype(np.uint64)
    few, many = (chain_starts(model, data, marks, n, np.random.default_rng(1)) for n in (4, 7))
    assert few == approx(many[:, :4], rel=1e-9, abs=1e-9)
    for starts in (many, drawn_starts(model, data, 4, np.random.default_rng(2))):
        first, pairs, _ = model.prior.split(starts)
        assert first.sum(axis=0) == approx((data.ends > data.starts[:-1]).sum())
        assert pairs.sum(axis=0) == approx(np.maximum(data.ends - data.starts[:-1] - 1, 0).sum())
        assert np.isfinite(HMMAscent(model, data, posteriors.VB).advance(starts.copy(), 1)).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_seeds_are_those_of_mixtures(name, rng):
    """The statistics of states and rows from the same seeds."""
    problem = PROBLEMS[name](rng, n_rows=30)
    of_mixture, table, _ = mixture(problem, FiniteWeights(np.ones(3)))
    model, data = hmm(problem, (Transitions(np.ones((1, 3))), Transitions(np.ones((3, 3)))), np.ones(30, dtype=int))
    marks = np.arange(n_rows(problem.values)).astype(np.uint64)
    one = seeded_starts(of_mixture, of_mixture.compile(table), marks, 3, spread=True, rng=np.random.default_rng(0))
    other = seeded_starts(model, data, marks, 3, spread=True, rng=np.random.default_rng(0))
    assert other[:3] == approx(one[:3], rel=1e-12)
    assert other[12:] == approx(one[3:], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["categorical", "full", "independent"])
def test_order_and_repeats_of_sequences_make_no_difference(name, rng):
    problem, lengths = PROBLEMS[name](rng, n_rows=40, gaps=0.2), np.array([17, 3, 20])
    prior, repeats = random_prior(rng, 3), np.array([2, 1, 3])
    model, data = hmm(problem, prior, lengths, repeats.astype(float))
    marks = rng.integers(0, 2**64, size=40, dtype=np.uint64)
    starts = np.cumsum(lengths) - lengths
    order = rng.permutation(np.repeat(np.arange(3), repeats))
    rows = np.concatenate([np.arange(starts[s], starts[s] + lengths[s]) for s in order])
    other, again = hmm(problem._replace(values=rows_of(problem.values, rows)), prior, lengths[order])
    one = chain_starts(model, data, marks, 6, np.random.default_rng(3))
    two = chain_starts(other, again, marks[rows], 6, np.random.default_rng(3))
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
            emission = Categorical((6,))
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
        marks = np.unique(values, return_inverse=True)[1].ravel().astype(np.uint64)
        starts = chain_starts(model, data, marks, 10, rng)
        found = run(ascent, starts, tol=1e-2, max_iter=1000)
        assert found.objective.max() >= truth.objective[0] - 0.1
