"""`FactorNumberDisplay`: the bound over numbers of factors, beside the scree of eigenvalues."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from skvbem.plotting.factors.fits import correlations_of, fitted_factors
from skvbem.plotting.labels import INK, QUIET, plain_axes, series, two_axes
from skvbem.plotting.requirements import need_matplotlib

# Most numbers of factors beyond the one found that are drawn by default.
_BEYOND = 3


class FactorNumberDisplay:
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
    axes_ : ndarray of shape (2,) of matplotlib Axes
    figure_ : matplotlib Figure
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
        need_matplotlib(cls.__name__)
        fitted_factors(estimator, cls.__name__)
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

    def plot(self, axes=None):
        """Plot bounds and eigenvalues.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `axes` is given and holds not two axes.
        """
        need_matplotlib(type(self).__name__)
        from matplotlib.ticker import MaxNLocator

        axes = two_axes(type(self).__name__, axes, height=3.2)
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
        self.axes_, self.figure_ = axes, left.figure
        return self
