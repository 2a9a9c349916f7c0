"""Softmax rows of hidden weights: known weights give a softmax regression, and A, its gradient, modes hang together."""

import numpy as np
import pytest
from scipy.special import logsumexp

from skvbem.families.softmax_maximum import Design
from skvbem.families.softmax_regression import SoftmaxRegression
from skvbem.families.softmax_rows import SoftmaxRows

ALLOWED = np.array([[1, 1, 1], [1, 0, 1], [0, 1, 0]], dtype=bool)
PRECISION = np.array([0.6, 1.0, 2.0])


def rows_and_counts(rng, n=7):
    """A prior, and counts of transitions at each pattern, (n_patterns, 3, 3)."""
    design = Design.of(np.column_stack([np.ones(n), rng.normal(size=(n, 2))]))
    return SoftmaxRows.from_precisions(design, ALLOWED, PRECISION), rng.gamma(1.0, size=(n, 3, 3)) * ALLOWED


def statistics_of(prior, counts):
    sums = np.einsum("njk,np->jkp", counts, prior.design.regressors)
    return np.concatenate([sums.ravel(), np.zeros(3), counts.sum(axis=2).ravel()])


def test_rows_of_known_weights_are_softmax_regressions(rng):
    prior, counts = rows_and_counts(rng)
    posterior = prior + statistics_of(prior, counts)
    total = 0.0
    for j, among in enumerate(ALLOWED):
        weight, n = counts[:, j].sum(axis=1), int(among.sum())
        sums = np.einsum("nk,np->kp", counts[:, j, among], prior.design.regressors)
        of_row = SoftmaxRegression.from_precisions(n, Design.of(prior.design.regressors, weight), PRECISION)
        one = of_row + np.append(sums.ravel(), np.zeros(3))
        total += float(one.log_normalizer())
        np.testing.assert_allclose(posterior.mean[j, among], one.mean, atol=1e-7)
        point = of_row.most_likely(np.append(sums.ravel(), np.zeros(3)))
        most_likely = prior.most_likely(statistics_of(prior, counts))[j, among]
        np.testing.assert_allclose(most_likely, point, atol=1e-6)
    assert posterior.log_normalizer() == pytest.approx(total, abs=1e-9)
    assert not posterior.mean[~ALLOWED].any()
    free = 0.5 * sum((row.sum() - 1) * np.log(2 * np.pi / PRECISION).sum() for row in ALLOWED)
    assert prior.log_normalizer() == pytest.approx(free, abs=1e-12)


def test_expected_natural_parameters_are_the_gradient_of_the_normalizer(rng):
    prior, counts = rows_and_counts(rng)
    q = prior + statistics_of(prior, counts)
    natural = q.expected_natural()
    for j in range(len(natural)):
        step = np.eye(len(natural))[j] * 1e-4
        slope = ((q + step).log_normalizer() - (q + -step).log_normalizer()) / 2e-4
        assert natural[j] == pytest.approx(slope, abs=1e-6)
    w, _, bounds = prior.parts(natural)
    logs = np.where(ALLOWED, np.tensordot(prior.design.regressors, w, axes=(1, 2)), -np.inf) + bounds[:, :, None]
    assert (logsumexp(logs, axis=2) <= 1e-12).all()  # rows sum to 1 at the most


def test_modes_and_information_are_those_of_the_density(rng):
    prior, counts = rows_and_counts(rng)
    q = prior + statistics_of(prior, counts)
    free = q.to_unconstrained(q.mode())

    def slope(x):
        return q.coordinates @ q.jacobian(q.from_unconstrained(x))

    np.testing.assert_allclose(slope(free), 0, atol=1e-7)
    second = np.stack([(slope(free + e) - slope(free - e)) / 2e-5 for e in 1e-5 * np.eye(len(free))])
    np.testing.assert_allclose(q.information(q.mode(), q.coordinates), -second, atol=1e-5)
    turned = q.natural(q.from_unconstrained(free + 1e-6)) - q.natural(q.from_unconstrained(free - 1e-6))
    np.testing.assert_allclose(q.jacobian(q.mode()).sum(axis=1), turned / 2e-6, atol=1e-7)


def test_members_side_by_side_are_members_alone_wherever_they_begin(rng):
    prior, counts = rows_and_counts(rng)
    lanes = np.stack([statistics_of(prior, scale * counts) for scale in (0.0, 1.0, 30.0)], axis=1)
    together = prior + lanes
    for k, lane in enumerate(lanes.T):
        fresh = SoftmaxRows.from_precisions(Design.of(prior.design.regressors), ALLOWED, PRECISION) + lane
        assert together.log_normalizer()[k] == pytest.approx(fresh.log_normalizer(), abs=1e-9)
        np.testing.assert_allclose(together.mean[..., k], fresh.mean, atol=1e-7)
        np.testing.assert_allclose(together.expected_natural()[:, k], fresh.expected_natural(), atol=1e-5)
    one = prior + lanes[:, 1]
    drawn, spread = one.draws(4000, rng), np.sqrt(one.variance_of(np.eye(3)))
    np.testing.assert_allclose(drawn.std(axis=-1)[0], spread[0], rtol=0.1)
