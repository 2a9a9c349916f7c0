"""How far a search is: what callbacks hear, and what the screen shows."""

import io
import re

import numpy as np
import pytest
from faulty import DATA, Faulty, search_over, value

from skvbem import StructureSearchCV, VBDiscreteDAG
from skvbem._compat import IterationReport
from skvbem.datasets import load_carcinoma
from skvbem.errors import SearchWarning
from skvbem.search import reporting
from skvbem.search.execution.jobs import Record
from skvbem.search.reporting import Progress, duration

CARCINOMA = load_carcinoma().data

needs_callbacks = pytest.mark.skipif(
    not hasattr(StructureSearchCV, "set_callbacks"), reason="scikit-learn has callbacks from 1.9 on"
)


class Listener:
    """Hears of every task of its estimator, and of those below if it is handed on."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.begun, self.ended, self.heard = [], [], []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append((self._path(context), context.max_subtasks))

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator):
        self.ended.append(self._path(context))
        self.given, self.fitted = (X, y), fitted_estimator
        return context.task_name == "candidate" and len(self.candidates("search")) == self.stop_after

    def candidates(self, stage):
        return [path for path in self.ended if path[1:] == (stage, "candidate")]

    @staticmethod
    def _path(context):
        names = [context.task_name]
        while (context := context.parent) is not None:
            names.append(context.task_name)
        return tuple(reversed(names))


class Following(Listener):
    """Is handed on to the estimators within."""

    max_propagation_depth = None


@needs_callbacks
def test_callbacks_hear_of_stages_and_candidates():
    listener = Listener()
    search = StructureSearchCV(
        VBDiscreteDAG(), {"latents": [1, 2, 3, 4]}, scoring="lower_bound", rescoring="collapsed", n_rescored=2,
        random_state=0,
    )  # fmt: skip
    search.set_callbacks(listener).fit(CARCINOMA)
    stages = [item for item in listener.begun if len(item[0]) < 3]
    assert stages == [(("fit",), 3), (("fit", "search"), 4), (("fit", "rescoring"), 2), (("fit", "refit"), 0)]
    assert len(listener.candidates("search")) == 4
    assert len(listener.candidates("rescoring")) == 2
    assert sorted(listener.ended) == sorted(path for path, _ in listener.begun)
    assert listener.ended[-1] == ("fit",)
    assert listener.heard == ["setup", "teardown"]
    assert listener.given[0] is CARCINOMA
    assert np.array_equal(listener.fitted.score_samples(CARCINOMA), search.score_samples(CARCINOMA))


@needs_callbacks
def test_callbacks_follow_into_the_fit_of_the_best_estimator():
    """And not into those of candidates, of which there are too many."""
    listener = Following()
    StructureSearchCV(VBDiscreteDAG(), {"latents": [2, 3]}, random_state=0).set_callbacks(listener).fit(CARCINOMA)
    below = [path for path in listener.ended if path[-1] == "iteration"]
    assert len(below) > 3
    assert set(below) == {("fit", "fit", "iteration")}  # the stage and the fit are one task
    assert listener.heard == ["setup", "teardown"]


@needs_callbacks
def test_callbacks_of_the_estimator_hear_of_the_best_one_alone():
    """Candidates are fitted in pieces, and by workers: nobody would take down what a callback sets up there."""
    listener = Listener()
    model = VBDiscreteDAG().set_callbacks(listener)
    StructureSearchCV(model, {"latents": [2, 3]}, random_state=0).fit(CARCINOMA)
    assert listener.heard == ["setup", "teardown"]


@needs_callbacks
def test_how_many_candidates_there_are_is_told_where_it_is_known():
    for strategy, most, n in [("exhaustive", None, 4), ("exhaustive", 2, 2), ("greedy", None, None), ("greedy", 3, 3)]:
        listener = Listener()
        search = StructureSearchCV(
            VBDiscreteDAG(), {"latents": [1, 2, 3, 4]}, strategy=strategy, scoring="bic", max_candidates=most,
            refit=False, random_state=0,
        )  # fmt: skip
        search.set_callbacks(listener).fit(CARCINOMA)
        assert (("fit", "search"), n) in listener.begun
        assert n is None or len(listener.candidates("search")) <= n


@needs_callbacks
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_stops_the_search_with_the_best_so_far(n_jobs):
    import joblib

    listener = Listener(stop_after=5)
    search = search_over(100, refit=True, n_jobs=n_jobs, seconds=0.01).set_callbacks(listener)
    with joblib.parallel_config(backend="threading"), pytest.warns(SearchWarning, match="a callback stopped it"):
        search.fit(DATA)
    assert search.stopped_by_ == "stopped"
    assert not search.timed_out_
    assert 5 <= len(search.cv_results_["params"]) < 100
    assert search.best_score_ == np.max(search.cv_results_["mean_test_score"])
    assert search.best_estimator_.value_ == search.best_score_


@needs_callbacks
def test_an_error_of_a_callback_is_raised_and_leaves_the_search_as_it_was():
    class Bad(Listener):
        def on_fit_task_end(self, estimator, context):
            raise ZeroDivisionError("a callback's own")

    listener = Bad()
    search = search_over(5).set_callbacks(listener)
    with pytest.raises(ZeroDivisionError):
        search.fit(DATA)
    assert listener.heard == ["setup", "teardown"]
    assert not [name for name in vars(search) if name.endswith("_")]


@needs_callbacks
def test_bars_are_nested_and_tell_the_time(monkeypatch):
    """As scikit-learn draws them."""
    rich = pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    screen = io.StringIO()
    monkeypatch.setattr(rich, "get_console", lambda: rich.console.Console(file=screen, width=100))
    monkeypatch.setattr("rich.progress.get_console", rich.get_console)
    model = Faulty(seconds=0.01)
    search = StructureSearchCV(model, {"x": range(30)}, scoring=value, refit=False, random_state=0)
    search.set_callbacks(ProgressBar()).fit(DATA)
    bars = [line for line in screen.getvalue().splitlines() if "100%" in line]
    assert re.match(r"StructureSearchCV - fit .*100% 0:00:0\d", bars[0])
    assert re.match(r"  StructureSearchCV - search #0 .*100% 0:00:0\d", bars[1])


# The screen -----------------------------------------------------------------------------------------------------------


def lines(capsys):
    found = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[StructureSearchCV] ") for line in found)
    return [line.removeprefix("[StructureSearchCV] ") for line in found]


def test_a_quiet_search_prints_nothing(capsys):
    search_over(3).fit(DATA)
    assert lines(capsys) == []


def test_every_candidate_is_printed_at_2(capsys, tmp_path):
    search = search_over(3, faults={1: "raise"}, verbose=2, checkpoint=tmp_path / "search.json")
    with pytest.warns(SearchWarning, match="1 of 3"):
        search.fit(DATA)
    choice, *first = lines(capsys)
    assert choice == "the strategy that suits is Exhaustive(prune=False)"
    assert first[0] == "search: 1 of 3, x=0: 0.0000"
    assert first[1].startswith("search: 2 of 3, x=1: failed: ValueError: no 1 today")
    assert first[2] == f"search: 3 of 3, x=2: {np.sin(2) * 22:.4f}"
    assert re.fullmatch(r"search: 3 of 3 candidates, best 20.0045, done in \d\.\d s", first[3])
    with pytest.warns(SearchWarning, match="1 of 3"):
        search.fit(DATA)
    _, *again = lines(capsys)
    assert again[0] == "search: 1 of 3, x=0: 0.0000 (known from before)"
    assert again[3].startswith("search: 3 of 3 candidates (2 known from before), best 20.0045")


class Clock:
    """Time as a test wants it."""

    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(reporting, "time", found)
    return found


def told(capsys, clock, n, seconds, steps, known=0):
    """What a stage prints whose candidates come at some times."""
    progress = Progress("StructureSearchCV", 1, IterationReport(None, None))
    clock.now = 0.0
    with progress.stage("search", "score", n, seconds) as tell:
        for k, clock.now in enumerate([0.0] * known + steps):
            tell({"x": k}, Record({"score": float(k)}), is_new=k >= known)
    return lines(capsys)


def test_the_time_left_is_what_new_candidates_will_take(capsys, clock):
    head = "search: {} of 100 candidates{}, best {}.0000, "
    assert told(capsys, clock, 100, None, [0.5, 4.0, 6.0]) == [
        head.format(2, "", 1) + "about 3 min left",
        head.format(3, "", 2) + "about 3 min left",
        head.format(3, "", 2) + "done in 6.0 s",
    ]
    known = " (90 known from before)"
    assert told(capsys, clock, 100, None, [2.0], known=90)[0] == head.format(91, known, 90) + "about 18 s left"
    assert told(capsys, clock, 100, 7.0, [2.0])[0].endswith("about 5.0 s left")  # the time limit comes first


def test_a_search_of_unknown_length_tells_how_long_it_took_so_far(capsys, clock):
    assert told(capsys, clock, None, None, [2.0]) == [
        "search: 1 candidates, best 0.0000, 2.0 s so far",
        "search: 1 candidates, best 0.0000, done in 2.0 s",
    ]
    assert told(capsys, clock, None, 7.0, [2.0])[0].endswith("about 5.0 s left")


def test_hours_are_not_told_of_every_second(capsys, clock):
    assert len(told(capsys, clock, 10**6, None, [0.1 * k for k in range(36_000)])) < 300


def test_the_last_line_is_not_told_twice(capsys, clock):
    assert told(capsys, clock, 2, None, [2.0, 4.0])[1:] == ["search: 2 of 2 candidates, best 1.0000, done in 4.0 s"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0.0 s"), (9.4, "9.4 s"), (60, "60 s"), (150, "2 min"), (7200, "2.0 h")]
)
def test_times_in_words(seconds, text):
    assert duration(seconds) == text
