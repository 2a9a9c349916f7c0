"""Speed of ``StructureSearchCV``: ratios to bare compiled loops over the same fits, and how it scales.

    python bench_search.py [bg] [ais] [column] [workers] [flat] [networks]

- bg: the experiment of Beal & Ghahramani, 20 sizes x 136 structures, variational bound, BIC, Cheeseman-Stutz and
  the height of the mode; three fits of ten starts each (VB, ML, MAP), against ``bare_vbem.c`` doing the same fits on
  as many threads.
- ais: the same experiment with anchored annealed importance sampling of every structure.
- column: n = 480, the variational bound alone, on one core.
- workers: candidates per second with one worker and with two.
- flat: memory in a search of ten thousand structures.
- networks: asia, sachs, child and alarm found again from 5 000 complete rows, beside hill climbing by pyAgrum.

BG took 575 s (VB) and 200 s (BIC) for the column on one core of their time.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import bare
import numpy as np
from joblib import Parallel, delayed
from timing import interleave, number, peak_growth, show, spread, timed

from skvbem import BipartiteSpace, DAGSpace, StructureSearchCV, VBDiscreteDAG
from skvbem.datasets import make_bipartite
from skvbem.errors import SearchWarning

sys.path.append(str(Path(__file__).parents[1]))
from reproduction import known_networks

SIZES = (*(10, 20, 40, 80, 110, 160, 230, 320, 400, 430), *(480, 560, 640, 800, 960, 1120, 1280, 2560, 5120, 10240))
SCORES = ("lower_bound", "bic", "cheeseman_stutz", "bicp")  # the last one's fit is the mode's
N_STARTS, RTOL, MAX_ITER = 10, 1e-8, 10_000
OBSERVED = ("x0", "x1", "x2", "x3")
CODES = make_bipartite(max(SIZES), random_state=0).data


def ours(codes, scores, n_jobs):
    """A search over the 136 structures, fits stopped where the bare loops stop."""
    tol = RTOL * max(5.2 * len(codes), 50.0)  # about |F|: 5.2 nats a row
    model = VBDiscreteDAG(n_init=N_STARTS, tol=tol, max_iter=MAX_ITER, categories=[range(bare.CARD)] * 4)
    space = BipartiteSpace({"h0": 2, "h1": 2}, OBSERVED)
    search = StructureSearchCV(model, space, scoring=list(scores), refit=False, n_jobs=n_jobs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        return search.fit(codes)


def seconds_of(codes, scores, n_jobs):
    return timed(ours, codes, scores, n_jobs)[0]


def bare_fits(codes, forms, threads):
    """The best value of every structure by every form."""
    data = bare.Bare(codes)

    def work(parents):
        rng = np.random.default_rng(0)
        return [
            data.fit(parents, bare.draw_starts(N_STARTS, rng), form=form, rtol=RTOL, max_iter=MAX_ITER).bounds.max()
            for form in forms
        ]

    with ThreadPoolExecutor(threads) as pool:
        return np.array(list(pool.map(work, bare.structures())))


def against_bare(title, sizes, scores, forms, threads, repeats):
    """Ours and the bare loops in turns, all sizes together."""
    kept = {}

    def over_sizes(name, work):
        seconds, kept[name] = timed(lambda: [work(CODES[:n]) for n in sizes])
        return seconds

    measured = interleave(
        {
            "bare": lambda: over_sizes("bare", lambda codes: bare_fits(codes, forms, threads)),
            "ours": lambda: over_sizes("ours", lambda codes: ours(codes, scores, threads)),
        },
        repeats,
    )
    best = [
        search.cv_results_["mean_test_lower_bound"].max() - found[:, 0].max()
        for search, found in zip(kept["ours"], kept["bare"])
    ]
    rows = [
        (
            threads,
            spread(measured["ours"]),
            spread(measured["bare"]),
            spread(measured["ours"] / measured["bare"]),
            f"{min(best):+.2g} to {max(best):+.2g}",
        )
    ]
    show(title, ("cores", "ours, s", "bare, s", "ratio", "best bound of ours less of bare, nats"), rows)


def bg(options):
    against_bare(
        f"{len(SIZES)} sizes x 136 structures x {N_STARTS} starts, VB + BIC + CS + MAP (want <= 1.5)",
        SIZES,
        SCORES,
        bare.FORMS,
        2,
        options.repeats,
    )


def column(options):
    against_bare(
        "n = 480, 136 structures, VB alone (want <= 3 s or 2 x)", (480,), ("lower_bound",), ("vb",), 1, options.repeats
    )


def ais(options):
    seconds = [seconds_of(CODES[:n], (*SCORES, "ais"), 2) for n in SIZES]
    show(
        "the experiment with anchored AIS, 2 workers (want <= 5 min)",
        ("sizes", "s in all", "s at n = 480", "longest, s"),
        [(len(SIZES), number(sum(seconds)), number(seconds[SIZES.index(480)]), number(max(seconds)))],
    )


def workers(options):
    Parallel(n_jobs=2)(delayed(ours)(CODES[:10], ["lower_bound"], 1) for _ in range(2))  # they stay, and have imported
    rows = []
    for n, scores in ((480, ("lower_bound",)), (480, ("lower_bound", "bic", "ais")), (5120, ("lower_bound",))):
        measured = interleave({jobs: partial(seconds_of, CODES[:n], scores, jobs) for jobs in (1, 2)}, options.repeats)
        speedup = measured[1] / measured[2]
        rows.append(
            (n, ", ".join(scores), *(number(136 / np.median(measured[jobs])) for jobs in (1, 2)), spread(speedup / 2))
        )
    show(
        "136 structures: candidates per second, workers there before (want efficiency >= 0.85)",
        ("rows", "scores", "1 worker", "2 workers", "efficiency"),
        rows,
    )


def flat(options):
    space = DAGSpace(["x0", "x1", "x2", "x3"], latents={"h0": 2, "h1": 2}, max_parents=2)
    rows = []
    for most in (100, 1_000, 10_000):
        model = VBDiscreteDAG(n_init=1, max_iter=20, tol=1.0, categories=[range(bare.CARD)] * 4)
        search = StructureSearchCV(
            model, space, scoring="lower_bound", max_candidates=most, refit=False, random_state=0
        )
        seconds, growth = timed(peak_growth, search.fit, CODES[:200])
        rows.append((most, number(seconds), number(most / seconds), number(growth / 1e6)))
    show(f"of {len(space)} graphs, one worker", ("candidates", "s", "a second", "peak growth, MB"), rows)


def networks(options):
    rows = []
    for name in known_networks.NETWORKS:
        found = known_networks.measure(name, seed=0, n_turns=options.repeats)
        ours, theirs = found["seconds"]["default"], found["seconds"]["pyAgrum"]
        fixed, times = known_networks.LIMIT
        better = found["scores"]["default"] - found["scores"]["pyAgrum"]
        limit = number(ours / (fixed + times * theirs))
        rows.append(
            (name, found["strategy"], number(ours), number(theirs), number(ours / theirs), limit, f"{better:+.1f}")
        )
    show(
        "networks from 5 000 complete rows, one thread, in turns (want a part of the limit <= 1, nats >= 0)",
        ("network", "strategy", "ours, s", "pyAgrum, s", "ratio", "part of 0.1 s + 3 x", "nats above"),
        rows,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["column", "workers", "flat", "bg", "ais"])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for part in options.parts:
        PARTS[part](options)


PARTS = {"bg": bg, "ais": ais, "column": column, "workers": workers, "flat": flat, "networks": networks}

if __name__ == "__main__":
    main()
