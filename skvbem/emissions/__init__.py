"""Observation models p(y | component, theta), the same for mixtures and hidden Markov models.

What users hold are specifications: `Gaussian`, `Regression`, `Categorical`, `Bernoulli`, `Multinomial`, `Poisson`,
`Exponential`, `StudentT`, `Censored`, `Interval`, `Ordinal` and `ZeroInflated`, small estimators with the parameters of
a prior.
Extenders derive from `EmissionSpecification`, or from `NumericSpecification` for numbers, and from `Emission` for the
model's side; `register_emission` gives it a name.
"""

from skvbem.emissions.base import Emission, Step
from skvbem.emissions.bernoulli import Bernoulli
from skvbem.emissions.categorical import Categorical
from skvbem.emissions.exponential import Exponential
from skvbem.emissions.factor.analyzer import FactorGaussian
from skvbem.emissions.gamma import Gamma
from skvbem.emissions.gaussian.specification import COVARIANCE_TYPES, Gaussian
from skvbem.emissions.intervals import Censored, Interval
from skvbem.emissions.linear import LinearEmission
from skvbem.emissions.log_normal import LogNormal
from skvbem.emissions.moments import n_columns_of, weighted_means
from skvbem.emissions.multinomial import Multinomial
from skvbem.emissions.negative_binomial import NegativeBinomial
from skvbem.emissions.ordinal import Ordinal
from skvbem.emissions.poisson import Poisson
from skvbem.emissions.profiles import Numbers, Probabilities
from skvbem.emissions.registry import EMISSIONS, register_emission
from skvbem.emissions.regression import Regression
from skvbem.emissions.softmax import Softmax
from skvbem.emissions.specification import EmissionSpecification, NumericSpecification
from skvbem.emissions.student_t import StudentT
from skvbem.emissions.von_mises import VonMises
from skvbem.emissions.zero_inflated import ZeroInflated

__all__ = [
    "COVARIANCE_TYPES",
    "EMISSIONS",
    "Bernoulli",
    "Categorical",
    "Censored",
    "Emission",
    "EmissionSpecification",
    "Exponential",
    "FactorGaussian",
    "Gamma",
    "Gaussian",
    "Interval",
    "LinearEmission",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Numbers",
    "NumericSpecification",
    "Ordinal",
    "Poisson",
    "Probabilities",
    "Regression",
    "Softmax",
    "Step",
    "StudentT",
    "ZeroInflated",
    "VonMises",
    "n_columns_of",
    "register_emission",
    "weighted_means",
]
