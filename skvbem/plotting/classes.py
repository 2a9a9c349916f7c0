"""`ClassProfileDisplay`: what each class, or component, looks like, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem.emissions.profiles import Numbers, Probabilities, of_levels
from skvbem.plotting.choice import DrawnIntervals, column_positions, intervals_to_draw, shown_components
from skvbem.plotting.display import Panels, check_share, need_matplotlib
from skvbem.plotting.labels import FAINT, INK, percent, plain_axes, series, shortened, state_color

_TRACK = "#eef1f4"
# Inches: a row of probabilities, a row of numbers, a class, all of them, what is around each block.
_ROW, _NUMBER_ROW, _CLASS, _MAX_WIDTH, _AROUND = 0.2, 0.36, 1.35, 15.0, 0.75


class ClassProfileDisplay(Panels):
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
        check_share("level", level, cls.__name__, optional=True)
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

    def _blocks(self) -> list[list]:
        """Columns of numbers, and columns of probabilities, as far as there are any."""
        kinds = Numbers, Probabilities
        blocks = ([profile for profile in self.profiles if isinstance(profile, kind)] for kind in kinds)
        return list(filter(None, blocks))

    def _grid(self):
        blocks = self._blocks()
        heights = [sum(map(_height, block)) for block in blocks]
        longest = max(len(label) for block in blocks for profile in block for label in _labels(profile))
        width = min(0.6 + 0.075 * longest + _CLASS * len(self.classes), _MAX_WIDTH)
        size = width, sum(heights) + _AROUND * (len(blocks) + 0.6)
        shared = {"sharex": "row", "sharey": "row"}
        return (len(blocks), len(self.classes)), {"figsize": size, "height_ratios": heights, **shared}

    def _draw(self, axes) -> None:
        for block, block_axes in zip(self._blocks(), axes):
            draw = self._draw_numbers if isinstance(block[0], Numbers) else self._draw_probabilities
            draw(block_axes, block)
        if self.note:
            below = axes[-1, len(axes[-1]) // 2].xaxis.label  # whose place stays
            below.set_text(f"{below.get_text()}\nlines: {self.note}")
        weights = np.asarray(self.weights, dtype=float)
        for position, k in enumerate(self.classes):
            title = f"{self.label} {k}\n{percent(weights[k])} %"
            axes[0, position].set_title(title, size=10, color=self._series(position)[0], weight="bold")

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


# Classes of fits ------------------------------------------------------------------------------------------------------


class Classes(NamedTuple):
    """The classes of a fit: expected rows, weights, one profile for each column, in the order of the table, a name."""

    counts: np.ndarray
    weights: np.ndarray
    profiles: list[Probabilities | Numbers]
    label: str = "class"


def classes_of_mixture(estimator, intervals: DrawnIntervals | None) -> Classes:
    """The components of a fitted VBMixture, or the states of a VBHMM, which weigh as much as is in them."""
    by_name, columns = {}, estimator.fitted.groups
    for group in columns.groups:
        if group.name not in estimator.parameters_:
            continue  # its columns are only given
        group_profiles = _profiles_of_group(
            group, estimator.parameters_[group.name], None if intervals is None else intervals.ends[group.name]
        )
        by_name.update({profile.name: profile for profile in group_profiles})
    profiles = [by_name[name] for name in columns.names if name in by_name]  # what is given has none
    if hasattr(estimator, "weights_"):
        return Classes(estimator.counts_, estimator.weights_, profiles)
    return Classes(estimator.counts_, estimator.counts_ / estimator.counts_.sum(), profiles, "state")


def _profiles_of_group(group, parameters: Mapping, intervals: Mapping | None) -> list[Probabilities | Numbers]:
    """The profiles of a group of columns."""
    ends = None
    if intervals is not None:
        ends = tuple({name: pair[end] for name, pair in intervals.items()} for end in (0, 1))
    return group.specification.profiles(group.names, parameters, ends, group.levels)


def classes_of_network(estimator, drawn: DrawnIntervals | None, owner: str) -> Classes:
    """The states of the latent of a fitted network, if columns depend on it alone, or it depends on them.

    Columns that it depends on are covariates: they are not drawn, and the weights of classes are averages over them.

    Raises
    ------
    ValueError
        If the network is no latent class model.
    """
    dag, latents = estimator.structure_, list(estimator.latent_names_)
    above = {parent for latent in latents for parent in dag.parents(latent)}
    columns = [node for node in dag.nodes if node not in latents and node not in above]
    if len(latents) != 1 or not columns or any(list(dag.parents(node)) != latents for node in columns):
        raise ValueError(
            f"{owner} draws latent class models, one latent above columns that depend on nothing else. This structure "
            f"is {dag}: say for which latent columns are to be drawn, as in "
            f"latent={latents[0] if latents else 'h0'!r}, or see DAGDisplay."
        )
    (latent,) = latents
    profiles: list[Probabilities | Numbers] = []
    for node in columns:
        if node not in estimator.tables_:
            group = next(group for group in estimator.fitted.groups.groups if group.name == node)
            profiles += _profiles_of_group(
                group, estimator.parameters_[node], None if drawn is None else drawn.ends[node]
            )
            continue
        table, intervals = estimator.tables_[node], None if drawn is None else drawn.ends["tables"][node]
        profiles.append(of_levels(str(node), table.levels[-1].tolist(), table.values, intervals))
    is_below = any(parent in estimator.tables_ for parent in above)
    weights = estimator.query(latent).values if is_below else estimator.tables_[latent].values
    return Classes(estimator.latent_states_[latent].mass, weights, profiles)


def classes_of_latent(estimator, latent) -> Classes:
    """The states of one latent of a fitted network, columns averaged over all else that they depend on."""
    nodes, fitted = estimator.structure_.nodes, estimator.fitted
    if driven := getattr(fitted, "driven", ()):
        raise ValueError(
            f"Columns cannot be averaged over all else that they depend on: covariates drive {driven[0]!r}, and its "
            f"states are as probable as these say. See DAGDisplay, or ClassProbabilitiesDisplay along a covariate."
        )
    share = estimator.query(latent).values
    profiles: list[Probabilities | Numbers] = []
    for node in nodes:
        if node in estimator.latent_names_:
            continue
        if node in fitted.levels:
            levels = fitted.levels[node].tolist()
            profiles.append(of_levels(str(node), levels, estimator.query([latent, node]).values / share[:, None], None))
            continue
        weights_of_parents = _joint_with_parents(estimator, latent, node) / share[:, None]
        group = next(group for group in fitted.groups.groups if group.name == node)
        profiles += [
            _averaged(each, weights_of_parents) for each in _profiles_of_group(group, estimator.parameters_[node], None)
        ]
    return Classes(estimator.latent_states_[latent].mass, share, profiles, str(latent))


def _joint_with_parents(estimator, latent, node) -> np.ndarray:
    """p(latent, parents of a node), (n_states, n_joint_states)."""
    parents = estimator.structure_.parents(node)
    others = [parent for parent in parents if parent != latent]
    joint = estimator.query([latent, *others]).values
    if latent not in parents:
        return joint.reshape(len(joint), -1)
    by_state = np.zeros((len(joint), *joint.shape))
    by_state[np.arange(len(joint)), np.arange(len(joint))] = joint
    return np.moveaxis(by_state, 1, 1 + parents.index(latent)).reshape(len(joint), -1)


def _averaged(profile: Probabilities | Numbers, fractions: np.ndarray) -> Probabilities | Numbers:
    """A column in mixtures of its classes, fractions (n_mixtures, n_classes)."""
    if isinstance(profile, Probabilities):
        return Probabilities(profile.name, profile.labels, fractions @ profile.values, None)
    mean = fractions @ profile.values
    squares = fractions @ (profile.deviations**2 + profile.values**2)
    return Numbers(profile.name, mean, np.sqrt(np.maximum(squares - mean**2, 0.0)), None)
