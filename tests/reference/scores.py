"""Evidence scores of a discrete network at a point θ, and the integers that go with them, by definition.

Notation and references as in `discrete_network`.
"""

import itertools
import math
import random

import mpmath
import numpy as np
from reference.discrete_network import (
    all_rows,
    completions,
    each,
    expected_counts,
    latent_posterior,
    log_bd,
    log_beta,
    log_likelihood,
    total,
)


def n_rows(data):
    """n, the sum of the weights."""
    return sum(weight for _, weight in data.rows())


def bic(network, log_tables, data):
    """ln p(y | θ) − d'/2 ln n [CH (9)]."""
    return log_likelihood(network, log_tables, data) - network.n_free_parameters / 2 * math.log(n_rows(data))


def draper(network, log_tables, data):
    """BIC + d'/2 ln 2π [CH (10)]."""
    return bic(network, log_tables, data) + network.n_free_parameters / 2 * math.log(2 * math.pi)


def mled(network, log_tables, data, prior):
    """ln BD of the expected counts at θ [CH (12)]."""
    return log_bd(expected_counts(network, latent_posterior(network, log_tables, data)), prior)


def cheeseman_stutz(network, log_tables, data, prior):
    """ln BD(N̄) + ln p(y | θ) − Σ N̄ ln θ [CH (13) with d = d'; Beal (2.142)]; it equals ln BD(N̄) + H(q), at any θ."""
    q = latent_posterior(network, log_tables, data)
    counts = expected_counts(network, q)
    complete = sum(np.sum(n[n > 0] * log_tables[node][n > 0]) for node, n in counts.items())
    return log_bd(counts, prior) + log_likelihood(network, log_tables, data) - complete


def log_prior(log_tables, prior, basis):
    """ln p(θ) as a density of the ``"probability"`` or of the ``"softmax"`` parameters."""
    exponent = {"probability": lambda a: a - 1, "softmax": lambda a: a}[basis]
    return total(each(lambda a, t: (exponent(a) * t).sum(-1) - log_beta(a), prior, log_tables))


