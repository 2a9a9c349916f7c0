"""Missing cells filled by draws: as many below each value as the density of the completed rows says.

Fits by maximum likelihood have one point, whose densities `score_samples` gives: the distribution of a missing cell
given the observed ones follows from the densities of rows completed with every value, and that of a second one given
the first. Draws then have uniform ranks.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBImputer, VBLinearDynamicalSystem, VBMixture, VBNetwork
from skvbem.emissions import Regression
from skvbem.errors import DataWarning

N = 120


def table(rng, n=400):
    kind = rng.integers(0, 2, n)
    numbers = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.95, 0.0], [0, 0.3, 0.5], [0, 0, 0.7]]) + 2.0 * kind[:, None]
    words = np.where(rng.random((n, 2)) < 0.2 + 0.6 * kind[:, None], "yes", "no")
    words[:, 1] = np.where(rng.random(n) < 0.5, words[:, 0], words[:, 1])
    X = pd.DataFrame(numbers, columns=list("xyz")).assign(a=words[:, 0], b=words[:, 1])
    return X.assign(n=rng.poisson(1 + 4 * kind).astype(float))


def ranks(log_density, drawn, values, rng):
    """The share of the distribution below each draw, (n,), the draw's own share divided at random if it is a category.

    Parameters
    ----------
    log_density : callable of a value for all rows -> ndarray of shape (n,)
    drawn : Series
    values : ndarray, a grid of numbers, or categories
    """
    logs = np.stack([log_density(value) for value in values], axis=1)
    mass = np.exp(logs - logs.max(axis=1, keepdims=True))
    below = np.cumsum(mass, axis=1)
    if isinstance(values[0], str) or float(values[1]).is_integer():
        at = np.array([np.flatnonzero(values == cell)[0] for cell in drawn])
        rows = np.arange(len(at))
        return (below[rows, at] - rng.random(len(at)) * mass[rows, at]) / below[:, -1]
    edges = values + (values[1] - values[0]) / 2
    cdf = below / below[:, -1:]
    return np.array([np.interp(cell, edges, of_row) for cell, of_row in zip(drawn.astype(float), cdf)])


def check_rows(model, X, missing, rng):
    """Draws of missing cells in turn: the first with the second missing, the second given the first."""
    gappy = X.copy()
    for name in missing:
        gappy[name] = None if X[name].dtype.kind not in "f" else np.nan
    filled = model.impute(gappy, fill="draw", random_state=int(rng.integers(2**31)))
    assert not filled.isna().any().any()
    pd.testing.assert_frame_equal(filled.drop(columns=missing), gappy.drop(columns=missing))
    known = gappy.copy()
    for name in missing:
        if X[name].dtype.kind != "f":
            values = np.array(["no", "yes"])
        elif name == "n":
            values = np.arange(30.0)
        else:
            values = np.linspace(X[name].min() - 4, X[name].max() + 4, 120)
        of_value = ranks(lambda v, name=name: model.score_samples(known.assign(**{name: v})), filled[name], values, rng)
        assert kstest(of_value, "uniform").pvalue > 1e-3, name
        known[name] = filled[name]


MODELS = {
    "mixture": (VBMixture(2), "xyzabn", True),
    "diagonal": (VBMixture(2, covariance_type="diag"), "xyz", False),
    "factors": (VBFactorAnalysis(1), "xyz", False),
    "tables": (VBDiscreteDAG([("h", "a"), ("h", "b"), ("a", "b")], latents=["h"]), "ab", False),
    "network": (VBNetwork({"x": ["h"], "a": ["h"], "n": ["a"], "y": ["h"]}, latents=["h"]), "xyan", True),
}


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("mixture", "xz"),
        ("mixture", "an"),
        pytest.param("diagonal", "xy", marks=pytest.mark.slow),
        ("factors", "xz"),
        ("tables", "ab"),
        pytest.param("network", "ya", marks=pytest.mark.slow),
        ("network", "nx"),
    ],
)
def test_draws_of_rows_have_the_distribution_of_what_is_missing(name, missing):
    model, columns, has_counts = MODELS[name]
    rng = np.random.default_rng(len(name))
    X = table(rng)[[*columns]]
    if has_counts:
        numbers, words = ([name for name in columns if name in some] for some in ("xyz", "ab"))
        model.set_params(emission={"gaussian": numbers, "categorical": words, "poisson": ["n"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(method="ml", random_state=0)
        check_rows(model.fit(X), X[:N], [*missing], rng)


def test_parameters_are_drawn_too():
    """Of one component q(theta) is the posterior: over seeds a fill has the distribution of a new row."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(6, 1)) * 2 + 5
    model = VBMixture(1, random_state=0).fit(X)
    fills = np.array([model.impute([[np.nan]], fill="draw", random_state=seed)[0, 0] for seed in range(150)])
    grid = np.linspace(-60, 70, 4001)
    cdf = np.cumsum(np.exp(model.score_samples(grid[:, None])))
    of_value = np.interp(fills, grid, cdf / cdf[-1])
    assert kstest(of_value, "uniform").pvalue > 1e-3
    empty = np.full((400, 1), np.nan)
    means = [model.impute(empty, fill="draw", random_state=seed).mean() for seed in range(20)]
    assert np.std(means) > 0.2 * np.sqrt(model.covariances_.ravel()[0])  # 1 / 20 of it with equal parameters


