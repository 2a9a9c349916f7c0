"""Laws of what a model can do for scores of the evidence: its `skvbem.capabilities`, held to sums and to each other.

Each is a function of a `ModelCase` and random numbers that raises an AssertionError where the law is broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from skvbem._numerics import times_log
from skvbem.errors import TooLargeError
from skvbem.evidence import SCORES, Score, get_score
from skvbem.evidence.annealed_bridge import has_annealed_bridge
from skvbem.evidence.evaluation import Evaluation
from skvbem.testing.cases import ModelCase, ModelInstance
from skvbem.testing.laws import agree, needs, refuses, require
from skvbem.vbem import posteriors

_CLOSED = ("mled", "cheeseman_stutz", "draper", "bic")
# Options at which scores cost little, where a number alone is asked for.
_SMALL = {"n_chains": 4, "n_steps": 8, "n_draws": 32, "n_runs": 2, "n_completions": 8}
_SMALL |= dict.fromkeys(("n_particles", "max_particles"), 4)


def evaluations(case: ModelCase, n: int, rng: np.random.Generator) -> Iterator[tuple[Evaluation, float]]:
    """Evaluations of tiny instances, and their log evidences by definition."""
    for k in range(n):
        instance = case.sampleable(rng, k)
        yield instance.evaluation(rng, seed=k), instance.log_evidence()


def deviations(kind: str | Score, problems, slack: float, **options) -> list[float]:
    """Distances of scores from the exact evidences of evaluations, in standard errors; those in doubt left out.

    `slack` is an error, nats, that is beside the standard error.
    """
    score_of = get_score(kind) if isinstance(kind, str) else kind
    scored = [(score_of(evaluation, **options), exact) for evaluation, exact in problems]
    return [
        (score.value - exact) / float(np.hypot(score.standard_error or 0.0, slack))
        for score, exact in scored
        if not score.doubts
    ]


def check_standard_normal(z: Sequence[float]) -> None:
    """Deviations in standard errors have mean 0 and a spread of about 1, as far as some dozen can tell."""
    require(len(z) >= 5, f"Only {len(z)} estimates were not in doubt.")
    allowed = 5 / np.sqrt(len(z)) + 0.3
    require(abs(np.mean(z)) < allowed, f"The mean deviation is {np.mean(z):.3g} standard errors.")
    require(np.std(z) < 2.0, f"Deviations spread by {np.std(z):.3g} standard errors.")


@needs("points", "annealing", "relabelings", "exact")
def sampled_evidences_are_right(case: ModelCase, rng: np.random.Generator, kinds: Sequence[str] | None = None) -> None:
    """Evidences that chains sample are within their standard errors of the evidence [Neal 2001]."""
    can = case.sampleable(np.random.default_rng(0), 0).capabilities
    for kind in case.sampled if kinds is None else kinds:
        if any(getattr(can, need) is None for need in get_score(kind).needs):
            continue  # the score refuses such a model by name
        computed = deviations(kind, evaluations(case, case.n_sampled, rng), 0.02, **case.sampled[kind])
        require(np.abs(computed) < 4.5, f"Evidences by {kind!r} are {computed} standard errors off.")


def deviations_are_standard_normal(case: ModelCase, kind: str, rng: np.random.Generator) -> None:
    """Sampled evidences are as uncertain as they say: over 40 instances, which takes long."""
    check_standard_normal(deviations(kind, evaluations(case, 40, rng), 0.01, **case.sampled.get(kind, {})))


@needs("complete_evidence", "entropy", "exact")
def closed_forms_are_in_their_order(case: ModelCase, rng: np.random.Generator) -> None:
    """MLED <= Cheeseman-Stutz <= the bound begun from it <= ln p(y); n is the sum of weights [CH (13)]."""
    for k in range(case.n_ordered):
        instance = case.tiny(rng, k)
        evaluation, exact = instance.evaluation(rng), instance.log_evidence()
        model, data = evaluation.model, evaluation.data
        slack = 1e-9 * (1 + abs(exact))
        mled, cs, draper, bic = (get_score(kind)(evaluation, form="map") for kind in _CLOSED)
        natural = model.prior.natural(evaluation.point("map"))[:, None]
        ascent = instance.ascent(model, data, posteriors.VB)
        begun = ascent.advance(model.expect(natural, data).statistics, 1)[0, 0]
        bound = get_score("lower_bound")(evaluation)
        values = (
            f"MLED {mled.value:.12g}, Cheeseman-Stutz {cs.value:.12g}, bound begun from it {begun:.12g}, bound "
            f"{bound.value:.12g}, evidence {exact:.12g}"
        )
        require(mled.value <= cs.value + slack, values)
        require(cs.value <= begun + slack, values)
        require(begun <= exact + slack, values)
        require(bound.value <= exact + slack, values)
        agree("Cheeseman-Stutz less MLED", cs.value - mled.value, cs.details["entropy"], abs=1e-9)
        agree("The entropy of both", cs.details["entropy"], mled.details["entropy"], rel=0.0, abs=0.0)
        constant = model.prior.n_free_parameters / 2 * np.log(2 * np.pi)
        agree("Draper less BIC", draper.value - bic.value, constant, rel=1e-9)
        agree("n of BIC", bic.n_samples, data.total_weight, rel=0.0, abs=0.0)


def _beyond_terms(
    instance: ModelInstance, data: Any, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two lanes of natural parameters, expected statistics there, and ln Z less the products of both."""
    natural = instance.natural(data, rng, 2)
    expectation = instance.model.expect(natural, data)
    beyond = expectation.log_normalizer - times_log(expectation.statistics, natural).sum(axis=0)
    return natural, expectation.statistics, beyond


