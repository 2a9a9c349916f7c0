"""Sets to adjust for, against criteria as they are written, by paths and all subsets, and against effects of tables."""

import itertools
from functools import cache

import numpy as np
import pytest
from reference.structures import all_dags

from skvbem import DAG, Network
from skvbem.errors import StructureError, TooLargeError
from skvbem.graphs import adjustment


@cache
def paths(dag, one, other):
    """All paths between two nodes, as tuples of nodes."""
    neighbors = {node: {*dag.parents(node), *dag.children(node)} for node in dag.nodes}
    done, waiting = [], [(one,)]
    while waiting:
        path = waiting.pop()
        if path[-1] == other:
            done.append(path)
        else:
            waiting += [(*path, node) for node in neighbors[path[-1]] - set(path)]
    return done


def is_blocked(dag, path, given):
    """By a node that is no collider and in `given`, or a collider that is not, nor has a descendant in it."""
    for before, node, after in zip(path, path[1:], path[2:]):
        collides = {before, after} <= set(dag.parents(node))
        if not collides and node in given:
            return True
        if collides and not ({node} | dag.descendants(node)) & set(given):
            return True
    return False


def is_back_door(dag, target, action, given):
    """[Pearl09, definition 3.3.1]"""
    into = [path for path in paths(dag, action, target) if path[1] in dag.parents(action)]
    return not dag.descendants(action) & set(given) and all(is_blocked(dag, path, given) for path in into)


def is_front_door(dag, target, action, between):
    """[Pearl09, definition 3.3.3], back-door paths being those that begin with an arrow into a node.

    Paths from one of the nodes between that go on along an edge out of another are part of the effect of both [JTB22].
    """
    directed = [p for p in paths(dag, action, target) if all(a in dag.parents(b) for a, b in itertools.pairwise(p))]
    if any(not set(path) & set(between) for path in directed):
        return False
    cut = DAG.from_edges([edge for edge in dag.edges if edge[0] not in between], nodes=dag.nodes)
    return all(
        all(is_blocked(dag, path, ()) for path in paths(dag, action, node) if path[1] in dag.parents(action))
        and all(is_blocked(cut, path, [action]) for path in paths(cut, node, target))
        for node in between
    )


def smallest(dag, target, action, hidden, criterion):
    """The sets of observed nodes that a criterion allows and of which it allows no part, in order of their size."""
    rest = [node for node in dag.nodes if node not in (target, action, *hidden)]
    found = []
    for size in range(len(rest) + 1):
        for nodes in itertools.combinations(rest, size):
            if not any(set(less) <= set(nodes) for less in found) and criterion(dag, target, action, nodes):
                found.append(nodes)
    return found


def problems():
    """All graphs of four nodes with every hidden node or none, and some of six."""
    for dag in all_dags("abcd"):
        for hidden in ("", "c", "d", "cd"):
            yield dag, hidden
    rng = np.random.default_rng(0)
    for _ in range(110):
        names = [str(k) for k in rng.permutation(6)]
        edges = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.45]
        yield DAG.from_edges(edges, nodes=names), [node for node in names[2:] if rng.random() < 0.25]


def test_smallest_sets_are_those_of_the_criteria():
    n_back, n_front = 0, 0
    for dag, hidden in problems():
        observed = [node for node in dag.nodes if node not in hidden][:2]
        for target, action in itertools.permutations(observed, 2):
            back = smallest(dag, target, action, hidden, is_back_door)
            assert dag.adjustment_sets(target, action, hidden=tuple(hidden)) == back
            front = smallest(dag, target, action, hidden, is_front_door)
            assert dag.front_door_sets(target, action, hidden=tuple(hidden)) == front
            n_back += len(back) > 1
            n_front += len(front) > 1 or (len(front) == 1 and front[0] != ())
    assert min(n_back, n_front) > 15


def drawn(dag, rng):
    tables = {node: rng.dirichlet(np.ones(2), size=(2,) * len(dag.parents(node))) for node in dag.nodes}
    return Network(dag, dict.fromkeys(dag.nodes, (0, 1)), tables)


def adjusted(network, targets, do, nodes):
    """The average of p(targets | do seen, nodes) over p(nodes)."""
    total = 0.0
    for states in itertools.product((0, 1), repeat=len(nodes)):
        z = dict(zip(nodes, states))
        weight = network.query(list(nodes), {}).values[states] if nodes else 1.0
        total = total + weight * network.query(targets, {**do, **z}).values
    return total


def through_the_front_door(network, target, action, state, nodes):
    """[Pearl09, (3.29)] with a set of nodes between."""
    prior = network.query(action).values
    total = 0.0
    for states in itertools.product((0, 1), repeat=len(nodes)):
        z = dict(zip(nodes, states))
        weight = network.query(list(nodes), {action: state}).values[states] if nodes else 1.0
        inner = sum(prior[x] * network.query(target, {action: x, **z}).values for x in (0, 1))
        total = total + weight * inner
    return total


