"""Steps and fits of mixtures of five components with three covariates, beside those without and those of StepMix.

    python tests/benchmarks/bench_membership.py 100000 [--stepmix]

Record, a processor that others used as well, processor seconds, StepMix 3.0.0. Steps of 100 000 rows, the median of
one start: Gaussian, full, 10 columns, 0.26 us a row, without covariates 0.15; ten yes/no items 0.14, without 0.03.
Fits of the items by maximum likelihood, of this and StepMix, to the same likelihood: 100 000 rows and 3 starts, of
seeds 0 to 2, 1.3, 1.3, 1.4 and 17.6, 164.6, 86.2 s (StepMix's starts take unlike numbers of steps); 20 000 rows and
10 starts, 1.1 and 56.7 s. A single start has no moves: of seeds 0 to 2 ours end 1 089 nats lower, of 0 and 1 one of
StepMix's does.
"""

import argparse
import time

import numpy as np

from skvbem import VBMixture
from skvbem.emissions import Softmax
from skvbem.models.base import ModelAscent

COVARIATES = Softmax([10, 11, 12])


def table(n, family):
    """Ten columns of five classes, and three covariates that drive the class."""
    rng = np.random.default_rng(0)
    u, w = rng.normal(size=(n, 3)), 0.7 * rng.normal(size=(5, 4))
    odds = np.column_stack([np.ones(n), u]) @ w.T
    of_row = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    label = (of_row.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    if family == "gaussian":
        return np.column_stack([rng.normal(size=(n, 10)) + 1.5 * rng.normal(size=(5, 10))[label], u])
    return np.column_stack([rng.random((n, 10)) < rng.beta(0.5, 0.5, (5, 10))[label], u]).astype(float)


def steps(n, family, membership):
    """Print processor time of the steps of one start, with all rows."""
    seconds, advance = [], ModelAscent.advance

    def timed(self, statistics, n_steps):
        start = time.process_time()
        result = advance(self, statistics, n_steps)
        if len(self.data) == n:
            seconds.append((time.process_time() - start) / n_steps)
        return result

    ModelAscent.advance = timed
    emission = {family: list(range(10))} | ({} if membership else {"remainder": "drop"})
    model = VBMixture(5, emission=emission, membership=membership, n_init=1, max_iter=60, random_state=0)
    model.fit(table(n, family))
    ModelAscent.advance = advance
    step = np.array(seconds) / n * 1e6
    print(family, membership, f"{len(step)} steps, {np.median(step):.2f} us a row, mean {step.mean():.2f}", flush=True)


def fits(n, method, seed, n_init=3):
    """Print processor time and what a fit of ten items with so many starts reaches."""
    model = VBMixture(5, emission={"bernoulli": list(range(10))}, membership=COVARIATES, method=method, tol=2e-6)
    model.set_params(n_init=n_init, max_iter=1000, random_state=seed)
    X = table(n, "bernoulli")
    start = time.process_time()
    model.fit(X)
    reached = model.log_likelihood_ if method == "ml" else model.lower_bound_
    print(method, seed, f"{time.process_time() - start:.2f} s, {reached:.6f}, {model.n_iter_} steps", flush=True)


def stepmix_fits(n, seed, n_init=3):
    """Print the same of StepMix in one step, whose tolerance is of the mean over rows."""
    from stepmix import StepMix

    model = StepMix(5, measurement="bernoulli", structural="covariate", n_steps=1, n_init=n_init, random_state=seed)
    newton = {"method": "newton-raphson", "max_iter": 1, "intercept": True}
    model.set_params(structural_params=newton, abs_tol=2e-6 / n, rel_tol=0.0, max_iter=1000, progress_bar=0, verbose=0)
    X = table(n, "bernoulli")
    start = time.process_time()
    model.fit(X[:, :10], X[:, 10:])
    ended, reached = time.process_time() - start, model.score(X[:, :10], X[:, 10:]) * n
    print("StepMix", seed, f"{ended:.2f} s, {reached:.6f}, {model.n_iter_} steps", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=int)
    parser.add_argument("--stepmix", action="store_true")
    options = parser.parse_args()
    for family in ("gaussian", "bernoulli"):
        for membership in (None, COVARIATES):
            steps(options.n, family, membership)
    for seed in range(2):
        for method in ("ml", "vb"):
            fits(options.n, method, seed)
        if options.stepmix:
            stepmix_fits(options.n, seed)


if __name__ == "__main__":
    main()
