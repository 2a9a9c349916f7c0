"""Bridge sampling between linear response and Gibbs chains, against sums, other samplers, and its own traps."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction import evidence_calibration

from skvbem import VBHMM, VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma
from skvbem.emissions import FactorGaussian
from skvbem.errors import EvidenceWarning
from skvbem.evidence import bridge_sampling as scores
from skvbem.evidence.bridge_sampling import _around, mixed_statistics
from skvbem.evidence.linear_response import LinearResponse, responses_at_optima
from skvbem.evidence.quotient import QuotientProposal, UnconstrainedCoordinates, is_near_normal
from skvbem.families import Dirichlet
from skvbem.fitting.evaluation import evaluation_of

KNOWN = evidence_calibration.put_together([line for line in evidence_calibration.record() if "reference" in line])
TINY = [evidence_calibration.tiny(kind, number) for kind in evidence_calibration.KINDS for number in range(4)]


def deviation(evidence, known):
    return (evidence.value - known) / evidence.standard_error


def test_errors_are_those_that_sums_show():
    """Tiny classes, networks of two latents, mixtures and chains, whose evidences are sums; of three seeds each."""
    z = []
    for problem, seed in product(TINY, (100, 101, 102)):
        found = problem.fitted(seed).log_evidence(problem.X, kind="bridge")
        assert found.standard_error < 0.15
        assert not found.doubts
        z.append(deviation(found, KNOWN[problem.name][0]))
    assert np.mean(np.abs(z) <= 2) >= 0.89
    assert abs(np.mean(z)) < 0.35
    assert 0.8 < np.std(z) < 1.25


def test_the_first_step_of_auto_answers_what_is_easy():
    problem = TINY[0]
    found = problem.fitted(0).log_evidence(problem.X, kind="auto", exact_terms=0)
    alone = problem.fitted(0).log_evidence(problem.X, kind="bridge")
    assert found.details["taken"] == ("bridge",)
    assert (found.value, found.standard_error, found.kind) == (alone.value, alone.standard_error, "auto")


def test_more_chains_and_draws_make_errors_smaller():
    X = load_carcinoma().data
    model = VBDiscreteDAG(latents=3, random_state=0).fit(X)
    one = model.log_evidence(X, kind="bridge")
    four = model.log_evidence(X, kind="bridge", **scores.LONGER_CHAINS)
    assert four.standard_error < 0.75 * one.standard_error
    assert deviation(four, -351.01) < 3
    for each in (one, four):
        assert each.standard_error == pytest.approx(np.hypot(each.details["draws_error"], each.details["chains_error"]))


def problem_of_three(kind):
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(size=(25, 2)), rng.normal(size=(25, 2)) + 3])
    if kind == "hidden hyperparameters":
        return VBMixture(2, random_state=0), X
    if kind == "factors":
        return VBMixture(2, emission=FactorGaussian(1), random_state=0), X
    return VBHMM(2, random_state=0), X


@pytest.mark.parametrize("kind", ["hidden hyperparameters", "factors", "chain"])
def test_it_agrees_with_importance_sampling(kind):
    """Where hyperparameters are hidden, rows hide numbers, or rows follow each other."""
    estimator, X = problem_of_three(kind)
    model = estimator.fit(X)
    bridged = model.log_evidence(X, kind="bridge")
    drawn = model.log_evidence(X, kind="importance_gibbs", n_draws=4096, n_completions=256)
    assert bridged.standard_error < 0.2
    error = np.hypot(bridged.standard_error, drawn.standard_error)
    assert abs(bridged.value - drawn.value) < 3 * error


def test_complete_data_have_one_weight(rng):
    X = rng.integers(0, 2, size=(30, 3))
    model = VBDiscreteDAG({"x1": ["x0"]}, random_state=0).fit(X)
    for kind in ("bridge", "linear_response"):
        assert model.log_evidence(X, kind=kind).value == pytest.approx(model.lower_bound_, abs=1e-8)


# ------------------------------------------------------------------------------------------------- the proposal


def response_of(estimator, X):
    evaluation = evaluation_of(estimator.fit(X), X)
    return evaluation, LinearResponse.of(evaluation.model, evaluation.data, evaluation.fit("vb").statistics)


def test_statistics_vary_so_that_parameters_do_as_linear_response_says(rng):
    """A mixture over statistics of covariance C has V + V C V as its covariance, to first order."""
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 2])
    _, response = response_of(VBMixture(2, random_state=0, tol=1e-9), X)
    v = response.root @ response.root.T
    spread = np.sqrt(np.diag(v))
    mixed = v + v @ response.covariance_of_statistics @ v
    difference = (mixed - response.covariance) / np.outer(spread, spread)
    assert np.abs(difference).max() < 0.01 * np.abs(response.covariance / np.outer(spread, spread)).max()


def test_components_have_the_covariance_of_completed_counts():
    """So many rows that no count is cut: 1.2 times as wide, of which .8 are kept."""
    rng = np.random.default_rng(0)
    group = rng.random(4000) < 0.4
    X = (rng.random((4000, 4)) < np.where(group, 0.8, 0.3)[:, None]).astype(int)
    evaluation, response = response_of(VBDiscreteDAG(latents=2, random_state=0), X)
    responses, certain = responses_at_optima(evaluation), np.zeros(len(response.statistics))
    drawn = mixed_statistics(responses, evaluation.model.prior, certain, 20_000, rng)
    expected = (0.8 * 1.2) ** 2 * response.covariance_of_statistics
    scale = np.sqrt(np.diag(expected))
    assert np.abs((np.cov(drawn.T) - expected) / np.outer(scale, scale)).max() < 0.05
    assert np.abs((drawn.mean(axis=0) - 0.8 * response.statistics) / scale).max() < 0.05


def test_components_are_densities():
    """Of few rows in many dimensions, where normal scatter matrices need not be positive."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(14, 4))
    model = VBMixture(2, random_state=0).fit(X)
    evaluation = evaluation_of(model, X)
    prior, n = evaluation.model.prior, len(evaluation.fit("vb").statistics)
    drawn = mixed_statistics(responses_at_optima(evaluation), prior, np.zeros(n), 200, rng).T
    assert (prior + drawn).is_valid.all()
    assert np.isfinite(prior.log_evidence(drawn)).all()


