r"""Gamma priors of hidden parts of a regression's prior: precisions of coefficients, and rates of noise.

All rows share the precision of the coefficients of a regressor (automatic relevance determination):

.. math:: c_{sj} \mid \rho_s, \nu_j \sim N(0, 1 / (\rho_s \nu_j)), \qquad \nu_j \sim \mathrm{Gamma}(c, d).

The precision of each noise has a rate of its own, or one that it shares with others:

.. math:: \rho_g \mid b_g \sim \mathrm{Gamma}(a_g, b_g + E_g), \qquad b_g \sim \mathrm{Gamma}(c, d),

so that :math:`\rho_g / d` is a beta prime variate of shapes :math:`a_g` and c. With shapes of 1 the share
:math:`1 / (1 + \rho_g / d)` is uniform. The floor E, tiny, keeps the evidence of targets without noise finite; see
`skvbem.families.normal_hyperpriors`, where more is said of it: the density is normalized as if it were 0.

Rates and precisions are independent given the parameters.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array, vstack

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
    of_diagonal = prior.precision_cells[:, diagonal_places(prior.n_regressors)]
    which, matrix = np.nonzero(block[:, None] == block_of)
    sums = csr_array(
        (np.ones(len(which)), (which, of_diagonal[matrix, regressor[which]])), (len(block), len(prior.coordinates))
    )
    power = np.bincount(block_of[prior.precision_of], minlength=len(learned))[block] / 2
    return _hierarchical(prior, GammaHyperprior(np.full(len(block), shape), np.full(len(block), rate), power, sums))


def with_hidden_rates(
    prior: Regression | Hierarchical,
    shape: float,
    rate: float,
    floor: float | np.ndarray,
    rate_of: np.ndarray | None = None,
) -> Hierarchical:
    """A regression whose precisions of noise have rates with a Gamma prior, one for each noise or shared by several.

    Parameters
    ----------
    prior : Regression, or Hierarchical
        Of unknown noise, with learned precisions or without; its own rates are not asked.
    shape, rate : float
        Of the Gamma distributions.
    floor : float or ndarray of shape (n_rates,)
        E.
    rate_of : ndarray of int, shape (n_noises,), optional
        Which rate each noise has; one of its own by default.
    """
    coordinates, split = prior.coordinates, regression_of(prior).split
    cells = split(np.arange(len(coordinates)))[-1]
    rate_of = np.arange(len(cells)) if rate_of is None else rate_of
    n = int(rate_of.max(initial=-1)) + 1
    twice = csr_array((np.full(len(cells), 2.0), (rate_of, cells)), (n, len(coordinates)))
    power = np.bincount(rate_of, split(coordinates)[-2] / 2, n)
    hierarchical = _hierarchical(prior, GammaHyperprior(np.full(n, shape), np.full(n, rate), power, twice))
    return replace(hierarchical, base=hierarchical.base + twice.T @ np.broadcast_to(floor, n))


def _hierarchical(prior: Regression | Hierarchical, hyperprior: GammaHyperprior) -> Hierarchical:
    """A prior below one more group of hidden hyperparameters, to which its log normalizer at their value 1 belongs."""
    regression, groups = regression_of(prior), [hyperprior]
    if isinstance(prior, Hierarchical):
        assert isinstance(prior.hyperprior, GammaHyperprior)
        groups = [prior.hyperprior, hyperprior]
    shape, rate, power = (np.concatenate([getattr(x, name) for x in groups]) for name in ("shape", "rate", "power"))
    of_all = vstack([csr_array(x.loadings) for x in groups], format="csr")
    of_ones = of_all.sum(axis=0)
    known = np.where(of_ones > 0, 0.0, regression.coordinates)
    constant = -float(replace(regression, coordinates=known + of_ones).log_normalizer())
    loadings = of_all.toarray() if np.prod(of_all.shape) <= _MAX_DENSE else of_all
    together = GammaHyperprior(shape, rate, power, loadings, constant)
    return Hierarchical(replace(regression, coordinates=known), together)


def regression_of(prior: ConjugateFamily) -> Regression:
    """The regression of a prior, whether some of its hyperparameters are hidden or not."""
    regression = prior.base if isinstance(prior, Hierarchical) else prior
    assert isinstance(regression, Regression)
    return regression
