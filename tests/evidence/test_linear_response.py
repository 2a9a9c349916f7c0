"""Linear response against fits under a moved prior, and closed forms of covariances."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from laws.models import MODELS
from reproduction.interval_coverage import PROBLEMS
from scipy.special import polygamma
from sklearn.exceptions import ConvergenceWarning

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBMixture, datasets
from skvbem.emissions import FactorGaussian, Gamma, Gaussian, Poisson, VonMises
from skvbem.errors import NoLinearResponseError
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.linear_response import (
    LinearResponse,
    LinearResponses,
    bounds_of,
    covariance_of_hidden,
    covariance_of_natural,
)
from skvbem.families import Dirichlet, Product
from skvbem.families import Gamma as GammaPrior
from skvbem.families.hierarchical import Hierarchical
from skvbem.fitting.evaluation import evaluation_of
from skvbem.vbem import posteriors
from skvbem.vbem.driver import run

approx = pytest.approx


def under_q_of(response):
    """The covariance of natural parameters under q(theta), (n_cells, n_cells)."""
    return response.root @ response.root.T


def moved(prior, by):
    """A prior whose natural parameters are larger by so much."""
    if isinstance(prior, Product):
        parts = zip(prior.blocks, prior.split(by))
        return Product(tuple(moved(block, of_block) for block, of_block in parts), prior.n_cells)
    if isinstance(prior, Hierarchical):
        return replace(prior, base=prior.base + by)
    return prior + by


def fixed_point(model, data, statistics, slopes):
    """Statistics that a step leaves as they are, to the last digits: by steps of Newton with slopes of a step."""
    for _ in range(60):
        natural = (model.prior + statistics).expected_natural()
        step = model.expect(natural[:, None], data).statistics[:, 0] + model.prior.hyperparameters(natural) - statistics
        if np.abs(step).max() < 1e-12 * np.abs(statistics).max():
            break
        statistics = statistics + np.linalg.solve(np.eye(len(step)) - slopes, step)
    assert np.abs(step).max() < 1e-11 * np.abs(statistics).max()
    return statistics


def check_against_moved_priors(model, data, start, rng, rel=1e-6, size=1e-3):
    """Covariances along random directions are derivatives of expectations by the prior, in four fits each.

    How fits are found hangs on the code that is tested; that they are fits does not.
    """
    posterior = model.prior + start
    spread = np.sqrt(np.diag(under_q_of(LinearResponse.of(model, data, start))))
    under_q = covariance_of_natural(posterior, spread)
    slopes = covariance_of_hidden(model, data, posterior.expected_natural(), spread) @ under_q
    statistics = fixed_point(model, data, start, slopes)
    response = LinearResponse.of(model, data, statistics)
    moves = spread > 0
    unit = np.where(moves, spread, 1.0)
    for _ in range(2):
        direction = np.where(moves, rng.normal(size=len(spread)) / unit, 0.0)
        h, values = size / np.sqrt(moves.sum()), []
        for times in (-2, -1, 1, 2):
            other = model.with_prior(moved(model.prior, times * h * direction))
            values.append((other.prior + fixed_point(other, data, statistics, slopes)).expected_natural())
        a, b, c, d = (value[moves] for value in values)
        derivatives = (8 * (c - b) - (d - a)) / (12 * h) / unit[moves]
        answers = (response.covariance @ direction / unit)[moves]
        assert answers == approx(derivatives, abs=rel * np.abs(derivatives).max())
    return response


@pytest.mark.parametrize("name", MODELS)
def test_covariances_are_derivatives_by_the_prior(name, rng):
    # factors may turn, along which the bound hardly falls: linear response is refused there
    instance = MODELS[name].alike(rng, 1) if name.endswith("factor") else MODELS[name].dozens(rng, 1)
    data = instance.compile(weight=rng.uniform(0.5, 2.0, instance.n_units))
    starts = instance.random_starts(data, rng, 4)
    ran = run(instance.ascent(instance.model, data, posteriors.VB), starts, tol=1e-9, max_iter=20_000)
    start = ran.statistics[:, ran.best]
    # turns of states, and scales of slopes on hidden numbers, are nearly free: expectations bend within a shorter way
    size = 1e-4 if name in ("linear dynamical system", "network of latent numbers") else 1e-3
    check_against_moved_priors(instance.model, data, start, rng, size=size)


@pytest.mark.parametrize("kind", [VBMixture, VBHMM])
def test_no_likelihood_tells_turns(kind, rng):
    """Of three planes in a group of three factors, and of a single one in another group, for each of two components."""
    X = rng.normal(size=(40, 7))
    X[rng.random(X.shape) < 0.1] = np.nan
    groups = [
        ("three", FactorGaussian(3), [0, 1, 2, 3]),
        ("counts", Gaussian(), [4]),
        ("one", FactorGaussian(2), [5, 6]),
    ]
    model = kind(2, emission=groups, n_init=1, max_iter=2, tol=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        evaluation = evaluation_of(model.fit(X), X)
    model, natural = evaluation.model, (evaluation.model.prior + evaluation.fit("vb").statistics).expected_natural()
    turns = model.rotation_tangents(natural)
    assert turns.shape[1] == 2 * (3 + 1)
    assert np.linalg.matrix_rank(turns) == 8
    along, across = [], []
    for turn in turns.T / np.linalg.norm(turns, axis=0)[:, None]:
        for direction, changes in ((turn, along), (np.where(turn != 0, rng.permuted(turn), 0.0), across)):
            ends = natural[:, None] + 1e-5 * np.array([-1.0, 1.0]) * direction[:, None]
            changes.append(np.ptp(model.expect(ends, evaluation.data).log_normalizer))
    assert max(along) < 1e-6 * max(across)


def test_what_no_turn_changes_varies_as_much_as_in_draws(rng):
    """Draws that follow a turn along a line have far larger loadings, and smaller uniquenesses."""
    X = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 6)) + rng.normal(size=(150, 6))
    model = VBFactorAnalysis(
        2, rotation="varimax", noise_prior=(1.0, 0.5), mean_precision_prior=1.0, random_state=0
    ).fit(X)
    by_draws, by_response = (
        model.sample_posterior(X, 400, method=method).parameters["factor"] for method in ("draws", "linear_response")
    )
    for name in ("uniquenesses", "loadings"):
        exact, found = by_draws[name], by_response[name]
        assert np.abs(found.mean(axis=0) - exact.mean(axis=0)).max() < 0.3 * exact.std(axis=0).max()
        assert found.std(axis=0).mean() == approx(exact.std(axis=0).mean(), rel=0.15)


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "chain"])
def test_hidden_hyperparameters_take_part(kind, rng):
    group = rng.integers(0, 2, size=60)
    learned = {
        "gaussian": Gaussian(covariance_prior="hierarchical", mean_precision_prior="hierarchical"),
        "poisson": Poisson(rate_prior="hierarchical"),
        "chain": Poisson(rate_prior="hierarchical"),
    }[kind]
    X = rng.poisson(2 + 9.0 * group)[:, None]
    if kind == "gaussian":
        X = rng.normal(4.0 * group[:, None], 1.0, size=(60, 2))
    estimator = (VBHMM if kind == "chain" else VBMixture)(2, emission=learned, random_state=0, tol=1e-9).fit(X)
    evaluation = evaluation_of(estimator, X)
    response = check_against_moved_priors(evaluation.model, evaluation.data, evaluation.fit("vb").statistics, rng)
    known = evaluation.model.prior.given_hyperparameters(evaluation.model.prior.hyperparameters(
        response.posterior.expected_natural()))  # fmt: skip
    without = LinearResponse.of(
        evaluation.model.with_prior(known),
        evaluation.data,
        response.posterior.statistics_above(known),
    )
    ratio = np.diag(response.covariance) / np.diag(without.covariance)
    assert (ratio >= 1 - 1e-6).all()
    assert ratio.max() > 1.001


def test_the_covariance_of_logarithms_is_that_of_trigamma_functions(rng):
    concentration = np.array([0.02, 1.0, 30.0, 4.0, 1e4, 2.5])
    family = Dirichlet(concentration, np.array([0, 3, 4, 6]))
    expected = np.diag(polygamma(1, concentration))
    for rows in (slice(0, 3), slice(3, 4), slice(4, 6)):
        expected[rows, rows] -= polygamma(1, concentration[rows].sum())
    spread = np.sqrt(np.diag(expected).clip(min=0))
    computed = covariance_of_natural(family, spread)
    scale = np.outer(*[np.where(spread > 0, spread, 1.0)] * 2)
    assert computed / scale == approx(expected / scale, abs=1e-9)
    assert computed[3].tolist() == [0.0] * 6  # of one cell: a probability of 1


def test_where_nothing_is_hidden_linear_response_is_the_posterior(rng):
    X = rng.poisson(3, size=(30, 1))
    model = VBMixture(1, emission="poisson", random_state=0).fit(X)
    evaluation = evaluation_of(model, X)
    response = LinearResponse.of(evaluation.model, evaluation.data, evaluation.fit("vb").statistics)
    assert response.covariance == approx(under_q_of(response), rel=1e-9)
    rates = response.posterior.blocks[1]
    assert isinstance(rates, GammaPrior)
    drawn = model.sample_posterior(X, 20_000, method="linear_response").parameters["poisson"]["rates"]
    low, high = model.credible_intervals(level=0.9, method="vb")["poisson"]["rates"]
    assert np.quantile(drawn, [0.05, 0.95]) == approx([low[0, 0], high[0, 0]], rel=0.01)


def test_draws_have_the_covariance_of_a_function_of_the_parameters(rng):
    """Log odds are linear in natural parameters; their covariance is exact, but for the number of draws."""
    group = rng.random(200) < 0.4
    X = (rng.random((200, 4)) < np.where(group, 0.85, 0.2)[:, None]).astype(int)
    model = VBMixture(2, emission="bernoulli", random_state=0, tol=1e-9).fit(X)
    evaluation = evaluation_of(model, X)
    response = LinearResponse.of(evaluation.model, evaluation.data, evaluation.fit("vb").statistics)
    natural = response.draws(40_000, np.random.default_rng(0))
    contrast = np.zeros(len(natural))
    contrast[:2] = 1, -1
    expected = contrast @ response.covariance @ contrast
    assert (contrast @ natural).var() == approx(expected, rel=0.03)
    assert expected > 1.3 * contrast @ under_q_of(response) @ contrast


def test_a_saddle_is_refused(rng):
    """All components alike: an E step stays there, and any change of the prior leads away."""
    group = rng.integers(0, 2, size=200)
    X = (rng.random((200, 4)) < np.where(group, 0.95, 0.05)[:, None]).astype(int)
    model = VBMixture(2, emission="bernoulli", n_init=2, random_state=0).fit(X)
    evaluation = evaluation_of(model, X)
    even = evaluation.model.expect(np.zeros((evaluation.model.n_cells, 1)), evaluation.data).statistics[:, 0]
    with pytest.raises(NoLinearResponseError, match="needs a fit at a maximum of the lower bound"):
        LinearResponse.of(evaluation.model, evaluation.data, even)


@pytest.mark.parametrize("emission", [VonMises(), Gamma()])
def test_components_without_a_row_stay_as_under_q(emission, rng):
    """A concentration of which nothing is known has no second moment in sight; others have intervals all the same."""
    X = np.abs(rng.vonmises(0.6, 4.0, size=(200, 1)))
    model = VBMixture(3, emission=emission, weight_concentration_prior=0.01, random_state=0).fit(X)
    full = model.weights_.argmax()
    intervals = model.credible_intervals(X, method="linear_response")
    of_column = intervals["gamma" if isinstance(emission, Gamma) else "von_mises"]
    assert all(np.isfinite(each).all() for each in of_column.values())
    alone = VBMixture(1, emission=emission, random_state=0).fit(X)
    of_one = alone.credible_intervals(X, method="draws")[next(name for name in intervals if name != "mixture")]
    for name, (low, high) in of_column.items():
        lower, upper = (each.item() for each in of_one[name])
        assert low[full].item() < (lower + upper) / 2 < high[full].item()
        assert high[full].item() - low[full].item() < 4 * (upper - lower)
    evaluation = evaluation_of(model, X)
    response = LinearResponse.of(evaluation.model, evaluation.data, evaluation.fit("vb").statistics)
    deviations = np.sqrt(np.diag(response.covariance))
    assert deviations[3:].max() < 100  # nats; the concentration's own is of thousands


def test_weights_below_all_floats_are_refused(rng):
    X = rng.normal(size=(40, 1))
    model = VBMixture(3, weight_concentration_prior=1e-6, random_state=0).fit(X)
    with pytest.raises(NoLinearResponseError, match="most draws of this posterior hold smaller ones"):
        model.credible_intervals(X, method="linear_response")


@pytest.mark.parametrize("seed", range(3))
def test_it_says_how_far_the_evidence_is_above_the_bound(seed):
    """Of two overlapping classes of many rows, whose posterior is nearly normal but for the names of classes."""
    rng = np.random.default_rng(seed)
    group = rng.random(2000) < 0.4
    X = (rng.random((2000, 4)) < np.where(group, 0.8, 0.3)[:, None]).astype(int)
    model = VBDiscreteDAG(latents=2, random_state=0, tol=1e-8).fit(X)
    evaluation = evaluation_of(model, X)
    response = LinearResponse.of(evaluation.model, evaluation.data, evaluation.fit("vb").statistics)
    sampled = model.log_evidence(X, kind="auto", error=0.01)
    assert model.lower_bound_ + response.above_the_bound + np.log(2) == approx(float(sampled), abs=0.04)
    assert response.above_the_bound > 2


def fitted_by(name, seed):
    """2 000 rows drawn from a problem's prior, and a fit that leaves a component empty."""
    problem = PROBLEMS[name]
    rng = np.random.default_rng([20261123, list(PROBLEMS).index(name), 2000, seed])
    X = problem.rows(problem.truth(rng), 2000, rng)
    return X, problem.fitted(X, seed)


