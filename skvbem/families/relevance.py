"""Automatic relevance determination: precisions of the coefficients of single regressors, as hidden variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from skvbem._numerics import diagonal_places
from skvbem.families.base import ConjugateFamily
from skvbem.families.hierarchical import Hierarchical
from skvbem.families.hyperpriors import GammaHyperprior
from skvbem.families.regression import Regression

# Cells of the sums that hidden precisions ask for, above which they are a sparse matrix.
_MAX_DENSE = 2**16


def with_learned_precisions(
    prior: Regression, learned: np.ndarray, shape: float, rate: float, block_of: np.ndarray | None = None
) -> Hierarchical:
    r"""A regression whose coefficients of some regressors have precisions with a Gamma prior, one for each regressor.

    Parameters
    ----------
    prior : Regression
        Of means 0 there; its own precisions of these regressors are not asked.
    learned : ndarray of bool, shape (n_regressors,) or (n_blocks, n_regressors)
        Of all rows, or of each block of them.
    shape, rate : float
        Of the Gamma distributions.
    block_of : ndarray of int, shape (n_precisions,), optional
        Which block the rows of each precision matrix are in; blocks have precisions of their own.
    """
    learned = np.atleast_2d(learned)
    if block_of is None:
        block_of = np.zeros(prior.n_precisions, dtype=int)
    block, regressor = np.nonzero(learned)
    n, of_diagonal = len(block), prior.precision_cells[:, diagonal_places(prior.n_regressors)]
    which, matrix = np.nonzero(block[:, None] == block_of)
    cells = of_diagonal[matrix, regressor[which]]
    known, unit = prior.coordinates.copy(), prior.coordinates.copy()
    known[cells], unit[cells] = 0.0, 1.0
    sums = csr_array((np.ones(len(cells)), (which, cells)), shape=(n, len(known)))
    loadings = sums.toarray() if n * len(known) <= _MAX_DENSE else sums
    constant = -float(replace(prior, coordinates=unit).log_normalizer())
    power = np.bincount(block_of[prior.precision_of], minlength=len(learned))[block] / 2
    hyperprior = GammaHyperprior(np.full(n, float(shape)), np.full(n, float(rate)), power, loadings, constant)
    return Hierarchical(replace(prior, coordinates=known), hyperprior)


def regression_of(prior: ConjugateFamily) -> Regression:
    """The regression of a prior, whether precisions of its coefficients are learned or not."""
    regression = prior.base if isinstance(prior, Hierarchical) else prior
    assert isinstance(regression, Regression)
    return regression
