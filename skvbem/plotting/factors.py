"""Displays of factor analyses: loadings, also of states of a system, residuals, scores, and the number of factors."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from skvbem.fitting.fit import question
from skvbem.plotting.choice import intervals_to_draw
from skvbem.plotting.display import FACTORS, SYSTEMS, Display, Panels, check_drawable, check_share
from skvbem.plotting.labels import INK, QUIET, add_scale, ink_on, plain_axes, series, write_names

# Rows and columns of the largest pictures with numbers in their cells, and rows that have ellipses: more would cover
# each other.
_MAX_ROWS_WITH_NUMBERS, _MAX_COLUMNS_WITH_NUMBERS, _MAX_ELLIPSES = 40, 16, 400
# The least correlation that the colors of residuals reach to.
_MIN_REACH = 0.1
# Numbers of factors beyond the one of the fit that are drawn by default.
_BEYOND = 3


class LoadingsDisplay(Display):
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

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is neither, or its loadings are known: those of `blocks`, or of `from_parameters`.
        """
        if hasattr(estimator, "transition_"):
            check_drawable(estimator, SYSTEMS, cls.__name__)
            if not hasattr(estimator, "standardized_loadings_"):
                instead = "'loadings_' has them" if estimator.blocks is None else "BlocksDisplay draws what blocks are"
                raise TypeError(
                    f"{cls.__name__} draws loadings that a fit has found, and those of this "
                    f"{type(estimator).__name__} are known: {instead}."
                )
            fitted = estimator.fitted
            return cls(fitted.standardized_loadings, fitted.uniquenesses, fitted.names, hidden="state").plot(ax=ax)
        check_drawable(estimator, FACTORS, cls.__name__)
        check_share("level", level, cls.__name__, optional=True)
        drawn = intervals_to_draw(estimator, X, draws, level)
        ends = None if drawn is None else next(iter(drawn.ends.values()))["standardized_loadings"]
        return cls(
            estimator.standardized_loadings_,
            estimator.uniquenesses_,
            list(estimator.fitted.columns.names),
            intervals=ends,
            words="" if drawn is None else drawn.words.replace("\n", " "),
        ).plot(ax=ax)

    def _size(self):
        d, q = np.shape(self.loadings)
        return 1.8 + (0.9 if self.intervals is None else 1.35) * (q + 1), 1.2 + 0.32 * d

    def _draw(self, ax) -> None:
        loadings = np.asarray(self.loadings, dtype=float)
        d, q = loadings.shape
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


