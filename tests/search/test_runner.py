"""Candidates tried here and by workers: the same records, each once, whatever fails meanwhile."""

import os
import pickle
import time
from collections import Counter, deque
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from faulty import (
    DATA,
    Counted,
    Dict,
    Faulty,
    Unsendable,
    noted,
    search_over,
    table_of,
    value,
    where_data_lie,
    within,
    workers_below,
)
from laws.geometric import Geometric

from skvbem import VBHMM, BipartiteSpace, StructureSearchCV, VBDiscreteDAG, VBMixture
from skvbem.datasets import make_bipartite
from skvbem.emissions import EMISSIONS, register_emission
from skvbem.errors import SearchWarning
from skvbem.evidence import scorer
from skvbem.search.checkpoint.checkpoint import Checkpoint
from skvbem.search.execution import runner as runner_module
from skvbem.search.execution import workers as workers_module
from skvbem.search.execution.deadlines import Deadline
from skvbem.search.execution.jobs import AllRowsJob, EvidenceJob, Record, digest
from skvbem.search.execution.readings import Readings
from skvbem.search.execution.runner import Runner
from skvbem.search.execution.workers import Packed, Shared, Workers, try_batch
from skvbem.spaces import coerce_space


@pytest.fixture
def eager(monkeypatch):
    """Everything is sent to workers, however little it is."""
    monkeypatch.setattr(Runner, "_workers_pay", lambda self, n_waiting, n_here: self._workers.n > 1)


@pytest.fixture
def log(tmp_path):
    return str(tmp_path / "log")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "search.json"


def settings(n):
    return [{"x": x} for x in range(n)]


def job_of(*, X=DATA, error_score=np.nan, score=value, **params):
    return AllRowsJob(Faulty(**params), X, None, {}, {"score": score}, error_score)


@contextmanager
def known_at(path, job):
    with Checkpoint.opened(path, job.fingerprint) as checkpoint:
        yield checkpoint.known


# The same for any number of workers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("backend", "n_jobs"), [("loky", 2), ("threading", 2), ("threading", 5)])
def test_any_number_of_workers_makes_the_same_table(eager, log, backend, n_jobs):
    alone = search_over(60, faults={7: "raise", 13: "memory"})
    shared = search_over(60, faults={7: "raise", 13: "memory"}, log=log, n_jobs=n_jobs)
    with pytest.warns(SearchWarning, match="2 of 60 candidates failed"):
        alone.fit(DATA)
    with pytest.warns(SearchWarning, match="2 of 60"), joblib.parallel_config(backend=backend):
        shared.fit(DATA)
    assert table_of(alone) == table_of(shared)
    assert sorted(noted(log, "begun")) == [*range(60)]
    failures = shared.cv_results_["failure"]
    assert failures[7].startswith("ValueError: no 7 today")
    assert failures[13].startswith("MemoryError: no room for 13")


@pytest.mark.filterwarnings("ignore:.*weights are worth")
@pytest.mark.parametrize("score", ["lower_bound", "ais"])
def test_structures_have_the_same_bits_with_any_number_of_workers(eager, score):
    X = make_bipartite(60, random_state=0).data
    space = BipartiteSpace({"h0": 2, "h1": 2}, ["x0", "x1", "x2", "x3"])
    options = {"n_chains": 4, "n_steps": 8} if score == "ais" else {}
    tables = []
    for n_jobs in (1, 2):
        search = StructureSearchCV(
            VBDiscreteDAG(n_init=2),
            [*space][::17],
            scoring=scorer(score, **options),
            n_jobs=n_jobs,
            refit=False,
            random_state=0,
        )
        tables.append(table_of(search.fit(X)))
    assert tables[0] == tables[1]


def test_each_candidate_is_tried_once(log):
    runner = Runner(job_of(log=log), most=5)
    records = runner([{"x": 1}, {"x": 2}, {"x": 1}])
    assert records[0] is records[2]
    assert runner([{"x": 2}, *settings(9)])[0] is records[1]
    assert sorted(noted(log, "begun")) == [0, 1, 2, 3, 4]
    assert runner.over == "max_candidates"
    assert [setting["x"] for setting, _ in runner.tried] == [1, 2, 0, 3, 4]


