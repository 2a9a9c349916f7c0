"""Discrete Bayesian networks with hidden variables and missing cells, by definition.

Everything here is a sum over completions, written as the formula stands and never mind the time; nothing of skvbem is
imported.

- A *network* gives each node its number of states and its parents. A *table* of a node is an array with axes
  ``(*parents, node)``; "tables" is a dict node -> array. Probabilities θ, their logarithms, counts N and Dirichlet
  concentrations λ are all tables.
- A *row* y_i is a dict node -> state of the cells that were observed. A node absent from it is unobserved, and whether
  it is hidden in all rows or missing in this one makes no difference.
- A *completion* of a row is a dict node -> state that agrees with it: one value of (x_i, y_i).
- A *latent distribution* q(x) = Π_i q_i(x_i) is a list with an entry (weight, [(completion, probability), ...]) for
  each row; weight w stands for w rows with the same q_i.

p(x, y | θ) = Π_i Π_j θ_j[pa_j, x_j]; every row of every table has its own Dirichlet prior; logarithms are natural.

[Beal]: M. J. Beal, Variational algorithms for approximate Bayesian inference, thesis, 2003, chapter 2. [BG]: M. J. Beal
and Z. Ghahramani, The variational Bayesian EM algorithm for incomplete data, 2003. [CH]: D. M. Chickering and
D. Heckerman, Efficient approximations for the marginal likelihood of Bayesian networks with hidden variables, 1996.
"""

import functools
import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
from scipy.special import digamma, gammaln, logsumexp, xlogy

MISSING = -1


@dataclass(frozen=True)
class Network:
    cards: dict  # node -> number of states
    parents: dict  # node -> tuple of nodes

    def shape(self, node):
        return (*(self.cards[parent] for parent in self.parents[node]), self.cards[node])

    def cell(self, node, completion):
        """The index, in the table of ``node``, of the cell that ``completion`` falls into."""
        return (*(completion[parent] for parent in self.parents[node]), completion[node])

    def full(self, value):
        """Tables with the same value in every cell."""
        return {node: np.full(self.shape(node), value) for node in self.cards}

    def ancestral(self, nodes):
        """``nodes`` and all their ancestors."""
        return set(nodes).union(*(self.ancestral(self.parents[node]) for node in nodes))

    @property
    def n_free_parameters(self):
        """Number of free probabilities with complete data, d'."""
        return sum(math.prod(self.shape(node)[:-1]) * (card - 1) for node, card in self.cards.items())


@dataclass(frozen=True)
class Data:
    columns: tuple  # the nodes observed; all other nodes of a network are hidden
    cells: np.ndarray  # (n, len(columns)) states 0, 1, ...; MISSING where not observed
    weights: np.ndarray | None = None  # (n,), one each when None

    def rows(self):
        """Pairs (row, weight); rows of weight zero are no rows."""
        weights = [1] * len(self.cells) if self.weights is None else np.asarray(self.weights).tolist()
        for states, weight in zip(np.asarray(self.cells).tolist(), weights):
            if weight:
                yield {node: state for node, state in zip(self.columns, states) if state != MISSING}, weight


class Problem(NamedTuple):
    network: Network
    data: Data
    prior: dict


def uniform_prior(network, value=1):
    """λ = ``value`` in every cell."""
    return network.full(value)


def bdeu_prior(network, equivalent_sample_size):
    """λ = N' / (number of cells of the table), which scores equivalent complete structures equally."""
    return {node: table / table.size * equivalent_sample_size for node, table in network.full(1.0).items()}


def each(function, *tables):
    """Tables whose arrays are ``function`` of the arrays of the tables given."""
    return {node: function(*(table[node] for table in tables)) for node in tables[0]}


def total(tables):
    """The sum of all cells of all tables."""
    return float(sum(np.sum(table) for table in tables.values()))


def rows_of(table):
    """The rows of one table, a tuple for each configuration of the parents."""
    return [tuple(row) for row in np.reshape(table, (-1, np.shape(table)[-1])).tolist()]


def all_rows(network, tables):
    """The rows of all tables, in the order of the network's nodes."""
    return [row for node in network.cards for row in rows_of(tables[node])]


# --- completions and q(x) ---------------------------------------------------------------------------------------------


def completions(network, row, prune=False):
    """Every completion of a row.

    With ``prune`` unobserved nodes that have no observed descendant are left out. Under proper probabilities they sum
    to one and nothing changes; under the sub-normalized exp⟨ln θ⟩ they would cost bound for nothing.
    """
    kept = network.ancestral(row) if prune else network.cards
    nodes = [node for node in network.cards if node in kept]
    choices = [[row[node]] if node in row else range(network.cards[node]) for node in nodes]
    return [dict(zip(nodes, states)) for states in itertools.product(*choices)]


