r"""The recommended score: a decision table over samplers, the cheapest first, then checked against each other.

Bridge sampling between linear response and short Gibbs chains comes first, and is the answer where its diagnostics,
standard error and Pareto shape, are good: the standard error sees chains that do not agree, and a proposal that is thin
where chains are. Where it is not, runs of four times the chains are next, if these may be precise enough, and a bridge
between annealed chains, which needs no proposal that is like the posterior.

Then three samplers that estimate the evidence without bias: importance sampling about Gibbs draws, which sees no mode
that neither fits nor Gibbs chains have met; particles over growing data, which start from the prior and use no fit; and
annealed importance sampling. So by Markov's inequality

.. math:: P(\ln \hat Z > \ln Z + c) \le e^{-c} :

a run is rarely much too high, and often too low. A run is *flagged* if its diagnostics warn of it. It is
*contradicted* if one without flags lies above it by more than errors explain. Two runs *agree* if neither is flagged,
their distance is within errors, and the error of the distance is small enough to mean anything. The table, `_STEPS`,
has steps, the states in which each is taken, and what it runs; the first step that returns an answer ends it. Without
one the answer is the highest run, with a warning.

Runs of a heavy tail that miss the largest weights are too low together, and report too small an error. So their values
come last, even where others agree with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skvbem._progress import is_over, steps
from skvbem.capabilities import AnnealingPlan
from skvbem.evidence.agreement import (
    agree,
    agree_unflagged,
    is_above,
    is_constant,
    is_flagged,
    is_heavy_tailed,
    may_confirm,
    pooled_runs,
    stated_error,
    widened,
)
from skvbem.evidence.ais import anchored_ais
from skvbem.evidence.annealed_bridge import LONGER_ANNEALED, annealed_bridge, has_annealed_bridge
from skvbem.evidence.base import Evidence
from skvbem.evidence.bridge_sampling import (
    LONGER_CHAINS,
    LONGER_UP_TO_TURNS,
    LONGEST_UP_TO_TURNS,
    bridge_sampling,
)
from skvbem.evidence.chains import check_at_least
from skvbem.evidence.evaluation import Evaluation
from skvbem.evidence.exact import exact
from skvbem.evidence.growing_data import check_error, evidence_of_runs, particle_runs
from skvbem.evidence.importance import are_nearly_equal, importance, importance_gibbs
from skvbem.evidence.linear_response import responses_at_optima
from skvbem.evidence.quotient import has_few_orders, is_near_normal
from skvbem.evidence.tuning import TUNING

KIND = "auto"
_BRIDGE, _ANNEALED_BRIDGE = "bridge", "annealed_bridge"
_IMPORTANCE, _PARTICLES, _ANNEALED = "importance_gibbs", "smc_data", "ais"


def auto(
    evaluation: Evaluation,
    *,
    error: float = TUNING.usual_error,
    exact_terms: int = 2**16,
    n_draws: int = 4096,
    n_particles: int = 1024,
    max_particles: int = 32_768,
) -> Evidence:
    """Log evidence by the cheapest sampler that is right here: exact if that is cheap, else checked by another one.

    Parameters
    ----------
    evaluation : Evaluation
        Of weights that are no whole numbers the evidence is that of `importance`, which nothing checks.
    error : float, default=0.1
        Standard error to be reached, nats.
    exact_terms : int, default=65536
        Most terms of an enumeration, which is tried before anything is drawn; 0 for none.
    n_draws : int, default=4096
        Of the first run of `importance_gibbs`; later ones take up to 16 times as many.
    n_particles, max_particles : int, default=1024, 32768
        Of the first run of particles, and the largest.

    Returns
    -------
    Evidence
        `details["asked"]` has the result of each run, by the name of its sampler and in order; None of particles that
        were given up. `details["taken"]` names those that the value is from.

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
    check = _CrossCheck(evaluation, error, n_draws, n_particles, max_particles)
    with steps(None, "samplers") as check.count:
        return check.reported(_answered(check, exact_terms))


def _answered(check: _CrossCheck, exact_terms: int) -> _Answer:
    """The answer of the first that has one: a sum over few terms, the rules, the highest of all runs."""
    if not check.evaluation.data.has_whole_weights:
        return _of_fractional_weights(check)
    known = _by_enumeration(check.evaluation, exact_terms)
    if known is not None:
        check.keep("exact", known)
        return _Answer(known, [known])
    for step in _STEPS:
        answer = step.run(check) if step.applies(check) else None
        if answer is not None:
            return answer
    return _highest(check)