# Batches and data -----------------------------------------------------------------------------------------------------


class Batches(Workers):
    """Sizes of batches, cut as if each were sent at once."""

    def _stream(self, batches, sent):
        for batch in batches:
            yield batch, [workers_module.Outcome(name, Record({"score": 0.0})) for name, _ in batch]


@pytest.mark.parametrize(("each", "least", "most"), [(None, 1, 1), (3.0, 1, 1), (0.01, 1, 25), (1e-9, 1, 125)])
def test_batches_take_about_a_quarter_of_a_second_and_grow_small_in_the_end(each, least, most):
    workers = Batches(job_of(), 2, None, None)
    waiting, sizes = deque((str(k), {}) for k in range(1000)), []
    stream = workers._stream
    workers._stream = lambda batches, sent: ((sizes.append(len(b)), (b, o))[1] for b, o in stream(batches, sent))
    assert len(list(workers.tried(waiting, lambda: False, lambda: each))) == 1000
    assert sum(sizes) == 1000
    assert max(sizes) == most
    assert sizes[-1] == least


def test_data_are_pickled_once_and_large_arrays_are_shared():
    X = {"array": np.zeros(300_000), "counted": Counted()}
    job = AllRowsJob(Dict(), X, None, {}, {"score": where_data_lie}, "raise")
    Counted.n = 0
    with Runner(job, n_jobs=2) as runner:
        runner._workers_pay = lambda *args: True
        for some in (settings(40), settings(80)):
            assert [record.values["score"] for record in runner(some)] == [1000.0 + each["x"] for each in some]
    assert Counted.n == 1


def test_a_packed_job_is_the_job():
    rng = np.random.default_rng(0)
    X = {
        "c": rng.random((300, 400)),
        "f": np.asfortranarray(rng.random((300, 400))),
        "small": np.arange(3),
        "text": "x",
    }
    packed = Packed.of(job_of(X=X))
    sent = pickle.dumps(packed)
    assert len(sent) > 2 * X["c"].nbytes
    assert packed.__sizeof__() == pytest.approx(len(sent), rel=0.01)
    job = pickle.loads(sent).job
    assert job.X["text"] == "x"
    for name in ("c", "f", "small"):
        assert np.array_equal(job.X[name], X[name])
        assert job.X[name].flags.f_contiguous == X[name].flags.f_contiguous
    assert np.shares_memory(packed._buffers[0], X["c"])


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_candidate_is_begun_after_the_limit(eager, log, n_jobs):
    """Though batches of several, and of hours, wait at the workers."""
    search = search_over(1000, log=log, seconds=0.15, time_budget=1.0, n_jobs=n_jobs)
    with joblib.parallel_config(backend="threading"), pytest.warns(SearchWarning, match="'time_budget' passed"):
        search.fit(DATA)
    assert search.timed_out_
    tried = [params["x"] for params in search.cv_results_["params"]]
    assert sorted(noted(log, "begun")) == sorted(noted(log, "scored")) == sorted(tried)
    assert 1 <= len(tried) <= 8 * n_jobs


def test_the_first_candidate_is_tried_whatever_the_limit():
    search = search_over(10, time_budget=1e-9, n_jobs=2)
    with pytest.warns(SearchWarning, match="ended after 1 of 10 settings"):
        search.fit(DATA)
    assert search.timed_out_
    assert len(search.cv_results_["params"]) == 1


def test_the_limit_does_not_heed_the_clock_on_the_wall(monkeypatch):
    deadline = Deadline.after(100.0)
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert not deadline.has_passed()
    monkeypatch.setattr("skvbem.search.execution.deadlines.machine", lambda: "another")
    assert deadline.has_passed()  # where the steady clock is another one
    assert Deadline.after(-1.0).has_passed()


# Faults ---------------------------------------------------------------------------------------------------------------


