"""Displays of hidden Markov models: bands, levels and cells are what the model says, where and when it says it."""

import datetime
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from skvbem import VBHMM, StructureSearchCV, VBMixture
from skvbem.datasets import load_earthquakes
from skvbem.evidence import evidence_table
from skvbem.plotting import (
    BoundDisplay,
    ClassProfileDisplay,
    ComponentsDisplay,
    StatePathDisplay,
    StructureSearchDisplay,
    TransitionsDisplay,
)
from skvbem.plotting.labels import state_color

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
to_rgba = matplotlib.colors.to_rgba
approx = pytest.approx

QUAKES = load_earthquakes(as_frame=True).data
MIXED = {
    "gaussian": ["height"],
    "poisson": "visits",
    "exponential": "wait",
    "categorical": ["blood"],
    "bernoulli": "member",
    "multinomial": ["tea", "coffee"],
}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def walk(rng, n):
    """A sequence of two kinds of stretches, in columns of every kind."""
    kind = np.cumsum(rng.random(n) < 0.1) % 2
    drinks = np.array([rng.multinomial(6, [[0.8, 0.2], [0.1, 0.9]][k]) for k in kind])
    return pd.DataFrame(
        {
            "blood": np.array(list("AB0"))[np.minimum(kind + (rng.random(n) < 0.2), 2)],
            "height": rng.normal(165 + 20 * kind, 5),
            "visits": rng.poisson(2 + 6 * kind),
            "wait": rng.exponential(1 + 3 * kind),
            "member": (rng.random(n) < 0.9 - 0.8 * kind).astype(int),
            **dict(zip(["tea", "coffee"], drinks.T)),
        }
    )


@pytest.fixture(scope="module")
def walks():
    rng = np.random.default_rng(3)
    return [walk(rng, n) for n in (30, 50, 20)]


@pytest.fixture(scope="module")
def mixed(walks):
    return VBHMM(2, emission=MIXED, n_init=2, random_state=0).fit(walks)


@pytest.fixture(scope="module")
def quakes():
    """The states' rates do not ascend with their numbers."""
    model = VBHMM(3, emission="poisson", n_init=3, random_state=0).fit(QUAKES)
    assert np.any(np.diff(model.parameters_["poisson"]["rates"][:, 0]) < 0)
    return model


@pytest.fixture(scope="module")
def emptied():
    """One state of four is empty."""
    model = VBHMM(4, emission="poisson", n_init=3, random_state=0).fit(QUAKES)
    assert np.sum(model.counts_ < 1) == 1
    return model


def bands(ax):
    """Color -> (edges, heights) of what is stacked."""
    found = {}
    for patch in ax.patches:
        top, edges, bottom = patch.get_data()
        found[patch.get_facecolor()] = edges, top - bottom
    return found


def bands_of(ax, state):
    return bands(ax)[to_rgba(state_color(state))]


def level(ax, state):
    """(times, levels) of the steps that are drawn in a state's color."""
    line = next(line for line in ax.lines if line.get_color() == state_color(state))
    x, y = line.get_data()
    drawn = ~np.isnan(y[::2])
    return (x[::2] + x[1::2])[drawn] / 2, y[::2][drawn]


def shaded(ax):
    """Ends of the shaded stretches."""
    return [(path.vertices[:, 0].min(), path.vertices[:, 0].max()) for path in ax.collections[0].get_paths()]


# StatePathDisplay -----------------------------------------------------------------------------------------------------


def test_bands_are_the_path_and_the_probabilities_at_their_years(quakes):
    display = StatePathDisplay.from_estimator(quakes, QUAKES, times=QUAKES.index)
    series, path, below = display.axes_
    decoded, smoothed = quakes.predict(QUAKES), quakes.predict_proba(QUAKES)
    for state in range(3):
        edges, heights = bands_of(path, state)
        assert edges == approx(np.arange(1900, 2008) - 0.5)
        assert heights.tolist() == (decoded == state).astype(float).tolist()
        assert bands_of(below, state)[1] == approx(smoothed[:, state], abs=1e-12)
    assert below.get_xlabel() == "year"
    assert series.get_ylabel() == "count"
    assert below.get_xlim() == (1899.5, 2006.5)
    values = next(line for line in series.lines if line.get_marker() == "o")
    assert values.get_xdata().tolist() == QUAKES.index.tolist()
    assert values.get_ydata().tolist() == QUAKES["count"].tolist()
    display.figure_.canvas.draw()
    assert all(float(label.get_text()) % 1 == 0 for label in below.get_xticklabels())


