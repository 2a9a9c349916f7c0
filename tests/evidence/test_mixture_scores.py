"""Deterministic and drawn scores of mixtures against their definitions, written out in `reference.mixtures`."""

import math

import numpy as np
import pytest
from emissions.defined import DEFINED
from emissions.members import CONJUGATE
from evidence.mixture_problems import case
from reference import mixtures
from reference.differences import hessian
from scipy.special import gammaln

from skvbem import StructureSearchCV, VBDiscreteDAG, VBMixture
from skvbem.datasets import load_carcinoma
from skvbem.emissions import Gaussian, Poisson
from skvbem.errors import TooLargeError
from skvbem.evidence import SCORES, certify_evidence, get_score, score_of
from skvbem.fitting.evaluation import evaluation_of, simulated
from skvbem.models import capabilities_of
from skvbem.models.mixture.marginals import responsibilities as responsibilities_of

approx = pytest.approx

# A prior without hidden hyperparameters, which scores in closed form need.
KNOWN = {"covariance_prior": None, "mean_precision_prior": 1.0}


def exact_of(found):
    return mixtures.log_evidence(found.rows, found.evaluation.model.n_components, found.of_weights, found.of_groups)


# --- the exact sum ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEFINED)
def test_exact_is_the_sum_over_all_assignments(name, rng):
    """One to four components, gaps, sticks, weights of rows that are repeats, 0 among them."""
    for k in range(6):
        weight = rng.integers(0, 3, 4).astype(float) if k >= 4 else None
        found = case(
            name, rng, 4 + (k < 4), 1 + k % 4, gaps=0.3 * (k % 2) * (name in CONJUGATE),
            alpha=(None, 0.7)[k % 3 == 2], weight=weight,
        )  # fmt: skip
        value = get_score("exact")(found.evaluation)
        assert value.value == approx(exact_of(found), rel=1e-11, abs=1e-10)
        assert value.is_lower_bound
        assert value.standard_error is None


def test_equal_rows_are_taken_together(rng):
    """12 rows, 3 of them different: 5 * 5 * 5 sets, not 2^12; and as many components as one likes."""
    found = case("categorical", rng, 3, 2, weight=np.full(3, 4.0))
    value = get_score("exact")(found.evaluation)
    assert value.details["n_terms"] <= 125
    assert value.value == approx(exact_of(found), rel=1e-12)
    found = case("poisson", rng, 9, 12)
    assert get_score("exact")(found.evaluation).details["n_terms"] <= 2**9 + 10 * 3**9
    found = case("diag", rng, 200, 1)
    assert get_score("exact")(found.evaluation).value == approx(found.evaluation.fit("vb").objective, rel=1e-12)


def test_what_is_too_large_or_has_no_closed_form_is_refused(rng):
    found = case("diag", rng, 40, 2)
    with pytest.raises(TooLargeError, match=r"a sum of 1.1e\+12 terms over the components of the 40 rows"):
        get_score("exact")(found.evaluation)
    found = case("tied", rng, 20, 3)
    with pytest.raises(TooLargeError, match=r"a sum of 3.487e\+09 terms"):
        get_score("exact")(found.evaluation)
    for name in ("full", "tied"):
        found = case(name, rng, 8, 2, gaps=0.4)
        with pytest.raises(ValueError, match="of this mixture is an integral that has no closed form: over"):
            get_score("exact")(found.evaluation)
    halves = case("diag", rng, 5, 2, weight=np.full(5, 0.5))
    for kind in ("exact", "collapsed", "collapsed_ascent"):
        with pytest.raises(ValueError, match="needs whole-number sample weights"):
            get_score(kind)(halves.evaluation)
    for kind in ("laplace", "mled", "ais_metropolis"):
        options = {"n_steps": 16} if kind == "ais_metropolis" else {}
        assert np.isfinite(get_score(kind)(halves.evaluation, **options).value)


def test_components_with_priors_of_their_own(rng):
    """Nobody but the model knows that components are alike."""
    found = case("poisson", rng, 5, 2)
    model = found.evaluation.model
    emission_prior = model.prior.blocks[1]
    shape, rate = emission_prior.shape.copy(), emission_prior.rate.copy()
    shape[1], rate[1] = 2.5, 3.0
    other = type(model)(model.emission, model.weights, type(emission_prior).from_parameters(shape, rate))
    value, _ = capabilities_of(other).enumeration(found.evaluation.data, 10**6)
    unit = model.emission.unit

    def of_groups(groups):
        return sum(
            mixtures.poisson([rows[:, [j]]], shape=shape[k, j], rate=rate[k, j] / unit[j])
            for k, rows in enumerate(groups)
            for j in range(2)
        )

    assert value == approx(mixtures.log_evidence(found.rows, 2, found.of_weights, of_groups), rel=1e-12)


