"""The table of a search, its warnings, and its progress."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import rankdata

from skvbem._arguments import is_whole
from skvbem._compat import IterationReport
from skvbem._progress import LOGGER, Screen, Steps, call_at_work, duration, steps
from skvbem.errors import SearchWarning, warn
from skvbem.evidence import SCORES, EvidenceScorer
from skvbem.search.execution.jobs import Record


def results_table(tried: Sequence[tuple[dict, Record]], names: Sequence[str], log_priors: np.ndarray) -> dict:
    """`cv_results_`: arrays aligned with the candidates, by the names that scikit-learn uses.

    Parameters
    ----------
    tried : sequence of (setting, Record)
    names : sequence of str
        Names of the scores; "score" if there is one.
    log_priors : ndarray of shape (n_candidates,)
    """
    settings, records = [setting for setting, _ in tried], [record for _, record in tried]
    table: dict = {}
    for what, seconds in (("fit", "fit_seconds"), ("score", "score_seconds")):
        times = [getattr(record, seconds) for record in records]
        table[f"mean_{what}_time"] = np.array([fmean(each) for each in times])
        table[f"std_{what}_time"] = np.array([np.std(each) if len(each) > 1 else 0.0 for each in times])
    for name in dict.fromkeys(name for setting in settings for name in setting):
        table[f"param_{name}"] = _column(settings, name)
    table["params"] = settings
    for name in names:
        values = np.array([record.values.get(name, np.nan) for record in records])
        n_splits = max((len(record.splits.get(name, ())) for record in records), default=0)
        splits = np.array([[*record.splits.get(name, ()), *[np.nan] * n_splits][:n_splits] for record in records])
        for k in range(n_splits):
            table[f"split{k}_test_{name}"] = splits[:, k]
        table[f"mean_test_{name}"] = values
        table[f"std_test_{name}"] = splits.std(axis=1) if n_splits else np.zeros(len(values))
        if any(name in record.errors for record in records):
            table[f"standard_error_{name}"] = np.array([record.errors.get(name, np.nan) for record in records])
        table[f"rank_test_{name}"] = ranks(values)
    table["n_free_parameters"] = np.array(
        [-1 if record.n_free_parameters is None else record.n_free_parameters for record in records]
    )
    table["log_prior"] = log_priors
    table["failure"] = np.array([record.failure for record in records], dtype=object)
    table["inference"] = np.array([record.inference for record in records], dtype=object)
    table["doubts"] = np.array(["; ".join(record.doubts) for record in records], dtype=object)
    return table


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks of scores: 1 for the highest, ties sharing the best rank; scores that are not there come last."""
    return rankdata(-np.where(np.isnan(values), -np.inf, values), method="min").astype(np.int32)


def order_of(tried: Sequence[tuple[dict, Record]], values: np.ndarray) -> list[int]:
    """Positions of candidates, best first; of equal scores fewer parameters come first, then the setting's name."""

    def key(k: int):
        value, size = values[k], tried[k][1].n_free_parameters
        return np.inf if np.isnan(value) else -value, np.inf if size is None else size

    ranked = [list(equal) for _, equal in groupby(sorted(range(len(tried)), key=key), key)]
    return [k for equal in ranked for k in (sorted(equal, key=lambda k: describe(tried[k][0])) if equal[1:] else equal)]


def describe(setting: Mapping) -> str:
    """A setting in one line of text."""
    return ", ".join(f"{name}={value}" for name, value in setting.items()) or "as given"


def _column(settings: Sequence[Mapping], name: str) -> np.ma.MaskedArray:
    """Values of a parameter for every candidate, masked where a setting does not give it."""
    values = [setting.get(name) for setting in settings]
    kind: type = object
    if all(isinstance(value, bool) for value in values):
        kind = bool
    elif all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        kind = int
    elif all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        kind = float
    missing = [name not in setting for setting in settings]
    column: np.ma.MaskedArray = np.ma.MaskedArray(np.empty(len(values), dtype=kind), mask=missing)
    for k, value in enumerate(values):
        if name in settings[k]:
            column[k] = value
    return column


