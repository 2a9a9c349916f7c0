r"""The base of families of one integrated number.

A member is the joint prior of x > 0 and one parameter more, which is conjugate given x. Its density over the
unconstrained coordinates is :math:`\exp(\text{coordinates} \cdot \text{natural} - A)`, where two cells come before
those of the data. *prior* is the whole log density of the prior at a point; its coordinate is 1, and statistics add
nothing to it. *measure* is ln of the volume of unconstrained coordinates in the parameters themselves; its coordinate
is 0, and 1 in the density with respect to these.

Cells stand in one flat axis, ordered (component, cell, feature). Inside they are `Members`: cells (n_cells, n_members)
of all components, features and lanes, and the feature of each. Nodes are a last axis beside them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skvbem._lazy import cached_property
from skvbem._numerics import log_sum_exp
from skvbem.families.base import EDGE, FlatFamily, no_interior_mode, principal_submatrix
from skvbem.families.one_dimensional.trapezoid import REACH, Nodes, integrate, maximum
from skvbem.families.parallel_generator import ParallelGenerator

#: Number of the cells before those of the data: prior and measure.
N_PRIOR_CELLS = 2
# A maximum so near to the end of all logarithms is none.
_AT_END = 1e-3
# The logarithm of a parameter that is as good as 0.
_FREE_AT_EDGE = 600.0
# The largest float below 1.
_BELOW_ONE = 1 - 2.0**-53
# Doubles of the rows whose predictions are computed together, 8 MB.
_NUMBERS_AT_ONCE = 2**20


class Members(NamedTuple):
    """Cells of members, (n_cells, n_members) or with further axes, and the feature of each, (n_members,)."""

    cells: np.ndarray
    feature: np.ndarray

    def of(self, chosen: np.ndarray) -> Members:
        """Some of the members, with an axis for nodes."""
        return Members(self.cells.T[chosen].T[..., None], self.feature[chosen])

    def parameter(self, of_features: np.ndarray, like: np.ndarray) -> np.ndarray:
        """A parameter of each feature as that of each member, to broadcast to an array (n_members, ...)."""
        return of_features[self.feature].reshape(-1, *(1,) * (like.ndim - 1))


@dataclass(frozen=True, eq=False)
class OneDimensional(FlatFamily):
    """Independent priors of pairs of parameters, one for each component and feature.

    Parameters
    ----------
    coordinates : ndarray of shape (n_components * n_cells * n_features, ...)
        Of each member prior, measure, and the cells of the data; statistics add to them.
    n_features : int
    """

    coordinates: np.ndarray
    n_features: int

    #: The class of points: x, and the other parameter.
    point_type: ClassVar[type]
    #: Fields that are positive parameters of each feature.
    of_features: ClassVar[tuple[str, ...]]
    #: Name of the family in messages.
    name: ClassVar[str]

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Cells of each member."""

    @property
    def largest(self) -> np.ndarray:
        """The end of x, (n_features,)."""
        return np.full(self.n_features, np.inf)

    @property
    def most_free(self) -> float:
        """The largest coordinate of x of a most likely point."""
        return REACH

    @abstractmethod
    def _guess(self, members: Members) -> np.ndarray:
        """Coordinates of x near which modes of members with many data are, (n_members,); others may be NaN."""

    @abstractmethod
    def _log_mass(self, members: Members, t: np.ndarray) -> np.ndarray:
        """ln of the integral of exp(cells . natural) over the other parameter at t = ln x, nats."""

    @abstractmethod
    def _mean_natural(self, members: Members, nodes: Nodes) -> np.ndarray:
        """Expected natural parameters, (n_cells, n_members)."""

    @abstractmethod
    def _peak(self, members: Members, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest cells . natural at t = ln x, and the other parameter there."""

    @abstractmethod
    def _draw_other(
        self, members: Members, x: np.ndarray, rng: np.random.Generator | ParallelGenerator, shape: tuple[int, ...]
    ) -> np.ndarray:
        """The other parameter drawn given x, (n_members,); generators draw numbers of a shape (..., n_lanes)."""

    @abstractmethod
    def _natural(self, members: Members, x: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n_members) of a point."""

    @abstractmethod
    def _derivatives(self, members: Members, x: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First (2, n_cells, n_members) and second (2, 2, n_cells, n_members) derivatives of natural parameters.

        By ln x and the unconstrained coordinate of the other parameter.
        """

    @abstractmethod
    def _other_to_free(self, other: np.ndarray) -> np.ndarray:
        """The unconstrained coordinate of the other parameter."""

    @abstractmethod
    def _other_from_free(self, free: np.ndarray) -> np.ndarray:
        """The other parameter of an unconstrained coordinate."""

    # What follows -----------------------------------------------------------------------------------------------------

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.coordinates) // (self.n_cells * self.n_features)

    @property
    def n_free_parameters(self) -> int:
        """Two of each member."""
        return 2 * self.n_components * self.n_features

    @property
    def is_valid(self) -> np.ndarray:
        """True where the integral is one: all cells are finite, and the prior is there; of the shape of the batch."""
        cells = self._members.cells
        valid = np.isfinite(cells).all(axis=0) & (cells[0] > 0) & self._has_mass(cells)
        return np.asarray(self._by_member(valid).all(axis=(0, 1)))

    @abstractmethod
    def _has_mass(self, cells: np.ndarray) -> np.ndarray:
        """True where statistics are such that the integrals exist, (n_members,)."""

    def log_normalizer(self) -> np.ndarray:
        """A, nats, summed over members."""
        return self._by_member(self._distinct_nodes.log_total[self._distinct[1]]).sum(axis=(0, 1))

    def log_normalizer_increment(self, statistics: np.ndarray) -> np.ndarray:
        """A(self + statistics) - A(self), nats."""
        return self.log_normalizer_gain(self + statistics, statistics)

    def log_normalizer_gain(self, posterior: Self, added: np.ndarray) -> np.ndarray:
        """A(posterior) - A(self), nats."""
        extra = posterior.coordinates.ndim - self.coordinates.ndim
        before = self.log_normalizer().reshape(self._batch + (1,) * extra)
        return -before + posterior.log_normalizer()

    def expected_natural(self) -> np.ndarray:
        """Expected natural parameters, of the shape of the coordinates."""
        members, which = self._distinct
        natural = np.empty(members.cells.shape)
        for chosen, nodes in self._distinct_nodes.by_number():
            natural[:, chosen] = self._mean_natural(Members(members.cells[:, chosen], members.feature[chosen]), nodes)
        return self._flat(natural[:, which], self._batch)

    def natural(self, point: Any) -> np.ndarray:
        """Natural parameters of a point, of the shape of the coordinates."""
        x, other = (each.reshape(-1) for each in point)
        batch = point[0].shape[2:]
        return self._flat(self._natural(Members(x[:0], self._features(batch)), x, other), batch)

    def mode(self, basis: str = "natural") -> Any:
        """The point of highest density with respect to the unconstrained coordinates, or to the parameters.

        Raises
        ------
        NoInteriorModeError
            In the probability basis, if the density rises to an end.
        """
        members = self._members
        if basis != "natural":
            members.cells[1] += 1.0
        free = self._largest(members, REACH)
        log_x = self._log_x(members, free)
        value, other = self._peak(members, log_x)
        inside = (abs(free) < REACH - _AT_END) & (abs(self._other_to_free(other)) < _FREE_AT_EDGE)
        if basis != "natural" and not (np.isfinite(value) & inside).all():
            raise no_interior_mode(self.name, "a weight of", float(members.cells[N_PRIOR_CELLS].min()), "more data")
        return self._point(np.exp(log_x), other, self._batch)

    def most_likely(self, statistics: np.ndarray) -> Any:
        """The point at which data with these statistics are most likely."""
        members = self._members_of(statistics)
        log_x = self._log_x(members, self._largest(members, self.most_free))
        return self._point(np.exp(log_x), self._peak(members, log_x)[1], statistics.shape[1:])

    def sample(self, rng: np.random.Generator | ParallelGenerator) -> Any:
        """A draw of each member: x from its nodes, the other parameter given x."""
        shape = (self.n_components * self.n_features, *self._batch)
        members = self._members
        x = np.exp(self._log_x(members, self._nodes.quantile(rng.random(shape).ravel())))
        return self._point(x, self._draw_other(members, x, rng, shape), self._batch)

    def to_unconstrained(self, point: Any) -> np.ndarray:
        """ln x - ln(1 - x / x_c), then coordinates of the other parameter, (n_free_parameters, ...)."""
        x, other = point
        most = self.largest.reshape(-1, *(1,) * (x.ndim - 2))
        return np.stack([np.log(x) - np.log1p(-x / most), self._other_to_free(other)]).reshape(-1, *x.shape[2:])

    def from_unconstrained(self, free: np.ndarray) -> Any:
        """The point with these coordinates."""
        free_x, other = free.reshape(2, self.n_components, self.n_features, *free.shape[1:])
        most = self.largest.reshape(-1, *(1,) * (free_x.ndim - 2))
        return self.point_type(np.exp(free_x - np.logaddexp(0.0, free_x - np.log(most))), self._other_from_free(other))

    def jacobian(self, point: Any) -> np.ndarray:
        """Derivatives of the natural parameters by the unconstrained coordinates, (n_cells, n_free_parameters)."""
        first, _ = self._derivatives_at(point)
        result = np.zeros((len(self.coordinates), self.n_free_parameters))
        result[self._places(), self._free_places()[:, None]] = first
        return result

    def information(self, point: Any, coordinates: np.ndarray, free: np.ndarray | None = None) -> np.ndarray:
        """Minus the second derivatives of coordinates . natural(point): a block of two for each member."""
        _, second = self._derivatives_at(point)
        result, places = np.zeros((self.n_free_parameters,) * 2), self._free_places()
        result[places[:, None], places[None]] = -(self._members_of(coordinates).cells * second).sum(axis=2)
        return principal_submatrix(result, free)

    def _derivatives_at(self, point: Any) -> tuple[np.ndarray, np.ndarray]:
        x, other = (each.reshape(-1) for each in point)
        members = Members(x[:0], self._features(()))
        first, second = self._derivatives(members, x, other)
        left = 1 - x / members.parameter(self.largest, x)  # of ln x by its coordinate
        second[0, 0] = left**2 * second[0, 0] - left * (1 - left) * first[0]
        second[0, 1], second[1, 0], first[0] = left * second[0, 1], left * second[1, 0], left * first[0]
        return first, second

    def directions(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both coordinates of members with data are inside; those without stand at an edge."""
        inside = np.tile(self._members_of(coordinates).cells[N_PRIOR_CELLS] >= EDGE, 2)
        every = np.eye(self.n_free_parameters)
        return every[:, inside], every[:, ~inside]

    def known_cells(self, alike: np.ndarray) -> np.ndarray:
        """All cells of a member, or none: rows, sums and counts of values belong together."""
        cells = self._members_of(alike).cells
        return self._flat(cells & cells.all(axis=0), ())

    @property
    def signed(self) -> np.ndarray:
        """Boolean array of the statistics that may be negative."""
        return np.tile(np.repeat(self._are_signed(), self.n_features), self.n_components)

    @abstractmethod
    def _are_signed(self) -> np.ndarray:
        """Cells of a member that may be negative, (n_cells,)."""

    @property
    def probability_shift(self) -> np.ndarray:
        """Shift of the coordinates for densities with respect to the parameters themselves: 1 at the measure."""
        shift = np.zeros((self.n_components, self.n_cells, self.n_features))
        shift[:, 1] = 1.0
        return shift.ravel()

    # Predictions and quantiles, of members without lanes --------------------------------------------------------------

    def log_predictive(self, statistics: np.ndarray) -> np.ndarray:
        """Log densities of single data, parameters integrated out, nats.

        Parameters
        ----------
        statistics : ndarray of shape (n_cells, n_features, n_rows)

        Returns
        -------
        ndarray of shape (n_components, n_features, n_rows)
        """
        cells, feature = self._members
        nodes, n_rows = self._nodes.thinned(), statistics.shape[-1]
        result = np.empty((len(feature), n_rows))
        step = max(_NUMBERS_AT_ONCE // nodes.t.size, 1)
        t = nodes.t[:, None]
        before = self._log_mass(Members(cells[..., None, None], feature), t) - np.log(nodes.share[:, None] + 1e-300)
        for at in range(0, n_rows, step):
            more = cells[..., None, None] + statistics[:, feature, at : at + step, None]
            result[:, at : at + step] = log_sum_exp(self._log_mass(Members(more, feature), t) - before, axis=-1)
        return result.reshape(self.n_components, self.n_features, n_rows)

    def quantiles_of_x(self, probability: float) -> np.ndarray:
        """Quantiles of x, (n_components, n_features)."""
        free = self._nodes.quantile(np.full(len(self._nodes.log_total), probability))
        return self._by_member(np.exp(self._log_x(self._members, free)))

    def _quantiles(self, below: Callable, probability: float, end: float) -> np.ndarray:
        """Values between -`end` and `end` with a probability below, (n_components, n_features).

        `below` takes members, x and values, and returns probabilities given x.
        """
        members, nodes = self._members.of(np.arange(len(self._nodes.log_total))), self._nodes
        x = np.exp(nodes.t)
        low, high = np.full(len(x), -end), np.full(len(x), end)
        for _ in range(60):
            value = (low + high) / 2
            less = (below(members, x, value[:, None]) * nodes.share).sum(axis=-1) < probability
            low, high = np.where(less, value, low), np.where(less, high, value)
        return self._by_member((low + high) / 2)

    @property
    def _batch(self) -> tuple[int, ...]:
        return self.coordinates.shape[1:]

    @property
    def _members(self) -> Members:
        return self._members_of(self.coordinates)

    @cached_property
    def _distinct(self) -> tuple[Members, np.ndarray]:
        """Members of which no two are alike, and which of these each member is: lanes may share components."""
        members = self._members
        keys = np.cos(np.arange(1.0, self.n_cells + 1)) @ members.cells + members.feature
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        merged = Members(members.cells.T[first].T, members.feature[first])
        if (merged.cells[:, which] == members.cells).all() and (merged.feature[which] == members.feature).all():
            return merged, which
        return members, np.arange(len(keys))  # keys of others agree by chance, or cells are not numbers

    @cached_property
    def _distinct_nodes(self) -> Nodes:
        members = self._distinct[0]
        with np.errstate(all="ignore"):
            guess = np.nan_to_num(self._guess(members), nan=0.0, posinf=0.0, neginf=0.0)

        nodes = self._integrated(members, guess)
        return nodes._replace(t=self._log_x(members, nodes.t))

    def _integrated(self, members: Members, guess: np.ndarray) -> Nodes:
        """Nodes of integrals over the unconstrained coordinate of x, of members whose modes may be near a guess."""

        def log_integrand(free: np.ndarray, chosen: np.ndarray) -> np.ndarray:
            of_chosen = members.of(chosen)
            return self._log_mass(of_chosen, self._log_x(of_chosen, free))

        return integrate(log_integrand, guess)

    def _log_x(self, members: Members, free: np.ndarray) -> np.ndarray:
        """ln x of its unconstrained coordinate."""
        if np.isinf(self.largest).all():
            return free
        return free - np.logaddexp(0.0, free - np.log(members.parameter(self.largest, free)))

    @cached_property
    def _nodes(self) -> Nodes:
        return self._distinct_nodes.of(self._distinct[1])

    def _volume(self, members: Members, log_x: np.ndarray) -> np.ndarray:
        """ln of the derivative of x by its unconstrained coordinate: ln x + ln(1 - x / x_c)."""
        return log_x + np.log1p(-np.minimum(np.exp(log_x) / members.parameter(self.largest, log_x), _BELOW_ONE))

    def _largest(self, members: Members, most: Any) -> np.ndarray:
        def peak(free: np.ndarray, chosen: np.ndarray) -> np.ndarray:
            of_chosen = members.of(chosen)
            return self._peak(of_chosen, self._log_x(of_chosen, free))[0]

        return maximum(peak, len(members.feature), most)

    def _point(self, x: np.ndarray, other: np.ndarray, batch: tuple[int, ...]) -> Any:
        return self.point_type(*(each.reshape(self.n_components, self.n_features, *batch) for each in (x, other)))

    def _by_member(self, values: np.ndarray) -> np.ndarray:
        """Values (n_members,) as an array (n_components, n_features, ...)."""
        return values.reshape(self.n_components, self.n_features, *self._batch)

    def _log_natural_measure(self, point: Any) -> np.ndarray:
        cells = self.natural(point)
        measure = cells.reshape(-1, self.n_cells, self.n_features, *cells.shape[1:])[:, 1]
        return measure.sum(axis=(0, 1))

    def _features(self, batch: tuple[int, ...]) -> np.ndarray:
        """The feature of each member."""
        return np.tile(np.repeat(np.arange(self.n_features), prod(batch)), self.n_components)

    def _members_of(self, flat: np.ndarray) -> Members:
        """Members with flat cells; a copy of these."""
        return Members(self._cells(flat).reshape(self.n_cells, -1).copy(), self._features(flat.shape[1:]))

    def _cells(self, flat: np.ndarray) -> np.ndarray:
        """(n_cells, n_components, n_features, n_lanes) of flat cells."""
        return np.moveaxis(flat.reshape(-1, self.n_cells, self.n_features, prod(flat.shape[1:])), 1, 0)

    def _flat(self, cells: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
        """Flat cells of arrays (n_cells, n_members)."""
        parts = cells.reshape(self.n_cells, self.n_components, self.n_features, *batch)
        return np.moveaxis(parts, 0, 1).reshape(-1, *batch)

    def _places(self) -> np.ndarray:
        """Flat places of the cells, (n_cells, n_members)."""
        return self._members_of(np.arange(len(self.coordinates))).cells

    def _free_places(self) -> np.ndarray:
        """Places of the unconstrained coordinates, (2, n_members)."""
        return np.arange(self.n_free_parameters).reshape(2, -1)


def log_prior_of_x(log_x: np.ndarray, most: np.ndarray | float) -> np.ndarray:
    r"""ln of the prior density :math:`(1 + x)^{-2} (1 + 1/x_c)` of x below x_c, nats.

    Of ln x it is logistic, so that the trapezoid works for members without data, too. Where many data are equal the
    likelihood has no bound as x grows: the end makes it proper.
    """
    return np.log1p(1 / most) - 2 * np.logaddexp(0.0, log_x)
