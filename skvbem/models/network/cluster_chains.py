r"""Gibbs chains over parameters and hidden states that never sum beyond a cluster.

The densities go from :math:`q(\theta) q(x)` to :math:`p(\theta) p(x, y \mid \theta)`,

.. math:: f_t(\theta, x) = [q(\theta) q(x)]^{1 - t} [p(\theta) p(x, y \mid \theta)]^t,

q(x) a product over clusters. Rows that are divided keep their hidden states; what is exact is summed out as ever. Given
:math:`\theta` and the states of all other clusters of its row, a cluster has natural parameters
:math:`(1 - t) \bar m + t \ln \theta`, and is drawn backwards along its own junction tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

import numpy as np

from skvbem._kernels._messages import add_counts
from skvbem._kernels._workspace import Workspace
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import LANES_BYTES
from skvbem.models.network.sampling import NetworkSampler
from skvbem.models.network.structured import Factors, Group, StructuredProgram, in_blocks

# Lanes that chains run side by side: hidden states of every row are kept for each.
_MAX_LANES = 32


@dataclass(frozen=True, eq=False)
class ClusterPath:
    """Densities from q(theta) q(x) at t = 0 to the posterior at t = 1; see the head of this file.

    Parameters
    ----------
    data : StructuredProgram
        Each divided row a context of its own.
    statistics, natural : ndarray of shape (n_cells,)
        q(theta) is the prior after these statistics; natural parameters that q(x) is taken at.
    messages : list of list of list of ndarray
        By group, part and factor the messages (n_cells of the factor, n_rows) that q(x) was last updated by.
    log_z : float
        The sum of ln Z of all parts at their last update, nats.
    slope : float
        ln p(theta) - ln q(theta) + statistics . ln theta and ln Z of what is exact at `natural`, which is the same for
        every theta, nats.
    """

    data: StructuredProgram
    statistics: np.ndarray
    natural: np.ndarray
    messages: list[list[Factors]]
    log_z: float
    slope: float


@dataclass(frozen=True, eq=False)
class _States:
    """Hidden states of divided rows, as marginals that are 0 or 1, their counts, and ln q(x) of each lane."""

    marginals: list[list[Factors]]
    counts: np.ndarray
    log_q: np.ndarray


class ClusterChains:
    """Chains of a network whose q(x) is a product over clusters; see `skvbem.capabilities.ClusterAnnealing`."""

    def __init__(self, model: DiscreteDAG):
        self.model = model

    def lanes_at_once(self, data: StructuredProgram) -> int:
        """Lanes whose hidden states stay in cache together, 1 to 32."""
        per_lane = 8 * sum(sum(sum(p.sizes) for p in group.parts) * len(group.weight) for group in data.groups)
        return min(max(8 * LANES_BYTES // max(per_lane, 1), 1), _MAX_LANES)

    def path(self, data: StructuredProgram, statistics: np.ndarray) -> ClusterPath:
        """The path from q(theta) = prior + statistics (n_cells,), and the q(x) that sweeps end in there."""
        model, prior = self.model, self.model.prior
        assert model.partition is not None
        alone = model.with_partition(replace(model.partition, rows_alone=True)).compile(data.source)
        column = np.ascontiguousarray(statistics, dtype=float)[:, None]
        natural = (prior + column).expected_natural()
        messages, log_z = _last_messages(alone, natural[:, 0])
        slope = model.expect(natural, alone.exact).log_normalizer + prior.log_evidence(column)
        return ClusterPath(alone, column[:, 0], natural[:, 0], messages, log_z, float(np.ravel(slope)[0]))

    def run(self, path: ClusterPath, temperatures: np.ndarray, streams: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Chains from q(theta) q(x); see `skvbem.capabilities.ClusterAnnealing`."""
        n_lanes, model, sampler = streams.shape[1], self.model, NetworkSampler(self.model)
        anchor = np.repeat(path.natural[:, None], n_lanes, axis=1)
        statistics = np.repeat(path.statistics[:, None], n_lanes, axis=1)
        log_point = sampler.draw_points(statistics, streams)
        states = self._drawn(path, 0.0, log_point, None, streams)
        log_ratios = np.empty((len(temperatures) - 1, n_lanes))
        for step, (t, after) in enumerate(pairwise(temperatures)):
            exact = [
                model.expect((1.0 - u) * anchor + u * log_point, path.data.exact).log_normalizer for u in (t, after)
            ]
            gain = path.slope + ((states.counts - statistics) * log_point).sum(axis=0) - states.log_q
            log_ratios[step] = (after - t) * gain + exact[1] - exact[0]
            if step == len(log_ratios) - 1:
                break
            of_exact = sampler.sample_latent((1.0 - after) * anchor + after * log_point, path.data.exact, streams)
            log_point = sampler.draw_points((1.0 - after) * statistics + after * (of_exact + states.counts), streams)
            states = self._drawn(path, after, log_point, states, streams)
        return log_point, log_ratios

    def _drawn(
        self, path: ClusterPath, t: float, log_point: np.ndarray, before: _States | None, streams: np.ndarray
    ) -> _States:
        """Hidden states drawn at an inverse temperature, cluster after cluster given the others; at 0 anew from q."""
        data, n_lanes = path.data, log_point.shape[1]
        workspace, bounds = Workspace(data.contraction, n_lanes), data.contraction.arrays["block_context"].tolist()
        workspace.given(np.ascontiguousarray((1.0 - t) * path.natural[:, None] + t * log_point))
        marginals, crossing, by_message = [], np.zeros(log_point.shape), np.zeros(n_lanes)
        for number, group in enumerate(data.groups):
            rows = slice(0, len(group.weight))
            states = _nothing_known(group, n_lanes) if before is None else before.marginals[number]

            def update(k: int, rows: slice, factors: Factors, group: Group = group, number: int = number) -> None:
                for each, fixed in zip(factors, path.messages[number][k]):
                    each += (1.0 - t) * fixed
                in_blocks(workspace, bounds, group.parts[k].first, group.parts[k].first + rows.stop, factors, streams)
                for each, fixed in zip(factors, path.messages[number][k]):
                    by_message[...] += np.einsum("lan,an->l", each, fixed)

            tables = [member.messengers(t * log_point) for member in group.members]
            states = list(states)
            group.sweep(tables, rows, states, n_lanes, update)
            _add_crossing(group, states, crossing)
            marginals.append(states)
        inner, _ = np.empty(log_point.shape), np.empty(n_lanes)
        workspace.collect(inner, _)
        return _States(marginals, inner + crossing, path.natural @ inner + by_message - path.log_z)


