"""The `transitions` and `start` of a hidden Markov model: covariates that drive its chain, a group of given columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.emissions.given import Given
from skvbem.emissions.softmax import Softmax
from skvbem.emissions.specification import is_hierarchical
from skvbem.estimators.given_columns import places_of_covariates, refuse_collinear, with_given
from skvbem.families.softmax_maximum import Design
from skvbem.models.hmm.covariates import ChainRows, SoftmaxTransitions, covariates_of_transitions, first_rows
from skvbem.models.hmm.transitions import Transitions
from skvbem.reading.column_groups import ColumnGroups, ColumnOptions
from skvbem.reading.rows import SequenceReading
from skvbem.reading.tables import Table, show

#: Name of the group of covariates.
COVARIATES = "covariates"
#: Parameters of `VBHMM` that covariates may take the place of, and their priors.
_PRIOR_OF = {"transitions": "transmat_prior", "start": "startprob_prior"}


def has_covariates(estimator: Any) -> bool:
    """True if covariates drive the chain of an estimator."""
    return any(getattr(estimator, name, None) is not None for name in _PRIOR_OF)


def check_covariates(estimator: Any) -> None:
    """Refuse what are no covariates of a chain, and what does not go with some."""
    owner = type(estimator).__name__
    for name, prior in _PRIOR_OF.items():
        softmax, given = getattr(estimator, name), getattr(estimator, prior)
        if softmax is None:
            continue
        if not isinstance(softmax, Softmax):
            raise TypeError(
                f"The {name!r} parameter of {owner} must be None or a Softmax, such as Softmax(['age']). Got "
                f"{show(softmax)} instead."
            )
        softmax.check_parameters()
        if isinstance(given, str) or not np.array_equal(given, 1.0):
            raise ValueError(
                f"{name!r} of {owner} takes the place of {prior!r}: leave that at its default, and say the prior in "
                "Softmax. 'transmat_mask' rules transitions out."
            )
    if estimator.transitions is not None and estimator.sticky:
        raise ValueError(
            f"'sticky' of {owner} adds counts to a prior that 'transitions' has not. Leave 'sticky' at 0: intercepts "
            "learn how long states stay."
        )
    if estimator.learn_prior:
        raise ValueError(
            f"learn_prior=True of {owner} multiplies concentrations, of which a Softmax has none. Leave it False, and "
            "compare bounds with other values of 'slope_prior'."
        )
    if estimator.predictive == "vb":
        raise ValueError(
            f"predictive='vb' of {owner} has no value at covariates that the fit has not seen. Take 'mean' or "
            "'average' where covariates drive the chain."
        )


def with_covariates(estimator: Any, options: ColumnOptions, table: Table) -> list[tuple]:
    """The `emission` parameter as a list of groups, the covariates of the chain the last of them."""
    places: list[int] = []
    for name in _PRIOR_OF:
        if getattr(estimator, name) is not None:
            at, _ = _places(estimator, name, table.names, table.source)
            places += [each for each in at if each not in places]
    whose = f"'transitions' and 'start' of {type(estimator).__name__}: their Softmax"
    return with_given(options, (COVARIATES, Given(), places), table, whose)


def _places(estimator: Any, name: str, names: Any, source: Any = None) -> tuple[list[int], list[int]]:
    """Positions in X of the covariates of a parameter, and of those that have slopes."""
    return places_of_covariates(getattr(estimator, name), f"the Softmax in {name!r}", name, names, source)


def part_with_covariates(columns: ColumnGroups) -> int | None:
    """The place of the group of covariates; None without one."""
    groups = enumerate(columns.groups)
    return next((k for k, group in groups if group.specification.are_given), None)


def driven(
    estimator: Any, reading: SequenceReading, rows: tuple[Transitions, Transitions], part: int
) -> tuple[ChainRows, ChainRows]:
    """First states and transitions, those that covariates drive in place of others that are as free."""
    values, firsts = reading.values[part], first_rows(np.concatenate([[0], np.cumsum(reading.lengths)]))
    weight = np.ones(len(reading.lengths)) if reading.weight is None else reading.weight
    by_name: dict[str, SoftmaxTransitions] = {}
    if estimator.start is not None:
        of_firsts = values[firsts]
        by_name["start"] = _softmax_rows(estimator, "start", reading, part, rows[0], (of_firsts, weight), of_firsts)
    if estimator.transitions is not None:
        moves = np.ones(len(values), dtype=bool)
        moves[firsts] = False
        driving = covariates_of_transitions(estimator.transitions.at == "arrival", values)
        driving, measured = driving[moves] if moves.any() else driving[:1], (values, np.repeat(weight, reading.lengths))
        by_name["transitions"] = _softmax_rows(estimator, "transitions", reading, part, rows[1], measured, driving)
    names = reading.columns.groups[part].names
    for name, each in by_name.items() if estimator.method == "ml" else ():
        of_regressors = [names[at] for at in np.repeat(each.selected, each.coding.n_slopes)]
        refuse_collinear(each.design, of_regressors, f"{name!r} of {type(estimator).__name__}")
    return by_name.get("start", rows[0]), by_name.get("transitions", rows[1])


def _softmax_rows(
    estimator: Any,
    name: str,
    reading: SequenceReading,
    part: int,
    rows: Transitions,
    measured: tuple[np.ndarray, np.ndarray],
    driving: np.ndarray,
) -> SoftmaxTransitions:
    """Rows that covariates drive, in units of those `measured` with weights, of the patterns of those `driving`."""
    softmax, group = getattr(estimator, name), reading.columns.groups[part]
    _, places = _places(estimator, name, reading.columns.names)
    selected = tuple(group.columns.index(each) for each in places)
    sizes = [len(group.levels[at]) if group.levels else 0 for at in selected]
    values, weight = measured
    coding = softmax.coding(values[:, [*selected]], weight, sizes)
    learns = is_hierarchical(softmax.slope_prior)
    slope_variance = 1.0 if learns else float(softmax.slope_prior)
    precision = 1.0 / np.append(softmax.intercept_variance, np.full(len(coding.mean), slope_variance))
    empty, at_arrival = Design.of(np.ones((1, len(precision)))), name == "transitions" and softmax.at == "arrival"
    made = SoftmaxTransitions(rows.allowed, coding, selected, precision, empty, at_arrival, learns)
    return made.with_design(driving)
