"""Gibbs and Metropolis chains of a network, compiled, as `skvbem.capabilities` declares them; batches of contexts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from skvbem._kernels._annealing import anneal, draw_latent, log_normalizers, metropolis
from skvbem._kernels._contexts import weights
from skvbem._kernels._contraction import Contraction
from skvbem._kernels._workspace import Workspace
from skvbem.capabilities import AnnealingPlan, Path
from skvbem.families import DirichletMixture
from skvbem.families.parallel_generator import ParallelGenerator
from skvbem.models.network.assembly import blocks
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import LANES_BYTES, Program
from skvbem.models.network.structured import StructuredProgram


@dataclass(frozen=True, eq=False)
class NetworkSampler:
    """Draws of parameters, Gibbs and Metropolis chains; see `Points`, `Annealing` and `Metropolis` of the capabilities.

    Parameters
    ----------
    model : DiscreteDAG
    """

    model: DiscreteDAG

    @property
    def plan(self) -> AnnealingPlan:
        """From wide starts and from the prior."""
        return AnnealingPlan()

    def paths(self, data: Program, statistics: np.ndarray) -> Path:
        """Paths from q(theta) = prior + statistics (n_cells, n), and q(x) at its expected natural parameters."""
        statistics = np.ascontiguousarray(statistics, dtype=float)
        natural = (self.model.prior + statistics).expected_natural()
        slope = self.model.expect(natural, data).log_normalizer + self.model.prior.log_evidence(statistics)
        return Path(statistics, natural, slope)

    def certain_statistics(self, data: Program, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that no hidden variable has a say in, (n_cells,).

        Where two random points expect the same, whatever that is; elsewhere the counts of complete families.
        """
        points = np.stack([self.model.random_point(rng), self.model.random_point(rng)], axis=1)
        one, other = self.model.expect(np.log(points), data).statistics.T
        return np.where(np.isclose(one, other, rtol=1e-9, atol=1e-9), one, data.contraction.certain_counts())

    def draw_points(self, statistics: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """ln theta drawn from the prior after statistics (n_cells, n_lanes), each lane from its stream."""
        return (self.model.prior + statistics).draw_natural(ParallelGenerator(streams))

    def log_normalizers(
        self, workspace: Workspace, path: Path, temperatures: np.ndarray, log_point: np.ndarray
    ) -> np.ndarray:
        """ln Z_t(theta) at every inverse temperature, (n_temperatures, n_lanes)."""
        log_z = np.empty((len(temperatures), log_point.shape[1]))
        log_normalizers(workspace, path.natural, temperatures, np.ascontiguousarray(log_point), log_z)
        return log_z

    def log_likelihoods(self, data: Program, log_points: np.ndarray) -> np.ndarray:
        """ln p(data | theta), nats, of many points (n_cells, n_points)."""
        log_likelihood = np.empty(log_points.shape[1])
        width = min(self.lanes_at_once(data), len(log_likelihood))
        nothing, workspace = np.zeros((self.model.layout.n_cells, width)), self.workspace(data, width)
        path = Path(nothing, nothing, np.zeros(width))
        for at in range(0, len(log_likelihood), width):
            at = min(at, len(log_likelihood) - width)
            batch = slice(at, at + width)
            log_likelihood[batch] = self.log_normalizers(workspace, path, np.ones(1), log_points[:, batch])[0]
        return log_likelihood

    def lanes_at_once(self, data: Program) -> int:
        """Lanes whose tables stay in cache together, 1 to 32."""
        per_lane = 16 * (data.contraction.n_table_cells + 2 * self.model.layout.n_cells)
        return min(max(LANES_BYTES // per_lane, 1), 32)

    def workspace(self, data: Program, n_lanes: int) -> Workspace:
        """Memory for chains, to be handed to `anneal` and `metropolis` again and again."""
        return _workspace(data, n_lanes)

    def anneal(
        self, workspace: Workspace, path: Path, temperatures: np.ndarray, streams: np.ndarray, log_point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gibbs chains along paths of their own; see `skvbem.capabilities.Annealing`."""
        temperatures = np.ascontiguousarray(temperatures, dtype=float)
        if isinstance(self.model.prior, DirichletMixture):
            return self._anneal_mixture(workspace, path, temperatures, streams, log_point)
        statistics, log_ratios = np.empty(log_point.shape), np.empty((len(temperatures) - 1, log_point.shape[1]))
        anneal(
            workspace,
            self.model.prior.row_starts,
            self.model.prior.concentration,
            path.statistics,
            path.natural,
            temperatures,
            streams,
            log_point,
            statistics,
            log_ratios,
        )
        log_ratios += np.diff(temperatures)[:, None] * path.slope
        return log_ratios, statistics

    def _anneal_mixture(
        self, workspace: Workspace, path: Path, temperatures: np.ndarray, streams: np.ndarray, log_point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Chains that draw the alternative of each table before its rows, step by step."""
        log_ratios, statistics = np.zeros((len(temperatures) - 1, log_point.shape[1])), np.empty(log_point.shape)
        for step, (here, there) in enumerate(pairwise(temperatures)):
            if here != there:
                before, after = self.log_normalizers(workspace, path, np.array([here, there]), log_point)
                log_ratios[step] = after - before - (there - here) * (path.statistics * log_point).sum(axis=0)
                log_ratios[step] += (there - here) * path.slope
            draw_latent(workspace, (1.0 - there) * path.natural + there * log_point, streams, statistics)
            log_point[:] = self.draw_points((1.0 - there) * path.statistics + there * statistics, streams)
        return log_ratios, statistics

    def metropolis(
        self,
        workspace: Workspace,
        temperatures: np.ndarray,
        strengths: np.ndarray,
        streams: np.ndarray,
        log_point: np.ndarray,
        log_likelihood: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Metropolis-Hastings chains; see `skvbem.capabilities.Metropolis`.

        Each row theta of the tables is proposed anew from Dir(max(strength theta, prior)), all rows at once.
        """
        shape = (len(strengths), log_point.shape[1])
        log_ratios, accepted = np.empty(shape), np.empty(shape, dtype=np.uint8)
        metropolis(
            workspace,
            self.model.prior.row_starts,
            self.model.prior.concentration,
            np.ascontiguousarray(temperatures, dtype=float),
            np.ascontiguousarray(strengths, dtype=float),
            streams,
            log_point,
            log_likelihood,
            log_ratios,
            accepted,
        )
        return log_ratios, accepted.astype(bool)

    def sample_latent(self, natural: np.ndarray, data: Program, streams: np.ndarray) -> np.ndarray:
        """Complete-data statistics with hidden states drawn from q(x) at natural parameters (n_cells, n_lanes)."""
        workspace = _workspace(data, natural.shape[1])
        drawn = np.empty(natural.shape)
        draw_latent(workspace, np.ascontiguousarray(natural), streams, drawn)
        return drawn


def _workspace(data: Program | StructuredProgram, n_lanes: int) -> Workspace:
    """Memory for chains of a program that sums rows exactly: parts of a divided row would not know of each other."""
    if not data.is_exact:
        raise TypeError(
            "Draws of what rows hide need inference='exact': here q(x) is a product over clusters of hidden nodes. "
            "'lower_bound' needs no draws, nor 'collapsed' where no tables are tied, nor credible_intervals by 'vb'."
        )
    return Workspace(data.contraction, n_lanes)


@dataclass(frozen=True, eq=False)
class NetworkBatches:
    """Batches of a program; see `skvbem.capabilities.Batches`.

    A unit is a context that counts once: given the tables, the hidden parts of a row are independent of each other.
    """

    def order(self, data: Program, rng: np.random.Generator) -> np.ndarray:
        """All units in an order drawn at random, (n_units,): each context as often as it counts."""
        counts = weights(data.contraction).astype(np.int64)
        return rng.permutation(np.repeat(np.arange(len(counts)), counts))

    def batch(self, data: Program, order: np.ndarray, n_units: int) -> Program:
        """The first of so many units in an order, compiled as the data are; plans know of no rows."""
        weight = np.bincount(order[:n_units], minlength=data.contraction.n_contexts).astype(float)
        contraction, sizes = _with_weights(data.contraction.arrays, weight)
        plans = tuple(
            replace(plan, n_contexts=int(n), rows=None, context_of_row=None, row_of_context=None)
            for plan, n in zip(data.plans, sizes)
        )
        return replace(data, contraction=contraction, plans=plans, total_weight=float(n_units))

    def known(self, data: Program) -> np.ndarray:
        """Counts of families of which nothing is hidden, (n_cells,)."""
        return data.contraction.certain_counts()


def _with_weights(arrays: dict, weight: np.ndarray) -> tuple[Contraction, np.ndarray]:
    """A program whose contexts count so often, those of weight 0 left out; how many each plan keeps."""
    starts, slots_at, codes_at = arrays["plan_context"], arrays["plan_slot"], arrays["plan_code"]
    codes, mass, kept, work = [], np.zeros_like(arrays["mass"]), [], []
    for plan, (first, last) in enumerate(pairwise(starts)):
        here = weight[first:last]
        order = np.argsort(here, kind="stable")  # equal weights side by side: their logarithms are taken together
        order = order[np.count_nonzero(here == 0.0) :]
        n_slots = int(slots_at[plan + 1] - slots_at[plan])
        plan_codes = arrays["codes"][codes_at[plan] : codes_at[plan + 1]].reshape(last - first, n_slots)[order]
        for slot, column in zip(range(slots_at[plan], slots_at[plan + 1]), plan_codes.T):
            size = int(arrays["slot_codes"][slot])
            at = int(arrays["slot_mass"][slot])
            mass[at : at + size] = np.bincount(column, weights=here[order], minlength=size)
        codes.append(plan_codes.ravel())
        kept.append(here[order])
        work.append(int(arrays["plan_work"][plan]) // int(last - first) * len(order))
    sizes = np.array([len(each) for each in kept], dtype=np.int64)
    ends = {
        "plan_context": np.concatenate([[0], np.cumsum(sizes)]),
        "plan_code": np.concatenate([[0], np.cumsum(sizes * np.diff(slots_at))]),
    }
    ends = {name: each.astype(np.int64) for name, each in ends.items()}
    pieces = {"codes": codes, "weight": kept}
    joined = {name: np.concatenate([*each, arrays[name][:1]]) for name, each in pieces.items()}  # never empty
    return Contraction(
        arrays
        | ends
        | joined
        | {"mass": mass, "n_contexts": int(sizes.sum()), "plan_work": np.array(work, dtype=np.int64)}
        | blocks(ends["plan_context"], arrays["slot_table"][slots_at], work)
    ), sizes
