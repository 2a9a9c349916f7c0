"""The collapsed bound against averages over all completions; its distributions against plain convolution."""

import math
import time

import mpmath
import numpy as np
import pytest
from bridge import FastNetwork
from evidence.evaluations import bipartite_network, drawn_rows, evaluate, evaluation_of, naive_bayes
from reference import facts
from reference.discrete_network import Network, Problem, exact_collapsed_bound, latent_posterior, uniform_prior
from reference.random_networks import random_problem
from scipy.special import gammaln
from scipy.stats import binom

from skvbem._kernels._collapsed import expected_log_rising
from skvbem.data import Rows
from skvbem.evidence.collapsed import collapsed
from skvbem.evidence.exact import exact
from skvbem.models import capabilities_of

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))


def literal(problem, evaluation):
    """<ln BD(N)> + H(q) by definition, at the q(x) of the VB fit."""
    network, data, prior = problem
    fast = FastNetwork(network, prior)
    log_tables = fast.tables((evaluation.model.prior + evaluation.fit("vb").statistics).expected_natural())
    return exact_collapsed_bound(network, prior, latent_posterior(network, log_tables, data))


def test_known_value():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)))
    found = collapsed(evaluation)
    assert found.value == approx(facts.VB_COLLAPSED_BOUND, abs=1e-7)
    assert found.details["gain"] == approx(facts.VB_COLLAPSED_BOUND - facts.VB_BOUND, abs=1e-7)
    assert found.details["error_bound"] < 1e-12
    assert found.is_lower_bound


def test_random_problems(rng):
    """Missing cells, whole weights, hidden nodes anywhere; at fits stopped early as well as at converged ones."""
    for k in range(60):
        problem = random_problem(rng, max_completions=2**9)
        evaluation = evaluation_of(problem, n_init=1, max_iter=(3, 10_000)[k % 2])
        found = collapsed(evaluation)
        assert found.value == approx(literal(problem, evaluation), abs=1e-9)
        assert found.details["gain"] >= -1e-10
        assert found.value >= evaluation.fit("vb").objective - 1e-9


def test_ascending_it_never_lowers_it_and_stays_below_the_evidence(rng):
    gains = []
    for _ in range(40):
        problem = random_problem(rng, max_completions=2**9)
        evaluation = evaluation_of(problem, n_init=2)
        plain, ascended = collapsed(evaluation), collapsed(evaluation, n_sweeps=4)
        assert ascended.details["trace"][0] == approx(plain.value, abs=1e-12)
        assert ascended.value == max(ascended.details["trace"])
        assert ascended.value <= exact(evaluation).value + 1e-9
        gains.append(ascended.value - plain.value)
    assert max(gains) > 0.1


def test_what_ascending_brings_where_rows_are_few():
    model = bipartite_network(("1", "12", "12", "2"))
    rows = drawn_rows(model, 20, np.random.default_rng(1), ("s1", "s2"))
    evaluation = evaluate(model, rows, ("s1", "s2"), tol=1e-8)
    trace = collapsed(evaluation, n_sweeps=4).details["trace"]
    assert np.all(np.diff(trace) > 0)
    assert trace[-1] - trace[0] > 2
    assert trace[2] - trace[0] > 0.8 * (trace[-1] - trace[0])


def test_nothing_hidden_is_exact():
    network = Network({"a": 3, "b": 2}, {"a": (), "b": ("a",)})
    model = FastNetwork(network, uniform_prior(network, 0.3)).model
    rows = Rows(("a", "b"), np.array([[0, 0], [2, 1], [1, 1], [2, 0]], dtype=np.int8))
    evaluation = evaluate(model, rows, (), n_init=1)
    for value in (collapsed(evaluation).value, collapsed(evaluation, n_sweeps=3).value):
        assert value == approx(exact(evaluation).value, abs=1e-13)


def test_options_are_checked():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)))
    with pytest.raises(ValueError, match=r"needs 'n_sweeps' to be an int >= 0. Got -1 instead"):
        collapsed(evaluation, n_sweeps=-1)


def test_time_and_tightness_on_the_network_of_beal_and_ghahramani():
    """Tighter than the plain bound by nats, for about a millisecond at 480 rows and a few at 5 120."""
    model = bipartite_network(("1", "12", "12", "2"))
    for n, limit in ((480, 0.02), (5120, 0.1)):
        rows = drawn_rows(model, n, np.random.default_rng(1), ("s1", "s2"))
        evaluation = evaluate(model, rows, ("s1", "s2"), tol=1e-8, n_init=2)
        times = []
        for _ in range(5):
            began = time.process_time()
            found = collapsed(evaluation)
            times.append(time.process_time() - began)
        assert min(times) < limit
        assert found.value - evaluation.fit("vb").objective > 2
        assert found.details["error_bound"] < 1e-9


# --- distributions of counts ------------------------------------------------------------------------------------------


def averages(p, weight, a, known):
    """(E ln rising, E ln(a + N), E ln(a + N + 1)) and the error bound, by the kernel, one count."""
    rising, log = np.empty(1), np.empty((2, 1))
    arrays = np.array([0, len(p)]), np.asarray(p, dtype=float), np.asarray(weight, dtype=float), np.array([0])
    error = expected_log_rising(*arrays, np.array([float(a)]), np.array([float(known)]), rising, log)
    return rising[0], *log[:, 0], error


def by_convolution(p, weight, a, known):
    mass = np.ones(1)
    for one, w in zip(p, weight):
        mass = np.convolve(mass, binom.pmf(np.arange(w + 1), w, one))
    k = np.arange(len(mass)) + known
    return mass @ (gammaln(a + k) - gammaln(a)), mass @ np.log(a + k), mass @ np.log(a + k + 1)


