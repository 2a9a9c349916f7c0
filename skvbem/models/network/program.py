"""From a network and a table of codes to a flat program for the contraction kernel.

Each row leaves some nodes hidden: latents, and observed nodes with a missing cell. Hidden nodes without observed
descendants are pruned (they sum to one; summed under expected parameters, which do not, they would cost bound). What
remains falls into connected components that are independent given the row's values. Rows that agree on a component and
on the values around it share a *context*, with summed weights: contexts, not rows, are what a step costs. Families
without hidden nodes are counted once and for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from skvbem._kernels._contraction import Contraction
from skvbem._kernels._workspace import Workspace
from skvbem.graphs.elimination import JunctionTree
from skvbem.models.network.layout import Layout

# Bytes of tables that one batch of lanes may hold, so that they stay in cache.
LANES_BYTES = 2**20


@dataclass(frozen=True)
class RowFactor:
    """A factor that differs from row to row: what emissions of the same parents say of the hidden ones among these.

    Parameters
    ----------
    nodes : tuple of int
        The nodes with an emission. A context has those that are observed in it.
    hidden : tuple of int
        Their hidden parents, in the parents' order: axes of the factor.
    """

    nodes: tuple[int, ...]
    hidden: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A junction tree over one set of hidden nodes, and the rows whose hidden part it sums.

    Parameters
    ----------
    hidden : tuple of int
        The nodes summed over; variables 0, 1, ... of the tree.
    tree : JunctionTree
    cardinalities : tuple of int
        Number of states of the hidden nodes.
    n_contexts : int
        Number of distinct contexts.
    rows, context_of_row, row_of_context : ndarray or None
        The rows (None: all), the context (0 ... n_contexts - 1) of each, and a row of each context; if they were kept.
    families : tuple of int
        The nodes whose tables touch the hidden nodes. A context has those of them that are hidden or observed there.
    factors : tuple of RowFactor
        Factors of emissions that do. With any, each row is a context.
    slot_families : tuple of int
        The families in the order of slots.
    """

    hidden: tuple[int, ...]
    tree: JunctionTree
    cardinalities: tuple[int, ...]
    n_contexts: int
    families: tuple[int, ...]
    rows: np.ndarray | None
    context_of_row: np.ndarray | None
    row_of_context: np.ndarray | None
    factors: tuple[RowFactor, ...] = ()
    slot_families: tuple[int, ...] = ()

    def clique_shape(self, position: int) -> tuple[int, ...]:
        """Number of states of the nodes of one clique."""
        return tuple(self.cardinalities[v] for v in self.tree.cliques[position])

    @property
    def n_cells(self) -> int:
        """Cells of all cliques together."""
        return sum(prod(self.clique_shape(q)) for q in range(len(self.tree.cliques)))


@dataclass(frozen=True)
class Program:
    """All plans of a table of rows, compiled.

    Parameters
    ----------
    layout : Layout
    contraction : Contraction
    plans : tuple of Plan
    total_weight : float
        Sum of the weights of the rows.
    work : int
        Multiplications of one pass over all contexts, one lane.
    has_whole_weights : bool
        Whether every row counts a whole number of times, or none has anything hidden to be completed.
    latents : tuple of int
        The nodes without a column of data.
    has_set : bool, default=False
        Whether an experimenter set nodes in some rows, so that these have distributions of their own.
    """

    layout: Layout
    contraction: Contraction
    plans: tuple[Plan, ...]
    total_weight: float
    work: int
    has_whole_weights: bool
    latents: tuple[int, ...]
    has_set: bool = False

    #: Whether q(x) keeps the joint of all that is hidden in a row.
    is_exact = True

    @property
    def treewidth(self) -> int:
        """Treewidth of the widest hidden part (0 where nothing is hidden)."""
        return max((plan.tree.treewidth for plan in self.plans), default=0)

    def beliefs(self, natural: np.ndarray, chunk: int = 2**20) -> Iterable[tuple[Plan, slice, np.ndarray, np.ndarray]]:
        """Each plan's contexts in chunks: (plan, contexts, ln Z of each, clique posteriors of each).

        Parameters
        ----------
        natural : ndarray of shape (n_cells,)
            ln parameters, normalized or not.
        chunk : int
            Most cells of clique posteriors at a time.
        """
        workspace = Workspace(self.contraction, 1)
        workspace.given(np.ascontiguousarray(natural).reshape(-1, 1))
        first = 0
        for plan in self.plans:
            width = plan.n_cells
            step = max(1, chunk // width)
            for at in range(0, plan.n_contexts, step):
                upto = min(at + step, plan.n_contexts)
                log_z, beliefs = np.empty(upto - at), np.empty((upto - at, width))
                workspace.contexts(first + at, first + upto, log_z, beliefs)
                yield plan, slice(at, upto), log_z, beliefs
            first += plan.n_contexts


def of_clique(plan: Plan, beliefs: np.ndarray, targets: tuple[int, ...]) -> np.ndarray:
    """Posterior of some hidden nodes that share a clique, (n_contexts, states of the first, ...)."""
    variables = [plan.hidden.index(k) for k in targets]
    at = 0
    for position, clique in enumerate(plan.tree.cliques):
        shape = plan.clique_shape(position)
        size = int(np.prod(shape))
        if set(variables) <= set(clique):
            table = beliefs[:, at : at + size].reshape(-1, *shape)
            axes = [1 + clique.index(v) for v in variables]
            others = tuple(a for a in range(1, table.ndim) if a not in axes)
            kept = [a for a in range(1, table.ndim) if a in axes]
            posterior = table.sum(axis=others)
            return posterior.transpose(0, *(1 + kept.index(a) for a in axes))
        at += size
    raise LookupError(f"no clique holds {targets}")
