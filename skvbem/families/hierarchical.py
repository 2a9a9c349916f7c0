r"""Priors whose hyperparameters have priors of their own: a hidden variable of the model that belongs to no row.

A prior :math:`p(\theta \mid \nu)` with :math:`p(\nu)` is not conjugate by itself, but given :math:`\nu` it is, and
given :math:`\theta` so is :math:`\nu`. So :math:`\nu` joins the hidden variables, and q(theta) q(nu) q(x) is found like
any other: what depends on :math:`\nu` is taken from the prior as if it were an observation,

.. math:: \ln p(\theta \mid \nu) = \eta_0 \cdot \phi(\theta) + \ln f(\nu, \theta), \qquad
          \ln f(\nu, \theta) = u(\nu) \cdot \phi(\theta) + \ln c(\nu),

with a *base* :math:`\eta_0` that need be no density: its log normalizer is set to A := 0. Expected statistics of
:math:`\nu` are added to those of rows, and the log normalizer of q(nu),

.. math:: \ln Z_\nu(\bar\phi) = \ln \int p(\nu) \exp[u(\nu) \cdot \bar\phi + \ln c(\nu)]\, d\nu,

to that of q(x). Then :math:`F = \ln Z_x + \ln Z_\nu - \sum_b \mathrm{KL}`, with KL above the base, is the lower bound
with every constant of :math:`p(\theta \mid \nu)` in it. At a point, :math:`\ln Z_\nu(\phi(\theta))` is the logarithm of
the prior density with :math:`\nu` integrated out, relative to the base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.families.base import ConjugateFamily, FlatFamily
from skvbem.families.hyperpriors import Hyperprior
from skvbem.families.parallel_generator import ParallelGenerator


@dataclass(frozen=True, eq=False)
class Hierarchical(ConjugateFamily):
    """A prior whose hyperparameters are hidden: a base that need be no density, and the hyperprior above it.

    What is added to it is a member of the base's family: the posterior of the parameters. Statistics must hold those of
    the hyperparameters, which `Hyperprior.expect` gives; where they are all 0, nothing was added yet, and log
    normalizers are 0 by convention.

    Parameters
    ----------
    base : FlatFamily
        Of the family of the posterior. Its coordinates may be those of no density.
    hyperprior : Hyperprior

    Examples
    --------
    Rates of three machines that failed 40, 60 and 50 times in ten years each, and the scale of these rates, which is
    learned from all of them, in turns:

    >>> import numpy as np
    >>> from scipy.special import gammaln
    >>> from skvbem.families import Gamma
    >>> from skvbem.families.hierarchical import Hierarchical
    >>> from skvbem.families.hyperpriors import GammaHyperprior
    >>> base = Gamma.from_parameters(shape=np.full((3, 1), 2.0), rate=np.zeros((3, 1)))
    >>> of_rates = np.array([[0.0, 1, 0, 1, 0, 1]])
    >>> one = np.ones(1)
    >>> scale = GammaHyperprior(one, one, power=6 * one, loadings=of_rates, constant=-3 * gammaln(2.0))
    >>> prior = Hierarchical(base, scale)
    >>> natural = prior.expected_natural()
    >>> for _ in range(20):
    ...     statistics, log_z = scale.expect(natural)
    ...     posterior = prior + (statistics + np.array([40.0, 10, 60, 10, 50, 10]))
    ...     natural = posterior.expected_natural()
    >>> posterior.mean.ravel().round(2).tolist()
    [4.02, 5.94, 4.98]
    """

    base: FlatFamily
    hyperprior: Hyperprior

    @property
    def coordinates(self) -> np.ndarray:  # type: ignore[override]
        """Additive coordinates of the base, (n_cells, ...)."""
        return self.base.coordinates

    def __add__(self, statistics: np.ndarray) -> Any:
        return self.base + statistics

    def statistics_above(self, prior: Any) -> np.ndarray:
        """What was added to `prior` to give the base."""
        return self.base.statistics_above(prior)

    def _like(self, statistics: np.ndarray) -> np.ndarray:
        return self.base._like(statistics)

    @property
    def n_free_parameters(self) -> int:
        """Dimension of the parameters; the hyperparameters are no parameters of the data's distribution."""
        return self.base.n_free_parameters

    @property
    def is_valid(self) -> np.ndarray:
        """Whether the hyperparameters at their prior means make a density of the base."""
        return (self.base + self.hyperprior.prior_statistics).is_valid

    @property
    def signed(self) -> np.ndarray:
        """Which statistics may be negative, (n_cells,)."""
        return self.base.signed

    def log_normalizer(self) -> np.ndarray:
        """0, of the base."""
        return np.zeros(self.coordinates.shape[1:])

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(base + statistics), nats; 0 where hyperparameters are left to their prior."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log_normalizer = (self.base + statistics).log_normalizer()
        return np.where(self.leaves_hyperparameters(statistics), 0.0, log_normalizer)

    def log_normalizer_gain(self, posterior: Any, added: np.ndarray) -> np.ndarray:
        """A(posterior), nats: that of the base is 0."""
        return posterior.log_normalizer()

    def given_hyperparameters(self, statistics: np.ndarray) -> FlatFamily:
        """The density of the base's family that hyperparameters of these statistics make of it."""
        return self.base + statistics

    def leaves_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """Whether statistics leave hyperparameters to their prior: all are 0, or make no density without them."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return ~(np.asarray((self.base + statistics).is_valid) & statistics.any(axis=0))

    def with_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics, those of hyperparameters at their prior means added where there is no density without them."""
        of_prior = self.hyperprior.prior_statistics.reshape(-1, *(1 for _ in statistics.shape[1:]))
        return statistics + self.leaves_hyperparameters(statistics) * of_prior

    def expected_natural(self) -> np.ndarray:
        """Expected natural parameters where the hyperparameters are at their prior means, (n_cells, ...)."""
        return (self.base + self.with_hyperparameters(np.zeros(self.coordinates.shape))).expected_natural()

    def natural(self, point: Any) -> np.ndarray:
        """Natural parameters of a point, (n_cells, ...)."""
        return self.base.natural(point)

    def mode(self, basis: str = "natural") -> Any:
        """The mode where the hyperparameters are at their prior means."""
        return (self.base + self.with_hyperparameters(np.zeros(self.coordinates.shape))).mode(basis)

    def most_likely(self, statistics: np.ndarray) -> Any:
        """The point at which complete data with these statistics are most likely, whatever the prior."""
        return self.base.most_likely(statistics)

    def natural_of_most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Natural parameters of the most likely point, whatever the prior."""
        return self.base.natural_of_most_likely(statistics)

    def are_spikes(self, statistics: np.ndarray) -> np.ndarray | None:
        """Which components maximum likelihood lets grow without limit: those of the base."""
        return self.base.are_spikes(statistics)

    def with_exact_zeros(self, point: Any) -> Any:
        """The most likely point with probabilities that are on their way to 0 set to exactly 0."""
        return self.base.with_exact_zeros(point)

    def log_density(self, point: Any, basis: str = "natural") -> np.ndarray:
        """Logarithm of the base at a point, nats, to which ln Z of the hyperparameters is to be added."""
        natural = self.natural(point)
        density = self._inner(self._like(natural), natural)
        return density if basis == "natural" else density + self.base._log_natural_measure(point)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> Any:
        """A draw of the parameters: of the hyperparameters first, then of the parameters given these."""
        return (self.base + self.hyperprior.draw_from_prior(self.coordinates, rng)).sample(rng)

    def to_unconstrained(self, point: Any) -> np.ndarray:
        """Coordinates of a point that range over all of space, (n_free_parameters, ...)."""
        return self.base.to_unconstrained(point)

    def from_unconstrained(self, free: np.ndarray) -> Any:
        """The point with these coordinates."""
        return self.base.from_unconstrained(free)

    def from_natural(self, natural: np.ndarray) -> Any:
        """The point with these natural parameters."""
        return self.base.from_natural(natural)

    def jacobian(self, point: Any) -> np.ndarray:
        """Derivatives of natural parameters by unconstrained coordinates, (n_cells, n_free_parameters)."""
        return self.base.jacobian(point)

    def information(self, point: Any, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus second derivatives of coordinates . natural(point) by unconstrained coordinates."""
        return self.base.information(point, coordinates, free)

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions of the base's coordinates."""
        return self.base.directions(coordinates)

    @property
    def probability_shift(self) -> np.ndarray:
        """What coordinates become less, or more, where the density is with respect to the parameters, (n_cells,)."""
        return self.base.probability_shift

    @staticmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        return FlatFamily._inner(statistics, natural)
