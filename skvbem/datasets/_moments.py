"""Rows with given moments, for tables of which only means and covariances were printed."""

from numbers import Real

import numpy as np
from sklearn.utils import Bunch

from skvbem._names import shown
from skvbem.emissions.factor.second_moments import corners_of


def make_rows_with_moments(mean, covariance, n_rows):
    """Weighted rows whose mean and covariance are given ones, for tables of which only these were printed.

    Normal models without missing cells depend on rows through such moments alone: they fit these rows as they would the
    rows behind the print.

    Parameters
    ----------
    mean : array-like of shape (d,)
        Means of the columns.
    covariance : array-like of shape (d, d)
        With divisor n. One with divisor n - 1 is made so by a factor (n - 1) / n.
    n_rows : float
        How many rows they stand for: the sum of the weights.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        data : ndarray of shape (d + 1, d)
            The corners of a simplex.
        sample_weight : ndarray of shape (d + 1,)
            All alike.

    Raises
    ------
    ValueError
        If the shapes do not fit, or if the covariance is not symmetric or has a negative eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from skvbem.datasets import make_rows_with_moments
    >>> rows = make_rows_with_moments([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]], 30)
    >>> rows.data.shape, float(rows.sample_weight.sum())
    ((3, 2), 30.0)
    >>> np.cov(rows.data.T, aweights=rows.sample_weight, ddof=0).round(12).tolist()
    [[2.0, 0.5], [0.5, 1.0]]
    """
    mean, covariance = np.asarray(mean, dtype=float), np.asarray(covariance, dtype=float)
    d = mean.size
    if mean.ndim != 1 or not d or covariance.shape != (d, d):
        raise ValueError(
            "make_rows_with_moments needs a mean of shape (d,) and a covariance of shape (d, d). Got arrays of shapes "
            f"{mean.shape} and {covariance.shape}."
        )
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise ValueError("The 'mean' and 'covariance' parameters of make_rows_with_moments must be finite.")
    if not isinstance(n_rows, Real) or isinstance(n_rows, bool) or not 0 < n_rows < np.inf:
        raise ValueError(
            f"The 'n_rows' parameter of make_rows_with_moments must be a number > 0. Got {shown(n_rows)} instead."
        )
    variances, axes = np.linalg.eigh(covariance)
    if not np.allclose(covariance, covariance.T) or variances[0] < -1e-9 * abs(variances[-1]):
        raise ValueError(
            "The 'covariance' parameter of make_rows_with_moments must be symmetric, without a negative eigenvalue. "
            f"Got one whose least eigenvalue is {variances[0]:g}."
        )
    root = axes * np.sqrt(np.maximum(variances, 0.0))
    return Bunch(data=mean + corners_of(root), sample_weight=np.full(d + 1, n_rows / (d + 1)))
