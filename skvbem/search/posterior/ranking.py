r"""The posterior over the candidates of a search, where it is one: from evidences, never from bounds.

.. math:: p(m \mid y) \propto p(m)\, p(y \mid m)  \qquad \text{[Beal (2.1)]}

A bound in place of the evidence charges what is hidden for more than it costs, the more the more there is of it; shares
in proportion to bounds are weights, no probabilities, and are called so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp

from skvbem._progress import is_over
from skvbem.errors import SearchWarning, warn
from skvbem.evidence import SCORES, EvidenceScorer, scorer
from skvbem.search.execution.jobs import HeldOutJob, Job, Record
from skvbem.search.execution.runner import Runner
from skvbem.search.families.decomposable import rest
from skvbem.search.families.hidden_scale import PosteriorOverGraphs
from skvbem.search.posterior.rescoring import probabilities, rescored_posterior
from skvbem.search.posterior.structure_chains import ChainPosterior, ChainsImpossible, posterior_by_chains
from skvbem.search.reporting import order_of
from skvbem.search.tuning import TUNING
from skvbem.spaces.settings import value_key

#: In place of the name of a score: evidences, or chains over structures, of as many candidates as may matter.
EVIDENCE = "evidence"
# Scores before evidences are sampled: what ranks candidates, without an error, and sums of few terms, which are exact.
_CHEAP = {"ranks": scorer("linear_response"), "exact": scorer("exact", max_terms=TUNING.max_terms)}
# Samplers of evidences, the cheapest first: each takes what the one before leaves too uncertain.
_SAMPLERS = (
    scorer("bridge"),
    scorer("annealed_bridge"),
    scorer(
        "auto",
        error=TUNING.evidence_error,
        n_draws=TUNING.n_evidence_draws,
        n_particles=TUNING.n_particles,
        max_particles=TUNING.max_particles,
    ),
)

Tried = list[tuple[dict, Record]]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Candidates in order, with what is known of their probabilities.

    Parameters
    ----------
    tried : list of (setting, Record)
        With further scores, where candidates were scored again.
    columns : list of str
        Names of scores.
    order : list of int
        Positions, the best first.
    values : ndarray of shape (n_candidates,)
        The score that ranks; NaN where a candidate has none.
    weights : ndarray of shape (n_candidates,)
        In proportion to the prior times exp of the score.
    log_mean : float
        ln of the mean of exp of the score under the prior, nats.
    probabilities, errors : ndarray of shape (n_candidates,) or None
        The posterior and its standard errors, where there is one.
    is_rescored : bool
        Whether ranks are by more than the score of the search.
    """

    tried: Tried
    columns: list[str]
    order: list[int]
    values: np.ndarray
    weights: np.ndarray
    log_mean: float
    probabilities: np.ndarray | None = None
    errors: np.ndarray | None = None
    is_rescored: bool = False


def weights_of(values: np.ndarray, log_priors: np.ndarray) -> tuple[np.ndarray, float]:
    """Shares in proportion to p(m) times exp of a score [Beal (2.1)], and ln of the sum of these.

    Of evidences that is the posterior, and ln p(y).

    Parameters
    ----------
    values : ndarray of shape (n,)
        NaN and -inf for candidates without a score: they get no share.
    log_priors : ndarray of shape (n,)
        Up to a constant; made to sum to one over the candidates that have a score.
    """
    scored = ~np.isnan(values) & (values > -np.inf)
    if not scored.any():
        return np.full(len(values), np.nan), np.nan
    joint = np.where(scored, values, -np.inf) + log_priors - logsumexp(log_priors[scored])
    total = float(logsumexp(joint))
    return np.exp(joint - total), total


