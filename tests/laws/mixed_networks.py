"""Networks of mixed columns: what laws are tried on, and evidences by the sum over all completions of rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
from laws.labels import NO_MAXIMUM, NO_MODE, labeled_rows
from scipy.special import gammaln, logsumexp

from skvbem.graphs.dag import DAG
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.model import MixedNetwork, MixedNetworkAscent
from skvbem.testing import ModelCase, ModelInstance, Relabeling
from skvbem.testing.emission_examples import n_rows, rows_of, seen

#: Parents of hidden nodes h and g, of a category c, and of the nodes a and b, which have emissions.
STRUCTURES = (
    {"h": (), "c": (), "a": ("h", "c"), "b": ("h",)},
    {"h": (), "g": ("h",), "c": ("h",), "a": ("g",), "b": ("c",)},
    {"h": (), "c": ("h",), "a": ("h",), "b": ("h",)},
    {"h": (), "g": (), "c": ("h", "g"), "a": ("g",), "b": ("h", "g")},
)
_SIZES = {"h": 2, "g": 2, "c": 3}


@dataclass(frozen=True, eq=False)
class MixedNetworkInstance(ModelInstance):
    """A network over codes of c (n_rows,), negative where missing, and labeled rows of a and b; rows are the units."""

    parents: dict
    prior: dict
    codes: np.ndarray
    rows: dict

    ascent = MixedNetworkAscent

    @property
    def hidden(self):
        return tuple(node for node in self.parents if node in "hg")

    @cached_property
    def dag(self):
        return DAG(self.parents, self.parents)

    @cached_property
    def model(self):
        emissions = {node: rows.emission for node, rows in self.rows.items()}
        priors = {node: rows.prior(self._n_states(node)) for node, rows in self.rows.items()}
        sizes = {node: _SIZES[node] for node in self.parents if node not in emissions}
        return MixedNetwork(self.dag, sizes, self.prior, emissions, priors)

    def _n_states(self, node):
        return int(np.prod([_SIZES[p] for p in self.parents[node]], dtype=int))

    @property
    def unit_sizes(self):
        return np.ones(len(self.codes), dtype=int)

    def compile(self, units=None, weight=None):
        units = np.arange(len(self.codes)) if units is None else np.asarray(units)
        values = {node: rows_of(rows.values, units) for node, rows in self.rows.items()}
        return self.model.compile(
            MixedRows(
                ("c",),
                self.codes[units][:, None],
                tuple(rows.emission.prepare(values[node]) for node, rows in self.rows.items()),
                tuple(seen(values[node]) for node in self.rows),
                np.ones(len(units)) if weight is None else np.asarray(weight, dtype=float),
            )
        )

    def log_evidence(self, units=None):
        """Dirichlet-multinomial probabilities of tables and evidences of groups of rows, over all completions."""
        units = np.arange(len(self.codes)) if units is None else np.asarray(units)
        tables = [node for node in self.parents if node not in self.rows]
        choices = []
        for unit in units:
            of_nodes = [[self.codes[unit]] if node == "c" and self.codes[unit] >= 0 else range(_SIZES[node])
                        for node in tables]  # fmt: skip
            choices.append(list(product(*of_nodes)))
        terms = []
        for completion in product(*choices):
            states = dict(zip(tables, np.array(completion).reshape(-1, len(tables)).T))
            terms.append(sum(self._of_node(node, states, units) for node in self.parents))
        return float(logsumexp(terms))

    def _of_node(self, node, states, units):
        joint = np.zeros(len(units), dtype=int)
        for p in self.dag.parents(node):
            joint = joint * _SIZES[p] + states[p]
        if node in self.rows:
            rows = self.rows[node]
            kept = rows.seen[units]
            return rows.log_evidence([units[kept & (joint == k)] for k in range(self._n_states(node))])
        prior = self.prior[node].reshape(-1, _SIZES[node])
        total = 0.0
        for k, concentration in enumerate(prior):
            counts = np.bincount(states[node][joint == k], minlength=_SIZES[node])
            total += (gammaln(concentration + counts) - gammaln(concentration)).sum()
            total += gammaln(concentration.sum()) - gammaln(concentration.sum() + counts.sum())
        return total

    def random_starts(self, data, rng, n_starts):
        """Statistics where random numbers stand for what emissions say of rows."""
        model = self.model
        natural = np.log(np.stack([model.prior.blocks[0].sample(rng) for _ in range(n_starts)], axis=1).clip(1e-6))

        def factors(factor, rows):
            return 3 * rng.normal(size=(n_starts, factor.n_states, rows.stop - rows.start))

        return model.statistics_of(natural, data, factors)

    def relabeling(self, rng):
        """States of h in another order."""
        return relabeled_states(self.model, "h", _SIZES["h"], rng)


def relabeled_states(model, name, n_states, rng):
    """States of a hidden node in another order, tables and emissions with a component for each of its states alone."""
    layout, node = model.layout, model.position[name]
    order = rng.permutation(n_states)
    by_component = model.by_component

    def moved(order, x):
        flat = x[by_component].copy()
        for k, parents in enumerate(layout.parents):
            if node in (k, *parents):
                table = layout.table(flat, k)
                axis = (*parents, k).index(node)
                table[...] = np.take(table, order, axis=axis)
        result = np.empty_like(x)
        result[by_component] = flat
        return result

    return Relabeling(lambda x: moved(order, x), lambda x: moved(np.argsort(order), x), order)


class MixedNetworkCase(ModelCase):
    """Random networks over a category and two nodes with emissions of two kinds."""

    n_complete = 8
    n_sampled = 2
    n_enumerated = 2
    n_rising = 2
    limits: ClassVar = {"tol": 1e-6, "max_iter": 120}

    def __init__(self, name, *emissions):
        self.name, self.emissions = f"mixed network of {name}", emissions
        self.lacks = {
            "map_probability": NO_MODE,
            "finite_cells": "cells of emissions are measurements or counts",
            "row_posteriors": "several nodes may be hidden in a row",
            "one_by_one": "rows may share contexts, whose weights count them",
            "marginals": "collapsed bounds draw all statistics",
        }
        if set(emissions) & {"full", "diag", "spherical"}:
            self.lacks["maximum_likelihood"] = NO_MAXIMUM

    def _drawn(self, rng, n, k, *, gaps=0.3, conjugate=True, structure=None, alike=False):
        parents = STRUCTURES[k % len(STRUCTURES)] if structure is None else structure
        parents = {node: tuple(sorted(of, key=list(parents).index)) for node, of in parents.items()}
        prior = {
            node: np.ones([_SIZES[m] for m in (*of, node)]) if alike
            else rng.uniform(0.4, 2.5, size=[_SIZES[m] for m in (*of, node)])
            for node, of in parents.items() if node in _SIZES
        }  # fmt: skip
        codes = rng.integers(0, _SIZES["c"], size=n)
        codes[rng.random(n) < gaps / 2] = -1
        rows = {
            node: labeled_rows(name, rng, n, 2 * (k % 2) + (gaps > 0), gaps, conjugate)
            for node, name in zip("ab", self.emissions)
        }
        assert all(n_rows(each.values) == n for each in rows.values())
        return MixedNetworkInstance(parents, prior, codes, rows)

    def complete(self, rng, k):
        """Every parent observed."""
        structure = {"c": (), "a": ("c",), "b": ("c",)} if k % 2 else {"c": (), "a": (), "b": ("c",)}
        return self._drawn(rng, int(rng.integers(1, 9)), k, gaps=0.0, structure=structure)

    def regular(self, rng):
        return self._drawn(rng, 60, 0, gaps=0.0, structure={"c": (), "a": (), "b": ("c",)})

    def tiny(self, rng, k):
        """Three or four rows, missing cells in every other instance."""
        return self._drawn(rng, int(rng.integers(3, 5)), k, gaps=0.4 * (k // len(STRUCTURES) % 2))

    def sampleable(self, rng, k):
        """Four rows."""
        return self._drawn(rng, 4, 2 * k, gaps=0.3)

    def dozens(self, rng, k, form="vb"):
        return self._drawn(rng, int(rng.integers(8, 60)), k, conjugate=False)

    def alike(self, rng, k):
        return self._drawn(rng, 12, 2, gaps=0.0, alike=True)

    def pair(self, rng):
        return self._drawn(rng, 6, 2, gaps=0.0, alike=True)

    def long(self, rng):
        return self._drawn(rng, 30, 0, conjugate=False)

    def many(self, rng, k):
        return replace(self._drawn(rng, 3000, k))
