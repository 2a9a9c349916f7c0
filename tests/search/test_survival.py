"""Searches that are killed, interrupted, or run out of disk, in processes of their own."""

import os
import pickle
import random
import re
import shutil
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from faulty import DATA, lives, noted, nursery, search_over, search_over_networks, table_of, within, workers_below

from skvbem.search.execution.deadlines import end_with

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")

N, SECONDS = 40, 0.01
PATIENCE = 300  # seconds, for processes to start on a machine that is busy


@pytest.fixture(scope="module")
def searches():
    with nursery() as found:
        yield found


@pytest.fixture(scope="module")
def expected():
    """The table of a search that nothing happened to."""
    return table_of(search_over(N).fit(DATA))


def orders(tmp_path, **options):
    places = {"checkpoint": str(tmp_path / "search.json"), "log": str(tmp_path / "log"), "out": str(tmp_path / "out")}
    return {"n": N, "seconds": SECONDS, **places, **options}


def told(tmp_path):
    return pickle.loads((tmp_path / "out").read_bytes())


def kill_at(moment, searches, tmp_path, expected, n_jobs):
    """Kill a search that many seconds after its first candidate, resume it, and see what was lost."""
    # the checkpoint is rewritten all the time, so that it is killed in that too
    what = orders(tmp_path, n_jobs=n_jobs, long_journal=0)
    pid = searches.begin(**what)
    assert within(PATIENCE, lambda: noted(what["log"], "begun"))
    time.sleep(moment)
    workers = workers_below(pid)
    os.kill(pid, signal.SIGKILL)
    assert searches.ended(pid) in (-signal.SIGKILL, 0)
    assert within(10, lambda: not any(map(lives, workers)))
    scored = noted(what["log"], "scored")
    assert searches.run(**what | {"n_jobs": 1}) == 0
    assert told(tmp_path)["table"] == expected
    assert told(tmp_path)["warnings"] == []
    again = Counter(noted(what["log"], "scored")) - Counter(range(N))
    assert len(again) <= n_jobs, f"tried again: {again}"  # those in work
    assert sorted(os.listdir(tmp_path)) == ["log", "out", "search.json"]
    return len(scored)


def test_killed_at_any_moment(searches, tmp_path, expected):
    draw = random.Random(1)
    n_scored = []
    for k in range(5):
        (tmp_path / str(k)).mkdir()
        n_scored.append(kill_at(draw.uniform(0, 1.2 * N * SECONDS), searches, tmp_path / str(k), expected, 1))
    assert 0 < sum(n_scored) < 5 * N


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_killed_at_fifty_moments(searches, tmp_path, expected, n_jobs):
    draw = random.Random(2)
    for k in range(50):
        (tmp_path / str(k)).mkdir()
        kill_at(draw.uniform(0, 1.5 * N * SECONDS), searches, tmp_path / str(k), expected, n_jobs)


def test_killed_and_resumed_until_it_ends(searches, tmp_path, expected):
    """Nothing is tried more often than searches were killed, and never again once it was finished."""
    what = orders(tmp_path)
    for _ in range(3):
        pid = searches.begin(**what)
        n_before = len(noted(what["log"], "scored"))
        assert within(PATIENCE, lambda n=n_before: len(noted(what["log"], "scored")) >= n + 8)
        os.kill(pid, signal.SIGKILL)
        searches.ended(pid)
    assert searches.run(**what) == 0
    assert told(tmp_path)["table"] == expected
    assert sum(Counter(noted(what["log"], "scored")).values()) <= N + 3


@pytest.mark.slow
def test_workers_end_with_their_parent(searches, tmp_path, expected):
    """Also one that had nothing to do yet."""
    kill_at(0.1, searches, tmp_path, expected, 2)


@pytest.mark.parametrize("networks", [pytest.param("discrete", marks=pytest.mark.slow), "mixed"])
def test_networks_go_on_where_two_workers_were_killed(networks, searches, tmp_path):
    """The table is that of a search that nothing happened to, and records that were kept are in it as they were."""
    undisturbed, X = search_over_networks(networks)
    what = {
        "networks": networks,
        "n_jobs": 2,
        "checkpoint": str(tmp_path / "search.json"),
        "out": str(tmp_path / "out"),
    }
    pid, journal = searches.begin(**what), tmp_path / "search.json.journal"
    assert within(PATIENCE, lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 5)
    os.kill(pid, signal.SIGKILL)
    searches.ended(pid)
    kept = journal.read_bytes().splitlines()[1:-1]
    assert searches.run(**what) == 0
    assert told(tmp_path)["table"] == table_of(undisturbed.fit(X))
    at_last = (tmp_path / "search.json").read_bytes()
    assert all(re.search(rb'"fit_seconds": [^]]*', line).group() in at_last for line in kept)


def test_only_workers_watch_their_parents():
    n_threads = threading.active_count()
    end_with(os.getpid())
    end_with(os.getppid())
    assert threading.active_count() == n_threads


