"""Mixtures and chains whose prior has hidden hyperparameters, against sums over all labels and integrals."""

import numpy as np
import pytest
from reference.two_labels import log_evidence_over_labels
from scipy.integrate import quad
from scipy.special import gammaln

from skvbem.emissions.poisson import PoissonEmission
from skvbem.evidence import SCORES
from skvbem.evidence.evaluation import FORMS, Evaluation
from skvbem.families import Gamma
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.hyperpriors import GammaHyperprior
from skvbem.models import capabilities_of
from skvbem.models.hmm import capabilities as of_chains
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.mixture import capabilities as of_mixtures
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.plan import best_of
from skvbem.vbem.driver import run

approx = pytest.approx

SHAPE, HYPER_SHAPE, HYPER_RATE = 1.5, 2.0, 1.0
COUNTS = np.array([[0, 5], [1, 6], [0, np.nan], [7, 0], [9, 1.0]])
SAMPLED = ("ais", "ais_prior", "ais_metropolis", "importance", "importance_gibbs", "smc")
OPTIONS = {"ais_prior": {"n_chains": 96, "n_steps": 48}, "ais_metropolis": {"n_chains": 48, "n_steps": 256}}
CLOSED = ("collapsed", "collapsed_ascent", "exact")


class CountsOfUnknownScale(PoissonEmission):
    """Counts whose rates share an unknown scale, column by column: lambda ~ Gamma(a, nu), nu ~ Gamma(c, d)."""

    def default_prior(self, n_components):
        d = self.n_columns
        loadings = np.zeros((d, n_components, 2, d))
        loadings[np.arange(d), :, 1, np.arange(d)] = 1.0
        return Hierarchical(
            Gamma.from_parameters(np.full((n_components, d), SHAPE), np.zeros((n_components, d))),
            GammaHyperprior(
                np.full(d, HYPER_SHAPE),
                np.full(d, HYPER_RATE),
                np.full(d, n_components * SHAPE),
                loadings.reshape(d, -1),
                -d * n_components * float(gammaln(SHAPE)),
            ),
        )


def log_evidence_of_labels(labels, n_components, unit):
    """ln p(counts | labels), the scale of each column integrated out by quadrature."""
    total = 0.0
    for column, scale in zip(COUNTS.T, unit):
        of_label = [column[(labels == k) & ~np.isnan(column)] for k in range(n_components)]

        def density(nu, of_label=of_label, scale=scale):
            log = HYPER_SHAPE * np.log(HYPER_RATE) - gammaln(HYPER_SHAPE) + (HYPER_SHAPE - 1) * np.log(nu)
            log -= HYPER_RATE * nu
            for y in of_label:
                log += SHAPE * np.log(nu) - gammaln(SHAPE) + gammaln(SHAPE + y.sum())
                log -= (SHAPE + y.sum()) * np.log(nu + len(y) * scale)
                log += y.sum() * np.log(scale) - gammaln(y + 1).sum()
            return np.exp(log)

        total += np.log(quad(density, 0, np.inf, epsabs=0, epsrel=1e-9, limit=200)[0])
    return total


class Problem:
    """A model of the counts with two labels, its evidence by definition, and how it is fitted."""

    def __init__(self, kind):
        self.emission = CountsOfUnknownScale(np.array([3.0, 2.0]))
        prior, n = self.emission.default_prior(2), len(COUNTS)
        table = self.emission.prepare(COUNTS)
        if kind == "mixture":
            self.model = Mixture(self.emission, FiniteWeights(np.ones(2)), prior)
            self.data = self.model.compile(table)
            self.ascent_type, self.capabilities = MixtureAscent, of_mixtures.capabilities_of(self.model)
        else:
            self.model = HMM(self.emission, Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2))), prior)
            self.data = self.model.compile(table, np.array([n]))
            self.ascent_type, self.capabilities = HMMAscent, of_chains.capabilities_of(self.model)
        rng = np.random.default_rng(0)
        drawn = [self.model.statistics_of(rng.dirichlet(np.ones(2), n), self.data) for _ in range(6)]
        self.starts = np.stack(drawn, axis=1)
        self.kind = kind

    def ascent(self, form="vb"):
        return self.ascent_type(self.model, self.data, FORMS[form])

    def fit(self, form="vb", starts=None):
        return best_of(self.ascent(form), self.starts if starts is None else starts, tol=1e-9, max_iter=20_000)

    def evaluation(self, seed=0):
        return Evaluation(
            self.model,
            self.capabilities,
            self.data,
            lambda form, fit: best_of(
                self.ascent_type(self.model, self.data, form),
                np.column_stack([fit.statistics, self.starts]),
                tol=1e-9,
                max_iter=20_000,
            ),
            self.fit(),
            "vb",
            float(len(COUNTS)),
            ("label",),
            [seed],
        )

    def log_evidence(self):
        return log_evidence_over_labels(
            self.kind, len(COUNTS), lambda labels: log_evidence_of_labels(labels, 2, self.emission.unit)
        )


