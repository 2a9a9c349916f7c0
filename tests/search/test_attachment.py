"""Hidden nodes put above columns that hang together, and completed rows without what is improbable."""

import numpy as np
import pandas as pd
import pytest

from skvbem import DAGSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.search.strategies import Problem
from skvbem.search.strategies.structural.attachment import state_with_attached_latents
from skvbem.search.strategies.structural.climb import StructuralVBEM
from skvbem.spaces.priors import EdgePrior, FunctionPrior

approx = pytest.approx
COLUMNS = ["a", "b", "c", "d"]


@pytest.fixture
def problem(monkeypatch):
    """One hidden cause of three of four columns, some cells missing, as a search poses it."""
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 2, 400)
    X = pd.DataFrame({c: np.where(rng.random(400) < 0.85, cause, 1 - cause) for c in "abc"}).astype(float)
    X["d"] = rng.integers(0, 2, 400)
    posed = []
    monkeypatch.setattr(
        StructuralVBEM, "search", lambda self, problem: (posed.append(problem), problem.scores([start]))
    )
    space = DAGSpace(COLUMNS, latents={"h": 2}, max_parents=2)
    start = next(iter(space))
    StructureSearchCV(VBDiscreteDAG(), space, strategy="structural", scoring="lower_bound", random_state=0).fit(
        X.mask(rng.random(X.shape) < 0.1)
    )
    return posed[0]


def test_a_hidden_cause_stands_between_its_effects(problem):
    place = state_with_attached_latents(problem, StructuralVBEM()._climb_bounds)
    assert {*place.dag.children("h"), *place.dag.parents("h")} == {"a", "b", "c"}
    assert not {("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")} & set(place.dag.edges)
    assert place.setting in problem.space
    assert place.bound <= place.value + 1e-6


def test_where_a_prior_names_edges_no_group_is_tried(problem):
    named = Problem(**{**vars(problem), "prior": EdgePrior({("a", "b"): 0.9})})
    assert state_with_attached_latents(named, StructuralVBEM()._climb_bounds) is None


def test_groups_are_looked_for_though_a_prior_speaks_of_hidden_nodes(problem):
    asked = []

    def few_children(setting):
        asked.append(setting)
        return -float(len(setting["structure"].children("h")))

    of_hidden = Problem(**{**vars(problem), "prior": FunctionPrior(few_children)})
    assert state_with_attached_latents(of_hidden, StructuralVBEM()._climb_bounds) is not None
    assert asked
    assert all(setting in problem.space for setting in asked)


def test_a_group_that_a_prior_rules_out_is_no_beginning(problem):
    ruled_out = Problem(**{**vars(problem), "prior": FunctionPrior(lambda setting: -np.inf)})
    assert state_with_attached_latents(ruled_out, StructuralVBEM()._climb_bounds) is None


def test_a_row_of_improbable_completions_alone_keeps_the_most_probable(problem):
    completed = state_with_attached_latents(problem, StructuralVBEM()._climb_bounds).scores.completed
    few = completed.without_improbable(1.5)
    assert np.bincount(few.row, few.weight, len(few.row_weight)) == approx(completed.row_weight)


def test_what_is_improbable_leaves_its_weight_to_the_rest_of_its_row(problem):
    completed = state_with_attached_latents(problem, StructuralVBEM()._climb_bounds).scores.completed
    few = completed.without_improbable(0.05)
    assert 0 < len(few.weight) < len(completed.weight)
    n_rows = len(few.row_weight)
    assert np.bincount(few.row, few.weight, n_rows) == approx(np.bincount(completed.row, completed.weight, n_rows))
    assert (few.weight >= 0.05 * few.row_weight[few.row]).all()
