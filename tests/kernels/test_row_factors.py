"""Factors that belong to one context each, against sums over all joint states of what is hidden in a row."""

from itertools import product

import numpy as np
import pytest

from skvbem._kernels._workspace import Workspace
from skvbem.models.network import assembly
from skvbem.models.network.compiler import Compiler
from skvbem.models.network.layout import Layout

approx = pytest.approx


class RandomNetwork:
    """Nodes with tables, the first never observed, leaves with emissions, rows with gaps, numbers for everything."""

    def __init__(self, rng, n_rows=9, scale=1.0, spread=0.0):
        n_tables, n_leaves = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        sizes = (*rng.integers(1, 4, n_tables).tolist(), *[1] * n_leaves)
        parents = [_some(rng, k, 2) for k in range(n_tables)] + [_some(rng, n_tables, 3) for _ in range(n_leaves)]
        self.layout = Layout(tuple(f"x{k}" for k in range(len(sizes))), sizes, tuple(parents), n_leaves)
        self.columns = {k: rng.integers(0, sizes[k], n_rows) for k in range(1, len(sizes))}
        for codes in self.columns.values():
            codes[rng.random(n_rows) < 0.3] = -1
        self.weight = rng.uniform(0.2, 3.0, n_rows)
        self.natural = rng.normal(size=(self.layout.n_table_cells, 2))
        self.natural -= spread * np.abs(self.natural)
        of_parents = [np.prod([sizes[p] for p in parents[leaf]], dtype=int) for leaf in range(n_tables, len(sizes))]
        self.logs = [scale * rng.normal(size=(2, n_rows, n)) for n in of_parents]

    def program(self):
        return Compiler(self.layout).compile(dict(self.columns), len(self.weight), self.weight, keep_rows=True)

    def leaf_state(self, leaf, states):
        """The joint state of the parents of a leaf."""
        shape = [self.layout.cardinalities[p] for p in self.layout.parents[leaf]]
        return int(np.ravel_multi_index([states[p] for p in self.layout.parents[leaf]], shape)) if shape else 0

    def literal(self, lane):
        """ln Z of each row, expected counts of table cells, and of parents' states of each leaf, row by row."""
        layout, n_tables = self.layout, self.layout.n_tables
        log_z, counts = np.zeros(len(self.weight)), np.zeros(layout.n_table_cells)
        of_leaves = [np.zeros(logs.shape[1:]) for logs in self.logs]
        for row, weight in enumerate(self.weight):
            seen = {k: codes[row] for k, codes in self.columns.items() if codes[row] >= 0}
            kept = self.kept(seen)
            hidden = [k for k in kept if k not in seen]
            terms = []
            for of_hidden in product(*(range(layout.cardinalities[k]) for k in hidden)):
                states = seen | dict(zip(hidden, of_hidden))
                cells = [
                    layout.first_cell[k] + sum(states[m] * stride for m, stride in layout.strides[k].items())
                    for k in kept
                    if k < n_tables
                ]
                leaves = [(k - n_tables, self.leaf_state(k, states)) for k in kept if k >= n_tables]
                log_p = self.natural[cells, lane].sum() + sum(self.logs[k][lane, row, s] for k, s in leaves)
                terms.append((log_p, cells, leaves))
            log_z[row] = np.logaddexp.reduce([term[0] for term in terms])
            for log_p, cells, leaves in terms:
                p = weight * np.exp(log_p - log_z[row])
                np.add.at(counts, cells, p)
                for k, state in leaves:
                    of_leaves[k][row, state] += p
        return log_z, counts, of_leaves

    def kept(self, seen):
        """Nodes that are observed or have observed descendants, in order."""
        kept = set(seen)
        for k in self.layout.leaves_first:
            if kept & set(self.layout.children[k]):
                kept.add(k)
        return sorted(kept)

    def pieces(self, program, plan, part):
        """Factors of a plan in some of its contexts, as the kernel takes them, and where their cells stand."""
        factors, places = [], []
        rows = plan.row_of_context[part]
        for factor in plan.factors:
            shape = [self.layout.cardinalities[p] for p in factor.hidden]
            states = list(product(*map(range, shape)))
            logs = np.empty((2, len(states), len(rows)))
            where = np.empty((len(states), len(rows)), dtype=int)
            for s, i in product(range(len(states)), range(len(rows))):
                observed = {k: max(codes[rows[i]], 0) for k, codes in self.columns.items()}
                where[s, i] = self.leaf_state(factor.nodes[0], observed | dict(zip(factor.hidden, states[s])))
                of_nodes = [
                    self.logs[node - self.layout.n_tables] for node in factor.nodes if self.columns[node][rows[i]] >= 0
                ]
                logs[:, s, i] = sum(logs_of[:, rows[i], where[s, i]] for logs_of in of_nodes)
            factors.append(logs)
            places.append(where)
        return factors, places


