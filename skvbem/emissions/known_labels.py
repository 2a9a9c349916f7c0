r"""Rows whose labels are known in part: a label is one more observation, which only the component of its number makes.

Given that a row is of component l, what is observed of it has the likelihood :math:`p(y \mid k, \theta)` under
component l and none under any other. A row without a label is as it was. So the log normalizer of q(x) is that of rows
and known labels together, and a bound on it is one on :math:`\ln p(y, \mathrm{labels})`, with all constants.

No parameter is added: statistics, priors and posteriors are those of the emission of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skvbem.emissions.base import Emission, Step, parts_of


@dataclass(frozen=True, eq=False)
class PartlyLabeled:
    """A table of rows, and what is known of their labels.

    Parameters
    ----------
    rows : Table
        As the emission of the rows prepared it.
    labels : ndarray of int, shape (n_rows,)
        The component of each row; negative where it is not known.
    """

    rows: Any
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.rows[rows], self.labels[rows])

    @property
    def parts(self) -> tuple:
        """The tables of the groups of columns."""
        return getattr(self.rows, "parts", (self.rows,))


class KnownLabels:
    """An emission of rows, some of whose labels are known. What it does not say itself, the emission of the rows says.

    Parameters
    ----------
    of_rows : Emission
    n_levels : int
        Components that labels may name, the first ones: none of them changes its place.
    named : tuple of int
        Those that label a row.
    """

    def __init__(self, of_rows: Emission, n_levels: int, named: tuple[int, ...]):
        self.of_rows, self.n_levels, self.named = of_rows, n_levels, named

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "of_rows":  # copies and pickles ask before there is anything
            raise AttributeError(name)
        return getattr(self.of_rows, name)

    @property
    def parts(self) -> tuple[Emission, ...]:
        """The emissions of the groups of columns."""
        return tuple(parts_of(self.of_rows))

    def with_parts(self, parts: tuple[Emission, ...]) -> Self:
        """The emission whose groups of columns have other emissions, with the same labels."""
        return type(self)(self.of_rows.with_parts(parts), self.n_levels, self.named)

    def step(self, natural: np.ndarray, table: PartlyLabeled) -> Step:
        """The emission at natural parameters (n_cells,) or (n_cells, n_lanes)."""
        return _LabeledStep(self.of_rows.step(natural, table.rows))

    def expected_log_likelihood(self, block: PartlyLabeled, natural: np.ndarray) -> np.ndarray:
        """Expected log likelihoods of a block's rows and labels under each component, nats."""
        return self.step(natural, block).log_likelihood(block)

    def statistics(self, block: PartlyLabeled, responsibilities: np.ndarray, natural: np.ndarray) -> np.ndarray:
        """Expected statistics of a block, (n_cells,) or (n_cells, n_lanes)."""
        return self.of_rows.statistics(block.rows, responsibilities, natural)

    def log_predictive(self, block: PartlyLabeled, posterior: Any) -> np.ndarray:
        """Log densities of rows and labels, nats, (n_rows, n_components)."""
        return _of_labels(self.of_rows.log_predictive(block.rows, posterior), block.labels)

    def seeding_coordinates(self, block: PartlyLabeled) -> np.ndarray:
        """Rows as points, whatever their labels, (n_rows, n_axes)."""
        return self.of_rows.seeding_coordinates(block.rows)

    def is_conjugate(self, table: PartlyLabeled) -> bool:
        """True if rows of known components have statistics."""
        return self.of_rows.is_conjugate(table.rows)

    def with_room_for(self, table: PartlyLabeled, prior: Any, statistics: np.ndarray) -> tuple[Self, Any, np.ndarray]:
        """The emission, its prior and statistics, with cells for a table of more rows."""
        of_rows, *rest = self.of_rows.with_room_for(table.rows, prior, statistics)
        same = of_rows is self.of_rows
        return (self if same else type(self)(of_rows, self.n_levels, self.named), *rest)

    def row_order(self, table: PartlyLabeled) -> np.ndarray | None:
        """An order of rows in which blocks cost least."""
        return self.of_rows.row_order(table.rows)

    def size_of_terms(self, table: PartlyLabeled, weight: np.ndarray) -> float:
        """Sum over rows of the terms of the log likelihood that cancel each other, nats."""
        return self.of_rows.size_of_terms(table.rows, weight)


class _LabeledStep(Step):
    """A step of the emission of the rows, of which labels rule out components."""

    def __init__(self, inner: Step):
        self.inner, self.n_components = inner, inner.n_components

    def log_likelihood(self, block: PartlyLabeled) -> np.ndarray:
        """Expected log likelihoods of rows and labels, nats."""
        return _of_labels(self.inner.log_likelihood(block.rows), block.labels)

    def zeros(self) -> Any:
        """An empty sum."""
        return self.inner.zeros()

    def add(self, block: PartlyLabeled, responsibilities: np.ndarray, total: Any) -> None:
        """Add the statistics of a block to a sum."""
        self.inner.add(block.rows, responsibilities, total)

    def statistics(self, total: Any) -> np.ndarray:
        """Expected statistics of a sum."""
        return self.inner.statistics(total)

    def expansion(self, total: Any) -> Any:
        """Other coordinates of what is hidden in the rows of a sum."""
        return self.inner.expansion(total)

    def of_rows(self, block: PartlyLabeled) -> np.ndarray:
        """Expected statistics of each row, were it of a component."""
        return self.inner.of_rows(block.rows)

    def hidden_covariance(self, block: PartlyLabeled, responsibilities: np.ndarray) -> np.ndarray | None:
        """Covariance of a component's statistics given what is observed."""
        return self.inner.hidden_covariance(block.rows, responsibilities)

    def add_drawn(self, block: PartlyLabeled, components: np.ndarray, rng: Any, total: Any) -> None:
        """Add statistics of rows whose components are known."""
        self.inner.add_drawn(block.rows, components, rng, total)

    def group_move(self, total: Any, prior: np.ndarray, rng: Any) -> Any:
        """A sum after a draw of maps that change no row's density."""
        return self.inner.group_move(total, prior, rng)


def _of_labels(logs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Logs (..., n_rows, n_components) that are -inf at components other than the known one."""
    known = np.flatnonzero(labels >= 0)
    if not len(known):
        return logs
    logs = logs if logs.flags.writeable else logs.copy()
    components = labels[known]
    kept = logs[..., known, components]
    logs[..., known, :] = -np.inf
    logs[..., known, components] = kept
    return logs


def labels_of(table: Any) -> np.ndarray | None:
    """Known labels of a table's rows, (n_rows,), negative where there is none; None without any."""
    return table.labels if isinstance(table, PartlyLabeled) else None


def without_labels(emission: Any, tables: list[Any]) -> tuple[Any, list[Any]]:
    """The emission of rows alone, and tables of rows alone."""
    if not isinstance(emission, KnownLabels):
        return emission, tables
    return emission.of_rows, [table.rows for table in tables]
