"""Factor analyzers: bounds of an independent program, exact evidences, closed forms, and other emissions."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from emissions.members import factor
from scipy.special import digamma, gammaln, hyperu
from sklearn.base import clone
from sklearn.decomposition import FactorAnalysis

from skvbem import VBHMM, VBMixture
from skvbem.emissions import FactorGaussian, Gaussian
from skvbem.emissions.base import n_redundant_parameters
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.emissions.factor.expansion import FactorExpansion
from skvbem.emissions.factor.hidden import HiddenFactors
from skvbem.emissions.factor.second_moments import corners_of
from skvbem.errors import EvidenceWarning
from skvbem.evidence.aliasing import alias_correction
from skvbem.fitting.evaluation import evaluation_of
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.testing import check_emission
from skvbem.vbem.driver import run
from skvbem.vbem.posteriors import ML, VB

approx = pytest.approx

#: Priors that references were computed under.
KNOWN = {"noise_prior": (1.0, 0.5), "mean_precision_prior": 1.0}

# Tables that were not standardized, with the bounds that another program found, and their evidences.
T1 = "0.5,-0.2 -1,-0.7 0.8,1.1"
A = (
    "-0.2,0.3,0.1 0,0.4,-0.2 -0.3,1.4,1.5 -0.2,-2.7,-2.2 0,2.1,2.5 0.1,0.4,-0.8 -0.3,0.7,0.1 0.1,0,-0.6 "
    "0.7,-0.2,-0.2 0.2,1.2,0 0.3,1.6,0.3 0.2,-0.5,0.1 -0.2,-0.3,-0.1 -0.4,1.4,1 0.2,-1.7,-0.7 0.2,-2.6,-1.9 "
    "0.6,1.5,-0.2 0.4,-0.9,-1 -0.6,-2.5,-3.5 0.3,-0.7,-2"
)
B = (
    "-0.3,1.7 -0.1,-1.9 0.4,-1.6 0.4,-2 -0.3,-0.8 -0.1,1.1 0.1,-0.3 0,1.5 0.2,-2.7 0.5,0.1 0.3,-0.8 -0.2,1.3 "
    "-0.2,1.4 -0.2,1.4 0.5,-0.3 0.6,1.6 0.5,1.4 0.6,0.7 0.1,-0.6 0.3,-0.6"
)
C = (
    "-1.9,2.1,nan,0.1 1.1,-2.5,0.5,0.6 1.4,-1.7,-0.1,0.4 -1.5,nan,-0.8,0.3 nan,nan,-0.1,-0.4 1.8,-2,0.8,nan "
    "1.5,-2.1,nan,0.5 -0.9,2.6,-0.7,nan -1.1,nan,nan,nan -3.6,7.3,nan,-1.5 3.2,-6.7,nan,-0.1 0.4,0.7,-0.6,0.3 "
    "nan,-4.9,1.2,0.1 1.1,-2.5,-0.3,0.6 nan,-7.4,1.7,0.1 2.8,-5.8,2.6,nan nan,-1.3,0.6,nan 2.6,-5.6,1.6,0.3 "
    "-1.3,3.9,-1.8,-0.2 2.3,-5.1,2.5,-0.4"
)
D = (
    "0.5,2.8 -0.9,2.6 4.1,8.9 0.7,4.1 -3.3,-4.2 0.1,-0.3 0.7,1.6 -0.2,2.8 0,2.5 -0.8,0.6 -0.8,-0.5 2.9,7.1 "
    "-0.8,-1.8 -1.8,3.5 -2,-2.3 0.6,1.2"
)
E = (
    "-0.6,0,0.9,0.3 -2.5,-0.3,2.4,1.3 -3.5,-1.1,1.9,0.3 -1,-0.2,0.6,-1 4.3,-0.4,-2.3,0.4 -1.5,0.2,0.4,-0.2 "
    "-1.4,2,1.1,-2.9 1.8,0.4,0.3,-0.1 3.1,1.4,-3.1,-2.6 -0.2,0.2,-0.1,-1.9 -0.3,0.2,1.4,0.8 1.4,1.7,-1.3,-2.5 "
    "-4.7,0.5,2.2,-1.5 0.9,1.4,0.1,-1.7 4.2,0.3,-2.3,0.8 0,-0.4,0.4,-0.3 -1,-1.4,1.7,3.8 -1.7,-0.8,0.6,1.3 "
    "0,1.2,-0.8,-3.4 -1.6,0.2,1.3,-0.3 0.6,-1.4,0.1,3.4 -3.4,-0.1,1.3,-0.9 0,1.5,-0.1,-3.2 1.8,-0.2,-0.5,-0.9"
)


def table(text):
    """A table of numbers, rows apart by blanks."""
    return np.array([[float(cell) for cell in row.split(",")] for row in text.split()])


def analyzer(Y, n_factors, loadings=None, **options):
    """The emission that measures a table in its own units, from zero."""
    d = Y.shape[1]
    loadings = np.zeros((d, n_factors)) if loadings is None else loadings
    return FactorAnalyzer(np.zeros(d), np.ones(d), np.zeros(d), np.isnan(Y).any(axis=0), loadings, **options)


def ascent_of(Y, n_factors, n_components=1, relevance_prior=(1.0, 1.0), form=VB, weight=None, prior=None, **options):
    """Full steps of a mixture of factor analyzers under the prior of the bounds above, or another."""
    emission = analyzer(Y, n_factors, **options)
    prior = emission.default_prior(n_components, relevance_prior=relevance_prior, **(prior or KNOWN))
    model = Mixture(emission, FiniteWeights(np.ones(n_components)), prior)
    data = model.compile(emission.prepare(Y), weight, ~np.isnan(Y).all(axis=1))
    return MixtureAscent(model, data, form)


def starts_of(ascent, rng, n_starts=4):
    """Statistics of random loadings and random components."""
    model, data, columns = ascent.model, ascent.data, []
    for _ in range(n_starts):
        emission = replace(model.emission, loadings=rng.normal(size=model.emission.loadings.shape))
        of_start = Mixture(emission, model.weights, model.prior.blocks[1])
        columns.append(of_start.statistics_of(rng.dirichlet(np.ones(model.n_components), len(data)), data))
    return np.stack(columns, axis=1)


def fitted(Y, n_factors, rng, tol=1e-9, n_starts=4, **options):
    ascent = ascent_of(Y, n_factors, **options)
    return run(ascent, starts_of(ascent, rng, n_starts), tol=tol, max_iter=20_000)


@pytest.mark.parametrize(
    ("rows", "n_factors", "options", "bound"),
    [
        (T1, 1, {"relevance_prior": 1.0}, -10.515254480),
        (T1, 1, {}, -10.818431369),
        (T1, 1, {"relevance_prior": 1.0, "spherical": True}, -10.256700304),
        (T1, 1, {"spherical": True}, -10.559250942),
        (A, 1, {}, -81.18827554),
        (A, 0, {}, -86.204917797),
        (B, 1, {"spherical": True}, -52.42112898),
        (C, 1, {}, -110.36072925),
        (D, 1, {"n_components": 2}, -78.65493956),
    ],
)
def test_bounds_of_another_program(rows, n_factors, options, bound, rng):
    """Term by term, with gaps, of one component and of two; of no factor it is the evidence."""
    result = fitted(table(rows), n_factors, rng, n_starts=6, **options)
    assert result.objective.max() == approx(bound, abs=2e-8)
    for trace in result.traces:
        assert np.all(np.diff(trace) >= -1e-9 * abs(bound))


def test_a_factor_that_a_component_has_not_is_not_there(rng):
    """Room for more factors than components have changes nothing: they are as their prior says, at no cost."""
    Y = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 4)) + rng.normal(size=(40, 4))
    Y[rng.random(Y.shape) < 0.1] = np.nan
    for q in (0, 1):
        loadings = rng.normal(size=(4, 3))
        bounds = [
            run(ascent, ascent.model.statistics_of(np.ones((40, 1)), ascent.data)[:, None], tol=1e-9, max_iter=5000)
            for ascent in (
                ascent_of(Y, q, loadings=loadings[:, :q]),
                ascent_of(Y, 3, loadings=loadings, n_factors_of=(q,)),
            )
        ]
        assert bounds[1].objective == approx(bounds[0].objective, abs=1e-8)


def test_components_may_have_different_numbers_of_factors(rng):
    """One component that a factor explains, and one that has none: neither number is right for both."""
    one = rng.normal(size=(60, 1)) * [1.0, 1.0, 1.0, 1.0] + 0.3 * rng.normal(size=(60, 4))
    X = np.concatenate([one, 8.0 + rng.normal(size=(60, 4))])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    of_rows = np.repeat(np.eye(2), 60, axis=0)
    bounds = {}
    for numbers in [(0, 0), (1, 0), (0, 1), (1, 1)]:
        ascent = ascent_of(X, 1, n_components=2, loadings=np.full((4, 1), 0.5), n_factors_of=numbers)
        start = ascent.model.statistics_of(of_rows, ascent.data)[:, None]
        bounds[numbers] = run(ascent, start, tol=1e-7, max_iter=5000).objective[0]
    assert max(bounds, key=bounds.get) == (1, 0)


def test_two_factors_reach_what_another_program_found(rng):
    assert fitted(table(E), 2, rng, tol=1e-7).objective.max() >= -174.56147


def test_loadings_of_zero_lead_nowhere(rng):
    """They are a stationary point, which is why fits start elsewhere."""
    ascent = ascent_of(table(A), 1)
    start = ascent.model.statistics_of(np.ones((20, 1)), ascent.data)[:, None]
    assert run(ascent, start, tol=1e-9, max_iter=500).objective[0] == approx(-90.492081243, abs=1e-8)


@pytest.mark.parametrize(
    ("rows", "n_factors", "spherical", "bounds"),
    [
        (A, 1, False, (-81.18828, -81.32069)),
        (B, 1, True, (-52.42113, -52.46697)),
        (E, 2, False, (-174.56145, -174.78253)),
    ],
)
def test_noise_and_coefficients_together_are_bounded_more_tightly(rows, n_factors, spherical, bounds):
    """Than apart, q(w) q(tau), as another program has it: its best has the same moments, so the difference is known."""
    n, d = table(rows).shape
    n_coefficients = (1 + n_factors) * (d if spherical else 1)
    a = 1 + n * (d if spherical else 1) / 2
    apart = a + n_coefficients / 2
    of_precision = (apart - a) * digamma(apart) - gammaln(apart) + gammaln(a) + a * np.log(apart / a) + a - apart
    of_coefficients = 0.5 * n_coefficients * (np.log(apart) - digamma(apart))
    cost = (of_precision + of_coefficients) * (1 if spherical else d)
    assert cost > 0
    assert bounds[0] - cost == approx(bounds[1], abs=4e-5)


@pytest.mark.parametrize(
    ("rows", "spherical", "log_posterior", "log_likelihood", "precision", "relevance"),
    [
        (T1, False, -13.238177306, None, None, None),
        (A, False, -77.117543314, -63.406423415, [7.046871, 2.441939, 2.642768], 0.614168),
        (B, True, -49.946746462, None, None, None),
    ],
)
def test_modes_of_another_program(rows, spherical, log_posterior, log_likelihood, precision, relevance):
    """There the mode of ln nu, too, at which its density is less than the integral over it by a known constant."""
    Y = table(rows)
    emission = AsGiven(1, noise="spherical" if spherical else "diag", **KNOWN)
    model = VBMixture(1, emission=emission, method="map", tol=1e-12, random_state=0).fit(Y)
    shape = 1 + Y.shape[1] / 2
    assert model.log_posterior_ + shape * np.log(shape) - shape - gammaln(shape) == approx(log_posterior, abs=1e-8)
    if precision is not None:
        (of_group,) = model.parameters_.values()
        tau = 1 / of_group["noise_variances"][0]
        np.testing.assert_allclose(tau, precision, atol=2e-6)
        assert shape / (1 + 0.5 * tau @ of_group["loadings"][0, :, 0] ** 2) == approx(relevance, abs=1e-6)
        # where the log posterior is flat to the digits that were printed, the likelihood alone is known to fewer
        assert model.score_samples(Y).sum() == approx(log_likelihood, abs=2e-6)


# Without factors, and with too many -----------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["diag", "spherical"])
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_without_factors_it_is_the_gaussian_of_independent_columns(noise, share, rng):
    """Units of one noise for all columns are those of each column here, and one for all there: columns are alike."""
    X = rng.normal(size=(40, 3))
    X -= X.mean(axis=0)
    X /= X.std(axis=0)
    X[rng.random(X.shape) < share] = np.nan
    if share:  # then columns are not alike by themselves
        X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    d = 3 if noise == "spherical" else 1
    known = {"mean_precision_prior": 0.7, "mean_prior": np.zeros(3)}
    covariance = 1.0 if noise == "spherical" else np.ones(3)
    diagonal = Gaussian(noise, degrees_of_freedom_prior=2.0, covariance_prior=covariance, **known)
    factor = FactorGaussian(0, noise=noise, noise_prior=(d * 1.0, d * 0.5), **known)
    for k in (1, 2):
        a, b = (
            VBMixture(k, emission=emission, init="k-means++", tol=1e-10, random_state=0).fit(X)
            for emission in (diagonal, factor)
        )
        assert a.lower_bound_ == approx(b.lower_bound_, abs=1e-8)


@pytest.mark.parametrize("known", [{}, {"mean_precision_prior": 0.7, "mean_prior": [0.5, -0.4, 1.0]}])
def test_without_factors_hidden_rates_are_those_of_the_gaussian(known, rng):
    X = rng.normal(size=(60, 3)) + 4 * rng.integers(0, 2, 60)[:, None] * [1, -1, 0]
    options = {"init": "k-means++", "tol": 1e-10, "random_state": 0}
    for k in (1, 2):
        a, b = (
            VBMixture(k, emission=kind, **options) for kind in (Gaussian("diag", **known), FactorGaussian(0, **known))
        )
        assert a.fit(X).lower_bound_ == approx(b.fit(X).lower_bound_, abs=1e-6)


def of_an_extinct_factor(n, d, c0, d0):
    """What a factor costs that explains nothing of n complete rows: its fixed point, in closed form."""
    shape, V = c0 + d / 2, 1.0
    for _ in range(10_000):
        V = 1 / (shape / (d0 + 0.5 * d * V) + n / (1 + d * V))
    rate = d0 + 0.5 * d * V
    log_nu = digamma(shape) - np.log(rate)
    kl = (shape - c0) * digamma(shape) - gammaln(shape) + gammaln(c0) + c0 * (np.log(rate) - np.log(d0))
    kl += shape * (d0 - rate) / rate
    return -0.5 * n * np.log1p(d * V) - 0.5 * d * (shape / rate * V - 1 - np.log(V) - log_nu) - kl


def test_a_factor_that_explains_nothing_costs_what_its_formula_says():
    """Of a table without any correlation, for each factor: 14 nats of 200 rows of 6 columns."""
    Y = np.sqrt(200 / 6) * corners_of(np.eye(5))[:, :5] * np.sqrt(6 / 200)
    Y = np.tile(Y, (40, 1))  # uncorrelated columns of variance 1, 240 rows
    n, d = Y.shape
    bounds = [VBMixture(1, emission=FactorGaussian(q), tol=1e-10, random_state=0).fit(Y).lower_bound_ for q in range(3)]
    assert np.diff(bounds) == approx(of_an_extinct_factor(n, d, 1.0, 1.0), abs=1e-6)
    assert of_an_extinct_factor(200, 6, 1.0, 1.0) == approx(-14.118489, abs=1e-6)
    assert of_an_extinct_factor(200, 10, 1e-3, 1e-3) == approx(-8.675759, abs=1e-6)


@pytest.mark.parametrize(
    ("d", "c0", "cost"), [(3, 1.0, 0.506044), (10, 1.0, 0.963065), (50, 1.0, 1.706905), (10, 1e-3, 6.784326)]
)
def test_a_component_without_rows_costs_what_its_formula_says(d, c0, cost, rng):
    """Loadings and their precision depend on each other in the prior, in q(theta) they do not: the more, the vaguer."""
    Y = rng.normal(size=(4, d))
    ascent = ascent_of(Y, 1, relevance_prior=(c0, 2.0), weight=np.zeros(4))
    ran = run(ascent, starts_of(ascent, rng, 1), tol=1e-12, max_iter=2000)
    c = c0 + d / 2
    kl = (c - c0) * digamma(c) - gammaln(c) + gammaln(c0) - c0 * np.log(c0 / c) + c * (c0 / c - 1)
    formula = -0.5 * d * (digamma(c) - np.log(c)) + kl
    assert formula == approx(cost, abs=1e-6)
    assert -ran.objective[0] == approx(formula, abs=1e-7)


# Maximum likelihood ---------------------------------------------------------------------------------------------------


def test_maximum_likelihood_is_that_of_scikit_learn(rng):
    Y = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(60, 5)) * [0.4, 0.6, 0.8, 1.0, 1.2]
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    model = VBMixture(1, emission=FactorGaussian(2), method="ml", n_init=1, tol=1e-10, random_state=0).fit(Y)
    theirs = FactorAnalysis(2, tol=1e-12, max_iter=100_000, svd_method="lapack").fit(Y)
    assert model.log_likelihood_ == approx(60 * theirs.score(Y), abs=1e-6)


def test_maximum_likelihood_of_one_noise_is_that_of_principal_components(rng):
    """In closed form [Tipping & Bishop 1999]."""
    Y = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(50, 6))
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    values = np.linalg.eigvalsh(Y.T @ Y / 50)[::-1]
    noise = values[2:].mean()
    expected = -0.5 * 50 * (6 * np.log(2 * np.pi) + np.log(values[:2]).sum() + 4 * np.log(noise) + 6)
    emission = FactorGaussian(2, noise="spherical")
    model = VBMixture(1, emission=emission, method="ml", tol=1e-10, random_state=0).fit(Y)
    assert model.log_likelihood_ == approx(expected, abs=1e-6)


# Ways that must not differ --------------------------------------------------------------------------------------------


def test_corners_of_a_simplex_stand_for_all_rows(rng):
    Y = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 6)) + rng.normal(size=(200, 6)) + 1e3
    few = VBMixture(1, emission=FactorGaussian(2), tol=1e-8, random_state=0)
    every = VBMixture(1, emission=FactorGaussian(2), tol=1e-8, random_state=0, init="k-means++")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HiddenFactors, "condensed", lambda self, blocks: None)
        bound = every.fit(Y).lower_bound_
    assert few.fit(Y).lower_bound_ == approx(bound, abs=1e-6)
    assert corners_of(np.eye(4)).sum(axis=0) == approx(np.zeros(4))
    assert corners_of(np.eye(4)).T @ corners_of(np.eye(4)) / 5 == approx(np.eye(4))


def test_the_map_of_factors_changes_no_optimum(rng):
    """Without it, steps are many times as many, and end where they end with it."""
    Y = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(100, 5))
    ascent = ascent_of(Y, 2)
    starts = starts_of(ascent, rng, 2)
    with_map = run(ascent, starts, tol=1e-8, max_iter=20_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MixtureAscent, "_expanded", lambda self, rows, hidden, natural, expansion: (rows + hidden, None))
        without = run(ascent, starts, tol=1e-8, max_iter=20_000)
    assert with_map.objective.max() == approx(without.objective.max(), abs=1e-5)


def test_a_chain_of_one_state_and_a_mixture_of_one_component_are_one_model(rng):
    X = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 4)) + rng.normal(size=(50, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    fit = partial(FactorGaussian, 1)
    mixture = VBMixture(1, emission=fit(), tol=1e-9, random_state=0).fit(X)
    chain = VBHMM(1, emission=fit(), tol=1e-9, random_state=0).fit(X)
    group = VBMixture(1, emission=[("all", fit(), slice(None))], tol=1e-9, random_state=0).fit(X)
    assert mixture.lower_bound_ == approx(chain.lower_bound_, abs=1e-7)
    assert mixture.lower_bound_ == approx(group.lower_bound_, abs=1e-10)


def test_no_unit_of_measure_makes_a_difference(rng):
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 4)) + rng.normal(size=(60, 4))
    scale = np.array([1e-3, 1.0, 50.0, 1e6])
    model = VBMixture(2, emission=FactorGaussian(1), tol=1e-8, random_state=0)
    a, b = (clone(model).fit(Z) for Z in (X, X * scale + [1e4, 0, -3, 7e7]))
    assert b.lower_bound_ + 60 * np.log(scale).sum() == approx(a.lower_bound_, abs=1e-5)


def test_maximum_likelihood_with_a_noise_at_its_floor(rng):
    """A share of .005 of a column's variance is noise at the least: where the profile likelihood has its maximum."""
    Y, unit = table(A) - table(A).mean(axis=0), table(A).std(axis=0)
    ascent = ascent_of(Y / unit, 1, form=ML)
    result = run(ascent, starts_of(ascent, rng), tol=1e-10, max_iter=20_000)
    assert result.objective.max() - 20 * np.log(unit).sum() == approx(-62.222479386, abs=1e-7)
    assert all(np.all(np.diff(trace) >= -1e-9) for trace in result.traces)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_components_that_share_their_noise_keep_the_laws_of_emissions(gaps, rng):
    for _ in range(2):
        check_emission(factor(rng, gaps=gaps, tied=True), rng=rng)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_columns_in_groups_keep_the_laws_of_emissions(gaps, rng):
    for _ in range(2):
        check_emission(factor(rng, gaps=gaps, in_groups=True), rng=rng)