class ResidualsDisplay(Display):
    """Correlations of the data less those of the factors, as a heat map.

    Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    residuals : ndarray of shape (n_features, n_features)
        Correlations of the data less those of the model.
    feature_names : list of str

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
        check_drawable(estimator, FACTORS, cls.__name__)
        data_correlations = correlations_of(estimator.saturated_covariance(X, sample_weight))
        model_correlations = correlations_of(estimator.get_covariance())
        return cls(data_correlations - model_correlations, list(estimator.fitted.columns.names)).plot(ax=ax)

    def _size(self):
        size = 2.2 + 0.42 * min(len(self.residuals), 24)
        return size + 0.8, size

    def _draw(self, ax) -> None:
        residuals = np.asarray(self.residuals, dtype=float)
        d = len(residuals)
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


class ScoresDisplay(Display):
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
        check_drawable(estimator, FACTORS, cls.__name__)
        pair, q = list(factors), estimator.n_factors_
        if len(pair) != 2 or not all(0 <= k < q for k in pair):
            raise ValueError(
                f"The 'factors' parameter of {cls.__name__} must be two of the numbers of the {q} factors, from 0. Got "
                f"{factors!r} instead."
            )
        check_share("mass", mass, cls.__name__)
        fitted = estimator.fitted
        values = question(estimator, X)[1].values
        scores, covariances = fitted.scores(values)
        names = [f"factor {k}" for k in pair]
        return cls(scores[:, pair], covariances[:, pair][:, :, pair], names, labels=labels, mass=mass).plot(ax=ax)

    def _size(self):
        return 5.6, 4.6

    def _draw(self, ax) -> None:
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


class FactorNumberDisplay(Panels):
    """Bounds of fits with other numbers of factors, and eigenvalues of the correlations that they explain.

    Make one with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    n_factors : list of int
    bounds : ndarray of shape (n_numbers,)
        Lower bounds, nats.
    eigenvalues : ndarray of shape (n_features,)
        Eigenvalues of the correlation matrix, descending.
    errors : ndarray of shape (n_numbers,), default=None
        Standard errors of the bounds, if they are sampled evidences.
    label : str, default="lower bound"
        What the bounds are called.

    Attributes
    ----------
    best_ : int
        The number of factors of the highest bound.

    See Also
    --------
    LoadingsDisplay : what each factor explains.

    Examples
    --------
    >>> from skvbem import VBFactorAnalysis
    >>> from skvbem.datasets import load_ability_tests
    >>> from skvbem.plotting import FactorNumberDisplay
    >>> tests = load_ability_tests()
    >>> model = VBFactorAnalysis(random_state=0).fit(tests.data, sample_weight=tests.sample_weight)
    >>> display = FactorNumberDisplay.from_estimator(model, tests.data, sample_weight=tests.sample_weight)
    >>> display.best_ == model.n_factors_
    True
    """

    def __init__(self, n_factors, bounds, eigenvalues, *, errors=None, label="lower bound"):
        self.n_factors = n_factors
        self.bounds = bounds
        self.eigenvalues = eigenvalues
        self.errors = errors
        self.label = label

    @classmethod
    def from_estimator(
        cls, estimator, X, n_factors=None, *, kind="lower_bound", sample_weight=None, axes=None, **options
    ):
        """Fit other numbers of factors to the same data, and plot their bounds.

        Parameters
        ----------
        estimator : fitted VBFactorAnalysis
            By ``method="vb"``; other fits have its parameters.
        X : array-like of shape (n_samples, n_features)
            The data of the fit.
        n_factors : sequence of int, default=None
            Numbers to fit; by default from 0 to three beyond the one found.
        kind : str, default="lower_bound"
            A score of the evidence, as `log_evidence` takes it; one that is sampled has error bars.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.
        axes : sequence of two matplotlib Axes, default=None
            For the bounds and for the eigenvalues; by default in a new figure.
        **options
            Options of the score.

        Returns
        -------
        FactorNumberDisplay
        """
        check_drawable(estimator, FACTORS, cls.__name__)
        if n_factors is None:
            most = min(estimator.n_factors_ + _BEYOND, estimator.n_features_in_)
            n_factors = range(most + 1)
        evidences = []
        for q in n_factors:
            other = clone(estimator).set_params(n_factors=int(q)).fit(X, sample_weight=sample_weight)
            evidences.append(other.log_evidence(X, sample_weight=sample_weight, kind=kind, **options))
        sampled = [evidence.standard_error for evidence in evidences]
        errors = None if all(each is None for each in sampled) else np.array([each or 0.0 for each in sampled])
        covariance = estimator.saturated_covariance(X, sample_weight)
        eigenvalues = np.linalg.eigvalsh(correlations_of(covariance))[::-1]
        values = np.array([evidence.value for evidence in evidences])
        display = cls(list(map(int, n_factors)), values, eigenvalues, errors=errors, label=kind.replace("_", " "))
        return display.plot(axes=axes)

    def _grid(self):
        return (2,), {"nrows": 1, "ncols": 2, "figsize": (8, 3.2)}

    def _draw(self, axes) -> None:
        from matplotlib.ticker import MaxNLocator

        left, right = axes
        numbers, bounds = np.asarray(self.n_factors), np.asarray(self.bounds, dtype=float)
        best = int(bounds.argmax())
        self.best_ = int(numbers[best])
        color, other = series(0)[0], series(1)[0]
        left.errorbar(numbers, bounds, yerr=self.errors, color=color, marker="o", markersize=4, capsize=3)
        left.plot(
            numbers[best], bounds[best], "o", color=other, markersize=9, markerfacecolor="none", markeredgewidth=2
        )
        left.annotate(
            f"{self.best_} factor{'s' * (self.best_ != 1)}", (numbers[best], bounds[best]), xytext=(0, -16),
            textcoords="offset points", ha="center", va="top", size=9, color=other,
        )  # fmt: skip
        left.set(xlabel="factors", ylabel=f"{self.label} (nats)", title="Bound")
        left.ticklabel_format(axis="y", useOffset=False)
        eigenvalues = np.asarray(self.eigenvalues, dtype=float)
        ranks = np.arange(1, len(eigenvalues) + 1)
        right.plot(ranks, eigenvalues, color=color, marker="o", markersize=4)
        right.plot(ranks[: self.best_], eigenvalues[: self.best_], "o", color=other, markersize=6)
        right.axhline(1.0, color=QUIET, linewidth=0.8, linestyle=":")
        right.set(xlabel="rank", ylabel="eigenvalue of the correlations", title="Scree")
        for ax in axes:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.title.set_color(INK)
            plain_axes(ax)


def correlations_of(covariance: np.ndarray) -> np.ndarray:
    """The correlation matrix of a covariance matrix."""
    deviations = np.sqrt(np.diagonal(covariance))
    return covariance / np.outer(deviations, deviations)