def test_exact_lies_between_the_sides_of_a_certificate():
    X = np.random.default_rng(0).normal(size=(9, 2)) * [1.0, 3.0]
    model = VBMixture(2, emission=Gaussian("diag", **KNOWN), random_state=0).fit(X)
    certificate = certify_evidence(model, X, n_chains=32, n_steps=128, random_state=2)
    evaluation, _ = simulated(model, X, None, 2)
    exact = get_score("exact")(evaluation).value
    lower, upper = certificate.lower, certificate.upper
    assert lower.value - 5 * lower.standard_error <= exact <= upper.value + 5 * upper.standard_error
    assert certificate.gap < 1.0


# --- bounds -----------------------------------------------------------------------------------------------------------


def responsibilities(evaluation, natural):
    return np.concatenate([q for _, q in responsibilities_of(evaluation.model, natural, evaluation.data)])


@pytest.mark.parametrize("name", DEFINED)
def test_the_collapsed_bound_is_its_definition(name, rng):
    """Of counts to rounding, of other statistics within its standard errors; never below the plain bound."""
    deviations = []
    for k in range(4):
        found = case(name, rng, 5, 2 + k % 2, gaps=0.3 * (k % 2) * (name in CONJUGATE), alpha=(None, 0.7)[k == 3])
        evaluation = found.evaluation
        natural = (evaluation.model.prior + evaluation.fit("vb").statistics).expected_natural()
        q = responsibilities(evaluation, natural)[evaluation.data.weight > 0]
        expected = mixtures.collapsed_bound(found.rows, q, found.of_weights, found.of_groups)
        value = get_score("collapsed")(evaluation, n_draws=800)
        assert value.value >= evaluation.fit("vb").objective - 1e-7
        assert value.is_lower_bound
        for n_draws in (2, 3, 4, 5):
            assert get_score("collapsed")(evaluation, n_draws=n_draws).details["gain"] >= -1e-9
        if name in ("categorical", "bernoulli"):
            assert value.standard_error is None
            assert value.value == approx(expected, abs=1e-9)
            assert value.details["n_draws"] == 0
        else:
            deviations.append((value.value - expected) / np.hypot(value.standard_error, 1e-3))
        entropy = -(q * np.log(np.maximum(q, 1e-300))).sum()
        assert value.details["entropy"] == approx(entropy, abs=1e-9)
        assert value.details["expected_log_bd"] + entropy == approx(value.value, abs=1e-9)
    assert all(abs(z) < 4.5 for z in deviations)


@pytest.mark.parametrize("name", DEFINED)
def test_bounds_are_in_their_order(name, rng):
    """MLED <= CS <= VB begun from it <= collapsed <= ascended (of one choice of draws) <= exact."""
    gained = []
    for k in range(4):
        found = case(name, rng, 6, 2 + k % 2, alpha=(None, 0.7)[k == 3], gaps=0.3 * (k % 2) * (name in CONJUGATE))
        evaluation, exact = found.evaluation, get_score("exact")(found.evaluation).value
        mled, cs = (get_score(kind)(evaluation) for kind in ("mled", "cheeseman_stutz"))
        plain, ascended = get_score("lower_bound")(evaluation), get_score("collapsed_ascent")(evaluation)
        assert mled.value <= cs.value <= plain.value + 1e-6
        assert cs.value - mled.value == approx(cs.details["entropy"], abs=1e-9)
        assert cs.details["entropy"] == mled.details["entropy"]
        trace = ascended.details["trace"]
        gained.append(max(trace) - trace[0])
        slack = 4.5 * (ascended.standard_error or 0.0) + 1e-9
        assert plain.value - 1e-7 <= ascended.value <= exact + slack
    assert max(gained) > 0.01


@pytest.mark.parametrize("name", ["full", "tied"])
def test_bounds_with_hidden_measurements(name, rng):
    """No closed form of the evidence; AIS, which is right on average, stands in."""
    evaluation = case(name, rng, 6, 2, gaps=0.3).evaluation
    ais = get_score("ais")(evaluation, n_chains=32, n_steps=32)
    ascended = get_score("collapsed_ascent")(evaluation)
    mled, cs, plain = (get_score(kind)(evaluation).value for kind in ("mled", "cheeseman_stutz", "lower_bound"))
    assert mled <= cs <= plain + 1e-6 <= ascended.value + 2e-6
    assert ascended.value <= ais.value + 5 * np.hypot(ais.standard_error, ascended.standard_error)


