"""Intervals of forecasts at known parameters: closed forms for one state, the definition for two, simulated futures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skvbem import VBHMM, VBLinearDynamicalSystem

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
