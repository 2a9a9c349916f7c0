import copy
import pickle
import subprocess
import sys
from collections import Counter
from itertools import islice, product
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.structures import all_dags, bipartite_dags, classes, obeys, renamings
from sklearn.model_selection import ParameterGrid

from skvbem.errors import StructureError, TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.spaces import (
    BipartiteSpace,
    CardinalityGrid,
    DAGSpace,
    GridSpace,
    LatentClassSpace,
    ListSpace,
    canonical,
    coerce_space,
)
from skvbem.spaces.rules import make_rules
from skvbem.spaces.settings import value_key

BG_LATENTS = {"h0": 2, "h1": 2}
BG_OBSERVED = ["y0", "y1", "y2", "y3"]
BG = BipartiteSpace(BG_LATENTS, BG_OBSERVED)
# Labeled acyclic graphs on 0, 1, ... nodes: Robinson 1973, OEIS A003024.
ROBINSON = [1, 1, 3, 25, 543, 29281, 3781503, 1138779265, 783702329343, 1213442454842881]


def graphs(space):
    return [setting["structure"] for setting in space]


def check_against_classes(space, expected, latents):
    """A space lists one graph of each class, counts and sizes as they are, and knows every labeled graph as its own."""
    class_of = {dag: place for place, members in enumerate(expected) for dag in members}
    listed = list(space)
    assert space.n_settings == len(listed) == len(expected)
    assert sorted(class_of[setting["structure"]] for setting in listed) == list(range(len(expected)))
    for setting in listed:
        members = expected[class_of[setting["structure"]]]
        assert space.orbit_size(setting) == len(members)
        assert all({**setting, "structure": dag} in space for dag in members)
        assert {space.canonical({**setting, "structure": dag}) for dag in members} == {canonical(setting)}
        assert {space.representative(dag) for dag in members} == {setting["structure"]}
        assert setting.get("latents", {}) == latents


class TestCanonicalKeys:
    def test_names_of_latents_do_not_matter_and_numbers_of_states_do(self):
        one = {"structure": "[h0][h1][x|h0][y|h0:h1]", "latents": {"h0": 2, "h1": 3}}
        same = [
            {"structure": "[h0][h1][x|h1][y|h0:h1]", "latents": {"h0": 3, "h1": 2}},
            {"structure": "[y|b:a][x|a]", "latents": {"b": 3, "a": 2}},
            {"latents": {"h1": 3, "h0": 2}, "structure": {"x": "h0", "y": ["h1", "h0"]}},
        ]
        other = [
            {"structure": "[h0][h1][x|h0][y|h0:h1]", "latents": {"h0": 3, "h1": 2}},
            {"structure": "[h0][h1][x|h0][y|h0:h1]", "latents": {"h0": 2, "h1": 2}},
            {"structure": "[h0][h1][x|h0][y|h0:h1]", "latents": {"h0": 2}},
            {"structure": "[h0][h1][x|h0][y|h0:h1]"},
            {"structure": "[h0][h1][x|h0][y|h0:h1]", "latents": {"h0": 2, "h1": 3}, "method": "map"},
        ]
        assert {canonical(setting) for setting in same} == {canonical(one)}
        assert len({canonical(setting) for setting in other} - {canonical(one)}) == len(other)

    @settings(deadline=None, max_examples=40)
    @given(st.sampled_from(all_dags(["a", "b", "y"])), st.sampled_from(all_dags(["a", "b", "y"])), st.data())
    def test_two_settings_have_one_key_exactly_when_a_renaming_makes_them_one(self, one, other, data):
        states = [data.draw(st.fixed_dictionaries({"a": st.integers(1, 3), "b": st.integers(1, 3)})) for _ in range(2)]
        swap = {"a": "b", "b": "a"}
        same = (one, states[0]) in [
            (other, states[1]),
            (other.relabel(swap), {swap[name]: n for name, n in states[1].items()}),
        ]
        keys = [canonical({"structure": dag, "latents": n}) for dag, n in zip((one, other), states)]
        assert (keys[0] == keys[1]) is same

    def test_a_name_that_users_choose_is_never_one_of_the_keys(self):
        keys = {canonical({"structure": DAG.naive_bayes(name, ["x"]), "latents": {name: 2}}) for name in ("h", 0, (1,))}
        assert len(keys) == 1

    def test_forms_of_latents_are_those_of_the_estimator(self):
        dag = "[h0][x|h0][y|h0]"
        assert canonical({"structure": dag, "latents": 2}) == canonical({"structure": dag, "latents": {"h0": 2}})
        assert canonical({"structure": dag, "latents": ["h0"]}) == canonical({"structure": dag, "latents": {"h0": 2}})
        assert canonical({"structure": dag, "latents": None}) == canonical({"structure": dag})

    def test_other_parameters_are_told_apart_by_value(self):
        values = [
            1,
            2,
            True,
            False,
            None,
            "1",
            1.5,
            np.inf,
            (1, 2),
            {1, 2},
            {"a": 1},
            {"a": [1]},
            np.arange(2),
            range(3),
        ]
        values += [
            np.arange(2.0),
            np.zeros((2, 1)),
            np.array(["a", None], dtype=object),
            DAG.from_string("[a]"),
            len,
            max,
        ]
        assert len({value_key(value) for value in values}) == len(values)
        assert all(hash(value_key(value)) == hash(value_key(copy.copy(value))) for value in values)
        for one, other in [
            (np.int64(2), 2),
            ([1, 2], (1, 2)),
            (np.nan, float("nan")),
            ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ]:
            assert value_key(one) == value_key(other)

    def test_values_that_cannot_be_hashed(self):
        class Unhashable:
            __hash__ = None

        with pytest.raises(TypeError, match="neither be hashed nor pickled"):
            canonical({"alpha": Unhashable()})
        assert canonical({"structure": 5}) != canonical({"structure": "no graph"})


