r"""Dirichlet tables whose strength is hidden: a mixture over concentrations, one of which all rows of a table share.

Table j has one of S vectors of concentrations, each as probable as the others, and given it its rows are independent:

.. math:: p(\theta_j) = \frac1S \sum_s \mathrm{Dir}(\theta_j \mid a_{js}).

Given s a Dirichlet distribution is conjugate, and so the mixture is: counts n move each of its members on, and weigh
them anew. With :math:`A_s` the log normalizer of a member, all its rows together,

.. math::

    A(n) = \sum_j \ln \frac1S \sum_s e^{L_{js}(n)}, \quad L_{js}(n) = A_s(a_{js} + n) - A_s(a_{js}), \qquad
    q_j(s \mid n) \propto e^{L_{js}(n)}, \qquad \nabla A = \sum_s q_j(s \mid n)\, \nabla A_s(a_{js} + n).

With :math:`a_{js} = s / (q_j r_j)` of a table of :math:`q_j` rows and :math:`r_j` states this is the locally averaged
Bayesian Dirichlet score of graphs (Cano et al. 2013): q(s) stays in one block with q(theta), so that nothing is lost by
a factorization, and complete data have their evidence in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Self

import numpy as np
from scipy.special import betainc

from skvbem._lazy import cached_property
from skvbem._numerics import digamma, log_gamma, log_rising, log_sum_exp, safe_log, times_log
from skvbem.errors import NoInteriorModeError
from skvbem.families.base import ConjugateFamily
from skvbem.families.dirichlet import Dirichlet, EqualConcentration
from skvbem.families.parallel_generator import ParallelGenerator

#: Equivalent sample sizes of a table under the locally averaged score. Uniform columns want the largest, deterministic
#: ones the smallest; four values between two of them change nothing.
EQUIVALENT_SAMPLE_SIZES = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0)
# Halvings of an interval of probabilities, and turns of a mode, which end where floats do.
_N_HALVINGS, _N_TURNS = 60, 500


@dataclass(frozen=True, eq=False)
class DirichletMixture(ConjugateFamily):
    """Tables of Dirichlet rows in one flat block, each with one of several vectors of concentrations, which is hidden.

    Parameters
    ----------
    coordinates : ndarray of shape (n_cells, ...)
        The least concentration of each cell, plus counts; all > 0.
    alternatives : ndarray of shape (n_alternatives, n_cells)
        Concentrations before any counts, all > 0.
    row_starts : ndarray of shape (n_rows + 1,)
        First cell of each distribution, and the end.
    table_starts : ndarray of shape (n_tables + 1,)
        First row of each table, and the end.

    Examples
    --------
    A table of two rows whose concentrations are 1/16 or 64 each; rows that differ tell that they are small:

    >>> import numpy as np
    >>> from skvbem.families import DirichletMixture
    >>> prior = DirichletMixture.from_tables([[np.full((2, 2), 1 / 16), np.full((2, 2), 64.0)]])
    >>> posterior = prior + np.array([9.0, 1, 0, 8])
    >>> posterior.responsibilities.round(3).ravel().tolist()
    [0.995, 0.005]
    >>> posterior.mean().round(2).tolist()
    [0.89, 0.11, 0.01, 0.99]
    """

    coordinates: np.ndarray
    alternatives: np.ndarray
    row_starts: np.ndarray
    table_starts: np.ndarray

    @classmethod
    def from_tables(cls, tables) -> Self:
        """The block of tables, each a sequence of arrays of concentrations (n_rows, n_states), its alternatives."""
        arrays = [np.asarray(table, dtype=float) for table in tables]
        alternatives = np.concatenate([each.reshape(len(each), -1) for each in arrays], axis=1)
        n_states = np.concatenate([np.full(each[0].size // each.shape[-1], each.shape[-1]) for each in arrays])
        rows = np.cumsum([0, *(each[0].size // each.shape[-1] for each in arrays)])
        starts = np.concatenate([[0], np.cumsum(n_states)]).astype(np.int64)
        return cls(alternatives.min(axis=0), alternatives, starts, rows.astype(np.int64))

    # Statistics -------------------------------------------------------------------------------------------------------

    def __add__(self, statistics: np.ndarray) -> Self:
        return replace(self, coordinates=self._like(statistics) + statistics)

    def statistics_above(self, prior: Self) -> np.ndarray:
        """Counts added to `prior`, of the shape of the coordinates."""
        return self.coordinates - prior._like(self.coordinates)

    @property
    def n_free_parameters(self) -> int:
        """Number of free probabilities: cells less one per row. The strengths are no parameters of the data."""
        return self._least.n_free_parameters

    @property
    def n_rows(self) -> int:
        """Number of distributions."""
        return len(self.row_starts) - 1

    @property
    def is_valid(self) -> np.ndarray:
        """True where all concentrations are positive; of the shape of the batch."""
        return self._least.is_valid

    @property
    def signed(self) -> np.ndarray:
        """No statistic is negative."""
        return self._least.signed

    def row_sums(self, cells: np.ndarray) -> np.ndarray:
        """Sums over each row, (n_rows, ...)."""
        return self._least.row_sums(cells)

    def per_cell(self, rows: np.ndarray) -> np.ndarray:
        """The value of its row at each cell, (n_cells, ...)."""
        return self._least.per_cell(rows)

    # The log normalizer -----------------------------------------------------------------------------------------------

    def log_normalizer(self) -> np.ndarray:
        """A, nats: the log evidence of all counts so far."""
        return (log_sum_exp(self._log_evidences) - np.log(len(self.alternatives))).sum(axis=0)

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + counts) - A(self), nats: the locally averaged score of counts that come on top of those so far."""
        before = self._log_evidences
        before = before.reshape(before.shape + (1,) * (np.ndim(statistics) - self.coordinates.ndim))
        rises = self._rises(self._members(self._like(statistics)), np.asarray(statistics, dtype=float))
        return (log_sum_exp(before + rises) - log_sum_exp(before + np.zeros_like(rises))).sum(axis=0)

    @cached_property
    def responsibilities(self) -> np.ndarray:
        """q(s), the probability of each alternative of each table, (n_alternatives, n_tables, ...)."""
        return np.exp(self._log_responsibilities)

    def expected_natural(self) -> np.ndarray:
        """E[ln theta], averaged over q(s), nats."""
        members = self._members(self.coordinates)
        within = digamma(members) - self._rows_at_cells(digamma(self._by_row(members)))
        return (self._at_cells(self.responsibilities) * within).sum(axis=0)

    def mean(self) -> np.ndarray:
        """E[theta]: the predictive distribution of the next draw."""
        members = self._members(self.coordinates)
        means = members / self._rows_at_cells(self._by_row(members))
        return (self._at_cells(self.responsibilities) * means).sum(axis=0)

    def center(self) -> np.ndarray:
        """The mean."""
        return self.mean()

    def expected_concentration(self) -> np.ndarray:
        """Concentrations, counts so far included, averaged over q(s), (n_cells, ...)."""
        return (self._at_cells(self.responsibilities) * self._members(self.coordinates)).sum(axis=0)

    def with_known_hyperparameters(self) -> Dirichlet:
        """The Dirichlet distributions of the alternative that is the most probable of each table."""
        best = self._log_responsibilities.argmax(axis=0)
        return Dirichlet(self._chosen(best), self.row_starts)

    def quantiles(self, probability: float) -> np.ndarray:
        """Quantiles of every probability by itself, (n_cells, ...): those of mixtures of Beta distributions."""
        members, weights = self._members(self.coordinates), self._at_cells(self.responsibilities)
        rest = self._rows_at_cells(self._by_row(members)) - members
        low, high = np.zeros(self.coordinates.shape), np.ones(self.coordinates.shape)
        alone = self.per_cell(np.diff(self.row_starts)) == 1
        for _ in range(_N_HALVINGS):
            middle = (low + high) / 2
            is_below = (weights * betainc(members, np.maximum(rest, 1e-300), middle)).sum(axis=0) < probability
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        low[alone] = high[alone] = 1.0
        return (low + high) / 2

    # Points -----------------------------------------------------------------------------------------------------------

    def natural(self, point: np.ndarray) -> np.ndarray:
        """Natural parameters of a point: ln theta."""
        return safe_log(point)

    def mode(self, basis: str = "natural") -> np.ndarray:
        """A point of highest density in the softmax coordinates, to which turns lead from the mean.

        In turns, alternatives are weighed at a point, and the point is the mean at their average: each raises it.

        Raises
        ------
        NoInteriorModeError
            In the probability basis, where alternatives below 1 have none.
        """
        if basis != "natural":
            raise NoInteriorModeError(
                "A mixture of Dirichlet distributions has no interior mode in the probability basis as long as one of "
                "its members has a concentration below 1. Use the natural basis, or one number per cell as prior."
            )
        point, members = self.mean(), self._members(self.coordinates)
        for _ in range(_N_TURNS):
            terms = self._log_densities(members, point)
            weights = np.exp(terms - log_sum_exp(terms))
            pooled = (self._at_cells(weights) * members).sum(axis=0)
            before, point = point, pooled / self.per_cell(self.row_sums(pooled))
            if np.abs(point - before).max(initial=0.0) < 1e-15:
                break
        return point

    def most_likely(self, statistics: np.ndarray) -> np.ndarray:
        """Relative frequencies of the counts, of their shape; uniform in rows without any."""
        return self._least.most_likely(statistics)

    def with_exact_zeros(self, point: np.ndarray) -> np.ndarray:
        """The most likely point with probabilities that are on their way to 0 set to exactly 0."""
        return self._least.with_exact_zeros(point)

    def log_density(self, point: np.ndarray, basis: str = "natural") -> np.ndarray:
        """Log density at a point, nats, summed over tables, in the softmax or in the probability basis."""
        members = self._members(self._like(point))
        terms = self._log_densities(members, point, 0.0 if basis == "natural" else 1.0)
        return reduce(np.logaddexp, terms).sum(axis=0)

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """A draw of all rows: of the alternative of each table first, then of its rows."""
        return Dirichlet(self._drawn(rng), self.row_starts).sample(rng)

    def draw_natural(self, rng: ParallelGenerator) -> np.ndarray:
        """ln theta of a draw of all rows, (n_cells, n_members): none is minus infinity."""
        rng.streams_of(self.coordinates.shape)
        return Dirichlet(self._drawn(rng), self.row_starts).draw_natural(rng)

    def to_unconstrained(self, point: np.ndarray) -> np.ndarray:
        """Softmax coordinates of each row."""
        return self._least.to_unconstrained(point)

    def from_unconstrained(self, free: np.ndarray) -> np.ndarray:
        """The point with these softmax coordinates."""
        return self._least.from_unconstrained(free)

    def from_natural(self, natural: np.ndarray) -> np.ndarray:
        """The point with these logarithms."""
        return self._least.from_natural(natural)

    def jacobian(self, point: np.ndarray) -> np.ndarray:
        """Derivatives of ln theta: 1 for the cell itself, less theta, within each row."""
        return self._least.jacobian(point)

    def information(self, point: np.ndarray, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus second derivatives of coordinates . ln theta by softmax coordinates."""
        return self._least.information(point, coordinates, free)

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions of the log weights of cells, inside of all with counts, in each row against the largest."""
        return self._least.directions(coordinates)

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates: -1 in every cell, but 0 in rows of one cell, which are no parameters."""
        return self._least.probability_shift

    # Alternatives, tables and rows ------------------------------------------------------------------------------------

    @cached_property
    def _least(self) -> Dirichlet:
        """The rows at the least concentrations: what alternatives have no say in, such as the coordinates of points."""
        return Dirichlet(self.coordinates, self.row_starts)

    def _members(self, coordinates: np.ndarray) -> np.ndarray:
        """Concentrations of all alternatives at coordinates, (n_alternatives, n_cells, ...)."""
        above = self.alternatives - self.alternatives.min(axis=0)
        return coordinates + above.reshape(above.shape + (1,) * (coordinates.ndim - 1))

    def _like(self, statistics: np.ndarray) -> np.ndarray:
        """Coordinates with as many axes as the statistics have."""
        extra = np.ndim(statistics) - self.coordinates.ndim
        return self.coordinates.reshape(self.coordinates.shape + (1,) * max(extra, 0))

    @cached_property
    def _log_evidences(self) -> np.ndarray:
        """L, the log evidence of the counts so far under each alternative, (n_alternatives, n_tables, ...), nats."""
        counts = self.coordinates - self.alternatives.min(axis=0).reshape(-1, *(1 for _ in self.coordinates.shape[1:]))
        shape = self.alternatives.shape + (1,) * (self.coordinates.ndim - 1)
        return self._rises(self.alternatives.reshape(shape), counts)

    @property
    def _log_responsibilities(self) -> np.ndarray:
        return self._log_evidences - log_sum_exp(self._log_evidences)

    def _rises(self, members: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Rises of the log normalizer of each alternative by counts, (n_alternatives, n_tables, ...), nats."""
        rows = log_rising(self._by_row(members), self.row_sums(counts))
        return self._by_table(self._by_row(log_rising(members, counts)) - rows)

    def _log_densities(self, members: np.ndarray, point: np.ndarray, lowered_by: float = 0.0) -> np.ndarray:
        """ln of q(s) times the density of each alternative at a point, (n_alternatives, n_tables, ...), nats."""
        log_q = self._log_responsibilities
        log_q = log_q.reshape(log_q.shape + (1,) * (members.ndim - log_q.ndim))
        normalizer = self._by_row(log_gamma(members)) - log_gamma(self._by_row(members))
        powers = times_log(*np.broadcast_arrays(members - lowered_by, safe_log(point)))
        return log_q + self._by_table(self._by_row(powers) - normalizer)

    def _drawn(self, rng: np.random.Generator | ParallelGenerator) -> np.ndarray:
        """Concentrations of an alternative drawn from q(s) for each table, (n_cells, ...)."""
        reached = np.cumsum(self.responsibilities, axis=0)
        drawn = rng.random(reached.shape[1:])
        return self._chosen((reached[:-1] < drawn * reached[-1]).sum(axis=0))

    def _chosen(self, which: np.ndarray) -> np.ndarray:
        """Concentrations of one alternative for each table, (n_cells, ...)."""
        members = self._members(self.coordinates)
        return np.take_along_axis(members, self._at_cells(which[None]), axis=0)[0]

    def _by_row(self, members: np.ndarray) -> np.ndarray:
        return np.add.reduceat(members, self.row_starts[:-1], axis=1)

    def _by_table(self, rows: np.ndarray) -> np.ndarray:
        return np.add.reduceat(rows, self.table_starts[:-1], axis=1)

    def _rows_at_cells(self, rows: np.ndarray) -> np.ndarray:
        return np.repeat(rows, np.diff(self.row_starts), axis=1)

    def _at_cells(self, tables: np.ndarray) -> np.ndarray:
        """Values of tables at their cells, (n_alternatives, n_cells, ...)."""
        return np.repeat(tables, np.diff(self.row_starts[self.table_starts]), axis=1)

    @staticmethod
    def _inner(statistics: np.ndarray, natural: np.ndarray) -> np.ndarray:
        return times_log(statistics, natural).sum(axis=0)


@dataclass(frozen=True)
class AveragedConcentration:
    """Concentrations that share out one of several totals among the cells of a table, each as probable as the others.

    Parameters
    ----------
    totals : tuple of float
        Counts, > 0.

    Examples
    --------
    >>> from skvbem.families.dirichlet_mixture import AveragedConcentration
    >>> AveragedConcentration((1.0, 8.0)).table((2, 2)).tolist()
    [[[0.25, 0.25], [0.25, 0.25]], [[2.0, 2.0], [2.0, 2.0]]]
    """

    totals: tuple[float, ...] = EQUIVALENT_SAMPLE_SIZES

    @property
    def alternatives(self) -> tuple[EqualConcentration, ...]:
        """One of each total."""
        return tuple(EqualConcentration(total, "table") for total in self.totals)

    def table(self, shape: Sequence[int]) -> np.ndarray:
        """The concentrations of a table of this shape, (n_alternatives, *shape)."""
        return np.stack([each.table(shape) for each in self.alternatives])
