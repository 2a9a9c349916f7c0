"""The one path of a fit: X is read, a model is made and started, the best fit is found, its attributes are gathered.

Every function takes an estimator: its parameters, and the `Kind` that says what is particular to its models.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skvbem._arguments import is_option
from skvbem._compat import IterationReport
from skvbem.blocks import is_dask
from skvbem.errors import release, warn
from skvbem.fitted.base import FittedRun, Solved
from skvbem.fitting.restarts import Restarts
from skvbem.optima.plan import FitPlan, PriorStart, SeveralStarts
from skvbem.optima.tuning import EFFORTS
from skvbem.reading.base import Reading
from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit


class CycleLine:
    """Told after every cycle of a run: prints where it is, and says whether a callback asks to stop.

    Parameters
    ----------
    owner : str
    objective : str
        Its name.
    asks_to_stop : callable
    """

    def __init__(self, owner: str, objective: str, asks_to_stop: Callable[[], bool]):
        self._owner, self._objective, self._asks_to_stop = owner, objective, asks_to_stop
        self._began, self._width = time.perf_counter(), 0

    def __call__(self, n_iter: int, objective: float, n_live: int, to_come: float) -> bool:
        """Print the cycle; True if the run is to end."""
        ends = self._asks_to_stop()
        seconds = time.perf_counter() - self._began
        text = (
            f"[{self._owner}] step {n_iter}: {self._objective} {objective:.6f}, {to_come:.1e} nats to come, {n_live} "
            f"start{'s' * (n_live != 1)} going on, {seconds:.1f} s"
        )
        moves = sys.stdout.isatty()
        print(text.ljust(self._width), end="\r" if moves and n_live and not ends else "\n", flush=moves)
        self._width = len(text) if moves else 0
        return ends


#: Attributes that the first batch fixes.
FIXED_BY_FIRST_BATCH = ("n_features_in_", "feature_names_in_", "_frames_of_", "_input_names_", "_frequency_")
#: Name of the attribute that holds the objective of each method.
OBJECTIVES = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}
# Attributes of a fit that tell of its data and of the way to it, besides priors.
_OF_DATA = frozenset({"batch_lower_bound_", "converged_", "counts_", "latent_states_", "lower_bounds_", "moves_"})
_OF_DATA |= {"standardized_loadings_", "transition_precision_", "loading_precision_"}
_OF_DATA |= {"n_iter_", "n_samples_", "restarts_", *OBJECTIVES.values()}
_FORMS = {"vb": posteriors.VB, "map": posteriors.MAP, "ml": posteriors.ML}


def objective_name(form: str, is_exact: bool) -> str:
    """Name of the attribute that holds the objective of a form, or a bound of it where q(x) is not exact."""
    return OBJECTIVES[form] if is_exact or form == "vb" else f"{OBJECTIVES[form]}bound_"


def seed_of(estimator, random_state) -> tuple[int, ...]:
    """Seed that a random_state stands for, drawn once if it is None or a generator."""
    try:
        if not isinstance(random_state, Integral):
            return tuple(check_random_state(random_state).randint(0, 2**31 - 1, size=4).tolist())
        seed = int(random_state)
        np.random.SeedSequence(seed)
        return (seed,)
    except (TypeError, ValueError):
        raise ValueError(
            f"The 'random_state' parameter of {type(estimator).__name__} must be an int in the range [0, 4294967295], "
            f"a numpy.random.RandomState or None. Got {random_state!r} instead."
        ) from None


def generator_of(estimator, random_state=None) -> np.random.Generator:
    """Random numbers of a random_state; of the estimator's own, where none is given."""
    return np.random.default_rng(seed_of(estimator, estimator.random_state if random_state is None else random_state))


def read(estimator, X, y=None, sample_weight=None, *, columns=None, all_rows: bool = False, **where) -> Reading:
    """X as an estimator reads it, which `fit` and every function of this room take in place of X and its weights.

    So one reading serves several fits, of estimators whose `reading_parameters` are alike. A reading is returned as it
    is. Rows without an observed cell say nothing: they are left out, as rows of weight 0 are, and count in no n;
    with `all_rows` they stay, as questions about them need it.
    `columns` are those of an earlier fit; by default they are learned from X. `where` finds the rows, as
    `sequence_id` and `lengths` of sequences do.

    Raises
    ------
    ValueError
        If X is not what it should be.
    TypeError
        If the estimator takes no such argument beside X.
    """
    if isinstance(X, Reading):
        reading = estimator._kind.adapted(estimator, X.kept())
    else:
        kind = estimator._kind
        unknown = sorted(where.keys() - set(kind.located_by))
        if unknown:
            raise TypeError(f"{type(estimator).__name__} takes no {unknown[0]!r} beside X.")
        reading = kind.read(estimator, X, sample_weight, columns, where)
        if y is not None:
            kind.check_y(y, reading)
    return reading if all_rows else reading.informative()


