"""Parameters of many draws at once are those of one draw after the other, for fits of every kind of columns."""

import numpy as np
import pytest

from skvbem import VBHMM, VBFactorAnalysis, VBMixture, VBNetwork
from skvbem.emissions import Bernoulli, Categorical, Exponential, FactorGaussian, Gaussian, Multinomial, Poisson
from skvbem.fitted.base import Fitted

EMISSIONS = {
    "full": Gaussian(),
    "tied": Gaussian(covariance_type="tied"),
    "diagonal": Gaussian(covariance_type="diag"),
    "spherical": Gaussian(covariance_type="spherical"),
    "categories": Categorical(),
    "yes or no": Bernoulli(),
    "counts": Poisson(),
    "times": Exponential(),
    "shares": Multinomial(),
    "factors": FactorGaussian(1),
    "factors of their own": FactorGaussian("auto"),
    "groups": [("some", Gaussian(), [0, 1]), ("others", Categorical(), [2, 3])],
}


def rows(rng, name):
    if name in ("full", "tied", "diagonal", "spherical", "factors", "factors of their own"):
        return rng.normal(size=(40, 4)) + 3.0 * (rng.random((40, 1)) < 0.5)
    if name == "times":
        return rng.exponential(size=(40, 4))
    return rng.integers(0, 2 if name == "yes or no" else 3, size=(40, 4))


@pytest.mark.parametrize("estimator", [VBMixture, VBHMM])
@pytest.mark.parametrize("name", EMISSIONS)
def test_many_draws_at_once(estimator, name, rng):
    fitted = estimator(2, emission=EMISSIONS[name], n_init=1, random_state=0).fit(rows(rng, name)).fitted
    same(fitted, rng)


@pytest.mark.parametrize("n_factors", [0, 1, 2])
def test_many_draws_of_factors_at_once(n_factors, rng):
    same(VBFactorAnalysis(n_factors, n_init=1, random_state=0).fit(rows(rng, "factors")).fitted, rng)


def test_many_draws_of_a_mixed_network_at_once(rng):
    X = np.column_stack([rows(rng, "full")[:, :2], rows(rng, "counts")[:, 2:]]).astype(object)
    structure = {"x1": ["h0", "x2"], "x2": ["h0"], "x3": ["h0"]}
    model = VBNetwork(structure, latents=2, emission={"categorical": [2, 3], "gaussian": [0, 1]}, n_init=1)
    same(model.set_params(random_state=0).fit(X).fitted, rng)


def same(fitted, rng):
    prior = fitted.model.prior
    many = prior.natural((prior + np.repeat(fitted.statistics[:, None], 3, axis=1)).sample(rng))
    at_once, one_by_one = fitted.parameters_of_draws(many), Fitted.parameters_of_draws(fitted, many)
    assert list(at_once) == list(one_by_one)
    for group, by_name in one_by_one.items():
        assert list(at_once[group]) == list(by_name)
        for name, each in by_name.items():
            assert at_once[group][name].shape == each.shape
            np.testing.assert_allclose(at_once[group][name], each, rtol=1e-12, atol=1e-13)
