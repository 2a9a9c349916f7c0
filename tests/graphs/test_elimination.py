"""Junction trees: what makes them right, and how wide they come out."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.approximation import treewidth_min_degree, treewidth_min_fill_in

from skvbem.graphs.elimination import junction_tree


@st.composite
def problems(draw, max_variables=9, fewest_states=1):
    """Cardinalities, and scopes of factors that connect all variables."""
    n = draw(st.integers(1, max_variables))
    cardinalities = draw(st.lists(st.integers(fewest_states, 4), min_size=n, max_size=n))
    scopes = [(k, draw(st.integers(0, k - 1))) for k in range(1, n)] or [(0,)]
    more = st.lists(st.integers(0, n - 1), min_size=1, max_size=4, unique=True).map(tuple)
    return cardinalities, [*scopes, *draw(st.lists(more, max_size=6))]


def interaction_graph(n, scopes):
    graph = nx.empty_graph(n)
    graph.add_edges_from(pair for scope in scopes for pair in itertools.combinations(scope, 2))
    return graph


def elimination_cliques(graph, order):
    """Each variable with its neighbors when its turn comes."""
    graph = {v: set(graph[v]) for v in graph}
    for v in order:
        neighbors = graph.pop(v)
        for u in neighbors:
            graph[u] |= neighbors - {u}
            graph[u] -= {v}
        yield frozenset(neighbors | {v})


def check_junction_tree(tree, cardinalities, scopes):
    n_cliques = len(tree.cliques)
    assert tree.parents[-1] == -1
    assert all(k < parent < n_cliques for k, parent in enumerate(tree.parents[:-1]))
    assert {v for clique in tree.cliques for v in clique} == set(range(len(cardinalities)))
    assert all(clique == tuple(sorted(set(clique))) for clique in tree.cliques)
    for scope, home in zip(scopes, tree.homes, strict=True):
        assert set(scope) <= set(tree.cliques[home])
    for v in range(len(cardinalities)):  # running intersection: the cliques of a variable are one subtree
        with_v = [k for k in range(n_cliques) if v in tree.cliques[k]]
        tops = [k for k in with_v if tree.parents[k] < 0 or v not in tree.cliques[tree.parents[k]]]
        assert len(tops) == 1
    for k, parent in enumerate(tree.parents):
        above = set(tree.cliques[parent]) if parent >= 0 else set()
        assert tree.separator(k) == tuple(sorted(set(tree.cliques[k]) & above))
    for a, b in itertools.permutations(tree.cliques, 2):
        assert not set(a) <= set(b)
    assert tree.treewidth == max(map(len, tree.cliques)) - 1


@given(problems())
def test_a_junction_tree_is_one(problem):
    cardinalities, scopes = problem
    check_junction_tree(junction_tree(cardinalities, scopes), cardinalities, scopes)


def cost(cliques, cardinalities):
    """Cells of all cliques that no other contains."""
    maximal = [c for c in cliques if not any(c < other for other in cliques)]
    return sum(math.prod(cardinalities[v] for v in clique) for clique in set(maximal))


@given(problems(max_variables=6, fewest_states=2))
def test_the_cost_is_close_to_the_least(problem):
    """Against every order of elimination."""
    cardinalities, scopes = problem
    graph = interaction_graph(len(cardinalities), scopes)
    found = cost({frozenset(clique) for clique in junction_tree(cardinalities, scopes).cliques}, cardinalities)
    orders = itertools.permutations(range(len(cardinalities)))
    least = min(cost(set(elimination_cliques(graph, order)), cardinalities) for order in orders)
    assert least <= found <= 2 * least


@given(problems(max_variables=14))
def test_binary_trees_are_as_narrow_as_greedy_orders_elsewhere(problem):
    _, scopes = problem
    n = max(map(max, scopes)) + 1
    graph = interaction_graph(n, scopes)
    elsewhere = max(treewidth_min_degree(graph)[0], treewidth_min_fill_in(graph)[0])
    assert junction_tree([2] * n, scopes).treewidth <= elsewhere


@given(problems(max_variables=7))
def test_a_complete_sum_through_the_tree_is_the_sum(problem):
    """Random tables on the scopes, summed clique by clique, and all at once."""
    cardinalities, scopes = problem
    rng = np.random.default_rng(len(scopes))
    tables = [rng.random([cardinalities[v] for v in scope]) for scope in scopes]
    letters = [chr(97 + v) for v in range(len(cardinalities))]
    terms = ",".join("".join(letters[v] for v in scope) for scope in scopes)
    whole = np.einsum(f"{terms}->", *tables, optimize=True)
    tree = junction_tree(cardinalities, scopes)
    messages = [[] for _ in tree.cliques]
    for scope, home, table in zip(scopes, tree.homes, tables, strict=True):
        messages[home].append((scope, table))
    for k, clique in enumerate(tree.cliques):
        clique_terms = [*messages[k], (clique, np.ones([cardinalities[v] for v in clique]))]
        subscripts = ",".join("".join(letters[v] for v in scope) for scope, _ in clique_terms)
        separator = tree.separator(k)
        result = np.einsum(f"{subscripts}->{''.join(letters[v] for v in separator)}", *(t for _, t in clique_terms))
        if tree.parents[k] >= 0:
            messages[tree.parents[k]].append((separator, result))
    assert result == pytest.approx(whole)


@pytest.mark.parametrize(
    ("n", "scopes", "width"),
    [
        (1, [(0,)], 0),
        (400, [(k, k + 1) for k in range(399)], 1),
        (200, [(k, (k - 1) // 2) for k in range(1, 200)], 1),
        (100, [*((k, k + 1) for k in range(99)), (99, 0)], 2),
        (12, list(itertools.combinations(range(12), 2)), 11),
        (60, [(0, k) for k in range(1, 60)], 1),
        (61, [tuple(range(k, k + 4)) for k in range(58)], 3),
    ],
    ids=["one", "chain", "tree", "cycle", "complete", "star", "band"],
)
def test_widths_of_known_graphs(n, scopes, width):
    tree = junction_tree([2] * n, scopes)
    check_junction_tree(tree, [2] * n, scopes)
    assert tree.treewidth == width


def test_a_grid_is_no_wider_than_its_side():
    side = 6
    scopes = [(side * i + j, side * i + j + 1) for i in range(side) for j in range(side - 1)]
    scopes += [(side * i + j, side * (i + 1) + j) for i in range(side - 1) for j in range(side)]
    tree = junction_tree([2] * side**2, scopes)
    check_junction_tree(tree, [2] * side**2, scopes)
    assert side <= tree.treewidth <= side + 1


def test_large_cardinalities_are_kept_out_of_large_cliques():
    """A cycle a - B - c - D with B and D of many states: join a and c, not B and D."""
    tree = junction_tree([2, 50, 2, 50], [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert sum(math.prod([2, 50, 2, 50][v] for v in clique) for clique in tree.cliques) == 400


def test_the_tree_does_not_depend_on_the_order_of_factors():
    scopes = [(0, 1, 2), (2, 3), (3, 4, 5), (5, 0), (1, 4)]
    trees = {junction_tree([2] * 6, order).cliques for order in itertools.permutations(scopes)}
    assert len(trees) == 1