def test_levels_are_expected_in_the_state_of_each_step(mixed, walks):
    names = ["height", "visits", "wait", "member", "coffee"]
    display = StatePathDisplay.from_estimator(mixed, walks, names, sequence=1)
    path, of = mixed.predict(walks)[1], mixed.parameters_
    expected = {
        "height": mixed.means_[:, 0],
        "visits": of["poisson"]["rates"][:, 0],
        "wait": 1 / of["exponential"]["rates"][:, 0],
        "member": of["bernoulli"]["probabilities"][:, 0],
        "coffee": 6 * of["multinomial"]["shares"][:, 1],  # of the six drinks of each step
    }
    assert set(path) == {0, 1}
    for ax, name in zip(display.axes_, names, strict=False):
        assert ax.get_ylabel() == name
        for state in (0, 1):
            steps, levels = level(ax, state)
            assert steps.tolist() == np.flatnonzero(path == state).tolist()
            assert levels == approx(np.full(len(steps), expected[name][state]))


def test_categories_are_marks_in_rows_of_their_levels(mixed, walks):
    ax = StatePathDisplay.from_estimator(mixed, walks, "blood", sequence=2).axes_[0]
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert rows == mixed.categories_["blood"].tolist()
    marks = ax.collections[1]
    places, path = np.asarray(marks.get_offsets()), mixed.predict(walks)[2]
    assert places[:, 0].tolist() == list(range(20))
    assert [rows[int(row)] for row in places[:, 1]] == walks[2]["blood"].tolist()
    assert marks.get_edgecolor() == approx(np.array([to_rgba(state_color(state)) for state in path]))


def test_missing_cells_break_lines_and_are_shaded(quakes, mixed, walks):
    gappy = QUAKES.astype(float)
    gappy.iloc[[0, 40, 41, 42, 60, 62, 106]] = np.nan
    display = StatePathDisplay.from_estimator(quakes, gappy, times=QUAKES.index)
    series = display.axes_[0]
    assert shaded(series) == [(1899.5, 1900.5), (1939.5, 1942.5), (1959.5, 1960.5), (1961.5, 1962.5), (2005.5, 2006.5)]
    assert np.isnan(series.lines[0].get_ydata()).tolist() == gappy["count"].isna().tolist()
    marked = next(line for line in series.lines if line.get_marker() == "o")
    assert marked.get_xdata().tolist() == gappy.index[gappy["count"].notna()].tolist()
    assert sum(len(level(series, state)[0]) for state in range(3)) == len(gappy)  # what is expected there is known

    one = walks[0].copy()
    one.loc[3:4, "blood"], one.loc[8, "height"] = None, np.nan
    axes = StatePathDisplay.from_estimator(mixed, [one], ["blood", "height", "visits"]).axes_
    assert [shaded(ax) for ax in axes[:3]] == [[(2.5, 4.5)], [(7.5, 8.5)], []]
    assert np.asarray(axes[0].collections[1].get_offsets())[:, 0].tolist() == [*range(3), *range(5, 30)]


