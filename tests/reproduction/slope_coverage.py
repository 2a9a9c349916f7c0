"""Intervals of slopes of membership: how many hold the truth?

Latent classes of eight yes/no items in 300 rows, two covariates of a standard normal distribution. Two kinds:

- "drawn": slopes, intercepts and items are drawn from the prior, of two classes or three. Classes of the truth are
  matched to those of the fit as draws of the posterior are. Then 95 % intervals by exact draws hold 95 % of all truths;
- "slope 0", "slope 1", "slope 2": two classes of items of probabilities .2 and .8, log odds of the second class -1 at
  the means, and this slope along the first covariate, none along the second.

Intervals are those of log odds against the largest class.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.slope_coverage measure --rows 300 --seconds 3000
    PYTHONPATH=tests python -P -m reproduction.slope_coverage table

The record, slope_coverage_results.jsonl next to this file, has a line for each simulation: for each method 1 for each
interval that holds the truth, and 0 for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import by_each_method, new_line, simulate, timed
from scipy.special import log_softmax, polygamma

from skvbem import VBMixture
from skvbem.emissions import Softmax

RECORD = Path(__file__).with_name("slope_coverage_results.jsonl")
N_ITEMS, N_COVARIATES = 8, 2
#: Classes of each problem, and the slope where it is fixed.
PROBLEMS = {"drawn, 2": (2, None), "drawn, 3": (3, None), "slope 0": (2, 0.0), "slope 1": (2, 1.0), "slope 2": (2, 2.0)}
FIT = {"n_init": 2, "search_effort": "fast"}
OPTIONS: dict[str, dict[str, Any]] = {
    "draws": {"n_draws": 600, "n_chains": 8, "max_sweeps": 512},
    "linear_response": {"n_draws": 1000},
    "vb": {"n_draws": 1000},
}


def table(problem: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Items and covariates of rows; intercepts, slopes and probabilities of items, class by class."""
    n_classes, slope = PROBLEMS[problem]
    rng = np.random.default_rng([n, seed, list(PROBLEMS).index(problem)])
    u = rng.normal(size=(n, N_COVARIATES))
    u = (u - u.mean(axis=0)) / u.std(axis=0)  # as the model measures them
    if slope is None:
        slopes = rng.normal(size=(n_classes, N_COVARIATES))
        intercepts = rng.normal(0.0, np.sqrt(polygamma(1, 1.0)), size=n_classes)
        items = rng.random((n_classes, N_ITEMS))
    else:
        slopes, intercepts = np.array([[-slope / 2, 0.0], [slope / 2, 0.0]]), np.array([0.5, -0.5])
        items = np.repeat([[0.2], [0.8]], N_ITEMS, axis=1)
    logs = log_softmax(intercepts + u @ slopes.T, axis=1)
    label = (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)
    X = (rng.random((n, N_ITEMS)) < items[label]).astype(float)
    return np.hstack([X, u]), intercepts, slopes, items


def matched(
    model: VBMixture, X: np.ndarray, intercepts: np.ndarray, slopes: np.ndarray, items: np.ndarray
) -> list[int]:
    """The class of the truth for each class of a fit, by the highest expected log likelihood of complete rows."""
    items = items.clip(1e-9, 1 - 1e-9)
    y, u = X[:, :N_ITEMS], X[:, N_ITEMS:]
    logs = log_softmax(intercepts + u @ slopes.T, axis=1) + y @ np.log(items).T + (1 - y) @ np.log1p(-items).T
    together = model.predict_proba(X).T @ logs
    return list(
        max(permutations(range(len(items))), key=lambda order: sum(together[k, c] for k, c in enumerate(order)))
    )


def measured(problem: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a simulation."""
    X, *truth = table(problem, n, seed)
    line = new_line(problem, n, seed)
    n_classes = PROBLEMS[problem][0]
    membership = Softmax([*range(N_ITEMS, N_ITEMS + N_COVARIATES)])
    model = VBMixture(n_classes, emission="bernoulli", membership=membership, random_state=seed, **FIT)
    with timed(line, "fit"):
        model.fit(X)
    slopes = truth[1][matched(model, X, *truth)]
    reference = int(model.counts_.argmax())
    others = [k for k in range(n_classes) if k != reference]
    wanted = (slopes - slopes[reference])[others]

    def drawn(method: str) -> np.ndarray:
        draws = model.sample_posterior(X, method=method, **OPTIONS[method])
        coefficients = draws.parameters["membership"]["coefficients"]
        return (coefficients - coefficients[:, [reference]])[:, others]

    for method, differences in by_each_method(line, OPTIONS, drawn):
        low, high = np.quantile(differences, [0.025, 0.975], axis=0)
        held = (low <= wanted) & (wanted <= high)
        line["held"][method] = held.astype(int).ravel().tolist()
        line.setdefault("length", {})[method] = round(float((high - low).mean()), 3)
    return line


def coverage(lines: Sequence[dict], problem: str, method: str, column: int | None = None) -> tuple[float, float, int]:
    """Part of the intervals that hold the truth, its standard error by simulations, and their number."""
    held = [line["held"][method] for line in lines if line["problem"] == problem and line["held"].get(method)]
    by_line = np.array([np.mean(each if column is None else each[column::N_COVARIATES]) for each in held])
    if not len(by_line):
        return np.nan, np.nan, 0
    return float(by_line.mean()), float(by_line.std() / np.sqrt(len(by_line))), len(by_line)


def rows_of(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table, the first its header."""
    yield "problem", "simulations", "draws", "linear response", "q alone"
    for problem in PROBLEMS:
        cells = [coverage(lines, problem, method) for method in OPTIONS]
        yield problem, str(cells[0][2]), *(f"{100 * part:.1f} ± {100 * error:.1f}" for part, error, _ in cells)


if __name__ == "__main__":
    simulate(__doc__.splitlines()[0], RECORD, PROBLEMS, measured, [rows_of])
