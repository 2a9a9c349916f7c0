"""Transfers by a compiled loop, and searches among partitions: against the evidence of rows and labels, written out."""

from dataclasses import replace

import numpy as np
import pytest
from optima.test_recombinations import recombinations
from optima.test_transfers import value

from skvbem import VBMixture
from skvbem.optima import transfers as of_partitions
from skvbem.optima.transfers import Partitions
from skvbem.optima.tuning import TUNING

approx = pytest.approx


def partitions_of(rng, weights=None, name="full", n_rows=40, labels=None, n_levels=0, n=3):
    """Partitions of rows among components, and what `value` asks of."""
    _, _, parts, _ = recombinations(name, rng, n=n, n_rows=n_rows)
    weight = parts.rows.weight if weights is None else weights
    parts.rows = replace(parts.rows, weight=weight, labels=labels)
    return parts, Partitions(parts._emission, parts._blocks, parts.rows, parts.prior, n, n_levels)


def transferred_row_by_row(parts, labels, order):
    """Labels after transfers, each judged by the evidence of all rows."""
    labels, here = labels.copy(), value(parts, labels)
    while True:
        n_moved = 0
        for row in order:
            others = []
            for k in range(parts.n):
                other = labels.copy()
                other[row] = k
                others.append(value(parts, other))
            if max(others) > here + 1e-6:
                labels[row], here = int(np.argmax(others)), max(others)
                n_moved += 1
        if not n_moved:
            return labels


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_go_where_rows_and_labels_are_most_probable(weighted, rng):
    parts, partitions = partitions_of(rng, weights=rng.uniform(0.3, 2.5, 40) if weighted else None)
    assert (partitions.order == np.argsort(parts.rows.hashes, kind="stable")).all()
    evidences, values = [], []
    for _ in range(3):
        labels = rng.integers(3, size=40)
        transferred, evidence = partitions.transferred(labels)
        assert (transferred == transferred_row_by_row(parts, labels, partitions.order)).all()
        evidences.append(evidence)
        values.append(value(parts, transferred))
        assert values[-1] > value(parts, labels) + 1
    assert np.subtract(evidences, evidences[0]) == approx(np.subtract(values, values[0]), abs=1e-8)


def test_components_may_come_and_go_empty(rng):
    parts, partitions = partitions_of(rng)
    transferred, _ = partitions.transferred(np.zeros(40, dtype=int))
    assert (transferred == transferred_row_by_row(parts, np.zeros(40, dtype=int), partitions.order)).all()


def test_rows_with_known_labels_stay_where_they_are(rng):
    known = np.where(rng.random(40) < 0.3, rng.integers(2, size=40), -1)
    parts, partitions = partitions_of(rng, labels=known, n_levels=2)
    labels = np.where(known >= 0, known, rng.integers(3, size=40))
    transferred, _ = partitions.transferred(labels)
    assert (transferred[known >= 0] == known[known >= 0]).all()
    free = [row for row in partitions.order if known[row] < 0]
    assert len(free) == len(partitions.order)
    assert (transferred == transferred_row_by_row(parts, labels, free)).all()
    for found in partitions.searched(labels, [(2, 0), (2, 1)], 5, rng):
        assert (found[known >= 0] == known[known >= 0]).all()


def test_no_row_order_matters(rng):
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) @ np.diag([3.0, 0.3, 1.0]) + 1])
    order = rng.permutation(120)
    fits = [VBMixture(4, random_state=0).fit(rows) for rows in (X, X[order])]
    assert fits[0].lower_bound_ == approx(fits[1].lower_bound_, abs=1e-6)
    assert fits[0].predict(X)[order].tolist() == fits[1].predict(X[order]).tolist()


def test_of_changes_after_the_first_those_that_gain_are_kept(rng, monkeypatch):
    parts, partitions = partitions_of(rng, n_rows=150, n=6)
    labels, _ = partitions.transferred(rng.integers(6, size=150))
    values = {}
    for n_changes in (1, 4):
        monkeypatch.setattr(of_partitions, "TUNING", replace(TUNING, n_of_kind=n_changes))
        found = [partitions.searched(labels, [(0, 1), (1, 2)], 1, np.random.default_rng(k))[0] for k in range(12)]
        assert all((each == partitions.transferred(each)[0]).all() for each in found)
        values[n_changes] = np.array([value(parts, each) for each in found])
    assert (values[4] >= values[1] - 1e-9).all()
    assert (values[4] > values[1] + 1e-6).any()


@pytest.mark.parametrize("name", ["tied", "diag", "poisson", "independent"])
def test_elsewhere_there_is_no_swift_way(name, rng):
    parts, partitions = partitions_of(rng, name=name)
    labels = np.zeros(len(parts.rows), dtype=int)
    assert partitions.transferred(labels) is None
    assert partitions.searched(labels, [(0, 1)], 3, rng) == []
    assert len(parts.changed_and_transferred(3, rng)) == 0


def test_gaps_have_no_swift_way(rng):
    _, _, parts, _ = recombinations("full", rng, n=3, gaps=0.2)
    assert len(parts.changed_and_transferred(3, rng)) == 0


def test_a_change_makes_room_and_fills_it(rng):
    _, partitions = partitions_of(rng)
    labels = rng.integers(3, size=40)
    for _ in range(20):
        changed = partitions._changed(labels, 0, 2, rng)
        moved = changed != labels
        assert (changed[moved & (labels != 0)] == 0).all()
        assert np.isin(changed[labels == 0], [0, 2]).all()
        assert (changed == 0).any()
