"""Priors of searches over networks, measured: edges among independent columns, and edges of known networks found again.

Five beds. *independent*: columns of 2 to 20 states that have nothing to do with each other. *drawn*: graphs and tables
drawn from the default prior itself, where probabilities have to be calibrated. *known*: asia and sachs, and parts of
child and alarm that are closed under ancestors. *pairs*: two columns whose joint table is drawn uniformly, so that
there is no direction in it. *directed*: pairs drawn with a direction, and the gap between the scores of the two graphs
that say the same. Tables of up to `MOST_SUMMED` columns have a sum over all graphs, for all priors from the
families that the library scores; of 20 columns the default search is run. Probabilities are those of pairs being
joined; Brier and log loss (clipped at 1e-4) are means over all pairs of a table.

``python default_prior.py --minutes 20`` adds to default_prior_results.jsonl; without minutes it prints the tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reproduction.known_networks import draw, read
from reproduction.records import add_to_record, read_record

from skvbem import DAG, DAGSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.families.dirichlet import EqualConcentration
from skvbem.families.dirichlet_mixture import EQUIVALENT_SAMPLE_SIZES, AveragedConcentration
from skvbem.search.families.best_dag import CompleteData
from skvbem.search.families.sum_of_dags import summed

RECORD = Path(__file__).with_name("default_prior_results.jsonl")
MOST_SUMMED = 11
#: Priors of tables, by name; the last one is the maximized likelihood with the penalty of BIC.
TABLES: Mapping[str, Any] = {
    "bdla": AveragedConcentration(),
    "K2": EqualConcentration(1.0, "cell"),
    "BDeu(1)": EqualConcentration(1.0, "table"),
    "BDeu(10)": EqualConcentration(10.0, "table"),
    "BIC": EqualConcentration(0.0, "cell"),
}
#: Odds of an edge among p columns, and most cells of a table among n rows.
GRAPHS = {
    "uniform": (lambda p: 1.0, lambda n: inf),
    "1/(p-1)": (lambda p: 1.0 / (p - 1.0), lambda n: n),
    "1/(p+1)": (lambda p: 1.0 / (p + 1.0), lambda n: n),
}
DEFAULT = "bdla, 1/(p+1)"
PEERS = ("K2, uniform", "BDeu(1), uniform", "BDeu(10), uniform", "BIC, uniform")
PRIORS = (DEFAULT, "bdla, 1/(p-1)", "bdla, uniform", "K2, 1/(p+1)", *PEERS)
NETWORKS, N_ROWS = ("asia", "sachs", "child", "alarm", "insurance"), (300, 1000, 5000)
MARGINS, STATES, N_INDEPENDENT = ("uniform", "zipf", "dirichlet"), (2, 5, 10, 20, 0), (100, 300, 1000, 5000)


def joined(codes: np.ndarray, sizes: np.ndarray, tables: str, graphs: str) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of edges (p, p), and of pairs being joined (n_pairs,), by the sum over all graphs."""
    p, n = codes.shape
    odds, most = GRAPHS[graphs][0](p), GRAPHS[graphs][1](n)
    penalty = 0.5 * np.log(n) if tables == "BIC" else 0.0
    data = CompleteData(tuple(range(p)), codes, np.ones(n), sizes.astype(np.int64), [TABLES[tables]] * p, penalty, most)
    rules = DAGSpace(range(p)).rules
    scores = np.stack(list(data.of_nodes(rules, inf)))
    n_parents = np.bitwise_count(np.arange(scores.shape[1]))
    edges = summed(scores + np.log(odds) * n_parents).edges
    return edges, (edges + edges.T)[np.triu_indices(p, 1)]


