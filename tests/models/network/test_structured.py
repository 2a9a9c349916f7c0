"""E steps in clusters against their definition: literal sweeps over completions of every row."""

from itertools import pairwise

import numpy as np
import pytest
from bridge import FORMS, FastNetwork, rows_of
from reference import clusters as literal
from reference import discrete_network as reference
from reference.random_networks import random_data, random_network, random_prior, random_tables

from skvbem.data import Rows
from skvbem.evidence.collapsed import _averages
from skvbem.graphs.dag import DAG
from skvbem.models import DirichletAscent
from skvbem.models.network.clusters import Partition, joined, largest_clique
from skvbem.models.network.joint_states import log_evidence_by_enumeration
from skvbem.models.network.layout import Layout
from skvbem.models.network.marginals import NetworkMarginals, latent_entropy, marginals_of_clusters
from skvbem.models.network.model import StructuredAscent
from skvbem.models.network.structured import StructuredProgram
from skvbem.vbem.driver import run

approx = pytest.approx


def problems(rng, n, n_nodes=6, missing=(0.0, 0.25), n_rows=7, max_card=3):
    """Networks with two or more hidden nodes, gaps in their data, and clusters of hidden nodes drawn at random."""
    found = 0
    while found < n:
        network, columns = random_network(rng, n_nodes, max_card, int(rng.integers(2, 4)), max_parents=3)
        data = random_data(rng, network, columns, n_rows, missing_rate=rng.choice(missing), max_weight=3)
        fast = FastNetwork(network, random_prior(rng, network))
        hidden = [node for node in network.cards if node not in columns]
        label = {node: rng.integers(len(hidden)) for node in hidden}
        clusters = [tuple(n for n in hidden if label[n] == k) for k in set(label.values())]
        of_positions = tuple(tuple(fast.model.position[node] for node in cluster) for cluster in clusters)
        fast.model = fast.model.with_partition(Partition(of_positions))
        program = fast.program(data)
        if isinstance(program, StructuredProgram):
            found += 1
            yield fast, data, clusters, program


def literal_sweeps(network, log_tables, data, clusters, n_sweeps):
    """q of every row after sweeps from uniform clusters, and the free energy of all rows after each update."""
    q, trace = [], []
    for row, weight in data.rows():
        of_row = literal.uniform(network, literal.parts_of(network, row, clusters))
        energies = []
        for _ in range(n_sweeps):
            of_row, after = literal.sweep(network, log_tables, row, of_row)
            energies += after
        q.append(literal.latent(network, row, weight, of_row))
        trace.append((weight, energies or [literal.free_energy(network, log_tables, row, of_row)]))
    return q, trace


def test_sweeps_are_literal_ones(rng):
    for fast, data, clusters, program in problems(rng, 40):
        network, model = fast.network, fast.model
        log_tables = reference.each(np.log, random_tables(rng, network))
        natural = fast.lanes(log_tables, reference.each(np.log, random_tables(rng, network)))
        state = program.uniform(2)
        for n_sweeps in (1, 2, 3):
            counts, bound, state = program.swept(natural, state)
            exact = model.expect(natural, program.exact)
            q, trace = literal_sweeps(network, log_tables, data, clusters, n_sweeps)
            expected = fast.flat(reference.expected_counts(network, q))
            assert counts[:, 0] + exact.statistics[:, 0] == approx(expected, abs=1e-10)
            assert bound[0] + exact.log_normalizer[0] == approx(sum(w * e[-1] for w, e in trace), abs=1e-9)
            for _, energies in trace:
                assert all(b >= a - 1e-12 for a, b in pairwise(energies))


def log_means(fast, data_or_counts):
    """Expected log parameters, (n_cells,), after counts (n_cells,)."""
    return (fast.model.prior + data_or_counts).expected_natural()


def ended(ascent, starts, **options):
    return run(ascent, starts, tol=1e-7, max_iter=3000, **options)


@pytest.mark.parametrize("form", ["vb", "map", "ml"])
def test_a_run_never_falls_and_ends_where_its_bound_is_literal(rng, form):
    for fast, data, clusters, program in problems(rng, 4, n_nodes=5, n_rows=3, max_card=2):
        ascent = StructuredAscent(fast.model, program, FORMS[form])
        starts = fast.random_starts(ascent, rng, 3)
        plain = ended(ascent, starts, accelerate=False)
        for trace in plain.traces:
            assert all(b >= a - 1e-9 for a, b in pairwise(trace))
        ahead = ended(ascent, starts)
        assert max(ahead.objective) == approx(max(plain.objective), abs=0.5)
        if form != "vb":
            continue
        best = plain.best
        counts, state = np.split(plain.statistics[:, best], [ascent.n_cells])
        log_tables = fast.tables(log_means(fast, counts))
        _, bound, _ = program.swept(log_means(fast, counts)[:, None], state[:, None])
        q, _ = literal_sweeps(fast.network, log_tables, data, clusters, 40)
        literal_bound = reference.lower_bound(fast.network, fast.tables(fast.model.prior.concentration), q)
        evidence, _ = log_evidence_by_enumeration(fast.model, program, 2**20)
        assert plain.objective[best] <= evidence
        assert literal_bound <= evidence
        assert np.isfinite(bound).all()


