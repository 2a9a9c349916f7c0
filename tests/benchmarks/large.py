"""One latent class fit of a large array, in a process of its own so that its peak memory is its own.

``python large.py CODES.npy STATES THREADS ROUNDS`` prints one JSON object: seconds per iteration and seconds to copy
the same bytes, measured in turns, and the growth of resident memory during a fit, in bytes. Memory is read from
Linux's /proc and null elsewhere.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from ours import ENDLESS, fit
from timing import interleave, peak_growth, timed


def main(path: str, n_states: int, threads: int, rounds: int):
    warnings.simplefilter("ignore")  # fits that are cut short say so
    structure = [("h0", f"x{j}") for j in range(np.load(path, mmap_mode="r").shape[1])]
    settings = ENDLESS | {"n_jobs": threads}
    small = np.random.default_rng(0).integers(0, 4, (1000, len(structure)), dtype=np.uint8)
    fit(small, structure, {"h0": n_states}, **settings, max_iter=2)  # whatever is imported late is imported now

    codes = np.load(path)
    growth = peak_growth(fit, codes, structure, {"h0": n_states}, **settings, max_iter=2)

    copy = np.empty_like(codes)

    def iteration(short=2, long=6):
        runs = [timed(fit, codes, structure, {"h0": n_states}, **settings, max_iter=m)[0] for m in (short, long)]
        return (runs[1] - runs[0]) / (long - short)

    def copying(times=20):
        return timed(lambda: [np.copyto(copy, codes) for _ in range(times)])[0] / times

    measured = interleave({"iteration": iteration, "copy": copying}, rounds)
    print(json.dumps({name: list(values) for name, values in measured.items()} | {"growth": growth}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
