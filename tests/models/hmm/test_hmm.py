"""Hidden Markov models: E steps by the sum over all paths, known evidences, masks. Laws of all models: see `laws`."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from emissions.members import PROBLEMS
from laws.chains import hmm, lengths_of, random_prior
from laws.labels import random_starts
from reference import hidden_markov, mixtures
from reference.hidden_markov import by_enumeration, forward_backward
from scipy import stats
from scipy.special import logsumexp

from skvbem.data import row_hashes
from skvbem.emissions import EMISSIONS
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.models import capabilities_of
from skvbem.models.hmm.capabilities import log_z
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.starts import seeded_starts
from skvbem.models.hmm.transitions import Transitions, banded, left_to_right
from skvbem.models.labels.distinct_rows import DistinctRows
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.testing.emission_examples import seen
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

approx = pytest.approx


def chain_of(model, natural):
    """Logs of first states and of transitions, full matrices."""
    first, pairs, _ = model.prior.split(natural)
    return model.initial.matrix(first, -np.inf)[0], model.transitions.matrix(pairs, -np.inf)


def sequences_of(data, trimmed=True):
    return list(zip(data.starts, data.ends if trimmed else data.starts[1:]))


def are_observed(values):
    """True for rows with an observed cell, in any group of columns, (n_rows,); codes below 0 are missing."""
    groups = values if isinstance(values, (list, tuple)) else [values]
    seen = [(each >= 0) if np.issubdtype(each.dtype, np.integer) else ~np.isnan(each) for each in groups]
    return np.any([each.reshape(len(each), -1).any(axis=1) for each in seen], axis=0)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_e_step_is_the_sum_over_all_paths(name, rng):
    """30 small models of every family: ln Z, states, transitions, statistics, best paths, filters; two lanes."""
    for k in range(30):
        n, n_states = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        problem = PROBLEMS[name](rng, n_rows=n, gaps=0.3 * (k % 2))
        lengths = lengths_of(rng, n)
        weight = rng.choice([0.0, 1.0, 2.5], size=len(lengths))
        model, data = hmm(problem, random_prior(rng, n_states), lengths, weight)
        of_steps = np.repeat(weight, lengths)[are_observed(problem.values)]
        assert data.total_weight == pytest.approx(of_steps.sum())
        natural = posteriors.VB.of(model.prior, random_starts(model, data, rng, 2))[0]
        found = model.expect(natural, data)
        for lane in range(2):
            at = np.ascontiguousarray(natural[:, lane])
            log_first, log_pairs = chain_of(model, at)
            log_likelihood = problem.emission.expected_log_likelihood(data.table, model.prior.split(at)[2])
            shares, filtered = np.zeros((n, n_states)), np.zeros((n, n_states))
            first, pairs, log_z, log_zs = np.zeros(n_states), np.zeros((n_states, n_states)), 0.0, []
            for s, (a, b) in enumerate(sequences_of(data)):
                log_zs.append(0.0)
                if b > a:
                    log_zs[s], marginals, transitions, _, _ = by_enumeration(log_first, log_pairs, log_likelihood[a:b])
                    shares[a:b] = marginals
                    first, pairs = first + weight[s] * marginals[0], pairs + weight[s] * transitions
                    log_z += weight[s] * log_zs[s]
            of_rows = np.repeat(weight, lengths)[:, None] * shares
            of_emission = problem.emission.statistics(data.table, of_rows, model.prior.split(at)[2])
            expected = np.concatenate([first[model.initial.cells], pairs.ravel()[model.transitions.cells], of_emission])
            assert found.log_normalizer[lane] == approx(log_z, rel=1e-11, abs=1e-11)
            assert found.statistics[:, lane] == approx(expected, rel=1e-9, abs=1e-9)
            assert model.log_normalizers_of_sequences(at, data) == approx(log_zs, rel=1e-11, abs=1e-11)
            smoothed = model.smoothed(at, data)
            assert smoothed[data.weighted_rows] == approx(shares[data.weighted_rows], abs=1e-10)
            assert smoothed.sum(axis=1) == approx(1.0)
            states, log_joint = model.decoded(at, data)
            for s, (a, b) in enumerate(sequences_of(data, trimmed=False)):
                _, _, _, best, of_paths = by_enumeration(log_first, log_pairs, log_likelihood[a:b])
                assert log_joint[s] == approx(best, rel=1e-11, abs=1e-11)
                assert of_paths[tuple(states[a:b])] == approx(max(of_paths.values()), rel=1e-9)
                for t in range(a, b):
                    filtered[t] = by_enumeration(log_first, log_pairs, log_likelihood[a : t + 1])[1][-1]
                if data.ends[s] < b:
                    assert smoothed[b - 1] == approx(filtered[b - 1], abs=1e-10)
            assert model.filtered(at, data) == approx(filtered, abs=1e-10)


@pytest.mark.parametrize("name", PROBLEMS)
def test_sequences_of_one_step_are_a_mixture(name, rng):
    """The same bound from the same statistics, step for step."""
    n, weight = 25, rng.uniform(0.2, 2.0, 25)
    problem = PROBLEMS[name](rng, n_rows=n, gaps=0.2)
    weights = rng.uniform(0.3, 2.0, 3)
    model, data = hmm(problem, (Transitions(weights[None]), Transitions.symmetric(3, 1.0)), np.ones(n, int), weight)
    mixture = Mixture(problem.emission, FiniteWeights(weights), problem.emission.default_prior(3))
    rows = mixture.compile(data.table, weight, seen(problem.values))
    shares = rng.dirichlet(np.ones(3), size=n)
    start = mixture.statistics_of(shares, rows)[:, None]
    other = model.statistics_of(shares, data)[:, None]
    of_chain = np.arange(len(other)) < 3 + 9
    assert other[~of_chain] == approx(start[3:], rel=1e-12)
    for _ in range(3):
        one, penalty = posteriors.VB.of(mixture.prior, start)
        two, chain_penalty = posteriors.VB.of(model.prior, other)
        found, of_chains = mixture.expect(one, rows), model.expect(two, data)
        assert chain_penalty == approx(penalty, rel=1e-12)
        assert of_chains.log_normalizer == approx(found.log_normalizer, rel=1e-12)
        start, other = found.statistics, of_chains.statistics
        assert other[:3] == approx(start[:3], rel=1e-10, abs=1e-12)
        assert np.all(other[3:12] == 0)
        assert other[12:] == approx(start[3:], rel=1e-9, abs=1e-9)


def symbols(text, alphabet=None):
    """A problem of one sequence of symbols."""
    codes = np.array([[int(c)] for c in text])
    emission = CategoricalEmission((alphabet or codes.max() + 1,))
    return emission, codes


def of_symbols(texts, n_states, concentration=1.0, alphabet=None):
    """A model with equal concentrations everywhere, and its data."""
    emission, codes = symbols("".join(texts), alphabet)
    model = HMM(
        emission,
        Transitions(np.full((1, n_states), concentration)),
        Transitions(np.full((n_states, n_states), concentration)),
        emission.default_prior(n_states, concentration=concentration),
    )
    return model, model.compile(emission.prepare(codes), [len(text) for text in texts]), codes


@pytest.mark.parametrize(
    ("texts", "n_states", "concentration", "exact"),
    [
        (["0101101"], 2, 1.0, 9643 / 1814400),
        (["0101101"], 2, 0.5, 605 / 131072),
        (["0101101"], 1, 1.0, 1 / 280),
        (["000111001111"], 1, 1.0, 1 / 10296),
        (["0120", "112"], 2, 1.0, 7969 / 40824000),
        (["001101"], 3, 1.0, 247771 / 22861440),
        (["0", "2", "1", "2"], 2, 1.0, 1 / 135),
    ],
)
def test_known_evidences(texts, n_states, concentration, exact, rng):
    """Exact fractions, which the sum over all paths finds, too, and no bound passes."""
    model, data, codes = of_symbols(texts, n_states, concentration)
    assert model.emission.n_categories == (codes.max() + 1,)
    lengths = [len(text) for text in texts]
    if n_states > 1:
        of_symbols_of_state = partial(mixtures.categorical, concentration=concentration, sizes=[codes.max() + 1])
        priors = model.initial.concentration[0], model.transitions.concentration
        found = hidden_markov.log_evidence(codes, lengths, *priors, of_symbols_of_state)
        assert found == approx(np.log(exact), rel=1e-12)
    found = run(HMMAscent(model, data, posteriors.VB), random_starts(model, data, rng, 20), tol=1e-9, max_iter=2000)
    assert found.objective.max() <= np.log(exact) + 1e-10
    if n_states == 1:
        assert found.objective.max() == approx(np.log(exact), rel=1e-12)


def test_known_steps():
    """A trajectory of the bound, and what rows normalized to one would make of its end: no bound."""
    model, data, _ = of_symbols(["000111001111"], 2)
    start = np.array([1.7, 1.3, 3, 1.5, 1.2, 2.5, 3, 1, 1, 4])[:, None] - 1
    natural, penalty = posteriors.VB.of(model.prior, start)
    found = model.expect(natural, data)
    assert found.log_normalizer[0] == approx(-10.566924783595, abs=1e-11)
    assert found.log_normalizer[0] + penalty[0] == approx(-12.219273844980, abs=1e-11)
    ascent = HMMAscent(model, data, posteriors.VB)
    trace = ascent.advance(start, 3)[:, 0]
    assert trace[1:] == approx([-11.363509143578, -11.322524561333], abs=1e-11)
    found = run(ascent, start, tol=1e-12, max_iter=2000)
    assert found.objective[0] == approx(-11.264444272681, abs=1e-10)
    natural = posteriors.VB.of(model.prior, found.statistics)[0]
    assert model.expect(natural, data).log_normalizer[0] == approx(-9.0253032544, abs=1e-6)
    for blocks, wrong in (([1], -8.2698193216), ([0, 1, 2], -7.3145066303)):
        parts = model.prior.split(natural)
        for k in blocks:
            rows = parts[k].reshape(-1, 2)
            parts[k] = (rows - logsumexp(rows, axis=1, keepdims=True)).reshape(-1, 1)
        assert model.expect(np.concatenate(parts), data).log_normalizer[0] == approx(wrong, abs=1e-6)


def test_rows_that_do_not_depend_on_the_state_before(rng):
    """Transitions equal to the first state's distribution: a product of mixtures over the steps."""
    for name in PROBLEMS:
        problem = PROBLEMS[name](rng, n_rows=20, gaps=0.2)
        model, data = hmm(problem, (Transitions(np.ones((1, 3))), Transitions(np.ones((3, 3)))), [11, 9])
        point = list(model.prior.sample(rng))
        point[1] = np.tile(point[0], 3)
        natural = model.prior.natural(tuple(point))
        log_likelihood = problem.emission.expected_log_likelihood(data.table, model.prior.split(natural)[2])
        of_rows = logsumexp(log_likelihood + np.log(point[0]), axis=1)
        found = model.log_normalizers_of_sequences(natural, data)
        assert found == approx([of_rows[:11].sum(), of_rows[11:].sum()], rel=1e-10, abs=1e-9)