def test_tighter_clusters_are_no_worse_from_where_looser_ones_end(rng):
    """Evidence >= exact >= clusters >= mean field, each run begun where the looser one ended."""
    for fast, data, clusters, program in problems(rng, 8, n_nodes=5, n_rows=3, max_card=2):
        of_positions = tuple(tuple(fast.model.position[node] for node in cluster) for cluster in clusters)
        exact, last = fast.model.with_partition(None), -np.inf
        natural = np.log(fast.lanes(random_tables(rng, fast.network)))
        counts = exact.expect(natural, exact.compile(rows_of(data))).statistics
        for partition in (Partition(), Partition(of_positions), None):
            model = exact.with_partition(partition)
            compiled = model.compile(rows_of(data))
            if compiled.is_exact:
                ascent = DirichletAscent(model, compiled, FORMS["vb"])
                statistics = counts
            else:
                ascent = StructuredAscent(model, compiled, FORMS["vb"])
                natural = log_means(fast, counts[:, 0])
                statistics = np.concatenate([counts, compiled.fixed_point(natural)])
            result = ended(ascent, statistics)
            if partition is None:
                assert result.objective[0] >= last - 1e-7
            last, counts = max(last, result.objective[0]), result.statistics[: model.layout.n_cells]
        assert last <= log_evidence_by_enumeration(exact, compiled, 2**20)[0] + 1e-9
        assert isinstance(program, StructuredProgram)


def test_one_cluster_is_exact_to_the_bit(rng):
    for fast, data, clusters, _ in problems(rng, 10):
        everything = tuple(fast.model.position[node] for cluster in clusters for node in cluster)
        exact = fast.model.with_partition(None)
        one = fast.model.with_partition(Partition((everything,), joins_others=True))
        fits = fast.model.with_partition(Partition((), exact_where_it_fits=True))
        natural = np.log(fast.lanes(random_tables(rng, fast.network)))
        expected = exact.expect(natural, exact.compile(rows_of(data)))
        for model in (one, fits):
            compiled = model.compile(rows_of(data))
            assert compiled.is_exact
            found = model.expect(natural, compiled)
            assert np.array_equal(found.statistics, expected.statistics)
            assert np.array_equal(found.log_normalizer, expected.log_normalizer)


def test_order_of_rows_repeats_and_order_of_clusters_change_nothing(rng):
    for fast, data, _, program in problems(rng, 10):
        rows = rows_of(data)
        order = rng.permutation(len(rows))
        weight = None if rows.weight is None else rows.weight[order]
        natural = np.log(fast.lanes(random_tables(rng, fast.network)))
        expected = fast.model.expect(natural, program)
        shuffled = fast.model.compile(Rows(rows.names, rows.codes[order], weight))
        assert np.array_equal(fast.model.expect(natural, shuffled).statistics, expected.statistics)
        times = np.ones(len(rows), int) if rows.weight is None else rows.weight.astype(int)
        repeated = fast.model.compile(Rows(rows.names, np.repeat(rows.codes, times, axis=0)))
        found = fast.model.expect(natural, repeated)
        assert found.statistics == approx(expected.statistics, abs=1e-9)
        assert not found.is_exact
        backwards = Partition(tuple(cluster[::-1] for cluster in fast.model.partition.clusters[::-1]))
        found = fast.model.with_partition(backwards)
        assert np.array_equal(found.expect(natural, found.compile(rows)).statistics, expected.statistics)


def test_marginals_of_rows_are_those_of_the_expected_counts(rng):
    for fast, _, _, program in problems(rng, 20):
        natural = np.log(fast.lanes(random_tables(rng, fast.network)))[:, 0]
        expected = fast.model.expect(natural[:, None], program).statistics[:, 0]
        found = marginals_of_clusters(program, natural)
        target = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
        counts = np.bincount(target, found.probability * found.weight[found.context], len(found.starts) - 1)
        counts += found.known
        assert counts[: len(natural)] == approx(expected, abs=1e-9)
        of_rows = np.add.reduceat(expected, fast.model.layout.row_starts[:-1])
        assert counts[len(natural) :] == approx(of_rows, abs=1e-9)


