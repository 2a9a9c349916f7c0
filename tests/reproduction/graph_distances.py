"""How far are the graphs that searches find from those that made the rows? Beside pgmpy, and causal-learn.

Tables are those of `edge_calibration`: graphs of 6 to 10 measurements, drawn from the prior of a search, and such
whose children are nearly determined by their parents. The distance of two graphs is the structural Hamming distance of
their classes of Markov equivalence: pairs of columns with another edge, or an edge of another direction. Searches are
exact, under the hidden scale, and take the best graph. Peers have their defaults: a climb by BIC (pgmpy), PC by
Fisher's z at .05, and GES by BIC (causal-learn). They are no dependencies, and are imported where they are measured.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.graph_distances measure --seconds 600
    PYTHONPATH=tests python -P -m reproduction.graph_distances table

The record, graph_distances_results.jsonl next to this file, has a line for each table and method.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reproduction.edge_calibration import KINDS, table
from reproduction.records import add_to_record, read_record

from skvbem import DAG, DAGSpace, StructureSearchCV, VBNetwork
from skvbem.emissions import Regression

RECORD = Path(__file__).with_name("graph_distances_results.jsonl")
N_TABLES = 30
#: Of each ordered pair 1 where an edge leads from the first, or has either direction.
Marks = np.ndarray


def marks_of(dag: DAG) -> Marks:
    """The class of a graph."""
    place, essential = {node: k for k, node in enumerate(dag.nodes)}, dag.essential()
    marks = np.zeros((len(dag.nodes),) * 2, dtype=int)
    for one, other in (*essential.arrows, *essential.lines, *((b, a) for a, b in essential.lines)):
        marks[place[one], place[other]] = 1
    return marks


def by_search(X: pd.DataFrame) -> Marks:
    """The best graph under the hidden scale."""
    estimator = VBNetwork(emission=Regression(prior="bge"), n_init=1)
    options = {"strategy": "exact", "scoring": "lower_bound", "rescoring": False, "refit": False, "random_state": 0}
    search = StructureSearchCV(estimator, DAGSpace(X.columns), **options).fit(X)
    return marks_of(search.best_structure_.reorder(X.columns))


def by_pgmpy(X: pd.DataFrame) -> Marks:
    """A climb by BIC."""
    from pgmpy.estimators import HillClimbSearch

    found = HillClimbSearch(X).estimate(scoring_method="bic-g", show_progress=False)
    return marks_of(DAG(X.columns, {node: list(found.predecessors(node)) for node in found.nodes()}))


def by_pc(X: pd.DataFrame) -> Marks:
    """Tests of conditional independence."""
    from causallearn.search.ConstraintBased.PC import pc

    return _of_ends(pc(X.to_numpy(), show_progress=False).G.graph)


def by_ges(X: pd.DataFrame) -> Marks:
    """A climb over classes by BIC."""
    from causallearn.search.ScoreBased.GES import ges

    return _of_ends(ges(X.to_numpy())["G"].graph)


def _of_ends(ends: np.ndarray) -> Marks:
    """Marks of a matrix of causal-learn, which has at (i, j) the end at i of the edge to j: 1 a head, -1 a tail."""
    has_edge, head_at_row = ends != 0, ends == 1
    only_at_row = head_at_row & ~head_at_row.T  # the edge leads to the row's node
    return (has_edge & ~only_at_row).astype(int)


METHODS: dict[str, Callable[[pd.DataFrame], Marks]] = {
    "hidden scale": by_search,
    "pgmpy, BIC": by_pgmpy,
    "causal-learn, PC": by_pc,
    "causal-learn, GES": by_ges,
}


def distance(one: Marks, other: Marks) -> int:
    """Pairs whose marks differ."""
    return int(np.triu((one != other) | (one.T != other.T), 1).sum())


def measured(kind: str, seed: int, method: str) -> dict[str, Any]:
    """The line of a table and method."""
    X, parents = table(kind, seed)
    truth = marks_of(DAG(X.columns, {f"x{child}": [f"x{p}" for p in of] for child, of in enumerate(parents)}))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method](X)
    seconds = round(time.process_time() - began, 3)
    skeleton = distance(found | found.T, truth | truth.T)
    line = {"kind": kind, "seed": seed, "method": method, "edges": int((truth | truth.T).sum() // 2)}
    return line | {"distance": distance(found, truth), "skeleton": skeleton, "seconds": seconds}


def rows_of(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table, the first its header."""
    yield "noise", "method", "tables", "edges", "distance", "pairs with another edge", "s"
    for kind, method in itertools.product(KINDS, METHODS):
        alike = [line for line in lines if line["kind"] == kind and line["method"] == method]
        if alike:
            means = [np.mean([line[name] for line in alike]) for name in ("edges", "distance", "skeleton")]
            seconds = np.median([line["seconds"] for line in alike])
            yield kind, method, str(len(alike)), *(f"{mean:.2f}" for mean in means), f"{seconds:.2g}"


def main() -> None:
    """Measure for so many seconds, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    if asked.what == "measure":
        end = time.monotonic() + asked.seconds
        done = {(line["kind"], line["seed"], line["method"]) for line in read_record(RECORD)}
        for seed, kind, method in itertools.product(range(N_TABLES), KINDS, METHODS):
            if time.monotonic() > end:
                break
            if (kind, seed, method) not in done:
                add_to_record(RECORD, measured(kind, seed, method))
    print(*(", ".join(row) for row in rows_of(read_record(RECORD))), sep="\n")


if __name__ == "__main__":
    main()
