r"""Minka's evidence of the number of principal components: Laplace's approximation, to set beside bounds of factors.

With :math:`\lambda` the eigenvalues of the covariance matrix of n rows of d columns, and :math:`v` the mean of those
beyond the first k, :math:`\tilde\lambda_j` is :math:`\lambda_j`, or v beyond the first k, and

.. math::

    \ln p(Y \mid k) \approx \ln p(U) - \tfrac n2 \Bigl[\sum_{j \le k} \ln\lambda_j + (d - k) \ln v\Bigr]
        + \tfrac{m + k}{2} \ln 2\pi - \tfrac k2 \ln n
        - \tfrac12 \sum_{i \le k} \sum_{j > i}
          \ln\bigl[n (\lambda_i - \lambda_j)(\tilde\lambda_j^{-1} - \tilde\lambda_i^{-1})\bigr],

with :math:`m = dk - k(k+1)/2` and p(U) the uniform density of k orthogonal axes [Minka 2000]. Terms that all k share
are left out, so that values compare with each other and with no other score.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

# Eigenvalues below this share of the largest are rounding.
_ROUNDING = 1e-13


def minka_evidence(X) -> np.ndarray:
    """Minka's log evidence of each number of principal components, nats, up to what all numbers share.

    It is what scikit-learn's ``PCA(n_components="mle")`` maximizes. Here it stands beside the bounds of models with
    as many factors and one noise, ``FactorGaussian(q, noise="spherical")``, which have every constant.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Without missing values.

    Returns
    -------
    ndarray of shape (min(n_samples, n_features) - 1,)
        Evidence of 1, 2, ... components; -inf where the last of them has no variance.

    See Also
    --------
    evidence_table : scores of a fitted estimator, with every constant.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skvbem.evidence import minka_evidence
    >>> int(minka_evidence(load_iris().data).argmax()) + 1
    3
    """
    table = _complete_table(X)
    n, d = table.shape
    singular = np.linalg.svd(table - table.mean(axis=0), compute_uv=False)
    variance = np.zeros(d)
    variance[: len(singular)] = singular**2 / (n - 1)
    return np.array([_of_rank(variance, k, n) for k in range(1, min(n, d))])


def _complete_table(X) -> np.ndarray:
    """X as floats, of three rows and two columns at least; nothing of it is missing."""
    table = np.asarray(X, dtype=float)
    if table.ndim != 2 or table.shape[0] < 3 or table.shape[1] < 2:
        raise ValueError(
            f"X of minka_evidence must have at least three rows and two columns. Got an array of shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise ValueError(
            "X of minka_evidence must have no missing or infinite cells. VBFactorAnalysis takes missing ones."
        )
    return table


def _of_rank(variance: np.ndarray, k: int, n: int) -> float:
    """The log evidence of k components of n rows, of variances (d,) in descending order."""
    d, least = len(variance), _ROUNDING * variance[0]
    if not variance[k - 1] > least:
        return -np.inf
    rest = max(float(variance[k:].mean()), least)
    rank = d - np.arange(k)
    of_axes = -k * np.log(2.0) + (gammaln(rank / 2) - rank / 2 * np.log(np.pi)).sum()
    fit = -0.5 * n * (np.log(variance[:k]).sum() + (d - k) * np.log(rest))
    m = d * k - k * (k + 1) / 2
    smoothed = np.concatenate([variance[:k], np.full(d - k, rest)])
    i, j = np.triu_indices(d, 1)
    i, j = i[i < k], j[i < k]
    curvature = (variance[i] - variance[j]) * (1 / smoothed[j] - 1 / smoothed[i])
    with np.errstate(divide="ignore"):
        log_det = (np.log(curvature) + np.log(n)).sum()
    return float(of_axes + fit + 0.5 * (m + k) * np.log(2 * np.pi) - 0.5 * (log_det + k * np.log(n)))
