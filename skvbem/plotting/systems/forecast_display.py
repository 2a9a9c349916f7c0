"""`ForecastDisplay`: a sequence of measurements, the states behind it, its gaps filled, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.plotting.choice import column_positions, shortened
from skvbem.plotting.intervals import check_mass
from skvbem.plotting.labels import FAINT, INK, QUIET, plain_axes, series
from skvbem.plotting.requirements import need_matplotlib
from skvbem.plotting.sequences.tracks import check_is_sequence, edges_of, times_of_sequence
from skvbem.plotting.systems.fits import fitted_system

# Columns drawn where none is named, and steps drawn with marks.
_MAX_DEFAULT_COLUMNS, _MAX_STEPS_WITH_MARKS = 4, 300
# Inches.
_WIDTH, _HEIGHT = 9.0, 1.9
# Deviations to either side of a smoothed state.
_OF_STATES = 2.0


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


class ForecastDisplay:
    """Columns of a sequence over time with their gaps filled and a fan of what comes next, and the smoothed states.

    Dots are what was observed, the line is what states say of it. Missing cells are shaded in the width of twice their
    deviation, averaged over parameters. Intervals of the fan are those of `forecast`. Below, states are drawn with
    twice their deviations. Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    tracks : list
        Columns, as `from_estimator` reads them.
    states, deviations : ndarray of shape (n_steps, n_components)
        Smoothed means of the states, and their standard deviations.
    times : ndarray of numbers or datetime64, shape (n_steps,), default=None
        Ascending; by default 0, 1, 2, ...
    time_label : str, default=None
        By default "step", or "time" if there are times.

    Attributes
    ----------
    axes_ : ndarray of shape (n_columns + 1,) of matplotlib Axes
        Axes of the columns, and of the states.
    figure_ : matplotlib Figure

    See Also
    --------
    PolesDisplay : how states move.
    LoadingsDisplay : which columns each state is seen in.

    Examples
    --------
    >>> from skvbem import VBLinearDynamicalSystem
    >>> from skvbem.datasets import load_nile
    >>> from skvbem.plotting import ForecastDisplay
    >>> flow = load_nile(as_frame=True).data
    >>> model = VBLinearDynamicalSystem(1, random_state=0).fit(flow)
    >>> display = ForecastDisplay.from_estimator(model, flow, 10, times=flow.index)
    >>> len(display.axes_), len(display.tracks[0].ahead)
    (2, 10)
    """

    def __init__(self, tracks, states, deviations, *, times=None, time_label=None):
        self.tracks = tracks
        self.states = states
        self.deviations = deviations
        self.times = times
        self.time_label = time_label

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
        future_inputs=None,
        future_output_inputs=None,
        sequence=0,
        times=None,
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
        sequence_id, lengths, inputs, output_inputs : array-like, default=None
            As in `fit`.
        future_inputs, future_output_inputs : array-like of shape (n_steps, n_inputs), default=None
            Inputs of the steps to come.
        sequence : int, default=0
            Which of the sequences of X, in the order in which they appear.
        times : array-like, default=None
            Numbers, such as years, or dates, for each step of the sequence or for each row of X; or, of a list of
            sequences, a list of these. Steps to come are as far from each other as the last two. By default steps are
            numbered from 0.
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
        need_matplotlib(cls.__name__)
        owner = cls.__name__
        fitted = fitted_system(estimator, owner).fitted
        for level in levels:
            check_mass(level, owner)
        where = {"sequence_id": sequence_id, "lengths": lengths, "inputs": inputs, "output_inputs": output_inputs}
        sequences = estimator.read(X, columns=fitted.columns, **where).sequences
        check_is_sequence(sequence, sequences, owner)
        time_label = None if times is None else getattr(times, "name", None)
        if times is not None:
            times = times_of_sequence(times, sequences, sequence, owner)
        one = sequences.only(sequence)
        future = {"future_inputs": future_inputs, "future_output_inputs": future_output_inputs}
        forecasts = [estimator.forecast(one, n_steps, level=level, **future) for level in sorted(levels)]
        _, variance = estimator.impute(one, return_variance=True)
        _, reading, data = estimator.asked(one)
        states = fitted.smoothed(data, fitted.natural("mean"))
        expected = fitted.matrices.output(states.mean, reading.output_inputs)
        names = fitted.names
        chosen = (
            range(min(len(names), _MAX_DEFAULT_COLUMNS))
            if features is None
            else column_positions(features, names, owner)
        )
        tracks = [
            ColumnTrack(
                names[j],
                reading.values[0][:, j],
                expected[:, j],
                np.sqrt(variance[:, j]),
                forecasts[0].mean[0, :, j],
                [(each.level, each.lower[0, :, j], each.upper[0, :, j]) for each in forecasts],
            )
            for j in chosen
        ]
        deviations = np.sqrt(np.einsum("tkk->tk", states.covariance))
        return cls(tracks, states.mean, deviations, times=times, time_label=time_label).plot(axes=axes)

    def plot(self, axes=None):
        """Plot the sequence and its forecast.

        Parameters
        ----------
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `axes` are given and of another number.
        """
        need_matplotlib(type(self).__name__)
        axes = self._axes(axes)
        n_ahead = len(self.tracks[0].ahead)
        at, ahead, are_dates = self._positions(len(self.states), n_ahead)
        for ax, track in zip(axes, self.tracks):
            _draw_column(ax, track, at, ahead)
            ax.set_ylabel(shortened(track.name), size=9, color=INK, parse_math=False)
        for k, (mean, deviation) in enumerate(zip(np.transpose(self.states), np.transpose(self.deviations))):
            color = series(k)[0]
            ends = mean - _OF_STATES * deviation, mean + _OF_STATES * deviation
            axes[-1].fill_between(at, *ends, color=color, alpha=0.2, linewidth=0)
            axes[-1].plot(at, mean, color=color, linewidth=1.3, label=f"state {k}")
        axes[-1].set_ylabel("states", size=9, color=INK)
        if len(self.states[0]) > 1:
            axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
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
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _legend(self) -> str:
        *others, last = [""] + [f"{100 * level:g}" for level, *_ in self.tracks[0].fan]
        levels = " and ".join(filter(None, [", ".join(others[1:]), last]))
        return f"fan: intervals of {levels} %" if levels else ""

    def _axes(self, axes) -> np.ndarray:
        """The axes, in a new figure if there are none."""
        from matplotlib import pyplot as plt

        n_axes = len(self.tracks) + 1
        if axes is None:
            size = _WIDTH, _HEIGHT * n_axes + 0.6
            _, axes = plt.subplots(n_axes, 1, figsize=size, sharex=True, layout="constrained")
        axes = np.ravel(np.asarray(axes, dtype=object))
        if len(axes) != n_axes:
            raise ValueError(
                f"The 'axes' parameter of {type(self).__name__} must hold {n_axes} axes, one for each column and one "
                f"for the states. Got {len(axes)}."
            )
        return axes

    def _positions(self, n_steps: int, n_ahead: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Positions of the steps and of those to come on the axis, and whether these are dates."""
        times: Any = np.arange(float(n_steps)) if self.times is None else np.asarray(self.times)
        are_dates = times.dtype.kind == "M"
        if are_dates:
            from matplotlib.dates import date2num

            times = date2num(times)
        at = times.astype(float)
        step = at[-1] - at[-2] if len(at) > 1 else 1.0
        return at, at[-1] + step * np.arange(1, n_ahead + 1), are_dates


def _draw_column(ax, track: ColumnTrack, at: np.ndarray, ahead: np.ndarray) -> None:
    """Draw what was observed and expected of a column, bands over its gaps, and the fan."""
    color, fan_color = series(0)[0], series(1)[0]
    gone = np.isnan(track.values)
    edges = edges_of(at)
    for a, b in _runs(gone):
        # a band as wide as the cells it stands for, so that one missing cell has one
        places = np.concatenate([[edges[a]], at[a:b], [edges[b]]])
        middle, wide = (np.concatenate([[x[a]], x[a:b], [x[b - 1]]]) for x in (track.expected, track.deviation))
        ax.fill_between(
            places,
            middle - _OF_STATES * wide,
            middle + _OF_STATES * wide,
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
