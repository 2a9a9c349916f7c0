"""How often do tests of pseudo-residuals reject a right model, whose parameters were fitted to the same rows?

Two components of one column in 200 rows, or two states in 200 steps, at parameters drawn as in `emission_coverage`.
Kolmogorov's test looks at the largest gap of uniform residuals, and a test of the first autocorrelation at chains.
The limits of both tests are those at 5 % for independent residuals under known parameters.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.residual_tests measure --rows 200 --seconds 1500
    PYTHONPATH=tests python -P -m reproduction.residual_tests table

The record, residual_tests_results.jsonl next to this file, has a line for each simulation: of each test 1 if it does
not reject.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.emission_coverage import EMISSIONS, coverage, rows_of, truth_of
from reproduction.records import new_line, simulate, timed
from scipy import stats

from skvbem import VBHMM, VBMixture

RECORD = Path(__file__).with_name("residual_tests_results.jsonl")
FAMILIES = ["NegativeBinomial()", "Gamma()", "VonMises()", "ZeroInflated(Poisson())", "StudentT(4)"]
PROBLEMS = [f"{kind} of {family}" for kind in ("mixture", "chain") for family in FAMILIES]
STAY, LEVEL = 0.9, 0.05


def measured(problem: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a simulation."""
    kind, _, family = problem.partition(" of ")
    rng = np.random.default_rng([20261129, n, seed, PROBLEMS.index(problem)])
    truth, is_chain = truth_of(family, rng), kind == "chain"
    label = np.cumsum(rng.random(n) > STAY) % 2 if is_chain else rng.integers(2, size=n)
    X = rows_of(family, truth, label, rng)
    line, options = new_line(problem, n, seed), {"emission": EMISSIONS[family], "n_init": 2, "random_state": seed}
    model = VBHMM(2, **options) if is_chain else VBMixture(2, **options)
    with timed(line, "fit"):
        model.fit(X)
    with timed(line, "residuals"):
        residuals = model.pseudo_residuals(X)
    line["held"]["largest gap"] = [int(residuals.largest_gaps[0] <= stats.kstwo(n).isf(LEVEL))]
    if is_chain:
        (first,), reach = residuals.autocorrelations(1)[1], stats.norm.isf(LEVEL / 2)
        line["held"]["autocorrelation"] = [int(abs(first) <= reach / np.sqrt(residuals.n_pairs(1)[1, 0]))]
    return line


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: model, test, simulations, percent of them that it rejects."""
    for problem in PROBLEMS:
        for name, part, error, n in coverage(lines, problem):
            yield problem, name, str(n), f"{100 * (1 - part):.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    simulate(__doc__.splitlines()[0], RECORD, PROBLEMS, measured, [table_rows])
