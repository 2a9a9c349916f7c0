r"""Information of complete data that hidden variables take away [Louis 1982], of any model, by differences.

With u the statistics and J the derivatives of natural parameters by unconstrained coordinates, the gradient of the
likelihood is :math:`J^\top E u`. The covariance of the scores of complete data is the information of these, less what
minus the derivative of this gradient is. Differences are of fourth order: 4 d E steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Width of differences, in standard deviations of complete data, and E steps side by side. By hand: scores of 400 steps
# then have derivatives to nine digits.
_WIDTH, _LANES = 0.02, 32


def covariance_by_differences(model: Any, point: Any, data: Any) -> np.ndarray:
    """The covariance of complete-data scores at a point given what was observed, (n_free, n_free)."""
    prior, free = model.prior, model.prior.to_unconstrained(point)
    statistics = model.expect(prior.natural(point)[:, None], data).statistics[:, 0]
    complete = prior.information(point, statistics)
    width = _WIDTH / np.sqrt(np.maximum(np.diag(complete), 1.0))
    steps = np.concatenate([times * np.diag(width) for times in (-2, -1, 1, 2)], axis=1)
    scores = np.empty(steps.shape)
    for at in range(0, steps.shape[1], _LANES):
        points = [prior.from_unconstrained(free + step) for step in steps[:, at : at + _LANES].T]
        expected = model.expect(np.stack([prior.natural(each) for each in points], axis=1), data).statistics
        scores[:, at : at + _LANES] = np.stack([prior.jacobian(p).T @ u for p, u in zip(points, expected.T)], axis=1)
    a, b, c, d = np.split(scores, 4, axis=1)
    slope = (8 * (c - b) - (d - a)) / (12 * width)
    return complete + (slope + slope.T) / 2
