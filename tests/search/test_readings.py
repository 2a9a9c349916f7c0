"""X is read once: in a fit, and in a search, whatever its candidates and wherever they are tried."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from skvbem import VBHMM, StructureSearchCV, VBDiscreteDAG, VBMixture, VBNetwork
from skvbem.datasets import make_bipartite
from skvbem.errors import SearchWarning
from skvbem.evidence import scorer
from skvbem.fitting.evaluation import evaluate
from skvbem.fitting.fit import read
from skvbem.reading.tables import Table, read_table
from skvbem.search.execution.readings import Readings
from skvbem.search.execution.runner import Runner
from skvbem.search.tuning import TUNING
from skvbem.spaces import coerce_space

approx = pytest.approx
NUMBERS = np.random.default_rng(0).normal(size=(40, 2)) + 4 * (np.arange(40) % 2)[:, None]
CATEGORIES = make_bipartite(60, random_state=0).data[:, :3]
NETWORKS = [[], [("x0", "x1")], [("x1", "x2")], [("x0", "x1"), ("x1", "x2")]]
BOTH = np.column_stack([NUMBERS, np.arange(40) // 2 % 2])
BELOW_A_CLASS = [("h0", "x0"), ("h0", "x1")]
CASES = {
    "mixture": (VBMixture(init="random", n_init=1, random_state=0), NUMBERS, {"n_components": [1, 2, 3, 4]}),
    "hmm": (VBHMM(init="random", n_init=1, random_state=0), NUMBERS, {"n_components": [1, 2, 3, 4]}),
    "network": (VBDiscreteDAG(n_init=2, random_state=0), CATEGORIES, NETWORKS),
    "mixed network": (
        VBNetwork(emission={"gaussian": [0, 1], "categorical": [2]}, init="random", n_init=1, random_state=0),
        BOTH,
        [{"structure": BELOW_A_CLASS, "latents": n} for n in (1, 2, 3)]
        + [{"structure": [("x2", "x0")], "latents": {}}],
    ),
}
EACH = pytest.mark.parametrize("case", CASES)


class Homebody(np.ndarray):
    """An array that cannot be sent to another process."""

    def __reduce__(self):
        raise AssertionError("X was sent to another process")


@pytest.fixture
def reads(monkeypatch):
    """What was read so far: whatever is handed to `read_table` that is no table yet."""
    seen = []

    def counted(X, owner):
        if not isinstance(X, Table):
            seen.append(X)
        return read_table(X, owner)

    for name, module in list(sys.modules.items()):
        if name.startswith("skvbem") and getattr(module, "read_table", None) is read_table:
            monkeypatch.setattr(module, "read_table", counted)
    return seen


@pytest.fixture
def eager(monkeypatch):
    """Workers are used for everything, and pay at once."""
    monkeypatch.setattr(Runner, "_workers_pay", lambda self, n_waiting, n_here: self._workers.n > 1)


@EACH
def test_a_fit_reads_once(case, reads):
    estimator, X, _ = CASES[case]
    estimator.fit(X)
    assert len(reads) == 1
    estimator.partial_fit(X)
    assert len(reads) == 2
    estimator.fit(X).log_evidence(X, kind="bic")
    assert len(reads) == 4


@EACH
@pytest.mark.parametrize("scoring", [None, ["lower_bound", "bic"], {"one": "lower_bound", "two": lambda *_: 0.0}])
def test_a_search_reads_once(case, scoring, reads):
    """With its rescoring, its averages, and its refit, whether or not all scores are of the evidence."""
    estimator, X, space = CASES[case]
    more = {"rescoring": "lower_bound"} if scoring is None else {"refit": next(iter(scoring))}
    search = StructureSearchCV(estimator, space, scoring=scoring, averaging=True, **more, random_state=0).fit(X)
    assert len(reads) == 1
    alone = estimator.set_params(**search.best_params_).fit(X)
    assert search.best_estimator_.lower_bound_ == approx(alone.lower_bound_, rel=1e-12)
    assert search.best_estimator_.log_evidence(X).value == search.best_estimator_.lower_bound_
    assert search.n_features_in_ == X.shape[1]


@EACH
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_share_the_reading(case, backend, eager, reads):
    from joblib import parallel_config

    estimator, X, space = CASES[case]
    here = StructureSearchCV(estimator, space, scoring="lower_bound", random_state=0).fit(X)
    with parallel_config(backend=backend):
        there = StructureSearchCV(estimator, space, scoring="lower_bound", n_jobs=2, random_state=0)
        there.fit(X.view(Homebody))
    assert len(reads) == 2
    assert there.cv_results_["mean_test_score"].tolist() == here.cv_results_["mean_test_score"].tolist()


@pytest.mark.parametrize("backend", ["sequential", "loky"])
def test_candidates_that_read_in_their_own_ways_share_what_they_can(backend, eager, reads):
    """One reading for each value of a parameter that says how, an error in the record of whoever cannot read."""
    from joblib import parallel_config

    counts = np.random.default_rng(0).poisson(3, size=(30, 2)) - 1.0
    space = {"emission": ["gaussian", "poisson", {"gaussian": [0, 1]}], "n_components": [1, 2, 3]}
    search = StructureSearchCV(VBMixture(n_init=1, random_state=0), space, n_jobs=2, scoring="lower_bound")
    with parallel_config(backend=backend), pytest.warns(SearchWarning, match="3 of 9 candidates failed"):
        search.fit(counts)
    assert len(reads) == 3
    failed = np.array([params["emission"] == "poisson" for params in search.cv_results_["params"]])
    assert (np.isnan(search.cv_results_["mean_test_score"]) == failed).all()
    assert all("counts are whole numbers >= 0" in why for why in search.cv_results_["failure"][failed])


def test_a_setting_beyond_those_looked_through_is_read_when_it_comes(reads, monkeypatch):
    monkeypatch.setattr("skvbem.search.execution.readings.TUNING", replace(TUNING, n_looked_through=1))
    space = coerce_space({"emission": ["gaussian", {"gaussian": [0, 1]}]})
    readings = Readings.for_space(VBMixture(), space, NUMBERS, {})
    assert (len(reads), readings.common) == (1, None)
    for _ in range(2):
        for setting in space:
            readings.of(VBMixture(**setting))
    assert len(reads) == 2


def test_two_readings_are_told_apart_and_one_again_is_not():
    def fingerprint(X, **params):
        return Readings(VBDiscreteDAG(), X, params, frozenset()).fingerprint()

    whole = fingerprint(CATEGORIES)
    assert whole == fingerprint(CATEGORIES[::-1])
    assert whole != fingerprint(CATEGORIES[1:])
    assert whole != fingerprint(CATEGORIES, sample_weight=np.linspace(1, 2, 60))
    assert whole != fingerprint(np.where(CATEGORIES == 1, "one", "other"))


def test_fractions_of_weights_are_those_of_the_fit_whoever_counted_equal_rows(rng):
    """A search fits distinct rows; its best estimator knows the data again by all rows."""
    weight = rng.uniform(0.5, 2.0, size=60)
    search = StructureSearchCV(VBDiscreteDAG(n_init=2), NETWORKS, scoring="lower_bound", random_state=0)
    best = search.fit(CATEGORIES, sample_weight=weight).best_estimator_
    assert best.log_evidence(CATEGORIES, sample_weight=weight, kind="lower_bound").value == approx(best.lower_bound_)


def test_one_reading_serves_several_fits():
    """Nor does a fit take from the others what it gives up to save memory."""
    for estimator, X, _ in CASES.values():
        reading = read(estimator, X)
        fits = [estimator.fit(reading).lower_bound_ for _ in range(2)]
        assert fits == [estimator.fit(X).lower_bound_] * 2
        evaluation = evaluate(estimator, reading)
        assert evaluation.fit("vb").objective == fits[0]
        assert scorer("bic")(estimator, reading) == estimator.log_evidence(X, kind="bic").value
