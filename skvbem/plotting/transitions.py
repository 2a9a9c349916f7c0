"""`TransitionsDisplay`: which states follow which, and where sequences begin."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.choice import intervals_to_draw, states_in_order
from skvbem.plotting.display import CHAINS, Display, check_drawable, check_share
from skvbem.plotting.labels import FAINT, INK, shortened, state_color

_COLOR_OF_ZERO, _COLOR_OF_ONE = "#f1f5fa", "#1c4f7c"
# Of probability, above which ink cannot be read.
_DARK = 0.55
# Inches: a cell, with and without intervals, all of them at most, what is around them; no numbers in smaller cells.
_CELL, _WIDE_CELL, _MAX_WIDTH, _AROUND, _MIN_NUMBERED_CELL = 0.62, 0.95, 8.0, 1.3, 0.34
# Between the row of first states and those of transitions, in cells.
_GAP = 0.35


class TransitionsDisplay(Display):
    """Transition probabilities as a table in shades, a row for each state to come from, above it that of first states.

    Numbers are probabilities (posterior means of VB), below them intervals if wanted. A transition that a
    mask or the prior rules out is an empty cell. Empty states are left out, unless the order names them, so that rows
    may lack a little of 1. Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    transmat : ndarray of shape (n_states, n_states)
        Probabilities of the states drawn; NaN where there is no such transition.
    startprob : ndarray of shape (n_states,)
        NaN for a state that no sequence begins in.
    states : list of int
        What these states are called.
    intervals : pair of ndarray of shape (n_states + 1, n_states), default=None
        Lower and upper ends, those of first states in row 0.
    note : str, default=""
        What the intervals are, for the picture to say.
    ordered_by : str, default=None
        The column whose expected values the states are ordered by, for the picture to say.

    See Also
    --------
    StatePathDisplay : a sequence with its states, in the same colors.
    ClassProfileDisplay : what is observed in each state.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.plotting import TransitionsDisplay
    >>> counts = load_earthquakes(as_frame=True).data
    >>> model = VBHMM(3, emission="poisson", random_state=0).fit(counts)
    >>> display = TransitionsDisplay.from_estimator(model, order="count")  # of few earthquakes first
    >>> model.parameters_["poisson"]["rates"][display.states, 0].round(1).tolist()
    [13.1, 19.8, 30.0]
    """

    def __init__(self, transmat, startprob, *, states, intervals=None, note="", ordered_by=None):
        self.transmat = transmat
        self.startprob = startprob
        self.states = states
        self.intervals = intervals
        self.note = note
        self.ordered_by = ordered_by

    @classmethod
    def from_estimator(cls, estimator, X=None, *, order=None, level=0.95, draws=None, ax=None):
        """Plot the transitions of a fitted hidden Markov model.

        Parameters
        ----------
        estimator : fitted VBHMM
        X : list of tables, or table of one sequence, default=None
            The data of the fit, for intervals by draws from the posterior, by linear response where rows cannot be
            drawn, or after ``method="map"`` and "ml" by the observed information. Without X and `draws` there are none.
        order : None, str or array-like of int, default=None
            Order of the states: by number, by what a column is expected to hold in them, or these states only.
        level : float or None, default=0.95
            Mass of the intervals; None for none.
        draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
            What `sample_posterior`, `bootstrap` or `standard_errors` of the estimator returned, for intervals from it.
        ax : matplotlib Axes, default=None
            By default in a new figure of fitting size.

        Returns
        -------
        TransitionsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no hidden Markov model.
        ValueError
            If there is no such column or state, or the level is no share.
        """
        check_drawable(estimator, CHAINS, cls.__name__)
        check_share("level", level, cls.__name__, optional=True)
        states = states_in_order(estimator, order, cls.__name__)
        prior = np.vstack([estimator.startprob_prior_, estimator.transmat_prior_])
        means = np.vstack([estimator.startprob_, estimator.transmat_])
        rows = [0, *(state + 1 for state in states)]
        means = np.where(prior > 0, means, np.nan)[np.ix_(rows, states)]
        intervals, drawn = None, intervals_to_draw(estimator, X, draws, level)
        if drawn is not None:
            of_chain = drawn.ends["chain"]
            ends = (np.vstack(pair)[np.ix_(rows, states)] for pair in zip(of_chain["startprob"], of_chain["transmat"]))
            intervals = tuple(np.where(np.isnan(means), np.nan, end) for end in ends)
        note = "" if drawn is None else drawn.words
        ordered_by = order if isinstance(order, str) else None
        display = cls(means[1:], means[0], states=states, intervals=intervals, note=note, ordered_by=ordered_by)
        return display.plot(ax=ax)

    def _cell(self) -> float:
        """The width of a cell, inches."""
        return min(_CELL if self.intervals is None else _WIDE_CELL, _MAX_WIDTH / len(self.states))

    def _size(self):
        n, cell = len(self.states), self._cell()
        return max(n * cell, 2.2) + _AROUND, (n + 1 + _GAP) * cell + _AROUND

    def _draw(self, ax) -> None:
        n, cell = len(self.states), self._cell()
        values = np.vstack([self.startprob, self.transmat]).astype(float)
        heights = np.concatenate([[0.0], np.arange(n) + 1 + _GAP])
        self._draw_cells(ax, values, heights)
        if cell >= _MIN_NUMBERED_CELL:
            self._write_numbers(ax, values, heights, cell)
        else:
            _add_scale(ax)
        ax.set(xlim=(-0.52, n - 0.48), ylim=(heights[-1] + 0.52, -0.52), aspect="equal")
        ax.xaxis.tick_top()
        ax.set_xticks(range(n), self.states)
        ax.set_yticks(heights, ["first", *self.states])
        for tick, state in zip([*ax.get_xticklabels(), *ax.get_yticklabels()[1:]], [*self.states] * 2):
            tick.set(color=state_color(state), weight="bold")
        ax.tick_params(length=0)
        ax.xaxis.set_label_position("top")
        order = "" if self.ordered_by is None else f"\n(in ascending order of {shortened(self.ordered_by)})"
        ax.set_xlabel(f"to state{order}", size=9, color=INK, parse_math=False)
        ax.set_ylabel("from state", size=9, color=INK, y=0.5 * n / (n + 1 + _GAP))
        ax.spines[:].set_visible(False)

    def _draw_cells(self, ax, values, heights) -> None:
        from matplotlib.collections import PatchCollection
        from matplotlib.patches import Rectangle

        n = len(self.states)
        cells = [Rectangle((j - 0.5, y - 0.5), 1, 1) for y in heights for j in range(n)]
        there = ~np.isnan(values.ravel())
        colors = _shades()(np.where(there, values.ravel(), 0.0))
        colors[~there] = 1.0
        ax.add_collection(PatchCollection(cells, facecolor=colors, edgecolor=FAINT, linewidth=0.6, zorder=2))

    def _write_numbers(self, ax, values, heights, cell: float) -> None:
        """Write probabilities in their cells, and intervals below them."""
        size = float(np.clip(15 * cell, 6, 10))
        for row, y in enumerate(heights):
            for j, value in enumerate(values[row]):
                if np.isnan(value):
                    continue
                color = "white" if value > _DARK else INK
                middle = {"ha": "center", "va": "center", "color": color, "zorder": 3}
                low, high = (np.nan, np.nan) if self.intervals is None else (end[row, j] for end in self.intervals)
                if np.isnan(low):
                    ax.text(j, y, _written(value), size=size, **middle)
                    continue
                ax.text(j, y - 0.14, _written(value), size=size, **middle)
                ax.text(j, y + 0.2, f"{_written(low)}–{_written(high)}", size=0.78 * size, **middle)
        if self.intervals is not None:
            ax.set_title(f"below: {self.note}", loc="left", size=9, color=INK)


def _shades():
    """The color map of probabilities from 0 to 1."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("probability", [_COLOR_OF_ZERO, _COLOR_OF_ONE])


def _add_scale(ax) -> None:
    """Draw the scale of the shades, where cells are too small for numbers."""
    from matplotlib.cm import ScalarMappable

    bar = ax.figure.colorbar(ScalarMappable(cmap=_shades()), ax=ax, shrink=0.6, label="probability")
    bar.outline.set_visible(False)


def _written(probability: float) -> str:
    """A probability in two digits, and what is neither impossible nor certain told apart from what is."""
    if 0 < probability < 0.005:
        return "<.01"
    if 0.995 <= probability < 1:
        return ">.99"
    return f"{probability:.2f}".removeprefix("0") if 0 < probability < 1 else f"{probability:.0f}"
