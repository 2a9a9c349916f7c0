"""Undirected graphs, their perfect orders and cliques, and essential graphs, against their definitions."""

import copy
import pickle
from collections import Counter
from itertools import chain, combinations, permutations, product

import numpy as np
import pytest

from skvbem.errors import StructureError, TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.graphs.essential import EssentialGraph
from skvbem.graphs.undirected import UndirectedGraph
from skvbem.spaces import ChordalSpace, DAGSpace
from skvbem.spaces.priors import EdgePrior
from skvbem.spaces.settings import canonical


def all_graphs(nodes):
    pairs = list(combinations(nodes, 2))
    for chosen in product((False, True), repeat=len(pairs)):
        yield UndirectedGraph(nodes, [pair for pair, is_there in zip(pairs, chosen) if is_there])


def subsets(nodes, least=1):
    return chain.from_iterable(combinations(nodes, size) for size in range(least, len(nodes) + 1))


def has_chordless_cycle(graph):
    """By definition: some four nodes or more among which each has two neighbors, all of them connected."""
    for chosen in subsets(graph.nodes, 4):
        inside = {node: set(graph.neighbors(node)) & set(chosen) for node in chosen}
        if all(len(around) == 2 for around in inside.values()):
            reached, waiting = {chosen[0]}, [chosen[0]]
            while waiting:
                new = inside[waiting.pop()] - reached
                reached |= new
                waiting += new
            if len(reached) == len(chosen):
                return True
    return False


def maximal_cliques(graph):
    complete = [set(c) for c in subsets(graph.nodes) if all(b in graph.neighbors(a) for a, b in combinations(c, 2))]
    return {frozenset(c) for c in complete if not any(c < other for other in complete)}


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_chordal_graphs_are_those_without_a_chordless_cycle(n):
    graphs = list(all_graphs(range(n)))
    chordal = [graph for graph in graphs if not has_chordless_cycle(graph)]
    assert [graph.is_chordal for graph in graphs] == [graph in set(chordal) for graph in graphs]
    listed = [setting["structure"] for setting in ChordalSpace(range(n))]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(chordal)


def test_there_are_as_many_chordal_graphs_as_known():
    """S-17."""
    assert [len(ChordalSpace(range(n))) for n in range(1, 7)] == [1, 2, 8, 61, 822, 18154]
    with pytest.raises(TooLargeError, match="up to 7 nodes"):
        ChordalSpace(range(8)).n_settings  # noqa: B018
    assert ChordalSpace(range(8)).has_more_than(200_000)
    assert ChordalSpace(range(5)).has_more_than(821)
    assert not ChordalSpace(range(5)).has_more_than(822)


def test_cliques_and_separators_are_those_of_the_definition(rng):
    """Cliques are maximal; a separator stands as often as p(x) is divided by it, whatever the order of the nodes."""
    graphs = [setting["structure"] for setting in ChordalSpace(range(5))]
    for k in rng.choice(len(graphs), 150, replace=False):
        graph = graphs[k].reorder(rng.permutation(5).tolist())
        cliques = maximal_cliques(graph)
        assert set(map(frozenset, graph.cliques)) == cliques
        assert len(graph.cliques) == len(cliques)
        # families of any perfect graph, less their parents, are what remains once separators are taken from cliques
        dag = DAG.from_chordal(graph, dict(enumerate(rng.random(5))))
        balance = Counter(map(frozenset, graph.cliques))
        balance.subtract({frozenset(separator): n for separator, n in graph.separators.items()})
        for node in dag.nodes:
            balance[frozenset(dag.family(node))] -= 1
            if dag.parents(node):
                balance[frozenset(dag.parents(node))] += 1
        assert not any(balance.values())


def test_perfect_graphs_have_no_immoralities_whatever_the_priorities(rng):
    for setting in ChordalSpace(list("abcd")):
        graph = setting["structure"]
        priority = dict(zip("abcd", rng.random(4)))
        dag = DAG.from_chordal(graph, priority)
        assert dag.is_decomposable
        assert dag.to_undirected() == graph
        assert dag.essential() == DAG.from_chordal(graph).essential()
        first = max("abcd", key=priority.__getitem__)
        assert not dag.parents(first)


