"""Arrays whose axes and positions have names."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

#: By how much the probabilities of a row may miss one.
SLACK = 1e-6


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
    return next((code for code, level in enumerate(levels.tolist()) if level == state), None)


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

        index = pd.MultiIndex.from_product([level.tolist() for level in self.levels], names=list(self.axes))
        return pd.Series(np.ravel(self.values), index=index, name=name)

    def __repr__(self):
        given = ", ".join(map(str, self.axes[:-1]))
        title = f"{self.axes[-1]} | {given}" if given else f"{self.axes[-1]}"
        return f"LabeledTable of {title}\n{np.array2string(self.values, precision=4, suppress_small=True)}"
