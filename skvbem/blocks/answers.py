"""Answers about the rows of a dask collection: an array of dask, computed once it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

import numpy as np

from skvbem.blocks.sources import is_dask


def by_partition(dtype: type = float, width: str = "") -> Callable:
    """A decorator of a method of an estimator that answers about rows, which has a dask array for a dask collection.

    Partitions are asked about one by one, wherever dask computes them.

    Parameters
    ----------
    dtype : type, default=float
        Of the array.
    width : str, default=""
        Name of the fitted attribute that is the number of columns of the array; none if it has one axis.
    """

    def decorated(method: Callable[..., np.ndarray]) -> Callable[..., Any]:
        @wraps(method)
        def answer(self, X):
            if not is_dask(X):
                return method(self, X)
            from dask import array as arrays
            from dask import delayed

            shape = (getattr(self, width),) if width else ()
            if hasattr(X, "numblocks"):
                X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
                parts, sizes = X.to_delayed().ravel(), X.chunks[0]
            else:
                parts = X.to_delayed()
                sizes = (np.nan,) * len(parts)
            model = delayed(copy(self), traverse=False)  # as it is now
            asked = [delayed(_answer)(model, method.__name__, dtype, shape, part) for part in parts]
            blocks = [arrays.from_delayed(part, (n, *shape), dtype) for part, n in zip(asked, sizes)]
            return arrays.concatenate(blocks, allow_unknown_chunksizes=True)

        return answer

    return decorated


def _answer(estimator: Any, name: str, dtype: type, shape: tuple[int, ...], block: Any) -> np.ndarray:
    """The answer of a method about a partition, which may be without rows."""
    return getattr(estimator, name)(block) if len(block) else np.empty((0, *shape), dtype)
