"""Series that depend on their own last values, as users fit them: `Autoregression` among `blocks`."""

import numpy as np
import pytest
from scipy.special import logsumexp

from skvbem import StructureSearchCV, VBLinearDynamicalSystem
from skvbem.datasets import load_nile
from skvbem.families.regression_rows import RegressionPoint
from skvbem.spaces import GridSpace
from skvbem.structural import Autoregression, Level, Season

OPTIONS = {"random_state": 0}
STILL = Level(noise=False)


def walk(coefficients, n, seed, noise=0.5):
    """An autoregression about 20 with noise, (n, 1)."""
    rng, order = np.random.default_rng(seed), len(coefficients)
    u = np.zeros(n + order)
    for t in range(order, n + order):
        u[t] = coefficients @ u[t - order : t][::-1] + rng.normal()
    return (20 + u[order:] + noise * rng.normal(size=n))[:, None]


@pytest.fixture(scope="module")
def series():
    y = walk(np.array([1.2, -0.5]), 200, 2)
    y[100:110] = np.nan
    return y


def test_the_likelihood_of_the_nile_is_that_of_statsmodels():
    """UnobservedComponents(level=True, irregular=True, autoregressive=1) of statsmodels 0.15, started alike.

    `initialize_known` takes the mean of X for the level, 0 for the autoregression, and the variance of X for both.
    """
    flow = load_nile().data
    model = VBLinearDynamicalSystem(blocks=[STILL, Autoregression()], method="ml", **OPTIONS).fit(flow)
    assert float(model.score_samples(flow, lengths=[len(flow)])[0]) == pytest.approx(-638.11373, abs=1e-4)
    assert model.autoregression_[0, 0] == pytest.approx(0.8971, abs=1e-3)
    assert model.noise_variance_[0] == pytest.approx(12896.5, rel=0.01)
    assert model.state_deviation_["autoregression of order 1"][0] ** 2 == pytest.approx(3301.5, rel=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_below_the_evidence_by_quadrature(seed):
    y = walk(np.array([0.7]), 6 + seed, seed)
    n = len(y)
    model = VBLinearDynamicalSystem(blocks=[STILL, Autoregression()], **OPTIONS).fit(y)
    system = model._fitted_.model
    data = system.compile(y, [n], output_inputs=np.ones((n, 1)))
    of_noise, of_walk, of_share = np.linspace(-12, 12, 49), np.linspace(-14, 18, 65), np.linspace(-6, 6, 73)
    rho, tau, share = (x.ravel() for x in np.meshgrid(of_noise, of_walk, of_share, indexing="ij"))
    step = np.sqrt(np.mean(np.diff(y[:, 0]) ** 2)) / system.unit[0]
    deviation = np.exp(-tau / 2) / step
    a = share * deviation
    point = (
        RegressionPoint(np.zeros((1, 1, len(rho))), np.exp(rho)[None]),
        RegressionPoint(a[None, None], np.exp(tau)[None]),
    )
    scores = system.expect(system.prior.natural(point), data).log_normalizer
    of_rho = rho - 2 * np.logaddexp(0.0, rho)  # the share of noise is uniform
    of_tau = np.log(deviation / np.pi) - np.log1p(deviation**2)  # half-Cauchy, by the log precision
    of_a = -0.5 * share**2 - 0.5 * np.log(2 * np.pi)  # normal, in units of the deviation of the noise
    cell = (of_noise[1] - of_noise[0]) * (of_walk[1] - of_walk[0]) * (of_share[1] - of_share[0])
    evidence = logsumexp(scores + of_rho + of_tau + of_a) + np.log(cell)
    assert model.lower_bound_ < evidence < model.lower_bound_ + 4
    sampled = model.log_evidence(y, kind="auto", random_state=0)
    assert sampled.value == pytest.approx(evidence, abs=4 * sampled.standard_error + 0.03)


def test_units_change_the_bound_by_their_jacobian(series):
    one = VBLinearDynamicalSystem(blocks=[Level(), Autoregression(2)], **OPTIONS).fit(series)
    other = VBLinearDynamicalSystem(blocks=[Level(), Autoregression(2)], **OPTIONS).fit(1000 * series - 7)
    n = int((~np.isnan(series)).sum())
    assert other.lower_bound_ == pytest.approx(one.lower_bound_ - n * np.log(1000), abs=1e-4)
    np.testing.assert_allclose(other.autoregression_, one.autoregression_, atol=1e-3)


def test_weights_are_repeats(series):
    parts, blocks = [series[:80], series[80:]], [STILL, Autoregression(2)]
    weighted = VBLinearDynamicalSystem(blocks=blocks, **OPTIONS).fit(parts, sample_weight=[2, 1])
    repeated = VBLinearDynamicalSystem(blocks=blocks, **OPTIONS).fit([parts[0], *parts])
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-6)


