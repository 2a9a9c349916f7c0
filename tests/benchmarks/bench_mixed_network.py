"""Steps of a network of mixed columns beside those of a mixture of the same groups of columns.

    python tests/benchmarks/bench_mixed_network.py

One latent root above two measurements, a count and a category is a mixture of independent groups: both take the same
steps, from the same statistics. Ten starts side by side.

Record, two processors that others used as well, times of a step of a mixture: 0.85 at 300 rows, 1.01 at 3 000, 1.16 at
20 000; with a tenth of the cells missing 1.19, 1.15, 1.22.
"""

import sys
from pathlib import Path

import numpy as np
from timing import interleave, timed_on_processor

from skvbem import VBMixture, VBNetwork
from skvbem.emissions import Categorical, Gaussian, Poisson
from skvbem.fitting.evaluation import evaluate
from skvbem.fitting.fit import read
from skvbem.models.mixed_network.model import MixedNetworkAscent
from skvbem.models.mixture.model import MixtureAscent
from skvbem.optima.network import random_starts
from skvbem.vbem.posteriors import VB

sys.path.insert(0, str(Path(__file__).parents[1]))

from laws.test_mixed_networks import statistics_of_mixture

GROUPS = [
    ("numbers", Gaussian("full"), [0, 1]),
    ("counts", Poisson(), [2]),
    ("categories", Categorical(), [3]),
]


def rows(n, missing):
    """Three classes of rows, a share of the cells missing."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=n)
    columns = [rng.normal(2 * kind), rng.normal(kind), rng.poisson(1 + 3 * kind), rng.integers(3, size=n)]
    X = np.column_stack(columns).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def bench(n, missing, n_lanes=10):
    """Seconds of a step of both."""
    options = {"emission": GROUPS, "n_init": 1, "init": "random", "tol": 10.0, "random_state": 0}
    estimators = VBNetwork(latents=3, **options), VBMixture(3, weight_concentration_prior=1.0, **options)
    network, mixture = (evaluate(each, read(each, rows(n, missing))) for each in estimators)
    starts = random_starts(network.model, network.data, n_lanes, np.random.default_rng(0))
    of_mixture = [statistics_of_mixture(network.model, GROUPS, lane) for lane in starts.T]
    ascents = {
        "network": (MixedNetworkAscent(network.model, network.data, VB), starts),
        "mixture": (MixtureAscent(mixture.model, mixture.data, VB), np.stack(of_mixture, axis=1)),
    }
    n_steps = max(2, 10_000 // n)
    cases = {
        name: lambda ascent=ascent, at=at: timed_on_processor(ascent.advance, at.copy(), n_steps)[0] / n_steps
        for name, (ascent, at) in ascents.items()
    }
    seconds = interleave(cases, 9)
    ours, theirs = (1e3 * np.median(seconds[name]) for name in ("network", "mixture"))
    ratio = np.median(seconds["network"] / seconds["mixture"])
    print(f"{n} rows, {missing:.0%} missing: network {ours:.2f} ms, mixture {theirs:.2f} ms: {ratio:.2f} times")


if __name__ == "__main__":
    for n in (300, 3000, 20_000):
        for missing in (0.0, 0.1):
            bench(n, missing)
