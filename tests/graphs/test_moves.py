import pickle
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.structures import all_dags, classes, obeys

from skvbem.errors import StructureError
from skvbem.graphs.dag import DAG
from skvbem.spaces import BipartiteSpace, CardinalityGrid, DAGSpace, GridSpace, LatentClassSpace, ListSpace, canonical
from skvbem.spaces.moves import (
    AddEdge,
    AddLatent,
    AddState,
    RemoveEdge,
    RemoveLatent,
    RemoveState,
    ReverseEdge,
    edge_moves,
    latent_moves,
    possible_edge_moves,
    state_moves,
)
from skvbem.spaces.rules import make_rules

NODES = ("a", "b", "c", "d")
RULES = [
    {},
    {"max_parents": 1},
    {"tiers": [["a", "b"], ["c", "d"]]},
    {"required": [("a", "b"), ("b", "c")], "max_parents": 2},
    {"forbidden": [("a", "b"), ("b", "a"), ("c", "d")]},
]


def differ_by_one_edge(one, other):
    """Whether one edge was added, removed or turned, by definition."""
    lost, won = set(one.edges) - set(other.edges), set(other.edges) - set(one.edges)
    return len(lost) + len(won) == 1 or (len(lost) == len(won) == 1 and {edge[::-1] for edge in lost} == won)


class TestEdgeMoves:
    @pytest.mark.parametrize("rules", RULES, ids=str)
    def test_they_are_all_graphs_within_the_rules_that_differ_by_one_edge(self, rules):
        dags = [dag for dag in all_dags(NODES) if obeys(dag, **rules)]
        for dag in dags[::11]:
            found = [other for _, other in edge_moves(dag, make_rules(NODES, **rules))]
            assert len(found) == len(set(found))
            assert set(found) == {other for other in dags if differ_by_one_edge(dag, other)}

    @settings(deadline=None, max_examples=50)
    @given(st.sampled_from(all_dags(NODES)))
    def test_reverse_leads_back(self, dag):
        moves = dict(edge_moves(dag))
        assert list(possible_edge_moves(dag)) == list(moves)
        for move, other in moves.items():
            assert dict(edge_moves(other))[move.reverse] == dag
            assert move.reverse.reverse == move
            assert move.apply({"structure": str(dag), "alpha": 1}) == {"structure": other, "alpha": 1}
            assert pickle.loads(pickle.dumps(move)) == move

    def test_kinds_of_moves(self):
        moves = list(possible_edge_moves(DAG.from_string("[a][b|a][c]")))
        assert (
            moves.count(AddEdge("b", "c"))
            == moves.count(RemoveEdge("a", "b"))
            == moves.count(ReverseEdge("a", "b"))
            == 1
        )
        assert len({type(move) for move in moves}) == 3
        assert len(moves) == 4 + 1 + 1

    def test_moves_that_cannot_be_made(self):
        dag = DAG.from_string("[a][b|a][c|b:a]")
        for move, message in [
            (AddEdge("a", "b"), "given twice"),
            (AddEdge("c", "a"), "no directed cycle"),
            (RemoveEdge("b", "a"), "has no edge b -> a"),
            (ReverseEdge("a", "c"), "no directed cycle"),
        ]:
            with pytest.raises(StructureError, match=message):
                move.change(dag)
        with pytest.raises(StructureError, match="does not obey the rules"):
            edge_moves(dag, make_rules("abc", max_parents=1))
        with pytest.raises(StructureError, match="needs a setting with a structure"):
            AddEdge("a", "b").apply({"n_components": 2})


