"""The evidence of complete data under hidden hyperparameters, against quadrature."""

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from reference.hidden_scales import log_evidence_of_sums
from scipy.integrate import quad
from scipy.special import gammaincinv, gammaln, logsumexp, multigammaln, ndtri
from scipy.stats import gamma

from skvbem.families import Gamma, NormalGamma, NormalWishart, Product
from skvbem.families.dirichlet import Dirichlet
from skvbem.families.hierarchical import (
    HiddenMeanPrecision,
    HiddenScale,
    hidden_rate_prior,
    normal_gamma_prior,
    normal_wishart_prior,
)
from skvbem.families.integrated_evidence import IntegratedEvidence

WEIGHT, HYPER_DOF, DOF, FLOOR = HiddenMeanPrecision(0.5, 0.5), 1.0, 3.0, 1e-4
# Sums of two components: rows, means, and squares about these, by column.
ROWS, MEANS = np.array([7.5, 4.0]), np.array([[0.3, -1.2], [2.0, 0.8]])
SQUARES = np.array([[4.0, 9.0], [1.5, 0.2]])


def with_empty(n, rows=ROWS, means=MEANS, squares=SQUARES):
    """Sums of so many more components, which are empty."""
    return np.pad(rows, (0, n)), np.pad(means, ((0, n), (0, 0))), np.pad(squares, ((0, n), (0, 0)))


def by_quadrature(sums, columns):
    rows, means, squares = sums
    options = {"dof": DOF, "hyper_dof": HYPER_DOF, "floor": FLOOR, "weight": WEIGHT[:2]}
    return log_evidence_of_sums(rows, means[:, columns], squares[:, columns], **options)


def statistics_of(family, rows, means, squares):
    """Statistics of the rows, as the difference of two members of a family."""
    rows = np.broadcast_to(rows[:, None], means.shape) if family is NormalGamma else rows
    after = family.from_parameters(means, rows, rows + DOF, squares)
    return after.coordinates - family.from_parameters(means, 0 * rows, 0 * rows + DOF, 0 * squares).coordinates


def test_one_column():
    scale = HiddenScale(HYPER_DOF, np.full((1, 1), DOF), np.full((1, 1), FLOOR))
    prior = normal_wishart_prior(3, np.zeros(1), WEIGHT, DOF, scale)
    rows, means, squares = sums = with_empty(1)
    statistics = statistics_of(NormalWishart, rows, means[:, :1], squares[:, :1, None])
    value, error = IntegratedEvidence(prior).with_error(statistics)
    assert error < 0.011
    assert abs(value - by_quadrature(sums, [0])) < 4 * error


@pytest.mark.parametrize(("n_empty", "rows"), [(0, ROWS), (1, ROWS), (13, ROWS), (13, 50 * ROWS), (8, 0 * ROWS)])
def test_columns_of_their_own_scales(n_empty, rows):
    """Empty components say nothing of the scales, however many; without rows there is the mass of the prior."""
    scale = HiddenScale(HYPER_DOF, np.full(2, DOF), np.full(2, FLOOR))
    prior = normal_gamma_prior(2 + n_empty, np.zeros(2), WEIGHT, DOF, scale)
    share = (rows / ROWS)[:, None]
    sums = with_empty(n_empty, rows, MEANS * (share > 0), SQUARES * share)
    statistics = statistics_of(NormalGamma, *sums)
    value, error = IntegratedEvidence(prior).with_error(statistics)
    assert error < 0.011
    assert abs(value - by_quadrature(sums, [0, 1])) < 4 * error


