"""What each strategy of a search reaches, and in what time: best score, and probabilities of edges over its table.

*Complete rows* of three networks of the literature (asia, child, alarm; BDeu with an equivalent sample size of one, at
most four parents): scores are sums over families. *bipartite*: five items below two hidden causes, 528 structures.
*hidden*: four items with edges among them and a hidden cause above some. *mixed*: a category, two counts and a
measurement below two hidden causes, which no bounds can be climbed for. *edges*: the mean error of P(edge) by the
weights of a table, in thousandths, beside the sum over all graphs of the eight nodes of asia.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.strategies measure --rows 500 --seconds 600
    PYTHONPATH=tests python -P -m reproduction.strategies table

The record, strategies_results.jsonl next to this file, has a line for each table of rows; strategies take turns on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduction import known_networks, mixed_search
from reproduction.records import simulate, timed

from skvbem import BipartiteSpace, DAGSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import make_bipartite
from skvbem.search import strategies

RECORD = Path(__file__).with_name("strategies_results.jsonl")
COMPLETE = ("asia", "child", "alarm")
PROBLEMS = (*COMPLETE, "bipartite", "hidden", "mixed")
STRATEGIES = {
    "greedy": strategies.Greedy(),
    "greedy, 10 restarts": strategies.Greedy(n_restarts=10),
    "mc3": strategies.MC3(),
    "structural": strategies.StructuralVBEM(),
    "structural, no orders": strategies.StructuralVBEM(n_orders=0),
}
LATENTS = {"h0": 2, "h1": 2}
# Nats within which two scores are as good as each other.
TIED = 1e-3


def strategies_for(problem: str) -> list[str]:
    """The names of strategies that can search a problem, and differ there."""
    names = list(STRATEGIES) if problem in COMPLETE else [name for name in STRATEGIES if "orders" not in name]
    return [name for name in names if problem != "mixed" or "structural" not in name]


def made(problem: str, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Estimator, space and rows."""
    if problem in COMPLETE:
        network = known_networks.read(problem)
        X = known_networks.draw(network, seed, n)
        return known_networks.model_of(network), DAGSpace(X.columns, max_parents=known_networks.MAX_PARENTS), X
    if problem == "mixed":
        return mixed_search.estimator("four", seed), mixed_search.space("four"), mixed_search.rows_of("four", seed, n)
    X = make_bipartite(n, random_state=seed).data
    if problem == "hidden":
        columns = [f"x{k}" for k in range(4)]
        return VBDiscreteDAG(n_init=5), DAGSpace(columns, latents={"h0": 2}, max_parents=2), X
    fifth = np.where(np.random.default_rng(seed).random(n) < 0.7, X[:, 0], X[:, 3])
    return VBDiscreteDAG(n_init=5), BipartiteSpace(LATENTS, [f"x{k}" for k in range(5)]), np.column_stack([X, fifth])


def searched(problem: str, n: int, seed: int, strategy: Any) -> StructureSearchCV:
    """A search by bounds, which nothing follows."""
    estimator, space, X = made(problem, n, seed)
    scores = {"scoring": "lower_bound", "rescoring": False, "refit": False}
    return StructureSearchCV(estimator, space, strategy=strategy, random_state=seed, **scores).fit(X)


def measured(problem: str, n: int, seed: int) -> dict[str, Any]:
    """Seconds, best scores, candidates tried, and errors of edges, by strategy."""
    line: dict[str, Any] = {"problem": problem, "n": n, "seed": seed, "seconds": {}, "best": {}, "tried": {}}
    for name in strategies_for(problem):
        with timed(line, name):
            search = searched(problem, n, seed, STRATEGIES[name])
        line["best"][name] = round(search.best_score_, 3)
        line["tried"][name] = len(search.cv_results_["params"])
        if problem == "asia":
            line.setdefault("edges", {})[name] = round(1000 * error_of_edges(search), 3)
    return line


def error_of_edges(search: StructureSearchCV) -> float:
    """Mean error of P(edge) by the weights of a table, beside the sum over all graphs."""
    truth = search.edge_probabilities_
    nodes = truth.levels[0].tolist()
    by_table = np.zeros((len(nodes), len(nodes)))
    for setting, weight in zip(search.cv_results_["params"], search.score_weights_):
        for parent, child in setting["structure"].edges:
            by_table[nodes.index(parent), nodes.index(child)] += weight
    return float(np.abs(by_table - np.asarray(truth)).mean())


def reached(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the table: problem, rows, strategy, tables, those with the best score of all, nats behind, seconds."""
    for problem, n in dict.fromkeys((line["problem"], line["n"]) for line in lines):
        mine = [line for line in lines if (line["problem"], line["n"]) == (problem, n)]
        for name in strategies_for(problem):
            behind = np.array([max(line["best"].values()) - line["best"][name] for line in mine])
            seconds = np.median([line["seconds"][name] for line in mine])
            edges = f"{np.median([line['edges'][name] for line in mine]):.1f}" if problem == "asia" else "-"
            counts = str(len(mine)), str(np.sum(behind <= TIED))
            yield problem, str(n), name, *counts, f"{behind.mean():.2f}", f"{seconds:.2f}", edges


if __name__ == "__main__":
    simulate(__doc__, RECORD, PROBLEMS, measured, (reached,))
