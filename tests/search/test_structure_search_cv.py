"""The search as scikit-learn's users see it: tables, posteriors, best estimators, and bad input."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skvbem import DAG, BipartiteSpace, DAGSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import load_carcinoma
from skvbem.errors import SearchWarning
from skvbem.evidence import scorer
from skvbem.search.posterior.tables import HiddenStructure, edge_probabilities, matched

CARCINOMA = load_carcinoma().data
GRID = {"latents": [2, 3, 4]}
MODEL = VBDiscreteDAG(n_init=3)


@pytest.fixture(scope="module")
def rows():
    """Four columns below two latents, 120 rows."""
    rng = np.random.default_rng(3)
    states = rng.integers(2, size=(120, 2))
    sure = rng.random((120, 4)) < 0.9
    causes = np.stack([states[:, 0], states[:, 0], states[:, 1], states[:, 1]], axis=1)
    return pd.DataFrame(np.where(sure, causes, 1 - causes), columns=list("abcd"))


@pytest.fixture(scope="module")
def space():
    return BipartiteSpace(latents={"h0": 2, "h1": 2}, observed=list("abcd"))


@pytest.fixture(scope="module")
def searched(rows, space):
    return StructureSearchCV(MODEL, space, scoring="lower_bound", random_state=0).fit(rows)


def test_every_candidate_has_the_score_of_a_fit_of_its_own(searched, rows):
    results = searched.cv_results_
    assert len(results["params"]) == 136
    for k in (0, 17, 135):
        alone = clone(MODEL).set_params(random_state=0, **results["params"][k])
        with pytest.warns(UserWarning, match="no children") if k == 0 else _nothing():
            alone.fit(rows)
        assert results["mean_test_score"][k] == pytest.approx(alone.lower_bound_, rel=1e-12)
        assert results["n_free_parameters"][k] == alone.n_free_parameters_


def test_the_best_is_the_best(searched, rows):
    results = searched.cv_results_
    assert searched.best_score_ == results["mean_test_score"].max()
    assert results["rank_test_score"][searched.best_index_] == 1
    assert searched.best_params_ == results["params"][searched.best_index_]
    assert searched.best_estimator_.lower_bound_ == pytest.approx(searched.best_score_, rel=1e-12)
    assert searched.best_structure_ == searched.best_estimator_.structure_
    truth = DAG.from_edges([("h0", "a"), ("h0", "b"), ("h1", "c"), ("h1", "d")])
    latents = {"h0": 2, "h1": 2}
    assert searched.best_structure_.canonical(latents) == truth.canonical(latents)


def test_posterior_over_structures(searched):
    scores = searched.cv_results_["mean_test_score"]
    assert searched.score_weights_ == pytest.approx(np.exp(scores - logsumexp(scores)), abs=1e-12)
    assert searched.log_evidence_ == pytest.approx(logsumexp(scores) - np.log(136), rel=1e-12)


def test_priors_shift_the_posterior(rows, space, searched):
    labeled = StructureSearchCV(MODEL, space, scoring="lower_bound", prior="labeled", random_state=0).fit(rows)
    weights = np.exp(labeled.cv_results_["log_prior"])
    assert weights.sum() == pytest.approx(256)
    expected = searched.score_weights_ * weights
    assert labeled.score_weights_ == pytest.approx(expected / expected.sum(), rel=1e-9)
    by_edges = StructureSearchCV(
        MODEL,
        space,
        scoring="lower_bound",
        prior=lambda setting: -float(len(setting["structure"].edges)),
        random_state=0,
    ).fit(rows)
    edges = [len(setting["structure"].edges) for setting in searched.cv_results_["params"]]
    expected = searched.score_weights_ * np.exp(-np.array(edges))
    assert by_edges.score_weights_ == pytest.approx(expected / expected.sum(), rel=1e-9)
    assert by_edges.best_index_ == np.argmax(expected)


@pytest.mark.parametrize("rescoring", [None, "collapsed"])
def test_the_best_is_the_most_probable(rows, space, searched, rescoring):
    """A prior that outweighs the data decides; rows held out know of none."""
    search = StructureSearchCV(
        MODEL,
        space,
        scoring="lower_bound",
        prior=lambda setting: -1000.0 * len(setting["structure"].edges),
        rescoring=rescoring,
        refit=False,
        random_state=0,
    ).fit(rows)
    assert search.best_index_ == np.nanargmax(search.score_weights_)
    assert search.best_structure_.edges == ()
    assert search.best_score_ < search.cv_results_["mean_test_score"].max()
    few = {"space": {"latents": [1, 2]}, "prior": lambda setting: -1000.0 * setting["latents"]}
    held_out = search.set_params(**few, cv=3, rescoring=None, scoring=None).fit(rows)
    assert held_out.best_params_ == {"latents": 2}


def test_edges_counted_structure_by_structure(searched):
    """Label-free statistics against sums written out."""
    shared, counts = searched.shared_parent_probabilities_, searched.hidden_parent_counts_
    weights, settings = searched.score_weights_, searched.cv_results_["params"]
    parents = [[set(setting["structure"].parents(node)) for node in "abcd"] for setting in settings]
    for i, node in enumerate("abcd"):
        for j, other in enumerate("abcd"):
            expected = sum(w for w, of in zip(weights, parents) if of[i] & of[j])
            assert shared["node":node, "other":other] == pytest.approx(expected, abs=1e-10)
        for number in range(3):
            expected = sum(w for w, of in zip(weights, parents) if len(of[i]) == number)
            assert counts["node":node, "n_hidden_parents":number] == pytest.approx(expected, abs=1e-10)
    assert shared["node":"a", "other":"b"] > 0.99
    assert shared["node":"a", "other":"c"] < 0.5


def test_latents_are_matched_to_the_best_structure(searched):
    edges = searched.edge_probabilities_
    assert edges.axes == ("parent", "child")
    (of_a,) = searched.best_structure_.parents("a")
    (of_c,) = searched.best_structure_.parents("c")
    assert edges["parent":of_a, "child":"a"] > 0.95
    assert edges["parent":of_c, "child":"d"] > 0.95
    assert edges["parent":"a", "child":of_a] == 0
    sums = sum(w * len(s["structure"].edges) for w, s in zip(searched.score_weights_, searched.cv_results_["params"]))
    assert edges.values.sum() == pytest.approx(sums, abs=1e-9)


def test_matching_renames_and_keeps_apart_what_it_cannot_match():
    best = HiddenStructure(DAG.from_edges([("h0", "a"), ("h1", "b")]), {"h0": 2, "h1": 2})
    swapped = HiddenStructure(DAG.from_edges([("h1", "a"), ("h0", "b")]), {"h0": 2, "h1": 2})
    assert set(matched(swapped, best).edges) == {("h0", "a"), ("h1", "b")}
    more = HiddenStructure(DAG.from_edges([("h0", "b"), ("h1", "a"), ("h2", "a")]), {"h0": 2, "h1": 3, "h2": 2})
    assert set(matched(more, best).edges) == {("h1", "b"), ("h1'", "a"), ("h0", "a")}
    table = edge_probabilities([best, swapped], np.array([0.5, 0.5]), best)
    assert table["parent":"h0", "child":"a"] == 1.0


def test_same_table_for_any_number_of_workers_and_twice(searched, rows, space):
    for n_jobs in (1, 2):
        again = clone(searched).set_params(n_jobs=n_jobs, refit=False).fit(rows)
        for name in ("mean_test_score", "rank_test_score", "log_prior"):
            assert np.array_equal(again.cv_results_[name], searched.cv_results_[name])
        assert again.cv_results_["params"] == searched.cv_results_["params"]


def test_the_order_of_rows_does_not_matter(searched, rows):
    permuted = rows.iloc[np.random.default_rng(0).permutation(len(rows))]
    again = clone(searched).set_params(refit=False).fit(permuted)
    assert again.cv_results_["mean_test_score"] == pytest.approx(searched.cv_results_["mean_test_score"], rel=1e-9)


def test_several_scores_in_grid_search_layout():
    search = StructureSearchCV(MODEL, GRID, scoring=["lower_bound", "bic"], refit="bic", random_state=0).fit(CARCINOMA)
    results = search.cv_results_
    for name in ("lower_bound", "bic"):
        assert {f"mean_test_{name}", f"std_test_{name}", f"rank_test_{name}"} <= set(results)
    assert results["param_latents"].tolist() == [2, 3, 4]
    assert search.best_index_ == np.argmax(results["mean_test_bic"])
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    frame = pd.DataFrame(results)
    assert len(frame) == 3
    folds = KFold(2, shuffle=True, random_state=0)
    reference = GridSearchCV(MODEL, GRID, cv=folds).fit(CARCINOMA).cv_results_
    assert {name for name in reference if "split" not in name and "score" not in name} <= set(results)


def test_a_random_score_has_standard_errors():
    quick = scorer("ais", n_chains=8, n_steps=32)
    model = VBDiscreteDAG(init="random", n_init=3)
    search = StructureSearchCV(model, GRID, scoring=quick, random_state=0)
    with pytest.warns(SearchWarning, match="1 of 3 candidates, not the best, have scores that should not be trusted"):
        search.fit(CARCINOMA)
    doubted = search.cv_results_["doubts"] != ""
    assert [doubted.sum(), doubted[search.best_index_]] == [1, False]
    assert np.all(search.cv_results_["standard_error_score"] > 0)
    again, other = (StructureSearchCV(model, GRID, scoring=quick, random_state=seed) for seed in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        again.fit(CARCINOMA)
        other.fit(CARCINOMA)
    assert np.array_equal(again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    assert not np.array_equal(other.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


@pytest.mark.parametrize("kind", ["collapsed", "mled"])
def test_the_best_are_scored_again(kind):
    """By "mled" the second comes out first."""
    search = StructureSearchCV(MODEL, GRID, scoring="bic", rescoring=scorer(kind), n_rescored=2, random_state=0).fit(
        CARCINOMA
    )
    results = search.cv_results_
    by_bic = np.argsort(-results["mean_test_score"])
    assert np.isnan(results[f"mean_test_{kind}"][by_bic[2]])
    best = by_bic[:2][np.argmax(results[f"mean_test_{kind}"][by_bic[:2]])]
    assert search.best_index_ == best
    assert (best == by_bic[0]) == (kind == "collapsed")
    assert results["rank_test_score"][best] == 1
    assert results["rank_test_score"][by_bic[2]] == 3
    assert search.best_score_ == results[f"mean_test_{kind}"][best]
    assert search.score_weights_[by_bic[2]] == 0


def test_rows_held_out():
    folds = KFold(3, shuffle=True, random_state=0)
    model = clone(MODEL).set_params(random_state=0, categories=[[1, 2]] * 7)
    search = StructureSearchCV(model, GRID, cv=folds).fit(CARCINOMA)
    reference = GridSearchCV(model, GRID, cv=folds).fit(CARCINOMA)
    assert search.cv_results_["mean_test_score"] == pytest.approx(reference.cv_results_["mean_test_score"], rel=1e-12)
    assert search.cv_results_["split1_test_score"] == pytest.approx(reference.cv_results_["split1_test_score"])
    assert search.best_params_ == reference.best_params_
    assert not hasattr(search, "score_weights_")
    with pytest.raises(ValueError, match="evidence of all rows"):
        StructureSearchCV(model, GRID, cv=3, scoring="bic").fit(CARCINOMA)


def test_any_estimator_by_a_callable():
    X = np.random.default_rng(0).normal(size=(60, 2))
    search = StructureSearchCV(
        GaussianMixture(random_state=0),
        {"n_components": [1, 2, 3]},
        scoring=lambda estimator, X, y=None: -estimator.bic(X),
    ).fit(X)
    assert search.best_params_ == {"n_components": 1}
    assert search.predict(X).shape == (60,)
    with pytest.raises(TypeError, match="no 'log_evidence'"):
        StructureSearchCV(GaussianMixture(), {"n_components": [1, 2]}).fit(X)


def test_weights_are_repeats(rows):
    weights = np.random.default_rng(1).integers(0, 4, len(rows))
    grid = {"latents": [2, 3]}
    weighted = StructureSearchCV(MODEL, grid, random_state=0).fit(rows, sample_weight=weights)
    repeated = StructureSearchCV(MODEL, grid, random_state=0).fit(rows.loc[rows.index.repeat(weights)])
    assert weighted.best_score_ == pytest.approx(repeated.best_score_, rel=1e-9)
    assert weighted.best_estimator_.n_samples_ == weights.sum()


def test_asking_the_best_estimator(searched, rows):
    best = searched.best_estimator_
    assert np.array_equal(searched.score_samples(rows), best.score_samples(rows))
    assert searched.score(rows) == best.score(rows)
    assert np.array_equal(searched.predict(rows), best.predict(rows))
    assert np.array_equal(searched.predict_proba(rows)[1], best.predict_proba(rows)[1])
    assert np.array_equal(searched.transform(rows), best.transform(rows))
    assert searched.n_features_in_ == 4
    assert searched.feature_names_in_.tolist() == list("abcd")
    assert searched.get_feature_names_out().tolist() == best.get_feature_names_out().tolist()


def test_reports_are_those_of_the_best_estimator(searched, rows):
    best = searched.best_estimator_
    assert searched.summary().title == best.summary().title
    assert searched.summary(rows, level=0.5, method="linear_response").method == "linear_response"
    for given in ({"method": "vb"}, {"X": rows, "level": 0.8, "method": "linear_response", "n_draws": 50}):
        ours, theirs = searched.credible_intervals(**given), best.credible_intervals(**given)
        assert ours.keys() == theirs.keys()
        assert all(np.array_equal(ours["tables"][node], theirs["tables"][node]) for node in theirs["tables"])
    drawn = searched.sample_posterior(rows, 20, method="vb", random_state=3)
    assert np.array_equal(drawn.natural, best.sample_posterior(rows, 20, method="vb", random_state=3).natural)
    with pytest.raises(ValueError, match="this fit by 'vb' is a posterior"):
        searched.standard_errors(rows)


def test_errors_of_points_are_those_of_the_best_estimator():
    X = np.random.default_rng(0).integers(0, 2, (40, 2))
    model = VBDiscreteDAG(method="ml", init="random", n_init=2)
    search = StructureSearchCV(model, {"latents": [1, 2]}, scoring="bic", rescoring=False, random_state=0).fit(X)
    best = search.best_estimator_
    assert np.array_equal(
        search.standard_errors(X).errors["tables"]["x0"], best.standard_errors(X).errors["tables"]["x0"]
    )
    ours, theirs = (each.bootstrap(X, 5, kind="parametric", random_state=1) for each in (search, best))
    assert np.array_equal(ours.natural, theirs.natural)
    with pytest.raises(ValueError, match="needs a posterior"):
        search.credible_intervals(X)


def test_averaging_over_models(rows, space):
    search = StructureSearchCV(MODEL, space, scoring="lower_bound", averaging=True, random_state=0).fit(rows)
    average = search.averaged_
    assert average.left_out <= 1e-3
    assert average.weights.sum() == pytest.approx(1)
    scores = np.stack([estimator.score_samples(rows) for estimator in average.estimators])
    expected = np.log(np.sum(average.weights[:, None] * np.exp(scores), axis=0))
    assert search.score_samples(rows) == pytest.approx(expected, rel=1e-10)
    everything = pd.DataFrame(np.indices((2,) * 4).reshape(4, -1).T, columns=list("abcd"))
    assert np.exp(search.score_samples(everything)).sum() == pytest.approx(1, abs=1e-9)


def test_refit_can_be_left_out(rows, space):
    search = StructureSearchCV(MODEL, GRID, refit=False, random_state=0).fit(rows)
    assert not hasattr(search, "best_estimator_")
    assert search.best_params_
    with pytest.raises(AttributeError, match="refit=False"):
        search.score_samples(rows)
    with pytest.raises(AttributeError, match="refit=False"):
        search.summary()


def test_a_callable_picks_the_best():
    def fewest(results):
        return int(np.argmin(results["n_free_parameters"]))

    search = StructureSearchCV(MODEL, GRID, refit=fewest, random_state=0).fit(CARCINOMA)
    assert search.best_params_ == {"latents": 2}


def test_ties_go_to_fewer_parameters():
    search = StructureSearchCV(MODEL, {"latents": [4, 2, 3]}, scoring=lambda *_: 1.0, random_state=0).fit(CARCINOMA)
    assert search.best_params_ == {"latents": 2}
    assert search.cv_results_["rank_test_score"].tolist() == [1, 1, 1]


def test_one_failing_candidate_does_not_end_the_search(rows):
    space = [{"structure": [("h0", "a")], "latents": 2}, {"structure": [("h0", "nowhere")], "latents": 2}]
    with pytest.warns(SearchWarning, match=r"1 of 2 candidates failed.*nowhere"):
        search = StructureSearchCV(MODEL, space, random_state=0).fit(rows)
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert "nowhere" in search.cv_results_["failure"][1]
    assert search.score_weights_.tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="nowhere"):
        StructureSearchCV(MODEL, space, error_score="raise").fit(rows)
    with pytest.raises(ValueError, match=r"All 1 candidates.*failed"):
        StructureSearchCV(MODEL, space[1:]).fit(rows)


def test_limits(rows, space):
    few = StructureSearchCV(MODEL, space, scoring="bic", max_candidates=5, refit=False, random_state=0).fit(rows)
    assert len(few.cv_results_["params"]) == 5
    assert few.stopped_by_ == "max_candidates"
    assert not few.timed_out_
    late = StructureSearchCV(MODEL, space, scoring="bic", time_budget=1e-9, refit=False, random_state=0)
    with pytest.warns(SearchWarning, match=r"ended after 1 of \d+ settings, since its 'time_budget' passed"):
        late.fit(rows)
    assert len(late.cv_results_["params"]) == 1
    assert late.timed_out_


@pytest.mark.parametrize("strategy", ["auto", "greedy", "exact"])
def test_complete_rows_may_have_any_weights(strategy):
    """Their evidence is a closed form: nothing is completed, so that no weight has to be whole."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    X = pd.DataFrame({"a": a, "b": np.where(rng.random(300) < 0.8, a, 1 - a), "c": rng.integers(0, 3, 300)})
    weight = rng.gamma(2, 0.5, 300)
    estimator = VBDiscreteDAG(prior="bdeu")
    search = StructureSearchCV(estimator, DAGSpace(list(X)), strategy=strategy, random_state=0).fit(
        X, sample_weight=weight
    )
    log_evidence = {}
    for setting, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        fit = clone(estimator).set_params(**setting).fit(X, sample_weight=weight)
        np.testing.assert_allclose(score, fit.lower_bound_, rtol=1e-12)
        for kind in ("collapsed", "collapsed_ascent", "exact", "auto"):
            log_evidence[kind] = fit.log_evidence(X, kind=kind, sample_weight=weight).value
        np.testing.assert_allclose([*log_evidence.values()], fit.lower_bound_, rtol=1e-12)
    assert {("a", "b"), ("b", "a")} & set(search.best_structure_.edges)


