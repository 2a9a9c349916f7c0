r"""Priors of the weights of components.

The prior of the weights is a Dirichlet distribution, or sticks broken one after the other (the truncated Dirichlet
process of Blei & Jordan 2006): :math:`\pi_k = v_k \prod_{j<k} (1 - v_j)` with :math:`v_k \sim \mathrm{Beta}(1, \alpha)`
for all components but the last, which gets what is left, so that the weights sum to one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.families import Dirichlet
from skvbem.families.inert import Inert

# Draws that quantiles of weights are those of, where these are products of sticks.
_DRAWS_OF_STICKS = 2**15


class Weights(ABC):
    """A conjugate prior of the weights, and how its statistics follow from counts of components."""

    #: Whether components may be renamed without a change of the prior.
    exchangeable: bool
    #: Whether the prior means early components to be larger than late ones.
    by_weight: bool = False
    #: Whether components are as probable in a row as its covariates say, which have a part of the emission.
    by_row: bool = False
    n_components: int
    concentration: Any

    @property
    @abstractmethod
    def prior(self) -> Dirichlet:
        """The conjugate family of the prior of the weights."""

    @property
    @abstractmethod
    def sticks(self) -> np.ndarray:
        """Beta distributions of the share of each component among itself and those after it, (n_components - 1, 2)."""

    @abstractmethod
    def log_weights(self, natural: np.ndarray) -> np.ndarray:
        """(Expected) log weights, nats, (n_components, ...), of natural parameters (n_cells, ...)."""

    @abstractmethod
    def statistics(self, counts: np.ndarray) -> np.ndarray:
        """Statistics (n_cells, ...) of counts of components (n_components, ...)."""

    @abstractmethod
    def counts(self, statistics: np.ndarray) -> np.ndarray:
        """The counts of components (n_components, ...) that made statistics (n_cells, ...)."""

    @property
    @abstractmethod
    def given(self) -> float | np.ndarray:
        """The concentration as users know it: a number if all components have the same."""

    @abstractmethod
    def of_strength(self, strength: float) -> Weights:
        """The prior whose concentrations are those of this one times a number."""

    @abstractmethod
    def mean(self, posterior: Dirichlet) -> np.ndarray:
        """Expected weights E[pi] of a posterior, (n_components,)."""

    def log_predictive(self, posterior: Any) -> np.ndarray:
        """Log probabilities of the components of a new row, nats, (n_components,)."""
        return np.log(self.mean(posterior))

    @abstractmethod
    def quantiles(self, posterior: Dirichlet, probability: float) -> np.ndarray:
        """Quantiles of each weight of a posterior by itself, (n_components,)."""

    @abstractmethod
    def concentrations(self, family: Dirichlet) -> np.ndarray:
        """Concentrations of a prior or posterior: (n_components,), or (n_components - 1, 2) of sticks."""

    def relabeled(self, statistics: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Statistics with the components in another order."""
        return self.statistics(self.counts(statistics)[order])


@dataclass(frozen=True, eq=False)
class FiniteWeights(Weights):
    """A Dirichlet prior of the weights.

    Parameters
    ----------
    concentration : ndarray of shape (n_components,)
    """

    concentration: np.ndarray

    @property
    def exchangeable(self) -> bool:  # type: ignore[override]
        """True if all concentrations are equal."""
        return bool((self.concentration == self.concentration[0]).all())

    @property
    def n_components(self) -> int:  # type: ignore[override]
        """Number of components."""
        return len(self.concentration)

    @cached_property
    def prior(self) -> Dirichlet:
        """The Dirichlet distribution of all weights."""
        return Dirichlet.from_rows([self.concentration])

    @property
    def sticks(self) -> np.ndarray:
        """Concentrations of each component, and of all after it together."""
        after = np.cumsum(self.concentration[::-1])[::-1]
        return np.stack([self.concentration[:-1], after[1:]], axis=1)

    def log_weights(self, natural: np.ndarray) -> np.ndarray:
        """The log weights, which the natural parameters of a Dirichlet are."""
        return natural

    def statistics(self, counts: np.ndarray) -> np.ndarray:
        """The statistics of a Dirichlet, which the counts of components are."""
        return counts

    def counts(self, statistics: np.ndarray) -> np.ndarray:
        """The counts of components, which the statistics of a Dirichlet are."""
        return statistics

    @property
    def given(self) -> float | np.ndarray:
        """A number if all components have the same, or (n_components,)."""
        return float(self.concentration[0]) if self.exchangeable else self.concentration

    def of_strength(self, strength: float) -> FiniteWeights:
        """The prior whose concentrations are those of this one times a number."""
        return FiniteWeights(strength * self.concentration)

    def mean(self, posterior: Dirichlet) -> np.ndarray:
        """Expected weights E[pi] of a posterior, (n_components,)."""
        return posterior.mean()

    def quantiles(self, posterior: Dirichlet, probability: float) -> np.ndarray:
        """Quantiles of each weight, a Beta variable, (n_components,)."""
        return posterior.quantiles(probability)

    def concentrations(self, family: Dirichlet) -> np.ndarray:
        """The Dirichlet concentration of each component."""
        return family.concentration