def warn_of_failures(tried: Sequence[tuple[dict, Record]], error_score: float, owner: str) -> None:
    """Warn if candidates failed.

    Raises
    ------
    ValueError
        If all did.
    """
    failures = [(setting, record.failure) for setting, record in tried if record.failure]
    if len(failures) == len(tried):
        reasons = dict.fromkeys(failure for _, failure in failures)
        raise ValueError(f"All {len(tried)} candidates of {owner} failed, with these errors:\n" + "\n".join(reasons))
    if failures:
        warn(
            f"{len(failures)} of {len(tried)} candidates failed and have the score {error_score}. The first: "
            f"{describe(failures[0][0])}: {failures[0][1]} See cv_results_['failure'].",
            SearchWarning,
        )


def warn_of_doubts(table: Mapping, best: int) -> None:
    """Warn if scores doubt themselves, above all that of the best candidate."""
    doubted = np.flatnonzero(table["doubts"] != "")
    if len(doubted):
        one = best if table["doubts"][best] else int(doubted[0])
        which = "the best among them" if one == best else "not the best"
        warn(
            f"{len(doubted)} of {len(table['doubts'])} candidates, {which}, have scores that should not be "
            f"trusted. {describe(table['params'][one])}: {table['doubts'][one]} See cv_results_['doubts'].",
            SearchWarning,
        )


def warn_of_inference(inference: np.ndarray, scorers: Mapping) -> None:
    """Warn if bounds of some candidates are looser than those of others, for the family of their q(x)."""
    looser = np.flatnonzero(inference != "exact")
    is_closed = all(
        isinstance(each, EvidenceScorer) and SCORES[each.kind].closes_gap_of_clusters for each in scorers.values()
    )
    if 0 < len(looser) < len(inference) and not is_closed:
        warn(
            f"{len(looser)} of {len(inference)} candidates have bounds by a q(x) in clusters, the others exact ones. "
            "The looser bounds make them look worse. Give all the same 'inference', or take scoring='collapsed', which "
            "closes most of the difference. See cv_results_['inference'].",
            SearchWarning,
        )


def remark_on_result(state: Mapping[str, Any], scorers: Any) -> None:
    """Warn of doubts about scores; say in the log if the best is at the edge of its range, or has states without rows.

    Parameters
    ----------
    state : mapping
        What the search is to publish.
    scorers : mapping
        The scores by name.
    """
    warn_of_doubts(state["cv_results_"], state["best_index_"])
    warn_of_inference(state["cv_results_"]["inference"], scorers)
    log_best_at_edge(state["cv_results_"]["params"], state["best_params_"])
    log_empty_states(state.get("best_estimator_"))


def warn_of_unfinished(stopped_by: str, n_tried: int, n_settings: str) -> None:
    """Warn that probabilities of a search that was stopped leave out all candidates that it did not reach."""
    reason = "its 'time_budget' passed" if stopped_by == "time_budget" else "a callback stopped it"
    warn(
        f"The search ended after {n_tried} of {n_settings}, since {reason}. "
        "Its weights are over these alone, and probabilities of edges are NaN. Let it end before you read them.",
        SearchWarning,
    )


def log_best_at_edge(settings: Sequence[Mapping], best: Mapping) -> None:
    """Say in the log if the best is at the upper edge of a range of numbers, of three or more, that were tried."""
    for name, value in best.items():
        each = [setting.get(name) for setting in settings]
        numbers = sorted({number for number in map(_number_of, each) if number is not None})
        if len(numbers) > 2 and _number_of(value) == numbers[-1]:
            LOGGER.warning(
                "%s is the largest number tried of %r, and the best: more may be better. Widen the range of the "
                "search.",
                numbers[-1],
                name,
            )


def _number_of(value) -> int | None:
    """The whole number that a setting gives, also as that of the states of a single latent; None if it gives none."""
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    return int(value) if is_whole(value) else None


def log_empty_states(best: Any) -> None:
    """Say in the log if the fit of the best estimator has states that no row is in."""
    for latent, states in (getattr(best, "latent_states_", None) or {}).items():
        if states.empty:
            LOGGER.warning(
                "The best has %d states of %r, and its fit leaves %d (%s) without rows: %d are in use there. Draws of "
                "all parameters may have rows in them: states_in_use(X) tells how probably.",
                len(states.mass),
                latent,
                len(states.empty),
                ", ".join(map(str, states.empty)),
                len(states.in_use),
            )


