"""Steps of one factor analyzer from second moments are those of a mixture of one component, row by row."""

from dataclasses import replace

import numpy as np
import pytest

from skvbem import VBFactorAnalysis
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.models.mixture.analyzer_ascent import AnalyzerAscent
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.labels import FactorStarts
from skvbem.vbem.posteriors import MAP, VB

HIDDEN = {"noise_prior": "hierarchical", "mean_precision_prior": "hierarchical"}
KNOWN = {"noise_prior": (1.0, 0.5), "mean_precision_prior": 1.0}


def ascents(n_factors, prior=HIDDEN, relevance=(1.0, 1.0), weighted=False, n=80, d=6, **options):
    """Steps of rows and steps of moments, of one model on the same rows; and starts."""
    rng = np.random.default_rng([n, d, n_factors])
    X = 3 + rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(n, d))
    weight = rng.integers(1, 4, size=n).astype(float) if weighted else None
    emission = FactorAnalyzer.for_data(X, weight, n_factors=n_factors, **options)
    model = Mixture(emission, FiniteWeights(np.ones(1)), emission.default_prior(1, relevance_prior=relevance, **prior))
    data = model.compile(emission.prepare(X), weight)
    assert AnalyzerAscent.suits(model, data, VB)
    by_row, by_moments = MixtureAscent(model, data, VB), AnalyzerAscent(model, data, VB)
    starts = FactorStarts("random", 3, (0,))(by_row)
    return by_row, by_moments, model.prior.with_hyperparameters(starts)


@pytest.mark.parametrize(
    "options",
    [
        {"n_factors": 2},
        {"n_factors": 0},
        {"n_factors": 6},
        {"n_factors": 9},
        {"n_factors": 2, "weighted": True},
        {"n_factors": 2, "spherical": True},
        {"n_factors": 2, "prior": KNOWN},
        {"n_factors": 2, "relevance": 1.0},
        {"n_factors": 3, "n": 5},
        {"n_factors": 12, "n": 100, "d": 40},
    ],
    ids=str,
)
def test_steps_are_those_of_rows(options):
    by_row, by_moments, starts = ascents(**options)
    for start in starts.T[:, :, None]:  # a step of rows looks at all lanes before it looks for a better map
        one, other = start.copy(), start.copy()
        trace = by_row.advance(one, 15)
        np.testing.assert_allclose(by_moments.advance(other, 15), trace, rtol=1e-10)
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-8 * np.abs(one).max())


def test_lanes_are_independent_and_statistics_of_no_density_stay():
    _, ascent, starts = ascents(2)
    together = np.concatenate([starts, -starts[:, :1]], axis=1)
    trace = ascent.advance(together, 4)
    np.testing.assert_array_equal(trace[:, 3], -np.inf)
    np.testing.assert_array_equal(together[1:, 3], -starts[1:, 0])
    for k in range(3):
        alone = starts[:, [k]].copy()
        np.testing.assert_array_equal(ascent.advance(alone, 4)[:, 0], trace[:, k])
        np.testing.assert_array_equal(alone[:, 0], together[:, k])


def test_the_objective_never_falls():
    _, ascent, starts = ascents(4)
    trace = ascent.advance(starts, 200)
    assert (np.diff(trace, axis=0) > -1e-9 * np.abs(trace[0])).all()


def test_other_models_are_left_to_steps_of_rows():
    by_row, *_ = ascents(2)
    model, data = by_row.model, by_row.data
    assert not AnalyzerAscent.suits(model, data, MAP)
    gaps = replace(model.emission, has_gaps=np.arange(6) == 2)
    assert not AnalyzerAscent.suits(Mixture(gaps, model.weights, gaps.default_prior(1, **HIDDEN)), data, VB)
    groups = replace(model.emission, group_of=(0, 0, 0, 1, 1, 1))
    assert not AnalyzerAscent.suits(Mixture(groups, model.weights, groups.default_prior(1, **HIDDEN)), data, VB)
    two = Mixture(model.emission, FiniteWeights(np.ones(2)), model.emission.default_prior(2, **HIDDEN))
    assert not AnalyzerAscent.suits(two, data, VB)


def test_a_fit_of_many_rows_is_that_of_its_rows_without_a_shortcut(monkeypatch):
    X = np.random.default_rng(3).normal(size=(300, 5)) @ np.random.default_rng(4).normal(size=(5, 5))
    bound = VBFactorAnalysis(random_state=0).fit(X).lower_bound_
    monkeypatch.setattr(AnalyzerAscent, "suits", staticmethod(lambda *of_model: False))
    assert VBFactorAnalysis(random_state=0).fit(X).lower_bound_ == pytest.approx(bound, abs=2e-4)
