r"""Mixtures: :math:`p(y, x = k \mid \theta) = \pi_k\, p(y \mid k, \theta)`, for any emission.

The component of a row is all that is hidden in it, so that the E step is exact given the expected parameters
[Beal §2.4.1]: :math:`q(x_i = k) \propto \exp(\langle\ln\pi_k\rangle + \langle\ln p(y_i \mid k, \theta)\rangle)`.
What an emission hides further, such as missing cells of a Gaussian row, it sums out itself.

Statistics are flat: those of the weights first, then those of the emission.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._kernels import _mixture
from skvbem.emissions import Emission, relabeled
from skvbem.emissions.base import Step
from skvbem.families import Product
from skvbem.families.base import ConjugateFamily
from skvbem.models._ascent import EmissionAscent
from skvbem.models._blocks import summed
from skvbem.models._mixture_sampling import MixtureSampling
from skvbem.models.expectation import Expectation
from skvbem.models.weights import Weights

# Rows times components times restarts below which threads cost more than they bring.
_WORTH_THREADS = 2**18


@dataclass(frozen=True, eq=False)
class MixtureData:
    """Rows as a mixture takes them.

    Parameters
    ----------
    table : Table
        As the emission prepared it, rows in the order in which blocks cost least.
    weight : ndarray of shape (n_rows,)
        How often each row counts; 0 for a row without any observed cell, which says nothing of its component.
    total_weight : float
        The n of every score, of all rows.
    has_whole_weights : bool
    """

    table: Any
    weight: np.ndarray
    total_weight: float
    has_whole_weights: bool = True

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def row_weight(self) -> np.ndarray:
        """How often each row counts, as other models' data say it."""
        return self.weight


class Mixture(MixtureSampling):
    """A mixture with its prior.

    Parameters
    ----------
    emission : Emission
    weights : Weights
        Prior of the components' weights.
    emission_prior : ConjugateFamily
    """

    def __init__(self, emission: Emission, weights: Weights, emission_prior: ConjugateFamily):
        self.emission, self.weights = emission, weights
        self.n_components = weights.n_components
        cells = emission.component_of_cell(self.n_components)
        self.prior = Product((weights.prior, emission_prior), (weights.n_cells, len(cells)))

    @property
    def n_cells(self) -> int:
        """Numbers that statistics take."""
        return sum(self.prior.n_cells)

    def compile(self, table: Any, weight: np.ndarray | None = None, observed: np.ndarray | None = None) -> MixtureData:
        """Rows made ready for many E steps.

        Parameters
        ----------
        table : Table
            As the emission prepared it.
        weight : ndarray of shape (n_rows,), optional
            How often each row counts.
        observed : ndarray of bool, shape (n_rows,), optional
            Whether a row has any observed cell.
        """
        weight = np.ones(len(table)) if weight is None else np.asarray(weight, dtype=float)
        counted = weight if observed is None else np.where(observed, weight, 0.0)
        whole = bool((weight == np.floor(weight)).all())
        return MixtureData(table, np.ascontiguousarray(counted), float(weight.sum()), whole)

    def expect(self, natural: np.ndarray, data: MixtureData, n_threads: int = 1) -> Expectation:
        """The E step [Beal (2.54)] under natural parameters (n_cells, n_lanes) that need not be normalized."""
        log_weights, step = self._at(natural, data)
        n_lanes = natural.shape[1]
        size = self.emission.block_rows(self.n_components, n_lanes)

        def sums(part: Sequence[int]) -> tuple[Any, np.ndarray, np.ndarray]:
            total, log_z, counts = step.zeros(), np.zeros(n_lanes), np.zeros((n_lanes, self.n_components))
            for at in part:
                rows = slice(at, at + size)
                block = data.table[rows]
                shares = self._shares(step, block, log_weights, data.weight[rows], log_z)
                counts += shares.sum(axis=-1)
                step.add(block, shares.swapaxes(-1, -2), total)
            return total, log_z, counts

        worth = len(data) * self.n_components * n_lanes > _WORTH_THREADS
        total, log_z, counts = summed(sums, range(0, len(data), size), n_threads if worth else 1)
        of_emission = step.statistics(total).reshape(-1, n_lanes)
        return Expectation(np.concatenate([self.weights.statistics(counts.T), of_emission]), log_z)

    @staticmethod
    def _shares(step: Step, block: Any, log_weights: np.ndarray, weight: np.ndarray, log_z: np.ndarray) -> np.ndarray:
        """Responsibilities times weights, (n_lanes, n_components, n_rows); ln Z of the block is added."""
        shares = np.ascontiguousarray(step.log_likelihood(block).swapaxes(-1, -2))
        _mixture.shares(log_weights, np.ascontiguousarray(weight), shares, log_z)
        return shares

    def log_joint(self, natural: np.ndarray, table: Any) -> np.ndarray:
        """ln of pi_k p(row | k) under natural parameters (n_cells,) of one lane, nats, (n_rows, n_components)."""
        of_weights, of_emission = self.prior.split(natural)
        found = self.emission.expected_log_likelihood(table, of_emission)
        return found + self.weights.log_weights(of_weights[:, None])[:, 0]

    def statistics_of(self, responsibilities: np.ndarray, data: MixtureData) -> np.ndarray:
        """Statistics (n_cells,) of responsibilities (n_rows, n_components), in the order of the rows of the data.

        Missing cells that have statistics are taken as they are expected under the prior.
        """
        return self.statistics_from(lambda rows: responsibilities[rows].T[None], data, 1)[:, 0]

    def statistics_from(self, shares_of: Callable[[slice], np.ndarray], data: MixtureData, n_lanes: int) -> np.ndarray:
        """Statistics (n_cells, n_lanes) of responsibilities of a block of rows, (n_lanes, n_components, n_rows)."""
        natural = np.repeat(self.prior.blocks[1].expected_natural()[:, None], n_lanes, axis=1)
        step = self.emission.step(natural, data.table)
        total, counts = step.zeros(), np.zeros((self.n_components, n_lanes))
        size = self.emission.block_rows(self.n_components, n_lanes)
        for at in range(0, len(data), size):
            rows = slice(at, at + size)
            shares = shares_of(rows) * data.weight[rows]
            counts += shares.sum(axis=-1).T
            step.add(data.table[rows], shares.swapaxes(-1, -2), total)
        of_emission = step.statistics(total).reshape(-1, n_lanes)
        return np.concatenate([self.weights.statistics(counts), of_emission])

    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) with the components in another order."""
        of_weights, of_emission = self.prior.split(statistics)
        component = self.emission.component_of_cell(self.n_components)
        return np.concatenate([self.weights.relabeled(of_weights, order), relabeled(of_emission, component, order)])


class MixtureAscent(EmissionAscent):
    """Full steps of one mixture on its data."""

    label = "component"
