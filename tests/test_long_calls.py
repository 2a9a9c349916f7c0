"""Long calls: a line that moves from the first second, what they cost, and a time budget that holds."""

import io
import logging
import time
import warnings

import numpy as np
import pytest

from skvbem import StructureSearchCV, VBFactorAnalysis, VBMixture, _progress, bootstrap_lrt
from skvbem._progress import LongCall, is_over, long_call, steps, working_for
from skvbem.errors import EvidenceWarning, PosteriorWarning
from skvbem.evidence import certify_evidence, evidence_table
from skvbem.models.labels.model import LabelModel


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves when it is told to."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(time, "monotonic", lambda: Clock.now)
    return Clock


def test_a_line_says_how_far_a_call_is_from_its_beginning_on(clock, capsys):
    with long_call("search", verbose=1), steps(6, "candidates") as count:
        assert capsys.readouterr().out == "[search] at work, 0.0 s so far\n"
        for _ in range(4):
            clock.now += 20.0
            count()
        assert capsys.readouterr().out.splitlines()[-1] == "[search] 4 of 6 candidates, about 40 s left"
    assert capsys.readouterr().out == "[search] done in 80 s\n"


def test_the_line_moves_where_it_can(clock, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with long_call("search", verbose=1), steps(2) as count:
        clock.now += 20.0
        count()
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "\r[search] 1 of 2 steps, about 20 s left" in out


def test_calls_within_calls_share_one_line_and_count_in_parts(clock, capsys):
    with long_call("outer", verbose=1), steps(2, "parts") as parts:
        clock.now += 20.0
        parts()
        with long_call("inner", verbose=1), steps(4, "draws") as draws:
            clock.now += 10.0
            draws(2)
        out = capsys.readouterr().out
    assert "inner" not in out
    assert out.splitlines()[-1] == "[outer] 1 of 2 parts, 2 of 4 draws, about 10 s left"


def test_the_earliest_deadline_holds(clock):
    assert not is_over()
    with long_call("outer", time_budget=10.0) as outer:
        with long_call("inner", time_budget=100.0) as inner:
            assert inner.seconds_left() == 10.0
            clock.now += 10.0
            assert is_over()
        assert outer.was_cut
    with long_call("outer", time_budget=10.0) as outer:
        with long_call("inner", time_budget=1.0):
            clock.now += 1.0
            assert is_over()
        assert not is_over()
        assert not outer.was_cut
    with long_call("outer", time_budget=10.0), working_for("a worker", 101.0) as worker:
        clock.now += 50.0
        assert is_over()
        assert worker.was_cut


def test_the_log_says_once_what_a_long_call_will_cost(clock, caplog):
    with long_call("summary"), long_call("sample_posterior"), steps(10) as count:
        for _ in range(3):
            clock.now += 2.0
            count()
    with long_call("quick"), steps(10) as count:
        for _ in range(10):
            clock.now += 0.4
            count()
    with long_call("open end"), steps(None) as count:
        for _ in range(3):
            clock.now += 2.0
            count()
    assert {record.name for record in caplog.records} == {"skvbem"}
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith("summary will take about 20 s: 'time_budget' (seconds) ends it earlier")
    assert second.startswith("open end takes more than 6.0 s")


@pytest.mark.parametrize("wrong", [-1, np.nan, "soon", True])
def test_a_budget_that_is_none_is_refused(wrong):
    model = VBMixture(1, random_state=0).fit([[0.0], [1.0], [2.0]])
    for ask in (model.sample_posterior, model.summary, model.credible_intervals, model.bootstrap):
        with pytest.raises(ValueError, match="'time_budget' must be"):
            ask([[0.0], [1.0], [2.0]], time_budget=wrong)


# Calls of users -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 2)) @ rng.normal(size=(2, 8)) + rng.normal(size=(150, 8))


@pytest.fixture(scope="module")
def model(data):
    return VBFactorAnalysis(2, random_state=0).fit(data)


def certified(X, **how):
    rows = X[:, :2] > 0
    mixture = VBMixture(2, emission="categorical", n_init=1, random_state=0).fit(rows)
    return certify_evidence(mixture, rows, n_chains=64, n_steps=65_536, **how)


LIMITED = {
    "log_evidence": (lambda m, X, **how: m.log_evidence(X, kind="auto", error=1e-6, **how), EvidenceWarning),
    "particles": (lambda m, X, **how: m.log_evidence(X, kind="importance_gibbs", **how), EvidenceWarning),
    "sample_posterior": (lambda m, X, **how: m.sample_posterior(X, 100_000, **how), PosteriorWarning),
    "credible_intervals": (lambda m, X, **how: m.credible_intervals(X, n_draws=100_000, **how), PosteriorWarning),
    "bootstrap": (lambda m, X, **how: m.bootstrap(X, 2000, **how), PosteriorWarning),
    "certify_evidence": (lambda m, X, **how: certified(X, **how), EvidenceWarning),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_budget_is_kept_and_what_was_not_reached_is_said(name, data, model, capsys):
    ask, category = LIMITED[name]
    began = time.process_time()
    with pytest.warns(category) as caught:
        answer = ask(model, data, time_budget=0.2, verbose=1)
    assert time.process_time() - began < 3.0
    assert answer is not None
    assert any("time_budget" in str(each.message) or "time budget" in str(each.message) for each in caught)
    assert capsys.readouterr().out.startswith("[VB")


VERBOSE = {
    "log_evidence": lambda m, X: m.log_evidence(X, kind="auto", verbose=1, time_budget=0.0),
    "summary": lambda m, X: m.summary(X, verbose=1, time_budget=0.0),
    "sample_posterior": lambda m, X: m.sample_posterior(X, verbose=1, time_budget=0.0),
    "credible_intervals": lambda m, X: m.credible_intervals(X, verbose=1, time_budget=0.0),
    "bootstrap": lambda m, X: m.bootstrap(X, 2, verbose=1, time_budget=0.0),
    "certify_evidence": lambda m, X: certified(X, verbose=1, time_budget=0.0),
    "evidence_table": lambda m, X: evidence_table(m, X, ["lower_bound", "ais"], verbose=1, time_budget=0.0),
    "search": lambda m, X: StructureSearchCV(m, {"n_factors": [1]}, random_state=0, verbose=1).fit(X),
}


@pytest.mark.parametrize("name", VERBOSE)
def test_the_first_line_comes_within_a_second(name, data, model, monkeypatch):
    """Before any step of work: E steps wait for it."""
    lines: list[float] = []

    class Watched(io.StringIO):
        def write(self, text):
            lines.append(time.process_time())
            return len(text)

    steps_of_work, expect = [], LabelModel.expect
    monkeypatch.setattr(LabelModel, "expect", lambda *args: steps_of_work.append(len(lines)) or expect(*args))
    monkeypatch.setattr("sys.stdout", Watched())
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        VERBOSE[name](model, data)
    assert lines[0] - began < 1.0
    assert 0 not in steps_of_work


def test_tables_of_evidence_and_tests_of_ratios_keep_their_budget(data, model):
    table = evidence_table(model, data, ["lower_bound", "ais"], time_budget=0.0)
    assert list(table) == ["lower_bound"]
    assert "time_budget" in table.remarks["ais"]
    one, two = (VBMixture(k, method="ml", random_state=0, n_init=1).fit(data[:, :2]) for k in (1, 2))
    with pytest.warns(PosteriorWarning, match="'time_budget' of bootstrap_lrt ended after [0-9]+ of 50 data sets"):
        test = bootstrap_lrt(one, two, data[:, :2], n_boot=50, time_budget=0.0)
    assert 0 < len(test.drawn) < 50


def test_a_budget_that_is_long_enough_changes_nothing(data, model):
    rows, mixture = data[:60, :2], VBMixture(2, random_state=0, n_init=1).fit(data[:60, :2])
    for ask in (
        lambda **how: mixture.bootstrap(rows, 5, **how).natural,
        lambda **how: mixture.log_evidence(rows, kind="ais", n_chains=8, n_steps=64, **how).details["log_weights"],
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvidenceWarning)
            assert np.array_equal(ask(), ask(time_budget=1000.0))


def test_nothing_at_work_costs_nothing():
    with steps(3) as count:
        count()
    assert not is_over()
    assert _progress.call_at_work() is None
    assert LongCall("silent").in_words().startswith("at work")
