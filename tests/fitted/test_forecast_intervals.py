"""Intervals of forecasts at known parameters: closed forms for one state, the definition for two, simulated futures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skvbem import VBHMM, VBLinearDynamicalSystem
from skvbem.emissions import (
    Censored,
    Gamma,
    Gaussian,
    Interval,
    LogNormal,
    NegativeBinomial,
    Poisson,
    StudentT,
    VonMises,
    ZeroInflated,
)

LEVEL = 0.9
ENDS = 0.05, 0.95
TRANSMAT = np.array([[0.85, 0.15], [0.3, 0.7]])
STARTPROB = np.array([0.5, 0.5])
FAMILIES = {
    "gaussian": (
        {"means": [[-1.0], [4.0]], "covariances": [[1.5], [0.3]]},
        lambda k: stats.norm([-1, 4][k], [1.5, 0.3][k] ** 0.5),
    ),
    "poisson": ({"rates": [[2.0], [9.5]]}, lambda k: stats.poisson([2.0, 9.5][k])),
    "exponential": ({"rates": [[0.5], [4.0]]}, lambda k: stats.expon(scale=1 / [0.5, 4.0][k])),
}  # fmt: skip


def model_of(family, n_states):
    parameters = {name: values[:n_states] for name, values in FAMILIES[family][0].items()}
    chain = (STARTPROB, TRANSMAT) if n_states == 2 else ([1.0], [[1.0]])
    return VBHMM.from_parameters(*chain, parameters, emission=family, covariance_type="diag")


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_of_one_state_are_quantiles_of_its_family(family):
    ahead = model_of(family, 1).forecast([[[1.0], [3.0]]], n_steps=3, level=LEVEL)
    of_state = FAMILIES[family][1](0)
    for ends, probability in ((ahead.lower, ENDS[0]), (ahead.upper, ENDS[1])):
        np.testing.assert_allclose(ends["x0"], np.full((1, 3), of_state.ppf(probability)), rtol=1e-9)
    np.testing.assert_allclose(ahead.expected["x0"], of_state.mean(), rtol=1e-12)
    np.testing.assert_allclose(ahead.variance["x0"], of_state.var(), rtol=1e-12)


def futures(family, last, n_steps, n_paths, rng):
    """Values to come, (n_steps, n_paths), drawn step by step from probabilities of the last state."""
    states = (rng.random(n_paths) > last[0]).astype(int)
    of_states, steps = [FAMILIES[family][1](k) for k in range(2)], []
    for _ in range(n_steps):
        states = (rng.random(n_paths) > TRANSMAT[states, 0]).astype(int)
        drawn = np.stack([of_state.rvs(n_paths, random_state=rng) for of_state in of_states])
        steps.append(drawn[states, np.arange(n_paths)])
    return np.stack(steps)


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_of_two_states_are_those_of_the_mixture_and_of_futures_drawn(family):
    model, n_paths = model_of(family, 2), 100_000
    X = np.array([[2.0], [4.0], [3.0]])
    ahead = model.forecast([X], n_steps=3, level=LEVEL)
    drawn = futures(family, model.filter(X)[-1], 3, n_paths, np.random.default_rng(1))
    weights = model.filter(X)[-1] @ np.linalg.matrix_power(TRANSMAT, 3)

    def below(value):
        return sum(weight * FAMILIES[family][1](k).cdf(value) for k, weight in enumerate(weights))

    for ends, probability in ((ahead.lower, ENDS[0]), (ahead.upper, ENDS[1])):
        if family == "poisson":  # the least count that is reached
            assert below(ends["x0"][0, 2]) >= probability > below(ends["x0"][0, 2] - 1)
        else:
            assert below(ends["x0"][0, 2]) == pytest.approx(probability, abs=1e-10)
    inside = ((drawn >= ahead.lower["x0"].T) & (drawn <= ahead.upper["x0"].T)).mean(axis=1)
    error = np.sqrt(LEVEL * (1 - LEVEL) / n_paths)
    if family == "poisson":
        assert (inside > LEVEL - 4 * error).all()
    else:
        np.testing.assert_allclose(inside, LEVEL, atol=4 * error)
    of_means = drawn.std(axis=1) / np.sqrt(n_paths)
    assert (abs(drawn.mean(axis=1) - ahead.expected["x0"][0]) < 4.5 * of_means).all()
    np.testing.assert_allclose(drawn.var(axis=1), ahead.variance["x0"][0], rtol=0.03)


def test_probabilities_of_categories_to_come_are_those_of_the_chain():
    tables = np.array([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6]])
    model = VBHMM.from_parameters(STARTPROB, TRANSMAT, {"probabilities": tables}, emission="categorical")
    X = np.array([[0], [2], [2]])
    ahead = model.forecast([X], n_steps=2)
    of_states = model.filter(X)[-1]
    for step in range(2):
        of_states = of_states @ TRANSMAT
        np.testing.assert_allclose(ahead.expected["x0"][0, step], of_states @ tables, rtol=1e-12)
    assert ahead.lower == {}
    told = ahead.to_frame()
    last = told[(told.column == "x0") & (told.step == 2)]
    assert last.category.tolist() == [0, 1, 2]
    np.testing.assert_allclose(last.expected, of_states @ tables, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_system_at_a_point_has_the_intervals_of_its_normal_distribution():
    walk = np.cumsum(np.random.default_rng(2).normal(size=(80, 1)), axis=0)
    model = VBLinearDynamicalSystem(1, method="ml", random_state=0, n_init=1, max_iter=40, tol=1.0).fit(walk)
    ahead = model.forecast(walk, 4, level=LEVEL)
    for ends, probability in ((ahead.lower, ENDS[0]), (ahead.upper, ENDS[1])):
        np.testing.assert_allclose(ends, stats.norm(ahead.mean, np.sqrt(ahead.variance)).ppf(probability), rtol=1e-9)
    assert ahead.to_frame().columns.tolist()[:3] == ["sequence", "step", "column"]
    assert ahead.to_frame().lower.tolist() == ahead.lower[0, :, 0].tolist()


# Skewed columns, zeros of their own, heavy tails, pairs: at level 0.9 and far out ---------------------------

SKEWED = {
    "gamma": (
        Gamma(),
        {"means": [[1.0], [9.0]], "shapes": [[0.7], [5.0]]},
        lambda k: stats.gamma([0.7, 5.0][k], scale=[1.0 / 0.7, 9.0 / 5.0][k]),
    ),
    "log_normal": (
        LogNormal(),
        {"log_means": [[0.0], [2.0]], "log_variances": [[2.0], [0.3]]},
        lambda k: stats.lognorm([2.0**0.5, 0.3**0.5][k], scale=np.exp([0.0, 2.0][k])),
    ),
    "student_t": (
        StudentT(df=1),
        {"means": [[0.0], [7.0]], "scales": [[[1.0]], [[4.0]]]},
        lambda k: stats.t(1, [0.0, 7.0][k], [1.0, 2.0][k]),
    ),
    "censored": (
        Censored(below=0.0),
        {"means": [[0.5], [7.0]], "covariances": [[1.0], [4.0]]},
        lambda k: stats.norm([0.5, 7.0][k], [1.0, 2.0][k]),
    ),
    "negative_binomial": (
        NegativeBinomial(),
        {"means": [[2.0], [11.0]], "sizes": [[0.4], [3.0]]},
        lambda k: stats.nbinom([0.4, 3.0][k], [0.4 / 2.4, 3 / 14][k]),
    ),
}


def mixture_ahead(model, X, n_steps):
    return model.filter(X)[-1] @ np.linalg.matrix_power(TRANSMAT, n_steps)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.9999])
@pytest.mark.parametrize("family", SKEWED)
def test_intervals_of_skewed_columns_are_quantiles_of_the_mixture(family, level):
    emission, parameters, of_state = SKEWED[family]
    model = VBHMM.from_parameters(STARTPROB, TRANSMAT, parameters, emission=emission)
    X = np.array([[1.0], [9.0], [4.0]])
    ahead = model.forecast([X], n_steps=2, level=level)
    weights = mixture_ahead(model, X, 2)

    def below(value):
        return sum(weight * of_state(k).cdf(value) for k, weight in enumerate(weights))

    for ends, probability in ((ahead.lower, 0.5 - level / 2), (ahead.upper, 0.5 + level / 2)):
        end = ends["x0"][0, 1]
        if emission.holds_counts:
            assert below(end) >= probability > below(end - 1)
        else:
            assert below(end) == pytest.approx(probability, abs=1e-10)


@pytest.mark.parametrize("base", ["poisson", "gamma"])
def test_zeros_of_their_own_are_ends_of_intervals(base):
    """By enumeration of counts; of a density the interval begins at 0 itself, or above, by the mass that is there."""
    of_base = {"poisson": {"rates": [[2.0], [9.5]]}, "gamma": {"means": [[1.0], [6.0]], "shapes": [[2.0], [9.0]]}}[base]
    inflation = np.array([0.6, 0.2])
    if "means" in of_base:  # of all cells
        of_base["means"] = (1 - inflation[:, None]) * np.array([[1.0], [6.0]])
    emission = ZeroInflated(Poisson() if base == "poisson" else Gamma())
    model = VBHMM.from_parameters(STARTPROB, TRANSMAT, {"inflation": inflation[:, None], **of_base}, emission=emission)
    X = np.array([[2.0], [4.0], [3.0]])
    weights = mixture_ahead(model, X, 3)
    zero = weights @ inflation
    for level in (0.2, 0.9, 1 - 2.2 * zero if base == "gamma" else 0.99):
        ahead = model.forecast([X], n_steps=3, level=level)
        ends = np.array([ahead.lower["x0"][0, 2], ahead.upper["x0"][0, 2]])
        if base == "poisson":
            counts = np.arange(60)
            probabilities = weights @ ((1 - inflation[:, None]) * stats.poisson([[2.0], [9.5]]).pmf(counts))
            probabilities[0] += zero
            reached = np.cumsum(probabilities)
            expected = [np.argmax(reached >= 0.5 + side * level / 2) for side in (-1, 1)]
            assert ends.tolist() == expected
            continue
        of_states = stats.gamma([2.0, 9.0], scale=[0.5, 6 / 9])
        for end, probability in zip(ends, (0.5 - level / 2, 0.5 + level / 2)):
            if probability <= zero:
                assert end == 0.0
            else:
                reached = zero + weights @ ((1 - inflation) * of_states.cdf(end))
                assert end > 0
                assert reached == pytest.approx(probability, abs=1e-10)


@pytest.mark.parametrize("unit", ["radians", "degrees"])
@pytest.mark.parametrize("turned", [0.0, 2.9, -1.3])
def test_intervals_of_angles_go_round_the_circle(unit, turned):
    """Each tail, from the opposite side on, by quadrature of the density; and turned with all directions."""
    turn = {"radians": 2 * np.pi, "degrees": 360.0}[unit]
    scale, means, concentrations = turn / (2 * np.pi), np.array([0.4, 1.9]) + turned, np.array([3.0, 0.8])
    parameters = {"means": means[:, None] * scale, "concentrations": concentrations[:, None]}
    model = VBHMM.from_parameters(STARTPROB, TRANSMAT, parameters, emission=VonMises(unit=unit))
    X = (np.array([[0.2], [1.0], [2.5]]) + turned) * scale
    ahead = model.forecast([X], n_steps=2, level=LEVEL)
    weights = mixture_ahead(model, X, 2)
    center = ahead.expected["x0"][0, 1] / scale
    nodes, node_weights = np.polynomial.legendre.leggauss(200)

    def mass(low, high):
        angles = (low + high) / 2 + (high - low) / 2 * nodes
        density = weights @ stats.vonmises(concentrations[:, None], means[:, None]).pdf(angles)
        return (high - low) / 2 * node_weights @ density

    low, high = ahead.lower["x0"][0, 1] / scale, ahead.upper["x0"][0, 1] / scale
    assert center - np.pi < low < center < high < center + np.pi
    assert mass(center - np.pi, low) == pytest.approx(ENDS[0], abs=1e-10)
    assert mass(high, center + np.pi) == pytest.approx(ENDS[0], abs=1e-10)
    assert "x0" not in ahead.variance


def test_both_columns_of_a_pair_have_the_interval_of_the_measurement():
    parameters = {"means": [[0.5], [7.0]], "covariances": [[1.0], [4.0]]}
    pairs = VBHMM.from_parameters(STARTPROB, TRANSMAT, parameters, emission=Interval(), columns=["low", "high"])
    X = pytest.importorskip("pandas").DataFrame({"low": [0.0, 6.0], "high": [0.0, 6.0]})
    points = VBHMM.from_parameters(STARTPROB, TRANSMAT, parameters, emission=Gaussian("diag"))
    ahead, expected = pairs.forecast([X], 2, level=LEVEL), points.forecast([X[["low"]].to_numpy()], 2, level=LEVEL)
    for name in ("low", "high"):
        np.testing.assert_allclose(ahead.lower[name], expected.lower["x0"], rtol=1e-9)
        np.testing.assert_allclose(ahead.upper[name], expected.upper["x0"], rtol=1e-9)


def test_intervals_are_of_the_average_over_draws_of_parameters(rng):
    """Beside values drawn, each at a draw of its own: of angles, of zeros of their own, and of numbers with tails."""
    n = 40
    X = np.column_stack([rng.vonmises(3.0, 2.0, n), np.where(rng.random(n) < 0.3, 0, rng.poisson(4.0, n))])
    emission = [("turn", VonMises(), [0]), ("count", ZeroInflated(), [1])]
    model = VBHMM(2, emission=emission, n_init=2, n_draws=20, predictive="average", random_state=0).fit(X)
    ahead = model.forecast([X], 2, level=LEVEL)
    fitted, draws = model._fitted_, model._fitted_.draws(20, model._fitted_.rng_of_draws)
    inside = []
    for natural in draws.T:
        drawn = fitted.at(natural)
        at = VBHMM.from_parameters(
            drawn.startprob, drawn.transmat,
            {name: {k: v for k, v in of.items() if k not in ("means", "deviations") or name == "turn"}
             for name, of in zip(("turn", "count"), drawn.parameters())},
            emission=emission, columns=2,
        )  # fmt: skip
        of_states = at.filter(X)[-1] @ np.linalg.matrix_power(drawn.transmat, 2)
        turns, counts = drawn.parameters()
        low, high, center = (each["x0"][0, 1] for each in (ahead.lower, ahead.upper, ahead.expected))
        angles = stats.vonmises(turns["concentrations"][:, 0], turns["means"][:, 0])
        of_count = [
            counts["inflation"][:, 0] * (end >= 0)
            + (1 - counts["inflation"][:, 0]) * stats.poisson(counts["rates"][:, 0]).cdf(end)
            for end in (ahead.lower["x1"][0, 1], ahead.lower["x1"][0, 1] - 1)
        ]
        inside.append(
            [
                of_states @ (angles.cdf(low) - angles.cdf(center - np.pi)),
                of_states @ (angles.cdf(high) - angles.cdf(low)),
            ]
            + [of_states @ each for each in of_count]
        )
    before, within, reached, less = np.mean(inside, axis=0)
    assert before == pytest.approx(0.05, abs=1e-9)
    assert within == pytest.approx(0.9, abs=1e-9)
    assert reached >= 0.05 > less
