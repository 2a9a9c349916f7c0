r"""Angles: :math:`p(y) = e^{\kappa \cos(y - \mu)} / (2 \pi I_0(\kappa))`, independent columns.

The prior of direction and concentration is `skvbem.families.one_dimensional.DirectionConcentration`; turning all angles
changes nothing. A missing cell is left out of the product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.stats import vonmises

from skvbem._compat import Interval, StrOptions
from skvbem.blocks import Blocks
from skvbem.emissions.base import draws_first
from skvbem.emissions.conjugate_given_one import ConjugateGivenOne
from skvbem.emissions.linear import LinearTable
from skvbem.emissions.moments import n_columns_of
from skvbem.emissions.parameters import check_positive, check_shape, named_arrays
from skvbem.emissions.resolution import resolution
from skvbem.emissions.specification import NumericSpecification, Parameters
from skvbem.families.one_dimensional import DirectionConcentration, DirectionConcentrationPoint
from skvbem.families.one_dimensional.direction_concentration import mean_resultant

# A whole turn.
_TURN = {"radians": 2 * np.pi, "degrees": 360.0, "hours": 24.0}


class VonMises(NumericSpecification):
    """Columns of angles, such as turns and times of day, with a direction and a concentration in each component.

    Parameters
    ----------
    unit : {"radians", "degrees", "hours"}, default="radians"
        Unit of the angles; hours are those of a day. Angles may be of any turn: 350 degrees are -10.
    resolution : float, default=None
        How finely angles are measured, in the unit: the standard deviation of a component is never less. By
        default the smallest gap between distinct angles of X, .001 radians at the least. Without it equal angles would
        make a component of any density.

    See Also
    --------
    Gamma : the lengths of steps, beside their turns.

    Notes
    -----
    The direction has a uniform prior, the concentration :math:`p(\\kappa) \\propto (1 + \\kappa)^{-2}` below
    :math:`\\delta^{-2}`, with the resolution :math:`\\delta` in radians. It is integrated out numerically, so that with
    one component the lower bound is the evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import VBMixture
    >>> from skvbem.emissions import VonMises
    >>> rng = np.random.default_rng(0)
    >>> wind = np.concatenate([rng.vonmises(np.pi, 8.0, 80), rng.vonmises(0.0, 8.0, 80)]) * 180 / np.pi
    >>> model = VBMixture(2, emission=VonMises(unit="degrees"), random_state=0).fit(wind[:, None])
    >>> directions = model.parameters_["von_mises"]["means"].ravel()
    >>> sorted((abs(directions) > 90).tolist())
    [False, True]
    """

    _parameter_constraints: ClassVar[dict] = {
        "unit": [StrOptions(set(_TURN))],
        "resolution": [Interval(Real, 0, None, closed="neither"), None],
    }
    needs_variation: ClassVar[bool] = True
    has_moments: ClassVar[bool] = False  # that mix as those of numbers on a line do
    largest: ClassVar[float] = 1e9
    if_larger: ClassVar[str] = "of angles above 1e+09 the direction keeps too few digits. Take whole turns away"

    def __init__(self, unit="radians", resolution=None):
        self.unit = unit
        self.resolution = resolution

    @property
    def period(self) -> float:  # type: ignore[override]  # a constant of the base, here of the unit
        """A turn in the unit."""
        return _TURN[self.unit]

    def for_data(self, values: np.ndarray | Blocks, weight: np.ndarray | None = None) -> VonMisesEmission:
        """The emission of angles (n_rows, n_columns) with weights (n_rows,)."""
        per_radian = self.period / (2 * np.pi)
        if self.resolution is None:
            around = partial(_within_a_turn, per_radian=per_radian)
            gaps = resolution(values, weight, around, 2 * np.pi)
        else:
            gaps = np.full(n_columns_of(values), self.resolution / per_radian)
        return VonMisesEmission(per_radian, gaps**-2.0)

    def checked_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Directions, and concentrations above 0, each (n_components, n_columns)."""
        owner = type(self).__name__
        arrays = named_arrays(owner, parameters, {"means": 2, "concentrations": 2})
        check_shape(owner, "concentrations", arrays["concentrations"], arrays["means"].shape, "that of the means")
        check_positive(owner, "concentrations", arrays["concentrations"])
        return arrays

    def means(self, parameters: Parameters) -> np.ndarray:
        """Directions."""
        return parameters["means"]

    def expected(self, parameters: Parameters, levels: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """Mean resultants, complex numbers whose means over components have the mean direction."""
        angles = parameters["means"] * 2 * np.pi / self.period
        return list((mean_resultant(parameters["concentrations"]) * np.exp(1j * angles)).T)

    def value_of_mean(self, mean: np.ndarray) -> np.ndarray:
        """Directions of resultants, in the unit."""
        return np.angle(mean) * self.period / (2 * np.pi)

    def deviations(self, parameters: Parameters) -> np.ndarray:
        """Circular standard deviations, in the unit: of the normal distribution that is wound to the same length."""
        length = mean_resultant(parameters["concentrations"])
        return np.sqrt(-2 * np.log(np.maximum(length, 1e-300))) * self.period / (2 * np.pi)

    def cumulative_of_cells(self, values: np.ndarray, parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of angles from minus half a turn on."""
        per_radian, concentrations = self.period / (2 * np.pi), parameters["concentrations"][:, None]
        directions = parameters["means"][:, None] / per_radian
        angles = np.remainder(values / per_radian + np.pi, 2 * np.pi) - np.pi
        up_to = vonmises.cdf(angles - directions, concentrations) - vonmises.cdf(-np.pi - directions, concentrations)
        return up_to, up_to


def _within_a_turn(values: np.ndarray, per_radian: float) -> np.ndarray:
    return np.remainder(values / per_radian, 2 * np.pi)


@dataclass(frozen=True, eq=False)
class AngleTable(LinearTable):
    """Rows of angles, whose cosines and sines are computed once: they take five times as long as all else of a step.

    Parameters
    ----------
    resultants : ndarray of shape (2 * n_columns, n_rows)
        Cosines, then sines; 0 where a cell is missing.
    """

    resultants: np.ndarray

    def __getitem__(self, rows: slice) -> Self:
        block = super().__getitem__(rows)
        return block if block is self else replace(block, resultants=self.resultants[:, rows])


@dataclass(frozen=True, eq=False)
class VonMisesEmission(ConjugateGivenOne):
    """Von Mises distributed angles, independent given the component.

    Parameters
    ----------
    per_radian : float
        A radian in the unit of the data.
    largest_concentration : ndarray of shape (n_columns,)
        One over the square of the resolution in radians.
    """

    per_radian: float
    largest_concentration: np.ndarray

    @property
    def periods(self) -> dict[str, float]:  # type: ignore[override]  # a constant of the base, here of the unit
        """A turn, of the directions."""
        return {"means": 2 * np.pi * self.per_radian}

    @property
    def n_columns(self) -> int:
        """Columns of a row."""
        return len(self.largest_concentration)

    def default_prior(self, n_components: int) -> DirectionConcentration:
        """Priors of directions and concentrations."""
        return DirectionConcentration.from_parameters(n_components, self.largest_concentration)

    def measure(self, values: np.ndarray) -> np.ndarray:
        """Radians, (n_columns, n_rows)."""
        return np.divide(values.T, self.per_radian, order="C")

    def prepare(self, values: np.ndarray, survey: LinearTable | None = None) -> AngleTable:
        """A table of angles, (n_rows, n_columns), NaN where a cell is missing."""
        table = super().prepare(values, survey)
        angles, observed = table.columns
        resultants = np.concatenate([np.cos(angles) * observed, np.sin(angles) * observed])
        return AngleTable(self, table.values, table.complete, table.base, table.reach, resultants)

    def features(self, block: AngleTable) -> np.ndarray:  # type: ignore[override]  # of its own tables
        """1 (one for all columns where nothing is missing), cosines, and sines."""
        observed = np.ones((1, len(block))) if block.complete else ~np.isnan(np.asarray(block.values.T, dtype=float))
        return np.concatenate([observed, block.resultants])

    def log_base(self, values: np.ndarray) -> np.ndarray:
        """Minus ln of a turn in the unit, for each observed cell, nats."""
        return (~np.isnan(np.asarray(values, dtype=float))).sum(axis=1) * -np.log(2 * np.pi * self.per_radian)

    def log_predictive(self, block: AngleTable, posterior: DirectionConcentration) -> np.ndarray:
        """Log densities of rows, directions and concentrations integrated out, nats, (n_rows, n_components)."""
        observed = np.broadcast_to(self.features(block)[: -2 * self.n_columns], (self.n_columns, len(block)))
        nothing = np.zeros(observed.shape)
        one = np.stack([nothing, nothing, observed, *np.split(block.resultants, 2)])
        return posterior.log_predictive(one).sum(axis=1).T + block.base[:, None]

    def sample(
        self, point: DirectionConcentrationPoint, components: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Angles drawn, from minus half a turn to half a turn."""
        drawn = rng.vonmises(point.direction[components], point.concentration[components])
        return drawn * self.per_radian

    def impute(
        self, block: LinearTable, point: DirectionConcentrationPoint, responsibilities: np.ndarray
    ) -> np.ndarray:
        """Rows with missing angles replaced by the directions of their mean cosine and sine."""
        values, length = np.asarray(block.values, dtype=float), mean_resultant(point.concentration)
        cosine, sine = (responsibilities @ (length * each(point.direction)) for each in (np.cos, np.sin))
        return np.where(np.isnan(values), np.arctan2(sine, cosine) * self.per_radian, values)

    def seeding_coordinates(self, block: AngleTable) -> np.ndarray:
        """Cosines and sines; opposite angles are 2 apart."""
        return block.resultants.T

    def parameters(self, point: DirectionConcentrationPoint) -> dict[str, np.ndarray]:
        """Directions in the unit of the data, and concentrations, each (n_components, n_columns)."""
        around = np.remainder(point.direction + np.pi, 2 * np.pi) - np.pi
        return {"means": around * self.per_radian, "concentrations": point.concentration}

    def parameters_of_draws(self, points: DirectionConcentrationPoint) -> dict[str, np.ndarray]:
        """The `parameters` of points with draws along a last axis; directions within half a turn of their mean one."""
        point = draws_first(points)
        around = np.angle(np.exp(1j * point.direction).mean(axis=0))
        aside = np.remainder(point.direction - around + np.pi, 2 * np.pi) - np.pi
        return {"means": (around + aside) * self.per_radian, "concentrations": point.concentration}

    def point_of(self, parameters: Mapping[str, np.ndarray]) -> DirectionConcentrationPoint:
        """Concentrations, and directions in radians; see `parameters`."""
        return DirectionConcentrationPoint(parameters["concentrations"], parameters["means"] / self.per_radian)

    def quantiles(self, posterior: DirectionConcentration, probability: float) -> dict[str, np.ndarray]:
        """Quantiles of directions, from half a turn before the most probable one, and of concentrations."""
        directions = posterior.quantiles_of_directions(probability) * self.per_radian
        return {"means": directions, "concentrations": posterior.quantiles_of_x(probability)}
