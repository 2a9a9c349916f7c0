"""Displays of networks of mixed columns: what a parent tells of numbers, and what columns say of a latent."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

from skvbem import VBNetwork
from skvbem.plotting import ClassProfileDisplay, DAGDisplay

approx = pytest.approx
CAUSES = {"visits": ["a", "b"], "size": ["b"], "color": ["a"], "b": ["a"], "alone": []}
EMISSION = {"poisson": ["visits"], "gaussian": ["size", "alone"], "categorical": ["color"]}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, (2, 150))
    X = pd.DataFrame(
        {
            "visits": rng.poisson(1 + 3 * a + 5 * b).astype(float),
            "size": rng.normal(4.0 * b),
            "color": np.where(rng.random(150) < 0.9, a, 1 - a).astype(str),
            "alone": rng.normal(size=150),
        }
    )
    options = {"n_init": 1, "init": "random", "tol": 1e-3, "random_state": 0}
    return VBNetwork(CAUSES, latents=["a", "b"], emission=EMISSION, **options).fit(X), X


@pytest.fixture(autouse=True)
def closed_figures():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield
    plt.close("all")


def test_widths_of_edges_into_numbers(fitted):
    """Sums over all counts, as far as draws go; an edge that says much is wider than one that says little."""
    model, _ = fitted
    display = DAGDisplay.from_estimator(model)
    joint = model.query(["a", "b"]).values
    rates = model.parameters_["visits"]["rates"].reshape(2, 2)
    y = np.arange(80.0)[:, None, None]
    density = np.exp(y * np.log(rates) - rates - gammaln(y + 1))
    for axis, parent in enumerate("ab"):
        without = (joint * density).sum(axis=1 + axis, keepdims=True) / joint.sum(axis=axis)[None].reshape(
            [1, *(1 if k == axis else 2 for k in range(2))]
        )
        told = (joint * density * np.log(density / without)).sum()
        assert display.edge_widths[parent, "visits"] == approx(told, rel=0.05)
    assert display.edge_widths["b", "size"] > display.edge_widths["a", "b"]
    assert set(display.edge_widths) == set(model.structure_.edges)


def test_columns_by_states_of_one_latent(fitted):
    """Means, deviations and shares of rows drawn, state by state of the latent."""
    model, X = fitted
    drawn, states = model.sample(10_000, random_state=0)
    drawn = pd.DataFrame(drawn, columns=X.columns)
    for k, latent in enumerate(model.latent_names_):
        profiles = {each.name: each for each in ClassProfileDisplay.from_estimator(model, latent=latent).profiles}
        for name in ("visits", "size", "alone"):
            by_state = drawn[name].astype(float).groupby(states[:, k])
            deviation = drawn[name].astype(float).std()
            assert profiles[name].values == approx(by_state.mean().to_numpy(), abs=0.05 * deviation)
            assert profiles[name].deviations == approx(by_state.std().to_numpy(), rel=0.08)
        share = (drawn["color"] == "1").groupby(states[:, k]).mean().to_numpy()
        assert profiles["color"].values[:, 0] == approx(share, abs=0.03)
    with pytest.raises(ValueError, match="'c' is no latent of this VBNetwork"):
        ClassProfileDisplay.from_estimator(model, latent="c")
    with pytest.raises(ValueError, match="say for which latent columns are to be drawn, as in latent='a'"):
        ClassProfileDisplay.from_estimator(model)


def test_one_class_above_all_columns_has_intervals(fitted):
    """As a mixture is drawn."""
    _, X = fitted
    model = VBNetwork(latents=2, emission=EMISSION, n_init=1, init="random", tol=1e-2, random_state=0).fit(X)
    display = ClassProfileDisplay.from_estimator(model, X, draws=model.sample_posterior(X, 20, n_chains=2))
    assert [profile.name for profile in display.profiles] == [*X.columns]
    alone = ClassProfileDisplay.from_estimator(model, latent="h0")
    for with_intervals, averaged in zip(display.profiles, alone.profiles):
        assert averaged.values == approx(np.asarray(with_intervals.values), rel=1e-6, abs=1e-9)
        low, high = with_intervals.intervals
        assert (low < high).all()


def test_reports_say_means_and_deviations(fitted):
    model, _ = fitted
    table = next(table for table in model.summary().tables if table.title == "size | b")
    assert (table.rows, table.columns) == (["b=0", "b=1"], ["size mean", "size s.d."])
    assert table.values[:, 0] == approx(model.parameters_["size"]["means"][:, 0])
    assert [*model.tables_] == [*model.counts_] == ["a", "b", "color"]
    assert model.counts_["b"].values.sum() == approx(150)
    assert model.tables_["color"]["a":0, "color":"1"] == approx(model.query("color", {"a": 0})["color":"1"], rel=1e-12)


def test_path_diagrams_say_what_the_summary_says():
    """Coefficients at arrows, as wide as these are large, and R² in nodes; hidden numbers are ellipses."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) * [1.0, 1.5, 0.7] + rng.normal(size=(200, 3))
    edges = [("f", "x0"), ("f", "x1"), ("f", "x2"), ("x0", "x2")]
    model = VBNetwork(edges, latents={"f": "number"}, random_state=0).fit(X)
    display = DAGDisplay.from_estimator(model)
    rows = model.summary().to_frame().set_index(["table", "row"])["estimate"]
    for parent, child in edges:
        value = rows["standardized coefficients", f"{parent} -> {child}"]
        assert display.edge_widths[parent, child] == approx(abs(value))
        assert display.edge_labels[parent, child].startswith(f"{value:.2f}\n[")
    assert display.notes == {name: f"R² {rows['explained variance', name]:.2f}" for name in ("x0", "x1", "x2")}
    assert [*display.latents] == ["f"]
    written = [text.get_text() for text in display.ax_.texts]
    assert {*display.edge_labels.values(), *display.notes.values()} <= {*written}


def test_labels_of_arrows_cover_no_node():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4)).cumsum(axis=1)
    edges = [(f"x{i}", f"x{j}") for j in range(4) for i in range(j)]
    display = DAGDisplay.from_estimator(VBNetwork(edges).fit(X))
    display.figure_.canvas.draw()
    texts = {text.get_text(): text.get_window_extent() for text in display.ax_.texts}
    labels = [texts[label] for label in display.edge_labels.values()]
    assert len(labels) == 6
    assert not any(label.overlaps(texts[name]) for label in labels for name in model_names(X))


def model_names(X):
    """Columns as they are called where they have no names."""
    return [f"x{j}" for j in range(X.shape[1])]


def test_states_of_categories_have_coefficients_of_their_own():
    rng = np.random.default_rng(0)
    group, x = rng.integers(0, 2, 200), rng.normal(size=200)
    X = pd.DataFrame({"g": np.array(["a", "b"])[group], "x": x, "y": (1 - 2 * group) * x + rng.normal(size=200)})
    display = DAGDisplay.from_estimator(VBNetwork([("g", "y"), ("x", "y")]).fit(X), edge_widths="standardized")
    first, second = display.edge_labels["x", "y"].split("\n")
    assert first.startswith("a: 0.")
    assert second.startswith("b: -0.")
    assert display.edge_widths["g", "y"] == 0
