r"""Priors of two parameters that are conjugate given one of them, which is integrated by a trapezoid.

Given x > 0 the other parameter has a closed log normalizer B, so that

.. math::

    A(\text{coordinates}) = \ln \int p(x)\, e^{B(\text{coordinates};\, x)}\, dx

is an integral over one number. With one component nothing is lost: q is the posterior itself.
"""

from skvbem.families.one_dimensional.direction_concentration import DirectionConcentration, DirectionConcentrationPoint
from skvbem.families.one_dimensional.shape_rate import ShapeRate, ShapeRatePoint
from skvbem.families.one_dimensional.size_probability import SizeProbability, SizeProbabilityPoint

__all__ = [
    "DirectionConcentration",
    "DirectionConcentrationPoint",
    "ShapeRate",
    "ShapeRatePoint",
    "SizeProbability",
    "SizeProbabilityPoint",
]
