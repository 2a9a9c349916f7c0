"""Fit indices of mixtures, hidden Markov models, systems and mixed networks, by the definitions of each."""

import itertools
import math

import numpy as np
import pytest
from sklearn.base import clone

from skvbem import VBHMM, VBDiscreteDAG, VBFactorAnalysis, VBLinearDynamicalSystem, VBMixture, VBNetwork, blocks_of
from skvbem.datasets import load_carcinoma, load_earthquakes, load_faithful, load_nile

approx = pytest.approx
WEIGHTS = np.array([0.3, 0.7])
OF_ONES = np.array([[0.9, 0.2, 0.4], [0.25, 0.8, 0.6]])


@pytest.fixture(scope="module")
def answers():
    return np.random.default_rng(0).integers(0, 2, (60, 3)).astype(float)


def residuals_by_hand(X, counts, probabilities, cells):
    """X² of each pair of columns of zeros and ones, from the probabilities of all cells."""
    found = {}
    for i, j in itertools.combinations(range(X.shape[1]), 2):
        observed, expected = np.zeros((2, 2)), np.zeros((2, 2))
        np.add.at(observed, (X[:, i].astype(int), X[:, j].astype(int)), counts)
        np.add.at(expected, (cells[:, i], cells[:, j]), probabilities * counts.sum())
        found[f"x{i}", f"x{j}"] = ((observed - expected) ** 2 / expected).sum()
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_a_mixture_of_zeros_and_ones_by_enumeration(answers, weighted):
    counts = np.arange(60) % 3 + 1.0 if weighted else np.ones(60)
    model = VBMixture.from_parameters(WEIGHTS, {"probabilities": OF_ONES}, emission="bernoulli")
    found = model.goodness_of_fit(answers, sample_weight=counts if weighted else None)
    cells = np.array(list(itertools.product([0, 1], repeat=3)))
    p = (WEIGHTS * np.prod(np.where(cells[:, None], OF_ONES, 1 - OF_ONES), axis=2)).sum(axis=1)
    observed = np.array([counts[(answers == cell).all(axis=1)].sum() for cell in cells])
    n, seen, d = counts.sum(), observed > 0, 1 + 6
    assert found.log_likelihood == approx((observed * np.log(p)).sum())
    assert found.g2 == approx(2 * (observed[seen] * np.log(observed[seen] / (n * p[seen]))).sum())
    assert found.x2 == approx(((observed - n * p) ** 2 / (n * p)).sum())
    assert (found.n_samples, found.n_free_parameters, found.degrees_of_freedom) == (n, d, 8 - 1 - d)
    assert found.bic == approx(-2 * found.log_likelihood + d * math.log(n))
    assert found.bivariate_residuals == approx(residuals_by_hand(answers, counts, p, cells))
    posterior = model.predict_proba(answers)
    entropy = -(counts @ (posterior * np.log(posterior)).sum(axis=1)) / n
    assert found.entropy_r2 == approx({"component": 1 - entropy / math.log(2)})


def test_a_mixture_of_categories_is_the_latent_class_model():
    X = load_carcinoma(as_frame=True).data.astype(object)
    X.iloc[3, 2] = None
    options = {"method": "ml", "tol": 1e-10, "random_state": 0}
    network = VBDiscreteDAG(latents=3, **options).fit(X).goodness_of_fit(X)
    for same in (
        VBMixture(3, emission="categorical", **options).fit(X),
        VBNetwork(latents=3, emission="categorical", **options).fit(X),
    ):
        found = same.goodness_of_fit(X)
        for name in ("log_likelihood", "g2", "x2", "degrees_of_freedom", "n_free_parameters", "sabic", "caic"):
            assert getattr(found, name) == approx(getattr(network, name), rel=1e-6), name
        assert list(found.entropy_r2.values()) == approx(list(network.entropy_r2.values()), rel=1e-5)
        assert found.bivariate_residuals == approx(network.bivariate_residuals, rel=1e-3, abs=1e-5)
        assert found.bic == approx(same.bic(X), rel=1e-6)


def test_sequences_of_categories_are_cells_of_a_table_of_sequences():
    """All 8 sequences of three steps, their probabilities summed over all paths."""
    start, trans, of_one = np.array([0.6, 0.4]), np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0.9, 0.15])
    model = VBHMM.from_parameters(start, trans, {"probabilities": of_one[:, None]}, emission="bernoulli")
    kinds, counts = list(itertools.product([0, 1], repeat=3)), np.array([5, 3, 2, 4, 1, 0, 6, 9])
    p = np.zeros(8)
    for path in itertools.product([0, 1], repeat=3):
        of_path = start[path[0]] * trans[path[0], path[1]] * trans[path[1], path[2]]
        p += of_path * np.prod(np.where(np.array(kinds), of_one[list(path)], 1 - of_one[list(path)]), axis=1)
    rows = [np.array(kind, dtype=float)[:, None] for kind, n in zip(kinds, counts) for _ in range(n)]
    found, n, seen = model.goodness_of_fit(rows), counts.sum(), counts > 0
    assert found.log_likelihood == approx((counts * np.log(p)).sum())
    assert found.g2 == approx(2 * (counts[seen] * np.log(counts[seen] / (n * p[seen]))).sum())
    assert found.x2 == approx(((counts - n * p) ** 2 / (n * p)).sum())
    assert (found.degrees_of_freedom, found.n_samples) == (8 - 1 - 5, 3 * n)
    states = np.concatenate(model.predict_proba(rows))
    assert found.entropy_r2["state"] == approx(1 + (states * np.log(states)).sum(axis=1).mean() / math.log(2))
    weighted = model.goodness_of_fit([np.array(kind, dtype=float)[:, None] for kind in kinds], sample_weight=counts)
    assert (weighted.g2, weighted.x2, weighted.bic) == approx((found.g2, found.x2, found.bic))
    assert weighted.entropy_r2 == approx(found.entropy_r2)


