"""Distinct rows for starts, sampled in passes over blocks, against all distinct rows sorted at once."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from skvbem.data import mixed
from skvbem.models.labels import seeding
from skvbem.models.labels.seeding import MAX_DISTINCT_ROWS, sample_distinct_rows


def by_sorting(hashes, weight, seed):
    """Hashes of distinct rows, and how much each counts."""
    distinct, of_row = np.unique(hashes, return_inverse=True)
    total = np.bincount(of_row.ravel(), weights=weight)
    distinct, total = distinct[total > 0], total[total > 0]
    if len(distinct) <= MAX_DISTINCT_ROWS:
        return distinct, total
    uniform = (mixed(distinct ^ np.uint64(seed)) >> np.uint64(11)) * 2.0**-53
    first = np.argsort(-np.log1p(-uniform) / total, kind="stable")[:MAX_DISTINCT_ROWS]
    return np.sort(distinct[first]), np.ones(MAX_DISTINCT_ROWS)


class Chunk(NamedTuple):
    """Rows, as far as the race between them knows them."""

    all_marks: np.ndarray
    weight: np.ndarray

    def __len__(self):
        return len(self.weight)

    def row_hashes(self, rows):
        return self.all_marks[rows]


def cut(hashes, weight, ends):
    """Segments, anew for every pass."""
    edges = [0, *ends, len(hashes)]
    return lambda: (Chunk(hashes[a:b], weight[a:b]) for a, b in pairwise(edges))


REPEATS = {
    "all different": lambda rng, n: np.arange(n),
    "few": lambda rng, n: rng.integers(0, 300, n),
    "as many as there may be sampled": lambda rng, n: rng.integers(0, MAX_DISTINCT_ROWS, n),
    "a little more": lambda rng, n: rng.integers(0, 3000, n),
    "some": lambda rng, n: rng.integers(0, n // 3, n),
    "one heavy": lambda rng, n: np.where(rng.random(n) < 0.9, 0, np.arange(n)),
    "a long tail": lambda rng, n: (rng.pareto(0.5, n) * 3).astype(np.int64) % 10**6,
}


@pytest.mark.parametrize("repeats", REPEATS)
@pytest.mark.parametrize("weights", ["ones", "whole", "any", "heavy"])
@pytest.mark.parametrize("n_buckets", [None, 64])
def test_the_sample_is_that_of_all_rows_sorted(repeats, weights, n_buckets, rng, monkeypatch):
    if n_buckets is not None:  # so few that all of them hold many hashes
        monkeypatch.setattr(seeding, "_MIN_BUCKETS", n_buckets)
        monkeypatch.setattr(seeding, "_MAX_BUCKETS", n_buckets)
    monkeypatch.setattr(seeding, "_ROWS", 1000)
    n, seed = 40_000, int(rng.integers(2**63))
    hashes = mixed(REPEATS[repeats](rng, n).astype(np.uint64) + np.uint64(1))
    weight = {
        "ones": np.ones(n),
        "whole": rng.integers(0, 4, n).astype(float),
        "any": rng.uniform(0.0, 3.0, n),
        "heavy": rng.pareto(0.7, n),
    }[weights]
    ends = np.sort(rng.integers(0, n, 5)).tolist()  # an empty chunk may be among them
    expected = by_sorting(hashes, weight, seed)
    for at in ([], ends):
        chunk, row, total = sample_distinct_rows(cut(hashes, weight, at), n, seed)
        first_rows = np.array([0, *at])
        assert (np.diff(hashes[first_rows[chunk] + row].astype(object)) > 0).all()
        assert hashes[first_rows[chunk] + row].tolist() == expected[0].tolist()
        assert total.tolist() == expected[1].tolist()


def test_memory_does_not_grow_with_the_rows(monkeypatch, rng):
    """Of a hundred thousand different rows a small share is ever counted."""
    counted = []
    close = seeding._DistinctRows.close

    def spied(tally):
        close(tally)
        counted.append(len(tally.hashes))

    monkeypatch.setattr(seeding._DistinctRows, "close", spied)
    hashes = mixed(np.arange(100_000, dtype=np.uint64))
    sample_distinct_rows(cut(hashes, np.ones(len(hashes)), []), len(hashes), 3)
    assert max(counted) < 25_000
