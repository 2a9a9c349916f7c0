r"""Scores that are sums over families: H(q) + ln BD of the counts that rows completed by one q(x) give.

Where nothing is hidden every row is complete as it is, H(q) is nothing, and the sum is the evidence itself. A penalized
likelihood is a sum over families too: the maximized log likelihood of a node given its parents, less the penalty for
the free parameters of its table.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from math import inf, prod
from typing import Any, Protocol

import numpy as np

from skvbem._kernels._local_scores import score_families, score_families_by_bits
from skvbem._lazy import cached_property
from skvbem._numerics import log_rising, log_sum_exp
from skvbem.errors import StructureError, TooLargeError
from skvbem.families.dirichlet import EqualConcentration
from skvbem.families.dirichlet_mixture import AveragedConcentration
from skvbem.graphs.dag import DAG
from skvbem.models.network.completed_rows import CompletedRows
from skvbem.search.tuning import TUNING


def rounding(score: float) -> float:
    """The rounding error of a score, nats."""
    return 1e-9 * (1.0 + abs(score))


class Families(Protocol):
    """Scores of families of nodes; scores of graphs are sums of them."""

    @property
    def nodes(self) -> tuple:
        """The nodes."""
        ...

    @property
    def are_evidences(self) -> bool:
        """True if sums are the evidence itself, where they are no penalized likelihood and nothing is hidden."""
        ...

    @property
    def place(self) -> Mapping[Hashable, int]:
        """The places of nodes, by which families are asked for."""
        ...

    @property
    def constant(self) -> float:
        """The part of the score that all graphs have in common, nats."""
        ...

    def score(self, child: int, parents: int) -> Any:
        """The score of one family by the places of its nodes, the parents a mask of bits; -inf if there is none.

        A float, or one for each scale of a mixture.
        """
        ...

    def grown(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """The scores of a family with one parent more, for each of some nodes."""
        ...


class FamilyPrior(Protocol):
    """The Dirichlet priors of all families that a node may have."""

    def equal_concentration(self, node: Hashable) -> EqualConcentration | AveragedConcentration | None:
        """The prior of a node where it is equal in all cells, whatever the parents; None where tables are given."""

    def family_prior(self, family: tuple, cardinalities: Mapping) -> np.ndarray:
        """Concentrations of a family (*parents, node), axes in this order, or alternatives of them as a first axis.

        ValueError if it has none.
        """


class MaximizedLikelihood:
    """The prior that adds no counts: with it the score of a family is its maximized log likelihood."""

    def equal_concentration(self, node: Hashable) -> EqualConcentration:
        """No counts, in any cell."""
        return EqualConcentration(0.0, "cell")

    def family_prior(self, family: tuple, cardinalities: Mapping) -> np.ndarray:
        """No counts, in any cell."""
        return np.zeros(tuple(cardinalities[member] for member in family))


class FamilyScores:
    """The bound that one q(x) gives on the evidence of every graph; each family is scored once.

    Parameters
    ----------
    completed : CompletedRows
    prior : FamilyPrior
    per_parameter : float, default=0.0
        Nats that each free parameter costs: none but with a maximized likelihood.
    max_table_cells : float, default=inf
        Cells of the largest table; a family of a larger one scores -inf.
    most_cells : float, default=inf
        Cells of the largest table of a node with parents that a search may take: a family of a larger one has a score,
        which `bound` adds up, but is none of those that `score` and `grown` offer.
    most : int
        Families remembered, some 200 bytes each; those scored first are forgotten first.
    """

    are_evidences = True

    def __init__(
        self,
        completed: CompletedRows,
        prior: FamilyPrior,
        *,
        per_parameter: float = 0.0,
        max_table_cells: float = inf,
        most_cells: float = inf,
        most: int = int(TUNING.cache_bytes / 200),
    ):
        self.completed, self.prior, self.per_parameter = completed, prior, per_parameter
        self._max_table_cells, self.most_cells, self._most = max_table_cells, most_cells, most
        self.nodes = tuple(completed.cardinalities)
        self._sizes = [int(size) for size in completed.cardinalities.values()]
        self._cardinality, self._widths = np.array(self._sizes, dtype=np.int64), np.array([*self._sizes, 1.0])
        narrow = np.min_scalar_type(-max(self._sizes, default=1))
        self._codes = np.ascontiguousarray(completed.codes, dtype=narrow)
        self._remembered: OrderedDict[tuple[int, int], float] = OrderedDict()
        self.n_scored = 0

    @property
    def place(self) -> Mapping[Hashable, int]:
        """The places of nodes in the completed rows."""
        return self.completed.place

    @property
    def constant(self) -> float:
        """H(q), which all graphs have in common."""
        return self.completed.entropy

    @cached_property
    def _equal(self) -> list[EqualConcentration | AveragedConcentration | None]:
        """The prior of each node where it is equal in all cells."""
        return [self.prior.equal_concentration(node) for node in self.nodes]

    @cached_property
    def _bit_of(self) -> dict[Hashable, int]:
        """The bit of each node in masks."""
        return {node: 1 << k for node, k in self.place.items()}

    def family(self, node: Hashable, parents: Iterable[Hashable]) -> float:
        """The score of one family, nats."""
        child, mask = self.place[node], sum(map(self._bit_of.__getitem__, parents))
        score = self._remembered.get((child, mask))
        return self._asked(child, mask, [-1])[0] if score is None else score

    def bound(self, dag: DAG) -> float:
        """H(q) plus the scores of a graph's families: a lower bound on its evidence, exact where nothing is hidden."""
        place, bit_of, remembered = self.place, self._bit_of.__getitem__, self._remembered.get
        total = 0.0
        for node in dag.nodes:
            parents = dag.parents(node)
            score = remembered((place[node], sum(map(bit_of, parents))))
            total += self.family(node, parents) if score is None else score
        return self.constant + total

    def score(self, child: int, parents: int) -> float:
        """The score of one family by the places of its nodes in the completed rows, the parents a mask of bits."""
        if self.most_cells == inf and (known := self._remembered.get((child, parents))) is not None:
            return known
        return float(self.grown(child, parents, [-1])[0])

    def grown(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """The scores of a family with one parent more, for each of some nodes.

        Parameters
        ----------
        child : int
            Place of the node.
        parents : int
            Mask of the places of its parents.
        further : sequence of int
            Places of nodes that are no parents.

        Returns
        -------
        ndarray of shape (n_further,)
        """
        scores = np.array(self._asked(child, parents, further), dtype=float)
        return scores if self.most_cells == inf else np.where(self._is_small(child, parents, further), scores, -inf)

    def _is_small(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """Boolean array of the families whose tables have no more cells than a search may take; roots always are."""
        n_cells = prod(self._sizes[k] for k in range(parents.bit_length()) if parents >> k & 1) * self._sizes[child]
        return np.array([n_cells * self._sizes[more] <= self.most_cells if more >= 0 else
                         not parents or n_cells <= self.most_cells for more in further])  # fmt: skip

    def _asked(self, child: int, parents: int, further: Sequence[int]) -> list[float]:
        remembered = self._remembered
        keys = [(child, parents | 1 << more if more >= 0 else parents) for more in further]
        new = [k for k, key in enumerate(keys) if key not in remembered]
        if new:
            self.n_scored += len(new)
            fresh = self._scored(child, parents, [further[k] for k in new]).tolist()
            remembered.update(zip([keys[k] for k in new], fresh))
        values = [remembered[key] for key in keys]
        while len(remembered) > self._most:
            remembered.popitem(last=False)
        return values

    def _scored(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """Scores of families that are not remembered."""
        members = [place for place in range(parents.bit_length()) if parents >> place & 1]
        n_states, more = self._sizes[child], np.array(further, dtype=np.int64)
        rows = self._widths[more] * prod(float(self._sizes[place]) for place in members)
        scores = np.full(len(further), -inf)
        fits = np.flatnonzero(rows * n_states <= self._max_table_cells)
        equal = self._equal[child]
        if equal is None:
            for k in fits.tolist():
                above = [*members, further[k]] if further[k] >= 0 else members
                scores[k] = self._scored_by_tables(child, above)
            return scores
        cells: dict[str, Any] = {"cell": 1.0, "row": n_states, "table": rows[fits] * n_states}
        cell_concentration = np.empty((len(fits), len(equal.alternatives)))
        for k, each in enumerate(equal.alternatives):
            cell_concentration[:, k] = each.total / cells[each.over]
        fitting = log_mean_exp(self._summed(child, np.array(members, dtype=np.int64), more[fits], cell_concentration))
        scores[fits] = fitting - self.per_parameter * (n_states - 1) * rows[fits]
        return scores

    def _summed(self, child: int, parents: np.ndarray, further: np.ndarray, of_cell: np.ndarray) -> np.ndarray:
        """Scores of families under concentrations of a cell, both (n_further, n_alternatives), nats."""
        completed, sizes = self.completed.without_rows_set(self.nodes[child]), self._cardinality
        scores, of_row = np.empty(of_cell.shape), of_cell * self._sizes[child]
        left = np.ones(len(further), dtype=bool)
        if completed is self.completed and self._bits is not None:
            is_scored = np.empty(len(further), dtype=np.uint8)
            most_words = int(TUNING.words_per_row * len(completed.weight))
            summed = of_cell.ravel(), of_row.ravel(), scores.reshape(-1)
            score_families_by_bits(*self._bits, sizes, child, parents, further, most_words, *summed, is_scored)
            left = is_scored == 0
        if left.any():
            narrow = self._codes.dtype
            codes = self._codes if completed is self.completed else completed.codes.astype(narrow, order="C")
            by_rows = np.empty((left.sum(), of_cell.shape[1]))
            summed = of_cell[left].ravel(), of_row[left].ravel(), by_rows.reshape(-1)
            score_families(codes, sizes, completed.weight, child, parents, further[left], *summed)
            scores[left] = by_rows
        return scores

    @cached_property
    def _bits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """The rows in which each state of each column occurs, bits; the digit of weights of each word; first states.

        None where weights are no whole numbers, or bits would take much memory.
        """
        weight, n_states = self.completed.weight, sum(self._sizes)
        if (
            not len(weight)
            or weight.max() >= 2**31
            or np.any(weight % 1.0)
            or n_states * len(weight) > 8 * TUNING.cache_bytes
        ):
            return None
        whole = weight.astype(np.int64)
        digits = [np.flatnonzero(whole >> k & 1) for k in range(int(whole.max()).bit_length())]
        n_words = [-(-len(rows) // 64) for rows in digits]
        bits = np.zeros((n_states, 8 * sum(n_words)), dtype=np.uint8)
        end = 8 * np.cumsum(n_words)
        first = np.cumsum([0, *self._sizes[:-1]])
        for codes, at, size in zip(self._codes, first, self._sizes):
            for rows, last, n in zip(digits, end, n_words):
                packed = np.packbits(codes[rows] == np.arange(size)[:, None], axis=1, bitorder="little")
                bits[at : at + size, last - 8 * n : last - 8 * n + packed.shape[1]] = packed
        return bits.view(np.uint64), np.repeat(np.arange(len(digits), dtype=np.uint8), n_words), first

    def _scored_by_tables(self, child: int, parents: Sequence[int]) -> float:
        """The score of a family under concentrations given cell by cell; -inf if it has none."""
        family = tuple(self.nodes[place] for place in (*sorted(parents), child))
        try:
            prior = self.prior.family_prior(family, self.completed.cardinalities)
        except ValueError:
            return -inf
        counts = self.completed.without_rows_set(self.nodes[child]).counts(family)
        alternatives = prior if prior.ndim > counts.ndim else prior[None]
        row_terms = log_rising(alternatives.sum(axis=-1), counts.sum(axis=-1))
        terms = log_rising(alternatives, counts).sum(axis=-1) - row_terms
        return float(log_mean_exp(terms.reshape(1, len(alternatives), -1).sum(axis=-1))[0])

    def __reduce__(self):
        limits = self._max_table_cells, self.most_cells, self._most
        return _made, (self.completed, self.prior, self.per_parameter, *limits)


def _made(completed, prior, per_parameter, max_table_cells, most_cells, most) -> FamilyScores:
    limits = {"max_table_cells": max_table_cells, "most_cells": most_cells, "most": most}
    return FamilyScores(completed, prior, per_parameter=per_parameter, **limits)


def log_mean_exp(scores: np.ndarray) -> np.ndarray:
    """Scores (n, n_alternatives) averaged over alternatives, (n,), nats; as they are where there is one."""
    if scores.shape[1] == 1:
        return scores[:, 0]
    return log_sum_exp(scores, axis=1) - np.log(scores.shape[1])


class FittedFamilies:
    """Families valued by small graphs: what the parents of a node add to the score of the graph without edges.

    Each family is fitted once, with its edges alone and without columns that it does not need.

    Parameters
    ----------
    nodes : tuple
    needed : collection of nodes
        Those that every small graph has.
    value_of : callable of DAG to float
        The score of a graph over some of the nodes, nats: a sum over its families.
    are_evidences : bool
        Whether scores are the evidence itself.
    """

    def __init__(self, nodes: tuple, needed: Collection, value_of: Callable[[DAG], float], are_evidences: bool):
        self.nodes, self.are_evidences, self._needed, self._value_of = nodes, are_evidences, needed, value_of
        self.place = {node: k for k, node in enumerate(nodes)}
        self._needed_value = value_of(self._graph(())) if needed else 0.0
        further = [node for node in nodes if node not in needed]
        self._alone = {node: value_of(self._graph([node])) - self._needed_value for node in further}
        self._remembered: dict[tuple[int, int], float] = {}

    @property
    def constant(self) -> float:
        """The score of the graph without edges, which families are counted from."""
        return self._needed_value + sum(self._alone.values())

    def score(self, child: int, parents: int) -> float:
        """The score of a node with parents, a mask of places, less that of the node alone; -inf if impossible."""
        key = child, parents
        if key not in self._remembered:
            self._remembered[key] = self._fitted(child, parents) if parents else 0.0
        return self._remembered[key]

    def grown(self, child: int, parents: int, further: Sequence[int]) -> np.ndarray:
        """The scores of a family with one parent more, for each of some nodes."""
        return np.array([self.score(child, parents | 1 << more) for more in further], dtype=float)

    def _fitted(self, child: int, parents: int) -> float:
        above: list[Hashable] = [self.nodes[k] for k in range(parents.bit_length()) if parents >> k & 1]
        node = self.nodes[child]
        try:
            value = self._value_of(self._graph([*above, node], {node: above}))
        except (StructureError, TooLargeError):  # the node has no such parents in any graph
            return -inf
        return value - self._needed_value - sum(self._alone.get(member, 0.0) for member in (*above, node))

    def _graph(self, members: Collection, edges: dict | None = None) -> DAG:
        """A graph over some nodes and those that are needed."""
        return DAG([node for node in self.nodes if node in members or node in self._needed], edges or {})
