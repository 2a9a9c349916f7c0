"""Is the evidence of networks with hidden numbers as uncertain as it says? Runs of two scores beside long ones.

Ten simulated tables of 3 to 6 columns and 30 to 120 rows: a factor, one below a column, one below a category, two with
columns of their own, one beside a class, one below another, each with gaps in half of the tables. References are
long bridges, and particles that begin in the prior and take the rows one by one.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.hidden_number_evidences measure --seconds 900
    PYTHONPATH=tests python -P -m reproduction.hidden_number_evidences table

The record, hidden_number_evidences_results.jsonl next to this file, has a line for each reference and each run; what is
there is not done again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reproduction.evidence_calibration import put_together
from reproduction.records import add_to_record, read_record

from skvbem import DAG, VBNetwork

RECORD = Path(__file__).with_name("hidden_number_evidences_results.jsonl")
SCORES = ("auto", "linear_response")
N_RUNS, N_PROBLEMS = 8, 10
LONG = {"kind": "bridge", "n_draws": 4096, "n_chains": 64, "n_kept": 32}
#: From the prior, row by row: it knows nothing of the fit.
FROM_PRIOR = {"kind": "smc_data"}
LONG_SEED = 1000
#: Edges and latents of each kind of network; the column c holds categories.
NETWORKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("f>x f>y f>z", {"f": "number"}),
    ("x>f f>y f>z f>w", {"f": "number"}),
    ("c>f f>x f>y f>z", {"f": "number"}),
    ("f>x f>y f>z g>u g>v g>w", {"f": "number", "g": "number"}),
    ("g>f f>x f>y f>z g>u g>v", {"f": "number", "g": "number"}),
)


def simulated(number: int) -> pd.DataFrame:
    """The table of a problem, drawn from a network of its kind."""
    rng = np.random.default_rng([84, number])
    edges = edges_of(number)
    n, values = int(rng.integers(30, 121)), {"c": rng.integers(0, 2, 121)}
    dag = DAG.coerce(edges)
    nodes = dag.topological_order()
    for node in nodes:
        if node != "c":
            means = sum((rng.normal(scale=1.2) * values[p] for p in dag.parents(node)), start=np.zeros(121))
            values[node] = means + rng.normal(scale=1.0 if node in "fg" else rng.uniform(0.5, 1.0), size=121)
    table = pd.DataFrame({node: values[node][:n] for node in nodes if node not in "fg"})
    if number >= len(NETWORKS):
        numbers = [node for node in table if node != "c"]
        table[numbers] = table[numbers].mask(rng.random((n, len(numbers))) < 0.1)
    return table.assign(c=np.where(table["c"] == 1, "yes", "no")) if "c" in table else table


def edges_of(number: int) -> list[tuple[str, str]]:
    """Edges of the network of a problem."""
    return [tuple(edge.split(">")) for edge in NETWORKS[number % len(NETWORKS)][0].split()]  # type: ignore[misc]


def scored(name: str, seed: int, **options: Any) -> dict[str, Any]:
    """A score of a fit of one seed: its value and error, nats, doubts, and CPU seconds of fit and score."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = simulated(int(name))
        latents = NETWORKS[int(name) % len(NETWORKS)][1]
        fitted = VBNetwork(edges_of(int(name)), latents=latents, random_state=seed).fit(X)
        between = time.process_time()
        evidence = fitted.log_evidence(X, random_state=seed, **options)
    return {
        "value": evidence.value,
        "error": evidence.standard_error,
        "bound": fitted.lower_bound_,
        "doubts": list(evidence.doubts),
        "fit_seconds": round(between - began, 3),
        "seconds": round(time.process_time() - between, 3),
    }


def record() -> list[dict[str, Any]]:
    """Lines written so far."""
    return read_record(RECORD)


def asked() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The fields that name a line, and the options of its score."""
    for number in range(N_PROBLEMS):
        for long in (LONG, FROM_PRIOR):
            yield {"reference": str(number), "kind": long["kind"], "seed": LONG_SEED}, long
    for seed in range(N_RUNS):
        for number in range(N_PROBLEMS):
            for score in SCORES:
                yield {"run": str(number), "score": score, "seed": seed}, {"kind": score}


def measure(seconds: float) -> None:
    """Measure lines that the record lacks, as many as the CPU time allows."""
    done = record()
    for name, options in asked():
        if time.process_time() > seconds:
            return
        if not any(name.items() <= line.items() for line in done):
            add_to_record(RECORD, name | scored(name.get("run", name.get("reference")), name["seed"], **options))


def references(lines: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The evidence of each problem, and the error of what is known of it, nats."""
    return put_together([line for line in lines if "reference" in line])


def deviations(lines: list[dict[str, Any]], score: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances of runs from references, nats, the errors of these (NaN of scores without one), and CPU seconds."""
    known = references(lines)
    mine = [line for line in lines if line.get("score") == score]
    off = np.array([line["value"] - known[line["run"]][0] for line in mine])
    stated = np.array([np.nan if line["error"] is None else line["error"] for line in mine])
    error = np.hypot(stated, [known[line["run"]][1] for line in mine])
    return off, error, np.array([line["seconds"] for line in mine])


def table(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Score, runs, the share within 2 errors, mean and largest distance, nats; CPU seconds of the median."""
    for score in SCORES:
        off, error, seconds = deviations(lines, score)
        within = "" if np.isnan(error).all() else f"{np.mean(np.abs(off) <= 2 * error):.2f}"
        yield (
            score,
            str(len(off)),
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
