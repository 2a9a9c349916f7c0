"""How often do intervals of forecasts hold what comes? Series of random systems of known order, and their next steps.

A system has two states and three columns. Its transition is a matrix of standard normal entries, scaled to a spectral
radius between 0.5 and 0.98; loadings are standard normal, noises have the variance 0.5. A series starts at rest and
runs for 8 steps more than are shown. Intervals of `VBLinearDynamicalSystem(2)` average over parameters; "plug-in" ones
of the same fit do not, and those of maximum likelihood by `statsmodels` (`DynamicFactor`, the same model; of the first
60 series, if it is installed) do not either.

    PYTHONPATH=tests python -P -m reproduction.forecast_coverage measure --rows 30
    PYTHONPATH=tests python -P -m reproduction.forecast_coverage table

adds to forecast_coverage_results.jsonl next to this file, one line for each series; what is there is not run again.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from reproduction.records import simulate

from skvbem import VBLinearDynamicalSystem

RESULTS = Path(__file__).with_name("forecast_coverage_results.jsonl")
K, P, N_AHEAD, NOISE = 2, 3, 8, 0.5
LEVELS = (0.5, 0.8, 0.95)
N_OF_PEER = 60


def drawn(n_steps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A series (n_steps, 3), and its next steps (8, 3)."""
    rng = np.random.default_rng([n_steps, seed])
    a = rng.normal(size=(K, K))
    a *= rng.uniform(0.5, 0.98) / np.abs(np.linalg.eigvals(a)).max()
    c, x, rows = rng.normal(size=(P, K)), np.zeros(K), []
    for _ in range(200 + n_steps + N_AHEAD):
        x = a @ x + rng.normal(size=K)
        rows.append(c @ x + np.sqrt(NOISE) * rng.normal(size=P))
    return np.array(rows[200 : 200 + n_steps]), np.array(rows[200 + n_steps :])


def held(lower: np.ndarray, upper: np.ndarray, ahead: np.ndarray) -> float:
    """The share of cells that their intervals hold."""
    return round(float(np.mean((lower <= ahead) & (ahead <= upper))), 4)


def of_peer(X: np.ndarray, ahead: np.ndarray) -> list[float] | None:
    """Shares held by intervals of `statsmodels`; None without it."""
    try:
        from statsmodels.tsa.statespace.dynamic_factor import DynamicFactor
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DynamicFactor(X - X.mean(axis=0), k_factors=K, factor_order=1)
        forecast = model.fit(disp=False, maxiter=500).get_forecast(N_AHEAD)
        ends = (np.asarray(forecast.conf_int(alpha=1 - level)) for level in LEVELS)
    middle = X.mean(axis=0)
    return [held(each[:, :P] + middle, each[:, P:] + middle, ahead) for each in ends]


def measured(problem: str, n: int, seed: int) -> dict:
    """The line of a series: shares of cells that intervals of 50, 80 and 95 % hold, by each way to make them."""
    X, ahead = drawn(n, seed)
    model = VBLinearDynamicalSystem(K, random_state=0).fit(X)
    line: dict = {"problem": problem, "n": n, "seed": seed}
    for name, predictive in (("averaged", "average"), ("plug-in", "mean")):
        model.set_params(predictive=predictive)
        forecasts = [model.forecast(X, N_AHEAD, level=level) for level in LEVELS]
        line[name] = [held(each.lower[0], each.upper[0], ahead) for each in forecasts]
    line["statsmodels"] = of_peer(X, ahead) if seed < N_OF_PEER else None
    return line


def coverage(lines: list[dict], n: int, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Mean shares (3,) of series of a length, their standard errors, and how many series these are."""
    shares = np.array([line[name] for line in lines if line["n"] == n and line[name] is not None])
    return shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(len(shares)), len(shares)


def table(lines: list[dict]) -> list[tuple[str, ...]]:
    """Rows of the table: steps, how intervals are made, series, and percent held at each level with standard errors."""
    rows = []
    for n in sorted({line["n"] for line in lines}):
        for name in ("averaged", "plug-in", "statsmodels"):
            mean, error, n_series = coverage(lines, n, name)
            of_levels = (f"{100 * m:.1f} ± {100 * e:.1f}" for m, e in zip(mean, error))
            rows.append((str(n), name, str(n_series), *of_levels))
    return rows


def main() -> None:
    """Measure, or print the table."""
    simulate(__doc__, RESULTS, ["random"], measured, [table])


if __name__ == "__main__":
    main()