def measured(codes: np.ndarray, sizes: np.ndarray, truth: np.ndarray, full: bool = False) -> dict[str, Any]:
    """Losses and false edges under every prior; with `full` the probabilities under the default as well."""
    line: dict[str, Any] = {}
    for prior in PRIORS:
        _, p = joined(codes, sizes, *prior.split(", "))
        line[prior] = {
            "brier": round(float(((p - truth) ** 2).mean()), 5),
            "log_loss": round(float(-np.log(np.clip(np.where(truth, p, 1 - p), 1e-4, 1)).mean()), 5),
            "largest_false": round(float(p[~truth].max(initial=0.0)), 4),
            "false_over_half": int((p[~truth] > 0.5).sum()),
        }
    if full:
        _, p = joined(codes, sizes, *DEFAULT.split(", "))
        line |= {"p": np.round(p, 5).tolist(), "truth": truth.astype(int).tolist()}
    return line


def margin(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    """The probabilities of the states of an independent column."""
    if kind == "zipf":
        weights = 1.0 / np.arange(1.0, size + 1)
        return weights / weights.sum()
    return np.full(size, 1.0 / size) if kind == "uniform" else rng.dirichlet(np.ones(size))


def independent_columns(p: int, kind: str, states: int, n: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Codes (p, n) of columns of so many states, from 2 to 20 for 0, and their numbers of states."""
    sizes = np.full(p, states) if states else rng.integers(2, 21, p)
    codes = np.stack([rng.choice(size, n, p=margin(kind, int(size), rng)) for size in sizes])
    return codes.astype(np.int32), sizes


def independent(p: int, kind: str, states: int, n: int, seed: int) -> dict[str, Any]:
    """The line of a table of independent columns: by all priors, or, of many columns, by the default search."""
    rng = np.random.default_rng([seed, p, states, n, MARGINS.index(kind)])
    codes, sizes = independent_columns(p, kind, states, n, rng)
    if p <= MOST_SUMMED:
        return measured(codes, sizes, np.zeros(p * (p - 1) // 2, dtype=bool))
    X = pd.DataFrame({f"x{k}": pd.Categorical(codes[k], categories=range(sizes[k])) for k in range(p)})
    edges = StructureSearchCV(VBDiscreteDAG(), DAGSpace(list(X)), random_state=0).fit(X).edge_probabilities_.values
    both = (edges + edges.T)[np.triu_indices(p, 1)]
    return {DEFAULT: {"largest_false": round(float(both.max()), 4), "false_over_half": int((both > 0.5).sum())}}


def drawn(n: int, seed: int) -> dict[str, Any]:
    """The line of a table drawn from the default prior: five columns of 2 to 6 states."""
    rng, p = np.random.default_rng([seed, n]), 5
    sizes = rng.integers(2, 7, p)
    space = _every_graph(p)
    weights = np.array([GRAPHS["1/(p+1)"][0](p) ** len(dag.edges) * _fits(dag, sizes, n) for dag in space])
    dag = space[rng.choice(len(space), p=weights / weights.sum())]
    codes = np.zeros((p, n), dtype=np.int32)
    for node in dag.topological_order():
        shape = tuple(sizes[parent] for parent in dag.parents(node))
        total = rng.choice(EQUIVALENT_SAMPLE_SIZES)
        concentration = np.full(sizes[node], total / (np.prod(shape, dtype=float) * sizes[node]))
        rows = _dirichlet(concentration, int(np.prod(shape, dtype=int)), rng)
        row = np.ravel_multi_index([codes[parent] for parent in dag.parents(node)], shape) if shape else 0
        codes[node] = (rng.random((n, 1)) > np.cumsum(rows[row], axis=-1).reshape(-1, sizes[node])[:, :-1]).sum(axis=1)
    truth = np.array([(i, j) in dag.edges or (j, i) in dag.edges for i, j in combinations(range(p), 2)])
    return measured(codes, sizes, truth, full=True)


def _dirichlet(concentration: np.ndarray, n: int, rng) -> np.ndarray:
    """Draws in logarithms, since concentrations may be tiny."""
    logs = np.log(rng.gamma(concentration + 1.0, size=(n, len(concentration))))
    logs += np.log1p(-rng.random(logs.shape)) / concentration
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _fits(dag: DAG, sizes: np.ndarray, n: int) -> bool:
    return all(np.prod(sizes[list(dag.family(node))]) <= n for node in dag.nodes if dag.parents(node))


_GRAPHS_OF: dict[int, list[DAG]] = {}


def _every_graph(p: int) -> list[DAG]:
    if p not in _GRAPHS_OF:
        _GRAPHS_OF[p] = [setting["structure"] for setting in DAGSpace(range(p))]
    return _GRAPHS_OF[p]


def known(name: str, n: int, seed: int) -> dict[str, Any]:
    """The line of rows drawn from a network: of all its nodes, or of up to eight that are closed under ancestors."""
    network, rng = read(name), np.random.default_rng([seed, n, NETWORKS.index(name)])
    dag, nodes = network.dag, list(network.dag.nodes)
    if len(nodes) > MOST_SUMMED:
        kept: set = set()
        for node in rng.permutation(len(nodes)):
            more = kept | {nodes[node], *dag.ancestors([nodes[node]])}
            kept = more if len(more) <= 8 else kept
        nodes = [node for node in nodes if node in kept]
    X = draw(network, int(rng.integers(2**31)), n)
    codes = np.stack([pd.Categorical(X[node], categories=list(network.states[node])).codes for node in nodes])
    sizes = np.array([len(network.states[node]) for node in nodes])
    edges = {frozenset(edge) for edge in dag.edges}
    truth = np.array([frozenset(pair) in edges for pair in combinations(nodes, 2)])
    return measured(codes.astype(np.int32), sizes, truth)


def pair(n: int, seed: int) -> dict[str, Any]:
    """The line of two columns whose joint table is uniform over all: the largest P(direction) under each prior."""
    rng = np.random.default_rng([seed, n, 2])
    sizes = rng.integers(2, 6, 2)
    cells = rng.choice(sizes.prod(), n, p=rng.dirichlet(np.ones(sizes.prod())))
    codes = np.stack(np.unravel_index(cells, sizes)).astype(np.int32)
    found = {}
    for prior in PRIORS:
        edges, both = joined(codes, sizes, *prior.split(", "))
        found[prior] = {"direction": round(float(edges.max()), 4), "joined": round(float(both[0]), 4)}
    return found


def directed(n: int, seed: int) -> dict[str, Any]:
    """The line of two columns drawn with a direction: nats by which the scores of the two directed graphs differ."""
    rng = np.random.default_rng([seed, n, 3])
    sizes = rng.integers(2, 11, 2)
    first = rng.choice(sizes[0], n, p=rng.dirichlet(np.ones(sizes[0])))
    rows = _dirichlet(np.full(sizes[1], rng.choice([0.1, 0.5, 1.0, 5.0])), int(sizes[0]), rng)
    second = (rng.random((n, 1)) > np.cumsum(rows[first], axis=1)[:, :-1]).sum(axis=1)
    codes, rules = np.stack([first, second]).astype(np.int32), DAGSpace(range(2)).rules
    gaps = {}
    for tables in ("bdla", "K2", "BDeu(1)"):
        data = CompleteData((0, 1), codes, np.ones(n), sizes.astype(np.int64), [TABLES[tables]] * 2)
        scores = list(data.of_nodes(rules, inf))
        gaps[tables] = round(float(abs(scores[0][1] + scores[1][0] - scores[0][0] - scores[1][1])), 4)
    return {"gaps": gaps}


def tasks() -> Iterator[tuple[str, tuple, Any]]:
    """Beds, what names a table in them, and what measures it; all of one seed, then of the next."""
    for seed in range(1000):
        for name in NETWORKS:
            for n in N_ROWS:
                yield "known", (name, n, seed), known
        for k in range(8):
            yield "drawn", (200, 8 * seed + k), drawn
            yield "pairs", (300, 8 * seed + k), pair
            yield "directed", (N_INDEPENDENT[k % 4], 8 * seed + k), directed
        for p in (4, 10, 20):
            for k, kind in enumerate(MARGINS):
                n = N_INDEPENDENT[(seed + k) % 4]
                states = STATES[seed // 4 % len(STATES)]
                yield "independent", (p, kind, states, n, seed), independent


# Tables ---------------------------------------------------------------------------------------------------------------


def lines_of(bed: str, *of) -> list[dict[str, Any]]:
    """The lines of a bed whose first name is one of some, if any are given."""
    return [line for line in read_record(RECORD) if line["bed"] == bed and (not of or line["of"][0] in of)]


def losses(lines: list[dict[str, Any]], prior: str) -> np.ndarray:
    """Brier and log loss of each line, (n_lines, 2)."""
    return np.array([[line[prior]["brier"], line[prior]["log_loss"]] for line in lines])


def calibration(lines: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Intercept and slope of the truth on the log odds of probabilities, by logistic regression, and their errors."""
    p = np.clip(np.concatenate([line["p"] for line in lines]), 1e-5, 1 - 1e-5)
    truth, x = np.concatenate([line["truth"] for line in lines]), np.log(p / (1 - p))
    design, b = np.stack([np.ones_like(x), x], axis=1), np.array([0.0, 1.0])
    for _ in range(30):
        m = 1 / (1 + np.exp(-design @ b))
        information = design.T @ ((m * (1 - m))[:, None] * design)
        b = b + np.linalg.solve(information, design.T @ (truth - m))
    return b, np.sqrt(np.diag(np.linalg.inv(information)))


def table_of_networks() -> list[tuple[str, ...]]:
    """Mean Brier and log loss of pairs by network: of the default, and of other programs' scores."""
    rows = []
    for name in (*NETWORKS, "all"):
        lines = lines_of("known", *(NETWORKS if name == "all" else (name,)))
        means = [losses(lines, prior).mean(axis=0) for prior in (DEFAULT, *PEERS)]
        rows.append((name, str(len(lines)), *(f"{brier:.3f}, {log_loss:.3f}" for brier, log_loss in means)))
    return rows


def table_of_independent_columns() -> list[tuple[str, ...]]:
    """Pairs with P > 1/2, and tables with a pair above .95, of columns that have nothing to do with each other."""
    rows = []
    for p in (4, 10, 20):
        lines, n_pairs = lines_of("independent", p), p * (p - 1) / 2
        priors = (DEFAULT, *PEERS) if p <= MOST_SUMMED else (DEFAULT,)
        cells = []
        for prior in priors:
            over = np.mean([line[prior]["false_over_half"] for line in lines]) / n_pairs
            certain = np.mean([line[prior]["largest_false"] > 0.95 for line in lines])
            cells.append(f"{100 * over:.1f} %, {100 * certain:.1f} %")
        rows.append((str(p), str(len(lines)), *cells, *["-"] * (1 + len(PEERS) - len(cells))))
    return rows


def main() -> None:
    """Measure for some minutes of CPU time, or print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--beds", nargs="*", default=["known", "drawn", "pairs", "directed", "independent"])
    options = parser.parse_args()
    began, done = time.process_time(), {(line["bed"], *line["of"]) for line in read_record(RECORD)}
    for bed, of, measure in tasks():
        if time.process_time() - began > 60 * options.minutes:
            break
        if bed in options.beds and (bed, *of) not in done:
            add_to_record(RECORD, {"bed": bed, "of": of, **measure(*of)})
    for table in (table_of_networks(), table_of_independent_columns(), [(str(calibration(lines_of("drawn"))),)]):
        print("\n".join("  ".join(row) for row in table), end="\n\n")


if __name__ == "__main__":
    main()
