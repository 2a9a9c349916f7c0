r"""Conjugate exponential families: what each of them defines, and what all of them get for it.

A member of a family is :math:`p(\theta \mid \eta, \nu) = h(\eta, \nu)\, g(\theta)^\eta e^{\phi(\theta)^\top \nu}`
[Beal (2.88)]. Its fields are held in *additive* coordinates, so that a posterior is ``prior + statistics``
[Beal (2.98), (2.99)]. With :math:`A = -\ln h` everything else follows from A and its gradient, the expected natural
parameters :math:`(\langle\ln g\rangle, \langle\phi\rangle)` [Beal (2.89), (2.95)]:

.. math::

    \mathrm{KL}(q \,\|\, p) = (\eta_q - \eta_p)^\top \nabla A(q) - [A(q) - A(p)], \qquad
    \ln p(\text{complete data}) = A(\text{prior} + \text{statistics}) - A(\text{prior}).

The difference of A is asked for as such (`log_normalizer_increment`), because as a difference of two large numbers it
would lose the digits that matter.

A density stands with respect to a reference measure. A family's own one ("natural") is that in which the density is
:math:`e^{\text{coordinates}^\top \text{natural}(\theta) - A}`; the other ("probability") is that of the parameters as
one writes them: probabilities, rates, means and precisions. `to_unconstrained` gives coordinates in which the natural
measure is the plain volume.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Self

import numpy as np
from scipy.linalg import block_diag

from skvbem._lazy import cached_property
from skvbem._numerics import times_log
from skvbem.errors import NoInteriorModeError
from skvbem.families.hyperpriors import Hyperprior, hyperprior_of_blocks
from skvbem.families.parallel_generator import ParallelGenerator

#: Counts that are as good as none: a probability or a rate with fewer stands at the edge of the parameters.
EDGE = 0.01
#: Share of its largest value, one over the floor of variances, from which a precision counts as stopped there.
AT_FLOOR = 0.999


class ConjugateFamily(ABC):
    """One or many members of a conjugate family, an immutable value with batch axes last."""

    #: Coordinates to which statistics are added, (n_cells, ...).
    coordinates: np.ndarray
    #: Of hyperparameters that are hidden variables themselves; see `skvbem.families.hierarchical`.
    hyperprior: Hyperprior | None = None

    @abstractmethod
    def __add__(self, statistics: np.ndarray) -> Self:
        """The posterior of this prior after complete data with these statistics [Beal (2.98), (2.99)]."""

    @abstractmethod
    def statistics_above(self, prior: Self) -> np.ndarray:
        """The sufficient statistics that were added to `prior` to give this posterior."""

    @property
    @abstractmethod
    def n_free_parameters(self) -> int:
        """Dimension of the parameters."""

    @property
    @abstractmethod
    def is_valid(self) -> np.ndarray:
        """True where these are hyperparameters of a density, as extrapolated ones may not be; of the batch's shape."""

    @property
    @abstractmethod
    def signed(self) -> np.ndarray:
        """Boolean array of the statistics that may be negative, (n_cells,)."""

    @abstractmethod
    def log_normalizer(self) -> np.ndarray:
        """A = -ln h, nats, summed over the block; of the shape of the batch."""

    @abstractmethod
    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats, without cancellation; of the shape of the batch."""

    @abstractmethod
    def expected_natural(self) -> np.ndarray:
        """The gradient of A: expected natural parameters [Beal (2.95)]."""

    @abstractmethod
    def natural(self, point: Any) -> np.ndarray:
        """Natural parameters of a point, one array of the shape of the coordinates: ln g and phi, cell by cell."""

    @abstractmethod
    def mode(self, basis: str = "natural") -> Any:
        """The point of highest density, with respect to the natural measure or to the parameters themselves."""

    def center(self) -> Any:
        """The point that stands for a density in reports: the natural mode, unless a family has another."""
        return self.mode("natural")

    @abstractmethod
    def most_likely(self, statistics: np.ndarray) -> Any:
        """The point at which complete data with these statistics are most likely, whatever the prior."""

    def natural_of_most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Natural parameters of the most likely point, of the shape of the statistics."""
        return self.natural(self.most_likely(statistics))

    def are_spikes(self, statistics: np.ndarray) -> np.ndarray | None:
        """Boolean array of the components whose likelihood has no bound, (n_components, ...); None if none ever has.

        Those whose variance in some direction is at its floor, or that stand on no more rows than they have columns.
        """
        return None

    def leaves_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """True where statistics leave hidden hyperparameters to their prior, of the shape of the batch."""
        return np.zeros(statistics.shape[1:], dtype=bool)

    def known_cells(self, alike: np.ndarray) -> np.ndarray:
        """Cells (n_cells,) of those that are alike in all completions which are statistics without the others."""
        return alike

    def with_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics with those of hidden hyperparameters, where there are any and a density needs them."""
        return statistics

    def with_exact_zeros(self, point: Any) -> Any:
        """The most likely point with probabilities that are on their way to 0 set to exactly 0."""
        return point

    @abstractmethod
    def log_density(self, point: Any, basis: str = "natural") -> np.ndarray:
        """Log density at a point, nats, with respect to the natural measure or to the parameters themselves."""

    @abstractmethod
    def sample(self, rng: np.random.Generator | ParallelGenerator) -> Any:
        """A draw of the parameters; of members along a last axis each from its own generator, if these are given."""

    def draws(self, n_draws: int, rng: np.random.Generator) -> Any:
        """Draws of the parameters of a single density, along a last axis."""
        return (self + np.zeros((len(self.coordinates), n_draws))).sample(rng)

    def draw_natural(self, rng: ParallelGenerator) -> np.ndarray:
        """Natural parameters of a draw of each member, of the shape of the coordinates: what chains go on from."""
        return self.natural(self.sample(rng))

    @abstractmethod
    def to_unconstrained(self, point: Any) -> np.ndarray:
        """Coordinates (n_free_parameters, ...) that range over all of space, in which the natural measure is volume."""

    @abstractmethod
    def from_unconstrained(self, free: np.ndarray) -> Any:
        """The point with these coordinates."""

    @abstractmethod
    def from_natural(self, natural: np.ndarray) -> Any:
        """The point with these natural parameters."""

    @abstractmethod
    def jacobian(self, point: Any) -> np.ndarray:
        """Derivatives of the natural parameters by the unconstrained coordinates at a point, (n_cells, n_free)."""

    @abstractmethod
    def information(self, point: Any, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus the second derivatives of coordinates . natural(point) by unconstrained coordinates.

        Parameters
        ----------
        point
            A single one.
        coordinates : ndarray of shape (n_cells,)
            Additive ones, such as those of a posterior.
        free : ndarray of int, shape (n,), optional
            Unconstrained coordinates to look at; all if None.

        Returns
        -------
        ndarray of shape (n, n)
        """

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Boolean arrays of the coordinates in which a point can move, and of those at the edge of the parameters.

        At an edge is a probability, or a rate, of less than `EDGE` counts: 0 as far as data tell.

        Parameters
        ----------
        coordinates : ndarray of shape (n_cells,)
            Additive ones, such as the statistics of maximum likelihood.

        Returns
        -------
        inside, edge : ndarray of shape (n_free_parameters, n)
            Directions of unconstrained coordinates.
        """
        return np.eye(self.n_free_parameters), np.zeros((self.n_free_parameters, 0))

    @property
    @abstractmethod
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates for the density with respect to the parameters themselves, (n_cells,).

        The natural density at shifted coordinates is proportional to the density with respect to the parameters.
        """

    def log_det_information(
        self, point: Any, coordinates: np.ndarray, free: np.ndarray, diagonal: bool = False
    ) -> float:
        """ln of the determinant of `information` among some unconstrained coordinates; NaN if it is not positive.

        With `diagonal` of its diagonal alone.
        """
        if diagonal:
            entries = np.diag(self.information(point, coordinates, free))
            return float(np.log(entries).sum()) if np.all(entries > 0) else np.nan
        sign, log_det = np.linalg.slogdet(self.information(point, coordinates, free))
        return float(log_det) if sign > 0 else np.nan

    def log_density_as_prior(self, point: Any, basis: str = "natural") -> np.ndarray:
        """Log density of a prior at a point, nats, hidden hyperparameters integrated out."""
        return self.log_density(point, basis) + self.log_normalizer_of_hyperparameters(self.natural(point))

    def log_normalizer_of_hyperparameters(self, natural: np.ndarray) -> np.ndarray:
        """ln Z of hidden hyperparameters at natural parameters (n_cells, ...), nats; 0 where none are hidden.

        At a point it is what the logarithm of the base lacks of that of the prior density.
        """
        return np.zeros(natural.shape[1:]) if self.hyperprior is None else self.hyperprior.expect(natural)[1]

    def hyperparameters(self, natural: np.ndarray) -> np.ndarray:
        """Expected statistics of hidden hyperparameters at natural parameters, of their shape; 0 if none are hidden."""
        return np.zeros(natural.shape) if self.hyperprior is None else self.hyperprior.expect(natural)[0]

    def given_hyperparameters(self, statistics: np.ndarray) -> ConjugateFamily:
        """The prior given hyperparameters of these statistics (n_cells,); itself if none are hidden.

        With hidden ones complete data have no evidence in closed form, given them they have.
        """
        return self

    def for_run(self) -> ConjugateFamily:
        """The prior of one run, which may remember what the run has reached; itself where nothing is remembered."""
        return self

    def with_known_hyperparameters(self) -> ConjugateFamily:
        """The prior whose hidden hyperparameters are known, and at their prior means; itself if none are hidden."""
        return self.given_hyperparameters(self.with_hyperparameters(np.zeros(self.coordinates.shape)))

    def kl(self, other: Self, expected_natural: np.ndarray | None = None) -> np.ndarray:
        """KL(self || other), nats, summed over the block; the expected natural parameters may be given if known."""
        added = self.statistics_above(other)
        natural = self.expected_natural() if expected_natural is None else expected_natural
        return self._inner(added, natural) - other.log_normalizer_gain(self, added)

    def log_normalizer_gain(self, posterior: Self, added: np.ndarray) -> np.ndarray:
        """A(posterior) - A(self), nats, of the posterior after statistics that were added; of the batch's shape."""
        return self.log_normalizer_increment(added)

    def log_evidence(self, statistics: np.ndarray) -> np.ndarray:
        """Log marginal likelihood of complete data with these statistics under this prior, nats."""
        return self.log_normalizer_increment(statistics)

    def log_correction(self, statistics: np.ndarray) -> Callable[[np.ndarray], Any]:
        """ln of what densities of draws after statistics (n_cells, n) are more than evidences of these tell, nats.

        A function of natural parameters (n_cells, n_points) that returns (n, n_points), or 0: draws have the density
        exp(statistics . natural) / evidence over that of the prior, where it is a closed form.
        """
        return lambda natural: 0.0

    @staticmethod
    @abstractmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """Statistics times natural parameters, summed over the block, with 0 x (-inf) = 0."""


