"""An estimator whose fits and scores go wrong as told, and searches over it in processes that can be killed.

Run as a script it is a nursery: it has everything imported, and for each line it is given forks a process that runs a
search, so that a test can kill dozens of them in seconds.
"""

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from skvbem import BipartiteSpace, StructureSearchCV, VBDiscreteDAG, VBNetwork

DATA = np.arange(12.0).reshape(6, 2)


class Faulty(BaseEstimator):
    """Its score is a function of x; `faults` maps x to what happens when it is fitted."""

    def __init__(self, x=0, faults=None, log=None, seconds=0.0, random_state=None):
        self.x = x
        self.faults = faults
        self.log = log
        self.seconds = seconds
        self.random_state = random_state

    def fit(self, X, y=None):
        note(self.log, f"begun {self.x} by {os.getpid()}")
        time.sleep(self.seconds)
        go_wrong((self.faults or {}).get(self.x), self.log, self.x)
        self.value_ = float(np.sin(self.x) * np.asarray(X, float).sum() / 3)
        self.n_free_parameters_ = 1 + self.x % 7
        return self


class Counted:
    """Counts how often it is pickled in this process."""

    n = 0

    def __reduce__(self):
        type(self).n += 1
        return Counted, ()


def where_data_lie(model, X, y=None):
    """Whether this process has X for itself, from a worker's point of view; x tells candidates apart."""
    base = X["array"]
    while base is not None and not isinstance(base, np.memmap):
        base = base.base if isinstance(base, np.ndarray) else None
    return model.x + (1000.0 if isinstance(base, np.memmap) else 0.0)


class Dict(Faulty):
    """Fits any X."""

    def fit(self, X, y=None):
        return self


def value(estimator, X, y=None):
    """The score."""
    note(estimator.log, f"scored {estimator.x} by {os.getpid()}")
    return estimator.value_


def note(log, line):
    if log is not None:
        with open(log, "a") as file:
            file.write(f"{line}\n")


def noted(log, word):
    """Every x that a log has such a line of, as often as it has one."""
    lines = [line.split() for line in Path(log).read_text().splitlines()] if Path(log).exists() else []
    return [int(line[1]) for line in lines if line[0] == word]


def go_wrong(fault, log, x):
    if fault == "raise":
        raise ValueError(f"no {x} today")
    if fault == "unsendable":
        raise Unsendable(x, "what cannot be sent")
    if fault == "memory":
        raise MemoryError(f"no room for {x}")
    if fault == "die" or (fault == "die once" and noted(log, "begun").count(x) == 1):
        os.kill(os.getpid(), signal.SIGKILL)


class Unsendable(Exception):
    """Cannot be pickled, whatever a library makes of exceptions."""

    def __init__(self, x, what):
        super().__init__(f"{what}: {x}")
        self.held = threading.Lock()


def search_over(n, *, faults=None, log=None, seconds=0.0, **options):
    """A search over Faulty(x=0 ... n-1), by its value."""
    model = Faulty(faults=faults, log=log, seconds=seconds)
    options = {"scoring": value, "refit": False, "random_state": 0} | options
    return StructureSearchCV(model, {"x": range(n)}, **options)


def search_over_networks(kind, **options):
    """A search over the structures of a kind of network, and its data."""
    rng = np.random.default_rng(0)
    states = rng.integers(2, size=(40, 2))
    X = np.where(rng.random((40, 3)) < 0.9, states[:, [0, 1, 1]], 1 - states[:, [0, 1, 1]]).astype(float)
    emission, model = {"categorical": [0], "gaussian": [1], "poisson": [2]}, {"n_init": 2}
    if kind == "mixed":
        X[:, 1:] = 5 * X[:, 1:] + rng.poisson(3.0, size=(40, 2))
        estimator = VBNetwork(emission=emission, init="random", **model)
    else:
        estimator = VBDiscreteDAG(**model)
    space = BipartiteSpace({"h0": 2, "h1": 2}, ["x0", "x1", "x2"])
    options = {"scoring": "lower_bound", "rescoring": False, "refit": False, "random_state": 0} | options
    return StructureSearchCV(estimator, space, **options), X


def table_of(search):
    """`cv_results_` but for the times, as bytes and texts that can be compared exactly."""
    found = {}
    for name, column in search.cv_results_.items():
        if not name.endswith("_time"):
            numbers = isinstance(column, np.ndarray) and column.dtype != object
            found[name] = np.ma.filled(column, 0).tobytes() if numbers else str(list(column))
    return found


# Processes ------------------------------------------------------------------------------------------------------------


def descendants(pid):
    """Processes below one, whoever they are."""
    below: dict = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        state, parent = text.rpartition(")")[2].split()[:2]
        if state != "Z":
            below.setdefault(int(parent), []).append(int(path.parent.name))
    found, last = [], [pid]
    while last:
        last = [child for parent in last for child in below.get(parent, ())]
        found += last
    return found


def workers_below(pid):
    """Those of them that work for joblib."""
    return [child for child in descendants(pid) if b"LokyProcess" in _command_line(child)]


def _command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def within(seconds, condition):
    """Whether a condition comes true in time."""
    until = time.monotonic() + seconds
    while not (done := condition()) and time.monotonic() < until:
        time.sleep(0.01)
    return bool(done)


class Nursery:
    """Searches in processes of their own."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def begin(self, **orders) -> int:
        """Begin a search; the process that runs it."""
        return self._asked({"begin": orders})

    def ended(self, pid) -> int:
        """Wait until a process has ended; how."""
        return self._asked({"ended": pid})

    def run(self, **orders) -> int:
        return self.ended(self.begin(**orders))

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _asked(self, what):
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def nursery():
    found = Nursery()
    try:
        yield found
    finally:
        found.close()


def _run(
    out=None, long_journal=None, most_bytes=None, n=40, faults=None, eager=True, config=None, networks=None, **options
):
    """One search; what came of it goes to a file."""
    import joblib

    from skvbem.search.checkpoint import checkpoint
    from skvbem.search.execution import runner

    if long_journal is not None:
        checkpoint._LONG = long_journal
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    if eager:
        runner.Runner._workers_pay = lambda self, n_waiting, n_here: self._workers.n > 1
    if networks is None:
        search, X = search_over(n, faults={int(x): fault for x, fault in (faults or {}).items()}, **options), DATA
    else:
        search, X = search_over_networks(networks, **options)
    told = {}
    with warnings.catch_warnings(record=True) as caught, joblib.parallel_config(**(config or {})):
        warnings.simplefilter("always")
        try:
            search.fit(X)
            told = {"table": table_of(search), "over": search.stopped_by_}
        except BaseException as error:
            told = {"error": f"{type(error).__name__}: {error}", "workers": len(workers_below(os.getpid()))}
    told |= {
        "warnings": [f"{each.category.__name__}: {each.message}" for each in caught],
        "state": sorted(vars(search)),
    }
    if out is not None:
        Path(f"{out}.part").write_bytes(pickle.dumps(told))
        os.replace(f"{out}.part", out)


def _serve():
    for line in sys.stdin:
        order = json.loads(line)
        if "begin" in order:
            answer = os.fork()
            if not answer:
                os.setpgid(0, 0)
                try:
                    _run(**order["begin"])
                finally:
                    os._exit(0)
        else:
            _, status = os.waitpid(order["ended"], 0)
            answer = os.waitstatus_to_exitcode(status)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    import faulty  # so that workers find the classes by this name

    faulty._serve()
