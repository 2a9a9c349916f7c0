"""`TwoKinds`: estimators whose parameters choose one of two kinds of models."""

from __future__ import annotations

from typing import ClassVar

from skvbem.estimators.base import VBEstimator
from skvbem.fitting.kind import Kind


class TwoKinds(VBEstimator):
    """An estimator of one of two kinds of models: of the second where a parameter is given."""

    _kinds: ClassVar[tuple[Kind, Kind]]
    #: The parameter that takes the second kind, unless it is None.
    _chosen_by: ClassVar[str]

    @property
    def _kind(self) -> Kind:  # type: ignore[override]
        """The kind of models of the fit; during a fit the kind of its parameters."""
        one, other = self._kinds
        fitted = None if "_is_fitting" in vars(self) else vars(self).get("_fitted_")
        is_other = vars(self).get(self._chosen_by) is not None if fitted is None else type(fitted) is other.fitted
        return other if is_other else one

    def _fit(self, X, y, sample_weight, **where):
        self._is_fitting = True  # parameters that were set since the last fit decide
        try:
            return super()._fit(X, y, sample_weight, **where)
        finally:
            vars(self).pop("_is_fitting", None)  # another thread that fits this object may have been faster
