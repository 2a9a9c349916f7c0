"""Intervals of means, spreads and concentrations of emissions that hide or integrate a number: how many hold the truth?

Two components of one column in 200 rows, at parameters drawn about two places, fitted under default priors. Components
of the truth are matched to those of the fit by its responsibilities. Intervals are those of draws of the posterior.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.emission_coverage measure --rows 200 --seconds 3000
    PYTHONPATH=tests python -P -m reproduction.emission_coverage table

The record, emission_coverage_results.jsonl next to this file, has a line for each simulation: for each parameter 1 for
each component whose 95 % interval holds the truth, and 0 for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import new_line, simulate, timed

from skvbem import VBMixture
from skvbem.emissions import Censored, Gamma, NegativeBinomial, StudentT, VonMises, ZeroInflated

RECORD = Path(__file__).with_name("emission_coverage_results.jsonl")
DRAWS: dict[str, Any] = {"n_draws": 256, "n_chains": 8, "max_sweeps": 256}
DF, LIMIT = 4.0, -2.5
EMISSIONS: dict[str, Any] = {
    "NegativeBinomial()": NegativeBinomial(),
    "Gamma(pseudo_rows=1.0)": Gamma(pseudo_rows=1.0),
    "VonMises()": VonMises(),
    "ZeroInflated(Poisson())": ZeroInflated(),
    f"StudentT({DF:g})": StudentT(DF),
    f"Censored(below={LIMIT})": Censored(below=LIMIT),
    "Gamma(pseudo_rows=0.1)": Gamma(pseudo_rows=0.1),
    "Gamma()": Gamma(),
}


def truth_of(problem: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Parameters of two components, (2,) each, named as draws have them."""
    spread = rng.normal(size=2)
    place = np.array([0.0, 1.0]) + 0.1 * rng.normal(size=2)
    if problem == "NegativeBinomial()":
        return {"means": 3 * 15**place, "sizes": 4 * np.exp(0.4 * spread)}
    if problem.startswith("Gamma"):
        return {"means": 12**place, "shapes": 6 * np.exp(0.4 * spread)}
    if problem == "VonMises()":
        return {"means": -1.2 + 2.8 * place, "concentrations": 4 * np.exp(0.4 * spread)}
    if problem == "ZeroInflated(Poisson())":
        return {"inflation": rng.beta(4.0, 8.0, size=2), "rates": 3 * 6**place}
    if problem.startswith("StudentT"):
        return {"means": 8 * place, "scales": np.exp(0.4 * spread)}
    return {"means": 6 * place - 2.0, "covariances": np.exp(0.4 * spread)}


def rows_of(problem: str, truth: dict[str, np.ndarray], label: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows (n, 1) drawn at parameters."""
    first, second = ([*truth.values()][k][label] for k in (0, 1))
    n = len(label)
    if problem == "NegativeBinomial()":
        X = rng.poisson(first * rng.gamma(second, 1 / second)).astype(float)
    elif problem.startswith("Gamma"):
        X = rng.gamma(second, first / second)
    elif problem == "VonMises()":
        X = rng.vonmises(first, second)
    elif problem == "ZeroInflated(Poisson())":
        X = np.where(rng.random(n) < first, 0.0, rng.poisson(second))
    elif problem.startswith("StudentT"):
        X = first + np.sqrt(second) * rng.standard_t(DF, size=n)
    else:
        X = np.maximum(first + np.sqrt(second) * rng.normal(size=n), LIMIT)
    return X[:, None]


def measured(problem: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a simulation."""
    rng = np.random.default_rng([20261128, n, seed, list(EMISSIONS).index(problem)])
    truth = truth_of(problem, rng)
    label = rng.integers(2, size=n)
    X = rows_of(problem, truth, label, rng)
    line = new_line(problem, n, seed)
    model = VBMixture(2, emission=EMISSIONS[problem], n_init=2, random_state=seed)
    with timed(line, "fit"):
        model.fit(X)
    together = model.predict_proba(X).T @ (label[:, None] == np.arange(2))
    order = [0, 1] if np.trace(together) >= len(X) / 2 else [1, 0]
    with timed(line, "draws"):
        draws = model.sample_posterior(X, random_state=seed, **DRAWS)
    line["converged"] = bool(draws.converged)
    (drawn,) = (each for name, each in draws.parameters.items() if name != "mixture")
    for name, value in truth.items():
        away = drawn[name].reshape(len(drawn[name]), 2) - value[order]
        if problem == "VonMises()" and name == "means":
            away = (away + np.pi) % (2 * np.pi) - np.pi
        low, high = np.quantile(away, [0.025, 0.975], axis=0)
        line["held"][name] = ((low <= 0) & (high >= 0)).astype(int).tolist()
    return line


def coverage(lines: Sequence[dict], problem: str) -> Iterator[tuple[str, float, float, int]]:
    """Of each parameter the part of intervals that hold the truth, its standard error, and simulations."""
    held = [line["held"] for line in lines if line["problem"] == problem]
    for name in held[0] if held else ():
        of_lines = np.array([np.mean(each[name]) for each in held])
        yield name, float(of_lines.mean()), float(of_lines.std() / np.sqrt(len(of_lines))), len(of_lines)


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: emission, parameter, simulations, percent of intervals that hold the truth."""
    for problem in EMISSIONS:
        for name, part, error, n in coverage(lines, problem):
            yield problem, name, str(n), f"{100 * part:.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    simulate(__doc__.splitlines()[0], RECORD, EMISSIONS, measured, [table_rows])
