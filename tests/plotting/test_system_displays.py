"""Displays of linear dynamical systems: what is drawn is what the fit says."""

import numpy as np
import pytest
from estimators.inputs import refused

from skvbem import VBHMM, StructureSearchCV, TimeAxis, VBFactorAnalysis, VBLinearDynamicalSystem
from skvbem.plotting import (
    BlocksDisplay,
    ForecastDisplay,
    LoadingsDisplay,
    PolesDisplay,
    StatePathDisplay,
    StructureSearchDisplay,
)
from skvbem.plotting.systems import in_words
from skvbem.structural import Level, Season

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
approx = pytest.approx


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def turning(n_steps, rng):
    """Steps of a system of two states that turn in 12 steps, seen in three columns."""
    turn = 0.95 * np.array([[np.cos(np.pi / 6), np.sin(np.pi / 6)], [-np.sin(np.pi / 6), np.cos(np.pi / 6)]])
    x = rng.normal(size=(n_steps, 2))
    for t in range(1, n_steps):
        x[t] += turn @ x[t - 1]
    return x @ np.array([[3.0, 0.0, 2.0], [0.0, 1.0, 2.0]]) + 0.5 * rng.normal(size=(n_steps, 3))


@pytest.fixture(scope="module")
def series():
    X = turning(60, np.random.default_rng(0))
    X[20:24, 0] = X[40, 1] = np.nan
    return X


@pytest.fixture(scope="module")
def model(series):
    return VBLinearDynamicalSystem(2, n_init=1, n_draws=20, random_state=0).fit(series)


def test_forecasts_go_on_from_the_sequence(model, series):
    times = 1900.0 + 2 * np.arange(60)
    display = ForecastDisplay.from_estimator(model, series, 5, times=times, levels=(0.9, 0.5))
    assert [track.name for track in display.tracks] == ["x0", "x1", "x2"]
    track, ahead = display.tracks[0], model.forecast(series, 5, level=0.9)
    np.testing.assert_array_equal(track.values, series[:, 0])
    np.testing.assert_allclose(track.ahead, ahead.mean[0, :, 0])
    assert [level for level, *_ in track.fan] == [0.5, 0.9]
    np.testing.assert_allclose(track.fan[1][1:], (ahead.lower[0, :, 0], ahead.upper[0, :, 0]))
    filled, variance = model.impute(series, return_variance=True)
    np.testing.assert_allclose(track.deviation, np.sqrt(variance[:, 0]))
    assert track.expected[20:24] == approx(filled[20:24, 0], abs=3 * track.deviation[20:24].max())
    states, covariance = model.transform(series, return_cov=True)
    np.testing.assert_allclose(display.states, states)
    np.testing.assert_allclose(display.deviations**2, np.einsum("tkk->tk", covariance))
    future = display.axes_[0].lines[-2].get_xdata()
    np.testing.assert_array_equal(future, times[-1] + 2 * np.arange(1, 6))
    bands = [len(ax.collections) for ax in display.axes_[:3]]
    assert bands == [3, 3, 2]  # a gap of the column, and the fan
    assert display.axes_[0].get_title(loc="left") == "fan: intervals of 50 and 90 %"


def test_one_of_many_sequences_is_drawn_with_its_inputs(rng):
    tables = [turning(n, rng) for n in (12, 15)]
    inputs = [rng.normal(size=(len(table), 1)) for table in tables]
    model = VBLinearDynamicalSystem(1, n_init=1, predictive="mean", random_state=0).fit(tables, inputs=inputs)
    future = rng.normal(size=(4, 1))
    display = ForecastDisplay.from_estimator(
        model, tables, 4, ["x2"], inputs=inputs, future_inputs=future, sequence=1, levels=(0.8,)
    )
    ahead = model.forecast(tables, 4, inputs=inputs, future_inputs=future, level=0.8)
    np.testing.assert_allclose(display.tracks[0].ahead, ahead.mean[1, :, 2])
    assert len(display.states) == 15
    dates = [np.arange("2020-01", "2021-01", dtype="datetime64[M]"), np.arange("2020-01", "2021-04", dtype="<M8[M]")]
    of_dates = ForecastDisplay.from_estimator(
        model, tables, 4, inputs=inputs, future_inputs=future, sequence=1, times=dates
    )
    assert of_dates.axes_[-1].get_xlabel() == "time"
    options = {"inputs": inputs, "future_inputs": future}
    refused(ValueError, "from 0 to 1", ForecastDisplay.from_estimator, model, tables, 4, sequence=2, **options)
    refused(ValueError, "no column of X", ForecastDisplay.from_estimator, model, tables, 4, ["z"], **options)
    refused(ValueError, "between 0 and 1", ForecastDisplay.from_estimator, model, tables, 4, levels=(95,), **options)
    refused(ValueError, "must hold 2 axes", display.plot, [plt.gca()])