@pytest.mark.parametrize("form", ["list", "lengths", "ids", "polars"])
def test_the_sequence_asked_for_is_drawn_in_any_form(mixed, walks, form):
    rows, ids = pd.concat(walks, ignore_index=True), np.repeat([7, 3, 5], [30, 50, 20])
    days = np.datetime64("2021-03-01") + np.concatenate([np.arange(len(each)) for each in walks])
    among = np.argsort(days, kind="stable")  # rows of one sequence stand between those of others
    X, options = {
        "list": (walks, {"times": [days[:30], days[30:80], days[80:]]}),
        "lengths": (rows, {"lengths": [30, 50, 20], "times": days}),
        "ids": (rows.iloc[among], {"sequence_id": ids[among], "times": days[among]}),
        "polars": (
            pl.DataFrame(rows.to_dict("list")),
            {"lengths": [30, 50, 20], "times": pl.Series("day", days[30:80])},
        ),
    }[form]
    display = StatePathDisplay.from_estimator(mixed, X, "height", sequence=1, **options)
    alone = StatePathDisplay.from_estimator(mixed, walks[1], "height", times=days[30:80])
    assert display.path.tolist() == alone.path.tolist() == mixed.predict(walks)[1].tolist()
    assert display.tracks[0].values.tolist() == walks[1]["height"].tolist()
    for own, other in zip(display.axes_[1:], alone.axes_[1:]):
        assert bands_of(own, 0)[1] == approx(bands_of(other, 0)[1])
        assert bands_of(own, 0)[0] == approx(bands_of(other, 0)[0])
    first = matplotlib.dates.date2num(days[30])
    assert display.axes_[-1].get_xlim() == (first - 0.5, first + 49.5)
    assert display.axes_[-1].get_xlabel() == ("day" if form == "polars" else "time")
    display.figure_.canvas.draw()
    assert "2021" in display.axes_[-1].xaxis.get_offset_text().get_text()


@pytest.mark.parametrize(
    "times",
    [
        pd.Series(pd.date_range("2020-01-01", periods=30, tz="Europe/Athens")),
        [datetime.date(2020, 1, 1) + datetime.timedelta(days=k) for k in range(30)],
        pd.date_range("2020-01-01", periods=30).to_pydatetime(),
    ],
)
def test_dates_of_python_and_pandas_stand_by_their_own_clock(mixed, walks, times):
    display = StatePathDisplay.from_estimator(mixed, walks, "height", times=times)
    assert display.times.astype("datetime64[D]").tolist()[:2] == [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]
    assert display.axes_[-1].get_xlim()[0] == matplotlib.dates.date2num(np.datetime64("2020-01-01")) - 0.5


def test_steps_reach_half_way_to_their_neighbors(mixed, walks):
    times = np.cumsum(np.arange(1.0, 21.0))
    display = StatePathDisplay.from_estimator(mixed, walks, sequence=2, times=times)
    edges, _ = bands_of(display.axes_[-1], 0)
    assert edges[:3].tolist() == [0.0, 2.0, 4.5]
    assert edges[-1] - times[-1] == times[-1] - edges[-2]


def test_long_sequences_show_shares_of_states_in_runs(quakes):
    X = pd.concat([QUAKES] * 60)[:5001]
    display = StatePathDisplay.from_estimator(quakes, X)
    path, smoothed = quakes.predict(X), quakes.predict_proba(X)
    edges, heights = bands_of(display.axes_[1], 0)
    assert len(heights) == 1001
    assert edges[:2].tolist() == [-0.5, 4.5]
    assert edges[-1] == 5000.5
    assert heights[:-1] == approx((path[:5000] == 0).reshape(-1, 5).mean(axis=1))
    assert heights[-1] == (path[-1] == 0)
    assert bands_of(display.axes_[2], 0)[1][:-1] == approx(smoothed[:5000, 0].reshape(-1, 5).mean(axis=1))
    display.figure_.canvas.draw()


def test_states_come_in_the_order_wanted_and_only_those_visited_are_named(quakes, emptied):
    rates = quakes.parameters_["poisson"]["rates"][:, 0]
    ascending = np.argsort(rates).tolist()
    display = StatePathDisplay.from_estimator(quakes, QUAKES, order="count")
    assert display.states == ascending
    told = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert told == [*(f"state {k}" for k in ascending), "(in ascending order of count)"]
    lowest = display.axes_[2].patches[0]
    assert lowest.get_facecolor() == to_rgba(state_color(ascending[0]))
    assert not np.any(lowest.get_data().baseline)
    assert StatePathDisplay.from_estimator(quakes, QUAKES, order=[2]).states == [2]
    late = QUAKES.iloc[-15:]
    named = StatePathDisplay.from_estimator(emptied, late).axes_[0].get_legend().get_texts()
    visited = np.flatnonzero(emptied.predict_proba(late).max(axis=0) >= 0.01)
    assert set(emptied.predict(late)) <= set(visited)
    assert len(visited) < 4
    in_use_first = sorted(visited, key=lambda state: (emptied.counts_[state] < 1, state))
    assert [text.get_text() for text in named] == [f"state {k}" for k in in_use_first]


