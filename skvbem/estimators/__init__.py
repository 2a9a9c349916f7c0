"""Thin scikit-learn faces: validate, build the model, fit it, publish what was found."""

from skvbem.estimators._growth import Move
from skvbem.estimators._reports import GoodnessOfFit, LatentStates
from skvbem.estimators._tables import Restarts
from skvbem.estimators.vb_discrete_dag import VBDiscreteDAG
from skvbem.estimators.vb_mixture import VBMixture
from skvbem.tables import LabeledTable

__all__ = ["GoodnessOfFit", "LabeledTable", "LatentStates", "Move", "Restarts", "VBDiscreteDAG", "VBMixture"]
