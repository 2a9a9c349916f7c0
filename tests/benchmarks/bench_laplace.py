"""Speed and memory of Laplace's approximation: table 2 of Chickering & Heckerman (1996), and the cost of a row.

``python tests/benchmarks/bench_laplace.py [--classes 26 29 32 36] [--repeats 3]``

Naive Bayes models of 64 binary features; 400 rows drawn from one of 32 classes. Their figures are those of a 100 MHz
machine. Given the class, the features of a row are known: the second moments of its complete-data scores lie in one
block per class, of 65 x 65, and only their mean has all d parameters. All rows' means make one d x d matrix product.
Seconds are those of the processor, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial

import numpy as np
from scipy.linalg.blas import dsyr
from timing import interleave, number, peak_growth, show, spread

from skvbem import VBDiscreteDAG

N_FEATURES, N_TRUE_CLASSES = 64, 32
# number of parameters: seconds for EM and for Laplace's approximation
PUBLISHED = {
    1689: (500, 2800),
    1754: (580, 3000),
    1819: (590, 3300),
    1884: (650, 3600),
    1949: (680, 3900),
    2014: (680, 4200),
    2079: (530, 4600),
    2144: (760, 4900),
    2209: (810, 5500),
    2274: (790, 5900),
    2339: (870, 6700),
}


def draw(n_rows: int, seed: int = 0) -> np.ndarray:
    """Rows of a latent class model whose parameters are drawn uniformly."""
    rng = np.random.default_rng(seed)
    weights, ones = rng.dirichlet(np.ones(N_TRUE_CLASSES)), rng.random((N_TRUE_CLASSES, N_FEATURES))
    classes = rng.choice(N_TRUE_CLASSES, p=weights, size=n_rows)
    return (rng.random((n_rows, N_FEATURES)) < ones[classes]).astype(np.int8)


def fit(X: np.ndarray, n_classes: int, n_init: int = 64) -> VBDiscreteDAG:
    model = VBDiscreteDAG(latents=n_classes, prior=1.01, method="map", n_init=n_init, random_state=0)
    return model.fit(X)


def seconds_of(model: VBDiscreteDAG, X: np.ndarray, kind: str, **options) -> float:
    """Of a score at the mode that was fitted, rows compiled anew."""
    began = time.process_time()
    model.log_evidence(X, kind=kind, form="map", **options)
    return time.process_time() - began


def table_2(options):
    X, rows = draw(400), []
    for n_classes in options.classes:
        began = time.process_time()
        model = fit(X, n_classes)
        seconds = time.process_time() - began
        growth = peak_growth(model.log_evidence, X, kind="laplace")
        cases = {kind: partial(seconds_of, model, X, kind) for kind in ("laplace", "cheeseman_stutz", "mled", "bic")}
        for variant in ("block", "diagonal"):
            cases[variant] = partial(seconds_of, model, X, "laplace", variant=variant)
        measured = interleave(cases, options.repeats)
        d = model.n_free_parameters_
        em, laplace = PUBLISHED.get(d, ("-", "-"))
        rows.append(
            (
                d,
                em,
                number(seconds),
                laplace,
                spread(measured["laplace"]),
                "-" if growth is None else number(growth / 1e6),
                number(8e-6 * d * d),
                *(number(1e3 * np.median(measured[kind])) for kind in ("block", "diagonal", "cheeseman_stutz")),
                *(number(1e3 * np.median(measured[kind])) for kind in ("mled", "bic")),
            )
        )
    show(
        "table 2 of Chickering & Heckerman, their seconds and ours; scores without the fit, of "
        "64 starts; peak = growth of resident memory",
        (
            "d",
            "EM, theirs",
            "EM, ours",
            "Laplace, theirs",
            "Laplace, ours",
            "peak, MB",
            "d x d, MB",
            "block, ms",
            "diagonal, ms",
            "CS, ms",
            "MLED, ms",
            "BIC, ms",
        ),
        rows,
    )


def cost_of_a_row(options):
    sizes = (400, 800, 1600, 3200)
    data = {n: draw(n) for n in sizes}
    models = {n: fit(X, N_TRUE_CLASSES, n_init=4) for n, X in data.items()}
    measured = interleave(
        {n: partial(seconds_of, models[n], data[n], "laplace") for n in sizes},
        options.repeats,
    )
    d = models[400].n_free_parameters_
    matrix, vector = np.zeros((d, d), order="F"), np.ones(d)
    began = time.process_time()
    for _ in range(50):
        dsyr(1.0, vector, a=matrix, overwrite_a=1)
    update = (time.process_time() - began) / 50
    rows = []
    for n, before in zip(sizes, (None, *sizes)):
        seconds = np.median(measured[n])
        slope = "-" if before is None else number(1e3 * (seconds - np.median(measured[before])) / (n - before))
        rows.append((n, spread(measured[n]), slope))
    show(
        f"against rows, d = {d}: one rank-one update of a d x d matrix takes {number(1e3 * update)} ms, and one for "
        f"every class of a row {number(1e3 * update * N_TRUE_CLASSES)} ms",
        ("rows", "s", "ms per further row"),
        rows,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[26, 29, 32, 36])
    parser.add_argument("--repeats", type=int, default=3, help="rounds of turns")
    options = parser.parse_args()
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    print(f"{os.cpu_count()} cores, {load}")
    table_2(options)
    cost_of_a_row(options)


if __name__ == "__main__":
    main()