@pytest.mark.parametrize(
    ("noise", "d", "q", "expected"),
    [
        *(("diag", *case) for case in ((2, 1, 3), (3, 1, 6), (4, 2, 10), (5, 2, 14), (6, 3, 21), (10, 4, 44))),
        *(("spherical", *case) for case in ((2, 1, 3), (4, 2, 8), (5, 2, 10), (10, 4, 35))),
    ],
)
def test_the_dimension_is_the_rank_of_the_covariance(noise, d, q, expected, rng):
    """Of the map from loadings and noises, by differences; and what is more is redundant."""
    emission = FactorGaussian(q, noise=noise).for_data(rng.normal(size=(30, d)))

    def covariance(free):
        loadings = free[: d * q].reshape(d, q)
        return (loadings @ loadings.T + np.diag(np.broadcast_to(np.exp(free[d * q :]), d)))[np.triu_indices(d)]

    free = rng.normal(size=d * q + (d if noise == "diag" else 1))
    steps = 1e-6 * np.eye(len(free))
    jacobian = np.stack([(covariance(free + h) - covariance(free - h)) / 2e-6 for h in steps])
    assert np.linalg.matrix_rank(jacobian, tol=1e-6) == expected
    for k in (1, 2):
        n_free = emission.default_prior(k).n_free_parameters
        assert n_free - n_redundant_parameters(emission, np.ones(k, bool)) == k * (d + expected)


