"""Separation in graphs and identification of effects, against definitions and the examples of the literature."""

import itertools

import numpy as np
import pytest

from skvbem import DAG
from skvbem.errors import StructureError
from skvbem.graphs.paths import is_identified


def random_dag(seed, n_nodes=6, share=0.4):
    rng = np.random.default_rng(seed)
    names = [str(k) for k in rng.permutation(n_nodes)]
    return DAG.from_edges([pair for pair in itertools.combinations(names, 2) if rng.random() < share], nodes=names)


def active_path_exists(dag, one, other, given):
    """By definition [Pearl (1988)]: a path whose colliders have a descendant in `given`, whose other nodes do not."""
    neighbors = {node: {*dag.parents(node), *dag.children(node)} for node in dag.nodes}
    opened = {*given, *dag.ancestors(given)} if given else set()

    def goes_on(path):
        if path[-1] == other:
            return True
        for node in neighbors[path[-1]] - set(path):
            if len(path) > 1:
                collides = {path[-2], node} <= set(dag.parents(path[-1]))
                if collides != (path[-1] in opened) and (collides or path[-1] in given):
                    continue
                if collides and path[-1] not in opened:
                    continue
            if goes_on([*path, node]):
                return True
        return False

    return goes_on([one])


@pytest.mark.parametrize("seed", range(6))
def test_separation_is_that_of_paths(seed):
    dag = random_dag(seed)
    for one, other in itertools.combinations(dag.nodes, 2):
        rest = [node for node in dag.nodes if node not in (one, other)]
        for size in range(4):
            for given in itertools.combinations(rest, size):
                assert dag.d_separated(one, other, given) == (not active_path_exists(dag, one, other, set(given)))


@pytest.mark.parametrize("seed", range(4))
def test_a_markov_blanket_is_the_smallest_set_that_separates_a_node_from_all_others(seed):
    dag = random_dag(seed, share=0.3)
    for node in dag.nodes:
        blanket = dag.markov_blanket(node)
        others = [other for other in dag.nodes if other != node and other not in blanket]
        assert not others or dag.d_separated(node, others, blanket)
        for member in blanket:
            assert not dag.d_separated(node, [member, *others], [each for each in blanket if each != member])


def test_sets_that_overlap_or_hold_strangers_are_refused():
    dag = DAG([("a", "b"), ("b", "c")])
    with pytest.raises(StructureError, match=r"d_separated needs sets of nodes that share none\. 'b' is in two"):
        dag.d_separated("a", "b", "b")
    with pytest.raises(StructureError, match="'d' is not a node"):
        dag.markov_blanket("d")


#: (model string, hidden, targets, actions, evidence, whether the effect is identified); figures of Pearl (2009).
EFFECTS = {
    "nothing hidden": ("[z][x|z][y|x:z]", "", "y", "x", "", True),
    "bow: a hidden cause of both": ("[u][x|u][y|x:u]", "u", "y", "x", "", False),
    "back door": ("[u][z|u][x|z][y|x:u]", "u", "y", "x", "", True),
    "front door": ("[u][x|u][z|x][y|z:u]", "u", "y", "x", "", True),
    "front door with a confounded mediator": ("[u][v][x|u][z|x:v][y|z:u:v]", "uv", "y", "x", "", False),
    "instrument": ("[u][z][x|z:u][y|x:u]", "u", "y", "x", "", False),
    "instrument, effect of the instrument": ("[u][z][x|z:u][y|x:u]", "u", "y", "z", "", True),
    "no effect on a cause": ("[u][x|u][y|u]", "u", "y", "x", "", True),
    "collider opened, figure 3.8 (e)": ("[u][v][z|u:v][x|u][y|x:v]", "uv", "y", "x", "", True),
    "given the collider": ("[u][v][z|u:v][x|u][y|x:v]", "uv", "y", "x", "z", False),
    "napkin": ("[u][v][w|u:v][z|w][x|z:u][y|x:v]", "uv", "y", "x", "", True),
    "two actions, one at a time is not": ("[u][x|u][z|x][y|z:x:u]", "u", "y", "x", "", False),
    "given a mediator's cause": ("[u][w][x|u][z|x:w][y|z:u]", "u", "y", "x", "w", True),
    "hidden target": ("[u][x][y|u:x]", "u", "u", "x", "", False),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_effects_of_the_literature_are_identified_where_it_says_so(name):
    text, hidden, targets, actions, evidence, expected = EFFECTS[name]
    dag = DAG(text)
    parents = {node: dag.parents(node) for node in dag.nodes}
    assert is_identified(parents, set(hidden), set(targets), set(actions), set(evidence)) is expected


def test_without_hidden_nodes_or_confounding_every_effect_is_identified():
    for seed in range(20):
        dag = random_dag(seed)
        parents = {node: dag.parents(node) for node in dag.nodes}
        for target, action in itertools.permutations(dag.nodes, 2):
            assert is_identified(parents, set(), {target}, {action})
            roots = {node for node in dag.nodes if not dag.parents(node) and len(dag.children(node)) == 1}
            assert is_identified(parents, roots - {target, action}, {target}, {action})