def _some(rng, n, most):
    """A few of the nodes before, in order."""
    return tuple(sorted(rng.choice(n, size=int(rng.integers(0, min(n, most) + 1)), replace=False).tolist()))


def run(network, program, natural, size=4, streams=None):
    """ln Z and counts (n_cells, n_lanes), and of each leaf (n_lanes, n_rows, n_states), by pieces of the contexts."""
    workspace = Workspace(program.contraction, 2)
    workspace.given(np.ascontiguousarray(natural))
    arrays, of_leaves = program.contraction.arrays, [np.zeros(logs.shape) for logs in network.logs]
    for block in range(program.contraction.n_blocks):
        first, last = arrays["block_context"][block : block + 2].tolist()
        number = int(arrays["block_plan"][block])
        plan, at = program.plans[number], int(arrays["plan_context"][number])
        if not plan.factors:
            workspace.block(block)
            continue
        for a in range(first, last, size):
            b = min(a + size, last)
            factors, places = network.pieces(program, plan, slice(a - at, b - at))
            workspace.rows(block, a, b, factors, streams)
            for factor, where, counts in zip(plan.factors, places, factors):
                for node, s, i in product(factor.nodes, range(len(where)), range(b - a)):
                    row = plan.row_of_context[a - at + i]
                    if network.columns[node][row] >= 0:
                        of_leaves[node - network.layout.n_tables][:, row, where[s, i]] += counts[:, s, i]
    counts, log_z = np.empty(natural.shape), np.empty(2)
    workspace.collect(counts, log_z)
    return log_z, counts, of_leaves


@pytest.mark.parametrize(("scale", "spread"), [(1.0, 0.0), (300.0, 0.0), (300.0, 200.0)])
def test_factors_of_contexts_are_summed_as_defined(scale, spread, rng, monkeypatch):
    """ln Z, counts of tables and of the factors' own cells; also where factors rule out what others want."""
    monkeypatch.setattr(assembly, "_BLOCK_WORK", 64)
    n_tried = 0
    for _ in range(60):
        network = RandomNetwork(rng, scale=scale, spread=spread)
        program = network.program()
        n_tried += sum(len(plan.tree.cliques) > 1 and len(plan.factors) > 0 for plan in program.plans)
        log_z, counts, of_leaves = run(network, program, network.natural)
        for lane in range(2):
            exact, exact_counts, exact_leaves = network.literal(lane)
            certain = _of_certain(network, program, lane)
            assert log_z[lane] + certain == approx(network.weight @ exact, rel=1e-11, abs=1e-9)
            assert counts[:, lane] == approx(exact_counts, rel=1e-9, abs=1e-11)
            for ours, literal in zip(of_leaves, exact_leaves):
                hidden = _with_hidden_parents(network, program, ours)
                assert ours[lane][hidden] == approx(literal[hidden], rel=1e-9, abs=1e-11)
    assert n_tried > 3


def _with_hidden_parents(network, program, of_leaf):
    """Rows of a leaf that come in some plan."""
    return of_leaf.sum(axis=(0, 2)) > 0