def test_a_search_that_raises_leaves_the_last_one(searched, rows):
    search = pickle.loads(pickle.dumps(searched))
    with pytest.raises(ValueError, match="strategy"):
        search.set_params(strategy="exhausted").fit(rows)
    assert search.best_score_ == searched.best_score_


def test_clone_and_pickle(searched, rows):
    assert clone(searched).get_params().keys() == searched.get_params().keys()
    assert not hasattr(clone(searched), "cv_results_")
    again = pickle.loads(pickle.dumps(searched))
    assert np.array_equal(again.score_samples(rows), searched.score_samples(rows))
    assert again.edge_probabilities_.values.tolist() == searched.edge_probabilities_.values.tolist()
    assert vars(again).keys() == vars(searched).keys()


def test_everything_fitted_can_be_pickled(rows):
    """Scores from functions of a module, posteriors and averages too."""
    search = StructureSearchCV(
        MODEL, GRID, scoring={"bound": "lower_bound", "rows": _own_score}, averaging=True, random_state=0
    ).fit(rows)  # fmt: skip
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.score_samples(rows), search.score_samples(rows))
    assert again.fit(rows).best_score_ == search.best_score_


def test_parameters_reach_the_estimator():
    search = StructureSearchCV(MODEL, GRID)
    assert search.get_params()["estimator__n_init"] == 3
    assert "estimator__n_init" not in search.get_params(deep=False)
    other = clone(search).set_params(estimator__n_init=1, scoring="bic", random_state=0)
    assert other.estimator.n_init == 1
    assert search.estimator.n_init == 3
    assert other.fit(CARCINOMA).best_estimator_.n_init == 1
    with pytest.raises(ValueError, match="n_starts"):
        search.set_params(estimator__n_starts=1)