@pytest.fixture(scope="module")
def monthly():
    """Two columns with a level and a season each, and times; a fit of both blocks."""
    pd = pytest.importorskip("pandas")
    months, rng = np.arange(60), np.random.default_rng(3)
    season = np.cos(np.pi * months / 6)[:, None]
    X = np.array([20.0, -5.0]) + season * np.array([3.0, 1.0]) + 0.3 * rng.normal(size=(60, 2))
    index = pd.period_range("2015-01", periods=60, freq="M", name="month")
    X = pd.DataFrame(X, index=index, columns=["gas", "power"])
    return VBLinearDynamicalSystem(blocks=[Level(), Season(12)], n_init=1, n_draws=5, random_state=0).fit(X), X


def test_forecasts_of_blocks_have_a_panel_for_each_block(monthly):
    """Thirteen states of a column are two blocks, each with a line for a column that is drawn."""
    model, X = monthly
    display = ForecastDisplay.from_estimator(model, X, 6, ["power", "gas"], last=24)
    assert [ax.get_ylabel() for ax in display.axes_] == ["power", "gas", "level", "season of 12"]
    assert [*display.blocks] == ["level", "season of 12"]
    for name, track in model.decompose(X).items():
        mean, deviation = display.blocks[name]
        np.testing.assert_array_equal(mean, track.mean[-24:, [1, 0]])
        np.testing.assert_array_equal(deviation, track.deviation[-24:, [1, 0]])
        ax = display.axes_[2 + [*display.blocks].index(name)]
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), mean[:, 0])
        assert [line.get_label() for line in ax.lines[:2]] == ["power", "gas"]
    total = sum(mean for mean, _ in display.blocks.values())
    np.testing.assert_allclose(total[:, 0], display.tracks[0].expected, rtol=1e-9)


def test_blocks_stand_at_the_times_of_x(monthly):
    model, X = monthly
    display = BlocksDisplay.from_estimator(model, X, "power", last=30)
    np.testing.assert_array_equal(display.times, X.index[-30:].to_timestamp().to_numpy())
    np.testing.assert_array_equal(display.values, X["power"].to_numpy()[-30:])
    assert [len(mean) for mean, _ in display.blocks.values()] == [30, 30]
    assert display.axes_[-1].get_xlabel() == "month"
    named = X.reset_index(names="day").assign(day=X.index.to_timestamp())
    by_name = VBLinearDynamicalSystem(blocks=[Level()], n_init=1, random_state=0).fit(named, time="day")
    np.testing.assert_array_equal(BlocksDisplay.from_estimator(by_name, named, time="day").times, named["day"])
    assert BlocksDisplay.from_estimator(model, X.reset_index(drop=True)).axes_[-1].get_xlabel() == "step"
    refused(ValueError, "last", BlocksDisplay.from_estimator, model, X, last=0)


def test_displays_of_what_a_fit_does_not_have_say_what_to_draw(monthly, model, series):
    by_blocks, X = monthly
    refused(TypeError, "BlocksDisplay draws what blocks are", LoadingsDisplay.from_estimator, by_blocks)
    assert BlocksDisplay.from_estimator(by_blocks, X).axes_.shape == (3,)
    known = VBLinearDynamicalSystem.from_parameters([[0.5]], [[2.0]], [1.0])
    refused(TypeError, "'loadings_' has them", LoadingsDisplay.from_estimator, known)
    assert known.loadings_.item() == 2.0
    refused(AttributeError, "or take ForecastDisplay", BlocksDisplay.from_estimator, model, series)
    assert ForecastDisplay.from_estimator(model, series).axes_.shape == (4,)


def test_poles_are_eigenvalues(model):
    display = PolesDisplay.from_estimator(model, n_draws=30)
    np.testing.assert_allclose(np.sort_complex(display.poles), np.sort_complex(np.linalg.eigvals(model.transition_)))
    assert np.shape(display.drawn) == (30, 2)
    assert np.median(np.abs(display.drawn)) == approx(model.spectral_radius_, abs=0.1)
    words = [text.get_text() for text in display.ax_.texts]
    assert len(words) == 1
    assert words[0].startswith(f"turns in {2 * np.pi / abs(np.angle(display.poles[0])):.3g} steps")
    assert PolesDisplay.from_estimator(model, n_draws=0).drawn is None


@pytest.mark.parametrize(
    ("pole", "words"),
    [
        (0.5, "half gone in 1.0 steps"),
        (0.5**0.05, "half gone in 20 steps"),
        (1.02, "grows by 2 % a step"),
        (1.0, "stays"),
        (-0.5, "changes sign, half gone in 1.0 steps"),
        (np.exp(1j * np.pi / 6) * 0.5, "turns in 12 steps, half gone in 1.0 steps"),
        (0.0, "forgets at once"),
    ],
)
def test_poles_in_words(pole, words):
    assert in_words(complex(pole)) == words


def test_loadings_are_those_of_states_of_variance_1(model, series):
    """Of a column, the squares of loadings and the noise add up to its variance where states are not correlated."""
    display = LoadingsDisplay.from_estimator(model)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["state 0", "state 1"]
    assert "noise" in [text.get_text() for text in display.ax_.texts]
    one = VBLinearDynamicalSystem(1, n_init=1, random_state=0).fit(series[:, [2]])
    share = one.standardized_loadings_.item() ** 2 + LoadingsDisplay.from_estimator(one).uniquenesses.item()
    assert share == approx(1.0, abs=0.05)
    scaled = VBLinearDynamicalSystem(1, n_init=1, random_state=0).fit(1e3 * series[:, [2]])
    assert scaled.standardized_loadings_ == approx(one.standardized_loadings_, rel=1e-4)


