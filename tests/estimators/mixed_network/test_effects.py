"""Total effects in networks of mixed columns: against differences of answers, and closed forms."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from skvbem import VBDiscreteDAG, VBNetwork
from skvbem.emissions import Regression
from skvbem.errors import PosteriorWarning
from skvbem.estimators import Effect

approx = pytest.approx
STRUCTURE = {"g": ["a"], "x": ["a"], "y": ["x", "g"], "z": ["y", "x", "a"], "w": ["g"]}


def table(rng, n=150):
    a = rng.random(n) < 0.4
    g = np.where(rng.random(n) < np.where(a, 0.8, 0.3), "on", "off")
    x = a + rng.normal(size=n)
    y = np.where(g == "on", 2.0, -1.0) * x + rng.normal(size=n)
    z = 0.5 * y - x + 2 * a + rng.normal(size=n)
    return pd.DataFrame({"a": np.where(a, "yes", "no"), "g": g, "x": 10 * x + 3, "y": y, "z": 0.1 * z, "w": y * 0 + z})


@pytest.fixture
def at_a_point(rng):
    return VBNetwork(STRUCTURE, method="ml").fit(table(rng))


def means_after(network, target, done):
    return network.query(target, do=done).mean


@pytest.mark.parametrize(("cause", "outcome"), [("x", "y"), ("x", "z"), ("y", "z"), ("x", "w"), ("z", "y")])
def test_one_unit_more_of_a_number_is_a_difference_of_answers(at_a_point, cause, outcome):
    effect = at_a_point.effect(cause, outcome)
    before, after = (means_after(at_a_point, outcome, {cause: at}) for at in (1.7, 2.7))
    assert effect.mean == approx(after - before, abs=1e-9)
    assert effect.probability_no_path == float((cause, outcome) in {("x", "w"), ("z", "y")})


@pytest.mark.parametrize("outcome", ["x", "y", "z", "w"])
@pytest.mark.parametrize("cause", ["a", "g"])
def test_changes_of_categories_are_differences_of_answers(at_a_point, cause, outcome):
    states = {"a": ("no", "yes"), "g": ("off", "on")}[cause]
    before, after = (means_after(at_a_point, outcome, {cause: state}) for state in states)
    assert at_a_point.effect(cause, outcome).mean == approx(after - before, abs=1e-9)
    assert at_a_point.effect(cause, outcome, change=states[::-1]).mean == approx(before - after, abs=1e-9)


def test_changes_of_probabilities(at_a_point, rng):
    found = at_a_point.effect("a", "g", state="on").mean
    answers = [at_a_point.query("g", do={"a": state})["g":"on"] for state in ("no", "yes")]
    assert found == approx(answers[1] - answers[0])
    assert at_a_point.effect("g", "a", state="yes").probability_no_path == 1
    assert at_a_point.effect("x", "g", state="on").mean == 0
    X = table(rng)[["a", "g"]]
    drawn = VBNetwork([("a", "g")], prior=1.0).fit(X).effect("a", "g", state="on", n_draws=4000)
    posterior = VBDiscreteDAG([("a", "g")], prior=1.0).fit(X).posterior_["g"].values
    means, sizes = posterior[:, 1] / posterior.sum(axis=1), posterior.sum(axis=1)
    assert drawn.mean == approx(means[1] - means[0], abs=0.005)
    assert drawn.standard_deviation == approx(np.sqrt((means * (1 - means) / (sizes + 1)).sum()), rel=0.05)


def test_draws_of_one_coefficient_are_students_t(rng):
    """Of x -> y under known priors the coefficient has a t distribution, whose moments are sums over rows."""
    X = pd.DataFrame({"x": rng.normal(size=25), "y": rng.normal(size=25)})
    X["y"] += 0.5 * X["x"]
    emission = Regression(coefficient_precision_prior=1.0, degrees_of_freedom_prior=2.0, variance_prior=None)
    # measurements without parents have a prior of their own, of which the effect is free
    network = VBNetwork([("x", "y")], emission=[("y", emission, ["y"]), ("x", "gaussian", ["x"])]).fit(X)
    effect = network.effect("x", "y", n_draws=20000)
    unit = X.std(ddof=0)
    u, v = (((X[name] - X[name].mean()) / unit[name]).to_numpy() for name in "xy")
    precision = u @ u + 1.0
    mean = u @ v / precision
    dof, rest = 2.0 + 25, 2.0 + v @ v - mean**2 * precision
    exact = student(dof, mean * unit["y"] / unit["x"], np.sqrt(rest / dof / precision) * unit["y"] / unit["x"])
    assert effect.mean == approx(exact.mean(), abs=4 * exact.std() / np.sqrt(20000))
    assert effect.standard_deviation == approx(exact.std(), rel=0.03)
    assert effect.interval(0.9) == approx(exact.interval(0.9), abs=0.05 * exact.std())
    assert effect.probability_positive == approx(exact.sf(0.0), abs=0.01)


def test_draws_average_over_categories_and_paths(rng):
    """Each draw is the sum over states of probabilities times sums over paths, as draws of parameters have them."""
    network = VBNetwork(STRUCTURE).fit(table(rng))
    effect = network.effect("x", "z", n_draws=3000)
    assert effect.mean == approx(network.query("z", do={"x": 4.0}).mean - network.query("z", do={"x": 3.0}).mean,
                                 abs=0.15 * effect.standard_deviation)  # fmt: skip
    assert network.effect("x", "z", n_draws=3000).values.tolist() == effect.values.tolist()
    few, many = (VBNetwork(STRUCTURE).fit(table(np.random.default_rng(1), n)).effect("x", "z") for n in (150, 15000))
    assert many.standard_deviation == approx(0.1 * few.standard_deviation, rel=0.35)


def test_a_hidden_common_cause_is_warned_of(rng):
    h = rng.random(150) < 0.5
    X = pd.DataFrame({"x": 4.0 * h + rng.normal(size=150), "y": 4.0 * h + rng.normal(size=150)})
    edges = [("h", "x"), ("h", "y"), ("x", "y")]
    network = VBNetwork(edges, latents=["h"], n_init=2, random_state=0).fit(X)
    with pytest.warns(PosteriorWarning, match="What setting 'x' does to 'y' is not identified"):
        network.effect("x", "y")
    network.effect("y", "x")  # nothing leads there


def test_what_has_no_effect_is_refused(at_a_point, rng):
    for arguments, message in [
        (("x", "x"), "needs two nodes"),
        (("q", "x"), "'q' is not a node"),
        (("x", "g"), "effects are on the probability of one of its states"),
        (("x", "y", None, "on"), "'y' holds numbers, and has no state 'on'"),
        (("x", "y", ("a", "b")), "its effect is that of one unit more"),
        (("a", "y", ("no", "maybe")), "'maybe' is not a state of 'a'"),
        (("a", "y", "no"), "name the two states"),
    ]:
        cause, outcome, *rest = arguments
        options = dict(zip(("change", "state"), rest))
        with pytest.raises(ValueError, match=message):
            at_a_point.effect(cause, outcome, **options)
    with pytest.raises(ValueError, match="Fit with method='vb'"):
        at_a_point.effect("x", "y").interval()
    X = table(rng)[["x", "y"]].assign(answer=rng.integers(0, 3, 150), g=table(rng)["g"])
    emission = {"ordinal": ["answer"], "gaussian": ["x", "y"], "categorical": ["g"]}
    ordered = VBNetwork([("g", "answer"), ("x", "y")], emission=emission).fit(X)
    with pytest.raises(ValueError, match="answers in an order or angles"):
        ordered.effect("g", "answer")


def test_mixtures_of_points_and_t_distributions():
    two = Effect(np.array([0.5, 0.5]), np.array([1.0, 2.0]), np.array([0.3, 0.5]), np.array([5.0, 8.0]), 0.0)
    nothing = Effect.of_draws(np.zeros(1), probability_no_path=1.0)
    effect = Effect.mixed([nothing, two], np.array([0.3, 0.7]))
    assert (effect.probability_no_path, effect.mean) == approx((0.3, 0.7 * 1.5))
    x = np.linspace(-30, 30, 600001)
    density = 0.35 * (student.pdf(x, 5, 1.0, 0.3) + student.pdf(x, 8, 2.0, 0.5))
    second = (x**2 * density).sum() * (x[1] - x[0])
    assert effect.standard_deviation == approx(np.sqrt(second - effect.mean**2), rel=1e-4)
    below = 0.35 * (student.cdf(0, 5, 1.0, 0.3) + student.cdf(0, 8, 2.0, 0.5))
    assert (effect.probability_negative, effect.probability_positive) == approx((below, 0.7 - below))
    assert effect.quantile(0.2) == 0.0
    for probability in (below / 2, 0.5, 0.99):
        assert effect.cumulative(effect.quantile(probability)) == approx(probability, abs=1e-10)
    assert effect.interval(0.5)[0] == 0.0
    with pytest.raises(ValueError, match="The 'probability' parameter of quantile"):
        effect.quantile(0)
    assert "P(no path) 0.300" in repr(effect)
    assert "95 % interval" in effect._repr_html_()
