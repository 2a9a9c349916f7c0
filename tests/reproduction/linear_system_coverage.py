"""How often do intervals of linear dynamical systems hold the truth? Four columns that one or two hidden states move.

Transitions are of spectral radius 0.5 to 0.95, loadings normal, noises of variance 0.3 to 1; 200 steps of one sequence.
Counted at nominal 50, 80 and 95 % for the three methods of ``sample_posterior`` is what no basis of the states changes:
variances of noise, offsets, sums of squares of the loadings of a column, and trace and determinant of the transition.
Noise is a small share of columns. A prior that counts as two steps of nothing but noise draws it up: "rate 1".

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.linear_system_coverage measure --seconds 900
    PYTHONPATH=tests python -P -m reproduction.linear_system_coverage table

The record, linear_system_coverage_results.jsonl next to this file, has a line for each simulation; what is there is not
done again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from reproduction.interval_coverage import METHODS, CoverageStudy, drawn_by_each_method, held
from reproduction.records import new_line, timed

from skvbem import VBLinearDynamicalSystem

RECORD = Path(__file__).with_name("linear_system_coverage_results.jsonl")
#: What is simulated, by name: the number of states, and the rate of the prior of noise that a fit takes, or None.
PROBLEMS = {"one state": (1, None), "two states": (2, None), "two states, rate 1": (2, 1.0)}
_P = 4


def truth(k: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Matrices that are drawn."""
    transition = rng.normal(size=(k, k))
    transition *= rng.uniform(0.5, 0.95) / np.abs(np.linalg.eigvals(transition)).max()
    return {
        "transition": transition,
        "loadings": rng.normal(size=(_P, k)),
        "offset": rng.normal(size=_P),
        "noise_variance": rng.uniform(0.3, 1.0, size=_P),
    }


def rows(matrices: dict[str, np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of one sequence drawn at matrices."""
    x, states = rng.normal(size=len(matrices["transition"])), []
    for _ in range(n):
        states.append(x)
        x = matrices["transition"] @ x + rng.normal(size=len(x))
    noise = np.sqrt(matrices["noise_variance"]) * rng.normal(size=(n, _P))
    return matrices["offset"] + np.array(states) @ matrices["loadings"].T + noise


def unchanged(matrices: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What no basis of the states changes, of matrices with draws first, (n_draws, n_numbers)."""
    transition = matrices["transition"]
    return {
        "noises": matrices["noise_variance"],
        "offsets": matrices["offset"],
        "squares of loadings": (matrices["loadings"] ** 2).sum(axis=-1),
        "trace and determinant": np.stack([np.trace(transition, axis1=1, axis2=2), np.linalg.det(transition)], axis=1),
    }


def measured(name: str, n: int, seed: int, methods: Iterable[str] = METHODS) -> dict:
    """The record of a simulation: how many intervals of each kind hold the truth, of how many, and seconds."""
    k, rate = PROBLEMS[name]
    rng = np.random.default_rng([17, k, n, seed])
    matrices = truth(k, rng)
    X = rows(matrices, n, rng)
    record = new_line(name, n, seed)
    with timed(record, "fit"):
        model = VBLinearDynamicalSystem(k, noise_rate_prior=rate, random_state=seed).fit(X)
    true = unchanged({what: values[None] for what, values in matrices.items()})
    for method, draws in drawn_by_each_method(record, model, X, methods):
        drawn = unchanged(draws.parameters["states"] | draws.parameters["columns"])
        record["held"][method] = {what: held(drawn[what], true[what][0]) for what in true}
    return record


STUDY = CoverageStudy(__doc__, RECORD, PROBLEMS, measured)

if __name__ == "__main__":
    STUDY.run()