def test_what_is_drawn_is_the_same_for_any_number_of_threads_and_other_draws_score_than_choose(rng):
    evaluation = case("full", rng, 40, 3).evaluation
    values = []
    for n_jobs in (1, 2):
        evaluation.n_jobs = n_jobs
        values.append(get_score("collapsed_ascent")(evaluation, n_draws=48))
    assert values[0].value == values[1].value
    trace = values[0].details["trace"]
    assert values[0].value != max(trace)
    assert len(trace) == 5
    with pytest.raises(ValueError, match=r"needs 'n_draws' to be an int >= 2\. Got 1"):
        get_score("collapsed")(evaluation, n_draws=1)


@pytest.mark.parametrize("kind", ["ais", "smc_data", "importance_gibbs"])
def test_threads_change_no_bit_of_a_sampled_evidence(kind, rng):
    """Though last digits of sums hang on how many chains stand side by side."""
    evaluation = case("full", rng, 60, 3).evaluation
    options = {"ais": {"n_chains": 200, "n_steps": 8}, "smc_data": {"n_particles": 300, "max_particles": 300}}
    values = []
    for n_jobs in (1, 3):
        evaluation.n_jobs = n_jobs
        values.append(get_score(kind)(evaluation, **options.get(kind, {"n_draws": 1100})))
    assert values[0].value == values[1].value
    assert np.array_equal(values[0].details["log_weights"], values[1].details["log_weights"])


@pytest.mark.parametrize("name", DEFINED)
def test_bounds_over_relabelings_stay_bounds(name, rng):
    """And gain something where components lie apart, ln of the number of orders at the most."""
    gains = []
    for k in range(2):
        evaluation = case(name, rng, 6, 2 + k % 2).evaluation
        exact = get_score("exact")(evaluation).value
        for kind in ("lower_bound", "collapsed", "cheeseman_stutz", "mled"):
            value = get_score(kind)(evaluation, alias=True)
            assert value.value <= exact + 4.5 * (value.standard_error or 0.0) + 1e-9, kind
            assert 0 <= value.details["alias"] <= gammaln(3 + k % 2) + 1e-9
            gains.append(value.details["alias"])
        bic = get_score("bic")
        assert bic(evaluation, alias=True).value - bic(evaluation).value == approx(gammaln(3 + k % 2))
    assert max(gains) > 0.05
    ordered = case(name, rng, 6, 3, alpha=1.0).evaluation
    assert get_score("lower_bound")(ordered, alias=True).details["alias"] == 0.0


def test_too_many_orders_are_refused(rng):
    evaluation = case("poisson", rng, 12, 9).evaluation
    with pytest.raises(TooLargeError, match=r"3.629e\+05 orders of the 9 components, more than the 5040"):
        get_score("lower_bound")(evaluation, alias=True)


# --- Laplace ----------------------------------------------------------------------------------------------------------


def log_posterior(evaluation, free):
    """ln p(y, theta) with respect to unconstrained coordinates (d, n_points), from log likelihoods alone."""
    prior = evaluation.model.prior
    point = prior.from_unconstrained(free)
    found = [
        evaluation.capabilities.points.log_likelihoods(evaluation.data, prior.natural(point)),
        prior.log_density(point),
    ]
    return sum(found)


@pytest.mark.parametrize("name", DEFINED)
def test_laplace_is_the_gaussian_of_the_hessian(name, rng):
    """Gaps (hidden measurements among them), fractional weights, sticks."""
    for k in range(3):
        weight = rng.uniform(0.5, 3.0, 12) if k == 2 else None
        found = case(
            name, rng, 12, 1 + (k > 0), gaps=0.3 * (k > 0), alpha=(None, 0.8)[k == 1], weight=weight, n_starts=10
        )
        evaluation = found.evaluation
        point = evaluation.point("map")
        free = evaluation.model.prior.to_unconstrained(point)
        matrix = -hessian(lambda free, evaluation=evaluation: log_posterior(evaluation, free), free)
        sign, log_det = np.linalg.slogdet(matrix)
        value = get_score("laplace")(evaluation)
        assert value.details["variant"] == "full"
        assert sign == 1
        expected = log_posterior(evaluation, free[:, None])[0] + len(free) / 2 * math.log(2 * math.pi) - log_det / 2
        assert value.value == approx(expected, abs=1e-5)
        assert value.n_free_parameters == len(free)
        diagonal = get_score("laplace")(evaluation, variant="diagonal")
        assert diagonal.details["log_det"] == approx(np.log(np.diag(matrix)).sum(), abs=1e-5)
        block = get_score("laplace")(evaluation, variant="block").details["log_det"]
        assert np.isfinite(block)
        if k == 0:
            assert block == approx(value.details["log_det"], abs=1e-9)


