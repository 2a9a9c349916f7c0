"""Structural time series as users fit them: `blocks` of VBLinearDynamicalSystem."""

import numpy as np
import pytest
from scipy.special import logsumexp

from skvbem import StructureSearchCV, VBLinearDynamicalSystem, load, save
from skvbem.datasets import load_nile
from skvbem.families.regression_rows import RegressionPoint
from skvbem.plotting import BlocksDisplay
from skvbem.spaces import GridSpace
from skvbem.structural import Cycle, Level, Season, Trend

OPTIONS = {"random_state": 0}


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    level = 20 + np.cumsum(rng.normal(scale=0.3, size=96))
    y = level + 2 * np.sin(2 * np.pi * np.arange(96) / 12) + rng.normal(scale=0.5, size=96)
    y[30:36] = np.nan
    return y[:, None]


def log_likelihood(model, X):
    """ln p(X | point) of a fit."""
    return float(model.score_samples(X, lengths=[len(X)])[0])


def test_the_likelihood_of_the_nile_is_that_of_statsmodels():
    """UnobservedComponents(level="llevel") of statsmodels 0.15, `initialize_known` at the mean and variance of X."""
    flow = load_nile().data
    model = VBLinearDynamicalSystem(blocks=[Level()], method="ml", **OPTIONS).fit(flow)
    assert log_likelihood(model, flow) == pytest.approx(-639.2281, abs=1e-4)
    assert model.noise_variance_[0] == pytest.approx(15128.67, rel=0.01)
    assert model.state_deviation_["level"][0] ** 2 == pytest.approx(1452.64, rel=0.02)


@pytest.mark.parametrize("has_inputs", [False, True])
def test_a_variance_that_is_best_at_0_gets_there(has_inputs):
    """Steps of EM stop .002 to .1 nats below, as they go towards 0 like 1 / t."""
    rng = np.random.default_rng(3)
    y = np.cumsum(rng.normal(size=150))[:, None]
    inputs = rng.normal(size=(150, 1)) if has_inputs else None
    y = y + inputs if has_inputs else y
    fits = [
        VBLinearDynamicalSystem(blocks=[Level(), season], method="ml", **OPTIONS).fit(y, output_inputs=inputs)
        for season in (Season(4), Season(4, noise=False))
    ]
    free, least = (float(fit.score_samples(y, lengths=[150], output_inputs=inputs)[0]) for fit in fits)
    assert free >= least - 2e-4


def test_a_quasi_newton_method_leaves_few_steps():
    """EM alone takes 128."""
    y = np.cumsum(np.random.default_rng(3).normal(size=150))[:, None]
    assert VBLinearDynamicalSystem(blocks=[Level(), Season(4)], method="ml", **OPTIONS).fit(y).n_iter_ <= 10


def evidence_by_quadrature(model, y):
    """ln p(y) of a level, nats, by the trapezoidal rule over the logarithms of one precision, or of two."""
    system, n = model._fitted_.model, len(y)
    data = system.compile(y, [n], output_inputs=np.ones((n, 1)))
    grids = [np.linspace(-16, 16, 81), np.linspace(-24, 30, 136)][: 1 + system.design.n_noises]  # .4 apart
    rho, *taus = (x.ravel() for x in np.meshgrid(*grids))
    point = RegressionPoint(np.zeros((1, 1, len(rho))), np.exp(rho)[None]), *(np.exp(tau)[None, None] for tau in taus)
    scores = system.expect(system.prior.natural(point), data).log_normalizer
    scores += rho - 2 * np.logaddexp(0.0, rho)  # the share of noise is uniform
    for tau in taus:  # half-Cauchy, by the log precision
        deviation = np.exp(-tau / 2) / (np.sqrt(np.mean(np.diff(y[:, 0]) ** 2)) / system.unit[0])
        scores += np.log(deviation / np.pi) - np.log1p(deviation**2)
    return logsumexp(scores) + len(grids) * np.log(0.4)