@pytest.mark.parametrize(
    ("n", "most"), [(0, 1), (1, 1), (1, 5), (1, 400), (2, 60), (7, 3), (60, 1), (60, 30), (300, 2), (40, 200)]
)
@pytest.mark.parametrize(("a", "known"), [(1e-3, 0), (0.7, 0), (1.0, 12), (40.0, 3)])
def test_averages_over_sums_of_binomials(n, most, a, known, rng):
    p, weight = rng.beta(0.3, 0.3, size=n).clip(1e-12, 1 - 1e-12), rng.integers(1, most + 1, size=n)
    *found, error = averages(p, weight, a, known)
    assert found == approx(by_convolution(p, weight, a, known), rel=1e-10, abs=1e-10)
    assert 0 <= error < 1e-12


@pytest.mark.parametrize("p", [1e-300, 1e-18, 1e-9, 0.5, 1 - 1e-9, 1 - 2**-53])
@pytest.mark.parametrize("weight", [1, 12, 13, 1000, 10**7])
def test_one_binomial_at_the_edges(p, weight):
    """Averages of ln are at the likeliest count where p is extreme, and near that of the mean where counts are many."""
    rising, log, after, error = averages([p], [weight], 2.0, 0.0)
    mean, variance = weight * p, weight * p * (1 - p)
    assert np.isfinite([rising, log, after, error]).all()
    if variance < 1e-3:
        assert log == approx(math.log(2.0 + round(mean)), abs=1e-3)
    elif mean > 100 and p == 0.5:
        assert log == approx(math.log(2.0 + mean) - 0.5 * variance / (2.0 + mean) ** 2, abs=1e-4)
    assert log < after <= math.log(2.0 + weight + 1) + 1e-12
    assert error < 1e-9


@pytest.mark.parametrize(("n", "p"), [(39_000, 0.45), (42_000, 0.45), (101_000, 0.9), (120_000, 0.1), (9000, 0.5)])
def test_windows_and_moments_meet(n, p):
    """On both sides of the variance from which moments are taken, to the rounding of one part in 1e15."""
    with mpmath.workdps(30):
        middle, reach, a = round(n * p), round(13 * math.sqrt(n * p * (1 - p))), mpmath.mpf("0.5")
        k = middle - reach
        mass = mpmath.binomial(n, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** (n - k)
        value, rising, log = mpmath.loggamma(a + k) - mpmath.loggamma(a), mpmath.mpf(0), mpmath.mpf(0)
        for k in range(middle - reach, min(middle + reach, n)):
            rising, log = rising + mass * value, log + mass * mpmath.log(a + k)
            value += mpmath.log(a + k)
            mass *= mpmath.mpf(n - k) / (k + 1) * mpmath.mpf(p) / (1 - mpmath.mpf(p))
    found = averages([p], [n], 0.5, 0)
    assert found[0] == approx(float(rising), rel=2e-15)
    assert found[1] == approx(float(log), abs=1e-13)
    assert found[3] < 1e-10


@pytest.mark.parametrize("weight", [2500, 10**9, 10**15])
def test_as_many_rows_as_there_may_be(weight, rng):
    """Of a million rows and more, in no time, and no further from the second order than the third is."""
    p = rng.beta(0.3, 0.3, size=400)
    began = time.process_time()
    rising, log, after, error = averages(p, np.full(400, weight), 1.0, 0)
    assert time.process_time() - began < 1
    mean, variance = float(weight * p.sum()), float(weight * (p * (1 - p)).sum())
    assert rising == approx(math.lgamma(1 + mean) + 0.5 * variance / (mean + 1), rel=1e-9)
    assert log == approx(math.log1p(mean) - 0.5 * variance / (1 + mean) ** 2, abs=1e-9)
    assert after >= log
    assert error < 1e-8


def test_many_targets_share_a_source():
    p, weight = np.array([0.2, 0.9, 0.5]), np.array([3.0, 1.0, 2.0])
    rising, log = np.empty(4), np.empty((2, 4))
    source = np.array([0, 0, 1, 1])
    a, known = np.array([1.0, 2.0, 1.0, 0.5]), np.array([0.0, 4.0, 0.0, 1.0])
    expected_log_rising(np.array([0, 2, 3]), p, weight, source, a, known, rising, log)
    for k, some in enumerate((slice(0, 2), slice(0, 2), slice(2, 3), slice(2, 3))):
        expected = by_convolution(p[some], weight[some].astype(int), a[k], known[k])
        assert [rising[k], *log[:, k]] == approx(expected, abs=1e-12)


def test_wide_tables_with_many_contexts():
    """Every count of a naive Bayes model: the sum of all cells' averages is that of a literal double loop."""
    model = naive_bayes(3, 4)
    rows = drawn_rows(model, 60, np.random.default_rng(0), ("c",))
    evaluation = evaluate(model, rows, ("c",), n_init=1, max_iter=5)
    natural = (model.prior + evaluation.fit("vb").statistics).expected_natural()
    marginals = capabilities_of(model).marginals.row_marginals(natural, evaluation.data)
    counts = model.expect(natural[:, None], evaluation.data).statistics[:, 0]
    weight = marginals.weight[marginals.context] * marginals.probability
    sums = np.array([weight[a:b].sum() for a, b in zip(marginals.starts[:-1], marginals.starts[1:])])
    assert sums[: len(counts)] == approx(counts, abs=1e-10)
    assert sums[len(counts) :] == approx(model.prior.row_sums(counts), abs=1e-10)
