"""`ScoresDisplay`: rows over two factors, with ellipses that say how sure their scores are."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.factors.fits import fitted_factors
from skvbem.plotting.labels import INK, QUIET, plain_axes, series
from skvbem.plotting.requirements import need_matplotlib

# Rows that have ellipses, at most: more would cover each other.
_MAX_ELLIPSES = 400


class ScoresDisplay:
    """Scores of rows on two factors, and an ellipse around each that holds a stated mass of where its factors may be.

    A row with more missing cells has a larger ellipse. Make one with :meth:`from_estimator`; the constructor only
    stores.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, 2)
    covariances : ndarray of shape (n_samples, 2, 2)
    names : pair of str
        Names of the factors.
    labels : ndarray of shape (n_samples,), default=None
        Kinds of rows, for colors.
    mass : float, default=0.5
        What each ellipse holds.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    ellipses_ : matplotlib EllipseCollection or None
        None where there are too many rows for ellipses.

    See Also
    --------
    LoadingsDisplay : what the factors are.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skvbem import VBFactorAnalysis
    >>> from skvbem.plotting import ScoresDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> display = ScoresDisplay.from_estimator(VBFactorAnalysis(2, random_state=0).fit(X), X, labels=y)
    >>> display.scores.shape
    (178, 2)
    """

    def __init__(self, scores, covariances, names, *, labels=None, mass=0.5):
        self.scores = scores
        self.covariances = covariances
        self.names = names
        self.labels = labels
        self.mass = mass

    @classmethod
    def from_estimator(cls, estimator, X, factors=(0, 1), *, labels=None, mass=0.5, ax=None):
        """Plot the scores of rows.

        Parameters
        ----------
        estimator : fitted VBFactorAnalysis
            With two factors at least.
        X : array-like of shape (n_samples, n_features)
            Rows to draw.
        factors : pair of int, default=(0, 1)
        labels : array-like of shape (n_samples,), default=None
            Kinds of rows, for colors.
        mass : float, default=0.5
            What each ellipse holds.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        ScoresDisplay

        Raises
        ------
        ValueError
            If there are no such factors, or the mass is no share.
        """
        need_matplotlib(cls.__name__)
        q = fitted_factors(estimator, cls.__name__).n_factors_
        pair = list(factors)
        if len(pair) != 2 or not all(0 <= k < q for k in pair):
            raise ValueError(
                f"The 'factors' parameter of {cls.__name__} must be two of the numbers of the {q} factors, from 0. Got "
                f"{factors!r} instead."
            )
        if not 0 < mass < 1:
            raise ValueError(f"The 'mass' parameter of {cls.__name__} must lie between 0 and 1. Got {mass!r} instead.")
        fitted, values = estimator.asked(X)
        scores, covariances = fitted.scores(values)
        names = [f"factor {k}" for k in pair]
        return cls(scores[:, pair], covariances[:, pair][:, :, pair], names, labels=labels, mass=mass).plot(ax=ax)

    def plot(self, ax=None):
        """Plot the scores.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        need_matplotlib(type(self).__name__)
        from matplotlib import pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
        scores = np.asarray(self.scores, dtype=float)
        labels = np.zeros(len(scores), dtype=int) if self.labels is None else np.asarray(self.labels)
        kinds, which = np.unique(labels, return_inverse=True)
        ax.set_aspect("equal", adjustable="datalim")
        self.ellipses_ = self._draw_ellipses(ax, scores, which)
        for k, kind in enumerate(kinds):
            color, marker = series(k)
            chosen = which == k
            ax.scatter(*scores[chosen].T, s=14, color=color, marker=marker, edgecolor="none", label=str(kind), zorder=3)
        if self.labels is not None:
            ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        ax.axhline(0, color=QUIET, linewidth=0.5, zorder=0)
        ax.axvline(0, color=QUIET, linewidth=0.5, zorder=0)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        if self.ellipses_ is not None:
            title = f"ellipses hold {100 * self.mass:g} % of each row's factors"
            ax.set_title(title, loc="left", size=10, color=INK)
        plain_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_ellipses(self, ax, scores: np.ndarray, which: np.ndarray):
        """Draw an ellipse around each row, unless there are too many."""
        from matplotlib.collections import EllipseCollection

        if len(scores) > _MAX_ELLIPSES:
            return None
        variances, axes = np.linalg.eigh(np.asarray(self.covariances, dtype=float))
        reach = np.sqrt(-2 * np.log1p(-self.mass))
        low, high = (2 * reach * np.sqrt(np.maximum(variances[:, k], 0.0)) for k in (0, 1))
        angles = np.degrees(np.arctan2(axes[:, 1, 1], axes[:, 0, 1]))
        colors = [series(k)[0] for k in which]
        ellipses = EllipseCollection(
            high, low, angles, units="xy", offsets=scores, transOffset=ax.transData, facecolor="none",
            edgecolor=colors, linewidth=0.6, alpha=0.45, zorder=2,
        )  # fmt: skip
        return ax.add_collection(ellipses)
