"""BIC, BICp and Draper's score against their definitions, and what they converge to."""

import math

import numpy as np
import pytest
from bridge import FastNetwork
from evidence.evaluations import bipartite_network, drawn_rows, evaluate, evaluation_of
from reference import facts, scores
from reference.discrete_network import Data, Network, Problem, logs, uniform_prior
from reference.random_networks import random_problem

from skvbem.evidence.asymptotic import bic, bicp, draper
from skvbem.evidence.exact import exact

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))


def test_known_values():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)), n_init=10)
    found = bic(evaluation)
    assert found.value == approx(facts.ML_BIC, abs=1e-8)
    assert found.details["log_likelihood"] == approx(facts.ML_LOG_LIKELIHOOD, abs=1e-8)
    assert (found.form, found.is_lower_bound, found.n_free_parameters, found.n_samples) == ("ml", False, 7, 20.0)
    assert draper(evaluation).details["log_likelihood"] == approx(facts.MAP_LOG_LIKELIHOOD, abs=1e-7)


@pytest.mark.parametrize("form", ["ml", "map", "vb"])
def test_definitions(form, rng):
    for _ in range(25):
        problem = random_problem(rng, max_completions=2**10)
        network, data, prior = problem
        if sum(w for _, w in data.rows()) == 0:
            continue
        evaluation = evaluation_of(problem, n_init=1, max_iter=20)
        log_tables = logs(FastNetwork(network, prior).tables(evaluation.point(form)))
        assert bic(evaluation, form=form).value == approx(scores.bic(network, log_tables, data), abs=1e-8)
        assert draper(evaluation, form=form).value == approx(scores.draper(network, log_tables, data), abs=1e-8)
        if form != "ml":
            expected = scores.bic(network, log_tables, data) + scores.log_prior(log_tables, prior, "probability")
            assert bicp(evaluation, form=form).value == approx(expected, abs=1e-8)


def test_under_a_uniform_prior_bicp_adds_ln_gamma_of_the_states_of_each_row():
    model = bipartite_network(("1", "12", "12", "2"))
    evaluation = evaluate(model, drawn_rows(model, 50, np.random.default_rng(0), ("s1", "s2")), ("s1", "s2"), n_init=1)
    for form in ("ml", "map"):
        difference = bicp(evaluation, form=form).value - bic(evaluation, form=form).value
        assert difference == approx(12 * math.log(24), abs=1e-10)


def test_the_identifiable_dimension_enters_where_asked_for():
    model = bipartite_network(("1", "1", "12", "12"))
    evaluation = evaluate(model, drawn_rows(model, 50, np.random.default_rng(0), ("s1", "s2")), ("s1", "s2"), n_init=1)
    plain, other = bic(evaluation), bic(evaluation, dimension="identifiable")
    assert (plain.n_free_parameters, other.n_free_parameters) == (50, 47)
    assert other.value - plain.value == approx(1.5 * math.log(50), abs=1e-9)
    assert draper(evaluation, dimension="identifiable").value - draper(evaluation).value == approx(
        1.5 * (math.log(50) - math.log(2 * math.pi)), abs=1e-9
    )


def test_a_prior_density_that_is_zero_at_the_point_is_an_error_not_minus_infinity():
    network = Network({"y": 3}, {"y": ()})
    data = Data(("y",), np.array([[0], [0], [1]]))
    with pytest.raises(ValueError, match=r"'bicp' does not exist at this ML fit.*is 0. Take form='map'"):
        bicp(evaluation_of(Problem(network, data, uniform_prior(network, 2.0)), n_init=1), form="ml")
    with pytest.raises(ValueError, match=r"is inf. Take form='map'"):
        bicp(evaluation_of(Problem(network, data, uniform_prior(network, 0.5)), n_init=1), form="ml")


def test_the_limit_of_bic_on_one_multinomial():
    """ln p(y) - BIC goes to Laplace's constant with an error of O(1/n)."""
    network = Network({"y": 3}, {"y": ()})
    theta, a = np.array([0.2, 0.3, 0.5]), 1.7
    constant = math.log(2 * math.pi) + (a - 0.5) * np.log(theta).sum() - (3 * math.lgamma(a) - math.lgamma(3 * a))
    errors = []
    for n in (100, 1000, 10_000):
        data = Data(("y",), np.array([[0], [1], [2]]), np.round(n * theta).astype(int))
        evaluation = evaluation_of(Problem(network, data, uniform_prior(network, a)), n_init=1)
        errors.append(exact(evaluation).value - bic(evaluation).value - constant)
    assert abs(errors[-1]) < 1e-3
    assert errors[1] == approx(errors[0] / 10, rel=0.1)
    assert errors[2] == approx(errors[1] / 10, rel=0.1)
