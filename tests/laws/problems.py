"""Random problems by number: the same in every run, each of its own."""

import numpy as np
from bridge import has_observed_cell
from reference.discrete_network import Problem, completions
from reference.random_networks import random_data, random_network, random_prior, random_problem


def raised(problem, least):
    """The problem with every concentration raised."""
    return problem._replace(prior={node: table + least for node, table in problem.prior.items()})


def nothing_is_hidden(network, data):
    """Every row has one completion, nodes without observed descendants aside."""
    return all(len(completions(network, row, prune=True)) == 1 for row, _ in data.rows())


def enumerable(number, max_completions=2**10, least=0.0, hidden=False, **sizes):
    """A problem whose evidence can be summed; at least one cell is observed, and with `hidden` something is not."""
    rng = np.random.default_rng([20030601, number])
    while True:
        problem = random_problem(rng, max_completions, **sizes)
        if has_observed_cell(problem.data) and not (hidden and nothing_is_hidden(problem.network, problem.data)):
            return raised(problem, least)


def larger(number, n_rows=200, least=0.0, max_weight=None, missing_rate=None):
    """A problem with a hidden node of two children at least: no sum over completions, but fits that take many steps."""
    rng = np.random.default_rng([20030602, number])
    rate = rng.choice([0.0, 0.15]) if missing_rate is None else missing_rate
    while True:
        network, columns = random_network(rng, int(rng.integers(4, 9)), 3, int(rng.integers(1, 3)))
        hidden = set(network.cards) - set(columns)
        n_children = {node: sum(node in parents for parents in network.parents.values()) for node in hidden}
        if max(n_children.values()) >= 2 and hidden & network.ancestral(columns):
            data = random_data(rng, network, columns, n_rows, rate, max_weight)
            return raised(Problem(network, data, random_prior(rng, network)), least)
