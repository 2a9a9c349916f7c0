"""Deterministic scores of hidden Markov models against their definitions, by the sum over all paths."""

from dataclasses import replace
from functools import reduce
from itertools import product

import numpy as np
import pytest
from emissions.defined import DEFINED, as_emission_takes
from emissions.members import CONJUGATE, PROBLEMS, WITHOUT_HIDDEN_CELLS, with_nothing_hidden
from evidence.test_hmms import evaluation_of, evaluation_with
from evidence.test_mixture_scores import hessian, log_posterior
from laws.chains import hmm, lengths_of, random_prior, symmetric
from laws.labels import random_starts
from models.hmm.test_hmm import chain_of, sequences_of
from reference import hidden_markov
from reference.hidden_markov import log_joints

from skvbem.emissions import Gaussian
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.errors import TooLargeError
from skvbem.evidence import get_score
from skvbem.models import capabilities_of
from skvbem.models.hmm import enumeration, information
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.transitions import Transitions, left_to_right
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.testing.emission_examples import seen
from skvbem.vbem import posteriors

approx = pytest.approx


# --- the exact sum ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEFINED)
def test_exact_is_the_sum_over_all_paths(name, rng, monkeypatch):
    """Masks, several sequences, missing cells and steps, weights that are repeats, 0 among them; any batches."""
    for k in range(6):
        problem = DEFINED[name](rng, 5, 0.3 * (k % 2) * (name in CONJUGATE))
        initial, transitions = random_prior(rng, 1 + k % 3)
        lengths = lengths_of(rng, 5)
        weight = rng.permutation([2.0, *rng.choice([0.0, 1.0], len(lengths) - 1)]) if k > 3 else np.ones(len(lengths))
        emission, values = problem.emission, as_emission_takes(name, problem.values)
        model = HMM(emission, initial, transitions, emission.default_prior(1 + k % 3, **problem.options))
        data = model.compile(emission.prepare(values), lengths, weight, seen(values))
        ends = np.cumsum(lengths)
        rows = [np.arange(a, b) for a, b, w in zip(ends - lengths, ends, weight) for _ in range(int(w))]
        if sum(map(len, rows)) > 7:
            continue
        priors = initial.concentration[0], transitions.concentration
        of_paths = problem.values[np.concatenate(rows)], [len(each) for each in rows], *priors, problem.of_groups
        expected = hidden_markov.log_evidence(*of_paths)
        for batch in (2**12, 3):
            monkeypatch.setattr(enumeration, "_BATCH", batch)
            assert capabilities_of(model).enumeration(data, 2**20)[0] == approx(expected, rel=1e-11, abs=1e-10)


def test_only_paths_that_there_are_are_terms(rng):
    """Of three states passed one after the other, as many as there are places to go on."""
    problem = PROBLEMS["diag"](rng, n_rows=80)
    prior = Transitions(np.eye(3)[:1]), Transitions.symmetric(3, 2.0, left_to_right(3))
    evaluation = evaluation_of(problem, prior, [80], rng)
    found = get_score("exact")(evaluation)
    assert found.is_lower_bound
    assert found.standard_error is None
    assert found.details["n_terms"] == 1 + 79 + 79 * 78 // 2
    assert evaluation.fit("vb").objective <= found.value <= evaluation.fit("vb").objective + 30
    short = evaluation_of(PROBLEMS["poisson"](rng, n_rows=9), symmetric(rng, 3), [4, 5], rng)
    assert get_score("exact")(short, max_terms=3**9).details["n_terms"] == 3**9
    with pytest.raises(TooLargeError, match=r"1.968e\+04 paths of the 9 steps; 'max_terms' allows 19682"):
        get_score("exact")(short, max_terms=3**9 - 1)


