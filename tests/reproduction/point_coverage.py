"""How often do confidence intervals of maximum likelihood hold the truth? Parameters drawn, data from these, a fit.

The problems are those of `interval_coverage`, fitted by maximum likelihood. Counted at nominal 50, 80 and 95 % for
`standard_errors`, and for percentiles of a nonparametric and of a parametric bootstrap of 300 fits; labels of the truth
are those nearest to q(x) of the fit. A parameter without a standard error, a probability of 0, has no interval by
`standard_errors`: how often that is so is counted, too.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.point_coverage measure --seconds 600 --rows 200
    PYTHONPATH=tests python -P -m reproduction.point_coverage table

The record, point_coverage_results.jsonl next to this file, has a line for each simulation; what is there is not done
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from reproduction.interval_coverage import LEVELS, PROBLEMS, aligned_truth
from reproduction.records import by_each_method, new_line, read_record, simulate, timed

RECORD = Path(__file__).with_name("point_coverage_results.jsonl")
METHODS = ("standard_errors", "nonparametric", "parametric")
_N_DRAWS = 300


def measured(name: str, n: int, seed: int) -> dict:
    """The record of a simulation: intervals that hold the truth, all there are, those lacking, and seconds."""
    problem = PROBLEMS[name]
    rng = np.random.default_rng([20261124, list(PROBLEMS).index(name), n, seed])
    truth = problem.truth(rng)
    X = problem.rows(truth, n, rng)
    record = new_line(name, n, seed)
    model = problem.fitted(X, seed).set_params(method="ml")
    with timed(record, "fit"):
        model.fit(X)
    aligned = aligned_truth(problem, truth, model, X)
    # A component without width has no standard errors.
    for method, found in by_each_method(record, METHODS, lambda method: intervals_of(model, X, method)):
        record["held"][method] = held(problem, aligned, found)
    return record


def intervals_of(model: Any, X: Any, method: str) -> list[dict]:
    """Lower and upper ends at each level."""
    if method == "standard_errors":
        found = model.standard_errors(X)
    else:
        found = model.bootstrap(X, _N_DRAWS, kind=method)
    return [found.intervals(level) for level in LEVELS]


def held(problem: Any, truth: dict, intervals: list[dict]) -> dict:
    """Of each quantity how many intervals hold the truth at each level, how many there are, and how many lack."""
    counts: dict = {}
    for of_level in intervals:
        ends = []
        for side in (0, 1):
            by_group = {group: {name: pair[side][None] for name, pair in of.items()} for group, of in of_level.items()}
            ends.append(problem.parameters(SimpleNamespace(parameters=by_group)))
        for what, true in truth.items():
            low, high = (each[what] for each in ends)
            counts.setdefault(what, []).append(int(((low <= true) & (true <= high)).sum()))
    for what, true in truth.items():
        missing = int(np.isnan(ends[0][what]).sum())
        counts[what] += [true.size - missing, missing]
    return counts


def read() -> list[dict]:
    """The record, a dict for each simulation."""
    return read_record(RECORD)


def table(records: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: coverage in percent by method, and the share without an interval."""
    for name in PROBLEMS:
        for n in sorted({each["n"] for each in records}):
            of_problem = [each for each in records if each["problem"] == name and each["n"] == n]
            of_problem = [each for each in of_problem if each["held"]["standard_errors"]]
            if not of_problem:
                continue
            for what in of_problem[0]["held"]["standard_errors"]:
                cells, lacking = [], ""
                for method in METHODS:
                    counts = [each["held"][method][what] for each in of_problem]
                    *hits, total, missing = np.sum(counts, axis=0)
                    cells.append(" ".join(f"{100 * hit / total:.0f}" for hit in hits))
                    if method == "standard_errors":
                        lacking = f"{100 * missing / (missing + total):.0f} %"
                yield name, str(n), str(len(of_problem)), what, *cells, lacking


def costs(records: list[dict]) -> Iterator[tuple[str, ...]]:
    """Median CPU seconds of the fit and of each method, by problem and number of rows."""
    for name in PROBLEMS:
        for n in sorted({each["n"] for each in records}):
            of_problem = [each for each in records if each["problem"] == name and each["n"] == n]
            if of_problem:
                yield (
                    name,
                    str(n),
                    *(
                        f"{np.median([each['seconds'][what] for each in of_problem if what in each['seconds']]):.2f}"
                        for what in ("fit", *METHODS)
                    ),
                )


def main() -> None:
    """Measure further simulations, or print the tables."""
    simulate(__doc__.splitlines()[0], RECORD, PROBLEMS, measured, (table, costs))


if __name__ == "__main__":
    main()
