r"""Fit of factors to covariances: chi-square against the saturated model, indices, and Minka's number of components.

The test is by maximum likelihood, with Bartlett's factor, as R's factanal has it,

.. math:: \chi^2 = \left(n - 1 - \frac{2d + 5}{6} - \frac{2q}{3}\right) \frac{2 (L_S - L)}{n}, \qquad
          \mathrm{df} = \tfrac12 [(d - q)^2 - d - q],

L the log likelihood of q factors and :math:`L_S` that of any covariance matrix, both by EM where cells are missing.
With one noise for all columns there are more degrees of freedom: free parameters of covariance matrices less those of
factors and noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import chi2, ncx2

from skvbem._tabular import named_values
from skvbem.emissions import Gaussian
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.labels import MixtureMethod
from skvbem.optima.plan import FitPlan
from skvbem.reading.rows import TableReading
from skvbem.vbem import posteriors

# Mass of the interval of RMSEA that is reported.
_MASS = 0.9
# How exactly the saturated model is fitted, nats, and its most steps.
_TOLERANCE, _MAX_STEPS = 1e-7, 10_000


@dataclass(frozen=True)
class FitIndices:
    """Fit indices of factors, or of a network of numbers, by maximum likelihood, against the covariances of the data.

    Parameters
    ----------
    chi2 : float
        Against the saturated model; of factors with Bartlett's factor.
    degrees_of_freedom : int
    p_value : float
        NaN without degrees of freedom, as are indices that divide by them.
    rmsea : float
        Root mean square error of approximation.
    rmsea_interval : tuple of float
        Interval of 90 %.
    cfi, tli : float
        Comparative fit index, and Tucker and Lewis's, against columns without correlation.
    srmr : float
        Root mean square of the residual correlations.
    log_likelihood : float
        Nats.
    n_free_parameters : int
    aic, bic : float
        Lower is better.
    n_samples : float
        Rows with an observed cell, by weight.
    """

    chi2: float
    degrees_of_freedom: int
    p_value: float
    rmsea: float
    rmsea_interval: tuple[float, float]
    cfi: float
    tli: float
    srmr: float
    log_likelihood: float
    n_free_parameters: int
    aic: float
    bic: float
    n_samples: float

    def _facts(self) -> dict[str, str]:
        """Indices by name, numbers below each other."""
        low, high = self.rmsea_interval
        return {
            "log likelihood": f"{self.log_likelihood:14.4f} nats, {self.n_free_parameters} free parameters, "
            f"n = {self.n_samples:g}",
            "chi2": f"{self.chi2:14.4f} on {self.degrees_of_freedom} degrees of freedom, p = {self.p_value:.3g}",
            "RMSEA": f"{self.rmsea:14.4f}, 90 % interval [{low:.4f}, {high:.4f}]",
            "CFI / TLI": f"{self.cfi:14.4f} / {round(self.tli, 4) + 0.0:.4f}",
            "SRMR": f"{self.srmr:14.4f}",
            "AIC / BIC": f"{self.aic:14.3f} / {self.bic:.3f} (lower is better)",
        }

    def __repr__(self):
        return "\n".join(f"{name:<16}{text}" for name, text in self._facts().items())

    def _repr_html_(self):
        return named_values({name: text.strip() for name, text in self._facts().items()})


def fit_indices(
    reading: TableReading,
    log_likelihood: float,
    covariance: np.ndarray,
    n_factors: int,
    n_free_parameters: int,
    owner: str,
) -> FitIndices:
    """Fit indices of q factors by maximum likelihood.

    Parameters
    ----------
    reading : TableReading
        The data of the fit.
    log_likelihood : float
        Log likelihood of the factors, nats.
    covariance : ndarray of shape (d, d)
        Covariance of the columns by the factors.
    n_factors : int
    n_free_parameters : int
        That can be told from the data.
    owner : str
        For messages.

    Raises
    ------
    ValueError
        If no covariance matrix is most likely, since there are too few rows or columns that depend on each other.
    """
    ((cells, weight),) = reading.blocks
    d, n = len(covariance), _n_rows(cells[0], weight)
    saturated, of_saturated = saturated_model(reading, f"fit_indices of {owner}")
    null = _without_correlations(cells[0], weight)
    bartlett = n - 1 - (2 * d + 5) / 6
    statistic = max((bartlett - 2 * n_factors / 3) * 2 * (saturated - log_likelihood) / n, 0.0)
    of_null = max(bartlett * 2 * (saturated - null) / n, 0.0)
    return _indices(statistic, of_null, of_saturated, covariance, log_likelihood, n_free_parameters, n)


def fit_indices_of_network(
    reading: TableReading, log_likelihood: float, covariance: np.ndarray, n_free_parameters: int, owner: str
) -> FitIndices:
    """Fit indices of a network of numbers by maximum likelihood: chi-square is twice the difference of likelihoods.

    Parameters
    ----------
    reading : TableReading
        The data of the fit, all columns one group.
    log_likelihood : float
        Log likelihood of the network, nats.
    covariance : ndarray of shape (d, d)
        Covariance of the columns by the network.
    n_free_parameters : int
        That can be told from the data.
    owner : str
        For messages.

    Raises
    ------
    ValueError
        As `fit_indices`.
    """
    ((cells, weight),) = reading.blocks
    saturated, of_saturated = saturated_model(reading, f"fit_indices of {owner}")
    of_null = max(2 * (saturated - _without_correlations(cells[0], weight)), 0.0)
    statistic, n = max(2 * (saturated - log_likelihood), 0.0), _n_rows(cells[0], weight)
    return _indices(statistic, of_null, of_saturated, covariance, log_likelihood, n_free_parameters, n)


def _indices(
    statistic: float,
    of_null: float,
    of_saturated: np.ndarray,
    covariance: np.ndarray,
    log_likelihood: float,
    n_free_parameters: int,
    n: float,
) -> FitIndices:
    """Fit indices from the chi-square of a model, and that of columns without correlations."""
    d = len(covariance)
    df, df_null = d * (d + 3) // 2 - n_free_parameters, d * (d - 1) // 2
    excess, excess_of_null = max(statistic - df, 0.0), max(of_null - df_null, statistic - df, 0.0)
    rmsea, interval, p_value, tli = np.nan, (np.nan, np.nan), np.nan, np.nan
    if df > 0:
        p_value = float(chi2.sf(statistic, df))
        rmsea = sqrt(excess / (df * (n - 1)))
        low, high = (sqrt(_noncentrality(statistic, df, 0.5 + side * _MASS / 2) / (df * (n - 1))) for side in (1, -1))
        interval = low, high
        tli = (of_null / df_null - statistic / df) / (of_null / df_null - 1) if of_null != df_null else np.nan
    deviations = np.sqrt(np.diagonal(of_saturated))
    residuals = (of_saturated - covariance) / np.outer(deviations, deviations)
    return FitIndices(
        chi2=statistic,
        degrees_of_freedom=df,
        p_value=p_value,
        rmsea=rmsea,
        rmsea_interval=interval,
        cfi=1 - excess / excess_of_null if excess_of_null else 1.0,
        tli=tli,
        srmr=sqrt(float((residuals[np.tril_indices(d)] ** 2).mean())),
        log_likelihood=log_likelihood,
        n_free_parameters=n_free_parameters,
        aic=-2 * log_likelihood + 2 * n_free_parameters,
        bic=-2 * log_likelihood + n_free_parameters * log(n),
        n_samples=n,
    )


def _noncentrality(statistic: float, df: int, probability: float) -> float:
    """The noncentrality of chi-square under which a statistic has a probability to be no larger; 0 at least."""
    if chi2.cdf(statistic, df) <= probability:
        return 0.0
    high = 2.0 * statistic + 10.0
    while ncx2.cdf(statistic, df, high) > probability:
        high *= 2
    return float(brentq(lambda at: ncx2.cdf(statistic, df, at) - probability, 1e-12, high, xtol=1e-10))


def _n_rows(cells: np.ndarray, weight: np.ndarray | None) -> float:
    """Rows with an observed cell, by weight."""
    observed = ~np.isnan(cells).all(axis=1)
    return float(observed.sum() if weight is None else weight[observed].sum())


def _without_correlations(cells: np.ndarray, weight: np.ndarray | None) -> float:
    """The most that columns without correlations make of the log likelihood, nats."""
    weights = np.where(np.isnan(cells), 0.0, 1.0 if weight is None else weight[:, None])
    n = weights.sum(axis=0)
    values = np.nan_to_num(cells)
    means = (weights * values).sum(axis=0) / n
    variances = (weights * (values - means) ** 2).sum(axis=0) / n
    return float(-0.5 * (n * (np.log(2 * pi * variances) + 1)).sum())


def saturated_model(reading: TableReading, caller: str) -> tuple[float, np.ndarray]:
    """The log likelihood of the saturated model, nats, and its covariance matrix (d, d), by EM where cells are missing.

    Raises
    ------
    ValueError
        If there is no such matrix; the message names the caller.
    """
    group, ((values, weight),) = reading.columns.groups[0], reading.blocks
    specification = Gaussian("full")
    emission = specification.for_data(values[0], weight)
    options: dict[str, Any] = specification.prior_options(emission, group.names)
    prior = emission.default_prior(1, **options)
    model = Mixture(emission, FiniteWeights(np.ones(1)), prior)
    data = reading.compiled(model)
    start = model.statistics_of(np.ones((len(data), 1)), data)[:, None]
    limits = {"tol": _TOLERANCE, "max_iter": _MAX_STEPS, "accelerate": True}
    method = MixtureMethod()
    fit = FitPlan(method, (0,), start, limits).run(model, data, posteriors.ML)
    solutions = method.regular(method.ascent(model, data, posteriors.ML, 1))
    n, d = _n_rows(values[0], weight), len(group.names)
    if n <= d or (solutions is not None and not solutions(fit.statistics[:, None]).all()):
        raise ValueError(
            f"{caller} compares with the most likely covariance matrix of all columns, and there is "
            f"none: {n:g} rows of {d} columns, or columns that are constant or functions of each other. Leave some out."
        )
    point = posteriors.ML.point_of(model.prior, fit.statistics)
    return fit.objective, emission.parameters(point[-1])["covariances"][0]


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
    >>> from skvbem.estimators import minka_evidence
    >>> int(minka_evidence(load_iris().data).argmax()) + 1
    3
    """
    table = _complete_rows(X)
    n, d = table.shape
    singular = np.linalg.svd(table - table.mean(axis=0), compute_uv=False)
    variance = np.zeros(d)
    variance[: len(singular)] = singular**2 / (n - 1)
    return np.array([_log_evidence_of_rank(variance, k, n) for k in range(1, min(n, d))])


