"""`FittedColumnsDisplay`: how often cells of columns of numbers were observed, and how often the fit expects them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.fitting.fit import question
from skvbem.plotting.choice import column_positions, shown_components
from skvbem.plotting.display import Panels, check_drawable
from skvbem.plotting.labels import FAINT, INK, plain_axes, shortened, state_color

# Columns that are drawn by default; bins of measurements and of angles; counts that have a bar each at most; pictures
# in a row; components in the legend.
_MAX_COLUMNS, _N_BINS, _N_SECTORS, _MAX_BARS, _IN_ROW, _MAX_LABELED = 4, 30, 24, 100, 2, 12
# Inches.
_WIDTH, _HEIGHT = 4.4, 3.2


@dataclass(frozen=True, eq=False)
class FittedColumn:
    """Shares of cells in bins, as observed and as expected.

    Parameters
    ----------
    name : str
    edges : ndarray of shape (n_bins + 1,)
        Ends of bins; of counts halfway between them.
    observed : ndarray of shape (n_bins,)
        Shares of the known cells.
    expected : ndarray of shape (n_components, n_bins)
        Probabilities of a component and a cell in the bin; they sum to one if no bin is left out.
    turn : float or None
        Of angles what is as good as 0.
    """

    name: str
    edges: np.ndarray
    observed: np.ndarray
    expected: np.ndarray
    turn: float | None = None


class FittedColumnsDisplay(Panels):
    """Columns of numbers: shares of cells as observed in bars, and as the fit expects them in lines, by component.

    Counts have a bar each. Measurements have bins of one width, and angles sectors of a rose whose areas are the
    shares. A line in the color of each component is what it adds, and a dark line their sum. Make one with
    :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    columns : list of FittedColumn
    components : list of int
        What the components drawn are called.
    label : {"component", "state"}

    Attributes
    ----------
    axes_ : ndarray of shape (n_columns,) of matplotlib Axes

    See Also
    --------
    PseudoResidualsDisplay : single cells, and what follows what.
    ClassProfileDisplay : means and probabilities of each component.

    Notes
    -----
    Probabilities are differences of cumulative ones at the published parameters. Components weigh as many rows as they
    are expected to have. Columns that regressors explain are left out.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.plotting import FittedColumnsDisplay
    >>> counts = load_earthquakes(as_frame=True).data
    >>> model = VBHMM(3, emission="poisson", random_state=0).fit(counts)
    >>> display = FittedColumnsDisplay.from_estimator(model, counts)
    >>> len(display.axes_), len(display.components)
    (1, 3)
    """

    def __init__(self, columns, *, components, label="component"):
        self.columns = columns
        self.components = components
        self.label = label

    @classmethod
    def from_estimator(cls, estimator, X, features=None, *, axes=None, **where):
        """Plot what a mixture or a hidden Markov model expects of columns, beside what they hold.

        Parameters
        ----------
        estimator : fitted VBMixture or VBHMM
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            With all columns that the fit had.
        features : list of str or int, default=None
            Which columns, by name or position, in which order; by default the first four that can be drawn.
        axes : array-like of matplotlib Axes, default=None
            As `axes_`, polar ones for angles; by default in a new figure of fitting size.
        **where
            For sequences `sequence_id` or `lengths`, as in `fit`.

        Returns
        -------
        FittedColumnsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no mixture and no hidden Markov model.
        ValueError
            If a column has no cumulative probabilities, as categories have none.
        """
        kind = "mixtures and hidden Markov models, VBMixture and VBHMM", "groups_", "pseudo_residuals"
        check_drawable(estimator, kind, cls.__name__)
        fitted, reading = question(estimator, X, **where)
        shown = shown_components(estimator.counts_)
        weights = np.asarray(estimator.counts_, dtype=float)
        of_name: dict[str, FittedColumn] = {}
        for group, values, parameters in zip(fitted.groups.groups, reading.values, fitted.parameters()):
            if group.specification.lags or len(group.specification.covariates):
                continue
            for j, name in enumerate(group.names):
                column = _column(name, group.specification, values, parameters, j, weights / weights.sum())
                if column is not None:
                    of_name[name] = column
        names = list(fitted.groups.names)
        chosen = list(of_name)[:_MAX_COLUMNS]
        if features is not None:
            chosen = [names[at] for at in column_positions(features, names, cls.__name__)]
        without = [name for name in chosen if name not in of_name] or ([] if chosen else names)
        if without:
            raise ValueError(
                f"{cls.__name__} draws columns of numbers with a distribution of their own. {without[0]!r} is none, or "
                "has no known cell. ClassProfileDisplay draws columns of any family."
            )
        columns = [of_name[name] for name in chosen]
        return cls(columns, components=shown, label=fitted.label).plot(axes=axes)

    def _new_axes(self) -> np.ndarray:
        """Axes in a new figure, round ones for angles."""
        from matplotlib import pyplot as plt

        n = len(self.columns)
        n_across = min(n, _IN_ROW)
        n_down = -(-n // _IN_ROW)
        figure = plt.figure(figsize=(_WIDTH * n_across, _HEIGHT * n_down), layout="constrained")
        kinds = ["rectilinear" if column.turn is None else "polar" for column in self.columns]
        return np.array([figure.add_subplot(n_down, n_across, k + 1, projection=kind) for k, kind in enumerate(kinds)])

    def _grid(self) -> tuple[tuple[int, ...], dict]:
        return (len(self.columns),), {}

    def _draw(self, axes: np.ndarray) -> None:
        for ax, column in zip(axes, self.columns):
            (_draw_rose if ax.name == "polar" else _draw_bars)(ax, column, self.components)
            ax.set_title(shortened(column.name), size=10, color=INK, loc="left", parse_math=False)
        handles, labels = axes[0].get_legend_handles_labels()
        labels = [f"{self.label} {text}" if text.isdigit() else text for text in labels]
        axes[0].figure.legend(
            handles[: _MAX_LABELED + 2], labels[: _MAX_LABELED + 2], loc="outside lower center", ncols=4, frameon=False,
            fontsize=9,
        )  # fmt: skip


def _column(
    name: str, specification: Any, values: np.ndarray, parameters: Any, j: int, weights: np.ndarray
) -> FittedColumn | None:
    """Shares of a column in bins; None of a column without known cells, or without cumulative probabilities."""
    turn = specification.period
    cells = values[:, j].astype(float)
    cells = cells[~np.isnan(cells) if values.dtype.kind == "f" else cells >= 0]
    if (
        not len(cells)
        or specification.holds_categories
        or specification.cumulative_of_cells(values[:1], parameters) is None
    ):
        return None
    is_whole = getattr(specification, "holds_counts", False) or values.dtype.kind != "f"
    edges = _edges(cells, is_whole, turn)
    at = np.ceil(edges) if is_whole else edges  # a count is below an edge if it is below the next whole number
    if turn is not None:
        cells = np.remainder(cells + turn / 2, turn) - turn / 2
        at = np.clip(at, -turn / 2, (1 - 1e-12) * turn / 2)  # half a turn is minus half a turn
    every = np.repeat(at[:, None], values.shape[1], axis=1)
    below, up_to = (each[:, :, j] for each in specification.cumulative_of_cells(every, parameters))
    has_bars = is_whole and (np.diff(edges) == 1).all()
    first = below[:, :-1]
    last = up_to[:, :-1] if has_bars else np.concatenate([below[:, 1:-1], up_to[:, -1:]], axis=1)
    expected = weights[:, None] * (last - first)
    observed = np.histogram(cells, edges)[0] / len(cells)
    return None if np.isnan(expected).any() else FittedColumn(name, edges, observed, expected, turn)


def _edges(cells: np.ndarray, is_whole: bool, turn: float | None) -> np.ndarray:
    """Ends of bins: one for each count, or for several if there are many; of one width for measurements and angles."""
    if turn is not None:
        return np.linspace(-turn / 2, turn / 2, _N_SECTORS + 1)
    low, high = cells.min(), cells.max()
    if is_whole:
        width = -(-(high - low + 1) // _MAX_BARS)
        return np.arange(low, high + width + 1, width) - 0.5
    n_bins = min(_N_BINS, max(int(np.sqrt(len(cells))), 5))
    return np.linspace(low, high if high > low else low + 1.0, n_bins + 1)


def _several(components: list[int]) -> list[int]:
    """Components that have lines of their own: a single one is the fit."""
    return components if len(components) > 1 else []


def _draw_bars(ax: Any, column: FittedColumn, components: list[int]) -> None:
    ax.stairs(column.observed, column.edges, fill=True, color=FAINT, zorder=1, label="observed")
    middle = (column.edges[1:] + column.edges[:-1]) / 2
    for k in _several(components):
        ax.plot(middle, column.expected[k], color=state_color(k), linewidth=1.4, zorder=2, label=str(k))
    ax.plot(
        middle, column.expected.sum(axis=0), color=INK, linewidth=1.2, marker="o", markersize=2.5, zorder=3, label="fit"
    )
    ax.set_ylabel("share of cells", size=9, color=INK)
    ax.set_ylim(0, None)
    plain_axes(ax)


def _draw_rose(ax: Any, column: FittedColumn, components: list[int]) -> None:
    """Draw sectors whose areas are shares, so that radii are their square roots."""
    assert column.turn is not None
    radians = column.edges * 2 * np.pi / column.turn
    middle = (radians[1:] + radians[:-1]) / 2
    ax.bar(
        middle, np.sqrt(column.observed), width=np.diff(radians), color=FAINT, linewidth=0, zorder=1, label="observed"
    )
    around = np.append(middle, middle[0])
    for k in _several(components):
        radius = np.sqrt(column.expected[k])
        ax.plot(around, np.append(radius, radius[0]), color=state_color(k), linewidth=1.4, zorder=2, label=str(k))
    radius = np.sqrt(column.expected.sum(axis=0))
    ax.plot(around, np.append(radius, radius[0]), color=INK, linewidth=1.2, zorder=3, label="fit")
    ax.set_yticks([])
    quarters = np.array([0.0, 0.25, 0.5, -0.25])
    texts = ["0", "π/2", "π", "-π/2"] if column.turn == 2 * np.pi else [f"{q * column.turn:g}" for q in quarters]
    ax.set_xticks(np.remainder(quarters, 1.0) * 2 * np.pi, texts)
    ax.tick_params(labelsize=8, labelcolor=INK)
    ax.grid(visible=False)
    ax.spines["polar"].set_color(FAINT)