@pytest.mark.parametrize("moves", [False, True])
def test_bounds_are_below_evidences_by_quadrature(moves):
    """Of 50 series: by .09 to .13 nats for one precision, and by 1.26 to 1.70 for two."""
    gaps = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 9))
        y = np.cumsum(rng.normal(size=(n, 1)), axis=0) + rng.normal(size=(n, 1))
        model = VBLinearDynamicalSystem(blocks=[Level(noise=moves)], n_init=2, **OPTIONS).fit(y)
        evidence = evidence_by_quadrature(model, y)
        gaps.append(evidence - model.lower_bound_)
        if moves and seed < 4:
            sampled = model.log_evidence(y, kind="auto", random_state=0)
            assert sampled.value == pytest.approx(evidence, abs=4 * sampled.standard_error + 0.02)
    assert min(gaps) > 0
    assert max(gaps) < (1.8 if moves else 0.2)


def test_units_change_the_bound_by_their_jacobian(series):
    one = VBLinearDynamicalSystem(blocks=[Trend(), Season(12)], **OPTIONS).fit(series)
    other = VBLinearDynamicalSystem(blocks=[Trend(), Season(12)], **OPTIONS).fit(1000 * series - 7)
    n = int((~np.isnan(series)).sum())
    assert other.lower_bound_ == pytest.approx(one.lower_bound_ - n * np.log(1000), abs=1e-5)
    np.testing.assert_allclose(other.state_deviation_["slope"], 1000 * one.state_deviation_["slope"], rtol=1e-3)


def test_weights_are_repeats(series):
    parts = [series[:40], series[40:]]
    weighted = VBLinearDynamicalSystem(blocks=[Level(), Season(12)], **OPTIONS).fit(parts, sample_weight=[2, 1])
    repeated = VBLinearDynamicalSystem(blocks=[Level(), Season(12)], **OPTIONS).fit([parts[0], *parts])
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-7)


def test_a_planted_season_raises_the_bound_and_parts_sum_to_the_series(series):
    model = VBLinearDynamicalSystem(blocks=[Level(), Season(12)], **OPTIONS).fit(series)
    plain = VBLinearDynamicalSystem(blocks=[Level()], **OPTIONS).fit(series)
    assert model.lower_bound_ > plain.lower_bound_ + 5
    parts = model.decompose(series)
    expected = model.transform(series) @ model.loadings_.T + model.offset_
    np.testing.assert_allclose(sum(part.mean for part in parts.values()), expected, atol=1e-9)
    wave = 2 * np.sin(2 * np.pi * np.arange(96) / 12)
    away = np.abs(parts["season of 12"].mean[:, 0] - wave)
    assert (away < 4 * parts["season of 12"].deviation[:, 0]).all()
    assert BlocksDisplay.from_estimator(model, series).axes_.shape == (3,)


def test_effects_of_inputs_are_found_beside_blocks(series):
    rng = np.random.default_rng(1)
    holiday = (rng.random((96, 1)) < 0.2).astype(float)
    model = VBLinearDynamicalSystem(blocks=[Level(), Season(12)], **OPTIONS)
    model.fit(series + 3 * holiday, output_inputs=holiday)
    assert model.output_input_[0, 0] == pytest.approx(3.0, abs=0.5)


def test_series_without_a_level_have_an_offset():
    rng = np.random.default_rng(2)
    y = 7 + np.cos(2 * np.pi * np.arange(80) / 8)[:, None] + 0.1 * rng.normal(size=(80, 1))
    model = VBLinearDynamicalSystem(blocks=[Cycle(8.0)], **OPTIONS).fit(y)
    assert model.offset_[0] == pytest.approx(7.0, abs=0.1)


