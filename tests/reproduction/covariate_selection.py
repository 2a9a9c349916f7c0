"""Which covariates drive the class of a row: are probabilities of selections by the bound calibrated?

Two latent classes of six yes/no items, four covariates of a standard normal distribution. Two kinds of tables:

- "drawn": a subset of the four, each as probable, and its slopes are drawn from the prior of the search, as are
  intercepts and items. Then of all covariates of probability p a share of p has to be selected;
- "one true": the first covariate has a slope of 1 between the classes for one standard deviation, the others none, and
  items of probabilities .15 and .85. BIC of maximum likelihood stands beside it, as weights exp(-BIC / 2).

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.covariate_selection measure --seconds 600
    PYTHONPATH=tests python -P -m reproduction.covariate_selection table

The record, covariate_selection_results.jsonl next to this file, has a line for each table of rows.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record
from scipy.special import polygamma, softmax

from skvbem import CovariateSpace, StructureSearchCV, VBMixture
from skvbem.emissions import Softmax

RECORD = Path(__file__).with_name("covariate_selection_results.jsonl")
N_ITEMS, N_COVARIATES, SIZES, KINDS = 6, 4, (200, 1000), ("drawn", "one true")
COVARIATES = [*range(N_ITEMS, N_ITEMS + N_COVARIATES)]
FIT = {"n_init": 2, "tol": 1e-3, "search_effort": "fast"}
N_TABLES = {"drawn": 200, "one true": 50}


def table(kind: str, n: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """Items and covariates of rows, and the covariates that have slopes."""
    rng = np.random.default_rng([n, seed, KINDS.index(kind)])
    u = rng.normal(size=(n, N_COVARIATES))
    if kind == "drawn":
        is_in = rng.random(N_COVARIATES) < 0.5
        slopes = rng.normal(size=(2, N_COVARIATES)) * is_in
        intercepts = rng.normal(0.0, np.sqrt(polygamma(1, 1.0)), size=2)
        items = rng.random((2, N_ITEMS))
    else:
        is_in = np.arange(N_COVARIATES) == 0
        slopes, intercepts = np.array([[-0.5], [0.5]]) * is_in, np.zeros(2)
        items = np.array([np.full(N_ITEMS, 0.15), np.full(N_ITEMS, 0.85)])
    u = (u - u.mean(axis=0)) / u.std(axis=0)  # as the model measures them
    of_second = softmax(intercepts + u @ slopes.T, axis=1)[:, 1]
    label = (rng.random(n) < of_second).astype(int)
    X = (rng.random((n, N_ITEMS)) < items[label]).astype(float)
    return np.hstack([X, u]), np.flatnonzero(is_in).tolist()


def probabilities(X: np.ndarray, seed: int) -> list[float]:
    """Of each covariate, by the bounds of all selections."""
    model = VBMixture(2, emission="bernoulli", random_state=seed, **FIT)
    search = StructureSearchCV(model, CovariateSpace(Softmax(COVARIATES)), scoring="lower_bound", refit=False).fit(X)
    return search.covariate_probabilities_.values.round(6).tolist()


def by_bic(X: np.ndarray, seed: int) -> list[float]:
    """Of each covariate, by weights exp(-BIC / 2) of all selections."""
    chosen = [c for size in range(N_COVARIATES + 1) for c in itertools.combinations(COVARIATES, size)]
    scores = []
    for each in chosen:
        membership = Softmax(COVARIATES, selected=list(each))
        model = VBMixture(2, emission="bernoulli", membership=membership, method="ml", random_state=seed, **FIT)
        scores.append(model.fit(X).log_evidence(X, kind="bic").value)
    weights = softmax(np.array(scores))
    return [round(float(sum(w for w, each in zip(weights, chosen) if name in each)), 6) for name in COVARIATES]


def measured(kind: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a table."""
    X, selected = table(kind, n, seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        line = {"kind": kind, "n": n, "seed": seed, "selected": selected, "bound": probabilities(X, seed)}
        if kind == "one true":
            line["bic"] = by_bic(X, seed)
    return line | {"seconds": round(time.process_time() - began, 2)}


def calibration(lines: Sequence[dict]) -> tuple[float, float]:
    """The number of selected covariates less the sum of their probabilities, and its standard error."""
    p = np.array([line["bound"] for line in lines])
    selected = np.array([[at in line["selected"] for at in range(N_COVARIATES)] for line in lines])
    return float((selected - p).sum()), float(np.sqrt((p * (1 - p)).sum()))


def lines_of(kind: str, n: int) -> list[dict]:
    """Lines of the record."""
    return [line for line in read_record(RECORD) if line["kind"] == kind and line["n"] == n]


def rows_of_drawn() -> Iterator[tuple[str, ...]]:
    """Rows of the table of drawn subsets, the first its header."""
    yield "rows", "tables", "selected", "sum of probabilities", "difference", "standard error", "log loss"
    for n in SIZES:
        lines = lines_of("drawn", n)
        if not lines:
            continue
        difference, error = calibration(lines)
        p = np.clip([line["bound"] for line in lines], 1e-9, 1 - 1e-9)
        selected = np.array([[at in line["selected"] for at in range(N_COVARIATES)] for line in lines])
        loss = -np.log(np.where(selected, p, 1 - p)).mean()
        numbers = (selected.sum(), p.sum(), difference, error, loss)
        yield str(n), str(len(lines)), *(f"{x:.{d}f}" for x, d in zip(numbers, (0, 1, 1, 1, 3)))


def rows_of_fixed() -> Iterator[tuple[str, ...]]:
    """Rows of the table of one true covariate among four, the first its header."""
    yield "rows", "tables", "true, bound", "others, bound", "true, BIC", "others, BIC"
    for n in SIZES:
        lines = lines_of("one true", n)
        if not lines:
            continue
        cells = []
        for score in ("bound", "bic"):
            p = np.array([line[score] for line in lines])
            cells += [f"{p[:, 0].mean():.2f}", f"{p[:, 1:].mean():.2f}"]
        yield str(n), str(len(lines)), *cells


def main() -> None:
    """Measure for so many seconds, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.what == "measure":
        end = time.monotonic() + asked.seconds
        done = {(line["kind"], line["n"], line["seed"]) for line in read_record(RECORD)}
        for seed, kind, n in itertools.product(range(max(N_TABLES.values())), KINDS, SIZES):
            if time.monotonic() > end:
                break
            if seed < N_TABLES[kind] and (kind, n, seed) not in done:
                add_to_record(RECORD, measured(kind, n, seed))
    for rows in (rows_of_drawn(), rows_of_fixed()):
        print(*(", ".join(row) for row in rows), sep="\n")


if __name__ == "__main__":
    main()
