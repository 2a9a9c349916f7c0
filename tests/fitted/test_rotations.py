"""Rotations: published loadings, R's own algorithm for varimax, definitions of criteria, and draws named alike."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skvbem import VBFactorAnalysis
from skvbem.datasets import load_ability_tests
from skvbem.errors import DataWarning
from skvbem.fitted.rotations import (
    ROTATIONS,
    gradient_projection,
    matched,
    oblimin,
    order_and_signs,
    quartimax,
    rotated,
    varimax,
)

approx = pytest.approx
OBLIQUE = [name for name, rotation in ROTATIONS.items() if rotation.is_oblique]
any_rotation = pytest.mark.parametrize("name", ROTATIONS)


@pytest.fixture(scope="module")
def ability_tests():
    tests = load_ability_tests()
    return VBFactorAnalysis(2, method="ml", tol=1e-9, random_state=0).fit(tests.data, sample_weight=tests.sample_weight)


def simple_loadings(rng, d=9, q=3, noise=0.1):
    """Loadings that are simple but for noise, turned at random."""
    simple = np.kron(np.eye(q), np.ones((d // q, 1))) * rng.uniform(0.5, 0.9, (d, 1)) + noise * rng.normal(size=(d, q))
    return simple, simple @ np.linalg.qr(rng.normal(size=(q, q)))[0]


def varimax_of_r(loadings, eps=1e-5):
    """`varimax` of R's stats: singular value decompositions until their sums stand still [Kaiser 1958]."""
    length = np.sqrt((loadings**2).sum(axis=1, keepdims=True))
    x, p = loadings / length, len(loadings)
    turn, last = np.eye(x.shape[1]), 0.0
    for _ in range(1000):
        z = x @ turn
        left, values, right = np.linalg.svd(x.T @ (z**3 - z * (z**2).sum(axis=0) / p))
        turn, before, last = left @ right, last, values.sum()
        if last < before * (1 + eps):
            break
    return (x @ turn) * length


def test_loadings_of_ability_tests_are_those_that_r_prints(ability_tests):
    """R's factanal stops varimax early, where sums differ by 1e-5: from there its manual has three digits."""
    published = varimax_of_r(ability_tests.standardized_loadings_)
    order, signs = order_and_signs(published, np.eye(2))
    printed = [[0.499, 0.543], [0.156, 0.622], [0.206, 0.860], [0.109, 0.468], [0.956, 0.182], [0.785, 0.225]]
    np.testing.assert_allclose((published * signs)[:, order], printed, atol=1.1e-3)
    np.testing.assert_allclose(((published * signs)[:, order] ** 2).sum(axis=0), [1.858, 1.724], atol=1.1e-3)


def test_varimax_is_where_r_ends_if_it_goes_on(ability_tests):
    loadings = ability_tests.standardized_loadings_
    turn = ROTATIONS["varimax"].of(loadings)
    ours, theirs = rotated(loadings, turn), varimax_of_r(loadings, eps=1e-15)
    order, signs = matched(theirs[None], ours)
    np.testing.assert_allclose(ours, theirs[:, order[0]] * signs[0], atol=1e-7)


def test_promax_of_ability_tests_is_what_r_prints(ability_tests):
    """As R's manual has it, but for the third digit, since varimax is run to its end here."""
    tests = load_ability_tests()
    model = VBFactorAnalysis(2, method="ml", rotation="promax", random_state=0)
    loadings = model.fit(tests.data, sample_weight=tests.sample_weight).standardized_loadings_
    printed = [[0.364, 0.470], [-0.057, 0.671], [-0.091, 0.932], [-0.053, 0.508], [1.023, -0.096], [0.811, 0.009]]
    np.testing.assert_allclose(loadings, printed, atol=2e-3)


@any_rotation
def test_a_rotation_keeps_what_factors_explain(name, rng):
    _, loadings = simple_loadings(rng)
    turn = ROTATIONS[name].of(loadings)
    shown, correlations = rotated(loadings, turn), turn.T @ turn
    np.testing.assert_allclose(shown @ correlations @ shown.T, loadings @ loadings.T, atol=1e-10)
    np.testing.assert_allclose(np.diag(correlations), 1.0)
    assert np.allclose(correlations, np.eye(3), atol=1e-10) == (name not in OBLIQUE)


@any_rotation
def test_simple_loadings_are_found_again(name, rng):
    """Whatever turn they come in."""
    simple, loadings = simple_loadings(rng, noise=0.0)
    shown = rotated(loadings, ROTATIONS[name].of(loadings))
    order, signs = matched(shown[None], simple)
    np.testing.assert_allclose(shown[:, order[0]] * signs[0], simple, atol=1e-6)


@pytest.mark.parametrize(("name", "criterion"), [("varimax", varimax), ("quartimax", quartimax), ("oblimin", oblimin)])
def test_gradients_are_those_of_differences(name, criterion, rng):
    at, along, h = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), 1e-5
    slope = (criterion(at + h * along)[0] - criterion(at - h * along)[0]) / (2 * h)
    assert (criterion(at)[1] * along).sum() == approx(slope, rel=1e-6)


def test_criteria_are_those_of_their_definitions(rng):
    L = rng.normal(size=(7, 3))
    squares = L**2
    assert varimax(L)[0] == approx(-7 * squares.var(axis=0).sum() / 4)
    assert quartimax(L)[0] == approx(-(L**4).sum() / 4)
    pairs = [(squares[:, a] * squares[:, b]).sum() for a in range(3) for b in range(3) if a != b]
    assert oblimin(L)[0] == approx(sum(pairs) / 4)