class TestBipartite:
    @pytest.mark.parametrize(("n_latents", "n_observed", "n"), [(2, 2, 10), (2, 3, 36), (2, 4, 136), (3, 4, 816)])
    def test_number_of_structures(self, n_latents, n_observed, n):
        latents = {f"h{i}": 2 for i in range(n_latents)}
        space = BipartiteSpace(latents, [f"y{j}" for j in range(n_observed)])
        expected = classes(bipartite_dags(latents, space.observed), latents)
        assert len(space) == len(expected) == n
        keys = {space.canonical({"structure": members[0], "latents": latents}): len(members) for members in expected}
        assert {canonical(setting): space.orbit_size(setting) for setting in space} == keys

    @pytest.mark.parametrize("m", [0, 1, 5, 40])
    def test_closed_forms(self, m):
        observed = range(m)
        assert BipartiteSpace({"a": 2}, observed).n_settings == 2**m
        assert BipartiteSpace({"a": 2, "b": 3}, observed).n_settings == 4**m
        assert BipartiteSpace(["a", "b"], observed).n_settings == (4**m + 2**m) // 2
        assert BipartiteSpace(["a", "b", "c"], observed).n_settings == (8**m + 3 * 4**m + 2 * 2**m) // 6
        # Multisets of sets of children.
        assert BipartiteSpace([*"abcdef"], observed).n_settings == comb(2**m + 5, 6)
        assert BipartiteSpace([*"abcdef"], [0, *observed[1:]], childless=False).n_settings == comb(
            2 ** max(m, 1) + 4, 6
        )

    @pytest.mark.parametrize(
        "latents", [{"a": 2, "b": 2}, {"a": 2, "b": 3}, {"a": 3, "b": 2, "c": 3}, {"h10": 2, "h9": 2}]
    )
    @pytest.mark.parametrize(
        "bounds", [{}, {"max_parents": 1}, {"min_parents": 1}, {"max_parents": 2, "min_parents": 1}]
    )
    @pytest.mark.parametrize("childless", [True, False])
    def test_bounds_by_brute_force(self, latents, bounds, childless):
        observed = ["y10", "y9", 7]
        least, most = bounds.get("min_parents", 0), bounds.get("max_parents", 3)
        dags = [
            dag
            for dag in bipartite_dags(latents, observed)
            if all(least <= len(dag.parents(node)) <= most for node in observed)
            and (childless or all(map(dag.children, latents)))
        ]
        space = BipartiteSpace(latents, observed, **bounds, childless=childless)
        check_against_classes(space, classes(dags, latents), latents)
        assert all(dag == dag.canonical(latents) for dag in graphs(space))

    def test_the_136_of_the_paper(self):
        """METHODS A.1: counts by number of free parameters, and what the structures with d' = 50 look like."""
        states = {**BG_LATENTS, **dict.fromkeys(BG_OBSERVED, 5)}
        by_size = Counter(dag.n_free_parameters(states) for dag in graphs(BG))
        assert by_size == {18: 1, 22: 4, 26: 12, 30: 20, 34: 20, 38: 24, 42: 22, 46: 12, 50: 12, 54: 4, 58: 4, 66: 1}
        of_50 = [dag for dag in graphs(BG) if dag.n_free_parameters(states) == 50]
        assert all(sorted(len(dag.parents(node)) for node in BG_OBSERVED) == [1, 1, 2, 2] for dag in of_50)
        same_latent = [dag for dag in of_50 if 4 in (len(dag.children("h0")), len(dag.children("h1")))]
        assert len(same_latent) == 6
        labeled = list(bipartite_dags(BG_LATENTS, BG_OBSERVED))
        assert len(labeled) == sum(BG.orbit_size(setting) for setting in BG) == 2**8
        assert Counter(BG.orbit_size(setting) for setting in BG) == {2: 120, 1: 16}
        assert {canonical({"structure": dag, "latents": BG_LATENTS}) for dag in labeled} == set(map(canonical, BG))

    def test_aliases_of_the_136_by_brute_force(self):
        for setting in BG:
            dag = setting["structure"]
            images = {dag.relabel(way) for way in renamings(BG_LATENTS)}
            assert BG.orbit_size(setting) * dag.n_automorphisms(BG_LATENTS) == 2
            assert BG.orbit_size(setting) == len(images)

    def test_it_is_lazy(self):
        space = BipartiteSpace(["a", "b", "c"], range(60), min_parents=1, max_parents=2, childless=False)
        assert len(list(islice(space, 100))) == 100
        big = BipartiteSpace(["a", "b"], range(40))
        assert big.n_settings == (4**40 + 2**40) // 2
        assert big
        with pytest.raises(OverflowError, match=r"BipartiteSpace has 6.04e\+23 settings, more than len\(\) can say"):
            len(big)

    def test_settings_can_be_changed_without_harm(self):
        first = next(iter(BG))
        first["latents"]["h0"] = 7
        assert next(iter(BG))["latents"] == BG_LATENTS


