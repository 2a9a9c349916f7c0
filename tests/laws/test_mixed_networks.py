"""Mixed networks beside mixtures on all data that are shipped, and beside sums over completions on many small ones."""

import numpy as np
import pytest
from bridge import FORMS
from laws.mixed_networks import STRUCTURES, MixedNetworkCase

from skvbem import VBMixture, VBNetwork, datasets
from skvbem.emissions import Categorical, Gaussian, Poisson
from skvbem.fitting.evaluation import evaluate
from skvbem.fitting.fit import read
from skvbem.models.mixed_network.model import MixedNetworkAscent
from skvbem.models.mixture.model import MixtureAscent
from skvbem.optima.network import random_starts
from skvbem.testing import models

approx = pytest.approx
GIVEN = {"covariance_prior": None, "mean_precision_prior": 1.0}


def numbers(specification, columns):
    return "numbers", specification, columns


def categories(columns):
    return "categories", Categorical(), columns


#: The groups of columns of each data set that has numbers.
SHIPPED = {
    "faithful": [numbers(Gaussian("full", **GIVEN), [0, 1])],
    "ability_tests": [numbers(Gaussian("full", **GIVEN), [*range(6)])],
    "nile": [numbers(Gaussian("full"), [0])],
    "co2": [numbers(Gaussian("diag", **GIVEN), [0])],
    "earthquakes": [numbers(Poisson(2.0, 0.5), [0])],
    "fetal_lamb": [numbers(Poisson(), [0])],
    "zoo": [numbers(Poisson(), [12]), categories([*range(12), *range(13, 16)])],
    "cheating": [categories([*range(4)]), numbers(Gaussian("full", **GIVEN), [4])],
}


def statistics_of_mixture(network, groups, statistics):
    """Statistics of a network of one latent root, as the mixture has them."""
    tables, *of_emissions = network.prior.split(statistics)
    of_root, *of_columns = (network.layout.table(tables, k) for k in range(network.layout.n_tables))
    left = iter(of_emissions)
    parts = [np.concatenate(of_columns, axis=1).ravel() if name == "categories" else next(left) for name, *_ in groups]
    return np.concatenate([of_root, *parts])


@pytest.mark.parametrize("name", SHIPPED)
def test_one_latent_root_is_a_mixture_of_independent_groups(name):
    """The bound, step by step from the same statistics."""
    data, groups = getattr(datasets, f"load_{name}")(), SHIPPED[name]
    options = {"emission": groups, "n_init": 1, "init": "random", "tol": 10.0, "random_state": 0}
    weight = {"sample_weight": data["sample_weight"]} if "sample_weight" in data else {}
    estimators = (
        VBNetwork(latents=3, **options),
        VBMixture(3, weight_concentration_prior=1.0, **options),
    )
    of_network, of_mixture = (evaluate(each, read(each, data.data, **weight)) for each in estimators)
    (start,) = random_starts(of_network.model, of_network.data, 1, np.random.default_rng(0)).T
    ascents = (
        (MixedNetworkAscent(of_network.model, of_network.data, FORMS["vb"]), start),
        (
            MixtureAscent(of_mixture.model, of_mixture.data, FORMS["vb"]),
            statistics_of_mixture(of_network.model, groups, start),
        ),
    )
    ours, theirs = (ascent.advance(np.ascontiguousarray(at[:, None]), 10) for ascent, at in ascents)
    assert ours == approx(theirs, rel=1e-9)
    assert len(np.unique(ours.round(9))) > 1


class AnyStructure(MixedNetworkCase):
    """Every instance of any of the structures."""

    def dozens(self, rng, k, form="vb"):
        return super().dozens(rng, int(rng.integers(len(STRUCTURES))), form)


def many(n):
    """Random networks of numbers whose missing cells leave rows with statistics, n of them in all."""
    pairs = [("spherical", "diag"), ("poisson", "bernoulli"), ("diag", "exponential"), ("multinomial", "full")]
    for k, pair in enumerate(pairs):
        case = AnyStructure("-".join(pair), *pair)
        case.n_tiny = case.n_rising = len(range(k, n, len(pairs)))
        yield case


@pytest.mark.parametrize("n", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_bounds_of_random_networks_are_below_evidences(n, rng):
    """With hidden nodes and gaps, beside sums over all completions."""
    for case in many(n):
        models.bound_is_below_the_evidence(case, rng)


@pytest.mark.parametrize("n", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_weights_of_random_networks_are_repeats(n, rng):
    for case in many(n):
        for _ in range(case.n_tiny):
            models.weights_are_repeats_in_any_order(case, rng)


@pytest.mark.slow
def test_no_step_lowers_the_bound_of_random_networks(rng):
    for case in many(300):
        models.objective_never_falls(case, rng, forms=["vb"])
