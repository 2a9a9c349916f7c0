"""Networks whose rows hide numbers with observed children: what laws are tried on, and evidences by quadrature."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
from laws.labels import NO_MAXIMUM, NO_MODE
from laws.mixed_networks import relabeled_states
from scipy.special import gammaln, logsumexp

from skvbem.emissions.regression import RegressionEmission
from skvbem.families import Regression
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.model import MixedNetwork, MixedNetworkAscent
from skvbem.testing import ModelCase, ModelInstance

#: Parents of a hidden class h and of the numbers x, y, z.
STRUCTURES = (
    {"h": (), "x": ("h",), "y": ("x",), "z": ("h", "y")},
    {"h": (), "x": (), "y": ("h", "x"), "z": ("x", "y")},
    {"h": (), "x": ("h",), "y": ("h",), "z": ("h", "x", "y")},
)
_STATES, _SHAPE, _RATE = 2, 1.5, 0.75
#: Nodes of the integral over y = sinh(t): tails are those of Student's t.
_T = np.linspace(-9, 9, 121)


@dataclass(frozen=True, eq=False)
class NumberNetworkInstance(ModelInstance):
    """A network over a hidden class and numbers (n_rows, 3), NaN where missing; rows are the units."""

    parents: dict
    concentration: np.ndarray
    precision: float
    numbers: np.ndarray

    ascent = MixedNetworkAscent
    hidden = ("h",)

    @cached_property
    def model(self):
        given = {node: [p for p in self.parents[node] if p != "h"] for node in "xyz"}
        emissions, priors = {}, {}
        for node, regressors in given.items():
            n, k = len(regressors), _STATES if "h" in self.parents[node] else 1
            emissions[node] = RegressionEmission(np.zeros(1), np.ones(1), np.zeros(n), np.ones(n), np.zeros(n))
            precision = np.tile(self.precision * np.eye(1 + n), (k, 1, 1))
            one = np.arange(k)
            priors[node] = Regression.from_parameters(
                np.zeros((k, 1 + n)), precision, np.full(k, _SHAPE), np.full(k, _RATE), one, one, n_components=k
            )
        dag = DAG(self.parents, self.parents)
        return MixedNetwork(dag, {"h": _STATES}, {"h": self.concentration}, emissions, priors)

    @property
    def unit_sizes(self):
        return np.ones(len(self.numbers), dtype=int)

    def compile(self, units=None, weight=None):
        units = np.arange(len(self.numbers)) if units is None else np.asarray(units)
        rows = self.numbers[units]
        tables = [
            emission.prepare(np.concatenate([rows[:, [k]], rows[:, list(self.model.given[k])]], axis=1))
            for k, emission in enumerate(self.model.emissions)
        ]
        weight = np.ones(len(units)) if weight is None else np.asarray(weight, dtype=float)
        codes = np.zeros((len(units), 0), dtype=np.int8)
        return self.model.compile(MixedRows((), codes, tuple(tables), tuple(~np.isnan(rows.T)), weight))

    def log_evidence(self, units=None):
        """Normal-Gamma evidences of complete rows, summed over classes and integrated over the one hidden number."""
        rows = self.numbers if units is None else self.numbers[np.asarray(units)]
        if len(at := np.argwhere(np.isnan(rows))) == 0:
            return self._of_complete(rows)
        ((i, j),) = at
        logs = []
        for value in np.sinh(_T):
            filled = rows.copy()
            filled[i, j] = value
            logs.append(self._of_complete(filled))
        return float(logsumexp(np.array(logs) + np.log(np.cosh(_T))) + np.log(_T[1] - _T[0]))

    def _of_complete(self, rows):
        terms = []
        for states in product(range(_STATES), repeat=len(rows)):
            states = np.array(states)
            counts, a = np.bincount(states, minlength=_STATES), self.concentration
            total = gammaln(a.sum()) - gammaln(a.sum() + len(rows)) + (gammaln(a + counts) - gammaln(a)).sum()
            for j, node in enumerate("xyz"):
                regressors = ["xyz".index(p) for p in self.parents[node] if p != "h"]
                design = np.concatenate([np.ones((len(rows), 1)), rows[:, regressors]], axis=1)
                for kept in [states == k for k in range(_STATES)] if "h" in self.parents[node] else [slice(None)]:
                    total += self._of_family(design[kept], rows[kept, j])
            terms.append(total)
        return float(logsumexp(terms))

    def _of_family(self, design, y):
        before = self.precision * np.eye(design.shape[1])
        after = before + design.T @ design
        mean = np.linalg.solve(after, design.T @ y)
        shape, rate = _SHAPE + len(y) / 2, _RATE + (y @ y - mean @ after @ mean) / 2
        dets = np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1]
        gammas = gammaln(shape) - gammaln(_SHAPE) + _SHAPE * np.log(_RATE) - shape * np.log(rate)
        return dets / 2 + gammas - len(y) / 2 * np.log(2 * np.pi)

    def relabeling(self, rng):
        """States of h in another order."""
        return relabeled_states(self.model, "h", _STATES, rng)


class NumberNetworkCase(ModelCase):
    """Random networks over a hidden class and three numbers, any of them missing."""

    name = "network of hidden numbers"
    n_tiny = 3
    n_sampled = n_rising = n_ordered = 2
    limits: ClassVar = {"tol": 1e-6, "max_iter": 120}
    lacks: ClassVar = {
        "map_probability": NO_MODE,
        "maximum_likelihood": NO_MAXIMUM,
        "finite_cells": "measurements are real numbers",
        "row_posteriors": "numbers are hidden besides the class",
        "one_by_one": "rows may share contexts, whose weights count them",
        "marginals": "collapsed bounds draw all statistics",
        "complete": "the class is always hidden",
        "regular": "the class is always hidden",
        "enumeration": "no sum over hidden numbers is finite",
    }

    def _drawn(self, rng, n, k, n_gaps, alike=False):
        numbers = rng.normal(size=(n, 3))
        if n_gaps is None:
            numbers[rng.random(numbers.shape) < 0.3] = np.nan
        else:
            numbers[rng.permutation(n)[:n_gaps], k % 2] = np.nan  # a number with children
        concentration = np.ones(_STATES) if alike else rng.uniform(0.4, 2.5, _STATES)
        return NumberNetworkInstance(STRUCTURES[k % 3], concentration, rng.uniform(0.3, 2.0), numbers)

    def tiny(self, rng, k):
        """Three or four rows, one of which hides a number."""
        return self._drawn(rng, 3 + k % 2, k, 1)

    def sampleable(self, rng, k):
        return self._drawn(rng, 4, k, 1)

    def dozens(self, rng, k, form="vb"):
        return self._drawn(rng, int(rng.integers(8, 60)), k, None)

    def alike(self, rng, k):
        return self._drawn(rng, 12, k, None, alike=True)

    def pair(self, rng):
        return self._drawn(rng, 6, 0, None, alike=True)

    def many(self, rng, k):
        return self._drawn(rng, 3000, k, None)