def fits_of_any_kind(n_fits, rng):
    """Random fits: the driver raises where a step's bound is below the last."""
    names = list(PROBLEMS)
    for k in range(n_fits):
        n, n_states = int(rng.integers(1, 40)), int(rng.integers(1, 6))
        problem = PROBLEMS[names[k % len(names)]](rng, n_rows=n, gaps=rng.choice([0.0, 0.3]))
        lengths, strength = lengths_of(rng, n, 40), 10 ** rng.uniform(-3, 1)
        allowed = rng.random((n_states, n_states)) < 0.7
        allowed |= np.eye(n_states, dtype=bool)
        prior = Transitions(np.full((1, n_states), strength)), Transitions.symmetric(n_states, strength, allowed)
        model, data = hmm(problem, prior, lengths, rng.choice([0.5, 1.0, 3.0], size=len(lengths)))
        found = run(HMMAscent(model, data, posteriors.VB), random_starts(model, data, rng, 2), tol=1e-4, max_iter=12)
        assert np.isfinite(found.objective).all()


def test_random_fits_rise(rng):
    fits_of_any_kind(150, rng)


@pytest.mark.slow
def test_ten_thousand_random_fits_rise(rng):
    fits_of_any_kind(10_000, rng)


def test_a_hundred_sequences_over_a_hundred_symbols(rng):
    """Where others' bounds are NaN: 100 random sequences over 100 symbols, 5 states, sparse priors."""
    codes = rng.integers(0, 100, size=(100 * 30, 1))
    emission = CategoricalEmission((100,))
    for strength in (1.0, 1e-2, 1e-3):
        prior = Transitions(np.full((1, 5), strength)), Transitions.symmetric(5, 5 * strength)
        model = HMM(emission, *prior, emission.default_prior(5, concentration=strength))
        data = model.compile(emission.prepare(codes), np.full(100, 30))
        found = run(HMMAscent(model, data, posteriors.VB), random_starts(model, data, rng, 3), tol=1e-3, max_iter=200)
        assert np.isfinite(found.objective).all()