# Evidence -------------------------------------------------------------------------------------------------------------


def test_samplers_agree_with_an_exact_evidence_over_all_signs(rng):
    """The table B, in units in which it stands; quadrature gives -49.382687386."""
    Y = table(B)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            FactorAnalyzer,
            "for_data",
            classmethod(lambda cls, values, weight=None, **options: of_units(values, **options)),
        )
        model = VBMixture(1, emission=FactorGaussian(1, noise="spherical", **KNOWN), random_state=0).fit(Y)
        for kind in ("importance_gibbs", "ais"):
            evidence = model.log_evidence(Y, kind=kind, random_state=2)
            assert abs(evidence.value + 49.382687386) < 3.5 * evidence.standard_error + 1e-3


def of_units(values, n_factors, standardize, **options):
    """The emission of a table in its own units, standardized or not, that starts from its principal direction."""
    axes = np.linalg.svd(values - values.mean(axis=0))[2]
    return analyzer(values, n_factors, axes[:n_factors].T, **options)


# Evidence -------------------------------------------------------------------------------------------------------------


class AsGiven(FactorGaussian):
    """Factors of measurements in their own units, from zero, as the exact evidences below take them."""

    def for_data(self, values, weight=None):
        found = super().for_data(values, weight)
        zero = np.zeros(found.n_columns)
        return replace(found, origin=zero, unit=zero + 1, mean=zero)


