"""`ClassProfileDisplay`: what each class, or component, looks like, column by column."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem.emissions import Numbers, Probabilities
from skvbem.plotting.choice import column_positions, shortened, shown_components
from skvbem.plotting.intervals import check_mass, intervals_to_draw
from skvbem.plotting.labels import FAINT, INK, percent, plain_axes, series
from skvbem.plotting.profiles import classes_of_latent, classes_of_mixture, classes_of_network
from skvbem.plotting.requirements import need_matplotlib
from skvbem.plotting.states import state_color

_TRACK = "#eef1f4"
# Inches: a row of probabilities, a row of numbers, a class, all of them, what is around each block.
_ROW, _NUMBER_ROW, _CLASS, _MAX_WIDTH, _AROUND = 0.2, 0.36, 1.35, 15.0, 0.75


class ClassProfileDisplay:
    """A picture for each class: the probabilities of its answers as bars, the means of its numbers as marks.

    Probabilities have a row for each category, or one for the second of two. Numbers are drawn in standard deviations
    from the mean of all rows, so that columns of any unit share an axis. The mean is written above its mark in the
    unit of the column. The pale band reaches one standard deviation of the class's rows either way. Thin dark lines
    are intervals, where there are any; the picture says by what method. Empty classes are left out. Make one with
    :meth:`from_estimator`; the constructor only stores.

    Parameters
    ----------
    profiles : list
        Columns, as `from_estimator` reads them.
    weights : ndarray of shape (n_classes,)
    classes : list of int
        The classes to draw.
    label : {"class", "state"}, default="class"
        What a class is called. States have the colors that other displays of hidden Markov models give them.
    note : str, default=""
        What the intervals are, for the picture to say.

    Attributes
    ----------
    axes_ : ndarray of shape (n_blocks, n_classes) of matplotlib Axes
        A row of numbers, if there are any, above one of probabilities, if there are any.
    figure_ : matplotlib Figure

    See Also
    --------
    ComponentsDisplay : two measurements, with the rows.

    Examples
    --------
    >>> from skvbem import VBMixture
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.plotting import ClassProfileDisplay
    >>> X = load_carcinoma().data
    >>> slides = VBMixture(3, emission="categorical", random_state=0).fit(X)
    >>> display = ClassProfileDisplay.from_estimator(slides, X)
    >>> display.axes_.shape
    (1, 3)
    >>> [label.get_text() for label in display.axes_[0, 0].get_yticklabels()][:2]
    ['x0 = 2', 'x1 = 2']
    """

    def __init__(self, profiles, weights, classes, *, label="class", note=""):
        self.profiles = profiles
        self.weights = weights
        self.classes = classes
        self.label = label
        self.note = note

    @classmethod
    def from_estimator(cls, estimator, X=None, *, latent=None, features=None, level=0.95, draws=None, axes=None):
        """Plot the classes of a fitted model.

        Parameters
        ----------
        estimator : fitted VBMixture or VBHMM, or VBDiscreteDAG or VBNetwork
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features), default=None
            The data of the fit, for intervals by draws from the posterior, by linear response where rows cannot be
            drawn, or after ``method="map"`` and "ml" by the observed information. Without X and `draws` there are none.
        latent : node, default=None
            The latent of a network whose states are the classes; columns are averaged over what else they depend on,
            without intervals. By default the one latent there is, and the columns that depend on it alone, with their
            intervals; covariates, which it depends on, are left out.
        features : list of str or int, default=None
            Which columns, by name or position, in which order; by default all, as in the table.
        level : float or None, default=0.95
            Mass of the intervals; None for none.
        draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
            What `sample_posterior`, `bootstrap` or `standard_errors` of the estimator returned, for intervals from it.
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.

        Returns
        -------
        ClassProfileDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the estimator is none of these.
        ValueError
            If there is no such column, the level is no share, the network has other latents or edges, or `axes` are of
            another number.
        """
        need_matplotlib(cls.__name__)
        check_is_fitted(estimator)
        check_mass(level, cls.__name__)
        is_network = hasattr(estimator, "latent_names_")
        if not (is_network or hasattr(estimator, "groups_")):
            raise TypeError(f"{cls.__name__} draws VBMixture, VBHMM and VBDiscreteDAG. Got {type(estimator).__name__}.")
        drawn = None if latent is not None else intervals_to_draw(estimator, X, draws, level)
        if latent is not None:
            known = estimator.latent_names_ if is_network else ()
            if latent not in known:
                raise ValueError(f"{latent!r} is no latent of this {type(estimator).__name__}. There are: {known}.")
            classes = classes_of_latent(estimator, latent)
        elif is_network:
            classes = classes_of_network(estimator, drawn, cls.__name__)
        else:
            classes = classes_of_mixture(estimator, drawn)
        profiles = classes.profiles
        if features is not None:
            names = [profile.name for profile in profiles]
            profiles = [profiles[at] for at in column_positions(features, names, cls.__name__)]
        shown = shown_components(classes.counts)
        note = "" if drawn is None else drawn.words
        return cls(profiles, classes.weights, shown, label=classes.label, note=note).plot(axes=axes)

    def plot(self, axes=None):
        """Plot the classes.

        Parameters
        ----------
        axes : array-like of matplotlib Axes, default=None
            As `axes_`; by default in a new figure of fitting size.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If `axes` are given and of another number.
        """
        need_matplotlib(type(self).__name__)
        numbers = [profile for profile in self.profiles if isinstance(profile, Numbers)]
        probabilities = [profile for profile in self.profiles if isinstance(profile, Probabilities)]
        blocks = [block for block in (numbers, probabilities) if block]
        axes = self._axes(axes, blocks)
        for block, of_block in zip(blocks, axes):
            draw = self._draw_numbers if block is numbers else self._draw_probabilities
            draw(of_block, block)
        if self.note:
            below = axes[-1, len(axes[-1]) // 2].xaxis.label  # whose place stays
            below.set_text(f"{below.get_text()}\nlines: {self.note}")
        weights = np.asarray(self.weights, dtype=float)
        for position, k in enumerate(self.classes):
            title = f"{self.label} {k}\n{percent(weights[k])} %"
            axes[0, position].set_title(title, size=10, color=self._series(position)[0], weight="bold")
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        return self

    def _axes(self, axes, blocks) -> np.ndarray:
        """The axes, in a new figure if there are none."""
        from matplotlib import pyplot as plt

        shape = len(blocks), len(self.classes)
        if axes is not None:
            axes = np.asarray(axes, dtype=object)
            if axes.size != np.prod(shape):
                raise ValueError(
                    f"The 'axes' parameter of {type(self).__name__} must hold {shape[0]} x {shape[1]} axes. Got "
                    f"{axes.size}."
                )
            return axes.reshape(shape)
        heights = [sum(map(_height, block)) for block in blocks]
        longest = max(len(label) for block in blocks for profile in block for label in _labels(profile))
        width = min(0.6 + 0.075 * longest + _CLASS * len(self.classes), _MAX_WIDTH)
        _, axes = plt.subplots(
            *shape, figsize=(width, sum(heights) + _AROUND * (len(blocks) + 0.6)), height_ratios=heights, squeeze=False,
            sharex="row", sharey="row", layout="constrained",
        )  # fmt: skip
        return axes

    def _series(self, position: int) -> tuple[str, str]:
        """Color and marker of a class."""
        color, marker = series(position)
        return (state_color(self.classes[position]) if self.label == "state" else color), marker

    def _draw_probabilities(self, axes, profiles) -> None:
        labels = [label for profile in profiles for label in _labels(profile)]
        ends = np.cumsum([len(_labels(profile)) for profile in profiles])
        for position, (ax, k) in enumerate(zip(axes, self.classes)):
            values = np.concatenate([profile.values[k] for profile in profiles])
            at = np.arange(len(values))
            ax.barh(at, np.ones(len(values)), height=0.74, color=_TRACK, zorder=1)
            ax.barh(at, values, height=0.74, color=self._series(position)[0], alpha=0.75, zorder=2)
            if profiles[0].intervals is not None:
                low, high = (np.concatenate([p.intervals[end][k] for p in profiles]) for end in (0, 1))
                _draw_intervals(ax, at, low, high, 1.0)
            several = [end for end, profile in zip(ends, profiles) if len(_labels(profile)) > 1]
            starts = [end - len(_labels(p)) for end, p in zip(ends, profiles) if len(_labels(p)) > 1]
            for line in {*several, *starts} - {0, len(values)}:
                ax.axhline(line - 0.5, color=FAINT, linewidth=0.7, zorder=1)
            ax.set(xlim=(0, 1), ylim=(len(values) - 0.4, -0.6))
            ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
            _label_rows(ax, labels, position)
        _label_middle(axes, "probability")

    def _draw_numbers(self, axes, profiles) -> None:
        weights = np.asarray(self.weights, dtype=float)
        moments = [profile.overall(weights) for profile in profiles]
        scaled = [
            ((profile.values - mean) / deviation, profile.deviations / deviation)
            for profile, (mean, deviation) in zip(profiles, moments)
        ]
        reach = max(np.abs(place[self.classes]).max() for place, _ in scaled) + 0.4
        reach = max(reach, 2.0)
        for position, (ax, k) in enumerate(zip(axes, self.classes)):
            color, marker = self._series(position)
            ax.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
            for row, (profile, (mean, deviation), (place, spread)) in enumerate(zip(profiles, moments, scaled)):
                ax.barh(row, 2 * spread[k], left=place[k] - spread[k], height=0.34, color=color, alpha=0.25, zorder=2)
                if profile.intervals is not None:
                    low, high = ((ends[k] - mean) / deviation for ends in profile.intervals)
                    _draw_intervals(ax, row, low, high, 1.4)
                ax.plot(place[k], row, marker=marker, color=color, markersize=4.5, zorder=4)
                ax.annotate(
                    _written(profile.values[k]), (place[k], row), (0, 5), textcoords="offset points", ha="center",
                    va="bottom", size=7.5, color=INK, zorder=5,
                )  # fmt: skip
            ax.set(xlim=(-reach, reach), ylim=(len(profiles) - 0.5, -0.75))
            ax.xaxis.set_major_locator(_integer_ticks())
            _label_rows(ax, [label for profile in profiles for label in _labels(profile)], position)
        between = " " if len(axes) > 2 else "\n"  # two pictures are too narrow for one line
        _label_middle(axes, f"standard deviations{between}from the mean of all rows")


def _draw_intervals(ax, at, low, high, width: float) -> None:
    """Draw intervals as dark lines that can be seen on bars of any color."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=width + 1.2, foreground="white")]
    ax.hlines(at, low, high, color=INK, linewidth=width, path_effects=halo, zorder=3)


def _labels(profile) -> list[str]:
    """Labels of the rows of a column."""
    return [shortened(label) for label in (profile.labels if isinstance(profile, Probabilities) else [profile.name])]


def _height(profile) -> float:
    """The height of a column, inches."""
    return _ROW * len(profile.labels) if isinstance(profile, Probabilities) else _NUMBER_ROW


def _written(value: float) -> str:
    """A mean in three digits or so."""
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _integer_ticks():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=4, integer=True)


def _label_rows(ax, labels, position: int) -> None:
    """Write names of rows left of the first class."""
    plain_axes(ax)
    ax.spines["left"].set_visible(False)
    ax.set_yticks(range(len(labels)), labels, parse_math=False, size=9)
    ax.tick_params(axis="y", length=0, labelleft=position == 0)
    ax.tick_params(axis="x", labelsize=8)


def _label_middle(axes, text: str) -> None:
    """Write below their middle what the axes of a row of pictures share."""
    ax = axes[len(axes) // 2]
    ax.set_xlabel(text, size=9, color=INK, x=0.5 if len(axes) % 2 else 0.0, ha="center")
