"""What an emission from outside returns is measured before compiled loops see it."""

import numpy as np
import pytest

from skvbem.emissions import Exponential
from skvbem.emissions.outside import rows_last
from skvbem.emissions.poisson import PoissonEmission
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.transitions import Transitions
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


class Inflated(Exponential):
    """Waiting times, some of which are 0 for certain: the mean is a function of two parameters."""

    def means(self, parameters):
        return parameters.get("means", (1 - parameters["inflation"]) / parameters["rates"])


ESTIMATES = {"inflation": np.array([[0.2]]), "rates": np.array([[0.5]])}
LOWER, UPPER = ({"inflation": np.array([[p]]), "rates": np.array([[rate]])} for p, rate in ((0.1, 0.4), (0.3, 0.6)))


def ends_of_mean(parameters, *ends):
    return Inflated().profiles(["x0"], parameters, ends)[0].intervals


def test_a_number_that_several_parameters_decide_has_no_interval_of_their_ends():
    assert ends_of_mean(ESTIMATES, LOWER, UPPER) is None
    without = [{"rates": each["rates"]} for each in (LOWER, UPPER)]
    assert np.allclose(ends_of_mean(ESTIMATES, *without), [[0.8 / 0.6], [0.8 / 0.4]])  # of one that falls as it rises


def test_a_number_that_is_a_parameter_has_its_interval():
    means = [{"means": np.array([[mean]])} for mean in (1.6, 1.2, 2.1)]
    parameters, *ends = ({**each, **mean} for each, mean in zip((ESTIMATES, LOWER, UPPER), means))
    assert np.allclose(ends_of_mean(parameters, *ends), [[1.2], [2.1]])
    assert ends_of_mean(parameters, LOWER, UPPER) is None  # the other parameters have ends, and it has none
    assert np.allclose(ends_of_mean(parameters, parameters, parameters), 1.6)  # an interval may have no width