def test_around_it_scikit_learns_search():
    everything = np.arange(len(CARCINOMA))
    outer = GridSearchCV(
        StructureSearchCV(MODEL, GRID, random_state=0),
        {"scoring": ["bic", "collapsed"], "estimator__n_init": [1, 2]},
        cv=[(everything, everything)],
    ).fit(CARCINOMA)
    assert len(outer.cv_results_["params"]) == 4
    assert outer.best_estimator_.best_estimator_.latent_names_ == ("h0",)
    alone = clone(outer.estimator).set_params(**outer.best_params_).fit(CARCINOMA)
    assert outer.best_score_ == alone.score(CARCINOMA)


def test_inside_a_pipeline(rows):
    """Its classes are features, and are chosen anew for every fold."""
    target = (rows["a"] == rows["b"]).to_numpy()
    search = StructureSearchCV(MODEL, GRID, scoring="bic", random_state=0)
    pipeline = make_pipeline(search, LogisticRegression())
    scores = cross_val_score(pipeline, rows[["b", "c", "d"]], target, cv=3)
    assert scores.shape == (3,)
    fitted = pipeline.fit(rows[["b", "c", "d"]], target)
    assert fitted[-1].n_features_in_ == fitted[0].best_params_["latents"]
    assert fitted[:-1].get_feature_names_out().tolist() == list(fitted[0].get_feature_names_out())
    framed = fitted[:-1].set_output(transform="pandas").transform(rows[["b", "c", "d"]])
    assert list(framed.columns) == list(fitted[0].get_feature_names_out())