def _complete_rows(X) -> np.ndarray:
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


def _log_evidence_of_rank(variance: np.ndarray, k: int, n: int) -> float:
    r"""The log evidence of k components of n rows, of variances (d,) in descending order, by Laplace's approximation.

    Of the covariance matrix of n rows of d columns, :math:`\lambda` are the eigenvalues, and :math:`v` is the mean of
    those beyond the first k. With :math:`\tilde\lambda_j` for :math:`\lambda_j`, or v beyond the first k, it is

    .. math::

        \ln p(Y \mid k) \approx \ln p(U) - \tfrac n2 \Bigl[\sum_{j \le k} \ln\lambda_j + (d - k) \ln v\Bigr]
            + \tfrac{m + k}{2} \ln 2\pi - \tfrac k2 \ln n
            - \tfrac12 \sum_{i \le k} \sum_{j > i}
              \ln\bigl[n (\lambda_i - \lambda_j)(\tilde\lambda_j^{-1} - \tilde\lambda_i^{-1})\bigr],

    with :math:`m = dk - k(k+1)/2` and p(U) the uniform density of k orthogonal axes [Minka 2000]. Terms that all k
    share are left out. So values compare with each other, and with no other score.
    """
    d, least = len(variance), 1e-13 * variance[0]  # of rounding
    if not variance[k - 1] > least:
        return -np.inf
    rest = max(float(variance[k:].mean()), least)
    rank = d - np.arange(k)
    log_axes = -k * np.log(2.0) + (gammaln(rank / 2) - rank / 2 * np.log(np.pi)).sum()
    fit = -0.5 * n * (np.log(variance[:k]).sum() + (d - k) * np.log(rest))
    m = d * k - k * (k + 1) / 2
    smoothed = np.concatenate([variance[:k], np.full(d - k, rest)])
    i, j = np.triu_indices(d, 1)
    i, j = i[i < k], j[i < k]
    curvature = (variance[i] - variance[j]) * (1 / smoothed[j] - 1 / smoothed[i])
    with np.errstate(divide="ignore"):
        log_det = (np.log(curvature) + np.log(n)).sum()
    return float(log_axes + fit + 0.5 * (m + k) * np.log(2 * np.pi) - 0.5 * (log_det + k * np.log(n)))
