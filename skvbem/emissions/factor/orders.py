"""Orders and signs of factors, which no likelihood and no prior tells apart."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from skvbem.emissions.symmetries import SignedPermutations


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
    width, unused = len(left), range(n_used + 1, q + 1)
    first, cells, signs = n_matrices * width, [], []
    for order in permutations(range(1, n_used + 1)):
        for of_factors in product((1.0, -1.0), repeat=n_used):
            turned, sign = np.array([0, *order, *unused]), np.array([1.0, *of_factors, *(1.0 for _ in unused)])
            cell, of_cell = np.arange(n_own), np.ones(n_own)
            of_matrix = places[turned[left], turned[right]]
            cell[:first] = (width * np.arange(n_matrices)[:, None] + of_matrix).ravel()
            of_cell[:first] = np.tile(sign[left] * sign[right], n_matrices)
            rows = (1 + q) * np.arange(d)[:, None] + turned
            cell[first : first + rows.size] = first + rows.ravel()
            of_cell[first : first + rows.size] = np.tile(sign, d)
            cells.append(cell)
            signs.append(of_cell)
    return SignedPermutations(np.array(cells), np.array(signs))