def test_a_graph_that_is_not_chordal_is_refused_with_a_cycle_and_a_chord():
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a"), ("a", "c")]
    graph = UndirectedGraph(list("abcde"), ring)
    cycle = graph.chordless_cycle()
    assert len(cycle) == 4
    around = set(map(frozenset, zip(cycle, (*cycle[1:], cycle[0]))))
    assert {frozenset(pair) for pair in combinations(cycle, 2) if pair[1] in graph.neighbors(pair[0])} == around
    with pytest.raises(StructureError, match=r"a - c - d - e - a has no chord.*add an edge such as a - d"):
        DAG.from_chordal(graph)
    assert UndirectedGraph(list("abcde"), [*ring, ("a", "d")]).is_chordal
    assert str(graph) == "[a b][a c][a e][b c][c d][d e]"


def test_every_chordless_cycle_that_is_named_is_one():
    for graph in all_graphs(range(5)):
        cycle = graph.chordless_cycle()
        assert bool(cycle) == has_chordless_cycle(graph)
        if cycle:
            n = len(cycle)
            for i, j in combinations(range(n), 2):
                assert (cycle[j] in graph.neighbors(cycle[i])) == (j - i in (1, n - 1))


def test_undirected_graphs_are_values():
    graph = UndirectedGraph(["a", "b", "c"], [("b", "a")])
    assert graph == UndirectedGraph(["c", "b", "a"], [("a", "b")])
    assert hash(graph) == hash(UndirectedGraph(["c", "b", "a"], [("a", "b")]))
    assert graph != UndirectedGraph(["a", "b", "c"], [("a", "c")])
    assert graph != DAG(["a", "b", "c"], {"a": "b"})
    assert graph.edges == (("a", "b"),)
    assert pickle.loads(pickle.dumps(graph)) == copy.deepcopy(graph) == graph
    assert eval(repr(graph), {"UndirectedGraph": UndirectedGraph}) == graph
    assert graph.with_nodes(["c", "d"]).nodes == ("a", "b", "c", "d")
    assert graph.with_nodes("cd").nodes == ("a", "b", "c", "cd")  # a text is one name, as in DAG
    assert graph.relabel({"a": "x"}).edges == (("x", "b"),)
    assert UndirectedGraph.coerce([("a", "b")], nodes=["c"]) == graph
    with pytest.raises(AttributeError, match="cannot be changed"):
        graph.nodes = ()


@pytest.mark.parametrize(
    ("nodes", "edges", "told"),
    [
        ("aa", [], "named twice"),
        ("ab", [("a", "b"), ("b", "a")], "b - a is given twice"),
        ("ab", [("a", "a")], "to itself"),
        ("ab", [("a", "c")], "meets 'c', which is not a node"),
    ],
)
def test_what_is_no_undirected_graph_is_refused(nodes, edges, told):
    with pytest.raises(StructureError, match=told):
        UndirectedGraph(list(nodes), edges)


def test_edges_of_undirected_graphs_are_pairs():
    with pytest.raises(TypeError, match="must be a pair"):
        UndirectedGraph(list("ab"), [("a", "b", "c")])
    with pytest.raises(TypeError, match="iterable of names"):
        UndirectedGraph("ab")
    with pytest.raises(TypeError, match="UndirectedGraph, an undirected networkx graph"):
        UndirectedGraph.coerce("[a][b|a]")


def test_networkx_graphs_come_and_go():
    networkx = pytest.importorskip("networkx")
    graph = UndirectedGraph(list("abc"), [("a", "b")])
    there = graph.to_networkx()
    assert not there.is_directed()
    assert UndirectedGraph.coerce(there) == UndirectedGraph.from_networkx(there) == graph
    assert UndirectedGraph.coerce(networkx.MultiGraph([("a", "b"), ("b", "a")])).edges == (("a", "b"),)
    with pytest.raises(StructureError, match="must be undirected"):
        UndirectedGraph.from_networkx(networkx.DiGraph())
    with pytest.raises(StructureError, match=r"DAG\.from_chordal"):
        DAG.from_networkx(networkx.Graph())


def test_essential_graphs_have_the_arrows_on_which_a_class_agrees():
    """By the theorem of Verma & Pearl, for all graphs of four nodes: 185 classes (Gillispie & Perlman 2002)."""
    classes = {}
    for setting in DAGSpace(list("abcd")):
        dag = setting["structure"]
        classes.setdefault(dag.skeleton_and_immoralities(), []).append(dag)
    assert len(classes) == 185
    for members in classes.values():
        always = set.intersection(*(set(dag.edges) for dag in members))
        essential = {dag.essential() for dag in members}
        assert len(essential) == 1
        (graph,) = essential
        assert set(graph.arrows) == always
        assert set(map(frozenset, graph.lines)) == {frozenset(edge) for edge in members[0].edges if edge not in always}


