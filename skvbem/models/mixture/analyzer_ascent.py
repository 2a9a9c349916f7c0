r"""Full steps of one factor analyzer on complete rows, of which second moments say all: no row is looked at again.

With :math:`\tilde y = (1, y)`, regressors :math:`\tilde x = (1, x)` are expected as :math:`A \tilde y`, so that sums
over rows of :math:`\tilde x \tilde x^\top` and of :math:`\tilde x y^\top` are products of A with the moments
:math:`\sum_n w_n \tilde y_n \tilde y_n^\top`, and a step costs the same for any number of rows. It is one call of a
kernel; what is computed is what `skvbem.models.mixture.model.MixtureAscent` does with one component.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from skvbem._kernels import _analyzer
from skvbem.emissions.factor.analyzer import FactorAnalyzer
from skvbem.families.hierarchical import Hierarchical
from skvbem.models.mixture.model import Mixture, MixtureAscent, MixtureData

# Columns above which products of moments by a library that knows caches are faster.
_MAX_COLUMNS = 256


class AnalyzerAscent(MixtureAscent):
    """Full steps of a mixture of one factor analyzer whose hyperparameters are hidden, on complete rows in memory."""

    def __init__(self, model: Mixture, data: MixtureData, form: Any, n_threads: int = 1):
        super().__init__(model, data, form, n_threads)
        prior: Any = model.prior.blocks[-1]
        rows = np.vstack([np.ones(len(data)), data.table.measured])
        log_unit = np.log(cast(FactorAnalyzer, model.emission).unit).sum(keepdims=True)
        self._moments, self._constant = (rows * data.weight) @ rows.T, prior.hyperprior.log_gain
        self._fixed = (
            *prior.base.arrays,
            *prior.hyperprior.below,
            prior.hyperprior.rate,
            prior.coordinates,
            self._moments,
            log_unit,
        )

    @staticmethod
    def suits(model: Mixture, data: Any, form: Any) -> bool:
        """Second moments of the rows are enough: nothing is missing, and all columns have one precision matrix."""
        emission, prior = model.emission, model.prior.blocks[-1]
        return (
            model.n_components == 1
            and type(emission) is FactorAnalyzer
            and form.density
            and emission.n_columns <= _MAX_COLUMNS
            and isinstance(prior, Hierarchical)
            and isinstance(data, MixtureData)
            and data.table.pattern is None
            and len(emission.matrices.groups) == 1
            and not emission.has_gaps.any()
        )

    def advance(self, statistics: np.ndarray, n_steps: int) -> np.ndarray:
        """Take full steps in place; see `skvbem.ascent.Ascent`."""
        lanes, trace = np.ascontiguousarray(statistics[1:].T), np.empty((n_steps, statistics.shape[1]))
        _analyzer.advance(*self._fixed, lanes, trace)
        statistics[0], statistics[1:] = self._moments[0, 0], lanes.T
        return trace + self._constant
