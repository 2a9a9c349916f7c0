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
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from skvbem._kernels._contraction import Contraction, Workspace
from skvbem.data import Rows
from skvbem.models.network.layout import Layout
from skvbem.models.network.program import Plan, Program

# In messages the logarithm of what is impossible: -inf to every state of a cluster would leave nothing of it.
_LOG_SMALLEST = float(np.log(np.finfo(float).tiny))
# The least share of a row that a marginal keeps where it is read.
_MIN_SHARE = 1e-12
# Contexts that are swept at once, so that their messages stay in cache.
_AT_ONCE = 1024
# Contexts of one code, on average, below which tables are looked up context by context.
_SHORTEST_RUN = 8
# Sweeps at fixed parameters, at most, and the gain of all rows, relative and in nats, below which no more are made.
_MAX_SWEEPS, _SETTLED_GAIN = 2000, 1e-10

#: The logarithms of factors of a part's contexts, and later what is expected of them, (n_lanes, n_cells, n_rows) each.
Factors = list[np.ndarray]


@dataclass(frozen=True, eq=False)
class _ByCode:
    """Some contexts sorted by a code: their order, the way back, and the run of each code."""

    order: np.ndarray
    inverse: np.ndarray
    runs: list[tuple[int, slice]]

    @classmethod
    def of(cls, code: np.ndarray) -> _ByCode:
        order = np.argsort(code, kind="stable")
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        bounds = [*np.flatnonzero(np.diff(code[order], prepend=-1)).tolist(), len(code)]
        return cls(order, inverse, [(int(code[order[a]]), slice(a, b)) for a, b in pairwise(bounds)])

    @property
    def are_many(self) -> bool:
        """Whether runs are so short that a product for each costs more than looking tables up."""
        return len(self.runs) * _SHORTEST_RUN > len(self.order)


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
    code : ndarray of int, shape (n_contexts,)
        This value in each context; n_codes where the context lacks the family.
    """

    node: int
    places: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    cells: np.ndarray
    code: np.ndarray

    _by_code: dict[int, _ByCode] = field(default_factory=dict, init=False, repr=False)

    def table(self, natural: np.ndarray) -> np.ndarray:
        """Logarithms of its table at natural parameters (n_cells, n_lanes), (n_codes + 1, n_lanes, *shape)."""
        table = np.zeros((len(self.cells) + 1, natural.shape[1], *self.shape))
        table[:-1] = natural[self.cells].swapaxes(1, 2).reshape(len(self.cells), natural.shape[1], *self.shape)
        return np.maximum(table, _LOG_SMALLEST) if len(self.shape) > 1 else table

    def message(self, table: np.ndarray, rows: slice, marginals: Sequence[np.ndarray], to: int) -> np.ndarray:
        """Its expected logarithm under all marginals (n_lanes, n_states, n_rows) but one, for the states of that."""
        by_code, of_states = self._sorted(rows), np.moveaxis(table, 2 + to, 2)
        others = [each for k, each in enumerate(marginals) if k != to]
        if not others or by_code.are_many:
            result = np.take(np.moveaxis(of_states, 0, -1), self.code[rows], axis=-1)
            for marginal in reversed(others):
                result = np.einsum("l...an,lan->l...n", result, marginal)
            return result
        of_states = np.ascontiguousarray(of_states.reshape(*of_states.shape[:3], -1))
        joint = joint_of(others).take(by_code.order, axis=-1)
        result = np.empty((joint.shape[0], of_states.shape[2], joint.shape[2]))
        for code, of_code in by_code.runs:
            np.matmul(of_states[code], joint[..., of_code], out=result[..., of_code])
        return result.take(by_code.inverse, axis=-1)

    def given(self, log_point: np.ndarray, rows: slice, codes: Sequence[np.ndarray], to: int) -> np.ndarray:
        """Logarithms of its table for the states of one part, joint states of the others given, (n_rows, n_states)."""
        table = np.moveaxis(self.table(log_point[:, None])[:, 0], 1 + to, 1)
        at: tuple[Any, ...] = (self.code[rows], slice(None), *(each for k, each in enumerate(codes) if k != to))
        return table[at]

    def add_counts(self, counts: np.ndarray, rows: slice, marginals: Sequence[np.ndarray]) -> None:
        """Add expected counts, the marginals' products, to those of all parameters (n_cells, n_lanes)."""
        by_code, n_lanes = self._sorted(rows), counts.shape[1]
        first, *others = (each.take(by_code.order, axis=-1) for each in marginals)
        if by_code.are_many or not others:
            starts = np.array([of_code.start for _, of_code in by_code.runs])
            of_codes = np.add.reduceat(joint_of([first, *others]), starts, axis=-1)
            products = [of_codes[..., k] for k in range(len(starts))]
        else:
            rest = joint_of(others).swapaxes(1, 2)
            products = [(first[..., each] @ rest[:, each]).reshape(n_lanes, -1) for _, each in by_code.runs]
        for (code, _), product in zip(by_code.runs, products):
            if code < len(self.cells):
                counts[self.cells[code]] += product.T

    def _sorted(self, rows: slice) -> _ByCode:
        if rows.start not in self._by_code or len(self._by_code[rows.start].order) != rows.stop - rows.start:
            self._by_code[rows.start] = _ByCode.of(self.code[rows])
        return self._by_code[rows.start]


