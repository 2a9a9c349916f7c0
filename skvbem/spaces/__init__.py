"""Spaces: what a search may try.

A space holds settings, mappings of an estimator's parameters to values, such as ``{"n_components": 4}`` or
``{"structure": dag, "latents": {"h": 2}}``. It enumerates them lazily, each model once and in the same order every
time, knows how many there are, whether one is among them, and which are near one. Products and unions of spaces are
spaces.
"""

from skvbem.spaces.base import Space
from skvbem.spaces.bipartite import BipartiteSpace
from skvbem.spaces.cardinalities import CardinalityGrid, LatentClassSpace
from skvbem.spaces.chordal import ChordalSpace
from skvbem.spaces.combinations import ListSpace, ProductSpace, UnionSpace
from skvbem.spaces.covariates import CovariateSpace
from skvbem.spaces.dags import DAGSpace
from skvbem.spaces.grids import GridSpace, coerce_space
from skvbem.spaces.settings import canonical

__all__ = [
    "BipartiteSpace",
    "CardinalityGrid",
    "ChordalSpace",
    "CovariateSpace",
    "DAGSpace",
    "GridSpace",
    "LatentClassSpace",
    "ListSpace",
    "ProductSpace",
    "Space",
    "UnionSpace",
    "canonical",
    "coerce_space",
]
