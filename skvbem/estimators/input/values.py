"""Single values of a user's table: their kinds, which of them mean missing, and how messages show them."""

from __future__ import annotations

import numpy as np

MAX_NAMED_COLUMNS = 5  # columns named in one message


def is_missing_value(value) -> bool:
    """None, NaN, NaT or pandas.NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def as_plain(value):
    """A NumPy scalar as the Python object that it equals."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufcSU" else value


_KINDS: dict[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "number": (int, float, np.floating),
    "string": str,
    "bytes": bytes,
    "complex number": (complex, np.complexfloating),
}


_KIND_OF = {bool: "boolean", int: "number", float: "number", str: "string"}  # the usual ones, at once


def kind_of(value) -> str:
    """What sort of thing a plain value is; only values of one sort may share a column."""
    usual = _KIND_OF.get(type(value))
    return usual or next((kind for kind, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)


def is_fraction(value) -> bool:
    """Whether a value is a float that is no whole number."""
    return isinstance(value, (float, np.floating)) and not value.is_integer()


def first_unhashable(values: list):
    """The first of some values that cannot be hashed, or None."""
    for value in values:
        try:
            hash(value)
        except TypeError:
            return value
    return None


def show(value) -> str:
    """A value as messages show it, in at most 60 characters."""
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def listed(texts, at_most: int = 10) -> str:
    """Texts in a row, those in the middle left out where there are many."""
    texts = list(texts)
    return ", ".join(texts if len(texts) <= at_most else [*texts[: at_most - 1], "...", texts[-1]])


def missing_markers(missing_values, owner: str) -> set[tuple]:
    """The (kind, value) pairs that mean "missing" by the `missing_values` parameter of an estimator."""
    several = isinstance(missing_values, (list, tuple, set, frozenset, np.ndarray))
    values = [as_plain(v) for v in (missing_values if several else [missing_values])]
    if first_unhashable(values) is not None:
        raise ValueError(
            f"The 'missing_values' parameter of {owner} must be a scalar or a list of scalars. "
            f"Got {show(missing_values)} instead."
        )
    return {(kind_of(v), v) for v in values if not is_missing_value(v)}


def named_columns(names: list[str]) -> str:
    """Columns as messages name them, the first few."""
    if len(names) == 1:
        return f"Column {names[0]!r}"
    more = f" and {len(names) - MAX_NAMED_COLUMNS} more" if len(names) > MAX_NAMED_COLUMNS else ""
    return f"Columns {', '.join(map(repr, names[:MAX_NAMED_COLUMNS]))}{more}"
