r"""E steps whose q(x) is a product over clusters of hidden nodes, :math:`q(x) = \prod_k q_k(x_{C_k})`.

.. math::

    q_k(x_{C_k}) \propto \exp \Big\langle \sum_{a \cap C_k \ne \emptyset} \ln f_a \Big\rangle_{\prod_{l \ne k} q_l}
    \qquad \text{[Beal (2.42)]}.

Families inside one cluster are potentials, as ever. A family that crosses clusters sends each of them a message, its
expected logarithm under the other clusters' marginals: a factor of each context on what the family has in the cluster.
A sweep updates the clusters one after another, so that the bound rises at each; it is

.. math::

    \sum_k \ln Z_k - \sum_a \sum_{k \in a,\, k \text{ not last}} \langle m_{a, k} \rangle_{q_k},

with each message m as it was when its cluster was updated. Marginals of clusters are kept from one E step to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from skvbem._kernels._contraction import Contraction
from skvbem._kernels._messages import add_counts, add_message, add_products, divide, read, write
from skvbem._kernels._workspace import Workspace
from skvbem._lazy import cached_property
from skvbem.data import Rows
from skvbem.models.network.layout import Layout
from skvbem.models.network.program import Plan, Program

# In messages the logarithm of what is impossible: -inf to every state of a cluster would leave nothing of it.
_LOG_SMALLEST = float(np.log(np.finfo(float).tiny))
# The least share of a row that a marginal keeps where it is read.
_MIN_SHARE = 1e-12
# Contexts that are swept at once, at most and at least, and cells of their messages, so that these stay in cache; no
# powers of two, which would put arrays of states so far apart that they push each other out of it.
_AT_ONCE, _FEWEST_AT_ONCE, _CELLS_AT_ONCE = 1016, 248, 2**16
# Sweeps at fixed parameters, at most, and the gain of all rows, relative and in nats, below which no more are made.
_MAX_SWEEPS, _SETTLED_GAIN = 2000, 1e-10

#: The logarithms of factors of a part's contexts, and later what is expected of them, (n_lanes, n_cells, n_rows) each.
Factors = list[np.ndarray]


@dataclass(frozen=True, eq=False)
class Member:
    """A family whose table reaches contexts by messages: since it crosses clusters, or since some contexts lack it.

    Parameters
    ----------
    node : int
    places : tuple of (int, int)
        The parts that it touches, in order, and the factor of each that its message goes to.
    shape : tuple of int
        Joint states of what it has in each part.
    cells : ndarray of int, shape (n_codes, prod(shape))
        Which parameters its table has for each value of the observed nodes in it.
    code : ndarray of int32, shape (n_contexts,)
        This value in each context; n_codes where the context lacks the family.
    """

    node: int
    places: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    cells: np.ndarray
    code: np.ndarray

    def table(self, natural: np.ndarray) -> np.ndarray:
        """Logarithms of its table at natural parameters (n_cells, n_lanes), (n_codes + 1, n_lanes, *shape)."""
        table = np.zeros((len(self.cells) + 1, natural.shape[1], *self.shape))
        table[:-1] = natural[self.cells].swapaxes(1, 2).reshape(len(self.cells), natural.shape[1], *self.shape)
        return np.maximum(table, _LOG_SMALLEST) if len(self.shape) > 1 else table

    def messengers(self, natural: np.ndarray) -> list[np.ndarray]:
        """Its table for messages to each place, (n_lanes, states of the place, states of the rest, n_codes + 1)."""
        table = np.moveaxis(self.table(natural), 0, -1)
        n_lanes, n_codes = natural.shape[1], len(self.cells) + 1
        return [
            np.ascontiguousarray(np.moveaxis(table, 1 + to, 1).reshape(n_lanes, size, -1, n_codes))
            for to, size in enumerate(self.shape)
        ]

    def given(self, log_point: np.ndarray, rows: slice, codes: Sequence[np.ndarray], to: int) -> np.ndarray:
        """Logarithms of its table for the states of one part, joint states of the others given, (n_rows, n_states)."""
        table = np.moveaxis(self.table(log_point[:, None])[:, 0], 1 + to, 1)
        at: tuple[Any, ...] = (self.code[rows], slice(None), *(each for k, each in enumerate(codes) if k != to))
        return table[at]


def joint_of(marginals: Sequence[np.ndarray]) -> np.ndarray:
    """The product of marginals (n_lanes, n_states, n_rows), as one axis of states, the last one's fastest."""
    joint = marginals[0]
    for marginal in marginals[1:]:
        joint = (joint[:, :, None] * marginal[:, None]).reshape(len(joint), -1, joint.shape[-1])
    return joint