@needs("complete_evidence", "complete", "exact")
def evidence_of_complete_data_is_the_definition(case: ModelCase, rng: np.random.Generator) -> None:
    """With nothing hidden, ln p(y) is the evidence of the statistics and what no parameter touches [CH (8)]."""
    for k in range(case.n_complete):
        instance = case.complete(rng, k)
        data = instance.compile()
        _, statistics, untouched = _beyond_terms(instance, data, rng)
        computed = untouched + instance.capabilities.complete_evidence(statistics)
        agree(f"Instance {k}: the evidence", computed, np.full(2, instance.log_evidence()), rel=1e-9, abs=1e-8)


@needs("entropy")
def entropy_is_the_log_normalizer_less_expected_terms(case: ModelCase, rng: np.random.Generator) -> None:
    """H(q) is ln Z less natural parameters times expected statistics, and a constant of the data [CH (13)]."""
    for k in range(case.n_ordered):
        instance = case.tiny(rng, k)
        data = instance.compile()
        natural, _, wanted = _beyond_terms(instance, data, rng)
        computed = [instance.capabilities.entropy(np.ascontiguousarray(lane), data) for lane in natural.T]
        size = instance.model.magnitude(data)
        agree(
            f"Instance {k}: a difference of H", computed[1] - computed[0], wanted[1] - wanted[0], abs=1e-9 * (1 + size)
        )


@needs("points", "annealing")
def chains_do_not_depend_on_others(case: ModelCase, rng: np.random.Generator) -> None:
    """A chain has its own numbers, whichever run beside it and in whichever pieces."""
    instance = case.long(rng)
    evaluation, capabilities = instance.evaluation(rng), instance.capabilities
    annealing, data = capabilities.annealing, evaluation.data
    paths = annealing.paths(data, np.repeat(evaluation.fit("vb").statistics[:, None], 4, axis=1))
    streams = rng.integers(0, 2**64, size=(4, 4), dtype=np.uint64)
    start = capabilities.points.draw_points(paths.statistics, streams.copy())
    temperatures = np.array([0.0, 0.3, 0.7, 1.0])
    together = start.copy()
    ratios, last = annealing.anneal(annealing.workspace(data, 4), paths, temperatures, streams.copy(), together)
    for lane in range(4):
        alone, stream = np.ascontiguousarray(start[:, [lane]]), np.ascontiguousarray(streams[:, [lane]])
        one, statistics = annealing.anneal(annealing.workspace(data, 1), paths[[lane]], temperatures, stream, alone)
        agree("Ratios of a chain", one[:, 0], ratios[:, lane], rel=1e-9, abs=1e-9)
        agree("Its last statistics", statistics[:, 0], last[:, lane], rel=1e-9, abs=1e-9)
        agree("Its last point", alone[:, 0], together[:, lane], rel=1e-9, abs=1e-9)