def test_bounds_over_numbers_of_states(series):
    search = StructureSearchCV(
        VBLinearDynamicalSystem(n_init=1, tol=0.01, random_state=0), {"n_components": [1, 2, 3]}, scoring="lower_bound"
    ).fit(series)
    assert search.best_params_ == {"n_components": 2}
    display = StructureSearchDisplay.from_estimator(search)
    assert display.ax_.get_xlabel() == "n_components"


@pytest.mark.parametrize("display", [ForecastDisplay, PolesDisplay])
def test_other_estimators_are_refused(display, series):
    for other in (VBFactorAnalysis(1, random_state=0), VBHMM(2, n_init=1, random_state=0)):
        where = (other.fit(series), series) if display is ForecastDisplay else (other.fit(series),)
        refused(TypeError, "draws fitted linear dynamical systems", display.from_estimator, *where)


def test_dates_of_forecasts():
    """Steps stand at their dates, months as long as they are, and those that no row stands for among them."""
    pd = pytest.importorskip("pandas")
    months = pd.date_range("2020-01-31", periods=40, freq="ME", name="month")
    whole = pd.DataFrame({"x": np.sin(np.arange(40.0))}, index=months)
    gapped, options = whole.drop(months[[30, 31]]), {"time": TimeAxis(gaps="missing")}
    model = VBLinearDynamicalSystem(1, n_init=1, n_draws=10, random_state=0).fit(gapped, **options)
    display = ForecastDisplay.from_estimator(model, gapped, 6, last=12, **options)
    wanted = pd.date_range("2020-01-31", periods=46, freq="ME").to_numpy()
    np.testing.assert_array_equal(display.times, wanted[28:40])
    np.testing.assert_array_equal(display.times_ahead, wanted[40:])
    np.testing.assert_array_equal(np.isnan(display.tracks[0].values), np.isin(np.arange(12), [2, 3]))
    assert [len(each) for each in (display.states, display.deviations, display.tracks[0].expected)] == [12, 12, 12]
    ahead = display.axes_[0].lines[-2].get_xdata()
    np.testing.assert_array_equal(ahead, matplotlib.dates.date2num(wanted[40:]))
    assert display.axes_[-1].get_xlabel() == "month"
    filled = ForecastDisplay.from_estimator(model, gapped.reindex(months), 6)
    np.testing.assert_array_equal(filled.tracks[0].deviation[-12:], display.tracks[0].deviation)
    np.testing.assert_array_equal(filled.tracks[0].fan[0][1], display.tracks[0].fan[0][1])
    refused(ValueError, "Leave it out", ForecastDisplay.from_estimator, model, gapped, times=months[:38], **options)
    refused(ValueError, "last", ForecastDisplay.from_estimator, model, gapped, last=0, **options)


@pytest.mark.parametrize("kind", ["periods", "zone", "polars", "numbers"])
def test_times_of_all_kinds_are_drawn(kind):
    pd = pytest.importorskip("pandas")
    days, x = pd.date_range("2021-03-20", periods=20, freq="D"), np.cos(np.arange(20.0))
    index = {"periods": days.to_period("D"), "zone": days.tz_localize("Europe/Berlin"), "numbers": pd.Index(range(20))}
    if kind == "polars":
        X, time = pytest.importorskip("polars").DataFrame({"day": days.to_numpy(), "x": x}), "day"
    else:
        X, time = pd.DataFrame({"x": x}, index=index[kind]), "index"
    model = VBHMM(2, random_state=0).fit(X, time=time)
    states = StatePathDisplay.from_estimator(model, X, time=time)
    wanted = np.arange(20) if kind == "numbers" else days.to_numpy()
    np.testing.assert_array_equal(states.times, wanted)
    display = ForecastDisplay.from_estimator(VBLinearDynamicalSystem(1, n_init=1).fit(X, time=time), X, 3, time=time)
    np.testing.assert_array_equal(display.times, wanted)
    ahead = np.arange(20, 23) if kind == "numbers" else pd.date_range("2021-04-09", periods=3).to_numpy()
    np.testing.assert_array_equal(display.times_ahead, ahead)


def test_steps_without_a_row_are_drawn_in_states():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2021-03-20", periods=30, freq="D")
    whole = pd.DataFrame({"x": np.repeat([0.0, 5.0, 0.0], 10) + np.sin(np.arange(30))}, index=days)
    gapped = whole.drop(days[[12, 13]])
    model = VBHMM(2, random_state=0).fit(gapped, time=TimeAxis(gaps="missing"))
    display = StatePathDisplay.from_estimator(model, gapped)
    assert len(display.path) == len(display.state_probs) == len(display.times) == 30
    np.testing.assert_array_equal(display.path, model.predict(gapped.reindex(days)))
    assert np.isnan(display.tracks[0].values[[12, 13]]).all()
