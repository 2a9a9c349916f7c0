"""Combinations of categories that are more frequent than components expect: by the definition, by chance, in fits."""

from collections import Counter
from itertools import chain, combinations, product

import numpy as np
import pytest

from skvbem import VBMixture
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.recombinations import Recombinations

approx = pytest.approx


def drawn(rng, tables, labels):
    """Codes (n_rows, n_columns) from tables (n_classes, n_categories) of columns."""
    cumulative = [np.cumsum(table, axis=1)[labels] for table in tables]
    return np.stack([(rng.random((len(labels), 1)) > each[:, :-1]).sum(axis=1) for each in cumulative], axis=1)


def excess_of(sizes, codes, weight, responsibilities):
    """The excess under components with these responsibilities, and what it is of."""
    emission, n = CategoricalEmission(tuple(sizes)), responsibilities.shape[1]
    model = Mixture(emission, FiniteWeights(np.ones(n)), emission.default_prior(n))
    data = model.compile(emission.prepare(codes), weight)
    cells, statistics = model.prior.split(model.statistics_of(responsibilities, data))
    counts = model.weights.counts(cells)
    return emission.excess(data, counts, statistics), data.table.join, counts


@pytest.mark.parametrize("gaps", [0.0, 0.02])
@pytest.mark.parametrize("which", ["combination", "halves"])
def test_it_is_the_larger_of_what_two_definitions_say(gaps, which, rng):
    """Row by row: of the combination that is highest, and of the eigenvector of residuals of pairs of categories."""
    sizes, n = ([3, 3, 4, 4, 3, 4, 3, 4], 3000) if which == "combination" else ([3, 4, 4, 3, 4], 240)
    codes = np.stack([rng.integers(size, size=n) for size in sizes], axis=1)
    if which == "combination":
        codes[:22] = np.array(sizes) - 1
    else:
        codes[:80, [0, 2, 4]] = np.minimum(codes[:80, [0, 2, 4]], 1)
        codes[80:, [0, 2, 4]] = np.maximum(codes[80:, [0, 2, 4]], 1)
    codes[rng.random(codes.shape) < gaps] = -1
    weight, shares = rng.uniform(0.5, 2.0, n), rng.dirichlet(np.ones(2), n)
    excess, join, counts = excess_of(sizes, codes, weight, shares)
    assert counts == approx(weight @ shares)
    tables = []  # of each column, shares of categories and of gaps in each component
    for j, size in enumerate(sizes):
        is_of = np.column_stack([*(codes[:, j] == k for k in range(size)), codes[:, j] < 0])
        tables.append(((shares * weight[:, None]).T @ is_of) / counts[:, None])
    assert len(join.groups) > 2
    of_combination = -np.inf
    for n_groups in (2, 3):
        highest, n_combinations = 0.0, 0
        for groups in combinations(join.groups, n_groups):
            columns = [*chain(*groups)]
            observed: Counter = Counter()
            for row, times in zip(codes[:, columns].tolist(), weight.tolist()):
                observed[tuple(row)] += times
            for each, o in observed.items():
                e = sum(counts[k] * np.prod([tables[j][k, at] for j, at in zip(columns, each)]) for k in range(2))
                highest = max(highest, o * np.log(o / e) - (o - e) if o > e else 0.0)  # [-1] is the share of gaps
            n_combinations += np.prod([sizes[j] + join.gappy[j] for j in columns])
        of_combination = max(of_combination, highest - np.log(n_combinations))
    cells = [(j, k) for j, size in enumerate(sizes) for k in range(size)]
    residuals = np.zeros((len(cells), len(cells)))
    for (a, (i, k)), (b, (j, at)) in product(enumerate(cells), repeat=2):
        if i != j:
            o = weight[(codes[:, i] == k) & (codes[:, j] == at)].sum()
            e = sum(counts[c] * tables[i][c, k] * tables[j][c, at] for c in range(2))
            n_a, n_b = weight[codes[:, i] == k].sum(), weight[codes[:, j] == at].sum()
            residuals[a, b] = (o - e) / np.sqrt(n_a * n_b / weight.sum())
    of_halves = np.linalg.eigvalsh(residuals)[-1] ** 2 / 4 - sum(size - 1 for size in sizes)
    assert gaps or (of_combination > of_halves) == (which == "combination")
    assert excess == approx(max(of_combination, of_halves), rel=1e-9)


def test_it_is_low_by_chance_and_high_with_a_rare_cluster_or_two_classes_in_one(rng):
    sizes, by_chance = [3, 4, 3, 2, 4, 3, 4, 3], []
    for _ in range(40):
        tables = [rng.dirichlet(np.full(size, 3.0), 3) for size in sizes]
        labels = rng.integers(2, size=4000)
        known = np.eye(2)[labels]
        by_chance.append(excess_of(sizes, drawn(rng, tables, labels), None, known)[0])
    assert np.mean(np.array(by_chance) > 1.0) < 0.25
    labels[:25] = 2
    tables = [np.vstack([table[:2], np.eye(len(table[0]))[table[:2].sum(axis=0).argmin()] + 0.02]) for table in tables]
    rare = [table / table.sum(axis=1, keepdims=True) for table in tables]
    assert excess_of(sizes, drawn(rng, rare, labels), None, known)[0] > 10.0
    assert excess_of(sizes, drawn(rng, rare, labels % 2), None, np.ones((4000, 1)))[0] > 10.0


def test_it_is_not_known_where_columns_are_one_code_or_combinations_are_many(rng):
    codes = rng.integers(2, size=(900, 2))
    assert excess_of([2, 2], codes, None, np.ones((900, 1)))[0] is None
    codes = rng.integers(900, size=(900, 2))
    assert excess_of([900, 900], codes, None, np.ones((900, 1)))[0] is None


def test_components_are_filled_where_rows_are_not_as_expected(monkeypatch):
    """A second component has the cluster of thirty rows, and stays empty where there is none."""
    calls, fill = [], Recombinations.filled
    monkeypatch.setattr(Recombinations, "filled", lambda self, most: calls.append(most) or fill(self, most))
    model = VBMixture(2, n_init=2, emission="categorical", random_state=0)
    rng = np.random.default_rng(4)
    tables = [np.vstack([rng.dirichlet(np.full(4, 5.0)), rng.dirichlet(np.full(4, 0.05))]) for _ in range(10)]
    X = drawn(rng, tables, np.repeat([1, 0], [30, 11_970]))
    assert model.fit(X).weights_.min() * 12_000 == approx(35, abs=1)
    assert calls
    calls.clear()
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.full(4, 5.0), 1) for _ in range(10)]
    model.fit(drawn(rng, tables, np.zeros(6000, dtype=int)))
    assert not calls
