"""Dimensions: exact ranks of the Jacobian against known ones, and against the table of all joint states written out."""

import itertools
import math
import time

import numpy as np
import pytest
from evidence.evaluations import bipartite_network, evaluate, evaluation_of, naive_bayes
from reference import facts, scores
from reference.discrete_network import Network, Problem, uniform_prior
from reference.random_networks import random_network

from skvbem._kernels import _modular
from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.evidence.asymptotic import dimension_of
from skvbem.graphs.dag import DAG
from skvbem.graphs.dimension import identifiable_dimension
from skvbem.models import capabilities_of


def dimension(network, columns, **options):
    return identifiable_dimension(DAG(network.cards, network.parents), network.cards, columns, **options)


@pytest.mark.parametrize(("n_classes", "cards", "d_free", "d"), facts.LATENT_CLASS_DIMENSIONS)
def test_latent_class_models(n_classes, cards, d_free, d):
    """14 -> 13 and 27 -> 25 are the classical defective cases, where counts of cells and parameters mislead."""
    network = facts.latent_class(n_classes, cards)
    assert dimension(network, [node for node in network.cards if node != "c"]) == d
    evaluation = evaluation_of(Problem(network, facts.cells({"0" * len(cards): 2}), uniform_prior(network)), n_init=1)
    assert dimension_of(evaluation, "identifiable") == d
    assert dimension_of(evaluation, "free") == d_free


@pytest.mark.parametrize(("parents", "n_labeled", "d_free", "d", "n_aliases"), facts.BIPARTITE_DIMENSIONS)
def test_classes_of_bipartite_structures(parents, n_labeled, d_free, d, n_aliases):
    model = bipartite_network(parents)
    assert capabilities_of(model).dimension(["s1", "s2"]) == d
    assert model.prior.n_free_parameters == d_free


def test_all_136_bipartite_structures_within_seconds():
    """Each has the dimension of its class; a childless latent adds nothing."""
    expected = {}
    for parents, _, _, d, _ in facts.BIPARTITE_DIMENSIONS:
        for side in (parents, [p.translate(str.maketrans("12", "21"))[:: -1 if len(p) == 2 else 1] for p in parents]):
            expected |= dict.fromkeys(itertools.permutations(side), d)
    swapped = {"": "", "1": "2", "2": "1", "12": "12"}
    structures = {min(s, tuple(map(swapped.get, s))) for s in itertools.product(swapped, repeat=4)}
    assert len(structures) == 136
    began = time.process_time()
    found = {s: capabilities_of(bipartite_network(s)).dimension(["s1", "s2"]) for s in structures}
    assert time.process_time() - began < 5
    assert found == {s: expected[s] for s in structures}


def test_hidden_nodes_anywhere(rng):
    """Roots, between observed nodes, linked to each other, childless, alone: as the Jacobian written out says."""
    for _ in range(150):
        n_hidden = int(rng.integers(0, 4))
        network, columns = random_network(
            rng, int(rng.integers(n_hidden + 1, 7)), 3, n_hidden, 3, int(rng.integers(1, 3))
        )
        d = max(scores.identifiable_dimension(network, columns, seed) for seed in (0, 1))
        assert dimension(network, columns) == d == dimension(network, columns, rng=rng)
        assert d <= min(network.n_free_parameters, math.prod(network.cards[c] for c in columns) - 1)


def test_parts_that_share_no_hidden_node_add_up():
    chain = Network(
        {"h": 2, "a": 3, "b": 3, "g": 2, "c": 2, "d": 2, "e": 2},
        {"h": (), "a": ("h",), "b": ("h",), "g": ("b",), "c": ("g",), "d": ("g", "a"), "e": ("c", "d")},
    )
    columns = ["a", "b", "c", "d", "e"]
    assert dimension(chain, columns) == max(scores.identifiable_dimension(chain, columns, seed) for seed in (0, 1))


def test_more_arcs_never_lower_it(rng):
    order = {"": ("1", "2"), "1": ("12",), "2": ("12",), "12": ()}
    for structure in itertools.product(order, repeat=3):
        d = capabilities_of(bipartite_network(structure, (3, 3, 3))).dimension(["s1", "s2"])
        for k, here in enumerate(structure):
            for more in order[here]:
                larger = bipartite_network((*structure[:k], more, *structure[k + 1 :]), (3, 3, 3))
                assert capabilities_of(larger).dimension(["s1", "s2"]) >= d


def test_a_latent_over_one_observed_node_is_not_identified():
    assert capabilities_of(bipartite_network(("1", "", "", ""))).dimension(["s1", "s2"]) == 16
    assert capabilities_of(bipartite_network(("", "", "", ""))).dimension(["s1", "s2"]) == 16


def test_the_order_of_nodes_does_not_matter():
    cards = {"c": 4, "a": 3, "b": 3, "d": 3}
    forward = DAG.naive_bayes("c", ["a", "b", "d"])
    backward = forward.reorder(["d", "b", "a", "c"])
    assert identifiable_dimension(forward, cards, ["a", "b", "d"]) == 25
    assert identifiable_dimension(backward, cards, ["a", "b", "d"]) == 25


def test_complete_networks_have_d_as_they_count(rng):
    for _ in range(20):
        network, columns = random_network(rng, int(rng.integers(1, 12)), 4, 0, 3)
        assert dimension(network, columns) == network.n_free_parameters


def test_thousands_of_joint_states_are_no_trouble():
    """2**64 of them: nothing the size of the table is made."""
    model = naive_bayes(4, 64)
    assert capabilities_of(model).dimension(["c"]) == model.prior.n_free_parameters == 4 * 65 - 1


def test_a_clique_beyond_the_limit_is_refused_with_its_size():
    dag = DAG(["h", *"abcd"], {"h": ["a", "b", "c"], "d": "h"})
    with pytest.raises(TooLargeError, match=r"a table of 4e\+04 joint states; 'max_table_cells' allows 100"):
        identifiable_dimension(
            dag, {"h": 40, "a": 10, "b": 10, "c": 10, "d": 2}, ["a", "b", "c", "d"], max_table_cells=100
        )


def test_the_largest_model_of_chickering_and_heckerman():
    began = time.process_time()
    assert capabilities_of(naive_bayes(32, 64)).dimension(["c"]) == 2079
    assert time.process_time() - began < 20


def test_rank_modulo_a_prime(rng):
    """Products of random matrices of known rank, rank one multiples, entries at the edge of the residues."""
    prime = 2**31 - 1
    for _ in range(30):
        n, m, r = (int(k) for k in rng.integers(1, 30, size=3))
        a, b = (rng.integers(0, prime, size=shape).astype(object) for shape in ((n, r), (r, m)))
        matrix = (a @ b % prime).astype(np.uint64)
        assert _modular.rank(np.ascontiguousarray(matrix)) == min(n, m, r)
    edge = np.full((3, 3), prime - 1, dtype=np.uint64)
    assert _modular.rank(edge.copy()) == 1
    assert _modular.rank(np.full((2, 5), prime, dtype=np.uint64)) == 0
    assert _modular.rank(np.eye(4, dtype=np.uint64)[::-1].copy()) == 4


def test_a_model_without_hidden_nodes():
    model = naive_bayes(2, 2)
    rows = Rows(("c", "y0", "y1"), np.zeros((3, 3), dtype=np.int8))
    assert dimension_of(evaluate(model, rows, (), n_init=1), "identifiable") == 5
