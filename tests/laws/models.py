"""The registry of models: a new family is one entry here, and meets every law of `laws` unasked."""

import pytest
from emissions.defined import DEFINED
from emissions.members import PROBLEMS
from laws.chains import HMMCase, SemiMarkovCase
from laws.latent_numbers import LatentNumberCase
from laws.linear_systems import LDSCase
from laws.mixed_networks import MixedNetworkCase
from laws.mixtures import MixtureCase
from laws.networks import NetworkCase
from laws.number_networks import NumberNetworkCase
from laws.time_series import StructuralCase

from skvbem.testing import check_model, models
from skvbem.testing.laws import needs_of

_MIXED = (MixedNetworkCase("counts", "poisson", "bernoulli"), MixedNetworkCase("measurements", "full", "diag"))
#: Durations of states, which have no part in emissions: a few of these.
_LASTING = tuple(map(SemiMarkovCase, ("categorical", "poisson", "diag")))
#: Emissions whose evidence of complete rows is a formula; tests of their own have the others.
_EMISSIONS = [name for name in PROBLEMS if name in DEFINED]
_LABELED = (NetworkCase(), *_MIXED, *map(MixtureCase, _EMISSIONS), *map(HMMCase, _EMISSIONS), *_LASTING)
_CASES = (*_LABELED, NumberNetworkCase(), LatentNumberCase(), LDSCase(), StructuralCase())

#: What laws are tried on, by name.
MODELS = {case.name: case for case in _CASES}


def having(*capabilities):
    """The families that lack none of these capabilities."""
    return [case for case in _CASES if not set(capabilities) & set(case.lacks)]


def of(cases):
    """Parametrizes a test by families."""
    return pytest.mark.parametrize("case", cases, ids=str)


def hold(law, case, rng):
    """It holds, unless the case says that it lacks what the law needs: `test_what_families_lack` knows what that is."""
    is_tried = not set(needs_of(models.LAWS[law])) & set(case.lacks)
    assert check_model(case, laws=[law], rng=rng).held == (law,) * is_tried
