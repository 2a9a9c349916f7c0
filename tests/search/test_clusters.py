"""The same search on clusters: the same bits, also when a worker is killed in the middle."""

import logging
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import joblib
import numpy as np
import pytest
from faulty import DATA, noted, search_over, table_of, within

from skvbem import BipartiteSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import make_bipartite
from skvbem.errors import SearchWarning
from skvbem.evidence import scorer
from skvbem.search.execution import workers
from skvbem.search.execution.runner import Runner

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of packages that are not ours


@contextmanager
def dask_cluster():
    distributed = pytest.importorskip("distributed")
    with (
        pytest.importorskip("dask").config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as them,
        distributed.Client(them),
        joblib.parallel_config(backend="dask"),
    ):
        yield


@contextmanager
def ray_cluster():
    ray = pytest.importorskip("ray")
    register_ray = pytest.importorskip("ray.util.joblib").register_ray
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # its workers begin with nothing else
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
        try:
            register_ray()
            with joblib.parallel_config(backend="ray", n_jobs=2):
                yield
        finally:
            ray.shutdown()


@contextmanager
def loky_pool():
    with joblib.parallel_config(backend="loky", n_jobs=2):
        yield


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """All candidates are sent, but for the first where time is limited: workers may take longer to start."""

    def pay(self, n_waiting, n_here):
        return self._workers.n > 1 and (self._deadline is None or bool(self._records))

    monkeypatch.setattr(Runner, "_workers_pay", pay)


@pytest.fixture(params=[dask_cluster, ray_cluster], ids=["dask", "ray"])
def cluster(request):
    with request.param():
        yield request.param


def test_tables_have_the_same_bits(cluster):
    X = make_bipartite(480, random_state=0).data
    space = BipartiteSpace({"h0": 2, "h1": 2}, ["x0", "x1", "x2", "x3"])
    scores = {"bound": "lower_bound", "ais": scorer("ais", n_chains=4, n_steps=16)}
    search = StructureSearchCV(
        VBDiscreteDAG(n_init=3), [*space][::4], scoring=scores, refit=False, random_state=0
    )  # fmt: skip
    there = table_of(search.fit(X))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        here = table_of(search.fit(X))
    with joblib.parallel_config(backend="threading", n_jobs=1):
        alone = table_of(search.fit(X))
    assert there == here == alone


def test_a_worker_killed_in_the_middle(cluster, tmp_path):
    """Nothing is lost, nothing is wrong, and what was kept is not tried again by the next search."""
    log, path = str(tmp_path / "log"), tmp_path / "search.json"
    search = search_over(120, log=log, seconds=0.05, checkpoint=path)
    killed = []

    def kill():
        assert within(60, lambda: len(noted(log, "scored")) > 30)
        lines = [line.split() for line in Path(log).read_text().splitlines()]
        killed.append(int(lines[-1][3]))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    search.fit(DATA)
    killer.join()
    assert killed
    assert killed[0] != os.getpid()
    n_begun = len(noted(log, "begun"))
    assert table_of(search) == table_of(search.fit(DATA))
    assert len(noted(log, "begun")) == n_begun
    expected = table_of(search_over(120).fit(DATA))
    assert table_of(search) == expected


def test_a_candidate_that_kills_every_worker(cluster, tmp_path):
    """It fails, the others do not."""
    search = search_over(20, faults={5: "die"}, log=str(tmp_path / "log"), seconds=0.1)
    with pytest.warns(SearchWarning, match="1 of 20 candidates failed"):
        search.fit(DATA)
    failures = search.cv_results_["failure"]
    assert [x for x in range(20) if failures[x]] == [5]
    assert "died twice" in failures[5]
    scores = np.delete(search.cv_results_["mean_test_score"], 5)
    assert (scores == np.delete(search_over(20).fit(DATA).cv_results_["mean_test_score"], 5)).all()


def test_an_error_and_a_time_budget(cluster, tmp_path):
    log = str(tmp_path / "log")
    with pytest.raises(ValueError, match="no 9 today"):
        search_over(30, faults={9: "raise"}, error_score="raise", seconds=0.05).fit(DATA)
    search = search_over(1000, log=log, seconds=0.2, time_budget=2.0).fit(DATA)
    assert search.timed_out_
    assert 1 <= len(search.cv_results_["params"]) <= 20
    time.sleep(0.5)
    assert len(noted(log, "begun")) == len(search.cv_results_["params"])


def test_data_are_scattered_once(cluster, monkeypatch, tmp_path):
    """A job of 20 MB is packed once, and its bytes do not travel with every task."""
    sent = []
    reduce = workers.Packed.__reduce__
    monkeypatch.setattr(workers.Packed, "__reduce__", lambda self: (sent.append(1), reduce(self))[1])
    X = np.zeros((1_250_000, 2))
    began = time.perf_counter()
    search_over(60, seconds=0.05, log=str(tmp_path / "log")).fit(X)
    print(f"{cluster.__name__}: {len(sent)} times, {time.perf_counter() - began:.1f} s")
    assert len(sent) <= 2