class Progress:
    """Tells callbacks and, if asked to, the screen how far a search is.

    Parameters
    ----------
    owner : str
    verbose : int
        1 for lines now and then, 2 for one of every candidate too.
    report : IterationReport
    """

    def __init__(self, owner: str, verbose: int, report: IterationReport):
        self._owner, self._verbose, self._report = owner, verbose, report

    def tell(self, text: str) -> None:
        """Print a line, if the screen is told anything."""
        if self._verbose:
            print(f"[{self._owner}] {text}", flush=True)

    @contextmanager
    def stage(self, name: str, ranking: str, n: int | None, seconds: float | None = None) -> Iterator[Stage]:
        """A stage, to be called for every candidate; its end is told too.

        Parameters
        ----------
        name : str
        ranking : str
            The score whose best value is told.
        n : int or None
            Candidates there will be at most, if that is known.
        seconds : float or None
            After which the stage ends.
        """
        report = self._report.stage(name, "candidate", n)
        with steps(n, f"candidates of the {name}") as count:
            stage = Stage(f"[{self._owner}] {name}: ", self._verbose, report, ranking, n, seconds, count)
            call = call_at_work()
            if call is not None:
                call.on_tick = stage.tick
                stage.begin()
            yield stage
        if call is not None:
            call.on_tick = None
        stage.close()
        report.close()


class Stage:
    """One stage of a search, see `Progress.stage`."""

    def __init__(
        self,
        head: str,
        verbose: int,
        report: IterationReport,
        ranking: str,
        n: int | None,
        seconds: float | None,
        count: Steps,
    ):
        self._screen, self._steps = Screen(head), count
        self._verbose, self._report, self._ranking = verbose, report, ranking
        self._n, self._limit = n, seconds
        self._n_done, self._n_new, self._best = 0, 0, -np.inf
        self._began = self._told = time.monotonic()

    def __call__(self, setting: Mapping, record: Record, is_new: bool = True) -> bool:
        """Note one more candidate, new or known from before; true if a callback asks to stop."""
        self._n_done += 1
        self._n_new += is_new
        value = record.values.get(self._ranking, np.nan)
        self._best = max(self._best, value) if value == value else self._best
        if self._verbose > 1:
            outcome = f"failed: {record.failure.splitlines()[0]}" if record.failure else f"{value:.4f}"
            self._screen.tell(
                f"{self._count()}, {describe(setting)}: {outcome}{'' if is_new else ' (known from before)'}"
            )
        self.tick()
        self._steps()
        return self._report()

    def begin(self) -> None:
        """Tell that the stage has begun, unless every candidate has a line."""
        if self._verbose == 1:
            self._screen.write(f"{self._count()} candidates")

    def tick(self) -> None:
        """Tell how far the stage is, if it was not told lately."""
        now = time.monotonic()
        passed = now - self._began
        if self._verbose and self._n_done != self._n and now - self._told > self._screen.seconds_between(passed):
            self._told = now
            self._screen.write(f"{self._so_far()}, {self._left(passed)}")

    def expect(self, n_more: int) -> None:
        """Expect so many candidates more, where their number was not known."""
        self._n = (self._n or 0) + n_more
        self._steps.n = self._n

    def close(self) -> None:
        """Tell that the stage is over."""
        if self._verbose:
            self._screen.tell(f"{self._so_far()}, done in {duration(time.monotonic() - self._began)}")

    def _so_far(self) -> str:
        known = self._n_done - self._n_new
        best = f", best {self._best:.4f}" if self._best > -np.inf else ""
        return f"{self._count()} candidates{f' ({known} known from before)' if known else ''}{best}"

    def _count(self) -> str:
        return f"{self._n_done}" if self._n is None else f"{self._n_done} of {self._n}"

    def _left(self, passed: float) -> str:
        """The time left for a stage, from what new candidates took; the time passed if their number is not known."""
        limits = [] if self._limit is None else [max(self._limit - passed, 0.0)]
        if self._n is not None and self._n_new:
            limits.append(passed / self._n_new * max(self._n - self._n_done, 0))
        return f"about {duration(min(limits))} left" if limits else f"{duration(passed)} so far"