def joint_of(marginals: Sequence[np.ndarray]) -> np.ndarray:
    """The product of marginals (n_lanes, n_states, n_rows), as one axis of states, the last one's fastest."""
    joint = marginals[0]
    for marginal in marginals[1:]:
        joint = (joint[:, :, None] * marginal[:, None]).reshape(len(joint), -1, joint.shape[-1])
    return joint


@dataclass(frozen=True, eq=False)
class Part:
    """What a cluster has of the hidden nodes of some rows: a plan of its own.

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

    @property
    def n_kept(self) -> int:
        """Numbers that are kept between E steps."""
        cells = sum(size for part in self.parts for size, kept in zip(part.sizes, part.kept) if kept)
        return cells * len(self.weight)

    def chunks(self) -> Iterator[slice]:
        """The contexts, so many at a time that their messages stay in cache."""
        n = len(self.weight)
        return (slice(at, min(at + _AT_ONCE, n)) for at in range(0, n, _AT_ONCE))

    def read(self, state: np.ndarray, rows: slice) -> list[Factors]:
        """The marginals that were kept (n_state, n_lanes), part by part; others are empty."""
        n, at, marginals = len(self.weight), self.first_state, []
        for part in self.parts:
            of_part: Factors = []
            for size, kept in zip(part.sizes, part.kept):
                if not kept:
                    of_part.append(np.empty(0))
                    continue
                share = state[at : at + size * n].reshape(size, n, -1)[:, rows] / self.weight[rows, None]
                share = np.maximum(share, _MIN_SHARE)
                of_part.append(np.ascontiguousarray((share / share.sum(axis=0)).transpose(2, 0, 1)))
                at += size * n
            marginals.append(of_part)
        return marginals

    def write(self, state: np.ndarray, rows: slice, marginals: Sequence[Factors]) -> None:
        """Keep marginals, times the weights of their contexts."""
        n, at = len(self.weight), self.first_state
        for part, of_part in zip(self.parts, marginals):
            for size, kept, marginal in zip(part.sizes, part.kept, of_part):
                if kept:
                    target = state[at : at + size * n].reshape(size, n, -1)
                    target[:, rows] = (marginal * self.weight[rows]).transpose(1, 2, 0)
                    at += size * n

    def sweep(
        self,
        tables: Sequence[np.ndarray],
        rows: slice,
        marginals: list[Factors],
        n_lanes: int,
        update: Callable[[int, slice, Factors], None],
    ) -> np.ndarray:
        """Update all parts in order; what the sum of their ln Z counts twice, (n_parts, n_lanes, n_rows), nats.

        Parameters
        ----------
        tables : sequence of ndarray
            Of the members.
        rows : slice
        marginals : list of list of ndarray
            Of the factors of each part, replaced.
        n_lanes : int
        update : callable of (int, slice, list of ndarray)
            Puts posteriors of a part's factors in the places of their logarithms.
        """
        twice = np.zeros((len(self.parts), n_lanes, rows.stop - rows.start))
        for k, part in enumerate(self.parts):
            messages = [np.zeros((n_lanes, size, rows.stop - rows.start)) for size in part.sizes]
            early: dict[int, np.ndarray] = {}
            for member, table in zip(self.members, tables):
                to = next((j for j, (other, _) in enumerate(member.places) if other == k), None)
                if to is None:
                    continue
                target, others = member.places[to][1], [marginals[p][f] for p, f in member.places]
                message = member.message(table, rows, others, to)
                messages[target] += message
                if to < len(member.places) - 1:
                    early[target] = early[target] + message if target in early else message
            update(k, rows, messages)
            marginals[k] = messages
            for target, message in early.items():
                twice[k] += np.einsum("lan,lan->ln", message, messages[target])
        return twice

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
        """Whether every row counts a whole number of times."""
        return self.exact.has_whole_weights

    @property
    def latents(self) -> tuple[int, ...]:
        """The nodes without a column of data."""
        return self.exact.latents

    def started(self, state: np.ndarray) -> StructuredProgram:
        """The program whose E steps at given parameters start from marginals (n_state,)."""
        return replace(self, start=state[:, None])

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
        n_lanes = natural.shape[1]
        workspace, bounds = Workspace(self.contraction, n_lanes), self.contraction.arrays["block_context"].tolist()
        workspace.given(np.ascontiguousarray(natural))
        after, of_members, twice = np.empty_like(state), np.zeros(natural.shape), np.zeros(n_lanes)
        for group in self.groups:
            tables = [member.table(natural) for member in group.members]

            def update(k: int, rows: slice, factors: Factors, group: Group = group) -> None:
                first = group.parts[k].first
                _in_blocks(workspace, bounds, first + rows.start, first + rows.stop, factors)
                for each in factors:
                    each /= group.weight[rows]

            for rows in group.chunks():
                marginals = group.read(state, rows)
                twice += group.sweep(tables, rows, marginals, n_lanes, update).sum(axis=0) @ group.weight[rows]
                group.write(after, rows, marginals)
                for member in group.members:
                    first, *others = group.member_marginals(member, marginals)
                    member.add_counts(of_members, rows, [first * group.weight[rows], *others])
        counts, log_z = np.empty(natural.shape), np.empty(n_lanes)
        workspace.collect(counts, log_z)
        return counts + of_members, log_z - twice, after

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
            for part, of_part, of_cliques in zip(group.parts, log_z, beliefs):
                yield part.plan, rows, of_part, of_cliques

    def posteriors(self, natural: np.ndarray, chunk: int = 2**20) -> Iterator[tuple]:
        """Contexts of all groups in chunks: group, contexts, marginals, then parts' shares of the bound and cliques."""
        natural = np.ascontiguousarray(natural)
        state = self.fixed_point(natural)
        workspace = Workspace(self.contraction, 1)
        workspace.given(natural.reshape(-1, 1))
        for group in self.groups:
            tables = [member.table(natural[:, None]) for member in group.members]
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


def _in_blocks(workspace: Workspace, bounds: Sequence[int], first: int, last: int, factors: Factors) -> None:
    """Run some contexts of a plan, block by block; counts take the places of the factors."""
    block = int(np.searchsorted(bounds, first, side="right") - 1)
    while first < last:
        upto = min(last, bounds[block + 1])
        whole = factors[0].shape[-1]
        at = slice(whole - (last - first), whole - (last - upto))
        parts_of_block = [np.ascontiguousarray(each[..., at]) for each in factors]
        workspace.rows(block, first, upto, parts_of_block)
        for each, of_block in zip(factors, parts_of_block):
            each[..., at] = of_block
        first, block = upto, block + 1
