"""Setting nodes of networks with numbers: against sums over categories of joint normal densities."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from skvbem import VBDiscreteDAG, VBNetwork
from skvbem.errors import PosteriorWarning

approx = pytest.approx
LEVELS = {"a": ["no", "yes"], "b": ["p", "q", "r"]}
NUMBERS = ["x", "y", "z"]


def known_network():
    """h (.3, .7); x ~ N(1, .5), N(-1, 1); y = .2 + .8 x (.4), .5 - .6 x (.7); z = 1.2 y (.3), .4 + .5 y (.6).

    Rows whose moments are those of the network, exactly, with variances in brackets: their maximum is it.
    """
    rows = []
    for h, (weight, of_x, of_y, of_z) in enumerate(
        [(0.3, (1.0, 0.5), (0.2, 0.8, 0.4), (0.0, 1.2, 0.3)), (0.7, (-1.0, 1.0), (0.5, -0.6, 0.7), (0.4, 0.5, 0.6))]
    ):
        for signs in product([-1.0, 1.0], repeat=3):
            x = of_x[0] + np.sqrt(of_x[1]) * signs[0]
            y = of_y[0] + of_y[1] * x + np.sqrt(of_y[2]) * signs[1]
            z = of_z[0] + of_z[1] * y + np.sqrt(of_z[2]) * signs[2]
            rows.append(("uv"[h], x, y, z, 100 * weight))
    X = pd.DataFrame(rows, columns=["h", "x", "y", "z", "weight"])
    structure = {"x": ["h"], "y": ["x", "h"], "z": ["y", "h"]}
    return VBNetwork(structure, method="ml").fit(X[["h", "x", "y", "z"]], sample_weight=X["weight"])


def test_facts_of_a_known_network():
    network = known_network()
    seen = network.query("x", {"z": 1.5})
    assert seen.weights == approx([0.28419298, 0.71580702], abs=2e-8)
    assert (seen.mean, seen.standard_deviation**2) == approx((-0.53754201, 1.80914590), abs=2e-8)
    assert seen.interval(0.9) == approx((-2.588709, 1.648197), abs=2e-6)
    assert network.query("z", {"y": 1.0}).mean == approx(1.00295133, abs=2e-8)
    assert network.query("z", do={"y": 1.0}).mean == approx(0.99, abs=1e-9)
    slope = network.query("z", do={"x": 2.0}).mean - network.query("z", do={"x": 1.0}).mean
    assert slope == approx(0.078, abs=1e-9)


def test_numbers_that_are_set_leave_categories_and_ancestors_alone():
    network = known_network()
    assert network.query("h", do={"y": 5.0}).values == approx([0.3, 0.7])
    assert network.query("h", {"y": 5.0}).values != approx([0.3, 0.7], abs=0.01)
    before, after = network.query("x"), network.query("x", do={"y": 5.0})
    assert (after.mean, after.standard_deviation) == approx((before.mean, before.standard_deviation))
    below = network.query("h", {"z": 2.0}, do={"y": 1.0})["h":"u"]
    assert below == approx(1 / (1 + 0.7 * norm.pdf(2.0, 0.9, 0.6**0.5) / (0.3 * norm.pdf(2.0, 1.2, 0.3**0.5))))
    assert network.query("h", {"x": 1.0}, do={"y": 5.0}).values == approx(network.query("h", {"x": 1.0}).values)


def test_setting_a_root_is_seeing_it():
    network = known_network()
    seen, done = network.query("z", {"h": "u"}), network.query("z", do={"h": "u"})
    assert (done.mean, done.standard_deviation) == approx((seen.mean, seen.standard_deviation))
    X = pd.DataFrame({"x": np.arange(20.0) % 7, "y": np.arange(20.0) % 5})
    roots = VBNetwork({"y": ["x"]}).fit(X)
    # draws of parameters are weighted by p(x) where x is seen: what is known of its own parameters says nothing of y
    seen, done = roots.query("y", {"x": 2.0}), roots.query("y", do={"x": 2.0})
    assert done.mean == approx(seen.mean, abs=0.05 * seen.standard_deviation)
    assert done.standard_deviation == approx(seen.standard_deviation, rel=0.05)


def random_network(rng):
    """A network at a maximum: random edges among two categories, above three numbers, and those among these."""
    order = ["a", "b", *rng.permutation(NUMBERS).tolist()]
    structure = {child: [p for p in order[:k] if rng.random() < 0.6] for k, child in enumerate(order)}
    n = 80
    X = pd.DataFrame({name: rng.choice(levels, n) for name, levels in LEVELS.items()})
    for k, name in enumerate(order[2:]):
        X[name] = 3.0 + 10.0 ** (1 - k) * (rng.normal(size=n) + rng.normal(size=n) * (X["a"] == "yes"))
    for k, name in enumerate(order[3:], start=3):
        X[name] += rng.normal() * X[order[k - 1]]
    return VBNetwork(structure, method="ml").fit(X)


def joint_of(network, done):
    """Of each state of categories its probability, and mean and covariance of all numbers, nodes that are set cut."""
    dag, parameters = network.structure_, network.parameters_
    for states in product(range(2), range(3)):
        code, p = dict(zip("ab", states)), 1.0
        for node in "ab":
            table = network.tables_[node].values[tuple(code[q] for q in dag.parents(node))]
            p *= float(LEVELS[node][code[node]] == done[node]) if node in done else table[code[node]]
        mean, covariance = np.zeros(3), np.zeros((3, 3))
        for node in (node for node in dag.topological_order() if node in NUMBERS):
            k, above = NUMBERS.index(node), [q for q in dag.parents(node) if q in LEVELS]
            slopes = np.zeros(3)
            if node in done:
                mean[k] = done[node]
                continue
            state = 0
            for q in above:
                state = state * len(LEVELS[q]) + code[q]
            of = parameters[node]
            numeric = [NUMBERS.index(q) for q in dag.parents(node) if q in NUMBERS]
            if numeric:
                slopes[numeric] = of["coefficients"][state, 0]
                constant, variance = of["intercepts"][state, 0], of["variances"][state, 0]
            else:
                constant, variance = np.ravel(of["means"])[state], np.ravel(of["covariances"])[state]
            mean[k] = constant + slopes @ mean
            covariance[k] = covariance[:, k] = covariance @ slopes
            covariance[k, k] = variance + slopes @ covariance @ slopes
        yield code, p, mean, covariance


def answer_by_definition(network, target, evidence, done):
    """Weights, means and variances of a number, or probabilities of a category."""
    seen = [k for k, name in enumerate(NUMBERS) if name in evidence]
    at = np.array([evidence[NUMBERS[k]] for k in seen])
    weights, means, variances, states = [], [], [], []
    for code, p, mean, covariance in joint_of(network, done):
        p *= all(LEVELS[node][code[node]] == evidence[node] for node in LEVELS if node in evidence)
        inner = covariance[np.ix_(seen, seen)]
        p *= multivariate_normal.pdf(at, mean[seen], inner) if seen and p else 1.0
        weights.append(p)
        if target in LEVELS:
            states.append(code[target])
            continue
        k = NUMBERS.index(target)
        gain = np.linalg.solve(inner, covariance[seen, k]) if seen else np.zeros(0)
        means.append(mean[k] + gain @ (at - mean[seen]))
        variances.append(covariance[k, k] - gain @ covariance[seen, k])
    weights = np.array(weights) / np.sum(weights)
    return np.bincount(states, weights) if target in LEVELS else (weights, np.array(means), np.array(variances))


@pytest.mark.parametrize("seed", range(25))
def test_answers_by_enumeration(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    target, *others = rng.permutation(["a", "b", *NUMBERS]).tolist()
    row = {"a": "yes", "b": "q", "x": 2.5, "y": 2.0, "z": 4.0}
    role = dict(zip(others, rng.permutation(["seen", "seen", "done", "done", "nothing"])))
    evidence, done = ({name: row[name] for name, of in role.items() if of == which} for which in ("seen", "done"))
    found = network.query(target, evidence, do=done)
    expected = answer_by_definition(network, target, evidence, done)
    if target in LEVELS:
        assert found.values == approx(expected, rel=1e-8)
        return
    weights, means, variances = expected
    x = found.mean + found.standard_deviation * np.linspace(-2, 2, 5)
    by_state = norm.pdf(x[:, None], means, np.sqrt(variances))
    assert found.density(x) == approx(by_state @ weights, rel=1e-7)
    assert found.mean == approx(weights @ means, rel=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_densities_of_rows_in_which_nodes_were_set(seed):
    rng = np.random.default_rng(100 + seed)
    network = random_network(rng)
    row = {"a": "yes", "b": "q", "x": 2.5, "y": 2.0, "z": 4.0}
    role = dict(zip(row, rng.permutation(["seen", "seen", "done", "done", "nothing"])))
    if not any(role[name] == "seen" for name in row):
        return
    done = {name: row[name] for name, of in role.items() if of == "done"}
    evidence = {name: row[name] for name, of in role.items() if of == "seen"}
    seen = [k for k, name in enumerate(NUMBERS) if name in evidence]
    total = 0.0
    for code, p, mean, covariance in joint_of(network, done):
        p *= all(LEVELS[node][code[node]] == evidence[node] for node in LEVELS if node in evidence)
        at = [evidence[NUMBERS[k]] for k in seen]
        total += p * (multivariate_normal.pdf(at, mean[seen], covariance[np.ix_(seen, seen)]) if seen else 1.0)
    cells = {
        name: [row[name] if of != "nothing" else (np.nan if name in NUMBERS else None)] for name, of in role.items()
    }
    found = network.score_samples(pd.DataFrame(cells, columns=list(network.feature_names_in_)), interventions=[[*done]])
    assert found == approx([np.log(total)], rel=1e-8)


def test_categories_alone_as_discrete_networks(rng):
    X = pd.DataFrame({name: rng.integers(0, 2, 60).astype(str) for name in "abc"})
    edges = [("a", "b"), ("a", "c"), ("b", "c")]
    one, other = (of(edges, prior=1.0).fit(X) for of in (VBNetwork, VBDiscreteDAG))
    question = "c", {"a": "1"}
    assert one.query(*question, do={"b": "0"}).values == approx(other.query(*question, do={"b": "0"}).values)
    assert one.query("c", do={"b": "0"}).values == approx(other.query("c", do={"b": "0"}).values)


def test_effects_with_a_hidden_common_cause_are_warned_of(rng):
    h = rng.random(120) < 0.5
    X = pd.DataFrame({"x": 3.0 * h + rng.normal(size=120), "y": 3.0 * h + rng.normal(size=120)})
    network = VBNetwork([("h", "x"), ("h", "y"), ("x", "y")], latents=["h"], random_state=0).fit(X)
    with pytest.warns(PosteriorWarning, match="What setting 'x' does to 'y' is not identified"):
        network.query("y", do={"x": 1.0})
    network.query("y", {"x": 1.0})


def test_what_cannot_be_set_is_refused(rng):
    X = pd.DataFrame({"g": np.repeat(["u", "v"], 20), "x": rng.normal(size=40), "y": rng.normal(size=40)})
    network = VBNetwork({"x": ["g"], "y": ["x"]}).fit(X)
    for evidence, done in [({"x": 1.0}, {"x": 1.0}), ({}, {"y": 1.0})]:
        with pytest.raises(ValueError, match="No node may be both seen and set"):
            network.query("y", evidence, do=done)
    with pytest.raises(ValueError, match="as evidence it takes a finite one"):
        network.query("y", do={"x": np.inf})
    with pytest.raises(ValueError, match="is not a state of 'g'"):
        network.query("y", do={"g": "w"})
    with pytest.raises(ValueError, match="'w' is not a node"):
        network.query("y", do={"w": 1.0})
    emission = [("both", "gaussian", ["x", "y"]), ("remainder", "auto")]
    together = VBNetwork({"both": ["g"]}, emission=emission).fit(X)
    with pytest.raises(ValueError, match="it takes one finite number for a node of one column"):
        together.query("y", do={"x": 1.0})