def test_the_first_four_columns_are_drawn_and_axes_given_are_used(mixed, walks):
    display = StatePathDisplay.from_estimator(mixed, walks)
    assert [ax.get_ylabel() for ax in display.axes_[:4]] == ["blood", "height", "visits", "wait"]
    assert display.axes_.shape == (6,)
    plt.close("all")
    figure, axes = plt.subplots(3, 1)
    display = StatePathDisplay.from_estimator(mixed, walks, ["wait"], axes=axes)
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(ValueError, match=r"'axes' parameter of StatePathDisplay must hold 3 axes.* Got 2"):
        display.plot(axes=axes[:2])


def test_one_step_and_one_state():
    model = VBHMM(1, emission="poisson", n_init=1, random_state=0).fit(QUAKES)
    display = StatePathDisplay.from_estimator(model, QUAKES[:1], times=[1900])
    display.figure_.canvas.draw()
    assert display.axes_[0].get_xlim() == (1899.5, 1900.5)
    TransitionsDisplay.from_estimator(model).figure_.canvas.draw()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"features": ["Visits"]}, ValueError, "names 'Visits', which is no column of X. Did you mean 'visits'"),
        ({"sequence": 3}, ValueError, "'sequence' parameter of StatePathDisplay must be an int from 0 to 2.* Got 3"),
        ({"sequence": "a"}, ValueError, "Got 'a' instead"),
        ({"times": range(29)}, ValueError, r"each of the 30 steps of .*, or one for each of the 100 rows.*\(29,\)"),
        ({"times": ["a"] * 30}, TypeError, "must hold numbers or dates. Got a"),
        ({"times": [*range(29), 28]}, ValueError, "must ascend from step to step. After 28 comes 28, at step 29"),
        ({"times": [0.0, np.nan, *range(2, 30)]}, ValueError, "After 0.0 comes nan, at step 1"),
        ({"order": "Height"}, ValueError, "'order' parameter of StatePathDisplay names 'Height'.* Did you mean 'heig"),
        ({"order": "blood"}, ValueError, "a column of categories, which have no mean"),
        ({"order": [0, 2]}, ValueError, r"different states from 0 to 1\. Got \[0, 2\]"),
        ({"order": [1, 1]}, ValueError, "different states from 0 to 1"),
        ({"lengths": [100]}, ValueError, "X is a list of sequences"),
    ],
)
def test_what_cannot_be_drawn_is_named(mixed, walks, options, error, text):
    with pytest.raises(error, match=text):
        StatePathDisplay.from_estimator(mixed, walks, **options)


# TransitionsDisplay ---------------------------------------------------------------------------------------------------


def cells(display):
    """(texts by place, shares of the darkest by place)."""
    texts = {text.get_position(): text.get_text() for text in display.ax_.texts}
    collection = display.ax_.collections[0]
    places = [tuple(path.vertices[:4].mean(axis=0).round(2)) for path in collection.get_paths()]
    return texts, dict(zip(places, collection.get_facecolor()[:, 0].tolist()))


def test_cells_are_posterior_means_in_the_order_of_a_column(quakes):
    display = TransitionsDisplay.from_estimator(quakes, order="count")
    order = np.argsort(quakes.parameters_["poisson"]["rates"][:, 0])
    texts, shades = cells(display)
    found = np.array([[float(texts[j, y]) for j in range(3)] for y in (0.0, 1.35, 2.35, 3.35)])
    assert found[0] == approx(quakes.startprob_[order], abs=0.0051)
    assert found[1:] == approx(quakes.transmat_[np.ix_(order, order)], abs=0.0051)
    probable, dark = display.transmat.ravel(), [shades[j, y] for y in (1.35, 2.35, 3.35) for j in range(3)]
    assert np.argsort(probable).tolist() == np.argsort(-np.array(dark)).tolist()
    assert display.ax_.get_xlabel() == "to state\n(in ascending order of count)"
    assert TransitionsDisplay.from_estimator(quakes).ax_.get_xlabel() == "to state"
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == [str(k) for k in order]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["first", *(str(k) for k in order)]
    assert [label.get_color() for label in display.ax_.get_xticklabels()] == [state_color(k) for k in order]
    path = StatePathDisplay.from_estimator(quakes, QUAKES, order="count")
    legend = path.axes_[0].get_legend()
    assert [patch.get_facecolor() for patch in legend.get_patches()] == [to_rgba(state_color(k)) for k in order]


