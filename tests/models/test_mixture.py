"""Mixtures of every emission: the bound against the evidence by definition, and what must make no difference."""

from itertools import product

import numpy as np
import pytest
from emissions.members import PROBLEMS, n_rows, rows_of
from scipy.special import gammaln, logsumexp

from skvbem.emissions import COVARIANCE_TYPES
from skvbem.models.labels import seeding
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

approx = pytest.approx
#: Families whose rows with missing cells have statistics of their own: with one component the bound is the evidence.
PRODUCTS = [name for name in PROBLEMS if name not in {"full", "tied"}]
FORMS = {"vb": posteriors.VB, "map": posteriors.MAP, "ml": posteriors.ML}


def mixture(problem, weights):
    """A mixture over the rows of a problem, and the rows."""
    emission = problem.emission
    table = emission.prepare(problem.values)
    order = emission.row_order(table)
    values = problem.values if order is None else rows_of(problem.values, order)
    model = Mixture(emission, weights, emission.default_prior(weights.n_components))
    return model, emission.prepare(values), values


def seen(values):
    """Whether rows have an observed cell."""
    if isinstance(values, tuple):
        return np.any([seen(part) for part in values], axis=0)
    return (~np.isnan(values) if values.dtype.kind == "f" else values >= 0).any(axis=1)


def random_starts(model, data, rng, n_lanes):
    """Statistics of random responsibilities."""
    shares = rng.dirichlet(np.full(model.n_components, 0.5), size=(n_lanes, len(data)))
    return np.stack([model.statistics_of(each, data) for each in shares], axis=1)


def log_evidence_of_one(emission, values):
    """ln p(rows | one component): each row predicted from those before, an independent way to the closed form."""
    table = emission.prepare(values)
    posterior, total = emission.default_prior(1), 0.0
    for i in range(len(table)):
        row = table[i : i + 1]
        total += float(emission.log_predictive(row, posterior)[0, 0])
        posterior = posterior + emission.statistics(row, np.ones((1, 1)), posterior.expected_natural())
    return total


@pytest.mark.parametrize("name", PROBLEMS)
def test_one_component_is_the_closed_form(name, rng):
    """200 data sets of every family; with missing cells of every family whose rows keep conjugate statistics."""
    for k in range(200):
        problem = PROBLEMS[name](rng, n_rows=int(rng.integers(1, 9)), gaps=0.3 * (k % 2) * (name in PRODUCTS))
        model, table, values = mixture(problem, FiniteWeights(np.array([rng.uniform(0.1, 3.0)])))
        data = model.compile(table, observed=seen(values))
        start = random_starts(model, data, rng, 1)
        found = run(MixtureAscent(model, data, posteriors.VB), start, tol=0.0, max_iter=2)
        exact = log_evidence_of_one(problem.emission, values)
        assert found.objective[0] == approx(exact, rel=1e-9, abs=1e-9)


def exact_log_evidence(problem, values, weights):
    """By the sum over all assignments of rows to components."""
    emission, n = problem.emission, n_rows(values)
    alpha, terms = weights.concentration, []
    of_rows = {}
    for subset in product([False, True], repeat=n):
        chosen = np.flatnonzero(subset)
        of_rows[subset] = log_evidence_of_one(emission, rows_of(values, chosen)) if len(chosen) else 0.0
    for assignment in product(range(len(alpha)), repeat=n):
        counts = np.bincount(assignment, minlength=len(alpha))
        term = gammaln(alpha.sum()) - gammaln(alpha.sum() + n) + (gammaln(alpha + counts) - gammaln(alpha)).sum()
        terms.append(term + sum(of_rows[tuple(k == label for label in assignment)] for k in range(len(alpha))))
    return logsumexp(terms)


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "tied"])
def test_the_bound_is_one(name, rng):
    """By enumeration, rows with missing cells among them where the closed form holds for those."""
    gaps = []
    for k in range(8):
        problem = PROBLEMS[name](rng, n_rows=int(rng.integers(2, 6)), gaps=0.3 * (k % 2) * (name in PRODUCTS))
        model, table, values = mixture(problem, FiniteWeights(np.full(int(rng.integers(2, 4)), rng.uniform(0.3, 2.0))))
        whole = seen(values)
        data = model.compile(table, observed=whole)
        found = run(
            MixtureAscent(model, data, posteriors.VB), random_starts(model, data, rng, 4), tol=1e-9, max_iter=5000
        )
        exact = exact_log_evidence(problem, rows_of(values, whole), model.weights) if whole.any() else 0.0
        assert found.objective.max() <= exact + 1e-9 * abs(exact)
        gaps.append(exact - found.objective.max())
    assert min(gaps) < 5.0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_objective_never_falls(name, form, accelerate, rng):
    """The driver raises if it does; acceleration ends no lower than where it began."""
    for k in range(6):
        problem = PROBLEMS[name](rng, n_rows=int(rng.integers(5, 60)), gaps=0.3 * (k % 2))
        weights = FiniteWeights(np.full(3, 0.7)) if k % 3 else StickBreaking(3, 0.8)
        model, table, values = mixture(problem, weights)
        data = model.compile(table, rng.uniform(0.2, 2.0, len(table)), observed=seen(values))
        starts = random_starts(model, data, rng, 3)
        found = run(MixtureAscent(model, data, FORMS[form]), starts, tol=1e-7, max_iter=300, accelerate=accelerate)
        assert np.isfinite(found.objective).all()
        for trace in found.traces:
            assert np.diff(trace).min() >= -1e-9 * (abs(trace[-1]) + data.total_weight * 10)


