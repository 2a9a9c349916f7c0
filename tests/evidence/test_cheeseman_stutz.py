"""Cheeseman-Stutz, its dagger and MLED against definitions, and the variational bound that starts from it."""

import math

import numpy as np
import pytest
from bridge import FORMS, FastNetwork
from evidence.evaluations import bipartite_network, drawn_rows, evaluate, evaluation_of
from reference import facts, scores
from reference.discrete_network import Problem, logs, uniform_prior
from reference.random_networks import random_problem

from skvbem.evidence.cheeseman_stutz import cheeseman_stutz, mled
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