def test_blocks_are_components(rng):
    """Parameters of different components, and weights, have no part in each other's block."""
    evaluation = case("independent", rng, 15, 3, gaps=0.2).evaluation
    model, point = evaluation.model, evaluation.point("map")
    (whole,) = capabilities_of(model).information(point, evaluation.data)
    blocks = capabilities_of(model).information(point, evaluation.data, joint=False)
    assert sorted(np.concatenate([block.free for block in blocks])) == whole.free.tolist()
    assert [len(block.free) for block in blocks] == [2, 10, 10, 10]
    assert whole.covariance == approx(whole.covariance.T, abs=1e-12)
    for block in blocks:
        assert block.covariance == approx(whole.covariance[np.ix_(block.free, block.free)], abs=1e-12)
    shared = case("tied", rng, 15, 3).evaluation
    blocks = shared.capabilities.information(shared.point("map"), shared.data, joint=False)
    assert [len(block.free) for block in blocks] == [2, 2, 2, 2, 3]


@pytest.mark.parametrize("name", DEFINED)
def test_laplace_nears_the_closed_form_as_data_grow(name, rng):
    """Of one component; an error of order 1 / n, in natural coordinates and with respect to the parameters."""
    for form in ("map", "map_probability"):
        errors = []
        for n in (40, 400):
            found = case(name, rng, n, 1)
            exact = found.of_groups([found.rows])
            errors.append(abs(get_score("laplace")(found.evaluation, form=form).value - exact))
        assert errors[1] < 0.1
        assert errors[1] < 0.4 * errors[0] + 1e-3


def test_laplace_in_rates():
    """Posterior Gamma(a, b): mode (a - 1) / b, curvature (a - 1) / mode^2, the density that of the rate."""
    X = np.array([[3.0], [1.0], [4.0], [2.0]])
    model = VBMixture(1, emission=Poisson(2.0, 0.5), method="map", map_basis="probability")
    found = model.fit(X).log_evidence(X, kind="laplace", form="map_probability")
    a, b = 2.0 + X.sum(), 0.5 + len(X)
    mode = (a - 1) / b
    top = (X * np.log(mode) - mode - gammaln(X + 1)).sum() + np.log(0.5) * 2.0 + np.log(mode) - 0.5 * mode
    assert found.value == approx(top + 0.5 * np.log(2 * np.pi * mode**2 / (a - 1)), abs=1e-8)


def test_laplace_of_components_that_lie_apart(rng):
    """The evidence is that of the two groups, times two for their names."""
    X = np.concatenate([rng.normal(size=(150, 1)), 1000 + rng.normal(size=(250, 1))])
    prior = KNOWN | {"mean_prior": [500.0], "covariance_prior": [[1e4]]}
    model = VBMixture(2, emission=Gaussian(**prior), random_state=0).fit(X)
    found = model.log_evidence(X, kind="laplace", alias=True)
    groups = mixtures.full([X[:150], X[150:]], mean=[500.0], kappa=1.0, dof=1.0, scale=np.array([[1e4]]))
    assert found.value == approx(groups + mixtures.dirichlet([150, 250], 1.0) + np.log(2), abs=0.02)


def test_an_empty_component_casts_doubt_or_costs_what_its_prior_says(rng):
    """Nothing but the prior holds an empty component: no crash, and a maximum in all directions."""
    X = rng.normal(size=(60, 2))
    found = VBMixture(4, emission=Gaussian(**KNOWN), random_state=0).fit(X)
    value = score_of(evaluation_of(found, X), "laplace", {})
    assert np.isfinite(value.value)
    assert value.details["variant"] == "full" or value.doubts


# --- Metropolis chains ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["spherical", "exponential", "bernoulli"])
def test_metropolis_chains_find_the_evidence(name, rng):
    found = case(name, rng, 4, 2, gaps=0.2, alpha=0.7 if name == "bernoulli" else None)
    value = get_score("ais_metropolis")(found.evaluation, n_chains=24, n_steps=300)
    assert not value.doubts
    assert value.value == approx(exact_of(found), abs=4.5 * value.standard_error + 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFINED)
