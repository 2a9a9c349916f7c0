"""The bare compiled loops that benchmarks time the library against, and a literal NumPy twin of that of networks.

Two binary latents, four five-valued leaves, edges from latents to leaves only: 136 structures up to the names of the
latents. A structure is here four bit masks, one per leaf (1: h0 is a parent, 2: h1 is). ``python bare.py`` compiles
``bare_vbem.c``, checks it against the literal and prints the seconds of 136 x 10 fits.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from skvbem.datasets import make_bipartite

CARD = 5
TABLES = np.dtype([("latent", np.float64, (2, 2)), ("leaf", np.float64, (4, 4, CARD))])
TRUTH = (1, 3, 3, 2)
FORMS = ("vb", "map", "ml")


class Fits(NamedTuple):
    """What the fits of one structure came to, one entry per start."""

    bounds: np.ndarray
    n_iter: np.ndarray


def structures() -> list[tuple[int, ...]]:
    """The 136 structures, as parent masks; of two that differ by swapping h0 and h1 the lexicographically smaller."""
    swapped = (0, 2, 1, 3)
    return [m for m in itertools.product(range(4), repeat=4) if m <= tuple(swapped[k] for k in m)]


def edges(parents) -> list[tuple[str, str]]:
    """The structure as a list of edges from h0, h1 to x0 ... x3."""
    return [(f"h{h}", f"x{j}") for j, mask in enumerate(parents) for h in (0, 1) if mask >> h & 1]


def config(mask: int) -> np.ndarray:
    """The row of a leaf's table for each joint latent state 2 h0 + h1."""
    return np.array([(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 2, 3)][mask])


def draw_starts(n_starts: int, rng) -> np.ndarray:
    """Tables drawn from uniform Dirichlet distributions."""
    start = np.empty(n_starts, dtype=TABLES)
    for name in TABLES.names:
        drawn = rng.standard_exponential(start[name].shape)
        start[name] = drawn / drawn.sum(axis=-1, keepdims=True)
    return start


