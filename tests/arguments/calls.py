"""Calls that work, of every public method: what odd arguments are put in the place of."""

import warnings
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from skvbem import (
    DAG,
    VBHMM,
    BipartiteSpace,
    CardinalityGrid,
    ChordalSpace,
    CovariateSpace,
    DAGSpace,
    DynamicDAG,
    GridSpace,
    LatentClassSpace,
    ListSpace,
    StructureSearchCV,
    UndirectedGraph,
    VBClassifier,
    VBDiscreteDAG,
    VBFactorAnalysis,
    VBImputer,
    VBLinearDynamicalSystem,
    VBMixture,
    VBNetwork,
)
from skvbem.emissions import Softmax

N = 24
rng = np.random.default_rng(0)
NUMBERS = rng.normal(size=(N, 3)) + np.repeat([2.0, 0.0], N // 2)[:, None]
NUMBERS[3, 1] = np.nan
CODES = pd.DataFrame(rng.integers(0, 2, size=(N, 3)), columns=list("abc"))
MIXED = pd.DataFrame(
    {"a": rng.choice(["u", "v"], N), "b": rng.normal(size=N), "c": rng.poisson(3, N).astype(float)},
)
Y = np.array(["sick", "well"])[np.arange(N) % 2]
OPTIONS = {"random_state": 0, "n_init": 1, "max_iter": 30}
LENGTHS = {"lengths": np.array([N // 2, N // 2])}
INPUTS = {"inputs": np.cos(np.arange(N))[:, None], "output_inputs": rng.normal(size=(N, 1))}
WEIGHTS = {"sample_weight": np.ones(N)}
#: Parameters that are tables or columns of rows.
OF_ROWS = {
    "future_inputs",
    "future_output_inputs",
    "X",
    "sample_weight",
    "lengths",
    "sequence_id",
    "inputs",
    "output_inputs",
    "labels",
    "y",
}


@dataclass(frozen=True)
class Subject:
    """An object whose methods are called, and what they take by name."""

    make: Any
    arguments: dict = field(default_factory=dict)
    located_by: tuple = ()


def _fits(estimator, X, y=None, **where):
    ahead = {f"future_{name}": np.ones((1, 1)) for name in where if name.endswith("inputs")}
    fit = partial(estimator.fit, X, **where) if y is None else partial(estimator.fit, X, y)
    return Subject(fit, {"X": X, "y": y, **ahead, **where}, (*where, "labels"))


def _network():
    return SUBJECTS["VBDiscreteDAG"].make().network_


def _space(space):
    setting = next(iter(space))
    return Subject(lambda: space, {"setting": setting, "dag": setting.get("structure")})


KINDS = {"poisson": ["c"], "categorical": ["a"], "gaussian": ["b"]}
COMPONENTS = GridSpace({"n_components": [1, 2]})
SPACES = (
    BipartiteSpace({"h": 2}, ["a", "b"]),
    DAGSpace(["a", "b"]),
    ChordalSpace(["a", "b"]),
    COMPONENTS,
    ListSpace(list(COMPONENTS)),
    LatentClassSpace([1, 2], ["a", "b"]),
    CardinalityGrid({"h": [1, 2]}, "[h][a|h]"),
    CovariateSpace(Softmax(["a", "b"])),
)
MIXED_EDGES = [("h", "a"), ("h", "b"), ("a", "c")]
SUBJECTS = {
    "VBMixture": _fits(VBMixture(2, **OPTIONS), NUMBERS),
    "VBMixture of a frame": _fits(VBMixture(2, emission=KINDS, **OPTIONS), MIXED),
    "VBMixture with covariates": _fits(VBMixture(2, membership=Softmax([2]), **OPTIONS), NUMBERS),
    "VBMixture by ml": _fits(VBMixture(2, method="ml", covariance_type="diag", **OPTIONS), NUMBERS),
    "VBHMM": _fits(VBHMM(2, **OPTIONS), NUMBERS, **LENGTHS),
    "VBDiscreteDAG": _fits(VBDiscreteDAG("[h][a|h][b|h][c|h]", latents={"h": 2}, **OPTIONS), CODES),
    "VBDiscreteDAG with covariates": _fits(VBDiscreteDAG(latents=2, covariates=[2], **OPTIONS), CODES),
    "VBNetwork": _fits(VBNetwork(MIXED_EDGES, latents={"h": 2}, emission=KINDS, **OPTIONS), MIXED),
    "VBFactorAnalysis": _fits(VBFactorAnalysis(1, **OPTIONS), NUMBERS),
    "VBLinearDynamicalSystem": _fits(VBLinearDynamicalSystem(1, n_draws=5, **OPTIONS), NUMBERS, **LENGTHS, **INPUTS),
    "VBClassifier": _fits(VBClassifier(random_state=0), MIXED[["a", "b"]], Y),
    "VBImputer": _fits(VBImputer(VBMixture(1, **OPTIONS)), NUMBERS),
    "StructureSearchCV": _fits(StructureSearchCV(VBMixture(**OPTIONS), COMPONENTS, scoring="lower_bound"), NUMBERS),
    "StructureSearchCV by evidence": _fits(StructureSearchCV(VBMixture(**OPTIONS), COMPONENTS), NUMBERS),
    "Network": Subject(_network, {"X": CODES, "evidence": {"b": 1}}),
    "DAG": Subject(lambda: DAG.from_string("[a][b|a][c|b]"), {"graph": DAG("[a][b|a]").to_networkx()}),
    "UndirectedGraph": Subject(lambda: UndirectedGraph(["a", "b", "c"], [("a", "b"), ("b", "c")])),
    "DynamicDAG": Subject(
        lambda: DynamicDAG("[h][a|h]", between=[("h", "h")], n_slices=2), {"nodes": ["a"], "n_states": {"h": 2}}
    ),
    "LabeledTable": Subject(lambda: SUBJECTS["VBDiscreteDAG"].make().query("a")),
    **{type(space).__name__: _space(space) for space in SPACES},
}
#: What methods take by name, where there is no default and no entry of the subject.
USUAL = {
    "X": NUMBERS,
    "targets": "a",
    "n_steps": 2,
    "n_samples": 3,
    "node": "a",
    "nodes": ["a", "b", "c"],
    "hidden": {"a": 2},
    "one": "a",
    "other": "c",
    "given": "b",
    "mapping": {"a": "z"},
    "structure": "[a][b|a]",
    "graph": UndirectedGraph(["a", "b"], [("a", "b")]).to_networkx(),
    "text": "[a][b|a]",
    "root": "h",
    "leaves": ["a", "b"],
    "edges": [("a", "b")],
    "matrix": DAG("[a][b|a]").to_adjacency(),
    "extra": ["d"],
    "cardinalities": {"a": 2, "b": 2, "c": 2},
    "n": 1,
    "share": 0.1,
    "covariance": np.eye(3),
    "forms": 3,
    "covariate": 2,
}
EVEN = np.array([0.5, 0.5])
POINT = {"means": np.zeros((2, 1)), "covariances": np.ones((2, 1, 1))}
#: What methods of a class take that take something else.
OF_METHODS = {
    ("VBMixture", "from_parameters"): {"weights": EVEN, "parameters": POINT, "emission": "gaussian"},
    ("VBHMM", "from_parameters"): {
        "startprob": EVEN, "transmat": np.full((2, 2), 0.5), "parameters": POINT, "emission": "gaussian",
    },
    ("VBLinearDynamicalSystem", "from_parameters"): {
        "transition": [[0.9]], "loadings": [[1.0], [2.0]], "noise_variance": [1.0, 2.0],
    },
    ("DAG", "adjustment_sets"): {"targets": "c", "do": "a"},
    ("DAG", "front_door_sets"): {"targets": "c", "do": "a"},
    ("VBFactorAnalysis", "inverse_transform"): {"X": np.ones((N, 1))},
    ("DAG", "from_chordal"): {"graph": [("a", "b")]},
    ("VBNetwork", "effect"): {"cause": "a", "outcome": "b"},
}  # fmt: skip
#: Options that make calls short.
SHORT = {
    "method": "linear_response",
    "fill": "draw",
    "n_draws": 4,
    "n_boot": 2,
    "n_chains": 2,
    "max_sweeps": 4,
    "draws": None,
}
#: Methods that are scikit-learn's own, or take no argument of ours.
SKIPPED = {"get_metadata_routing", "get_params", "set_callbacks", "set_output", "results", "map"}
# Calls that take what has attributes of its own, or rows of covariates; those that ask for a density; those of a
# posterior over candidates; those of covariates.
_FOREIGN = {("VBClassifier", "score"), ("Network", "from_networkx"), ("VBMixture with covariates", "sample")}
_FOREIGN |= {("VBDiscreteDAG with covariates", "sample"), ("VBDiscreteDAG with covariates", "query")}
# searches over mixtures have no edges
_FOREIGN |= {("StructureSearchCV", "effect"), ("StructureSearchCV by evidence", "effect")}
_FOREIGN |= {("VBNetwork", "fit_indices")}  # of networks of measurements alone
_OF_DENSITIES = {"summary", "sample_posterior", "credible_intervals"}
_OF_POSTERIORS = {"states_in_use"}
_OF_COVARIATES = {"odds_ratios", "class_probabilities"}


def applies(of, method):
    """True if a method of a subject answers."""
    is_point = of.endswith("by ml")
    return (
        (of, method) not in _FOREIGN
        and not (method in _OF_DENSITIES and is_point)
        and (method in _OF_POSTERIORS) <= of.endswith("by evidence")
        and (method in _OF_COVARIATES) <= of.endswith("with covariates")
        and not (method == "standard_errors" and not is_point)
    )


@cache
def fitted(name):
    """A subject, fitted; its warnings are not ours here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SUBJECTS[name].make()