@pytest.mark.parametrize("when", ["before", "after"])
def test_set_output(when):
    search = StructureSearchCV(clone(MODEL), GRID, random_state=0)
    if when == "before":
        assert search.set_output(transform="pandas") is search
        search = clone(search).fit(CARCINOMA)
    else:
        search.fit(CARCINOMA).set_output(transform="pandas")
    frame = search.transform(CARCINOMA)
    assert list(frame.columns) == ["h0_0", "h0_1", "h0_2"]
    assert np.array_equal(search.set_output(transform="default").fit_transform(CARCINOMA), frame.to_numpy())


def test_it_has_the_methods_that_its_estimator_has():
    classifier = StructureSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, random_state=0)
    assert not any(hasattr(classifier, name) for name in ("transform", "fit_transform", "set_output", "score_samples"))
    reports = ("summary", "sample_posterior", "credible_intervals", "standard_errors", "bootstrap")
    assert not any(hasattr(classifier, name) for name in reports)
    assert all(hasattr(StructureSearchCV(MODEL, GRID), name) for name in reports)
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat([0, 1, 2, 2], 10)
    classifier.fit(X, y)
    assert is_classifier(classifier)
    assert classifier.classes_.tolist() == [0, 1, 2]
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        assert np.array_equal(getattr(classifier, name)(X), getattr(classifier.best_estimator_, name)(X))
    same = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(X, y)  # folds keep shares of classes
    assert np.array_equal(classifier.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])
    assert classifier.best_params_ == same.best_params_
    reduced = StructureSearchCV(PCA(), {"n_components": [1, 2]}, cv=2, random_state=0).fit(X)
    assert np.array_equal(
        reduced.inverse_transform(reduced.transform(X)),
        reduced.best_estimator_.inverse_transform(reduced.best_estimator_.transform(X)),
    )
    assert is_regressor(StructureSearchCV(Ridge(), {"alpha": [1.0]}, cv=2))


