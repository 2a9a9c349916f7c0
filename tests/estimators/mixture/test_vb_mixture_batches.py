"""`VBMixture` in batches, and from where the last fit ended."""

import numpy as np
import pytest
from sklearn.base import clone

from skvbem import VBMixture, blocks_of
from skvbem.emissions import Bernoulli, Categorical, Exponential, Gaussian, Multinomial, Poisson

approx = pytest.approx


def rows(rng, n=300):
    kind = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) + 6 * kind[:, None], kind


# Priors that are no guess from data, under which fits to parts and to all have the same model.
PRIORS = {"mean_prior": [2.0, 3.0], "mean_precision_prior": 1.0, "degrees_of_freedom_prior": 4.0}
CONJUGATE = {
    "full": (Gaussian("full", covariance_prior=[[4.0, 1.0], [1.0, 2.0]], **PRIORS), None),
    "tied": (Gaussian("tied", covariance_prior=[[4.0, 1.0], [1.0, 2.0]], **PRIORS), None),
    "diag": (Gaussian("diag", covariance_prior=[4.0, 2.0], **PRIORS), 0.2),
    "spherical": (Gaussian("spherical", covariance_prior=3.0, **PRIORS), 0.2),
    "categorical": (Categorical(concentration_prior=0.7), 0.2),
    "bernoulli": (Bernoulli(concentration_prior=0.7), 0.2),
    "poisson": (Poisson(shape_prior=2.0, rate_prior=0.5), 0.2),
    "exponential": (Exponential(shape_prior=2.0, rate_prior=0.5), 0.2),
    "multinomial": (Multinomial(concentration_prior=0.7), None),
}


@pytest.mark.parametrize("family", CONJUGATE)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_component_learns_from_batches_what_it_learns_from_all(family, weighted, rng):
    """Exactly: the posterior, predictions, and the evidence as the sum over batches given those before."""
    emission, missing = CONJUGATE[family]
    levels = {"x0": range(4), "x1": range(4)} if family == "categorical" else "auto"
    model = VBMixture(1, emission=emission, categories=levels)
    X = {
        "categorical": rng.integers(0, 4, size=(200, 2)),
        "bernoulli": rng.integers(0, 2, size=(200, 2)),
        "poisson": rng.poisson(3.0, size=(200, 2)),
        "multinomial": rng.multinomial(5, [0.2, 0.8], size=200),
        "exponential": rng.exponential(3.0, size=(200, 2)),
    }.get(family, 50 + rng.normal(size=(200, 2)) @ [[2.0, 1.0], [0.0, 1.0]])
    X = np.where(rng.random(X.shape) < (missing or 0.0), np.nan, X.astype(float))
    weight = rng.integers(0, 3, 200).astype(float) if weighted else np.ones(200)
    whole = clone(model).fit(X, sample_weight=weight)
    in_batches, bounds = clone(model), []
    for batch in np.split(np.arange(200), [20, 21, 120]):
        in_batches.partial_fit(X[batch], sample_weight=weight[batch] + 1e-300)
        bounds.append(in_batches.batch_lower_bound_)
    assert sum(bounds) == approx(whole.lower_bound_, rel=1e-9)
    assert in_batches.score_samples(X) == approx(whole.score_samples(X), rel=1e-8, abs=1e-9)
    assert in_batches.n_samples_ == approx(weight[~np.isnan(X).all(axis=1)].sum())
    assert in_batches.counts_ == approx(whole.counts_)
    ((group, parameters),) = whole.parameters_.items()
    for name, expected in parameters.items():
        assert in_batches.parameters_[group][name] == approx(expected, rel=1e-8, nan_ok=True)


@pytest.mark.parametrize("kind", ["dirichlet_distribution", "dirichlet_process"])
def test_batches_find_the_components(kind, rng):
    X, truth = rows(rng, 1200)
    model = VBMixture(2, weight_concentration_prior_type=kind, n_init=2, random_state=0)
    for batch in np.split(X, 4):
        model.partial_fit(batch)
    assert model.counts_.sum() == approx(1200)
    found = model.predict(X)
    assert np.mean(found == truth) in (approx(1.0, abs=0.01), approx(0.0, abs=0.01))
    whole = VBMixture(2, weight_concentration_prior_type=kind, n_init=2, random_state=0).fit(X)
    assert np.sort(model.weights_) == approx(np.sort(whole.weights_), abs=0.02)
    assert np.sort(model.means_, axis=0) == approx(np.sort(whole.means_, axis=0), abs=0.05)


def test_the_bound_of_a_batch_is_that_of_a_fit_whose_prior_is_the_posterior(rng):
    """By the definition: ln Z of the E step less the divergence of the posterior from the last one."""
    X, _ = rows(rng)
    model = VBMixture(2, n_init=2, random_state=0, tol=1e-9).partial_fit(X[:200])
    before = model._fitted_
    model.partial_fit(X[200:])
    after = model._fitted_
    data = after.model.compile(after.emission.prepare(X[200:]))
    log_z = after.model.expect(after.posterior.expected_natural()[:, None], data).log_normalizer[0]
    assert model.batch_lower_bound_ == approx(log_z - float(after.posterior.kl(before.posterior)), rel=1e-9)


