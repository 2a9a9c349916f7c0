"""Intervals of all parameters: from draws, or quantiles of q(theta), or by the method that suits a fit and its data."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from skvbem._arguments import check_argument, check_count, check_level
from skvbem._progress import call_at_work
from skvbem.errors import NoLinearResponseError, TooLargeError
from skvbem.evidence.tuning import TUNING
from skvbem.fitted.base import Fitted, Intervals
from skvbem.fitted.parameter_tables import ParameterTable
from skvbem.uncertainty.bootstrap import BootstrapDraws
from skvbem.uncertainty.draws import FitAtHand, ParameterIntervals
from skvbem.uncertainty.posterior_draws import (
    PosteriorDraws,
    check_method,
    check_run,
    optima_of_responses,
    sample_posterior,
)
from skvbem.uncertainty.standard_errors import StandardErrors, standard_errors_of


def credible_intervals(
    at_hand: FitAtHand, level: float = 0.95, method: str = "draws", *, n_draws: int = TUNING.quantile_draws
) -> ParameterIntervals:
    """Equal-tailed intervals of each parameter of a posterior by itself.

    Parameters
    ----------
    at_hand : FitAtHand
        Without data only for ``method="vb"``.
    level : float, default=0.95
        Mass of each interval.
    method : {"draws", "linear_response", "vb"}, default="draws"
        "vb" takes quantiles of q(theta), the others those of draws.
    n_draws : int, default=2000

    Raises
    ------
    ValueError
        If the fit is a point or its parameters were given, if data are lacking, or an argument is none.
    """
    check_level("credible_intervals", level)
    check_method("credible_intervals", method)
    at_hand.check_is_density("credible_intervals")
    if method == "vb":
        lower, upper = (at_hand.fitted.quantiles(0.5 + side * level / 2) for side in (-1, 1))
        return ParameterIntervals(
            {
                group: {name: (low, upper[group][name]) for name, low in by_name.items()}
                for group, by_name in lower.items()
            }
        )
    check_count("n_draws", "credible_intervals", n_draws)
    check_has_data(at_hand, method)
    return sample_posterior(at_hand, n_draws, method=method).intervals(level)


def check_has_data(at_hand: FitAtHand, method: str) -> None:
    """Refuse intervals from draws where there are no data to draw by."""
    if at_hand.evaluate is None:
        raise ValueError(
            f"credible_intervals by method={method!r} needs X, the data of the fit, as in credible_intervals(X). "
            "Without X there are those of method='vb', which are too narrow where labels overlap."
        )


def default_draws(at_hand: FitAtHand) -> PosteriorDraws:
    """Draws of the posterior within about a second of work: exact ones if they agree by then, else approximate ones.

    Rows cannot be drawn if their weights are no whole numbers, or if they come in blocks. Then, and where chains do not
    agree within as many sweeps, draws are by linear response; where linear response itself would take longer,
    they are from q(theta). How long a method would take is counted in operations, so that the same fit has the same
    draws on any machine. A time budget of the call at work takes the place of the second.
    """
    at_hand.check_is_density("sample_posterior")
    check_run(at_hand)
    evaluation, n_draws, budget = at_hand.evaluation, TUNING.quantile_draws, TUNING.summary_operations
    response = _operations_of_response(at_hand)
    if (
        evaluation.capabilities.points is not None
        and evaluation.data.has_whole_weights
        and evaluation.rows_are_in_memory
    ):
        call = call_at_work()
        if call is not None and call.deadline is not None:
            return sample_posterior(at_hand, n_draws)
        for_chains = budget - response if response <= budget else budget
        n_sweeps = int(for_chains / (TUNING.chains_of_draws * _operations_of_sweep(at_hand)))
        if n_sweeps >= 2 * TUNING.draws_of_chain:
            draws = sample_posterior(at_hand, n_draws, max_sweeps=n_sweeps, is_patient=False)
            if draws.converged:
                return draws
    if response <= budget:
        with suppress(NoLinearResponseError):  # the fit is at no maximum that linear response could go out from
            return sample_posterior(at_hand, n_draws, method="linear_response")
    n_draws = min(max(TUNING.summary_numbers // at_hand.fitted.model.n_cells, TUNING.fewest_draws), n_draws)
    return sample_posterior(at_hand, n_draws, method="vb")


def _n_rows(at_hand: FitAtHand) -> float:
    assert at_hand.run is not None
    extent, n = at_hand.run.extent, at_hand.evaluation.n_samples
    return float(n if extent is None or extent.n_rows is None else extent.n_rows)


def _operations_of_sweep(at_hand: FitAtHand) -> float:
    """Operations, of about a nanosecond, of one sweep of one chain."""
    fitted, work = at_hand.fitted, getattr(at_hand.evaluation.data, "work", None)
    if work is not None:  # of a network, which counts its own operations
        return TUNING.sweep_operations + TUNING.work_operations * float(work)
    return TUNING.emission_operations + fitted.sweep_cost * _n_rows(at_hand) * fitted.model.n_free_parameters


def _operations_of_response(at_hand: FitAtHand) -> float:
    """Operations, of about a nanosecond, of draws by linear response: E steps at each optimum, and regressions."""
    fitted, evaluation = at_hand.fitted, at_hand.evaluation
    few = evaluation.few_rows  # which linear response goes through
    n_rows = _n_rows(at_hand) if few is evaluation.data else len(few)
    n_optima = len(optima_of_responses(fitted, evaluation)[1])
    of_pair = fitted.response_cost * TUNING.response_operations * n_rows + TUNING.regression_operations
    return n_optima * of_pair * float(fitted.model.n_free_parameters) ** 2


_REMEDY = "Exact draws take longer than a second: give method='draws', or a 'time_budget' in seconds."
#: Reservations about intervals of a summary that are approximate, by method.
_APPROXIMATE = {
    "linear_response": "Intervals are approximate, by linear response: they are too narrow where labels overlap and "
    "rows are few.",
    "vb": "Intervals are approximate, by variational Bayes: they are too narrow wherever labels overlap.",
}


@dataclass(frozen=True, eq=False)
class ReportedIntervals:
    """Intervals as they stand in a report: ends by group and name, their source, and reservations about them.

    Parameters
    ----------
    ends : dict or None
        None where there are none.
    method : str
    doubts : tuple of str
    means, medians : dict or None
        Pairs as those of `ends`, each twice the same number, of the density that intervals are of; None where estimates
        are those of the fit.
    draws : PosteriorDraws, BootstrapDraws, StandardErrors or None
        What the intervals are from; None of quantiles of q(theta).
    """

    ends: Intervals | None = None
    method: str = "none"
    doubts: tuple[str, ...] = ()
    means: Intervals | None = None
    medians: Intervals | None = None
    draws: PosteriorDraws | BootstrapDraws | StandardErrors | None = None

    @classmethod
    def of(cls, draws: PosteriorDraws | BootstrapDraws | StandardErrors, level: float, doubts=()) -> Self:
        """Intervals from draws; of the posterior with the means and medians of the same draws."""
        doubts = (*doubts, *draws.doubts)
        if not isinstance(draws, PosteriorDraws):
            return cls(draws.intervals(level), draws.method, doubts, draws=draws)
        three = draws.quantiles(0.5 - level / 2, 0.5, 0.5 + level / 2)
        ends, medians = (
            {group: {name: (each[a], each[b]) for name, each in by_name.items()} for group, by_name in three.items()}
            for a, b in ((0, 2), (1, 1))
        )
        means = {
            group: {name: (center := each.mean(axis=0), center) for name, each in by_name.items()}
            for group, by_name in draws.parameters.items()
        }
        return cls(ends, draws.method, doubts, means, medians, draws)

    def tables(self, fitted: Fitted) -> list[ParameterTable]:
        """The tables of a fit with these intervals, estimates and brackets from one density."""
        tables = fitted.report(self.ends)
        if self.means is None or self.medians is None:
            return tables
        of_each = zip(tables, fitted.report(self.means), fitted.report(self.medians), strict=True)
        return [table.estimated_by(means, medians) for table, means, medians in of_each]


def reported_intervals(
    at_hand: FitAtHand,
    level: float,
    method: str = "auto",
    draws: PosteriorDraws | BootstrapDraws | StandardErrors | None = None,
) -> ReportedIntervals:
    """Intervals from draws at hand, or by a method that suits the fit and its data; none without any of these."""
    if draws is not None:
        wanted = "what sample_posterior, bootstrap or standard_errors returns"
        is_right = isinstance(draws, (PosteriorDraws, BootstrapDraws, StandardErrors))
        check_argument(is_right, "draws", "summary", wanted, draws)
        return ReportedIntervals.of(draws, level)
    check_argument(isinstance(method, str), "method", "summary", "'auto', or a method of credible_intervals", method)
    if method == "vb":
        return ReportedIntervals(credible_intervals(at_hand, level, method), method)
    if at_hand.evaluate is None and method == "auto":
        return ReportedIntervals(method="none" if at_hand.fitted.given is None else "given")
    if method != "auto":
        check_method("credible_intervals", method)
        check_has_data(at_hand, method)
        return ReportedIntervals.of(sample_posterior(at_hand, TUNING.quantile_draws, method=method), level)
    if at_hand.fitted.form.density:
        draws = default_draws(at_hand)
        doubts = [f"{_APPROXIMATE[draws.method]} {_REMEDY}"] if draws.method in _APPROXIMATE else []
        return ReportedIntervals.of(draws, level, doubts)
    evaluation = at_hand.evaluation  # other data are refused, not remarked on
    try:
        errors = standard_errors_of(at_hand.fitted, evaluation)
    except (TypeError, ValueError, TooLargeError) as error:
        return ReportedIntervals(doubts=(f"There are no intervals. {error}",))
    return ReportedIntervals.of(errors, level)
