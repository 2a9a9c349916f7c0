"""How near are estimates of small noises, and how often do intervals hold them? Tables of six columns and one factor.

Columns have variance 1 and loadings of either sign. All of a table have one uniqueness, the share of noise; or one of
0.005 stands beside five of 0.05 to 0.5; or they are drawn from the prior. Counted for the three methods of
``sample_posterior`` at nominal 50, 80 and 95 %. Beside them stands the median of estimates over truths.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.uniqueness_coverage measure --rows 200 --seconds 1800
    PYTHONPATH=tests python -P -m reproduction.uniqueness_coverage again --method draws
    PYTHONPATH=tests python -P -m reproduction.uniqueness_coverage table

The record, uniqueness_coverage_results.jsonl next to this file, has a line for each simulation; what is there is not
done again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from reproduction.interval_coverage import METHODS, drawn_by_each_method, held
from reproduction.records import new_line, simulate, timed

from skvbem import VBFactorAnalysis

RECORD = Path(__file__).with_name("uniqueness_coverage_results.jsonl")
_D = 6
_MIXED = np.array([0.005, 0.05, 0.1, 0.2, 0.3, 0.5])
#: What is simulated, by name: uniquenesses, where they are not drawn.
PROBLEMS = {f"all {u:g}": np.full(_D, u) for u in (0.005, 0.02, 0.05, 0.2, 0.5)} | {"mixed": _MIXED, "prior": None}


def truth(name: str, rng: np.random.Generator) -> np.ndarray:
    """Uniquenesses (d,)."""
    if PROBLEMS[name] is not None:
        return PROBLEMS[name]
    return 1 / (1 + rng.normal(size=_D) ** 2 / rng.gamma(1.0))  # loadings in units of their noises


def measured(name: str, n: int, seed: int, methods: Iterable[str] = METHODS) -> dict:
    """The record of a simulation: how many intervals of each kind hold the truth, of how many, and seconds."""
    rng = np.random.default_rng([38, n, seed, list(PROBLEMS).index(name)])
    noise = truth(name, rng)
    loadings = rng.choice([-1.0, 1.0], size=_D) * np.sqrt(1 - noise)
    X = rng.normal(size=(n, 1)) * loadings + np.sqrt(noise) * rng.normal(size=(n, _D))
    record = new_line(name, n, seed)
    with timed(record, "fit"):
        model = VBFactorAnalysis(1, random_state=seed).fit(X)
    record["ratios"] = (model.noise_variance_ / noise).round(4).tolist()
    for method, draws in drawn_by_each_method(record, model, X, methods):
        drawn = draws.parameters["factor"]["noise_variances"]
        record["held"][method] = [held(drawn[:, [j]], noise[[j]]) for j in range(_D)]
    return record


def again(line: dict, method: str) -> dict:
    """A line in which the intervals of one method are those that the installed version finds."""
    fresh = measured(line["problem"], line["n"], line["seed"], (method,))
    return line | {key: line[key] | fresh[key] for key in ("seconds", "held")}


def table(records: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: estimates over truths, and coverage in percent at each level by each method."""
    for name in PROBLEMS:
        lines = [each for each in records if each["problem"] == name]
        parts = {name: slice(0, _D)}
        if name == "mixed":
            parts = {"0.005 of mixed": slice(0, 1), "0.05 to 0.5 of mixed": slice(1, _D)}
        for what, columns in parts.items() if lines else ():
            ratio, cells = np.median([each["ratios"][columns] for each in lines]), []
            for method in METHODS:
                counts = [each["held"][method][columns] for each in lines if method in each["held"]]
                *hits, total = np.sum(counts, axis=(0, 1)) if counts else (0, 0, 0, 1)
                cells.append(" ".join(f"{100 * hit / total:.0f}" for hit in hits))
            yield what, str(len(lines)), f"{ratio:.2f}", *cells


if __name__ == "__main__":
    simulate(__doc__.splitlines()[0], RECORD, PROBLEMS, measured, [table], again)