@dataclass(frozen=True, eq=False)
class FlatFamily(ConjugateFamily):
    """A family held as one flat array of additive coordinates.

    Parameters
    ----------
    coordinates : ndarray of shape (n_cells, ...)
        What statistics are added to; further axes, such as restarts, come last.
    """

    coordinates: np.ndarray

    def __add__(self, statistics: np.ndarray) -> Self:
        return replace(self, coordinates=self._like(statistics) + statistics)

    def statistics_above(self, prior: Self) -> np.ndarray:
        """Statistics added to `prior`, of the shape of the coordinates."""
        return self.coordinates - prior._like(self.coordinates)

    def log_density(self, point: Any, basis: str = "natural") -> np.ndarray:
        """Log density at a point, nats, summed over members.

        Parameters
        ----------
        point
            As from `mode` or `sample`.
        basis : {"natural", "probability"}
            With respect to the natural measure, or to the parameters themselves.
        """
        natural = self.natural(point)
        density = self._inner(self._like(natural), natural) - self.log_normalizer()
        return density if basis == "natural" else density + self._log_natural_measure(point)

    @abstractmethod
    def _log_natural_measure(self, point: Any) -> np.ndarray:
        """Ln of the density of the natural measure with respect to the parameters themselves."""

    def _like(self, statistics: np.ndarray) -> np.ndarray:
        """Coordinates with as many axes as the statistics have."""
        extra = np.ndim(statistics) - self.coordinates.ndim
        return self.coordinates.reshape(self.coordinates.shape + (1,) * max(extra, 0))

    @staticmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        return (statistics * natural).sum(axis=0)


