"""Intervals that displays draw: from draws at hand, or from those that suit the fit where data are given."""

from __future__ import annotations

from typing import Any, NamedTuple


class DrawnIntervals(NamedTuple):
    """Lower and upper ends by group and name, their mass, and what they are from."""

    ends: dict[str, dict[Any, tuple]]
    level: float
    method: str

    @property
    def words(self) -> str:
        """What is drawn, in words; two short lines, since pictures may be narrow."""
        return f"{100 * self.level:g} % intervals\nby {self.method.replace('_', ' ')}"


def check_mass(level, owner: str) -> None:
    """Refuse a `level` parameter of a display that is no share.

    Raises
    ------
    ValueError
    """
    if level is not None and not 0 < level < 1:
        raise ValueError(
            f"The 'level' parameter of {owner} must lie between 0 and 1, or be None. Got {level!r} instead."
        )


def intervals_to_draw(estimator, X, draws, level: float | None) -> DrawnIntervals | None:
    """The intervals of a fit; None where neither data nor draws are given, or no level.

    Parameters
    ----------
    estimator : fitted VBDiscreteDAG, VBMixture, VBHMM or VBFactorAnalysis
    X : array-like, default=None
        The data of the fit: intervals are those of draws from the posterior, or of linear response where rows cannot
        be drawn; after ``method="map"`` and "ml" those of standard errors.
    draws : PosteriorDraws, BootstrapDraws or StandardErrors, default=None
    level : float or None
    """
    if level is None or (X is None and draws is None):
        return None
    if draws is None:
        is_density = estimator.fitted.form.density
        draws = estimator.draws_that_suit(X) if is_density else estimator.standard_errors(X)
    return DrawnIntervals(draws.intervals(level), level, draws.method)