def test_a_worker_that_dies_once_costs_nothing(eager, log):
    search = search_over(40, faults={11: "die once"}, log=log, n_jobs=2).fit(DATA)
    assert table_of(search)["mean_test_score"] == table_of(search_over(40).fit(DATA))["mean_test_score"]
    assert not any(search.cv_results_["failure"])
    assert max(Counter(noted(log, "begun")).values()) <= 3


@pytest.mark.slow
def test_a_candidate_that_kills_its_worker_fails_alone(eager, log, path):
    search = search_over(12, faults={5: "die"}, log=log, n_jobs=2, checkpoint=path, seconds=0.3)
    with pytest.warns(SearchWarning, match="1 of 12 candidates failed"):
        search.fit(DATA)
    failures = search.cv_results_["failure"]
    assert [x for x in range(12) if failures[x]] == [5]
    assert "died twice: it was killed, or ran out of memory" in failures[5]
    assert np.isnan(search.cv_results_["mean_test_score"][5])
    begun = Counter(noted(log, "begun"))
    assert begun[5] == 2 or begun[5] == 3
    assert noted(log, "begun")[-1] != 5  # the others went on
    job = job_of(faults={5: "die"}, log=log, seconds=0.3)
    with known_at(
        path, AllRowsJob(job.estimator.set_params(random_state=0), DATA, None, {}, {"score": value})
    ) as known:
        assert {digest({"x": x}) for x in range(12) if x != 5} == set(known)


def test_what_died_says_how_much_memory_it_needed():
    X, model = make_bipartite(60, random_state=0).data, VBDiscreteDAG(n_init=3)
    job = EvidenceJob(model, Readings(model, X, {}, frozenset()), {"score": scorer("lower_bound")})
    setting = {"structure": "[h0][x0|h0][x1|h0][x2|h0][x3|h0]", "latents": {"h0": 1000}}
    n_cells = 1000 + 1000 * sum(len(np.unique(column)) for column in X.T)
    assert job.memory_estimate(setting) == f"Its tables alone take {8.0 * 3 * n_cells:.3g} bytes in 3 starts."


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_that_is_to_be_raised(eager, log, path, n_jobs):
    search = search_over(
        30, faults={9: "raise"}, log=log, n_jobs=n_jobs, checkpoint=path, error_score="raise", seconds=0.02
    )
    with pytest.raises(ValueError, match="no 9 today"):
        search.fit(DATA)
    assert not hasattr(search, "cv_results_")
    assert n_jobs == 1 or within(10, lambda: not workers_below(os.getpid()))
    finished = set(noted(log, "scored"))
    job = job_of(faults={9: "raise"}, log=log, seconds=0.02, random_state=0)
    with known_at(path, job) as known:
        lost = {x for x in finished if digest({"x": x}) not in known}
        assert len(lost) < n_jobs  # those in work when the others were stopped
        assert len(known) >= 5


def test_an_error_that_cannot_be_sent_is_told():
    search = search_over(6, faults={3: "unsendable"}, error_score="raise")
    with pytest.raises(Unsendable):
        search.fit(DATA)
    job = job_of(faults={3: "unsendable"}, error_score="raise")
    batch = try_batch(7, Shared(job), [("a", {"x": 2}), ("b", {"x": 3}), ("c", {"x": 4})], None, None, os.getpid())
    assert [outcome.name for outcome in batch.outcomes] == ["a"]
    told = str(pickle.loads(pickle.dumps(batch)).error)
    assert told.startswith("Unsendable: what cannot be sent: 3\nIn a worker:")
    assert "go_wrong" in told


class Teller:
    """A listener that has enough after so many candidates."""

    def __init__(self, n, error=None):
        self.n, self.error = n, error

    def __call__(self, setting, record, is_new):
        self.n -= 1
        if self.n <= 0 and self.error is not None:
            raise self.error
        return self.n <= 0


