"""Are sampled evidences of emissions that hide or integrate a number as uncertain as they say? Runs beside quadrature.

Twenty mixtures of two components in six rows of one column, whose evidence is the sum over labels of integrals over
grids (`reproduction.emission_bounds`). Each run has a seed of its own, for the fit and for the score "auto", which may
not enumerate.

    PYTHONPATH=tests python -P -m reproduction.emission_evidences measure --seconds 1500
    PYTHONPATH=tests python -P -m reproduction.emission_evidences table

The record, emission_evidences_results.jsonl next to this file, has a line for each run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from reproduction.emission_bounds import FAMILIES, emission_of, evidence_of, rows_of
from reproduction.records import add_to_record, read_record

from skvbem import VBMixture

RECORD = Path(__file__).with_name("emission_evidences_results.jsonl")
N_PROBLEMS, N_RUNS, N_ROWS, N_COMPONENTS = 20, 20, 6, 2


@cache
def problem(number: int) -> tuple[str, np.ndarray, float]:
    """The emission of a problem, its rows, and their log evidence, nats."""
    family = FAMILIES[number % len(FAMILIES)]
    X = rows_of(family, N_ROWS, 1, np.random.default_rng([43, number]))
    X = X[~np.isnan(X).all(axis=1)]
    return family, X, evidence_of(family, X, N_COMPONENTS)


def measured(number: int, seed: int) -> dict:
    """The line of a run."""
    family, X, evidence = problem(number)
    model = VBMixture(N_COMPONENTS, emission=emission_of(family, 1.0, 1), weight_concentration_prior=1.0, n_init=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(random_state=seed).fit(X)
        began = time.process_time()
        sampled = model.log_evidence(X, kind="auto", exact_terms=0)
    line = {"problem": number, "emission": family, "seed": seed, "evidence": round(evidence, 6)}
    line |= {"value": sampled.value, "error": sampled.standard_error, "taken": list(sampled.details["taken"])}
    return line | {"doubts": len(sampled.doubts), "seconds": round(time.process_time() - began, 3)}


def deviations(lines: list[dict]) -> np.ndarray:
    """How far runs are from the evidence, in their standard errors."""
    return np.array([(line["value"] - line["evidence"]) / max(line["error"], 1e-9) for line in lines])


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Of each emission and of all: problems, runs, percent within two errors, mean and spread of errors, an error."""
    for family in [*FAMILIES, "all"]:
        mine = [line for line in lines if family in (line["emission"], "all")]
        if mine:
            z = deviations(mine)
            within, error = 100 * np.mean(np.abs(z) <= 2), np.median([line["error"] for line in mine])
            n_problems = str(len({line["problem"] for line in mine}))
            yield (
                family,
                n_problems,
                str(len(mine)),
                f"{within:.1f}",
                f"{z.mean():+.2f}",
                f"{z.std():.2f}",
                f"{error:.3f}",
            )


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=1500.0, help="CPU seconds after which no run is begun")
    options = parser.parse_args()
    done = {(line["problem"], line["seed"]) for line in read_record(RECORD)}
    for seed in range(N_RUNS if options.what == "measure" else 0):
        for number in range(N_PROBLEMS):
            if (number, seed) not in done and time.process_time() < options.seconds:
                add_to_record(RECORD, measured(number, seed))
    for row in table_rows(read_record(RECORD)):
        print(", ".join(row))


if __name__ == "__main__":
    main()