def n_completions(network, data, prune=False):
    """Number of joint completions of all rows."""
    return math.prod(len(completions(network, row, prune)) ** whole(weight) for row, weight in data.rows())


def log_joint(network, log_tables, completion):
    """ln Π_j θ_j[pa_j, x_j] over the nodes of the completion."""
    return sum(log_tables[node][network.cell(node, completion)] for node in completion)


def row_log_normalizer(network, log_tables, row, prune=False):
    """ln Z_i = ln Σ_x Π_j θ_j[pa_j, x_j]; the tables need not be normalized."""
    return logsumexp([log_joint(network, log_tables, completion) for completion in completions(network, row, prune)])


def row_posterior(network, log_tables, row, prune=True):
    """q_i(x_i) ∝ Π_j θ_j[pa_j, x_j], a list of pairs (completion, probability) [Beal (2.94); BG (10)]."""
    log_z = row_log_normalizer(network, log_tables, row, prune)
    if log_z == -math.inf:
        raise ValueError(f"Row {row} is impossible: it has no posterior.")
    return [
        (completion, math.exp(log_joint(network, log_tables, completion) - log_z))
        for completion in completions(network, row, prune)
    ]


def latent_posterior(network, log_tables, data, prune=True):
    """q(x): the posterior of every row."""
    return [(weight, row_posterior(network, log_tables, row, prune)) for row, weight in data.rows()]


def log_likelihood(network, log_tables, data, prune=False):
    """ln Z_x = Σ_i w_i ln Z_i; ln p(y | θ) when the tables hold ln θ."""
    return sum(weight * row_log_normalizer(network, log_tables, row, prune) for row, weight in data.rows())


def expected_counts(network, q):
    """N̄, the expected number of rows in each cell of each table [Beal (2.100)]."""
    counts = network.full(0.0)
    for weight, posterior in q:
        for completion, probability in posterior:
            for node in completion:
                counts[node][network.cell(node, completion)] += weight * probability
    return counts


def entropy(q):
    """H(q), nats."""
    return -sum(weight * xlogy(p, p) for weight, posterior in q for _, p in posterior)


# --- Dirichlet distributions ------------------------------------------------------------------------------------------


def log_bd(counts, prior, real=float, lgamma=math.lgamma):
    """ln p(complete data with these counts), the Bayesian-Dirichlet score [CH (5)]; expected counts will do.

    ln Π_rows Γ(Σλ) / Γ(Σλ + ΣN) Π_k Γ(λ_k + N_k) / Γ(λ_k)
    """
    score = real(0)
    for node in counts:
        for row_counts, row_prior in zip(rows_of(counts[node]), rows_of(prior[node])):
            n, a = [real(value) for value in row_counts], [real(value) for value in row_prior]
            score += lgamma(sum(a)) - lgamma(sum(a) + sum(n))
            score += sum(lgamma(a_k + n_k) - lgamma(a_k) for a_k, n_k in zip(a, n))
    return score


def precise_log_bd(counts, prior, digits=60):
    """`log_bd` of the very same floating-point numbers, worked in ``digits`` digits."""
    with mpmath.workdps(digits):
        return log_bd(counts, prior, mpmath.mpf, mpmath.loggamma)


def log_beta(a):
    """ln B(a) = Σ ln Γ(a_k) − ln Γ(Σ a_k), for each row."""
    return gammaln(a).sum(-1) - gammaln(a.sum(-1))


def expected_log(a):
    """⟨ln θ⟩ under Dir(a): exponentiated, rows that sum to less than one."""
    return digamma(a) - digamma(a.sum(-1, keepdims=True))


def kl(a, b):
    """KL(Dir(a) ‖ Dir(b)) = ln B(b) − ln B(a) + Σ (a_k − b_k) ⟨ln θ_k⟩, for each row."""
    return log_beta(b) - log_beta(a) + ((a - b) * expected_log(a)).sum(-1)


def posterior(prior, counts):
    """λ + N, the concentrations of q(θ) [Beal (2.98), (2.99); BG (9)]."""
    return each(np.add, prior, counts)


def mean_tables(prior, counts):
    """⟨θ⟩ under Dir(λ + N); under q, the predictive distribution of one new row is exactly p(y | ⟨θ⟩)."""
    return each(lambda a: a / a.sum(-1, keepdims=True), posterior(prior, counts))


