"""The evidence of rows with two labels by definition: a sum over all of them, as of a mixture or of a chain."""

import itertools

import numpy as np
from scipy.special import gammaln, logsumexp


def log_dirichlet_multinomial(counts):
    """Log probability of labels with these counts, their probabilities drawn uniformly."""
    return gammaln(len(counts)) - gammaln(counts.sum() + len(counts)) + gammaln(1 + counts).sum()


def log_evidence_over_labels(kind, n_rows, log_evidence_of):
    """The evidence of a "mixture" or a "chain" under uniform priors, of the log evidence of rows of known labels."""
    terms = []
    for each in itertools.product(range(2), repeat=n_rows):
        labels = np.array(each)
        if kind == "mixture":
            of_labels = log_dirichlet_multinomial(np.bincount(labels, minlength=2))
        else:
            pairs = np.zeros((2, 2))
            np.add.at(pairs, (labels[:-1], labels[1:]), 1)
            of_labels = np.log(0.5) + sum(map(log_dirichlet_multinomial, pairs))
        terms.append(of_labels + log_evidence_of(labels))
    return float(logsumexp(terms))