def test_deviations_of_metropolis_chains_are_standard_normal(name, rng):
    """All parameters are proposed together: of several groups of columns steps are shorter, and more are needed."""
    z, n_steps = [], 4096 if name == "independent" else 1024
    for k in range(40):
        found = case(name, rng, 4, 2, gaps=0.3 * (k % 2) * (name in CONJUGATE), alpha=(None, 0.7)[k % 3 == 0])
        value = get_score("ais_metropolis")(found.evaluation, n_chains=32, n_steps=n_steps)
        if not value.doubts:
            z.append((value.value - exact_of(found)) / np.hypot(value.standard_error, 0.01))
    assert len(z) >= 5
    assert abs(np.mean(z)) < 5 / np.sqrt(len(z)) + 0.3
    assert np.std(z) < 2.0


@pytest.mark.parametrize("name", ["full", "tied", "spherical", "poisson", "multinomial"])
def test_metropolis_chains_stay_in_the_prior_where_data_say_nothing(name, rng):
    """At inverse temperature 0: means of natural parameters, which the family knows."""
    evaluation = case(name, rng, 4, 2).evaluation
    model, streams = evaluation.model, rng.integers(0, 2**64, size=(4, 1000), dtype=np.uint64)
    point = capabilities_of(model).points.draw_points(np.zeros((model.n_cells, 1000)), streams)
    before, likelihood = point.copy(), np.zeros(1000)
    ratios, accepted = capabilities_of(model).metropolis.metropolis(
        evaluation.data, np.zeros(13), np.full(12, 2.0), streams, point, likelihood
    )
    assert 0.05 < accepted.mean() < 0.9
    assert ratios.tolist() == np.zeros((12, 1000)).tolist()
    assert (point != before).any(axis=0).mean() > 0.5
    error = point.std(axis=1) / np.sqrt(1000)
    assert np.all(abs(point.mean(axis=1) - model.prior.expected_natural()) < 5 * error + 1e-12)


# --- dimension, and other estimators ----------------------------------------------------------------------------------


def test_identifiable_dimensions(rng):
    """Of categories that of the network; measurements tell components apart; of shares it is not known."""
    found = case("bernoulli", rng, 6, 3).evaluation
    assert found.capabilities.dimension(("component",)) == 7  # of 11: three columns have 2^3 - 1 directions
    for name in ("full", "tied", "poisson", "exponential", "independent"):
        model = case(name, rng, 6, 3).evaluation.model
        assert capabilities_of(model).dimension(("component",)) == model.prior.n_free_parameters
    shares = case("multinomial", rng, 6, 2).evaluation
    with pytest.raises(ValueError, match="depends on the totals of the rows, and is not known here"):
        get_score("bic")(shares, dimension="identifiable")
    assert case("multinomial", rng, 6, 1).evaluation.capabilities.dimension(()) == 2


KINDS = [kind for kind in SCORES if not SCORES[kind].random]


@pytest.mark.parametrize("every", [12, 1])
def test_categories_are_the_latent_class_network_in_every_score(every):
    X = load_carcinoma().data[::every]
    mixture = VBMixture(2, emission="categorical", random_state=0, tol=1e-12).fit(X)
    network = VBDiscreteDAG(latents=2, random_state=0, tol=1e-12).fit(X)
    for kind in KINDS:
        if kind == "exact" and every == 1:
            continue
        options = [{}]
        options += [{"alias": True}] if "alias" in SCORES[kind].options else []
        options += [{"dimension": "identifiable"}] if "dimension" in SCORES[kind].options else []
        for given in options:
            ours, theirs = (model.log_evidence(X, kind=kind, **given) for model in (mixture, network))
            error = 1e-3 if kind == "linear_response" else 1e-5  # which takes derivatives by differences
            assert ours.value == approx(theirs.value, abs=error), (kind, given)
            assert (ours.form, ours.n_free_parameters) == (theirs.form, theirs.n_free_parameters)
            assert ours.is_lower_bound == theirs.is_lower_bound


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_the_default_score_of_a_search_knows_mixtures(covariance_type, rng):
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal([6.0, 0.0], size=(40, 2))])
    estimator = VBMixture(emission=Gaussian(covariance_type, **KNOWN), n_init=4)
    options = {"rescoring": False, "random_state": 0}
    search = StructureSearchCV(estimator, {"n_components": range(1, 5)}, **options).fit(X)
    assert search.best_params_ == {"n_components": 2}
    again = StructureSearchCV(estimator, {"n_components": range(1, 5)}, **options, n_jobs=2).fit(X)
    assert again.score_weights_.tolist() == search.score_weights_.tolist()