def _of_certain(network, program, lane):
    """What leaves say where all their parents are observed: no plan has it."""
    total, n_tables = 0.0, network.layout.n_tables
    for k, logs in enumerate(network.logs):
        codes = network.columns[n_tables + k]
        parents = network.layout.parents[n_tables + k]
        for row in np.flatnonzero(codes >= 0):
            states = {p: network.columns[p][row] if p in network.columns else -1 for p in parents}
            if min(states.values(), default=0) >= 0:
                total += network.weight[row] * logs[lane, row, network.leaf_state(n_tables + k, states)]
    return total


def test_pieces_change_no_more_than_rounding(rng):
    """Contexts may come one by one or all at once."""
    network = RandomNetwork(rng, n_rows=40)
    program = network.program()
    at_once, one_by_one = (run(network, program, network.natural, size=size) for size in (100, 1))
    for ours, others in zip(at_once, one_by_one):
        assert np.allclose(ours, others, rtol=1e-12, atol=1e-12)


def test_states_drawn_are_those_of_the_posterior(rng):
    """Means of counts drawn, of tables and of factors, are the expected counts; whole rows are drawn."""
    network = RandomNetwork(rng, n_rows=4)
    while not any(len(plan.factors) > 1 for plan in network.program().plans):
        network = RandomNetwork(rng, n_rows=4)
    network.weight = np.full(4, 3.0)
    program = network.program()
    streams = rng.integers(0, 2**64, size=(4, 2), dtype=np.uint64)
    _, counts, of_leaves = run(network, program, network.natural)
    drawn = [run(network, program, network.natural, streams=streams)[1:] for _ in range(4000)]
    mean = np.mean([each for each, _ in drawn], axis=0)
    assert mean == approx(counts, abs=0.25)
    for k, expected in enumerate(of_leaves):
        each = np.stack([leaves[k] for _, leaves in drawn])
        assert np.array_equal(each, np.round(each))
        assert each.mean(axis=0) == approx(expected, abs=0.15)


def test_posteriors_of_single_contexts(rng):
    """ln Z and clique posteriors of each context, with the factors' marginals in their places."""
    for _ in range(20):
        network = RandomNetwork(rng)
        program = network.program()
        _, _, exact_leaves = network.literal(0)
        workspace = Workspace(program.contraction, 1)
        workspace.given(np.ascontiguousarray(network.natural[:, :1]))
        first = 0
        for plan in program.plans:
            factors, places = network.pieces(program, plan, slice(None))
            factors = [np.ascontiguousarray(factor[:1]) for factor in factors]
            log_z, beliefs = np.empty(plan.n_contexts), np.empty((plan.n_contexts, plan.n_cells))
            workspace.contexts(first, first + plan.n_contexts, log_z, beliefs, factors)
            first += plan.n_contexts
            for factor, where, posterior in zip(plan.factors, places, factors):
                assert posterior.sum(axis=1) == approx(1.0, rel=1e-12)
                for i, row in enumerate(plan.row_of_context):
                    seen = next(node for node in factor.nodes if network.columns[node][row] >= 0)
                    of_leaf = exact_leaves[seen - network.layout.n_tables]
                    expected = of_leaf[row, where[:, i]] / network.weight[row]
                    assert posterior[0, :, i] == approx(expected, rel=1e-9, abs=1e-12)


def test_factors_of_other_shapes_are_refused(rng):
    network = RandomNetwork(rng)
    while not any(plan.factors for plan in network.program().plans):
        network = RandomNetwork(rng)
    program = network.program()
    number = next(k for k, plan in enumerate(program.plans) if plan.factors)
    first = int(program.contraction.arrays["plan_context"][number])
    block = int(np.flatnonzero(program.contraction.arrays["block_plan"] == number)[0])
    workspace = Workspace(program.contraction, 2)
    workspace.given(network.natural)
    with pytest.raises(ValueError, match="need factors of the shapes"):
        workspace.rows(block, first, first + 1, [])
