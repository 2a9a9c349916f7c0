"""Starts of structural time series: an E step at variances that share the squared change of a column in a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.families.regression_rows import RegressionPoint
from skvbem.models.linear_dynamical_system.starts import changes_of_columns

# The share of the squared change of a step that all noises of the first start have together, and the deviation of the
# logarithms of factors by which variances of the other starts differ from it.
_SHARE, _AWAY = 0.5, 2.0
# The coefficient of the last value in autoregressions of the first start; that of others is random.
_PERSISTENCE = 0.5


@dataclass(frozen=True, eq=False)
class StructuralStarts:
    """Starts of a structural time series, the same for any order of the sequences.

    Parameters
    ----------
    n_starts : int
    seed : tuple of int
    """

    n_starts: int
    seed: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""
        return ("equal shares", *("random",) * (self.n_starts - 1))

    def __call__(self, ascent: Any) -> np.ndarray:
        """Statistics, (n_cells, n_starts)."""
        model, rng = ascent.model, np.random.default_rng(self.seed)
        design, step, starts = model.design, changes_of_columns(ascent.data), []
        column = design.column_of_noise
        rows = len(design.learned)
        per_column = 1 + (rows > 0) + np.bincount(column, minlength=model.n_columns)
        share = _SHARE * step**2 / per_column
        for number in range(self.n_starts):
            away = np.exp(_AWAY * min(number, 1) * rng.standard_normal(model.n_columns + design.n_noises))
            of_columns, of_states = np.split(np.concatenate([share, share[column]]) * away, [model.n_columns])
            learned = None
            if rows:
                coefficients = np.zeros((rows, design.order))
                coefficients[:, 0] = rng.uniform(-1, 1, rows) if number else _PERSISTENCE
                away = np.exp(_AWAY * min(number, 1) * rng.standard_normal(rows))
                learned = RegressionPoint(coefficients, 1 / (share * away))
            starts.append(self._at(model, ascent.data, of_columns, of_states, learned))
        return np.stack(starts, axis=1)

    def _at(
        self, model: Any, data: Any, of_columns: np.ndarray, of_states: np.ndarray, learned: RegressionPoint | None
    ) -> np.ndarray:
        """Statistics (n_cells,) of an E step at variances and learned rows, without effects of inputs."""
        effects = np.zeros((model.n_columns, model.n_output_inputs))
        point: tuple[Any, ...] = (RegressionPoint(effects, 1 / of_columns),)
        if model.design.n_noises:
            point = (*point, 1 / of_states[None])
        if learned is not None:
            point = (*point, learned)
        return model.started(model.expect(model.prior.natural(point)[:, None], data).statistics[:, 0])
