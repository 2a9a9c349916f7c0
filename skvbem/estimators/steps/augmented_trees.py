"""The most probable forest of dependences among features within classes.

Given the class, a naive Bayes classifier takes features for independent. A tree-augmented one (Friedman, Geiger and
Goldszmidt, Machine Learning 29, 1997, 131-163) gives each feature one other feature as a second parent. They take the
tree of largest conditional mutual information. Here an edge weighs what it adds to the log evidence under a BDeu prior
(Heckerman, Geiger and Chickering, Machine Learning 20, 1995, 197-243). That is the same in both directions, and
negative where nothing speaks for a dependence: the best forest may leave features alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skvbem._numerics import log_rising


def gain_of_edge(
    classes: np.ndarray, a: np.ndarray, b: np.ndarray, sizes: tuple[int, int, int], weight: np.ndarray, total: float
) -> float:
    """Gain of log evidence by an edge between two features, nats, the class a parent of both.

    Parameters
    ----------
    classes, a, b : ndarray of int, shape (n_samples,)
        Codes, -1 where missing: rows where both features are observed count.
    sizes : (int, int, int)
        Numbers of codes.
    weight : ndarray of shape (n_samples,)
    total : float
        Equivalent sample size of the prior.
    """
    known = (a >= 0) & (b >= 0)
    cells = np.ravel_multi_index((classes[known], a[known], b[known]), sizes)
    counts = np.bincount(cells, weight[known], np.prod(sizes)).reshape(sizes)

    def log_evidence(of: np.ndarray) -> float:
        return float(log_rising(np.full(of.shape, total / of.size), of).sum())

    without_edge = log_evidence(counts.sum(axis=2)) + log_evidence(counts.sum(axis=1))
    return log_evidence(counts) - without_edge + log_evidence(counts.sum(axis=(1, 2)))


def best_forest(gains: np.ndarray) -> list[tuple[int, int]]:
    """Edges (parent, child) of the forest of largest gain; no edge without one.

    Parameters
    ----------
    gains : ndarray of shape (n_features, n_features)
        Symmetric.
    """
    n_features = len(gains)
    edges, is_in = [], np.zeros(n_features, dtype=bool)
    best, parent = np.zeros(n_features), np.full(n_features, -1)
    for _ in range(n_features):  # Prim's algorithm; a feature without gain is the root of another tree
        node = int(np.argmax(np.where(is_in, -np.inf, best)))
        is_in[node] = True
        if parent[node] >= 0:
            edges.append((int(parent[node]), node))
        nearer = ~is_in & (gains[node] > best)
        best[nearer], parent[nearer] = gains[node][nearer], node
    return edges


def augmenting_edges(
    names: Sequence[str], codes: np.ndarray, sizes: Sequence[int], classes: np.ndarray, n_classes: int, *, weight, total
) -> list[tuple[str, str]]:
    """The edges (parent, child) between features of categories that raise the evidence most.

    Parameters
    ----------
    names : sequence of str
        Of the features.
    codes : ndarray of int, shape (n_samples, n_features)
        -1 where missing.
    sizes : sequence of int
        Numbers of categories.
    classes : ndarray of int, shape (n_samples,)
    n_classes : int
    weight : ndarray of shape (n_samples,)
    total : float
        Equivalent sample size of the prior.
    """
    gains = np.zeros((len(names), len(names)))
    for j in range(len(names)):
        for i in range(j):
            of_three = (n_classes, sizes[i], sizes[j])
            gains[i, j] = gains[j, i] = gain_of_edge(classes, codes[:, i], codes[:, j], of_three, weight, total)
    return [(names[parent], names[child]) for parent, child in best_forest(gains)]
