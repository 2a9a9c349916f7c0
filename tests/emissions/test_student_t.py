"""Measurements with heavy tails, against the definition, quadrature, and numbers of record."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import skvbem
from skvbem import VBHMM, VBMixture, VBNetwork
from skvbem.emissions import Gaussian, StudentT, ZeroInflated

approx = pytest.approx

# Passage times of light, 66 of them, by Simon Newcomb (Stigler 1977), in deviations from 24 800 ns.
NEWCOMB = np.fromstring(
    "28 26 33 24 34 -44 27 16 40 -2 29 22 24 21 25 30 23 29 31 19 24 20 36 32 36 28 25 21 28 29 37 25 28 26 30 32 36 "
    "26 30 22 36 23 27 27 28 27 31 27 26 33 26 32 32 24 39 28 24 25 32 25 29 27 28 29 16 23",
    sep=" ",
)[:, None]
# Of df: lower bounds, and evidences by quadrature, of these standardized; means N(0, 1/tau), tau ~ Gamma(1, 1/2).
OF_RECORD = {
    1: (-69.30949, -68.50707),
    2: (-64.58292, -63.98589),
    4: (-65.65367, -65.23691),
    8: (-70.52120, -70.22087),
    16: (-77.65009, -77.39769),
    np.inf: (-97.78351, -97.78351),
}


def known(X, df):
    """The prior of the record, in the units of the data."""
    variance = [[float(X.var())]] if X.shape[1] == 1 else np.diag(X.var(axis=0))
    options = {"mean_precision_prior": 1.0, "degrees_of_freedom_prior": X.shape[1] + 1.0, "covariance_prior": variance}
    return StudentT(df, **options)


def fitted(X, emission, n_components=1, **options):
    return VBMixture(n_components, emission=emission, n_init=1, random_state=0, tol=1e-10).fit(X, **options)


@pytest.mark.parametrize("df", OF_RECORD)
def test_bounds_are_those_of_record(df):
    bound, evidence = OF_RECORD[df]
    model, volume = fitted(NEWCOMB, known(NEWCOMB, df)), len(NEWCOMB) * np.log(NEWCOMB.std())
    assert model.lower_bound_ + volume == approx(bound, abs=2e-5)
    assert model.log_evidence(NEWCOMB, kind="laplace").value + volume == approx(evidence, abs=0.03)


def test_a_sampled_evidence_is_that_of_quadrature():
    volume = len(NEWCOMB) * np.log(NEWCOMB.std())
    found = fitted(NEWCOMB, known(NEWCOMB, 4)).log_evidence(NEWCOMB, kind="importance", random_state=0)
    assert found.value + volume == approx(OF_RECORD[4][1], abs=0.03)


def log_evidence_by_quadrature(x, df):
    """Of one column in its own unit, means N(0, 1/tau), tau ~ Gamma(1, 1/2), by sums over fine grids."""
    mean, log_tau = np.linspace(-10, 10, 801)[:, None], np.linspace(-9, 6, 601)
    tau = np.exp(log_tau)
    density = stats.norm(0, tau**-0.5).logpdf(mean) + stats.expon(scale=2.0).logpdf(tau) + log_tau
    for value in x:
        density = density + stats.t(df, mean, tau**-0.5).logpdf(value)
    return logsumexp(density) + np.log(20 / 800 * 15 / 600)


def test_the_bound_of_tiny_data_is_below_the_evidence():
    x = np.array([0.3, -0.4, 2.5, 0.1])
    x = (x - x.mean()) / x.std()
    exact, found = log_evidence_by_quadrature(x, 3), fitted(x[:, None], known(x[:, None], 3)).lower_bound_
    assert exact - 1.0 < found <= exact


def test_with_infinitely_many_degrees_of_freedom_it_is_the_gaussian(rng):
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + 5
    X[rng.random(X.shape) < 0.2] = np.nan
    gaussian = fitted(X, Gaussian(), 2).lower_bound_
    assert fitted(X, StudentT(np.inf), 2).lower_bound_ == gaussian
    assert fitted(X, StudentT(1e7), 2).lower_bound_ == approx(gaussian, abs=1e-3)


def test_weights_are_repeats_and_units_are_none(rng):
    X = rng.standard_t(3, size=(30, 2))
    X[rng.random(X.shape) < 0.2] = np.nan
    weight, unit = rng.integers(1, 4, size=30), np.array([1e-3, 50.0])
    model = fitted(X, StudentT(3), sample_weight=weight)
    assert fitted(np.repeat(X, weight, axis=0), StudentT(3)).lower_bound_ == approx(model.lower_bound_, rel=1e-9)
    volume = (~np.isnan(X) * weight[:, None]).sum(axis=0) @ np.log(unit)
    scaled = fitted(X * unit + 7.0, StudentT(3), sample_weight=weight).lower_bound_
    assert scaled == approx(model.lower_bound_ - volume, rel=1e-8)


def test_most_likely_parameters_are_those_of_scipy(rng):
    X = rng.standard_t(3, size=(200, 1)) * 2 + 5
    model = VBMixture(1, emission=StudentT(3), method="ml", n_init=1, tol=1e-12, max_iter=2000, random_state=0).fit(X)
    _, mean, scale = stats.t.fit(X.ravel(), fix_df=3)
    numbers = model.parameters_["student_t"]
    assert numbers["means"][0, 0] == approx(mean, abs=1e-3)
    assert numbers["scales"][0, 0, 0] == approx(scale**2, rel=1e-3)
    assert model.score(X) == approx(stats.t(3, mean, scale).logpdf(X).mean(), abs=1e-6)


def test_outliers_make_no_component_of_their_own():
    bounds = {k: fitted(NEWCOMB, StudentT(2), k).lower_bound_ for k in (1, 2)}
    assert bounds[1] > bounds[2]
    assert bounds[1] > fitted(NEWCOMB, Gaussian(), 2).lower_bound_ + 3


def test_a_chain_and_a_network_beside_other_columns(rng, tmp_path):
    state = np.arange(100) // 20 % 2
    X = rng.standard_t(3, size=(100, 3)) + 6 * state[:, None]
    X[:, 2] = rng.poisson(4.0, size=100) * (rng.random(100) < 0.7)
    X[rng.random(X.shape) < 0.1] = np.nan
    emission = [("size", StudentT(3), [0, 1]), ("catches", ZeroInflated(), 2)]
    chain = VBHMM(2, emission=emission, n_init=2, random_state=0).fit(X)
    assert np.sort(chain.parameters_["size"]["means"][:, 0]) == approx([0, 6], abs=0.7)
    forecast = chain.forecast(X, 1)
    assert forecast.lower["x0"] < forecast.expected["x0"] < forecast.upper["x0"]
    assert np.isfinite(chain.impute(X)).all()
    skvbem.save(chain, tmp_path / "chain")
    assert skvbem.load(tmp_path / "chain").score(X) == chain.score(X)
    again = VBHMM(2, emission=emission, method="map", n_init=2, random_state=0).fit(X)
    assert np.sort(again.parameters_["size"]["means"][:, 0]) == approx([0, 6], abs=0.7)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    nodes = [("a", StudentT(3), "a"), ("b", StudentT(3), "b")]
    network = VBNetwork([("h", "a"), ("h", "b")], latents={"h": 2}, emission=nodes, n_init=2, random_state=0).fit(frame)
    assert np.isfinite(network.lower_bound_)


def test_parameters_that_are_given_are_those_of_the_model():
    given = {"means": [[0.0, 1.0], [4.0, 5.0]], "scales": np.array([np.eye(2), 2 * np.eye(2)])}
    model, row = VBMixture.from_parameters([0.4, 0.6], given, emission=StudentT(3)), [1.0, 9.0]
    density = sum(
        w * stats.multivariate_t(m, s, df=3).pdf(row) for w, m, s in zip([0.4, 0.6], given["means"], given["scales"])
    )
    assert model.score_samples([row]) == approx(np.log(density))
    drawn, labels = model.sample(4000, random_state=0)
    assert np.median(drawn[labels == 1], axis=0) == approx([4.0, 5.0], abs=0.15)


@pytest.mark.parametrize("df", [0.0, -1.0, "auto", None])
def test_degrees_of_freedom_are_a_number(df):
    with pytest.raises(ValueError, match="The 'df' parameter of StudentT must be a float"):
        VBMixture(emission=StudentT(df)).fit([[0.0], [1.0]])
