import copy
import itertools
import pickle
import random
import re
import time
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone

from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.graphs.paths import find_cycle

laws = settings(deadline=None)

names = st.one_of(st.text(min_size=0, max_size=4), st.sampled_from(["a[1]", "b|c", "d:e", '"', "\\", " x ", "7", "-0"]))
nodes_of_any_kind = st.one_of(names, st.integers(-20, 20))


@st.composite
def dags(draw, nodes=None, max_nodes=7, max_parents=3):
    nodes = nodes or draw(st.lists(nodes_of_any_kind, unique=True, max_size=max_nodes))
    order = draw(st.permutations(nodes))
    parents = {}
    for place, child in enumerate(order):
        if place:
            parents[child] = draw(st.lists(st.sampled_from(order[:place]), unique=True, max_size=max_parents))
    return DAG(nodes, parents)


HIDDEN = {"h1": 2, "h2": 2, "h3": 2, "h4": 2, "g1": 3, "g2": 3}
small_dags = dags(nodes=[*HIDDEN, "y1", "y2"])


def relabellings(hidden):
    """All permutations of hidden nodes within their kinds, one by one."""
    kinds = {}
    for node, kind in hidden.items():
        kinds.setdefault(kind, []).append(node)
    for images in itertools.product(*(itertools.permutations(members) for members in kinds.values())):
        yield dict(pair for members, image in zip(kinds.values(), images) for pair in zip(members, image))


def bipartite_dags(n_hidden, n_observed):
    hidden = [f"h{i}" for i in range(n_hidden)]
    observed = [f"y{i}" for i in range(n_observed)]
    pairs = list(itertools.product(hidden, observed))
    for present in itertools.product([False, True], repeat=len(pairs)):
        yield DAG.from_edges(itertools.compress(pairs, present), [*hidden, *observed])


