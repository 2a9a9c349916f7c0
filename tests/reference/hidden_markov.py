"""Hidden Markov models by definition: every path of every sequence, one by one, in logarithms.

Slow on purpose. Nothing is imported from the package.
"""

from itertools import product

import numpy as np
from scipy.special import gammaln


def log_joints(log_initial, log_transition, log_likelihood):
    """Every path of one sequence, and its ln p(path, rows), for log likelihoods (n_rows, n_states)."""
    n_rows, n_states = log_likelihood.shape
    paths = list(product(range(n_states), repeat=n_rows))
    logs = []
    for path in paths:
        log_p = 0.0
        for t, state in enumerate(path):
            log_p += log_initial[state] if t == 0 else log_transition[path[t - 1], state]
            log_p += log_likelihood[t, state]
        logs.append(log_p)
    return paths, np.array(logs)


def by_enumeration(log_initial, log_transition, log_likelihood):
    """ln Z, posteriors (n_rows, n_states), expected transitions, the best ln p(path, rows) and the paths' posterior."""
    n_rows, n_states = log_likelihood.shape
    paths, logs = log_joints(log_initial, log_transition, log_likelihood)
    log_z = np.logaddexp.reduce(logs)
    posterior = np.exp(logs - log_z) if np.isfinite(log_z) else np.zeros(len(logs))
    marginals, pairs = np.zeros((n_rows, n_states)), np.zeros((n_states, n_states))
    for path, p in zip(paths, posterior):
        for t, state in enumerate(path):
            marginals[t, state] += p
            if t:
                pairs[path[t - 1], state] += p
    return log_z, marginals, pairs, logs.max(), dict(zip(paths, posterior))


def forward_backward(log_initial, log_transition, log_likelihood):
    """ln Z, posteriors and expected transitions of one sequence, all in logarithms."""
    n_rows, n_states = log_likelihood.shape
    forward, backward = np.empty((n_rows, n_states)), np.zeros((n_rows, n_states))
    forward[0] = log_initial + log_likelihood[0]
    for t in range(1, n_rows):
        forward[t] = np.logaddexp.reduce(forward[t - 1][:, None] + log_transition, axis=0) + log_likelihood[t]
    for t in range(n_rows - 2, -1, -1):
        backward[t] = np.logaddexp.reduce(log_transition + log_likelihood[t + 1] + backward[t + 1], axis=1)
    log_z = np.logaddexp.reduce(forward[-1])
    pairs = np.zeros((n_states, n_states))
    for t in range(n_rows - 1):
        to_come = log_likelihood[t + 1] + backward[t + 1]
        pairs += np.exp(forward[t][:, None] + log_transition + to_come - log_z)
    return log_z, np.exp(forward + backward - log_z), pairs


def best_path(log_initial, log_transition, log_likelihood):
    """ln p of the most probable path and the path; the first of equal states before."""
    best, sources = log_initial + log_likelihood[0], []
    for row in log_likelihood[1:]:
        through = best[:, None] + log_transition
        sources.append(through.argmax(axis=0))
        best = through.max(axis=0) + row
    path = [int(best.argmax())]
    for source in reversed(sources):
        path.append(int(source[path[-1]]))
    return best.max(), path[::-1]


def dirichlet(counts, concentration):
    """ln of the probability of a sequence with these counts; none of what has no prior."""
    counts, a = np.asarray(counts, dtype=float), np.asarray(concentration, dtype=float)
    if counts[a == 0].any():
        return -np.inf
    counts, a = counts[a > 0], a[a > 0]
    return gammaln(a.sum()) - gammaln(a.sum() + counts.sum()) + (gammaln(a + counts) - gammaln(a)).sum()


def counts_along(path, starts, n_states):
    """How often sequences that begin at the starts do so in each state, (n_states,), and all transitions."""
    first, pairs = np.zeros(n_states), np.zeros((n_states, n_states))
    for t, state in enumerate(path):
        if t in starts:
            first[state] += 1
        else:
            pairs[path[t - 1], state] += 1
    return first, pairs


def log_evidence(rows, lengths, initial, transitions, of_groups):
    """ln p(y) of sequences one after the other, the parameters integrated out of each path.

    Concentrations of first states (n_states,) and of transitions (n_states, n_states), 0 where there are none;
    `of_groups` is the log evidence of rows in groups, one for each state.
    """
    n_states, found = len(initial), -np.inf
    starts = np.cumsum([0, *lengths])[:-1]
    for path in product(range(n_states), repeat=len(rows)):
        first, pairs = counts_along(path, starts, n_states)
        term = dirichlet(first, initial) + sum(dirichlet(n, a) for n, a in zip(pairs, transitions))
        if np.isfinite(term):
            found = np.logaddexp(found, term + of_groups([rows[np.array(path) == k] for k in range(n_states)]))
    return found