@pytest.mark.parametrize(
    ("rows", "options", "exact"),
    [
        (T1, {"relevance": "fixed"}, -9.202585717),
        (T1, {}, -9.3604),
        (T1, {"noise": "spherical", "relevance": "fixed"}, -8.912130697),
        (T1, {"noise": "spherical"}, -9.053805),
        (B, {"noise": "spherical"}, -49.382687386),
    ],
)
def test_the_recommended_score_meets_evidences_by_quadrature(rows, options, exact):
    """Within a few standard errors, which are small: what factors hide leaves nothing of measurements certain."""
    Y = table(rows)
    model = VBMixture(1, emission=AsGiven(1, **KNOWN, **options), random_state=0).fit(Y)
    for seed in range(2):
        evidence = model.log_evidence(Y, kind="auto", random_state=seed)
        assert evidence.value == approx(exact, abs=4 * evidence.standard_error)
        assert evidence.standard_error < 0.05
        assert not evidence.doubts
    assert model.lower_bound_ < exact


def test_chains_from_one_sign_of_the_factor_miss_the_other_unless_signs_are_counted():
    """By ln 2: chains from q(theta) do not cross to its mirror image, and are right since parts are over both."""
    Y = table(B)
    model = VBMixture(1, emission=AsGiven(1, noise="spherical", **KNOWN), random_state=0).fit(Y)
    chains = {"kind": "ais", "fractions": (1.0,), "n_chains": 96, "n_steps": 64, "random_state": 0}
    both = model.log_evidence(Y, **chains)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HiddenFactors, "n_symmetries", lambda self, component=None: 1)
        one = model.log_evidence(Y, **chains)
    assert both.standard_error < 0.1
    assert both.value == approx(-49.382687386, abs=2 * both.standard_error)
    assert both.value - one.value == approx(np.log(2), abs=1e-3)


