"""How often do intervals hold the truth that a summary of factors gives within a second? Two ways beside each other.

Simulated tables of 1, 2, 3 and 5 factors, of 6 to 13 columns and 100 to 231 rows, units of noise from 0.5 to 1.5: 95 %
intervals of what no rotation changes, by linear response and by q(theta), and the CPU seconds of draws.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.approximate_intervals --tables 40

The record, approximate_intervals_results.jsonl next to this file, has a line for each table; what is there is not done
again.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem import VBFactorAnalysis

RECORD = Path(__file__).with_name("approximate_intervals_results.jsonl")
METHODS = ("linear_response", "vb")
#: Factors, columns, rows.
SIZES = ((1, 6, 100), (2, 10, 150), (3, 12, 200), (5, 13, 231))


def measured(number):
    """How many intervals of a table hold what they should, by method and name, of how many, and CPU seconds."""
    rng, (q, d, n) = np.random.default_rng([95, number]), SIZES[number % len(SIZES)]
    loadings, noise = rng.normal(size=(d, q)), rng.uniform(0.5, 1.5, d)
    X = rng.normal(size=(n, q)) @ loadings.T + noise * rng.normal(size=(n, d))
    covariance = loadings @ loadings.T + np.diag(noise**2)
    truth = {"means": np.zeros(d), "noise_variances": noise**2, "uniquenesses": noise**2 / np.diag(covariance)}
    truth["covariances"] = covariance[np.tril_indices(d)]
    line = {"number": number, "q": q, "of": {name: each.size for name, each in truth.items()}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VBFactorAnalysis(q, random_state=0).fit(X)
        for method in METHODS:
            began = time.process_time()
            (ends,) = model.sample_posterior(X, 2000, method=method).intervals(0.95).values()
            line[f"{method}_seconds"] = round(time.process_time() - began, 3)
            ends["covariances"] = tuple(end[..., *np.tril_indices(d)] for end in ends["covariances"])
            line[method] = {
                name: int(np.sum((ends[name][0] <= each) & (each <= ends[name][1]))) for name, each in truth.items()
            }
    return line


def shares(lines, method):
    """Shares of intervals that hold the truth by name, and the median of CPU seconds."""
    names = lines[0]["of"]
    held = {name: sum(line[method][name] for line in lines) / sum(line["of"][name] for line in lines) for name in names}
    return held, float(np.median([line[f"{method}_seconds"] for line in lines]))


def main():
    """Measure what is lacking, and show shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=40)
    done = {line["number"] for line in read_record(RECORD)}
    for number in range(parser.parse_args().tables):
        if number not in done:
            add_to_record(RECORD, measured(number))
    for method in METHODS:
        held, seconds = shares(read_record(RECORD), method)
        print(method, {name: round(share, 3) for name, share in held.items()}, f"{seconds:.2f} s")


if __name__ == "__main__":
    main()
