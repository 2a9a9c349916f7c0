"""Fits that a search keeps for further scores: what they save, and that they change nothing."""

import pickle

import numpy as np
import pytest

from skvbem import StructureSearchCV, VBMixture
from skvbem.search.execution import jobs
from skvbem.search.execution.evaluations import Evaluations
from skvbem.search.tuning import TUNING


class TestEvaluations:
    def test_a_setting_is_evaluated_once(self):
        kept, made = Evaluations(), []
        for setting in ({"k": 2, "kind": "full"}, {"kind": "full", "k": 2}, {"k": 2.0, "kind": "full"}):
            kept.of(setting, 10, lambda: made.append(len(made)) or f"fit {len(made)}")
        assert made == [0, 1]  # a float is another setting
        for latents in ({"a": 2, "b": 3}, {"b": 3, "a": 2}, {"a": 3, "b": 2}):
            kept.of({"latents": latents}, 10, lambda: made.append(len(made)) or f"fit {len(made)}")
        assert made == [0, 1, 2, 3]

    def test_what_is_large_or_is_sent_elsewhere_is_evaluated_anew(self):
        kept = Evaluations()
        assert [kept.of({"k": 1}, 2 * TUNING.kept_cells, lambda each=each: each) for each in "ab"] == ["a", "b"]
        assert kept.of({"k": 3}, 10, lambda: "here") == "here"
        assert pickle.loads(pickle.dumps(kept)).of({"k": 3}, 10, lambda: "there") == "there"

    def test_the_last_ones_are_kept(self):
        kept = Evaluations()
        for k in range(TUNING.n_kept + 1):
            kept.of({"k": k}, 10, lambda: "old")
        assert [kept.of({"k": k}, 10, lambda: "new") for k in (TUNING.n_kept, 1, 0)] == ["old", "old", "new"]
        n_large = int(TUNING.all_kept_cells / TUNING.kept_cells)
        for k in range(n_large + 1):
            kept.of({"large": k}, TUNING.kept_cells, lambda: "old")
        large = [kept.of({"large": k}, TUNING.kept_cells, lambda: "new") for k in (n_large, 1, 0)]
        assert large == ["old", "old", "new"]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, (80, 4)) % (1 + rng.integers(1, 3, (80, 1)))


def test_candidates_of_a_search_are_fitted_once_and_scores_stay_the_same(X, monkeypatch):
    fits, evaluate = [], jobs.evaluate
    monkeypatch.setattr(jobs, "evaluate", lambda *args: fits.append(args[0].n_components) or evaluate(*args))

    def search():
        model = VBMixture(emission="categorical", n_init=2)
        return StructureSearchCV(model, {"n_components": [1, 2, 3]}, random_state=0).fit(X)

    kept = search()
    assert sorted(fits) == [1, 2, 3]
    monkeypatch.setattr("skvbem.search.execution.evaluations.TUNING", type("Tuning", (), {"kept_cells": 0.0})())
    anew = search()
    assert len(fits) > 6
    for name in ("mean_test_evidence", "standard_error_evidence"):
        np.testing.assert_array_equal(kept.cv_results_[name], anew.cv_results_[name])
