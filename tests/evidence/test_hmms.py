"""Relabelings of the states of hidden Markov models, listed or picked in turn."""

import numpy as np
import pytest
from emissions.members import PROBLEMS
from laws.chains import hmm, symmetric
from laws.labels import random_starts

from skvbem.models import capabilities_of
from skvbem.models.hmm.model import HMMAscent
from skvbem.models.hmm.transitions import Transitions, left_to_right
from skvbem.testing.cases import evaluation_from

approx = pytest.approx


def evaluation_of(problem, prior, lengths, rng, seed=0, weight=None, tol=1e-6):
    """A fit as scores take it."""
    return evaluated(*hmm(problem, prior, lengths, weight), rng, seed, tol)


def evaluation_with(model, table, lengths, rng):
    """The same of a model at hand."""
    return evaluated(model, model.compile(table, lengths), rng, 0, 1e-10)


def evaluated(model, data, rng, seed, tol):
    """A model on its data, fitted from random starts."""
    starts = random_starts(model, data, rng, 5)
    return evaluation_from(starts, HMMAscent, model, data, ("state",), seed=seed, tol=tol)


@pytest.mark.parametrize("name", ["diag", "tied", "independent"])
def test_relabelings_are_those_that_leave_the_prior_alone(name, rng):
    """All permutations of states that priors take for alike, rows and columns of transitions together."""
    problem = PROBLEMS[name](rng, n_rows=6)
    for prior, n in (
        (symmetric(rng, 3), 6),
        ((Transitions(np.array([[1.0, 2.0, 1.0]])), Transitions(np.ones((3, 3)))), 1),
        ((Transitions(np.ones((1, 3))), Transitions(np.arange(1.0, 10).reshape(3, 3))), 1),
        ((Transitions(np.eye(3)[:1]), Transitions.symmetric(3, 1.0, left_to_right(3))), 1),
    ):
        model, data = hmm(problem, prior, [4, 2])
        found = capabilities_of(model).relabelings.relabelings(("state",))
        assert found.n == n
        start = random_starts(model, data, rng, 1)[:, 0]
        for cells in found.cells:
            assert model.prior.log_evidence(start[cells]) == approx(model.prior.log_evidence(start), rel=1e-12)
            natural = (model.prior + start[cells]).expected_natural()[:, None]
            other = (model.prior + start).expected_natural()[:, None]
            one, two = model.expect(natural, data), model.expect(other, data)
            assert one.log_normalizer == approx(two.log_normalizer, rel=1e-10)


def test_more_states_than_permutations_can_be_listed(rng):
    """States pick their places in turn: the correction averages to one over the relabelings of a point."""
    problem = PROBLEMS["categorical"](rng, n_rows=12)
    model, data = hmm(problem, symmetric(rng, 4), [12])
    listed, picked = (
        capabilities_of(model).relabelings.relabelings(("state",)),
        capabilities_of(model).relabelings.relabelings(("state",), limit=10),
    )
    statistics = random_starts(model, data, rng, 1)[:, 0]
    point = model.prior.natural((model.prior + statistics).sample(rng))
    of_relabelings = np.stack([point[cells] for cells in listed.cells], axis=1)
    assert np.exp(picked.correction(statistics, of_relabelings)).mean() == approx(1.0)
    drawn = picked.draw(statistics, point, rng)
    assert any(np.array_equal(drawn, other) for other in of_relabelings.T)
