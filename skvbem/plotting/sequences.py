"""Displays of hidden Markov models: a sequence with the states behind it, and which states follow which."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.choice import intervals_to_draw, states_in_order
from skvbem.plotting.display import CHAINS, Display, Panels, check_drawable, check_share
from skvbem.plotting.labels import FAINT, INK, QUIET, plain_axes, shortened, state_color
from skvbem.plotting.tracks import edges_of, pooled, positions_of, sequence_to_draw, tracks_of

_MISSING = "#e9edf1"
# Steps drawn one by one, with marks; runs of steps that bands are pooled to; categories with a label each; states in
# the legend, and in a line of it.
_MAX_STEPS_WITH_MARKS, _MAX_RUNS, _MAX_LABELS, _MAX_LISTED_STATES, _STATES_IN_LINE = 250, 1200, 30, 24, 8
# Of probability at some step, for a state that the sequence is said to visit.
_MIN_DRAWN_PROBABILITY = 0.01
# Inches.
_WIDTH, _NUMBERS, _CATEGORY, _PATH, _PROBABILITIES = 9.0, 1.7, 0.16, 0.22, 0.9
_COLOR_OF_ZERO, _COLOR_OF_ONE = "#f1f5fa", "#1c4f7c"
# Of probability, above which ink cannot be read.
_DARK = 0.55
# Inches: a cell, with and without intervals, all of them at most, what is around them; no numbers in smaller cells.
_CELL, _WIDE_CELL, _MAX_WIDTH, _AROUND, _MIN_NUMBERED_CELL = 0.62, 0.95, 8.0, 1.3, 0.34
# Between the row of first states and those of transitions, in cells.
_GAP = 0.35


class StatePathDisplay(Panels):
    """Columns of a sequence over time, and below them its most probable path and the probabilities of the states.

    Numbers are dots on a thin line, which breaks where cells are missing. A thick line in the color of each step's
    state is the expected value of the column in that state. Categories are marks, with a row for each category. Steps
    whose cell is missing are shaded. The path and the (smoothed) probabilities are bands in the states' colors, the
    same as in `TransitionsDisplay`. Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    path : ndarray of int, shape (n_steps,)
        The state of each step on the most probable path.
    state_probs : ndarray of shape (n_steps, n_components)
        Given the whole sequence.
    tracks : list
        Columns, as `from_estimator` reads them.
    states : list of int, default=None
        From the bottom of the bands up; by default by number. Others come on top of these.
    times : ndarray of numbers or datetime64, shape (n_steps,), default=None
        Ascending; by default 0, 1, 2, ...
    time_label : str, default=None
        By default "step", or "time" if there are times.
    ordered_by : str, default=None
        The column whose expected values the states are ordered by, for the picture to say.

    Attributes
    ----------
    axes_ : ndarray of shape (n_columns + 2,) of matplotlib Axes
        Axes of the columns, the path, and the probabilities.

    See Also
    --------
    TransitionsDisplay : how states follow each other.
    ClassProfileDisplay : what is observed in each state.

    Notes
    -----
    The path is the best one as a whole (Viterbi), so that a step of it need not be in the state that is most probable
    there. In sequences of more than 1200 steps the bands show shares of states in runs of equally many steps.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.plotting import StatePathDisplay
    >>> counts = load_earthquakes(as_frame=True).data  # a year in each row
    >>> model = VBHMM(3, emission="poisson", random_state=0).fit(counts)
    >>> display = StatePathDisplay.from_estimator(model, counts, times=counts.index)
    >>> len(display.axes_)
    3
    """

    def __init__(self, path, state_probs, tracks, *, states=None, times=None, time_label=None, ordered_by=None):
        self.path = path
        self.state_probs = state_probs
        self.tracks = tracks
        self.states = states
        self.times = times
        self.time_label = time_label
        self.ordered_by = ordered_by

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        features=None,
        *,
        sequence_id=None,
        lengths=None,
        time=None,
        sequence=0,
        times=None,
        order=None,
        axes=None,
    ):
        """Plot the states of a sequence under a fitted hidden Markov model.

        Parameters
        ----------
        estimator : fitted VBHMM
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            With all columns that the fit had.
        features : list of str or int, default=None
            Which columns, by name or position, in which order; by default the first four.
        sequence_id, lengths, time : array-like, default=None
            As in `fit`.
        sequence : int, default=0
            Which of the sequences of X, in the order in which they appear.
        times : array-like, default=None
            Numbers, such as years, or dates, for each step of the sequence or for each row of X; or, of a list of
            sequences, a list of these. By default steps are at the times of X, or are numbered from 0 if it has none.
        order : None, str or array-like of int, default=None
            In which order bands lie on each other: by number, by what a column is expected to hold in the states, or
            these states first.
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.

        Returns
        -------
        StatePathDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no hidden Markov model, or times are neither numbers nor dates.
        ValueError
            If there is no such column, sequence or state, or times are not one for each step, or not ascending.
        """
        owner = cls.__name__
        check_drawable(estimator, CHAINS, owner)
        states = states_in_order(estimator, order, owner)
        fitted = estimator.fitted
        where = {"sequence_id": sequence_id, "lengths": lengths, "time": time}
        drawn = sequence_to_draw(estimator, X, owner, sequence, times, **where)
        path, state_probs = estimator.predict(drawn.sequence), estimator.predict_proba(drawn.sequence)
        tracks = tracks_of(fitted, drawn.reading.values, path, features, owner)
        ordered_by = order if isinstance(order, str) else None
        options = {"states": states, "times": drawn.times, "time_label": drawn.time_label, "ordered_by": ordered_by}
        return cls(path, state_probs, tracks, **options).plot(axes=axes)

    def _grid(self):
        heights = [*map(_height, self.tracks), _PATH, _PROBABILITIES]
        size = _WIDTH, sum(heights) + 0.14 * len(heights) + 0.7
        return (len(heights),), {"figsize": size, "height_ratios": heights, "sharex": True}

    def _draw(self, axes) -> None:
        path, state_probs = np.asarray(self.path), np.asarray(self.state_probs, dtype=float)
        positions, are_dates = positions_of(self.times, len(path))
        edges = edges_of(positions)
        for ax, track in zip(axes, self.tracks):
            _shade(ax, edges, np.isnan(track.values))
            if len(track.labels):
                self._draw_categories(ax, track, path, positions)
            else:
                self._draw_numbers(ax, track, path, positions, edges)
            ax.set_ylabel(shortened(track.name), size=9, color=INK, parse_math=False)
            plain_axes(ax)
        states = self._states(state_probs.shape[1])
        on_path, probable, edges_of_runs = pooled(path, state_probs, edges, _MAX_RUNS)
        for ax, fractions in zip(axes[-2:], (on_path, probable)):
            _draw_bands(ax, edges_of_runs, fractions, states)
        self._finish(axes, edges, are_dates)
        visited = (on_path[:, states].max(axis=0) > 0) | (probable[:, states].max(axis=0) >= _MIN_DRAWN_PROBABILITY)
        shaded = any(np.isnan(track.values).any() for track in self.tracks)
        _name_states(axes[0], [state for state, seen in zip(states, visited) if seen], self.ordered_by, shaded)

    def _states(self, n_states: int) -> list[int]:
        """All states in the order of the bands, from the bottom up."""
        first = [] if self.states is None else list(self.states)
        return first + [state for state in range(n_states) if state not in first]

    def _draw_numbers(self, ax, track, path, positions, edges) -> None:
        """Draw values, and in the state's color what is expected of them, unless they are only given."""
        seen = ~np.isnan(track.values)
        few = len(path) <= _MAX_STEPS_WITH_MARKS
        ax.plot(positions, track.values, color=FAINT, linewidth=0.8, zorder=2)
        is_single = seen & ~np.append(seen[1:], False) & ~np.append(False, seen[:-1])  # where there is no line to see
        marked = seen if few else is_single
        size = 3.6 if few else 1.5
        ax.plot(positions[marked], track.values[marked], "o", color=QUIET, markersize=size, markeredgewidth=0, zorder=3)
        ends = np.stack([edges[:-1], edges[1:]], axis=1).ravel()
        for state in np.unique(path) if track.levels is not None else ():
            levels_of_state = np.repeat(np.where(path == state, track.levels, np.nan), 2)
            ax.plot(ends, levels_of_state, color=state_color(state), linewidth=2.2, solid_capstyle="butt", zorder=4)
        ax.margins(y=0.08)

    def _draw_categories(self, ax, track, path, positions) -> None:
        """Draw a mark in the row of its category for each step, in the color of its state."""
        seen = ~np.isnan(track.values)
        colors = np.array([state_color(state) for state in range(int(path.max()) + 1)])[path[seen]]
        size = float(np.clip(6000 / len(path), 3, 40))
        ax.scatter(positions[seen], track.values[seen], s=size, marker="|", c=colors, linewidth=1.0, zorder=3)
        n = len(track.labels)
        if n <= _MAX_LABELS:
            ax.set_yticks(range(n), [shortened(label) for label in track.labels], parse_math=False, size=8)
        ax.set_ylim(n - 0.4, -0.6)

    def _finish(self, axes, edges, are_dates: bool) -> None:
        """Name the axes, show the same span of time on all, and put ticks at the lowest."""
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
        from matplotlib.ticker import MaxNLocator

        numbers, below = np.arange(1) if self.times is None else np.asarray(self.times), axes[-1]
        for ax in axes:
            ax.set_xlim(edges[0], edges[-1])
            if are_dates:
                locator = AutoDateLocator()
                ax.xaxis.set_major_locator(locator)
                ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
            elif numbers.dtype.kind in "iu":
                ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
            ax.tick_params(labelbottom=ax is below)
        axes[-2].set(ylim=(0, 1), yticks=[])
        axes[-2].set_ylabel("path", size=9, color=INK, rotation=0, ha="right", va="center")
        below.set_ylim(0, 1)
        below.set_yticks([0, 0.5, 1], ["0", "½", "1"])
        below.set_ylabel("probability", size=9, color=INK)
        label = self.time_label or ("step" if self.times is None else "time")
        below.set_xlabel(str(label), size=9, color=INK, parse_math=False)
        for ax in axes[-2:]:
            plain_axes(ax)
            ax.spines[["left", "bottom"]].set_visible(ax is below)


