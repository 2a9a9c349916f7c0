r"""Proposals of parameters up to turns, where the posterior lies on orbits of rotations of hidden variables.

Coordinates are those of the quotient (`skvbem.capabilities.Quotient`), in which all points of an orbit are one. There
the posterior is near a normal distribution again. So the proposal is a mixture of multivariate t distributions, one
about each optimum that the fit has met, of the mean and the covariance that draws by linear response have there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from skvbem.capabilities import QuotientCoordinates
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.linear_response import LinearResponses
from skvbem.evidence.tuning import TUNING


def identifies_coordinates(evaluation: Evaluation) -> bool:
    """True if parameters are unique up to turns of hidden variables, of which there are any."""
    quotient = evaluation.capabilities.quotient
    return quotient is not None and quotient.log_n_orders == 0.0


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


@dataclass(frozen=True, eq=False)
class QuotientProposal:
    """A mixture of t distributions of coordinates up to turns.

    Parameters
    ----------
    evaluation : Evaluation
    coordinates : QuotientCoordinates
    parts : tuple of StudentT
    log_parts : ndarray of shape (n_parts,)
        ln of their weights, which add up to 1.
    data : object
        Rows that have the likelihood of all.
    """

    evaluation: Evaluation
    coordinates: QuotientCoordinates
    parts: tuple[StudentT, ...]
    log_parts: np.ndarray
    data: Any

    @classmethod
    def of(cls, evaluation: Evaluation, responses: LinearResponses) -> QuotientProposal:
        """The proposal about the optima that linear response is of."""
        rng, best = evaluation.generator(Stream.RESPONSE), responses.responses[np.argmax(responses.log_evidences)]
        coordinates = evaluation.capability("quotient").coordinates_at(best.posterior.expected_natural())
        parts = []
        for response in responses.responses:
            drawn = coordinates.coordinates(response.draws(TUNING.response_draws, rng))
            factor = np.linalg.cholesky(np.cov(drawn))
            parts.append(StudentT(drawn.mean(axis=1), factor, TUNING.degrees_of_freedom))
        return cls(evaluation, coordinates, tuple(parts), np.log(responses.weights), evaluation.few_rows)

    def log_weights_of_draws(self, batch: slice) -> np.ndarray:
        """ln w of draws with these numbers, nats, (n_draws,)."""
        n_draws, rng = batch.stop - batch.start, self.evaluation.generator(Stream.PROPOSAL, batch.start)
        number = rng.multinomial(n_draws, np.exp(self.log_parts))
        drawn = [part.draw(n, rng) for part, n in zip(self.parts, number)]
        return self._log_weights(np.concatenate(drawn, axis=1), 0, batch.start)

    def log_weights_of_posterior(self, log_points: np.ndarray, batch: slice) -> np.ndarray:
        """ln w of draws of the posterior with these numbers, nats, (n,); the points of all are (n_cells, n_all)."""
        coordinates = self.coordinates.coordinates(log_points[:, batch])
        return self._log_weights(coordinates, 1, batch.start, posterior=True)

    def _log_weights(self, coordinates: np.ndarray, *key: int, posterior: bool = False) -> np.ndarray:
        """ln of p(data, coordinates) over the proposal, nats, (n_draws,)."""
        log_proposal = logsumexp(
            [log_part + part.log_density(coordinates) for log_part, part in zip(self.log_parts, self.parts)], axis=0
        )
        rng = self.evaluation.generator(Stream.TURNS, *key)
        log_prior = self.coordinates.log_prior(coordinates, rng, posterior=posterior)
        natural = self.coordinates.natural(coordinates)
        points = self.evaluation.capability("points")
        return points.log_likelihoods(self.data, natural) + log_prior - log_proposal
