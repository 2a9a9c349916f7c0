"""Times of steps of emissions: in steps of the Gaussian of independent columns, beside hmmlearn and loops by SciPy.

All take turns on one thread: 100 000 rows of five columns, five components. A loop by SciPy is a plain EM step:
likelihoods of each component by `scipy.stats`, responsibilities, weighted means and squares. hmmlearn is a step of its
`GaussianHMM` with covariance_type="diag" on the same rows as one sequence, beside a step of a chain here.

    PYTHONPATH=tests:tests/benchmarks python -P -m reproduction.emission_steps measure [--repeats N]
    PYTHONPATH=tests python -P -m reproduction.emission_steps table

The record, emission_steps_results.jsonl next to this file, has a line for each emission: CPU milliseconds of each
round, of our steps and of those of others.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from reproduction.records import add_to_record, read_record
from scipy import special, stats

RECORD = Path(__file__).with_name("emission_steps_results.jsonl")
N_ROWS, K = 100_000, 5
BASE, CHAIN = "Gaussian('diag')", "chain of Gaussian('diag')"


def _between(X: np.ndarray) -> np.ndarray:
    """ln of normal probabilities between pairs of ends, the nearer tail at a time."""
    low, high = X[:, ::2] - 0.3, X[:, 1::2] - 0.3
    swap = low > 0
    a, b = np.where(swap, -high, low), np.where(swap, -low, high)
    return special.log_ndtr(b) + np.log1p(-np.exp(special.log_ndtr(a) - special.log_ndtr(b)))


#: Log likelihoods of cells in one component, by SciPy.
DENSITIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    BASE: lambda X: stats.norm.logpdf(X, 0.3, 1.1),
    "NegativeBinomial()": lambda X: stats.nbinom.logpmf(X, 1.3, 0.1),
    "NegativeBinomial(), 10 000 values": lambda X: stats.nbinom.logpmf(X, 1.3, 1e-4),
    "Gamma()": lambda X: stats.gamma.logpdf(X, 2.0, scale=3.0),
    "VonMises()": lambda X: stats.vonmises.logpdf(X, 2.0),
    "StudentT()": lambda X: stats.t.logpdf(X, 4.0),
    "Interval(), each its own": _between,
}


def em_step(X: np.ndarray, of_component: Callable[[np.ndarray], np.ndarray]) -> float:
    """CPU seconds of a plain EM step: its times do not depend on parameters."""
    began = time.process_time()
    logs = np.stack([of_component(X).sum(axis=1) + 0.1 * k for k in range(K)], axis=1)
    responsibilities = np.exp(logs - special.logsumexp(logs, axis=1, keepdims=True))
    _ = responsibilities.sum(axis=0), responsibilities.T @ X, responsibilities.T @ X**2
    return time.process_time() - began


def chains(X: np.ndarray, rng: np.random.Generator) -> tuple[Callable[[], float], Callable[[], float]]:
    """CPU seconds of a step of a chain here, and of hmmlearn's."""
    from bench_hmm import our_step
    from hmmlearn import hmm

    from skvbem.emissions import Gaussian
    from skvbem.models.hmm.model import HMM, HMMAscent
    from skvbem.models.hmm.transitions import Transitions
    from skvbem.vbem import posteriors

    emission = Gaussian("diag").for_data(X)
    transitions = Transitions(np.ones((1, K))), Transitions(np.ones((K, K)))
    model = HMM(emission, *transitions, emission.default_prior(K))
    data = model.compile(emission.prepare(X), [len(X)])
    start = model.statistics_of(rng.dirichlet(np.full(K, 0.5), size=len(X)), data)[:, None]
    ascent = HMMAscent(model, data, posteriors.VB, 1)
    ascent.advance(start, 1)
    logging.disable(logging.WARNING)
    peer = hmm.GaussianHMM(K, covariance_type="diag", n_iter=1, tol=-1e9, implementation="scaling", random_state=0)
    peer.fit(X)

    def their_step() -> float:
        began = time.process_time()
        statistics, _ = peer._do_estep(X, [len(X)])
        peer._do_mstep(statistics)
        return time.process_time() - began

    return partial(our_step, ascent, start), their_step


def measured(repeats: int) -> Iterator[dict]:
    """Lines of all emissions."""
    from bench_emissions import our_step, problems
    from bench_mixture import ascent_of
    from threadpoolctl import threadpool_limits
    from timing import interleave

    rng = np.random.default_rng(0)
    ours, others = {}, {}
    for name, (emission, X) in problems(N_ROWS, rng).items():
        ours[name] = partial(our_step, *ascent_of(emission.for_data(X), X, K, rng))
        if name in DENSITIES:
            others[f"loop of {name}"] = partial(em_step, X, DENSITIES[name])
        if name == BASE:
            ours[CHAIN], others[f"loop of {CHAIN}"] = chains(X, rng)
    with threadpool_limits(1):
        times = interleave(ours | others, repeats)
    for name in ours:
        theirs = times.get(f"loop of {name}")
        yield {
            "emission": name,
            "ours": (1e3 * times[name]).round(3).tolist(),
            "theirs": None if theirs is None else (1e3 * theirs).round(3).tolist(),
        }


def table_rows(lines: list[dict]) -> Iterator[tuple[str, ...]]:
    """Rows of the table of the guide: emission, milliseconds, steps of the Gaussian, and times of others over ours."""
    base = np.array(next(line["ours"] for line in lines if line["emission"] == BASE))
    for line in lines:
        ours = np.array(line["ours"])
        longer = "" if line["theirs"] is None else f"{np.median(np.array(line['theirs']) / ours):.1f}"
        yield line["emission"], f"{np.median(ours):.1f}", f"{np.median(ours / base):.1f}", longer


def main() -> None:
    """Measure, or show what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "table"])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if options.what == "measure":
        RECORD.unlink(missing_ok=True)
        for line in measured(options.repeats):
            add_to_record(RECORD, line)
    for row in table_rows(read_record(RECORD)):
        print(", ".join(row))


if __name__ == "__main__":
    main()