class TestConstruction:
    def test_nodes_and_families_keep_the_order_of_the_nodes(self):
        dag = DAG(["c", "a", "b"], {"b": ["a", "c"]})
        assert dag.nodes == ("c", "a", "b")
        assert dag.parents("b") == ("c", "a")
        assert dag.family("b") == ("c", "a", "b")
        assert dag.children("a") == ("b",)
        assert dag.edges == (("c", "b"), ("a", "b"))
        assert dag.reorder(["a", "b", "c"]).parents("b") == ("a", "c")

    @laws
    @given(dags())
    def test_all_ways_in_and_out_agree(self, dag):
        parents = {node: dag.parents(node) for node in dag.nodes}
        assert DAG.from_string(str(dag)) == dag
        assert DAG.from_string(str(dag)).nodes == dag.nodes
        assert DAG.from_edges(dag.edges, dag.nodes) == dag
        assert DAG.from_parents(parents) == dag
        assert DAG.from_networkx(dag.to_networkx()) == dag
        assert DAG.from_networkx(dag.to_networkx()).nodes == dag.nodes
        for form in (dag, str(dag), parents, dag.edges, dag.to_networkx(), iter(dag.edges)):
            assert DAG.coerce(form, dag.nodes) == dag

    @laws
    @given(dags())
    def test_edges_are_those_of_networkx(self, dag):
        graph = dag.to_networkx()
        assert list(graph.nodes) == list(dag.nodes)
        assert nx.is_directed_acyclic_graph(graph)
        for node in dag.nodes:
            assert set(dag.parents(node)) == set(graph.predecessors(node))
            assert set(dag.children(node)) == set(graph.successors(node))
            assert dag.ancestors([node]) == nx.ancestors(graph, node)
            assert dag.descendants([node]) == nx.descendants(graph, node)

    def test_implicit_nodes_come_last(self):
        assert DAG.from_string("[A][B|A:H]").nodes == ("A", "B", "H")
        assert DAG.from_parents({"B": ["A", "H"], "A": []}).nodes == ("B", "A", "H")
        assert DAG.from_edges([("A", "B")], ["C", "B"]).nodes == ("C", "B", "A")
        assert DAG.coerce([("A", "B")], ["C", "B"]).nodes == ("A", "B", "C")

    def test_a_string_in_a_mapping_is_one_parent(self):
        assert DAG.from_parents({"B": "Age"}).edges == (("Age", "B"),)
        assert DAG(["B", "Age"], {"B": "Age"}).edges == (("Age", "B"),)
        assert DAG.from_parents({1: 0, 2: np.int64(0)}).edges == ((0, 1), (0, 2))
        assert DAG.naive_bayes("root", ["x", "y"]).edges == (("root", "x"), ("root", "y"))

    def test_model_strings(self):
        assert str(DAG(["A", "B", "H"], {"B": ["H", "A"]})) == "[A][B|A:H][H]"
        assert repr(DAG(["A", "B"], {"B": ["A"]})) == 'DAG("[A][B|A]")'
        assert str(DAG(["a:b", "7", 7, "two words", ""], {})) == '["a:b"]["7"][7][two words][""]'
        assert DAG.from_string(' [ A ]\n[two words | A : "7"] ') == DAG(
            ["A", "two words", "7"], {"two words": ["A", "7"]}
        )
        assert DAG.from_string("").nodes == ()

    @laws
    @given(dags(), st.randoms(use_true_random=False))
    def test_equality_and_hash_ignore_the_order(self, dag, rng):
        nodes = list(dag.nodes)
        rng.shuffle(nodes)
        other = dag.reorder(nodes)
        assert other.nodes == tuple(nodes)
        assert other == dag
        assert hash(other) == hash(dag)
        assert {other: 1}[dag] == 1
        for parent, child in dag.edges:
            less = DAG.from_edges([edge for edge in dag.edges if edge != (parent, child)], dag.nodes)
            assert less != dag
        assert dag != str(dag)
        assert dag.with_nodes(["a node more"]) != dag

    @laws
    @given(dags())
    def test_copies_are_equal(self, dag):
        for other in (pickle.loads(pickle.dumps(dag)), copy.copy(dag), copy.deepcopy(dag), clone(dag, safe=False)):
            assert other == dag
            assert other.nodes == dag.nodes
            assert other.edges == dag.edges

    def test_it_can_be_a_parameter_of_an_estimator(self):
        class Estimator(BaseEstimator):
            def __init__(self, structure=None):
                self.structure = structure

        dag = DAG.from_string("[A][B|A]")
        assert clone(Estimator(dag)).structure == dag
        assert np.array([dag, dag], dtype=object).shape == (2,)

    def test_it_cannot_be_changed(self):
        dag = DAG.from_string("[A][B|A]")
        for name in ("nodes", "edges", "_nodes", "color"):
            with pytest.raises(AttributeError, match="cannot be changed"):
                setattr(dag, name, ())
        with pytest.raises(AttributeError, match="cannot be changed"):
            del dag._nodes


