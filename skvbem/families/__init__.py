"""Conjugate priors p(theta), which are also the posteriors q(theta)."""

from skvbem.families.base import Product
from skvbem.families.dirichlet import Dirichlet
from skvbem.families.dirichlet_mixture import DirichletMixture
from skvbem.families.gamma import Gamma
from skvbem.families.normal_gamma import NormalGamma, NormalPoint
from skvbem.families.normal_wishart import NormalWishart
from skvbem.families.one_dimensional import DirectionConcentration, ShapeRate, SizeProbability
from skvbem.families.regression import Regression, RegressionPoint

#: Every family of the library: the laws of conjugate families are tested on each.
FAMILIES = {
    "direction_concentration": DirectionConcentration,
    "dirichlet": Dirichlet,
    "dirichlet_mixture": DirichletMixture,
    "gamma": Gamma,
    "normal_gamma": NormalGamma,
    "normal_wishart": NormalWishart,
    "product": Product,
    "regression": Regression,
    "shape_rate": ShapeRate,
    "size_probability": SizeProbability,
}

__all__ = [
    "FAMILIES",
    "DirectionConcentration",
    "Dirichlet",
    "DirichletMixture",
    "Gamma",
    "NormalGamma",
    "NormalPoint",
    "NormalWishart",
    "Product",
    "Regression",
    "RegressionPoint",
    "ShapeRate",
    "SizeProbability",
]
