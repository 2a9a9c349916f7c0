"""Sums and differences that do not cancel, safe logarithms, symmetric matrices. Knows no probability model."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dtrtri

from skvbem._kernels import _special
from skvbem._kernels._special import log_gamma_digamma, log_rising_factorial

# The share of the largest eigenvalue of a matrix up to which another one is rounding.
_ROUNDING = 1e-15
# Columns from which the inverse of one triangle takes less time than that of a full matrix among many; measured.
_FEWEST_COLUMNS_OF_TRIANGLES = 24
#: ln(2 pi).
LOG_2PI = np.log(2 * np.pi)


def log_gamma(x: np.ndarray) -> np.ndarray:
    """ln Gamma(x) elementwise, for x > 0."""
    return _special_pair(x)[0]


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of ln Gamma elementwise, for x > 0."""
    return _special_pair(x)[1]


def log_rising(a: ArrayLike, n: ArrayLike) -> np.ndarray:
    """ln Gamma(a + n) - ln Gamma(a) elementwise for a > 0 and a + n > 0, accurate also where a is huge.

    Examples
    --------
    >>> import numpy as np
    >>> bool(log_rising(np.array(1e12), np.array(1.0)) == np.log(1e12))
    True
    """
    a, n = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(n, dtype=float))
    out = np.empty(a.size)
    log_rising_factorial(np.ascontiguousarray(a).ravel(), np.ascontiguousarray(n).ravel(), out)
    return out.reshape(a.shape)


def safe_log(x: np.ndarray) -> np.ndarray:
    """ln x elementwise with ln 0 = -inf, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def times_log(n: np.ndarray, log_x: np.ndarray) -> np.ndarray:
    """N ln x elementwise, with 0 ln 0 = 0."""
    return np.multiply(
        n, log_x, out=np.zeros(np.broadcast_shapes(np.shape(n), np.shape(log_x))), where=np.not_equal(n, 0)
    )


def log_sum_exp(terms: np.ndarray, axis: int = 0) -> np.ndarray:
    """ln of the sum of exponentials of finite numbers; many times faster than SciPy's on small arrays."""
    largest = terms.max(axis=axis)
    shifted = terms - np.expand_dims(largest, axis)
    return largest + np.log(np.exp(shifted, out=shifted).sum(axis=axis))


def log_det_one_plus(a: np.ndarray) -> np.ndarray:
    """ln det(I + A) of symmetric matrices (..., d, d), accurate also where A is tiny; NaN where I + A is not positive.

    The pivots of I + A less 1 are found as such, and ln(1 + pivot) from them.

    Examples
    --------
    >>> import numpy as np
    >>> bool(log_det_one_plus(np.diag([1e-20, 3.0])) == np.log1p(3.0))
    True
    """
    shape = np.shape(a)
    out = np.empty(shape[:-2])
    _special.log_det_one_plus(np.array(a, dtype=float, order="C").reshape(-1, *shape[-2:]), out.reshape(-1))
    return out


def safe_cholesky(a: np.ndarray) -> np.ndarray:
    """Lower Cholesky factors of symmetric matrices (..., d, d); NaN where one is not positive definite."""
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        flat, factors = a.reshape(-1, *a.shape[-2:]), np.full(a.shape, np.nan)
        if len(flat) > 1:
            definite = _have_positive_pivots(flat)
            halves = [np.flatnonzero(definite)] if not definite.all() else np.array_split(np.arange(len(flat)), 2)
            for half in halves:
                factors.reshape(flat.shape)[half] = safe_cholesky(flat[half])
        return factors


def inverse_of_lower(factors: np.ndarray) -> np.ndarray:
    """Inverses of lower triangular matrices (..., d, d), as triangles where that takes less time than as they stand."""
    if factors.shape[-1] < _FEWEST_COLUMNS_OF_TRIANGLES:
        return np.linalg.inv(factors)
    flat = factors.reshape(-1, *factors.shape[-2:])
    return np.array([dtrtri(each.T)[0].T for each in flat]).reshape(factors.shape)


def _have_positive_pivots(a: np.ndarray) -> np.ndarray:
    """Whether the pivots of symmetric matrices (n, d, d) are positive, up to rounding, (n,)."""
    rest, positive = a, np.ones(len(a), dtype=bool)
    with np.errstate(all="ignore"):
        while rest.shape[-1]:
            pivot, column = rest[:, 0, 0], rest[:, 1:, 0]
            positive &= pivot > 0
            rest = rest[:, 1:, 1:] - column[:, :, None] * (column / pivot[:, None])[:, None, :]
    return positive


