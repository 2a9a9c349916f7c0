"""Is the evidence of linear dynamical systems as uncertain as it says? Runs of two scores beside what is known.

Four tiny systems, whose evidence is known by quadrature over the parameters (one state, of which A and C are all that
is not integrated in closed form) or by sums over draws from the prior, and two real series under one state and two:
the Nile, and the air of New York [Chambers et al. 1983], whose references are long runs of annealed chains and of
populations over growing data, put together by their errors. Each run has a seed of its own, for fit and score.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.linear_system_evidences measure --seconds 900
    PYTHONPATH=tests python -P -m reproduction.linear_system_evidences table

The record, linear_system_evidences_results.jsonl next to this file, has a line for each reference and each run; what is
there is not done again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from models.linear_dynamical_system.linear_systems import EVIDENCES
from reproduction.evidence_calibration import WRONG_ERRORS, WRONG_NATS, Problem, put_together, reference_of
from reproduction.real_tables import air_quality, is_here
from reproduction.records import add_to_record, read_record

from skvbem import VBLinearDynamicalSystem
from skvbem.datasets import load_nile
from skvbem.evidence import Evidence, get_score
from skvbem.models.linear_dynamical_system.model import LDSAscent
from skvbem.testing.cases import evaluation_from

RECORD = Path(__file__).with_name("linear_system_evidences_results.jsonl")
SCORES = ("auto", "ais")
# Runs of each tiny problem and of each real series; starts of the fits of tiny ones.
N_TINY, N_REAL, N_STARTS = 60, 20, 3
LONG_CHAINS = {"kind": "ais", "n_chains": 256, "n_steps": 256}
LONG_POPULATION = {"kind": "smc_data", "n_particles": 8192, "max_particles": 16_384, "error": 0.03}
# Where these are no surer than a run.
LONGER = {
    "air quality, two": (
        {"kind": "ais", "n_chains": 256, "n_steps": 1024},
        {"kind": "smc_data", "n_particles": 32_768, "max_particles": 32_768},
    )
}
# Real series, each under one state and under two, and the prior of all of them.
REAL = {f"{series}, {number}": k for k, number in enumerate(("one", "two"), 1) for series in ("nile", "air quality")}
PRIOR = {
    "transition_precision_prior": 1.0,
    "loading_precision_prior": 1.0,
    "noise_shape_prior": 1.0,
    "noise_rate_prior": 1.0,
}
# What is asked.
ASKED = [(name, score) for names in (EVIDENCES, REAL) for score in SCORES for name in names]


def real() -> Iterator[Problem]:
    """The real series that can be read."""
    series = {"nile": load_nile().data}
    if is_here("air_quality"):
        series["air quality"] = air_quality()
    for name, k in REAL.items():
        X = series.get(name.split(", ")[0])
        if X is not None:
            model = VBLinearDynamicalSystem(k, **PRIOR)
            long_runs = LONGER.get(name, (LONG_CHAINS, LONG_POPULATION))
            yield Problem(name, "real", model, np.asarray(X), long_runs)


def of_tiny(name: str, score: str, seed: int) -> Evidence:
    """The score of a tiny problem under its own prior, from random starts."""
    case, *_ = EVIDENCES[name]
    model, data, rng = case.model, case.compile(), np.random.default_rng(seed)
    starts = [model.statistics_of_start(data, rng.normal(size=(len(data), case.k)), 1.0) for _ in range(N_STARTS)]
    evaluation = evaluation_from(np.stack(starts, axis=1), LDSAscent, model, data, ("state",), seed=seed)
    return get_score(score)(evaluation)


def run_of(name: str, score: str, seed: int) -> dict[str, Any]:
    """What a fit of a problem and a score of it say."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in EVIDENCES:
            found = of_tiny(name, score, seed)
        else:
            (problem,) = (each for each in real() if each.name == name)
            found = problem.fitted(seed).log_evidence(problem.X, kind=score)
    line = {"run": name, "score": score, "seed": seed, "value": found.value, "error": found.standard_error}
    return line | {"doubts": list(found.doubts), "seconds": round(time.process_time() - began, 3)}


def record() -> list[dict[str, Any]]:
    """Lines written so far."""
    return read_record(RECORD)


def measure(seconds: float, names: list[str]) -> None:
    """References first, then runs seed after seed, as many as the CPU time allows."""
    done = record()
    known = {(line["reference"], line["kind"]) for line in done if "reference" in line}
    ran = {(line["run"], line["score"], line["seed"]) for line in done if "run" in line}
    for problem in real():
        for options in problem.references:
            if problem.name in names and (problem.name, options["kind"]) not in known:
                add_to_record(RECORD, reference_of(problem, options))
    for seed in range(N_TINY):
        for name, score in ASKED:
            wanted = name in names and seed < (N_TINY if name in EVIDENCES else N_REAL)
            if wanted and (name, score, seed) not in ran and time.process_time() < seconds:
                add_to_record(RECORD, run_of(name, score, seed))


def references(lines: list[dict[str, Any]]) -> Mapping[str, tuple[float, float]]:
    """The evidence of each problem and the error of what is known of it, nats."""
    tiny = {name: (evidence, 0.0) for name, (_, evidence, _) in EVIDENCES.items()}
    return tiny | put_together([line for line in lines if "reference" in line])


def measured(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Problems and scores of which there are runs."""
    ran = {(line["run"], line["score"]) for line in lines if "run" in line}
    return [asked for asked in ASKED if asked in ran]


def deviations(lines: list[dict[str, Any]], name: str, score: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What runs are off by, nats, their stated errors, and which of them doubt themselves."""
    mine = [line for line in lines if (line.get("run"), line.get("score")) == (name, score)]
    off = np.array([line["value"] for line in mine]) - references(lines)[name][0]
    return off, np.array([line["error"] for line in mine]), np.array([bool(line["doubts"]) for line in mine])


def wrong(off: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Which runs are wrong: by many of their errors, and by what matters."""
    return (np.abs(off) > WRONG_ERRORS * error) & (np.abs(off) > WRONG_NATS)


def table(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: problem, score, runs, those in doubt, and what holds of the others; seconds."""
    known = references(lines)
    for name, score in measured(lines):
        off, error, doubted = deviations(lines, name, score)
        if np.sum(~doubted) > 1:
            off, error = off[~doubted], error[~doubted]
        seconds = [line["seconds"] for line in lines if (line.get("run"), line.get("score")) == (name, score)]
        yield (
            f'"{name}"' if "," in name else name,
            score,
            str(len(doubted)),
            str(doubted.sum()),
            f"{off.mean():+.3f} ± {np.hypot(off.std(ddof=1) / np.sqrt(len(off)), known[name][1]):.3f}",
            f"{np.sqrt(np.mean(error**2)):.3f}",
            f"{off.std(ddof=1) / np.sqrt(np.mean(error**2)):.2f}",
            str(wrong(off, np.hypot(error, known[name][1])).sum()),
            f"{np.median(seconds):.1f}",
        )


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=900.0, help="of CPU time")
    parser.add_argument("--only", nargs="+", default=[*EVIDENCES, *REAL])
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.seconds, options.only)
    for row in table(record()):
        print(", ".join(row))


if __name__ == "__main__":
    main()