def test_what_a_batch_leaves(rng):
    X, _ = rows(rng)
    model = VBMixture(2, n_init=2, random_state=0).partial_fit(X[:100])
    assert (
        model.batch_lower_bound_
        == model.lower_bound_
        == VBMixture(2, n_init=2, random_state=0).fit(X[:100]).lower_bound_
    )
    assert model.log_evidence(X[:100], kind="bic").value < 0
    emission, prior = model._fitted_.emission, model._fitted_.model.prior
    model.partial_fit(X[100:])
    assert model._fitted_.emission is emission
    assert model._fitted_.model.prior is prior
    for name in ("lower_bound_", "lower_bounds_", "restarts_"):
        assert not hasattr(model, name)
    assert model.n_features_in_ == 2
    for kind in ("lower_bound", "bic", "ais"):
        with pytest.raises(ValueError, match="was updated by partial_fit"):
            model.log_evidence(X, kind=kind)
    with pytest.raises(ValueError, match="was updated by partial_fit"):
        model.log_evidence()
    assert not hasattr(model.fit(X), "batch_lower_bound_")
    model.partial_fit(X)
    assert model.n_samples_ == 2 * len(X)


def test_a_batch_that_is_refused_leaves_all_as_it_was(rng):
    X, _ = rows(rng)
    model = VBMixture(2, n_init=2, random_state=0, emission={"gaussian": 0, "categorical": 1}, handle_unknown="error")
    X = np.column_stack([X[:, 0], rng.integers(0, 3, len(X))])
    model.partial_fit(X)
    before = dict(vars(model))
    for bad, message in (
        (X[:, :1], "X has 1 features, but VBMixture is expecting 2 features"),
        (X + np.array([np.inf, 0.0]), "holds infinity"),
        (X + np.array([0.0, 5.0]), "is not among the 3 categories seen in fit"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad)
    with pytest.raises(TypeError, match="A batch is a table; blocks are what fit takes"):
        model.partial_fit(blocks_of([X]))
    assert vars(model) == before


@pytest.mark.parametrize("method", ["map", "ml"])
def test_only_vb_has_partial_fit(method, rng):
    X, _ = rows(rng)
    model = VBMixture(2, method=method, n_init=2, random_state=0)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
        model.partial_fit(X)
    model.fit(X).set_params(method="vb")
    with pytest.raises(ValueError, match=f"this VBMixture was fitted by method='{method}'. Fit it again"):
        model.partial_fit(X)


# From where the last fit ended ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["vb", "map", "ml"])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_a_warm_start_goes_on_where_the_last_fit_ended(method, in_blocks, rng):
    X = rng.normal(size=(300, 2)) + 2.5 * rng.integers(0, 2, size=(300, 1))
    X[rng.random(X.shape) < 0.1] = np.nan
    data = blocks_of([X[:100], X[100:]]) if in_blocks else X
    model = VBMixture(2, method=method, n_init=4, random_state=0, warm_start=True, max_iter=3, tol=1e-7)
    objective = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}[method]
    reached = []
    for _ in range(5):
        reached.append(getattr(model.fit(data), objective))
    assert (np.diff(reached) > -1e-6).all()
    assert len(model.restarts_.bounds) == 1  # the last solution is the only start
    best = clone(model).set_params(max_iter=10_000).fit(data)
    again = clone(model).set_params(max_iter=10_000).fit(data).fit(data)
    assert getattr(again, objective) == approx(getattr(best, objective), abs=1e-4)


def test_a_warm_start_keeps_the_components_in_their_order(rng):
    X, _ = rows(rng)
    model = VBMixture(2, n_init=2, random_state=0, warm_start=True).fit(X)
    order = np.argsort(model.means_[:, 0])
    for seed, shape in enumerate(("diag", "tied", "full")):
        later = rows(np.random.default_rng(seed), 500)[0]
        model.set_params(random_state=seed, covariance_type=shape).fit(later)
        assert np.argsort(model.means_[:, 0]).tolist() == order.tolist()
        assert model.lower_bound_ == approx(clone(model).fit(later).lower_bound_, abs=1e-3)


@pytest.mark.parametrize("change", [{"n_components": 3}, {"emission": {"gaussian": [0], "exponential": [1]}}])
def test_a_warm_start_from_another_mixture_is_a_cold_one(change, rng):
    X = np.abs(rows(rng)[0])
    model = VBMixture(2, n_init=3, random_state=0, warm_start=True).fit(X).set_params(**change).fit(X)
    assert model.lower_bound_ == clone(model).fit(X).lower_bound_
    assert len(model.restarts_.bounds) == 3
    with pytest.raises(ValueError, match="'warm_start' parameter of VBMixture must be"):
        VBMixture(warm_start="yes").fit(X)
