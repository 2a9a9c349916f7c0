"""Rows that change their component one at a time: against the evidence of rows and labels, written out."""

import numpy as np
import pytest
from optima.test_recombinations import NAMES, recombinations
from scipy.special import gammaln

from skvbem.optima.transfers import Transfers

approx = pytest.approx


def value(parts, labels):
    """ln of the evidence of rows with these labels, and of the labels under uniform weights, up to a constant."""
    expected_rows = (labels == np.arange(parts.n)[:, None]) * parts.rows.weight
    of_rows = parts.prior.log_evidence(parts._statistics(expected_rows[None]))[0]
    return float(of_rows + gammaln(expected_rows.sum(axis=1) + 1.0).sum())


@pytest.mark.parametrize("name", [*NAMES, "tied", "spherical"])
def test_no_single_row_gains_by_another_component(name, rng):
    """All 40 rows are weighed, and each against the component that it fits best."""
    _, _, parts, _ = recombinations(name, rng, n=3, n_rows=40)
    labels = rng.integers(3, size=len(parts.rows))
    statistics = parts._statistics(((labels == np.arange(3)[:, None]) * parts.rows.weight)[None])[:, 0]
    transfers = Transfers(parts.model.emission, parts.prior, parts.rows, parts.natural, parts.n)
    settled = labels
    for _ in range(20):  # until nothing moves: sweeps of one call are limited
        statistics = parts._statistics(((settled == np.arange(3)[:, None]) * parts.rows.weight)[None])[:, 0]
        before, settled = settled, transfers.best_labels(settled, statistics)
        assert value(parts, settled) >= value(parts, before) - 1e-9
        if np.array_equal(before, settled):
            break
    here = value(parts, settled)
    assert here > value(parts, labels) + 1.0
    for row in range(len(settled)):
        for k in range(3):
            other = settled.copy()
            other[row] = k
            assert value(parts, other) <= here + 1e-5


def test_what_is_missing_hinders_no_transfer(rng):
    _, _, parts, _ = recombinations("full", rng, n=3, gaps=0.2)
    expected_rows = parts.transferred(parts.expected_rows)
    assert expected_rows.sum(axis=0) == approx(parts.rows.weight)
    assert np.isin(expected_rows / parts.rows.weight, (0.0, 1.0)).all()


def test_a_component_without_rows_is_what_joins_and_drops_leave(rng):
    _, _, parts, _ = recombinations("full", rng)
    kinds, expected_rows = parts.emptied(2, 1)
    assert kinds == ["join", "join", "drop"]
    assert expected_rows.sum(axis=1) == approx(np.tile(parts.rows.weight, (3, 1)))
    counts = expected_rows.sum(axis=-1)
    assert (np.count_nonzero(counts < 1e-12, axis=1) == 1).all()
    _, one, other = parts.joins()[0]
    assert expected_rows[0, one] == approx(parts.expected_rows[one] + parts.expected_rows[other])
    assert counts[2].argmin() == parts.drops()[0][1]