def test_adding_an_empty_component_costs_what_the_weights_say(rng):
    """F(K + 1) - F(K) = ln [G((K+1)a) G(Ka + n) / (G(Ka) G((K+1)a + n))], whatever the emission."""
    for name in PROBLEMS:
        if name == "tied":
            continue  # one joint block of all components
        problem = PROBLEMS[name](rng, n_rows=20)
        for K, alpha in ((1, 1.0), (2, 0.5)):
            bounds = []
            for n_components in (K, K + 1):
                model, table, _ = mixture(problem, FiniteWeights(np.full(n_components, alpha)))
                data = model.compile(table)
                shares = np.zeros((20, n_components))
                shares[np.arange(20), np.arange(20) % K] = 1.0
                natural, penalty = posteriors.VB.of(model.prior, model.statistics_of(shares, data)[:, None])
                step = model.expect(natural, data)
                # the bound at these responsibilities, not at those of the next E step
                log_joint = model.log_joint(natural[:, 0], table)
                bounds.append(float((shares * log_joint).sum() + penalty[0]))
                assert np.isfinite(step.log_normalizer).all()
            (a, b), n = (K * alpha, (K + 1) * alpha), 20
            expected = gammaln(b) + gammaln(a + n) - gammaln(a) - gammaln(b + n)
            assert bounds[1] - bounds[0] == approx(expected, abs=1e-8)
    assert gammaln(2) + gammaln(21) - gammaln(1) - gammaln(22) == approx(-3.04452243772342)


@pytest.mark.parametrize("name", PROBLEMS)
def test_weights_are_repeats_and_threads_change_nothing(name, rng):
    problem = PROBLEMS[name](rng, n_rows=30, gaps=0.2)
    model, table, values = mixture(problem, FiniteWeights(np.ones(3)))
    repeats = rng.integers(1, 4, size=30)
    again = problem.emission.prepare(rows_of(values, np.repeat(np.arange(30), repeats)))
    one = model.compile(table, repeats.astype(float), observed=seen(values))
    other = model.compile(again, observed=np.repeat(seen(values), repeats))
    natural = posteriors.VB.of(model.prior, random_starts(model, one, rng, 2))[0]
    a, b = model.expect(natural, one), model.expect(natural, other)
    assert a.statistics == approx(b.statistics, rel=1e-9, abs=1e-9)
    assert a.log_normalizer == approx(b.log_normalizer, rel=1e-12)
    assert one.total_weight == other.total_weight


def test_threads_change_no_bit(rng, monkeypatch):
    monkeypatch.setattr("skvbem.models.mixture.model._WORTH_THREADS", 0)
    problem = PROBLEMS["full"](rng, n_rows=5000)
    model, table, _ = mixture(problem, FiniteWeights(np.ones(4)))
    data = model.compile(table)
    natural = posteriors.VB.of(model.prior, random_starts(model, data, rng, 2))[0]
    one, two = (model.expect(natural, data, n_threads) for n_threads in (1, 2))
    assert one.log_normalizer.tolist() == two.log_normalizer.tolist()
    assert one.statistics.tolist() == two.statistics.tolist()