def test_draws_end_where_the_fit_itself_is_no_density():
    """They have what is certain then; and so do draws that are no numbers."""
    prior, certain, rng = Dirichlet.from_rows([[1.0, 1.0]]), np.array([2.0, 0.0]), np.random.default_rng(0)
    for statistics in ([5.0, -7.0], [5.0, np.nan]):
        response = SimpleNamespace(covariance_of_statistics=np.eye(2), statistics=np.array(statistics))
        drawn = _around(response, prior, certain, 3, rng)
        np.testing.assert_array_equal(drawn, np.tile(certain, (3, 1)))
    response.statistics = np.array([5.0, 1.0])
    drawn = _around(response, prior, certain, 300, rng)
    assert (drawn != certain).any(axis=1).mean() > 0.95
    assert (drawn >= 0).all()


# ---------------------------------------------------------------------------------------------------- the traps


def test_a_hill_that_fit_and_chains_miss_is_not_undoubted():
    """Six clusters far apart and fits from one start: bad optima, which chains do not leave in so few sweeps."""
    rng = np.random.default_rng(1)
    angles = np.repeat(np.arange(6), 25) * np.pi / 3
    X = rng.normal(size=(150, 2)) + 8 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    right = VBMixture(6, random_state=0).fit(X).log_evidence(X, kind="bridge", n_components=32)
    assert not right.doubts
    for seed in (2, 3):
        missed = VBMixture(6, n_init=1, random_state=seed).fit(X)
        for more in ({}, {"burn_in": 100, "n_chains": 32}):
            with pytest.warns(EvidenceWarning):
                found = missed.log_evidence(X, kind="bridge", n_components=32, **more)
            assert found.value < right.value - 20
            assert found.doubts


@pytest.mark.parametrize("n_states", [5, 6])
def test_many_relabelings_are_counted(n_states):
    """5! and 6! of few rows, whose evidence is a sum."""
    rng = np.random.default_rng(n_states)
    X = rng.integers(0, 2, size=(7, 3))
    model = VBDiscreteDAG(latents=n_states, random_state=0).fit(X)
    found = model.log_evidence(X, kind="bridge")
    assert found.details["n_relabelings"] == (120 if n_states == 5 else 720)
    assert abs(deviation(found, model.log_evidence(X, kind="exact").value)) < 3