def test_coefficients_are_found_with_their_errors():
    truth = np.array([1.2, -0.5])
    model = VBLinearDynamicalSystem(blocks=[STILL, Autoregression(2)], **OPTIONS).fit(walk(truth, 2000, 5))
    np.testing.assert_allclose(model.autoregression_[0], truth, atol=0.12)
    intervals = model.credible_intervals(level=0.99, method="vb")["autoregression"]["coefficient"]
    lower, upper = np.asarray(intervals[0]), np.asarray(intervals[1])
    assert (lower < upper).all()
    assert ((lower - 0.1 < truth) & (truth < upper + 0.1)).all()


def test_each_column_has_coefficients_of_its_own():
    two = np.hstack([walk(np.array([0.9]), 150, 0), 5 * walk(np.array([-0.6]), 150, 1)])
    both = VBLinearDynamicalSystem(blocks=[STILL, Autoregression()], **OPTIONS).fit(two)
    each = [VBLinearDynamicalSystem(blocks=[STILL, Autoregression()], **OPTIONS).fit(two[:, [j]]) for j in range(2)]
    assert both.lower_bound_ == pytest.approx(sum(one.lower_bound_ for one in each), abs=1e-3)
    assert both.autoregression_[0, 0] > 0.6
    assert both.autoregression_[1, 0] < -0.3


def test_a_search_finds_whether_there_is_an_autoregression():
    space = GridSpace({"blocks": [[STILL], [STILL, Autoregression()]]})
    noise = np.random.default_rng(0).normal(size=(150, 1))
    for X, best in ((walk(np.array([0.7]), 150, 0), 2), (noise, 1)):
        search = StructureSearchCV(VBLinearDynamicalSystem(**OPTIONS), space).fit(X)
        assert len(search.best_params_["blocks"]) == best


def test_forecasts_of_what_dies_away_go_to_the_level():
    y = walk(np.array([0.6]), 300, 3, noise=0.05)
    model = VBLinearDynamicalSystem(blocks=[STILL, Autoregression()], **OPTIONS).fit(y)
    ahead = model.forecast(y, 40)
    assert ahead.mean[0, -1, 0] == pytest.approx(y.mean(), abs=0.3)
    assert np.sqrt(ahead.variance[0, -1, 0]) == pytest.approx(y.std(), rel=0.25)
    assert ahead.explosive_share == 0.0
    assert model.spectral_radius_ == 1.0  # of the level
    alone = VBLinearDynamicalSystem(blocks=[Autoregression()], **OPTIONS).fit(y)
    assert alone.spectral_radius_ == pytest.approx(abs(alone.autoregression_[0, 0]))


def test_forecasts_are_averaged_over_coefficients():
    """Parameters are drawn, and means of forecasts are those of the drawn coefficients."""
    y = walk(np.array([0.8]), 40, 1)
    average = VBLinearDynamicalSystem(blocks=[STILL, Autoregression()], n_draws=400, **OPTIONS).fit(y).forecast(y, 8)
    mean = VBLinearDynamicalSystem(blocks=[STILL, Autoregression()], predictive="mean", **OPTIONS).fit(y).forecast(y, 8)
    assert (average.variance[0, 1:] > mean.variance[0, 1:]).all()


def test_parts_sum_to_the_series_and_drawn_series_are_like_it(series):
    blocks = [Level(), Season(4, noise=False), Autoregression(2)]
    model = VBLinearDynamicalSystem(blocks=blocks, **OPTIONS).fit(series)
    parts = model.decompose(series)
    assert sorted(parts) == ["autoregression of order 2", "level", "season of 4"]
    expected = model.transform(series) @ model.loadings_.T + model.offset_
    np.testing.assert_allclose(sum(part.mean for part in parts.values()), expected, atol=1e-9)
    assert "lag 2" in str(model.summary())
    filled = model.impute(series)
    assert not np.isnan(np.asarray(filled)).any()


def test_two_autoregressions_are_refused(series):
    model = VBLinearDynamicalSystem(blocks=[Autoregression(1), Autoregression(2)])
    with pytest.raises(ValueError, match=r"Autoregression\(\) and Autoregression\(order=2\)"):
        model.fit(series)
    with pytest.raises(ValueError, match="order"):
        VBLinearDynamicalSystem(blocks=[Autoregression(0)]).fit(series)


def test_precisions_of_the_prior_hold_coefficients_near_0(series):
    free = VBLinearDynamicalSystem(blocks=[STILL, Autoregression(2)], **OPTIONS).fit(series)
    held = VBLinearDynamicalSystem(blocks=[STILL, Autoregression(2)], transition_precision_prior=1e6, **OPTIONS)
    assert np.abs(held.fit(series).autoregression_).max() < 0.05 < np.abs(free.autoregression_).max()
