"""Rows that miss different cells and share a plan, against a plan for each pattern of missing cells."""

from functools import partial

import numpy as np
import pytest

from skvbem.data import Rows
from skvbem.graphs.dag import DAG
from skvbem.models.network import compiler, queries
from skvbem.models.network.information import score_covariance
from skvbem.models.network.joint_states import completions, log_evidence_by_enumeration
from skvbem.models.network.marginals import row_marginals
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.sampling import NetworkBatches

approx = pytest.approx

#: Observed nodes have lower-case names. Hidden nodes; below them leaves, alone, with observed parents or with two.
GRAPHS = {
    "latent class": {"a": ["H"], "b": ["H"], "c": ["H"], "d": ["H"], "H": []},
    "leaves with observed parents": {"a": [], "b": ["H", "a"], "c": ["H", "a"], "d": ["H"], "e": ["a"], "H": ["a"]},
    "two hidden nodes": {"a": ["G", "H"], "b": ["G"], "c": ["H"], "d": ["G", "H"], "G": [], "H": []},
    "a parent of one leaf": {"a": [], "b": ["H", "a"], "c": ["H"], "d": ["H"], "H": []},
    "a tree": {"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": ["b"], "f": ["b"]},
    "parents apart": {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["b"], "e": ["b", "a"], "f": ["b"]},
}


@pytest.fixture(params=GRAPHS)
def problem(request, rng):
    """A network with a prior drawn at random, and rows of which a third of the cells are missing."""
    dag = DAG(sorted(GRAPHS[request.param]), GRAPHS[request.param])
    cards = {node: 2 + k % 2 for k, node in enumerate(dag.nodes)}
    prior = {
        node: rng.gamma(2.0, 1.0, [*(cards[parent] for parent in dag.parents(node)), cards[node]]) for node in dag.nodes
    }
    observed = tuple(node for node in dag.nodes if node.islower())
    codes = np.stack([rng.integers(0, cards[node], 60) for node in observed], axis=1).astype(np.int8)
    codes[rng.random(codes.shape) < 0.33] = -1
    return DiscreteDAG(dag, cards, prior), Rows(observed, codes, rng.integers(1, 3, 60).astype(float))


def both(monkeypatch, compute):
    """What is computed as it is, and where every pattern has a plan of its own."""
    shared = compute()
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "_WORTH_A_PLAN", -1)
        return shared, compute()


def test_patterns_share_plans(problem, monkeypatch):
    """There are fewer plans, and as many contexts: those alike in all values that their tables need are one."""
    model, rows = problem
    shared, apart = both(monkeypatch, lambda: model.compile(rows))
    assert len(shared.plans) < len(apart.plans)
    assert shared.contraction.n_contexts == apart.contraction.n_contexts


def test_steps_are_the_same(problem, monkeypatch, rng):
    model, rows = problem
    natural = np.log(np.stack([model.random_point(rng) for _ in range(3)], axis=1))
    natural[:, 1] *= 300.0  # normalizers that leave the safe range
    shared, apart = both(monkeypatch, lambda: model.expect(natural, model.compile(rows)))
    assert shared.log_normalizer == approx(apart.log_normalizer, rel=1e-12)
    assert shared.statistics == approx(apart.statistics, rel=1e-10, abs=1e-10)


def test_batches_of_rows_are_the_same(problem, monkeypatch, rng):
    """All units of one batch, whatever their order, are the data themselves."""
    model, rows = problem
    natural = np.log(model.random_point(rng))[:, None]
    data, batches = model.compile(rows), NetworkBatches()
    order = batches.order(data, rng)
    half, rest = (model.expect(natural, batches.batch(data, part, len(order))) for part in np.array_split(order, 2))
    whole = model.expect(natural, data)
    known = batches.known(data)[:, None]
    assert half.statistics + rest.statistics - known == approx(whole.statistics, abs=1e-10)


def test_queries_are_the_same(problem, monkeypatch, rng):
    """Likelihoods of rows, marginals of hidden and missing nodes, the most probable completion."""
    model, rows = problem
    point = model.random_point(rng)
    hidden = [node for node in model.dag.nodes if node not in rows.names]
    for compute in (
        lambda: {"log": queries.log_likelihood(model, point, rows)},
        lambda: queries.marginals(model, point, rows, model.dag.nodes),
        lambda: queries.marginals(model, point, rows, hidden or ["a"]),
        lambda: queries.joint_mode(model, point, rows, hidden or ["a"]),
    ):
        shared, apart = both(monkeypatch, compute)
        for key, values in apart.items():
            assert shared[key] == approx(values, abs=1e-12)


def test_information_is_the_same(problem, monkeypatch, rng):
    """Probabilities of table cells row by row, which linear response takes, and covariances of scores."""
    model, rows = problem
    point = model.random_point(rng)
    shared, apart = both(monkeypatch, lambda: row_marginals(model.compile(rows), np.log(point)))
    assert shared.starts.tolist() == apart.starts.tolist()
    by_cell = [np.add.reduceat(m.probability * m.weight[m.context] ** 2, m.starts[:-1]) for m in (shared, apart)]
    assert by_cell[0] == approx(by_cell[1], abs=1e-10)
    for joint in (True, False):
        covariance = partial(score_covariance, point, joint=joint)
        shared, apart = both(monkeypatch, lambda of=covariance: of(model.compile(rows)))
        for one, other in zip(shared, apart, strict=True):
            assert one.free.tolist() == other.free.tolist()
            assert one.covariance == approx(other.covariance, abs=1e-10)


def test_sums_over_completions_are_the_same(problem, monkeypatch):
    model, rows = problem
    few = Rows(rows.names, rows.codes[:5], rows.weight[:5])
    shared, apart = both(monkeypatch, lambda: completions(model.compile(few), 10**8))
    assert sorted(group.n_terms for group in shared) == sorted(group.n_terms for group in apart)
    shared, apart = both(monkeypatch, lambda: log_evidence_by_enumeration(model, model.compile(few), 10**8))
    assert shared == approx(apart, rel=1e-12)


def test_patterns_of_many_rows_keep_their_plans(monkeypatch):
    """Two halves of a table with few columns in common: neither multiplies what the other has."""
    dag = DAG(["H", "a", "b", "c"], {name: ["H"] for name in "abc"})
    cards = dict.fromkeys(dag.nodes, 2)
    model = DiscreteDAG(dag, cards, {node: np.ones([2] * (1 + len(dag.parents(node)))) for node in dag.nodes})
    codes = np.zeros((2000, 3), dtype=np.int8)
    codes[:1000, 0] = codes[1000:, 2] = -1
    data = Rows(("a", "b", "c"), codes)
    assert [plan.families for plan in model.compile(data).plans] == [(0, 1, 2, 3)]
    monkeypatch.setattr(compiler, "_WORTH_A_PLAN", 500)
    assert [plan.families for plan in model.compile(data).plans] == [(0, 1, 2), (0, 2, 3)]
