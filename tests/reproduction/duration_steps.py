"""Times and memory of steps of chains with durations, beside the Markov chain and hmmlearn.

One sequence of 100 000 counts, five states, one thread; all take turns. hmmlearn is a step of its `PoissonHMM`, with
its faster code. Peaks are those of a step in a process of its own, over what it held before: the data, and the program.

    PYTHONPATH=tests:tests/benchmarks python -P -m reproduction.duration_steps measure [--repeats N]
    PYTHONPATH=tests python -P -m reproduction.duration_steps table

The record, duration_steps_results.jsonl next to this file, has a line for each: CPU milliseconds of each round, and the
peak in MB, none of hmmlearn.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from reproduction.records import add_to_record, read_record

from skvbem.durations import Hazards, Stages
from skvbem.emissions import Poisson
from skvbem.estimators.hmm.durations import semi_markov_rows
from skvbem.models.hmm.model import HMM, HMMAscent
from skvbem.models.hmm.semi_markov import SemiMarkovHMM
from skvbem.models.hmm.transitions import Transitions
from skvbem.vbem import posteriors

RECORD = Path(__file__).with_name("duration_steps_results.jsonl")
N_ROWS, K = 100_000, 5
CHAIN, PEER = "Markov chain", "hmmlearn's PoissonHMM"
FAMILIES = {CHAIN: None, "Hazards(8)": Hazards(8), "Hazards(50)": Hazards(50), "Stages(8)": Stages(8)}


def counts(rng: np.random.Generator) -> np.ndarray:
    """Counts of states that last for a while: the time of a step does not depend on them."""
    states = np.repeat(rng.integers(0, K, N_ROWS // 10), 10)
    return rng.poisson(3.0 * (1 + states))[:, None].astype(float)


def step_of(durations: Any, X: np.ndarray) -> Callable[[], float]:
    """CPU seconds of a step of a chain."""
    rng = np.random.default_rng(0)
    emission, transitions = Poisson().for_data(X), Transitions(np.ones((K, K)))
    first, prior = Transitions(np.ones((1, K))), emission.default_prior(K)
    if durations is None:
        model = HMM(emission, first, transitions, prior)
    else:
        model = SemiMarkovHMM(emission, first, semi_markov_rows(durations, transitions), prior)
    data = model.compile(emission.prepare(X), [len(X)])
    start = model.statistics_of(rng.dirichlet(np.full(K, 0.5), size=len(X)), data)[:, None]
    ascent = HMMAscent(model, data, posteriors.VB, 1)

    def step() -> float:
        statistics = start.copy()
        began = time.process_time()
        ascent.advance(statistics, 1)
        return time.process_time() - began

    return step


def step_of_peer(X: np.ndarray) -> Callable[[], float]:
    """CPU seconds of a step of hmmlearn."""
    from hmmlearn import hmm

    logging.disable(logging.WARNING)
    X = X.astype(int)
    peer = hmm.PoissonHMM(K, n_iter=1, tol=-1e9, implementation="scaling", random_state=0).fit(X)

    def step() -> float:
        began = time.process_time()
        statistics, _ = peer._do_estep(X, [len(X)])
        peer._do_mstep(statistics)
        return time.process_time() - began

    return step


def peak(name: str) -> float:
    """MB by which resident memory grows in a step; called in a process of its own."""
    from timing import peak_growth

    grown = peak_growth(step_of(FAMILIES[name], counts(np.random.default_rng(1))))
    return np.nan if grown is None else grown / 1e6


def peak_apart(name: str) -> float:
    """The peak in a process of its own."""
    command = [sys.executable, "-P", "-m", "reproduction.duration_steps", "peak", "--name", name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measured(repeats: int) -> Iterator[dict]:
    """Lines of all chains."""
    from threadpoolctl import threadpool_limits
    from timing import interleave

    X = counts(np.random.default_rng(1))
    cases = {name: step_of(durations, X) for name, durations in FAMILIES.items()} | {PEER: step_of_peer(X)}
    for step in cases.values():
        step()
    with threadpool_limits(1):
        times = interleave(cases, repeats)
    for name, seconds in times.items():
        line = {"chain": name, "milliseconds": (1e3 * seconds).round(2).tolist()}
        yield line | {"peak": None if name == PEER else round(peak_apart(name), 1)}


def ratios(lines: list[dict]) -> dict[str, float]:
    """Times of steps over that of the Markov chain, the median of all rounds."""
    base = np.array(next(line["milliseconds"] for line in lines if line["chain"] == CHAIN))
    return {line["chain"]: float(np.median(np.array(line["milliseconds"]) / base)) for line in lines}


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: chain, milliseconds, steps of the Markov chain, and MB."""
    of = ratios(lines)
    for line in lines:
        megabytes = "" if line["peak"] is None else f"{line['peak']:.0f}"
        yield line["chain"], f"{np.median(line['milliseconds']):.0f}", f"{of[line['chain']]:.1f}", megabytes


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table", "peak"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--name", choices=list(FAMILIES))
    options = parser.parse_args()
    if options.what == "peak":
        print(peak(options.name))
        return
    if options.what == "measure":
        RECORD.unlink(missing_ok=True)
        for line in measured(options.repeats):
            add_to_record(RECORD, line)
    for row in table_rows(read_record(RECORD)):
        print(", ".join(row))


if __name__ == "__main__":
    main()
