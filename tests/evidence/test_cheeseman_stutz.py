"""Cheeseman-Stutz, its dagger and MLED against definitions, and the variational bound that starts from it."""

import math

import numpy as np
import pytest
from bridge import FORMS, FastNetwork
from evidence.evaluations import bipartite_network, drawn_rows, evaluate, evaluation_of
from reference import facts, scores
from reference.discrete_network import Problem, logs, uniform_prior
from reference.hidden_scales import log_evidence_of_sums
from reference.random_networks import random_problem
from scipy.special import gammaln

from skvbem import VBMixture
from skvbem.evidence.cheeseman_stutz import cheeseman_stutz, mled
from skvbem.fitting.evaluation import at_draw
from skvbem.fitting.evaluation import evaluation_of as evaluation_of_estimator
from skvbem.models import DirichletAscent
from skvbem.vbem.driver import run

approx = pytest.approx
LC2 = facts.latent_class(2, (2, 2, 2))


def test_known_values():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)), n_init=10)
    assert cheeseman_stutz(evaluation, form="ml").value == approx(facts.ML_CHEESEMAN_STUTZ, abs=1e-7)
    found = cheeseman_stutz(evaluation)
    assert found.value == approx(facts.MAP_CHEESEMAN_STUTZ, abs=1e-7)
    assert (found.form, found.is_lower_bound) == ("map", True)


@pytest.mark.parametrize("form", ["ml", "map", "vb"])
def test_definitions_at_any_point(form, rng):
    """Also far from convergence, where CS is no less a bound."""
    for _ in range(25):
        problem = random_problem(rng, max_completions=2**10)
        network, data, prior = problem
        evaluation = evaluation_of(problem, n_init=1, max_iter=3)
        log_tables = logs(FastNetwork(network, prior).tables(evaluation.point(form)))
        cs, completed = cheeseman_stutz(evaluation, form=form), mled(evaluation, form=form)
        assert cs.value == approx(scores.cheeseman_stutz(network, log_tables, data, prior), abs=1e-8)
        assert completed.value == approx(scores.mled(network, log_tables, data, prior), abs=1e-8)
        assert cs.details["entropy"] == approx(cs.value - completed.value, abs=1e-10)
        assert completed.value <= cs.value


def test_vb_started_from_its_posterior_starts_at_its_value():
    evaluation = evaluation_of(Problem(LC2, facts.TWENTY_ROWS, uniform_prior(LC2)), n_init=10)
    for form in ("ml", "map"):
        ascent = DirichletAscent(evaluation.model, evaluation.data, FORMS["vb"])
        point = evaluation.point(form)
        counts = evaluation.model.expect(np.log(point)[:, None], evaluation.data).statistics
        q = evaluation.model.prior + counts[:, 0]
        # after the M step the plain bound is H(q) + ln BD; after the next E step it is no less
        first = run(ascent, counts, tol=0.0, max_iter=2).traces[0][0]
        assert first >= cheeseman_stutz(evaluation, form=form).value - 1e-12
        assert first == approx(
            float(evaluation.model.expect(q.expected_natural()[:, None], evaluation.data).log_normalizer[0])
            - float(q.kl(evaluation.model.prior)),
            abs=1e-11,
        )
        assert run(ascent, counts, tol=0.0, max_iter=10_000).objective[0] == approx(facts.VB_BOUND, abs=1e-10)


def test_the_dagger_adds_what_is_not_identified():
    model = bipartite_network(("1", "1", "12", "12"))
    evaluation = evaluate(model, drawn_rows(model, 60, np.random.default_rng(0), ("s1", "s2")), ("s1", "s2"), n_init=2)
    plain, dagger = cheeseman_stutz(evaluation), cheeseman_stutz(evaluation, corrected=True)
    assert dagger.value - plain.value == approx(1.5 * math.log(60), abs=1e-10)
    assert (dagger.kind, dagger.is_lower_bound, dagger.n_free_parameters) == ("cheeseman_stutz_dagger", False, 47)
    identified = bipartite_network(("1", "2", "12", "12"))
    evaluation = evaluate(
        identified, drawn_rows(model, 60, np.random.default_rng(0), ("s1", "s2")), ("s1", "s2"), n_init=2
    )
    assert cheeseman_stutz(evaluation).value == cheeseman_stutz(evaluation, corrected=True).value


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_default_mixtures_against_quadrature(covariance_type):
    """Hidden scales, and the weight of means, are integrated out of the evidence of the completed rows."""
    rng = np.random.default_rng(20261127)
    X = np.r_[rng.normal(size=(9, 1)), rng.normal(4.0, 0.5, size=(6, 1))]
    if covariance_type == "diag":
        X = np.c_[X, rng.normal(size=15)]
    model = VBMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    found = model.log_evidence(X, kind="cheeseman_stutz")
    evaluation = evaluation_of_estimator(model, X)
    emission, prior = evaluation.model.emission, evaluation.model.prior
    natural = prior.natural(evaluation.point("map"))
    responsibilities = at_draw(model, natural).predict_proba(X)
    rows = responsibilities.sum(axis=0)
    unit = 1 / emission.whitener[0] if covariance_type == "full" else emission.unit  # the standard deviations
    assert unit == pytest.approx(X.std(axis=0))
    Z = (X - emission.origin) / unit - emission.mean
    means = responsibilities.T @ Z / rows[:, None]
    squares = np.stack([r @ (Z - mean) ** 2 for r, mean in zip(responsibilities.T, means)])
    log_bd = log_evidence_of_sums(rows, means, squares, dof=3.0, hyper_dof=1.0, floor=1e-6 * len(X))
    log_bd += gammaln(3) - gammaln(3 + len(X)) + gammaln(1 + rows).sum() - len(X) * np.log(unit).sum()
    entropy = -(responsibilities * np.log(np.maximum(responsibilities, 1e-300))).sum()
    assert found.standard_error < 0.011
    assert abs(found.value - log_bd - entropy) < 4 * found.standard_error
    assert abs(model.log_evidence(X, kind="mled").value - log_bd) < 4 * found.standard_error
