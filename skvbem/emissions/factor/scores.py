"""Answers of one factor analyzer beyond those of an emission: factors of rows, variances of cells."""

from __future__ import annotations

import numpy as np

from skvbem._numerics import unpack_symmetric
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.emissions.factor.table import FactorTable
from skvbem.families import Regression, RegressionPoint


def factors_of(emission: FactorAnalyzer, block: FactorTable, natural: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors of rows under natural parameters (n_cells,) of one component: means (n, q), covariances (n, q, q)."""
    n, q = len(block), emission.n_factors
    factors, regressors, _ = emission.step(natural, block)._located(block)
    covariances = unpack_symmetric(np.moveaxis(factors.covariance[0], -1, 0), q)
    if len(factors.pattern):
        covariances = covariances[factors.pattern]
    return regressors[0, 1:].T, np.broadcast_to(covariances, (n, q, q))


def variances_of(
    emission: FactorAnalyzer, posterior: Regression | RegressionPoint, means: np.ndarray, covariances: np.ndarray
) -> np.ndarray:
    r"""Variances of cells given the factors of their rows, in the units of the data, (n_rows, d), of one component.

    At a point those of the noise and of what is not known of the factors; under a posterior also those of means and
    loadings, :math:`\langle 1/\tau_j\rangle (1 + \operatorname{tr} V_j \langle\tilde x\tilde x^\top\rangle) +
    \bar\lambda_j^\top \operatorname{Cov}(x) \bar\lambda_j`.
    """
    noise_of = emission.layout(1).noise_of_row
    if isinstance(posterior, RegressionPoint):
        loadings, noise = posterior.coefficients[:, 1:], 1 / posterior.precision[noise_of]
        times = np.ones((len(means), emission.n_columns))
    else:
        loadings, noise = posterior.mean[:, 1:], mean_noise(posterior)[noise_of]
        regressors = np.column_stack([np.ones(len(means)), means])
        column_covariance = posterior.covariance[posterior.precision_of]
        times = 1 + np.einsum("jab,na,nb->nj", column_covariance, regressors, regressors)
        times += np.einsum("jab,nab->nj", column_covariance[:, 1:, 1:], covariances)
    return emission.unit**2 * (noise * times + np.einsum("ja,nab,jb->nj", loadings, covariances, loadings))


def mean_noise(posterior: Regression) -> np.ndarray:
    """Expected variances of the noises, (n_noises,), infinite where there are none."""
    with np.errstate(divide="ignore"):
        return posterior.rate / np.maximum(posterior.shape - 1, 0.0)
