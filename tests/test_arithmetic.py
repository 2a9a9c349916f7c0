"""Settings of arithmetic: counts and restoration, whoever enters and leaves when."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from skvbem import VBHMM, StructureSearchCV, VBClassifier, VBMixture
from skvbem._arithmetic import ArithmeticMixin, _Arithmetic, arithmetic
from skvbem._compat import pickled
from skvbem.emissions.gaussian.dense_step import DenseStep
from skvbem.search.execution.workers import attempt


def n_threads():
    """Threads of each BLAS library, in one set."""
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """The setting of a user, which every test leaves as it was."""
    with threadpool_limits(2, user_api="blas"):
        assert n_threads() == {2}
        yield
        assert n_threads() == {2}


def test_within_there_is_one_thread_also_nested_and_after_an_error():
    with arithmetic:
        with arithmetic:
            assert n_threads() == {1}
        assert n_threads() == {1}
    assert n_threads() == {2}
    with pytest.raises(KeyError), arithmetic, arithmetic:
        raise KeyError
    assert n_threads() == {2}
    assert arithmetic(n_threads)() == {1}


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_of_overlapping_threads_the_first_saves_and_the_last_restores(first_leaves_first):
    entered, leave = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]

    def work(k):
        with arithmetic:
            entered[k].set()
            leave[k].wait(30)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for k, each in enumerate(threads):
        each.start()
        assert entered[k].wait(30)
    for k in (0, 1) if first_leaves_first else (1, 0):
        assert n_threads() == {1}
        leave[k].set()
        threads[k].join()
    assert n_threads() == {2}


def test_many_fits_in_threads_leave_the_setting_as_it_was():
    X = np.random.default_rng(0).normal(size=(200, 3))
    threads = [threading.Thread(target=VBMixture(2, n_init=1, random_state=0).fit, args=(X,)) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert n_threads() == {2}


@pytest.mark.filterwarnings("ignore::skvbem.errors.PosteriorWarning")
def test_every_public_method_of_estimators_has_one_thread(monkeypatch):
    seen = []

    def log_likelihood(step, block, original=DenseStep.log_likelihood):
        seen.append(n_threads())
        return original(step, block)

    monkeypatch.setattr(DenseStep, "log_likelihood", log_likelihood)
    X = np.random.default_rng(0).normal(size=(40, 2))
    mixture = VBMixture(2, n_init=1, random_state=0)
    asked = [
        lambda: mixture.fit(X),
        lambda: mixture.predict(X),
        lambda: mixture.log_evidence(X, kind="bic"),
        lambda: mixture.sample_posterior(X, 4, max_sweeps=128),
        lambda: mixture.partial_fit(X),
        lambda: StructureSearchCV(mixture, {"n_components": [1, 2]}, random_state=0).fit(X),
    ]
    for ask in asked:
        seen.clear()
        ask()
        assert {*map(frozenset, seen)} <= {frozenset({1})}, "some product has more threads"
    assert issubclass(VBClassifier, ArithmeticMixin)

    class Mine(ArithmeticMixin):
        def asked(self):
            """Of a class of one's own."""
            return n_threads()

        def _helper(self):
            return n_threads()

    assert Mine().asked() == {1}
    assert Mine()._helper() == {2}


def test_a_candidate_tried_in_a_process_of_its_own_has_one_thread():
    class Job:
        def record(self, setting):
            return type("Record", (), {"failure": "", "seen": n_threads()})

    assert attempt(Job(), "name", {}, None).record.seen == {1}


def test_an_entry_costs_less_than_a_tenth_of_a_millisecond():
    def seconds():
        began = time.process_time()
        for _ in range(100):
            with arithmetic:
                pass
        return (time.process_time() - began) / 100

    with arithmetic:  # looks for libraries, if modules were imported since
        pass
    assert min(seconds() for _ in range(5)) < 1e-4


def test_a_library_that_is_loaded_later_is_seen():
    code = """
        import sys
        from threadpoolctl import threadpool_info
        import numpy
        from skvbem._arithmetic import arithmetic
        blas = lambda: [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
        with arithmetic:
            before = blas()
        import scipy.linalg
        with arithmetic:
            after = blas()
        print(set(before), set(after), len(after) >= len(before))
    """
    ran = subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert ran.stdout.split() == ["{1}", "{1}", "True"], ran.stderr


def test_libraries_are_looked_for_only_once_modules_came(monkeypatch):
    looked = []

    class Controller:
        lib_controllers = ()

        def select(self, **what):
            looked.append(what)
            return self

    monkeypatch.setattr("skvbem._arithmetic.ThreadpoolController", Controller)
    one = _Arithmetic()
    for _ in range(3):
        with one:
            pass
    assert len(looked) == 1
    monkeypatch.setitem(sys.modules, "a module that was not there", sys)
    with one:
        pass
    assert looked == 2 * [{"user_api": "blas"}]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("held", [False, True])
def test_a_child_forked_in_the_middle_of_a_fit_of_another_thread_can_enter_and_has_the_setting_after(held):
    entered, leave = threading.Event(), threading.Event()

    def work():
        with arithmetic:
            if held:
                arithmetic._lock.acquire()
            entered.set()
            leave.wait(30)
            if held:
                arithmetic._lock.release()

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(30)
    child = os.fork()
    if not child:
        with arithmetic:
            within = n_threads()
        os._exit(int((within, n_threads()) != ({1}, {2})))
    ended, began = (0, 0), time.monotonic()
    while not ended[0] and time.monotonic() < began + 30:
        ended = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not ended[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    leave.set()
    thread.join()
    assert ended == (child, 0)


def test_classes_of_scripts_can_be_sent_to_workers():
    class Mine(ArithmeticMixin):
        def asked(self):
            """Of a class that is pickled by value."""

    assert b"arithmetic" in pickled(Mine, lambda buffer: True)


@pytest.mark.parametrize("method", ["vb", "ml"])
def test_what_underflows_is_zero_whatever_numpy_has_been_set_to_do(method):
    X = np.random.default_rng(0).normal(size=(80, 2)) + np.repeat([0.0, 60.0], 40)[:, None]
    mixture, chain = (of(2, method=method, n_init=2, random_state=0) for of in (VBMixture, VBHMM))
    for estimator in (mixture, chain):
        usual = clone(estimator).fit(X).score_samples(X)
        with np.errstate(all="raise"):
            np.testing.assert_array_equal(estimator.fit(X).score_samples(X), usual)
            for name in ("predict_proba", "fit_predict", "transform", "bic", "goodness_of_fit"):
                getattr(estimator, name)(X)
            estimator.log_evidence(X, kind="importance", n_draws=64)
            if method == "vb":
                estimator.sample_posterior(X, n_draws=8, random_state=0)
                estimator.partial_fit(X)
            with pytest.raises(FloatingPointError):  # the setting is the caller's again
                np.exp(-800.0)
