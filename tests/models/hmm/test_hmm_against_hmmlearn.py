"""The bound of hmmlearn's variational models, evaluated at our posterior; skipped where hmmlearn is not installed."""

import logging
import warnings

import numpy as np
import pytest

from skvbem.emissions import Gaussian
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.transitions import Transitions
from skvbem.vbem import posteriors

vhmm = pytest.importorskip("hmmlearn.vhmm")
approx = pytest.approx


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


def random_chain(rng, n_states):
    return Transitions(rng.uniform(0.3, 2, (1, n_states))), Transitions(rng.uniform(0.3, 2, (n_states, n_states)))


def handed_over(peer, model, posterior):
    """Priors and posteriors of the chain."""
    peer.n_features = 1
    peer.startprob_prior_, peer.transmat_prior_ = model.initial.concentration[0], model.transitions.concentration
    peer.startprob_posterior_ = posterior.blocks[0].concentration
    peer.transmat_posterior_ = posterior.blocks[1].concentration.reshape(model.n_components, -1)


def bound_of(peer, values, lengths):
    peer._estep_begin()
    _, log_z = peer._do_estep(values, lengths)
    return peer._compute_lower_bound(log_z)


@pytest.mark.parametrize("implementation", ["log", "scaling"])
def test_the_same_bound_of_symbols(implementation, rng):
    for n_states in (1, 2, 5):
        codes, lengths = rng.integers(0, 7, size=(300, 1)), [100, 150, 50]
        emission = CategoricalEmission((7,))
        model = HMM(emission, *random_chain(rng, n_states), emission.default_prior(n_states, concentration=0.6))
        data = model.compile(emission.prepare(codes), lengths)
        statistics = model.statistics_of(rng.dirichlet(np.full(n_states, 0.3), size=300), data)[:, None]
        ascent = HMMAscent(model, data, posteriors.VB)
        peer = vhmm.VariationalCategoricalHMM(n_states, implementation=implementation)
        for _ in range(4):
            posterior = model.prior + statistics[:, 0]
            handed_over(peer, model, posterior)
            peer.n_features = 7
            peer.emissionprob_prior_ = np.full((n_states, 7), 0.6)
            peer.emissionprob_posterior_ = posterior.blocks[2].concentration.reshape(n_states, 7)
            bound = ascent.advance(statistics, 1)[0, 0]
            assert bound_of(peer, codes, lengths) == approx(bound, rel=1e-9)


def test_the_same_bound_of_measurements_but_for_two_pi(rng):
    """hmmlearn leaves n d / 2 ln 2 pi out."""
    for n_states in (1, 3):
        values, lengths = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 2)), [120, 80]
        emission = Gaussian("full").for_data(values)
        model = HMM(emission, *random_chain(rng, n_states), emission.default_prior(n_states))
        data = model.compile(emission.prepare(values), lengths)
        statistics = model.statistics_of(rng.dirichlet(np.full(n_states, 0.3), size=200), data)[:, None]
        posterior, prior = model.prior + statistics[:, 0], model.prior
        peer = vhmm.VariationalGaussianHMM(n_states, covariance_type="full")
        handed_over(peer, model, posterior)
        peer.n_features = 2
        for which, of_all in (("prior_", prior.blocks[2]), ("posterior_", posterior.blocks[2])):
            back = np.linalg.inv(emission.whitener)  # from the emission's frame to the units of the data
            setattr(peer, f"means_{which}", emission.origin + of_all.mean @ back.T)
            setattr(peer, f"beta_{which}", np.array(of_all.mean_precision))
            setattr(peer, f"dof_{which}", np.array(of_all.degrees_of_freedom))
            setattr(peer, f"scale_{which}", back @ of_all.scale @ back.T)
        bound = HMMAscent(model, data, posteriors.VB).advance(statistics, 1)[0, 0]
        assert bound_of(peer, values, lengths) - 200 * np.log(2 * np.pi) == approx(bound, rel=1e-9)
