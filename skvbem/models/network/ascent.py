"""Full steps of one discrete network on its data, compiled, for every form of q(theta)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from skvbem._kernels._contraction import Workspace
from skvbem._numerics import log_gamma
from skvbem.errors import NoInteriorModeError
from skvbem.models.network.model import DiscreteDAG
from skvbem.models.network.program import LANES_BYTES, Program

# Multiplications in a step below which threads cost more than they bring.
_WORTH_THREADS = 2**22


class DirichletAscent:
    """Full steps of one network on one table of rows, for one form of q(theta), compiled.

    Parameters
    ----------
    model : DiscreteDAG
    data : Program
    form : Form
    n_threads : int
        Threads among which blocks of contexts are shared; the result does not depend on it.
    """

    def __init__(self, model: DiscreteDAG, data: Program, form, n_threads: int = 1):
        self.model, self.data, self.form = model, data, form
        self.n_threads = n_threads
        self.prior = model.prior
        offset = form.offset(self.prior)
        rows = self.prior.row_sums(offset)
        per_cell, per_row = (np.stack([x, _log_gamma_where_positive(x)]) for x in (offset, rows))
        self._form_arguments = (self.prior.row_starts, per_cell, per_row, form.density)
        self._constant = form.constant(self.prior)
        self._workspaces: dict[int, Workspace] = {}
        per_lane = 16 * (data.contraction.n_table_cells + 2 * model.layout.n_cells)
        self._width = min(max(LANES_BYTES // per_lane, 1), 16)
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 and data.work > _WORTH_THREADS else None
        self.signed = self.prior.signed
        self.magnitude = abs(self._constant) + model.magnitude(data)

    def expect(self, natural: np.ndarray) -> np.ndarray:
        """Expected statistics (n_cells, n_lanes) under natural parameters of the same shape, in batches of lanes."""
        batches = range(0, natural.shape[1], self._width)
        expected = [self.model.expect(natural[:, at : at + self._width], self.data).statistics for at in batches]
        return np.concatenate(expected, axis=1)

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place, lanes in batches that fit the cache; see `skvbem.vbem.driver.Ascent`."""
        n_lanes, width = statistics.shape[1], self._width
        if n_lanes <= width:
            return self._advance(statistics, n_steps)
        trace = np.empty((n_steps, n_lanes))
        for at in range(0, n_lanes, width):
            lanes = slice(at, min(at + width, n_lanes))
            batch = np.ascontiguousarray(statistics[:, lanes])
            trace[:, lanes] = self._advance(batch, n_steps)
            statistics[:, lanes] = batch
        return trace

    def _advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        n_lanes = statistics.shape[1]
        if n_lanes not in self._workspaces:
            self._workspaces[n_lanes] = Workspace(self.data.contraction, n_lanes)
        workspace = self._workspaces[n_lanes]
        trace = np.empty((n_steps, n_lanes))
        if self._pool is None:
            workspace.advance(*self._form_arguments, statistics, trace)
        else:
            for step in range(n_steps):
                workspace.from_form(*self._form_arguments, statistics)
                list(self._pool.map(workspace.block, range(self.data.contraction.n_blocks)))
                workspace.collect(statistics, trace[step])
        if self._constant:
            trace += self._constant
        return trace

    def failure(self) -> Exception:
        """Why the objective of a plain step may not be a number."""
        if self.form.lowered_by:
            return NoInteriorModeError(
                "The posterior has no interior mode in the probability basis: some table cell has a prior "
                "concentration below 1 and not enough expected counts to make up for it. Use map_basis='natural', "
                "where the mode always exists, or a prior of 1 or more."
            )
        return FloatingPointError("The objective is not a number. That is a defect: please report it with the data.")


def _log_gamma_where_positive(x: np.ndarray) -> np.ndarray:
    return log_gamma(np.where(x > 0, x, 1.0))
