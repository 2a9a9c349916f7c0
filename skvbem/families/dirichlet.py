r"""Dirichlet distributions in the ragged form: all tables of a network are one block.

Cells stand in one flat axis, cut into rows; a row is one distribution
:math:`p(\theta) = e^{-A(\lambda)} \prod_k \theta_k^{\lambda_k - 1}` with
:math:`A(\lambda) = \sum_k \ln\Gamma(\lambda_k) - \ln\Gamma(\sum_k \lambda_k)`. Further axes, such as restarts, come
after the cells, because every compiled loop runs over them innermost.

Priors that are equal in every cell of a table are named by `EqualConcentration`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

import numpy as np
from scipy.special import betaincinv

from skvbem._kernels._random import log_dirichlet
from skvbem._numerics import digamma, log_gamma, log_rising, safe_log, times_log
from skvbem.errors import NoInteriorModeError
from skvbem.families.base import EDGE, ConjugateFamily
from skvbem.families.parallel_generator import ParallelGenerator

_RESOLUTION = np.finfo(float).eps

# Logarithm of a probability that is next to none, from which a step still leads somewhere.
_LOWEST = -690.0


@dataclass(frozen=True, eq=False)
class Dirichlet(ConjugateFamily):
    """Independent Dirichlet distributions of any lengths, in one flat block.

    Parameters
    ----------
    concentration : ndarray of shape (n_cells, ...)
        Concentrations, counts, all > 0. Statistics (counts) add to them.
    row_starts : ndarray of shape (n_rows + 1,)
        First cell of each distribution, and the end.

    Examples
    --------
    A fair coin's prior and a die's, after counts:

    >>> import numpy as np
    >>> from skvbem.families import Dirichlet
    >>> prior = Dirichlet.from_rows([[1, 1], [1, 1, 1]])
    >>> posterior = prior + np.array([3, 1, 0, 2, 1])
    >>> posterior.mean().round(3).tolist()
    [0.667, 0.333, 0.167, 0.5, 0.333]
    >>> round(float(prior.log_evidence(np.array([3, 1, 0, 2, 1]))), 4)
    -6.3969
    """

    concentration: np.ndarray
    row_starts: np.ndarray

    @classmethod
    def from_rows(cls, rows) -> Self:
        """The block of distributions with these concentrations, one sequence per row."""
        starts = np.cumsum([0, *map(len, rows)])
        return cls(np.concatenate([np.asarray(row, dtype=float) for row in rows]), starts.astype(np.int64))

    def __add__(self, statistics: np.ndarray) -> Self:
        concentration = self._like(statistics) + statistics
        return type(self)(concentration, self.row_starts)

    @property
    def coordinates(self) -> np.ndarray:  # type: ignore[override]
        """The concentrations, to which counts are added."""
        return self.concentration

    def statistics_above(self, prior: Self) -> np.ndarray:
        """Counts added to `prior`, of the shape of the concentrations."""
        return self.concentration - prior._like(self.concentration)

    @property
    def n_rows(self) -> int:
        """Number of distributions."""
        return len(self.row_starts) - 1

    @property
    def n_free_parameters(self) -> int:
        """Number of free probabilities: cells less one per row."""
        return len(self.concentration) - self.n_rows

    @property
    def is_valid(self) -> np.ndarray:
        """True where all concentrations are positive; of the shape of the batch."""
        return np.asarray((self.concentration > 0).all(axis=0))

    @property
    def signed(self) -> np.ndarray:
        """No statistic is negative."""
        return np.zeros(len(self.concentration), dtype=bool)

    def row_sums(self, cells: np.ndarray) -> np.ndarray:
        """Sums over each row, (n_rows, ...)."""
        return np.add.reduceat(cells, self.row_starts[:-1], axis=0)

    def per_cell(self, rows: np.ndarray) -> np.ndarray:
        """Each row's value at each of its cells, (n_cells, ...)."""
        return np.repeat(rows, np.diff(self.row_starts), axis=0)

    def log_normalizer(self) -> np.ndarray:
        """A = sum ln Gamma(concentration) - ln Gamma(row sum), nats."""
        return log_gamma(self.concentration).sum(axis=0) - log_gamma(self.row_sums(self.concentration)).sum(axis=0)

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + counts) - A(self): the Bayesian Dirichlet score of the counts [CH (5)], real counts allowed."""
        prior = self._like(statistics)
        rows = log_rising(self.row_sums(prior), self.row_sums(statistics))
        return log_rising(prior, statistics).sum(axis=0) - rows.sum(axis=0)

    def expected_natural(self) -> np.ndarray:
        """E[ln theta] = psi(concentration) - psi(row sum), nats; sub-normalized once exponentiated."""
        return digamma(self.concentration) - self.per_cell(digamma(self.row_sums(self.concentration)))

    def mean(self) -> np.ndarray:
        """E[theta]: the predictive distribution of the next draw."""
        return self.concentration / self.per_cell(self.row_sums(self.concentration))

    def quantiles(self, probability: float) -> np.ndarray:
        """Quantiles of every probability by itself, (n_cells, ...)."""
        return beta_quantiles(self.concentration, self.per_cell(self.row_sums(self.concentration)), probability)

    def mode(self, basis: str = "natural") -> np.ndarray:
        """The point of highest density, in the basis asked for.

        Parameters
        ----------
        basis : {"natural", "probability"}
            Of the density with respect to the softmax coordinates (the mean; always interior), or to the probabilities.

        Raises
        ------
        NoInteriorModeError
            In the probability basis, if a concentration is 1 or less in a row of more than one cell.
        """
        if basis == "natural":
            return self.mean()
        above_one = self.concentration - 1.0
        alone = self.per_cell(np.diff(self.row_starts)) == 1
        if np.any(above_one[~alone] <= 0):
            worst = float(self.concentration[~alone].min())
            raise NoInteriorModeError(
                f"A Dirichlet distribution with a concentration of {worst:.6g} has no interior mode in the probability "
                "basis, which needs more than 1 everywhere. Use the natural basis, or a prior above 1."
            )
        above_one[alone] = 1.0
        return above_one / self.per_cell(self.row_sums(above_one))

    def most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Relative frequencies of the counts, of their shape; uniform in rows without any."""
        total = self.row_sums(statistics)
        if (total > 0).all():
            return statistics / self.per_cell(total)
        uniform = self.per_cell(1.0 / self.row_sums(np.ones(np.shape(statistics))))
        total = self.per_cell(total)
        return np.divide(statistics, total, out=uniform, where=total > 0)

    def with_exact_zeros(self, point: np.ndarray) -> np.ndarray:
        """The most likely point with probabilities below the square of the resolution of floats set to exactly 0.

        EM lets a probability that should be 0 fall further and further, but never to 0. What is below that square,
        5e-32, no data need whose weights are not as far apart: any that did would have expected more.
        """
        return np.where(point < _RESOLUTION**2, 0.0, point)

    def log_density(self, point: np.ndarray, basis: str = "natural") -> np.ndarray:
        """Log density at a point, nats, summed over rows, in the softmax or in the probability basis."""
        power = self._like(point) - (0.0 if basis == "natural" else 1.0)
        return times_log(power, safe_log(point)).sum(axis=0) - self.log_normalizer()

    def natural(self, point: np.ndarray) -> np.ndarray:
        """Natural parameters of a point: ln theta."""
        return safe_log(point)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """A draw of all rows; in logarithms inside, so that tiny concentrations give no 0/0.

        Parameters
        ----------
        rng : numpy.random.Generator or ParallelGenerator

        Returns
        -------
        ndarray of the shape of the concentrations
        """
        # ln Gamma(a, 1) = ln Gamma(a + 1, 1) + ln(U) / a
        logs = np.log(rng.standard_gamma(self.concentration + 1.0))
        logs += np.log1p(-rng.random(self.concentration.shape)) / np.maximum(self.concentration, 1e-300)
        logs -= self.per_cell(np.maximum.reduceat(logs, self.row_starts[:-1], axis=0))
        weights = np.exp(logs)
        return weights / self.per_cell(self.row_sums(weights))

    def draw_natural(self, rng: ParallelGenerator) -> np.ndarray:
        """ln theta of a draw of all rows, (n_cells, n_members): not through theta, so that none is minus infinity."""
        concentration = np.array(self.concentration, dtype=float, order="C")
        log_point = np.empty(concentration.shape)
        log_dirichlet(self.row_starts, concentration, rng.streams_of(log_point.shape), log_point)
        return log_point

    def to_unconstrained(self, point: np.ndarray) -> np.ndarray:
        """Softmax coordinates: ln theta_k - ln theta of the row's last cell, without the last cells."""
        last = self.row_starts[1:] - 1
        logs = safe_log(point)
        free = logs - self.per_cell(logs[last])
        return np.delete(free, last, axis=0)

    def from_unconstrained(self, free: np.ndarray) -> np.ndarray:
        """The point with these softmax coordinates."""
        last = self.row_starts[1:] - 1
        logs = np.zeros((len(self.concentration), *free.shape[1:]))
        inside = np.ones(len(logs), dtype=bool)
        inside[last] = False
        logs[inside] = free
        logs -= self.per_cell(np.maximum.reduceat(logs, self.row_starts[:-1], axis=0))
        weights = np.exp(logs)
        return weights / self.per_cell(self.row_sums(weights))

    def from_natural(self, natural: np.ndarray) -> np.ndarray:
        """The point with these logarithms, next to none of which is none."""
        return np.exp(np.maximum(natural, _LOWEST))

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """Derivatives of ln theta: 1 for the cell itself, less theta, within each row."""
        row_of, free = self._row_of, self._free_cells
        same = row_of[:, None] == row_of[free]
        return same * ((np.arange(len(point))[:, None] == free) - point[free])

    def information(self, point: np.ndarray, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Information of the softmax coordinates: the row's sum times (diag theta - theta theta'), row by row."""
        cells = self._free_cells if free is None else self._free_cells[free]
        row, theta = self._row_of[cells], point[cells]
        mass = self.row_sums(coordinates)[row]
        return (row[:, None] == row) * (np.diag(mass * theta) - (mass * theta)[:, None] * theta)

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions of the log weights of cells, inside of all with counts, in each row against the largest."""
        row_of = self._row_of
        velocities = np.zeros((self.n_free_parameters, len(row_of)))
        velocities[np.arange(self.n_free_parameters), self._free_cells] = 1.0
        last = self.row_starts[1:] - 1  # its weight is 1: it grows as all others fall
        velocities[:, last] = np.where(row_of[self._free_cells][:, None] == row_of[last], -1.0, 0.0)
        inside = coordinates >= EDGE
        largest = np.zeros(len(row_of), dtype=bool)
        for start, end in zip(self.row_starts[:-1], self.row_starts[1:]):
            largest[start + np.argmax(coordinates[start:end])] = True
        return velocities[:, inside & ~largest], velocities[:, ~inside & ~largest]

    def log_det_information(
        self, point: np.ndarray, coordinates: np.ndarray, free: np.ndarray, diagonal: bool = False
    ) -> float:
        """ln of the determinant of `information` among some coordinates; in whole rows from ln theta, no matrix."""
        cells, sizes = self._free_cells[free], np.diff(self.row_starts)
        rows = np.zeros(self.n_rows, dtype=bool)
        rows[self._row_of[cells]] = True
        mass = self.row_sums(coordinates)
        if np.any(mass[rows] <= 0):
            return np.nan
        if diagonal:
            return float(np.log(mass[self._row_of[cells]] * point[cells] * (1.0 - point[cells])).sum())
        if len(free) != (sizes[rows] - 1).sum():
            return super().log_det_information(point, coordinates, free)
        theta, mass = point[self.per_cell(rows)], mass[rows]
        return float(np.log(theta).sum() + (sizes[rows] - 1) @ np.log(mass))

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the concentrations: -1 in every cell, but 0 in rows of one cell, which are no parameters."""
        return np.where(self.per_cell(np.diff(self.row_starts)) == 1, 0.0, -1.0)

    @property
    def _row_of(self) -> np.ndarray:
        """The row of each cell."""
        return np.repeat(np.arange(self.n_rows), np.diff(self.row_starts))

    @property
    def _free_cells(self) -> np.ndarray:
        """All cells but the last of each row: those of the unconstrained coordinates."""
        return np.delete(np.arange(len(self.concentration)), self.row_starts[1:] - 1)

    def _like(self, statistics: np.ndarray) -> np.ndarray:
        """Concentrations with as many axes as the statistics have."""
        extra = np.ndim(statistics) - self.concentration.ndim
        return self.concentration.reshape(self.concentration.shape + (1,) * max(extra, 0))

    @staticmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        return times_log(statistics, natural).sum(axis=0)


def beta_quantiles(concentration: np.ndarray, total: np.ndarray, probability: float) -> np.ndarray:
    """Quantiles of one of several Dirichlet probabilities, a Beta variable; of the only one there is, 1.

    Parameters
    ----------
    concentration, total : ndarray
        Its own concentration, and the sum of all.
    probability : float
    """
    rest = total - concentration
    return np.where(rest > 0, betaincinv(concentration, np.where(rest > 0, rest, 1.0), probability), 1.0)


@dataclass(frozen=True)
class EqualConcentration:
    """A concentration spread evenly over the cells of a table.

    Parameters
    ----------
    total : float
        Counts, > 0.
    over : {"cell", "row", "table"}
        What gets so much in all: each cell, each distribution (row), or the table, as in BDeu.

    Examples
    --------
    >>> from skvbem.families.dirichlet import EqualConcentration
    >>> EqualConcentration(1.0, "table").table((2, 2))
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """

    total: float
    over: str

    @property
    def alternatives(self) -> tuple[EqualConcentration, ...]:
        """The one that there is; see `skvbem.families.dirichlet_mixture.AveragedConcentration`."""
        return (self,)

    def table(self, shape: Sequence[int]) -> np.ndarray:
        """The concentrations of a table of this shape, one distribution along the last axis."""
        return np.full(shape, self.total / {"cell": 1, "row": shape[-1], "table": prod(shape)}[self.over])
