"""Steps and fits of mixtures of five components with three covariates, beside those without, seed 0.

    python tests/benchmarks/bench_membership.py 100000

Record, a processor that others used as well, processor seconds, 100 000 rows, one start. Gaussian, full, 10 columns: a
step takes 1.3 us a row in the median (mean 1.5), without covariates 0.13; the fit 2.5 s, without 0.9. Ten yes/no items:
a step takes 1.7 us a row (mean 2.8); the fit 7.1 s. 20 000 rows of the items with ten starts: 7.1 s. StepMix 3.0.0 in
one step takes 0.7 s there for one start that ends after 42 iterations.
"""

import sys
import time

import numpy as np

from skvbem import VBMixture
from skvbem.emissions import Softmax
from skvbem.models.base import ModelAscent


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


def main():
    n, advance = int(sys.argv[1]), ModelAscent.advance
    for family in ("gaussian", "bernoulli"):
        X = table(n, family)
        for membership in (None, Softmax([10, 11, 12])):
            seconds = []

            def timed(self, *args, _seconds=seconds, **keywords):
                start = time.process_time()
                result = advance(self, *args, **keywords)
                if len(self.data) == n:
                    _seconds.append(time.process_time() - start)
                return result

            ModelAscent.advance = timed
            emission = {family: list(range(10))} | ({} if membership else {"remainder": "drop"})
            start = time.process_time()
            VBMixture(5, emission=emission, membership=membership, n_init=1, random_state=0).fit(X)
            ended, step = time.process_time() - start, np.array(seconds or [np.nan]) / n * 1e6
            print(family, membership, f"fit {ended:.1f} s, step {np.median(step):.2f} us a row, mean {step.mean():.2f}")


if __name__ == "__main__":
    main()