class TestLatentsAndStates:
    SETTING = {"structure": DAG.from_string("[h0][x|h0][y|h0:x][z]"), "latents": {"h0": 2}, "alpha": 1}  # noqa: RUF012

    def test_a_latent_comes_and_goes(self):
        found = dict(latent_moves(self.SETTING, n_states=[2, 3], n_children=[0, 2]))
        added = [move for move in found if isinstance(move, AddLatent)]
        assert len(added) == 2 * (1 + 6)
        assert RemoveLatent("h0", 2, ("x", "y")) in found
        assert len(found) == len(added) + 1
        for move, setting in found.items():
            assert canonical(move.reverse.apply(setting)) == canonical(self.SETTING)
            assert setting["alpha"] == 1
        grown = found[AddLatent("h1", 3, ("x", "z"))]
        assert grown["latents"] == {"h0": 2, "h1": 3}
        assert str(grown["structure"]) == "[h0][h1][x|h0:h1][y|h0:x][z|h1]"
        assert found[RemoveLatent("h0", 2, ("x", "y"))]["latents"] == {}
        assert not [move for move, _ in latent_moves(self.SETTING, n_children=[1]) if isinstance(move, RemoveLatent)]

    def test_states_come_and_go(self):
        found = dict(state_moves(self.SETTING))
        assert {move: setting["latents"] for move, setting in found.items()} == {
            AddState("h0"): {"h0": 3},
            RemoveState("h0"): {"h0": 1},
        }
        assert all(move.reverse.apply(setting) == self.SETTING for move, setting in found.items())
        assert len(list(state_moves({**self.SETTING, "latents": {"h0": 1}}))) == 1

    def test_they_end_within_a_space(self):
        space = BipartiteSpace({"h0": 2}, ["x", "y"]) + BipartiteSpace({"h0": 2, "h1": 2}, ["x", "y"])
        for setting in space:
            assert all(end in space for _, end in latent_moves(setting, space, n_children=range(3)))
        grid = CardinalityGrid({"h0": [2, 3]}, "[h0][x|h0]")
        moves = [move for setting in grid for move, _ in state_moves(setting, grid)]
        assert moves == [AddState("h0"), RemoveState("h0")]

    def test_moves_that_cannot_be_made(self):
        for move, message in [
            (AddLatent("x", 2), "'x' is a node already"),
            (AddLatent("g", 2, ("q",)), "'q' is not a node of the graph"),
            (RemoveLatent("h0", 3, ("x", "y")), "has no latent 'h0' as RemoveLatent"),
            (RemoveLatent("h0", 2, ("x",)), "has no latent 'h0' as RemoveLatent"),
            (AddState("x"), "'x' is no latent with 1 states or more"),
        ]:
            with pytest.raises(StructureError, match=message):
                move.apply(self.SETTING)
        with pytest.raises(StructureError, match="'h0' is no latent with 2 states or more"):
            RemoveState("h0").apply({**self.SETTING, "latents": {"h0": 1}})

    def test_edges_of_a_latent_come_back(self):
        move = RemoveLatent("h", 2, ("y",), ("x",))
        setting = {"structure": "[x][h|x][y|h:x]", "latents": {"h": 2}}
        assert canonical(move.reverse.apply(move.apply(setting))) == canonical(setting)


def neighborhoods(space):
    """The graph of keys in which neighbors are joined, after checking what `neighbors` promises."""
    keys = [space.canonical(setting) for setting in space]
    joined = nx.DiGraph()
    joined.add_nodes_from(keys)
    for setting, key in zip(space, keys):
        near = list(space.neighbors(setting))
        near_keys = [space.canonical(neighbor) for neighbor in near]
        assert all(neighbor in space for neighbor in near)
        assert len(near_keys) == len(set(near_keys))
        assert key not in near_keys
        joined.add_edges_from((key, other) for other in near_keys)
    assert set(joined) == set(keys)
    return joined