@pytest.mark.parametrize("seed", [4, 45, 51])
def test_optima_have_their_shares_of_the_posterior(seed):
    """How probable is it that a class has hardly any row? Exact draws say so, and bounds are wrong."""
    X, model = fitted_by("classes, K = 3", seed)
    drawn = {}
    for method in ("draws", "linear_response"):
        weights = model.sample_posterior(X, 2000, method=method).parameters["tables"]["h0"]
        drawn[method] = np.mean(weights.min(axis=1) < 0.005)
    evaluation = evaluation_of(model, X)
    bounds = bounds_of(evaluation.model, evaluation.data, evaluation.ended_optima())
    assert 1 / np.exp(bounds - bounds[0]).sum() > 0.5
    assert drawn["linear_response"] == approx(drawn["draws"], abs=0.06)


def test_draws_of_other_optima_have_the_labels_of_the_fit(monkeypatch):
    """However the classes of another optimum are called."""
    X, model = fitted_by("classes, K = 3", 45)
    evaluation = evaluation_of(model, X)
    best, other = evaluation.ended_optima()[:, :2].T
    drawn = []
    for cells in evaluation.capabilities.relabelings.listed_relabelings(evaluation.hidden, 6):
        optima = np.column_stack([best, other[cells]])
        monkeypatch.setattr(Evaluation, "ended_optima", lambda _, optima=optima: optima)
        weights = model.sample_posterior(X, 500, method="linear_response").parameters["tables"]["h0"]
        drawn.append(np.median(weights, axis=0))
        small = weights.min(axis=1) > 0.005
        assert small.mean() > 0.5
        assert small[:250].mean() == approx(small[250:].mean(), abs=0.1)  # in any order
    assert len(drawn) == 6
    assert np.ptp(drawn, axis=0).max() < 0.02


