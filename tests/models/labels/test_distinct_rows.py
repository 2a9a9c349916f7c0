"""Distinct rows for starts, sampled in passes over blocks, against all distinct rows sorted at once."""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from skvbem.blocks import Blocks
from skvbem.blocks.elsewhere import BlocksElsewhere, Part
from skvbem.data import mixed, row_hashes
from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.models.labels import sampled_rows as seeding
from skvbem.models.labels.distinct_rows import MAX_DISTINCT_ROWS, DistinctRows
from skvbem.models.labels.sampled_rows import sampled, sampled_elsewhere
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights


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
    return Blocks(lambda: (Chunk(hashes[a:b], weight[a:b]) for a, b in pairwise(edges)))


class Here:
    """An engine whose parts are where it is."""

    def results(self, step, parts):
        return (step(*part.items) for part in parts)

    def kept(self, step, parts):
        return list(self.results(step, parts))


def elsewhere(parts):
    return BlocksElsewhere(Here(), [Part(number, (rows,)) for number, rows in enumerate(parts)])


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
    for at, sample in (([], sampled), (ends, sampled), (ends, sampled_elsewhere)):
        parts = cut(hashes, weight, at)
        found = sample(parts if sample is sampled else elsewhere(parts), n, seed, MAX_DISTINCT_ROWS)
        chunk, row, total = found.chunk, found.row, found.total
        first_rows = np.array([0, *at])
        assert (np.diff(hashes[first_rows[chunk] + row].astype(object)) > 0).all()
        assert hashes[first_rows[chunk] + row].tolist() == expected[0].tolist()
        if sample is sampled:
            assert total.tolist() == expected[1].tolist()
        else:  # added part by part
            assert total == pytest.approx(expected[1], rel=1e-13)


def test_memory_does_not_grow_with_the_rows(monkeypatch, rng):
    """Of a hundred thousand different rows a small share is ever counted."""
    counted = []
    close = seeding.Sample.close

    def spied(tally):
        close(tally)
        counted.append(len(tally.hashes))

    monkeypatch.setattr(seeding.Sample, "close", spied)
    hashes = mixed(np.arange(100_000, dtype=np.uint64))
    sampled(cut(hashes, np.ones(len(hashes)), []), len(hashes), 3, MAX_DISTINCT_ROWS)
    assert max(counted) < 25_000


def test_larger_samples_have_the_rows_of_smaller_ones(rng):
    """And count as much as all rows, whatever their order."""
    values = rng.normal(size=(30_000, 2))
    emission = DenseGaussian.for_data(values)
    model = Mixture(emission, FiniteWeights(np.ones(2)), emission.default_prior(2))
    samples = {}
    for order in (slice(None), rng.permutation(30_000)):
        given = np.ascontiguousarray(values[order])
        data = model.compile(emission.prepare(given), row_hashes=partial(row_hashes, [given]))
        for most in (500, 2000, 8000):
            rows = DistinctRows.of(emission, data, most)
            assert len(rows) == most
            assert rows.is_sample
            assert rows.weight.sum() == pytest.approx(30_000)
            assert rows.counting(3.0).weight.sum() == pytest.approx(3.0 * most)
            hashes = set(rows.hashes.tolist())
            assert samples.setdefault(most, hashes) == hashes
    assert samples[500] < samples[2000] < samples[8000]


def test_few_distinct_rows_are_all_of_them(rng):
    values = rng.integers(0, 3, size=(9000, 1)).astype(float)
    emission = DenseGaussian.for_data(values)
    model = Mixture(emission, FiniteWeights(np.ones(2)), emission.default_prior(2))
    data = model.compile(emission.prepare(values), row_hashes=partial(row_hashes, [values]))
    rows = DistinctRows.of(emission, data)
    assert not rows.is_sample
    assert rows.counting(3.0) is rows
    assert sorted(rows.weight.tolist()) == sorted(np.unique(values, return_counts=True)[1].tolist())
    natural = (model.prior + model.statistics_of(rng.dirichlet(np.ones(2), 9000), data)).expected_natural()[:, None]
    few, every = model.expect(natural, model.on(rows, data)), model.expect(natural, data)
    assert few.log_normalizer == pytest.approx(every.log_normalizer)
    assert few.statistics == pytest.approx(every.statistics)
