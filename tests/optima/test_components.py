"""Statistics taken apart by component, joined and divided: against statistics of responsibilities treated so."""

import numpy as np
import pytest
from emissions.members import PROBLEMS
from laws.mixtures import mixture

from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.transitions import Transitions, left_to_right
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking
from skvbem.optima.component_moves import Components, Division

approx = pytest.approx


def of_size(model, n_components):
    """The mixture of the same emission with so many components."""
    return Mixture(model.emission, FiniteWeights(np.ones(n_components)), model.emission.default_prior(n_components))


@pytest.fixture(params=PROBLEMS)
def four(request, rng):
    """A mixture of four, its rows, and responsibilities."""
    problem = PROBLEMS[request.param](rng, n_rows=12)
    model, values, _ = mixture(problem, FiniteWeights(np.ones(4)))
    data = model.compile(values)
    return model, data, rng.dirichlet(np.ones(4), len(data))


def test_taken_apart_and_put_together(four):
    model, data, shares = four
    statistics = model.statistics_of(shares, data)
    assert model.expected_counts(statistics) == approx(shares.sum(axis=0))
    assert Components.of(model, statistics).statistics(model) == approx(statistics, rel=1e-14)


def test_to_join_is_to_add_responsibilities(four):
    model, data, shares = four
    three = of_size(model, 3)
    parts = Components.of(model, model.statistics_of(shares, data))
    joined = np.column_stack([shares[:, 0], shares[:, 1] + shares[:, 3], shares[:, 2]])
    assert parts.joined(1, 3).statistics(three) == approx(three.statistics_of(joined, data), rel=1e-9, abs=1e-9)
    assert parts.joined(1, 3).origins == [[0], [1, 3], [2]]


def test_to_divide_is_to_share_out_responsibilities(four, rng):
    model, data, shares = four
    parts = Components.of(model, model.statistics_of(shares, data))
    two, six = of_size(model, 2), of_size(model, 6)
    halves = rng.dirichlet(np.ones(2), size=(2, len(data)))
    divisions = {}
    for k, half in zip((2, 0), halves):
        both = shares[:, [k]] * half
        of_halves = Components.of(two, two.statistics_of(both, data))
        divisions[k] = Division(both[:, 0].sum() / both.sum(), of_halves.per_component)
    of_two, of_none = shares[:, [2]] * halves[0], shares[:, [0]] * halves[1]
    expected = np.column_stack([of_none[:, 0], shares[:, 1], of_two[:, 0], shares[:, 3], of_none[:, 1], of_two[:, 1]])
    divided = parts.divided(divisions)
    assert divided.statistics(six) == approx(six.statistics_of(expected, data), rel=1e-9, abs=1e-9)
    assert divided.origins == [[0], [1], [2], [3], [0], [2]]


def test_without_some(four):
    model, data, shares = four
    parts = Components.of(model, model.statistics_of(shares, data))
    left = parts.without(np.array([0, 2]))
    two = of_size(model, 2)
    assert two.expected_counts(left.statistics(two)) == approx(shares.sum(axis=0)[[1, 3]])
    assert np.array_equal(left.per_component, parts.per_component[[1, 3]])


def test_sticks_take_the_largest_first(rng):
    problem = PROBLEMS["poisson"](rng, n_rows=10)
    model, values, _ = mixture(problem, StickBreaking(3, 1.0))
    statistics = model.statistics_of(np.eye(3)[[0, 1, 1, 1, 1, 1, 2, 2, 2, 0]], model.compile(values))
    parts = Components.of(model, statistics)
    ordered = parts.in_order()
    assert model.expected_counts(ordered.statistics(model)).tolist() == [5, 3, 2]
    assert np.array_equal(ordered.per_component, parts.per_component[[1, 2, 0]])


# Chains ---------------------------------------------------------------------------------------------------------------


def chain(rng, n_states, allowed=None):
    """A chain of counts."""
    emission = PROBLEMS["poisson"](rng, n_rows=12).emission
    all_of_them = np.ones((n_states, n_states)) if allowed is None else 1.0 * allowed
    first = Transitions(np.ones((1, n_states)))
    return HMM(emission, first, Transitions(all_of_them), emission.default_prior(n_states))


def statistics_of_chain(rng, model):
    """Statistics of first states and transitions that are drawn."""
    return rng.gamma(2.0, size=model.n_cells)


def of_chain(model, statistics):
    first, pairs, _ = model.prior.split(statistics)
    return model.initial.matrix(first)[0], model.transitions.matrix(pairs)


@pytest.mark.parametrize("n_states", [1, 3])
def test_states_divided_share_transitions_from_them_and_to_them(n_states, rng):
    model, more = chain(rng, n_states), chain(rng, n_states + 1)
    statistics = statistics_of_chain(rng, model)
    (first, pairs), parts = of_chain(model, statistics), Components.of(model, statistics)
    half = Division(0.25, np.stack([0.5 * parts.per_component[0]] * 2))
    later = parts.divided({0: half}).statistics(more)
    share = np.r_[0.25, np.ones(n_states - 1), 0.75]
    origin = [*range(n_states), 0]
    found_first, found = of_chain(more, later)
    assert found_first == approx(first[origin] * share)
    assert found == approx(pairs[np.ix_(origin, origin)] * np.outer(share, share))
    assert more.expected_counts(later) == approx(found_first + found.sum(axis=0))


def test_states_joined_add_rows_and_columns_of_transitions(rng):
    model, fewer, one = (chain(rng, n) for n in (3, 2, 1))
    statistics = statistics_of_chain(rng, model)
    first, pairs = of_chain(model, statistics)
    joined = Components.of(model, statistics).joined(0, 2)
    found_first, found = of_chain(fewer, joined.statistics(fewer))
    assert found_first == approx([first[0] + first[2], first[1]])
    both = pairs[[0, 1]] + np.stack([pairs[2], np.zeros(3)])
    assert found == approx(both[:, [0, 1]] + np.column_stack([both[:, 2], np.zeros(2)]))
    alone = joined.joined(0, 1).statistics(one)
    assert [*of_chain(one, alone)[0], of_chain(one, alone)[1].item()] == approx([first.sum(), pairs.sum()])


def test_halves_are_neighbors_where_a_mask_gives_states_an_order(rng):
    model = chain(rng, 3, left_to_right(3))
    parts = Components.of(model, statistics_of_chain(rng, model))
    halves = Division(0.25, np.stack([parts.per_component[1]] * 2))
    assert parts.divided({1: halves}).in_order().origins == [[0], [1], [1], [2]]
    assert parts.joined(0, 2).in_order().origins == [[0, 2], [1]]
