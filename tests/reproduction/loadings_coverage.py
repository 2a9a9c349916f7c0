"""How often do intervals of rotated loadings hold the truth? Tables of twelve columns that three factors explain.

Each factor has four columns, with loadings uniform from 0.5 to 0.9, and loadings of deviation 0.1 on all others.
Columns have variance 1 and mean 0. The truth is rotated as the fit is, by varimax, and its factors are named after
those of the fit, by size and sign. Counted for the three methods of ``sample_posterior`` at nominal 50, 80 and 95 %.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.loadings_coverage measure --rows 300 --seconds 1800
    PYTHONPATH=tests python -P -m reproduction.loadings_coverage table

The record, loadings_coverage_results.jsonl next to this file, has a line for each simulation; what is there is not done
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from reproduction.interval_coverage import METHODS, CoverageStudy, drawn_by_each_method, held
from reproduction.records import new_line, timed

from skvbem import VBFactorAnalysis
from skvbem.fitted.rotations import ROTATIONS, matched, rotated

RECORD = Path(__file__).with_name("loadings_coverage_results.jsonl")
#: What is simulated, by name: the rotation.
PROBLEMS = ("varimax",)
_D, _Q, _CROSS = 12, 3, 0.1
# Between the loadings of a factor's own columns and those of others, rotated.
_LARGE = 0.35


def truth(rng: np.random.Generator) -> np.ndarray:
    """Loadings (d, q) that are drawn."""
    large = np.kron(np.eye(_Q, dtype=bool), np.ones((_D // _Q, 1), dtype=bool))
    return np.where(large, rng.uniform(0.5, 0.9, size=large.shape), _CROSS * rng.normal(size=large.shape))


def measured(name: str, n: int, seed: int, methods: Iterable[str] = METHODS) -> dict:
    """The record of a simulation: how many intervals of each kind hold the truth, of how many, and seconds."""
    rng = np.random.default_rng([16, n, seed])
    loadings = truth(rng)
    noise = np.maximum(1 - (loadings**2).sum(axis=1), 0.05)
    X = rng.normal(size=(n, _Q)) @ loadings.T + np.sqrt(noise) * rng.normal(size=(n, _D))
    deviations = np.sqrt((loadings**2).sum(axis=1) + noise)
    turned = rotated(loadings, ROTATIONS[name].of(loadings / deviations[:, None]))
    record = new_line(name, n, seed)
    with timed(record, "fit"):
        model = VBFactorAnalysis(_Q, rotation=name, random_state=seed).fit(X)
    order, signs = (of_one[0] for of_one in matched(turned[None], model.loadings_))
    turned = turned[:, order] * signs
    large = np.abs(turned) > _LARGE
    for method, draws in drawn_by_each_method(record, model, X, methods):
        drawn = draws.parameters["factor"]
        record["held"][method] = {
            "large loadings": held(drawn["loadings"][:, large], turned[large]),
            "small loadings": held(drawn["loadings"][:, ~large], turned[~large]),
            "uniquenesses": held(drawn["uniquenesses"], noise / deviations**2),
        }
    return record


STUDY = CoverageStudy(__doc__, RECORD, PROBLEMS, measured)

if __name__ == "__main__":
    STUDY.run()
