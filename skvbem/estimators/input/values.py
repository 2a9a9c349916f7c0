"""Single values of a user's table: their kinds, which of them mean missing, and how messages show them."""

from __future__ import annotations

import numpy as np

_NAMED = 5  # columns named in one message


def _is_missing(value) -> bool:
    """None, NaN, NaT or pandas.NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _plain(value):
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


def _kind(value) -> str:
    """What sort of thing a plain value is; only values of one sort may share a column."""
    usual = _KIND_OF.get(type(value))
    return usual or next((kind for kind, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)


def _is_fraction(value) -> bool:
    return isinstance(value, (float, np.floating)) and not value.is_integer()


def _unhashable(values: list):
    for value in values:
        try:
            hash(value)
        except TypeError:
            return value
    return None


def _show(value) -> str:
    text = str(value) if isinstance(value, np.generic) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _some(texts, at_most: int = 10) -> str:
    texts = list(texts)
    return ", ".join(texts if len(texts) <= at_most else [*texts[: at_most - 1], "...", texts[-1]])


def missing_markers(missing_values, owner: str) -> set[tuple]:
    """The (kind, value) pairs that mean "missing" by the `missing_values` parameter of an estimator."""
    several = isinstance(missing_values, (list, tuple, set, frozenset, np.ndarray))
    values = [_plain(v) for v in (missing_values if several else [missing_values])]
    if _unhashable(values) is not None:
        raise ValueError(
            f"The 'missing_values' parameter of {owner} must be a scalar or a list of scalars. "
            f"Got {_show(missing_values)} instead."
        )
    return {(_kind(v), v) for v in values if not _is_missing(v)}


def _columns(names: list[str]) -> str:
    if len(names) == 1:
        return f"Column {names[0]!r}"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"Columns {', '.join(map(repr, names[:_NAMED]))}{more}"
