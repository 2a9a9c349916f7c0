"""The number of relabelings against permutations one by one, and bounds mixed over them against exact evidence."""

import itertools
import math

import numpy as np
import pytest
from bridge import FastNetwork
from evidence.evaluations import bipartite_network, drawn_rows, evaluate, evaluation_of, naive_bayes
from reference import facts
from reference.discrete_network import Network, Problem, latent_posterior, uniform_prior
from reference.random_networks import random_network, random_problem
from reference.scores import n_aliases

from skvbem.errors import TooLargeError
from skvbem.evidence import SCORES
from skvbem.evidence.aliasing import alias_correction, alias_gain
from skvbem.evidence.collapsed import collapsed
from skvbem.evidence.exact import exact
from skvbem.evidence.lower_bound import lower_bound
from skvbem.models import capabilities_of

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))
BOUNDS = ("lower_bound", "collapsed", "collapsed_ascent", "cheeseman_stutz", "mled")


def log_n(network, columns, prior):
    hidden = [node for node in network.cards if node not in columns]
    return capabilities_of(FastNetwork(network, prior).model).relabelings.log_n_relabelings(hidden)


# --- how many ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parents", "n_labeled", "d_free", "d", "n"), facts.BIPARTITE_DIMENSIONS)
def test_bipartite_structures(parents, n_labeled, d_free, d, n):
    assert capabilities_of(bipartite_network(parents)).relabelings.log_n_relabelings(["s1", "s2"]) == approx(
        math.log(n), abs=1e-12
    )


def test_hidden_parents_of_one_node():
    ((cards, expected),) = facts.ALIASES_OF_HIDDEN_PARENTS.items()
    hidden = [f"h{i}" for i in range(len(cards))]
    network = Network({**dict(zip(hidden, cards)), "y": 2}, {**dict.fromkeys(hidden, ()), "y": tuple(hidden)})
    assert math.exp(log_n(network, ["y"], uniform_prior(network))) == approx(expected)


def test_random_networks(rng):
    """Under one concentration everywhere, and under priors that tell some states apart."""
    for k in range(60):
        n_hidden = int(rng.integers(0, 4))
        network, columns = random_network(rng, n_hidden + int(rng.integers(1, 4)), 3, n_hidden)
        prior = uniform_prior(network, 1.5)
        if k % 3 == 0 and n_hidden:
            node = "h0"
            prior = {**prior, node: prior[node] + (np.arange(network.cards[node]) == 0)}
        if any(n not in columns and n not in network.ancestral(columns) for n in network.cards) and k % 3 == 0:
            continue  # the prior of nodes that touch no data is looked at by one side alone
        assert math.exp(log_n(network, columns, prior)) == approx(n_aliases(network, columns, prior))


def test_too_many_to_list_are_counted_from_the_graph():
    model = naive_bayes(32, 6)
    assert capabilities_of(model).relabelings.log_n_relabelings(["c"]) == approx(math.lgamma(33), rel=1e-12)
    # two latents of seven states each with the same children: 2 x 7!^2
    cards = {"s": 7, "t": 7, "a": 2, "b": 3}
    network = Network(cards, {"s": (), "t": (), "a": ("s", "t"), "b": ("s", "t")})
    prior = uniform_prior(network)
    assert log_n(network, ["a", "b"], prior) == approx(math.log(2) + 2 * math.lgamma(8), rel=1e-12)
    apart = {**prior, "s": np.full(7, 2.0)}
    assert log_n(network, ["a", "b"], apart) == approx(2 * math.lgamma(8), rel=1e-12)
    told = {**prior, "a": prior["a"] + np.arange(7)[:, None, None]}
    with pytest.raises(TooLargeError, match="the prior of 'a' differs between states"):
        log_n(network, ["a", "b"], told)


def test_the_correction_is_added_to_scores_that_are_no_bounds():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)))
    assert alias_correction(evaluation) == approx(math.log(2))
    for name in ("bic", "bicp", "draper", "laplace", "cheeseman_stutz_dagger"):
        plain, corrected = SCORES[name](evaluation), SCORES[name](evaluation, alias=True)
        assert corrected.value - plain.value == approx(math.log(2), abs=1e-12)
        assert corrected.details["alias"] == approx(math.log(2))
        assert not corrected.is_lower_bound