@pytest.mark.parametrize("to_all", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_interrupted(searches, tmp_path, expected, to_all):
    """Ctrl-C reaches all processes of a terminal, `kill -INT` one."""
    what = orders(tmp_path, n_jobs=2, seconds=0.05)
    pid = searches.begin(**what)
    assert within(PATIENCE, lambda: len(noted(what["log"], "scored")) >= 5)
    workers = workers_below(pid)
    assert len(workers) == 2
    (os.killpg if to_all else os.kill)(pid, signal.SIGINT)
    began = time.monotonic()
    assert searches.ended(pid) == 0
    assert time.monotonic() - began < 10
    assert within(10, lambda: not any(map(lives, workers)))
    assert told(tmp_path)["error"].startswith("KeyboardInterrupt")
    assert told(tmp_path)["workers"] == 0
    assert not any(name.endswith("_") for name in told(tmp_path)["state"])
    n_finished = len(noted(what["log"], "scored"))
    assert n_finished < N
    assert searches.run(**{**what, "n_jobs": 1}) == 0
    assert told(tmp_path)["table"] == expected
    assert len(noted(what["log"], "scored")) <= N + 2


@pytest.mark.slow
def test_interrupted_twice(searches, tmp_path, expected):
    """The second Ctrl-C comes while the first is seen to."""
    what = orders(tmp_path, n_jobs=2, seconds=0.05)
    pid = searches.begin(**what)
    assert within(PATIENCE, lambda: len(noted(what["log"], "scored")) >= 5)
    workers = workers_below(pid)
    for _ in range(2):
        os.killpg(pid, signal.SIGINT)
        time.sleep(0.02)
    began = time.monotonic()
    searches.ended(pid)
    assert time.monotonic() - began < 10
    assert within(10, lambda: not any(map(lives, workers)))
    assert searches.run(**{**what, "n_jobs": 1}) == 0
    assert told(tmp_path)["table"] == expected


@pytest.mark.slow
def test_the_folder_for_temporary_files_goes_away(searches, tmp_path, expected):
    """What workers share lies there: they do without, or the search says that it is gone. No result is wrong."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "search").mkdir()
    what = orders(tmp_path / "search", n_jobs=2, seconds=0.02, config={"temp_folder": str(tmp_path / "temporary")})
    pid = searches.begin(**what)
    assert within(PATIENCE, lambda: len(noted(what["log"], "scored")) >= 5)
    shutil.rmtree(tmp_path / "temporary")
    assert searches.ended(pid) == 0
    found = told(tmp_path / "search")
    assert found.get("table", expected) == expected
    if "error" in found:
        assert searches.run(**{**what, "n_jobs": 1, "config": {}}) == 0
        assert told(tmp_path / "search")["table"] == expected


def test_a_file_that_may_grow_no_further(searches, tmp_path, expected):
    """As on a full disk: the search goes on with a warning, and what was written is good."""
    what = orders(tmp_path, seconds=0.0)
    assert searches.run(**what, most_bytes=4_000) == 0
    found = told(tmp_path)
    assert found["table"] == expected
    assert [text.startswith("SearchWarning: The checkpoint") for text in found["warnings"]] == [True]
    assert (tmp_path / "search.json.journal").stat().st_size <= 4_000
    n_kept = len((tmp_path / "search.json.journal").read_bytes().splitlines())
    assert n_kept > 3
    assert searches.run(**what) == 0
    assert told(tmp_path)["table"] == expected
    assert len(noted(what["log"], "begun")) == 2 * N - n_kept


def test_two_searches_on_one_file(searches, tmp_path, expected):
    what = orders(tmp_path, seconds=0.05)
    first = searches.begin(**what)
    assert within(PATIENCE, lambda: noted(what["log"], "scored"))
    assert searches.run(**{**what, "out": str(tmp_path / "other")}) == 0
    other = pickle.loads((tmp_path / "other").read_bytes())
    assert f"in use by another search (process {first})" in other["error"]
    assert searches.ended(first) == 0
    assert told(tmp_path)["table"] == expected
    assert sorted(noted(what["log"], "begun")) == [*range(N)]


def test_rescoring_goes_on_too(searches, tmp_path):
    from skvbem import StructureSearchCV, VBDiscreteDAG
    from skvbem.datasets import load_carcinoma

    X, path = load_carcinoma().data, tmp_path / "search.json"
    search = StructureSearchCV(
        VBDiscreteDAG(n_init=2), {"latents": [1, 2, 3]}, scoring="lower_bound", rescoring="collapsed", n_rescored=2,
        random_state=0, refit=False, checkpoint=path,
    )  # fmt: skip
    table = table_of(search.fit(X))
    times = search.cv_results_["mean_fit_time"], search.cv_results_["mean_score_time"]
    assert table_of(search.fit(X)) == table
    assert all((search.cv_results_[f"mean_{what}_time"] == found).all() for what, found in zip(("fit", "score"), times))


def test_a_search_that_draws_anew_cannot_be_resumed(tmp_path):
    with pytest.raises(ValueError, match="Set 'random_state' to a number"):
        search_over(3, random_state=None, checkpoint=tmp_path / "search.json").fit(DATA)