@functools.cache
def library(name: str = "bare_vbem", *options: str) -> ctypes.CDLL:
    """A C source beside this file, compiled now by ``$CC`` or ``cc`` and loaded."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise FileNotFoundError(f"The bare loop needs a C compiler. '{compiler}' is not on PATH: set CC.")
    source = Path(__file__).with_name(f"{name}.c")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target = Path(folder) / f"{name}.so"
        to = ["-shared", "-fPIC", "-o", str(target), str(source), "-lm"]
        subprocess.run([compiler, "-O3", "-std=c11", *options, *to], check=True)
        loaded = ctypes.CDLL(str(target))
    getattr(loaded, name).restype = {"bare_hmm": ctypes.c_double, "bare_lds": ctypes.c_int64}.get(name)
    return loaded


def _pointer(array: np.ndarray):
    return ctypes.c_void_p(array.ctypes.data)


class BareChains:
    """Sequences of symbols; ``expect`` is one call into the compiled loop of ``bare_hmm.c``, for this processor."""

    def __init__(self, symbols: np.ndarray, lengths, n_states: int, n_symbols: int):
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.symbols = np.ascontiguousarray(symbols, dtype=np.int32)
        self.n_states, self.n_symbols = n_states, n_symbols
        self._library = library("bare_hmm", "-march=native")
        longest = int(np.max(lengths))
        shapes = (longest, n_states), (longest,), (n_states * (n_states + 2),)
        self._forward, self._scale, self._scratch = (np.empty(shape) for shape in shapes)

    def expect(self, initial, transition, emission):
        """ln Z, and expected counts, under tables that need not be normalized; emission (n_symbols, n_states)."""
        tables = [np.ascontiguousarray(table, dtype=float) for table in (initial, transition, emission)]
        counts = [np.zeros(table.shape) for table in tables]
        log_z = self._library.bare_hmm(
            ctypes.c_int64(len(self.starts) - 1),
            *map(_pointer, (self.starts, self.symbols)),
            ctypes.c_int64(self.n_states),
            *map(_pointer, (*tables, self._forward, self._scale, *counts, self._scratch)),
        )
        return log_z, *counts


class Bare:
    """Rows made distinct and sorted once; ``fit`` is one call into the compiled loop."""

    def __init__(self, codes: np.ndarray):
        self.rows, counts = np.unique(codes, axis=0, return_counts=True)
        self.weight = counts.astype(np.float64)
        self._first = (CARD * self.rows[:, 0] + self.rows[:, 1]).astype(np.int32)
        self._second = (CARD * self.rows[:, 2] + self.rows[:, 3]).astype(np.int32)
        self._library = library()

    def fit(self, parents, start: np.ndarray, *, form="vb", rtol: float = 1e-8, max_iter: int = 10_000) -> Fits:
        """Fit one structure from every start; a start stops when a step gains less than ``rtol`` |F|."""
        masks = np.array(parents, dtype=np.int32)
        fits = Fits(np.empty(len(start)), np.empty(len(start), dtype=np.int32))
        self._library.bare_vbem(
            ctypes.c_int32(len(self.rows)),
            _pointer(self._first),
            _pointer(self._second),
            _pointer(self.weight),
            _pointer(masks),
            ctypes.c_int32(FORMS.index(form)),
            ctypes.c_int32(len(start)),
            _pointer(start),
            ctypes.c_double(rtol),
            ctypes.c_int32(max_iter),
            _pointer(fits.bounds),
            _pointer(fits.n_iter),
        )
        return fits


def literal(rows, weight, parents, start, n_iter: int, form="vb") -> float:
    """The bound after ``n_iter`` steps, by the definitions: NumPy, one start, no thought of speed.

    Of the forms "map" and "ml" the log posterior in natural parameters, and the log likelihood.
    """
    used = [h for h in (0, 1) if any(mask >> h & 1 for mask in parents)]
    states = [s for s in range(4) if all(h in used or s >> (1 - h) & 1 == 0 for h in (0, 1))]
    bits = {h: [s >> (1 - h) & 1 for s in states] for h in used}
    configs = [config(mask)[states] for mask in parents]
    tables = [start["latent"][h] for h in used]
    tables += [start["leaf"][j][: 1 + c.max()] for j, c in enumerate(configs)]
    bound = penalty = 0.0
    for step in range(n_iter + 1):
        log_joint = np.zeros((len(rows), len(states)))
        for table, h in zip(tables, used):
            log_joint += np.log(table)[bits[h]]
        for j, c in enumerate(configs):
            log_joint += np.log(tables[len(used) + j])[c, rows[:, [j]]]
        log_z = np.log(np.exp(log_joint).sum(axis=1))
        bound = weight @ log_z - penalty
        if step == n_iter:
            break
        expected = weight[:, None] * np.exp(log_joint - log_z[:, None])
        counts = [np.zeros(table.shape) for table in tables]
        for count, h in zip(counts, used):
            np.add.at(count, bits[h], expected.sum(axis=0))
        for j, c in enumerate(configs):
            np.add.at(counts[len(used) + j], (np.broadcast_to(c, expected.shape), rows[:, [j]]), expected)
        penalty, tables = 0.0, []
        for count in counts:
            if form != "vb":
                mode = count + (form == "map")
                tables.append(mode / mode.sum(axis=-1, keepdims=True))
                penalty -= np.log(tables[-1]).sum() if form == "map" else 0.0
                continue
            a = 1.0 + count
            total = a.sum(axis=-1)
            mean_log = digamma(a) - digamma(total)[..., None]
            penalty += np.sum(gammaln(total) - gammaln(a.shape[-1])) - gammaln(a).sum() + np.sum(count * mean_log)
            tables.append(np.exp(mean_log))
    return float(bound)


def validate(codes: np.ndarray, seed=0, *, every: int = 5) -> float:
    """The largest relative difference between loop and literal, over structures and a few numbers of steps."""
    bare, worst = Bare(codes), 0.0
    start = draw_starts(2, np.random.default_rng(seed))
    for parents in structures()[::every]:
        for form, n_iter in itertools.product(FORMS, (1, 2, 30)):
            fits = bare.fit(parents, start, form=form, rtol=-1.0, max_iter=n_iter)
            for bound, one in zip(fits.bounds, start):
                twin = literal(bare.rows, bare.weight, parents, one, n_iter, form)
                worst = max(worst, abs(bound - twin) / abs(twin))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-samples", type=int, default=480)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    differs = validate(make_bipartite(options.n_samples, random_state=0).data)
    print(f"load {os.getloadavg()[0]:.1f}; loop against literal: relative {differs:.1e}")
    for seed in options.seeds:
        bare = Bare(make_bipartite(options.n_samples, random_state=seed).data)
        seconds = []
        for _ in range(options.repeats):
            rng = np.random.default_rng(seed)
            began = time.perf_counter()
            fits = [bare.fit(parents, draw_starts(10, rng)) for parents in structures()]
            seconds.append(time.perf_counter() - began)
        turns = sum(int(fit.n_iter.sum()) for fit in fits)
        best = max(zip((fit.bounds.max() for fit in fits), structures()))
        print(
            f"seed {seed}: {len(bare.rows)} distinct rows, {turns} iterations, {min(seconds):.2f} s, "
            f"{1e6 * min(seconds) / turns:.2f} us each; best {best[0]:.3f} at {best[1]}"
        )


if __name__ == "__main__":
    main()