@pytest.mark.parametrize("seed", range(5))
def test_essential_graphs_with_known_directions_have_the_arrows_on_which_those_that_obey_the_rules_agree(seed):
    """Against all graphs of four nodes, and five in an order in part: Meek's fourth rule needs known directions."""
    rng = np.random.default_rng(seed)
    names = list("abcd") if seed < 4 else list("abcde")
    pairs = list(permutations(names, 2))
    drawn = [pairs[k] for k in rng.permutation(len(pairs))]
    ways = [
        {"forbidden": drawn[:3]},
        {"allowed": drawn[:9]},
        {"tiers": [names[:2], names[2:]]},
        {"required": drawn[:1]},
        {"forbidden": drawn[:4], "required": drawn[4:5]},
    ]
    space = DAGSpace(names, **ways[seed])
    classes = {}
    for setting in space:
        dag = setting["structure"]
        classes.setdefault(dag.essential(), []).append(dag)
    n_known = 0
    for graph, members in classes.items():
        always = set.intersection(*(set(dag.edges) for dag in members))
        with_rules = {dag.essential(filter(space.rules.fix, dag.edges)) for dag in members}
        assert len(with_rules) == 1
        assert set(with_rules.pop().arrows) == always
        n_known += always != set(graph.arrows)
    assert n_known
    with pytest.raises(StructureError, match="is not an edge of this graph"):
        DAG("[a][b|a]").essential([("b", "a")])


@pytest.mark.parametrize(
    ("n_tables", "n_numbers", "n_classes"), [(1, 2, 10), (2, 1, 8), (2, 2, 88), (1, 3, 142), (3, 1, 88)]
)
def test_essential_graphs_of_tables_and_numbers_have_the_arrows_on_which_those_that_keep_the_rule_agree(
    n_tables, n_numbers, n_classes
):
    """By enumeration: arrows are the edges that all graphs of a class share whose numbers have no tables below them."""
    names = list("abcd")[: n_tables + n_numbers]
    numbers, classes, n_more = names[n_tables:], {}, 0
    for setting in DAGSpace(names, numbers=numbers):
        dag = setting["structure"]
        classes.setdefault(dag.skeleton_and_immoralities(), []).append(dag)
    assert len(classes) == n_classes
    for members in classes.values():
        always = set.intersection(*(set(dag.edges) for dag in members))
        (graph,) = {dag.essential(numbers=numbers) for dag in members}
        assert set(graph.arrows) == always
        assert set(map(frozenset, graph.lines)) == {frozenset(edge) for edge in members[0].edges if edge not in always}
        n_more += always != set(members[0].essential().arrows)
    assert n_more > 0.5 * n_classes


def test_numbers_of_essential_graphs_have_no_tables_below_them():
    dag = DAG("[a][b|a]")
    assert str(dag.essential(numbers="b")) == "a -> b"
    assert str(dag.essential(numbers=["a", "b"])) == "a - b"
    with pytest.raises(StructureError, match=r"Node 'a' of 'numbers' is a parent of 'b', which is none of them. Name"):
        dag.essential(numbers=["a"])
    with pytest.raises(StructureError, match="'z'"):
        dag.essential(numbers=["z"])


def test_essential_graphs_follow_from_every_rule():
    """The third of Meek's rules needs four nodes: b is not to point at a, or a, c, d were an immorality."""
    dag = DAG.from_string("[a][c|a][d|a][b|a:c:d]")
    assert str(dag.essential()) == "a -> b, c -> b, d -> b, a - c, a - d"
    assert repr(dag.essential()) == (
        "EssentialGraph(['a', 'c', 'd', 'b'], arrows=[('a', 'b'), ('c', 'b'), ('d', 'b')], "
        "lines=[('a', 'c'), ('a', 'd')])"
    )
    assert str(EssentialGraph(list("ab"), [], [])) == "no edges"


