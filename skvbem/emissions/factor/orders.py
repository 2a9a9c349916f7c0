"""Orders and signs of factors, which no likelihood and no prior tells apart."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from skvbem.emissions.symmetries import AlikeCells, SignedPermutations, unchanged


def turned_factors(n_used: int, q: int, d: int, n_matrices: int, n_own: int) -> SignedPermutations:
    """All orders and signs of the factors of a component, as changes of its cells.

    Parameters
    ----------
    n_used : int
        Factors that the component has: the first ones.
    q : int
        Factors that it has cells for.
    d : int
        Columns.
    n_matrices : int
        Matrices of products of regressors, which come first.
    n_own : int
        Cells in all.
    """
    places = np.zeros((q + 1, q + 1), dtype=int)
    places[np.triu_indices(q + 1)] = np.arange((q + 1) * (q + 2) // 2)
    places = np.maximum(places, places.T)
    left, right = np.triu_indices(q + 1)
    orders = np.array(list(permutations(range(1, n_used + 1))), dtype=int)
    of_factors = np.array(list(product((1.0, -1.0), repeat=n_used)))
    turned = np.tile(np.arange(q + 1), (len(orders) * len(of_factors), 1))
    turned[:, 1 : n_used + 1] = np.repeat(orders, len(of_factors), axis=0)
    signs = np.ones(turned.shape)
    signs[:, 1 : n_used + 1] = np.tile(of_factors, (len(orders), 1))
    matrices = AlikeCells(n_matrices, places[turned[:, left], turned[:, right]], signs[:, left] * signs[:, right])
    n_others = n_own - n_matrices * len(left) - d * (q + 1)
    return SignedPermutations((matrices, AlikeCells(d, turned, signs), unchanged(n_others, len(turned))))
