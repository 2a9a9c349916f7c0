"""Labels that users know of some rows: names or numbers of their components, or states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from skvbem._arguments import is_collection
from skvbem.blocks import Blocks
from skvbem.emissions import Emission
from skvbem.emissions.known_labels import KnownLabels
from skvbem.reading.tables import (
    as_plain,
    first_unhashable,
    is_fraction,
    is_missing_value,
    kind_of,
    listed,
    show,
)

# Numbers of components, which none comes near.
_MAX_NUMBER = 2**31
_REMEDY = "None, NaN or pandas.NA, and -1 among numbers, say that the label of a row is not known"


@dataclass(frozen=True, eq=False)
class RowLabels:
    """The labels of rows, as far as they are known.

    Parameters
    ----------
    codes : ndarray of int64, shape (n_rows,)
        The component of each row; -1 where it is not known.
    names : tuple or range
        What labels call the first components.
    """

    codes: np.ndarray
    names: Sequence

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(self.codes[rows], self.names)

    @property
    def named(self) -> tuple[int, ...]:
        """Components that label a row."""
        return tuple(np.unique(self.codes[self.codes >= 0]).tolist())

    @property
    def are_numbers(self) -> bool:
        """Whether labels are numbers of components, rather than names."""
        return kind_of(self.names[0]) == "number"

    def known_by(self, emission: Emission) -> Emission:
        """The emission of rows that knows these labels."""
        return cast(Emission, KnownLabels(emission, len(self.names), self.named))

    def check(self, n_components: int | str, owner: str, label: str) -> None:
        """Refuse more labels than there are components, and numbers that leave components without a row.

        Parameters
        ----------
        n_components : int or "auto"
            In the latter case there are as many as needed.
        owner : str
        label : str
            What the label of a row is called: a component, or a state.
        """
        n = len(self.names)
        if n_components == "auto":
            named = set(self.named)
            if len(named) < n:
                lacking = next(name for code, name in enumerate(self.names) if code not in named)
                wanted = f"each of the numbers 0 to {n - 1}" if self.are_numbers else "each name"
                raise ValueError(
                    f"With n_components='auto' of {owner}, 'labels' must have a row of {wanted}. None has "
                    f"{show(lacking)}. Leave out what labels no row, or say 'n_components'."
                )
            return
        n_components = int(n_components)
        if n <= n_components:
            return
        if self.are_numbers:
            raise ValueError(
                f"'labels' of {owner} hold {n - 1}, and 'n_components' is {n_components}: numbers of {label}s are 0 to "
                f"{n_components - 1}. Raise 'n_components' to {n} or more, or number the {label}s from 0 on."
            )
        raise ValueError(
            f"'labels' of {owner} hold {n} different names, {listed(map(show, self.names))}, and 'n_components' is "
            f"{n_components}. Raise 'n_components' to {n} or more, or give None where a label is not known."
        )


def read_labels(labels: Any, n_rows: int, rows: np.ndarray | None, owner: str) -> RowLabels | None:
    """Labels as codes of components; None if there are none, or none is known.

    Parameters
    ----------
    labels : array-like of shape (n_rows,), or None
        Names of components, which these get in increasing order (a pandas Categorical or polars Enum in that of its
        categories), or their numbers, 0, 1, ...
    n_rows : int
        Of X.
    rows : ndarray of int or None
        The rows that count, in their order, -1 where there is none; all if None.
    owner : str
        Name of the estimator's class.

    Raises
    ------
    ValueError, TypeError
        If they are not what they should be; the message says what would be right.
    """
    if labels is None:
        return None
    cells, declared = _cells(labels, owner)
    if len(cells) != n_rows:
        raise ValueError(
            f"'labels' of {owner} must have one label for each of the {n_rows} rows of X. Got {len(cells)}. {_REMEDY}."
        )
    of_rows = range(n_rows) if rows is None else rows[rows >= 0].tolist()
    unfit = first_unhashable([cells[row] for row in of_rows])
    if unfit is not None:
        raise _wrong_kind(owner, unfit)
    known = {row: value for row in of_rows if not _is_unknown(value := as_plain(cells[row]))}
    if not known:
        return None
    names, codes = _names(known, declared, owner), np.full(n_rows + 1, -1, dtype=np.int64)
    code_of = {} if isinstance(names, range) else {name: code for code, name in enumerate(names)}
    codes[list(known)] = [code_of[value] if code_of else int(value) for value in known.values()]
    return RowLabels(codes[:-1] if rows is None else codes[rows], names)


def labels_of_list(labels: Any, lengths: np.ndarray, owner: str) -> Any:
    """Labels of the rows of listed sequences, one sequence after the other, from one array of them for each."""
    if labels is None:
        return None
    given = list(labels) if is_collection(labels) else []
    of_each = [len(each) if is_collection(each) and hasattr(each, "__len__") else -1 for each in given]
    if of_each != lengths.tolist():
        wrong = next((k for k, (n, m) in enumerate(zip(of_each, lengths.tolist())) if n != m), None)
        came = (
            f"{len(given)} items" if len(given) != len(lengths) or wrong is None else f"item {wrong} of another length"
        )
        raise ValueError(
            f"X is a list of {len(lengths)} sequences, so 'labels' of {owner} must be a list of as many arrays, each "
            f"with a label for each row of its sequence. Got {came}. {_REMEDY}."
        )
    return [label for each in given for label in each]


def _cells(labels: Any, owner: str) -> tuple[list, tuple | None]:
    """Labels one by one, and the names that their data type declares, in its order."""
    if isinstance(labels, Blocks):
        raise TypeError(f"'labels' of {owner} must be in memory, one label for each row. Got rows in blocks.")
    if not (is_collection(labels) and hasattr(labels, "__len__")):
        raise TypeError(f"'labels' of {owner} must be array-like, one label for each row of X. Got {show(labels)}.")
    if len(getattr(labels, "shape", (0,))) != 1:
        raise ValueError(
            f"'labels' of {owner} must be one label for each row of X, of shape (n_rows,). Got an array of shape "
            f"{tuple(labels.shape)}. Responsibilities to start from are the 'init' parameter."
        )
    dtype = getattr(labels, "dtype", None)
    declared = getattr(dtype, "categories", None)
    if declared is not None and type(dtype).__name__ in ("CategoricalDtype", "Enum"):
        return list(labels), tuple(as_plain(name) for name in declared)
    return list(labels), None


def _is_unknown(value: Any) -> bool:
    return is_missing_value(value) or (kind_of(value) == "number" and value == -1)


def _names(known: dict[int, Any], declared: tuple | None, owner: str) -> tuple | range:
    """What labels call the components, in their order."""
    kinds = {kind_of(value): value for value in known.values()}
    if len(kinds) > 1:
        examples = " and ".join(f"{show(value)} ({kind})" for kind, value in kinds.items())
        raise ValueError(f"'labels' of {owner} mix kinds of values: {examples}. Make all numbers, or all strings.")
    ((kind, example),) = kinds.items()
    if kind == "number":
        return range(_largest(known, owner) + 1)
    if kind == "boolean":
        return False, True
    if kind != "string":
        raise _wrong_kind(owner, example)
    if "" in known.values():
        raise ValueError(f"'labels' of {owner} hold the empty string. {_REMEDY}.")
    return tuple(sorted(set(known.values()))) if declared is None else declared


def _largest(known: dict[int, Any], owner: str) -> int:
    for row, value in known.items():
        if is_fraction(value) or not 0 <= value < _MAX_NUMBER:
            raise ValueError(
                f"'labels' of {owner} that are numbers must be whole, from 0 to {_MAX_NUMBER - 1}. Row {row} has "
                f"{show(value)}. {_REMEDY}."
            )
    return int(max(known.values()))


def _wrong_kind(owner: str, value: Any) -> TypeError:
    return TypeError(
        f"'labels' of {owner} must be strings, numbers of components or booleans. Got {show(value)}, a "
        f"{type(value).__name__}. {_REMEDY}."
    )
