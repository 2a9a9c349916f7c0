"""Which covariates drive membership: selections as candidates, and their probabilities."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone

from skvbem import CovariateSpace, StructureSearchCV, VBMixture
from skvbem.emissions import Softmax
from skvbem.spaces import canonical

FAST = {"emission": "bernoulli", "n_init": 1, "tol": 1e-4, "random_state": 0}


def items_of(u, slopes, rng):
    """Four yes/no items of two classes that covariates drive."""
    label = rng.random(len(u)) < 1 / (1 + np.exp(-u @ slopes))
    return (rng.random((len(u), 4)) < np.where(label, 0.9, 0.1)[:, None]).astype(float)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(120, 2))
    return pd.DataFrame(np.c_[items_of(u, np.array([2.0, 0.0]), rng), u], columns=[*"abcd", "driver", "noise"])


@pytest.fixture(scope="module")
def search(table):
    space = CovariateSpace(Softmax(["driver", "noise"]))
    return StructureSearchCV(VBMixture(2, **FAST), space, scoring="lower_bound").fit(table)


def test_every_selection_is_a_candidate_once():
    for names, required, most in (("abcd", (), None), ("abcd", "b", 3), ("abc", ("c", "a"), 2), ("a", (), 0)):
        space = CovariateSpace(Softmax([*names]), required=required, max_selected=most)
        listed = [frozenset(setting["membership"].selected) for setting in space]
        every = [
            frozenset(chosen)
            for size in range(len(names) + 1)
            for chosen in combinations(names, size)
            if {*required} <= {*chosen} and len(chosen) <= (len(names) if most is None else most)
        ]
        assert len({*listed}) == len(listed) == len(space)
        assert {*listed} == {*every}
        for setting in space:
            near = {canonical(each) for each in space.neighbors(setting)}
            here = {*setting["membership"].selected}
            assert near == {canonical(each) for each in space if len({*each["membership"].selected} ^ here) == 1}
            assert setting in space
    assert CovariateSpace(Softmax([*range(60)]), max_selected=2).n_settings == 1 + 60 + comb(60, 2)


def test_a_space_has_no_selection_of_others():
    space = CovariateSpace(Softmax(["a", "b"], slope_prior=2.0), required="a")
    in_another_order = Softmax(["a", "b"], selected=["b", "a"], slope_prior=2.0)
    assert {"membership": in_another_order} in space
    for other in (
        Softmax(["a", "b"], selected=["b"], slope_prior=2.0),
        Softmax(["a", "b"], selected=["a", "c"], slope_prior=2.0),
        Softmax(["a", "b"], selected=["a"]),
        None,
        2,
    ):
        assert {"membership": other} not in space
    assert {"n_components": 2} not in space


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((2,), TypeError, "must be a Softmax of the covariates to select from"),
        ((Softmax(),), TypeError, "must be a Softmax of the covariates to select from"),
        (
            (Softmax(["age"]), "agee"),
            ValueError,
            "must name covariates of its Softmax. Got 'agee' instead. Did you mean",
        ),
        ((Softmax(["a", "b"]), ["a", "b"], 1), ValueError, "at least the number of required covariates, 2. Got 1"),
        ((Softmax(["a"]), (), 1.5), ValueError, "must be None or an int"),
    ],
)
def test_what_is_no_space_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        CovariateSpace(*arguments)


def test_probabilities_of_covariates_are_sums_over_candidates(search):
    scores = search.cv_results_["mean_test_score"]
    chosen = [{*params["membership"].selected} for params in search.cv_results_["params"]]
    weights = softmax(scores)
    for name in ("driver", "noise"):
        expected = sum(w for w, each in zip(weights, chosen) if name in each)
        assert search.covariate_probabilities_["covariate":name] == pytest.approx(expected, rel=1e-9)
    assert search.covariate_probabilities_["covariate":"driver"] > 0.99
    assert search.covariate_probabilities_["covariate":"noise"] < 0.5


def test_candidates_condition_on_all_covariates(table, search):
    """The bound of a selection is that of a fit to the selected covariates alone: others change nothing."""
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        selected = params["membership"].selected
        left_out = [name for name in ("driver", "noise") if name not in selected]
        if selected:
            alone = VBMixture(2, membership=Softmax(selected), **FAST).fit(table.drop(columns=left_out))
        else:
            constant = table.drop(columns=left_out).assign(constant=1.0)
            alone = VBMixture(2, membership=Softmax(["constant"]), **FAST).fit(constant)
        assert score == pytest.approx(alone.lower_bound_, abs=1e-3)
    best = search.best_estimator_
    assert best.parameters_["membership"]["coefficients"].shape == (2, len(search.best_params_["membership"].selected))
    assert best.predict_proba(table).shape == (120, 2)


def test_searches_without_selections_have_no_such_table(table):
    search = StructureSearchCV(VBMixture(**FAST), {"n_components": [1, 2]}, scoring="lower_bound").fit(table[[*"abcd"]])
    assert not hasattr(search, "covariate_probabilities_")


def test_a_selection_names_covariates(table):
    with pytest.raises(ValueError, match="'selected' parameter of Softmax names a column that is none of its"):
        VBMixture(2, membership=Softmax(["driver"], selected=["noise"]), **FAST).fit(table)
    with pytest.raises(TypeError, match="'selected' parameter of Softmax must be None or a list"):
        VBMixture(2, membership=Softmax(["driver"], selected="driver"), **FAST).fit(table)
    model = VBMixture(2, membership=Softmax(["driver", "noise"], selected=[]), **FAST)
    assert clone(model).membership.selected == []