class TestOrder:
    @laws
    @given(dags())
    def test_topological_order_is_the_least_one(self, dag):
        order = dag.topological_order()
        assert sorted(map(repr, order)) == sorted(map(repr, dag.nodes))
        placed = set()
        for node in order:
            free = [other for other in dag.nodes if other not in placed and placed.issuperset(dag.parents(other))]
            assert node == free[0]
            placed.add(node)

    def test_ancestors_of_several_nodes(self):
        dag = DAG.from_string("[A][B|A][C|B][D]")
        assert dag.ancestors("C") == {"A", "B"}
        assert dag.ancestors(["B", "D"]) == {"A"}
        assert dag.ancestors(["C", "B"]) == {"A", "B"}
        assert dag.descendants("A") == {"B", "C"}
        assert dag.descendants(["C", "D"]) == frozenset()

    @laws
    @given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), unique=True))
    def test_a_cycle_is_found_exactly_when_there_is_one(self, edges):
        graph = nx.DiGraph(edges)
        graph.add_nodes_from(range(7))
        parents = {node: sorted(graph.predecessors(node)) for node in graph}
        cycle = find_cycle(range(7), parents)
        assert bool(cycle) != nx.is_directed_acyclic_graph(graph)
        assert len(set(cycle)) == len(cycle)
        assert all(graph.has_edge(*edge) for edge in zip(cycle, cycle[1:] + cycle[:1]))
        assert not cycle or cycle[0] == min(cycle)
        if cycle:
            with pytest.raises(StructureError, match=re.escape(" -> ".join(map(str, (*cycle, cycle[0]))))):
                DAG.from_edges(edges, range(7))
        else:
            DAG.from_edges(edges, range(7))

    def test_large_graphs_are_fast(self):
        rng = random.Random(0)
        pairs = {tuple(sorted(rng.sample(range(1000), 2))) for _ in range(6000)}
        edges = [(f"n{i}", f"n{j}") for i, j in list(pairs)[:5000]]
        nodes = [f"n{i}" for i in range(1000)]

        def seconds():
            start = time.process_time()
            DAG.from_edges(edges, nodes)
            return time.process_time() - start

        assert min(seconds() for _ in range(5)) < 0.1

    def test_many_paths_are_walked_once(self):
        dag = DAG.from_edges((f"{i}{s}", f"{i + 1}{t}") for i in range(60) for s in "ab" for t in "ab")
        assert len(dag.ancestors("60a")) == len(dag.descendants("0a")) == 120

    def test_long_paths_and_cycles_need_no_recursion(self):
        path = [(i, i + 1) for i in range(20_000)]
        assert DAG.from_edges(path).ancestors(20_000) == frozenset(range(20_000))
        with pytest.raises(StructureError, match=r"It has 0 -> 1 -> .* -> \.\.\. -> .* -> 20000 -> 0;"):
            DAG.from_edges([*path, (20_000, 0)])


class TestChanges:
    @laws
    @given(dags(), st.randoms(use_true_random=False))
    def test_relabel_is_undone_by_its_inverse(self, dag, rng):
        new = [f"new {i}" for i in range(len(dag.nodes))]
        rng.shuffle(new)
        mapping = dict(zip(dag.nodes, new))
        other = dag.relabel(mapping)
        assert other.nodes == tuple(new)
        assert set(other.edges) == {(mapping[parent], mapping[child]) for parent, child in dag.edges}
        assert other.relabel({value: key for key, value in mapping.items()}) == dag

    def test_relabel_may_swap_and_leave_out(self):
        dag = DAG.from_string("[A][B|A][C|B]")
        assert dag.relabel({"A": "B", "B": "A"}) == DAG.from_string("[B][A|B][C|A]")
        assert dag.relabel({}) == dag
        with pytest.raises(StructureError, match="Node 'B' is named twice"):
            dag.relabel({"A": "B"})

    def test_with_nodes(self):
        dag = DAG.from_string("[A][B|A]")
        assert dag.with_nodes(["B", "C", "C"]).nodes == ("A", "B", "C")
        assert dag.with_nodes(["B"]) == dag


class TestCounts:
    @laws
    @given(dags(max_parents=7), st.data())
    def test_counts_are_those_of_the_tables(self, dag, data):
        cardinality = {node: data.draw(st.integers(1, 4)) for node in dag.nodes}
        cells = free = 0
        for node in dag.nodes:
            for _ in itertools.product(*(range(cardinality[parent]) for parent in dag.parents(node))):
                cells += cardinality[node]
                free += cardinality[node] - 1
        assert dag.n_table_cells(cardinality) == cells
        assert dag.n_free_parameters(cardinality) == free

    def test_counts_never_wrap(self):
        dag = DAG.naive_bayes("root", ["leaf"]).with_nodes(f"x{i}" for i in range(100))
        dag = DAG(dag.nodes, {"leaf": [f"x{i}" for i in range(100)]})
        cardinality = dict.fromkeys(dag.nodes, np.int8(4))
        assert dag.n_table_cells(cardinality) == 4**101 + 4 * 101
        assert dag.n_free_parameters(cardinality) == 3 * 4**100 + 3 * 101
        assert type(dag.n_free_parameters(cardinality)) is int

    @pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, True])
    def test_cardinalities_are_checked(self, value):
        dag = DAG.from_string("[A][B|A]")
        with pytest.raises(
            StructureError, match=re.escape(f"cardinality of node 'B' must be an int >= 1. Got {value!r}")
        ):
            dag.n_free_parameters({"A": 2, "B": value})
        with pytest.raises(StructureError, match="It lacks 'B'"):
            dag.n_table_cells({"A": 2})