XY, XYZ = ["x", "y"], ["x", "y", "z"]
CONNECTED = [
    BipartiteSpace(["a", "b"], XYZ),
    BipartiteSpace({"a": 2, "b": 3}, XYZ, max_parents=1),
    BipartiteSpace(["a", "b", "c"], XY, min_parents=1),
    BipartiteSpace(["a", "b"], XYZ, childless=False),
    DAGSpace(NODES),
    DAGSpace(NODES, max_parents=1),
    DAGSpace(NODES, tiers=[["a"], ["b", "c"], ["d"]], required=[("a", "c")], forbidden=[("a", "d")]),
    DAGSpace(NODES, numbers=["c", "d"]),
    DAGSpace(XY, {"g": 2, "h": 2}, numbers="y"),
    DAGSpace(XY, {"g": 2, "h": 2}),
    DAGSpace(XY, {"g": 2, "h": 2}, childless=True, tiers=[["g", "h"], XY]),
    DAGSpace(XY, {"g": 2, "h": 3}, max_parents=1),
    DAGSpace(XY, {"g": 2, "h": 2}, required=[("g", "x")]),
    DAGSpace(XY, {"g": 2, "h": 2}, forbidden=[("g", "x"), ("h", "y")]),
    DAGSpace(["x"], {"f": 2, "g": 2, "h": 2}, forbidden=[("f", "g")], max_parents=1, childless=True),
    CardinalityGrid({"g": [2, 3, 5], "h": range(2, 5)}, "[g][h][x|g:h][y|g:h]"),
    CardinalityGrid({"g": [2, 3, 5], "h": range(2, 5)}, "[g][h][x|g:h][y|g]"),
    LatentClassSpace(range(1, 9), XY),
    GridSpace({"a": [3, 1, 2], "b": ["p", "q", None]}),
    GridSpace([{"a": [3, 1, 2]}, {"b": ["p", "q"]}]),
    ListSpace(all_dags(XY)),
    BipartiteSpace(["a"], XY) * {"alpha": [0.5, 1.0]},
    BipartiteSpace({}, XYZ) + BipartiteSpace(["a"], XYZ) + BipartiteSpace(["a", "b"], XYZ),
    BipartiteSpace(["a", "b"], XY) + CardinalityGrid({"a": [2, 3], "b": [2, 3]}, "[a][b][x|a:b][y|b]"),
    DAGSpace(XY) + DAGSpace(XY, ["h"]) + {"n_components": [1, 2]},
]


@pytest.mark.parametrize("space", CONNECTED, ids=lambda space: repr(space)[:80])
def test_moves_lead_everywhere_and_back(space):
    joined = neighborhoods(space)
    assert all(joined.has_edge(other, one) for one, other in joined.edges)
    assert nx.is_strongly_connected(joined)


@pytest.mark.parametrize("space", [space for space in CONNECTED if isinstance(space, DAGSpace)], ids=repr)
def test_neighbors_are_classes_joined_by_one_edge(space):
    """By definition: some labeled graph of the one differs by one edge from some labeled graph of the other."""
    nodes = (*space.latents, *space.observed)
    rules = {name: getattr(space, name) for name in ("tiers", "required", "forbidden", "max_parents")}
    labeled = [
        dag
        for dag in all_dags(nodes)
        if obeys(dag, **rules)
        and (space.childless or all(map(dag.children, space.latents)))
        and all(child in space.numbers for number in space.numbers or () for child in dag.children(number))
    ]
    groups = {canonical({"structure": g[0], "latents": space.latents}): g for g in classes(labeled, space.latents)}
    joined = neighborhoods(space)
    assert set(joined) == set(groups)
    for one in list(groups)[::13]:
        near = {
            other
            for other in groups
            if other != one and any(differ_by_one_edge(a, b) for a in groups[one] for b in groups[other])
        }
        assert set(joined.successors(one)) == near


def test_a_space_may_fall_apart_and_says_where():
    """Two latents told apart by their states, one place each, none of them childless: no single edge can be moved."""
    space = BipartiteSpace({"a": 2, "b": 3}, XY, max_parents=1, childless=False)
    assert [list(space.neighbors(setting)) for setting in space] == [[], []]


def test_steps_keep_the_names_of_latents():
    """Whoever carries responsibilities from neighbor to neighbor must know which latent is which."""
    space = BipartiteSpace(["a", "b"], XYZ)
    setting = {"structure": DAG.from_string("[a][b][x|b][y|b][z|a:b]"), "latents": {"a": 2, "b": 2}}
    near = [neighbor["structure"] for neighbor in space.neighbors(setting)]
    assert len(near) == 6
    assert all(differ_by_one_edge(setting["structure"], dag) for dag in near)


def test_a_walk_comes_back_to_where_it_was(rng):
    space = DAGSpace(XYZ, {"g": 2, "h": 2}, max_parents=2)
    walk = [next(iter(space))]
    for _ in range(30):
        near = list(space.neighbors(walk[-1]))
        walk.append(near[rng.integers(len(near))])
    for here, there in pairwise(walk):
        assert canonical(here) in map(canonical, space.neighbors(there))
