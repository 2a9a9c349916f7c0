"""Do default fits of many rows reach the optimum that the true labels lead to?

Rows are drawn from known components: clumps that overlap, have unequal shares or covariances of their own, or are rare;
tables of categories; columns of both kinds; networks of two latents; chains. A reference is the same fit begun at the
true labels, or at the true tables. Half of the problems, the *held*
ones, were not looked at while the search was tuned.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.large_tables --label NAME [--seeds 5] [--only PREFIX ...] [--half tuning]

The record, large_tables_results.jsonl next to this file, has one line for each label, problem and seed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem import VBHMM, VBDiscreteDAG, VBMixture
from skvbem.emissions import FactorGaussian

RESULTS = Path(__file__).with_name("large_tables_results.jsonl")


@dataclass(frozen=True)
class Draw:
    """Rows, the component of each, and the estimator that is to find them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    labels : ndarray of int, shape (n_rows,)
    estimator : callable
        An estimator with parameters.
    init : dict, optional
        Tables of a network, where it has several latents.
    """

    X: Any
    labels: np.ndarray
    estimator: Callable[..., Any]
    init: Any = None


def _mixture(n_components: int, **options: Any) -> Callable[..., VBMixture]:
    return lambda **more: VBMixture(n_components, **options, **more)


def clumps(
    n: int, d: int, k: int, seed: int | list[int], *, width: float = 3.0, own: bool = False, shares: str = "drawn"
) -> Draw:
    """Clumps of normal rows, their means so many standard deviations apart.

    Parameters
    ----------
    n, d, k : int
        Rows, columns, clumps.
    seed : int or list of int
    width : float
        Standard deviation of means, less where columns are more than four.
    own : bool
        Each clump has a covariance of its own.
    shares : {"drawn", "unequal", "rare"}
        Equal on average; each two thirds of the one before; one clump of a thousandth.
    """
    rng = np.random.default_rng(seed)
    means = width * rng.normal(size=(k, d)) / max(1, (d / 4) ** 0.5)
    share = np.ones(k)
    if shares == "unequal":
        share = (2 / 3) ** np.arange(k)
    if shares == "rare":
        share[0] = 0.001 * (k - 1) / 0.999
        means[0] = means[1:].mean(axis=0) + 6.0 * np.eye(d)[0] + 6.0 * np.eye(d)[-1]
    share = share / share.sum()
    labels = rng.integers(k, size=n) if shares == "drawn" else rng.choice(k, size=n, p=share)
    X = rng.normal(size=(n, d))
    if own:
        roots = rng.normal(size=(k, d, d)) / np.sqrt(d) + 0.5 * np.eye(d)
        X = np.einsum("nij,nj->ni", roots[labels], X)
    return Draw(X + means[labels], labels, _mixture(k))


def categories(n: int, d: int, k: int, n_states: int, seed: int) -> Draw:
    """Categories that are independent within classes."""
    rng = np.random.default_rng(seed)
    tables, labels = rng.dirichlet(np.ones(n_states), (k, d)).cumsum(axis=-1), rng.integers(k, size=n)
    X = (rng.random((n, d, 1)) > tables[labels][..., :-1]).sum(axis=-1)
    return Draw(X.astype(float), labels, _mixture(k, emission="categorical"))


def both_kinds(n: int, d: int, k: int, n_states: int, seed: int) -> Draw:
    """Clumps in half of the columns, and categories in the others."""
    measured, coded = clumps(n, d, k, seed, width=1.5), categories(n, d, k, n_states, seed + 1)
    rng = np.random.default_rng(seed)
    order = np.argsort(coded.labels, kind="stable")[np.argsort(np.argsort(measured.labels, kind="stable"))]
    swapped = rng.random(n) < 0.02  # shares differ a little: few rows have the categories of another clump
    order[swapped] = rng.permutation(order[swapped])
    X = np.column_stack([measured.X, coded.X[order]])
    columns = {"gaussian": list(range(d)), "categorical": list(range(d, 2 * d))}
    return Draw(X, measured.labels, _mixture(k, emission=columns))


def two_latents(n: int, d: int, k: int, n_states: int, seed: int) -> Draw:
    """Categories in two halves, each under a latent; the second latent hangs on the first."""
    rng = np.random.default_rng(seed)
    between, tables = rng.dirichlet(np.ones(k), k), rng.dirichlet(np.ones(n_states), (2 * d, k))
    first = rng.integers(k, size=n)
    second = (rng.random((n, 1)) > between.cumsum(axis=1)[first][:, :-1]).sum(axis=1)
    halves = [
        (rng.random((n, d, 1)) > tables[part].cumsum(axis=-1)[:, latent].swapaxes(0, 1)[..., :-1]).sum(axis=-1)
        for part, latent in ((slice(0, d), first), (slice(d, 2 * d), second))
    ]
    parents = {"h1": ["h0"]} | {f"x{j}": [f"h{j // d}"] for j in range(2 * d)}
    init = {"h0": np.full(k, 1 / k), "h1": between} | {f"x{j}": table for j, table in enumerate(tables)}

    def estimator(**options: Any) -> VBDiscreteDAG:
        return VBDiscreteDAG(parents, latents={"h0": k, "h1": k}, **options)

    return Draw(np.column_stack(halves), first, estimator, init)


def factors(n: int, d: int, k: int, seed: int) -> Draw:
    """Clumps along one direction each."""
    rng = np.random.default_rng(seed)
    loadings, means, labels = rng.normal(size=(k, d)), 2 * rng.normal(size=(k, d)), rng.integers(k, size=n)
    X = means[labels] + loadings[labels] * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, d))
    return Draw(X, labels, _mixture(k, emission=FactorGaussian(1)))


def chain(n: int, d: int, k: int, seed: int, width: float = 1.5) -> Draw:
    """One chain of normal rows that stays in a state for ten steps on average."""
    rng = np.random.default_rng(seed)
    means, labels, leaves = width * rng.normal(size=(k, d)), np.empty(n, dtype=int), rng.random(n) < 0.1
    drawn = rng.integers(k, size=n)
    labels[0] = drawn[0]
    for t in range(1, n):
        labels[t] = drawn[t] if leaves[t] else labels[t - 1]
    return Draw(means[labels] + rng.normal(size=(n, d)), labels, lambda **more: VBHMM(k, **more))


@dataclass(frozen=True)
class Problem:
    """A table to draw, and whether it was looked at while the search was tuned."""

    half: str
    make: Callable[[], Draw]

    @cached_property
    def drawn(self) -> Draw:
        """The rows."""
        return self.make()

    def fit(self, **options: Any) -> Any:
        """The fit, without its warnings."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.drawn.estimator(**options).fit(self.drawn.X)

    def reference(self) -> Any:
        """The fit from the true labels or tables."""
        if self.drawn.init is not None:
            return self.fit(init=self.drawn.init)
        n_components = self.drawn.labels.max() + 1
        return self.fit(init=0.98 * np.eye(n_components)[self.drawn.labels] + 0.02 / n_components)


