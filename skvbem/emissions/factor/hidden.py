"""Factors of rows as a factor analyzer's hidden variables: their symmetries, their rotations, where fits start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations, permutations, product
from math import factorial
from typing import Any

import numpy as np

from skvbem.emissions.base import Hidden
from skvbem.emissions.factor.quotient import FactorQuotient
from skvbem.emissions.factor.second_moments import MIN_START_NOISE, corners_of, root_of
from skvbem.emissions.factor.table import FactorTable
from skvbem.emissions.moments import in_units
from skvbem.emissions.symmetries import AlikeCells, SignedPermutations, unchanged
from skvbem.families import RegressionPoint
from skvbem.families.hierarchical import regression_of
from skvbem.families.regression import are_unknown, rotation_tangent


@dataclass(frozen=True, eq=False)
class HiddenFactors(Hidden):
    """The factors of rows.

    Parameters
    ----------
    emission : FactorAnalyzer
    """

    emission: Any

    @property
    def awaits_n_factors(self) -> bool:
        """True if the numbers of factors are yet to be chosen."""
        return self.emission.correlation.size > 0

    def n_symmetries(self, component: int | None = None) -> int:
        """Number of orders and signs of the factors of a component; of the most factors if None."""
        q = self.emission.n_factors if component is None else self._n_factors_of(component)
        return 2**q * factorial(q)

    def symmetries(self, component: int) -> SignedPermutations:
        """All orders and signs of the factors that a component has."""
        emission = self.emission
        n_matrices, n_used = len(emission.matrices.groups), self._n_factors_of(component)
        return orders_and_signs(
            n_used, emission.n_factors, emission.n_columns, n_matrices, emission.cells_per_component
        )

    def classes(self, n_components: int) -> np.ndarray:
        """Numbers of factors: components that have as many are exchangeable."""
        return np.array(self.emission.numbers(n_components))

    def rotation_tangents(self, natural: np.ndarray) -> np.ndarray:
        """Tangent directions of rotations in the plane of each two factors of a component."""
        emission = self.emission
        k, directions = emission.n_components(len(natural)), [np.zeros((len(natural), 0))]
        for component in range(k):
            for i, j in combinations(range(1, 1 + self._n_factors_of(component)), 2):
                rotation = np.zeros((k, 1 + emission.n_factors, 1 + emission.n_factors))
                rotation[component, i, j], rotation[component, j, i] = 1.0, -1.0
                directions.append(rotation_tangent(emission.layout(k), natural, rotation)[:, None])
        return np.hstack(directions)

    def quotient(self, prior: Any, natural: np.ndarray) -> FactorQuotient | None:
        """Coordinates of the emission's parameters up to turns of factors; None without any factors."""
        return FactorQuotient(self.emission, prior, natural) if self.emission.n_factors else None

    def are_unknown(self, natural: np.ndarray) -> np.ndarray:
        """Boolean array (n_components, q) of the factors whose loadings are 0, or next to nothing; none not in use."""
        k = self.emission.n_components(len(natural))
        return (are_unknown(self.emission.layout(k), natural) & self.emission.in_use(k))[:, 1:]

    def start_natural(self, prior: Any) -> np.ndarray:
        """Natural parameters (n_cells,) under which rows are completed where their components are known for a start.

        All components have the loadings of the principal components of the data.
        """
        family, emission = regression_of(prior), self.emission
        k, noise_of = family.n_components, family.noise_of_row
        coefficients = np.tile(np.column_stack([emission.mean, emission.loadings]), (k, 1))
        noise = np.maximum(1 - (emission.loadings**2).sum(axis=1), MIN_START_NOISE)
        variance = np.bincount(noise_of, np.tile(noise, k)) / np.bincount(noise_of)
        return prior.natural(RegressionPoint(coefficients, 1 / variance))

    def n_redundant_parameters(self, components: np.ndarray) -> int:
        r"""Dimensions of rotations of factors, of factors that are not in use, and of what no covariance has room for.

        Loadings and noises of q factors of d columns make a family of covariances of
        :math:`\min(dq - q(q-1)/2 + d, d(d+1)/2)` dimensions, with one noise for all of
        :math:`\min(dq - q(q-1)/2 + 1, d(d+1)/2)`.
        """
        emission = self.emission
        d, n_redundant = emission.n_columns, 0
        n_noises = 0 if emission.tied else 1 if emission.spherical else d
        for n_factors in emission.in_use(len(components))[components, 1:].sum(axis=1).tolist():
            dimension = d * n_factors - n_factors * (n_factors - 1) // 2 + n_noises
            n_redundant += d * emission.n_factors + n_noises - min(dimension, d * (d + 1) // 2)
        return n_redundant

    def condensed(self, blocks: Iterable[tuple[FactorTable, np.ndarray]]) -> tuple[FactorTable, np.ndarray] | None:
        """Rows at the corners of a simplex with the mean and the covariance of all, where no cell is missing.

        The log likelihood of a row is quadratic in it, so that no more of many rows enters the bound.
        """
        d, n = self.emission.n_columns, 0.0
        total, products = np.zeros(d), np.zeros((d, d))
        for block, weight in blocks:
            if block.pattern is not None:
                return None
            for rows, w in in_units(block.values, weight, self.emission.origin, self.emission.unit):
                n += float(w.sum())
                total += w @ rows
                if not (w == 1.0).all():
                    rows *= np.sqrt(w)[:, None]
                products += rows.T @ rows
        if n <= 0:
            return None
        mean = total / n
        values = mean + corners_of(root_of(products / n - mean[:, None] * mean))
        whole = FactorTable(np.zeros(d), np.ones(d), values, None, np.zeros((0, d), dtype=bool))
        return whole, np.full(d + 1, n / (d + 1))

    def _n_factors_of(self, component: int) -> int:
        emission = self.emission
        return emission.n_factors_of[component] if emission.n_factors_of else emission.n_factors


def orders_and_signs(n_used: int, q: int, d: int, n_matrices: int, n_own: int) -> SignedPermutations:
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
    signs_of_factors = np.array(list(product((1.0, -1.0), repeat=n_used)))
    turned = np.tile(np.arange(q + 1), (len(orders) * len(signs_of_factors), 1))
    turned[:, 1 : n_used + 1] = np.repeat(orders, len(signs_of_factors), axis=0)
    signs = np.ones(turned.shape)
    signs[:, 1 : n_used + 1] = np.tile(signs_of_factors, (len(orders), 1))
    matrices = AlikeCells(n_matrices, places[turned[:, left], turned[:, right]], signs[:, left] * signs[:, right])
    n_others = n_own - n_matrices * len(left) - d * (q + 1)
    return SignedPermutations((matrices, AlikeCells(d, turned, signs), unchanged(n_others, len(turned))))
