"""Zeros of their own beside another family, against the definition and quadrature."""

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp

import skvbem
from skvbem import VBHMM, VBMixture
from skvbem.emissions import (
    Exponential,
    Gamma,
    Gaussian,
    Multinomial,
    NegativeBinomial,
    Poisson,
    VonMises,
    ZeroInflated,
)
from skvbem.errors import DataWarning

approx = pytest.approx

# Articles of 915 biochemists in three years of doctoral study (Long 1990): 0 to 12, 16 and 19 of them.
ARTICLES = np.repeat(
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 19], [275, 246, 178, 84, 67, 27, 17, 12, 1, 2, 1, 1, 2, 1, 1]
)[:, None].astype(float)


def bound(X, emission, n_components=1, **options):
    return (
        VBMixture(n_components, emission=emission, n_init=1, random_state=0, tol=1e-10).fit(X, **options).lower_bound_
    )


def log_evidence_by_quadrature(y, concentration=(1.0, 1.0)):
    """Of one column: rates by a sum over a fine grid, probabilities by Gauss-Legendre nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    p, rate, mean = (nodes + 1)[:, None] / 2, np.linspace(1e-3, 6 * y.mean(), 1501), y.mean()
    others = y[y > 0]
    of_rates = others.sum() * np.log(rate) - len(others) * rate - gammaln(others + 1).sum() - np.log(mean) - rate / mean
    zeros = (y == 0).sum() * np.log(p + (1 - p) * np.exp(-rate))
    a, b = concentration
    prior = (a - 1) * np.log(p) + (b - 1) * np.log1p(-p) - betaln(a, b)
    both = of_rates + zeros + len(others) * np.log1p(-p) + prior + np.log(weights[:, None] / 2)
    return logsumexp(both) + np.log(rate[1] - rate[0])


def test_bounds_of_a_published_table_are_those_of_record():
    model = VBMixture(1, emission=ZeroInflated(Poisson()), n_init=1, random_state=0, tol=1e-10).fit(ARTICLES)
    assert model.lower_bound_ == approx(-1686.56920, abs=2e-5)
    evidence = log_evidence_by_quadrature(ARTICLES.ravel())
    assert evidence == approx(-1686.14987, abs=2e-5)
    assert model.log_evidence(ARTICLES, kind="laplace").value == approx(evidence, abs=0.02)


def test_the_bound_of_tiny_data_is_below_the_evidence_and_sampled_evidences_are_near(rng):
    for k in range(4):
        y = np.where(rng.random(9) < 0.4, 0, rng.poisson(3.0, size=9)).astype(float)
        y[0] = 2.0
        pair = (1.0, 1.0) if k % 2 else (2.0, 3.0)
        found = bound(y[:, None], ZeroInflated(concentration_prior=pair))
        exact = log_evidence_by_quadrature(y, pair)
        assert exact - 1.0 < found <= exact + 1e-7
    model = VBMixture(1, emission=ZeroInflated(concentration_prior=pair), random_state=0).fit(y[:, None])
    sampled = model.log_evidence(y[:, None], kind="smc", random_state=0)
    assert sampled.value == approx(exact, abs=4 * sampled.standard_error)


def test_without_zeros_of_their_own_it_is_the_base(rng):
    counts = rng.poisson([[1.0, 9.0]] * 30 + [[6.0, 2.0]] * 30).astype(float)
    counts[rng.random(counts.shape) < 0.1] = np.nan
    inflated = bound(counts, ZeroInflated(Poisson(), concentration_prior=(1e-12, 1.0)), 2)
    assert inflated == approx(bound(counts, Poisson(), 2), abs=1e-6)


def test_zeros_beside_a_density_hide_nothing(rng):
    """The bound is the evidence: that of zeros and others, and that of the others."""
    times = np.where(rng.random((30, 1)) < 0.3, 0.0, rng.exponential(5.0, size=(30, 1)))
    times[3] = np.nan
    n, zeros = np.count_nonzero(times > 0), np.count_nonzero(times == 0)
    others = bound(np.where(times > 0, times, np.nan), Exponential())
    found = bound(times, ZeroInflated(Exponential(), concentration_prior=(2.0, 1.0)))
    assert found == approx(others + betaln(2 + zeros, 1 + n) - betaln(2, 1), abs=1e-9)


def test_weights_are_repeats(rng):
    counts = np.where(rng.random((25, 2)) < 0.3, 0, rng.poisson([2.0, 8.0], size=(25, 2))).astype(float)
    counts[rng.random(counts.shape) < 0.1] = np.nan
    weight = rng.integers(1, 4, size=25)
    repeated = bound(np.repeat(counts, weight, axis=0), ZeroInflated(), 1)
    assert bound(counts, ZeroInflated(), 1, sample_weight=weight) == approx(repeated, rel=1e-10)


def test_counts_of_a_chain_beside_other_columns(rng, tmp_path):
    state = np.arange(120) // 15 % 2
    counts = np.where(rng.random((120, 1)) < 0.3, 0, rng.poisson(np.array([2.0, 12.0])[state])[:, None])
    X = np.column_stack(
        [counts, rng.normal(3.0 * state), np.where(rng.random(120) < 0.2, 0, rng.exponential(2.0, 120))]
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    emission = [
        ("catches", ZeroInflated(Poisson(rate_prior="hierarchical")), 0),
        ("size", Gaussian(), 1),
        ("wait", ZeroInflated(Exponential()), 2),
    ]
    chain = VBHMM(2, emission=emission, n_init=2, random_state=0).fit(X)
    numbers = chain.parameters_["catches"]
    assert np.sort(numbers["rates"].ravel()) == approx([2.0, 12.0], rel=0.25)
    assert numbers["inflation"] == approx(0.2, abs=0.2)
    assert numbers["means"] == approx((1 - numbers["inflation"]) * numbers["rates"])
    forecast = chain.forecast(X, 2)
    assert np.isfinite(forecast.expected["x0"]).all()
    assert np.isfinite(chain.impute(X)).all()
    skvbem.save(chain, tmp_path / "chain")
    assert skvbem.load(tmp_path / "chain").score(X) == chain.score(X)
    ends = chain.credible_intervals(X, method="draws", n_draws=100, random_state=0)["catches"]
    assert (ends["means"][0] < numbers["means"]).all()
    assert (numbers["means"] < ends["means"][1]).all()
    for method in ("ml", "map"):
        again = VBHMM(2, emission=emission, method=method, n_init=2, random_state=0).fit(X).parameters_["catches"]
        assert np.sort(again["rates"].ravel()) == approx(np.sort(numbers["rates"].ravel()), rel=0.1)


@pytest.mark.parametrize("base", [Gaussian(), Multinomial(), ZeroInflated(), "poisson", 3.0])
def test_a_base_of_other_columns_is_refused(base):
    with pytest.raises(ValueError, match="The 'base' parameter of ZeroInflated must be an emission of numbers"):
        VBMixture(emission=ZeroInflated(base)).fit([[0.0], [1.0]])


def test_parameters_that_are_given_are_those_of_the_model():
    given, emission = {"inflation": [[0.2], [0.5]], "rates": [[1.0], [6.0]]}, ZeroInflated(Poisson())
    model = VBMixture.from_parameters([0.5, 0.5], given, emission=emission)
    density = 0.5 * (0.2 + 0.8 * np.exp(-1)) + 0.5 * (0.5 + 0.5 * np.exp(-6))
    assert model.score_samples([[0.0]]) == approx(np.log(density))
    with pytest.raises(ValueError, match="must have 'inflation' besides those of Poisson"):
        VBMixture.from_parameters([1.0], {"rates": [[1.0]]}, emission=emission)
    with pytest.raises(ValueError, match="must be probabilities, one for each component and column"):
        VBMixture.from_parameters([0.5, 0.5], given | {"inflation": [[0.2], [1.5]]}, emission=emission)


@pytest.mark.parametrize("base", [Poisson(), Exponential(), Gamma(), NegativeBinomial()])
def test_alone_it_is_saved_and_made_of_its_parameters(base, rng, tmp_path):
    X = np.where(rng.random((80, 2)) < 0.3, 0.0, rng.integers(1, 9, (80, 2)))
    model = VBMixture(2, emission=ZeroInflated(base), n_init=1, random_state=0).fit(X)
    skvbem.save(model, tmp_path / "model")
    assert skvbem.load(tmp_path / "model").score(X) == model.score(X)
    numbers = model.parameters_["zero_inflated"]
    again = VBMixture.from_parameters(model.weights_, numbers, emission=ZeroInflated(base))
    for name, values in again.parameters_["zero_inflated"].items():
        assert values == approx(numbers[name], rel=1e-9), name
    ends = model.credible_intervals(method="vb")["zero_inflated"]
    assert "inflation" in ends
    assert "means" not in ends  # of all cells, whose quantiles under q have no form


def test_angles_are_no_base():
    with pytest.raises(ValueError, match="emission of numbers whose columns are independent"):
        VBMixture(1, emission=ZeroInflated(VonMises())).fit(np.ones((4, 1)))


@pytest.mark.parametrize("base", [Exponential(), Gamma()])
def test_a_column_whose_other_cells_are_equal_is_warned_of(base):
    X = np.column_stack([np.tile([0.0, 2.5, 2.5], 10), np.tile([0.0, 1.0, 4.0], 10)])
    with pytest.warns(DataWarning, match="^Column 'x0' of X holds one value wherever not 0: no component differs"):
        VBMixture(2, emission=ZeroInflated(base), random_state=0).fit(X)
