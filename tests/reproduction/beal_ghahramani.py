"""The experiment of Beal & Ghahramani (2003) over many draws of parameters: which score finds the truth, and when.

Two binary latents without parents, four observed nodes of five states, edges from latents to observed nodes only: 136
structures up to the names of latents. Truth: h0 -> y0, y1, y2 and h1 -> y1, y2, y3. Each draw of parameters from the
uniform prior makes nested data sets. Run as a program it writes one line of JSON for each draw and size:

    python beal_ghahramani.py results.jsonl --draws 100 --sizes 160 480 960 1920 5120
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom, binomtest

from skvbem import DAG, BipartiteSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.errors import SearchWarning

OBSERVED = ("y0", "y1", "y2", "y3")
LATENTS = {"h0": 2, "h1": 2}
TRUTH = DAG([*LATENTS, *OBSERVED], {"y0": ["h0"], "y1": ["h0", "h1"], "y2": ["h0", "h1"], "y3": ["h1"]})
#: The 20 sizes of the paper, as far as they are known.
SIZES = (
    *(10, 20, 40, 80, 110, 160, 230, 320, 400, 430),
    *(480, 560, 640, 800, 960, 1120, 1280, 2560, 5120, 10240),
)  # fmt: skip
#: Ranks of the truth of a run over 100 draws: how many of the 136 structures score higher, and one.
RESULTS = Path(__file__).with_name("beal_ghahramani_results.jsonl")
SCORES = ("lower_bound", "collapsed", "collapsed_ascent", "bic", "bicp", "cheeseman_stutz", "cheeseman_stutz_dagger")


def space():
    """The 136 structures."""
    return BipartiteSpace(latents=LATENTS, observed=OBSERVED)


def estimator(**params):
    """Ten starts, as all fits here."""
    return VBDiscreteDAG(categories=[range(5)] * 4, **params)


def drawn_rows(draw, n):
    """The first n rows of data made by one draw of parameters; the smaller sets are part of the larger."""
    rng = np.random.default_rng([2003, draw])
    weights = rng.dirichlet([1, 1], size=2)
    tables = [rng.dirichlet(np.ones(5), size=2 ** len(TRUTH.parents(node))) for node in OBSERVED]
    uniform = rng.random((max(SIZES), 6))[:n]
    states = (uniform[:, :2] > weights[:, 0]).astype(int)
    of = {"h0": states[:, 0], "h1": states[:, 1]}
    columns = {}
    for j, node in enumerate(OBSERVED):
        row = np.zeros(n, dtype=int)
        for parent in TRUTH.parents(node):
            row = 2 * row + of[parent]
        columns[node] = (uniform[:, 2 + j, None] > tables[j][row].cumsum(axis=1)[:, :-1]).sum(axis=1)
    return pd.DataFrame(columns)


def place_of_truth(params):
    """The position of the true structure among candidates."""
    wanted = TRUTH.canonical(LATENTS)
    return next(k for k, setting in enumerate(params) if setting["structure"].canonical(LATENTS) == wanted)


def table_of(draw, n, scores=SCORES, n_jobs=1):
    """The table of a search over all structures, and the seconds it took."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        search = StructureSearchCV(
            estimator(), space(), scoring=list(scores), refit=False, n_jobs=n_jobs, random_state=draw
        ).fit(drawn_rows(draw, n))
    results = search.cv_results_
    found = {name: results[f"mean_test_{name}"] for name in scores}
    if "bicp" in found:  # the posterior mode's height, no evidence: what the prior of the point and the data say
        found["map"] = found["bicp"] + results["n_free_parameters"] / 2 * np.log(n)
    errors = {name: results.get(f"standard_error_{name}") for name in scores}
    return found, errors, place_of_truth(results["params"]), time.perf_counter() - began


def ranks_of(records, n, score):
    """The rank of the truth in every draw of a size."""
    return np.array([record["ranks"][score] for record in records if record["n"] == n])


def summary(records):
    """Rows of size, score, share of draws with the truth first, median rank, draws better and worse than by VB."""
    rows = []
    for n in sorted({record["n"] for record in records}):
        for score in ("bic", "lower_bound", "collapsed", "collapsed_ascent", "ais"):
            ranks, by_vb = ranks_of(records, n, score), ranks_of(records, n, "lower_bound")
            better, worse = str(np.sum(ranks < by_vb)), str(np.sum(ranks > by_vb))
            rows.append((str(n), score, shown_share(ranks == 1), shown_median(ranks), better, worse))
    return rows


def shown_share(found):
    """A share in percent and its Wilson interval (95 %)."""
    low, high = binomtest(int(np.sum(found)), len(found)).proportion_ci(method="wilson")
    return f"{100 * np.mean(found):.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def shown_median(ranks):
    """A median and its interval (95 %) between order statistics."""
    low, high = binom(len(ranks), 0.5).interval(0.95)
    low, high = np.sort(ranks)[[int(low) - 1, int(high)]]
    return f"{np.median(ranks):g} ({low:g} to {high:g})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--scores", nargs="*", default=SCORES)
    given = parser.parse_args()
    done = set()
    if os.path.exists(given.path):
        with open(given.path) as lines:
            done = {(record["draw"], record["n"]) for record in map(json.loads, lines)}
    for draw in range(given.first, given.draws):
        for n in given.sizes:
            if (draw, n) in done:
                continue
            found, errors, place, seconds = table_of(draw, n, given.scores)
            ranks = {name: int(1 + np.sum(values > values[place])) for name, values in found.items()}
            record = {"draw": draw, "n": n, "seconds": round(seconds, 3), "ranks": ranks}
            record["errors"] = {name: round(float(np.median(e)), 4) for name, e in errors.items() if e is not None}
            with open(given.path, "a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
