"""Fit indices of networks of numbers: chi-square against any covariance of the columns, by maximum likelihood."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skvbem.emissions import Gaussian
from skvbem.evidence.evaluation import Evaluation
from skvbem.fitted.standardized import covariance_of_numbers
from skvbem.fitting.evaluation import evaluation_of, read_again, scored
from skvbem.reading.column_groups import Group
from skvbem.reading.rows import TableReading
from skvbem.reports.fit_indices import FitIndices, fit_indices_of_network
from skvbem.vbem import posteriors


def fit_indices(estimator: Any, X: Any, sample_weight: Any) -> FitIndices:
    """Fit indices of a network of numbers; see `skvbem.VBNetwork.fit_indices`."""
    owner, fitted = type(estimator).__name__, estimator.fitted
    if covariance_of_numbers(fitted, fitted.named_parameters(fitted.point)) is None:
        raise ValueError(
            f"fit_indices of {owner} compares covariances: all columns and latents must be measurements, each normal "
            "given its parents. Networks with categories have 'goodness_of_fit'."
        )
    reading = read_again(estimator, X, sample_weight)
    fits = evaluation_of(estimator, reading)
    bic = scored(estimator, fits, "bic", {"dimension": "identifiable"})
    names, of_all = _covariance(fitted, fits)
    together = _one_group(reading)
    at = [names.index(name) for name in together.columns.groups[0].names]
    log_likelihood = float(bic.details["log_likelihood"])
    return fit_indices_of_network(together, log_likelihood, of_all[np.ix_(at, at)], bic.n_free_parameters, owner)


def _covariance(fitted: Any, fits: Evaluation) -> tuple[list, np.ndarray]:
    """Columns and latents, and their covariance by maximum likelihood."""
    most_likely = replace(fitted, form=posteriors.ML, statistics=fits.fit("ml").statistics)
    covariance = covariance_of_numbers(most_likely, most_likely.named_parameters(most_likely.point))
    assert covariance is not None
    return covariance


def _one_group(reading: Any) -> TableReading:
    """The rows, their columns one group."""
    ((values, weight),) = reading.blocks
    groups = [(group, each) for group, each in zip(reading.columns.groups, values) if not group.is_hidden]
    columns, names = (sum((getattr(group, what) for group, _ in groups), ()) for what in ("columns", "names"))
    together = replace(reading.columns, groups=(Group("columns", Gaussian("full"), columns, names),))
    return TableReading(together, [([np.concatenate([each for _, each in groups], axis=1)], weight)])
