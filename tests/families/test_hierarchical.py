"""Priors with hidden hyperparameters, against integrals over these."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import gamma

from skvbem.families import Dirichlet, Gamma, Product
from skvbem.families.hierarchical import Hierarchical, hidden_rate_prior
from skvbem.families.hyperpriors import GammaHyperprior
from skvbem.families.parallel_generator import ParallelGenerator

approx = pytest.approx


def rates_of_unknown_scale(shape, n_components, hyper_shape, hyper_rate):
    """Gamma rates (n_components, n_features) of known shapes; each feature's scale has a Gamma prior."""
    shape = np.broadcast_to(shape, (n_components, len(hyper_shape))).astype(float)
    d = shape.shape[1]
    loadings = np.zeros((d, n_components, 2, d))
    loadings[np.arange(d), :, 1, np.arange(d)] = 1.0
    return Hierarchical(
        Gamma.from_parameters(shape, np.zeros(shape.shape)),
        GammaHyperprior(
            np.asarray(hyper_shape, dtype=float),
            np.asarray(hyper_rate, dtype=float),
            shape.sum(axis=0),
            loadings.reshape(d, -1),
            -float(gammaln(shape).sum()),
        ),
    )


@pytest.fixture
def prior():
    return rates_of_unknown_scale([[1.5, 0.7], [0.8, 2.0], [1.1, 0.9]], 3, [1.2, 3.0], [0.6, 2.0])


def log_density_given(prior, natural, scales):
    """ln p(theta | nu) relative to the base, written out."""
    shape = prior.base.shape
    rates = -natural.reshape(3, 2, 2)[:, 1]
    of_cells = shape * np.log(scales) - gammaln(shape) - scales * rates
    return float(of_cells.sum())


def test_the_log_normalizer_is_an_integral_over_hyperparameters(prior, rng):
    """And expected statistics are means under what is integrated."""
    natural = prior.natural(rng.gamma(1.0, size=(3, 2)))
    statistics, log_z = prior.hyperprior.expect(natural)
    whole, mean = 0.0, []
    for j in range(2):  # features are independent
        c, d = prior.hyperprior.shape[j], prior.hyperprior.rate[j]

        def density(scale, j=j, c=c, d=d):
            shape, rates = prior.base.shape[:, j], -natural.reshape(3, 2, 2)[:, 1, j]
            given = (shape * np.log(scale) - gammaln(shape) - scale * rates).sum()
            return np.exp(given) * gamma.pdf(scale, c, scale=1 / d)

        integral = quad(density, 0, np.inf, epsabs=0, epsrel=1e-11)[0]
        whole += np.log(integral)
        mean.append(quad(lambda s, f=density: s * f(s), 0, np.inf, epsabs=0, epsrel=1e-11)[0] / integral)
    assert log_z == approx(whole, abs=1e-9)
    assert statistics.reshape(3, 2, 2)[:, 0] == approx(0)
    assert statistics.reshape(3, 2, 2)[:, 1] == approx(np.tile(mean, (3, 1)), rel=1e-8)


def test_statistics_are_derivatives_of_the_log_normalizer(prior, rng):
    natural = prior.natural(rng.gamma(1.0, size=(3, 2)))
    statistics, _ = prior.hyperprior.expect(natural)
    step = 1e-5 * np.eye(len(natural))
    up, down = (prior.hyperprior.expect(natural[:, None] + sign * step)[1] for sign in (1, -1))
    assert (up - down) / 2e-5 == approx(statistics, rel=1e-6, abs=1e-7)


def test_the_prior_without_its_hyperparameters_integrates_to_one():
    """The base times Z of q(nu) is the density of the parameters; in the measure of the log rate."""
    prior = rates_of_unknown_scale([[1.5]], 1, [1.2], [0.6])

    def density(log_rate):
        point = np.exp([[log_rate]])
        log_z = prior.hyperprior.expect(prior.natural(point))[1]
        return np.exp(prior.log_density(point) + log_z)

    assert quad(density, -60, 60, epsabs=1e-12, limit=200)[0] == approx(1.0, abs=1e-9)


def test_draws_of_parameters_are_those_of_the_hierarchy(prior):
    rng = np.random.default_rng(3)
    rates = np.stack([prior.sample(rng) for _ in range(4000)])
    # of the inverse of a Gamma variable the mean is d / (c - 1)
    means = prior.base.shape * prior.hyperprior.rate / (prior.hyperprior.shape - 1)
    heavy, light = rates[:, :, 0], rates[:, :, 1]
    assert light.mean(axis=0) == approx(means[:, 1], abs=5 * light.std(axis=0).max() / np.sqrt(len(rates)))
    # a mean of infinite variance: of heavy tails the median is compared, by draws of the definition
    scales = gamma.rvs(1.2, scale=1 / 0.6, size=200_000, random_state=1)
    defined = np.median(gamma.rvs(1.5, size=200_000, random_state=2) / scales)
    assert np.median(heavy[:, 0]) == approx(defined, rel=0.1)


