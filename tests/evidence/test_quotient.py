"""Evidence where the posterior lies on orbits of rotations, against means over draws from the prior."""

from contextlib import nullcontext
from math import factorial

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.datasets import load_iris

from skvbem import VBFactorAnalysis, VBMixture
from skvbem.emissions import FactorGaussian
from skvbem.errors import EvidenceWarning
from skvbem.evidence.bridge_sampling import LONGER_UP_TO_TURNS
from skvbem.fitting.evaluation import evaluation_of

KNOWN = {"noise_prior": (1.0, 0.5), "mean_precision_prior": 1.0}


def small_table(n_rows, n_columns, seed=1):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def simulated(n_rows, n_columns, n_factors, seed=0):
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(n_columns, n_factors))
    noise = rng.normal(size=(n_rows, n_columns)) * np.sqrt(rng.uniform(0.3, 1.5, size=n_columns))
    return rng.normal(size=(n_rows, n_factors)) @ loadings.T + noise


def mean_likelihood(model, X, n_draws=100_000):
    """ln of the mean of p(data | theta) over draws from the prior, and its standard error."""
    evaluation, rng = evaluation_of(model, X), np.random.default_rng(0)
    points, logs = evaluation.capabilities.points, []
    for _ in range(n_draws // 10_000):
        streams = rng.integers(0, 2**64, size=(4, 10_000), dtype=np.uint64)
        drawn = points.draw_points(np.zeros((evaluation.model.n_cells, 10_000)), streams)
        logs.append(points.log_likelihoods(evaluation.few_rows, drawn))
    logs = np.concatenate(logs)
    weights = np.exp(logs - logs.max())
    return np.log(weights.mean()) + logs.max(), weights.std() / weights.mean() / np.sqrt(n_draws)


@pytest.mark.parametrize(
    ("n_factors", "options"),
    [(1, KNOWN), (2, KNOWN), (2, {}), (3, KNOWN), (4, KNOWN), (2, {"noise": "spherical", **KNOWN})],
)
def test_bridges_up_to_turns_meet_the_mean_likelihood_of_the_prior(n_factors, options):
    """Four factors of three columns are more than rows of loadings have room for."""
    X = small_table(4, 3)
    with pytest.warns() if n_factors > 3 else nullcontext():
        model = VBFactorAnalysis(n_factors, random_state=0, **options).fit(X)
    reference, error = mean_likelihood(model, X)
    evidence = model.log_evidence(X, kind="bridge", n_chains=32, n_kept=32, random_state=0)
    assert abs(evidence.value - reference) < 3.5 * np.hypot(error, evidence.standard_error)
    assert np.hypot(error, evidence.standard_error) < 0.1


@pytest.mark.parametrize(
    ("n_components", "emission"),
    [(2, FactorGaussian(2)), (3, FactorGaussian(2, tied=True, **KNOWN))],
)
def test_mixtures_meet_the_mean_likelihood_of_the_prior_in_all_orders_of_their_components(n_components, emission):
    X = small_table(4, 3)
    model = VBMixture(n_components, emission=emission, random_state=0).fit(X)
    reference, error = mean_likelihood(model, X, 40_000)
    evidence = model.log_evidence(X, kind="bridge", n_chains=32, n_kept=32, random_state=0)
    assert abs(evidence.value - reference) < 3.0 * np.hypot(error, evidence.standard_error)
    assert np.hypot(error, evidence.standard_error) < 0.15
    assert evidence.details["n_relabelings"] == factorial(n_components)


def test_clumps_that_lie_apart_have_the_evidence_of_each():
    """Times the evidence of their labels, and the number of orders of these; a scale of noises is each clump's own."""
    rng, n, d = np.random.default_rng(0), 40, 5
    clumps = [(Y - Y.mean(axis=0)) / Y.std(axis=0) for Y in (simulated(n, d, 1, seed) for seed in (1, 2))]
    X = np.concatenate([clumps[0], clumps[1] + 30.0])[rng.permutation(2 * n)]
    options = {"mean_prior": X.mean(axis=0), "mean_precision_prior": 0.01}
    mixture = VBMixture(2, emission=FactorGaussian(1, noise_prior=(1.0, 0.002), **options), random_state=0).fit(X)
    log_labels = np.log(2) + gammaln(2) + 2 * gammaln(n + 1) - gammaln(2 * n + 2)
    parts = [
        VBFactorAnalysis(1, noise_prior=(1.0, 0.002 * X[:, 0].var()), **options, random_state=0)
        .fit(Y)
        .log_evidence(Y, kind="bridge", random_state=0)
        for Y in (clumps[0], clumps[1] + 30.0)
    ]
    evidence = mixture.log_evidence(X, kind="bridge", n_chains=64, random_state=0)
    error = np.linalg.norm([evidence.standard_error, *(part.standard_error for part in parts)])
    assert abs(evidence.value - log_labels - sum(part.value for part in parts)) < 3.0 * error
    assert error < 0.2


def test_samplers_agree_on_iris():
    """Two components of two factors: they said -407.8, -404.4 and -405.8 +- 15 of one model."""
    X = load_iris().data
    values = []
    for seed in range(2):
        model = VBMixture(2, emission=FactorGaussian(2), random_state=seed).fit(X)
        evidence = model.log_evidence(X, kind="auto", random_state=seed)
        assert evidence.details["taken"][0].startswith("bridge")
        assert not evidence.doubts
        values.append((evidence.value, evidence.standard_error))
    (first, one), (second, other) = values
    assert abs(first - second) < 3.0 * np.hypot(one, other)
    assert abs(first + 307.03) < 0.4  # 256 chains


def test_components_of_too_many_orders_are_in_doubt():
    X = small_table(12, 3)
    model = VBMixture(6, emission=FactorGaussian(2, **KNOWN), random_state=0, max_iter=20, tol=1.0, n_init=1).fit(X)
    with pytest.warns(EvidenceWarning):
        evidence = model.log_evidence(X, kind="bridge", n_draws=8, n_components=2, n_chains=2, burn_in=0, n_kept=1)
    assert "rotations of the factors are not integrated out" in evidence.doubts[-1]


def test_missing_cells_are_summed_out():
    X = small_table(5, 3)
    X[0, 1] = X[2, 2] = np.nan
    model = VBFactorAnalysis(2, random_state=0, **KNOWN).fit(X)
    reference, error = mean_likelihood(model, X)
    evidence = model.log_evidence(X, kind="bridge", n_chains=32, random_state=0)
    assert abs(evidence.value - reference) < 3.5 * np.hypot(error, evidence.standard_error)


@pytest.fixture(scope="module")
def three_factors():
    X = simulated(231, 13, 3)
    return X, [VBFactorAnalysis(q, random_state=0).fit(X) for q in range(1, 5)]


def test_the_recommended_score_is_a_bridge(three_factors):
    """Of two factors and 231 rows, which no other sampler answers; one of four times the chains agrees."""
    X, models = three_factors
    evidence = models[1].log_evidence(X, kind="auto", random_state=1)
    assert evidence.details["taken"] == ("bridge",)
    assert not evidence.doubts
    longer = models[1].log_evidence(X, kind="bridge", random_state=2, **LONGER_UP_TO_TURNS)
    assert abs(evidence.value - longer.value) < 3 * np.hypot(evidence.standard_error, longer.standard_error)


def test_linear_response_has_the_volume_of_turns(three_factors):
    """Within a nat of bridges, where bounds are 4 to 43 below, and no bound more is missing of more factors."""
    X, models = three_factors
    bridges = np.array([model.log_evidence(X, kind="bridge", random_state=0).value for model in models])
    scores = np.array([model.log_evidence(X, kind="linear_response").value for model in models])
    bounds = np.array([model.lower_bound_ for model in models])
    assert (bounds - bridges < [-3, -10, -20, -30]).all()
    assert np.abs(scores - bridges).max() < 1.0
    assert scores.argmax() == bridges.argmax() == 2


def test_annealed_chains_from_one_rotation_are_refused():
    """They were .6 to 1.6 nats too low, with a standard error of a tenth and without a warning."""
    X = simulated(30, 5, 2)
    with pytest.raises(ValueError, match=r"one rotation of the factors.*'bridge' or 'auto'"):
        VBFactorAnalysis(2, random_state=0).fit(X).log_evidence(X, kind="ais")
    mixture = VBMixture(2, emission=FactorGaussian(2), random_state=0).fit(X)
    with pytest.raises(ValueError, match="one rotation of the factors"):
        mixture.log_evidence(X, kind="ais")
    assert np.isfinite(mixture.log_evidence(X, kind="linear_response").value)
    with pytest.warns(EvidenceWarning, match="more draws") as caught:  # and no advice to take them
        mixture.log_evidence(X, kind="importance", n_draws=8)
    assert not any("'ais'" in str(each.message) for each in caught)
    one = VBFactorAnalysis(1, random_state=0).fit(X)
    assert np.isfinite(one.log_evidence(X, kind="ais", n_steps=16).value)