@needs("points", "annealing", "relabelings", "exact")
def weights_are_repeats_for_chains(case: ModelCase, rng: np.random.Generator) -> None:
    """One unit twice, one once, the others not at all; fractions are refused."""
    instance = case.pair(rng)
    weight = np.zeros(instance.n_units)
    double, single = np.argsort(instance.unit_sizes, kind="stable")[:2]
    weight[double], weight[single] = 2.0, 1.0
    exact = instance.log_evidence([double, double, single])
    sampled = get_score("ais")(instance.evaluation(rng, weight=weight), **case.sampled["ais"])
    agree("The evidence by 'ais'", sampled.value, exact, abs=5 * (sampled.standard_error or 0.0) + 0.05)
    weight[single] = 0.5
    evaluation, words = instance.evaluation(rng, weight=weight), "needs whole-number sample weights"
    refuses(ValueError, words, "A weight of 0.5", lambda: get_score("ais")(evaluation))


@needs("points", "metropolis")
def fractions_count_for_chains_without_labels(case: ModelCase, rng: np.random.Generator) -> None:
    """The log likelihoods that Metropolis chains hold are those of their points, where weights are no whole numbers."""
    instance = case.tiny(rng, 0)
    evaluation, capabilities = (
        instance.evaluation(rng, weight=rng.uniform(0.3, 1.7, instance.n_units)),
        instance.capabilities,
    )
    points, chains, data = capabilities.points, capabilities.metropolis, evaluation.data
    streams = rng.integers(0, 2**64, size=(4, 3), dtype=np.uint64)
    log_points = points.draw_points(np.repeat(evaluation.fit("vb").statistics[:, None], 3, axis=1), streams)
    held = points.log_likelihoods(data, log_points)
    chains.metropolis(chains.workspace(data, 3), np.ones(9), np.full(8, 1e4), streams, log_points, held)
    agree("Log likelihoods of chains", held, points.log_likelihoods(data, log_points), rel=1e-9, abs=1e-9)


@needs("points", "batches")
def batches_grow_to_the_data(case: ModelCase, rng: np.random.Generator) -> None:
    """No unit: what is known alone. All units: the log likelihoods of the data. An order changes nothing of that."""
    for k in range(case.n_ordered):
        instance = case.tiny(rng, k)
        data, points, batches = instance.compile(), instance.capabilities.points, instance.capabilities.batches
        order, known = batches.order(data, rng), batches.known(data)
        streams = rng.integers(0, 2**64, size=(4, 3), dtype=np.uint64)
        log_points = points.draw_points(np.repeat(known[:, None], 3, axis=1), streams)
        log_likelihoods = [
            points.log_likelihoods(batches.batch(data, order, n), log_points) for n in range(1, len(order) + 1)
        ]
        wanted = points.log_likelihoods(data, log_points)
        agree(f"Instance {k}: of all units", log_likelihoods[-1] if len(order) else wanted, wanted, rel=1e-9, abs=1e-9)
        if len(order):
            first = batches.batch(data, order, 1).total_weight
            require(first == 1.0, f"Instance {k}: one unit counts {first:g} times.")
        require(known.shape == (len(log_points),), f"What is known has the shape {known.shape}.")


