"""A structural time series as fitted: deviations of its noises, effects of inputs, and its blocks over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv, stdtrit

from skvbem.families import Gamma
from skvbem.families.regression_rows import RegressionPoint
from skvbem.fitted.base import Intervals, Parameters
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.fitted.state_space import FittedStateSpace, Matrices, States
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.structural.model import StructuralModel
from skvbem.reading.column_groups import ColumnGroups


class BlockTrack(NamedTuple):
    """What a block adds to columns, (n_rows, n_columns): smoothed means and standard deviations."""

    mean: np.ndarray
    deviation: np.ndarray


@dataclass(frozen=True, eq=False)
class FittedStructural(FittedStateSpace):
    """A structural time series as fitted: its columns, its prior, and the statistics of the data.

    States are in the units of the data; a level is one from 0.
    """

    model: StructuralModel

    def continues(self, columns: ColumnGroups, model: StructuralModel) -> bool:
        """True if another model has the same blocks, and columns read in the same way."""
        if type(model) is not type(self.model):
            return False
        one, other = self.model.design, model.design
        alike = np.array_equal(one.transition, other.transition) and np.array_equal(one.noise_of, other.noise_of)
        alike = alike and one.order == other.order
        return alike and self.model.n_cells == model.n_cells and self.columns.meaning() == columns.meaning()

    @property
    def scale(self) -> np.ndarray:
        """Unit of each state, (k,)."""
        return self.model.unit[self.model.design.column_of]

    @property
    def shift(self) -> np.ndarray:
        """Origin of each state, (k,): that of its column for a level, 0 for others."""
        design = self.model.design
        return np.where(design.is_level, self.model.origin[design.column_of], 0.0)

    def matrices_at(self, point: tuple) -> Matrices:
        """The matrices at a point, in the units of the data."""
        model, design, columns = self.model, self.model.design, point[0]
        effects = model.unit[:, None] * columns.coefficients
        return Matrices(
            design.transition_at(self._learned(point)),
            np.zeros((model.n_states, 0)),
            design.reading,
            np.zeros(model.n_columns) if design.has_level else model.origin + effects[:, 0],
            effects[:, 1:],
            model.unit**2 / columns.precision,
            self.shift,
            np.diag(self.scale**2 * design.start),
        )

    def state_variance_at(self, point: tuple) -> np.ndarray:
        """Variances of the noises that move states, (k,), 0 of states without noise, in the units of the data."""
        design, variance = self.model.design, np.zeros(self.model.n_states)
        if design.n_noises:
            variance = (1 / point[1][0]) @ design.states_of_noise
        if len(design.learned):
            variance[design.learned] = 1 / point[-1].precision
        return self.scale**2 * variance

    def _learned(self, point: tuple) -> np.ndarray:
        """Coefficients of autoregressions at a point, (n_columns, order), or (0, 0)."""
        return point[-1].coefficients if len(self.model.design.learned) else np.zeros((0, 0))

    def grows(self, matrices: Matrices) -> bool:
        """True if an autoregression grows; other blocks walk, and do not."""
        return self.spectral_radius(matrices) > 1

    def spectral_radius(self, matrices: Matrices) -> float:
        """Largest absolute value of an eigenvalue of the rows of A that are learned, or 1 where others are there."""
        design = self.model.design
        of_rows = np.isin(design.block_of, design.block_of[design.learned])
        moved = matrices.transition[np.ix_(of_rows, of_rows)]
        known = 0.0 if of_rows.all() else 1.0
        return max(known, float(np.abs(np.linalg.eigvals(moved)).max(initial=0.0)))

    # Reports ----------------------------------------------------------------------------------------------------------

    def named_parameters(self, point: tuple) -> Parameters:
        """Standard deviations of noises of states, by name, and offsets, effects and noises of columns."""
        matrices, variance = self.matrices_at(point), self.state_variance_at(point)
        columns = {name: getattr(matrices, name) for name in ("offset", "output_input", "noise_variance")}
        if self.model.design.has_level:
            del columns["offset"]
        autoregression = {"coefficient": self._learned(point)} if len(self.model.design.learned) else {}
        return {"states": self._by_noise(np.sqrt(variance)), "autoregression": autoregression, "columns": columns}

    def _by_noise(self, of_states: np.ndarray) -> dict[str, np.ndarray]:
        """Numbers of states (k,) by the name of the noise that moves them, (n_columns,) each."""
        design = self.model.design
        first = design.states_of_noise.argmax(axis=1) if design.n_noises else np.zeros(0, dtype=int)
        names = np.array(design.noise_names)[design.noise_of[first]] if len(first) else []
        deviations = {str(name): of_states[first[names == name]] for name in dict.fromkeys(names)}
        if len(design.learned):
            deviations[design.block_names[design.block_of[design.learned[0]]]] = of_states[design.learned]
        return deviations

    def quantiles(self, probability: float) -> Parameters:
        """Quantiles of q(theta): of Student t effects, and of Gamma precisions as variances and deviations."""
        point: list[Any] = []
        for block in self.posterior.blocks:
            if isinstance(block, Gamma):
                point.append(block.quantiles(1 - probability))
                continue
            a, b = block.shape, block.rate
            spread = np.sqrt((b / a)[:, None] * np.einsum("gii->gi", block.covariance))
            coefficients = block.mean + stdtrit(2 * a, probability)[:, None] * spread
            point.append(RegressionPoint(coefficients, gammaincinv(a, 1 - probability) / b))
        return self.named_parameters(tuple(point))

    def report(self, intervals: Intervals | None) -> list[ParameterTable]:
        """Tables of deviations of noises of each column, then of effects of inputs and noise variances."""
        parts, outputs = self.named_parameters(self.point), self.model.n_output_inputs - 1
        heads = {"offset": ["offset"], "noise_variance": ["noise variance"]}
        heads["coefficient"] = [f"lag {j + 1}" for j in range(self.model.design.order)]
        heads["output_input"] = [f"output input {j}" for j in range(outputs)]

        def table(title: str, group: str, columns: list[str]) -> ParameterTable:
            def joined(values) -> np.ndarray:
                return np.column_stack([values[name] for name in parts[group]])

            ends = None
            if intervals is not None:
                lower, upper = ({name: intervals[group][name][side] for name in parts[group]} for side in (0, 1))
                ends = joined(lower), joined(upper)
            return ParameterTable(title, self.names, columns, joined(parts[group]), ends)

        tables = [table("standard deviations of a step", "states", [*parts["states"]])] if parts["states"] else []
        for title in ("autoregression", "columns"):
            columns = [head for name in parts[title] for head in heads[name]]
            tables += [table(title, title, columns)] if columns else []
        return tables

    # States -----------------------------------------------------------------------------------------------------------

    def smoothed(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences, those after the last observed step among them."""
        return self._in_units(data, natural, smoothed=True)

    def filtered(self, data: LDSData, natural: np.ndarray) -> States:
        """The states of all rows given their sequences up to each of them."""
        return self._in_units(data, natural, smoothed=False)

    def _in_units(self, data: LDSData, natural: np.ndarray, *, smoothed: bool) -> States:
        mean, covariance = self.model.states(natural, data, smoothed=smoothed)
        scale = self.scale
        return self._gone_on(data, natural, self.shift + scale * mean, scale[:, None] * scale * covariance)

    def blocks(self, data: LDSData, natural: np.ndarray) -> list[BlockTrack]:
        """What each block adds to the columns in each row, given whole sequences."""
        states, design = self.smoothed(data, natural), self.model.design
        tracks = []
        for number in range(design.block_of.max() + 1):
            reading = design.reading * (design.block_of == number)
            variance = np.einsum("sk,tkl,sl->ts", reading, states.covariance, reading)
            tracks.append(BlockTrack(states.mean @ reading.T, np.sqrt(np.maximum(variance, 0.0))))
        return tracks