def test_the_mean_log_weight_is_a_bound_above_that_of_the_fit():
    """In the mean over draws from q(theta): it lies between the bound and the evidence."""
    Y = table(A)
    model = VBMixture(1, emission=AsGiven(1, **KNOWN), random_state=0).fit(Y)
    with pytest.warns(EvidenceWarning, match="Pareto shape"):  # which is why the evidence is sought in other ways
        evidence = model.log_evidence(Y, kind="importance", fractions=(1.0,), n_draws=16384, random_state=0)
    assert model.lower_bound_ == approx(-81.18827554, abs=1e-3)
    # q(theta) and its mirror image, which hardly overlap, gain ln 2 together
    assert evidence.details["mean_log_weight"] - np.log(2) == approx(-79.819, abs=0.06)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_nothing_of_rows_with_factors_is_certain(share, rng):
    """A start that keeps nothing of a fit is the prior, whatever cells were observed."""
    Y = rng.normal(size=(30, 3))
    Y[rng.random(Y.shape) < share] = np.nan
    for emission in (FactorGaussian(1), FactorGaussian(1, relevance="fixed")):
        model = VBMixture(1, emission=emission, random_state=0).fit(Y)
        evaluation = evaluation_of(model, Y, random_state=0)
        certain = evaluation.capability("points").certain_statistics(evaluation.data, rng)
        assert not certain[evaluation.model.first_emission_cell :].any()


