"""Laws for what extends the library: each check holds an object to the theory, and says which law it breaks.

`check_family`, `check_emission`, `check_model`, `check_score` and `check_kind` are what the tests of the library call,
too. They raise an AssertionError that names the law, and return a `Report` of the laws that were held. They need no
test runner.
"""

from skvbem.testing.cases import ModelCase, ModelInstance, Relabeling
from skvbem.testing.emission_examples import EmissionExample
from skvbem.testing.emissions import check_emission
from skvbem.testing.examples import EXAMPLES
from skvbem.testing.families import FamilyExample, check_family
from skvbem.testing.kinds import check_kind
from skvbem.testing.laws import Report
from skvbem.testing.models import check_model
from skvbem.testing.scores import check_score

__all__ = [
    "EXAMPLES",
    "EmissionExample",
    "FamilyExample",
    "ModelCase",
    "ModelInstance",
    "Relabeling",
    "Report",
    "check_emission",
    "check_family",
    "check_kind",
    "check_model",
    "check_score",
]
