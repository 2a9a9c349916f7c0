"""Variational Bayesian EM with scikit-learn's interface, and evidence for models with hidden variables.

`VBDiscreteDAG` fits discrete Bayesian networks with hidden nodes to incomplete data. Every fit has a lower bound on the
log marginal likelihood with all its constants, in nats: bounds compare across structures and numbers of states.
"""

try:
    from skvbem._kernels import _contraction as _contraction
except ImportError as error:
    raise ImportError(
        "The compiled part of skvbem is missing or was built for another Python: this is a source checkout, or a "
        "broken installation. In the folder that holds pyproject.toml type:  python -m pip install .  and start "
        "Python elsewhere, or for development:  python -m pip install meson-python meson ninja Cython  and then  "
        "python -m pip install --no-build-isolation --editable ."
    ) from error

from typing import TYPE_CHECKING

from skvbem._lazy import names_on_demand

if TYPE_CHECKING:
    from skvbem._show_versions import show_versions
    from skvbem._version import __version__
    from skvbem.blocks import Blocks, blocks_of
    from skvbem.estimators import (
        VBHMM,
        Network,
        VBClassifier,
        VBDiscreteDAG,
        VBFactorAnalysis,
        VBImputer,
        VBLinearDynamicalSystem,
        VBMixture,
        VBNetwork,
        bootstrap_lrt,
        compare,
        distal,
        read_bif,
        read_network,
        three_step,
        two_step,
        write_bif,
        write_network,
    )
    from skvbem.graphs.dag import DAG
    from skvbem.graphs.dynamic import DynamicDAG
    from skvbem.graphs.undirected import UndirectedGraph
    from skvbem.persistence import load, save
    from skvbem.reading.time_axis import TimeAxis
    from skvbem.search import StructureSearchCV
    from skvbem.spaces import (
        BipartiteSpace,
        CardinalityGrid,
        ChordalSpace,
        CovariateSpace,
        DAGSpace,
        GridSpace,
        LatentClassSpace,
        ListSpace,
    )
    from skvbem.tables import LabeledTable

__all__ = [
    "BipartiteSpace",
    "Blocks",
    "CardinalityGrid",
    "ChordalSpace",
    "CovariateSpace",
    "DAG",
    "DAGSpace",
    "DynamicDAG",
    "GridSpace",
    "LabeledTable",
    "LatentClassSpace",
    "ListSpace",
    "Network",
    "StructureSearchCV",
    "TimeAxis",
    "UndirectedGraph",
    "VBClassifier",
    "VBDiscreteDAG",
    "VBFactorAnalysis",
    "VBHMM",
    "VBImputer",
    "VBLinearDynamicalSystem",
    "VBMixture",
    "VBNetwork",
    "__version__",
    "blocks_of",
    "bootstrap_lrt",
    "compare",
    "distal",
    "load",
    "read_bif",
    "read_network",
    "save",
    "show_versions",
    "three_step",
    "two_step",
    "write_bif",
    "write_network",
]

__getattr__, __dir__ = names_on_demand(
    __name__,
    {
        "skvbem._show_versions": ("show_versions",),
        "skvbem._version": ("__version__",),
        "skvbem.blocks": ("Blocks", "blocks_of"),
        "skvbem.estimators": (
            "Network",
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
            "read_bif",
            "read_network",
            "three_step",
            "two_step",
            "write_bif",
            "write_network",
        ),
        "skvbem.graphs.dag": ("DAG",),
        "skvbem.graphs.dynamic": ("DynamicDAG",),
        "skvbem.graphs.undirected": ("UndirectedGraph",),
        "skvbem.persistence": ("load", "save"),
        "skvbem.reading.time_axis": ("TimeAxis",),
        "skvbem.search": ("StructureSearchCV",),
        "skvbem.spaces": (
            "BipartiteSpace",
            "CardinalityGrid",
            "ChordalSpace",
            "CovariateSpace",
            "DAGSpace",
            "GridSpace",
            "LatentClassSpace",
            "ListSpace",
        ),
        "skvbem.tables": ("LabeledTable",),
    },
    subpackages=(
        "ascent",
        "blocks",
        "capabilities",
        "data",
        "datasets",
        "durations",
        "emissions",
        "errors",
        "estimators",
        "evidence",
        "families",
        "fitted",
        "fitting",
        "formats",
        "graphs",
        "models",
        "optima",
        "persistence",
        "plotting",
        "reading",
        "reports",
        "search",
        "spaces",
        "structural",
        "tables",
        "testing",
        "uncertainty",
        "vbem",
    ),
)
