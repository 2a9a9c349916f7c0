"""`PseudoResidualsDisplay`: what a fit leaves of columns of numbers, against the normal distribution and over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from skvbem.plotting.choice import column_positions
from skvbem.plotting.display import Panels, check_drawable
from skvbem.plotting.labels import FAINT, INK, QUIET, plain_axes, shortened

_COLOR, _BAND = "#2f6ea5", "#e9edf1"
# Columns that are drawn by default; lags; bars of a histogram; deviations between which 95 % of residuals lie.
_MAX_COLUMNS, _MAX_LAGS, _N_BARS, _REACH = 4, 20, 10, 1.96
# Ranks of a large sample that a band is drawn at. Inches: a picture, and the one over time.
_N_RANKS, _HEIGHT, _WIDTH, _LONG = 200, 2.6, 3.0, 4.6


class PseudoResidualsDisplay(Panels):
    """Pseudo-residuals of columns of numbers: a quantile plot, and beside it what else would show a wrong fit.

    Each column has a row of pictures. First, quantiles of its residuals over those of the normal distribution: in a
    right fit they lie on the line, 95 % of them within the band. A fit of sequences then has the residuals over time,
    and their autocorrelations, of which a right fit has 95 % within the band. A mixture has the histogram on the
    uniform scale, whose bars should be even. Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    residuals : PseudoResiduals
    features : list of str, default=None
        Columns to draw, of those that have residuals; by default the first four.

    Attributes
    ----------
    axes_ : ndarray of shape (n_columns, 2) or, of sequences, (n_columns, 3) of matplotlib Axes

    See Also
    --------
    StatePathDisplay : a sequence and the states behind it.

    Notes
    -----
    The band of a quantile plot is that of each rank by itself, so that a few of many ranks lie outside. Residuals are
    under parameters that were fitted to the same data, which makes them a little too even.

    Examples
    --------
    >>> from skvbem import VBHMM
    >>> from skvbem.datasets import load_earthquakes
    >>> from skvbem.plotting import PseudoResidualsDisplay
    >>> counts = load_earthquakes(as_frame=True).data
    >>> model = VBHMM(3, emission="poisson", random_state=0).fit(counts)
    >>> PseudoResidualsDisplay.from_estimator(model, counts).axes_.shape
    (1, 3)
    """

    def __init__(self, residuals, *, features=None):
        self.residuals = residuals
        self.features = features

    @classmethod
    def from_estimator(cls, estimator, X, features=None, *, axes=None, **options):
        """Plot pseudo-residuals of rows or sequences under a fitted mixture or hidden Markov model.

        Parameters
        ----------
        estimator : fitted VBMixture or VBHMM
        X : list of tables, or array-like, pandas or polars DataFrame of shape (n_rows, n_features)
            With all columns that the fit had.
        features : list of str or int, default=None
            Which columns, by name or by position among those that have residuals, in which order; by default the first
            four.
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.
        **options
            Options of the method `pseudo_residuals` of the estimator, such as `sequence_id` or `kind` of sequences.

        Returns
        -------
        PseudoResidualsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator has no pseudo-residuals.
        ValueError
            If there is no such column, or none has residuals.
        """
        kind = "mixtures and hidden Markov models, VBMixture and VBHMM", "groups_", "pseudo_residuals"
        check_drawable(estimator, kind, cls.__name__)
        residuals = estimator.pseudo_residuals(X, **options)
        return cls(residuals, features=features).plot(axes=axes)

    def _columns(self) -> list[int]:
        names = list(self.residuals.names)
        if self.features is None:
            return list(range(min(len(names), _MAX_COLUMNS)))
        return column_positions(self.features, names, type(self).__name__)

    def _grid(self) -> tuple[tuple[int, ...], dict]:
        widths = [_WIDTH, _WIDTH] if self.residuals.lengths is None else [_WIDTH, _LONG, _WIDTH]
        shape = len(self._columns()), len(widths)
        return shape, {
            "figsize": (sum(widths), _HEIGHT * shape[0]),
            "width_ratios": widths,
            "squeeze": False,
        }

    def _draw(self, axes: np.ndarray) -> None:
        residuals, z = self.residuals, self.residuals.normal
        in_time = z if residuals.order is None else residuals.in_time(z)
        for row, j in zip(axes, self._columns()):
            name = shortened(residuals.names[j])
            seen = z[~np.isnan(z[:, j]), j]
            _draw_quantiles(row[0], np.sort(seen))
            row[0].set_ylabel(f"residuals of {name}", size=9, color=INK, parse_math=False)
            if residuals.lengths is None:
                uniform = residuals.uniform[:, j]
                _draw_histogram(row[1], uniform[~np.isnan(uniform)])
            else:
                _draw_over_time(row[1], in_time[:, j], residuals.lengths)
                n_lags = int(min(_MAX_LAGS, max(residuals.lengths.max() - 1, 1)))
                correlations, n_pairs = (
                    each(n_lags)[1:, j] for each in (residuals.autocorrelations, residuals.n_pairs)
                )
                _draw_autocorrelations(row[2], correlations, n_pairs)
            for ax in row:
                plain_axes(ax)


def _draw_quantiles(ax: Any, ordered: np.ndarray) -> None:
    """Draw quantiles of residuals over those of the normal distribution, and where 95 % of each rank should lie."""
    n = len(ordered)
    ranks = np.unique(np.linspace(1, n, _N_RANKS).round())
    low, high = (ndtri(betaincinv(ranks, n + 1 - ranks, share)) for share in (0.025, 0.975))
    at, places = ndtri((ranks - 0.5) / n), ndtri((np.arange(1, n + 1) - 0.5) / n)
    ax.fill_between(at, low, high, color=_BAND, linewidth=0, zorder=0)
    ax.plot(at[[0, -1]], at[[0, -1]], color=QUIET, linewidth=1.0, zorder=1)
    ax.scatter(places, ordered, s=float(np.clip(3000 / n, 3, 14)), color=_COLOR, linewidth=0, zorder=2)
    ax.set_xlabel("normal quantile", size=9, color=INK)


def _draw_histogram(ax: Any, uniform: np.ndarray) -> None:
    """Draw shares of residuals on the uniform scale, and where 95 % of bars should lie."""
    n = len(uniform)
    edges = np.linspace(0, 1, _N_BARS + 1)
    expected = n / _N_BARS
    reach = _REACH * np.sqrt(expected * (1 - 1 / _N_BARS))
    ax.stairs(np.histogram(uniform, edges)[0], edges, fill=True, color=_COLOR, zorder=0)
    ax.axhspan(max(expected - reach, 0.0), expected + reach, color=_BAND, alpha=0.5, linewidth=0, zorder=1)
    ax.axhline(expected, color=INK, linewidth=1.0, zorder=2)
    ax.set(xlim=(0, 1), ylim=(0, None))
    ax.set_xlabel("on the uniform scale", size=9, color=INK)
    ax.set_ylabel("cells", size=9, color=INK)


def _draw_over_time(ax: Any, z: np.ndarray, lengths: np.ndarray) -> None:
    """Draw residuals step by step, a thin line where a sequence begins."""
    ax.axhspan(-_REACH, _REACH, color=_BAND, linewidth=0, zorder=0)
    ax.axhline(0.0, color=QUIET, linewidth=1.0, zorder=1)
    if len(lengths) <= 50:  # more would hide what they part
        for start in np.cumsum(lengths)[:-1]:
            ax.axvline(start - 0.5, color=FAINT, linewidth=0.7, zorder=1)
    ax.scatter(
        np.arange(len(z)), z, s=float(np.clip(3000 / max(len(z), 1), 2, 14)), color=_COLOR, linewidth=0, zorder=2
    )
    ax.set_xlim(-1, len(z))
    ax.set_xlabel("step", size=9, color=INK)


def _draw_autocorrelations(ax: Any, correlations: np.ndarray, n_pairs: np.ndarray) -> None:
    """Draw autocorrelations, and between which 95 % of those of independent residuals lie, by their pairs."""
    lags = np.arange(1, len(correlations) + 1)
    reach = np.minimum(_REACH / np.sqrt(np.maximum(n_pairs, 1)), 1.0)
    edges = np.arange(len(lags) + 1) + 0.5
    ax.stairs(reach, edges, baseline=-reach, fill=True, color=_BAND, linewidth=0, zorder=0)
    ax.axhline(0.0, color=QUIET, linewidth=1.0, zorder=1)
    ax.vlines(lags, 0.0, correlations, color=_COLOR, linewidth=2.0, zorder=2)
    ax.set_xlim(0, len(lags) + 1)
    ax.set_ylim(
        min(-0.5, 1.1 * np.nanmin(correlations, initial=0.0)), max(0.5, np.nanmax(correlations, initial=0.0) * 1.1)
    )
    ax.set_xlabel("lag", size=9, color=INK)
    ax.set_ylabel("autocorrelation", size=9, color=INK)
