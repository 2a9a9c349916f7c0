r"""Standard errors of fits that are points, by maximum likelihood or MAP, and intervals from them.

The observed information A in unconstrained coordinates (logits of probabilities, logs of rates) is inverted, and what
users know as parameters, g, gets :math:`\nabla g^\top A^{-1} \nabla g` [the delta method]. An interval ends where g is
at the two points of coordinates that stand z standard errors from the fit in the direction in which g changes most,
:math:`\pm z A^{-1} \nabla g / \mathrm{s.e.}(g)`: of a mean these are the mean and so many standard errors, of a
probability the same of its logit, of a rate of its logarithm. So no interval leaves the parameters.

A parameter at an edge, such as a probability of 0, has no standard error; the others have those given it. Directions in
which the data say nothing leave what depends on them without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import norm

from skvbem._arguments import check_count, check_level
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.observed_information import coordinates_of_mode, observed_information
from skvbem.evidence.tuning import TUNING
from skvbem.fitted.base import Fitted, Parameters
from skvbem.uncertainty.draws import FitAtHand, ParameterIntervals

_WHAT = "standard_errors"
# Share of a gradient that is more than the rounding of differences.
_SOME = 1e-4


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Standard errors of all parameters of a fit by maximum likelihood or MAP, and intervals from them.

    Parameters
    ----------
    parameters : dict of str to dict of str to ndarray
        Estimates by group and name: what `parameters_` holds of the groups of columns, and under "mixture" the
        "weights", under "chain" "startprob" and "transmat", under "tables" a table per node.
    errors : dict of str to dict of str to ndarray
        Standard errors, of the same shapes; NaN where there is none.
    doubts : tuple of str
        Why there is none.
    coordinates : ndarray of shape (n_free_parameters,)
        Unconstrained coordinates of the fit.
    covariance : ndarray of shape (n_free_parameters, n_free_parameters)
        Covariance of these coordinates; 0 in directions without standard errors.
    covariance_with_parameters : ndarray of shape (n_free_parameters, n_parameters)
        Covariance of the coordinates with all parameters, one after the other.
    at : callable
        Takes unconstrained coordinates (n_free_parameters, n) and returns all parameters there, (n_parameters, n).
    """

    parameters: Parameters
    errors: Parameters
    doubts: tuple[str, ...]
    coordinates: np.ndarray
    covariance: np.ndarray
    covariance_with_parameters: np.ndarray
    at: Callable[[np.ndarray], np.ndarray]

    #: Source of intervals, as `summary` names it.
    method = "observed_information"

    def __repr__(self):
        there, known = ~np.isnan(_flat(self.parameters)), ~np.isnan(_flat(self.errors))
        return f"StandardErrors({there.sum()} parameters, {(there & ~known).sum()} without a standard error)"

    def intervals(self, level: float = 0.95) -> ParameterIntervals:
        """Confidence intervals of each parameter by itself, which no parameter leaves the values it can have in.

        Parameters
        ----------
        level : float, default=0.95
            Share of data sets whose intervals hold the truth, where rows are many.

        Returns
        -------
        ParameterIntervals
            A dict of str to dict of str to tuple of two ndarrays: by group and name, the lower and upper ends; NaN
            where there is no standard error.
        """
        check_level("intervals", level)
        estimates, errors = _flat(self.parameters), _flat(self.errors)
        lower, upper = estimates.copy(), estimates.copy()
        moving = np.flatnonzero(errors > 0)
        for first in range(0, len(moving), TUNING.lanes):
            which = moving[first : first + TUNING.lanes]
            reach = norm.ppf(0.5 + level / 2) * self.covariance_with_parameters[:, which] / errors[which]
            ends = [self.at(self.coordinates[:, None] + side * reach)[which, np.arange(len(which))] for side in (-1, 1)]
            lower[which], upper[which] = np.minimum(*ends), np.maximum(*ends)
        lower[np.isnan(errors)] = upper[np.isnan(errors)] = np.nan
        low, high = _like(self.parameters, lower), _like(self.parameters, upper)
        both = {group: {name: (low[group][name], high[group][name]) for name in of} for group, of in low.items()}
        return ParameterIntervals(both)


def standard_errors(at_hand: FitAtHand, max_states: int = 4096) -> StandardErrors:
    """Standard errors of a fit that is a point, from the observed information.

    Parameters
    ----------
    at_hand : FitAtHand
    max_states : int, default=4096
        Most joint states of what is hidden in one row.

    Raises
    ------
    ValueError
        If the fit is a density, or as of `standard_errors_of`.
    """
    check_count("max_states", "standard_errors", max_states)
    if at_hand.fitted.form.density:
        raise ValueError(
            "standard_errors belong to fits that are points, and this fit by 'vb' is a posterior. Take "
            "credible_intervals, or fit with method='ml' or 'map'."
        )
    return standard_errors_of(at_hand.fitted, at_hand.evaluation, int(max_states))


