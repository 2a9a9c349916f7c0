"""Networks of the literature found again from complete rows: scores and seconds, beside hill climbing by pyAgrum.

5 000 rows are drawn from asia, sachs, child, insurance, water and alarm. Graphs of at most four parents are searched
under BDeu with an equivalent sample size of one: by the default search, by `Greedy`, and by pyAgrum's hill climbing,
all graphs scored by us. Seconds are those of the processor, in one thread, from the data frame to the graph, with all
that the search publishes; of pyAgrum from the data frame as well. The three take turns.

``python known_networks.py`` takes three minutes and writes known_networks_results.json next to it; it needs pyAgrum.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from skvbem import DAG, DAGSpace, StructureSearchCV, VBDiscreteDAG, read_bif

RESULTS = Path(__file__).with_name("known_networks_results.json")
FILES = Path(__file__).parents[1] / "data" / "third_party" / "cc-by-sa"
NETWORKS = ("asia", "sachs", "child", "insurance", "water", "alarm")
N_ROWS, MAX_PARENTS, N_SEEDS, N_TURNS = 5000, 4, 10, 3
#: What a default search may take, as seconds and as a multiple of the peer's.
LIMIT = (0.1, 3.0)


def file_of(name: str) -> Path:
    """The file of a network, compressed or not."""
    return next((path for path in FILES.glob(f"{name}.bif*")), FILES / f"{name}.bif")


def read(name: str):
    """The network of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # printed tables miss one by their rounding
        return read_bif(file_of(name))


def draw(network, seed: int, n_rows: int = N_ROWS) -> pd.DataFrame:
    """Rows drawn from a network, its states by name."""
    return pd.DataFrame(network.sample(n_rows, random_state=seed), dtype=object)


def model_of(network) -> VBDiscreteDAG:
    """The estimator under whose prior graphs are scored."""
    categories = {node: list(states) for node, states in network.states.items()}
    return VBDiscreteDAG(prior="bdeu", equivalent_sample_size=1.0, categories=categories)


def search(network, X: pd.DataFrame, strategy="auto") -> StructureSearchCV:
    """Our search."""
    space = DAGSpace(X.columns, max_parents=MAX_PARENTS)
    return StructureSearchCV(model_of(network), space, strategy=strategy, random_state=0).fit(X)


def hill_climbing(network, X: pd.DataFrame) -> list[tuple]:
    """The edges that pyAgrum's hill climbing finds."""
    import pyagrum as gum

    template = gum.BayesNet()
    for node, states in network.states.items():
        template.add(gum.LabelizedVariable(node, node, list(map(str, states))))
    learner = gum.BNLearner(X.astype(str), template)
    learner.setNumberOfThreads(1)
    learner.useScoreBDeu()
    learner.useGreedyHillClimbing()
    learner.setMaxIndegree(MAX_PARENTS)
    dag = learner.learnDAG()
    return [(learner.nameFromId(parent), learner.nameFromId(child)) for parent, child in dag.arcs()]


def score_of(network, X: pd.DataFrame, edges) -> float:
    """The BDeu score of a graph, nats."""
    return model_of(network).set_params(structure=DAG.from_edges(edges, X.columns)).fit(X).lower_bound_


def seconds_of(work, *args) -> tuple[float, object]:
    """Seconds of the processor, and what came of them."""
    began = time.process_time()
    outcome = work(*args)
    return time.process_time() - began, outcome


def measure(name: str, seed: int, n_turns: int = N_TURNS) -> dict:
    """Scores and seconds of one table; the seconds are medians over turns."""
    network = read(name)
    X = draw(network, seed)
    work = {"default": search, "greedy": partial(search, strategy="greedy"), "pyAgrum": hill_climbing}
    turns = [{kind: seconds_of(each, network, X) for kind, each in work.items()} for _ in range(n_turns)]
    found, greedy, edges = (turns[-1][kind][1] for kind in work)
    return {
        "network": name,
        "seed": seed,
        "strategy": type(found.strategy_).__name__,
        "scores": {
            "default": round(found.best_score_, 3),
            "greedy": round(greedy.best_score_, 3),
            "pyAgrum": round(score_of(network, X, edges), 3),
            "truth": round(score_of(network, X, network.dag.edges), 3),
        },
        "seconds": {kind: round(float(np.median([turn[kind][0] for turn in turns])), 4) for kind in work},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    options = parser.parse_args()
    records = []
    for name in NETWORKS:
        for seed in range(options.seeds):
            records.append(measure(name, seed))
            print(json.dumps(records[-1]), flush=True)
    RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")


if __name__ == "__main__":
    main()