def burnside_by_permutation(latents, n_observed, most):
    """Bipartite graphs fixed by each permutation: parents of every node are a union of cycles."""
    ways = list(renamings(latents))
    total = 0
    for way in ways:
        cycles = list(nx.simple_cycles(nx.DiGraph(way.items())))
        unions = sum(
            sum(len(c) for c, there in zip(cycles, bits) if there) <= most
            for bits in product([0, 1], repeat=len(cycles))
        )
        total += unions**n_observed
    return total // len(ways)


@pytest.mark.parametrize("states", [[2, 2, 2, 2], [2, 2, 2, 3, 3], [2, 3, 3, 4, 4]])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_burnside_permutation_by_permutation(states, most):
    latents = {f"h{i}": n for i, n in enumerate(states)}
    assert BipartiteSpace(latents, range(7), max_parents=most).n_settings == burnside_by_permutation(latents, 7, most)


class TestDAGs:
    def test_robinsons_numbers(self):
        assert [DAGSpace(range(n)).n_settings for n in range(10)] == ROBINSON
        for n in range(1, 5):
            assert set(graphs(DAGSpace(range(n)))) == set(all_dags(range(n)))

    @pytest.mark.slow
    def test_all_29281_come_once(self):
        keys = Counter(graphs(DAGSpace([*"abcde"])))
        assert len(keys) == 29281
        assert set(keys.values()) == {1}

    @settings(deadline=None, max_examples=60)
    @given(st.data())
    def test_rules_and_latents_by_brute_force(self, data):
        states = data.draw(st.lists(st.integers(2, 3), max_size=3))
        latents = {f"h{i}": n for i, n in enumerate(states)}
        observed = [f"y{j}" for j in range(data.draw(st.integers(1, 4 - len(latents))))]
        space, expected = drawn_space(data, latents, observed)
        if not expected:
            with pytest.raises(ValueError, match="There is no setting in"):
                space()
        else:
            check_against_classes(space(), expected, latents)

    @pytest.mark.parametrize(
        ("observed", "latents", "rules"),
        [
            ([], {"a": 2, "b": 2, "c": 3, "d": 3}, {}),
            ([], {"a": 2, "b": 2, "c": 3, "d": 3}, {"max_parents": 1}),
            ([], {"a": 2, "b": 2, "c": 2, "d": 2}, {"max_parents": 2}),
            (["x"], {"a": 2, "b": 2, "c": 2}, {"max_parents": 2}),
            (["x", "y"], {"a": 2, "b": 2}, {"required": [("a", "x"), ("b", "x")], "max_parents": 2}),
            (["x", "y"], {"a": 2, "b": 2}, {"required": [("x", "y")], "max_parents": 2}),
            (["x", "y", "z"], {"a": 2}, {"required": [("x", "y")], "max_parents": 1}),
            (["x", "y", "z"], {"a": 2}, {"required": [("x", "y"), ("a", "z")], "tiers": [["a", "x"], ["y", "z"]]}),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("childless", [True, False])
    def test_counts_by_brute_force(self, observed, latents, rules, childless):
        dags = [dag for dag in all_dags([*latents, *observed]) if obeys(dag, **rules)]
        expected = classes([dag for dag in dags if childless or all(map(dag.children, latents))], latents)
        if expected:
            space = DAGSpace(observed, latents, **rules, childless=childless)
            assert space.n_settings == len(expected) == sum(1 for _ in space)

    def test_edges_may_be_rows_of_a_frame(self):
        """As white lists of bnlearn are, with columns "from" and "to"."""
        pandas = pytest.importorskip("pandas")
        edges = [("x", "y"), ("y", "z")]
        frame = pandas.DataFrame(edges, columns=["from", "to"])
        assert graphs(DAGSpace([*"xyz"], allowed=frame)) == graphs(DAGSpace([*"xyz"], allowed=edges))
        assert len(DAGSpace([*"xyz"], allowed=[])) == 1
        with pytest.raises(TypeError, match=r"allowed must hold pairs \(parent, child\). Got \['x', 'y', 1\]"):
            DAGSpace([*"xyz"], allowed=frame.assign(weight=1))

    @pytest.mark.parametrize("n", range(1, 7))
    def test_exchangeable_latents_by_contraction(self, n):
        """Graphs that stay the same when latents trade places do not join them, and give them the same neighbors: they
        are acyclic graphs with one node in their place."""
        a = ROBINSON
        assert DAGSpace(range(n), ["a", "b"], childless=True).n_settings == (a[n + 2] + a[n + 1]) // 2
        three = DAGSpace(range(n), ["a", "b", "c"], childless=True)
        assert three.n_settings == (a[n + 3] + 3 * a[n + 2] + 2 * a[n + 1]) // 6

    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_tiers_multiply(self, n):
        tiers = [[f"{t}{i}" for i in range(3)] for t in "abc"[: n + 1]]
        nodes = [node for tier in tiers for node in tier]
        assert DAGSpace(nodes, tiers=tiers).n_settings == 25 ** (n + 1) * 2 ** (9 * n * (n + 1) // 2)

    def test_bipartite_is_a_case(self):
        forbidden = [(a, b) for a in BG_OBSERVED for b in BG_OBSERVED if a != b] + [("h0", "h1"), ("h1", "h0")]
        space = DAGSpace(BG_OBSERVED, BG_LATENTS, tiers=[BG_LATENTS, BG_OBSERVED], forbidden=forbidden, childless=True)
        assert len(space) == 136
        assert set(graphs(space)) == set(graphs(BG))

    def test_leaves_have_no_children(self):
        """Whoever else has, and wherever moves of edges lead."""
        space = DAGSpace([*"xyz"], ["g", "h"], leaves=["z", "x"])
        every = {dag for dag in graphs(DAGSpace([*"xyz"], ["g", "h"])) if not dag.children("x") + dag.children("z")}
        assert space.leaves == ("x", "z")
        assert set(graphs(space)) == every
        assert space.n_settings == len(every) > 100
        moved = [after["structure"] for setting in islice(space, 0, None, 20) for after in space.neighbors(setting)]
        assert len(moved) > 100
        assert not any(dag.children("x") + dag.children("z") for dag in moved)
        assert DAGSpace([*"xy"], leaves="y").n_settings == 2

    @pytest.mark.parametrize(("n_tables", "n_numbers"), [(c, d) for c in range(4) for d in range(4) if 0 < c + d < 5])
    def test_numbers_have_no_tables_below_them(self, n_tables, n_numbers):
        """As many graphs as a(d) a(c) 2^(dc), each once, those of all whose numbers have numbers alone below them."""
        nodes = range(n_tables + n_numbers)
        numbers = nodes[n_tables:]
        space, listed = DAGSpace(nodes, numbers=numbers), 0
        for dag in graphs(space):
            assert all(child in numbers for number in numbers for child in dag.children(number))
            listed += 1
        across = 2 ** (n_tables * n_numbers)
        assert (
            space.n_settings == listed == len(set(graphs(space))) == ROBINSON[n_tables] * ROBINSON[n_numbers] * across
        )

    def test_numbers_are_counted_where_they_are_too_many_to_list(self):
        nodes = range(18)
        n = ROBINSON[9] ** 2 * 2**81
        assert DAGSpace(nodes, numbers=nodes[9:]).n_settings == n
        assert (
            DAGSpace(nodes, numbers=()).n_settings > n > DAGSpace(nodes, numbers=nodes[9:], leaves=nodes[9:]).n_settings
        )

    def test_numbers_hold_beside_other_rules_and_wherever_moves_lead(self):
        rules = {"leaves": ["u"], "forbidden": [("v", "w")], "required": [("x", "w")], "max_parents": 2}
        numbers = [*"uvw"]
        space = DAGSpace([*"xuvw"], ["h"], numbers=numbers, **rules)
        every = {
            dag
            for dag in graphs(DAGSpace([*"xuvw"], ["h"], **rules))
            if all(child in numbers for number in numbers for child in dag.children(number))
        }
        assert set(graphs(space)) == every
        assert space.n_settings == len(every) > 50
        moved = [after["structure"] for setting in islice(space, 0, None, 5) for after in space.neighbors(setting)]
        assert len(moved) > 50
        assert all(dag in every for dag in map(space.representative, moved))

    def test_numbers_drive_latents_that_other_rules_name(self):
        options = {"latents": {"g": 2, "h": 2}, "numbers": "u"}
        assert not any(dag.children("u") for dag in graphs(DAGSpace([*"xu"], **options)))
        driven = DAGSpace([*"xu"], **options, required=[("u", "g"), ("g", "x")])
        assert {dag.children("u") for dag in graphs(driven)} == {("g",)}
        allowed = DAGSpace([*"xu"], **options, allowed=[("u", "g"), ("g", "x"), ("u", "x"), ("h", "u")])
        assert {dag.children("u") for dag in graphs(allowed)} == {(), ("g",)}

    def test_it_is_lazy_and_counts_what_it_cannot_list(self):
        space = DAGSpace(range(30), {"a": 2, "b": 2, "c": 2}, max_parents=3)
        assert len(list(islice(space, 10))) == 10
        assert space.n_settings > 10**60
        with pytest.raises(TooLargeError, match=r"settings; max_settings=100000. Iterate over it"):
            space.to_list()
        few = DAGSpace([*"abc"])
        assert len(few.to_list(25)) == 25
        with pytest.raises(TooLargeError, match=r"DAGSpace has 25 settings; max_settings=24."):
            few.to_list(24)

    def test_nothing_is_searched_for_in_vain(self):
        """Two latents, each in need of a child, and one place for them among twenty nodes."""
        forbidden = [(latent, node) for latent in "ab" for node in range(1, 20)] + [("a", "b"), ("b", "a")]
        with pytest.raises(ValueError, match="There is no setting in DAGSpace"):
            DAGSpace(range(20), ["a", "b"], max_parents=1, forbidden=forbidden)

    def test_counts_that_take_too_long_are_refused(self):
        chain = [(i, i + 1) for i in range(40)]
        with pytest.raises(TooLargeError, match="classes which the rules treat differently"):
            len(DAGSpace(range(41), forbidden=chain))
        rules = {"required": [("a", 0)], "childless": True}
        with pytest.raises(TooLargeError, match="too many to enumerate"):
            len(DAGSpace(range(6), ["a", "b"], **rules))

    def test_order_depends_on_no_hash(self):
        code = (
            "from skvbem.spaces import *\n"
            "a = DAGSpace(['x', 'y'], {'g': 2, 'h': 2}, forbidden=[('x', 'g')])\n"
            "b = BipartiteSpace({'g': 2, 'h': 2}, ['x', 'y']) + GridSpace({'p': [1, 2], 'q': ['u', 'v']})\n"
            "for space in (a, b):\n"
            "    for setting in list(space)[::5]:\n"
            "        print(setting, list(space.neighbors(setting)))\n"
        )
        said = {
            subprocess.run(
                [sys.executable, "-P", "-c", code],
                capture_output=True,
                text=True,
                check=True,
                env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": ":".join(filter(None, sys.path))},
            ).stdout
            for seed in range(2)
        }
        assert len(said) == 1
        assert len(said.pop()) > 1000


def drawn_space(data, latents, observed):
    """A space within random rules, yet to be made, and the classes of its graphs by definition."""
    nodes = [*latents, *observed]
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    order = data.draw(st.permutations(nodes))
    rules = {
        "max_parents": data.draw(st.sampled_from([None, None, 1, 2])),
        "forbidden": data.draw(st.lists(st.sampled_from(pairs), max_size=3)) if pairs else [],
    }
    if data.draw(st.booleans()):
        place = {node: data.draw(st.integers(0, 2)) for node in nodes}
        rules["tiers"] = [[node for node in nodes if place[node] == tier] for tier in range(3)]
    if pairs and data.draw(st.booleans()):
        rules["allowed"] = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    may_be_required = [
        (a, b)
        for a, b in pairs
        if order.index(a) < order.index(b)
        and (a, b) not in rules["forbidden"]
        and (a, b) in rules.get("allowed", pairs)
        and ("tiers" not in rules or place[a] <= place[b])
    ]
    if may_be_required:
        rules["required"] = []
        for a, b in data.draw(st.lists(st.sampled_from(may_be_required), max_size=2, unique=True)):
            if sum(child == b for _, child in rules["required"]) < (rules["max_parents"] or 99):
                rules["required"].append((a, b))
    childless = data.draw(st.booleans())
    dags = [dag for dag in all_dags(nodes) if obeys(dag, **rules) and (childless or all(map(dag.children, latents)))]
    return lambda: DAGSpace(observed, latents, **rules, childless=childless), classes(dags, latents)


GRID = {"n_components": range(1, 4), "method": ["vb", "map"], "prior": [np.ones(2), [1, 2], None]}


class TestGrids:
    def test_it_is_the_parameter_grid_of_scikit_learn(self):
        for grid in (GRID, {}, [{"b": [2, 1], "a": [0]}, {"c": ["x"]}]):
            space, theirs = GridSpace(grid), ParameterGrid(grid)
            assert len(space) == len(theirs)
            assert list(map(canonical, space)) == list(map(canonical, theirs))
            assert all(setting in space for setting in theirs)

    def test_what_is_equal_comes_once(self):
        assert list(GridSpace({"a": [1, 1.0, np.int64(1), True]})) == [{"a": 1}, {"a": True}]
        assert len(GridSpace([{"a": [1, 2]}, {"a": [2, 3]}])) == 3
        both = GridSpace({"structure": ["[h][g][x|h]", "[h][g][x|g]"], "latents": [{"g": 2, "h": 2}, {"g": 2, "h": 3}]})
        assert len(both) == 3

    def test_neighbors_change_one_parameter_by_one_step(self):
        space = GridSpace({"n": [4, 1, 2], "m": ["a", "b", "c"]})
        near = list(space.neighbors({"n": 2, "m": "b"}))
        assert near == [{"m": "a", "n": 2}, {"m": "c", "n": 2}, {"m": "b", "n": 1}, {"m": "b", "n": 4}]
        assert [s["n"] for s in space.neighbors({"n": 1, "m": "b"})] == [1, 1, 2]
        assert space.orbit_size({"n": 1, "m": "b"}) == 1

    @pytest.mark.parametrize(
        ("grid", "error", "message"),
        [
            (3, TypeError, "A grid maps parameters to lists of values. Got 3 instead."),
            ([], ValueError, "GridSpace needs at least one grid"),
            ([3], TypeError, "A grid maps parameters to lists of values. Got 3 instead."),
            ({"a": 3}, TypeError, "must give 'a' a list of values, or an array of one dimension. Got 3 instead"),
            ({"a": "xy"}, TypeError, "must give 'a' a list of values"),
            ({"a": np.ones((2, 2))}, TypeError, "an array of one dimension"),
            ({"a": []}, ValueError, "The grid gives 'a' no value"),
            ({1: [2]}, TypeError, "names of parameters, str"),
        ],
    )
    def test_errors(self, grid, error, message):
        with pytest.raises(error, match=message):
            GridSpace(grid)


class TestLists:
    def test_structures_and_settings(self):
        dag = DAG.from_string("[h][x|h]")
        space = ListSpace([dag, "[h][x]", [("h", "x")], {"n_components": 2}, {"structure": "[h][x]"}])
        assert list(space) == [{"structure": dag}, {"structure": DAG.from_string("[h][x]")}, {"n_components": 2}]
        assert {"structure": "[x][h]"} in space
        assert {"structure": "[x|h][h]", "n_components": 2} not in space
        assert list(space.neighbors({"n_components": 2})) == list(space)[:2]
        assert space.parameters == {"structure", "n_components"}

    def test_sizes_of_orbits_do_not_depend_on_what_is_listed(self):
        space = ListSpace([{"structure": "[g][h][x|h]", "latents": ["g", "h"]}, {"structure": "[x]"}])
        assert [space.orbit_size(setting) for setting in space] == [2, 1]

    def test_errors(self):
        with pytest.raises(ValueError, match=r"at least one setting. Got an empty list"):
            ListSpace([])
        with pytest.raises(TypeError, match=r"ListSpace takes a list of settings or of structures. Got"):
            ListSpace(DAG.from_string("[x]"))
        with pytest.raises(StructureError, match="has a -> b -> a"):
            ListSpace(["[a|b][b|a]"])
        with pytest.raises(ValueError, match=r"The setting \{'a': 2\} is not in ListSpace"):
            list(ListSpace([{"a": 1}]).neighbors({"a": 2}))


class TestCardinalities:
    def test_exchangeable_latents_come_once(self):
        numbers = {"g": [2, 3, 4], "h": [3, 2], "f": 2}
        space = CardinalityGrid(numbers, "[f][g][h][x|g:h][y|g:h:f]")
        points = [dict(zip(numbers, point)) for point in product([2, 3, 4], [2, 3], [2])]
        keys = [canonical({"structure": space.structure, "latents": point}) for point in points]
        assert len(space) == len(set(keys)) == 5
        assert [space.orbit_size(setting) for setting in space] == [keys.count(canonical(setting)) for setting in space]
        assert list(space)[1]["latents"] == {"g": 2, "h": 3, "f": 2}
        assert {"structure": space.structure, "latents": {"g": 2, "h": 4, "f": 2}} in space
        assert {"structure": space.structure, "latents": {"g": 4, "h": 4, "f": 2}} not in space
        assert len(CardinalityGrid({"g": [2, 3], "h": [2, 3]}, "[g][h][x|g][y|h]")) == 4

    def test_neighbors(self):
        space = CardinalityGrid({"g": [2, 3, 5], "h": [2, 3]}, "[g][h][x|g:h]")
        near = [
            setting["latents"]
            for setting in space.neighbors({"structure": "[g][h][x|g:h]", "latents": {"g": 3, "h": 2}})
        ]
        assert near == [{"g": 2, "h": 2}, {"g": 5, "h": 2}, {"g": 3, "h": 3}]

    def test_latent_classes(self):
        space = LatentClassSpace(range(1, 9), BG_OBSERVED, latent="class")
        assert [setting["latents"]["class"] for setting in space] == list(range(1, 9))
        assert graphs(space) == [DAG.naive_bayes("class", BG_OBSERVED)] * 8
        assert len(list(space.neighbors(next(iter(space))))) == 1
        assert {"structure": DAG.naive_bayes("z", BG_OBSERVED), "latents": {"z": 3}} in space
        assert [space.orbit_size(setting) for setting in space] == [1] * 8

    @pytest.mark.parametrize("numbers", [[], [0], ["2"], [2.0], [True], "23"])
    def test_numbers_of_states_are_checked(self, numbers):
        with pytest.raises(ValueError, match="of states"):
            LatentClassSpace(numbers, ["x"])

    def test_errors(self):
        with pytest.raises(StructureError, match="'g' numbers of states, but it is not a node of the structure"):
            CardinalityGrid({"g": [2]}, "[h][x|h]")
        with pytest.raises(TypeError, match="must map latents to numbers of states"):
            CardinalityGrid([2, 3], "[h][x|h]")
        with pytest.raises(StructureError, match="Node 'x' of LatentClassSpace is both latent and observed"):
            LatentClassSpace([2], ["x", "y"], latent="x")


class TestAlgebra:
    def test_products(self):
        space = BG * {"method": ["vb", "map"]} * {"n_init": [1, 2, 3]}
        assert len(space) == len(set(map(canonical, space))) == 136 * 6
        setting = next(iter(space))
        assert set(setting) == {"structure", "latents", "method", "n_init"}
        assert setting in space
        assert {**setting, "n_init": 4} not in space
        assert {"method": "vb", "n_init": 1} not in space
        assert sum(space.orbit_size(setting) for setting in space) == 256 * 6
        with pytest.raises(ValueError, match="Both factors of a product set 'latents': BipartiteSpace and GridSpace"):
            BG * {"latents": [2, 3]}

    def test_graphs_times_latents_know_what_is_one_model(self):
        structures = ["[g][h][x|g][y|h]", "[g][h][x|h][y|g]", "[g][h][x|g:h][y]"]
        states = [dict(zip("gh", point)) for point in product([2, 3], repeat=2)]
        space = ListSpace(structures) * {"latents": states} * {"method": ["vb"]}
        keys = {canonical({"structure": s, "latents": n, "method": "vb"}) for s in structures for n in states}
        assert len(space) == len(set(map(canonical, space))) == len(keys) == 7

    def test_unions(self):
        parts = [
            BipartiteSpace({"h0": 2}, [*"xyz"]),
            BipartiteSpace(["h0", "h1"], [*"xyz"]),
            BipartiteSpace(["h1"], [*"xyz"]),
        ]
        space = parts[0] + parts[1] + parts[2] + {"n_components": [1, 2]}
        assert len(space) == 8 + 36 + 2 == len(set(map(canonical, space)))
        assert len(parts[2] + parts[0]) == 8
        assert list(space)[:8] == list(parts[0])
        assert all(setting in space for part in parts for setting in part)
        assert space.orbit_size(next(iter(parts[2]))) == 1
        assert sum(space.orbit_size(setting) for setting in space) == 8 + 64 + 2

    def test_a_large_part_is_counted_not_listed(self):
        assert (DAGSpace(range(9)) + DAGSpace(range(3)) + DAGSpace(range(9), max_parents=0)).n_settings == ROBINSON[
            9
        ] + 25

    def test_unions_too_large_to_count(self):
        with pytest.raises(TooLargeError, match="would have to be looked up one by one"):
            len(DAGSpace(range(8)) + DAGSpace(range(9)))

    def test_what_a_user_may_pass(self):
        assert coerce_space(BG) is BG
        assert len(coerce_space({"n_components": range(1, 9)})) == 8
        assert len(coerce_space(ParameterGrid({"a": [1, 2], "b": [3]}))) == 2
        assert len(coerce_space([{"a": [1, 2]}, {"b": np.arange(3)}])) == 5
        assert list(coerce_space([{"a": [1, 2], "b": 3}])) == [{"a": [1, 2], "b": 3}]
        assert len(coerce_space(dag for dag in all_dags("abc"))) == 25
        for wrong in (3, None, "[a][b]", DAG.from_string("[a]")):
            with pytest.raises(TypeError, match=r"A space must be one of skvbem.spaces"):
                coerce_space(wrong)
        with pytest.raises(ValueError, match="empty"):
            coerce_space([])


SPACES = [
    BG,
    DAGSpace([*"xy"], {"h": 2}, tiers=["h", ["x", "y"]], required=[("h", "x")]),
    DAGSpace([*"xy"], {"h": 2}, leaves=["y"]),
    DAGSpace([*"xy"], {"h": 2}, numbers=["y"]),
    CardinalityGrid({"h": [2, 3]}, "[h][x|h]"),
    LatentClassSpace([1, 2], [*"xy"]),
    GridSpace({"a": [1, 2]}),
    ListSpace(["[a][b]"]),
    BG * {"a": [1, 2]},
    BG + {"a": [1, 2]},
]


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
class TestEverySpace:
    def test_it_can_be_copied_and_sent(self, space):
        for other in (pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
            assert list(other) == list(space)
            assert repr(other) == repr(space)

    def test_it_cannot_be_changed(self, space):
        with pytest.raises(AttributeError):
            space.childless = 3

    def test_it_lists_what_it_holds(self, space):
        assert list(space) == list(space) == space.to_list()
        assert all(setting in space for setting in space)
        assert all(setting.keys() <= space.parameters for setting in space)
        for stranger in ({}, {"b": 1}, {"structure": "[q]"}, {"structure": 5}, None, 3, "a"):
            assert stranger not in space
        with pytest.raises(ValueError, match="is not in"):
            list(space.neighbors({"b": 1}))
        with pytest.raises(ValueError, match="is not in"):
            space.orbit_size({"b": 1})


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"latents": {"x": 2}}, "Node 'x' of DAGSpace is both latent and observed"),
            ({"required": [("x", "z")]}, "required names the edge x -> z, but 'z' is not a node"),
            ({"forbidden": [("smoker", "x")]}, "forbidden names the edge smoker -> x, but 'smoker' is not a node."),
            ({"required": [("x", "y"), ("y", "x")]}, "The required edges close a cycle. .* It has x -> y -> x;"),
            ({"required": [("x", "x")]}, "The required edges close a cycle"),
            ({"required": [("x", "y")], "forbidden": {"y": "x"}}, "The required edge x -> y is forbidden too."),
            ({"required": [("x", "y")], "tiers": ["y", "x"]}, "The required edge x -> y is forbidden by the tiers."),
            ({"required": [("x", "y")], "allowed": [("y", "x")]}, "The required edge x -> y is not allowed. Allow it"),
            ({"allowed": [("x", "Y")]}, "allowed names the edge x -> Y, but 'Y' is not a node. Did you mean 'y'"),
            ({"required": [("x", "y")], "max_parents": 0}, "'y' has 1 required parents; max_parents=0."),
            ({"tiers": [["x"]]}, "tiers must name every node. They lack 'y'."),
            ({"tiers": [["x", "y"], ["x"]]}, "tiers name 'x' twice."),
            ({"tiers": [["x", "Y"]]}, "tiers name 'Y', which is not a node."),
            ({"leaves": ["z"]}, "leaves name 'z', which is not a node."),
            ({"leaves": ["x"], "required": [("x", "y")]}, "The required edge x -> y is forbidden too."),
            ({"numbers": ["Y"]}, "numbers name 'Y', which is not a node. Did you mean 'y'"),
            ({"numbers": ["x"], "required": [("x", "y")]}, "required edge x -> y runs from a number to a node that"),
        ],
    )
    def test_rules_that_do_not_fit(self, options, message):
        with pytest.raises(StructureError, match=message):
            DAGSpace(["x", "y"], **options)

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: DAGSpace([*"xx"]), StructureError, "DAGSpace names node 'x' twice"),
            (
                lambda: DAGSpace([*"xy"], required=["xy"]),
                TypeError,
                r"required must hold pairs \(parent, child\). Got 'xy'",
            ),
            (lambda: DAGSpace([*"xy"], max_parents=-1), ValueError, "max_parents must be an int >= 0. Got -1"),
            (lambda: DAGSpace([*"xy"], max_parents=1.5), ValueError, "max_parents must be an int >= 0. Got 1.5"),
            (
                lambda: DAGSpace([*"xy"], {"h": 0}),
                TypeError,
                "'latents' parameter of DAGSpace must map latents to their",
            ),
            (lambda: DAGSpace([*"xy"], {"h": 2}, max_parents=0), ValueError, "There is no setting in DAGSpace"),
            (lambda: BipartiteSpace("hg", ["x"]), TypeError, "'latents' parameter of BipartiteSpace"),
            (lambda: DAGSpace(4), TypeError, "DAGSpace must be given the names of the observed nodes.* Got 4 instead"),
            (lambda: BipartiteSpace(["h"], ["h"]), StructureError, "is both latent and observed"),
            (lambda: BipartiteSpace(["h"], ["x"], min_parents=2), ValueError, "There is no setting in BipartiteSpace"),
            (lambda: BipartiteSpace(["h"], [], childless=False), ValueError, "There is no setting in BipartiteSpace"),
        ],
    )
    def test_spaces_that_are_none(self, make, error, message):
        with pytest.raises(error, match=message):
            make()

    def test_a_hint_comes_with_a_typo(self):
        with pytest.raises(StructureError, match=r"Did you mean 'smoker'?"):
            make_rules(["smoker", "cancer"], required=[("smokers", "cancer")])


def test_a_list_of_structures_knows_their_orbits():
    """As the space does that they come from."""
    listed = ListSpace(list(BG))
    assert [listed.orbit_size(setting) for setting in listed] == [BG.orbit_size(setting) for setting in BG]