def drawn_codes(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One of the states of each row, drawn by probabilities (n_rows, n_states) that need not sum to one, (n_rows,)."""
    below = np.cumsum(probabilities, axis=1)
    return (rng.random((len(probabilities), 1)) * below[:, -1:] >= below[:, :-1]).sum(axis=1)


# Cells compared at once, and rows at least. Halves of 64 kB are memory that malloc keeps, on workers of dask too. Those
# have pages of larger arrays anew: 3 million cells in 10 columns take 5 ms instead of 16.
_COMPARED_CELLS, _FEWEST_ROWS = 2**14, 128


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows (n_distinct, n_columns) of finite numbers in lexicographic order, and the place of each row there.

    As `numpy.unique` along an axis returns them, several times as fast.
    """
    order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    in_order, place = rows[order], np.empty(len(rows), dtype=np.intp)
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    place[order] = np.cumsum(is_new) - 1
    return np.ascontiguousarray(in_order[is_new]), place


def extremes(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest number of each column, (n_columns,); NaN is none, and inf and -inf stand for none.

    Halves of some rows are compared until few are left: reductions over short rows take five times as long.
    """
    ends, n_rows = [], max(_COMPARED_CELLS // max(cells[:1].size, 1), _FEWEST_ROWS)
    for end, nothing in ((np.fmin, np.inf), (np.fmax, -np.inf)):
        if cells.shape[1:] == (1,):  # no short rows
            ends.append(end.reduce(cells[:, 0], initial=nothing, keepdims=True))
            continue
        result = np.full(cells.shape[1:], nothing)
        for at in range(0, len(cells), n_rows):
            left = cells[at : at + n_rows]
            while len(left) > 64:
                n = (len(left) + 1) // 2
                left = end(left[:n], left[-n:])
            result = end(result, end.reduce(left, axis=0, initial=nothing))
        ends.append(result)
    return ends[0], ends[1]


def first_axes_last(a: np.ndarray, n: int = 1) -> np.ndarray:
    """A view with the first n axes behind the others; `numpy.moveaxis` takes ten times as long to find it.

    Examples
    --------
    >>> import numpy as np
    >>> first_axes_last(np.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    return a.transpose(*range(n, a.ndim), *range(n))


def last_axes_first(a: np.ndarray, n: int = 1) -> np.ndarray:
    """A view with the last n axes before the others.

    Examples
    --------
    >>> import numpy as np
    >>> last_axes_first(np.zeros((4, 2, 3)), 2).shape
    (2, 3, 4)
    """
    return first_axes_last(a, a.ndim - n)


def pseudo_inverse(a: np.ndarray) -> np.ndarray:
    """Moore-Penrose inverses of symmetric matrices (..., d, d): 0 along axes whose eigenvalue is rounding.

    Examples
    --------
    >>> import numpy as np
    >>> pseudo_inverse(np.array([[2.0, 2.0], [2.0, 2.0]])).round(9).tolist()
    [[0.125, 0.125], [0.125, 0.125]]
    """
    values, axes = np.linalg.eigh(a)
    size = np.abs(values)
    known = size > _ROUNDING * size.max(axis=-1, keepdims=True, initial=0.0)
    inverse = np.divide(1.0, values, out=np.zeros(values.shape), where=known)
    return (axes * inverse[..., None, :]) @ axes.swapaxes(-1, -2)


def pack_symmetric(a: np.ndarray) -> np.ndarray:
    """The upper triangles, row by row, of symmetric matrices (..., d, d): (..., d (d + 1) / 2)."""
    rows, columns = _triangle(a.shape[-1])
    return a[..., rows, columns]


def unpack_symmetric(packed: np.ndarray, d: int) -> np.ndarray:
    """The symmetric matrices (..., d, d) with these upper triangles."""
    return packed[..., _places(d)]


@cache
def pairings(d: int) -> np.ndarray:
    """How often each packed cell stands in a symmetric matrix: 1 on the diagonal, 2 off it."""
    rows, columns = _triangle(d)
    return np.where(rows == columns, 1.0, 2.0)


@cache
def diagonal_places(d: int) -> np.ndarray:
    """Where the diagonal stands among the packed cells of a symmetric matrix, (d,)."""
    return np.flatnonzero(pairings(d) == 1.0)


@cache
def _triangle(d: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(d)


@cache
def _places(d: int) -> np.ndarray:
    rows, columns = _triangle(d)
    places = np.empty((d, d), dtype=np.int64)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return places


def _special_pair(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = np.asarray(x, dtype=float)
    flat = np.ascontiguousarray(x).ravel()
    of_gamma, of_digamma = np.empty(x.size), np.empty(x.size)
    log_gamma_digamma(flat, of_gamma, of_digamma)
    return of_gamma.reshape(x.shape), of_digamma.reshape(x.shape)


def covariance_of_products(mean: np.ndarray, covariance: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Covariance of z and of its packed products for z Gaussian about each of many means, summed with weights.

    Parameters
    ----------
    mean : ndarray of shape (d, n)
    covariance : ndarray of shape (d, d)
    weight : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (d + d (d + 1) / 2, d + d (d + 1) / 2)
    """
    d, n = len(mean), weight.sum()
    i, j = np.triu_indices(d)
    total, second = mean @ weight, (mean * weight) @ mean.T
    with_products = total[i] * covariance[:, j] + total[j] * covariance[:, i]

    def crossed(a, b, c, e):
        pairs = n * covariance[np.ix_(a, c)] + second[np.ix_(a, c)]
        return pairs * covariance[np.ix_(b, e)] + covariance[np.ix_(a, c)] * second[np.ix_(b, e)]

    products = crossed(i, j, i, j) + crossed(i, j, j, i)
    return np.block([[n * covariance, with_products], [with_products.T, products]])
