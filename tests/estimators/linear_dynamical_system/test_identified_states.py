"""States of a linear dynamical system have an order, signs and a basis of their own, whatever the seed."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from skvbem import VBLinearDynamicalSystem, load, save
from skvbem.estimators.sequences import steps_of_question
from skvbem.models.linear_dynamical_system.rotations import turned_statistics


def series(rng, loadings, transition, n=150, noise=1.0):
    """Columns of states that move by chance of variance 1."""
    states = np.zeros((n, len(transition)))
    for t in range(1, n):
        states[t] = transition @ states[t - 1] + rng.normal(size=len(transition))
    return states @ loadings.T + noise * rng.normal(size=(n, len(loadings)))


def growth(rng):
    """Four growth rates of one factor, per cent a quarter, with a gap."""
    X = 0.8 + series(rng, np.array([[0.5], [0.3], [0.9], [0.2]]), np.array([[0.6]]), 160, 0.4)
    X[:30, 3] = np.nan
    return X


def several(rng):
    """Four columns of two states that push each other."""
    return series(rng, np.array([[1.0, 0.3], [0.5, -1.0], [-0.8, 0.2], [0.1, 0.3]]), np.array([[0.9, 0.3], [0.0, 0.5]]))


def largest(model):
    """The largest standardized loading of each state."""
    loadings = model.standardized_loadings_
    return loadings[np.abs(loadings).argmax(axis=0), np.arange(loadings.shape[1])]


def test_loadings_of_one_factor_of_growth_point_upwards_for_every_seed(rng):
    X = growth(rng)
    fits = [VBLinearDynamicalSystem(1, init="random", random_state=seed).fit(X) for seed in range(10)]
    assert all((model.loadings_ > 0).all() for model in fits)
    for model in fits[1:]:
        np.testing.assert_allclose(model.loadings_, fits[0].loadings_, rtol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learn_prior": "ard", "prune": False},
        {"learn_prior": "strength"},
        {"initial": "learned"},
        {"method": "map"},
    ],
    ids=str,
)
def test_states_are_the_same_for_every_seed(rng, options):
    X = several(rng)
    options |= {"init": "random", "n_init": 1, "tol": 1e-8}
    fits = [VBLinearDynamicalSystem(2, **options, random_state=seed).fit(X) for seed in range(10)]
    best = max(fits, key=lambda model: model.lower_bounds_[-1])
    ends = [model for model in fits if model.lower_bounds_[-1] > best.lower_bounds_[-1] - 1e-4]
    assert len(ends) >= 8
    for model in ends:
        np.testing.assert_allclose(model.loadings_, best.loadings_, atol=3e-3)
        np.testing.assert_allclose(model.transition_, best.transition_, atol=3e-3)
        explained = (model.standardized_loadings_**2).sum(axis=0)
        assert (np.diff(explained) < 0).all()
        assert (largest(model) > 0).all()


def test_states_of_a_round_prior_are_uncorrelated_over_the_steps_seen(rng):
    X = several(rng)
    model = VBLinearDynamicalSystem(3, random_state=0).fit(X)
    fitted, _, data = steps_of_question(model, X)
    smoothed = fitted.smoothed(data, fitted.natural_of_q)
    moments = np.cov(smoothed.mean.T, bias=True) + smoothed.covariance.mean(axis=0)
    np.testing.assert_allclose(moments, np.diag(np.diag(moments)), atol=1e-3 * moments.max())
    expected = model.loadings_ * np.sqrt(np.diag(moments)) / X.std(axis=0)[:, None]
    np.testing.assert_allclose(model.standardized_loadings_, expected, atol=1e-3)


def test_standardized_loadings_leave_learned_precisions_out(rng):
    X = several(rng)
    model = VBLinearDynamicalSystem(3, learn_prior="ard", prune=False, random_state=0).fit(X)
    fitted, _, data = steps_of_question(model, X)
    smoothed = fitted.smoothed(data, fitted.natural_of_q)
    variance = np.var(smoothed.mean, axis=0) + np.einsum("tkk->k", smoothed.covariance) / len(X)
    expected = model.loadings_ * np.sqrt(variance) / X.std(axis=0)[:, None]
    np.testing.assert_allclose(model.standardized_loadings_, expected, atol=2e-3)


@pytest.mark.parametrize("initial", ["unit", "learned"])
def test_turned_statistics_are_those_of_turned_states(rng, initial):
    """What an E step finds at a turned q(theta) is what it found, turned; and ln Z is the same."""
    tables = [several(rng)[:40] for _ in range(4)]
    tables[0][5:9, 1] = np.nan
    inputs, of_columns = ([rng.normal(size=(40, q)) for _ in tables] for q in (2, 1))
    model = VBLinearDynamicalSystem(3, initial=initial, max_iter=3, tol=1e300, random_state=0)
    model.fit(tables, inputs=inputs, output_inputs=of_columns)
    fitted, _, data = steps_of_question(model, tables, inputs=inputs, output_inputs=of_columns)
    system, turn = fitted.model, ortho_group.rvs(3, random_state=rng)
    before, after = (
        system.expect((system.prior + statistics).expected_natural()[:, None], data)
        for statistics in (fitted.statistics, turned_statistics(system, fitted.statistics, turn))
    )
    np.testing.assert_allclose(after.log_normalizer, before.log_normalizer, rtol=1e-12)
    expected = turned_statistics(system, before.statistics[:, 0], turn)
    np.testing.assert_allclose(after.statistics[:, 0], expected, rtol=1e-9, atol=1e-7)


def test_the_bound_and_scores_are_those_of_the_basis_that_the_fit_found(rng):
    X = several(rng)
    model = VBLinearDynamicalSystem(2, noise_rate_prior=1.0, tol=1e-10, random_state=0).fit(X)
    fitted, _, data = steps_of_question(model, X)
    prior, found = fitted.model.prior, model._run_.fit.statistics
    assert np.abs(found - fitted.statistics).max() > 1.0  # it was turned
    bounds = []
    for statistics in (found, fitted.statistics):
        natural = (prior + statistics).expected_natural()
        bounds.append(fitted.model.expect(natural[:, None], data).log_normalizer[0] + prior.log_evidence(statistics))
        bounds[-1] -= statistics @ natural
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-11)
    assert bounds[1] == pytest.approx(model.lower_bound_, abs=1e-6)


def test_standard_errors_are_those_of_the_likelihood(rng):
    """The inverse of minus its second derivatives, by differences of likelihoods of known matrices."""
    X = growth(rng)[:80]
    model = VBLinearDynamicalSystem(1, method="ml", tol=1e-10, random_state=0).fit(X)
    found = model.standard_errors(X)
    at = np.concatenate([model.transition_[0], model.loadings_[:, 0], model.offset_, model.noise_variance_])

    def log_likelihood(numbers):
        a, c, offset, noise = np.split(numbers, [1, 5, 9])
        known = VBLinearDynamicalSystem.from_parameters(a[:, None], c[:, None], noise, offset=offset)
        return known.score_samples([X])[0]

    moves = 1e-3 * np.eye(len(at))
    curvature = [
        [sum(s * t * log_likelihood(at + s * a + t * b) for s in (-1, 1) for t in (-1, 1)) / 4e-6 for b in moves]
        for a in moves
    ]
    errors = np.sqrt(np.diag(np.linalg.inv(-np.array(curvature))))
    of_columns = found.errors["columns"]
    names = ("loadings", "offset", "noise_variance")
    of_all = [found.errors["states"]["transition"], *(of_columns[name] for name in names)]
    np.testing.assert_allclose(np.concatenate([np.ravel(each) for each in of_all]), errors, rtol=2e-3)


def test_summaries_of_points_have_intervals_of_loadings(rng):
    X = growth(rng)
    model = VBLinearDynamicalSystem(1, method="map", initial="learned", random_state=0).fit(X)
    lower, upper = model.standard_errors(X).intervals(0.95)["columns"]["loadings"]
    assert (lower < model.loadings_).all()
    assert (model.loadings_ < upper).all()
    assert f"[{lower[0, 0]:.3f}, {upper[0, 0]:.3f}]" in str(model.summary(X))


def test_standard_errors_of_states_that_turn_are_refused(rng):
    X = several(rng)
    model = VBLinearDynamicalSystem(2, method="map", random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"standard_errors has no meaning .* credible_intervals of a fit with method="):
        model.standard_errors(X)


def test_weights_are_repeats_state_by_state(rng):
    tables = [several(rng)[:60] for _ in range(3)]
    weighted = VBLinearDynamicalSystem(2, tol=1e-9, random_state=0).fit(tables, sample_weight=[2, 1, 3])
    repeated = VBLinearDynamicalSystem(2, tol=1e-9, random_state=0).fit([tables[k] for k in (0, 0, 1, 2, 2, 2)])
    np.testing.assert_allclose(weighted.loadings_, repeated.loadings_, atol=1e-4)
    np.testing.assert_allclose(weighted.transition_, repeated.transition_, atol=1e-4)


def test_saved_fits_warm_starts_and_batches_keep_the_order_and_signs(rng, tmp_path):
    tables = [several(rng) for _ in range(3)]
    model = VBLinearDynamicalSystem(2, random_state=0).fit(tables)
    save(model, tmp_path / "fit.skvbem")
    np.testing.assert_array_equal(load(tmp_path / "fit.skvbem").loadings_, model.loadings_)
    warm = VBLinearDynamicalSystem(2, warm_start=True, random_state=0).fit(tables).fit(tables)
    np.testing.assert_allclose(warm.loadings_, model.loadings_, atol=2e-3)
    batches = VBLinearDynamicalSystem(2, random_state=1)
    for table in tables:
        batches.partial_fit([table])
        assert (np.diff((batches.standardized_loadings_**2).sum(axis=0)) < 0).all()
        assert (largest(batches) > 0).all()
    np.testing.assert_allclose(batches.loadings_, model.loadings_, atol=0.15)
