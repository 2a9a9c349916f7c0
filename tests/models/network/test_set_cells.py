"""Rows in which an experimenter set nodes, against sums over all completions without the factors of these nodes."""

from itertools import product

import numpy as np
import pytest
from bridge import FastNetwork
from reference.random_networks import random_network, random_prior
from scipy.special import logsumexp

from skvbem.data import Rows
from skvbem.graphs.dag import DAG
from skvbem.models.network import compiler, queries
from skvbem.models.network.clusters import Partition
from skvbem.models.network.completed_rows import complete_rows
from skvbem.models.network.joint_states import log_evidence_by_enumeration
from skvbem.models.network.marginals import row_marginals
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.sampling import NetworkSampler

approx = pytest.approx


def problem(rng, n_nodes=5, n_hidden=2, n_rows=12, missing=0.25, are_set=0.3):
    """A network at random, and rows with cells that are missing, or were set."""
    network, columns = random_network(rng, n_nodes, n_hidden=n_hidden)
    cells = np.stack([rng.integers(0, network.cards[name], n_rows) for name in columns], axis=1)
    is_set = rng.random(cells.shape) < are_set
    cells[~is_set & (rng.random(cells.shape) < missing)] = -1
    codes = (cells + is_set * np.array([network.cards[name] for name in columns])).astype(np.int8)
    return FastNetwork(network, random_prior(rng, network)), Rows(
        columns, codes, rng.integers(1, 4, n_rows).astype(float)
    )


def literal_rows(network, rows):
    """Of each row its cells, which of them were set, and its weight."""
    for codes, weight in zip(rows.codes.tolist(), rows.weight.tolist()):
        known = {name: code % network.cards[name] for name, code in zip(rows.names, codes) if code >= 0}
        yield known, {name for name, code in zip(rows.names, codes) if code >= network.cards[name]}, weight


def counted(network, known, are_set):
    """The nodes whose factors a row has: observed ones that were not set, and what these descend from."""
    nodes, waiting = set(), [node for node in known if node not in are_set]
    while waiting:
        node = waiting.pop()
        if node not in nodes and node not in are_set:
            nodes.add(node)
            waiting += network.parents[node]
    return nodes


def completions(network, known, nodes):
    """Every state of some nodes and their parents that agrees with what is known."""
    names = sorted({*nodes, *(parent for node in nodes for parent in network.parents[node])})
    states = [[known[name]] if name in known else range(network.cards[name]) for name in names]
    return [dict(zip(names, each)) for each in product(*states)]


def literal_step(fast, log_point, rows):
    """ln Z and expected counts, by the definition."""
    network = fast.network
    tables, counts, total = fast.tables(log_point), network.full(0.0), 0.0
    for known, are_set, weight in literal_rows(network, rows):
        nodes = counted(network, known, are_set)
        ways = completions(network, known, nodes)
        terms = [sum(tables[node][network.cell(node, way)] for node in nodes) for way in ways]
        total += weight * logsumexp(terms)
        for way, p in zip(ways, np.exp(np.array(terms) - logsumexp(terms))):
            for node in nodes:
                counts[node][network.cell(node, way)] += weight * p
    return total, fast.flat(counts)


@pytest.mark.parametrize("worth_a_plan", [2**12, -1])
def test_e_steps_by_definition(rng, monkeypatch, worth_a_plan):
    """With parameters that are not normalized, so that what must be pruned shows."""
    monkeypatch.setattr(compiler, "_WORTH_A_PLAN", worth_a_plan)
    for _ in range(15):
        fast, rows = problem(rng, int(rng.integers(3, 7)), int(rng.integers(0, 3)))
        model = fast.model
        natural = rng.normal(size=model.layout.n_cells) - 0.5
        expected = model.expect(natural[:, None], model.compile(rows))
        log_z, counts = literal_step(fast, natural, rows)
        assert expected.log_normalizer[0] == approx(log_z, rel=1e-11, abs=1e-11)
        assert expected.statistics[:, 0] == approx(counts, rel=1e-10, abs=1e-10)