def test_numbers_far_out_of_range_are_right(rng):
    """Strengths of 1e-3 and measurements a hundred standard deviations apart: ln Z as the recursion in logarithms."""
    for _ in range(10):
        values = rng.choice([-200.0, 0.0, 300.0], size=(60, 2)) + rng.normal(size=(60, 2))
        problem = PROBLEMS["full"](rng)
        emission = type(problem.emission).for_data(values)
        prior = Transitions(np.full((1, 4), 1e-3)), Transitions.symmetric(4, 4e-3)
        model = HMM(emission, *prior, emission.default_prior(4))
        data = model.compile(emission.prepare(values), [35, 25])
        labels = np.eye(4)[np.digitize(values[:, 0], [-100, 100])]
        natural = posteriors.VB.of(model.prior, model.statistics_of(labels, data)[:, None])[0]
        log_first, log_pairs = chain_of(model, natural[:, 0])
        assert log_pairs[np.isfinite(log_pairs)].min() < -200
        log_likelihood = emission.expected_log_likelihood(data.table, model.prior.split(natural[:, 0])[2])
        exact = [forward_backward(log_first, log_pairs, log_likelihood[a:b]) for a, b in sequences_of(data)]
        found = model.expect(natural, data)
        assert found.log_normalizer[0] == approx(sum(each[0] for each in exact), rel=1e-8)
        pairs = sum(each[2] for each in exact).ravel()[model.transitions.cells]
        assert found.statistics[4 : 4 + len(pairs), 0] == approx(pairs, abs=1e-8)


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_state_has_no_parameters_of_a_chain(name, rng):
    one = Transitions(np.array([[rng.uniform(0.1, 3)]])), Transitions(np.array([[rng.uniform(0.1, 3)]]))
    model, _ = hmm(PROBLEMS[name](rng, n_rows=4), one, [3, 1])
    assert model.prior.n_free_parameters == model.prior.blocks[2].n_free_parameters


