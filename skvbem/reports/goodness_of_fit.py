"""Fit indices that every estimator gives: likelihood, criteria, certainty of labels, chi-square where cells are few."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import log, prod

import numpy as np
from scipy.special import chdtrc, xlogy

from skvbem._tabular import named_values
from skvbem.fitted.under_fit import Cells, UnderFit
from skvbem.fitting.evaluation import under_fit


@dataclass(frozen=True, eq=False)
class GoodnessOfFit:
    """Fit indices of a model on a table of rows, or on sequences.

    The information criteria are in the form -2 ln L + penalty, where LOWER is better: the convention of the field. The
    library's evidence scores are in nats, where higher is better.

    Parameters
    ----------
    log_likelihood : float
        ln L at the published parameters, nats.
    n_free_parameters : int
        The d of the criteria.
    n_samples : float
        The n of the criteria: sum of the weights of rows, which are the steps of sequences.
    g2, x2 : float
        Likelihood ratio and Pearson's chi-square against the saturated model, from the rows without missing cells. For
        sequences of categories, all of one length, the cells are whole sequences, up to a million of them. NaN where
        values are not finitely many.
    degrees_of_freedom : int or None
        Cells of the table of all columns, less 1, less d: too small where parameters are not identified, and below 0
        where these are more than the cells, so that there is no test. None where there is no `g2`.
    aic, bic, sabic, caic : float
        Penalties 2 d, d ln n, d ln((n + 2) / 24) and d (ln n + 1).
    entropy_r2 : dict of latent to float
        1 - (mean entropy of q(latent | row)) / ln(number of states): 1 where every row's state is certain. The latent
        is "component" in a mixture and "state" in a hidden Markov model.
    bivariate_residuals : dict of (column, column) to float
        X² of the two columns' table per (r - 1)(s - 1), from the rows without missing cells; above 4 the pair hangs
        together more than the model says. NaN where the table would exceed `max_table_cells`. Sequences, and
        columns of numbers, have none.
    price : float
        The price of edges between ordered answers that the data chose, nats. The criteria are those of
        `log_likelihood` less this price. It is 0 for other data than those of the fit.
    """

    log_likelihood: float
    n_free_parameters: int
    n_samples: float
    g2: float
    x2: float
    degrees_of_freedom: int | None
    aic: float
    bic: float
    sabic: float
    caic: float
    entropy_r2: dict
    bivariate_residuals: dict
    price: float = 0.0

    @property
    def g2_p_value(self) -> float:
        """Probability that G² is as large if the model is right, by its chi-square; NaN without degrees of freedom."""
        return self._p_value(self.g2)

    @property
    def x2_p_value(self) -> float:
        """Probability that X² is as large if the model is right; NaN without degrees of freedom."""
        return self._p_value(self.x2)

    def _p_value(self, statistic: float) -> float:
        df = self.degrees_of_freedom
        return float(chdtrc(df, max(statistic, 0.0))) if df is not None and df > 0 else np.nan

    def _facts(self) -> dict[str, str]:
        """Indices by name, numbers below each other; those that there are."""
        entropy = ", ".join(f"{name} {value:.3f}" for name, value in self.entropy_r2.items()) or "none"
        worst = max(self.bivariate_residuals.items(), key=lambda item: item[1], default=None)
        df = self.degrees_of_freedom
        p_values = f", p = {self.g2_p_value:.3g} / {self.x2_p_value:.3g}"
        if df is not None and df <= 0:
            p_values = ": no test, as the model has as many parameters as the table has cells, or more"
        facts = {
            "log likelihood": f"{self.log_likelihood:14.4f} nats, {self.n_free_parameters} free parameters, "
            f"n = {self.n_samples:g}",
            "G2 / X2": f"{self.g2:14.4f} / {self.x2:.4f} on {df} degrees of freedom{p_values}",
            "AIC / BIC": f"{self.aic:14.3f} / {self.bic:.3f} (lower is better)",
            "SABIC / CAIC": f"{self.sabic:14.3f} / {self.caic:.3f} (lower is better)",
            "entropy R2": entropy,
            "largest bivariate residual": f"{worst[1]:.3f} between {worst[0][0]} and {worst[0][1]}"
            if worst
            else "none",
        }
        if self.price:
            facts["price of edges"] = f"{self.price:14.4f} nats, in AIC to CAIC"
        if df is None:
            del facts["G2 / X2"]
            for name, is_there in (("entropy R2", self.entropy_r2), ("largest bivariate residual", worst)):
                if not is_there:
                    del facts[name]
        return facts

    def __repr__(self):
        return "\n".join(f"{name + '  ':<22}{text}" for name, text in self._facts().items())

    def _repr_html_(self):
        return named_values({name: text.strip() for name, text in self._facts().items()})


def goodness_of_fit(estimator, X, sample_weight=None, **where) -> GoodnessOfFit:
    """Fit indices of a fitted estimator on some data; see its method of this name."""
    under = under_fit(estimator, X, sample_weight, caller="goodness_of_fit", **where)
    return fit_indices(estimator.n_free_parameters_, under)


def fit_indices(n_free_parameters: int, under: UnderFit) -> GoodnessOfFit:
    """Fit indices of a model of some dimension, from what it says of rows or sequences."""
    scores, d, n = under.scores, n_free_parameters, under.total_weight
    weight = np.ones(len(scores)) if under.weight is None else under.weight
    if not n:
        raise ValueError("X must have a row with an observed cell, of categories that the fit knows.")
    log_likelihood = float(weight @ scores)
    paid = -2 * (log_likelihood - under.price)
    g2 = x2 = np.nan
    df, residuals = None, {}
    if (cells := under.cells) is not None:
        complete = np.flatnonzero((cells.codes >= 0).all(axis=1))
        if cells.are_all:
            g2, x2 = _against_saturated(cells.codes[complete], scores[complete], weight[complete])
            df = prod(map(int, cells.sizes)) - 1 - d
        residuals = _bivariate_residuals(cells, complete, weight[complete])
    return GoodnessOfFit(
        log_likelihood,
        d,
        n,
        g2,
        x2,
        df,
        paid + 2 * d,
        paid + d * log(n),
        paid + d * log((n + 2) / 24),
        paid + d * (log(n) + 1),
        {latent: entropy_r2(each, under.weight_of_rows) for latent, each in under.posteriors.items()},
        residuals,
        under.price,
    )


def entropy_r2(posterior: np.ndarray, weight: np.ndarray | None) -> float:
    """Entropy R² of states given their rows, probabilities (n_rows, n_states): 1 where each is certain."""
    entropies = -xlogy(posterior, posterior).sum(axis=1)
    mean = float(np.average(entropies, weights=weight))
    return 1.0 - mean / log(max(posterior.shape[1], 2))


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


def _bivariate_residuals(cells: Cells, complete: np.ndarray, weight: np.ndarray) -> dict:
    residuals: dict = {}
    codes = cells.codes[complete].astype(np.int64)
    for (i, a), (j, b) in combinations(enumerate(cells.names), 2):
        ra, rb = cells.sizes[i], cells.sizes[j]
        if min(ra, rb) < 2 or len(codes) == 0 or cells.joint is None:
            continue
        observed = np.bincount(codes[:, i] * rb + codes[:, j], weights=weight, minlength=ra * rb).reshape(ra, rb)
        together = cells.joint(i, j)
        if together is None:
            residuals[a, b] = np.nan
            continue
        expected = observed.sum() * together
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(expected > 0, (observed - expected) ** 2 / expected, np.where(observed > 0, np.inf, 0.0))
        residuals[a, b] = float(terms.sum()) / ((ra - 1) * (rb - 1))
    return residuals
