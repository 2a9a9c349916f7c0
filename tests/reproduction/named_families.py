"""Which family does the warning of "auto" name for counts? Simulated columns, and what one component of each is worth.

Columns are Poisson counts, negative binomial ones of several sizes, zero-inflated ones, and of two Poisson kinds. The
bound of one component of the family that is named is held against that of Poisson counts.

    PYTHONPATH=tests python -P -m reproduction.named_families measure
    PYTHONPATH=tests python -P -m reproduction.named_families table

The record, named_families_results.jsonl next to this file, has a line for each problem and number of rows, of 400
columns.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem import VBMixture
from skvbem.reading.guesses import family_of_counts

RECORD = Path(__file__).with_name("named_families_results.jsonl")
PROBLEMS = ("poisson", "size 10", "size 2", "size .5", "zeros 10 %", "zeros 40 %", "two kinds")
ROWS = 50, 300, 2000
N_COLUMNS, N_FITS = 400, 20


def drawn(problem: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of a column, (n_rows,), of a mean that is drawn, too."""
    mean = float(np.exp(rng.uniform(np.log(1.0), np.log(12.0))))
    if problem.startswith("size"):
        size = float(problem.split()[1])
        return rng.negative_binomial(size, size / (size + mean), n).astype(float)
    counts = rng.poisson(mean * (np.where(rng.random(n) < 0.5, 1.0, 4.0) if problem == "two kinds" else 1.0), n)
    share = float(problem.split()[1]) / 100 if problem.startswith("zeros") else 0.0
    return np.where(rng.random(n) < share, 0.0, counts)


def measured(problem: str, n: int) -> dict:
    """How often each family is named, and medians of nats by which its bound is above that of Poisson counts."""
    named, gains = Counter[str](), []
    for seed in range(N_COLUMNS):
        counts = drawn(problem, n, np.random.default_rng([42, n, seed, PROBLEMS.index(problem)]))
        family = family_of_counts(counts) if counts.any() else "poisson"
        named[family] += 1
        if seed < N_FITS and family != "poisson":
            of, other = (VBMixture(1, emission=each).fit(counts[:, None]).lower_bound_ for each in (family, "poisson"))
            gains.append(of - other)
    gain = None if not gains else {"least": round(min(gains), 2), "median": round(float(np.median(gains)), 2)}
    return {"problem": problem, "n": n, "columns": N_COLUMNS, "named": dict(sorted(named.items())), "gain": gain}


def measure() -> None:
    """Add what is not yet there."""
    done = {(line["problem"], line["n"]) for line in read_record(RECORD)}
    for problem in PROBLEMS:
        for n in ROWS:
            if (problem, n) not in done:
                add_to_record(RECORD, measured(problem, n))


def table(record: list[dict]) -> list[tuple]:
    """Problem, rows, and percent of columns for which each family is named."""
    families = "poisson", "negative_binomial", "zero_inflated"
    return [
        (line["problem"], line["n"], *(100 * line["named"].get(family, 0) / line["columns"] for family in families))
        for line in record
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table"])
    if parser.parse_args().what == "measure":
        measure()
    else:
        for row in table(read_record(RECORD)):
            print(*row, sep="\t")
