"""Distributions of numbers given others: against ratios of densities of rows."""

import numpy as np
import pandas as pd
import pytest

from skvbem import VBNetwork
from skvbem.estimators import NormalMixture

STRUCTURE = {"x": ["h"], "y": ["x", "g"], "z": ["y", "h"], "g": ["h"]}


def table(rng, n=200):
    """A hidden class above a category and three numbers, in units far from one."""
    h = rng.random(n) < 0.4
    g = np.where(rng.random(n) < np.where(h, 0.8, 0.3), "a", "b")
    x = np.where(h, 2.0, -2.0) + rng.normal(size=n)
    y = x + 2 * (g == "a") + rng.normal(size=n)
    return pd.DataFrame({"x": 100 * x + 7, "y": 0.1 * y, "z": y - 3 * h + rng.normal(size=n), "g": g})


@pytest.mark.parametrize("evidence", [{}, {"z": 1.0}, {"y": 0.2, "z": -1.0}, {"g": "a", "z": 0.5}, {"x": 150.0}])
@pytest.mark.parametrize("target", ["x", "y", "z"])
def test_densities_at_a_point_are_ratios_of_those_of_rows(target, evidence, rng):
    if target in evidence:
        return
    network = VBNetwork(STRUCTURE, latents={"h": 2}, method="ml", n_init=2, random_state=0).fit(table(rng))
    answer = network.query(target, evidence)
    at = np.linspace(-3, 3, 7) * answer.standard_deviation + answer.mean
    rows = pd.DataFrame({name: [evidence.get(name, np.nan if name != "g" else None)] * 8 for name in "xyzg"})
    rows.loc[:6, target] = at
    rows[["x", "y", "z"]] = rows[["x", "y", "z"]].astype(float)
    scores = network.score_samples(rows)
    assert answer.density(at) == pytest.approx(np.exp(scores[:7] - scores[7]), rel=1e-9)


def test_answers_average_over_parameters(rng):
    """Of a leaf the predictive density is Student's t, which draws come near; a point has too narrow a one."""
    x = rng.normal(size=12)
    X = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=12)})
    answer = VBNetwork({"y": ["x"]}).fit(X).query("y", {"x": 1.0})
    rows = pd.DataFrame({"x": 1.0, "y": answer.mean + np.linspace(-2, 2, 9)})
    network = VBNetwork({"y": ["x"]}).fit(X)
    marginal = network.score_samples(pd.DataFrame({"x": [1.0], "y": [np.nan]}))
    exact = np.exp(network.score_samples(rows) - marginal)
    assert answer.density(rows["y"].to_numpy()) == pytest.approx(exact, rel=0.25, abs=0.01)
    point = VBNetwork({"y": ["x"]}, method="ml").fit(X).query("y", {"x": 1.0})
    assert answer.standard_deviation > 1.03 * point.standard_deviation


def test_evidence_weighs_draws(rng):
    """p(x | y) of x -> y at 12 rows: by sums over draws of densities of both, not of conditional ones."""
    x = rng.normal(size=12)
    X = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=12)})
    network = VBNetwork({"y": ["x"]}).fit(X)
    answer, grid = network.query("x", {"y": 2.0}), np.linspace(-6, 8, 1401)
    joint = np.exp(network.score_samples(pd.DataFrame({"x": grid, "y": 2.0})))
    density = joint / joint.sum() / (grid[1] - grid[0])
    mean = (grid * density).sum() * (grid[1] - grid[0])
    deviation = np.sqrt(((grid - mean) ** 2 * density).sum() * (grid[1] - grid[0]))
    assert answer.mean == pytest.approx(mean, abs=0.15 * deviation)
    assert answer.standard_deviation == pytest.approx(deviation, rel=0.15)


def test_mixtures_of_normal_distributions(rng):
    mixture = NormalMixture(np.array([0.2, 0.5, 0.3]), np.array([-4.0, 0.0, 1.0]), np.array([0.5, 1.0, 2.0]))
    x = np.linspace(-20, 20, 40001)
    density = mixture.density(x)
    assert density.sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-9)
    assert (x * density).sum() * (x[1] - x[0]) == pytest.approx(mixture.mean, abs=1e-9)
    variance = ((x - mixture.mean) ** 2 * density).sum() * (x[1] - x[0])
    assert np.sqrt(variance) == pytest.approx(mixture.standard_deviation, abs=1e-9)
    for probability in (0.001, 0.3, 0.5, 0.999):
        assert mixture.cumulative(mixture.quantile(probability)) == pytest.approx(probability, abs=1e-10)
    low, high = mixture.interval(0.9)
    assert mixture.cumulative(high) - mixture.cumulative(low) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="The 'probability' parameter of quantile must be a number between 0 and 1"):
        mixture.quantile(1.0)
    with pytest.raises(ValueError, match="The 'level' parameter of interval must be a number between 0 and 1"):
        mixture.interval(95)


def test_numbers_that_are_no_normal_ones_are_refused(rng):
    X = table(rng, 60).assign(n=rng.poisson(3.0, 60))
    emission = {"poisson": ["n"], "gaussian": ["x"], "categorical": ["g"]}
    network = VBNetwork({"n": ["g"], "x": ["g"]}, emission=emission).fit(X[["n", "x", "g"]])
    with pytest.raises(ValueError, match="'n' has no table that 'query' could read"):
        network.query("n", {"g": "a"})
    with pytest.raises(ValueError, match="'x' has no table that 'query' could read"):
        network.query(["x", "g"])
    with pytest.raises(ValueError, match="not also in the evidence"):
        network.query("x", {"x": 1.0})
    assert network.query("x", {"g": "a"}).mean > network.query("x", {"g": "b"}).mean
