"""How often do intervals of loadings and transitions hold the truth? Four growth rates that one or two factors drive.

Factors keep .2 to .9 of themselves; loadings on the first are .2 to 1, on the second normal of deviation .5; noises
have deviations .3 to 1, offsets are normal. 160 quarters of one sequence. Counted at nominal 50, 80 and 95 % are
``standard_errors(X).intervals`` of maximum likelihood and MAP, and `credible_intervals` by linear response and by q(θ)
of VB. Maximum likelihood has none where the noise of a column is gone. Of two factors there are those of VB alone.
There the truth is in the basis in which its states are uncorrelated over the steps seen.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.growth_coverage measure --rows 160
    PYTHONPATH=tests python -P -m reproduction.growth_coverage table

adds to growth_coverage_results.jsonl next to this file, one line for each series; what is there is not run again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from reproduction.records import by_each_method, new_line, simulate

from skvbem import VBLinearDynamicalSystem

RECORD = Path(__file__).with_name("growth_coverage_results.jsonl")
LEVELS = (0.5, 0.8, 0.95)
#: Factors of each problem, and how intervals are made.
PROBLEMS = {"one factor": (1, ("ml", "map", "linear_response", "vb")), "two factors": (2, ("linear_response", "vb"))}
NAMES = {"ml": "maximum likelihood", "map": "MAP", "linear_response": "linear response", "vb": "q of VB"}


def simulated(k: int, n: int, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows (n, 4), and loadings and transition of the states in their basis, in their order, of their signs."""
    rng = np.random.default_rng([48, k, n, seed])
    transition = np.diag(rng.uniform(0.2, 0.9, size=k))
    loadings = np.column_stack([rng.uniform(0.2, 1.0, size=4), *(0.5 * rng.normal(size=(k - 1, 4)))])
    states = np.empty((n, k))
    states[0] = rng.normal(size=k)
    for t in range(1, n):
        states[t] = transition @ states[t - 1] + rng.normal(size=k)
    noise = rng.uniform(0.3, 1.0, size=4) * rng.normal(size=(n, 4))
    X = rng.normal(size=4) + states @ loadings.T + noise
    variances, axes = np.linalg.eigh(np.cov(states.T, bias=True).reshape(k, k))
    standardized = loadings @ axes * np.sqrt(variances) / X.std(axis=0)[:, None]
    order = np.argsort(-(standardized**2).sum(axis=0))
    largest = standardized[np.abs(standardized).argmax(axis=0), np.arange(k)]
    turn = (axes * np.where(largest < 0, -1.0, 1.0))[:, order]
    return X, {"transition": turn.T @ transition @ turn, "loadings": loadings @ turn}


def measured(problem: str, n: int, seed: int) -> dict:
    """The line of a series: how many loadings, and entries of the transition, intervals of each level hold."""
    k, methods = PROBLEMS[problem]
    (X, truth), line = simulated(k, n, seed), new_line(problem, n, seed)

    def held(method: str) -> dict[str, list[int]]:
        of_fit = method if method in ("ml", "map") else "vb"
        model = VBLinearDynamicalSystem(k, method=of_fit, random_state=0).fit(X)
        errors = model.standard_errors(X) if of_fit != "vb" else None
        counts: dict[str, list[int]] = {"loadings": [], "transition": []}
        for level in LEVELS:
            ends = errors.intervals(level) if errors else model.credible_intervals(X, level, method=method)
            for group, name in (("columns", "loadings"), ("states", "transition")):
                lower, upper = ends[group][name]
                counts[name].append(int(((lower <= truth[name]) & (truth[name] <= upper)).sum()))
        return counts

    for method, counts in by_each_method(line, methods, held):
        line["held"][method] = counts
    return line


def coverage(lines: Iterable[dict], problem: str, method: str, name: str) -> tuple[np.ndarray, int]:
    """Shares that intervals of each level hold, and the number of series."""
    k = PROBLEMS[problem][0]
    held = [each for line in lines if line["problem"] == problem and (each := line["held"][method])]
    held = [each[name] for each in held]
    return np.mean(held, axis=0) / ((4 if name == "loadings" else k) * k), len(held)


def table(lines: list[dict]) -> list[tuple[str, ...]]:
    """Rows of the table: problem, series, method, percents of loadings and of the transition."""
    rows = []
    for problem, (_, methods) in PROBLEMS.items():
        for method in methods:
            shares = [coverage(lines, problem, method, name) for name in ("loadings", "transition")]
            percents = (" ".join(f"{100 * x:.0f}" for x in of_each) for of_each, _ in shares)
            rows.append((problem, str(shares[0][1]), NAMES[method], *percents))
    return rows


def main() -> None:
    """Measure, or print the table."""
    simulate(__doc__, RECORD, PROBLEMS, measured, [table])


if __name__ == "__main__":
    main()