class TestCanonical:
    @settings(deadline=None, max_examples=60)
    @given(small_dags)
    def test_it_is_the_orbit_and_the_stabilizer_by_enumeration(self, dag):
        images = [dag.relabel(mapping) for mapping in relabellings(HIDDEN)]
        canonical = dag.canonical(HIDDEN)
        assert canonical in images
        assert canonical.nodes == dag.nodes
        assert {image.canonical(HIDDEN) for image in set(images)} == {canonical}
        assert dag.n_automorphisms(HIDDEN) == sum(image == dag for image in images)

    @laws
    @given(dags(nodes=["h1", "h2", "h3", "h4", "h5", "h6", "y1"]), st.randoms(use_true_random=False))
    def test_it_depends_on_no_order(self, dag, rng):
        hidden = dict.fromkeys(["h1", "h2", "h3", "h4", "h5", "h6"], "binary")
        nodes, kinds = list(dag.nodes), list(hidden)
        rng.shuffle(nodes)
        rng.shuffle(kinds)
        image = dag.relabel(dict(zip(hidden, kinds))).reorder(nodes)
        assert image.canonical(dict.fromkeys(kinds, "binary")) == dag.canonical(hidden)
        assert image.n_automorphisms(hidden) == dag.n_automorphisms(hidden)

    def test_kinds_and_observed_nodes_do_not_mix(self):
        dag = DAG.from_string("[g][h|g][y|h][z]")
        assert dag.canonical({"g": 2, "h": 3}) == dag
        assert dag.canonical({}) == dag
        assert dag.n_automorphisms({"g": 2, "h": 3}) == 1
        assert DAG.from_string("[y|h2][h1]").canonical({"h1": 2, "h2": 2}) == DAG.from_string("[y|h1][h2]")

    @pytest.mark.parametrize(("n_hidden", "n_observed", "count"), [(2, 2, 10), (2, 3, 36), (2, 4, 136), (3, 4, 816)])
    def test_number_of_bipartite_structures(self, n_hidden, n_observed, count):
        hidden = dict.fromkeys((f"h{i}" for i in range(n_hidden)), 2)
        all_dags = list(bipartite_dags(n_hidden, n_observed))
        canonical = Counter(dag.canonical(hidden) for dag in all_dags)
        assert len(canonical) == count
        orbit = np.prod(range(1, n_hidden + 1))
        assert all(size * dag.n_automorphisms(hidden) == orbit for dag, size in canonical.items())

    def test_free_parameters_of_the_136_structures(self):
        hidden = {"h0": 2, "h1": 2}
        cardinality = {**hidden, **{f"y{i}": 5 for i in range(4)}}
        structures = {dag.canonical(hidden) for dag in bipartite_dags(2, 4)}
        counts = Counter(dag.n_free_parameters(cardinality) for dag in structures)
        assert [counts[d] for d in range(18, 67, 4)] == [1, 4, 12, 20, 20, 24, 22, 12, 12, 4, 4, 0, 1]
        of_dimension_50 = [dag for dag in structures if dag.n_free_parameters(cardinality) == 50]
        assert len(of_dimension_50) == 12
        for dag in of_dimension_50:
            assert sorted(len(dag.parents(f"y{i}")) for i in range(4)) == [1, 1, 2, 2]

    def test_rings_of_hidden_nodes_are_told_apart_though_refinement_cannot(self):
        def rings(*lengths):
            starts = [sum(lengths[:place]) for place in range(len(lengths))]
            return DAG.from_edges(
                (f"a{start + step}", f"b{start + other % length}")
                for start, length in zip(starts, lengths)
                for step in range(length)
                for other in (step, step + 1)
            )

        rng = random.Random(0)
        canonical = set()
        for lengths, n_automorphisms in [
            ((12,), 24),
            ((6, 6), 12 * 12 * 2),
            ((6, 3, 3), 12 * 6 * 6 * 2),
            ((5, 4, 3), 480),
        ]:
            dag = rings(*lengths)
            hidden = {node: node[0] for node in dag.nodes}
            assert dag.n_automorphisms(hidden) == n_automorphisms
            canonical.add(dag.canonical(hidden))
            for _ in range(5):
                a, b = rng.sample(range(12), 12), rng.sample(range(12), 12)
                mapping = {f"a{i}": f"a{a[i]}" for i in range(12)} | {f"b{i}": f"b{b[i]}" for i in range(12)}
                assert dag.relabel(mapping).canonical(hidden) == dag.canonical(hidden)
                assert dag.relabel(mapping).n_automorphisms(hidden) == n_automorphisms
        assert len(canonical) == 4

    def test_many_hidden_nodes_cost_little(self):
        start = time.process_time()
        hidden = dict.fromkeys((f"h{i}" for i in range(40)), 2)
        edges = [(f"h{i}", f"y{j}") for i in range(40) for j in range(6) if i >> j & 1]
        assert DAG.from_edges(edges, hidden).n_automorphisms(hidden) == 1
        assert DAG(hidden, {}).n_automorphisms(hidden) == np.prod(range(1, 41), dtype=object)
        pairs = DAG.from_edges((f"h{i}", f"h{i + 8}") for i in range(8))
        assert pairs.n_automorphisms(dict.fromkeys(pairs.nodes, 2)) == 40320
        assert time.process_time() - start < 2


