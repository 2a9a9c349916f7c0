"""Labels beside the marks they name, and colors that everyone can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

INK, QUIET, FAINT = "#1f2933", "#6b7785", "#b8c1cb"
#: (color, marker) of series in order: blue, vermilion, green, purple, ochre, gray, black; shapes tell them apart too.
SERIES = (
    ("#2f6ea5", "o"),
    ("#d55e00", "s"),
    ("#009e73", "^"),
    ("#a5568c", "D"),
    ("#c79a00", "v"),
    ("#6b7785", "P"),
    ("#1f2933", "X"),
)

# What rounding may leave of a probability.
_NOTHING = 1e-9


def series(position: int) -> tuple[str, str]:
    """Color and marker of a series; after the seventh they come again."""
    return SERIES[position % len(SERIES)]


def two_axes(owner: str, axes: Any, height: float) -> np.ndarray:
    """The two axes that were given, (2,), or those of a new figure of a height in inches, side by side.

    Parameters
    ----------
    owner : str
        Who draws, for messages.
    axes : sequence of two matplotlib Axes, or None
    height : float
    """
    from matplotlib import pyplot as plt

    if axes is None:
        _, axes = plt.subplots(1, 2, figsize=(8, height), layout="constrained")
    axes = np.ravel(axes)
    if len(axes) != 2:
        raise ValueError(f"The 'axes' parameter of {owner} must hold 2 axes. Got {len(axes)}.")
    return axes


def percent(share: float) -> str:
    """A probability in whole percent; "<1" and ">99" for what is neither impossible nor certain."""
    whole = round(100 * share)
    if whole == 0 and share > _NOTHING:
        return "<1"
    return ">99" if whole == 100 and share < 1 - _NOTHING else f"{whole}"


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> np.ndarray:
    """Positions at least a gap apart, in the same order, nearest by squares to those given.

    They are kept between `low` and `high` if they fit there.
    """
    wanted = np.asarray(positions, dtype=float)
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    room = max(high - low - gap * (len(wanted) - 1), 0.0)
    moved = np.clip(isotonic_regression(wanted[order] - steps).x, low, low + room) + steps
    placed = np.empty_like(moved)
    placed[order] = moved
    return placed


def label_at_right(ax, labels: Sequence[tuple[float, float, str, str, str]], size: float = 9.0) -> None:
    """Write labels in a column right of the axes, none over another, each with a thin line to its mark.

    Parameters
    ----------
    ax : matplotlib Axes
        With its limits, scales and size as they are to be.
    labels : sequence of (x, y, text, color, weight)
        Where the mark is, in data coordinates, and what to write.
    size : float, default=9.0
        Points.
    """
    if not labels:
        return
    ax.figure.draw_without_rendering()
    window = ax.get_window_extent()
    level = (ax.transData.transform([(x, y) for x, y, *_ in labels])[:, 1] - window.y0) / window.height
    gap = 1.5 * size / 72 * ax.figure.dpi / window.height
    line = {"color": FAINT, "linewidth": 0.7, "clip_on": False, "zorder": 1}
    for at, to, (x, y, text, color, weight) in zip(level, spread(level, gap, 0.0, 1.0), labels, strict=True):
        # level within the axes, so that lines of marks at different heights do not cross
        ax.plot([x, ax.get_xlim()[1]], [y, y], scalex=False, scaley=False, **line)
        ax.plot([1.0, 1.04], [at, to], transform=ax.transAxes, scalex=False, scaley=False, **line)
        ax.text(
            1.05, to, text, transform=ax.transAxes, va="center_baseline", ha="left", size=size, color=color,
            weight=weight, parse_math=False,
        )  # fmt: skip


def plain_axes(ax) -> None:
    """Take away the lines above and right of the axes, and quieten the others."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(color=QUIET, labelcolor=INK, length=3)
