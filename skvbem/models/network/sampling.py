"""What sampling scores ask of a network: chains along paths of densities, draws of parameters, likelihoods of points.

Arrays of chains have the chains last, (n_cells, n_chains). Streams are (4, n_chains) words, moved on in place, so that
a run may be cut into pieces and a chain's numbers depend on its own stream alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from skvbem._kernels._annealing import anneal, draw_latent, log_normalizers, metropolis
from skvbem._kernels._contraction import Workspace
from skvbem._kernels._random import log_dirichlet
from skvbem.families import Dirichlet
from skvbem.models.gibbs import Path
from skvbem.models.network.layout import Layout
from skvbem.models.network.relabelings import relabelings
from skvbem.models.relabelings import Relabelings

# Bytes of tables that one batch of lanes may hold, so that they stay in cache.
_LANES_BYTES = 2**19


class Sampling:
    """Methods of a model whose parameters are one block of Dirichlet rows."""

    prior: Dirichlet
    layout: Layout
    position: Mapping
    expect: Callable
    random_point: Callable

    def paths(self, program, statistics: np.ndarray) -> Path:
        """Paths from q(theta) = prior + statistics (n_cells, n), and q(x) at its expected natural parameters."""
        statistics = np.ascontiguousarray(statistics, dtype=float)
        natural = (self.prior + statistics).expected_natural()
        slope = self.expect(natural, program).log_normalizer + self.prior.log_evidence(statistics)
        return Path(statistics, natural, slope)

    def certain_statistics(self, program, rng: np.random.Generator) -> np.ndarray:
        """The part of expected statistics that no hidden variable has a say in, (n_cells,).

        Where two random points expect the same, whatever that is; elsewhere the counts of complete families.
        """
        points = np.stack([self.random_point(rng), self.random_point(rng)], axis=1)
        one, other = self.expect(np.log(points), program).statistics.T
        return np.where(np.isclose(one, other, rtol=1e-9, atol=1e-9), one, program.contraction.certain_counts())

    def draw_points(self, statistics: np.ndarray, streams: np.ndarray) -> np.ndarray:
        """ln theta drawn from the prior after statistics (n_cells, n_lanes), each lane from its stream."""
        concentration = np.array((self.prior + statistics).concentration, order="C")
        log_point = np.empty(concentration.shape)
        log_dirichlet(self.prior.row_starts, concentration, streams, log_point)
        return log_point

    def log_normalizers(
        self, workspace: Workspace, path: Path, temperatures: np.ndarray, log_point: np.ndarray
    ) -> np.ndarray:
        """ln Z_t(theta) at every inverse temperature, (n_temperatures, n_lanes)."""
        found = np.empty((len(temperatures), log_point.shape[1]))
        log_normalizers(workspace, path.natural, temperatures, np.ascontiguousarray(log_point), found)
        return found

    def log_likelihoods(self, program, log_points: np.ndarray) -> np.ndarray:
        """ln p(data | theta), nats, of many points (n_cells, n_points)."""
        found = np.empty(log_points.shape[1])
        width = min(self.lanes_at_once(program), len(found))
        nothing, workspace = np.zeros((self.layout.n_cells, width)), self.workspace(program, width)
        path = Path(nothing, nothing, np.zeros(width))
        for at in range(0, len(found), width):
            at = min(at, len(found) - width)
            batch = slice(at, at + width)
            found[batch] = self.log_normalizers(workspace, path, np.ones(1), log_points[:, batch])[0]
        return found

    def lanes_at_once(self, program) -> int:
        """Lanes whose tables stay in cache together, 1 to 32."""
        per_lane = 16 * (program.contraction.n_table_cells + 2 * self.layout.n_cells)
        return min(max(_LANES_BYTES // per_lane, 1), 32)

    def workspace(self, program, n_lanes: int) -> Workspace:
        """Memory for chains, to be handed to `anneal` and `metropolis` again and again."""
        return Workspace(program.contraction, n_lanes)

    def anneal(
        self, workspace: Workspace, path: Path, temperatures: np.ndarray, streams: np.ndarray, log_point: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gibbs chains along paths of their own, from `log_point` at the first inverse temperature, moved in place.

        Parameters
        ----------
        workspace : Workspace
        path : Path
        temperatures : ndarray of shape (n_steps + 1,)
            Inverse temperatures in the order visited; equal ones are sweeps at one density.
        streams : ndarray of uint64, shape (4, n_chains)
        log_point : ndarray of shape (n_cells, n_chains)

        Returns
        -------
        log_ratios : ndarray of shape (n_steps, n_chains)
            ln of the ratio of densities at each step, nats.
        statistics : ndarray of shape (n_cells, n_chains)
            Statistics of the last hidden states drawn.
        """
        temperatures = np.ascontiguousarray(temperatures, dtype=float)
        statistics, log_ratios = np.empty(log_point.shape), np.empty((len(temperatures) - 1, log_point.shape[1]))
        anneal(
            workspace,
            self.prior.row_starts,
            self.prior.concentration,
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

    def metropolis(
        self,
        workspace: Workspace,
        temperatures: np.ndarray,
        strengths: np.ndarray,
        streams: np.ndarray,
        log_point: np.ndarray,
        log_likelihood: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Metropolis-Hastings chains along p(theta) p(data | theta)^t, state and log likelihood moved in place.

        Parameters
        ----------
        workspace : Workspace
        temperatures : ndarray of shape (n_steps + 1,)
        strengths : ndarray of shape (n_steps,)
            Each row theta is proposed anew from Dir(max(strength theta, prior)), all rows at once.
        streams : ndarray of uint64, shape (4, n_chains)
        log_point : ndarray of shape (n_cells, n_chains)
        log_likelihood : ndarray of shape (n_chains,)

        Returns
        -------
        log_ratios : ndarray of shape (n_steps, n_chains)
        accepted : ndarray of bool, shape (n_steps, n_chains)
        """
        shape = (len(strengths), log_point.shape[1])
        log_ratios, accepted = np.empty(shape), np.empty(shape, dtype=np.uint8)
        metropolis(
            workspace,
            self.prior.row_starts,
            self.prior.concentration,
            np.ascontiguousarray(temperatures, dtype=float),
            np.ascontiguousarray(strengths, dtype=float),
            streams,
            log_point,
            log_likelihood,
            log_ratios,
            accepted,
        )
        return log_ratios, accepted.astype(bool)

    def sample_latent(self, natural: np.ndarray, program, streams: np.ndarray) -> np.ndarray:
        """Complete-data statistics with hidden states drawn from q(x) at natural parameters (n_cells, n_lanes)."""
        workspace = Workspace(program.contraction, natural.shape[1])
        drawn = np.empty(natural.shape)
        draw_latent(workspace, np.ascontiguousarray(natural), streams, drawn)
        return drawn

    def relabelings(self, hidden, limit: int = 50_000) -> Relabelings | None:
        """Ways in which hidden labels can change unnoticed, None if too many to be found one by one."""
        return relabelings(self.layout, self.prior.concentration, {self.position[node] for node in hidden}, limit)
