"""Bipartite structures: latents above observed nodes, and no other edges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from skvbem._lazy import cached_property
from skvbem.graphs.dag import DAG
from skvbem.spaces.rules import EdgeRules, ParentRule, check_count
from skvbem.spaces.structures import StructureSpace, check_latents, check_nodes, name_order

__all__ = ["BipartiteSpace"]


@dataclass(frozen=True, eq=False, repr=False)
class BipartiteSpace(StructureSpace):
    r"""All graphs with edges from latents to observed nodes only, up to names of latents with as many states.

    Parameters
    ----------
    latents : mapping, list of str, or int
        Latent -> its number of states. A list means 2 states each, an int one latent ``"h0"``.
    observed : iterable of hashable
        The observed nodes.
    max_parents : int, optional
        The largest number of latents above an observed node.
    min_parents : int, default=0
        The least number of latents above an observed node.
    childless : bool, default=True
        Whether a latent may be without children. Such a latent leaves the evidence as it is, though not every
        approximation to it.

    Raises
    ------
    StructureError
        If a node is both latent and observed.
    ValueError
        If no graph is left.

    See Also
    --------
    DAGSpace : edges anywhere.

    Notes
    -----
    With m observed nodes and two exchangeable latents there are :math:`(4^m + 2^m)/2` settings, 136 for m = 4 [BG];
    with three, :math:`(8^m + 3 \cdot 4^m + 2 \cdot 2^m)/6`.

    Examples
    --------
    >>> from skvbem.spaces import BipartiteSpace
    >>> space = BipartiteSpace({"h0": 2, "h1": 2}, ["y0", "y1", "y2", "y3"])
    >>> len(space)
    136
    >>> sum(space.orbit_size(setting) for setting in space)
    256
    >>> swapped = {"structure": "[h0][h1][y0][y1][y2][y3|h1]", "latents": {"h0": 2, "h1": 2}}
    >>> swapped in space
    True
    >>> [setting["structure"].edges for setting in space][:3]
    [(), (('h0', 'y3'),), (('h0', 'y3'), ('h1', 'y3'))]
    """

    latents: Any
    observed: Any
    max_parents: int | None = None
    min_parents: int = 0
    childless: bool = True

    def __post_init__(self):
        object.__setattr__(self, "latents", check_latents(self.latents, "BipartiteSpace"))
        object.__setattr__(self, "observed", check_nodes(self.observed, self.latents, "BipartiteSpace"))
        for name in ("min_parents", "max_parents"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)
        self.check_not_empty()

    @cached_property
    def rules(self) -> EdgeRules:
        """The rule for the parents of every node: latents first, then observed nodes."""
        latents = frozenset(self.latents)
        most = len(latents) if self.max_parents is None else min(self.max_parents, len(latents))
        none, rule = ParentRule(frozenset()), ParentRule(latents, frozenset(), self.min_parents, most)
        return EdgeRules({**dict.fromkeys(self.latents, none), **dict.fromkeys(self.observed, rule)})

    def _graphs(self) -> Iterator[DAG]:
        nodes = (*self.latents, *self.observed)
        return (DAG(nodes, parents) for parents in self._parents())

    def _parents(self) -> Iterator[dict]:
        """The parents of observed nodes in the graph that stands for each class, as `DAG.canonical` has it.

        Read the children of a latent as a binary number whose first digit is the first node by name. Exchangeable
        latents, by name, then have descending numbers. Digit by digit: of latents that are equal so far, those above
        the next node come first.
        """
        order = sorted(self.observed, key=name_order)

        def extended(equal_so_far, parents, bare):
            left = order[len(parents) :]
            if bare and len(bare) > sum(self.rules.parents[node].most for node in left):
                return
            if not left:
                yield parents
                return
            rule = self.rules.parents[left[0]]
            for counts in product(*(range(len(latents) + 1) for latents in equal_so_far)):
                if not rule.least <= sum(counts) <= rule.most:
                    continue
                above = [latent for latents, n in zip(equal_so_far, counts) for latent in latents[:n]]
                parts = [
                    part for latents, n in zip(equal_so_far, counts) for part in (latents[:n], latents[n:]) if part
                ]
                yield from extended(parts, {**parents, left[0]: above}, bare.difference(above))

        groups = [sorted(group, key=name_order) for group in self.exchangeable]
        return extended(groups, {}, frozenset() if self.childless else frozenset(self.latents))