def logs(tables):
    """ln of every cell; ln 0 = −∞."""
    with np.errstate(divide="ignore"):
        return each(np.log, tables)


# --- three forms of q(θ), one loop ------------------------------------------------------------------------------------
#
# A form takes (prior, counts) to (⟨ln θ⟩, penalty). Its objective is ln Z_x + penalty, and EM makes it rise.


def vb(prior, counts):
    """q(θ) = Dir(λ + N), penalty −KL(q ‖ p): the objective is the lower bound F on ln p(y)."""
    q = posterior(prior, counts)
    return each(expected_log, q), -total(each(kl, q, prior))


def map_softmax(prior, counts):
    """The mode θ ∝ λ + N of Dir(λ + N) as a density of softmax parameters; penalty ln p(θ) in that measure."""
    log_theta = logs(mean_tables(prior, counts))
    return log_theta, total(each(lambda a, t: (a * t).sum(-1) - log_beta(a), prior, log_theta))


def map_probability(prior, counts):
    """The mode θ ∝ λ + N − 1 of Dir(λ + N) as a density of probabilities; penalty ln p(θ) in that measure."""
    excess = each(lambda a, n: a + n - 1.0, prior, counts)
    if any(np.any(table < 0) for table in excess.values()):
        raise ValueError("λ + N is below one in some cell: the density is unbounded and has no mode.")
    log_theta, _ = ml(prior, excess)
    return log_theta, total(each(lambda a, t: xlogy(a - 1, np.exp(t)).sum(-1) - log_beta(a), prior, log_theta))


def ml(prior, counts):
    """The mode θ ∝ N of the likelihood, uniform in a row without counts; no penalty. The prior is not looked at."""
    sums = each(lambda n: n.sum(-1, keepdims=True), counts)
    uniform = each(lambda n: np.full(n.shape, 1 / n.shape[-1]), counts)
    return logs(each(lambda n, s, u: np.divide(n, s, out=u, where=s > 0), counts, sums, uniform)), 0.0


FORMS = {"vb": vb, "map": map_softmax, "map_probability": map_probability, "ml": ml}


def free_energy(log_tables, penalty, counts, latent_entropy):
    """⟨ln p(x, y | θ)⟩ + H(q(x)) + penalty: F(q(x), q(θ)) at any q(x), any q(θ) [Beal (2.53); BG (5)]; 0 ln 0 = 0."""
    energy = sum(np.sum(n[n > 0] * log_tables[node][n > 0]) for node, n in counts.items())
    return energy + latent_entropy + penalty


def objective_after_e(form, network, data, prior, counts, prune=True):
    """ln Z_x + penalty, the free energy of q(θ) made from ``counts`` and the best q(x) for it."""
    log_tables, penalty = form(prior, counts)
    return log_likelihood(network, log_tables, data, prune) + penalty


def objective_after_m(form, network, prior, q):
    """The free energy of q(x) and the best q(θ) for it."""
    counts = expected_counts(network, q)
    return free_energy(*form(prior, counts), counts, entropy(q))


def lower_bound(network, prior, q):
    """H(q(x)) + ln BD(N̄): F maximized over q(θ), for any q(x), hence `objective_after_m` of VB [Beal (2.151)]."""
    return entropy(q) + log_bd(expected_counts(network, q), prior)


class Step(NamedTuple):
    after_e: float  # objective of the old q(θ) with the new q(x)
    q: list  # the new q(x)
    counts: dict  # its expected counts, from which the new q(θ) is made
    after_m: float  # objective of both


def em(form, network, data, prior, counts, n_steps, prune=True):
    """The trace of ``n_steps`` steps from the q(θ) made of ``counts``: E, then M [BG (6), (7)]."""
    trace = []
    for _ in range(n_steps):
        log_tables, _ = form(prior, counts)
        after_e = objective_after_e(form, network, data, prior, counts, prune)
        q = latent_posterior(network, log_tables, data, prune)
        counts = expected_counts(network, q)
        trace.append(Step(after_e, q, counts, objective_after_m(form, network, prior, q)))
    return trace


# --- exact evidence ---------------------------------------------------------------------------------------------------


def whole(weight):
    """The weight as an int: only whole rows have completions."""
    if weight != int(weight) or weight < 0:
        raise ValueError(f"A weight of {weight} is no number of rows.")
    return int(weight)


def every_completion(network, data, prune=False):
    """All completions of every row, each with "probability" one: sums over x in the shape of a latent distribution."""
    return [(weight, [(x, 1) for x in completions(network, row, prune)]) for row, weight in data.rows()]


