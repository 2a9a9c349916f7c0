"""Full Gaussians with missing cells, step by step beside the literal algorithms of `reference.gaussian_mixture`."""

import numpy as np
import pytest
from reference.gaussian_mixture import Density, Point, em_step, vb_step

from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.vbem.posteriors import ML, VB

approx = pytest.approx
N_STEPS = 12


def problem(rng, K, d, n=40):
    """Clumps of rows with correlated columns, a quarter of the cells and one whole row missing, and weights."""
    rows = (
        rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3 * rng.integers(0, K, n)[:, None] + rng.normal(size=d) * 50
    )
    rows[rng.random(rows.shape) < 0.25] = np.nan
    rows[3] = np.nan
    weight = rng.integers(1, 4, n) / 2
    emission = DenseGaussian.for_data(rows, weight)
    model = Mixture(emission, FiniteWeights(rng.uniform(0.5, 2.0, K)), emission.default_prior(K))
    order = emission.row_order(emission.prepare(rows))
    rows, weight = rows[order], weight[order]
    data = model.compile(emission.prepare(rows), weight, ~np.isnan(rows).all(axis=1))
    start = model.statistics_of(rng.dirichlet(np.ones(K) * 0.5, size=n), data)
    return model, data, rows, weight, start


@pytest.mark.parametrize(("K", "d"), [(1, 3), (2, 2), (3, 4), (2, 1)])
def test_maximum_likelihood(K, d, rng):
    model, data, rows, weight, statistics = problem(rng, K, d)
    emission = model.emission

    def as_point(statistics):
        weights, normal = ML.point_of(model.prior, statistics)
        of_emission = emission.parameters(normal)
        return Point(weights, of_emission["means"], of_emission["covariances"])

    theirs = as_point(statistics)
    likelihoods = []
    for _ in range(N_STEPS):
        natural, penalty = ML.of(model.prior, statistics[:, None])
        found = model.expect(natural, data)
        theirs, log_likelihood = em_step(rows, weight, theirs)
        assert found.log_normalizer[0] + penalty[0] == approx(log_likelihood, rel=1e-9, abs=1e-9)
        statistics, ours = found.statistics[:, 0], as_point(found.statistics[:, 0])
        assert ours.weights == approx(theirs.weights, rel=1e-9)
        assert ours.means == approx(theirs.means, rel=1e-9, abs=1e-9)
        assert ours.covariances == approx(theirs.covariances, rel=1e-9, abs=1e-9 * np.abs(theirs.covariances).max())
        likelihoods.append(log_likelihood)
    assert (np.diff(likelihoods) > -1e-9).all()
    assert likelihoods[-1] > likelihoods[0]


@pytest.mark.parametrize(("K", "d"), [(1, 3), (2, 2), (3, 4), (2, 1)])
def test_variational_bayes(K, d, rng):
    model, data, rows, weight, statistics = problem(rng, K, d)

    def as_density(blocks):
        of_normal = model.emission.hyperparameters(blocks[1])
        names = ("mean", "mean_precision", "degrees_of_freedom", "covariance")
        return Density(blocks[0].concentration, *(of_normal[name] for name in names))

    prior = as_density(model.prior.blocks)
    theirs = as_density((model.prior + statistics).blocks)
    bounds = []
    for _ in range(N_STEPS):
        natural, penalty = VB.of(model.prior, statistics[:, None])
        found = model.expect(natural, data)
        theirs, bound = vb_step(rows, weight, prior, theirs)
        assert found.log_normalizer[0] + penalty[0] == approx(bound, rel=1e-9, abs=1e-9)
        statistics = found.statistics[:, 0]
        ours = as_density((model.prior + statistics).blocks)
        for name in ("concentration", "mean", "kappa", "nu"):
            assert getattr(ours, name) == approx(getattr(theirs, name), rel=1e-9, abs=1e-9), name
        assert ours.scale == approx(theirs.scale, rel=1e-9, abs=1e-9 * np.abs(theirs.scale).max())
        bounds.append(bound)
    assert (np.diff(bounds) > -1e-9).all()
    assert bounds[-1] > bounds[0]
