"""Factor analyses that displays can draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skvbem.plotting.labels import INK


def fitted_factors(estimator: Any, owner: str) -> Any:
    """A fitted factor analysis; a TypeError if the estimator is something else."""
    if not hasattr(estimator, "fit_indices") or not hasattr(estimator, "loadings_interval"):
        raise TypeError(f"{owner} draws fitted factor analyses, VBFactorAnalysis. Got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    return estimator


def column_names(estimator: Any) -> list[str]:
    """Names of the columns of a fit."""
    return list(estimator.fitted.columns.names)


def correlations_of(covariance: np.ndarray) -> np.ndarray:
    """The correlation matrix of a covariance matrix."""
    deviations = np.sqrt(np.diagonal(covariance))
    return covariance / np.outer(deviations, deviations)


def ink_on(share: float) -> str:
    """The color of text on a cell of a heat map that is so far from its middle, 0 to 1."""
    return "white" if share > 0.6 else "black"


def write_names(axis: Any, names: Sequence[str]) -> None:
    """Write the names of columns along an axis of a heat map, as they are: none is mathematics."""
    axis.set_ticks(range(len(names)))
    for label, name in zip(axis.set_ticklabels(names), names):
        label.set_parse_math(False)
        label.set_text(name)


def add_scale(ax: Any, image: Any, label: str, **place: float) -> None:
    """Take the frame of a heat map away, and draw the scale of its colors."""
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, **place)
    bar.outline.set_visible(False)
    bar.set_label(label, color=INK)