def standard_errors_of(fitted: Fitted, evaluation: Evaluation, max_states: int = 4096) -> StandardErrors:
    """Standard errors of a fit that is a point.

    Parameters
    ----------
    fitted : Fitted
    evaluation : Evaluation
    max_states : int, default=4096
        Most joint states of what is hidden in one row.

    Raises
    ------
    ValueError
        If a component has no width, or no more rows than columns: there the likelihood has no maximum. If rows come in
        blocks.
    """
    prior, form = fitted.model.prior, fitted.form
    spikes = prior.are_spikes(fitted.statistics) if not form.prior_share else None
    if spikes is not None and np.any(spikes):
        raise ValueError(
            f"There are no {_WHAT.replace('_', ' ')}: some component of this fit has no width in some direction, or no "
            "more rows than columns, where the likelihood has no maximum. Take fewer components, or method='map'."
        )
    if not evaluation.rows_are_in_memory:
        raise ValueError(
            f"{_WHAT} sum products over rows, which must be in memory; X comes in blocks. Fit one of the blocks."
        )
    point = prior.from_natural(prior.natural(form.point_of(prior, fitted.statistics)))  # zeros next to zero
    coordinates = _coordinates(fitted, evaluation, point)
    complete, observed = observed_information(
        evaluation, point, coordinates, max_states=max_states, of_prior=form.prior_share > 0, what=_WHAT
    )
    free = prior.to_unconstrained(point)
    inside, edge = prior.directions(coordinates)
    root, n_silent, silent = _root(inside.T @ complete @ inside, inside.T @ observed @ inside)

    def at(points: np.ndarray) -> np.ndarray:
        """All parameters at unconstrained coordinates (n_free, n_lanes), (n_parameters, n_lanes)."""
        natural = prior.natural(prior.from_unconstrained(points))
        return np.concatenate(
            [each.reshape(points.shape[1], -1).T for each in _arrays(fitted.parameters_of_draws(natural))]
        )

    parameters = fitted.named_parameters(fitted.point)
    along = _derivatives(at, free, inside)
    errors = np.linalg.norm(along @ root, axis=1)
    at_edge = _at_edge(at, free, along, edge)
    slopes = np.linalg.norm(along, axis=1)
    constant = slopes <= TUNING.no_information * np.abs(_flat(parameters))  # but for rounding
    unknown = (np.linalg.norm(along @ silent, axis=1) > _SOME * slopes) & ~constant
    errors[at_edge | unknown] = np.nan
    spread = inside @ root
    return StandardErrors(
        parameters,
        _like(parameters, errors),
        _doubts(int(at_edge.sum()), int((unknown & ~at_edge).sum()), n_silent),
        free,
        spread @ spread.T,
        spread @ (along @ root).T,
        at,
    )


def _coordinates(fitted: Fitted, evaluation: Evaluation, point: Any) -> np.ndarray:
    """Additive coordinates of the density whose maximum the fit is, at the statistics expected there."""
    prior, form = fitted.model.prior, fitted.form
    natural = prior.natural(point)
    statistics, _ = evaluation.expectation(natural, _WHAT)
    if not form.prior_share:
        return statistics
    return coordinates_of_mode(prior, natural, statistics, form.lowered_by > 0)


def _root(complete: np.ndarray, observed: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """R with R R' the inverse of the observed information where it is positive; how many directions are silent; these.

    Directions are those of the information of complete data, of which the observed one is a share.
    """
    factor = cholesky(complete, lower=True) if len(complete) else complete
    inverse = solve_triangular(factor, np.eye(len(factor)), lower=True) if len(factor) else factor
    ratios, axes = np.linalg.eigh(inverse @ observed @ inverse.T)
    is_silent = ratios < TUNING.no_information
    basis = inverse.T @ axes
    return basis[:, ~is_silent] / np.sqrt(ratios[~is_silent]), int(is_silent.sum()), basis[:, is_silent]


def _derivatives(at: Callable[[np.ndarray], np.ndarray], free: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Derivatives of all parameters along directions, (n_parameters, n_directions), by differences of fourth order."""
    parts = [at(free[:, None])[:, :0]]
    for first in range(0, directions.shape[1], TUNING.lanes):
        moved = TUNING.error_width * directions[:, first : first + TUNING.lanes]
        a, b, c, d = (at(free[:, None] + times * moved) for times in (-2, -1, 1, 2))
        parts.append((8 * (c - b) - (d - a)) / (12 * TUNING.error_width))
    return np.concatenate(parts, axis=1)


def _at_edge(
    at: Callable[[np.ndarray], np.ndarray],
    free: np.ndarray,
    along: np.ndarray,
    edge: np.ndarray,
) -> np.ndarray:
    """True of parameters at an edge: that change with what is next to zero as it does, or with nothing else."""
    if not edge.shape[1]:
        return np.zeros(len(along), dtype=bool)
    here = at(free[:, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.abs(_derivatives(at, free, edge) / here).max(axis=1)
    moves = np.abs(_derivatives(at, np.zeros(len(free)), edge)).max(axis=1) > _SOME
    still = np.abs(along).max(axis=1, initial=0.0) <= 1e-9 * np.abs(here[:, 0])
    return moves & ((relative > TUNING.edge_change) | still)


def _doubts(n_at_edge: int, n_unknown: int, n_silent: int) -> tuple[str, ...]:
    doubts = []
    if n_at_edge:
        doubts.append(
            f"{n_at_edge} parameters stand at the edge of what they can be, such as a probability of 0 or 1: they have "
            "no standard error, and the others have those given them."
        )
    if n_unknown:
        doubts.append(
            f"In {n_silent} directions the data say nothing, or the fit has not converged: {n_unknown} parameters that "
            "depend on them have no standard error."
        )
    return tuple(doubts)


def _arrays(parameters: Parameters) -> Iterator[np.ndarray]:
    return (each for by_name in parameters.values() for each in by_name.values())


def _flat(parameters: Parameters) -> np.ndarray:
    return np.concatenate([np.ravel(each) for each in _arrays(parameters)])


def _like(parameters: Parameters, flat: np.ndarray) -> Parameters:
    """Numbers of all parameters, (n_parameters,), by group and name."""
    ends = np.cumsum([each.size for each in _arrays(parameters)])[:-1]
    parts = iter(np.split(flat, ends))
    return {
        group: {name: next(parts).reshape(np.shape(each)) for name, each in of.items()}
        for group, of in parameters.items()
    }