def test_collapsed_bound_is_the_literal_one_of_such_a_q(rng):
    for fast, data, clusters, program in problems(rng, 4, n_nodes=4, missing=(0.0,), n_rows=2, max_card=2):
        prior = fast.tables(fast.model.prior.concentration)
        natural = log_means(fast, np.zeros(fast.model.layout.n_cells) + 1.0)
        state = program.started(program.uniform(1)[:, 0])
        q, _ = literal_sweeps(fast.network, fast.tables(natural), data, clusters, 60)
        block = NetworkMarginals(fast.model)
        averages = _averages(block.count_block().prior, block.row_marginals(natural, state))
        entropy = latent_entropy(fast.model, natural, state)
        assert entropy == approx(reference.entropy(q), abs=1e-5)
        assert averages.log_bd + entropy == approx(reference.exact_collapsed_bound(fast.network, prior, q), abs=1e-5)


def test_what_is_impossible_leaves_numbers(rng):
    """Under maximum likelihood cells are 0: a family across clusters must not send -inf to all states of one."""
    for fast, _, _, program in problems(rng, 10):
        point = fast.flat(random_tables(rng, fast.network))
        point[rng.random(len(point)) < 0.3] = 0.0
        with np.errstate(divide="ignore"):
            counts, bound, state = program.swept(np.log(point)[:, None], program.uniform(1))
        assert not np.isnan(counts).any()
        assert not np.isnan(state).any()
        assert not np.isnan(bound).any()


def two_layers(n_causes, n_findings, n_parents, rng):
    """Hidden causes above findings that have some of them each."""
    causes = [f"c{k}" for k in range(n_causes)]
    parents = dict.fromkeys(causes, ()) | {
        f"f{k}": tuple(sorted(rng.choice(causes, n_parents, replace=False).tolist())) for k in range(n_findings)
    }
    return DAG(list(parents), parents), dict.fromkeys(parents, 2)


def chains(n_chains, n_steps):
    """Binary chains with one symbol per step from all."""
    parents = {f"h{c}_{t}": (f"h{c}_{t - 1}",) if t else () for c in range(n_chains) for t in range(n_steps)}
    parents |= {f"y{t}": tuple(f"h{c}_{t}" for c in range(n_chains)) for t in range(n_steps)}
    return DAG(list(parents), parents), dict.fromkeys(parents, 2)


def layout_of(dag, cardinalities):
    position = {node: k for k, node in enumerate(dag.nodes)}
    return Layout(
        dag.nodes,
        tuple(cardinalities[node] for node in dag.nodes),
        tuple(tuple(position[p] for p in dag.parents(node)) for node in dag.nodes),
    )


def test_clusters_are_joined_along_edges_first():
    """S-11: chains stay whole, as many of them together as fit."""
    dag, sizes = chains(8, 6)
    layout = layout_of(dag, sizes)
    hidden = [k for k, node in enumerate(dag.nodes) if node.startswith("h")]
    scopes = [{m for m in strides if m in hidden} for strides in layout.strides]
    assert largest_clique(layout.cardinalities, scopes, hidden) == 512
    clusters = joined(layout, hidden, 16)
    names = [sorted({dag.nodes[k].split("_")[0] for k in cluster}) for cluster in clusters]
    assert sorted(map(len, clusters)) == [12, 18, 18]
    assert names == [["h0", "h1", "h2"], ["h3", "h4", "h5"], ["h6", "h7"]]
    for cluster in clusters:
        assert largest_clique(layout.cardinalities, scopes, cluster) <= 16


def test_clusters_of_causes_fit_the_limit():
    dag, sizes = two_layers(12, 24, 3, np.random.default_rng(0))
    layout = layout_of(dag, sizes)
    hidden = list(range(12))
    scopes = [{m for m in strides if m in hidden} for strides in layout.strides]
    clusters = joined(layout, hidden, 32)
    assert sorted(node for cluster in clusters for node in cluster) == hidden
    assert 1 < len(clusters) < 12
    assert all(largest_clique(layout.cardinalities, scopes, cluster) <= 32 for cluster in clusters)


def test_hidden_cells_of_no_cluster_go_with_those_around_them():
    scopes = [{0, 5}, {5, 6}, {1}, {7, 8}]
    assert Partition(((0,), (1,)), joins_others=True).parts(scopes, [0, 1, 5, 6, 7, 8]) == [(0, 5, 6), (1,), (7, 8)]
    assert Partition(((0, 5),)).parts(scopes[:3], [0, 1, 5, 6]) == [(0, 5), (1,), (6,)]