def test_draws_of_hyperparameters_have_the_expected_statistics(prior, rng):
    natural = prior.natural(rng.gamma(1.0, size=(3, 2)))
    expected, _ = prior.hyperprior.expect(natural)
    lanes = np.repeat(natural[:, None], 2000, axis=1)
    drawn = prior.hyperprior.draw(lanes, rng)
    error = drawn.std(axis=1) / np.sqrt(2000)
    assert (np.abs(drawn.mean(axis=1) - expected) <= 4.5 * error).all()
    of_prior = prior.hyperprior.draw_from_prior(lanes, rng)
    error = of_prior.std(axis=1) / np.sqrt(2000)
    assert (np.abs(of_prior.mean(axis=1) - prior.hyperprior.prior_statistics) <= 4.5 * error).all()


def test_lanes_do_not_know_of_each_other(prior, rng):
    natural = np.stack([prior.natural(rng.gamma(1.0, size=(3, 2))) for _ in range(3)], axis=1)
    statistics, log_z = prior.hyperprior.expect(natural)
    streams = rng.integers(0, 2**64, size=(4, 3), dtype=np.uint64)
    drawn = prior.hyperprior.draw(natural, ParallelGenerator(streams.copy()))
    for lane in range(3):
        alone = prior.hyperprior.expect(natural[:, lane])
        assert statistics[:, lane] == approx(alone[0])
        assert log_z[lane] == approx(alone[1])
        of_lane = ParallelGenerator(streams[:, [lane]].copy())
        assert np.array_equal(drawn[:, [lane]], prior.hyperprior.draw(natural[:, [lane]], of_lane))


def test_a_posterior_is_of_the_family_of_the_base(prior, rng):
    """Its divergence from the base is the integral of q (ln q - ln base)."""
    statistics = prior.hyperprior.prior_statistics + np.tile([3.0, 1.0, 2.0, 2.0], 3)
    posterior = prior + statistics
    assert isinstance(posterior, Gamma)
    points = np.stack([posterior.sample(rng) for _ in range(20_000)], axis=-1)
    log_ratio = (posterior + np.zeros((12, 1))).log_density(points) - prior.log_density(points)
    error = log_ratio.std() / np.sqrt(log_ratio.size)
    assert posterior.kl(prior) == approx(log_ratio.mean(), abs=4.5 * error)


def test_where_nothing_is_added_there_is_no_log_normalizer(prior):
    statistics = np.stack([np.zeros(12), np.full(12, 2.0)], axis=1)
    increments = prior.log_normalizer_increment(statistics)
    assert increments[0] == 0.0
    assert increments[1] == approx(float((prior + np.full(12, 2.0)).log_normalizer()))
    assert prior.with_hyperparameters(statistics)[:, 0] == approx(prior.hyperprior.prior_statistics)
    assert np.array_equal(prior.with_hyperparameters(statistics)[:, 1], statistics[:, 1])


def test_a_product_has_the_hyperparameters_of_its_blocks(prior, rng):
    weights = Dirichlet.from_rows([[1.0, 2.0, 1.0]])
    product = Product((weights, prior), (3, 12))
    assert Product((weights, weights), (3, 3)).hyperprior is None
    natural = product.natural((np.array([0.2, 0.3, 0.5]), rng.gamma(1.0, size=(3, 2))))
    statistics, log_z = product.hyperprior.expect(natural)
    alone = prior.hyperprior.expect(natural[3:])
    assert np.array_equal(statistics, np.concatenate([np.zeros(3), alone[0]]))
    assert log_z == alone[1]
    drawn = product.hyperprior.draw(natural, np.random.default_rng(0))
    assert np.array_equal(drawn[3:], prior.hyperprior.draw(natural[3:], np.random.default_rng(0)))
    assert not drawn[:3].any()
    of_prior = product.hyperprior.draw_from_prior(natural, np.random.default_rng(0))
    assert np.array_equal(of_prior[3:], prior.hyperprior.draw_from_prior(natural[3:], np.random.default_rng(0)))
    assert np.array_equal(product.hyperprior.prior_statistics[3:], prior.hyperprior.prior_statistics)
    assert product.is_valid
    started = product.with_hyperparameters(np.zeros(15))
    assert (product + started).is_valid


def test_hidden_rates_are_the_hierarchy_written_out(rng):
    """As the one of these tests, which is written out, but for the floor."""
    shape, mean = np.array([1.5, 0.7]), np.array([2.0, 0.4])
    prior = hidden_rate_prior(3, shape, 0.5, mean, 0.0)
    defined = rates_of_unknown_scale(shape, 3, [0.5, 0.5], 0.5 / mean)
    natural = prior.natural(rng.gamma(1.0, size=(3, 2)))
    assert prior.coordinates == approx(defined.coordinates)
    for found, expected in zip(prior.hyperprior.expect(natural), defined.hyperprior.expect(natural)):
        assert found == approx(expected)
    assert hidden_rate_prior(3, shape, 0.5, mean, 1e-6).base.rate == approx(np.full((3, 2), 1e-6))
