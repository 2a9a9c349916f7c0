"""What users read after a fit: states in use, tables with intervals, fit indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import log, prod

import numpy as np
from scipy.special import xlogy

from skvbem._tabular import named_values
from skvbem.data import Rows
from skvbem.errors import TooLargeError
from skvbem.estimators.reports import MAX_VARIATION_OF_DUPLICATES, LatentStates
from skvbem.models import DiscreteDAG
from skvbem.models.network import queries


def find_states(model: DiscreteDAG, point: np.ndarray, counts: np.ndarray, latent) -> LatentStates:
    """The states of one latent that are in use, empty, or duplicates."""
    layout, k = model.layout, model.position[latent]
    of_latent = layout.table(counts, k)
    mass = of_latent.reshape(-1, of_latent.shape[-1]).sum(axis=0)
    tables = [
        np.moveaxis(layout.table(point, child), layout.parents[child].index(k), 0) for child in layout.children[k]
    ]
    return LatentStates.of(
        mass,
        lambda a, b: (
            bool(tables)
            and all(
                0.5 * np.abs(table[a] - table[b]).sum(axis=-1).max() < MAX_VARIATION_OF_DUPLICATES for table in tables
            )
        ),
    )


@dataclass(frozen=True, eq=False)
class GoodnessOfFit:
    """Fit indices of a network on a table of rows.

    The information criteria are in the form -2 ln L + penalty, where LOWER is better: the convention of the field. The
    library's evidence scores are in nats, where higher is better.

    Parameters
    ----------
    log_likelihood : float
        ln L at the published tables, nats.
    n_free_parameters : int
        The d of the criteria.
    n_samples : float
        The n of the criteria: sum of the weights.
    g2, x2 : float
        Likelihood ratio and Pearson's chi-square against the saturated model, from the rows without missing cells.
    degrees_of_freedom : int
        Cells of the table of all columns, less 1, less d: too small where parameters are not identified.
    aic, bic, sabic, caic : float
        Penalties 2 d, d ln n, d ln((n + 2) / 24) and d (ln n + 1).
    entropy_r2 : dict of latent to float
        1 - (mean entropy of q(latent | row)) / ln(number of states): 1 where every row's state is certain.
    bivariate_residuals : dict of (column, column) to float
        X² of the two columns' table per (r - 1)(s - 1), from the rows without missing cells; above 4 the pair hangs
        together more than the model says. NaN where the table would exceed `max_table_cells`.
    """

    log_likelihood: float
    n_free_parameters: int
    n_samples: float
    g2: float
    x2: float
    degrees_of_freedom: int
    aic: float
    bic: float
    sabic: float
    caic: float
    entropy_r2: dict
    bivariate_residuals: dict

    def _facts(self) -> dict[str, str]:
        """Indices by name, numbers below each other."""
        entropy = ", ".join(f"{name} {value:.3f}" for name, value in self.entropy_r2.items()) or "none"
        worst = max(self.bivariate_residuals.items(), key=lambda item: item[1], default=None)
        return {
            "log likelihood": f"{self.log_likelihood:14.4f} nats, {self.n_free_parameters} free parameters, "
            f"n = {self.n_samples:g}",
            "G2 / X2": f"{self.g2:14.4f} / {self.x2:.4f} on {self.degrees_of_freedom} degrees of freedom",
            "AIC / BIC": f"{self.aic:14.3f} / {self.bic:.3f} (lower is better)",
            "SABIC / CAIC": f"{self.sabic:14.3f} / {self.caic:.3f} (lower is better)",
            "entropy R2": entropy,
            "largest bivariate residual": f"{worst[1]:.3f} between {worst[0][0]} and {worst[0][1]}"
            if worst
            else "none",
        }

    def __repr__(self):
        return "\n".join(f"{name + '  ':<22}{text}" for name, text in self._facts().items())

    def _repr_html_(self):
        return named_values({name: text.strip() for name, text in self._facts().items()})


def fit_indices(model: DiscreteDAG, point: np.ndarray, data: Rows, latents, limits: Mapping) -> GoodnessOfFit:
    """Fit indices of a network at a point, on a table of rows."""
    weight = np.ones(len(data)) if data.weight is None else data.weight
    scores = queries.log_likelihood(model, point, data, **limits)
    log_likelihood = float(weight @ scores)
    d, n = model.prior.n_free_parameters, data.total_weight
    complete = np.flatnonzero((data.codes >= 0).all(axis=1))
    sizes = [model.layout.cardinalities[model.position[name]] for name in data.names]
    g2, x2 = _against_saturated(data.codes[complete], scores[complete], weight[complete])
    entropy = {}
    if latents:
        posteriors = queries.marginals(model, point, data, latents, **limits)
        for name in latents:
            most = n * log(max(posteriors[name].shape[1], 2))
            entropy[name] = 1.0 + float(weight @ xlogy(posteriors[name], posteriors[name]).sum(axis=1)) / most
    return GoodnessOfFit(
        log_likelihood,
        d,
        n,
        g2,
        x2,
        prod(sizes) - 1 - d,
        -2 * log_likelihood + 2 * d,
        -2 * log_likelihood + d * log(n),
        -2 * log_likelihood + d * log((n + 2) / 24),
        -2 * log_likelihood + d * (log(n) + 1),
        entropy,
        _bivariate_residuals(model, point, data, complete, weight, limits),
    )


def _against_saturated(codes, scores, weight) -> tuple[float, float]:
    """G² and X² of complete rows against the saturated model; cells without rows add to X² what is expected of them."""
    if len(codes) == 0:
        return np.nan, np.nan
    _, first, inverse = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    observed = np.bincount(inverse.ravel(), weights=weight)
    n = observed.sum()
    with np.errstate(divide="ignore"):
        expected = n * np.exp(scores[first])
        g2 = 2.0 * float((observed * (np.log(observed / n) - scores[first])).sum())
        x2 = float(((observed - expected) ** 2 / expected).sum() + max(n - expected.sum(), 0.0))
    return g2, x2


def _bivariate_residuals(model, point, data, complete, weight, limits) -> dict:
    nothing = Rows((), np.zeros((1, 0), dtype=np.int8))
    residuals = {}
    codes, w = data.codes[complete], weight[complete]
    for (i, a), (j, b) in combinations(enumerate(data.names), 2):
        ra, rb = (model.layout.cardinalities[model.position[name]] for name in (a, b))
        if min(ra, rb) < 2 or len(codes) == 0:
            continue
        pairs = codes[:, i].astype(np.int64) * rb + codes[:, j]
        observed = np.bincount(pairs, weights=w, minlength=ra * rb).reshape(ra, rb)
        try:
            together = queries.joint(model, point, nothing, (a, b), **limits)[0]
        except TooLargeError:
            residuals[a, b] = np.nan
            continue
        expected = observed.sum() * together
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(expected > 0, (observed - expected) ** 2 / expected, np.where(observed > 0, np.inf, 0.0))
        residuals[a, b] = float(terms.sum()) / ((ra - 1) * (rb - 1))
    return residuals