def _nothing_known(group: Group, n_lanes: int) -> list[Factors]:
    """Uniform marginals: what messages are times an inverse temperature of 0."""
    n = len(group.weight)
    return [[np.full((n_lanes, size, n), 1.0 / size) for size in part.sizes] for part in group.parts]


def _add_crossing(group: Group, states: list[Factors], counts: np.ndarray) -> None:
    """Add counts of families that cross clusters, of rows of a group, to those of all parameters."""
    for member in group.members:
        by_code = np.zeros((counts.shape[1], prod(member.shape), len(member.cells) + 1))
        add_counts(member.code, group.weight, group.member_marginals(member, states), by_code)
        counts[member.cells] += by_code[..., :-1].transpose(2, 1, 0)


def _last_messages(data: StructuredProgram, natural: np.ndarray) -> tuple[list[list[Factors]], float]:
    """The messages that each part was last updated by where sweeps end, and the sum of ln Z of all parts."""
    workspace = Workspace(data.contraction, 1)
    workspace.given(np.ascontiguousarray(natural)[:, None])
    state, log_z = data.fixed_point(natural), 0.0
    kept: list[list[Factors]] = []
    for group in data.groups:
        rows = slice(0, len(group.weight))
        of_group: list[Factors] = []

        def update(k: int, rows: slice, factors: Factors, group: Group = group, of_group: list = of_group) -> None:
            nonlocal log_z
            of_group.append([each[0].copy() for each in factors])
            part = group.parts[k]
            by_row, beliefs = np.empty(rows.stop), np.empty((rows.stop, part.plan.n_cells))
            workspace.contexts(part.first, part.first + rows.stop, by_row, beliefs, factors)
            log_z += float(by_row.sum())

        tables = [member.messengers(natural[:, None]) for member in group.members]
        group.sweep(tables, rows, group.read(state, rows), 1, update)
        kept.append(of_group)
    return kept, log_z
