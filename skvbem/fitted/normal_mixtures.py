"""`NormalMixture`: the distribution of a number, given what is known of its row, as a mixture of normal ones."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from skvbem._arguments import check_level, check_probability
from skvbem._numerics import log_sum_exp
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.queries import of_number
from skvbem.reading.mixed_network import emission_groups

# Draws of the parameters that an answer is a mixture over: a standard deviation is then off by some 5 %.
_N_DRAWS = 200


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """The distribution of a number: a mixture of normal distributions.

    Parameters
    ----------
    weights : ndarray of shape (n_components,)
        They sum to 1.
    means, deviations : ndarray of shape (n_components,)
        In the unit of the number.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.estimators import NormalMixture
    >>> two = NormalMixture(np.array([0.5, 0.5]), np.array([-1.0, 1.0]), np.array([1.0, 1.0]))
    >>> two.mean, round(two.standard_deviation, 4)
    (0.0, 1.4142)
    >>> [round(end, 3) for end in two.interval(0.95)]
    [-2.646, 2.646]
    """

    weights: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(self.weights @ self.means)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the number, over components and within them."""
        return float(np.sqrt(self.weights @ (self.deviations**2 + (self.means - self.mean) ** 2)))

    def density(self, x: float | np.ndarray) -> np.ndarray:
        """Probability density at x, per unit of the number, of the shape of x."""
        away = (np.asarray(x, dtype=float)[..., None] - self.means) / self.deviations
        return np.asarray(norm.pdf(away) / self.deviations @ self.weights)

    def cumulative(self, x: float | np.ndarray) -> np.ndarray:
        """Probability of a number up to x, of the shape of x."""
        return np.asarray(ndtr((np.asarray(x, dtype=float)[..., None] - self.means) / self.deviations) @ self.weights)

    def quantile(self, probability: float) -> float:
        """The number that is not passed with a probability in (0, 1).

        Raises
        ------
        ValueError
            If the probability is no number between 0 and 1.
        """
        check_probability("quantile", probability)
        ends = self.means + ndtri(probability) * self.deviations
        low, high = float(ends.min()), float(ends.max())
        if not high > low:
            return low
        return float(brentq(lambda x: float(self.cumulative(x)) - probability, low, high, xtol=1e-12 * (high - low)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Ends of the interval that leaves as much below as above, and holds the number with this probability.

        Raises
        ------
        ValueError
            If the level is no number between 0 and 1.
        """
        check_level("interval", level)
        outside = 0.5 * (1 - level)
        return self.quantile(outside), self.quantile(1 - outside)


def number_given(fitted: Any, name: Hashable, row: MixedRows, **limits: Any) -> NormalMixture | None:
    """The distribution of a column of numbers given the evidence of one row; None of families that are not normal.

    Over draws of the parameters, weighted by the probability of the evidence under each, and over states of parents.
    """
    groups, families = fitted.groups.groups, fitted.model.number_families
    places = {
        name: (k, column)
        for k, group in enumerate(emission_groups(fitted.groups))
        for column, name in enumerate(groups[group].names)
    }
    k, column = places.get(name, (-1, 0))
    if k not in families.products:
        return None
    rng = np.random.default_rng(0)
    points = [fitted.drawn_point(rng) for _ in range(_N_DRAWS if fitted.form.density else 1)]
    number, of = int(families.responses[k][column]), families.products[k]
    log_weights, states, means, variances = of_number(fitted.model, row, number, points, **limits)
    weights = np.exp(log_weights - log_sum_exp(log_weights, axis=0))[:, None] * states
    in_unit = of.origin[column] + of.unit[column] * means, of.unit[column] * np.sqrt(variances)
    return NormalMixture(weights.ravel(), *map(np.ravel, in_unit))
