"""Intervals of effects: how many hold the truth, given the graph, over all graphs, and by the best graph alone?

A graph of three or five columns is drawn from all, each as probable. Coefficients and noises are drawn from the prior
"bge" of scale .5 with three degrees of freedom. Then 90 % intervals over graphs and coefficients under this very prior
("own prior") hold the effect of the first column on the second in 90 % of all truths, or more, as an effect of 0 is
often certain. Searches measure columns in their standard deviations, so that their prior differs a little. "given" has
the graph of the truth, and says something where a path leads from the first column to the second.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.effect_coverage measure --seconds 600
    PYTHONPATH=tests python -P -m reproduction.effect_coverage table

The record, effect_coverage_results.jsonl next to this file, has a line for each truth: the effect, and for each method
the ends of its 90 % and 95 % intervals.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem import DAG, DAGSpace, StructureSearchCV, VBNetwork
from skvbem.emissions import Regression
from skvbem.search.families.normal_wishart_scores import NormalWishartScores
from skvbem.search.families.sum_of_dags import graph_posterior
from skvbem.search.posterior.effects import EffectsOverGraphs

RECORD = Path(__file__).with_name("effect_coverage_results.jsonl")
SCALE, DOF = 0.5, 3.0
PROBLEMS = {"three columns": (3, 30, 600), "five columns": (5, 60, 200)}
LEVELS = (0.9, 0.95)
METHODS = ("given", "given by default", "graphs", "adjustment", "best graph", "own prior")
BGE = Regression(prior="bge", coefficient_precision_prior=SCALE, degrees_of_freedom_prior=DOF)


def uniform_graph(n: int, rng: np.random.Generator) -> DAG:
    """A graph drawn from all, by drawing edges until there is no cycle."""
    names = names_of(n)
    while True:
        kind = rng.integers(0, 3, n * (n - 1) // 2)
        pairs = [*itertools.combinations(names, 2)]
        edges = [pair if k == 1 else pair[::-1] for pair, k in zip(pairs, kind) if k]
        try:
            return DAG(names, {name: tuple(a for a, b in edges if b == name) for name in names})
        except ValueError:
            continue


def names_of(n: int) -> list[str]:
    """Names of columns."""
    return [f"x{k}" for k in range(n)]


def truth(problem: str, seed: int) -> tuple[np.ndarray, DAG, float]:
    """Rows, the graph that made them, and the effect of the first column on the second."""
    n, n_rows, _ = PROBLEMS[problem]
    rng = np.random.default_rng([n, n_rows, seed])
    dag, names = uniform_graph(n, rng), names_of(n)
    X, slopes = np.zeros((n_rows, n)), np.zeros((n, n))
    for node in dag.topological_order():
        k, above = names.index(node), [names.index(parent) for parent in dag.parents(node)]
        variance = 1 / rng.gamma((DOF + len(above)) / 2, 2 / SCALE)
        slopes[k, above] = np.sqrt(variance / SCALE) * rng.normal(size=len(above))
        constant = np.sqrt(variance) * rng.normal()
        X[:, k] = constant + X[:, above] @ slopes[k, above] + np.sqrt(variance) * rng.normal(size=n_rows)
    return X, dag, float(np.linalg.inv(np.eye(n) - slopes)[1, 0])


def under_own_prior(X: np.ndarray) -> EffectsOverGraphs:
    """Effects under the prior of the truth, in the units of the columns."""
    n = X.shape[1]
    mean = X.mean(axis=0)
    parts = (X - mean).T @ (X - mean), mean, np.ones(n), float(len(X)), SCALE * np.eye(n), DOF, 1.0
    data = NormalWishartScores(tuple(names_of(n)), *parts)
    return EffectsOverGraphs(data, graph_posterior(data, DAGSpace(names_of(n)).rules, {}))


def measured(problem: str, seed: int) -> dict[str, Any]:
    """The line of a truth."""
    X, dag, effect = truth(problem, seed)
    began = time.process_time()
    line: dict[str, Any] = {"problem": problem, "seed": seed, "effect": round(effect, 6)}
    space = DAGSpace(names_of(X.shape[1]))
    search = StructureSearchCV(VBNetwork(emission=BGE), space, prior="uniform", strategy="exact", random_state=0).fit(X)
    effects = {
        "given": VBNetwork(dag, emission=BGE).fit(X).effect("x0", "x1", n_draws=4000),
        "given by default": VBNetwork(dag, random_state=0).fit(X).effect("x0", "x1", n_draws=4000),
        "graphs": search.effect("x0", "x1", n_draws=4000),
        "adjustment": search.effect("x0", "x1", method="adjustment", n_draws=100),
        "best graph": search.best_estimator_.effect("x0", "x1", n_draws=4000),
        "own prior": under_own_prior(X).by_graphs("x0", "x1", 4000),
    }
    line["path"] = int(effects["given"].probability_no_path == 0)
    for name, of in effects.items():
        line[name] = [round(end, 6) for level in LEVELS for end in of.interval(level)]
    return line | {"seconds": round(time.process_time() - began, 2)}


def coverage(lines: list[dict], method: str, level: float) -> tuple[int, int]:
    """Intervals that hold the truth, and how many there are; given the graph those with a path alone."""
    of = [line for line in lines if line["path"] or not method.startswith("given")]
    low, high = 2 * LEVELS.index(level), 2 * LEVELS.index(level) + 1
    held = sum(line[method][low] - 1e-6 <= line["effect"] <= line[method][high] + 1e-6 for line in of)
    return held, len(of)


def rows_of(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table, the first its header."""
    yield "columns", "intervals", "truths", *(f"{100 * level:g} %" for level in LEVELS), "90 % where there is an effect"
    for problem in PROBLEMS:
        alike = [line for line in lines if line["problem"] == problem]
        with_effect = [line for line in alike if line["path"]]
        for method in METHODS if alike else ():
            shares = [held / n for held, n in (coverage(alike, method, level) for level in LEVELS)]
            held, n = coverage(with_effect, method, 0.9)
            number = str(coverage(alike, method, 0.9)[1])
            yield problem.split()[0], method, number, *(f"{share:.3f}" for share in shares), f"{held / n:.3f}"


def main() -> None:
    """Measure for so many seconds, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.what == "measure":
        end = time.monotonic() + asked.seconds
        done = {(line["problem"], line["seed"]) for line in read_record(RECORD)}
        for seed, problem in itertools.product(range(max(n for *_, n in PROBLEMS.values())), PROBLEMS):
            if time.monotonic() > end:
                break
            if seed < PROBLEMS[problem][2] and (problem, seed) not in done:
                add_to_record(RECORD, measured(problem, seed))
    print(*(", ".join(row) for row in rows_of(read_record(RECORD))), sep="\n")


if __name__ == "__main__":
    main()
