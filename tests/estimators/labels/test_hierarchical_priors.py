"""Mixtures and chains of measurements whose prior learns its covariance and the weight of its means."""

import numpy as np
import pytest

from skvbem import VBHMM, VBMixture, blocks_of
from skvbem.emissions import COVARIANCE_TYPES, Exponential, Gaussian, Poisson

approx = pytest.approx

TYPES = tuple(COVARIANCE_TYPES)


def hierarchical(covariance_type, **options):
    return Gaussian(covariance_type, covariance_prior="hierarchical", mean_precision_prior="hierarchical", **options)


def fixed(covariance_type):
    return Gaussian(covariance_type, covariance_prior=None, mean_precision_prior=1.0)


def mixture(covariance_type, n_components=2, **options):
    options = {"n_init": 4, "random_state": 0} | options
    return VBMixture(n_components, emission=hierarchical(covariance_type), **options)


@pytest.fixture(params=TYPES)
def covariance_type(request):
    return request.param


@pytest.fixture
def X(rng):
    groups = [rng.normal(center, width, size=(n, 3)) for center, width, n in ((0.0, 1.0, 30), (4.0, 0.5, 20))]
    return np.concatenate(groups)[rng.permutation(50)]


def test_no_unit_of_measure_makes_a_difference(covariance_type, X):
    unit = 7.0 if covariance_type == "spherical" else np.array([1e-3, 7.0, 2e4])
    one, other = mixture(covariance_type).fit(X), mixture(covariance_type).fit(X * unit + 1e3)
    assert other.lower_bound_ == approx(one.lower_bound_ - len(X) * np.log(unit * np.ones(3)).sum(), abs=1e-3)
    assert other.mean_precision_prior_ == approx(one.mean_precision_prior_, rel=1e-3)


def test_weights_are_repeats_and_blocks_are_rows(covariance_type, X, rng):
    weights = rng.integers(1, 4, size=len(X))
    options = {"tol": 1e-7}
    weighted = mixture(covariance_type, **options).fit(X, sample_weight=weights.astype(float)).lower_bound_
    assert mixture(covariance_type, **options).fit(np.repeat(X, weights, axis=0)).lower_bound_ == approx(weighted)
    whole = mixture(covariance_type, **options).fit(X).lower_bound_
    assert mixture(covariance_type, **options).fit(blocks_of([X[:20], X[20:]])).lower_bound_ == approx(whole)


def test_what_is_published_is_expected_under_the_posterior(covariance_type, X):
    """The inverse scale and the weight of means, by their definition from means and precisions."""
    model = mixture(covariance_type, tol=1e-10).fit(X)
    of_data = VBMixture(2, emission=fixed(covariance_type), n_init=1).fit(X).covariance_prior_
    d, dof, precisions = X.shape[1], float(model.degrees_of_freedom_prior_), model.precisions_
    floor = 1e-6 * len(X)
    if covariance_type in ("full", "tied"):
        n_precisions, n0 = 1 if covariance_type == "tied" else 2, d
        summed = precisions if covariance_type == "tied" else precisions.sum(axis=0)
        expected = (n0 + n_precisions * dof) * np.linalg.inv(n0 / dof * np.linalg.inv(of_data) + summed)
    else:
        expected = (1 + 2 * dof) / (1 / dof / of_data + precisions.sum(axis=0))
    assert model.covariance_prior_ == approx(expected + floor * of_data, rel=1e-4)
    away = model.means_ - model.mean_prior_
    matrices = {
        "full": lambda: precisions,
        "tied": lambda: np.tile(precisions, (2, 1, 1)),
        "diag": lambda: precisions[:, :, None] * np.eye(d),
        "spherical": lambda: precisions[:, None, None] * np.eye(d),
    }[covariance_type]()
    squares = np.einsum("ki,kij,kj->", away, matrices, away) + (d / model.mean_precision_).sum()
    assert model.mean_precision_prior_ == approx((0.5 + 2 * d / 2) / (0.5 + squares / 2), rel=1e-4)


