r"""Parameters of factor analyzers up to turns of factors: coordinates, and the prior density, turns integrated out.

Loadings in units of the noise are :math:`A = L Q` (`skvbem.emissions.factor.turns`). Coordinates are means in units of
the noise, the lower trapezoidal L of each component, of its diagonal the logarithms, and log precisions of noises. The
rows that L begins with are those of the best loadings [Golub & Van Loan 2013, section 5.4.2], so that its diagonal
stays away from 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr

from skvbem._numerics import diagonal_places
from skvbem.emissions.factor.turns import log_mean_over_turns, log_volume
from skvbem.families.hierarchical import Hierarchical, regression_of

# Turns drawn for the mean of the prior over them: at each of many draws, and at one point.
_N_TURNS, _N_TURNS_OF_ONE = 16, 4096


class FactorQuotient:
    """Coordinates of a factor analyzer's parameters up to turns, and the prior there.

    Parameters
    ----------
    emission : FactorAnalyzer
    prior : Regression or Hierarchical
    natural : ndarray of shape (n_cells,)
        Natural parameters of a point, or expected ones: L begins with the rows that have the best loadings there.
    """

    def __init__(self, emission: Any, prior: Any, natural: np.ndarray):
        self.prior, self.family = prior, regression_of(prior)
        k, d = self.family.n_components, emission.n_columns
        self.numbers = emission.numbers(k)
        self._shape = k, d, 1 + emission.n_factors
        self._components = [_Loadings(A, q) for A, q in zip(self._loadings(natural[:, None]), self.numbers)]
        self._groups, self._rates, self._powers = self._relevances(emission)

    def coordinates(self, natural: np.ndarray) -> np.ndarray:
        """Coordinates (n_coordinates, n) of points, by their natural parameters (n_cells, n)."""
        means, _, logs = self._parts(natural)
        loadings = self._loadings(natural)
        parts = [triangle.coordinates(A) for triangle, A in zip(self._components, loadings)]
        return np.concatenate([means, *parts, logs])

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of points without turns, L in the place of loadings."""
        k, d, width = self._shape
        free = np.zeros((k, d, width, coordinates.shape[1]))
        means, *parts, logs = np.split(coordinates, self._ends)
        free[:, :, 0] = means.reshape(k, d, -1)
        for triangle, into, part in zip(self._components, free, parts):
            into[:, 1 : 1 + triangle.q] = np.moveaxis(triangle.lower(part), 0, -1)
        free = np.concatenate([free.reshape(k * d * width, -1), logs])
        return self.family.natural(self.family.from_unconstrained(free))

    def log_density(self, coordinates: np.ndarray, rng: np.random.Generator, *, posterior: bool) -> np.ndarray:
        """ln of the prior density of coordinates, turns and hidden hyperparameters integrated out, nats, (n,).

        Parameters
        ----------
        coordinates : ndarray of shape (n_coordinates, n)
        rng : numpy.random.Generator
        posterior : bool
            Whether these are draws of the posterior; see `log_mean_over_turns`.
        """
        log_density = self.prior.log_density_as_prior(self.family.from_natural(self.natural(coordinates)))
        log_density = log_density + self.log_volume(coordinates)
        _, *parts, _ = np.split(coordinates, self._ends)
        for k, (triangle, part) in enumerate(zip(self._components, parts)):
            n_unused = self._shape[2] - 1 - triangle.q
            log_density += n_unused * self._shape[1] / 2 * np.log(2 * np.pi)
            log_density += self._log_turned(k, triangle.lower(part), rng, _N_TURNS, posterior=posterior)
        return log_density

    def log_volume(self, coordinates: np.ndarray) -> np.ndarray:
        """ln of the volume of loadings, of all turns, over that of coordinates, nats, (n,)."""
        _, *parts, _ = np.split(coordinates, self._ends)
        return np.sum([triangle.log_volume(part) for triangle, part in zip(self._components, parts)], axis=0)

    def log_turns(self, natural: np.ndarray, rng: np.random.Generator) -> float:
        """ln of the integral of the prior over the turns of a point (n_cells,), as a share of its value, nats."""
        used = [A[..., :q] for A, q in zip(self._loadings(natural[:, None]), self.numbers)]
        means = [self._log_turned(k, A, rng, _N_TURNS_OF_ONE, posterior=False)[0] for k, A in enumerate(used)]
        return float(np.sum(means)) + sum(map(log_volume, self.numbers))

    def _log_turned(
        self, k: int, loadings: np.ndarray, rng: np.random.Generator, n_turns: int, *, posterior: bool
    ) -> np.ndarray:
        """ln of the mean of the prior over turns of loadings (n, d, q) of a component over its value, nats, (n,)."""
        if self._rates is None or loadings.shape[2] < 2:
            return np.zeros(len(loadings))
        grams = np.stack([loadings[:, at].swapaxes(-1, -2) @ loadings[:, at] for at in self._groups], axis=1)
        power, squares = self._powers[k], np.diagonal(grams, axis1=-2, axis2=-1)
        log_value = -(np.log(self._rates[k] + squares / 2).sum(axis=-1) @ power)
        return log_mean_over_turns(grams, power, self._rates[k], rng, n_turns, posterior=posterior) - log_value

    @property
    def _ends(self) -> np.ndarray:
        k, d, _ = self._shape
        return np.cumsum([k * d, *(triangle.n for triangle in self._components)])

    def _parts(self, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means (n_rows, n) and loadings (n_components, d, q, n) in units of the noise, and log precisions."""
        k, d, width = self._shape
        free = self.family.to_unconstrained(self.family.from_natural(natural))
        coefficients = free[: k * d * width].reshape(k * d, width, -1)
        return coefficients[:, 0], coefficients[:, 1:].reshape(k, d, width - 1, -1), free[k * d * width :]

    def _loadings(self, natural: np.ndarray) -> np.ndarray:
        """Loadings in units of the noise, (n_components, n, d, q)."""
        return np.moveaxis(self._parts(natural)[1], -1, 1)

    def _relevances(self, emission: Any) -> tuple[list[np.ndarray], np.ndarray | None, np.ndarray]:
        """Columns of each group, and rate and powers of the densities of the loadings of each component.

        Without a rate all factors have one known precision, and no turn makes a difference.
        """
        groups = [np.flatnonzero(emission.groups == group) for group in np.unique(emission.groups)]
        hyperprior: Any = self.prior.hyperprior if isinstance(self.prior, Hierarchical) else None
        k, n_matrices = self._shape[0], len(emission.matrices.groups)
        if hyperprior is None or self._shape[2] == 1:
            return groups, None, np.zeros(0)
        diagonal = self.family.precision_cells[:, diagonal_places(self._shape[2])]
        loadings = hyperprior.loadings
        dense = loadings if isinstance(loadings, np.ndarray) else loadings.toarray()
        rates, powers = np.zeros(k), np.zeros((k, len(groups)))
        for component in range(k):
            matrices = component * n_matrices + np.arange(n_matrices)
            for group in range(len(groups)):
                matrix = matrices[emission.matrices.groups == group]
                (hidden,) = np.nonzero((dense[:, diagonal[matrix, 1]] > 0).all(axis=1))
                if not len(hidden):
                    return groups, None, np.zeros(0)
                rates[component] = hyperprior.rate[hidden[0]]
                powers[component, group] = hyperprior.shape[hidden[0]] + hyperprior.power[hidden[0]]
        return groups, rates, powers


class _Loadings:
    """Lower trapezoidal matrices L of one component's loadings A = L Q.

    Parameters
    ----------
    loadings : ndarray of shape (1, d, q)
        Whose rows decide with which L begins.
    q : int
        Factors that the component has, the first ones.
    """

    def __init__(self, loadings: np.ndarray, q: int):
        self.d, self.q = loadings.shape[1], q
        self.rank = min(self.d, q)
        self.first = qr(loadings[0, :, :q].T, pivoting=True, mode="r")[1][: self.rank] if q else np.zeros(0, dtype=int)
        others = np.setdiff1d(np.arange(self.d), self.first)
        below = np.tril_indices(self.rank, -1)
        rows, columns = np.repeat(others, self.rank), np.tile(np.arange(self.rank), len(others))
        self.cells = np.concatenate([self.first[below[0]], rows]), np.concatenate([below[1], columns])
        self.diagonal = self.first, np.arange(self.rank)

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.cells[0]) + self.rank

    def coordinates(self, loadings: np.ndarray) -> np.ndarray:
        """Cells of L, and logarithms of its diagonal, (n_coordinates, n), of loadings (n, d, q)."""
        used = loadings[..., : self.q]
        turn = np.linalg.qr(used[:, self.first].swapaxes(-1, -2))[0]
        lower = used @ turn
        diagonal = lower[:, *self.diagonal]
        lower = lower * np.sign(diagonal)[:, None]
        return np.concatenate([lower[:, *self.cells], np.log(np.abs(diagonal))], axis=1).T

    def lower(self, coordinates: np.ndarray) -> np.ndarray:
        """L (n, d, q) of coordinates (n_coordinates, n)."""
        lower = np.zeros((coordinates.shape[1], self.d, self.q))
        cells, logs = np.split(coordinates, [len(self.cells[0])])
        lower[:, *self.cells], lower[:, *self.diagonal] = cells.T, np.exp(logs).T
        return lower

    def log_volume(self, coordinates: np.ndarray) -> np.ndarray:
        """ln of the volume of loadings, of all turns, over that of coordinates, nats, (n,)."""
        logs = coordinates[len(self.cells[0]) :]
        return log_volume(self.q, self.rank) + (self.q - np.arange(self.rank)) @ logs