def test_aliases_are_the_signs_and_the_orders_of_factors(rng):
    """2^q q! of each component, times the orders of components."""
    Y = rng.normal(size=(40, 4))
    for k, q, expected in [(1, 1, 2), (1, 2, 8), (2, 1, 2 * 4), (2, 2, 2 * 64)]:
        model = VBMixture(k, emission=FactorGaussian(q), n_init=1, random_state=0).fit(Y)
        assert alias_correction(evaluation_of(model, Y)) == approx(np.log(expected))


# Laws of bounds -------------------------------------------------------------------------------------------------------


def test_one_number_with_one_factor(rng):
    """Bounds of another program; without the factor it is the evidence."""
    Y = np.array([[0.3]])
    assert fitted(Y, 1, rng, tol=1e-10).objective.max() == approx(-1.608992348, abs=1e-8)
    assert fitted(Y, 0, rng).objective.max() == approx(-1.105746099, abs=1e-8)


def test_a_row_without_cells_changes_nothing(rng):
    Y = table(C)
    bounds = []
    for rows in (Y, np.vstack([Y[:7], np.full((2, 4), np.nan), Y[7:]])):
        ascent = ascent_of(rows, 1, loadings=np.full((4, 1), 0.5))
        start = ascent.model.statistics_of(np.ones((len(rows), 1)), ascent.data)[:, None]
        bounds.append(run(ascent, start, tol=1e-9, max_iter=20_000).objective[0])
    assert bounds[0] == approx(bounds[1], abs=1e-8)


@pytest.mark.parametrize("rows", [A, C])
def test_weights_are_repeats(rows, rng):
    Y = table(rows)
    weight = rng.integers(0, 4, len(Y)).astype(float)
    loadings, bounds = rng.normal(size=(Y.shape[1], 2)), []
    for of_rows, of_weight in ((Y, weight), (np.repeat(Y, weight.astype(int), axis=0), None)):
        ascent = ascent_of(of_rows, 2, loadings=loadings, weight=of_weight)
        start = ascent.model.statistics_of(np.ones((len(of_rows), 1)), ascent.data)[:, None]
        bounds.append(ascent.advance(start, 30)[:, 0])
    assert bounds[0] == approx(bounds[1], abs=1e-9)


@pytest.mark.parametrize("relevance", [1.0, (1.0, 1.0)])
def test_what_turns_of_factors_leave_as_it_is(relevance, rng):
    """With one known precision of loadings all turns, with a precision of each factor signs and orders."""
    ascent = ascent_of(table(E), 2, relevance_prior=relevance, loadings=rng.normal(size=(4, 2)))
    at = ascent.model.statistics_of(np.ones((24, 1)), ascent.data)[:, None].copy()
    ascent.advance(at, 5)
    first, bounds = ascent.model.first_emission_cell, []
    a = 0.4
    turns = [
        np.eye(2),
        np.array([[0.0, -1.0], [1.0, 0.0]]),
        np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]),
    ]
    for turn in turns:
        of_regressors = np.eye(3)
        of_regressors[1:, 1:] = turn
        one = np.eye(3)[None, None]
        map = FactorExpansion(ascent.model.emission.layout(1), of_regressors[None, None], np.zeros(1), one)
        bounds.append(ascent.advance(np.concatenate([at[:first], map.statistics(at[first:])]), 1)[0, 0])
    assert bounds[1] == approx(bounds[0], abs=1e-9)
    assert abs(bounds[2] - bounds[0]) < 1e-9 if relevance == 1.0 else abs(bounds[2] - bounds[0]) > 1e-4


def test_predictive_densities_integrate_to_one_and_lie_above_their_bound(rng):
    X = rng.normal(size=(25, 1)) @ rng.normal(size=(1, 2)) + 0.5 * rng.normal(size=(25, 2))
    model = VBMixture(1, emission=FactorGaussian(1), random_state=0).fit(X)
    axis = np.linspace(-15.0, 15.0, 161)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert np.exp(model.score_samples(grid)).sum() * (axis[1] - axis[0]) ** 2 == approx(1.0, abs=0.01)
    evaluation = evaluation_of(model, X)
    emission, posterior = evaluation.model.emission, evaluation.model.prior + evaluation.fit("vb").statistics
    block = emission.prepare(X)
    bound = emission.expected_log_likelihood(block, posterior.blocks[1].expected_natural())[:, 0]
    assert (bound < model.score_samples(X) + 0.05).all()
    assert bound.mean() < model.score_samples(X).mean()


