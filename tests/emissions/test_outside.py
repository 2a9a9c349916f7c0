"""What an emission from outside returns is measured before compiled loops see it."""

import numpy as np
import pytest

from skvbem.emissions.outside import rows_last
from skvbem.emissions.poisson import PoissonEmission
from skvbem.models.hmm.model import HMM, Transitions
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights

X = np.arange(40.0)[:, None]


class Growing(PoissonEmission):
    """Returns what it should of the first rows, and other shapes after them."""

    change = None

    def block_rows(self, n_components, n_lanes=1):
        return 16

    def step(self, natural, table):
        step, change = super().step(natural, table), type(self).change
        right, seen = step.log_likelihood, []

        def log_likelihood(block):
            seen.append(block)
            return right(block) if len(seen) < 2 or change is None else change(right(block))

        step.log_likelihood = log_likelihood
        return step


@pytest.mark.parametrize(
    "change",
    [
        lambda logs: logs[..., :1, :],
        lambda logs: np.repeat(logs, 3, axis=-1),
        lambda logs: logs[..., :1],
        lambda logs: np.repeat(logs, 2, axis=0),
        lambda logs: logs.astype(np.float32),
    ],
)
def test_log_likelihoods_of_other_shapes_are_refused(change, monkeypatch):
    emission = Growing.for_data(X)
    ones = Transitions(np.ones((1, 2))), Transitions(np.ones((2, 2)))
    mixture = Mixture(emission, FiniteWeights(np.ones(2)), emission.default_prior(2))
    chain = HMM(emission, *ones, emission.default_prior(2))
    rows = emission.prepare(X)
    for model, data in ((mixture, mixture.compile(rows)), (chain, chain.compile(rows, lengths=[40]))):
        natural = np.repeat(model.prior.expected_natural()[:, None], 2, axis=1)
        monkeypatch.setattr(Growing, "change", None)
        assert np.isfinite(model.expect(natural, data).log_normalizer).all()
        monkeypatch.setattr(Growing, "change", staticmethod(change))
        with pytest.raises(ValueError, match=r"`log_likelihood` of \w+ must return floats of shape \(2, \d+, 2\)"):
            model.expect(natural, data)


def test_rows_of_one_lane_may_come_without_an_axis_for_it():
    emission = PoissonEmission.for_data(X)
    rows, natural = emission.prepare(X), emission.default_prior(2).expected_natural()
    assert rows_last(emission.step(natural, rows), rows, 1, 2).shape == (1, 2, 40)
