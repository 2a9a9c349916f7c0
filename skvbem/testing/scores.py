"""Laws of every score of the evidence: what a number that stands for ln p(y) owes to data, model and chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skvbem.evidence import Evidence, Score, get_score
from skvbem.evidence.evaluation import Evaluation
from skvbem.testing.capabilities import deviations, evaluations
from skvbem.testing.cases import ModelCase, evaluation_from
from skvbem.testing.examples import EXAMPLES
from skvbem.testing.laws import Report, agree, hold, needs, needs_of, refuses, require


@dataclass(frozen=True, eq=False)
class _OnCase:
    """A score with options on the instances of a case."""

    score: Score
    case: ModelCase
    options: Mapping[str, Any]

    def __call__(self, evaluation: Evaluation) -> Evidence:
        return self.score(evaluation, **self.options)


def check_score(
    score: Score | str,
    case: ModelCase | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    laws: Iterable[str] | None = None,
    rng: int | np.random.Generator = 0,
) -> list[Report]:
    r"""Hold a score to the laws of evidences, on tiny data whose evidence is known.

    A bound is at most :math:`\ln p(y)`. A sampled evidence is within its standard error of it, and the same for the
    same seed. The order of rows and the names of hidden states change nothing. If the model lacks something that the
    score needs, the score names it.

    Parameters
    ----------
    score : Score or str
        A score, or the name of one that is registered.
    case : ModelCase, optional
        The model and data to try it on; each of `skvbem.testing.EXAMPLES` if None.
    options : mapping, optional
        Options of the score, such as a number of chains that takes little time.
    laws : iterable of str, optional
        Names in `skvbem.testing.scores.LAWS`; all if None.
    rng : int or numpy.random.Generator, default=0

    Returns
    -------
    list of Report
        One for each case.

    Raises
    ------
    AssertionError
        If a law is broken: which, on what, and by how much.
    TypeError
        If it is no score.

    Examples
    --------
    >>> from skvbem.testing import check_score
    >>> for report in check_score("lower_bound"):
    ...     print(report.subject, len(report.held), *report.lacking)
    'lower_bound' on network 6 sampled_evidence_is_right seed_decides_the_value capabilities_it_needs_are_named
    'lower_bound' on mixture 6 sampled_evidence_is_right seed_decides_the_value capabilities_it_needs_are_named
    'lower_bound' on hmm 6 sampled_evidence_is_right seed_decides_the_value capabilities_it_needs_are_named
    """
    rng = np.random.default_rng(rng)
    score = get_score(score) if isinstance(score, str) else score
    if not isinstance(score, Score):
        raise TypeError(f"check_score takes a Score, such as Score('mine', function), or its name. Got {score!r}.")

    def report(each):
        on_case = _OnCase(score, each, dict(options or {}))
        subject = f"{score.name!r} on {each}"
        return hold(subject, "scores", LAWS, laws, lambda law: law(on_case, rng), lambda law: _lacking(law, on_case))

    return [report(each) for each in (EXAMPLES.values() if case is None else (case,))]


def _lacking(law, on_case):
    """Things that the score, or the model of the case, lacks for a law."""
    score, wanted = on_case.score, needs_of(law)
    if "random" in wanted and not score.random:
        return "a score that draws"
    if "no_chance" in wanted and score.random:
        return "a score that does not draw"
    if "needs" in wanted:
        return "" if score.needs else "a score that needs capabilities"
    capabilities = [name for name in wanted if name not in ("random", "no_chance")]
    return on_case.case.lacking([*capabilities, *score.needs])


def value_has_its_name_and_size(score: _OnCase, rng: np.random.Generator) -> None:
    """The value is a number of total nats, `kind` the name of the score, n the sum of weights where one is given."""
    instance = score.case.tiny(rng, 0)
    evidence = score(instance.evaluation(rng))
    name = score.score.name
    require(np.isfinite(evidence.value), f"The value is {evidence.value}.")
    require(evidence.kind == name, f"The score {name!r} calls its value {evidence.kind!r}.")
    size = instance.compile().total_weight
    require(evidence.n_samples in (0.0, size), f"n is {evidence.n_samples}, where rows weigh {size}.")
    if score.score.random:
        require(evidence.standard_error is not None, "The score draws, but has no standard error.")


def options_are_checked(score: _OnCase, rng: np.random.Generator) -> None:
    """An option that the score does not have is refused by name."""
    evaluation = score.case.tiny(rng, 0).evaluation(rng)
    name = score.score.name
    refuses(
        TypeError,
        f"The score {name!r} has no option 'no_such_option'",
        "An unknown option",
        lambda: score.score(evaluation, no_such_option=1),
    )


@needs("exact", "no_chance")
def bound_is_not_above_the_evidence(score: _OnCase, rng: np.random.Generator) -> None:
    """A score called a lower bound is at most ln p(y), summed over all that is hidden; if it draws, up to its error."""
    for k, (evaluation, exact) in enumerate(evaluations(score.case, score.case.n_ordered, rng)):
        evidence = score(evaluation)
        above = evidence.value - exact
        require(
            not evidence.is_lower_bound or above <= 1e-9 * (1 + abs(exact)) + _chance(evidence),
            f"Instance {k}: {evidence.value:.12g} is {above:.3g} nats above the evidence {exact:.12g}.",
        )


@needs("random", "exact")
def sampled_evidence_is_right(score: _OnCase, rng: np.random.Generator) -> None:
    """A random value has a standard error, and is within 4.5 of it from ln p(y)."""
    problems = evaluations(score.case, score.case.n_sampled, rng)
    computed = deviations(score.score, problems, 0.02, **score.options)
    require(np.abs(computed) < 4.5, f"Evidences are {computed} standard errors off.")


@needs("random")
def seed_decides_the_value(score: _OnCase, rng: np.random.Generator) -> None:
    """A seed gives one value whenever it is taken, and another seed another value."""
    instance = score.case.sampleable(rng, 0)
    starts = instance.random_starts(instance.compile(), rng, 5)
    one, again, other = (score(_begun(instance, instance.compile(), starts, seed)).value for seed in (1, 1, 2))
    agree("The value of the same seed", again, one, rel=0.0, abs=0.0)
    require(one != other, f"Two seeds give the same value {one!r}.")


def _chance(*evidences):
    """Difference of values that may be chance because some draw even so, nats."""
    return 5 * float(np.linalg.norm([evidence.standard_error or 0.0 for evidence in evidences]))


def _agree_but_for_chance(what, computed, wanted):
    allowed = 1e-6 * (1 + abs(wanted.value)) + _chance(computed, wanted)
    agree(what, computed.value, wanted.value, abs=allowed)


def _begun(instance, data, starts, seed=0):
    """The evaluation of data, fitted from starts to the end."""
    return evaluation_from(starts, instance.ascent, instance.model, data, instance.hidden, seed=seed, tol=1e-12)


@needs("no_chance")
def order_of_rows_changes_nothing(score: _OnCase, rng: np.random.Generator) -> None:
    """Units in another order have the same evidence."""
    instance = score.case.tiny(rng, 0)
    starts = instance.random_starts(instance.compile(), rng, 5)
    order = rng.permutation(instance.n_units)
    one, other = (score(_begun(instance, instance.compile(units), starts)) for units in (None, order))
    _agree_but_for_chance("The value of rows in another order", other, one)


@needs("no_chance", "relabeling")
def names_of_hidden_states_change_nothing(score: _OnCase, rng: np.random.Generator) -> None:
    """A fit begun with states in another order has the same evidence."""
    instance = score.case.alike(rng, 0)
    data = instance.compile()
    starts, relabeling = instance.random_starts(data, rng, 5), instance.relabeling(rng)
    one, other = (score(_begun(instance, data, each)) for each in (starts, relabeling.there(starts)))
    _agree_but_for_chance("The value of states in another order", other, one)


def fit_at_hand_stays_as_it_is(score: _OnCase, rng: np.random.Generator) -> None:
    """A score changes neither prior nor fit, so that scores may be asked in any order."""
    instance = score.case.tiny(rng, 0)
    evaluation = instance.evaluation(rng)
    before = [np.array(x) for x in (evaluation.fit("vb").statistics, instance.model.prior.coordinates)]
    score(evaluation)
    for what, then, now in zip(
        ("Statistics of the fit", "The prior"),
        before,
        (evaluation.fit("vb").statistics, instance.model.prior.coordinates),
    ):
        agree(f"{what} after the score", now, then, rel=0.0, abs=0.0)


@needs("needs")
def capabilities_it_needs_are_named(score: _OnCase, rng: np.random.Generator) -> None:
    """Of a model without a capability that it needs a score says which."""
    evaluation = score.case.tiny(rng, 0).evaluation(rng)
    everything = evaluation.capabilities
    for need in score.score.needs:
        evaluation.capabilities = replace(everything, **{need: None})
        words = rf"The score {score.score.name!r} needs the capability {need!r}"
        if all(getattr(everything, other) is not None for other in score.score.needs):
            refuses(TypeError, words, f"A model without {need!r}", lambda: score(evaluation))


#: Every law of scores by name.
LAWS = {
    law.__name__: law
    for law in (
        value_has_its_name_and_size,
        options_are_checked,
        bound_is_not_above_the_evidence,
        sampled_evidence_is_right,
        seed_decides_the_value,
        order_of_rows_changes_nothing,
        names_of_hidden_states_change_nothing,
        fit_at_hand_stays_as_it_is,
        capabilities_it_needs_are_named,
    )
}
