"""Displays of mixtures: what is drawn is what the model says, and nothing is drawn of components that are empty."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from skvbem import VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma, load_faithful
from skvbem.emissions import COVARIANCE_TYPES, EMISSIONS, Gaussian
from skvbem.plotting import BoundDisplay, ClassProfileDisplay, ComponentsDisplay
from skvbem.plotting.choice import shown_components

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
to_rgb = matplotlib.colors.to_rgb
approx = pytest.approx

SLIDES = load_carcinoma().data
MIXED = {
    "gaussian": ["height", "weight"],
    "poisson": "visits",
    "exponential": "wait",
    "categorical": ["blood", "smokes"],
    "bernoulli": "member",
    "multinomial": ["tea", "coffee", "water"],
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def table(n=150):
    """Two kinds of rows, in columns of every kind."""
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 2, n)
    drinks = rng.multinomial(6, np.array([[0.6, 0.2, 0.2], [0.1, 0.5, 0.4]])[kind])
    return pd.DataFrame(
        {
            "blood": rng.choice(["A", "B", "0"], n),
            "height": rng.normal(165 + 20 * kind, 5),
            "visits": rng.poisson(2 + 6 * kind),
            "weight": rng.normal(60 + 25 * kind, 8),
            "wait": rng.exponential(1 + 3 * kind),
            "smokes": rng.random(n) < 0.2 + 0.5 * kind,
            "member": (rng.random(n) < 0.7 - 0.4 * kind).astype(int),
            **dict(zip(["tea", "coffee", "water"], drinks.T)),
        }
    )


@pytest.fixture(scope="module")
def mixed():
    return VBMixture(2, emission=MIXED, n_init=2, random_state=0).fit(table())


@pytest.fixture(scope="module")
def eruptions():
    return load_faithful(as_frame=True).data


@pytest.fixture(scope="module")
def gappy(eruptions):
    return eruptions.mask(np.random.default_rng(0).random(eruptions.shape) < 0.1)


@pytest.fixture(scope="module")
def geyser(gappy):
    """A third component is empty."""
    known = Gaussian(covariance_prior=None, mean_precision_prior=1.0)
    return VBMixture(3, emission=known, n_init=3, random_state=0).fit(gappy)


def marks(ax):
    """Rows that are drawn as marks: (places, colors) of each component; ticks below and beside come after each."""
    return [(np.asarray(c.get_offsets()), c.get_facecolor()) for c in ax.collections[::3]]


# ComponentsDisplay ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.parametrize("pair", [(0, 1), (2, 0)])
def test_ellipses_are_where_the_gaussian_marginal_of_two_columns_says(covariance_type, pair, rng):
    X = rng.normal(size=(90, 3)) @ rng.normal(size=(3, 3)) * [1.0, 100.0, 0.01] + [0.0, 1e4, 3.0]
    X[:40] += [6.0, 300.0, 0.2]
    model = VBMixture(2, covariance_type=covariance_type, n_init=2, random_state=0).fit(X)
    display = ComponentsDisplay.from_estimator(model, X, pair, mass=0.8)
    pair = list(pair)
    for k, ellipse in zip(display.components, display.ellipses_, strict=True):
        covariance = {
            "full": lambda k: model.covariances_[k],
            "tied": lambda k: model.covariances_,
            "diag": lambda k: np.diag(model.covariances_[k]),
            "spherical": lambda k: model.covariances_[k] * np.eye(3),
        }[covariance_type](k)
        inverse = np.linalg.inv(covariance[np.ix_(pair, pair)])
        ends = np.concatenate([ellipse.get_vertices(), ellipse.get_co_vertices()]) - model.means_[k, pair]
        assert np.einsum("ni,ij,nj->n", ends, inverse, ends) == approx(stats.chi2(2).ppf(0.8), rel=1e-6)
        drawn = stats.multivariate_normal(model.means_[k, pair], covariance[np.ix_(pair, pair)]).rvs(4000, rng)
        inside = ellipse.get_path().contains_points(ellipse.get_patch_transform().inverted().transform(drawn))
        assert inside.mean() == approx(0.8, abs=5 * np.sqrt(0.16 / 4000))


def test_empty_components_are_left_out_and_weights_are_told(geyser, gappy):
    display = ComponentsDisplay.from_estimator(geyser, gappy)
    one, other = in_use = np.flatnonzero(geyser.counts_ >= 1).tolist()
    assert len(geyser.counts_) == 3
    assert display.components == in_use
    assert len(display.ellipses_) == 2
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [f"{k}: {geyser.weights_[k]:.0%}".replace("%", " %") for k in in_use]
    heavier = int(geyser.weights_[other] > geyser.weights_[one])
    assert display.ellipses_[heavier].get_linewidth() > display.ellipses_[1 - heavier].get_linewidth()
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("eruptions", "waiting")
    assert "90 %" in display.ax_.get_title(loc="left")


def test_rows_stand_where_they_are_colored_by_component_and_the_surer_the_stronger(geyser, gappy):
    display = ComponentsDisplay.from_estimator(geyser, gappy)
    whole, shares = gappy.notna().all(axis=1).to_numpy(), geyser.predict_proba(gappy)
    for k, ellipse, (places, colors) in zip(display.components, display.ellipses_, marks(display.ax_)):
        own = whole & (shares.argmax(axis=1) == k)
        assert places == approx(gappy[own].to_numpy())
        assert np.all(colors[:, :3] == to_rgb(ellipse.get_edgecolor()))
        surest = np.argsort(shares[own].max(axis=1))
        assert np.all(np.diff(colors[surest, 3]) >= 0)
        assert colors[surest[0], 3] < colors[surest[-1], 3]


def test_rows_with_one_of_the_two_cells_are_ticks_at_the_edge(geyser, gappy):
    display = ComponentsDisplay.from_estimator(geyser, gappy)
    assert "ticks: rows whose other cell is missing" in display.ax_.get_title(loc="left")
    whole = ComponentsDisplay.from_estimator(geyser, gappy.dropna())
    assert "ticks" not in whole.ax_.get_title(loc="left")
    collections = display.ax_.collections
    below = np.concatenate([np.asarray(c.get_offsets())[:, 0] for c in collections[1::3]])
    beside = np.concatenate([np.asarray(c.get_offsets())[:, 1] for c in collections[2::3]])
    for ticks, seen, other in ((below, "eruptions", "waiting"), (beside, "waiting", "eruptions")):
        assert np.sort(ticks) == approx(np.sort(gappy[seen][gappy[other].isna()].dropna().to_numpy()))


@pytest.mark.parametrize("n_components", [1, 9])
def test_one_component_and_more_than_there_are_colors(eruptions, n_components):
    X = eruptions.to_numpy()
    model = VBMixture(n_components, method="ml", n_init=1, random_state=0).fit(X)
    display = ComponentsDisplay.from_estimator(model, X, ["x1", "x0"])
    assert len(display.ellipses_) == n_components
    assert display.ax_.get_xlabel() == "x1"
    display.figure_.canvas.draw()


def test_tables_of_any_kind_and_axes_given(eruptions):
    model = VBMixture(2, n_init=1, random_state=0).fit(eruptions)
    figure, axes = plt.subplots(1, 2)
    display = ComponentsDisplay.from_estimator(model, pl.from_pandas(eruptions), ax=axes[0])
    assert display.figure_ is figure
    assert display.plot(ax=axes[1]) is display
    assert len(marks(axes[0])[0][0]) + len(marks(axes[0])[1][0]) == len(eruptions)
    assert marks(axes[0])[0][0] == approx(marks(axes[1])[0][0])
    assert plt.get_fignums() == [figure.number]


def test_other_groups_color_the_rows_and_are_not_drawn(mixed):
    display = ComponentsDisplay.from_estimator(mixed, table(), ["weight", "height"])
    assert display.means == approx(mixed.means_[:, ::-1])
    assert display.responsibilities == approx(mixed.predict_proba(table()))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"features": ["height", "blood"]}, ValueError, "names 'blood', which is 'categorical'.* ClassProfileDisplay"),
        ({"features": ["visits", "height"]}, ValueError, "names 'visits', which is 'poisson'"),
        ({"features": ["height", "Weight"]}, ValueError, "'Weight', which is no column of X. Did you mean 'weight'"),
        ({"features": [1, 10]}, ValueError, "names 10, which is no column"),
        ({"features": ["height", 1]}, ValueError, "names 'height' twice"),
        ({"features": "height"}, ValueError, "must name two columns. Got 'height'"),
        ({"mass": 90}, ValueError, "'mass' parameter of ComponentsDisplay must lie between 0 and 1. Got 90"),
    ],
)
def test_what_cannot_be_drawn_over_is_named(mixed, options, error, text):
    with pytest.raises(error, match=text):
        ComponentsDisplay.from_estimator(mixed, table(), **options)


def test_a_fit_without_two_measurements_is_told_what_draws_it(eruptions):
    slides = VBMixture(2, emission="categorical", n_init=1, random_state=0).fit(SLIDES)
    with pytest.raises(ValueError, match=r"this fit has none\. ClassProfileDisplay draws"):
        ComponentsDisplay.from_estimator(slides, SLIDES)
    waits = VBMixture(2, n_init=1, random_state=0).fit(eruptions[["waiting"]])
    with pytest.raises(ValueError, match="this fit has 1 of them"):
        ComponentsDisplay.from_estimator(waits, eruptions[["waiting"]])
    with pytest.raises(NotFittedError):
        ComponentsDisplay.from_estimator(VBMixture(), eruptions)
    with pytest.raises(TypeError, match=r"VBMixture\. Got VBDiscreteDAG"):
        ComponentsDisplay.from_estimator(VBDiscreteDAG(latents=2, n_init=1, random_state=0).fit(SLIDES), SLIDES)


# ClassProfileDisplay --------------------------------------------------------------------------------------------------


def rows_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def bars(ax):
    """Lengths of the bars over the tracks."""
    lengths = np.array([patch.get_width() for patch in ax.patches])
    return lengths[len(lengths) // 2 :]


def whiskers(ax):
    """Ends of the intervals, (n_rows, 2)."""
    return np.array([s[:, 0] for c in ax.collections if type(c).__name__ == "LineCollection" for s in c.get_segments()])


def test_every_family_is_drawn(mixed):
    """Those that take columns of others, measurements or counts, apart from them."""
    alone = {"factor": ["height", "weight"], "student_t": ["height", "weight"], "zero_inflated": ["visits"]}
    alone |= {"gamma": ["height", "weight"], "von_mises": ["height", "weight"], "negative_binomial": ["visits"]}
    alone |= {"ordinal": ["blood"]}
    assert {*mixed.groups_, *alone, "regression"} == set(EMISSIONS)
    for family, columns in alone.items():
        levels = {"blood": ["0", "A", "B"]} if family == "ordinal" else "auto"
        fitted = VBMixture(2, emission=family, categories=levels, n_init=1, random_state=0).fit(table()[columns])
        display = ClassProfileDisplay.from_estimator(fitted)
        assert rows_of(display.axes_.ravel()[0]) == (["blood = 0", "A", "B"] if family == "ordinal" else columns)


def test_bars_are_probabilities_with_their_intervals(mixed):
    draws = mixed.sample_posterior(table(), 500, method="vb")
    display = ClassProfileDisplay.from_estimator(mixed, level=0.8, draws=draws)
    assert display.axes_.shape == (2, 2)
    names = ["blood = 0", "A", "B", "smokes = True", "member = 1", "share of tea", "share of coffee", "share of water"]
    assert rows_of(display.axes_[1, 0]) == names
    of, ends = mixed.parameters_, draws.intervals(0.8)
    for k in range(2):

        def rows(tables, k=k):
            categories = tables["categorical"][k]
            assert np.isnan(categories[1, 2])  # smokes has two levels
            return np.concatenate([categories[0], categories[1, 1:2], tables["bernoulli"][k], tables["multinomial"][k]])

        def by_family(end, k=k):
            return {family: ends[family][name][end] for family, name in PARAMETER.items()}

        found = {family: of[family][name] for family, name in PARAMETER.items()}
        assert bars(display.axes_[1, k]) == approx(rows(found))
        assert whiskers(display.axes_[1, k]) == approx(np.column_stack([rows(by_family(0)), rows(by_family(1))]))
        assert display.axes_[0, k].get_title() == f"class {k}\n{mixed.weights_[k]:.0%}".replace("%", " %")


PARAMETER = {"categorical": "probabilities", "bernoulli": "probabilities", "multinomial": "shares"}


def test_numbers_stand_in_deviations_from_the_mean_of_all_rows_and_are_told_in_their_units(mixed):
    draws = mixed.sample_posterior(table(), 500, method="vb")
    display = ClassProfileDisplay.from_estimator(mixed, draws=draws)
    names = ["height", "visits", "weight", "wait"]  # as in the table
    assert rows_of(display.axes_[0, 0]) == names
    of, ends = mixed.parameters_, draws.intervals()
    waits = 1 / of["exponential"]["rates"]
    low, high = ends["exponential"]["rates"]
    columns = {
        "height": (mixed.means_[:, 0], mixed.covariances_[:, 0, 0], [x[:, 0] for x in ends["gaussian"]["means"]]),
        "weight": (mixed.means_[:, 1], mixed.covariances_[:, 1, 1], [x[:, 1] for x in ends["gaussian"]["means"]]),
        "visits": (*[of["poisson"]["rates"][:, 0]] * 2, [x[:, 0] for x in ends["poisson"]["rates"]]),
        "wait": (waits[:, 0], waits[:, 0] ** 2, [1 / high[:, 0], 1 / low[:, 0]]),
    }
    for k, ax in enumerate(display.axes_[0]):
        bands = np.array([(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches])
        points = [line for line in ax.lines if line.get_marker() != "None"]
        for row, name in enumerate(names):
            means, variances, interval = columns[name]
            mean = mixed.weights_ @ means
            deviation = np.sqrt(mixed.weights_ @ (variances + means**2) - mean**2)
            assert points[row].get_xdata()[0] == approx((means[k] - mean) / deviation)
            assert points[row].get_ydata()[0] == row
            ends_of_band = (means[k] + np.array([-1, 1]) * np.sqrt(variances[k]) - mean) / deviation
            assert bands[row] == approx(ends_of_band)
            assert whiskers(ax)[row] == approx([(end[k] - mean) / deviation for end in interval])
            assert float(ax.texts[row].get_text()) == approx(means[k], rel=0.005)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_bands_are_as_wide_as_any_covariance_says(eruptions, covariance_type):
    model = VBMixture(2, covariance_type=covariance_type, method="ml", n_init=1, random_state=0).fit(eruptions)
    drawn, components = model.sample(4000, random_state=0)
    for j, column in enumerate(ClassProfileDisplay.from_estimator(model).profiles):
        assert column.intervals is None
        for k in range(2):
            assert column.deviations[k] == approx(drawn.iloc[components == k, j].std(), rel=0.1)


def test_a_latent_class_network_is_drawn_as_the_mixture_it_is():
    frame = load_carcinoma(as_frame=True).data
    network = VBDiscreteDAG(latents=2, n_init=3, random_state=0).fit(frame)
    mixture = VBMixture(2, emission="categorical", n_init=3, tol=1e-9, random_state=0).fit(frame)
    draws = [model.sample_posterior(frame, 20_000, method="vb") for model in (network, mixture)]
    drawn = [ClassProfileDisplay.from_estimator(model, draws=of) for model, of in zip((network, mixture), draws)]
    assert rows_of(drawn[0].axes_[0, 0]) == rows_of(drawn[1].axes_[0, 0]) == [f"{name} = 2" for name in frame]
    order = np.argsort(network.tables_["h0"].values), np.argsort(mixture.weights_)
    for own, other in zip(*order):
        first, second = drawn[0].axes_[0, own], drawn[1].axes_[0, other]
        assert bars(first) == approx(bars(second), abs=1e-3)
        assert whiskers(first) == approx(whiskers(second), abs=0.01)
        assert bars(first) == approx([network.tables_[name].values[own, 1] for name in frame])
        assert first.get_title().split("\n")[1] == second.get_title().split("\n")[1]


def test_empty_classes_are_left_out():
    for model in (VBDiscreteDAG(latents=6), VBMixture(6, emission="categorical")):
        model.set_params(n_init=3, random_state=0).fit(SLIDES)
        counts = model.latent_states_["h0"].mass if isinstance(model, VBDiscreteDAG) else model.counts_
        display = ClassProfileDisplay.from_estimator(model)
        assert display.classes == np.flatnonzero(counts >= 1).tolist()
        assert 2 <= display.axes_.shape[1] < 6
    assert shown_components(np.array([0.3, 0.4])) == [1]


def test_columns_are_chosen_and_ordered_by_name_or_position(mixed):
    display = ClassProfileDisplay.from_estimator(mixed, features=["smokes", 3, "blood"], level=None)
    assert rows_of(display.axes_[0, 0]) == ["weight"]
    assert rows_of(display.axes_[1, 0]) == ["smokes = True", "blood = 0", "A", "B"]
    assert not whiskers(display.axes_[1, 0]).size
    one = ClassProfileDisplay.from_estimator(mixed, features="blood")
    assert one.axes_.shape == (1, 2)


@pytest.mark.filterwarnings("ignore:Column 'a' of X holds only one category")
def test_without_data_there_are_no_intervals_and_constant_columns_one_row():
    X = pd.DataFrame({"a": ["x"] * 8, "b": list("uuuuvvvw")})
    for model in (VBMixture(1, method="map"), VBDiscreteDAG(latents=1, method="ml")):
        display = ClassProfileDisplay.from_estimator(model.set_params(n_init=1, random_state=0).fit(X))
        assert rows_of(display.axes_[0, 0]) == ["a = x", "b = u", "v", "w"]
        assert not whiskers(display.axes_[0, 0]).size
    display = ClassProfileDisplay.from_estimator(VBMixture(1, n_init=1, random_state=0).fit(X), X)
    assert whiskers(display.axes_[0, 0])[0].tolist() == [1, 1]


def test_the_picture_says_by_what_its_intervals_are(eruptions):
    model = VBMixture(2, n_init=2, random_state=0).fit(eruptions)
    of = model.set_params(method="ml", n_init=1)
    cases = [
        (model, (eruptions,), {}, "95 % intervals\nby draws"),
        (model, (), {"draws": model.sample_posterior(eruptions, 100), "level": 0.8}, "80 % intervals\nby draws"),
    ]
    for estimator, given, options, words in cases:
        display = ClassProfileDisplay.from_estimator(estimator, *given, **options)
        assert display.axes_[-1, 1].get_xlabel().endswith(f"\nlines: {words}")
        assert len(whiskers(display.axes_[-1, 0])) == 2
    assert "lines" not in ClassProfileDisplay.from_estimator(model).axes_[-1, 1].get_xlabel()
    point = of.fit(eruptions)
    display = ClassProfileDisplay.from_estimator(point, eruptions)
    assert display.note == "95 % intervals\nby observed information"
    low, high = point.standard_errors(eruptions).intervals()["gaussian"]["means"]
    assert display.profiles[1].intervals == (approx(low[:, 1]), approx(high[:, 1]))


def test_axes_given_are_used(mixed):
    figure, axes = plt.subplots(2, 2)
    display = ClassProfileDisplay.from_estimator(mixed, axes=axes.ravel())
    assert display.axes_.tolist() == axes.tolist()
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(ValueError, match=r"must hold 2 x 2 axes\. Got 3"):
        display.plot(axes=axes.ravel()[:3])


def test_names_are_text_and_long_ones_are_cut():
    X = pd.DataFrame({"cost in $x_$": ["y", "n"] * 4, "a" * 60: list("uvuvuvuv")})
    display = ClassProfileDisplay.from_estimator(VBMixture(1, n_init=1, random_state=0).fit(X))
    display.figure_.canvas.draw()
    first, second = rows_of(display.axes_[0, 0])
    assert first == "cost in $x_$ = y"
    assert len(second) < 30


def test_covariates_of_a_class_are_averaged_over():
    edges = [("x0", "class"), ("x1", "class"), *(("class", f"x{j}") for j in range(2, 7))]
    model = VBDiscreteDAG(edges, latents={"class": 2}, n_init=2, random_state=0).fit(SLIDES)
    display = ClassProfileDisplay.from_estimator(model, SLIDES)
    assert [profile.name for profile in display.profiles] == [f"x{j}" for j in range(2, 7)]
    assert display.weights == approx(model.query("class").values)
    for profile in display.profiles:
        table = model.tables_[profile.name].values
        assert profile.values == approx(table[:, 1:])
        lower, upper = profile.intervals
        assert ((lower < profile.values) & (profile.values < upper)).all()


def test_what_has_no_profiles_is_told_why():
    with pytest.raises(NotFittedError):
        ClassProfileDisplay.from_estimator(VBMixture())
    model = VBMixture(2, emission="categorical", n_init=1, random_state=0).fit(SLIDES)
    with pytest.raises(ValueError, match=r"'level' parameter of ClassProfileDisplay .* Got 95 instead"):
        ClassProfileDisplay.from_estimator(model, level=95)
    with pytest.raises(ValueError, match="'features' parameter of ClassProfileDisplay names 'x9'"):
        ClassProfileDisplay.from_estimator(model, features=["x9"])
    two = VBDiscreteDAG([("h", "x0"), ("h", "x1"), ("x0", "x1")], latents={"h": 2}, n_init=1, random_state=0)
    with pytest.raises(ValueError, match="one latent above columns that depend on nothing else"):
        ClassProfileDisplay.from_estimator(two.fit(SLIDES))
    with pytest.raises(TypeError, match=r"VBHMM and VBDiscreteDAG\. Got GaussianMixture"):
        ClassProfileDisplay.from_estimator(GaussianMixture().fit(SLIDES))


# BoundDisplay, and matplotlib as an extra -----------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "init"), [("vb", "k-means++"), ("map", "random"), ("ml", "auto")])
def test_bounds_of_mixtures(eruptions, method, init):
    model = VBMixture(3, method=method, init=init, n_init=8, random_state=0).fit(eruptions)
    display = BoundDisplay.from_estimator(model)
    gaps = model.lower_bounds_[-1] - model.lower_bounds_
    assert display.axes_[0].lines[-1].get_ydata() == approx(gaps[gaps > 0])  # the best is drawn last
    bounds = model.restarts_.bounds
    lines = display.axes_[1].lines
    ends = np.concatenate([line.get_ydata() for line in lines if line.get_marker() == "o"])
    assert ends == approx(np.sort(bounds[~np.isnan(bounds)])[::-1])
    by_moves = [line.get_ydata() for line in lines if line.get_marker() != "o"]
    assert by_moves == ([] if model.restarts_.n_best else [[approx(model.lower_bounds_[-1])] * 2])
    display.figure_.canvas.draw()


def test_without_matplotlib_the_error_says_what_to_install(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: ComponentsDisplay.from_estimator(mixed, table()),
        lambda: ClassProfileDisplay.from_estimator(mixed),
        lambda: ClassProfileDisplay([], [1.0], [0]).plot(),
    ):
        with pytest.raises(ImportError, match=r"Display needs matplotlib\. .* pip install 'skvbem\[plot\]'"):
            draw()
