"""Mixtures and chains of measurements whose prior has a hidden scale and weight of means, against sums over all labels
and integrals over both."""

import numpy as np
import pytest
from reference.differences import hessian
from reference.two_labels import log_evidence_over_labels
from scipy.special import gammaln, logsumexp, multigammaln

from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.emissions.gaussian.diagonal import DiagonalGaussian
from skvbem.evidence import SCORES
from skvbem.evidence.evaluation import FORMS, Evaluation
from skvbem.evidence.starts import make_starts
from skvbem.models.hmm import capabilities as of_chains
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.mixture import capabilities as of_mixtures
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.plan import best_of
from skvbem.vbem.driver import run

approx = pytest.approx

ROWS = np.array([[-1.1, 0.4], [-0.8, 0.9], [1.3, -0.2], [0.9, -1.0], [1.6, -0.6]])
# Kind of model, columns, what is hidden besides the scale.
CASES = {
    "diag": ("mixture", "diag", "hierarchical"),
    "diag, chain": ("chain", "diag", "hierarchical"),
    "spherical": ("mixture", "spherical", "hierarchical"),
    "full, one column": ("mixture", "one", "hierarchical"),
    "full": ("mixture", "full", 0.5),
    "tied": ("mixture", "tied", 0.5),
}


def emission_of(shape):
    """An emission of the rows, without a frame of its own but for "full", and its columns."""
    if shape in ("diag", "spherical"):
        return DiagonalGaussian(np.zeros(2), np.zeros(2), np.ones(2), shape == "spherical"), ROWS
    d = 1 if shape == "one" else 2
    return DenseGaussian(np.zeros(d), np.eye(d), np.zeros(d), shape == "tied"), ROWS[:, :d]


class Problem:
    def __init__(self, kind, shape, weight, n_labels=2, rows=None, alpha=1.0):
        self.kind, self.shape, self.weight = kind, shape, weight
        self.emission, some_rows = emission_of(shape)
        self.rows = some_rows if rows is None else rows
        self.prior = self.emission.default_prior(
            n_labels, mean_precision_prior=weight, covariance_prior="hierarchical", degrees_of_freedom_prior=3.5
        )
        table, n = self.emission.prepare(self.rows), len(self.rows)
        if kind == "mixture":
            self.model = Mixture(self.emission, FiniteWeights(np.full(n_labels, alpha)), self.prior)
            self.data = self.model.compile(table)
            self.ascent_type, self.capabilities = MixtureAscent, of_mixtures.capabilities_of(self.model)
        else:
            first, next_ = (Transitions(np.full((n, 2), alpha)) for n in (1, 2))
            self.model = HMM(self.emission, first, next_, self.prior)
            self.data = self.model.compile(table, np.array([n]))
            self.ascent_type, self.capabilities = HMMAscent, of_chains.capabilities_of(self.model)
        rng = np.random.default_rng(0)
        drawn = [self.model.statistics_of(rng.dirichlet(np.ones(n_labels), n), self.data) for _ in range(6)]
        self.starts = np.stack(drawn, axis=1)

    def ascent(self, form="vb"):
        return self.ascent_type(self.model, self.data, FORMS[form])

    def fit(self, form="vb", starts=None):
        starts = self.starts if starts is None else starts
        return best_of(self.ascent(form), starts, tol=1e-9, max_iter=20_000)

    def evaluation(self, seed=0):
        def refitted(form, fit):
            starts = np.column_stack([fit.statistics, self.starts])
            return best_of(self.ascent_type(self.model, self.data, form), starts, tol=1e-9, max_iter=20_000)

        n = float(len(self.rows))
        return Evaluation(self.model, self.capabilities, self.data, refitted, self.fit(), "vb", n, ("label",), [seed])

    def log_evidence(self):
        """By definition: a sum over labels of integrals over the scale and the weight of means."""
        return log_evidence_over_labels(
            self.kind, len(ROWS), lambda labels: log_evidence_of(self.rows, labels, self.shape, self.weight)
        )


FLOOR = 1e-6


