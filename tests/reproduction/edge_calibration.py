"""Probabilities of edges between measurements under a hidden scale: are they as often right as they say?

"prior": graphs of 6 to 10 columns are drawn from the prior of a search, each edge with the odds 1 / (p + 1), and their
scale, coefficients and noises from the prior "bge". "determined": slopes are between .25 and 1.2 in size, and noises of
children between .003 and .3, on a logarithmic scale, so that parents nearly determine their children. Each table has
100 to 3 000 rows. Probabilities are of an edge between two columns in either direction.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.edge_calibration measure --seconds 600
    PYTHONPATH=tests python -P -m reproduction.edge_calibration table

The record, edge_calibration_results.jsonl next to this file, has a line for each table of rows: whether each pair has
an edge, and its probability.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reproduction.records import add_to_record, read_record
from scipy.special import expit, logit

from skvbem import DAGSpace, StructureSearchCV, VBNetwork
from skvbem.emissions import Regression
from skvbem.search.families.best_dag import log_odds_of_families
from skvbem.search.families.drawn_graphs import DrawnGraphs

RECORD = Path(__file__).with_name("edge_calibration_results.jsonl")
KINDS, N_TABLES = ("prior", "determined"), 200
BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)


def drawn_parents(names: list[str], rng: np.random.Generator) -> list[list[int]]:
    """The parents of each column in a graph that is drawn from the prior of a search."""
    rules, n = DAGSpace(names).rules, len(names)
    odds = dict.fromkeys(itertools.permutations(names, 2), -np.log(n + 1.0))
    drawn = DrawnGraphs(np.stack([log_odds_of_families(tuple(names), rules, odds, k) for k in range(n)]))
    (masks,) = drawn.draw(1, rng)
    return [[k for k in range(n) if mask >> k & 1] for mask in masks.tolist()]


def table(kind: str, seed: int) -> tuple[pd.DataFrame, list[list[int]]]:
    """Rows, and the parents of each column."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n_columns, n_rows = int(rng.integers(6, 11)), int(np.exp(rng.uniform(np.log(100), np.log(3000))))
    names = [f"x{k}" for k in range(n_columns)]
    parents, scale = drawn_parents(names, rng), max(rng.gamma(0.5, 2.0), 1e-4)
    X, done = np.zeros((n_rows, n_columns)), set()
    while len(done) < n_columns:
        child = next(k for k in range(n_columns) if k not in done and done.issuperset(parents[k]))
        done.add(child)
        p = len(parents[child])
        if kind == "prior":
            precision = rng.gamma((1.0 + p) / 2, 2.0 / scale)
            slopes = rng.normal(size=p) / np.sqrt(precision * scale)
            deviation = 1.0 / np.sqrt(precision)
        else:
            slopes = rng.uniform(0.25, 1.2, p) * rng.choice([-1.0, 1.0], p)
            low, high = (0.003, 0.3) if p else (0.5, 2.0)
            deviation = np.exp(rng.uniform(np.log(low), np.log(high)))
        X[:, child] = X[:, parents[child]] @ slopes + deviation * rng.normal(size=n_rows)
    return pd.DataFrame(X, columns=names), parents


def measured(kind: str, seed: int) -> dict[str, Any]:
    """The line of a table."""
    X, parents = table(kind, seed)
    began = time.process_time()
    search = StructureSearchCV(
        VBNetwork(emission=Regression(prior="bge"), n_init=1),
        DAGSpace(X.columns),
        strategy="exact",
        scoring="lower_bound",
        rescoring=False,
        refit=False,
        random_state=0,
    ).fit(X)
    either = search.edge_probabilities_.values + search.edge_probabilities_.values.T
    pairs = [*itertools.combinations(range(X.shape[1]), 2)]
    return {
        "kind": kind,
        "seed": seed,
        "n_columns": X.shape[1],
        "n_rows": len(X),
        "edges": [int(i in parents[j] or j in parents[i]) for i, j in pairs],
        "probabilities": [round(float(either[pair]), 6) for pair in pairs],
        "seconds": round(time.process_time() - began, 2),
    }


def slope_of(lines: list[dict]) -> tuple[float, float]:
    """The logistic regression of edges on log odds of their probabilities: the slope and its standard error.

    Pairs of one table depend on each other: errors are those of sums over tables.
    """
    x = [logit(np.clip(line["probabilities"], 1e-6, 1 - 1e-6)) for line in lines]
    y = [np.array(line["edges"], dtype=float) for line in lines]
    table_of, features = np.repeat(np.arange(len(lines)), [len(each) for each in x]), np.concatenate(x)
    features, edges, at = np.column_stack([np.ones(len(features)), features]), np.concatenate(y), np.array([0.0, 1.0])
    for _ in range(50):
        expected = expit(features @ at)
        inverse = np.linalg.inv((features * (expected * (1 - expected))[:, None]).T @ features)
        at = at + inverse @ features.T @ (edges - expected)
    by_table = np.zeros((len(lines), 2))
    np.add.at(by_table, table_of, features * (edges - expected)[:, None])
    return float(at[1]), float(np.sqrt((inverse @ by_table.T @ by_table @ inverse)[1, 1]))


def rows_of(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of calibration, the first its header."""
    yield "noise", "tables", "probability", "pairs", "mean probability", "share with an edge"
    for kind in KINDS:
        alike = [line for line in lines if line["kind"] == kind]
        if not alike:
            continue
        probability = np.concatenate([line["probabilities"] for line in alike])
        edges = np.concatenate([line["edges"] for line in alike])
        for low, high in itertools.pairwise(BINS):
            inside = (probability >= low) & ((probability < high) | (high == 1.0))
            if inside.any():
                means = f"{probability[inside].mean():.3f}", f"{edges[inside].mean():.3f}"
                yield kind, str(len(alike)), f"{low:g} to {high:g}", str(inside.sum()), *means


def tables_found_wrongly(lines: list[dict], kind: str) -> tuple[int, int]:
    """Tables with a pair without an edge whose edge has a probability above .95, and all tables."""
    alike = [line for line in lines if line["kind"] == kind]
    wrong = [any(p > 0.95 and not edge for p, edge in zip(line["probabilities"], line["edges"])) for line in alike]
    return sum(wrong), len(alike)


def main() -> None:
    """Measure for so many seconds, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.what == "measure":
        end = time.monotonic() + asked.seconds
        done = {(line["kind"], line["seed"]) for line in read_record(RECORD)}
        for seed, kind in itertools.product(range(N_TABLES), KINDS):
            if time.monotonic() > end:
                break
            if (kind, seed) not in done:
                add_to_record(RECORD, measured(kind, seed))
    lines = read_record(RECORD)
    print(*(", ".join(row) for row in rows_of(lines)), sep="\n")
    for kind in KINDS:
        print(kind, "slope", slope_of([line for line in lines if line["kind"] == kind]))
        print(kind, "tables with a wrong edge above .95", tables_found_wrongly(lines, kind))


if __name__ == "__main__":
    main()