class Ranker:
    """Ranks the candidates that a search has tried.

    Parameters
    ----------
    job : Job
    ranking : str
        The score that ranks, one of those of the job.
    rescoring : EvidenceScorer, "evidence" or None
        What scores candidates again.
    n_rescored : int
        Most of them.
    stage : callable of (str, int or None)
        A context that tells of candidates scored again, from the name of the score and their number.
    runner : mapping
        Options of the `Runner` that scores again.
    rng : numpy.random.Generator

    Attributes
    ----------
    was_cut : bool
        True if time ended before all that were to be scored again were.
    """

    def __init__(
        self,
        job: Job,
        ranking: str,
        rescoring: Any,
        n_rescored: int,
        stage: Callable[[str, int | None], AbstractContextManager],
        runner: Callable[[EvidenceScorer], Mapping[str, Any]],
        rng: np.random.Generator,
    ):
        self.job, self.ranking, self.rescoring, self.n_rescored = job, ranking, rescoring, n_rescored
        self._stage, self.runner, self._rng = stage, runner, rng
        self.was_cut = False

    def ranked(self, tried: Tried, log_priors: np.ndarray, is_all: bool, graphs: PosteriorOverGraphs | None) -> Ranking:
        """The candidates in order.

        Parameters
        ----------
        tried : list of (setting, Record)
        log_priors : ndarray of shape (n_candidates,)
        is_all : bool
            Whether they are the whole space.
        graphs : PosteriorOverGraphs or None
            The posterior over all graphs of the space, where scores of complete rows have one.
        """
        values = np.array([record.values[self.ranking] for _, record in tried])
        columns = list(self.job.scorers)
        if isinstance(self.job, HeldOutJob):
            log_priors = np.zeros(len(tried))
        order = order_of(tried, values + log_priors)
        ranking = Ranking(tried, columns, order, values, *weights_of(values, log_priors))
        if isinstance(self.job, HeldOutJob):
            return ranking
        if isinstance(self.rescoring, EvidenceScorer):
            return self._scored_again(ranking, log_priors)
        if self._has_closed_form(tried):
            if graphs is not None:
                return self._among_all(ranking, graphs)
            return self._of_evidences(ranking, self.ranking, log_priors) if is_all else ranking
        if _is_evidence(self.job.scorers[self.ranking]):
            return self._of_evidences(ranking, self.ranking, log_priors)
        return self._with_posterior(ranking, log_priors) if self.rescoring == EVIDENCE else ranking

    def _has_closed_form(self, tried: Tried) -> bool:
        """True if scores are the evidence itself, a sum over families of complete rows."""
        given = self.job.scorers[self.ranking]
        if not isinstance(given, EvidenceScorer) or not SCORES[given.kind].exact_if_complete:
            return False
        # graphs of one type share the reason why scores are no such sums
        kinds: dict[tuple, Mapping] = {}
        for setting, _ in tried:
            kind = rest(setting), type(setting.get("structure")), value_key(setting.get("latents"))
            kinds.setdefault(kind, setting)
        try:
            return all(self.job.family_scores(setting, self.ranking).are_evidences for setting in kinds.values())
        except ValueError:  # it is no such sum, or the candidate cannot be fitted
            return False

    def _among_all(self, ranking: Ranking, graphs: PosteriorOverGraphs) -> Ranking:
        """The ranking with probabilities of candidates among all graphs of the space, tried or not."""
        dags = [self.job.graph(setting)[0] for setting, _ in ranking.tried]  # type: ignore[attr-defined]
        best = ranking.order[0]
        return _with(
            ranking,
            log_mean=graphs.log_evidence(dags[best], ranking.values[best]),
            probabilities=np.exp([graphs.log_probability(dag) for dag in dags]),
            errors=np.zeros(len(dags)),
        )

    def _of_evidences(self, ranking: Ranking, column: str, log_priors: np.ndarray) -> Ranking:
        """The ranking with the posterior that evidences make, and their errors."""
        errors = np.array([record.errors.get(column, 0.0) for _, record in ranking.tried])
        probability, errors = probabilities(ranking.values, _finite(errors), log_priors, self._rng)
        return _with(ranking, probabilities=probability, errors=errors)

    def _scored_again(self, ranking: Ranking, log_priors: np.ndarray) -> Ranking:
        """The best candidates by a further score, ahead of all others; the posterior is over them alone."""
        best = [k for k in ranking.order[: self.n_rescored] if not np.isnan(ranking.values[k])]
        column = self.rescoring.kind
        tried = self._with_scores(ranking.tried, best, column, self.rescoring)
        values = np.array([record.values.get(column, np.nan) for _, record in tried])
        again = order_of([tried[k] for k in best], (values + log_priors)[best])
        rest = [k for k in ranking.order if k not in set(best)]
        order = [best[k] for k in again] + rest
        columns = [*ranking.columns, column]
        new = Ranking(tried, columns, order, values, *weights_of(values, log_priors), is_rescored=bool(best))
        return self._of_evidences(new, column, log_priors) if _is_evidence(self.rescoring) else new

    def _with_scores(self, tried: Tried, positions: Sequence[int], column: str, exact: EvidenceScorer) -> Tried:
        """The records with a further score for those at some positions."""
        with (
            self._stage(column, len(positions)) as tell,
            Runner(self.job.scored_by({column: exact}), **self.runner(exact), tell=tell) as runner,
        ):
            return _joined(tried, positions, runner([tried[k][0] for k in positions]))

    def _with_posterior(self, ranking: Ranking, log_priors: np.ndarray) -> Ranking:
        """The ranking by the posterior: of chains over structures, or of the evidences of those that may matter."""
        scored = np.isfinite(ranking.values) & np.isfinite(log_priors)
        probability, errors = scored.astype(float), np.zeros(len(scored))
        if scored.sum() == 1:
            return self._by_probability(ranking, probability, errors)
        with self._stage(EVIDENCE, None) as tell:
            met = self._visited(ranking, log_priors, scored)
            if met is not None and not met.is_stuck:
                probability[scored], errors[scored] = met.probabilities, met.errors
                return self._by_probability(ranking, probability, errors)
            asked = scored.copy()
            if met is not None:
                asked[scored] = met.probabilities >= TUNING.unlikely
            return self._sampled(ranking, log_priors, asked, tell)

    def _visited(self, ranking: Ranking, log_priors: np.ndarray, scored: np.ndarray) -> ChainPosterior | None:
        """The posterior by chains over structures, None where these are not possible."""
        settings = [setting for (setting, _), is_scored in zip(ranking.tried, scored) if is_scored]
        try:
            return posterior_by_chains(self.job, settings, ranking.values[scored], log_priors[scored], self._rng)
        except ChainsImpossible:
            return None

    def _sampled(self, ranking: Ranking, log_priors: np.ndarray, asked: np.ndarray, tell) -> Ranking:
        """The ranking by the posterior that evidences sampled one by one make."""
        sizes = np.array([record.n_free_parameters or 0 for _, record in ranking.tried], dtype=float)
        samples = _Samples(self, ranking.tried, tell)
        scores = samples.ranked_by_responses(np.where(asked, ranking.values, np.nan), sizes)
        samplers = [partial(samples.evidences_by, step) for step in range(len(_SAMPLERS))]
        posterior = rescored_posterior(scores, sizes, log_priors, samplers, self._rng, self.n_rescored)
        tried = samples.tried
        if posterior.n_unreached:
            self.was_cut = True
            warn(
                f"The 'time_budget' ended before {posterior.n_unreached} candidates that may matter were scored again. "
                "Their probabilities are guesses by their scores, and as uncertain as their errors say.",
                SearchWarning,
            )
        if np.isnan(posterior.probabilities).any():
            failure = next(record.failure for _, record in tried if record.failure)
            warn(
                f"The evidence of no candidate could be sampled, so that there is no 'structure_posterior_': "
                f"{failure.splitlines()[0]} Set rescoring=False for weights by the score alone.",
                SearchWarning,
            )
            return ranking
        tried = _without_idle_doubts(ranking.tried, tried, posterior.probabilities + posterior.errors)
        values = np.array([record.values.get(EVIDENCE, np.nan) for _, record in tried])
        new = _with(ranking, tried=tried, columns=[*ranking.columns, EVIDENCE], values=values)
        return self._by_probability(new, posterior.probabilities, posterior.errors)

    def _by_probability(self, ranking: Ranking, probability: np.ndarray, errors: np.ndarray) -> Ranking:
        order = sorted(
            ranking.order, key=lambda k: -round(float(probability[k]) / TUNING.negligible)
        )  # those that are equal as they were
        return _with(ranking, order=order, probabilities=probability, errors=errors, is_rescored=True)


