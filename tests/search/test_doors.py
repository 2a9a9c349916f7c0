"""Evidence scores through the doors of scikit-learn, for all estimators: searches, pipelines, spaces, nested."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skvbem import (
    VBHMM,
    LatentClassSpace,
    StructureSearchCV,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
)
from skvbem.errors import SearchWarning, TooLargeError
from skvbem.evidence import AllRows, scorer

RNG = np.random.default_rng(20261127)
CLUMPS = np.r_[RNG.normal(size=(40, 2)), RNG.normal(6, 1, size=(40, 2))]
CLASSES = pd.DataFrame((RNG.random((120, 4)) < np.repeat([0.1, 0.9], 60)[:, None]).astype(int), columns=list("abcd"))
FACTOR = RNG.normal(size=(90, 1)) @ np.ones((1, 4)) + 0.5 * RNG.normal(size=(90, 4))
SERIES = np.cumsum(RNG.normal(size=(60, 1)), axis=0)
QUICK = {"random_state": 0, "n_init": 1, "max_iter": 200, "tol": 1e-2}
FEW = {"random_state": 0, "n_init": 2, "search_effort": "fast"}
FACTORS = {"random_state": 0, "n_init": 2}
ALL = {
    "VBMixture": (VBMixture(**FEW), CLUMPS, "n_components", [1, 2, 3], 2),
    "VBHMM": (VBHMM(**FEW), CLUMPS, "n_components", [1, 2, 3], 2),
    "VBDiscreteDAG": (VBDiscreteDAG(**FEW), CLASSES, "latents", [1, 2, 3], 2),
    "VBNetwork": (VBNetwork(emission="categorical", **FEW), CLASSES, "latents", [1, 2, 3], 2),
    "VBFactorAnalysis": (VBFactorAnalysis(**FACTORS), FACTOR, "n_factors", [1, 2], 1),
    "VBLinearDynamicalSystem": (VBLinearDynamicalSystem(**QUICK), SERIES, "n_components", [1, 2], 1),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", ALL)
def test_searches_of_every_estimator(name):
    model, X, parameter, values, best = ALL[name]
    for kind in ("lower_bound",) if name == "VBLinearDynamicalSystem" else ("lower_bound", "bic"):
        grid = GridSearchCV(model, {parameter: values}, scoring=scorer(kind), cv=AllRows()).fit(X)
        assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
        scored = cross_val_score(clone(model).set_params(**{parameter: best}), X, scoring=scorer(kind), cv=AllRows())
        assert scored[0] == pytest.approx(grid.cv_results_["mean_test_score"][values.index(best)], rel=1e-9)
        search = StructureSearchCV(model, {parameter: values}, scoring=kind, random_state=0).fit(X)
        assert search.best_params_ == grid.best_params_
        assert kind == "bic" or search.best_params_[parameter] == best


@pytest.mark.parametrize("name", ALL)
def test_searches_within_cross_validations(name):
    """Of every fold the planted number is found, and rows held out have a score that is their predictive one."""
    model, X, parameter, values, best = ALL[name]
    by_bound = scorer("lower_bound", held_out="predictive")
    search = GridSearchCV(model, {parameter: values}, scoring=by_bound, cv=AllRows(), error_score="raise")
    is_series = name == "VBLinearDynamicalSystem"
    folds = KFold(2, shuffle=not is_series, random_state=None if is_series else 0)
    outer = cross_validate(search, X, cv=folds, return_estimator=True, error_score="raise")
    for (_, test), fit, score in zip(folds.split(X), outer["estimator"], outer["test_score"], strict=True):
        held_out = X.iloc[test] if hasattr(X, "iloc") else X[test]
        assert name == "VBHMM" or fit.best_params_ == {parameter: best}  # shuffled rows are no sequence
        assert score == fit.best_estimator_.score(held_out)
    searched = search.fit(X)
    assert by_bound(searched, X) == pytest.approx(searched.best_score_, rel=1e-9)
    assert scorer("bic")(searched, X) == searched.best_estimator_.log_evidence(X, kind="bic").value
    with pytest.raises(ValueError, match="held_out='predictive'"):
        scorer("lower_bound")(searched, X[: len(X) // 2])
    within = cross_validate(
        StructureSearchCV(model, {parameter: values}, scoring="lower_bound", random_state=0), X, cv=2
    )
    assert np.isfinite(within["test_score"]).all()


@pytest.mark.parametrize("name", ALL)
def test_pipelines_of_every_estimator(name):
    model, X, parameter, values, best = ALL[name]
    first = FunctionTransformer() if hasattr(X, "iloc") else StandardScaler()
    pipeline, step = make_pipeline(first, model), name.lower()
    grid = {f"{step}__{parameter}": values}
    search = StructureSearchCV(pipeline, grid, scoring="lower_bound", random_state=0).fit(X)
    assert search.best_params_ == {f"{step}__{parameter}": best}
    usual = StructureSearchCV(pipeline, grid, rescoring=False, random_state=0).fit(X)  # scored as the last step is
    alone = StructureSearchCV(model, {parameter: values}, rescoring=False, random_state=0).fit(first.fit_transform(X))
    assert usual.cv_results_["mean_test_score"] == pytest.approx(alone.cv_results_["mean_test_score"], rel=1e-9)
    by_bound = scorer("lower_bound", held_out="predictive")
    same = GridSearchCV(pipeline, grid, scoring=by_bound, cv=AllRows())
    assert clone(same).fit(X).best_params_ == search.best_params_
    assert pickle.loads(pickle.dumps(same)).scoring == by_bound
    assert by_bound(search, X) == pytest.approx(search.best_score_, rel=1e-9)
    nested = cross_validate(search, X, cv=2, return_estimator=True, error_score="raise")
    assert np.isfinite(nested["test_score"]).all()
    assert all(np.isfinite(each.cv_results_["mean_test_score"]).all() for each in nested["estimator"])
    inner = make_pipeline(first, StructureSearchCV(model, {parameter: values}, scoring="lower_bound", random_state=0))
    assert inner.fit(X)[-1].best_params_ == {parameter: best}
    assert np.isfinite(cross_val_score(inner, X, cv=2, error_score="raise")).all()


@pytest.mark.slow
def test_scorers_in_other_processes():
    model, X, parameter, values, best = ALL["VBMixture"]
    by_bound = scorer("lower_bound", held_out="predictive")
    search = GridSearchCV(model, {parameter: values}, scoring=by_bound, cv=AllRows())
    alone = cross_val_score(search, X, cv=3)
    assert np.array_equal(cross_val_score(search, X, cv=3, n_jobs=2), alone)
    assert search.set_params(n_jobs=2).fit(X).best_params_ == {parameter: best}


def test_what_a_scorer_may_do_with_other_rows():
    with pytest.raises(ValueError, match=r"must be 'error' or 'predictive'\. Got 'score'"):
        scorer("bic", held_out="score")


def test_a_search_of_pipelines():
    pipeline = make_pipeline(StandardScaler(), VBMixture(**FEW))
    grid = {"vbmixture__n_components": [1, 2, 3]}
    search = StructureSearchCV(pipeline, grid, scoring="lower_bound", random_state=0).fit(CLUMPS)
    assert search.best_params_ == {"vbmixture__n_components": 2}
    scaled = StandardScaler().fit_transform(CLUMPS)
    for k, score in enumerate(search.cv_results_["mean_test_score"], start=1):
        assert score == pytest.approx(VBMixture(k, **FEW).fit(scaled).lower_bound_, rel=1e-9)
    nested = cross_val_score(search, CLUMPS, cv=3)
    assert np.isfinite(nested).all()
    usual = StructureSearchCV(pipeline, grid, random_state=0).fit(CLUMPS)
    alone = StructureSearchCV(VBMixture(**FEW), {"n_components": [1, 2, 3]}, random_state=0).fit(scaled)
    assert usual.structure_posterior_ == pytest.approx(alone.structure_posterior_, rel=1e-6)
    assert usual.cv_results_["standard_error_evidence"][1] == alone.cv_results_["standard_error_evidence"][1]
    weights, twice = np.repeat([1, 2], 40), np.repeat(CLUMPS, np.repeat([1, 2], 40), axis=0)
    of_rows = {f"{step}__sample_weight": weights for step in ("standardscaler", "vbmixture")}
    weighted = clone(search).fit(CLUMPS, **of_rows)
    assert weighted.best_score_ == pytest.approx(clone(search).fit(twice).best_score_, rel=1e-6)
    with pytest.raises(TypeError, match="has no 'log_evidence'"):
        StructureSearchCV(make_pipeline(StandardScaler()), {}, scoring="bic").fit(CLUMPS)


def test_a_score_that_does_not_apply_is_a_column_of_nan():
    grid, scores = {"n_components": [1, 2, 3]}, ["lower_bound", "exact", "bic"]
    with pytest.warns(SearchWarning, match=r"The score 'exact' is NaN: TypeError"):
        search = StructureSearchCV(VBMixture(**FEW), grid, scoring=scores, random_state=0).fit(CLUMPS)
    assert search.best_params_ == {"n_components": 2}
    table = search.cv_results_
    assert np.isnan(table["mean_test_exact"]).all()
    assert np.isfinite([table["mean_test_lower_bound"], table["mean_test_bic"]]).all()
    other = StructureSearchCV(VBMixture(**FEW), grid, scoring=["exact", "lower_bound"], refit="lower_bound")
    with pytest.warns(SearchWarning, match="'exact' is NaN"):
        other.fit(CLUMPS)
    assert other.best_params_ == {"n_components": 2}
    with pytest.raises(ValueError, match="All 3 candidates"):
        StructureSearchCV(VBMixture(**FEW), grid, scoring=["exact", "bic"], random_state=0).fit(CLUMPS)


def test_a_space_as_param_grid():
    space = LatentClassSpace([1, 2, 3], observed=list(CLASSES))
    search = GridSearchCV(VBDiscreteDAG(**FEW), space.to_param_grid(), scoring=scorer("bic"), cv=AllRows())
    assert [*search.fit(CLASSES).best_params_["latents"].values()] == [2]


def test_a_series_is_one_column():
    series = pd.Series(SERIES[:, 0], name="y")
    frame = series.to_frame()
    for model in (VBLinearDynamicalSystem(1, **QUICK), VBHMM(2, **FEW), VBMixture(2, **FEW)):
        bound = model.fit(frame).lower_bound_
        assert model.fit(series).lower_bound_ == bound
        assert list(model.feature_names_in_) == ["y"]
        gaps = series.mask(series.index == 3)
        assert np.array_equal(np.asarray(model.impute(gaps)), np.asarray(model.impute(gaps.to_frame())))
    for model in (VBLinearDynamicalSystem(1, **QUICK), VBHMM(2, **FEW)):
        bound = model.fit([frame[:30], frame[30:]]).lower_bound_
        assert model.fit([series[:30], series[30:]]).lower_bound_ == bound


TIMES = [
    np.full(60, np.datetime64("2020-01-01")),
    [np.timedelta64(1, "D")] * 60,
    pd.Series(pd.to_datetime(["2020-01-01"] * 60)),
    [10**400] * 60,
]


@pytest.mark.parametrize("weight", TIMES, ids=["dates", "spans", "series", "huge"])
@pytest.mark.parametrize("name", ALL)
def test_weights_that_are_no_numbers(name, weight):
    model, X = ALL[name][:2]
    with pytest.raises(ValueError, match="Sample weights must be numbers, one for each row"):
        clone(model).fit(X[:60], sample_weight=weight)


BAD_INPUTS = [TIMES[0], np.ones(60) * 1j, np.ma.masked_all(60), np.full(60, 1e308), pd.DataFrame({"a": TIMES[2]})]


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=["dates", "complex", "masked", "huge", "frame"])
@pytest.mark.parametrize("name", ["inputs", "output_inputs"])
def test_inputs_that_are_no_numbers(name, bad):
    with pytest.raises(ValueError, match=rf"'{name}' (must hold real numbers|holds numbers up to)"):
        VBLinearDynamicalSystem(1).fit(SERIES, **{name: bad})


def test_sizes_are_refused_before_memory_is_taken():
    model = VBMixture(1).fit(CLUMPS)
    for ask in (
        lambda: model.bootstrap(CLUMPS, n_draws=10**8),
        lambda: model.bootstrap(CLUMPS, n_draws=10**30),
        lambda: model.log_evidence(CLUMPS, kind="ais", n_chains=10**12),
        lambda: model.log_evidence(CLUMPS, kind="ais", n_steps=10**30),
        lambda: VBFactorAnalysis(10**7).fit(CLUMPS),
        lambda: VBFactorAnalysis(30_000).fit(CLUMPS),
    ):
        with pytest.raises(TooLargeError, match="bytes; the 'max_memory' parameter"):
            ask()
