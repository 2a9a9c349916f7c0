"""A linear dynamical system as fitted: its matrices in the units of the data, states, forecasts and draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit

from skvbem._numerics import unpack_symmetric
from skvbem.families import NormalWishart
from skvbem.families.normal_gamma import VARIANCE_FLOOR, NormalPoint
from skvbem.fitted.base import Intervals, Parameters
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitted.rotations import order_and_signs
from skvbem.fitted.state_space import FittedStateSpace, Matrices, States
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.first_states import FirstStates
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.rotations import is_free_to_rotate, turned_statistics
from skvbem.models.linear_dynamical_system.sampling import StateRelabelings
from skvbem.models.linear_dynamical_system.smoother import Smoother
from skvbem.reading.column_groups import ColumnGroups

# The share of its inverse from which a variance counts as stopped by its floor.
_NEARLY = 1.001


@dataclass(frozen=True, eq=False)
class FittedLDS(FittedStateSpace):
    """A linear dynamical system as fitted: its columns, its prior, and the statistics of the data."""

    model: LinearDynamicalSystem

    def continues(self, columns: ColumnGroups, model: LinearDynamicalSystem) -> bool:
        """True if another model has as many states, inputs and groups of columns, and columns read in the same way."""
        alike = type(model) is type(self.model) and self.model.n_states == model.n_states
        return alike and self.model.n_cells == model.n_cells and self.columns.meaning() == columns.meaning()

    def matrices_at(self, point: tuple) -> Matrices:
        """The matrices at a point, in the units of the data."""
        model, k = self.model, self.model.n_states
        of_states, of_columns, *learned = point
        first = model.first
        if learned:
            first = FirstStates(learned[0].mean[0], learned[0].precision[0])
        assert first is not None  # it is learned, or known
        unit = model.unit[:, None]
        c = unit * of_columns.coefficients
        return Matrices(
            of_states.coefficients[:, :k],
            of_states.coefficients[:, k:],
            c[:, :k],
            model.origin + c[:, k],
            c[:, k + 1 :],
            model.unit**2 / of_columns.precision,
            first.mean,
            first.covariance,
        )

    def state_variance_at(self, point: tuple) -> np.ndarray:
        """1 for each state: their unit."""
        return np.ones(self.model.n_states)

    @property
    def _covariances(self) -> np.ndarray:
        """Covariances of the states over the steps seen of each column, (n_columns, k, k)."""
        emission, k = self.model.emission, self.model.n_states
        of_data = self.statistics - self.model.prior.hyperparameters(self.natural_of_q)
        packed, *_ = emission.split(self.model.prior.split(of_data)[1])
        moments = unpack_symmetric(packed, emission.n_regressors)
        moments = moments / moments[:, k, None, k, None]  # the regressor after the states is 1
        centered = moments[:, :k, :k] - moments[:, :k, k, None] * moments[:, None, :k, k]
        return centered[emission.precision_of]

    @property
    def standardized_loadings(self) -> np.ndarray:
        """Loadings of columns of variance 1 on states of variance 1 over the steps seen, (n_columns, k)."""
        deviation = np.sqrt(np.einsum("skk->sk", self._covariances))
        return self.matrices.loadings * deviation / self.model.unit[:, None]

    def identified(self) -> Self:
        """The fit with an order and signs of its states, and in a basis where any turn is as good.

        There states are uncorrelated over the steps seen. The first one explains the most variance of standardized
        columns, by squares of standardized loadings; the largest of these is positive. The bound is as it was.
        """
        turned, alike = self, StateRelabelings(self.model)
        if is_free_to_rotate(self.model):
            _, axes = np.linalg.eigh(self._covariances.mean(axis=0))
            turned = self._turned(axes.T)
        order, signs = order_and_signs(turned.standardized_loadings, np.eye(self.model.n_states))
        if alike.n_orders > 1:
            turned = turned._turned(np.eye(len(order))[order])
            signs = signs[order]
        return turned._turned(np.diag(signs)) if alike.has_signs else turned

    def _turned(self, turn: np.ndarray) -> Self:
        """The fit with states turned by an orthogonal matrix (k, k)."""
        return replace(self, statistics=turned_statistics(self.model, self.statistics, turn))

    @property
    def uniquenesses(self) -> np.ndarray:
        """Variances of the noise of columns of variance 1, (n_columns,)."""
        return self.matrices.noise_variance / self.model.unit**2

    # Reports ----------------------------------------------------------------------------------------------------------

    def named_parameters(self, point: tuple) -> Parameters:
        """Matrices at a point by name, those of the states and those of the columns."""
        return self._by_name(self.matrices_at(point))

    def _by_name(self, matrices: Matrices) -> Parameters:
        of_columns = ("loadings", "offset", "output_input", "noise_variance")
        named = matrices._asdict()
        groups = {
            "states": {name: named[name] for name in ("transition", "input")},
            "columns": {name: named[name] for name in of_columns},
        }
        if self.model.first is None:
            variance = np.diagonal(matrices.initial_covariance)
            groups["first states"] = {"mean": matrices.initial_mean, "variance": variance}
        return groups

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta): of normal rows of A and B, of Student t rows of loadings, of Gamma precisions.

        Means of first states are Student t, their variances have inverse Gamma distributions.
        """
        dynamics, emission, *learned = self.posterior.blocks
        spread = np.sqrt(np.diagonal(dynamics.covariance[0]))
        of_states = dynamics.mean + ndtri(probability) * spread
        a, b = emission.shape, emission.rate
        variance = np.einsum("gii->gi", emission.covariance)[emission.precision_of]
        of_columns = emission.mean + stdtrit(2 * a, probability)[:, None] * np.sqrt((b / a)[:, None] * variance)
        precision = gammaincinv(a, 1 - probability) / b  # the variance is the inverse
        point = (type(self.point[0])(of_states, self.point[0].precision), type(self.point[1])(of_columns, precision))
        of_first = (quantiles_of_first_states(block, probability) for block in learned)
        return self._by_name(self.matrices_at((*point, *of_first)))

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """Tables of transitions of each state, then of loadings of each column."""
        matrices, k = self.matrices, self.model.n_states
        states = [f"state {j}" for j in range(k)]
        inputs = [f"input {j}" for j in range(matrices.input.shape[1])]
        outputs = [f"output input {j}" for j in range(matrices.output_input.shape[1])]
        of_states = ("transition", "input")
        of_columns = ("loadings", "offset", "output_input", "noise_variance")
        parts = self.named_parameters(self.point)

        def table(title, rows, columns, group, names):
            def joined(values):
                return np.column_stack([values[name] for name in names])

            ends = None
            if intervals is not None:
                sides = ({name: intervals[group][name][side] for name in names} for side in (0, 1))
                ends = tuple(joined(side) for side in sides)
            return ParameterTable(title, rows, columns, joined(parts[group]), ends)

        of_first = []
        if self.model.first is None:
            of_first.append(table("first states", states, ["mean", "variance"], "first states", ("mean", "variance")))
        return [
            table("states", states, [*states, *inputs], "states", of_states),
            table("columns", self.names, [*states, "offset", *outputs, "noise variance"], "columns", of_columns),
            *of_first,
        ]

    def at_floor(self) -> list[str]:
        """Columns whose noise the floor of maximum likelihood has stopped."""
        variance = 1 / self.point[1].precision
        return [name for name, value in zip(self.names, variance) if value <= _NEARLY * VARIANCE_FLOOR]

    # States -----------------------------------------------------------------------------------------------------------

    def smoothed(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences, those after the last observed step among them."""
        factored = self.model.smoothed(natural, data)
        return self._gone_on(data, natural, factored.means(), factored.marginal[factored.row_of_shape])

    def filtered(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences up to each of them."""
        potentials, k = self.model.potentials(natural), self.model.n_states
        smoother = Smoother(potentials, self.model.first_states(natural), data)
        factored = smoother.factored()
        squares, later = potentials.squares, np.zeros(len(data))
        later[data.before] = 1.0
        # what a step says of the next one is taken out of its precision, and of its linear term
        inverse = factored.inverse[factored.slot[factored.row_of_shape]]
        gain = factored.gain[factored.slot[factored.row_of_shape]]
        precision = np.linalg.inv(inverse) - later[:, None, None] * squares[:k, :k]
        linear = smoother.linear()[:, :k]
        for a, b in zip(data.starts, data.ends):
            for t in range(a + 1, b):
                linear[t] += gain[t - 1].T @ linear[t - 1]
        before = data.before
        linear[before] += data.inputs[before + 1] @ squares[:k, k:].T
        covariance = np.linalg.inv(precision)
        return self._gone_on(data, natural, np.einsum("tij,tj->ti", covariance, linear), covariance)


def quantiles_of_first_states(posterior: NormalWishart, probability: float) -> NormalPoint:
    """Quantiles of each mean and of each variance of first states; what is not a variance is left out."""
    k, (weight, freedom) = posterior.n_features, posterior.coordinates[:2]
    freedom = freedom - k + 1
    spread = np.diagonal(np.linalg.inv(posterior.mode().precision[0])) * posterior.coordinates[1]
    mean = posterior.mode().mean[0] + stdtrit(freedom, probability) * np.sqrt(spread / (weight * freedom))
    variance = spread / (2 * gammaincinv(freedom / 2, 1 - probability))
    return NormalPoint(mean[None], np.diag(1 / variance)[None])