def joint_completions(network, q):
    """Pairs (counts, probability) of every completion of all rows together, one by one."""
    for joint in itertools.product(*(choices for weight, choices in q for _ in range(whole(weight)))):
        counts = expected_counts(network, [(1, [(completion, 1)]) for completion, _ in joint])
        yield counts, math.prod(probability for _, probability in joint)


def counts_distribution(network, q):
    """The distribution of the counts N(x, y) under q(x): a dict from counts, as `all_rows`, to probability.

    The sum over `joint_completions`, with those of equal counts added up row by row of the data.
    """
    configurations = [(node, c) for node in network.cards for c in np.ndindex(network.shape(node)[:-1])]
    position = {configuration: i for i, configuration in enumerate(configurations)}

    def with_one_more(counts, completion):
        counts = list(counts)
        for node in completion:
            *configuration, state = network.cell(node, completion)
            i = position[node, tuple(configuration)]
            counts[i] = (*counts[i][:state], counts[i][state] + 1, *counts[i][state + 1 :])
        return tuple(counts)

    distribution = {tuple(all_rows(network, network.full(0))): 1}
    for weight, choices in q:
        for _ in range(whole(weight)):
            longer = defaultdict(int)
            for counts, probability in distribution.items():
                for completion, p in choices:
                    longer[with_one_more(counts, completion)] += probability * p
            distribution = longer
    return distribution


def rising(a, n):
    """a (a + 1) ... (a + n − 1) = Γ(a + n) / Γ(a)."""
    return math.prod((a + i for i in range(n)), start=Fraction(1))


@functools.cache
def row_evidence(counts, prior):
    """The factor of one table row in BD, a Fraction."""
    prior = [Fraction(a) for a in prior]
    return math.prod(map(rising, prior, counts)) / rising(sum(prior), sum(counts))


@functools.cache
def log_row_evidence(counts, prior):
    """ln of `row_evidence`, by log gamma functions."""
    return log_bd({None: np.array(counts)}, {None: np.array(prior)})


def exact_evidence(network, data, prior):
    """p(y) = Σ_x BD(N(x, y)) as a Fraction, exact for the prior given, be it ints, Fractions or floats [CH (6)]."""
    distribution = counts_distribution(network, every_completion(network, data))
    rows = all_rows(network, prior)
    return sum(number * math.prod(map(row_evidence, counts, rows)) for counts, number in distribution.items())


def exact_log_evidence(network, data, prior):
    """ln p(y) = ln Σ_x BD(N(x, y)), in floating point."""
    distribution = counts_distribution(network, every_completion(network, data))
    rows = all_rows(network, prior)
    return logsumexp([math.log(m) + sum(map(log_row_evidence, counts, rows)) for counts, m in distribution.items()])


def exact_collapsed_bound(network, prior, q):
    """⟨ln BD(N)⟩ + H(q(x)): the bound with θ integrated out, no lower than F at the same q(x)."""
    rows = all_rows(network, prior)
    distribution = counts_distribution(network, q)
    return sum(p * sum(map(log_row_evidence, counts, rows)) for counts, p in distribution.items()) + entropy(q)


def kl_to_posterior(network, data, prior, q, counts):
    """KL(q(x) Dir(θ; λ + N) ‖ p(x, θ | y)), over completions and parameters: ln p(y) − F [BG (8)]."""
    log_evidence = exact_log_evidence(network, data, prior)
    divergence = 0.0
    for complete, p in joint_completions(network, q):
        if p > 0:
            divergence += p * (math.log(p) - (log_bd(complete, prior) - log_evidence))
            divergence += p * total(each(kl, posterior(prior, counts), posterior(prior, complete)))
    return divergence


# --- prediction -------------------------------------------------------------------------------------------------------


def predictive_probability(network, tables, row):
    """p(row | θ), the cells that are missing summed out; the tables need not be normalized."""
    return math.exp(row_log_normalizer(network, logs(tables), row))


def joint_mode(network, tables, row):
    """The most probable completion of the row and its probability given the row."""
    return max(row_posterior(network, logs(tables), row, prune=False), key=lambda pair: pair[1])


def marginals(network, tables, row):
    """For each node the probabilities of its states given the row."""
    probabilities = {node: np.zeros(card) for node, card in network.cards.items()}
    for completion, p in row_posterior(network, logs(tables), row, prune=False):
        for node, state in completion.items():
            probabilities[node][state] += p
    return probabilities