def principal_submatrix(matrix: np.ndarray, free: np.ndarray | None) -> np.ndarray:
    """The principal submatrix of a square matrix at some positions; the matrix itself for None."""
    return matrix if free is None else matrix[np.ix_(free, free)]


def no_interior_mode(family: str, named: str, value: float, least: str) -> NoInteriorModeError:
    """The error of a density whose mode with respect to the parameters themselves is not inside."""
    return NoInteriorModeError(
        f"A {family} distribution with {named} {value:.6g} has no interior mode in the probability basis, which needs "
        f"{least}. Use the natural basis, or a stronger prior."
    )


@dataclass(frozen=True, eq=False)
class Product(ConjugateFamily):
    """A product of independent blocks; cells of statistics and natural parameters stand block after block.

    Parameters
    ----------
    blocks : tuple of ConjugateFamily
    n_cells : tuple of int
        Cells of each block.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.families import Dirichlet, Gamma, Product
    >>> prior = Product((Dirichlet.from_rows([[1, 1]]), Gamma.from_parameters([[1.0]], [[1.0]])), (2, 2))
    >>> posterior = prior + np.array([3, 1, 12, 4])
    >>> [block.mean().tolist() if k == 0 else block.mean.tolist() for k, block in enumerate(posterior.blocks)]
    [[0.6666666666666666, 0.3333333333333333], [[2.6]]]
    """

    blocks: tuple[ConjugateFamily, ...]
    n_cells: tuple[int, ...]

    def split(self, cells: np.ndarray) -> list[np.ndarray]:
        """The cells of each block."""
        ends = accumulate(self.n_cells)
        return [cells[end - n : end] for n, end in zip(self.n_cells, ends)]

    def __add__(self, statistics: np.ndarray) -> Self:
        added = zip(self.blocks, self.split(statistics))
        return type(self)(tuple(block + cells for block, cells in added), self.n_cells)

    def for_run(self) -> Self:
        """The product of the priors of one run; itself if none of them remembers anything."""
        blocks = tuple(block.for_run() for block in self.blocks)
        return self if all(one is other for one, other in zip(blocks, self.blocks)) else replace(self, blocks=blocks)

    def ending_with(self, last: ConjugateFamily, statistics: np.ndarray) -> Self:
        """The product with statistics (n_cells, ...) added, of which it is known what the last block becomes."""
        added = zip(self.blocks[:-1], self.split(statistics))
        return type(self)((*(block + cells for block, cells in added), last), self.n_cells)

    def statistics_above(self, prior: Self) -> np.ndarray:
        """The sufficient statistics that were added to `prior`, (n_cells, ...)."""
        return np.concatenate([mine.statistics_above(other) for mine, other in zip(self.blocks, prior.blocks)])

    @property
    def coordinates(self) -> np.ndarray:  # type: ignore[override]
        """Additive coordinates of all blocks, (n_cells, ...)."""
        return np.concatenate([block.coordinates for block in self.blocks])

    @cached_property
    def hyperprior(self) -> Hyperprior | None:  # type: ignore[override]
        """Hidden hyperparameters of all blocks, None if there are none."""
        ends = np.cumsum(self.n_cells).tolist()
        parts = [
            (slice(end - n, end), block.hyperprior)
            for end, n, block in zip(ends, self.n_cells, self.blocks)
            if block.hyperprior is not None
        ]
        return hyperprior_of_blocks(parts, ends[-1])

    def leaves_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """True where statistics leave hyperparameters of some block to their prior, of the shape of the batch."""
        parts = zip(self.blocks, self.split(statistics))
        return np.any([block.leaves_hyperparameters(u) for block, u in parts], axis=0)

    def known_cells(self, alike: np.ndarray) -> np.ndarray:
        """Cells of those that are alike which are statistics without the others, block by block."""
        return np.concatenate([block.known_cells(u) for block, u in zip(self.blocks, self.split(alike))])

    def with_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics with those of hidden hyperparameters, where there are any and a density needs them."""
        parts = zip(self.blocks, self.split(statistics))
        return np.concatenate([block.with_hyperparameters(u) for block, u in parts])

    def given_hyperparameters(self, statistics: np.ndarray) -> Self:
        """The product of the blocks given hyperparameters of these statistics."""
        parts = zip(self.blocks, self.split(statistics))
        return type(self)(tuple(block.given_hyperparameters(u) for block, u in parts), self.n_cells)

    @property
    def n_free_parameters(self) -> int:
        """Number of free parameters of all blocks."""
        return sum(block.n_free_parameters for block in self.blocks)

    @property
    def is_valid(self) -> np.ndarray:
        """True where all blocks are valid; of the shape of the batch."""
        return np.all([block.is_valid for block in self.blocks], axis=0)

    @property
    def signed(self) -> np.ndarray:
        """Boolean array of the statistics that may be negative."""
        return np.concatenate([block.signed for block in self.blocks])

    def log_normalizer(self) -> np.ndarray:
        """A, nats, summed over blocks."""
        return np.sum([block.log_normalizer() for block in self.blocks], axis=0)

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats, summed over blocks."""
        parts = zip(self.blocks, self.split(statistics))
        return np.sum([block.log_normalizer_increment(u) for block, u in parts], axis=0)

    def log_normalizer_gain(self, posterior: Self, added: np.ndarray) -> np.ndarray:
        """A(posterior) - A(self), nats, summed over blocks."""
        parts = zip(self.blocks, posterior.blocks, self.split(added))
        return np.sum([block.log_normalizer_gain(block_posterior, u) for block, block_posterior, u in parts], axis=0)

    def expected_natural(self) -> np.ndarray:
        """Expected natural parameters, (n_cells, ...)."""
        return np.concatenate([block.expected_natural() for block in self.blocks])

    def natural(self, point: tuple) -> np.ndarray:
        """Natural parameters of a point, (n_cells, ...)."""
        return np.concatenate([block.natural(part) for block, part in zip(self.blocks, point)])

    def mode(self, basis: str = "natural") -> tuple:
        """The mode of each block."""
        return tuple(block.mode(basis) for block in self.blocks)

    def center(self) -> tuple:
        """The center of each block."""
        return tuple(block.center() for block in self.blocks)

    def most_likely(self, statistics: np.ndarray) -> tuple:
        """The most likely point of each block."""
        return tuple(block.most_likely(u) for block, u in zip(self.blocks, self.split(statistics)))

    def natural_of_most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Natural parameters of the most likely point of each block, (n_cells, ...)."""
        parts = zip(self.blocks, self.split(statistics))
        return np.concatenate([block.natural_of_most_likely(u) for block, u in parts])

    def are_spikes(self, statistics: np.ndarray) -> np.ndarray | None:
        """Boolean array of the components whose likelihood has no bound in some block."""
        parts = [block.are_spikes(u) for block, u in zip(self.blocks, self.split(statistics))]
        spikes = [each for each in parts if each is not None]
        return np.any(np.broadcast_arrays(*spikes), axis=0) if spikes else None

    def with_exact_zeros(self, point: tuple) -> tuple:
        """The point of each block with probabilities that are on their way to 0 set to exactly 0."""
        return tuple(block.with_exact_zeros(part) for block, part in zip(self.blocks, point))

    def log_density(self, point: tuple, basis: str = "natural") -> np.ndarray:
        """Log density at a point, nats, summed over blocks."""
        return np.sum([block.log_density(part, basis) for block, part in zip(self.blocks, point)], axis=0)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> tuple:
        """A draw of each block."""
        return tuple(block.sample(rng) for block in self.blocks)

    def draws(self, n_draws: int, rng: np.random.Generator) -> tuple:
        """Draws of each block."""
        return tuple(block.draws(n_draws, rng) for block in self.blocks)

    def log_correction(self, statistics: np.ndarray) -> Callable[[np.ndarray], Any]:
        """The sum of the corrections of the blocks."""
        of_blocks = [block.log_correction(u) for block, u in zip(self.blocks, self.split(statistics))]
        return lambda natural: sum(of(cells) for of, cells in zip(of_blocks, self.split(natural)))

    def draw_natural(self, rng: ParallelGenerator) -> np.ndarray:
        """Natural parameters of a draw of each block, (n_cells, n_members)."""
        return np.concatenate([block.draw_natural(rng) for block in self.blocks])

    def to_unconstrained(self, point: tuple) -> np.ndarray:
        """Coordinates of all blocks, (n_free_parameters, ...)."""
        return np.concatenate([block.to_unconstrained(part) for block, part in zip(self.blocks, point)])

    def from_unconstrained(self, free: np.ndarray) -> tuple:
        """The point with these coordinates."""
        ends = np.cumsum([block.n_free_parameters for block in self.blocks])
        parts = np.split(free, ends[:-1])
        return tuple(block.from_unconstrained(part) for block, part in zip(self.blocks, parts))

    def from_natural(self, natural: np.ndarray) -> tuple:
        """The point of each block."""
        return tuple(block.from_natural(part) for block, part in zip(self.blocks, self.split(natural)))

    def jacobian(self, point: tuple) -> np.ndarray:
        """Derivatives of the natural parameters by the unconstrained coordinates, a diagonal of blocks."""
        return block_diag(*(block.jacobian(part) for block, part in zip(self.blocks, point)))

    def information(self, point: tuple, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus the second derivatives of coordinates . natural(point), a diagonal of blocks."""
        parts = zip(self.blocks, point, self.split(coordinates))
        return principal_submatrix(block_diag(*(block.information(part, cells) for block, part, cells in parts)), free)

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions of all blocks, each in its own coordinates."""
        parts = [block.directions(cells) for block, cells in zip(self.blocks, self.split(coordinates))]
        inside, edge = (block_diag(*(part[k] for part in parts)) for k in (0, 1))
        return inside, edge

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates for densities with respect to the parameters themselves, (n_cells,)."""
        return np.concatenate([block.probability_shift for block in self.blocks])

    @staticmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        return times_log(statistics, natural).sum(axis=0)