def test_intervals_hold_what_draws_of_the_posterior_do(quakes, rng):
    draws = quakes.sample_posterior(QUAKES, 20_000, method="vb")
    display = TransitionsDisplay.from_estimator(quakes, order=[2, 0, 1], level=0.8, draws=draws)
    low, high = display.intervals
    for row, own in enumerate([quakes.startprob_concentration_, *quakes.transmat_concentration_[[2, 0, 1]]]):
        drawn = rng.dirichlet(own, size=20_000)[:, [2, 0, 1]]
        for j in range(3):
            assert np.mean(drawn[:, j] < low[row, j]) == approx(0.1, abs=0.012)
            assert np.mean(drawn[:, j] > high[row, j]) == approx(0.1, abs=0.012)
    assert display.ax_.get_title(loc="left") == "below: 80 % intervals\nby vb"
    texts = [text.get_text() for text in display.ax_.texts]
    assert len(texts) == 24
    assert sum("–" in text for text in texts) == 12


@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_transitions_that_are_ruled_out_are_empty_cells(method):
    model = VBHMM(3, emission="poisson", transmat_mask="left-to-right", method=method, n_init=2, random_state=0)
    display = TransitionsDisplay.from_estimator(model.fit(QUAKES), QUAKES, level=0.9, order=[0, 1, 2])
    nothing = np.array([[0, 1, 1], [0, 0, 1], [1, 0, 0], [1, 1, 0]], dtype=bool)
    assert np.isnan(np.vstack([display.startprob, display.transmat])).tolist() == nothing.tolist()
    texts, shades = cells(display)
    for row, y in enumerate((0.0, 1.35, 2.35, 3.35)):
        for j in range(3):
            assert (shades[j, y] == 1.0) == nothing[row, j]
            assert any(x == j and abs(at - y) < 0.3 for x, at in texts) != nothing[row, j]
    assert [end[0, 0] for end in display.intervals] == [1, 1]  # the only way to begin
    edge = np.isin(np.nan_to_num(np.vstack([display.startprob, display.transmat])).round(6), [0, 1])
    assert (np.isnan(display.intervals[0]) <= (nothing | edge)).all()
    assert np.isnan(display.intervals[0])[nothing].all()
    words = "draws" if method == "vb" else "observed information"
    assert display.note == f"90 % intervals\nby {words}"
    assert not any("nan" in text.get_text() for text in display.ax_.texts)


def test_empty_states_are_left_out_unless_named(emptied):
    display = TransitionsDisplay.from_estimator(emptied)
    assert display.states == np.flatnonzero(emptied.counts_ >= 1).tolist()
    assert display.transmat == approx(emptied.transmat_[np.ix_(display.states, display.states)])
    assert TransitionsDisplay.from_estimator(emptied, order=[3, 1]).transmat == approx(
        emptied.transmat_[np.ix_([3, 1], [3, 1])]
    )
    assert TransitionsDisplay.from_estimator(emptied, order=range(4)).transmat.shape == (4, 4)


def test_many_states_have_a_scale_instead_of_numbers():
    n = 40
    display = TransitionsDisplay(np.full((n, n), 1 / n), np.full(n, 1 / n), states=list(range(n)))
    assert not display.plot().ax_.texts
    assert len(display.figure_.axes) == 2
    colors = [state_color(k) for k in range(21)]
    assert len(set(colors)) == 21
    light = [sum(matplotlib.colors.to_rgb(color)) for color in colors]
    assert all(light[k + 14] < light[k] < light[k + 7] for k in range(7))
    assert state_color(21) == colors[0]


def test_what_is_nearly_impossible_or_certain_is_told_apart():
    display = TransitionsDisplay(np.array([[0.0, 1.0], [0.004, 0.996]]), np.array([0.123, 0.877]), states=[0, 1])
    figure, ax = plt.subplots()
    texts = [text.get_text() for text in display.plot(ax=ax).ax_.texts]
    assert texts == [".12", ".88", "0", "1", "<.01", ">.99"]
    assert display.figure_ is figure


