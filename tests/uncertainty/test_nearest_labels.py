"""Labels that are nearest to those of a fit: by trying all of them, and by what they stand for."""

from itertools import permutations

import numpy as np
import pytest
from laws.models import MODELS

from skvbem.models.relabelings import ListedRelabelings, SequentialRelabelings, StateRelabelings

approx = pytest.approx


@pytest.mark.parametrize("n_states", [3, 5])
@pytest.mark.parametrize("kind", [ListedRelabelings, StateRelabelings, SequentialRelabelings])
def test_the_nearest_is_the_best_of_all(kind, n_states, rng):
    """Of few states and of so many that not all permutations are tried."""
    cells = np.arange(3 * n_states).reshape(3, n_states).T
    n_cells = cells.size + 1  # the last belongs to no state
    statistics, points = rng.gamma(1.0, 2.0, size=n_cells), np.log(rng.dirichlet(np.ones(n_cells), size=6).T)
    of_states = list(permutations(range(n_states)))
    orders = np.tile(np.arange(n_cells), (len(of_states), 1))
    for row, order in zip(orders, of_states):
        row[cells] = cells[list(order)]
    relabelings = kind(orders if kind is ListedRelabelings else cells)
    aligned = relabelings.nearest(statistics, points)
    values = np.stack([statistics @ points[order] for order in orders])
    assert statistics @ aligned == approx(values.max(axis=0), rel=1e-12)
    for k, best in enumerate(values.argmax(axis=0)):
        assert aligned[:, k].tolist() == points[orders[best], k].tolist()


def test_relabeled_points_are_all_brought_to_one(any_case, rng):
    """Whatever the labels of a point were; and its likelihood stays as it is."""
    instance = any_case.alike(rng, 0)
    data = instance.compile()
    statistics, relabelings = instance.random_starts(data, rng, 1)[:, 0], instance.capabilities.relabelings
    orders = relabelings.listed_relabelings(instance.hidden, 5040)
    point = instance.point(data, rng)
    points = point[orders].T
    aligned = relabelings.relabelings(instance.hidden).nearest(statistics, points)
    assert len(orders) > 1
    assert aligned == approx(np.repeat(aligned[:, :1], len(orders), axis=1), rel=1e-12)
    likelihoods = instance.capabilities.points.log_likelihoods(data, np.stack([point, aligned[:, 0]], axis=1))
    assert likelihoods[0] == approx(likelihoods[1], rel=1e-10)


def pytest_generate_tests(metafunc):
    if "any_case" in metafunc.fixturenames:
        names = ("mixture of categorical", "mixture of full", "HMM of poisson", "network")
        cases = [MODELS[name] for name in names]
        metafunc.parametrize("any_case", cases, ids=str)


@pytest.mark.parametrize("name", ["mixture of categorical", "mixture of poisson"])
def test_the_nearest_labels_have_the_smallest_divergence_from_the_responsibilities_of_the_fit(name, rng):
    """KL(q(x) || p(x | y, g theta)), written out, is least at the labels that are chosen [Stephens00]."""
    instance = MODELS[name].alike(rng, 0)
    data = instance.compile()
    natural = instance.natural(data, rng)[:, 0]
    statistics = instance.model.expect(natural[:, None], data).statistics[:, 0]
    point = instance.point(data, rng)
    orders = instance.capabilities.relabelings.listed_relabelings(instance.hidden, 5040)
    of_fit = instance.row_posteriors(natural, data)
    divergences = []
    for order in orders:
        of_point = instance.row_posteriors(point[order], data)
        divergences.append((of_fit * np.log(of_fit / of_point)).sum())
    aligned = instance.capabilities.relabelings.relabelings(instance.hidden).nearest(statistics, point[:, None])[:, 0]
    assert aligned == approx(point[orders[int(np.argmin(divergences))]], rel=1e-12)