def test_sequences_one_by_one_have_no_rows_that_nothing_depends_on(rng):
    for name in PROBLEMS:
        lengths = lengths_of(rng, 30, 6)
        repeats = rng.integers(0, 4, size=len(lengths))
        problem = PROBLEMS[name](rng, n_rows=30, gaps=0.2)
        one_by_one = hmm(problem, random_prior(rng, 3), lengths, repeats.astype(float))[1].one_by_one
        assert len(one_by_one.weight) == repeats.sum()
        assert one_by_one.weighted_rows.all()


def test_an_impossible_sequence_of_weight_0_is_as_if_absent():
    emission = CategoricalEmission((2,))
    model = HMM(emission, Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2))), emission.default_prior(2))
    natural = model.prior.expected_natural()[:, None]
    of_emission = natural[-4:]
    of_emission[1::2] = -np.inf  # no state makes the second symbol
    rows = emission.prepare(np.array([[0], [0], [1]]))
    with_it = model.compile(rows, [2, 1], weight=np.array([2.0, 0.0]))
    without = model.compile(rows[:2], [2], weight=np.array([2.0]))
    found, expected = model.expect(natural, with_it), model.expect(natural, without)
    assert found.log_normalizer == expected.log_normalizer
    assert np.array_equal(found.statistics, expected.statistics)
    assert np.array_equal(log_z(model, natural, with_it), expected.log_normalizer)