@pytest.mark.parametrize("is_oblique", [False, True])
def test_no_rotation_is_lower(is_oblique, rng):
    """Two factors, by every angle there is; and by an optimizer that knows nothing of manifolds."""
    _, loadings = simple_loadings(rng, d=8, q=2)
    criterion = oblimin if is_oblique else quartimax
    starts = np.linalg.qr(rng.normal(size=(8, 2, 2)))[0]
    many = np.broadcast_to(loadings, (8, *loadings.shape))
    values, _ = gradient_projection(many, criterion, starts, is_oblique=is_oblique)

    def at(angles):
        pair = angles if is_oblique else (angles[0], angles[0] + np.pi / 2)
        turn = np.array([np.cos(pair), np.sin(pair)])
        return criterion(rotated(loadings, turn))[0] if abs(np.linalg.det(turn)) > 1e-3 else 1e3

    exactly = {"xatol": 1e-8, "fatol": 1e-14}
    places = rng.uniform(0, 2 * np.pi, (8, 2))
    best = min(minimize(at, place, method="Nelder-Mead", options=exactly).fun for place in places)
    assert values.min() == approx(best, abs=1e-8)


@any_rotation
def test_many_at_once_are_as_each_by_itself(name, rng):
    _, loadings = simple_loadings(rng)
    rotation = ROTATIONS[name]
    start = rotation.of(loadings)
    many = loadings + 0.02 * rng.normal(size=(5, *loadings.shape))
    together = rotation.near(many, start)
    for each, turn in zip(many, together):
        np.testing.assert_allclose(rotation.near(each[None], start)[0], turn, atol=1e-10)
        alone = rotation.of(each)
        order, signs = matched(rotated(each, alone)[None], rotated(each, turn))
        np.testing.assert_allclose(rotated(each, alone)[:, order[0]] * signs[0], rotated(each, turn), atol=1e-5)


def test_order_and_signs():
    """By variance explained, the largest loading of each positive."""
    loadings = np.array([[0.1, -0.9], [0.5, 0.2], [0.1, -0.7]])
    order, signs = order_and_signs(loadings, np.eye(2))
    assert order.tolist() == [1, 0]
    assert signs.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("name", [None, *ROTATIONS])
def test_draws_that_are_turned_and_flipped_are_shown_alike(name, rng):
    """Factors of a draw may stand in any turn: what is shown of it is the same."""
    _, loadings = simple_loadings(rng, d=9)
    X = rng.normal(size=(200, 3)) @ loadings.T + 0.5 * rng.normal(size=(200, 9))
    fitted = VBFactorAnalysis(3, rotation=name, random_state=0).fit(X).fitted
    point = fitted.point[-1]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = point._replace(coefficients=np.column_stack([point.coefficients[:, 0], point.coefficients[:, 1:] @ turn]))
    natural = np.stack([fitted.model.prior.natural((fitted.point[0], each)) for each in (point, turned)], axis=1)
    (shown,) = fitted.parameters_of_draws(natural).values()
    for each in shown["loadings"]:
        np.testing.assert_allclose(each, fitted.loadings, atol=1e-5)
    if name in OBLIQUE:
        np.testing.assert_allclose(shown["factor_correlations"][1], fitted.correlations, atol=1e-5)


def test_factors_that_no_column_tells_apart_are_left_orthogonal_by_promax(rng):
    """Of one column, or of two factors with the same loadings but for their size; others beside them are turned."""
    simple = np.array([[0.9, 0.0], [0.8, 0.1], [0.1, 0.7]])
    for loadings in (np.array([[0.9, 0.3]]), np.outer([0.9, 0.5, -0.4], [1.0, 0.5]), np.zeros((3, 2))):
        turn = ROTATIONS["promax"].of(loadings)
        np.testing.assert_array_equal(turn, ROTATIONS["varimax"].of(loadings))
        np.testing.assert_allclose(turn.T @ turn, np.eye(2), atol=1e-12)
    many = np.stack([simple, np.outer([0.9, 0.5, -0.4], [1.0, 0.5])])
    turns = ROTATIONS["promax"].near(many, np.eye(2))
    np.testing.assert_allclose(turns[1].T @ turns[1], np.eye(2), atol=1e-12)
    assert abs((turns[0].T @ turns[0])[0, 1]) > 0.01
    with pytest.warns(DataWarning, match=r"^2 factors cannot be told apart where columns are fewer \(1\)"):
        model = VBFactorAnalysis(2, rotation="promax", n_init=1, random_state=0).fit(rng.normal(size=(10, 1)))
    assert np.isfinite(model.loadings_).all()


@pytest.mark.parametrize("name", [None, *ROTATIONS])
@pytest.mark.parametrize("n_factors", [0, 1])
def test_with_no_factor_or_one_there_is_nothing_to_turn(name, n_factors, rng):
    X = rng.normal(size=(40, 1)) + rng.normal(size=(40, 4))
    model = VBFactorAnalysis(n_factors, rotation=name, random_state=0).fit(X)
    assert model.loadings_.shape == (4, n_factors)
    assert model.factor_correlations_.tolist() == np.eye(n_factors).tolist()
    low, high = model.loadings_interval(method="vb")
    assert ((low <= model.loadings_) & (model.loadings_ <= high)).all()
