"""Is the emission of counts with the higher bound the one that predicts better? Simulated mixtures of known truth.

A mixture of one to five components of one or two columns makes 100 to 3000 rows: Poisson counts, or negative binomial
ones of size 1. ``VBMixture("auto")`` chooses numbers of components by Poisson and by negative binomial emissions, whose
bounds are in the same measure. Another 20 000 rows say which predicts better, parameters integrated out. Real tables
are those of `reproduction.counts_held_out`, where bounds of four folds choose for the fifth.

    PYTHONPATH=tests python -P -m reproduction.emission_choice measure [--truth NAME ...] [--seeds N]
    PYTHONPATH=tests python -P -m reproduction.emission_choice table

The record, emission_choice_results.jsonl next to this file, has a line for each simulated table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reproduction import counts_held_out
from reproduction.records import add_to_record, read_record

from skvbem import VBMixture
from skvbem.emissions import NegativeBinomial, Poisson

RECORD = Path(__file__).with_name("emission_choice_results.jsonl")
EMISSIONS = {"poisson": Poisson(), "negative_binomial": NegativeBinomial()}
#: Simulated tables by their truth.
N_TABLES = {"poisson": 200, "negative_binomial": 100}
N_NEW = 20_000


def problem(truth: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit, and rows to predict."""
    rng = np.random.default_rng([20261128, list(N_TABLES).index(truth), seed])
    k, n, d = 1 + seed % 5, [100, 300, 1000, 3000][seed // 5 % 4], 1 + seed // 20 % 2
    rates, weights = np.exp(rng.uniform(0, 3, size=(k, d))), rng.dirichlet(np.full(k, 5.0))

    def rows(m: int) -> np.ndarray:
        of_rows = rates[rng.choice(k, size=m, p=weights)]
        spread = rng.gamma(1.0, 1.0, size=of_rows.shape) if truth == "negative_binomial" else 1.0
        return rng.poisson(of_rows * spread)

    return rows(n), rows(N_NEW)


def measured(truth: str, seed: int) -> dict:
    """The line of a simulated table: of each emission components, bound, and mean log probability of new rows."""
    X, new = problem(truth, seed)
    line: dict = {"truth": truth, "seed": seed, "n": len(X)}
    for name, emission in EMISSIONS.items():
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = VBMixture("auto", emission=emission, random_state=0).fit(X)
        score = float(model.score(new))
        seconds = round(time.process_time() - began, 2)
        line[name] = {"components": int(model.n_components_), "bound": round(float(model.lower_bound_), 3)}
        line[name] |= {"score": round(score, 5), "seconds": seconds}
    return line


def gains(lines: list[dict], truth: str) -> np.ndarray:
    """Of negative binomial fits over Poisson ones: of bounds, and of mean log probabilities, nats, (n_tables, 2)."""
    pairs = [(each["negative_binomial"], each["poisson"]) for each in lines if each["truth"] == truth]
    return np.array([[ours[of] - theirs[of] for of in ("bound", "score")] for ours, theirs in pairs])


def gains_of_folds(table: str) -> np.ndarray:
    """Gains of bounds, and of mean scores over the rows, in five folds of a real table, nats, (5, 2)."""
    lines = read_record(counts_held_out.RECORD)
    of = {each["contestant"]: each for each in lines if each["table"] == table}
    ours, theirs = of["NegativeBinomial()"], of["Poisson()"]
    bounds = np.subtract(ours["bounds"], theirs["bounds"])
    scores = [
        np.average(np.subtract(mine, peers), weights=rows)
        for mine, peers, rows in zip(ours["scores"], theirs["scores"], ours["rows"], strict=True)
    ]
    return np.column_stack([bounds, scores])


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: tables, those that the bound gives to negative binomial counts, and gains."""
    for truth in N_TABLES:
        of_truth = gains(lines, truth)
        if len(of_truth):
            yield (f"{len(of_truth)} simulated {truth.replace('_', ' ')}", *_of(of_truth))
    folds = np.concatenate([gains_of_folds(table) for table in counts_held_out.TABLES])
    yield (f"{len(folds)} folds of six real tables", *_of(folds))


def _of(gain: np.ndarray) -> tuple[str, ...]:
    bound, score = gain.T
    is_chosen = bound > 0
    right = np.mean(is_chosen == (score > 0))
    chosen, best = np.where(is_chosen, score, 0.0), np.maximum(score, 0.0)
    return (
        str(np.count_nonzero(is_chosen)),
        f"{100 * right:.0f} %",
        f"{1000 * np.mean(best - chosen):.2f}",
        f"{1000 * np.max(best - chosen):.1f}",
        f"{1000 * np.mean(chosen):+.1f}",
    )


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--truth", nargs="+", choices=list(N_TABLES), default=list(N_TABLES))
    parser.add_argument("--seeds", type=int, default=max(N_TABLES.values()))
    options = parser.parse_args()
    done = {(line["truth"], line["seed"]) for line in read_record(RECORD)}
    for truth in options.truth if options.what == "measure" else ():
        for seed in range(min(N_TABLES[truth], options.seeds)):
            if (truth, seed) not in done:
                add_to_record(RECORD, measured(truth, seed))
    for row in table_rows(read_record(RECORD)):
        print(", ".join(row))


if __name__ == "__main__":
    main()
