"""Exact evidence against exact fractions and against enumeration one by one."""

import math
import time

import numpy as np
import pytest
from evidence.evaluations import evaluate, evaluation_of, naive_bayes
from reference import facts
from reference.discrete_network import (
    Data,
    Network,
    Problem,
    bdeu_prior,
    exact_evidence,
    exact_log_evidence,
    log_bd,
    uniform_prior,
)
from reference.random_networks import random_network, random_problem, random_tables, sample

from skvbem import VBDiscreteDAG
from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.evidence.exact import exact

approx = pytest.approx


def exact_of(network, data, prior, **options):
    return exact(evaluation_of(Problem(network, data, prior), n_init=1, tol=1.0), **options)


@pytest.mark.parametrize("fact", facts.EVIDENCES, ids=lambda fact: fact.name)
def test_known_evidences(fact):
    assert exact_of(fact.network, fact.data, fact.prior).value == approx(fact.log_value, abs=1e-12)


@pytest.mark.parametrize("fact", facts.LIZARD_SCORES, ids=lambda fact: fact.name)
def test_complete_data_scores_of_bnlearn(fact):
    for prior, value in fact.evidences:
        assert exact_of(fact.network, facts.LIZARDS, prior).value == approx(value, abs=1e-9)


def test_random_problems(rng):
    for _ in range(100):
        problem = random_problem(rng, max_completions=2**9)
        assert exact_of(*problem).value == approx(exact_log_evidence(*problem), abs=1e-10)


def test_one_row_under_symmetric_priors(rng):
    """Each cell observed has probability one over its number of states, whatever is hidden."""
    for _ in range(20):
        n_hidden = int(rng.integers(0, 3))
        network, columns = random_network(rng, n_hidden + int(rng.integers(1, 4)), 3, n_hidden)
        row = [int(rng.integers(network.cards[c])) for c in columns]
        value = exact_of(network, Data(columns, np.array([row])), uniform_prior(network, 0.7)).value
        assert value == approx(-math.log(math.prod(network.cards[c] for c in columns)), abs=1e-12)


def test_a_childless_latent_has_no_say():
    network = Network({"z": 2, "y0": 2, "c": 3, "y1": 2}, {"c": (), "y0": ("c",), "y1": ("c",), "z": ("y0",)})
    without = facts.latent_class(3, (2, 2))
    values = [exact_of(m, facts.SIX_ROWS, uniform_prior(m)).value for m in (network, without)]
    assert values[0] == approx(values[1], abs=1e-13)


def test_missing_cells_are_summed_out_and_a_wholly_missing_row_changes_nothing():
    network = facts.latent_class(2, (2, 3))
    rows = np.array([[0, 2], [1, 0], [1, 1]])
    prior = uniform_prior(network, 0.5)
    one_missing = [exact_of(network, Data(("y0", "y1"), np.vstack([rows, [1, k]])), prior).value for k in range(3)]
    summed = exact_of(network, Data(("y0", "y1"), np.vstack([rows, [1, -1]])), prior).value
    assert summed == approx(np.logaddexp.reduce(one_missing), abs=1e-12)
    values = [exact_of(network, Data(("y0", "y1"), r), prior).value for r in (rows, np.vstack([rows, [-1, -1]]))]
    assert values[0] == approx(values[1], abs=1e-13)


def test_equivalent_complete_networks_score_alike_under_bdeu_and_not_under_ones():
    forward, backward = (
        Network({"a": 3, "b": 2}, parents) for parents in ({"a": (), "b": ("a",)}, {"b": (), "a": ("b",)})
    )
    data = Data(("a", "b"), np.array([[0, 0], [1, 0], [2, 1], [2, 1], [0, 1]]))
    bdeu = [exact_of(network, data, bdeu_prior(network, 4.0)).value for network in (forward, backward)]
    ones = [exact_of(network, data, uniform_prior(network)).value for network in (forward, backward)]
    assert bdeu[0] == approx(bdeu[1], abs=1e-12)
    assert abs(ones[0] - ones[1]) > 0.01


def test_complete_data_one_by_one_in_any_order(rng):
    """ln BD is the sum of log predictive probabilities of rows, each given those before [CH]."""
    network = Network({"a": 2, "b": 3, "c": 2}, {"a": (), "b": ("a",), "c": ("a", "b")})
    rows = sample(rng, network, random_tables(rng, network), 8)
    cells = np.array([[row[node] for node in "abc"] for row in rows])
    prior = uniform_prior(network, 0.4)
    total = exact_of(network, Data(tuple("abc"), cells), prior).value
    for order in (np.arange(8), rng.permutation(8)):
        seen, logs = network.full(0.0), 0.0
        for row in (rows[k] for k in order):
            before = log_bd(seen, prior)
            for node in network.cards:
                seen[node][network.cell(node, row)] += 1
            logs += log_bd(seen, prior) - before
        assert logs == approx(total, abs=1e-12)


