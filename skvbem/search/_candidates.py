"""Estimators with the parameters of a setting."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from sklearn.base import BaseEstimator, clone


def candidate(estimator: BaseEstimator, setting: Mapping) -> BaseEstimator:
    """A new estimator with the parameters of a setting, unfitted, to be fitted."""
    return clone(estimator).set_params(**clone(setting, safe=False))


def candidate_to_look_at(estimator: BaseEstimator, setting: Mapping) -> Any:
    """An estimator with the parameters of a setting that shares its parts with others: soon made, not to be fitted."""
    if not setting.keys() <= vars(estimator).keys():  # one is of a part, which is not to change for others, or is none
        return candidate(estimator, setting)
    copied = copy(estimator)
    vars(copied).update(setting)
    return copied
