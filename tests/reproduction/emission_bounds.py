"""Are bounds of emissions that hide or integrate a number below the evidence? Random models, each against quadrature.

A model has one component or two, one column or two, and so few rows that labels are enumerated: rows have gaps and
whole weights. The evidence is the sum over labels of the evidence of each component, an integral over a grid of its
parameters, by the definitions of SciPy; nothing of the package is in it. Beside it: the bound never falls on its way, a
weight is a row that recurs, and a unit of measure shifts the bound by its logarithm.

    PYTHONPATH=tests python -P -m reproduction.emission_bounds measure --seconds 1500
    PYTHONPATH=tests python -P -m reproduction.emission_bounds table

The record, emission_bounds_results.jsonl next to this file, has a line for each model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import simulate
from scipy import stats
from scipy.special import gammaln, i0e, logsumexp

from skvbem import VBMixture
from skvbem.emissions import Censored, Gamma, NegativeBinomial, Poisson, StudentT, VonMises, ZeroInflated

RECORD = Path(__file__).with_name("emission_bounds_results.jsonl")
RESOLUTION, DF = 0.02, 4.0
FAMILIES = ("NegativeBinomial()", "Gamma()", "VonMises()", "ZeroInflated(Poisson())", "StudentT()", "Censored()")
#: Those whose bound is the evidence where there is one component.
EXACT = FAMILIES[:3]


def log_prior_of(t: np.ndarray, most: float) -> np.ndarray:
    """ln of the prior density of t = ln x, where p(x) is in proportion to (1 + x)^-2 up to `most`, nats."""
    return np.where(t < np.log(most), t - 2 * np.logaddexp(0, t) + np.log1p(1 / most), -np.inf)


def of_grid(log_density: Callable, first: np.ndarray, second: np.ndarray) -> float:
    """ln of the integral of a density over evenly spaced points, nats."""
    values = log_density(first[:, None], second[None])
    return float(logsumexp(values) + np.log((first[1] - first[0]) * (second[1] - second[0])))


def negative_binomial(y: np.ndarray, mean: float) -> float:
    """Log evidence of counts of one component, nats, where the mean of all is `mean`."""

    def log_density(t, log_odds):
        size, log_p, log_rest = np.exp(t), -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)
        b = 1 + size / mean
        of_rows = sum(gammaln(c + size) - gammaln(size) - gammaln(c + 1) + c * log_p + size * log_rest for c in y)
        return log_prior_of(t, 1e300) + np.log(b) + log_p + b * log_rest + of_rows

    return of_grid(log_density, np.linspace(-16, 16, 700), np.linspace(-36, 24, 1200))


def gamma(y: np.ndarray, mean: float) -> float:
    """Log evidence of positive numbers of one component, nats."""

    def log_density(t, log_rate):
        shape, rate, z = np.exp(t), np.exp(log_rate), y / mean
        of_rows = len(y) * (shape * log_rate - gammaln(shape)) + (shape - 1) * np.log(z).sum() - rate * z.sum()
        of_prior = (1 + shape) * log_rate - gammaln(1 + shape) - rate
        return log_prior_of(t, RESOLUTION**-2) + of_prior + of_rows - len(y) * np.log(mean)

    end = -2 * np.log(RESOLUTION)
    nodes = np.linspace(-16, end, 1400, endpoint=False)
    return of_grid(log_density, nodes + (nodes[1] - nodes[0]) / 2, np.linspace(-26, 12, 3000))


def von_mises(y: np.ndarray, mean: float) -> float:
    """Log evidence of angles of one component, nats."""

    def log_density(t, direction):
        kappa = np.exp(t)
        of_rows = sum(kappa * (np.cos(angle - direction) - 1) - np.log(i0e(kappa)) for angle in y)
        return log_prior_of(t, RESOLUTION**-2) + of_rows - (len(y) + 1) * np.log(2 * np.pi)

    end = -2 * np.log(RESOLUTION)
    nodes = np.linspace(-18, end, 1400, endpoint=False)
    return of_grid(log_density, nodes + (nodes[1] - nodes[0]) / 2, np.linspace(-np.pi, np.pi, 720, endpoint=False))


def zero_inflated(y: np.ndarray, mean: float) -> float:
    """Log evidence of counts of one component, nats: rates Gamma(2, 1/2), inflation Beta(1, 1)."""

    def log_density(log_rate, log_odds):
        rate, p, rest = np.exp(log_rate), 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds))
        of_rows = sum(np.log(p * (c == 0) + rest * np.exp(c * log_rate - rate - gammaln(c + 1)) + 1e-300) for c in y)
        return 2 * log_rate - rate / 2 + 2 * np.log(0.5) + np.log(p) + np.log(rest) + of_rows

    return of_grid(log_density, np.linspace(-20, 6, 700), np.linspace(-25, 25, 700))


def _of_normal(log_row: Callable) -> float:
    """Log evidence under means N(0, 1 / tau) and precisions Gamma(1, 1/2), nats."""

    def log_density(scaled, log_tau):
        mean = scaled * np.exp(-log_tau / 2)
        return stats.norm.logpdf(scaled) + log_tau - np.exp(log_tau) / 2 - np.log(2) + log_row(mean, log_tau)

    return of_grid(log_density, np.linspace(-9, 9, 600), np.linspace(-24, 6, 600))


def student_t(y: np.ndarray, mean: float) -> float:
    """Log evidence of measurements of one component, nats."""
    return _of_normal(lambda m, t: sum(stats.t.logpdf((x - m) * np.exp(t / 2), DF) + t / 2 for x in y))


def censored(y: np.ndarray, mean: float) -> float:
    """Log evidence of measurements of one component, nats; those from .5 on are known as such alone."""

    def log_row(m, t):
        root = np.exp(t / 2)
        return sum(
            stats.norm.logpdf((x - m) * root) + t / 2 if x < 0.5 else stats.norm.logsf((0.5 - m) * root) for x in y
        )

    return _of_normal(log_row)


EVIDENCES = dict(zip(FAMILIES, (negative_binomial, gamma, von_mises, zero_inflated, student_t, censored)))


def emission_of(family: str, unit: float, n_columns: int) -> Any:
    """The emission whose definition is here, of numbers in units."""
    known = {"mean_prior": [0.0] * n_columns, "mean_precision_prior": 1.0, "degrees_of_freedom_prior": 2.0}
    made = {
        "NegativeBinomial()": NegativeBinomial,
        "Gamma()": lambda: Gamma(1.0, RESOLUTION),
        "VonMises()": lambda: VonMises(resolution=RESOLUTION) if unit == 1 else VonMises("degrees", RESOLUTION * unit),
        "ZeroInflated(Poisson())": lambda: ZeroInflated(Poisson(shape_prior=2.0, rate_prior=0.5)),
        "StudentT()": lambda: StudentT(DF, covariance_prior=[[unit**2]], **known),
        "Censored()": lambda: Censored(above=0.5 * unit, covariance_prior=[unit**2] * n_columns, **known),
    }
    return made[family]()


def rows_of(family: str, n: int, n_columns: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of two kinds, a fifth of the cells missing."""
    kind, shape = rng.integers(2, size=(n, 1)), (n, n_columns)
    if family == "NegativeBinomial()":
        X = rng.poisson(np.where(kind, 8.0, 1.0) * rng.gamma(1.0, 1.0, shape)).astype(float)
    elif family == "ZeroInflated(Poisson())":
        X = (rng.poisson(np.where(kind, 6.0, 1.0), shape) * (rng.random(shape) < 0.7)).astype(float)
    elif family == "Gamma()":
        X = rng.gamma(2.0, np.where(kind, 3.0, 0.5), shape)
    elif family == "VonMises()":
        X = rng.vonmises(np.where(kind, 2.0, -1.0), 3.0, shape)
    else:
        X = np.where(kind, 1.5, -1.5) + rng.standard_t(DF, shape) / 2
    X[rng.random(shape) < 0.2] = np.nan
    X[0, 0] = typical = {"NegativeBinomial()": 2.0, "Gamma()": 1.3}.get(family, 0.25)
    X[0, np.isnan(X).all(axis=0)] = typical
    return np.round(X) if family == "ZeroInflated(Poisson())" else X