@pytest.fixture(scope="module", params=["mixture", "chain"])
def problem(request):
    return Problem(request.param)


@pytest.fixture(scope="module")
def log_evidence(problem):
    return problem.log_evidence()


@pytest.mark.parametrize("form", ["vb", "map", "ml"])
def test_the_objective_never_falls(problem, form):
    """The driver raises where it does; plain steps, and accelerated ones."""
    for accelerate in (True, False):
        found = run(problem.ascent(form), problem.starts, tol=1e-9, max_iter=20_000, accelerate=accelerate)
        assert found.converged.all()


def test_the_bound_is_one(problem, log_evidence):
    bound = problem.fit().objective
    assert log_evidence - 2.5 < bound < log_evidence


def test_the_bound_is_its_definition(problem):
    """ln Z of rows and of hyperparameters, less the divergence from the base, at any statistics."""
    statistics = problem.fit().statistics
    prior = problem.model.prior
    posterior = prior + statistics
    natural = posterior.expected_natural()
    expected = problem.model.expect(natural[:, None], problem.data)
    of_scales, log_z = prior.hyperprior.expect(natural)
    of_parameters = posterior.kl(prior)
    trace = problem.ascent().advance(after := statistics[:, None].copy(), 1)
    assert trace[0, 0] == approx(float(expected.log_normalizer[0] + log_z - of_parameters), abs=1e-9)
    assert after[:, 0] == approx(expected.statistics[:, 0] + of_scales)


def test_one_label_is_a_bound_that_nothing_but_the_scale_loosens():
    """With one component only q(nu) q(theta) is split; of a scale that is nearly known nothing is lost."""
    losses = []
    for certainty in (1.0, 1e3, 1e6):
        emission = CountsOfUnknownScale(np.array([3.0, 2.0]))
        base = emission.default_prior(1)
        hyper = base.hyperprior
        known = GammaHyperprior(
            hyper.shape * certainty, hyper.rate * certainty, hyper.power, hyper.loadings, hyper.constant
        )
        model = Mixture(emission, FiniteWeights(np.ones(1)), Hierarchical(base.base, known))
        data = model.compile(emission.prepare(COUNTS))
        start = model.statistics_of(np.ones((len(COUNTS), 1)), data)[:, None]
        bound = best_of(MixtureAscent(model, data, FORMS["vb"]), start, tol=1e-10, max_iter=1000).objective
        scale = HYPER_SHAPE / HYPER_RATE
        given = Gamma.from_parameters(np.full((1, 2), SHAPE), np.full((1, 2), scale))
        fixed = Mixture(emission, FiniteWeights(np.ones(1)), given)
        exact = best_of(
            MixtureAscent(fixed, fixed.compile(emission.prepare(COUNTS)), FORMS["vb"]), start, tol=1e-10, max_iter=1000
        ).objective
        losses.append(abs(exact - bound))
    assert losses[1] < losses[0]
    assert losses[2] == approx(0.0, abs=1e-4)


@pytest.mark.parametrize("kind", SAMPLED)
def test_sampled_evidences_are_right(problem, log_evidence, kind):
    """Chains that start from the prior draw the scale first, then rates given the scale."""
    options = {"ais_prior": {"n_chains": 96, "n_steps": 48}, "ais_metropolis": {"n_chains": 48, "n_steps": 256}}.get(
        kind, {}
    )
    found = SCORES[kind](problem.evaluation(), **options)
    assert abs(found.value - log_evidence) < 4.5 * found.standard_error
    assert found.standard_error < 0.3


def test_starts_from_the_prior_alone_are_right(problem, log_evidence):
    """Every kind of start by itself: wide ones of the fit, and the prior."""
    for fractions in ((1.0,), (0.5,), (0.0,)):
        found = SCORES["ais"](problem.evaluation(3), fractions=fractions, n_chains=64, n_steps=48)
        assert abs(found.value - log_evidence) < 4.5 * found.standard_error


def test_chains_do_not_depend_on_others(problem):
    few, many = (SCORES["ais"](problem.evaluation(), fractions=(0.5,), n_chains=n, n_steps=8) for n in (3, 6))
    assert many.details["log_weights"][:3] == approx(few.details["log_weights"], rel=1e-9)


def test_the_entropy_of_rows_is_known_at_a_point(problem):
    """As that of the model in which the hyperparameters are known: at a point they have no say."""
    evaluation = problem.evaluation()
    natural = evaluation.model.prior.natural(evaluation.point("vb"))
    known_model = evaluation.model.with_known_hyperparameters()
    known = capabilities_of(known_model)
    entropy = evaluation.capability("entropy")(natural, evaluation.data)
    assert entropy == approx(known.entropy(natural, evaluation.data), abs=1e-12)
    assert entropy > 0
    assert known.complete_evidence == known_model.prior.log_evidence


