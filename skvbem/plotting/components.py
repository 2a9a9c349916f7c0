"""`ComponentsDisplay`: the Gaussian components of a mixture over two of its measurements."""

from __future__ import annotations

import numpy as np

from skvbem.fitting.fit import question
from skvbem.plotting.choice import column_positions, shown_components
from skvbem.plotting.display import MIXTURES, Display, check_drawable, check_share
from skvbem.plotting.labels import INK, percent, plain_axes, series

# Opacity of rows of no certainty and of sure ones; components in the legend.
_FAINTEST, _STRONGEST = 0.15, 0.8
_MAX_LABELED_COMPONENTS = 16


class ComponentsDisplay(Display):
    """Rows over two measurements, colored by component, and an ellipse that holds a stated mass of each component.

    A row is the fainter the less sure its component is; a component is drawn the thicker the more it weighs. Make one
    with :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    means : ndarray of shape (n_components, 2)
        Means of the components to draw.
    covariances : ndarray of shape (n_components, 2, 2)
    weights : ndarray of shape (n_components,)
    components : list of int
        What these components are called.
    rows : ndarray of shape (n_samples, 2)
        NaN where a cell is missing. A row with one of its cells is a tick at the edge of the picture.
    responsibilities : ndarray of shape (n_samples, n_components)
        Responsibilities of the components drawn; what rows lack of 1 belongs to others.
    feature_names : pair of str
    mass : float, default=0.9
        What each ellipse holds of its component.

    Attributes
    ----------
    ellipses_ : list of matplotlib Ellipse
        One for each of `components`.

    See Also
    --------
    ClassProfileDisplay : columns of any kind, for each component.

    Notes
    -----
    The ellipses are those of `means_` and `covariances_`, as if these were known: the inverse of E[precision] for VB.
    Other columns are summed out of the ellipses, but not of the rows' colors, which are by all columns.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_faithful
    >>> from skvbem.plotting import ComponentsDisplay
    >>> X = load_faithful().data
    >>> display = ComponentsDisplay.from_estimator(VBMixture(4, random_state=0).fit(X), X)
    >>> len(display.components)  # the other is empty
    3
    """

    def __init__(self, means, covariances, weights, *, components, rows, responsibilities, feature_names, mass=0.9):
        self.means = means
        self.covariances = covariances
        self.weights = weights
        self.components = components
        self.rows = rows
        self.responsibilities = responsibilities
        self.feature_names = feature_names
        self.mass = mass

    @classmethod
    def from_estimator(cls, estimator, X, features=None, *, mass=0.9, ax=None):
        """Plot the components of a fitted mixture.

        Parameters
        ----------
        estimator : fitted VBMixture
            With two measurements at least.
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
            Rows to draw, with all columns that the fit had.
        features : pair of str or int, default=None
            Two measurements, by name or position; by default the first two.
        mass : float, default=0.9
            What each ellipse holds of its component.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        ComponentsDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is no mixture.
        ValueError
            If a feature is no measurement, or the mass no share.
        """
        check_drawable(estimator, MIXTURES, cls.__name__)
        check_share("mass", mass, cls.__name__)
        fitted = estimator.fitted
        values = question(estimator, X)[1].values
        at, pair = _two_measurements(cls.__name__, features, fitted.groups)
        group = fitted.groups.groups[at]
        pair_at = [group.names.index(name) for name in pair]
        shown = shown_components(estimator.counts_)
        parameters = estimator.parameters_[group.name]
        covariances = group.specification.covariances(parameters, pair_at)
        return cls(
            group.specification.means(parameters)[np.ix_(shown, pair_at)],
            covariances[shown],
            estimator.weights_[shown],
            components=shown,
            rows=values[at][:, pair_at],
            responsibilities=estimator.predict_proba(X)[:, shown],
            feature_names=pair,
            mass=mass,
        ).plot(ax=ax)

    def _size(self):
        return 6.4, 4.4

    def _draw(self, ax) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Ellipse

        weights = np.asarray(self.weights, dtype=float)
        widths = 1.2 + 2.0 * weights / weights.max()
        self._draw_rows(ax)
        reach = np.sqrt(-2 * np.log1p(-self.mass))
        self.ellipses_ = []
        for k, (mean, covariance) in enumerate(zip(self.means, self.covariances)):
            variances, axes = np.linalg.eigh(covariance)
            low, high = 2 * reach * np.sqrt(np.maximum(variances, 0.0))
            ellipse = Ellipse(
                mean, high, low, angle=np.degrees(np.arctan2(*axes[::-1, 1])), fill=False, edgecolor=series(k)[0],
                linewidth=widths[k], zorder=4,
            )  # fmt: skip
            self.ellipses_.append(ax.add_patch(ellipse))
        ax.autoscale_view()
        handles = [
            Line2D([], [], color=series(k)[0], marker=series(k)[1], markersize=5, linewidth=widths[k])
            for k in range(len(weights))
        ]
        labels = [f"{name}: {percent(weight)} %" for name, weight in zip(self.components, weights)]
        ax.legend(
            handles[:_MAX_LABELED_COMPONENTS], labels[:_MAX_LABELED_COMPONENTS], title="component", frameon=False,
            loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
        )  # fmt: skip
        ax.set_xlabel(self.feature_names[0], parse_math=False)
        ax.set_ylabel(self.feature_names[1], parse_math=False)
        title = f"ellipses hold {100 * self.mass:g} % of each component"
        if (np.isnan(np.asarray(self.rows, dtype=float)).sum(axis=1) == 1).any():
            title += "\nticks: rows whose other cell is missing"
        ax.set_title(title, loc="left", size=10, color=INK)
        plain_axes(ax)

    def _draw_rows(self, ax) -> None:
        """Draw rows as marks, those that have one cell only as ticks at the edge."""
        from matplotlib.colors import to_rgba

        rows, responsibilities = np.asarray(self.rows, dtype=float), np.asarray(self.responsibilities, dtype=float)
        component, n = responsibilities.argmax(axis=1), responsibilities.shape[1]
        surest = responsibilities.max(axis=1, initial=0.0)
        certainty = np.clip((surest - 1 / n) / (1 - 1 / n), 0, 1) if n > 1 else np.ones(len(rows))
        size = float(np.clip(6000 / max(len(rows), 1), 5, 26))
        missing = np.isnan(rows)
        for k in range(n):
            color, marker = series(k)
            colors = np.tile(to_rgba(color), (len(rows), 1))
            colors[:, 3] = _FAINTEST + (_STRONGEST - _FAINTEST) * certainty
            both = (component == k) & ~missing.any(axis=1)
            ax.scatter(*rows[both].T, s=size, marker=marker, facecolor=colors[both], edgecolor="none", zorder=2)
            for seen, tick, transform in ((0, "|", ax.get_xaxis_transform()), (1, "_", ax.get_yaxis_transform())):
                alone = (component == k) & missing[:, 1 - seen] & ~missing[:, seen]
                places = [rows[alone, seen], np.zeros(alone.sum())]
                ax.scatter(
                    *places[:: 1 if seen == 0 else -1], s=60, marker=tick, color=colors[alone], transform=transform,
                    clip_on=False, zorder=3,
                )  # fmt: skip