# --- bounds that stay bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOUNDS)
def test_mixed_over_relabelings_a_bound_stays_a_bound(name, rng):
    """On random models with one prior everywhere, so that relabelings abound; with few rows, so that they overlap."""
    gains = []
    for _ in range(40):
        network, data, _ = random_problem(rng, max_completions=2**8, max_nodes=5, max_rows=8)
        problem = Problem(network, data, uniform_prior(network, float(rng.choice([0.3, 1.0, 3.0]))))
        evaluation = evaluation_of(problem, n_init=3)
        found = SCORES[name](evaluation, alias=True)
        assert found.is_lower_bound
        assert found.value <= exact(evaluation).value + 1e-9
        assert found.value >= SCORES[name](evaluation).value - 1e-12
        assert found.details["alias"] <= alias_correction(evaluation) + 1e-12
        gains.append(found.details["alias"])
    # MAP points of so few rows are most often the one point that all relabelings share
    assert max(gains) > 0.3 or SCORES[name].form == "map"


def test_the_gain_against_the_mixture_written_out(rng):
    """ln S - E_q ln(1 + sum q_g / q), over all completions of all rows: the gain is below it, and near."""
    network = facts.latent_class(2, (2, 3))
    data = facts.cells({"00": 2, "12": 1, "01": 1, "10": 1})
    problem = Problem(network, data, uniform_prior(network))
    for max_iter in (1, 3, 1000):
        evaluation = evaluation_of(problem, n_init=1, max_iter=max_iter)
        natural = (evaluation.model.prior + evaluation.fit("vb").statistics).expected_natural()
        tables = FastNetwork(network, problem.prior).tables(natural)
        rows = [[p for _, p in choices] for w, choices in latent_posterior(network, tables, data) for _ in range(w)]
        written_out = math.log(2)
        for states in itertools.product((0, 1), repeat=len(rows)):
            here = math.prod(row[state] for row, state in zip(rows, states))
            there = math.prod(row[1 - state] for row, state in zip(rows, states))
            written_out -= here * math.log1p(there / here)
        gain = alias_gain(evaluation, natural)
        assert -1e-12 <= gain <= written_out + 1e-12


def test_relabelings_far_apart_gain_all_of_it():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)))
    for name in BOUNDS:
        assert SCORES[name](evaluation, alias=True).details["alias"] == approx(math.log(2), abs=1e-6)
    model = bipartite_network(("1", "12", "12", "2"))
    evaluation = evaluate(model, drawn_rows(model, 200, np.random.default_rng(0), ("s1", "s2")), ("s1", "s2"), n_init=3)
    for bound in (lower_bound, collapsed):
        assert bound(evaluation, alias=True).details["alias"] == approx(math.log(4), abs=1e-6)


def test_relabelings_on_top_of_each_other_gain_nothing():
    """All responsibilities equal: the mixture is q itself."""
    model = naive_bayes(3, 2)
    rows = drawn_rows(model, 10, np.random.default_rng(0), ("c",))
    program = model.compile(rows)
    flat = model.expect(np.log(model.prior.mean())[:, None], program).statistics
    evaluation = evaluate(model, rows, ("c",), starts=flat)
    assert lower_bound(evaluation, alias=True).details["alias"] == approx(0.0, abs=1e-9)
    assert collapsed(evaluation, alias=True).details["alias"] == approx(0.0, abs=1e-9)


def test_too_many_relabelings_to_mix():
    model = naive_bayes(8, 3)
    evaluation = evaluate(model, drawn_rows(model, 20, np.random.default_rng(0), ("c",)), ("c",), n_init=1, tol=1.0)
    with pytest.raises(
        TooLargeError, match=r"There are 4.032e\+04 relabelings of the hidden nodes, more than the 5040"
    ):
        lower_bound(evaluation, alias=True)