def test_what_has_no_exact_sum_is_refused(rng):
    long = evaluation_of(PROBLEMS["diag"](rng, n_rows=2000), symmetric(rng, 4), [1500, 500], rng, tol=1.0)
    with pytest.raises(TooLargeError, match=r"a sum over 1.32e\+1204 paths of the 2000 steps"):
        get_score("exact")(long)
    gaps = evaluation_of(PROBLEMS["full"](np.random.default_rng(1), n_rows=6, gaps=0.4), symmetric(rng, 2), [6], rng)
    with pytest.raises(ValueError, match="of these sequences is an integral that has no closed form: over"):
        get_score("exact")(gaps)
    halves = evaluation_of(PROBLEMS["diag"](rng, n_rows=6), symmetric(rng, 2), [6], rng, weight=np.array([0.5]))
    with pytest.raises(ValueError, match="needs whole-number sample weights"):
        get_score("exact")(halves)


# --- bounds -----------------------------------------------------------------------------------------------------------


def collapsed_over_paths(problem, initial, transitions, lengths, of_paths):
    """<ln p(s, y)> + H of paths of all sequences with ln p(s, y) by definition, q(s) a product over sequences."""
    total, starts = 0.0, np.cumsum([0, *lengths])[:-1]
    for parts in product(*(list(of.items()) for of in of_paths)):
        path, p = sum((part for part, _ in parts), ()), np.prod([q for _, q in parts])
        if p <= 0:
            continue
        n_states = len(initial)
        first, pairs = hidden_markov.counts_along(path, starts, n_states)
        of_chain = [hidden_markov.dirichlet(n, a) for n, a in zip([first, *pairs], [initial, *transitions])]
        groups = [problem.values[np.array(path) == k] for k in range(n_states)]
        total += p * (sum(of_chain) + problem.of_groups(groups) - np.log(p))
    return total


@pytest.mark.parametrize("name", ["categorical", "diag", "tied"])
def test_the_collapsed_bound_is_its_definition_for_chains(name, rng):
    """Within standard errors; in no draw below the plain bound."""
    for k in range(3):
        problem = DEFINED[name](rng, 5)
        initial, transitions = random_prior(rng, 2, kind=["symmetric", "sticky", "left_to_right"][k])
        lengths = lengths_of(rng, 5)
        emission = problem.emission
        model = HMM(emission, initial, transitions, emission.default_prior(2, **problem.options))
        evaluation = evaluation_with(model, emission.prepare(problem.values), lengths, rng)
        natural = (model.prior + evaluation.fit("vb").statistics).expected_natural()
        logs = emission.expected_log_likelihood(evaluation.data.table, model.prior.split(natural)[2])
        chain, data = chain_of(model, natural), evaluation.data
        of_paths = [hidden_markov.by_enumeration(*chain, logs[a:b])[4] for a, b in sequences_of(data)]
        priors = initial.concentration[0], transitions.concentration
        expected = collapsed_over_paths(problem, *priors, lengths, of_paths)
        found = get_score("collapsed")(evaluation, n_draws=2000)
        assert found.value == approx(expected, abs=4.5 * found.standard_error + 1e-3)
        assert found.details["gain"] >= -1e-9
        evaluation.n_jobs = 2
        assert get_score("collapsed")(evaluation, n_draws=2000).value == found.value
        plain, exact = evaluation.fit("vb").objective, get_score("exact")(evaluation).value
        ascended = get_score("collapsed_ascent")(evaluation)
        assert plain - 1e-6 <= ascended.value <= exact + 4.5 * ascended.standard_error + 1e-9
        mled, cs = (get_score(kind)(evaluation).value for kind in ("mled", "cheeseman_stutz"))
        assert mled <= cs <= plain + 1e-6


# --- Laplace ----------------------------------------------------------------------------------------------------------