def of_another_form(Y, emission, posterior):
    """The bound of one component without gaps as a sum of expectations and entropies, each by its definition."""
    group_of = emission.groups
    n, d = Y.shape
    q = emission.n_factors
    family, hyper = posterior.blocks[1], emission.default_prior(1, relevance_prior=(1.0, 1.0), **KNOWN).hyperprior
    mean, V, a, b = family.mean, family.covariance[family.precision_of], family.shape, family.rate
    tau, log_tau = a / b, digamma(a) - np.log(b)
    natural = family.expected_natural()
    c, rate = hyper.posterior(natural)
    nu, log_nu = c / rate, digamma(c) - np.log(rate)
    loadings, mu = mean[:, 1:], mean[:, 0]
    P = (
        np.eye(q)
        + (tau[:, None, None] * loadings[:, :, None] * loadings[:, None]).sum(axis=0)
        + V[:, 1:, 1:].sum(axis=0)
    )
    S = np.linalg.inv(P)
    x = ((Y - mu) * tau @ loadings - V[:, 0, 1:].sum(axis=0)) @ S
    r = np.column_stack([np.ones(n), x])
    second = r[:, :, None] * r[:, None]
    second[:, 1:, 1:] += S
    of_coefficients = tau[:, None, None] * mean[:, :, None] * mean[:, None] + V  # <tau w w'>
    square = tau * Y**2 - 2 * tau * Y * (r @ mean.T) + np.einsum("nab,jab->nj", second, of_coefficients)
    log_2pi = np.log(2 * np.pi)
    data = 0.5 * (log_tau - log_2pi - square).sum()
    of_x = -0.5 * (q * log_2pi * n + np.trace(second[:, 1:, 1:].sum(axis=0)))
    entropy_x = 0.5 * n * (q * (log_2pi + 1) + np.linalg.slogdet(S)[1])
    precision = np.column_stack([np.ones(d), nu.reshape(-1, q)[group_of]])
    of_w = 0.5 * (-(q + 1) * log_2pi + (q + 1) * log_tau + log_nu.reshape(-1, q)[group_of].sum(axis=1)).sum()
    of_w -= 0.5 * (np.einsum("jaa->ja", of_coefficients) * precision).sum()
    entropy_w = 0.5 * ((q + 1) * (log_2pi + 1) - (q + 1) * log_tau + np.linalg.slogdet(V)[1]).sum()
    of_tau = (np.log(0.5) + 0.0 * log_tau - 0.5 * tau).sum()  # Gamma(1, 1/2)
    entropy_tau = (a - np.log(b) + gammaln(a) + (1 - a) * digamma(a)).sum()
    of_nu = (-nu).sum()  # Gamma(1, 1)
    entropy_nu = (c - np.log(rate) + gammaln(c) + (1 - c) * digamma(c)).sum()
    return data + of_x + entropy_x + of_w + entropy_w + of_tau + entropy_tau + of_nu + entropy_nu


@pytest.mark.parametrize("group_of", [(), (0, 1, 0, 0), (0, 1, 1, 0)])
def test_the_bound_is_the_sum_of_its_terms(group_of, rng):
    """Expected logarithms of all densities, and the entropies of all factors of q, anywhere on the way."""
    Y = table(E)
    ascent = ascent_of(Y, 2, loadings=rng.normal(size=(4, 2)), group_of=group_of)
    at = ascent.model.statistics_of(np.ones((24, 1)), ascent.data)[:, None].copy()
    for _ in range(4):
        posterior = ascent.model.prior + at[:, 0]
        expected = of_another_form(Y, ascent.model.emission, posterior)
        assert ascent.advance(at, 1)[0, 0] == approx(expected, abs=1e-8)


HIDDEN = {"noise_prior": "hierarchical", "mean_precision_prior": "hierarchical"}


def of_hidden_rates_and_weight(Y, emission, posterior, mean):
    """What the bound has beyond that of the prior above: hidden rates, their floor, and a weight of prior means."""
    family = posterior.blocks[1]
    a, b, noise_of = family.shape, family.rate, family.noise_of_row
    tau, log_tau = a / b, digamma(a) - np.log(b)
    squares = tau[noise_of] * (family.mean[:, 0] - mean) ** 2 + family.covariance[family.precision_of][:, 0, 0]
    from_zero = tau[noise_of] * family.mean[:, 0] ** 2 + family.covariance[family.precision_of][:, 0, 0]
    gamma = (0.5 + len(mean) / 2, 0.5 + squares.sum() / 2), (0.5 + 1.5, 1 / 3 + tau)
    (weight, log_weight), (rate, log_rate) = ((c / d, digamma(c) - np.log(d)) for c, d in gamma)

    def less_entropy(c, d, prior_shape, prior_rate):
        log_x = digamma(c) - np.log(d)
        log_prior = prior_shape * np.log(prior_rate) - gammaln(prior_shape) + (prior_shape - 1) * log_x
        return np.sum(log_prior - prior_rate * c / d + c - np.log(d) + gammaln(c) + (1 - c) * digamma(c))

    total = less_entropy(*gamma[0], 0.5, 0.5) + less_entropy(*gamma[1], 0.5, 1 / 3)
    floor = 0.5e-6 * emission.total_weight
    total += (1.5 * log_rate - gammaln(1.5) + 0.5 * log_tau - (rate + floor) * tau).sum()
    total -= (np.log(0.5) - 0.5 * tau).sum()
    return total + 0.5 * (log_weight - weight * squares + from_zero).sum()


@pytest.mark.parametrize("spherical", [False, True])
def test_the_bound_with_hidden_rates_and_weight_is_the_sum_of_its_terms(spherical, rng):
    """As above, with prior means that are not 0."""
    Y, mean = table(E), np.array([0.4, -0.3, 0.0, 1.1])
    prior = HIDDEN | {"mean_prior": mean}
    ascent = ascent_of(Y, 2, prior=prior, loadings=rng.normal(size=(4, 2)), spherical=spherical, total_weight=24.0)
    at = ascent.model.started(ascent.model.statistics_of(np.ones((24, 1)), ascent.data)[:, None].copy())
    for _ in range(4):
        posterior = ascent.model.prior + at[:, 0]
        expected = of_another_form(Y, ascent.model.emission, posterior)
        expected += of_hidden_rates_and_weight(Y, ascent.model.emission, posterior, mean)
        assert ascent.advance(at, 1)[0, 0] == approx(expected, abs=1e-8)


