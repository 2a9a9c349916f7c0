"""Speed of hidden Markov models: steps against hmmlearn's variational models, in turns, and what they cost alone.

    python bench_hmm.py [symbols] [measurements] [cost] [loop] [memory] [threads]

- symbols: 10 symbols, K = 5 and 20, one sequence of 100 000 steps and 1 000 of 100; hmmlearn's scaling and log codes.
- measurements: two columns, full covariances, the same sizes, hmmlearn's scaling code (its faster one).
- cost: nanoseconds a step of a sequence, over its length and the number of states.
- loop: E steps against the bare compiled loop of ``bare_hmm.c``, which knows nothing but symbols and scaled numbers.
- memory: peak of a step beside the data at 1 000 000 steps, K = 20, and hmmlearn's.
- threads: one and two, on many sequences.

A step is a full iteration of variational Bayes with its bound. Seconds are those of the processor, one thread, the
least of all rounds, since others may use the machine; ratios are between those.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import time
import warnings
from functools import partial

import numpy as np
from bare import BareChains
from threadpoolctl import threadpool_limits
from timing import interleave, number, peak_growth, show

from skvbem.emissions import Gaussian
from skvbem.emissions.categorical import CategoricalEmission
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.transitions import Transitions
from skvbem.vbem import posteriors

try:
    from hmmlearn import vhmm
except ImportError:
    vhmm = None

SIZES = ([100_000], [100] * 1_000)


def rows_of(kind, n, rng):
    """Symbols or measurements that mean nothing: the time of a step does not depend on them."""
    if kind == "symbols":
        codes = rng.integers(0, 10, size=(n, 1))
        return CategoricalEmission((10,)), codes
    values = rng.normal(size=(n, 2)) + 3 * rng.integers(0, 3, size=(n, 1))
    return Gaussian("full").for_data(values), values


def ours(kind, lengths, n_states, n_threads=1, steps=1):
    """An ascent, and statistics that it has gone a step from."""
    rng = np.random.default_rng(0)
    emission, values = rows_of(kind, sum(lengths), rng)
    chain = Transitions(np.ones((1, n_states))), Transitions(np.ones((n_states, n_states)))
    model = HMM(emission, *chain, emission.default_prior(n_states))
    data = model.compile(emission.prepare(values), lengths)
    start = model.statistics_of(rng.dirichlet(np.full(n_states, 0.5), size=len(values)), data)[:, None]
    ascent = HMMAscent(model, data, posteriors.VB, n_threads)
    if steps:
        ascent.advance(start, steps)
    return ascent, start


def our_step(ascent, start, clock=time.process_time):
    statistics = start.copy()
    began = clock()
    ascent.advance(statistics, 1)
    return clock() - began


def theirs(kind, lengths, n_states, implementation):
    """A model of hmmlearn that has gone a few steps, and its rows."""
    make = vhmm.VariationalCategoricalHMM if kind == "symbols" else vhmm.VariationalGaussianHMM
    options = {} if kind == "symbols" else {"covariance_type": "full"}
    model = make(n_states, n_iter=2, tol=-1e9, implementation=implementation, random_state=0, **options)
    _, values = rows_of(kind, sum(lengths), np.random.default_rng(0))
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(values, lengths)
    return model, values, lengths


def their_step(model, values, lengths):
    began = time.process_time()
    model._estep_begin()
    statistics, log_z = model._do_estep(values, lengths)
    model._compute_lower_bound(log_z)
    model._do_mstep(statistics)
    return time.process_time() - began


def against_hmmlearn(kind, options, codes):
    rows = []
    for n_states in (5, 20):
        for lengths in SIZES:
            cases = {"ours": partial(our_step, *ours(kind, lengths, n_states))}
            for code in codes:
                cases[code] = partial(their_step, *theirs(kind, lengths, n_states, code))
            least = {name: found.min() for name, found in interleave(cases, options.repeats).items()}
            ratios = [f"{least[code] / least['ours']:.1f} x" for code in codes]
            what = f"{len(lengths)} x {lengths[0]}, {n_states} states"
            rows.append((what, number(1e3 * least["ours"]), *(number(1e3 * least[code]) for code in codes), *ratios))
    header = ("sequences", "ours, ms a step", *(f"hmmlearn {c}, ms" for c in codes), *(f"{c} / ours" for c in codes))
    show(f"{kind}, one thread", header, rows)


def symbols(options):
    against_hmmlearn("symbols", options, ("scaling", "log"))


def measurements(options):
    against_hmmlearn("measurements", options, ("scaling",))


def cost(options):
    sizes = (100, 1_000, 10_000, 100_000, 1_000_000)
    rows = []
    for n_states in (2, 5, 10, 20, 50, 100):
        found = []
        for n in sizes:
            if n * n_states > 2e7:
                found.append("")
                continue
            ascent, start = ours("symbols", [n], n_states)
            repeats = max(options.repeats, int(1e5 // n))
            found.append(number(1e9 * min(our_step(ascent, start) for _ in range(repeats)) / n))
        rows.append((n_states, *found))
    show("ns for each step of one sequence, symbols, one thread", ("states", *(f"T = {n}" for n in sizes)), rows)


def loop(options):
    rows = []
    for n_states in (2, 5, 10, 20, 50):
        for lengths in SIZES:
            ascent, start = ours("symbols", lengths, n_states)
            model, data = ascent.model, ascent.data
            natural = (model.prior + start).expected_natural()
            first, pairs, of_emission = (np.exp(part[:, 0]) for part in model.prior.split(natural))
            tables = first, pairs.reshape(n_states, n_states), of_emission.reshape(n_states, 10).T
            _, symbols = rows_of("symbols", sum(lengths), np.random.default_rng(0))
            peer = BareChains(symbols[:, 0], lengths, n_states, 10)
            log_z, *counts = peer.expect(*tables)
            found = model.expect(natural, data)
            np.testing.assert_allclose(found.log_normalizer, log_z, rtol=1e-10)
            theirs = np.concatenate([counts[0], counts[1].ravel(), counts[2].T.ravel()])
            np.testing.assert_allclose(found.statistics[:, 0], theirs, rtol=1e-8)
            cases = {
                "ours": partial(cpu_of, model.expect, natural, data),
                "bare": partial(cpu_of, peer.expect, *tables),
            }
            least = {name: found.min() for name, found in interleave(cases, 2 * options.repeats).items()}
            what = f"{len(lengths)} x {lengths[0]}, {n_states} states"
            rows.append(
                (what, *(number(1e3 * least[name]) for name in cases), f"{least['ours'] / least['bare']:.2f} x")
            )
    show("E steps, symbols, one thread", ("sequences", "ours, ms", "bare loop, ms", "ours / bare"), rows)


def cpu_of(work, *arguments):
    """Seconds of the processor."""
    began = time.process_time()
    work(*arguments)
    return time.process_time() - began


def memory(options):
    n, n_states, rows = 1_000_000, 20, []
    ascent, start = ours("symbols", [n], n_states, steps=0)
    gc.collect()
    rows.append(("ours", peak_growth(our_step, ascent, start) / 1e6))
    del ascent, start
    gc.collect()
    if vhmm is not None:
        peer = theirs("symbols", [n], n_states, "scaling")
        gc.collect()
        rows.append(("hmmlearn scaling", peak_growth(their_step, *peer) / 1e6))
    show("peak of a step beside the data, 1 000 000 steps, 20 states", ("", "MB"), rows)


def threads(options):
    rows = []
    for n_states in (5, 20):
        cases = {
            name: partial(our_step, *ours("symbols", [100] * 5_000, n_states, n), time.perf_counter)
            for name, n in (("one", 1), ("two", 2))
        }
        least = {name: found.min() for name, found in interleave(cases, 3 * options.repeats).items()}
        rows.append((n_states, *(number(1e3 * least[name]) for name in cases), f"{least['one'] / least['two']:.2f} x"))
    show("5 000 sequences of 100, ms a step by the clock", ("states", "one thread", "two", "faster"), rows)


PARTS = {f.__name__: f for f in (symbols, measurements, cost, loop, memory, threads)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1):
        for part in options.parts:
            if vhmm is None and part in ("symbols", "measurements"):
                print("\nhmmlearn is not installed")
                continue
            PARTS[part](options)


if __name__ == "__main__":
    main()
