"""Hidden scales and weights of means, against their densities written out and integrals over them."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, norm, wishart

from skvbem.families import NormalGamma, NormalPoint, NormalWishart
from skvbem.families.hierarchical import (
    HiddenMeanPrecision,
    HiddenScale,
    Hierarchical,
    normal_gamma_prior,
    normal_wishart_prior,
)
from skvbem.families.parallel_generator import ParallelGenerator

approx = pytest.approx

MEAN = np.array([0.3, -0.2])
SCALE = np.array([[2.0, 0.4], [0.4, 1.0]])
WEIGHT = HiddenMeanPrecision(1.5, 0.8)
BY_COLUMN = WEIGHT._replace(by_column=True)
NO_FLOOR = np.zeros((2, 2))


def full(weight, scale, shared=False):
    return normal_wishart_prior(3, MEAN, weight, 3.5, scale, shared=shared)


def diagonal(weight, scale):
    return normal_gamma_prior(3, MEAN, weight, 1.5, scale)


OF_MATRIX, OF_COLUMNS = HiddenScale(2.5, SCALE, NO_FLOOR), HiddenScale(1.2, np.array([2.0, 0.5]), np.zeros(2))
PRIORS = {
    "full": lambda: full(WEIGHT, OF_MATRIX),
    "full, mean precision known": lambda: full(0.7, OF_MATRIX),
    "full, scale known": lambda: full(WEIGHT, SCALE),
    "tied": lambda: full(WEIGHT, OF_MATRIX, shared=True),
    "diag": lambda: diagonal(WEIGHT, OF_COLUMNS),
    "diag, mean precision known": lambda: diagonal(0.7, OF_COLUMNS),
    "diag, scale known": lambda: diagonal(WEIGHT, np.array([2.0, 0.5])),
    "diag, by column": lambda: diagonal(BY_COLUMN, OF_COLUMNS),
    "spherical": lambda: diagonal(WEIGHT, HiddenScale(1.2, np.array([2.0]), np.zeros(1))),
    "spherical, by column": lambda: diagonal(BY_COLUMN, HiddenScale(1.2, np.array([2.0]), np.zeros(1))),
}


@pytest.fixture(params=list(PRIORS))
def prior(request):
    return PRIORS[request.param]()


def point_of(prior, rng):
    """Parameters drawn near 1, of the shapes that the prior has."""
    return (prior.base + prior.hyperprior.prior_statistics).sample(rng)


def given(prior, scale, weight):
    """The prior with nothing hidden, at a scale and a weight of means."""
    if isinstance(prior.base, NormalWishart):
        return normal_wishart_prior(3, MEAN, weight, 3.5, scale, shared=prior.base.shared)
    return normal_gamma_prior(3, MEAN, weight, 1.5, scale)


def test_nothing_hidden_is_no_hierarchy():
    assert isinstance(full(0.7, SCALE), NormalWishart)
    assert isinstance(diagonal(0.7, np.array([2.0, 0.5])), NormalGamma)
    assert all(isinstance(make(), Hierarchical) for make in PRIORS.values())


def test_weights_by_column_are_those_of_columns_each_alone(rng):
    """The density of independent columns is the product of theirs."""
    whole, parts = diagonal(BY_COLUMN, OF_COLUMNS), []
    for j in range(2):
        scale = HiddenScale(1.2, OF_COLUMNS.mean[j : j + 1], np.zeros(1))
        parts.append(normal_gamma_prior(3, MEAN[j : j + 1], WEIGHT, 1.5, scale))
    mean, precision = rng.normal(size=(3, 2)), rng.gamma(2.0, size=(3, 2))
    of_columns = [NormalPoint(mean[:, [j]], precision[:, [j]]) for j in range(2)]
    by_column = sum(float(part.log_density_as_prior(point)) for part, point in zip(parts, of_columns))
    assert float(whole.log_density_as_prior(NormalPoint(mean, precision))) == approx(by_column, abs=1e-10)


@pytest.mark.parametrize("name", ["full", "tied", "diag", "spherical"])
def test_given_hyperparameters_the_density_is_that_of_the_family(name, rng):
    """ln Z of q(nu) at nearly certain hyperparameters is what the base lacks of that density."""
    sure = 1e7
    weight, dof = HiddenMeanPrecision(0.6 * sure, sure), 2 * sure
    if name in ("full", "tied"):
        prior, scale = full(weight, HiddenScale(dof, SCALE, NO_FLOOR), shared=name == "tied"), SCALE
    else:
        scale = np.array([2.0, 0.5][: 2 if name == "diag" else 1])
        prior = diagonal(weight, HiddenScale(dof, scale, np.zeros(scale.shape)))
    known = given(prior, scale, 0.6)
    for _ in range(3):
        point = point_of(prior, rng)
        assert float(prior.log_density_as_prior(point)) == approx(float(known.log_density(point)), abs=1e-4)
    statistics = prior.hyperprior.prior_statistics
    assert prior.given_hyperparameters(statistics).coordinates == approx(known.coordinates)


def test_statistics_are_derivatives_of_the_log_normalizer(prior, rng):
    natural = prior.natural(point_of(prior, rng))
    statistics, _ = prior.hyperprior.expect(natural)
    step = 1e-5 * np.eye(len(natural))
    up, down = (prior.hyperprior.expect(natural[:, None] + sign * step)[1] for sign in (1, -1))
    assert (up - down) / 2e-5 == approx(statistics, rel=1e-6, abs=1e-7)


def test_a_hidden_scale_of_one_column_is_a_gamma_variable(rng):
    """Of one column both families are one, and ln Z is an integral over the scale and over the weight of means."""
    scale, weight = HiddenScale(2.5, np.array([2.0]), np.zeros(1)), HiddenMeanPrecision(1.5, 0.8)
    of_matrix = HiddenScale(2.5, np.array([[2.0]]), np.zeros((1, 1)))
    one = normal_gamma_prior(2, np.array([0.3]), weight, 3.5, scale)
    other = normal_wishart_prior(2, np.array([0.3]), weight, 3.5, of_matrix)
    mean, precision = rng.normal(size=(2, 1)), rng.gamma(2.0, size=(2, 1))
    of_one = float(one.log_density_as_prior(NormalPoint(mean, precision)))
    of_other = float(other.log_density_as_prior(NormalPoint(mean, precision[..., None])))
    assert of_other == approx(of_one, abs=1e-10)

    def of_scale(b):
        return np.prod(gamma.pdf(precision, 3.5 / 2, scale=2 / b)) * gamma.pdf(b, 2.5 / 2, scale=2 * 2.0 / 2.5)

    def of_weight(kappa):
        spread = 1 / np.sqrt(kappa * precision)
        return np.prod(norm.pdf(mean, 0.3, spread)) * gamma.pdf(kappa, 1.5, scale=1 / 0.8)

    integrals = [quad(density, 0, np.inf, epsabs=0, epsrel=1e-10)[0] for density in (of_scale, of_weight)]
    # with respect to means and precisions
    whole = float(one.log_density_as_prior(NormalPoint(mean, precision), basis="probability"))
    assert whole == approx(np.log(integrals).sum(), abs=1e-8)


def test_the_log_normalizer_is_a_mean_over_hyperparameters(rng):
    """Of matrices, with the scale drawn by another package's Wishart."""
    prior = full(0.7, OF_MATRIX)
    natural = prior.natural(point_of(prior, rng))
    drawn = wishart.rvs(df=2.5, scale=SCALE / 2.5, size=50_000, random_state=3)
    point = prior.from_natural(natural)
    log_given = 0.5 * 3 * 3.5 * np.linalg.slogdet(drawn)[1] - 0.5 * np.einsum("bij,kij->b", drawn, point.precision)
    known = given(prior, np.eye(2), 0.7)  # what is left of the normalizer at a scale of 1
    log_given -= float(known.log_normalizer())
    largest = log_given.max()
    ratios = np.exp(log_given - largest)
    error = ratios.std() / ratios.mean() / np.sqrt(len(ratios))
    assert error < 0.02
    assert float(prior.hyperprior.expect(natural)[1]) == approx(largest + np.log(ratios.mean()), abs=4.5 * error)


