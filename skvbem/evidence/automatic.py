r"""The recommended score: the cheapest sampler that another one, which shares nothing with it, confirms.

Importance sampling about Gibbs draws is the cheapest by far, and knows when its weights have a tail too heavy for their
mean; where they may have no variance its proposal is made of more Gibbs draws. But it sees no hill of the posterior
that neither fits nor Gibbs chains have met. A population over growing data begins at the prior and knows of no fit.
Where both are sure and agree, the first is believed. Where weights vary much even about more Gibbs draws, their tail is
heavy: runs that did not meet the largest of them look sure, are too low, and so small a standard error that others
contradict them is asked of a population, which then is the answer. Where draws are in doubt and a small population is
lost on its way, annealed importance sampling is asked, and a larger population, which may then be less exact, to
confirm it: chains far below another sure answer are not believed. Where all that leads nowhere, longer runs are asked
until two that do not doubt themselves agree.

All of them estimate the evidence itself without bias, so that by Markov's inequality

.. math:: P(\ln \hat Z > \ln Z + c) \le e^{-c} :

a sampler is rarely much too high, and often too low. Where nothing agrees the highest value is the best guess.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skvbem._numerics import log_sum_exp
from skvbem.evidence.ais import anchored_ais
from skvbem.evidence.base import Evidence
from skvbem.evidence.chains import check_at_least, check_time_budget
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.exact import exact
from skvbem.evidence.growing_data import MIN_LINES, Population, check_error, grown, of_populations
from skvbem.evidence.importance import are_nearly_equal, importance, importance_gibbs

KIND = "auto"
_IMPORTANCE, _POPULATION, _CHAINS = "importance_gibbs", "smc_data", "ais"
# So many standard errors of their difference two values may be apart without a word, and before they disagree.
_NEAR, _FAR = 2.0, 2.5
# A witness whose own error is larger than this, nats, confirms nothing.
_VAGUE = 0.6
# The error, nats, that makes a witness sharp enough.
_SHARP = 0.25
# Weights whose tail has a Pareto shape of 0.5 have no variance, so that their standard error is no estimate. The shape
# that some hundred of the largest weights show is good to 0.1: above this it may be one.
_NO_VARIANCE = 0.4
# A standard error below this is of rounding.
_CERTAIN = 1e-8
# Draws for each Gibbs draw that the first proposal is made of; how many times larger further runs are, and may become.
_DRAWS_PER_COMPLETION, _LONGER, _LONGEST = 16, 4, 16
# Of a third witness: draws of the first for each of its chains, the fewest chains, and steps.
_DRAWS_PER_CHAIN, _FEWEST_CHAINS, _N_STEPS = 20, 8, 256
# A population that resamples for almost every unit of data comes from a prior too far away for any affordable size.
_FEWEST_UNITS = 1.5


def auto(
    evaluation: Evaluation,
    *,
    error: float = 0.1,
    exact_terms: int = 2**16,
    n_draws: int = 4096,
    n_particles: int = 1024,
    max_particles: int = 32_768,
    time_budget: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Evidence:
    """Log evidence by the cheapest sampler that is right here: exact if that is cheap, else confirmed by another one.

    Parameters
    ----------
    evaluation : Evaluation
        Of weights that are no whole numbers the evidence is that of `importance`, which nothing confirms.
    error : float, default=0.1
        Standard error to be reached, nats.
    exact_terms : int, default=65536
        Most terms of an enumeration, which is tried before anything is drawn; 0 for none.
    n_draws : int, default=4096
        Of the first run of `importance_gibbs`; later ones take up to 16 times as many.
    n_particles, max_particles : int, default=1024, 32768
        Of the first and the largest population of `growing_smc`.
    time_budget : float, optional
        Seconds after which no further sampler is asked, and those at work begin no further batch.
    progress : callable of (int, int), optional
        Told how many samplers have answered, and of how many as far as is known.

    Returns
    -------
    Evidence
        `details["asked"]` has the evidence by every sampler asked, by name in the order asked, None of a population
        that was given up; `details["taken"]` names those that the value is of.

    Raises
    ------
    ValueError
        If an option is not what it must be.
    """
    check_error(KIND, error)
    check_at_least(
        KIND,
        exact_terms=(exact_terms, 0),
        n_draws=(n_draws, 2),
        n_particles=(n_particles, 2),
        max_particles=(max_particles, 2),
    )
    check_time_budget(time_budget)
    inquiry = _Inquiry(evaluation, error, time_budget, progress)
    if not evaluation.data.has_whole_weights:
        return inquiry.answer(*_of_fractional_weights(inquiry, n_draws))
    known = _by_enumeration(evaluation, exact_terms)
    if known is not None:
        inquiry.note("exact", known)
        return inquiry.answer(known, ["exact"])
    return inquiry.answer(*_by_samplers(inquiry, n_draws, n_particles, max_particles))


def _by_enumeration(evaluation: Evaluation, exact_terms: int) -> Evidence | None:
    """The exact evidence, where it has so few terms and a closed form at all."""
    if not exact_terms or evaluation.capabilities.enumeration is None:
        return None
    try:
        return exact(evaluation, max_terms=exact_terms)
    except ValueError:  # too many terms, or no closed form of complete rows: full Gaussians with missing cells
        return None


def _of_fractional_weights(inquiry: _Inquiry, n_draws: int) -> tuple[Evidence, list[str]]:
    """What `importance` says, of more draws if its error is too large."""
    evidence = inquiry.ask("importance", importance, n_draws=n_draws)
    assert evidence is not None
    if not evidence.doubts and _error(evidence) > inquiry.error:
        more = inquiry.ask("importance", importance, n_draws=_enough(evidence, n_draws, inquiry.error))
        evidence = more or evidence
    return evidence, [inquiry.name_of(evidence)]


_Answer = tuple[Evidence, list[str], list[str]]


def _by_samplers(inquiry: _Inquiry, n_draws: int, n_particles: int, max_particles: int) -> _Answer:
    """A value, the names of the samplers that it is of, and what is to be doubted in it."""
    case = _Case(inquiry, n_draws, n_particles, max_particles)
    at_first = case.alone, case.by_population, case.by_second_run
    for step in (*at_first, case.by_chains, case.by_large_population, case.by_longest_runs):
        answer = step()
        if answer is not None:
            return answer
    return inquiry.unconfirmed()


class _Case:
    """One evidence, and what is known of it so far; each step says the answer, or None where it leads to none.

    Parameters
    ----------
    inquiry : _Inquiry
    n_draws, n_particles, max_particles : int
        As of `auto`.
    """

    def __init__(self, inquiry: _Inquiry, n_draws: int, n_particles: int, max_particles: int):
        self.inquiry, self.n_draws = inquiry, n_draws
        self.n_particles, self.max_particles = min(n_particles, max_particles), max_particles
        self.n_completions = max(n_draws // _DRAWS_PER_COMPLETION, _DRAWS_PER_COMPLETION)
        first = inquiry.importance(n_draws, self.n_completions)
        assert first is not None
        self.first, self.is_heavy, self.is_hopeless, self.is_largest = first, False, False, False

    def alone(self) -> _Answer | None:
        """Importance sampling, where no error is left; else whether its weights have a heavy tail comes to light."""
        if _is_certain(self.first):
            return self.first, [self.inquiry.name_of(self.first)], []
        if _has_no_variance(self.first):
            self.n_completions *= _LONGER
            self.first = self.inquiry.importance(self.n_draws, self.n_completions) or self.first
            self.is_heavy = not are_nearly_equal(self.first)  # whatever the shape of their tail looks like this time
        return None

    def by_population(self) -> _Answer | None:
        """Importance sampling that a small population confirms; a population of any size, where its tail is heavy."""
        largest = self.max_particles if self.is_heavy else self.n_particles
        population, self.is_hopeless = self.inquiry.population(self.n_particles, largest, self.inquiry.error)
        if population is None:
            return None
        self.is_largest = self.is_heavy
        if self.is_heavy:
            return self._answered_by(population)
        return self._confirmed_by(population, _NEAR)

    def by_second_run(self) -> _Answer | None:
        """Importance sampling that another run of it confirms, where no population of any affordable size would."""
        if _is_doubted(self.first) or not self.is_hopeless:
            return None
        second = self.inquiry.importance(self.n_draws, 2 * self.n_completions)
        if second is None or not _agree_undoubted(self.first, second):
            return None
        return self.inquiry.refined([self.first, second], [], self.n_completions)

    def by_chains(self) -> _Answer | None:
        """Annealed chains that a population confirms, where Gibbs draws are in doubt and a small population gave up."""
        gave_up = self.inquiry.asked.get(_POPULATION, self.first) is None
        if not gave_up or not _is_doubted(self.first) or self.n_particles >= self.max_particles:
            return None
        chains = self.inquiry.chains(self.n_draws, _N_STEPS)
        if chains is not None and (_is_doubted(chains) or _error(chains) > self.inquiry.error):
            chains = self.inquiry.chains(self.n_draws, _LONGER * _N_STEPS)
        if chains is None or _is_doubted(chains) or _error(chains) > max(self.inquiry.error, _SHARP):
            return None
        n_particles = min(_LONGER * self.n_particles, self.max_particles)
        witness, _ = self.inquiry.population(n_particles, n_particles, self.inquiry.error)
        if witness is None or not _agree_undoubted(chains, witness) or self.inquiry.is_below_another(chains):
            return None
        return _widened(chains, [witness]), [self.inquiry.name_of(chains)], []

    def by_large_population(self) -> _Answer | None:
        """What a larger population confirms, or says itself where importance sampling is not to be believed."""
        if self._asks_no_larger:
            return None
        is_believed = self._is_believed
        wanted = max(self.inquiry.error, _SHARP) if is_believed else self.inquiry.error
        n_particles = min(_LONGER * self.n_particles, self.max_particles)
        large, _ = self.inquiry.population(n_particles, self.max_particles, wanted)
        if large is None or _is_doubted(large) or _error(large) > wanted:
            return None
        confirmed = None if self.is_heavy else self._confirmed_by(large)
        return confirmed if confirmed is not None or is_believed else self._answered_by(large)

    def by_longest_runs(self) -> _Answer | None:
        """What two samplers without doubts agree on, once longer runs, and annealed chains, were asked."""
        self.inquiry.importance(_LONGER * self.n_draws, _LONGER * self.n_completions)
        confirmed = self.inquiry.confirmed()
        if confirmed is None or _error(confirmed[0]) > self.inquiry.error:
            if _CHAINS not in self.inquiry.asked:
                self.inquiry.chains(self.n_draws, _N_STEPS)
            confirmed = self.inquiry.confirmed() or confirmed
        return confirmed

    @property
    def _is_believed(self) -> bool:
        """Whether importance sampling is, if others confirm it."""
        return not (self.is_heavy or _is_doubted(self.first))

    @property
    def _asks_no_larger(self) -> bool:
        """Whether no larger population than those asked is of any use."""
        return self.is_hopeless or self.is_largest or self.n_particles >= self.max_particles

    def _confirmed_by(self, population: Evidence, *near: float) -> _Answer | None:
        if not _agree_undoubted(self.first, population, *near):
            return None
        return self.inquiry.refined([self.first], [population], self.n_completions)

    def _answered_by(self, population: Evidence) -> _Answer | None:
        if not self.inquiry.is_answered_by(population, self.first):
            return None
        return population, [self.inquiry.name_of(population)], []


class _Inquiry:
    """Samplers asked about one evidence, one after another, each with random streams of its own."""

    def __init__(self, evaluation, error, time_budget, progress):
        self.evaluation, self.error, self._progress = evaluation, error, progress
        self._ends = None if time_budget is None else time.monotonic() + time_budget
        self.asked: dict[str, Evidence | None] = {}

    def note(self, name: str, evidence: Evidence | None) -> None:
        """Keep what a sampler said, under its name, numbered if it was asked before."""
        n_before = sum(each.split()[0] == name for each in self.asked)
        self.asked[f"{name} {n_before + 1}" if n_before else name] = evidence

    def name_of(self, evidence: Evidence) -> str:
        """The name that an answer is kept under."""
        return next(name for name, each in self.asked.items() if each is evidence)

    def _begin(self) -> tuple[Evaluation, float | None] | None:
        """An evaluation with random streams of its own, and the seconds left; None if there are none."""
        left = None if self._ends is None else max(self._ends - time.monotonic(), 0.0)
        n = len(self.asked)
        if n and left == 0.0:
            return None
        if n and self._progress is not None:
            self._progress(n, n + 1)
        return (self.evaluation.reseeded(n) if n else self.evaluation), left

    def ask(self, name: str, score: Callable[..., Evidence], **options) -> Evidence | None:
        """What a sampler says; None if time is up."""
        begun = self._begin()
        if begun is None:
            return None
        evidence = score(begun[0], time_budget=begun[1], **options)
        self.note(name, evidence)
        return evidence

    def importance(self, n_draws: int, n_completions: int) -> Evidence | None:
        """What importance sampling about Gibbs draws says; None if time is up."""
        return self.ask(_IMPORTANCE, importance_gibbs, n_draws=n_draws, n_completions=n_completions)

    def population(self, n_particles: int, max_particles: int, error: float) -> tuple[Evidence | None, bool]:
        """What populations over growing data say, None if the first was given up; whether larger ones are no use."""
        begun = self._begin()
        if begun is None:
            return None, False
        least = min(MIN_LINES, n_particles)
        populations = grown(begun[0], n_particles, error, max_particles, begun[1], fewest_lines=least)
        complete = [each for each in populations if each.is_complete]
        evidence = of_populations(self.evaluation, complete) if complete else None
        self.note(_POPULATION, evidence)
        return evidence, _is_hopeless(populations[-1])

    def chains(self, n_draws: int, n_steps: int) -> Evidence | None:
        """What annealed chains say; None if time is up."""
        n_chains = max(n_draws // _DRAWS_PER_CHAIN, _FEWEST_CHAINS)
        return self.ask(_CHAINS, anchored_ais, n_chains=n_chains, n_steps=n_steps)

    @property
    def answers(self) -> list[Evidence]:
        """What samplers said that said anything."""
        return [each for each in self.asked.values() if each is not None]

    def refined(self, taken: list[Evidence], witnesses: list[Evidence], n_completions: int) -> _Answer:
        """What importance sampling said and others confirmed, with more draws if its error is too large."""
        evidence = _pooled(taken)
        if _error(evidence) > self.error:
            enough = _enough(evidence, sum(len(each.details["log_weights"]) for each in taken), self.error)
            more = self.importance(enough, 2 * n_completions)
            if more is not None and not _is_doubted(more) and all(_agree(more, each) for each in (*taken, *witnesses)):
                taken = [*taken, more]
                evidence = _pooled(taken)
        return _widened(evidence, witnesses or taken), [self.name_of(each) for each in taken], []

    @property
    def sure(self) -> list[Evidence]:
        """The answers that do not doubt themselves, of the smallest error first, those of heavy tails last."""
        undoubted = (each for each in self.answers if not _is_doubted(each))
        return sorted(undoubted, key=lambda each: (_has_no_variance(each), _error(each)))

    def is_answered_by(self, population: Evidence, first: Evidence) -> bool:
        """Whether a population is as sure as was wanted, and no sure answer is far above it, nor `first`."""
        is_sure = not _is_doubted(population) and _error(population) <= self.error
        return is_sure and not self.is_below_another(population) and not _is_above(first, population)

    def is_below_another(self, evidence: Evidence) -> bool:
        """Whether a sure answer lies so far above one that errors do not explain it."""
        return any(_is_above(each, evidence) for each in self.sure)

    def confirmed(self) -> _Answer | None:
        """The surest of the answers that another kind of sampler, or a run of its own kind, confirms; None if none is.

        Answers that doubt themselves confirm nothing, and no undoubted one may lie far above.
        """
        for evidence in self.sure:
            backers = [each for each in self.sure if each is not evidence and _agree(evidence, each)]
            if backers and not self.is_below_another(evidence):
                return _widened(evidence, backers), [self.name_of(evidence)], []
        return None

    def unconfirmed(self) -> _Answer:
        """The highest of the answers, as uncertain as they are far apart, and a doubt that says so."""
        evidence = max(self.sure or self.answers, key=lambda each: each.value)
        spread = float(np.std([each.value for each in self.answers]))
        said = ", ".join(f"{name} {_said(each)}" for name, each in self.asked.items())
        doubt = (
            f"{KIND}: no two samplers that do not doubt themselves agree ({said}). The value is the highest of them, "
            "and not to be trusted. Take more 'n_draws' and 'max_particles'."
        )
        return replace(evidence, standard_error=max(_error(evidence), spread)), [self.name_of(evidence)], [doubt]

    def answer(self, evidence: Evidence, taken: Sequence[str], doubts: Sequence[str] | None = None) -> Evidence:
        """The evidence, with what was asked; what the sampler doubts itself is doubted unless others confirmed it."""
        doubts = list(evidence.doubts if doubts is None else doubts)
        exact_value = evidence.kind == "exact" or _is_certain(evidence)
        if not doubts and not exact_value and not _error(evidence) <= self.error:
            doubts.append(
                f"{KIND}: the standard error is {_error(evidence):.2g} nats, {self.error:g} were wanted. Take more "
                "'n_draws' and 'max_particles', or be content with a larger 'error'."
            )
        if self._progress is not None:
            self._progress(len(self.asked), len(self.asked))
        return replace(
            evidence,
            kind=KIND,
            is_lower_bound=exact_value,
            standard_error=_error(evidence),
            form=None,  # the fit has a say in some of the samplers only
            details={**evidence.details, "asked": dict(self.asked), "taken": tuple(taken)},
            doubts=tuple(doubts),
        )


def _error(evidence: Evidence) -> float:
    """The standard error, 0 of what is exact, infinite where there is none."""
    error = 0.0 if evidence.standard_error is None else evidence.standard_error
    return np.inf if np.isnan(error) else error


def _said(evidence: Evidence | None) -> str:
    """What a sampler said, in words."""
    return (
        "gave up"
        if evidence is None
        else f"{evidence.value:.2f} ± {_error(evidence):.2g}{' in doubt' * _is_doubted(evidence)}"
    )


def _is_doubted(evidence: Evidence) -> bool:
    """Whether a sampler doubts itself with reason: the tail of weights that are nearly equal is not one."""
    if not evidence.doubts or evidence.details.get("n_relabelings", 1) is None:
        return bool(evidence.doubts)
    return "pareto_k" not in evidence.details or not are_nearly_equal(evidence)


def _has_no_variance(evidence: Evidence) -> bool:
    """Whether a sampler has weights that vary, of a tail too heavy for a variance."""
    return evidence.details.get("pareto_k", -np.inf) > _NO_VARIANCE and not are_nearly_equal(evidence)


def _is_certain(evidence: Evidence) -> bool:
    """Whether all weights are the evidence, up to rounding."""
    return _error(evidence) < _CERTAIN and not evidence.doubts


def _is_hopeless(population: Population) -> bool:
    """Whether a population was given up so early that no affordable number of particles would do."""
    return not population.is_complete and population.trace[-1, 0] < _FEWEST_UNITS * population.n_resamplings


def _error_of_difference(one: Evidence, other: Evidence) -> float:
    """Standard error of the difference of two evidences, nats."""
    return float(np.hypot(_error(one), _error(other)))


def _is_above(one: Evidence, other: Evidence) -> bool:
    """Whether one evidence is so far above another that errors do not explain it."""
    return one.value - other.value > _FAR * _error_of_difference(one, other)


def _agree(one: Evidence, other: Evidence, far: float = _FAR) -> bool:
    """Whether two evidences are as near as their errors allow, and these say something."""
    error = _error_of_difference(one, other)
    return error < _VAGUE and abs(one.value - other.value) <= far * error + _CERTAIN


def _agree_undoubted(one: Evidence, other: Evidence, far: float = _FAR) -> bool:
    """Whether two evidences are sure of themselves and agree."""
    return not _is_doubted(one) and not _is_doubted(other) and _agree(one, other, far)


def _enough(evidence: Evidence, n_draws: int, error: float) -> int:
    """So many draws as bring the error to what is wanted, and no more than is affordable."""
    return int(n_draws * min(1.2 * min(_error(evidence) / error, _LONGEST) ** 2, _LONGEST))


def _pooled(evidence: Sequence[Evidence]) -> Evidence:
    """Runs of importance sampling together, each as much as it has draws."""
    if len(evidence) == 1:
        return evidence[0]
    sizes = np.array([len(each.details["log_weights"]) for each in evidence], dtype=float)
    log_parts = np.array([each.value for each in evidence]) + np.log(sizes / sizes.sum())
    value = float(log_sum_exp(log_parts))
    error = float(np.linalg.norm(np.exp(log_parts - value) * [_error(each) for each in evidence]))
    log_weights = np.concatenate([each.details["log_weights"] for each in evidence])
    details: dict[str, Any] = {
        "log_weights": log_weights,
        "mean_log_weight": float(log_weights.mean()),
        "effective_sample_size": 1.0 / (error**2 + 1.0 / len(log_weights)),
        "pareto_k": max(each.details["pareto_k"] for each in evidence),
    }
    return replace(evidence[-1], value=value, standard_error=error, details=details)


def _widened(evidence: Evidence, others: Sequence[Evidence]) -> Evidence:
    """An evidence whose error is so large that none of the others is further from it than errors may well be."""
    least = [((evidence.value - each.value) / _NEAR) ** 2 - _error(each) ** 2 for each in others]
    return replace(evidence, standard_error=float(np.sqrt(max(_error(evidence) ** 2, *least, 0.0))))