def evidence_of(family: str, X: np.ndarray, n_components: int) -> float:
    """Log evidence of rows, nats, weights of components Dirichlet(1), labels enumerated."""
    means, kept = np.nanmean(X, axis=0), {}
    means = np.where(means > 0, means, 1.0)  # as the package does where all counts are 0

    def of_component(members: tuple[int, ...]) -> float:
        total = 0.0
        for j in range(X.shape[1]):
            cells = tuple(sorted(x for x in X[list(members), j] if not np.isnan(x)))
            if cells and (j, cells) not in kept:
                kept[j, cells] = EVIDENCES[family](np.array(cells), means[j])
            total += kept[j, cells] if cells else 0.0
        return total

    n, terms = len(X), []
    for labels in product(range(n_components), repeat=n):
        members = [tuple(i for i in range(n) if labels[i] == k) for k in range(n_components)]
        of_labels = gammaln(n_components) - gammaln(n_components + n) + sum(gammaln(1 + len(m)) for m in members)
        terms.append(of_labels + sum(map(of_component, members)))
    return float(logsumexp(terms))


def departures(line: dict) -> dict[str, bool]:
    """Which laws a model breaks, but for the error of the grids."""
    gap, exact = line["evidence"] - line["bound"], line["problem"] in EXACT and line["components"] == 1
    return {
        "the bound is below the evidence": not gap >= -1e-5,
        "the bound of one component is the evidence": exact and gap > 1e-5,
        "the bound never falls": line["fall"] > 1e-9,
        "a weight is a row that recurs": line["repeats"] > 1e-8,
        "units shift the bound by their logarithm": line.get("units", 0.0) > 1e-7,
    }


