"""Searches that end early or at an edge say so: budgets, interrupts, ranges, empty states."""

import re
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from skvbem import StructureSearchCV, VBDiscreteDAG, VBFactorAnalysis, VBMixture
from skvbem.datasets import load_carcinoma
from skvbem.search.posterior.rescoring import rescored_posterior
from skvbem.search.reporting import log_best_at_edge
from skvbem.spaces import DAGSpace

SLIDES = load_carcinoma().data


def messages(caught):
    return [str(each.message) for each in caught]


def searched(search, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X)
    return messages(caught)


def test_a_budget_holds_for_rescoring_too_and_what_was_not_reached_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 10)) + rng.normal(size=(150, 10))
    settings = {"n_factors": [1, 2, 3, 4]}
    began = time.monotonic()
    StructureSearchCV(VBFactorAnalysis(), settings, rescoring=False, random_state=0).fit(X)
    of_fits = time.monotonic() - began  # more on a machine at work
    search = StructureSearchCV(VBFactorAnalysis(), settings, time_budget=0.1 + 1.5 * of_fits, random_state=0)
    began = time.process_time()
    told = searched(search, X)
    assert time.process_time() - began < 6.0
    assert search.timed_out_
    assert any("'time_budget'" in each for each in told)
    assert np.isfinite(search.best_score_)
    assert search.structure_posterior_.sum() == pytest.approx(1.0)


def test_candidates_without_time_keep_a_guess_and_no_zero():
    scores, sizes = np.array([-10.0, -10.5, -11.0]), np.array([1.0, 2.0, 3.0])

    def evidences_of(positions):
        reached = np.array([k == 0 for k in positions])
        return np.where(reached, -9.0, np.nan), np.full(len(positions), 0.1), reached

    late = rescored_posterior(scores, sizes, np.zeros(3), [evidences_of], np.random.default_rng(0), 100)
    assert late.n_unreached == 2
    assert (late.probabilities > 0.02).all()
    assert (late.errors > 0.05).all()


def test_a_search_that_was_cut_off_has_no_certain_edges():
    rng = np.random.default_rng(0)
    left = rng.integers(0, 2, (200, 4))
    frame = pd.DataFrame(np.c_[left, left ^ (rng.random(left.shape) < 0.1)], columns=list("abcdABCD")).astype(float)
    frame = frame.mask(rng.random(frame.shape) < 0.02)
    search = StructureSearchCV(VBDiscreteDAG(n_init=1), DAGSpace(list(frame)), time_budget=0.05, random_state=0)
    told = searched(search, frame)
    assert search.stopped_by_ == "time_budget"
    assert np.isnan(search.edge_probabilities_.values).all()
    assert any("probabilities of edges are NaN" in each for each in told)


def of_size(estimator, X, y=None):
    return float(estimator.n_components)


def test_a_best_at_the_edge_of_its_range_is_said(caplog):
    X = np.random.default_rng(0).normal(size=(30, 1))
    grid = {"n_components": [1, 2, 3]}
    StructureSearchCV(VBMixture(n_init=1), grid, scoring=of_size, refit=False, random_state=0).fit(X)
    assert "3 is the largest number tried of 'n_components', and the best" in caplog.text
    caplog.clear()
    log_best_at_edge([{"a": k} for k in (1, 2)], {"a": 2})  # two numbers are no range
    log_best_at_edge([{"a": k} for k in (1, 2, 3)], {"a": 2})
    log_best_at_edge([{"a": k} for k in (False, True, None)], {"a": True})
    assert not caplog.text
    log_best_at_edge([{"latents": {"h": k}} for k in (2, 5, 3)], {"latents": {"h": 5}})
    assert "5 is the largest" in caplog.text


def test_empty_states_of_the_best_are_said(caplog):
    search = StructureSearchCV(
        VBDiscreteDAG(n_init=2),
        {"latents": [2, 4]},
        scoring=lambda estimator, X, y: float(estimator.latents),
        random_state=0,
    )
    search.fit(SLIDES)
    assert re.search(r"has 4 states of 'h0', and its fit leaves 1 \(\d\) without rows: 3 are in use there", caplog.text)


def test_the_first_sign_of_life_comes_at_once_and_no_best_is_none(capsys):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        StructureSearchCV(VBMixture(n_init=1), {"n_components": [1, 2]}, verbose=1, random_state=0).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert "[StructureSearchCV] search: 0 of 2 candidates" in lines
    assert any(line.startswith("[StructureSearchCV] rescoring: ") for line in lines)
    assert not any("inf" in line for line in lines)
