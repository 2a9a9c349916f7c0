"""What every estimator of the library does: weights, seeds, callbacks, and publishing a fit in one step."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from skvbem._compat import CallbackSupportMixin, IterationReport, check_sample_weight, warn
from skvbem.estimators.reports import Restarts
from skvbem.vbem import posteriors
from skvbem.vbem.fit import Fit

_VERSION = "0.1.0.dev0"

#: What the first batch fixes; the rest is told anew by each.
KEPT_BY_PARTIAL_FIT = ("n_features_in_", "feature_names_in_")
#: Name of the attribute that holds the objective of each method.
OBJECTIVES = {"vb": "lower_bound_", "map": "log_posterior_", "ml": "log_likelihood_"}


def has_posterior(estimator) -> bool:
    """Whether a batch leaves a density that can be the prior of the next; an AttributeError says what it takes."""
    if estimator.method != "vb":
        raise AttributeError(
            f"partial_fit of {type(estimator).__name__} needs method='vb', whose posterior is the prior of the next "
            f"batch. Got method={estimator.method!r}."
        )
    return True


class VBEstimator(CallbackSupportMixin, DensityMixin, TransformerMixin, BaseEstimator):
    """Common face of models fitted by VBEM, MAP-EM or ML-EM.

    What a fit leaves are the attributes whose names end in an underscore. `fit` gathers them in a dict and publishes
    all at once when nothing can go wrong any more: a fit that raises or is interrupted leaves the estimator as it was.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, then return what `predict` says of the same rows.

        Parameters
        ----------
        X : array-like, pandas or polars DataFrame of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        ndarray of int, shape (n_samples,) or (n_samples, n_latents)
        """
        return self.fit(X, y, sample_weight=sample_weight).predict(X)

    def score(self, X, y=None, sample_weight=None):
        """Mean log predictive probability (density) of the rows, nats per row; see `score_samples`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        scores = self.score_samples(X)
        weights = self._weights(sample_weight, len(scores))
        if weights is not None:  # a row that counts for nothing may be impossible
            scores, weights = scores[weights > 0], weights[weights > 0]
        return float(np.average(scores, weights=weights))

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

    def _seed(self, random_state) -> tuple[int, ...]:
        """What a random_state stands for, drawn once if it is None or a generator."""
        try:
            if not isinstance(random_state, Integral):
                return tuple(check_random_state(random_state).randint(0, 2**31 - 1, size=4).tolist())
            seed = int(random_state)
            np.random.SeedSequence(seed)
            return (seed,)
        except ValueError:
            raise ValueError(
                f"The 'random_state' parameter of {type(self).__name__} must be an int in the range [0, 4294967295], a "
                f"numpy.random.RandomState or None. Got {random_state!r} instead."
            ) from None

    def _rng(self, random_state) -> np.random.Generator:
        return np.random.default_rng(self._seed(random_state))

    def _cycle(self, report: IterationReport) -> Callable[[int, float], bool]:
        """What the driver calls after every cycle; true stops the run."""

        def after_cycle(n_iter: int, objective: float) -> bool:
            if self.verbose:
                print(f"[{type(self).__name__}] step {n_iter}: {OBJECTIVES[self.method][:-1]} {objective:.6f}")
            return report()

        return after_cycle

    def _check_can_go_on(self, form: posteriors.Form) -> None:
        """Refuse to take a batch after a fit that left no density."""
        if not form.density:
            raise ValueError(
                f"partial_fit continues a fit by method='vb'; this {type(self).__name__} was fitted by "
                f"method={form.name!r}. Fit it again."
            )

    def _batch_state(self, fit: Fit, total_weight: float) -> dict:
        """The attributes that every batch but the first leaves, whatever the model."""
        kept = {name: value for name, value in vars(self).items() if name in KEPT_BY_PARTIAL_FIT}
        return kept | {
            "batch_lower_bound_": fit.objective,
            "n_iter_": fit.n_iter,
            "converged_": fit.converged,
            "n_samples_": self.n_samples_ + total_weight,
        }

    def _warn_unless_converged(self, fit: Fit, report: IterationReport) -> None:
        if not (fit.converged or report.stopped):
            warn(
                f"The best start of {type(self).__name__} did not converge in {self.max_iter} steps (tol={self.tol:g} "
                "nats). Raise 'max_iter', or 'tol' if the last digits do not matter.",
                ConvergenceWarning,
            )

    @staticmethod
    def _run_state(fit: Fit, form: posteriors.Form) -> dict:
        """The attributes that tell of the run."""
        return {
            OBJECTIVES[form.name]: fit.objective,
            "lower_bounds_": np.array(fit.trace),
            "n_iter_": fit.n_iter,
            "converged_": fit.converged,
            "restarts_": Restarts.of(fit),
        }

    def _publish(self, state: dict) -> None:
        """Replace all that an earlier fit left by `state`, in one step."""
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = {**kept, **state}

    def __getstate__(self):
        return {**super().__getstate__(), "_skvbem_version": _VERSION}

    def __setstate__(self, state):
        state = dict(state)
        version = state.pop("_skvbem_version", "an unknown version")
        if version != _VERSION:
            warn(
                f"This {type(self).__name__} was pickled by skvbem {version} and is loaded by {_VERSION}: it may not "
                "work. Fit it again."
            )
        super().__setstate__(state)


def check_count(name: str, method: str, value) -> None:
    """Refuse what is no whole number of at least one, for a parameter of a method."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"The {name!r} parameter of {method} must be an int >= 1. Got {value!r} instead.")


def feature_names(X) -> dict:
    """The attributes `n_features_in_` and, if X has string column names, `feature_names_in_`."""
    holder = BaseEstimator()
    validate_data(holder, X, skip_check_array=True)
    return vars(holder)