def question(estimator, X, **where) -> tuple[Any, Any]:
    """The fit, and the reading of rows or sequences in memory that it is asked about.

    `where` finds the rows, as for `read`.

    Raises
    ------
    ValueError
        If X is not what it should be.
    TypeError
        If X comes in blocks.
    """
    fitted = estimator.fitted
    reading = read(estimator, X.compute() if is_dask(X) else X, columns=fitted.columns, all_rows=True, **where)
    if reading.are_in_blocks:
        raise TypeError(
            "X comes in blocks, which only fit and the scores of VBMixture take. Ask about one block at a time, as in "
            "[model.predict(block) for block in X]."
        )
    return fitted, reading


def names_starts(estimator) -> bool:
    """True if the `init` parameter is a name, rather than the start itself."""
    return isinstance(estimator.init, str)


def n_starts_of(estimator) -> int:
    """Number of starts of a fit."""
    if not names_starts(estimator):
        return 1
    most = EFFORTS[effort_of(estimator)].most_starts if estimator.init == "auto" else None
    return estimator.n_init if most is None else min(estimator.n_init, most)


def effort_of(estimator) -> str:
    """The name of the effort that an estimator asks for; one start is no search, unless a thorough one is asked for."""
    name = vars(estimator).get("search_effort", "auto")
    return "fast" if name == "auto" and estimator.n_init == 1 else name


class Run:
    """A fit under way: plans of models of one reading, and how their runs are watched.

    Parameters
    ----------
    estimator : estimator
    reading : Reading
    data : object
        Rows as the models take them.
    report : IterationReport

    Attributes
    ----------
    form : Form
        Of q(theta).
    seed : tuple of int
    effort : str
    limits, options : dict
        Limits of a run as `FitPlan` takes them, and keywords of it: what it calls after every cycle, and threads.
    """

    def __init__(self, estimator, reading: Reading, data: Any, report: IterationReport):
        self.estimator, self.reading, self.data, self.report = estimator, reading, data, report
        is_in_probabilities = estimator.method == "map" and getattr(estimator, "map_basis", "natural") == "probability"
        self.form = posteriors.MAP_IN_PROBABILITIES if is_in_probabilities else _FORMS[estimator.method]
        self.seed, self.effort = seed_of(estimator, estimator.random_state), effort_of(estimator)
        self.limits = {"tol": estimator.tol, "max_iter": estimator.max_iter, "accelerate": estimator.acceleration}
        stop: Any = lambda *cycle: report()  # noqa: E731
        if estimator.verbose:
            stop = CycleLine(type(estimator).__name__, OBJECTIVES[estimator.method][:-1], report)
        self.options = {"stop": stop, "n_threads": effective_n_jobs(estimator.n_jobs)}

    def plan(self, model) -> FitPlan:
        """Starts and limits of a model's fit; with `warm_start` from the last solution, if it is of such a model."""
        estimator, reading, data = self.estimator, self.reading, self.data
        kind = estimator._kind
        last = vars(estimator).get("_fitted_") if estimator.warm_start else None
        if last is not None and last.continues(reading.columns, model):
            start = kind.start_from(last, model.with_known_hyperparameters(), data, reading)
            if model.prior.hyperprior is not None and self.form.prior_share:
                natural = last.natural_of_q
                is_alike = len(natural) == model.n_cells  # else its components had covariances of another type
                start = start + model.prior.hyperparameters(natural) if is_alike else model.started(start)
            most = 2 * vars(estimator).get("n_samples_", np.inf)  # parameters that were given rest on no data
            return self.plan_from(start[:, None], last, most)
        # maximum likelihood has no prior: neither have its starts
        of_starts = model if self.form.prior_share else model.with_known_hyperparameters()
        starts = kind.starts(estimator, of_starts, data, reading, self.seed)
        annealing = kind.inverse_temperatures(estimator)
        explore = is_option(estimator.init, "auto") and not annealing and not isinstance(starts, PriorStart)
        return FitPlan(kind.method, self.seed, starts, self.limits, annealing, explore, self.effort)

    def plan_from(self, start: Any, last: Any, most: float) -> FitPlan:
        """A start from a solution, alone unless that leads nowhere, or rests on little beside these data.

        Rows that are all alike, say, tell what they have in common, and nothing of what sets others apart.

        Parameters
        ----------
        start : ndarray of shape (n_cells, 1), or callable of Ascent
        last : Fitted
        most : float
            Weight of data that a start alone is enough for, more or less.
        """
        kind = self.estimator._kind
        plan = FitPlan(kind.method, self.seed, start, self.limits)
        if self.data.total_weight < most and not kind.leads_nowhere(last):
            return plan
        none = PriorStart()
        others = kind.new_starts(replace(plan, starts=none), self.seed)
        return plan if others is none else replace(plan, starts=SeveralStarts(start, others))


