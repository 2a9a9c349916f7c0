"""Components, colors and columns as displays of mixtures choose them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral

import numpy as np

from skvbem._names import did_you_mean

_LONGEST = 28


def shown_components(counts: np.ndarray) -> list[int]:
    """The components that at least one row's worth of data is in, or else the one that has most."""
    counts = np.asarray(counts, dtype=float)
    return np.flatnonzero(counts >= 1.0).tolist() or [int(np.argmax(counts))]


def column_positions(features: Iterable, names: Sequence[str], owner: str) -> list[int]:
    """The positions of columns given by name or position.

    Raises
    ------
    ValueError
        If there is no such column, or one is named twice.
    """
    positions = []
    for feature in [features] if isinstance(features, (str, Integral)) else features:
        if isinstance(feature, str) and feature in names:
            positions.append(names.index(feature))
        elif isinstance(feature, Integral) and not isinstance(feature, bool) and 0 <= int(feature) < len(names):
            positions.append(int(feature))
        else:
            raise ValueError(
                f"The 'features' parameter of {owner} names {feature!r}, which is no column of X."
                f"{did_you_mean(feature, names)}"
            )
        if positions[-1] in positions[:-1]:
            raise ValueError(f"The 'features' parameter of {owner} names {names[positions[-1]]!r} twice.")
    return positions


def shortened(text: str) -> str:
    """A name cut so that it leaves room for a picture."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"
