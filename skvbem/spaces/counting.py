r"""The number of acyclic graphs that obey rules, up to permutations of exchangeable latents, without enumeration.

By Burnside's lemma the number of classes is the average, over permutations :math:`\sigma` of latents within their
groups, of the number of graphs that :math:`\sigma` leaves as they are. Such a graph gives all nodes of a cycle of
:math:`\sigma` the same parents up to :math:`\sigma`, so cycles take the part of nodes. Acyclic graphs on a set V of
cycles are counted by inclusion and exclusion over cycles S without children (Robinson 1973, Counting labeled acyclic
digraphs):

.. math:: a(V) = \sum_{\emptyset \ne S \subseteq V} (-1)^{|S|+1} a(V \setminus S) \prod_{C \in S} w(C, V \setminus S),

w the number of sets of parents that the rules allow. Cycles of :math:`\sigma` and nodes that the rules treat alike are
counted by their number alone, so that sums run over vectors of numbers instead of sets. Where edges can close no cycle
the graphs multiply: a bipartite space needs the product of w alone. Where numbers have no children with tables, no
cycle runs through both kinds of nodes: d numbers and c tables have :math:`a(d)\, a(c)\, 2^{dc}` graphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from math import comb, factorial, gcd, prod
from typing import NamedTuple

from skvbem.errors import TooLargeError
from skvbem.spaces.rules import EdgeRules

__all__ = ["count_graphs"]

# Terms of all sums together; a million take a few seconds.
_MAX_TERMS = 4_000_000


class _Class(NamedTuple):
    """Cycles of a permutation that are alike: `n` of `length` nodes each, made of `members`, which are alike."""

    members: tuple
    length: int
    n: int
    hidden: bool
    childless: bool = False


def count_graphs(rules: EdgeRules, groups: Sequence[tuple], *, childless: bool) -> int:
    """The number of acyclic graphs that obey the rules, up to permutations of the nodes of each group.

    Parameters
    ----------
    rules : EdgeRules
    groups : sequence of tuples
        Hidden nodes; those of one tuple are exchangeable and alike to the rules.
    childless : bool
        Whether hidden nodes may be without children.

    Raises
    ------
    TooLargeError
        If the sums have too many terms: many nodes which the rules treat each differently.

    Examples
    --------
    >>> from skvbem.spaces.rules import make_rules
    >>> from skvbem.spaces.counting import count_graphs
    >>> [count_graphs(make_rules(range(n)), [], childless=True) for n in range(6)]
    [1, 1, 3, 25, 543, 29281]
    """
    hidden = {node for group in groups for node in group}
    others = [_Class(members, 1, len(members), False) for members in _alike(rules, hidden)]
    total = 0
    for types in product(*(list(_cycle_types(len(group))) for group in groups)):
        cycles = [
            _Class(tuple(group), length, n, True)
            for group, (lengths, _) in zip(groups, types)
            for length, n in lengths.items()
        ]
        total += prod(n_permutations for _, n_permutations in types) * _n_fixed(rules, others, cycles, childless)
    return total // prod(factorial(len(group)) for group in groups)


def _alike(rules, hidden):
    """Classes of nodes that are not hidden, whose members may trade places under the rules."""
    classes: list[list] = []
    for node in rules.nodes:
        if node not in hidden:
            members_alike = next((members for members in classes if rules.alike(members[0], node)), None)
            if members_alike is None:
                classes.append([node])
            else:
                members_alike.append(node)
    return [tuple(members) for members in classes]


def _cycle_types(n: int) -> Iterator[tuple[Counter, int]]:
    """Types of permutations of n nodes: (length -> number of cycles, number of permutations that have so many)."""

    def partitions(rest, largest):
        if rest == 0:
            yield ()
        for part in range(min(rest, largest), 0, -1):
            for others in partitions(rest - part, part):
                yield (part, *others)

    for parts in partitions(n, n):
        lengths = Counter(parts)
        yield lengths, factorial(n) // prod(length**k * factorial(k) for length, k in lengths.items())


def _n_fixed(rules, others, cycles, childless):
    """The number of graphs that a permutation with these cycles leaves as they are."""
    if childless:
        return _n_acyclic(rules, [*others, *cycles])
    total = 0
    for barren in product(*(range(cycle.n + 1) for cycle in cycles)):
        split = [(c._replace(n=c.n - k), c._replace(n=k, childless=True)) for c, k in zip(cycles, barren)]
        sign = prod((-1) ** k * comb(c.n, k) for c, k in zip(cycles, barren))
        total += sign * _n_acyclic(rules, [*others, *(half for halves in split for half in halves if half.n)])
    return total


def _n_acyclic(rules: EdgeRules, classes: Sequence[_Class]) -> int:
    choices_of_class = [_Choices(rules, child, classes) for child in classes]
    everything = tuple(c.n for c in classes)
    result = 1
    for part in _strongly_connected([choices.possible for choices in choices_of_class]):
        if len(part) == 1 and part[0] not in choices_of_class[part[0]].possible:
            result *= choices_of_class[part[0]].n_sets(everything) ** everything[part[0]]
        else:
            result *= _n_acyclic_within(part, choices_of_class, everything)
    return result


def _n_acyclic_within(part, choices_of_class, everything):
    """The sum of the module docstring over cycles that may be parents of each other; all others are there already."""
    sizes = [everything[i] for i in part]
    if (n_terms := prod((n + 1) * (n + 2) // 2 for n in sizes)) > _MAX_TERMS:
        raise TooLargeError(
            f"Counting graphs of {sum(sizes)} nodes in {len(sizes)} classes which the rules treat differently takes "
            f"{n_terms:.3g} terms; {_MAX_TERMS} is the limit. Search the space by its neighbors, without counting."
        )

    @cache
    def ways(rest):
        there = list(everything)
        for i, n in zip(part, rest):
            there[i] = n
        return [choices_of_class[i].n_sets(tuple(there)) for i in part]

    n_graphs = {}
    for n in product(*(range(size + 1) for size in sizes)):
        n_graphs[n] = 1 if not any(n) else 0
        for taken in product(*(range(k + 1) for k in n)):
            if any(taken):
                rest = tuple(a - b for a, b in zip(n, taken))
                term = prod(comb(a, b) * w**b for a, b, w in zip(n, taken, ways(rest)))
                n_graphs[n] += term * n_graphs[rest] * (-1) ** (sum(taken) + 1)
    return n_graphs[n]


class _Choices:
    """The sets of parents that a cycle of one class may have, given how many cycles of each class there are."""

    def __init__(self, rules: EdgeRules, child: _Class, classes: Sequence[_Class]):
        self.rule = rules.parents[child.members[0]]
        self.length = child.length
        self.lengths = [c.length for c in classes]
        self.possible, self.required, self.satisfiable = set(), {}, True
        for i, c in enumerate(classes):
            parent: Hashable = next((node for node in c.members if node != child.members[0]), None)
            if parent is None or parent not in self.rule.possible:
                continue
            if parent in self.rule.required:
                self.required[i] = c.n
                self.satisfiable &= not c.childless
            if not c.childless:
                self.possible.add(i)

    def n_sets(self, there: tuple) -> int:
        """The number of sets of parents."""
        if not self.satisfiable or any(there[i] < n for i, n in self.required.items()):
            return 0
        # A set is fixed by the power of the permutation that fixes the child: it holds whole cycles of that power.
        pieces: Counter = Counter()
        for i in self.possible - self.required.keys():
            shared = gcd(self.length, self.lengths[i])
            pieces[self.lengths[i] // shared] += shared * there[i]
        forced = sum(self.lengths[i] * n for i, n in self.required.items())
        return _n_unions(tuple(sorted(pieces.items())), self.rule.least - forced, self.rule.most - forced)


@lru_cache(maxsize=4096)
def _n_unions(pieces: tuple, least: int, most: int) -> int:
    """The number of unions of pieces, given as (size, number), that have so many members."""
    if not pieces:
        return int(least <= 0 <= most)
    (size, n), rest = pieces[0], pieces[1:]
    return sum(comb(n, k) * _n_unions(rest, least - k * size, most - k * size) for k in range(min(n, most // size) + 1))


def _strongly_connected(parents: Sequence[set]) -> list[list[int]]:
    above = [set(reached) for reached in parents]
    for middle in range(len(above)):
        for reached in above:
            if middle in reached:
                reached |= above[middle]
    parts: dict = {}
    for i, reached in enumerate(above):
        parts.setdefault(min([i, *(j for j in reached if i in above[j])]), []).append(i)
    return list(parts.values())
