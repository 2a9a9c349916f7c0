"""A fit at hand, draws of all its parameters, and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._arguments import check_level
from skvbem._lazy import cached_property
from skvbem._tabular import data_frame, html_table, number
from skvbem.capabilities import Relabelings
from skvbem.evidence.evaluation import Evaluation
from skvbem.fitted.base import Fitted, FittedRun, Parameters


@dataclass(frozen=True, eq=False)
class FitAtHand:
    """A fit, the run that made it, and the way to its data, which an estimator does not keep.

    Parameters
    ----------
    fitted : Fitted
    run : FittedRun or None
        None where the fit was updated by `partial_fit`, so that no one run made it.
    evaluate : callable of no argument to Evaluation, or None
        Takes the fit to its data, when these are needed; None where there are no data at hand.
    owner : str
        Class of the estimator, for messages.
    at : callable, optional
        Takes natural parameters (n_cells,) and returns an estimator that has them, for `Draws.ask`.
    """

    fitted: Fitted
    run: FittedRun | None
    evaluate: Callable[[], Evaluation] | None
    owner: str = "estimator"
    at: Callable[[np.ndarray], Any] | None = None

    @cached_property
    def evaluation(self) -> Evaluation:
        """The fit on its data, as scores take it."""
        if self.evaluate is None:
            raise ValueError(f"X must be the data of the fit, where draws of this {self.owner} begin. Got None.")
        return self.evaluate()

    def check_is_density(self, caller: str) -> None:
        """Refuse parameters that were given, and fits that are points, to a caller that needs a posterior."""
        self.fitted.check_was_found(caller, self.owner)
        if not self.fitted.form.density:
            raise ValueError(
                f"{caller} needs a posterior, and this fit by {self.fitted.form.name!r} is a point. Take "
                "standard_errors(X), whose 'intervals' are those of a point, or bootstrap(X); or fit with method='vb'."
            )


class ParameterIntervals(dict):
    """Lower and upper ends of intervals, by group and name.

    A dict of str to dict of str to tuple of two ndarrays, which notebooks show as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.uncertainty.draws import ParameterIntervals
    >>> intervals = ParameterIntervals({"mixture": {"weights": (np.array([0.1, 0.5]), np.array([0.5, 0.9]))}})
    >>> intervals["mixture"]["weights"][0].tolist()
    [0.1, 0.5]
    >>> list(intervals.records())
    [('mixture', 'weights', '0', 0.1, 0.5), ('mixture', 'weights', '1', 0.5, 0.9)]
    """

    def records(self) -> Iterator[tuple]:
        """Group, name, position, lower and upper end of each parameter that has an interval."""
        for group, by_name in self.items():
            for name, (lower, upper) in by_name.items():
                for at in np.ndindex(np.shape(lower)):
                    ends = float(np.asarray(lower)[at]), float(np.asarray(upper)[at])
                    if not any(map(np.isnan, ends)):
                        yield group, name, ", ".join(map(str, at)), *ends

    def to_frame(self):
        """The intervals as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns group, name, position, lower, upper.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return data_frame(self.records(), type(self).__name__, columns=["group", "name", "position", "lower", "upper"])

    def _repr_html_(self):
        rows = [[*map(str, where), number(low), number(high)] for *where, low, high in self.records()]
        return html_table(["group", "name", "position", "lower", "upper"], rows, n_labels=3)


class Draws:
    """Draws of all parameters, from the posterior or from a bootstrap."""

    #: By group and name, each draw in turn along the first axis.
    parameters: Parameters
    #: Natural parameters of each draw, (n_cells, n_draws).
    natural: np.ndarray
    #: Takes natural parameters (n_cells,) and returns an estimator that has them.
    at: Callable[[np.ndarray], Any] | None

    def __len__(self) -> int:
        return self.natural.shape[1]

    def intervals(self, level: float = 0.95) -> ParameterIntervals:
        """Equal-tailed intervals of each parameter by itself.

        Parameters
        ----------
        level : float, default=0.95
            Mass of each interval.

        Returns
        -------
        ParameterIntervals
            A dict of str to dict of str to tuple of two ndarrays: by group and name, the lower and upper ends.
        """
        check_level("intervals", level)
        ends = self.quantiles(0.5 - level / 2, 0.5 + level / 2)
        return ParameterIntervals(
            {group: {name: tuple(each) for name, each in by_name.items()} for group, by_name in ends.items()}
        )

    def quantiles(self, *probabilities: float) -> Parameters:
        """Quantiles of each parameter by itself, by group and name, those of each probability along a first axis."""

        def of(draws: np.ndarray) -> np.ndarray:
            # draws of a parameter side by side: partitions across rows take twice as long
            aside = np.array(np.moveaxis(draws, 0, -1), order="C")
            return np.quantile(aside, probabilities, axis=-1, overwrite_input=True)

        return {group: {name: of(each) for name, each in by.items()} for group, by in self.parameters.items()}

    def of(self, function: Callable[[Parameters], Any]) -> np.ndarray:
        """A function of the parameters at each draw, (n_draws, ...).

        Parameters
        ----------
        function : callable
            Takes the parameters of one draw, by group and name, and returns a number or an array, always of one shape.

        Returns
        -------
        ndarray

        Examples
        --------
        The larger weight of two components, whatever their names:

        >>> from skvbem import VBMixture
        >>> X = [[0.1], [0.2], [-0.1], [0.3], [5.1], [4.9]]
        >>> model = VBMixture(2, random_state=0).fit(X)
        >>> draws = model.sample_posterior(X, 400)
        >>> larger = draws.of(lambda drawn: drawn["mixture"]["weights"].max())
        >>> larger.shape, bool((larger >= 0.5).all())
        ((400,), True)
        """
        return np.array(
            [
                function({group: {name: each[k] for name, each in of.items()} for group, of in self.parameters.items()})
                for k in range(len(self))
            ]
        )

    def ask(self, function: Callable[[Any], Any]) -> np.ndarray:
        """Answers of estimators that have the parameters of each draw, (n_draws, ...).

        Parameters
        ----------
        function : callable
            Takes an estimator, at whose point `score_samples`, `predict_proba`, `forecast` and others answer. Returns
            a number or an array, always of one shape.

        Returns
        -------
        ndarray

        Examples
        --------
        >>> import numpy as np

        The probability that the first two rows are of one component, and a 90 % interval of it:

        >>> from skvbem import VBMixture
        >>> X = [[0.1], [0.2], [-0.1], [0.3], [5.1], [4.9]]
        >>> model = VBMixture(2, random_state=0).fit(X)
        >>> draws = model.sample_posterior(X, 400)
        >>> together = draws.ask(lambda drawn: drawn.predict_proba(X[:2]).prod(axis=0).sum())
        >>> bool(0 < np.quantile(together, 0.05) < np.quantile(together, 0.95) <= 1)
        True
        """
        if self.at is None:
            raise TypeError("These draws know no estimator. Take those that sample_posterior or bootstrap returns.")
        return np.array([function(self.at(natural)) for natural in self.natural.T])


def aligned(relabelings: Relabelings | None, anchor: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points with the labels that are nearest to those of a fit, (n_cells, n_points).

    Parameters
    ----------
    relabelings : Relabelings or None
        None where there are too many: then labels stay as they come.
    anchor : ndarray of shape (n_cells,)
        Expected statistics of the fit.
    points : ndarray of shape (n_cells, n_points)
        Natural parameters.
    """
    points = np.maximum(points, -1e12)  # probabilities below all floats
    if relabelings is None or relabelings.n == 1:
        return points
    return relabelings.nearest(anchor, points)
