"""What joining two hidden nodes gains, against the definition: one update of their joint q, all else as it is."""

from itertools import combinations

import numpy as np
import pytest
from bridge import rows_of
from models.network.test_structured import problems
from reference import clusters as literal
from reference import discrete_network as reference
from reference.random_networks import random_tables

from skvbem.graphs.dag import DAG
from skvbem.models.network.clusters import Partition, joined, leaves_a_choice
from skvbem.models.network.division import merge_gains
from skvbem.models.network.layout import Layout

approx = pytest.approx


def literal_gains(network, log_tables, data, n_sweeps=300):
    """Pair of hidden nodes -> the rise of the free energy of all rows at one joint update after mean field."""
    gains = {}
    for row, weight in data.rows():
        q = literal.uniform(network, literal.parts_of(network, row, []))
        before = -np.inf
        if not q:
            continue
        for _ in range(n_sweeps):
            q, after = literal.sweep(network, log_tables, row, q)
            if after[-1] - before < 1e-13:
                break
            before = after[-1]
        for a, b in combinations(q, 2):
            pair = literal.uniform(network, [a + b])
            both = literal.update(
                network, log_tables, row, {k: v for k, v in q.items() if k not in (a, b)} | pair, a + b
            )
            rise = literal.free_energy(network, log_tables, row, both) - after[-1]
            gains[a + b] = gains.get(a + b, 0.0) + weight * rise
    return gains


def test_gains_are_those_of_one_joint_update(rng):
    n_large = 0
    for fast, data, _, _ in problems(rng, 5, n_nodes=5, n_rows=2, max_card=2):
        model = fast.model.with_partition(Partition())
        log_tables = reference.each(np.log, random_tables(rng, fast.network))
        natural, program = fast.lanes(log_tables), model.compile(rows_of(data))
        state = program.uniform(1)
        for _ in range(300):
            state = program.swept(natural, state)[2]
        found = merge_gains(program.started(state[:, 0]), natural[:, 0])
        names = model.layout.names
        expected = literal_gains(fast.network, log_tables, data)
        for pair, gain in expected.items():
            a, b = sorted(model.position[node] for node in pair)
            assert found.get((a, b), 0.0) == approx(gain, abs=1e-6)
            n_large += gain > 1e-3
        assert {frozenset(names[k] for k in pair) for pair in found} <= set(map(frozenset, expected))
        assert min(found.values()) >= 0.0
    assert n_large > 1


def ring():
    """Four causes in a ring: only neighbors share an item."""
    parents = {f"h{k}": () for k in range(4)} | {f"x{k}": (f"h{k}", f"h{(k + 1) % 4}") for k in range(4)}
    dag = DAG(list(parents), parents)
    position = {node: k for k, node in enumerate(dag.nodes)}
    families = tuple(tuple(position[p] for p in dag.parents(node)) for node in dag.nodes)
    return Layout(dag.nodes, (2,) * 8, families)


def test_gains_come_after_edges_and_before_families():
    layout, hidden = ring(), [0, 1, 2, 3]
    assert joined(layout, hidden, 4) == ((0, 1, 3), (2,))
    assert joined(layout, hidden, 4, {(1, 2): 0.2, (2, 3): 0.1}) == ((0,), (1, 2, 3))
    assert leaves_a_choice(layout, hidden, ((0, 1), (2, 3)))
    assert not leaves_a_choice(layout, hidden, ((0, 1, 2, 3),))
    chain = Layout(("a", "b", "c", "x"), (2,) * 4, ((), (0,), (), (1, 2)))
    assert joined(chain, [0, 1, 2], 4, {(1, 2): 9.0}) == ((0, 1, 2),)
    assert joined(Layout(("a", "b", "c", "x"), (4,) * 4, ((), (0,), (), (1, 2))), [0, 1, 2], 15) == ((0,), (1,), (2,))
    assert not leaves_a_choice(Layout(("a", "b", "x"), (2,) * 3, ((), (0,), (1,))), [0, 1], ((0,), (1,)))
