"""Linear dynamical systems: what laws are tried on."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from skvbem.models.linear_dynamical_system.first_states import round_prior
from skvbem.models.linear_dynamical_system.model import LDSAscent, LinearDynamicalSystem
from skvbem.testing import ModelCase, ModelInstance, Relabeling


@dataclass(frozen=True, eq=False)
class LDSInstance(ModelInstance):
    """A system over sequences, which are the units."""

    y: np.ndarray
    u: np.ndarray
    v: np.ndarray
    lengths: np.ndarray
    model: LinearDynamicalSystem

    ascent = LDSAscent
    hidden = ("state",)

    @property
    def unit_sizes(self):
        return self.lengths

    @cached_property
    def _rows(self):
        return np.split(np.arange(len(self.y)), np.cumsum(self.lengths)[:-1])

    def compile(self, units=None, weight=None):
        units = np.arange(self.n_units) if units is None else np.asarray(units)
        rows = np.concatenate([self._rows[unit] for unit in units])
        return self.model.compile(self.y[rows], self.lengths[units], weight, self.u[rows], self.v[rows])

    def relabeling(self, rng):
        """All states change places in a circle, and the first its sign."""
        k = self.model.n_states
        order, sign = (*range(1, k), 0), (-1.0, *(1.0,) * (k - 1))
        change = self.capabilities.relabelings._changes

        def moved(by):
            def of(x):
                flat = x.reshape(len(x), -1)
                return by.changed(flat, np.zeros(flat.shape[1], dtype=int)).reshape(x.shape)

            return of

        undone = (k - 1, *range(k - 1))
        back = change([undone], [tuple(np.array(sign)[list(undone)])])
        there = change([order], [sign])
        return Relabeling(moved(there), moved(back), np.array(order))


class LDSCase(ModelCase):
    """Systems of one to three states, some with inputs, some with gaps, hidden rates or learned first states."""

    name = "linear dynamical system"
    n_sampled = n_rising_starts = 2
    n_plain_steps = 6
    limits: ClassVar = {"tol": 1e-4, "max_iter": 24}
    lacks: ClassVar = {
        "map_probability": "few data leave no mode in coefficients and precisions",
        "maximum_likelihood": "a noise at its floor lets plain steps stall for thousands of steps",
        "row_posteriors": "states have no finite labels",
        "finite_cells": "measurements are real numbers",
        "exact": "no sum over paths is finite, and the integral over parameters has no closed form",
        "log_evidence": "the integral over parameters has no closed form",
        "complete": "states are always hidden",
        "regular": "states are always hidden",
        "marginals": "states are no counts",
        "counted": "states have densities",
        "information": "two states turn, and no mode stands alone",
        "enumeration": "no sum over paths is finite",
    }

    def _instance(self, rng, lengths, gaps, k=None, alike=False, hidden=False, learned=False):
        k, p = int(rng.integers(1, 4)) if k is None else k, int(rng.integers(1, 4))
        q, r = (int(n) for n in rng.integers(0, 3, size=2))
        n = int(np.sum(lengths))
        y = rng.normal(size=(n, p))
        if gaps:
            y[rng.random(y.shape) < 0.25] = np.nan
        alpha, gamma = (rng.uniform(0.5, 2.0, size) for size in (k + q, k + r))
        if alike:
            alpha[:k], gamma[:k] = alpha[0], gamma[0]
        shape, rate = rng.uniform(1, 3, p), rng.uniform(0.5, 2, p)
        model = LinearDynamicalSystem.from_precisions(
            alpha, gamma, shape=shape, rate=None if hidden else rate, group=np.arange(p), n_states=k, rate_floor=1e-3,
            first=round_prior(k) if learned else None,
        )  # fmt: skip
        return LDSInstance(y, rng.normal(size=(n, q)), rng.normal(size=(n, r)), np.asarray(lengths), model)

    def tiny(self, rng, k):
        return self._instance(rng, [3, 2], k % 2 == 1, k=1 + k % 2)

    def dozens(self, rng, k, form="vb"):
        return self._instance(
            rng, rng.integers(4, 12, size=6), k % 2 == 1, k=2 - k % 2, hidden=k % 2 == 1, learned=k % 4 < 2
        )

    def alike(self, rng, k):
        return self._instance(rng, [5, 4], k % 2 == 1, k=3, alike=True, learned=k % 2 == 1)

    def pair(self, rng):
        return self._instance(rng, [3, 3], False, k=2, alike=True)

    def many(self, rng, k):
        return self._instance(rng, [9000, 9000, 300, 9000], k % 2 == 1, k=2, hidden=k % 2 == 1, learned=k % 2 == 0)