@dataclass(frozen=True, eq=False)
class Part:
    """The part of a cluster in the hidden nodes of some rows: a plan of its own.

    Parameters
    ----------
    plan : Plan
    first : int
        Number of its first context in the contraction.
    sizes : tuple of int
        Cells of its factors.
    kept : tuple of bool
        Which of the factors' marginals are read before they are updated, so that they are kept between E steps.
    """

    plan: Plan
    first: int
    sizes: tuple[int, ...]
    kept: tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class Group:
    """Rows with the same hidden nodes, in more than one cluster.

    Parameters
    ----------
    parts : tuple of Part
        In the order in which they are updated.
    members : tuple of Member
    weight : ndarray of shape (n_contexts,)
    first_state : int
        Where the marginals that are kept begin among all.
    observed : mapping of int to ndarray of shape (n_contexts,)
        Codes of the observed nodes of families inside one cluster.
    largest_clique : int
        Cells of the largest clique that an exact E step of these rows would have.
    """

    parts: tuple[Part, ...]
    members: tuple[Member, ...]
    weight: np.ndarray
    first_state: int
    observed: Mapping[int, np.ndarray]
    largest_clique: int

    @cached_property
    def senders(self) -> list[tuple[list[tuple[int, int]], list[tuple[int, int]]]]:
        """Of each part the members that have parts after it, and those it is the last of: number, place of the part."""
        senders: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = [([], []) for _ in self.parts]
        for number, member in enumerate(self.members):
            for place, (part, _) in enumerate(member.places):
                senders[part][place == len(member.places) - 1].append((number, place))
        return senders

    @property
    def n_kept(self) -> int:
        """Numbers that are kept between E steps."""
        cells = sum(size for part in self.parts for size, kept in zip(part.sizes, part.kept) if kept)
        return cells * len(self.weight)

    def chunks(self, n_lanes: int) -> Iterator[slice]:
        """The contexts, so many at a time that their messages stay in cache."""
        n, width = len(self.weight), n_lanes * sum(sum(part.sizes) for part in self.parts)
        at_once = min(max(_CELLS_AT_ONCE // width, _FEWEST_AT_ONCE), _AT_ONCE)
        return (slice(at, min(at + at_once, n)) for at in range(0, n, at_once))

    def read(self, state: np.ndarray, rows: slice) -> list[Factors]:
        """The marginals that were kept (n_state, n_lanes), part by part; others are empty."""
        n, at, marginals = len(self.weight), self.first_state, []
        for part in self.parts:
            by_part: Factors = []
            for size, kept in zip(part.sizes, part.kept):
                if not kept:
                    by_part.append(np.empty(0))
                    continue
                by_part.append(np.empty((state.shape[1], size, rows.stop - rows.start)))
                kept_share = state[at : at + size * n].reshape(size, n, state.shape[1])
                read(kept_share, rows.start, self.weight[rows], _MIN_SHARE, by_part[-1])
                at += size * n
            marginals.append(by_part)
        return marginals

    def write(self, state: np.ndarray, rows: slice, marginals: Sequence[Factors]) -> None:
        """Keep marginals, times the weights of their contexts."""
        n, at = len(self.weight), self.first_state
        for part, by_part in zip(self.parts, marginals):
            for size, kept, marginal in zip(part.sizes, part.kept, by_part):
                if kept:
                    target = state[at : at + size * n].reshape(size, n, state.shape[1])
                    write(marginal, self.weight[rows], rows.start, target)
                    at += size * n

    def sweep(
        self,
        tables: Sequence[Sequence[np.ndarray]],
        rows: slice,
        marginals: list[Factors],
        n_lanes: int,
        update: Callable[[int, slice, Factors], None],
    ) -> np.ndarray:
        """Update all parts in order; what the sum of their ln Z counts twice, (n_parts, n_lanes, n_rows), nats.

        Parameters
        ----------
        tables : sequence of lists of ndarray
            Of the members, as they send messages.
        rows : slice
        marginals : list of list of ndarray
            Marginals of the factors of each part, replaced.
        n_lanes : int
        update : callable of (int, slice, list of ndarray)
            Puts posteriors of a part's factors in the places of their logarithms.
        """
        n = rows.stop - rows.start
        twice = np.zeros((len(self.parts), n_lanes, n))
        for k, part in enumerate(self.parts):
            messages = [np.empty((n_lanes, size, n)) for size in part.sizes]
            not_last, last = self.senders[k]
            begun: set[int] = set()
            self._hear(not_last, tables, rows, marginals, messages, begun)
            early = {factor: messages[factor].copy() for factor in begun}
            self._hear(last, tables, rows, marginals, messages, begun)
            for silent in set(range(len(messages))) - begun:  # the factor that stands for being asked for with others
                messages[silent][:] = 0.0
            update(k, rows, messages)
            marginals[k] = messages
            for target, message in early.items():
                add_products(message, messages[target], twice[k])
        return twice

    def _hear(
        self,
        senders: Iterable[tuple[int, int]],
        tables: Sequence[Sequence[np.ndarray]],
        rows: slice,
        marginals: Sequence[Factors],
        messages: Factors,
        begun: set[int],
    ) -> None:
        """Add what some members say to the messages for a part that are begun, and begin the others."""
        for number, to in senders:
            member = self.members[number]
            others = [marginals[part][factor] for at, (part, factor) in enumerate(member.places) if at != to]
            target = member.places[to][1]
            add_message(tables[number][to], member.code[rows], others, messages[target], target in begun)
            begun.add(target)

    def member_marginals(self, member: Member, marginals: Sequence[Factors]) -> Factors:
        """The marginals of the parts that a member touches."""
        return [marginals[part][factor] for part, factor in member.places]


@dataclass(frozen=True, eq=False)
class StructuredProgram:
    """Rows of data compiled for a q(x) in clusters; see `Program`.

    Parameters
    ----------
    layout : Layout
    exact : Program
        The hidden parts that are one cluster, and what is not hidden.
    contraction : Contraction
        Of all parts of all groups.
    groups : tuple of Group
    source : Rows
        The rows, for what needs an exact program.
    start : ndarray of shape (n_state, 1) or None
        Marginals that E steps at given parameters start from, by default uniform ones.
    """

    layout: Layout
    exact: Program
    contraction: Contraction
    groups: tuple[Group, ...]
    source: Rows
    start: np.ndarray | None = None

    is_exact = False

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Plans of what is exact, and of all parts."""
        return (*self.exact.plans, *(part.plan for group in self.groups for part in group.parts))

    @property
    def n_state(self) -> int:
        """Numbers that are kept of q(x) between E steps."""
        return sum(group.n_kept for group in self.groups)

    @property
    def treewidth(self) -> int:
        """Treewidth of the widest part."""
        return max(plan.tree.treewidth for plan in self.plans)

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the rows."""
        return self.exact.total_weight

    @property
    def has_whole_weights(self) -> bool:
        """True if every row counts a whole number of times."""
        return self.exact.has_whole_weights

    @property
    def latents(self) -> tuple[int, ...]:
        """The nodes without a column of data."""
        return self.exact.latents

    def started(self, state: np.ndarray) -> StructuredProgram:
        """The program whose E steps at given parameters start from marginals (n_state,)."""
        return replace(self, start=np.ascontiguousarray(state)[:, None])

    def uniform(self, n_lanes: int) -> np.ndarray:
        """Uniform marginals, (n_state, n_lanes)."""
        state = np.empty((self.n_state, n_lanes))
        for group in self.groups:
            uniform = [
                [np.full((n_lanes, size, len(group.weight)), 1.0 / size) for size in part.sizes] for part in group.parts
            ]
            group.write(state, slice(0, len(group.weight)), uniform)
        return state

    def swept(self, natural: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One sweep from kept marginals (n_state, n_lanes) at natural parameters (n_cells, n_lanes).

        Returns
        -------
        counts : ndarray of shape (n_cells, n_lanes)
            Expected, of the groups' rows.
        bound : ndarray of shape (n_lanes,)
            Their part of the bound on ln Z, nats.
        state : ndarray of shape (n_state, n_lanes)
        """
        n_lanes, state = natural.shape[1], np.ascontiguousarray(state)
        workspace, bounds = Workspace(self.contraction, n_lanes), self.contraction.arrays["block_context"].tolist()
        workspace.given(np.ascontiguousarray(natural))
        after, by_member, twice = np.empty_like(state), np.zeros(natural.shape), np.zeros(n_lanes)
        for group in self.groups:
            tables = [member.messengers(natural) for member in group.members]
            counts_of = [np.zeros((n_lanes, prod(m.shape), len(m.cells) + 1)) for m in group.members]

            def update(k: int, rows: slice, factors: Factors, group: Group = group) -> None:
                first = group.parts[k].first
                in_blocks(workspace, bounds, first + rows.start, first + rows.stop, factors)
                for each in factors:
                    divide(group.weight[rows], each)

            for rows in group.chunks(n_lanes):
                marginals = group.read(state, rows)
                twice += group.sweep(tables, rows, marginals, n_lanes, update).sum(axis=0) @ group.weight[rows]
                group.write(after, rows, marginals)
                for member, by_code in zip(group.members, counts_of):
                    by_place = group.member_marginals(member, marginals)
                    add_counts(member.code[rows], group.weight[rows], by_place, by_code)
            for member, by_code in zip(group.members, counts_of):
                by_member[member.cells] += by_code[..., :-1].transpose(2, 1, 0)
        counts, log_z = np.empty(natural.shape), np.empty(n_lanes)
        workspace.collect(counts, log_z)
        return counts + by_member, log_z - twice, after

    def fixed_point(self, natural: np.ndarray) -> np.ndarray:
        """Marginals that further sweeps at natural parameters (n_cells,) leave as they are, (n_state, 1)."""
        state, last = self.uniform(1) if self.start is None else self.start, -np.inf
        for _ in range(_MAX_SWEEPS):
            _, (bound,), state = self.swept(natural[:, None], state)
            if not bound - last > _SETTLED_GAIN * (1.0 + abs(bound)):
                break
            last = bound
        return state

    def beliefs(self, natural: np.ndarray, chunk: int = 2**20) -> Iterable[tuple[Plan, slice, np.ndarray, np.ndarray]]:
        """As of `Program`, at the q(x) that sweeps end in: clusters of a row add up to its bound."""
        yield from self.exact.beliefs(natural, chunk)
        for group, rows, _, log_z, beliefs in self.posteriors(natural, chunk):
            for part, by_part, by_clique in zip(group.parts, log_z, beliefs):
                yield part.plan, rows, by_part, by_clique

    def posteriors(self, natural: np.ndarray, chunk: int = 2**20) -> Iterator[tuple]:
        """Contexts of all groups in chunks: group, contexts, marginals, then parts' shares of the bound and cliques."""
        natural = np.ascontiguousarray(natural)
        state = self.fixed_point(natural)
        workspace = Workspace(self.contraction, 1)
        workspace.given(natural.reshape(-1, 1))
        for group in self.groups:
            tables = [member.messengers(natural[:, None]) for member in group.members]
            widths = [part.plan.n_cells for part in group.parts]
            step = max(1, chunk // sum(widths))
            for at in range(0, len(group.weight), step):
                rows = slice(at, min(at + step, len(group.weight)))
                n = rows.stop - at
                log_z, beliefs = [np.empty(n) for _ in widths], [np.empty((n, width)) for width in widths]

                def update(
                    k: int, rows: slice, factors: Factors, group: Group = group, log_z=log_z, beliefs=beliefs
                ) -> None:
                    first = group.parts[k].first
                    workspace.contexts(first + rows.start, first + rows.stop, log_z[k], beliefs[k], factors)

                marginals = group.read(state, rows)
                twice = group.sweep(tables, rows, marginals, 1, update)[:, 0]
                yield group, rows, marginals, [a - b for a, b in zip(log_z, twice)], beliefs


def in_blocks(
    workspace: Workspace,
    bounds: Sequence[int],
    first: int,
    last: int,
    factors: Factors,
    streams: np.ndarray | None = None,
) -> None:
    """Run some contexts of a plan, block by block; counts, drawn if there are streams, take the factors' places."""
    block, at, n_rows = int(np.searchsorted(bounds, first, side="right") - 1), 0, last - first
    while first < last:
        upto = min(last, bounds[block + 1])
        workspace.rows(block, first, upto, factors, streams, at, n_rows)
        first, block, at = upto, block + 1, at + upto - first
