"""Intervals of slopes of transitions: how many hold the truth?

Chains of two states and 200 steps, which a covariate of a standard normal distribution drives at departure. Four yes/no
items in each step. Slopes, intercepts, first states and items are drawn from the prior. States of the truth are matched
to those of the fit as draws of the posterior are. Then 95 % intervals by exact draws hold 95 % of all truths.

Intervals are those of the log odds of a state against the other, from each state.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.driven_slope_coverage measure --rows 200 --seconds 600
    PYTHONPATH=tests python -P -m reproduction.driven_slope_coverage table

The record, driven_slope_coverage_results.jsonl next to this file, has a line for each simulation: for each method 1 for
each interval that holds the truth, and 0 for others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import by_each_method, new_line, simulate, timed
from scipy.special import polygamma

from skvbem import VBHMM
from skvbem.emissions import Softmax
from skvbem.models.hmm.capabilities import capabilities_of

RECORD = Path(__file__).with_name("driven_slope_coverage_results.jsonl")
N_ITEMS, N_STATES = 4, 2
PROBLEMS = ("drawn, 2",)
FIT = {"n_init": 2, "search_effort": "fast"}
OPTIONS: dict[str, dict[str, Any]] = {
    "draws": {"n_draws": 600, "n_chains": 8, "max_sweeps": 512},
    "linear_response": {"n_draws": 1000},
    "vb": {"n_draws": 1000},
}


def chain(n: int, seed: int) -> tuple[np.ndarray, tuple]:
    """Items and a covariate of steps; the point that made them: first states, coefficients, probabilities of items."""
    rng = np.random.default_rng([n, seed])
    z = rng.normal(size=n)
    z = (z - z.mean()) / z.std()  # as the model measures it
    w = rng.normal(size=(N_STATES, N_STATES, 2)) * np.sqrt([polygamma(1, 1.0), 1.0])
    w -= w.mean(axis=1, keepdims=True)
    first, items = rng.dirichlet(np.ones(N_STATES)), rng.random((N_STATES, N_ITEMS))
    states = np.empty(n, dtype=int)
    states[0] = rng.random() >= first[0]
    for t in range(1, n):
        odds = w[states[t - 1]] @ [1.0, z[t - 1]]
        states[t] = (odds + rng.gumbel(size=N_STATES)).argmax()
    X = (rng.random((n, N_ITEMS)) < items[states]).astype(float)
    return np.column_stack([X, z]), (first, w, items)


def slopes_of(model: VBHMM, first: np.ndarray, w: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Log odds of state 1 against 0 by unit of the covariate, from each state, of states matched to those of a fit."""
    fitted = model.fitted
    of_items = np.stack([1 - items, items], axis=-1).ravel()
    natural = fitted.model.prior.natural((first, w, (of_items, np.zeros(N_STATES))))
    relabelings = capabilities_of(fitted.model).relabelings.relabelings(())
    nearest = relabelings.nearest(fitted.statistics, natural[:, None])
    matched = fitted.model.transitions.prior.from_natural(fitted.model.prior.split(nearest[:, 0])[1])
    return matched[:, 1, 1] - matched[:, 0, 1]


def measured(problem: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a simulation."""
    X, truth = chain(n, seed)
    line = new_line(problem, n, seed)
    emission = {"bernoulli": [*range(N_ITEMS)]}
    model = VBHMM(N_STATES, emission=emission, transitions=Softmax([N_ITEMS]), random_state=seed, **FIT)
    with timed(line, "fit"):
        model.fit(X)
    wanted = slopes_of(model, *truth)

    def drawn(method: str) -> np.ndarray:
        draws = model.sample_posterior(X, method=method, **OPTIONS[method])
        slopes = draws.parameters["chain"]["transition_coefficients"][..., 0]
        return slopes[:, :, 1] - slopes[:, :, 0]

    for method, differences in by_each_method(line, OPTIONS, drawn):
        low, high = np.quantile(differences, [0.025, 0.975], axis=0)
        line["held"][method] = ((low <= wanted) & (wanted <= high)).astype(int).tolist()
        line.setdefault("length", {})[method] = round(float((high - low).mean()), 3)
    return line


def held(lines: list[dict], method: str) -> tuple[float, float, int]:
    """Part of the intervals that hold the truth, its standard error by simulations, and their number."""
    parts = np.array([np.mean(line["held"][method]) for line in lines if line["held"].get(method)])
    return float(parts.mean()), float(parts.std() / np.sqrt(len(parts))), len(parts)


def rows_of(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table, the first its header."""
    yield "method", "chains", "held", "mean length"
    for method in OPTIONS:
        part, error, n = held(lines, method)
        length = np.mean([line["length"][method] for line in lines])
        yield method.replace("_", " "), str(n), f"{100 * part:.1f} ± {100 * error:.1f}", f"{length:.2f}"


if __name__ == "__main__":
    simulate(__doc__.splitlines()[0], RECORD, PROBLEMS, measured, [rows_of])