@pytest.mark.parametrize("name", ["full", "categorical", "independent"])
def test_pieces_of_long_sequences_change_nothing(name, rng, monkeypatch):
    problem = PROBLEMS[name](rng, n_rows=3000, gaps=0.1)
    model, data = hmm(problem, random_prior(rng, 3), [2000, 7, 993])
    natural = posteriors.VB.of(model.prior, random_starts(model, data, rng, 2))[0]
    whole, at = model.expect(natural, data), np.ascontiguousarray(natural[:, 0])
    ways = {}
    for rows in (100, 100_000):
        monkeypatch.setattr(type(model), "segment_rows", lambda self, n_lanes=1, rows=rows: (rows, 2 * rows))
        found = model.expect(natural, data)
        assert found.log_normalizer == approx(whole.log_normalizer, rel=1e-12)
        assert found.statistics == approx(whole.statistics, rel=1e-9, abs=1e-9)
        ways[rows] = model.smoothed(at, data), model.filtered(at, data), model.decoded(at, data)[0]
    for one, other in zip(*ways.values()):
        assert one == approx(other, abs=1e-9)


def test_a_million_sequences_of_one_step(rng):
    codes = rng.integers(0, 3, size=(1_000_000, 1))
    emission = CategoricalEmission((3,))
    model = HMM(emission, Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2))), emission.default_prior(2))
    data = model.compile(emission.prepare(codes), np.ones(1_000_000, dtype=int))
    start = random_starts(model, data, rng, 1)
    trace = HMMAscent(model, data, posteriors.VB).advance(start, 2)
    assert trace[1, 0] >= trace[0, 0] - 1e-13 * abs(trace[0, 0])  # rounding
    assert model.smoothed(posteriors.VB.of(model.prior, start)[0][:, 0], data).shape == (1_000_000, 2)


def test_steps_after_the_last_observed_one_cost_nothing(rng):
    """Nor do sequences without any; what is missing in between is summed out."""
    emission, codes = symbols("0110100")
    gone = np.concatenate([codes, np.full((3, 1), -1), codes[:2], np.full((4, 1), -1)])
    prior = Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2)))
    model = HMM(emission, *prior, emission.default_prior(2))
    more = model.compile(emission.prepare(gone), [10, 2, 4], observed=gone[:, 0] >= 0)
    less = model.compile(emission.prepare(np.concatenate([codes, codes[:2]])), [7, 2])
    assert (more.total_weight, less.total_weight) == (9, 9)
    start = random_starts(model, less, rng, 1)
    natural = posteriors.VB.of(model.prior, start)[0]
    one, other = model.expect(natural, more), model.expect(natural, less)
    assert one.log_normalizer == approx(other.log_normalizer, rel=1e-13)
    assert one.statistics == approx(other.statistics, rel=1e-12)
    smoothed = model.smoothed(natural[:, 0], more)
    assert smoothed.sum(axis=1) == approx(1.0)
    log_first, log_pairs = chain_of(model, natural[:, 0])
    follows = smoothed[6] @ np.exp(log_pairs)
    assert smoothed[7] == approx(follows / follows.sum())
    assert smoothed[12] == approx(np.exp(log_first) / np.exp(log_first).sum())


def test_nothing_observed_at_all_leaves_the_prior(rng):
    emission, _ = symbols("01")
    prior = Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2)))
    model = HMM(emission, *prior, emission.default_prior(2))
    data = model.compile(emission.prepare(np.full((5, 1), -1)), [3, 2], observed=np.zeros(5, dtype=bool))
    found = run(HMMAscent(model, data, posteriors.VB), random_starts(model, data, rng, 1), tol=0.0, max_iter=4)
    assert found.objective[0] == approx(0.0, abs=1e-12)


def test_lengths_must_add_up():
    model, data, _ = of_symbols(["0101"], 2)
    with pytest.raises(ValueError, match="must add up to the 4 rows"):
        model.compile(data.table, [1, 2])


