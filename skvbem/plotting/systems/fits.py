"""Linear dynamical systems that displays can draw."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def is_system(estimator: Any) -> bool:
    """Whether an estimator is a linear dynamical system."""
    return hasattr(estimator, "forecast") and not hasattr(estimator, "predict_proba")


def fitted_system(estimator: Any, owner: str) -> Any:
    """A fitted linear dynamical system; a TypeError if the estimator is something else."""
    if not is_system(estimator):
        raise TypeError(
            f"{owner} draws fitted linear dynamical systems, VBLinearDynamicalSystem. Got {type(estimator).__name__}."
        )
    check_is_fitted(estimator)
    return estimator
