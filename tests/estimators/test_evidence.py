"""What estimators say of the evidence: one method for all scores, tables of them, and scikit-learn's scoring."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBLinearDynamicalSystem, VBMixture, VBNetwork
from skvbem.datasets import load_carcinoma, load_faithful
from skvbem.errors import EvidenceWarning, UnknownCategoryWarning
from skvbem.evidence import SCORES, AllRows, Evidence, Score, certify_evidence, evidence_table, scorer
from skvbem.reports.evidence_tables import IN_TABLE

X = pd.DataFrame(load_carcinoma().data, columns=load_carcinoma().feature_names)
QUICK = {"ais": {"n_chains": 8, "n_steps": 16}, "importance": {"n_draws": 64}}


@pytest.fixture(scope="module")
def fitted():
    return VBDiscreteDAG(latents=2, random_state=0).fit(X)


@pytest.fixture(scope="module")
def tiny():
    rows = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]]
    return VBDiscreteDAG(latents=2, random_state=0).fit(rows), rows


@pytest.mark.parametrize("kind", SCORES)
def test_every_score_is_a_method(tiny, kind):
    model, rows = tiny
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvidenceWarning)  # six rows are few for some scores
        found = model.log_evidence(rows, kind=kind)
    assert isinstance(found, Evidence)
    assert found.kind == kind
    assert np.isfinite(found.value)
    assert found.n_samples == 6
    assert (found.standard_error is not None) == SCORES[kind].random
    if found.is_lower_bound and not SCORES[kind].random:
        assert found.value <= -9.43396413581569 + 1e-9  # the exact evidence


def test_exact_evidence_of_six_rows(tiny):
    model, rows = tiny
    assert model.log_evidence(rows, kind="exact").value == pytest.approx(-9.43396413581569, abs=1e-10)


def test_order_of_rows_weights_and_containers_do_not_matter(fitted):
    asked = fitted.log_evidence(X, kind="collapsed").value
    permuted = np.random.default_rng(0).permutation(len(X))
    assert fitted.log_evidence(X.iloc[permuted], kind="collapsed").value == pytest.approx(asked, rel=1e-12)
    distinct = X.value_counts()
    weighted = distinct.index.to_frame(index=False)
    counted = fitted.log_evidence(weighted, sample_weight=distinct.to_numpy(), kind="collapsed")
    assert counted.value == pytest.approx(asked, rel=1e-12)


def test_other_data_are_refused(fitted):
    for other in (X.iloc[:-1], X.iloc[[0, *range(len(X) - 1)]]):
        with pytest.raises(ValueError, match="is other data"):
            fitted.log_evidence(other, kind="bic")
    with pytest.raises(ValueError, match="is other data"):
        fitted.log_evidence(X, sample_weight=np.full(len(X), 2.0), kind="bic")
    fractional = clone(fitted).fit(X, sample_weight=np.full(len(X), 0.5))
    assert np.isfinite(fractional.log_evidence(X, sample_weight=np.full(len(X), 0.5), kind="bic").value)
    with pytest.raises(ValueError, match="is other data"):
        fractional.log_evidence(X, sample_weight=np.full(len(X), 0.25), kind="bic")
    with pytest.raises(ValueError, match="whole-number sample weights"):
        fractional.log_evidence(X, sample_weight=np.full(len(X), 0.5), kind="ais")


def test_rows_that_count_for_nothing_are_absent(fitted):
    weights = np.append(np.ones(len(X)), 0.0)
    padded = np.vstack([X.to_numpy(), X.to_numpy()[:1]])
    model = VBDiscreteDAG(latents=2, random_state=0).fit(padded, sample_weight=weights)
    assert model.log_evidence(X.to_numpy(), kind="lower_bound").value == model.lower_bound_


def test_without_data_only_the_bound(fitted):
    found = fitted.log_evidence()
    assert found.value == fitted.lower_bound_ == fitted.log_evidence(X).value
    assert found.is_lower_bound
    with pytest.raises(ValueError, match="needs X"):
        fitted.log_evidence(kind="bic")
    with pytest.raises(ValueError, match="after method='ml'"):
        VBDiscreteDAG(latents=2, method="ml", random_state=0).fit(X).log_evidence()


def test_after_partial_fit_there_is_no_evidence():
    model = VBDiscreteDAG(latents=2, random_state=0).partial_fit(X.iloc[::2])
    assert model.log_evidence(X.iloc[::2], kind="bic").value < 0
    model.partial_fit(X.iloc[1::2])
    for asked in (None, X):
        with pytest.raises(ValueError, match="updated by partial_fit"):
            model.log_evidence(asked)


def test_a_learned_prior_is_said(fitted):
    model = VBDiscreteDAG(latents=2, learn_prior=True, random_state=0).fit(X)
    assert model.log_evidence().note == "given the optimized prior"
    assert "given the optimized prior" in repr(model.log_evidence(X, kind="collapsed"))
    assert fitted.log_evidence().note == ""


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_any_method_answers_every_form(method):
    """A score fits the form that it needs: the same value whatever the estimator was fitted by."""
    fitted, model = (VBDiscreteDAG(latents=2, method=m, tol=1e-9, random_state=0).fit(X) for m in ("vb", method))
    for kind in ("lower_bound", "bic", "cheeseman_stutz"):
        assert model.log_evidence(X, kind=kind).value == pytest.approx(
            fitted.log_evidence(X, kind=kind).value, abs=2e-5
        )


def test_given_starts(fitted):
    bic = fitted.log_evidence(X, kind="bic").value
    init = {node: np.asarray(table) for node, table in fitted.tables_.items()}
    model = VBDiscreteDAG(latents=2, init=init, random_state=0).fit(X)
    assert model.log_evidence(X, kind="bic").value == pytest.approx(bic, abs=1e-4)


def test_scikit_learns_sign(fitted):
    bic = fitted.log_evidence(X, kind="bic")
    assert fitted.bic(X) == -2 * bic.value
    likelihood = VBDiscreteDAG(latents=2, method="ml", tol=1e-9, random_state=0).fit(X).log_likelihood_
    assert fitted.bic(X) == pytest.approx(-2 * likelihood + 15 * np.log(118), abs=1e-4)
    assert fitted.aic(X) == pytest.approx(-2 * likelihood + 2 * 15, abs=1e-4)


def test_seeds(fitted):
    quick = QUICK["ais"]
    ours = fitted.log_evidence(X, kind="ais", **quick).value
    assert fitted.log_evidence(X, kind="ais", **quick).value == ours
    assert fitted.log_evidence(X, kind="ais", random_state=7, **quick).value != ours
    assert pickle.loads(pickle.dumps(fitted)).log_evidence(X, kind="ais", **quick).value == ours
    two = clone(fitted).set_params(n_jobs=2).fit(X)
    assert two.log_evidence(X, kind="ais", **quick).value == ours


def test_errors_name_what_there_is(fitted):
    with pytest.raises(ValueError, match=r"There is no score .ias.*lower_bound"):
        fitted.log_evidence(X, kind="ias")
    with pytest.raises(TypeError, match=r"has no option .n_sweep..*n_sweeps"):
        fitted.log_evidence(X, kind="collapsed", n_sweep=3)
    with pytest.raises(ValueError, match="feature names"):
        fitted.log_evidence(X.iloc[:, :2], kind="bic")


def test_unseen_categories_are_other_data(fitted):
    other = X.copy()
    other.iloc[0, 0] = 7
    with pytest.warns(UnknownCategoryWarning), pytest.raises(ValueError, match="is other data"):
        fitted.log_evidence(other, kind="bic")


def test_parameters_are_given_as_tables():
    """Chains that start at tables of nodes start at the point that those tables are."""
    model = VBDiscreteDAG({"A": ["h"], "B": ["h"], "C": ["A"]}, latents=["h"], random_state=0).fit(X)
    tables = {node: np.asarray(table) for node, table in model.tables_.items()}
    point = np.concatenate([tables[node].ravel() for node in ["h", *X.columns]])
    options = {"n_steps": 8, "n_chains": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvidenceWarning)  # two chains are few
        asked = {
            start: model.log_evidence(X, kind="ais_metropolis", start=value, **options).value
            for start, value in {"tables": tables, "point": point}.items()
        }
        table = evidence_table(model, X, ["ais_metropolis"], options={"ais_metropolis": {"start": tables, **options}})
    assert asked["tables"] == pytest.approx(asked["point"], rel=1e-12)
    assert table["ais_metropolis"].value == asked["tables"]
    with pytest.raises(ValueError, match=r"needed for every node.*'h'"):
        model.log_evidence(X, kind="ais_metropolis", start={"A": tables["A"]})


def test_table(fitted):
    table = evidence_table(fitted, X, ["bic", "exact", "ais", "lower_bound"], options=QUICK)
    assert set(table) == {"bic", "ais", "lower_bound"}
    values = [evidence.value for evidence in table.values()]
    assert values == sorted(values, reverse=True)
    assert table["lower_bound"].value == fitted.lower_bound_
    assert "ways to complete" in table.remarks["exact"]
    frame = table.to_frame()
    assert list(frame.index) == [*table, "exact"]
    assert frame.loc["bic", "nats"] == table["bic"].value
    assert repr(table).count("\n") >= 4
    assert "<table" in table._repr_html_()


def test_grid_search_on_all_rows_and_on_folds():
    model = VBDiscreteDAG(random_state=0, n_init=3)
    grid = {"latents": [2, 3, 4]}
    search = GridSearchCV(model, grid, scoring=scorer("lower_bound"), cv=AllRows()).fit(X)
    expected = [VBDiscreteDAG(latents=k, n_init=3, random_state=0).fit(X).lower_bound_ for k in (2, 3, 4)]
    assert search.cv_results_["mean_test_score"] == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"test folds of a cross-validation are: .* cv=AllRows\(\)"):
        GridSearchCV(model, grid, scoring=scorer("lower_bound"), cv=3, error_score="raise").fit(X)


def score_of_held_out(search, X, y=None):
    return search.best_estimator_.score(X)


def test_a_search_by_the_evidence_within_a_cross_validation():
    rows = load_faithful().data
    search = GridSearchCV(
        VBMixture(n_init=1, init="k-means++", random_state=0),
        {"n_components": [1, 2]},
        scoring=scorer("lower_bound"),
        cv=AllRows(),
        error_score="raise",
    )
    outer = cross_validate(search, rows, cv=3, scoring=score_of_held_out, return_estimator=True)
    assert [fit.best_params_ for fit in outer["estimator"]] == 3 * [{"n_components": 2}]
    assert np.isfinite(outer["test_score"]).all()
    assert clone(search).cv.get_n_splits() == 1


@pytest.mark.parametrize(
    ("estimator", "lacks"),
    [
        (VBMixture(2, n_init=1, random_state=0), {"collapsed", "collapsed_ascent"}),
        (VBFactorAnalysis(1, random_state=0), {"collapsed", "collapsed_ascent"}),
        (
            VBLinearDynamicalSystem(1, n_init=1, random_state=0),
            {"collapsed", "collapsed_ascent"},
        ),
        (VBHMM(2, n_init=1, random_state=0), {"collapsed", "collapsed_ascent"}),
        (VBNetwork(latents=2, emission="gaussian", n_init=1, random_state=0), {"collapsed", "collapsed_ascent"}),
        (VBDiscreteDAG(latents=2, n_init=1, random_state=0), set()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_table_by_default_says_which_scores_a_model_does_not_have(estimator, lacks):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    if isinstance(estimator, VBDiscreteDAG):
        rows = (rows > 0).astype(int)
    fit = estimator.fit(rows)
    table = evidence_table(fit, rows, options={"ais": {"n_chains": 4, "n_steps": 8}})
    assert set(table) == {*IN_TABLE} - lacks
    assert lacks <= set(table.remarks)
    assert np.isfinite([evidence.value for evidence in table.values()]).all()
    with pytest.raises(TypeError, match="no option"):
        evidence_table(fit, rows, ["bic"], options={"bic": {"n_steps": 8}})


def unregistered(evaluation):
    """A score from outside the library, which has no name there."""
    return Evidence(evaluation.fit("vb").objective - 1.0, "mine", is_lower_bound=True)


def test_a_score_needs_no_name_in_the_library(fitted):
    mine = Score("mine", unregistered)
    assert "mine" not in SCORES
    assert fitted.log_evidence(X, kind=mine).value == pytest.approx(fitted.lower_bound_ - 1.0)
    assert evidence_table(fitted, X, ["bic", mine])["mine"].value == pytest.approx(fitted.lower_bound_ - 1.0)
    sent = pickle.loads(pickle.dumps(scorer(mine)))
    assert sent(fitted, X) == pytest.approx(fitted.lower_bound_ - 1.0)
    assert fitted.log_evidence(kind=SCORES["lower_bound"]).value == fitted.lower_bound_


@pytest.mark.parametrize("before", [[StandardScaler()], [StandardScaler(), PCA(2)], []], ids=len)
def test_the_last_step_of_a_pipeline_is_scored(before):
    """On the rows that it was fitted to: of PCA, `transform` gives other last digits than the fit has seen."""
    rows = load_faithful().data
    model = make_pipeline(*before, VBMixture(2, random_state=0)).fit(rows)
    assert scorer("lower_bound")(model, rows) == model[-1].lower_bound_
    grid = {"vbmixture__n_components": [1, 2, 3]}
    search = GridSearchCV(model, grid, scoring=scorer("lower_bound"), cv=AllRows()).fit(rows)
    assert search.best_params_ == {"vbmixture__n_components": 2}
    with pytest.raises(ValueError, match="test folds"):
        scorer("lower_bound")(model, rows[:100])


def test_scorers_are_values():
    assert scorer("bic") == scorer("bic")
    assert pickle.loads(pickle.dumps(scorer("ais", n_steps=8))) == scorer("ais", n_steps=8)
    with pytest.raises(TypeError, match="no option"):
        scorer("bic", n_steps=8)


def test_certificate_of_simulated_data():
    model = VBDiscreteDAG(latents=2, random_state=0).fit(X.iloc[::3])
    certificate = certify_evidence(model, X.iloc[::3], random_state=1)
    errors = np.hypot(certificate.lower.standard_error, certificate.upper.standard_error)
    assert abs(certificate.gap) < 4 * errors
    again = certify_evidence(model, X.iloc[::3], random_state=1)
    assert again.gap == certificate.gap


def test_certificate_of_data_made_by_tables_at_hand():
    rng = np.random.default_rng(5)
    weights = rng.dirichlet([1, 1])
    items = rng.dirichlet([1, 1], size=(3, 2))
    classes = rng.choice(2, size=60, p=weights)
    rows = np.stack([(rng.random(60) < items[j, classes, 1]).astype(int) for j in range(3)], axis=1)
    model = VBDiscreteDAG(latents=2, categories=[[0, 1]] * 3, random_state=0).fit(rows)
    tables = {"h0": weights, **{f"x{j}": items[j] for j in range(3)}}
    certificate = certify_evidence(model, rows, tables)
    errors = np.hypot(certificate.lower.standard_error, certificate.upper.standard_error)
    assert abs(certificate.gap) < 4 * errors
    with pytest.raises(ValueError, match=r"needed for every node.*x2"):
        certify_evidence(model, rows, {node: tables[node] for node in ("h0", "x0", "x1")})


def test_doubts_are_spoken_by_estimators_at_the_line_of_the_user(tiny):
    model, rows = tiny
    with pytest.warns(EvidenceWarning, match="one chain per start has no standard error") as caught:
        found = model.log_evidence(rows, kind="ais", n_chains=1)
    assert caught[0].filename == __file__
    assert [str(each.message) for each in caught] == list(found.doubts)
    with pytest.warns(EvidenceWarning, match="one chain per start"):
        certify_evidence(model, rows, n_chains=1, n_steps=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = evidence_table(model, rows, ["ais"], options={"ais": {"n_chains": 1}})
    assert table.remarks["ais"] == found.doubts[0]


def test_a_fit_made_for_a_score_that_did_not_converge():
    model = VBDiscreteDAG(latents=3, max_iter=2, n_init=2, random_state=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    with pytest.warns(EvidenceWarning, match=r"The ML fit of this score did not converge. Raise 'max_iter'"):
        model.log_evidence(X, kind="bic")


@pytest.mark.parametrize("method", ["map", "vb"])
def test_scores_at_the_mode_take_the_basis_of_the_estimator(method):
    basis = {"method": method, "map_basis": "probability", "prior": 2.0, "random_state": 0}
    model, natural = (
        VBDiscreteDAG(latents=2, **basis).fit(X),
        VBDiscreteDAG(latents=2, prior=2.0, random_state=0).fit(X),
    )
    for kind in ("draper", "bicp", "mled", "cheeseman_stutz", "laplace"):
        found = model.log_evidence(X, kind=kind)
        assert found.form == "map_probability"
        assert found.value == pytest.approx(natural.log_evidence(X, kind=kind, form="map_probability").value, rel=1e-9)
        assert found.value == model.log_evidence(X, kind=kind, form="map").value
        assert natural.log_evidence(X, kind=kind).form == "map"
    if method == "map":
        likelihood = model.log_evidence(X, kind="draper").details["log_likelihood"]
        assert likelihood == pytest.approx(model.score_samples(X).sum(), rel=1e-9)
    assert model.log_evidence(X, kind="bic").form == "ml"


def test_a_table_that_the_time_ended_has_all_its_lines(fitted):
    table = evidence_table(fitted, X, ["bic", "ais"], time_budget=0.0)
    assert [*table.to_frame().index] == ["bic", "ais"]
    assert "ended before" in table.remarks["ais"]
