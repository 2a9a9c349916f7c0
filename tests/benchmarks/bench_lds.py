"""Speed of linear dynamical systems: steps against a bare compiled loop, dynamax and statsmodels, in turns.

    python bench_lds.py [steps] [missing] [panel] [fits] [memory] [--peers PYTHON]

- steps: one complete sequence, 10 000 x 10, five states: E steps, the basis of states, full steps.
- missing: the same with 10 % of the cells missing, against the loop with a matrix of its own for each step.
- panel: 200 sequences of 100 steps.
- fits: default fits of 1 000 x 10, five states.
- memory: 1 000 000 steps, twenty states, complete and with 10 % of the cells missing: seconds and peak beside the data.

Seconds are those of the processor, one thread, the least of all rounds; ratios are between those. Peers are timed by
``peers_lds.py`` in a Python that has them, which takes its turn in each round of the first three parts.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
from pathlib import Path

import numpy as np
from bare import _pointer, library
from threadpoolctl import threadpool_limits
from timing import interleave, number, peak_growth, show, timed_on_processor

from skvbem import VBLinearDynamicalSystem
from skvbem.models.linear_dynamical_system.model import LDSAscent, LinearDynamicalSystem
from skvbem.models.linear_dynamical_system.state_map import StateBasis
from skvbem.vbem import posteriors


def table(n, p, k, share_missing=0.0, n_sequences=1, seed=0):
    """Columns of a system that nearly keeps what it has, standardized."""
    rng = np.random.default_rng(seed)
    transition = rng.normal(size=(k, k))
    transition *= 0.98 / np.abs(np.linalg.eigvals(transition)).max()
    loadings, rows = rng.normal(size=(p, k)), []
    for _ in range(n_sequences):
        noise, x = rng.normal(size=(n, k)), np.empty((n, k))
        x[0] = noise[0]
        for t in range(1, n):
            x[t] = transition @ x[t - 1] + noise[t]
        rows.append(x @ loadings.T + 0.5 * rng.normal(size=(n, p)))
    y = np.concatenate(rows)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    y[rng.random(y.shape) < share_missing] = np.nan
    return y


class Ours:
    """A model, its data, and natural parameters a few steps from a start."""

    def __init__(self, y, k, lengths, n_steps=3):
        p, gaps = y.shape[1], bool(np.isnan(y).any())
        group = np.arange(p) if gaps else None
        self.model = LinearDynamicalSystem.from_precisions(
            np.full(k, float(k)), np.r_[np.ones(k), 0.01], shape=np.ones(p), rate=np.ones(p), n_states=k, group=group
        )
        self.data = self.model.compile(y, lengths, output_inputs=np.ones((len(y), 1)))
        self.ascent = LDSAscent(self.model, self.data, posteriors.VB)
        start = np.random.default_rng(1).normal(size=(len(self.data), k))
        self.statistics = self.model.statistics_of_start(self.data, start, 1.0)[:, None]
        self.ascent.advance(self.statistics, n_steps)
        self.natural = posteriors.VB.of(self.model.prior, self.statistics)[0]

    def e_step(self):
        return timed_on_processor(self.model.expect, self.natural, self.data)[0]

    def step(self):
        return timed_on_processor(self.ascent.advance, self.statistics.copy(), 1)[0]

    def basis(self):
        expectation = self.model.expect(self.natural, self.data)
        statistics, moments = expectation.statistics[:, 0], expectation.expansion.of_lane(0)

        def turned():
            StateBasis(posteriors.VB, self.model.prior, self.model.first, statistics, moments).best()

        return timed_on_processor(turned)[0]


class Bare:
    """The compiled loop of ``bare_lds.c`` on the first sequence of the same problem, at the same parameters."""

    def __init__(self, ours: Ours):
        data, potentials = ours.data, ours.model.potentials(ours.natural[:, 0])
        k, (n, p) = potentials.n_states, data.measured.shape
        of_columns = potentials.of_columns
        mask = data.mask
        seen = np.ones((1, p)) if mask is None else mask
        whole = (seen @ of_columns.reshape(p, -1)).reshape(-1, k + 1, k + 1)
        parts = (
            data.measured, mask, whole[:, :k, :k], potentials.link, potentials.squares[:k, :k],
            potentials.output[:, :k], potentials.output[:, k], whole[:, :k, k], potentials.precision,
        )  # fmt: skip
        self._given = [None if part is None else np.ascontiguousarray(part) for part in parts]
        d = k + 1
        self.sizes = n, p, k
        self.sums = [np.zeros(size) for size in (k * k, k * k, k * k, p * d * d, p * d, p + 1, 1)]
        self.x, self._scratch = np.empty((n, k)), np.zeros(2 * n * k * k + n * k + 8 * k * k)
        self._loop = library("bare_lds", "-march=native").bare_lds

    def run(self):
        for each in self.sums:
            each[:] = 0.0
        given = [None if part is None else _pointer(part) for part in self._given]
        self._loop(*map(ctypes.c_int64, self.sizes), *given, *map(_pointer, (self.x, *self.sums, self._scratch)))

    def __call__(self):
        return timed_on_processor(self.run)[0]


def checked(ours: Ours, bare: Bare) -> float:
    """How far the sums of the loop are from ours, as a share of the largest."""
    bare.run()
    k = bare.sizes[2]
    statistics = ours.model.expect(ours.natural, ours.data).statistics[:, 0]
    of_dynamics, of_emission = ours.model.prior.split(statistics)
    packed, total, *_ = ours.model.dynamics.split(of_dynamics)
    _, sums, *_ = ours.model.emission.split(of_emission)
    one = np.concatenate([packed.ravel(), total.T.ravel(), sums.ravel()])
    w, s, c = bare.sums[0].reshape(k, k), bare.sums[1], bare.sums[4]
    other = np.concatenate([w[np.triu_indices(k)], s, c])
    return float(np.abs(one - other).max() / np.abs(other).max())


def peer(options, part, seed=0):
    """Seconds of the peers, by name, in a Python of their own; nothing without one."""
    if options.peers is None:
        return {}
    script = Path(__file__).with_name("peers_lds.py")
    ran = subprocess.run([options.peers, str(script), part], check=True, capture_output=True, text=True)
    return json.loads(ran.stdout.splitlines()[-1])


def compared(title, cases, wanted, options, part):
    """Least seconds of each case, and how many times as long as ours a peer takes, or we as long as the loop."""
    measured = interleave(cases, options.repeats)
    least = {name: seconds.min() for name, seconds in measured.items()}
    rows = [(name, number(1e3 * seconds), "", wanted.get(name, "")) for name, seconds in least.items()]
    if "bare loop" in least:
        times = least["E step"] / least["bare loop"]
        rows.append(("E step / bare loop", "", f"{times:.2f} x", wanted.get("loop", "")))
    for name, seconds in peer(options, part).items():
        rows.append((name, number(1e3 * seconds), f"{seconds / least['full step']:.1f} x", wanted.get(name, "")))
    show(title, ("what", "ms", "ratio", "want"), rows)


def steps(options):
    ours = Ours(table(10_000, 10, 5), 5, [10_000])
    bare = Bare(ours)
    cases = {"bare loop": bare, "E step": ours.e_step, "basis of states": ours.basis, "full step": ours.step}
    wanted = {
        "E step": "<= 1.5", "basis of states": "<= 0.5", "loop": "<= 2 x", "dynamax": ">= 50 x",
        "statsmodels": ">= 150 x",
    }  # fmt: skip
    compared(f"10 000 x 10, k = 5; loop differs by {checked(ours, bare):.1e}", cases, wanted, options, "steps")


def missing(options):
    ours = Ours(table(10_000, 10, 5, 0.1), 5, [10_000])
    bare = Bare(ours)
    cases = {"bare loop": bare, "E step": ours.e_step, "basis of states": ours.basis, "full step": ours.step}
    title = f"10 000 x 10, k = 5, 10 % missing; loop differs by {checked(ours, bare):.1e}"
    compared(title, cases, {"loop": "<= 2 x"}, options, "missing")


def panel(options):
    ours = Ours(table(100, 10, 5, n_sequences=200), 5, [100] * 200)
    cases = {"E step": ours.e_step, "full step": ours.step}
    compared("200 sequences of 100 x 10, k = 5", cases, {"E step": "<= 2", "dynamax": ">= 2 x"}, options, "panel")


def fits(options):
    y = table(1_000, 10, 5)
    model = VBLinearDynamicalSystem(5, random_state=0)
    seconds = interleave({"fit": lambda: timed_on_processor(model.fit, y)[0]}, options.repeats)["fit"]
    show(
        "default fit, 1 000 x 10, k = 5",
        ("s", "want", "bound"),
        [(number(seconds.min()), "<= 0.5", model.lower_bound_)],
    )


def memory(options):
    rows = []
    for share in (0.0, 0.1):
        y = table(1_000_000, 10, 20, share)
        ours = Ours(y, 20, [len(y)], n_steps=1)
        ours.model.expect(ours.natural, ours.data)
        growth = peak_growth(ours.model.expect, ours.natural, ours.data)
        rows.append((f"{share:.0%}", number(ours.e_step()), y.nbytes / 1e6, number(growth / 1e6)))
    show("E step, 1 000 000 x 10, k = 20", ("missing", "s", "X, MB", "peak beside X, MB"), rows)


PARTS = {f.__name__: f for f in (steps, missing, panel, fits, memory)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--peers", help="a Python with dynamax and statsmodels")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1):
        for part in options.parts:
            PARTS[part](options)


if __name__ == "__main__":
    main()