def mutilated(fast, are_set):
    """The model without edges into some nodes, and where its cells lie: past the last one for those of these nodes."""
    model = fast.model
    dag = DAG(model.dag.nodes, {node: () if node in are_set else model.dag.parents(node) for node in model.dag.nodes})
    cards = dict(zip(model.layout.names, model.layout.cardinalities))
    ones = {node: np.ones([cards[member] for member in dag.family(node)]) for node in dag.nodes}
    other = DiscreteDAG(dag, cards, ones)
    cells = other.flat(
        {
            node: np.full(ones[node].shape, model.layout.n_cells)
            if node in are_set
            else model.layout.table(np.arange(model.layout.n_cells), model.position[node])
            for node in dag.nodes
        }
    )
    return other, cells.astype(int)


@pytest.mark.parametrize("partition", [Partition(), Partition(rows_alone=True)])
def test_clusters_are_those_of_mutilated_graphs(rng, partition):
    """Sweeps over clusters of rows with the same nodes set, against a graph without edges into these nodes."""
    n_divided = 0
    for _ in range(10):
        fast, rows = problem(rng, 6, 3, n_rows=8, missing=0.1)
        model = fast.model.with_partition(partition)
        natural = np.append(rng.normal(size=model.layout.n_cells) - 0.5, 0.0)
        found = model.expect(natural[:-1, None], data := model.compile(rows))
        n_divided += not data.is_exact
        total, counts = 0.0, np.zeros(len(natural))
        sizes = np.array([fast.network.cards[name] for name in rows.names])
        for codes, weight in zip(rows.codes, rows.weight):
            other, cells = mutilated(fast, {name for name, here in zip(rows.names, codes >= sizes) if here})
            other = other.with_partition(partition)
            row = Rows(rows.names, (np.where(codes >= sizes, codes - sizes, codes))[None].astype(np.int8), weight[None])
            step = other.expect(natural[cells][:, None], other.compile(row))
            total += step.log_normalizer[0]
            np.add.at(counts, cells, step.statistics[:, 0])
        assert found.log_normalizer[0] == approx(total, rel=1e-7)
        assert found.statistics[:, 0] == approx(counts[:-1], rel=1e-3, abs=1e-3)
    assert n_divided > 2


def test_questions_by_definition(rng):
    """Likelihoods, marginals and modes of rows."""
    for _ in range(10):
        fast, rows = problem(rng, int(rng.integers(3, 6)), int(rng.integers(0, 3)))
        network, model = fast.network, fast.model
        point = model.random_point(rng)
        tables = fast.tables(np.log(point))
        logs = queries.log_likelihood(model, point, rows)
        hidden = tuple(node for node in model.dag.nodes if node not in rows.names)
        marginals = queries.marginals(model, point, rows, model.dag.nodes)
        modes = queries.joint_mode(model, point, rows, model.dag.nodes)
        drawn = queries.drawn(model, point, rows, model.dag.nodes, rng)
        for k, (known, are_set, _) in enumerate(literal_rows(network, rows)):
            every = set(network.cards) - are_set
            ways = completions(network, known, {*every, *hidden})
            terms = np.array([sum(tables[node][network.cell(node, way)] for node in every) for way in ways])
            assert logs[k] == approx(logsumexp(terms), rel=1e-11)
            for node in {*every, *known} & {*ways[0]}:
                states = [way[node] for way in ways]
                p = np.bincount(states, np.exp(terms - logs[k]), network.cards[node])
                assert marginals[node][k] == approx(p, abs=1e-11)
            mode = {node: int(modes[node][k]) for node in network.cards}
            best = sum(tables[node][network.cell(node, mode)] for node in every)
            assert best == approx(terms.max(), rel=1e-11)
            assert all(mode[node] == state == drawn[node][k] for node, state in known.items())


