"""The display of pseudo-residuals: what is drawn is what the fit says."""

import numpy as np
import pytest
from scipy import stats

from skvbem import VBHMM, VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma, load_earthquakes
from skvbem.plotting import PseudoResidualsDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
approx = pytest.approx

QUAKES = load_earthquakes(as_frame=True).data


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def dots(ax):
    return np.asarray(ax.collections[-1].get_offsets())


def test_a_chain_has_quantiles_steps_and_autocorrelations():
    model = VBHMM(2, emission="poisson", random_state=0).fit(QUAKES)
    gaps = QUAKES.astype(float).copy()
    gaps.iloc[[3, 50]] = np.nan
    display = PseudoResidualsDisplay.from_estimator(model, gaps, discrete="middle")
    residuals = model.pseudo_residuals(gaps, discrete="middle")
    z = residuals.normal.ravel()
    quantiles, over_time, correlations = display.axes_[0]
    seen = np.sort(z[~np.isnan(z)])
    assert dots(quantiles)[:, 1] == approx(seen)
    assert dots(quantiles)[:, 0] == approx(stats.norm.ppf((np.arange(1, 106) - 0.5) / 105))
    drawn = np.ma.filled(over_time.collections[-1].get_offsets().astype(float), np.nan)
    assert drawn[~np.isnan(drawn[:, 1]), 1] == approx(z[~np.isnan(z)])
    ends = np.array([segment[1] for segment in correlations.collections[-1].get_segments()])
    assert ends == approx(np.column_stack([np.arange(1, 21), residuals.autocorrelations(20)[1:, 0]]))
    band = correlations.patches[0].get_data()
    assert band.values == approx(1.96 / np.sqrt(residuals.n_pairs(20)[1:, 0]))
    assert band.values == approx(-np.asarray(band.baseline))
    assert quantiles.get_ylabel() == "residuals of count"


def test_the_band_holds_95_percent_of_each_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    model = VBMixture.from_parameters([1.0], {"means": [[0.0]], "covariances": [[[1.0]]]}, emission="gaussian")
    band = PseudoResidualsDisplay.from_estimator(model, X).axes_[0, 0].collections[0].get_paths()[0].vertices
    at = stats.norm.ppf((np.arange(1, 41) - 0.5) / 40)
    drawn = np.sort(rng.normal(size=(4000, 40)), axis=1)
    for rank in (0, 20, 39):
        ends = band[np.isclose(band[:, 0], at[rank]), 1]
        assert np.mean((drawn[:, rank] > ends.min()) & (drawn[:, rank] < ends.max())) == approx(0.95, abs=0.015)


def test_a_mixture_has_quantiles_and_a_histogram_of_the_columns_named():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = VBMixture(1, covariance_type="diag").fit(X)
    axes = plt.subplots(2, 2)[1]
    display = PseudoResidualsDisplay.from_estimator(model, X, ["x2", 0], axes=axes)
    assert display.axes_.shape == (2, 2)
    for row, column in zip(display.axes_, (2, 0)):
        uniform = model.pseudo_residuals(X).uniform[:, column]
        assert row[1].patches[0].get_data().values.tolist() == np.histogram(uniform, np.linspace(0, 1, 11))[0].tolist()
        assert row[0].get_ylabel() == f"residuals of x{column}"
    with pytest.raises(ValueError, match="'features' parameter of PseudoResidualsDisplay names 'y'"):
        PseudoResidualsDisplay.from_estimator(model, X, ["y"])


def test_what_has_no_residuals_is_refused():
    X = load_carcinoma().data
    network = VBDiscreteDAG("[h][x0|h][x1|h]", latents={"h": 2}, random_state=0).fit(X[:, :2])
    with pytest.raises(TypeError, match=r"VBMixture and VBHMM\. Got VBDiscreteDAG"):
        PseudoResidualsDisplay.from_estimator(network, X)
