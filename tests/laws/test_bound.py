"""The bound: never above the evidence, equal to it where nothing is hidden, never falling, and what it says it is."""

import numpy as np
import pytest
from bridge import FastNetwork, fitted, published
from laws.problems import enumerable, larger, nothing_is_hidden
from reference import discrete_network as literal
from reference.scores import log_prior

from skvbem.vbem.driver import RELATIVE_SLACK, run

approx = pytest.approx
OBJECTIVES = {
    "vb": "lower_bound_",
    "map": "log_posterior_",
    "map_probability": "log_posterior_",
    "ml": "log_likelihood_",
}


def params_of(form):
    """What makes an estimator fit by a form of q(theta)."""
    if form == "map_probability":
        return {"method": "map", "map_basis": "probability"}
    return {"method": form}


def check_bound(problem, n_init):
    model = fitted(problem, init="random", n_init=n_init, tol=1e-6, random_state=0)
    network, data, _ = problem
    evidence = literal.exact_log_evidence(*problem)
    slack = RELATIVE_SLACK * (abs(evidence) + model.n_samples_ * len(network.cards))
    if nothing_is_hidden(network, data):
        assert model.lower_bound_ == approx(evidence, rel=1e-9, abs=1e-12)
    assert model.lower_bound_ <= evidence + slack
    assert np.all(model.restarts_.bounds <= evidence + slack)
    assert np.diff(model.lower_bounds_).min(initial=0.0) >= -slack
    assert model.lower_bounds_[-1] == model.lower_bound_ == model.restarts_.bounds.max()


@pytest.mark.parametrize("number", range(100))
def test_random_networks(number):
    check_bound(enumerable(number, hidden=number % 4 > 0), n_init=3)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1000, 1500))
def test_more_random_networks(number):
    check_bound(enumerable(number, 2**16, hidden=number % 4 > 0, max_nodes=8, max_hidden=3), n_init=10)


@pytest.mark.parametrize("number", range(60))
def test_nothing_hidden_is_exact(number):
    """Complete rows, missing leaves, childless latents: F is the Bayesian Dirichlet score, after one step."""
    problem = enumerable(number, max_hidden=0, missing_rate=0.0)
    assert nothing_is_hidden(problem.network, problem.data)
    model = fitted(problem, random_state=0)
    only_completion = literal.every_completion(problem.network, problem.data)
    counts = literal.expected_counts(problem.network, only_completion)
    evidence = float(literal.precise_log_bd(counts, problem.prior))
    assert model.lower_bound_ == approx(evidence, rel=1e-12, abs=1e-12)
    assert np.ptp(model.lower_bounds_) <= 1e-12 * abs(evidence)
    assert np.ptp(model.restarts_.bounds) == 0


@pytest.mark.parametrize("number", range(40))
def test_the_objective_is_what_it_is_by_definition(any_form, number):
    """Recomputed from the published tables alone, by sums over completions."""
    problem = enumerable(number, least=any_form == "map_probability", hidden=True)
    network, data, prior = problem
    model = fitted(problem, n_init=2, random_state=number, **params_of(any_form))
    objective = getattr(model, OBJECTIVES[any_form])
    if any_form == "vb":
        concentrations = published(network, model.posterior_)
        counts = literal.each(np.subtract, concentrations, prior)
        expected = literal.objective_after_e(literal.vb, network, data, prior, counts)
        mean = literal.mean_tables(prior, counts)
        tables = published(network, model.tables_)
        assert all(tables[node] == approx(mean[node], rel=1e-12) for node in network.cards)
    else:
        log_tables = literal.logs(published(network, model.tables_))
        expected = literal.log_likelihood(network, log_tables, data)
        if any_form == "map":
            expected += log_prior(log_tables, prior, "softmax")
        if any_form == "map_probability":
            counts = published(network, model.counts_)
            log_theta, penalty = literal.map_probability(prior, counts)
            assert all(np.exp(log_tables[node]) == approx(np.exp(log_theta[node]), rel=1e-9) for node in network.cards)
            expected += penalty
    assert objective == approx(expected, rel=1e-8, abs=1e-10)
    for other in set(OBJECTIVES.values()) - {OBJECTIVES[any_form]}:
        assert not hasattr(model, other)
    assert hasattr(model, "posterior_") == (any_form == "vb")


def test_acceleration_finds_the_same_optima_in_fewer_steps(any_form):
    """From the same start: the same objective or, seldom, another stationary point."""
    elsewhere, steps = 0, np.zeros(2)
    for number in range(20):
        network, data, prior = larger(number, least=any_form == "map_probability")
        fast = FastNetwork(network, prior)
        ascent = fast.ascent(data, any_form)
        start = fast.random_starts(ascent, np.random.default_rng(number))
        plain, leaping = (run(ascent, start, tol=1e-7, max_iter=100_000, accelerate=a) for a in (False, True))
        assert plain.converged[0]
        assert leaping.converged[0]
        steps += plain.n_iter[0], leaping.n_iter[0]
        if leaping.objective[0] < plain.objective[0] - 1e-5:
            elsewhere += 1
            onward = run(ascent, leaping.statistics, tol=1e-9, max_iter=100_000, accelerate=False)
            assert onward.objective[0] == approx(leaping.objective[0], abs=1e-4)
    assert elsewhere <= 2
    assert steps[1] < 0.5 * steps[0]
