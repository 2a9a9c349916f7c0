"""The registry of models: a new family is one entry here, and meets every law of `laws` unasked."""

from emissions.members import PROBLEMS
from laws.chains import HMMCase
from laws.linear_systems import LDSCase
from laws.mixtures import MixtureCase
from laws.networks import NetworkCase

_CASES = (NetworkCase(), *map(MixtureCase, PROBLEMS), *map(HMMCase, PROBLEMS), LDSCase())

#: What laws are tried on, by name.
MODELS = {case.name: case for case in _CASES}


def having(*capabilities):
    """The families that lack none of these capabilities."""
    return [case for case in _CASES if not set(capabilities) & set(case.lacks)]
