"""Factor analyses that displays can draw."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def fitted_factors(estimator: Any, owner: str) -> Any:
    """A fitted factor analysis; a TypeError if the estimator is something else."""
    if not hasattr(estimator, "fit_indices") or not hasattr(estimator, "loadings_interval"):
        raise TypeError(f"{owner} draws fitted factor analyses, VBFactorAnalysis. Got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    return estimator


def column_names(estimator: Any) -> list[str]:
    """Names of the columns of a fit."""
    return list(estimator.fitted.columns.names)


def ink_on(share: float) -> str:
    """The color of text on a cell of a heat map that is so far from its middle, 0 to 1."""
    return "white" if share > 0.6 else "black"
