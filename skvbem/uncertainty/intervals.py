"""Intervals of parameters by group and name, as dictionaries that notebooks show as tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skvbem._tabular import data_frame, html_table, number


class ParameterIntervals(dict):
    """Lower and upper ends of intervals, by group and name.

    A dict of str to dict of str to tuple of two ndarrays, which notebooks show as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.uncertainty.intervals import ParameterIntervals
    >>> intervals = ParameterIntervals({"mixture": {"weights": (np.array([0.1, 0.5]), np.array([0.5, 0.9]))}})
    >>> intervals["mixture"]["weights"][0].tolist()
    [0.1, 0.5]
    >>> list(intervals.records())
    [('mixture', 'weights', '0', 0.1, 0.5), ('mixture', 'weights', '1', 0.5, 0.9)]
    """

    def records(self) -> Iterator[tuple]:
        """Group, name, position, lower and upper end of each parameter that has an interval."""
        for group, of_group in self.items():
            for name, (lower, upper) in of_group.items():
                for at in np.ndindex(np.shape(lower)):
                    ends = float(np.asarray(lower)[at]), float(np.asarray(upper)[at])
                    if not any(map(np.isnan, ends)):
                        yield group, name, ", ".join(map(str, at)), *ends

    def to_frame(self):
        """The intervals as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns group, name, position, lower, upper.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return data_frame(self.records(), type(self).__name__, columns=["group", "name", "position", "lower", "upper"])

    def _repr_html_(self):
        rows = [[*map(str, where), number(low), number(high)] for *where, low, high in self.records()]
        return html_table(["group", "name", "position", "lower", "upper"], rows, n_labels=3)