def test_sums_over_relabelings_that_take_long_have_fewer_components(monkeypatch):
    X = load_carcinoma().data
    model = VBDiscreteDAG(latents=3, random_state=0).fit(X)
    monkeypatch.setattr(scores, "TUNING", replace(scores.TUNING, bridge_operations=1e7))
    found = model.log_evidence(X, kind="bridge")
    assert found.details["n_components"] < 128
    assert abs(deviation(found, -351.01)) < 3


# ---------------------------------------------------------------------------------------------------- many rows


def two_latents():
    """A network of four relabelings, and 8000 rows that are in doubt."""
    rng = np.random.default_rng(3)
    s, t = rng.random((2, 8000)) < np.array([[0.5], [0.4]])
    likely = [np.where(a, 0.8, 0.25) for a in (s, s, t, t)] + [np.where(s, 0.3, 0.9), np.where(t, 0.6, 0.1)]
    X = (rng.random((6, 8000)) < likely).astype(int).T
    structure = dict(zip(["x0", "x1", "x2", "x3", "x4", "x5"], [["s"], ["s"], ["t"], ["t"], ["s"], ["t"]]))
    return VBDiscreteDAG(structure, latents={"s": 2, "t": 2}, random_state=0).fit(X), X


def test_many_rows_have_a_proposal_as_wide_as_their_posterior(monkeypatch):
    """Of completed counts a mixture is too thin; the values of seeds are as far from the truth as they say."""
    model, X = two_latents()
    known, error = evidence_calibration.about_mode(model, X, 4096, 30.0)
    runs = [model.log_evidence(X, kind="bridge", random_state=seed) for seed in range(12)]
    assert {(run.details["n_components"], run.details["n_relabelings"]) for run in runs} == {(1, 4)}
    z = np.array([(run.value - known) / np.hypot(run.standard_error, error) for run in runs])
    assert abs(z.mean()) < 0.8
    assert 0.5 < z.std() < 1.5
    monkeypatch.setattr(scores, "is_near_normal", lambda *_: False)
    completed = model.log_evidence(X, kind="bridge")
    assert completed.details["n_components"] > 100
    assert max(run.standard_error for run in runs) < min(0.06, 0.6 * completed.standard_error)


@pytest.mark.parametrize(("n", "n_components"), [(100, 2), (2000, 3)])
def test_a_posterior_of_few_rows_is_not_taken_for_normal(n, n_components):
    """Neither of all rows nor of those of one component, which 2000 rows of two clumps leave without any."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 1)) + 5.0 * (rng.random((n, 1)) < 0.5)
    evaluation = evaluation_of(VBMixture(n_components, random_state=0).fit(X), X)
    assert not is_near_normal(evaluation, responses_at_optima(evaluation))


def test_chains_begin_at_the_points_they_get():
    """At the other order of two clumps, from which no sweep leads back."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 1)) + 6.0 * (rng.random((500, 1)) < 0.4)
    evaluation = evaluation_of(VBMixture(2, random_state=0).fit(X), X)
    statistics = np.repeat(evaluation.fit("vb").statistics[:, None], 3, axis=1)
    points = evaluation.capability("points").draw_points(statistics, evaluation.streams(3, 99))
    other_order = points[evaluation.capability("relabelings").listed_relabelings(evaluation.hidden, 2)[1]]
    kept = scores.posterior_chains(evaluation, statistics, (5,), other_order)
    assert np.all(np.linalg.norm(kept - other_order, axis=0) < 0.5 * np.linalg.norm(kept - points, axis=0))


def test_chains_of_many_rows_begin_at_draws_in_proportion_to_their_weights(monkeypatch):
    """So they are draws of the posterior, nearly, from the first on."""
    model, X = two_latents()
    evaluation, begun = evaluation_of(model, X), []

    def chains(evaluation, statistics, sweeps, log_points):
        begun.append(log_points)
        return posterior_chains(evaluation, statistics, sweeps, log_points)

    posterior_chains = scores.posterior_chains
    monkeypatch.setattr(scores, "posterior_chains", chains)
    scores.bridge_sampling(evaluation, n_chains=64)
    responses = responses_at_optima(evaluation)
    proposal = QuotientProposal.of(evaluation, responses, UnconstrainedCoordinates(evaluation))
    at_first = proposal.log_weights_of_posterior(begun[0], slice(0, 64))
    assert at_first.mean() > proposal.log_weights_of_draws(slice(0, 512)).mean() + 0.5
    assert len(np.unique(begun[0], axis=1).T) > 32
