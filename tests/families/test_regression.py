"""Regressions against Normal-Gamma distributions, SciPy, and factor analysis in a few lines."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import digamma, gammaln

from skvbem.families import NormalGamma, Regression, RegressionPoint
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.hyperpriors import GammaHyperprior

approx = pytest.approx


def test_with_the_constant_alone_it_is_the_normal_gamma_distribution(rng):
    mean, kappa, dof, scale = rng.normal(size=3), *rng.exponential(2.0, size=(3, 3))
    theirs = NormalGamma.from_parameters(mean[None], kappa[None], dof[None], scale[None])
    rows = np.arange(3)
    ours = Regression.from_parameters(mean[:, None], kappa[:, None, None], dof / 2, scale / 2, rows, rows)
    x = rng.normal(size=(7, 3))
    n, total, square = np.full(3, 7.0), x.sum(axis=0), (x**2).sum(axis=0)
    of_theirs, of_ours = np.concatenate([n, n, total, square]), np.concatenate([n, total, n, square])
    assert ours.log_evidence(of_ours) == approx(theirs.log_evidence(of_theirs), rel=1e-13)
    assert (ours + of_ours).kl(ours) == approx((theirs + of_theirs).kl(theirs), rel=1e-13)


def test_the_evidence_of_a_regression_is_a_student_density(rng):
    """Rows that share the matrix of a table without gaps, each with a noise of its own."""
    r, y = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    mean, root = rng.normal(size=(2, 2)), rng.normal(size=(2, 3))
    precision, a, b = root @ root.T, np.array([1.5, 2.0]), np.array([0.7, 3.0])
    prior = Regression.from_parameters(mean, precision[None], a, b, [0, 0], [0, 1])
    statistics = np.concatenate([(r.T @ r)[np.triu_indices(2)], (y.T @ r).ravel(), [6, 6], (y**2).sum(axis=0)])
    spread = np.eye(6) + r @ np.linalg.inv(precision) @ r.T
    expected = [stats.multivariate_t(r @ mean[s], b[s] / a[s] * spread, df=2 * a[s]).logpdf(y[:, s]) for s in range(2)]
    assert prior.log_evidence(statistics) == approx(sum(expected), rel=1e-12)


def test_a_noise_that_is_known_leaves_a_normal_density(rng):
    r, y, mean = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=(1, 2))
    prior = Regression.from_parameters(mean, np.diag([2.0, 0.5])[None], None, None, [0], None)
    statistics = np.concatenate([(r.T @ r)[np.triu_indices(2)], y @ r])
    of_data = -0.5 * (y @ y) - 2.5 * np.log(2 * np.pi)  # what no coefficient changes is the model's part
    spread = np.eye(5) + r @ np.diag([0.5, 2.0]) @ r.T
    expected = stats.multivariate_normal(r @ mean[0], spread).logpdf(y)
    assert prior.log_evidence(statistics) + of_data == approx(expected, rel=1e-12)


def test_the_density_of_a_row_integrates_to_one():
    """With respect to one coefficient and the precision of its noise."""
    prior = Regression.from_parameters([[0.3]], [[[2.0]]], [1.7], [0.6], [0], [0])

    def density(c, log_rho):
        point = RegressionPoint(np.array([[c]]), np.exp([log_rho]))
        return np.exp(prior.log_density(point, "probability") + log_rho)

    def end(sign):
        return lambda log_rho: 0.3 + sign * 9 / np.sqrt(2 * np.exp(log_rho))

    assert integrate.dblquad(density, -14, 5, end(-1), end(+1))[0] == approx(1.0, abs=1e-6)


def test_least_squares_of_fewer_data_than_coefficients_are_the_shortest(rng):
    r, y = rng.normal(size=(2, 4)), rng.normal(size=2)
    prior = Regression.from_parameters(np.zeros((1, 4)), np.eye(4)[None], [1.0], [0.5], [0], [0])
    statistics = np.concatenate([(r.T @ r)[np.triu_indices(4)], y @ r, [2, y @ y]])
    point = prior.most_likely(statistics)
    assert point.coefficients[0] == approx(np.linalg.pinv(r) @ y, rel=1e-6)
    assert point.precision == approx(1e6)
    assert prior.are_spikes(statistics).tolist() == [True]
    assert prior.most_likely(0 * statistics).precision == approx(1.0)


@pytest.mark.parametrize("noise", [None, 1.0])
def test_regressors_that_are_nearly_collinear_lose_no_digits(noise):
    """Two levels that rise together, far from zero: as the states of a slow series beside its offset do."""
    steps = np.arange(200)
    r = np.column_stack([300.0 + 0.5 * steps, 200.0 + 0.3 * steps + 0.01 * np.sin(steps)])
    y = 0.7 * r[:, 0] + 0.5 * r[:, 1] + 0.01 * np.cos(steps)
    shape, rate, noise_of = (None, None, None) if noise is None else ([noise], [1e-3], [0])
    prior = Regression.from_parameters(np.zeros((1, 2)), np.eye(2)[None], shape, rate, [0], noise_of)
    known = [(r.T @ r)[np.triu_indices(2)], y @ r]
    statistics = np.concatenate(known if noise is None else [*known, [200.0, y @ y]])
    a, b, c, h, g, *_ = [Fraction(float(cell)) for cell in prior.coordinates + statistics]
    determinant = a * c - b * b
    explained = (c * h * h - 2 * b * h * g + a * g * g) / determinant  # in fractions: no rounding
    expected = -0.5 * np.log(float(determinant))
    if noise is None:
        expected += float(explained) / 2
    else:
        left = float((Fraction(float(2e-3 + y @ y)) - explained) / 2)
        expected += gammaln(101) - 101 * np.log(left) + np.log(1e-3) - 100 * np.log(2 * np.pi)
    size = float(explained) if noise is None else 101 * float(explained) / left
    assert prior.log_evidence(statistics) == approx(expected, abs=8 * np.finfo(float).eps * size, rel=1e-12)
    assert (prior + statistics).mean[0] == approx(
        [float((c * h - b * g) / determinant), float((a * g - b * h) / determinant)], rel=1e-9
    )


# Factor analysis of three rows in two columns ------------------------------------------------------------------------

Y = np.array([[0.5, -0.2], [-1.0, -0.7], [0.8, 1.1]])


def moments(mean, covariance):
    """Statistics of regressors (1, x) of normal factors x, for both columns at once."""
    regressors = np.column_stack([np.ones(3), mean])
    products = regressors.T @ regressors + 3 * np.diag([0, covariance])
    return np.concatenate([products[np.triu_indices(2)], (Y.T @ regressors).ravel()])


class OneFactor:
    """A factor analyser of one factor, term by term; its prior as a regression with a hidden precision of loadings."""

    def __init__(self, noise_of, relevance):
        self.noise_of, self.n_noises = noise_of, max(noise_of) + 1
        matrix = np.diag([1.0, 1.0 if relevance == "fixed" else 0.0])
        a, b = np.ones(self.n_noises), np.full(self.n_noises, 0.5)
        self.prior = base = Regression.from_parameters(np.zeros((2, 2)), matrix[None], a, b, [0, 0], noise_of)
        self.of_noises = np.bincount(noise_of, minlength=self.n_noises)
        self.squares = np.array([(Y[:, np.equal(noise_of, g)] ** 2).sum() for g in range(self.n_noises)])
        if relevance == "ard":
            at_one = Regression.from_parameters(np.zeros((2, 2)), np.eye(2)[None], a, b, [0, 0], noise_of)
            loadings, one = np.zeros((1, len(base.coordinates))), np.ones(1)
            loadings[0, base.precision_cells[0, 2]] = 1.0
            constant = -float(at_one.log_normalizer())
            self.prior = Hierarchical(base, GammaHyperprior(one, one, one, loadings, constant))

    def of_rows(self, mean, covariance):
        """Statistics of all rows."""
        return np.concatenate([moments(mean, covariance), 3.0 * self.of_noises, self.squares])

    def e_step(self, natural):
        """Means and covariance of factors, and ln Z of the rows."""
        products, sums, logs, squares = np.split(natural, [3, 7, 7 + self.n_noises])
        precision = 1 - 2 * products[2]
        h = Y @ sums[1::2] + products[1]
        of_constant = self.of_noises @ logs + products[0] + Y @ sums[::2] + Y**2 @ squares[self.noise_of]
        log_z = of_constant - 0.5 * np.log(precision) + 0.5 * h**2 / precision
        return h / precision, 1 / precision, log_z.sum()

    def half_steps(self, n_steps):
        """The bound after q(w, tau), and then in turns after q(x), q(nu) and q(w, tau), term by term."""
        one_step = self.of_rows(np.array([0.5, -1.0, 1.0]), 0.5)
        x = np.array([0.5, -1.0, 1.0]), 0.5
        hidden = self.prior.with_hyperparameters(np.zeros(self.prior.coordinates.shape))
        is_learned = isinstance(self.prior, Hierarchical)
        # E ln p(w | nu) without its statistics, less KL(q(nu) || p(nu)); at first q(nu) = p(nu)
        of_nu = digamma(1.0) + self.prior.hyperprior.constant if is_learned else 0.0

        def bound(posterior, natural, x, of_nu, hidden):
            of_x = 0.5 * (1 + np.log(x[1]) - x[0] ** 2 - x[1]).sum()
            return (self.of_rows(*x) + hidden) @ natural + of_x + of_nu - posterior.kl(self.prior)

        posterior, bounds = self.prior + (one_step + hidden), []
        natural = posterior.expected_natural()
        bounds.append(bound(posterior, natural, x, of_nu, hidden))
        for _ in range(n_steps):
            x = self.e_step(natural)[:2]
            bounds.append(bound(posterior, natural, x, of_nu, hidden))
            hidden = self.prior.hyperparameters(natural)
            of_nu = self.prior.log_normalizer_of_hyperparameters(natural) - hidden @ natural
            bounds.append(bound(posterior, natural, x, of_nu, hidden))
            posterior = self.prior + (self.of_rows(*x) + hidden)
            natural = posterior.expected_natural()
            bounds.append(bound(posterior, natural, x, of_nu, hidden))
        return bounds

    def fit(self, n_steps):
        """The bound after each step, and the last posterior."""
        mean, covariance = np.array([0.5, -1.0, 1.0]), 0.5
        hidden = self.prior.with_hyperparameters(np.zeros(self.prior.coordinates.shape))
        bounds = []
        for _ in range(n_steps):
            posterior = self.prior + (self.of_rows(mean, covariance) + hidden)
            natural = posterior.expected_natural()
            mean, covariance, log_z = self.e_step(natural)
            of_hyper = self.prior.log_normalizer_of_hyperparameters(natural)
            bounds.append(float(log_z + of_hyper - posterior.kl(self.prior)))
            hidden = self.prior.hyperparameters(natural)
        return bounds, posterior


@pytest.mark.parametrize(
    ("noise_of", "relevance", "bound"),
    [
        ([0, 1], "fixed", -10.515254480),
        ([0, 1], "ard", -10.818431369),
        ([0, 0], "fixed", -10.256700304),
        ([0, 0], "ard", -10.559250942),
    ],
)
def test_factor_analysis_of_three_rows(noise_of, relevance, bound):
    """Bounds of another program, term by term; evidences by quadrature are 1.3 to 1.5 nats above."""
    bounds, _ = OneFactor(noise_of, relevance).fit(3000)
    assert np.all(np.diff(bounds) > -1e-12)
    assert bounds[-1] == approx(bound, abs=2e-9)


@pytest.mark.parametrize(
    ("noise_of", "relevance", "bounds"),
    [
        ([0, 1], "fixed", "10.839961770 10.618704520 = 10.554270153 10.533268972 = 10.524619970"),
        ([0, 1], "ard", "11.417177435 11.195920185 10.956970148 10.891423621 10.864803535 10.864258820 10.850316984"),
        ([0, 0], "fixed", "10.558776346 10.350975086 = 10.295186255 10.276054108 = 10.267571939"),
        ([0, 0], "ard", "11.135992011 10.928190751 10.693792928 10.638196961 10.613542453 10.613136994 10.599195758"),
    ],
)
def test_half_steps_of_factor_analysis_are_those_of_another_program(noise_of, relevance, bounds):
    """After q(w, tau), and then after factors, precisions of loadings and q(w, tau) in turns, twice."""
    expected = []
    for word in bounds.split():
        expected.append(expected[-1] if word == "=" else -float(word))
    found = OneFactor(noise_of, relevance).half_steps(2)
    assert found == approx(expected, abs=1e-8)
    assert np.all(np.diff(found) >= -1e-12)
    steps = OneFactor(noise_of, relevance).fit(2)[0]
    assert steps == approx([found[2], found[5]], abs=1e-12)  # a step of a fit ends after both
