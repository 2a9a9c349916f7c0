"""Draws of all parameters from a posterior, as users have them, and intervals from these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from scipy.special import softmax

from skvbem._arguments import check_count, is_option
from skvbem._progress import is_over
from skvbem.errors import PosteriorWarning, warn
from skvbem.evidence.evaluation import Evaluation, Stream
from skvbem.evidence.linear_response import LinearResponses, bounds_of, split_by_weight
from skvbem.evidence.tuning import TUNING
from skvbem.fitted.base import Fitted, Parameters
from skvbem.uncertainty.draws import Draws, FitAtHand, aligned
from skvbem.uncertainty.effective_sizes import effective_sizes
from skvbem.uncertainty.gibbs import GibbsChains, GibbsDraws

#: Ways to make draws, and intervals with them, the exact ones first.
METHODS = ("draws", "linear_response", "vb")


@dataclass(frozen=True, eq=False)
class PosteriorDraws(Draws):
    """Draws of all parameters of a fitted model.

    Parameters
    ----------
    parameters : dict of str to dict of str to ndarray
        By group and name, each draw in turn along the first axis. Groups of columns have what `parameters_` holds. A
        mixture has its "weights" under "mixture", a chain "startprob" and "transmat" under "chain", and a network a
        table per node under "tables".
    ess : dict of str to dict of str to ndarray
        How many independent draws they are worth, for each parameter, of the shapes of `parameters` without the draws.
    r_hat : dict of str to dict of str to ndarray
        Whether chains agree: about 1 where they do.
    method : {"draws", "linear_response", "vb"}
    natural : ndarray of shape (n_cells, n_draws)
        Natural parameters of each draw.
    n_sweeps, spacing : int
        Sweeps of each chain, of which the second half counts, and sweeps between draws of a chain; 0 of draws without
        chains.
    converged : bool
        Whether chains agreed in the end, and their draws were worth at least half of their number.
    at : callable, optional
        Takes natural parameters (n_cells,) and returns an estimator that has them.
    """

    parameters: Parameters
    ess: Parameters
    r_hat: Parameters
    method: str
    natural: np.ndarray
    n_sweeps: int = 0
    spacing: int = 0
    converged: bool = True
    at: Callable[[np.ndarray], Any] | None = None

    def __repr__(self):
        way = f"Gibbs chains of {self.n_sweeps} sweeps" if self.n_sweeps else self.method
        least, worst = (
            of([np.nan, *(f(each) for group in by_name.values() for each in group.values() if np.isfinite(each).any())])
            for of, f, by_name in ((np.nanmin, np.nanmin, self.ess), (np.nanmax, np.nanmax, self.r_hat))
        )
        return (
            f"PosteriorDraws({len(self)} draws by {way}; effective size {least:.0f} or more, R-hat up to {worst:.3f})"
        )

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings of the draws, and of intervals from them."""
        if self.converged:
            return ()
        return ("The Gibbs chains did not agree, or move slowly: intervals are rough. Raise 'max_sweeps'.",)


def check_method(caller: str, method: Any) -> None:
    """Refuse what names no way to draw from a posterior, for the `method` parameter of a method."""
    if not is_option(method, *METHODS):
        names = ", ".join(map(repr, METHODS))
        raise ValueError(f"The 'method' parameter of {caller} must be one of {names}. Got {method!r} instead.")


def check_run(at_hand: FitAtHand) -> None:
    """Refuse to draw from the posterior of a fit that no one run made."""
    if at_hand.run is None:
        raise ValueError(
            f"sample_posterior needs one fit to all data; this {at_hand.owner} was updated by partial_fit. Fit all "
            "data, or take credible_intervals(method='vb')."
        )


def sample_posterior(
    at_hand: FitAtHand,
    n_draws: int = 1000,
    *,
    method: str = "draws",
    n_chains: int = TUNING.chains_of_draws,
    max_sweeps: int = 16384,
    is_patient: bool = True,
) -> PosteriorDraws:
    """Draws of all parameters of a VB fit, labels as in the fit; a warning where chains do not agree.

    Parameters
    ----------
    at_hand : FitAtHand
        With its data.
    n_draws : int, default=1000
    method : {"draws", "linear_response", "vb"}, default="draws"
        Exact draws by Gibbs chains; draws with the covariances of linear response; draws from q(theta).
    n_chains : int, default=32
    max_sweeps : int, default=16384
        Most sweeps of a chain.
    is_patient : bool, default=True
        Whether chains run on that cannot agree in so many sweeps, to end with a warning.

    Raises
    ------
    ValueError
        If an argument is none; if the fit is a point, was updated by `partial_fit`, or has parameters that were given;
        if chains would draw what is hidden in rows that count no whole number of times, or that are not in memory.
    """
    check_method("sample_posterior", method)
    at_hand.check_is_density("sample_posterior")
    for name, value in (("n_draws", n_draws), ("n_chains", n_chains), ("max_sweeps", max_sweeps)):
        check_count(name, "sample_posterior", value)
    check_run(at_hand)
    fitted, evaluation, n_draws = at_hand.fitted, at_hand.evaluation, int(n_draws)
    numbers = 4 * max(n_draws, TUNING.draws_of_chain * n_chains) * fitted.model.n_cells
    what = f"{n_draws:,} draws (n_draws) of all parameters, by {n_chains:,} chains (n_chains),"
    evaluation.check_memory(what, numbers, "fewer")
    if method == "draws":
        return replace(_by_chains(at_hand, n_draws, int(n_chains), int(max_sweeps), is_patient), at=at_hand.at)
    rng = evaluation.generator(Stream.PARAMETERS, 1)
    if method == "linear_response":
        natural = _by_linear_response(fitted, evaluation, n_draws, rng)
    else:
        natural = drawn_from_q(fitted, n_draws, rng)
    parameters = fitted.parameters_of_draws(natural)
    ess = _each(parameters, lambda values: np.full(values.shape[1:], float(n_draws)))
    return PosteriorDraws(parameters, ess, _each(ess, np.ones_like), method, natural, at=at_hand.at)


