"""Draws of all parameters, as users have them: intervals, functions and answers from draws of any kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skvbem._arguments import check_level
from skvbem.fitted.base import Parameters
from skvbem.uncertainty.intervals import ParameterIntervals

#: Most relabelings that are tried one by one for each draw.
MAX_LISTED = 5040


class Draws:
    """What draws of parameters have in common, from the posterior or from a bootstrap."""

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
        ends = 0.5 - level / 2, 0.5 + level / 2
        return ParameterIntervals(
            {
                group: {name: tuple(np.quantile(each, ends, axis=0)) for name, each in of_group.items()}
                for group, of_group in self.parameters.items()
            }
        )

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
        """What estimators with the parameters of each draw answer, (n_draws, ...).

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
        return np.array([function(self.at(of_draw)) for of_draw in self.natural.T])
