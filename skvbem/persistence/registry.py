"""The classes that a saved fit may be made of: a closed list of this package's own, by names that do not change.

A file names classes by the keys of `CLASSES`, never by modules. What is not listed here is neither written nor read.
Parts and their types are those that the classes declare; what the parts must mean is in `skvbem.persistence.soundness`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, get_origin, get_type_hints

from skvbem.persistence.sound_fits import SOUND

#: Estimators that can be saved, and networks; a check of `skvbem.persistence.sound_fits` names each of them, too.
FITS = {
    "VBDiscreteDAG": "skvbem.estimators.discrete_dag.vb_discrete_dag",
    "VBNetwork": "skvbem.estimators.mixed_network.vb_network",
    "VBMixture": "skvbem.estimators.mixture.vb_mixture",
    "VBHMM": "skvbem.estimators.hmm.vb_hmm",
    "VBFactorAnalysis": "skvbem.estimators.factor_analysis.vb_factor_analysis",
    "VBLinearDynamicalSystem": "skvbem.estimators.linear_dynamical_system.vb_linear_dynamical_system",
    "VBClassifier": "skvbem.estimators.steps.vb_classifier",
    "VBImputer": "skvbem.estimators.steps.vb_imputer",
    "Network": "skvbem.fitted.bayesian_network",
}
#: Attribute of a step of pipelines that holds the estimator it has fitted.
MODEL_OF_STEP = {"VBClassifier": "network_", "VBImputer": "estimator_"}
_IN_MODULES = {
    "skvbem.durations": ("Hazards", "Stages"),
    "skvbem.emissions.bernoulli": ("Bernoulli", "BernoulliEmission"),
    "skvbem.emissions.given": ("Given", "GivenColumns"),
    "skvbem.emissions.coding": ("Coding",),
    "skvbem.emissions.softmax": ("Softmax", "SoftmaxMembership"),
    "skvbem.families.inert": ("Inert",),
    "skvbem.families.softmax_maximum": ("Design",),
    "skvbem.families.softmax_regression": ("SoftmaxRegression",),
    "skvbem.families.softmax_rows": ("SoftmaxRows",),
    "skvbem.emissions.categorical": ("Categorical", "CategoricalEmission"),
    "skvbem.emissions.exponential": ("Exponential", "ExponentialEmission"),
    "skvbem.emissions.factor.analyzer": ("FactorAnalyzer", "FactorGaussian"),
    "skvbem.emissions.gaussian.dense": ("DenseGaussian",),
    "skvbem.emissions.gaussian.diagonal": ("DiagonalGaussian",),
    "skvbem.emissions.gaussian.specification": ("Gaussian",),
    "skvbem.emissions.hidden_number": ("HiddenNumber", "HiddenNumberEmission"),
    "skvbem.emissions.independent": ("Independent",),
    "skvbem.emissions.intervals": ("Censored", "Interval", "IntervalEmission", "Limits", "Pairs"),
    "skvbem.emissions.gamma": ("GammaEmission",),
    "skvbem.emissions.log_normal": ("LogNormal", "LogNormalEmission"),
    "skvbem.emissions.multinomial": ("Multinomial", "MultinomialEmission"),
    "skvbem.emissions.negative_binomial": ("NegativeBinomial", "NegativeBinomialEmission"),
    "skvbem.emissions.ordinal": ("Edges", "Ordinal", "OrdinalEmission"),
    "skvbem.emissions.poisson": ("Poisson", "PoissonEmission"),
    "skvbem.emissions.regression": ("RegressionEmission",),
    "skvbem.emissions.student_t": ("StudentT", "StudentTEmission"),
    "skvbem.emissions.von_mises": ("VonMises", "VonMisesEmission"),
    "skvbem.emissions.zero_inflated": ("ZeroInflated", "ZeroInflatedEmission"),
    "skvbem.fitted.factor_analysis": ("FittedFactorAnalysis",),
    "skvbem.fitted.base": ("FittedRun",),
    "skvbem.fitted.hmm": ("FittedHMM",),
    "skvbem.reading.categories": ("CategoryEncoder",),
    "skvbem.reading.column_groups": ("ColumnGroups", "Group"),
    "skvbem.optima.hmm": ("HMMMethod",),
    "skvbem.optima.labels": ("FactorStarts", "LabelStarts", "MixtureMethod"),
    "skvbem.fitted.linear_dynamical_system": ("FittedLDS",),
    "skvbem.optima.linear_dynamical_system": ("LDSMethod",),
    "skvbem.fitted.structural": ("FittedStructural",),
    "skvbem.optima.structural": ("StructuralMethod",),
    "skvbem.structural": ("Autoregression", "Cycle", "Level", "Season", "Trend"),
    "skvbem.fitted.mixed_network": ("FittedMixedNetwork",),
    "skvbem.fitted.mixture": ("FittedMixture",),
    "skvbem.optima.network": ("MixedNetworkMethod", "MixedStarts", "NetworkMethod", "TableStarts"),
    "skvbem.fitted.network": ("FittedNetwork", "LabeledTables"),
    "skvbem.reading.base": ("Extent",),
    "skvbem.fitted.latent_states": ("LatentStates",),
    "skvbem.fitting.restarts": ("Restarts",),
    "skvbem.families.base": ("Product",),
    "skvbem.families.dirichlet": ("Dirichlet",),
    "skvbem.families.dirichlet_mixture": ("DirichletMixture",),
    "skvbem.families.gamma": ("Gamma",),
    "skvbem.families.hierarchical": ("Hierarchical",),
    "skvbem.families.hyperpriors": (
        "BlockHyperpriors",
        "GammaHyperprior",
        "SharedGammaHyperprior",
        "WishartHyperprior",
    ),
    "skvbem.families.normal_gamma": ("NormalGamma", "NormalPoint"),
    "skvbem.families.normal_wishart": ("NormalWishart",),
    "skvbem.families.one_dimensional.direction_concentration": (
        "DirectionConcentration",
        "DirectionConcentrationPoint",
    ),
    "skvbem.families.one_dimensional.shape_rate": ("ShapeRate", "ShapeRatePoint"),
    "skvbem.families.one_dimensional.size_probability": ("SizeProbability", "SizeProbabilityPoint"),
    "skvbem.families.regression": ("Regression",),
    "skvbem.families.regression_rows": ("RegressionPoint",),
    "skvbem.families.unit_noise": ("UnitNoise",),
    "skvbem.graphs.dag": ("DAG",),
    "skvbem.graphs.undirected": ("UndirectedGraph",),
    "skvbem.models.hmm.covariates": ("CovariateHMM", "SoftmaxTransitions"),
    "skvbem.models.hmm.model": ("HMM",),
    "skvbem.models.hmm.semi_markov": ("SemiMarkovHMM",),
    "skvbem.models.hmm.semi_markov_rows": ("SemiMarkovRows",),
    "skvbem.models.hmm.transitions": ("Transitions",),
    "skvbem.models.linear_dynamical_system.first_states": ("FirstStates",),
    "skvbem.models.linear_dynamical_system.model": ("LinearDynamicalSystem",),
    "skvbem.models.linear_dynamical_system.starts": ("LDSStarts",),
    "skvbem.models.mixed_network.model": ("MixedNetwork",),
    "skvbem.models.structural.model": ("StructuralModel",),
    "skvbem.models.structural.starts": ("StructuralStarts",),
    "skvbem.models.mixture.model": ("Mixture",),
    "skvbem.models.mixture.weights": ("FiniteWeights", "RowWeights", "StickBreaking"),
    "skvbem.models.network.clusters": ("Partition",),
    "skvbem.models.network.layout": ("Layout",),
    "skvbem.models.network.model": ("DiscreteDAG",),
    "skvbem.tables": ("LabeledTable",),
    "skvbem.optima.plan": ("FitPlan", "PriorStart"),
    "skvbem.vbem.fit": ("Fit", "Move"),
    "skvbem.vbem.posteriors": ("Form",),
}
#: Name in files -> module and name of the class.
CLASSES = {
    **{name: (module, name) for name, module in FITS.items()},
    **{name: (module, name) for module, names in _IN_MODULES.items() for name in names},
    "GammaSpecification": ("skvbem.emissions.gamma", "Gamma"),
    "RegressionSpecification": ("skvbem.emissions.regression", "Regression"),
    "StructuralDesign": ("skvbem.models.structural.design", "Design"),
}
#: Functions that a fit may name.
FUNCTIONS = {
    "seeded_starts": "skvbem.models.hmm.starts",
    "starts_of": "skvbem.models.mixture.starts",
}
#: Of a class that says itself by which arguments it is made again.
ARGUMENTS = ("arguments",)


#: Parameters of estimators that older files lack: they have their default there.
LATER = frozenset({"at", "blocks", "covariates", "durations", "membership", "search_effort", "start", "transitions"})
LATER |= {"state_scale_prior"}


@dataclass(frozen=True)
class SavedClass:
    """A class whose objects are saved, and what they are made of.

    Parameters
    ----------
    name : str
        In files.
    type : type
    parts : tuple of str
        What an object is made of; of an estimator, its parameters.
    optional : frozenset of str
        Parts that a file may lack, since they have a default.
    is_made_by_call : bool
        Whether the class, called with its parts, makes the object; else they are its attributes.
    is_estimator : bool
        Whether attributes that end with an underscore belong to it, too.
    types : mapping
        Annotations of parts, as far as there are any.
    check : callable
        Refuses an object whose parts mean nothing together; it may return one to take in its place.
    """

    name: str
    type: Any
    parts: tuple[str, ...]
    optional: frozenset[str]
    is_made_by_call: bool
    is_estimator: bool
    types: Mapping[str, Any]
    check: Callable[[Any], Any]

    def parts_of(self, value: Any) -> dict[str, Any]:
        """What an object is made of, by name."""
        if self.parts == ARGUMENTS:
            return {"arguments": value.__reduce__()[1]}
        return {name: getattr(value, name) for name in self.parts if name not in self.optional or hasattr(value, name)}


def saved_class(value: Any) -> SavedClass | None:
    """How an object of this package is saved, None if it is not."""
    name = _names().get((type(value).__module__, type(value).__qualname__))
    return None if name is None else class_called(name)


def function_name(value: Any) -> str | None:
    """The name in files of a function that fits may name, None of any other."""
    name = getattr(value, "__name__", None)
    return name if name in FUNCTIONS and value is function_called(name) else None


@cache
def function_called(name: str) -> Any:
    """The function of a name in files."""
    return getattr(import_module(FUNCTIONS[name]), name)


@cache
def class_called(name: str) -> SavedClass:
    """The class of a name in files.

    Raises
    ------
    KeyError
        If files know no such name.
    """
    module, of_module = CLASSES[name]
    cls: Any = getattr(import_module(module), of_module)
    check, types = SOUND[name], _annotations(cls)
    if is_dataclass(cls):
        given = [field for field in fields(cls) if field.init]
        lacks = [f.name for f in given if f.default is not MISSING or f.default_factory is not MISSING]
        return SavedClass(name, cls, tuple(f.name for f in given), frozenset(lacks), True, False, types, check)
    if hasattr(cls, "get_params"):
        parts = tuple(sorted(cls().get_params(deep=False)))
        return SavedClass(name, cls, parts, LATER.intersection(parts), name not in FITS, name in FITS, {}, check)
    if hasattr(cls, "_fields"):
        return SavedClass(name, cls, cls._fields, frozenset(), True, False, types, check)
    if "__reduce__" in vars(cls):
        return SavedClass(name, cls, ARGUMENTS, frozenset(), True, False, {}, check)
    learned = frozenset(part for part in types if part.endswith("_"))
    return SavedClass(name, cls, tuple(types), learned, False, False, types, check)


def _annotations(cls: Any) -> dict[str, Any]:
    """Types of the attributes that a class declares, those of its bases first."""
    return {name: hint for name, hint in get_type_hints(cls).items() if get_origin(hint) is not ClassVar}


@cache
def _names() -> dict[tuple[str, str], str]:
    return {where: name for name, where in CLASSES.items()}