def test_the_seed_decides_and_a_step_of_a_pipeline_draws():
    rng = np.random.default_rng(0)
    X = table(rng, 60)
    gappy = X.mask(rng.random(X.shape) < 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, again, other = (VBImputer(VBMixture(2, random_state=0), fill="draw", random_state=k) for k in (1, 1, 2))
        filled = [each.set_output(transform="pandas").fit(gappy).transform(gappy) for each in (one, again, other)]
        pd.testing.assert_frame_equal(filled[0], filled[1])
        assert not filled[0].equals(filled[2])
        assert not filled[0].isna().any().any()
        for model in (VBFactorAnalysis(1, random_state=0), VBLinearDynamicalSystem(1, random_state=0)):
            numbers = gappy[[*"xyz"]]
            means = VBImputer(model).fit_transform(numbers)
            drawn = VBImputer(model, fill="draw", random_state=0).fit_transform(numbers)
            assert np.isfinite(drawn).all()
            assert (drawn == means)[numbers.notna()].all()
            assert (drawn != means)[numbers.isna()].all()
    with pytest.raises(ValueError, match=r"must be one of \['auto', 'cells', 'joint', 'draw'\]"):
        model.fit(numbers.fillna(0)).impute(numbers, fill="drawn")


def test_paths_are_drawn_together():
    """Of states that stay, each step by itself would change as often as not."""
    words = [np.repeat([["a"], ["b"]], 30, axis=0)[turn * 30 :] for turn in (0, 1)] + [
        np.repeat([["b"], ["a"]], 30, axis=0)
    ]
    model = VBHMM(2, emission="categorical", random_state=0).fit(words)
    drawn = model.impute([np.full((300, 1), None)], fill="draw", random_state=0)[0].ravel()
    assert {*drawn} == {"a", "b"}
    assert (drawn[1:] != drawn[:-1]).sum() < 60


def test_steps_with_lags_are_not_drawn():
    X = np.random.default_rng(0).normal(size=(60, 1)).cumsum(axis=0)
    model = VBHMM(1, emission=Regression(lags=1), random_state=0).fit(X)
    with pytest.raises(ValueError, match="does not draw cells of emissions with 'lags'"):
        model.impute(X, fill="draw")


def test_impossible_rows_are_drawn_as_empty_ones_with_a_warning():
    X = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"], "c": ["p", "q", "p", "q"]})
    model = VBDiscreteDAG("[a][b|a][c]", method="ml").fit(X)
    odd = pd.DataFrame({"a": ["x"], "b": ["v"], "c": [None]})
    with pytest.warns(DataWarning, match="1 of 1 rows"):
        assert model.impute(odd, fill="draw", random_state=0)["c"][0] in ("p", "q")


def test_rows_are_drawn_given_states():
    """As often as `query` says, exactly; evidence may be a row of a frame, whose missing cells say nothing."""
    rng = np.random.default_rng(0)
    X = table(rng)[["a", "b"]]
    model = VBDiscreteDAG(latents={"h": 2}, random_state=0).fit(X)
    rows, states = model.sample(4000, random_state=1, given=pd.Series({"a": "yes", "b": None}))
    assert set(rows["a"]) == {"yes"}
    joint = model.query(["b", "h"], {"a": "yes"})
    for b in ("no", "yes"):
        for h in (0, 1):
            share = np.mean((rows["b"] == b) & (states.ravel() == h))
            assert share == pytest.approx(joint["b":b, "h":h], abs=0.03)
    assert (model.sample(50, random_state=0, given={"h": 1})[1] == 1).all()
    with pytest.raises(ValueError, match="is not a state of 'a'"):
        model.sample(given={"a": "maybe"})
    with pytest.raises(TypeError, match="The given of a sample must be a mapping of nodes to states"):
        model.sample(given="yes")


def test_rows_are_drawn_given_numbers():
    rng = np.random.default_rng(0)
    X = table(rng)[["x", "y", "a"]]
    graph = {"x": ["h"], "y": ["h"], "a": ["h"]}
    model = VBNetwork(graph, latents={"h": 2}, random_state=0).fit(X)
    rows, states = model.sample(500, random_state=1, given=pd.Series({"x": 1.0, "y": np.nan, "a": None}))
    assert (rows["x"] == 1.0).all()
    joint = model.query(["a", "h"], {"x": 1.0})
    for h in (0, 1):
        share = np.mean((rows["a"] == "yes") & (states.ravel() == h))
        assert share == pytest.approx(joint["a":"yes", "h":h], abs=0.07)
    grid = np.linspace(-8, 12, 2001)
    density = np.exp(model.score_samples(pd.DataFrame({"x": 1.0, "y": grid, "a": [None] * len(grid)})))
    cdf = np.cumsum(density) / density.sum()
    assert kstest(np.interp(rows["y"].astype(float), grid, cdf), "uniform").pvalue > 1e-3
    assert (model.sample(5, random_state=0, given={"h": 1, "a": "no"})[1] == 1).all()
    with pytest.raises(ValueError, match="is not a node of this network"):
        model.sample(given={"z": 1.0})


def sequences(rng, n=N, steps=3):
    state = rng.integers(0, 2, n)
    rows = []
    for _ in range(steps):
        state = np.where(rng.random(n) < 0.8, state, 1 - state)
        rows.append(rng.normal(size=(n, 2)) @ [[1.0, 0.5], [0.0, 0.8]] + 2.5 * state[:, None])
    return np.stack(rows, axis=1)


@pytest.mark.parametrize("make", [lambda: VBHMM(2), lambda: VBLinearDynamicalSystem(1)], ids=["chain", "system"])
@pytest.mark.parametrize(
    "missing",
    [
        ((1, 0), (2, 0)),
        *(pytest.param(cells, marks=pytest.mark.slow) for cells in (((1, 0), (1, 1)), ((2, 0), (2, 1)))),
    ],
)
def test_draws_of_sequences_have_the_distribution_of_what_is_missing(make, missing):
    rng = np.random.default_rng(7)
    paths = sequences(rng, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().set_params(method="ml", random_state=0, n_init=2).fit([*paths])
        gappy = paths.copy()
        for step, column in missing:
            gappy[:, step, column] = np.nan
        filled = np.stack(model.impute([*gappy], fill="draw", random_state=1))
        assert (filled == gappy)[~np.isnan(gappy)].all()
        known, grid = gappy.copy(), np.linspace(-6, 10, 60)

        for step, column in missing:

            def log_density(value, step=step, column=column):
                completed = known.copy()
                completed[:, step, column] = value
                return model.score_samples([*completed])

            of_value = ranks(log_density, pd.Series(filled[:, step, column]), grid, rng)
            assert kstest(of_value, "uniform").pvalue > 1e-3
            known[:, step, column] = filled[:, step, column]
