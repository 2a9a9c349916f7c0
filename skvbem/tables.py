"""Arrays whose axes and positions have names."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product
from numbers import Real

import numpy as np

from skvbem._arguments import check_name
from skvbem._tabular import data_frame, html_table, text_table

#: By how much the probabilities of a row may miss one. Six printed digits that add up to 0.999999 miss it by 1e-6 as
#: decimal numbers, and by a rounding of doubles more as sums.
SLACK = 1e-6 * (1 + 1e-9)


def as_distributions(table: np.ndarray) -> np.ndarray | None:
    """A table of distributions, one along the last axis, as floats; None if it holds none to `SLACK`.

    Rows that miss one by more than the rounding of a sum of doubles are divided by their sum. A quotient's sum misses
    one by less than that, so that dividing once is dividing for good: files keep every bit.
    """
    total = table.sum(-1, keepdims=True)
    if not (np.isfinite(table).all() and (table >= 0).all() and (abs(total - 1) <= SLACK).all()):
        return None
    rounding = 2 * table.shape[-1] * np.finfo(float).eps
    return np.divide(table, total, out=np.array(table, dtype=float), where=abs(total - 1) > rounding)


def state_code(state, levels: np.ndarray) -> int | None:
    """The position of a state among the levels of its node, None if it is none of them."""
    if isinstance(state, np.ndarray):  # which compares with each level element by element
        return None
    code = next((code for code, level in enumerate(levels.tolist()) if level == state), None)
    return interval_code(state, levels) if code is None else code


def interval_code(state, levels: np.ndarray) -> int | None:
    """The position of the only interval that contains a number, or has this text; None if there is none."""
    intervals = [(code, level) for code, level in enumerate(levels.tolist()) if hasattr(level, "closed_left")]
    if isinstance(state, str):
        codes = [code for code, level in intervals if str(level) == state]
    elif isinstance(state, Real) and not isinstance(state, (bool, np.bool_)):
        codes = [code for code, level in intervals if isinstance(level.left, Real) and state in level]
    else:
        codes = []
    return codes[0] if len(codes) == 1 else None


@dataclass(frozen=True, eq=False)
class LabeledTable:
    """An array whose axes are nodes and whose positions are their states.

    Parameters
    ----------
    values : ndarray
    axes : tuple
        The node of each axis.
    levels : tuple of ndarray
        The states of each axis.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem import LabeledTable
    >>> states = np.arange(2), np.array(["no", "yes"])
    >>> table = LabeledTable(np.array([[0.9, 0.1], [0.2, 0.8]]), ("class", "item"), states)
    >>> table["class": 0, "item": "yes"]
    0.1
    >>> np.asarray(table).shape
    (2, 2)
    >>> table
    class  item=no  item=yes
    0       0.9000    0.1000
    1       0.2000    0.8000
    """

    values: np.ndarray
    axes: tuple[Hashable, ...]
    levels: tuple[np.ndarray, ...]

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)

    def __getitem__(self, key):
        """The value, or the array left, at states named as ``table["node": state, ...]``."""
        picked: dict = {}
        for part in key if isinstance(key, tuple) else (key,):
            if not isinstance(part, slice) or part.step is not None:
                raise TypeError(f"Index a LabeledTable as table['node': state, ...]. Got {part!r} instead.")
            picked[part.start] = part.stop
        strange = [axis for axis in picked if axis not in self.axes]
        if strange:
            raise KeyError(
                f"{strange[0]!r} is not an axis of this table, whose axes are {', '.join(map(repr, self.axes))}"
            )
        index: list = [slice(None)] * len(self.axes)
        for axis, state in picked.items():
            position = self.axes.index(axis)
            index[position] = state_code(state, self.levels[position])
            if index[position] is None:
                states = ", ".join(map(repr, self.levels[position].tolist()))
                raise KeyError(f"{state!r} is not a state of {axis!r}, whose states are {states}")
        value = self.values[tuple(index)]
        return value.item() if np.ndim(value) == 0 else value

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of states along each axis."""
        return self.values.shape

    def to_series(self, name: str = "value"):
        """The table as a pandas Series indexed by the states of all axes.

        Parameters
        ----------
        name : str, default="value"
            Name of the series.

        Returns
        -------
        pandas.Series

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas as pd

        check_name("name", "to_series", name)
        index = pd.MultiIndex.from_product([level.tolist() for level in self.levels], names=list(self.axes))
        return pd.Series(np.ravel(self.values), index=index, name=name)

    def to_frame(self):
        """The table as a pandas DataFrame: a column for each state of the last axis, states of the others as its index.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = [f"{self.axes[-1]}={state}" for state in self.levels[-1].tolist()]
        cells = self.values.reshape(-1, self.values.shape[-1])
        frame = data_frame(cells, type(self).__name__, columns=columns)
        if len(self.axes) > 1:
            index = product(*(levels.tolist() for levels in self.levels[:-1]))
            names = {axis: list(states) for axis, states in zip(self.axes[:-1], zip(*index))}
            frame = frame.set_index(list(names.values()))
            frame.index.names = list(names)
        return frame

    def _cells(self) -> tuple[list[str], list[list[str]], int]:
        """Header and rows as texts, and how many of the columns name the rows."""
        *parents, last = self.axes
        if not parents:
            return [str(last), ""], [[str(s), _shown(v)] for s, v in zip(self.levels[0].tolist(), self.values)], 1
        header = [*map(str, parents), *(f"{last}={state}" for state in self.levels[-1].tolist())]
        states = product(*(levels.tolist() for levels in self.levels[:-1]))
        rows = zip(states, self.values.reshape(-1, self.values.shape[-1]))
        return header, [[*map(str, of), *map(_shown, values)] for of, values in rows], len(parents)

    def __repr__(self):
        header, rows, n_labels = self._cells()
        return "\n".join(text_table(header, rows, n_labels=n_labels))

    def _repr_html_(self):
        header, rows, n_labels = self._cells()
        return html_table(header, rows, n_labels=n_labels)


def _shown(value: float) -> str:
    """A number in four decimals, or three digits where these show nothing of it."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:.1e}"