def test_one_of_both_may_be_known(covariance_type, X):
    for options in ({"covariance_prior": None}, {"mean_precision_prior": 0.2}):
        emission = hierarchical(covariance_type).set_params(**options)
        model = VBMixture(2, emission=emission, n_init=2, random_state=0).fit(X)
        if "mean_precision_prior" in options:
            assert model.mean_precision_prior_ == approx(0.2)
        else:
            of_data = VBMixture(2, emission=fixed(covariance_type), n_init=1).fit(X).covariance_prior_
            assert model.covariance_prior_ == approx(of_data)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("of", ["collinear", "constant", "binary", "wide", "one row", "equal rows", "two repeated"])
def test_columns_and_rows_that_leave_no_width(covariance_type, X, rng, of):
    """Ties leave a density no limit but the floor: the bound is finite, and no step lowers it."""
    rows = {
        "collinear": lambda: np.column_stack([X, X[:, 0] - X[:, 1]]),
        "constant": lambda: np.column_stack([X, np.ones(len(X))]),
        "binary": lambda: np.column_stack([X, X[:, 0] > 1]),
        "wide": lambda: rng.normal(size=(8, 12)),
        "one row": lambda: X[:1],
        "equal rows": lambda: np.ones((10, 2)),
        "two repeated": lambda: np.repeat(X[:2], 40, axis=0),
    }[of]()
    model = mixture(covariance_type, n_init=2).fit(rows)
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.score(rows))


def test_missing_cells(covariance_type, X, rng):
    seen = X.copy()
    seen[rng.random(X.shape) < 0.2] = np.nan
    model = mixture(covariance_type).fit(seen)
    assert np.isfinite(model.impute(seen)).all()
    assert np.array_equal(model.impute(X), X)
    complete = mixture(covariance_type).fit(X)
    assert complete.mean_precision_prior_ != model.mean_precision_prior_


def test_batches_go_on_from_what_was_learned(covariance_type, X):
    model = mixture(covariance_type).fit(X)
    batches = mixture(covariance_type).partial_fit(X)
    assert batches.batch_lower_bound_ == approx(model.lower_bound_)
    batches.partial_fit(X)
    assert np.sort(batches.counts_) == approx(2 * np.sort(model.counts_), abs=2.0)