def drawn_from_q(fitted: Fitted, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Natural parameters of draws from q(theta), (n_cells, n_draws)."""
    return fitted.model.prior.natural(fitted.posterior.draws(n_draws, rng))


def optima_of_responses(fitted: Fitted, evaluation: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    """Optima (n_cells, n_optima) around which linear response draws, the fit first, and their bounds, nats.

    Those far below the best are left out.
    """
    # labels of the fit may since have changed their places
    optima = np.column_stack([fitted.statistics, evaluation.ended_optima()[:, 1:]])
    bounds = bounds_of(evaluation.model, evaluation.few_rows, optima)
    near = bounds > bounds.max() - TUNING.far_optimum
    near[0] = True
    return optima[:, near], bounds[near]


def _by_linear_response(fitted: Fitted, evaluation: Evaluation, n_draws: int, rng) -> np.ndarray:
    """Natural parameters of draws by linear response around all optima, labels as in the fit, (n_cells, n_draws)."""
    optima, bounds = optima_of_responses(fitted, evaluation)
    responses = LinearResponses.of(evaluation.model, evaluation.few_rows, optima, bounds)
    natural, relabelings = responses.draws(n_draws, rng), evaluation.capabilities.relabelings
    if len(responses.weights) == 1 or relabelings is None:
        return natural
    return aligned(relabelings.relabelings(evaluation.hidden, TUNING.relabelings), fitted.statistics, natural)


def _by_chains(at_hand: FitAtHand, n_draws: int, n_chains: int, max_sweeps: int, is_patient: bool) -> PosteriorDraws:
    fitted, evaluation, owner = at_hand.fitted, at_hand.evaluation, at_hand.owner
    if not evaluation.rows_are_in_memory:
        raise ValueError(
            f"Draws from the posterior of a {owner} complete rows, which must be in memory; X comes in blocks. Take "
            "method='linear_response', which only sums over rows."
        )
    if not evaluation.data.has_whole_weights:
        raise ValueError(
            f"Draws from the posterior of a {owner} complete rows one by one, and need whole-number sample weights. "
            "Take method='linear_response', which sums hidden variables out."
        )
    optima = evaluation.ended_optima()
    weights = softmax(bounds_of(evaluation.model, evaluation.data, optima))
    chains = GibbsChains(
        evaluation.capability("points", "sample_posterior"),
        evaluation.capability("annealing", "sample_posterior"),
        evaluation.capability("relabelings", "sample_posterior").relabelings(evaluation.hidden, TUNING.relabelings),
        evaluation.data,
        fitted.judged,
        is_patient,
    )
    starts = optima[:, split_by_weight(weights, n_chains)]
    drawn = chains.draw(fitted.statistics, starts, n_draws, max_sweeps, evaluation.generator(Stream.PARAMETERS, 0))
    n_draws = min(n_draws, drawn.natural.shape[1])
    every, which = fitted.parameters_of_draws(drawn.natural), drawn.chosen(n_draws)
    diagnosed = _each(every, lambda values: _diagnosed(drawn, values, n_draws))
    ess, r_hat = (_each(diagnosed, itemgetter(k)) for k in (0, 1))
    if is_patient and not drawn.converged:
        warn(
            f"The Gibbs chains of this {owner} did not settle in {drawn.n_sweeps} sweeps"
            f"{', which is all that its time budget left' * is_over()}: some parameters differ "
            "between chains, or change slowly ('r_hat' and 'ess' of what sample_posterior returns say which). Raise "
            "'max_sweeps' of sample_posterior. Where chains stay in modes of their own, each mode counts as the lower "
            "bounds say, which is a rough guess.",
            PosteriorWarning,
        )
    return PosteriorDraws(
        _each(every, lambda values: values[which]),
        ess,
        r_hat,
        "draws",
        drawn.natural[:, which],
        drawn.n_sweeps,
        drawn.spacing,
        drawn.converged,
    )


def _diagnosed(drawn: GibbsDraws, values: np.ndarray, n_draws: int) -> np.ndarray:
    """Effective sizes of chosen draws, and R-hat, (2, ...) of one draw's shape; NaN where there is no parameter."""
    chains = drawn.by_chain(values)
    there = np.isfinite(chains).all(axis=(1, 2))
    diagnostics = np.full((2, len(chains)), np.nan)
    diagnostics[:, there] = effective_sizes(chains[there])
    diagnostics[0] = np.minimum(diagnostics[0], n_draws)
    return diagnostics.reshape(2, *values.shape[1:])


def _each(parameters: Parameters, function: Callable[[np.ndarray], np.ndarray]) -> Parameters:
    return {group: {name: function(each) for name, each in of.items()} for group, of in parameters.items()}
