"""Networks some of whose numbers no row observes: what laws are tried on, and evidences by quadrature."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
from laws.labels import NO_MAXIMUM, NO_MODE
from laws.mixed_networks import relabeled_states
from scipy.special import gammaln, logsumexp

from skvbem.emissions.hidden_number import HiddenNumberEmission
from skvbem.emissions.regression import RegressionEmission
from skvbem.families import Regression
from skvbem.families.unit_noise import UnitNoise
from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.model import MixedNetwork, MixedNetworkAscent
from skvbem.testing import ModelCase, ModelInstance


def of_column(n_given, hidden=False, intercept=True):
    """A column in units of one, from 0."""
    zeros, ones = np.zeros(n_given), np.ones(n_given)
    kind = HiddenNumberEmission if hidden else RegressionEmission
    return kind(np.zeros(1), np.ones(1), zeros, ones, zeros, 0, intercept)


def known_prior(emission, n_states, shape, rate, precision=1.0):
    """Coefficients about 0, in units of the noise; of hidden numbers the noise is known."""
    d, one = emission.n_regressors, np.arange(n_states)
    if emission.is_hidden:
        return UnitNoise.from_precision(np.full(d, precision), n_states)
    matrices = np.tile(precision * np.eye(d), (n_states, 1, 1))
    gamma = np.full(n_states, shape), np.full(n_states, rate)
    return Regression.from_parameters(np.zeros((n_states, d)), matrices, *gamma, one, one, n_components=n_states)


def network(parents, hidden, sizes=None, shape=1.0, rate=0.5, intercept=True, has_constant=False):
    """A network of numbers, some of which are hidden, below categories of some sizes."""
    sizes = sizes or {}
    emissions, priors = {}, {}
    for node in parents:
        if node in sizes:
            continue
        above = [sizes[p] for p in parents[node] if p in sizes]
        with_constant = has_constant or bool(above) if node in hidden else intercept
        emission = of_column(len(parents[node]) - len(above), node in hidden, with_constant)
        emissions[node] = emission
        priors[node] = known_prior(emission, int(np.prod(above, dtype=int)), shape, rate)
    tables = {node: np.ones((*(sizes[p] for p in parents[node]), sizes[node])) for node in sizes}
    return MixedNetwork(DAG(parents, parents), sizes, tables, emissions, priors)


def compiled(model, values, codes=None, weight=None):
    """Rows of numbers by node, hidden ones left out, and of categories by node."""
    nodes = model.layout.names[model.layout.n_tables :]
    n = len(next(iter(values.values())))
    values = {node: np.asarray(values.get(node, np.full(n, np.nan)), dtype=float) for node in nodes}
    tables = [
        emission.prepare(np.stack([values[node], *(values[nodes[p]] for p in model.given[k])], axis=1))
        for k, (node, emission) in enumerate(zip(nodes, model.emissions))
    ]
    codes = codes or {}
    of_names = np.stack([*codes.values()], axis=1) if codes else np.zeros((n, 0), dtype=np.int8)
    seen = tuple(~np.isnan(values[node]) for node in nodes)
    weight = np.ones(n) if weight is None else weight
    return model.compile(MixedRows(tuple(codes), of_names, tuple(tables), seen, weight))


# Nodes of integrals over a slope in units of the noise: l = sinh(t), whose prior is normal.
_SLOPES = np.sinh(np.linspace(-3.2, 3.2, 801))


def log_evidence(parents, sizes, rows, shape, rate):
    """Enumeration of hidden classes, quadrature over the slope of y on its hidden parent f, all else in closed form.

    Given the slope in units of the noise, all coefficients are normal in these units, so that y is Student's t; f has
    only the child y. Other numbers are observed.
    """
    n, terms = len(rows["y"]), []
    of_classes = [node for node in sizes if node not in rows]
    for states in product(*(range(sizes[node]) for node in of_classes for _ in range(n))):
        codes = {node: np.array(states[i * n : (i + 1) * n]) for i, node in enumerate(of_classes)}
        codes |= {node: rows[node] for node in sizes if node in rows}
        total = 0.0
        for node in parents:
            joint = np.zeros(n, dtype=int)
            for p in (p for p in parents[node] if p in sizes):
                joint = joint * sizes[p] + codes[p]
            if node in sizes:
                for s in np.unique(joint):
                    counts = np.bincount(codes[node][joint == s], minlength=sizes[node])
                    total += gammaln(sizes[node]) - gammaln(sizes[node] + counts.sum()) + gammaln(1 + counts).sum()
            elif node == "y":
                total += _of_y(parents, sizes, codes, rows, joint, shape, rate)
            elif node != "f":
                given = np.stack([np.ones(n), *(rows[p] for p in parents[node] if p not in sizes)], axis=1)
                for s in np.unique(joint):
                    here = joint == s
                    spread = np.eye(here.sum()) + given[here] @ given[here].T
                    total += float(_log_t(rows[node][here], spread[None], shape, rate)[0])
        terms.append(total)
    return float(logsumexp(terms))


def _of_y(parents, sizes, codes, rows, joint, shape, rate):
    """ln p(y) with f integrated out, one slope for each state of the parents of y with a table."""
    n = len(joint)
    of_f = np.zeros(n, dtype=int)
    for p in (p for p in parents["f"] if p in sizes):
        of_f = of_f * sizes[p] + codes[p]
    constant = [np.ones(n)] if any(p in sizes for p in parents["f"]) else []
    above = np.stack([*constant, *(rows[p] for p in parents["f"] if p not in sizes)], axis=1) if (
        constant or parents["f"]
    ) else np.zeros((n, 0))  # fmt: skip
    spread_of_f = np.eye(n) + (of_f[:, None] == of_f) * (above @ above.T)
    given = np.stack([np.ones(n), *(rows[p] for p in parents["y"] if p not in sizes and p != "f")], axis=1)
    total, log_prior = 0.0, -0.5 * _SLOPES**2 - 0.5 * np.log(2 * np.pi)
    measure = np.log(np.cosh(np.arcsinh(_SLOPES)) * (np.arcsinh(_SLOPES)[1] - np.arcsinh(_SLOPES)[0]))
    states = np.unique(joint)
    assert len(states) == 1 or np.allclose(spread_of_f, np.diag(np.diag(spread_of_f))), "blocks depend on each other"
    for s in states:
        here = joint == s
        spread = np.eye(here.sum()) + given[here] @ given[here].T + (
            _SLOPES[:, None, None] ** 2 * spread_of_f[np.ix_(here, here)])  # fmt: skip
        total += logsumexp(_log_t(rows["y"][here], spread, shape, rate) + log_prior + measure)
    return total


def _log_t(y, spread, shape, rate):
    """ln of the integral of N(y | 0, spread / rho) over rho ~ Gamma(shape, rate), for several spreads."""
    root = np.linalg.cholesky(spread)
    white = np.linalg.solve(root, np.broadcast_to(y[:, None], (len(spread), len(y), 1)))[..., 0]
    logs = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    after = shape + len(y) / 2
    gammas = gammaln(after) - gammaln(shape) + shape * np.log(rate) - len(y) / 2 * np.log(2 * np.pi)
    return gammas - logs - after * np.log(rate + 0.5 * (white**2).sum(axis=1))


#: Parents of a hidden class h, of a hidden number f and of the columns x, y.
STRUCTURES = (
    {"h": (), "f": (), "x": ("h",), "y": ("f", "h")},
    {"h": (), "x": ("h",), "f": ("h",), "y": ("f",)},
    {"h": (), "x": ("h",), "f": ("x",), "y": ("f", "x")},
)
_STATES, _SHAPE, _RATE = 2, 1.5, 0.75


@dataclass(frozen=True, eq=False)
class LatentNumberInstance(ModelInstance):
    """A network of a hidden class, a hidden number and two columns (n_rows, 2); rows are the units."""

    parents: dict
    numbers: np.ndarray

    ascent = MixedNetworkAscent
    hidden = ("h",)

    @cached_property
    def model(self):
        return network(self.parents, "f", {"h": _STATES}, _SHAPE, _RATE)

    @property
    def unit_sizes(self):
        return np.ones(len(self.numbers), dtype=int)

    def compile(self, units=None, weight=None):
        rows = self.numbers if units is None else self.numbers[np.asarray(units)]
        weight = None if weight is None else np.asarray(weight, dtype=float)
        return compiled(self.model, dict(zip("xy", rows.T)), weight=weight)

    def log_evidence(self, units=None):
        """Classes one by one, the slope of y on f by quadrature, all else in closed form."""
        rows = self.numbers if units is None else self.numbers[np.asarray(units)]
        return log_evidence(self.parents, {"h": _STATES}, dict(zip("xy", rows.T)), _SHAPE, _RATE)

    def relabeling(self, rng):
        """States of h in another order."""
        return relabeled_states(self.model, "h", _STATES, rng)


class LatentNumberCase(ModelCase):
    """Random networks of a hidden class and a hidden number above two columns."""

    name = "network of latent numbers"
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

    def _drawn(self, rng, n, k):
        return LatentNumberInstance(STRUCTURES[k % 3], rng.normal(size=(n, 2)))

    def tiny(self, rng, k):
        """Three or four rows."""
        return self._drawn(rng, 3 + k % 2, k)

    def sampleable(self, rng, k):
        return self._drawn(rng, 4, k)

    def dozens(self, rng, k, form="vb"):
        return self._drawn(rng, int(rng.integers(8, 60)), k)

    def alike(self, rng, k):
        return self._drawn(rng, 12, k)

    def pair(self, rng):
        return self._drawn(rng, 6, 0)

    def many(self, rng, k):
        return self._drawn(rng, 3000, k)
