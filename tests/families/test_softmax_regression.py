"""Softmax regressions: published likelihoods, the bound against quadrature, its optimum, and what changes nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import gammaln, logsumexp, polygamma, softmax
from scipy.stats import norm

from skvbem.families.softmax_family import with_hidden_precisions
from skvbem.families.softmax_maximum import Design, contrasts
from skvbem.families.softmax_regression import SoftmaxRegression

WOMEN = Path(__file__).parents[1] / "data" / "third_party" / "gpl" / "womenlf.csv"
V0 = float(polygamma(1, 1.0))


def women():
    """Constant, income centred and scaled, children: regressors (263, 3); and work, none, a part, or full time."""
    table = pd.read_csv(WOMEN)
    income = table["hincome"].to_numpy(float)
    children = (table["children"] == "present").to_numpy(float)
    work = table["partic"].map({"not.work": 0, "parttime": 1, "fulltime": 2}).to_numpy()
    return np.column_stack([np.ones(263), (income - income.mean()) / income.std(), children]), work


def statistics_of(labels, u, n_labels, weight=1.0):
    return np.append((np.eye(n_labels)[labels].T @ (np.reshape(weight, (-1, 1)) * u)).ravel(), np.zeros(u.shape[1]))


def gap(m, v, a):
    """The tilted bound of one row, by its definition."""
    back = np.eye(len(m)) - a
    exponents = [m[k] - a @ m + 0.5 * back[k] @ v @ back[k] for k in range(len(m))]
    return a @ m + logsumexp(exponents), softmax(exponents)


def least_bound(m, v):
    """The tilted bound of one row at the best tilt, by a general optimizer."""
    k = len(m)

    def of_free(free):
        return gap(m, v, np.append(free, 1 - free.sum()))[0]

    return min(minimize(of_free, start, tol=1e-13).fun for start in (np.full(k - 1, 1 / k), softmax(m)[:-1]))


def random_design(rng, n, p, kind="plain"):
    u = np.column_stack([np.ones(n), rng.normal(size=(n, p - 1))])
    if p > 1:
        u[:, 1] = {"constant": np.full(n, 2.0), "separated": 40.0 * np.sign(u[:, 1])}.get(kind, u[:, 1])
    if kind == "collinear" and p > 2:
        u[:, 2] = -3.0 * u[:, 1]
    return u


@pytest.mark.skipif(not WOMEN.exists(), reason="the table is in a checkout only, under its own license")
def test_work_of_women_has_the_published_likelihood_bound_and_deviations():
    u, work = women()
    prior, statistics = SoftmaxRegression.from_precisions(3, Design.of(u), [1 / V0, 1, 1]), statistics_of(work, u, 3)
    point = prior.most_likely(statistics)
    assert statistics @ prior.natural(point) == pytest.approx(-211.440963, abs=1e-6)  # deviance 422.882 [Fox 2016]
    assert prior.log_evidence(statistics) == pytest.approx(-225.254864, abs=1e-6)
    deviation = np.sqrt(np.diag((prior + statistics).covariance)).reshape(2, 3)
    np.testing.assert_allclose(deviation, [[0.2659, 0.1174, 0.2921], [0.2045, 0.1600, 0.2780]], atol=6e-5)
    both = np.column_stack([u[:, :2], (u[:, 2] - u[:, 2].mean()) / u[:, 2].std()])
    prior = SoftmaxRegression.from_precisions(3, Design.of(both), [1 / V0, 1, 1])
    assert prior.log_evidence(statistics_of(work, both, 3)) == pytest.approx(-224.943143, abs=1e-6)


def test_the_bound_is_below_the_evidence_by_quadrature_and_close(rng):
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for _ in range(20):
        n, p = int(rng.integers(1, 12)), int(rng.integers(1, 3))
        u, precision = random_design(rng, n, p), rng.uniform(0.3, 3, p)
        labels = rng.integers(0, 2, n)
        prior = SoftmaxRegression.from_precisions(2, Design.of(u), precision)
        grid = np.stack(np.meshgrid(*[nodes] * p, indexing="ij"), axis=-1).reshape(-1, p) / np.sqrt(precision)
        mass = np.stack(np.meshgrid(*[weights / weights.sum()] * p, indexing="ij"), axis=-1).reshape(-1, p).prod(axis=1)
        odds = np.sqrt(2) * grid @ u.T * np.where(labels == 0, 1, -1)
        evidence = logsumexp(-np.logaddexp(0, -odds).sum(axis=1), b=mass)
        bound = prior.log_evidence(statistics_of(labels, u, 2))
        assert evidence - 0.25 * n < bound <= evidence + 1e-9


@pytest.mark.parametrize("n_labels", [2, 3, 5])
def test_tilts_are_the_best_ones_wide_or_narrow(n_labels, rng):
    for scale in (0.1, 1.0, 4.0, 16.0):
        root, m = rng.normal(size=(n_labels - 1, n_labels - 1)), rng.normal(size=n_labels - 1)
        covariance, h = scale * root @ root.T / n_labels, contrasts(n_labels)
        bound = Design.of(np.ones((1, 1))).bound(m, covariance).value
        assert bound == pytest.approx(least_bound(h @ m, h @ covariance @ h.T), abs=1e-9)
        drawn = rng.multivariate_normal(m, covariance, 20_000) @ h.T
        assert bound > logsumexp(drawn, axis=1).mean() - 4 * logsumexp(drawn, axis=1).std() / 141


@pytest.mark.parametrize("kind", ["plain", "collinear", "separated", "constant"])
def test_derivatives_of_the_bound_are_those_of_differences(kind, rng):
    design = Design.of(random_design(rng, 9, 3, kind), rng.uniform(0.2, 3, 9))
    root, mean = rng.normal(size=(6, 6)) / 4, rng.normal(size=6)
    covariance = root @ root.T / (100 if kind == "separated" else 1)
    for wide in (covariance, None):
        at = design.bound(mean, wide)
        wrong = check_grad(lambda x: design.bound(x, wide).value, lambda x: design.bound(x, wide).slope, mean)  # noqa: B023
        assert wrong < 1e-4 * max(np.abs(at.slope).max(), 1)
    at, turn = design.bound(mean, covariance), np.outer(root[0], root[0])
    more, less = (design.bound(mean, covariance + e * turn).value for e in (1e-4, -1e-4))
    assert (more - less) / 2e-4 == pytest.approx(0.5 * (at.curvature * turn).sum(), rel=1e-3)


@pytest.mark.parametrize("kind", ["plain", "collinear", "separated", "constant"])
def test_a_maximum_is_where_nothing_is_higher_and_does_not_hang_on_where_it_began(kind, rng):
    for _ in range(6):
        n, p, n_labels = int(rng.integers(2, 40)), int(rng.integers(1, 7)), int(rng.integers(2, 6))
        u, precision = random_design(rng, n, p, kind), 10.0 ** rng.uniform(-1, 1, p)
        weight, labels = rng.uniform(0.2, 3, n), rng.integers(0, n_labels, n)
        prior = SoftmaxRegression.from_precisions(n_labels, Design.of(u, weight), precision)
        posterior = prior + statistics_of(labels, u, n_labels, weight)
        reached = posterior.log_normalizer()
        run, elsewhere = prior.for_run(), statistics_of(labels[::-1], u, n_labels, 9 * weight)
        begun = (run + elsewhere).log_normalizer()
        ends = np.array([(run + posterior.statistics_above(prior)).log_normalizer() for _ in range(8)])
        assert (np.diff(ends) > -1e-9).all()
        assert ends[-1] == pytest.approx(reached, abs=1e-8)
        assert ends.max() < reached + 1e-9
        assert (prior + elsewhere).log_normalizer() == pytest.approx(begun, abs=1e-9)
        mean, covariance, d = contrasts(n_labels).T @ posterior.mean, posterior.covariance, (n_labels - 1) * p
        statistics = contrasts(n_labels).T @ posterior.coordinates[:-p].reshape(n_labels, p)

        def value(m, s):
            bound = posterior.design.bound(m, s).value * weight.sum()  # noqa: B023
            squares = np.tile(precision, n_labels - 1) @ (m**2 + np.diag(s))  # noqa: B023
            entropy = 0.5 * (d * np.log(2 * np.pi * np.e) + np.linalg.slogdet(s)[1])  # noqa: B023
            return statistics.ravel() @ m - bound - 0.5 * squares + entropy  # noqa: B023

        assert value(mean.ravel(), covariance) == pytest.approx(reached, abs=1e-8)
        root = np.linalg.cholesky(covariance)
        for size in (0.1, 1e-3):
            turn = rng.normal(size=(d, d)) / d
            other = root @ (np.eye(d) + size * (turn + turn.T)) @ root.T
            assert value(mean.ravel() + size * root @ rng.normal(size=d), other) < reached


def test_expected_natural_parameters_are_the_gradient_of_the_normalizer(rng):
    u = random_design(rng, 12, 3)
    q = SoftmaxRegression.from_precisions(3, Design.of(u), [1.0, 2.0, 0.5]) + statistics_of(np.arange(12) % 3, u, 3)
    for j in range(12):
        step = np.eye(12)[j] * 1e-4
        slope = ((q + step).log_normalizer() - (q + -step).log_normalizer()) / 2e-4
        assert q.expected_natural()[j] == pytest.approx(slope, abs=1e-6)


def test_modes_and_information_are_those_of_the_density(rng):
    u = random_design(rng, 12, 3)
    q = SoftmaxRegression.from_precisions(3, Design.of(u), [1.0, 2.0, 0.5]) + statistics_of(np.arange(12) % 3, u, 3)
    free = q.to_unconstrained(q.mode())

    def slope(x):
        return q.coordinates @ q.jacobian(q.from_unconstrained(x))

    np.testing.assert_allclose(slope(free), 0, atol=1e-7)
    second = np.stack([(slope(free + e) - slope(free - e)) / 2e-5 for e in 1e-5 * np.eye(6)])
    np.testing.assert_allclose(q.information(q.mode(), q.coordinates), -second, atol=1e-5)


def test_order_of_labels_rows_and_regressors_changes_nothing(rng):
    n, p, n_labels = 30, 4, 4
    u, labels, precision = random_design(rng, n, p), rng.integers(0, n_labels, n), rng.uniform(0.5, 2, p)
    evidence = SoftmaxRegression.from_precisions(n_labels, Design.of(u), precision).log_evidence
    of_labels, of_rows = rng.permutation(n_labels), rng.permutation(n)
    of_columns = np.append(0, 1 + rng.permutation(p - 1))  # a constant stays the first
    value = evidence(statistics_of(labels, u, n_labels))
    assert evidence(statistics_of(of_labels[labels], u, n_labels)) == pytest.approx(value, abs=1e-9)
    other = SoftmaxRegression.from_precisions(n_labels, Design.of(u[of_rows][:, of_columns]), precision[of_columns])
    turned = statistics_of(labels[of_rows], u[of_rows][:, of_columns], n_labels)
    assert other.log_evidence(turned) == pytest.approx(value, abs=1e-9)


def test_weights_are_repeats_and_equal_rows_are_one():
    u, labels = np.array([[1.0, -1], [1, 0.3], [1, 2]]), np.array([0, 1, 1])
    repeats = np.array([3, 1, 2])
    design = Design.of(np.repeat(u, repeats, axis=0))
    assert len(design.weight) == 3
    weighted = SoftmaxRegression.from_precisions(2, Design.of(u, repeats), [1.0, 1.0])
    repeated = SoftmaxRegression.from_precisions(2, design, [1.0, 1.0])
    once = weighted.log_evidence(statistics_of(labels, u, 2, repeats))
    again = repeated.log_evidence(statistics_of(np.repeat(labels, repeats), np.repeat(u, repeats, axis=0), 2))
    assert once == pytest.approx(again, abs=1e-12)


def test_one_label_has_no_coefficients():
    prior = SoftmaxRegression.from_precisions(1, Design.of(np.array([[1.0, 2], [1, 3]])), [1.0, 1.0])
    assert prior.log_evidence(np.array([2.0, 5, 0, 0])) == pytest.approx(0.0, abs=1e-12)


def test_hidden_precisions_are_integrated_out_of_the_density_of_coefficients(rng):
    design = Design.of(np.column_stack([np.ones(9), rng.normal(size=(9, 3))]))
    prior = with_hidden_precisions(SoftmaxRegression.from_precisions(3, design, [0.6, 1, 1, 1]), np.array([0, 1, 1]))
    free = rng.normal(size=(2, 4))
    point = contrasts(3) @ free
    density = prior.log_density(point) + prior.hyperprior.expect(prior.natural(point))[1]
    expected = norm.logpdf(free[:, 0], scale=0.6**-0.5).sum()
    for slopes in (free[:, 1], free[:, 2:]):  # of Gamma(1, 1) precisions, each of a covariate
        half = slopes.size / 2
        expected += gammaln(1 + half) - half * np.log(2 * np.pi) - (1 + half) * np.log1p((slopes**2).sum() / 2)
    assert density == pytest.approx(expected, abs=1e-10)