def solve(estimator, reading: Any, report: IterationReport, *, warns: bool = False) -> Solved:
    """The best fit to a reading, nothing published; warnings of its data only where asked for."""
    kind = estimator._kind
    model = kind.model(estimator, reading)
    data = kind.compiled(estimator, model, reading, n_starts_of(estimator))
    if warns:
        kind.warn_of_data(estimator, reading, model, data)
        release()
    run = Run(estimator, reading, data, report)
    model, plan, fit, state = kind.best_fit(estimator, model, data, reading, run)
    note = ""
    if kind.learns_prior(estimator):
        fit, model = plan.learned_prior(model, data, fit, stopped=lambda: report.stopped, **run.options)
        note = "given the optimized prior"
    shown = kind.presentation(estimator, reading)
    fitted = kind.fitted(reading.columns, model, run.form, fit.statistics, plan.seed, **shown)
    return Solved(fitted.identified(), kind.data_for_scores(data, fit), FittedRun(fit, plan, note), state)


def attributes_of(estimator, fitted: Any) -> dict[str, Any]:
    """The fit as the estimator keeps it, and the published attributes of its model."""
    return {"_fitted_": fitted.for_new_rows(), **estimator._kind.attributes(fitted)}


def state_of_fit(estimator, reading: Reading, solved: Solved) -> dict[str, Any]:
    """All attributes that a fit publishes."""
    kind, fit, fitted, data = estimator._kind, solved.run.fit, solved.fitted, solved.data
    prior = kind.prior_in_words(estimator, reading.columns)
    return {
        **reading.names,
        objective_name(fitted.form.name, fit.state is None): fit.objective,
        "lower_bounds_": np.array(fit.trace),
        "n_iter_": fit.n_iter,
        "converged_": fit.converged,
        "restarts_": Restarts.of(fit),
        **attributes_of(estimator, fitted),
        **solved.state,
        **kind.data_attributes(fitted, reading, data, None),
        "_run_": solved.run.of(reading, prior),
        "n_samples_": data.total_weight,
    }


def state_of_batch(estimator, X, y, sample_weight, where: Mapping[str, Any]) -> tuple[dict[str, Any], IterationReport]:
    """Attributes after one more batch, whose prior is the posterior of the fit [Beal (2.114)]; and its report."""
    kind, before = estimator._kind, estimator.fitted
    before.check_was_found("partial_fit", type(estimator).__name__)
    if not before.form.density:
        raise ValueError(
            f"partial_fit continues a fit by method='vb'; this {type(estimator).__name__} was fitted by "
            f"method={before.form.name!r}. Fit it again."
        )
    reading = read(estimator, X, y, sample_weight, columns=before.columns, **where)
    report = IterationReport(estimator, **reading.given)
    data = kind.compiled(estimator, before.model, reading, 1)
    model, statistics = before.model.with_room_for(before.statistics, data)
    if model is not before.model:
        before = replace(before, model=model, statistics=statistics)
        data = kind.compiled(estimator, model, reading, 1)
    past = before.model.updated(before.statistics)
    base = before.model.with_more_rows(before.statistics, data)
    model = past if base is before.model else base.updated(before.statistics)
    run = Run(estimator, reading, data, report)
    plan = run.plan_from(PriorStart(), before, estimator.n_samples_)
    try:
        fit = plan.run(model, data, before.form, **run.options)
    except FloatingPointError as error:
        raise ValueError(
            f"partial_fit of {type(estimator).__name__} cannot take this X: its largest number is "
            f"{largest_number(X):.3g}, and all batches are counted from the mean of the first one, in its units. "
            "Rescale X, or give as first batch one whose numbers are as large."
        ) from error
    warn_unless_converged(estimator, fit, report)
    fitted = replace(before, model=base, statistics=before.statistics + fit.statistics).identified()
    further = 0.0 if model is past else float(model.prior.log_normalizer() - past.prior.log_normalizer())
    earlier = vars(estimator)
    state = {
        **{name: value for name, value in earlier.items() if name in FIXED_BY_FIRST_BATCH},
        "batch_lower_bound_": fit.objective + further,
        "n_iter_": fit.n_iter,
        "converged_": fit.converged,
        "n_samples_": estimator.n_samples_ + data.total_weight,
        **attributes_of(estimator, fitted),
        **kind.data_attributes(fitted, reading, data, earlier),
    }
    return state, report


def largest_number(X: Any) -> float:
    """The largest number of a table, by its size; 0 if it has none."""
    cells = np.asarray(X, dtype=object).ravel()
    return max((abs(float(cell)) for cell in cells if isinstance(cell, Real) and cell == cell), default=0.0)


def warn_unless_converged(estimator, fit: Fit, report: IterationReport) -> None:
    """Warn of a fit that took all steps it was allowed."""
    if not (fit.converged or report.stopped):
        warn(
            f"The best start of {type(estimator).__name__} did not converge in {estimator.max_iter} steps "
            f"(tol={estimator.tol:g} nats). Raise 'max_iter', or 'tol' if the last digits do not matter.",
            ConvergenceWarning,
        )


def published(estimator, state: Mapping[str, Any]) -> dict[str, Any]:
    """The `__dict__` of an estimator after a fit: its parameters, and nothing of an earlier fit."""
    return {**{name: value for name, value in vars(estimator).items() if not name.endswith("_")}, **state}


def is_of_data(name: str) -> bool:
    """True if an attribute tells of data or a prior, of which parameters that are given have none."""
    return name in _OF_DATA or name.endswith("_prior_")
