r"""Hyperpriors: densities p(nu) of hyperparameters that are hidden variables, and what a prior has of them.

The mathematics stands in `skvbem.families.hierarchical`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skvbem._numerics import log_rising
from skvbem.families.parallel_generator import ParallelGenerator


class Hyperprior(ABC):
    """p(nu), and how p(theta | nu) depends on nu: all that a model asks of hidden hyperparameters.

    Natural parameters and statistics are those of the parameters theta, (n_cells,) or (n_cells, n_lanes).
    """

    @abstractmethod
    def expect(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expected statistics under q(nu) at natural parameters, and ln Z of q(nu), nats.

        Law: the derivatives of ln Z by the natural parameters are the statistics.
        """

    @abstractmethod
    def draw(self, natural: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of hyperparameters drawn from q(nu) at natural parameters, of their shape."""

    @abstractmethod
    def draw_from_prior(self, like: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of hyperparameters drawn from p(nu), of the shape of an array (n_cells, ...)."""

    @property
    @abstractmethod
    def prior_statistics(self) -> np.ndarray:
        """Statistics of hyperparameters at their prior means, (n_cells,): where nothing is known of them yet."""


@dataclass(frozen=True, eq=False)
class GammaHyperprior(Hyperprior):
    r"""Gamma priors of rates or precisions that whole groups of parameters share.

    :math:`\nu_k \sim \mathrm{Gamma}(c_k, d_k)` and
    :math:`\ln f = \sum_k m_k \ln\nu_k + \nu_k\, (S \phi(\theta))_k + \mathrm{constant}`: for the precision of m
    parameters around 0, :math:`m / 2`, minus half of their squares, :math:`-\tfrac m2 \ln 2\pi`; for the rate of m
    Gamma variables of shape a, :math:`m a`, minus their sum, :math:`-m \ln\Gamma(a)`.

    Parameters
    ----------
    shape, rate : ndarray of shape (n_groups,)
        c and d.
    power : ndarray of shape (n_groups,)
        m, what p(theta | nu) has of ln nu.
    loadings : ndarray of shape (n_groups, n_cells)
        S, such that S phi is never positive.
    constant : float
        What p(theta | nu) has besides, nats.
    """

    shape: np.ndarray
    rate: np.ndarray
    power: np.ndarray
    loadings: np.ndarray
    constant: float = 0.0

    def posterior(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shapes and rates of q(nu) at natural parameters, (n_groups, ...)."""
        rate = self._like(self.rate, natural) - np.tensordot(self.loadings, natural, axes=1)
        return np.broadcast_to(self._like(self.shape + self.power, natural), rate.shape), rate

    def expect(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Hyperprior`."""
        shape, rate = self.posterior(natural)
        prior_rate = self._like(self.rate, natural)
        log_z = -self._like(self.power, natural) * np.log(prior_rate) - shape * np.log1p(
            (rate - prior_rate) / prior_rate
        )
        constant = self.constant + float(log_rising(self.shape, self.power).sum())
        return np.tensordot(self.loadings.T, shape / rate, axes=1), log_z.sum(axis=0) + constant

    def draw(self, natural: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """See `Hyperprior`."""
        shape, rate = self.posterior(natural)
        return np.tensordot(self.loadings.T, rng.standard_gamma(shape) / rate, axes=1)

    def draw_from_prior(self, like: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """See `Hyperprior`."""
        size = (len(self.shape), *like.shape[1:])
        shape, rate = (np.broadcast_to(self._like(x, like), size) for x in (self.shape, self.rate))
        return np.tensordot(self.loadings.T, rng.standard_gamma(shape) / rate, axes=1)

    @property
    def prior_statistics(self) -> np.ndarray:
        """See `Hyperprior`."""
        return self.loadings.T @ (self.shape / self.rate)

    @staticmethod
    def _like(of_groups: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """An array by group with as many axes as natural parameters have."""
        return of_groups.reshape(-1, *(1 for _ in natural.shape[1:]))


@dataclass(frozen=True, eq=False)
class BlockHyperpriors(Hyperprior):
    """Hyperpriors of some of the blocks of a product; the cells of other blocks have none.

    Parameters
    ----------
    blocks : sequence of pairs of slice and Hyperprior
        The cells of a block, and its hyperprior.
    n_cells : int
        Of all blocks.
    """

    blocks: Sequence[tuple[slice, Hyperprior]]
    n_cells: int

    def expect(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Hyperprior`."""
        statistics, log_z = np.zeros(natural.shape), np.zeros(natural.shape[1:])
        for cells, hyperprior in self.blocks:
            statistics[cells], of_block = hyperprior.expect(natural[cells])
            log_z = log_z + of_block
        return statistics, log_z

    def draw(self, natural: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """See `Hyperprior`."""
        statistics = np.zeros(natural.shape)
        for cells, hyperprior in self.blocks:
            statistics[cells] = hyperprior.draw(natural[cells], rng)
        return statistics

    def draw_from_prior(self, like: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """See `Hyperprior`."""
        statistics = np.zeros(like.shape)
        for cells, hyperprior in self.blocks:
            statistics[cells] = hyperprior.draw_from_prior(like[cells], rng)
        return statistics

    @property
    def prior_statistics(self) -> np.ndarray:
        """See `Hyperprior`."""
        statistics = np.zeros(self.n_cells)
        for cells, hyperprior in self.blocks:
            statistics[cells] = hyperprior.prior_statistics
        return statistics
