"""Strengths of priors: never worse, best of their kind, and within limits."""

from itertools import pairwise

import numpy as np
import pytest
from bridge import fitted, published
from laws.problems import enumerable, larger
from reference import discrete_network as literal
from reference import facts
from reference.discrete_network import Problem, uniform_prior
from scipy.optimize import minimize_scalar

from skvbem.families import Dirichlet
from skvbem.vbem.hyperparameters import STRENGTHS, strengthened

approx = pytest.approx


def one_group(base, counts, prior=None):
    prior = base if prior is None else prior
    return strengthened(prior, np.asarray(counts, dtype=float), base, np.array([0, base.n_rows]))


def test_the_score_never_falls(rng):
    """From the base, and from any multiple of it, group by group."""
    for _ in range(100):
        rows = rng.integers(2, 5, size=6)
        base = Dirichlet.from_rows([rng.uniform(0.1, 3, size=k) for k in rows])
        groups = np.array([0, 1, 4, 6])
        strengths = np.exp(rng.normal(size=3))
        of_cell = np.repeat(np.repeat(strengths, np.diff(groups)), rows)
        prior = Dirichlet(base.concentration * of_cell, base.row_starts)
        counts = rng.exponential(10.0 ** rng.uniform(-1, 2), size=len(of_cell))
        better = strengthened(prior, counts, base, groups)
        assert better.log_evidence(counts) >= prior.log_evidence(counts)
        ratio = better.concentration / base.concentration
        for first, last in pairwise(groups):
            cells = slice(base.row_starts[first], base.row_starts[last])
            assert ratio[cells] == approx(np.full(cells.stop - cells.start, ratio[cells][0]))
            assert STRENGTHS[0] * (1 - 1e-9) <= ratio[cells][0] <= STRENGTHS[1] * (1 + 1e-9)


def test_one_node_gets_its_best_strength():
    """Against an optimizer of the Dirichlet-multinomial likelihood from many starts."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        theta = rng.dirichlet(np.full(3, rng.uniform(0.3, 3)), size=6)
        counts = np.stack([rng.multinomial(rng.integers(5, 60), t) for t in theta]).astype(float).ravel()
        base = Dirichlet.from_rows(np.ones((6, 3)))

        def loss(s, base=base, counts=counts):
            return -float(Dirichlet(np.exp(s) * base.concentration, base.row_starts).log_evidence(counts))

        low, high = np.log(STRENGTHS)
        edges = np.linspace(low, high, 9)
        best = min(minimize_scalar(loss, bounds=pair, method="bounded").fun for pair in pairwise(edges))
        found = one_group(base, counts)
        assert -float(found.log_evidence(counts)) <= best + 1e-5


def test_balanced_counts_want_a_rigid_prior_and_get_the_limit():
    """The score rises without end: the search is bounded."""
    base = Dirichlet.from_rows(np.ones((4, 2)))
    found = one_group(base, np.full(8, 10.0))
    assert found.concentration == approx(np.full(8, STRENGTHS[1]), rel=1e-2)


def test_rows_of_one_category_each_want_a_sparse_prior():
    base = Dirichlet.from_rows(np.ones((6, 3)))
    counts = np.zeros((6, 3))
    counts[np.arange(6), np.arange(6) % 3] = 20.0
    assert one_group(base, counts.ravel()).concentration.max() < 0.1


def test_learning_raises_the_bound_step_by_step():
    for number in range(10):
        problem = larger(number)
        plain = fitted(problem, n_init=3, tol=1e-6, random_state=0)
        learned = fitted(problem, n_init=3, tol=1e-6, random_state=0, learn_prior=True)
        assert learned.lower_bound_ >= plain.lower_bound_ - 1e-5
        falls = np.minimum(np.diff(learned.lower_bounds_), 0)
        assert falls.min(initial=0.0) >= -1e-9 * (abs(learned.lower_bound_) + 200 * len(problem.network.cards))
        assert learned.lower_bounds_[-1] == learned.lower_bound_


def test_the_learned_bound_is_one_under_the_learned_prior():
    """The published prior, posterior and bound belong together; below the evidence given that prior."""
    for number in range(15):
        problem = enumerable(number, hidden=True)
        model = fitted(problem, n_init=2, random_state=0, learn_prior=True)
        prior, posterior = (published(problem.network, tables) for tables in (model.prior_, model.posterior_))
        counts = literal.each(np.subtract, posterior, prior)
        exact = literal.objective_after_e(literal.vb, problem.network, problem.data, prior, counts)
        assert model.lower_bound_ == approx(exact, rel=1e-8)
        evidence = literal.exact_log_evidence(problem.network, problem.data, prior)
        assert model.lower_bound_ <= evidence + 1e-7 * (1 + abs(evidence))
        for node, table in prior.items():
            ratio = table / problem.prior[node]
            assert ratio == approx(np.full(ratio.shape, ratio.flat[0]))


def test_balanced_data_keep_the_strengths_within_limits():
    """Balanced margins let the bound rise with the strength for ever."""
    network = facts.latent_class(2, (2, 2, 2))
    model = fitted(
        Problem(network, facts.TWENTY_ROWS, uniform_prior(network)), n_init=5, random_state=0, learn_prior=True
    )
    assert np.isfinite(model.lower_bound_)
    for table in published(network, model.prior_).values():
        assert STRENGTHS[0] * 0.99 <= table.min() <= table.max() <= STRENGTHS[1] * 1.01


def test_some_start_met_the_best_before_priors_were_learned():
    """The record of the starts is one of bounds that compare."""
    model = fitted(larger(2), n_init=5, random_state=0, learn_prior=True)
    assert 1 <= model.restarts_.n_best <= 5


def test_only_bounds_learn_priors():
    problem = larger(0)
    for method in ("map", "ml"):
        with pytest.raises(ValueError, match=r"learn_prior=True .* needs method='vb'"):
            fitted(problem, method=method, learn_prior=True)
