"""The kind of `VBLinearDynamicalSystem`: sequences with inputs, priors in units of the data, starts."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.errors import DataWarning, check_memory, warn
from skvbem.estimators.linear_dynamical_system.state_space import StateSpaceKind
from skvbem.families.hyperpriors import floor_of_scales
from skvbem.families.regression import are_unknown
from skvbem.fitted.linear_dynamical_system import FittedLDS
from skvbem.models.linear_dynamical_system.data import LDSData
from skvbem.models.linear_dynamical_system.first_states import round_prior
from skvbem.models.linear_dynamical_system.model import LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.starts import LDSStarts
from skvbem.optima.linear_dynamical_system import LDSMethod, LearnedPrecisions
from skvbem.optima.plan import FitPlan
from skvbem.reading.inputs import InputReading
from skvbem.vbem.fit import Fit
from skvbem.vbem.posteriors import VB

#: Shape and rate of the Gamma priors of learned precisions.
RELEVANCE = (1.0, 1.0)


class LDSKind(StateSpaceKind):
    """Linear dynamical systems."""

    method = LDSMethod()
    fitted = FittedLDS
    prior_parameters = (
        "transition_precision_prior",
        "loading_precision_prior",
        "noise_shape_prior",
        "noise_rate_prior",
    )

    def check(self, estimator, X) -> None:
        """Refuse precisions to be learned where there is no bound to learn them by."""
        choice, method = estimator.learn_prior, estimator.method
        if choice is not False and (choice is True or method != "vb"):
            raise ValueError(
                f"The 'learn_prior' parameter of {type(estimator).__name__} must be False, or with method='vb', whose "
                f"bound decides, 'strength' or 'ard'. Got {choice!r} with method={method!r} instead."
            )

    def model(self, estimator, reading: InputReading) -> LinearDynamicalSystem:
        """The system of as many states as asked for."""
        k = estimator.n_components
        numbers = 4 * (k + reading.inputs.shape[1]) ** 2 + 3 * k * len(reading.inputs)
        check_memory(f"A system of {k:.3g} states", numbers, "fewer", estimator.max_memory, type(estimator).__name__)
        return resolve_model(estimator, reading, k)

    def learns_prior(self, estimator) -> bool:
        """True if multiples of precisions are learned."""
        return estimator.learn_prior == "strength"

    def best_fit(
        self, estimator, model: LinearDynamicalSystem, data: LDSData, reading: Any, run
    ) -> tuple[LinearDynamicalSystem, FitPlan, Fit, dict]:
        """The best fit, with a precision of each state where these are learned."""
        if estimator.learn_prior != "ard":
            return super().best_fit(estimator, model, data, reading, run)
        plan = run.plan(model)
        learned = LearnedPrecisions(
            plan, run.form, lambda k: resolve_model(estimator, reading, k, RELEVANCE), estimator.prune
        )
        relevant, fit = learned.fit(model, data, **run.options)
        return relevant, plan, fit, {}

    def starts(self, estimator, model, data: LDSData, reading: InputReading, seed: tuple) -> LDSStarts:
        """Starts by the name of `init`."""
        return LDSStarts(estimator.init, estimator.n_init, seed)

    def new_starts(self, plan: FitPlan, seed: tuple[int, ...]) -> LDSStarts:
        """As many starts along principal components."""
        return LDSStarts("pca", plan.n_starts, seed)

    def start_from(self, last: FittedLDS, model, data: LDSData, reading: InputReading) -> np.ndarray:
        """Statistics under the states of the last solution."""
        states = last.smoothed(reading.compiled(last.model), last.natural_of_q)
        return model.statistics_of_start(data, states.mean[data.rows], states.covariance[data.rows].mean(axis=0))

    def leads_nowhere(self, fitted: FittedLDS) -> bool:
        """True if no column depends on some state."""
        model = fitted.model
        natural = model.prior.split(fitted.natural_of_q[:, None])[1][:, 0]
        return bool(are_unknown(model.emission, natural)[0, : model.n_states].any())

    def drawn_like(self, like: InputReading, model: LinearDynamicalSystem, point, rng: np.random.Generator):
        """Sequences of the lengths, and with the inputs, of a reading."""
        system = FittedLDS(like.columns, model, VB, np.zeros(model.n_cells))
        return like.columns.as_emission_takes([system.drawn_like(point, like, rng)])

    def warn_of_fit(self, estimator, fitted: FittedLDS, data: LDSData) -> None:
        """Warn of noise without width."""
        stopped = fitted.at_floor() if estimator.method == "ml" else []
        if stopped:
            warn(
                f"The noise of column {stopped[0]!r} has no width: its variance is a floor, without which the "
                "likelihood has no maximum, as a state can follow one column. Take fewer states, or method='vb' or "
                "'map'.",
                DataWarning,
            )

    def title(self, fitted: FittedLDS) -> str:
        """Numbers of states and columns."""
        k, p = fitted.model.n_states, fitted.model.n_columns
        return f"{k} state{'s' * (k > 1)} of {p} column{'s' * (p > 1)}"

    def reservations(self, fitted: FittedLDS) -> list[str]:
        """States that grow."""
        radius = np.abs(np.linalg.eigvals(fitted.matrices.transition)).max()
        return [f"States grow by {radius:.3g} a step: forecasts have no limit."] if radius > 1 else []

    def attributes(self, fitted: FittedLDS) -> dict[str, Any]:
        """Matrices of the system, and precisions of its prior."""
        matrices, prior = fitted.matrices, fitted.model.prior
        known = {
            **{f"{name}_": value for name, value in matrices._asdict().items()},
            "n_components_": fitted.model.n_states,
            "spectral_radius_": float(np.abs(np.linalg.eigvals(matrices.transition)).max()),
            "n_free_parameters_": prior.n_free_parameters,
        }
        if fitted.given is not None:
            return known
        if prior.hyperprior is not None:
            natural, _ = fitted.form.of(prior, fitted.statistics[:, None])
            prior = prior.given_hyperparameters(prior.hyperparameters(natural[:, 0]))
        transition, loading = (np.diagonal(np.linalg.inv(block.covariance[0])).copy() for block in prior.blocks[:2])
        return known | {
            "standardized_loadings_": fitted.standardized_loadings,
            "transition_precision_": transition,
            "loading_precision_": loading,
        }


def resolve_model(
    estimator: Any, reading: InputReading, k: int, relevance: tuple[float, float] | None = None
) -> LinearDynamicalSystem:
    """The model of so many states; the shape and rate of Gamma priors of precisions where these are hidden."""
    values, lengths = reading.values[0], reading.lengths
    weight = np.ones(len(lengths)) if reading.weight is None else reading.weight
    n_first = int((weight > 0).sum())
    if estimator.initial == "learned" and estimator.method == "ml" and n_first <= k:
        raise ValueError(
            f"initial='learned' with method='ml' takes more sequences than states: {n_first} first states say nothing "
            f"of a covariance of {k}. Take method='vb' or 'map', or initial='unit'."
        )
    of_rows = np.repeat(weight, lengths)
    origin, unit = moments(values, of_rows)
    seen, depends = ~np.isnan(values).all(axis=1), reading.before_last_observed
    _, group = np.unique(~np.isnan(values), axis=1, return_inverse=True)
    p = len(origin)
    transition, rate = estimator.transition_precision_prior, estimator.noise_rate_prior
    loading, offset = float(estimator.loading_precision_prior), float(estimator.offset_precision_prior)
    moving = float(k if transition is None else transition)
    return LinearDynamicalSystem.from_precisions(
        np.concatenate([np.full(k, moving), moving * mean_squares(reading.inputs, of_rows * depends)]),
        np.concatenate([np.full(k, loading), [offset], loading * mean_squares(reading.output_inputs, of_rows * seen)]),
        shape=np.full(p, float(estimator.noise_shape_prior)),
        rate=None if rate is None else np.full(p, float(rate)),
        rate_floor=floor_of_scales(of_rows @ ~np.isnan(values)) / 2,
        group=_in_order_of_appearance(group.ravel()),
        n_states=k,
        relevance=relevance,
        first=round_prior(k) if estimator.initial == "learned" else None,
        origin=origin,
        unit=unit,
    )


def moments(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the observed cells of columns; 0 and 1 where there is no spread to measure."""
    observed = ~np.isnan(values)
    n = np.maximum(weight @ observed, 1e-300)
    cells = np.where(observed, values, 0.0)
    mean = weight @ cells / n
    deviation = np.sqrt(weight @ np.where(observed, values - mean, 0.0) ** 2 / n)
    has_spread = deviation > 1e-12 * np.abs(mean)
    return mean, np.where(
        has_spread & (deviation > 0), deviation, np.maximum(np.abs(mean), 1.0) * ~has_spread + has_spread
    )


def mean_squares(inputs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean squares of inputs, which make priors of their effects free of units; 1 of an input that is always 0."""
    peak = np.abs(inputs).max(axis=0, initial=0.0)
    peak[peak == 0] = 1.0
    squares = weight @ (inputs / peak) ** 2 / weight.sum()
    return np.where(squares > 0, squares * peak**2, 1.0)


def _in_order_of_appearance(group: np.ndarray) -> np.ndarray:
    """Groups numbered in the order in which their first columns stand."""
    _, first, which = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which.ravel()]