def test_transitions_ruled_out_are_no_parameters(rng):
    transitions = Transitions.symmetric(4, 1.0, left_to_right(4))
    assert transitions.n_cells == 7
    assert transitions.prior.n_free_parameters == 3
    assert Transitions.symmetric(4, 1.0, banded(4)).prior.n_free_parameters == 6
    assert Transitions.sticky(3, 1.5, 2.0).concentration.tolist() == (np.full((3, 3), 0.5) + 2 * np.eye(3)).tolist()
    problem = PROBLEMS["poisson"](rng, n_rows=30)
    model, data = hmm(problem, (Transitions(np.eye(4)[:1]), transitions), [15, 15])
    found = run(HMMAscent(model, data, posteriors.VB), random_starts(model, data, rng, 3), tol=1e-6, max_iter=500)
    mean = transitions.matrix((model.prior + found.statistics[:, 0]).blocks[1].mean())
    assert np.all(mean[~left_to_right(4)] == 0)
    assert mean.sum(axis=1) == approx(1.0)
    states = model.decoded(posteriors.VB.of(model.prior, found.statistics)[0][:, 0], data)[0].reshape(2, 15)
    assert np.all(states[:, 0] == 0)
    assert set(np.diff(states, axis=1).ravel()) <= {0, 1}
    with pytest.raises(ValueError, match="No transition is left from state 1"):
        Transitions(np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="must be finite and >= 0"):
        Transitions(np.array([[1.0, np.nan]]))


def test_statistics_of_responsibilities(rng):
    """By counting, of labels that are certain."""
    for name in PROBLEMS:
        problem = PROBLEMS[name](rng, n_rows=10)
        model, data = hmm(
            problem, (Transitions(np.ones((1, 3))), Transitions(np.ones((3, 3)))), [4, 6], np.array([2, 1])
        )
        labels = rng.integers(0, 3, 10)
        found = model.statistics_of(np.eye(3)[labels], data)
        first, pairs = np.zeros(3), np.zeros((3, 3))
        for a, b, weight in ((0, 4, 2), (4, 10, 1)):
            first[labels[a]] += weight
            np.add.at(pairs, (labels[a : b - 1], labels[a + 1 : b]), weight)
        assert found[:12] == approx(np.concatenate([first, pairs.ravel()]))
        weight = np.repeat([2.0, 1.0], [4, 6])[:, None]
        natural = model.prior.blocks[2].expected_natural()
        assert found[12:] == approx(problem.emission.statistics(data.table, np.eye(3)[labels] * weight, natural))


def test_sampled_sequences_follow_the_point(rng):
    """First states, transitions and symbols by chi-square; masks are kept to."""
    model, _, _ = of_symbols(["0120"], 3)
    point = model.prior.sample(rng)
    lengths = np.concatenate([np.full(4000, 5), [20_000]])
    rows, states = model.sample(point, lengths, rng)
    assert rows.shape == (40_000, 1)
    starts = np.cumsum(lengths) - lengths
    inside = np.ones(40_000, dtype=bool)
    inside[starts] = False
    before, after = states[:-1][inside[1:]], states[1:][inside[1:]]
    tables = [
        (np.bincount(states[starts], minlength=3), point[0]),
        *((np.bincount(after[before == k], minlength=3), point[1][3 * k : 3 * k + 3]) for k in range(3)),
        *((np.bincount(rows[states == k, 0], minlength=3), point[2][3 * k : 3 * k + 3]) for k in range(3)),
    ]
    for counts, p in tables:
        assert stats.chisquare(counts, counts.sum() * p / p.sum()).pvalue > 1e-5
    left = HMM(
        model.emission,
        Transitions(np.eye(3)[:1]),
        Transitions.symmetric(3, 1.0, left_to_right(3)),
        model.prior.blocks[2],
    )
    _, states = left.sample(left.prior.sample(rng), [50, 50], rng)
    assert states[0] == states[50] == 0
    assert set(np.diff(states[:50])) <= {0, 1}


# What reports and deterministic scores ask ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["categorical", "full", "poisson"])
def test_entropies_of_paths_by_enumeration(name, rng):
    """-sum q ln q over all paths of all sequences, weights and masks included."""
    for k in range(8):
        n, n_states = int(rng.integers(1, 8)), int(rng.integers(1, 4))
        problem = PROBLEMS[name](rng, n_rows=n, gaps=0.3 * (k % 2))
        lengths = lengths_of(rng, n)
        weight = rng.choice([0.0, 1.0, 2.5], size=len(lengths))
        model, data = hmm(problem, random_prior(rng, n_states), lengths, weight)
        natural = np.ascontiguousarray(posteriors.VB.of(model.prior, random_starts(model, data, rng, 1))[0][:, 0])
        log_first, log_pairs = chain_of(model, natural)
        log_likelihood = problem.emission.expected_log_likelihood(data.table, model.prior.split(natural)[2])
        expected = 0.0
        for (a, b), w in zip(sequences_of(data), weight):
            if b > a:
                *_, of_paths = by_enumeration(log_first, log_pairs, log_likelihood[a:b])
                q = np.array(list(of_paths.values()))
                expected -= w * (q[q > 0] * np.log(q[q > 0])).sum()
        assert capabilities_of(model).entropy(natural, data) == approx(expected, rel=1e-9, abs=1e-9)


