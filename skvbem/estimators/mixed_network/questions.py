"""Answers of networks whose nodes have tables, emissions or covariates, from the fitted value of an estimator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from skvbem._arguments import check_count, check_flag
from skvbem.fitted.asking import mapping_of, nodes_asked, warn_of_unidentified
from skvbem.fitted.effects import Effect
from skvbem.fitted.effects_in_networks import effect_of
from skvbem.fitted.evidence import row_of_evidence
from skvbem.fitted.fills import check_fill
from skvbem.fitted.mixed_network import FittedMixedNetwork
from skvbem.fitted.normal_mixtures import NormalMixture, number_given
from skvbem.fitting.fit import generator_of, question
from skvbem.models.mixed_network.data import MixedRows
from skvbem.models.mixed_network.queries import latent_numbers
from skvbem.reading.mixed_network import values_of
from skvbem.reading.output import filled
from skvbem.reading.tables import is_missing
from skvbem.tables import LabeledTable


def score_samples(estimator: Any, X: Any, interventions: Any = None) -> np.ndarray:
    """Log predictive density of each row, nats, (n_rows,)."""
    fitted, reading = question(estimator, X, interventions=interventions)
    return fitted.predictive.log_densities(
        fitted.rows(reading.values, reading.values_set), **estimator._kind.limits(estimator)
    )


def score_cells(estimator: Any, X: Any, interventions: Any = None) -> np.ndarray:
    """Log predictive density of each cell given the rest of its row, nats, (n_rows, n_columns)."""
    fitted, reading = question(estimator, X, interventions=interventions)
    limits, values = estimator._kind.limits(estimator), reading.values
    scores = np.full((len(values[0]), len(fitted.groups.names_in_x)), np.nan)

    def densities(of_groups: list[np.ndarray], which: np.ndarray) -> np.ndarray:
        rows = fitted.rows(of_groups, reading.values_set).taken(which, np.ones(len(which)))
        return fitted.predictive.log_densities(rows, **limits)

    whole = densities(values, np.arange(len(scores)))
    for k, group, cells in fitted.cells_summed_out():
        of_group, gone = values[k], np.nan if group.encoder is None else -1
        is_known = ~is_missing(of_group[:, cells]).all(axis=1)
        if group.specification.has_table:  # what was set has no density
            is_known &= of_group[:, cells.start] < group.encoder.n_categories_[cells.start]
        without, which = of_group.copy(), np.flatnonzero(is_known)
        without[:, cells] = gone
        rest = densities([*values[:k], without, *values[k + 1 :]], which)
        scores[which, group.columns[cells.start]] = whole[which] - rest
    return scores


def _about_latents(estimator: Any, X: Any, interventions: Any = None) -> tuple[FittedMixedNetwork, MixedRows]:
    """The fit, and rows whose latents are to be predicted."""
    fitted, reading = question(estimator, X, interventions=interventions)
    if not fitted.latents:
        instead = "take 'latent_means' for its hidden numbers" if fitted.latent_numbers else "use 'impute'"
        raise ValueError(
            f"This {type(estimator).__name__} has no latents with states to predict. Declare some, or {instead}."
        )
    return fitted, fitted.rows(reading.values, reading.values_set)


def latent_marginals(estimator: Any, X: Any, interventions: Any = None) -> list[np.ndarray]:
    """Posteriors (n_rows, n_states) of the latents."""
    fitted, rows = _about_latents(estimator, X, interventions)
    groups = [[latent] for latent in fitted.latents]
    return fitted.predictive.all_posteriors(rows, groups, **estimator._kind.limits(estimator))


def latent_means(estimator: Any, X: Any, interventions: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations (n_rows, n_latent_numbers) of hidden numbers."""
    fitted, reading = question(estimator, X, interventions=interventions)
    if not fitted.latent_numbers:
        raise ValueError(
            f"This {type(estimator).__name__} has no hidden numbers. Declare some, as in "
            "latents={'ability': 'number'}, or take 'predict_proba' for latents with states."
        )
    return latent_numbers(
        fitted.predictive, fitted.rows(reading.values, reading.values_set), **estimator._kind.limits(estimator)
    )


def joint_modes(estimator: Any, X: Any) -> list[np.ndarray]:
    """Codes (n_rows,) of the latents at the joint mode of each row."""
    fitted, rows = _about_latents(estimator, X)
    return list(fitted.predictive.joint_modes(rows, fitted.latents, **estimator._kind.limits(estimator)).values())


def number(estimator: Any, target: Any, evidence: Mapping | None, do: Mapping | None = None) -> NormalMixture | None:
    """The distribution of a measurement given values of others, some of which were set; None of other targets."""
    fitted: FittedMixedNetwork = estimator.fitted
    given, done = mapping_of("evidence", evidence), mapping_of("do", do)
    if not isinstance(target, Hashable) or target not in fitted.numbers:
        return None
    return number_given(fitted, target, _asked(estimator, (target,), given, done), **estimator._kind.limits(estimator))


