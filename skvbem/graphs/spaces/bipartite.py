"""Latents above observed nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from skvbem.graphs.dag import DAG
from skvbem.graphs.rules import EdgeRules, ParentRule, check_count
from skvbem.graphs.spaces.structures import StructureSpace, check_latents, check_nodes, name_order

__all__ = ["BipartiteSpace"]


@dataclass(frozen=True, eq=False)
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
    With m observed nodes and two exchangeable latents there are :math:`(4^m + 2^m)/2` settings: 136 for m = 4 [BG]; with
    three, :math:`(8^m + 3 \cdot 4^m + 2 \cdot 2^m)/6`.

    Examples
    --------
    >>> from skvbem.graphs.spaces import BipartiteSpace
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

    latents: Mapping[Hashable, int]
    observed: Iterable[Hashable]
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
        """See `StructureSpace`."""
        latents = frozenset(self.latents)
        most = len(latents) if self.max_parents is None else min(self.max_parents, len(latents))
        none, rule = ParentRule(frozenset()), ParentRule(latents, frozenset(), self.min_parents, most)
        return EdgeRules({**dict.fromkeys(self.latents, none), **dict.fromkeys(self.observed, rule)})

    def _graphs(self) -> Iterator[DAG]:
        # The graph that stands for a class is the one `DAG.canonical` finds: exchangeable latents, by name, have their
        # sets of children in descending order, read as binary numbers whose first digit is the first node by name.
        observed, latents = sorted(self.observed, key=name_order), sorted(self.latents, key=self._latent_order)
        bits = [1 << place for place in reversed(range(len(observed)))]
        for masks in self._child_sets(latents, bits):
            children = dict(zip(latents, masks))
            parents = {
                node: [latent for latent in self.latents if children[latent] & bit] for node, bit in zip(observed, bits)
            }
            yield DAG((*self.latents, *self.observed), parents)

    def _child_sets(self, latents, bits, chosen=()) -> Iterator[tuple[int, ...]]:
        """The sets of children of the latents as masks, descending among exchangeable latents."""
        place = len(chosen)
        if place == len(latents):
            yield chosen
            return
        least, most = self.min_parents, self.max_parents
        must = full = 0
        for bit in bits:
            n_parents = sum(1 for mask in chosen if mask & bit)
            must |= bit * (n_parents + len(latents) - place <= least)
            full |= bit * (most is not None and n_parents >= most)
        if must & full:
            return
        follows = place and self.latents[latents[place]] == self.latents[latents[place - 1]]
        bound = chosen[-1] if follows else sum(bits)
        for mask in _masks(must, sum(bits) & ~must & ~full, bound):
            if mask or self.childless:
                yield from self._child_sets(latents, bits, (*chosen, mask))

    def _latent_order(self, latent):
        return (self.latents[latent], *name_order(latent))


def _masks(must, free, bound) -> Iterator[int]:
    """All masks up to the bound that hold `must` and some of `free`, ascending."""
    some = 0
    while must | some <= bound:
        yield must | some
        some = (some - free) & free
        if not some:
            return
