"""Jobs of people who come from scikit-learn's mixtures and mclust, with their figures or closed forms."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvbem import StructureSearchCV, VBMixture
from skvbem.datasets import load_faithful
from skvbem.emissions import Gaussian

approx = pytest.approx
DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def eruptions():
    return load_faithful().data


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_the_likelihood_of_gaussian_mixture(eruptions, covariance_type):
    """'GaussianMixture(2, covariance_type): score, bic, aic.'"""
    ours = VBMixture(2, covariance_type=covariance_type, method="ml", random_state=0).fit(eruptions)
    options = {"n_init": 3, "tol": 1e-9, "max_iter": 2000, "reg_covar": 0.0, "random_state": 0}
    theirs = GaussianMixture(2, covariance_type=covariance_type, **options).fit(eruptions)
    assert ours.score(eruptions) == approx(theirs.score(eruptions), abs=1e-6)
    assert ours.bic(eruptions) == approx(theirs.bic(eruptions), abs=1e-3)
    assert ours.aic(eruptions) == approx(theirs.aic(eruptions), abs=1e-3)


def test_the_likelihood_of_mclust(eruptions):
    """'Mclust(faithful): EEE with three components.' EM there ends 0.01 nats before the maximum."""
    reference = json.loads((DATA / "mixtures.ref.json").read_text())["faithful"]["mclust_6_0_0"]
    model = VBMixture(3, covariance_type="tied", method="ml", random_state=0).fit(eruptions)
    assert reference["best"] == "EEE,3"
    assert model.log_likelihood_ == approx(reference["loglik"], abs=0.02)
    assert -model.bic(eruptions) == approx(reference["bic"], abs=0.04)


def test_the_bound_of_one_component_is_the_evidence(eruptions):
    """'Is that lower bound an evidence?' Row by row, Student's t given the rows before."""
    prior = Gaussian(covariance_prior=np.cov(eruptions.T), degrees_of_freedom_prior=2.0, mean_precision_prior=1.0)
    model = VBMixture(1, emission=prior, random_state=0).fit(eruptions)
    mean, weight, dof, scale, total = eruptions.mean(axis=0), 1.0, 2.0, np.cov(eruptions.T), 0.0
    for row in eruptions:
        shape = scale * (weight + 1) / (weight * (dof - 1))
        total += multivariate_t(mean, shape, dof - 1).logpdf(row)
        scale = scale + weight / (weight + 1) * np.outer(row - mean, row - mean)
        mean, weight, dof = (weight * mean + row) / (weight + 1), weight + 1, dof + 1
    assert model.lower_bound_ == approx(total)


def test_rows_with_missing_cells(eruptions):
    """'Some waits were not written down.' The density of what is observed, by scipy."""
    model = VBMixture(2, method="ml", random_state=0).fit(eruptions)
    density = sum(
        w * multivariate_normal(m[0], c[0, 0]).pdf(3.0)
        for w, m, c in zip(model.weights_, model.means_, model.covariances_)
    )
    assert model.score_samples([[3.0, np.nan]])[0] == approx(np.log(density))
    gaps = eruptions.copy()
    gaps[::3, 1] = np.nan
    refitted = VBMixture(2, method="ml", random_state=0).fit(gaps)
    assert refitted.n_samples_ == 272
    assert np.abs(np.sort(refitted.means_[:, 1]) - np.sort(model.means_[:, 1])).max() < 1.5


def test_a_pipeline_in_a_grid_search(eruptions):
    """'GridSearchCV over the number of components behind a scaler', beside the same with GaussianMixture."""
    best = []
    for mixture in (VBMixture(method="ml", random_state=0), GaussianMixture(n_init=3, random_state=0)):
        name = type(mixture).__name__.lower()
        pipeline = make_pipeline(StandardScaler(), mixture)
        search = GridSearchCV(pipeline, {f"{name}__n_components": [1, 2]}, cv=3).fit(eruptions)
        best.append(search.best_score_)
    assert best[0] == approx(best[1], abs=1e-3)


def test_weights_are_repeated_rows(eruptions):
    """'Each row counts this often', which scikit-learn has not: GaussianMixture of the rows, repeated."""
    often = np.arange(272) % 3
    ours = VBMixture(2, method="ml", random_state=0).fit(eruptions, sample_weight=often)
    repeated = np.repeat(eruptions, often, axis=0)
    theirs = GaussianMixture(2, n_init=3, tol=1e-9, max_iter=2000, reg_covar=0.0, random_state=0).fit(repeated)
    assert ours.log_likelihood_ == approx(theirs.score(repeated) * len(repeated), abs=1e-4)


def test_clusters_and_covariances_in_one_search():
    """'Which covariance type and how many clusters has iris?'"""
    X, species = load_iris(return_X_y=True)
    grid = {"n_components": [2, 3, 4], "covariance_type": ["full", "diag"]}
    search = StructureSearchCV(VBMixture(), grid, scoring="lower_bound", random_state=0).fit(X)
    assert search.best_params_ == {"n_components": 3, "covariance_type": "full"}
    assert adjusted_rand_score(species, search.predict(X)) > 0.9