class _Samples:
    """Evidences of candidates as they are sampled.

    Parameters
    ----------
    ranker : Ranker
    tried : list of (setting, Record)
    tell : callable
        The stage, told of each.
    """

    def __init__(self, ranker: Ranker, tried: Tried, tell: Any):
        self.ranker, self.before, self.tell = ranker, tried, tell
        self.tried = list(tried)
        self.exact: dict[int, float] = {}

    def _records(self, scorers: Mapping[str, EvidenceScorer], positions: Sequence[int]) -> list[Record | None]:
        """The records by scores; None of those for which there was no time."""
        self.tell.expect(len(positions))
        job = self.ranker.job.scored_by(scorers)
        with Runner(job, **self.ranker.runner(next(iter(scorers.values()))), tell=self.tell) as runner:
            return runner([self.tried[k][0] for k in positions])

    def ranked_by_responses(self, scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The score of linear response where all have one, and few enough are to be ranked; else scores as they are."""
        ranked = np.flatnonzero(np.isfinite(scores))
        if not 1 < len(ranked) <= self.ranker.n_rescored or sizes[ranked].max() > TUNING.max_responses or is_over():
            return scores
        records = [record or Record({}) for record in self._records(_CHEAP, ranked.tolist())]
        exact = {int(k): record.values.get("exact", np.nan) for k, record in zip(ranked, records)}
        self.exact = {k: value for k, value in exact.items() if np.isfinite(value)}
        values = np.array([record.values.get("ranks", np.nan) for record in records])
        if not np.isfinite(values).all():
            return scores
        better = scores.copy()
        better[ranked] = values
        return better

    def evidences_by(self, step: int, positions: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Evidences by a sampler, or the sum that is known, their standard errors, and whether there was time for them.

        Each doubt makes the error as much wider as it is, but of the last sampler, whose doubts are warned of.
        """
        summed = {k: Record({EVIDENCE: self.exact[k]}, {EVIDENCE: 0.0}) for k in positions if k in self.exact}
        sampled = [k for k in positions if k not in summed]
        records = dict(zip(sampled, self._records({EVIDENCE: _SAMPLERS[step]}, sampled))) if sampled else {}
        is_last = step + 1 == len(_SAMPLERS)
        values, errors, is_reached = np.full(len(positions), np.nan), np.zeros(len(positions)), []
        for at, k in enumerate(positions):
            record = summed.get(k) or records[k]
            is_reached.append(record is not None)
            if record is None:
                continue
            values[at], errors[at] = record.values[EVIDENCE], record.errors.get(EVIDENCE, np.nan)
            if not is_last:
                if record.doubts:
                    errors[at] = max((1 + len(record.doubts)) * errors[at], TUNING.one_nat)
                record = _with_doubts(record, ())
            if is_last or np.isfinite(values[at]):
                setting, old = self.before[k]
                self.tried[k] = (setting, old.joined(record))
        return values, _finite(errors), np.array(is_reached)


def _with(ranking: Ranking, **changes) -> Ranking:
    return Ranking(**{**vars(ranking), **changes})


def _is_evidence(score: Callable) -> bool:
    """True if a score is the evidence, up to a standard error that it states."""
    return isinstance(score, EvidenceScorer) and SCORES[score.kind].is_evidence


def _finite(errors: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(errors), errors, TUNING.unknown_error)


def _joined(tried: Tried, positions: Sequence[int], records: Sequence[Record | None]) -> Tried:
    """Records with those of a further score."""
    joined = list(tried)
    for k, record in zip(positions, records):
        if record is not None:
            joined[k] = (tried[k][0], tried[k][1].joined(record))
    return joined


def _without_idle_doubts(before: Tried, tried: Tried, probable: np.ndarray) -> Tried:
    """Records without what a sampler doubts of candidates that are improbable even so."""
    return [
        (setting, record if share > TUNING.doubtful else _with_doubts(record, old.doubts))
        for (setting, record), (_, old), share in zip(tried, before, probable)
    ]


def _with_doubts(record: Record, doubts: tuple[str, ...]) -> Record:
    return Record(**{**vars(record), "doubts": doubts})