def test_there_is_no_chi_square_where_nothing_repeats():
    """Sequences of several lengths, long ones, counts and measurements have no table of cells."""
    start, trans = np.full(2, 0.5), np.full((2, 2), 0.5)
    chain = VBHMM.from_parameters(start, trans, {"probabilities": np.array([[0.2], [0.8]])}, emission="bernoulli")
    short, long = np.ones((3, 1)), np.ones((30, 1))
    for sequences in ([short, long], [long, long], [short]):
        assert chain.goodness_of_fit(sequences).degrees_of_freedom is None
    quakes = load_earthquakes().data
    model = VBHMM(2, emission="poisson", method="ml", n_init=2, random_state=0).fit(quakes)
    found = model.goodness_of_fit(quakes)
    assert math.isnan(found.g2)
    assert found.bivariate_residuals == {}
    assert found.bic == approx(model.bic(quakes), rel=1e-6)
    assert [line.split("  ")[0] for line in repr(found).splitlines()] == [
        "log likelihood",
        "AIC / BIC",
        "SABIC / CAIC",
        "entropy R2",
    ]
    nile = load_nile().data
    system = VBLinearDynamicalSystem(1, random_state=0).fit(nile).goodness_of_fit(nile)
    assert (system.entropy_r2, system.degrees_of_freedom) == ({}, None)
    assert "entropy" not in repr(system)


def test_measurements_are_scored_at_the_published_parameters():
    X = load_faithful().data
    model = VBMixture(2, random_state=0).fit(X)
    found, of = model.goodness_of_fit(X), model.parameters_["gaussian"]
    deviations = X[:, None] - of["means"]
    far = np.einsum("nki,kij,nkj->nk", deviations, np.linalg.inv(of["covariances"]), deviations)
    weights = model.fitted.named_parameters(model.fitted.point)["mixture"]["weights"]
    density = weights * np.exp(-0.5 * far) / (2 * np.pi * np.sqrt(np.linalg.det(of["covariances"])))
    assert found.log_likelihood == approx(np.log(density.sum(axis=1)).sum(), rel=1e-9)
    assert VBFactorAnalysis(1, random_state=0).fit(X).goodness_of_fit(X).entropy_r2 == {}


def test_columns_of_categories_beside_numbers_have_residuals():
    X = load_faithful(as_frame=True).data
    names = list(X.columns)
    X = X.assign(long=np.where(X[names[0]] > 3, "yes", "no"), late=np.where(X[names[1]] > 70, "yes", "no"))
    for model in (VBMixture(2, covariance_type="diag", random_state=0), VBNetwork(latents=2, random_state=0)):
        found = model.fit(X).goodness_of_fit(X)
        assert list(found.bivariate_residuals) == [("long", "late")]
        assert found.degrees_of_freedom is None
        assert math.isnan(found.x2)
        assert "bivariate" in repr(found)


def test_rows_in_blocks_are_refused():
    X = load_faithful().data
    model = VBMixture(2, random_state=0).fit(X)
    with pytest.raises(TypeError, match="goodness_of_fit needs rows in memory"):
        model.goodness_of_fit(blocks_of([X[:100], X[100:]]))


@pytest.mark.parametrize("estimator", [VBMixture(2, n_init=1, random_state=0), VBHMM(2, n_init=1, random_state=0)])
def test_labels_are_those_that_the_fit_knew(estimator):
    """Fit indices are of the values of rows: known labels change nothing, others are refused."""
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([0.0, 3.0], 20)[:, None]
    labels = [name if k % 3 else None for k, name in enumerate(np.repeat(["a", "b"], 20).tolist())]
    knowing = clone(estimator).fit(X, labels=labels)
    expected = knowing.goodness_of_fit(X)
    assert knowing.goodness_of_fit(X, labels=labels).bic == expected.bic
    for others in (["c"] * 40, [0, 1] * 20):
        for fit, known in ((knowing, "'a', 'b'"), (clone(estimator).fit(X), "none")):
            with pytest.raises(ValueError, match=rf"'labels' that goodness_of_fit of VB\w+ was given .* knew {known}"):
                fit.goodness_of_fit(X, labels=others)
