"""How many factors does each of six clusters have? Tables as in table 4.1 of Beal (2003), drawn anew.

Six clusters of ten columns, far apart, have 1, 7, 4, 3, 2 and 2 factors and one noise. They are fitted
by ``VBMixture(6, FactorGaussian("auto"))``: each component has noises of its own, or, as there, all the same ("tied").

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.factor_dimensions --rows 8 16 32 --seeds 2

The record, factor_dimensions_results.jsonl next to this file, has a line for each fit: the factors of each cluster's
component, in the order of the clusters; what is there is not done again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem import VBMixture
from skvbem.emissions import FactorGaussian

RECORD = Path(__file__).with_name("factor_dimensions_results.jsonl")
DIMENSIONS = (1, 7, 4, 3, 2, 2)
_N_COLUMNS, _NOISE, _SPREAD = 10, 0.3, 10.0


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (6 n, 10), n of each cluster, and the cluster of each."""
    rng, parts = np.random.default_rng([41, n, seed]), []
    for q in DIMENSIONS:
        loadings = rng.normal(size=(_N_COLUMNS, q))
        mean = _SPREAD * rng.normal(size=_N_COLUMNS)
        parts.append(mean + rng.normal(size=(n, q)) @ loadings.T + _NOISE * rng.normal(size=(n, _N_COLUMNS)))
    return np.concatenate(parts), np.repeat(np.arange(len(DIMENSIONS)), n)


def measured(n: int, seed: int, tied: bool) -> dict[str, Any]:
    """The line of a fit; factors of a cluster are None where its rows are not all in a component of their own."""
    X, labels = draw(n, seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VBMixture(len(DIMENSIONS), emission=FactorGaussian("auto", tied=tied), random_state=seed).fit(X)
    seconds, component = time.process_time() - began, model.predict(X)
    factors: list[int | None] = []
    for k in range(len(DIMENSIONS)):
        own = np.unique(component[labels == k])
        is_alone = len(own) == 1 and (labels[component == own[0]] == k).all()
        factors.append(int(model.n_factors_[own[0]]) if is_alone else None)
    return {
        "n": n,
        "seed": seed,
        "tied": tied,
        "factors": factors,
        "bound": round(float(model.lower_bound_), 3),
        "seconds": round(seconds, 2),
    }


def table(record: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the page: rows of a cluster, and factors of each for each seed, by noises of their own and by one."""
    for n in sorted({line["n"] for line in record}):
        for seed in sorted({line["seed"] for line in record if line["n"] == n}):
            cells = []
            for tied in (False, True):
                lines = [each for each in record if (each["n"], each["seed"], each["tied"]) == (n, seed, tied)]
                cells.append(" ".join("-" if q is None else str(q) for q in lines[0]["factors"]) if lines else "")
            yield str(n), *cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[8, 16, 32, 64, 128, 256, 512])
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    for n in asked.rows:
        for seed in range(asked.seeds):
            for tied in (False, True):
                done = {(line["n"], line["seed"], line["tied"]) for line in read_record(RECORD)}
                if (n, seed, tied) not in done:
                    add_to_record(RECORD, measured(n, seed, tied))
    print(*map(", ".join, table(read_record(RECORD))), sep="\n")


if __name__ == "__main__":
    main()
