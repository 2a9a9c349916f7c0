"""A fit on its data, as scores of the evidence and samplers of the posterior take it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from skvbem._compat import IterationReport, check_parameters
from skvbem.errors import EvidenceWarning, warn
from skvbem.evidence import Evidence, Score, score_of
from skvbem.evidence.base import OF_LONG_CALLS
from skvbem.evidence.evaluation import Evaluation
from skvbem.fitted.base import Fitted, FittedRun
from skvbem.fitted.under_fit import UnderFit
from skvbem.fitting.fit import FIXED_BY_FIRST_BATCH, attributes_of, published, read, seed_of, solve
from skvbem.reading.base import Reading
from skvbem.reading.tables import listed
from skvbem.uncertainty.draws import FitAtHand
from skvbem.vbem import posteriors


def evaluate(estimator, reading: Reading, to_check: Iterable[str] | None = None) -> Evaluation:
    """The fit of an estimator to a reading, as scores take it; it is not published, and nothing is warned of.

    Parameters
    ----------
    estimator : estimator
    reading : Reading
    to_check : iterable of str, optional
        Names of parameters that may break constraints; by default all.
    """
    check_parameters(estimator, to_check)
    estimator._kind.check(estimator, reading)
    solved = solve(estimator, read(estimator, reading), IterationReport(None, None))
    return _assembled(estimator, solved.fitted, solved.run, solved.data, None)


def evaluation_of(estimator, X, sample_weight=None, random_state=None, **where) -> Evaluation:
    """The fit at hand on its data, as scores take it.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    X : as `fit` takes it, or reading
        The data of the fit.
    sample_weight : array-like, default=None
        As in `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of scores that draw; by default it follows from that of the fit.
    **where
        As in `fit`.

    Raises
    ------
    ValueError
        If these are other data, or the estimator was updated by `partial_fit`.
    """
    reading, run = read_again(estimator, X, sample_weight, **where), run_of(estimator)
    fitted = estimator.fitted.known_from(reading)
    kind = estimator._kind
    data = kind.compiled(estimator, fitted.model, reading, run.plan.n_starts)
    return _assembled(estimator, fitted, run, kind.data_for_scores(data, run.fit), random_state)


def run_of(estimator) -> FittedRun:
    """The run that made the fit at hand; a ValueError if there is none."""
    estimator.fitted.check_was_found("A score, bootstrap or posterior", type(estimator).__name__)
    run = last_run(estimator)
    if run is None:
        raise ValueError(
            f"Scores of the evidence need one fit to all data; this {type(estimator).__name__} was updated by "
            "partial_fit. Its 'batch_lower_bound_' bounds the last batch given the past. Fit all data for a score."
        )
    return run


def last_run(estimator) -> FittedRun | None:
    """The run that made the fit at hand; None where batches came after it."""
    return vars(estimator).get("_run_")


def is_data_of_fit(estimator, X, sample_weight=None, **where) -> bool:
    """True if these are the rows of the fit at hand, in any order."""
    reading = read(estimator, X, None, sample_weight, columns=estimator.fitted.columns, **where)
    return reading.fingerprint == run_of(estimator).fingerprint


def read_again(estimator, X, sample_weight=None, **where) -> Reading:
    """The data of the fit as they were read then; a ValueError if these are other data."""
    fitted, owner = estimator.fitted, type(estimator).__name__
    reading = read(estimator, X, None, sample_weight, columns=fitted.columns, **where)
    if reading.fingerprint == run_of(estimator).fingerprint:
        return reading
    hint, beside = "", " or ".join(["sample_weight", *estimator._kind.located_by])
    if getattr(fitted, "names", ()) and where.get("labels") is None:
        hint = f" This fit knew labels of rows: give {owner} the same 'labels' again, beside X."
    raise ValueError(
        f"The evidence and the posterior of this {owner} belong to the data of its fit. X (or {beside}) is other "
        "data, as the test folds of a cross-validation are: give a search by the evidence cv=AllRows(), of "
        "skvbem.evidence, and its scorer held_out='predictive' where the search is cross-validated itself. Fit X for "
        "its evidence or posterior, or use score_samples for the log predictive probability "
        f"of new rows.{hint}"
    )


def simulated(estimator, X, sample_weight=None, random_state=None, **where) -> tuple[Evaluation, np.ndarray]:
    """A VB fit to data simulated like X from parameters drawn from the prior, and ln of these, (n_cells,)."""
    kind, fitted, run = estimator._kind, replace(estimator.fitted, form=posteriors.VB), run_of(estimator)
    like = read(estimator, X, None, sample_weight, columns=fitted.columns, **where)
    if like.are_in_blocks:
        raise TypeError("Data can be simulated only like rows in memory; X comes in blocks. Give one block.")
    if not like.has_whole_weights:
        raise ValueError("Data can be simulated only like rows, or sequences, of whole-number weights.")
    like = like.one_by_one()
    seed = run.plan.seed if random_state is None else seed_of(estimator, random_state)
    rng = np.random.default_rng([*seed, 2**31])
    point = fitted.model.prior.sample(rng)
    reading = like.refilled(kind.drawn_like(like, fitted.model, point, rng))
    data = kind.compiled(estimator, fitted.model, reading, run.plan.n_starts)
    plan = replace(run.plan, starts=kind.new_starts(run.plan, seed))
    fit = plan.run(fitted.model, data, fitted.form)
    fitted = replace(fitted, statistics=fit.statistics)
    made = _assembled(estimator, fitted, FittedRun(fit, plan), kind.data_for_scores(data, fit), random_state)
    return made, fitted.model.prior.natural(point)


def _assembled(estimator, fitted: Fitted, run: FittedRun, data, random_state) -> Evaluation:
    """A fitted model on its data, as scores take it."""
    from skvbem.models import capabilities_of  # the registry imports every model, and a fit needs one

    model, form, n_threads = fitted.model, fitted.form, effective_n_jobs(estimator.n_jobs)
    return Evaluation(
        model,
        capabilities_of(model),
        data,
        lambda other, fit: run.plan.refit(model, data, other, fit, n_threads),
        run.fit,
        "map_probability" if form == posteriors.MAP_IN_PROBABILITIES else form.name,
        data.total_weight,
        estimator._kind.hidden(fitted),
        run.plan.seed if random_state is None else seed_of(estimator, random_state),
        n_threads,
        run.note,
        estimator.max_memory,
        type(estimator).__name__,
        lambda fit: run.plan.run_optima(model, data, fit, n_threads),
        "map_probability" if getattr(estimator, "map_basis", "natural") == "probability" else "map",
    )


def under_fit(estimator, X, sample_weight=None, *, caller: str, **where) -> UnderFit:
    """Likelihoods, states of latents and cells of rows under the fit at hand: of its data, or of others, in memory.

    They are of the values of rows, whatever labels are known.
    """
    fitted = estimator.fitted
    reading = read(estimator, X, None, sample_weight, columns=fitted.columns, **where)
    names, known = getattr(getattr(reading, "labels", None), "names", ()), getattr(fitted, "names", ())
    if not set(names) <= set(known):
        given, those = listed(map(repr, names)), listed(map(repr, known)) if known else "none"
        raise ValueError(
            f"The 'labels' that {caller} of {type(estimator).__name__} was given are {given}; the fit knew {those}. "
            "Leave 'labels' out, or fit with them."
        )
    if reading.are_in_blocks:
        raise TypeError(f"{caller} needs rows in memory; X comes in blocks. Give it one block.")
    under, run = fitted.under_fit(reading, **estimator._kind.limits(estimator)), last_run(estimator)
    price = 0.0 if run is None else fitted.paid(reading, under.weight_of_rows)
    return under._replace(price=price) if run and price and run.fingerprint == reading.fingerprint else under


def fit_at_hand(estimator, X, sample_weight=None, random_state=None, **where) -> FitAtHand:
    """The fit as the functions of `skvbem.uncertainty` take it; X is read when they need it."""
    run, fitted = last_run(estimator), estimator.fitted
    if isinstance(X, Reading):
        fitted = fitted.known_from(X)
    evaluate = None if X is None else partial(evaluation_of, estimator, X, sample_weight, random_state, **where)
    return FitAtHand(fitted, run, evaluate, type(estimator).__name__, partial(at_draw, estimator))


def at_draw(estimator, natural: np.ndarray) -> Any:
    """An estimator with the parameters of a draw, natural parameters (n_cells,), in place of those of the fit."""
    other = copy(estimator)
    names = {name: value for name, value in vars(estimator).items() if name in FIXED_BY_FIRST_BATCH}
    other.__dict__ = published(estimator, names | attributes_of(estimator, estimator.fitted.at(natural)))
    return other


def score_options(estimator, options: Mapping) -> dict[str, Any]:
    """Options of a score, tables of nodes among them as the points (n_cells,) that scores know."""
    kind, fitted, owner = estimator._kind, estimator.fitted, type(estimator).__name__
    tables = {name for name, value in options.items() if isinstance(value, Mapping)} - {*OF_LONG_CALLS}
    return {
        name: np.exp(kind.log_point(fitted, value, owner)) if name in tables else value
        for name, value in options.items()
    }


def scored(estimator, evaluation: Evaluation, kind: str | Score, options: Mapping) -> Evidence:
    """The evidence of a fit on its data by a score, whose reservations are warned of."""
    evidence = score_of(evaluation, kind, score_options(estimator, options))
    for doubt in evidence.doubts:
        warn(doubt, EvidenceWarning)
    return evidence
