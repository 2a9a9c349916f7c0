"""`BlocksDisplay`: a series beside the levels, trends, seasons and cycles that it is the sum of."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.display import SYSTEMS, Panels, check_drawable
from skvbem.plotting.labels import INK, draw_with_band, plain_axes
from skvbem.plotting.tracks import columns_to_draw, positions_of, sequence_to_draw, steps_to_draw

# Inches of a picture and of a block.
_WIDTH, _HEIGHT = 9.0, 1.5


class BlocksDisplay(Panels):
    """A column over time, and below it each of its blocks with a band of twice its standard deviation.

    Blocks are smoothed: each step stands given the whole sequence. Make one with :meth:`from_estimator`; the
    constructor only stores.

    Parameters
    ----------
    values : ndarray of shape (n_steps,)
        The column, NaN where missing.
    blocks : dict of str to pair of ndarray of shape (n_steps,)
        Means and standard deviations of the blocks.
    name : str
        The column's name.
    times : ndarray of numbers or datetime64, shape (n_steps,), default=None
    time_label : str, default=None
        By default "step", or "time" if there are times.

    Attributes
    ----------
    axes_ : ndarray of shape (n_blocks + 1,) of matplotlib Axes

    See Also
    --------
    ForecastDisplay : what comes next.

    Examples
    --------
    >>> from skvbem import VBLinearDynamicalSystem
    >>> from skvbem.datasets import load_nile
    >>> from skvbem.plotting import BlocksDisplay
    >>> from skvbem.structural import Level
    >>> flow = load_nile().data
    >>> model = VBLinearDynamicalSystem(blocks=[Level()], random_state=0).fit(flow)
    >>> BlocksDisplay.from_estimator(model, flow).axes_.shape
    (2,)
    """

    def __init__(self, values, blocks, name, *, times=None, time_label=None):
        self.values = values
        self.blocks = blocks
        self.name = name
        self.times = times
        self.time_label = time_label

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        feature=0,
        *,
        sequence_id=None,
        lengths=None,
        output_inputs=None,
        time=None,
        sequence=0,
        times=None,
        last=None,
        axes=None,
    ):
        """Plot the blocks of a column under a fitted structural time series.

        Parameters
        ----------
        estimator : fitted VBLinearDynamicalSystem with `blocks`
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
        feature : str or int, default=0
            The column, by name or position.
        sequence_id, lengths, output_inputs, time : array-like, default=None
            As in `fit`.
        sequence : int, default=0
            Which of the sequences of X, in the order in which they appear.
        times : array-like, default=None
            Numbers or dates of the steps, as of `ForecastDisplay`. By default steps are at the times of X, or are
            numbered from 0 if it has none.
        last : int, default=None
            How many steps of the sequence to draw, the last ones; by default all.
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.

        Returns
        -------
        BlocksDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no linear dynamical system, or times are neither numbers nor dates.
        AttributeError
            If it has no blocks.
        ValueError
            If there is no such column or sequence, or times are not one for each step.
        """
        owner = cls.__name__
        check_drawable(estimator, SYSTEMS, owner)
        where = {"sequence_id": sequence_id, "lengths": lengths, "output_inputs": output_inputs, "time": time}
        if estimator.blocks is None:
            raise AttributeError(
                f"{owner} draws blocks, and the states of this {type(estimator).__name__} are free. Fit with 'blocks', "
                "such as [Trend(), Season(12)] of skvbem.structural, or take ForecastDisplay."
            )
        kept = steps_to_draw(last, owner)
        drawn = sequence_to_draw(estimator, X, owner, sequence, times, **where)
        (column,) = columns_to_draw([feature], estimator.fitted.names, owner)
        blocks = {
            name: (np.asarray(track.mean)[kept, column], np.asarray(track.deviation)[kept, column])
            for name, track in estimator.decompose(drawn.sequence).items()
        }
        values, name = drawn.reading.values[0][kept, column], estimator.fitted.names[column]
        times = None if drawn.times is None else drawn.times[kept]
        return cls(values, blocks, name, times=times, time_label=drawn.time_label).plot(axes=axes)

    def _grid(self):
        n = len(self.blocks) + 1
        return (n,), {"figsize": (_WIDTH, _HEIGHT * n + 0.5), "sharex": True}

    def _draw(self, axes) -> None:
        at, are_dates = positions_of(self.times, len(self.values))
        axes[0].plot(at, self.values, ".", color=INK, markersize=3)
        axes[0].set_ylabel(self.name, size=9, color=INK, parse_math=False)
        for k, (ax, (name, (mean, deviation))) in enumerate(zip(axes[1:], self.blocks.items())):
            draw_with_band(ax, at, mean, deviation, k)
            ax.set_ylabel(name, size=9, color=INK, parse_math=False)
        for ax in axes:
            plain_axes(ax)
        if are_dates:
            axes[-1].xaxis_date()
        default = "step" if self.times is None else "time"
        axes[-1].set_xlabel(str(self.time_label or default), size=9, color=INK)


__all__ = ["BlocksDisplay"]
