"""Do bounds find a season, and do intervals of forecasts hold what comes? Simulated structural time series.

*Seasons*: a level that walks by .1 to 1 a step and noise of 1 over 120 months, to half of the series a pattern of
twelve numbers of deviation 1 to 3. The bound without a season is compared with the higher one of ``Season(12)`` and
``Season(12, noise=False)``.

*Forecasts*: a level about 0 with the deviation 2, whose noise has a half-Cauchy deviation of scale .5, and noise whose
precision is a beta prime variate of shapes 1, as in the prior. Intervals of 95 % of the five steps after the end.

    PYTHONPATH=tests python -P -m reproduction.structural measure
    PYTHONPATH=tests python -P -m reproduction.structural table

adds to structural_results.jsonl next to this file, one line for each series; what is there is not run again.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from reproduction.records import simulate

from skvbem import VBLinearDynamicalSystem
from skvbem.structural import Level, Season

RESULTS = Path(__file__).with_name("structural_results.jsonl")
N_MONTHS, N_AHEAD, LEVEL = 120, 5, 0.95
SETS = ([Level()], [Level(), Season(12)], [Level(), Season(12, noise=False)])


def months(is_seasonal: bool, seed: int) -> np.ndarray:
    """A series of months, (120, 1)."""
    rng = np.random.default_rng([44, int(is_seasonal), seed])
    y = np.cumsum(rng.normal(size=N_MONTHS) * np.exp(rng.uniform(np.log(0.1), 0))) + rng.normal(size=N_MONTHS)
    if is_seasonal:
        pattern = rng.normal(size=12) * rng.uniform(1, 3)
        y = y + (pattern - pattern.mean())[np.arange(N_MONTHS) % 12]
    return y[:, None]


def walk(n: int, seed: int) -> np.ndarray:
    """A level with noise of n steps and of those that come, (n + 5, 1)."""
    rng = np.random.default_rng([45, n, seed])
    of_level, of_noise = abs(rng.standard_cauchy()) / 2, np.sqrt(1 / (rng.f(2, 2) + 1e-9))
    y = np.cumsum(rng.normal(size=n + N_AHEAD) * of_level) + rng.normal(size=n + N_AHEAD) * of_noise
    return (y + 2 * rng.normal())[:, None]


def fitted(blocks: list, X: np.ndarray) -> VBLinearDynamicalSystem:
    """A fit of blocks with all defaults."""
    return VBLinearDynamicalSystem(blocks=blocks, random_state=0).fit(X)


def measured(problem: str, n: int, seed: int) -> dict:
    """The line of a series: the lead of a season in nats, or which of five intervals hold what came."""
    line: dict = {"problem": problem, "n": n, "seed": seed}
    if problem == "forecast":
        y = walk(n, seed)
        ahead = fitted([Level()], y[:n]).forecast(y[:n], N_AHEAD, level=LEVEL)
        held = (ahead.lower[0] <= y[n:]) & (y[n:] <= ahead.upper[0])
        return line | {"held": held.ravel().astype(int).tolist()}
    bounds = [fitted(blocks, months(problem == "season", seed)).lower_bound_ for blocks in SETS]
    return line | {"lead": round(max(bounds[1:]) - bounds[0], 4)}


def found(lines: list[dict], problem: str) -> tuple[float, float, int]:
    """The share of series whose bounds are right about a season, the smallest margin in nats, and their number."""
    leads = np.array([line["lead"] for line in lines if line["problem"] == problem])
    margins = leads if problem == "season" else -leads
    return float((margins > 0).mean()), float(margins.min()), len(margins)


def coverage(lines: list[dict], n: int) -> tuple[float, float, int]:
    """The share of steps that intervals hold after n steps, its standard error, and the number of series."""
    shares = np.array([np.mean(line["held"]) for line in lines if line["problem"] == "forecast" and line["n"] == n])
    return shares.mean(), shares.std(ddof=1) / np.sqrt(len(shares)), len(shares)


def table(lines: list[dict]) -> list[tuple[str, ...]]:
    """Rows of the table: steps, series, and percent held with its standard error."""
    rows = ((n, *coverage(lines, n)) for n in (30, 300))
    return [(str(n), str(count), f"{100 * mean:.1f} ± {100 * error:.1f}") for n, mean, error, count in rows]


def main() -> None:
    """Measure, or print the table."""
    simulate(__doc__, RESULTS, ["season", "none", "forecast"], measured, [table])


if __name__ == "__main__":
    main()