@dataclass(frozen=True, eq=False)
class StickBreaking(Weights):
    """Sticks broken in turn: components are ordered, and late ones are small.

    Parameters
    ----------
    n_components : int
        Where the process is truncated.
    concentration : float
        alpha: how slowly weights fall.
    """

    n_components: int
    concentration: float

    exchangeable = False
    by_weight = True

    @cached_property
    def prior(self) -> Dirichlet:
        """One Beta distribution for each component but the last; of one component, what never varies."""
        return Dirichlet.from_rows([[1.0, self.concentration]] * (self.n_components - 1) or [[1.0]])

    @property
    def sticks(self) -> np.ndarray:
        """The Beta distributions of the sticks, which are the prior itself."""
        return np.tile([1.0, self.concentration], (self.n_components - 1, 1))

    def log_weights(self, natural: np.ndarray) -> np.ndarray:
        """Log weights of broken sticks: ln v_k, and ln (1 - v_j) of those before."""
        if self.n_components == 1:
            return np.zeros_like(natural)
        broken, left = natural[0::2], natural[1::2]
        none = np.zeros_like(natural[:1])
        return np.concatenate([broken, none]) + np.concatenate([none, np.cumsum(left, axis=0)])

    def statistics(self, counts: np.ndarray) -> np.ndarray:
        """Counts of each stick: rows of its component, and of all after it."""
        if self.n_components == 1:
            return counts
        after = np.cumsum(counts[::-1], axis=0)[::-1][1:]
        return np.stack([counts[:-1], after], axis=1).reshape(-1, *counts.shape[1:])

    def counts(self, statistics: np.ndarray) -> np.ndarray:
        """The counts of components that made statistics."""
        return statistics if self.n_components == 1 else np.concatenate([statistics[0::2], statistics[-1:]])

    @property
    def given(self) -> float:
        """The concentration alpha of the sticks."""
        return self.concentration

    def of_strength(self, strength: float) -> StickBreaking:
        """The prior whose concentration is that of this one times a number."""
        return StickBreaking(self.n_components, strength * self.concentration)

    def mean(self, posterior: Dirichlet) -> np.ndarray:
        """Expected weights E[pi] of a posterior, whose sticks are independent."""
        if self.n_components == 1:
            return np.ones(1)
        mean = posterior.mean()
        return np.concatenate([mean[0::2], [1.0]]) * np.concatenate([[1.0], np.cumprod(mean[1::2])])

    def quantiles(self, posterior: Dirichlet, probability: float) -> np.ndarray:
        """Quantiles of each weight, (n_components,), by draws, always the same: products of sticks have no form."""
        many = Dirichlet(np.repeat(posterior.concentration[:, None], _DRAWS_OF_STICKS, axis=1), posterior.row_starts)
        drawn = self.log_weights(many.natural(many.sample(np.random.default_rng(0))))
        return np.exp(np.quantile(drawn, probability, axis=1))

    def concentrations(self, family: Dirichlet) -> np.ndarray:
        """The two concentrations of each stick: of its component, and of all after it."""
        return family.concentration.reshape(-1, 2) if self.n_components > 1 else np.empty((0, 2))


@dataclass(frozen=True, eq=False)
class RowWeights(Weights):
    """No weights of the components: covariates of each row say how probable these are there, in the emission.

    Parameters
    ----------
    n_components : int
    """

    n_components: int
    concentration = None
    exchangeable = True
    by_row = True

    @property
    def prior(self) -> Inert:  # type: ignore[override]
        """A family without parameters, which counts the rows of components."""
        return Inert(np.zeros(self.n_components))

    @property
    def sticks(self) -> np.ndarray:
        """No Beta distribution."""
        return np.empty((0, 2))

    def log_weights(self, natural: np.ndarray) -> np.ndarray:
        """Zeros: all is said by the emission."""
        return natural

    def statistics(self, counts: np.ndarray) -> np.ndarray:
        """The counts of components."""
        return counts

    def counts(self, statistics: np.ndarray) -> np.ndarray:
        """The counts of components."""
        return statistics

    @property
    def given(self) -> None:  # type: ignore[override]
        """No concentration."""
        return None

    def of_strength(self, strength: float) -> RowWeights:
        """These weights, which have no strength."""
        return self

    def mean(self, posterior: Any) -> np.ndarray:
        """Proportions of the rows of the data, (n_components,)."""
        return posterior.coordinates / posterior.coordinates.sum()

    def log_predictive(self, posterior: Any) -> np.ndarray:
        """Zeros: all is said by the emission, row by row."""
        return np.zeros(self.n_components)

    def quantiles(self, posterior: Any, probability: float) -> np.ndarray:
        """NaN: proportions of the data have no posterior."""
        return np.full(self.n_components, np.nan)

    def concentrations(self, family: Any) -> np.ndarray:
        """None there are."""
        return np.empty(0)
