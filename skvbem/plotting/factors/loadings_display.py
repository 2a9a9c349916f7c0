"""`LoadingsDisplay`: which columns each factor, or each state of a system, explains, and how surely."""

from __future__ import annotations

import numpy as np

from skvbem.plotting.factors.fits import add_scale, column_names, fitted_factors, ink_on, write_names
from skvbem.plotting.intervals import check_mass, intervals_to_draw
from skvbem.plotting.labels import INK, QUIET
from skvbem.plotting.requirements import need_matplotlib
from skvbem.plotting.systems.fits import fitted_system, is_system

# Columns of more rows than this have no numbers in their cells.
_MAX_ROWS_WITH_NUMBERS = 40


class LoadingsDisplay:
    """Standardized loadings of factors or states as a heat map, with intervals; what 0 may well be is written in gray.

    Columns of the data are sorted by the factor that explains most of them. Make one with :meth:`from_estimator`; the
    constructor only stores.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_factors)
    uniquenesses : ndarray of shape (n_features,)
    feature_names : list of str
    intervals : pair of ndarray of shape (n_features, n_factors), default=None
        Lower and upper ends.
    words : str, default=""
        What intervals are from.
    hidden : str, default="factor"
        What loadings are of: "factor" or "state".

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    order_ : ndarray of int, shape (n_features,)
        Columns of the data as they are drawn, from the top.

    See Also
    --------
    ResidualsDisplay : what factors leave unexplained.

    Examples
    --------
    >>> from skvbem import VBFactorAnalysis
    >>> from skvbem.datasets import load_ability_tests
    >>> from skvbem.plotting import LoadingsDisplay
    >>> tests = load_ability_tests()
    >>> model = VBFactorAnalysis(2, rotation="promax", random_state=0)
    >>> display = LoadingsDisplay.from_estimator(model.fit(tests.data, sample_weight=tests.sample_weight))
    >>> [display.feature_names[j] for j in display.order_]
    ['x4', 'x5', 'x2', 'x1', 'x0', 'x3']
    """

    def __init__(self, loadings, uniquenesses, feature_names, *, intervals=None, words="", hidden="factor"):
        self.loadings = loadings
        self.uniquenesses = uniquenesses
        self.feature_names = feature_names
        self.intervals = intervals
        self.words = words
        self.hidden = hidden

    @classmethod
    def from_estimator(cls, estimator, X=None, *, draws=None, level=0.95, ax=None):
        """Plot the loadings of a fitted factor analysis or linear dynamical system.

        Parameters
        ----------
        estimator : fitted VBFactorAnalysis or VBLinearDynamicalSystem
            States of a linear dynamical system have no intervals, because their basis differs from draw to draw.
        X : array-like of shape (n_samples, n_features), default=None
            The data of the fit: intervals are then those of draws from the posterior, or of standard errors.
        draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
            What `sample_posterior`, `bootstrap` or `standard_errors` returned, for their intervals.
        level : float or None, default=0.95
            Mass of the intervals; None for none.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        LoadingsDisplay
        """
        need_matplotlib(cls.__name__)
        if is_system(estimator):
            fitted = fitted_system(estimator, cls.__name__).fitted
            return cls(fitted.standardized_loadings, fitted.uniquenesses, fitted.names, hidden="state").plot(ax=ax)
        fitted_factors(estimator, cls.__name__)
        check_mass(level, cls.__name__)
        drawn = intervals_to_draw(estimator, X, draws, level)
        ends = None if drawn is None else next(iter(drawn.ends.values()))["standardized_loadings"]
        return cls(
            estimator.standardized_loadings_,
            estimator.uniquenesses_,
            column_names(estimator),
            intervals=ends,
            words="" if drawn is None else drawn.words.replace("\n", " "),
        ).plot(ax=ax)

    def plot(self, ax=None):
        """Plot the loadings.

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

        loadings = np.asarray(self.loadings, dtype=float)
        d, q = loadings.shape
        if ax is None:
            wide = 1.35 if self.intervals is not None else 0.9
            _, ax = plt.subplots(figsize=(1.8 + wide * (q + 1), 1.2 + 0.32 * d), layout="constrained")
        self.order_ = self._order(loadings)
        shown = loadings[self.order_]
        image = ax.imshow(shown, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        if d <= _MAX_ROWS_WITH_NUMBERS:
            self._write_numbers(ax, shown)
        write_names(ax.yaxis, [self.feature_names[j] for j in self.order_])
        ax.set_xticks(range(q), [f"{self.hidden} {k}" for k in range(q)])
        ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, labelcolor=INK)
        for at, share in enumerate(np.asarray(self.uniquenesses)[self.order_]):
            ax.text(q - 0.4, at, f"{share:.2f}", va="center", ha="left", size=8, color=QUIET)
        ax.text(
            q - 0.4,
            -0.75,
            "unique" if self.hidden == "factor" else "noise",
            va="center",
            ha="left",
            size=8,
            color=QUIET,
        )
        add_scale(ax, image, "standardized loading", pad=0.12 if q > 1 else 0.25)
        if self.words:
            ax.set_xlabel(f"{self.words}; gray where they hold 0", color=QUIET, size=8)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _order(loadings: np.ndarray) -> np.ndarray:
        """Columns by the factor that explains most of them, and within it by how much."""
        if not loadings.shape[1]:
            return np.arange(len(loadings))
        largest = np.abs(loadings).argmax(axis=1)
        return np.lexsort((-np.abs(loadings).max(axis=1), largest))

    def _write_numbers(self, ax, shown: np.ndarray) -> None:
        """Write loadings into their cells, with intervals below them."""
        ends = None
        if self.intervals is not None:
            ends = [np.asarray(end, dtype=float)[self.order_] for end in self.intervals]
        for (j, k), value in np.ndenumerate(shown):
            color = ink_on(abs(value))
            if ends is None:
                ax.text(k, j, f"{value:.2f}", ha="center", va="center", size=8, color=color)
                continue
            low, high = ends[0][j, k], ends[1][j, k]
            unsure = low <= 0 <= high
            text = f"{value:.2f}  [{low:.2f}, {high:.2f}]"
            ax.text(k, j, text, ha="center", va="center", size=7, color=QUIET if unsure else color)