def test_evidence_of_complete_data_is_the_integral(problem):
    """Of rows whose labels are known, up to what no label changes."""
    complete_evidence, gaps = problem.capabilities.complete_evidence, []
    table, natural = problem.emission.prepare(COUNTS), problem.model.prior.blocks[-1].expected_natural()
    for labels in (np.zeros(5, int), np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 0])):
        of_counts = problem.emission.statistics(table, np.eye(2)[labels], natural)
        statistics = np.append(np.zeros(problem.model.n_cells - len(of_counts)), of_counts)
        gaps.append(float(complete_evidence(statistics)) - log_evidence_of_labels(labels, 2, problem.emission.unit))
    assert np.ptp(gaps) < 0.06  # each has a standard error of .01


def test_completed_data_bound_the_evidence(problem, log_evidence):
    """For points of any form, and with q mixed over the labels."""
    evaluation = problem.evaluation()
    for form in ("map", "ml", "vb"):
        cs, mled = (SCORES[kind](evaluation, form=form) for kind in ("cheeseman_stutz", "mled"))
        mixed = SCORES["cheeseman_stutz"](evaluation, form=form, alias=True)
        assert cs.value - mled.value == approx(cs.details["entropy"], abs=1e-9)
        assert mled.value <= cs.value <= mixed.value <= log_evidence + 4 * cs.standard_error
        assert 0 < cs.standard_error < 0.011
        assert form != "map" or cs.value > log_evidence - 2.5


@pytest.mark.parametrize("kind", CLOSED)
def test_scores_in_closed_form_say_that_they_have_none(problem, kind):
    words = f"'{kind}' needs the evidence of rows whose hidden variables are known. .* Take 'laplace', or .*importance"
    with pytest.raises(TypeError, match=words):
        SCORES[kind](problem.evaluation())


def test_points_are_scored_with_the_scale_integrated_out(problem):
    """The prior density that BICp adds to the likelihood."""
    evaluation = problem.evaluation()
    found = SCORES["bicp"](evaluation)
    rates = evaluation.point("map")[-1]
    density = 0.0
    for column in rates.T:

        def of_scale(nu, column=column):
            log = HYPER_SHAPE * np.log(HYPER_RATE) - gammaln(HYPER_SHAPE) + (HYPER_SHAPE - 1) * np.log(nu)
            log += (SHAPE * np.log(nu) - gammaln(SHAPE) + (SHAPE - 1) * np.log(column) - nu * column).sum()
            return np.exp(log - HYPER_RATE * nu)

        density += np.log(quad(of_scale, 0, np.inf, epsabs=0, epsrel=1e-10)[0])
    rest = problem.model.prior.blocks[:-1]
    of_rest = sum(
        float(block.log_density(part, "probability")) for block, part in zip(rest, evaluation.point("map")[:-1])
    )
    assert found.details["log_prior"] == approx(density + of_rest, abs=1e-8)


def test_maximum_likelihood_does_not_ask_the_prior(problem):
    """The likelihood at its point is that of the same model with any other prior."""
    plain = Gamma.from_parameters(np.full((2, 2), SHAPE), np.ones((2, 2)))
    other = problem.model.with_prior(
        type(problem.model.prior)((*problem.model.prior.blocks[:-1], plain), problem.model.prior.n_cells)
    )
    fit = best_of(problem.ascent_type(other, problem.data, FORMS["ml"]), problem.starts, tol=1e-9, max_iter=20_000)
    assert problem.fit("ml").objective == approx(fit.objective, abs=1e-6)


def test_the_posterior_is_the_prior_of_the_next_batch(problem):
    """With its hyperparameters at q(nu): a density of the family, none hidden any more."""
    later = problem.model.updated(problem.fit().statistics)
    assert later.prior.hyperprior is None
    assert later.prior.is_valid


@pytest.mark.parametrize("are_hidden", [True, False])
def test_log_normalizers_at_many_temperatures_are_those_at_each(problem, are_hidden):
    """With other numbers of chains than of inverse temperatures, and with no hyperparameters, too."""
    model = problem.model if are_hidden else problem.model.updated(problem.fit().statistics)
    gibbs = (of_mixtures if problem.kind == "mixture" else of_chains).capabilities_of(model).annealing
    statistics = problem.fit().statistics
    path = gibbs.paths(problem.data, np.stack([statistics, 0.5 * statistics, np.zeros(len(statistics))], axis=1))
    point = model.prior.natural(model.prior.sample(np.random.default_rng(0)))
    points = np.repeat(point[:, None], 3, axis=1)
    workspace, temperatures = gibbs.workspace(problem.data, 3), np.array([0.25, 0.75])
    together = gibbs.log_normalizers(workspace, path, temperatures, points)
    assert together.shape == (2, 3)
    for row, t in zip(together, temperatures):
        assert np.array_equal(row, gibbs.log_normalizers(workspace, path, np.array([t]), points)[0])