def test_other_optima_that_are_saddles_are_passed_over(rng):
    group = rng.integers(0, 2, size=200)
    X = (rng.random((200, 4)) < np.where(group, 0.95, 0.05)[:, None]).astype(int)
    evaluation = evaluation_of(VBMixture(2, emission="bernoulli", n_init=2, random_state=0).fit(X), X)
    model, data = evaluation.model, evaluation.data
    even = model.expect(np.zeros((model.n_cells, 1)), data).statistics
    points = np.column_stack([evaluation.fit("vb").statistics, even])
    responses = LinearResponses.of(model, data, points, bounds_of(model, data, points))
    assert responses.weights.tolist() == [1.0]
    alone = LinearResponse.of(model, data, points[:, 0]).draws(50, np.random.default_rng(0))
    assert (responses.draws(50, np.random.default_rng(0)) == alone).all()
    with pytest.raises(ValueError, match="at a saddle"):
        LinearResponses.of(model, data, points[:, ::-1], np.zeros(2))


def test_draws_have_the_labels_that_the_fit_published():
    """States of this chain, of which one optimum is kept, changed their places after the fit."""
    X = datasets.load_earthquakes().data
    model = VBHMM(3, emission="poisson", random_state=0).fit(X)
    evaluation = evaluation_of(model, X)
    assert evaluation.ended_optima().shape[1] == 1
    rates = model.sample_posterior(X, 2000, method="linear_response").parameters["poisson"]["rates"]
    assert np.median(rates, axis=0) == approx(model.parameters_["poisson"]["rates"], rel=0.05)
