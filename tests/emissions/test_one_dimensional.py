"""Gamma, von Mises and negative binomial columns: printed maxima and bounds, predictions, and interpolated counts."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln

from skvbem import VBHMM, VBMixture, VBNetwork
from skvbem._numerics import log_rising
from skvbem.emissions import Gamma, NegativeBinomial, VonMises, ZeroInflated, negative_binomial
from skvbem.emissions.count_knots import Knots
from skvbem.emissions.negative_binomial import NegativeBinomialEmission
from skvbem.families.one_dimensional import SizeProbabilityPoint

approx = pytest.approx


def posterior_of(specification, values):
    emission = specification.for_data(values)
    prior, table = emission.default_prior(1), emission.prepare(values)
    return emission, prior + emission.statistics(table, np.ones((len(values), 1)), prior.expected_natural())


def predicted(emission, posterior, values):
    return emission.log_predictive(emission.prepare(values[:, None]), posterior)[:, 0]


@pytest.mark.parametrize("n", [3, 40])
def test_predictions_of_gamma_integrate_to_one_and_have_the_mean(n, rng):
    values = rng.gamma(2.0, 3.0, size=(n, 1))
    emission, posterior = posterior_of(Gamma(), values)
    log_y = np.linspace(-60, 25, 40_001)
    density = np.exp(predicted(emission, posterior, np.exp(log_y)) + log_y) * (log_y[1] - log_y[0])
    assert density.sum() == approx(1.0, abs=1e-6)
    mean = emission.parameters(emission.predictive_point(posterior))["means"].item()
    assert density @ np.exp(log_y) == approx(mean, rel=1e-3 if n == 3 else 1e-6)


def test_predictions_of_angles_integrate_to_one(rng):
    values = rng.vonmises(1.0, 3.0, size=(7, 1)) * 180 / np.pi
    emission, posterior = posterior_of(VonMises(unit="degrees"), values)
    angles = np.linspace(0, 360, 2000, endpoint=False)
    assert np.exp(predicted(emission, posterior, angles)).sum() * 360 / 2000 == approx(1.0, abs=1e-9)


def test_predictions_of_counts_sum_to_one_and_have_the_mean(rng):
    values = rng.negative_binomial(2.0, 0.2, size=(40, 1)).astype(float)
    emission, posterior = posterior_of(NegativeBinomial(), values)
    counts = np.arange(5000.0)
    mass = np.exp(predicted(emission, posterior, counts))
    assert mass.sum() == approx(1.0, abs=1e-6)
    mean = emission.parameters(emission.predictive_point(posterior))["means"].item()
    assert mass @ counts == approx(mean, rel=1e-4)


@pytest.mark.parametrize("size", [1e-3, 0.7, 30.0, 1e3, 1e6])
def test_log_likelihoods_of_counts_are_interpolated(size):
    knots = Knots.to(2e5)
    counts = np.unique(np.round(np.exp(np.linspace(0, np.log(2e5), 3000))))
    places, weights, base = knots.weights(counts)
    computed = (weights * log_rising(size, knots.counts)[places]).sum(axis=1) + base
    exact = log_rising(size, counts) - log_rising(1.0, counts)
    small = counts < 1e4
    assert computed[small] == approx(exact[small], abs=1e-9)
    assert computed == approx(exact, abs=1e-8)
    assert (Knots.to(1e3).counts == knots.counts[: len(Knots.to(1e3).counts)]).all()


@pytest.mark.parametrize("size", [0.5, 50.0, 1e3, 1e6])
def test_counts_beyond_those_of_the_fit_are_taken(size, rng):
    """Of one size they have its log likelihood, whatever that is."""
    counts, mean = np.array([[65.0], [1e3], [1e6], [1e12]]), 5.0
    emission = NegativeBinomialEmission(np.array([5.0]), 20.0)
    point = emission.point_of({"sizes": np.array([[size]]), "means": np.array([[mean]])})
    natural = emission.default_prior(1).natural(point)
    computed = emission.expected_log_likelihood(emission.prepare(counts), natural)
    assert computed == approx(stats.nbinom.logpmf(counts, size, size / (size + mean)), rel=1e-8)
    values = rng.negative_binomial(2.0, 0.2, size=(60, 1)).astype(float)
    model = VBMixture(1, emission=NegativeBinomial(), random_state=0).fit(values)
    assert np.isfinite(model.score_samples([[1e6], [1e12]])).all()


@pytest.mark.parametrize("factor", [30, 30_000])
@pytest.mark.parametrize("n", [1, 2])
def test_batches_of_larger_counts_have_the_posterior_of_all_rows(factor, n, rng):
    """In the prior of the first batch, and together their evidence."""
    first, second = (rng.negative_binomial(2.0, 0.2 / f, size=(80, n)).astype(float) for f in (1, factor))
    emission = NegativeBinomialEmission(first.mean(axis=0), second.max())
    prior, rows = emission.default_prior(1), np.concatenate([first, second])
    table = emission.prepare(rows)
    posterior = prior + emission.statistics(table, np.ones((160, 1)), prior.expected_natural())
    evidence = posterior.log_normalizer() - prior.log_normalizer() - gammaln(rows + 1).sum()
    wanted = emission.parameters(posterior.mode())
    for emission in (NegativeBinomial(), [("nb", NegativeBinomial(), list(range(n)))]):
        for estimator in (VBMixture(1, emission=emission), VBHMM(1, emission=emission)):
            estimator.fit(first)
            bound = estimator.lower_bound_
            estimator.partial_fit(second)
            assert bound + estimator.batch_lower_bound_ == approx(evidence, abs=1e-5)
            (found,) = estimator.parameters_.values()
            for name in ("means", "sizes"):
                assert found[name] == approx(wanted[name], rel=1e-5)
    frames = [pd.DataFrame(rows, columns=[*"xy"[:n]]).assign(c=["c", "d"] * 40) for rows in (first, second)]
    network = (
        VBNetwork([], emission={"negative_binomial": [*"xy"[:n]], "remainder": "auto"})
        .fit(frames[0])
        .partial_fit(frames[1])
    )
    for j in range(n):
        assert network.parameters_["xy"[j]]["sizes"].ravel() == approx(wanted["sizes"][:, j], rel=1e-5)


def test_room_for_larger_counts_beside_zeros_of_their_own(rng):
    """It leaves what is known of earlier rows as it is, and has the likelihood of new ones."""
    rows, more = (np.where(rng.random((60, 2)) < 0.3, 0, rng.negative_binomial(2.0, p, (60, 2))) for p in (0.2, 1e-3))
    emission = ZeroInflated(NegativeBinomial()).for_data(rows.astype(float))
    prior, table = emission.default_prior(2), emission.prepare(rows.astype(float))
    added = emission.statistics(table, rng.dirichlet([1, 1], size=60), prior.expected_natural())
    wider, other, moved = emission.with_room_for(emission.survey(more.astype(float)), prior, added)
    posterior, after = prior + added, other + moved
    assert after.log_normalizer() == approx(posterior.log_normalizer(), abs=1e-9)
    naturals = posterior.expected_natural(), after.expected_natural()
    same = [e.expected_log_likelihood(e.prepare(rows), natural) for e, natural in zip((emission, wider), naturals)]
    assert same[1] == approx(same[0], abs=1e-9)
    point = posterior.mode()
    named = emission.parameters(point)
    size, mean = named["sizes"], emission.base.parameters(point[1])["means"]
    kept = np.log1p(-named["inflation"]) + stats.nbinom.logpmf(more[:, None], size, size / (size + mean))
    exact = np.where(more[:, None] == 0, np.logaddexp(np.log(named["inflation"]), kept), kept).sum(axis=2)
    assert wider.expected_log_likelihood(wider.prepare(more), other.natural(point)) == approx(exact, rel=1e-9)


def test_counts_in_blocks_know_the_counts_of_all(rng):
    values = rng.negative_binomial(1.5, 0.02, size=(300, 2)).astype(float)
    emission = NegativeBinomial().for_data(values)
    survey = emission.survey(values[:100]) + emission.survey(values[100:])
    natural = emission.default_prior(2).expected_natural()
    whole = emission.expected_log_likelihood(emission.prepare(values), natural)
    for rows in (slice(0, 100), slice(100, 300)):
        part = emission.prepare(values[rows], survey)
        assert emission.step(natural, survey).log_likelihood(part) == approx(whole[rows], abs=1e-11)


def steps_and_turns(rng, n=400):
    """Two ways of moving: near and around, far and ahead."""
    state = (np.arange(n) // 20) % 2
    step = rng.gamma(np.array([4.0, 3.0])[state], np.array([0.25, 1.7])[state])
    return np.column_stack([step, rng.vonmises(np.array([np.pi, 0.0])[state], np.array([1.0, 8.0])[state])]), state


def test_animals_move_in_two_ways(rng):
    X, state = steps_and_turns(rng)
    emission = {"gamma": [0], "von_mises": [1]}
    models = [VBHMM(k, emission=emission, n_init=3, random_state=0).fit(X) for k in (1, 2, 3)]
    bounds = [model.lower_bound_ for model in models]
    assert np.argmax(bounds) == 1
    found = models[1].predict(X)
    assert max(np.mean(found == state), np.mean(found != state)) > 0.95
    ahead = models[1].forecast(X, 3)
    assert abs(ahead.expected["x1"]).max() <= np.pi


def test_directions_average_in_a_circle(rng):
    """Angles on both sides of a half turn: their mean is there, not at 0, and so are intervals by draws."""
    X = np.remainder(rng.vonmises(np.pi, 20.0, size=(150, 1)) + np.pi, 2 * np.pi) - np.pi
    model = VBMixture(1, emission=VonMises(), random_state=0).fit(X)
    assert abs(model.parameters_["von_mises"]["means"].item()) > 3.0
    low, high = model.credible_intervals(X)["von_mises"]["means"]
    assert 0.02 < (high - low).item() < 0.2
    gap = model.impute(np.vstack([X, [[np.nan]]]))[-1, 0]
    assert abs(gap) > 3.0


def test_rounded_angles_are_one_kind(rng):
    """Ties of angles that are rounded to ten degrees make no component of their own."""
    for seed in range(3):
        X = np.random.default_rng(seed).integers(36, size=(200, 1)) * 10.0
        one, two = (VBMixture(k, emission=VonMises(unit="degrees"), n_init=2, random_state=0).fit(X) for k in (1, 2))
        assert one.lower_bound_ > two.lower_bound_


def test_zero_inflated_negative_binomial_and_gamma(rng):
    """Zeros of their own beside both; of a density all zeros are, and the bound is the evidence."""
    counts = rng.negative_binomial(3.0, 0.2, size=(300, 1)) * (rng.random((300, 1)) > 0.4)
    plain = VBMixture(1, emission=NegativeBinomial(), random_state=0).fit(counts)
    zeros = VBMixture(1, emission=ZeroInflated(NegativeBinomial()), random_state=0).fit(counts)
    assert zeros.lower_bound_ > plain.lower_bound_ + 10
    steps = rng.gamma(2.0, 1.0, size=(80, 1)) * (rng.random((80, 1)) > 0.2)
    model = VBMixture(1, emission=ZeroInflated(Gamma()), random_state=0).fit(steps)
    positive = steps[steps > 0][:, None]
    n, k = len(steps), len(steps) - len(positive)
    of_zeros = gammaln(k + 1) + gammaln(n - k + 1) - gammaln(n + 2)
    wanted = of_zeros + VBMixture(1, emission=Gamma(), random_state=0).fit(positive).lower_bound_
    assert model.lower_bound_ == approx(wanted, abs=1e-8)


def test_zeros_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"numbers are > 0; ZeroInflated\(Gamma\(\)\) takes zeros"):
        VBMixture(1, emission=Gamma()).fit([[0.0], [1.0], [2.0]])


def test_overdispersed_counts_are_one_kind(rng):
    """Poisson components need several where one negative binomial explains the counts."""
    counts = rng.poisson(rng.gamma(1.0, 16.0, size=(146, 1)))
    one = VBMixture(1, emission=NegativeBinomial(), random_state=0).fit(counts).lower_bound_
    two = VBMixture(2, emission=NegativeBinomial(), random_state=0).fit(counts).lower_bound_
    assert one > two
    for k in (3, 4, 5):
        assert one > VBMixture(k, emission="poisson", n_init=3, random_state=0).fit(counts).lower_bound_ + 10


@pytest.mark.parametrize("emission", ["gamma", "von_mises", "negative_binomial"])
def test_scores_of_one_component_are_the_evidence(emission, rng):
    """Nothing is hidden with one component: sampled evidences are the bound."""
    X = {
        "gamma": rng.gamma(2.0, 3.0, size=(30, 1)),
        "von_mises": rng.vonmises(0.5, 2.0, size=(30, 1)),
        "negative_binomial": rng.negative_binomial(2.0, 0.3, size=(30, 1)),
    }[emission]
    model = VBMixture(1, emission=emission, random_state=0).fit(X)
    evidence = model.log_evidence(X, kind="importance", random_state=0)
    assert float(evidence) == approx(model.lower_bound_, abs=5e-3)
    assert model.score_samples(X) == approx(model.score_samples(X[::-1])[::-1], abs=1e-12)


def test_sampled_evidence_of_counts_that_lie_apart_is_near_the_bound():
    rng = np.random.default_rng(3)
    X = np.r_[rng.negative_binomial(2, 0.4, 60), rng.negative_binomial(9, 0.02, 40)][:, None].astype(float)
    emission = [("count", NegativeBinomial(), [0])]
    mixture = VBMixture(2, emission=NegativeBinomial(), n_init=2, random_state=0).fit(X)
    network = VBNetwork(latents=2, emission=emission, n_init=2, random_state=0).fit(X)
    for model in (mixture, network):
        for seed in range(2):
            value = model.log_evidence(X, kind="ais", random_state=seed).value
            assert model.lower_bound_ - 0.5 < value < model.lower_bound_ + 2.0


@pytest.mark.parametrize("method", ["ml", "map"])
def test_counts_beyond_all_knots_have_the_density_of_scipy(method, rng):
    """Counts to some 120 have knots to 1024."""
    model = VBMixture(1, emission="negative_binomial", method=method).fit(rng.negative_binomial(1, 0.06, (300, 1)))
    size, mean = (model.parameters_["negative_binomial"][name].item() for name in ("sizes", "means"))
    counts = np.array([1000.0, 1024, 1025, 5000, 1e5])
    wanted = stats.nbinom(size, size / (size + mean)).logpmf(counts)
    assert model.score_samples(counts[:, None]) == approx(wanted, rel=1e-10)


def test_bins_of_many_counts_err_by_less_than_a_billionth(rng, monkeypatch):
    """Likelihoods are SciPy's, and sums over rows their derivatives; of many lanes, with gaps."""
    X = rng.negative_binomial(0.9, 1e-4, size=(4000, 2)).astype(float)
    X[:300] = rng.poisson(30, size=(300, 2))
    X[rng.random(X.shape) < 0.05] = np.nan
    emission = NegativeBinomial().for_data(X)
    table = emission.prepare(X)
    assert emission.is_binned(table)
    size = 10.0 ** rng.uniform(-2, 5, size=(3, 2, 25))
    probability = rng.uniform(0.01, 0.9999, size=size.shape)
    natural = emission.default_prior(3).natural(SizeProbabilityPoint(size, probability))
    step = emission.step(natural, table)
    found = np.moveaxis(step.log_likelihood(table[1000:]), 0, -1)
    laws = stats.nbinom(size, 1 - probability)
    exact = np.nan_to_num(laws.logpmf(X[1000:, None, :, None])).sum(axis=2)
    assert np.abs(found - exact).max() < 2e-9 + 1e-14 * np.abs(exact).max()
    shares, total = rng.dirichlet(np.ones(3), size=(25, len(X))), step.zeros()
    step.add(table, shares, total)
    monkeypatch.setattr(negative_binomial, "_MAX_TABLED_COUNTS", 10**9)
    plain = emission.step(natural, table)
    of_values = plain.zeros()
    plain.add(table, shares, of_values)
    sums = (natural * step.statistics(total)).sum(axis=0), (natural * plain.statistics(of_values)).sum(axis=0)
    assert sums[0] == approx(sums[1], rel=1e-12)


def test_a_fit_by_bins_is_that_by_distinct_counts(rng, monkeypatch):
    X = rng.negative_binomial(0.9, [[2e-4], [2e-2]], size=(2, 3000)).reshape(-1, 1)
    monkeypatch.setattr(negative_binomial, "_MAX_TABLED_COUNTS", 500)
    bounds = []
    for most in (500, 10**9):
        monkeypatch.setattr(negative_binomial, "_MAX_TABLED_COUNTS", most)
        bounds.append(VBMixture(2, emission=NegativeBinomial(), n_init=2, random_state=0, tol=1e-7).fit(X).lower_bound_)
    assert bounds[0] == approx(bounds[1], abs=1e-4)


def test_components_without_a_row_warn_of_nothing(rng):
    for emission, X in (
        ("von_mises", rng.vonmises(0.3, 2.0, size=(60, 1))),
        ("negative_binomial", rng.poisson(3.0, size=(60, 1)).astype(float)),
        ("gamma", rng.gamma(2.0, size=(60, 1))),
    ):
        model = VBMixture(3, emission=emission, weight_concentration_prior=0.01, random_state=0).fit(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.isfinite(model.impute(np.array([[np.nan]]))).all()
            assert str(model.summary(X)).count(emission)