def _two_measurements(owner: str, features, columns) -> tuple[int, list[str]]:
    """The two columns to draw over, and which of the groups of columns they are in."""
    groups = [k for k, group in enumerate(columns.groups) if group.specification.has_covariances]
    elsewhere = "ClassProfileDisplay draws columns of any family."
    if features is None:
        widest = max(groups, key=lambda k: min(len(columns.groups[k].names), 2), default=None)
        measurements = [] if widest is None else list(columns.groups[widest].names)
        if widest is None or len(measurements) < 2:
            number = f"{len(measurements)} of them" if measurements else "none"
            raise ValueError(
                f"{owner} draws ellipses over two measurements, columns of the Gaussian group; this fit has {number}. "
                f"{elsewhere}"
            )
        return widest, measurements[:2]
    names = list(columns.names)
    pair = [names[at] for at in column_positions(features, names, owner)]
    if len(pair) != 2:
        raise ValueError(f"The 'features' parameter of {owner} must name two columns. Got {features!r} instead.")
    holding = {name: k for k, group in enumerate(columns.groups) for name in group.names}
    for name in pair:
        if holding.get(name) not in groups:
            family = repr(columns.groups[holding[name]].name) if name in holding else "given for others"
            raise ValueError(
                f"The 'features' parameter of {owner} names {name!r}, which is "
                f"{family}: ellipses are drawn over two measurements, columns of the "
                f"Gaussian group. {elsewhere}"
            )
    one, other = (holding[name] for name in pair)
    if one != other:
        raise ValueError(
            f"The 'features' parameter of {owner} names {pair[0]!r} of the group {columns.groups[one].name!r} and "
            f"{pair[1]!r} of {columns.groups[other].name!r}, which are independent given the component: ellipses are "
            "drawn over two measurements of one group."
        )
    return one, pair
