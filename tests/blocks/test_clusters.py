"""Rows on the workers of a dask cluster of two processes: they stay there, and a lost worker changes no bit."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from skvbem import VBFactorAnalysis, VBMixture, blocks_of
from skvbem.blocks import clusters
from skvbem.blocks.elsewhere import BlocksElsewhere
from skvbem.errors import LostBlockError

distributed = pytest.importorskip("distributed")
arrays = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages that are not ours
ENDS = (0, 700, 900, 1500, 2000)


@pytest.fixture(scope="module")
def client():
    root = str(Path(__file__).parents[2])
    sys.path.append(root)  # from which workers import this file; they have the path of the process that starts them
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as them,
        distributed.Client(them) as client,
    ):
        yield client
    sys.path.remove(root)


def rows(number):
    """A part of the rows, made where it is asked for."""
    rng = np.random.default_rng(number)
    n = ENDS[number + 1] - ENDS[number]
    return rng.normal(size=(n, 3)) + 5 * rng.integers(0, 3, size=(n, 1))


def fails_at_first(number, folder, n_times):
    """A part that cannot be made at the first tries."""
    if number == 2 and len(os.listdir(folder)) < n_times:
        (folder / f"{time.perf_counter_ns()}").touch()
        raise OSError("the disk is away")
    return rows(number)


def fails_always(number):
    raise OSError("nobody asked")


def slow(number, seconds):
    time.sleep(seconds * (number == 0))
    return rows(number)


def collection(make=rows, *args):
    """Parts as a dask array."""
    made = [dask.delayed(make, pure=False)(number, *args) for number in range(4)]
    return arrays.concatenate([arrays.from_delayed(part, (n, 3), float) for part, n in zip(made, np.diff(ENDS))])


def fit(X, **params):
    return VBMixture(3, **{"n_init": 1, "tol": 1e-2, "random_state": 0, **params}).fit(X)


def bits(model):
    return pickle.dumps([model.lower_bounds_, model._fitted_.statistics, model.restarts_.bounds])


def test_a_fit_under_a_client_is_that_of_rows_in_memory(client):
    X = np.concatenate([rows(number) for number in range(4)])
    assert isinstance(blocks_of(collection()), BlocksElsewhere)
    whole, on_workers = fit(X), fit(collection())
    assert on_workers.lower_bound_ == pytest.approx(whole.lower_bound_, rel=1e-9)
    assert bits(on_workers) == bits(fit(blocks_of([rows(number) for number in range(4)])))
    assert bits(on_workers) == bits(fit(collection(slow, 0.2).persist()))
    one, other = (VBFactorAnalysis(1, random_state=0, max_iter=20).fit(data) for data in (X, collection()))
    assert other.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-9)
    weight = np.random.default_rng(0).uniform(0, 2, len(X))
    weighted = VBMixture(3, n_init=1, tol=1e-2, random_state=0).fit(
        collection(), sample_weight=arrays.from_array(weight, chunks=[np.diff(ENDS).tolist()])
    )
    expected = VBMixture(3, n_init=1, tol=1e-2, random_state=0).fit(X, sample_weight=weight)
    assert weighted.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-9)


def test_bits_do_not_depend_on_the_number_of_workers(client):
    expected = bits(fit(collection()))
    with (
        distributed.LocalCluster(
            1, threads_per_worker=3, processes=False, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as other,
        distributed.Client(other),
    ):
        assert bits(fit(collection())) == expected


def test_rows_do_not_come_to_the_client(client, monkeypatch):
    """Each step sends back a few hundred numbers of a part."""
    sizes = []
    gathered = clusters.Cluster._gathered

    def counted(self, futures, parts):
        results = gathered(self, futures, parts)
        sizes.append(len(pickle.dumps(results)))
        return results

    monkeypatch.setattr(clusters.Cluster, "_gathered", counted)
    before = client.run(os.getpid)
    X = arrays.concatenate([collection() for _ in range(17)])  # 68 parts: more than come back in one message
    fit(X, n_init=1, tol=1e-3)
    assert max(sizes[-4:]) < 64 * 1500
    assert client.run(os.getpid) == before


def test_parts_that_fail_are_made_again_or_named(client, tmp_path):
    few, many = tmp_path / "few", tmp_path / "many"
    few.mkdir()
    many.mkdir()
    assert bits(fit(collection(fails_at_first, few, 2))) == bits(fit(collection()))
    with pytest.raises(LostBlockError, match=r"Block 2 of X cannot be had .*the disk is away"):
        fit(collection(fails_at_first, many, 9))


def test_errors_of_cells_are_those_of_rows_in_memory(client):
    X = np.concatenate([rows(number) for number in range(4)])
    X[1600, 1] = np.inf
    with pytest.raises(ValueError, match="Column 'x1' of X holds infinity"):
        fit(arrays.from_array(X, chunks=(500, 3)))


def test_answers_about_collections_are_collections():
    """Which compute nothing before they are asked to, and are of the fit as it was then."""
    X = collection(fails_always)
    model, factors = fit(np.concatenate([rows(number) for number in range(4)])), VBFactorAnalysis(1, random_state=0)
    factors.fit(rows(0))
    assert model.predict_proba(X).shape == (2000, 3)
    given = collection().rechunk((600, 2))
    some = given[given[:, 0] > 8.0]  # of sizes that are not known, 0 among them
    here = some.compute()
    for one, method in ((model, "predict_proba"), (model, "predict"), (model, "score_samples"), (factors, "transform")):
        lazy, expected = getattr(one, method)(some), getattr(one, method)(here)
        assert isinstance(lazy, arrays.Array)
        assert lazy.dtype == expected.dtype
        one.set_params(random_state=1)
        assert np.array_equal(lazy.compute(scheduler="sync"), expected)
    before = model.score_samples(given)
    now = model.score_samples(given.compute())
    model.fit(rows(0))
    assert np.array_equal(before.compute(scheduler="sync"), now)
    assert not np.array_equal(model.score_samples(given.compute()), now)


def test_without_a_client_partitions_come_one_by_one():
    code = """
import dask.array
from skvbem import blocks_of
from skvbem.blocks.elsewhere import BlocksElsewhere
import sys
assert "distributed" not in sys.modules
assert not isinstance(blocks_of(dask.array.zeros((10, 2), chunks=(5, 2))), BlocksElsewhere)
import distributed
assert not isinstance(blocks_of(dask.array.zeros((10, 2), chunks=(5, 2))), BlocksElsewhere)
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_rows_that_were_scattered_and_are_lost_are_named(client):
    futures = client.scatter([rows(number) for number in range(4)])
    X = arrays.concatenate([arrays.from_delayed(part, (n, 3), float) for part, n in zip(futures, np.diff(ENDS))])
    assert bits(fit(X)) == bits(fit(collection()))
    for process in client.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)
    client.wait_for_workers(2, timeout=60)
    with pytest.raises(LostBlockError, match=r"Block [0-3] of X cannot be had"):
        fit(X)


@pytest.mark.parametrize(
    "moment", [0.6, *(pytest.param(moment, marks=pytest.mark.slow) for moment in np.linspace(0.1, 1.9, 10))]
)
def test_a_worker_that_is_killed_changes_no_bit(client, moment):
    expected = bits(fit(collection()))
    X = collection(slow, 0.5).persist()

    def kill():
        time.sleep(moment)
        os.kill(victim, signal.SIGKILL)

    victim = sorted(client.run(os.getpid).values())[0]
    killer = threading.Thread(target=kill)
    killer.start()
    found = bits(fit(X))
    killer.join()
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()
    assert found == expected