def measured(family: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a model with n rows, or fewer: the evidence, the bound, and how far laws are from being kept."""
    rng = np.random.default_rng([42, n, seed, FAMILIES.index(family)])
    n_components, n_columns = int(rng.integers(1, 3)), 1 if family == "StudentT()" else int(rng.integers(1, 3))
    X, weight = rows_of(family, int(rng.integers(2, n)), n_columns, rng), None
    X = X[~np.isnan(X).all(axis=1)]
    weight = np.ones(len(X), dtype=int)
    weight[rng.integers(len(X))] += int(rng.integers(0, 3))
    repeated, unit = np.repeat(X, weight, axis=0), 180 / np.pi if family == "VonMises()" else 50.0
    n_points = np.count_nonzero(~np.isnan(repeated) & (~(repeated >= 0.5) | (family != "Censored()")))

    def fitted(X, unit=1.0, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            emission = emission_of(family, unit, n_columns)
            model = VBMixture(n_components, emission=emission, weight_concentration_prior=1.0, n_init=3, tol=1e-10)
            return model.set_params(max_iter=5000, random_state=seed).fit(X, **options)

    model = fitted(X, sample_weight=weight)
    line = {"problem": family, "n": n, "seed": seed, "components": n_components, "rows": len(repeated)}
    line["evidence"] = round(evidence_of(family, repeated, n_components), 7)
    line["bound"] = round(model.lower_bound_, 7)
    line["fall"] = float(max(-np.diff(model.lower_bounds_).min(initial=0.0), 0.0))
    line["repeats"] = float(abs(fitted(repeated).lower_bound_ - model.lower_bound_))
    if family not in ("NegativeBinomial()", "ZeroInflated(Poisson())"):
        scaled = fitted(X * unit, unit, sample_weight=weight)
        line["units"] = float(abs(scaled.lower_bound_ + n_points * np.log(unit) - model.lower_bound_))
    return line


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide.

    Of each emission: models, the largest difference of evidence and bound of one component where they are equal, else
    the least; the least and the largest of two components, nats; and the largest departure from each law.
    """
    for family in FAMILIES:
        mine = [line for line in lines if line["problem"] == family]
        if mine:
            gaps = np.array([line["evidence"] - line["bound"] for line in mine])
            one = np.array([line["components"] == 1 for line in mine])
            laws = [[line[law] for line in mine if law in line] for law in ("fall", "repeats", "units")]
            of_one = f"{abs(gaps[one]).max():.5f}" if family in EXACT else f"{gaps[one].min():.5f}"
            of_two = f"{gaps[~one].min():.2f}", f"{gaps[~one].max():.2f}"
            yield family, str(len(mine)), of_one, *of_two, *(f"{max(each):.0e}" if each else "none" for each in laws)


if __name__ == "__main__":
    simulate(__doc__.splitlines()[0], RECORD, FAMILIES, measured, [table_rows])
