"""Automatic relevance determination: precisions of the coefficients of single regressors, as hidden variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.hyperpriors import GammaHyperprior
from skvbem.families.regression import Regression


def with_learned_precisions(prior: Regression, learned: np.ndarray, shape: float, rate: float) -> Hierarchical:
    r"""A regression whose coefficients of some regressors have precisions with a Gamma prior, one for each regressor.

    Parameters
    ----------
    prior : Regression
        Of means 0 there; its own precisions of these regressors are not asked.
    learned : ndarray of bool, shape (n_regressors,)
    shape, rate : float
        Of the Gamma distributions.
    """
    d = prior.n_regressors
    cells = prior.precision_cells
    of_diagonal = np.cumsum(np.concatenate([[0], np.arange(d, 1, -1)]))  # of packed upper triangles
    known, unit = prior.coordinates.copy(), prior.coordinates.copy()
    loadings = np.zeros((int(learned.sum()), len(known)))
    for row, regressor in enumerate(np.flatnonzero(learned)):
        of_regressor = cells[:, of_diagonal[regressor]]
        known[of_regressor], unit[of_regressor] = 0.0, 1.0
        loadings[row, of_regressor] = 1.0
    n = len(loadings)
    constant = -float(replace(prior, coordinates=unit).log_normalizer())
    power = np.full(n, prior.n_rows / 2)
    hyperprior = GammaHyperprior(np.full(n, float(shape)), np.full(n, float(rate)), power, loadings, constant)
    return Hierarchical(replace(prior, coordinates=known), hyperprior)


def regression_of(prior: ConjugateFamily) -> Regression:
    """The regression of a prior, whether precisions of its coefficients are learned or not."""
    regression = prior.base if isinstance(prior, Hierarchical) else prior
    assert isinstance(regression, Regression)
    return regression
