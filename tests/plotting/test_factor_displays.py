"""Displays of factor analyses: what is drawn is what the fit says, in an order that can be read."""

import numpy as np
import pytest
from estimators.inputs import refused

from skvbem import VBFactorAnalysis, VBMixture
from skvbem.datasets import load_ability_tests
from skvbem.plotting import FactorNumberDisplay, LoadingsDisplay, ResidualsDisplay, ScoresDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
approx = pytest.approx

TESTS = load_ability_tests(as_frame=True)
X, WEIGHT = TESTS.data, TESTS.sample_weight


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return VBFactorAnalysis(2, rotation="promax", random_state=0).fit(X, sample_weight=WEIGHT)


def test_loadings_stand_with_the_factor_that_explains_them(model):
    display = LoadingsDisplay.from_estimator(model)
    shown = display.ax_.images[0].get_array()
    np.testing.assert_array_equal(shown, model.standardized_loadings_[display.order_])
    largest = np.abs(shown).argmax(axis=1)
    assert (np.diff(largest) >= 0).all()
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [X.columns[j] for j in display.order_]
    texts = [text.get_text() for text in display.ax_.texts]
    assert f"{shown[0, 0]:.2f}" in texts
    assert f"{model.uniquenesses_[display.order_[0]]:.2f}" in texts


def test_loadings_that_may_be_nothing_are_gray(model):
    draws = model.sample_posterior(X, 500, method="vb", sample_weight=WEIGHT)
    display = LoadingsDisplay.from_estimator(model, draws=draws)
    low, high = draws.intervals(0.95)["factor"]["standardized_loadings"]
    np.testing.assert_array_equal(display.intervals[0], low)
    unsure = int(((low <= 0) & (high >= 0)).sum())
    of_cells = [text for text in display.ax_.texts if "[" in text.get_text()]
    assert 0 < sum(text.get_color() == "#6b7785" for text in of_cells) == unsure < len(of_cells)
    assert "95 % intervals by vb" in display.ax_.get_xlabel()
    refused(ValueError, "'level' parameter of LoadingsDisplay", LoadingsDisplay.from_estimator, model, level=95)


def test_numbers_of_factors_have_their_bounds_and_eigenvalues(model):
    display = FactorNumberDisplay.from_estimator(model, X, range(3), sample_weight=WEIGHT)
    bounds = [VBFactorAnalysis(q, random_state=0).fit(X, sample_weight=WEIGHT).lower_bound_ for q in range(3)]
    np.testing.assert_allclose(display.bounds, bounds, atol=1e-3)
    assert display.best_ == np.argmax(bounds) == 2
    deviations = np.sqrt(np.diag(TESTS.covariance))
    expected = np.linalg.eigvalsh(TESTS.covariance / np.outer(deviations, deviations))[::-1]
    np.testing.assert_allclose(display.eigenvalues, expected, atol=1e-6)
    assert any(text.get_text() == "2 factors" for text in display.axes_[0].texts)
    refused(ValueError, "must hold 2 axes. Got 1", display.plot, [plt.gca()])


def test_scores_have_ellipses_of_the_stated_mass(rng):
    rows = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(50, 6))
    rows[0, 2:] = np.nan
    model = VBFactorAnalysis(2, random_state=0).fit(rows)
    display = ScoresDisplay.from_estimator(model, rows, labels=["a", "b"] * 25, mass=0.5)
    np.testing.assert_array_equal(display.scores, model.transform(rows))
    widths = display.ellipses_.get_widths()
    variances = np.linalg.eigvalsh(model.score_covariance(rows))[:, -1]
    np.testing.assert_allclose(widths, 2 * np.sqrt(2 * np.log(2) * variances))
    assert widths[0] == widths.max()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["a", "b"]
    refused(ValueError, "two of the numbers of the 2 factors", ScoresDisplay.from_estimator, model, rows, (0, 2))
    refused(ValueError, "must lie between 0 and 1", ScoresDisplay.from_estimator, model, rows, mass=1.5)


def test_residuals_are_what_factors_leave(model):
    display = ResidualsDisplay.from_estimator(model, X, sample_weight=WEIGHT)
    one, other = TESTS.covariance, model.get_covariance()
    correlations = [each / np.sqrt(np.outer(np.diag(each), np.diag(each))) for each in (one, other)]
    np.testing.assert_allclose(display.residuals, correlations[0] - correlations[1], atol=1e-6)
    shown = display.ax_.images[0].get_array()
    assert shown[3, 1] == display.residuals[3, 1]
    assert np.ma.getmaskarray(shown)[1, 3] or np.isnan(shown[1, 3])


@pytest.mark.parametrize("display", [LoadingsDisplay, FactorNumberDisplay, ScoresDisplay, ResidualsDisplay])
def test_other_estimators_are_refused(display):
    mixture = VBMixture(1, random_state=0).fit(X)
    refused(TypeError, "draws fitted factor analyses, VBFactorAnalysis. Got", display.from_estimator, mixture, X)
