"""Thin scikit-learn faces: validate, build the model, fit it, publish what was found."""

from typing import TYPE_CHECKING

from skvbem._lazy import names_on_demand

if TYPE_CHECKING:
    from skvbem.estimators.bootstrap import BootstrapDraws
    from skvbem.estimators.comparison import Comparison, compare
    from skvbem.estimators.factor_analysis.fit_indices import FitIndices
    from skvbem.estimators.factor_analysis.vb_factor_analysis import VBFactorAnalysis
    from skvbem.estimators.goodness_of_fit import GoodnessOfFit
    from skvbem.estimators.hmm.fitted import Forecast
    from skvbem.estimators.hmm.vb_hmm import VBHMM
    from skvbem.estimators.intervals import ParameterIntervals
    from skvbem.estimators.labels.factor_numbers import Move
    from skvbem.estimators.likelihood_ratio import LikelihoodRatioTest, bootstrap_lrt
    from skvbem.estimators.linear_dynamical_system.fitted import LDSForecast
    from skvbem.estimators.linear_dynamical_system.vb_linear_dynamical_system import VBLinearDynamicalSystem
    from skvbem.estimators.mixed_network.vb_network import VBNetwork
    from skvbem.estimators.mixture.vb_mixture import VBMixture
    from skvbem.estimators.network.bif import read_bif, write_bif
    from skvbem.estimators.network.network import Network
    from skvbem.estimators.network.vb_discrete_dag import VBDiscreteDAG
    from skvbem.estimators.posterior_draws import PosteriorDraws
    from skvbem.estimators.reports import LatentStates, Restarts
    from skvbem.estimators.standard_errors import StandardErrors
    from skvbem.estimators.steps.vb_classifier import VBClassifier
    from skvbem.estimators.steps.vb_imputer import VBImputer
    from skvbem.estimators.summary import ParameterTable, Summary
    from skvbem.tables import LabeledTable

__all__ = [
    "BootstrapDraws",
    "Comparison",
    "FitIndices",
    "Forecast",
    "GoodnessOfFit",
    "LDSForecast",
    "LabeledTable",
    "LatentStates",
    "LikelihoodRatioTest",
    "Move",
    "Network",
    "ParameterIntervals",
    "ParameterTable",
    "PosteriorDraws",
    "Restarts",
    "StandardErrors",
    "Summary",
    "VBClassifier",
    "VBDiscreteDAG",
    "VBFactorAnalysis",
    "VBHMM",
    "VBImputer",
    "VBLinearDynamicalSystem",
    "VBMixture",
    "VBNetwork",
    "bootstrap_lrt",
    "compare",
    "read_bif",
    "write_bif",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "skvbem.estimators.bootstrap": ("BootstrapDraws",),
        "skvbem.estimators.comparison": ("Comparison", "compare"),
        "skvbem.estimators.factor_analysis.fit_indices": ("FitIndices",),
        "skvbem.estimators.factor_analysis.vb_factor_analysis": ("VBFactorAnalysis",),
        "skvbem.estimators.goodness_of_fit": ("GoodnessOfFit",),
        "skvbem.estimators.hmm.fitted": ("Forecast",),
        "skvbem.estimators.hmm.vb_hmm": ("VBHMM",),
        "skvbem.estimators.intervals": ("ParameterIntervals",),
        "skvbem.estimators.labels.factor_numbers": ("Move",),
        "skvbem.estimators.likelihood_ratio": ("LikelihoodRatioTest", "bootstrap_lrt"),
        "skvbem.estimators.linear_dynamical_system.fitted": ("LDSForecast",),
        "skvbem.estimators.linear_dynamical_system.vb_linear_dynamical_system": ("VBLinearDynamicalSystem",),
        "skvbem.estimators.mixed_network.vb_network": ("VBNetwork",),
        "skvbem.estimators.mixture.vb_mixture": ("VBMixture",),
        "skvbem.estimators.network.bif": ("read_bif", "write_bif"),
        "skvbem.estimators.network.network": ("Network",),
        "skvbem.estimators.network.vb_discrete_dag": ("VBDiscreteDAG",),
        "skvbem.estimators.posterior_draws": ("PosteriorDraws",),
        "skvbem.estimators.reports": ("LatentStates", "Restarts"),
        "skvbem.estimators.standard_errors": ("StandardErrors",),
        "skvbem.estimators.steps.vb_classifier": ("VBClassifier",),
        "skvbem.estimators.steps.vb_imputer": ("VBImputer",),
        "skvbem.estimators.summary": ("ParameterTable", "Summary"),
        "skvbem.tables": ("LabeledTable",),
    },
)
