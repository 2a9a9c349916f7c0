"""Statistics taken apart by component, joined and divided: against statistics of responsibilities treated so."""

import numpy as np
import pytest
from emissions.members import PROBLEMS
from laws.mixtures import mixture

from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking
from skvbem.optima.component_moves import Components

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
    parts = Components.of(model, statistics)
    assert parts.counts == approx(shares.sum(axis=0))
    assert parts.statistics(model) == approx(statistics, rel=1e-14)
    lanes = np.stack([statistics, 2 * statistics], axis=1)
    assert Components.of(model, lanes).statistics(model) == approx(lanes, rel=1e-14)


def test_to_join_is_to_add_responsibilities(four):
    model, data, shares = four
    three = of_size(model, 3)
    parts = Components.of(model, model.statistics_of(shares, data))
    joined = np.column_stack([shares[:, 0], shares[:, 1] + shares[:, 3], shares[:, 2]])
    assert parts.joined(1, 3).statistics(three) == approx(three.statistics_of(joined, data), rel=1e-9, abs=1e-9)


def test_to_divide_is_to_share_out_responsibilities(four, rng):
    model, data, shares = four
    parts = Components.of(model, model.statistics_of(shares, data))
    two, six = of_size(model, 2), of_size(model, 6)
    halves = rng.dirichlet(np.ones(2), size=(2, len(data)))
    divided = {k: Components.of(two, two.statistics_of(shares[:, [k]] * half, data)) for k, half in zip((2, 0), halves)}
    of_two, of_none = shares[:, [2]] * halves[0], shares[:, [0]] * halves[1]
    expected = np.column_stack([of_none[:, 0], shares[:, 1], of_two[:, 0], shares[:, 3], of_none[:, 1], of_two[:, 1]])
    found = parts.divided(divided).statistics(six)
    assert found == approx(six.statistics_of(expected, data), rel=1e-9, abs=1e-9)


def test_without_some_and_scaled(four):
    model, data, shares = four
    parts = Components.of(model, model.statistics_of(shares, data))
    left = parts.without(np.array([0, 2]))
    assert left.counts == approx(shares.sum(axis=0)[[1, 3]])
    assert np.array_equal(left.per_component, parts.per_component[[1, 3]])


def test_sticks_take_the_largest_first(rng):
    problem = PROBLEMS["poisson"](rng, n_rows=10)
    model, values, _ = mixture(problem, StickBreaking(3, 1.0))
    statistics = model.statistics_of(np.eye(3)[[0, 1, 1, 1, 1, 1, 2, 2, 2, 0]], model.compile(values))
    ordered = Components.of(model, Components.of(model, statistics).statistics(model))
    assert ordered.counts.tolist() == [5, 3, 2]
    assert np.array_equal(ordered.per_component, Components.of(model, statistics).per_component[[1, 2, 0]])
