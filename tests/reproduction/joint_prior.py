"""Edges that are not there: priors of measurements in exact searches over all graphs.

Four columns under a graph that is drawn from all 543, each as probable. Slopes are between .25 and 1.2 in size, of
either sign. Two kinds of tables: deviations of all noises are between .5 and 2 ("spread"), or those of children are
between .003 and .3, on a logarithmic scale ("determined"), so that parents nearly determine their children. A pair of
columns that has no edge is found wrongly if its edge, in either direction, has a probability above .95.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.joint_prior measure --seconds 600
    PYTHONPATH=tests python -P -m reproduction.joint_prior table

The record, joint_prior_results.jsonl next to this file, has a line for each table of rows: the pairs that have an edge,
and the probabilities of all six pairs under each prior.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record
from scipy.special import softmax
from search.test_auto import parts_of

from skvbem import DAG, DAGSpace, VBNetwork
from skvbem.emissions import Regression
from skvbem.search.families.normal_wishart_scores import NormalWishartScores, hidden_scales
from skvbem.search.families.sum_of_dags import graph_posterior
from skvbem.search.strategies.exact import posterior_over_space

RECORD = Path(__file__).with_name("joint_prior_results.jsonl")
NAMES = ["x0", "x1", "x2", "x3"]
PAIRS = [*itertools.combinations(NAMES, 2)]
KINDS, SIZES, N_TABLES = ("spread", "determined"), (40, 200, 1000), 20
PRIORS = {
    "scale 0.5": Regression(prior="bge", coefficient_precision_prior=0.5),
    "scale 0.1": Regression(prior="bge", coefficient_precision_prior=0.1),
    "scale 0.02": Regression(prior="bge", coefficient_precision_prior=0.02),
    "independent": Regression(coefficient_precision_prior=1.0, degrees_of_freedom_prior=1.0, variance_prior=None),
}


EACH = *PRIORS, "hidden scale"


@cache
def graphs() -> list[DAG]:
    """All graphs of four columns."""
    return [setting["structure"] for setting in DAGSpace(NAMES)]


def table(kind: str, n: int, seed: int) -> tuple[np.ndarray, DAG]:
    """Rows, and the graph that made them."""
    rng = np.random.default_rng([KINDS.index(kind), n, seed])
    dag = graphs()[rng.integers(len(graphs()))]
    X = np.zeros((n, len(NAMES)))
    for node in dag.topological_order():
        above = [NAMES.index(parent) for parent in dag.parents(node)]
        slopes = rng.uniform(0.25, 1.2, len(above)) * rng.choice([-1.0, 1.0], len(above))
        low, high = (0.003, 0.3) if above and kind == "determined" else (0.5, 2.0)
        deviation = np.exp(rng.uniform(np.log(low), np.log(high)))
        X[:, NAMES.index(node)] = X[:, above] @ slopes + deviation * rng.normal(size=n)
    return X, dag


def under_a_hidden_scale(X: np.ndarray) -> list[float]:
    """The same where the scale of "bge" is summed out, with one degree of freedom."""
    scores, rules = NormalWishartScores.of_rows(NAMES, X), DAGSpace(NAMES).rules
    scales, log_weights = hidden_scales()
    each = [graph_posterior(scores.with_scale(scale), rules, {}).posterior for scale in scales]
    weights = softmax(log_weights + [posterior.log_total for posterior in each])
    return of_pairs(sum(weight * posterior.edges for weight, posterior in zip(weights, each)))


def of_pairs(edges: np.ndarray) -> list[float]:
    """Probabilities of edges (parent, child), for each pair in either direction."""
    either = edges + edges.T
    return [round(float(either[NAMES.index(one), NAMES.index(other)]), 6) for one, other in PAIRS]


def probabilities(X: np.ndarray, prior: Regression) -> list[float]:
    """Of an edge between each pair, in either direction."""
    space = DAGSpace(NAMES)
    posterior = posterior_over_space(
        space, *parts_of(space, X, VBNetwork(emission=prior, n_init=1), scoring="lower_bound")
    )
    assert posterior is not None
    assert list(posterior.nodes) == NAMES
    return of_pairs(posterior.edges)


def measured(kind: str, n: int, seed: int) -> dict[str, Any]:
    """The line of a table."""
    X, dag = table(kind, n, seed)
    began = time.process_time()
    true = [int(one in dag.parents(other) or other in dag.parents(one)) for one, other in PAIRS]
    line = {"kind": kind, "n": n, "seed": seed, "edges": true}
    line |= {name: probabilities(X, prior) for name, prior in PRIORS.items()}
    line["hidden scale"] = under_a_hidden_scale(X)
    return line | {"seconds": round(time.process_time() - began, 2)}


def found_wrongly(lines: list[dict], prior: str) -> tuple[int, int]:
    """Pairs without an edge whose edge has a probability above .95, and pairs without an edge."""
    probability, true = np.array([line[prior] for line in lines]), np.array([line["edges"] for line in lines])
    return int((probability[true == 0] > 0.95).sum()), int((true == 0).sum())


def log_loss(lines: list[dict], prior: str) -> float:
    """Mean of -ln of the probability of the truth about a pair, nats."""
    probability = np.clip([line[prior] for line in lines], 1e-6, 1 - 1e-6)
    return float(-np.log(np.where(np.array([line["edges"] for line in lines]), probability, 1 - probability)).mean())


def rows_of(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of edges that are not there, the first its header."""
    yield "noise", "rows", "pairs without an edge", *EACH
    for kind, n in itertools.product(KINDS, SIZES):
        alike = [line for line in lines if (line["kind"], line["n"]) == (kind, n)]
        if alike:
            wrong = [found_wrongly(alike, prior) for prior in EACH]
            yield kind, str(n), str(wrong[0][1]), *(str(count) for count, _ in wrong)


def losses_of(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of losses, the first its header."""
    yield "noise", "rows", "tables", *EACH
    for kind, n in itertools.product(KINDS, SIZES):
        alike = [line for line in lines if (line["kind"], line["n"]) == (kind, n)]
        if alike:
            yield kind, str(n), str(len(alike)), *(f"{log_loss(alike, prior):.2f}" for prior in EACH)


def main() -> None:
    """Measure for so many seconds, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.what == "measure":
        end = time.monotonic() + asked.seconds
        done = {(line["kind"], line["n"], line["seed"]) for line in read_record(RECORD)}
        for seed, kind, n in itertools.product(range(N_TABLES), KINDS, SIZES):
            if time.monotonic() > end:
                break
            if (kind, n, seed) not in done:
                add_to_record(RECORD, measured(kind, n, seed))
    for rows in (rows_of, losses_of):
        print(*(", ".join(row) for row in rows(read_record(RECORD))), sep="\n")


if __name__ == "__main__":
    main()
