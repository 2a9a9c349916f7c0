"""The kind of `VBHMM`: sequences, priors of first states and transitions, starts from labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from skvbem._arguments import is_list, is_option, is_whole
from skvbem.emissions import Emission
from skvbem.emissions.specification import floats, positive
from skvbem.errors import check_memory
from skvbem.estimators.hmm.covariates import (
    check_covariates,
    driven,
    has_covariates,
    part_with_covariates,
    with_covariates,
)
from skvbem.estimators.hmm.durations import check_durations, has_durations, semi_markov_rows
from skvbem.estimators.labels import LabelKind, check_size, resolve_emission_prior, responsibilities_of
from skvbem.estimators.sequences import read_steps
from skvbem.fitted.hmm import FittedHMM
from skvbem.fitting.fit import n_starts_of, names_starts
from skvbem.fitting.kind import Kind
from skvbem.models.hmm.covariates import CovariateHMM
from skvbem.models.hmm.enumeration import first_impossible
from skvbem.models.hmm.model import HMM
from skvbem.models.hmm.semi_markov import SemiMarkovHMM
from skvbem.models.hmm.starts import seeded_starts
from skvbem.models.hmm.transitions import Transitions, banded, left_to_right
from skvbem.models.labels.distinct_rows import with_known_labels
from skvbem.models.sequences import MAX_KEPT_DOUBLES, HMMData
from skvbem.optima.hmm import HMMMethod
from skvbem.optima.labels import LabelStarts
from skvbem.reading.column_groups import ColumnGroups
from skvbem.reading.labels import labels_of_list, read_labels
from skvbem.reading.rows import SequenceReading
from skvbem.reading.sequences import Sequences, read_sequences, refuse_lengths_as_y
from skvbem.reading.tables import Table, show
from skvbem.reading.time_axis import frequency_of_fit

LEFT_TO_RIGHT = "left-to-right"
#: A total of one, shared evenly [Beal's code].
UNIT = "unit"


class HMMKind(LabelKind):
    """Hidden Markov models of sequences."""

    method = HMMMethod()
    fitted = FittedHMM
    located_by = ("sequence_id", "lengths", "time", "labels")
    reading_parameters = LabelKind.reading_parameters | {"transitions", "start"}
    prior_parameters = ("startprob_prior", "transmat_prior", "transitions", "start")
    label = "state"
    draw = staticmethod(seeded_starts)

    def located(self, estimator, X, *, is_fit=False, sequence_id=None, lengths=None, time=None) -> Sequences:
        """X as sequences, which every method takes in place of X."""
        of_fit = None if is_fit else frequency_of_fit(estimator)
        return read_sequences(X, sequence_id, lengths, type(estimator).__name__, time, of_fit)

    def read(self, estimator, X, sample_weight, columns: ColumnGroups | None, where: Mapping) -> SequenceReading:
        """The reading of sequences, with the labels of their steps where some are known."""
        places = {name: value for name, value in where.items() if name != "labels"}
        sequences = self.located(estimator, X, is_fit=columns is None, **places)
        learned = partial(self.learned_columns, estimator)
        reading = read_steps(estimator, sequences, X, sample_weight, columns, learned)
        labels, owner = where.get("labels"), type(estimator).__name__
        if labels is None:
            return reading
        metadata = {**reading.given["metadata"], "labels": labels}
        if sequences.are_listed:
            labels = labels_of_list(labels, sequences.rows_of_each, owner)
        known = read_labels(labels, sequences.n_rows, reading.order, owner)
        return replace(reading, labels=known, given={**reading.given, "metadata": metadata})

    def learned_columns(self, estimator, table: Table) -> tuple[ColumnGroups, list[np.ndarray]]:
        """The groups of columns, covariates of the chain the last of them, and the values of each."""
        if not has_covariates(estimator):
            return super().learned_columns(estimator, table)
        options = self.column_options(estimator)
        return self.read_groups(options._replace(emission=with_covariates(estimator, options, table)), table)

    def check(self, estimator, X) -> None:
        """Refuse a prior to be learned, or numbers of factors to be chosen, where there is no bound to choose by."""
        if has_covariates(estimator):
            check_covariates(estimator)
        if has_durations(estimator):
            check_durations(estimator)
        Kind.check(self, estimator, X)
        self.check_numbers_of_factors(estimator, X)
        if estimator.n_components == "auto":
            _check_any_number_of_states(estimator)

    def check_y(self, y, reading: Any) -> None:
        """Refuse lengths in the place of y."""
        if y is not None:
            refuse_lengths_as_y(y, reading.sequences, "fit")

    def warn_of_data(self, estimator, reading, model, data) -> None:
        """Warn of steps that are missing, and as of other tables."""
        reading.warn_of_missing_steps()
        super().warn_of_data(estimator, reading, model, data)

    def compiled(self, estimator, model: HMM, reading: Any, n_starts: int) -> HMMData:
        """Sequences as the model takes them; labels that no path has are refused."""
        data = super().compiled(estimator, model, reading, n_starts)
        which = None if reading.labels is None else first_impossible(model, data)
        if which is not None:
            raise ValueError(
                f"'labels' of {type(estimator).__name__} are on no path that 'transmat_mask' and the priors of the "
                f"chain leave: those of sequence {which}. Allow the transitions between its states, or mend its labels."
            )
        return data

    def model(self, estimator, reading: SequenceReading) -> HMM:
        """The chain of `n_components`; of one state, or of one for each label, where their number is to be found."""
        n = 1 if estimator.n_components == "auto" else estimator.n_components
        if reading.labels is not None:
            reading.labels.check(estimator.n_components, type(estimator).__name__, self.label)
            n = max(n, len(reading.labels.names))
        return self.model_of(estimator, reading, reading.emission(), n)

    def model_of(self, estimator, reading: SequenceReading, emission: Emission, n_components: int) -> HMM:
        """The chain of some number of states of an emission."""
        n, owner, part = n_components, type(estimator).__name__, part_with_covariates(reading.columns)
        n_rows = len(reading.values[0])
        held = n_rows * (emission.n_columns + n + 2) + min(n_rows * n, MAX_KEPT_DOUBLES)  # a copy, and shares of states
        if has_covariates(estimator):  # a matrix for each step, twice for a moment, and states of each start
            held += n_rows * n * (2 * n + 2 + n_starts_of(estimator))
        check_memory(f"{n_rows:,} steps of {n} states", held, "fewer", estimator.max_memory, owner)
        first, pairs = resolve_chain(estimator, n)
        prior = resolve_emission_prior(reading.columns, emission, n)
        if part is None:
            rows = semi_markov_rows(estimator.durations, pairs) if has_durations(estimator) and n > 1 else None
            cells = n + 1 if rows is None else 1 + -(-rows.n_cells // n)
            check_size(emission, n, n_starts_of(estimator), estimator.max_memory, owner, cells)
            return HMM(emission, first, pairs, prior) if rows is None else SemiMarkovHMM(emission, first, rows, prior)
        of_first, of_pairs = driven(estimator, reading, (first, pairs), part)
        more = -(-(of_first.n_cells + of_pairs.n_cells) // n)
        check_size(emission, n, n_starts_of(estimator), estimator.max_memory, owner, more)
        return CovariateHMM(emission, of_first, of_pairs, prior, part)

    def starts(self, estimator, model: HMM, data: HMMData, reading: SequenceReading, seed: tuple[int, ...]) -> Any:
        """Starts by the name of `init`, or statistics (n_cells, 1) of responsibilities given."""
        if names_starts(estimator):
            return LabelStarts(estimator.init, n_starts_of(estimator), seed, self.draw)
        given, sequences = estimator.init, reading.sequences
        if sequences.are_listed and is_list(given) and given and np.ndim(given[0]) == 2:
            given = np.concatenate([np.asarray(each) for each in given])
        given = responsibilities_of(given, sequences.n_rows, model.n_components, type(estimator).__name__)
        given = np.vstack([given, np.full(given.shape[1], 1.0 / given.shape[1])])  # of steps without a row
        labels = None if reading.labels is None else reading.labels.codes
        return model.statistics_of(with_known_labels(given[reading.order].T, labels).T, data)[:, None]

    def start_from(self, last: Any, model: HMM, data: HMMData, reading: SequenceReading) -> np.ndarray:
        """Statistics under the last solution."""
        return last.start_of(reading, model, data)

    def attributes(self, fitted: Any) -> dict[str, Any]:
        """States, transitions and expected steps."""
        state = super().attributes(fitted)
        return {
            **state,
            "parameters_": fitted.coefficients | state["parameters_"],
            "startprob_": fitted.startprob,
            "transmat_": fitted.transmat,
            "counts_": fitted.counts,
            "n_components_": fitted.model.n_components,
        }

    def prior_in_words(self, estimator, columns: Any) -> str:
        """The prior of a fit in words, durations first where they are not geometric."""
        said = super().prior_in_words(estimator, columns)
        return f"durations={estimator.durations!r}, {said}" if has_durations(estimator) else said

    def drawn_like(self, like: SequenceReading, model: HMM, point, rng: np.random.Generator):
        """Sequences of the lengths, and with the covariates, of a reading."""
        return model.sample(point, like.lengths, rng, like.columns.as_emission_takes(like.values))[0]


def _check_any_number_of_states(estimator) -> None:
    """Refuse what makes sense of one number of states alone, where this is to be found."""
    owner, mask = type(estimator).__name__, estimator.transmat_mask
    if estimator.method != "vb":
        raise ValueError(
            f"n_components='auto' of {owner} needs method='vb', whose bound decides. Got method={estimator.method!r}."
        )
    if not names_starts(estimator):
        raise ValueError(f"n_components='auto' of {owner} makes its own starts. Got probabilities of states in 'init'.")
    if not (mask is None or is_option(mask, LEFT_TO_RIGHT) or is_whole(mask)):
        raise ValueError(
            f"n_components='auto' of {owner} needs a 'transmat_mask' that any number of states can have: None, "
            f"{LEFT_TO_RIGHT!r} or an int. Got {show(mask)}. Say 'n_components' where the mask is an array."
        )
    for name in ("startprob_prior", "transmat_prior"):
        given = getattr(estimator, name)
        if not isinstance(given, str) and np.ndim(given):
            raise ValueError(f"n_components='auto' of {owner} needs one number as {name!r}. Got {show(given)}.")


def resolve_chain(estimator, n_states: int) -> tuple[Transitions, Transitions]:
    """The priors of the first of so many states, and of transitions between them.

    Raises
    ------
    ValueError
        If a parameter is not what it should be.
    """
    owner = type(estimator).__name__
    mask = _mask(owner, estimator.transmat_mask, n_states)
    may_begin = np.ones((1, n_states), dtype=bool)
    if is_option(estimator.transmat_mask, LEFT_TO_RIGHT):  # it goes through the states from the first on
        may_begin = np.arange(n_states)[None] == 0
    first = _concentration(owner, "startprob_prior", estimator.startprob_prior, may_begin)
    pairs = _concentration(owner, "transmat_prior", estimator.transmat_prior, mask)
    pairs = pairs + estimator.sticky * (np.eye(n_states) * (pairs > 0))
    if not first.any():
        raise ValueError(f"The 'startprob_prior' parameter of {owner} leaves no state to begin in.")
    stuck = np.flatnonzero(~(pairs > 0).any(axis=1))
    if len(stuck):
        raise ValueError(
            f"'transmat_mask' and 'transmat_prior' of {owner} leave no transition from state {stuck[0]}. Allow one "
            "from every state, such as to itself."
        )
    return Transitions(first), Transitions(pairs)


def _concentration(owner: str, name: str, value, allowed: np.ndarray) -> np.ndarray:
    """Concentrations of the shape of what is allowed, 0 where it is not."""
    if isinstance(value, str):
        if value != UNIT:
            raise ValueError(
                f"The {name!r} parameter of {owner} must be a number, {UNIT!r} or an array. Got {value!r} instead."
            )
        return Transitions.symmetric(len(allowed), 1.0, allowed).concentration
    given = floats(owner, name, value, f"a number, {UNIT!r} or an array of numbers")
    if not given.ndim:
        return float(positive(owner, name, value)) * allowed
    shape = allowed.shape if name == "transmat_prior" else allowed.shape[1:]
    if given.shape != shape:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be a number, {UNIT!r} or an array of shape {shape}, as there are "
            f"{allowed.shape[1]} states. Got an array of shape {given.shape}."
        )
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be finite and >= 0, where 0 rules a state out. Got {show(value)} "
            "instead."
        )
    if (given > 0).any():
        positive(owner, name, given[given > 0])  # neither too small nor too large
    return given * allowed if name == "transmat_prior" else given[None]


def _mask(owner: str, mask, n_states: int) -> np.ndarray:
    """Mask of the transitions that are allowed, (n_states, n_states)."""
    if mask is None:
        return np.ones((n_states, n_states), dtype=bool)
    if is_option(mask, LEFT_TO_RIGHT):
        return left_to_right(n_states)
    if is_whole(mask) and int(mask) >= 0:
        return banded(n_states, int(mask))
    try:
        array = np.asarray(mask)
    except ValueError:  # rows of other lengths
        array = np.empty(0)
    whole = array.dtype.kind in "iu" and np.isin(array, (0, 1)).all()
    if array.shape != (n_states, n_states) or not (array.dtype.kind == "b" or whole):
        raise ValueError(
            f"The 'transmat_mask' parameter of {owner} must be None, {LEFT_TO_RIGHT!r}, an int >= 0 (how far a "
            f"transition may lead) or a boolean array of shape ({n_states}, {n_states}). Got {show(mask)} instead."
        )
    return array.astype(bool)
