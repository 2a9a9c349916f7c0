"""q(x) as a product over clusters of hidden nodes, by definition [Beal (2.41), (2.42)].

A row's q is a dict of cluster -> {states of its nodes: probability}; everything is a sum over completions.
"""

import itertools
import math

from reference.discrete_network import completions, log_joint


def parts_of(network, row, clusters):
    """What each cluster has of a row's hidden nodes, cut where no family joins it; others alone; by lowest node."""
    hidden = hidden_of(network, row)
    named = [node for cluster in clusters for node in cluster]
    left = [[node] for cluster in clusters for node in cluster if node in hidden]
    left += [[node] for node in hidden if node not in named]
    cluster_of = {node: k for k, cluster in enumerate(clusters) for node in cluster}
    families = [(node, *network.parents[node]) for node in network.ancestral(row)]
    for a, b in itertools.combinations(hidden, 2):
        of_a, of_b = (next(part for part in left if node in part) for node in (a, b))
        together = a in cluster_of and cluster_of[a] == cluster_of.get(b)
        if together and of_a is not of_b and any(a in family and b in family for family in families):
            left = [part for part in left if part is not of_a and part is not of_b] + [of_a + of_b]
    return sorted((tuple(sorted(part, key=hidden.index)) for part in left), key=lambda part: hidden.index(part[0]))


def hidden_of(network, row):
    """The hidden nodes of a row that are not pruned, in the order of the network."""
    kept = network.ancestral(row)
    return [node for node in network.cards if node in kept and node not in row]


def uniform(network, parts):
    """Uniform q of every part."""
    q = {}
    for part in parts:
        states = list(itertools.product(*(range(network.cards[node]) for node in part)))
        q[part] = dict.fromkeys(states, 1 / len(states))
    return q


def probability(q, completion, but=None):
    """The product of the q of all parts, or of all but one."""
    return math.prod(table[tuple(completion[n] for n in part)] for part, table in q.items() if part != but)


def update(network, log_tables, row, q, part):
    """q of one part after its update [Beal (2.42)]."""
    log_q = dict.fromkeys(q[part], 0.0)
    for completion in completions(network, row, prune=True):
        states = tuple(completion[node] for node in part)
        log_q[states] += probability(q, completion, part) * log_joint(network, log_tables, completion)
    top = max(log_q.values())
    total = sum(math.exp(x - top) for x in log_q.values())
    return {**q, part: {states: math.exp(x - top) / total for states, x in log_q.items()}}


def free_energy(network, log_tables, row, q):
    """<ln p(x, y)>_q + H(q) of a row."""
    total = 0.0
    for completion in completions(network, row, prune=True):
        p = probability(q, completion)
        if p > 0:
            total += p * (log_joint(network, log_tables, completion) - math.log(p))
    return total


def sweep(network, log_tables, row, q):
    """One update of every part, in order, and the free energy after each."""
    after = []
    for part in q:
        q = update(network, log_tables, row, q, part)
        after.append(free_energy(network, log_tables, row, q))
    return q, after


def latent(network, row, weight, q):
    """A row's entry of a latent distribution of `reference.discrete_network`."""
    return weight, [(c, probability(q, c)) for c in completions(network, row, prune=True)]
