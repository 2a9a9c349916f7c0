"""Is the sampler that no fit has a say in right? Populations over growing data against sums and long runs of another.

Two hundred tiny models of each kind, whose evidence is a sum over all that is hidden: latent classes, networks of two
latents, mixtures and chains of measurements and of counts. One population each, whose mean weight is the evidence on
average, whatever its size. And tables of the literature under 20 models or more, whose evidence is known by importance
sampling about a fit, long and not in doubt: that shares no step with these populations.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.data_tempering measure --seconds 900
    PYTHONPATH=tests python -P -m reproduction.data_tempering table

The record, data_tempering_results.jsonl next to this file, has a line for each model; what is there is not done again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.evidence_calibration import (
    KINDS,
    LONG_IMPORTANCE,
    MAX_TERMS,
    Problem,
    fresh,
    put_together,
    real,
    reference_of,
    tiny,
)
from reproduction.evidence_calibration import record as calibrations
from reproduction.records import add_to_record, read_record

from skvbem import VBDiscreteDAG
from skvbem.datasets import load_carcinoma, load_coleman_panel, load_gender_role, load_stouffer_toby

RECORD = Path(__file__).with_name("data_tempering_results.jsonl")
# Tiny models of each kind, from a number on that no other record has.
N_TINY, FIRST = 200, 1000
ONE_POPULATION = {"kind": "smc_data", "n_particles": 1024, "max_particles": 1024}
LONG_POPULATION = {"kind": "smc_data", "n_particles": 4096, "max_particles": 16_384, "error": 0.05}
# Kinds whose rows may be counts.
_OF_NUMBERS = ("mixtures", "chains")


def tiny_problem(kind: str, number: int) -> Problem:
    """A tiny model; every other pair of mixtures and of chains is of counts, which are its measurements rounded."""
    problem = tiny(kind, FIRST + number)
    if kind in _OF_NUMBERS and number // 2 % 2:
        counting = type(problem.model)(problem.model.n_components, emission="poisson")
        problem = replace(problem, model=counting, X=np.rint(np.abs(problem.X)))
    quick = problem.model.set_params(init="random", n_init=1, max_iter=10_000)  # populations ask no fit
    return replace(problem, name=f"{kind} {number}", model=quick)


def two_latents() -> Iterator[Problem]:
    """Tables of the literature under two classes that share an item."""
    tables = {
        "coleman": load_coleman_panel,
        "stouffer": load_stouffer_toby,
        "gender role": load_gender_role,
        "carcinoma": load_carcinoma,
    }
    for name, load in tables.items():
        X = np.asarray(load().data)
        items = [f"x{j}" for j in range(X.shape[1])]
        half = len(items) // 2
        network = {item: ["s"] * (j <= half) + ["t"] * (j >= half) for j, item in enumerate(items)}
        model = VBDiscreteDAG(network, latents={"s": 2, "t": 2})
        yield Problem(f"{name}, two latents", "two latents", model, X, (LONG_IMPORTANCE,))


def real_problems() -> list[Problem]:
    """Tables and models that populations from the prior can reach: categories and counts."""
    counted = [each for each in [*real(), *fresh()] if each.group.startswith("real")]
    return [*(each for each in counted if getattr(each.model, "emission", "") in ("", "poisson")), *two_latents()]


def record() -> list[dict[str, Any]]:
    """Lines written so far."""
    return read_record(RECORD)


def run_of(problem: Problem, options: dict[str, Any]) -> dict[str, Any]:
    """What a population says of a problem, and its CPU seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = problem.fitted(0)
        began = time.process_time()
        found = model.log_evidence(problem.X, **options)
        seconds = time.process_time() - began
        line = {"value": found.value, "error": found.standard_error, "doubts": list(found.doubts)}
        if options is ONE_POPULATION:
            line["exact"] = model.log_evidence(problem.X, kind="exact", max_terms=MAX_TERMS).value
    return {"model": problem.name, "group": problem.group} | line | {"seconds": round(seconds, 3)}


def known_by_importance(problem: Problem) -> dict[str, Any]:
    """What long importance sampling says of a problem, of another record where it was asked."""
    for line in calibrations():
        if line.get("reference") == problem.name and line["kind"] == "importance_gibbs":
            return line
    return reference_of(problem, LONG_IMPORTANCE)


def measure(seconds: float) -> None:
    """Tiny models first, then tables, as many as the CPU time allows."""
    done = {line["model"] for line in record()}
    began = time.process_time()
    for number in range(N_TINY):
        for kind in KINDS:
            if f"{kind} {number}" not in done and time.process_time() - began < seconds:
                add_to_record(RECORD, run_of(tiny_problem(kind, number), ONE_POPULATION))
    for problem in real_problems():
        if problem.name not in done and time.process_time() - began < seconds:
            reference = known_by_importance(problem)
            line = {"model": problem.name, "group": problem.group, "reference": reference}
            if not reference["doubts"]:
                line = run_of(problem, LONG_POPULATION) | {"reference": reference}
            add_to_record(RECORD, line)


def tiny_models(lines: list[dict[str, Any]], kind: str) -> tuple[np.ndarray, np.ndarray]:
    """How far populations are from sums, nats, and in standard errors."""
    mine = [line for line in lines if line["group"] == kind and "exact" in line]
    off = np.array([line["value"] - line["exact"] for line in mine])
    return off, off / np.array([line["error"] for line in mine]).clip(1e-9)


def tables(lines: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """How far long populations are from long importance sampling that is not in doubt, nats and standard errors."""
    mine = [line for line in lines if "reference" in line and "value" in line]
    known = put_together([line["reference"] for line in mine])
    off = np.array([line["value"] - known[line["reference"]["reference"]][0] for line in mine])
    errors = [np.hypot(line["error"], known[line["reference"]["reference"]][1]) for line in mine]
    return off, off / np.array(errors)


def table(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: how many, the mean weight and its error, and z."""
    for name in [*KINDS, "tables"]:
        off, z = tables(lines) if name == "tables" else tiny_models(lines, name)
        weights = np.exp(off)
        of_weights = f"{weights.mean():.3f} ± {weights.std() / np.sqrt(len(z)):.3f}"
        yield (
            name,
            str(len(z)),
            "" if name == "tables" else of_weights,  # there the reference is no sum
            f"{z.mean():+.2f}",
            f"{z.std():.2f}",
            f"{100 * np.mean(np.abs(z) <= 2):.0f}",
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
