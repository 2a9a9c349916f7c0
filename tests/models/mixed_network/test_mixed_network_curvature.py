"""Second derivatives of the log likelihood of mixed networks, and directions in which their distribution can move."""

import numpy as np
import pytest
from laws.mixed_networks import MixedNetworkCase
from reference.differences import gradient, hessian

from skvbem.errors import TooLargeError
from skvbem.models import capabilities_of
from skvbem.models.mixed_network.information import score_covariance
from skvbem.models.mixed_network.queries import Predictive

approx = pytest.approx
CASES = [("full", "diag"), ("tied", "poisson"), ("poisson", "bernoulli")]


@pytest.mark.parametrize("emissions", CASES, ids="-".join)
def test_what_is_hidden_takes_information(emissions, rng):
    """Hidden nodes and missing cells: information of complete data less the covariance of scores is the Hessian."""
    case = MixedNetworkCase("some", *emissions)
    for k in (1, 2) if "full" in emissions else range(4):
        instance = case._drawn(rng, 7, k, conjugate=False)
        model, weight = instance.model, rng.uniform(0.5, 2.0, 7)
        data, prior = instance.compile(weight=weight), instance.model.prior
        point = prior.sample(rng)
        free = prior.to_unconstrained(point)

        def log_likelihoods(free, model=model, data=data):
            natural = model.prior.natural(model.prior.from_unconstrained(free))
            return model.expect(natural, data).log_normalizer

        statistics = model.expect(prior.natural(point)[:, None], data).statistics[:, 0]
        (whole,) = score_covariance(model, point, data)
        observed = prior.information(point, statistics) - whole.covariance
        wanted = -hessian(log_likelihoods, free)
        assert observed == approx(wanted, abs=2e-5 * np.abs(wanted).max())
        blocks = score_covariance(model, point, data, joint=False)
        assert sorted(np.concatenate([block.free for block in blocks])) == whole.free.tolist()
        for block in blocks:
            assert block.covariance == approx(whole.covariance[np.ix_(block.free, block.free)], abs=1e-12)
    with pytest.raises(TooLargeError, match="needs all 2 joint states of h in a row"):
        score_covariance(model, point, case._drawn(rng, 7, 2, gaps=0.0).compile(), max_states=1)


STRUCTURES = [
    ({"h": (), "c": ("h",), "a": ("h",), "b": ("h",)}, {}),
    # the effect of h on c cannot be told, that of g can: a measurement shows it
    ({"h": (), "g": (), "c": ("h", "g"), "a": ("g",), "b": ()}, {"h": 1, "c": 4}),
    ({"h": (), "g": ("h",), "c": ("h",), "a": ("g",), "b": ("c",)}, {"h": 2}),
]


@pytest.mark.parametrize("emissions", [("diag", "poisson"), ("poisson", "bernoulli")], ids="-".join)
@pytest.mark.parametrize(("structure", "lost"), STRUCTURES, ids=["class", "two causes", "chain"])
def test_the_dimension_is_the_rank_of_the_derivatives(structure, lost, emissions, rng):
    """Of log densities of many complete rows by all parameters."""
    instance = MixedNetworkCase("some", *emissions)._drawn(rng, 300, 0, gaps=0.0, structure=structure)
    model = instance.model
    dimension = capabilities_of(model).dimension(instance.hidden)
    assert dimension == model.n_free_parameters - sum(lost.values())
    rows, free = instance.compile().source, model.prior.to_unconstrained(model.prior.sample(rng))

    def log_densities(free):
        return Predictive(model, None, model.prior.from_unconstrained(free)).log_densities(rows)

    derivatives = gradient(log_densities, free)
    sizes = np.linalg.svd(derivatives / np.linalg.norm(derivatives, axis=1, keepdims=True), compute_uv=False)
    assert (sizes > 1e-6).sum() == dimension


def test_zeros_and_ones_may_not_tell_states_apart(rng):
    """Two columns below two states have a table of four cells: three dimensions, of five parameters."""
    structure = {"h": (), "c": (), "a": (), "b": ("h",)}
    instance = MixedNetworkCase("some", "poisson", "bernoulli")._drawn(rng, 9, 0, gaps=0.0, structure=structure)
    lost = instance.model.n_free_parameters - capabilities_of(instance.model).dimension(instance.hidden)
    n_columns = instance.model.emissions[1].n_columns
    assert lost == 1 + 2 * n_columns - min(1 + 2 * n_columns, 2**n_columns - 1)
    assert lost > 0
