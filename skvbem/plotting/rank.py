"""`RankDisplay`: how soon each score finds a structure, as the data grow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem.plotting.display import Display, need_matplotlib
from skvbem.plotting.labels import label_at_right, plain_axes, series
from skvbem.spaces.settings import canonical


class RankDisplay(Display):
    """The rank of one candidate, such as the structure behind the data, against the number of rows, for each score.

    Make one with :meth:`from_estimators`; the constructor only stores.

    Parameters
    ----------
    n_samples : array-like of shape (n_sizes,)
        Numbers of rows.
    ranks : mapping of str to array-like of shape (n_sizes,) or (n_draws, n_sizes)
        By score; 1 is the best. With several draws the median is a line, and the middle half a band.
    n_candidates : int, default=None
        The worst rank there is; by default the worst seen.

    See Also
    --------
    StructureSearchDisplay : all candidates of one search.

    Notes
    -----
    This is the left half of figure 2 of [BG]. The best rank is on top; both axes are logarithmic.

    Examples
    --------
    >>> from skvbem.plotting import RankDisplay
    >>> ranks = {"BIC": [110, 40, 3, 1], "VB": [60, 4, 1, 1]}
    >>> RankDisplay([100, 400, 1600, 6400], ranks, n_candidates=136).plot().ax_.get_ylabel()
    'rank of 136'
    """

    def __init__(self, n_samples, ranks, *, n_candidates=None):
        self.n_samples = n_samples
        self.ranks = ranks
        self.n_candidates = n_candidates

    @classmethod
    def from_estimators(cls, searches, setting, *, scores=None, ax=None):
        """Plot the rank of a candidate in several fitted searches over the same space.

        Parameters
        ----------
        searches : mapping of int to fitted StructureSearchCV
            By number of rows.
        setting : mapping
            The candidate, such as ``{"structure": dag, "latents": {"h": 2}}``; its latents may have other names than in
            the searches.
        scores : list of str, default=None
            Scores of the searches; by default all of the first one.
        ax : matplotlib Axes, default=None
            By default in a new figure.

        Returns
        -------
        RankDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If a search has not tried the candidate, or has no such score.
        """
        need_matplotlib(cls.__name__)
        tables = {}
        for n, search in sorted(searches.items()):
            check_is_fitted(search, "cv_results_")
            tables[n] = search.cv_results_
        first = next(iter(tables.values()))
        if scores is None:
            scores = [name.removeprefix("mean_test_") for name in first if name.startswith("mean_test_")]
        places = {n: _place_of(setting, table["params"], n) for n, table in tables.items()}
        ranks = {
            name: [rank_among(table[f"mean_test_{name}"], places[n]) for n, table in tables.items()] for name in scores
        }
        return cls(list(tables), ranks, n_candidates=max(len(table["params"]) for table in tables.values())).plot(ax=ax)

    def _size(self):
        return 6.4, 3.8

    def _draw(self, ax) -> None:
        n_samples = np.asarray(self.n_samples)
        labels, worst = [], 1.0
        for position, (name, ranks) in enumerate(self.ranks.items()):
            color, marker = series(position)
            low, middle, high = np.quantile(np.atleast_2d(ranks), [0.25, 0.5, 0.75], axis=0)
            if np.ndim(ranks) > 1:
                ax.fill_between(n_samples, low, high, color=color, alpha=0.15, linewidth=0)
            ax.plot(
                n_samples, middle, color=color, marker=marker, markersize=5, markeredgecolor="white",
                markeredgewidth=0.6, linewidth=1.6, zorder=3,
            )  # fmt: skip
            labels.append((n_samples[-1], middle[-1], name, color, "bold"))
            worst = max(worst, np.max(ranks))
        worst = worst if self.n_candidates is None else self.n_candidates
        ax.set(xscale="log", yscale="log", xlabel="rows", ylabel=f"rank of {worst:g}", ylim=(1.25 * worst, 0.8))
        _tick(ax.yaxis, [rank for rank in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if rank <= worst])
        _tick(ax.xaxis, _with_room_for_labels(n_samples))
        plain_axes(ax)
        label_at_right(ax, labels)


def rank_among(values, place: int) -> int:
    """The rank of the value at a place: 1 + how many values are higher; the last rank if it is NaN."""
    values = np.asarray(values, dtype=float)
    if np.isnan(values[place]):
        return len(values)
    return int(1 + np.sum(values > values[place]))


def _place_of(setting: Mapping, params: list, n: int) -> int:
    wanted = canonical(setting)
    for k, candidate in enumerate(params):
        if canonical(candidate) == wanted:
            return k
    raise ValueError(f"The search over {n} rows has not tried the candidate {setting!r}.")


def _with_room_for_labels(values: np.ndarray) -> list:
    """The values, from the largest down, whose labels have room beside each other on a logarithmic axis."""
    kept: list = []
    span = np.log(values[-1] / values[0]) if len(values) > 1 else 1.0
    for value in values[::-1].tolist():
        if not kept or np.log(kept[-1] / value) > 0.08 * span:
            kept.append(value)
    return kept


def _tick(axis, values: list) -> None:
    axis.set_ticks(values, [f"{value:,}".replace(",", " ") for value in values])
    axis.set_ticks([], minor=True)
