"""What goes wrong at the edges: very large weights, sizes, wrapped sums, questions that are none, damaged pickles."""

import os
import pickle
import signal
import threading
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import sklearn.utils.validation
from estimators.inputs import quiet, refused, warned
from laws.two_coins import CoinAscent, CoinInstance
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skvbem import VBHMM, VBDiscreteDAG, VBMixture
from skvbem._lazy import cached_property
from skvbem.emissions import Gaussian
from skvbem.errors import BoundFellError, DataWarning, TooLargeError
from skvbem.evidence import certify_evidence, evidence_table, scorer
from skvbem.models.hmm.model import HMM
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

pl = pytest.importorskip("polars")
CODES = np.random.default_rng(0).integers(0, 3, (24, 3))
ESTIMATORS = [VBDiscreteDAG(n_init=1, random_state=0), VBMixture(2, n_init=1, random_state=0)]
ESTIMATORS.append(VBHMM(2, n_init=1, random_state=0))
# A prior without hidden hyperparameters.
KNOWN = {"covariance_prior": None, "mean_precision_prior": 1.0}
any_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)


# --- names ------------------------------------------------------------------------------------------------------------


@any_estimator
def test_names_are_compared_whatever_scikit_learn_knows_of_a_frame(estimator, monkeypatch):
    """Its older versions find no names in newer polars frames, and would take columns in any order."""
    monkeypatch.setattr(sklearn.utils.validation, "_get_feature_names", lambda X: None)
    frame = pl.DataFrame({"a": CODES[:, 0], "b": CODES[:, 1], "c": CODES[:, 2]})
    estimator.fit(frame)
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    turned = frame.select("c", "b", "a")
    for asked in (estimator.predict, estimator.score_samples, estimator.log_evidence, estimator.partial_fit):
        refused(ValueError, "must be in the same order as they were in fit", asked, turned)
    warned(UserWarning, "X does not have valid feature names", estimator.predict, CODES)


def test_names_of_a_list_of_sequences_are_compared():
    frame = pl.DataFrame({"a": CODES[:, 0], "b": CODES[:, 1]})
    estimator = VBHMM(2, emission="gaussian", n_init=1, random_state=0).fit([frame, frame[:10]])
    refused(ValueError, "must be in the same order", estimator.predict, [frame.select("b", "a")])


# --- weights ----------------------------------------------------------------------------------------------------------


def populations(total, seed=0):
    """Sixty rows of three measurements, weighed as countries by their people."""
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(60, 3)), np.exp(rng.normal(16, 2.0, 60))
    return X, weight * (total / weight.sum())


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("total", [3e8, 8e9, 1e11])
def test_weights_of_billions_are_fitted_and_what_rounding_does_is_said(covariance_type, total):
    """Squares about the origin then hold few digits of those about a component's mean: that is no fall of the bound."""
    X, weight = populations(total)
    estimator = VBMixture(3, covariance_type=covariance_type, n_init=3, random_state=0)
    warned(DataWarning, "Rounding may move lower_bound_ by up to", estimator.fit, X, sample_weight=weight)
    assert np.isfinite(estimator.lower_bound_)
    assert np.isfinite(estimator.predict_proba(X)).all()


def test_the_rounding_that_is_said_is_what_there_is():
    """Fits whose rows are moved by nothing but a linear map have one bound, but for its Jacobian and for rounding."""
    X, weight = populations(8e9)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    start = np.eye(3)[np.arange(60) % 3]
    models = [VBMixture(3, init=start, max_iter=2) for _ in range(2)]
    for model, rows in zip(models, (X, X @ turn)):
        quiet(model.fit, rows, sample_weight=weight)
    fitted = models[0].fitted
    stated = fitted.model.rounding(fitted.form, fitted.statistics[:, None])[0]
    assert abs(models[0].lower_bounds_ - models[1].lower_bounds_).max() <= max(
        stated, 1e-9 * abs(models[0].lower_bound_)
    )


