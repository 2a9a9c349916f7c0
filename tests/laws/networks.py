"""Networks with hidden nodes anywhere: what laws are tried on, and evidences by the sum over all completions."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from bridge import FastNetwork
from laws.problems import enumerable, larger
from reference import facts
from reference.discrete_network import (
    MISSING,
    Data,
    Problem,
    every_completion,
    exact_log_evidence,
    expected_counts,
    uniform_prior,
)
from reference.random_networks import random_data, random_network, random_tables

from skvbem.models import DirichletAscent
from skvbem.testing import ModelCase, ModelInstance, Relabeling


@dataclass(frozen=True, eq=False)
class NetworkInstance(ModelInstance):
    """A network over a problem of `reference`; its rows, without their weights, are the units."""

    problem: Problem

    ascent = DirichletAscent

    @cached_property
    def fast(self):
        return FastNetwork(self.problem.network, self.problem.prior)

    @property
    def model(self):
        return self.fast.model

    @property
    def hidden(self):
        network, data, _ = self.problem
        return tuple(node for node in network.cards if node not in data.columns)

    @property
    def unit_sizes(self):
        return np.ones(len(self.problem.data.cells), dtype=int)

    def _data(self, units, weight=None):
        data = self.problem.data
        return Data(data.columns, data.cells if units is None else np.asarray(data.cells)[units], weight)

    def compile(self, units=None, weight=None):
        return self.fast.program(self._data(units, weight))

    def log_evidence(self, units=None):
        return exact_log_evidence(*self.problem._replace(data=self._data(units)))

    def random_starts(self, data, rng, n_starts):
        points = self.fast.lanes(*(random_tables(rng, self.problem.network) for _ in range(n_starts)))
        return self.model.expect(np.log(points), data).statistics

    def relabeling(self, rng):
        """States of a hidden node in another order."""
        network, node = self.problem.network, self.hidden[0]
        order = rng.permutation(network.cards[node])

        def moved(order, flat):
            lanes = [self._moved(node, order, lane) for lane in flat.reshape(len(flat), -1).T]
            return np.stack(lanes, axis=1).reshape(flat.shape)

        return Relabeling(lambda x: moved(order, x), lambda x: moved(np.argsort(order), x), order)

    def _moved(self, node, order, flat):
        network = self.problem.network
        tables = {}
        for other, table in self.fast.tables(flat).items():
            axes = (*network.parents[other], other)
            tables[other] = np.take(table, order, axes.index(node)) if node in axes else table
        return self.fast.flat(tables)

    def filled(self, rng):
        data = self.problem.data
        observed = np.argwhere(np.asarray(data.cells) != MISSING)
        row, column = observed[rng.integers(len(observed))]

        def having(code):
            cells = np.array(data.cells)
            cells[row, column] = code
            return NetworkInstance(self.problem._replace(data=replace(data, cells=cells)))

        return having(MISSING), [having(code) for code in range(self.problem.network.cards[data.columns[column]])]


def whole(problem):
    """The problem without the weights of its rows, and without rows of weight 0."""
    data = problem.data
    kept = slice(None) if data.weights is None else np.asarray(data.weights) > 0
    return problem._replace(data=Data(data.columns, np.asarray(data.cells)[kept]))


class NetworkCase(ModelCase):
    """Random networks."""

    name = "network"
    lacks: ClassVar = {
        "one_by_one": "rows with the same values share a context, whose weight counts them",
        "row_posteriors": "several nodes may be hidden in a row; `models.network.queries` answers by node",
    }
    n_tiny = 25
    n_rising = 12
    n_rising_starts = 4
    n_fixed = 25
    n_relabeled = 12
    n_plain_steps = 30

    @staticmethod
    def _number(rng):
        return int(rng.integers(2**31))

    def complete(self, rng, k):
        """Every node observed in every row."""
        return NetworkInstance(whole(enumerable(self._number(rng), max_hidden=0, missing_rate=0.0)))

    def regular(self, rng):
        while True:
            network, columns = random_network(rng, 2, 3, 0)
            problem = Problem(network, random_data(rng, network, columns, 60), uniform_prior(network))
            counts = expected_counts(network, every_completion(network, problem.data))
            if min(table.min() for table in counts.values()) > 0:
                return NetworkInstance(problem)

    def tiny(self, rng, k):
        return NetworkInstance(whole(enumerable(self._number(rng), 2**9, hidden=k % 4 > 0)))

    def sampleable(self, rng, k):
        return self.tiny(rng, 1)

    def dozens(self, rng, k, form="vb"):
        return NetworkInstance(larger(self._number(rng), least=form == "map_probability"))

    def alike(self, rng, k):
        problem = larger(self._number(rng), n_rows=12)
        return NetworkInstance(problem._replace(prior=uniform_prior(problem.network, 1.3)))

    def pair(self, rng):
        network = facts.latent_class(2, (2, 3, 2))
        data = random_data(rng, network, ("y0", "y1", "y2"), 6)
        return NetworkInstance(Problem(network, data, uniform_prior(network)))

    def long(self, rng):
        return NetworkInstance(whole(larger(self._number(rng))))

    def many(self, rng, k):
        network = facts.latent_class(4, (3,) * 12)
        data = Data(tuple(f"y{j}" for j in range(12)), rng.integers(0, 3, (30_000, 12)))
        return NetworkInstance(Problem(network, data, uniform_prior(network)))
