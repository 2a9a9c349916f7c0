"""Observation models p(y | component, theta), the same for mixtures and hidden Markov models."""

from typing import Any

from skvbem.emissions.base import Emission, Step, relabeled
from skvbem.emissions.bernoulli import BernoulliEmission
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.emissions.exponential import ExponentialEmission
from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.emissions.gaussian.diagonal import DiagonalGaussian
from skvbem.emissions.gaussian.gaussian import COVARIANCE_TYPES, Gaussian
from skvbem.emissions.independent import Independent
from skvbem.emissions.multinomial import MultinomialEmission
from skvbem.emissions.poisson import PoissonEmission

#: Emissions by name: each has `for_data(values, weight, **options)`.
EMISSIONS: dict[str, Any] = {
    "bernoulli": BernoulliEmission,
    "categorical": CategoricalEmission,
    "exponential": ExponentialEmission,
    "gaussian": Gaussian,
    "multinomial": MultinomialEmission,
    "poisson": PoissonEmission,
}

__all__ = [
    "COVARIANCE_TYPES",
    "EMISSIONS",
    "Bernoulli",
    "Categorical",
    "DenseGaussian",
    "DiagonalGaussian",
    "Emission",
    "Exponential",
    "Gaussian",
    "Independent",
    "Multinomial",
    "Poisson",
    "Step",
    "relabeled",
]
