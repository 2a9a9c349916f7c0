r"""Information of complete data that hidden nodes and missing cells take away [Louis 1982].

In unconstrained coordinates the score of a complete row is :math:`s_x = J^\top u(x, y)`, J the derivatives of the
natural parameters, u the statistics of the row under the states x of what is hidden, so that

.. math::

    \mathrm{Cov}(s) = \sum_x q(x) (s_x s_x^\top + J^\top C_x J) - \bar s \bar s^\top, \qquad
    \bar s = \sum_x q(x) s_x,

with C the covariance of statistics over missing cells of which an emission has moments, and over hidden numbers. Parts
of a row that are independent given what is observed are summed apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skvbem._lazy import cached_property
from skvbem.capabilities import ScoreCovariance
from skvbem.models.mixed_network.beliefs import beliefs
from skvbem.models.mixed_network.data import FactorRows, MixedData
from skvbem.models.mixed_network.model import MixedNetwork
from skvbem.models.network.information import check_states, joint_posterior
from skvbem.models.network.joint_states import cells_of_states
from skvbem.models.network.program import Plan
from skvbem.models.relabelings import coordinate_blocks

# Numbers in the scores of some contexts.
_BLOCK = 2**21


def score_covariance(
    model: MixedNetwork, point: tuple, data: MixedData, *, joint: bool = True, max_states: int = 4096
) -> list[ScoreCovariance]:
    """The covariance of complete-data scores at a point; see `skvbem.capabilities.Information`.

    Without `joint` there is a block for each table, one for each component, and one for what several share.
    """
    check_states(data.program, max_states)
    scores = _Scores(model, data, model.prior.natural(point), model.prior.jacobian(point))
    covariance = scores.of_known_rows()
    of_tables, *_ = model.prior.split(scores.natural)
    numbers = {id(plan): number for number, plan in enumerate(data.program.plans)}
    for plan, contexts, _, posterior in beliefs(
        model, of_tables, lambda k, rows: scores.steps[k].log_likelihood(rows), data
    ):
        responsibilities = joint_posterior(plan, posterior)
        size = max(1, _BLOCK // (responsibilities.shape[1] * len(covariance)))
        for at in range(0, len(responsibilities), size):
            rows = slice(contexts.start + at, min(contexts.start + at + size, contexts.stop))
            covariance += scores.of_contexts(numbers[id(plan)], plan, rows, responsibilities[at : at + size])
    d = len(covariance)
    blocks = [np.arange(d)] if joint else [block for block in coordinate_blocks(scores.free, d) if len(block)]
    return [ScoreCovariance(block, covariance[np.ix_(block, block)]) for block in blocks]


@dataclass(frozen=True, eq=False)
class _Scores:
    """Scores of complete rows, by the joint states of what is hidden in them.

    Parameters
    ----------
    model : MixedNetwork
    data : MixedData
    natural : ndarray of shape (n_cells,)
    jacobian : ndarray of shape (n_cells, d)
        Derivatives of these.
    """

    model: MixedNetwork
    data: MixedData
    natural: np.ndarray
    jacobian: np.ndarray

    @cached_property
    def steps(self) -> list[Any]:
        """The emissions at the point, then clusters of hidden numbers."""
        return self.model.all_steps(self.natural, self.data)

    @cached_property
    def cells(self) -> list[list[np.ndarray]]:
        """Cells of each component of each emission, those that it shares with others among them."""
        first_cells = np.cumsum([0, *self.model.prior.n_cells])[1:-1]
        cells = []
        for emission, first, n_states in zip(self.model.emissions, first_cells, self.model.n_states):
            component = emission.component_of_cell(n_states)
            cells.append([first + np.flatnonzero((component == c) | (component < 0)) for c in range(n_states)])
        return cells

    @property
    def free(self) -> list[np.ndarray]:
        """Coordinates that each table has a part in, and each component of an emission."""
        layout = self.model.layout
        of_tables = [layout.first_cell[node] + np.arange(layout.table_cells(node)) for node in range(layout.n_tables)]
        groups = [*of_tables, *(cells for emission_cells in self.cells for cells in emission_cells)]
        return [np.flatnonzero(self.jacobian[cells].any(axis=0)) for cells in groups]

    def of_known_rows(self) -> np.ndarray:
        """Covariances (d, d) of missing cells in rows whose parents are all observed."""
        total = np.zeros((self.jacobian.shape[1],) * 2)
        for known in self.data.known:
            n_states = self.model.n_states[known.emission]
            responsibilities = (known.states[:, None] == np.arange(n_states)) * known.weight[:, None]
            total += self._of_missing_cells(known.emission, known.table, responsibilities)
        for each in () if self.data.hidden_numbers is None else self.data.hidden_numbers.known:
            total += each.score_covariance(self.natural, self.jacobian)
        return total

    def of_contexts(self, number: int, plan: Plan, rows: slice, responsibilities: np.ndarray) -> np.ndarray:
        """Covariances (d, d) of some contexts of a plan under posteriors (n_contexts, n_states)."""
        contraction = self.data.program.contraction
        first = int(contraction.arrays["plan_context"][number])
        weight = contraction.arrays["weight"][first + rows.start : first + rows.stop]
        cells, has = cells_of_states(self.data.program, number, rows)
        scores = np.zeros((*responsibilities.shape, self.jacobian.shape[1]))
        for family in range(cells.shape[2]):
            scores += self.jacobian[cells[:, :, family]] * has[:, :, family, None]
        digits = dict(zip(plan.hidden, np.unravel_index(np.arange(responsibilities.shape[1]), plan.cardinalities)))
        weighted = weight[:, None] * responsibilities
        total = np.zeros((self.jacobian.shape[1],) * 2)
        for factor, plan_factor in zip(self.data.factors[number], plan.factors):
            components = factor.components(plan_factor, digits, self.model.layout)[rows]
            scores += self._of_factor(factor, rows, components)
            by_component = np.zeros((len(components), factor.n_states))
            np.add.at(by_component, (np.arange(len(components))[:, None], components), weighted)
            for k, table in zip(factor.emissions, factor.tables):
                total += self._of_missing_cells(k, table[rows], by_component)
        mean = np.einsum("ns,nsd->nd", responsibilities, scores)
        flat = scores.reshape(-1, scores.shape[2])
        return total + (flat * weighted.reshape(-1, 1)).T @ flat - (mean * weight[:, None]).T @ mean

    def _of_factor(self, factor: FactorRows, rows: slice, components: np.ndarray) -> np.ndarray:
        """Terms of emissions in the scores, (n_rows, n_hidden_states, d)."""
        by_component: np.ndarray | float = 0.0
        for k, table in zip(factor.emissions, factor.tables):
            if k >= len(self.model.emissions):
                by_component = by_component + self.steps[k].scores(table[rows], self.jacobian)
                continue
            statistics = self.steps[k].of_rows(table[rows])
            scores = [statistics[:, c] @ self.jacobian[cells] for c, cells in enumerate(self.cells[k])]
            by_component = by_component + np.stack(scores, axis=1)
        return np.take_along_axis(np.asarray(by_component), components[:, :, None], axis=1)

    def _of_missing_cells(self, k: int, table, responsibilities: np.ndarray) -> np.ndarray | float:
        """Covariances (d, d) of missing cells of an emission, components with weights (n_rows, n_states)."""
        if k >= len(self.model.emissions):
            return self.steps[k].score_covariance(table, responsibilities, self.jacobian)
        hidden = self.steps[k].hidden_covariance(table, np.ascontiguousarray(responsibilities))
        if hidden is None:
            return 0.0
        return sum(self.jacobian[cells].T @ of @ self.jacobian[cells] for cells, of in zip(self.cells[k], hidden))