def laplace(network, log_tables, data, prior, digits=50, basis="natural"):
    """ln p(y | θ) + ln p(θ) + d'/2 ln 2π − ½ ln det A at a mode [CH (8)]; nan where A is indefinite.

    A is minus the Hessian over ln θ_k − ln θ_r, k < r, of each row, or over θ_k in the basis "probability": central
    differences in ``digits`` digits.
    """
    natural = basis == "natural"
    states = {node: range(card) for node, card in network.cards.items()}
    cases = [
        (weight, [[(node, network.cell(node, x)) for node in x] for x in completions(network, row)])
        for row, weight in data.rows()
    ]

    def row_of(free):
        odds = [mpmath.exp(x) if natural else x for x in free]
        last = mpmath.mpf(1) if natural else 1 - sum(odds)
        return [x / (sum(odds) + last) for x in [*odds, last]]

    def log_posterior(phi):
        phi, theta, value = iter(phi), {}, mpmath.mpf(0)
        for node in network.cards:
            for c in np.ndindex(network.shape(node)[:-1]):
                row = row_of([next(phi) for _ in states[node][1:]])
                a = [mpmath.mpf(float(a)) for a in prior[node][c]]
                for k in states[node]:
                    theta[node, (*c, k)] = row[k]
                    value += (a[k] if natural else a[k] - 1) * mpmath.log(row[k]) - mpmath.loggamma(a[k])
                value += mpmath.loggamma(sum(a))
        for weight, choices in cases:
            value += weight * mpmath.log(sum(mpmath.fprod(theta[cell] for cell in choice) for choice in choices))
        return value

    with mpmath.workdps(digits):
        rows = [[mpmath.mpf(t) for t in row] for row in all_rows(network, log_tables)]
        phi = [t - row[-1] if natural else mpmath.exp(t) for row in rows for t in row[:-1]]
        d, h = len(phi), mpmath.mpf(10) ** -(digits // 4)
        a = mpmath.zeros(d)
        for i, j in itertools.combinations_with_replacement(range(d), 2):
            for s, t in itertools.product((1, -1), repeat=2):
                moved = list(phi)
                moved[i] += s * h
                moved[j] += t * h
                a[i, j] -= s * t * log_posterior(moved) / (4 * h * h)
            a[j, i] = a[i, j]
        try:
            factor = mpmath.cholesky(a)
        except ValueError:  # not positive definite
            return math.nan
        half_log_det = sum(mpmath.log(factor[i, i]) for i in range(d))
        return float(log_posterior(phi) + d * mpmath.log(2 * mpmath.pi) / 2 - half_log_det)


def identifiable_dimension(network, columns, seed=0, prime=2**31 - 1):
    """d, the generic rank of the Jacobian of θ -> p(y | θ) over all rows y of ``columns``.

    Evaluated at random residues modulo a prime, where nothing rounds: the rank found is never too high, and too low
    with probability about d / prime.
    """
    draw = random.Random(seed)
    theta, index = {}, {}
    for node in network.cards:
        *configuration_shape, card = network.shape(node)
        for configuration in np.ndindex(*configuration_shape):
            free = [draw.randrange(1, prime) for _ in range(card - 1)]
            for k, value in enumerate([*free, (1 - sum(free)) % prime]):
                theta[node, (*configuration, k)] = value
                if k < card - 1:
                    index[node, (*configuration, k)] = len(index)
    cells = list(itertools.product(*(range(network.cards[column]) for column in columns)))
    jacobian = np.zeros((len(index), len(cells)), dtype=np.int64)
    for y, states in enumerate(cells):
        for completion in completions(network, dict(zip(columns, states))):
            pairs = [(node, network.cell(node, completion)) for node in network.cards]
            for i, (node, (*configuration, k)) in enumerate(pairs):
                others = math.prod(theta[pair] for pair in pairs[:i] + pairs[i + 1 :]) % prime
                if k < network.cards[node] - 1:
                    jacobian[index[node, (*configuration, k)], y] += others
                else:  # the last probability of a row is one minus the others
                    for free in range(k):
                        jacobian[index[node, (*configuration, free)], y] -= others
    return rank(jacobian % prime, prime)


def rank(matrix, prime):
    """The rank of an integer matrix modulo a prime below 2**31, by Gaussian elimination."""
    found = 0
    for column in range(matrix.shape[1]):
        (candidates,) = np.nonzero(matrix[found:, column])
        if candidates.size:
            pivot = found + candidates[0]
            matrix[[found, pivot]] = matrix[[pivot, found]]
            matrix[found] = matrix[found] * pow(int(matrix[found, column]), -1, prime) % prime
            matrix[found + 1 :] = (matrix[found + 1 :] - matrix[found + 1 :, [column]] * matrix[found]) % prime
            found += 1
    return found


def n_aliases(network, columns, prior):
    """S, the number of relabelings of hidden nodes and of their states that leave structure and prior as they are.

    Hidden nodes without observed descendants do not count: their posterior is their prior, symmetric already.
    """
    hidden = [node for node in network.cards if node in network.ancestral(columns) and node not in columns]
    number = 0
    for images in itertools.permutations(hidden):
        image = {**{node: node for node in network.cards}, **dict(zip(hidden, images))}
        if any(network.cards[node] != network.cards[image[node]] for node in hidden):
            continue
        for orders in itertools.product(*(itertools.permutations(range(network.cards[node])) for node in hidden)):
            order = {**{node: range(card) for node, card in network.cards.items()}, **dict(zip(hidden, orders))}
            number += all(same_table(network, prior, node, image, order) for node in network.ancestral(columns))
    return number


def same_table(network, prior, node, image, order):
    """Whether the prior of ``node``, its axes and states renamed, is the prior of the node's image."""
    family = [*network.parents[node], node]
    target = [*network.parents[image[node]], image[node]]
    if {image[member] for member in family[:-1]} != set(target[:-1]):
        return False
    renamed = np.asarray(prior[node])[np.ix_(*(order[member] for member in family))]
    axes = [[image[member] for member in family].index(member) for member in target]
    return np.array_equal(renamed.transpose(axes), prior[image[node]])
