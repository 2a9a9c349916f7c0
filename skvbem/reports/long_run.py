r"""Where a chain is in the long run: shares of its states, and how long each lasts.

Shares :math:`\pi` solve :math:`\pi = \pi A` within the states that the chain, once there, never leaves. A stay in
state k lasts :math:`1 / (1 - A_{kk})` steps on average. With durations a stay lasts :math:`m_k` steps on average, and
:math:`\pi_k \propto \nu_k m_k` where :math:`\nu` are shares of stays: those of the chain with
:math:`A_{kl} = J_{kl} / m_k`, J the probabilities of the next state, which is another. Both are functions of the
parameters of the chain. Their intervals are quantiles over draws of these: from the posterior, or, at a point, from the
normal distribution with the inverse of the observed information as its covariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from skvbem._arguments import check_argument, check_level
from skvbem._tabular import data_frame, html_table, number, text_table
from skvbem.emissions.softmax import normal_points
from skvbem.evidence.tuning import TUNING
from skvbem.fitting.evaluation import fit_at_hand
from skvbem.models.hmm.transitions import mean_stays
from skvbem.uncertainty.draws import Draws, FitAtHand
from skvbem.uncertainty.intervals import default_draws
from skvbem.uncertainty.standard_errors import StandardErrors, standard_errors_of


@dataclass(frozen=True, eq=False, repr=False)
class LongRun:
    """Shares of states in the long run, and mean stays, with intervals.

    It prints as a table, and `to_frame` has it.

    Parameters
    ----------
    names : ndarray of object, shape (n_components,)
        Names of states, or their numbers.
    stationary : ndarray of shape (n_components,)
        Shares of states: the stationary distribution of the published transitions.
    mean_stays : ndarray of shape (n_components,)
        Steps; infinite where a state is never left.
    stationary_interval, mean_stays_interval : tuple of two ndarrays of shape (n_components,)
        Lower and upper ends; NaN where there are none.
    level : float
        Mass of the intervals.
    method : str
        The source of the intervals; "none" of a point without data.
    """

    names: np.ndarray
    stationary: np.ndarray
    mean_stays: np.ndarray
    stationary_interval: tuple[np.ndarray, np.ndarray]
    mean_stays_interval: tuple[np.ndarray, np.ndarray]
    level: float
    method: str

    def records(self) -> Iterator[tuple]:
        """State, share with the ends of its interval, mean stay with the ends of its interval."""
        of_stationary, of_stays = (
            (self.stationary, *self.stationary_interval),
            (self.mean_stays, *self.mean_stays_interval),
        )
        for k, name in enumerate(self.names):
            yield name, *(float(each[k]) for each in (*of_stationary, *of_stays))

    def to_frame(self):
        """Shares and mean stays as a pandas DataFrame; an ImportError if pandas is not installed."""
        columns = [
            "state",
            "stationary",
            "stationary_lower",
            "stationary_upper",
            "mean_stay",
            "mean_stay_lower",
            "mean_stay_upper",
        ]
        return data_frame(self.records(), type(self).__name__, columns=columns)

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        def shown(value: float, lower: float, upper: float) -> str:
            return number(value) if np.isnan(lower) else f"{number(value)} [{number(lower)}, {number(upper)}]"

        rows = [[str(name), shown(*three[:3]), shown(*three[3:])] for name, *three in self.records()]
        return ["state", "share", "mean stay"], rows

    @property
    def title(self) -> str:
        """The source of intervals."""
        if self.method == "none":
            return "In the long run"
        return f"In the long run, {100 * self.level:g} % intervals by {self.method.replace('_', ' ')}"

    def __repr__(self):
        return "\n".join([self.title, *text_table(*self._cells())])

    def _repr_html_(self):
        return html_table(*self._cells(), caption=self.title)


def closed_states(transitions: np.ndarray) -> np.ndarray:
    """States (n_closed,) that a chain ends in and never leaves.

    Raises
    ------
    ValueError
        If there are several sets of such states: where a chain ends then depends on its first state.
    """
    n_sets, of_state = connected_components(transitions > 0, connection="strong")
    sets = [np.flatnonzero(of_state == k) for k in range(n_sets)]
    closed = [states for states in sets if not np.delete(transitions[states], states, axis=1).any()]
    if len(closed) > 1:
        which = " or ".join(f"{{{', '.join(map(str, states))}}}" for states in closed)
        raise ValueError(
            f"The chain has no shares of states in the long run: it never leaves {which} once it is "
            "there, and its first state decides where it ends. `transmat_` has the transitions."
        )
    return closed[0]


def stationary_distributions(transitions: np.ndarray, closed: np.ndarray) -> np.ndarray:
    """Stationary distributions (..., n) of transitions (..., n, n) that never leave some states, 0 of all others.

    States are taken out of the chain one by one, without a difference, so that small shares have all their digits
    [GTH85].
    """
    p = transitions[..., closed[:, None], closed]
    for k in range(len(closed) - 1, 0, -1):
        p[..., :k, k] /= p[..., k, :k].sum(axis=-1)[..., None]
        p[..., :k, :k] += p[..., :k, k, None] * p[..., k, None, :k]
    visits = np.ones(p.shape[:-1])
    for k in range(1, len(closed)):
        visits[..., k] = (visits[..., :k] * p[..., :k, k]).sum(axis=-1)
    distributions = np.zeros(transitions.shape[:-1])
    distributions[..., closed] = visits / visits.sum(axis=-1, keepdims=True)
    return distributions


def long_run(estimator: Any, X: Any, *, level: float, draws: Any, sample_weight: Any, **where: Any) -> LongRun:
    """Shares of states and mean stays of a fitted chain, with intervals."""
    check_level("long_run", level)
    fitted = estimator.fitted
    if not fitted.model.is_homogeneous:
        raise ValueError(
            f"long_run needs transitions that are the same at every step, and covariates drive those of this "
            f"{type(estimator).__name__}. `transmat_` has their shares in the data, and forecast the states ahead."
        )
    wanted = "what sample_posterior, bootstrap or standard_errors returns"
    check_argument(draws is None or isinstance(draws, (Draws, StandardErrors)), "draws", "long_run", wanted, draws)
    transitions = _transitions(fitted, fitted.named_parameters(fitted.point)["chain"])
    closed = closed_states(transitions)
    drawn, method = _drawn(fit_at_hand(estimator, X, sample_weight, **where), draws)
    with np.errstate(invalid="ignore"):
        nothing = np.full((1, fitted.model.n_components), np.nan)
        both = [stationary_distributions(drawn, closed), mean_stays(drawn)] if len(drawn) else [nothing, nothing]
        (a, b), (c, d) = (np.quantile(each, [0.5 - level / 2, 0.5 + level / 2], axis=0) for each in both)
    estimates = stationary_distributions(transitions, closed), mean_stays(transitions)
    return LongRun(fitted.component_names, *estimates, (a, b), (c, d), level, method)


def _transitions(fitted: Any, chain: Mapping[str, np.ndarray]) -> np.ndarray:
    """Transitions (..., n, n) of named parameters; with durations, of a chain whose states last as long in the mean.

    Shares depend on durations through their means alone.
    """
    ends = getattr(fitted.model.transitions, "name_of_ends", None)
    return chain["transmat"] if ends is None else fitted.model.transitions.as_long(chain["transmat"], chain[ends])


def _drawn(at_hand: FitAtHand, draws: Any) -> tuple[np.ndarray, str]:
    """Transitions (n_draws, n, n), and their source: without data those of q(theta), of a point none."""
    fitted: Any = at_hand.fitted
    if draws is None and at_hand.evaluate is None:
        if not fitted.form.density:
            return np.empty((0, *fitted.transmat.shape)), "none"
        natural = fitted.draws(TUNING.quantile_draws, fitted.rng_of_draws)
        return _transitions(fitted, fitted.parameters_of_draws(natural)["chain"]), "vb"
    if draws is None:
        is_density = fitted.form.density
        draws = default_draws(at_hand) if is_density else standard_errors_of(fitted, at_hand.evaluation)
    if not isinstance(draws, StandardErrors):
        return _transitions(fitted, draws.parameters["chain"]), draws.method
    values, axes = np.linalg.eigh(draws.covariance)
    free = draws.coordinates[:, None] + (axes * np.sqrt(values.clip(0.0))) @ normal_points(len(values))
    flat, chain, first = draws.at(free), {}, 0
    for name, estimate in draws.parameters["chain"].items():
        chain[name] = flat[first : first + estimate.size].T.reshape(-1, *estimate.shape)
        first += estimate.size
    return _transitions(fitted, chain), draws.method
