"""What sampling scores draw and weigh, by definition: random streams, annealed densities, relabelings.

Notation as in `discrete_network`.
"""

import functools
import itertools
import math

import numpy as np
from reference.discrete_network import (
    completions,
    each,
    expected_log,
    latent_posterior,
    log_beta,
    log_joint,
    log_likelihood,
    posterior,
    total,
)
from reference.scores import same_table
from scipy.special import betaln, gammainc, gammaln, logsumexp
from scipy.stats import beta

WORD = 2**64


def xoshiro256pp(state, n):
    """The first ``n`` words of the xoshiro256++ generator of Blackman & Vigna (2019), and the state after them."""
    s, words = [int(word) for word in state], []

    def rotated(x, k):
        return (x << k | x >> (64 - k)) % WORD

    for _ in range(n):
        words.append((rotated((s[0] + s[3]) % WORD, 23) + s[0]) % WORD)
        t = s[1] << 17
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] = (s[2] ^ t) % WORD
        s[3] = rotated(s[3], 45)
    return words, s


def log_gamma_cdf(x, a):
    """P(ln Gamma(a, 1) <= x), also where the gamma variate leaves the doubles."""
    x = np.asarray(x, dtype=float)
    from_series = np.exp(a * np.minimum(x, -40.0) - gammaln(a + 1.0))  # the first term; the next is smaller by e^x
    return np.where(x < -40.0, from_series, gammainc(a, np.exp(np.maximum(x, -40.0))))


def log_beta_cdf(x, a, b):
    """P(ln Beta(a, b) <= x), also where the beta variate leaves the doubles."""
    x = np.asarray(x, dtype=float)
    from_series = np.exp(a * np.minimum(x, -40.0) - math.log(a) - betaln(a, b))
    return np.where(x < -40.0, from_series, beta.cdf(np.exp(np.maximum(x, -40.0)), a, b))


def log_dirichlet_density(log_tables, concentration):
    """ln p(θ) as a density of probabilities."""
    return total(each(lambda a, t: ((a - 1) * t).sum(-1) - log_beta(a), concentration, log_tables))


def log_annealed_density(network, data, prior, statistics, log_tables, t):
    """ln Σ_x [q(θ) q(x)]^(1−t) [p(θ) p(x, y | θ)]^t, q(θ) = Dir(λ + N), q(x) ∝ exp ⟨ln p(x, y | θ)⟩ under q(θ)."""
    anchor = each(expected_log, posterior(prior, statistics))
    of_theta = log_dirichlet_density(log_tables, posterior(prior, statistics))
    value = (1 - t) * of_theta + t * log_dirichlet_density(log_tables, prior)
    q = latent_posterior(network, anchor, data)
    for (row, weight), (_, of_row) in zip(data.rows(), q):
        terms = [
            (1 - t) * math.log(p) + t * log_joint(network, log_tables, x)
            for (x, p), _ in zip(of_row, completions(network, row, prune=True))
        ]
        value += weight * logsumexp(terms)
    return value


def log_weight_of_prior_draw(network, log_tables, data):
    """ln p(y | θ): what importance sampling from the prior weighs θ by."""
    return log_likelihood(network, log_tables, data)


def log_permanent(log_entries):
    """ln Σ_π Π_k e^(entry k, π(k)) over all permutations, one by one."""
    n = len(log_entries)
    return logsumexp([sum(log_entries[k][p[k]] for k in range(n)) for p in itertools.permutations(range(n))])


def relabelings(network, columns, prior):
    """Every relabeling of hidden nodes and of their states that leaves structure and prior as they are.

    Functions of tables, the identity among them. Nodes without observed descendants are left alone.
    """
    seen = network.ancestral(columns)
    hidden = [node for node in network.cards if node in seen and node not in columns]
    for images in itertools.permutations(hidden):
        image = {**{node: node for node in seen}, **dict(zip(hidden, images))}
        if any(network.cards[node] != network.cards[image[node]] for node in hidden):
            continue
        for orders in itertools.product(*(itertools.permutations(range(network.cards[node])) for node in hidden)):
            order = {**{node: range(network.cards[node]) for node in seen}, **dict(zip(hidden, orders))}
            if all(same_table(network, prior, node, image, order) for node in seen):
                yield functools.partial(relabeled, network, seen, image, order)


def relabeled(network, seen, image, order, tables):
    """Tables with nodes and states renamed; see `reference.scores.same_table`."""
    moved = dict(tables)
    for node in seen:
        family = [*network.parents[node], node]
        target = [*network.parents[image[node]], image[node]]
        renamed = np.asarray(tables[node])[np.ix_(*(order[member] for member in family))]
        moved[image[node]] = renamed.transpose([[image[member] for member in family].index(m) for m in target])
    return moved
