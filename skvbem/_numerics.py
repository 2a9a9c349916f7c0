"""Sums and differences of ln Gamma that do not cancel, and safe logarithms. Knows no probability model."""

from __future__ import annotations

import numpy as np

from skvbem._kernels._special import log_gamma_digamma, log_rising_factorial


def log_gamma(x: np.ndarray) -> np.ndarray:
    """ln Gamma(x) elementwise, for x > 0."""
    return _special_pair(x)[0]


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of ln Gamma elementwise, for x > 0."""
    return _special_pair(x)[1]


def log_rising(a: np.ndarray, n: np.ndarray) -> np.ndarray:
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


def _special_pair(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = np.asarray(x, dtype=float)
    flat = np.ascontiguousarray(x).ravel()
    of_gamma, of_digamma = np.empty(x.size), np.empty(x.size)
    log_gamma_digamma(flat, of_gamma, of_digamma)
    return of_gamma.reshape(x.shape), of_digamma.reshape(x.shape)
