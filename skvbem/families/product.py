"""Products of independent blocks: one flat array of cells for several families, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np
from scipy.linalg import block_diag

from skvbem._numerics import times_log
from skvbem.families.base import ConjugateFamily, principal_submatrix
from skvbem.families.hyperpriors import BlockHyperpriors, Hyperprior
from skvbem.families.parallel_generator import ParallelGenerator


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
        return BlockHyperpriors(parts, ends[-1]) if parts else None

    def leaves_hyperparameters(self, statistics: np.ndarray) -> np.ndarray:
        """True where statistics leave hyperparameters of some block to their prior, of the shape of the batch."""
        parts = zip(self.blocks, self.split(statistics))
        return np.any([block.leaves_hyperparameters(u) for block, u in parts], axis=0)

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
