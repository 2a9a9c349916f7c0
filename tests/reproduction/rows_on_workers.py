"""A fit whose rows are on two workers of dask, or read by two processes of joblib, beside the same fit in one process.

Two million rows of ten columns in two parts, ten components, one start that is drawn as by default. Each fit has a
process of its own; workers have imported the library before. CPU is that of user and system, peaks are of resident
memory, imports included, and of workers the making of the rows, too. The process of a client of dask has the scheduler
of its local cluster. Bytes are those of pickled results.

    PYTHONPATH=tests python -P -m reproduction.rows_on_workers measure
    PYTHONPATH=tests python -P -m reproduction.rows_on_workers table

The record, rows_on_workers_results.jsonl next to this file, has a line for each fit.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem import VBMixture, blocks_of
from skvbem.blocks import map_reduce

RECORD = Path(__file__).with_name("rows_on_workers_results.jsonl")
N_ROWS, D, K, N_PARTS = 2_000_000, 10, 10, 2
WAYS = {"process": "one process", "dask": "dask, two workers", "joblib": "joblib, two processes"}


def rows_of(part: int, n: int = N_ROWS // N_PARTS) -> np.ndarray:
    """A part of the rows."""
    centers = 2 * np.random.default_rng(0).normal(size=(K, D))
    rng = np.random.default_rng([7, part])
    return centers[rng.integers(K, size=n)] + rng.normal(size=(n, D))


@contextmanager
def rows_in(way: str, n: int) -> Iterator[Any]:
    """The rows, as a fit takes them."""
    if way == "process":
        yield np.concatenate([rows_of(part, n) for part in range(N_PARTS)])
    elif way == "dask":
        import distributed
        from dask import array, delayed

        with (
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            parts = [array.from_delayed(delayed(rows_of)(part, n), (n, D), float) for part in range(N_PARTS)]
            X = array.concatenate(parts).persist()
            distributed.wait(X)
            yield X
            del X, client
    else:
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / f"{part}.npy" for part in range(N_PARTS)]
            for part, path in enumerate(paths):
                np.save(path, rows_of(part, n))
            yield blocks_of([np.load(path, mmap_mode="r") for path in paths], n_jobs=2)


class Watched:
    """Counts bytes that an engine's results have, and CPU seconds of this process in E steps; `spent` is its own."""

    def __init__(self, engine: Any):
        self.engine, self.in_all, self.of_steps, self.seconds, self.spent = engine, 0, [], [], 0.0

    def kept(self, step: Callable, parts: Any) -> list:
        """As the engine."""
        return self.engine.kept(step, parts)

    def results(self, step: Callable, parts: Any) -> Iterator:
        """As the engine, all at once."""
        began = time.process_time()
        found = list(self.engine.results(step, parts))
        ended = time.process_time()
        size = len(pickle.dumps(found))
        self.in_all += size
        if step.functions and type(step.functions[-1]).__name__ == "MixtureEStep":
            self.of_steps.append(size)
            self.seconds.append(ended - began)
        self.spent += time.process_time() - ended
        return iter(found)


def used(process: Any) -> float:
    """CPU seconds of a process."""
    times = process.cpu_times()
    return times.user + times.system


def peak(pid: int) -> float:
    """MB that a process had at most."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[0]) / 1e3


def measured(way: str, n: int) -> dict:
    """The line of a fit."""
    import psutil

    here = psutil.Process()
    with rows_in(way, n) as X:
        watched = None
        if way != "process":
            X = blocks_of(X)
            map_reduce(_imported, X)
            X.engine = watched = Watched(X.engine)
        workers = {child: used(child) for child in here.children(recursive=True)}
        began, wall = used(here), time.perf_counter()
        model = VBMixture(K, n_init=1, random_state=0, max_iter=50).fit(X)
        line = {"way": way, "seconds": used(here) - began, "wall": time.perf_counter() - wall, "peak": peak(here.pid)}
        line |= {"bound": float(model.lower_bound_), "n_steps": int(model.n_iter_)}
        if watched is not None:
            shares = {child: used(child) - before for child, before in workers.items() if child.is_running()}
            line["seconds"] -= watched.spent
            line |= {"workers": sorted(shares.values())[-2:], "peaks": sorted(peak(child.pid) for child in shares)[-2:]}
            line |= {"bytes": watched.in_all, "bytes_of_step": max(watched.of_steps)}
            line["milliseconds_of_step"] = 1e3 * float(np.median(watched.seconds))
    return line


def _imported(part: np.ndarray) -> int:
    """A step that leaves a worker with the library imported."""
    VBMixture(2, n_init=1, max_iter=5, random_state=0).fit(part[:50, :2])
    return len(part)


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: CPU of the client and of the busiest worker, of a step, KB of it, and peaks."""
    for line in lines:
        row = [WAYS[line["way"]], f"{line['seconds']:.1f}", "", "", "", f"{line['peak']:.0f}", ""]
        if line["way"] != "process":
            row[2], row[3] = f"{max(line['workers']):.1f}", f"{line['milliseconds_of_step']:.0f}"
            row[4], row[6] = f"{line['bytes_of_step'] / 1e3:.0f}", f"{max(line['peaks']):.0f}"
        yield tuple(row)


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table", "one"])
    parser.add_argument("--way", choices=list(WAYS))
    options = parser.parse_args()
    if options.what == "one":
        print(json.dumps(measured(options.way, N_ROWS // N_PARTS)))
        return
    if options.what == "measure":
        RECORD.unlink(missing_ok=True)
        for way in WAYS:
            command = [sys.executable, "-P", "-m", "reproduction.rows_on_workers", "one", "--way", way]
            found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            add_to_record(RECORD, json.loads(found.splitlines()[-1]))
    for row in table_rows(read_record(RECORD)):
        print(", ".join(row))


if __name__ == "__main__":
    main()
