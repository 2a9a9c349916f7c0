"""The tail of weights, and what it does to errors."""

import numpy as np
import pytest

from skvbem import VBMixture
from skvbem.errors import EvidenceWarning
from skvbem.evidence.psis import error_factor, generalized_pareto


def test_the_shape_of_a_pareto_tail_is_found(rng):
    for shape in (0.2, 0.8):
        excess = np.sort((rng.random(4000) ** -shape - 1) / shape)
        assert generalized_pareto(excess)[0] == pytest.approx(shape, abs=0.08)


def test_errors_of_weights_without_variance_fall_more_slowly(rng):
    """As n^(k - 1): means of Pareto weights are as far apart as that says, and not as their variance."""
    assert error_factor(0.5, 10_000) == error_factor(-0.3, 10_000) == 1.0
    assert error_factor(0.75, 10_000) == pytest.approx(10.0)
    assert error_factor(3.0, 100) == pytest.approx(10.0)
    far = []
    for n in (100, 10_000):
        means = (rng.random((400, n)) ** -0.75).mean(axis=1)
        far.append(np.median(np.abs(means - 4.0)))
    assert far[0] / far[1] == pytest.approx(100**0.25, rel=0.4)


def test_a_score_of_such_weights_says_the_larger_error():
    """Within what smoothing of the largest weights changes."""
    X = np.random.default_rng(0).normal(size=(25, 2))
    model = VBMixture(2, random_state=0).fit(X)
    with pytest.warns(EvidenceWarning, match="Pareto shape"), pytest.warns(EvidenceWarning, match="are worth"):
        found = model.log_evidence(X, kind="importance", n_draws=256, random_state=0)
    weights = np.exp(found.details["log_weights"] - found.details["log_weights"].max())
    as_if_finite = weights.std(ddof=1) / weights.mean() / np.sqrt(len(weights))
    factor = error_factor(found.details["pareto_k"], len(weights))
    assert factor > 3
    assert found.standard_error == pytest.approx(factor * as_if_finite, rel=0.1)