def test_states_are_alike_by_rows_and_by_where_they_lead(rng):
    """Two halves of one state are at 0; those that emit alike but lead elsewhere are not."""
    problem = PROBLEMS["diag"](rng, n_rows=40)
    model, data = hmm(problem, (Transitions(np.ones((1, 3))), Transitions(np.ones((3, 3)))), [40])
    start = random_starts(model, data, rng, 1)[:, 0]
    first, pairs, of_emission = (part.copy() for part in model.prior.split(start))
    own = of_emission.reshape(3, -1)
    own[1] = own[0]
    pairs = pairs.reshape(3, 3)
    pairs[:2] = [[4.0, 2.0, 5.0], [1.0, 5.0, 5.0]]  # to either of the two alike often

    def found():
        natural = (model.prior + np.concatenate([first, pairs.ravel(), own.ravel()])).mode()
        return model.divergences(model.prior.natural(natural), data)

    apart = found()
    assert apart[0, 1] == approx(0.0, abs=1e-12)
    assert apart == approx(apart.T)
    assert (np.diagonal(apart) == 0).all()
    assert apart[0, 2] > 0.01
    pairs[1] = [5.0, 4.0, 2.0]
    p, q = np.array([8.0, 6.0]) / 14, np.array([11.0, 3.0]) / 14
    assert found()[0, 1] == approx(((p - q) * np.log(p / q)).sum())


def test_a_model_after_data_has_their_posterior_as_prior(rng):
    problem = PROBLEMS["poisson"](rng, n_rows=9)
    model, data = hmm(problem, random_prior(rng, 2, "sticky"), [5, 4])
    statistics = random_starts(model, data, rng, 1)[:, 0]
    later = model.updated(statistics)
    assert later.prior.expected_natural() == approx((model.prior + statistics).expected_natural())
    assert model.prior.expected_natural() != approx(later.prior.expected_natural())


def spread_starts(model, data, values, n_starts, rng):
    data = replace(data, row_hashes=partial(row_hashes, [values]))
    rows = DistinctRows.of(model.emission, model.hashed_rows(data))
    return seeded_starts("k-means++", model, data, rows, n_starts, rng)


def test_starts_are_those_of_rows_and_of_fewer_starts(rng):
    """The same for more starts, repeated sequences and weights; masks are kept and counts of rows add up."""
    problem = PROBLEMS["full"](rng, n_rows=30)
    for kind in ("symmetric", "left_to_right", "banded"):
        model, data = hmm(problem, random_prior(rng, 3, kind), [10, 12, 8])
        few, many = (spread_starts(model, data, problem.values, n, np.random.default_rng(5)) for n in (2, 5))
        assert np.array_equal(few, many[:, :2])
        first, pairs, _ = model.prior.split(many)
        if kind == "symmetric":
            assert first.sum(axis=0) == approx(np.full(5, 3.0))
            assert pairs.sum(axis=0) == approx(np.full(5, 27.0))
        assert len(np.unique(pairs.round(9), axis=1).T) == 5
        assert (posteriors.VB.of(model.prior, many)[0] < np.inf).all()


def test_states_start_in_an_order_that_a_mask_allows(rng):
    """Levels that a walk visits one after the other: the start keeps most of the transitions it counts."""
    levels = np.clip(np.cumsum(rng.integers(-1, 2, size=300)), 0, 4)
    X = 4.0 * levels[:, None] + rng.normal(size=(300, 1)) * 0.3
    emission = EMISSIONS["gaussian"]().for_data(X, None)
    for mask in (banded(5), left_to_right(5) | left_to_right(5).T):
        chain = Transitions(np.ones((1, 5))), Transitions(1.0 * mask)
        model = HMM(emission, *chain, emission.default_prior(5))
        data = model.compile(emission.prepare(X), [300])
        start = spread_starts(model, data, X, 1, rng)
        assert model.prior.split(start)[1].sum() > 0.85 * 299
