"""Structural time series: what laws are tried on."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from skvbem.families import Gamma
from skvbem.families.hierarchical import hidden_rate_prior, with_hidden_rates
from skvbem.families.regression import Regression
from skvbem.models.structural.design import Design
from skvbem.models.structural.model import StructuralModel
from skvbem.optima.structural import StructuralAscent
from skvbem.structural import Autoregression, Cycle, Level, Season, Trend
from skvbem.testing import ModelCase, ModelInstance

BLOCKS = (
    [Level()],
    [Trend(), Season(4)],
    [Season(3), Cycle(5.0, damping=0.8)],
    [Trend(level_noise=False), Cycle(2.5, noise=False)],
    [Level(noise=False), Season(5, harmonics=1)],
    [Level(), Autoregression(2)],
    [Autoregression(), Season(4, noise=False)],
)


@dataclass(frozen=True, eq=False)
class StructuralInstance(ModelInstance):
    """A structural time series over sequences, which are the units."""

    y: np.ndarray
    v: np.ndarray
    lengths: np.ndarray
    model: StructuralModel

    ascent = StructuralAscent
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
        return self.model.compile(self.y[rows], self.lengths[units], weight, output_inputs=self.v[rows])


def autoregressions(rng, design):
    """A prior of learned rows, under which states do not grow."""
    p, own = len(design.learned), np.arange(len(design.learned))
    precision = np.stack([np.diag(rng.uniform(10, 30, design.order)) for _ in range(p)])
    shape, rate = rng.uniform(1, 3, (2, p))
    return Regression.from_parameters(np.zeros((p, design.order)), precision, shape, rate, own, own)


class StructuralCase(ModelCase):
    """Time series of one to three columns, some with inputs, gaps, states without noise, or hidden rates."""

    name = "structural time series"
    n_sampled = n_rising_starts = 2
    n_plain_steps = 6
    limits: ClassVar = {"tol": 1e-4, "max_iter": 24}
    lacks: ClassVar = {
        "map_probability": "few data leave no mode in coefficients and precisions",
        "maximum_likelihood": "likelihoods are highest where variances are 0, where plain steps stall",
        "row_posteriors": "states have no finite labels",
        "finite_cells": "measurements are real numbers",
        "exact": "no sum over paths is finite, and the integral over parameters has no closed form",
        "log_evidence": "the integral over parameters has no closed form",
        "complete": "states are always hidden",
        "regular": "states are always hidden",
        "marginals": "states are no counts",
        "counted": "states have densities",
        "relabeling": "data tell blocks apart",
        "information": "variances near 0 are at the end of their range",
        "enumeration": "no sum over paths is finite",
    }

    def _instance(self, rng, lengths, gaps, number=0, hidden=False):
        p, r, n = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(np.sum(lengths))
        y = rng.normal(size=(n, p))
        if gaps:
            y[rng.random(y.shape) < 0.25] = np.nan
        design, own = Design.of(BLOCKS[number % len(BLOCKS)], rng.uniform(0.5, 1.5, p)), np.arange(p)
        precision = np.stack([np.diag(rng.uniform(0.5, 2.0, r)) for _ in range(p)])
        emission = Regression.from_parameters(
            np.zeros((p, r)), precision, rng.uniform(1, 3, p), rng.uniform(0.5, 2, p), own, own
        )
        shape, rate = rng.uniform(1, 3, (2, 1, design.n_noises))
        noise = Gamma.from_parameters(shape, rate) if design.n_noises else None
        learned = autoregressions(rng, design) if len(design.learned) else None
        if hidden:
            emission = with_hidden_rates(emission, 1.0, 1.0, np.full(p, 1e-3))
            noise = hidden_rate_prior(1, shape[0], 1.0, rate[0], 1e-3) if design.n_noises else None
            learned = with_hidden_rates(learned, 1.0, 1.0, np.full(p, 1e-3)) if learned is not None else None
        v = rng.normal(size=(n, r))
        return StructuralInstance(
            y, v, np.asarray(lengths), StructuralModel(emission, noise, design, np.zeros(p), np.ones(p), learned)
        )

    def tiny(self, rng, k):
        return self._instance(rng, [3, 2], k % 2 == 1, k)

    def dozens(self, rng, k, form="vb"):
        return self._instance(rng, rng.integers(4, 12, size=6), k % 2 == 1, k, hidden=k % 2 == 1)

    def pair(self, rng):
        return self._instance(rng, [3, 3], False)

    def many(self, rng, k):
        return self._instance(rng, [9000, 9000, 300, 9000], k % 2 == 1, k, hidden=k % 2 == 1)