def _shade(ax, edges: np.ndarray, missing: np.ndarray) -> None:
    """Shade runs of steps in which nothing was observed."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]]).astype(int)))
    runs = [(edges[a], edges[b] - edges[a]) for a, b in change.reshape(-1, 2)]
    ax.broken_barh(runs, (0, 1), transform=ax.get_xaxis_transform(), color=_MISSING, linewidth=0, zorder=0)


def _draw_bands(ax, edges: np.ndarray, fractions: np.ndarray, states: list[int]) -> None:
    """Draw probabilities of states as bands, one on the other."""
    top = np.cumsum(fractions[:, states], axis=1)
    bottom = top - fractions[:, states]
    for k, state in enumerate(states):
        if (fractions[:, state] > 0).any():
            ax.stairs(
                top[:, k], edges, baseline=bottom[:, k], fill=True, color=state_color(state), linewidth=0, zorder=2
            )


def _name_states(ax, states: list[int], ordered_by: str | None, shaded: bool) -> None:
    """Write the colors of the states above the axes, and what else a reader cannot guess."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = states[:_MAX_LISTED_STATES]
    handles: list[Patch | Line2D] = [Patch(color=state_color(state)) for state in shown]
    labels = [f"state {state}" for state in shown]
    if shaded:
        handles.append(Patch(color=_MISSING))
        labels.append("missing")
    if ordered_by is not None:
        handles.append(Line2D([], [], linestyle="none"))
        labels.append(f"(in ascending order of {shortened(ordered_by)})")
    ax.legend(
        handles, labels, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=_STATES_IN_LINE,
        borderaxespad=0.2, handlelength=1.0, handleheight=1.0, columnspacing=1.4, fontsize=9,
    )  # fmt: skip


def _height(track) -> float:
    """The height of a column, inches."""
    return _NUMBERS if track.levels is not None else max(_CATEGORY * min(len(track.labels), _MAX_LABELS), 0.6)


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
        chain_ends = {} if drawn is None else drawn.ends["chain"]
        if {"startprob", "transmat"} <= {*chain_ends}:  # what covariates drive has coefficients in their place
            ends = (
                np.vstack(pair)[np.ix_(rows, states)] for pair in zip(chain_ends["startprob"], chain_ends["transmat"])
            )
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
