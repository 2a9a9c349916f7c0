"""What goes wrong at the edges: very large weights, sizes, wrapped sums, questions that are none, damaged pickles."""

import numpy as np
import pytest
import sklearn.utils.validation
from estimators.inputs import quiet, refused, warned
from laws.two_coins import CoinAscent, CoinInstance

from skvbem import VBHMM, VBDiscreteDAG, VBMixture
from skvbem.errors import BoundFellError, DataWarning
from skvbem.models.hmm.model import HMM
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

pl = pytest.importorskip("polars")
CODES = np.random.default_rng(0).integers(0, 3, (24, 3))
ESTIMATORS = [VBDiscreteDAG(n_init=1, random_state=0), VBMixture(2, n_init=1, random_state=0)]
ESTIMATORS.append(VBHMM(2, n_init=1, random_state=0))
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
    estimator = VBHMM(2, n_init=1, random_state=0).fit([frame, frame[:10]])
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
    assert abs(models[0].lower_bounds_ - models[1].lower_bounds_).max() <= max(stated, 1e-9 * abs(models[0].lower_bound_))


def test_ordinary_weights_leave_rounding_far_below_a_nat():
    X, weight = populations(60.0)
    fitted = VBMixture(3, n_init=1, random_state=0).fit(X, sample_weight=weight).fitted
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
        text = "'sample_weight' has 2 weights, one for each sequence. X is a table of 24 rows: give a weight for each row"
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
    model = VBMixture(4, weight_concentration_prior_type="dirichlet_process", n_init=1, random_state=0)
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
    with pytest.raises(BoundFellError, match=r"most likely in the model TwoCoins, .*skvbem.testing.check_model") as error:
        run(ascent, np.ones((6, 1)), tol=1e-6, max_iter=100)
    assert "please report" not in str(error.value)
