"""Intervals of all parameters: from draws, or quantiles of q(theta), or by the method that suits a fit and its data."""

from __future__ import annotations

from dataclasses import dataclass

from skvbem._arguments import check_count, check_level
from skvbem.errors import TooLargeError
from skvbem.evidence.tuning import TUNING
from skvbem.fitted.base import Intervals
from skvbem.uncertainty.bootstrap import BootstrapDraws
from skvbem.uncertainty.draws import FitAtHand, ParameterIntervals
from skvbem.uncertainty.posterior_draws import PosteriorDraws, check_method, check_run, sample_posterior
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
    if at_hand.evaluate is None:
        raise ValueError(
            f"credible_intervals by method={method!r} needs X, the data of the fit, as in credible_intervals(X). "
            "Without X there are those of method='vb', which are too narrow where labels overlap."
        )
    return sample_posterior(at_hand, n_draws, method=method).intervals(level)


def default_draws(at_hand: FitAtHand, without_rows: str = "linear_response") -> PosteriorDraws:
    """Draws of the posterior; where rows cannot be drawn, by the method `without_rows`.

    Rows cannot be drawn if their weights are no whole numbers, or if they come in blocks.
    """
    at_hand.check_is_density("sample_posterior")
    check_run(at_hand)
    evaluation = at_hand.evaluation
    is_drawable = evaluation.data.has_whole_weights and evaluation.rows_are_in_memory
    return sample_posterior(at_hand, TUNING.quantile_draws, method="draws" if is_drawable else without_rows)


@dataclass(frozen=True, eq=False)
class ReportedIntervals:
    """Intervals as they stand in a report: ends by group and name, their source, and reservations about them.

    Parameters
    ----------
    ends : dict or None
        None where there are none.
    method : str
    doubts : tuple of str
    """

    ends: Intervals | None = None
    method: str = "none"
    doubts: tuple[str, ...] = ()


def reported_intervals(
    at_hand: FitAtHand,
    level: float,
    method: str = "auto",
    draws: PosteriorDraws | BootstrapDraws | StandardErrors | None = None,
    without_rows: str = "linear_response",
) -> ReportedIntervals:
    """Intervals from draws at hand, or by a method that suits the fit and its data; none without any of these."""
    if draws is None and method != "auto":
        return ReportedIntervals(credible_intervals(at_hand, level, method), method)
    if draws is None and at_hand.evaluate is None:
        return ReportedIntervals(method="none" if at_hand.fitted.given is None else "given")
    if draws is None and at_hand.fitted.form.density:
        draws = default_draws(at_hand, without_rows)
    if draws is None:
        evaluation = at_hand.evaluation
        try:
            draws = standard_errors_of(at_hand.fitted, evaluation)
        except (TypeError, ValueError, TooLargeError) as error:
            return ReportedIntervals(doubts=(f"There are no intervals. {error}",))
    return ReportedIntervals(draws.intervals(level), draws.method, draws.doubts)
