"""The plan of a fit: from which statistics it starts and when it stops, whatever the model and the form of q(theta)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem.vbem.driver import Ascent
from skvbem.vbem.fit import Fit, best_of
from skvbem.vbem.hyperparameters import alternated
from skvbem.vbem.posteriors import VB, Form

Stop = Callable[[int, float], bool]


class FitMethod:
    """What a kind of model adds to a fit: its full steps, what precedes and follows a run, how its prior is learned."""

    @abstractmethod
    def ascent(self, model, data, form: Form, n_threads: int) -> Ascent:
        """Full steps of a model on its data."""

    def eased(self, model, data, form: Form, starts: np.ndarray, n_threads: int) -> np.ndarray:
        """Starts (n_cells, n_starts) made ready for a run."""
        return starts

    def finalize(self, ascent: Any, fit: Fit, *, stop: Stop | None, limits: Mapping[str, Any]) -> Fit:
        """The fit once its components stand as their prior means them."""
        return fit

    def statistics_to_start_from(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics where a fit ended, as the start of a fit of another form or of other data."""
        return statistics

    def strengthened(self, model, base, statistics: np.ndarray):
        """The model with a multiple of the prior of `base` under which its bound is not lower [Beal (2.79)]."""
        raise NotImplementedError


class PriorStart:
    """The start at the statistics that data are expected to have under the prior."""

    n_starts = 1

    def __call__(self, ascent: Any) -> np.ndarray:
        """Statistics, (n_cells, 1)."""
        return ascent.expect(ascent.model.prior.expected_natural()[:, None])


@dataclass(frozen=True, eq=False)
class FitPlan:
    """Where a fit starts and when it stops, so that another form of q(theta) can be fitted in the same way.

    Parameters
    ----------
    method : FitMethod
    seed : tuple of int
        Of random starts, and of what is drawn later where no other seed is given.
    starts : ndarray of shape (n_cells, n_starts) or callable of Ascent
        Expected statistics, or what computes them and knows their number as `n_starts`.
    limits : mapping
        `tol`, `max_iter` and `accelerate` as `skvbem.vbem.fit.best_of` takes them.
    select : bool
        Whether starts meet in a tournament.
    inverse_temperatures : tuple of float
        Of annealed steps before a run.
    """

    method: FitMethod
    seed: tuple[int, ...]
    starts: Any
    limits: Mapping[str, Any]
    select: bool = False
    inverse_temperatures: tuple[float, ...] = ()

    @property
    def n_starts(self) -> int:
        """Number of starts."""
        return self.starts.n_starts if callable(self.starts) else self.starts.shape[1]

    def run(self, model, data, form: Form, n_threads: int = 1, stop: Stop | None = None) -> Fit:
        """The best fit."""
        ascent = self.method.ascent(model, data, form, n_threads)
        starts = self.method.eased(model, data, form, self._statistics(ascent), n_threads)
        return self._best(ascent, starts, stop, inverse_temperatures=self.inverse_temperatures)

    def refit(self, model, data, form: Form, fit: Fit, n_threads: int = 1) -> Fit:
        """The best fit of another form, from the starts of a fit and from where it ended."""
        ascent = self.method.ascent(model, data, form, n_threads)
        starts = np.column_stack([self.method.statistics_to_start_from(fit.statistics), self._statistics(ascent)])
        return self._best(ascent, self.method.eased(model, data, form, starts, n_threads), None)

    def learned_prior(
        self,
        model,
        data,
        fit: Fit,
        *,
        n_threads: int = 1,
        stop: Stop | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> tuple[Fit, Any]:
        """The fit, and the model, under the strengths of its prior that raise the bound most [Beal (2.79)].

        Parameters
        ----------
        model, data
            As they were fitted.
        fit : Fit
            By VB.
        n_threads : int
        stop : callable, optional
            As in `skvbem.vbem.fit.best_of`.
        stopped : callable
            Whether a run was asked to stop, so that no other should follow.
        """

        def strengthen(now, statistics: np.ndarray):
            return self.method.strengthened(now, model, statistics)

        def ascend(now, starts: np.ndarray) -> Fit:
            return self._best(self.method.ascent(now, data, VB, n_threads), starts, stop)

        return alternated(model, fit, strengthen, ascend, tol=self.limits["tol"], stopped=stopped)

    def _statistics(self, ascent: Ascent) -> np.ndarray:
        return self.starts(ascent) if callable(self.starts) else self.starts

    def _best(self, ascent: Ascent, starts: np.ndarray, stop: Stop | None, **options) -> Fit:
        fit = best_of(ascent, starts, select=self.select, stop=stop, **options, **self.limits)
        return self.method.finalize(ascent, fit, stop=stop, limits=self.limits)