def test_ordinary_weights_leave_rounding_far_below_a_nat():
    X, weight = populations(60.0)
    fitted = VBMixture(3, emission=Gaussian(**KNOWN), n_init=1, random_state=0).fit(X, sample_weight=weight).fitted
    assert fitted.model.rounding(fitted.form, fitted.statistics[:, None])[0] < 1e-9


def test_weights_beyond_all_digits_are_refused_by_name():
    X, weight = populations(8e17)
    text = "the weights of the rows add up to 8e+17"
    assert "Divide 'sample_weight' by a common factor" in refused(
        FloatingPointError, text, VBMixture(3, n_init=3, random_state=0).fit, X, sample_weight=weight
    )


@any_estimator
def test_weights_that_are_masked_are_refused(estimator):
    weight = np.ma.array(np.ones(len(CODES)), mask=np.arange(len(CODES)) < 5)
    refused(ValueError, "Some are masked", estimator.fit, CODES, sample_weight=weight)
    estimator.fit(CODES, sample_weight=np.ma.array(np.ones(len(CODES)), mask=False))


def test_a_weight_for_each_sequence_of_one_table_says_what_to_do():
    estimator = VBHMM(2, n_init=1, random_state=0)
    for where in ({"lengths": [14, 10]}, {"sequence_id": [0] * 14 + [1] * 10}):
        text = (
            "'sample_weight' has 2 weights, one for each sequence. X is a table of 24 rows: give a weight for each row"
        )
        refused(ValueError, text, estimator.fit, CODES, sample_weight=[1.0, 2.0], **where)
        refused(ValueError, text, estimator.fit(CODES, **where).score, CODES, sample_weight=[1.0, 2.0], **where)
    by_rows = estimator.fit(CODES, lengths=[14, 10], sample_weight=np.repeat([1.0, 2.0], [14, 10])).lower_bound_
    listed = estimator.fit([CODES[:14], CODES[14:]], sample_weight=[1.0, 2.0]).lower_bound_
    assert by_rows == listed


# --- lengths ----------------------------------------------------------------------------------------------------------


def test_lengths_whose_sum_wraps_to_the_number_of_rows():
    wrapping = [2**62] * 4 + [24]
    assert np.sum(wrapping) == 24
    refused(ValueError, "'lengths' add up to 18446744073709551640, but X has 24", VBHMM().fit, CODES, lengths=wrapping)
    fitted = VBHMM(2, n_init=1, random_state=0).fit(CODES)
    refused(ValueError, "'lengths' add up to 18446744073709551640", fitted.predict, CODES, lengths=wrapping)
    model = fitted.fitted.model
    table = model.emission.prepare(CODES.astype(float))
    assert isinstance(model, HMM)
    refused(ValueError, "lengths of sequences must add up to the 24 rows", model.compile, table, wrapping)


