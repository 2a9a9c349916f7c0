"""Standardized coefficients and R² of networks of numbers: against least squares, groups of rows, and new rows."""

import numpy as np
import pandas as pd
import pytest

from skvbem import VBNetwork


def values(model, X=None, **options):
    """Estimates, lower and upper ends of the standardized coefficients and of R², by row."""
    frame = model.summary(X, **options).to_frame().set_index(["table", "row"])[["estimate", "lower", "upper"]]
    return {title: frame.loc[title].T.to_dict("list") for title in ("standardized coefficients", "explained variance")}


def two_groups(n=300):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    x = rng.normal(3.0 * group, 1.0 + group)
    y = np.where(group == 1, 1.5, -0.5) * x + rng.normal(size=n) + 1e4
    z = y - x + rng.normal(size=n)
    return pd.DataFrame({"g": np.array(["a", "b"])[group], "x": x, "y": y, "z": z})


def least_squares(y, *parents):
    """Standardized coefficients and R² by least squares."""
    y, *parents = (np.asarray(each, dtype=float) for each in (y, *parents))
    away = np.column_stack([each - each.mean() for each in parents])
    slopes = np.linalg.lstsq(away, y - y.mean(), rcond=None)[0]
    return slopes * away.std(axis=0) / y.std(), 1 - (y - y.mean() - away @ slopes).var() / y.var()


def test_they_are_those_of_least_squares():
    X = two_groups()[["x", "y", "z"]]
    found = values(VBNetwork([("x", "y"), ("x", "z"), ("y", "z")], method="ml").fit(X))
    (of_x, of_y), r2 = least_squares(X["z"], X["x"], X["y"])
    coefficients, explained = found["standardized coefficients"], found["explained variance"]
    np.testing.assert_allclose(coefficients["x -> z"][0], of_x, rtol=1e-6)
    np.testing.assert_allclose(coefficients["y -> z"][0], of_y, rtol=1e-6)
    np.testing.assert_allclose(explained["z"][0], r2, rtol=1e-6)


def test_each_group_has_those_of_its_rows():
    X = two_groups()[["g", "x", "y"]]
    found = values(VBNetwork([("g", "x"), ("g", "y"), ("x", "y")], method="ml").fit(X))
    noise = 0.0
    for name, rows in X.groupby("g"):
        (slope,), r2 = least_squares(rows["y"], rows["x"])
        np.testing.assert_allclose(found["standardized coefficients"][f"x -> y, g={name}"][0], slope, rtol=1e-5)
        np.testing.assert_allclose(found["explained variance"][f"y, g={name}"][0], r2, rtol=1e-5)
        noise += (1 - r2) * rows["y"].var(ddof=0) * len(rows) / len(X)
    np.testing.assert_allclose(found["explained variance"]["y"][0], 1 - noise / X["y"].var(ddof=0), rtol=1e-5)


@pytest.mark.parametrize("method", ["vb", "ml"])
def test_they_are_those_of_new_rows(method):
    """A category above several numbers, another below it, and a network that is not saturated."""
    X = two_groups()
    X["k"] = np.where(np.random.default_rng(1).random(len(X)) < 0.2, "u", X["g"])
    edges = [("k", "g"), ("g", "x"), ("x", "y"), ("k", "y"), ("g", "y"), ("y", "z")]
    model = VBNetwork(edges, method=method, random_state=0).fit(X)
    new = model.sample(200_000, random_state=0)[0]
    found = values(model)
    for (k, g), rows in new.groupby(["k", "g"]):
        if len(rows) > 10_000:
            (slope,), r2 = least_squares(rows["y"], rows["x"])
            assert abs(found["standardized coefficients"][f"x -> y, g={g}, k={k}"][0] - slope) < 0.03
            assert abs(found["explained variance"][f"y, g={g}, k={k}"][0] - r2) < 0.03
    (slope,), r2 = least_squares(new["z"], new["y"])
    assert abs(found["standardized coefficients"]["y -> z"][0] - slope) < 0.03
    assert abs(found["explained variance"]["z"][0] - r2) < 0.03


def test_intervals_are_of_the_same_width_by_draws_by_q_and_by_maximum_likelihood():
    """Fisher: the standard error of a correlation r is (1 - r²) / √n."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    X = np.column_stack([x, x + rng.normal(size=2000)])
    (r,), _ = least_squares(X[:, 1], X[:, 0])
    width = 2 * 1.959964 * (1 - r**2) / np.sqrt(2000)
    for method, options in (("vb", {}), ("vb", {"method": "vb"}), ("ml", {})):
        model = VBNetwork([("x0", "x1")], method=method).fit(X)
        estimate, low, high = values(model, X, **options)["standardized coefficients"]["x0 -> x1"]
        assert abs(estimate - r) < 0.003
        assert abs((high - low) / width - 1) < 0.1
        assert low < r < high


def test_hidden_numbers_have_loadings():
    """By maximum likelihood the loadings of one factor, whose squares are communalities."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1)) * [2.0, 1.0, 0.5] + rng.normal(size=(300, 3))
    model = VBNetwork(latents={"f": "number"}, method="ml", random_state=0).fit(X)
    found = values(model)
    correlation = np.corrcoef(X.T)
    loadings = np.array([found["standardized coefficients"][f"f -> x{j}"][0] for j in range(3)])
    together = np.outer(loadings, loadings)[np.tril_indices(3, -1)]
    np.testing.assert_allclose(together, correlation[np.tril_indices(3, -1)], atol=1e-3)
    np.testing.assert_allclose([found["explained variance"][f"x{j}"][0] for j in range(3)], loadings**2, rtol=1e-9)


def test_states_without_rows_have_none():
    """By maximum likelihood a joint state that never occurs has no variance."""
    X = two_groups()
    X["k"] = X["g"]
    found = values(VBNetwork([("k", "g"), ("k", "x"), ("g", "y"), ("x", "y"), ("k", "y")], method="ml").fit(X))
    assert [*found["explained variance"]] == ["y", "y, g=a, k=a", "y, g=b, k=b"]


def test_rows_of_one_number_stay_together():
    """States of a hidden class are in the order of their shares, beneath the number that they belong to."""
    rng = np.random.default_rng(0)
    h = rng.random(300) < 0.2
    x = rng.normal(size=300)
    y = np.where(h, 3, -3) * x + 0.3 * rng.normal(size=300)
    edges = [("h", "x1"), ("x0", "x1"), ("x1", "x2")]
    X = np.column_stack([x, y, y + rng.normal(size=300)])
    report = VBNetwork(edges, latents={"h": 2}, random_state=0).fit(X).summary()
    table = next(table for table in report._arranged() if table.title == "explained variance")
    assert [row.split(",")[0] for row in table.rows] == ["x1", "x1", "x1", "x2"]


def test_a_network_without_numbers_below_numbers_has_none():
    X = two_groups()[["g", "x"]]
    titles = [table.title for table in VBNetwork([("g", "x")]).fit(X).summary().tables]
    assert titles == ["g", "x | g"]