def completed_counts(fast, natural, log_mean, rows):
    """Expected counts of rows without gaps: nodes that the E step leaves out follow the means of their tables."""
    network = fast.network
    expected, mean, counts = fast.tables(natural), fast.tables(log_mean), network.full(0.0)
    for known, are_set, weight in literal_rows(network, rows):
        kept, every = counted(network, known, are_set), network.cards.keys() - are_set
        ways = completions(network, known, network.cards)
        terms = [sum((expected if n in kept else mean)[n][network.cell(n, way)] for n in every) for way in ways]
        for way, p in zip(ways, np.exp(np.array(terms) - logsumexp(terms))):
            for node in every:
                counts[node][network.cell(node, way)] += weight * p
    return fast.flat(counts)


def test_completions_by_definition(rng):
    """Of rows, of q(x): expected counts, the bound on the evidence of another graph, and the exact evidence."""
    for _ in range(10):
        fast, rows = problem(rng, 4, int(rng.integers(0, 2)), n_rows=4, missing=0.1)
        model = fast.model
        counts = rng.exponential(5.0, model.layout.n_cells)
        completed = complete_rows(model, counts, rows)
        posterior = model.prior + counts
        natural = posterior.expected_natural()
        log_z, expected = literal_step(fast, natural, rows)
        statistics = completed.statistics(model)
        assert statistics == approx(completed_counts(fast, natural, np.log(posterior.mean()), rows), abs=1e-9)
        program = model.compile(rows)
        exact = log_evidence_by_enumeration(model, program, 2**20)[0]
        assert completed.entropy + float(model.prior.log_normalizer_increment(statistics)) <= exact + 1e-9
        drawn = NetworkSampler(model).log_likelihoods(program, np.log(points := model.random_point(rng))[:, None])
        assert drawn[0] == approx(literal_step(fast, np.log(points), rows)[0], rel=1e-10)
        of_rows, n_cells = row_marginals(program, natural), model.layout.n_cells
        target = np.repeat(np.arange(len(of_rows.starts) - 1), np.diff(of_rows.starts))
        by_target = np.bincount(target, of_rows.probability * of_rows.weight[of_rows.context], len(of_rows.starts) - 1)
        assert (by_target + of_rows.known)[:n_cells] == approx(expected, abs=1e-9)
        assert log_z < 0


def test_exact_evidence_by_definition(rng):
    """The sum over all completions of all rows, of the evidence of the counts without those of nodes that were set."""
    for _ in range(10):
        fast, rows = problem(rng, 4, 1, n_rows=4, missing=0.1)
        network, model = fast.network, fast.model
        ways = []
        for known, are_set, weight in literal_rows(network, rows):
            nodes = counted(network, known, are_set)
            ways += [[(way, nodes) for way in completions(network, known, nodes)]] * int(weight)
        total = []
        for each in product(*ways) if np.prod([len(w) for w in ways]) < 5000 else ():
            counts = network.full(0.0)
            for way, nodes in each:
                for node in nodes:
                    counts[node][network.cell(node, way)] += 1
            total.append(float(model.prior.log_evidence(fast.flat(counts))))
        if total:
            assert log_evidence_by_enumeration(model, model.compile(rows), 2**20)[0] == approx(
                logsumexp(total), rel=1e-10
            )


def test_simulated_rows_have_the_same_cells_set(rng):
    """Children follow what their parent was set to."""
    dag = DAG(["x", "y"], {"y": ["x"]})
    model = DiscreteDAG(dag, {"x": 2, "y": 2}, {"x": np.ones(2), "y": np.ones((2, 2))})
    point = model.flat({"x": [1.0, 0.0], "y": [[1.0, 0.0], [0.0, 1.0]]})
    like = Rows(("x", "y"), np.array([[3, 0], [0, 1], [2, 3]], dtype=np.int8))
    drawn = queries.sample(model, point, 3, rng, like)
    assert drawn["x"].tolist() == [1, 0, 0]
    assert drawn["y"].tolist() == [1, 0, 1]
