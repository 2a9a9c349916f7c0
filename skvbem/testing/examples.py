"""Tiny models of the registry on two binary columns: what scores are held to, and patterns for cases of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skvbem.data import Rows
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.graphs.dag import DAG
from skvbem.models import DirichletAscent, DiscreteDAG
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.transitions import Transitions
from skvbem.models.mixture.model import Mixture, MixtureAscent
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.testing.cases import ModelCase, ModelInstance, Relabeling

_SIZES = (2, 3)


def _network(rng):
    """A hidden class over the columns; in the prior its states are alike."""
    dag = DAG.naive_bayes("state", ["y0", "y1"])
    sizes = dict(zip(dag.nodes, (2, *_SIZES)))
    strength = rng.uniform(0.5, 2.0)
    prior = {node: np.full([sizes[member] for member in dag.family(node)], strength) for node in dag.nodes}
    return DiscreteDAG(dag, sizes, prior)


def _mixture(rng):
    emission = CategoricalEmission(_SIZES)
    return Mixture(emission, FiniteWeights(np.full(2, rng.uniform(0.5, 2.0))), emission.default_prior(2))


def _hmm(rng):
    emission, strength = CategoricalEmission(_SIZES), rng.uniform(0.5, 2.0)
    first, next_ = Transitions(np.full((1, 2), 0.8)), Transitions.sticky(2, strength, 0.5)
    return HMM(emission, first, next_, emission.default_prior(2))


@dataclass(frozen=True, eq=False)
class TinyInstance(ModelInstance):
    """A model of two binary columns, of one row a unit or of sequences of two rows."""

    model: Any
    ascent: Any
    codes: np.ndarray
    rows_per_unit: int = 1

    hidden = ("state",)

    @property
    def unit_sizes(self) -> np.ndarray:
        """Rows of each unit."""
        return np.full(len(self.codes) // self.rows_per_unit, self.rows_per_unit)

    def compile(self, units=None, weight=None):
        """Data of units, as the model takes them."""
        unit_codes = self.codes.reshape(-1, self.rows_per_unit, len(_SIZES))
        unit_codes = unit_codes if units is None else unit_codes[np.asarray(units)]
        codes = unit_codes.reshape(-1, len(_SIZES))
        if isinstance(self.model, DiscreteDAG):
            return self.model.compile(_weighted_rows(codes, weight))
        table = self.model.emission.prepare(codes)
        if isinstance(self.model, HMM):
            return self.model.compile(table, np.full(len(unit_codes), self.rows_per_unit), weight)
        return self.model.compile(table, weight)

    def relabeling(self, rng):
        """Both states change places."""
        cells = self.capabilities.relabelings.listed_relabelings(self.hidden, 2)[1]
        return Relabeling(lambda x: x[cells], lambda x: x[np.argsort(cells)], np.array([1, 0]))


def _weighted_rows(codes, weight):
    kept = slice(None) if weight is None else np.asarray(weight) > 0  # networks take no row of weight 0
    return Rows(("y0", "y1"), codes[kept].astype(np.int8), None if weight is None else np.asarray(weight)[kept])


class TinyCase(ModelCase):
    """One of the models of the registry, on random rows."""

    n_sampled = n_ordered = 2
    lacks: ClassVar = {"map_probability": "some state may have too little data for its prior"}

    def __init__(self, name: str, model: Callable, ascent: Any, rows_per_unit: int = 1):
        self.name, self._model, self._ascent, self._rows_per_unit = name, model, ascent, rows_per_unit

    def _rows(self, rng, n):
        codes = rng.integers(0, _SIZES, size=(n, len(_SIZES)))
        codes[1:][rng.random((n - 1, len(_SIZES))) < 0.1] = -1
        return TinyInstance(self._model(rng), self._ascent, codes, self._rows_per_unit)

    def tiny(self, rng, k):
        """Six rows."""
        return self._rows(rng, 6)

    def alike(self, rng, k):
        """Rows of two kinds, one the larger, so that a fit tells the states apart."""
        kinds = np.repeat(rng.permutation(2), [12, 8])
        codes = np.stack([kinds * (size - 1) for size in _SIZES], axis=1)
        return TinyInstance(self._model(rng), self._ascent, codes, self._rows_per_unit)

    def dozens(self, rng, k, form="vb"):
        """Forty rows."""
        return self._rows(rng, 40)


#: Cases by name of the model.
EXAMPLES = {
    case.name: case
    for case in (
        TinyCase("network", _network, DirichletAscent),
        TinyCase("mixture", _mixture, MixtureAscent),
        TinyCase("hmm", _hmm, HMMAscent, rows_per_unit=2),
    )
}