def test_the_hierarchy_integrates_to_one():
    scale, weight = HiddenScale(3.0, np.array([2.0]), np.zeros(1)), HiddenMeanPrecision(1.5, 0.8)
    prior = normal_gamma_prior(1, np.array([0.3]), weight, 3.5, scale)

    t, log_precision = (np.linspace(*ends, 600) for ends in ((-20, 20), (-30, 12)))
    far, log = (grid.ravel() for grid in np.meshgrid(t, log_precision))
    # in units in which neither tail is long
    away = np.sinh(far) * np.exp(-log / 2)
    points = NormalPoint((0.3 + away)[None, None], np.exp(log)[None, None])
    log_density = prior.log_density_as_prior(points, basis="probability") + log / 2 + np.log(np.cosh(far))
    whole = np.exp(log_density).sum() * (t[1] - t[0]) * (log_precision[1] - log_precision[0])
    assert whole == approx(1.0, abs=1e-6)


def test_the_floor_takes_next_to_nothing_of_the_mass():
    """The hyperprior with its floor is that without times a factor of at most 1."""
    at = 3 * 3.5 / 2
    masses = []
    for floor in (1e-3, 1e-6, 1e-9):
        drawn = wishart.rvs(df=3.0, scale=SCALE / 3.0, size=20_000, random_state=3)
        gone = np.linalg.slogdet(drawn)[1] - np.linalg.slogdet(drawn + floor * np.eye(2))[1]
        masses.append(np.exp(at * gone).mean())
    assert masses[0] < masses[1] < masses[2] <= 1.0
    assert masses[1] > 0.99
    known = full(0.7, HiddenScale(2.5, SCALE, 1e-6 * np.eye(2)))
    assert known.base.scale == approx(np.tile(1e-6 * np.eye(2), (3, 1, 1)))
    assert known.hyperprior.expect(known.expected_natural())[1] == approx(
        float(full(0.7, OF_MATRIX).hyperprior.expect(known.expected_natural())[1])
    )


