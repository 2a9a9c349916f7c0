"""Speed of ``VBDiscreteDAG``: ratios to a bare compiled loop and to other libraries, and how its cost grows.

``python tests/benchmarks/bench_dag.py [--section bg peers large scaling] [--threads 1 2] [--repeats 5]``

Whatever is compared is measured in turns, so that other work on the machine meets both sides; a figure is the median
of the rounds, with the smallest and largest behind it. Needs the ``bench`` extra and a C compiler; a library that is
not installed is skipped with a line.

- bg: two binary latents, four five-valued leaves, n = 480; one structure, then all 136, against ``bare_vbem.c``.
- peers: seconds per iteration on the same network against the EM of pgmpy and pyAgrum.
- large: 1 000 000 rows x 20 four-valued columns with a 10-state class: time, bandwidth, peak memory.
- scaling: cost of an iteration against rows, hidden states, nodes and treewidth.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bare
import numpy as np
import ours
from peers import PEERS
from timing import interleave, number, show, spread, timed

from skvbem.datasets import make_bipartite, make_latent_class

LATENTS = {"h0": 2, "h1": 2}
N_STARTS = 10
RTOL = 1e-8
MAX_ITER = 10_000
RATIO = "ratio, median (min to max)"


def bg_codes(n_samples: int = 480) -> np.ndarray:
    codes = make_bipartite(n_samples, random_state=0).data
    if any(len(np.unique(column)) < bare.CARD for column in codes.T):
        raise ValueError("a column does not show all five values, so the two sides would fit different tables")
    return codes


def over_structures(work, threads: int) -> list:
    """``work`` of each of the 136 structures, on so many threads."""
    if threads == 1:
        return [work(parents) for parents in bare.structures()]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, bare.structures()))


def bg(options):
    codes = bg_codes()
    data, start = bare.Bare(codes), bare.draw_starts(N_STARTS, np.random.default_rng(0))
    reference = {parents: data.fit(parents, start) for parents in bare.structures()}
    tolerance = {parents: RTOL * abs(fits.bounds.max()) for parents, fits in reference.items()}
    differs = bare.validate(codes, every=20)
    print(f"\nbg: {len(codes)} rows, {len(data.rows)} distinct; bare loop against its literal: relative {differs:.0e}")

    def ours_fit(parents, n_jobs=1, **settings):
        settings = ours.PLAIN | {"n_init": N_STARTS, "tol": tolerance[parents], "max_iter": MAX_ITER} | settings
        return ours.fit(codes, bare.edges(parents), LATENTS, n_jobs=n_jobs, **settings)

    def bare_fit(parents):
        return data.fit(parents, bare.draw_starts(N_STARTS, np.random.default_rng(0)), rtol=RTOL, max_iter=MAX_ITER)

    rows = []
    for threads in options.threads:
        measured = interleave(
            {
                "bare": lambda: timed(bare_fit, bare.TRUTH)[0],
                "plain": lambda threads=threads: timed(ours_fit, bare.TRUTH, threads)[0],
                "accelerated": lambda threads=threads: timed(ours_fit, bare.TRUTH, threads, acceleration=True)[0],
            },
            5 * options.repeats,
        )
        for name in ("plain", "accelerated"):
            ratio = measured[name] / measured["bare"]
            rows.append((name, threads, spread(measured[name], 1e3), spread(measured["bare"], 1e3), spread(ratio)))
    show(
        f"the network x0 <- h0, x1 x2 <- h0 h1, x3 <- h1: {N_STARTS} starts to relative {RTOL:.0e} (want <= 25 ms; "
        "the bare loop on one thread)",
        ("ours", "threads", "ours, ms", "bare, ms", RATIO),
        rows,
    )

    rows, anatomy = [], []
    for threads in options.threads:
        kept = {}

        def ours_all(name, threads=threads, kept=kept, **settings):
            seconds, kept[name] = timed(over_structures, lambda parents: ours_fit(parents, **settings), threads)
            return seconds

        measured = interleave(
            {
                "bare": lambda threads=threads: timed(over_structures, bare_fit, threads)[0],
                "plain": lambda: ours_all("plain"),
                "accelerated": lambda: ours_all("accelerated", acceleration=True),
                # The same calls with next to no iterations: validation, encoding, starts, publishing.
                "fixed": lambda: ours_all("fixed", n_init=1, max_iter=1),
            },
            options.repeats,
        )
        for name, wanted in (("plain", "<= 2"), ("accelerated", "< 1")):
            ratio = measured[name] / measured["bare"]
            rows.append((name, threads, spread(measured[name]), spread(measured["bare"]), spread(ratio), wanted))
        if threads == 1:
            anatomy = bg_anatomy({name: np.median(values) for name, values in measured.items()}, kept, reference)
    show(
        f"136 structures, {N_STARTS} starts each to relative {RTOL:.0e}",
        ("ours", "threads", "ours, s", "bare, s", RATIO, "wanted"),
        rows,
    )
    show(
        "where one thread's time goes (136 structures; fixed = the same calls with one start and one step)",
        (
            "fit",
            "s",
            "of it fixed, s",
            "iterations",
            "us/iteration beyond fixed",
            "best bound vs bare: higher/same/lower",
        ),
        anatomy,
    )


def bg_anatomy(seconds, kept, reference):
    turns = sum(int(fits.n_iter.sum()) for fits in reference.values())
    rows = [("bare", number(seconds["bare"]), "-", turns, number(1e6 * seconds["bare"] / turns), "-")]
    for name in ("plain", "accelerated"):
        turns = sum(map(ours.n_iterations, kept[name]))
        gained = [ours_.lower_bound_ - fits.bounds.max() for ours_, fits in zip(kept[name], reference.values())]
        versus = (
            f"{sum(g > 0.01 for g in gained)}/{sum(abs(g) <= 0.01 for g in gained)}/{sum(g < -0.01 for g in gained)}"
        )
        cost = number(1e6 * (seconds[name] - seconds["fixed"]) / turns)
        rows.append((name, number(seconds[name]), number(seconds["fixed"]), turns, cost, versus))
    return rows


def peers(options):
    codes, structure = bg_codes(), bare.edges(bare.TRUTH)
    cards = {f"x{j}": bare.CARD for j in range(codes.shape[1])}
    rows, missing = [], set()
    for threads in options.threads:
        cases = {
            f"ours, {method}": lambda method=method, threads=threads: ours.seconds_per_iteration(
                codes, structure, LATENTS, method=method, n_jobs=threads
            )
            for method in ("ml", "vb")
        }
        for name, (_, peer) in PEERS.items():
            try:
                cases[name] = peer(codes, structure, LATENTS, cards, threads)
            except ImportError:
                missing.add(name)
        measured = interleave(cases, options.repeats)
        for name, (distribution, _) in PEERS.items():
            if name in measured:
                version = importlib.metadata.version(distribution)
                for method in ("ours, ml", "ours, vb"):
                    ratio = measured[name] / measured[method]
                    rows.append(
                        (
                            f"{name} {version}",
                            method,
                            threads,
                            spread(measured[name], 1e3),
                            spread(measured[method], 1e6),
                            spread(ratio),
                        )
                    )
    for name in sorted(missing):
        print(f"\npeers: {name} is not installed, skipped")
    show(
        f"one E+M iteration, n = {len(codes)} (want ratios >= 1000)",
        ("peer", "ours", "threads", "peer, ms", "ours, us", RATIO),
        rows,
    )


def latent_class(n_samples: int, n_columns: int, n_states: int) -> np.ndarray:
    """Codes of four-valued columns."""
    return make_latent_class(n_samples, n_columns, n_states, cardinality=4, random_state=0).data.astype(np.uint8)


def large(options):
    n_samples, n_columns, n_states = options.large_rows, 20, 10
    codes = latent_class(n_samples, n_columns, n_states)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.npy"
        np.save(path, codes)
        for threads in options.threads:
            command = [sys.executable, str(Path(__file__).with_name("large.py")), str(path)]
            command += [str(n_states), str(threads), str(options.repeats)]
            measured = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            iteration, copy, growth = (np.array(measured[k]) for k in ("iteration", "copy", "growth"))
            rows.append(
                (
                    threads,
                    spread(iteration),
                    spread(1e-9 * codes.nbytes / iteration),
                    spread(1e-9 * codes.nbytes / copy),
                    spread(iteration / copy),
                    number(1e9 * np.median(iteration) / (codes.size * n_states)),
                    "-" if measured["growth"] is None else number(growth / codes.nbytes),
                )
            )
    show(
        f"{n_samples} rows x {n_columns} four-valued columns ({number(codes.nbytes / 1e6)} MB encoded), one class of "
        f"{n_states} states; peak = growth of resident memory during fit over the encoded bytes, the caller's array "
        "not counted (want <= 2)",
        ("threads", "s/iteration", "GB/s", "copy, GB/s", "iteration/copy", "ns per cell and state", "peak"),
        rows,
    )


def naive_bayes(n_columns: int):
    return [("h0", f"x{j}") for j in range(n_columns)]


def banded_chain(n_hidden: int, width: int):
    """Binary h0 ... with an observed leaf each; h_i has the ``width`` latents before it as parents: treewidth
    ``width``."""
    leaves = [(f"h{i}", f"x{i}") for i in range(n_hidden)]
    return leaves + [(f"h{k}", f"h{i}") for i in range(n_hidden) for k in range(max(0, i - width), i)]


def scaling(options):
    def grow(title, unit, cases):
        """``cases``: size -> (codes, structure, latents, how many units of work an iteration is)."""
        rows = []
        for size, (codes, structure, latents, work) in cases.items():
            distinct = len(np.unique(codes, axis=0))
            costs = {
                threads: (
                    lambda threads=threads, codes=codes, structure=structure, latents=latents: (
                        ours.seconds_per_iteration(codes, structure, latents, short=3, long=23, fits=1, n_jobs=threads)
                    )
                )
                for threads in options.threads
            }
            measured = interleave(costs, options.repeats)
            one = next(iter(measured.values()))
            per_unit = number(1e9 * np.median(one) / (distinct * work))
            rows.append((size, distinct, *(spread(1e6 * values) for values in measured.values()), per_unit))
        headings = [f"us/iteration, {threads} thread{'s' * (threads > 1)}" for threads in options.threads]
        show(title, (unit, "distinct rows", *headings, "ns per distinct row and unit"), rows)

    def classes(n_samples, n_columns, n_states):
        codes = latent_class(n_samples, n_columns, 4)
        return codes, naive_bayes(n_columns), {"h0": n_states}, n_columns * n_states

    grow(
        "against n: one class of 4 states, 12 four-valued columns; unit = column and state",
        "n",
        {n: classes(n, 12, 4) for n in (100, 1000, 10_000, 100_000)},
    )
    grow(
        "against hidden states: 10 000 rows x 12 four-valued columns; unit = column and state",
        "states",
        {k: classes(10_000, 12, k) for k in (2, 4, 8, 16, 32, 64)},
    )
    grow(
        "against nodes: 10 000 rows, one class of 4 states; unit = column and state",
        "columns",
        {v: classes(10_000, v, 4) for v in (8, 16, 32, 64)},
    )

    def band(width, n_hidden=10, n_samples=2000):
        codes = latent_class(n_samples, n_hidden, 4)
        return codes, banded_chain(n_hidden, width), {f"h{i}": 2 for i in range(n_hidden)}, n_hidden * 2 ** (width + 1)

    grow(
        "against treewidth: 10 binary latents, each child of the w before it, a four-valued leaf each, 2000 rows; "
        "unit = latent and clique state",
        "treewidth",
        {w: band(w) for w in (1, 2, 3, 4, 6)},
    )


SECTIONS = {"bg": bg, "peers": peers, "large": large, "scaling": scaling}


def one_blas_thread():
    """A context in which matrix products use one thread, so that ``threads`` means ours."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        print("threadpoolctl is not installed: matrix libraries use as many threads as they like")
        return contextlib.nullcontext()
    return threadpool_limits(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--section", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5, help="rounds of turns")
    parser.add_argument("--large-rows", type=int, default=1_000_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # fits that are cut short say so
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(
        f"Python {platform.python_version()}, skvbem {importlib.metadata.version('skvbem')}, numpy {np.__version__}; "
        f"{os.cpu_count()} cores{load}"
    )
    with one_blas_thread():
        for name in options.section:
            SECTIONS[name](options)


if __name__ == "__main__":
    main()