@pytest.mark.parametrize(
    ("n_jobs", "error"),
    [
        (1, KeyError("a callback's own")),
        (1, KeyboardInterrupt()),
        pytest.param(2, KeyError("its own"), marks=pytest.mark.slow),
    ],
)
def test_an_error_of_a_callback(log, path, n_jobs, error):
    """It is raised once the workers are gone, and what was finished is kept."""
    job = job_of(log=log, seconds=0.02)
    with pytest.raises(type(error)), Checkpoint.opened(path, job.fingerprint) as checkpoint:  # noqa: PT012, SIM117
        with Runner(job, n_jobs=n_jobs, checkpoint=checkpoint, tell=Teller(5, error)) as runner:
            runner._workers_pay = lambda *args: n_jobs > 1
            runner(settings(200))
    assert n_jobs == 1 or within(10, lambda: not workers_below(os.getpid()))
    with known_at(path, job) as known:
        assert 5 <= len(known) < 100
        assert len(set(noted(log, "scored")) - {x for x in range(200) if digest({"x": x}) in known}) < n_jobs


def test_a_callback_that_asks_to_stop(log):
    with Runner(job_of(log=log, seconds=0.05), n_jobs=2, tell=Teller(5)) as runner:
        runner._workers_pay = lambda *args: True
        with joblib.parallel_config(backend="threading"):
            records = runner(settings(500))
    assert runner.over == "stopped"
    assert 5 <= sum(record is not None for record in records) < 100
    assert runner(settings(500))[-1] is None


def test_workers_are_used_where_they_pay():
    runner = Runner(job_of(), n_jobs=2)
    for is_warm, n_tried, seconds, n_waiting, pays in [
        (True, 0, 0.0, 100, True),  # what is unknown is found out by those who wait anyway
        (False, 0, 0.0, 100, False),
        (True, 10, 0.1, 100, True),
        (True, 10, 0.1, 10, False),
        (False, 10, 0.2, 100, False),
        (False, 10, 0.2, 1000, True),
        (False, 1, 0.05, 1000, False),  # measured too shortly
        (True, 1, 60.0, 1, False),
    ]:
        runner._n_tried, runner._seconds = n_tried, seconds
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(runner_module, "is_pool_warm", lambda is_warm=is_warm: is_warm)
            assert runner._workers_pay(n_waiting, n_here=20) == pays
    assert not Runner(job_of(), n_jobs=1)._workers_pay(100, 20)


def test_workers_know_emissions_by_the_names_that_were_registered_here():
    X = np.array([[3.0], [0.0], [1.0], [7.0]])
    register_emission("geometric", Geometric)
    try:
        sent = pickle.dumps(Packed.of(job_of(X=X)))
    finally:
        del EMISSIONS["geometric"]
    with pytest.raises(ValueError, match=r"Got 'geometric' instead\. .* or registered in this process"):
        VBMixture(emission="geometric").fit(X)
    try:
        job = pickle.loads(sent).job  # as a worker that never registered it
        assert np.array_equal(job.X, X)
        assert list(VBMixture(emission="geometric", n_init=1).fit(job.X).groups_) == ["geometric"]
    finally:
        EMISSIONS.pop("geometric", None)


@pytest.mark.parametrize("model", [VBMixture, VBHMM], ids=lambda each: each.__name__)
def test_rows_in_another_order_are_other_data_where_starts_are_given_row_by_row(model):
    """Responsibilities belong to rows by their places; all other starts are the same for any order of rows."""
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    given = np.eye(2)[[0, 1, 0, 1]]

    def fingerprint(rows, estimator, space):
        return Readings.for_space(estimator, coerce_space(space), rows, {}).fingerprint()

    turned = X[::-1] if model is VBMixture else X[[1, 0, 2, 3]]
    for estimator, space in ((model(2, init=given), {"tol": [1e-3, 1e-4]}), (model(2), {"init": [given, given[::-1]]})):
        assert fingerprint(X, estimator, space) != fingerprint(turned, estimator, space)
        assert fingerprint(X, estimator, space) == fingerprint(X.copy(), estimator, space)
    if model is VBMixture:
        assert fingerprint(X, model(2), {"tol": [1e-3]}) == fingerprint(turned, model(2), {"tol": [1e-3]})