def covariance_over_paths(problem, model, data, natural):
    """Of complete-data statistics, by the sum over all paths of each sequence; nothing hidden but the path."""
    log_first, log_pairs = chain_of(model, natural)
    of_emission = model.prior.split(natural)[2]
    log_likelihood = problem.emission.expected_log_likelihood(data.table, of_emission)
    total = np.zeros((len(natural), len(natural)))
    for s, (a, b) in enumerate(sequences_of(data)):
        if a == b:
            continue
        paths, logs = log_joints(log_first, log_pairs, log_likelihood[a:b])
        statistics = []
        for path in paths:
            first, pairs = np.zeros(model.n_components), np.zeros((model.n_components,) * 2)
            first[path[0]] = 1
            np.add.at(pairs, (path[:-1], path[1:]), 1)
            chosen = np.zeros((len(data), model.n_components))
            chosen[np.arange(a, b), path] = 1
            of_rows = problem.emission.statistics(data.table, chosen, of_emission)
            of_chain = first[model.initial.cells], pairs.ravel()[model.transitions.cells]
            statistics.append(np.concatenate([*of_chain, of_rows]))
        p = np.exp(logs - np.logaddexp.reduce(logs))
        away = np.array(statistics) - p @ statistics
        total += data.weight[s] * (away.T * p) @ away
    return total


