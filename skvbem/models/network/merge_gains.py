r"""What the bound gains where two hidden nodes that q(x) keeps apart are joined.

At a fixed point of mean field, q of a node is what its messages say. Given all other nodes, q of a pair is then
:math:`q_a q_b e^{d} / Z` with

.. math:: d(x_a, x_b) = \sum_{f \ni a, b} \left[ m_{f \to ab}(x_a, x_b) - m_{f \to a}(x_a) - m_{f \to b}(x_b) \right],

over the families that both are in, m being expected logarithms under the others. So a row gains
:math:`\ln \langle e^d \rangle - \langle d \rangle \ge 0`, means under :math:`q_a q_b`: 0 for a pair that shares no
family.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from skvbem._kernels._messages import add_message
from skvbem.models.network.structured import Factors, Group, Member, StructuredProgram


def merge_gains(program: StructuredProgram, natural: np.ndarray) -> dict[tuple[int, int], float]:
    """Pair of hidden nodes -> what joining them gains in one E step at natural parameters (n_cells,), nats.

    Parameters
    ----------
    program : StructuredProgram
        Every hidden node alone.
    natural : ndarray of shape (n_cells,)
    """
    gains: dict[tuple[int, int], float] = {}
    pairs_of = {id(group): _pairs(group) for group in program.groups}
    tables = {id(member): member.table(natural[:, None])[:, 0] for group in program.groups for member in group.members}
    for group, rows, marginals, _, _ in program.posteriors(natural):
        for (a, b), members in pairs_of[id(group)].items():
            q_a, q_b = marginals[a][0][0], marginals[b][0][0]
            d = sum(
                _interaction(member, tables[id(member)], rows, group.member_marginals(member, marginals), i, j)
                for member, i, j in members
            )
            gain = _gains(q_a[:, None] * q_b, np.asarray(d))
            pair = tuple(sorted((group.parts[a].plan.hidden[0], group.parts[b].plan.hidden[0])))
            gains[pair] = gains.get(pair, 0.0) + float(group.weight[rows] @ gain)
    return gains


def _pairs(group: Group) -> dict[tuple[int, int], list[tuple[Member, int, int]]]:
    """Two parts -> the members that touch both, with their places in each."""
    pairs: dict[tuple[int, int], list[tuple[Member, int, int]]] = {}
    for member in group.members:
        for i, j in combinations(range(len(member.places)), 2):
            pairs.setdefault((member.places[i][0], member.places[j][0]), []).append((member, i, j))
    return pairs


def _interaction(member: Member, table: np.ndarray, rows: slice, marginals: Factors, i: int, j: int) -> np.ndarray:
    """A member's message to a pair of places less its messages to each, (states of one, of the other, n_rows)."""
    shape = (member.shape[i], member.shape[j])
    for_pair = np.moveaxis(table, (0, 1 + i, 1 + j), (-1, 0, 1))
    others = [marginal for place, marginal in enumerate(marginals) if place not in (i, j)]
    message = np.empty((1, shape[0] * shape[1], rows.stop - rows.start))
    of_codes = np.ascontiguousarray(for_pair.reshape(1, shape[0] * shape[1], -1, len(member.cells) + 1))
    add_message(of_codes, member.code[rows], others, message, False)
    joint = message.reshape(*shape, -1)
    to_one = (joint * marginals[j][0]).sum(axis=1)
    to_other = (joint * marginals[i][0][:, None]).sum(axis=0)
    return joint - to_one[:, None] - to_other


def _gains(product: np.ndarray, d: np.ndarray) -> np.ndarray:
    """ln <e^d> - <d> of each row under a product of marginals, arrays (states of one, of the other, n_rows)."""
    above = d - (product * d).sum(axis=(0, 1))
    top = above.max(axis=(0, 1))
    gain = top + np.log((product * np.exp(above - top)).sum(axis=(0, 1)))
    return np.maximum(gain, 0.0)
