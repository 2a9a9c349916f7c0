"""Steps and default fits of emissions that integrate a number out, beside the Gaussian of independent columns.

    PYTHONPATH=tests/benchmarks python -P tests/benchmarks/bench_emissions.py [steps] [fits] [loops] --repeats 5

A step is of 100 000 rows of five columns and five components; times are those that a processor was busy. Emissions
take turns. "each its own" has no interval twice, "10 000 values" so many distinct counts in each column.
"""

import argparse
import os
import warnings
from functools import partial

import numpy as np
from bench_mixture import ascent_of
from scipy import special, stats
from threadpoolctl import threadpool_limits
from timing import interleave, number, show, spread, timed_on_processor

from skvbem import VBMixture
from skvbem.emissions import (
    Censored,
    Gamma,
    Gaussian,
    Interval,
    NegativeBinomial,
    Poisson,
    StudentT,
    VonMises,
    ZeroInflated,
)

D, K = 5, 5
WANT_STEP, WANT_FIT = 4, 3.0


def problems(n, rng):
    """Emissions and rows of five components, by name."""
    kind = rng.integers(K, size=n)
    means = 2 * rng.normal(size=(K, D))[kind]
    normal = means + rng.normal(size=(n, D))
    rates = np.exp(rng.uniform(0, 3, size=(K, D)))[kind]
    counts = rng.poisson(rates * rng.gamma(1.0, 1.0, size=(n, D)))
    edges = np.stack([np.floor(2 * normal) / 2, np.floor(2 * normal) / 2 + 0.5], axis=2).reshape(n, 2 * D)
    own = np.stack([normal - rng.exponential(size=(n, D)), normal + rng.exponential(size=(n, D))], axis=2)
    return {
        "Gaussian('diag')": (Gaussian("diag"), normal),
        "Poisson()": (Poisson(), counts),
        "NegativeBinomial()": (NegativeBinomial(), counts),
        "NegativeBinomial(), 10 000 values": (
            NegativeBinomial(),
            rng.poisson(700 * rates * rng.gamma(1.0, 1.0, (n, D))),
        ),
        "Gamma()": (Gamma(), rates * rng.gamma(2.0, 1.0, size=(n, D))),
        "VonMises()": (VonMises(), rng.vonmises(means, 2.0)),
        "ZeroInflated(Poisson())": (ZeroInflated(Poisson()), counts * (rng.random((n, D)) < 0.7)),
        "StudentT()": (StudentT(), means + rng.standard_t(4, size=(n, D))),
        "Gaussian()": (Gaussian(), normal),
        "Censored(below=0)": (Censored(below=0.0), normal),
        "Interval(), classes": (Interval(), edges),
        "Interval(), each its own": (Interval(), own.reshape(n, 2 * D)),
    }


def steps(options):
    """CPU milliseconds of a step, and how many steps of the Gaussian these are."""
    rng = np.random.default_rng(0)
    cases = {}
    for name, (emission, X) in problems(options.rows, rng).items():
        if options.only is None or any(word in name for word in [*options.only, "('diag')"]):
            cases[name] = partial(our_step, *ascent_of(emission.for_data(X), X, K, rng))
    measured = interleave(cases, options.repeats)
    base = measured["Gaussian('diag')"]
    rows = [(name, spread(took, 1e3), number(np.median(took / base)), WANT_STEP) for name, took in measured.items()]
    show(f"a step, {options.rows} x {D}, {K} components", ("emission", "ms", "x Gaussian diag", "want <="), rows)


def our_step(ascent, start, n_steps=3):
    """CPU seconds of a step."""
    return timed_on_processor(ascent.advance, start.copy(), n_steps)[0] / n_steps


def fits(options):
    """CPU seconds of default fits of 10 000 rows."""
    rows = []
    for name, (emission, X) in problems(10_000, np.random.default_rng(0)).items():
        if options.only is not None and not any(word in name for word in options.only):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            took, model = timed_on_processor(VBMixture(K, emission=emission, random_state=0).fit, X)
        rows.append((name, number(took), model.n_iter_, WANT_FIT))
    show(f"a default fit, 10 000 x {D}, {K} components", ("emission", "s", "steps", "want <="), rows)


def loops(options):
    """What loops over components by SciPy's functions take for the likelihoods alone of one step."""
    rng = np.random.default_rng(0)
    tables, rows = problems(options.rows, rng), []
    for name, of_component in LOOPS.items():
        emission, X = tables[name]
        ours = ascent_of(emission.for_data(X), X, K, rng)

        def theirs(X=X, of_component=of_component):
            return timed_on_processor(lambda: [of_component(X).sum(axis=1) for _ in range(K)])[0]

        measured = interleave({"ours": partial(our_step, *ours), "scipy": theirs}, options.repeats)
        ratio = measured["scipy"] / measured["ours"]
        rows.append((name, spread(measured["ours"], 1e3), spread(measured["scipy"], 1e3), spread(ratio)))
    header = ("emission", "our step, ms", "likelihoods by SciPy, ms", "times faster")
    show(f"beside a loop over components, {options.rows} x {D}", header, rows)


def _between(X):
    """ln of normal probabilities between pairs of ends, the nearer tail at a time."""
    low, high = X[:, ::2] - 0.3, X[:, 1::2] - 0.3
    swap = low > 0
    a, b = np.where(swap, -high, low), np.where(swap, -low, high)
    return special.log_ndtr(b) + np.log1p(-np.exp(special.log_ndtr(a) - special.log_ndtr(b)))


LOOPS = {
    "NegativeBinomial()": lambda X: stats.nbinom.logpmf(X, 1.3, 0.1),
    "Gamma()": lambda X: stats.gamma.logpdf(X, 2.0, scale=3.0),
    "VonMises()": lambda X: stats.vonmises.logpdf(X, 2.0),
    "StudentT()": lambda X: stats.t.logpdf(X, 4.0),
    "Interval(), each its own": _between,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["steps", "fits", "loops"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", help="words of the emissions that are measured")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1):
        for part in options.parts:
            {"steps": steps, "fits": fits, "loops": loops}[part](options)


if __name__ == "__main__":
    main()