def test_forecasts_of_a_fixed_trend_are_a_line():
    y = (3 + 0.5 * np.arange(40.0))[:, None] + np.random.default_rng(0).normal(scale=0.1, size=(40, 1))
    model = VBLinearDynamicalSystem(blocks=[Trend(level_noise=False, slope_noise=False)], **OPTIONS).fit(y)
    ahead = model.forecast(y, 10)
    np.testing.assert_allclose(ahead.mean[0, :, 0], 3 + 0.5 * np.arange(40, 50), atol=0.3)
    assert ahead.explosive_share == 0.0
    assert model.state_deviation_ == {}


def test_columns_and_sequences_do_not_mix(series):
    two = np.hstack([series, 5 * series[::-1]])
    both = VBLinearDynamicalSystem(blocks=[Level()], **OPTIONS).fit(two)
    each = [VBLinearDynamicalSystem(blocks=[Level()], **OPTIONS).fit(two[:, [j]]) for j in range(2)]
    assert both.lower_bound_ == pytest.approx(sum(one.lower_bound_ for one in each), abs=1e-4)


def test_a_search_over_blocks_is_a_grid(series):
    space = GridSpace({"blocks": [[Level()], [Level(), Season(12)]]})
    search = StructureSearchCV(VBLinearDynamicalSystem(**OPTIONS), space).fit(series)
    assert repr(search.best_params_["blocks"]) == "[Level(), Season()]"


def test_fits_go_on_in_files_batches_and_warm_starts(series, tmp_path):
    model = VBLinearDynamicalSystem(blocks=[Level(), Season(12)], warm_start=True, **OPTIONS).fit(series)
    save(model, tmp_path / "fit.skvbem")
    again = load(tmp_path / "fit.skvbem")
    np.testing.assert_array_equal(again.forecast(series, 3).mean, model.forecast(series, 3).mean)
    before = model.lower_bound_
    assert model.fit(series).lower_bound_ == pytest.approx(before, abs=1e-4)
    batches = VBLinearDynamicalSystem(blocks=[Level()], **OPTIONS).partial_fit(series[:48]).partial_fit(series[48:])
    assert batches.n_samples_ == 90
    model.set_params(blocks=None)  # the fit stays one of blocks
    assert model.forecast(series, 3).mean.shape == (1, 3, 1)
    assert model.fit(series).transition_.shape == (1, 1)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"blocks": []}, "must be None or a list of blocks"),
        ({"blocks": Level()}, "must be None or a list of blocks"),
        ({"blocks": ["trend"]}, "must be None or a list of blocks"),
        ({"blocks": [Level(), Trend()]}, "no data can tell them apart"),
        ({"blocks": [Season(12), Season(12)]}, "two of a season of 12"),
        ({"blocks": [Season(12, harmonics=7)]}, "at most 6 waves"),
        ({"blocks": [Season(1)]}, "period"),
        ({"blocks": [Cycle(8, damping=1.5)]}, "damping"),
        ({"blocks": [Level()], "n_components": 2}, "n_components=2"),
        ({"blocks": [Level()], "learn_prior": "ard"}, "learn_prior='ard'"),
        ({"blocks": [Level()], "initial": "learned"}, "initial='learned'"),
    ],
)
def test_what_is_no_set_of_blocks_is_refused(params, words, series):
    model = VBLinearDynamicalSystem(**params)
    with pytest.raises(ValueError, match=words):
        model.fit(series)
    assert not hasattr(model, "lower_bound_")


def test_what_does_not_go_with_blocks_is_refused_by_name(series):
    model = VBLinearDynamicalSystem(blocks=[Level()], **OPTIONS)
    with pytest.raises(ValueError, match="no 'inputs' of states"):
        model.fit(series, inputs=np.ones((96, 1)))
    with pytest.raises(ValueError, match="takes no 'blocks'"):
        VBLinearDynamicalSystem.from_parameters([[1.0]], [[1.0]], [1.0], blocks=[Level()])
    with pytest.raises(AttributeError, match="decompose") as error:
        _ = VBLinearDynamicalSystem(1).decompose
    assert "needs 'blocks'" in str(error.value.__cause__)
    with pytest.raises(TypeError, match="has no meaning"):
        model.fit(series).log_evidence(series, kind="laplace")
