"""`Effect`: how much an outcome changes with a cause, as a distribution over parameters and over structures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit

from skvbem._arguments import check_level, check_probability
from skvbem._tabular import named_values, number


@dataclass(frozen=True, eq=False)
class Effect:
    """The total effect of a cause on an outcome: a mixture of points, which are draws, and Student's t distributions.

    Parameters
    ----------
    weights : ndarray of shape (n_parts,)
        They sum to 1.
    values : ndarray of shape (n_parts,)
        In the unit of the outcome, for a change of the cause by one of its units, or from one category to another.
    scales : ndarray of shape (n_parts,)
        0 of points.
    degrees_of_freedom : ndarray of shape (n_parts,)
    probability_no_path : float
        Probability that no directed path leads from the cause to the outcome; 0 or 1 for a single graph.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.estimators import Effect
    >>> effect = Effect.of_draws(np.array([0.0, 0.2, 0.3, 0.3, 0.7]), probability_no_path=0.2)
    >>> round(effect.mean, 3), effect.probability_positive
    (0.3, 0.8)
    >>> effect.interval(0.9)
    (0.0, 0.7)
    """

    weights: np.ndarray
    values: np.ndarray
    scales: np.ndarray
    degrees_of_freedom: np.ndarray
    probability_no_path: float

    @classmethod
    def of_draws(
        cls, draws: np.ndarray, weights: np.ndarray | None = None, *, probability_no_path: float = 0.0
    ) -> Self:
        """The distribution that draws (n_draws,) have, all alike or with weights (n_draws,)."""
        n = len(draws)
        weights = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        return cls(weights, draws, np.zeros(n), np.full(n, np.inf), probability_no_path)

    @classmethod
    def mixed(cls, effects: Sequence[Effect], weights: np.ndarray) -> Self:
        """The mixture of several distributions, with weights (n_effects,) that sum to 1."""
        no_path = float(weights @ [each.probability_no_path for each in effects])
        return cls(
            np.concatenate([weight * each.weights for weight, each in zip(weights, effects)]),
            np.concatenate([each.values for each in effects]),
            np.concatenate([each.scales for each in effects]),
            np.concatenate([each.degrees_of_freedom for each in effects]),
            min(max(no_path, 0.0), 1.0),
        )

    @property
    def mean(self) -> float:
        """The expected effect."""
        return float(self.weights @ self.values)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the effect; infinite where a part with up to two degrees of freedom has none."""
        spread, dof = self.scales > 0, self.degrees_of_freedom
        factor = np.where(dof > 2, 1 + 2 / np.where(dof > 2, dof - 2, 1.0), np.inf)
        within = np.where(spread, self.scales**2 * np.where(spread, factor, 0.0), 0.0)
        return float(np.sqrt(self.weights @ (within + (self.values - self.mean) ** 2)))

    @property
    def probability_positive(self) -> float:
        """Probability that the effect is above 0."""
        return max(0.0, 1.0 - self.cumulative(0.0))

    @property
    def probability_negative(self) -> float:
        """Probability that the effect is below 0."""
        return self._up_to(0.0, np.less)

    def cumulative(self, x: float) -> float:
        """Probability of an effect up to x."""
        return self._up_to(x, np.less_equal)

    def _up_to(self, x: float, compared) -> float:
        is_point = self.scales == 0
        at = (x - self.values) / np.where(is_point, 1.0, self.scales)
        below = np.where(is_point, compared(self.values, x), stdtr(self.degrees_of_freedom, at))
        return float(min(self.weights @ below, 1.0))

    def quantile(self, probability: float) -> float:
        """The effect that is not passed with a probability in (0, 1).

        Raises
        ------
        ValueError
            If the probability is no number between 0 and 1.
        """
        check_probability("quantile", probability)
        is_point = self.scales == 0
        points = np.unique(self.values[is_point])
        if is_point.all():  # the first point up to which the probability has come, but for rounding
            order = np.argsort(self.values, kind="stable")
            reached = int(np.searchsorted(np.cumsum(self.weights[order]), probability - 1e-12))
            return float(self.values[order[min(reached, len(order) - 1)]])
        for point in points:
            if self._up_to(point, np.less) < probability <= self.cumulative(point):
                return float(point)
        ends = self.values + np.where(is_point, 0.0, self.scales * stdtrit(self.degrees_of_freedom, probability))
        low, high = float(ends.min()), float(ends.max())
        if not high > low:
            return low
        return float(brentq(lambda x: self.cumulative(x) - probability, low, high, xtol=1e-12 * (high - low)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Ends of the interval that leaves as much below as above, and holds the effect with this probability.

        Raises
        ------
        ValueError
            If the level is no number between 0 and 1, or the effect is that of a fit by MAP or ML, a single point.
        """
        check_level("interval", level)
        if len(self.values) == 1 and not self.scales[0]:
            raise ValueError(
                "An effect has intervals where a posterior says how sure it is. This one is a single point, of a fit "
                "by 'map' or 'ml'. Fit with method='vb'."
            )
        outside = 0.5 * (1 - level)
        return self.quantile(outside), self.quantile(1 - outside)

    def _shown(self) -> dict[str, str]:
        cells = {"effect": number(self.mean)}
        if len(self.values) > 1 or self.scales[0]:
            low, high = self.interval()
            cells |= {"standard deviation": number(self.standard_deviation)}
            cells |= {"95 % interval": f"[{number(low)}, {number(high)}]"}
            cells |= {"P(> 0)": f"{self.probability_positive:.3f}"}
        return cells | {"P(no path)": f"{self.probability_no_path:.3f}"}

    def __repr__(self) -> str:
        return f"Effect({', '.join(f'{name} {value}' for name, value in self._shown().items())})"

    def _repr_html_(self) -> str:
        return named_values(self._shown())