@pytest.mark.parametrize("where", ["sequence_id", "lengths"])
def test_what_locates_rows_is_not_masked(where):
    given = {"sequence_id": np.zeros(24, dtype=int), "lengths": np.array([12, 12])}[where]
    masked = np.ma.array(given, mask=np.arange(len(given)) < 1)
    text = {"sequence_id": "'sequence_id' of row 0 is missing", "lengths": "'lengths' must be a list of whole numbers"}
    refused(ValueError, text[where], VBHMM().fit, CODES, **{where: masked})


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [5.0, "optimized"])
def test_the_trace_does_not_fall_where_components_are_put_in_order(concentration):
    """Sticks broken in turn have large components first, and a bound of their own for every order."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(n, 2)) + 6 * k for k, n in enumerate((8, 30, 15, 60))])
    model = VBMixture(4, weight_concentration_prior_type="dirichlet_process", n_init=3, random_state=0)
    model.set_params(weight_concentration_prior=concentration).fit(X)
    assert np.diff(model.lower_bounds_).min() >= -1e-9 * abs(model.lower_bound_)
    assert model.lower_bounds_[-1] == model.lower_bound_
    assert model.lower_bound_ > model.restarts_.bounds.max()  # by a run after the components changed places


def test_one_component_that_joins_rows():
    X, _ = populations(60.0)
    joined = VBMixture(1, init="hierarchical", random_state=0).fit(X)
    assert joined.lower_bound_ == pytest.approx(VBMixture(1, random_state=0).fit(X).lower_bound_, rel=1e-12)


class FallingCoins(CoinAscent):
    """Steps of a model from outside whose bound is lower at every step."""

    def advance(self, statistics, n_steps):
        trace = super().advance(statistics, n_steps)
        self.n_taken = getattr(self, "n_taken", 0) + n_steps
        return trace - self.n_taken


def test_a_model_from_outside_whose_bound_falls_is_named():
    instance = CoinInstance(np.random.default_rng(0).integers(0, 2, (6, 3)))
    ascent = FallingCoins(instance.model, instance.compile(), posteriors.VB)
    with pytest.raises(
        BoundFellError, match=r"most likely in the model TwoCoins, .*skvbem.testing.check_model"
    ) as error:
        run(ascent, np.ones((6, 1)), tol=1e-6, max_iter=100)
    assert "please report" not in str(error.value)


# --- sizes ------------------------------------------------------------------------------------------------------------


@any_estimator
def test_answers_too_large_for_memory_are_refused_before_anything_is_allocated(estimator):
    owner = type(estimator).__name__
    estimator.fit(CODES)
    text = f"bytes; the 'max_memory' parameter of {owner} allows 4e+09. Ask for fewer at a time, or raise it."
    for many in (10**15, 10**9):
        refused(TooLargeError, text, estimator.sample, many)
    few = clone(estimator).set_params(max_memory=1e4).fit(CODES)
    refused(TooLargeError, "allows 1e+04", few.sample, 1000)
    few.sample(5)


def test_long_samples_and_forecasts_of_sequences_are_refused():
    estimator = VBHMM(2, n_init=1, random_state=0).fit(CODES)
    refused(TooLargeError, "1.84e+19 steps drawn would take at least", estimator.sample, [2**62] * 4)
    text = "A forecast of 1e+12 steps for 1 sequences would take at least"
    refused(TooLargeError, text, estimator.forecast, CODES, n_steps=10**12)
    words = VBHMM(2, n_init=1, random_state=0, max_memory=1e5).fit(CODES.astype(str))
    assert words.forecast(CODES.astype(str), n_steps=900).expected["x0"].shape == (1, 900, 3)
    refused(TooLargeError, "Ask for fewer steps", words.forecast, CODES.astype(str), n_steps=1000)


@pytest.mark.parametrize(("covariance_type", "n_components"), [("full", 2), ("tied", 20)])
def test_wide_tables_whose_covariances_cost_minutes_are_told_of(covariance_type, n_components):
    X = np.random.default_rng(0).normal(size=(30, 500))
    model = VBMixture(n_components, covariance_type=covariance_type, random_state=0)
    with pytest.raises(DataWarning, match=r"inverts the covariance matrices of 500 columns .*in 10 starts.*'n_init'"):
        model.fit(X)  # warnings are errors here, so that the fit goes no further


# --- sums over completions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_components", [2, 3])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_exact_sums_of_more_terms_than_floats_count_are_refused_with_their_number(n_components, covariance_type):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    emission = Gaussian(covariance_type, **KNOWN)
    model = VBMixture(n_components, emission=emission, n_init=1, tol=1e3, random_state=0).fit(X)
    text = "The exact evidence is a sum of 1.23e+903 terms" if n_components == 2 else "The exact evidence is a sum of "
    refused(TooLargeError, text, model.log_evidence, X, kind="exact")
    refused(
        ValueError,
        "The score 'exact' needs 'max_terms' to be an int >= 1",
        model.log_evidence,
        X,
        kind="exact",
        max_terms=0,
    )


# --- questions that are none ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("ais", {"n_chains": "x"}),
        ("ais", {"n_chains": 2.5}),
        ("ais", {"n_steps": 12.5}),
        ("ais", {"n_fits": True}),
        ("smc", {"n_runs": 0}),
        ("smc", {"n_particles": "x"}),
        ("importance", {"n_draws": "x"}),
        ("importance_gibbs", {"n_completions": [3]}),
        ("ais_metropolis", {"n_steps": 1.0}),
        ("collapsed", {"n_sweeps": "x"}),
    ],
)
def test_counts_of_scores_are_whole_numbers(kind, options):
    ((name, value),) = options.items()
    estimator = VBDiscreteDAG(n_init=1, random_state=0).fit(CODES)
    text = f"The score {kind!r} needs {name!r} to be an int >= "
    assert f"Got {value!r} instead." in refused(ValueError, text, estimator.log_evidence, CODES, kind=kind, **options)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"fractions": "x"}, "'fractions' must be a list of numbers from 0 to 1"),
        ({"fractions": 0.5}, "'fractions' must be a list of numbers from 0 to 1"),
        ({"fractions": [2.0]}, "'fractions' must be a list of numbers from 0 to 1"),
        ({"bend": "x"}, "'bend' must be a number above 0"),
        ({"conditional_ess": "x"}, "'conditional_ess' must be a number between 0 and 1"),
    ],
)
def test_other_options_of_chains(options, part):
    estimator = VBDiscreteDAG(n_init=1, random_state=0).fit(CODES)
    refused(ValueError, part, estimator.log_evidence, CODES, kind="ais", **options)


def test_scores_tables_and_certificates_of_what_is_none():
    estimator = VBDiscreteDAG(n_init=1, random_state=0).fit(CODES)
    for none in (["ais"], None, 3):
        refused(TypeError, f"such as 'ais', or a Score. Got {none!r}", estimator.log_evidence, CODES, kind=none)
        refused(TypeError, f"such as 'ais', or a Score. Got {none!r}", scorer, none)
    for none in (3, "bic", None):
        refused(
            TypeError,
            f"must be a list of names of scores, such as ['bic', 'ais']. Got {none!r}",
            evidence_table,
            estimator,
            CODES,
            none,
        )
    refused(
        TypeError,
        "The 'options' parameter of evidence_table must be a mapping",
        evidence_table,
        estimator,
        CODES,
        ["bic"],
        options=3,
    )
    for none, named in (("x", "'x'"), (VBMixture, "the class VBMixture"), (None, "None")):
        for asked in (certify_evidence, evidence_table, scorer("bic")):
            refused(
                TypeError,
                f"takes a fitted estimator of this library, such as VBMixture(2).fit(X). Got {named}",
                asked,
                none,
                CODES,
            )


@pytest.mark.parametrize("flag", ["x", 1, None])
def test_flags_are_true_or_false(flag):
    network, chain = (each.fit(CODES) for each in (clone(ESTIMATORS[0]), clone(ESTIMATORS[2])))
    text = f"must be True or False. Got {flag!r} instead."
    refused(ValueError, f"The 'return_proba' parameter of impute {text}", network.impute, CODES, return_proba=flag)
    refused(
        ValueError,
        f"The 'return_error' parameter of score_samples {text}",
        chain.score_samples,
        CODES,
        return_error=flag,
    )


@any_estimator
def test_no_threads(estimator):
    owner = type(estimator).__name__
    for none in (0, 1.5, True):
        text = f"The 'n_jobs' parameter of {owner} must be an int in the range [1, inf), an int in the range (-inf, -1]"
        refused(ValueError, text, clone(estimator).set_params(n_jobs=none).fit, CODES)


@any_estimator
@pytest.mark.parametrize("level", [None, "x", True, 0, 1])
def test_levels_that_are_none(estimator, level):
    asked = clone(estimator).fit(CODES)
    for method in ("credible_intervals", *(["summary"] if isinstance(estimator, VBDiscreteDAG) else [])):
        text = (
            f"The 'level' parameter of {method} must be a number between 0 and 1, such as 0.95. Got {level!r} instead."
        )
        refused(ValueError, text, getattr(asked, method), level=level)


@any_estimator
@pytest.mark.parametrize(
    ("cells", "named"),
    [([[1, 2], [3], [4]], "List(Int64)"), ([{"u": 1}, {"u": 2}, {"u": 3}], "Struct({'u': Int64})")],
)
def test_cells_of_polars_frames_that_hold_several_values(estimator, cells, named):
    frame = pl.DataFrame({"a": cells, "b": [1.0, 2.0, 1.0]})
    text = f"Column 'a' of X holds {named}; a cell argument must be a string, a boolean or a number"
    refused(TypeError, text, estimator.fit, frame)


# --- what is loaded ---------------------------------------------------------------------------------------------------


def damaged(fitted, **changes):
    """A fit with other fields, whatever they are."""
    return replace(fitted, **changes)


def not_a_number(fitted):
    statistics = fitted.statistics.copy()
    statistics[-1] = np.nan
    return damaged(fitted, statistics=statistics)


def one_level_more(fitted):
    """Categories that number cells beyond the tables."""
    columns = deepcopy(fitted.columns)
    encoder = columns if hasattr(columns, "categories_") else columns.groups[0].encoder
    encoder.categories_[0] = np.append(encoder.categories_[0], encoder.categories_[0][-1])
    return damaged(fitted, columns=columns)


@any_estimator
@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (not_a_number, "its statistics are not finite"),
        (lambda fitted: damaged(fitted, statistics=fitted.statistics[:-1]), "and its statistics are not"),
        (lambda fitted: damaged(fitted, statistics=-1e3 - fitted.statistics), "make no posterior density"),
        (lambda fitted: damaged(fitted, statistics=None), "its statistics are not"),
        (lambda fitted: damaged(fitted, model=None), "cannot be read (AttributeError"),
        (lambda fitted: "x", "its fit is a str"),
        (one_level_more, "are not as many as its tables have"),
    ],
)
def test_fits_whose_parts_do_not_belong_together_are_not_loaded(estimator, damage, part):
    """Without this, predictions index beyond tables, or are not numbers."""
    estimator = clone(estimator).fit(CODES.astype(str))
    fine = pickle.loads(pickle.dumps(estimator))
    assert np.array_equal(fine.predict(CODES.astype(str)), estimator.predict(CODES.astype(str)))
    estimator._fitted_ = damage(estimator.fitted)
    text = refused(
        ValueError,
        f"What was loaded is no {type(estimator).__name__}, or is damaged: ",
        pickle.loads,
        pickle.dumps(estimator),
    )
    assert part in text


@any_estimator
def test_a_state_that_lacks_a_parameter_is_not_loaded(estimator):
    whole = clone(estimator)
    state = {name: value for name, value in whole.__getstate__().items() if name != "max_iter"}
    refused(ValueError, "it lacks the parameter 'max_iter'", type(whole).__new__(type(whole)).__setstate__, state)


# --- threads of BLAS --------------------------------------------------------------------------------------------------


def test_threads_of_blas_change_no_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 12)) + 3 * rng.integers(0, 2, 4000)[:, None]
    mixture, network = VBMixture(2, n_init=1, random_state=0), VBDiscreteDAG(n_init=1, random_state=0)
    bounds = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, user_api="blas"):
            bounds.append([each.fit(rows).lower_bound_ for each, rows in ((mixture, X), (network, CODES))])
    assert bounds[0] == bounds[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_waits_for_no_property_that_another_thread_computes():
    begun, goes_on = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits):
            self.waits = waits

        @cached_property
        def answer(self):
            if self.waits:
                begun.set()
                goes_on.wait(60)
            return 42

    slow = Slow(True)
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    assert begun.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(20)  # which ends a child that waits
        os._exit(Slow(False).answer)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    goes_on.set()
    thread.join()
    assert status == 42
    assert slow.answer == 42
