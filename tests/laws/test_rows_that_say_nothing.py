"""Rows without an observed cell are as if absent in every fit and score, and have an answer in every prediction."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skvbem import (
    VBHMM,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
    blocks_of,
)
from skvbem.emissions import Regression

RNG = np.random.default_rng(20261127)
X = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 3))
C = RNG.integers(3, size=(60, 3)).astype(float)
FEW = {"n_init": 1, "max_iter": 60}
NODES = {f"x{j}": ["h"] for j in range(3)}
CASES = {
    "mixture": (VBMixture(2, random_state=0, **FEW), X),
    "maximum likelihood": (VBMixture(2, method="ml", random_state=0, **FEW), X),
    "number": (VBMixture("auto", random_state=0, **FEW), X),
    "categories": (VBMixture(2, emission="categorical", random_state=0), C),
    "counts": (VBMixture(2, emission="poisson", random_state=0, **FEW), C),
    "factors": (VBFactorAnalysis(1, random_state=0, **FEW), X),
    "dag": (VBDiscreteDAG(latents={"h": 2}, random_state=0, **FEW), C),
    "network": (VBNetwork(NODES, latents={"h": 2}, emission={"gaussian": [0, 1, 2]}, random_state=0, **FEW), X),
    "chain": (VBHMM(2, random_state=0, **FEW), X),
    "chain of categories": (VBHMM(2, emission="categorical", random_state=0, **FEW), C),
    "system": (VBLinearDynamicalSystem(1, random_state=0, **FEW), X),
}
ROWS = {name: CASES[name] for name in CASES if "chain" not in name and name != "system"}


def with_empty(A, places):
    return np.insert(A, places, np.nan, axis=0)


def quietly(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **kwargs)


def objective(model):
    return next(getattr(model, f"{name}_") for name in ("lower_bound", "log_likelihood") if hasattr(model, f"{name}_"))


@pytest.mark.parametrize("name", CASES)
def test_fits_and_scores(name):
    model, A = CASES[name]
    places = [60] * 40 if name not in ROWS else [0, 0, *range(5, 43)]
    more = with_empty(A, places)
    plain = quietly(model, A)
    n, bound, bic, aic = plain.n_samples_, objective(plain), plain.bic(A), plain.aic(A)
    indices = plain.goodness_of_fit(A)
    gappy = quietly(model, more)
    assert gappy.n_samples_ == n == 60
    exactly = name in ROWS
    assert objective(gappy) == (bound if exactly else pytest.approx(bound, rel=1e-9))
    assert gappy.bic(more) == pytest.approx(bic, rel=1e-9)
    assert gappy.aic(more) == pytest.approx(aic, rel=1e-9)
    again = gappy.goodness_of_fit(more)
    assert (again.bic, again.sabic, again.caic) == pytest.approx((indices.bic, indices.sabic, indices.caic), rel=1e-9)
    of_rows = gappy.score_samples(more)
    assert gappy.score(more) == pytest.approx(np.sum(of_rows) / 100)
    if exactly:
        assert len(of_rows) == 100
        assert np.flatnonzero(abs(of_rows) < 1e-12).tolist() == np.flatnonzero(np.isnan(more).all(axis=1)).tolist()
        assert gappy.bic(A) == gappy.bic(more)
    if hasattr(gappy, "predict_proba"):
        answers = gappy.predict_proba(more)
        assert len(next(iter(answers.values())) if isinstance(answers, dict) else answers) == 100


@pytest.mark.parametrize("name", ROWS)
def test_batches_of_them(name):
    model, A = ROWS[name]
    if model.get_params().get("method") == "ml":
        return
    before = objective(quietly(model, A))
    model.partial_fit(np.full((4, A.shape[1]), np.nan))
    assert (model.n_samples_, model.batch_lower_bound_) == (60, pytest.approx(0, abs=1e-8))
    assert before < 0


def test_blocks_in_which_nothing_is_observed():
    parts = [X[:30], np.full((20, 3), np.nan), np.r_[X[30:], np.full((5, 3), np.nan)]]
    model = VBMixture(2, random_state=0, **FEW)
    whole = quietly(model, X).lower_bound_
    in_blocks = quietly(model, blocks_of(parts))
    assert in_blocks.n_samples_ == 60
    assert in_blocks.lower_bound_ == pytest.approx(whole, rel=1e-9)
    weights = [np.full(len(part), 2.5) for part in parts]
    assert quietly(model, blocks_of(parts), sample_weight=blocks_of(weights)).n_samples_ == 150


def test_known_labels_count():
    labels = np.array(["a", "b", None, None] * 15, dtype=object)
    more = with_empty(X, [0, 10, 60])
    known = np.insert(labels, [0, 10, 60], ["a", None, None])
    model = quietly(VBMixture(2, random_state=0), more, labels=known)
    assert model.n_samples_ == 61
    assert quietly(VBHMM(2, random_state=0), more, labels=known).n_samples_ == 61


def test_responsibilities_of_rows_that_are_left_out():
    given = np.random.default_rng(1).dirichlet([1, 1], 60)
    first = quietly(VBMixture(2, init=given), X).lower_bound_
    more = quietly(VBMixture(2, init=np.insert(given, [3, 60], 0.5, axis=0)), with_empty(X, [3, 60]))
    assert more.lower_bound_ == first


def test_a_classifier_counts_rows_of_known_class():
    y = np.arange(60) % 2
    model = quietly(VBClassifier(random_state=0), with_empty(C, [7]), np.insert(y, 7, 1))
    assert model.network_.n_samples_ == 61


def test_steps_that_lags_condition_on():
    panel = [X[i : i + 4] for i in range(0, 60, 4)]
    assert quietly(VBHMM(1, emission=Regression(lags=3), random_state=0), panel).n_samples_ == 15


def test_gaps_within_a_chain_are_steps():
    """A step that nobody measured is one between two others."""
    A = C[:6].copy()
    A[2:4] = np.nan
    model = quietly(VBHMM(2, emission="categorical", random_state=0), A)
    assert model.n_samples_ == 4
    ends = model.predict_proba(np.delete(A, [2, 3], axis=0))
    assert abs(model.predict_proba(A)[[1, 4]] - ends[[1, 2]]).max() > 1e-4


def test_inputs_of_steps_that_say_nothing():
    rng = np.random.default_rng(2)
    series, inputs = np.cumsum(rng.normal(size=(50, 2)), axis=0), rng.normal(size=(50, 1))
    model = VBLinearDynamicalSystem(1, random_state=0)
    plain = quietly(model, series, inputs=inputs, output_inputs=inputs).lower_bound_
    ahead = np.r_[inputs, np.full((20, 1), 50.0)]
    padded = quietly(model, with_empty(series, [50] * 20), inputs=ahead, output_inputs=ahead)
    assert padded.lower_bound_ == pytest.approx(plain, rel=1e-9)


def test_frames_and_weights():
    frame = pd.DataFrame(C, columns=list("abc")).astype("Int64")
    more = pd.concat([frame, pd.DataFrame({name: [pd.NA] * 5 for name in "abc"}, dtype="Int64")])
    weight = np.r_[np.full(60, 1.5), np.full(5, 7.0)]
    for model in (VBDiscreteDAG(random_state=0), VBNetwork(random_state=0), VBMixture(2, random_state=0)):
        plain = quietly(model, frame, sample_weight=weight[:60])
        bound = plain.lower_bound_
        assert quietly(model, more, sample_weight=weight).lower_bound_ == bound
        assert model.n_samples_ == 90
