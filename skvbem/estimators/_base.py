"""What every estimator of the library does: weights, seeds, callbacks, and the attributes a fit publishes."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skvbem._compat import CallbackSupportMixin, IterationReport, check_sample_weight
from skvbem.estimators._tables import Restarts
from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit

_VERSION = "0.1.0.dev0"

#: Name of the attribute that holds the objective of each method.
OBJECTIVES = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}


class VBEstimator(CallbackSupportMixin, DensityMixin, TransformerMixin, BaseEstimator):
    """Common face of models fitted by VBEM, MAP-EM or ML-EM."""

    def _form(self) -> posteriors.Form:
        if self.method == "map" and self.map_basis == "probability":
            return posteriors.MAP_IN_PROBABILITIES
        return {"vb": posteriors.VB, "map": posteriors.MAP, "ml": posteriors.ML}[self.method]

    def _weights(self, sample_weight, n_samples: int) -> np.ndarray | None:
        """Checked weights, or None where every row counts once."""
        if sample_weight is None:
            return None
        weights = check_sample_weight(sample_weight, np.empty((n_samples, 1)))
        return None if (weights == 1.0).all() else weights

    def _streams(self, n: int) -> list[np.random.Generator]:
        """Independent random streams, the first ones the same whatever their number."""
        seed = check_random_state(self.random_state).randint(0, 2**31 - 1, size=4)
        return [np.random.default_rng(child) for child in np.random.SeedSequence(seed.tolist()).spawn(n)]

    def _listener(self, X, sample_weight):
        """(called after every cycle with steps and objective, true to stop; called at the end of the fit)."""
        report = IterationReport(self, X, metadata={"sample_weight": sample_weight})

        def after_cycle(n_iter: int, objective: float) -> bool:
            if self.verbose:
                print(f"[{type(self).__name__}] step {n_iter}: {OBJECTIVES[self.method][:-1]} {objective:.6f}")
            return bool(report())

        return after_cycle, report.close

    def _publish_fit(self, fit: Fit) -> None:
        for name in OBJECTIVES.values():
            vars(self).pop(name, None)
        setattr(self, OBJECTIVES[self.method], fit.objective)
        self.lower_bounds_ = np.array(fit.trace)
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        self.restarts_ = Restarts.of(fit)
        if not fit.converged:
            warnings.warn(
                f"The best start of {type(self).__name__} did not converge in {self.max_iter} steps (tol={self.tol:g} nats). "
                "Raise 'max_iter', or 'tol' if the last digits do not matter.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def __getstate__(self):
        return {**super().__getstate__(), "_skvbem_version": _VERSION}

    def __setstate__(self, state):
        state = dict(state)
        state.pop("_skvbem_version", None)
        super().__setstate__(state)