def test_what_has_no_states_is_told_why(mixed):
    with pytest.raises(ValueError, match=r"'level' parameter of TransitionsDisplay .* Got 95 instead"):
        TransitionsDisplay.from_estimator(mixed, level=95)
    with pytest.raises(ValueError, match="'order' parameter of TransitionsDisplay names 'x'"):
        TransitionsDisplay.from_estimator(mixed, order="x")
    mixture = VBMixture(1, n_init=1, emission="poisson").fit(QUAKES)
    for draw in (TransitionsDisplay.from_estimator, lambda model: StatePathDisplay.from_estimator(model, QUAKES)):
        with pytest.raises(NotFittedError):
            draw(VBHMM())
        with pytest.raises(TypeError, match=r"Display draws fitted hidden Markov models, VBHMM\. Got VBMixture"):
            draw(mixture)
    with pytest.raises(TypeError, match=r"ComponentsDisplay draws fitted mixtures, VBMixture\. Got VBHMM"):
        ComponentsDisplay.from_estimator(mixed, QUAKES)


def test_without_matplotlib_the_error_says_what_to_install(mixed, walks, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: StatePathDisplay.from_estimator(mixed, walks),
        lambda: StatePathDisplay([0], [[1.0]], []).plot(),
        lambda: TransitionsDisplay.from_estimator(mixed),
        lambda: TransitionsDisplay([[1.0]], [1.0], states=[0]).plot(),
    ):
        with pytest.raises(ImportError, match=r"Display needs matplotlib\. .* pip install 'skvbem\[plot\]'"):
            draw()


# Displays of other models ---------------------------------------------------------------------------------------------


def test_profiles_of_states_are_as_of_classes_in_the_states_colors(emptied):
    display = ClassProfileDisplay.from_estimator(emptied)
    used = np.flatnonzero(emptied.counts_ >= 1)
    assert display.classes == used.tolist()
    for k, ax in zip(used, display.axes_[0], strict=True):
        assert ax.get_title() == f"state {k}\n{emptied.counts_[k] / len(QUAKES):.0%}".replace("%", " %")
        assert ax.title.get_color() == state_color(k)
        assert float(ax.texts[0].get_text()) == approx(emptied.parameters_["poisson"]["rates"][k, 0], rel=0.005)


@pytest.mark.parametrize(("method", "init"), [("vb", "k-means++"), ("map", "random"), ("ml", "auto")])
def test_bounds_of_starts(method, init):
    model = VBHMM(2, emission="poisson", method=method, init=init, n_init=4, random_state=0).fit(QUAKES)
    display = BoundDisplay.from_estimator(model)
    bounds = model.restarts_.bounds
    ends = np.concatenate([line.get_ydata() for line in display.axes_[1].lines])
    assert ends == approx(np.sort(bounds[~np.isnan(bounds)])[::-1])


def test_scores_of_numbers_of_states_have_bars_where_they_are_sampled():
    kinds, options = ["lower_bound", "bic", "ais"], {"ais": {"n_chains": 4}}
    fits = {k: VBHMM(k, emission="poisson", n_init=2, random_state=0).fit(QUAKES) for k in (1, 2, 3)}
    tables = {k: evidence_table(fit, QUAKES, kinds, options=options) for k, fit in fits.items()}
    display = StructureSearchDisplay.from_evidence(tables, x_label="states")
    assert list(display.standard_errors) == ["ais"]
    assert display.scores["lower_bound"] == approx([fit.lower_bound_ for fit in fits.values()])
    (drawn,) = [c for c in display.ax_.collections if type(c).__name__ == "LineCollection"]
    for k, segment in enumerate(drawn.get_segments(), start=1):
        evidence = tables[k]["ais"]
        assert segment[:, 0].tolist() == [k, k]
        assert np.ptp(segment[:, 1]) == approx(2 * evidence.standard_error, abs=1e-9)
        assert segment[:, 1].mean() == approx(evidence.value)


def test_searches_over_numbers_of_states():
    model = VBHMM(emission="poisson", n_init=2)
    search = StructureSearchCV(model, {"n_components": [1, 2, 3]}, rescoring=False, random_state=0)
    display = StructureSearchDisplay.from_estimator(search.fit(QUAKES))
    assert display.ax_.get_xlabel() == "n_components"
    assert display.best_index == 2