PROBLEMS = {
    "300k x 2, 3 clumps": Problem("tuning", lambda: clumps(300_000, 2, 3, 0)),
    "300k x 10, 10 clumps": Problem("tuning", lambda: clumps(300_000, 10, 10, 0)),
    "100k x 5, 5 that overlap": Problem("tuning", lambda: clumps(100_000, 5, 5, 1, width=1.5)),
    "200k x 4, 20 clumps": Problem("tuning", lambda: clumps(200_000, 4, 20, 2, width=5.0)),
    "120k x 3, 6 of unlike covariances": Problem("tuning", lambda: clumps(120_000, 3, 6, 3, own=True)),
    "100k x 20, 6 classes": Problem("tuning", lambda: categories(100_000, 20, 6, 4, 4)),
    "100k x 2, chain of 3": Problem("tuning", lambda: chain(100_000, 2, 3, 5)),
    "300k x 3, one of 4 rare": Problem("tuning", lambda: clumps(300_000, 3, 4, 6, shares="rare")),
    "120k x 8, 14 of unequal shares": Problem("tuning", lambda: clumps(120_000, 8, 14, 7, shares="unequal")),
    "110k x 9, 13 of unequal shares": Problem("held", lambda: clumps(110_000, 9, 13, 20, shares="unequal")),
    "250k x 6, 12 that overlap": Problem("held", lambda: clumps(250_000, 6, 12, 21, width=2.0)),
    "150k x 12, 12 that overlap": Problem("tuning", lambda: clumps(150_000, 12, 12, 8, width=2.0)),
    "300k x 2, 3 clumps again": Problem("held", lambda: clumps(300_000, 2, 3, 10)),
    "300k x 10, 10 clumps again": Problem("held", lambda: clumps(300_000, 10, 10, 11)),
    "150k x 3, 8 of unequal shares": Problem("held", lambda: clumps(150_000, 3, 8, 12, width=4.0, shares="unequal")),
    "100k x 10, 15 of unequal shares": Problem("tuning", lambda: clumps(100_000, 10, 15, 13, shares="unequal")),
    "200k x 5, 20 clumps": Problem("held", lambda: clumps(200_000, 5, 20, 14, width=4.0)),
    "100k x 4, 5 of unlike covariances": Problem("held", lambda: clumps(100_000, 4, 5, 15, own=True)),
    "200k x 12, 4 classes": Problem("held", lambda: categories(200_000, 12, 4, 3, 16)),
    "100k x 8, 4 of one factor": Problem("held", lambda: factors(100_000, 8, 4, 17)),
    "120k x 3, chain of 5": Problem("held", lambda: chain(120_000, 3, 5, 18)),
    "100k x 6, 5 of both kinds": Problem("tuning", lambda: both_kinds(100_000, 3, 5, 4, 22)),
    "150k x 8, 7 of both kinds": Problem("held", lambda: both_kinds(150_000, 4, 7, 3, 23)),
    "100k x 10, two latents": Problem("tuning", lambda: two_latents(100_000, 5, 3, 3, 24)),
    "120k x 12, two latents": Problem("held", lambda: two_latents(120_000, 6, 4, 3, 25)),
    "30k x 2, 10 that overlap": Problem("tuning", lambda: clumps(30_000, 2, 10, [30_000, 2])),
    "60k x 2, 9 that overlap": Problem("held", lambda: clumps(60_000, 2, 9, 31)),
    "90k x 3, 11 that overlap": Problem("held", lambda: clumps(90_000, 3, 11, 32, width=2.0)),
    "300k x 5, one of 6 rare": Problem("held", lambda: clumps(300_000, 5, 6, 19, shares="rare")),
}