@pytest.mark.parametrize("seed", range(8))
def test_what_is_adjusted_for_gives_the_effect(seed):
    """For random tables; also of several actions and targets, where a back door of each alone would not do."""
    rng = np.random.default_rng(seed)
    names = [str(k) for k in rng.permutation(6)]
    dag = DAG.from_edges([pair for pair in itertools.combinations(names, 2) if rng.random() < 0.5], nodes=names)
    network, n_sets = drawn(dag, rng), 0
    for targets, actions in (("0", "1"), ("2", "3"), ("45", "1"), ("0", "23"), ("51", "04")):
        do = dict.fromkeys(actions, 1)
        effect = network.query(list(targets), do=do).values
        for nodes in dag.adjustment_sets(list(targets), do=list(actions)):
            np.testing.assert_allclose(adjusted(network, list(targets), do, nodes), effect, rtol=1e-9)
            n_sets += 1
        if len(targets) == len(actions) == 1:
            for nodes in dag.front_door_sets(targets, do=actions):
                here = through_the_front_door(network, targets, actions, 1, nodes)
                np.testing.assert_allclose(here, effect, rtol=1e-9)
                n_sets += 1
    assert n_sets


#: (graph, target, action, hidden, back door, front door): facts of the literature, as dagitty and pgmpy have them.
FACTS = {
    "Pearl's figure 3.4": (
        "[x1][x2][x3|x1][x4|x1:x2][x5|x2][x|x3:x4][x6|x][y|x4:x5:x6]",
        "y",
        "x",
        "",
        [("x1", "x4"), ("x2", "x4"), ("x3", "x4"), ("x4", "x5")],
        [("x6",)],
    ),
    "M bias: nothing is to be adjusted for": ("[u][v][m|u:v][x|u][y|v:x]", "y", "x", "", [()], []),
    "confounder": ("[z][x|z][y|x:z]", "y", "x", "", [("z",)], []),
    "hidden confounder": ("[z][x|z][y|x:z]", "y", "x", "z", [], []),
    "mediator": ("[x][m|x][y|m]", "y", "x", "", [()], [("m",)]),
    "smoking": ("[u][x|u][m|x][y|m:u]", "y", "x", "u", [], [("m",)]),
    "two mediators, both needed": ("[u][x|u][m|x][n|x][y|m:n:u]", "y", "x", "u", [], [("m", "n")]),
    "a chain of mediators": ("[u][x|u][m|x][n|m][y|n:u]", "y", "x", "u", [], [("m",), ("n",)]),
    "instrument": ("[u][z][x|z:u][y|x:u]", "y", "x", "u", [], []),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_the_literature(name):
    text, target, action, hidden, back, front = FACTS[name]
    dag = DAG(text)
    assert dag.adjustment_sets(target, action, hidden=hidden or ()) == back
    assert dag.front_door_sets(target, action, hidden=hidden or ()) == front


def test_several_actions_at_once():
    """Adjusting for v, a child of an action and of a hidden cause, would open a path, though it is on no causal one."""
    dag = DAG("[x1][u][v|x1:u][x2|v][y|x2:u]")
    assert dag.adjustment_sets("y", do=["x1", "x2"]) == [("u",)]
    assert dag.adjustment_sets("y", do="x2") == [("u",), ("v",)]


def test_costs_decide_the_order():
    dag = DAG(FACTS["Pearl's figure 3.4"][0])
    sets = dag.adjustment_sets("y", do="x", costs={"x4": 2, "x5": 0.5, "x2": 3.0})
    assert sets == [("x4", "x5"), ("x1", "x4"), ("x3", "x4"), ("x2", "x4")]


def test_sets_of_large_graphs(monkeypatch):
    """Confounders of which each needs one of the two nodes of a chain, in a graph of many more nodes."""

    def confounded(n):
        chains = [[("x", f"a{k}"), (f"a{k}", f"b{k}"), (f"b{k}", "y")] for k in range(n)]
        turned = [(parent, child) if parent != "x" else (child, parent) for parent, child in itertools.chain(*chains)]
        return DAG([*turned, *((f"n{k}", f"n{k + 1}") for k in range(100)), ("n50", "x")])

    sets = confounded(8).adjustment_sets("y", do="x")
    assert len(sets) == len(set(sets)) == 2**8
    assert all({node[1:] for node in nodes} == set("01234567") for nodes in sets)
    monkeypatch.setattr(adjustment, "_MAX_SETS", 100)
    with pytest.raises(TooLargeError, match="more than 100 such sets"):
        confounded(30).adjustment_sets("y", "x")
    chain = DAG([("u", "x"), ("u", "y"), ("x", "m0"), *((f"m{k}", f"m{k + 1}") for k in range(9)), ("m9", "y")])
    assert chain.front_door_sets("y", "x", hidden="u") == [(f"m{k}",) for k in range(10)]


def test_what_is_not_known_is_refused():
    dag = DAG("[z][x|z][y|x:z]")
    with pytest.raises(StructureError, match="'w' is not a node of the graph"):
        dag.adjustment_sets("y", "w")
    with pytest.raises(StructureError, match=r"adjustment_sets needs sets of nodes that share none\. 'y' is in two"):
        dag.adjustment_sets("y", "x", hidden="y")
    with pytest.raises(StructureError, match=r"front_door_sets needs .* 'x' is in two"):
        dag.front_door_sets(["y", "x"], "x")
    for wrong in (-1, "one", float("nan")):
        with pytest.raises(ValueError, match="costs of nodes must be numbers >= 0"):
            dag.adjustment_sets("y", "x", costs={"z": wrong})
