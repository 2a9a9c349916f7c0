r"""The BGe score: evidences of graphs over columns of measurements under one Normal-Wishart prior of all columns.

Columns are measured in standard deviations from their means. Of d of them

.. math::

    W \sim \mathrm{Wishart}(\delta + d - 1, T^{-1}), \qquad \mu \mid W \sim N(0, (\alpha W)^{-1}),

and the l columns Y of such a table have :math:`\delta + l - 1` degrees of freedom and the submatrix of T. With N rows
and :math:`R = T + S + \frac{N\alpha}{N + \alpha} \bar x \bar x^\top`, S the products about the means,

.. math::

    \ln p(Y) = \tfrac l2 \ln\tfrac{\alpha}{\alpha + N} - \tfrac{lN}2 \ln\pi
        + \sum_{p < l} \ln\frac{\Gamma((\delta + p + N) / 2)}{\Gamma((\delta + p) / 2)}
        + \tfrac{\delta + l - 1}2 \ln|T_Y| - \tfrac{\delta + l - 1 + N}2 \ln|R_Y|

[KMH14]. The score of a family is :math:`\ln p(v, P) - \ln p(P)`. Sums of these are equal on graphs that allow the same
distributions. With :math:`T = t I` the family is a regression with a Normal-Gamma prior: a shape of
:math:`(\delta + p) / 2` and a rate of t / 2 of the precision of its noise, p the number of parents, and in units of
this a precision :math:`\alpha` of the constant and t of slopes.

A hidden scale has :math:`t \sim \mathrm{Gamma}(\frac12, \frac12)`, and is summed out over equal steps of ln t.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb, log, pi
from typing import Self

import numpy as np
from scipy.special import gammaln

from skvbem._lazy import cached_property
from skvbem._numerics import log_rising
from skvbem.emissions.moments import blocks_of_floats, weighted_moments
from skvbem.graphs.dag import DAG
from skvbem.search.families.best_dag import check_tables, most_parents
from skvbem.search.tuning import TUNING
from skvbem.spaces.rules import EdgeRules

# Nodes of the trapezoid over ln t: a quarter apart they leave an error of 1e-10 nats.
_LOG_SCALES = np.linspace(-10.0, 3.0, 53)
# Operations of some nanoseconds that a set of one column takes, by hand; more go by the square of their number.
_OPERATIONS = 20.0
# Doubles of matrices that are factored together: 8 MB.
_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class NormalWishartScores:
    r"""Evidences of sets and families of columns without missing cells under one Normal-Wishart prior.

    Parameters
    ----------
    nodes : tuple
        Of d columns.
    products : ndarray of shape (d, d)
        S, of columns in units from their prior means, about their means in the data.
    mean : ndarray of shape (d,)
        Means in the data, in units from prior means.
    unit : ndarray of shape (d,)
    total_weight : float
        N, rows.
    scale : ndarray of shape (d, d)
        T, in units.
    degrees_of_freedom : float, default=1.0
        :math:`\delta`, of the variance of one column; above 0.
    mean_precision : float, default=1.0
        :math:`\alpha`, in rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.search.families.normal_wishart_scores import NormalWishartScores
    >>> x = np.array([0.0, 1.0, 2.0, 4.0])
    >>> scores = NormalWishartScores.of_rows(("x", "y"), np.column_stack([x, 2 * x + [0.1, -0.1, 0.1, -0.1]]))
    >>> bool(scores.score(1, 0b01) > scores.score(1, 0b00))
    True
    """

    nodes: tuple
    products: np.ndarray
    mean: np.ndarray
    unit: np.ndarray
    total_weight: float
    scale: np.ndarray
    degrees_of_freedom: float = 1.0
    mean_precision: float = 1.0
    _remembered: OrderedDict[int, float] = field(default_factory=OrderedDict, init=False, repr=False)

    are_evidences = True
    #: All is in the scores of families.
    constant = 0.0

    @classmethod
    def of_rows(
        cls,
        nodes: Sequence[Hashable],
        values: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        scale: float = 1.0,
        degrees_of_freedom: float = 1.0,
        mean_precision: float = 1.0,
    ) -> Self:
        """The scores of complete rows, each column in standard deviations from its mean.

        Parameters
        ----------
        nodes : sequence of hashable
            Names of the columns.
        values : ndarray of shape (n_rows, n_columns)
        weight : ndarray of shape (n_rows,), optional
            How often each row counts.
        scale : float, default=1.0
            t of T = t I.
        degrees_of_freedom, mean_precision : float, default=1.0
        """
        moments = weighted_moments(values, weight)
        mean, d = moments.mean / moments.deviation, len(nodes)
        products = np.zeros((d, d))
        for cells, counts in blocks_of_floats(values, weight):
            away = (cells - moments.origin) / moments.deviation - mean
            products += (away * counts[:, None]).T @ away
        prior = scale * np.eye(d), degrees_of_freedom, mean_precision
        return cls(tuple(nodes), products, mean, moments.deviation, moments.total_weight, *prior)

    def with_scale(self, scale: float) -> NormalWishartScores:
        """The scores under a prior whose scale is this multiple of the identity."""
        return replace(self, scale=scale * np.eye(len(self.nodes)))

    @cached_property
    def place(self) -> Mapping[Hashable, int]:
        """The places of nodes, which are bits of masks."""
        return {node: k for k, node in enumerate(self.nodes)}

    def log_evidences(self, sets: np.ndarray) -> np.ndarray:
        """ln p of sets of as many columns each, nats.

        Parameters
        ----------
        sets : ndarray of int, shape (n_sets, n_columns)
            Places of the columns.

        Returns
        -------
        ndarray of shape (n_sets,)
        """
        (n_sets, n), weight, dof = sets.shape, self.total_weight, self.degrees_of_freedom
        if n == 0:
            return np.zeros(n_sets)
        constant = log_rising(0.5 * (dof + np.arange(n)), 0.5 * weight).sum() - 0.5 * n * weight * log(pi)
        constant += 0.5 * n * log(self.mean_precision / (self.mean_precision + weight))
        dof = dof + n - 1
        evidences = np.empty(n_sets)
        at_once = max(1, _AT_ONCE // (n * n))
        for first in range(0, n_sets, at_once):
            batch = sets[first : first + at_once]
            cells = batch[:, :, None], batch[:, None, :]
            before, after = log_determinants(self.scale[cells]), log_determinants(self.posterior_scale[cells])
            evidences[first : first + at_once] = constant + 0.5 * (dof * before - (dof + weight) * after)
        return evidences - weight * np.log(self.unit)[sets].sum(axis=1)

    def score(self, child: int, parents: int) -> float:
        """The score of one family by the places of its nodes, the parents a mask of bits, nats."""
        with_child, without = self._evidences([parents | 1 << child, parents])
        return with_child - without

    def grown(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """The scores of a family with one parent more, for each of some nodes, nats."""
        above = [parents | 1 << more for more in further]
        evidences = np.array(self._evidences([*(mask | 1 << child for mask in above), *above]), dtype=float)
        return evidences[: len(above)] - evidences[len(above) :]

    def among(self, nodes: Sequence[Hashable]) -> NormalWishartScores:
        """The scores of some of the nodes, in this order."""
        at = np.array([self.place[node] for node in nodes], dtype=np.int64)
        cells = np.ix_(at, at)
        products, scale = self.products[cells], self.scale[cells]
        return replace(self, nodes=tuple(nodes), products=products, mean=self.mean[at], unit=self.unit[at], scale=scale)

    def n_operations(self, rules: EdgeRules) -> float:
        """Estimated operations, of some nanoseconds each, to score all families that rules allow."""
        n, most = len(self.nodes), most_parents(rules) + 1
        return sum(comb(n, size) * _OPERATIONS * (1.0 + size) ** 2 for size in range(min(most, n) + 1))

    def of_nodes(self, rules: EdgeRules, max_memory: float) -> Iterator[np.ndarray]:
        """The scores of each node's families, nats, (2 ** (n_nodes - 1),), from evidences of sets of columns."""
        n = len(self.nodes)
        check_tables(n, 8.0 * 2.0**n * (1 + n / 2 + 4), max_memory)
        evidences = np.full(1 << n, np.nan)
        for size in range(min(most_parents(rules) + 1, n) + 1):
            sets = np.array(list(combinations(range(n), size)), dtype=np.int64)
            evidences[(1 << sets).sum(axis=1)] = self.log_evidences(sets)
        index = np.arange(1 << (n - 1))
        for k in range(n):
            low = (1 << k) - 1
            without = (index & low) | ((index & ~low) << 1)
            yield evidences[without | 1 << k] - evidences[without]

    def log_evidence(self, dag: DAG) -> float:
        """ln p of the rows under a graph over the nodes, nats."""
        place = self.place
        families = ((place[v], sum(1 << place[parent] for parent in dag.parents(v))) for v in dag.nodes)
        return sum(self.score(child, parents) for child, parents in families)

    @cached_property
    def squares(self) -> np.ndarray:
        """R - T, the share of the rows, in units."""
        share = self.total_weight * self.mean_precision / (self.total_weight + self.mean_precision)
        return self.products + share * np.outer(self.mean, self.mean)

    @cached_property
    def posterior_scale(self) -> np.ndarray:
        """R, in units."""
        return self.scale + self.squares

    def _evidences(self, masks: Sequence[int]) -> list[float]:
        """ln p of sets of columns, each computed once."""
        remembered = self._remembered
        new: dict[int, list[int]] = {}
        for mask in {mask for mask in masks if mask not in remembered}:
            new.setdefault(mask.bit_count(), []).append(mask)
        for of_size in new.values():
            sets = [[k for k in range(mask.bit_length()) if mask >> k & 1] for mask in of_size]
            remembered.update(zip(of_size, self.log_evidences(np.array(sets, dtype=np.int64)).tolist()))
        values = [remembered[mask] for mask in masks]
        while len(remembered) > TUNING.cache_bytes / 200:
            remembered.popitem(last=False)
        return values


def log_determinants(matrices: np.ndarray) -> np.ndarray:
    """ln of the determinants of positive definite matrices (..., n, n), by their Cholesky factors."""
    factors = np.linalg.cholesky(matrices)
    return 2.0 * np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1)


def hidden_scales() -> tuple[np.ndarray, np.ndarray]:
    """Scales t, and ln of their weights: sums under these are integrals over a hidden scale.

    Returns
    -------
    scales, log_weights : ndarray of shape (53,)
    """
    scales, step = np.exp(_LOG_SCALES), _LOG_SCALES[1] - _LOG_SCALES[0]
    return scales, 0.5 * (np.log(0.5 * scales) - scales) - gammaln(0.5) + log(step)
