"""`StructureSearchDisplay`: the scores of all candidates of a search against their sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem._arguments import is_real
from skvbem.plotting.candidates import short_names, varying
from skvbem.plotting.display import Display, need_matplotlib
from skvbem.plotting.labels import INK, label_at_right, percent, plain_axes, series

_N_PARAMETERS = "n_free_parameters"
# Candidates that are named: at most so many, of at least so much posterior probability.
_MAX_NAMED_CANDIDATES, _MIN_NAMED_PROBABILITY = 8, 0.01
_NAMED, _OTHER = "#a9c6e2", "#9aa5b1"
_BARS = "bars: standard error"
# So few candidates with equal x stand as far apart as the best of many do.
_N_STAGGERED_AS_FAR = 8
_TICKS = np.array([0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000])


class StructureSearchDisplay(Display):
    """Scores of the candidates of a search against numbers of parameters, or against a parameter; the best is bold.

    Make one with :meth:`from_estimator`, or with :meth:`from_evidence` of models fitted one by one; the constructor
    only stores.

    Parameters
    ----------
    x : ndarray of shape (n_candidates,)
        Where the candidates stand.
    scores : mapping of str to ndarray of shape (n_candidates,)
        More is better; NaN for a candidate without the score.
    standard_errors : mapping of str to ndarray of shape (n_candidates,), default=None
        For scores that have them; drawn as bars, one up and one down. For rows held out, they are of the differences
        from the best: splits differ more than candidates.
    probabilities : ndarray of shape (n_candidates,), default=None
        Probabilities of the candidates, by the one score; written beside those that matter.
    names : mapping of int to str, default=None
        What these candidates are called, right of the axes; None if `x` tells candidates apart. A name that was too
        long ends with the candidate's row of `cv_results_`.
    best_index : int, default=None
        The candidate that won by the one score; by default the highest of each.
    below_best : bool, default=False
        Whether scores are drawn in nats below their best, on a scale that is linear down to one nat and logarithmic
        below; else as they are.
    x_label, y_label, title : str

    See Also
    --------
    RankDisplay : the rank of one structure against the number of rows.
    SharedParentDisplay : which observed nodes share a hidden parent.
    DAGDisplay : the network, edges as wide as they are probable.

    Notes
    -----
    Candidates with equal x stand side by side, in ascending order of the (first) score. With several scores this is
    the right half of figure 1 of [BG].

    Examples
    --------
    >>> from skvbem import StructureSearchCV, VBDiscreteDAG
    >>> from skvbem.datasets import load_carcinoma
    >>> from skvbem.plotting import StructureSearchDisplay
    >>> search = StructureSearchCV(VBDiscreteDAG(), {"latents": [1, 2, 3, 4]}, random_state=0)
    >>> display = StructureSearchDisplay.from_estimator(search.fit(load_carcinoma().data))
    >>> display.ax_.get_xlabel()
    'latents'
    """

    def __init__(
        self,
        x,
        scores,
        *,
        standard_errors=None,
        probabilities=None,
        names=None,
        best_index=None,
        below_best=False,
        x_label="free parameters",
        y_label="score",
        title="",
    ):
        self.x = x
        self.scores = scores
        self.standard_errors = standard_errors
        self.probabilities = probabilities
        self.names = names
        self.best_index = best_index
        self.below_best = below_best
        self.x_label = x_label
        self.y_label = y_label
        self.title = title

    @classmethod
    def from_estimator(cls, search, *, scores=None, x=None, ax=None):
        """Plot the candidates of a fitted search.

        Parameters
        ----------
        search : fitted StructureSearchCV
            Or a fitted search of scikit-learn, such as `GridSearchCV`.
        scores : str or list of str, default=None
            Which of its scores to plot; by default all.
        x : str, default=None
            What to plot against: "n_free_parameters", or a parameter whose values are numbers. By default the one
            parameter that varies, if its values are numbers, else the number of free parameters.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        StructureSearchDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the search has no such score, or candidates have no such number.
        """
        need_matplotlib(cls.__name__)
        check_is_fitted(search, "cv_results_")
        table = search.cv_results_
        known = [name.removeprefix("mean_test_") for name in table if name.startswith("mean_test_")]
        chosen = known if scores is None else [scores] if isinstance(scores, str) else list(scores)
        for name in chosen:
            if name not in known:
                raise ValueError(
                    f"The 'scores' parameter of {cls.__name__} must name scores of the search: {', '.join(known)}. "
                    f"Got {name!r} instead."
                )
        values = {name: np.asarray(table[f"mean_test_{name}"], dtype=float) for name in chosen}
        errors = {name: error for name in chosen if (error := _standard_errors(table, name)) is not None}
        differing = varying(table["params"])
        places, x_label = _places(cls.__name__, table, differing, x)
        alone = chosen == [_ranking_score(search, known)]
        best = search.best_index_ if alone else None
        probabilities = None
        if alone:
            probabilities = getattr(search, "structure_posterior_", getattr(search, "score_weights_", None))
        names = None
        if probabilities is not None and len(np.unique(places)) < len(places):
            settings = {k: table["params"][k] for k in _worth_naming(probabilities)}
            names = short_names(settings, table["params"][best], differing)
        return cls(
            places,
            values,
            standard_errors=errors,
            probabilities=probabilities,
            names=names,
            best_index=best,
            below_best=probabilities is not None,
            x_label=x_label,
            **_descriptions(search, chosen, probabilities is not None, bool(errors)),
        ).plot(ax=ax)

    @classmethod
    def from_evidence(cls, tables, *, below_best=False, x_label="n_components", ax=None):
        """Plot scores of models that a number tells apart, such as of mixtures with 1, 2, ... components.

        Parameters
        ----------
        tables : mapping of float to mapping of str to Evidence
            Number -> score -> what it says, as `skvbem.evidence.evidence_table` returns. A score that one table has and
            another has not is left out there.
        below_best : bool, default=False
            Whether each score is drawn in nats below its own best, on a scale that is linear down to one nat and
            logarithmic below.
        x_label : str, default="n_components"
            What the number is.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        StructureSearchDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If `tables` are no mapping of numbers to mappings of scores, or hold no score.

        Examples
        --------
        >>> from skvbem import VBMixture
        >>> from skvbem.datasets import load_faithful
        >>> from skvbem.evidence import evidence_table
        >>> from skvbem.plotting import StructureSearchDisplay
        >>> X = load_faithful().data
        >>> kinds = ["lower_bound", "bic"]
        >>> fits = {k: VBMixture(k, n_init=3, random_state=0).fit(X) for k in (1, 2, 3)}
        >>> tables = {k: evidence_table(fit, X, kinds) for k, fit in fits.items()}
        >>> display = StructureSearchDisplay.from_evidence(tables)
        >>> sorted(text.get_text() for text in display.ax_.texts)
        ['bic', 'lower_bound']
        """
        need_matplotlib(cls.__name__)
        wanted = f"The 'tables' parameter of {cls.__name__} must map numbers to mappings of scores to Evidence."
        if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
            raise TypeError(f"{wanted} Got {type(tables).__name__} instead.")
        strange = [place for place in tables if not _are_numbers([place])]
        kinds = list(dict.fromkeys(kind for table in tables.values() for kind in table))
        if strange or not kinds:
            raise ValueError(f"{wanted} Got {repr(strange[0]) if strange else 'no score'}.")

        def column(kind: str, attribute: str) -> np.ndarray:
            values = [getattr(table[kind], attribute) if kind in table else None for table in tables.values()]
            return np.array([np.nan if value is None else value for value in values], dtype=float)

        scores = {kind: column(kind, "value") for kind in kinds}
        errors = {kind: column(kind, "standard_error") for kind in kinds}
        errors = {kind: error for kind, error in errors.items() if not np.isnan(error).all()}
        return cls(
            np.array(list(tables), dtype=float),
            scores,
            standard_errors=errors,
            below_best=below_best,
            x_label=x_label,
            y_label="nats below its best" if below_best else "nats",
            title=(f"{kinds[0]}   " if len(kinds) == 1 else "") + (_BARS if errors else ""),
        ).plot(ax=ax)

    def _size(self):
        return 6.4 if self.names is None else 9.4, 4.0

    def _draw(self, ax) -> None:
        scores = {name: np.asarray(values, dtype=float) for name, values in self.scores.items()}
        best = {
            name: int(np.nanargmax(values)) if self.best_index is None else self.best_index
            for name, values in scores.items()
        }
        x, all_differ = staggered(np.asarray(self.x, dtype=float), next(iter(scores.values())))
        if self.below_best:
            scores = {name: values - values[best[name]] for name, values in scores.items()}
        for position, (name, values) in enumerate(scores.items()):
            color, marker = series(position)
            rest = color if len(scores) > 1 else _OTHER
            self._draw_series(ax, name, x, values, best[name], (color, rest), marker, all_differ)
        shifted = "" if all_differ else " (equal ones side by side)"
        scale = "\n(linear to −1, then logarithmic)" if self.below_best else ""
        ax.set(xlabel=self.x_label + shifted, ylabel=self.y_label + scale)
        ax.set_title(self.title, loc="left", size=10, color=INK)
        ax.margins(x=0.03)
        plain_axes(ax)
        _tick_values(ax, np.asarray(self.x, dtype=float))
        if self.below_best:
            _scale_in_nats_below(ax, np.concatenate(list(scores.values())))
        if len(scores) > 1:
            label_at_right(ax, _names_of_series(x, scores))
        elif self.probabilities is not None:
            self._tell_probabilities(ax, x, values, best[name])

    def _draw_series(self, ax, name, x, values, best, colors, marker, all_differ) -> None:
        """Draw all candidates, the best bold, with bars where standard errors are known."""
        color, rest = colors
        errors = (self.standard_errors or {}).get(name)
        others = np.flatnonzero(~np.isnan(values) & (np.arange(len(values)) != best))
        if all_differ:
            order = np.argsort(x)
            ax.plot(x[order], values[order], color=rest, linewidth=1.2, zorder=2)
        if errors is not None:
            ax.errorbar(x, values, yerr=errors, fmt="none", ecolor=rest, elinewidth=1.0, capsize=0, zorder=2)
        ax.scatter(
            x[others], values[others], s=20, marker=marker, facecolor=rest, edgecolor="white", linewidth=0.4, zorder=3
        )
        ax.scatter(x[best], values[best], s=64, marker=marker, facecolor=color, edgecolor=INK, linewidth=1.3, zorder=5)

    def _tell_probabilities(self, ax, x, values, best) -> None:
        """Write beside every candidate that matters its probability, and what it is if `x` does not say so."""
        probabilities = np.asarray(self.probabilities, dtype=float)
        named = _worth_naming(probabilities) if self.names is None else list(self.names)
        weight = dict.fromkeys(named, "normal") | {best: "bold"}
        rest = [k for k in named if k != best]
        ax.scatter(x[rest], values[rest], s=34, facecolor=_NAMED, edgecolor=INK, linewidth=0.6, zorder=4)
        if self.names is not None:
            labels = [f"{percent(probabilities[k])} %   {self.names[k]}" for k in named]
            label_at_right(ax, [(x[k], values[k], text, INK, weight[k]) for k, text in zip(named, labels)])
            return
        above = {"textcoords": "offset points", "ha": "center", "va": "bottom", "size": 9, "color": INK}
        for k in named:
            ax.annotate(f"{percent(probabilities[k])} %", (x[k], values[k]), (0, 9), weight=weight[k], **above)


def _worth_naming(probabilities: np.ndarray) -> list[int]:
    """The candidates of notable probability, the most probable first."""
    return sorted(
        np.flatnonzero(probabilities >= _MIN_NAMED_PROBABILITY).tolist(), key=lambda k: (-probabilities[k], k)
    )[:_MAX_NAMED_CANDIDATES]


def staggered(x: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, bool]:
    """Positions side by side for candidates with equal x, in ascending order of the score; whether all x are different.

    The better, the more room a candidate has to itself.
    """
    values, group = np.unique(x, return_inverse=True)
    if len(values) == len(x):
        return x, True
    room = 0.8 * np.diff(values).min() if len(values) > 1 else 1.0
    places = x.copy()
    for k in range(len(values)):
        members = np.flatnonzero(group == k)
        members = members[np.argsort(np.where(np.isnan(scores[members]), np.inf, -scores[members]), kind="stable")]
        back = np.sqrt(np.arange(len(members)) / max(len(members) - 1, _N_STAGGERED_AS_FAR))
        places[members] += room * (back[-1] / 2 - back)
    return places, False


def _scale_in_nats_below(ax, below: np.ndarray) -> None:
    """Scale an axis so that it shows tenths of nats near the top and hundreds below."""
    lowest = min(float(np.nanmin(below[below > -np.inf])), -1.0)
    ax.set_yscale("asinh", linear_width=1.0)
    ticks = _TICKS[-lowest >= _TICKS]
    ax.set_yticks(-ticks, [f"−{tick}" if tick else "0" for tick in ticks])
    ax.set_yticks([], minor=True)
    ax.set_ylim(1.25 * lowest, 0.5)


def _names_of_series(x: np.ndarray, scores: Mapping[str, np.ndarray]) -> list[tuple]:
    """Write labels of the series at their candidates farthest right."""
    labels = []
    for position, (name, values) in enumerate(scores.items()):
        last = max(np.flatnonzero(~np.isnan(values)), key=lambda k: x[k])
        labels.append((x[last], values[last], name, series(position)[0], "bold"))
    return labels


def _tick_values(ax, x: np.ndarray) -> None:
    """A tick at every value, if they are few."""
    from matplotlib.ticker import MaxNLocator

    values = np.unique(x)
    if len(values) <= 12:
        ax.set_xticks(values, [f"{value:g}" for value in values])
    elif np.all(values == np.round(values)):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _ranking_score(search, known: Sequence[str]) -> str:
    """The score that the best index and the posterior are by."""
    if len(known) > (len(search.scorer_) if search.multimetric_ else 1):
        return known[-1]
    return search.refit if isinstance(search.refit, str) else known[0]


def _standard_errors(table: Mapping, name: str) -> np.ndarray | None:
    """Standard errors of a score; for means over splits, those of their differences from the best."""
    if f"standard_error_{name}" in table:
        return np.asarray(table[f"standard_error_{name}"], dtype=float)
    splits = np.array([table[key] for key in table if key.startswith("split") and key.endswith(f"_test_{name}")])
    if len(splits) < 2:
        return None
    best = int(np.nanargmax(table[f"mean_test_{name}"]))
    return (splits - splits[:, [best]]).std(axis=0, ddof=1) / np.sqrt(len(splits))


def _places(owner: str, table: Mapping, differing: Sequence[str], x: str | None) -> tuple[np.ndarray, str]:
    """Positions of the candidates on the axis, and what they are."""
    if x is None:
        x = differing[0] if len(differing) == 1 and _are_numbers(table[f"param_{differing[0]}"]) else _N_PARAMETERS
    if x == _N_PARAMETERS:
        places = np.asarray(table.get(_N_PARAMETERS, [-1]), dtype=float)
        if (places < 0).any():
            raise ValueError(
                f"Candidates of this search have no known number of free parameters. Name a parameter as 'x' of "
                f"{owner} to plot against."
            )
        return places, "free parameters"
    if f"param_{x}" not in table or not _are_numbers(table[f"param_{x}"]):
        raise ValueError(
            f"The 'x' parameter of {owner} must be {_N_PARAMETERS!r} or a parameter of the candidates whose values are "
            f"numbers. Got {x!r} instead."
        )
    return np.asarray(table[f"param_{x}"], dtype=float), x


def _are_numbers(values: Sequence) -> bool:
    return all(is_real(value) for value in np.ma.asarray(values).tolist())


def _descriptions(search, chosen: Sequence[str], below_best: bool, with_errors: bool) -> dict[str, str]:
    """The label of the scores' axis, and what else should be known of them."""
    if not hasattr(search, "score_weights_"):
        note = "bars: standard error of the difference from the best"
        return {"y_label": "mean score of rows held out", "title": note}
    if len(chosen) > 1:
        return {"y_label": "score (nats)", "title": _BARS if with_errors else ""}
    kind = getattr(search.scorer_, "kind", chosen[0]) if chosen[0] == "score" else chosen[0]
    name = f"log evidence ({kind})"
    if not below_best:
        return {"y_label": name}
    title = f"{name}; best: {search.best_score_:.2f} nats".replace("-", "−")
    if not hasattr(search, "structure_posterior_"):
        title += "; %: weights by score"
    return {"y_label": "nats below the best", "title": title}