def test_the_candidate_identity_is_the_same_at_every_point(rng):
    """p(y) = p(y | theta) p(theta) / p(theta | y) with the posterior density a mixture over completions [Chib 1995]."""
    from bridge import FastNetwork
    from reference.discrete_network import every_completion, joint_completions, log_likelihood, logs
    from reference.scores import log_prior
    from scipy.special import logsumexp

    network, data = facts.latent_class(2, (2, 2)), Data(("y0", "y1"), np.array([[0, 0], [0, 1], [1, 1], [0, 0]]))
    prior = uniform_prior(network, 0.8)
    value = exact_of(network, data, prior).value
    family = FastNetwork(network, prior)
    completed = [counts for counts, _ in joint_completions(network, every_completion(network, data))]
    for _ in range(5):
        log_theta = logs(random_tables(rng, network))
        point = np.exp(family.flat(log_theta))
        densities = [
            log_bd(counts, prior) - value + (family.model.prior + family.flat(counts)).log_density(point, "probability")
            for counts in completed
        ]
        log_numerator = log_likelihood(network, log_theta, data) + log_prior(log_theta, prior, "probability")
        assert log_numerator - logsumexp(densities) == approx(value, abs=1e-10)


def test_parts_without_common_parameters_are_summed_apart():
    """Two latent class models side by side: the sum, not the product, of their terms."""
    network = Network(
        {"c": 2, "y0": 2, "y1": 2, "d": 2, "y2": 2, "y3": 2},
        {"c": (), "y0": ("c",), "y1": ("c",), "d": (), "y2": ("d",), "y3": ("d",)},
    )
    half = facts.latent_class(2, (2, 2))
    cells = np.array([[0, 0], [0, 1], [1, 1], [1, 0], [0, 0], [1, 1]])
    both = exact_of(network, Data(("y0", "y1", "y2", "y3"), np.hstack([cells, cells])), uniform_prior(network))
    one = exact_of(half, Data(("y0", "y1"), cells), uniform_prior(half))
    assert both.value == approx(2 * one.value, abs=1e-12)
    assert both.details["n_terms"] == 2 * one.details["n_terms"] == 2 * 36


def test_a_million_terms_take_a_second():
    model = naive_bayes(2, 5)
    codes = np.array([[int(bit) for bit in f"{k:05b}"] for k in range(20)], dtype=np.int8)
    evaluation = evaluate(model, Rows(tuple(f"y{i}" for i in range(5)), codes), ("c",), n_init=1, tol=1.0)
    began = time.process_time()
    found = exact(evaluation)
    assert found.details["n_terms"] == 2**20
    assert time.process_time() - began < 5
    with pytest.raises(TooLargeError, match=r"1.049e\+06 ways to complete the 20 rows; 'max_terms' allows 1000000"):
        exact(evaluation, max_terms=10**6)


def test_too_many_terms_are_refused_with_their_number_before_anything_is_listed():
    network = facts.latent_class(2, (2, 2, 2))
    data = Data(("y0", "y1", "y2"), np.array([[0, 0, 0], [1, 1, 1]]), np.array([10**9, 10**9]))
    with pytest.raises(TooLargeError, match=r"1.00e\+18 ways"):
        exact_of(network, data, uniform_prior(network))
    chain = {f"h{i}": 4 for i in range(40)} | {"y": 2}
    parents = {f"h{i}": (f"h{i - 1}",) if i else () for i in range(40)} | {"y": ("h39",)}
    network = Network(chain, parents)
    with pytest.raises(TooLargeError, match=r"at least 1.21e\+24 ways to complete the 1 rows"):
        exact_of(network, Data(("y",), np.array([[0]])), uniform_prior(network))


@pytest.mark.parametrize("concentration", [1e-6, 1e-3, 1e3, 1e9])
def test_extreme_priors(concentration):
    network = facts.latent_class(2, (2, 2))
    prior = uniform_prior(network, concentration)
    value = exact_evidence(network, facts.SIX_ROWS, prior)
    assert exact_of(network, facts.SIX_ROWS, prior).value == approx(
        math.log(value.numerator) - math.log(value.denominator), rel=1e-12
    )


def test_products_of_many_small_factors_do_not_underflow():
    """Ten rows of 400 binary features: ln p(y) is about -2 800, far below the doubles."""
    model = naive_bayes(2, 400)
    rng = np.random.default_rng(0)
    rows = Rows(tuple(f"y{i}" for i in range(400)), rng.integers(0, 2, size=(8, 400), dtype=np.int8))
    found = exact(evaluate(model, rows, ("c",), n_init=1, tol=1.0))
    assert found.details["n_terms"] == 2**8
    terms = []
    for labels in np.ndindex(*(2,) * 8):
        labels = np.array(labels)
        n = np.array([(labels == 0).sum(), (labels == 1).sum()])
        term = math.lgamma(2) + math.lgamma(1 + n[0]) + math.lgamma(1 + n[1]) - math.lgamma(10)
        for k in (0, 1):
            ones = rows.codes[labels == k].sum(axis=0)
            term += sum(math.lgamma(1 + a) + math.lgamma(1 + n[k] - a) - math.lgamma(2 + n[k]) for a in ones.tolist())
        terms.append(term)
    assert found.value == approx(float(np.logaddexp.reduce(terms)), abs=1e-9)


def test_rows_by_the_billion_are_refused_before_anything_is_allocated():
    """A hidden node of one state leaves one way to complete them, however many they are."""
    model = VBDiscreteDAG(latents=1, random_state=0).fit([[0, 1], [1, 0]], sample_weight=[1e9, 1e9])
    with pytest.raises(TooLargeError, match=r"one by one.*2e\+09 of them take 8e\+10 bytes.*'lower_bound'"):
        model.log_evidence([[0, 1], [1, 0]], kind="exact", sample_weight=[1e9, 1e9])