def test_draws_of_hyperparameters_have_the_expected_statistics(prior, rng):
    natural = prior.natural(point_of(prior, rng))
    expected, _ = prior.hyperprior.expect(natural)
    lanes = np.repeat(natural[:, None], 2000, axis=1)
    for drawn, mean in (
        (prior.hyperprior.draw(lanes, rng), expected),
        (prior.hyperprior.draw_from_prior(lanes, rng), prior.hyperprior.prior_statistics),
    ):
        error = drawn.std(axis=1) / np.sqrt(2000)
        assert (np.abs(drawn.mean(axis=1) - mean) <= 4.5 * error + 1e-12).all()


def test_draws_of_a_scale_are_wishart_distributed(rng):
    """Their spread, too: the variance of an entry is n (V_ij^2 + V_ii V_jj)."""
    prior = full(0.7, OF_MATRIX)
    drawn = prior.hyperprior.draw_from_prior(np.zeros((len(prior.coordinates), 40_000)), rng)
    entries = drawn[prior.base.square_cells[0]]
    assert np.array_equal(entries, drawn[prior.base.square_cells[2]])
    scale = SCALE / 2.5
    variance = [2.5 * (scale[i, j] ** 2 + scale[i, i] * scale[j, j]) for i, j in ((0, 0), (0, 1), (1, 1))]
    assert entries.var(axis=1) == approx(variance, rel=0.1)


def test_lanes_do_not_know_of_each_other(prior, rng):
    natural = np.stack([prior.natural(point_of(prior, rng)) for _ in range(3)], axis=1)
    statistics, log_z = prior.hyperprior.expect(natural)
    streams = rng.integers(0, 2**64, size=(4, 3), dtype=np.uint64)
    drawn = prior.hyperprior.draw(natural, ParallelGenerator(streams.copy()))
    for lane in range(3):
        alone = prior.hyperprior.expect(natural[:, lane])
        assert statistics[:, lane] == approx(alone[0], rel=1e-12)
        assert log_z[lane] == approx(alone[1], rel=1e-12)
        of_lane = ParallelGenerator(streams[:, [lane]].copy())
        assert drawn[:, [lane]] == approx(prior.hyperprior.draw(natural[:, [lane]], of_lane), rel=1e-12)


def test_a_posterior_is_of_the_family_of_the_base(prior, rng):
    """Its divergence from the base is the integral of q (ln q - ln base)."""
    statistics = prior.hyperprior.prior_statistics
    posterior = prior.given_hyperparameters(statistics) + 3 * prior.given_hyperparameters(statistics).coordinates
    points = [posterior.sample(rng) for _ in range(2000)]
    together = NormalPoint(*(np.stack(parts, axis=-1) for parts in zip(*points)))
    log_ratio = (posterior + np.zeros((len(statistics), 1))).log_density(together) - prior.log_density(together)
    error = log_ratio.std() / np.sqrt(log_ratio.size)
    assert posterior.kl(prior) == approx(log_ratio.mean(), abs=4.5 * error)


def test_where_nothing_is_added_hyperparameters_are_left_to_their_prior(prior):
    """Even where the base is a density, of next to no width."""
    nothing = np.zeros((len(prior.coordinates), 1))
    assert prior.leaves_hyperparameters(nothing).all()
    assert prior.log_normalizer_increment(nothing) == 0.0
    started = prior.with_hyperparameters(nothing)
    assert started[:, 0] == approx(prior.hyperprior.prior_statistics)
    assert not prior.leaves_hyperparameters(started).any()
