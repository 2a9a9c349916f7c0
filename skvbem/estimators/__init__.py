"""Thin scikit-learn faces: validate, build the model, fit it, publish what was found."""

from typing import TYPE_CHECKING

from skvbem._lazy import names_on_demand

if TYPE_CHECKING:
    from skvbem.estimators.discrete_dag.vb_discrete_dag import VBDiscreteDAG
    from skvbem.estimators.factor_analysis.vb_factor_analysis import VBFactorAnalysis
    from skvbem.estimators.hmm.vb_hmm import VBHMM
    from skvbem.estimators.linear_dynamical_system.vb_linear_dynamical_system import VBLinearDynamicalSystem
    from skvbem.estimators.mixed_network.vb_network import VBNetwork
    from skvbem.estimators.mixture.vb_mixture import VBMixture
    from skvbem.estimators.steps.vb_classifier import VBClassifier
    from skvbem.estimators.steps.vb_imputer import VBImputer
    from skvbem.fitted.bayesian_network import Network
    from skvbem.fitted.durations import DurationDistribution
    from skvbem.fitted.effects import Effect
    from skvbem.fitted.hmm import Forecast
    from skvbem.fitted.latent_states import LatentStates
    from skvbem.fitted.normal_mixtures import NormalMixture
    from skvbem.fitted.parameter_tables import ParameterTable
    from skvbem.fitted.state_space import LDSForecast
    from skvbem.fitted.structural import BlockTrack
    from skvbem.fitting.restarts import Restarts
    from skvbem.formats.networks import read_bif, read_network, write_bif, write_network
    from skvbem.reports.comparison import Comparison, compare
    from skvbem.reports.fit_indices import FitIndices, minka_evidence
    from skvbem.reports.goodness_of_fit import GoodnessOfFit
    from skvbem.reports.likelihood_ratio import LikelihoodRatioTest, bootstrap_lrt
    from skvbem.reports.long_run import LongRun
    from skvbem.reports.membership import ClassProbabilities, OddsRatios
    from skvbem.reports.pseudo_residuals import PseudoResiduals
    from skvbem.reports.stepwise.membership import MembershipRegression, three_step, two_step
    from skvbem.reports.stepwise.outcomes import DistalOutcome, distal
    from skvbem.reports.summary import Summary
    from skvbem.tables import LabeledTable
    from skvbem.uncertainty.bootstrap import BootstrapDraws
    from skvbem.uncertainty.draws import ParameterIntervals
    from skvbem.uncertainty.posterior_draws import PosteriorDraws
    from skvbem.uncertainty.standard_errors import StandardErrors
    from skvbem.vbem.fit import Move

__all__ = [
    "BlockTrack",
    "BootstrapDraws",
    "ClassProbabilities",
    "Comparison",
    "DistalOutcome",
    "Effect",
    "FitIndices",
    "DurationDistribution",
    "Forecast",
    "GoodnessOfFit",
    "LDSForecast",
    "LabeledTable",
    "LatentStates",
    "NormalMixture",
    "LikelihoodRatioTest",
    "LongRun",
    "MembershipRegression",
    "Move",
    "Network",
    "OddsRatios",
    "ParameterIntervals",
    "ParameterTable",
    "PosteriorDraws",
    "PseudoResiduals",
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
    "distal",
    "minka_evidence",
    "read_bif",
    "read_network",
    "three_step",
    "two_step",
    "write_bif",
    "write_network",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "skvbem.uncertainty.bootstrap": ("BootstrapDraws",),
        "skvbem.reports.comparison": ("Comparison", "compare"),
        "skvbem.reports.fit_indices": ("FitIndices", "minka_evidence"),
        "skvbem.estimators.factor_analysis.vb_factor_analysis": ("VBFactorAnalysis",),
        "skvbem.reports.stepwise.membership": ("MembershipRegression", "three_step", "two_step"),
        "skvbem.reports.stepwise.outcomes": ("DistalOutcome", "distal"),
        "skvbem.reports.goodness_of_fit": ("GoodnessOfFit",),
        "skvbem.fitted.durations": ("DurationDistribution",),
        "skvbem.fitted.effects": ("Effect",),
        "skvbem.fitted.hmm": ("Forecast",),
        "skvbem.estimators.hmm.vb_hmm": ("VBHMM",),
        "skvbem.uncertainty.draws": ("ParameterIntervals",),
        "skvbem.vbem.fit": ("Move",),
        "skvbem.reports.likelihood_ratio": ("LikelihoodRatioTest", "bootstrap_lrt"),
        "skvbem.fitted.state_space": ("LDSForecast",),
        "skvbem.fitted.structural": ("BlockTrack",),
        "skvbem.estimators.linear_dynamical_system.vb_linear_dynamical_system": ("VBLinearDynamicalSystem",),
        "skvbem.estimators.mixed_network.vb_network": ("VBNetwork",),
        "skvbem.estimators.mixture.vb_mixture": ("VBMixture",),
        "skvbem.formats.networks": ("read_bif", "read_network", "write_bif", "write_network"),
        "skvbem.fitted.bayesian_network": ("Network",),
        "skvbem.estimators.discrete_dag.vb_discrete_dag": ("VBDiscreteDAG",),
        "skvbem.uncertainty.posterior_draws": ("PosteriorDraws",),
        "skvbem.fitted.latent_states": ("LatentStates",),
        "skvbem.fitted.normal_mixtures": ("NormalMixture",),
        "skvbem.fitting.restarts": ("Restarts",),
        "skvbem.uncertainty.standard_errors": ("StandardErrors",),
        "skvbem.estimators.steps.vb_classifier": ("VBClassifier",),
        "skvbem.estimators.steps.vb_imputer": ("VBImputer",),
        "skvbem.fitted.parameter_tables": ("ParameterTable",),
        "skvbem.reports.long_run": ("LongRun",),
        "skvbem.reports.membership": ("ClassProbabilities", "OddsRatios"),
        "skvbem.reports.pseudo_residuals": ("PseudoResiduals",),
        "skvbem.reports.summary": ("Summary",),
        "skvbem.tables": ("LabeledTable",),
    },
)