def _own_score(model, X, y=None):
    return model.score(X)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scoring": "bci"}, ValueError, "There is no score 'bci'"),
        ({"scoring": 3}, TypeError, "'scoring' parameter of StructureSearchCV"),
        ({"scoring": []}, ValueError, "holds no score"),
        ({"scoring": ["bic"], "refit": "ais"}, ValueError, "must name one of the scores bic"),
        ({"space": []}, ValueError, "at least one setting"),
        ({"space": {"latnets": [2]}}, ValueError, "latnets"),
        ({"strategy": 4}, TypeError, "must be a name or a Strategy"),
        ({"n_rescored": 0}, ValueError, "n_rescored"),
        ({"time_budget": 0}, ValueError, "time_budget"),
        ({"averaging": True, "cv": 2}, ValueError, "needs a posterior"),
        ({"rescoring": "bic", "cv": 2}, ValueError, "evidence of all rows"),
        ({"rescoring": "bci"}, ValueError, "There is no score 'bci'"),
    ],
)
def test_bad_input(change, error, message):
    search = StructureSearchCV(MODEL, GRID, random_state=0).set_params(**change)
    with pytest.raises(error, match=message):
        search.fit(CARCINOMA)


def test_before_fit(rows):
    with pytest.raises(NotFittedError):
        StructureSearchCV(MODEL, GRID).score_samples(rows)


def test_progress_is_printed(capsys, rows):
    StructureSearchCV(MODEL, GRID, verbose=2, random_state=0).fit(rows)
    printed = capsys.readouterr().out
    assert "[StructureSearchCV] search: 2 of 3, latents=3: -" in printed
    assert "3 of 3 candidates" in printed


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
