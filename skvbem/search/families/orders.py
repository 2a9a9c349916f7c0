r"""Climbs among orders of nodes, in each of which the best graph is found node by node (Teyssier & Koller 2005).

Given an order each node takes the best of its sets of parents that lie ahead of it: no cycle can arise, and moving one
node changes many edges at once, so that climbs pass over optima in which climbs by single edges end. A node goes to the
best of all places in the order, which takes two families for each place that it passes (Scanagatta et al. 2015).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from math import inf

import numpy as np

from skvbem._kernels._node_orders import find_place
from skvbem._lazy import cached_property
from skvbem.search.families.family_scores import rounding
from skvbem.search.families.graph_walk import FamilyGraphs
from skvbem.search.tuning import TUNING


class NodeOrders:
    """Orders of nodes, with the best graph of each among promising sets of parents.

    Parameters
    ----------
    graphs : FamilyGraphs
    """

    def __init__(self, graphs: FamilyGraphs):
        self._graphs = graphs
        # of every node (-score, parents), the best first
        self._sets = [
            sorted((-score, parents) for parents, score in _promising(graphs, child).items())
            for child in range(len(graphs.nodes))
        ]
        self._known = [{parents for _, parents in sets} for sets in self._sets]

    @cached_property
    def _compiled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Masks of all sets in words of 64 bits, their scores, and where those of each node begin."""
        n_bytes = 8 * (len(self._sets) // 64 + 1)
        octets = b"".join(parents.to_bytes(n_bytes, "little") for sets in self._sets for _, parents in sets)
        masks = np.frombuffer(octets, dtype="<u8").reshape(-1, n_bytes // 8).astype(np.uint64)
        scores = np.array([-minus for sets in self._sets for minus, _ in sets])
        return masks, scores, np.cumsum([0, *map(len, self._sets)], dtype=np.int64)

    def add(self, parents: Sequence[int]) -> None:
        """Take in the sets of parents of a graph, masks of bits."""
        for child, mask in enumerate(parents):
            if mask not in self._known[child]:
                self._known[child].add(mask)
                insort(self._sets[child], (-self._graphs.row(child, mask).score, mask))
                self.__dict__.pop("_compiled", None)

    def drawn(self, rng: np.random.Generator) -> list[int]:
        """An order drawn at random among those in which required parents are ahead of their children."""
        return self._sorted(self._graphs.required, rng.permutation(len(self._sets)).tolist())

    @staticmethod
    def _sorted(parents: Sequence[int], wanted: Iterable[int]) -> list[int]:
        """The nodes in the order wanted, but for those that have to wait for their parents."""
        order: list[int] = []
        ahead, waiting = 0, list(wanted)
        while waiting:
            free = next(node for node in waiting if not parents[node] & ~ahead)
            waiting.remove(free)
            order.append(free)
            ahead |= 1 << free
        return order

    def near(self, parents: Sequence[int], n_moves: int, rng: np.random.Generator) -> list[int]:
        """An order of a graph, with some nodes moved to places drawn at random; required parents stay ahead."""
        wanted = self._sorted(parents, range(len(parents)))
        for _ in range(n_moves):
            node, place = rng.integers(len(wanted), size=2).tolist()
            wanted.insert(place, wanted.pop(node))
        return self._sorted(self._graphs.required, wanted)

    def climbed(self, order: Sequence[int], until_over: Callable[[Iterable], Iterable] = iter) -> list[int]:
        """The order from which no move of one node leads higher.

        Parameters
        ----------
        order : sequence of int
        until_over : callable
            Of the nodes to move, to those that there still is time for.
        """
        order, n_idle = list(order), 0
        for node in until_over(cycle(range(len(order)))):
            at = order.index(node)
            place = find_place(np.array(order, dtype=np.int64), at, *self._compiled, rounding(0.0))
            order.insert(place, order.pop(at))
            n_idle = n_idle + 1 if place == at else 0
            if n_idle == len(order):
                break
        return order

    def parents(self, order: Sequence[int]) -> tuple[int, ...]:
        """The best graph of an order: the parents of every node, masks of bits."""
        masks, ahead = [0] * len(order), 0
        for node in order:
            masks[node] = next(mask for _, mask in self._sets[node] if not mask & ~ahead)
            ahead |= 1 << node
        return tuple(masks)


def _promising(graphs: FamilyGraphs, child: int) -> dict[int, float]:
    """Sets of parents of a node with their scores: none to which a subset one smaller, of those met, is equal."""
    least = graphs.required[child]
    first = graphs.row(child, least)
    known = level = {least: first.score}
    candidates = [k for k in np.argsort(-first.gains, kind="stable").tolist() if first.gains[k] > -inf]
    while level:
        grown: dict[int, float] = {}
        for parents in sorted(level, key=level.__getitem__, reverse=True)[: TUNING.n_grown]:
            further = [k for k in candidates if not parents >> k & 1 and parents | 1 << k not in grown]
            if parents.bit_count() < graphs.most[child] and further:
                grown.update(
                    zip(
                        (parents | 1 << k for k in further), graphs.grown(child, parents, further).tolist(), strict=True
                    )
                )
        level = {
            parents: score for parents, score in grown.items() if score > _best_subset(parents & ~least, parents, known)
        }
        known = known | level
        candidates = candidates[: TUNING.n_grown]
    return known


def _best_subset(free: int, parents: int, known: Mapping[int, float]) -> float:
    """The highest score met of a set of parents without one of those that are free to go."""
    return max((known.get(parents & ~(1 << k), -inf) for k in range(free.bit_length()) if free >> k & 1), default=-inf)
