"""The basis of the factors of rows: a step of Newton's method to the best one, and the steps of a fit that it saves."""

import numpy as np
import pytest
from emissions.test_factor import ascent_of, starts_of
from scipy.optimize import minimize

from skvbem import VBMixture
from skvbem.emissions import FactorGaussian
from skvbem.emissions.factor.expansion import FactorExpansion
from skvbem.vbem.posteriors import MAP, ML

approx = pytest.approx


def rows_of(rng, n, d, q, gaps=0.0):
    X = rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + rng.normal(size=(n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[rng.random(X.shape) < gaps] = np.nan
    return X


def after_an_e_step(ascent, rng, n_steps):
    """Cells of the emission, statistics and natural parameters, and the map of factors, some steps from a start."""
    statistics = starts_of(ascent, rng, 1)
    ascent.advance(statistics, n_steps)
    natural, _ = ascent.form.of(ascent.model.prior, statistics)
    expectation, first = ascent.model.expect(natural, ascent.data), ascent.model.first_emission_cell
    return expectation.statistics[first:], natural[first:], expectation.expansion


def literal(expansion, free):
    """The map x -> R x + b of one component, of the entries of (b, R), and what it adds to H(q(x)) and E ln p(x)."""
    of_rows, q = expansion.of_rows[0, 0], expansion.layout.n_regressors - 1
    map = np.eye(1 + q)
    map[1:] = free.reshape(q, 1 + q)
    moved = map @ of_rows @ map.T
    gain = of_rows[0, 0] * np.linalg.slogdet(map[1:, 1:])[1] - 0.5 * np.trace(moved[1:, 1:] - of_rows[1:, 1:])
    return FactorExpansion(expansion.layout, map[None, None], np.array([gain]), expansion.of_rows)


def expected_at(ascent, of_complete):
    """What is expected of natural parameters at statistics."""
    return ascent.form.natural(ascent.model.prior.blocks[-1], of_complete.statistics, of_complete.posterior)


OPTIONS = [
    pytest.param({}, 0.0, id="one noise for each column"),
    pytest.param({"spherical": True}, 0.0, id="one noise for all"),
    pytest.param({}, 0.2, id="gaps"),
    pytest.param({"group_of": (0, 0, 0, 1, 1, 1)}, 0.0, id="groups"),
    pytest.param({"relevance_prior": 1.0}, 0.0, id="known precisions"),
    pytest.param({"form": MAP}, 0.0, id="mode"),
]


@pytest.mark.parametrize(("options", "gaps"), OPTIONS)
def test_a_step_from_white_factors_is_nearly_the_best_map(options, gaps, rng):
    """Of all maps that a search over their entries finds, by what each raises the bound."""
    ascent = ascent_of(rows_of(rng, 80, 6, 2, gaps), 2, **options)
    statistics, natural, white = after_an_e_step(ascent, rng, 30)
    prior = ascent.model.prior.blocks[-1]

    def bound(expansion):
        of_complete = ascent._of_complete(prior, expansion.statistics(statistics), expansion.natural(natural))
        return float((expansion.gain + of_complete.objective)[0])

    there = white.statistics(statistics), white.natural(natural)
    of_white = ascent._of_complete(prior, *there)
    further = white.further(of_white.given, there[0], expected_at(ascent, of_white))
    assert further.gain == approx(literal(white, further.map[0, 0, 1:].ravel()).gain, abs=1e-9)
    start = further.map[0, 0, 1:].ravel()
    best = minimize(lambda free: -bound(literal(white, free)), start, method="BFGS", options={"gtol": 1e-7})
    lost = -best.fun - bound(further)
    assert lost > -1e-9
    assert lost < 0.05 * (-best.fun - bound(white))


def test_the_last_map_is_none(rng):
    """At the end of a fit the slope is 0: of what is white there, it leads back to what was."""
    ascent = ascent_of(rows_of(rng, 2000, 6, 2), 2)
    statistics, natural, white = after_an_e_step(ascent, rng, 400)
    there = white.statistics(statistics), white.natural(natural)
    of_white = ascent._of_complete(ascent.model.prior.blocks[-1], *there)
    further = white.further(of_white.given, there[0], expected_at(ascent, of_white))
    of_first, of_second = (np.abs(each.map - np.eye(3)).max() for each in (white, further))
    assert of_second < 0.02 * of_first


def test_points_without_a_prior_are_where_the_white_map_leads(rng):
    """The likelihood of complete rows knows of no map, so that the slope is 0."""
    ascent = ascent_of(rows_of(rng, 80, 6, 2), 2, form=ML)
    statistics, natural, white = after_an_e_step(ascent, rng, 5)
    of_maps = [
        ascent._of_complete(ascent.model.prior.blocks[-1], each.statistics(statistics), each.natural(natural))
        for each in (white, literal(white, np.eye(3)[1:].ravel()))
    ]
    assert of_maps[0].objective == approx(of_maps[1].objective, rel=1e-12)


@pytest.mark.parametrize(("n", "d", "q", "gaps", "most"), [(60, 20, 5, 0.0, 100), (500, 20, 10, 0.1, 80)])
def test_few_rows_take_few_steps(n, d, q, gaps, most):
    """White factors are not the best for them: hundreds of steps where these are all that is tried."""
    rng = np.random.default_rng(0)
    X = rows_of(rng, n, d, 10, gaps)
    model = VBMixture(1, emission=FactorGaussian(q), random_state=0).fit(X)
    assert model.converged_
    assert model.n_iter_ < most


def test_components_and_groups_of_columns_have_maps_of_their_own(rng):
    """Categories beside them have none; the bound never falls, which every step asserts."""
    X = np.column_stack([rows_of(rng, 120, 8, 2, 0.1), rng.integers(0, 3, size=120)])
    factor = FactorGaussian(1)
    emission = [("a", factor, [0, 1, 2, 3]), ("b", factor, [4, 5, 6, 7]), ("c", "categorical", [8])]
    assert VBMixture(2, emission=emission, random_state=0).fit(X).converged_
