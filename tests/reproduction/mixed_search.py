"""Which hidden causes drive which of several kinds of columns: how often searches over mixed networks find the truth.

Two hidden variables of two states and columns of three kinds; their parameters are drawn from the prior that the fits
have. *Four columns*, a category, a count and two measurements: all 136 structures are compared, by bounds, by the
collapsed bound, by BIC and by sampled evidences of the best. *Nine columns*, three of each kind: the default search.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    PYTHONPATH=tests python -P -m reproduction.mixed_search measure --rows 300 --seconds 900
    PYTHONPATH=tests python -P -m reproduction.mixed_search table

The record, mixed_search_results.jsonl next to this file, has a line for each draw of parameters and number of rows; the
rows of a smaller number are the first of a larger. What is there is not done again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from reproduction.records import simulate, timed

from skvbem import DAG, BipartiteSpace, StructureSearchCV, VBNetwork
from skvbem.emissions import Gaussian, Poisson
from skvbem.evidence import scorer

RECORD = Path(__file__).with_name("mixed_search_results.jsonl")
LATENTS = {"h0": 2, "h1": 2}
MOST_ROWS = 3000
# Columns of each problem, and the hidden causes of each.
PROBLEMS = {
    "four": {"kind": ("h0",), "count": ("h0", "h1"), "length": ("h0", "h1"), "width": ("h1",)},
    "nine": {
        f"{kind}{k}": causes
        for kind in ("kind", "count", "length")
        for k, causes in enumerate((("h0",), ("h0", "h1"), ("h1",)))
    },
}
# The first one says which structures are on the front, whose evidences are sampled.
SCORES = ("collapsed", "lower_bound", "bic")
N_SAMPLED = 5
EVIDENCE = {"error": 0.3, "n_draws": 1024, "n_particles": 64, "max_particles": 64}
N_CATEGORIES = 4
# The prior of truths and of fits: means of a component lie about two standard deviations from 0.
SHAPE, RATE = 2.0, 0.4
DEGREES_OF_FREEDOM, MEAN_PRECISION = 4.0, 0.2
# Nats of evidence within which two structures are as good as each other.
TIED = 1e-6


def truth(problem: str) -> DAG:
    """The structure that rows are drawn from."""
    causes = PROBLEMS[problem]
    return DAG([*LATENTS, *causes], {column: list(of) for column, of in causes.items()})


def space(problem: str) -> BipartiteSpace:
    """All edges from hidden variables to columns."""
    return BipartiteSpace(LATENTS, list(PROBLEMS[problem]))


def estimator(problem: str, seed: int) -> VBNetwork:
    """The network of columns of a problem under the prior of its truths."""
    columns = list(PROBLEMS[problem])
    counts = Poisson(shape_prior=SHAPE, rate_prior=RATE)
    lengths = Gaussian(
        mean_prior=[0.0],
        mean_precision_prior=MEAN_PRECISION,
        degrees_of_freedom_prior=DEGREES_OF_FREEDOM,
        covariance_prior=[[1.0]],
    )
    of_columns = [(name, counts, [name]) for name in columns if name.startswith("count")]
    of_columns += [(name, lengths, [name]) for name in columns if name.startswith(("length", "width"))]
    categories = {name: range(N_CATEGORIES) for name in columns if name.startswith("kind")}
    of_columns += [(name, "categorical", [name]) for name in categories]
    return VBNetwork(emission=of_columns, categories=categories, random_state=seed)


def rows_of(problem: str, draw: int, n: int) -> pd.DataFrame:
    """The first rows of the data that a draw of parameters makes."""
    parameters, noise = (np.random.default_rng([2026, draw, k]) for k in range(2))
    states = {
        name: np.searchsorted(parameters.dirichlet([1.0, 1.0]).cumsum()[:-1], noise.random(MOST_ROWS))
        for name in LATENTS
    }
    columns = {}
    for name, causes in PROBLEMS[problem].items():
        place = np.zeros(MOST_ROWS, dtype=int)
        for cause in causes:
            place = 2 * place + states[cause]
        size = 2 ** len(causes)
        if name.startswith("kind"):
            tables = parameters.dirichlet(np.ones(N_CATEGORIES), size=size).cumsum(axis=1)[:, :-1]
            columns[name] = (noise.random(MOST_ROWS)[:, None] > tables[place]).sum(axis=1)
        elif name.startswith("count"):
            columns[name] = noise.poisson(parameters.gamma(SHAPE, 1 / RATE, size)[place]).astype(float)
        else:
            precisions = parameters.gamma(DEGREES_OF_FREEDOM / 2, 2 / DEGREES_OF_FREEDOM, size)
            means = parameters.normal(0.0, 1 / np.sqrt(MEAN_PRECISION * precisions))
            columns[name] = noise.normal(means[place], 1 / np.sqrt(precisions[place]))
    return pd.DataFrame(columns)[:n]


def measured(problem: str, n: int, draw: int) -> dict[str, Any]:
    """Ranks of the truth among structures by each score, and how many nats its fit is behind the best that was found.

    A search that was stopped goes on where it was when it is asked for again.
    """
    line: dict[str, Any] = {"problem": problem, "n": n, "seed": draw, "seconds": {}, "rank": {}}
    wanted, X = truth(problem).canonical(LATENTS), rows_of(problem, draw, n)
    kept = Path(tempfile.gettempdir()) / f"mixed_search_{problem}_{n}_{draw}.json"
    if problem == "nine":
        with timed(line, "default"):
            search = StructureSearchCV(
                estimator(problem, draw), space(problem), random_state=draw, checkpoint=kept
            ).fit(X)
        line["found"] = search.best_structure_.canonical(LATENTS) == wanted
        best = of_truth = search.best_estimator_.lower_bound_
        if not line["found"]:
            asked = estimator(problem, draw).set_params(structure=truth(problem), latents=LATENTS)
            of_truth = asked.fit(X).lower_bound_
        line["behind"] = {"lower_bound": round(float(best - of_truth), 3)}
        kept.unlink()
        return line | {"fits": len(search.cv_results_["params"])}
    front = {"rescoring": scorer("auto", **EVIDENCE), "n_rescored": N_SAMPLED}
    with timed(line, "all"):
        search = StructureSearchCV(
            estimator(problem, draw), space(problem), scoring=list(SCORES), refit=False, random_state=draw,
            checkpoint=kept, **front,
        ).fit(X)  # fmt: skip
    results = search.cv_results_
    (place,) = (k for k, each in enumerate(results["params"]) if each["structure"].canonical(LATENTS) == wanted)
    scores = {name: results[f"mean_test_{name}"] for name in SCORES}
    for name, values in scores.items():
        line["rank"][name] = int(1 + np.sum(values > values[place] + TIED))
    # Evidences come ahead of all that is not on the front.
    line["rank"]["auto"] = int(results[f"rank_test_{SCORES[0]}"][place])
    line["behind"] = {name: round(float(values.max() - values[place]), 3) for name, values in scores.items()}
    kept.unlink()
    return line


def ranks(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of four columns: rows, score, draws, truths first and among the first five, median rank."""
    four = [line for line in lines if line["problem"] == "four"]
    for n in sorted({line["n"] for line in four}):
        for score in (*SCORES, "auto"):
            found = np.array([line["rank"][score] for line in four if line["n"] == n])
            yield (
                str(n),
                score,
                str(len(found)),
                str(np.sum(found == 1)),
                str(np.sum(found <= N_SAMPLED)),
                f"{np.median(found):g}",
            )


def found_by_default(lines: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of nine columns: rows, searches, those that found the truth, others, median seconds.

    Others are those whose truth was fitted, too: it was passed over, though its bound is higher, or it is behind in the
    bound, by so many nats (median). Lines of the first runs do not say.
    """
    nine = [line for line in lines if line["problem"] == "nine"]
    for n in sorted({line["n"] for line in nine}):
        mine = [line for line in nine if line["n"] == n]
        seconds = np.median([line["seconds"]["default"] for line in mine])
        behind = np.array([m["behind"]["lower_bound"] for m in mine if "behind" in m and not m["found"]])
        counts = sum(m["found"] for m in mine), np.sum(behind < 0), np.sum(behind >= 0)
        yield str(n), str(len(mine)), *map(str, counts), f"{np.median(behind[behind >= 0]):.1f}", f"{seconds:.0f}"


if __name__ == "__main__":
    simulate(__doc__, RECORD, PROBLEMS, measured, (ranks, found_by_default))