def log_evidence_of(rows, labels, shape, weight):
    """ln p(rows | labels): the scale, and the weight of means if it is hidden, integrated out on a grid."""
    d, dof = rows.shape[1], 3.5
    groups = [rows[labels == k] for k in range(2)]
    if weight != "hierarchical":
        scales, log_density = scales_of_matrices(d, float(d), dof)
        return float(logsumexp(log_density + log_evidence_given(groups, scales, weight, dof, shape == "tied")))
    log_weight = np.linspace(-26, 6, 80)
    of_weight = 0.5 * np.log(0.5) - gammaln(0.5) + 0.5 * log_weight - 0.5 * np.exp(log_weight)
    of_weight += np.log(log_weight[1] - log_weight[0])
    shared = 2 if shape == "spherical" else 1
    log_scale = np.linspace(-24, 6, 80)
    # b ~ Gamma(n0 / 2, n0 / (2 mean)), mean the degrees of freedom, for as many columns as share it
    half, rate = shared / 2, 1 / (2 * dof)
    of_scale = half * np.log(rate) - gammaln(half) + half * log_scale - rate * np.exp(log_scale)
    of_scale += np.log(log_scale[1] - log_scale[0])
    columns = [slice(None)] if shape == "spherical" else [slice(j, j + 1) for j in range(d)]
    grid = np.exp(log_scale), np.exp(log_weight)[:, None]
    integrals = []
    for of_column in columns:
        given = log_of_precision([g[:, of_column] for g in groups], *grid, dof * shared)
        integrals.append(logsumexp(given + of_scale, axis=1))
    return float(logsumexp(of_weight + np.sum(integrals, axis=0)))


def log_of_precision(groups, b, kappa, dof):
    """ln p of groups of columns that share a precision, (n_weights, n_scales), normalized as if the floor were 0."""
    total = 0.0
    for x in groups:
        n, p = x.shape
        mean = x.mean(axis=0) if n else np.zeros(p)
        spread = ((x - mean) ** 2).sum() + kappa * n / (kappa + n) * (mean**2).sum()
        total = total + gammaln((dof + n * p) / 2) - gammaln(dof / 2) + dof / 2 * np.log(b / 2)
        total = total - (dof + n * p) / 2 * np.log((b + FLOOR * p + spread) / 2) - n * p / 2 * np.log(2 * np.pi)
        total = total + p / 2 * np.log(kappa / (kappa + n))
    return total


def scales_of_matrices(d, n0, dof):
    """Matrices on a grid of their Cholesky factors, and ln of their density W(n0, mean dof I) times the volume."""
    log_pivot, below = np.linspace(-8, 3, 36), np.linspace(-12, 12, 49)
    one, two, three = (x.ravel() for x in np.meshgrid(log_pivot, log_pivot, below, indexing="ij"))
    factor = np.zeros((len(one), d, d))
    factor[:, 0, 0], factor[:, 1, 1] = np.exp(one), np.exp(two)
    factor[:, 1, 0] = three
    scales = factor @ factor.swapaxes(-1, -2)
    # dB = 2^d l11^2 l22 dL, and dl = l d(ln l)
    volume = 2 * np.log(2.0) + 3 * one + 2 * two + np.log((log_pivot[1] - log_pivot[0]) ** 2 * (below[1] - below[0]))
    log = (n0 - d - 1) / 2 * 2 * (one + two) - 0.5 * n0 / dof * np.trace(scales, axis1=1, axis2=2)
    log -= n0 * d / 2 * np.log(2 * dof / n0) + multigammaln(n0 / 2, d)
    return scales, log + volume


def log_evidence_given(groups, scales, kappa, dof, tied):
    """ln p of groups given matrices (n, d, d), from the normalizers of Wishart distributions."""
    d = scales.shape[-1]
    scatter, constants = [], []
    for x in groups:
        mean = x.mean(axis=0) if len(x) else np.zeros(d)
        away = x - mean
        scatter.append(away.T @ away + kappa * len(x) / (kappa + len(x)) * np.outer(mean, mean))
        constants.append(d / 2 * np.log(kappa / (kappa + len(x))) - len(x) * d / 2 * np.log(np.pi))
    counts = [len(x) for x in groups]
    if tied:
        scatter, counts = [sum(scatter)], [sum(counts)]
    log_det = np.linalg.slogdet(scales)[1]
    total = np.full(len(scales), float(sum(constants)))
    for spread, n in zip(scatter, counts):
        grown = np.linalg.slogdet(scales + FLOOR * np.eye(d) + spread)[1]
        total += multigammaln((dof + n) / 2, d) - multigammaln(dof / 2, d) + dof / 2 * log_det - (dof + n) / 2 * grown
    return total


@pytest.fixture(scope="module", params=list(CASES))
def problem(request):
    return Problem(*CASES[request.param])


@pytest.fixture(scope="module")
def log_evidence(problem):
    return problem.log_evidence()


def test_the_grid_integrates_the_hyperprior_to_one():
    assert logsumexp(scales_of_matrices(2, 2.0, 3.5)[1]) == approx(0.0, abs=0.01)


@pytest.mark.parametrize("form", ["vb", "map", "ml"])
def test_the_objective_never_falls(problem, form):
    for accelerate in (True, False):
        found = run(problem.ascent(form), problem.starts, tol=1e-6, max_iter=20_000, accelerate=accelerate)
        assert found.converged.all()


def test_the_bound_is_one(problem, log_evidence):
    assert log_evidence - 5.0 < problem.fit().objective < log_evidence


