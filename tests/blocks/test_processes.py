"""Rows that processes of this machine read: the bits of blocks in this one, and nothing is left behind."""

import pickle
import tempfile
from functools import partial

import numpy as np
import pytest
from blocks.engines import cut, killed, killed_at_first

from skvbem import VBMixture, blocks_of
from skvbem.blocks import map_reduce, tree_sum
from skvbem.errors import LostBlockError

ENDS = [300, 310, 900]


def table(rng):
    return rng.normal(size=(1200, 3)) + 5 * rng.integers(0, 3, size=(1200, 1))


def fit(blocks, **given):
    return VBMixture(3, n_init=1, tol=1e-2, random_state=0).fit(blocks, **given)


def bits(model):
    return pickle.dumps([model.lower_bounds_, model._fitted_.statistics, model.restarts_.bounds])


def test_a_fit_has_the_bits_of_blocks_here(rng, tmp_path, monkeypatch):
    """Memory-mapped arrays, functions that read files, and arrays in memory; with missing cells and weights."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    X, weight = table(rng), rng.uniform(0, 2, 1200)
    X[rng.random(X.shape) < 0.1] = np.nan
    for number, block in enumerate(cut(X, ENDS)):
        np.save(tmp_path / f"{number}.npy", block)
    paths = [tmp_path / f"{number}.npy" for number in range(4)]
    mapped = [np.load(path, mmap_mode="r") for path in paths]
    expected = bits(fit(blocks_of(cut(X, ENDS))))
    for blocks in (mapped, [partial(np.load, path) for path in paths], cut(X, ENDS)):
        assert bits(fit(blocks_of(blocks, n_jobs=2))) == expected
    assert bits(fit(blocks_of([partial(np.load, path) for path in paths]))) == expected
    weighted = fit(blocks_of(mapped, n_jobs=2), sample_weight=weight)
    assert bits(weighted) == bits(fit(blocks_of(cut(X, ENDS)), sample_weight=weight))
    del weighted
    assert not list((tmp_path / "temporary").glob("skvbem-*"))


def test_a_file_that_cannot_be_read_is_named(tmp_path, rng):
    paths = [tmp_path / f"{number}.npy" for number in range(4)]
    for path, block in zip(paths[:3], cut(table(rng), ENDS)):
        np.save(path, block)
    for n_jobs in (None, 2):
        with pytest.raises(LostBlockError, match=r"Block 3 of X cannot be read: FileNotFoundError"):
            fit(blocks_of([partial(np.load, path) for path in paths], n_jobs=n_jobs))


@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs were given")
def test_a_process_that_is_killed_changes_no_bit(tmp_path, rng):
    parts = list(rng.normal(size=(20, 3)))
    blocks = blocks_of(parts, n_jobs=2)
    assert np.array_equal(map_reduce(partial(killed_at_first, tmp_path / "once"), blocks), tree_sum(parts))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:A worker stopped while some jobs were given")
def test_a_process_that_is_killed_each_time_ends_the_pass():
    with pytest.raises(LostBlockError, match="One of blocks 0 to 1 of X ends the process that reads it"):
        map_reduce(killed, blocks_of([np.eye(2)] * 2, n_jobs=2))


def test_processes_need_a_list():
    with pytest.raises(TypeError, match="'n_jobs' of blocks_of is for a list of blocks"):
        blocks_of(lambda: iter([np.eye(2)]), n_jobs=2)
