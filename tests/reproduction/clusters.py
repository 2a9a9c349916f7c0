"""What clusters of hidden nodes cost: two hidden chains of three steps behind one symbol per step, 600 rows.

States are two a chain, symbols four. Each table of the truth is drawn from a Dirichlet distribution of 0.5. A line of
the record has the bound of the best of sixty starts, and of the first twenty of these: exact, by a cluster for each
chain, and by one for each step; and what one exact E step gains (`row_gap_`). Run as a program it
adds a line for each seed:

    python clusters.py --seeds 5
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from reproduction.records import add_to_record, read_record

from skvbem import VBDiscreteDAG

#: The record.
RESULTS = Path(__file__).with_name("clusters_results.jsonl")
N_ROWS, N_STARTS, N_FEW, STEPS, CHAINS = 600, 60, 20, range(3), "gh"
EDGES = {f"{c}{t}": [f"{c}{t - 1}"] if t else [] for c in CHAINS for t in STEPS}
EDGES |= {f"y{t}": [f"{c}{t}" for c in CHAINS] for t in STEPS}
LATENTS = {f"{c}{t}": 2 for c in CHAINS for t in STEPS}
PARTITIONS = {
    "exact": "exact",
    "chains": [[f"{c}{t}" for t in STEPS] for c in CHAINS],
    "steps": [[f"{c}{t}" for c in CHAINS] for t in STEPS],
}


def rows(seed):
    """Symbols (600, 3) of two chains that change their states by tables of their own."""
    rng = np.random.default_rng([1997, seed])

    def draw(table):
        return (table.cumsum(axis=-1) < rng.random((len(table), 1))).sum(axis=-1)

    states = {c: draw(np.tile(rng.dirichlet(np.full(2, 0.5)), (N_ROWS, 1))) for c in CHAINS}
    X = np.empty((N_ROWS, len(STEPS)), dtype=int)
    for t in STEPS:
        if t:
            states = {c: draw(rng.dirichlet(np.full(2, 0.5), size=2)[states[c]]) for c in CHAINS}
        X[:, t] = draw(rng.dirichlet(np.full(4, 0.5), size=(2, 2))[states["g"], states["h"]])
    return X


def measured(seed):
    """The line of a seed."""
    X, line = rows(seed), {"seed": seed}
    for name, inference in PARTITIONS.items():
        few, fit = (
            VBDiscreteDAG(
                EDGES, latents=LATENTS, inference=inference, init="random", n_init=n, random_state=0,
                categories={f"y{t}": [*range(4)] for t in STEPS},
            ).fit(pd.DataFrame(X, columns=[f"y{t}" for t in STEPS]))
            for n in (N_FEW, N_STARTS)
        )  # fmt: skip
        line[name] = {"best": fit.lower_bound_, "of_few": few.lower_bound_, "gap": fit.row_gap_}
    return line


def losses(lines, name):
    """Nats by which the bound of a partition lies below the exact one, for each seed."""
    return np.array([line["exact"]["best"] - line[name]["best"] for line in lines])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    done = {line["seed"] for line in read_record(RESULTS)}
    for seed in sorted({*range(parser.parse_args().seeds)} - done):
        add_to_record(RESULTS, measured(seed))
    for line in read_record(RESULTS):
        print(line)
