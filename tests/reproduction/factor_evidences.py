"""Is the evidence of factor analyzers as uncertain as it says? Runs of two scores beside long ones, of 1 to 5 factors.

Ten simulated tables of 6 to 12 columns and 60 to 300 rows, two for each number of factors. Their references are long
bridges in coordinates that no rotation changes; of one factor, which has no rotations, long annealed chains stand
beside them.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.factor_evidences measure --seconds 900
    PYTHONPATH=tests python -P -m reproduction.factor_evidences table

The record, factor_evidences_results.jsonl next to this file, has a line for each reference and each run; what is there
is not done again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.evidence_calibration import put_together
from reproduction.records import add_to_record, read_record

from skvbem import VBFactorAnalysis

RECORD = Path(__file__).with_name("factor_evidences_results.jsonl")
SCORES = ("auto", "linear_response")
N_RUNS, N_PROBLEMS = 4, 10
LONG = {"kind": "bridge", "n_draws": 4096, "n_chains": 64, "n_kept": 32}
LONG_CHAINS = {"kind": "ais", "n_chains": 128, "n_steps": 256}
LONG_SEED = 1000


def n_factors(number: int) -> int:
    """Factors of a problem."""
    return number // 2 + 1


def simulated(number: int) -> np.ndarray:
    """The table of a problem, (n, d)."""
    rng = np.random.default_rng([83, number])
    q = n_factors(number)
    d, n = int(rng.integers(max(6, 2 * q + 1), 13)), int(rng.integers(60, 301))
    loadings = rng.normal(size=(d, q))
    return rng.normal(size=(n, q)) @ loadings.T + rng.uniform(0.5, 1.5, d) * rng.normal(size=(n, d))


def scored(name: str, seed: int, **options: Any) -> dict[str, Any]:
    """A score of a fit of one seed: its value and error, nats, doubts, and CPU seconds of fit and score."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = simulated(int(name))
        fitted = VBFactorAnalysis(n_factors(int(name)), random_state=seed).fit(X)
        between = time.process_time()
        evidence = fitted.log_evidence(X, **options)
    return {
        "value": evidence.value,
        "error": evidence.standard_error,
        "doubts": list(evidence.doubts),
        "fit_seconds": round(between - began, 3),
        "seconds": round(time.process_time() - between, 3),
    }


def record() -> list[dict[str, Any]]:
    """Lines written so far."""
    return read_record(RECORD)


def asked() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What names a line, and the options of its score."""
    for number in range(N_PROBLEMS):
        for long in (LONG, LONG_CHAINS) if n_factors(number) == 1 else (LONG,):
            yield {"reference": str(number), "kind": long["kind"], "seed": LONG_SEED}, long
    for seed in range(N_RUNS):
        for number in range(N_PROBLEMS):
            for score in SCORES:
                yield {"run": str(number), "score": score, "seed": seed}, {"kind": score}


def measure(seconds: float) -> None:
    """Measure what is not in the record yet, as much as the CPU time allows."""
    done = record()
    for name, options in asked():
        if time.process_time() > seconds:
            return
        if not any(name.items() <= line.items() for line in done):
            add_to_record(RECORD, name | scored(name.get("run", name.get("reference")), name["seed"], **options))


def references(lines: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The evidence of each simulated problem, and the error of what is known of it, nats."""
    return put_together([line for line in lines if "reference" in line])


def deviations(lines: list[dict[str, Any]], score: str, numbers: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What runs are off by, nats, the errors of the differences (NaN of scores without one), and which are doubted."""
    known = references(lines)
    mine = [line for line in lines if line.get("score") == score and line["run"] in map(str, numbers)]
    off = np.array([line["value"] - known[line["run"]][0] for line in mine])
    stated = np.array([np.nan if line["error"] is None else line["error"] for line in mine])
    error = np.hypot(stated, [known[line["run"]][1] for line in mine])
    return off, error, np.array([bool(line["doubts"]) for line in mine])


def table(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Factors, score, runs, those in doubt, the share within 2 errors, means off and largest, nats; CPU seconds."""
    for q in range(1, N_PROBLEMS // 2 + 1):
        numbers = range(2 * q - 2, 2 * q)
        for score in SCORES:
            off, error, doubted = deviations(lines, score, numbers)
            within = "" if np.isnan(error).all() else f"{np.mean(np.abs(off) <= 2 * error):.2f}"
            seconds = [
                line["seconds"] for line in lines if line.get("score") == score and line["run"] in map(str, numbers)
            ]
            yield (
                str(q),
                score,
                str(len(off)),
                str(doubted.sum()),
                within,
                f"{off.mean():+.3f}",
                f"{np.abs(off).max():.2f}",
                f"{np.median(seconds):.2f}",
            )


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=900.0, help="of CPU time")
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.seconds)
    for row in table(record()):
        print(", ".join(row))


if __name__ == "__main__":
    main()
