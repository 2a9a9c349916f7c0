"""Labelings of mixtures: as many as there are orders of components that the prior does not tell apart."""

import numpy as np
from emissions.members import PROBLEMS
from laws.mixtures import mixture

from skvbem.models import capabilities_of
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking


def test_sticks_and_unequal_priors_have_one_labeling(rng):
    problem = PROBLEMS["diag"](rng, n_rows=5)
    for weights, n in (
        (FiniteWeights(np.ones(3)), 6),
        (FiniteWeights(np.array([1.0, 2.0, 3.0])), 1),
        (StickBreaking(3, 1.0), 1),
    ):
        model, _, _ = mixture(problem, weights)
        assert capabilities_of(model).relabelings.relabelings(("component",)).n == n
