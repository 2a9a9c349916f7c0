"""Random networks, tables and data, small enough for the definitions in `discrete_network`."""

from graphlib import TopologicalSorter

import numpy as np
from reference.discrete_network import MISSING, Data, Network, Problem, n_completions


def random_network(rng, n_nodes, max_card=3, n_hidden=1, max_parents=2, min_card=2):
    """A network and its observed nodes.

    Any node may be the parent of any later one in a random order, so hidden nodes h0, h1, ... are found anywhere:
    roots, between the observed nodes y0, y1, ..., linked to each other, childless, alone.
    """
    columns = tuple(f"y{i}" for i in range(n_nodes - n_hidden))
    order = rng.permutation([*columns, *(f"h{i}" for i in range(n_hidden))]).tolist()
    parents = {
        node: tuple(rng.permutation(order[:i])[: rng.integers(max_parents + 1)].tolist())
        for i, node in enumerate(order)
    }
    cards = {node: int(rng.integers(min_card, max_card + 1)) for node in order}
    return Network(cards, parents), columns


def random_tables(rng, network, concentration=1.0):
    """Probability tables θ, each row drawn from a symmetric Dirichlet."""
    return {
        node: rng.dirichlet(np.full(card, concentration), network.shape(node)[:-1])
        for node, card in network.cards.items()
    }


def random_counts(rng, network, scale=5.0):
    """Real-valued counts, as expected counts are, of zero and more."""
    return {node: scale * rng.exponential(size=network.shape(node)) for node in network.cards}


def sample(rng, network, tables, n):
    """``n`` complete rows drawn from p(x, y | θ)."""
    rows = []
    for _ in range(n):
        row = {}
        for node in TopologicalSorter(network.parents).static_order():
            configuration = tuple(row[parent] for parent in network.parents[node])
            row[node] = int(rng.choice(network.cards[node], p=tables[node][configuration]))
        rows.append(row)
    return rows


def random_data(rng, network, columns, n, missing_rate=0.0, max_weight=None):
    """Rows drawn from random tables, ``columns`` seen, some cells missing; weights from 0 to max_weight if given."""
    complete = sample(rng, network, random_tables(rng, network), n)
    cells = np.array([[row[node] for node in columns] for row in complete], dtype=int).reshape(n, len(columns))
    cells[rng.random(cells.shape) < missing_rate] = MISSING
    return Data(columns, cells, None if max_weight is None else rng.integers(max_weight + 1, size=n))


def leading_rows(network, data, max_completions):
    """The first rows of the data, as many as have at most ``max_completions`` joint completions."""
    while n_completions(network, data) > max_completions:
        weights = None if data.weights is None else data.weights[:-1]
        data = Data(data.columns, data.cells[:-1], weights)
    return data


def random_prior(rng, network):
    """Unequal concentrations, most of them between 0.2 and 5."""
    return {node: np.exp(0.8 * rng.standard_normal(network.shape(node))) for node in network.cards}


def random_problem(rng, max_completions=2**10, max_nodes=6, max_card=3, max_hidden=2, missing_rate=0.15, max_rows=20):
    """Network, data and prior at random; as many rows as leave at most ``max_completions`` joint completions."""
    n_nodes = int(rng.integers(1, max_nodes + 1))
    n_hidden = int(rng.integers(min(max_hidden, n_nodes - 1) + 1))
    network, columns = random_network(rng, n_nodes, max_card, n_hidden)
    rate = rng.choice([0.0, missing_rate])
    data = random_data(rng, network, columns, max_rows, rate, max_weight=rng.choice([None, 3]))
    return Problem(network, leading_rows(network, data, max_completions), random_prior(rng, network))
