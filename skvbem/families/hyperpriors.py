r"""Hyperpriors: densities p(nu) of hyperparameters that are hidden variables, and what a prior has of them.

The mathematics stands in `skvbem.families.hierarchical`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from skvbem._kernels import _hyperpriors, _wishart
from skvbem._lazy import cached_property
from skvbem._numerics import (
    first_axes_last,
    inverse_of_lower,
    last_axes_first,
    log_rising,
    pack_symmetric,
    pairings,
    safe_cholesky,
    unpack_symmetric,
)
from skvbem.families._wishart import MAX_COLUMNS, bartlett
from skvbem.families.parallel_generator import ParallelGenerator

# The floor under a hidden scale: for each row, as a share of the variance of the data, and at most. Less than it would
# leave a component of rows that are all alike so narrow that rounding could lower its bound.
_FLOOR_OF_ROW, _HIGHEST_FLOOR = 1e-6, 0.1
#: The floor under the hidden scale of a joint prior of all columns, which is a count of rows.
LOWEST_SCALE = 1e-6


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
    def score_covariance(self, natural: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        r"""The covariance of scores under q(nu), :math:`J^\top \mathrm{Cov}(u) J`, (n_free, n_free).

        Law: with the information of expected statistics less this, the Hessian of minus ln Z.

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
        jacobian : ndarray of shape (n_cells, n_free)
            Derivatives of the natural parameters by coordinates of a point.
        """

    @abstractmethod
    def draw(self, natural: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of hyperparameters drawn from q(nu) at natural parameters, of their shape."""

    @abstractmethod
    def draw_from_prior(self, like: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of hyperparameters drawn from p(nu), of the shape of an array (n_cells, ...)."""

    @abstractmethod
    def tempered(self, share: float) -> Self:
        r"""The hyperprior with a share of the power of ln f: densities in proportion to :math:`p(\nu)\,c(\nu)^s`."""

    @abstractmethod
    def draw_with_constant(
        self, natural: np.ndarray, rng: np.random.Generator, share: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of hyperparameters drawn as of `tempered`, and ln c of each, nats, which is not tempered."""

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
    loadings : ndarray or sparse array of shape (n_groups, n_cells)
        S, such that S phi is never positive.
    constant : float
        What p(theta | nu) has besides, nats.
    """

    shape: np.ndarray
    rate: np.ndarray
    power: np.ndarray
    loadings: np.ndarray | csr_array
    constant: float = 0.0

    def posterior(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shapes and rates of q(nu) at natural parameters, (n_groups, ...)."""
        rate = self._like(self.rate, natural) - self.loadings @ natural
        return np.zeros(rate.shape) + self._like(self.shape + self.power, natural), rate

    def expect(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Expected rates under their Gamma posteriors, as statistics, and ln Z of q(nu), nats."""
        lanes = np.ascontiguousarray(natural.reshape(len(natural), -1), dtype=float)
        statistics, grown = np.zeros(lanes.shape), np.zeros(lanes.shape[1])
        _hyperpriors.expect_rates(*self.below, self.rate, lanes, statistics, grown)
        return statistics.reshape(natural.shape), self.log_gain - grown.reshape(natural.shape[1:])

    @cached_property
    def below(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Offsets of the cells of each rate, these cells, their loadings, and shapes of q(nu)."""
        shapes = self.shape + self.power
        if isinstance(self.loadings, np.ndarray):
            rates, below = np.nonzero(self.loadings)
            first = np.searchsorted(rates, np.arange(len(shapes) + 1)).astype(np.int32)
            return first, below.astype(np.int32), np.asarray(self.loadings[rates, below], dtype=float), shapes
        loadings = csr_array(self.loadings)
        starts, cells = (np.asarray(x, dtype=np.int32) for x in (loadings.indptr, loadings.indices))
        return starts, cells, np.asarray(loadings.data, dtype=float), shapes

    @cached_property
    def _by_cell(self) -> Any:
        return self.loadings.T if isinstance(self.loadings, np.ndarray) else csr_array(self.loadings.T)

    @cached_property
    def log_gain(self) -> float:
        """The part of ln Z that no parameter changes, nats."""
        return self.constant + float((log_rising(self.shape, self.power) - self.power * np.log(self.rate)).sum())

    def score_covariance(self, natural: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        """The covariance of scores under Gamma posteriors of the rates, (n_free, n_free)."""
        shape, rate = self.posterior(natural)
        by_deviation = (np.sqrt(shape) / rate)[:, None] * (self.loadings @ jacobian)
        return by_deviation.T @ by_deviation

    def draw(self, natural: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of rates drawn from their Gamma posteriors."""
        shape, rate = self.posterior(natural)
        return self._by_cell @ (rng.standard_gamma(shape) / rate)

    def tempered(self, share: float) -> Self:
        """Gamma priors of which p(theta | nu) has a share of the power."""
        return replace(self, power=share * self.power, constant=share * self.constant)

    def draw_with_constant(
        self, natural: np.ndarray, rng: np.random.Generator, share: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of rates drawn from their tempered Gamma posteriors, and ln c of each, nats."""
        shape, rate = self.tempered(share).posterior(natural)
        drawn = np.maximum(rng.standard_gamma(shape) / rate, 1e-300)
        return self._by_cell @ drawn, self.power @ np.log(drawn) + self.constant

    def draw_from_prior(self, like: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of rates drawn from their Gamma priors, of the shape of an array (n_cells, ...)."""
        size = (len(self.shape), *like.shape[1:])
        shape, rate = (np.broadcast_to(self._like(x, like), size) for x in (self.shape, self.rate))
        return self._by_cell @ (rng.standard_gamma(shape) / rate)

    @property
    def prior_statistics(self) -> np.ndarray:
        """Statistics of the rates at their prior means, (n_cells,)."""
        return self._by_cell @ (self.shape / self.rate)

    @staticmethod
    def _like(values: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """An array by group with as many axes as natural parameters have."""
        return values.reshape(-1, *(1 for _ in natural.shape[1:]))


@dataclass(frozen=True, eq=False)
class SharedGammaHyperprior(GammaHyperprior):
    """Gamma priors of rates that are the same in all blocks of a product that have such priors."""


@dataclass(frozen=True, eq=False)
class WishartHyperprior(Hyperprior):
    r"""A Wishart prior of the inverse scale B that Wishart distributed precisions share.

    :math:`\Lambda_k \mid B \sim W(\nu_0, B^{-1})` and :math:`B \sim W(n_0, R^{-1})`, so that
    :math:`\ln f = m \ln|B| - \tfrac12 \sum_k \operatorname{tr} B\Lambda_k + \mathrm{constant}` with
    :math:`m = \tfrac12 \nu_0 K` of K precisions, and
    :math:`q(B) = W(n_0 + 2 m, (R + \sum_k \langle\Lambda_k\rangle)^{-1})`.

    Parameters
    ----------
    degrees_of_freedom : float
        :math:`n_0`, more than d - 1.
    scale : ndarray of shape (d, d)
        R.
    power : float
        m, what p(theta | B) has of ln|B|.
    squares : ndarray of int, shape (n_precisions, d (d + 1) / 2)
        The cells of the packed square of each precision.
    n_cells : int
        Of the prior.
    constant : float
        What p(theta | B) has besides, nats.
    """

    degrees_of_freedom: float
    scale: np.ndarray
    power: float
    squares: np.ndarray
    n_cells: int
    constant: float = 0.0

    def expect(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The expected inverse scale under its Wishart posterior, as statistics, and ln Z of q(B), nats."""
        factor, dof = self._factor(natural), self._posterior_dof
        inverse = inverse_of_lower(factor)
        log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        return self._cells(dof * (inverse.swapaxes(-1, -2) @ inverse)), self._log_gain - dof / 2 * log_det

    def score_covariance(self, natural: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        """The covariance of scores under the Wishart posterior of the inverse scale, (n_free, n_free)."""
        # a score is tr(S B) with S symmetric, and Cov(tr(S B), tr(S' B)) = 2 n tr(V S V S') where B ~ W(n, V)
        d, inverse = len(self.scale), np.linalg.inv(self._factor(natural))
        by_cell = jacobian[self.squares].sum(axis=0)
        turned = pack_symmetric(inverse @ unpack_symmetric((by_cell / pairings(d)[:, None]).T, d) @ inverse.T)
        by_deviation = turned * np.sqrt(2 * self._posterior_dof * pairings(d))
        return by_deviation @ by_deviation.T

    def draw(self, natural: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of an inverse scale drawn from its Wishart posterior."""
        if isinstance(rng, ParallelGenerator) and len(self.scale) <= MAX_COLUMNS:
            packed, statistics = np.empty((self.squares.shape[1], natural.shape[1])), np.zeros(natural.shape)
            _wishart.drawn_scale(
                self._posterior_dof,
                np.ascontiguousarray(self.scale, dtype=float),
                np.ascontiguousarray(self.squares, dtype=np.int64),
                np.ascontiguousarray(natural),
                rng.streams_of(natural.shape),
                packed,
            )
            statistics[self.squares] = packed
            return statistics
        return self._drawn(self._posterior_dof, self._factor(natural), rng)

    def tempered(self, share: float) -> Self:
        """The Wishart prior of which p(theta | B) has a share of the power."""
        return replace(self, power=share * self.power, constant=share * self.constant)

    def draw_with_constant(
        self, natural: np.ndarray, rng: np.random.Generator, share: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of an inverse scale drawn from its tempered Wishart posterior, and ln c of each, nats."""
        root = self._root(self.tempered(share)._posterior_dof, self._factor(natural), rng)
        log_det = 2 * np.log(np.abs(np.diagonal(root, axis1=-2, axis2=-1))).sum(axis=-1)
        return self._cells(root @ root.swapaxes(-1, -2)), self.power * log_det + self.constant

    def draw_from_prior(self, like: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of an inverse scale drawn from its Wishart prior, of the shape of an array (n_cells, ...)."""
        factor = np.linalg.cholesky(self.scale)
        return self._drawn(self.degrees_of_freedom, np.broadcast_to(factor, like.shape[1:] + factor.shape), rng)

    @property
    def prior_statistics(self) -> np.ndarray:
        """Statistics of the inverse scale at its prior mean, (n_cells,)."""
        return self._cells(self.degrees_of_freedom * np.linalg.inv(self.scale))

    @property
    def _posterior_dof(self) -> float:
        return self.degrees_of_freedom + 2 * self.power

    @cached_property
    def _log_gain(self) -> float:
        """The part of ln Z that no precision changes, nats."""
        d, dof = len(self.scale), self.degrees_of_freedom
        lifted = float(log_rising((dof - np.arange(d)) / 2, self.power).sum())
        return self.constant + lifted + self.power * d * np.log(2) + dof / 2 * float(np.linalg.slogdet(self.scale)[1])

    def _factor(self, natural: np.ndarray) -> np.ndarray:
        """Lower Cholesky factors of the scale of q(B), (..., d, d)."""
        d = len(self.scale)
        summed = first_axes_last(natural[self.squares].sum(axis=0))
        return safe_cholesky(self.scale + unpack_symmetric(-2 * summed / pairings(d), d))

    def _drawn(self, dof: float, factor: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of draws from Wishart distributions whose inverse scales have these factors (..., d, d)."""
        root = self._root(dof, factor, rng)
        return self._cells(root @ root.swapaxes(-1, -2))

    def _root(self, dof: float, factor: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Roots of draws from Wishart distributions whose inverse scales have these factors (..., d, d)."""
        lower = bartlett(np.full((*factor.shape[:-2], 1), dof), len(self.scale), rng)[..., 0, :, :]
        return np.linalg.solve(factor.swapaxes(-1, -2), lower)

    def _cells(self, inverse_scale: np.ndarray) -> np.ndarray:
        """Statistics of inverse scales (..., d, d), (n_cells, ...)."""
        statistics = np.zeros((self.n_cells, *inverse_scale.shape[:-2]))
        statistics[self.squares] = last_axes_first(pack_symmetric(inverse_scale))
        return statistics


@dataclass(frozen=True, eq=False)
class BlockHyperpriors(Hyperprior):
    """Hyperpriors of some of the blocks of a product; the cells of other blocks have none.

    Blocks may share cells: hyperparameters that are independent given the parameters, each of which has statistics
    there, and their statistics add.

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
        """Expected statistics of all blocks under q(nu), and the sum of their ln Z, nats."""
        statistics, log_z = np.zeros(natural.shape), np.zeros(natural.shape[1:])
        for cells, hyperprior in self.blocks:
            expected, block_log_z = hyperprior.expect(natural[cells])
            statistics[cells] += expected
            log_z = log_z + block_log_z
        return statistics, log_z

    def score_covariance(self, natural: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
        """The covariance of scores under q(nu), summed over blocks, (n_free, n_free)."""
        parts = (each.score_covariance(natural[cells], jacobian[cells]) for cells, each in self.blocks)
        return np.sum(list(parts), axis=0)  # given the parameters, blocks are independent

    def draw(self, natural: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of the hyperparameters of all blocks drawn from q(nu)."""
        statistics = np.zeros(natural.shape)
        for cells, hyperprior in self.blocks:
            statistics[cells] += hyperprior.draw(natural[cells], rng)
        return statistics

    def tempered(self, share: float) -> Self:
        """The tempered hyperpriors of all blocks."""
        return replace(self, blocks=[(cells, hyperprior.tempered(share)) for cells, hyperprior in self.blocks])

    def draw_with_constant(
        self, natural: np.ndarray, rng: np.random.Generator, share: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of the hyperparameters of all blocks drawn from tempered densities, and the sum of ln c, nats."""
        statistics, log_constant = np.zeros(natural.shape), np.zeros(natural.shape[1:])
        for cells, hyperprior in self.blocks:
            drawn, of_block = hyperprior.draw_with_constant(natural[cells], rng, share)
            statistics[cells] += drawn
            log_constant = log_constant + of_block
        return statistics, log_constant

    def draw_from_prior(self, like: np.ndarray, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Statistics of the hyperparameters of all blocks drawn from p(nu), of the shape of an array (n_cells, ...)."""
        statistics = np.zeros(like.shape)
        for cells, hyperprior in self.blocks:
            statistics[cells] += hyperprior.draw_from_prior(like[cells], rng)
        return statistics

    @property
    def prior_statistics(self) -> np.ndarray:
        """Statistics of the hyperparameters of all blocks at their prior means, (n_cells,)."""
        statistics = np.zeros(self.n_cells)
        for cells, hyperprior in self.blocks:
            statistics[cells] += hyperprior.prior_statistics
        return statistics


def hyperprior_of_blocks(parts: Sequence[tuple[slice, Hyperprior]], n_cells: int) -> BlockHyperpriors | None:
    """The hyperprior of a product from those of its blocks, of which some may share rates; None if there are none.

    Parameters
    ----------
    parts : sequence of pairs of slice and Hyperprior
        The cells of a block, and its hyperprior.
    n_cells : int
        Of all blocks.
    """
    shared = [(cells, each) for cells, each in parts if isinstance(each, SharedGammaHyperprior)]
    if len(shared) < 2:
        return BlockHyperpriors(parts, n_cells) if parts else None
    loadings = np.zeros((len(shared[0][1].shape), n_cells))
    for cells, each in shared:
        loadings[:, cells] = each.loadings
    power = np.sum([each.power for _, each in shared], axis=0)
    constant = sum(each.constant for _, each in shared)
    together = replace(shared[0][1], power=power, loadings=loadings, constant=constant)
    others = [(cells, each) for cells, each in parts if not isinstance(each, SharedGammaHyperprior)]
    return BlockHyperpriors([*others, (slice(0, n_cells), together)], n_cells)


def floor_of_scales(total_weight: Any) -> Any:
    """Floors under hidden scales of data with these total weights, as shares of the variance of the data."""
    return np.minimum(_FLOOR_OF_ROW * total_weight, _HIGHEST_FLOOR)
