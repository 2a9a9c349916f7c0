r"""Dirichlet strengths that raise the bound [Beal (2.79)].

With q(x) kept, the bound after an M step is :math:`H(q) + \ln \mathrm{BD}(\bar N; \lambda)`, so a prior that raises the
Bayesian Dirichlet score of the expected counts raises the bound. Each node's prior is multiplied by one strength. The
score may have several maxima, and may rise without end (balanced counts want an infinitely strong prior): the search is
bounded.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import minimize_scalar

from skvbem.families import Dirichlet

#: Strengths are sought between these multiples of the prior given.
STRENGTHS = (1e-3, 1e3)


def strengthened(prior: Dirichlet, counts: np.ndarray, base: Dirichlet, group_starts: np.ndarray) -> Dirichlet:
    """The multiple of `base`, one per group of rows, under which the counts score best; never worse than `prior`.

    Parameters
    ----------
    prior : Dirichlet
        The present prior, a multiple of `base` in each group.
    counts : ndarray of shape (n_cells,)
    base : Dirichlet
        The prior that the strengths multiply.
    group_starts : ndarray of shape (n_groups + 1,)
        First row of each group, and the end.
    """
    concentration = prior.concentration.copy()
    low, high = np.log(STRENGTHS)
    grid = np.linspace(low, high, 25)
    for first, last in pairwise(group_starts):
        cells = slice(base.row_starts[first], base.row_starts[last])
        starts = base.row_starts[first : last + 1] - base.row_starts[first]
        shape, n = base.concentration[cells], counts[cells]

        def loss(log_strength, shape=shape, n=n, starts=starts):
            return -float(Dirichlet(np.exp(log_strength) * shape, starts).log_evidence(n))

        losses = [loss(s) for s in grid]
        k = int(np.argmin(losses))
        found = minimize_scalar(loss, bounds=(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]), method="bounded")
        choices = [(losses[k], grid[k]), (float(found.fun), float(found.x))]
        value, log_strength = min(choices)
        if value < -float(Dirichlet(concentration[cells], starts).log_evidence(n)):
            concentration[cells] = np.exp(log_strength) * shape
    return Dirichlet(concentration, prior.row_starts)