class TestErrors:
    @pytest.mark.parametrize(
        ("nodes", "parents", "message"),
        [
            (["A", "B", "A"], {}, "Node 'A' is named twice. Name each node once."),
            (["A", "B"], {"B": ["A", "A"]}, "The edge A -> B is given twice."),
            (["A"], {"A": ["A"]}, "It has A -> A; remove or turn one of these edges. Mappings are child -> parents."),
            (
                ["A", "B", "C"],
                {"B": ["A"], "A": ["C"], "C": ["B"]},
                "The graph must have no directed cycle. It has A -> B -> C -> A; remove or turn one of these edges. "
                "Mappings are child -> parents.",
            ),
            (
                ["smoker", "cancer"],
                {"cancer": ["smokers"]},
                "The edge smokers -> cancer starts at 'smokers', which is not a node. Did you mean 'smoker'? "
                "Mappings are child -> parents.",
            ),
            (
                ["smoker", "cancer"],
                {"Cancer": ["smoker"]},
                "Parents are given for 'Cancer', which is not a node. Did you mean 'cancer'? "
                "Mappings are child -> parents.",
            ),
            (
                ["A"],
                {"unlike": []},
                "Parents are given for 'unlike', which is not a node. Mappings are child -> parents.",
            ),
            ([10, 20], {10: [200]}, "starts at 200, which is not a node. Did you mean 20?"),
        ],
    )
    def test_structures_that_are_none(self, nodes, parents, message):
        with pytest.raises(StructureError, match=re.escape(message)):
            DAG(nodes, parents)
        with pytest.raises(ValueError, match=re.escape(message)):
            DAG(nodes, parents)

    @pytest.mark.parametrize(
        ("form", "message"),
        [
            ("[A|B][B|A]", "It has A -> B -> A; remove or turn one of these edges."),
            ([("A", "B"), ("B", "A")], "It has A -> B -> A; remove or turn one of these edges."),
            (
                {"A": "B", "B": "A"},
                "It has A -> B -> A; remove or turn one of these edges. Mappings are child -> parents.",
            ),
            (nx.DiGraph([("A", "A")]), "It has A -> A; remove or turn one of these edges."),
        ],
    )
    def test_only_mappings_are_reminded_of(self, form, message):
        with pytest.raises(StructureError) as caught:
            DAG.coerce(form)
        assert str(caught.value).endswith(message)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("A", "Expected [ at column 1, got 'A'."),
            ("[A", "Expected | or ] at column 3, but the string ends."),
            ("[]", "Expected a name at column 2, got ']'."),
            ("[A|]", "Expected a name at column 4, got ']'."),
            ("[A|B:]", "Expected a name at column 6, got ']'."),
            ("[A:B]", "Expected | or ] at column 3, got ':B]'."),
            ("[A|B|C]", "Expected : or ] at column 5, got '|C]'."),
            ('[A]  ["B]', "Expected a name at column 7, got '\"B]'."),
            ('[A"B"]', "Expected | or ] at column 3, got '\"B\"]'."),
            ("[A] B", "Expected [ at column 5, got 'B'."),
            ("[A][A]", "Node 'A' is named twice."),
            ("[A][B|A:A]", "The edge A -> B is given twice."),
        ],
    )
    def test_model_strings_that_are_none(self, text, message):
        with pytest.raises(StructureError, match=re.escape(message)):
            DAG.from_string(text)

    @laws
    @given(st.text(alphabet='[]|:"\\ab1 ', max_size=12))
    def test_any_string_is_read_or_refused(self, text):
        try:
            dag = DAG.from_string(text)
        except StructureError:
            return
        assert DAG.from_string(str(dag)) == dag

    @pytest.mark.parametrize("form", [5, None, 2.5])
    def test_forms_that_are_none(self, form):
        message = f"an adjacency frame or an iterable of (parent, child) edges. Got {form!r} instead."
        with pytest.raises(TypeError, match=re.escape(message)):
            DAG.coerce(form)

    @pytest.mark.parametrize("edge", ["AB", ("A",), ("A", "B", "C"), {"A", "B"}, 5])
    def test_edges_that_are_none(self, edge):
        with pytest.raises(TypeError, match=re.escape(f"must be a pair (parent, child). Got {edge!r} instead.")):
            DAG.from_edges([edge])

    def test_types(self):
        with pytest.raises(TypeError, match=r"for a model string use DAG\.from_string"):
            DAG("[A][B|A]", {})
        with pytest.raises(TypeError, match=re.escape("a mapping child -> parents. Got [('A', 'B')]; for edges use")):
            DAG(["A", "B"], [("A", "B")])
        with pytest.raises(
            TypeError, match=r"'parents' .* must be an iterable of hashable names, .*\. Got None instead"
        ):
            DAG.from_parents({"B": None})
        with pytest.raises(TypeError, match=re.escape("names, such as str or int. Got ['A'] among them")):
            DAG([["A"]], {})
        with pytest.raises(
            TypeError, match=re.escape("hidden must map each hidden node to its kind, as {'h': 2}. Got ['A']")
        ):
            DAG(["A"], {}).canonical(["A"])
        with pytest.raises(StructureError, match="must be directed"):
            DAG.coerce(nx.Graph([("A", "B")]))
        with pytest.raises(StructureError, match="The edge A -> B is given twice"):
            DAG.coerce(nx.MultiDiGraph([("A", "B"), ("A", "B")]))

    def test_unknown_nodes(self):
        dag = DAG.from_string("[smoker][cancer|smoker]")
        for call in (dag.parents, dag.children, dag.family, dag.ancestors, dag.descendants):
            with pytest.raises(StructureError, match=r"'smokr' is not a node of the graph\. Did you mean 'smoker'"):
                call("smokr")
        for call in (dag.relabel, dag.canonical, dag.n_automorphisms):
            with pytest.raises(StructureError, match=r"'smokr' is not a node of the graph\. Did you mean 'smoker'"):
                call({"smokr": "x"})
        with pytest.raises(
            StructureError, match=r"each node of the graph once: 'smoker', 'cancer'\. Got 'smoker' instead"
        ):
            dag.reorder(["smoker"])
        with pytest.raises(StructureError, match="each node of the graph once"):
            dag.reorder(["smoker", "cancer", "cancer"])
