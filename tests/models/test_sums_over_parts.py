"""Sums over parts: a fixed tree over their numbers, whoever computes them, and E steps that go to where rows are."""

import pickle
import time
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from skvbem.blocks import Blocks, added, map_reduce, tree_sum
from skvbem.data import Rows
from skvbem.emissions import FactorGaussian, Gaussian
from skvbem.graphs.dag import DAG
from skvbem.models import DiscreteDAG
from skvbem.models.base import DataInParts, ModelAscent
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.linear_dynamical_system.model import LDSAscent, LinearDynamicalSystem
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.model import MixedNetwork, MixedNetworkAscent
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

ENDS = (0, 7, 8, 31, 40, 41, 52, 60, 66, 71, 75, 90)  # eleven parts: more than a node of the tree has children


class Elsewhere(Blocks):
    """Blocks whose results are computed in another order, by steps that were pickled; each is done twice."""

    order = staticmethod(reversed)

    def results(self, *step):
        parts = list(self._iterate())
        done = {}
        for number in [*self.order(range(len(parts))), 0]:
            result = parts[number]
            for change in pickle.loads(pickle.dumps((*self._changes, *step))):
                result = change(result)
            done[number] = result
        return (done[number] for number in range(len(parts)))


def literal_tree(terms):
    """Nodes of eight children each, level by level; what is left of a level is added to what its nodes make."""
    levels, rest = [], []
    while len(terms) >= 8:
        levels.append(terms[len(terms) // 8 * 8 :])
        terms = [comb(terms[at : at + 8]) for at in range(0, len(terms) // 8 * 8, 8)]
    levels.append(terms)
    for level in levels:
        rest = [comb([*level, *rest])] if level or rest else []
    return rest[0]


def comb(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 16, 63, 64, 65, 100, 600])
def test_the_tree_is_that_of_the_numbers_of_parts(n):
    terms = list(np.random.default_rng(n).normal(size=(n, 3)) * 10.0 ** np.arange(3))
    assert np.array_equal(tree_sum(iter(terms)), literal_tree(terms))
    with pytest.raises(ValueError, match="no parts"):
        tree_sum([])


def test_threads_and_their_order_of_arrival_change_no_bit():
    terms = np.random.default_rng(0).normal(size=(50, 4)) * 1e3

    def slow_at_first(number):
        time.sleep(0.002 if number % 8 == 0 else 0.0)
        return terms[number], [float(terms[number].sum()), {number % 3: terms[number]}]

    one, (number, by_key) = map_reduce(slow_at_first, range(50))
    for n_threads in (2, 3, 8):
        other, (other_number, other_by_key) = map_reduce(slow_at_first, range(50), n_threads)
        assert np.array_equal(one, other)
        assert number == other_number
        assert all(np.array_equal(by_key[key], other_by_key[key]) for key in by_key)
    assert not np.array_equal(one, tree_sum(terms[::-1]))  # the order has a say in bits


def test_blocks_are_changed_where_their_results_are_computed():
    doubled = Elsewhere(lambda: [1, 2, 3]).map(partial(added, 10))
    assert isinstance(doubled, Elsewhere)
    assert list(doubled) == [11, 12, 13]
    assert map_reduce(partial(added, 1), doubled) == 39


def mixture(specification, rng):
    values = rng.normal(size=(90, 3)) + 3 * (np.arange(90) % 2)[:, None]
    emission = specification.for_data(values)
    model = Mixture(emission, FiniteWeights(np.ones(2)), emission.default_prior(2))
    survey = map_reduce(emission.survey, [values[a:b] for a, b in pairwise(ENDS)])
    parts = [model.compile(emission.prepare(values[a:b], survey)) for a, b in pairwise(ENDS)]
    return model, model.compile(emission.prepare(values)), parts, survey, MixtureAscent


def hmm(rng):
    values = rng.normal(size=(90, 2)) + 3 * (np.arange(90) // 10 % 2)[:, None]
    emission, survey = Gaussian().for_data(values), None
    model = HMM(emission, Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2))), emission.default_prior(2))
    survey = emission.survey(values)
    parts = [model.compile(emission.prepare(values[a:b], survey), [b - a]) for a, b in pairwise(ENDS)]
    return model, model.compile(emission.prepare(values), np.diff(ENDS)), parts, survey, HMMAscent


def linear_system(rng):
    values = np.cumsum(rng.normal(size=(90, 2)), axis=0)
    model = LinearDynamicalSystem.from_precisions([1.0], [1.0], shape=[2.0, 2.0], rate=[1.0, 1.0])
    parts = [model.compile(values[a:b], [b - a]) for a, b in pairwise(ENDS)]
    return model, model.compile(values, np.diff(ENDS)), parts, None, LDSAscent


def network(rng):
    dag = DAG.naive_bayes("h", ["a", "b", "c"])
    cards = {"h": 2, "a": 2, "b": 3, "c": 2}
    prior = {node: np.ones([cards[v] for v in (*dag.parents(node), node)]) for node in dag.nodes}
    codes = np.stack([rng.integers(0, cards[v], 90) for v in "abc"], axis=1)
    model = DiscreteDAG(dag, cards, prior)
    parts = [model.compile(Rows(tuple("abc"), codes[a:b])) for a, b in pairwise(ENDS)]
    return model, model.compile(Rows(tuple("abc"), codes)), parts, None, ModelAscent


def mixed_network(rng):
    values = rng.normal(size=(90, 1)) + 3 * (np.arange(90) % 2)[:, None]
    codes, emission = rng.integers(0, 2, (90, 2)), Gaussian().for_data(values)
    dag = DAG(["h", "a", "b", "y"], {"a": ["h"], "b": ["h"], "y": ["h"]})
    prior = {"h": np.ones(2), "a": np.ones((2, 2)), "b": np.ones((2, 2))}
    emission_priors = {"y": emission.default_prior(2)}
    model = MixedNetwork(dag, dict.fromkeys("hab", 2), prior, {"y": emission}, emission_priors)
    survey = emission.survey(values)

    def compiled(rows):
        tables = (emission.prepare(values[rows], survey),)
        n = len(values[rows])
        return model.compile(MixedRows(("a", "b"), codes[rows], tables, (np.ones(n, dtype=bool),), np.ones(n)))

    parts = [compiled(slice(a, b)) for a, b in pairwise(ENDS)]
    return model, compiled(slice(None)), parts, None, MixedNetworkAscent


MODELS = {
    "mixture": partial(mixture, Gaussian()),
    "mixture of factors": partial(mixture, FactorGaussian(1)),
    "hmm": hmm,
    "linear dynamical system": linear_system,
    "network": network,
    "mixed network": mixed_network,
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_in_parts_have_the_e_steps_and_the_bound_of_all(name):
    rng = np.random.default_rng(3)
    model, whole, parts, survey, ascent = MODELS[name](rng)
    if name == "linear dynamical system":
        start = model.statistics_of_start(whole, whole.measured[:, :1], 0.1)[:, None]
    else:
        start = model.expect(model.prior.natural(model.prior.sample(rng))[:, None], whole).statistics
    bounds = []
    for of_parts in (parts, Blocks(lambda: parts), Elsewhere(lambda: parts)):
        data = DataInParts(survey, of_parts, 90, whole.total_weight)
        natural, _ = posteriors.VB.of(model.prior, start)
        one, other = model.expect(natural, whole), model.e_step(natural, data).over(data.parts)
        assert other.statistics == pytest.approx(one.statistics, rel=1e-11, abs=1e-11)
        assert other.log_normalizer == pytest.approx(one.log_normalizer, rel=1e-12)
        found = run(ascent(model, data, posteriors.VB), start.copy(), tol=1e-8, max_iter=40)
        bounds.append(found.objective)
    in_one = run(ascent(model, whole, posteriors.VB), start.copy(), tol=1e-8, max_iter=40)
    assert np.array_equal(bounds[0], bounds[1])
    assert np.array_equal(bounds[0], bounds[2])
    assert bounds[0] == pytest.approx(in_one.objective, rel=1e-9)


def test_a_pickled_e_step_takes_no_rows_along():
    model, whole, *_ = mixture(Gaussian(), np.random.default_rng(0))
    natural = model.prior.expected_natural()[:, None]
    step = model.e_step(natural, whole)
    sums = step(whole)
    there = pickle.loads(pickle.dumps(step))
    assert len(there.table) == 0
    assert all(np.array_equal(a, b) for a, b in zip(there(whole), sums))
    assert len(pickle.dumps(sums)) < 2000
