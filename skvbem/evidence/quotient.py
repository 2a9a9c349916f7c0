r"""Proposals of coordinates in which the posterior is near normal: up to turns of hidden variables, or of many rows.

Where hidden variables turn, the posterior lies on orbits of rotations.

Coordinates are those of the quotient (`skvbem.capabilities.Quotient`), in which all points of an orbit are one. There
the posterior is near a normal distribution again. So the proposal is a mixture of multivariate t distributions, one
about each optimum that the fit has met, of the mean and the covariance that draws by linear response have there.

Each optimum has coordinates of its own, which are smooth there. So densities are those of orbits, not of coordinates:
one is the other over the volume of an orbit. Labels of components may be in any order, and the density of the proposal
is its mean over all orders.

Where nothing turns, unconstrained coordinates of parameters are such coordinates, too. Given so many rows that even the
direction of which they say least is known well, the posterior is near normal in these, however narrow q(theta) is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp
from scipy.stats import skew

from skvbem.capabilities import Quotient, QuotientCoordinates
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.linear_response import LinearResponses
from skvbem.evidence.tuning import TUNING


def has_few_orders(evaluation: Evaluation) -> bool:
    """True if parameters are unique up to turns of hidden variables, of which there are any, and few orders."""
    quotient = evaluation.capabilities.quotient
    return quotient is not None and quotient.log_n_orders <= np.log(TUNING.orders_up_to_turns) + 1e-9


def is_near_normal(evaluation: Evaluation, responses: LinearResponses) -> bool:
    """True if rows say so much of parameters that their posterior is near normal in unconstrained coordinates.

    They do if they say enough of the direction of which they say least, as linear response tells: of what complete rows
    say there, 1 - lambda is left. And each density q(theta) must be near normal itself, which one of a component
    without rows is not.
    """
    relabelings = evaluation.capability("relabelings").relabelings(evaluation.hidden)
    annealing, prior = evaluation.capabilities.annealing, evaluation.model.prior
    if relabelings is None or relabelings.n > TUNING.orders_up_to_turns or annealing is None:
        return False
    if annealing.plan.moves_labels or evaluation.has_turns:
        return False
    usual = [each for each, share in zip(responses.responses, responses.weights) if share > TUNING.least_part]
    left = min(each.least_known for each in usual)
    if evaluation.n_samples * left < TUNING.rows_of_normal * prior.n_free_parameters:
        return False
    rng = evaluation.generator(Stream.RESPONSE)
    points = (each.posterior.draws(TUNING.response_draws, rng) for each in usual)
    return all(np.abs(skew(prior.to_unconstrained(drawn), axis=1)).max() < TUNING.skewness for drawn in points)


@dataclass(frozen=True, eq=False)
class UnconstrainedCoordinates:
    """Parameters of which nothing turns, as a `Quotient` whose coordinates are unconstrained, the same anywhere.

    Parameters
    ----------
    evaluation : Evaluation
    """

    evaluation: Evaluation

    @property
    def _prior(self) -> Any:
        return self.evaluation.model.prior

    def orders(self) -> np.ndarray:
        """The cell that takes each cell's place in each relabeling, (n_orders, n_cells)."""
        relabelings = self.evaluation.capability("relabelings")
        return relabelings.listed_relabelings(self.evaluation.hidden, TUNING.orders_up_to_turns)

    def coordinates_at(self, natural: np.ndarray) -> UnconstrainedCoordinates:
        """Coordinates about a point: these, about any."""
        return self

    def coordinates(self, natural: np.ndarray) -> np.ndarray:
        """Coordinates (n_coordinates, n) of points, by their natural parameters (n_cells, n)."""
        return self._prior.to_unconstrained(self._prior.from_natural(natural))

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        """Natural parameters (n_cells, n) of points."""
        return self._prior.natural(self._prior.from_unconstrained(coordinates))

    def log_prior(self, coordinates: np.ndarray, rng: np.random.Generator, *, posterior: bool) -> np.ndarray:
        """ln of the prior density of coordinates, hidden hyperparameters integrated out, nats, (n,)."""
        return self._prior.log_density_as_prior(self._prior.from_unconstrained(coordinates))

    def log_volume(self, coordinates: np.ndarray) -> np.ndarray:
        """Zeros, (n,), as nothing turns."""
        return np.zeros(coordinates.shape[1])