def evidence_under_hidden_rates(Y, mean):
    """Of one factor and two rows, by quadrature: over factors, and over logarithms of all hidden hyperparameters."""
    at, by_radius = np.polynomial.legendre.leggauss(24)
    radius, turn = 4.0 * (at + 1), 2 * np.pi * (np.arange(32) + 0.5) / 32
    by_x = np.repeat(4.0 * by_radius * radius * np.exp(-(radius**2) / 2), 32) / 32
    x = (radius[:, None, None] * np.stack([np.cos(turn), np.sin(turn)], axis=-1)).reshape(-1, 2)

    def of_gamma(low, high, n, shape, rate):
        log_values = np.linspace(low, high, n)
        values = np.exp(log_values)
        log_density = shape * np.log(rate) - gammaln(shape) + shape * log_values - rate * values
        return values, (log_values[1] - log_values[0]) * np.exp(log_density)

    nu, by_nu = of_gamma(-14.0, 4.0, 40, 1.0, 1.0)
    kappa, by_kappa = of_gamma(-24.0, 5.0, 50, 0.5, 0.5)
    nu, kappa = nu[:, None, None], kappa[:, None]
    r = np.stack([np.ones(x.shape), x], axis=-1)
    gram = np.einsum("nia,nib->nab", r, r)
    first, both, last = kappa + gram[:, 0, 0], gram[:, 0, 1], nu + gram[:, 1, 1]
    determinant = first * last - both**2
    result = np.ones(determinant.shape)
    for y, m in zip(Y.T, mean):
        total, crossed = kappa * m + y.sum(), x @ y
        explained = (last * total**2 - 2 * both * total * crossed + first * crossed**2) / determinant
        rest = 0.5e-6 * len(y) + 0.5 * (kappa * m**2 + y @ y - explained)
        shape = 1.5 + len(y) / 2
        over_b = rest ** (2 - shape) * hyperu(2, 3 - shape, rest / 3)  # of Gamma(1/2, 1/3), with b to the power of 3/2
        constant = gammaln(shape) - gammaln(1.5) - len(y) / 2 * np.log(2 * np.pi) - np.log(3) / 2 - gammaln(0.5)
        result *= np.exp(constant) * over_b * np.sqrt(kappa * nu / determinant)
    return np.log(np.einsum("vkn,v,k,n->", result, by_nu, by_kappa, by_x))


def test_the_recommended_score_meets_an_evidence_under_hidden_rates(rng):
    """Every constant is there; and the bound is below."""
    Y, mean = np.array([[0.5, -0.2], [-1.0, -0.7]]), [0.3, -0.2]
    exact = evidence_under_hidden_rates(Y, mean)
    model = VBMixture(1, emission=AsGiven(1, mean_prior=mean), random_state=0).fit(Y)
    evidence = model.log_evidence(Y, kind="auto", error=0.05, random_state=0)
    assert evidence.value == approx(exact, abs=4 * evidence.standard_error)
    assert evidence.standard_error < 0.05
    assert exact - 3.0 < model.lower_bound_ < exact


def test_maximum_likelihood_of_a_small_table_with_one_noise(rng):
    Y = table(B) - table(B).mean(axis=0)
    ascent = ascent_of(Y, 1, form=ML, spherical=True)
    assert run(ascent, starts_of(ascent, rng), tol=1e-10, max_iter=20_000).objective.max() == approx(
        -38.712994695, abs=1e-7
    )


@pytest.mark.slow
def test_random_models_keep_the_laws(rng):
    """Of 300: bounds never fall, weights are repeats, no unit and no thread makes a difference; F <= evidence of 20."""
    for number in range(300):
        d, k, q = (int(rng.integers(low, high)) for low, high in ((2, 6), (1, 4), (0, 4)))
        X = rng.normal(size=(int(rng.integers(8, 30)), q + 1)) @ rng.normal(size=(q + 1, d))
        X += rng.normal(size=X.shape)
        X[rng.random(X.shape) < rng.choice([0.0, 0.2])] = np.nan
        X[0] = rng.normal(size=d)
        X[1] = rng.normal(size=d)
        weight = rng.integers(1, 3, len(X))
        options = {
            "noise": str(rng.choice(["diag", "spherical"])),
            "tied": bool(rng.integers(2)),
            "relevance": str(rng.choice(["ard", "fixed"])),
            "standardize": True,  # without it one noise of all columns depends on their units
        }
        fit = partial(VBMixture, k, emission=FactorGaussian(q, **options), random_state=0, max_iter=30)
        shares = rng.dirichlet(np.full(k, 0.3), len(X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit(init=shares).fit(X, sample_weight=weight)
            again = fit(init=np.repeat(shares, weight, axis=0), n_jobs=2).fit(np.repeat(X, weight, axis=0))
            scale = 10.0 ** rng.uniform(-2, 2, d)
            scaled = fit(init=shares).fit(X * scale + 3.0, sample_weight=weight)
        trace = np.array(model.lower_bounds_)
        assert np.all(np.diff(trace) >= -1e-9 * (1 + abs(trace[-1]))), number
        assert again.lower_bound_ == approx(model.lower_bound_, abs=2e-3), number
        n_cells = weight @ ~np.isnan(X)
        assert scaled.lower_bound_ + n_cells @ np.log(scale) == approx(model.lower_bound_, abs=2e-3), number
        if number < 75 and k * q <= 2:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                evidence = model.log_evidence(X, sample_weight=weight, kind="importance_gibbs", random_state=0)
            assert model.lower_bound_ < evidence.value + 4 * (evidence.standard_error or 0.0) + 1e-6, number
