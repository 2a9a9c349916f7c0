"""Thin scikit-learn faces: validate, build the model, fit it, publish what was found."""

from skvbem.estimators.bootstrap import BootstrapDraws
from skvbem.estimators.factor_analysis.fit_indices import FitIndices
from skvbem.estimators.factor_analysis.vb_factor_analysis import VBFactorAnalysis
from skvbem.estimators.hmm.fitted import Forecast
from skvbem.estimators.hmm.vb_hmm import VBHMM
from skvbem.estimators.labels.factor_numbers import Move
from skvbem.estimators.linear_dynamical_system.fitted import LDSForecast
from skvbem.estimators.linear_dynamical_system.vb_linear_dynamical_system import VBLinearDynamicalSystem
from skvbem.estimators.mixed_network.vb_network import VBNetwork
from skvbem.estimators.mixture.vb_mixture import VBMixture
from skvbem.estimators.network.bif import read_bif, write_bif
from skvbem.estimators.network.network import Network
from skvbem.estimators.network.reports import GoodnessOfFit
from skvbem.estimators.network.vb_discrete_dag import VBDiscreteDAG
from skvbem.estimators.posterior_draws import PosteriorDraws
from skvbem.estimators.reports import LatentStates, Restarts
from skvbem.estimators.standard_errors import StandardErrors
from skvbem.estimators.summary import ParameterTable, Summary
from skvbem.tables import LabeledTable

__all__ = [
    "BootstrapDraws",
    "FitIndices",
    "Forecast",
    "GoodnessOfFit",
    "LDSForecast",
    "LabeledTable",
    "LatentStates",
    "Move",
    "Network",
    "ParameterTable",
    "PosteriorDraws",
    "Restarts",
    "StandardErrors",
    "Summary",
    "VBDiscreteDAG",
    "VBFactorAnalysis",
    "VBHMM",
    "VBLinearDynamicalSystem",
    "VBMixture",
    "VBNetwork",
    "read_bif",
    "write_bif",
]