def test_the_e_step_is_that_of_the_definition(rng):
    """q of every row, its entropy and expected log joint."""
    for name in PROBLEMS:
        problem = PROBLEMS[name](rng, n_rows=15, gaps=0.2)
        model, table, values = mixture(problem, FiniteWeights(rng.uniform(0.5, 2.0, 3)))
        weight = rng.uniform(0.1, 3.0, 15)
        data = model.compile(table, weight, observed=seen(values))
        natural = posteriors.VB.of(model.prior, random_starts(model, data, rng, 1))[0]
        found = model.expect(natural, data)
        log_joint = model.log_joint(natural[:, 0], table)
        log_z = logsumexp(log_joint, axis=1)
        q = np.exp(log_joint - log_z[:, None])
        counted = weight * seen(values)
        assert found.log_normalizer[0] == approx(counted @ log_z, rel=1e-12)
        assert found.statistics[:3, 0] == approx(counted @ q, rel=1e-11, abs=1e-12)
        of_emission = problem.emission.statistics(table, q * counted[:, None], natural[3:, 0])
        assert found.statistics[3:, 0] == approx(of_emission, rel=1e-9, abs=1e-9)


def test_rows_that_no_component_can_make(rng):
    """Of a point of ML, say: ln Z is -inf, and nothing turns to NaN."""
    problem = PROBLEMS["bernoulli"](rng, n_rows=4)
    model, table, _ = mixture(problem, FiniteWeights(np.ones(2)))
    natural = np.full((model.n_cells, 1), -np.inf)
    found = model.expect(natural, model.compile(table))
    assert found.log_normalizer[0] == -np.inf
    assert not np.isnan(found.statistics).any()


def test_sticks(rng):
    """Weights by definition, statistics by counting, and the bound of the weights alone."""
    weights = StickBreaking(4, 1.7)
    sticks = rng.uniform(0.1, 0.9, 3)
    natural = np.log(np.stack([sticks, 1 - sticks], axis=1).ravel())
    expected = [sticks[0], (1 - sticks[0]) * sticks[1], (1 - sticks[:2]).prod() * sticks[2], (1 - sticks).prod()]
    assert np.exp(weights.log_weights(natural[:, None])[:, 0]) == approx(expected)
    counts = np.array([3.0, 1.0, 0.5, 2.0])
    assert weights.statistics(counts).tolist() == [3.0, 3.5, 1.0, 2.5, 0.5, 2.0]
    assert weights.counts(weights.statistics(counts)).tolist() == counts.tolist()
    posterior = weights.prior + weights.statistics(counts)
    assert weights.mean(posterior).sum() == approx(1.0)
    draws = np.array([posterior.sample(rng) for _ in range(20000)])
    drawn = np.exp(weights.log_weights(np.log(draws.T))).mean(axis=1)
    assert drawn == approx(weights.mean(posterior), abs=0.01)
    assert StickBreaking(1, 2.0).mean(StickBreaking(1, 2.0).prior).tolist() == [1.0]


def test_relabeling_changes_nothing_but_the_order(rng):
    for name in PROBLEMS:
        problem = PROBLEMS[name](rng, n_rows=12)
        model, table, _ = mixture(problem, FiniteWeights(np.ones(3)))
        data = model.compile(table)
        start, order = random_starts(model, data, rng, 1), np.array([2, 0, 1])
        swapped = model.relabeled(start, order)
        one, other = (posteriors.VB.of(model.prior, each) for each in (start, swapped))
        assert one[1] == approx(other[1], rel=1e-12)
        assert model.expect(one[0], data).log_normalizer == approx(model.expect(other[0], data).log_normalizer)
        assert model.relabeled(swapped, np.argsort(order)).tolist() == start.tolist()


def test_every_shape_of_covariance_is_there():
    assert set(COVARIANCE_TYPES) < set(PROBLEMS)


def test_spread_seeds_are_drawn_in_proportion_to_squared_distances(monkeypatch):
    """And to weights: after a heavy row at 0, rows at 1 and at 3 are one and nine times as probable."""
    monkeypatch.setattr(seeding, "_N_MOVES", 0)
    coordinates, weight = np.array([[0.0], [1.0], [3.0]]), np.array([1e6, 1.0, 1.0])
    for spread, share in ((True, 0.9), (False, 0.0)):
        seeds = [seeding._seeds(coordinates, weight, 2, spread, np.random.default_rng(k)) for k in range(400)]
        assert np.mean([place[1, 0] == 3.0 for place in seeds]) == approx(share, abs=0.06)