class _Answer(NamedTuple):
    """A value, the runs that it is from, and warnings of it."""

    evidence: Evidence
    runs: Sequence[Evidence]
    doubts: Sequence[str] = ()


def _by_enumeration(evaluation: Evaluation, exact_terms: int) -> Evidence | None:
    """The exact evidence, where it has so few terms and a closed form at all."""
    if not exact_terms or evaluation.capabilities.enumeration is None:
        return None
    try:
        return exact(evaluation, max_terms=exact_terms)
    except ValueError:  # too many terms, or no closed form of complete rows: full Gaussians with missing cells
        return None


def _of_fractional_weights(check: _CrossCheck) -> _Answer:
    """The value of `importance`, of more draws if its error is too large."""
    evidence = check.run("importance", importance, n_draws=check.n_draws)
    assert evidence is not None
    if not evidence.doubts and stated_error(evidence) > check.error:
        n_draws = _enough_draws(evidence, check.n_draws, check.error)
        evidence = check.run("importance", importance, n_draws=n_draws) or evidence
    return _Answer(evidence, [evidence], evidence.doubts)


class _CrossCheck:
    """Runs of samplers on one evaluation, each with random streams of its own, and the state that rules look at.

    Parameters
    ----------
    evaluation : Evaluation
    error, n_draws, n_particles, max_particles
        As of `auto`.
    """

    #: The first run of bridge sampling.
    bridge: Evidence
    #: The first run of importance sampling, or that about more Gibbs draws which took its place.
    first: Evidence
    #: Called when one more sampler has been run.
    count: Callable[[], None]

    def __init__(self, evaluation, error, n_draws, n_particles, max_particles):
        self.evaluation, self.error = evaluation, error
        self.n_draws, self.n_particles, self.max_particles = n_draws, min(n_particles, max_particles), max_particles
        self.n_completions = max(n_draws // TUNING.draws_per_completion, TUNING.draws_per_completion)
        self.is_heavy, self.prior_is_far = False, False
        self.results: dict[str, Evidence | None] = {}

    def keep(self, name: str, evidence: Evidence | None) -> None:
        """Keep a result under the name of its sampler, numbered if that was run before."""
        n_before = sum(each.split()[0] == name for each in self.results)
        self.results[f"{name} {n_before + 1}" if n_before else name] = evidence
        self.count()

    def _begin(self) -> Evaluation | None:
        """An evaluation with random streams of its own; None if time is up."""
        n = len(self.results)
        if n and is_over():
            return None
        return self.evaluation.reseeded(n) if n else self.evaluation

    def run(self, name: str, score: Callable[..., Evidence], **options) -> Evidence | None:
        """The result of a sampler; None if time is up."""
        evaluation = self._begin()
        if evaluation is None:
            return None
        evidence = score(evaluation, **options)
        self.keep(name, evidence)
        return evidence

    def importance(self, n_draws: int, n_completions: int) -> Evidence | None:
        """The result of importance sampling about Gibbs draws; None if time is up."""
        return self.run(_IMPORTANCE, importance_gibbs, n_draws=n_draws, n_completions=n_completions)

    def annealed(self, n_steps: int) -> Evidence | None:
        """The result of annealed importance sampling; None if time is up."""
        n_chains = max(self.n_draws // TUNING.draws_per_chain, 2 * TUNING.fewest_chains)
        return self.run(_ANNEALED, anchored_ais, n_chains=n_chains, n_steps=n_steps)

    def particles(self, n_particles: int, max_particles: int, error: float) -> tuple[Evidence | None, bool]:
        """The result of particles, None if they were given up at once; whether the prior is too far for any number.

        Of models without `batches` it is too far.
        """
        if self.evaluation.capabilities.batches is None:
            return None, True
        evaluation = self._begin()
        if evaluation is None:
            return None, False
        fewest = min(TUNING.lineages, n_particles)
        runs = particle_runs(evaluation, n_particles, error, max_particles, fewest_lineages=fewest)
        complete = [each for each in runs if each.is_complete]
        evidence = evidence_of_runs(self.evaluation, complete) if complete else None
        self.keep(_PARTICLES, evidence)
        return evidence, runs[-1].prior_is_far

    @property
    def values(self) -> list[Evidence]:
        """The results that are values."""
        return [each for each in self.results.values() if each is not None]

    @property
    def unflagged(self) -> list[Evidence]:
        """The results without flags, of the smallest error first, those of heavy tails last."""
        unflagged = (each for each in self.values if not is_flagged(each))
        return sorted(unflagged, key=lambda each: (is_heavy_tailed(each), stated_error(each)))

    @property
    def has_few_cells(self) -> bool:
        """True if linear response, whose matrices have as many rows as there are statistics, is cheap."""
        return len(self.evaluation.model.prior.coordinates) <= TUNING.response_cells

    @property
    def has_bridge_up_to_turns(self) -> bool:
        """True if hidden variables turn, and bridges integrate turns out."""
        return self.evaluation.has_turns and has_few_orders(self.evaluation) and self.has_few_cells

    @property
    def is_near_normal(self) -> bool:
        """True if chains of bridges begin at draws of a proposal that is near the posterior."""
        has_optima = bool(self.bridge.details.get("n_optima"))
        return has_optima and is_near_normal(self.evaluation, responses_at_optima(self.evaluation))

    @property
    def may_do_with_longer_chains(self) -> bool:
        """True if four times the chains may make bridge sampling precise enough."""
        most = TUNING.times_too_rough * min(self.error, TUNING.rough)
        return self.has_few_cells and stated_error(self.bridge) <= most

    @property
    def has_annealed_bridge(self) -> bool:
        """True if bridges of annealed chains are possible, from optima that are maxima."""
        return self.has_few_cells and bool(self.bridge.details["n_optima"]) and has_annealed_bridge(self.evaluation)

    @property
    def is_usable(self) -> bool:
        """True if importance sampling can be the answer if others agree."""
        return not (self.is_heavy or is_flagged(self.first))

    @property
    def has_room(self) -> bool:
        """True if there may be more particles than in the first run."""
        return self.n_particles < self.max_particles

    @property
    def gave_up(self) -> bool:
        """True if the first particles were given up."""
        return self.results.get(_PARTICLES, self.first) is None

    @property
    def has_had_most(self) -> bool:
        """True if the first particles grew to as many as are allowed, as a heavy tail asks for."""
        return self.is_heavy and not self.gave_up

    def is_contradicted(self, evidence: Evidence) -> bool:
        """True if a result without flags lies so far above that errors do not explain it."""
        return any(is_above(each, evidence) for each in self.unflagged)

    def reported(self, answer: _Answer) -> Evidence:
        """The answer as the evidence by this score, with all results; a warning if it is less precise than wanted."""
        evidence, doubts = answer.evidence, list(answer.doubts)
        is_exact = evidence.kind == "exact" or is_constant(evidence)
        if not doubts and not is_exact and not stated_error(evidence) <= self.error:
            doubts.append(
                f"{KIND}: the standard error is {stated_error(evidence):.2g} nats, {self.error:g} were wanted. Take "
                "more 'n_draws' and 'max_particles', or be content with a larger 'error'."
            )
        taken = (next(name for name, each in self.results.items() if each is run) for run in answer.runs)
        return replace(
            evidence,
            kind=KIND,
            is_lower_bound=is_exact,
            standard_error=stated_error(evidence),
            form=None,  # only some of the samplers use the fit
            details={**evidence.details, "asked": dict(self.results), "taken": tuple(taken)},
            doubts=tuple(doubts),
        )


def _bridge(check: _CrossCheck) -> _Answer | None:
    """Bridge sampling, if its diagnostics are good and its error as small as wanted."""
    bridge = check.run(_BRIDGE, bridge_sampling)
    assert bridge is not None  # the first sampler has no time limit
    check.bridge = bridge
    return _precise_bridge(check, bridge)


def _longer_bridge(check: _CrossCheck) -> _Answer | None:
    """Bridge sampling with more and longer chains, by the same diagnostics."""
    moves_fast = check.has_bridge_up_to_turns or check.is_near_normal
    longer = LONGER_UP_TO_TURNS if moves_fast else LONGER_CHAINS
    return _precise_bridge(check, check.run(_BRIDGE, bridge_sampling, **longer))


def _precise_bridge(check: _CrossCheck, evidence: Evidence | None) -> _Answer | None:
    if evidence is None or is_flagged(evidence) or stated_error(evidence) > check.error:
        return None
    return _Answer(evidence, [evidence])


def _annealed_bridge(check: _CrossCheck) -> _Answer | None:
    """A bridge between annealed chains; of more and longer ones an error that makes a check sharp is enough."""
    evidence = check.run(_ANNEALED_BRIDGE, annealed_bridge)
    answer = _precise_bridge(check, evidence)
    if answer is not None or evidence is None:
        return answer
    longer = check.run(_ANNEALED_BRIDGE, annealed_bridge, **LONGER_ANNEALED)
    most = max(check.error, TUNING.sharp) if check.error >= TUNING.usual_error else check.error
    if longer is None or is_flagged(longer) or stated_error(longer) > most:
        return None
    return _Answer(longer, [longer])


def _longest_bridge(check: _CrossCheck) -> _Answer | None:
    """Bridge sampling with the most chains, by its flags alone: no other sampler is better where factors turn."""
    evidence = check.run(_BRIDGE, bridge_sampling, **LONGEST_UP_TO_TURNS)
    return None if evidence is None or is_flagged(evidence) else _Answer(evidence, [evidence])


def _importance(check: _CrossCheck) -> _Answer | None:
    """Importance sampling about Gibbs draws, of which a heavy tail of weights asks for more."""
    first = check.importance(check.n_draws, check.n_completions)
    if first is None:  # time is up
        return _highest(check)
    check.first = first
    if is_constant(first):
        return _Answer(first, [first])
    if is_heavy_tailed(first):
        check.n_completions *= TUNING.longer
        check.first = check.importance(check.n_draws, check.n_completions) or first
        check.is_heavy = not are_nearly_equal(check.first)  # the shape of one tail may look light by chance
    return None


def _few_particles(check: _CrossCheck) -> _Answer | None:
    """Few particles to check importance sampling; of a heavy tail, as many as make particles precise."""
    most = check.max_particles if check.is_heavy else check.n_particles
    particles, check.prior_is_far = check.particles(check.n_particles, most, check.error)
    if particles is None:
        return None
    return _precise(check, particles) if check.is_heavy else _checked(check, particles, TUNING.near)


def _second_importance(check: _CrossCheck) -> _Answer | None:
    """Two runs of importance sampling that agree."""
    second = check.importance(check.n_draws, 2 * check.n_completions)
    if second is None or not agree_unflagged(check.first, second):
        return None
    return _refined(check, [check.first, second], [])


def _annealed_chains(check: _CrossCheck) -> _Answer | None:
    """Annealed chains, longer ones if need be, that more particles agree with."""
    n_steps = 2 * AnnealingPlan().n_steps
    annealed = check.annealed(n_steps)
    if annealed is not None and (is_flagged(annealed) or stated_error(annealed) > check.error):
        annealed = check.annealed(TUNING.longer * n_steps)
    if annealed is None or is_flagged(annealed) or stated_error(annealed) > max(check.error, TUNING.sharp):
        return None
    n_particles = min(TUNING.longer * check.n_particles, check.max_particles)
    particles, _ = check.particles(n_particles, n_particles, check.error)
    if particles is None or not agree_unflagged(annealed, particles) or check.is_contradicted(annealed):
        return None
    return _Answer(widened(annealed, [particles]), [annealed])


def _more_particles(check: _CrossCheck) -> _Answer | None:
    """Importance sampling that more particles agree with; particles themselves where it is not usable."""
    wanted = max(check.error, TUNING.sharp) if check.is_usable else check.error
    n_particles = min(TUNING.longer * check.n_particles, check.max_particles)
    particles, _ = check.particles(n_particles, check.max_particles, wanted)
    if particles is None or is_flagged(particles) or stated_error(particles) > wanted:
        return None
    answer = None if check.is_heavy else _checked(check, particles)
    return answer if answer is not None or check.is_usable else _precise(check, particles)


def _longer_runs(check: _CrossCheck) -> _Answer | None:
    """The most precise result that another agrees with, after longer importance sampling and annealed chains."""
    check.importance(TUNING.longer * check.n_draws, TUNING.longer * check.n_completions)
    answer = _any_checked(check)
    if answer is None or stated_error(answer.evidence) > check.error:
        if _ANNEALED not in check.results and not check.evaluation.has_turns:
            check.annealed(2 * AnnealingPlan().n_steps)
        answer = _any_checked(check) or answer
    return answer


class _Step(NamedTuple):
    """A line of the decision table: a step, the states in which it is taken, and what it runs."""

    name: str
    applies: Callable[[_CrossCheck], bool]
    run: Callable[[_CrossCheck], _Answer | None]


def _always(check: _CrossCheck) -> bool:
    return True


#: The decision table, whose first answer is taken.
_STEPS = (
    _Step("diagnostics of bridge sampling", lambda check: check.has_few_cells, _bridge),
    _Step("longer chains of bridge sampling", lambda check: check.may_do_with_longer_chains, _longer_bridge),
    _Step("bridge sampling up to turns, most chains", lambda check: check.has_bridge_up_to_turns, _longest_bridge),
    _Step("bridge of annealed chains", lambda check: check.has_annealed_bridge, _annealed_bridge),
    _Step("importance sampling", _always, _importance),
    _Step("cross-check by particles", _always, _few_particles),
    _Step(
        "cross-check by a second importance sampling",
        lambda check: check.prior_is_far and not is_flagged(check.first),
        _second_importance,
    ),
    _Step(
        "annealed chains, cross-check by particles",
        lambda check: check.has_room and check.gave_up and is_flagged(check.first) and not check.evaluation.has_turns,
        _annealed_chains,
    ),
    _Step(
        "more particles",
        lambda check: check.has_room and not check.prior_is_far and not check.has_had_most,
        _more_particles,
    ),
    _Step("longer runs of all", _always, _longer_runs),
)


def _checked(check: _CrossCheck, particles: Evidence, far: float = TUNING.far) -> _Answer | None:
    """Importance sampling, if particles agree with it."""
    if not agree_unflagged(check.first, particles, far):
        return None
    return _refined(check, [check.first], [particles])


def _precise(check: _CrossCheck, particles: Evidence) -> _Answer | None:
    """Particles, if they are as precise as was wanted, and neither flagged nor contradicted."""
    is_precise = not is_flagged(particles) and stated_error(particles) <= check.error
    if not is_precise or check.is_contradicted(particles) or is_above(check.first, particles):
        return None
    return _Answer(particles, [particles])


def _refined(check: _CrossCheck, runs: Sequence[Evidence], others: Sequence[Evidence]) -> _Answer:
    """Runs of importance sampling together, with more draws if their error is too large."""
    evidence = pooled_runs(runs)
    if stated_error(evidence) > check.error:
        n_draws = sum(len(each.details["log_weights"]) for each in runs)
        more = check.importance(_enough_draws(evidence, n_draws, check.error), 2 * check.n_completions)
        if more is not None and not is_flagged(more) and all(agree(more, each) for each in (*runs, *others)):
            runs = [*runs, more]
            evidence = pooled_runs(runs)
    return _Answer(widened(evidence, others or runs), runs)


def _any_checked(check: _CrossCheck) -> _Answer | None:
    """The most precise result that another agrees with, and none contradicts; None if there is none."""
    for evidence in check.unflagged:
        others = [each for each in check.unflagged if may_confirm(each, evidence) and agree(evidence, each)]
        if others and not check.is_contradicted(evidence):
            return _Answer(widened(evidence, others), [evidence])
    return None


def _highest(check: _CrossCheck) -> _Answer:
    """The highest of the results, as uncertain as they are far apart, with a warning."""
    evidence = max(check.unflagged or check.values, key=lambda each: each.value)
    spread = float(np.std([each.value for each in check.values]))
    results = ", ".join(
        f"{name} {each.value:.2f} ± {stated_error(each):.2g}{' in doubt' * is_flagged(each)}"
        if each is not None
        else f"{name} gave up"
        for name, each in check.results.items()
    )
    doubt = (
        f"{KIND}: no two samplers that do not doubt themselves agree ({results}). The value is the highest of them, "
        "and not to be trusted. Take more 'n_draws' and 'max_particles'."
    )
    return _Answer(replace(evidence, standard_error=max(stated_error(evidence), spread)), [evidence], [doubt])


def _enough_draws(evidence: Evidence, n_draws: int, error: float) -> int:
    """Number of draws that brings the error of so many to what is wanted, as far as it is affordable."""
    largest = TUNING.longer**2
    return int(n_draws * min(1.2 * min(stated_error(evidence) / error, largest) ** 2, largest))