@needs("enumeration", "log_evidence")
def enumeration_is_the_definition(case: ModelCase, rng: np.random.Generator) -> None:
    """The sum over completions is ln p(y) by definition, of repeats and rows of weight 0 too [CH (6)]."""
    for k in range(case.n_enumerated):
        instance = case.tiny(rng, k)
        repeats = np.ones(instance.n_units)
        if k % 3 == 1:
            repeats[rng.integers(instance.n_units)] = 0.0
        if k % 3 == 2:
            repeats[np.argmin(instance.unit_sizes)] = 2.0
        units = np.repeat(np.arange(instance.n_units), repeats.astype(int))
        exact = instance.log_evidence(units) if len(units) else 0.0
        value, n_terms = instance.capabilities.enumeration(instance.compile(weight=repeats), 2**20)
        agree(f"Instance {k}: the sum", value, exact, rel=1e-11, abs=1e-10)
        require(n_terms >= 1, f"Instance {k}: {n_terms} terms were summed.")


@needs("points", "relabelings")
def relabelings_leave_likelihood_and_prior(case: ModelCase, rng: np.random.Generator) -> None:
    """Likelihood and prior density of a point are those of the point relabeled, and `n` counts the relabelings."""
    for k in range(case.n_relabeled):
        instance = case.alike(rng, k)
        data, capabilities = instance.compile(), instance.capabilities
        point = instance.point(data, rng)
        try:
            cells = capabilities.relabelings.listed_relabelings(instance.hidden, 200)
        except TooLargeError:
            continue
        agree("ln of their number", capabilities.relabelings.log_n_relabelings(instance.hidden), np.log(len(cells)))
        points = np.ascontiguousarray(point[cells].T)
        likelihoods = capabilities.points.log_likelihoods(data, points)
        agree("Log likelihoods", likelihoods, np.full(len(cells), likelihoods[0]), rel=1e-10, abs=1e-9)
        coordinates = instance.model.prior.coordinates
        terms = np.where(coordinates[:, None] == 0, 0.0, coordinates[:, None] * points).sum(axis=0)
        agree("Log prior densities", terms, np.full(len(cells), terms[0]), rel=1e-10, abs=1e-9)


def every_score_knows_the_model(case: ModelCase, rng: np.random.Generator) -> None:
    """Each score gives a number named as it is; one that needs what is not there says so."""
    instance = case.pair(rng)
    evaluation = instance.evaluation(rng, tol=1e-2)  # any fit will do
    for kind, score in SCORES.items():
        options = {name: value for name, value in _SMALL.items() if name in score.options}
        ask = partial(score, evaluation, **options)
        absent = [need for need in score.needs if getattr(instance.capabilities, need) is None]
        if absent:
            reason = instance.model.reasons.get(absent[0])
            words = f"{kind!r} needs the capability {absent[0]!r}"
            if reason is not None:
                words = f"{kind!r} has no meaning for .*{re.escape(reason)}"
            refuses(TypeError, words, f"The score {kind!r}", ask)
        elif kind == "mled" and "counted" in case.lacks:
            refuses(ValueError, "densities", f"The score {kind!r}", ask)
        elif kind == "annealed_bridge" and not has_annealed_bridge(evaluation):
            refuses(ValueError, "one path for all relabelings", f"The score {kind!r}", ask)
        elif set(score.needs) & set(case.lacks):
            refuses(ValueError, "is not known here", f"The score {kind!r}", ask)
        else:
            evidence = ask()
            require(np.isfinite(evidence.value), f"The score {kind!r} is {evidence.value}.")
            require(evidence.kind == kind, f"The score {kind!r} calls its value {evidence.kind!r}.")


#: Laws of capabilities by name; `deviations_are_standard_normal`, which takes long, is not among them.
CAPABILITY_LAWS = {
    law.__name__: law
    for law in (
        sampled_evidences_are_right,
        closed_forms_are_in_their_order,
        evidence_of_complete_data_is_the_definition,
        entropy_is_the_log_normalizer_less_expected_terms,
        chains_do_not_depend_on_others,
        weights_are_repeats_for_chains,
        fractions_count_for_chains_without_labels,
        batches_grow_to_the_data,
        enumeration_is_the_definition,
        relabelings_leave_likelihood_and_prior,
        every_score_knows_the_model,
    )
}
