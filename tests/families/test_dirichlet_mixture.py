"""Mixtures of Dirichlet distributions of one table, held to their definition: sums over alternatives of Dirichlets."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import beta

from skvbem.families import Dirichlet, DirichletMixture
from skvbem.families.dirichlet_mixture import EQUIVALENT_SAMPLE_SIZES, AveragedConcentration

approx = pytest.approx
SHAPES = ((2, 3), (1, 2), (4, 2))


def averaged(*shapes):
    return DirichletMixture.from_tables([AveragedConcentration().table(shape) for shape in shapes])


def by_alternative(shape, counts):
    """Log evidences of the counts of one table under each equivalent sample size, by Dirichlet distributions."""
    priors = [
        Dirichlet.from_rows(np.full(shape, total / np.prod(shape, dtype=float))) for total in EQUIVALENT_SAMPLE_SIZES
    ]
    return priors, np.array([float(prior.log_evidence(counts)) for prior in priors])


@pytest.fixture
def counts(rng):
    return [rng.poisson(3.0, np.prod(shape)).astype(float) for shape in SHAPES]


def test_the_evidence_is_the_mean_over_alternatives_table_by_table(counts):
    expected = sum(
        logsumexp(by_alternative(shape, each)[1]) - np.log(len(EQUIVALENT_SAMPLE_SIZES))
        for shape, each in zip(SHAPES, counts)
    )
    assert float(averaged(*SHAPES).log_evidence(np.concatenate(counts))) == approx(expected, rel=1e-12)


def test_means_and_quantiles_are_those_of_the_mixture(counts):
    posterior = averaged(SHAPES[0]) + counts[0]
    priors, logs = by_alternative(SHAPES[0], counts[0])
    weights = np.exp(logs - logsumexp(logs))
    assert posterior.responsibilities[:, 0] == approx(weights)
    members = [prior + counts[0] for prior in priors]
    assert posterior.mean() == approx(sum(w * each.mean() for w, each in zip(weights, members)))
    for probability in (0.025, 0.5, 0.9):
        reached = sum(
            w
            * beta(each.concentration, each.per_cell(each.row_sums(each.concentration)) - each.concentration).cdf(
                posterior.quantiles(probability)
            )
            for w, each in zip(weights, members)
        )
        assert reached == approx(np.full(6, probability), abs=1e-9)


def test_the_density_is_that_of_the_mixture(counts):
    posterior = averaged(SHAPES[0]) + counts[0]
    priors, logs = by_alternative(SHAPES[0], counts[0])
    point = posterior.mean()
    densities = [float((prior + counts[0]).log_density(point)) for prior in priors]
    assert float(posterior.log_density(point)) == approx(logsumexp(logs - logsumexp(logs) + densities), rel=1e-10)


def test_draws_of_all_rows_of_a_table_share_their_alternative():
    alike = DirichletMixture.from_tables([[np.full((2, 2), 1e-4), np.full((2, 2), 1e4)]])
    rng = np.random.default_rng(0)
    drawn = np.stack([alike.sample(rng) for _ in range(400)])
    is_even = np.abs(drawn[:, ::2] - 0.5) < 0.05
    assert (is_even[:, 0] == is_even[:, 1]).all()
    assert is_even[:, 0].mean() == approx(0.5, abs=0.1)


def test_one_alternative_is_a_dirichlet_distribution(counts):
    table = np.full(SHAPES[0], 0.5)
    one, other = DirichletMixture.from_tables([[table]]) + counts[0], Dirichlet.from_rows(table) + counts[0]
    assert one.expected_natural() == approx(other.expected_natural())
    assert one.mean() == approx(other.mean())
    assert float(one.log_density(one.mean())) == approx(float(other.log_density(other.mean())))
    assert one.with_known_hyperparameters().concentration == approx(other.concentration)


def test_a_density_without_a_mode_among_probabilities_says_so():
    with pytest.raises(ValueError, match="no interior mode in the probability basis"):
        averaged(SHAPES[0]).mode("probability")
