"""The four shapes of a Gaussian's covariance, as scikit-learn names them."""

from __future__ import annotations

from typing import Any

import numpy as np

from skvbem.blocks import Blocks
from skvbem.emissions.gaussian.dense import DenseGaussian
from skvbem.emissions.gaussian.diagonal import DiagonalGaussian

#: What each shape is made of: "full" has a matrix for each component, "tied" one for all, "diag" a variance for each
#: component and column, "spherical" one for each component.
COVARIANCE_TYPES: dict[str, tuple[Any, dict]] = {
    "full": (DenseGaussian, {"tied": False}),
    "tied": (DenseGaussian, {"tied": True}),
    "diag": (DiagonalGaussian, {"spherical": False}),
    "spherical": (DiagonalGaussian, {"spherical": True}),
}


class Gaussian:
    """Gaussian measurements; `for_data` gives the emission of a covariance type."""

    @staticmethod
    def for_data(
        values: np.ndarray | Blocks, weight: np.ndarray | None = None, *, covariance_type: str = "full"
    ) -> DenseGaussian | DiagonalGaussian:
        """The emission of measurements (n_rows, n_columns), NaN where missing, with weights (n_rows,).

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns), or Blocks of (values, weight)
        weight : ndarray of shape (n_rows,), optional
        covariance_type : {"full", "tied", "diag", "spherical"}

        Raises
        ------
        ValueError
            If the covariance type is not one of these.
        """
        if covariance_type not in COVARIANCE_TYPES:
            raise ValueError(f"'covariance_type' must be one of {sorted(COVARIANCE_TYPES)}. Got {covariance_type!r}.")
        emission, options = COVARIANCE_TYPES[covariance_type]
        return emission.for_data(values, weight, **options)