def test_products_and_lanes():
    scale = HiddenScale(HYPER_DOF, np.full(2, DOF), np.full(2, FLOOR))
    prior = normal_gamma_prior(2, np.zeros(2), WEIGHT, DOF, scale)
    statistics = statistics_of(NormalGamma, ROWS, MEANS, SQUARES)
    value, _ = IntegratedEvidence(prior).with_error(statistics)
    weights = Dirichlet(np.ones(2), np.array([0, 2]))
    both = IntegratedEvidence(Product((weights, prior), (2, len(statistics))))
    assert float(both(np.concatenate([ROWS, statistics]))) == pytest.approx(value + float(weights.log_evidence(ROWS)))
    within = Product((Product((weights, prior), (2, len(statistics))), weights), (2 + len(statistics), 2))
    nested = IntegratedEvidence(within)(np.concatenate([ROWS, statistics, ROWS]))
    assert float(nested) == pytest.approx(value + 2 * float(weights.log_evidence(ROWS)))
    lanes = IntegratedEvidence(prior)(np.stack([statistics, 2 * statistics], axis=1))
    assert lanes[0] == value
    assert lanes.shape == (2,)


def test_full_covariances():
    """The inverse scale is a matrix, whose Bartlett factors are integrated over on a grid."""
    weight, d, hyper_dof, dof = 0.7, 2, 2.0, 4.0
    rows, means, squares = with_empty(1)
    scatter = np.stack([np.diag(each) for each in squares])
    scatter[0, 0, 1] = scatter[0, 1, 0] = -3.0
    prior = normal_wishart_prior(
        3, np.zeros(d), weight, dof, HiddenScale(hyper_dof, dof * np.eye(d), FLOOR * np.eye(d))
    )
    nodes, log_shares = leggauss(48)[0] / 2 + 0.5, np.log(leggauss(48)[1] / 2)
    first, second, below = np.meshgrid(nodes, nodes, nodes, indexing="ij")
    factor = np.zeros((*first.shape, d, d))
    factor[..., 0, 0] = np.sqrt(2 * gammaincinv(hyper_dof / 2, first))
    factor[..., 1, 1] = np.sqrt(2 * gammaincinv((hyper_dof - 1) / 2, second))
    factor[..., 1, 0] = ndtri(below)
    scale = dof / hyper_dof * factor @ factor.swapaxes(-1, -2)
    log_terms = log_shares[:, None, None] + log_shares[:, None] + log_shares
    for n, mean, squares in zip(rows, means, scatter):
        after = scale + FLOOR * np.eye(d) + squares + weight * n / (weight + n) * np.outer(mean, mean)
        log_terms = log_terms + d / 2 * np.log(weight / (weight + n)) - n * d / 2 * np.log(np.pi)
        log_terms += multigammaln((dof + n) / 2, d) - multigammaln(dof / 2, d)
        log_terms += dof / 2 * np.linalg.slogdet(scale)[1] - (dof + n) / 2 * np.linalg.slogdet(after)[1]
    statistics = statistics_of(NormalWishart, rows, means, scatter)
    value, error = IntegratedEvidence(prior).with_error(statistics)
    assert error < 0.011
    assert abs(value - logsumexp(log_terms)) < 4 * error + 1e-3


def test_hidden_rates():
    rows, means, _ = with_empty(1)
    shape, mean, events = np.array([1.5, 0.7]), np.array([2.0, 0.3]), means**2 * rows[:, None]
    prior = hidden_rate_prior(3, shape, 2.0, mean, FLOOR)
    base = Gamma.from_parameters(np.tile(shape, (3, 1)), np.full((3, 2), FLOOR))
    after = Gamma.from_parameters(np.tile(shape, (3, 1)) + events, np.full((3, 2), FLOOR) + rows[:, None])
    value, error = IntegratedEvidence(prior).with_error(after.coordinates - base.coordinates)
    expected = 0.0
    for a, m, of_column in zip(shape, mean, events.T):

        def density(rate, a=a, m=m, of_column=of_column):
            log = gamma.logpdf(rate, 2.0, scale=m / 2)
            for n, total in zip(rows, of_column):
                log += a * np.log(rate) - gammaln(a) + gammaln(a + total) - (a + total) * np.log(rate + FLOOR + n)
            return np.exp(log)

        expected += np.log(quad(density, 0, np.inf, epsabs=0, epsrel=1e-9, limit=300)[0])
    assert error < 0.011
    assert abs(value - expected) < 4 * error
