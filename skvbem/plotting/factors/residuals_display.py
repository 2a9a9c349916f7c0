"""`ResidualsDisplay`: correlations that factors leave unexplained."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.factors.fits import add_scale, column_names, correlations_of, fitted_factors, ink_on, write_names
from skvbem.plotting.labels import INK
from skvbem.plotting.requirements import need_matplotlib

# Columns of which cells have numbers, and the least reach of the colors.
_MAX_COLUMNS_WITH_NUMBERS, _MIN_REACH = 16, 0.1


class ResidualsDisplay:
    """What the data's correlations are more, or less, than those of the factors, as a heat map.

    Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    residuals : ndarray of shape (n_features, n_features)
        Correlations of the data less those of the model.
    feature_names : list of str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    LoadingsDisplay : what factors explain.

    Examples
    --------
    >>> from skvbem import VBFactorAnalysis
    >>> from skvbem.datasets import load_ability_tests
    >>> from skvbem.plotting import ResidualsDisplay
    >>> tests = load_ability_tests()
    >>> model = VBFactorAnalysis(1, random_state=0).fit(tests.data, sample_weight=tests.sample_weight)
    >>> display = ResidualsDisplay.from_estimator(model, tests.data, sample_weight=tests.sample_weight)
    >>> bool(abs(display.residuals).max() > 0.2)
    True
    """

    def __init__(self, residuals, feature_names):
        self.residuals = residuals
        self.feature_names = feature_names

    @classmethod
    def from_estimator(cls, estimator, X, *, sample_weight=None, ax=None):
        """Plot the residual correlations of a fitted factor analysis.

        Parameters
        ----------
        estimator : fitted VBFactorAnalysis
        X : array-like of shape (n_samples, n_features)
            The data of the fit; where cells are missing, its correlations are the most likely ones.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        ResidualsDisplay
        """
        need_matplotlib(cls.__name__)
        fitted_factors(estimator, cls.__name__)
        of_data = correlations_of(estimator.saturated_covariance(X, sample_weight))
        of_model = correlations_of(estimator.get_covariance())
        return cls(of_data - of_model, column_names(estimator)).plot(ax=ax)

    def plot(self, ax=None):
        """Plot the residual correlations.

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

        residuals = np.asarray(self.residuals, dtype=float)
        d = len(residuals)
        if ax is None:
            size = 2.2 + 0.42 * min(d, 24)
            _, ax = plt.subplots(figsize=(size + 0.8, size), layout="constrained")
        reach = max(float(np.abs(residuals).max()), _MIN_REACH)
        shown = np.where(np.tri(d, k=-1, dtype=bool), residuals, np.nan)
        image = ax.imshow(shown, cmap="PuOr_r", vmin=-reach, vmax=reach)
        if d <= _MAX_COLUMNS_WITH_NUMBERS:
            for i, j in zip(*np.tril_indices(d, -1)):
                color = ink_on(abs(residuals[i, j]) / reach)
                ax.text(j, i, f"{residuals[i, j]:.2f}", ha="center", va="center", size=8, color=color)
        names = list(self.feature_names)
        write_names(ax.yaxis, ["", *names[1:]])
        write_names(ax.xaxis, [*names[:-1], ""])
        ax.tick_params(axis="x", rotation=90)
        ax.tick_params(length=0, labelcolor=INK)
        add_scale(ax, image, "residual correlation")
        self.ax_, self.figure_ = ax, ax.figure
        return self
