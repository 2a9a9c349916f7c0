r"""Dirichlet strengths that raise the bound [Beal (2.79)].

With q(x) kept, the bound after an M step is :math:`H(q) + \ln \mathrm{BD}(\bar N; \lambda)`, so a prior that raises the
Bayesian Dirichlet score of the expected counts raises the bound. Each node's prior is multiplied by one strength. The
score may have several maxima, and may rise without end (balanced counts want an infinitely strong prior): the search is
bounded.
"""

from __future__ import annotations

from collections.abc import Callable
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
    for first, last in pairwise(group_starts):
        cells = slice(base.row_starts[first], base.row_starts[last])
        starts = base.row_starts[first : last + 1] - base.row_starts[first]
        shape, n = base.concentration[cells], counts[cells]

        def log_evidence(strength, shape=shape, n=n, starts=starts):
            return float(Dirichlet(strength * shape, starts).log_evidence(n))

        strength = best_strength(log_evidence)
        if log_evidence(strength) > float(Dirichlet(concentration[cells], starts).log_evidence(n)):
            concentration[cells] = strength * shape
    return Dirichlet(concentration, prior.row_starts)


def best_strength(log_evidence: Callable[[float], float]) -> float:
    """The strength of a prior, between those of `STRENGTHS`, under which complete data are most probable."""
    low, high = np.log(STRENGTHS)
    grid = np.linspace(low, high, 25)

    def negative_log_evidence(log_strength: float) -> float:
        return -log_evidence(float(np.exp(log_strength)))

    negatives_on_grid = [negative_log_evidence(s) for s in grid]
    k = int(np.argmin(negatives_on_grid))
    minimum = minimize_scalar(
        negative_log_evidence, bounds=(grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]), method="bounded"
    )
    return float(np.exp(min((negatives_on_grid[k], grid[k]), (float(minimum.fun), float(minimum.x)))[1]))
