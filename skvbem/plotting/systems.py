"""Displays of linear dynamical systems: a sequence with its gaps filled and what comes next, and how states move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skvbem.fitted.structural import FittedStructural
from skvbem.fitting.kind import kind_of
from skvbem.plotting.display import SYSTEMS, Display, Panels, check_drawable, check_share
from skvbem.plotting.labels import (
    FAINT,
    INK,
    QUIET,
    WIDE,
    draw_with_band,
    label_at_right,
    plain_axes,
    series,
    shortened,
)
from skvbem.plotting.tracks import columns_to_draw, edges_of, positions_of, sequence_to_draw, steps_to_draw

# Steps drawn with large marks, at most.
_MAX_STEPS_WITH_MARKS = 300
# Width of a picture and height of a column, inches.
_WIDTH, _HEIGHT = 9.0, 1.9
# Of a pole, below which it has no imaginary part, and no length; and steps in which half is gone that no one waits for.
_NOTHING, _FOREVER = 1e-3, 10_000


@dataclass(frozen=True, eq=False)
class ColumnTrack:
    """One column of a sequence: what was observed and expected, and what is expected to come.

    Parameters
    ----------
    name : str
    values, expected, deviation : ndarray of shape (n_steps,)
        Observed cells, NaN where missing; what is expected given all of the sequence; deviations of missing cells.
    ahead : ndarray of shape (n_ahead,)
        Means of the forecast.
    fan : list of (float, ndarray, ndarray)
        Levels, and the lower and upper ends of their intervals, (n_ahead,).
    """

    name: str
    values: np.ndarray
    expected: np.ndarray
    deviation: np.ndarray
    ahead: np.ndarray
    fan: list[tuple[float, np.ndarray, np.ndarray]]


class ForecastDisplay(Panels):
    """Columns of a sequence over time with their gaps filled and a fan of what comes next, and the smoothed states.

    Dots are what was observed, the line is what states say of it. Missing cells are shaded in the width of twice their
    deviation, averaged over parameters. Intervals of the fan are those of `forecast`. Below, states are drawn with
    twice their deviations; of a fit by `blocks` these, each in a panel of its own, as `decompose` has them. Make one
    with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    tracks : list
        Columns, as `from_estimator` reads them.
    states, deviations : ndarray of shape (n_steps, n_components)
        Smoothed means of the states, and their standard deviations.
    blocks : dict of str to pair of ndarray of shape (n_steps, n_columns), default=None
        Means and standard deviations of what each block adds to the columns, in the place of states.
    times : ndarray of numbers or datetime64, shape (n_steps,), default=None
        Ascending; by default 0, 1, 2, ...
    time_label : str, default=None
        By default "step", or "time" if there are times.
    times_ahead : ndarray of numbers or datetime64, shape (n_ahead,), default=None
        Times of the steps to come; by default they are as far from each other as the last two of `times`.

    Attributes
    ----------
    axes_ : ndarray of shape (n_columns + 1,) or (n_columns + n_blocks,) of matplotlib Axes
        Axes of the columns, and of the states or blocks.

    See Also
    --------
    PolesDisplay : how states move.
    LoadingsDisplay : which columns each state is seen in.
    BlocksDisplay : the blocks of one column.

    Examples
    --------
    >>> from skvbem import VBLinearDynamicalSystem
    >>> from skvbem.datasets import load_nile
    >>> from skvbem.plotting import ForecastDisplay
    >>> flow = load_nile(as_frame=True).data
    >>> model = VBLinearDynamicalSystem(1, random_state=0).fit(flow)
    >>> display = ForecastDisplay.from_estimator(model, flow, 10, time="index", last=40)
    >>> len(display.axes_), len(display.tracks[0].ahead)
    (2, 10)
    """

    def __init__(self, tracks, states, deviations, *, blocks=None, times=None, time_label=None, times_ahead=None):
        self.tracks = tracks
        self.states = states
        self.deviations = deviations
        self.blocks = blocks
        self.times = times
        self.time_label = time_label
        self.times_ahead = times_ahead

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        n_steps=10,
        features=None,
        *,
        sequence_id=None,
        lengths=None,
        inputs=None,
        output_inputs=None,
        time=None,
        future_inputs=None,
        future_output_inputs=None,
        sequence=0,
        times=None,
        last=None,
        levels=(0.5, 0.8, 0.95),
        axes=None,
    ):
        """Plot a sequence under a fitted linear dynamical system, and its next steps.

        Parameters
        ----------
        estimator : fitted VBLinearDynamicalSystem
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            With all columns that the fit had.
        n_steps : int, default=10
            How many steps ahead.
        features : list of str or int, default=None
            Which columns, by name or position, in which order; by default the first four.
        sequence_id, lengths, inputs, output_inputs, time : array-like, default=None
            As in `fit`.
        future_inputs, future_output_inputs : array-like of shape (n_steps, n_inputs), default=None
            Inputs of the steps to come.
        sequence : int, default=0
            Which of the sequences of X, in the order in which they appear.
        times : array-like, default=None
            Numbers, such as years, or dates, for each step of the sequence or for each row of X; or, of a list of
            sequences, a list of these. Steps to come are as far from each other as the last two. By default steps are
            at the times of X, or are numbered from 0 if it has none.
        last : int, default=None
            How many steps of the sequence to draw, the last ones; by default all.
        levels : sequence of float, default=(0.5, 0.8, 0.95)
            Masses of the intervals of the fan.
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.

        Returns
        -------
        ForecastDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no linear dynamical system, or times are neither numbers nor dates.
        ValueError
            If there is no such column or sequence, a level is no share, or times are not one for each step.
        """
        owner = cls.__name__
        check_drawable(estimator, SYSTEMS, owner)
        for level in levels:
            check_share("level", level, owner)
        fitted = estimator.fitted
        where = {"sequence_id": sequence_id, "lengths": lengths, "inputs": inputs, "output_inputs": output_inputs}
        kept = steps_to_draw(last, owner)
        drawn = sequence_to_draw(estimator, X, owner, sequence, times, n_steps, time=time, **where)
        future = {"future_inputs": future_inputs, "future_output_inputs": future_output_inputs}
        forecasts = [estimator.forecast(drawn.sequence, n_steps, level=level, **future) for level in sorted(levels)]
        reading, times = drawn.reading, drawn.times
        data = kind_of(estimator).compiled(estimator, fitted.model, reading, 1)
        of_gaps = _deviations_of_gaps(estimator, reading, data)
        states = fitted.smoothed(data, fitted.natural("mean"))
        expected = fitted.matrices.output(states.mean, reading.output_inputs)
        names = fitted.names
        chosen = columns_to_draw(features, names, owner)
        tracks = [
            ColumnTrack(
                names[j],
                reading.values[0][kept, j],
                expected[kept, j],
                of_gaps[kept, j],
                forecasts[0].mean[0, :, j],
                [(each.level, each.lower[0, :, j], each.upper[0, :, j]) for each in forecasts],
            )
            for j in chosen
        ]
        deviations = np.sqrt(np.einsum("tkk->tk", states.covariance))
        return cls(
            tracks,
            states.mean[kept],
            deviations[kept],
            blocks=_blocks_to_draw(fitted, data, kept, chosen) if isinstance(fitted, FittedStructural) else None,
            times=None if times is None else times[kept],
            time_label=drawn.time_label,
            times_ahead=drawn.times_ahead,
        ).plot(axes=axes)

    @property
    def _hidden(self) -> dict[str, tuple[np.ndarray, np.ndarray, list[str]]]:
        """Panels below the columns: by name the means and deviations of some lines, and the labels of these."""
        if self.blocks is None:
            labels = [f"state {k}" for k in range(len(self.states[0]))]
            return {"states": (self.states, self.deviations, labels)}
        labels = [track.name for track in self.tracks]
        return {name: (*of_block, labels) for name, of_block in self.blocks.items()}

    def _grid(self):
        n_axes = len(self.tracks) + len(self._hidden)
        return (n_axes,), {"figsize": (_WIDTH, _HEIGHT * n_axes + 0.6), "sharex": True}

    def _draw(self, axes) -> None:
        n_ahead = len(self.tracks[0].ahead)
        at, ahead, are_dates = self._positions(len(self.states), n_ahead)
        for ax, track in zip(axes, self.tracks):
            _draw_column(ax, track, at, ahead)
            ax.set_ylabel(shortened(track.name), size=9, color=INK, parse_math=False)
        for ax, (name, (means, deviations, labels)) in zip(axes[len(self.tracks) :], self._hidden.items()):
            for k, (mean, deviation) in enumerate(zip(np.transpose(means), np.transpose(deviations))):
                draw_with_band(ax, at, mean, deviation, k, label=shortened(labels[k]))
            ax.set_ylabel(name, size=9, color=INK, parse_math=False)
            if len(labels) > 1 and ax is axes[len(self.tracks)]:
                ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
        for ax in axes:
            ax.axvline((at[-1] + ahead[0]) / 2, color=FAINT, linewidth=0.8, zorder=0)
            plain_axes(ax)
        edges = edges_of(np.concatenate([at, ahead]))
        axes[0].set_xlim(edges[0], edges[-1])
        if are_dates:
            axes[-1].xaxis_date()
        default = "step" if self.times is None else "time"
        axes[-1].set_xlabel(str(self.time_label or default), size=9, color=INK)
        axes[0].set_title(self._legend(), loc="left", size=9, color=QUIET)

    def _legend(self) -> str:
        *others, last = [""] + [f"{100 * level:g}" for level, *_ in self.tracks[0].fan]
        levels = " and ".join(filter(None, [", ".join(others[1:]), last]))
        return f"fan: intervals of {levels} %" if levels else ""

    def _positions(self, n_steps: int, n_ahead: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Positions of the steps and of those to come on the axis, and whether these are dates."""
        at, are_dates = positions_of(self.times, n_steps)
        if self.times_ahead is not None:
            return at, positions_of(self.times_ahead, n_ahead)[0], are_dates
        step = at[-1] - at[-2] if len(at) > 1 else 1.0
        return at, at[-1] + step * np.arange(1, n_ahead + 1), are_dates


