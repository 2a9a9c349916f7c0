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

# Share of white in the colors of states 7 to 13, and of black in those of states 14 to 20.
_TINTS = (0.0, 0.4, -0.45)
# What rounding may leave of a probability.
_NOTHING = 1e-9
#: Standard deviations to either side of a line.
WIDE = 2.0
# Letters of a name that leaves room for a picture.
_LONGEST = 28


def series(position: int) -> tuple[str, str]:
    """Color and marker of a series; after the seventh they come again."""
    return SERIES[position % len(SERIES)]


def state_color(state: int) -> str:
    """The color of a state in every display: that of a series, after the seventh a lighter one, then a darker one."""
    base, share = SERIES[state % len(SERIES)][0], _TINTS[state // len(SERIES) % len(_TINTS)]
    towards = 255 if share > 0 else 0
    channels = (int(base[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(channel + abs(share) * (towards - channel)):02x}" for channel in channels)


def draw_with_band(
    ax: Any, at: np.ndarray, mean: np.ndarray, deviation: np.ndarray, position: int, label: str | None = None
) -> None:
    """A line in the color of a series, in a band of twice its standard deviations."""
    color = series(position)[0]
    ax.fill_between(at, mean - WIDE * deviation, mean + WIDE * deviation, color=color, alpha=0.2, linewidth=0)
    ax.plot(at, mean, color=color, linewidth=1.3, label=label)


def shortened(text: str) -> str:
    """A name cut so that it leaves room for a picture."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


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


def ink_on(share: float) -> str:
    """The color of text on a cell of a heat map that is so far from its middle, 0 to 1."""
    return "white" if share > 0.6 else "black"


def write_names(axis: Any, names: Sequence[str]) -> None:
    """Write the names of columns along an axis of a heat map, as they are: none is mathematics."""
    axis.set_ticks(range(len(names)))
    for label, name in zip(axis.set_ticklabels(names), names):
        label.set_parse_math(False)
        label.set_text(name)


def add_scale(ax: Any, image: Any, label: str, **place: float) -> None:
    """Take the frame of a heat map away, and draw the scale of its colors."""
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, **place)
    bar.outline.set_visible(False)
    bar.set_label(label, color=INK)
