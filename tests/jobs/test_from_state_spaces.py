"""Jobs of people who come from statsmodels and pykalman, with statsmodels' maxima or the joint normal distribution."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from skvbem import VBLinearDynamicalSystem
from skvbem.datasets import load_co2, load_nile

pd = pytest.importorskip("pandas")
approx = pytest.approx


@pytest.fixture(scope="module")
def nile():
    return load_nile(as_frame=True).data


@pytest.fixture(scope="module")
def likely(nile):
    return VBLinearDynamicalSystem(1, method="ml", tol=1e-9, random_state=0).fit(nile)


def joint(model, n):
    """Means and covariances of n steps of one state and one column: of states, of states with rows, and of rows."""
    a, c = model.transition_.item(), model.loadings_.item()
    states = np.zeros((n, n))
    variance = 1.0
    for t in range(n):
        states[t, t:] = states[t:, t] = variance * a ** np.arange(n - t)
        variance = a * a * variance + 1
    return states, c * states, c * c * states + model.noise_variance_ * np.eye(n)


def test_the_likelihood_of_statsmodels(likely, nile):
    """'AR(1) with measurement error of the Nile.' statsmodels' maximum of the same model, a and the share of noise."""
    assert likely.log_likelihood_ == approx(-125.0417010588 - 100 * np.log(nile["volume"].std(ddof=0)), abs=1e-5)
    assert likely.transition_.item() == approx(0.83006, abs=1e-4)
    assert likely.noise_variance_.item() / nile["volume"].var(ddof=0) == approx(0.39386, abs=1e-4)


def test_a_smoothed_level(likely, nile):
    """'The level of the river in each year, and how sure it is.' The normal distribution of all hundred years."""
    states, with_rows, rows = joint(likely, 100)
    mean, covariance = likely.transform(nile, return_cov=True)
    gain = np.linalg.solve(rows, with_rows.T).T
    np.testing.assert_allclose(mean[:, 0], gain @ (nile["volume"] - likely.offset_.item()), atol=1e-6)
    np.testing.assert_allclose(covariance[:, 0, 0], np.diag(states - gain @ with_rows.T), atol=1e-6)


def test_twenty_years_without_a_measurement(nile):
    """'NaN for 1891 to 1910.' The likelihood of the years that are there, and the conditional mean of the others."""
    gaps = nile.astype(float)
    gaps.iloc[20:40] = np.nan
    model = VBLinearDynamicalSystem(1, method="ml", n_init=1, random_state=0).fit(gaps)
    there = gaps["volume"].notna().to_numpy()
    _, _, rows = joint(model, 100)
    known = gaps["volume"][there] - model.offset_.item()
    of_known = rows[np.ix_(there, there)]
    assert model.log_likelihood_ == approx(multivariate_normal(cov=of_known).logpdf(known), abs=1e-6)
    expected = model.offset_.item() + rows[np.ix_(~there, there)] @ np.linalg.solve(of_known, known)
    np.testing.assert_allclose(model.impute(gaps)["volume"][~there], expected, atol=1e-6)


def test_a_forecast_with_intervals(likely, nile):
    """'get_forecast(10).conf_int()': the plug-in forecast."""
    ahead = likely.forecast(nile, 10, level=0.95)
    last, covariance = (each[-1] for each in likely.filter(nile, return_cov=True))
    a, c = likely.transition_.item(), likely.loadings_.item()
    powers = a ** np.arange(1, 11)
    np.testing.assert_allclose(ahead.mean[0, :, 0], likely.offset_.item() + c * powers * last)
    variance = c * c * (powers**2 * covariance.item() + np.cumsum(powers**2) / a**2) + likely.noise_variance_
    np.testing.assert_allclose(ahead.upper - ahead.lower, 2 * 1.959964 * np.sqrt(variance)[None, :, None], rtol=1e-6)


def test_a_step_at_a_known_date(nile):
    """'exog: did the dam of 1899 lower the flow?'"""
    dam = (nile.index.to_numpy() >= 1899).astype(float)[:, None]
    without, with_dam = (
        VBLinearDynamicalSystem(1, random_state=0).fit(nile, output_inputs=inputs) for inputs in (None, dam)
    )
    assert with_dam.lower_bound_ > without.lower_bound_ + 10
    assert with_dam.output_input_.item() == approx(-247.8, abs=30)  # the means of before and after differ by as much


def test_how_many_states(nile):
    """'Is there a trend besides the level?'"""
    bounds = {k: VBLinearDynamicalSystem(k, random_state=0).fit(nile).lower_bound_ for k in (1, 2)}
    assert pd.Series(bounds).idxmax() == 1


def test_a_season_and_months_without_a_value():
    """'Monthly carbon dioxide with a season: what was it in the months without a value?'"""
    air = load_co2(as_frame=True).data.iloc[:120]
    angle = 2 * np.pi * np.arange(120) / 12
    season = np.column_stack([np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)])
    held = air.copy()
    held.iloc[60:63] = np.nan
    model = VBLinearDynamicalSystem(1, tol=1e-2, n_init=1, random_state=0).fit(held, output_inputs=season)
    filled = model.impute(held, output_inputs=season)
    assert np.abs(filled.iloc[60:63] - air.iloc[60:63]).to_numpy().max() < 1
    assert not filled.isna().to_numpy().any()


def test_a_forecast_of_five_steps_as_statsmodels_writes_it(likely):
    """'forecast(5)', where X must be told to go on from."""
    with pytest.raises(TypeError, match=r"forecast\(X, n_steps=5\)"):
        likely.forecast(5)