@dataclass(frozen=True, eq=False)
class StudentT:
    """A multivariate t distribution.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    factor : ndarray of shape (d, d)
        Lower triangular root of the scale matrix.
    degrees_of_freedom : float
    """

    mean: np.ndarray
    factor: np.ndarray
    degrees_of_freedom: float

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draws, (d, n)."""
        nu = self.degrees_of_freedom
        steps = rng.standard_normal((len(self.mean), n)) / np.sqrt(rng.chisquare(nu, n) / nu)
        return self.mean[:, None] + self.factor @ steps

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """ln of the density at points (d, n), (n,)."""
        nu, d = self.degrees_of_freedom, len(self.mean)
        steps = solve_triangular(self.factor, points - self.mean[:, None], lower=True)
        constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - d / 2 * np.log(nu * np.pi)
        constant -= np.log(np.diagonal(self.factor)).sum()
        return constant - (nu + d) / 2 * np.log1p((steps**2).sum(axis=0) / nu)


class Part(NamedTuple):
    """A part of a proposal: a t distribution of coordinates about an optimum.

    Parameters
    ----------
    coordinates : QuotientCoordinates or UnconstrainedCoordinates
    distribution : StudentT
    """

    coordinates: QuotientCoordinates | UnconstrainedCoordinates
    distribution: StudentT

    def log_density(self, natural: np.ndarray) -> np.ndarray:
        """ln of the density of the orbits of points (n_cells, n), (n,)."""
        at = self.coordinates.coordinates(natural)
        return self.distribution.log_density(at) - self.coordinates.log_volume(at)


@dataclass(frozen=True, eq=False)
class QuotientProposal:
    """A mixture of t distributions of coordinates up to turns, in any order of labels.

    Parameters
    ----------
    evaluation : Evaluation
    parts : tuple of Part
    log_parts : ndarray of shape (n_parts,)
        ln of their weights, which add up to 1.
    orders : ndarray of int, shape (n_orders, n_cells)
        The cell that takes each cell's place in each order of labels.
    data : object
        Rows that have the likelihood of all.
    """

    evaluation: Evaluation
    parts: tuple[Part, ...]
    log_parts: np.ndarray
    orders: np.ndarray
    data: Any

    @property
    def n_parts(self) -> int:
        """Number of parts, one for each optimum."""
        return len(self.parts)

    @property
    def n_relabelings(self) -> int:
        """Number of orders of labels that the density is a mean over."""
        return len(self.orders)

    @classmethod
    def of(
        cls, evaluation: Evaluation, responses: LinearResponses, quotient: Quotient | UnconstrainedCoordinates
    ) -> QuotientProposal:
        """The proposal about the optima that linear response is of."""
        rng = evaluation.generator(Stream.RESPONSE)
        parts = []
        for response in responses.responses:
            coordinates = quotient.coordinates_at(response.posterior.expected_natural())
            drawn = coordinates.coordinates(response.draws(TUNING.response_draws, rng))
            factor = np.linalg.cholesky(np.cov(drawn))
            parts.append(Part(coordinates, StudentT(drawn.mean(axis=1), factor, TUNING.degrees_of_freedom)))
        return cls(evaluation, tuple(parts), np.log(responses.weights), quotient.orders(), evaluation.few_rows)

    def draws(self, batch: slice) -> np.ndarray:
        """Natural parameters of draws with these numbers, (n_cells, n_draws)."""
        n_draws, rng = batch.stop - batch.start, self.evaluation.generator(Stream.PROPOSAL, batch.start)
        number = rng.multinomial(n_draws, np.exp(self.log_parts))
        drawn = [part.coordinates.natural(part.distribution.draw(n, rng)) for part, n in zip(self.parts, number) if n]
        return np.concatenate(drawn, axis=1)

    def log_weights_of_draws(self, batch: slice) -> np.ndarray:
        """ln w of draws with these numbers, nats, (n_draws,)."""
        return self._log_weights(self.draws(batch), 0, batch.start)

    def log_weights_of_posterior(self, log_points: np.ndarray, batch: slice) -> np.ndarray:
        """ln w of draws of the posterior with these numbers, nats, (n,); the points of all are (n_cells, n_all)."""
        return self._log_weights(log_points[:, batch], 1, batch.start, posterior=True)

    def _log_weights(self, natural: np.ndarray, *key: int, posterior: bool = False) -> np.ndarray:
        """ln of p(data, orbit) over the proposal at natural parameters (n_cells, n), nats, (n,)."""
        log_terms = [
            log_part + part.log_density(natural[order])
            for log_part, part in zip(self.log_parts, self.parts)
            for order in self.orders
        ]
        log_proposal = logsumexp(log_terms, axis=0) - np.log(len(self.orders))
        rng, coordinates = self.evaluation.generator(Stream.TURNS, *key), self.parts[0].coordinates
        at = coordinates.coordinates(natural)
        log_prior = coordinates.log_prior(at, rng, posterior=posterior) - coordinates.log_volume(at)
        points = self.evaluation.capability("points")
        return points.log_likelihoods(self.data, natural) + log_prior - log_proposal