def measured(name: str, seeds: range, label: str, path: Path) -> None:
    """Add what is not yet in a record: the reference of a problem, and a default fit for each seed."""
    record, problem = read_record(path), PROBLEMS[name]
    if not any(line["problem"] == name and line["label"] == "true labels" for line in record):
        _add(path, "true labels", name, 0, problem.reference)
    done = {line["seed"] for line in record if (line["problem"], line["label"]) == (name, label)}
    for seed in (seed for seed in seeds if seed not in done):
        _add(path, label, name, seed, lambda seed=seed: problem.fit(random_state=seed))


def _add(path: Path, label: str, name: str, seed: int, fit: Callable[[], Any]) -> None:
    began = time.process_time()
    model = fit()
    line = {"label": label, "problem": name, "seed": seed, "bound": round(float(model.lower_bound_), 4)}
    line["smallest"] = round(float(np.min(model.counts_)), 1) if isinstance(model.counts_, np.ndarray) else None
    line["seconds"] = round(time.process_time() - began, 2)
    print(line, flush=True)
    add_to_record(path, line)


def shortfalls(record: list[dict[str, Any]], label: str) -> dict[str, np.ndarray]:
    """Nats that the fits of each problem under a label are behind the one from the true labels; negative: ahead."""
    reference = {line["problem"]: line["bound"] for line in record if line["label"] == "true labels"}
    return {
        name: np.array(
            [
                reference[name] - line["bound"]
                for line in sorted(record, key=lambda line: line["seed"])
                if (line["problem"], line["label"]) == (name, label)
            ]
        )
        for name in PROBLEMS
    }


def table(record: list[dict[str, Any]], label: str) -> list[tuple[str, ...]]:
    """Rows of the page: problem, half, fits within 1 nat, the largest miss, median CPU seconds."""
    rows = []
    for name, short in shortfalls(record, label).items():
        seconds = [line["seconds"] for line in record if (line["problem"], line["label"]) == (name, label)]
        if len(short):
            near = f"{int((short < 1).sum())} of {len(short)}"
            rows.append((name, PROBLEMS[name].half, near, f"{max(short.max(), 0):.1f}", f"{np.median(seconds):.1f}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--label", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--half")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    for name, problem in PROBLEMS.items():
        is_asked = not asked.only or any(name.startswith(text) for text in asked.only)
        if is_asked and asked.half in (None, problem.half):
            measured(name, range(asked.seeds), asked.label, asked.output)
    print(*map(", ".join, table(read_record(asked.output), asked.label)), sep="\n")


if __name__ == "__main__":
    main()