def _blocks_to_draw(fitted: FittedStructural, data, kept: slice, columns) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Means and deviations of what each block adds to some columns at some steps, by name."""
    parts = zip(fitted.model.design.block_names, fitted.blocks(data, fitted.natural("mean")))
    return {name: (part.mean[kept][:, columns], part.deviation[kept][:, columns]) for name, part in parts}


def _deviations_of_gaps(estimator, reading, data) -> np.ndarray:
    """Deviations of missing cells, 0 of others, (n_steps, n_columns)."""
    fitted = estimator.fitted
    naturals = list(fitted.draws_to_average(estimator.predictive, estimator.n_draws))
    _, variance = fitted.imputed(data, reading.output_inputs, naturals)
    return np.where(np.isnan(reading.values[0]), np.sqrt(variance), 0.0)


def _draw_column(ax, track: ColumnTrack, at: np.ndarray, ahead: np.ndarray) -> None:
    """Draw what was observed and expected of a column, bands over its gaps, and the fan."""
    color, fan_color = series(0)[0], series(1)[0]
    missing = np.isnan(track.values)
    edges = edges_of(at)
    for a, b in _runs(missing):
        # a band as wide as the cells it stands for, so that one missing cell has one
        places = np.concatenate([[edges[a]], at[a:b], [edges[b]]])
        middle, wide = (np.concatenate([[x[a]], x[a:b], [x[b - 1]]]) for x in (track.expected, track.deviation))
        ax.fill_between(
            places,
            middle - WIDE * wide,
            middle + WIDE * wide,
            color=FAINT,
            alpha=0.6,
            linewidth=0,
            zorder=1,
        )
    size = 3 if len(at) <= _MAX_STEPS_WITH_MARKS else 1.5
    ax.plot(at, track.values, "o", color=INK, markersize=size, markeredgewidth=0, alpha=0.7, zorder=3)
    ax.plot(at, track.expected, color=color, linewidth=1.3, zorder=4)
    for _, lower, upper in track.fan:
        ax.fill_between(ahead, lower, upper, color=fan_color, alpha=0.2, linewidth=0, zorder=1)
    ax.plot(ahead, track.ahead, color=fan_color, linewidth=1.5, zorder=4)


def _runs(where: np.ndarray) -> list[tuple[int, int]]:
    """First and last-but-one positions of runs of True."""
    change = np.flatnonzero(np.diff(np.concatenate([[False], where, [False]]).astype(int)))
    return [(int(a), int(b)) for a, b in zip(change[::2], change[1::2])]


class PolesDisplay(Display):
    """Eigenvalues of the transition matrix, the poles of the system, and those of draws of it as a cloud.

    Inside the unit circle states come back to rest, the faster the nearer the pole is to the middle; outside they grow
    without limit. A pair off the real axis turns: its angle says in how many steps. Make one with
    :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    poles : ndarray of complex, shape (n_components,)
    drawn : ndarray of complex, shape (n_draws, n_components), default=None
        Poles of draws of the transition matrix.

    See Also
    --------
    ForecastDisplay : what becomes of the states.

    Examples
    --------
    >>> from skvbem import VBLinearDynamicalSystem
    >>> from skvbem.datasets import load_nile
    >>> from skvbem.plotting import PolesDisplay
    >>> model = VBLinearDynamicalSystem(1, random_state=0).fit(load_nile().data)
    >>> display = PolesDisplay.from_estimator(model)
    >>> bool(abs(display.poles[0]) == model.spectral_radius_)
    True
    """

    def __init__(self, poles, *, drawn=None):
        self.poles = poles
        self.drawn = drawn

    @classmethod
    def from_estimator(cls, estimator, *, n_draws=200, ax=None):
        """Plot the poles of a fitted linear dynamical system.

        Parameters
        ----------
        estimator : fitted VBLinearDynamicalSystem
        n_draws : int, default=200
            Draws of q(theta) whose poles are the cloud; 0 for none. A fit that is a point has none.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        PolesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no linear dynamical system.
        """
        check_drawable(estimator, SYSTEMS, cls.__name__)
        fitted, drawn = estimator.fitted, None
        if n_draws and fitted.form.density:
            points = (fitted.posterior.sample(rng) for rng in fitted.rng_of_draws.spawn(n_draws))
            drawn = np.linalg.eigvals(np.stack([fitted.matrices_at(point).transition for point in points]))
        return cls(np.linalg.eigvals(estimator.transition_), drawn=drawn).plot(ax=ax)

    def _new_axes(self):
        from matplotlib import pyplot as plt

        # room for labels right of the circle, which a layout by itself would cut off
        return plt.figure(figsize=(7.6, 3.8)).add_axes((0.1, 0.13, 0.45, 0.78))

    def _draw(self, ax) -> None:
        from matplotlib.patches import Circle

        poles = np.asarray(self.poles)
        ax.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor=QUIET, linewidth=1))
        ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
        ax.axvline(0, color=FAINT, linewidth=0.6, zorder=0)
        color, marker = series(0)
        if self.drawn is not None:
            cloud = np.ravel(self.drawn)
            ax.plot(cloud.real, cloud.imag, ".", color=color, alpha=0.15, markersize=3, markeredgewidth=0, zorder=2)
        ax.plot(poles.real, poles.imag, marker, color=series(1)[0], markersize=7, zorder=3)
        reach = 1.15 * max(1.0, float(np.abs(poles).max(initial=0.0)))
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="real part", ylabel="imaginary part")
        ax.set_title("Poles", color=INK)
        plain_axes(ax)
        label_at_right(ax, [(*where, words, INK, "normal") for where, words in _named(poles)], size=8)


def _named(poles: np.ndarray) -> list[tuple[tuple[float, float], str]]:
    """Place and meaning in words of each pole, of one of a pair; poles of one meaning are named once."""
    named: dict[str, tuple[float, float]] = {}
    for pole in sorted(poles[poles.imag > -_NOTHING], key=lambda each: -abs(each)):
        named.setdefault(in_words(complex(pole)), (pole.real, pole.imag))
    return [(where, words) for words, where in named.items()]


def in_words(pole: complex) -> str:
    """A pole in words: the length of a turn of its states, and the number of steps in which they are halved."""
    radius = abs(pole)
    if radius < _NOTHING:
        return "forgets at once"
    words = []
    if abs(pole.imag) > _NOTHING * radius:
        words.append(f"turns in {2 * np.pi / abs(np.angle(pole)):.3g} steps")
    elif pole.real < 0:
        words.append("changes sign")
    if radius > 1:
        words.append(f"grows by {100 * (radius - 1):.2g} % a step")
    elif radius < 1:
        steps = np.log(0.5) / np.log(radius)
        words.append("stays" if steps > _FOREVER else f"half gone in {steps:,.{0 if steps >= 10 else 1}f} steps")
    return ", ".join(words) or "stays"
