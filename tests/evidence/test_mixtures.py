"""Scores of mixtures: sampled evidences against the sum over all assignments, whatever the rows hold."""

from itertools import product

import numpy as np
import pytest
from emissions.members import PROBLEMS, rows_of
from evidence.evaluations import check_standard_normal, deviations
from models.test_mixture import (
    PRODUCTS,
    exact_log_evidence,
    log_evidence_of_one,
    mixture,
    random_starts,
    seen,
)
from scipy.special import logsumexp

from skvbem.estimators.mixture.fitted import MixtureMethod
from skvbem.evidence import get_score
from skvbem.evidence.evaluation import Evaluation
from skvbem.models.mixture.weights import FiniteWeights, StickBreaking
from skvbem.vbem import posteriors
from skvbem.vbem.plan import FitPlan

approx = pytest.approx
NAMES = [name for name in PROBLEMS if name != "tied"]


def evaluation_of(problem, weights, rng, seed=0, weight=None):
    """A fit as scores take it, and its rows."""
    model, table, values = mixture(problem, weights)
    data = model.compile(table, weight, observed=seen(values))
    limits = {"tol": 1e-6, "max_iter": 2000}
    plan = FitPlan(MixtureMethod(), (seed,), random_starts(model, data, rng, 5), limits)

    def run(form, fit):
        return plan.refit(model, data, form, fit)

    fit = plan.run(model, data, posteriors.VB)
    evaluation = Evaluation(model, data, run, fit, "vb", data.total_weight, ("component",), (seed,))
    return evaluation, values


def evaluations(name, n, rng):
    """Evaluations of tiny problems, with their exact log evidences."""
    for k in range(n):
        problem = PROBLEMS[name](rng, n_rows=5, gaps=0.3 * (k % 2) * (name in PRODUCTS))
        weights = FiniteWeights(np.full(2 + k % 2, rng.uniform(0.5, 2.0)))
        evaluation, values = evaluation_of(problem, weights, rng, k)
        yield evaluation, exact_log_evidence(problem, rows_of(values, seen(values)), weights)


SAMPLED = {
    "ais": {"n_chains": 32, "n_steps": 48},
    "ais_prior": {"n_chains": 32, "n_steps": 48},
    "importance_gibbs": {"n_draws": 512, "n_completions": 64},
    "smc": {"n_runs": 16, "n_particles": 12, "n_steps": 32},
}


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize("name", NAMES)
def test_sampled_evidences_are_right(name, kind, rng):
    """Of the weights themselves: their mean over the exact evidence is one."""
    found = deviations(kind, evaluations(name, 3, rng), 0.02, **SAMPLED[kind])
    assert all(abs(z) < 4.5 for z in found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*SAMPLED, "importance"])
@pytest.mark.parametrize("name", NAMES)
def test_deviations_are_standard_normal(name, kind, rng):
    check_standard_normal(deviations(kind, evaluations(name, 40, rng), 0.01, **SAMPLED.get(kind, {})))


@pytest.mark.parametrize("name", NAMES)
def test_closed_forms_are_in_their_order(name, rng):
    """Cheeseman-Stutz <= VB begun from it <= exact; a score that is refused says why."""
    for evaluation, exact in evaluations(name, 4, rng):
        bound = evaluation.fit("vb").objective
        cs = get_score("cheeseman_stutz")(evaluation).value
        assert cs <= bound + 1e-6 * abs(bound)
        assert bound <= exact + 1e-9 * abs(exact)
        draper, bic = (get_score(kind)(evaluation, form="map").value for kind in ("draper", "bic"))
        d = evaluation.model.prior.n_free_parameters
        assert draper - bic == approx(d / 2 * np.log(2 * np.pi), rel=1e-9)


def test_chains_do_not_depend_on_others(rng):
    """Nor on the pieces they are run in."""
    for name in ("full", "categorical", "independent"):
        problem = PROBLEMS[name](rng, n_rows=30, gaps=0.2)
        evaluation, _ = evaluation_of(problem, FiniteWeights(np.ones(2)), rng)
        model, data = evaluation.model, evaluation.program
        paths = model.paths(data, np.repeat(evaluation.fit("vb").statistics[:, None], 4, axis=1))
        streams = rng.integers(0, 2**64, size=(4, 4), dtype=np.uint64)
        start = model.draw_points(paths.statistics, streams.copy())
        temperatures = np.array([0.0, 0.3, 0.7, 1.0])
        together = start.copy()
        ratios, last = model.anneal(model.workspace(data, 4), paths, temperatures, streams.copy(), together)
        for lane in range(4):
            alone, own = np.ascontiguousarray(start[:, [lane]]), np.ascontiguousarray(streams[:, [lane]])
            one, statistics = model.anneal(model.workspace(data, 1), paths[[lane]], temperatures, own, alone)
            assert one[:, 0] == approx(ratios[:, lane], rel=1e-9, abs=1e-9)
            assert statistics[:, 0] == approx(last[:, lane], rel=1e-9, abs=1e-9)
            assert alone[:, 0] == approx(together[:, lane], rel=1e-9, abs=1e-9)


def test_weights_of_rows_are_repeats_for_chains(rng):
    problem = PROBLEMS["diag"](rng, n_rows=8)
    weight = rng.integers(1, 3, 8)
    evaluation, values = evaluation_of(problem, FiniteWeights(np.ones(2)), rng, weight=weight.astype(float))
    exact = exact_log_evidence(problem, np.repeat(values, weight, axis=0)[:9], evaluation.model.weights)
    assert len(evaluation.program.one_by_one) == weight.sum()
    if weight.sum() <= 9:
        found = get_score("ais")(evaluation, **SAMPLED["ais"])
        assert found.value == approx(exact, abs=5 * found.standard_error + 0.05)
    fractions, _ = evaluation_of(problem, FiniteWeights(np.ones(2)), rng, weight=weight + 0.5)
    with pytest.raises(ValueError, match="needs whole-number sample weights"):
        get_score("ais")(fractions)


def test_sticks_and_unequal_priors_have_one_labeling(rng):
    problem = PROBLEMS["diag"](rng, n_rows=5)
    for weights, n in (
        (FiniteWeights(np.ones(3)), 6),
        (FiniteWeights(np.array([1.0, 2.0, 3.0])), 1),
        (StickBreaking(3, 1.0), 1),
    ):
        evaluation, _ = evaluation_of(problem, weights, rng)
        assert evaluation.model.relabelings(("component",)).n == n


def test_sticks_by_enumeration(rng):
    """The evidence under stick-breaking, over all assignments."""
    problem = PROBLEMS["diag"](rng, n_rows=5)
    evaluation, values = evaluation_of(problem, StickBreaking(2, 0.7), rng)
    weights, terms = evaluation.model.weights, []
    for assignment in product(range(2), repeat=5):
        counts = np.bincount(assignment, minlength=2).astype(float)
        rows = [values[np.array(assignment) == k] for k in range(2)]
        term = float(weights.prior.log_evidence(weights.statistics(counts)))
        terms.append(term + sum(log_evidence_of_one(problem.emission, part) for part in rows if len(part)))
    exact = logsumexp(terms)
    assert evaluation.fit("vb").objective <= exact
    found = get_score("ais")(evaluation, n_chains=64, n_steps=64)
    assert found.value == approx(exact, abs=5 * found.standard_error + 0.02)