def test_the_bound_is_its_definition(problem):
    """ln Z of rows and of hyperparameters, less the divergence from the base, at any statistics."""
    statistics, prior = problem.fit().statistics, problem.model.prior
    posterior = prior + statistics
    natural = posterior.expected_natural()
    expected = problem.model.expect(natural[:, None], problem.data)
    of_scales, log_z = prior.hyperprior.expect(natural)
    trace = problem.ascent().advance(after := statistics[:, None].copy(), 1)
    assert trace[0, 0] == approx(float(expected.log_normalizer[0] + log_z - posterior.kl(prior)), abs=1e-9)
    assert after[:, 0] == approx(expected.statistics[:, 0] + of_scales)


def test_importance_from_gibbs_draws_finds_the_evidence(problem, log_evidence):
    found = SCORES["importance_gibbs"](problem.evaluation(), n_draws=2048)
    # the grid is right to a hundredth
    assert found.value == approx(log_evidence, abs=4.5 * found.standard_error + 0.01)
    assert found.standard_error < 0.05


# --- Laplace's approximation ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["map", "map_probability"])
@pytest.mark.parametrize("name", CASES)
def test_laplace_is_the_gaussian_of_the_hessian(name, form):
    """Of the log posterior of means and precisions, the scale and the weight of means integrated out."""
    problem = Problem(*CASES[name], alpha=2.0)  # so that there is a mode inside in probabilities, too
    evaluation, prior = problem.evaluation(), problem.model.prior
    basis = "natural" if form == "map" else "probability"

    def log_posterior(free):
        point = prior.from_unconstrained(free)
        log_likelihood = problem.model.expect(prior.natural(point), problem.data).log_normalizer
        return log_likelihood + prior.log_density_as_prior(point, basis)

    point = evaluation.point(form)
    at = prior.to_unconstrained(point)
    matrix = -hessian(log_posterior, at)
    found = SCORES["laplace"](evaluation, form=form)
    expected = log_posterior(at[:, None])[0] + len(at) / 2 * np.log(2 * np.pi) - np.linalg.slogdet(matrix)[1] / 2
    if form == "map_probability":  # the volume is that of the unconstrained coordinates
        expected -= prior.log_density_as_prior(point, basis) - prior.log_density_as_prior(point)
    assert found.details["variant"] == "full"
    assert found.value == approx(float(expected), abs=1e-5)
    assert found.n_free_parameters == len(at)
    if form == "map":
        diagonal = SCORES["laplace"](evaluation, variant="diagonal").details["log_det"]
        assert diagonal == approx(np.log(np.diag(matrix)).sum(), abs=1e-5)
        assert np.isfinite(SCORES["laplace"](evaluation, variant="block").value)


@pytest.mark.parametrize("shape", ["diag", "spherical", "one", "full", "tied"])
def test_laplace_nears_the_integral_as_rows_grow(shape):
    """Of one component: over the scale, the weight of means, the means and the precisions."""
    weight = 0.5 if shape in ("full", "tied") else "hierarchical"
    rows = emission_of(shape)[1]
    errors = []
    for n in (1, 8):
        of_rows = np.tile(rows, (n, 1)) + 0.1 * np.random.default_rng(0).normal(size=(n * len(rows), rows.shape[1]))
        fitted = Problem("mixture", shape, weight, 1, of_rows)
        exact = log_evidence_of(of_rows, np.zeros(len(of_rows)), shape, weight)
        errors.append(abs(SCORES["laplace"](fitted.evaluation()).value - exact))
    assert errors[1] < 0.4 * errors[0] + 0.02
    assert errors[1] < 0.15


def test_where_no_label_is_uncertain_there_is_one_start():
    """Of one component the rows' statistics are certain; those of the scale, which are not, make no further start."""
    evaluation = Problem("mixture", "diag", "hierarchical", 1).evaluation()
    assert len(make_starts(evaluation, (1.0, 0.5, 0.0), 4)) == 1
    exact = log_evidence_of(ROWS, np.zeros(len(ROWS)), "diag", "hierarchical")
    found = SCORES["ais"](evaluation)
    assert found.value == approx(exact, abs=4.5 * found.standard_error)


ANNEALED = {"ais": {"n_chains": 96}, "smc": {}, "ais_metropolis": {"n_chains": 48, "n_steps": 1024}}


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(ANNEALED))
def test_annealed_evidences_are_right(problem, log_evidence, kind):
    """Where so few rows are, a hyperprior has long tails, of which chains see more or less."""
    found = [SCORES[kind](problem.evaluation(seed), **ANNEALED[kind]) for seed in range(3)]
    error = np.sqrt(np.mean([each.standard_error**2 for each in found]) / 3)
    assert logsumexp([each.value for each in found]) - np.log(3) == approx(log_evidence, abs=4.5 * error + 0.02)
