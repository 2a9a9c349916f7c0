"""Laplace's approximation against finite differences in fifty digits and against Louis' identity written out."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from bridge import FastNetwork
from evidence.evaluations import drawn_rows, evaluate, evaluation_of, naive_bayes
from reference import facts, scores
from reference.discrete_network import Data, Network, Problem, latent_posterior, logs, uniform_prior
from reference.random_networks import random_problem
from scipy.special import betaln

from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.laplace import laplace

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))


def observed_information(problem, model, point):
    """Minus the Hessian of the log posterior in softmax coordinates, and the node of each; completion by completion."""
    network, data, prior = problem
    fast, starts = FastNetwork(network, prior), model.prior.row_starts
    free = np.delete(np.arange(len(point)), starts[1:] - 1)
    total, mass = np.zeros((len(free), len(free))), model.prior.row_sums(model.prior.concentration)
    q = latent_posterior(network, logs(fast.tables(point)), data, prune=True)
    for weight, choices in q:
        mean, second = np.zeros(len(free)), np.zeros_like(total)
        for completion, p in choices:
            indicator = network.full(0.0)
            for node in completion:
                indicator[node][network.cell(node, completion)] = 1.0
            flat = fast.flat(indicator)
            rows = model.prior.row_sums(flat)
            score = (flat - point * model.prior.per_cell(rows))[free]
            mean, second, mass = mean + p * score, second + p * np.outer(score, score), mass + weight * p * rows
        total -= weight * (second - np.outer(mean, mean))
    for a, i in enumerate(free):
        for b, j in enumerate(free):
            row = np.searchsorted(starts, i, side="right") - 1
            if row == np.searchsorted(starts, j, side="right") - 1:
                total[a, b] += mass[row] * (point[i] * (i == j) - point[i] * point[j])
    return total, np.searchsorted(model.layout.first_cell, free, side="right")


def expected_value(problem, evaluation, variant):
    model, point = evaluation.model, evaluation.point("map")
    information, node = observed_information(problem, model, point)
    if variant == "diagonal":
        information = np.diag(np.diag(information))
    if variant == "block":
        information = information * (node[:, None] == node)
    sign, log_det = np.linalg.slogdet(information)
    assert sign == 1 or len(information) == 0
    at_mode = evaluation.log_likelihood(point) + float(model.prior.log_density(point))
    return at_mode + 0.5 * len(information) * math.log(2 * math.pi) - 0.5 * log_det


def test_known_value():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)))
    found = laplace(evaluation)
    assert found.value == approx(facts.MAP_LAPLACE, abs=1e-7)
    assert found.details["log_likelihood"] == approx(facts.MAP_LOG_LIKELIHOOD, abs=1e-7)
    assert (found.form, found.is_lower_bound, found.n_free_parameters) == ("map", False, 7)
    assert laplace(evaluation, alias=True).value == approx(facts.MAP_LAPLACE + math.log(2), abs=1e-7)


def test_against_finite_differences(rng):
    """Missing cells, weights, hidden nodes anywhere; tables with up to nine parameters."""
    tried = 0
    while tried < 12:
        problem = random_problem(rng, max_completions=2**6, max_nodes=4, max_rows=8)
        if not 0 < problem.network.n_free_parameters <= 9 or sum(w for _, w in problem.data.rows()) == 0:
            continue
        evaluation = evaluation_of(problem)
        log_theta = logs(FastNetwork(problem.network, problem.prior).tables(evaluation.point("map")))
        expected = scores.laplace(problem.network, log_theta, problem.data, problem.prior, digits=40)
        assert not math.isnan(expected)
        assert laplace(evaluation).value == approx(expected, abs=1e-8)
        tried += 1


def test_in_probabilities_against_finite_differences():
    """Mode, density and Hessian of one basis; a prior above 1 keeps the mode inside."""
    network = facts.latent_class(2, (2, 3))
    data = Data(("y0", "y1"), np.array([[0, 0], [1, 1], [1, 2], [0, 0], [1, 2], [0, 1], [1, 2]]))
    prior = uniform_prior(network, 1.3)
    evaluation = evaluation_of(Problem(network, data, prior), method="map_probability")
    point = evaluation.point("map_probability")
    assert point.min() > 0.01
    log_theta = logs(FastNetwork(network, prior).tables(point))
    expected = scores.laplace(network, log_theta, data, prior, digits=40, basis="probability")
    found = laplace(evaluation, form="map_probability")
    assert found.value == approx(expected, abs=1e-8)
    assert found.form == "map_probability"
    d, parts = found.n_free_parameters, found.details
    parts = parts["log_likelihood"] + parts["log_prior"] - 0.5 * parts["log_det"]
    assert found.value == approx(parts + 0.5 * d * math.log(2 * math.pi), abs=1e-10)


def test_in_probabilities_of_complete_data_near_the_edge():
    """Beta(1.01, 11.01): the Gaussian in probabilities is a quarter of the truth, that in the softmax basis 0.92."""
    network = Network({"y": 2}, {"y": ()})
    data = Data(("y",), np.ones((10, 1), dtype=int))
    evaluation = evaluation_of(Problem(network, data, uniform_prior(network, 1.01)), n_init=1)
    exact = betaln(1.01, 11.01) - betaln(1.01, 1.01)
    assert laplace(evaluation).value - exact == approx(math.log(0.916), abs=0.01)
    assert laplace(evaluation, form="map_probability").value - exact == approx(math.log(0.25), abs=0.05)


def test_a_mode_at_the_edge_is_refused():
    network = Network({"y": 2}, {"y": ()})
    data = Data(("y",), np.ones((10, 1), dtype=int))
    evaluation = evaluation_of(Problem(network, data, uniform_prior(network)), n_init=1)
    with pytest.raises(ValueError, match=r"at the edge, with 1 probabilities of 0. Fit with map_basis='natural'"):
        laplace(evaluation, form="map_probability")
    with pytest.raises(ValueError, match=r"form='map' or 'map_probability', a mode. Got 'ml'"):
        laplace(evaluation, form="ml")


@pytest.mark.parametrize("variant", ["full", "block", "diagonal"])
def test_against_louis_written_out(variant, rng):
    for _ in range(25):
        problem = random_problem(rng, max_completions=2**10)
        evaluation = evaluation_of(problem, n_init=2)
        assert laplace(evaluation, variant=variant).value == approx(
            expected_value(problem, evaluation, variant), abs=1e-8
        )


def test_wide_components_go_through_several_cliques(rng):
    """A chain of hidden nodes has a clique for each pair of neighbors; the joint posterior is made up from them."""
    hidden = [f"h{i}" for i in range(5)]
    parents = {h: (hidden[i - 1],) if i else () for i, h in enumerate(hidden)} | {
        f"y{i}": (h,) for i, h in enumerate(hidden)
    }
    network = Network({**dict.fromkeys(hidden, 2), **{f"y{i}": 2 + i % 2 for i in range(5)}}, parents)
    cells = np.array([[rng.integers(2 + i % 2) for i in range(5)] for _ in range(9)])
    problem = Problem(network, Data(tuple(f"y{i}" for i in range(5)), cells), uniform_prior(network, 1.3))
    evaluation = evaluation_of(problem)
    assert len(evaluation.data.plans[0].tree.cliques) > 1
    assert laplace(evaluation).value == approx(expected_value(problem, evaluation, "full"), abs=1e-8)
    with pytest.raises(TooLargeError, match=r"all 32 joint states of h0, h1, h2, h3, h4 in a row of data"):
        laplace(evaluation, max_states=31)
    assert np.isfinite(laplace(evaluation, variant="block", max_states=31).value)


def test_complete_data_have_a_closed_form():
    """A product over table rows, whichever the variant that keeps these together."""
    network = Network({"a": 3, "b": 2}, {"a": (), "b": ("a",)})
    data = Data(("a", "b"), np.array([[0, 0], [1, 1], [2, 1], [2, 0], [0, 1], [0, 0]]))
    evaluation = evaluation_of(Problem(network, data, uniform_prior(network, 2.0)), n_init=1)
    prior, statistics = evaluation.model.prior, evaluation.fit("map").statistics
    a = prior.concentration + statistics
    theta = a / prior.per_cell(prior.row_sums(a))
    value = float(a @ np.log(theta) - prior.log_normalizer()) + 0.5 * 5 * math.log(2 * math.pi)
    value -= 0.5 * (np.log(theta).sum() + (np.diff(prior.row_starts) - 1) @ np.log(prior.row_sums(a)))
    assert laplace(evaluation).value == approx(value, abs=1e-11)
    assert laplace(evaluation, variant="block").value == approx(value, abs=1e-11)


def test_one_state_nodes_have_no_coordinates():
    network = Network({"c": 1, "y0": 2, "y1": 1}, {"c": (), "y0": ("c",), "y1": ("c",)})
    data = Data(("y0", "y1"), np.array([[0, 0], [1, 0], [1, 0]]))
    found = laplace(evaluation_of(Problem(network, data, uniform_prior(network)), n_init=1))
    assert found.n_free_parameters == 1
    expected = 2 * math.log(2 / 5) + 3 * math.log(3 / 5) - math.lgamma(1) * 2 + math.lgamma(2)
    assert found.value == approx(expected + 0.5 * math.log(2 * math.pi) - 0.5 * math.log(5 * 0.4 * 0.6), abs=1e-12)


def saddle(rows, weight=None):
    """An evaluation whose MAP fit is stuck where both classes are the same."""
    model = naive_bayes(2, rows.shape[1])
    data = Rows(tuple(f"y{i}" for i in range(rows.shape[1])), rows.astype(np.int8), weight)
    program = model.compile(data)
    flat = model.expect(np.log(np.full((len(model.prior.concentration), 1), 0.5)), program).statistics
    return evaluate(model, data, ("c",), method="map", starts=flat)


def test_an_indefinite_hessian_is_flagged_and_a_smaller_variant_taken():
    evaluation = saddle(facts.TWENTY_ROWS.cells, facts.TWENTY_ROWS.weights.astype(float))
    found = laplace(evaluation)
    assert "laplace: the Hessian at the MAP fit is not negative definite" in found.doubts[0]
    assert found.details["variant"] in ("block", "diagonal")
    assert "full: 1 of 7 eigenvalues are not positive" in found.details["reason"]
    assert np.isfinite(laplace(evaluation, variant="diagonal").value)


def test_a_point_that_is_no_maximum_in_any_direction_is_an_error():
    """Both classes say 1 with probability 0.99, and all rows say 0: far from any fit."""
    evaluation = saddle(np.array([[0]]), np.array([500.0]))
    far = replace(evaluation.fit("map"), statistics=np.array([500.0, 500.0, 10.0, 990.0, 10.0, 990.0]))
    evaluation = Evaluation(
        evaluation.model, evaluation.capabilities, evaluation.data, None, far, "map", 500.0, ("c",), [0]
    )
    with pytest.raises(
        ValueError, match=r"does not exist at this MAP fit.*full: .*; block: .*; diagonal: 2 entries are not"
    ):
        laplace(evaluation)


def test_variants_are_checked():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)))
    with pytest.raises(ValueError, match=r"must be 'full', 'block' or 'diagonal'. Got 'sparse'"):
        laplace(evaluation, variant="sparse")


def test_the_largest_model_of_chickering_and_heckerman():
    """64 binary features, 32 classes, 400 rows, d = 2 079: they report 2 800 to 6 700 s; see tests/benchmarks."""
    model = naive_bayes(32, 64)
    rows = drawn_rows(model, 400, np.random.default_rng(3), ("c",))
    evaluation = evaluate(model, rows, ("c",), method="map", n_init=2, tol=1e-6)
    began = time.process_time()
    full, block = laplace(evaluation), laplace(evaluation, variant="block")
    assert time.process_time() - began < 60
    assert full.n_free_parameters == 2079
    assert full.details["variant"] == "full"
    assert abs(full.value - block.value) < 50
