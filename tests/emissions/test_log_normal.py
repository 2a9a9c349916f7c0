"""Log-normal numbers, against the Gaussian of their logarithms and SciPy."""

import numpy as np
import pytest
from scipy import stats

from skvbem import VBHMM, VBMixture
from skvbem.emissions import Gaussian, LogNormal, ZeroInflated

approx = pytest.approx


def incomes(rng, n=120):
    return np.exp(rng.normal(3.0 * rng.integers(2, size=(n, 1)), [0.5, 1.0], size=(n, 2)))


def fitted(X, emission, made=VBMixture):
    return made(2, emission=emission, n_init=2, random_state=0, tol=1e-9).fit(X)


@pytest.mark.parametrize("made", [VBMixture, VBHMM])
def test_it_is_the_gaussian_of_logarithms_in_the_units_of_the_numbers(made, rng):
    X = incomes(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model, of_logs = fitted(X, LogNormal(), made), fitted(np.log(X), Gaussian("diag"), made)
    volume = np.nansum(np.log(X))
    assert model.lower_bound_ == approx(of_logs.lower_bound_ - volume, abs=1e-6)
    assert model.score(X) * len(X) == approx(of_logs.score(np.log(X)) * len(X) - volume, rel=1e-9)
    named = model.parameters_["lognormal"]
    means = np.sort(of_logs.parameters_["gaussian"]["means"], axis=0)
    assert np.sort(named["log_means"], axis=0) == approx(means, rel=1e-6)
    scaled = fitted(X * 1e5, LogNormal(), made)
    n = np.count_nonzero(~np.isnan(X))
    assert scaled.lower_bound_ == approx(model.lower_bound_ - n * np.log(1e5), abs=1e-6)


def test_parameters_that_are_given_have_the_densities_of_scipy(rng):
    parameters = {"log_means": [[0.0, 1.0], [2.0, 3.0]], "log_variances": [[1.0, 0.25], [1e-9, 4.0]]}
    model = VBMixture.from_parameters([0.4, 0.6], parameters, emission=LogNormal())
    laws = [stats.lognorm(np.sqrt(v), scale=np.exp(m)) for m, v in zip(*parameters.values())]
    X = np.concatenate([law.rvs((5, 2), random_state=0) for law in laws])
    exact = np.logaddexp(*(np.log(w) + law.logpdf(X).sum(axis=1) for w, law in zip([0.4, 0.6], laws)))
    assert model.score_samples(X) == approx(exact, rel=1e-6)  # a narrow component far away
    named = model.parameters_["lognormal"]
    assert named["means"] == approx(np.array([law.mean() for law in laws]))
    assert named["deviations"] == approx(np.array([law.std() for law in laws]))
    at = np.array([0.5, 2.0])
    below = LogNormal().cumulative(at, named["means"][0], named["deviations"][0])
    assert below == approx(laws[0].cdf(at))
    assert LogNormal().cumulative(np.array([-1.0, 0.0]), named["means"][0], named["deviations"][0]) == approx(0.0)


def test_zeros_are_refused_by_name_and_taken_beside_it(rng):
    X = np.where(rng.random((150, 1)) < 0.3, 0.0, np.exp(rng.normal(1.0, 0.5, size=(150, 1))))
    with pytest.raises(ValueError, match=r"ZeroInflated.LogNormal... takes zeros"):
        VBMixture(1, emission=LogNormal()).fit(X)
    model = VBMixture(1, emission=ZeroInflated(LogNormal()), random_state=0).fit(X)
    named = model.parameters_["zero_inflated"]
    assert named["inflation"].item() == approx(np.mean(X == 0), abs=0.02)
    assert named["means"].item() == approx(X.mean(), rel=0.05)


def test_missing_numbers_are_filled_with_means_and_forecasts_have_intervals(rng):
    X = np.exp(rng.normal(0.0, 1.0, size=(200, 1)))
    X[3] = np.nan
    model = VBHMM(1, emission=LogNormal(), random_state=0).fit(X)
    assert model.impute(X)[3] == approx(model.parameters_["lognormal"]["means"][0])
    ahead = model.forecast(X, 1)
    assert 0 < ahead.lower["x0"] < ahead.expected["x0"] < ahead.upper["x0"]


def test_reports_have_medians_of_numbers_whose_means_may_be_infinite(rng):
    X = np.exp(rng.normal(1.0, 2.0, size=(40, 1)))
    model = VBMixture(1, emission=LogNormal(), random_state=0).fit(X)
    named = model.parameters_["lognormal"]
    assert "x0 mean" not in str(model.summary())
    rows = model.summary(X).to_frame().query("table == 'lognormal'").set_index("row")
    median, spread = rows.loc["x0 median"], rows.loc["x0 log s.d."]
    assert np.log(median["estimate"]) == approx(named["log_means"].item(), abs=0.1)
    assert np.log([median["lower"], median["upper"]]) == approx(
        np.log(X).mean() + np.array([-1, 1]) * 2.02 * np.log(X).std() / np.sqrt(40), abs=0.2
    )
    assert spread["lower"] < np.log(X).std() < spread["upper"]


def test_probabilities_stay_where_means_overflow(rng):
    """A deviation of logarithms of 40: the mean is above all doubles."""
    X = np.exp(rng.normal(0.0, 40.0, size=(200, 1)))
    model = VBMixture(1, emission=LogNormal(), method="ml", random_state=0).fit(X)
    logs = np.log(X)
    assert model.pseudo_residuals(X).normal == approx((logs - logs.mean()) / logs.std(), abs=1e-6)
