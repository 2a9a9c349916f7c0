"""The kind of `VBFactorAnalysis`: a mixture of one component whose emission has factors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skvbem.emissions import FactorGaussian
from skvbem.errors import DataWarning, warn
from skvbem.estimators.labels import LabelKind
from skvbem.estimators.mixture.kind import MixtureKind
from skvbem.fitted.factor_analysis import FittedFactorAnalysis
from skvbem.fitted.rotations import explained_variance
from skvbem.models.mixture.model import Mixture
from skvbem.models.mixture.weights import FiniteWeights
from skvbem.optima.labels import FactorStarts, statistics_at
from skvbem.optima.plan import FitPlan
from skvbem.reading.column_groups import ColumnOptions
from skvbem.reading.rows import TableReading
from skvbem.reading.tables import listed

#: Parameters of the estimator that are those of the emission.
EMISSION_PARAMETERS = (
    *("n_factors", "noise", "standardize", "relevance", "relevance_prior", "groups"),
    *("noise_prior", "mean_prior", "mean_precision_prior"),
)


class FactorKind(MixtureKind):
    """Factor analysis."""

    fitted = FittedFactorAnalysis
    located_by = ()
    reading_parameters = frozenset({"missing_values", *EMISSION_PARAMETERS})
    prior_parameters = ()

    def column_options(self, estimator) -> ColumnOptions:
        """The emission of all columns, and what is missing."""
        emission = FactorGaussian(**{name: getattr(estimator, name) for name in EMISSION_PARAMETERS})
        return ColumnOptions(type(estimator).__name__, emission, missing_values=estimator.missing_values)

    def check(self, estimator, X) -> None:
        """Refuse a number of factors to be chosen without a bound; warn of moments in the place of rows."""
        self.check_numbers_of_factors(estimator, X)
        _warn_of_moments(X)

    def model(self, estimator, reading: TableReading) -> Mixture:
        """The mixture of one component."""
        return self.model_of(estimator, reading, reading.emission(), 1)

    def weights(self, estimator, n_components: int) -> FiniteWeights:
        """The weight of the only component."""
        return FiniteWeights(np.ones(n_components))

    def learns_prior(self, estimator) -> bool:
        """Never: relevances are hidden variables."""
        return False

    def presentation(self, estimator, reading) -> dict[str, Any]:
        """The rotation."""
        return {"rotation": estimator.rotation}

    def starts(self, estimator, model: Mixture, data, reading: TableReading, seed: tuple[int, ...]) -> FactorStarts:
        """Starts from principal components, and from loadings drawn."""
        return FactorStarts(estimator.init, estimator.n_init, seed)

    def new_starts(self, plan: FitPlan, seed: tuple[int, ...]) -> Any:
        """As many starts, the first from principal components."""
        return FactorStarts("auto", plan.n_starts, seed)

    def start_from(self, last: Any, model: Mixture, data, reading: TableReading) -> np.ndarray:
        """Statistics under the loadings of the last solution."""
        point = model.emission.point_of(last.emission.parameters(last.point[-1]))
        return statistics_at(model, model.prior.blocks[-1].natural(point)[:, None], data)[:, 0]

    def warn_of_fit(self, estimator, fitted: Any, data) -> None:
        """Warn of more factors than columns, and of columns without noise."""
        super().warn_of_fit(estimator, fitted, data)
        n_factors, n_columns = estimator.n_factors, fitted.emission.n_columns
        if n_factors != "auto" and n_factors > n_columns:
            warn(
                f"{n_factors} factors cannot be told apart where columns are fewer ({n_columns}): as many factors as "
                "columns give any covariance. Take fewer factors, or n_factors='auto'.",
                DataWarning,
            )
        if estimator.method == "ml" and fitted.near_floor:
            warn(f"{_heywood(fitted.near_floor)} Take fewer factors, or method='vb'.", DataWarning)

    def reservations(self, fitted: Any) -> list[str]:
        """Columns without noise."""
        return [_heywood(fitted.near_floor)] if fitted.near_floor else []

    def attributes(self, fitted: Any) -> dict[str, Any]:
        """Factors, loadings, noise."""
        parameters_found, correlations = fitted.as_found, fitted.correlations
        (parameters,) = fitted.named_parameters(fitted.point).values()
        state = {
            **LabelKind.attributes(self, fitted),
            "parameters_": {fitted.groups.groups[0].name: parameters},
            "loadings_": fitted.loadings,
            "standardized_loadings_": fitted.standardized_loadings,
            "loadings_sd_": fitted.loadings_deviations,
            "mean_": parameters_found["means"],
            "noise_variance_": parameters_found["noise_variances"],
            "uniquenesses_": fitted.uniquenesses,
            "communalities_": 1 - fitted.uniquenesses,
            "factor_variance_": explained_variance(fitted.standardized_loadings, correlations),
            "factor_correlations_": correlations,
            "rotation_matrix_": fitted.turn,
            "heywood_": fitted.near_floor,
            "n_factors_": fitted.n_factors,
        }
        if fitted.relevance is not None and fitted.form.prior_share:
            state["relevance_"] = fitted.relevance
        return state

    def data_attributes(self, fitted, reading, data, before: Mapping | None) -> dict[str, Any]:
        """No hidden state: factors are numbers."""
        return {"latent_states_": {}}

    def title(self, fitted: Any) -> str:
        """Number of factors and columns, and the rotation."""
        n, d = fitted.n_factors, len(fitted.columns.names)
        rotation = f", {fitted.rotation}" if fitted.rotation and n > 1 else ""
        return f"{n} factor{'s' * (n != 1)} of {d} columns{rotation}"


def _warn_of_moments(X) -> None:
    """Warn of covariances or correlations in the place of rows, which other programs take."""
    shape: tuple[int, ...] = getattr(X, "shape", ()) if isinstance(X, np.ndarray) or hasattr(X, "columns") else ()
    if len(shape) != 2 or (n_rows := shape[0]) != shape[1] or n_rows < 3:
        return
    values = np.asarray(X)
    if values.dtype.kind in "iuf" and np.allclose(values, values.T):
        warn(
            f"X is symmetric, {n_rows} rows and as many columns: are these covariances or correlations? They are "
            "taken for rows of data. make_rows_with_moments of skvbem.datasets makes rows that have given moments.",
            DataWarning,
        )


def _heywood(names: list[str]) -> str:
    """A sentence that names columns with next to no noise."""
    who = f"Column {listed(names)} has" if len(names) == 1 else f"Columns {listed(names)} have"
    return f"{who} next to no noise: factors explain all that varies there (a Heywood case)."
