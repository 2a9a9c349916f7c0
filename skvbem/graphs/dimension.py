r"""The dimension of a network with hidden nodes: how many directions its distribution of what is observed can move in.

d is the generic rank of the Jacobian of :math:`\theta \mapsto p(\text{observed nodes} \mid \theta)` [Geiger, Heckerman
& Meek 1996]: at most the count d' of free parameters, less where parameters trade off. It is found without rounding, at
a point drawn modulo a prime. The table of all joint states of the observed nodes is never made. Instead of its entries,
random combinations of them are taken, each with weights that are a product of one weight per observed node: the rank is
the same, and all derivatives of a combination come from one pass up and one down a junction tree.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from math import prod

import numpy as np

from skvbem._kernels import _modular
from skvbem.errors import TooLargeError
from skvbem.graphs.dag import DAG
from skvbem.graphs.elimination import junction_tree

_PRIME = np.uint64(2**31 - 1)
# Numbers in the tables of one pass.
_BATCH = 2**20


def identifiable_dimension(
    dag: DAG,
    cardinalities: Mapping[Hashable, int],
    observed: Iterable[Hashable],
    *,
    rng: np.random.Generator | None = None,
    max_table_cells: int = 2**20,
) -> int:
    """The identifiable dimension d: the generic rank of the map from parameters to probabilities of observed nodes.

    Parameters
    ----------
    dag : DAG
    cardinalities : mapping
        The number of states of each node.
    observed : iterable of hashable
        The nodes observed. Where rows of data miss cells, d is that of complete rows.
    rng : numpy.random.Generator, optional
        Where points are drawn from; by default the same ones every time.
    max_table_cells : int, default=2**20
        Most joint states of one clique of nodes, observed or hidden.

    Returns
    -------
    int
        Never too high. Too low with a probability of less than (D / 2**31)**2, D the degree of a minor of the matrix
        whose rank is found: no more than 2 d times the number of nodes.

    Raises
    ------
    TooLargeError
        If a clique has more joint states than `max_table_cells`.

    Examples
    --------
    Three classes of four binary features have 14 parameters, the features 15 free probabilities, and yet d = 13:

    >>> from skvbem.graphs.dag import DAG
    >>> from skvbem.graphs.dimension import identifiable_dimension
    >>> features = ["a", "b", "c", "d"]
    >>> dag = DAG.naive_bayes("class", features)
    >>> dag.n_free_parameters({"class": 3, **dict.fromkeys(features, 2)})
    14
    >>> identifiable_dimension(dag, {"class": 3, **dict.fromkeys(features, 2)}, features)
    13
    """
    observed = frozenset([observed] if isinstance(observed, str) else observed)
    sizes = tuple(int(cardinalities[node]) for node in dag.nodes)
    if rng is None:
        return _at_the_same_points(dag, dag.nodes, sizes, observed, max_table_cells)
    return _dimension(dag, dict(zip(dag.nodes, sizes)), observed, max_table_cells, rng)


@lru_cache(maxsize=1024)
def _at_the_same_points(dag, nodes, sizes, observed, max_table_cells) -> int:
    # equal graphs may list their nodes in another order, to which the sizes belong
    return _dimension(dag, dict(zip(nodes, sizes)), observed, max_table_cells, np.random.default_rng(0))


def _dimension(dag, cardinalities, observed, max_table_cells, rng) -> int:
    kept = dag.ancestors(observed) | observed
    total = 0
    for hidden, children in _parts(dag, [node for node in dag.nodes if node in kept], observed):
        part = _Part(dag, hidden, children, cardinalities, max_table_cells)
        rank = part.bound if not hidden else part.rank(rng)
        # a minor that is not the zero polynomial is seldom zero at a random point, and very seldom at two
        total += rank if rank == part.bound else max(rank, part.rank(rng))
    return total


def _parts(dag: DAG, kept: Sequence[Hashable], observed: Set) -> list[tuple[set, list]]:
    """Parts of the network: hidden nodes that meet in families, with these; each family without hidden nodes by itself.

    The distribution is a product of one conditional distribution for each part, whose dimensions add up.
    """
    parts: list[tuple[set, list]] = []
    for node in kept:
        hidden, nodes = {member for member in dag.family(node) if member not in observed}, [node]
        parts_kept = []
        for others, with_them in parts:
            if hidden.isdisjoint(others):
                parts_kept.append((others, with_them))
            else:
                hidden, nodes = hidden | others, with_them + nodes
        parts = [*parts_kept, (hidden, nodes)]
    return parts


class _Part:
    """Families that hidden nodes connect: the distribution of their observed nodes given those around."""

    def __init__(self, dag: DAG, hidden: Set, children: Sequence, cardinalities: Mapping, max_table_cells: int):
        nodes = sorted({member for child in children for member in dag.family(child)}, key=dag.nodes.index)
        variable = {node: v for v, node in enumerate(nodes)}
        self.sizes = tuple(int(cardinalities[node]) for node in nodes)
        self.families = tuple(tuple(variable[member] for member in dag.family(child)) for child in children)
        self.observed = tuple(variable[node] for node in nodes if node not in hidden)
        free = sum((self.sizes[f[-1]] - 1) * prod(self.sizes[v] for v in f[:-1]) for f in self.families)
        inside = prod(self.sizes[variable[child]] for child in children if child not in hidden)
        around = prod(self.sizes[variable[node]] for node in nodes if node not in hidden and node not in children)
        self.bound = min(free, (inside - 1) * around)
        if not hidden:
            return
        self.tree = junction_tree(self.sizes, self.families)
        largest = max(prod(self.sizes[v] for v in clique) for clique in self.tree.cliques)
        if largest > max_table_cells:
            raise TooLargeError(
                f"The identifiable dimension of this network needs a table of {largest:.4g} joint states; "
                f"'max_table_cells' allows {max_table_cells:.4g}. Raise it, or count free parameters."
            )

    def rank(self, rng: np.random.Generator) -> int:
        """The rank of the derivatives at a point drawn modulo the prime."""
        point = [self._random_table(rng, family) for family in self.families]
        step = max(1, _BATCH // sum(prod(self.sizes[v] for v in clique) for clique in self.tree.cliques))
        pieces = [self._derivatives(rng, point, min(step, self.bound - at)) for at in range(0, self.bound, step)]
        return _modular.rank(np.ascontiguousarray(np.concatenate(pieces, axis=1))) if pieces else 0

    def _random_table(self, rng, family) -> np.ndarray:
        """Random residues that sum to one over the last axis."""
        table = rng.integers(1, _PRIME, size=[self.sizes[v] for v in family], dtype=np.uint64)
        others = table[..., :-1].sum(axis=-1) % _PRIME
        table[..., -1] = (1 + _PRIME - others) % _PRIME
        return table

    def _derivatives(self, rng, point, n: int) -> np.ndarray:
        """Derivatives by all free parameters of n random combinations, (n_free_parameters, n)."""
        tree, last = self.tree, len(self.tree.cliques) - 1
        tables = [np.ones((*(self.sizes[v] for v in clique), n), dtype=np.uint64) for clique in tree.cliques]
        for v in self.observed:
            home = next(position for position, clique in enumerate(tree.cliques) if v in clique)
            weight = rng.integers(0, _PRIME, size=(self.sizes[v], n), dtype=np.uint64)
            tables[home] = tables[home] * _spread(weight, (v,), tree.cliques[home]) % _PRIME
        # the way up; each factor is kept with the table it was multiplied to
        steps: list[list] = [[] for _ in tree.cliques]

        def multiply(position, source, factor):
            steps[position].append((source, factor, tables[position]))
            tables[position] = tables[position] * factor % _PRIME

        for f, (family, table) in enumerate(zip(self.families, point)):
            home = tree.homes[f]
            multiply(home, ("family", f), _spread(table[..., None], family, tree.cliques[home]))
        for position in range(last):
            message = _summed(tables[position], tree.cliques[position], tree.separator(position))
            above = tree.parents[position]
            multiply(above, ("clique", position), _spread(message, tree.separator(position), tree.cliques[above]))
        # the way down: derivatives by tables, from the last factor back to the first
        slope: list = [None] * len(tables)
        slope[last] = np.ones_like(tables[last])
        by_table: list = [None] * len(self.families)
        for position in range(last, -1, -1):
            clique = tree.cliques[position]
            for (kind, which), factor, before in reversed(steps[position]):
                scope = tuple(sorted(self.families[which])) if kind == "family" else tree.separator(which)
                by_factor = _summed(slope[position] * before % _PRIME, clique, scope)
                if kind == "family":
                    axes = [scope.index(v) for v in self.families[which]]
                    by_table[which] = by_factor.transpose(*axes, len(axes))
                else:
                    slope[which] = np.broadcast_to(_spread(by_factor, scope, tree.cliques[which]), tables[which].shape)
                slope[position] = slope[position] * factor % _PRIME
        # the last probability of a row is one less the others
        free = [(d[..., :-1, :] + _PRIME - d[..., -1:, :]) % _PRIME for d in by_table]
        return np.concatenate([d.reshape(-1, n) for d in free])


def _spread(table: np.ndarray, scope: Sequence[int], clique: Sequence[int]) -> np.ndarray:
    """A table over some variables, and lanes, as one with an axis for each variable of a clique."""
    order = np.argsort(scope)
    table = table.transpose(*order, len(scope))
    sizes = dict(zip(sorted(scope), table.shape))
    return table.reshape(*(sizes.get(v, 1) for v in clique), table.shape[-1])


def _summed(table: np.ndarray, clique: Sequence[int], kept: Sequence[int]) -> np.ndarray:
    """A table of residues over a clique summed over all but some variables."""
    return table.sum(axis=tuple(a for a, v in enumerate(clique) if v not in kept)) % _PRIME
