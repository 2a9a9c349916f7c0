r"""Means of draws of which each component of a mixture has its share, and the variance that is left in them.

Of n draws :math:`n_k` are from component k, and the mixture has the weights :math:`n_k / n`. So the mean of all draws
is an unbiased estimate, and how far components lie apart is no part of its error [Cochran77 §5.4]:

.. math:: \operatorname{Var} \bar x = \sum_k \Bigl(\frac{n_k}{n}\Bigr)^2 \frac{s_k^2}{n_k} .
"""

from __future__ import annotations

import numpy as np


def variance_of_mean(values: np.ndarray, component: np.ndarray | None = None) -> float:
    """The variance of the mean of draws, each component of which has as many as its weight in the mixture says.

    A component of a single draw shows no variance. It is taken together with the next one, the last with the one before
    [Cochran77 §5A.12]. The variance is too large then, by how far their means lie apart, and never too small in
    expectation. Two draws are enough, as variances of all components are added up.

    Parameters
    ----------
    values : ndarray of shape (n,)
    component : ndarray of int, shape (n,), optional
        The component of each draw. Those that lie near each other should have numbers that do. By default all draws are
        independent, from one.

    Returns
    -------
    float
        NaN of a single draw.

    Examples
    --------
    Components at 0 and 10 have draws that differ by 2 at most:

    >>> import numpy as np
    >>> from skvbem.evidence.stratified import variance_of_mean
    >>> values = np.array([-1.0, 1.0, 9.0, 11.0])
    >>> variance_of_mean(values, np.array([0, 0, 1, 1]))
    0.5
    >>> round(variance_of_mean(values), 2)
    8.67
    """
    n = len(values)
    if n < 2:
        return np.nan
    stratum = np.zeros(n, dtype=int) if component is None else _strata(component)
    number = np.bincount(stratum)
    residuals = values - (np.bincount(stratum, values) / number)[stratum]
    return float((np.bincount(stratum, residuals**2) * number / (number - 1)).sum()) / n**2


def _strata(component: np.ndarray) -> np.ndarray:
    """The stratum of each draw, (n,): its component, or several neighbors, so that none has a single draw."""
    _, component, number = np.unique(component, return_inverse=True, return_counts=True)
    stratum, so_far, current = np.empty(len(number), dtype=int), 0, 0
    for k, n in enumerate(number):
        stratum[k], so_far = current, so_far + n
        if so_far > 1:
            current, so_far = current + 1, 0
    if so_far == 1:
        stratum[stratum == current] = current - 1
    return stratum[component]