def test_a_warm_start_ends_where_it_began(covariance_type, X):
    model = mixture(covariance_type, warm_start=True).fit(X)
    bound = model.lower_bound_
    assert model.fit(X).lower_bound_ == approx(bound, abs=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
def test_a_warm_start_takes_what_was_learned_along(method, covariance_type, X):
    """So that no fit starts lower than the last one ended."""
    model = mixture(covariance_type, method=method, warm_start=True, max_iter=2, tol=0.0, acceleration=False)
    objective = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    reached = [getattr(model.fit(X), objective) for _ in range(5)]
    assert (np.diff(reached) > -1e-9).all()


def test_points_of_map_and_ml(covariance_type, X):
    """Maximum likelihood asks no prior; the mode is where hyperparameters are summed out."""
    options = {"method": "ml", "n_init": 2, "random_state": 0}
    asked = VBMixture(2, emission=hierarchical(covariance_type), **options).fit(X)
    assert asked.log_likelihood_ == approx(
        VBMixture(2, emission=fixed(covariance_type), **options).fit(X).log_likelihood_
    )
    for basis in ("natural", "probability"):
        found = mixture(covariance_type, method="map", map_basis=basis).fit(X)
        assert found.log_posterior_ < asked.log_likelihood_ + 50
        assert found.score(X) < asked.score(X) + 1e-6


def test_the_number_of_components(X):
    for options in ({"n_components": "auto"}, {"n_components": 2, "init": "hierarchical"}):
        model = mixture("full", **options).fit(X)
        assert np.sort(model.counts_).round().tolist() == [20, 30]


def test_strengths_of_weights_and_sticks(covariance_type, X):
    plain = mixture(covariance_type).fit(X).lower_bound_
    assert mixture(covariance_type, weight_concentration_prior="optimized").fit(X).lower_bound_ >= plain - 1e-3
    mixture(covariance_type, weight_concentration_prior_type="dirichlet_process").fit(X)


def test_groups_of_columns_each_learn_their_own(X):
    emission = [("one", hierarchical("full"), [0, 1]), ("other", hierarchical("diag"), [2])]
    model = VBMixture(2, emission=emission, n_init=2, random_state=0).fit(X)
    assert set(model.mean_precision_prior_) == {"one", "other"}


def test_chains(covariance_type, X):
    model = VBHMM(2, emission=hierarchical(covariance_type), n_init=2, random_state=0).fit(X)
    known = VBHMM(2, emission=fixed(covariance_type), n_init=2, random_state=0).fit(X)
    assert model.lower_bound_ != known.lower_bound_
    assert np.isfinite(model.score(X))


def test_scores_that_complete_rows_refuse(X):
    model = mixture("full").fit(X)
    with pytest.raises(TypeError, match=r"'collapsed' needs the evidence of rows .* Take 'laplace'"):
        model.log_evidence(X, kind="collapsed")
    found = model.log_evidence(X, kind="importance_gibbs", n_draws=512, n_completions=64)
    assert found.value > model.lower_bound_


def test_the_default_degrees_of_freedom_are_those_of_one_variance(rng):
    """Of many columns that are independent no variance is pulled to 0, and the bound says that they are."""
    X = rng.normal(size=(40, 60))
    for make in (fixed, hierarchical):
        of_columns = VBMixture(1, emission=make("diag"), n_init=1).fit(X)
        assert np.median(of_columns.covariances_) == approx(1.0, abs=0.25)
    bounds = {kind: mixture(kind, 1, n_init=1).fit(X).lower_bound_ for kind in TYPES}
    assert max(bounds, key=bounds.get) == "spherical"
    assert bounds["diag"] > bounds["full"]


def test_as_many_degrees_of_freedom_as_make_one_covariance_are_refused(covariance_type, X):
    with pytest.raises(ValueError, match=r"must be at most 1e\+06 where 'covariance_prior' is 'hierarchical'"):
        VBMixture(2, emission=hierarchical(covariance_type, degrees_of_freedom_prior=1e7)).fit(X)


@pytest.mark.parametrize("name", ["covariance_prior", "mean_precision_prior"])
def test_another_word_is_refused(name, X):
    with pytest.raises(ValueError, match=f"'{name}' parameter of Gaussian must be"):
        VBMixture(2, emission=Gaussian(**{name: "learned"})).fit(X)


def test_rates(rng):
    """Of counts and of waiting times, zeros among them; a unit makes no difference but its own."""
    counts = np.concatenate([rng.poisson([1.0, 9.0], (30, 2)), rng.poisson([8.0, 2.0], (20, 2))])
    model = VBMixture(2, emission=Poisson(rate_prior="hierarchical"), n_init=2, random_state=0).fit(counts)
    assert np.sort(model.counts_).round().tolist() == approx([20, 30], abs=2)
    found = model.log_evidence(counts, kind="importance_gibbs", n_draws=512, n_completions=64)
    assert found.value > model.lower_bound_
    times = np.concatenate([rng.exponential([1.0, 9.0], (60, 2)), rng.exponential([30.0, 0.2], (40, 2))])
    times[:20, 0] = 0.0
    one, ten = (
        VBMixture(2, emission=Exponential(rate_prior="hierarchical"), n_init=2, random_state=0).fit(times * unit)
        for unit in (1.0, 10.0)
    )
    assert one.lower_bound_ - ten.lower_bound_ == approx(times.size * np.log(10.0), abs=1e-3)
    with pytest.raises(ValueError, match="'rate_prior' parameter of Poisson must be"):
        VBMixture(2, emission=Poisson(rate_prior="learned")).fit(counts)
