"""`DurationsDisplay`: how long stays in states last, beside stays of a Markov chain that last as long in the mean."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.display import CHAINS, Panels, check_drawable
from skvbem.plotting.labels import INK, QUIET, plain_axes

_COLOR, _BAND = "#2f6ea5", "#cfdfec"
# Inches of a picture; stays that last longer than are drawn, as a probability.
_WIDTH, _HEIGHT, _REST = 3.2, 2.6, 0.01


class DurationsDisplay(Panels):
    """Probabilities that stays last longer than so many steps, one picture for each state.

    A line under the fit with its band of intervals, and a dashed one of a Markov chain whose stays last as long in the
    mean. Where the dashed line leaves the band, stays are not geometric. Make one with :meth:`from_estimator`; the
    constructor only stores.

    Parameters
    ----------
    durations : DurationDistribution

    Attributes
    ----------
    axes_ : ndarray of shape (1, n_states) of matplotlib Axes

    See Also
    --------
    TransitionsDisplay : which state comes next.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.durations import Hazards
    >>> from skvbem.plotting import DurationsDisplay
    >>> quakes = load_earthquakes().data
    >>> model = VBHMM(2, emission="poisson", durations=Hazards(16), random_state=0).fit(quakes)
    >>> DurationsDisplay.from_estimator(model).axes_.shape
    (1, 2)
    """

    def __init__(self, durations):
        self.durations = durations

    @classmethod
    def from_estimator(cls, estimator, *, axes=None, **options):
        """Plot how long stays in states of a fitted hidden Markov model last.

        Parameters
        ----------
        estimator : fitted VBHMM
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.
        **options
            Options of `VBHMM.duration_distribution`, such as `state`, `level` or `draws`.

        Returns
        -------
        DurationsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no hidden Markov model.
        """
        check_drawable(estimator, CHAINS, cls.__name__)
        return cls(estimator.duration_distribution(**options)).plot(axes=axes)

    def _grid(self) -> tuple[tuple[int, ...], dict]:
        n = len(self.durations.states)
        return (1, n), {"figsize": (_WIDTH * n, _HEIGHT), "sharey": True, "squeeze": False}

    def _draw(self, axes: np.ndarray) -> None:
        lower, upper = self.durations.lasts_intervals
        for k, ax in enumerate(axes[0]):
            lasts, mean = self.durations.lasts[k], self.durations.means[k]
            steps = np.arange(len(lasts))
            if not np.isnan(lower[k]).all():
                ax.fill_between(steps, lower[k], upper[k], step="post", color=_BAND, linewidth=0, zorder=0)
            ax.step(steps, (1 - 1 / mean) ** steps, where="post", color=QUIET, linewidth=1.2, linestyle="--", zorder=1)
            ax.step(steps, lasts, where="post", color=_COLOR, linewidth=1.6, zorder=2)
            gone = np.flatnonzero(lasts <= _REST)
            ax.set(xlim=(0, gone[0] if len(gone) else steps[-1]), ylim=(0, 1.02))
            ax.set_title(f"state {self.durations.states[k]}", size=9, color=INK, parse_math=False)
            ax.set_xlabel("steps", size=9, color=INK)
            plain_axes(ax)
        axes[0, 0].set_ylabel("stay lasts longer", size=9, color=INK)


__all__ = ["DurationsDisplay"]