@pytest.mark.parametrize("name", WITHOUT_HIDDEN_CELLS)
def test_the_covariance_of_scores_is_that_over_all_paths(name, rng, monkeypatch):
    """Masks, weights, missing steps; all steps at once, or few."""
    for k in range(4):
        problem = with_nothing_hidden(name, rng, n_rows=8, gaps=0.3 * (k % 2) * (name in CONJUGATE))
        prior, lengths = random_prior(rng, 2 + (k == 1)), lengths_of(rng, 8)
        weight = rng.uniform(0.0, 3.0, len(lengths)) if k > 1 else None
        model, data = hmm(problem, prior, lengths, weight)
        point = posteriors.MAP.point_of(model.prior, random_starts(model, data, rng, 1)[:, 0])
        natural, jacobian = model.prior.natural(point), model.prior.jacobian(point)
        expected = jacobian.T @ covariance_over_paths(problem, model, data, natural) @ jacobian
        monkeypatch.setattr(information, "_BLOCK", [2**20, 50, 500, 1][k])
        (found,) = capabilities_of(model).information(point, data)
        assert found.covariance == approx(expected, rel=1e-9, abs=1e-10 * abs(expected).max())
        blocks = capabilities_of(model).information(point, data, joint=False)
        assert sorted(np.concatenate([block.free for block in blocks])) == found.free.tolist()
        for block in blocks:
            assert block.covariance == approx(expected[np.ix_(block.free, block.free)], abs=1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_laplace_is_the_gaussian_of_the_hessian_for_chains(name, rng):
    """Hidden measurements of Gaussians among the gaps."""
    for k in range(2):
        problem = PROBLEMS[name](rng, n_rows=12, gaps=0.25 * k)
        prior, lengths = symmetric(rng, 2), lengths_of(rng, 12, longest=8)
        if k:
            prior = Transitions(np.array([[1.0, 0.0]])), Transitions.symmetric(2, 2.0, left_to_right(2))
        weight = rng.uniform(0.5, 2.0, len(lengths)) if k else None
        evaluation = evaluation_of(problem, prior, lengths, rng, weight=weight, tol=1e-12)
        free = evaluation.model.prior.to_unconstrained(evaluation.point("map"))
        matrix = -hessian(lambda free, evaluation=evaluation: log_posterior(evaluation, free), free)
        sign, log_det = np.linalg.slogdet(matrix)
        found = get_score("laplace")(evaluation)
        assert sign == 1
        assert found.details["variant"] == "full"
        expected = log_posterior(evaluation, free[:, None])[0] + len(free) / 2 * np.log(2 * np.pi) - log_det / 2
        assert found.value == approx(expected, abs=1e-5)
        diagonal = get_score("laplace")(evaluation, variant="diagonal").details["log_det"]
        assert diagonal == approx(np.log(np.diag(matrix)).sum(), abs=1e-5)


def test_covariances_where_probabilities_leave_the_range_of_doubles(rng):
    """Two states that are out of reach by thousands of nats until the last row, which is theirs."""
    problem = PROBLEMS["diag"](rng, n_rows=6)
    emission = Gaussian("diag").for_data(rng.normal(size=(50, 1)))
    problem = replace(problem, emission=emission, values=np.array([[0.0]] * 5 + [[3000.0]]))
    model, data = hmm(
        problem, (Transitions(np.ones((1, 3))), Transitions(np.array([[1.0, 0, 0], [0, 1, 1], [0, 1, 1]]))), [6]
    )
    free = model.prior.to_unconstrained(model.prior.mode())
    of_means = np.flatnonzero(model.prior.jacobian(model.prior.mode()).any(axis=0))[-6::2]
    free[of_means] = [0.0, 60.0, 60.002]
    point = model.prior.from_unconstrained(free)
    natural, jacobian = model.prior.natural(point), model.prior.jacobian(point)
    shares = model.smoothed(natural, data)
    assert shares[:, 0].max() < 1e-100
    assert 0.01 < shares[0, 1] < 0.99
    assert model.filtered(natural, data)[:5, 1:].max() == 0.0
    expected = jacobian.T @ covariance_over_paths(problem, model, data, natural) @ jacobian
    (found,) = capabilities_of(model).information(point, data)
    assert found.covariance == approx(expected, rel=1e-8, abs=1e-9 * abs(expected).max())


# --- dimension, and the registry --------------------------------------------------------------------------------------


def rank_by_derivatives(allowed_first, allowed_pairs, sizes, n_steps, rng):
    """Of the probabilities of all sequences by all free cells, at a random point, by complex steps."""
    n_states = len(allowed_first)
    rows = [allowed_first, *allowed_pairs, *(np.ones(size, dtype=bool) for _ in range(n_states) for size in sizes)]
    ends = np.cumsum([allowed.sum() - 1 for allowed in rows])
    free = np.concatenate([rng.dirichlet(np.ones(allowed.sum()))[:-1] for allowed in rows])

    def probabilities(free):
        tables = []
        for allowed, of in zip(rows, np.split(free, ends[:-1])):
            table = np.zeros(len(allowed), dtype=complex)
            table[allowed] = [*of, 1 - of.sum()]
            tables.append(table)
        first, pairs = tables[0], np.stack(tables[1 : 1 + n_states])
        by_state = [tables[1 + n_states + k * len(sizes) :][: len(sizes)] for k in range(n_states)]
        emission = np.stack([reduce(np.multiply.outer, of).ravel() for of in by_state])
        forward = first[:, None] * emission
        for _ in range(n_steps - 1):
            forward = ((pairs.T @ forward)[:, :, None] * emission[:, None]).reshape(n_states, -1)
        return forward.sum(axis=0)

    jacobian = [probabilities(free + 1e-30j * unit).imag * 1e30 for unit in np.eye(len(free))]
    singular = np.linalg.svd(jacobian, compute_uv=False)
    assert not ((singular > 1e-13 * singular[0]) & (singular < 1e-9 * singular[0])).any()
    return int((singular > 1e-9 * singular[0]).sum())


@pytest.mark.parametrize(
    ("n_states", "n_symbols", "n_steps", "d"),
    [(2, 2, 1, 1), (2, 2, 2, 3), (2, 2, 3, 5), (2, 2, 5, 5), (2, 3, 3, 7), (3, 2, 5, 11), (3, 3, 4, 14)],
)
def test_known_dimensions_of_sequences_of_symbols(n_states, n_symbols, n_steps, d, rng):
    emission, ones = CategoricalEmission((n_symbols,)), np.ones((n_states, n_states))
    model = HMM(emission, Transitions(ones[:1]), Transitions(ones), emission.default_prior(n_states))
    data = model.compile(emission.prepare(np.zeros((n_steps + 1, 1), dtype=int)), [n_steps, 1])
    assert capabilities_of(model).dimension(("state",), data) == d
    assert rank_by_derivatives(ones[0] > 0, ones > 0, (n_symbols,), n_steps, rng) == d


def test_dimensions_of_sequences_of_categories(rng):
    """Masks, some columns; steps beyond 2 K - 1, which add none; where all sequences are short."""
    for k in range(16):
        n_states, sizes = 2 + k % 2, [(2,), (3,), (2, 2)][k % 3]
        initial, transitions = random_prior(rng, n_states)
        emission = CategoricalEmission(sizes)
        model = HMM(emission, initial, transitions, emission.default_prior(n_states))
        for n_steps in range(1, 2 * n_states + (len(sizes) < 2)):
            data = model.compile(emission.prepare(np.zeros((n_steps, len(sizes)), dtype=int)), [n_steps])
            expected = rank_by_derivatives(initial.allowed[0], transitions.allowed, sizes, n_steps, rng)
            assert capabilities_of(model).dimension(("state",), data) == expected


def test_dimensions_where_measurements_tell_states_apart(rng):
    """All parameters from two steps on; of states passed one by one those that are reached; of shares not known."""
    problem = PROBLEMS["diag"](rng, n_rows=4)
    n_own = 2 * problem.values.shape[1]
    for lengths, d in (([1, 1, 1, 1], 2 + 3 * n_own), ([2, 2], 8 + 3 * n_own), ([4], 8 + 3 * n_own)):
        model, data = hmm(problem, symmetric(rng, 3), lengths)
        assert capabilities_of(model).dimension(("state",), data) == d
    prior = Transitions(np.eye(3)[:1]), Transitions.symmetric(3, 1.0, left_to_right(3))
    for lengths, d in (([1, 1, 1, 1], n_own), ([2, 2], 1 + 2 * n_own), ([3, 1], 2 + 3 * n_own), ([4], 2 + 3 * n_own)):
        model, data = hmm(problem, prior, lengths)
        assert capabilities_of(model).dimension(("state",), data) == d
    shares = evaluation_of(PROBLEMS["multinomial"](rng, n_rows=6), symmetric(rng, 2), [6], rng)
    with pytest.raises(ValueError, match="depends on the totals of the rows, and is not known here"):
        get_score("bic")(shares, dimension="identifiable")


def test_scores_take_the_dimension_of_the_data(rng):
    problem = PROBLEMS["diag"](rng, n_rows=8)
    evaluation = evaluation_of(problem, symmetric(rng, 2), np.ones(8, dtype=int), rng)
    free, identifiable = (get_score("bic")(evaluation, dimension=which) for which in ("free", "identifiable"))
    assert identifiable.value - free.value == approx(2 / 2 * np.log(8))
    dagger = get_score("cheeseman_stutz_dagger")(evaluation)
    assert dagger.value - get_score("cheeseman_stutz")(evaluation).value == approx(2 / 2 * np.log(8))


def test_chains_of_single_steps_are_a_mixture(rng):
    """Transitions have no data there: the evidence is the same, where d does not count them."""
    problem = PROBLEMS["poisson"](rng, n_rows=7)
    concentration = np.full(2, 0.8)
    chain = (Transitions(concentration[None]), Transitions.symmetric(2, 2.0))
    ours = evaluation_of(problem, chain, np.ones(7, dtype=int), rng, tol=1e-12)
    mixture = Mixture(problem.emission, FiniteWeights(concentration), problem.emission.default_prior(2))
    theirs = mixture.compile(problem.emission.prepare(problem.values), None, seen(problem.values))
    exact, _ = capabilities_of(mixture).enumeration(theirs, 2**20)
    assert get_score("exact")(ours).value == approx(exact, rel=1e-12)
    assert capabilities_of(mixture).dimension(()) == ours.capabilities.dimension((), ours.data)
