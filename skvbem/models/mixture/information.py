r"""What components take from the information of complete data [Louis 1982].

In unconstrained coordinates the score of a complete row of component k is :math:`s_k = J^\top u_k`, J the derivatives
of the natural parameters and :math:`u_k` the statistics of the row, in the cells of k. Given what is observed of it,
the row is of component k with probability :math:`r_k`, so that

.. math::

    \mathrm{Cov}(s) = \sum_k r_k (s_k s_k^\top + J^\top C_k J) - \bar s \bar s^\top, \qquad \bar s = \sum_k r_k s_k,

with :math:`s_k` expected, and :math:`C_k` the covariance of statistics, over the missing cells of which an emission has
moments.
"""

from __future__ import annotations

import numpy as np

from skvbem.capabilities import ScoreCovariance
from skvbem.models.information import coordinate_blocks
from skvbem.models.mixture.model import Mixture, MixtureData
from skvbem.models.mixture.responsibilities import responsibilities


def score_covariance(
    model: Mixture, point: tuple, data: MixtureData, *, joint: bool = True, max_states: int = 4096
) -> list[ScoreCovariance]:
    """The covariance of complete-data scores at a point; see `skvbem.capabilities.Information`.

    Without `joint` there is a block for the weights, one for each component, and one for what all components share.
    `max_states` makes no difference.
    """
    cells_of_components = model.cells_of_components()
    natural, jacobian = model.prior.natural(point), model.prior.jacobian(point)
    weights = np.arange(model.prior.blocks[0].n_free_parameters)
    of_weights = model.weights.statistics(np.eye(model.n_components)).T @ jacobian[: model.weights.n_cells]
    free = [np.flatnonzero(jacobian[cells].any(axis=0)) for cells in cells_of_components]
    derivatives = [jacobian[np.ix_(cells, of)] for cells, of in zip(cells_of_components, free)]
    d = jacobian.shape[1]
    second, squared_mean = np.zeros((d, d)), np.zeros((d, d))
    step = model.step(natural, data)
    for rows, q in responsibilities(model, natural, data):
        block, weight = data.table[rows], data.weight[rows]
        weighted = weight[:, None] * q
        mean, statistics = q @ of_weights, step.of_rows(block)
        second += of_weights.T @ (weighted.sum(axis=0)[:, None] * of_weights)
        hidden = step.hidden_covariance(block, weighted)
        for k, (of, derivative) in enumerate(zip(free, derivatives)):
            score = statistics[:, k] @ derivative
            second[np.ix_(of, of)] += (score.T * weighted[:, k]) @ score
            if hidden is not None:
                second[np.ix_(of, of)] += derivative.T @ hidden[k] @ derivative
            crossed = np.outer(of_weights[k, weights], weighted[:, k] @ score)
            second[np.ix_(weights, of)] += crossed
            second[np.ix_(of, weights)] += crossed.T
            mean[:, of] += q[:, [k]] * score
        squared_mean += (mean.T * weight) @ mean
    covariance = second - squared_mean
    blocks = [np.arange(d)] if joint else [block for block in (weights, *coordinate_blocks(free, d)) if len(block)]
    return [ScoreCovariance(block, covariance[np.ix_(block, block)]) for block in blocks]