def query(estimator: Any, targets: Any, evidence: Mapping | None, do: Mapping | None = None) -> LabeledTable:
    """Joint probability of some nodes given values of others, some of which were set."""
    fitted: FittedMixedNetwork = estimator.fitted
    targets = nodes_asked(targets, fitted.levels, fitted.numbers)
    row = _asked(estimator, targets, mapping_of("evidence", evidence), mapping_of("do", do))
    joint = fitted.predictive.posteriors(row, targets, **estimator._kind.limits(estimator))[0]
    levels = tuple(fitted.levels[node] for node in targets)
    return LabeledTable(joint.reshape([len(states) for states in levels]), targets, levels)


def _asked(estimator: Any, targets: tuple, given: Mapping, done: Mapping) -> MixedRows:
    """What was seen and what was set as one row, checked against the targets of a query."""
    fitted: FittedMixedNetwork = estimator.fitted
    if not targets or len({*targets, *given, *done}) < len(targets) + len(given) + len(done):
        raise ValueError(
            "query needs one or more targets, each named once and not also in the evidence or in do. No node may be "
            "both seen and set."
        )
    row = row_of_evidence(fitted, given, done)
    _check_possible(estimator, given, row)
    if done and fitted.hidden:
        warn_of_unidentified(fitted.model.dag, fitted.hidden, targets, done, set(given))
    return row


def effect(
    estimator: Any, cause: Hashable, outcome: Hashable, change: Sequence | None, state: Any, n_draws: int
) -> Effect:
    """The total effect of a node on another."""
    check_count("n_draws", "effect", n_draws)
    limits = estimator._kind.limits(estimator)
    return effect_of(estimator.fitted, cause, outcome, change, state, int(n_draws), **limits)


def marginals(estimator: Any, evidence: Mapping | None) -> dict[Hashable, LabeledTable]:
    """Probabilities of every node with a table given values of some; those are certain."""
    fitted, given = estimator.fitted, mapping_of("evidence", evidence)
    certain = {}
    for node in (node for node in given if node in fitted.levels):
        states = fitted.levels[node]
        (code,) = row_of_evidence(fitted, given).column(node)
        certain[node] = LabeledTable(np.eye(len(states))[code], (node,), (states,))
    return {node: certain[node] if node in certain else query(estimator, node, given) for node in fitted.levels}


def _check_possible(estimator: Any, given: Mapping, row: MixedRows) -> None:
    if not np.isfinite(estimator.fitted.predictive.log_densities(row, **estimator._kind.limits(estimator))[0]):
        raise ValueError(f"The evidence {given!r} has probability 0 under this fit: nothing follows from it.")


def impute(estimator: Any, X: Any, fill: str, return_proba: bool, random_state: Any) -> Any:
    """X with missing cells filled, and with `return_proba` probabilities of cells of categories."""
    check_flag("return_proba", "impute", return_proba)
    check_fill(fill)
    fitted, reading = question(estimator, X)
    rows, limits = fitted.rows(reading.values), estimator._kind.limits(estimator)
    asked = [name for name, codes in zip(rows.names, rows.codes.T) if return_proba or (codes < 0).any()]
    codes, columns, proba = fitted.imputed(rows, asked, "cells" if fill == "draw" else fill, **limits)
    of_groups = values_of(fitted.groups, dict(zip(rows.names, codes.T)), columns, reading.values)
    if fill == "draw":
        of_groups = fitted.drawn_rows(reading.values, generator_of(estimator, random_state), **limits)
    completed = filled(X, fitted.groups.missing(reading.values), fitted.groups.columns_of(of_groups))
    return (completed, proba) if return_proba else completed


def sample(estimator: Any, n_samples: int, random_state: Any, given: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Columns of rows drawn, as the table of the fit has them, and the states of each latent.

    `given` is a mapping of nodes and columns to values that all rows have, or a table whose rows have the covariates.
    """
    fitted, rng = estimator.fitted, generator_of(estimator, random_state)
    is_table = given is not None and (hasattr(given, "columns") or not hasattr(given, "items"))
    if is_table and fitted.groups.covariates:
        values = question(estimator, given)[1].values
        if n_samples not in (1, len(values[0])):
            raise ValueError(
                f"'given' has {len(values[0])} rows, and 'n_samples' is {n_samples}. Leave 'n_samples' out."
            )
        of_groups, codes = fitted.sample(len(values[0]), rng, values)
    elif given := mapping_of("given", given):
        _check_possible(estimator, given, row_of_evidence(fitted, given))
        of_groups, codes = fitted.sample_given(given, n_samples, rng, **estimator._kind.limits(estimator))
    else:
        fitted.groups.check_covariates("sample", None)
        of_groups, codes = fitted.sample(n_samples, rng)
    return fitted.groups.columns_of(of_groups), [codes[name] for name in fitted.latents]
