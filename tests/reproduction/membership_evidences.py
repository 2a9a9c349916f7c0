"""Sampled evidences of mixtures with covariates of the component, beside long runs of the same models.

Problems are drawn from their prior: two to four classes of five yes/no items, one or two covariates. "bridge", the
first sampler of "auto", runs from ten seeds on each of ten of 20 to 200 rows, and "auto" from twelve on each of eight
others of 60 to 400, of which four are on record. The long run is importance sampling about Gibbs draws with
four times the draws of its default; its error is part of every difference.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.membership_evidences measure
    PYTHONPATH=tests python -P -m reproduction.membership_evidences table

The record, membership_evidences_results.jsonl next to this file, has a line for each problem: the long run, and the
value, standard error and warnings of each run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record
from scipy.special import log_softmax, polygamma

from skvbem import VBMixture
from skvbem.emissions import Softmax

RECORD = Path(__file__).with_name("membership_evidences_results.jsonl")
N_ITEMS, N_SEEDS = 5, {"bridge": 10, "auto": 12}
#: Classes, covariates and rows of each problem: ten of "bridge", then those of "auto".
PROBLEMS = (
    *((2, 1, 20), (3, 2, 60), (4, 1, 60), (2, 2, 20), (3, 1, 200)),
    *((2, 1, 60), (2, 2, 60), (2, 1, 200), (2, 2, 200), (3, 1, 20)),
    *((2, 1, 60), (3, 1, 60), (2, 2, 100), (3, 2, 60), (2, 1, 200), (2, 2, 400), (3, 1, 80), (2, 1, 400)),
)


def kind_of(number: int) -> str:
    """The evidence that runs on a problem."""
    return "bridge" if number < 10 else "auto"


def table(number: int) -> np.ndarray:
    """Items and covariates of a problem."""
    n_classes, n_covariates, n = PROBLEMS[number]
    rng = np.random.default_rng([11, number])
    u = rng.normal(size=(n, n_covariates))
    u = (u - u.mean(axis=0)) / u.std(axis=0)  # as the model measures them
    slopes, intercepts = rng.normal(size=(n_classes, n_covariates)), rng.normal(size=n_classes)
    logs = log_softmax(intercepts * np.sqrt(polygamma(1, 1.0)) + u @ slopes.T, axis=1)
    label = (logs + rng.gumbel(size=logs.shape)).argmax(axis=1)
    return np.hstack([rng.random((n, N_ITEMS)) < rng.random((n_classes, N_ITEMS))[label], u]).astype(float)


def fitted(number: int, seed: int) -> tuple[VBMixture, np.ndarray]:
    """A fit to a problem, and its data."""
    X, (n_classes, n_covariates, _) = table(number), PROBLEMS[number]
    membership = Softmax([*range(N_ITEMS, N_ITEMS + n_covariates)])
    model = VBMixture(n_classes, emission="bernoulli", membership=membership, random_state=seed, search_effort="fast")
    return model.fit(X), X


def run(number: int, seed: int, **options: Any) -> dict[str, Any]:
    """The value, standard error, warnings and CPU seconds of an evidence."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, X = fitted(number, seed)
        evidence = model.log_evidence(X, **options)
    seconds = round(time.process_time() - began, 2)
    numbers = {"value": evidence.value, "error": evidence.standard_error}
    return {name: round(float(x), 5) for name, x in numbers.items()} | {
        "doubts": len(evidence.doubts),
        "seconds": seconds,
    }


def measured(number: int) -> dict[str, Any]:
    """The line of a problem."""
    kind = kind_of(number)
    runs = [run(number, seed, kind=kind) for seed in range(N_SEEDS[kind])]
    long = run(number, 1000, kind="importance_gibbs", n_draws=16_384, n_completions=256)
    return {"problem": number, "long": long, "runs": runs}


def differences(lines: list[dict]) -> np.ndarray:
    """Differences of runs without warnings from long runs, in standard errors."""
    return np.array(
        [
            (each["value"] - line["long"]["value"]) / np.hypot(each["error"], line["long"]["error"])
            for line in lines
            for each in line["runs"]
            if not each["doubts"]
        ]
    )


def main() -> None:
    """Measure what is not on record, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    if parser.parse_args().what == "measure":
        done = {line["problem"] for line in read_record(RECORD)}
        for number in range(len(PROBLEMS)):
            if number not in done:
                add_to_record(RECORD, measured(number))
    print("problem, classes, covariates, rows, long run, error, mean, mean error, warned, root mean square of z")
    for line in read_record(RECORD):
        z, long = differences([line]), line["long"]
        mean, error = (np.mean([each[name] for each in line["runs"]]) for name in ("value", "error"))
        cells = [f"{x:.3f}" for x in (long["value"], long["error"], mean, error)]
        warned = sum(each["doubts"] > 0 for each in line["runs"])
        print(line["problem"], *PROBLEMS[line["problem"]], *cells, warned, f"{np.sqrt((z**2).mean()):.2f}", sep=", ")
    for kind in N_SEEDS:
        z = differences([line for line in read_record(RECORD) if kind_of(line["problem"]) == kind])
        print(
            f"{kind}, {len(z)} runs: {100 * (np.abs(z) < 2).mean():.1f} % within two errors, mean z {z.mean():.2f}, "
            f"root mean square {np.sqrt((z**2).mean()):.2f}, {np.abs(z).max():.2f}"
        )


if __name__ == "__main__":
    main()
