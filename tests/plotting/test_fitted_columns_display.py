"""The display of fitted columns: bars are shares of cells, and lines probabilities under the fit."""

import numpy as np
import pytest
from scipy import stats

from skvbem import VBHMM, VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma
from skvbem.emissions import Bernoulli, Censored, Gamma, Gaussian, Poisson, Regression, VonMises, ZeroInflated
from skvbem.plotting import FittedColumnsDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
approx = pytest.approx


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_counts_have_a_bar_and_a_probability_each():
    rates, weights = np.array([[1.0], [6.0]]), np.array([0.5, 0.5])
    counts = np.random.default_rng(0).poisson(rates[[0, 1] * 40]).astype(float)
    counts[3] = np.nan
    model = VBMixture(2, emission="poisson", random_state=0).fit(counts)
    display = FittedColumnsDisplay.from_estimator(model, counts)
    (column,) = display.columns
    values = np.arange(np.nanmin(counts), np.nanmax(counts) + 1)
    weights, rates = model.counts_ / model.counts_.sum(), model.parameters_["poisson"]["rates"]
    assert column.edges == approx(np.append(values, values[-1] + 1) - 0.5)
    assert column.expected == approx(weights[:, None] * stats.poisson(rates).pmf(values))
    assert column.observed == approx([np.mean(counts[~np.isnan(counts)] == value) for value in values])
    lines = {line.get_label(): line.get_ydata() for line in display.axes_[0].lines}
    assert lines["fit"] == approx(column.expected.sum(axis=0))
    assert lines["1"] == approx(column.expected[1])
    assert [text.get_text() for text in display.figure_.legends[0].get_texts()] == [
        "observed",
        "component 0",
        "component 1",
        "fit",
    ]


def test_sectors_of_a_rose_have_the_areas_of_shares():
    angles = np.degrees(np.random.default_rng(0).vonmises(3.0, 2.0, size=(400, 1))) + 360
    model = VBMixture(1, emission=VonMises(unit="degrees"), random_state=0).fit(angles)
    display = FittedColumnsDisplay.from_estimator(model, angles)
    (column,), (ax,) = display.columns, display.axes_
    assert ax.name == "polar"
    assert column.expected.sum() == approx(1.0)
    radians, of = np.radians(column.edges), model.parameters_["von_mises"]
    inside = np.random.default_rng(1).vonmises(np.radians(of["means"][0, 0]), of["concentrations"][0, 0], 200_000)
    assert column.expected[0] == approx(np.histogram(inside, radians)[0] / 200_000, abs=0.004)
    radii = np.array([patch.get_height() for patch in ax.patches])
    assert radii**2 == approx(column.observed)
    around = (np.radians(angles.ravel()) + np.pi) % (2 * np.pi) - np.pi
    assert column.observed.tolist() == (np.histogram(around, radians)[0] / 400).tolist()
    (fit,) = ax.lines
    middle, radius = fit.get_data()
    assert radius[:-1] ** 2 == approx(column.expected[0])
    assert middle[:-1] == approx([patch.get_x() + patch.get_width() / 2 for patch in ax.patches])
    assert (middle[-1], radius[-1]) == (middle[0], radius[0])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "90", "180", "-90"]
    flat = FittedColumnsDisplay.from_estimator(model, angles, axes=[plt.subplots()[1]]).axes_[0]
    assert flat.name == "rectilinear"


def test_bins_hold_atoms_and_what_lies_beyond_limits():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            np.maximum(rng.normal(2, 1, 300), 1.5),
            np.where(rng.random(300) < 0.4, 0, rng.gamma(2, 1, 300)),
            rng.random(300) < 0.3,
            rng.poisson(900.0, 300),
            rng.normal(size=300),
        ]
    )
    groups = [Censored(below=1.5), ZeroInflated(Gamma()), Bernoulli(), Poisson(), Gaussian()]
    emission = [(f"g{j}", each, [j]) for j, each in enumerate(groups)]
    model = VBMixture(1, emission=emission, random_state=0).fit(X)
    display = FittedColumnsDisplay.from_estimator(model, X, range(5))
    for column in display.columns:
        assert column.observed.sum() == approx(1.0)
        assert 0.97 < column.expected.sum() < 1 + 1e-9
    limits, zeros, ones, many, _ = display.columns
    assert limits.expected[0, 0] == approx(limits.observed[0], abs=0.03)
    assert zeros.expected[0, 0] == approx(zeros.observed[0], abs=0.03)
    assert ones.expected[0, 1] == approx(model.parameters_["g2"]["probabilities"][0, 0])
    assert len(many.observed) <= 100
    assert np.ptp(np.diff(many.edges)) == 0


def test_missing_zeros_and_ones_have_no_bar():
    X = np.array([[0.0], [1.0], [np.nan], [1.0]] * 10)
    model = VBMixture(1, emission="bernoulli").fit(X)
    (column,) = FittedColumnsDisplay.from_estimator(model, X).columns
    assert column.edges.tolist() == [-0.5, 0.5, 1.5]
    assert column.observed == approx([1 / 3, 2 / 3])


def test_what_cannot_be_drawn_is_refused():
    X = load_carcinoma().data[:, :2]
    with pytest.raises(TypeError, match=r"VBMixture and VBHMM\. Got VBDiscreteDAG"):
        FittedColumnsDisplay.from_estimator(VBDiscreteDAG("[x0][x1]").fit(X), X)
    model = VBMixture(1, emission="categorical").fit(X)
    with pytest.raises(ValueError, match="'x0' is none"):
        FittedColumnsDisplay.from_estimator(model, X)
    with pytest.raises(ValueError, match="'x1' is none"):
        FittedColumnsDisplay.from_estimator(model, X, ["x1"])
    walk = np.cumsum(np.random.default_rng(0).normal(size=(50, 1)), axis=0)
    chain = VBHMM(1, emission=Regression(lags=1)).fit(walk)
    with pytest.raises(ValueError, match="ClassProfileDisplay draws columns of any family"):
        FittedColumnsDisplay.from_estimator(chain, walk)
