"""`BoundDisplay`: how the bound of each start rose, and where the starts ended."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem.plotting.display import Panels, need_matplotlib

_BEST, _OTHER = "#2f6ea5", "#9aa5b1"


class BoundDisplay(Panels):
    """The way of each start's bound to its end, the best one's in bold, beside the ends of all starts.

    Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    trace : array-like of shape (n_points,)
        The objective along the best start's run, nats.
    bounds : array-like of shape (n_starts,)
        The objective every start reached, nats; NaN for one left behind on fewer rows.
    n_best : int
        How many starts met the best.
    objective : str, default="lower bound"
        What is plotted, for the labels.
    traces : sequence of array-like, default=()
        The objective along the runs of all starts, nats.

    See Also
    --------
    DAGDisplay : the network as a picture.

    Examples
    --------
    >>> from skvbem import VBDiscreteDAG
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.plotting import BoundDisplay
    >>> model = VBDiscreteDAG(latents=3, n_init=20, random_state=0).fit(load_carcinoma().data)
    >>> display = BoundDisplay.from_estimator(model)
    >>> len(display.axes_)
    2
    """

    def __init__(self, trace, bounds, n_best, *, objective="lower bound", traces=()):
        self.trace = trace
        self.bounds = bounds
        self.n_best = n_best
        self.objective = objective
        self.traces = traces

    @classmethod
    def from_estimator(cls, estimator, *, axes=None):
        """Plot the objective of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with `lower_bounds_` and `restarts_`
        axes : sequence of two matplotlib Axes, default=None
            For the runs of the starts and for their ends; by default in a new figure.

        Returns
        -------
        BoundDisplay
        """
        need_matplotlib(cls.__name__)
        check_is_fitted(estimator, ["lower_bounds_", "restarts_"])
        restarts = estimator.restarts_
        objective = {"vb": "lower bound", "map": "log posterior", "ml": "log likelihood"}[estimator.method]
        display = cls(
            estimator.lower_bounds_, restarts.bounds, restarts.n_best, objective=objective, traces=restarts.traces
        )
        return display.plot(axes=axes)

    def _grid(self):
        return (2,), {"nrows": 1, "ncols": 2, "figsize": (8, 3.0)}

    def _draw(self, axes) -> None:
        from matplotlib.ticker import MaxNLocator

        run, ends = axes

        best = np.asarray(self.trace, dtype=float)
        rises = bool((best < best[-1]).any())
        if rises:
            for trace in self.traces:
                self._draw_run(run, np.asarray(trace, dtype=float), best[-1], color=_OTHER, linewidth=0.8, alpha=0.7)
            self._draw_run(run, best, best[-1], color=_BEST, linewidth=1.8, zorder=3)
            run.set_yscale("log")
        else:
            run.text(0.5, 0.5, "at its end from the start", ha="center", va="center", transform=run.transAxes)
            run.set(xticks=[], yticks=[])
        title = f"Runs: {self.objective}" if len(self.traces) > 1 else f"Best start: {self.objective}"
        run.set(xlabel="point of the run", ylabel="nats below the best end", title=title)

        bounds = np.asarray(self.bounds, dtype=float)
        bounds = np.sort(bounds[~np.isnan(bounds)])[::-1]
        rank = np.arange(1, len(bounds) + 1)
        for part, color, label in (
            (slice(None, self.n_best), _BEST, f"met the best: {self.n_best}"),
            (slice(self.n_best, None), _OTHER, f"ended lower: {len(bounds) - self.n_best}"),
        ):
            if len(rank[part]):
                ends.plot(
                    rank[part], bounds[part], "o", color=color, markersize=5, label=label, zorder=2 + (color == _BEST)
                )
        if len(bounds) and not self.n_best:  # moves led on from there
            ends.axhline(best[-1], color=_BEST, linewidth=1.8, label="the fit, after moves")
        ends.set(xlabel="starts, best first", ylabel=f"{self.objective} (nats)", title="Where the starts ended")
        if np.ptp(bounds) < 0.01:
            ends.set_ylim(bounds[0] - 1, bounds[0] + 1)
        ends.ticklabel_format(axis="y", useOffset=False)
        ends.legend(frameon=False, loc="best")
        for ax in axes[0 if rises else 1 :]:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        for ax in axes:
            ax.spines[["top", "right"]].set_visible(False)

    @staticmethod
    def _draw_run(ax, trace, end, **style):
        """Draw how far a run is below the best end, point by point."""
        below = end - trace
        rising = below > 0
        ax.plot(np.arange(len(trace))[rising], below[rising], **style)