def test_hidden_nodes_of_graphs_without_directions_have_canonical_names(rng):
    kinds = {0: 2, 1: 2, 2: 2}
    graphs = [setting["structure"] for setting in ChordalSpace(range(5))]
    keys = {}
    for k in rng.choice(len(graphs), 60, replace=False):
        images = {graphs[k].relabel(dict(zip(range(3), names))) for names in permutations(range(3))}
        assert len({image.canonical(kinds) for image in images}) == 1
        assert len(images) == 6 // graphs[k].n_automorphisms(kinds)
        assert keys.setdefault(graphs[k].canonical(kinds), images) == images
    dag = DAG.from_string("[h0][h1][y|h0:h1][z|h1]")
    swapped = dag.relabel({"h0": "h1", "h1": "h0"})
    assert dag.essential() != swapped.essential()
    assert dag.essential().canonical({"h0": 2, "h1": 2}) == swapped.essential().canonical({"h0": 2, "h1": 2})


@pytest.mark.parametrize("isolated", [False, True])
def test_chordal_spaces_with_latents_have_each_model_once(isolated):
    latents = {"h0": 2, "h1": 2}
    space = ChordalSpace(list("abc"), latents=latents, isolated=isolated)
    labeled = [setting["structure"] for setting in ChordalSpace([*latents, *"abc"])]
    allowed = [graph for graph in labeled if isolated or all(map(graph.neighbors, latents))]
    keys = {canonical({"structure": graph, "latents": latents}) for graph in allowed}
    settings = space.to_list()
    assert {canonical(setting) for setting in settings} == keys
    assert len(settings) == len(keys) == space.n_settings
    assert sum(space.orbit_size(setting) for setting in settings) == len(allowed)
    renamed = {"structure": settings[7]["structure"].relabel({"h0": "g", "h1": "k"}), "latents": {"k": 2, "g": 2}}
    assert renamed in space
    assert {"structure": settings[7]["structure"], "latents": {"h0": 2, "h1": 3}} not in space
    assert ({"structure": UndirectedGraph(["h0", "h1", *"abc"]), "latents": latents} in space) == isolated


@pytest.mark.parametrize("latents", [{}, {"h0": 2, "h1": 2}])
def test_neighbors_of_chordal_graphs_differ_by_an_edge_and_all_graphs_are_joined(latents):
    space = ChordalSpace(list("ab" if latents else "abcd"), latents=latents)
    settings = {canonical(setting): setting for setting in space}
    near = {key: list(space.neighbors(setting)) for key, setting in settings.items()}
    for key, setting in settings.items():
        graph, pairs = setting["structure"], combinations(setting["structure"].nodes, 2)
        changed = [{**setting, "structure": UndirectedGraph(graph.nodes, set(graph.edges) ^ {pair})} for pair in pairs]
        keys = [canonical(neighbor) for neighbor in near[key]]
        assert set(keys) == {canonical(one) for one in changed if one in space} - {key}
        assert len(keys) == len(set(keys))
        assert all(key in map(canonical, near[other]) for other in map(canonical, near[key]))
    reached, waiting = set(), [next(iter(settings))]
    while waiting:
        key = waiting.pop()
        reached.add(key)
        waiting += [other for other in map(canonical, near[key]) if other not in reached]
    assert reached == set(settings)


def test_what_is_not_chordal_or_has_directions_is_in_no_chordal_space():
    space = ChordalSpace(list("abcd"))
    assert {"structure": UndirectedGraph(list("dcba"), [("a", "b")])} in space
    assert {"structure": UndirectedGraph(list("abcd"), [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])} not in space
    assert {"structure": "[a][b|a][c][d]"} not in space
    assert {"structure": UndirectedGraph(list("abc"), [("a", "b")])} not in space
    assert {"structure": UndirectedGraph(list("abcd"), [("a", "b")])} not in DAGSpace(list("abcd"))
    assert ChordalSpace(nodes=["a", "b"]).parameters == {"structure"}
    assert repr(ChordalSpace(list("ab"), latents={"h": 2})) == "ChordalSpace(nodes=('a', 'b'), latents={'h': 2})"


def test_edge_priors_know_edges_without_directions_by_either_order():
    space = ChordalSpace(["a", "b"])
    for edge in (("a", "b"), ("b", "a")):
        np.testing.assert_allclose(np.exp(EdgePrior({edge: 0.75}).log_prior(space)), [0.25, 0.75])
        np.testing.assert_allclose(np.exp(EdgePrior({edge: 1.0}).log_prior(space)), [0.0, 1.0])
